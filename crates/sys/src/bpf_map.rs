//! Entries of an eBPF map whose sizes are known only when it is there.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use crate::SysError;

// Commands and kinds of maps of `linux/bpf.h`.
const BPF_MAP_UPDATE_ELEM: libc::c_long = 2;
const BPF_OBJ_GET_INFO_BY_FD: libc::c_long = 15;
const PER_CPU: [u32; 4] = [5, 6, 10, 21];

/// `struct bpf_map_info`, as far as it is read.
#[repr(C)]
#[derive(Default)]
struct Info {
    kind: u32,
    id: u32,
    key_size: u32,
    value_size: u32,
}

/// What `bpf()` takes to describe an object.
#[repr(C)]
struct Describe {
    fd: u32,
    length: u32,
    info: u64,
}

/// What `bpf()` takes to write an entry.
#[repr(C)]
struct Update {
    fd: u32,
    _pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// A map that entries are written to.
#[derive(Debug)]
pub struct MapEntries<'m> {
    map: BorrowedFd<'m>,
    key_size: usize,
    value_size: usize,
    /// How often the kernel takes a value at once: for every CPU where each has its own.
    copies: usize,
}

impl<'m> MapEntries<'m> {
    /// Those of a map.
    ///
    /// # Errors
    /// When that is no map.
    pub fn of(map: BorrowedFd<'m>) -> Result<Self, SysError> {
        let failed = |source| SysError::new("reading the sizes of an eBPF map", source);
        let mut info = Info::default();
        let mut describe = Describe {
            fd: map.as_raw_fd().cast_unsigned(),
            length: u32::try_from(size_of::<Info>()).expect("it is short"),
            info: (&raw mut info) as u64,
        };
        // SAFETY: the kernel writes no more than `length` bytes to `info`, which lives until behind the call.
        unsafe { bpf(BPF_OBJ_GET_INFO_BY_FD, &mut describe) }.map_err(failed)?;
        let copies = if PER_CPU.contains(&info.kind) {
            possible_cpus().map_err(failed)?
        } else {
            1
        };
        Ok(Self {
            map,
            key_size: info.key_size as usize,
            value_size: info.value_size as usize,
            copies,
        })
    }

    /// The bytes of a value.
    #[must_use]
    pub const fn value_size(&self) -> usize {
        self.value_size
    }

    /// Writes an entry: for every CPU the same where each has its own.
    ///
    /// # Errors
    /// When key or value have another size than the map's, or the kernel refuses them.
    pub fn write(&self, key: &[u8], value: &[u8]) -> Result<(), SysError> {
        let failed = |source| SysError::new("writing an entry of an eBPF map", source);
        if key.len() != self.key_size || value.len() != self.value_size {
            let why = format!(
                "the map's keys have {} bytes and its values {}, not {} and {}",
                self.key_size,
                self.value_size,
                key.len(),
                value.len()
            );
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, why)));
        }
        let values = if self.copies == 1 {
            value.to_vec()
        } else {
            // Each copy begins at a multiple of 8 bytes.
            let mut padded = value.to_vec();
            padded.resize(value.len().next_multiple_of(8), 0);
            padded.repeat(self.copies)
        };
        let mut update = Update {
            fd: self.map.as_raw_fd().cast_unsigned(),
            _pad: 0,
            key: key.as_ptr() as u64,
            value: values.as_ptr() as u64,
            flags: 0,
        };
        // SAFETY: the kernel reads as many bytes of key and values as the map's sizes say, and both have those.
        unsafe { bpf(BPF_MAP_UPDATE_ELEM, &mut update) }.map_err(failed)
    }
}

/// # Safety
/// Where the attribute says that something lies, it lies, with room for all that the command reads or writes.
unsafe fn bpf<A>(command: libc::c_long, attribute: &mut A) -> io::Result<()> {
    // SAFETY: the attribute has the size that is said of it; for what it points to, the caller speaks.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_mut(attribute),
            size_of::<A>(),
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// How many CPUs the kernel has room for: that many values has an entry of which each CPU has one.
fn possible_cpus() -> io::Result<usize> {
    let text = fs::read_to_string("/sys/devices/system/cpu/possible")?;
    count(text.trim()).ok_or_else(|| io::Error::other(format!("{text:?} is no list of CPUs")))
}

/// The numbers in a list like `0-3,8`.
fn count(list: &str) -> Option<usize> {
    let parts = list.split(',').map(|part| match part.split_once('-') {
        None => part.parse::<usize>().ok().map(|_| 1),
        Some((first, last)) => {
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            last.checked_sub(first)?.checked_add(1)
        }
    });
    parts.sum()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn what_is_no_map_is_refused() {
        let file = File::open("/dev/null").unwrap();
        assert!(MapEntries::of(file.as_fd()).is_err());
    }

    #[test]
    fn cpus_are_counted() {
        assert_eq!(count("0"), Some(1));
        assert_eq!(count("0-3,8,10-11"), Some(7));
        for wrong in ["", "x", "3-1", "0-"] {
            assert_eq!(count(wrong), None, "{wrong}");
        }
        assert!(possible_cpus().unwrap() > 0);
    }
}
