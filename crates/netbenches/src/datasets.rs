//! Every dataset of a tree: what rows of published texts may have been made of.

use std::path::Path;

use fwdlab_pkt_gen::PublishedMedian;

use crate::file::ArchiveFile;
use crate::folder::{PublishedDataset, ResultsFolder, Run, RunGroup};
use crate::readme::Candidate;
use crate::tree::ArchiveTree;

/// A dataset in its tree.
#[derive(Debug)]
pub struct TreeDataset<'a> {
    /// The folder that it lies in, below the root, with `/` between.
    pub place: String,
    /// Its file's name.
    pub name: String,
    /// Its file, below the root.
    pub path: &'a Path,
    /// What was published.
    pub values: &'a [f64],
    folder: &'a ResultsFolder,
    dataset: &'a PublishedDataset,
}

impl<'a> TreeDataset<'a> {
    /// All of a tree, by folder and path.
    #[must_use]
    pub fn all(tree: &'a ArchiveTree) -> Vec<Self> {
        let known = tree.folders.iter().flat_map(|folder| {
            folder.datasets.iter().filter_map(move |dataset| {
                let file = &tree.files[dataset.file];
                Some(Self {
                    place: place(file.path.parent().unwrap_or(Path::new(""))),
                    name: file.path.file_name()?.to_string_lossy().into_owned(),
                    path: &file.path,
                    values: &dataset.content(&tree.files)?.values,
                    folder,
                    dataset,
                })
            })
        });
        known.collect()
    }

    /// As an index of datasets takes it.
    #[must_use]
    pub fn candidate(&self) -> Candidate<'_> {
        Candidate {
            place: &self.place,
            name: &self.name,
            values: self.values,
        }
    }

    /// The folder of results that it is of.
    #[must_use]
    pub fn folder(&self) -> &'a ResultsFolder {
        self.folder
    }

    /// The median that it was made with, as far as can be seen.
    #[must_use]
    pub fn median(&self) -> PublishedMedian {
        self.dataset.median
    }

    /// The runs that it was made of.
    #[must_use]
    pub fn group(&self) -> Option<&'a RunGroup> {
        Some(&self.folder.groups[self.dataset.group?])
    }

    /// The observations that the logs give, as the archive reckons them, in packets per second; none
    /// without logs.
    #[must_use]
    pub fn derived(&self, files: &[ArchiveFile]) -> Option<Vec<f64>> {
        let lines = self.group()?.published(files, self.median());
        lines.iter().map(|line| line.parse().ok()).collect()
    }

    /// What was offered in the runs that give an observation, in packets per second; none where a log
    /// does not say.
    #[must_use]
    pub fn offered_pps(&self, files: &[ArchiveFile]) -> Option<Vec<f64>> {
        let gives = |run: &&Run| {
            run.received(files)
                .is_some_and(|log| log.published.with(self.median()).is_some())
        };
        let runs = self.group()?.runs.iter().filter(gives);
        runs.map(|run| run.offered_pps(files)).collect()
    }
}

/// A folder's path with `/` between its names, as texts compare places.
pub(crate) fn place(path: &Path) -> String {
    let names = path
        .components()
        .map(|name| name.as_os_str().to_string_lossy());
    names.collect::<Vec<_>>().join("/")
}
