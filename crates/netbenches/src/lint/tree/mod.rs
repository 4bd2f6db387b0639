//! The rules on published results of others: every number against the logs that lie beside it, every text
//! against the numbers that it shows.

mod equilibrium;
mod files;
mod frames;
mod identity;
mod lab;
mod links;
mod loads;
mod logs;
mod numbers;
mod profiles;
#[cfg(test)]
mod sample;
mod tables;
#[cfg(test)]
mod tests;
mod texts;

use std::path::PathBuf;

use fwdlab_archive::lint::{Evidence, Finding, Rule};
use fwdlab_sys::parallel::{FEW, parallel};

use crate::{ArchiveFile, ArchiveTree, ResultsFolder};

/// Holds everything that is published in a tree against what it was made of.
#[must_use]
pub fn lint_tree(tree: &ArchiveTree) -> Vec<Finding> {
    let mut findings = Vec::new();
    files::lint_files(tree, &mut findings);
    let of_folders = parallel(&tree.folders, FEW, |folder| {
        let mut findings = Vec::new();
        let folder = Folder { tree, folder };
        numbers::lint_numbers(folder, &mut findings);
        equilibrium::lint_equilibrium(folder, &mut findings);
        tables::lint_tables(folder, &mut findings);
        logs::lint_logs(folder, &mut findings);
        frames::lint_frames(folder, &mut findings);
        identity::lint_identity(folder, &mut findings);
        profiles::lint_profiles(folder, &mut findings);
        findings
    });
    findings.extend(of_folders.into_iter().flatten());
    findings.extend(texts::lint_texts(tree));
    findings
}

/// A folder of results in its tree.
#[derive(Clone, Copy)]
struct Folder<'a> {
    tree: &'a ArchiveTree,
    folder: &'a ResultsFolder,
}

impl<'a> Folder<'a> {
    fn directory(self) -> PathBuf {
        self.tree.root.join(&self.folder.path)
    }

    fn file(self, index: usize) -> &'a ArchiveFile {
        &self.tree.files[index]
    }

    /// Where a file is, as it would be opened.
    fn path(self, index: usize) -> PathBuf {
        self.tree.root.join(&self.file(index).path)
    }

    /// A file as it is called in the folder.
    fn name(self, index: usize) -> String {
        let path = &self.file(index).path;
        let within = path.strip_prefix(&self.folder.path).unwrap_or(path);
        within.display().to_string()
    }

    fn finding(self, rule: &'static Rule, sentence: impl Into<String>) -> Finding {
        Finding::new(rule, &self.directory(), sentence)
    }

    fn published(self, index: usize, says: impl Into<String>) -> Evidence {
        self.published_at(index, None, says)
    }

    fn published_at(
        self,
        index: usize,
        line: impl Into<Option<usize>>,
        says: impl Into<String>,
    ) -> Evidence {
        Evidence::published(&self.path(index), line.into(), says)
    }

    fn derived(self, index: usize, says: impl Into<String>) -> Evidence {
        Evidence::derived(&self.path(index), None, says)
    }
}

/// A bench of one variant has no key.
fn shown(key: &str) -> &str {
    if key.is_empty() { "the bench" } else { key }
}
