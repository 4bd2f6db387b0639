//! What is offered is the generator's under overload, and the outcome where generator and DUT take turns:
//! said of the one, and not of the other.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod shared;

use std::fs;
use std::path::Path;

use serde_json::Value;
use shared::{finish, run_command};
use testkit::text;

/// Runs one of the tests' own experiments to its end; its README and its comparison in `report.json`.
fn measured(experiment: &str, results: &Path) -> (String, Value) {
    let run = run_command(experiment, results).spawn().unwrap();
    let output = finish(run);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let directories = shared::directories(results, experiment);
    let directory = &directories[0];
    let readme = fs::read_to_string(directory.join("README.md")).unwrap();
    let report = fs::read(directory.join("derived/report.json")).unwrap();
    (readme, serde_json::from_slice(&report).unwrap())
}

#[test]
fn reports_say_what_was_offered_under_overload() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    if std::thread::available_parallelism().unwrap().get() < 2 {
        testkit::skip!("overload needs two CPUs");
    }
    let scratch = tempfile::tempdir().unwrap();
    let (readme, report) = measured("overload", scratch.path());
    let rows = report["comparisons"][0]["offered_load"].as_array().unwrap();
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!(
        row["variant"],
        report["comparisons"][0]["rows"][1]["variant"]
    );
    // Three blocks reach 60 %: a shift with its interval, and a line through them.
    for number in [
        &row["shift_percent"],
        &row["shift_interval"]["low_percent"],
        &row["sensitivity"]["adjusted_percent"],
        &row["sensitivity"]["slope"]["estimate"],
        &row["sensitivity"]["baseline_slope"]["p"],
        &row["sensitivity"]["one_slope_p"],
    ] {
        assert!(number.is_f64(), "{row}");
    }
    let line = format!(": {}", row["sentence"].as_str().unwrap());
    assert!(
        readme.contains("## Offered load") && readme.contains(&line),
        "{readme}"
    );
    let warnings = report["warnings"].as_array().unwrap();
    let is_warned = warnings.iter().any(|warning| warning["code"] == "W217");
    assert_eq!(row["differs"], is_warned, "{row} {warnings:?}");

    let (readme, report) = measured("smallest", scratch.path());
    assert!(report["comparisons"][0]["offered_load"].is_null());
    assert!(!readme.contains("## Offered load"), "{readme}");
}

#[test]
fn a_load_that_cannot_be_offered_ends_the_run_and_says_what_works() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let _machine = testkit::own_the_machine();
    let scratch = tempfile::tempdir().unwrap();
    // No CPU sends so many frames.
    let short = fs::read_to_string(shared::data("smallest.toml")).unwrap();
    let paced = short
        .replace("../../../../labs", &format!("{}/labs", shared::REPOSITORY))
        .replace("[traffic]\n", "[traffic]\nload = { pps = 100000000 }\n");
    fs::write(scratch.path().join("paced.toml"), paced).unwrap();
    let run = || {
        let mut command = shared::fwdlab(&["run", "paced.toml"]);
        let output = command.current_dir(scratch.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        text(&output)
    };
    let said = run();
    assert!(said.contains("ended after the first 3 attempts"), "{said}");
    assert!(
        said.contains("offered ") && said.contains("of the intended load"),
        "{said}"
    );
    assert!(said.contains("load = \"self-clocked\""), "{said}");
    assert!(!said.contains("block 2"), "{said}");
    // Nothing of it is gone on with.
    assert!(!run().contains("going on in"));
    assert_eq!(
        shared::directories(&scratch.path().join("results"), "paced").len(),
        2
    );
}
