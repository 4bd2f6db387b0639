//! Outcomes beside the forwarding rate: here each is named, with how it is read of a trial. Less of any of them is better.
//!
//! CPU time per packet is one, where the DUT is a host whose CPUs were watched: it says what a change costs also where
//! the load, and not the DUT, decides the rate.

use fwdlab_archive::Loaded;
use fwdlab_model::{Comparison, Design, Stratum, TrialRecord, VariantName};
use fwdlab_stats::{
    ComparisonEffects, StatsError, VerdictSettings, family_verdicts, log_ratio, median,
};
use serde::{Deserialize, Serialize};

use crate::evidence::{self, Scope};
use crate::format;
use crate::report::{Effect, VerdictSection};
use crate::sections::{cost_verdict_section, verdict_settings};

/// What is known of an outcome beside its numbers.
pub(crate) struct Outcome {
    /// Its key in a comparison of `report.json`.
    pub(crate) key: &'static str,
    /// What readers call it.
    name: &'static str,
    unit: &'static str,
    /// Its definition, to follow "NAME is".
    is: &'static str,
    /// In which form rows have it.
    amount: fn(f64) -> Amount,
    /// What a trial has of it; none where it was not measured.
    of_trial: fn(&TrialRecord) -> Option<f64>,
    threshold_percent: fn(&Design) -> f64,
    /// Where in `report.json` the threshold is.
    pub(crate) threshold: &'static str,
}

const CPU_TIME: Outcome = Outcome {
    key: "cpu_time",
    name: "CPU time",
    unit: "ns/packet",
    is: "the busy time of all the DUT's CPUs per forwarded packet, interrupts included",
    amount: Amount::CpuNs,
    of_trial: cpu_ns,
    threshold_percent: |design| design.cpu_threshold_percent,
    threshold: "/design/cpu_threshold_percent",
};

/// The outcomes of a comparison beside its rates, each with a row for every variant, the baseline first; empty where it
/// was not measured for all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcomes {
    /// What a packet takes of the DUT's CPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_time: Vec<OutcomeRow>,
}

/// An outcome of a variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutcomeRow {
    /// The variant.
    pub variant: VariantName,
    /// The median over the blocks.
    #[serde(flatten)]
    pub amount: Amount,
    /// How much more that is than the baseline's; none for the baseline.
    pub effect: Option<Effect>,
    /// What is concluded from that, at the outcome's threshold; none for the baseline.
    pub verdict: Option<VerdictSection>,
}

/// How much there is of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Amount {
    /// Busy time of all of the DUT's CPUs for a forwarded packet, interrupts included, in nanoseconds.
    #[serde(rename = "cpu_ns")]
    CpuNs(f64),
}

impl Amount {
    /// The number, in the outcome's unit.
    #[must_use]
    pub const fn number(self) -> f64 {
        match self {
            Self::CpuNs(number) => number,
        }
    }
}

impl Outcomes {
    /// Judges all of them for a comparison; `subject` names a variant.
    pub(crate) fn judge(
        loaded: &Loaded,
        comparison: &Comparison,
        stratum: Stratum,
        subject: impl Fn(&VariantName) -> String,
    ) -> Result<Self, StatsError> {
        Ok(Self {
            cpu_time: rows(&CPU_TIME, loaded, comparison, stratum, &subject)?,
        })
    }

    /// Those that were measured.
    pub(crate) fn measured(&self) -> impl Iterator<Item = (&'static Outcome, &[OutcomeRow])> {
        let all: [(&Outcome, &[OutcomeRow]); 1] = [(&CPU_TIME, &self.cpu_time)];
        all.into_iter().filter(|(_, rows)| !rows.is_empty())
    }

    /// Those of a variant.
    pub(crate) fn of(
        &self,
        variant: &VariantName,
    ) -> impl Iterator<Item = (&'static Outcome, &OutcomeRow)> {
        self.measured().filter_map(move |(outcome, rows)| {
            let row = rows.iter().find(|row| row.variant == *variant)?;
            Some((outcome, row))
        })
    }
}

impl Outcome {
    /// A row in words.
    pub(crate) fn sentence(&self, row: &OutcomeRow) -> String {
        let amount = format::cost(row.amount.number());
        let amount = format!("{}: {amount} {}", self.name, self.unit);
        match &row.verdict {
            Some(verdict) => format!("{amount}, {}", verdict.sentence),
            None => amount,
        }
    }

    /// How its rows are to be read.
    pub(crate) fn reading(&self, design: &Design) -> String {
        let threshold = format::short((self.threshold_percent)(design), 3);
        format!(
            "{} is {}; a change of less than {threshold} % is treated as irrelevant.",
            self.name, self.is
        )
    }
}

/// A row for each variant of a comparison, the baseline first; none where it was not measured for all of them.
fn rows(
    outcome: &Outcome,
    loaded: &Loaded,
    comparison: &Comparison,
    stratum: Stratum,
    subject: &impl Fn(&VariantName) -> String,
) -> Result<Vec<OutcomeRow>, StatsError> {
    let attempts = evidence::attempts(loaded, Scope::Accepted);
    let numbers_of = |variant: &VariantName| -> Vec<Option<f64>> {
        let trials = attempts
            .iter()
            .map(|attempt| evidence::trial(attempt, variant, stratum));
        trials.map(|trial| (outcome.of_trial)(trial?)).collect()
    };
    let baseline = numbers_of(&comparison.baseline);
    let mut rows = Vec::new();
    let mut effects = Vec::new();
    for variant in std::iter::once(&comparison.baseline).chain(&comparison.variants) {
        let numbers = numbers_of(variant);
        let Some(number) = median(&numbers.iter().flatten().copied().collect::<Vec<_>>()) else {
            return Ok(Vec::new());
        };
        rows.push(OutcomeRow {
            variant: variant.clone(),
            amount: (outcome.amount)(number),
            effect: None,
            verdict: None,
        });
        let both = numbers.iter().zip(&baseline);
        let both = both.filter_map(|(number, baseline)| number.zip(*baseline));
        effects.push(ComparisonEffects {
            name: subject(variant),
            block_effects: both
                .map(|(number, baseline)| log_ratio(number, baseline))
                .collect::<Result<_, _>>()?,
        });
    }
    if effects
        .iter()
        .any(|effects| effects.block_effects.is_empty())
    {
        return Ok(Vec::new());
    }
    let design = &loaded.resolved.design;
    let settings = VerdictSettings {
        practical_threshold: (outcome.threshold_percent)(design) / 100.0,
        ..verdict_settings(design)
    };
    // What warns of these blocks warns of them where the rates are judged.
    let verdicts = family_verdicts(&effects[1..], None, &settings)?;
    for (row, verdict) in rows[1..].iter_mut().zip(&verdicts.comparisons) {
        let effect = Effect::of_verdict(verdict, None);
        row.verdict = Some(cost_verdict_section(verdict, &effect));
        row.effect = Some(effect);
    }
    Ok(rows)
}

/// CPU time per packet in a trial, in nanoseconds; none where no CPU was watched, or none was busy.
fn cpu_ns(trial: &TrialRecord) -> Option<f64> {
    let watched = trial.dut.cpus.values().filter(|of| of.watched_s > 0.0);
    let busy_cpus: f64 = watched.map(|of| of.busy_s / of.watched_s).sum();
    let cpu_ns = busy_cpus / trial.pooled_pps * 1e9;
    (cpu_ns.is_finite() && cpu_ns > 0.0).then_some(cpu_ns)
}
