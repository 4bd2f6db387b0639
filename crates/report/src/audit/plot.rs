//! The plots of an audit.

use super::AuditReport;
use super::noise::{NoiseRow, NoiseSection};
use super::quantiles::Quantiles;
use super::verdicts::{MethodTally, VerdictsSection, WordTally};
use crate::format::{count, counted, part, short};
use crate::labels::shortened;
use crate::svg::{Anchor, Fill, MARGIN, Mark, Scale, Svg, WIDTH, text_width};

pub(super) const VERDICTS: &str = "verdicts.svg";
pub(super) const NOISE: &str = "noise.svg";
pub(super) const APART: &str = "apart.svg";

const LABELS: f64 = 230.0;
const PLOT_LEFT: f64 = MARGIN + LABELS;
const PLOT_RIGHT: f64 = WIDTH - MARGIN - 60.0;
const BARS_RIGHT: f64 = WIDTH - MARGIN - 140.0;
const ROW: f64 = 24.0;
const BAR: f64 = 13.0;
const FONT: f64 = 12.0;
/// So many groups of a kind are drawn, those of the most datasets.
const GROUPS_MAX: usize = 16;
/// What can be distinguished from nothing, and what is off the plot, in percent.
const PERCENT_RANGE: (f64, f64) = (0.02, 100.0);
const PERCENT_TICKS: [f64; 12] = [
    0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0,
];

/// The plots that there is something for.
pub(super) fn plots(report: &AuditReport) -> Vec<(&'static str, String)> {
    let mut plots = Vec::new();
    if !report.verdicts.comparisons.is_empty() {
        plots.push((VERDICTS, verdicts(&report.verdicts)));
    }
    if let Some(noise) = &report.noise {
        plots.push((NOISE, groups(noise)));
    }
    if has_apart(report) {
        plots.push((APART, apart(report)));
    }
    plots
}

/// Whether there are two sessions to draw a curve of.
pub(super) fn has_apart(report: &AuditReport) -> bool {
    report.sessions.is_some()
}

/// Parts of a whole, in percent from left to right; behind the longest bar there is room for its figures.
fn percent_scale() -> Scale {
    Scale {
        values: (0.0, 100.0),
        pixels: (PLOT_LEFT, BARS_RIGHT),
    }
}

fn verdicts(section: &VerdictsSection) -> String {
    let heading = "Published comparisons, judged again";
    let mut svg = Svg::headed(heading);
    let mut y = words(&mut svg, section, 50.0);
    for (is_corrected, heading) in [
        (false, "Judged one by one"),
        (true, "Judged together, block by block"),
    ] {
        let tallies: Vec<&MethodTally> = section.tallies(is_corrected).collect();
        if !tallies.is_empty() {
            y = methods(&mut svg, heading, &tallies, y + 14.0);
        }
    }
    y = percent_axis(&mut svg, y) + 8.0;
    let mut x = MARGIN;
    for (mark, text) in [
        (0, "of the differences that are said, it finds"),
        (1, "of those said not to be proven, it finds"),
    ] {
        x = legend_entry(&mut svg, mark, text, x, y);
    }
    svg.finish(
        y + 16.0,
        heading,
        "How many published comparisons each method decides how",
    )
}

/// What fwdlab says, where a difference is said and where none is; returns how far down that goes.
fn words(svg: &mut Svg, section: &VerdictsSection, top: f64) -> f64 {
    let scale = percent_scale();
    svg.text("strong", (MARGIN, top + 10.0), "What fwdlab says");
    let mut y = top + 22.0;
    for (said, is_said) in [("a difference is said", true), ("none is proven", false)] {
        let count_of = |tally: &WordTally| if is_said { tally.said } else { tally.unsaid };
        let all: usize = section.words.iter().map(count_of).sum();
        svg.text_before("", (PLOT_LEFT - 10.0, y + 11.0), said);
        let mut before = 0;
        for (index, tally) in (0_u32..).zip(&section.words) {
            let some = count_of(tally);
            let [from, to] = [before, before + some]
                .map(|edge| scale.pixel(edge as f64 / all.max(1) as f64 * 100.0));
            before += some;
            if some > 0 {
                svg.bar(Mark::Variant(index), from, y, to - from, BAR);
                let title = format!(
                    "{}: {} of {}",
                    tally.verdict,
                    count(some as u64),
                    count(all as u64)
                );
                svg.titled_text(
                    "small",
                    Anchor::Middle,
                    (f64::midpoint(from, to), y + BAR + 12.0),
                    &label_in(to - from, some),
                    &title,
                );
            }
        }
        let all = count(all as u64);
        svg.text("small muted", (BARS_RIGHT + 8.0, y + 11.0), &all);
        y += ROW + 14.0;
    }
    let mut x = MARGIN;
    for (index, tally) in (0_u32..).zip(&section.words) {
        x = legend_entry(svg, index, tally.verdict.words(), x, y + 4.0);
    }
    y + 18.0
}

