//! Work on more than one processor: two things at once, and the same on many items.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};

use crate::thread::start_thread_in;

/// A batch of items that take microseconds each: so many that threads hardly meet.
pub const MANY: usize = 32;
/// A batch of items that take milliseconds each: so few that threads end together.
pub const FEW: usize = 1;

/// `of` of every item, in their order.
///
/// Shape: a thread takes `batch` items at a time, at least one: [`MANY`], [`FEW`].
pub fn parallel<T: Sync, R: Send>(
    items: &[T],
    batch: usize,
    of: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let start = next.fetch_add(batch, Ordering::Relaxed);
            if start >= items.len() {
                break;
            }
            let taken = &items[start..items.len().min(start + batch)];
            done.push((start, taken.iter().map(&of).collect::<Vec<R>>()));
        }
        done
    };
    let mut done: Vec<(usize, Vec<R>)> = thread::scope(|scope| {
        // Fewer threads take longer, and that is all.
        let others: Vec<_> = (1..threads)
            .map_while(|_| start_thread_in(scope, work).ok())
            .collect();
        let mut done = work();
        done.extend(others.into_iter().flat_map(joined));
        done
    });
    done.sort_by_key(|(start, _)| *start);
    done.into_iter().flat_map(|(_, batch)| batch).collect()
}

/// Two things, at the same time where there is a thread to be had.
pub fn both<A, B: Send>(one: impl FnOnce() -> A, other: impl FnOnce() -> B + Send) -> (A, B) {
    // Whoever comes first takes it: the thread, or this one where there is none.
    let waiting = Mutex::new(Some(other));
    let take = || {
        waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    };
    thread::scope(|scope| {
        let thread = start_thread_in(scope, || take().map(|other| other()));
        let one = one();
        let other = thread.ok().and_then(joined);
        (
            one,
            other.unwrap_or_else(|| take().expect("no thread took it")()),
        )
    })
}

fn joined<R>(thread: ScopedJoinHandle<'_, R>) -> R {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_once_and_in_order() {
        for count in [0, 1, 31, 32, 33, 1000] {
            let items: Vec<usize> = (0..count).collect();
            for batch in [FEW, MANY] {
                let doubled: Vec<usize> = items.iter().map(|item| item * 2).collect();
                assert_eq!(parallel(&items, batch, |item| item * 2), doubled);
            }
        }
    }
}
