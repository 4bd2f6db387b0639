//! The plot of how the trials of each variant are distributed: every trial, their quartiles and median.

use std::collections::BTreeMap;

use fwdlab_model::{AddressFamily, VariantName};
use fwdlab_stats::quantiles;

use crate::format;
use crate::labels::shortened;
use crate::report::{Report, TrialSection, VariantSection};
use crate::svg::{Anchor, Fill, Mark, Scale, Svg, text_width, ticks, wrap};
use crate::trials_plot::{marks, unit_of};

const WIDTH: f64 = 860.0;
const MARGIN: f64 = 20.0;
const LABEL_WIDTH: f64 = 200.0;
const PLOT_LEFT: f64 = 240.0;
const PLOT_RIGHT: f64 = 714.0;
const WORDS_LEFT: f64 = 730.0;
const LABEL_FONT: f64 = 12.0;
const TICK_FONT: f64 = 11.0;

/// More variants than this have lower rows and marks at both ends of the axis.
const HIGH_ROWS_MAX: usize = 20;

/// Quartiles that are further apart than by this ratio are shown on a logarithmic axis.
const LINEAR_RATIO_MAX: f64 = 8.0;

/// How far, in lengths of what the quartiles span, single trials may widen the plot on either side.
const REACH: f64 = 2.0;

/// Draws all variants, one panel an address family.
pub(crate) fn distributions_plot(report: &Report) -> String {
    let mut svg = Svg::new(WIDTH);
    let heading = "Distribution of the trials";
    svg.text("heading", Anchor::Start, MARGIN, 30.0, heading);
    let marks = marks(report);
    let mut y = 40.0;
    let mut descriptions = Vec::new();
    for &family in &report.traffic.families {
        let rows = rows(report, &marks, family);
        y = draw_panel(&mut svg, &rows, family, y);
        descriptions.extend(rows.iter().filter_map(|row| row.description(family)));
    }
    for line in wrap(&key(report), TICK_FONT, WIDTH - 2.0 * MARGIN, 4) {
        svg.text("small muted", Anchor::Start, MARGIN, y, &line);
        y += 15.0;
    }
    svg.finish(y + 3.0, heading, &descriptions.join("; "))
}

/// A variant in one address family.
struct PlotRow<'a> {
    variant: &'a VariantSection,
    mark: Mark,
    trials: Vec<&'a TrialSection>,
    /// Of the trials that count; none without any.
    quartiles: Option<Quartiles>,
}

/// Lower quartile, median and upper quartile, between the smallest and the largest.
#[derive(Clone, Copy, Debug)]
struct Quartiles {
    least: f64,
    lower: f64,
    median: f64,
    upper: f64,
    most: f64,
    count: usize,
}

impl Quartiles {
    fn of(trials: &[&TrialSection]) -> Option<Self> {
        let counting = trials.iter().filter(|trial| trial.counts);
        let rates: Vec<f64> = counting.map(|trial| trial.forwarding_rate_pps).collect();
        let [least, lower, median, upper, most] = quantiles(&rates, [0.0, 0.25, 0.5, 0.75, 1.0])?;
        Some(Self {
            least,
            lower,
            median,
            upper,
            most,
            count: rates.len(),
        })
    }

    fn words(&self) -> String {
        let median = format::rate(self.median);
        match self.count {
            1 => format!("{median}, 1 trial"),
            count => format!(
                "median {median}, quartiles {} and {}, {}",
                format::rate(self.lower),
                format::rate(self.upper),
                format::counted(count as u64, "trial")
            ),
        }
    }
}

impl PlotRow<'_> {
    fn description(&self, family: AddressFamily) -> Option<String> {
        let words = self.quartiles?.words();
        Some(format!(
            "{}, {}: {words}",
            self.variant.label,
            family.protocol()
        ))
    }
}

