//! The plot of one comparison's effects: estimate, interval and the single blocks of each variant.

use crate::colours::Tone;
use crate::compare::{CompareGroup, CompareReport};
use crate::effect_axis::{Axis, Beyond};
use crate::format;
use crate::report::{ComparisonSection, Effect, Report, Row, VerdictSection};
use crate::sentences;
use crate::svg::{Anchor, Fill, MARGIN, Mark, Svg, WIDTH, wrap};
use crate::traffic_effects::{self, TrafficSection};
use crate::trials_plot::marks;
use crate::variant_rows::{PLOT_LEFT, draw_divider, draw_key, draw_label, shortened_labels};

const LABEL_LINES: usize = 2;
const PLOT_RIGHT: f64 = 622.0;
const WORDS_LEFT: f64 = 640.0;
const ROW_HEIGHT: f64 = 46.0;
const AGAINST_FONT: f64 = 12.0;
const HEADING_FONT: f64 = 14.0;

/// What is drawn: a baseline's name and rates, and what was compared with it.
struct Plot<'a> {
    heading: String,
    against: Option<String>,
    threshold_percent: f64,
    rows: Vec<PlotRow<'a>>,
    basis: Basis,
}

/// What the large marks rest on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Basis {
    Blocks,
    Observations,
}

/// A variant to be drawn, the control last.
struct PlotRow<'a> {
    row: &'a Row,
    label: &'a str,
    is_control: bool,
    is_unavailable: bool,
    mark: Mark,
}

/// The plot of one comparison's effects; [`ComparisonSection::plot`] is its file's name.
#[must_use]
pub fn effects_svg(report: &Report, comparison: &ComparisonSection) -> String {
    let marks = marks(report);
    let control = comparison
        .control
        .iter()
        .map(|control| (&control.row, true));
    let variants = comparison.rows.iter().skip(1).map(|row| (row, false));
    let rows = variants.chain(control).map(|(row, is_control)| PlotRow {
        row,
        label: report.label(&row.variant),
        is_control,
        is_unavailable: report.is_unavailable(&row.variant),
        mark: judged(
            row,
            marks.get(&row.variant).copied().unwrap_or(Mark::Control),
        ),
    });
    let plot = Plot {
        heading: sentences::heading(report, comparison).unwrap_or_else(|| report.question.clone()),
        against: comparison
            .baseline()
            .map(|baseline| baseline_words(report.label(&baseline.variant), baseline)),
        threshold_percent: report.design.threshold_percent,
        rows: rows.collect(),
        basis: Basis::Blocks,
    };
    plot.draw()
}

/// The plot of the effects of one comparison under each traffic; [`TrafficSection::plot`] is its file's name.
#[must_use]
pub fn traffic_svg(report: &Report, section: &TrafficSection) -> String {
    let marks = marks(report);
    let compared: Vec<_> = traffic_effects::compared(report, section).collect();
    let labels: Vec<String> = compared
        .iter()
        .map(|(row, traffic)| format!("{}, {traffic}", report.label(&row.variant)))
        .collect();
    let rows = compared
        .iter()
        .zip(&labels)
        .map(|((row, _), label)| PlotRow {
            row,
            label,
            is_control: false,
            is_unavailable: false,
            mark: judged(
                row,
                marks.get(&row.variant).copied().unwrap_or(Mark::Control),
            ),
        });
    let first = section.comparisons.first();
    let baseline = first.and_then(|&index| report.comparisons.get(index)?.baseline());
    let plot = Plot {
        heading: sentences::traffic_heading(section),
        against: baseline.map(|baseline| report.label(&baseline.variant).to_owned()),
        threshold_percent: report.design.threshold_percent,
        rows: rows.collect(),
        basis: Basis::Blocks,
    };
    plot.draw()
}

