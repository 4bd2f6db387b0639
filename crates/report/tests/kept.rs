//! Results that earlier versions wrote, of each kind of lab: what is made of them stays.
//!
//! `KEEP=1 cargo test -p fwdlab-report --test kept` keeps what is made of them now, once every difference was looked at.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use fwdlab_archive::Results;
use fwdlab_report::{Report, render};

/// Each a results directory, with the report and the README that were made of it.
fn kept() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kept");
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn assert_kept(path: &Path, made: &str) {
    if std::env::var_os("KEEP").is_some() {
        fs::write(path, made).unwrap();
        return;
    }
    let kept = fs::read_to_string(path).unwrap();
    let differing = kept
        .lines()
        .zip(made.lines())
        .position(|(one, other)| one != other);
    let Some(number) = differing else {
        return assert_eq!(kept, made, "{}", path.display());
    };
    let [kept, made] = [kept.as_str(), made].map(|text| text.lines().nth(number));
    panic!(
        "{}:{}: {kept:?} was made before, and now {made:?}",
        path.display(),
        number + 1
    );
}

#[test]
fn the_same_is_made_of_results_of_each_kind_of_lab() {
    let mut kinds = BTreeSet::new();
    for directory in kept() {
        let loaded = Results::load(&directory).unwrap();
        kinds.insert(loaded.resolved.lab.kind.to_string());
        let report = Report::build(&loaded).unwrap();
        assert_kept(
            &directory.join("report.json"),
            &render::json(&report).unwrap(),
        );
        let readme = render::readme(&report, "derived/");
        assert_kept(&directory.join("readme.txt"), &readme);
    }
    let expected = ["freebsd-ssh", "linux-ssh", "netns", "router"];
    assert!(kinds.iter().eq(&expected), "{kinds:?}");
}
