//! Replacing several entries of a folder as one: whatever fails, and whenever the process is killed, the next
//! writer finds all the old ones or all the new ones.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use fwdlab_sys::durable::{FileError, entries, hold_folder, sync_folder};

use crate::error::NetbenchesError;

/// Where the new entries are written.
const NEW: &str = ".new-import";
/// Where the old ones wait until all new ones are in their places.
///
/// With [`NEW`] beside it, the exchange was not finished; alone, it was.
const OLD: &str = ".old-import";

/// A folder whose entries are being replaced, held against others who would do the same.
#[derive(Debug)]
pub(crate) struct Replacement<'a> {
    folder: &'a Path,
    names: &'a [&'a str],
    new: PathBuf,
    old: PathBuf,
    _held: File,
}

impl<'a> Replacement<'a> {
    /// Creates the folder where it is missing, waits for whoever else replaces entries of it, and finishes or takes
    /// back what a killed process left.
    pub(crate) fn begin(folder: &'a Path, names: &'a [&'a str]) -> Result<Self, FileError> {
        fs::create_dir_all(folder).map_err(FileError::of(folder, "create the folder"))?;
        let held = hold_folder(folder)?;
        let replacement = Self {
            folder,
            names,
            new: folder.join(NEW),
            old: folder.join(OLD),
            _held: held,
        };
        if is_there(&replacement.new) && is_there(&replacement.old) {
            replacement.take_back()?;
        }
        remove(&replacement.new)?;
        remove(&replacement.old)?;
        Ok(replacement)
    }

    /// Refuses a folder that is not empty and holds something else than an earlier `what`: other folders, too, have
    /// files of these names in them.
    pub(crate) fn refuse_something_else(
        &self,
        what: &'static str,
        is_earlier: bool,
    ) -> Result<(), NetbenchesError> {
        if is_earlier || entries(self.folder)?.is_empty() {
            return Ok(());
        }
        let dir = self.folder.to_owned();
        Err(NetbenchesError::SomethingElse { dir, what })
    }

    /// Has the new entries written into a folder of their own, and puts them in the places of the old.
    pub(crate) fn with(
        &self,
        write: impl FnOnce(&Path) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        let replaced = fs::create_dir(&self.new)
            .map_err(FileError::of(&self.new, "create the folder"))
            .and_then(|()| write(&self.new))
            .and_then(|()| sync_filesystem(&self.new))
            .and_then(|()| self.exchange());
        if let Err(error) = replaced {
            // The error says what matters; what stays behind is seen to by the next one.
            if !is_there(&self.old) || self.take_back().is_ok() {
                let _ = remove(&self.new);
            }
            return Err(error);
        }
        // From here on the new ones are those that count.
        fs::remove_dir(&self.new).map_err(FileError::of(&self.new, "remove the folder"))?;
        sync_folder(self.folder)?;
        remove(&self.old)
    }

    fn exchange(&self) -> Result<(), FileError> {
        fs::create_dir(&self.old).map_err(FileError::of(&self.old, "create the folder"))?;
        sync_folder(self.folder)?;
        for name in self.names {
            let target = self.folder.join(name);
            if is_there(&target) {
                rename(&target, &self.old.join(name))?;
            }
            rename(&self.new.join(name), &target)?;
        }
        sync_folder(self.folder)
    }

    /// Puts every entry back where it was before the exchange, however far that came.
    fn take_back(&self) -> Result<(), FileError> {
        for name in self.names {
            let (target, new, old) = (
                self.folder.join(name),
                self.new.join(name),
                self.old.join(name),
            );
            // All new ones were there when the exchange began: one that is not is in its place.
            if !is_there(&new) && is_there(&target) {
                rename(&target, &new)?;
            }
            if is_there(&old) {
                rename(&old, &target)?;
            }
        }
        sync_folder(self.folder)?;
        fs::remove_dir(&self.old).map_err(FileError::of(&self.old, "remove the folder"))
    }
}

/// Writes one of the new entries; all of them become durable together.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    fs::write(path, bytes).map_err(FileError::of(path, "write the file"))
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn rename(from: &Path, to: &Path) -> Result<(), FileError> {
    fs::rename(from, to).map_err(FileError::of(to, "rename the new entry to it"))
}

fn remove(folder: &Path) -> Result<(), FileError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result.map_err(FileError::of(folder, "remove the folder")),
    }
}

