//! Writing so that a crash at any moment leaves the old state or the new one, never half of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::caller::{create_folder, give_to_caller};
use crate::input::check_inside;

/// A file or a folder that the system does not let be used as it is to be.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot {action} ({source})", path.display())]
pub struct FileError {
    /// The file or folder.
    pub path: PathBuf,
    /// What was being done.
    pub action: &'static str,
    /// What the system said, or a [`Refusal`](crate::Refusal).
    pub source: io::Error,
}

impl FileError {
    /// The error of a system call on `path`; for `map_err`.
    pub fn of(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self {
            path,
            action,
            source,
        }
    }

    /// The same error, about the file that the user knows.
    #[must_use]
    pub fn about(self, path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            ..self
        }
    }
}

/// The mode of a file that everybody may read and write.
const FOR_ALL: u32 = 0o666;
/// That of one for its owner alone.
const FOR_OWNER: u32 = 0o600;

/// What the name of a file ends in while it is written.
const UNFINISHED: &str = ".tmp";

/// Makes a folder's entries durable: a new or renamed file is only there for good after this.
///
/// # Errors
/// What the system refuses.
pub fn sync_folder(folder: &Path) -> Result<(), FileError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(FileError::of(folder, "sync the folder"))
}

/// Creates a folder and those above it, as far as they are missing.
///
/// # Errors
/// What the system refuses.
pub fn create_folders(folder: &Path) -> Result<(), FileError> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = folder_of(folder);
    create_folders(above)?;
    match create_folder(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        result => {
            result.map_err(FileError::of(folder, "create the folder"))?;
            sync_folder(above)
        }
    }
}

/// Holds a folder while something in it is chosen, created or replaced, so that two processes that start together do not
/// choose the same; until what is returned is dropped.
///
/// It is the folder itself that is locked, so that no file stays behind.
///
/// # Errors
/// What the system refuses.
pub fn hold_folder(folder: &Path) -> Result<File, FileError> {
    let file = File::open(folder).map_err(FileError::of(folder, "open the folder"))?;
    file.lock()
        .map_err(FileError::of(folder, "lock the folder"))?;
    Ok(file)
}

/// A folder in a directory, created where it is missing.
///
/// # Errors
/// What the system refuses, and [`Refusal::Outside`](crate::Refusal::Outside) where it is a link that leads out of the
/// directory: nothing is written there.
pub fn own_folder(dir: &Path, name: &str) -> Result<PathBuf, FileError> {
    let folder = dir.join(name);
    create_folders(&folder)?;
    check_inside(&folder, dir).map_err(FileError::of(&folder, "use the folder"))?;
    Ok(folder)
}

/// Writes a new file whose folder nobody reads yet.
///
/// # Errors
/// What the system refuses.
pub fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    create_synced(path, bytes, FOR_ALL)
}

/// The same with who may read and write it, but for what the user's mask takes.
fn create_synced(path: &Path, bytes: &[u8], mode: u32) -> Result<(), FileError> {
    // A new file cannot be a link to another one.
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
        .and_then(|mut file| {
            give_to_caller(&file);
            file.write_all(bytes)?;
            file.sync_all()
        })
        .map_err(FileError::of(path, "write the file"))
}

/// The folder that something lies in.
#[must_use]
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(above) if above != Path::new("") => above,
        _ => Path::new("."),
    }
}

/// Writes or replaces a file as a whole: whoever reads it finds the old one or the new one.
///
/// # Errors
/// It cannot be written; what was there is there still.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    replace(path, bytes, FOR_ALL)
}

/// The same of a file that nobody but its owner may read.
///
/// # Errors
/// As of [`write_atomically`].
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    replace(path, bytes, FOR_OWNER)
}

fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), FileError> {
    let folder = folder_of(path);
    let name = path.file_name().unwrap_or_default();
    // The process is part of the name because reports of a finished run may be made twice at once.
    let unfinished = folder.join(format!(
        ".{}.{}{UNFINISHED}",
        name.display(),
        std::process::id()
    ));
    // Of a process that had this one's number.
    let _ = fs::remove_file(&unfinished);
    let written = create_synced(&unfinished, bytes, mode).and_then(|()| {
        fs::rename(&unfinished, path).map_err(FileError::of(path, "rename the new file"))
    });
    if let Err(error) = written {
        // The error says what matters; what stays behind is removed at the next opening.
        let _ = fs::remove_file(&unfinished);
        return Err(error.about(path));
    }
    sync_folder(folder)
}

/// Writes or replaces a file of the user's as a whole, through a link where it is one; to what is no
/// file, a terminal or a pipe, as it comes.
///
/// # Errors
/// What the system refuses.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let failed = |error| FileError::of(path, "write the file")(error);
    // A pipe has no path of its own behind that of a descriptor.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return fs::write(path, bytes).map_err(failed);
    }
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(_) => std::path::absolute(path).map_err(failed)?,
    };
    if target.file_name().is_none() || path.to_string_lossy().ends_with('/') {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    write_atomically(&target, bytes).map_err(|error| error.about(path))
}

