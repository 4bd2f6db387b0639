//! A block as every kind of lab measures it: what is noted of it while it runs, how it is judged, and
//! what it leaves behind.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use fwdlab_model::{
    AccountSource, BlockRecord, Conservation, Contention, CpuTimes, DutReading, Load, LoadRegime,
    PlannedBlock, ProfileEvery, ProfileStacks, RateBasis, Resolved, SCHEMA_VERSION, SliceLoad,
    SliceRecord, SliceSource, Stratum, Tester, TesterReading, TrialRecord, Variant, VariantName,
    Verification,
};
use fwdlab_stats::as_f64;

use fwdlab_sys::BootTime;

use crate::clock::utc;
use crate::counters::Drops;
use crate::cpu_account::{Taken, competitors};
use crate::cpu_speed::SpeedLog;
use crate::interference::{counted, rate_basis, slices_of, tell_undisturbed};
use crate::profiler::Profiler;
use crate::sample::{Sample, longest_gap, usual_gap};
use crate::validity::{self, AskedLoad, TrialEvidence};

/// A CPU that is busy for less of its time is not shown.
const AT_WORK_RATIO_MIN: f64 = 0.1;

/// So many frames may be under way at the start of a slice and not at its end: what a forwarder takes at once.
const UNDER_WAY_FRAMES: u32 = 64;

/// What a block left behind.
#[derive(Clone, Debug)]
pub struct BlockOutcome {
    /// One a variant and stratum.
    pub trials: Vec<TrialRecord>,
    /// What holds for all of them.
    pub block: BlockRecord,
    /// One a slice.
    pub slices: Vec<SliceRecord>,
    /// The stacks of each trial's profile, where profiles were asked for.
    pub profiles: Vec<ProfileStacks>,
}

/// What a lab tells while it works.
#[derive(Clone, Debug)]
pub enum LabEvent<'a> {
    /// A block's set-up has begun.
    SetUp,
    /// The set-up is done and every variant's probe frames were forwarded.
    Ready {
        /// Length of the set-up.
        set_up: Duration,
    },
    /// A slice was measured; what was disturbed of it shows at the end of the block.
    Slice(&'a SliceRecord),
    /// The stacks of a variant were sampled.
    Profile(&'a VariantName),
    /// How much is to be offered is found out, which takes a moment.
    FindsLoad,
    /// The DUT is booted.
    Boot {
        /// Into what.
        into: String,
    },
    /// What would have sent better does not work at the tester's port.
    NotSentBy {
        /// It.
        better: Tester,
        /// Why not.
        why: &'a str,
    },
    /// Something that would make a trial invalid could not be seen.
    Unseen {
        /// What, why, and what to do.
        why: String,
    },
    /// What passes by itself has spoilt the block's set-up or its load, and the block is begun anew.
    Again {
        /// What was said.
        why: String,
    },
}

/// A block that is to be measured, and who is asked and told meanwhile.
pub struct BlockRun<'a> {
    /// Its order of variants.
    pub planned: &'a PlannedBlock,
    /// What is asked for each slice.
    pub slices: &'a mut dyn SliceSource,
    /// The session that it is measured in, from 1.
    pub session: u32,
    /// How often the block has been tried, this time included.
    pub attempt: u32,
    /// What is told of its progress.
    pub on_event: &'a mut dyn FnMut(LabEvent<'_>),
}

/// A slice that is to be measured, with the load that it asks for.
#[derive(Clone)]
pub(crate) struct Asked<'a> {
    pub(crate) stratum: Stratum,
    /// From 1.
    pub(crate) round: u32,
    /// From 0.
    pub(crate) position: u32,
    pub(crate) variant: &'a Variant,
    pub(crate) load: Load,
    /// When the switch to its variant began, for the slice itself.
    pub(crate) begin: Instant,
}

