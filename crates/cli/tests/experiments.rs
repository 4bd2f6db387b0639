//! The experiments that users are given: each can be planned, and none takes long.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// What docs/experiments.md promises: about a minute.
const DURATION_MAX_S: f64 = 90.0;

/// Blocks from which an interval at 95 % exists.
const BLOCKS_MIN: u64 = 6;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn ready() -> Vec<PathBuf> {
    let entries = fs::read_dir(repository().join("experiments")).unwrap();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
}

/// What the program says: its exit code, and both of its outputs.
fn said(arguments: &[&str]) -> (Option<i32>, String, String) {
    let scratch = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_fwdlab"))
        .args(arguments)
        .args([Path::new("--results"), scratch.path()])
        .current_dir(repository())
        .env("XDG_STATE_HOME", scratch.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn the_first_experiment_of_freebsd_hosts_can_be_planned_with_either_tester() {
    for lab in ["freebsd-hosts", "freebsd-pkt-gen"] {
        let (experiment, lab) = (
            "experiments/freebsd/redirect.toml",
            format!("labs/{lab}.toml"),
        );
        let (code, plan, stderr) = said(&["plan", experiment, "--lab", &lab, "--json"]);
        assert_eq!(code, Some(0), "{stderr}");
        let plan: Value = serde_json::from_str(&plan).unwrap();
        assert!(plan["rebooting_factors"].is_null(), "{plan}");
        // pkt-gen reports once a second.
        assert!(plan["design"]["slice_ms"].as_u64() >= Some(3000), "{plan}");
    }
}

/// The published experiments, each with the lab that it was published from.
const SEEDS: [(&str, &str); 5] = [
    ("hyperthreading", "aoostar-x710"),
    ("tx_reclaim_thresh", "atom-c2758-82599"),
    ("simple_tx-prefetch", "atom-c2758-82599"),
    ("harvest-mask", "aoostar-x710"),
    ("l2-prepend", "atom-c2758-t540"),
];

/// Whether this machine's cores have a second hardware thread.
fn has_second_threads() -> bool {
    fs::read_to_string("/sys/devices/system/cpu/smt/active").is_ok_and(|text| text.trim() == "1")
}

#[test]
fn published_experiments_can_be_planned_on_the_router_and_on_their_hosts() {
    for (experiment, host) in SEEDS {
        let experiment = format!("experiments/seeds/{experiment}.toml");
        for lab in ["router", host] {
            let lab = format!("labs/{lab}.toml");
            let (code, plan, stderr) = said(&["plan", &experiment, "--lab", &lab, "--json"]);
            let is_here = lab == "labs/router.toml";
            if is_here && experiment.contains("hyperthreading") && !has_second_threads() {
                assert_eq!(code, Some(1), "{stderr}");
                let reason = "no core that the router may use has a second hardware thread";
                assert!(stderr.contains(reason), "{stderr}");
                continue;
            }
            assert_eq!((code, stderr.as_str()), (Some(0), ""), "{experiment} {lab}");
            let plan: Value = serde_json::from_str(&plan).unwrap();
            assert_eq!(plan["duration_s"].is_null(), !is_here, "{experiment} {lab}");
            let reboots = plan["rebooting_factors"].as_array().map_or(0, Vec::len);
            assert_eq!(
                plan["design"]["rounds"] == 1,
                reboots > 0,
                "{experiment} {lab}"
            );
        }
    }
}

#[test]
fn what_runs_on_this_machines_kernel_can_be_planned_on_linux_hosts() {
    for experiment in ready() {
        let experiment = experiment.to_str().unwrap();
        let (code, _, stderr) = said(&["plan", experiment, "--lab", "labs/linux-hosts.toml"]);
        if experiment.ends_with("quickstart.toml") {
            // It is quick because tester and DUT take turns on one core.
            assert_eq!(code, Some(2), "{stderr}");
            assert!(stderr.contains("cannot take turns on one core"), "{stderr}");
            continue;
        }
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{experiment}");
    }
}

#[test]
fn a_plan_promises_nothing_of_hosts_that_it_does_not_know() {
    let (code, plan, stderr) = said(&[
        "plan",
        "experiments/seeds/tx_reclaim_thresh.toml",
        "--lab",
        "labs/atom-c2758-82599.toml",
        "--seed",
        "7",
    ]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!(plan);

    let lab = "labs/aoostar-x710.toml";
    let (_, plan, _) = said(&["plan", "experiments/seeds/harvest-mask.toml", "--lab", lab]);
    let words: Vec<&str> = plan.split_whitespace().collect();
    let plan = words.join(" ");
    assert!(!plan.contains("reboot"), "{plan}");
    assert!(
        plan.contains("Time not known, because nothing tells"),
        "{plan}"
    );
    assert!(plan.contains("8 blocks of 10 rounds"), "{plan}");
}

#[test]
fn what_cannot_be_driven_is_refused_before_anything_is_done() {
    let experiment = "experiments/seeds/l2-prepend.toml";
    let lab = "labs/atom-c2758-t540.toml";
    let expected = "error: lab atom-c2758-t540: it names no hosts and can only be planned; `fwdlab plan` shows \
                    what would be measured there, [dut] and [tester] in its file name hosts (docs/labs.md), and \
                    `--lab labs/router.toml` of fwdlab's repository runs the same experiment on the reference router\n";
    let answer = said(&["run", experiment, "--lab", lab]);
    assert_eq!(answer, (Some(2), String::new(), expected.to_owned()));
    let answer = said(&["doctor", lab]);
    assert_eq!(answer, (Some(2), String::new(), expected.to_owned()));
}

#[test]
fn every_ready_experiment_can_be_planned_and_takes_about_a_minute() {
    testkit::require_tool!("nft");
    let scratch = tempfile::tempdir().unwrap();
    let files = ready();
    assert!(!files.is_empty());
    for file in files {
        let output = Command::new(env!("CARGO_BIN_EXE_fwdlab"))
            .args(["plan", "--json", "--results"])
            .args([scratch.path(), &file])
            .env("XDG_STATE_HOME", scratch.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let name = file.display();
        // Not even a warning: a level that no variant has, or two variants alike.
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (output.status.code(), stderr.as_ref()),
            (Some(0), ""),
            "{name}"
        );
        let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
        let duration_s = plan["duration_s"].as_f64().unwrap();
        assert!(duration_s <= DURATION_MAX_S, "{name}: {duration_s} s");
        assert!(
            plan["design"]["blocks"].as_u64().unwrap() >= BLOCKS_MIN,
            "{name}"
        );
        let schema = "#:schema ../docs/schema/experiment.schema.json\n";
        assert!(
            fs::read_to_string(&file).unwrap().starts_with(schema),
            "{name}"
        );
    }
}

/// The addresses that a ruleset drops, by a rule each or by a set.
fn blocked(ruleset: &str) -> (Vec<String>, Vec<String>) {
    let path = repository().join("labs/rulesets").join(ruleset);
    let text = fs::read_to_string(path).unwrap();
    let lines = || text.lines().map(str::trim);
    let by_rule = lines().filter_map(|line| {
        let address = line.strip_prefix("ip saddr ")?.strip_suffix(" drop")?;
        (!address.starts_with('@')).then(|| address.to_owned())
    });
    let is_element = |word: &&str| word.starts_with("10.");
    let in_lines = lines().filter(|line| line.starts_with("10."));
    let by_set = in_lines.flat_map(|line| line.split([',', ' ']).filter(is_element));
    (by_rule.collect(), by_set.map(str::to_owned).collect())
}

#[test]
fn blocklists_hold_what_their_names_say() {
    let distinct = |addresses: Vec<String>| addresses.into_iter().collect::<BTreeSet<_>>();
    for count in [10, 100, 1000] {
        let (rules, _) = blocked(&format!("blocklist-{count}-rules.nft"));
        assert_eq!((rules.len(), distinct(rules).len()), (count, count));
    }
    let (_, set) = blocked("blocklist-set.nft");
    assert_eq!(
        distinct(set),
        distinct(blocked("blocklist-1000-rules.nft").0)
    );
}
