//! What the live view shows of one variant.

use fwdlab_stats::{CONTROL_CONFIDENCE, SignedRank, percent};

use crate::effect_axis::logarithm;
use crate::format;
use crate::report::{ComparisonSection, ControlSection, Effect, Report, Row};
use crate::terminal::Style;

/// The blocks that a sparkline shows at most: the newest.
const SPARKLINE_BLOCKS_MAX: usize = 16;

/// A variant's row.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    pub(super) label: String,
    pub(super) forwarding_rate: String,
    pub(super) sparkline: String,
    pub(super) effect: String,
    pub(super) interval: String,
    /// How wide half the interval first was, and how wide it is.
    pub(super) narrowing: String,
    pub(super) words: String,
    /// Whether the words may change with more blocks.
    pub(super) is_verdict: bool,
    pub(super) style: Style,
    /// How different it is: the size of its effect as a logarithm; none where nothing is known.
    pub(super) size: Option<f64>,
}

/// What a comparison's entries are made with.
pub(super) struct Entries<'a> {
    pub(super) report: &'a Report,
    pub(super) comparison: &'a ComparisonSection,
    /// Blocks below which no comparison has an interval, and below which no control has.
    pub(super) blocks_min: (usize, usize),
}

impl Entries<'_> {
    /// The baseline, its second copy, where there is one, and the variants.
    pub(super) fn all(&self) -> Vec<Entry> {
        let Some((baseline, variants)) = self.comparison.rows.split_first() else {
            return Vec::new();
        };
        let control = self.comparison.control.as_ref();
        std::iter::once(self.baseline(baseline))
            .chain(variants.iter().map(|row| self.variant(row)))
            .chain(control.map(|control| self.control(control)))
            .collect()
    }

    fn baseline(&self, row: &Row) -> Entry {
        let rates: Vec<f64> = self
            .report
            .trials
            .iter()
            .filter(|trial| {
                let of_row =
                    (&trial.variant, trial.stratum) == (&row.variant, self.comparison.stratum);
                of_row && trial.counts && trial.forwarding_rate_pps > 0.0
            })
            .map(|trial| trial.forwarding_rate_pps.ln())
            .collect();
        Entry {
            sparkline: self.sparkline(&rates),
            words: "baseline".to_owned(),
            ..self.plain(row)
        }
    }

    fn variant(&self, row: &Row) -> Entry {
        let confidence = self.report.design.confidence_percent / 100.0;
        let mut entry = self.with_effect(row, confidence, self.blocks_min.0);
        if let Some(verdict) = &row.verdict {
            entry.words = verdict.said();
            entry.is_verdict = true;
            entry.style = Style::of(verdict);
        } else {
            let is_unavailable = self.report.is_unavailable(&row.variant);
            entry.words = match (is_unavailable, self.report.progress.is_finished) {
                (true, _) => "not available here",
                (false, true) => "not measured",
                (false, false) => "not measured yet",
            }
            .to_owned();
            entry.style = Style::Dim;
        }
        entry
    }

    fn control(&self, control: &ControlSection) -> Entry {
        let mut entry = self.with_effect(&control.row, CONTROL_CONFIDENCE, self.blocks_min.1);
        let (words, style) = match control.passed {
            Some(true) if control.is_too_wide => ("A/A control: too wide", Style::Dim),
            Some(true) => ("A/A control: agrees", Style::Dim),
            Some(false) => ("A/A control: DISAGREES", Style::Yellow),
            None => ("A/A control", Style::Dim),
        };
        entry.words = words.to_owned();
        entry.style = style;
        entry
    }

    fn plain(&self, row: &Row) -> Entry {
        Entry {
            label: self.report.label(&row.variant).to_owned(),
            forwarding_rate: row
                .forwarding_rate_pps
                .map(format::rate)
                .unwrap_or_default(),
            ..Entry::default()
        }
    }

    fn with_effect(&self, row: &Row, confidence: f64, blocks_min: usize) -> Entry {
        let mut entry = self.plain(row);
        let Some(effect) = &row.effect else {
            return entry;
        };
        let blocks: Vec<f64> = effect
            .blocks
            .iter()
            .map(|block| logarithm(block.percent))
            .collect();
        let decimals = format::effect_decimals(effect.half_width_percent());
        entry.sparkline = self.sparkline(&blocks);
        entry.effect = format::change(effect.estimate_percent, effect.interval);
        // So few blocks have no interval of that confidence, and the widest that they have says little.
        let is_early = blocks.len() < blocks_min && !self.report.progress.is_finished;
        entry.interval = match effect.interval {
            _ if is_early => format!("from {blocks_min} blocks on"),
            Some(_) => format::interval(effect.interval, decimals),
            None => "no interval".to_owned(),
        };
        if !is_early {
            entry.narrowing = narrowing(effect, &blocks, confidence);
        }
        entry.size = Some(logarithm(effect.estimate_percent).abs());
        entry
    }

    /// The newest values as heights, oldest first. The whole height is what they span, but at least
    /// the threshold, so that noise does not look like news.
    fn sparkline(&self, logarithms: &[f64]) -> String {
        let span_min = logarithm(self.report.design.threshold_percent);
        let newest = &logarithms[logarithms.len().saturating_sub(SPARKLINE_BLOCKS_MAX)..];
        sparkline(newest, span_min)
    }
}

/// Half the interval's length when there first was one, and now.
fn narrowing(effect: &Effect, blocks: &[f64], confidence: f64) -> String {
    let Some(now) = effect.half_width_percent() else {
        return String::new();
    };
    let digits = |half_width: f64| {
        let decimals = format::effect_decimals(Some(half_width));
        format!("{half_width:.decimals$}")
    };
    let now = digits(now);
    let first = (1..blocks.len()).find_map(|number| {
        let test = SignedRank::new(&blocks[..number]).ok()?;
        let ends = test.interval(confidence).ok()??;
        Some(digits((percent(ends.upper) - percent(ends.lower)) / 2.0))
    });
    match first {
        Some(first) => format!("±{first} → ±{now}"),
        None => format!("±{now}"),
    }
}

/// A character a value, by its height between the lowest and the highest, which are at least
/// `span_min` apart.
fn sparkline(values: &[f64], span_min: f64) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let low = finite().fold(f64::INFINITY, f64::min);
    let high = finite().fold(f64::NEG_INFINITY, f64::max);
    let span = (high - low).max(span_min).max(f64::MIN_POSITIVE);
    let bottom = f64::midpoint(low, high) - span / 2.0;
    let height = |value: f64| {
        if !value.is_finite() {
            return ' ';
        }
        let part = (value - bottom) / span * HEIGHTS.len() as f64;
        let above = (1..HEIGHTS.len()).find(|&height| part < height as f64);
        HEIGHTS[above.map_or(HEIGHTS.len() - 1, |height| height - 1)]
    };
    values.iter().map(|&value| height(value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_spans_what_it_shows_but_makes_no_mountain_of_noise() {
        assert_eq!(sparkline(&[], 0.01), "");
        assert_eq!(sparkline(&[0.0, 0.1, 0.2], 0.01), "▁▅█");
        // All alike stands in the middle; what is a tenth of the least span stays there, too.
        assert_eq!(sparkline(&[0.3], 0.01), "▅");
        assert_eq!(sparkline(&[0.0, 0.001], 0.01), "▄▅");
        assert_eq!(sparkline(&[0.0, f64::NAN, 0.1], 0.01), "▁ █");
        assert_eq!(sparkline(&[f64::INFINITY], 0.0), " ");
    }
}
