//! What a run says of itself, held against its records.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fwdlab_model::{AddressFamily, Record, TrialRecord, VariantName};
use fwdlab_stats::imbalance_p;

use crate::durable;
use crate::input::input;
use crate::layout;
use crate::load::Loaded;

use super::lines::Lines;
use super::{
    Evidence, FINISHED_RUN_CHANGED, Finding, INVALID_TRIALS_UNBALANCED, OTHER_EXPERIMENT,
    OTHER_MACHINE, RUN_MISSING, TIMES_OUT_OF_ORDER, VALUES_MISSING, files, name_in,
};

/// In so many sound runs does chance alone give one variant too many invalid trials.
const IMBALANCE_LEVEL: f64 = 0.01;

pub(super) fn lint_run(loaded: &Loaded, findings: &mut Vec<Finding>) {
    lint_experiment(loaded, findings);
    lint_sessions(loaded, findings);
    lint_times(loaded, findings);
    lint_finished(loaded, findings);
    lint_slices_without_records(loaded, findings);
    lint_invalid_trials(loaded, findings);
}

fn lint_experiment(loaded: &Loaded, findings: &mut Vec<Finding>) {
    let derived = loaded.resolved.hash();
    if derived == loaded.hash {
        return;
    }
    let resolved = loaded.dir.join(layout::RESOLVED);
    let sentence = "the experiment in resolved.json does not have the hash beside it";
    findings.push(
        Finding::new(&OTHER_EXPERIMENT, &loaded.dir, sentence)
            .with(Evidence::published(
                &resolved,
                None,
                format!("\"hash\": \"{}\"", loaded.hash),
            ))
            .with(Evidence::derived(&resolved, None, derived)),
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
                    .with(Evidence::published(
                        &resolved,
                        None,
                        format!("\"kernel\": \"{}\"", loaded.kernel),
                    ))
                    .with(Evidence::derived(&path(first.session), None, found)),
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
                    .with(Evidence::published(
                        &path(after.session),
                        None,
                        after.environment.kernel.as_str(),
                    ))
                    .with(Evidence::derived(
                        &path(before.session),
                        None,
                        before.environment.kernel.as_str(),
                    )),
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
                .with(Evidence::published(&path(number), None, "is not there"))
                .with(Evidence::derived(&path(last), None, "is there")),
        );
    }
}

/// Seconds of a UTC time, as text that sorts; none where it is written otherwise.
fn seconds(time: &str) -> Option<&str> {
    let seconds = time.get(..19)?;
    let bytes = seconds.as_bytes();
    (bytes[4] == b'-' && bytes[10] == b'T' && bytes[16] == b':').then_some(seconds)
}

fn lint_times(loaded: &Loaded, findings: &mut Vec<Finding>) {
    let lines = Lines::of(loaded);
    let trials = loaded.dir.join(layout::TRIALS);
    let mut before: Option<(&str, Option<usize>)> = None;
    for attempt in &loaded.attempts {
        let record = &attempt.record;
        let Some(start) = seconds(&record.start) else {
            continue;
        };
        let line = lines.block(record);
        let published =
            Evidence::published(&trials, line, format!("\"start\":\"{}\"", record.start));
        let mut sessions = loaded.sessions.iter();
        let session = sessions.find(|session| session.session == record.session);
        let session_start = session.and_then(|session| seconds(&session.start));
        if let Some(session_start) = session_start.filter(|session| start < *session) {
            let sentence = format!(
                "block {} began before its session {}",
                record.block, record.session
            );
            let path = layout::session(&loaded.dir, record.session);
            findings.push(
                Finding::new(&TIMES_OUT_OF_ORDER, &loaded.dir, sentence)
                    .with(published)
                    .with(Evidence::derived(&path, None, session_start)),
            );
        } else if let Some((earlier, line)) = before.filter(|(earlier, _)| start < *earlier) {
            let sentence = format!(
                "block {} began before the one that is recorded in front of it",
                record.block
            );
            findings.push(
                Finding::new(&TIMES_OUT_OF_ORDER, &loaded.dir, sentence)
                    .with(published)
                    .with(Evidence::derived(
                        &trials,
                        line,
                        format!("\"start\":\"{earlier}"),
                    )),
            );
        }
        before = Some((start, line));
    }
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
                    .with(Evidence::published(
                        &loaded.dir.join(layout::FINISHED),
                        None,
                        format!("{recorded:?}"),
                    ))
                    .with(Evidence::derived(
                        &loaded.dir.join(layout::TRIALS),
                        None,
                        format!("{derived:?}"),
                    )),
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
        name.is_some_and(files::is_slices)
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
                .with(Evidence::published(
                    &loaded.dir.join(layout::TRIALS),
                    None,
                    "no trial of it",
                ))
                .with(Evidence::derived(path, None, format!("{rows} slices"))),
        );
    }
}

/// One variant that has many more invalid trials than the others; reasons that hold for all trials of a
/// family at once tell nothing.
fn lint_invalid_trials(loaded: &Loaded, findings: &mut Vec<Finding>) {
    let mut counts: BTreeMap<(AddressFamily, &VariantName), u64> = BTreeMap::new();
    for attempt in &loaded.attempts {
        for trial in &attempt.trials {
            let others = || {
                let of_family = |other: &&TrialRecord| other.family == trial.family;
                attempt.trials.iter().filter(of_family)
            };
            let is_own = trial
                .invalid
                .iter()
                .any(|reason| !others().all(|other| other.invalid.contains(reason)));
            let count = counts.entry((trial.family, &trial.variant)).or_default();
            *count += u64::from(is_own);
        }
    }
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        let own: Vec<(&VariantName, u64)> = counts
            .iter()
            .filter(|((other, _), _)| *other == family)
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
            "{variant} has {most} of the {all} invalid trials of {family}, among {} variants (p = {p:.2e})",
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