/// A count where there is room for it.
fn label_in(width: f64, number: usize) -> String {
    let text = count(number as u64);
    if text_width(&text, 11.0) < width {
        text
    } else {
        String::new()
    }
}

fn methods(svg: &mut Svg, heading: &str, tallies: &[&MethodTally], top: f64) -> f64 {
    let scale = percent_scale();
    svg.text("strong", (MARGIN, top + 10.0), heading);
    let mut y = top + 20.0;
    for tally in tallies {
        svg.text_before("", (PLOT_LEFT - 10.0, y + 15.0), &tally.method);
        for (index, some, all) in [
            (0, tally.said_kept, tally.said),
            (1, tally.unsaid_found, tally.unsaid),
        ] {
            if all == 0 {
                continue;
            }
            let percent = some as f64 / all as f64 * 100.0;
            let at = y + f64::from(index) * 12.0 + 1.0;
            let end = scale.pixel(percent);
            svg.bar(Mark::Variant(index), PLOT_LEFT, at, end - PLOT_LEFT, 8.0);
            let text = format!("{} ({some} of {all})", part(percent));
            svg.text("small", (end + 6.0, at + 8.0), &text);
        }
        y += ROW + 9.0;
    }
    y
}

fn percent_axis(svg: &mut Svg, y: f64) -> f64 {
    let scale = percent_scale();
    svg.line("frame", (PLOT_LEFT, y), (BARS_RIGHT, y));
    for percent in [0.0, 25.0, 50.0, 75.0, 100.0] {
        let x = scale.pixel(percent);
        svg.line("frame", (x, y), (x, y + 4.0));
        let label = format!("{percent:.0} %");
        svg.centred("small", (x, y + 17.0), &label);
    }
    y + 32.0
}

/// Returns where the next one begins.
fn legend_entry(svg: &mut Svg, index: u32, text: &str, x: f64, y: f64) -> f64 {
    svg.bar(Mark::Variant(index), x, y - 9.0, 10.0, 10.0);
    svg.text("", (x + 15.0, y), text);
    x + 15.0 + text_width(text, FONT) + 16.0
}

/// Percents over several powers of ten.
struct LogScale(Scale);

impl LogScale {
    fn new(pixels: (f64, f64)) -> Self {
        let (low, high) = PERCENT_RANGE;
        Self(Scale {
            values: (low.log10(), high.log10()),
            pixels,
        })
    }

    /// What is off the plot stands at its edge.
    fn pixel(&self, percent: f64) -> f64 {
        let (low, high) = PERCENT_RANGE;
        self.0.pixel(percent.clamp(low, high).log10())
    }

    fn grid(&self, svg: &mut Svg, top: f64, bottom: f64) {
        for percent in PERCENT_TICKS {
            let x = self.pixel(percent);
            svg.line("grid", (x, top), (x, bottom));
            let label = format!("{} %", short(percent, 2));
            svg.centred("small", (x, bottom + 15.0), &label);
        }
        svg.line(
            "frame",
            (self.0.pixels.0, bottom),
            (self.0.pixels.1, bottom),
        );
    }
}

fn groups(noise: &NoiseSection) -> String {
    let kinds = [
        ("Platform", largest(&noise.platforms)),
        ("Network interface card", largest(&noise.nics)),
        ("Topic", largest(&noise.topics)),
        ("Year", noise.years.iter().collect()),
    ];
    let heading = "Noise between runs: coefficient of variation of a dataset";
    let mut svg = Svg::headed(heading);
    let top = 46.0;
    let rows: usize = kinds.iter().map(|(_, rows)| rows.len()).sum();
    let headings = kinds.iter().filter(|(_, rows)| !rows.is_empty()).count();
    let bottom = top + ROW * (1 + rows + headings) as f64 + 6.0;
    let scale = LogScale::new((PLOT_LEFT, PLOT_RIGHT));
    scale.grid(&mut svg, top, bottom);
    svg.text("small muted", (PLOT_RIGHT + 8.0, top), "datasets");
    let mut y = top + ROW / 2.0;
    range(&mut svg, &scale, &noise.all, "all", 0, y);
    for ((kind, members), mark) in kinds.iter().zip(1..) {
        if members.is_empty() {
            continue;
        }
        y += ROW;
        svg.text("strong", (MARGIN, y + 8.0), kind);
        let names: Vec<&str> = members.iter().map(|row| row.name.as_str()).collect();
        let names = shortened(&names, &|name| text_width(name, FONT) <= LABELS - 14.0);
        for (row, name) in members.iter().zip(&names) {
            y += ROW;
            range(&mut svg, &scale, row, name, mark, y);
        }
    }
    let y = bottom + 34.0;
    let caption = "point: median dataset; thick: the half in the middle; thin: four fifths of all";
    let middle = f64::midpoint(PLOT_LEFT, PLOT_RIGHT);
    svg.centred("small muted", (middle, y), caption);
    let description = format!(
        "Quantiles of {} by platform, card, topic and year",
        counted(noise.all.cv_percent.count as u64, "dataset")
    );
    svg.finish(y + 16.0, heading, &description)
}

