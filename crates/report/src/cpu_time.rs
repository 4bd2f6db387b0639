//! CPU time per packet: a second outcome beside the forwarding rate, where the DUT is a host whose CPUs were watched.
//!
//! It says what a change costs also where the load, and not the DUT, decides the rate.

use fwdlab_archive::Loaded;
use fwdlab_model::{AddressFamily, Comparison, TrialRecord, VariantName};
use fwdlab_stats::{
    ComparisonEffects, StatsError, VerdictSettings, family_verdicts, log_ratio, median,
};
use serde::{Deserialize, Serialize};

use crate::evidence::{self, Scope};
use crate::report::{Effect, VerdictSection};
use crate::sections::cost_verdict_section;

/// The CPU time that a variant takes for a packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuTimeRow {
    /// The variant.
    pub variant: VariantName,
    /// Busy time of all of the DUT's CPUs for a forwarded packet, interrupts included, in nanoseconds: the median over
    /// the blocks.
    pub cpu_ns: f64,
    /// How much more that is than the baseline's; none for the baseline.
    pub effect: Option<Effect>,
    /// What is concluded from that, at the threshold for CPU time; none for the baseline.
    pub verdict: Option<VerdictSection>,
}

/// A row for each variant of a comparison, the baseline first; none where CPU time was not measured for all of them.
pub(crate) fn rows(
    loaded: &Loaded,
    comparison: &Comparison,
    family: AddressFamily,
    subject: impl Fn(&VariantName) -> String,
) -> Result<Vec<CpuTimeRow>, StatsError> {
    let attempts = evidence::attempts(loaded, Scope::Accepted);
    let cpu_ns_of = |variant: &VariantName| -> Vec<Option<f64>> {
        let trials = attempts
            .iter()
            .map(|attempt| evidence::trial(attempt, variant, family));
        trials.map(|trial| cpu_ns(trial?)).collect()
    };
    let baseline = cpu_ns_of(&comparison.baseline);
    let mut rows = Vec::new();
    let mut effects = Vec::new();
    for variant in std::iter::once(&comparison.baseline).chain(&comparison.variants) {
        let times = cpu_ns_of(variant);
        let Some(cpu_ns) = median(&times.iter().flatten().copied().collect::<Vec<_>>()) else {
            return Ok(Vec::new());
        };
        rows.push(CpuTimeRow {
            variant: variant.clone(),
            cpu_ns,
            effect: None,
            verdict: None,
        });
        let both = times.iter().zip(&baseline);
        let both = both.filter_map(|(time, baseline)| time.zip(*baseline));
        effects.push(ComparisonEffects {
            name: subject(variant),
            block_effects: both
                .map(|(time, baseline)| log_ratio(time, baseline))
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
        confidence: design.confidence_percent / 100.0,
        practical_threshold: design.cpu_threshold_percent / 100.0,
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
