//! The multi-producer ring: one thread against a plain queue, and many threads at once.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::collections::VecDeque;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use fwdlab_sys::{Drainer, Finished, MultiProducerRing};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Enqueue { count: usize, abdicate: bool },
    TryDrain,
    Take { max: usize },
    Waiting,
    Finish,
    DropDrainer,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => (0..40_usize, any::<bool>())
            .prop_map(|(count, abdicate)| Operation::Enqueue { count, abdicate }),
        1 => Just(Operation::TryDrain),
        4 => (0..40_usize).prop_map(|max| Operation::Take { max }),
        1 => Just(Operation::Waiting),
        2 => Just(Operation::Finish),
        1 => Just(Operation::DropDrainer),
    ]
}

/// Lets numbers pass through a ring, so that it is anywhere in the numbering of its slots.
fn turn(ring: &MultiProducerRing<u64>, items: usize) {
    for _ in 0..items {
        let mut drainer = ring.enqueue(&mut vec![0], false).drainer.unwrap();
        assert_eq!(drainer.take(1, drop), 1);
        assert!(matches!(drainer.finish(), Finished::Idle));
    }
}

proptest! {
    #[test]
    fn one_thread_sees_a_queue(
        capacity in (1..8_u32).prop_map(|power| 1_usize << power),
        turned in prop_oneof![0..3_usize, 65_400..65_600_usize],
        operations in prop::collection::vec(operation(), 1..200),
    ) {
        let ring = MultiProducerRing::new(capacity);
        turn(&ring, turned);
        let mut queue = VecDeque::new();
        let mut next = 0_u64;
        let mut drainer: Option<Drainer<'_, u64>> = None;
        // Taken out, and perhaps not yet given back to the producers: at most so many.
        let mut held = 0;
        for operation in operations {
            match (operation, drainer.take()) {
                (Operation::Enqueue { count, abdicate }, current) => {
                    let mut batch: Vec<u64> = (next..).take(count).collect();
                    let enqueued = ring.enqueue(&mut batch, abdicate);
                    let room = capacity - queue.len();
                    prop_assert!(enqueued.accepted <= count.min(room));
                    prop_assert!(enqueued.accepted >= count.min(room.saturating_sub(held)));
                    prop_assert!(batch.iter().copied().eq((next..).take(count).skip(enqueued.accepted)));
                    queue.extend((next..).take(enqueued.accepted));
                    next += enqueued.accepted as u64;
                    let is_drainer = current.is_none() && !abdicate && !queue.is_empty();
                    prop_assert_eq!(enqueued.drainer.is_some(), is_drainer);
                    drainer = current.or(enqueued.drainer);
                }
                (Operation::TryDrain, current) => {
                    let found = ring.try_drain();
                    prop_assert_eq!(found.is_some(), current.is_none() && !queue.is_empty());
                    drainer = current.or(found);
                }
                (Operation::Take { max }, Some(mut draining)) => {
                    let mut taken = Vec::new();
                    let count = draining.take(max, |item| taken.push(item));
                    prop_assert_eq!(count, taken.len());
                    prop_assert!(count <= max.min(queue.len()));
                    prop_assert!(count > 0 || max == 0 || queue.is_empty());
                    prop_assert!(taken.into_iter().eq(queue.drain(..count)));
                    held += count;
                    drainer = Some(draining);
                }
                (Operation::Waiting, Some(mut draining)) => {
                    prop_assert_eq!(draining.waiting(), queue.len());
                    drainer = Some(draining);
                }
                (Operation::Finish, Some(draining)) => {
                    match draining.finish() {
                        Finished::Idle => prop_assert!(queue.is_empty()),
                        Finished::Stalled => prop_assert!(!queue.is_empty()),
                        Finished::More(draining) => {
                            prop_assert!(!queue.is_empty());
                            // Told of them, it may leave them.
                            prop_assert!(matches!(draining.finish(), Finished::Stalled));
                        }
                    }
                    held = 0;
                }
                (Operation::DropDrainer, current) => {
                    drop(current);
                    held = 0;
                }
                (_, None) => {}
            }
            if drainer.is_none() {
                held = 0;
                prop_assert_eq!(ring.len(), queue.len());
                prop_assert_eq!(ring.is_empty(), queue.is_empty());
            }
        }
    }
}

