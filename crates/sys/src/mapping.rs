//! Memory that is shared with the kernel.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64};

use nix::errno::Errno;

/// A piece of shared memory, unmapped when its value goes.
///
/// The kernel writes to it at any time. So it is never lent out as a slice: bytes are copied in and
/// out, and the words by which both sides hand places over to each other are atomics.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory belongs to the process, not to a thread, and is unmapped once, by the value.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps a part of what a descriptor offers.
    pub(crate) fn of(
        socket: BorrowedFd<'_>,
        length: usize,
        offset: libc::off_t,
    ) -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        Self::map(length, flags, socket.as_raw_fd(), offset)
    }

    /// Memory of this process, at a page's start.
    pub(crate) fn anonymous(length: usize) -> io::Result<Self> {
        Self::map(length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    }

    fn map(length: usize, flags: i32, descriptor: i32, offset: libc::off_t) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses an address that nothing lies at, and checks all else.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                protection,
                flags,
                descriptor,
                offset,
            )
        };
        let start = Errno::result(start)?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length })
    }

    /// The address, for the kernel.
    pub(crate) fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// A word that both sides read and write.
    ///
    /// # Panics
    /// Where the word is not inside the memory or not aligned.
    pub(crate) fn word(&self, offset: usize) -> &AtomicU32 {
        self.check(offset, size_of::<AtomicU32>());
        assert!(
            offset.is_multiple_of(align_of::<AtomicU32>()),
            "an aligned word"
        );
        // SAFETY: the word lies inside the mapping, which lives as long as `self` is borrowed; it is
        // aligned, because mappings start at a page; and any four bytes are a valid word.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(offset).cast()) }
    }

    /// A long word that both sides read and write.
    ///
    /// # Panics
    /// Where the word is not inside the memory or not aligned.
    pub(crate) fn long_word(&self, offset: usize) -> &AtomicU64 {
        self.check(offset, size_of::<AtomicU64>());
        assert!(
            offset.is_multiple_of(align_of::<AtomicU64>()),
            "an aligned word"
        );
        // SAFETY: as in `word`.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(offset).cast()) }
    }

    /// Writes bytes to a place that the kernel leaves to this process at the moment.
    ///
    /// # Panics
    /// Where they do not fit.
    pub(crate) fn copy_in(&self, offset: usize, bytes: &[u8]) {
        self.check(offset, bytes.len());
        // SAFETY: the place is inside the mapping, and no reference into it exists but to atomics.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr().add(offset), bytes.len());
        }
    }

    /// Reads bytes from a place that the kernel leaves to this process at the moment.
    ///
    /// # Panics
    /// Where there are not so many.
    pub(crate) fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
        self.check(offset, bytes.len());
        // SAFETY: as in `copy_in`, with the roles changed.
        unsafe {
            ptr::copy_nonoverlapping(
                self.start.as_ptr().add(offset),
                bytes.as_mut_ptr(),
                bytes.len(),
            );
        }
    }

    fn check(&self, offset: usize, length: usize) {
        let end = offset.checked_add(length);
        assert!(
            end.is_some_and(|end| end <= self.length),
            "{length} bytes at {offset} are inside the {} mapped ones",
            self.length
        );
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the memory that `map` got, and nothing borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn what_is_copied_in_comes_out() {
        let mapping = Mapping::anonymous(4096).unwrap();
        mapping.copy_in(4092, &[1, 2, 3, 4]);
        let mut bytes = [0; 4];
        mapping.copy_out(4092, &mut bytes);
        assert_eq!(bytes, [1, 2, 3, 4]);
        let word = mapping.word(4092).load(Ordering::Relaxed);
        assert_eq!(word, u32::from_ne_bytes([1, 2, 3, 4]));
    }

    #[test]
    #[should_panic(expected = "5 bytes at 4092 are inside the 4096 mapped ones")]
    fn nothing_is_read_outside() {
        Mapping::anonymous(4096)
            .unwrap()
            .copy_out(4092, &mut [0; 5]);
    }
}
