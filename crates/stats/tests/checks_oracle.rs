//! Order effects, autocorrelation, trends and dips against the table that `oracle/checks.py` wrote.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod oracle;

use fwdlab_stats::{OrderEffect, OrderedSlice, dip, lag_1_autocorrelation, order_effects, trend};
use oracle::{assert_relative, cases, number, numbers};
use serde_json::Value;

const TABLES: &str = include_str!("../oracle/checks.json");

fn lists<T>(value: &Value, of: impl Fn(&Value) -> T) -> Vec<T> {
    value.as_array().unwrap().iter().map(of).collect()
}

fn index(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

#[track_caller]
fn assert_effect(ours: OrderEffect, theirs: &Value) {
    assert_eq!(ours.label, index(&theirs["label"]), "{ours:?} {theirs}");
    assert_relative(ours.effect, number(&theirs["effect"]), 1e-7);
    assert_relative(ours.largest_bias, number(&theirs["largest_bias"]), 1e-7);
    assert_relative(ours.p, number(&theirs["p"]), 1e-12);
}

/// Effects to 1e-7, because outlying slices are drawn in until little changes; p-values to 1e-12.
#[test]
fn order() {
    for case in cases(TABLES, "order") {
        let slice = |slice: &Value| OrderedSlice {
            variant: index(&slice[0]),
            log_rate: slice[1].as_f64(),
        };
        let blocks = lists(&case["blocks"], |rounds| {
            lists(rounds, |round| lists(round, slice))
        });
        // All orders are tried, because at this level more than there are would be drawn.
        let effects = order_effects(index(&case["variants"]), &blocks, 0.01, 1);
        let effects = effects.unwrap().unwrap();
        assert_effect(effects.predecessor, &case["predecessor"]);
        assert_effect(effects.place, &case["place"]);
    }
}

/// To 1e-10 relative.
#[test]
fn autocorrelation() {
    for case in cases(TABLES, "autocorrelation") {
        let series = lists(&case["series"], |series| lists(series, Value::as_f64));
        let correlation = lag_1_autocorrelation(&series).unwrap().unwrap();
        assert_relative(correlation, number(&case["correlation"]), 1e-10);
    }
}

/// To 1e-12 relative; the approximation to 1e-6, because its score is read back from a p-value.
#[test]
fn trends() {
    for (table, tolerance) in [("trend", 1e-12), ("long_trend", 1e-6)] {
        for case in cases(TABLES, table) {
            let found = trend(&numbers(&case["values"])).unwrap();
            assert_relative(found.tau, number(&case["tau"]), 1e-12);
            assert_relative(found.p, number(&case["p"]), tolerance);
        }
    }
}

/// To 1e-12 relative.
#[test]
fn dips() {
    for case in cases(TABLES, "dip") {
        let ours = dip(&numbers(&case["values"])).unwrap();
        assert!(
            (ours - number(&case["dip"])).abs() <= 1e-12,
            "{ours} {case}"
        );
    }
}