#[test]
fn a_full_ring_takes_what_fits() {
    for capacity in [2, 64, 32768] {
        let ring = MultiProducerRing::new(capacity);
        assert_eq!(ring.capacity(), capacity);
        let mut batch: Vec<usize> = (0..capacity + 3).collect();
        assert_eq!(ring.enqueue(&mut batch, true).accepted, capacity);
        assert_eq!(batch, [capacity, capacity + 1, capacity + 2]);
        assert_eq!(ring.len(), capacity);
        // No room, but nobody drains: the one who does not abdicate has to.
        assert!(ring.enqueue(&mut batch, true).drainer.is_none());
        let enqueued = ring.enqueue(&mut batch, false);
        assert_eq!(enqueued.accepted, 0);
        let mut taken = Vec::new();
        let mut drainer = enqueued.drainer.unwrap();
        assert_eq!(drainer.take(usize::MAX, |item| taken.push(item)), capacity);
        assert!(taken.into_iter().eq(0..capacity));
        assert_eq!(drainer.take(usize::MAX, drop), 0);
        assert!(matches!(drainer.finish(), Finished::Idle));
        assert_eq!(ring.enqueue(&mut batch, true).accepted, 3.min(capacity));
    }
}

#[test]
fn more_than_two_turns_of_the_numbers_fit_through() {
    let ring = MultiProducerRing::new(32768);
    let mut next = 0_u64;
    for _ in 0..6 {
        let mut batch: Vec<u64> = (next..).take(30_000).collect();
        let mut drainer = ring.enqueue(&mut batch, false).drainer.unwrap();
        assert!(batch.is_empty());
        let mut expected = next..;
        drainer.take(30_000, |item| assert_eq!(Some(item), expected.next()));
        assert!(matches!(drainer.finish(), Finished::Idle));
        next += 30_000;
    }
}

#[test]
fn slots_come_back_while_a_drainer_goes_on() {
    let ring = MultiProducerRing::new(256);
    let mut drainer = ring.enqueue(&mut vec![0; 256], false).drainer.unwrap();
    assert_eq!(drainer.take(64, drop), 64);
    // It gives them back when it looks again.
    assert_eq!(drainer.take(1, drop), 1);
    assert_eq!(ring.enqueue(&mut vec![1; 256], false).accepted, 64);
    assert_eq!(drainer.waiting(), 255);
}

#[test]
#[should_panic(expected = "a power of two from 2 to 32768, not 65536")]
fn too_many_slots_are_refused() {
    let _ = MultiProducerRing::<u64>::new(65536);
}

#[test]
#[should_panic(expected = "a power of two from 2 to 32768, not 48")]
fn other_than_powers_of_two_are_refused() {
    let _ = MultiProducerRing::<u64>::new(48);
}

#[test]
fn items_without_size_are_counted() {
    let ring = MultiProducerRing::new(4);
    let mut drainer = ring.enqueue(&mut vec![(); 6], false).drainer.unwrap();
    assert_eq!(drainer.take(9, drop), 4);
}

#[test]
fn every_item_is_dropped_once() {
    let item = Arc::new(());
    let items = |count| vec![Arc::clone(&item); count];
    let ring = MultiProducerRing::new(4);
    for _ in 0..3 {
        let mut batch = items(6);
        let mut drainer = ring.enqueue(&mut batch, false).drainer.unwrap();
        assert_eq!(batch.len(), 2);
        assert_eq!(Arc::strong_count(&item), 7);
        drainer.take(3, drop);
        assert_eq!(Arc::strong_count(&item), 4);
        drop((drainer, batch));
        assert_eq!(Arc::strong_count(&item), 2);
        ring.try_drain().unwrap().take(1, drop);
        assert_eq!(Arc::strong_count(&item), 1);
    }
    // Round the ring's end.
    assert!(ring.enqueue(&mut items(4), true).drainer.is_none());
    assert_eq!(Arc::strong_count(&item), 5);
    drop(ring);
    assert_eq!(Arc::strong_count(&item), 1);
}

#[test]
fn a_forgotten_drainer_doubles_nothing() {
    let item = Arc::new(());
    let ring = MultiProducerRing::new(8);
    let mut drainer = ring
        .enqueue(&mut vec![Arc::clone(&item); 5], false)
        .drainer
        .unwrap();
    drainer.take(2, drop);
    mem::forget(drainer);
    assert_eq!(Arc::strong_count(&item), 4);
    assert!(ring.try_drain().is_none(), "its role is never given back");
    drop(ring);
    assert_eq!(Arc::strong_count(&item), 1);
}