/// Draws what loose observations say against their baseline.
pub(crate) fn compared_plot(
    report: &CompareReport,
    group: &CompareGroup,
    heading: String,
) -> String {
    let rows = (0..).zip(&group.rows).skip(1);
    let rows = rows.map(|(index, row)| PlotRow {
        row: &row.row,
        label: &row.label,
        is_control: false,
        is_unavailable: false,
        mark: judged(&row.row, Mark::Variant(index)),
    });
    let plot = Plot {
        heading,
        against: group
            .rows
            .first()
            .map(|baseline| baseline_words(&baseline.label, &baseline.row)),
        threshold_percent: report.threshold_percent,
        rows: rows.collect(),
        basis: Basis::Observations,
    };
    plot.draw()
}

impl Plot<'_> {
    fn draw(&self) -> String {
        let effects = self.rows.iter().filter_map(|row| row.row.effect.as_ref());
        let axis = Axis::new(self.threshold_percent, effects, (PLOT_LEFT, PLOT_RIGHT));
        let mut svg = Svg::default();
        let mut y = 30.0;
        for line in wrap(&self.heading, HEADING_FONT, WIDTH - 2.0 * MARGIN, 2) {
            svg.titled_text("heading", Anchor::Start, (MARGIN, y), &line, &self.heading);
            y += 19.0;
        }
        if let Some(against) = &self.against {
            let against = format!("against {against}");
            let line = wrap(&against, AGAINST_FONT, WIDTH - 2.0 * MARGIN, 1).concat();
            svg.titled_text("muted", Anchor::Start, (MARGIN, y), &line, &against);
            y += 16.0;
        }

        let top = y;
        let bottom = top + self.rows.len().max(1) as f64 * ROW_HEIGHT;
        draw_behind(&axis, &mut svg, top, bottom);
        let labels: Vec<&str> = self.rows.iter().map(|row| row.label).collect();
        let labels = shortened_labels(&labels, LABEL_LINES);
        for (index, (row, label)) in self.rows.iter().zip(&labels).enumerate() {
            let middle = top + (index as f64 + 0.5) * ROW_HEIGHT;
            if row.is_control && index > 0 {
                draw_divider(&mut svg, middle - ROW_HEIGHT / 2.0);
            }
            draw_row(&mut svg, &axis, row, label, middle);
        }
        if self.rows.is_empty() {
            let middle = top + ROW_HEIGHT / 2.0 + 4.0;
            svg.text("muted", (MARGIN, middle), "nothing was compared");
        }

        let y = bottom + 38.0;
        let caption = "change of the forwarding rate (logarithmic axis)";
        svg.centred("small muted", (axis.middle(), y), caption);
        let y = draw_key(&mut svg, &self.key(&axis), 3, y + 22.0);
        svg.finish(y, &self.heading, &self.description())
    }

    fn key(&self, axis: &Axis) -> String {
        let mut variants: Vec<String> = Vec::new();
        let mut control = String::new();
        for row in &self.rows {
            let Some(interval) = row.row.effect.as_ref().and_then(Effect::shown_interval) else {
                continue;
            };
            let confidence = format!("{} %", format::short(interval.confidence_percent, 1));
            if row.is_control {
                control = format!(" (of the control: {confidence})");
            } else if !variants.contains(&confidence) {
                variants.push(confidence);
            }
        }
        let interval = match (variants.is_empty(), self.basis) {
            (false, _) => format!("{} interval", variants.join(" or ")),
            (true, Basis::Blocks) => {
                "interval, which goes on for ever with so few blocks".to_owned()
            }
            (true, Basis::Observations) => "interval".to_owned(),
        };
        let marks = match self.basis {
            Basis::Blocks => format!(
                "Large: Hodges-Lehmann estimate over the blocks, with its {interval}{control}. Small: single blocks."
            ),
            Basis::Observations => {
                format!("Mark: ratio of the geometric means, with its {interval}.")
            }
        };
        let blocks = self.rows.iter().filter_map(|row| row.row.effect.as_ref());
        let mut blocks = blocks.flat_map(|effect| &effect.blocks);
        let beyond = if blocks.any(|block| axis.place(block.percent).is_err()) {
            " ◂ or ▸: a block beyond the end of the axis."
        } else {
            ""
        };
        let (_, is_widened) = axis.band();
        format!(
            "{marks}{beyond} Band: ±{} %{}: changes inside it are treated as irrelevant.",
            format::short(self.threshold_percent, 3),
            if is_widened {
                " (drawn wider, to be seen)"
            } else {
                ""
            }
        )
    }

    fn description(&self) -> String {
        let sentences: Vec<String> = self
            .rows
            .iter()
            .filter_map(|row| {
                let effect = row.row.effect.as_ref()?;
                Some(format!("{}: {}", row.label, format::effect(effect)))
            })
            .collect();
        sentences.join("; ")
    }
}

