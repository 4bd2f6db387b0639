//! Reading a results directory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fwdlab_model::record::{Fate, fates};
use fwdlab_model::{
    BlockRecord, LoadRegime, Plan, ProfileStacks, Record, Resolved, SCHEMA_VERSION, SessionRecord,
    SliceRecord, Stratum, TrialRecord,
};
use fwdlab_sys::durable::entries;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{ArchiveError, ArchiveWarning, Place};
use crate::find::not_results;
use crate::input::read;
use crate::slices::parse_slices;
use crate::{fit, layout};

/// `resolved.json`: what is measured, and how the run began.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ResolvedFile {
    pub(crate) schema: u32,
    pub(crate) hash: String,
    pub(crate) started: String,
    pub(crate) kernel: String,
    /// Whether the run was started with a chain; earlier versions wrote none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) chain: bool,
    pub(crate) experiment: Resolved,
}

/// What tells one directory from another, without the rest of `resolved.json`.
#[derive(Debug, Deserialize)]
pub(crate) struct Head {
    pub(crate) hash: String,
    pub(crate) started: String,
    #[serde(default)]
    pub(crate) chain: bool,
    pub(crate) experiment: Experiment,
}

/// Which experiment it is.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Experiment {
    name: String,
}

impl Head {
    pub(crate) fn read(dir: &Path) -> Result<Self, ArchiveError> {
        read_json(dir, &dir.join(layout::RESOLVED))
    }
}

/// `plan.json`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PlanFile {
    pub(crate) schema: u32,
    #[serde(flatten)]
    pub(crate) plan: Plan,
}

/// `finished.json`: the mark of a run that never changes again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// Version of the writer's records.
    pub schema: u32,
    /// When the run was finished, UTC.
    pub finished: String,
    /// Blocks with an accepted attempt.
    pub accepted_blocks: Vec<u32>,
    /// Blocks whose attempts were all invalid.
    pub given_up_blocks: Vec<u32>,
}

/// A block measured to its end, with everything that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// What holds for the whole block.
    pub record: BlockRecord,
    /// Whether it stands for its block.
    pub fate: Fate,
    /// One trial for every variant and stratum, in the order in which they were written.
    pub trials: Vec<TrialRecord>,
    /// Its slices, in the order in which they were written; some may be missing where the attempt
    /// is invalid.
    pub slices: Vec<SliceRecord>,
    /// The stacks of its trials' profiles, as far as their files are there.
    pub profiles: Vec<ProfileStacks>,
}

impl Attempt {
    /// The folded stacks of a trial's profile, where their file is there.
    #[must_use]
    pub fn stacks(&self, trial: &TrialRecord) -> Option<&str> {
        let of_trial = |profile: &&ProfileStacks| {
            (&profile.variant, profile.stratum) == (&trial.variant, trial.stratum)
        };
        let profile = self.profiles.iter().find(of_trial)?;
        Some(&profile.folded)
    }
}

/// Everything that a results directory holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The directory.
    pub dir: PathBuf,
    /// What is measured; its seed is the recorded one.
    pub resolved: Resolved,
    /// Its hash, as it was when the run was started.
    pub hash: String,
    /// When the run was started, UTC, as its name has it.
    pub started: String,
    /// Kernel release on which it was started.
    pub kernel: String,
    /// In what order.
    pub plan: Plan,
    /// The sessions so far, from 1.
    pub sessions: Vec<SessionRecord>,
    /// All lines of `trials.jsonl`, those that do not count included.
    pub records: Vec<Record>,
    /// The whole attempts among them, in the order in which they were written.
    pub attempts: Vec<Attempt>,
    /// The mark of a finished run.
    pub finished: Option<Finished>,
    /// What does not keep the records from being used.
    pub warnings: Vec<ArchiveWarning>,
}

impl Loaded {
    /// The load regime under which it was measured: what the lab allowed, where that is not what was
    /// asked for.
    #[must_use]
    pub fn regime(&self) -> LoadRegime {
        let asked = self.resolved.regime();
        let settled = self
            .sessions
            .first()
            .and_then(|session| session.load.as_ref());
        settled.map_or(asked, |load| load.regime)
    }

