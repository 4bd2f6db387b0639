//! The chain of a run that measures.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use fwdlab_model::{BlockRecord, Record, SCHEMA_VERSION, sha256};
use fwdlab_sys::durable::Journal;

use crate::error::{ArchiveError, ArchiveWarning, Place, READ_FILE};
use crate::layout;
use crate::load::{Loaded, files_of_attempts, parse_json};

use super::{FileLines, Link, is_whole, sha256_of_file};

/// Adds a line for every block of a run.
#[derive(Debug)]
pub(crate) struct ChainWriter {
    dir: PathBuf,
    journal: Journal,
    /// SHA-256 of the last line; none where there is none.
    last: Option<String>,
    /// SHA-256 of the files that all blocks of the session rest on, by path.
    common: BTreeMap<String, String>,
    cut_short: CutShort,
}

/// What attempts that were cut short left behind the last whole one; the next line accounts for it.
#[derive(Debug, Default)]
struct CutShort {
    /// Their lines in `trials.jsonl`.
    lines: Vec<u8>,
    /// SHA-256 of their files, by path.
    files: BTreeMap<String, String>,
}

/// A line that was written, and whose block's records were not yet.
#[derive(Debug)]
pub(crate) struct Pending {
    link: String,
    bytes: usize,
}

impl ChainWriter {
    /// Goes on with the chain of a directory that this process holds; adds a warning where its last line was torn.
    ///
    /// A line without records is what a run leaves that was killed between both, and is cut: the block is measured
    /// again.
    ///
    /// # Errors
    /// [`ArchiveError::Damaged`] where the chain is not that of the records: what was lost cannot be made again.
    pub(crate) fn open(loaded: &mut Loaded) -> Result<Self, ArchiveError> {
        let path = loaded.dir.join(layout::CHAIN);
        let Kept { last, bytes, torn } = kept(&path, loaded)?;
        loaded.warnings.extend(torn);
        let session = loaded.sessions.last();
        let session = session.map(|session| layout::session(&loaded.dir, session.session));
        let common = [layout::EXPERIMENT, layout::RESOLVED, layout::PLAN]
            .map(|name| loaded.dir.join(name))
            .into_iter()
            .chain(session);
        Ok(Self {
            dir: loaded.dir.clone(),
            journal: Journal::open(&path, bytes)?,
            last,
            common: hashes(&loaded.dir, common)?,
            cut_short: cut_short(loaded)?,
        })
    }

    /// Notes the file of the session that the next blocks belong to.
    pub(crate) fn begin_session(&mut self, session: u32, bytes: &[u8]) {
        let is_of_run = |name: &str| Path::new(name).parent() == Some(Path::new(""));
        self.common.retain(|name, _| is_of_run(name));
        let path = layout::session(&self.dir, session);
        self.common
            .insert(layout::name_in(&self.dir, &path), sha256(bytes));
    }

    /// Writes the line of a block whose files are written, and whose records are these lines; it is durable when this
    /// returns.
    pub(crate) fn append(
        &mut self,
        block: &BlockRecord,
        lines: &[u8],
        files: &[(PathBuf, &[u8])],
    ) -> Result<Pending, ArchiveError> {
        let own = files
            .iter()
            .map(|(path, bytes)| (layout::name_in(&self.dir, path), sha256(bytes)));
        let link = Link {
            schema: SCHEMA_VERSION,
            session: block.session,
            block: block.block,
            attempt: block.attempt,
            records: sha256(&[&self.cut_short.lines, lines].concat()),
            files: (self.common.clone().into_iter())
                .chain(self.cut_short.files.clone())
                .chain(own)
                .collect(),
            before: self.last.clone(),
        };
        let line = link.line();
        self.journal.append(&line)?;
        Ok(Pending {
            link: sha256(&line),
            bytes: line.len(),
        })
    }

    /// The block's records are durable as well.
    pub(crate) fn commit(&mut self, pending: Pending) {
        self.last = Some(pending.link);
        self.cut_short = CutShort::default();
    }

    /// The block's records could not be written.
    pub(crate) fn take_back(&mut self, pending: &Pending) {
        self.journal.take_back(pending.bytes as u64);
    }

    /// SHA-256 of the last line, and of the files that belong to no single block.
    pub(crate) fn end(
        &self,
        sessions: impl Iterator<Item = u32>,
    ) -> Result<(Option<String>, BTreeMap<String, String>), ArchiveError> {
        let sessions = sessions.map(|session| layout::session(&self.dir, session));
        let names = [
            layout::EXPERIMENT,
            layout::RESOLVED,
            layout::PLAN,
            layout::TRIALS,
        ];
        let files = names
            .map(|name| self.dir.join(name))
            .into_iter()
            .chain(sessions);
        Ok((self.last.clone(), hashes(&self.dir, files)?))
    }
}

