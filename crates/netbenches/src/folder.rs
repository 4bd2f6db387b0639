//! A folder of results: its runs by what was measured, and what is published of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use fwdlab_model::imported::DatasetOrigin;
use fwdlab_pkt_gen::PublishedMedian;

use crate::counted::Measured;
use crate::file::{ArchiveFile, Content, Dataset, Outcome, Skip};
use crate::info::BenchInfo;
use crate::kind::FileKind;
use crate::log::LogFacts;
use crate::log_name::{BenchName, Role};
use crate::place::ArchivePlace;
use crate::readme::PublishedReadme;

/// What steady states leave out at their ends: senders that lasted longer than another by more offered alone in the rest.
const TOGETHER_US: u64 = 5_000_000;

/// One session of the archive: logs, what was made of them, and the text about it.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultsFolder {
    /// Below the root; empty for the root itself.
    pub path: PathBuf,
    /// What its path says.
    pub place: ArchivePlace,
    /// Its files, as places in [`crate::ArchiveTree::files`].
    pub members: Vec<usize>,
    /// Its runs, by folder and key.
    pub groups: Vec<RunGroup>,
    /// Its datasets, by path.
    pub datasets: Vec<PublishedDataset>,
}

/// Runs of one variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunGroup {
    /// Where its files lie, below the results folder: empty, `RAW`, `PMC`.
    pub folder: PathBuf,
    /// What was measured, as its files name it; empty where a bench had one variant.
    pub key: String,
    /// The `.info`, as a place in [`crate::ArchiveTree::files`].
    pub info: Option<usize>,
    /// In the order of `ls`: 1, 10, 2.
    pub runs: Vec<Run>,
}

/// One run: a reboot, a blast. There is one where a log reads, whatever other files bear its name.
///
/// Shape: files as places in [`crate::ArchiveTree::files`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Its number; none where its name has none.
    pub iteration: Option<u32>,
    /// The receiver's log.
    pub receiver: Option<usize>,
    /// The logs of all senders.
    pub senders: Vec<usize>,
    /// Whether most other runs of its group have the log of a sender that it has not: what it was offered is not
    /// known then.
    pub misses_sender: bool,
    /// Whether it is known to be profiled: it lies in `PMC`, or a profile that reads bears its name.
    pub is_profiled: bool,
}

/// A dataset, and what it was made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedDataset {
    /// Its place in [`crate::ArchiveTree::files`].
    pub file: usize,
    /// What it is called, without `.pps`.
    pub name: String,
    /// Where its numbers are from: logs that give it do so byte for byte.
    pub origin: DatasetOrigin,
    /// The runs that it is of, as a place in [`ResultsFolder::groups`]: the first of several where the same numbers
    /// were copied; none without logs.
    pub group: Option<usize>,
    /// The median that it was made with, as far as can be seen: where it was altered, the one that more of its numbers
    /// agree with.
    pub median: PublishedMedian,
    /// Whether it lies where what is measured is profiled.
    pub is_of_profiles: bool,
}

/// The lines that the archive's script makes of a group of runs with a median.
struct Made {
    group: usize,
    median: PublishedMedian,
    lines: Vec<String>,
}

impl PublishedDataset {
    /// What its file holds.
    #[must_use]
    pub fn content<'a>(&self, files: &'a [ArchiveFile]) -> Option<&'a Dataset> {
        match &files[self.file].outcome {
            Outcome::Read(Content::Dataset(content)) => Some(content),
            _ => None,
        }
    }
}

impl ResultsFolder {
    pub(super) fn new(
        path: PathBuf,
        place: ArchivePlace,
        members: Vec<usize>,
        files: &[ArchiveFile],
    ) -> Self {
        let groups = groups(&path, &members, files);
        let datasets = datasets(&path, &members, files, &groups);
        Self {
            path,
            place,
            members,
            groups,
            datasets,
        }
    }

    /// What is published of a group of runs: of several datasets the first that the logs give.
    #[must_use]
    pub fn dataset_of(&self, group: usize) -> Option<&PublishedDataset> {
        let datasets = self.datasets.iter();
        let of_group = datasets.filter(|dataset| dataset.group == Some(group));
        of_group.min_by_key(|dataset| dataset.origin == DatasetOrigin::Altered)
    }

    /// The runs that are described under a name; logs are often not kept, their descriptions are.
    #[must_use]
    pub fn described(&self, name: &str) -> Option<&RunGroup> {
        let mut groups = self.groups.iter();
        groups.find(|group| group.key == name && group.info.is_some())
    }

