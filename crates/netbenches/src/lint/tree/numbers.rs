//! Datasets against the logs of their runs.

use std::collections::BTreeSet;

use fwdlab_archive::lint::{
    Evidence, Finding, LABELS_EXCHANGED, RUN_MISSING, VALUE_NOT_DERIVED, VALUE_REMOVED,
    VALUE_REPLACED, VALUES_REORDERED, counted,
};
use fwdlab_model::imported::DatasetOrigin;

use crate::lint::{DATASET_EMPTY, NO_RAW_DATA, RUN_OVERWRITTEN};
use crate::{Dataset, PublishedDataset, Run, RunGroup};

use super::Folder;

/// A profiler takes time from what it watches: a run that one ran beside falls behind those without. Within
/// a group, runs without one are that near to each other.
const PROFILED_BELOW: f64 = 0.97;

pub(super) fn lint_numbers(folder: Folder<'_>, findings: &mut Vec<Finding>) {
    let has_logs = folder.folder.groups.iter().any(RunGroup::has_logs);
    for dataset in &folder.folder.datasets {
        let Some(content) = dataset.content(&folder.tree.files) else {
            continue;
        };
        if content.values.is_empty() {
            findings.push(empty(folder, dataset));
            continue;
        }
        match (dataset.origin, dataset.group) {
            (DatasetOrigin::Altered, Some(group)) => {
                Altered::of(folder, dataset, content, group).lint(findings);
            }
            (DatasetOrigin::OtherLogs, Some(group)) => {
                findings.extend(renamed(folder, dataset, group));
            }
            (DatasetOrigin::NoLogs, _) if has_logs => {
                let name = folder.name(dataset.file);
                let sentence = format!(
                    "{name} has {} and no log, while others of its folder have theirs",
                    counted(content.values.len(), "value")
                );
                let finding = folder.finding(&NO_RAW_DATA, sentence);
                findings.push(
                    finding.with(
                        folder.published(dataset.file, counted(content.values.len(), "value")),
                    ),
                );
            }
            _ => {}
        }
    }
}

/// A dataset without a value; its logs may have some.
fn empty(folder: Folder<'_>, dataset: &PublishedDataset) -> Finding {
    let name = folder.name(dataset.file);
    let finding = folder.finding(&DATASET_EMPTY, format!("{name} holds no value"));
    let finding = finding.with(folder.published(dataset.file, "no value"));
    let mut runs = dataset
        .group
        .iter()
        .flat_map(|&group| &folder.folder.groups[group].runs);
    let first = runs.find_map(|run| {
        let log = run.received(&folder.tree.files)?;
        Some((run.receiver?, log.published.averaged.as_deref()?))
    });
    match first {
        Some((receiver, value)) => finding.with(folder.derived(receiver, value)),
        None => finding,
    }
}

/// A dataset under another name than its logs. Names are changed to be clearer; what is wrong is a name that
/// says the opposite, or that of other logs.
fn renamed(folder: Folder<'_>, dataset: &PublishedDataset, group: usize) -> Option<Finding> {
    let groups = &folder.folder.groups;
    let group = &groups[group];
    let name = folder.name(dataset.file);
    let holds = format!("{name} holds what the logs of {} give", group.key);
    let sentence = if let Some((says, logs_say)) = opposite(&dataset.name, &group.key) {
        format!("{holds}: its name says {says}, theirs {logs_say}")
    } else {
        let is_own = |own: &&RunGroup| own.key == dataset.name && own.folder == group.folder;
        groups.iter().filter(is_own).find(|own| own.has_logs())?;
        format!("{holds}, and not what its own do")
    };
    let mut finding = folder
        .finding(&LABELS_EXCHANGED, sentence)
        .with(folder.published(dataset.file, &dataset.name));
    if let Some(receiver) = group.runs.iter().find_map(|run| run.receiver) {
        finding = finding.with(folder.derived(receiver, &group.key));
    }
    Some(finding)
}

/// Words of names that say the opposite of each other.
const OPPOSITES: &[(&str, &str)] = &[
    ("on", "off"),
    ("enabled", "disabled"),
    ("enable", "disable"),
    ("yes", "no"),
    ("with", "without"),
    ("inet", "inet6"),
    ("inet4", "inet6"),
];