#[test]
fn a_panic_in_the_middle_loses_one_item() {
    let item = Arc::new(());
    let ring = MultiProducerRing::new(8);
    let mut batch: Vec<_> = (0..6).map(|number| (number, Arc::clone(&item))).collect();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let mut drainer = ring.enqueue(&mut batch, false).drainer.unwrap();
        drainer.take(6, |(number, _)| assert!(number < 2, "the third"));
    }));
    assert!(panicked.is_err());
    assert_eq!(Arc::strong_count(&item), 4);
    let mut rest = Vec::new();
    let mut drainer = ring.try_drain().unwrap();
    drainer.take(6, |(number, _)| rest.push(number));
    assert!(matches!(drainer.finish(), Finished::Idle));
    assert_eq!(rest, [3, 4, 5]);
    assert_eq!(Arc::strong_count(&item), 1);
}

/// Items of each producer in a stress test.
const ITEMS: u64 = 500_000;
const PRODUCERS: usize = 2;

/// What is behind the ring: only one may use it at a time, and it may be short of room.
struct Device {
    next: [u64; PRODUCERS],
    uses: u32,
}

/// Drains until it may stop; every eighth time the device has room for a few items only.
fn drain(drainer: Option<Drainer<'_, Box<(usize, u64)>>>, device: &Mutex<Device>) {
    let mut drainer = drainer;
    while let Some(mut draining) = drainer.take() {
        let mut device = device.try_lock().expect("there is one drainer");
        device.uses += 1;
        let mut room = if device.uses.is_multiple_of(8) {
            5
        } else {
            1000
        };
        while room > 0 {
            let taken = draining.take(room.min(32), |item| {
                let (producer, number) = *item;
                let next = &mut device.next[producer];
                assert_eq!(number, *next, "of producer {producer}");
                *next += 1;
            });
            if taken == 0 {
                break;
            }
            room -= taken;
        }
        drop(device);
        if let Finished::More(draining) = draining.finish() {
            drainer = Some(draining);
        }
    }
}

fn produce(
    producer: usize,
    ring: &MultiProducerRing<Box<(usize, u64)>>,
    device: &Mutex<Device>,
    abdicate: bool,
) {
    let mut batch = Vec::new();
    let mut next = 0;
    while next < ITEMS || !batch.is_empty() {
        // Of any size, up to 64.
        let size = 1 + (next * 7 + producer as u64) % 64;
        while next < ITEMS && (batch.len() as u64) < size {
            batch.push(Box::new((producer, next)));
            next += 1;
        }
        let enqueued = ring.enqueue(&mut batch, abdicate);
        drain(enqueued.drainer, device);
        if enqueued.accepted == 0 {
            thread::yield_now();
        }
    }
}

/// Every item arrives once and in its producer's order, whoever drains.
fn stress(abdicate: [bool; PRODUCERS], has_task: bool) {
    let ring = MultiProducerRing::new(256);
    let device = Mutex::new(Device {
        next: [0; PRODUCERS],
        uses: 0,
    });
    let all_enqueued = AtomicBool::new(false);
    thread::scope(|scope| {
        let producers: Vec<_> = (0..)
            .zip(abdicate)
            .map(|(producer, abdicate)| {
                let (ring, device) = (&ring, &device);
                scope.spawn(move || produce(producer, ring, device, abdicate))
            })
            .collect();
        if has_task {
            scope.spawn(|| {
                while !all_enqueued.load(Ordering::Relaxed) {
                    match ring.try_drain() {
                        None => thread::yield_now(),
                        drainer => drain(drainer, &device),
                    }
                }
            });
        }
        for producer in producers {
            producer.join().unwrap();
        }
        all_enqueued.store(true, Ordering::Relaxed);
    });
    // What a stall left.
    while let Some(drainer) = ring.try_drain() {
        drain(Some(drainer), &device);
    }
    assert!(ring.is_empty());
    assert_eq!(device.into_inner().unwrap().next, [ITEMS; PRODUCERS]);
}

#[test]
fn producers_that_drain_lose_no_frame() {
    stress([false, false], false);
}

#[test]
fn producers_that_abdicate_lose_no_frame() {
    stress([true, true], true);
}

#[test]
fn producers_of_both_kinds_lose_no_frame() {
    stress([false, true], true);
}