/// A slice that was just measured.
pub(crate) struct MeasuredSlice {
    /// How long the switch to the variant took.
    pub(crate) switch: Duration,
    /// At least two; the first and the last are its edges.
    pub(crate) samples: Vec<Sample>,
    /// What the tester counted in it; what its sink did is in the samples.
    pub(crate) tester: TesterReading,
    /// CPU time that the hypervisor took from the watched CPU.
    pub(crate) steal_s: f64,
    /// What was asked of the generator, in frames per second, where so many were asked for.
    pub(crate) intended_pps: Option<f64>,
    /// Frames that the DUT took in inside it.
    pub(crate) taken_frames: u64,
    /// What was read of the DUT for it.
    pub(crate) dut: DutReading,
    /// What was read back where it was not the variant's.
    pub(crate) settings_moved: Option<String>,
    /// The DUT's ports whose link was lost under its load.
    pub(crate) links_lost: BTreeSet<String>,
    /// How the forwarder in user space had ended; none where it ran, and where there is none.
    pub(crate) forwarder_ended: Option<String>,
    /// Who took time of the load's CPUs inside it; none where nobody could tell.
    pub(crate) takers: Option<Taken>,
}

/// What is noted of a block while it runs.
pub(crate) struct BlockLog {
    pub(crate) started: BootTime,
    /// The same moment as the wall clock had it.
    started_utc: jiff::Timestamp,
    regime: LoadRegime,
    slices: Vec<SliceRecord>,
    /// Those of each slice.
    samples: Vec<Vec<Sample>>,
    evidence: BTreeMap<(Stratum, VariantName), TrialEvidence>,
    /// Why the generator of a stratum stopped by itself.
    generator_stopped: BTreeMap<Stratum, String>,
    conservation: BTreeMap<Stratum, Conservation>,
    generator_cost_ns: BTreeMap<Stratum, f64>,
    pub(crate) profiler: Option<Profiler>,
    /// From where it is known who else had the load's CPUs.
    pub(crate) cpu_account: Option<AccountSource>,
    /// How fast they are; none where they are not this machine's.
    pub(crate) cpu_speeds: Option<SpeedLog>,
}

/// Which block it is, and how it began.
pub(crate) struct BlockStart {
    pub(crate) session: u32,
    pub(crate) attempt: u32,
    pub(crate) set_up: Duration,
}

impl BlockLog {
    /// Of a block whose set-up begins now.
    pub(crate) fn new(resolved: &Resolved, regime: LoadRegime) -> Self {
        Self {
            started: BootTime::now(),
            started_utc: jiff::Timestamp::now(),
            regime,
            slices: Vec::new(),
            samples: Vec::new(),
            evidence: BTreeMap::new(),
            generator_stopped: BTreeMap::new(),
            conservation: BTreeMap::new(),
            generator_cost_ns: BTreeMap::new(),
            profiler: resolved
                .profiling
                .map(|profiling| Profiler::new(profiling, regime)),
            cpu_account: None,
            cpu_speeds: None,
        }
    }

    /// Whether profiles are taken there.
    pub(crate) fn profiles(&self, every: ProfileEvery) -> bool {
        let profiler = self.profiler.as_ref();
        profiler.is_some_and(|profiler| profiler.every() == every)
    }

    /// Notes a slice; what was disturbed of it is told at the end of the block.
    pub(crate) fn add_slice(
        &mut self,
        asked: &Asked<'_>,
        mut slice: MeasuredSlice,
    ) -> &SliceRecord {
        let samples = slice.samples;
        let (start, end) = (samples[0], samples[samples.len() - 1]);
        let time_s = (end.at - start.at).as_secs_f64();
        let forwarded_frames = end.forwarded_frames - start.forwarded_frames;
        slice.tester.forwarded_frames = forwarded_frames;
        let loops_ns = samples.iter().map(|sample| sample.loop_ns);
        let record = SliceRecord {
            stratum: asked.stratum,
            round: asked.round,
            position: asked.position,
            variant: asked.variant.name.clone(),
            start_s: (start.at - self.started).as_secs_f64(),
            time_s,
            offered_frames: slice.tester.offered_frames,
            forwarded_frames,
            undisturbed_s: time_s,
            undisturbed_frames: forwarded_frames,
            dropped_frames: slice.tester.not_transmitted_frames + slice.dut.dropped_frames(),
            calibration_ns: loops_ns.min().unwrap_or_default(),
            steal_s: slice.steal_s,
            switch_s: slice.switch.as_secs_f64(),
            contention: (slice.takers.as_ref()).map(|takers| Contention {
                competing_s: competing_s(takers, &samples),
                alone_s: time_s,
                alone_frames: forwarded_frames,
            }),
            load: Some(SliceLoad {
                regime: self.regime,
                intended_pps: slice.intended_pps,
                taken_frames: slice.taken_frames,
            }),
        };
        let since_start = Duration::from_secs_f64(record.start_s);
        let start = self.started_utc.saturating_add(since_start);
        let evidence = self.evidence_of(asked.stratum, &asked.variant.name);
        if evidence.start.is_empty() {
            evidence.start = utc(start.unwrap_or(jiff::Timestamp::MAX));
        }
        evidence.tester += slice.tester;
        evidence.dut += slice.dut;
        for (who, time) in slice.takers.into_iter().flatten() {
            *evidence.takers.entry(who).or_default() += time;
        }
        evidence.links_lost.extend(slice.links_lost);
        evidence.settings_moved = evidence.settings_moved.take().or(slice.settings_moved);
        evidence.forwarder_ended = evidence.forwarder_ended.take().or(slice.forwarder_ended);
        self.samples.push(samples);
        self.slices.push(record);
        &self.slices[self.slices.len() - 1]
    }

