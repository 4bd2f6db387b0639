//! What the catalogue answers, for terminals, tables and as a plot.

mod calendar;
mod plot;
mod tables;

pub use plot::{SERIES_MAX, series_svg};
pub use tables::{listing, passed_over, rates, selected, series};

use fwdlab_catalogue::Series;

/// What a series is, as far as it tells apart series that are shown together; its variant where nothing
/// does.
fn names(all: &[&Series]) -> Vec<String> {
    let parts = |series: &Series| -> [String; 6] {
        let stated = |text: &Option<String>| text.clone().unwrap_or_default();
        [
            series.topic.clone(),
            series.variant.clone(),
            stated(&series.platform),
            stated(&series.nic),
            stated(&series.lab),
            stated(&series.regime),
        ]
    };
    let parts: Vec<[String; 6]> = all.iter().map(|series| parts(series)).collect();
    let tells = |part: usize| parts.iter().any(|other| other[part] != parts[0][part]);
    let named = |one: &[String; 6]| {
        let telling: Vec<&str> = (0..one.len())
            .filter(|&part| tells(part) && !one[part].is_empty())
            .map(|part| one[part].as_str())
            .collect();
        if telling.is_empty() {
            one[1].clone()
        } else {
            telling.join(", ")
        }
    };
    parts.iter().map(named).collect()
}
