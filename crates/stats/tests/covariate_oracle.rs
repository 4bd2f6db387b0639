//! The sensitivity to a covariate against the table that `oracle/covariate.py` wrote.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod oracle;

use fwdlab_stats::{CovariateArm, Interval, Slope, covariate_of_arms, covariate_of_blocks};
use oracle::{assert_relative, cases, number, numbers};
use serde_json::Value;

const TABLES: &str = include_str!("../oracle/covariate.json");

/// The p to 1e-9 relative, estimate and interval ends to 1e-9 of the interval's length.
#[track_caller]
fn check(estimate: f64, p: f64, intervals: &[Interval], case: &Value) {
    assert_relative(p, number(&case["p"]), 1e-9);
    let expected = case["intervals"].as_array().unwrap();
    assert_eq!(expected.len(), intervals.len());
    for (interval, expected) in intervals.iter().zip(expected) {
        let [confidence, lower, upper] = numbers(expected)[..] else {
            panic!("{expected}")
        };
        assert_relative(interval.attained_confidence, confidence, 1e-12);
        for (ours, theirs) in [
            (estimate, number(&case["estimate"])),
            (interval.lower, lower),
            (interval.upper, upper),
        ] {
            assert!(
                (ours - theirs).abs() <= 1e-9 * (upper - lower),
                "{ours} for {theirs}"
            );
        }
    }
}

#[track_caller]
fn check_slopes(slopes: &[Slope], case: &Value) {
    let intervals: Vec<Interval> = slopes.iter().map(|slope| slope.interval).collect();
    check(slopes[0].estimate, slopes[0].p, &intervals, case);
    assert_relative(
        slopes[0].degrees_of_freedom,
        number(&case["degrees_of_freedom"]),
        1e-12,
    );
}

const CONFIDENCES: [f64; 3] = [0.9, 0.95, 0.99];

#[test]
fn arms_of_independent_observations() {
    let mut arm_counts = Vec::new();
    for case in cases(TABLES, "arms") {
        let columns: Vec<[Vec<f64>; 2]> = case["arms"]
            .as_array()
            .unwrap()
            .iter()
            .map(|arm| [numbers(&arm[0]), numbers(&arm[1])])
            .collect();
        let arms: Vec<CovariateArm<'_>> = columns
            .iter()
            .map(|[values, covariate]| CovariateArm {
                name: "arm",
                values,
                covariate,
            })
            .collect();
        arm_counts.push(arms.len());
        let found = CONFIDENCES.map(|confidence| covariate_of_arms(&arms, confidence).unwrap());
        for (index, slope) in case["slopes"].as_array().unwrap().iter().enumerate() {
            check_slopes(&found.each_ref().map(|found| found.slopes[index]), slope);
        }
        check_slopes(
            &found.each_ref().map(|found| found.common_slope),
            &case["common_slope"],
        );
        let interaction = found[0].interaction;
        assert_relative(
            interaction.f.unwrap(),
            number(&case["interaction"]["f"]),
            1e-8,
        );
        assert_relative(interaction.p, number(&case["interaction"]["p"]), 1e-8);
        for (index, adjusted) in case["adjusted"].as_array().unwrap().iter().enumerate() {
            let effects = found.each_ref().map(|found| found.adjusted[index]);
            check(
                effects[0].estimate,
                effects[0].p,
                &effects.map(|effect| effect.interval),
                adjusted,
            );
            assert_relative(effects[0].raw, number(&adjusted["raw"]), 1e-9);
            assert_relative(
                effects[0].covariate_shift,
                number(&adjusted["covariate_shift"]),
                1e-9,
            );
        }
    }
    assert!(arm_counts.contains(&5), "{arm_counts:?}");
}

#[test]
fn block_effects() {
    for case in cases(TABLES, "blocks") {
        let (effects, covariate) = (numbers(&case["effects"]), numbers(&case["covariate"]));
        let found = CONFIDENCES.map(|confidence| {
            covariate_of_blocks("variant", &effects, &covariate, confidence).unwrap()
        });
        check_slopes(&found.map(|found| found.slope), &case["slope"]);
        let adjusted = found.map(|found| found.adjusted);
        check(
            adjusted[0].estimate,
            adjusted[0].p,
            &adjusted.map(|adjusted| adjusted.interval),
            &case["adjusted"],
        );
    }
}
