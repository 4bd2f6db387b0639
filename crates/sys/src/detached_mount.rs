//! File systems of the kernel's that are mounted nowhere: `/sys` as a network namespace has it, and
//! what the kernel tells of its tracepoints.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;

use nix::errno::Errno;

use crate::{NetworkNamespace, SysError};

/// `FSOPEN_CLOEXEC` and `FSMOUNT_CLOEXEC` of `linux/mount.h`.
const CLOEXEC: libc::c_uint = 1;
/// `FSCONFIG_CMD_CREATE` of `linux/mount.h`.
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;

/// The `/sys` of a namespace: a mount that nobody else sees, gone with its value.
///
/// The host's own `/sys` shows the interfaces of the namespace in which it was mounted, whoever
/// looks at it.
#[derive(Debug)]
pub struct Sysfs {
    mount: DetachedMount,
}

impl Sysfs {
    /// Opens the one of a namespace.
    ///
    /// # Errors
    /// Without the privilege to mount.
    pub fn open(namespace: &NetworkNamespace) -> Result<Self, SysError> {
        let mounted = namespace.run(|| DetachedMount::of(c"sysfs"))?;
        let mount = mounted.map_err(|source| {
            let what = format!("mounting sysfs for namespace {}", namespace.name());
            SysError::new(what, source)
        })?;
        Ok(Self { mount })
    }

    /// The path under which this process reaches what `/sys/<below>` is in the namespace.
    #[must_use]
    pub fn path(&self, below: &str) -> PathBuf {
        self.mount.path(below)
    }
}

/// What the kernel tells of a tracepoint: its fields, and the names of their values.
///
/// # Errors
/// Without the privilege to mount tracefs, or when the kernel has no such tracepoint.
pub fn tracepoint_format(category: &str, tracepoint: &str) -> Result<String, SysError> {
    let what = || format!("reading the format of tracepoint {category}:{tracepoint}");
    let mount = DetachedMount::of(c"tracefs").map_err(|source| SysError::new(what(), source))?;
    let file = mount.path(&format!("events/{category}/{tracepoint}/format"));
    fs::read_to_string(file).map_err(|source| SysError::new(what(), source))
}

/// A mount that only its value leads to.
#[derive(Debug)]
struct DetachedMount {
    root: OwnedFd,
}

impl DetachedMount {
    /// Mounts a file system of that name, for the calling thread's namespaces.
    fn of(filesystem: &CStr) -> io::Result<Self> {
        mount(filesystem).map(|root| Self { root })
    }

    /// The path under which this process reaches a file of it.
    fn path(&self, below: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{below}", self.root.as_raw_fd()))
    }
}

fn mount(filesystem: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: the kernel reads the name, which is terminated, and returns a new descriptor.
    let context =
        descriptor(unsafe { libc::syscall(libc::SYS_fsopen, filesystem.as_ptr(), CLOEXEC) })?;
    let null = std::ptr::null::<libc::c_void>();
    // SAFETY: this command takes neither key nor value, and the descriptor is open.
    let created = unsafe {
        libc::syscall(
            libc::SYS_fsconfig,
            context.as_raw_fd(),
            FSCONFIG_CMD_CREATE,
            null,
            null,
            0,
        )
    };
    Errno::result(created)?;
    // SAFETY: the descriptor is open; the call returns a new one.
    descriptor(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), CLOEXEC, 0) })
}

/// Takes what a system call returned as the descriptor it made.
pub(crate) fn descriptor(result: libc::c_long) -> io::Result<OwnedFd> {
    let descriptor = Errno::result(result)?;
    let descriptor = libc::c_int::try_from(descriptor).expect("descriptors are small numbers");
    // SAFETY: the kernel just made it, for nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
