//! Tests of independent samples against the table that `oracle/two_samples.py` wrote.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod oracle;

use fwdlab_stats::{
    Draws, Interval, MannWhitney, PermutationTest, ShiftTest, SidedPValues, Stratum, TwoSampleT,
};
use oracle::{assert_relative, cases, number, numbers};
use serde_json::Value;

const TABLES: &str = include_str!("../oracle/two_samples.json");

const CONFIDENCES: [f64; 3] = [0.9, 0.95, 0.99];

/// To 1e-9 relative, 1e-12 and below included; interval ends to 1e-9 of their width.
#[track_caller]
fn check_t(sample: &[f64], reference: &[f64], case: &Value) {
    let shift = number(&case["shift"]);
    for (name, test) in [
        ("welch", TwoSampleT::welch(sample, reference)),
        ("pooled", TwoSampleT::pooled(sample, reference)),
    ] {
        let (test, case) = (test.unwrap(), &case[name]);
        assert_relative(test.standard_error, number(&case["standard_error"]), 1e-11);
        assert_relative(
            test.degrees_of_freedom,
            number(&case["degrees_of_freedom"]),
            1e-11,
        );
        assert_relative(test.p_two_sided(shift), number(&case["p"]), 1e-9);
        assert_relative(test.p_greater(shift), number(&case["greater"]), 1e-9);
        assert_relative(test.p_less(shift), number(&case["less"]), 1e-9);
        for level in case["intervals"].as_array().unwrap() {
            let [confidence, lower, upper] = numbers(level)[..] else {
                panic!("{level}")
            };
            let interval = test.interval(confidence).unwrap();
            for (ours, theirs) in [(interval.lower, lower), (interval.upper, upper)] {
                assert!(
                    (ours - theirs).abs() <= 1e-9 * (upper - lower),
                    "{ours} {theirs}"
                );
            }
        }
    }
}

#[test]
fn welch_and_pooled_t() {
    let mut smallest_p = 1.0_f64;
    for case in cases(TABLES, "t") {
        check_t(
            &numbers(&case["sample"]),
            &numbers(&case["reference"]),
            &case,
        );
        smallest_p = smallest_p.min(number(&case["welch"]["p"]));
    }
    assert!(smallest_p < 1e-12, "{smallest_p}");
}

/// p-values by midranks to 1e-9 relative. The table's approximate ones are SciPy's.
#[track_caller]
fn check_midrank(ours: SidedPValues, theirs: &Value) {
    assert_relative(ours.greater, number(&theirs["greater"]), 1e-9);
    assert_relative(ours.less, number(&theirs["less"]), 1e-9);
    assert_relative(ours.two_sided, number(&theirs["two_sided"]), 1e-9);
}

#[test]
fn mann_whitney() {
    for case in cases(TABLES, "mann_whitney") {
        let test =
            MannWhitney::new(&numbers(&case["sample"]), &numbers(&case["reference"])).unwrap();
        check_midrank(test.midrank(), &case["midrank"]);
        if case["method"] == "exact" {
            assert_relative(
                test.p_greater(0.0),
                number(&case["midrank"]["greater"]),
                1e-12,
            );
        }
    }
}

/// Estimates and ends to 1e-15 relative (one rounding), attained levels to 1e-12.
#[test]
fn hodges_lehmann_of_two_samples() {
    let mut checked = 0;
    for case in cases(TABLES, "mann_whitney") {
        let Some(expected) = case.get("hodges_lehmann") else {
            continue;
        };
        let test =
            MannWhitney::new(&numbers(&case["sample"]), &numbers(&case["reference"])).unwrap();
        assert_relative(test.estimate(), number(&expected["estimate"]), 1e-15);
        for level in expected["intervals"].as_array().unwrap() {
            let interval = test.interval(number(&level["confidence"])).unwrap();
            if level["interval"].is_null() {
                assert_eq!(interval, None);
                continue;
            }
            let (interval, expected) = (interval.unwrap(), numbers(&level["interval"]));
            assert_relative(interval.lower, expected[0], 1e-15);
            assert_relative(interval.upper, expected[1], 1e-15);
            assert_relative(interval.attained_confidence, expected[2], 1e-12);
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked}");
}

/// A mean of 1e7, a deviation of about 1, many ties; the values are those of the script.
#[test]
fn up_to_a_million_values_a_side() {
    for case in cases(TABLES, "large") {
        let size = case["size"].as_i64().unwrap();
        let values = |factor: i64, moved_by: i64| -> Vec<f64> {
            (0..size)
                .map(|i| (i * factor % 65537 - 32768 + moved_by) as f64 / 16384.0 + 1e7)
                .collect()
        };
        let sample = values(7919, case["moved_by"].as_i64().unwrap());
        let reference = values(104_729, 0);
        check_t(&sample, &reference, &case);

        let expected = &case["mann_whitney"];
        let test = MannWhitney::new(&sample, &reference).unwrap();
        check_midrank(test.midrank(), &expected["midrank"]);
        let exact =
            |ours: f64, theirs: f64| assert!((ours - theirs).abs() < 1e-12, "{ours} {theirs}");
        exact(test.estimate(), number(&expected["estimate"]));
        for (level, confidence) in expected["intervals"]
            .as_array()
            .unwrap()
            .iter()
            .zip(CONFIDENCES)
        {
            let Interval { lower, upper, .. } = test.interval(confidence).unwrap().unwrap();
            exact(lower, number(&level[1]));
            exact(upper, number(&level[2]));
        }
    }
}

/// To 1e-12 relative.
#[test]
fn permutations_within_strata() {
    for case in cases(TABLES, "permutation") {
        let sides: Vec<[Vec<f64>; 2]> = case["strata"]
            .as_array()
            .unwrap()
            .iter()
            .map(|stratum| [numbers(&stratum[0]), numbers(&stratum[1])])
            .collect();
        let strata: Vec<Stratum<'_>> = sides
            .iter()
            .map(|[sample, reference]| Stratum { sample, reference })
            .collect();
        let test = PermutationTest::new(&strata, Draws { seed: 0, count: 0 }).unwrap();
        assert_eq!(test.arrangements(), case["arrangements"].as_u64());
        assert!((test.difference() - number(&case["difference"])).abs() < 1e-9);
        assert_relative(test.p_greater(0.0), number(&case["greater"]), 1e-12);
        assert_relative(test.p_less(0.0), number(&case["less"]), 1e-12);
        assert_relative(test.p_two_sided(0.0), number(&case["two_sided"]), 1e-12);
    }
}
