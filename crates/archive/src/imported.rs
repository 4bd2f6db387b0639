//! What was imported, on disk: a folder of `imported.json`, `runs.jsonl` and `.pps` files for each folder of
//! results, and an account of every file.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};

use fwdlab_model::imported::{IMPORT_SCHEMA_VERSION, ImportedResults, ImportedRun};
use serde::{Deserialize, Serialize};

use crate::durable::write_atomically;
use crate::error::{ArchiveError, Place};
use crate::load::{parse_json, read_json};
use crate::netbenches::{ArchiveTree, Imported, imported_file};

/// Whose folder it is, and what became of the files: written last.
const ACCOUNT: &str = "import.json";
/// One line a file of the archive.
const FILES: &str = "files.jsonl";
/// Below it lie the folders, as in the archive.
const RESULTS: &str = "results";
/// One folder of results.
const IMPORTED: &str = "imported.json";
/// One line a run.
const RUNS: &str = "runs.jsonl";

/// `import.json`: what an import was made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportAccount {
    /// [`IMPORT_SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// Where the archive was.
    pub root: String,
    /// How many files were read, left for a reason, and wrong.
    pub files: FileCounts,
    /// How many folders of results there are.
    pub folders: usize,
    /// How many runs there are in them.
    pub runs: usize,
}

/// How many files of an archive became what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCounts {
    /// Read.
    pub read: usize,
    /// Left for a reason that is no fault of theirs.
    pub skipped: usize,
    /// Not what they should be.
    pub failed: usize,
}

impl ImportAccount {
    /// Counts a tree and what was made of it.
    #[must_use]
    pub fn of(tree: &ArchiveTree, imported: &[Imported]) -> Self {
        let mut files = FileCounts::default();
        for file in &tree.files {
            match file.outcome {
                crate::netbenches::Outcome::Read(_) => files.read += 1,
                crate::netbenches::Outcome::Skipped(_) => files.skipped += 1,
                crate::netbenches::Outcome::Failed(_) => files.failed += 1,
            }
        }
        Self {
            schema: IMPORT_SCHEMA_VERSION,
            root: tree.root.to_string_lossy().into_owned(),
            files,
            folders: imported.len(),
            runs: imported.iter().map(|folder| folder.runs.len()).sum(),
        }
    }
}

/// Writes an import below `out`: into a new or empty folder, or in place of an earlier import, which stays
/// whole until the new one is.
///
/// # Errors
/// What the system refuses, and a folder that holds something else.
pub fn write_import(
    out: &Path,
    tree: &ArchiveTree,
    imported: &[Imported],
) -> Result<ImportAccount, ArchiveError> {
    fs::create_dir_all(out).map_err(ArchiveError::io(out, "create the folder"))?;
    let account_path = out.join(ACCOUNT);
    if !account_path.exists() && holds_something_else(out)? {
        return Err(ArchiveError::OtherForm {
            place: Place::file(out),
            what: "holds something that is no earlier import; give a new folder".into(),
        });
    }
    let own = std::process::id();
    let (new, old) = (
        out.join(format!(".new-{own}")),
        out.join(format!(".old-{own}")),
    );
    let written = write_folders(&new, imported)
        .and_then(|()| sync_filesystem(&new))
        .and_then(|()| replace(&out.join(RESULTS), &new, &old));
    if let Err(error) = written {
        // The error says what matters.
        let _ = fs::remove_dir_all(&new);
        return Err(error);
    }
    let mut lines = String::new();
    for file in &tree.files {
        push_line(&mut lines, &imported_file(file));
    }
    write_atomically(&out.join(FILES), lines.as_bytes())?;
    let account = ImportAccount::of(tree, imported);
    write_atomically(&account_path, json(&account).as_bytes())?;
    Ok(account)
}