/// Removes what [`write_atomically`] left in a folder when its process was killed, and nothing of a process that lives.
///
/// # Errors
/// What the system refuses.
pub fn remove_unfinished(folder: &Path) -> Result<(), FileError> {
    for path in entries(folder)? {
        if writer(&path).is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            fs::remove_file(&path).map_err(FileError::of(&path, "remove the file"))?;
        }
    }
    Ok(())
}

/// The process that an unfinished file is of, by its name; none of any other file.
fn writer(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    let (_, pid) = name
        .strip_suffix(UNFINISHED)?
        .strip_prefix('.')?
        .rsplit_once('.')?;
    let is_number = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(pid)
}

/// What lies in a folder, sorted; nothing where there is no such folder.
///
/// # Errors
/// What the system refuses.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    let listed = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
        listed => listed.and_then(|entries| {
            entries
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<io::Result<Vec<PathBuf>>>()
        }),
    };
    let mut paths = listed.map_err(FileError::of(folder, "list the folder"))?;
    paths.sort();
    Ok(paths)
}

/// A file that only ever grows, by whole durable pieces.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// What is known to be whole and durable; anything behind it is rubbish.
    length: u64,
}

impl Journal {
    /// Opens the file and cuts what stands behind `length`.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn open(path: &Path, length: u64) -> Result<Self, FileError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(FileError::of(path, "open the file"))?;
        let journal = Self {
            path: path.to_owned(),
            file,
            length,
        };
        journal
            .cut()
            .map_err(FileError::of(path, "cut the torn line"))?;
        Ok(journal)
    }

    /// Appends a piece; it is durable when this returns, and gone where it fails.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn append(&mut self, piece: &[u8]) -> Result<(), FileError> {
        let appended = self.cut().and_then(|()| {
            self.file.seek(SeekFrom::Start(self.length))?;
            self.file.write_all(piece)?;
            self.file.sync_all()
        });
        if let Err(error) = appended {
            // Where this fails too, the next append or the next opening cuts it.
            let _ = self.cut();
            return Err(FileError::of(&self.path, "append to the file")(error));
        }
        self.length += piece.len() as u64;
        Ok(())
    }

    /// Forgets the last bytes that were appended.
    pub fn take_back(&mut self, bytes: u64) {
        self.length = self.length.saturating_sub(bytes);
        // Where this fails, the next append or the next opening cuts it.
        let _ = self.cut();
    }

    fn cut(&self) -> io::Result<()> {
        if self.file.metadata()?.len() == self.length {
            return Ok(());
        }
        self.file.set_len(self.length)?;
        self.file.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_nothing_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("README.md");
        write_atomically(&path, b"a longer first text").unwrap();
        write_atomically(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(entries(folder.path()).unwrap(), [path]);
    }

    #[test]
    fn a_private_file_is_its_owners_also_where_it_was_everybodys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("forwarder.log");
        write_atomically(&path, b"first").unwrap();
        write_private(&path, b"second").unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read(&path).unwrap(), b"second");
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        // No process has the first number, and this one lives.
        let alive = format!(".3.csv.{}.tmp", std::process::id());
        for name in [
            ".3.csv.99999999.tmp",
            &alive,
            ".keep",
            "3.csv",
            "notes.tmp",
            ".x.tmp",
        ] {
            fs::write(folder.path().join(name), b"").unwrap();
        }
        remove_unfinished(folder.path()).unwrap();
        let left: Vec<_> = entries(folder.path())
            .unwrap()
            .iter()
            .map(|path| path.file_name().unwrap().to_owned())
            .collect();
        assert_eq!(left, [&*alive, ".keep", ".x.tmp", "3.csv", "notes.tmp"]);
    }

    #[test]
    fn a_link_in_the_place_of_an_unfinished_file_is_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("others"), b"theirs").unwrap();
        let unfinished = format!(".README.md.{}.tmp", std::process::id());
        std::os::unix::fs::symlink("others", at(&unfinished)).unwrap();
        write_atomically(&at("README.md"), b"ours").unwrap();
        assert_eq!(fs::read(at("README.md")).unwrap(), b"ours");
        assert_eq!(fs::read(at("others")).unwrap(), b"theirs");
    }

    #[test]
    fn a_journal_starts_by_cutting_what_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trials.jsonl");
        fs::write(&path, b"whole\ntorn").unwrap();
        let mut journal = Journal::open(&path, 6).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole\n");
        // Something that a failed append left behind.
        OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"rubbish")
            .unwrap();
        journal.append(b"next\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole\nnext\n");
        journal.take_back(5);
        assert_eq!(fs::read(&path).unwrap(), b"whole\n");
    }

    #[test]
    fn folders_are_created_with_those_above() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b/c");
        create_folders(&folder).unwrap();
        create_folders(&folder).unwrap();
        assert!(folder.is_dir());
        fs::write(root.path().join("file"), b"").unwrap();
        let error = create_folders(&root.path().join("file/x")).unwrap_err();
        assert_eq!(error.action, "create the folder", "{error}");
    }
}
