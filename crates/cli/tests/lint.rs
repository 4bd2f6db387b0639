//! What a run leaves behind is sound, and whatever is changed in it is found.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod shared;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use shared::{FWDLAB, NOBODY, fwdlab, storm};
use testkit::{cases, change_a_file, copy_folder, text};

/// What may be so on any machine: a load that moved or held a variant, a verdict that hangs on disturbed
/// time.
const OF_THE_MACHINE: [&str; 3] = ["L402", "L403", "L602"];

/// A load that no neighbour on the machine can make too short.
const EXPERIMENT: &str = r#"
question = "Impact of ready Ethernet headers, in a hurry"
lab = "lab.toml"

[[factor]]
name = "l2_prepend"
levels = [0, 1]
default = 0

[traffic]
families = ["inet"]

[design]
blocks = 6
rounds = 2
slice_ms = 40
settle_ms = 10
warm_up_ms = 10
control = false
"#;

const LAB: &str = r#"
kind = "router"
regime = "self-clocked"

[bind]
l2_prepend = { knob = "l2_prepend" }
"#;

/// The codes found in a directory; the exit code is that of an error where there is one.
fn codes(directory: &Path) -> BTreeSet<String> {
    let output = fwdlab(&["lint", "--json", directory.to_str().unwrap()])
        .output()
        .unwrap();
    let findings: Vec<Value> =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)));
    let has_error = findings
        .iter()
        .any(|finding| finding["severity"] == "error");
    assert_eq!(
        output.status.code(),
        Some(i32::from(has_error)),
        "{}",
        text(&output)
    );
    let codes = findings
        .iter()
        .map(|finding| finding["code"].as_str().unwrap().to_owned());
    codes
        .filter(|code| !OF_THE_MACHINE.contains(&code.as_str()))
        .collect()
}

/// Replaces the last digit of the first line that `holds`.
fn change_figure(path: &Path, holds: impl Fn(&str) -> bool) {
    let text = fs::read_to_string(path).unwrap();
    let line = text.lines().find(|line| holds(line)).unwrap();
    let at = line.find(|c: char| c.is_ascii_digit()).unwrap();
    let digit = if &line[at..=at] == "7" { "3" } else { "7" };
    let changed = format!("{}{digit}{}", &line[..at], &line[at + 1..]);
    fs::write(path, text.replacen(line, &changed, 1)).unwrap();
}

fn first_pps(directory: &Path) -> PathBuf {
    let entries = fs::read_dir(directory).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let is_pps = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "pps");
    files.into_iter().find(is_pps).unwrap()
}

fn drop_a_line(path: &Path) {
    let text = fs::read_to_string(path).unwrap();
    let rest = text.split_inclusive('\n').skip(1);
    fs::write(path, rest.collect::<String>()).unwrap();
}

/// Runs the experiment, and returns its results directory.
fn measured(scratch: &Path) -> PathBuf {
    let results = scratch.join("results");
    let experiment = scratch.join("sound.toml");
    fs::write(&experiment, EXPERIMENT).unwrap();
    fs::write(scratch.join("lab.toml"), LAB).unwrap();
    let mut run = fwdlab(&["run", experiment.to_str().unwrap(), "--results"]);
    let output = run.arg(&results).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_eq!(codes(&results), BTreeSet::new());
    shared::directories(&results, "sound").remove(0)
}

