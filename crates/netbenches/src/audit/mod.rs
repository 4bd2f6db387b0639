//! What an audit of published results is made of: every dataset with its runs, and every block of ministat with
//! what it was said to show. Nothing of it is judged here.

#[cfg(test)]
mod tests;
mod write;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use fwdlab_pkt_gen::{Command, SteadyState};
use fwdlab_stats::ministat::PublishedComparison;

use crate::datasets::place;
use crate::readme::{DatasetIndex, RowBacking};
use crate::{
    ArchiveTree, BenchInfo, Content, Counted, Fingerprint, Outcome, ResultsFolder, Run, RunGroup,
    TreeDataset,
};

pub use write::write_audit;

/// All that was published in a tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PublishedResults {
    /// How many folders of results there are.
    pub folders: usize,
    /// Every dataset, by folder and path.
    pub datasets: Vec<AuditedDataset>,
    /// Every block of ministat, by text and line.
    pub blocks: Vec<AuditedBlock>,
}

/// A published dataset.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditedDataset {
    /// Its file, below the root, with `/` between.
    pub path: String,
    /// The folder of results that it is of: one session.
    pub folder: String,
    /// The DUT.
    pub platform: Option<String>,
    /// Its network interface card.
    pub nic: Option<String>,
    /// What was asked.
    pub topic: Option<String>,
    /// When it was measured, or where only that is known, when its kernel was built.
    pub year: Option<i16>,
    /// The same for datasets that were measured with the same system, settings and traffic on the same
    /// machine, as far as is written down; none where what tells it from others is not.
    pub configuration: Option<usize>,
    /// The observations that count, in packets per second.
    pub observations_pps: Vec<f64>,
    /// The runs that its logs tell of, profiled ones left out; empty without logs.
    pub runs: Vec<AuditedRun>,
}

/// A run that there are logs of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AuditedRun {
    /// The observation as the archive reckons it, in packets per second; none where it has none.
    pub archive_pps: Option<f64>,
    /// What was forwarded while the load lasted; none where that was too short.
    pub forwarded: Option<SteadyState>,
    /// What all senders offered together meanwhile, in packets per second; none where one says nothing, or ended early.
    pub offered_pps: Option<f64>,
}

/// A block of ministat in a published text.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditedBlock {
    /// The text, below the root, with `/` between.
    pub path: String,
    /// The line that the block begins on, from 1.
    pub line: usize,
    /// Its rows; the others are compared with the first.
    pub rows: Vec<AuditedRow>,
}

/// A row of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditedRow {
    /// What the text calls it; its dataset's name where it calls it nothing.
    pub label: String,
    /// The line it stands on, from 1.
    pub line: usize,
    /// Its place in [`PublishedResults::datasets`]; none where no dataset gives it.
    pub dataset: Option<usize>,
    /// Whether a difference from the first row is said; none where nothing is.
    pub says_difference: Option<bool>,
}

impl PublishedResults {
    /// Everything that a tree publishes.
    #[must_use]
    pub fn of(tree: &ArchiveTree) -> Self {
        let datasets = TreeDataset::all(tree);
        let mut configurations = Configurations::default();
        let mut found = Vec::new();
        for dataset in &datasets {
            let group = described(dataset);
            let folder = dataset.folder();
            found.push(group.and_then(|group| configurations.find(tree, folder, group)));
        }
        let audited = datasets.iter().zip(found).map(|(dataset, found)| {
            let info = described(dataset).and_then(|group| group.description(&tree.files));
            let folder = dataset.folder();
            AuditedDataset {
                path: format!("{}/{}", dataset.place, dataset.name)
                    .trim_start_matches('/')
                    .to_owned(),
                folder: place(&folder.path),
                platform: folder.place.platform.clone(),
                nic: folder.place.nic.clone(),
                topic: folder.place.topic.clone(),
                year: info.and_then(BenchInfo::year),
                configuration: found.and_then(|found| configurations.number(found)),
                observations_pps: pps(&dataset.counted(&tree.files)),
                runs: runs(tree, dataset),
            }
        });
        Self {
            folders: tree.folders.len(),
            datasets: audited.collect(),
            blocks: blocks(tree, &datasets),
        }
    }
}

fn pps(counted: &[Counted]) -> Vec<f64> {
    counted.iter().map(|one| one.pps).collect()
}

/// The runs that a dataset was made of, or where their logs were not kept, those that are described under its
/// name.
fn described<'a>(dataset: &TreeDataset<'a>) -> Option<&'a RunGroup> {
    dataset
        .group()
        .or_else(|| dataset.folder().described(dataset.key()))
}

