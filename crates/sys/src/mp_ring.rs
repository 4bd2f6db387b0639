//! A ring that several threads fill and one at a time empties, after FreeBSD's `mp_ring`.

use std::mem::{self, MaybeUninit};
use std::ptr;

use crate::slots::{CacheLine, Slots};
use crate::sync::{AtomicU16, AtomicU64, Ordering, spin_loop, yield_now};

/// How many slots a drainer empties at most before it gives them back to the producers, in steps that
/// it is asked for; half the ring where that is less.
const RELEASE_ITEMS: u16 = 64;

/// How often a producer looks whether those before it have written their items, before it lets
/// another thread have the CPU: more likely than not it is waiting for one that has none.
const SPINS_MAX: u32 = 128;

/// A bounded queue that any number of threads fill, in front of something that one thread at a time
/// may use: a NIC's descriptors.
///
/// There is no thread that empties it. Whoever enqueues into a ring that nobody drains is given the
/// [`Drainer`] and has to go on until [`Drainer::finish`] lets it go; all others leave their items
/// and go. A producer that *abdicates* never drains and leaves that to a task, which calls
/// [`try_drain`](Self::try_drain).
///
/// One word holds where producers have reserved, where they have published, where the drainer is, and
/// whether there is one. A batch of any size takes three compare-exchanges in all: one to reserve its
/// slots, one to publish them and become drainer, one to give slots and role back. No item costs any.
/// A producer waits for those that reserved before it to write their items, and for nothing else.
///
/// Items leave in the order in which their slots were reserved, so those of one producer in its order.
///
/// # Source
/// FreeBSD's `sys/net/mp_ring.c`, the lockless variant. Unlike there, what fits of a batch is taken,
/// a producer writes its items before it waits for its turn, all slots can be used, and a drainer that
/// took all it knew of is told of what came meanwhile.
///
/// # Examples
/// ```
/// use fwdlab_sys::{Finished, MultiProducerRing};
///
/// let ring = MultiProducerRing::new(512);
/// let mut sent = Vec::new();
/// let mut batch = vec!["first", "second"];
/// let mut drainer = ring.enqueue(&mut batch, false).drainer;
/// while let Some(mut draining) = drainer.take() {
///     draining.take(64, |item| sent.push(item));
///     if let Finished::More(draining) = draining.finish() {
///         drainer = Some(draining);
///     }
/// }
/// assert_eq!(sent, ["first", "second"]);
/// ```
#[derive(Debug)]
pub struct MultiProducerRing<T: Send> {
    slots: Slots<MaybeUninit<T>>,
    capacity: u16,
    state: CacheLine<AtomicU64>,
    /// Where the drainer is, also while the others have not been told: what is before this number was
    /// moved out, whatever becomes of the drainer. Only a drainer writes it.
    taken: CacheLine<AtomicU16>,
}

/// What the ring's one word says. Numbers of slots go on and on; `consumer <= producer_tail <=
/// producer_head <= consumer + capacity`, counted round.
#[derive(Clone, Copy)]
struct State {
    /// The next slot to be reserved.
    producer_head: u16,
    /// The next slot to be published.
    producer_tail: u16,
    /// The first slot that is not free again.
    consumer: u16,
    role: Role,
}

/// Who drains, and why nobody does.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    /// Nobody; nothing is published.
    Idle = 0,
    /// Somebody does, or will go on.
    Busy = 1,
    /// Nobody; the last one had no room for what is left.
    Stalled = 2,
    /// Nobody; what is there was left to somebody else.
    Abdicated = 3,
}

impl State {
    #[inline]
    fn of(word: u64) -> Self {
        let [h, head, t, tail, c, consumer, role, _] = word.to_le_bytes();
        Self {
            producer_head: u16::from_le_bytes([h, head]),
            producer_tail: u16::from_le_bytes([t, tail]),
            consumer: u16::from_le_bytes([c, consumer]),
            role: match role & 3 {
                0 => Role::Idle,
                1 => Role::Busy,
                2 => Role::Stalled,
                _ => Role::Abdicated,
            },
        }
    }

    #[inline]
    fn word(self) -> u64 {
        u64::from(self.producer_head)
            | u64::from(self.producer_tail) << 16
            | u64::from(self.consumer) << 32
            | (self.role as u64) << 48
    }
}

