//! Profiles of whole runs: what differs is found, what does not differ is seldom said to.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(
    clippy::print_stdout,
    reason = "a storm tells what it found, as its figures are to be noted"
)]

mod shared;

use std::fs;

use serde_json::Value;
use shared::{data, fwdlab, storm};
use testkit::{cases, text};

/// Runs of the whole storm, each with a pair of alike variants and a pair with a planted difference.
const PAIRS: usize = 100;
/// Runs of the ordinary tests: enough to see that it works, not to see how often.
const SAMPLE: usize = 2;

/// What the profiles of a run say of its two pairs.
struct Found {
    /// Functions that are said to differ between the baseline and itself.
    alike: Vec<String>,
    /// Functions that are said to differ between the baseline and the variant.
    planted: Vec<String>,
    /// What the variant's effect is, in percent of the rate.
    effect_percent: f64,
}

impl Found {
    /// Whether a function that the variant runs and the baseline does not is among those that differ.
    fn has_planted(&self) -> bool {
        let is_of_chain =
            |frame: &String| frame.starts_with("nft_") || frame.starts_with("nf_hook");
        self.planted.iter().any(is_of_chain)
    }
}

fn run(case: usize) -> Option<Found> {
    let scratch = tempfile::tempdir().unwrap();
    let output = fwdlab(&[
        "run",
        &data("planted.toml"),
        "--quiet",
        "--json",
        "--results",
    ])
    .arg(scratch.path())
    .args(["--label", "pair", "--seed", &case.to_string()])
    .output()
    .unwrap();
    // Blocks that stayed invalid are left out, as anywhere.
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{}",
        text(&output)
    );
    let report = fs::read(scratch.path().join("planted/pair/derived/report.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let differences = report["profiles"]["differences"].as_array()?;
    let frames = |name: &str| -> Option<Vec<String>> {
        let mut differences = differences.iter();
        let found = differences.find(|found| found["variant"] == name)?;
        (found["blocks"].as_u64()? >= found["blocks_needed"].as_u64()?).then(|| {
            let frames = found["frames"].as_array().unwrap().iter();
            frames
                .map(|frame| frame["frame"].as_str().unwrap().to_owned())
                .collect()
        })
    };
    Some(Found {
        alike: frames("packet-filter-none-again")?,
        planted: frames("packet-filter-empty-chain")?,
        effect_percent: report["comparisons"][0]["rows"][1]["effect"]["estimate_percent"]
            .as_f64()?,
    })
}

#[test]
fn a_planted_function_is_found_and_alike_variants_seldom_differ() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let cases = cases(PAIRS, SAMPLE);
    let (mut judged, mut alike, mut planted) = (0_usize, 0_usize, 0_usize);
    let mut effects = Vec::new();
    storm("pair", &cases, |case| {
        let Some(found) = run(case) else {
            return "too few blocks with profiles that show the load".to_owned();
        };
        judged += 1;
        alike += usize::from(!found.alike.is_empty());
        planted += usize::from(found.has_planted());
        effects.push(found.effect_percent);
        match (found.alike.as_slice(), found.has_planted()) {
            ([], true) => "found what was planted, and nothing else".to_owned(),
            ([], false) => "missed what was planted".to_owned(),
            (frames, is_found) => {
                println!("alike variants differ in {}", frames.join(", "));
                format!("alike variants differ, what was planted found: {is_found}")
            }
        }
    });
    effects.sort_by(f64::total_cmp);
    let median = effects.get(effects.len() / 2);
    println!(
        "{judged} pairs judged: alike variants differ in {alike}, what was planted is found in {planted}; \
         its effect on the rate is {median:?} %"
    );
    // Of two pairs nothing can be asked but that they were not both wrong in both ways.
    if judged >= 20 {
        assert!(alike * 10 <= judged, "{alike} of {judged}");
        assert!(planted * 10 >= judged * 8, "{planted} of {judged}");
    }
}

#[test]
fn the_lookups_that_slow_down_an_xdp_program_are_named() {
    testkit::require_root!();
    let scratch = tempfile::tempdir().unwrap();
    let output = fwdlab(&["run", &data("versions.toml"), "--quiet", "--results"])
        .arg(scratch.path())
        .args(["--label", "why"])
        .output()
        .unwrap();
    let said = text(&output);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
    let directory = scratch.path().join("versions/why");
    let report = fs::read(directory.join("derived/report.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let comparisons = report["comparisons"].as_array().unwrap();
    assert_eq!(comparisons.len(), 2);
    for comparison in comparisons {
        let v2 = &comparison["rows"][1];
        assert_eq!(v2["variant"], "dataplane-v2");
        assert_eq!(v2["verdict"]["direction"], "slower", "{v2}");
    }
    let differences = report["profiles"]["differences"].as_array().unwrap();
    assert!(!differences.is_empty(), "{}", report["profiles"]);
    for found in differences {
        // Where other work kept the machine busy, profiles were left out.
        if found["blocks"].as_u64() < found["blocks_needed"].as_u64() {
            println!(
                "too few blocks with profiles that show the load: {}",
                found["sentence"]
            );
            continue;
        }
        let costs = |name: &str| {
            let frames = found["frames"].as_array().unwrap();
            let frame = frames.iter().find(|frame| frame["frame"] == name);
            let frame = frame.unwrap_or_else(|| panic!("{name}: {found}"));
            ["baseline_ns", "variant_ns"].map(|cost| frame["itself"][cost].as_f64().unwrap())
        };
        // Both versions' loop, whose tags differ, and the helper that it calls.
        for name in ["bpf_prog_is_known", "__htab_map_lookup_elem"] {
            let [v1, v2] = costs(name);
            assert!(v2 > v1, "{name}: {found}");
        }
        let sentence = found["sentence"].as_str().unwrap();
        assert!(sentence.contains("__htab_map_lookup_elem"), "{sentence}");
    }
}
