//! A run in a few lines of JSON: what a program decides by, without the records behind it.

use std::collections::BTreeMap;

use fwdlab_model::{Stratum, VariantName};
use serde::Serialize;

use crate::gate::GateResult;
use crate::outcomes::OutcomeRow;
use crate::report::{ComparisonSection, Report, Row, Warning};

/// The form of the summary.
pub const SUMMARY_SCHEMA_VERSION: u32 = 1;

/// What `fwdlab report --summary` prints.
#[derive(Debug, Serialize)]
pub(crate) struct Summary<'a> {
    schema: u32,
    question: &'a str,
    /// Whether all blocks are measured.
    is_finished: bool,
    measured_blocks: u32,
    planned_blocks: u32,
    threshold_percent: f64,
    confidence_percent: f64,
    comparisons: Vec<ComparisonSummary<'a>>,
    /// What became of the conditions of `--fail-on`.
    conditions: &'a [GateResult],
    warnings: &'a [Warning],
}

#[derive(Debug, Serialize)]
struct ComparisonSummary<'a> {
    title: Option<&'a str>,
    #[serde(flatten)]
    stratum: Stratum,
    /// Whether the baseline agrees with itself; none where too little was measured to tell, or its interval is wider
    /// than the threshold and so shows nothing.
    control_passed: Option<bool>,
    /// The baseline first.
    variants: Vec<VariantSummary<'a>>,
}

#[derive(Debug, Serialize)]
struct VariantSummary<'a> {
    variant: &'a VariantName,
    label: &'a str,
    forwarding_rate_pps: Option<f64>,
    cost_ns: Option<f64>,
    /// The words of the verdict; none for the baseline, and where nothing was measured.
    verdict: Option<&'a str>,
    estimate_percent: Option<f64>,
    low_percent: Option<f64>,
    high_percent: Option<f64>,
    /// What came out beside the rate.
    #[serde(flatten)]
    outcomes: BTreeMap<&'static str, &'a OutcomeRow>,
    /// What the profiles say of the effect, in Markdown.
    why: Option<&'a str>,
}

impl<'a> Summary<'a> {
    pub(crate) fn new(report: &'a Report, conditions: &'a [GateResult]) -> Self {
        let comparisons = report.comparisons.iter().map(|comparison| {
            let control = comparison.control.as_ref();
            ComparisonSummary {
                title: comparison.title.as_deref(),
                stratum: comparison.stratum,
                control_passed: control.and_then(|control| {
                    let shows_something = |passed: &bool| !(*passed && control.is_too_wide);
                    control.passed.filter(shows_something)
                }),
                variants: comparison
                    .rows
                    .iter()
                    .map(|row| variant(report, comparison, row))
                    .collect(),
            }
        });
        Self {
            schema: SUMMARY_SCHEMA_VERSION,
            question: &report.question,
            is_finished: report.progress.is_finished,
            measured_blocks: report.progress.measured_blocks,
            planned_blocks: report.progress.planned_blocks,
            threshold_percent: report.design.threshold_percent,
            confidence_percent: report.design.confidence_percent,
            comparisons: comparisons.collect(),
            conditions,
            warnings: &report.warnings,
        }
    }
}

fn variant<'a>(
    report: &'a Report,
    comparison: &'a ComparisonSection,
    row: &'a Row,
) -> VariantSummary<'a> {
    let effect = row.effect.as_ref();
    let interval = effect.and_then(|effect| effect.interval);
    let why = report.why(comparison, &row.variant);
    let is_compared = row.verdict.is_some();
    VariantSummary {
        variant: &row.variant,
        label: report.label(&row.variant),
        forwarding_rate_pps: row.forwarding_rate_pps,
        cost_ns: row.cost_ns,
        verdict: row.verdict.as_ref().map(|verdict| verdict.words.as_str()),
        estimate_percent: effect.map(|effect| effect.estimate_percent),
        low_percent: interval.map(|interval| interval.low_percent),
        high_percent: interval.map(|interval| interval.high_percent),
        outcomes: comparison
            .outcomes
            .of(&row.variant)
            .map(|(outcome, of)| (outcome.key, of))
            .collect(),
        why: why.or(report.no_profile_used().filter(|_| is_compared)),
    }
}
