//! A folder of the archive as records of ours.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use fwdlab_model::imported::{
    DatasetOrigin, FileOutcome, IMPORT_SCHEMA_VERSION, ImportedDataset, ImportedDescription,
    ImportedFile, ImportedResults, ImportedRun, ImportedText, ImportedVariant,
};
use fwdlab_model::{AddressFamily, VariantName};

use super::datasets::{TreeDataset, place};
use super::file::{ArchiveFile, Content, Outcome};
use super::folder::{Origin, PublishedDataset, ResultsFolder, Run, RunGroup};
use super::info::BenchInfo;
use super::log::LogFacts;
use super::published_text::{Sources, made_again};
use super::readme::DatasetIndex;
use super::tree::ArchiveTree;
use crate::pkt_gen::{Ending, PublishedMedian};

/// What pkt-gen's sizes leave out of a frame.
const FRAME_CHECK_SEQUENCE_BYTES: u64 = 4;

/// Names and values, by file.
pub(super) type Settings = BTreeMap<String, BTreeMap<String, String>>;

/// A folder of results, as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// `imported.json`.
    pub results: ImportedResults,
    /// `runs.jsonl`.
    pub runs: Vec<ImportedRun>,
    /// `<variant>.pps`: the observations as the archive reckons them, as text; empty where the logs give
    /// none.
    pub observations: Vec<(VariantName, String)>,
}

impl Imported {
    /// Takes in every folder of a tree. Nothing of it is judged.
    #[must_use]
    pub fn all(tree: &ArchiveTree) -> Vec<Self> {
        let datasets = TreeDataset::all(tree);
        let index = DatasetIndex::new(datasets.iter().map(TreeDataset::candidate));
        let sources = Sources {
            files: &tree.files,
            datasets: &datasets,
            index: &index,
        };
        let folders = tree.folders.iter();
        folders
            .map(|folder| Self::of(tree, folder, sources))
            .collect()
    }

    fn of(tree: &ArchiveTree, folder: &ResultsFolder, sources: Sources<'_>) -> Self {
        let files = &tree.files;
        let mut names = Names::default();
        let readme = folder.readme(files);
        let mut imported = Self {
            results: ImportedResults {
                schema: IMPORT_SCHEMA_VERSION,
                source: text(&folder.path),
                platform: folder.place.platform.clone(),
                nic: folder.place.nic.clone(),
                topic: folder.place.topic.clone(),
                label: folder.place.label.clone(),
                title: readme.and_then(|readme| Some(readme.title.as_ref()?.text.clone())),
                lab: readme.map_or_else(Vec::new, |readme| {
                    readme.lab.iter().map(|line| line.text.clone()).collect()
                }),
                text: text_of(tree, folder, sources),
                variants: Vec::new(),
                files: folder
                    .members
                    .iter()
                    .map(|&index| imported_file(&files[index]))
                    .collect(),
            },
            runs: Vec::new(),
            observations: Vec::new(),
        };
        let mut with_logs = BTreeSet::new();
        for (index, group) in folder.groups.iter().enumerate() {
            if group.is_of_profiles() || group.runs.iter().all(|run| run.receiver.is_none()) {
                continue;
            }
            let published = folder.dataset_of(index);
            with_logs.extend(published.map(|dataset| dataset.file));
            let settings = tree.settings(folder, group);
            imported.add_group(files, group, published, settings, &mut names);
        }
        for dataset in &folder.datasets {
            if !with_logs.contains(&dataset.file) {
                // Logs are often not kept, their descriptions are.
                let described = folder
                    .groups
                    .iter()
                    .find(|group| group.key == dataset.name && group.info.is_some());
                let settings = described.map(|group| tree.settings(folder, group));
                imported.add_dataset(files, dataset, described, settings, &mut names);
            }
        }
        imported
    }

