//! What `fwdlab audit` prints and leaves, and what it finds in the public archive.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod shared;

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use shared::fwdlab;

const RESULTS: &str = "P/N/T/results/L";

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Two datasets that differ, and a text that says so.
fn archive(root: &Path) {
    let (x, y) = ("100\n101\n102\n103\n104\n", "200\n201\n202\n203\n204\n");
    for (name, values) in [("x.pps", x), ("y.pps", y)] {
        write(root, &format!("{RESULTS}/{name}"), values);
    }
    let folder = root.join(RESULTS);
    let output = fwdlab(&["ministat", "-s", "x.pps", "y.pps"])
        .current_dir(folder)
        .output()
        .unwrap();
    let block = String::from_utf8(output.stdout).unwrap();
    let text = format!("# Impact of T\n\n```\n{block}```\n");
    write(root, &format!("{RESULTS}/README.md"), &text);
}

fn audit(arguments: &[&str]) -> Output {
    fwdlab(&[&["audit"], arguments].concat()).output().unwrap()
}

fn told(output: &Output) -> (Option<i32>, &str) {
    (
        output.status.code(),
        str::from_utf8(&output.stderr).unwrap(),
    )
}

#[test]
fn a_report_is_written_and_replaced() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, out) = (scratch.path().join("archive"), scratch.path().join("out"));
    archive(&root);
    let arguments = [root.to_str().unwrap(), "--to", out.to_str().unwrap()];
    for _ in 0..2 {
        let output = audit(&arguments);
        assert_eq!(told(&output), (Some(0), ""));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.contains("1 of 1 block judged, with 1 comparison: of 1"),
            "{text}"
        );
    }
    let readme = fs::read_to_string(out.join("README.md")).unwrap();
    for link in readme.split("](").skip(1) {
        let target = link.split(')').next().unwrap();
        assert!(out.join(target).is_file(), "{target}");
    }
    let report = fs::read_to_string(out.join("audit.json")).unwrap();
    let printed = audit(&[root.to_str().unwrap(), "--json"]);
    assert_eq!(String::from_utf8(printed.stdout).unwrap(), report);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["verdicts"]["comparisons"][0]["verdict"], "different");
}

#[test]
fn what_cannot_be_audited_or_written_is_said() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("archive");
    archive(&root);
    let root = root.to_str().unwrap();
    let inside = format!("{root}/new");
    let taken = scratch.path().join("taken");
    write(&taken, "notes", "mine");
    let empty = scratch.path().join("empty");
    fs::create_dir(&empty).unwrap();
    for (arguments, expected) in [
        (&["/nowhere"][..], "/nowhere: cannot be listed"),
        (&[empty.to_str().unwrap()], "no published datasets below it"),
        (
            &[root, "--to", &inside],
            "lies in the archive that is read; give a folder elsewhere with --to",
        ),
        (
            &[root, "--to", taken.to_str().unwrap()],
            "holds something that is no earlier audit",
        ),
    ] {
        let output = audit(arguments);
        let (code, text) = told(&output);
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains(expected), "{text}");
    }
    assert_eq!(fs::read_dir(&taken).unwrap().count(), 1);
}

/// What docs/audit.md shows is what is printed and drawn.
#[test]
fn the_page_shows_what_comes_out() {
    let root = testkit::require_shared!("corpus/netbenches");
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out");
    let output = audit(&[root.to_str().unwrap(), "--to", out.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    let (text, _) = text.split_once("\nReport: ").unwrap();
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let page = fs::read_to_string(docs.join("audit.md")).unwrap();
    assert!(
        page.contains(text),
        "docs/audit.md: what is printed today is\n{text}"
    );
    for plot in fs::read_dir(out.join("plots")).unwrap() {
        let (plot, name) = plot.map(|plot| (plot.path(), plot.file_name())).unwrap();
        let shown = fs::read_to_string(docs.join("audit").join(&name)).unwrap();
        let drawn = fs::read_to_string(&plot).unwrap();
        assert!(
            shown == drawn,
            "docs/audit: copy what fwdlab audit draws of {name:?} there"
        );
    }
}

/// The facts that are published of the whole archive, in the part of it that tests have.
#[test]
fn the_facts_of_the_public_archive_come_out() {
    let root = testkit::require_shared!("corpus/netbenches");
    let output = audit(&[root.to_str().unwrap(), "--json"]);
    assert_eq!(told(&output), (Some(0), ""));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |path: &str| report.pointer(path).and_then(Value::as_f64).unwrap();
    // ministat's words are those of the pooled t test of the very numbers, but where a run that was left out counts.
    let methods = report["verdicts"]["methods"].as_array().unwrap();
    let pooled = methods
        .iter()
        .find(|method| method["method"] == "pooled t")
        .unwrap();
    let count = |key: &str| pooled[key].as_u64().unwrap();
    assert_eq!(count("said_kept") + 1, count("said"));
    assert_eq!(pooled["unsaid_found"], 0);
    assert!(count("said") > 300);
    for (path, low, high) in [
        // Coefficients of variation: .19, .80 and 3.8 % of the whole archive.
        ("/noise/all/cv_percent/p10", 0.1, 0.3),
        ("/noise/all/cv_percent/p50", 0.6, 1.1),
        ("/noise/all/cv_percent/p90", 3.0, 5.0),
        // 17.6, 6.6 and 2.5 % of the runs.
        ("/tails/beyond_2_percent", 0.15, 0.23),
        ("/tails/beyond_5_percent", 0.05, 0.09),
        ("/tails/beyond_10_percent", 0.02, 0.035),
        // Seconds: .27 %; .19 and .89.
        ("/within/deviation_percent/p50", 0.08, 0.4),
        ("/within/autocorrelation/p50", 0.1, 0.3),
        ("/within/autocorrelation/p95", 0.8, 0.95),
        ("/within/between_by_within/p50", 100.0, 2000.0),
        // Sessions: .34 and 2.9 %, 15 % of them differences.
        ("/sessions/apart_percent/p50", 0.15, 0.5),
        ("/sessions/apart_percent/p90", 2.0, 5.0),
        ("/sessions/differences", 0.1, 0.25),
        // The offered load: 2.2 % in one of a hundred.
        ("/offered/cv_percent/p99", 1.5, 3.0),
    ] {
        let figure = number(path);
        assert!((low..=high).contains(&figure), "{path}: {figure}");
    }
    let monotone = number("/order/monotone");
    let expected = number("/order/expected");
    assert!(
        (monotone - expected).abs() < 4.0 * expected.sqrt(),
        "{monotone} of {expected}"
    );
}
