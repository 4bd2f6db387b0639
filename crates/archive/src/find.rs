//! Finding results directories below folders.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::durable::entries;
use crate::error::ArchiveError;
use crate::imported::is_imported;
use crate::layout;

/// A results directory, or a folder that cannot be looked into.
#[derive(Debug)]
pub(crate) struct Found {
    /// As a user would name it.
    pub(crate) path: PathBuf,
    /// As the system does, whatever way it was come by.
    pub(crate) canonical: PathBuf,
    /// Why it cannot be looked into.
    pub(crate) refused: Option<ArchiveError>,
}

/// Every results directory at or below the folders, each once. Links inside are not followed.
pub(crate) fn find(folders: &[&Path]) -> Result<Vec<Found>, ArchiveError> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for &folder in folders {
        // Listed for its error: a folder that was asked for has to be there.
        fs::read_dir(folder)
            .map(drop)
            .map_err(ArchiveError::io(folder, "list the folder"))?;
        let mut waiting = vec![folder.to_owned()];
        while let Some(path) = waiting.pop() {
            let canonical = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            if !seen.insert(canonical.clone()) {
                continue;
            }
            let refused = if is_results(&path) {
                None
            } else {
                match subfolders(&path) {
                    Ok(inside) => {
                        waiting.extend(inside);
                        continue;
                    }
                    Err(error) => Some(error),
                }
            };
            found.push(Found {
                path,
                canonical,
                refused,
            });
        }
    }
    Ok(found)
}

/// The error for a folder that is no results directory.
pub(crate) fn not_results(folder: &Path) -> ArchiveError {
    let below = find(&[folder]).unwrap_or_default();
    let mut below: Vec<PathBuf> = below
        .into_iter()
        .filter(|found| found.refused.is_none())
        .map(|found| found.path)
        .collect();
    below.sort();
    ArchiveError::NotResults {
        dir: folder.to_owned(),
        below,
    }
}

/// Whether a folder is a results directory.
pub(crate) fn is_results(folder: &Path) -> bool {
    folder.join(layout::RESOLVED).is_file() || is_imported(folder)
}

fn subfolders(folder: &Path) -> Result<Vec<PathBuf>, ArchiveError> {
    let mut inside = entries(folder)?;
    inside.retain(|path| {
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        !is_hidden && fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
    });
    inside.reverse();
    Ok(inside)
}
