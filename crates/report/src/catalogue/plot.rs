//! The plot of a configuration's rates over time, or over the revisions of an operating system.

use std::collections::BTreeSet;

use fwdlab_catalogue::{Over, RateRow, Series};
use fwdlab_model::Stratum;

use super::{calendar, names};
use crate::format;
use crate::labels::shortened;
use crate::rate_panel::{LEFT, LEGEND_FONT, LegendItem, RIGHT, RatePanel, draw_legend};
use crate::svg::{Anchor, Fill, MARGIN, Mark, Scale, Svg, WIDTH, text_width, wrap};

/// How many series a plot can tell apart: so many have marks of their own.
pub const SERIES_MAX: usize = 30;

/// Points keep away from the plot's edges.
const AIR: f64 = 26.0;
const TICKS_MAX: usize = 7;
const SMALL_FONT: f64 = 11.0;
const LEGEND_LABEL_MAX: f64 = 380.0;
/// What the rates are of is named in at most so many lines, and so many topics or platforms.
const SUBJECT_LINES_MAX: usize = 2;
const SUBJECT_NAMES_MAX: usize = 4;
/// Series at the same place stand so far apart, and all of them within so much.
const APART: f64 = 6.0;
const APART_ALL: f64 = 36.0;

/// The plot of `fwdlab query --svg`, one panel an address family of at most [`SERIES_MAX`] series; rates whose place is not
/// known are left out and counted.
#[must_use]
pub fn series_svg(all: &[Series], over: Over) -> String {
    let heading = match over {
        Over::Time => "Forwarding rate over time",
        Over::Os => "Forwarding rate by revision of the operating system",
    };
    let mut svg = Svg::headed(heading);
    let subject = subject(all);
    let mut y = 40.0;
    let room = WIDTH - 2.0 * MARGIN;
    for line in wrap(&subject, LEGEND_FONT, room, SUBJECT_LINES_MAX) {
        y += 10.0;
        svg.titled_text("muted", Anchor::Start, (MARGIN, y), &line, &subject);
        y += 8.0;
    }
    let names = names(&all.iter().collect::<Vec<_>>());
    let axis = Axis::of(all, over);
    let mut families: Vec<&str> = all.iter().map(|series| series.family.as_str()).collect();
    families.sort_unstable();
    families.dedup();
    let configurations = distinct(&names);
    let marked: Vec<(&Series, usize)> = all
        .iter()
        .zip(&names)
        .map(|(series, name)| {
            let mut known = configurations.iter();
            (series, known.position(|known| *known == name).unwrap_or(0))
        })
        .collect();

    for family in families {
        let of_family: Vec<(&Series, usize)> = marked
            .iter()
            .copied()
            .filter(|(series, _)| series.family == family)
            .collect();
        y = draw_panel(&mut svg, &axis, family, &of_family, configurations.len(), y);
    }
    let caption = "point: median; thick: from the first to the third quartile; thin: from the smallest \
                   to the largest observation";
    let middle = f64::midpoint(LEFT, RIGHT);
    svg.centred("small muted", (middle, y + 4.0), caption);
    y += 22.0;
    let left_out = all
        .iter()
        .flat_map(|series| &series.rates)
        .filter(|rate| axis.place(rate).is_none())
        .count();
    if left_out > 0 {
        let what = match over {
            Over::Time => "date",
            Over::Os => "revision",
        };
        let note = format!(
            "left out: {} whose {what} is not known",
            format::counted(left_out as u64, "rate")
        );
        svg.centred("small muted", (middle, y), &note);
        y += 18.0;
    }
    y = draw_legend(&mut svg, &legend(&configurations), y + 8.0);
    let description = format!(
        "{subject}. Medians of {} in {}",
        format::counted(
            all.iter().map(|series| series.rates.len() as u64).sum(),
            "result"
        ),
        format::counted(configurations.len() as u64, "configuration")
    );
    svg.finish(y, heading, &description)
}