    /// The attempts that stand for their blocks, in block order.
    #[must_use]
    pub fn accepted(&self) -> Vec<&Attempt> {
        let mut accepted: Vec<&Attempt> = self
            .attempts
            .iter()
            .filter(|attempt| attempt.fate == Fate::Accepted)
            .collect();
        accepted.sort_by_key(|attempt| attempt.record.block);
        accepted
    }

    /// The blocks that were measured and have no accepted attempt, in order; those of a finished
    /// run were given up.
    #[must_use]
    pub fn blocks_without_accepted(&self) -> Vec<u32> {
        let of = |accepted: bool| -> BTreeSet<u32> {
            self.attempts
                .iter()
                .filter(|attempt| (attempt.fate == Fate::Accepted) == accepted)
                .map(|attempt| attempt.record.block)
                .collect()
        };
        of(false).difference(&of(true)).copied().collect()
    }

    /// All trials, with what has become of each.
    pub fn trials(&self) -> impl Iterator<Item = (&TrialRecord, Fate)> {
        self.records
            .iter()
            .zip(fates(&self.records))
            .filter_map(|(record, fate)| match record {
                Record::Trial(trial) => Some((trial, fate)),
                Record::Block(_) => None,
            })
    }

    /// Reads a directory; with it, up to where `trials.jsonl` counts, in bytes.
    pub(crate) fn read(dir: &Path) -> Result<(Self, u64), ArchiveError> {
        let resolved_path = dir.join(layout::RESOLVED);
        let has_records = resolved_path.exists() || dir.join(layout::TRIALS).exists();
        if dir.is_dir() && !has_records {
            return Err(not_results(dir));
        }
        let resolved: ResolvedFile = read_json(dir, &resolved_path)?;
        let plan_path = dir.join(layout::PLAN);
        let PlanFile { plan, .. } = read_json(dir, &plan_path)?;
        check_plan(&plan_path, &plan, &resolved.experiment)?;
        // A run may be writing. What is written first is read last, so that nothing that was read
        // refers to what was not there yet: the mark, then the records, then what they rest on.
        let finished_path = dir.join(layout::FINISHED);
        let finished = if finished_path.exists() {
            Some(read_json(dir, &finished_path)?)
        } else {
            None
        };
        let trials_path = dir.join(layout::TRIALS);
        let bytes = read(dir, &trials_path)?;
        let lines = parse_lines(&trials_path, &bytes)?;
        let sessions = read_sessions(dir)?;
        let attempts = read_attempts(dir, &trials_path, &plan, &sessions, &lines.records)?;
        let loaded = Self {
            dir: dir.to_owned(),
            resolved: resolved.experiment,
            hash: resolved.hash,
            started: resolved.started,
            kernel: resolved.kernel,
            plan,
            sessions,
            records: lines.records,
            attempts,
            finished,
            warnings: lines.torn.into_iter().collect(),
        };
        Ok((loaded, lines.whole_bytes))
    }
}

/// What `trials.jsonl` holds.
struct Lines {
    /// One a line, so that the line of each is its index + 1.
    records: Vec<Record>,
    /// Length of the whole lines.
    whole_bytes: u64,
    torn: Option<ArchiveWarning>,
}

fn parse_lines(path: &Path, bytes: &[u8]) -> Result<Lines, ArchiveError> {
    let whole_bytes = bytes
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |newline| newline + 1);
    let (whole, rest) = bytes.split_at(whole_bytes);
    let records = whole
        .split_inclusive(|&byte| byte == b'\n')
        .enumerate()
        .map(|(index, line)| parse_json(&Place::line(path, index + 1), line))
        .collect::<Result<Vec<Record>, ArchiveError>>()?;
    let torn = (!rest.is_empty()).then(|| ArchiveWarning::TornLine {
        place: Place::line(path, records.len() + 1),
        bytes: rest.len(),
    });
    Ok(Lines {
        records,
        whole_bytes: whole_bytes as u64,
        torn,
    })
}

