//! One run at a time in a directory.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::path::Path;

use crate::error::ArchiveError;
use crate::layout;

/// A directory held by this process, until it is dropped or the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    /// Takes the directory, and writes into its lock file who has it.
    pub(crate) fn acquire(dir: &Path) -> Result<Self, ArchiveError> {
        let path = dir.join(layout::LOCK);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(ArchiveError::io(&path, "open the lock"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(ArchiveError::Locked {
                    dir: dir.to_owned(),
                    pid: fs::read_to_string(&path)
                        .ok()
                        .and_then(|text| text.trim().parse().ok()),
                });
            }
            Err(TryLockError::Error(error)) => {
                return Err(ArchiveError::io(&path, "lock the directory")(error));
            }
        }
        file.set_len(0)
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(ArchiveError::io(&path, "write the lock"))?;
        Ok(Self { _file: file })
    }
}

/// Holds a folder while a directory in it is chosen or created, so that two runs that start
/// together do not choose the same.
///
/// It is the folder itself that is locked, so that no file stays behind.
pub(crate) fn hold_folder(folder: &Path) -> Result<File, ArchiveError> {
    let file = File::open(folder).map_err(ArchiveError::io(folder, "open the folder"))?;
    file.lock()
        .map_err(ArchiveError::io(folder, "lock the folder"))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_held_once_and_says_by_whom() {
        let dir = tempfile::tempdir().unwrap();
        let held = DirectoryLock::acquire(dir.path()).unwrap();
        match DirectoryLock::acquire(dir.path()) {
            Err(ArchiveError::Locked { pid, .. }) => assert_eq!(pid, Some(std::process::id())),
            other => panic!("{other:?}"),
        }
        drop(held);
        DirectoryLock::acquire(dir.path()).unwrap();
    }

    #[test]
    fn a_lock_file_of_a_dead_run_holds_nobody_up() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(layout::LOCK);
        fs::write(&path, "4000000000 and more\n").unwrap();
        let _held = DirectoryLock::acquire(dir.path()).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("{}\n", std::process::id()));
    }
}
