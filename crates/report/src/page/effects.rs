//! All variants with their effects: a table that is a plot, so that sorting and filtering moves both.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::figures::{figure, figure_or_dash, interval};
use crate::colours::Tone;
use crate::effect_axis::Axis;
use crate::effects_plot::judged;
use crate::format;
use crate::report::{ComparisonSection, Effect, Report, Row};
use crate::sentences;
use crate::svg::Mark;
use crate::trials_plot::marks;

/// The plot's ends, in its own units; the browser makes it as wide as there is room.
const PIXELS: (f64, f64) = (8.0, 412.0);
const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 36.0;
const MIDDLE: f64 = 14.0;
/// Where the single blocks stand.
const BLOCKS: f64 = 28.0;

pub(super) fn section(report: &Report) -> Markup {
    html! {
        section id="effects" aria-labelledby="effects-heading" {
            h2 id="effects-heading" { "Effects" }
            p.filter {
                label for="filter" { "Filter variants" }
                input id="filter" type="search" placeholder="part of a name, level or verdict" autocomplete="off" spellcheck="false";
                output id="filtered" for="filter" aria-live="polite" {}
            }
            @for (index, comparison) in report.comparisons.iter().enumerate() {
                (of_comparison(report, index, comparison))
            }
            @if report.comparisons.is_empty() {
                p { "Nothing was compared." }
            }
        }
    }
}

/// A row of the table: where it stands in `report.json`, and what it is.
struct TableRow<'a> {
    record: String,
    row: &'a Row,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Baseline,
    Variant,
    Control,
}

fn of_comparison(report: &Report, index: usize, comparison: &ComparisonSection) -> Markup {
    let at = format!("/comparisons/{index}");
    let rows = comparison
        .rows
        .iter()
        .enumerate()
        .map(|(row_index, row)| TableRow {
            record: format!("{at}/rows/{row_index}"),
            row,
            kind: if row_index == 0 {
                Kind::Baseline
            } else {
                Kind::Variant
            },
        });
    let control = comparison.control.iter().map(|control| TableRow {
        record: format!("{at}/control/row"),
        row: &control.row,
        kind: Kind::Control,
    });
    let rows: Vec<TableRow<'_>> = rows.chain(control).collect();
    let effects = rows.iter().filter_map(|row| row.row.effect.as_ref());
    let axis = Axis::new(report.design.threshold_percent, effects, PIXELS);
    let (low, high) = axis.scale.values;
    let heading = sentences::heading(report, comparison);
    let caption = heading.clone().unwrap_or_else(|| "All variants".to_owned());
    html! {
        @if let Some(heading) = &heading {
            h3 { (heading) }
        }
        p.sideways.muted { "Scroll the table sideways for intervals, p and rates →" }
        div.scroll tabindex="0" role="region" aria-label={ "Effects: " (caption) } {
            table.effects data-axis={ (low) " " (high) } data-pixels={ (PIXELS.0) " " (PIXELS.1) " " (WIDTH) } {
                caption.hidden { (caption) }
                thead {
                    tr {
                        th scope="col" data-sort="text" { "variant" }
                        th.number scope="col" data-sort="number" { "effect" }
                        th.verdict scope="col" data-sort="text" { "verdict" }
                        th.plot scope="col" { (ticks(&axis)) }
                        th.number scope="col" { "interval" }
                        th.number scope="col" data-sort="number" { "p" }
                        th.number scope="col" data-sort="number" { "pps" }
                        @if comparison.has_costs() { th.number scope="col" data-sort="number" { "ns/packet" } }
                    }
                }
                tbody {
                    @for row in &rows {
                        (table_row(report, comparison, &axis, row))
                    }
                }
            }
        }
        p.muted {
            "Large mark: Hodges-Lehmann estimate over the blocks, with its interval; small marks: single blocks; \
             band: ±" (figure("/design/threshold_percent", &format::short(report.design.threshold_percent, 3)))
            " %, the threshold"
            @if axis.band().1 { " (drawn wider, to be seen)" }
            ". Logarithmic axis. "
            (sentences::reading(report, comparison))
        }
        @if !comparison.references.is_empty() {
            p.muted {
                "From earlier sessions, beside which nothing is concluded: "
                @for (row, reference) in comparison.references.iter().enumerate() {
                    @if row > 0 { "; " }
                    (reference.label) ", "
                    (figure(
                        &format!("{at}/references/{row}/forwarding_rate_pps"),
                        &format::rate(reference.forwarding_rate_pps),
                    ))
                }
            }
        }
    }
}

