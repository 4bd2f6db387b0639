//! What a run says of itself, held against its records.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use fwdlab_model::{BlockRecord, Record, Stratum, TrialRecord, VariantName};
use fwdlab_stats::imbalance_p;
use fwdlab_sys::durable;

use crate::chain::sha256_of_file;
use crate::input::input;
use crate::layout::{self, name_in};
use crate::load::{Attempt, Loaded};

use super::{
    Evidence, FINISHED_RUN_CHANGED, Finding, INVALID_TRIALS_UNBALANCED, NOT_FINISHED,
    OTHER_EXPERIMENT, OTHER_MACHINE, RUN_MISSING, TRIAL_MISPLACED, VALUES_MISSING,
};

/// In so many sound runs does chance alone give one variant too many invalid trials.
const IMBALANCE_LEVEL: f64 = 0.01;

pub(super) fn lint_run(loaded: &Loaded, findings: &mut Vec<Finding>) {
    lint_experiment(loaded, findings);
    lint_sessions(loaded, findings);
    lint_misplaced_trials(loaded, findings);
    lint_finished(loaded, findings);
    lint_slices_without_records(loaded, findings);
    lint_invalid_trials(loaded, findings);
}

fn lint_experiment(loaded: &Loaded, findings: &mut Vec<Finding>) {
    let source = loaded.dir.join(layout::EXPERIMENT);
    if let Err(error) = sha256_of_file(&loaded.dir, &source) {
        findings.push(if error.kind() == io::ErrorKind::NotFound {
            let sentence = "experiment.toml is missing";
            Finding::new(&VALUES_MISSING, &loaded.dir, sentence)
                .published(&source, error.to_string())
        } else {
            Finding::unreadable(&loaded.dir, &source, &error)
        });
    }
    let derived = loaded.resolved.hash();
    if derived == loaded.hash {
        return;
    }
    let resolved = loaded.dir.join(layout::RESOLVED);
    let sentence = "the experiment in resolved.json does not have the hash beside it";
    findings.push(
        Finding::new(&OTHER_EXPERIMENT, &loaded.dir, sentence)
            .published(&resolved, format!("\"hash\": \"{}\"", loaded.hash))
            .derived(&resolved, derived),
    );
}

fn lint_sessions(loaded: &Loaded, findings: &mut Vec<Finding>) {
    let path = |session| layout::session(&loaded.dir, session);
    if let Some(first) = loaded.sessions.first() {
        let found = first
            .environment
            .kernel
            .split(' ')
            .next()
            .unwrap_or_default();
        if found != loaded.kernel {
            let sentence = format!(
                "the run was started on kernel {}, its first session on {found}",
                loaded.kernel
            );
            let resolved = loaded.dir.join(layout::RESOLVED);
            findings.push(
                Finding::new(&OTHER_MACHINE, &loaded.dir, sentence)
                    .published(&resolved, format!("\"kernel\": \"{}\"", loaded.kernel))
                    .derived(&path(first.session), found),
            );
        }
    }
    for pair in loaded.sessions.windows(2) {
        let [before, after] = pair else { continue };
        if let Some(difference) = after.environment.difference(&before.environment) {
            let sentence = format!(
                "session {} is of another machine than session {}: {difference}",
                after.session, before.session
            );
            findings.push(
                Finding::new(&OTHER_MACHINE, &loaded.dir, sentence)
                    .published(&path(after.session), after.environment.kernel.as_str())
                    .derived(&path(before.session), before.environment.kernel.as_str()),
            );
        }
    }
    let last = loaded.sessions.last().map_or(0, |session| session.session);
    let present: BTreeSet<u32> = loaded
        .sessions
        .iter()
        .map(|session| session.session)
        .collect();
    // Each start of a run is one more, so those in between are as few as the files; a number that is not
    // is a file put in by hand.
    let missing = (1..=last).filter(|number| !present.contains(number));
    for number in missing.take(present.len() + 1) {
        let sentence = format!("session {number} has no file, and session {last} has one");
        findings.push(
            Finding::new(&VALUES_MISSING, &loaded.dir, sentence)
                .published(&path(number), "is not there")
                .derived(&path(last), "is there"),
        );
    }
}

/// Trials among the lines of another block, where nothing counts them.
///
/// Only those of an attempt that was cut short may be there: no block record is theirs.
fn lint_misplaced_trials(loaded: &Loaded, findings: &mut Vec<Finding>) {
    let whole: BTreeSet<(u32, u32, u32)> = loaded
        .attempts
        .iter()
        .map(|Attempt { record, .. }| (record.session, record.block, record.attempt))
        .collect();
    let trials = loaded.dir.join(layout::TRIALS);
    let mut first = 0;
    let mut look_at = |first: usize, end: usize, block: Option<&BlockRecord>| {
        for (index, record) in loaded.records[first..end].iter().enumerate() {
            let Record::Trial(trial) = record else {
                continue;
            };
            let is_own = block.is_some_and(|block| trial.belongs_to(block));
            if is_own || !whole.contains(&(trial.session, trial.block, trial.attempt)) {
                continue;
            }
            let line = first + index + 1;
            let title = |block, attempt| format!("block {block}, attempt {attempt}");
            let of = title(trial.block, trial.attempt);
            let among = match block {
                Some(block) => format!("among those of {}", title(block.block, block.attempt)),
                None => "behind the last block".to_owned(),
            };
            let sentence = format!(
                "line {line} of trials.jsonl is a trial of {of}, {among}: {} {}",
                trial.variant, trial.stratum
            );
            let finding = Finding::new(&TRIAL_MISPLACED, &loaded.dir, sentence);
            findings.push(finding.published_at(&trials, line, of));
        }
    };
    for (index, record) in loaded.records.iter().enumerate() {
        if let Record::Block(block) = record {
            look_at(first, index, Some(block));
            first = index + 1;
        }
    }
    look_at(first, loaded.records.len(), None);
}

