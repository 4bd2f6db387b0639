//! The profiles that count: of the attempts that stand for their blocks, where they show the load.

use std::collections::BTreeMap;

use fwdlab_archive::{Attempt, Loaded};
use fwdlab_model::{LabKind, LoadRegime, ProfileRecord, Stratum, TrialRecord, VariantName};
use fwdlab_profile::{Folded, ProfilePair, Profiled};

use super::{as_f64, number};
use crate::evidence::{Scope, attempts};
use crate::profile_sections::RejectedProfile;

/// A profile of a trial.
#[derive(Debug)]
pub(super) struct Taken<'a> {
    pub(super) record: &'a ProfileRecord,
    /// Without those of idle CPUs, with the harness's own frames in one and eBPF programs by name.
    pub(super) stacks: Folded<'a>,
    /// What a packet costs the CPUs that forward.
    pub(super) cost_ns: f64,
    /// ln of the rate with samples / that of the trial.
    log_rate_ratio: f64,
}

/// Which variant in which stratum.
type TakenOf = (VariantName, Stratum);

/// The profiles of a run.
pub(super) struct Profiles<'a> {
    /// By variant and stratum, and block.
    taken: BTreeMap<TakenOf, BTreeMap<u32, Taken<'a>>>,
    attempts: Vec<&'a Attempt>,
}

impl<'a> Profiles<'a> {
    pub(super) fn read(loaded: &'a Loaded) -> Self {
        let attempts = attempts(loaded, Scope::Accepted);
        let mut taken: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for attempt in &attempts {
            for trial in &attempt.trials {
                if let Some(profile) = Taken::of(loaded, attempt, trial) {
                    let of_stratum = taken
                        .entry((trial.variant.clone(), trial.stratum))
                        .or_default();
                    of_stratum.insert(trial.block, profile);
                }
            }
        }
        Self { taken, attempts }
    }

    /// How many blocks count.
    pub(super) fn measured_blocks(&self) -> u32 {
        number(self.attempts.len())
    }

    /// Whether no trial has a profile that is there, or was rejected.
    pub(super) fn is_empty(&self) -> bool {
        self.taken.is_empty() && self.rejected().is_empty()
    }

    /// What is recorded of any of them.
    pub(super) fn first_record(&self) -> Option<&'a ProfileRecord> {
        self.records().next().map(|(_, record)| record)
    }

    /// The stacks of all that count.
    pub(super) fn stacks(&self) -> impl Iterator<Item = &Folded<'a>> {
        let taken = self.taken.values().flat_map(BTreeMap::values);
        taken.map(|taken| &taken.stacks)
    }

    fn records(&self) -> impl Iterator<Item = (&'a TrialRecord, &'a ProfileRecord)> {
        self.attempts
            .iter()
            .flat_map(|attempt| &attempt.trials)
            .filter_map(|trial| Some((trial, trial.profile.as_deref()?)))
    }

    /// The profiles of a variant by block.
    pub(super) fn of(&self, variant: &VariantName, stratum: Stratum) -> &BTreeMap<u32, Taken<'a>> {
        static NONE: BTreeMap<u32, Taken<'static>> = BTreeMap::new();
        self.taken.get(&(variant.clone(), stratum)).unwrap_or(&NONE)
    }

    /// What a packet costs in a variant, mean over the blocks that have a profile.
    pub(super) fn cost_ns(&self, variant: &VariantName, stratum: Stratum) -> f64 {
        let taken = self.of(variant, stratum);
        let sum: f64 = taken.values().map(|taken| taken.cost_ns).sum();
        sum / as_f64(taken.len() as u64)
    }

    /// The blocks that have a profile of both.
    pub(super) fn pairs(
        &self,
        baseline: &VariantName,
        variant: &VariantName,
        stratum: Stratum,
    ) -> Vec<ProfilePair<'_>> {
        let others = self.of(variant, stratum);
        self.of(baseline, stratum)
            .iter()
            .filter_map(|(block, baseline)| {
                Some(ProfilePair {
                    baseline: baseline.profiled(),
                    variant: others.get(block)?.profiled(),
                })
            })
            .collect()
    }

    /// What sampling did to the rates of each block, mean over its trials.
    pub(super) fn log_rate_ratios(&self) -> Vec<f64> {
        let mut of_blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for (block, taken) in self.taken.values().flatten() {
            of_blocks
                .entry(*block)
                .or_default()
                .push(taken.log_rate_ratio);
        }
        let mean = |ratios: &Vec<f64>| ratios.iter().sum::<f64>() / as_f64(ratios.len() as u64);
        of_blocks.values().map(mean).collect()
    }

    pub(super) fn rejected(&self) -> Vec<RejectedProfile> {
        self.records()
            .filter(|(_, record)| !record.faults.is_empty())
            .map(|(trial, record)| RejectedProfile {
                block: trial.block,
                variant: trial.variant.clone(),
                stratum: trial.stratum,
                attempts: record.attempts,
                reasons: record.faults.iter().map(ToString::to_string).collect(),
                faults: record.faults.clone(),
            })
            .collect()
    }
}

impl<'a> Taken<'a> {
    /// None where it was not taken, does not show the load, or its stacks are not there or not those recorded.
    fn of(loaded: &Loaded, attempt: &'a Attempt, trial: &'a TrialRecord) -> Option<Self> {
        let record = trial.profile.as_deref()?;
        let all = Folded::parse(attempt.stacks(trial)?.as_bytes()).ok()?;
        let is_whole = all.samples() == record.samples;
        if !is_whole || !record.faults.is_empty() || trial.observation_pps <= 0.0 {
            return None;
        }
        let stacks = match loaded.resolved.lab.kind {
            // Here the harness's process is the DUT.
            LabKind::Router => all.without_idle(),
            LabKind::Netns | LabKind::Ssh(_) => {
                let busy = all.without_idle().with_harness_in_one();
                busy.with_programs_by_name()
            }
        };
        let cpus = as_f64(record.samples_by_cpu.len() as u64);
        let busy = match loaded.regime() {
            // A CPU that sleeps gives no sample, or an idle one: what it should have given tells how much it slept.
            LoadRegime::Paced => {
                let possible = f64::from(record.frequency_hz) * record.time_s * cpus;
                (as_f64(stacks.samples()) / possible).min(1.0)
            }
            LoadRegime::SelfClocked | LoadRegime::Overload => {
                as_f64(stacks.samples()) / as_f64(record.samples.max(1))
            }
        };
        Some(Self {
            cost_ns: cpus * busy * 1e9 / trial.observation_pps,
            log_rate_ratio: (record.pooled_pps / trial.pooled_pps).ln(),
            record,
            stacks,
        })
    }

    fn profiled(&self) -> Profiled<'_> {
        Profiled {
            stacks: &self.stacks,
            ns_per_packet: self.cost_ns,
        }
    }
}
