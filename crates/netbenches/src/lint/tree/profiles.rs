//! Profiles: whether they are whole, and of a device at work.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fwdlab_archive::lint::Finding;
use fwdlab_profile::may_be_idle;

use crate::lint::{FOLDED_OF_ANOTHER, PERHAPS_IDLE, PROFILE_IDLE, PROFILE_TRUNCATED};
use crate::{BenchName, CallGraphFacts, Content, FoldedFacts, Outcome, Role};

use super::Folder;

/// A device under load that is idle for longer than this was not profiled under it.
const IDLE_SHARE: f64 = 0.5;

/// A function that holds more than this part of the samples decides what a profile says.
const LEAF_SHARE: f64 = 0.3;

pub(super) fn lint_profiles(folder: Folder<'_>, findings: &mut Vec<Finding>) {
    let mut graphs = Vec::new();
    let mut counted = BTreeMap::new();
    for &index in &folder.folder.members {
        match &folder.file(index).outcome {
            Outcome::Read(Content::CallGraph(graph)) => {
                graphs.push((stem(&folder.file(index).path), index, &**graph));
            }
            Outcome::Read(Content::ProfileLog(Some(samples))) => {
                counted.insert(stem(&folder.file(index).path), (index, *samples));
            }
            _ => {}
        }
    }
    for (stem, index, graph) in &graphs {
        findings.extend(lint_truncation(
            folder,
            *index,
            graph,
            counted.get(stem).copied(),
            missing_sections((*index, graph), &graphs, folder),
        ));
        let leaf = graph.leaves.first();
        let leaf = leaf.map(|(leaf, samples)| (leaf.as_str(), *samples));
        findings.extend(lint_idle(folder, *index, graph.idle_share, leaf));
        findings.extend(lint_leaf(folder, *index, graph.read_samples, leaf));
    }
    for &index in &folder.folder.members {
        let Outcome::Read(Content::FoldedStacks(stacks)) = &folder.file(index).outcome else {
            continue;
        };
        let own = stem(&folder.file(index).path);
        if let Some((_, graph, facts)) = graphs.iter().find(|(stem, _, _)| *stem == own) {
            findings.extend(lint_stacks(folder, (index, stacks), (*graph, facts)));
        } else {
            // What is said of the graph holds for them.
            let leaf = stacks.leaf.as_ref();
            let leaf = leaf.map(|(leaf, samples)| (leaf.as_str(), *samples));
            findings.extend(lint_idle(folder, index, stacks.idle_share, leaf));
            findings.extend(lint_leaf(folder, index, stacks.samples, leaf));
        }
    }
}

/// What a profile is of, whatever its form: its path without the ending. Profiles of one name in other folders
/// are others.
fn stem(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match BenchName::parse(&name) {
        Some(BenchName { stem, role }) if role != Role::Picture => path.with_file_name(stem),
        _ => path.with_file_name(&*name),
    }
}

/// Sections that a graph has fewer of than another of its folder has.
struct MissingSections {
    there: usize,
    expected: usize,
    /// The other graph.
    of: usize,
}

/// Every counter has its section, and all profiles of a session are of the same counters: of an event that another graph
/// beside it has more sections of, some are gone.
fn missing_sections(
    (index, graph): (usize, &CallGraphFacts),
    graphs: &[(PathBuf, usize, &CallGraphFacts)],
    folder: Folder<'_>,
) -> Option<MissingSections> {
    let directory = |index: usize| folder.file(index).path.parent();
    let mut most: Option<MissingSections> = None;
    for (_, of, other) in graphs {
        if *of == index || directory(*of) != directory(index) {
            continue;
        }
        for (event, &expected) in &other.sections {
            let there = graph.sections.get(event).copied().unwrap_or(0);
            let is_more = most.as_ref().is_none_or(|most| most.expected < expected);
            if there > 0 && there < expected && is_more {
                most = Some(MissingSections {
                    there,
                    expected,
                    of: *of,
                });
            }
        }
    }
    most
}

