//! What the statistics say, as sections of a report: units for readers, and words.

use fwdlab_model::{Design, VariantName};
use fwdlab_stats::{
    ComparisonVerdict, Draws, Interval, MethodResult, Verdict, VerdictSettings, median, percent,
};

use crate::format;
use crate::report::{
    Direction, Effect, IntervalSection, MethodSection, Row, VerdictSection, Warning,
};
use crate::sentences;

/// What the verdicts of a design are asked to hold.
pub(crate) fn verdict_settings(design: &Design) -> VerdictSettings {
    VerdictSettings {
        confidence: design.confidence_percent / 100.0,
        practical_threshold: design.threshold_percent / 100.0,
    }
}

/// The time of a packet at a forwarding rate.
pub(crate) fn cost_ns(forwarding_rate_pps: f64) -> Option<f64> {
    (forwarding_rate_pps > 0.0).then(|| 1e9 / forwarding_rate_pps)
}

impl Row {
    /// A row that only observations are known of.
    pub(crate) fn of_observations(variant: VariantName, observations_pps: &[f64]) -> Self {
        let forwarding_rate_pps = median(observations_pps);
        Self {
            variant,
            trials: u32::try_from(observations_pps.len()).unwrap_or(u32::MAX),
            forwarding_rate_pps,
            cost_ns: forwarding_rate_pps.and_then(cost_ns),
            effect: None,
            verdict: None,
            methods: Vec::new(),
        }
    }
}

/// The resampling methods' draws: the same records give the same figures.
pub(crate) const DRAWS: Draws = Draws {
    seed: 1,
    count: 9999,
};

pub(crate) fn method_sections(results: Vec<MethodResult>) -> Vec<MethodSection> {
    results
        .into_iter()
        .map(|result| MethodSection {
            method: result.method,
            estimate_percent: percent(result.estimate),
            interval: result.interval.map(interval_section),
            p: result.p,
            adjusted_p: result.adjusted_p,
        })
        .collect()
}

impl Effect {
    /// A ratio with its interval, of which nothing was tested; of which blocks, and how they scatter, is left out.
    pub(crate) fn of_ratio(
        log_ratio: f64,
        interval: Option<Interval>,
        baseline: Option<&Row>,
    ) -> Self {
        Self {
            estimate_percent: percent(log_ratio),
            interval: interval.map(interval_section),
            size_interval: None,
            mean_percent: percent(log_ratio),
            p: None,
            noise: None,
            rate_difference_pps: baseline.and_then(|of| rate_difference(of, log_ratio)),
            cost_difference_ns: baseline.and_then(|of| cost_difference(of, log_ratio)),
            blocks: Vec::new(),
        }
    }

    /// The effect that a verdict is about, likewise. Without a baseline it is a ratio only.
    pub(crate) fn of_verdict(verdict: &ComparisonVerdict, baseline: Option<&Row>) -> Self {
        let blocks = verdict.blocks.as_ref();
        Self {
            size_interval: verdict.size_interval.map(interval_section),
            mean_percent: percent(blocks.map_or(verdict.estimate, |blocks| blocks.mean)),
            p: Some(verdict.adjusted_p.direction),
            ..Self::of_ratio(verdict.estimate, verdict.direction_interval, baseline)
        }
    }
}

/// A verdict on forwarding rates.
pub(crate) fn verdict_section(verdict: &ComparisonVerdict, effect: &Effect) -> VerdictSection {
    section(verdict, effect, Some(direction(verdict.estimate > 0.0)))
}

/// A verdict on what a packet costs.
pub(crate) fn cost_verdict_section(verdict: &ComparisonVerdict, effect: &Effect) -> VerdictSection {
    section(verdict, effect, Some(direction(verdict.estimate < 0.0)))
}

/// A verdict on how an effect changes: it says neither that the variant is faster nor that it is slower.
pub(crate) fn change_section(verdict: &ComparisonVerdict, effect: &Effect) -> VerdictSection {
    section(verdict, effect, None)
}

