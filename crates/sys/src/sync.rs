//! What the rings are built on. `tests/loom_rings` compiles the rings again with loom's in place of
//! this, so that what is model-checked is the very code that ships.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
pub(crate) use std::thread::yield_now;

/// Whom a model checker has told when slots are used; here nobody looks.
#[derive(Debug)]
pub(crate) struct Watch;

impl Watch {
    /// Whether anybody looks.
    pub(crate) const WATCHES: bool = false;

    #[inline]
    pub(crate) fn new(_slots: usize) -> Self {
        Self
    }

    #[inline]
    pub(crate) fn touch(&self, _slot: usize) {}
}
