//! Buffers, and packets in them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fwdlab_packet::ethernet;

/// Bytes of a buffer: FreeBSD's `MCLBYTES`, a whole Ethernet frame with room to spare.
pub const BUFFER_BYTES: usize = 2048;

/// The part of a buffer that holds all the headers that plain forwarding looks at: one cache line.
pub(crate) const HEAD_BYTES: usize = 64;

/// Memory for one frame, always of the same size.
#[derive(Clone)]
#[repr(align(64))]
pub struct Buffer {
    bytes: [u8; BUFFER_BYTES],
}

impl Buffer {
    /// A new one, all zero.
    #[must_use]
    pub fn new() -> Box<Self> {
        Box::new(Self {
            bytes: [0; BUFFER_BYTES],
        })
    }

    /// All of its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8; BUFFER_BYTES] {
        &self.bytes
    }

    /// All of its bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8; BUFFER_BYTES] {
        &mut self.bytes
    }

    /// The first cache line; whatever a frame's length, it is there.
    #[inline]
    pub fn head(&self) -> &[u8; HEAD_BYTES] {
        self.bytes
            .first_chunk()
            .expect("a buffer is longer than a cache line")
    }

    /// The first cache line, to be written.
    #[inline]
    pub fn head_mut(&mut self) -> &mut [u8; HEAD_BYTES] {
        self.bytes
            .first_chunk_mut()
            .expect("a buffer is longer than a cache line")
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({:02x?}…)", &self.bytes[..16])
    }
}

/// What a port's descriptor says: a buffer, how much of it is a frame, and what the port found out
/// about it.
#[derive(Debug, Default)]
pub struct Descriptor {
    /// On a receive ring always there; on a transmit ring from posting to reclaiming.
    pub buffer: Option<Box<Buffer>>,
    /// Bytes of the frame, without FCS.
    pub length: u16,
    /// The RSS hash, on a receive ring.
    pub flow_hash: u32,
}

impl Descriptor {
    /// Tells a port to send a packet.
    ///
    /// Shape: the descriptor has no buffer.
    #[inline]
    pub(crate) fn put(&mut self, packet: Packet) {
        debug_assert!(self.buffer.is_none(), "what was sent has been reclaimed");
        let empty = std::mem::replace(
            self,
            Self {
                buffer: Some(packet.buffer),
                length: packet.length,
                flow_hash: packet.flow_hash,
            },
        );
        // There is nothing in it to be dropped, which need not be asked for every packet.
        std::mem::forget(empty);
    }
}

/// A frame inside the router.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) buffer: Box<Buffer>,
    /// Bytes of the frame, without FCS.
    pub(crate) length: u16,
    /// Whether the router made it itself.
    pub(crate) is_own: bool,
    /// The port's RSS hash, by which the transmit queue is chosen too.
    pub(crate) flow_hash: u32,
}

impl Packet {
    /// The frame.
    pub(crate) fn frame(&self) -> &[u8] {
        &self.buffer.bytes()[..usize::from(self.length)]
    }

    /// Cuts off what follows the IP packet in the frame, but for what fills a frame up to Ethernet's
    /// minimum: the next link may be too small for the rest, and is not to see it.
    ///
    /// Units: bytes of the IP packet, which is whole.
    #[inline]
    pub(crate) fn trim(&mut self, packet_length: usize) {
        // As good as no frame is longer, and those need not be written.
        if usize::from(self.length) > ethernet::HEADER_LENGTH + packet_length {
            self.cut_to(packet_length);
        }
    }

    #[cold]
    fn cut_to(&mut self, packet_length: usize) {
        let needed = (ethernet::HEADER_LENGTH + packet_length).max(ethernet::MINIMUM_LENGTH);
        self.length = self.length.min(u16::try_from(needed).unwrap_or(u16::MAX));
    }
}

/// Free buffers that no worker keeps, for those that run short: with several workers, buffers received by
/// one come back to another.
#[derive(Debug, Default)]
pub(crate) struct Depot {
    free: Mutex<VecDeque<Box<Buffer>>>,
    /// Whether a worker found too few: the others are asked for theirs.
    is_short: AtomicBool,
}

impl Depot {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Box<Buffer>>> {
        // What a worker left that panicked is still a list of buffers.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take_all(&self) -> VecDeque<Box<Buffer>> {
        std::mem::take(&mut *self.lock())
    }
}

/// Free buffers of one worker, first in, first out: the one that has rested longest is used next, so
/// that no small set of them stays in the cache and flatters what is measured.
///
/// A queue of two stacks: what came back lies in the order in which it came, and is turned over when
/// nothing else is left to be taken.
#[derive(Debug)]
pub(crate) struct BufferPool {
    /// To be taken from the end.
    next: Vec<Box<Buffer>>,
    /// Those that came back after them, the latest at the end.
    back: Vec<Box<Buffer>>,
    depot: Arc<Depot>,
}

