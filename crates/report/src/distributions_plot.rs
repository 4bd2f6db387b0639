//! The plot of how the trials of each variant are distributed: every trial, their quartiles and median.
//!
//! Rates stand as differences to the variant's own median, so that the shapes of variants can be compared with
//! each other however far apart their rates are.

use std::collections::BTreeMap;

use fwdlab_model::{Stratum, VariantName};
use fwdlab_stats::{median, quantiles};

use crate::format;
use crate::report::{Report, TrialSection, VariantSection};
use crate::svg::{Anchor, Fill, MARGIN, Mark, Scale, Svg, ticks};
use crate::trials_plot::marks;
use crate::variant_rows::{PLOT_LEFT, draw_divider, draw_key, draw_label, shortened_labels};

const PLOT_RIGHT: f64 = 714.0;
const WORDS_LEFT: f64 = 730.0;

/// More variants than this have lower rows and marks at both ends of the axis.
const HIGH_ROWS_MAX: usize = 20;

/// How far, in lengths of what the quartiles span, single trials may widen the plot on either side.
const REACH: f64 = 2.0;

/// The plot is at least so wide on either side, in percent: the last digits of a rate are no distribution.
const HALF_WIDTH_MIN_PERCENT: f64 = 0.01;

/// How wide it is on either side where nothing differs from its median.
const HALF_WIDTH_USUAL_PERCENT: f64 = 1.0;

/// `distributions.svg`: how the trials of each variant are distributed, one panel a stratum.
#[must_use]
pub fn distributions_svg(report: &Report) -> String {
    let heading = "Distribution of the trials";
    let mut svg = Svg::headed(heading);
    let marks = marks(report);
    let mut y = 40.0;
    let mut descriptions = Vec::new();
    let mut is_cut = false;
    for stratum in report.strata() {
        let rows = rows(report, &marks, stratum);
        let axis = Axis::new(&rows);
        is_cut |= rows.iter().any(|row| row.is_cut_by(&axis));
        y = draw_panel(&mut svg, &axis, &rows, stratum, y);
        descriptions.extend(rows.iter().filter_map(|row| row.description(stratum)));
    }
    y = draw_key(&mut svg, &key(report, is_cut), 4, y);
    svg.finish(y, heading, &descriptions.join("; "))
}

/// A variant in one stratum.
struct PlotRow<'a> {
    variant: &'a VariantSection,
    mark: Mark,
    trials: Vec<&'a TrialSection>,
    /// Of the trials that count; none without any.
    quartiles: Option<Quartiles>,
    /// What the trials' rates are shown against; none where nothing was forwarded.
    middle_pps: Option<f64>,
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
    /// How far a rate is from the row's middle, in percent of it.
    fn percent(&self, pps: f64) -> Option<f64> {
        Some((pps / self.middle_pps? - 1.0) * 100.0)
    }

    /// Whether one of its trials lies beyond the axis.
    fn is_cut_by(&self, axis: &Axis) -> bool {
        let rates = self.trials.iter().map(|trial| trial.forwarding_rate_pps);
        let mut percents = rates.filter_map(|pps| self.percent(pps));
        percents.any(|percent| axis.beyond(percent).is_some())
    }

    fn description(&self, stratum: Stratum) -> Option<String> {
        let words = self.quartiles?.words();
        Some(format!(
            "{}, {}: {words}",
            self.variant.label,
            stratum.label()
        ))
    }
}

