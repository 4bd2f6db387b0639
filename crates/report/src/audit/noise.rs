//! How far runs of the same dataset are apart, by machine, by topic, by year.

use std::collections::BTreeMap;

use fwdlab_netbenches::audit::AuditedDataset;
use fwdlab_stats::{Method, PowerAnalysis, Spread};
use serde::Serialize;

use super::quantiles::Quantiles;
use super::verdicts::CONFIDENCE;

/// Datasets of fewer runs say little about their spread.
pub(super) const RUNS_MIN: usize = 5;
/// Groups of fewer datasets are not shown on their own.
const DATASETS_MIN: usize = 10;
/// The change that is worth seeing.
const EFFECT: f64 = 0.01;

/// The coefficient of variation between runs: their standard deviation by their mean.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NoiseSection {
    /// Of all datasets.
    pub all: NoiseRow,
    /// Of each platform.
    pub platforms: Vec<NoiseRow>,
    /// Of each network interface card.
    pub nics: Vec<NoiseRow>,
    /// Of each topic.
    pub topics: Vec<NoiseRow>,
    /// Of each year.
    pub years: Vec<NoiseRow>,
    /// How many runs a change of 1 % takes.
    pub needed: Vec<NeededRuns>,
}

/// A group of datasets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NoiseRow {
    /// What is common to them.
    pub name: String,
    /// How many runs they have.
    pub runs: usize,
    /// The coefficients of variation of the datasets, in percent.
    pub cv_percent: Quantiles,
}

/// How many runs a change of 1 % takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NeededRuns {
    /// The part of all datasets that have less noise.
    pub level: f64,
    /// The coefficient of variation, in percent.
    pub cv_percent: f64,
    /// Runs of each side that show the change with a probability of 80 %; none where it takes more than can
    /// be reckoned.
    pub runs: Option<usize>,
}

impl NoiseSection {
    pub(super) fn build(datasets: &[AuditedDataset]) -> Option<Self> {
        let measured: Vec<Measured<'_>> = datasets.iter().filter_map(Measured::of).collect();
        let all = row("all", &measured.iter().collect::<Vec<_>>())?;
        let needed = [
            (0.25, all.cv_percent.p25),
            (0.5, all.cv_percent.p50),
            (0.75, all.cv_percent.p75),
        ];
        Some(Self {
            platforms: rows(&measured, |dataset| dataset.platform.clone()),
            nics: rows(&measured, |dataset| dataset.nic.clone()),
            topics: rows(&measured, |dataset| dataset.topic.clone()),
            years: rows(&measured, |dataset| Some(dataset.year?.to_string())),
            needed: needed.map(|(level, cv)| needed_runs(level, cv)).into(),
            all,
        })
    }
}

/// A dataset of runs enough.
struct Measured<'a> {
    dataset: &'a AuditedDataset,
    cv_percent: f64,
}

impl<'a> Measured<'a> {
    fn of(dataset: &'a AuditedDataset) -> Option<Self> {
        let values = &dataset.observations_pps;
        Some(Self {
            dataset,
            cv_percent: variation_percent(values).filter(|_| values.len() >= RUNS_MIN)?,
        })
    }
}

/// The coefficient of variation, in percent; none of fewer than two values, and of rates of zero.
pub(super) fn variation_percent(values: &[f64]) -> Option<f64> {
    let spread = Spread::new(values).ok()??;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variation = spread.standard_deviation / mean * 100.0;
    (mean > 0.0 && variation.is_finite()).then_some(variation)
}

/// The groups that are large enough, by name.
fn rows(
    measured: &[Measured<'_>],
    name: impl Fn(&AuditedDataset) -> Option<String>,
) -> Vec<NoiseRow> {
    let mut groups: BTreeMap<String, Vec<&Measured<'_>>> = BTreeMap::new();
    for one in measured {
        if let Some(name) = name(one.dataset) {
            groups.entry(name).or_default().push(one);
        }
    }
    groups
        .into_iter()
        .filter(|(_, members)| members.len() >= DATASETS_MIN)
        .filter_map(|(name, members)| row(&name, &members))
        .collect()
}

fn row(name: &str, members: &[&Measured<'_>]) -> Option<NoiseRow> {
    let cvs: Vec<f64> = members.iter().map(|one| one.cv_percent).collect();
    Some(NoiseRow {
        name: name.to_owned(),
        runs: members
            .iter()
            .map(|one| one.dataset.observations_pps.len())
            .sum(),
        cv_percent: Quantiles::of(&cvs)?,
    })
}

pub(super) fn needed_runs(level: f64, cv_percent: f64) -> NeededRuns {
    let power = PowerAnalysis::new(Method::WelchT, cv_percent / 100.0, 1, CONFIDENCE);
    NeededRuns {
        level,
        cv_percent,
        runs: power
            .ok()
            .and_then(|power| power.size_to_show(EFFECT.ln_1p())),
    }
}
