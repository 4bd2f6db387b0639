//! Reading results directories for the catalogue, and telling whether they changed.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fwdlab_archive::input::read_derived;
use fwdlab_archive::{ArchiveError, Place, Results, layout};
use fwdlab_netbenches::{imported_files, load_imported};
use fwdlab_sys::durable::{FileError, entries};
use serde::Deserialize;

use crate::entry::Entry;
use crate::error::CatalogueError;

/// Files that changed in the last so many seconds may change again without another time.
const SETTLED_S: i64 = 2;

/// What a directory's entry is made from: each file with its size and the times of its content and of
/// its place.
#[derive(Debug)]
pub(crate) struct Stamp {
    /// The same text is the same files.
    pub(crate) text: String,
    /// Whether every further change is bound to show in the text.
    pub(crate) is_settled: bool,
}

impl Stamp {
    /// # Errors
    /// [`ArchiveError::Io`]; [`ArchiveError::Damaged`] for what is no file, which reading might wait for
    /// without end.
    pub(crate) fn of(dir: &Path, now: SystemTime) -> Result<Self, ArchiveError> {
        let now_s = now
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| {
                i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
            });
        let mut files: Vec<PathBuf> = [
            layout::RESOLVED,
            layout::PLAN,
            layout::TRIALS,
            layout::FINISHED,
        ]
        .map(|name| dir.join(name))
        .into();
        files.push(dir.join(layout::DERIVED).join(REPORT));
        files.extend(imported_files(dir));
        files.extend(entries(&dir.join(layout::SESSIONS))?);
        files.extend(entries(&dir.join(layout::BLOCKS))?);
        let mut stamp = Self {
            text: String::new(),
            is_settled: true,
        };
        for path in files {
            let metadata = match fs::metadata(&path) {
                Ok(metadata) => metadata,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(FileError::of(&path, "look at the file")(error).into()),
            };
            if !metadata.is_file() {
                return Err(ArchiveError::Damaged {
                    place: Place::file(&path),
                    what: "is not a file".to_owned(),
                });
            }
            let name = path.strip_prefix(dir).unwrap_or(&path);
            let _ = writeln!(
                stamp.text,
                "{name:?} {} {}.{} {}.{}",
                metadata.len(),
                metadata.mtime(),
                metadata.mtime_nsec(),
                metadata.ctime(),
                metadata.ctime_nsec()
            );
            let last_change_s = metadata.mtime().max(metadata.ctime());
            stamp.is_settled &= last_change_s < now_s.saturating_sub(SETTLED_S);
        }
        Ok(stamp)
    }
}

/// Reads a results directory.
pub(crate) fn read(dir: &Path) -> Result<Vec<Entry>, CatalogueError> {
    if !dir.join(layout::RESOLVED).is_file() {
        let (results, runs) = load_imported(dir)?;
        return Ok(Entry::of_imported(&results, &runs));
    }
    let run = Results::load(dir)?;
    let mut entry = Entry::of_run(&run);
    entry.verdict = verdict(dir);
    Ok(vec![entry])
}

/// The name of a report in `derived/`.
const REPORT: &str = "report.json";

/// The clearest finding of a report: of those that show a difference the largest, else the first.
/// None where there is no report, or it has another form: it can be made again.
fn verdict(dir: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct Report {
        variants: Vec<Variant>,
        comparisons: Vec<Comparison>,
    }
    #[derive(Deserialize)]
    struct Variant {
        name: String,
        label: String,
    }
    #[derive(Deserialize)]
    struct Comparison {
        rows: Vec<Row>,
    }
    #[derive(Deserialize)]
    struct Row {
        variant: String,
        effect: Option<Effect>,
        verdict: Option<Verdict>,
    }
    #[derive(Deserialize)]
    struct Effect {
        estimate_percent: f64,
    }
    #[derive(Deserialize)]
    struct Verdict {
        words: String,
        shows_difference: bool,
    }
    let report: Report = serde_json::from_slice(&read_derived(dir, REPORT).ok()?).ok()?;
    let rows = report.comparisons.iter().flat_map(|section| &section.rows);
    let judged: Vec<(&Row, &Effect, &Verdict)> = rows
        .filter_map(|row| Some((row, row.effect.as_ref()?, row.verdict.as_ref()?)))
        .collect();
    let size = |effect: &Effect| effect.estimate_percent.abs();
    let (row, effect, verdict) = judged
        .iter()
        .filter(|(_, _, verdict)| verdict.shows_difference)
        .max_by(|(_, a, _), (_, b, _)| size(a).total_cmp(&size(b)))
        .or_else(|| judged.first())?;
    let mut variants = report.variants.iter();
    let label = variants
        .find(|variant| variant.name == row.variant)
        .map_or(&row.variant, |variant| &variant.label);
    let of = judged.len();
    let differ = judged
        .iter()
        .filter(|(_, _, verdict)| verdict.shows_difference)
        .count();
    Some(format!(
        "{label}: {} {:+.1} % ({differ} of {of} differ)",
        verdict.words, effect.estimate_percent
    ))
}
