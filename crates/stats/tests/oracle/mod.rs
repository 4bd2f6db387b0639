//! Reading the tables that the scripts in `oracle/` wrote, and holding numbers against them.

use serde_json::Value;

/// The cases of one table; there have to be some.
#[track_caller]
pub(crate) fn cases(oracle: &str, table: &str) -> Vec<Value> {
    let oracle: Value = serde_json::from_str(oracle).unwrap();
    let cases = oracle[table].as_array().unwrap().clone();
    assert!(!cases.is_empty(), "{table}");
    cases
}

pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

#[track_caller]
pub(crate) fn assert_relative(ours: f64, theirs: f64, tolerance: f64) {
    assert!(
        (ours - theirs).abs() <= tolerance * theirs.abs(),
        "{ours} for {theirs}"
    );
}
