//! What is below a folder: every file once, in one order, whatever their names are.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fwdlab_sys::parallel::{FEW, parallel};

use crate::file::{Outcome, Skip};
use crate::folder::is_raw;
use crate::imported::is_mark_of_import;
use crate::log_name::BenchName;

/// How deep folders may lie in each other; the public archive has 10.
const DEPTH_MAX: usize = 64;
/// What is said of a folder around which so many lie.
const TOO_DEEP: &str = "folders lie too deep in each other; give a folder further down";

/// Folders that hold a tool's own bookkeeping, not results.
const BOOKKEEPING: &[&str] = &[".git", ".hg", ".svn"];

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// Every regular file below the root, not yet opened, in the order of their paths.
    pub(super) files: Vec<PathBuf>,
    /// What is there and is no regular file, or could not be looked at, in the same order.
    pub(super) others: Vec<(PathBuf, Outcome)>,
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
    let entries = list(root, PathBuf::new(), 0, &mut found)?;
    for part in parallel(&entries, FEW, |entry| below(root, entry.clone(), apart)) {
        found.files.extend(part.files);
        found.others.extend(part.others);
    }
    Ok(found)
}

/// Whether files of a bench lie in a folder, or in one of it that logs are put into.
#[must_use]
pub fn holds_bench(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name());
    names.any(|name| {
        BenchName::parse(&name.to_string_lossy()).is_some()
            || (is_raw(Path::new(&name)) && holds_bench(&folder.join(&name)))
    })
}

/// An entry, and everything below it.
fn below(root: &Path, entry: Entry, apart: &[PathBuf]) -> Walk {
    let mut found = Walk::default();
    let mut open = vec![entry];
    while let Some(Entry { path, depth, kind }) = open.pop() {
        let outcome = match kind {
            Err(error) => Outcome::unreadable(error),
            Ok(kind) if kind.is_symlink() => Outcome::Skipped(Skip::SymbolicLink),
            Ok(kind) if kind.is_file() => {
                found.files.push(path);
                continue;
            }
            Ok(kind) if !kind.is_dir() => Outcome::Skipped(Skip::NoRegularFile),
            Ok(_) if BOOKKEEPING.iter().any(|name| path.ends_with(name)) => {
                Outcome::Skipped(Skip::Bookkeeping)
            }
            Ok(_) if depth > DEPTH_MAX => Outcome::unreadable(TOO_DEEP),
            Ok(_) if apart.contains(&root.join(&path)) => continue,
            Ok(_) => match list(root, path.clone(), depth, &mut found) {
                Ok(entries) => {
                    // The first by name is the next to be looked at.
                    open.extend(entries.into_iter().rev());
                    continue;
                }
                Err(error) => Outcome::unreadable(error.kind()),
            },
        };
        found.others.push((path, outcome));
    }
    found
}

/// Something that was listed and not yet looked at.
#[derive(Clone)]
struct Entry {
    /// Below the root.
    path: PathBuf,
    /// So many folders lie around it.
    depth: usize,
    kind: Result<fs::FileType, io::ErrorKind>,
}

/// What lies in a folder, by name; nothing where an import of ours wrote it.
fn list(root: &Path, folder: PathBuf, depth: usize, found: &mut Walk) -> io::Result<Vec<Entry>> {
    // The listing tells what is a folder; to ask for each file would take longer than to list them.
    let mut entries = fs::read_dir(root.join(&folder))?
        .map(|entry| entry.map(|entry| (entry.file_name(), entry.file_type())))
        .collect::<io::Result<Vec<_>>>()?;
    let is_import = |name: &OsStr| is_mark_of_import(&root.join(&folder), name);
    if entries.iter().any(|(name, _)| is_import(name)) {
        found
            .others
            .push((folder, Outcome::Skipped(Skip::Imported)));
        return Ok(Vec::new());
    }
    entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    Ok(entries
        .into_iter()
        .map(|(name, kind)| Entry {
            path: folder.join(name),
            depth: depth + 1,
            kind: kind.map_err(|error| error.kind()),
        })
        .collect())
}

#[cfg(test)]
mod tests {
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
        assert_eq!(found.files, [Path::new("a/b.pps")]);
        let others: Vec<_> = found
            .others
            .iter()
            .map(|(path, why)| (path.to_str().unwrap(), why.clone()))
            .collect();
        assert_eq!(
            others,
            [
                ("a/.git", Skip::Bookkeeping),
                ("a/loop", Skip::SymbolicLink),
                ("dangling", Skip::SymbolicLink),
                ("socket", Skip::NoRegularFile),
            ]
            .map(|(path, skip)| (path, Outcome::Skipped(skip)))
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
            .map(|file| file.as_os_str().as_bytes())
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
        assert_eq!(found.others[0].1, Outcome::unreadable(TOO_DEEP));
    }

    #[test]
    fn what_an_import_has_written_is_not_read_as_published() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("out/results")).unwrap();
        fs::write(folder.path().join("out/results/a.pps"), "1\n").unwrap();
        let account = r#"{"schema":1,"root":"a","files":{"read":1,"skipped":0,"failed":0},"folders":1,"runs":0}"#;
        for (text, is_import) in [
            (account, true),
            (r#"{"schema":99}"#, true),
            ("{}", false),
            ("another's", false),
        ] {
            fs::write(folder.path().join("out/import.json"), text).unwrap();
            let found = walk(folder.path(), &[]).unwrap();
            assert_eq!(found.files.is_empty(), is_import, "{text}");
            let outcome = (PathBuf::from("out"), Outcome::Skipped(Skip::Imported));
            assert_eq!(found.others.contains(&outcome), is_import, "{text}");
        }
    }

    #[test]
    fn a_root_that_is_not_there_is_an_error() {
        let error = walk(Path::new("no such folder"), &[]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