fn read_attempts(
    dir: &Path,
    trials_path: &Path,
    plan: &Plan,
    sessions: &[SessionRecord],
    records: &[Record],
) -> Result<Vec<Attempt>, ArchiveError> {
    let mut attempts = Vec::new();
    let mut seen = BTreeSet::new();
    let mut trials = Vec::new();
    for (index, (record, fate)) in records.iter().zip(fates(records)).enumerate() {
        let block = match record {
            Record::Trial(trial) => {
                trials.push(trial.clone());
                continue;
            }
            Record::Block(block) => block,
        };
        let trials: Vec<TrialRecord> = std::mem::take(&mut trials)
            .into_iter()
            .filter(|trial| trial.belongs_to(block))
            .collect();

        let here = |what| ArchiveError::damaged(Place::line(trials_path, index + 1), what);
        let planned = fit::planned(plan, block.block).map_err(here)?;
        fit::check_trials(planned, &trials).map_err(here)?;
        if !seen.insert((block.block, block.attempt)) {
            let what = format!("block {} has attempt {} twice", block.block, block.attempt);
            return Err(here(what));
        }
        if !sessions.iter().any(|found| found.session == block.session) {
            return Err(here(format!("session {} has no file", block.session)));
        }

        let slices_path = layout::slices(dir, block.block, block.attempt);
        let slices = parse_slices(&slices_path, &read_text(dir, &slices_path)?)?;
        planned
            .check_slices(&slices, fate != Fate::Invalid)
            .map_err(|what| ArchiveError::damaged(Place::file(&slices_path), what))?;
        attempts.push(Attempt {
            record: block.clone(),
            fate,
            profiles: read_profiles(dir, &trials)?,
            trials,
            slices,
        });
    }
    Ok(attempts)
}

/// The stacks of the trials that have a profile. Large, and no part of any verdict: who publishes a run may
/// leave them out.
fn read_profiles(dir: &Path, trials: &[TrialRecord]) -> Result<Vec<ProfileStacks>, ArchiveError> {
    let mut profiles = Vec::new();
    for trial in trials.iter().filter(|trial| trial.profile.is_some()) {
        let path = layout::profile(
            dir,
            trial.block,
            trial.attempt,
            &trial.variant,
            trial.stratum,
        );
        if path.exists() {
            profiles.push(ProfileStacks {
                variant: trial.variant.clone(),
                stratum: trial.stratum,
                folded: read_text(dir, &path)?,
            });
        }
    }
    Ok(profiles)
}

fn check_plan(path: &Path, plan: &Plan, resolved: &Resolved) -> Result<(), ArchiveError> {
    let numbers_fit = plan
        .blocks
        .iter()
        .map(|block| block.number)
        .eq(1..=resolved.design.blocks);
    let strata: BTreeSet<Stratum> = resolved.strata().collect();
    let other = plan.blocks.iter().find(|block| {
        let of_block: BTreeSet<Stratum> = block.strata.iter().map(|order| order.stratum).collect();
        let is_empty = block.strata.iter().any(|order| order.rounds.is_empty());
        of_block != strata || block.strata.len() != strata.len() || is_empty
    });
    if let Some(block) = other {
        let what = format!(
            "block {} does not measure each family of each traffic of {} once",
            block.number,
            layout::RESOLVED
        );
        return Err(ArchiveError::damaged(Place::file(path), what));
    }
    if plan.seed == resolved.design.seed && numbers_fit {
        Ok(())
    } else {
        Err(ArchiveError::damaged(
            Place::file(path),
            format!(
                "not the plan of {} (seed {} and {} blocks, not {} and {})",
                layout::RESOLVED,
                plan.seed,
                plan.blocks.len(),
                resolved.design.seed,
                resolved.design.blocks
            ),
        ))
    }
}