/// A run that has nothing left to measure is finished at once.
pub(super) fn lint_end(loaded: &Loaded, findings: &mut Vec<Finding>) {
    let measured: BTreeSet<u32> = loaded
        .attempts
        .iter()
        .map(|attempt| attempt.record.block)
        .collect();
    let planned = &loaded.plan.blocks;
    let is_whole = planned.iter().all(|block| measured.contains(&block.number));
    if loaded.finished.is_some() || !is_whole {
        return;
    }
    let sentence = format!(
        "all {} blocks were measured, and there is no finished.json",
        planned.len()
    );
    let finished = loaded.dir.join(layout::FINISHED);
    let finding = Finding::new(&NOT_FINISHED, &loaded.dir, sentence);
    findings.push(finding.published(&finished, "is not there"));
}

fn lint_finished(loaded: &Loaded, findings: &mut Vec<Finding>) {
    let Some(finished) = &loaded.finished else {
        return;
    };
    let accepted: Vec<u32> = loaded
        .accepted()
        .iter()
        .map(|attempt| attempt.record.block)
        .collect();
    let given_up = loaded.blocks_without_accepted();
    for (key, recorded, derived) in [
        ("accepted_blocks", &finished.accepted_blocks, &accepted),
        ("given_up_blocks", &finished.given_up_blocks, &given_up),
    ] {
        if recorded != derived {
            let sentence = format!("{key} of finished.json are not those of trials.jsonl");
            findings.push(
                Finding::new(&FINISHED_RUN_CHANGED, &loaded.dir, sentence)
                    .published(&loaded.dir.join(layout::FINISHED), format!("{recorded:?}"))
                    .derived(&loaded.dir.join(layout::TRIALS), format!("{derived:?}")),
            );
        }
    }
}

/// Slices of a finished run whose trials were taken out.
///
/// Of an unfinished one they are what a crash leaves: they are written before their trials.
fn lint_slices_without_records(loaded: &Loaded, findings: &mut Vec<Finding>) {
    if loaded.finished.is_none() {
        return;
    }
    let recorded: BTreeSet<_> = loaded
        .records
        .iter()
        .map(|record| match record {
            Record::Trial(trial) => layout::slices(&loaded.dir, trial.block, trial.attempt),
            Record::Block(block) => layout::slices(&loaded.dir, block.block, block.attempt),
        })
        .collect();
    let there = durable::entries(&loaded.dir.join(layout::BLOCKS)).unwrap_or_default();
    let is_slices = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(layout::is_slices)
    };
    for path in there
        .iter()
        .filter(|path| is_slices(path) && !recorded.contains(*path))
    {
        let name = name_in(&loaded.dir, path);
        let sentence = format!("{name} was measured, and trials.jsonl does not have it");
        let rows = input(&loaded.dir, path)
            .text()
            .map_or(0, |text| text.lines().count().saturating_sub(1));
        findings.push(
            Finding::new(&RUN_MISSING, &loaded.dir, sentence)
                .published(&loaded.dir.join(layout::TRIALS), "no trial of it")
                .derived(path, format!("{rows} slices")),
        );
    }
}

/// One variant that has many more invalid trials than the others; reasons that hold for all trials of a
/// stratum at once tell nothing.
fn lint_invalid_trials(loaded: &Loaded, findings: &mut Vec<Finding>) {
    let mut counts: BTreeMap<(Stratum, &VariantName), u64> = BTreeMap::new();
    for attempt in &loaded.attempts {
        for trial in &attempt.trials {
            let others = || {
                let of_stratum = |other: &&TrialRecord| other.stratum == trial.stratum;
                attempt.trials.iter().filter(of_stratum)
            };
            let is_own = trial
                .invalid
                .iter()
                .any(|reason| !others().all(|other| other.invalid.contains(reason)));
            let count = counts.entry((trial.stratum, &trial.variant)).or_default();
            *count += u64::from(is_own);
        }
    }
    for stratum in loaded.resolved.strata() {
        let own: Vec<(&VariantName, u64)> = counts
            .iter()
            .filter(|((other, _), _)| *other == stratum)
            .map(|((_, variant), count)| (*variant, *count))
            .collect();
        let numbers: Vec<u64> = own.iter().map(|(_, count)| *count).collect();
        let Some(p) = imbalance_p(&numbers).filter(|p| *p <= IMBALANCE_LEVEL) else {
            continue;
        };
        let Some((variant, most)) = own.iter().max_by_key(|(_, count)| *count) else {
            continue;
        };
        let all: u64 = numbers.iter().sum();
        let sentence = format!(
            "{variant} has {most} of the {all} invalid trials of {stratum}, among {} variants (p = {p:.2e})",
            own.len()
        );
        let by_variant: Vec<String> = own
            .iter()
            .map(|(variant, count)| format!("{variant}: {count}"))
            .collect();
        let trials = loaded.dir.join(layout::TRIALS);
        let evidence = Evidence::published(&trials, None, by_variant.join(", "));
        let finding = Finding::new(&INVALID_TRIALS_UNBALANCED, &loaded.dir, sentence);
        findings.push(finding.with(evidence));
    }
}
