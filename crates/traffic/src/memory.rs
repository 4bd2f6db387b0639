//! Generator and sink on a router's ports in memory: what NICs and cables are to a driver.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fwdlab_model::Verification;
use fwdlab_packet::toeplitz::{HashedPorts, MICROSOFT_KEY, RssHash};
use fwdlab_router::{BUFFER_BYTES, Descriptor, queue_of};
use fwdlab_sys::DeviceRing;

use crate::expected::Expected;
use crate::sink::SinkCounts;
use crate::turn::Order;
use crate::{Frames, TrafficError};

/// A cache line: what the smallest frames are moved by at once.
const LINE: usize = 64;

/// Frames after which the router is told: what a NIC writes back at once.
pub const WRITE_BACK: usize = 64;

/// A generator that fills a port's receive rings.
///
/// Every byte of a frame is written anew, and frames are spread over the rings by their RSS hash.
#[derive(Debug)]
pub struct MemoryGenerator {
    rings: Vec<DeviceRing<Descriptor>>,
    templates: Templates,
    position: Position,
    /// Flow and slot of the frames that are next in each ring.
    batches: Vec<Vec<(u32, u32)>>,
    counts: Arc<GeneratorCounts>,
}

/// What a generator has counted, for other threads to read.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct GeneratorCounts {
    offered: AtomicU64,
    missed: AtomicU64,
}

impl GeneratorCounts {
    /// Frames that were offered, missed ones among them.
    #[must_use]
    pub fn offered_frames(&self) -> u64 {
        self.offered.load(Ordering::Relaxed)
    }

