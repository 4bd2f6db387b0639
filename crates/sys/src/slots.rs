//! What both rings are made of: places that are handed from thread to thread.

use std::cell::UnsafeCell;
use std::fmt::{self, Debug};

use crate::sync::Watch;

/// A value with a cache line of its own, and the next one, which Intel's prefetcher fetches along.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct CacheLine<T>(pub(crate) T);

/// Slots that are numbered on and on, and round and round: `number` is the slot `number % length`.
///
/// It lends nothing but pointers. Who may use which slot at which time is the rings' affair.
pub(crate) struct Slots<T> {
    places: Box<[UnsafeCell<T>]>,
    watch: Watch,
}

// SAFETY: threads get nothing but pointers to the values; whoever follows one has to show that the
// slot is its own at that time. With `T: Send`, the value may then be used and moved there.
unsafe impl<T: Send> Sync for Slots<T> {}

impl<T> Slots<T> {
    /// Shape: a power of two of values.
    pub(crate) fn new(values: impl IntoIterator<Item = T>) -> Self {
        let places: Box<[_]> = values.into_iter().map(UnsafeCell::new).collect();
        debug_assert!(places.len().is_power_of_two(), "a power of two of slots");
        Self {
            watch: Watch::new(places.len()),
            places,
        }
    }

    #[inline]
    pub(crate) fn length(&self) -> usize {
        self.places.len()
    }

    #[inline]
    fn place(&self, number: usize) -> usize {
        // The length is a power of two.
        number & (self.places.len() - 1)
    }

    /// How many of `count` slots from a number on lie in a row, before the ring's end.
    #[inline]
    pub(crate) fn in_a_row(&self, number: usize, count: usize) -> usize {
        count.min(self.places.len() - self.place(number))
    }

    /// Where `count` slots begin that lie in a row.
    ///
    /// The pointer is good for these slots and, following it being another matter, always valid.
    ///
    /// # Panics
    /// When the ring ends before.
    #[inline]
    pub(crate) fn run(&self, number: usize, count: usize) -> *mut T {
        self.touch(number, count);
        let run = &self.places[self.place(number)..][..count];
        UnsafeCell::raw_get(run.as_ptr())
    }

    /// Tells a model checker that the caller uses slots: before it does, and before it passes them on.
    #[inline]
    pub(crate) fn touch(&self, number: usize, count: usize) {
        if Watch::WATCHES {
            for offset in 0..count {
                self.watch.touch(self.place(number.wrapping_add(offset)));
            }
        }
    }

    pub(crate) fn into_values(self) -> Vec<T> {
        let places = self.places.into_vec();
        places.into_iter().map(UnsafeCell::into_inner).collect()
    }
}

impl<T> Debug for Slots<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Their values may be changing at this moment.
        write!(f, "[{} slots]", self.length())
    }
}