/// What of a chain counts.
struct Kept {
    /// SHA-256 of its last line.
    last: Option<String>,
    bytes: u64,
    torn: Option<ArchiveWarning>,
}

fn kept(path: &Path, loaded: &Loaded) -> Result<Kept, ArchiveError> {
    let failed = || ArchiveError::io(path, READ_FILE);
    let mut lines = FileLines::open(&loaded.dir, path).map_err(|error| missing_or(path, error))?;
    let mut kept = Kept {
        last: None,
        bytes: 0,
        torn: None,
    };
    let mut attempts = loaded.attempts.iter();
    let mut is_ahead = false;
    for number in 1.. {
        let Some(line) = lines.next().map_err(failed())? else {
            break;
        };
        let here = |what: String| ArchiveError::damaged(Place::line(path, number), what);
        if is_ahead {
            return Err(here(format!(
                "{} has lost the records of more than one block",
                layout::TRIALS
            )));
        }
        if !is_whole(&line) {
            kept.torn = Some(ArchiveWarning::TornLine {
                place: Place::line(path, number),
                bytes: line.len(),
            });
            break;
        }
        let link: Link = parse_json(&Place::line(path, number), &line)?;
        if link.before != kept.last {
            return Err(here("it does not name the line before".into()));
        }
        let Some(attempt) = attempts.next() else {
            is_ahead = true;
            continue;
        };
        let record = &attempt.record;
        if (link.session, link.block, link.attempt)
            != (record.session, record.block, record.attempt)
        {
            return Err(here(format!(
                "it is of {}, and {} has block {}, attempt {} in its place",
                link.title(),
                layout::TRIALS,
                record.block,
                record.attempt
            )));
        }
        kept.last = Some(sha256(&line));
        kept.bytes += line.len() as u64;
    }
    match attempts.next() {
        None => Ok(kept),
        Some(attempt) => {
            let record = &attempt.record;
            let what = format!(
                "has lost the line of block {}, attempt {}",
                record.block, record.attempt
            );
            Err(ArchiveError::damaged(Place::file(path), what))
        }
    }
}

/// What stands in `trials.jsonl` behind the last block record, and the files of these attempts.
fn cut_short(loaded: &Loaded) -> Result<CutShort, ArchiveError> {
    let is_block = |record: &Record| matches!(record, Record::Block(_));
    let whole = loaded.records.iter().rposition(is_block);
    let whole = whole.map_or(0, |index| index + 1);
    let path = loaded.dir.join(layout::TRIALS);
    let failed = || ArchiveError::io(&path, READ_FILE);
    let mut lines = FileLines::open(&loaded.dir, &path).map_err(failed())?;
    for _ in 0..whole {
        lines.next().map_err(failed())?;
    }
    let mut cut_short = CutShort::default();
    let mut attempts = BTreeSet::new();
    for record in &loaded.records[whole..] {
        let Some(line) = lines.next().map_err(failed())? else {
            break;
        };
        cut_short.lines.extend(line);
        if let Record::Trial(trial) = record {
            attempts.insert((trial.block, trial.attempt));
        }
    }
    if attempts.is_empty() {
        return Ok(cut_short);
    }
    // All of them were written before the first of the lines.
    let files = files_of_attempts(&loaded.dir, |attempt| attempts.contains(attempt))?;
    cut_short.files = hashes(&loaded.dir, files.into_iter())?;
    Ok(cut_short)
}

/// SHA-256 of files, by the path of each in the directory.
fn hashes(
    dir: &Path,
    paths: impl Iterator<Item = PathBuf>,
) -> Result<BTreeMap<String, String>, ArchiveError> {
    let hashes = paths.map(|path| {
        let hash = sha256_of_file(dir, &path).map_err(|error| missing_or(&path, error))?;
        Ok((layout::name_in(dir, &path), hash))
    });
    hashes.collect()
}

/// A file that the run wrote and that is gone, or another error.
fn missing_or(path: &Path, error: io::Error) -> ArchiveError {
    match error.kind() {
        io::ErrorKind::NotFound => ArchiveError::damaged(Place::file(path), "is not there"),
        _ => ArchiveError::io(path, READ_FILE)(error),
    }
}
