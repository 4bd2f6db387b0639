//! A NIC's descriptor ring in memory.

use std::slice;
use std::sync::Arc;

use crate::slots::{CacheLine, Slots};
use crate::sync::{AtomicU32, Ordering};

/// The driver's end of a descriptor ring.
///
/// It fills descriptors that are free, posts them, and rings the doorbell once for as many as it
/// likes; later it learns how many the device has completed, and reclaims those, in the same order.
/// Every descriptor has one owner at any time, which is the driver from when the device has written it
/// back until the doorbell that follows its posting.
#[derive(Debug)]
pub struct DriverRing<T: Send> {
    ring: Arc<Ring<T>>,
    /// The next descriptor to be posted.
    posted: u32,
    /// As far as the device was told.
    told: u32,
    /// As far as the device is known to have come.
    done: u32,
    /// The next descriptor to be reclaimed.
    reclaimed: u32,
}

/// The device's end of a descriptor ring.
///
/// It works on the descriptors that were posted, in order, completes them, and writes back how far it
/// is, once for as many as it likes.
#[derive(Debug)]
pub struct DeviceRing<T: Send> {
    ring: Arc<Ring<T>>,
    /// As far as descriptors are known to be posted.
    posted: u32,
    /// The next descriptor to be completed.
    completed: u32,
    /// As far as the driver was told.
    told: u32,
}

/// What both ends share. Numbers of descriptors go on and on; counted round, `reclaimed <= done <=
/// posted <= reclaimed + size`. Those from `done` to `posted` are the device's, all others the driver's.
#[derive(Debug)]
struct Ring<T> {
    descriptors: Slots<T>,
    /// The doorbell: only the driver writes it.
    posted: CacheLine<AtomicU32>,
    /// Only the device writes it.
    done: CacheLine<AtomicU32>,
}

/// The two ends of a ring of these descriptors, all of which are free.
///
/// Shape: a power of two of descriptors, up to 2^31.
///
/// # Panics
/// When it is not.
///
/// # Examples
/// ```
/// let (mut driver, mut device) = fwdlab_sys::descriptor_ring(vec![0; 256]);
/// driver.free(2).copy_from_slice(&[64, 1518]);
/// driver.post(2);
/// driver.doorbell();
///
/// let posted = device.available();
/// assert_eq!(device.run(posted), [64, 1518]);
/// device.complete(posted);
/// device.write_back();
///
/// let completed = driver.completed();
/// driver.reclaim(completed);
/// assert_eq!(driver.outstanding(), 0);
/// ```
#[must_use]
pub fn descriptor_ring<T: Send>(descriptors: Vec<T>) -> (DriverRing<T>, DeviceRing<T>) {
    starting_at(descriptors, 0)
}

/// As above; the first descriptor has this number.
pub(crate) fn starting_at<T: Send>(
    descriptors: Vec<T>,
    number: u32,
) -> (DriverRing<T>, DeviceRing<T>) {
    let size = descriptors.len();
    assert!(
        size.is_power_of_two() && size <= 1 << 31,
        "the size of a descriptor ring is a power of two up to 2^31, not {size}"
    );
    let ring = Arc::new(Ring {
        descriptors: Slots::new(descriptors),
        posted: CacheLine(AtomicU32::new(number)),
        done: CacheLine(AtomicU32::new(number)),
    });
    let driver = DriverRing {
        ring: Arc::clone(&ring),
        posted: number,
        told: number,
        done: number,
        reclaimed: number,
    };
    let device = DeviceRing {
        ring,
        posted: number,
        completed: number,
        told: number,
    };
    (driver, device)
}

impl<T> Ring<T> {
    /// The descriptors in a row from a number on, of `count` that are the caller's.
    ///
    /// # Safety
    /// They are the caller's, until the slice is gone.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the descriptors are handed to and fro")]
    unsafe fn owned(&self, number: u32, count: usize) -> &mut [T] {
        let count = self.descriptors.in_a_row(number as usize, count);
        let start = self.descriptors.run(number as usize, count);
        // SAFETY: the run has `count` slots, which always hold a value, and nobody else uses them.
        unsafe { slice::from_raw_parts_mut(start, count) }
    }

    #[inline]
    fn size(&self) -> usize {
        self.descriptors.length()
    }
}

/// How many descriptors lie between two numbers, the second of which is not behind.
#[inline]
fn between(from: u32, to: u32) -> usize {
    to.wrapping_sub(from) as usize
}

/// The number `count` behind another.
///
/// # Panics
/// When there are less than `count`: the caller would pass on what is not its own.
#[inline]
#[track_caller]
fn advanced(number: u32, count: usize, there_are: usize, verb: &str) -> u32 {
    assert!(
        count <= there_are,
        "{count} descriptors to {verb}, but there are {there_are}"
    );
    // A ring has at most 2^31.
    number.wrapping_add(u32::try_from(count).unwrap_or(u32::MAX))
}

impl<T: Send> DriverRing<T> {
    /// Descriptors in all.
    #[inline]
    #[must_use]
    pub fn size(&self) -> usize {
        self.ring.size()
    }

    /// Descriptors to be posted next, in a row: at most `max`, and less at the ring's end.
    #[inline]
    #[must_use]
    pub fn free(&mut self, max: usize) -> &mut [T] {
        let free = self.size() - self.outstanding();
        // SAFETY: they lie behind the last one posted, where the device does not go before a
        // doorbell, which cannot ring while the slice borrows this end; the device has left those it
        // had before, because they were reclaimed.
        unsafe { self.ring.owned(self.posted, free.min(max)) }
    }

