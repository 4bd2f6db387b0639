//! A router put together: workers on one side of its rings, ports on the other.

use std::sync::Arc;

use fwdlab_model::Knob;
use fwdlab_sys::{DeviceRing, descriptor_ring};

use crate::RouterError;
use crate::buffer::{Buffer, BufferPool, Depot, Descriptor};
use crate::harvest::Harvester;
use crate::knobs::Knobs;
use crate::network::Network;
use crate::nodes::VECTOR_MAX;
use crate::receive::ReceiveQueue;
use crate::transmit::TransmitQueue;
use crate::worker::{Shared, Worker};

/// Buffers that a worker keeps beside those in rings: some vectors' worth.
const SPARE_BUFFERS: usize = 4 * VECTOR_MAX;

/// Who works on which queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Receive queues of each port.
    pub receive_queues: usize,
    /// Transmit queues of each port. With fewer of them than workers that receive, workers share one.
    pub transmit_queues: usize,
    /// The workers, each with its queues: receive queues are polled, of transmit queues the task is run.
    pub workers: Vec<Roles>,
}

/// The queues of one worker, of all ports alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// Queues that it receives from.
    pub receive: Vec<usize>,
    /// Queues whose transmit task it runs.
    pub transmit: Vec<usize>,
}

impl Layout {
    /// One worker that does everything.
    #[must_use]
    pub fn single() -> Self {
        Self::even(1)
    }

    /// As many workers as queues, each with its own.
    #[must_use]
    pub fn even(queues: usize) -> Self {
        let workers = (0..queues)
            .map(|queue| Roles {
                receive: vec![queue],
                transmit: vec![queue],
            })
            .collect();
        Self {
            receive_queues: queues,
            transmit_queues: queues,
            workers,
        }
    }

    /// Every queue has one worker for each of its sides.
    fn check(&self) -> Result<(), RouterError> {
        let of_workers = |side: fn(&Roles) -> &Vec<usize>| {
            let mut queues: Vec<usize> = self.workers.iter().flat_map(side).copied().collect();
            queues.sort_unstable();
            queues
        };
        for (side, count, queues) in [
            (
                "receive",
                self.receive_queues,
                of_workers(|roles| &roles.receive),
            ),
            (
                "transmit",
                self.transmit_queues,
                of_workers(|roles| &roles.transmit),
            ),
        ] {
            if count == 0 || queues != (0..count).collect::<Vec<_>>() {
                return Err(RouterError::Layout {
                    what: format!(
                        "of {count} {side} queues, workers have {queues:?}; give each queue one worker, and \
                         each port one queue at least"
                    ),
                });
            }
        }
        Ok(())
    }
}

/// The far side of a port's rings: what a NIC is to a driver, and a tester to this router.
#[derive(Debug)]
pub struct PortDevice {
    /// The receive rings: empty buffers to be filled.
    pub receive: Vec<DeviceRing<Descriptor>>,
    /// The transmit rings: frames to be sent.
    pub transmit: Vec<DeviceRing<Descriptor>>,
}

/// A router whose parts are handed out: workers to threads that poll them, ports to a tester.
#[derive(Debug)]
pub struct Router {
    /// In the layout's order.
    pub workers: Vec<Worker>,
    /// By their numbers.
    pub ports: Vec<PortDevice>,
    /// The entropy that the workers gather.
    pub harvester: Arc<Harvester>,
}

impl Router {
    /// Takes a router apart, and gives its buffers back in the order of their addresses, so that the next
    /// router made of them has the same ones in the same places. What was under way in it is lost.
    ///
    /// # Errors
    /// `Layout`, where the parts are not all those of one router.
    pub fn disassemble(
        workers: Vec<Worker>,
        ports: Vec<PortDevice>,
    ) -> Result<Vec<Box<Buffer>>, RouterError> {
        let not_all = || RouterError::Layout {
            what: "a router is taken apart with all of its workers and ports".to_owned(),
        };
        let mut buffers = Vec::new();
        let mut receive = Vec::new();
        let mut last = None;
        for worker in workers {
            let (shared, queues, pool) = worker.into_parts();
            receive.extend(queues);
            buffers.extend(pool);
            last = Some(shared);
        }
        let shared = last.and_then(Arc::into_inner).ok_or_else(not_all)?;
        buffers.extend(shared.depot.take_all());
        for (number, (device, queues)) in (0_u16..).zip(ports.into_iter().zip(shared.transmit)) {
            for (queue, nic) in device.receive.into_iter().enumerate() {
                let own = receive
                    .iter()
                    .position(|own| (own.port, own.queue) == (number, queue))
                    .ok_or_else(not_all)?;
                let descriptors = receive.swap_remove(own).into_ring().into_descriptors(nic);
                buffers.extend(descriptors.into_iter().filter_map(|slot| slot.buffer));
            }
            for (own, nic) in queues.into_iter().zip(device.transmit) {
                let (ring, waiting) = own.into_parts();
                buffers.extend(waiting.into_iter().map(|packet| packet.buffer));
                let descriptors = ring.into_descriptors(nic);
                buffers.extend(descriptors.into_iter().filter_map(|slot| slot.buffer));
            }
        }
        if !receive.is_empty() {
            return Err(not_all());
        }
        buffers.sort_by_key(|buffer| std::ptr::from_ref::<Buffer>(buffer).addr());
        Ok(buffers)
    }