/// What a graph says of itself, what the profiler counted when it made it, and what the profiles beside it have: of a
/// graph that ends between two sections only these tell.
fn lint_truncation(
    folder: Folder<'_>,
    index: usize,
    graph: &CallGraphFacts,
    counted: Option<(usize, u64)>,
    fewer: Option<MissingSections>,
) -> Option<Finding> {
    let missing = graph
        .truncation
        .as_ref()
        .map_or(0, |truncation| truncation.missing_samples);
    // A count that says what the graph says leaves no section out.
    let is_counted = counted.is_some_and(|(_, samples)| samples >= graph.samples);
    let fewer = fewer.filter(|_| counted.is_none_or(|(_, samples)| samples != graph.samples));
    let counted = counted.filter(|(_, samples)| *samples > graph.samples);
    let all = counted.map_or(graph.samples, |(_, samples)| samples);
    let there = graph.samples - missing;
    if graph.truncation.is_none() && counted.is_none() && fewer.is_none() {
        return None;
    }
    let name = folder.name(index);
    let sections = graph
        .truncation
        .iter()
        .flat_map(|truncation| &truncation.sections);
    let line = sections.map(|section| section.line).next();
    let share = (all - there) as f64 / all as f64 * 100.0;
    let sentence = match &fewer {
        // How many samples the sections had that are not there nobody knows, unless the profiler counted them.
        Some(fewer) if all == there => format!(
            "{name} is cut: it has {} of the {} sections of {}",
            fewer.there,
            fewer.expected,
            folder.name(fewer.of)
        ),
        Some(fewer) => format!(
            "{name} is cut: {}{share:.1} % of {all} samples are missing; it has {} of the {} sections of {}",
            if is_counted { "" } else { "at least " },
            fewer.there,
            fewer.expected,
            folder.name(fewer.of)
        ),
        // What is cut in a section may have had more of them.
        None if is_counted => format!("{name} is cut: {share:.1} % of {all} samples are missing"),
        None => format!("{name} is cut: at least {share:.1} % of {all} samples are missing"),
    };
    let finding = folder
        .finding(&PROFILE_TRUNCATED, sentence)
        .with(folder.published_at(
            index,
            line,
            format!("{there} samples there, of {} said", graph.samples),
        ));
    let finding = match counted {
        Some((log, samples)) => finding.with(folder.derived(log, format!("{samples} samples"))),
        None => finding,
    };
    Some(match fewer {
        Some(fewer) => {
            finding.with(folder.derived(fewer.of, format!("{} sections", fewer.expected)))
        }
        None => finding,
    })
}

fn lint_idle(
    folder: Folder<'_>,
    index: usize,
    idle_share: Option<f64>,
    leaf: Option<(&str, u64)>,
) -> Option<Finding> {
    let idle = idle_share.filter(|idle| *idle > IDLE_SHARE)?;
    let (leaf, _) = leaf?;
    let sentence = format!(
        "{} is of a device that was idle in {:.0} % of its samples",
        folder.name(index),
        idle * 100.0
    );
    let finding = folder.finding(&PROFILE_IDLE, sentence);
    Some(finding.with(folder.published(index, format!("most samples: {leaf}"))))
}

/// A function of which the name alone is known.
fn lint_leaf(
    folder: Folder<'_>,
    index: usize,
    samples: u64,
    leaf: Option<(&str, u64)>,
) -> Option<Finding> {
    let (leaf, of_leaf) = leaf?;
    let share = of_leaf as f64 / samples as f64;
    if share <= LEAF_SHARE || !may_be_idle(leaf) {
        return None;
    }
    let sentence = format!(
        "{} has {:.0} % of its samples in {leaf}, which fwdlab does not know: its name is as those of functions in \
         which a device is idle",
        folder.name(index),
        share * 100.0
    );
    let finding = folder.finding(&PERHAPS_IDLE, sentence);
    Some(finding.with(folder.published(index, format!("{of_leaf} samples in {leaf}"))))
}

fn lint_stacks(
    folder: Folder<'_>,
    (index, stacks): (usize, &FoldedFacts),
    (graph, facts): (usize, &CallGraphFacts),
) -> Option<Finding> {
    // Folding loses samples, but a few; folded with a filter or by another program, it is another text.
    if stacks.folded == facts.folded || stacks.samples == facts.samples {
        return None;
    }
    let (name, of) = (folder.name(index), folder.name(graph));
    let sentence = format!("{name} is not what folding makes of {of}");
    let finding = folder
        .finding(&FOLDED_OF_ANOTHER, sentence)
        .with(folder.published(index, format!("{} samples", stacks.samples)))
        .with(folder.derived(graph, format!("{} samples", facts.samples)));
    Some(finding)
}