#[test]
fn a_run_is_sound_and_every_change_to_it_is_found() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = measured(scratch.path());
    // A report that is made again is the same.
    let again = fwdlab(&["report", directory.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(again.status.success(), "{}", text(&again));
    assert_eq!(codes(&directory), BTreeSet::new());
    assert!(!directory.join("lint.json").exists(), "lint writes nothing");

    type Change = fn(&Path);
    let changes: &[(&str, Change)] = &[
        ("L102", |dir| drop_a_line(&first_pps(dir))),
        ("L103", |dir| {
            // By a tenth, which a digit at the end may not be.
            let path = first_pps(dir);
            let text = fs::read_to_string(&path).unwrap();
            let first: f64 = text.lines().next().unwrap().parse().unwrap();
            let rest = text.split_once('\n').unwrap().1;
            fs::write(&path, format!("{}\n{rest}", first * 1.1)).unwrap();
        }),
        ("L106", |dir| {
            let path = dir.join("blocks/2.csv");
            let text = fs::read_to_string(&path).unwrap();
            let row = text.lines().nth(1).unwrap();
            let mut cells: Vec<&str> = row.split(',').collect();
            cells[7] = "7";
            fs::write(&path, text.replacen(row, &cells.join(","), 1)).unwrap();
        }),
        ("L108", |dir| {
            change_figure(&dir.join("README.md"), |line| line.starts_with("x   "));
        }),
        ("L108", |dir| {
            change_figure(&dir.join("derived/report.json"), |line| {
                line.contains("forwarding_rate_pps\": ")
            });
        }),
        ("L206", |dir| {
            let path = dir.join("README.md");
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, text.replacen("# Impact of", "# Harm of", 1)).unwrap();
        }),
        ("L301", |dir| {
            fs::remove_file(dir.join("derived/trials.svg")).unwrap()
        }),
        ("L902", |dir| drop_a_line(&dir.join("trials.jsonl"))),
        ("L906", |dir| fs::write(dir.join("notes"), "").unwrap()),
    ];
    for (code, change) in changes {
        let copied = scratch.path().join(format!("copy-{code}"));
        copy_folder(&directory, &copied);
        change(&copied);
        let mut found = codes(&copied);
        let is_of_records = ["L106", "L902"].contains(code);
        assert_eq!(found.remove("L118"), is_of_records, "{code}");
        if *code == "L106" {
            // The report rests on the slices, too.
            found.retain(|code| !["L108", "L302", "L601"].contains(&code.as_str()));
        }
        assert_eq!(found, BTreeSet::from([(*code).to_owned()]));
        fs::remove_dir_all(&copied).unwrap();
    }
    let copied = scratch.path().join("copy");
    copy_folder(&directory, &copied);
    changed_records_pass_no_condition(&copied);
}

/// The experiment as it was given, and which variant is the baseline.
fn changed_records_pass_no_condition(directory: &Path) {
    let said = || {
        let path = directory.to_str().unwrap();
        let output = fwdlab(&["report", path, "--fail-on", "worse:50%"])
            .output()
            .unwrap();
        let said = text(&output);
        let is_contradiction = said.contains("the records contradict each other: ");
        assert!(
            !is_contradiction || output.status.code() == Some(1),
            "{said}"
        );
        is_contradiction.then_some(said)
    };
    assert_eq!(said(), None);
    let change = |name: &str, from: &str, to: &str| {
        let path = directory.join(name);
        let whole = fs::read_to_string(&path).unwrap();
        assert!(whole.contains(from), "{whole}");
        let readme = || fs::read(directory.join("README.md")).unwrap();
        let before = readme();
        fs::write(&path, whole.replacen(from, to, 1)).unwrap();
        let said = said().expect("it is a contradiction");
        assert!(said.contains("nothing was published of them"), "{said}");
        assert_eq!(readme(), before);
        fs::write(&path, whole).unwrap();
        said
    };
    let said = change("experiment.toml", "in a hurry", "at leisure");
    let expected =
        "block 1, attempt 1, is not as it was written; what differs: experiment.toml (L118)";
    assert!(said.contains(expected), "{said}");
    let baseline = "\"baseline\": \"l2_prepend-";
    let said = change(
        "resolved.json",
        &format!("{baseline}0"),
        &format!("{baseline}1"),
    );
    assert!(said.contains("(L207)"), "{said}");
}

/// Changes of a soak; the ordinary tests take a sample of them.
const CHANGES: usize = 2000;
const SAMPLE: usize = 25;

#[test]
fn whatever_is_changed_in_a_finished_run_is_found() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = measured(scratch.path());
    // Numbers that are written otherwise are the same observations.
    let observations = |path: &Path| -> Option<Vec<f64>> {
        let text = fs::read_to_string(path).ok()?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(|line| line.parse().ok()).collect()
    };
    storm("change", &cases(CHANGES, SAMPLE), |number| {
        let copied = scratch.path().join("copy");
        copy_folder(&directory, &copied);
        let change = change_a_file(&copied, &["README.md", "derived"], number as u64);
        let (changed, sound) = (copied.join(&change.file), directory.join(&change.file));
        let is_same = change.file.ends_with(".pps")
            && observations(&changed).is_some_and(|changed| Some(changed) == observations(&sound));
        let found = codes(&copied);
        assert_eq!(found.is_empty(), is_same, "{change}");
        fs::remove_dir_all(&copied).unwrap();
        format!("{} changed", change.file.split('/').next().unwrap())
    });
}