/// What became of a batch.
#[derive(Debug)]
#[must_use = "whoever is made the drainer has to drain"]
pub struct Enqueued<'ring, T: Send> {
    /// Items that were taken from the front of the batch.
    pub accepted: usize,
    /// The role of the one who drains, where nobody else had it.
    pub drainer: Option<Drainer<'ring, T>>,
}

/// The right to take items out of a ring; there is one at a time.
///
/// Dropped without [`finish`](Self::finish), it *abdicates*: what is left waits for the next producer
/// that does not, or for [`MultiProducerRing::try_drain`].
#[derive(Debug)]
#[must_use = "whoever is made the drainer has to drain"]
pub struct Drainer<'ring, T: Send> {
    ring: &'ring MultiProducerRing<T>,
    /// The next slot to be taken.
    position: u16,
    /// As far as slots are known to be published.
    published: u16,
    /// As far as slots were given back to the producers.
    released: u16,
}

/// How far a drainer comes in one go, kept in the end, also when whoever is given an item panics.
struct Progress<'drainer, 'ring, T: Send> {
    position: u16,
    drainer: &'drainer mut Drainer<'ring, T>,
}

impl<T: Send> Drop for Progress<'_, '_, T> {
    #[inline]
    fn drop(&mut self) {
        self.drainer.position = self.position;
        let taken = &self.drainer.ring.taken.0;
        taken.store(self.position, Ordering::Relaxed);
    }
}

/// What a drainer left.
#[derive(Debug)]
#[must_use = "whoever is still the drainer has to go on"]
pub enum Finished<'ring, T: Send> {
    /// An empty ring: the next producer drains.
    Idle,
    /// Items that it knew of: the next producer that does not abdicate drains, or the task, which
    /// somebody should tell when there is room again.
    Stalled,
    /// Nothing, because somebody enqueued in the meantime: it is still the drainer.
    More(Drainer<'ring, T>),
}

/// Slots that a producer has for itself until it publishes them.
struct Reservation {
    start: u16,
    count: u16,
    /// The ring's word as the reservation left it.
    seen: u64,
}

