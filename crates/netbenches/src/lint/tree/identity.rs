//! Files that are under the name of another run or variant: logs, descriptions.

use std::collections::BTreeMap;
use std::path::Path;

use fwdlab_archive::lint::Finding;

use crate::lint::{INFO_OF_ANOTHER, SAME_LOG};
use crate::{BenchInfo, Content, Fingerprint, LogFacts, Outcome, Run, RunGroup};

use super::{Folder, shown};

/// Logs of so few samples may be alike.
const SAMPLES_MIN: usize = 3;

pub(super) fn lint_identity(folder: Folder<'_>, findings: &mut Vec<Finding>) {
    lint_same_logs(folder, findings);
    lint_descriptions(folder, findings);
}

/// A run of a folder, and a log of it.
struct Logged<'a> {
    group: &'a RunGroup,
    run: &'a Run,
    file: usize,
}

/// Logs that are the same to the byte: of two runs one has not its own.
fn lint_same_logs(folder: Folder<'_>, findings: &mut Vec<Finding>) {
    let mut by_folder: BTreeMap<&Path, BTreeMap<Fingerprint, Vec<Logged<'_>>>> = BTreeMap::new();
    for group in &folder.folder.groups {
        let logs = by_folder.entry(&group.folder).or_default();
        for run in &group.runs {
            for &file in run.receiver.iter().chain(&run.senders) {
                let Outcome::Read(Content::Log(log)) = &folder.file(file).outcome else {
                    continue;
                };
                if is_told(log) {
                    let logged = Logged { group, run, file };
                    logs.entry(log.fingerprint).or_default().push(logged);
                }
            }
        }
    }
    for logs in by_folder.into_values().flat_map(BTreeMap::into_values) {
        let [first, others @ ..] = &logs[..] else {
            continue;
        };
        if others.is_empty() || others.iter().all(|other| is_copy(folder, first, other)) {
            continue;
        }
        let names: Vec<String> = logs.iter().map(|logged| folder.name(logged.file)).collect();
        let sentence = format!(
            "{} are the same log, so that no more than one of them is that of its run",
            names.join(", ")
        );
        let finding = folder.finding(&SAME_LOG, sentence);
        findings.push(logs.iter().fold(finding, |finding, logged| {
            let run = logged.run.iteration;
            let run = run.map_or_else(String::new, |run| format!(" {run}"));
            let says = format!("run{run} of {}", shown(&logged.group.key));
            finding.with(folder.published(logged.file, says))
        }));
    }
}

/// Whether a log has what no other has: the times of its samples.
fn is_told(log: &LogFacts) -> bool {
    log.samples.all >= SAMPLES_MIN
}

/// Whether a variant as a whole is there under two names.
fn is_copy(folder: Folder<'_>, one: &Logged<'_>, other: &Logged<'_>) -> bool {
    let fingerprints = |group: &RunGroup| -> Vec<Option<Fingerprint>> {
        let runs = group.runs.iter();
        let logs = runs.map(|run| run.received(&folder.tree.files));
        logs.map(|log| Some(log?.fingerprint)).collect()
    };
    one.group.key != other.group.key
        && one.group.runs.len() > 1
        && fingerprints(one.group) == fingerprints(other.group)
}

/// A description, and what of it is in names.
struct Described<'a> {
    group: &'a RunGroup,
    file: usize,
    parts: [Option<String>; 4],
    /// Which of the parts are in the name of its runs.
    are_in_key: [bool; 4],
    /// The name that the archive's scripts give.
    name: String,
}

/// Descriptions that say that they are of another variant of the folder.
fn lint_descriptions(folder: Folder<'_>, findings: &mut Vec<Finding>) {
    let groups = folder.folder.groups.iter();
    let described = groups.filter_map(|group| {
        let parts = parts(group.description(&folder.tree.files)?);
        Some(Described {
            group,
            file: group.info?,
            name: name(&parts),
            are_in_key: parts
                .each_ref()
                .map(|part| part.as_ref().is_some_and(|part| is_in(part, &group.key))),
            parts,
        })
    });
    let described: Vec<Described<'_>> = described.collect();
    for own in described.iter().filter(|own| own.name != own.group.key) {
        let other = described.iter().find(|other| {
            other.file != own.file && other.group.folder == own.group.folder && own.is_of(other)
        });
        let Some(other) = other else {
            continue;
        };
        let sentence = format!(
            "{} says that it is of {}, as {} is named, and not of {}",
            folder.name(own.file),
            own.said(),
            shown(&other.group.key),
            shown(&own.group.key)
        );
        let finding = folder
            .finding(&INFO_OF_ANOTHER, sentence)
            .with(folder.published(own.file, own.said()))
            .with(folder.derived(other.file, other.said()));
        findings.push(finding);
    }
}

impl Described<'_> {
    /// Whether it is that of another variant, by what it says otherwise than that one's: it is in the other's name, and
    /// not in that of its own, and the other way round.
    fn is_of(&self, other: &Self) -> bool {
        let (key, other_key) = (&self.group.key, &other.group.key);
        if self.name == *other_key {
            return true;
        }
        let mut is_crossed = false;
        for number in 0..self.parts.len() {
            let (Some(own), Some(others)) = (&self.parts[number], &other.parts[number]) else {
                continue;
            };
            if own == others {
                continue;
            }
            if self.are_in_key[number] {
                if !is_in(own, other_key) {
                    return false;
                }
            } else if !is_crossed && !other.are_in_key[number] {
                is_crossed = is_in(own, other_key) && is_in(others, key);
            }
        }
        is_crossed
    }

    /// What it says that its runs are of.
    fn said(&self) -> String {
        match &self.parts[3] {
            Some(revision) if self.name.is_empty() => format!("revision {revision}"),
            _ => self.name.clone(),
        }
    }
}

/// What of a description is in the names of its runs: image, configuration and traffic, each without its folder, and
/// the kernel's revision.
fn parts(info: &BenchInfo) -> [Option<String>; 4] {
    let without_folder = |path: &Option<String>| {
        let name = path.as_deref()?.trim_end_matches('/').rsplit('/').next()?;
        (!name.is_empty()).then(|| name.to_owned())
    };
    let revision = info
        .uname
        .as_ref()
        .and_then(|uname| uname.revision.as_ref());
    [
        without_folder(&info.image),
        without_folder(&info.configuration),
        without_folder(&info.pktgen),
        revision
            .and_then(|revision| revision.number)
            .map(|number| number.to_string()),
    ]
}

fn name(parts: &[Option<String>; 4]) -> String {
    let named: Vec<&str> = parts[..3].iter().flatten().map(String::as_str).collect();
    named.join(".")
}

/// Whether a name has a part: between dots, or one of its own words as a part (`280829` of
/// `BSDRP-280829-upgrade-amd64`), or as one of its numbers.
fn is_in(part: &str, key: &str) -> bool {
    let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
    let is_between_dots = || {
        key.match_indices(part).any(|(at, _)| {
            let (before, behind) = (&key[..at], &key[at + part.len()..]);
            (before.is_empty() || before.ends_with('.'))
                && (behind.is_empty() || behind.starts_with('.'))
        })
    };
    is_between_dots()
        || key
            .split('.')
            .any(|of_key| of_key.len() > 3 && part.split('-').any(|word| word == of_key))
        || (is_number
            && key
                .split(|character: char| !character.is_ascii_digit())
                .any(|number| number == part))
}