#[test]
fn the_exit_code_is_what_was_asked_for() {
    let directory = shared::data("lint/cut/run");
    let code = |arguments: &[&str]| {
        let output = fwdlab(&[&["lint", &directory], arguments].concat())
            .output()
            .unwrap();
        output.status.code()
    };
    assert_eq!(code(&[]), Some(1));
    assert_eq!(code(&["--fail-on", "note"]), Some(1));
    assert_eq!(code(&["--fail-on", "never"]), Some(0));
    assert_eq!(code(&["--skip", "L9"]), Some(0));
    assert_eq!(code(&["--only", "l902"]), Some(1));
    assert_eq!(code(&["--only", "L1,L2"]), Some(0));
    for form in ["--json", "--sarif", "--github"] {
        assert_eq!(code(&[form]), Some(1), "{form}");
    }
}

#[test]
fn what_is_known_does_not_count() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("archive/results/label");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("off.pps"), "10\n20\n30\n").unwrap();
    fs::write(folder.join("on.data"), "no table\n").unwrap();
    fs::write(folder.join("on.pps"), "").unwrap();
    let lint = |arguments: &[&str]| {
        let mut lint = fwdlab(&["lint", "archive", "--fail-on", "note"]);
        let lint = lint.args(arguments).current_dir(scratch.path());
        lint.output().unwrap()
    };
    let printed = lint(&["--json"]);
    assert_eq!(printed.status.code(), Some(1), "{}", text(&printed));
    let known: Vec<Value> = serde_json::from_slice(&printed.stdout).unwrap();
    fs::write(scratch.path().join("known.json"), &printed.stdout).unwrap();
    let baseline = ["--baseline", "known.json"];
    let again = lint(&baseline);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again));
    let said = String::from_utf8(again.stdout).unwrap();
    let all_known = format!("{} known from known.json, 0 of it gone", known.len());
    assert!(
        said.contains("nothing new found in 1 results directory"),
        "{said}"
    );
    assert!(said.contains(&all_known), "{said}");
    // Given twice, and a part of it beside, it is looked at once.
    let twice = lint(&["archive/results/label", "archive", "--json"]);
    assert_eq!(twice.stdout, printed.stdout);
    // One more, one less.
    fs::write(folder.join("on.pps"), "11\n21\n31\n").unwrap();
    fs::write(folder.join("default.pps"), "").unwrap();
    let changed = lint(&baseline);
    assert_eq!(changed.status.code(), Some(1), "{}", text(&changed));
    let said = String::from_utf8(changed.stdout).unwrap();
    let gone = format!("{} known from known.json, 1 of it gone", known.len() - 1);
    assert!(
        said.contains(&gone) && said.contains("default.pps"),
        "{said}"
    );
    // What programs read has all of them, and the sentence apart.
    let json = lint(&["--baseline", "known.json", "--json"]);
    let items: Vec<Value> = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(items.len(), known.len());
    assert!(String::from_utf8(json.stderr).unwrap().contains(&gone));
    // What is no such file is an argument that is wrong.
    for (name, holds) in [("missing.json", None), ("no.json", Some("no"))] {
        if let Some(holds) = holds {
            fs::write(scratch.path().join(name), holds).unwrap();
        }
        let refused = lint(&["--baseline", name]);
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
        assert!(text(&refused).contains(&format!("--baseline {name}: ")));
    }
}

#[test]
fn what_may_not_be_read_is_a_finding() {
    testkit::require_root!();
    let scratch = tempfile::tempdir().unwrap();
    let program = scratch.path().join("fwdlab");
    fs::copy(FWDLAB, &program).unwrap();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let results = scratch.path().join("archive/results/label");
    fs::create_dir_all(results.join("closed")).unwrap();
    fs::write(results.join("on.pps"), "10\n20\n30\n").unwrap();
    fs::write(results.join("off.pps"), "10\n20\n30\n").unwrap();
    for secret in ["off.pps", "closed"] {
        fs::set_permissions(results.join(secret), fs::Permissions::from_mode(0o000)).unwrap();
    }
    let output = Command::new(&program)
        .args(["lint", "archive", "--json"])
        .current_dir(scratch.path())
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let findings: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let found: Vec<(&str, &str)> = findings
        .iter()
        .map(|finding| {
            let path = finding["evidence"][0]["path"].as_str().unwrap();
            (finding["code"].as_str().unwrap(), path)
        })
        .collect();
    assert_eq!(
        found,
        [
            ("L901", "archive/results/label/closed"),
            ("L901", "archive/results/label/off.pps")
        ]
    );
}