    /// Posts the next free descriptors, of which the device is told by the next
    /// [`doorbell`](Self::doorbell).
    ///
    /// # Panics
    /// When so many are not free.
    #[inline]
    #[track_caller]
    pub fn post(&mut self, count: usize) {
        let free = self.size() - self.outstanding();
        let posted = advanced(self.posted, count, free, "post");
        self.ring.descriptors.touch(self.posted as usize, count);
        self.posted = posted;
    }

    /// Hands all that was posted over to the device.
    #[inline]
    pub fn doorbell(&mut self) {
        if self.told != self.posted {
            // Releases what was written into the descriptors.
            self.ring.posted.0.store(self.posted, Ordering::Release);
            self.told = self.posted;
        }
    }

    /// Posted descriptors of which the device was not yet told.
    #[inline]
    #[must_use]
    pub fn pending(&self) -> usize {
        between(self.told, self.posted)
    }

    /// Descriptors that were posted and not reclaimed.
    #[inline]
    #[must_use]
    pub fn outstanding(&self) -> usize {
        between(self.reclaimed, self.posted)
    }

    /// Looks how far the device is: descriptors that it completed and that were not reclaimed.
    #[inline]
    #[must_use]
    pub fn completed(&mut self) -> usize {
        // Acquires what the device wrote into the descriptors.
        self.done = self.ring.done.0.load(Ordering::Acquire);
        between(self.reclaimed, self.done)
    }

    /// Descriptors to be reclaimed next, in a row: at most `max`, of those that
    /// [`completed`](Self::completed) last told of, and less at the ring's end.
    #[inline]
    #[must_use]
    pub fn done(&mut self, max: usize) -> &mut [T] {
        let done = between(self.reclaimed, self.done);
        // SAFETY: the device wrote them back, which was acquired, and leaves them alone until they
        // are posted and told again, which cannot happen while the slice borrows this end.
        unsafe { self.ring.owned(self.reclaimed, done.min(max)) }
    }

    /// Makes the next completed descriptors free again.
    ///
    /// # Panics
    /// When [`completed`](Self::completed) did not last tell of so many.
    #[inline]
    #[track_caller]
    pub fn reclaim(&mut self, count: usize) {
        let done = between(self.reclaimed, self.done);
        self.reclaimed = advanced(self.reclaimed, count, done, "reclaim");
    }

    /// The ring taken apart: its descriptors, as they lie there.
    ///
    /// # Panics
    /// When the ends are not those of one ring.
    #[must_use]
    pub fn into_descriptors(self, device: DeviceRing<T>) -> Vec<T> {
        assert!(
            Arc::ptr_eq(&self.ring, &device.ring),
            "the two ends are of one ring"
        );
        drop(self);
        let Some(ring) = Arc::into_inner(device.ring) else {
            unreachable!("a ring has two ends")
        };
        ring.descriptors.into_values()
    }
}

impl<T: Send> DeviceRing<T> {
    /// Descriptors in all.
    #[inline]
    #[must_use]
    pub fn size(&self) -> usize {
        self.ring.size()
    }

    /// Descriptors that were posted and not completed; looks for new ones only where it knows of none.
    #[inline]
    #[must_use]
    pub fn available(&mut self) -> usize {
        self.available_for(1)
    }

    /// The same; looks for new ones where it knows of fewer than are wanted.
    #[inline]
    #[must_use]
    pub fn available_for(&mut self, wanted: usize) -> usize {
        if between(self.completed, self.posted) < wanted {
            // Acquires what the driver wrote into the descriptors.
            self.posted = self.ring.posted.0.load(Ordering::Acquire);
        }
        between(self.completed, self.posted)
    }

    /// Descriptors to be completed next, in a row: at most `max`, of those that
    /// [`available`](Self::available) last told of, and less at the ring's end.
    #[inline]
    #[must_use]
    pub fn run(&mut self, max: usize) -> &mut [T] {
        let known = between(self.completed, self.posted);
        // SAFETY: the driver handed them over, which was acquired, and leaves them alone until they
        // are completed and written back, which cannot happen while the slice borrows this end.
        unsafe { self.ring.owned(self.completed, known.min(max)) }
    }

    /// Completes the next descriptors, of which the driver is told by the next
    /// [`write_back`](Self::write_back).
    ///
    /// # Panics
    /// When [`available`](Self::available) did not last tell of so many.
    #[inline]
    #[track_caller]
    pub fn complete(&mut self, count: usize) {
        let known = between(self.completed, self.posted);
        let completed = advanced(self.completed, count, known, "complete");
        self.ring.descriptors.touch(self.completed as usize, count);
        self.completed = completed;
    }

    /// Hands all that was completed back to the driver.
    #[inline]
    pub fn write_back(&mut self) {
        if self.told != self.completed {
            // Releases what was written into the descriptors.
            self.ring.done.0.store(self.completed, Ordering::Release);
            self.told = self.completed;
        }
    }

    /// Completed descriptors of which the driver was not yet told.
    #[inline]
    #[must_use]
    pub fn pending(&self) -> usize {
        between(self.told, self.completed)
    }
}
