//! What keeps a lab from being made of files.

use std::io;
use std::path::PathBuf;

use fwdlab_archive::ArchiveError;
use fwdlab_sys::durable::FileError;

use crate::assignments::AssignmentError;
use crate::pktgen_config::PktGenConfigError;

/// Why no lab can be made, or why it is not written; nothing of it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchLabError {
    /// A file or a folder cannot be read.
    #[error("{}: cannot be read ({source}); {remedy}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
        /// What to give.
        remedy: &'static str,
    },
    /// A file is none, or too large for one.
    #[error("{}: {what}; {remedy}", path.display())]
    Unfit {
        /// The file or folder.
        path: PathBuf,
        /// What it is.
        what: String,
        /// What to give.
        remedy: &'static str,
    },
    /// The configuration of the lab is more than assignments.
    #[error("{}: {source}; only assignments are taken, and none of it is run", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// The first line that is something else.
        source: AssignmentError,
    },
    /// A set of pkt-gen cannot be read.
    #[error("{}: {source}", path.display())]
    PktGen {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: PktGenConfigError,
    },
    /// Another file of that name is there.
    #[error(
        "{}: is there already and something else, and nothing is overwritten; choose another --name, or another \
         folder with --to", path.display()
    )]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The system refuses.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

impl From<FileError> for BenchLabError {
    fn from(error: FileError) -> Self {
        Self::Archive(error.into())
    }
}
