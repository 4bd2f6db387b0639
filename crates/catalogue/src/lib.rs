#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod entry;
mod error;
mod filter;
mod imported;
mod index;
mod release;
mod rows;
mod scan;
mod select;
mod series;
mod table;
mod write;

use std::path::Path;
use std::time::SystemTime;

use fwdlab_archive::find;
use rusqlite::Connection;

pub use error::CatalogueError;
pub use filter::{Filter, Moment, MomentError};
pub use rows::{Problem, RateRow, ResultsRow};
pub use series::{Over, Series, revisions, series};
pub use table::{Cell, Table};

/// Results directories as tables.
#[derive(Debug)]
pub struct Catalogue {
    connection: Connection,
}

/// What a look at the directories came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// Directories that were read.
    pub read: usize,
    /// Directories that are as they were when the index was made.
    pub unchanged: usize,
    /// Directories of which the index knew and that are no more among those asked for.
    pub forgotten: usize,
}

impl Catalogue {
    /// An empty catalogue that is gone with the process.
    ///
    /// # Errors
    /// [`CatalogueError::Index`].
    pub fn in_memory() -> Result<Self, CatalogueError> {
        Ok(Self {
            connection: index::in_memory()?,
        })
    }

    /// The catalogue kept in a file, with what it holds, or an empty one where there is no such file.
    /// One that is damaged, or of another version, is made again; then the second value is true.
    ///
    /// # Errors
    /// [`CatalogueError::Foreign`] where the file is something else, [`CatalogueError::WithinResults`]
    /// where it would lie in a results directory, [`CatalogueError::Index`].
    pub fn open(file: &Path) -> Result<(Self, bool), CatalogueError> {
        let (connection, made_again) = index::open(file)?;
        Ok((Self { connection }, made_again))
    }

    /// Makes the catalogue one of all results directories below the given folders, and of no others.
    ///
    /// A directory whose files have the size and the times that they had is not read again; `now`
    /// tells files that may yet change within the resolution of their times. What cannot be read
    /// becomes a [`Problem`] and hides nothing else.
    ///
    /// # Errors
    /// [`CatalogueError::Archive`] where one of the folders is none, [`CatalogueError::Index`].
    pub fn refresh<P: AsRef<Path>>(
        &mut self,
        folders: &[P],
        now: SystemTime,
    ) -> Result<Refreshed, CatalogueError> {
        let folders: Vec<&Path> = folders.iter().map(AsRef::as_ref).collect();
        let found = find(&folders)?;
        write::refresh(&mut self.connection, found, now)
    }
}

#[cfg(test)]
mod tests;