/// Many files are written and none of them synced before: one call makes all of them durable.
fn sync_filesystem(folder: &Path) -> Result<(), FileError> {
    File::open(folder)
        .and_then(|folder| fwdlab_sys::sync_filesystem(&folder))
        .map_err(FileError::of(folder, "sync the file system"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const NAMES: &[&str] = &["a", "b", "c"];

    fn write(text: &'static str) -> impl FnOnce(&Path) -> Result<(), FileError> {
        move |new| {
            for name in NAMES {
                fs::write(new.join(name), text).unwrap();
            }
            Ok(())
        }
    }

    fn content(folder: &Path) -> BTreeMap<String, String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        let content = entries.map(|entry| {
            let text = fs::read_to_string(entry.path()).unwrap_or_else(|_| "a folder".into());
            (entry.file_name().to_string_lossy().into_owned(), text)
        });
        content.collect()
    }

    fn all(text: &str) -> BTreeMap<String, String> {
        let entries = NAMES.iter().map(|name| (name.to_string(), text.to_owned()));
        entries.collect()
    }

    #[test]
    fn entries_are_replaced_together_and_nothing_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["first", "second"] {
            let replacement = Replacement::begin(folder.path(), NAMES).unwrap();
            replacement.with(write(text)).unwrap();
            assert_eq!(content(folder.path()), all(text));
        }
    }

    #[test]
    fn a_writer_that_fails_leaves_the_old_entries() {
        let folder = tempfile::tempdir().unwrap();
        let replacement = Replacement::begin(folder.path(), NAMES).unwrap();
        replacement.with(write("first")).unwrap();
        // The last one is missing, so that the exchange fails when two are in their places.
        let failed = replacement.with(|new| {
            write("second")(new)?;
            fs::remove_file(new.join("c")).unwrap();
            Ok(())
        });
        assert_eq!(failed.unwrap_err().action, "rename the new entry to it");
        assert_eq!(content(folder.path()), all("first"));
        let failed = replacement.with(|new| sync_filesystem(&new.join("nowhere")));
        assert!(failed.is_err());
        assert_eq!(content(folder.path()), all("first"));
    }

    #[test]
    fn a_first_writer_that_fails_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let replacement = Replacement::begin(folder.path(), NAMES).unwrap();
        let failed = replacement.with(|new| {
            fs::write(new.join("a"), "first").unwrap();
            Ok(())
        });
        assert!(failed.is_err());
        assert_eq!(content(folder.path()), BTreeMap::new());
    }

    /// Killed after so many of the steps that the exchange has.
    fn kill_after(steps: usize, folder: &Path) {
        let (new, old) = (folder.join(NEW), folder.join(OLD));
        fs::create_dir(&new).unwrap();
        write("new")(&new).unwrap();
        let mut left = steps;
        let mut step = |act: &dyn Fn() -> io::Result<()>| {
            if left > 0 {
                left -= 1;
                act().unwrap();
            }
        };
        step(&|| fs::create_dir(&old));
        for name in NAMES {
            step(&|| fs::rename(folder.join(name), old.join(name)));
            step(&|| fs::rename(new.join(name), folder.join(name)));
        }
        step(&|| fs::remove_dir(&new));
        step(&|| fs::remove_file(old.join("a")));
    }

    #[test]
    fn what_a_killed_process_left_is_finished_or_taken_back() {
        for steps in 0..=9 {
            let folder = tempfile::tempdir().unwrap();
            for name in NAMES {
                fs::write(folder.path().join(name), "old").unwrap();
            }
            kill_after(steps, folder.path());
            Replacement::begin(folder.path(), NAMES).unwrap();
            let expected = if steps < 8 { "old" } else { "new" };
            assert_eq!(content(folder.path()), all(expected), "{steps} steps");
        }
    }

    #[test]
    fn only_one_at_a_time_replaces_entries() {
        let folder = tempfile::tempdir().unwrap();
        let replacement = Replacement::begin(folder.path(), NAMES).unwrap();
        let other = File::open(folder.path()).unwrap();
        assert!(other.try_lock().is_err());
        drop(replacement);
        other.try_lock().unwrap();
    }
}
