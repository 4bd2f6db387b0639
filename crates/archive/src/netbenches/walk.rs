//! What is below a folder: every file once, in one order, whatever their names are.

use std::cmp::Reverse;
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
    /// Every regular file, in the order of their paths.
    pub(super) files: Vec<FoundFile>,
    /// What is there and is no regular file, or could not be looked at, in the same order.
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
    if apart.iter().any(|apart| apart == root) {
        return Ok(found);
    }
    let mut open = list(root, PathBuf::new(), 0, &mut found)?;
    while let Some(Entry {
        path,
        depth,
        metadata,
    }) = open.pop()
    {
        let reason = match metadata {
            Err(error) => Unwalked::Unreadable(error.kind()),
            Ok(metadata) if metadata.is_symlink() => Unwalked::SymbolicLink,
            Ok(metadata) if metadata.is_file() => {
                let bytes = metadata.len();
                found.files.push(FoundFile { path, bytes });
                continue;
            }
            Ok(metadata) if !metadata.is_dir() => Unwalked::NoRegularFile,
            Ok(_) if BOOKKEEPING.iter().any(|name| path.ends_with(name)) => Unwalked::Bookkeeping,
            Ok(_) if depth > DEPTH_MAX => Unwalked::TooDeep,
            Ok(_) if apart.contains(&root.join(&path)) => continue,
            Ok(_) => match list(root, path.clone(), depth, &mut found) {
                Ok(entries) => {
                    open.extend(entries);
                    continue;
                }
                Err(error) => Unwalked::Unreadable(error.kind()),
            },
        };
        found.others.push((path, reason));
    }
    Ok(found)
}

/// Something that was listed and not yet looked at.
struct Entry {
    /// Below the root.
    path: PathBuf,
    /// So many folders lie around it.
    depth: usize,
    metadata: io::Result<fs::Metadata>,
}

/// What lies in a folder, the last by name first, so that who takes the last one has them in order; nothing
/// where an import of ours wrote it.
fn list(root: &Path, folder: PathBuf, depth: usize, found: &mut Walk) -> io::Result<Vec<Entry>> {
    let mut entries = fs::read_dir(root.join(&folder))?.collect::<io::Result<Vec<_>>>()?;
    let is_imports = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        IMPORTED.iter().any(|imported| name == *imported)
    };
    if entries.iter().any(is_imports) {
        found.others.push((folder, Unwalked::Imported));
        return Ok(Vec::new());
    }
    entries.sort_by_cached_key(|entry| Reverse(entry.file_name()));
    Ok(entries
        .into_iter()
        .map(|entry| Entry {
            path: folder.join(entry.file_name()),
            depth: depth + 1,
            metadata: entry.metadata(),
        })
        .collect())
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
