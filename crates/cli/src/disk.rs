//! The files of this machine, as experiments and labs are read from them.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use fwdlab_model::{Files, sha256, sha256_of};
use fwdlab_sys::{Input, check_inside};

/// More than any experiment, lab, ruleset or list of earlier observations has.
const TEXT_BYTES_MAX: u64 = 16 << 20;
/// More than any image has.
const IMAGE_BYTES_MAX: u64 = 16 << 30;
/// More than any folder of configuration files has, as labs read them.
const FOLDER_FILES_MAX: usize = 1000;
/// See [`FOLDER_FILES_MAX`]; of all files together.
const FOLDER_BYTES_MAX: u64 = 4 << 20;

/// This machine's disk.
pub(crate) struct Disk;

impl Files for Disk {
    fn text(&self, path: &Path) -> io::Result<String> {
        Input::file(path, TEXT_BYTES_MAX).text()
    }

    /// A file that lies below the folder of the one that names it, or that everybody may read.
    fn is_quotable(&self, path: &Path, named_by: &Path) -> bool {
        const READ_BY_OTHERS: u32 = 0o004;
        const ENTERED_BY_OTHERS: u32 = 0o001;
        let folder = named_by.parent().filter(|folder| *folder != Path::new(""));
        let is_below = check_inside(path, folder.unwrap_or(Path::new("."))).is_ok();
        let mode = |metadata: fs::Metadata| metadata.permissions().mode();
        let has =
            |path: &Path, right| fs::metadata(path).is_ok_and(|found| mode(found) & right != 0);
        let is_public = |path: &PathBuf| {
            let mut folders = path.ancestors().skip(1);
            has(path, READ_BY_OTHERS) && folders.all(|folder| has(folder, ENTERED_BY_OTHERS))
        };
        is_below || fs::canonicalize(path).is_ok_and(|path| is_public(&path))
    }

    /// Of a folder, that of a list of its files: mode, content and path of each.
    fn sha256(&self, path: &Path) -> io::Result<String> {
        let content = |path: &Path| sha256_of(Input::file(path, IMAGE_BYTES_MAX).open()?);
        if !path.is_dir() {
            return content(path);
        }
        let (mut files, mut bytes) = (Vec::new(), 0);
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
            bytes += metadata.len();
            if files.len() == FOLDER_FILES_MAX || bytes > FOLDER_BYTES_MAX {
                let what = format!(
                    "it holds more than {FOLDER_FILES_MAX} files or {} MiB; give a folder of configuration files",
                    FOLDER_BYTES_MAX >> 20
                );
                return Err(io::Error::other(what));
            }
            let content = if metadata.is_file() {
                content(&found)?
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
