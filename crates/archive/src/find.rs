//! Finding results directories below folders.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fwdlab_sys::durable::entries;

use crate::error::ArchiveError;
use crate::layout;

/// A results directory, or a folder that cannot be looked into.
#[derive(Debug)]
pub struct Found {
    /// As a user would name it.
    pub path: PathBuf,
    /// As the system does, whatever way it was come by.
    pub canonical: PathBuf,
    /// Why it cannot be looked into.
    pub refused: Option<ArchiveError>,
}

/// How far a search goes that only makes an error more helpful.
const HINT_FOLDERS_MAX: usize = 10_000;
/// See [`HINT_FOLDERS_MAX`].
const HINT_TIME_MAX: Duration = Duration::from_secs(1);

/// Every results directory at or below the folders, each once. Links inside are not followed.
///
/// # Errors
/// [`ArchiveError::Io`] where one of the folders itself cannot be listed.
pub fn find(folders: &[&Path]) -> Result<Vec<Found>, ArchiveError> {
    let mut found = Vec::new();
    look_at(folders, &mut found, &mut |_| true)?;
    Ok(found)
}

/// Adds every results directory at or below the folders, each once, until `goes_on` of the number of folders says no;
/// whether it never did.
fn look_at(
    folders: &[&Path],
    found: &mut Vec<Found>,
    goes_on: &mut dyn FnMut(usize) -> bool,
) -> Result<bool, ArchiveError> {
    let mut seen = BTreeSet::new();
    for &folder in folders {
        // Listed for its error: a folder that was asked for has to be there.
        fs::read_dir(folder)
            .map(drop)
            .map_err(ArchiveError::io(folder, "list the folder"))?;
        // In breadth: what is meant lies rather near than deep.
        let mut waiting = VecDeque::from([folder.to_owned()]);
        while let Some(path) = waiting.pop_front() {
            if !goes_on(seen.len()) {
                return Ok(false);
            }
            let canonical = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            if !seen.insert(canonical.clone()) {
                continue;
            }
            let refused = if is_run(&path) {
                None
            } else {
                // A folder of imported results may lie in another.
                match subfolders(&path) {
                    Ok(inside) => {
                        waiting.extend(inside);
                        if !is_imported(&path) {
                            continue;
                        }
                        None
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
    Ok(true)
}

/// The error for a folder that is no results directory.
pub(crate) fn not_results(folder: &Path) -> ArchiveError {
    let begin = Instant::now();
    let mut below = Vec::new();
    let is_whole = look_at(&[folder], &mut below, &mut |folders| {
        folders < HINT_FOLDERS_MAX && begin.elapsed() < HINT_TIME_MAX
    });
    let mut below: Vec<PathBuf> = below
        .into_iter()
        .filter(|found| found.refused.is_none())
        .map(|found| found.path)
        .collect();
    below.sort();
    ArchiveError::NotResults {
        dir: folder.to_owned(),
        below,
        // What cannot be listed has nothing below it to be given.
        is_whole: is_whole.unwrap_or(true),
    }
}

/// Whether a folder is a results directory, of fwdlab or imported.
#[must_use]
pub fn is_results(folder: &Path) -> bool {
    is_run(folder) || is_imported(folder)
}

fn is_run(folder: &Path) -> bool {
    folder.join(layout::RESOLVED).is_file()
}

/// Whether a folder holds imported results.
#[must_use]
pub fn is_imported(folder: &Path) -> bool {
    folder.join(layout::IMPORTED).is_file()
}

fn subfolders(folder: &Path) -> Result<Vec<PathBuf>, ArchiveError> {
    let mut inside = entries(folder)?;
    inside.retain(|path| {
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        !is_hidden && fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
    });
    Ok(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_goes_on_until_it_is_told_and_says_so() {
        let root = tempfile::tempdir().unwrap();
        for name in ["a/b/run", "c"] {
            fs::create_dir_all(root.path().join(name)).unwrap();
        }
        fs::write(root.path().join("a/b/run").join(layout::RESOLVED), "").unwrap();
        let search = |folders_max: usize| {
            let mut found = Vec::new();
            let mut goes_on = |folders| folders < folders_max;
            let is_whole = look_at(&[root.path()], &mut found, &mut goes_on).unwrap();
            (is_whole, found.len())
        };
        assert_eq!(search(5), (true, 1));
        assert_eq!(search(4), (false, 0));
        // Imports lie in each other, runs do not.
        for (folder, name) in [
            ("c", layout::IMPORTED),
            ("c/d", layout::IMPORTED),
            ("a/b/run/e", layout::IMPORTED),
        ] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
            fs::write(root.path().join(folder).join(name), "").unwrap();
        }
        let found = find(&[root.path()]).unwrap();
        let found: Vec<&Path> = found
            .iter()
            .map(|found| found.path.strip_prefix(root.path()).unwrap())
            .collect();
        assert_eq!(found, ["c", "c/d", "a/b/run"].map(Path::new));
        let none = ArchiveError::NotResults {
            dir: "/".into(),
            below: Vec::new(),
            is_whole: false,
        };
        assert_eq!(
            none.to_string(),
            "/: no results directory; there is none in the folders below it that were looked at first; give the \
             directory itself"
        );
    }
}
