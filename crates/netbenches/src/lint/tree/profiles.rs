//! Profiles: whether they are whole, and of a device at work.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fwdlab_archive::lint::Finding;

use crate::lint::{FOLDED_OF_ANOTHER, PROFILE_IDLE, PROFILE_TRUNCATED};
use crate::{BenchName, CallGraphFacts, Content, FoldedFacts, Outcome, Role};

use super::Folder;

/// A device under load that is idle for longer than this was not profiled under it.
const IDLE_SHARE: f64 = 0.5;

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
        ));
        findings.extend(lint_idle(folder, *index, graph));
    }
    for &index in &folder.folder.members {
        let Outcome::Read(Content::FoldedStacks(stacks)) = &folder.file(index).outcome else {
            continue;
        };
        let own = stem(&folder.file(index).path);
        if let Some((_, graph, facts)) = graphs.iter().find(|(stem, _, _)| *stem == own) {
            findings.extend(lint_stacks(folder, (index, stacks), (*graph, facts)));
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

/// What a graph says of itself, and what the profiler counted when it made it: of a graph that ends between
/// two sections only that tells.
fn lint_truncation(
    folder: Folder<'_>,
    index: usize,
    graph: &CallGraphFacts,
    counted: Option<(usize, u64)>,
) -> Option<Finding> {
    let missing = graph
        .truncation
        .as_ref()
        .map_or(0, |truncation| truncation.missing_samples);
    let counted = counted.filter(|(_, samples)| *samples > graph.samples);
    let all = counted.map_or(graph.samples, |(_, samples)| samples);
    let there = graph.samples - missing;
    if graph.truncation.is_none() && counted.is_none() {
        return None;
    }
    let name = folder.name(index);
    let sections = graph
        .truncation
        .iter()
        .flat_map(|truncation| &truncation.sections);
    let line = sections.map(|section| section.line).next();
    let share = (all - there) as f64 / all as f64;
    let sentence = format!(
        "{name} is cut: {:.1} % of {all} samples are missing",
        share * 100.0
    );
    let finding = folder
        .finding(&PROFILE_TRUNCATED, sentence)
        .with(folder.published_at(
            index,
            line,
            format!("{there} samples there, of {} said", graph.samples),
        ));
    Some(match counted {
        Some((log, samples)) => finding.with(folder.derived(log, format!("{samples} samples"))),
        None => finding,
    })
}

fn lint_idle(folder: Folder<'_>, index: usize, graph: &CallGraphFacts) -> Option<Finding> {
    let idle = graph.idle_share.filter(|idle| *idle > IDLE_SHARE)?;
    let leaf = graph.leaves.first().map_or("", |(leaf, _)| leaf);
    let sentence = format!(
        "{} is of a device that was idle in {:.0} % of its samples",
        folder.name(index),
        idle * 100.0
    );
    let finding = folder.finding(&PROFILE_IDLE, sentence);
    Some(finding.with(folder.published(index, format!("most samples: {leaf}"))))
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
