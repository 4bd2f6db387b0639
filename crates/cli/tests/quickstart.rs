//! The main job, as the README has it: from the experiment file to a published result.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod shared;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use shared::REPOSITORY;
use testkit::text;

fn fwdlab(arguments: &[&str]) -> Output {
    let mut command = shared::fwdlab(arguments);
    command.current_dir(REPOSITORY).output().unwrap()
}

#[test]
fn the_quickstart_publishes_its_result() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let scratch = tempfile::tempdir().unwrap();
    let results = scratch.path().to_str().unwrap();
    let run = [
        "run",
        "experiments/quickstart.toml",
        "--results",
        results,
        "--label",
        "test",
        "--seed",
        "1",
    ];
    let output = fwdlab(&run);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let directory = scratch.path().join("quickstart/test");

    // The terminal: a verdict in words with pps and ns/packet, and the ministat block.
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    for expected in [
        "nftables, conntrack",
        "different (slower): -",
        "different (faster): +",
        "pps",
        "ns/packet",
    ] {
        assert!(stdout.contains(expected), "{expected:?} is not in {stdout}");
    }
    assert!(
        stdout.contains("    N           Min           Max"),
        "{stdout}"
    );

    // The README: as the published results of this field have it.
    let readme = fs::read_to_string(directory.join("README.md")).unwrap();
    let question = "# Impact of a packet filter on this machine's IPv4 forwarding\n";
    assert!(readme.starts_with(question), "{readme}");
    for expected in [
        "2000 flows of smallest UDP packets",
        "self-clocked",
        "## ministat",
        "Unit: packets-per-second forwarded",
        "(derived/effects.svg)",
        "(derived/trials.svg)",
        "(derived/distributions.svg)",
        "## What this lab is not",
        "fwdlab run experiments/quickstart.toml --seed 1 --new",
    ] {
        assert!(readme.contains(expected), "{expected:?} is not in {readme}");
    }
    assert_block_is_what_ministat_prints(&readme, &directory);

    assert_profiles_explain(&directory, &readme);

    // The same records make the same bytes.
    let before = published(&directory);
    let again = fwdlab(&["report", directory.to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again));
    assert_eq!(String::from_utf8_lossy(&again.stdout), stdout);
    assert_eq!(before, published(&directory));

    assert_analyze_and_compare_judge_alike(&directory);
    assert_a_check_fails_on_the_packet_filter(&directory);
    assert_a_plan_rests_on_it(results);

    // A finished run never changes.
    let refused = fwdlab(&run);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(
        text(&refused).contains("finished and never changes"),
        "{}",
        text(&refused)
    );
}

