//! A transmit queue, as iflib has them: in front of its descriptors a ring of many producers, or a lock.

use std::sync::Mutex;

use fwdlab_sys::{Drainer, DriverRing, Finished, MultiProducerRing};

use crate::buffer::{BufferPool, Descriptor, Packet};
use crate::counters::{Counters, Event};
use crate::stages::{Laps, Stage};

/// Packets that one drain takes at most: iflib's `TX_BATCH_SIZE`.
const BATCH: usize = 32;

/// Slots of the ring of many producers: what iflib asks `ifmp_ring_alloc` for.
const PRODUCER_RING_SLOTS: usize = 2048;

/// The transmit queue of a flow: packets of one flow stay in order.
#[inline]
#[must_use]
pub fn queue_of(flow_hash: u32, queues: usize) -> usize {
    if queues == 1 {
        0
    } else {
        flow_hash as usize % queues
    }
}

/// One of a port's transmit queues, shared by all workers.
#[derive(Debug)]
pub(crate) struct TransmitQueue {
    path: Path,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a router has few queues")]
enum Path {
    /// `simple_tx` = 0. The lock is the drainer's alone, so that it is never waited for.
    Ring(MultiProducerRing<Packet>, Mutex<Descriptors>),
    /// `simple_tx` = 1.
    Lock(Mutex<Descriptors>),
}

impl TransmitQueue {
    pub(crate) fn new(
        ring: DriverRing<Descriptor>,
        is_simple: bool,
        reclaim_threshold: usize,
    ) -> Self {
        let descriptors = Mutex::new(Descriptors {
            ring,
            reclaim_threshold,
        });
        Self {
            path: if is_simple {
                Path::Lock(descriptors)
            } else {
                Path::Ring(MultiProducerRing::new(PRODUCER_RING_SLOTS), descriptors)
            },
        }
    }

    /// Puts packets into the queue, from the front; what it does not take stays.
    #[inline]
    pub(crate) fn transmit<L: Laps>(
        &self,
        packets: &mut Vec<Packet>,
        abdicate: bool,
        own: &mut Own<'_, L>,
    ) {
        match &self.path {
            Path::Ring(ring, descriptors) => {
                transmit_through_ring(ring, descriptors, packets, abdicate, own);
            }
            Path::Lock(descriptors) => transmit_under_lock(descriptors, packets, own),
        }
    }

    /// The queue's own task: drains what was left to it, by producers that abdicate or because the
    /// descriptors were full.
    #[inline]
    pub(crate) fn run_task<L: Laps>(&self, own: &mut Own<'_, L>) {
        if let Path::Ring(ring, descriptors) = &self.path
            && let Some(drainer) = ring.try_drain()
        {
            own.counters.add(Event::TaskDrains, 1);
            drain(drainer, descriptors, own);
        }
    }

    /// Whether packets wait in front of the descriptors.
    pub(crate) fn has_waiting(&self) -> bool {
        match &self.path {
            Path::Ring(ring, _) => !ring.is_empty(),
            Path::Lock(_) => false,
        }
    }

    /// What is in the queue, to be given back; nobody uses it any more.
    pub(crate) fn into_parts(self) -> (DriverRing<Descriptor>, Vec<Packet>) {
        let mut waiting = Vec::new();
        let descriptors = match self.path {
            Path::Ring(ring, descriptors) => {
                if let Some(mut drainer) = ring.try_drain() {
                    drainer.take(PRODUCER_RING_SLOTS, |packet| waiting.push(packet));
                }
                descriptors
            }
            Path::Lock(descriptors) => descriptors,
        };
        let descriptors = descriptors
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        (descriptors.ring, waiting)
    }
}

/// What of the worker's own the transmit path works with.
pub(crate) struct Own<'w, L> {
    pub(crate) pool: &'w mut BufferPool,
    pub(crate) counters: &'w mut Counters,
    pub(crate) laps: &'w mut L,
}

/// `simple_tx` = 0: into the ring of many producers; whoever finds it idle drains it, or leaves that to
/// the queue's task (`tx_abdicate` = 1).
#[inline(never)]
fn transmit_through_ring<L: Laps>(
    ring: &MultiProducerRing<Packet>,
    descriptors: &Mutex<Descriptors>,
    packets: &mut Vec<Packet>,
    abdicate: bool,
    own: &mut Own<'_, L>,
) {
    own.counters.add(Event::Enqueues, 1);
    let enqueued = ring.enqueue(packets, abdicate);
    if let Some(drainer) = enqueued.drainer {
        drain(drainer, descriptors, own);
    }
}