/// The baseline first, controls last, the others in the experiment's order between them.
fn rows<'a>(
    report: &'a Report,
    marks: &BTreeMap<&VariantName, Mark>,
    family: AddressFamily,
) -> Vec<PlotRow<'a>> {
    let first = report.comparisons.first();
    let baseline = first.and_then(|comparison| comparison.baseline());
    let mut variants: Vec<&VariantSection> = report.variants.iter().collect();
    variants.sort_by_key(|variant| {
        let is_baseline = baseline.is_some_and(|baseline| baseline.variant == variant.name);
        (variant.control_of.is_some(), !is_baseline)
    });
    let mut by_variant: BTreeMap<&VariantName, Vec<&TrialSection>> = BTreeMap::new();
    for trial in report.trials.iter().filter(|trial| trial.family == family) {
        by_variant.entry(&trial.variant).or_default().push(trial);
    }
    variants
        .into_iter()
        .map(|variant| {
            let trials = by_variant.remove(&variant.name).unwrap_or_default();
            PlotRow {
                variant,
                mark: marks.get(&variant.name).copied().unwrap_or(Mark::Control),
                quartiles: Quartiles::of(&trials),
                trials,
            }
        })
        .collect()
}

/// How high a row is, and how much of it its parts take.
#[derive(Clone, Copy)]
struct RowShape {
    height: f64,
    label_lines: usize,
    /// Where the box's middle is, from the middle of the row, and how high it is.
    box_at: f64,
    box_height: f64,
    /// Where the dots' middle is, and how far they may be off it.
    dots_at: f64,
    dots_reach: f64,
    radius: f64,
}

impl RowShape {
    const HIGH: Self = Self {
        height: 58.0,
        label_lines: 2,
        box_at: -13.0,
        box_height: 12.0,
        dots_at: 10.0,
        dots_reach: 12.0,
        radius: 3.0,
    };
    const LOW: Self = Self {
        height: 34.0,
        label_lines: 1,
        box_at: -8.0,
        box_height: 8.0,
        dots_at: 6.0,
        dots_reach: 6.0,
        radius: 2.4,
    };
}