    /// What was published with the results: the text that lies in the folder itself; of several, that which is
    /// called README.
    #[must_use]
    pub fn readme<'a>(&self, files: &'a [ArchiveFile]) -> Option<&'a PublishedReadme> {
        self.readme_file(files).map(|(_, readme)| readme)
    }

    pub(super) fn readme_file<'a>(
        &self,
        files: &'a [ArchiveFile],
    ) -> Option<(&'a ArchiveFile, &'a PublishedReadme)> {
        let members = self.members.iter().map(|&index| &files[index]);
        let texts = members.filter_map(|file| match &file.outcome {
            Outcome::Read(Content::Readme(readme))
                if file.kind == FileKind::Readme
                    && file.path.parent() == Some(self.path.as_path()) =>
            {
                Some((file, &**readme))
            }
            _ => None,
        });
        texts.min_by_key(|(file, _)| !file.path.ends_with("README.md"))
    }
}

impl Run {
    /// What the receiver's log says; none where there is none.
    #[must_use]
    pub fn received<'a>(&self, files: &'a [ArchiveFile]) -> Option<&'a LogFacts> {
        log(files, self.receiver?)
    }

    /// What the senders' logs say, of those that are pkt-gen's.
    pub fn sent<'a>(&self, files: &'a [ArchiveFile]) -> impl Iterator<Item = &'a LogFacts> {
        self.senders.iter().filter_map(|&index| log(files, index))
    }

    /// The sender whose load was clearly shorter than that of another, by how many microseconds each lasted.
    #[must_use]
    pub fn ended_early(&self, files: &[ArchiveFile]) -> Option<(usize, u64, u64)> {
        let blasts = self.senders.iter().filter_map(|&index| {
            let steady = log(files, index)?.steady.as_ref()?;
            Some((steady.blast_us, index))
        });
        let (longest_us, _) = blasts.clone().max()?;
        let (blast_us, index) = blasts.min()?;
        (longest_us - blast_us > TOGETHER_US).then_some((index, blast_us, longest_us))
    }

    /// What all senders offered together over their steady states, in packets per second; none where
    /// one of them says nothing, or was not there as long as the others.
    #[must_use]
    pub fn offered_pps(&self, files: &[ArchiveFile]) -> Option<f64> {
        if self.misses_sender || self.ended_early(files).is_some() {
            return None;
        }
        let rates: Option<Vec<f64>> = self
            .senders
            .iter()
            .map(|&index| log(files, index)?.steady_pps())
            .collect();
        rates
            .filter(|rates| !rates.is_empty())
            .map(|rates| rates.iter().sum())
    }
}

impl RunGroup {
    /// What of it decides which observations count.
    pub(super) fn measured(&self, files: &[ArchiveFile], median: PublishedMedian) -> Vec<Measured> {
        let measured = |run: &Run| Measured {
            pps: run
                .received(files)
                .and_then(|log| log.published.with(median)?.parse().ok()),
            offered_pps: run.offered_pps(files),
            is_profiled: run.is_profiled,
        };
        self.runs.iter().map(measured).collect()
    }

    /// Whether its runs were profiled, by the folder that they lie in.
    #[must_use]
    pub fn is_of_profiles(&self) -> bool {
        is_of_profiles(&self.folder)
    }

    /// Whether a receiver's log is there of what was measured to be published; what is in `PMC` was measured to be
    /// profiled.
    #[must_use]
    pub fn has_logs(&self) -> bool {
        !self.is_of_profiles() && self.runs.iter().any(|run| run.receiver.is_some())
    }

    /// What its `.info` says; none where there is none, or none that can be read.
    #[must_use]
    pub fn description<'a>(&self, files: &'a [ArchiveFile]) -> Option<&'a BenchInfo> {
        match &files[self.info?].outcome {
            Outcome::Read(Content::Info(info)) => Some(info),
            _ => None,
        }
    }

    /// What the archive's script makes of the runs: a line each that it makes something of.
    #[must_use]
    pub fn published(&self, files: &[ArchiveFile], median: PublishedMedian) -> Vec<String> {
        let lines = self.runs.iter().filter_map(|run| {
            let received = run.received(files)?;
            received.published.with(median).map(str::to_owned)
        });
        lines.collect()
    }
}

fn log(files: &[ArchiveFile], index: usize) -> Option<&LogFacts> {
    match &files[index].outcome {
        Outcome::Read(Content::Log(log)) => Some(log),
        _ => None,
    }
}

