//! What a check fails on, and what programs and pull requests are told of a run.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod synthetic;

use fwdlab_archive::Finished;
use fwdlab_model::SCHEMA_VERSION;
use fwdlab_report::{Gate, GateResult, Report, render};
use proptest::prelude::*;
use serde_json::Value;
use synthetic::Synthetic;

/// A run with these true effects, in percent.
fn report(effects: &[(&str, f64)], noise_percent: f64) -> Report {
    let mut variants = vec![("as it was".to_owned(), 0.0)];
    variants.extend(effects.iter().map(|(label, of)| ((*label).to_owned(), *of)));
    let mut loaded = Synthetic {
        variants,
        block_noise_percent: noise_percent,
        round_noise_percent: noise_percent,
        ..Synthetic::default()
    }
    .loaded();
    loaded.finished = Some(Finished {
        schema: SCHEMA_VERSION,
        finished: "2026-11-21T10:00:00Z".to_owned(),
        accepted_blocks: (1..=8).collect(),
        given_up_blocks: Vec::new(),
    });
    Report::build(&loaded).unwrap()
}

/// The variants that a check fails on.
fn failing(gate: &str, report: &Report) -> Vec<String> {
    let result = gate.parse::<Gate>().unwrap().of_report(report);
    assert_eq!(result.failed, !result.failures.is_empty());
    result
        .failures
        .into_iter()
        .map(|failure| failure.subject.unwrap())
        .collect()
}

#[test]
fn what_is_shown_to_be_worse_fails_and_what_may_be_only_where_that_is_asked() {
    let clear = report(
        &[("slower", -6.0), ("faster", 6.0), ("the same", 0.0)],
        0.05,
    );
    assert_eq!(failing("worse", &clear), ["slower"]);
    assert_eq!(failing("maybe-worse", &clear), ["slower"]);
    assert_eq!(failing("different", &clear), ["slower", "faster"]);
    // Too noisy to show anything.
    let noisy = report(&[("slower", -0.5), ("faster", 0.5)], 30.0);
    assert!(failing("worse", &noisy).is_empty());
    assert!(failing("different", &noisy).is_empty());
    assert_eq!(failing("maybe-worse", &noisy), ["slower", "faster"]);
}

/// Eight changes would need more blocks than the four comparisons under each traffic do.
#[test]
fn changes_with_the_traffic_are_no_reason_to_fail() {
    let mut run = synthetic::by_traffic();
    run.variants.push(("a fourth".to_owned(), 3.0));
    for stratum in ["inet-mix", "inet6-mix"] {
        run.strata.push(stratum.parse().unwrap());
    }
    let mut loaded = run.loaded();
    loaded.finished = Some(Finished {
        schema: SCHEMA_VERSION,
        finished: "2026-11-21T10:00:00Z".to_owned(),
        accepted_blocks: (1..=8).collect(),
        given_up_blocks: Vec::new(),
    });
    let report = Report::build(&loaded).unwrap();
    assert_eq!(report.traffic_effects[0].changes.len(), 8);
    let failures = "worse".parse::<Gate>().unwrap().of_report(&report).failures;
    let is_of_an_effect =
        |of: &fwdlab_report::GateFailure| of.sentence.starts_with("different (slower)");
    assert!(failures.iter().all(is_of_an_effect), "{failures:?}");
    let summary: Value = serde_json::from_str(&render::summary(&report, &[]).unwrap()).unwrap();
    assert_eq!(summary["comparisons"][0]["family"], "inet");
    assert_eq!(summary["comparisons"][0]["traffic"], "few");
}

/// Some blocks show little, and a few nothing at all; neither is a reason to pass.
#[test]
fn a_run_that_could_show_nothing_passes_no_check() {
    let sentences = |synthetic: Synthetic, is_finished: bool| -> Vec<String> {
        let mut loaded = synthetic.loaded();
        loaded.finished = is_finished.then(|| Finished {
            schema: SCHEMA_VERSION,
            finished: "2026-11-21T10:00:00Z".to_owned(),
            accepted_blocks: (1..=3).collect(),
            given_up_blocks: (4..=8).collect(),
        });
        let report = Report::build(&loaded).unwrap();
        let of = |gate: &str| gate.parse::<Gate>().unwrap().of_report(&report);
        let failures = of("worse").failures;
        assert_eq!(of("maybe-worse").failures, failures);
        assert_eq!(of("different").failures, failures);
        failures
            .into_iter()
            .map(|failure| failure.sentence)
            .collect()
    };
    let of_blocks = |measured_blocks| Synthetic {
        measured_blocks,
        ..Synthetic::default()
    };
    assert_eq!(
        sentences(of_blocks(3), false),
        ["the run is not finished: 3 of 8 blocks were measured; `fwdlab run` goes on from there"]
    );
    assert_eq!(
        sentences(of_blocks(3), true),
        [
            "only 3 of 8 blocks were measured; the others stayed invalid, or their records are missing"
        ]
    );
    let short = Synthetic {
        planned_blocks: 4,
        ..of_blocks(4)
    };
    let failures = sentences(short, true);
    assert!(!failures.is_empty());
    for failure in failures {
        assert_eq!(failure, "need >= 6 blocks for a 95 % interval, have 4");
    }
}

