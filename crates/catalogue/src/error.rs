//! What keeps a catalogue from being made or asked.

use std::path::PathBuf;

use fwdlab_archive::ArchiveError;
use fwdlab_netbenches::NetbenchesError;
use fwdlab_sys::durable::FileError;

/// What keeps a catalogue from being made or asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// A folder that was asked for cannot be listed.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A folder of imported results cannot be read.
    #[error(transparent)]
    Imported(#[from] NetbenchesError),
    /// The file is there and no index of fwdlab's.
    #[error(
        "{}: is no index of fwdlab, and is left alone; give --index another file, or remove it",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The index would lie inside a results directory, which holds what was measured and nothing else.
    #[error(
        "{}: lies in the results directory {}, where no index belongs; give --index a file elsewhere",
        path.display(), dir.display()
    )]
    WithinResults {
        /// The file.
        path: PathBuf,
        /// The results directory.
        dir: PathBuf,
    },
    /// The database refuses.
    #[error("{}: {source}; leave --index out, or give another file", place(path.as_ref()))]
    Index {
        /// The index; none for one in memory.
        path: Option<PathBuf>,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// A statement that takes too long.
    #[error(
        "--sql: no answer within {seconds} s; ask for less, or give it longer with --time-limit"
    )]
    SlowAnswer {
        /// How long it was given.
        seconds: u64,
    },
    /// A statement whose answer is too large.
    #[error("--sql: the answer is larger than {} MiB; ask for less, with LIMIT or in several statements", bytes_max >> 20)]
    LargeAnswer {
        /// The most that an answer may have.
        bytes_max: usize,
    },
    /// A statement that is no SELECT, or a wrong one.
    #[error("--sql: {what}; docs/catalogue.md has the tables")]
    Sql {
        /// What is wrong with it.
        what: String,
    },
}

fn place(path: Option<&PathBuf>) -> String {
    path.map_or_else(
        || "the catalogue".to_owned(),
        |path| path.display().to_string(),
    )
}

impl From<FileError> for CatalogueError {
    fn from(error: FileError) -> Self {
        Self::Archive(error.into())
    }
}

impl From<rusqlite::Error> for CatalogueError {
    fn from(source: rusqlite::Error) -> Self {
        Self::Index { path: None, source }
    }
}