    fn add_group(
        &mut self,
        files: &[ArchiveFile],
        group: &RunGroup,
        published: Option<&PublishedDataset>,
        settings: Settings,
        names: &mut Names,
    ) {
        let sender = group.runs.iter().flat_map(|run| run.sent(files)).next();
        let command = sender.and_then(|log| log.command.as_ref());
        let family = family_of_key(&group.key).or_else(|| {
            let destination = command?.destination.as_ref()?;
            Some(if destination.first.is_ipv4() {
                AddressFamily::Inet
            } else {
                AddressFamily::Inet6
            })
        });
        // The same key may have been measured in several ways: `RAW.1rx`, `RAW.8rx`.
        let is_usual = group.folder.as_os_str().is_empty()
            || group.folder.to_string_lossy().eq_ignore_ascii_case("RAW");
        let label = if is_usual {
            group.key.clone()
        } else {
            format!("{}-{}", group.key, group.folder.display())
        };
        let name = names.of(&label);
        let median = published.map_or(PublishedMedian::Averaged, |dataset| dataset.origin.median());
        let dataset = published.and_then(|dataset| imported_dataset(files, dataset));
        let lines = group.published(files, median);
        self.observations.push((
            name.clone(),
            lines.iter().map(|line| format!("{line}\n")).collect(),
        ));
        let of_runs = published_of_runs(files, group, median, dataset.as_ref());
        for (run, published_pps) in group.runs.iter().zip(of_runs) {
            self.runs
                .push(imported_run(files, &name, run, median, published_pps));
        }
        self.results.variants.push(ImportedVariant {
            name,
            key: group.key.clone(),
            family,
            description: description_of(files, group),
            dataset,
            flows: command
                .and_then(crate::pkt_gen::Command::flows)
                .and_then(|flows| u64::try_from(flows).ok()),
            frame_size_bytes: command
                .and_then(|command| command.packet_size_bytes)
                .and_then(|bytes| bytes.checked_add(FRAME_CHECK_SEQUENCE_BYTES)),
            settings,
        });
    }

    fn add_dataset(
        &mut self,
        files: &[ArchiveFile],
        dataset: &PublishedDataset,
        described: Option<&RunGroup>,
        settings: Option<Settings>,
        names: &mut Names,
    ) {
        let name = names.of(&dataset.name);
        self.observations.push((name.clone(), String::new()));
        self.results.variants.push(ImportedVariant {
            name,
            key: dataset.name.clone(),
            family: family_of_key(&dataset.name),
            description: described.and_then(|group| description_of(files, group)),
            dataset: imported_dataset(files, dataset),
            flows: None,
            frame_size_bytes: None,
            settings: settings.unwrap_or_default(),
        });
    }
}

/// The text that lies in a folder, read once more: what was read of it has no text.
fn text_of(
    tree: &ArchiveTree,
    folder: &ResultsFolder,
    sources: Sources<'_>,
) -> Option<ImportedText> {
    let (file, readme) = folder.readme_file(&tree.files)?;
    let bytes = fs::read(tree.root.join(&file.path)).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(made_again(
        &file.path,
        &place(&folder.path),
        &text,
        readme,
        sources,
    ))
}

/// Names that are each given once.
#[derive(Default)]
struct Names(BTreeSet<VariantName>);

