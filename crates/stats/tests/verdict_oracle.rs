//! Every statistic behind the verdicts against the table that `oracle/verdicts.py` wrote.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod oracle;

use fwdlab_stats::{
    ShiftTest as _, SignedRank, StudentSample, holm_adjusted, sign_flip_p, variance_components,
};
use oracle::{assert_relative, cases, number, numbers};
use serde_json::Value;

const TABLES: &str = include_str!("../oracle/verdicts.json");

/// p-values to 1e-12 relative; estimates and interval ends to 1e-15 relative (one rounding);
/// attained levels to 1e-12.
#[track_caller]
fn check_signed_rank(case: &Value) {
    let effects = SignedRank::new(&numbers(&case["values"])).unwrap();
    for test in case["tests"].as_array().unwrap() {
        let shift = number(&test["shift"]);
        assert_relative(effects.p_greater(shift), number(&test["greater"]), 1e-12);
        assert_relative(effects.p_less(shift), number(&test["less"]), 1e-12);
        assert_relative(
            effects.p_two_sided(shift),
            number(&test["two_sided"]),
            1e-12,
        );
    }
    assert_relative(effects.estimate(), number(&case["estimate"]), 1e-15);
    for level in case["intervals"].as_array().unwrap() {
        let interval = effects.interval(number(&level["confidence"])).unwrap();
        if level["interval"].is_null() {
            assert_eq!(interval, None);
            continue;
        }
        let interval = interval.unwrap();
        let [lower, upper, attained] = numbers(&level["interval"])[..] else {
            panic!("{level}")
        };
        assert_relative(interval.lower, lower, 1e-15);
        assert_relative(interval.upper, upper, 1e-15);
        assert_relative(interval.attained_confidence, attained, 1e-12);
    }
}

#[test]
fn signed_rank_and_hodges_lehmann() {
    for case in &cases(TABLES, "signed_rank") {
        check_signed_rank(case);
    }
}

#[test]
fn signed_rank_and_hodges_lehmann_with_ties_and_zeros() {
    for case in &cases(TABLES, "signed_rank_ties") {
        check_signed_rank(case);
    }
}

/// To 1e-9 relative; interval ends to 1e-9 of their width and one rounding of a mean of 1e7.
#[test]
fn student() {
    for case in &cases(TABLES, "student") {
        let sample = StudentSample::new(&numbers(&case["values"])).unwrap();
        assert_relative(sample.mean, number(&case["mean"]), 1e-14);
        assert_relative(
            sample.standard_deviation.unwrap(),
            number(&case["standard_deviation"]),
            1e-9,
        );
        let p = sample.p_two_sided(number(&case["shift"])).unwrap();
        assert_relative(p, number(&case["p"]), 1e-9);
        for level in case["intervals"].as_array().unwrap() {
            let [confidence, lower, upper] = numbers(level)[..] else {
                panic!("{level}")
            };
            let interval = sample.interval(confidence).unwrap();
            for (ours, theirs) in [(interval.lower, lower), (interval.upper, upper)] {
                let tolerance = 1e-9 * (upper - lower) + f64::EPSILON * theirs.abs();
                assert!((ours - theirs).abs() <= tolerance, "{ours} {theirs}");
            }
        }
    }
}

/// To 1e-12 relative.
#[test]
fn sign_flip() {
    for case in &cases(TABLES, "sign_flip") {
        let p = sign_flip_p(&numbers(&case["values"]), 0.0)
            .unwrap()
            .unwrap();
        assert_relative(p, number(&case["p"]), 1e-12);
    }
}

/// To 1e-12 relative.
#[test]
fn holm() {
    for case in &cases(TABLES, "holm") {
        let adjusted = holm_adjusted(&numbers(&case["p"])).unwrap();
        for (ours, theirs) in adjusted.into_iter().zip(numbers(&case["adjusted"])) {
            assert_relative(ours, theirs, 1e-12);
        }
    }
}

/// To 1e-10 relative.
#[test]
fn components() {
    for case in &cases(TABLES, "variance_components") {
        let blocks: Vec<Vec<f64>> = case["blocks"]
            .as_array()
            .unwrap()
            .iter()
            .map(numbers)
            .collect();
        let components = variance_components(&blocks).unwrap().unwrap();
        assert_relative(
            components.between_blocks_standard_deviation,
            number(&case["between_blocks"]),
            1e-10,
        );
        assert_relative(
            components.between_rounds_standard_deviation,
            number(&case["between_rounds"]),
            1e-10,
        );
    }
}