/// The words in which two names of the same say the opposite. A name that is turned round is often completed,
/// too (`on_default`, `off` for `off_default`, `on`).
fn opposite<'a>(name: &'a str, other: &'a str) -> Option<(&'a str, &'a str)> {
    let words = |name: &'a str| name.split(['.', '_', '-']).filter(|word| !word.is_empty());
    let differ = |one: &str, two: &str| {
        let is_pair = |pair: &&(&str, &str)| **pair == (one, two) || **pair == (two, one);
        OPPOSITES.iter().any(|pair| is_pair(&pair))
    };
    words(name).find_map(|word| {
        // A name that has both words says neither.
        let found = words(other).find(|other| differ(word, other))?;
        let is_plain =
            !words(other).any(|other| other == word) && !words(name).any(|name| name == found);
        // Another subject is another name: `tso_on`, `lro_off`.
        let rest = |name, word: &str| -> BTreeSet<&str> {
            words(name)
                .filter(|other| *other != word && *other != "default")
                .collect()
        };
        (is_plain && rest(name, word) == rest(other, found)).then_some((word, found))
    })
}

/// A dataset that its logs do not give.
struct Altered<'a> {
    folder: Folder<'a>,
    dataset: &'a PublishedDataset,
    /// The published lines that are no value of a run: line and text.
    only_published: Vec<(usize, &'a str)>,
    /// The runs whose value is not published.
    only_derived: Vec<(&'a Run, &'a str)>,
    /// The first published line that is not the value of the run in its place: line, text, run and value.
    first_apart: Option<(usize, &'a str, &'a Run, &'a str)>,
    /// How many values both have.
    common: usize,
    /// The median of the values that both have.
    usual: f64,
    /// The runs that have a sender's log and no receiver's that reads.
    without_log: usize,
    /// Where every value that can be has its place: the published lines that stand in the places of runs without a
    /// log. Else of which run a value is cannot be told.
    untraced: Option<Vec<usize>>,
}

impl<'a> Altered<'a> {
    fn of(
        folder: Folder<'a>,
        dataset: &'a PublishedDataset,
        content: &'a Dataset,
        group: usize,
    ) -> Self {
        let mut only_published: Vec<(usize, &str)> = content.written().collect();
        let all_derived: Vec<(&Run, &str)> = folder.folder.groups[group]
            .runs
            .iter()
            .filter_map(|run| {
                Some((
                    run,
                    run.received(&folder.tree.files)?
                        .published
                        .with(dataset.median)?,
                ))
            })
            .collect();
        let runs = &folder.folder.groups[group].runs;
        let untraced = placed(folder, dataset, runs, &only_published);
        let first_apart = only_published
            .iter()
            .zip(&all_derived)
            .find(|((_, published), (_, derived))| published != derived)
            .map(|(&(line, published), &(run, derived))| (line, published, run, derived));
        let (mut only_derived, mut common) = (Vec::new(), Vec::new());
        for (run, derived) in all_derived {
            match only_published.iter().position(|(_, line)| *line == derived) {
                Some(at) => {
                    only_published.remove(at);
                    common.extend(derived.parse::<f64>());
                }
                None => only_derived.push((run, derived)),
            }
        }
        Self {
            folder,
            dataset,
            only_published,
            only_derived,
            first_apart,
            usual: fwdlab_stats::median(&common).unwrap_or_default(),
            common: common.len(),
            without_log: runs.iter().filter(|run| run.receiver.is_none()).count(),
            untraced,
        }
    }

    fn lint(&self, findings: &mut Vec<Finding>) {
        let name = self.folder.name(self.dataset.file);
        if self.only_published.is_empty() && self.only_derived.is_empty() {
            self.reordered(&name, findings);
            return;
        }
        if self.common == 0 {
            self.none_derived(&name, findings);
            return;
        }
        let mut derived = self.only_derived.iter();
        // Without places, as many of the values as there are runs without a log may be theirs; that the others' are
        // not there is so all the same.
        let is_placed =
            self.without_log == 0 || self.only_derived.is_empty() || self.untraced.is_some();
        for &(line, published) in &self.only_published {
            if !is_placed {
                break;
            }
            let untraced = self.untraced.iter().flatten();
            let is_untraced = self.without_log > 0 && untraced.clone().any(|of| *of == line);
            let Some(&(run, value)) = (!is_untraced).then(|| derived.next()).flatten() else {
                let sentence = format!(
                    "{name} has {published}, and no log of that run is there that can be read"
                );
                let finding = self.folder.finding(&RUN_MISSING, sentence);
                findings.push(finding.with(self.published(line, published)));
                continue;
            };
            let is_slowed = value
                .parse::<f64>()
                .is_ok_and(|value| value < PROFILED_BELOW * self.usual);
            let (rule, why) = if run.is_profiled && is_slowed {
                (
                    &RUN_OVERWRITTEN,
                    ", and that run was profiled: it took the place of another",
                )
            } else {
                (&VALUE_REPLACED, "")
            };
            let sentence = format!("{name} has {published} where the log gives {value}{why}");
            findings.push(
                self.with_log(
                    self.folder
                        .finding(rule, sentence)
                        .with(self.published(line, published)),
                    run,
                    value,
                ),
            );
        }
        for &(run, value) in derived {
            let share = value.parse::<f64>().map_or(0.0, |value| value / self.usual);
            let sentence = format!(
                "{name} leaves out the run whose log gives {value}: {} of the others' median",
                percent(share)
            );
            let finding = self.folder.finding(&VALUE_REMOVED, sentence).with(
                self.folder
                    .published(self.dataset.file, counted(self.common, "value")),
            );
            findings.push(self.with_log(finding, run, value));
        }
    }

    fn reordered(&self, name: &str, findings: &mut Vec<Finding>) {
        let sentence = format!("{name} has the values of its runs in another order");
        let mut finding = self.folder.finding(&VALUES_REORDERED, sentence);
        if let Some((line, published, run, derived)) = self.first_apart {
            let evidence = self.published(line, published);
            finding = self.with_log(finding.with(evidence), run, derived);
        }
        findings.push(finding);
    }

    fn none_derived(&self, name: &str, findings: &mut Vec<Finding>) {
        let logs = match self.only_derived.len() {
            0 => "its logs give none".to_owned(),
            count => format!("the {} of its runs give none", counted(count, "log")),
        };
        let sentence = format!(
            "{name} has {}, of which {logs}",
            counted(self.only_published.len(), "value")
        );
        let mut finding = self.folder.finding(&VALUE_NOT_DERIVED, sentence);
        if let Some(&(line, published)) = self.only_published.first() {
            finding = finding.with(self.published(line, published));
        }
        if let Some(&(run, value)) = self.only_derived.first() {
            finding = self.with_log(finding, run, value);
        }
        findings.push(finding);
    }

    fn published(&self, line: usize, text: &str) -> Evidence {
        self.folder.published_at(self.dataset.file, line, text)
    }

    fn with_log(&self, finding: Finding, run: &Run, value: &str) -> Finding {
        match run.receiver {
            Some(receiver) => finding.with(self.folder.derived(receiver, value)),
            None => finding,
        }
    }
}

/// Which published lines stand in the places of runs without a log; none unless each line has the place of a run.
fn placed(
    folder: Folder<'_>,
    dataset: &PublishedDataset,
    runs: &[Run],
    published: &[(usize, &str)],
) -> Option<Vec<usize>> {
    let places: Vec<bool> = runs
        .iter()
        .filter_map(|run| match run.received(&folder.tree.files) {
            Some(log) => log.published.with(dataset.median).map(|_| true),
            None => Some(false),
        })
        .collect();
    let lines = published.iter().zip(&places);
    let untraced = lines.filter(|(_, has_log)| !**has_log);
    let untraced: Vec<usize> = untraced.map(|((line, _), _)| *line).collect();
    (places.len() == published.len()).then_some(untraced)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_say_the_opposite_are_told_from_names_that_say_it_otherwise() {
        for (name, other, expected) in [
            ("off_default", "on_default", Some(("off", "on"))),
            ("on", "off", Some(("on", "off"))),
            ("x.inet6", "x.inet4", Some(("inet6", "inet4"))),
            (
                "patch-disabled",
                "patch.enabled",
                Some(("disabled", "enabled")),
            ),
            ("on_default", "on", None),
            ("simple_tx_on_prefetch_off", "tx_on_prefetch_off", None),
            ("r1.forwarding", "forwarding", None),
            ("only", "office", None),
            ("tso_on", "lro_off", None),
            ("6rd.inet6", "inet", None),
        ] {
            assert_eq!(opposite(name, other), expected, "{name} {other}");
        }
    }
}
