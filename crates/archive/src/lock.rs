//! One run at a time in a directory.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use fwdlab_sys::durable::{create_folders, hold_folder};
use fwdlab_sys::{check_inside, give_to_caller};

use crate::error::ArchiveError;
use crate::input::input;
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
        if fs::symlink_metadata(&path).is_ok() {
            check_inside(&path, dir).map_err(ArchiveError::io(&path, "open the lock"))?;
        }
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(ArchiveError::io(&path, "open the lock"))?;
        give_to_caller(&file);
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(ArchiveError::Locked {
                    dir: dir.to_owned(),
                    pid: input(dir, &path)
                        .text()
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

/// The process that holds a directory for writing, as far as this machine sees; none where nobody does.
///
/// Reads only: to try the lock would keep a run that starts at that moment from taking it. A holder on
/// another machine that shares the directory is not seen.
#[must_use]
pub fn holder(dir: &Path) -> Option<u32> {
    let path = dir.join(layout::LOCK);
    let said: Option<u32> = input(dir, &path).text().ok()?.trim().parse().ok();
    let metadata = fs::metadata(&path).ok()?;
    let locks = fs::read_to_string("/proc/locks").ok()?;
    held_by(&locks, &listed_as(metadata.dev(), metadata.ino()), said)
}

/// How the kernel's list of locks names a file: device and inode.
fn listed_as(device: u64, inode: u64) -> String {
    // The numbers of a device as the C library packs them.
    let major = ((device >> 8) & 0xfff) | ((device >> 32) & !0xfff);
    let minor = (device & 0xff) | ((device >> 12) & !0xff);
    format!("{major:02x}:{minor:02x}:{inode}")
}

/// Who holds a file for writing, by the kernel's list of locks.
///
/// A lock of the process that the file names counts too: some file systems list other numbers than they
/// show.
fn held_by(locks: &str, file: &str, said: Option<u32>) -> Option<u32> {
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", pid, locked, ..] = fields[..] else {
            return None;
        };
        let pid: u32 = pid.parse().ok()?;
        (locked == file || said == Some(pid)).then_some(pid)
    })
}

/// Creates a folder and holds it. Another run may remove the folder, once empty, while this one waits for it; then it
/// is created again.
pub(crate) fn create_and_hold_folder(folder: &Path) -> Result<File, ArchiveError> {
    loop {
        create_folders(folder)?;
        let held = match hold_folder(folder) {
            Err(_) if !folder.exists() => continue,
            held => held?,
        };
        let inode = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        let is_same = fs::metadata(folder).is_ok_and(|there| {
            held.metadata()
                .is_ok_and(|metadata| inode(metadata) == inode(there))
        });
        if is_same {
            return Ok(held);
        }
    }
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

    #[test]
    fn whoever_reads_sees_the_holder_and_holds_nobody_up() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(holder(dir.path()), None);
        let held = DirectoryLock::acquire(dir.path()).unwrap();
        assert_eq!(holder(dir.path()), Some(std::process::id()));
        drop(held);
        assert_eq!(holder(dir.path()), None);
        DirectoryLock::acquire(dir.path()).unwrap();
    }

    #[test]
    fn the_kernels_list_of_locks_is_read() {
        let locks = "1: FLOCK  ADVISORY  WRITE 77 fe:00:1234 0 EOF\n\
                     1: -> FLOCK  ADVISORY  WRITE 78 fe:00:1234 0 EOF\n\
                     2: POSIX  ADVISORY  WRITE 79 fe:00:99 0 EOF\n\
                     3: FLOCK  ADVISORY  READ 80 fe:00:98 0 EOF\nrubbish\n";
        assert_eq!(held_by(locks, &listed_as(0xfe00, 1234), None), Some(77));
        assert_eq!(held_by(locks, "fe:00:5", Some(77)), Some(77));
        for (file, said) in [
            ("fe:01:1234", None),
            ("fe:00:99", None),
            ("fe:00:98", None),
            ("fe:00:5", Some(79)),
            ("fe:00:5", None),
        ] {
            assert_eq!(held_by(locks, file, said), None, "{file}");
        }
    }
}
