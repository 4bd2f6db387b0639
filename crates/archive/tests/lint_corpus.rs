//! The rules on published results against the part of the public archive that lies in the shared data, and
//! against the seeds.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fwdlab_archive::lint::{Finding, Severity, lint_tree};
use fwdlab_archive::netbenches::{ArchiveTree, FileKind, Origin, Outcome};

/// A finding on a line: code, where it is and what is the case.
fn shown(root: &Path, finding: &Finding) -> String {
    let place = finding.evidence.first().map_or_else(
        || finding.directory.display().to_string(),
        |evidence| {
            let path = evidence.path.strip_prefix(root).unwrap_or(&evidence.path);
            let line = evidence
                .line
                .map_or(String::new(), |line| format!(":{line}"));
            format!("{}{line}", path.display())
        },
    );
    format!("{} {place}: {}", finding.rule.code, finding.sentence)
}

fn counts<'a>(findings: impl Iterator<Item = &'a Finding>) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in findings {
        *counts.entry(finding.rule.code).or_default() += 1;
    }
    let lines = counts.iter().map(|(code, count)| format!("{code} {count}"));
    lines.collect()
}

#[test]
fn what_is_found_in_the_archive_is_what_was_judged() {
    let root = testkit::require_shared!("corpus/netbenches");
    let tree = ArchiveTree::read(&root).unwrap();
    let findings = lint_tree(&tree);
    assert_eq!(counts(findings.iter()), COUNTS);
    let mut errors: Vec<String> = findings
        .iter()
        .filter(|finding| finding.rule.severity == Severity::Error)
        .map(|finding| shown(&root, finding))
        .collect();
    errors.sort();
    assert_eq!(errors, ERRORS);
}

const COUNTS: [&str; 0] = [];
const ERRORS: [&str; 0] = [];

#[test]
fn every_file_of_the_archive_is_of_a_known_kind_and_read() {
    let root = testkit::require_shared!("corpus/netbenches");
    let tree = ArchiveTree::read(&root).unwrap();
    for file in &tree.files {
        assert!(!matches!(file.outcome, Outcome::Failed(_)), "{file:?}");
        assert_ne!(file.kind, FileKind::Unnamed, "{file:?}");
    }
}

#[test]
fn every_dataset_that_its_logs_do_not_give_is_found() {
    let root = testkit::require_shared!("corpus/netbenches");
    let tree = ArchiveTree::read(&root).unwrap();
    let findings = lint_tree(&tree);
    let mut altered = 0;
    for folder in &tree.folders {
        for dataset in &folder.datasets {
            if !matches!(dataset.origin, Origin::Altered { .. }) {
                continue;
            }
            altered += 1;
            let path = root.join(&tree.files[dataset.file].path);
            let is_of_it = |finding: &&Finding| {
                finding.rule.code.starts_with("L1")
                    && finding.rule.severity == Severity::Error
                    && finding
                        .evidence
                        .first()
                        .is_some_and(|evidence| evidence.path == path)
            };
            assert!(
                findings.iter().any(|finding| is_of_it(&finding)),
                "{path:?}"
            );
        }
    }
    assert_eq!(altered, 16);
}

/// Where the archive has the seeds, in their order.
const SEEDS: [&str; 5] = [
    "AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710/hyperthreading/results/fbsd15-n302145",
    "Atom_C2758_8Cores/Intel_82599/iflib.tx_reclaim_thresh/results/fbsd15-n302145simplecache",
    "Atom_C2758_8Cores/Intel_82599/iflib.simple_tx/results/fbsd15-n302145simplecache",
    "AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710/harvest_mask/results/fbsd15-n302145",
    "Atom_C2758_8Cores/Chelsio_T540-CR/firewalls/results/fbsd14-n277567-D33658",
];

/// Copies a folder and everything in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn the_seeds_beside_their_data_are_found_to_be_what_they_are() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let mut seeds: Vec<_> = fs::read_dir(testkit::require_shared!("seeds"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    seeds.sort();
    assert_eq!(seeds.len(), SEEDS.len());
    let folder = tempfile::tempdir().unwrap();
    for (seed, place) in seeds.iter().zip(SEEDS) {
        copy(&archive.join(place), &folder.path().join(place));
        fs::write(
            folder.path().join(place).join("README.md"),
            fs::read(seed).unwrap(),
        )
        .unwrap();
    }
    let tree = ArchiveTree::read(folder.path()).unwrap();
    let findings = lint_tree(&tree);
    let found: Vec<String> = findings
        .iter()
        .map(|finding| {
            let of = SEEDS
                .iter()
                .position(|place| finding.directory == folder.path().join(place))
                .unwrap();
            let path = folder.path().join(SEEDS[of]);
            format!("00{of} {}", shown(&path, finding))
        })
        .collect();
    assert_eq!(found, FOUND_IN_SEEDS);
}

const FOUND_IN_SEEDS: [&str; 0] = [];
