//! Writing a lab and its experiments: all of them, and nothing over anything else.

use std::fs;
use std::path::{Path, PathBuf};

use fwdlab_sys::durable::{create_folders, write_atomically};

use super::{BenchLabError, Draft, DraftFile};

impl Draft {
    /// All files: the lab, then the experiments.
    pub fn files(&self) -> impl Iterator<Item = &DraftFile> {
        std::iter::once(&self.lab).chain(&self.experiments)
    }

    /// Writes the files into a folder, which is made where it is missing; their paths, in the order of
    /// [`Draft::files`].
    ///
    /// A file that is there with the same text is left alone.
    ///
    /// # Errors
    /// [`BenchLabError::Exists`]: one is there with another text, and none is written; what writing can run
    /// into.
    pub fn write(&self, to: &Path) -> Result<Vec<PathBuf>, BenchLabError> {
        let paths: Vec<PathBuf> = self.files().map(|file| to.join(&file.name)).collect();
        let mut is_there = Vec::new();
        for (file, path) in self.files().zip(&paths) {
            is_there.push(is_same(file, path)?);
        }
        create_folders(to)?;
        let mut written: Vec<&Path> = Vec::new();
        for ((file, path), is_there) in self.files().zip(&paths).zip(is_there) {
            if is_there {
                continue;
            }
            if let Err(error) = write_atomically(path, file.text.as_bytes()) {
                // A lab without its experiments is no import; the error says what matters.
                for path in written {
                    let _ = fs::remove_file(path);
                }
                return Err(error.into());
            }
            written.push(path);
        }
        Ok(paths)
    }
}

/// Whether the file is there as it would be written; an error where something else is.
fn is_same(file: &DraftFile, path: &Path) -> Result<bool, BenchLabError> {
    let Ok(found) = fs::symlink_metadata(path) else {
        return Ok(false);
    };
    let has_length = found.is_file() && found.len() == file.text.len() as u64;
    if has_length && fs::read(path).is_ok_and(|text| text == file.text.as_bytes()) {
        return Ok(true);
    }
    let path = path.to_owned();
    Err(BenchLabError::Exists { path })
}