fn draw_panel(svg: &mut Svg, rows: &[PlotRow<'_>], family: AddressFamily, top: f64) -> f64 {
    let trials: Vec<&TrialSection> = rows.iter().flat_map(|row| row.trials.clone()).collect();
    let axis = Axis::new(rows, &trials);
    let heading = format!("{}: forwarding rate{}", family.protocol(), axis.words());
    svg.text("strong", Anchor::Start, MARGIN, top + 16.0, &heading);
    let is_high = rows.len() <= HIGH_ROWS_MAX;
    let shape = if is_high {
        RowShape::HIGH
    } else {
        RowShape::LOW
    };
    let top = top + if is_high { 28.0 } else { 46.0 };
    let bottom = top + rows.len() as f64 * shape.height;
    axis.draw_behind(svg, top, bottom, !is_high);
    let labels: Vec<&str> = rows.iter().map(|row| row.variant.label.as_str()).collect();
    let labels = shortened(&labels, &|label| {
        wrap(label, LABEL_FONT, LABEL_WIDTH, usize::MAX).len() <= shape.label_lines
    });
    for (index, (row, label)) in rows.iter().zip(&labels).enumerate() {
        let above = top + index as f64 * shape.height;
        let is_first_control = row.variant.control_of.is_some()
            && index > 0
            && rows[index - 1].variant.control_of.is_none();
        if is_first_control {
            svg.line("session", (MARGIN, above), (WIDTH - MARGIN, above));
        }
        draw_row(svg, &axis, row, label, above + shape.height / 2.0, shape);
    }
    bottom + 44.0
}

/// Shape: `shown` is the label as there is room for it.
fn draw_row(
    svg: &mut Svg,
    axis: &Axis,
    row: &PlotRow<'_>,
    shown: &str,
    middle: f64,
    shape: RowShape,
) {
    let label = row.variant.label.as_str();
    let lines = wrap(shown, LABEL_FONT, LABEL_WIDTH, shape.label_lines);
    let mut y = middle + 4.0 - (lines.len() as f64 - 1.0) * 7.5;
    for line in lines {
        svg.titled_text("", Anchor::Start, MARGIN, y, &line, label);
        y += 15.0;
    }
    if row.trials.is_empty() {
        let words = match row.variant.unavailable {
            Some(_) => "not available in this lab",
            None => "no trial",
        };
        svg.text("small muted", Anchor::Start, PLOT_LEFT + 8.0, middle + 4.0, words);
        return;
    }
    draw_dots(svg, axis, row, middle + shape.dots_at, shape);
    let Some(quartiles) = row.quartiles else {
        svg.text("small muted", Anchor::Start, WORDS_LEFT, middle + 4.0, "no valid trial");
        return;
    };
    if quartiles.count > 1 {
        draw_box(svg, axis, row.mark, &quartiles, middle + shape.box_at, shape);
    }
    let title = format!("{label}: {}", quartiles.words());
    let median = format::rate(quartiles.median);
    let left_out = row.trials.len() - quartiles.count;
    let mut trials = format::counted(quartiles.count as u64, "trial");
    if left_out > 0 {
        trials = format!("{trials}, {left_out} not");
    }
    if shape.label_lines > 1 {
        let y = middle - 3.0;
        svg.titled_text("strong", Anchor::Start, WORDS_LEFT, y, &median, &title);
        svg.text("small muted", Anchor::Start, WORDS_LEFT, y + 15.0, &trials);
    } else {
        let y = middle + 4.0;
        svg.titled_text("strong", Anchor::Start, WORDS_LEFT, y, &median, &title);
    }
}

fn draw_box(
    svg: &mut Svg,
    axis: &Axis,
    mark: Mark,
    quartiles: &Quartiles,
    y: f64,
    shape: RowShape,
) {
    let x = |pps: f64| axis.nearest(pps);
    let [least, lower, upper, most] = [
        quartiles.least,
        quartiles.lower,
        quartiles.upper,
        quartiles.most,
    ]
    .map(x);
    svg.span(mark, y, (least, lower), false);
    svg.span(mark, y, (upper, most), false);
    let half = shape.box_height / 2.0;
    svg.frame(mark, (lower, y - half), (upper, y + half));
    let median = x(quartiles.median);
    svg.spread(mark, median, (y - half, y + half), true);
}

/// Trials that would cover one another stand above and below each other.
fn draw_dots(svg: &mut Svg, axis: &Axis, row: &PlotRow<'_>, y: f64, shape: RowShape) {
    let places: Vec<f64> = row
        .trials
        .iter()
        .map(|trial| axis.nearest(trial.forwarding_rate_pps))
        .collect();
    let offsets = swarm(&places, 2.0 * shape.radius, shape.dots_reach);
    for ((trial, x), offset) in row.trials.iter().zip(&places).zip(offsets) {
        let title = title(&row.variant.label, trial);
        let at = (*x, y + offset);
        if let Some(sign) = axis.beyond(trial.forwarding_rate_pps) {
            svg.titled_text("small muted", Anchor::Middle, at.0, at.1 + 4.0, sign, &title);
            continue;
        }
        let fill = if trial.counts {
            Fill::Faint
        } else {
            Fill::Hollow
        };
        svg.point(row.mark, fill, at, shape.radius, &title);
    }
}

fn title(label: &str, trial: &TrialSection) -> String {
    let rate = format::rate(trial.forwarding_rate_pps);
    let left_out = if trial.counts { "" } else { "; left out" };
    format!("{label}, block {}: {rate}{left_out}", trial.block)
}

/// How far each of the places is moved to the side so that dots of that size do not cover one another; what
/// finds no room within `reach` stands where the fewest are.
fn swarm(places: &[f64], size: f64, reach: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|a, b| places[*a].total_cmp(&places[*b]).then(a.cmp(b)));
    let step = size * 0.9;
    let mut rows = vec![0.0];
    let mut offset = step;
    while offset <= reach {
        rows.extend([-offset, offset]);
        offset += step;
    }
    // Of each row the last place that is taken, and how many are; the places come in ascending order.
    let mut taken = vec![(f64::NEG_INFINITY, 0); rows.len()];
    let mut offsets = vec![0.0; places.len()];
    for index in order {
        let place = places[index];
        let free = taken.iter().position(|(last, _)| place - last >= size);
        let row = free.unwrap_or_else(|| {
            let fewest = taken.iter().enumerate().min_by_key(|(_, (_, count))| *count);
            fewest.map_or(0, |(row, _)| row)
        });
        taken[row] = (place, taken[row].1 + 1);
        offsets[index] = rows[row];
    }
    offsets
}

