//! A receive queue: full buffers out of the descriptors, empty ones in.

use fwdlab_sys::{DriverRing, prefetch_read};

use crate::buffer::{BufferPool, Descriptor, Packet};

/// One of a port's receive queues, polled by one worker.
#[derive(Debug)]
pub(crate) struct ReceiveQueue {
    /// The port's number.
    pub(crate) port: u16,
    /// The queue's number among the port's.
    pub(crate) queue: usize,
    ring: DriverRing<Descriptor>,
    /// Whether the ring was found empty: the next packet then comes with an interrupt.
    is_armed: bool,
}

/// What a look at a receive queue brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) packets: usize,
    /// Headers that were prefetched.
    pub(crate) prefetches: usize,
    /// Whether the ring was empty before.
    pub(crate) was_interrupt: bool,
}

/// Taking packets is a loop of its own for each level of `iflib.prefetch`, under its own name.
macro_rules! receive {
    ($name:ident, $prefetch:literal) => {
        #[inline(never)]
        fn $name(
            queue: &mut ReceiveQueue,
            packets_max: usize,
            pool: &mut BufferPool,
            packets: &mut Vec<Packet>,
        ) -> Arrival {
            queue.take::<$prefetch>(packets_max, pool, packets)
        }
    };
}

receive!(receive_plain, false);
receive!(receive_prefetching, true);

/// The loop for a level of `iflib.prefetch`.
#[inline]
pub(crate) fn receive(
    prefetch: bool,
) -> fn(&mut ReceiveQueue, usize, &mut BufferPool, &mut Vec<Packet>) -> Arrival {
    if prefetch {
        receive_prefetching
    } else {
        receive_plain
    }
}

impl ReceiveQueue {
    /// Shape: every descriptor has a buffer.
    pub(crate) fn new(port: u16, queue: usize, mut ring: DriverRing<Descriptor>) -> Self {
        // One slot stays free, as on a NIC whose head meeting its tail means an empty ring.
        let mut left = ring.size() - 1;
        while left > 0 {
            let run = ring.free(left).len();
            ring.post(run);
            left -= run;
        }
        ring.doorbell();
        Self {
            port,
            queue,
            ring,
            is_armed: true,
        }
    }

    /// Takes at most so many packets, and posts an empty buffer for each. With `PREFETCH`, fetches their
    /// headers.
    ///
    /// Where the pool has none left, packets stay in the ring until sent buffers come back.
    #[inline(always)]
    fn take<const PREFETCH: bool>(
        &mut self,
        packets_max: usize,
        pool: &mut BufferPool,
        packets: &mut Vec<Packet>,
    ) -> Arrival {
        let available = self.ring.completed();
        self.is_armed |= available == 0;
        let wanted = available.min(packets_max).min(pool.ready(packets_max));
        if wanted == 0 {
            return Arrival::default();
        }
        let mut left = wanted;
        while left > 0 {
            let done = self.ring.done(left);
            let run = done.len();
            if PREFETCH {
                for full in done
                    .iter()
                    .filter_map(|descriptor| descriptor.buffer.as_ref())
                {
                    prefetch_read(full.head());
                }
            }
            let fresh = pool.take_many(run);
            packets.extend(done.iter_mut().zip(fresh).map(|(descriptor, fresh)| {
                let full = descriptor
                    .buffer
                    .replace(fresh)
                    .expect("every slot of a receive ring has a buffer");
                Packet {
                    buffer: full,
                    length: descriptor.length,
                    is_own: false,
                    flow_hash: descriptor.flow_hash,
                }
            }));
            self.ring.reclaim(run);
            left -= run;
        }
        self.refill(wanted);
        Arrival {
            packets: wanted,
            prefetches: if PREFETCH { wanted } else { 0 },
            was_interrupt: std::mem::take(&mut self.is_armed),
        }
    }

    fn refill(&mut self, count: usize) {
        let mut left = count;
        while left > 0 {
            let run = self.ring.free(left).len();
            self.ring.post(run);
            left -= run;
        }
        self.ring.doorbell();
    }

    pub(crate) fn into_ring(self) -> DriverRing<Descriptor> {
        self.ring
    }
}
