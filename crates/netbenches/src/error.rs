//! What can be wrong with an import or an audit on disk, and what to do about it.

use std::path::PathBuf;

use fwdlab_archive::{ArchiveError, Place};
use fwdlab_sys::durable::FileError;

/// What keeps an import or an audit from being written, or an import from being read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetbenchesError {
    /// A file of an import does not hold what it should.
    #[error("{place}: {what}; import the archive again, in place of this import")]
    DamagedImport {
        /// Where.
        place: Place,
        /// What is wrong.
        what: String,
    },
    /// A folder that an import or an audit was to be written into has something else in it.
    #[error(
        "{}: holds something that is no earlier {what}; give a folder that is new or empty",
        dir.display()
    )]
    SomethingElse {
        /// The folder.
        dir: PathBuf,
        /// What was to be written: `import`, `audit`.
        what: &'static str,
    },
    /// The system refuses, or a later version wrote what is there.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

impl NetbenchesError {
    /// The error about a file of an import, which no run goes on from.
    pub(crate) fn of_import(error: ArchiveError) -> Self {
        match error {
            ArchiveError::Damaged { place, what } | ArchiveError::OtherForm { place, what } => {
                Self::DamagedImport { place, what }
            }
            other => Self::Archive(other),
        }
    }
}

impl From<FileError> for NetbenchesError {
    fn from(error: FileError) -> Self {
        Self::Archive(error.into())
    }
}
