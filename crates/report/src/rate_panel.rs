//! What plots of forwarding rates have in common: panels with an axis of rates, and the legend below them.

use crate::svg::{Anchor, Fill, MARGIN, Mark, Scale, Svg, WIDTH, text_width, ticks};

pub(crate) const LEFT: f64 = 68.0;
pub(crate) const RIGHT: f64 = WIDTH - MARGIN;
pub(crate) const LEGEND_FONT: f64 = 12.0;
const HEIGHT: f64 = 240.0;
const TICKS_MAX: usize = 7;

/// The panel of one stratum.
pub(crate) struct RatePanel {
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    unit_pps: f64,
    up: Scale,
}

impl RatePanel {
    /// Draws the heading of a panel that begins at `top`, for rates from `lowest_pps` to `highest_pps`.
    pub(crate) fn new(
        svg: &mut Svg,
        protocol: &str,
        top: f64,
        lowest_pps: f64,
        highest_pps: f64,
    ) -> Self {
        let (unit_pps, unit) = unit_of(highest_pps);
        let heading = format!("{protocol}: forwarding rate in {unit}");
        svg.text("strong", (MARGIN, top + 16.0), &heading);
        let (top, bottom) = (top + 28.0, top + 28.0 + HEIGHT);
        let up = Scale {
            values: range(lowest_pps / unit_pps, highest_pps / unit_pps),
            pixels: (bottom, top),
        };
        Self {
            top,
            bottom,
            unit_pps,
            up,
        }
    }

    pub(crate) fn draw_axis(&self, svg: &mut Svg) {
        let (low, high) = self.up.values;
        let (values, decimals) = ticks(low, high, TICKS_MAX);
        for value in values {
            let y = self.up.pixel(value);
            svg.line("grid", (LEFT, y), (RIGHT, y));
            let label = format!("{value:.decimals$}");
            svg.text_before("small", (LEFT - 8.0, y + 4.0), &label);
        }
        svg.line("frame", (LEFT, self.bottom), (RIGHT, self.bottom));
    }

    /// Where a rate stands, in pixels.
    pub(crate) fn y(&self, pps: f64) -> f64 {
        self.up.pixel(pps / self.unit_pps)
    }
}

fn unit_of(highest_pps: f64) -> (f64, &'static str) {
    if highest_pps >= 1e6 {
        (1e6, "Mpps")
    } else if highest_pps >= 1e3 {
        (1e3, "kpps")
    } else {
        (1.0, "pps")
    }
}

/// From zero where the rates differ much, close around them where they do not.
fn range(low: f64, high: f64) -> (f64, f64) {
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
pub(crate) struct LegendItem {
    pub(crate) point: Option<(Mark, Fill)>,
    pub(crate) label: String,
    /// Shows when the pointer rests on it.
    pub(crate) title: String,
}

/// Draws the items in as many rows as they take; returns how far down that goes.
pub(crate) fn draw_legend(svg: &mut Svg, items: &[LegendItem], top: f64) -> f64 {
    let (mut x, mut y) = (MARGIN, top);
    for item in items {
        let lead = if item.point.is_some() { 18.0 } else { 0.0 };
        let width = lead + text_width(&item.label, LEGEND_FONT);
        if x > MARGIN && x + width > WIDTH - MARGIN {
            x = MARGIN;
            y += 20.0;
        }
        if let Some((mark, fill)) = item.point {
            svg.point(mark, fill, (x + 6.0, y - 4.0), 4.5, "");
        }
        let (label, title) = (&item.label, &item.title);
        svg.titled_text("", Anchor::Start, (x + lead, y), label, title);
        x += width + 22.0;
    }
    y + 16.0
}
