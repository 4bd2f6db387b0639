//! The files of this machine, as experiments and labs are read from them.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use fwdlab_model::{Files, sha256, sha256_of};

/// This machine's disk.
pub(crate) struct Disk;

impl Files for Disk {
    fn text(&self, path: &Path) -> io::Result<String> {
        fs::read_to_string(path)
    }

    /// Of a folder, that of a list of its files: mode, content and path of each.
    fn sha256(&self, path: &Path) -> io::Result<String> {
        if !path.is_dir() {
            return sha256_of(File::open(path)?);
        }
        let mut files = Vec::new();
        let mut left: Vec<PathBuf> = vec![path.to_owned()];
        while let Some(found) = left.pop() {
            // What a link leads to lies elsewhere, and is not brought anywhere.
            let metadata = fs::symlink_metadata(&found)?;
            if metadata.is_dir() {
                for entry in fs::read_dir(&found)? {
                    left.push(entry?.path());
                }
                continue;
            }
            let content = if metadata.is_file() {
                sha256_of(File::open(&found)?)?
            } else {
                "no file".to_owned()
            };
            let mode = metadata.permissions().mode() & 0o777;
            let name = found.strip_prefix(path).unwrap_or(&found);
            files.push(format!("{mode:o} {content} {name:?}\n"));
        }
        files.sort();
        Ok(sha256(files.concat().as_bytes()))
    }
}

/// The first two paths that are one file. What is no file, or cannot be found, has no path to compare.
pub(crate) fn one_file_twice<P: AsRef<Path>>(paths: &[P]) -> Option<(&P, &P)> {
    let mut known: Vec<(PathBuf, &P)> = Vec::new();
    for path in paths {
        let Ok(canonical) = fs::canonicalize(path) else {
            continue;
        };
        if let Some((_, one)) = known.iter().find(|(known, _)| *known == canonical) {
            return Some((one, path));
        }
        known.push((canonical, path));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_another_when_anything_in_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let seen = || Disk.sha256(folder.path()).unwrap();
        let mut all = vec![seen()];
        let mut has_changed = || {
            let now = seen();
            let is_new = !all.contains(&now);
            all.push(now);
            is_new && seen() == *all.last().unwrap()
        };
        fs::create_dir(at("etc")).unwrap();
        fs::write(at("etc/rc.conf"), "a").unwrap();
        assert!(has_changed(), "a file");
        fs::write(at("etc/rc.conf"), "b").unwrap();
        assert!(has_changed(), "its content");
        fs::set_permissions(at("etc/rc.conf"), fs::Permissions::from_mode(0o600)).unwrap();
        assert!(has_changed(), "its mode");
        fs::rename(at("etc/rc.conf"), at("etc/rc.conf.misc")).unwrap();
        assert!(has_changed(), "its name");
        assert_eq!(
            Disk.sha256(&at("etc/rc.conf.misc")).unwrap(),
            sha256(b"b"),
            "a file is its content"
        );
        assert!(Disk.sha256(&at("none")).is_err());
    }
}
