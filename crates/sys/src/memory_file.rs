//! Files without a name.

use std::fs::File;

use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::SysError;

/// Makes a file in memory that has no name and goes with its last descriptor.
///
/// What a child process writes into it can be read when the child has ended, also where one of its
/// own children keeps it open.
///
/// # Errors
/// When this process may open no more files.
pub fn memory_file() -> Result<File, SysError> {
    let descriptor = memfd_create(c"fwdlab", MFdFlags::MFD_CLOEXEC)
        .map_err(|errno| SysError::new("making a file in memory", errno))?;
    Ok(descriptor.into())
}
