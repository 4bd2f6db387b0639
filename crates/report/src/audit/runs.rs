//! What single runs tell: those far from the others, what happens within one, the same in another session, the
//! load, the order.

use std::collections::BTreeMap;

use fwdlab_netbenches::audit::{AuditedDataset, AuditedRun};
use fwdlab_stats::{ShiftTest as _, TwoSampleT, correlation, critical_correlation, median};
use serde::Serialize;

use super::noise::{RUNS_MIN, variation_percent};
use super::quantiles::Quantiles;
use super::verdicts::CONFIDENCE;

/// Samples of a run that its spread is reckoned from.
const SAMPLES_MIN: usize = 10;
/// Runs that a comparison needs, as ministat has it.
const COMPARED_MIN: usize = 3;

/// Runs that are far from the median of the others of their dataset.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TailsSection {
    /// How many runs there are, in datasets of five or more.
    pub runs: usize,
    /// The part of them that is more than 2 % off.
    pub beyond_2_percent: f64,
    /// The part of them that is more than 5 % off.
    pub beyond_5_percent: f64,
    /// The part of them that is more than 10 % off.
    pub beyond_10_percent: f64,
    /// The part of those more than 5 % off that are too low.
    pub low_of_beyond_5_percent: Option<f64>,
    /// How far off all of them are, in percent.
    #[serde(skip)]
    pub(super) off_percent: Vec<f64>,
}

/// What the seconds of a run do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WithinSection {
    /// The standard deviation of the rates of a run's seconds, in percent of their median.
    pub deviation_percent: Quantiles,
    /// The correlation of each second's rate with the next one.
    pub autocorrelation: Option<Quantiles>,
    /// The variance between runs, by what independent seconds would give.
    pub between_by_within: Option<Quantiles>,
    #[serde(skip)]
    pub(super) deviations_percent: Vec<f64>,
}

/// Datasets of the same configuration from different folders of results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionsSection {
    /// How many configurations were measured more than once.
    pub configurations: usize,
    /// How far the medians of two of the same are apart, in percent.
    pub apart_percent: Quantiles,
    /// The part of them that ministat calls a difference.
    pub differences: f64,
    /// Every pair.
    pub pairs: Vec<SessionPair>,
}

/// The same configuration in two folders of results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionPair {
    /// The datasets.
    pub datasets: [String; 2],
    /// How far their medians are apart, in percent.
    pub apart_percent: f64,
    /// Whether ministat calls that a difference.
    pub is_difference: bool,
}

/// The load that was offered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfferedSection {
    /// The coefficient of variation of the offered load between runs, in percent.
    pub cv_percent: Quantiles,
    /// The correlation of offered load and forwarding rate over the runs of a dataset.
    pub correlation: Option<Quantiles>,
    /// The part of the datasets whose correlation is beyond what one in twenty has by chance.
    pub correlated: Option<f64>,
}

/// Whether runs get better or worse from the first to the last.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OrderSection {
    /// Datasets of four runs or more, no two of them the same.
    pub datasets: usize,
    /// How many of them rise or fall all the way.
    pub monotone: usize,
    /// How many would if the order meant nothing.
    pub expected: f64,
}

impl TailsSection {
    pub(super) fn build(datasets: &[AuditedDataset]) -> Option<Self> {
        let values = datasets.iter().map(|dataset| &dataset.observations_pps);
        let off_percent: Vec<f64> = values
            .filter(|values| values.len() >= RUNS_MIN)
            .flat_map(|values| off_the_others(values))
            .collect();
        if off_percent.is_empty() {
            return None;
        }
        let part = |beyond: f64| {
            let far = off_percent.iter().filter(|off| off.abs() > beyond);
            far.count() as f64 / off_percent.len() as f64
        };
        let far: Vec<f64> = off_percent
            .iter()
            .copied()
            .filter(|off| off.abs() > 5.0)
            .collect();
        let low = far.iter().filter(|off| **off < 0.0).count() as f64;
        Some(Self {
            runs: off_percent.len(),
            beyond_2_percent: part(2.0),
            beyond_5_percent: part(5.0),
            beyond_10_percent: part(10.0),
            low_of_beyond_5_percent: (!far.is_empty()).then(|| low / far.len() as f64),
            off_percent,
        })
    }
}

/// Each value against the median of the others, in percent; two values or more.
fn off_the_others(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let others = sorted.len().saturating_sub(1);
    if others == 0 {
        return Vec::new();
    }
    let off = sorted.iter().enumerate().filter_map(|(index, value)| {
        // As if it was taken out of the row.
        let other = |place: usize| sorted[place + usize::from(place >= index)];
        let middle = f64::midpoint(other((others - 1) / 2), other(others / 2));
        (middle > 0.0).then(|| (value / middle - 1.0) * 100.0)
    });
    off.collect()
}

impl WithinSection {
    pub(super) fn build(datasets: &[AuditedDataset]) -> Option<Self> {
        let runs = datasets.iter().flat_map(|dataset| &dataset.runs);
        let steady = runs
            .filter_map(|run| run.forwarded)
            .filter(|steady| steady.samples >= SAMPLES_MIN && steady.median_pps > 0.0);
        let (mut deviations, mut correlations) = (Vec::new(), Vec::new());
        for steady in steady {
            deviations.push(steady.deviation_pps / steady.median_pps * 100.0);
            correlations.extend(steady.autocorrelation);
        }
        let ratios: Vec<f64> = datasets.iter().filter_map(between_by_within).collect();
        Some(Self {
            deviation_percent: Quantiles::of(&deviations)?,
            autocorrelation: Quantiles::of(&correlations),
            between_by_within: Quantiles::of(&ratios),
            deviations_percent: deviations,
        })
    }
}

