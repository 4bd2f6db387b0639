//! The descriptor ring: one thread against plain queues, both ends in threads of their own, and
//! what a caller must not do.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;

use fwdlab_sys::descriptor_ring;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Post { max: usize },
    Doorbell,
    Available,
    Complete { max: usize },
    WriteBack,
    Completed,
    Reclaim { max: usize },
}

fn operation() -> impl Strategy<Value = Operation> {
    let max = || 0..12_usize;
    prop_oneof![
        max().prop_map(|max| Operation::Post { max }),
        Just(Operation::Doorbell),
        Just(Operation::Available),
        max().prop_map(|max| Operation::Complete { max }),
        Just(Operation::WriteBack),
        Just(Operation::Completed),
        max().prop_map(|max| Operation::Reclaim { max }),
    ]
}

proptest! {
    /// Each queue holds what has come so far and no further.
    #[test]
    fn descriptors_pass_every_station_in_order(
        size in (0..5_u32).prop_map(|power| 1_usize << power),
        operations in prop::collection::vec(operation(), 1..400),
    ) {
        let (mut driver, mut device) = descriptor_ring(vec![0_u64; size]);
        prop_assert_eq!((driver.size(), device.size()), (size, size));
        let mut next = 1;
        let mut pending = VecDeque::new();
        let mut told = VecDeque::new();
        let mut at_device = VecDeque::new();
        let mut completed = VecDeque::new();
        let mut written_back = VecDeque::new();
        let mut done = VecDeque::new();
        for operation in operations {
            match operation {
                Operation::Post { max } => {
                    let free = driver.free(max);
                    prop_assert!(free.len() <= max);
                    let count = free.len();
                    for descriptor in free {
                        *descriptor = next;
                        pending.push_back(next);
                        next += 1;
                    }
                    driver.post(count);
                    let all_posted = driver.outstanding() == size;
                    prop_assert!(count > 0 || max == 0 || all_posted);
                }
                Operation::Doorbell => {
                    driver.doorbell();
                    told.append(&mut pending);
                }
                Operation::Available => {
                    // It looks for more only where it has none.
                    if at_device.is_empty() {
                        at_device.append(&mut told);
                    }
                    prop_assert_eq!(device.available(), at_device.len());
                }
                Operation::Complete { max } => {
                    let run = device.run(max);
                    let count = run.len();
                    prop_assert!(count <= max.min(at_device.len()));
                    prop_assert!(count > 0 || max == 0 || at_device.is_empty());
                    for descriptor in run {
                        prop_assert_eq!(Some(*descriptor), at_device.pop_front());
                        *descriptor *= 10;
                        completed.push_back(*descriptor);
                    }
                    device.complete(count);
                }
                Operation::WriteBack => {
                    prop_assert_eq!(device.pending(), completed.len());
                    device.write_back();
                    prop_assert_eq!(device.pending(), 0);
                    written_back.append(&mut completed);
                }
                Operation::Completed => {
                    done.append(&mut written_back);
                    prop_assert_eq!(driver.completed(), done.len());
                }
                Operation::Reclaim { max } => {
                    let run = driver.done(max);
                    let count = run.len();
                    prop_assert!(count <= max.min(done.len()));
                    prop_assert!(count > 0 || max == 0 || done.is_empty());
                    for descriptor in run {
                        prop_assert_eq!(Some(*descriptor), done.pop_front());
                        *descriptor = 0;
                    }
                    driver.reclaim(count);
                }
            }
            let outstanding = [&pending, &told, &at_device, &completed, &written_back, &done];
            prop_assert_eq!(driver.pending(), pending.len());
            prop_assert_eq!(
                driver.outstanding(),
                outstanding.iter().map(|station| station.len()).sum::<usize>()
            );
        }
        let mut left: Vec<_> = driver.into_descriptors(device);
        left.retain(|&value| value != 0);
        left.sort_unstable();
        let mut expected: Vec<_> =
            [pending, told, at_device, completed, written_back, done].into_iter().flatten().collect();
        expected.sort_unstable();
        prop_assert_eq!(left, expected);
    }
}

#[test]
fn runs_end_where_the_ring_does() {
    let (mut driver, mut device) = descriptor_ring(vec![0; 8]);
    driver.post(5);
    driver.doorbell();
    assert_eq!(device.available(), 5);
    device.complete(5);
    device.write_back();
    assert_eq!(driver.completed(), 5);
    driver.reclaim(5);
    assert_eq!(driver.free(8).len(), 3);
    // More than lie in a row may be posted at once.
    driver.post(8);
    assert_eq!(driver.free(8).len(), 0);
    driver.doorbell();
    assert_eq!(device.available(), 8);
    assert_eq!(device.run(8).len(), 3);
    device.complete(8);
    device.write_back();
    assert_eq!(driver.completed(), 8);
    assert_eq!(driver.done(8).len(), 3);
    driver.reclaim(3);
    assert_eq!(driver.done(8).len(), 5);
    assert_eq!(driver.done(4).len(), 4);
}