    /// What is known of a trial beside its slices.
    pub(crate) fn evidence_of(
        &mut self,
        stratum: Stratum,
        variant: &VariantName,
    ) -> &mut TrialEvidence {
        self.evidence.entry((stratum, variant.clone())).or_default()
    }

    /// Notes that the generator of a stratum stopped by itself.
    pub(crate) fn note_generator_stopped(&mut self, stratum: Stratum, why: String) {
        self.generator_stopped.insert(stratum, why);
    }

    /// Notes what a stratum's frames became from the generator's start to its end, and the generator's
    /// own cost where it is part of what a packet costs.
    pub(crate) fn end_stratum(
        &mut self,
        stratum: Stratum,
        conservation: Conservation,
        generator_cost_ns: Option<f64>,
    ) {
        self.conservation.insert(stratum, conservation);
        let cost_ns = generator_cost_ns.map(|cost_ns| (stratum, cost_ns));
        self.generator_cost_ns.extend(cost_ns);
    }

    /// Notes how long nothing was read inside slices. How often it is read depends on the lab, so that the usual time
    /// is the block's own.
    fn note_stalls(&mut self) {
        let usual_s = usual_gap(&self.samples).as_secs_f64();
        for (slice, samples) in self.slices.iter().zip(&self.samples) {
            let longest_s = longest_gap(samples).as_secs_f64() - usual_s;
            let of_trial = (slice.stratum, slice.variant.clone());
            let evidence = self.evidence.entry(of_trial).or_default();
            evidence.longest_stall_s = evidence.longest_stall_s.max(longest_s);
        }
    }

    /// The block's records, each trial judged.
    ///
    /// Shape: every planned stratum has ended.
    pub(crate) fn outcome(
        mut self,
        resolved: &Resolved,
        asked: &AskedLoad,
        planned: &PlannedBlock,
        start: BlockStart,
    ) -> BlockOutcome {
        let undisturbed_loop_ns = tell_undisturbed(&mut self.slices, &self.samples, self.regime);
        self.note_stalls();
        let block = BlockRecord {
            schema: SCHEMA_VERSION,
            session: start.session,
            block: planned.number,
            attempt: start.attempt,
            start: utc(self.started_utc),
            set_up_s: start.set_up.as_secs_f64(),
            took_s: None,
            clock_step_s: None,
            switch_s: median(self.slices.iter().map(|slice| slice.switch_s)),
            conservation: self.conservation,
            generator_cost_ns: self.generator_cost_ns,
            undisturbed_loop_ns,
            cpu_account: self.cpu_account,
            cpu_speeds: self.cpu_speeds.map(SpeedLog::finish).unwrap_or_default(),
            rate_basis: rate_basis(planned, &self.slices),
            differing_facts: BTreeMap::new(),
            tester: None,
        };
        let (mut records, profiles) = self.profiler.map(Profiler::finish).unwrap_or_default();
        let mut trials = trials(
            resolved,
            asked,
            planned,
            &block,
            &self.slices,
            self.evidence,
            &self.generator_stopped,
        );
        for trial in &mut trials {
            let profile = records.remove(&(trial.stratum, trial.variant.clone()));
            trial.profile = profile.map(Box::new);
        }
        BlockOutcome {
            trials,
            block,
            slices: self.slices,
            profiles,
        }
    }
}