fn read_sessions(dir: &Path) -> Result<Vec<SessionRecord>, ArchiveError> {
    let mut sessions = Vec::new();
    for path in entries(&dir.join(layout::SESSIONS))? {
        let number = path
            .file_name()
            .and_then(|name| name.to_str()?.strip_suffix(".json")?.parse::<u32>().ok());
        let Some(number) = number else {
            continue;
        };
        let session: SessionRecord = read_json(dir, &path)?;
        if session.session != number {
            return Err(ArchiveError::damaged(
                Place::file(&path),
                format!("holds session {}", session.session),
            ));
        }
        sessions.push(session);
    }
    sessions.sort_by_key(|session| session.session);
    Ok(sessions)
}

/// The files of slices and of profiles that are there of some attempts: by their block and their number.
pub(crate) fn files_of_attempts(
    dir: &Path,
    is_wanted: impl Fn(&(u32, u32)) -> bool,
) -> Result<Vec<PathBuf>, ArchiveError> {
    let mut files = entries(&dir.join(layout::BLOCKS))?;
    files.extend(entries(&dir.join(layout::PROFILES))?);
    files.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.and_then(layout::attempt_of)
            .is_some_and(|attempt| is_wanted(&attempt))
    });
    Ok(files)
}

/// A record as the bytes of its file.
pub fn json(record: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(record).expect("records are plain data");
    bytes.push(b'\n');
    bytes
}

/// A record that a file of a results directory holds, of a schema up to today's.
///
/// # Errors
/// As [`parse_json_up_to`], and what cannot be read.
pub fn read_json<T: DeserializeOwned>(dir: &Path, path: &Path) -> Result<T, ArchiveError> {
    parse_json(&Place::file(path), &read(dir, path)?)
}

/// A record, of a schema up to today's.
pub(crate) fn parse_json<T: DeserializeOwned>(
    place: &Place,
    bytes: &[u8],
) -> Result<T, ArchiveError> {
    parse_json_up_to(SCHEMA_VERSION, place, bytes)
}

/// A record, of a schema up to `supported`. Its version is read first, because a later form may lack what this one
/// expects.
///
/// # Errors
/// [`ArchiveError::NewerSchema`], [`ArchiveError::Damaged`] and [`ArchiveError::OtherForm`].
pub fn parse_json_up_to<T: DeserializeOwned>(
    supported: u32,
    place: &Place,
    bytes: &[u8],
) -> Result<T, ArchiveError> {
    #[derive(Deserialize)]
    struct Version {
        schema: u32,
    }
    let damaged = |error: serde_json::Error| ArchiveError::damaged(place.clone(), error);
    let Version { schema } = serde_json::from_slice(bytes).map_err(damaged)?;
    if schema > supported {
        return Err(ArchiveError::NewerSchema {
            place: place.clone(),
            schema,
            supported,
        });
    }
    serde_json::from_slice(bytes).map_err(|error| {
        if error.is_data() {
            ArchiveError::OtherForm {
                place: place.clone(),
                what: error.to_string(),
            }
        } else {
            damaged(error)
        }
    })
}