fn key(report: &Report) -> String {
    let hollow = if report.trials.iter().any(|trial| !trial.counts) {
        " Hollow: block invalid or cut short, not in the box."
    } else {
        ""
    };
    format!(
        "Dot: a trial. Box: lower quartile, median and upper quartile of the trials that count, with a line \
         to the smallest and the largest.{hollow} Right: the median."
    )
}

/// Forwarding rates, from zero where they differ much, close around them where they do not, and as
/// logarithms where the largest would flatten the others.
struct Axis {
    scale: Scale,
    is_logarithmic: bool,
    unit_pps: f64,
    unit: &'static str,
}

impl Axis {
    fn new(rows: &[PlotRow<'_>], trials: &[&TrialSection]) -> Self {
        let (unit_pps, unit) = unit_of(trials);
        let quartiles = rows.iter().filter_map(|row| row.quartiles);
        let ends = quartiles.flat_map(|of| [of.lower, of.upper]);
        let ends: Vec<f64> = ends.filter(|pps| *pps > 0.0).collect();
        let rates: Vec<f64> = trials.iter().map(|of| of.forwarding_rate_pps).collect();
        let (low, high) = span(&ends).or_else(|| span(&rates)).unwrap_or((0.0, 1.0));
        let is_logarithmic = low > 0.0 && high / low > LINEAR_RATIO_MAX;
        let value = |pps: f64| if is_logarithmic { pps.ln() } else { pps };
        let (low, high) = (value(low), value(high));
        let shown = if is_logarithmic {
            1e-3
        } else {
            0.01 * high.max(f64::MIN_POSITIVE)
        };
        let reach = REACH * (high - low).max(shown);
        let inside = |value: &f64| (low - reach..=high + reach).contains(value);
        let values: Vec<f64> = rates
            .iter()
            .filter(|pps| **pps > 0.0 || !is_logarithmic)
            .map(|pps| value(*pps))
            .filter(inside)
            .chain([low, high])
            .collect();
        let (low, high) = span(&values).unwrap_or((low, high));
        let air = (0.05 * (high - low)).max(shown / 2.0);
        let from_zero = !is_logarithmic && low < 0.5 * high;
        let low = if from_zero { 0.0 } else { low - air };
        Self {
            scale: Scale {
                values: (low, high + air),
                pixels: (PLOT_LEFT, PLOT_RIGHT),
            },
            is_logarithmic,
            unit_pps,
            unit,
        }
    }

    fn words(&self) -> String {
        if self.is_logarithmic {
            " (logarithmic axis)".to_owned()
        } else {
            format!(" in {}", self.unit)
        }
    }

    fn value(&self, pps: f64) -> f64 {
        if self.is_logarithmic {
            pps.max(f64::MIN_POSITIVE).ln()
        } else {
            pps
        }
    }

    /// Where a rate stands, or the end of the axis that is nearer to it.
    fn nearest(&self, pps: f64) -> f64 {
        let edge = match self.beyond(pps) {
            Some(_) => 5.0,
            None => 0.0,
        };
        let (left, right) = self.scale.pixels;
        self.scale
            .pixel(self.value(pps))
            .clamp(left + edge, right - edge)
    }

    /// The sign at the end of the axis for a rate that lies beyond it.
    fn beyond(&self, pps: f64) -> Option<&'static str> {
        let value = self.value(pps);
        if self.scale.holds(value) {
            None
        } else if value < self.scale.values.0 {
            Some("◂")
        } else {
            Some("▸")
        }
    }

