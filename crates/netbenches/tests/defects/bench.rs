//! Copies of parts, which lint looks at before a defect is planted and after.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use fwdlab_archive::lint::Severity;
use fwdlab_netbenches::ArchiveTree;
use fwdlab_netbenches::lint::lint_tree;
use tempfile::TempDir;

use crate::part::{Change, Defect, Part};

/// What lint says, without what moves when lines do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Found {
    pub(crate) severity: Severity,
    pub(crate) code: &'static str,
    pub(crate) sentence: String,
    /// Below the corpus.
    places: BTreeSet<PathBuf>,
}

impl Found {
    pub(crate) fn is_of(&self, path: &Path) -> bool {
        self.places.contains(path)
    }
}

/// What a defect changed of what lint says.
pub(crate) struct Outcome {
    pub(crate) new: Vec<Found>,
    pub(crate) gone: Vec<Found>,
}

impl Outcome {
    /// Whether a finding is gone that no new one of the same rule took the place of.
    pub(crate) fn has_vanished(&self) -> bool {
        let of = |found: &[Found], code| found.iter().filter(|found| found.code == code).count();
        let mut gone = self.gone.iter();
        gone.any(|found| of(&self.gone, found.code) > of(&self.new, found.code))
    }
}

pub(crate) struct Bench {
    corpus: PathBuf,
    copies: BTreeMap<PathBuf, Sound>,
}

/// A copy of a part, and what lint says of it.
struct Sound {
    root: TempDir,
    found: Vec<Found>,
}

impl Bench {
    pub(crate) fn new(corpus: &Path) -> Self {
        Self {
            corpus: corpus.to_owned(),
            copies: BTreeMap::new(),
        }
    }

    /// Plants a defect into the copy of a part, looks, and takes it out again.
    pub(crate) fn plant(&mut self, part: &Part, defect: &Defect) -> Outcome {
        let sound = (self.copies)
            .entry(part.topic.clone())
            .or_insert_with(|| copied(part));
        let root = sound.root.path();
        let before = if defect.ready.is_empty() {
            sound.found.clone()
        } else {
            write(root, &defect.ready);
            look(root)
        };
        write(root, &defect.changes);
        let after = look(root);
        for (path, _) in defect.ready.iter().chain(&defect.changes) {
            match fs::read(self.corpus.join(path)) {
                Ok(as_it_was) => fs::write(root.join(path), as_it_was).unwrap(),
                Err(_) => fs::remove_file(root.join(path)).unwrap_or_default(),
            }
        }
        Outcome {
            new: without(&after, &before),
            gone: without(&before, &after),
        }
    }
}

fn copied(part: &Part) -> Sound {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join(&part.topic);
    fs::create_dir_all(&folder).unwrap();
    testkit::copy_folder(&part.corpus.join(&part.topic), &folder);
    // The corpus is without the archive's pictures.
    for picture in part.pictures() {
        if !root.path().join(&picture).exists() {
            fs::write(root.path().join(&picture), "<svg/>\n").unwrap();
        }
    }
    let found = look(root.path());
    Sound { root, found }
}

fn write(root: &Path, changes: &[Change]) {
    for (path, content) in changes {
        fs::write(root.join(path), content).unwrap();
    }
}

fn look(root: &Path) -> Vec<Found> {
    let findings = lint_tree(&ArchiveTree::read(root).unwrap());
    let mut found: Vec<Found> = findings
        .into_iter()
        .map(|finding| {
            let places = finding.evidence.iter().map(|evidence| {
                let path = evidence.path.strip_prefix(root);
                path.unwrap_or(&evidence.path).to_owned()
            });
            Found {
                severity: finding.rule.severity,
                code: finding.rule.code,
                places: places.collect(),
                sentence: finding.sentence,
            }
        })
        .collect();
    found.sort();
    found
}

/// Those of one that the other has not, each as often as it has more.
fn without(found: &[Found], other: &[Found]) -> Vec<Found> {
    let mut left = other.to_vec();
    let mut kept = Vec::new();
    for one in found {
        match left.iter().position(|other| other == one) {
            Some(at) => drop(left.swap_remove(at)),
            None => kept.push(one.clone()),
        }
    }
    kept
}