fn runs(tree: &ArchiveTree, dataset: &TreeDataset<'_>) -> Vec<AuditedRun> {
    let Some(group) = dataset.group() else {
        return Vec::new();
    };
    let measured = |run: &&Run| !run.is_profiled && run.received(&tree.files).is_some();
    let of_run = |run: &Run| {
        let received = run.received(&tree.files)?;
        let published = received.published.with(dataset.median());
        Some(AuditedRun {
            archive_pps: published.and_then(|text| text.parse().ok()),
            forwarded: received.steady,
            offered_pps: run.offered_pps(&tree.files),
        })
    };
    group
        .runs
        .iter()
        .filter(measured)
        .filter_map(of_run)
        .collect()
}

fn blocks(tree: &ArchiveTree, datasets: &[TreeDataset<'_>]) -> Vec<AuditedBlock> {
    let index = DatasetIndex::new(datasets.iter().map(TreeDataset::candidate));
    let mut blocks = Vec::new();
    for file in &tree.files {
        let Outcome::Read(Content::Readme(readme)) = &file.outcome else {
            continue;
        };
        let folder = file.path.parent().map(place).unwrap_or_default();
        for published in &readme.blocks {
            let block = &published.block;
            let backing = index.back(block, &folder);
            let rows = block.rows.iter().zip(&backing.rows).map(|(row, backed)| {
                let dataset = RowBacking::chosen(backed);
                let name = dataset.map(|position| datasets[position].name.clone());
                AuditedRow {
                    label: row.label.clone().or(name).unwrap_or_default(),
                    line: row.line,
                    dataset,
                    says_difference: row
                        .comparison
                        .as_ref()
                        .map(PublishedComparison::says_difference),
                }
            });
            blocks.push(AuditedBlock {
                path: place(&file.path),
                line: block.line,
                rows: rows.collect(),
            });
        }
    }
    blocks
}

/// What was measured alike, numbered.
#[derive(Default)]
struct Configurations {
    numbers: HashMap<Configuration, usize>,
    /// The sets of each topic that say the same, by what they say.
    names: HashMap<(PathBuf, Fingerprint), BTreeSet<String>>,
}

/// What makes one measurement another, as far as it is written down.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Configuration {
    platform: Option<String>,
    nic: Option<String>,
    /// It names what the rest does not: a patch, a number of flows.
    label: Option<String>,
    system: String,
    image: Option<String>,
    settings: Fingerprint,
    pktgen: Option<String>,
    flows: Option<u128>,
    packet_size_bytes: Option<u64>,
}

/// A dataset's configuration, and where its set lies.
struct Found {
    configuration: Configuration,
    topic: PathBuf,
}

impl Configurations {
    /// None where system or settings are not written down: all of those would count as alike.
    fn find(
        &mut self,
        tree: &ArchiveTree,
        folder: &ResultsFolder,
        group: &RunGroup,
    ) -> Option<Found> {
        let info = group.description(&tree.files)?;
        let sender = group
            .runs
            .iter()
            .flat_map(|run| run.sent(&tree.files))
            .next();
        let command = sender.and_then(|log| log.command.as_ref());
        let settings = tree.configuration(folder, group)?.fingerprint();
        let topic = folder.path.parent()?.parent()?.to_owned();
        let name = info.configuration_name().filter(|name| !name.is_empty());
        let names = self.names.entry((topic.clone(), settings)).or_default();
        names.insert(name.unwrap_or(&group.key).to_owned());
        Some(Found {
            configuration: Configuration {
                platform: folder.place.platform.clone(),
                nic: folder.place.nic.clone(),
                label: folder.place.label.clone(),
                system: info.uname.as_ref()?.text.clone(),
                image: info.image.clone(),
                settings,
                pktgen: info.pktgen.clone(),
                flows: command.and_then(Command::flows),
                packet_size_bytes: command.and_then(|command| command.packet_size_bytes),
            },
            topic,
        })
    }

    /// To be asked when all are found. None where two sets of a topic say the same: what tells them apart is
    /// not written down.
    fn number(&mut self, found: Found) -> Option<usize> {
        let Found {
            configuration,
            topic,
        } = found;
        let names = self.names.get(&(topic, configuration.settings))?;
        let next = self.numbers.len();
        (names.len() == 1).then(|| *self.numbers.entry(configuration).or_insert(next))
    }
}
