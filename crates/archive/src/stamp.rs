//! Whether a run has written anything since one last looked.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fwdlab_sys::durable::entries;

use crate::layout;

/// What is to be seen from outside of the files that a run writes as it goes: two stamps that are alike
/// are of the same records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp(Vec<(PathBuf, u64, Option<SystemTime>)>);

impl Stamp {
    /// The stamp of a results directory as it is now. Take it before the directory is read: what is
    /// written meanwhile then shows at the next look.
    #[must_use]
    pub fn of(dir: &Path) -> Self {
        let mut paths = vec![dir.join(layout::TRIALS), dir.join(layout::FINISHED)];
        // A folder that cannot be listed is an error for whoever reads it.
        paths.extend(entries(&dir.join(layout::SESSIONS)).unwrap_or_default());
        let seen = paths.into_iter().filter_map(|path| {
            let metadata = fs::metadata(&path).ok()?;
            Some((path, metadata.len(), metadata.modified().ok()))
        });
        Self(seen.collect())
    }

    /// When the newest of them was written.
    #[must_use]
    pub fn newest(&self) -> Option<SystemTime> {
        self.0.iter().filter_map(|(_, _, modified)| *modified).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_changes_with_what_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let empty = Stamp::of(dir.path());
        assert_eq!(empty.newest(), None);
        fs::write(dir.path().join(layout::TRIALS), "one\n").unwrap();
        let one = Stamp::of(dir.path());
        assert_ne!(one, empty);
        assert!(one.newest().is_some());
        assert_eq!(one, Stamp::of(dir.path()));
        fs::write(dir.path().join(layout::TRIALS), "one\ntwo\n").unwrap();
        let two = Stamp::of(dir.path());
        assert_ne!(two, one);
        fs::create_dir(dir.path().join(layout::SESSIONS)).unwrap();
        fs::write(layout::session(dir.path(), 1), "{}").unwrap();
        assert_ne!(Stamp::of(dir.path()), two);
    }
}
