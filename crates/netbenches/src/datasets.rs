//! Every dataset of a tree: what rows of published texts may have been made of.

use std::path::Path;

use fwdlab_model::imported::DatasetOrigin;
use fwdlab_pkt_gen::PublishedMedian;

use crate::counted::{Counted, counted};
use crate::file::ArchiveFile;
use crate::folder::{PublishedDataset, ResultsFolder, RunGroup};
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

    /// What it is of, by its name: without `.pps`.
    #[must_use]
    pub fn key(&self) -> &'a str {
        &self.dataset.name
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

    /// How many of its runs are known to be profiled.
    #[must_use]
    pub fn profiled_runs(&self) -> usize {
        let runs = self.group().into_iter().flat_map(|group| &group.runs);
        runs.filter(|run| run.is_profiled).count()
    }

    /// What should have been published: where the logs do not give what was, the observations that count.
    #[must_use]
    pub fn corrected(&self, files: &[ArchiveFile]) -> Vec<f64> {
        if self.dataset.origin == DatasetOrigin::Altered {
            let counted = self.counted(files);
            counted.iter().map(|one| one.pps).collect()
        } else {
            self.values.to_vec()
        }
    }

    /// The observations that count.
    #[must_use]
    pub fn counted(&self, files: &[ArchiveFile]) -> Vec<Counted> {
        if self.dataset.is_of_profiles {
            return Vec::new();
        }
        let measured = self
            .group()
            .map(|group| group.measured(files, self.median()));
        counted(self.values, &measured.unwrap_or_default())
    }
}

/// A folder's path with `/` between its names, as texts compare places.
pub(crate) fn place(path: &Path) -> String {
    let names = path
        .components()
        .map(|name| name.as_os_str().to_string_lossy());
    names.collect::<Vec<_>>().join("/")
}