/// The mark of a row in the colour of its verdict; what has none shows no difference.
pub(crate) fn judged(row: &Row, mark: Mark) -> Mark {
    mark.judged(row.verdict.as_ref().map_or(Tone::Same, Tone::of))
}

fn baseline_words(label: &str, baseline: &Row) -> String {
    match sentences::rates(baseline) {
        Some(rates) => format!("{label}: {rates}"),
        None => label.to_owned(),
    }
}

/// Shape: `shown` is the label as there is room for it.
fn draw_row(svg: &mut Svg, axis: &Axis, row: &PlotRow<'_>, shown: &str, middle: f64) {
    let label = row.label;
    draw_label(svg, label, shown, LABEL_LINES, middle);
    let Some(effect) = &row.row.effect else {
        let words = if row.is_unavailable {
            "not available in this lab"
        } else {
            "no effect measured"
        };
        svg.text("muted", (WORDS_LEFT, middle + 4.0), words);
        return;
    };
    for block in &effect.blocks {
        let title = format!(
            "{label}, block {}: {} %",
            block.block,
            format::signed(
                block.percent,
                format::effect_decimals(effect.half_width_percent())
            )
        );
        match axis.place(block.percent) {
            Ok(x) => svg.point(row.mark, Fill::Faint, (x, middle + 12.0), 2.6, &title),
            Err(beyond) => {
                let (x, sign) = edge(axis, beyond);
                svg.titled_text(
                    "small muted",
                    Anchor::Middle,
                    (x, middle + 16.0),
                    sign,
                    &title,
                );
            }
        }
    }
    let interval = effect.shown_interval();
    let from = axis.end(interval.map(|ends| ends.low_percent), Beyond::Left);
    let to = axis.end(interval.map(|ends| ends.high_percent), Beyond::Right);
    svg.whisker(row.mark, middle - 3.0, from, to);
    let title = format!("{label}: {}", format::effect(effect));
    if let Ok(x) = axis.place(effect.estimate_percent) {
        svg.point(row.mark, Fill::Solid, (x, middle - 3.0), 5.0, &title);
    }
    let verdict = if row.is_control {
        Some("A/A control".to_owned())
    } else {
        row.row.verdict.as_ref().map(VerdictSection::said)
    };
    let y = middle + if verdict.is_some() { -3.0 } else { 4.0 };
    svg.text("strong", (WORDS_LEFT, y), &format::effect(effect));
    if let Some(verdict) = verdict {
        svg.text(
            &format!("small {}", row.mark.class()),
            (WORDS_LEFT, middle + 12.0),
            &verdict,
        );
    }
}

/// Where a value that leaves the plot is shown, and by what.
fn edge(axis: &Axis, beyond: Beyond) -> (f64, &'static str) {
    match beyond {
        Beyond::Left => (axis.scale.pixels.0 + 5.0, "◂"),
        Beyond::Right => (axis.scale.pixels.1 - 5.0, "▸"),
    }
}

fn draw_behind(axis: &Axis, svg: &mut Svg, top: f64, bottom: f64) {
    let ((left, right), _) = axis.band();
    svg.rect("threshold", left, top, right - left, bottom - top);
    let (marks, decimals) = axis.marks();
    for percent in marks {
        let x = axis.pixel(percent);
        let class = if percent.abs() < 1e-9 { "zero" } else { "grid" };
        svg.line(class, (x, top), (x, bottom + 4.0));
        let label = format!("{} %", format::signed(percent, decimals));
        svg.centred("small", (x, bottom + 18.0), &label);
    }
    svg.line(
        "frame",
        (axis.scale.pixels.0, bottom),
        (axis.scale.pixels.1, bottom),
    );
}