/// The least part of an intended load that was offered, the slices under each load as one; none where nobody asked for a
/// number. Judged together, a slow load that was held would hide a fast one that was not.
fn offered_ratio(slices: &[&SliceRecord]) -> Option<f64> {
    let mut loads: BTreeMap<u64, (u64, f64)> = BTreeMap::new();
    for slice in slices {
        let intended_pps = slice.load?.intended_pps?;
        let (offered_frames, intended_frames) = loads.entry(intended_pps.to_bits()).or_default();
        *offered_frames += slice.offered_frames;
        *intended_frames += intended_pps * slice.time_s;
    }
    let ratios = loads.into_values();
    let ratios = ratios.map(|(offered_frames, intended)| as_f64(offered_frames) / intended);
    ratios.reduce(f64::min)
}

/// For which part of a trial's slices the load had its CPUs to itself; none where nobody could tell.
fn alone_ratio(slices: &[&SliceRecord]) -> Option<f64> {
    let alone = slices.iter().map(|slice| Some(slice.contention?.alone_s));
    let alone_s: f64 = alone.sum::<Option<f64>>()?;
    Some(alone_s / slices.iter().map(|slice| slice.time_s).sum::<f64>())
}

/// How long others had the load's CPUs in a slice: as its samples tell, or, where those do not, as the sum over whoever
/// it was.
fn competing_s(takers: &Taken, samples: &[Sample]) -> f64 {
    let (start, end) = (samples[0], samples[samples.len() - 1]);
    let sampled = end.taken.saturating_sub(start.taken);
    if sampled.is_zero() {
        takers.values().sum::<Duration>().as_secs_f64()
    } else {
        sampled.as_secs_f64()
    }
}

/// Where the frames of a stratum went, with what nobody can account for.
///
/// Shape: counts from the generator's start on, read when nothing was under way any more.
pub(crate) fn conservation(
    offered_frames: u64,
    forwarded_frames: u64,
    not_transmitted_frames: u64,
    drops: Drops,
    foreign_frames: u64,
    verification: Verification,
) -> Conservation {
    let dropped = not_transmitted_frames + drops.values().sum::<u64>();
    Conservation {
        offered_frames,
        forwarded_frames,
        not_transmitted_frames,
        unaccounted_frames: offered_frames.cast_signed()
            - forwarded_frames.cast_signed()
            - dropped.cast_signed(),
        drops,
        foreign_frames,
        verification,
    }
}