/// Those of the most datasets, by name.
fn largest(rows: &[NoiseRow]) -> Vec<&NoiseRow> {
    let mut sizes: Vec<usize> = rows.iter().map(|row| row.cv_percent.count).collect();
    sizes.sort_unstable_by(|one, other| other.cmp(one));
    let least = sizes.get(GROUPS_MAX).copied().unwrap_or(0);
    let is_large = |row: &&NoiseRow| row.cv_percent.count > least;
    rows.iter().filter(is_large).collect()
}

fn range(svg: &mut Svg, scale: &LogScale, row: &NoiseRow, name: &str, mark: u32, y: f64) {
    let cv = &row.cv_percent;
    svg.titled_text(
        "",
        Anchor::End,
        (PLOT_LEFT - 10.0, y + 4.0),
        name,
        &row.name,
    );
    let mark = Mark::Variant(mark);
    let (thin, thick) = ((cv.p10, cv.p90), (cv.p25, cv.p75));
    for ((from, to), is_thick) in [(thin, false), (thick, true)] {
        svg.span(mark, y, (scale.pixel(from), scale.pixel(to)), is_thick);
    }
    svg.point(
        mark,
        Fill::Solid,
        (scale.pixel(cv.p50), y),
        4.5,
        &title(row, cv),
    );
    let datasets = count(cv.count as u64);
    svg.text("small muted", (PLOT_RIGHT + 8.0, y + 4.0), &datasets);
}

fn title(row: &NoiseRow, cv: &Quantiles) -> String {
    format!(
        "{}: median {}, half of them between {} and {}, a tenth above {}",
        row.name,
        part(cv.p50),
        part(cv.p25),
        part(cv.p75),
        part(cv.p90)
    )
}

/// How many are closer together than so much, of everything that should be the same.
fn apart(report: &AuditReport) -> String {
    let mut curves: Vec<(&str, Vec<f64>)> = Vec::new();
    if let Some(within) = &report.within {
        curves.push((
            "seconds of a run: standard deviation",
            within.deviations_percent.clone(),
        ));
    }
    if let Some(tails) = &report.tails {
        let off = tails.off_percent.iter().map(|off| off.abs()).collect();
        curves.push(("a run, off the median of the others of its dataset", off));
    }
    if let Some(sessions) = &report.sessions {
        curves.push((
            "medians of the same in two sessions",
            sessions
                .pairs
                .iter()
                .map(|pair| pair.apart_percent)
                .collect(),
        ));
    }
    let heading = "How far apart things are that should be the same";
    let mut svg = Svg::headed(heading);
    let (left, top, bottom) = (64.0, 50.0, 350.0);
    let scale = LogScale::new((left, WIDTH - MARGIN - 10.0));
    scale.grid(&mut svg, top, bottom);
    let up = Scale {
        values: (0.0, 100.0),
        pixels: (bottom, top),
    };
    for percent in [0.0, 25.0, 50.0, 75.0, 100.0] {
        let y = up.pixel(percent);
        svg.line("grid", (left, y), (scale.0.pixels.1, y));
        svg.text_before("small", (left - 8.0, y + 4.0), &format!("{percent:.0} %"));
    }
    svg.text("small muted", (left, top - 6.0), "closer than that");
    let mut y = bottom + 40.0;
    for (index, (name, values)) in (0_u32..).zip(&mut curves) {
        values.sort_by(f64::total_cmp);
        let mark = Mark::Variant(index);
        svg.curve(mark, &steps(values, &scale, &up));
        let text = format!("{name} ({})", count(values.len() as u64));
        legend_entry(&mut svg, index, &text, MARGIN, y);
        y += 20.0;
    }
    svg.finish(
        y,
        heading,
        "Cumulative distributions: within a run, between runs, between sessions",
    )
}

/// The part of sorted values below each place of the plot, at most one point for every pixel.
fn steps(sorted: &[f64], scale: &LogScale, up: &Scale) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (index, value) in sorted.iter().enumerate() {
        let x = scale.pixel(*value);
        let y = up.pixel((index + 1) as f64 / sorted.len() as f64 * 100.0);
        match points.last_mut() {
            Some(last) if x - last.0.floor() < 1.0 => *last = (x, y),
            _ => points.push((x, y)),
        }
    }
    points
}
