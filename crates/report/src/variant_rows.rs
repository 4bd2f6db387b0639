//! What plots with a row for each variant have in common: labels on the left, the key below.

use crate::labels::shortened;
use crate::svg::{Anchor, MARGIN, Svg, WIDTH, wrap};

/// Where the rows' axis begins.
pub(crate) const PLOT_LEFT: f64 = 240.0;
const LABEL_WIDTH: f64 = 200.0;
const LABEL_FONT: f64 = 12.0;
const KEY_FONT: f64 = 11.0;

/// The labels, each shortened to so many lines.
pub(crate) fn shortened_labels(labels: &[&str], lines_max: usize) -> Vec<String> {
    shortened(labels, &|label| {
        wrap(label, LABEL_FONT, LABEL_WIDTH, usize::MAX).len() <= lines_max
    })
}

/// Draws a row's label.
///
/// Shape: `shown` is the label as there is room for it.
pub(crate) fn draw_label(svg: &mut Svg, label: &str, shown: &str, lines_max: usize, middle: f64) {
    let lines = wrap(shown, LABEL_FONT, LABEL_WIDTH, lines_max);
    let mut y = middle + 4.0 - (lines.len() as f64 - 1.0) * 7.5;
    for line in lines {
        svg.titled_text("", Anchor::Start, (MARGIN, y), &line, label);
        y += 15.0;
    }
}

/// Draws the line above the first control.
pub(crate) fn draw_divider(svg: &mut Svg, y: f64) {
    svg.line("session", (MARGIN, y), (WIDTH - MARGIN, y));
}

/// Draws what stands below the plot, and how it is to be read; returns how far down that goes.
pub(crate) fn draw_key(svg: &mut Svg, key: &str, lines_max: usize, top: f64) -> f64 {
    let mut y = top;
    for line in wrap(key, KEY_FONT, WIDTH - 2.0 * MARGIN, lines_max) {
        svg.text("small muted", (MARGIN, y), &line);
        y += 15.0;
    }
    y + 3.0
}
