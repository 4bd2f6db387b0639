use loom::thread;

use crate::descriptor_ring::{DeviceRing, DriverRing, starting_at};
use crate::{ANY, Seen, explore};

/// Just before the numbers of descriptors wrap.
const START: u32 = u32::MAX;

type Descriptor = Option<Box<u32>>;

// Each in two runs, because the ring ends between its two descriptors.

/// Fills and posts what is free, of the values that are left.
fn post(driver: &mut DriverRing<Descriptor>, values: &mut impl Iterator<Item = u32>) {
    for _ in 0..2 {
        let mut posted = 0;
        for descriptor in driver.free(usize::MAX) {
            let Some(value) = values.next() else { break };
            assert!(descriptor.replace(Box::new(value)).is_none());
            posted += 1;
        }
        driver.post(posted);
    }
}

/// Takes back what the device completed.
fn reclaim(driver: &mut DriverRing<Descriptor>, into: &mut Vec<u32>) {
    let completed = driver.completed();
    for _ in 0..2 {
        let done = driver.done(completed);
        let count = done.len();
        into.extend(
            done.iter_mut()
                .map(|descriptor| *descriptor.take().unwrap()),
        );
        driver.reclaim(count);
    }
}

/// Completes what is there, ten times as large.
fn complete(device: &mut DeviceRing<Descriptor>) {
    let available = device.available();
    for _ in 0..2 {
        let run = device.run(available);
        let count = run.len();
        for descriptor in run {
            **descriptor.as_mut().unwrap() *= 10;
        }
        device.complete(count);
    }
}

#[test]
fn descriptors_go_to_the_device_and_back() {
    static FULL: Seen = Seen::never();
    static BACK_AT_ONCE: Seen = Seen::never();
    explore([ANY, ANY], || {
        let (mut driver, mut device) = starting_at(vec![None, None], START);
        let device = thread::spawn(move || {
            for _ in 0..3 {
                complete(&mut device);
                device.write_back();
            }
            device
        });
        let mut values = 1..=4;
        let mut returned = Vec::new();
        for _ in 0..2 {
            post(&mut driver, &mut values);
            if driver.outstanding() == driver.size() {
                FULL.once_more();
            }
            driver.doorbell();
            reclaim(&mut driver, &mut returned);
        }
        if returned.len() == 4 {
            BACK_AT_ONCE.once_more();
        }
        let mut device = device.join().unwrap();
        // The rest, in turns.
        for _ in 0..4 {
            post(&mut driver, &mut values);
            driver.doorbell();
            complete(&mut device);
            device.write_back();
            reclaim(&mut driver, &mut returned);
        }
        assert_eq!(returned, [10, 20, 30, 40]);
        assert_eq!(driver.into_descriptors(device), [None, None]);
    });
    assert!(FULL.at_all() && BACK_AT_ONCE.at_all());
}

#[test]
fn what_is_not_told_is_not_seen() {
    static ONE_AFTER_THE_OTHER: Seen = Seen::never();
    explore([ANY, ANY], || {
        let (mut driver, mut device) = starting_at(vec![None, None], START);
        let device = thread::spawn(move || {
            complete(&mut device);
            let first = device.pending();
            complete(&mut device);
            if (first, device.pending()) == (1, 2) {
                ONE_AFTER_THE_OTHER.once_more();
            }
            device.write_back();
            device
        });
        driver.free(1)[0] = Some(Box::new(1));
        driver.post(1);
        driver.doorbell();
        driver.free(1)[0] = Some(Box::new(2));
        driver.post(1);
        assert_eq!((driver.pending(), driver.outstanding()), (1, 2));
        assert!(driver.completed() < 2, "it was told of one");
        driver.doorbell();
        let mut device = device.join().unwrap();
        complete(&mut device);
        device.write_back();
        assert_eq!(driver.completed(), 2);
        let mut returned = Vec::new();
        reclaim(&mut driver, &mut returned);
        assert_eq!(returned, [10, 20]);
    });
    assert!(ONE_AFTER_THE_OTHER.at_all());
}
