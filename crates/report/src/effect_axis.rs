//! The axis on which effects are drawn.

use fwdlab_stats::percent;

use crate::report::Effect;
use crate::svg::{Scale, Whisker, ticks};

/// Wider than this, in natural logarithms, the axis is too bent for evenly spaced percentages.
const STRAIGHT_SPAN_MAX: f64 = 0.6;

/// A narrower band is hidden by the line of zero in its middle.
const BAND_MIN: f64 = 8.0;

/// The way in which a value leaves the plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beyond {
    Left,
    Right,
}

/// Effects on a logarithmic axis, so that a halving and a doubling are equally far from zero and
/// a fast variant does not flatten the others.
pub(crate) struct Axis {
    pub(crate) scale: Scale,
    pub(crate) threshold_percent: f64,
}

impl Axis {
    /// Shape: `pixels` are the axis's ends.
    pub(crate) fn new<'e>(
        threshold_percent: f64,
        effects: impl Iterator<Item = &'e Effect>,
        pixels: (f64, f64),
    ) -> Self {
        let effects: Vec<&Effect> = effects.collect();
        let (low, high) = span(threshold_percent, &effects);
        let (mut low, mut high) = (low.min(-1e-5), high.max(1e-5));
        // Single blocks may widen the plot, and an extreme one may not flatten the rest.
        let reach = 0.5 * (high - low);
        let (low_limit, high_limit) = (low - reach, high + reach);
        for block in effects.iter().flat_map(|effect| &effect.blocks) {
            let value = logarithm(block.percent);
            if (low_limit..=high_limit).contains(&value) {
                low = low.min(value);
                high = high.max(value);
            }
        }
        let air = 0.05 * (high - low);
        Self {
            scale: Scale {
                values: (low - air, high + air),
                pixels,
            },
            threshold_percent,
        }
    }

    pub(crate) fn pixel(&self, percent: f64) -> f64 {
        self.scale.pixel(logarithm(percent))
    }

    /// The ends of the threshold's band in pixels, and whether it is drawn wider than it is, so that it can be seen.
    pub(crate) fn band(&self) -> ((f64, f64), bool) {
        let left = self.pixel(-self.threshold_percent);
        let right = self.pixel(self.threshold_percent);
        let is_widened = right - left < BAND_MIN;
        let middle = f64::midpoint(left, right);
        let (left, right) = if is_widened {
            (middle - BAND_MIN / 2.0, middle + BAND_MIN / 2.0)
        } else {
            (left, right)
        };
        let (first, last) = self.scale.pixels;
        ((left.max(first), right.min(last)), is_widened)
    }

    pub(crate) fn middle(&self) -> f64 {
        f64::midpoint(self.scale.pixels.0, self.scale.pixels.1)
    }

    pub(crate) fn place(&self, percent: f64) -> Result<f64, Beyond> {
        let value = logarithm(percent);
        if self.scale.holds(value) {
            Ok(self.scale.pixel(value))
        } else if value < self.scale.values.0 {
            Err(Beyond::Left)
        } else {
            Err(Beyond::Right)
        }
    }

    pub(crate) fn end(&self, percent: Option<f64>, side: Beyond) -> Whisker {
        match percent.map(|percent| self.place(percent)) {
            Some(Ok(x)) => Whisker { x, open: false },
            _ => Whisker {
                x: match side {
                    Beyond::Left => self.scale.pixels.0 + 2.0,
                    Beyond::Right => self.scale.pixels.1 - 2.0,
                },
                open: true,
            },
        }
    }

    /// Percentages to be marked, zero always among them, and their decimals.
    pub(crate) fn marks(&self) -> (Vec<f64>, usize) {
        let (low, high) = self.scale.values;
        let (low_percent, high_percent) = (percent(low), percent(high));
        if high - low <= STRAIGHT_SPAN_MAX {
            return ticks(low_percent, high_percent, 6);
        }
        // Coarse steps first; a finer one fills the gaps that are wide enough for its label.
        let mut marks: Vec<f64> = vec![0.0];
        for step in [10_000.0, 1000.0, 500.0, 100.0, 50.0, 10.0, 5.0] {
            if (high_percent - low_percent) / step > 400.0 {
                continue;
            }
            let mut percent = (low_percent / step).ceil() * step;
            while percent <= high_percent {
                let x = self.pixel(percent);
                let far = |mark: &f64| (self.pixel(*mark) - x).abs() >= 58.0;
                if percent > -100.0 && marks.iter().all(far) {
                    marks.push(percent);
                }
                percent += step;
            }
        }
        marks.sort_by(f64::total_cmp);
        (marks, 0)
    }
}

/// From the lowest to the highest that the threshold, the effects and their intervals reach, as natural logarithms.
pub(crate) fn span(threshold_percent: f64, effects: &[&Effect]) -> (f64, f64) {
    let ends = effects.iter().flat_map(|effect| {
        let interval = effect.shown_interval();
        let ends = interval.map(|ends| [ends.low_percent, ends.high_percent]);
        ends.into_iter().flatten().chain([effect.estimate_percent])
    });
    let all = ends.chain([-threshold_percent, threshold_percent]);
    all.map(logarithm)
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        })
}

/// A change in percent as a natural logarithm; a loss of everything is kept finite.
pub(crate) fn logarithm(percent: f64) -> f64 {
    (percent / 100.0).max(-0.999_999).ln_1p()
}
