//! Sets of configuration files that a FreeBSD host has while it boots.
//!
//! A set may hold keys: no message and no record has any of what stands in its files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use fwdlab_model::{Upload, Variant};
use fwdlab_sys::Input;

use super::Mechanism;
use super::by_level::ByLevel;
use super::question::{Answers, Question};
use super::step::{BootChoice, owned};
use crate::{LabError, Moved};

/// Where the loader finds an owner's tunables.
pub(crate) const LOADER_CONFIGURATION: &str = "/boot/loader.conf.local";

/// More is no set of configuration files.
const FILES_MAX: usize = 1000;
const BYTES_MAX: u64 = 4 << 20;

/// A file of a set.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SetFile {
    pub(crate) text: String,
    pub(crate) mode: u32,
}

impl std::fmt::Debug for SetFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes, mode {:o}", self.text.len(), self.mode)
    }
}

/// The files of a set, by where they lie on the host.
pub(crate) type ConfigSet = BTreeMap<String, SetFile>;

/// Reads a set's folder. Links are not followed, so that nothing from elsewhere gets to a host.
///
/// # Errors
/// `File` where something of it cannot be read, or is no file of text.
pub(crate) fn read_set(folder: &Path) -> Result<ConfigSet, LabError> {
    let mut set = ConfigSet::new();
    let mut bytes = 0;
    let mut left: Vec<(PathBuf, String)> = vec![(folder.to_owned(), String::new())];
    while let Some((path, on_host)) = left.pop() {
        let failed = |source| LabError::file("reading", &path, source);
        let wrong = |why: &str| Err(failed(io::Error::other(why.to_owned())));
        let metadata = fs::symlink_metadata(&path).map_err(failed)?;
        if metadata.is_dir() {
            for entry in fs::read_dir(&path).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let Ok(name) = entry.file_name().into_string() else {
                    return wrong("names in a set of configuration files have to be UTF-8");
                };
                left.push((entry.path(), format!("{on_host}/{name}")));
            }
            continue;
        }
        if !metadata.is_file() {
            return wrong("a set of configuration files holds files and folders only, no links");
        }
        bytes += metadata.len();
        if set.len() >= FILES_MAX || bytes > BYTES_MAX {
            return wrong(
                "this is more than a set of configuration files: 1000 files of 4 MiB at the most",
            );
        }
        let Ok(text) = String::from_utf8(Input::file(&path, BYTES_MAX).bytes().map_err(failed)?)
        else {
            return wrong("the files of a set have to be text in UTF-8");
        };
        let mode = metadata.permissions().mode() & 0o755;
        set.insert(on_host, SetFile { text, mode });
    }
    if set.is_empty() {
        let why = "a set of configuration files holds at least one";
        return Err(LabError::file("reading", folder, io::Error::other(why)));
    }
    Ok(set)
}

/// Which set a host has.
pub(super) struct Configs {
    folders: ByLevel<Upload>,
    sets: BTreeMap<PathBuf, ConfigSet>,
}

impl Configs {
    pub(super) fn new(
        factor: &str,
        folders: &BTreeMap<String, Upload>,
        sets: &BTreeMap<PathBuf, ConfigSet>,
    ) -> Self {
        Self {
            folders: ByLevel::of_factor(factor, folders),
            sets: sets.clone(),
        }
    }

    /// The files of the variant's set that are on the host as they are in the set: the loader's has tunables behind it.
    fn files(&self, variant: &Variant) -> Result<Vec<(&String, &SetFile)>, LabError> {
        let upload = self.folders.get(variant)?;
        let set = upload.and_then(|upload| self.sets.get(&upload.found));
        let files = set.into_iter().flatten();
        Ok(files
            .filter(|(path, _)| *path != LOADER_CONFIGURATION)
            .collect())
    }
}

/// What tells a file's SHA-256.
fn hash_of(path: &str) -> Vec<String> {
    owned(&["sha256", "-q", path])
}

impl Mechanism for Configs {
    fn boot(&self, variant: &Variant, choice: &mut BootChoice) -> Result<(), LabError> {
        if let Some(upload) = self.folders.get(variant)? {
            choice.configs = Some(upload.found.clone());
        }
        Ok(())
    }

    fn reads(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        let files = self.files(variant)?.into_iter();
        Ok(files
            .map(|(path, _)| Question::maybe(hash_of(path)))
            .collect())
    }

    fn moved(&mut self, variant: &Variant, answers: &Answers) -> Result<Option<Moved>, LabError> {
        let moved = self.files(variant)?.into_iter().find(|(path, file)| {
            let asked = fwdlab_model::sha256(file.text.as_bytes());
            answers.get(&hash_of(path)) != Some(&asked)
        });
        Ok(moved.map(|(path, _)| {
            Moved(format!(
                "{path} is not that of its set of configuration files"
            ))
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_set_is_read_and_nothing_from_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert!(read_set(folder.path()).is_err());
        fs::create_dir(at("etc")).unwrap();
        fs::write(at("etc/rc.conf"), "gateway_enable=YES\n").unwrap();
        let set = read_set(folder.path()).unwrap();
        assert_eq!(set.keys().collect::<Vec<_>>(), ["/etc/rc.conf"]);
        assert!(!format!("{set:?}").contains("gateway"));
        symlink("/etc/passwd", at("etc/passwd")).unwrap();
        let error = read_set(folder.path()).unwrap_err().to_string();
        assert!(
            error.contains("etc/passwd") && error.contains("links"),
            "{error}"
        );
        fs::remove_file(at("etc/passwd")).unwrap();
        fs::write(at("etc/key"), [0xff, 0xfe]).unwrap();
        assert!(read_set(folder.path()).is_err());
    }
}