impl BufferPool {
    /// Shape: `capacity` of the buffers may be free at once.
    pub(crate) fn new(buffers: Vec<Box<Buffer>>, depot: Arc<Depot>, capacity: usize) -> Self {
        let mut back = Vec::with_capacity(capacity);
        back.extend(buffers);
        Self {
            next: Vec::with_capacity(capacity),
            back,
            depot,
        }
    }

    fn len(&self) -> usize {
        self.next.len() + self.back.len()
    }

    /// How many can be taken; the depot is asked where they are fewer than wanted.
    #[inline]
    pub(crate) fn ready(&mut self, wanted: usize) -> usize {
        if self.next.len() < wanted {
            if self.len() < wanted {
                self.fetch(wanted);
            }
            self.turn();
        }
        self.len()
    }

    #[cold]
    fn fetch(&mut self, wanted: usize) {
        let mut depot = self.depot.lock();
        let count = wanted.max(depot.len() / 2).min(depot.len());
        self.back.extend(depot.drain(..count));
        if self.len() < wanted {
            self.depot.is_short.store(true, Ordering::Relaxed);
        }
    }

    /// Makes all of them ready to be taken.
    #[inline(never)]
    fn turn(&mut self) {
        self.back.reverse();
        self.back.append(&mut self.next);
        std::mem::swap(&mut self.next, &mut self.back);
    }

    /// Where another worker runs short, leaves it half of what is free here; but not the last
    /// `keeps_min`.
    #[inline]
    pub(crate) fn share(&mut self, keeps_min: usize) {
        if self.depot.is_short.load(Ordering::Relaxed) {
            self.hand_over(keeps_min);
        }
    }

    #[cold]
    fn hand_over(&mut self, keeps_min: usize) {
        let count = (self.len() / 2).min(self.len().saturating_sub(keeps_min));
        if count > 0 {
            self.turn();
            let left = self.next.len() - count;
            let mut depot = self.depot.lock();
            depot.extend(self.next.drain(left..).rev());
            self.depot.is_short.store(false, Ordering::Relaxed);
        }
    }

    /// So many buffers, of which at least that many are [`ready`](Self::ready).
    #[inline]
    pub(crate) fn take_many(&mut self, count: usize) -> impl Iterator<Item = Box<Buffer>> {
        let left = self.next.len() - count;
        self.next.drain(left..).rev()
    }

    /// One buffer, from the depot where there is none.
    pub(crate) fn take(&mut self) -> Option<Box<Buffer>> {
        self.ready(1);
        self.next.pop()
    }

    #[inline]
    pub(crate) fn put(&mut self, buffer: Box<Buffer>) {
        self.back.push(buffer);
    }

    #[inline]
    pub(crate) fn put_many(&mut self, buffers: impl Iterator<Item = Box<Buffer>>) {
        self.back.extend(buffers);
    }

    pub(crate) fn into_buffers(self) -> impl Iterator<Item = Box<Buffer>> {
        self.next.into_iter().rev().chain(self.back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_moved_for_each_packet_is_two_words() {
        assert_eq!(size_of::<Packet>(), 16);
        assert_eq!(size_of::<Descriptor>(), 16);
        assert_eq!(size_of::<Option<Packet>>(), 16);
    }

    fn numbered(numbers: std::ops::Range<u8>) -> Vec<Box<Buffer>> {
        numbers
            .map(|number| {
                let mut buffer = Buffer::new();
                buffer.bytes_mut()[0] = number;
                buffer
            })
            .collect()
    }

    #[test]
    fn the_buffer_that_rested_longest_comes_first() {
        let mut pool = BufferPool::new(numbered(0..3), Arc::default(), 8);
        let first = pool.take().unwrap();
        pool.put(first);
        let order: Vec<_> = pool
            .into_buffers()
            .map(|buffer| buffer.bytes()[0])
            .collect();
        assert_eq!(order, [1, 2, 0]);
    }

    #[test]
    fn a_worker_that_runs_short_is_given_half_of_what_others_have() {
        let depot = Arc::new(Depot::default());
        let mut rich = BufferPool::new(numbered(0..9), Arc::clone(&depot), 16);
        let mut poor = BufferPool::new(Vec::new(), Arc::clone(&depot), 16);
        rich.share(2);
        assert_eq!(rich.ready(0), 9, "nobody is short");
        assert_eq!(poor.ready(2), 0);
        poor.share(2);
        rich.share(2);
        assert_eq!(rich.ready(0), 5);
        assert_eq!(poor.ready(2), 2);
        rich.share(2);
        assert_eq!(rich.ready(0), 5, "nobody is short any more");
        assert_eq!(poor.ready(9), 4);
        rich.share(4);
        assert_eq!(rich.ready(0), 4, "it keeps what it needs");
        assert_eq!(poor.ready(9), 5);
        assert!(depot.take_all().is_empty());
    }
}