    /// Frames for which the router had no descriptor ready.
    #[must_use]
    pub fn missed_frames(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

impl MemoryGenerator {
    /// A generator of these frames on the far side of a port's receive rings.
    ///
    /// # Errors
    /// `NoRing`.
    pub fn new(frames: &Frames, rings: Vec<DeviceRing<Descriptor>>) -> Result<Self, TrafficError> {
        let mut generator = Self::unplugged(frames, rings.len())?;
        generator.rings = rings;
        Ok(generator)
    }

    /// A generator of these frames for so many receive rings, which it is given later.
    ///
    /// # Errors
    /// `NoRing`.
    pub fn unplugged(frames: &Frames, rings: usize) -> Result<Self, TrafficError> {
        if rings == 0 {
            return Err(TrafficError::NoRing);
        }
        let batch = || Vec::with_capacity(WRITE_BACK);
        Ok(Self {
            rings: Vec::new(),
            templates: Templates::new(frames, rings),
            position: Position::new(frames.order()),
            batches: (0..rings).map(|_| batch()).collect(),
            counts: Arc::default(),
        })
    }

    /// What it has counted.
    #[must_use]
    pub fn counts(&self) -> Arc<GeneratorCounts> {
        Arc::clone(&self.counts)
    }

    /// Offers the next frames, of which none is missed: as many as every ring has descriptors for, at most
    /// [`WRITE_BACK`]. Returns how many.
    #[inline]
    pub fn fill(&mut self) -> usize {
        let rings = self.rings.iter_mut();
        let free = rings.map(|ring| ring.available_for(WRITE_BACK)).min();
        let count = free.unwrap_or(0).min(WRITE_BACK);
        self.offer(count);
        count
    }

    /// Offers the next frames, at most [`WRITE_BACK`]; those for which there is no descriptor are missed.
    #[inline]
    pub fn offer(&mut self, count: usize) {
        let count = count.min(WRITE_BACK);
        let missed = match self.rings.as_mut_slice() {
            [ring] => {
                let written = count.min(ring.available_for(count));
                if self.templates.are_of_one_size() && self.position.is_in_turn() {
                    let first = self.position.skip_flows(count);
                    self.templates.write_flows(first, written, ring);
                } else {
                    self.templates.write(written, ring, || self.position.step());
                    for _ in written..count {
                        self.position.step();
                    }
                }
                count - written
            }
            _ => self.offer_by_hash(count),
        };
        add(&self.counts.offered, count);
        add(&self.counts.missed, missed);
    }

    /// To the ring of each frame's flow; returns how many were missed.
    fn offer_by_hash(&mut self, count: usize) -> usize {
        for _ in 0..count {
            let place = self.position.step();
            self.batches[self.templates.queue(place)].push(place);
        }
        let mut missed = 0;
        for (ring, batch) in self.rings.iter_mut().zip(&mut self.batches) {
            let written = batch.len().min(ring.available_for(batch.len()));
            missed += batch.len() - written;
            let mut places = batch.iter();
            self.templates.write(written, ring, || {
                *places.next().expect("one for each frame")
            });
            batch.clear();
        }
        missed
    }

    /// Goes on at the next frame with other rings, as many as before, and returns the ones it had.
    ///
    /// Shape: an empty list takes the rings away; nothing may be offered until there are some again.
    pub fn exchange_rings(
        &mut self,
        rings: Vec<DeviceRing<Descriptor>>,
    ) -> Vec<DeviceRing<Descriptor>> {
        std::mem::replace(&mut self.rings, rings)
    }
}

/// One writer, so a load and a store are enough.
#[inline]
fn add(count: &AtomicU64, more: usize) {
    count.store(
        count.load(Ordering::Relaxed) + more as u64,
        Ordering::Relaxed,
    );
}

/// The frames of each flow in each size, ready to be copied.
#[derive(Debug)]
struct Templates {
    /// All sizes of the first flow, then those of the next.
    templates: Vec<Template>,
    /// What follows the first line, the same in all flows; shorter frames end sooner.
    rest: Vec<u8>,
    sizes: usize,
    /// The size of each slot of a turn.
    turn: Vec<usize>,
}

#[derive(Debug)]
struct Template {
    /// The first cache line.
    head: [u8; LINE],
    /// Bytes of the frame, without FCS.
    length: u16,
    /// The ring of its flow.
    queue: u16,
    flow_hash: u32,
}

impl Templates {
    fn new(frames: &Frames, rings: usize) -> Self {
        let rss = RssHash::new(&MICROSOFT_KEY, HashedPorts::default());
        let template = |frame: Vec<u8>| {
            let mut head = [0; LINE];
            let first = frame.len().min(LINE);
            head[..first].copy_from_slice(&frame[..first]);
            let flow_hash = rss.hash(&frame).unwrap_or_default();
            let small = |number| u16::try_from(number).expect("frames and rings are bounded");
            Template {
                head,
                length: small(frame.len()),
                queue: small(queue_of(flow_hash, rings)),
                flow_hash,
            }
        };
        Self {
            templates: frames.each_flow_in_each_size().map(template).collect(),
            rest: frames.largest().get(LINE..).unwrap_or_default().to_vec(),
            sizes: frames.sizes(),
            turn: frames.turn().to_vec(),
        }
    }

    #[inline]
    fn at(&self, (flow, slot): (u32, u32)) -> &Template {
        &self.templates[flow as usize * self.sizes + self.turn[slot as usize]]
    }

    fn queue(&self, place: (u32, u32)) -> usize {
        self.at(place).queue.into()
    }

    fn are_of_one_size(&self) -> bool {
        self.turn.len() == 1
    }

    /// Writes the frames of so many flows, one after the other, into descriptors.
    #[inline]
    fn write_flows(&self, first: usize, count: usize, ring: &mut DeviceRing<Descriptor>) {
        let (mut flow, mut left) = (first, count);
        while left > 0 {
            let templates = &self.templates[flow..];
            let run = ring.run(left.min(templates.len()));
            let count = run.len();
            for (descriptor, template) in run.iter_mut().zip(templates) {
                self.write_one(template, descriptor);
            }
            ring.complete(count);
            left -= count;
            flow = (flow + count) % self.templates.len();
        }
        ring.write_back();
    }

    /// Writes so many frames into descriptors.
    #[inline]
    fn write(
        &self,
        count: usize,
        ring: &mut DeviceRing<Descriptor>,
        mut next: impl FnMut() -> (u32, u32),
    ) {
        let mut left = count;
        while left > 0 {
            let run = ring.run(left);
            let count = run.len();
            for descriptor in run {
                self.write_one(self.at(next()), descriptor);
            }
            ring.complete(count);
            left -= count;
        }
        ring.write_back();
    }

    #[inline]
    fn write_one(&self, template: &Template, descriptor: &mut Descriptor) {
        let buffer = descriptor
            .buffer
            .as_mut()
            .expect("a receive ring's descriptors have buffers");
        *buffer.head_mut() = template.head;
        let length = usize::from(template.length);
        if length > LINE {
            buffer.bytes_mut()[LINE..length].copy_from_slice(&self.rest[..length - LINE]);
        }
        descriptor.length = template.length;
        descriptor.flow_hash = template.flow_hash;
    }
}

/// Where in the order of frames a generator is: places and slots, stepping on together.
#[derive(Debug)]
struct Position {
    order: Order,
    place: u32,
    slot: u32,
    left_of_stretch: u64,
    stretches_left: u32,
}

impl Position {
    fn new(order: Order) -> Self {
        Self {
            place: 0,
            slot: 0,
            left_of_stretch: order.sequence.stretch(),
            stretches_left: order.sequence.stretches(),
            order,
        }
    }

    /// Whether flows are sent in turn, so that places are flows.
    fn is_in_turn(&self) -> bool {
        self.order.schedule.is_none()
    }

    /// Steps over so many frames of one size, of flows in turn, and returns the flow of the first.
    #[inline]
    fn skip_flows(&mut self, count: usize) -> usize {
        let first = self.place;
        let flow = first as usize + count;
        let flows = self.order.sequence.places() as usize;
        let flow = if flow < flows { flow } else { flow % flows };
        self.place = u32::try_from(flow).expect("it is below the number of flows");
        first as usize
    }

    /// Flow and slot of the next frame.
    #[inline]
    fn step(&mut self) -> (u32, u32) {
        let now = (self.order.flow(self.place), self.slot);
        self.place += 1;
        if self.place == self.order.sequence.places() {
            self.place = 0;
        }
        self.next_slot();
        self.left_of_stretch -= 1;
        if self.left_of_stretch == 0 {
            self.left_of_stretch = self.order.sequence.stretch();
            self.next_stretch();
        }
        now
    }

    fn next_stretch(&mut self) {
        self.stretches_left -= 1;
        if self.stretches_left == 0 {
            self.stretches_left = self.order.sequence.stretches();
            self.slot = 0;
        } else {
            self.next_slot();
        }
    }

    #[inline]
    fn next_slot(&mut self) {
        self.slot += 1;
        if self.slot == self.order.sequence.slots() {
            self.slot = 0;
        }
    }
}

/// A sink that empties a port's transmit rings.
///
/// Every byte of a frame is read, and one in so many frames is compared with what was expected.
#[derive(Debug)]
pub struct MemorySink {
    rings: Vec<DeviceRing<Descriptor>>,
    /// None where none of the tester's frames should come.
    expected: Option<Expected>,
    check_every: u32,
    until_check: u32,
    /// Where frames go: read, as a NIC reads them, and overwritten by the next.
    wire: Box<[u8; BUFFER_BYTES]>,
    counts: Arc<MemorySinkCounts>,
}

/// What a sink has counted, for other threads to read.
#[derive(Debug)]
#[repr(align(128))]
pub struct MemorySinkCounts {
    received: AtomicU64,
    foreign: AtomicU64,
    checks: Mutex<Checks>,
}

#[derive(Debug)]
struct Checks {
    counts: SinkCounts,
    flows_seen: Vec<bool>,
    /// In what the first wrong frame differed.
    difference: Option<String>,
}

impl MemorySinkCounts {
    /// Frames so far.
    #[must_use]
    pub fn forwarded_frames(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// What was counted and checked so far.
    #[must_use]
    pub fn counts(&self) -> SinkCounts {
        SinkCounts {
            forwarded_frames: self.forwarded_frames(),
            foreign_frames: self.foreign.load(Ordering::Relaxed),
            ..self.checks().counts.clone()
        }
    }

    /// The outcome of the check, for the records.
    #[must_use]
    pub fn verification(&self) -> Verification {
        self.counts().verification(self.flows_seen())
    }

    /// Distinct flows among the checked frames.
    #[must_use]
    pub fn flows_seen(&self) -> u32 {
        let seen = self
            .checks()
            .flows_seen
            .iter()
            .filter(|&&seen| seen)
            .count();
        u32::try_from(seen).expect("flows are counted in 32 bits")
    }

    /// In what the first frame that was wrong differed from what was expected: what stands where in both.
    #[must_use]
    pub fn difference(&self) -> Option<String> {
        self.checks().difference.clone()
    }

    fn checks(&self) -> MutexGuard<'_, Checks> {
        // Whoever panicked meanwhile left counts behind that are right up to there.
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemorySink {
    /// A sink that is to expect these frames on the far side of a port's transmit rings, and to check one
    /// of so many.
    #[must_use]
    pub fn new(frames: &Frames, rings: Vec<DeviceRing<Descriptor>>, check_every: u32) -> Self {
        Self::with(Some(frames), rings, check_every)
    }

    /// A sink where none of the tester's frames should come: what comes is counted apart.
    #[must_use]
    pub fn of_foreign_frames(rings: Vec<DeviceRing<Descriptor>>) -> Self {
        Self::with(None, rings, u32::MAX)
    }

    fn with(frames: Option<&Frames>, rings: Vec<DeviceRing<Descriptor>>, check_every: u32) -> Self {
        let flows = frames.map_or(0, |frames| frames.flows().count() as usize);
        Self {
            expected: frames.map(Expected::new),
            check_every,
            until_check: check_every,
            wire: Box::new([0; BUFFER_BYTES]),
            counts: Arc::new(MemorySinkCounts {
                received: AtomicU64::new(0),
                foreign: AtomicU64::new(0),
                checks: Mutex::new(Checks {
                    counts: SinkCounts::default(),
                    flows_seen: vec![false; flows],
                    difference: None,
                }),
            }),
            rings,
        }
    }

    /// What it has counted.
    #[must_use]
    pub fn counts(&self) -> Arc<MemorySinkCounts> {
        Arc::clone(&self.counts)
    }

    /// Takes what the router has sent, and returns how many frames that was.
    #[inline]
    pub fn drain(&mut self) -> usize {
        let mut received = 0;
        for index in 0..self.rings.len() {
            received += self.drain_ring(index);
        }
        if received > 0 {
            let count = if self.expected.is_some() {
                &self.counts.received
            } else {
                &self.counts.foreign
            };
            add(count, received);
        }
        received
    }

    #[inline]
    fn drain_ring(&mut self, index: usize) -> usize {
        let ring = &mut self.rings[index];
        let available = ring.available();
        let mut until_check = self.until_check;
        let mut left = available;
        while left > 0 {
            let run = ring.run(left.min(WRITE_BACK));
            let count = run.len();
            for descriptor in run {
                let buffer = descriptor
                    .buffer
                    .as_ref()
                    .expect("a posted descriptor has a buffer");
                let length = usize::from(descriptor.length);
                self.wire[..LINE].copy_from_slice(buffer.head());
                if length > LINE {
                    self.wire[LINE..length].copy_from_slice(&buffer.bytes()[LINE..length]);
                }
                until_check -= 1;
                if until_check == 0 {
                    until_check = self.check_every;
                    if let Some(expected) = &self.expected {
                        check(expected, &self.counts, &self.wire[..length]);
                    }
                }
            }
            ring.complete(count);
            ring.write_back();
            left -= count;
        }
        self.until_check = until_check;
        // Frames are read although nobody looks at most of them.
        std::hint::black_box(&self.wire);
        available
    }

    /// Goes on with other rings, and returns the ones it had.
    pub fn exchange_rings(
        &mut self,
        rings: Vec<DeviceRing<Descriptor>>,
    ) -> Vec<DeviceRing<Descriptor>> {
        std::mem::replace(&mut self.rings, rings)
    }
}

#[inline(never)]
fn check(expected: &Expected, counts: &MemorySinkCounts, frame: &[u8]) {
    let (flow, wrong) = expected.check(frame);
    let mut checks = counts.checks();
    checks.counts.checked_frames += 1;
    if let Some(flow) = flow {
        checks.flows_seen[flow] = true;
    }
    if let Some(wrong) = wrong {
        checks.counts.wrong_frames[wrong as usize] += 1;
        if checks.difference.is_none() {
            checks.difference = expected.difference(frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Schedule;
    use crate::turn::Sequence;
    use fwdlab_model::SCHEDULE_FRAMES;
    use proptest::prelude::*;

    #[test]
    fn the_order_of_heavy_flows_is_that_of_the_schedule() {
        let order = Order {
            sequence: Sequence::new(SCHEDULE_FRAMES, 12),
            schedule: Some(Schedule::new("1.1".parse().unwrap(), 500).of_part(1, 3)),
        };
        let mut position = Position::new(order.clone());
        assert!(!position.is_in_turn());
        for number in 0..u64::from(SCHEDULE_FRAMES) * 2 {
            assert_eq!(position.step(), order.at(number), "{number}");
        }
    }

    proptest! {
        #[test]
        fn the_order_of_frames_is_that_of_the_sequence(flows in 1u32..60, slots in 1u32..20) {
            let sequence = Sequence::new(flows, slots);
            let mut position = Position::new(Order { sequence, schedule: None });
            for number in 0..2 * sequence.period() {
                prop_assert_eq!(position.step(), sequence.at(number));
            }
        }
    }
}
