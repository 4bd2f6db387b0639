//! Large tables in large pages, where the kernel has them.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use nix::sys::mman::{MmapAdvise, madvise};

/// What a huge page of most CPUs holds. Where they are larger, less of a table lies in them.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// The same values in memory that the kernel is asked to back with huge pages.
///
/// A lookup in a table of many megabytes misses the cache of page addresses each time, too, unless the pages
/// are large; in a virtual machine that costs more than the miss of the data. It is a hint: nothing but time
/// depends on it, and a kernel set to `never` (`/sys/kernel/mm/transparent_hugepage/enabled`) does without.
///
/// # Examples
/// ```
/// let table = vec![7_u16; 4 << 20];
/// assert_eq!(fwdlab_sys::in_huge_pages(&table), table);
/// ```
#[must_use]
pub fn in_huge_pages<T: Copy>(values: &[T]) -> Vec<T> {
    let mut copy = Vec::with_capacity(values.len());
    // Before anything is written: pages are made at the first touch.
    advise(copy.spare_capacity_mut());
    copy.extend_from_slice(values);
    copy
}

fn advise<T>(memory: &mut [MaybeUninit<T>]) {
    let bytes = size_of_val(memory);
    let start = memory.as_mut_ptr();
    let before = start.addr().next_multiple_of(HUGE_PAGE_BYTES) - start.addr();
    let length = bytes.saturating_sub(before) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if length == 0 {
        return;
    }
    let Some(first) = NonNull::new(start.wrapping_byte_add(before).cast::<c_void>()) else {
        return;
    };
    // SAFETY: the range lies in memory that is borrowed exclusively, begins and ends with a page, and this
    // advice changes nothing that can be read from it.
    let advised = unsafe { madvise(first, length, MmapAdvise::MADV_HUGEPAGE) };
    // A kernel without huge pages refuses: then the table is slower.
    let _ = advised;
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn values_of_any_number_and_size_stay_what_they_are() {
        for length in [0, 1, 5, (HUGE_PAGE_BYTES / 8) - 1, HUGE_PAGE_BYTES] {
            let values: Vec<u64> = (0..length as u64).collect();
            assert!(in_huge_pages(&values) == values, "{length}");
        }
        assert_eq!(in_huge_pages(&[(); 3]).len(), 3);
    }

    #[test]
    fn a_large_table_lies_in_huge_pages() {
        let enabled = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
        if !enabled.is_ok_and(|enabled| !enabled.contains("[never]")) {
            return;
        }
        // Larger than anything that an allocator keeps for the next one.
        let table = in_huge_pages(&vec![1_u64; 16 << 20]);
        let address = table.as_ptr().addr() + (table.len() * 8) / 2;
        let maps = fs::read_to_string("/proc/self/smaps").unwrap();
        let mut is_ours = false;
        let huge = maps.lines().find_map(|line| {
            let range = line
                .split(' ')
                .next()
                .and_then(|range| range.split_once('-'));
            let bounds = range.and_then(|(from, to)| {
                let hex = |text| usize::from_str_radix(text, 16).ok();
                Some(hex(from)?..hex(to)?)
            });
            if let Some(bounds) = bounds {
                is_ours = bounds.contains(&address);
            }
            let flags = line.strip_prefix("VmFlags:").filter(|_| is_ours)?;
            Some(flags.split_whitespace().any(|flag| flag == "hg"))
        });
        assert_eq!(huge, Some(true));
        drop(table);
    }
}
