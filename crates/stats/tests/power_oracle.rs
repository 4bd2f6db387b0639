//! The power of t tests against the table that `oracle/power.py` wrote.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod oracle;

use fwdlab_stats::distribution::noncentral_t_upper_tail;
use fwdlab_stats::{METHODS_WITH_POWER, PowerAnalysis};
use oracle::{assert_relative, cases, number, numbers};
use serde_json::Value;

const TABLES: &str = include_str!("../oracle/power.json");

/// To 1e-9 relative, probabilities of 1e-12 and less included.
#[test]
fn noncentral_t() {
    let mut smallest = 1.0_f64;
    for case in cases(TABLES, "noncentral_t") {
        let [t, degrees_of_freedom, noncentrality, p] = numbers(&case)[..] else {
            panic!("{case}")
        };
        let found = noncentral_t_upper_tail(t, degrees_of_freedom, noncentrality);
        assert_relative(found, p, 1e-9);
        smallest = smallest.min(p);
    }
    assert!(smallest < 1e-8, "{smallest}");
}

fn analysis(case: &Value) -> PowerAnalysis {
    let method = METHODS_WITH_POWER
        .into_iter()
        .find(|method| serde_json::to_value(method).unwrap() == case["method"])
        .unwrap();
    let compared = usize::try_from(case["compared"].as_u64().unwrap()).unwrap();
    PowerAnalysis::new(method, 1.0, compared, number(&case["confidence"])).unwrap()
}

fn size(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

/// Powers to 1e-8, those of Welch's test to 1e-7.
#[test]
fn power() {
    for case in cases(TABLES, "power") {
        let found = analysis(&case).power(number(&case["effect"]), size(&case["size"]));
        let tolerance = if case["method"] == "welch-t" {
            1e-7
        } else {
            1e-8
        };
        let expected = number(&case["power"]);
        assert!((found - expected).abs() < tolerance, "{found}: {case}");
    }
}

/// Sizes as they are, effects to 1e-8.
#[test]
fn sizes_and_smallest_effects() {
    for case in cases(TABLES, "solved") {
        let analysis = analysis(&case);
        let found = analysis.size_to_show(number(&case["effect"]));
        assert_eq!(found, Some(size(&case["size"])), "{case}");
        let found = analysis.smallest_effect(size(&case["at"])).unwrap();
        assert_relative(found, number(&case["smallest_effect"]), 1e-8);
    }
}
