//! Profiles of the variants: stacks sampled under the load, in slices that are no part of any trial.

mod judge;
mod sampling;
mod symbols;

use std::collections::BTreeMap;
use std::time::Duration;

use fwdlab_model::record::stall_bound_s;
use fwdlab_model::{
    LoadRegime, ProfileEvery, ProfileFault, ProfileRecord, ProfileStacks, Profiling, Stratum,
    VariantName,
};
use fwdlab_profile::Folded;

pub(crate) use self::sampling::{
    OfCpus, Place, ProfileSlice, SampledLoad, Samplers, leave_out_bystanders, nothing_sampled,
    unavailable,
};
pub(crate) use self::symbols::Symbols;

use self::judge::faults;
use crate::LabError;
use crate::sample::longest_gap;
use crate::watch::{SAMPLE_EVERY, Watch};

/// How often a profile is taken until it shows the load.
const ATTEMPTS_MAX: u32 = 3;

/// Takes the profiles of a block.
pub(crate) struct Profiler {
    profiling: Profiling,
    regime: LoadRegime,
    symbols: Symbols,
    taken: BTreeMap<(Stratum, VariantName), Taken>,
}

/// What was sampled of a trial so far.
#[derive(Debug, Default)]
struct Taken {
    stacks: Folded<'static>,
    record: Option<ProfileRecord>,
}

impl Profiler {
    /// Of a block in which profiles are asked for.
    pub(crate) fn new(profiling: Profiling, regime: LoadRegime) -> Self {
        Self {
            profiling,
            regime,
            symbols: Symbols::new(),
            taken: BTreeMap::new(),
        }
    }

    /// Where in a block profiles are asked for.
    pub(crate) fn every(&self) -> ProfileEvery {
        self.profiling.every
    }

    /// How long stacks are sampled at a time.
    pub(crate) fn slice(&self) -> Duration {
        Duration::from_millis(self.profiling.slice_ms.into())
    }

    /// How many samples are taken a second.
    pub(crate) fn frequency_hz(&self) -> u32 {
        self.profiling.frequency_hz
    }

    /// Samplers of a slice, switched off.
    ///
    /// # Errors
    /// Where this process may not sample there.
    pub(crate) fn samplers(&self, places: &[Place]) -> Result<Samplers, LabError> {
        Samplers::open(places, self.profiling.frequency_hz)
    }

    /// Adds what was sampled in a watched slice to the profile of its trial, and says whether it is to be taken
    /// again, because it does not show the load.
    pub(crate) fn add_watched<E>(
        &mut self,
        stratum: Stratum,
        variant: &VariantName,
        samplers: Samplers,
        watch: &Watch<E>,
    ) -> bool {
        let (first, last) = (watch.samples[0], watch.samples[watch.samples.len() - 1]);
        let load = SampledLoad {
            thread: watch.thread,
            time_s: (last.at - first.at).as_secs_f64(),
            forwarded_frames: last.forwarded_frames - first.forwarded_frames,
        };
        let longest_s = longest_gap(&watch.samples)
            .saturating_sub(SAMPLE_EVERY)
            .as_secs_f64();
        let bound_s = stall_bound_s(self.slice().as_secs_f64());
        let stall = ProfileFault::Stalled { longest_s, bound_s };
        let slice = samplers.take(&mut self.symbols, load, OfCpus::All);
        self.add(
            stratum,
            variant,
            slice,
            (longest_s > bound_s).then_some(stall),
        )
    }

    /// Adds a slice to the profile of its trial, and says whether it is to be taken again, because it does not
    /// show the load.
    pub(crate) fn add(
        &mut self,
        stratum: Stratum,
        variant: &VariantName,
        slice: ProfileSlice,
        fault: Option<ProfileFault>,
    ) -> bool {
        let ProfileSlice { mut record, stacks } = slice;
        record.faults = faults(&record, &stacks, self.regime);
        record.faults.extend(fault);
        self.accumulate(stratum, variant, record, stacks)
    }

    /// Notes that a slice of a trial could not be sampled, and says whether it is to be tried again.
    pub(crate) fn add_failure(
        &mut self,
        stratum: Stratum,
        variant: &VariantName,
        why: String,
    ) -> bool {
        let mut record = nothing_sampled(self.profiling.frequency_hz);
        record.faults.push(ProfileFault::NotTaken { why });
        self.accumulate(stratum, variant, record, Folded::new())
    }

    fn accumulate(
        &mut self,
        stratum: Stratum,
        variant: &VariantName,
        record: ProfileRecord,
        stacks: Folded<'static>,
    ) -> bool {
        let is_good = record.faults.is_empty();
        let taken = self.taken.entry((stratum, variant.clone())).or_default();
        match &mut taken.record {
            None => {
                taken.record = Some(record);
                taken.stacks = stacks;
            }
            // What did not show the load is no part of what does.
            Some(before) if !before.faults.is_empty() => {
                let attempts = before.attempts;
                *before = record;
                before.attempts += attempts;
                taken.stacks = stacks;
            }
            Some(before) if is_good => {
                join(before, &record);
                for stack in stacks.stacks() {
                    taken
                        .stacks
                        .push(stack.frames().map(str::to_owned), stack.samples);
                }
            }
            Some(before) => before.attempts += 1,
        }
        let attempts = taken.record.as_ref().map_or(0, |record| record.attempts);
        !is_good && attempts < ATTEMPTS_MAX
    }

    /// The profiles of all trials of the block, their stacks in text.
    pub(crate) fn finish(
        self,
    ) -> (
        BTreeMap<(Stratum, VariantName), ProfileRecord>,
        Vec<ProfileStacks>,
    ) {
        let mut records = BTreeMap::new();
        let mut profiles = Vec::new();
        for ((stratum, variant), taken) in self.taken {
            profiles.push(ProfileStacks {
                variant: variant.clone(),
                stratum,
                folded: taken.stacks.merged().to_string(),
            });
            records.extend(taken.record.map(|record| ((stratum, variant), record)));
        }
        (records, profiles)
    }
}

/// Two slices of one trial become one profile.
fn join(one: &mut ProfileRecord, other: &ProfileRecord) {
    let time_s = one.time_s + other.time_s;
    let frames = |record: &ProfileRecord| record.pooled_pps * record.time_s;
    one.pooled_pps = (frames(one) + frames(other)) / time_s;
    one.time_s = time_s;
    one.samples += other.samples;
    one.idle_samples += other.idle_samples;
    for (one, other) in one.samples_by_cpu.iter_mut().zip(&other.samples_by_cpu) {
        one.samples += other.samples;
    }
    one.foreign_samples += other.foreign_samples;
    one.harness_samples += other.harness_samples;
    one.lost_samples += other.lost_samples;
    one.outside_samples += other.outside_samples;
}
