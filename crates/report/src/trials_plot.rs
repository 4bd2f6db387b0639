//! The plot of every trial in time order: drift, jumps and invalid trials at a glance.

use std::collections::{BTreeMap, BTreeSet};

use fwdlab_model::{Stratum, VariantName};

use crate::format;
use crate::labels::shortened;
use crate::rate_panel::{LEFT, LEGEND_FONT, LegendItem, RIGHT, RatePanel, draw_legend};
use crate::report::{Report, TrialSection};
use crate::svg::{Fill, Mark, Scale, Svg, text_width};

const LEGEND_LABEL_MAX: f64 = 360.0;
const BLOCK_LABEL_WIDTH: f64 = 26.0;

/// One attempt at a block: a band of the plot.
type Band = (u32, u32, u32);

/// `trials.svg`: every trial in time order, one panel a stratum.
#[must_use]
pub fn trials_svg(report: &Report) -> String {
    let heading = "Every trial in time order";
    let mut svg = Svg::headed(heading);
    let bands = bands(report);
    let marks = marks(report);
    let mut y = 40.0;
    for stratum in report.strata() {
        let trials: Vec<&TrialSection> = report
            .trials
            .iter()
            .filter(|trial| trial.stratum == stratum)
            .collect();
        y = draw_panel(&mut svg, report, &bands, &marks, stratum, &trials, y);
    }
    let caption =
        "block (a fresh set-up); inside a block, trials in the order of their first slices";
    let middle = f64::midpoint(LEFT, RIGHT);
    svg.centred("small muted", (middle, y + 6.0), caption);
    y = draw_legend(&mut svg, &legend(report, &bands, &marks), y + 32.0);
    let description = format!(
        "Forwarding rate of {} in {}",
        format::counted(report.trials.len() as u64, "trial"),
        format::counted(bands.len() as u64, "block")
    );
    svg.finish(y, heading, &description)
}

fn bands(report: &Report) -> Vec<Band> {
    let mut seen = BTreeSet::new();
    let bands = report.trials.iter().map(band_of);
    bands.filter(|band| seen.insert(*band)).collect()
}

fn band_of(trial: &TrialSection) -> Band {
    (trial.session, trial.block, trial.attempt)
}

/// The mark of every variant, the same in every plot of a report.
pub(crate) fn marks(report: &Report) -> BTreeMap<&VariantName, Mark> {
    let mut next = 0;
    let mut marks = BTreeMap::new();
    for variant in &report.variants {
        let mark = if variant.control_of.is_some() {
            Mark::Control
        } else {
            next += 1;
            Mark::Variant(next - 1)
        };
        marks.insert(&variant.name, mark);
    }
    marks
}

fn draw_panel(
    svg: &mut Svg,
    report: &Report,
    bands: &[Band],
    marks: &BTreeMap<&VariantName, Mark>,
    stratum: Stratum,
    trials: &[&TrialSection],
    top: f64,
) -> f64 {
    let rates = || trials.iter().map(|trial| trial.forwarding_rate_pps);
    let lowest = rates().fold(f64::INFINITY, f64::min);
    let highest = rates().fold(0.0, f64::max);
    let panel = RatePanel::new(svg, &stratum.label(), top, lowest, highest);
    let across = Scale {
        values: (0.0, bands.len().max(1) as f64),
        pixels: (LEFT, RIGHT),
    };
    draw_bands(svg, bands, &across, &panel);
    panel.draw_axis(svg);

    let mut places: BTreeMap<Band, (usize, u32)> = BTreeMap::new();
    for (index, band) in bands.iter().enumerate() {
        places.insert(*band, (index, 1));
    }
    for trial in trials {
        if let Some((_, count)) = places.get_mut(&band_of(trial)) {
            *count = (*count).max(trial.order + 1);
        }
    }
    let place = |trial: &TrialSection| {
        let (band, count) = places.get(&band_of(trial)).copied().unwrap_or((0, 1));
        // A band's outer eighths stay empty, so that blocks stand apart.
        let part = (f64::from(trial.order) + 0.5) / f64::from(count) * 0.75 + 0.125;
        (
            across.pixel(band as f64 + part),
            panel.y(trial.forwarding_rate_pps),
        )
    };
    for variant in &report.variants {
        let Some(&mark) = marks.get(&variant.name) else {
            continue;
        };
        let mine = trials.iter().filter(|trial| trial.variant == variant.name);
        let valid: Vec<&&TrialSection> = mine.filter(|trial| trial.counts).collect();
        for session in valid.chunk_by(|a, b| a.session == b.session) {
            let points: Vec<(f64, f64)> = session.iter().map(|trial| place(trial)).collect();
            svg.trace(mark, &points);
        }
    }
    let radius = if bands.len() > 40 || report.variants.len() > 8 {
        3.0
    } else {
        4.0
    };
    for trial in trials {
        let Some(&mark) = marks.get(&trial.variant) else {
            continue;
        };
        let fill = Fill::of_trial(trial.counts);
        svg.point(mark, fill, place(trial), radius, &title(report, trial));
    }
    panel.bottom + 34.0
}

