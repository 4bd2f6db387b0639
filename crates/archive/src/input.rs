//! The files of a results directory: regular ones, which lie in it.

use std::io;
use std::path::Path;

use fwdlab_sys::Input;

use crate::error::{ArchiveError, READ_FILE};
use crate::layout;

/// More than any file of a run or an import holds.
const FILE_BYTES_MAX: u64 = 512 << 20;

/// A file of a results directory, or of a folder that was imported or audited.
#[must_use]
pub const fn input<'a>(dir: &'a Path, path: &'a Path) -> Input<'a> {
    Input::file(path, FILE_BYTES_MAX).inside(dir)
}

/// All that a file of a results directory holds.
///
/// # Errors
/// [`ArchiveError::Io`] and [`ArchiveError::Refused`].
pub fn read(dir: &Path, path: &Path) -> Result<Vec<u8>, ArchiveError> {
    input(dir, path)
        .bytes()
        .map_err(ArchiveError::io(path, READ_FILE))
}

/// All that a file of `derived/` holds.
///
/// # Errors
/// What the system says, and why it is not read.
pub fn read_derived(dir: &Path, name: &str) -> io::Result<Vec<u8>> {
    input(dir, &dir.join(layout::DERIVED).join(name)).bytes()
}
