use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use crate::lint::lint_tree;
use crate::lint::tree::sample::{FOLDER, OFF, Sample, receiver};
use crate::{ArchiveTree, FileKind, Outcome, TreeDataset};

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
    let torn = "113.813710 main_thread [2786] 1000 pp113.1";
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
    // The log of a run beside them makes it a publication, if it is one.
    for (log, unknown) in [("no log\n", 0), (&receiver(&OFF[..1]), 2)] {
        std::fs::write(folder.path().join("bench.old.1.receiver"), log).unwrap();
        let tree = ArchiveTree::read(folder.path()).unwrap();
        let found = lint_tree(&tree);
        let of_unknown = found.iter().filter(|found| found.rule.code == "L906");
        assert_eq!(of_unknown.count(), unknown, "{found:?}");
    }
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
fn what_is_wrong_with_a_file_is_said_without_what_an_import_of_it_would_need() {
    let sample = Sample::sound();
    sample.write("RAW/bench.off.6.receiver", "a text\n");
    sample.write("RAW/bench.off.7.sender", "");
    sample.write("x.data", "#index median minimum maximum\na 1 2\n");
    let findings = sample.lint();
    let sentences: Vec<&str> = findings.iter().map(|found| &*found.sentence).collect();
    let path = |name: &str| format!("{FOLDER}/{name}");
    assert_eq!(
        sentences,
        [
            format!(
                "{} is no receiver's log: no log of pkt-gen (\"a text\")",
                path("RAW/bench.off.6.receiver")
            ),
            format!(
                "{} is no sender's log: no line at all",
                path("RAW/bench.off.7.sender")
            ),
            format!(
                "{} is no table for gnuplot: column 1 is not a number (\"a\")",
                path("x.data")
            ),
        ]
    );
}

#[test]
fn backups_and_hidden_files_are_no_findings_and_no_datasets() {
    let sample = Sample::sound();
    for name in [
        "off.pps~",
        "off.pps.bak",
        "#off.pps#",
        ".off.pps.swp",
        "RAW/bench.off.1.receiver.orig",
        "RAW/.DS_Store",
        "Thumbs.db",
    ] {
        sample.write(name, "1\n2\n3\n");
    }
    assert_eq!(sample.found(), [""; 0]);
    assert_eq!(datasets(&sample), ["off.pps", "on.pps"]);
}

#[test]
fn folders_of_settings_are_no_results() {
    let sample = Sample::sound();
    for (name, text) in [
        ("../../config/ncpus", ""),
        ("../../config/queues", "8\n"),
        ("../../lab/dut.data", "a text\n"),
        ("lab/interfaces", "ix0 ix1\n"),
        ("lab/empty", ""),
        ("config/lab.config", "ix0 to ix1\n"),
    ] {
        sample.write(name, text);
    }
    assert_eq!(sample.found(), [""; 0]);
    assert_eq!(datasets(&sample), ["off.pps", "on.pps"]);
    // A file without anything in it is no dataset where it has no ending, either.
    sample.write("measured", "");
    assert_eq!(
        sample.found(),
        ["L906\npublished measured: of no known kind, by its name or by what it holds"]
    );
}

#[test]
fn files_of_newer_results_are_of_known_kinds() {
    let sample = Sample::sound();
    sample.write("netstat.on.1.txt", "Workstreams:\nWSID CPU\n");
    sample.write("PMC/on/netstat.Q.txt", "Protocols:\n");
    sample.write("PMC/on/on.folded.txt", "fork_exit;ip_input 12\n");
    let table = "| set | pps |\n|---|---|\n| off | 1003000 |\n";
    sample.write("results.md", table);
    sample.write("summary.txt", table);
    assert_eq!(sample.found(), [""; 0]);
    let kinds = |names: &[&str]| -> Vec<FileKind> {
        let tree = ArchiveTree::read(sample.root()).unwrap();
        let file = |name: &&str| tree.files.iter().find(|file| file.path.ends_with(name));
        names.iter().map(|name| file(name).unwrap().kind).collect()
    };
    assert_eq!(
        kinds(&["results.md", "summary.txt", "README.md"]),
        [
            FileKind::MarkdownTable,
            FileKind::MarkdownTable,
            FileKind::Readme
        ]
    );
    // Rates in packets per second are datasets; what may be in Mb/s is a table.
    sample.write("prepatch.data", "1001000\n1002000\n1003000\n");
    sample.write("postpatch.data", "1101000\n1102000\n1103000\n");
    sample.write("aes.data", "376\n378\n");
    assert_eq!(
        kinds(&["prepatch.data", "aes.data", "gnuplot.data"]),
        [FileKind::Dataset, FileKind::Table, FileKind::Table]
    );
    assert_eq!(
        datasets(&sample),
        ["off.pps", "on.pps", "postpatch.data", "prepatch.data"]
    );
}

/// The names of all datasets.
fn datasets(sample: &Sample) -> Vec<String> {
    let tree = ArchiveTree::read(sample.root()).unwrap();
    let datasets = TreeDataset::all(&tree);
    datasets.into_iter().map(|dataset| dataset.name).collect()
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