fn direction(is_faster: bool) -> Direction {
    match is_faster {
        true => Direction::Faster,
        false => Direction::Slower,
    }
}

fn section(
    verdict: &ComparisonVerdict,
    effect: &Effect,
    direction: Option<Direction>,
) -> VerdictSection {
    let more = verdict.more.map(|more| more.to_string());
    let below_control = verdict
        .blocks
        .as_ref()
        .is_some_and(|blocks| blocks.below_control)
        .then(|| "smaller than the A/A control's half-width".to_owned());
    let shows_difference = verdict.verdict.shows_difference();
    let notes: Vec<String> = verdict
        .correction_note()
        .into_iter()
        .chain(more)
        .chain(below_control.filter(|_| shows_difference))
        .collect();
    let mut section = VerdictSection {
        words: verdict.verdict.words().to_owned(),
        direction: direction.filter(|_| shows_difference),
        sentence: String::new(),
        shows_difference,
        leaves_open: verdict.verdict.leaves_open(),
        notes,
    };
    section.sentence = match verdict.verdict {
        // A difference of nothing says nothing.
        Verdict::NotLimitedByDut => sentences::not_limited(&section.words),
        _ => sentences::finding(&section.said(), effect, &section.notes),
    };
    section
}

pub(crate) fn interval_section(interval: Interval) -> IntervalSection {
    IntervalSection {
        low_percent: percent(interval.lower),
        high_percent: percent(interval.upper),
        confidence_percent: interval.attained_confidence * 100.0,
    }
}

fn rate_difference(baseline: &Row, log_ratio: f64) -> Option<f64> {
    baseline
        .forwarding_rate_pps
        .map(|rate_pps| rate_pps * log_ratio.exp_m1())
}

/// Below this part of the baseline's rate, a packet's cost is the time that was waited in vain.
const RATIO_WITH_A_COST: f64 = 1e-3;

/// The cost of a packet is the inverse of its rate, so the log ratio changes its sign. None where hardly a packet came
/// through.
fn cost_difference(baseline: &Row, log_ratio: f64) -> Option<f64> {
    baseline
        .cost_ns
        .filter(|_| log_ratio.exp() >= RATIO_WITH_A_COST)
        .map(|cost_ns| cost_ns * (-log_ratio).exp_m1())
}

/// What a control says; `below_percent` is the threshold that its interval is too wide for.
pub(crate) fn control_sentence(
    effect: Option<&Effect>,
    passed: Option<bool>,
    below_percent: Option<f64>,
) -> String {
    let Some(effect) = effect else {
        return String::new();
    };
    let confidence = effect.interval.map_or(String::new(), |interval| {
        format!(
            " ({} % interval)",
            format::short(interval.confidence_percent, 1)
        )
    });
    let seen = format!(
        "the baseline entered twice differs from itself by {}{confidence}",
        format::effect(effect)
    );
    match (passed, below_percent) {
        (Some(true), Some(threshold_percent)) => format!(
            "{seen}: the interval is too wide for the control to show anything ({}); more blocks or a quieter machine \
             would narrow it",
            sentences::half_width_against(effect, threshold_percent)
        ),
        (Some(true), None) => format!("{seen}: no difference at the 1 % level, as it must be"),
        (Some(false), _) => format!(
            "{seen}: a difference at the 1 % level where there is none, so this lab can show \
             such effects falsely"
        ),
        (None, _) => format!("{seen}; with so few blocks the control cannot fail"),
    }
}

impl From<&fwdlab_stats::Warning> for Warning {
    fn from(warning: &fwdlab_stats::Warning) -> Self {
        Self {
            code: warning.code().to_owned(),
            subjects: vec![warning.subject().to_owned()],
            text: warning.text(),
            remedy: None,
            percent: warning.size().map(percent),
        }
    }
}