/// Profiles were taken of every variant, and where enough of them show the load, the packet filter's own functions are
/// those that differ.
fn assert_profiles_explain(directory: &Path, readme: &str) {
    let report = fs::read(directory.join("derived/report.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert!(
        readme.contains("## Why") && readme.contains("](derived/flame-no-packet-filter-inet.svg)")
    );
    let stacks = fs::read_dir(directory.join("profiles")).unwrap().count();
    assert!(stacks >= 40, "{stacks}");
    for found in report["profiles"]["differences"].as_array().unwrap() {
        let is_filter = found["variant"].as_str().unwrap().starts_with("nftables");
        if is_filter && found["blocks"].as_u64() >= found["blocks_needed"].as_u64() {
            let first = found["frames"][0]["frame"].as_str().unwrap_or_default();
            assert!(
                first.starts_with("nft_")
                    || first.starts_with("nf_")
                    || first.contains("conntrack"),
                "{found}"
            );
        }
        let picture = directory
            .join("derived")
            .join(found["flame_graph"].as_str().unwrap());
        assert!(fs::read_to_string(picture).unwrap().starts_with("<?xml"));
    }
}

/// The block in the README is what `fwdlab ministat` prints for the `.pps` files beside it, but for
/// the names of the datasets.
fn assert_block_is_what_ministat_prints(readme: &str, directory: &Path) {
    let files: Vec<PathBuf> = [
        "no-packet-filter",
        "nftables-10-stateless-rules",
        "nftables-conntrack",
        "strict-reverse-path-filter",
        "1000-routes",
        "xdp-fib-forwarding",
    ]
    .iter()
    .map(|name| directory.join(format!("{name}.inet.pps")))
    .collect();
    let mut arguments = vec!["ministat", "-s"];
    arguments.extend(files.iter().map(|file| file.to_str().unwrap()));
    let output = fwdlab(&arguments);
    assert!(output.status.success(), "{}", text(&output));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let (names, block) = printed.split_at(printed.find("+---").unwrap());
    assert_eq!(names.lines().count(), files.len());
    assert!(readme.contains(block), "{block}\nis not in\n{readme}");
}

/// A packet filter costs far more than a percent on any machine: a check says so by its exit code, to people, to
/// programs and to a pull request.
fn assert_a_check_fails_on_the_packet_filter(directory: &Path) {
    let path = directory.to_str().unwrap();
    let output = fwdlab(&[
        "report",
        path,
        "--fail-on",
        "worse:1%,worse:49%",
        "--summary",
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let expected = "fails on worse:1%: nftables, conntrack: different (slower): -";
    assert!(stderr.contains(expected), "{stderr}");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["conditions"][0]["failed"], true, "{summary}");
    assert_eq!(summary["conditions"][1]["condition"], "worse:49%");

    let output = fwdlab(&["report", path, "--markdown", "--fail-on", "worse"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let comment = String::from_utf8_lossy(&output.stdout).into_owned();
    for expected in [
        "- **Fails on `worse`**: nftables, conntrack: different",
        "| no packet filter | ",
        // What its profiles say: how much differs in them hangs on how quiet the machine is.
        "- **nftables, conntrack**: ",
    ] {
        assert!(
            comment.contains(expected),
            "{expected:?} is not in {comment}"
        );
    }
}

/// What is asked of the records again, or of their `.pps` files, is judged as the report has it: by
/// the blocks.
fn assert_analyze_and_compare_judge_alike(directory: &Path) {
    let json = |arguments: &[&str]| -> Value {
        let output = fwdlab(arguments);
        assert!(output.status.success(), "{}", text(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let report = fs::read(directory.join("derived/report.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let path = directory.to_str().unwrap();
    assert_eq!(json(&["analyze", path, "--json"]), report);
    let against = json(&[
        "analyze",
        path,
        "--json",
        "--baseline",
        "nftables, conntrack",
    ]);
    let rows = against["comparisons"][0]["rows"].as_array().unwrap();
    let names: Vec<_> = rows
        .iter()
        .map(|row| row["variant"].as_str().unwrap())
        .collect();
    let others = [
        "no-packet-filter",
        "nftables-10-stateless-rules",
        "strict-reverse-path-filter",
        "1000-routes",
        "xdp-fib-forwarding",
    ];
    assert_eq!(names[0], "nftables-conntrack");
    assert_eq!(names[1..], others);

    let file = |name: &str| format!("{path}/{name}.inet.pps");
    let (none, conntrack) = (file("no-packet-filter"), file("nftables-conntrack"));
    let compared = json(&["compare", "--json", &none, &conntrack]);
    assert_eq!(compared["basis"], "blocks");
    let row = &compared["groups"][0]["rows"][1];
    let rows = report["comparisons"][0]["rows"].as_array().unwrap();
    let reported = rows
        .iter()
        .find(|row| row["variant"] == "nftables-conntrack")
        .unwrap();
    assert_eq!(row["effect"]["interval"], reported["effect"]["interval"]);
    assert_eq!(row["label"], "nftables, conntrack");

    let twice = fwdlab(&["compare", path, path]);
    assert_eq!(twice.status.code(), Some(2), "{}", text(&twice));
}

/// The next plan knows how much this lab scatters, and what each method would take.
fn assert_a_plan_rests_on_it(results: &str) {
    let plan = |arguments: &[&str]| {
        let all = ["plan", "experiments/quickstart.toml", "--results", results];
        let output = fwdlab(&[&all, arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let shown = plan(&["--methods"]);
    assert!(shown.contains("(quickstart/test)"), "{shown}");
    for row in [
        "  signed-rank (the verdicts') ",
        "  Dunnett ",
        "  A/A control at 1 % ",
    ] {
        assert!(shown.contains(row), "{row:?} is not in {shown}");
    }
    let json: Value = serde_json::from_str(&plan(&["--methods", "--json"])).unwrap();
    let reckoned = &json["detectable"][0]["reckoned"];
    assert_eq!(reckoned["methods"].as_array().unwrap().len(), 11);
    let smallest = &reckoned["methods"][0]["smallest_percent"];
    assert!(smallest.is_f64() && smallest == &reckoned["smallest_effect_percent"]);
    let json: Value = serde_json::from_str(&plan(&["--json"])).unwrap();
    assert!(json["detectable"][0]["reckoned"]["methods"].is_null());
}

/// Everything that follows from the records, by path.
fn published(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let derived = fs::read_dir(directory.join("derived")).unwrap();
    derived
        .map(|entry| entry.unwrap().path())
        .chain([directory.join("README.md")])
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect()
}