    /// How many buffers a router needs.
    #[must_use]
    pub fn buffers_needed(network: &Network, knobs: &Knobs, layout: &Layout) -> usize {
        let receive = layout.receive_queues * knobs.level(Knob::OverrideNrxds) as usize;
        let transmit = layout.transmit_queues * knobs.level(Knob::OverrideNtxds) as usize;
        network.ports.len() * (receive + transmit) + layout.workers.len() * SPARE_BUFFERS
    }

    /// Puts a router together out of `buffers`, the first of which are used as they come; missing ones are
    /// made.
    ///
    /// # Errors
    /// `Layout`.
    pub fn assemble(
        network: &Arc<Network>,
        knobs: &Knobs,
        layout: &Layout,
        buffers: Vec<Box<Buffer>>,
    ) -> Result<(Self, Vec<Box<Buffer>>), RouterError> {
        layout.check()?;
        let needed = Self::buffers_needed(network, knobs, layout);
        let mut buffers = buffers;
        while buffers.len() < needed {
            buffers.push(Buffer::new());
        }
        let mut left = buffers.into_iter();
        let nrxds = knobs.level(Knob::OverrideNrxds) as usize;
        let ntxds = knobs.level(Knob::OverrideNtxds) as usize;
        let threshold = knobs.level(Knob::TxReclaimThresh) as usize;

        let mut ports = Vec::new();
        let mut transmit = Vec::new();
        let mut receive = Vec::new();
        for port in 0..network.ports.len() {
            let number = u16::try_from(port).map_err(|_| RouterError::Layout {
                what: "a router has at most 65536 ports".to_owned(),
            })?;
            let mut device = PortDevice {
                receive: Vec::new(),
                transmit: Vec::new(),
            };
            let mut queues = Vec::new();
            for queue in 0..layout.receive_queues {
                let descriptors = left.by_ref().take(nrxds).map(|buffer| Descriptor {
                    buffer: Some(buffer),
                    ..Descriptor::default()
                });
                let (driver, nic) = descriptor_ring(descriptors.collect());
                receive.push(ReceiveQueue::new(number, queue, driver));
                device.receive.push(nic);
            }
            for _ in 0..layout.transmit_queues {
                let empty = (0..ntxds).map(|_| Descriptor::default());
                let (driver, nic) = descriptor_ring(empty.collect());
                let is_simple = knobs.is_on(Knob::SimpleTx);
                queues.push(TransmitQueue::new(driver, is_simple, threshold));
                device.transmit.push(nic);
            }
            ports.push(device);
            transmit.push(queues);
        }
        let harvester = Arc::new(Harvester::default());
        let depot = Arc::new(Depot::default());
        let shared = Arc::new(Shared {
            network: Arc::clone(network),
            harvester: Arc::clone(&harvester),
            depot: Arc::clone(&depot),
            transmit,
        });
        let pooled = needed - network.ports.len() * layout.receive_queues * nrxds;
        let share = pooled / layout.workers.len();
        let workers = layout
            .workers
            .iter()
            .map(|roles| {
                let is_own = |queue: &mut ReceiveQueue| roles.receive.contains(&queue.queue);
                let own = receive.extract_if(.., is_own).collect();
                let tasks = (0..network.ports.len())
                    .flat_map(|port| roles.transmit.iter().map(move |&queue| (port, queue)))
                    .collect();
                let pool = left.by_ref().take(share).collect();
                let pool = BufferPool::new(pool, Arc::clone(&depot), needed);
                Worker::new(Arc::clone(&shared), knobs, own, tasks, pool)
            })
            .collect();
        Ok((
            Self {
                workers,
                ports,
                harvester,
            },
            left.collect(),
        ))
    }
}
