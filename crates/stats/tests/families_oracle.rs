//! BCa intervals, max-T and Dunnett's test against the table that `oracle/families.py` wrote.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod oracle;

use fwdlab_stats::{
    Draws, StudentSample, bca_interval, dunnett, max_t_permutation, max_t_sign_flip, median,
};
use oracle::{assert_relative, cases, number, numbers};
use serde_json::Value;

const TABLES: &str = include_str!("../oracle/families.json");

fn lists(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(numbers).collect()
}

fn slices(lists: &[Vec<f64>]) -> Vec<&[f64]> {
    lists.iter().map(Vec::as_slice).collect()
}

fn mean(values: &[f64]) -> f64 {
    StudentSample::new(values).unwrap().mean
}

/// Ends to 1e-9 of the width, on the same draws.
#[test]
fn bca() {
    for case in cases(TABLES, "bca") {
        let samples = lists(&case["samples"]);
        let statistic = |samples: &[Vec<f64>]| match case["statistic"].as_str().unwrap() {
            "mean" => mean(&samples[0]),
            "median" => median(&samples[0]).unwrap(),
            "standard_deviation" => StudentSample::new(&samples[0])
                .unwrap()
                .standard_deviation
                .unwrap(),
            "difference_of_means" => mean(&samples[0]) - mean(&samples[1]),
            other => panic!("{other}"),
        };
        let draws = Draws {
            seed: case["seed"].as_u64().unwrap(),
            count: u32::try_from(case["count"].as_u64().unwrap()).unwrap(),
        };
        let confidence = number(&case["confidence"]);
        let interval = bca_interval(&slices(&samples), statistic, draws, confidence).unwrap();
        let expected = numbers(&case["interval"]);
        let tolerance = 1e-9 * (expected[1] - expected[0]);
        assert!(
            (interval.lower - expected[0]).abs() < tolerance,
            "{interval:?} {case}"
        );
        assert!(
            (interval.upper - expected[1]).abs() < tolerance,
            "{interval:?} {case}"
        );
    }
}

const NONE_DRAWN: Draws = Draws { seed: 0, count: 0 };

/// To 1e-12 relative.
#[test]
fn max_t_by_sign_flips() {
    for case in cases(TABLES, "max_t_sign_flip") {
        let adjusted = max_t_sign_flip(&lists(&case["effects"]), NONE_DRAWN).unwrap();
        for (ours, theirs) in adjusted.into_iter().zip(numbers(&case["adjusted"])) {
            assert_relative(ours, theirs, 1e-12);
        }
    }
}

/// To 1e-12 relative.
#[test]
fn max_t_by_permutations() {
    for case in cases(TABLES, "max_t_permutation") {
        let (reference, samples) = (numbers(&case["reference"]), lists(&case["samples"]));
        let adjusted = max_t_permutation(&reference, &slices(&samples), NONE_DRAWN).unwrap();
        for (ours, theirs) in adjusted.into_iter().zip(numbers(&case["adjusted"])) {
            assert_relative(ours, theirs, 1e-12);
        }
    }
}

/// p-values to 1e-9 relative, interval ends to 1e-9 of the width.
#[test]
fn dunnett_of_unequal_samples() {
    let mut smallest_p = 1.0_f64;
    for case in cases(TABLES, "dunnett") {
        let (reference, samples) = (numbers(&case["reference"]), lists(&case["samples"]));
        let found = dunnett(&reference, &slices(&samples), number(&case["confidence"])).unwrap();
        let (t, p) = (numbers(&case["t"]), numbers(&case["adjusted_p"]));
        assert_eq!(found.len(), t.len());
        for (index, found) in found.iter().enumerate() {
            assert_relative(found.t, t[index], 1e-11);
            assert_relative(found.adjusted_p, p[index], 1e-9);
            smallest_p = smallest_p.min(p[index]);
            let expected = numbers(&case["intervals"][index]);
            let tolerance = 1e-9 * (expected[1] - expected[0]);
            assert!(
                (found.interval.lower - expected[0]).abs() < tolerance,
                "{case}"
            );
            assert!(
                (found.interval.upper - expected[1]).abs() < tolerance,
                "{case}"
            );
        }
    }
    assert!(smallest_p < 1e-12, "{smallest_p}");
}