fn read_text(dir: &Path, path: &Path) -> Result<String, ArchiveError> {
    String::from_utf8(read(dir, path)?)
        .map_err(|error| ArchiveError::damaged(Place::file(path), error))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;
    use crate::sample;

    fn written() -> Vec<u8> {
        let mut bytes = Vec::new();
        for block in 1..=2 {
            let outcome = sample::outcome(&sample::plan(), block, 1, 1, block == 1);
            let trials = outcome.trials.into_iter().map(Record::Trial);
            for record in trials.chain([Record::Block(outcome.block)]) {
                serde_json::to_writer(&mut bytes, &record).unwrap();
                bytes.push(b'\n');
            }
        }
        bytes
    }

    #[test]
    fn every_truncation_leaves_a_prefix_of_whole_lines() {
        let bytes = written();
        let path = Path::new("trials.jsonl");
        let all = parse_lines(path, &bytes).unwrap();
        assert_eq!(all.records.len(), 8);
        for length in 0..=bytes.len() {
            let kept = &bytes[..length];
            let lines = parse_lines(path, kept).unwrap();
            let newlines = kept.iter().filter(|&&byte| byte == b'\n').count();
            assert_eq!(lines.records, all.records[..newlines]);
            let whole = usize::try_from(lines.whole_bytes).unwrap();
            assert_eq!(
                kept[..whole].iter().filter(|&&b| b == b'\n').count(),
                newlines
            );
            let torn = (whole < length).then(|| ArchiveWarning::TornLine {
                place: Place::line(path, newlines + 1),
                bytes: length - whole,
            });
            assert_eq!(lines.torn, torn);
        }
    }

    #[test]
    fn a_damaged_line_is_named() {
        let mut bytes = written();
        let second = bytes.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        bytes[second] = b'!';
        let error = parse_lines(Path::new("trials.jsonl"), &bytes)
            .err()
            .unwrap();
        let message = error.to_string();
        assert!(
            message.starts_with("trials.jsonl:2: expected value"),
            "{message}"
        );

        let newer = b"{\"record\":\"session-end\",\"schema\":9}\n";
        let error = parse_lines(Path::new("trials.jsonl"), newer).err().unwrap();
        assert!(
            matches!(error, ArchiveError::NewerSchema { schema: 9, .. }),
            "{error}"
        );

        // A record as an earlier version may have written it: whole, and without what came later.
        let older = String::from_utf8(written()).unwrap();
        let older = older.replacen("\"steal_s\":", "\"stolen\":", 1);
        let error = parse_lines(Path::new("trials.jsonl"), older.as_bytes())
            .err()
            .unwrap();
        let message = error.to_string();
        assert!(
            matches!(error, ArchiveError::OtherForm { .. })
                && message.starts_with("trials.jsonl:1: ")
                && message.ends_with("read it with that version, or start afresh with --new"),
            "{message}"
        );
    }

    #[test]
    fn trials_of_an_attempt_cut_short_are_kept_and_not_used() {
        let root = tempfile::tempdir().unwrap();
        let plan = sample::plan();
        let mut lines = Vec::new();
        let cut_short = sample::outcome(&plan, 1, 1, 1, true);
        let redone = sample::outcome(&plan, 1, 2, 1, true);
        for record in cut_short.trials[..2]
            .iter()
            .chain(&redone.trials)
            .cloned()
            .map(Record::Trial)
            .chain([Record::Block(redone.block)])
        {
            lines.push(record);
        }
        fs::create_dir(root.path().join(layout::BLOCKS)).unwrap();
        fs::write(
            layout::slices(root.path(), 1, 2),
            crate::slices::format_slices(&redone.slices),
        )
        .unwrap();
        let sessions = [sample::session(1)];
        let read = |sessions: &[SessionRecord], lines: &[Record]| {
            read_attempts(
                root.path(),
                Path::new("trials.jsonl"),
                &plan,
                sessions,
                lines,
            )
        };
        let attempts = read(&sessions, &lines).unwrap();
        assert_eq!(attempts.len(), 1);
        assert_eq!(attempts[0].trials, redone.trials);
        assert_eq!(attempts[0].fate, Fate::Accepted);

        let message = read(&[], &lines).unwrap_err().to_string();
        assert!(
            message.contains("trials.jsonl:6: session 1 has no file"),
            "{message}"
        );
        let message = read(&sessions, &lines[3..]).unwrap_err().to_string();
        assert!(
            message.contains("trials.jsonl:3: none inet has no trial"),
            "{message}"
        );
        let twice = [&lines[..], &lines[2..]].concat();
        let message = read(&sessions, &twice).unwrap_err().to_string();
        assert!(
            message.contains("trials.jsonl:10: block 1 has attempt 2 twice"),
            "{message}"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, position: prop::sample::Index) {
            let _ = parse_lines(Path::new("x"), &bytes);
            let mut spliced = written();
            let start = position.index(spliced.len());
            let end = (start + bytes.len()).min(spliced.len());
            spliced.splice(start..end, bytes);
            let _ = parse_lines(Path::new("x"), &spliced);
        }
    }
}