#[test]
#[should_panic(expected = "5 descriptors to post, but there are 4")]
fn no_more_are_posted_than_are_free() {
    let (mut driver, _device) = descriptor_ring(vec![0; 4]);
    driver.post(5);
}

#[test]
#[should_panic(expected = "1 descriptors to reclaim, but there are 0")]
fn none_are_reclaimed_before_they_are_done() {
    let (mut driver, mut device) = descriptor_ring(vec![0; 4]);
    driver.post(1);
    driver.doorbell();
    let posted = device.available();
    device.complete(posted);
    device.write_back();
    driver.reclaim(1);
}

#[test]
#[should_panic(expected = "2 descriptors to complete, but there are 1")]
fn none_are_completed_before_the_doorbell() {
    let (mut driver, mut device) = descriptor_ring(vec![0; 4]);
    driver.post(1);
    driver.doorbell();
    driver.post(1);
    assert_eq!(device.available(), 1);
    device.complete(2);
}

#[test]
#[should_panic(expected = "a power of two up to 2^31, not 6")]
fn other_than_powers_of_two_are_refused() {
    let _ = descriptor_ring(vec![0; 6]);
}

#[test]
#[should_panic(expected = "a power of two up to 2^31, not 0")]
fn a_ring_has_descriptors() {
    let _ = descriptor_ring(Vec::<u64>::new());
}

#[test]
#[should_panic(expected = "the two ends are of one ring")]
fn ends_of_two_rings_are_not_put_together() {
    let (driver, _device) = descriptor_ring(vec![0; 4]);
    let (_driver, device) = descriptor_ring(vec![0; 4]);
    let _ = driver.into_descriptors(device);
}

#[test]
fn every_descriptor_is_dropped_once() {
    let value = Arc::new(());
    let ring = || descriptor_ring(vec![Some(Arc::clone(&value)); 4]);
    let (driver, device) = ring();
    assert_eq!(Arc::strong_count(&value), 5);
    drop(driver);
    assert_eq!(Arc::strong_count(&value), 5, "the device has them still");
    drop(device);
    assert_eq!(Arc::strong_count(&value), 1);
    let (mut driver, device) = ring();
    driver.free(1)[0] = None;
    let descriptors = driver.into_descriptors(device);
    assert_eq!(descriptors.iter().flatten().count(), 3);
    drop(descriptors);
    assert_eq!(Arc::strong_count(&value), 1);
}

/// Boxes go to the device and back, in order, and none is lost or seen by both.
#[test]
fn buffers_survive_two_threads() {
    const BUFFERS: u64 = 1_000_000;
    let (mut driver, mut device) = descriptor_ring(vec![None::<Box<u64>>; 64]);
    let device = thread::spawn(move || {
        let mut number = 0;
        while number < BUFFERS {
            if device.available() == 0 {
                thread::yield_now();
            }
            // In batches of different sizes, on either side.
            let run = device.run(1 + usize::try_from(number % 23).unwrap());
            let count = run.len();
            for descriptor in run {
                let buffer = descriptor.as_mut().unwrap();
                assert_eq!(**buffer, number);
                **buffer += BUFFERS;
                number += 1;
            }
            device.complete(count);
            if !number.is_multiple_of(3) || number == BUFFERS || count == 0 {
                device.write_back();
            }
        }
        device
    });
    let mut posted = 0;
    let mut reclaimed = 0;
    while reclaimed < BUFFERS {
        let free = driver.free(1 + usize::try_from(posted % 31).unwrap());
        let mut count = 0;
        for (descriptor, number) in free.iter_mut().zip(posted..BUFFERS) {
            assert!(descriptor.replace(Box::new(number)).is_none());
            count += 1;
        }
        posted += count as u64;
        driver.post(count);
        driver.doorbell();
        if driver.completed() == 0 {
            thread::yield_now();
        }
        let done = driver.done(usize::MAX);
        let count = done.len();
        for descriptor in done {
            assert_eq!(descriptor.take(), Some(Box::new(BUFFERS + reclaimed)));
            reclaimed += 1;
        }
        driver.reclaim(count);
    }
    let device = device.join().unwrap();
    let descriptors = driver.into_descriptors(device);
    assert!(descriptors.iter().all(Option::is_none));
}
