//! The plot of every trial in time order: drift, jumps and invalid trials at a glance.

use std::collections::{BTreeMap, BTreeSet};

use fwdlab_model::{AddressFamily, VariantName};

use crate::format;
use crate::labels::shortened;
use crate::report::{Report, TrialSection};
use crate::svg::{Anchor, Fill, Mark, Scale, Svg, text_width, ticks};

const WIDTH: f64 = 860.0;
const MARGIN: f64 = 20.0;
const PLOT_LEFT: f64 = 68.0;
const PLOT_RIGHT: f64 = WIDTH - MARGIN;
const PANEL_HEIGHT: f64 = 240.0;
const LEGEND_FONT: f64 = 12.0;
const LEGEND_LABEL_MAX: f64 = 360.0;
const BLOCK_LABEL_WIDTH: f64 = 26.0;

/// One attempt at a block: a band of the plot.
type Band = (u32, u32, u32);

/// `trials.svg`: every trial in time order, one panel an address family.
#[must_use]
pub fn trials_svg(report: &Report) -> String {
    let mut svg = Svg::new(WIDTH);
    let heading = "Every trial in time order";
    svg.text("heading", (MARGIN, 30.0), heading);
    let bands = bands(report);
    let marks = marks(report);
    let mut y = 40.0;
    for &family in &report.traffic.families {
        let trials: Vec<&TrialSection> = report
            .trials
            .iter()
            .filter(|trial| trial.family == family)
            .collect();
        y = draw_panel(&mut svg, report, &bands, &marks, family, &trials, y);
    }
    let caption =
        "block (a fresh set-up); inside a block, trials in the order of their first slices";
    let middle = f64::midpoint(PLOT_LEFT, PLOT_RIGHT);
    svg.centred("small muted", (middle, y + 6.0), caption);
    y = draw_legend(&mut svg, report, &bands, &marks, y + 32.0);
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
    family: AddressFamily,
    trials: &[&TrialSection],
    top: f64,
) -> f64 {
    let (unit_pps, unit) = unit_of(trials);
    let heading = format!("{}: forwarding rate in {unit}", family.protocol());
    svg.text("strong", (MARGIN, top + 16.0), &heading);
    let (top, bottom) = (top + 28.0, top + 28.0 + PANEL_HEIGHT);
    let across = Scale {
        values: (0.0, bands.len().max(1) as f64),
        pixels: (PLOT_LEFT, PLOT_RIGHT),
    };
    let up = Scale {
        values: range(trials, unit_pps),
        pixels: (bottom, top),
    };
    draw_bands(svg, bands, &across, top, bottom);
    let (values, decimals) = ticks(up.values.0, up.values.1, 7);
    for value in values {
        let y = up.pixel(value);
        svg.line("grid", (PLOT_LEFT, y), (PLOT_RIGHT, y));
        let label = format!("{value:.decimals$}");
        svg.text_before("small", (PLOT_LEFT - 8.0, y + 4.0), &label);
    }
    svg.line("frame", (PLOT_LEFT, bottom), (PLOT_RIGHT, bottom));

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
            up.pixel(trial.forwarding_rate_pps / unit_pps),
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
        let fill = if trial.counts {
            Fill::Solid
        } else {
            Fill::Hollow
        };
        svg.point(mark, fill, place(trial), radius, &title(report, trial));
    }
    bottom + 34.0
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

fn draw_bands(svg: &mut Svg, bands: &[Band], across: &Scale, top: f64, bottom: f64) {
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

fn unit_of(trials: &[&TrialSection]) -> (f64, &'static str) {
    let highest = trials
        .iter()
        .map(|trial| trial.forwarding_rate_pps)
        .fold(0.0, f64::max);
    if highest >= 1e6 {
        (1e6, "Mpps")
    } else if highest >= 1e3 {
        (1e3, "kpps")
    } else {
        (1.0, "pps")
    }
}

/// From zero where the rates differ much, close around them where they do not.
fn range(trials: &[&TrialSection], unit_pps: f64) -> (f64, f64) {
    let rates = trials
        .iter()
        .map(|trial| trial.forwarding_rate_pps / unit_pps);
    let (low, high) = rates.fold((f64::INFINITY, 0.0), |(low, high), rate| {
        (f64::min(low, rate), f64::max(high, rate))
    });
    if high <= 0.0 {
        (0.0, 1.0)
    } else if low < 0.5 * high {
        (0.0, high * 1.05)
    } else {
        let air = (0.06 * (high - low)).max(0.005 * high);
        (low - air, high + air)
    }
}

/// What a mark or a sign in the plot means.
struct LegendItem {
    point: Option<(Mark, Fill)>,
    label: String,
    title: String,
}

impl LegendItem {
    fn words(point: Option<(Mark, Fill)>, words: &str) -> Self {
        Self {
            point,
            label: words.to_owned(),
            title: String::new(),
        }
    }
}

fn draw_legend(
    svg: &mut Svg,
    report: &Report,
    bands: &[Band],
    marks: &BTreeMap<&VariantName, Mark>,
    top: f64,
) -> f64 {
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
    if report.trials.iter().any(|trial| !trial.counts) {
        let words = "hollow: block invalid or cut short";
        items.push(LegendItem::words(
            Some((Mark::Control, Fill::Hollow)),
            words,
        ));
    }
    if bands.iter().any(|band| band.2 > 1) {
        items.push(LegendItem::words(None, "′ repeated block"));
    }
    if bands.windows(2).any(|pair| pair[0].0 != pair[1].0) {
        items.push(LegendItem::words(None, "dashed line: new session"));
    }
    let (mut x, mut y) = (MARGIN, top);
    for LegendItem {
        point,
        label,
        title,
    } in &items
    {
        let lead = if point.is_some() { 18.0 } else { 0.0 };
        let width = lead + text_width(label, LEGEND_FONT);
        if x > MARGIN && x + width > WIDTH - MARGIN {
            x = MARGIN;
            y += 20.0;
        }
        if let Some((mark, fill)) = point {
            svg.point(*mark, *fill, (x + 6.0, y - 4.0), 4.5, "");
        }
        svg.titled_text("", Anchor::Start, (x + lead, y), label, title);
        x += width + 22.0;
    }
    y + 16.0
}
