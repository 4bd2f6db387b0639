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
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_ready_experiment_can_be_planned_and_takes_about_a_minute() {
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
