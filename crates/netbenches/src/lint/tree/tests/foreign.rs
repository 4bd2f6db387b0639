//! Files that are none of the archive's, beside those that are: whatever they are called, they change nothing but what is
//! said of themselves.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::sample::select;

use crate::audit::PublishedResults;
use crate::lint::lint_tree;
use crate::lint::tree::sample::{OFF, OFFERED_PPS, ON, Sample, receiver, sender};
use crate::{ArchiveTree, Content, Imported, Outcome, Skip};

const GRAPH: &str =
    "@ cycles [12 samples]\n\n100.0%  [12]       ip_input @ /boot/kernel/kernel\n\n";

/// A tree as the archive's are, with a defect of each kind that other files could hide.
fn defective() -> Sample {
    let sample = Sample::sound();
    // A log that a profiled run has overwritten, a value without a log, and one that was changed.
    sample.write("RAW/bench.off.1.receiver", receiver(&[700_000; 30]));
    sample.write("RAW/bench.off.1.pmc.graph", GRAPH);
    let mut on = ON.to_vec();
    on[2] = 1_133_000;
    on.push(1_100_500);
    sample.publish(&[("off", &OFF), ("on", &on)]);
    // A run that was offered less, and one of which nothing says what it was.
    sample.write("RAW/bench.on.4.sender", sender(OFFERED_PPS / 2));
    sample.remove("RAW/bench.on.5.sender");
    sample.write("PMC/on/bench.on.pmc.graph", GRAPH);
    sample.write("PMC/on/bench.on.pmc.stack", "ip_output 7\n");
    sample.write("PMC/on/bench.on.receiver", receiver(&[600_000; 30]));
    sample.write("RAW.8rx/bench.off.1.receiver", receiver(&[900_000; 30]));
    sample.write("../../configs/off/etc/rc.conf", "gateway_enable=YES\n");
    // What lies beside.
    for name in [
        "graph.svg",
        "RAW/bench.off.pmc.svg",
        "RAW/bench.on.2.svg",
        "off.pps~",
        "README.md.orig",
        "RAW/.bench.off.1.receiver.swp",
        "RAW/Thumbs.db",
        "logs.tar.gz",
    ] {
        sample.write(name, "\u{1f}\u{8b}no form");
    }
    sample
}

/// What is found, counted and judged.
#[derive(Debug, PartialEq)]
struct Seen {
    findings: BTreeSet<String>,
    imported: Vec<Imported>,
    audited: PublishedResults,
}

/// But for what is said of `foreign` files.
fn seen(sample: &Sample, tree: &ArchiveTree, foreign: &[PathBuf]) -> Seen {
    let is_of_foreign = |path: &Path| foreign.iter().any(|foreign| foreign == path);
    let findings = lint_tree(tree).into_iter();
    let of_others = findings.filter(|finding| !is_of_foreign(&finding.evidence[0].path));
    let mut imported = Imported::all(tree);
    for imported in &mut imported {
        imported.results.files.clear();
    }
    Seen {
        findings: of_others
            .map(|finding| format!("{}\n{}", sample.shown(&finding), finding.sentence))
            .collect(),
        imported,
        audited: PublishedResults::of(tree),
    }
}

/// Whether what a file says counts: it is of one of the archive's forms then.
fn is_of_a_form(tree: &ArchiveTree, path: &Path) -> bool {
    let path = path.strip_prefix(&tree.root).unwrap();
    let file = tree.files.iter().find(|file| file.path == path);
    match &file.unwrap().outcome {
        // Of a profiler that was stopped before it ended.
        Outcome::Read(Content::ProfileLog(None)) => false,
        Outcome::Read(_) | Outcome::Skipped(Skip::ProfileSamples) => true,
        _ => false,
    }
}

/// Names as the archive's files have them, names that look like those, and any.
fn names() -> impl Strategy<Value = String> {
    let stems = select(vec![
        "bench",
        "bench.off",
        "bench.on.1",
        "bench.on.5",
        "bench.on.6",
        "bench.off.1",
        "bench.new.1",
        "off",
        "x",
        "",
    ]);
    let endings = select(vec![
        "info",
        "receiver",
        "sender",
        "sender_2",
        "sender_gen2",
        "pmc.graph",
        "pmc.stack",
        "pmc.log",
        "pmc.out",
        "svg",
        "png",
        "before",
        "stats.data",
        "pps",
        "pps.gz",
        "data",
        "equilibrium",
        "plt",
        "txt",
        "folded.txt",
        "conf",
        "json",
    ]);
    let whole = select(vec![
        "import.json",
        "imported.json",
        "resolved.json",
        "netstat.on.1.txt",
        ".DS_Store",
        "#off.pps#",
        "LICENSE",
        "VERSION",
    ]);
    prop_oneof![
        6 => (stems, endings).prop_map(|(stem, ending)| format!("{stem}.{ending}")),
        1 => whole.prop_map(str::to_owned),
        1 => "[a-z0-9.~#-]{0,9}[a-z]",
    ]
}