fn title(report: &Report, trial: &TrialSection) -> String {
    let mut title = format!(
        "{}, block {}: {}",
        report.label(&trial.variant),
        trial.block,
        format::rate(trial.forwarding_rate_pps)
    );
    if !trial.invalid.is_empty() {
        title.push_str("; invalid: ");
        title.push_str(&trial.invalid.join("; "));
    } else if !trial.counts {
        title.push_str("; does not count: its block is invalid or was cut short");
    }
    title
}

fn draw_bands(svg: &mut Svg, bands: &[Band], across: &Scale, panel: &RatePanel) {
    let (top, bottom) = (panel.top, panel.bottom);
    let width = across.pixel(1.0) - across.pixel(0.0);
    // Labels that would touch are thinned out evenly.
    let label_every = (BLOCK_LABEL_WIDTH / width).ceil().max(1.0);
    for (index, (session, block, attempt)) in bands.iter().enumerate() {
        let x = across.pixel(index as f64);
        if index % 2 == 1 {
            svg.rect("stripe", x, top, width, bottom - top);
        }
        if index > 0 && bands[index - 1].0 != *session {
            svg.line("session", (x, top), (x, bottom));
        }
        if (index as f64 % label_every).abs() < 0.5 {
            let primes = "′".repeat(attempt.saturating_sub(1).min(3) as usize);
            let label = format!("{block}{primes}");
            svg.centred("small", (x + width / 2.0, bottom + 16.0), &label);
        }
    }
}

/// What the marks and signs in the plot mean.
fn legend(
    report: &Report,
    bands: &[Band],
    marks: &BTreeMap<&VariantName, Mark>,
) -> Vec<LegendItem> {
    let mut items: Vec<LegendItem> = Vec::new();
    let labels: Vec<&str> = report
        .variants
        .iter()
        .map(|variant| variant.label.as_str())
        .collect();
    let labels = shortened(&labels, &|label| {
        text_width(label, LEGEND_FONT) <= LEGEND_LABEL_MAX
    });
    for (variant, label) in report.variants.iter().zip(labels) {
        let measured = report
            .trials
            .iter()
            .any(|trial| trial.variant == variant.name);
        if let (true, Some(&mark)) = (measured, marks.get(&variant.name)) {
            items.push(LegendItem {
                point: Some((mark, Fill::Solid)),
                label,
                title: variant.label.clone(),
            });
        }
    }
    let mut add = |is_there: bool, point, words: &str| {
        items.extend(is_there.then(|| LegendItem {
            point,
            label: words.to_owned(),
            title: String::new(),
        }));
    };
    let has_hollow = report.trials.iter().any(|trial| !trial.counts);
    let hollow = Some((Mark::Control, Fill::Hollow));
    add(has_hollow, hollow, "hollow: block invalid or cut short");
    let has_repeated = bands.iter().any(|band| band.2 > 1);
    add(has_repeated, None, "′ repeated block");
    let has_sessions = bands.windows(2).any(|pair| pair[0].0 != pair[1].0);
    add(has_sessions, None, "dashed line: new session");
    items
}