    fn draw_behind(&self, svg: &mut Svg, top: f64, bottom: f64, both_ends: bool) {
        for (x, label) in self.marks() {
            let above = if both_ends { top - 4.0 } else { top };
            svg.line("grid", (x, above), (x, bottom + 4.0));
            svg.text("small", Anchor::Middle, x, bottom + 18.0, &label);
            if both_ends {
                svg.text("small", Anchor::Middle, x, top - 9.0, &label);
            }
        }
        svg.line("frame", (PLOT_LEFT, bottom), (PLOT_RIGHT, bottom));
    }

    /// Rates to be marked, by their pixels.
    fn marks(&self) -> Vec<(f64, String)> {
        let (low, high) = self.scale.values;
        if !self.is_logarithmic {
            let (values, decimals) = ticks(low / self.unit_pps, high / self.unit_pps, 7);
            let mark = |value: f64| {
                let x = self.scale.pixel(value * self.unit_pps);
                (x, format!("{value:.decimals$}"))
            };
            return values.into_iter().map(mark).collect();
        }
        // Powers of ten first; what lies between them where there is room.
        let mut marks: Vec<(f64, String)> = Vec::new();
        for digits in [&[1.0][..], &[3.0], &[2.0, 5.0]] {
            for exponent in 0..13 {
                for digit in digits {
                    let pps = digit * 10_f64.powi(exponent);
                    let x = self.scale.pixel(pps.ln());
                    let label = whole_rate(pps);
                    let width = text_width(&label, TICK_FONT) + 14.0;
                    let is_clear = marks.iter().all(|(mark, _)| (mark - x).abs() >= width);
                    if self.scale.holds(pps.ln()) && is_clear {
                        marks.push((x, label));
                    }
                }
            }
        }
        marks.sort_by(|a, b| a.0.total_cmp(&b.0));
        marks
    }
}

/// A round rate: `300 kpps`.
fn whole_rate(pps: f64) -> String {
    for (unit, name) in [(1e9, "Gpps"), (1e6, "Mpps"), (1e3, "kpps")] {
        if pps >= unit {
            return format!("{} {name}", format::short(pps / unit, 0));
        }
    }
    format!("{} pps", format::short(pps, 0))
}

fn span(values: &[f64]) -> Option<(f64, f64)> {
    let low = values.iter().copied().min_by(f64::total_cmp)?;
    let high = values.iter().copied().max_by(f64::total_cmp)?;
    Some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_that_would_cover_one_another_are_moved_apart() {
        let places = [10.0, 30.0, 11.0, 10.0];
        let offsets = swarm(&places, 4.0, 8.0);
        assert_eq!((offsets[0], offsets[1]), (0.0, 0.0));
        for (one, other) in [(0, 2), (0, 3), (2, 3)] {
            let apart = (offsets[one] - offsets[other]).abs();
            assert!(apart > 3.0, "{offsets:?}");
        }
    }

    #[test]
    fn dots_without_room_stay_within_reach() {
        let offsets = swarm(&[1.0; 500], 6.0, 12.0);
        assert!(offsets.iter().all(|offset| offset.abs() <= 12.0));
        let middle = offsets.iter().filter(|offset| **offset == 0.0).count();
        assert!((100..=200).contains(&middle), "{middle}");
        assert_eq!(swarm(&[], 6.0, 12.0), [0.0; 0]);
    }

    #[test]
    fn round_rates_have_no_decimals() {
        assert_eq!(whole_rate(1.0), "1 pps");
        assert_eq!(whole_rate(300e3), "300 kpps");
        assert_eq!(whole_rate(20e6), "20 Mpps");
    }
}