/// What the rates are of: the topics and the platforms.
fn subject(all: &[Series]) -> String {
    let topics = all.iter().map(|series| Some(series.topic.as_str()));
    let platforms = all.iter().map(|series| series.platform.as_deref());
    format!(
        "{}; {}",
        listed("Topic", topics),
        listed("platform", platforms)
    )
}

/// `topic a`, `topics a, b, c, d and 2 more`.
fn listed<'a>(noun: &str, names: impl Iterator<Item = Option<&'a str>>) -> String {
    let names: BTreeSet<&str> = names.map(|name| name.unwrap_or("unknown")).collect();
    let shown: Vec<&str> = names.iter().copied().take(SUBJECT_NAMES_MAX).collect();
    let more = match names.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let plural = if names.len() == 1 { "" } else { "s" };
    format!("{noun}{plural} {}{more}", shown.join(", "))
}

fn distinct(names: &[String]) -> Vec<&String> {
    let mut distinct: Vec<&String> = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}

/// Where a rate stands from left to right.
struct Axis {
    scale: Scale,
    kind: AxisKind,
}

enum AxisKind {
    Time,
    /// The revisions, in order.
    Os(Vec<String>),
}

impl Axis {
    fn of(all: &[Series], over: Over) -> Self {
        let rates = || all.iter().flat_map(|series| &series.rates);
        let pixels = (LEFT + AIR, RIGHT - AIR);
        match over {
            Over::Time => {
                let moments = rates().filter_map(moment_s);
                let (low, high) = moments
                    .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), s| {
                        (f64::min(low, s), f64::max(high, s))
                    });
                Self {
                    scale: Scale {
                        values: (low, high),
                        pixels,
                    },
                    kind: AxisKind::Time,
                }
            }
            Over::Os => {
                let revisions = fwdlab_catalogue::revisions(all);
                Self {
                    scale: Scale {
                        values: (0.0, revisions.len().saturating_sub(1) as f64),
                        pixels,
                    },
                    kind: AxisKind::Os(revisions),
                }
            }
        }
    }

    /// In pixels.
    fn place(&self, rate: &RateRow) -> Option<f64> {
        let value = match &self.kind {
            AxisKind::Time => moment_s(rate)?,
            AxisKind::Os(revisions) => {
                let os = rate.os.as_ref()?;
                revisions.iter().position(|revision| revision == os)? as f64
            }
        };
        Some(self.scale.pixel(value))
    }

    /// Pixels, and what to write below.
    fn marks(&self) -> Vec<(f64, String)> {
        match &self.kind {
            AxisKind::Time => {
                let (low, high) = self.scale.values;
                if !low.is_finite() {
                    return vec![];
                }
                if high <= low {
                    return vec![(self.scale.pixel(low), calendar::day(low))];
                }
                calendar::marks(low, high, TICKS_MAX)
                    .into_iter()
                    .map(|(second, text)| (self.scale.pixel(second), text))
                    .collect()
            }
            AxisKind::Os(revisions) => (0_u32..)
                .zip(revisions)
                .map(|(index, revision)| (self.scale.pixel(f64::from(index)), revision.clone()))
                .collect(),
        }
    }
}

fn moment_s(rate: &RateRow) -> Option<f64> {
    rate.date.as_deref().and_then(calendar::middle_s)
}