fn file_name(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

/// The runs of a folder, by where they lie and what they measured.
fn groups(folder: &Path, members: &[usize], files: &[ArchiveFile]) -> Vec<RunGroup> {
    let mut named = Vec::new();
    for &index in members {
        let path = &files[index].path;
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        if let Some(name) = BenchName::parse(name) {
            let parent = path.parent().unwrap_or(Path::new(""));
            let within = parent.strip_prefix(folder).unwrap_or(parent);
            named.push((index, within, name));
        }
    }
    // An `.info` anywhere in the folder knows the key: profiles often lie without theirs.
    let keys: BTreeSet<&str> = named
        .iter()
        .filter(|(index, _, _)| matches!(says(&files[*index]), Some(Says::Info)))
        .map(|(_, _, name)| name.stem)
        .collect();
    let mut groups: BTreeMap<(&Path, &str), Named> = BTreeMap::new();
    let mut profiled = Vec::new();
    for (index, within, name) in named {
        // Whatever else has such a name is no part of the bench.
        let Some(says) = says(&files[index]) else {
            continue;
        };
        let (key, iteration) = name.split(&keys);
        // As `ls` sorts them: by their text. So 1 and 01 are two runs.
        let text = iteration.map_or("", |_| &name.stem[key.len()..]).to_owned();
        if let Says::Profile = says {
            profiled.push(((within, key), text));
            continue;
        }
        let group = groups.entry((within, key)).or_default();
        if let Says::Info = says {
            group.info = Some(index);
            continue;
        }
        let run = group.runs.entry(text).or_insert_with(|| Run {
            iteration,
            is_profiled: is_of_profiles(within),
            ..Run::default()
        });
        match name.role {
            Role::Sender(sender) => {
                run.senders.push(index);
                *group.senders.entry(sender).or_default() += 1;
            }
            _ => run.receiver = Some(index),
        }
    }
    for (group, run) in profiled {
        let group = groups.get_mut(&group);
        if let Some(run) = group.and_then(|group| group.runs.get_mut(&run)) {
            run.is_profiled = true;
        }
    }
    let groups = groups.into_iter().map(|((within, key), group)| RunGroup {
        folder: within.to_owned(),
        key: key.to_owned(),
        info: group.info,
        runs: group.into_runs(),
    });
    groups.collect()
}

/// What the files of a group of runs are.
#[derive(Default)]
struct Named {
    info: Option<usize>,
    /// By their numbers as `ls` sorts them.
    runs: BTreeMap<String, Run>,
    /// How many runs have the log of each sender.
    senders: BTreeMap<u8, usize>,
}

impl Named {
    fn into_runs(self) -> Vec<Run> {
        let half = self.runs.len() / 2;
        let usual = self.senders.values().filter(|runs| **runs > half).count();
        let mut runs: Vec<Run> = self.runs.into_values().collect();
        for run in &mut runs {
            run.misses_sender = run.senders.len() < usual;
        }
        runs
    }
}

/// What a file says about a run or a group of runs.
enum Says {
    Log,
    Info,
    Profile,
}

/// None where a file is not what its name says: it says nothing then.
fn says(file: &ArchiveFile) -> Option<Says> {
    match &file.outcome {
        Outcome::Skipped(Skip::ProfileSamples) => Some(Says::Profile),
        Outcome::Read(content) => match content {
            Content::Log(_) => Some(Says::Log),
            Content::EquilibriumLog(_) if matches!(file.kind, FileKind::Bench(Role::Sender(_))) => {
                Some(Says::Log)
            }
            Content::Info(_) => Some(Says::Info),
            Content::CallGraph(graph) if graph.samples > 0 => Some(Says::Profile),
            Content::FoldedStacks(stacks) if stacks.samples > 0 => Some(Says::Profile),
            Content::ProfileLog(Some(_)) => Some(Says::Profile),
            _ => None,
        },
        _ => None,
    }
}

fn datasets(
    folder: &Path,
    members: &[usize],
    files: &[ArchiveFile],
    groups: &[RunGroup],
) -> Vec<PublishedDataset> {
    let mut made = Vec::new();
    let numbered = groups.iter().enumerate();
    for (index, group) in numbered.filter(|(_, group)| group.has_logs()) {
        for median in [PublishedMedian::Averaged, PublishedMedian::Upper] {
            made.push(Made {
                group: index,
                median,
                lines: group.published(files, median),
            });
        }
    }
    let datasets = members.iter().filter_map(|&file| {
        let Outcome::Read(Content::Dataset(dataset)) = &files[file].outcome else {
            return None;
        };
        let path = &files[file].path;
        let name = dataset_name(&file_name(path)).to_owned();
        let parent = path.parent().unwrap_or(Path::new(""));
        let within = parent.strip_prefix(folder).unwrap_or(parent);
        let (origin, made) = origin(&name, within, dataset, groups, &made);
        Some(PublishedDataset {
            file,
            name,
            origin,
            group: made.map(|made| made.group),
            median: made.map_or(PublishedMedian::Averaged, |made| made.median),
            is_of_profiles: is_of_profiles(within),
        })
    });
    datasets.collect()
}

/// `x.pps`, `x.data` and `pps.x` are of `x`.
fn dataset_name(name: &str) -> &str {
    let name = name.strip_prefix("bench.").unwrap_or(name);
    name.strip_suffix(".pps")
        .or_else(|| name.strip_suffix(".data"))
        .or_else(|| name.strip_prefix("pps."))
        .unwrap_or(name)
}

/// A path without the folders in its end that logs are put into.
fn without_raw(path: &Path) -> &Path {
    let mut path = path;
    while is_raw(path) {
        path = path.parent().unwrap_or(Path::new(""));
    }
    path
}

/// Whether a folder is one that logs are put into: `RAW`, `raw`, `RAW.8rx`, `PMC`, and what lies in `PMC`.
pub(super) fn is_raw(folder: &Path) -> bool {
    let is_raw = |name: &OsStr| is_called(name, "RAW");
    folder.file_name().is_some_and(is_raw) || is_of_profiles(folder)
}

/// Whether what lies in a folder of results was measured to be profiled: in `PMC`, `PMC/on`.
pub(super) fn is_of_profiles(within: &Path) -> bool {
    within.iter().any(|name| is_called(name, "PMC"))
}

/// Whether a folder has a name, or one of a kind of it: `RAW`, `raw`, `RAW.8rx`.
fn is_called(folder: &OsStr, name: &str) -> bool {
    let folder = folder.to_string_lossy();
    let first = folder.split('.').next().unwrap_or_default();
    first.eq_ignore_ascii_case(name)
}

/// Where a dataset's numbers are from, and what of all that is made of logs it is of.
///
/// Shape: `within` is the folder that it lies in, below that of the results.
fn origin<'m>(
    name: &str,
    within: &Path,
    dataset: &Dataset,
    groups: &[RunGroup],
    made: &'m [Made],
) -> (DatasetOrigin, Option<&'m Made>) {
    let published: Vec<&str> = dataset.written().map(|(_, value)| value).collect();
    // Sub-folders may have measured the same names, each in its own way.
    let is_of_name = |group: usize| {
        let group = &groups[group];
        group.key == name && without_raw(&group.folder) == without_raw(within)
    };
    let exact = |wanted: bool| {
        let mut made = made.iter();
        made.find(|made| {
            // Nothing is told from nothing by its name alone.
            let is_told = wanted || !made.lines.is_empty();
            is_of_name(made.group) == wanted && made.lines == published && is_told
        })
    };
    if let Some(made) = exact(true) {
        return (DatasetOrigin::Logs, Some(made));
    }
    if let Some(made) = exact(false) {
        return (DatasetOrigin::OtherLogs, Some(made));
    }
    // Of `RAW.1rx` and `RAW.8rx` one may have been kept, and the dataset be of the other.
    let is_of_its_own = |group: usize| {
        let folder = &groups[group].folder;
        folder == within
            || folder.as_path() == without_raw(folder)
            || folder
                .file_name()
                .is_some_and(|name| name.eq_ignore_ascii_case("RAW"))
    };
    let of_name = made
        .iter()
        .filter(|made| is_of_name(made.group) && is_of_its_own(made.group));
    let agreeing = |made: &&Made| {
        let lines = made.lines.iter();
        lines
            .filter(|line| published.contains(&line.as_str()))
            .count()
    };
    // The first of equals: the averaged median, which most of the archive is made with.
    match of_name.rev().max_by_key(agreeing) {
        Some(best) => (DatasetOrigin::Altered, Some(best)),
        None => (DatasetOrigin::NoLogs, None),
    }
}

#[cfg(test)]
mod tests {
    use crate::ArchiveTree;

    #[test]
    fn runs_whose_numbers_are_written_apart_are_two() {
        let root = tempfile::tempdir().unwrap();
        for name in [
            "a.1.receiver",
            "a.01.receiver",
            "a.01.sender",
            "a.2.receiver",
        ] {
            let side = if name.ends_with("sender") { "tx" } else { "rx" };
            let log = format!("CMD: pkt-gen -f {side} -i ix1\n");
            std::fs::write(root.path().join(format!("bench.{name}")), log).unwrap();
        }
        let tree = ArchiveTree::read(root.path()).unwrap();
        let name = |index: usize| tree.files[index].path.to_string_lossy().into_owned();
        let runs = &tree.folders[0].groups[0].runs;
        let found: Vec<_> = runs
            .iter()
            .map(|run| (run.iteration, run.receiver.map(name), run.senders.len()))
            .collect();
        let run =
            |iteration, name: &str, senders| (Some(iteration), Some(name.to_owned()), senders);
        assert_eq!(
            found,
            [
                run(1, "bench.a.01.receiver", 1),
                run(1, "bench.a.1.receiver", 0),
                run(2, "bench.a.2.receiver", 0),
            ]
        );
    }
}