impl<T: Send> MultiProducerRing<T> {
    /// An empty ring.
    ///
    /// Shape: `capacity` a power of two from 2 to 32768.
    ///
    /// # Panics
    /// When it is not.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self::starting_at(capacity, 0)
    }

    /// An empty ring whose first slot has this number.
    pub(crate) fn starting_at(capacity: usize, number: u16) -> Self {
        assert!(
            capacity.is_power_of_two() && (2..=32768).contains(&capacity),
            "the capacity of a ring is a power of two from 2 to 32768, not {capacity}"
        );
        let empty = State {
            producer_head: number,
            producer_tail: number,
            consumer: number,
            role: Role::Idle,
        };
        Self {
            slots: Slots::new((0..capacity).map(|_| MaybeUninit::uninit())),
            capacity: u16::try_from(capacity).unwrap_or(u16::MAX),
            state: CacheLine(AtomicU64::new(empty.word())),
            taken: CacheLine(AtomicU16::new(number)),
        }
    }

    /// How many items there is room for in all.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slots.length()
    }

    /// Items that wait, a moment ago; what a drainer is just taking may be counted still.
    #[must_use]
    pub fn len(&self) -> usize {
        let state = State::of(self.state.0.load(Ordering::Relaxed));
        usize::from(state.producer_tail.wrapping_sub(state.consumer))
    }

    /// Whether no items wait, a moment ago.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Moves what there is room for from the front of `items` into the ring; the rest stays there.
    ///
    /// The caller is made the drainer where there is none and something to drain, also when none of
    /// its items fit. With `abdicate` it never is, and has to see to it that a task drains.
    #[inline]
    pub fn enqueue(&self, items: &mut Vec<T>, abdicate: bool) -> Enqueued<'_, T> {
        let Some(reservation) = self.reserve(items.len()) else {
            return Enqueued {
                accepted: 0,
                drainer: if abdicate { None } else { self.try_drain() },
            };
        };
        self.fill(&reservation, items);
        Enqueued {
            accepted: usize::from(reservation.count),
            drainer: self.publish(&reservation, abdicate),
        }
    }

    /// Makes the caller the drainer where items wait and there is none.
    #[inline]
    pub fn try_drain(&self) -> Option<Drainer<'_, T>> {
        let mut seen = self.state.0.load(Ordering::Relaxed);
        loop {
            let state = State::of(seen);
            if matches!(state.role, Role::Idle | Role::Busy) {
                return None;
            }
            let next = State {
                role: Role::Busy,
                ..state
            };
            match self.exchange(seen, next, Ordering::Acquire) {
                Ok(()) => return Some(self.drainer(state.consumer, state.producer_tail)),
                Err(now) => seen = now,
            }
        }
    }

    /// Every change of the word is one of these. So each is ordered behind all earlier ones that
    /// released, whoever made those in between.
    #[inline]
    fn exchange(&self, seen: u64, next: State, success: Ordering) -> Result<(), u64> {
        self.state
            .0
            .compare_exchange_weak(seen, next.word(), success, Ordering::Relaxed)
            .map(drop)
    }

    /// Reserves as many slots as there are, up to `wanted`; none where there is none.
    #[inline]
    fn reserve(&self, wanted: usize) -> Option<Reservation> {
        let wanted = u16::try_from(wanted).unwrap_or(u16::MAX);
        let mut seen = self.state.0.load(Ordering::Relaxed);
        loop {
            let state = State::of(seen);
            let used = state.producer_head.wrapping_sub(state.consumer);
            let count = wanted.min(self.capacity - used);
            if count == 0 {
                return None;
            }
            let next = State {
                producer_head: state.producer_head.wrapping_add(count),
                ..state
            };
            // Acquires the slots that drainers released.
            match self.exchange(seen, next, Ordering::Acquire) {
                Ok(()) => {
                    return Some(Reservation {
                        start: state.producer_head,
                        count,
                        seen: next.word(),
                    });
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Moves the first items into the slots that are reserved for them.
    #[inline]
    fn fill(&self, reservation: &Reservation, items: &mut Vec<T>) {
        let start = usize::from(reservation.start);
        let count = usize::from(reservation.count);
        let first = self.slots.in_a_row(start, count);
        let first_run = self.slots.run(start, first);
        let second_run = self.slots.run(start + first, count - first);
        let rest = items.len() - count;
        let from = items.as_mut_ptr();
        // SAFETY: `from` is good for `items.len() >= count` items, and the runs for `first` and
        // `count - first` slots, which are another piece of memory. The slots are this thread's alone:
        // they were reserved for it, so that no other producer has them, a drainer does not take
        // them before they are published, and the one that emptied them did so before the
        // reservation, which acquired that. They hold no item. The items that are copied leave the
        // vector before anything else can happen: its length first excludes them all, then counts
        // those that were moved to its front.
        unsafe {
            items.set_len(0);
            ptr::copy_nonoverlapping(from, first_run.cast(), first);
            ptr::copy_nonoverlapping(from.add(first), second_run.cast(), count - first);
            if rest > 0 {
                ptr::copy(from.add(count), from, rest);
                items.set_len(rest);
            }
        }
        self.slots.touch(start, count);
    }

    /// Publishes reserved slots once all before them are; the role where nobody else has it.
    #[inline]
    fn publish(&self, reservation: &Reservation, abdicate: bool) -> Option<Drainer<'_, T>> {
        let mut seen = reservation.seen;
        let mut spins = 0;
        loop {
            let state = State::of(seen);
            if state.producer_tail != reservation.start {
                if spins < SPINS_MAX {
                    spins += 1;
                    spin_loop();
                } else {
                    yield_now();
                }
                seen = self.state.0.load(Ordering::Relaxed);
                continue;
            }
            let next = State {
                producer_tail: reservation.start.wrapping_add(reservation.count),
                role: match state.role {
                    _ if !abdicate => Role::Busy,
                    Role::Idle => Role::Abdicated,
                    role => role,
                },
                ..state
            };
            // Releases the items, and acquires those of others for the drainer.
            match self.exchange(seen, next, Ordering::AcqRel) {
                Ok(()) if abdicate || state.role == Role::Busy => return None,
                Ok(()) => return Some(self.drainer(state.consumer, next.producer_tail)),
                Err(now) => seen = now,
            }
        }
    }

    #[inline]
    fn drainer(&self, consumer: u16, published: u16) -> Drainer<'_, T> {
        Drainer {
            ring: self,
            position: consumer,
            published,
            released: consumer,
        }
    }
}

impl<'ring, T: Send> Drainer<'ring, T> {
    /// How many items wait.
    #[inline]
    #[must_use]
    pub fn waiting(&mut self) -> usize {
        self.look();
        usize::from(self.known())
    }

    /// Takes up to `max` items out, the oldest first, and says how many; 0 only where none wait.
    ///
    /// Of what was enqueued meanwhile it tells the next time. When `into` panics, the item that it
    /// was given counts as taken, and no other.
    #[inline]
    pub fn take(&mut self, max: usize, mut into: impl FnMut(T)) -> usize {
        if self.known() == 0 || self.has_enough_to_release() {
            self.look();
        }
        let count = max.min(usize::from(self.known()));
        let slots = &self.ring.slots;
        let mut progress = Progress {
            position: self.position,
            drainer: self,
        };
        let mut left = count;
        while left > 0 {
            let start = usize::from(progress.position);
            let length = slots.in_a_row(start, left);
            let run = slots.run(start, length);
            for offset in 0..length {
                // SAFETY: the slot is one of the run's. It was published, which this drainer acquired
                // when it learned of it, so it holds an item; producers leave it alone until it is
                // released; and the item is moved out once, because the position passes it before
                // anything can panic, and is kept whatever happens.
                let item = unsafe { run.add(offset).read().assume_init() };
                progress.position = progress.position.wrapping_add(1);
                into(item);
            }
            slots.touch(start, length);
            left -= length;
        }
        count
    }

    /// Gives the role up, unless items came that the caller was not yet told of.
    ///
    /// No item is forgotten: either the caller is told of it, or whoever enqueued it finds the role
    /// free.
    #[inline]
    pub fn finish(mut self) -> Finished<'ring, T> {
        let mut seen = self.ring.state.0.load(Ordering::Relaxed);
        loop {
            let state = State::of(seen);
            let role = if state.producer_tail == self.position {
                Role::Idle
            } else if self.known() > 0 {
                Role::Stalled
            } else {
                self.look();
                return Finished::More(self);
            };
            match self.leave(seen, role) {
                Ok(()) => {
                    // It has given the role up already.
                    mem::forget(self);
                    return match role {
                        Role::Idle => Finished::Idle,
                        _ => Finished::Stalled,
                    };
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Leaves the role, and all slots that were emptied.
    #[inline]
    fn leave(&self, seen: u64, role: Role) -> Result<(), u64> {
        let next = State {
            consumer: self.position,
            role,
            ..State::of(seen)
        };
        self.ring.exchange(seen, next, Ordering::Release)
    }

    /// Items that this drainer may take without looking.
    #[inline]
    fn known(&self) -> u16 {
        self.published.wrapping_sub(self.position)
    }

    #[inline]
    fn has_enough_to_release(&self) -> bool {
        self.position.wrapping_sub(self.released) >= RELEASE_ITEMS.min(self.ring.capacity / 2)
    }

    /// Learns what was published, and releases slots where there are enough for it to be worth while.
    #[inline]
    fn look(&mut self) {
        let mut seen = self.ring.state.0.load(Ordering::Acquire);
        if self.has_enough_to_release() {
            // Releases the slots, and acquires the items.
            while let Err(now) = self.ring.exchange(
                seen,
                State {
                    consumer: self.position,
                    ..State::of(seen)
                },
                Ordering::AcqRel,
            ) {
                seen = now;
            }
            self.released = self.position;
        }
        self.published = State::of(seen).producer_tail;
    }
}

impl<T: Send> Drop for Drainer<'_, T> {
    fn drop(&mut self) {
        let mut seen = self.ring.state.0.load(Ordering::Relaxed);
        loop {
            let role = if State::of(seen).producer_tail == self.position {
                Role::Idle
            } else {
                Role::Abdicated
            };
            match self.leave(seen, role) {
                Ok(()) => return,
                Err(now) => seen = now,
            }
        }
    }
}

impl<T: Send> Drop for MultiProducerRing<T> {
    fn drop(&mut self) {
        // No producer is under way, so all that was reserved is published. A drainer may have been
        // forgotten; `taken` says how far it came.
        let published = State::of(self.state.0.load(Ordering::Relaxed)).producer_tail;
        let mut position = self.taken.0.load(Ordering::Relaxed);
        while position != published {
            let item: *mut MaybeUninit<T> = self.slots.run(usize::from(position), 1);
            position = position.wrapping_add(1);
            // SAFETY: the ring is nobody else's any more, and what was published and not taken is an
            // item. Each is dropped once, because the position passes it first.
            unsafe { (*item).assume_init_drop() };
        }
    }
}