fn table_row(
    report: &Report,
    comparison: &ComparisonSection,
    axis: &Axis,
    TableRow { record, row, kind }: &TableRow<'_>,
) -> Markup {
    let label = report.label(&row.variant);
    let effect = row.effect.as_ref();
    let words = match (kind, &row.verdict) {
        (Kind::Baseline, _) => "baseline".to_owned(),
        (Kind::Control, _) => "A/A control".to_owned(),
        (Kind::Variant, Some(verdict)) => verdict.said(),
        (Kind::Variant, None) => {
            let is_unavailable = report.is_unavailable(&row.variant);
            format::or_dash(is_unavailable.then(|| "not available in this lab".to_owned()))
        }
    };
    let tone = row.verdict.as_ref().map_or("", |of| Tone::of(of).class());
    html! {
        tr data-variant=(row.variant) data-record=(record) data-kind=(match kind {
            Kind::Baseline => "baseline",
            Kind::Variant => "variant",
            Kind::Control => "control",
        }) {
            th scope="row" { (swatch(mark_of(report, row))) (label) }
            td class={ "number strong " (tone) } data-value=[effect.map(|effect| effect.estimate_percent)] {
                (figure_or_dash(
                    &format!("{record}/effect/estimate_percent"),
                    effect.map(|effect| format::change(effect.estimate_percent, effect.interval)),
                ))
            }
            td class={ "verdict " (tone) } { (words) }
            td.plot { @if let Some(effect) = effect { (plot(report, axis, row, effect)) } }
            td.number {
                @if let Some(effect) = effect { (interval(&format!("{record}/effect"), effect)) } @else { "–" }
            }
            td.number data-value=[effect.and_then(|effect| effect.p)] {
                (figure_or_dash(
                    &format!("{record}/effect/p"),
                    effect.and_then(|effect| effect.p).map(fwdlab_stats::format_p),
                ))
            }
            td.number data-value=[row.forwarding_rate_pps] {
                (figure_or_dash(
                    &format!("{record}/forwarding_rate_pps"),
                    row.forwarding_rate_pps.map(format::rate_digits),
                ))
            }
            @if comparison.has_costs() {
                td.number data-value=[row.cost_ns] {
                    (figure_or_dash(&format!("{record}/cost_ns"), row.cost_ns.map(format::cost)))
                }
            }
        }
    }
}

/// The colour of a variant, as in the plots of its trials.
fn swatch(mark: Mark) -> Markup {
    html! { svg.swatch viewBox="0 0 12 12" aria-hidden="true" { circle class=(mark.class()) cx="6" cy="6" r="5" {} } }
}

fn mark_of(report: &Report, row: &Row) -> Mark {
    let marks = marks(report);
    marks.get(&row.variant).copied().unwrap_or(Mark::Control)
}

/// The axis's labels, above the rows.
fn ticks(axis: &Axis) -> Markup {
    let (marks, decimals) = axis.marks();
    html! {
        svg viewBox={ "0 0 " (WIDTH) " 20" } role="img" aria-label="change of the forwarding rate in percent" {
            @for percent in marks {
                @let (x, anchor) = inside(axis.pixel(percent));
                text x=(pixel(x)) y="14" text-anchor=(anchor) {
                    (format::signed(percent, decimals)) " %"
                }
            }
        }
    }
}

/// Where a mark's label stands, and by which of its ends, so that none of it is cut off.
fn inside(x: f64) -> (f64, &'static str) {
    const HALF_LABEL: f64 = 24.0;
    if x < HALF_LABEL {
        (0.0, "start")
    } else if x > WIDTH - HALF_LABEL {
        (WIDTH, "end")
    } else {
        (x, "middle")
    }
}

fn plot(report: &Report, axis: &Axis, row: &Row, effect: &Effect) -> Markup {
    let class = judged(row, mark_of(report, row)).class();
    let (left, right) = axis.scale.pixels;
    let (band, _) = axis.band();
    let interval = effect.shown_interval();
    let from = interval.and_then(|ends| axis.place(ends.low_percent).ok());
    let to = interval.and_then(|ends| axis.place(ends.high_percent).ok());
    let mut whisker = format!(
        "M{} {MIDDLE}H{}",
        pixel(from.unwrap_or(left)),
        pixel(to.unwrap_or(right))
    );
    // An arrow head where the interval goes on.
    if from.is_none() {
        let _ = write!(whisker, "M{} {}l-6 5l6 5", pixel(left + 6.0), MIDDLE - 5.0);
    }
    if to.is_none() {
        let _ = write!(whisker, "M{} {}l6 5l-6 5", pixel(right - 6.0), MIDDLE - 5.0);
    }
    // A line of no length with round ends is a dot: one element for all blocks.
    let mut dots = String::new();
    for block in &effect.blocks {
        if let Ok(x) = axis.place(block.percent) {
            let _ = write!(dots, "M{} {BLOCKS}h0", pixel(x));
        }
    }
    let words = format!("{}: {}", report.label(&row.variant), format::effect(effect));
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(words) {
            rect.threshold x=(pixel(band.0)) y="0" width=(pixel(band.1 - band.0)) height=(HEIGHT) {}
            @for percent in axis.marks().0 {
                @let x = pixel(axis.pixel(percent));
                line class=(if percent.abs() < 1e-9 { "zero" } else { "grid" }) x1=(x) x2=(x) y1="0" y2=(HEIGHT) {}
            }
            path class={ "blocks " (class) } d=(dots) {}
            path class={ "whisker " (class) } d=(whisker) {}
            @if let Ok(x) = axis.place(effect.estimate_percent) {
                circle class=(class) cx=(pixel(x)) cy=(MIDDLE) r="5" {}
            }
        }
    }
}

fn pixel(value: f64) -> String {
    format::short(value, 1)
}
