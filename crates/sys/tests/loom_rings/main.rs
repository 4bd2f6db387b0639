//! The rings under every order of events that their memory orderings allow, up to a number of
//! preemptions: loom runs a model once for each.
#![allow(clippy::unwrap_used, reason = "these are tests")]

// The rings themselves, with loom's atomics under them.
#[path = "../../src/descriptor_ring.rs"]
pub mod descriptor_ring;
#[path = "../../src/mp_ring.rs"]
pub mod mp_ring;
#[path = "../../src/slots.rs"]
mod slots;
mod sync;

mod descriptors;
mod producers;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sync::{LOADS, Loads};

/// Preemptions without a bound.
const ANY: Option<usize> = None;

/// Explores a model in both ways that [`Loads`] tells of; `preemptions` bounds how often a thread loses
/// the CPU where it need not, in the one and in the other.
fn explore(preemptions: [Option<usize>; 2], model: impl Fn() + Send + Sync + 'static) {
    let model = Arc::new(model);
    for (loads, bound) in [Loads::MayBeStale, Loads::AreNewest]
        .into_iter()
        .zip(preemptions)
    {
        LOADS.set(loads);
        let model = Arc::clone(&model);
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = bound;
        builder.check(move || model());
    }
}

/// Something that has to happen in one of the executions at least.
struct Seen(AtomicUsize);

impl Seen {
    const fn never() -> Self {
        Self(AtomicUsize::new(0))
    }

    fn once_more(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn at_all(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}
