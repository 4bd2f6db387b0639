//! The warning of a ceiling on the charts of the public archive.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::path::Path;

use fwdlab_stats::ministat::parse_points;
use fwdlab_stats::{VariantObservations, Warning, ceiling_warnings};

/// The datasets of every folder below, itself included, that has any with three points or more.
fn charts(folder: &Path, charts: &mut Vec<Vec<VariantObservations>>) {
    let mut chart = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            self::charts(&path, charts);
        } else if path.extension().is_some_and(|extension| extension == "pps") {
            let points = parse_points(&fs::read(&path).unwrap(), 1, b" \t").unwrap_or_default();
            if points.len() >= 3 {
                chart.push(VariantObservations {
                    name: path.display().to_string(),
                    observations_pps: points,
                });
            }
        }
    }
    if chart.len() > 1 {
        charts.push(chart);
    }
}

/// What is warned of was all measured on ports of 10 Gbit/s, from 11.6 Mpps to just below their line rate;
/// most machines of the archive come nowhere near.
#[test]
fn charts_of_the_archive_that_meet_a_line_rate_are_warned_of_and_no_others() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let mut all = Vec::new();
    charts(&archive, &mut all);
    let limits_pps: Vec<f64> = all
        .iter()
        .filter_map(|chart| match ceiling_warnings(chart).unwrap().first()? {
            Warning::Ceiling { limit_pps, .. } => Some(*limit_pps),
            _ => None,
        })
        .collect();
    assert!(
        limits_pps
            .iter()
            .all(|limit_pps| (11.6e6..14.89e6).contains(limit_pps)),
        "{limits_pps:?}"
    );
    assert_eq!((limits_pps.len(), all.len()), (10, 297));
}