fn places() -> impl Strategy<Value = &'static str> {
    select(vec![
        "",
        "RAW/",
        "PMC/",
        "PMC/on/",
        "RAW.8rx/",
        "old/",
        "lab/",
        "../",
        "../new/",
        "../../",
        "../../config/",
        "../../../doc/",
    ])
}

fn contents() -> impl Strategy<Value = Vec<u8>> {
    let texts = [
        &b""[..],
        b"\n",
        b"no form\n",
        b"{}",
        b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>\n",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"\x1f\x8b\x08\0",
        b"[Thu Nov 20] measured twice\n1001000\n",
    ];
    prop_oneof![
        2 => select(texts.to_vec()).prop_map(<[u8]>::to_vec),
        1 => any::<Vec<u8>>(),
    ]
}

#[test]
fn no_file_that_is_not_of_the_archives_forms_changes_what_is_found_counted_or_judged() {
    let sample = defective();
    let before = ArchiveTree::read(sample.root()).unwrap();
    let sound = seen(&sample, &before, &[]);
    let codes: BTreeSet<&str> = sound.findings.iter().map(|finding| &finding[..4]).collect();
    let hidden = ["L103", "L104", "L111", "L407", "L408", "L503", "L906"];
    assert!(codes.is_superset(&BTreeSet::from(hidden)), "{codes:?}");
    let files = prop::collection::vec((places(), names(), contents()), 1..5);
    proptest!(ProptestConfig::with_cases(128), |(files in files)| {
        let mut written = Vec::new();
        for (place, name, content) in &files {
            let name = format!("{place}{name}");
            if !sample.path(&name).exists() {
                sample.write(&name, content);
                written.push(sample.path(&name));
            }
        }
        let tree = ArchiveTree::read(sample.root()).unwrap();
        let foreign: Vec<bool> = written.iter().map(|path| !is_of_a_form(&tree, path)).collect();
        let with_them = seen(&sample, &tree, &written);
        for path in &written {
            fs::remove_file(path).unwrap();
        }
        prop_assume!(foreign.iter().all(|is_foreign| *is_foreign));
        prop_assert_eq!(&with_them, &sound);
    });
}

#[test]
fn a_picture_named_after_a_run_is_no_run() {
    let sample = defective();
    for name in [
        "bench.off.svg",
        "bench.on.7.png",
        "RAW/bench.on.8.pmc.svg",
        "bench.svg",
    ] {
        sample.write(name, "<svg/>");
    }
    let tree = ArchiveTree::read(sample.root()).unwrap();
    let [folder] = &Imported::all(&tree)[..] else {
        panic!("{:?}", tree.folders);
    };
    // Five of `off`, five of `on`, one in `RAW.8rx`.
    assert_eq!(folder.runs.len(), 11);
    let found = sample.found();
    assert!(
        found
            .iter()
            .any(|found| found.starts_with("L111\npublished off.pps:1"))
    );
}

#[test]
fn a_sender_without_a_log_that_reads_leaves_open_what_was_offered() {
    let sample = Sample::sound();
    for run in 1..=5 {
        sample.write(
            &format!("RAW/bench.off.{run}.sender_2"),
            sender(OFFERED_PPS),
        );
    }
    let offered = |sample: &Sample| -> Vec<Option<f64>> {
        let tree = ArchiveTree::read(sample.root()).unwrap();
        let runs = Imported::all(&tree).remove(0).runs.into_iter();
        let of_off = runs.filter(|run| run.variant.as_str() == "off");
        of_off.map(|run| run.offered_pps).collect()
    };
    let both = Some((2 * OFFERED_PPS) as f64);
    assert_eq!(offered(&sample), [both; 5]);
    sample.write("RAW/bench.off.2.sender_2", "no log\n");
    sample.remove("RAW/bench.off.3.sender");
    assert_eq!(offered(&sample), [both, None, None, both, both]);
}