/// The variance of the runs' means, by that of means of so many independent seconds.
fn between_by_within(dataset: &AuditedDataset) -> Option<f64> {
    let steady = dataset.runs.iter().filter_map(|run| run.forwarded);
    let (means, of_means): (Vec<f64>, Vec<f64>) = steady
        .filter(|steady| steady.samples >= SAMPLES_MIN)
        .map(|steady| {
            let variance = steady.deviation_pps.powi(2) / steady.samples as f64;
            (steady.mean_pps(), variance)
        })
        .unzip();
    if means.len() < COMPARED_MIN {
        return None;
    }
    let count = means.len() as f64;
    let middle = means.iter().sum::<f64>() / count;
    let between = means
        .iter()
        .map(|mean| (mean - middle).powi(2))
        .sum::<f64>()
        / (count - 1.0);
    let within = of_means.iter().sum::<f64>() / count;
    (within > 0.0).then(|| between / within)
}

impl SessionsSection {
    pub(super) fn build(datasets: &[AuditedDataset]) -> Option<Self> {
        let mut alike: BTreeMap<usize, Vec<&AuditedDataset>> = BTreeMap::new();
        for dataset in datasets {
            let values = &dataset.observations_pps;
            if let Some(configuration) = dataset.configuration
                && values.len() >= COMPARED_MIN
                && values.iter().all(|value| *value > 0.0)
            {
                alike.entry(configuration).or_default().push(dataset);
            }
        }
        let (mut configurations, mut pairs) = (0, Vec::new());
        for members in alike.values() {
            let before = pairs.len();
            for (index, one) in members.iter().enumerate() {
                let others = members[index + 1..].iter();
                pairs.extend(others.filter_map(|other| SessionPair::of(one, other)));
            }
            configurations += usize::from(pairs.len() > before);
        }
        let apart: Vec<f64> = pairs.iter().map(|pair| pair.apart_percent).collect();
        let differences = pairs.iter().filter(|pair| pair.is_difference).count();
        Some(Self {
            configurations,
            apart_percent: Quantiles::of(&apart)?,
            differences: differences as f64 / pairs.len() as f64,
            pairs,
        })
    }
}

impl SessionPair {
    fn of(one: &AuditedDataset, other: &AuditedDataset) -> Option<Self> {
        let [first, second] = [one, other].map(|dataset| &dataset.observations_pps);
        // The same numbers twice were copied, not measured again.
        if one.folder == other.folder || first == second {
            return None;
        }
        Some(Self {
            datasets: [one.path.clone(), other.path.clone()],
            apart_percent: apart_percent(first, second)?,
            is_difference: differ(first, second),
        })
    }
}

fn apart_percent(one: &[f64], other: &[f64]) -> Option<f64> {
    let ratio = median(one)? / median(other)?;
    Some((ratio.ln().abs().exp() - 1.0) * 100.0)
}

/// What ministat says; without any spread it says a difference of any.
fn differ(one: &[f64], other: &[f64]) -> bool {
    TwoSampleT::pooled(one, other).map_or(median(one) != median(other), |test| {
        test.p_two_sided(0.0) < 1.0 - CONFIDENCE
    })
}

impl OfferedSection {
    pub(super) fn build(datasets: &[AuditedDataset]) -> Option<Self> {
        let (mut cvs, mut correlations, mut beyond) = (Vec::new(), Vec::new(), 0);
        for dataset in datasets {
            let of_run = |run: &AuditedRun| Some((run.offered_pps?, run.archive_pps?));
            let (offered, forwarded): (Vec<f64>, Vec<f64>) =
                dataset.runs.iter().filter_map(of_run).unzip();
            if offered.len() < COMPARED_MIN {
                continue;
            }
            cvs.extend(variation_percent(&offered));
            if offered.len() >= RUNS_MIN
                && let Ok(Some(r)) = correlation(&offered, &forwarded)
                && let Ok(critical) = critical_correlation(offered.len(), CONFIDENCE)
            {
                beyond += usize::from(r.abs() > critical);
                correlations.push(r);
            }
        }
        let all = Quantiles::of(&correlations);
        Some(Self {
            cv_percent: Quantiles::of(&cvs)?,
            correlated: all.map(|all| beyond as f64 / all.count as f64),
            correlation: all,
        })
    }
}

impl OrderSection {
    pub(super) fn build(datasets: &[AuditedDataset]) -> Option<Self> {
        let mut section = Self {
            datasets: 0,
            monotone: 0,
            expected: 0.0,
        };
        for dataset in datasets {
            let values = &dataset.observations_pps;
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            if values.len() < 4 || sorted.windows(2).any(|pair| pair[0] >= pair[1]) {
                continue;
            }
            let rises = *values == sorted;
            sorted.reverse();
            section.datasets += 1;
            section.monotone += usize::from(rises || *values == sorted);
            // One order of all rises, one falls.
            let orders: f64 = (1..=values.len()).map(|factor| factor as f64).product();
            section.expected += 2.0 / orders;
        }
        (section.datasets > 0).then_some(section)
    }
}