/// The baseline first, controls last, the others in the experiment's order between them.
fn rows<'a>(
    report: &'a Report,
    marks: &BTreeMap<&VariantName, Mark>,
    stratum: Stratum,
) -> Vec<PlotRow<'a>> {
    let first = report.comparisons.first();
    let baseline = first.and_then(|comparison| comparison.baseline());
    let mut variants: Vec<&VariantSection> = report.variants.iter().collect();
    variants.sort_by_key(|variant| {
        let is_baseline = baseline.is_some_and(|baseline| baseline.variant == variant.name);
        (variant.control_of.is_some(), !is_baseline)
    });
    let mut by_variant: BTreeMap<&VariantName, Vec<&TrialSection>> = BTreeMap::new();
    for trial in report
        .trials
        .iter()
        .filter(|trial| trial.stratum == stratum)
    {
        by_variant.entry(&trial.variant).or_default().push(trial);
    }
    variants
        .into_iter()
        .map(|variant| {
            let trials = by_variant.remove(&variant.name).unwrap_or_default();
            let quartiles = Quartiles::of(&trials);
            // Trials of which none counts are shown against the median of their own.
            let rates: Vec<f64> = trials.iter().map(|of| of.forwarding_rate_pps).collect();
            let middle_pps = quartiles.map(|of| of.median).or_else(|| median(&rates));
            PlotRow {
                variant,
                mark: marks.get(&variant.name).copied().unwrap_or(Mark::Control),
                quartiles,
                middle_pps: middle_pps.filter(|pps| *pps > 0.0),
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

fn draw_panel(svg: &mut Svg, axis: &Axis, rows: &[PlotRow<'_>], stratum: Stratum, top: f64) -> f64 {
    svg.text("strong", (MARGIN, top + 16.0), &stratum.label());
    svg.text("small muted", (WORDS_LEFT, top + 16.0), "median");
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
    let labels = shortened_labels(&labels, shape.label_lines);
    for (index, (row, label)) in rows.iter().zip(&labels).enumerate() {
        let above = top + index as f64 * shape.height;
        let is_first_control = row.variant.control_of.is_some()
            && index > 0
            && rows[index - 1].variant.control_of.is_none();
        if is_first_control {
            draw_divider(svg, above);
        }
        draw_row(svg, axis, row, label, above + shape.height / 2.0, shape);
    }
    let caption = "forwarding rate of a trial, against the variant's own median";
    let middle = f64::midpoint(PLOT_LEFT, PLOT_RIGHT);
    svg.centred("small muted", (middle, bottom + 38.0), caption);
    bottom + 62.0
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
    draw_label(svg, label, shown, shape.label_lines, middle);
    let no_dots = if row.variant.unavailable.is_some() {
        Some("not available in this lab")
    } else if row.trials.is_empty() {
        Some("no trial")
    } else if row.middle_pps.is_none() {
        Some("half of the trials or more forwarded nothing")
    } else {
        None
    };
    if let Some(words) = no_dots {
        let x = PLOT_LEFT + 8.0;
        svg.text("small muted", (x, middle + 4.0), words);
        return;
    }
    draw_dots(svg, axis, row, middle + shape.dots_at, shape);
    let Some(quartiles) = row.quartiles else {
        let words = "no trial counts";
        svg.text("small muted", (WORDS_LEFT, middle + 4.0), words);
        return;
    };
    if quartiles.count > 1 {
        draw_box(svg, axis, row, &quartiles, middle + shape.box_at, shape);
    }
    let title = format!("{label}: {}", quartiles.words());
    let median = format::rate(quartiles.median);
    let trials = format::counted(row.trials.len() as u64, "trial");
    let trials = if quartiles.count == row.trials.len() {
        trials
    } else {
        format!("{} of {trials}", quartiles.count)
    };
    let is_low = shape.label_lines == 1;
    let y = middle + if is_low { 4.0 } else { -3.0 };
    svg.titled_text("strong", Anchor::Start, (WORDS_LEFT, y), &median, &title);
    if !is_low {
        let y = y + 15.0;
        svg.titled_text(
            "small muted",
            Anchor::Start,
            (WORDS_LEFT, y),
            &trials,
            &title,
        );
    }
}

fn draw_box(
    svg: &mut Svg,
    axis: &Axis,
    row: &PlotRow<'_>,
    quartiles: &Quartiles,
    y: f64,
    shape: RowShape,
) {
    let mark = row.mark;
    let x = |pps: f64| axis.nearest(row.percent(pps).unwrap_or(0.0));
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
    let percents: Vec<f64> = row
        .trials
        .iter()
        .filter_map(|trial| row.percent(trial.forwarding_rate_pps))
        .collect();
    let places: Vec<f64> = percents.iter().map(|at| axis.nearest(*at)).collect();
    let offsets = swarm(&places, 2.0 * shape.radius, shape.dots_reach);
    for (index, (trial, percent)) in row.trials.iter().zip(percents).enumerate() {
        let title = title(&row.variant.label, trial, percent);
        let at = (places[index], y + offsets[index]);
        if let Some(sign) = axis.beyond(percent) {
            svg.titled_text(
                "small muted",
                Anchor::Middle,
                (at.0, at.1 + 4.0),
                sign,
                &title,
            );
            continue;
        }
        let fill = Fill::of_trial(trial.counts);
        svg.point(row.mark, fill, at, shape.radius, &title);
    }
}

fn title(label: &str, trial: &TrialSection, percent: f64) -> String {
    let rate = format::rate(trial.forwarding_rate_pps);
    let percent = format::signed(percent, 2);
    let left_out = if trial.counts { "" } else { "; left out" };
    format!(
        "{label}, block {}: {rate} ({percent} %){left_out}",
        trial.block
    )
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
            let fewest = taken
                .iter()
                .enumerate()
                .min_by_key(|(_, (_, count))| *count);
            fewest.map_or(0, |(row, _)| row)
        });
        taken[row] = (place, taken[row].1 + 1);
        offsets[index] = rows[row];
    }
    offsets
}

fn key(report: &Report, is_cut: bool) -> String {
    let hollow = if report.trials.iter().any(|trial| !trial.counts) {
        " Hollow: block invalid or cut short, not in the box."
    } else {
        ""
    };
    let beyond = if is_cut {
        " ◂ or ▸: a trial beyond the end of the axis."
    } else {
        ""
    };
    format!(
        "Dot: a trial. Box: lower quartile, median and upper quartile of the trials that count, with a line \
         to the smallest and the largest.{hollow}{beyond}"
    )
}

/// Differences to the middle of each row, in percent of it.
struct Axis {
    scale: Scale,
}

impl Axis {
    fn new(rows: &[PlotRow<'_>]) -> Self {
        let of_trials = |row: &PlotRow<'_>| -> Vec<f64> {
            let rates = row.trials.iter().map(|trial| trial.forwarding_rate_pps);
            rates.filter_map(|pps| row.percent(pps)).collect()
        };
        let trials: Vec<f64> = rows.iter().flat_map(of_trials).collect();
        let half = if trials.iter().any(|percent| percent.abs() > 0.0) {
            HALF_WIDTH_MIN_PERCENT
        } else {
            HALF_WIDTH_USUAL_PERCENT
        };
        let ends: Vec<f64> = rows
            .iter()
            .filter_map(|row| Some((row, row.quartiles?)))
            .flat_map(|(row, of)| [row.percent(of.lower), row.percent(of.upper)])
            .flatten()
            .chain([-half, half])
            .collect();
        let (low, high) = span(&ends);
        // Single trials may widen the plot, and an extreme one may not flatten the rest.
        let reach = REACH * (high - low);
        let inside = |percent: &f64| (low - reach..=high + reach).contains(percent);
        let shown: Vec<f64> = trials
            .into_iter()
            .filter(inside)
            .chain([low, high])
            .collect();
        let (low, high) = span(&shown);
        let air = 0.05 * (high - low);
        Self {
            scale: Scale {
                values: (low - air, high + air),
                pixels: (PLOT_LEFT, PLOT_RIGHT),
            },
        }
    }

    /// Where a difference stands, or the end of the axis that is nearer to it.
    fn nearest(&self, percent: f64) -> f64 {
        let (left, right) = self.scale.pixels;
        self.scale.pixel(percent).clamp(left + 5.0, right - 5.0)
    }

    /// The sign at the end of the axis for a difference that lies beyond it.
    fn beyond(&self, percent: f64) -> Option<&'static str> {
        if self.scale.holds(percent) {
            None
        } else if percent < self.scale.values.0 {
            Some("◂")
        } else {
            Some("▸")
        }
    }

    fn draw_behind(&self, svg: &mut Svg, top: f64, bottom: f64, both_ends: bool) {
        let (low, high) = self.scale.values;
        let (values, decimals) = ticks(low, high, 7);
        for percent in values {
            let x = self.scale.pixel(percent);
            // The medians stand on the line of zero, which is thin so as not to hide them.
            let class = if percent.abs() < 1e-9 {
                "frame"
            } else {
                "grid"
            };
            svg.line(class, (x, top), (x, bottom + 4.0));
            let label = format!("{} %", format::signed(percent, decimals));
            svg.centred("small", (x, bottom + 18.0), &label);
            if both_ends {
                svg.centred("small", (x, top - 6.0), &label);
            }
        }
        svg.line("frame", (PLOT_LEFT, bottom), (PLOT_RIGHT, bottom));
    }
}

fn span(values: &[f64]) -> (f64, f64) {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (low, high)
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
}
