//! The analysis of factorial designs against the table that `oracle/factorial.py` wrote.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod oracle;

use fwdlab_stats::{Factor, factorial_analysis};
use oracle::{assert_relative, cases, number, numbers};
use serde_json::Value;

const TABLES: &str = include_str!("../oracle/factorial.json");

fn whole_numbers(value: &Value) -> Vec<usize> {
    let whole = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
    value.as_array().unwrap().iter().map(whole).collect()
}

/// p-values, F and sums of squares to 1e-9 relative, estimates and ends to 1e-9 of the interval's
/// width.
#[test]
fn factorial_designs() {
    let oracle: Value = serde_json::from_str(TABLES).unwrap();
    let confidence = number(&oracle["confidence"]);
    let cases = cases(TABLES, "cases");
    assert_eq!(cases.len(), 13);
    let mut smallest_p = 1.0_f64;
    for case in &cases {
        let responses = numbers(&case["responses"]);
        let factors: Vec<Factor> = case["factors"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, levels)| Factor {
                name: name.clone(),
                levels: whole_numbers(levels),
            })
            .collect();
        let blocks = (!case["blocks"].is_null()).then(|| whole_numbers(&case["blocks"]));
        let order = usize::try_from(case["order"].as_u64().unwrap()).unwrap();
        let analysis =
            factorial_analysis(&responses, &factors, blocks.as_deref(), order, confidence).unwrap();
        assert_eq!(
            analysis.residual_degrees_of_freedom as u64,
            case["residual_df"].as_u64().unwrap()
        );
        assert_relative(
            analysis.residual_standard_deviation,
            number(&case["residual_sd"]),
            1e-9,
        );
        let terms = case["terms"].as_array().unwrap();
        assert_eq!(analysis.terms.len(), terms.len());
        for (term, expected) in analysis.terms.iter().zip(terms) {
            let names: Vec<&str> = expected["factors"]
                .as_array()
                .unwrap()
                .iter()
                .map(|n| n.as_str().unwrap())
                .collect();
            assert_eq!(term.factors, names);
            assert_eq!(
                term.degrees_of_freedom as u64,
                expected["df"].as_u64().unwrap()
            );
            assert_relative(term.sum_of_squares, number(&expected["sum_sq"]), 1e-9);
            assert_relative(term.f, number(&expected["f"]), 1e-9);
            assert_relative(term.p, number(&expected["p"]), 1e-9);
            smallest_p = smallest_p.min(term.p);
            let contrasts = expected["contrasts"].as_array().unwrap();
            assert_eq!(term.contrasts.len(), contrasts.len());
            for (contrast, expected) in term.contrasts.iter().zip(contrasts) {
                assert_eq!(contrast.levels, whole_numbers(&expected["levels"]));
                assert_relative(contrast.p, number(&expected["p"]), 1e-9);
                let (lower, upper) = (
                    number(&expected["interval"][0]),
                    number(&expected["interval"][1]),
                );
                for (ours, theirs) in [
                    (contrast.estimate, number(&expected["estimate"])),
                    (contrast.interval.lower, lower),
                    (contrast.interval.upper, upper),
                ] {
                    assert!(
                        (ours - theirs).abs() <= 1e-9 * (upper - lower),
                        "{ours} {theirs}"
                    );
                }
            }
        }
    }
    assert!(smallest_p < 1e-12, "{smallest_p}");
}