impl Names {
    fn of(&mut self, label: &str) -> VariantName {
        let first = VariantName::from_label(label);
        let mut name = first.clone();
        let mut number = 2;
        while !self.0.insert(name.clone()) {
            name = first.numbered(number);
            number += 1;
        }
        name
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

pub(crate) fn imported_file(file: &ArchiveFile) -> ImportedFile {
    let (outcome, reason, line) = match &file.outcome {
        Outcome::Read(_) => (FileOutcome::Read, None, None),
        Outcome::Skipped(skip) => (FileOutcome::Skipped, Some(skip.to_string()), None),
        Outcome::Failed(problem) => (
            FileOutcome::Failed,
            Some(problem.message.clone()),
            problem.line,
        ),
    };
    ImportedFile {
        path: text(&file.path),
        kind: file.kind.as_str().to_owned(),
        outcome,
        reason,
        line,
    }
}

/// The family that a key names in one of its parts.
fn family_of_key(key: &str) -> Option<AddressFamily> {
    key.split('.').rev().find_map(|part| match part {
        "inet" | "inet4" => Some(AddressFamily::Inet),
        "inet6" => Some(AddressFamily::Inet6),
        _ => None,
    })
}

fn description_of(files: &[ArchiveFile], group: &RunGroup) -> Option<ImportedDescription> {
    match &files[group.info?].outcome {
        Outcome::Read(Content::Info(info)) => Some(description(info)),
        _ => None,
    }
}

fn description(info: &BenchInfo) -> ImportedDescription {
    ImportedDescription {
        image: info.image.clone(),
        configuration: info.configuration_name().map(str::to_owned),
        pktgen: info.pktgen.clone(),
        uname: info.uname.as_ref().map(|uname| uname.text.clone()),
        start: info.start.as_ref().map(|start| start.text.clone()),
        end: info.end.as_ref().map(|end| end.text.clone()),
    }
}

fn imported_dataset(files: &[ArchiveFile], dataset: &PublishedDataset) -> Option<ImportedDataset> {
    let file = &files[dataset.file];
    let Outcome::Read(Content::Dataset(values)) = &file.outcome else {
        return None;
    };
    Some(ImportedDataset {
        path: text(&file.path),
        origin: match dataset.origin {
            Origin::Logs { .. } => DatasetOrigin::Logs,
            Origin::OtherLogs { .. } => DatasetOrigin::OtherLogs,
            Origin::Altered { .. } => DatasetOrigin::Altered,
            Origin::NoLogs => DatasetOrigin::NoLogs,
        },
        published_pps: values.values.clone(),
    })
}

/// What was published of each run: the number at its place, or where numbers were left out or changed, the
/// next one that is its own.
fn published_of_runs(
    files: &[ArchiveFile],
    group: &RunGroup,
    median: PublishedMedian,
    dataset: Option<&ImportedDataset>,
) -> Vec<Option<f64>> {
    let published = dataset.map_or(&[][..], |dataset| &dataset.published_pps);
    let mut next = 0;
    let of_run = |run: &Run| {
        let derived: f64 = run.received(files)?.published.with(median)?.parse().ok()?;
        let at = published[next..]
            .iter()
            .position(|&value| value == derived)?;
        next += at + 1;
        Some(derived)
    };
    group.runs.iter().map(of_run).collect()
}

fn imported_run(
    files: &[ArchiveFile],
    variant: &VariantName,
    run: &Run,
    median: PublishedMedian,
    published_pps: Option<f64>,
) -> ImportedRun {
    let received = run.received(files);
    let path = |index: &usize| text(&files[*index].path);
    ImportedRun {
        schema: IMPORT_SCHEMA_VERSION,
        variant: variant.clone(),
        iteration: run.iteration,
        receiver: run.receiver.as_ref().map(path),
        senders: run.senders.iter().map(path).collect(),
        archive_pps: received
            .and_then(|log| log.published.with(median))
            .and_then(|text| text.parse().ok()),
        forwarded_pps: received.and_then(LogFacts::steady_pps),
        forwarded_median_pps: received
            .and_then(|log| log.steady.as_ref())
            .map(|steady| steady.median_pps),
        offered_pps: run.offered_pps(files),
        published_pps,
        ending: received.map(|log| ending(log.ending).to_owned()),
        stalls: received.map_or(0, |log| log.samples.empty_inside),
        is_profiled: run.is_profiled,
    }
}

const fn ending(ending: Ending) -> &'static str {
    match ending {
        Ending::Finished => "finished",
        Ending::Failed => "failed",
        Ending::Terminated => "terminated",
        Ending::Cut => "cut",
    }
}