/// Only what an import that was cut short may have left does not count.
fn holds_something_else(out: &Path) -> Result<bool, ArchiveError> {
    let entries = crate::durable::entries(out)?;
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(".new-") || name.starts_with(".old-") || name == RESULTS || name == FILES
    };
    Ok(!entries.iter().all(is_ours))
}

fn write_folders(new: &Path, imported: &[Imported]) -> Result<(), ArchiveError> {
    fs::create_dir_all(new).map_err(ArchiveError::io(new, "create the folder"))?;
    for folder in imported {
        let dir = new.join(safe(Path::new(&folder.results.source)));
        fs::create_dir_all(&dir).map_err(ArchiveError::io(&dir, "create the folder"))?;
        let mut runs = String::new();
        for run in &folder.runs {
            push_line(&mut runs, run);
        }
        let fixed = [
            (IMPORTED.to_owned(), json(&folder.results)),
            (RUNS.to_owned(), runs),
        ];
        let observations = folder
            .observations
            .iter()
            .map(|(variant, text)| (format!("{variant}.pps"), text.clone()));
        for (name, text) in fixed.into_iter().chain(observations) {
            let path = dir.join(name);
            fs::write(&path, text).map_err(ArchiveError::io(&path, "write the file"))?;
        }
    }
    Ok(())
}

/// A path that lies below where it is joined to, of characters that are harmless everywhere.
fn safe(path: &Path) -> PathBuf {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_string_lossy()),
        _ => None,
    });
    let is_safe =
        |character: char| character.is_ascii_alphanumeric() || "._-+=,@ ".contains(character);
    names
        .map(|name| {
            let name: String = name
                .chars()
                .map(|character| if is_safe(character) { character } else { '_' })
                .collect();
            // What begins so is hidden from whoever lists the folder.
            name.strip_prefix('.')
                .map_or(name.clone(), |rest| format!("_{rest}"))
        })
        .collect()
}

/// Everything is written and nothing synced before: one call makes all of it durable.
fn sync_filesystem(folder: &Path) -> Result<(), ArchiveError> {
    File::open(folder)
        .and_then(|folder| fwdlab_sys::sync_filesystem(&folder))
        .map_err(ArchiveError::io(folder, "sync the file system"))
}

fn replace(target: &Path, new: &Path, old: &Path) -> Result<(), ArchiveError> {
    match fs::rename(target, old) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        result => result.map_err(ArchiveError::io(target, "rename the folder"))?,
    }
    fs::rename(new, target).map_err(ArchiveError::io(target, "rename the new folder"))?;
    if old.exists() {
        fs::remove_dir_all(old).map_err(ArchiveError::io(old, "remove the folder"))?;
    }
    Ok(())
}

fn json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("records have no keys but texts");
    text.push('\n');
    text
}

fn push_line(text: &mut String, value: &impl Serialize) {
    let line = serde_json::to_string(value).expect("records have no keys but texts");
    let _ = writeln!(text, "{line}");
}

/// The files that [`load_imported`] reads.
pub(crate) fn files(dir: &Path) -> [PathBuf; 2] {
    [IMPORTED, RUNS].map(|name| dir.join(name))
}

/// Whether a folder holds imported results.
#[must_use]
pub fn is_imported(dir: &Path) -> bool {
    dir.join(IMPORTED).is_file()
}

/// Reads a folder of imported results.
///
/// # Errors
/// What cannot be read, and what is not of this form.
pub fn load_imported(dir: &Path) -> Result<(ImportedResults, Vec<ImportedRun>), ArchiveError> {
    let results: ImportedResults = read_json(&dir.join(IMPORTED))?;
    let path = dir.join(RUNS);
    let text = fs::read_to_string(&path).map_err(ArchiveError::io(&path, "read the file"))?;
    let runs = text
        .lines()
        .enumerate()
        .map(|(index, line)| parse_json(&Place::line(&path, index + 1), line.as_bytes()));
    Ok((results, runs.collect::<Result<_, _>>()?))
}