/// `simple_tx` = 1: to the descriptors, under a lock.
#[inline(never)]
fn transmit_under_lock<L: Laps>(
    descriptors: &Mutex<Descriptors>,
    packets: &mut Vec<Packet>,
    own: &mut Own<'_, L>,
) {
    let mut descriptors = lock(descriptors);
    own.counters.add(Event::Locks, 1);
    descriptors.reclaim(own);
    let count = descriptors.room(packets.len(), own);
    let mut front = packets.drain(..count);
    descriptors.fill(count, || front.next());
    drop(front);
    if count > 0 {
        descriptors.doorbell(own.counters);
    }
}

/// Takes packets to the descriptors, batch by batch, until the ring is empty or the descriptors are full.
#[inline(never)]
fn drain<L: Laps>(
    drainer: Drainer<'_, Packet>,
    descriptors: &Mutex<Descriptors>,
    own: &mut Own<'_, L>,
) {
    let mut descriptors = lock(descriptors);
    let mut drainer = drainer;
    loop {
        own.counters.add(Event::Drains, 1);
        loop {
            let waiting = drainer.waiting();
            if waiting == 0 {
                break;
            }
            descriptors.reclaim(own);
            let count = descriptors.room(waiting.min(BATCH), own);
            if count == 0 {
                break;
            }
            descriptors.take_from(&mut drainer, count);
            descriptors.doorbell(own.counters);
        }
        match drainer.finish() {
            Finished::More(more) => drainer = more,
            Finished::Idle | Finished::Stalled => return,
        }
    }
}

fn lock(descriptors: &Mutex<Descriptors>) -> std::sync::MutexGuard<'_, Descriptors> {
    // A worker that panicked takes the run with it; what it left is still whole.
    descriptors
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[derive(Debug)]
struct Descriptors {
    ring: DriverRing<Descriptor>,
    reclaim_threshold: usize,
}

impl Descriptors {
    /// `tx_reclaim_thresh`: takes sent buffers back where more than that many are outstanding.
    #[inline]
    fn reclaim<L: Laps>(&mut self, own: &mut Own<'_, L>) {
        own.counters.add(Event::ReclaimChecks, 1);
        // What is completed is outstanding: only beyond the threshold need the port be asked.
        if self.ring.outstanding() > self.reclaim_threshold
            && self.ring.completed() > self.reclaim_threshold
        {
            self.reclaim_completed(own);
        }
    }

    /// How many of so many packets the descriptors have room for; where they are short of it, sent
    /// buffers are taken back whatever the threshold.
    #[inline]
    fn room<L: Laps>(&mut self, wanted: usize, own: &mut Own<'_, L>) -> usize {
        let free = |ring: &DriverRing<Descriptor>| ring.size() - ring.outstanding();
        if free(&self.ring) < wanted && self.ring.completed() > 0 {
            self.reclaim_completed(own);
        }
        wanted.min(free(&self.ring))
    }

    #[inline(never)]
    fn reclaim_completed<L: Laps>(&mut self, own: &mut Own<'_, L>) {
        own.laps.lap(Stage::Transmit);
        own.counters.add(Event::Reclaims, 1);
        loop {
            let done = self.ring.done(usize::MAX);
            let count = done.len();
            if count == 0 {
                own.laps.lap(Stage::Reclaim);
                return;
            }
            own.pool.put_many(done.iter_mut().map(|descriptor| {
                descriptor
                    .buffer
                    .take()
                    .expect("what was posted to be sent has a buffer")
            }));
            own.counters.add(Event::Reclaimed, count);
            self.ring.reclaim(count);
        }
    }

    #[inline]
    fn take_from(&mut self, drainer: &mut Drainer<'_, Packet>, count: usize) {
        let mut left = count;
        while left > 0 {
            let mut slots = self.ring.free(left).iter_mut();
            let run = slots.len();
            drainer.take(run, |packet| {
                let slot = slots
                    .next()
                    .expect("no more are taken than there are slots");
                slot.put(packet);
            });
            self.ring.post(run);
            left -= run;
        }
    }

    #[inline]
    fn fill(&mut self, count: usize, mut next: impl FnMut() -> Option<Packet>) {
        let mut left = count;
        while left > 0 {
            let slots = self.ring.free(left);
            let run = slots.len();
            for slot in slots {
                let packet = next().expect("as many packets as there is room for");
                slot.put(packet);
            }
            self.ring.post(run);
            left -= run;
        }
    }

    #[inline]
    fn doorbell(&mut self, counters: &mut Counters) {
        counters.add(Event::Doorbells, 1);
        self.ring.doorbell();
    }
}
