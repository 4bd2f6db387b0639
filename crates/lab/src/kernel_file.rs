//! Files of the kernel's: `/proc` and `/sys`, as the calling thread's namespaces show them.

use std::fs;
use std::path::Path;

use crate::LabError;

pub(crate) fn read(path: &Path) -> Result<String, LabError> {
    fs::read_to_string(path).map_err(|source| LabError::file("reading", path, source))
}

pub(crate) fn write(path: &Path, value: &str) -> Result<(), LabError> {
    fs::write(path, value).map_err(|source| LabError::file("writing", path, source))
}
