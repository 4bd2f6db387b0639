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

/// Descriptions that say that they are of another variant of the folder.
fn lint_descriptions(folder: Folder<'_>, findings: &mut Vec<Finding>) {
    let described: Vec<(&RunGroup, usize, &BenchInfo)> = folder
        .folder
        .groups
        .iter()
        .filter_map(|group| Some((group, group.info?, group.description(&folder.tree.files)?)))
        .collect();
    for (place, &(group, file, info)) in described.iter().enumerate() {
        let mut others = described.iter().enumerate();
        let other = others.find(|&(other_place, &(other, _, other_info))| {
            other_place != place
                && other.folder == group.folder
                && is_of(group, info, other, other_info)
        });
        let Some((_, &(other, other_file, other_info))) = other else {
            continue;
        };
        let says = said(info);
        let sentence = format!(
            "{} says that it is of {says}, as {} is named, and not of {}",
            folder.name(file),
            shown(&other.key),
            shown(&group.key)
        );
        let finding = folder
            .finding(&INFO_OF_ANOTHER, sentence)
            .with(folder.published(file, says))
            .with(folder.derived(other_file, said(other_info)));
        findings.push(finding);
    }
}

/// Whether a description is that of another variant, by what it says otherwise than that one's: it is in the other's
/// name, and not in that of its own; and the other's description does not say that it is right.
fn is_of(group: &RunGroup, info: &BenchInfo, other: &RunGroup, other_info: &BenchInfo) -> bool {
    let (own_parts, other_parts) = (parts(info), parts(other_info));
    // The name that the archive's scripts give.
    let name = name(&own_parts);
    if name == other.key {
        return group.key != other.key;
    }
    if name == group.key {
        return false;
    }
    let mut is_crossed = false;
    for (own, others) in own_parts.iter().zip(&other_parts) {
        let (Some(own), Some(others)) = (own, others) else {
            continue;
        };
        if own == others {
            continue;
        }
        let is_right = is_in(own, &group.key) && !is_in(own, &other.key);
        if is_right {
            return false;
        }
        is_crossed |= is_in(own, &other.key)
            && !is_in(own, &group.key)
            && is_in(others, &group.key)
            && !is_in(others, &other.key);
    }
    is_crossed
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
    format!(".{key}.").contains(&format!(".{part}."))
        || key
            .split('.')
            .any(|of_key| of_key.len() > 3 && part.split('-').any(|word| word == of_key))
        || (is_number
            && key
                .split(|character: char| !character.is_ascii_digit())
                .any(|number| number == part))
}

/// What a description says that its runs are of.
fn said(info: &BenchInfo) -> String {
    let parts = parts(info);
    let named = name(&parts);
    match &parts[3] {
        Some(revision) if named.is_empty() => format!("revision {revision}"),
        _ => named,
    }
}
