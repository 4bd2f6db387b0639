//! What was imported, on disk: a folder of `imported.json`, `runs.jsonl` and `.pps` files for each folder of
//! results, and an account of every file.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Component, Path, PathBuf};

use fwdlab_archive::input::{input, read};
use fwdlab_archive::name::first_free;
use fwdlab_archive::{ArchiveError, Place, READ_FILE, json, layout, parse_json_up_to};
use fwdlab_model::imported::{
    IMPORT_SCHEMA_VERSION, ImportedResults, ImportedRun, ImportedVariant,
};
use fwdlab_sys::durable::FileError;
use fwdlab_sys::parallel::both;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::counted::{Counted, Measured, counted};
use crate::error::NetbenchesError;
use crate::file::{ArchiveFile, Outcome};
use crate::import::{Imported, imported_file};
use crate::replacement::{Replacement, write};
use crate::time::PrintedTime;
use crate::tree::ArchiveTree;

/// Whose folder it is, and what became of the files: written last.
const ACCOUNT: &str = "import.json";
/// One line a file of the archive.
const FILES: &str = "files.jsonl";
/// Below it lie the folders, as in the archive.
const RESULTS: &str = "results";
/// One line a run.
pub(crate) const RUNS: &str = "runs.jsonl";

/// `import.json`: what an import was made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportAccount {
    /// [`IMPORT_SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// Where the archive was.
    pub root: String,
    /// How many files were read, read in part, left for a reason, and wrong.
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
    /// Read but for lines that fwdlab does not understand, or for events of a profile; an import of form 1 has none.
    #[serde(default)]
    pub read_in_part: usize,
    /// Left for a reason that is no fault of theirs.
    pub skipped: usize,
    /// Not what they should be.
    pub failed: usize,
}

impl FileCounts {
    /// Counts what became of every file of a tree.
    fn of(tree: &ArchiveTree) -> Self {
        let mut files = Self::default();
        for file in &tree.files {
            match &file.outcome {
                Outcome::Read(_) if file.left_out().is_some() => files.read_in_part += 1,
                Outcome::Read(_) => files.read += 1,
                Outcome::Skipped(_) => files.skipped += 1,
                Outcome::Failed(_) => files.failed += 1,
            }
        }
        files
    }
}

/// Takes in every folder of a tree and writes the import below `out`: into a new or empty folder, or in place of
/// an earlier import, which stays whole until the new one is. Two at once take their turns.
///
/// # Errors
/// What the system refuses, and a folder that holds something else, which is left as it is.
pub fn write_import(out: &Path, tree: &ArchiveTree) -> Result<ImportAccount, NetbenchesError> {
    let replacement = Replacement::begin(out, &[RESULTS, FILES, ACCOUNT])?;
    let is_earlier = match read_import::<ImportAccount>(out, ACCOUNT) {
        Err(error @ ArchiveError::NewerSchema { .. }) => return Err(error.into()),
        account => account.is_ok(),
    };
    replacement.refuse_something_else("import", is_earlier)?;
    let mut account = ImportAccount {
        schema: IMPORT_SCHEMA_VERSION,
        root: tree.root.to_string_lossy().into_owned(),
        files: FileCounts::of(tree),
        folders: tree.folders.len(),
        runs: 0,
    };
    replacement.with(|new| {
        let (runs, files) = both(
            || write_folders(&new.join(RESULTS), tree),
            || write_files(&new.join(FILES), &tree.files),
        );
        account.runs = runs?;
        files?;
        write(&new.join(ACCOUNT), &json(&account))
    })?;
    Ok(account)
}

fn write_files(path: &Path, files: &[ArchiveFile]) -> Result<(), FileError> {
    // One line after the other: a text of all of them would be tens of megabytes.
    let write = || -> io::Result<()> {
        let mut out = BufWriter::new(File::create(path)?);
        for file in files {
            serde_json::to_writer(&mut out, &imported_file(file))?;
            out.write_all(b"\n")?;
        }
        out.flush()
    };
    write().map_err(FileError::of(path, "write the file"))
}

/// Every folder is written as soon as it is taken in: all of them at once would take memory, and time to go
/// through it again. Returns how many runs there are in them.
fn write_folders(new: &Path, tree: &ArchiveTree) -> Result<usize, FileError> {
    fs::create_dir_all(new).map_err(FileError::of(new, "create the folder"))?;
    let mut taken = BTreeSet::new();
    let folders = tree.folders.iter();
    let places: Vec<PathBuf> = folders
        .map(|folder| new.join(place(&folder.path, &mut taken)))
        .collect();
    Imported::each(tree, |number, folder| {
        write_folder(&places[number], &folder).map(|()| folder.runs.len())
    })
    .into_iter()
    .sum()
}

fn write_folder(dir: &Path, folder: &Imported) -> Result<(), FileError> {
    fs::create_dir_all(dir).map_err(FileError::of(dir, "create the folder"))?;
    let mut text = Vec::new();
    push_line(&mut text, &folder.results);
    write(&dir.join(layout::IMPORTED), &text)?;
    text.clear();
    for run in &folder.runs {
        push_line(&mut text, run);
    }
    write(&dir.join(RUNS), &text)?;
    for (variant, text) in &folder.observations {
        write(&dir.join(format!("{variant}.pps")), text.as_bytes())?;
    }
    Ok(())
}