fn draw_panel(
    svg: &mut Svg,
    axis: &Axis,
    family: &str,
    of_family: &[(&Series, usize)],
    configurations: usize,
    top: f64,
) -> f64 {
    let rates = || of_family.iter().flat_map(|(series, _)| &series.rates);
    let highest = rates().map(|rate| rate.max_pps).fold(0.0, f64::max);
    let lowest = rates()
        .map(|rate| rate.min_pps)
        .fold(f64::INFINITY, f64::min);
    let stratum: Result<Stratum, _> = family.parse();
    let heading = stratum.map_or_else(|_| "Address family not known".to_owned(), Stratum::label);
    let panel = RatePanel::new(svg, &heading, top, lowest, highest);
    panel.draw_axis(svg);
    let below = draw_marks(svg, axis, panel.bottom);

    let apart = (APART_ALL / configurations.max(1) as f64).min(APART);
    for &(series, index) in of_family {
        let shift = (index as f64 - (configurations as f64 - 1.0) / 2.0) * apart;
        let placed: Vec<(f64, &RateRow)> = series
            .rates
            .iter()
            .filter_map(|rate| Some((axis.place(rate)? + shift, rate)))
            .collect();
        let mark = Mark::Variant(u32::try_from(index).unwrap_or(u32::MAX));
        let medians: Vec<(f64, f64)> = placed
            .iter()
            .map(|(x, rate)| (*x, panel.y(rate.median_pps)))
            .collect();
        svg.trace(mark, &medians);
        for (x, rate) in placed {
            let all = (rate.min_pps, rate.max_pps);
            let half = (rate.first_quartile_pps, rate.third_quartile_pps);
            for ((low, high), is_thick) in [(all, false), (half, true)] {
                svg.spread(mark, x, (panel.y(low), panel.y(high)), is_thick);
            }
            let median = (x, panel.y(rate.median_pps));
            svg.point(mark, Fill::Solid, median, 4.0, &title(rate));
        }
    }
    panel.bottom + below
}

/// Writes below the plot's foot what stands where, thinned out where it would touch; returns how far down
/// that goes.
fn draw_marks(svg: &mut Svg, axis: &Axis, bottom: f64) -> f64 {
    let marks = axis.marks();
    let slot = marks
        .windows(2)
        .map(|pair| pair[1].0 - pair[0].0)
        .fold(f64::INFINITY, f64::min)
        .min(180.0);
    let is_time = matches!(axis.kind, AxisKind::Time);
    let widest = marks
        .iter()
        .map(|(_, text)| text_width(text, SMALL_FONT))
        .fold(0.0, f64::max);
    let needed = if is_time { widest } else { widest.min(104.0) } + 8.0;
    let every = (needed / slot).ceil().max(1.0);
    let mut lines_most = 1;
    for (index, (x, text)) in marks.iter().enumerate() {
        svg.line("frame", (*x, bottom), (*x, bottom + 4.0));
        if (index as f64 % every).abs() > 0.5 {
            continue;
        }
        let room = (slot * every - 8.0).max(needed - 8.0);
        let lines = wrap(text, SMALL_FONT, room, 3);
        lines_most = lines_most.max(lines.len());
        for (line, y) in lines.iter().zip([17.0, 30.0, 43.0]) {
            svg.titled_text("small", Anchor::Middle, (*x, bottom + y), line, text);
        }
    }
    24.0 + 13.0 * lines_most as f64
}

fn title(rate: &RateRow) -> String {
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    format!(
        "{}/{}, {}: median {} of {}, quartiles {} and {}; {}, {}",
        rate.topic,
        rate.label,
        rate.variant_label,
        format::rate(rate.median_pps),
        format::counted(rate.observations as u64, "observation"),
        format::rate(rate.first_quartile_pps),
        format::rate(rate.third_quartile_pps),
        known(&rate.date),
        known(&rate.os)
    )
}

fn legend(configurations: &[&String]) -> Vec<LegendItem> {
    let labels: Vec<&str> = configurations.iter().map(|name| name.as_str()).collect();
    let shown = shortened(&labels, &|label| {
        text_width(label, LEGEND_FONT) <= LEGEND_LABEL_MAX
    });
    let marked = (0_u32..).map(|index| Some((Mark::Variant(index), Fill::Solid)));
    let items = marked.zip(shown).zip(labels);
    items
        .map(|((point, label), whole)| LegendItem {
            point,
            label,
            title: whole.to_owned(),
        })
        .collect()
}
