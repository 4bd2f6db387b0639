//! Work on more than one processor: two things at once, and the same on many items.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};

/// A batch of items that take microseconds each: so many that threads hardly meet.
pub(crate) const MANY: usize = 32;
/// A batch of items that take milliseconds each: so few that threads end together.
pub(crate) const FEW: usize = 1;

/// `of` of every item, in their order.
///
/// Shape: a thread takes `batch` items at a time, at least one: [`MANY`], [`FEW`].
pub(crate) fn parallel<T: Sync, R: Send>(
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
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut done = work();
        done.extend(others.into_iter().flat_map(joined));
        done
    });
    done.sort_by_key(|(start, _)| *start);
    done.into_iter().flat_map(|(_, batch)| batch).collect()
}

/// Two things, at the same time.
pub(crate) fn both<A, B: Send>(
    one: impl FnOnce() -> A,
    other: impl FnOnce() -> B + Send,
) -> (A, B) {
    thread::scope(|scope| {
        let other = scope.spawn(other);
        let one = one();
        (one, joined(other))
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