/// A run that ended early has no records of its last blocks, and misses none; one whose records were cut does.
#[test]
fn records_that_a_finished_run_had_are_missed() {
    let missing = |accepted_blocks: Vec<u32>| {
        let mut loaded = Synthetic {
            measured_blocks: 6,
            ..Synthetic::default()
        }
        .loaded();
        loaded.finished = Some(Finished {
            schema: SCHEMA_VERSION,
            finished: "2026-11-21T10:00:00Z".to_owned(),
            accepted_blocks,
            given_up_blocks: Vec::new(),
        });
        let warnings = Report::build(&loaded).unwrap().warnings;
        let warning = warnings.into_iter().find(|warning| warning.code == "W224");
        warning.map(|warning| warning.text)
    };
    assert_eq!(missing((1..=6).collect()), None);
    assert_eq!(
        missing((1..=8).collect()).unwrap(),
        "the run is finished, and trials.jsonl has no record of block 7, 8"
    );
}

/// A variant that forwards nothing in one block of eight is not judged by the other seven alone.
#[test]
fn blocks_in_which_nothing_was_forwarded_count() {
    let mut loaded = Synthetic {
        variants: vec![("as it was".to_owned(), 0.0), ("stops".to_owned(), 0.0)],
        block_noise_percent: 0.02,
        round_noise_percent: 0.02,
        ..Synthetic::default()
    }
    .loaded();
    let silent = loaded.resolved.variants[1].name.clone();
    for attempt in &mut loaded.attempts[6..] {
        for slice in &mut attempt.slices {
            if slice.variant == silent {
                slice.forwarded_frames = 0;
                slice.undisturbed_frames = 0;
            }
        }
    }
    let report = Report::build(&loaded).unwrap();
    let row = &report.comparisons[0].rows[1];
    let effect = row.effect.as_ref().unwrap();
    assert_eq!(effect.blocks.len(), 8);
    assert!(effect.interval.as_ref().unwrap().low_percent < -99.0);
    assert_eq!(row.verdict.as_ref().unwrap().words, "undecided");
    assert_eq!(failing("maybe-worse", &report), ["stops"]);
    let warned = report
        .warnings
        .iter()
        .filter(|warning| warning.code == "W223");
    assert_eq!(warned.count(), 2);
}

#[test]
fn of_nothing_no_check_passes() {
    let nothing = Report::build(
        &Synthetic {
            measured_blocks: 0,
            ..Synthetic::default()
        }
        .loaded(),
    )
    .unwrap();
    for gate in ["worse", "different", "maybe-worse:2%"] {
        let result = gate.parse::<Gate>().unwrap().of_report(&nothing);
        assert!(result.failed, "{gate}");
    }
}

#[test]
fn a_family_and_a_title_tell_which_comparison_fails() {
    let mut run = Synthetic {
        titles: vec![Some("first".to_owned()), Some("second".to_owned())],
        ..Synthetic::default()
    };
    run.variants.truncate(2);
    let report = Report::build(&run.loaded()).unwrap();
    assert_eq!(
        failing("worse", &report),
        [
            "nftables, 10 stateless rules (first)",
            "nftables, 10 stateless rules (second)"
        ]
    );
}