/// The records of a block's trials.
fn trials(
    resolved: &Resolved,
    asked: &AskedLoad,
    planned: &PlannedBlock,
    block: &BlockRecord,
    slices: &[SliceRecord],
    mut evidence: BTreeMap<(Stratum, VariantName), TrialEvidence>,
    generator_stopped: &BTreeMap<Stratum, String>,
) -> Vec<TrialRecord> {
    let usual_calibration_ns = median(slices.iter().map(|slice| as_f64(slice.calibration_ns)));
    let mut trials = Vec::new();
    for order in &planned.strata {
        let traffic = resolved.traffic(order.stratum);
        let flows_in_turn = match traffic.zipf {
            None => Some(traffic.flows_in_all_directions()),
            Some(_) => None,
        };
        let mut wrong_in_trials: BTreeMap<String, u64> = BTreeMap::new();
        let of_trials = evidence
            .iter()
            .filter(|((stratum, _), _)| *stratum == order.stratum);
        for (what, frames) in of_trials.flat_map(|(_, evidence)| &evidence.wrong_frames) {
            *wrong_in_trials.entry(what.clone()).or_default() += frames;
        }
        let of_stratum = validity::of_stratum(
            &block.conservation[&order.stratum],
            &wrong_in_trials,
            flows_in_turn,
            generator_stopped.get(&order.stratum),
            asked,
        );
        for (position, name) in (0..).zip(order.variants()) {
            let own: Vec<_> = slices_of(slices, order.stratum, name).collect();
            let mut evidence = evidence
                .remove(&(order.stratum, name.clone()))
                .unwrap_or_default();
            let under_way_frames = u64::from(UNDER_WAY_FRAMES.max(traffic.burst_frames));
            evidence.under_way_frames = under_way_frames * own.len() as u64;
            let measured_s: f64 = own.iter().map(|slice| slice.time_s).sum();
            let basis = block.rate_basis[&order.stratum];
            let mut trial = TrialRecord {
                schema: SCHEMA_VERSION,
                session: block.session,
                block: block.block,
                attempt: block.attempt,
                order: position,
                variant: name.clone(),
                stratum: order.stratum,
                start: evidence.start.clone(),
                measured_s,
                tester: evidence.tester.clone(),
                dut: DutReading {
                    cpus: at_work(&evidence.dut.cpus),
                    ..evidence.dut.clone()
                },
                kernel_drop_reasons: evidence.kernel_drop_reasons.clone(),
                undisturbed_s: own.iter().map(|slice| slice.undisturbed_s).sum(),
                observation_pps: fwdlab_stats::observation(
                    &counted(slices, order.stratum, name, basis),
                    resolved.design.shortest_counted_s(),
                )
                .map_or(f64::NAN, |observation| {
                    observation.median_forwarding_rate_pps
                }),
                pooled_pps: as_f64(evidence.tester.forwarded_frames) / measured_s,
                competing_s: own
                    .iter()
                    .map(|slice| Some(slice.contention?.competing_s))
                    .sum(),
                competitors: competitors(&evidence.takers, measured_s),
                steal_s: own.iter().map(|slice| slice.steal_s).sum(),
                calibration_ns: median(own.iter().map(|slice| as_f64(slice.calibration_ns))),
                profile: None,
                invalid: of_stratum.clone(),
            };
            trial.invalid.extend(validity::of_trial(
                &trial,
                &evidence,
                usual_calibration_ns,
                f64::from(resolved.design.slice_ms) / 1e3,
                (basis != RateBasis::Undisturbed)
                    .then(|| alone_ratio(&own))
                    .flatten(),
                offered_ratio(&own),
                asked,
            ));
            trials.push(trial);
        }
    }
    trials
}

/// The CPUs that had something to do; the one that had most, where none had much.
fn at_work(cpus: &BTreeMap<u32, CpuTimes>) -> BTreeMap<u32, CpuTimes> {
    let busy_ratio = |times: &CpuTimes| times.busy_s / times.watched_s.max(f64::MIN_POSITIVE);
    let most = cpus.values().map(busy_ratio).fold(0.0, f64::max);
    let at_least = AT_WORK_RATIO_MIN.min(most);
    let at_work = cpus
        .iter()
        .filter(|(_, times)| busy_ratio(times) >= at_least);
    // The DUT counts in ticks, of which none is shorter than that.
    let milliseconds = |seconds: f64| (seconds * 1e3).round() / 1e3;
    at_work
        .map(|(&cpu, times)| {
            let times = CpuTimes {
                watched_s: milliseconds(times.watched_s),
                busy_s: milliseconds(times.busy_s),
                interrupts_s: milliseconds(times.interrupts_s),
                stolen_s: milliseconds(times.stolen_s),
            };
            (cpu, times)
        })
        .collect()
}

pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    fwdlab_stats::median(&values.collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_was_held_does_not_hide_one_that_was_not() {
        let slice = |intended_pps, offered_frames| SliceRecord {
            time_s: 0.1,
            offered_frames,
            load: Some(SliceLoad {
                regime: LoadRegime::Paced,
                intended_pps,
                taken_frames: offered_frames,
            }),
            ..SliceRecord::at(Stratum::INET, 1, 0, VariantName::from_label("none"))
        };
        let ratio = |slices: &[SliceRecord]| offered_ratio(&slices.iter().collect::<Vec<_>>());
        let fast = |offered| slice(Some(1e6), offered);
        // Slices under one load make up for each other.
        assert_eq!(ratio(&[fast(90_000), fast(110_000)]), Some(1.0));
        let slow = slice(Some(1e4), 1000);
        assert_eq!(ratio(&[fast(90_000), slow.clone(), slow]), Some(0.9));
        assert_eq!(ratio(&[fast(90_000), slice(None, 1)]), None);
        assert_eq!(ratio(&[]), None);
    }
}
