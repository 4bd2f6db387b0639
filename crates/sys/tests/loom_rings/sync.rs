//! loom's counterpart of the crate's own `sync`.

use std::cell::Cell;

use loom::cell::UnsafeCell;
use loom::sync::atomic;

pub(crate) use loom::hint::spin_loop;
pub(crate) use loom::sync::atomic::{AtomicU16, AtomicU32, Ordering};
pub(crate) use loom::thread::yield_now;

thread_local! {
    /// What a model reads from an [`AtomicU64`]; loom runs all its threads in one.
    pub(crate) static LOADS: Cell<Loads> = const { Cell::new(Loads::MayBeStale) };
}

/// loom remembers one access to an atomic only, the last: where a thread loads, then another loads and
/// exchanges, it does not see that the first load might have come after the exchange. So each model is
/// explored twice.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Loads {
    /// A load gets any value that its memory ordering allows, but not in every order of events.
    MayBeStale,
    /// A load gets the newest value, in every order: it is an exchange that changes nothing.
    AreNewest,
}

/// loom's, whose loads are as [`LOADS`] says.
#[derive(Debug)]
pub(crate) struct AtomicU64(atomic::AtomicU64);

impl AtomicU64 {
    pub(crate) fn new(value: u64) -> Self {
        Self(atomic::AtomicU64::new(value))
    }

    pub(crate) fn load(&self, order: Ordering) -> u64 {
        match LOADS.get() {
            Loads::MayBeStale => self.0.load(order),
            Loads::AreNewest => self.0.fetch_add(0, order),
        }
    }

    pub(crate) fn compare_exchange_weak(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.0.compare_exchange_weak(current, new, success, failure)
    }
}

/// A cell for every slot, by which loom finds a use that is not ordered behind the last one.
#[derive(Debug)]
pub(crate) struct Watch(Box<[UnsafeCell<()>]>);

impl Watch {
    pub(crate) const WATCHES: bool = true;

    pub(crate) fn new(slots: usize) -> Self {
        Self((0..slots).map(|_| UnsafeCell::new(())).collect())
    }

    pub(crate) fn touch(&self, slot: usize) {
        self.0[slot].with_mut(|_| ());
    }
}