#[test]
fn programs_get_the_verdicts_and_what_became_of_the_conditions() {
    let report = report(&[("slower", -6.0), ("the same", 0.0)], 0.05);
    let conditions = ["worse", "different"].map(|gate| held(gate, &report));
    let summary: Value =
        serde_json::from_str(&render::summary(&report, &conditions).unwrap()).unwrap();
    assert_eq!(summary["schema"], fwdlab_report::SUMMARY_SCHEMA_VERSION);
    assert_eq!(summary["is_finished"], true);
    let variants = summary["comparisons"][0]["variants"].as_array().unwrap();
    let words: Vec<Option<&str>> = variants.iter().map(|of| of["verdict"].as_str()).collect();
    assert_eq!(words, [None, Some("different"), Some("equivalent")]);
    let row = &report.comparisons[0].rows[1];
    let effect = row.effect.as_ref().unwrap();
    assert_eq!(variants[1]["estimate_percent"], effect.estimate_percent);
    assert_eq!(
        variants[1]["low_percent"],
        effect.interval.unwrap().low_percent
    );
    assert_eq!(summary["conditions"][0]["condition"], "worse");
    assert_eq!(summary["conditions"][0]["failed"], true);
    assert_eq!(summary["conditions"][0]["failures"][0]["subject"], "slower");
}

#[test]
fn a_pull_request_is_told_what_fails_and_names_in_it_do_nothing() {
    let hostile = "<img src=x onerror=alert(1)> | `x` **b** \u{202e}";
    let report = report(&[(hostile, -6.0), ("the same", 0.0)], 0.05);
    let conditions = ["worse"].map(|gate| held(gate, &report));
    let comment = render::comment(&report, &conditions);
    for expected in [
        "**Fails on `worse`**: \\<img",
        "| the same | ",
        "| **different (slower)** |",
        "| baseline |",
        "<details><summary>How it was measured",
    ] {
        assert!(
            comment.contains(expected),
            "{expected:?} is not in {comment}"
        );
    }
    assert!(!comment.replace("\\<img", "").contains("<img"), "{comment}");
    assert!(!comment.contains('\u{202e}'), "{comment}");
    let rows = comment.lines().filter(|line| line.starts_with("| "));
    for row in rows {
        let bars = row.replace("\\|", "").matches('|').count();
        assert_eq!(bars, 6, "{row}");
    }
}

#[test]
fn a_pull_request_is_told_what_was_passed() {
    let report = report(&[("the same", 0.0)], 0.05);
    let comment = render::comment(&report, &[held("worse", &report)]);
    assert!(comment.contains("- Passes `worse`\n"), "{comment}");
}

#[test]
fn an_outcome_beside_a_control_that_is_too_wide_says_so_once() {
    let noisy = report(&[("the same", 0.0)], 20.0);
    let control = noisy.comparisons[0].control.as_ref().unwrap();
    assert!(control.is_too_wide && control.passed == Some(true));
    let half_width = control
        .row
        .effect
        .as_ref()
        .unwrap()
        .half_width_percent()
        .unwrap();
    let caution = format!(
        "the A/A control is too wide to show anything (±{half_width:.1} %, against a threshold of 1 %)"
    );
    let results = ["worse", "different"].map(|gate| held(gate, &noisy));
    assert_eq!(fwdlab_report::cautions(&results), [&caution]);
    let comment = render::comment(&noisy, &results);
    assert_eq!(
        comment.matches(&format!("- **Note**: {caution}\n")).count(),
        1,
        "{comment}"
    );
    let summary = render::summary(&noisy, &results).unwrap();
    assert!(summary.contains(&caution), "{summary}");

    let quiet = report(&[("the same", 0.0)], 0.05);
    assert!(held("worse", &quiet).cautions.is_empty());
}

fn held(gate: &str, report: &Report) -> GateResult {
    gate.parse::<Gate>().unwrap().of_report(report)
}

#[test]
fn conditions_are_words_with_a_change_that_verdicts_know() {
    for (text, threshold) in [
        ("worse", None),
        ("worse:1%", Some(1.0)),
        ("maybe-worse:0.5", Some(0.5)),
        ("different:50 %", Some(50.0)),
    ] {
        let gate: Gate = text.parse().unwrap();
        assert_eq!(gate.threshold_percent(), threshold, "{text}");
        assert_eq!(gate.to_string().parse::<Gate>().unwrap(), gate);
    }
    for (text, expected) in [
        ("slower:1%", "none of worse, maybe-worse, different"),
        ("worse:", "no change in percent from 0.001 to 50"),
        ("worse:0%", "no change in percent"),
        ("worse:nan", "no change in percent"),
        ("worse:-1%", "no change in percent"),
        ("", "none of worse"),
    ] {
        let error = text.parse::<Gate>().unwrap_err();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_condition_or_refused(text in "(worse|maybe-worse|different|[a-z]{0,9})(:[-0-9.%e ]{0,8})?") {
        if let Ok(gate) = text.parse::<Gate>() {
            prop_assert_eq!(gate.to_string().parse::<Gate>().unwrap(), gate);
        }
    }
}
