//! Published throughputs against the searches that found them.

use fwdlab_archive::lint::{Evidence, Finding, VALUE_NOT_DERIVED, VALUE_REPLACED, counted};

use crate::{Content, Estimate, Outcome, Run, RunGroup};

use super::Folder;

pub(super) fn lint_equilibrium(folder: Folder<'_>, findings: &mut Vec<Finding>) {
    for &index in &folder.folder.members {
        let file = folder.file(index);
        let Outcome::Read(Content::EquilibriumValues(values)) = &file.outcome else {
            continue;
        };
        let name = file.path.file_name().unwrap_or_default().to_string_lossy();
        let (key, of): (&str, fn(&Estimate) -> u64) =
            if let Some(key) = name.strip_suffix(".equilibrium.max") {
                (key, |estimate| estimate.maximum_mbps)
            } else if let Some(key) = name.strip_suffix(".equilibrium") {
                (key, |estimate| estimate.equilibrium_mbps)
            } else {
                continue;
            };
        let groups = folder.folder.groups.iter();
        let groups: Vec<&RunGroup> = groups.filter(|group| group.key == key).collect();
        // Of several of the name nothing tells which the values are of.
        let [group] = groups[..] else {
            continue;
        };
        let found: Option<Vec<Found>> = group
            .runs
            .iter()
            .map(|run| found(folder, run, of))
            .collect();
        if let Some(found) = found.filter(|found| found.len() == values.len()) {
            lint_values(folder, index, values, &found, findings);
        }
    }
}

/// What a run's search found.
struct Found {
    sender: usize,
    line: usize,
    mbps: u64,
}

impl Found {
    fn evidence(&self, folder: Folder<'_>) -> Evidence {
        let says = format!("{} Mb/s", self.mbps);
        Evidence::derived(&folder.path(self.sender), Some(self.line), says)
    }
}

/// None where a run has no search, or one that ended before it found anything.
fn found(folder: Folder<'_>, run: &Run, of: fn(&Estimate) -> u64) -> Option<Found> {
    let [sender] = run.senders[..] else {
        return None;
    };
    let Outcome::Read(Content::EquilibriumLog(Some(estimate))) = &folder.file(sender).outcome
    else {
        return None;
    };
    Some(Found {
        sender,
        line: estimate.line,
        mbps: of(estimate),
    })
}

fn lint_values(
    folder: Folder<'_>,
    file: usize,
    values: &[f64],
    found: &[Found],
    findings: &mut Vec<Finding>,
) {
    let apart: Vec<(usize, f64, &Found)> = values
        .iter()
        .zip(found)
        .enumerate()
        .filter(|(_, (value, found))| value.total_cmp(&(found.mbps as f64)).is_ne())
        .map(|(index, (value, found))| (index, *value, found))
        .collect();
    let name = folder.name(file);
    let Some(&(_, first, of_first)) = apart.first() else {
        return;
    };
    if apart.len() == values.len() {
        let sentence = format!(
            "{name} has {}, of which the searches of its runs give none",
            counted(values.len(), "value")
        );
        findings.push(
            folder
                .finding(&VALUE_NOT_DERIVED, sentence)
                .with(folder.published(file, format!("{first} Mb/s")))
                .with(of_first.evidence(folder)),
        );
        return;
    }
    for (index, value, found) in apart {
        let sentence = format!("{name} has {value} where the search gives {}", found.mbps);
        findings.push(
            folder
                .finding(&VALUE_REPLACED, sentence)
                .with(folder.published_at(file, index + 1, value.to_string()))
                .with(found.evidence(folder)),
        );
    }
}
