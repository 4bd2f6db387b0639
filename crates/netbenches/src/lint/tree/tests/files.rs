use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use crate::lint::lint_tree;
use crate::lint::tree::sample::Sample;
use crate::{ArchiveTree, Outcome};

#[test]
fn a_file_that_cannot_be_read_is_found() {
    let sample = Sample::sound();
    sample.write("other.data", "a 1\n");
    let mut tree = ArchiveTree::read(sample.root()).unwrap();
    // Nothing is unreadable to root.
    for file in &mut tree.files {
        if file.path.ends_with("other.data") {
            file.outcome = Outcome::unreadable("permission denied");
        }
    }
    let findings = lint_tree(&tree);
    assert_eq!(findings.len(), 1);
    assert_eq!(
        sample.shown(&findings[0]),
        "L901\npublished other.data: cannot be read: permission denied"
    );
}

#[test]
fn a_file_that_is_not_of_its_form_is_found_with_its_line() {
    let sample = Sample::sound();
    sample.write("other.pps", "1000\n2000\nmany\n");
    assert_eq!(sample.found(), ["L902\npublished other.pps:3: many"]);
}

#[test]
fn lines_of_a_log_that_are_not_understood_are_found_with_their_lines() {
    let sample = Sample::sound();
    let torn = "113.000000 main_thread [2786] 1000 pp113.1";
    sample.edit("RAW/bench.off.3.receiver", |log| {
        let lines: Vec<&str> = log.lines().collect();
        format!(
            "{}\n{torn}\n{}\nx\n",
            lines[..20].join("\n"),
            lines[20..].join("\n")
        )
    });
    assert_eq!(
        sample.found(),
        [format!(
            "L412\n\
             published RAW/bench.off.3.receiver:21: {torn}\n\
             published RAW/bench.off.3.receiver:43: x"
        )]
    );
}

#[test]
fn a_file_of_no_known_kind_is_no_error() {
    let sample = Sample::sound();
    sample.write("notes.txt", "measured twice\n");
    let found = sample.found();
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("L906\npublished notes.txt:1: measured twice"),
        "{found:?}"
    );
}

#[test]
fn loose_files_are_judged_only_where_results_are_published() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("ab.toml", "question = \"x\"\n"),
        ("old.nft", "table inet t {}\n"),
        ("old.pps", "1000\n1001\n"),
        ("trials.svg", "<svg/>\n"),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let tree = ArchiveTree::read(folder.path()).unwrap();
    assert_eq!(tree.folders.len(), 1);
    assert_eq!(lint_tree(&tree), []);
    // The log of a run beside them makes it a publication.
    std::fs::write(folder.path().join("bench.old.1.receiver"), "no log\n").unwrap();
    let tree = ArchiveTree::read(folder.path()).unwrap();
    let found = lint_tree(&tree);
    let unknown = found.iter().filter(|found| found.rule.code == "L906");
    assert_eq!(unknown.count(), 2, "{found:?}");
}

#[test]
fn pictures_programs_and_configurations_are_no_findings() {
    let sample = Sample::sound();
    for name in [
        "graph.svg",
        "../../plot.sh",
        "../../../LICENSE",
        "../../configs/off/etc/rc.conf",
        "gnuplot.plt",
        "RAW/bench.off.1.pmc.out",
    ] {
        sample.write(name, "x=\"y\"\n");
    }
    assert_eq!(sample.found(), [""; 0]);
}

#[test]
fn names_that_act_are_found_once_each_and_names_in_other_scripts_are_not() {
    let sample = Sample::sound();
    sample.write("größe-速い.svg", "");
    assert_eq!(sample.found(), [""; 0]);
    sample.write("a\nb.svg", "");
    sample.write("dir\u{202e}/one.svg", "");
    sample.write("dir\u{202e}/two.svg", "");
    std::fs::write(sample.path("").join(OsStr::from_bytes(b"\xff.svg")), "").unwrap();
    let found = sample.found();
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found.iter().all(|found| found.starts_with("L905\n")));
    assert!(
        found
            .iter()
            .any(|found| found.ends_with(r#": "dir\u{202e}""#)),
        "{found:?}"
    );
}
