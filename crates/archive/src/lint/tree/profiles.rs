//! Profiles: whether they are whole, and of a device at work.

use crate::lint::{FOLDED_OF_ANOTHER, Finding, PROFILE_IDLE, PROFILE_TRUNCATED};
use crate::netbenches::{BenchName, CallGraphFacts, Content, FoldedFacts, Outcome, Role};

use super::Folder;

/// A device under load that is idle for longer than this was not profiled under it.
const IDLE_SHARE: f64 = 0.5;

pub(super) fn lint_profiles(folder: Folder<'_>, findings: &mut Vec<Finding>) {
    let mut graphs = Vec::new();
    for &index in &folder.folder.members {
        if let Outcome::Read(Content::CallGraph(graph)) = &folder.file(index).outcome {
            lint_graph(folder, index, graph, findings);
            graphs.push((stem(&folder.name(index)), index, graph));
        }
    }
    for &index in &folder.folder.members {
        let Outcome::Read(Content::FoldedStacks(stacks)) = &folder.file(index).outcome else {
            continue;
        };
        let own = stem(&folder.name(index));
        if let Some((_, graph, facts)) = graphs.iter().find(|(stem, _, _)| *stem == own) {
            lint_stacks(folder, (index, stacks), (*graph, facts), findings);
        }
    }
}

/// What a profile is of, whatever its form: the name without its ending.
fn stem(name: &str) -> String {
    let file = name.rsplit('/').next().unwrap_or(name);
    match BenchName::parse(file) {
        Some(BenchName { stem, role }) if role != Role::Picture => stem.to_owned(),
        _ => file.to_owned(),
    }
}

fn lint_graph(
    folder: Folder<'_>,
    index: usize,
    graph: &CallGraphFacts,
    findings: &mut Vec<Finding>,
) {
    let name = folder.name(index);
    if let Some(truncation) = &graph.truncation {
        let line = truncation.sections.first().map(|section| section.line);
        let sentence = format!(
            "{name} is cut: {:.1} % of its {} samples are missing",
            truncation.missing_share() * 100.0,
            truncation.samples
        );
        let finding = folder.finding(&PROFILE_TRUNCATED, sentence);
        findings.push(finding.with(folder.published(
            index,
            line,
            format!(
                "{} samples said, {} there",
                truncation.samples,
                truncation.samples - truncation.missing_samples - truncation.missing_section_samples
            ),
        )));
    }
    if let Some(idle) = graph.idle_share.filter(|idle| *idle > IDLE_SHARE) {
        let leaf = graph.leaves.first().map_or("", |(leaf, _)| leaf);
        let sentence = format!(
            "{name} is of a device that was idle in {:.0} % of its samples",
            idle * 100.0
        );
        let finding = folder.finding(&PROFILE_IDLE, sentence);
        findings.push(finding.with(folder.published(index, None, format!("most samples: {leaf}"))));
    }
}

fn lint_stacks(
    folder: Folder<'_>,
    (index, stacks): (usize, &FoldedFacts),
    (graph, facts): (usize, &CallGraphFacts),
    findings: &mut Vec<Finding>,
) {
    // Folding loses samples, but a few; folded with a filter or by another program, it is another text.
    if stacks.folded == facts.folded || stacks.samples == facts.samples {
        return;
    }
    let (name, of) = (folder.name(index), folder.name(graph));
    let sentence = format!("{name} is not what folding makes of {of}");
    let finding = folder
        .finding(&FOLDED_OF_ANOTHER, sentence)
        .with(folder.published(index, None, format!("{} samples", stacks.samples)))
        .with(folder.derived(graph, None, format!("{} samples", facts.samples)));
    findings.push(finding);
}