/// Where a folder of results is written, below [`RESULTS`]: its own path as far as that is harmless, with a
/// number behind it where another folder has the place.
fn place(source: &Path, taken: &mut BTreeSet<PathBuf>) -> PathBuf {
    let first = safe(source);
    let name = first.file_name().unwrap_or_default().display();
    let numbered = |number| first.with_file_name(format!("{name}-{number}"));
    first_free(first.clone(), numbered, |place| taken.insert(place.clone()))
}

/// A path that lies below where it is joined to, of characters that are harmless everywhere, and of names that
/// no file here has.
fn safe(path: &Path) -> PathBuf {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_string_lossy()),
        _ => None,
    });
    let is_safe =
        |character: char| character.is_ascii_alphanumeric() || "._-+=,@ ".contains(character);
    let safe_name = |name: Cow<'_, str>| {
        let mut name: String = name
            .chars()
            .map(|character| if is_safe(character) { character } else { '_' })
            .collect();
        // What begins with a dot is hidden from whoever lists the folder.
        if name.starts_with('.') {
            name.replace_range(..1, "_");
        }
        // A folder of results may lie in another, beside that one's files.
        if name == layout::IMPORTED || name == RUNS || name.ends_with(layout::OBSERVATIONS) {
            name = name.replace('.', "_");
        }
        name
    };
    names.map(safe_name).collect()
}

fn push_line(text: &mut Vec<u8>, value: &impl Serialize) {
    serde_json::to_writer(&mut *text, value).expect("records have no keys but texts");
    text.push(b'\n');
}

/// The files that [`load_imported`] reads.
#[must_use]
pub fn imported_files(dir: &Path) -> [PathBuf; 2] {
    [layout::IMPORTED, RUNS].map(|name| dir.join(name))
}

/// Reads one of an import's files, of a schema up to today's.
fn read_import<T: DeserializeOwned>(dir: &Path, name: &str) -> Result<T, ArchiveError> {
    let path = dir.join(name);
    let bytes = read(dir, &path)?;
    parse_json_up_to(IMPORT_SCHEMA_VERSION, &Place::file(&path), &bytes)
}

/// Whether a file says that an import has written its folder: by its name, and by what it holds.
pub(crate) fn is_mark_of_import(dir: &Path, name: &OsStr) -> bool {
    fn is_read<T>(read: Result<T, ArchiveError>) -> bool {
        matches!(read, Ok(_) | Err(ArchiveError::NewerSchema { .. }))
    }
    if name == ACCOUNT {
        is_read(read_import::<ImportAccount>(dir, ACCOUNT))
    } else if name == layout::IMPORTED {
        is_read(read_import::<ImportedResults>(dir, layout::IMPORTED))
    } else {
        false
    }
}

/// Reads a folder of imported results.
///
/// # Errors
/// What cannot be read, and what is not of this form.
pub fn load_imported(dir: &Path) -> Result<(ImportedResults, Vec<ImportedRun>), NetbenchesError> {
    let results: ImportedResults =
        read_import(dir, layout::IMPORTED).map_err(NetbenchesError::of_import)?;
    let path = dir.join(RUNS);
    let text = input(dir, &path)
        .text()
        .map_err(FileError::of(&path, READ_FILE))?;
    let runs = text.lines().enumerate().map(|(index, line)| {
        parse_json_up_to(
            IMPORT_SCHEMA_VERSION,
            &Place::line(&path, index + 1),
            line.as_bytes(),
        )
    });
    let runs = runs.collect::<Result<_, _>>();
    Ok((results, runs.map_err(NetbenchesError::of_import)?))
}

/// The observations of a variant that count.
///
/// Shape: runs of any variants, in order.
pub fn imported_observations<'a>(
    variant: &ImportedVariant,
    runs: impl IntoIterator<Item = &'a ImportedRun>,
) -> Vec<Counted> {
    let of_variant = runs.into_iter().filter(|run| run.variant == variant.name);
    let measured = of_variant.map(|run| Measured {
        pps: run.archive_pps,
        offered_pps: run.offered_pps,
        is_profiled: run.is_profiled,
    });
    let published = variant.dataset.iter();
    let published: Vec<f64> = published
        .flat_map(|dataset| dataset.published_pps.iter().copied())
        .collect();
    counted(&published, &measured.collect::<Vec<_>>())
}

