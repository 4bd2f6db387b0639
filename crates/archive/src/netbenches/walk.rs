//! What is below a folder: every file once, in one order, whatever their names are.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// How deep folders may lie in each other; the public archive has 10.
const DEPTH_MAX: usize = 64;

/// Folders that hold a tool's own bookkeeping, not results.
const BOOKKEEPING: &[&str] = &[".git", ".hg", ".svn"];

/// What lies in folders that an import made.
const IMPORTED: &[&str] = &["import.json", "imported.json"];

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// Every regular file, by its path below the root, in the order of their bytes.
    pub(super) files: Vec<FoundFile>,
    /// What is there and is no regular file, or could not be looked at.
    pub(super) others: Vec<(PathBuf, Unwalked)>,
}

/// A file, not yet opened.
#[derive(Debug)]
pub(super) struct FoundFile {
    /// Below the root.
    pub(super) path: PathBuf,
    /// Its length when it was found.
    pub(super) bytes: u64,
}

/// Why something was not gone into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unwalked {
    /// It may lead out of the tree, or round in it.
    SymbolicLink,
    /// A socket, a pipe or a device.
    NoRegularFile,
    /// `.git` and the like.
    Bookkeeping,
    /// What an import of ours has written.
    Imported,
    /// [`DEPTH_MAX`] folders lie around it.
    TooDeep,
    /// What the system said.
    Unreadable(io::ErrorKind),
}

/// Everything below `root` that is not in one of the folders `apart`; a symbolic link is followed for `root`
/// alone.
///
/// # Errors
/// What the system says where `root` itself cannot be listed.
pub(super) fn walk(root: &Path, apart: &[PathBuf]) -> io::Result<Walk> {
    let mut found = Walk::default();
    // The next folder is the last one: a folder's own go in backwards.
    let mut folders = vec![(PathBuf::new(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        if apart.contains(&root.join(&folder)) {
            continue;
        }
        let mut entries = match list(&root.join(&folder)) {
            Ok(entries) => entries,
            Err(error) if folder.as_os_str().is_empty() => return Err(error),
            Err(error) => {
                found
                    .others
                    .push((folder, Unwalked::Unreadable(error.kind())));
                continue;
            }
        };
        if entries.iter().any(|entry| {
            let name = entry.file_name();
            IMPORTED.iter().any(|imported| name == *imported)
        }) {
            found.others.push((folder, Unwalked::Imported));
            continue;
        }
        entries.sort_by_key(fs::DirEntry::file_name);
        let mut below = Vec::new();
        for entry in entries {
            let path = folder.join(entry.file_name());
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                Err(error) => {
                    found
                        .others
                        .push((path, Unwalked::Unreadable(error.kind())));
                    continue;
                }
            };
            let reason = if metadata.is_symlink() {
                Unwalked::SymbolicLink
            } else if metadata.is_file() {
                found.files.push(FoundFile {
                    path,
                    bytes: metadata.len(),
                });
                continue;
            } else if !metadata.is_dir() {
                Unwalked::NoRegularFile
            } else if BOOKKEEPING.iter().any(|name| entry.file_name() == *name) {
                Unwalked::Bookkeeping
            } else if depth == DEPTH_MAX {
                Unwalked::TooDeep
            } else {
                below.push((path, depth + 1));
                continue;
            };
            found.others.push((path, reason));
        }
        folders.extend(below.into_iter().rev());
    }
    found.files.sort_by(|a, b| a.path.cmp(&b.path));
    found.others.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

fn list(folder: &Path) -> io::Result<Vec<fs::DirEntry>> {
    fs::read_dir(folder)?.collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_pipes_and_bookkeeping_are_named_and_not_gone_into() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("a/.git")).unwrap();
        fs::write(root.join("a/.git/config"), "").unwrap();
        fs::write(root.join("a/b.pps"), "1\n").unwrap();
        symlink(root, root.join("a/loop")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        let socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
        let found = walk(root, &[]).unwrap();
        drop(socket);
        let files: Vec<_> = found.files.iter().map(|file| &file.path).collect();
        assert_eq!(files, [Path::new("a/b.pps")]);
        let others: Vec<_> = found
            .others
            .iter()
            .map(|(path, why)| (path.to_str().unwrap(), why.clone()))
            .collect();
        assert_eq!(
            others,
            [
                ("a/.git", Unwalked::Bookkeeping),
                ("a/loop", Unwalked::SymbolicLink),
                ("dangling", Unwalked::SymbolicLink),
                ("socket", Unwalked::NoRegularFile),
            ]
        );
    }

    #[test]
    fn names_are_bytes_and_sorted_as_such() {
        let folder = tempfile::tempdir().unwrap();
        let names: [&[u8]; 5] = [b"\n", b"-rf", b"\xe2\x80\xaeogp", b"\xff", b"\"'"];
        for name in names {
            fs::write(folder.path().join(OsStr::from_bytes(name)), "x").unwrap();
        }
        let found = walk(folder.path(), &[]).unwrap();
        let found: Vec<&[u8]> = found
            .files
            .iter()
            .map(|file| file.path.as_os_str().as_bytes())
            .collect();
        assert_eq!(
            found,
            [
                b"\n".as_slice(),
                b"\"'",
                b"-rf",
                b"\xe2\x80\xaeogp",
                b"\xff"
            ]
        );
    }

    #[test]
    fn folders_in_folders_without_end_are_left_at_a_depth() {
        let folder = tempfile::tempdir().unwrap();
        let deep: PathBuf = (0..DEPTH_MAX + 2).map(|_| "d").collect();
        fs::create_dir_all(folder.path().join(&deep)).unwrap();
        fs::write(folder.path().join(deep).join("file"), "").unwrap();
        let found = walk(folder.path(), &[]).unwrap();
        assert!(found.files.is_empty());
        assert_eq!(found.others[0].1, Unwalked::TooDeep);
    }

    #[test]
    fn what_an_import_has_written_is_not_read_as_published() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("out/results")).unwrap();
        fs::write(folder.path().join("out/import.json"), "{}").unwrap();
        fs::write(folder.path().join("out/results/a.pps"), "1\n").unwrap();
        let found = walk(folder.path(), &[]).unwrap();
        assert!(found.files.is_empty());
        assert_eq!(found.others, [(PathBuf::from("out"), Unwalked::Imported)]);
    }

    #[test]
    fn a_root_that_is_not_there_is_an_error() {
        let error = walk(Path::new("no such folder"), &[]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
