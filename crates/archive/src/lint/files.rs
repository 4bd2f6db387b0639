//! Finding results directories, and the files in them that are none of the format's.

use std::fs::{self, FileType};
use std::io;
use std::path::{Path, PathBuf};

use fwdlab_sys::parallel::{FEW, parallel};

use crate::error::ArchiveError;
use crate::layout::{self, name_in};

use super::{Evidence, Finding, HOSTILE_NAME, UNKNOWN_FILE, UNREADABLE};

/// What was found below a folder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Search {
    /// The results directories, sorted.
    pub directories: Vec<PathBuf>,
    /// The folders of imported results, sorted. One may lie in another.
    pub imported: Vec<PathBuf>,
    /// What kept parts of it from being searched.
    pub findings: Vec<Finding>,
}

/// Looks for results directories in a folder, which may be one itself.
///
/// Symbolic links are not followed, so that no loop can be entered; what begins with a dot is passed over.
///
/// # Errors
/// [`ArchiveError::Io`] where the folder itself cannot be listed.
pub fn search(root: &Path) -> Result<Search, ArchiveError> {
    let mut found = Search::default();
    let folders = found
        .look(root)
        .map_err(ArchiveError::io(root, "list the folder"))?;
    for part in parallel(&folders, FEW, |folder| below(root, folder.clone())) {
        found.directories.extend(part.directories);
        found.imported.extend(part.imported);
        found.findings.extend(part.findings);
    }
    found.directories.sort();
    found.imported.sort();
    Ok(found)
}

/// What is found in a folder below the root.
fn below(root: &Path, folder: PathBuf) -> Search {
    let mut found = Search::default();
    let mut open = vec![folder];
    while let Some(folder) = open.pop() {
        match found.look(&folder) {
            Ok(folders) => open.extend(folders),
            Err(error) => {
                let name = name_in(root, &folder);
                let sentence = format!("the folder {name} cannot be read: {error}");
                found.findings.push(
                    Finding::new(&UNREADABLE, root, sentence).published(&folder, error.to_string()),
                );
            }
        }
    }
    found
}

impl Search {
    /// Notes what a folder is, and returns the folders in it that are to be searched, sorted.
    fn look(&mut self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let mut folders = Vec::new();
        let mut is_imported = false;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            // One of these two files is enough: the other may be what is missing.
            if name == layout::RESOLVED || name == layout::TRIALS {
                self.directories.push(folder.to_owned());
                return Ok(Vec::new());
            }
            is_imported |= name == layout::IMPORTED;
            let is_hidden = name.as_encoded_bytes().starts_with(b".");
            if entry.file_type()?.is_dir() && !is_hidden {
                folders.push(folder.join(name));
            }
        }
        if is_imported {
            self.imported.push(folder.to_owned());
        }
        folders.sort();
        Ok(folders)
    }
}

/// What lies in a folder, and of what type it is, sorted.
fn entries(folder: &Path) -> io::Result<Vec<(PathBuf, FileType)>> {
    let mut entries = fs::read_dir(folder)?
        .map(|entry| {
            let entry = entry?;
            Ok((entry.path(), entry.file_type()?))
        })
        .collect::<io::Result<Vec<_>>>()?;
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(entries)
}

/// Files of a results directory that are not the format's, and names that act.
///
/// `.pps` files are left to the rules on numbers, `derived/` to those on reports.
pub(super) fn lint_files(directory: &Path, findings: &mut Vec<Finding>) {
    for (folder, is_known) in [
        ("", is_known_at_top as fn(&str) -> bool),
        (layout::SESSIONS, layout::is_session),
        (layout::BLOCKS, layout::is_slices),
        (layout::PROFILES, layout::is_profile),
        (layout::DERIVED, |_| true),
    ] {
        let path = directory.join(folder);
        let found = entries(&path).unwrap_or_else(|error| {
            // One that is not there is said where its files are missed.
            if error.kind() != io::ErrorKind::NotFound {
                let name = name_in(directory, &path);
                let sentence = format!("the folder {name} cannot be listed: {error}");
                let finding = Finding::new(&UNREADABLE, directory, sentence);
                findings.push(finding.published(&path, error.to_string()));
            }
            Vec::new()
        });
        for (path, kind) in found {
            let Some(name) = path.file_name() else {
                continue;
            };
            let shown = name_in(directory, &path);
            let evidence = |says: &str| Evidence::published(&path, None, says);
            match name.to_str() {
                Some(text) if !text.chars().any(acts) => {
                    let what = if kind.is_symlink() {
                        Some("a symbolic link")
                    } else if folder == layout::DERIVED && kind.is_dir() {
                        Some("a folder, which was not looked into")
                    } else if text == layout::LOCK && !kind.is_file() {
                        Some("no regular file")
                    } else if is_known(text) {
                        None
                    } else {
                        Some(kind_of_stranger(text))
                    };
                    findings.extend(what.map(|what| {
                        let sentence = format!("{shown} is {what}");
                        Finding::new(&UNKNOWN_FILE, directory, sentence).with(evidence(what))
                    }));
                }
                _ => {
                    let says = format!("{name:?}");
                    let sentence = format!("the name {says} is not one to be shown as it is");
                    findings.push(
                        Finding::new(&HOSTILE_NAME, directory, sentence).with(evidence(&says)),
                    );
                }
            }
        }
    }
}

fn kind_of_stranger(name: &str) -> &'static str {
    if name.starts_with('.') && name.ends_with(".tmp") {
        "left by a process that was killed while writing it, and means nothing"
    } else {
        "none of the format's files"
    }
}

fn is_known_at_top(name: &str) -> bool {
    let known = [
        layout::EXPERIMENT,
        layout::RESOLVED,
        layout::PLAN,
        layout::TRIALS,
        layout::CHAIN,
        layout::LOCK,
        layout::FINISHED,
        layout::README,
        layout::SESSIONS,
        layout::BLOCKS,
        layout::PROFILES,
        layout::DERIVED,
    ];
    known.contains(&name) || name.ends_with(layout::OBSERVATIONS)
}

/// Whether a character acts on a terminal or on the text around it.
#[must_use]
pub fn acts(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{061c}' | '\u{feff}')
}