/// The second at which a variant's runs began, UTC, where its description says.
#[must_use]
pub fn imported_start(variant: &ImportedVariant) -> Option<String> {
    let start = variant.description.as_ref()?.start.as_deref()?;
    let second = PrintedTime::parse(start)?.epoch_s?;
    Some(Timestamp::from_second(second).ok()?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_sys::durable::entries;

    #[test]
    fn no_path_leads_out_or_hides() {
        for (path, expected) in [
            ("P/N/T/results/L", "P/N/T/results/L"),
            ("a b/c+d=e,f@g_h-i.j", "a b/c+d=e,f@g_h-i.j"),
            ("../../etc/passwd", "etc/passwd"),
            ("/etc/passwd", "etc/passwd"),
            ("./a/./b/..", "a/b"),
            (".git/.x", "_git/_x"),
            ("...", "_.."),
            ("a\u{1b}[31m/b\n\u{202e}c\u{7f}", "a_[31m/b__c_"),
            ("C:\\x|y?", "C__x_y_"),
            ("gr\u{fc}n", "gr_n"),
            ("x/imported.json", "x/imported_json"),
            ("x/runs.jsonl/y.pps", "x/runs_jsonl/y_pps"),
            ("", ""),
        ] {
            let expected = expected.replace('[', "_");
            assert_eq!(safe(Path::new(path)), Path::new(&expected), "{path:?}");
        }
    }

    #[test]
    fn no_two_folders_have_one_place() {
        let mut taken = BTreeSet::new();
        let sources = ["a?/L", "a:/L", "a_/L", "a_/L-2", "a_", "", ".L", "_L"];
        let places = sources.map(|source| place(Path::new(source), &mut taken));
        let expected = [
            "a_/L", "a_/L-2", "a_/L-3", "a_/L-2-2", "a_", "", "_L", "_L-2",
        ];
        assert_eq!(places, expected.map(PathBuf::from));
    }

    /// An archive of a log and of what was published of it.
    fn small() -> (tempfile::TempDir, ArchiveTree) {
        let archive = tempfile::tempdir().unwrap();
        fs::write(archive.path().join("x.pps"), "10\n20\n").unwrap();
        let tree = ArchiveTree::read(archive.path()).unwrap();
        (archive, tree)
    }

    fn names(folder: &Path) -> Vec<String> {
        let paths = entries(folder).unwrap().into_iter();
        let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        paths.map(name).collect()
    }

    #[test]
    fn a_folder_with_something_else_in_it_is_refused_and_left_as_it_is() {
        let (_archive, tree) = small();
        // Others, too, have folders called `results`, and files called `import.json`.
        for (name, text) in [
            ("notes", "mine"),
            ("results", "mine"),
            (ACCOUNT, "{}"),
            (ACCOUNT, "no JSON"),
            (".hidden", ""),
        ] {
            let out = tempfile::tempdir().unwrap();
            fs::write(out.path().join(name), text).unwrap();
            let refused = write_import(out.path(), &tree);
            assert!(matches!(
                refused,
                Err(NetbenchesError::SomethingElse { what: "import", .. })
            ));
            assert_eq!(names(out.path()), [name]);
            assert_eq!(fs::read_to_string(out.path().join(name)).unwrap(), text);
        }
    }

    #[test]
    fn an_import_of_a_later_version_is_refused() {
        let (_archive, tree) = small();
        let out = tempfile::tempdir().unwrap();
        let later = format!("{{\"schema\":{}}}", IMPORT_SCHEMA_VERSION + 1);
        fs::write(out.path().join(ACCOUNT), &later).unwrap();
        let refused = write_import(out.path(), &tree);
        assert!(matches!(
            refused,
            Err(NetbenchesError::Archive(ArchiveError::NewerSchema { .. }))
        ));
        assert_eq!(names(out.path()), [ACCOUNT]);
    }

    #[test]
    fn an_import_takes_the_place_of_an_earlier_one_and_of_what_a_killed_one_left() {
        let (_archive, tree) = small();
        let out = tempfile::tempdir().unwrap();
        write_import(out.path(), &tree).unwrap();
        let stale = out.path().join(RESULTS).join("stale");
        fs::write(&stale, "").unwrap();
        fs::create_dir_all(out.path().join(".new-import/results")).unwrap();
        fs::write(out.path().join("notes"), "of whoever keeps the import").unwrap();
        write_import(out.path(), &tree).unwrap();
        assert!(!stale.exists());
        assert_eq!(names(out.path()), [FILES, ACCOUNT, "notes", RESULTS]);
        let (results, runs) = load_imported(&out.path().join(RESULTS)).unwrap();
        let expected = Imported::all(&tree).remove(0).results;
        assert_eq!((results, runs), (expected, vec![]));
    }

    #[test]
    fn a_failed_import_leaves_the_earlier_one_whole() {
        let (_archive, mut tree) = small();
        let out = tempfile::tempdir().unwrap();
        let account = write_import(out.path(), &tree).unwrap();
        // Longer than what any file system takes.
        tree.folders[0].path = "x".repeat(300).into();
        let failed = write_import(out.path(), &tree);
        let is_refused = matches!(
            failed,
            Err(NetbenchesError::Archive(ArchiveError::Io { .. }))
        );
        assert!(is_refused, "{failed:?}");
        assert_eq!(names(out.path()), [FILES, ACCOUNT, RESULTS]);
        let kept: ImportAccount = read_import(out.path(), ACCOUNT).unwrap();
        assert_eq!(kept, account);
        load_imported(&out.path().join(RESULTS)).unwrap();
    }
}
