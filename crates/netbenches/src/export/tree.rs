//! Writing files below a folder, all or nothing, and nowhere else.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use fwdlab_sys::Input;
use fwdlab_sys::durable::FileError;

use super::ExportError;

/// Writes the files, whose paths are relative and plain; `fresh` is a folder that has to be new.
pub(super) fn write(
    to: &Path,
    fresh: &Path,
    files: &BTreeMap<PathBuf, Vec<u8>>,
) -> Result<(), ExportError> {
    let path = to.join(fresh);
    if fs::symlink_metadata(&path).is_ok() {
        return Err(ExportError::Exists { path });
    }
    let mut written = Written::default();
    let result = write_files(to, files, &mut written);
    if result.is_err() {
        written.undo();
    }
    result
}

fn write_files(
    to: &Path,
    files: &BTreeMap<PathBuf, Vec<u8>>,
    written: &mut Written,
) -> Result<(), ExportError> {
    // The folder itself may be a link: its user named it.
    fs::create_dir_all(to).map_err(FileError::of(to, "create the folder"))?;
    for (path, bytes) in files {
        create_folders(to, path.parent().unwrap_or(Path::new("")), written)?;
        create_file(&to.join(path), bytes, written)?;
    }
    Ok(())
}

fn create_folders(to: &Path, folders: &Path, written: &mut Written) -> Result<(), ExportError> {
    let mut path = to.to_owned();
    for component in folders.components() {
        path.push(component);
        if !matches!(component, Component::Normal(_)) {
            return Err(ExportError::NoFolder { path });
        }
        match fs::create_dir(&path) {
            Ok(()) => written.folders.push(path.clone()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let is_folder = fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
                if !is_folder {
                    return Err(ExportError::NoFolder { path });
                }
            }
            Err(error) => return Err(FileError::of(&path, "create the folder")(error).into()),
        }
    }
    Ok(())
}

fn create_file(path: &Path, bytes: &[u8], written: &mut Written) -> Result<(), ExportError> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => {
            written.files.push(path.to_owned());
            file.write_all(bytes)
                .and_then(|()| file.sync_all())
                .map_err(FileError::of(path, "write the file"))?;
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
            let there = Input::file(path, bytes.len() as u64).bytes();
            if is_file && there.is_ok_and(|found| found == bytes) {
                return Ok(());
            }
            Err(ExportError::Exists {
                path: path.to_owned(),
            })
        }
        Err(error) => Err(FileError::of(path, "create the file")(error).into()),
    }
}

/// What was made, in order.
#[derive(Default)]
struct Written {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

impl Written {
    /// Takes it back; the error that made this necessary says what matters.
    fn undo(&self) {
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
        for folder in self.folders.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}
