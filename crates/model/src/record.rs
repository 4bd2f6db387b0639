//! What a run leaves behind of its blocks: one record a trial and a block, and one row a slice.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::dut_reading::DutReading;
use crate::profile::ProfileRecord;
use crate::session::Tester;
use crate::stratum::{self, Stratum};
use crate::tester_reading::{TesterReading, is_zero};
use crate::words::{LoadRegime, VariantName};
use crate::written_record::WrittenRecord;

/// Version of the records' form; readers refuse a newer one.
pub const SCHEMA_VERSION: u32 = 2;

/// One line of `trials.jsonl`.
///
/// The trials of a block come first and its block record last: a block without one was cut short,
/// and its trials are superseded by the next attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "lowercase", from = "WrittenRecord")]
pub enum Record {
    /// One variant in one block.
    Trial(TrialRecord),
    /// A whole block: its end mark.
    Block(BlockRecord),
}

/// One variant of one stratum in one block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// Session in which it was measured, from 1.
    pub session: u32,
    /// Block, from 1.
    pub block: u32,
    /// Attempt at that block, from 1.
    pub attempt: u32,
    /// Place of its first slice in the block's first round, from 0.
    pub order: u32,
    /// The variant.
    pub variant: VariantName,
    /// The stratum.
    #[serde(flatten)]
    pub stratum: Stratum,
    /// Start of its first slice, UTC.
    pub start: String,
    /// Sum of its slices' time, in seconds.
    pub measured_s: f64,
    /// What the tester counted during its slices.
    #[serde(flatten)]
    pub tester: TesterReading,
    /// What was read of the DUT during its slices; of its CPUs those that had something to do.
    #[serde(flatten)]
    pub dut: DutReading,
    /// Frames that the DUT's kernel dropped in a sample after the slices, by the kernel's own reason;
    /// sampled where the DUT dropped any, and readable.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kernel_drop_reasons: BTreeMap<String, u64>,
    /// The part of `measured_s` in which nothing outside disturbed the load CPU, in seconds.
    pub undisturbed_s: f64,
    /// The observation: median over the slices of forwarded frames / slice time, on the block's
    /// [`RateBasis`].
    pub observation_pps: f64,
    /// All forwarded frames / all slice time, disturbed or not.
    pub pooled_pps: f64,
    /// Time that others took of the load's CPUs during its slices, in seconds: other programs, threads of the kernel
    /// that do not serve frames, other devices. None where nobody could tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub competing_s: Option<f64>,
    /// Who took it: those that took a thousandth of its time or more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub competitors: Vec<Competitor>,
    /// CPU time that the hypervisor took from the load CPU during its slices, in seconds.
    pub steal_s: f64,
    /// Median over its slices of the calibration loop's shortest time, in nanoseconds.
    pub calibration_ns: f64,
    /// What is known of its profile, where one was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Box<ProfileRecord>>,
    /// Empty where the trial is valid.
    pub invalid: Vec<InvalidReason>,
}

impl TrialRecord {
    /// Whether it was measured in that attempt at that block.
    #[must_use]
    pub fn belongs_to(&self, block: &BlockRecord) -> bool {
        (self.session, self.block, self.attempt) == (block.session, block.block, block.attempt)
    }
}

/// A program, a thread of the kernel or a device that had a CPU of the load beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Competitor {
    /// The CPU.
    pub cpu: u32,
    /// What it is called.
    pub name: String,
    /// How long it had the CPU, in seconds.
    pub time_s: f64,
}

/// How fast a CPU of the load was clocked in the slices of a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuSpeed {
    /// The CPU.
    pub cpu: u32,
    /// The lowest clock that was read, in kHz, where the machine tells.
    pub lowest_khz: Option<u64>,
    /// The highest.
    pub highest_khz: Option<u64>,
    /// How often it, or its package, was slowed down for being too hot.
    pub throttled: u64,
}

/// From where it is known who had the load's CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccountSource {
    /// The kernel's scheduler, switch by switch.
    Scheduler,
    /// The CPU time of threads and processes: how much was taken, and probably by whom.
    Clocks,
}

/// Evidence against a trial that does not use its forwarding rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum InvalidReason {
    /// Frames offered and not found again, as forwarded or as a counted drop.
    #[error("{}", unaccounted(*frames))]
    Unaccounted {
        /// Offered minus forwarded minus not transmitted minus all drops.
        frames: i64,
    },
    /// Frames that reached the sink and were not what the DUT should have sent.
    #[error("{} wrong ({what})", checked_frames(*frames))]
    Verification {
        /// How many of the checked frames were wrong.
        frames: u64,
        /// What was wrong with them.
        what: String,
    },
    /// The DUT's settings, read back, were not the variant's.
    #[error("the DUT's settings moved: {what}")]
    SettingsMoved {
        /// What was read back.
        what: String,
    },
    /// The link of a DUT's port was lost under the load: its cable was unplugged, or its other end went down.
    #[error(
        "the link of {ports} was lost under the load; check the cable, the transceivers and the port at its other end"
    )]
    LinkLost {
        /// The ports, by name.
        ports: String,
    },
    /// The hypervisor took more of the load CPU than the stated bound.
    #[error("the hypervisor took {:.1} % of the CPU (bound {:.1} %)", ratio * 100.0, bound * 100.0)]
    Stolen {
        /// Part of the measured time.
        ratio: f64,
        /// The bound.
        bound: f64,
    },
    /// The calibration loop ran further off its usual time than the stated bound.
    #[error("the calibration loop took {ratio:.2} times its usual time (bound {bound:.2})")]
    Calibration {
        /// Its time / the usual time.
        ratio: f64,
        /// The bound.
        bound: f64,
    },
    /// Nothing was read for longer than the stated bound in a slice: this process or the machine stood still.
    #[error(
        "nothing was read for {longest_s:.3} s in a slice (bound {bound_s:.3} s); was fwdlab stopped, the machine \
         paused or suspended, or its CPUs taken by others?"
    )]
    Stalled {
        /// The longest such time, in seconds.
        longest_s: f64,
        /// The bound.
        bound_s: f64,
    },
    /// The load had its CPUs to itself for less of the time than the stated bound.
    #[error(
        "the load had its CPU to itself for only {:.1} % of the time (bound {:.1} %); it shared it with {by}",
        alone_ratio * 100.0,
        bound * 100.0
    )]
    Competition {
        /// Part of the measured time.
        alone_ratio: f64,
        /// The bound.
        bound: f64,
        /// Who, the greatest first.
        by: String,
    },
    /// The tester sent less than the intended load.
    #[error("offered {:.2} % of the intended load (bound {:.2} %)", ratio * 100.0, bound * 100.0)]
    LoadShort {
        /// Offered / intended.
        ratio: f64,
        /// The bound.
        bound: f64,
    },
    /// Overload was asked for and the DUT dropped nothing: the generator was the limit, and what was
    /// forwarded is no more than a lower bound of what the DUT can do.
    #[error(
        "overload was asked for and nothing was dropped: the generator was the limit, and the DUT can forward at \
         least this"
    )]
    GeneratorLimited,
    /// The generator stopped inside the block.
    #[error("the generator stopped: {what}")]
    GeneratorStopped {
        /// What it said.
        what: String,
    },
    /// The forwarder in user space ended by itself.
    #[error("the forwarder ended: {what}")]
    ForwarderEnded {
        /// How, and what it said last.
        what: String,
    },
    /// More frames came out in the trial's slices than were offered in them.
    #[error(
        "{forwarded_frames} frames came out while {offered_frames} were offered: frames from before a slice came out in \
         it; raise `settle_ms`"
    )]
    EarlierFrames {
        /// Frames offered in its slices.
        offered_frames: u64,
        /// Frames that reached the sink in them.
        forwarded_frames: u64,
    },
    /// Frames that were missing when the trial's slices had ended came out of the forwarder later.
    #[error(
        "{} of {offered_frames} came out of the forwarder only after the slice, and are not lost; raise `settle_ms`",
        counted(*frames, "frame")
    )]
    LateFrames {
        /// Frames offered in its slices.
        offered_frames: u64,
        /// Those that came out later.
        frames: u64,
    },
    /// Checked frames did not come from all the planned flows.
    #[error("checked frames came from {seen} of {planned} flows")]
    FlowsMissing {
        /// Flows seen among the checked frames.
        seen: u32,
        /// Flows planned.
        planned: u32,
    },
}

/// `1 frame`, `2 frames`.
fn counted(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

fn checked_frames(number: u64) -> String {
    let verb = if number == 1 { "was" } else { "were" };
    format!("{} {verb}", counted(number, "checked frame"))
}

/// More frames than were offered are not lost.
fn unaccounted(frames: i64) -> String {
    if frames < 0 {
        let more = frames.unsigned_abs();
        return format!(
            "{more} more frames were counted than offered; does something duplicate frames?"
        );
    }
    format!("{frames} frames are unaccounted for")
}

/// A whole block: its end mark, and what holds for all its trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockRecord {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// Session in which it was measured.
    pub session: u32,
    /// Block, from 1.
    pub block: u32,
    /// Attempt, from 1.
    pub attempt: u32,
    /// Start of the set-up, UTC.
    pub start: String,
    /// Length of the set-up, in seconds.
    pub set_up_s: f64,
    /// From the end of the block before it to its own, by the clock, in seconds: set-up, slices, profiles and all
    /// else. None where nobody looked at the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_s: Option<f64>,
    /// By how much the wall clock was set in that time, in seconds, forward where positive; no time of a measurement is
    /// taken from that clock. None where it was not set, or nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_step_s: Option<f64>,
    /// Median time to switch from one variant to another, before the settle window, in seconds.
    pub switch_s: f64,
    /// Conservation of frames from the generator's start to its end, by stratum.
    #[serde(with = "stratum::keys")]
    pub conservation: BTreeMap<Stratum, Conservation>,
    /// The generator's own cost, from the drop-at-ingress control, in ns/packet, by stratum.
    #[serde(with = "stratum::keys")]
    pub generator_cost_ns: BTreeMap<Stratum, f64>,
    /// The calibration loop's time where nothing disturbs it, in nanoseconds.
    pub undisturbed_loop_ns: f64,
    /// From where it is known who else had the load's CPUs; none where nobody could tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_account: Option<AccountSource>,
    /// How fast the load's CPUs were clocked, those of which the machine tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_speeds: Vec<CpuSpeed>,
    /// Which part of the slices the observations rest on, by stratum.
    #[serde(with = "stratum::keys")]
    pub rate_basis: BTreeMap<Stratum, RateBasis>,
    /// Of a lab of hosts: everything that was found to differ between the variants on the DUT, and each sysctl that its
    /// kernel has made something else of than was asked for, by variant and fact.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub differing_facts: BTreeMap<VariantName, BTreeMap<String, String>>,
    /// Of a lab of hosts: what sent and counted, which only shows when the first frames are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tester: Option<Tester>,
}

/// Which part of its slices a block's forwarding rates rest on; one for all its trials, so that they
/// stay comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateBasis {
    /// What was left undisturbed.
    Undisturbed,
    /// The time in which the load had its CPUs to itself, because too little of it was undisturbed.
    Alone,
    /// All of the time, because nobody could tell who else had the load's CPUs, or others had them nearly always.
    AllTime,
}

/// What has become of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// It belongs to the attempt that stands for its block: the first whole one whose trials are
    /// all valid.
    Accepted,
    /// It belongs to a whole attempt with an invalid trial: itself, or another one.
    Invalid,
    /// Its attempt was cut short, or came after the one that stands.
    Superseded,
}

/// The fate of each record, in the records' order.
///
/// An attempt is whole where its block record follows its trials; a block is judged as one,
/// because its trials are compared with one another.
///
/// Shape: the records in the order in which they were written.
#[must_use]
pub fn fates(records: &[Record]) -> Vec<Fate> {
    let mut fates = vec![Fate::Superseded; records.len()];
    let mut accepted = BTreeSet::new();
    let mut first = 0;
    for (end, record) in records.iter().enumerate() {
        let Record::Block(block) = record else {
            continue;
        };
        let trials: Vec<(usize, &TrialRecord)> = records[first..end]
            .iter()
            .enumerate()
            .filter_map(|(offset, record)| match record {
                Record::Trial(trial) if trial.belongs_to(block) => Some((first + offset, trial)),
                _ => None,
            })
            .collect();
        let valid = !trials.is_empty() && trials.iter().all(|(_, trial)| trial.invalid.is_empty());
        let fate = match (valid, accepted.contains(&block.block)) {
            (false, _) => Fate::Invalid,
            (true, false) => Fate::Accepted,
            (true, true) => Fate::Superseded,
        };
        if fate == Fate::Accepted {
            accepted.insert(block.block);
        }
        fates[end] = fate;
        for (index, _) in trials {
            fates[index] = fate;
        }
        first = end + 1;
    }
    fates
}

/// Where the frames of a block went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conservation {
    /// Frames sent by the tester.
    pub offered_frames: u64,
    /// Frames of the tester that reached the sink.
    pub forwarded_frames: u64,
    /// Frames offered that the tester's own port did not transmit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_transmitted_frames: u64,
    /// Frames dropped, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Offered minus forwarded minus not transmitted minus drops: 0, or the block is invalid.
    pub unaccounted_frames: i64,
    /// Frames at the sink that are not the tester's (neighbour and router discovery, MLD).
    pub foreign_frames: u64,
    /// The sink's check of every 64th frame.
    pub verification: Verification,
}

/// What the sink's check found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// Frames checked completely.
    pub checked_frames: u64,
    /// Frames that were wrong, by what was wrong first.
    pub wrong_frames: BTreeMap<String, u64>,
    /// Distinct flows among the checked frames.
    pub flows_seen: u32,
}

/// One row of `blocks/<n>.csv`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SliceRecord {
    /// The stratum.
    #[serde(flatten)]
    pub stratum: Stratum,
    /// Round, from 1.
    pub round: u32,
    /// Place in the round, from 0.
    pub position: u32,
    /// The variant.
    pub variant: VariantName,
    /// Start, in seconds since the block's start.
    pub start_s: f64,
    /// Length, in seconds.
    pub time_s: f64,
    /// Frames sent by the tester.
    pub offered_frames: u64,
    /// Frames that reached the sink.
    pub forwarded_frames: u64,
    /// The part of `time_s` in which nothing outside disturbed the load CPU, in seconds.
    pub undisturbed_s: f64,
    /// Frames that reached the sink in that part.
    pub undisturbed_frames: u64,
    /// Frames lost, all reasons, with those that the tester did not transmit.
    pub dropped_frames: u64,
    /// The calibration loop's shortest time on the load CPU during the slice, in nanoseconds.
    pub calibration_ns: u64,
    /// CPU time that the hypervisor took from the load CPU during the slice, in seconds.
    pub steal_s: f64,
    /// Time to switch to this variant, before the settle window, in seconds.
    pub switch_s: f64,
    /// What others took of the load's CPUs; none where nobody could tell.
    pub contention: Option<Contention>,
    /// The intended load, and how much of it reached the DUT; none in schema 1.
    pub load: Option<SliceLoad>,
}

/// The load that was meant for a slice, and how much of what was offered came to the DUT.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SliceLoad {
    /// The load regime.
    pub regime: LoadRegime,
    /// What was asked of the generator, in frames per second; none where it sends what it can, or what the DUT takes.
    pub intended_pps: Option<f64>,
    /// Frames that came to the DUT: those offered, less those that the tester's own port did not transmit. Behind a virtual
    /// port there are none of these: what a full port of the DUT refuses is the DUT's drop. A tester on another host knows the latter of the load as a whole: they are the same part of the slice.
    pub taken_frames: u64,
}

/// What others took of the load's CPUs in a slice, and what was left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Contention {
    /// Time that others took, in seconds.
    pub competing_s: f64,
    /// The part of the slice in which the load had its CPUs to itself, in seconds. Under a pace all of it: frames that
    /// others delayed are made up for.
    pub alone_s: f64,
    /// Frames that reached the sink in that part.
    pub alone_frames: u64,
}

/// How much later than usual a sample may come in a slice of `slice_s` seconds, in seconds.
///
/// Time in which nothing is read counts as measured, and the load stands still in it too where it is this process that
/// was stopped. Schedulers make a sample late by some milliseconds; of 10 000 slices on a busy machine of two CPUs one
/// ended more than 10 ms late. Longer slices bear more.
#[must_use]
pub fn stall_bound_s(slice_s: f64) -> f64 {
    0.02 + 0.05 * slice_s
}

/// A trial of which less was undisturbed says nothing about the undisturbed rate.
pub const UNDISTURBED_RATIO_MIN: f64 = 0.05;

/// A trial whose rates do not rest on undisturbed time needs this part of its time with the load's CPUs to itself. Rates
/// right behind another program are those of cold caches: where little else was left, two equal variants of a block
/// differed by up to a fifth.
pub const ALONE_RATIO_MIN: f64 = 0.25;

impl SliceRecord {
    /// A slice at its place, from 1 and from 0, of which nothing is known.
    #[must_use]
    pub fn at(stratum: Stratum, round: u32, position: u32, variant: VariantName) -> Self {
        Self {
            stratum,
            round,
            position,
            variant,
            start_s: 0.0,
            time_s: 0.0,
            offered_frames: 0,
            forwarded_frames: 0,
            undisturbed_s: 0.0,
            undisturbed_frames: 0,
            dropped_frames: 0,
            calibration_ns: 0,
            steal_s: 0.0,
            switch_s: 0.0,
            contention: None,
            load: None,
        }
    }

    /// Frames forwarded, and seconds that it took, on which its forwarding rate rests; 0 of both where
    /// that is to be time of a kind of which there was none.
    #[must_use]
    pub fn counted(&self, basis: RateBasis) -> (u64, f64) {
        match basis {
            RateBasis::AllTime => (self.forwarded_frames, self.time_s),
            RateBasis::Alone => self
                .contention
                .map_or((self.forwarded_frames, self.time_s), |contention| {
                    (contention.alone_frames, contention.alone_s)
                }),
            RateBasis::Undisturbed => (self.undisturbed_frames, self.undisturbed_s),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_other_times_are_told_apart_from_lost_ones() {
        let earlier = InvalidReason::EarlierFrames {
            offered_frames: 1986,
            forwarded_frames: 4226,
        };
        assert_eq!(
            earlier.to_string(),
            "4226 frames came out while 1986 were offered: frames from before a slice came out in it; raise `settle_ms`"
        );
        let late = InvalidReason::LateFrames {
            offered_frames: 749,
            frames: 739,
        };
        assert_eq!(
            late.to_string(),
            "739 frames of 749 came out of the forwarder only after the slice, and are not lost; raise `settle_ms`"
        );
    }

    #[test]
    fn more_frames_than_were_offered_are_not_called_lost() {
        let text = |frames| InvalidReason::Unaccounted { frames }.to_string();
        assert_eq!(text(3), "3 frames are unaccounted for");
        assert_eq!(
            text(-24_367),
            "24367 more frames were counted than offered; does something duplicate frames?"
        );
    }

    fn trial(session: u32, block: u32, attempt: u32, invalid: bool) -> Record {
        Record::Trial(TrialRecord {
            schema: SCHEMA_VERSION,
            session,
            block,
            attempt,
            order: 0,
            variant: VariantName::from_label("none"),
            stratum: Stratum::INET,
            start: "2026-11-21T08:42:53Z".into(),
            measured_s: 1.0,
            tester: TesterReading::default(),
            dut: DutReading::default(),
            kernel_drop_reasons: BTreeMap::new(),
            undisturbed_s: 1.0,
            observation_pps: 1.0,
            pooled_pps: 1.0,
            competing_s: None,
            competitors: Vec::new(),
            steal_s: 0.0,
            calibration_ns: 1.0,
            profile: None,
            invalid: invalid
                .then_some(InvalidReason::Unaccounted { frames: 1 })
                .into_iter()
                .collect(),
        })
    }

    fn end(session: u32, block: u32, attempt: u32) -> Record {
        Record::Block(BlockRecord {
            schema: SCHEMA_VERSION,
            session,
            block,
            attempt,
            start: "2026-11-21T08:42:53Z".into(),
            set_up_s: 1.0,
            took_s: None,
            clock_step_s: None,
            switch_s: 0.001,
            conservation: BTreeMap::new(),
            generator_cost_ns: BTreeMap::new(),
            undisturbed_loop_ns: 1.0,
            cpu_account: None,
            cpu_speeds: Vec::new(),
            rate_basis: BTreeMap::new(),
            differing_facts: BTreeMap::new(),
            tester: None,
        })
    }

    #[test]
    fn a_block_is_judged_as_one() {
        use Fate::{Accepted, Invalid, Superseded};
        for (records, expected) in [
            (
                // One invalid trial spoils its attempt; the next one stands.
                vec![
                    trial(1, 1, 1, false),
                    trial(1, 1, 1, true),
                    end(1, 1, 1),
                    trial(1, 1, 2, false),
                    trial(1, 1, 2, false),
                    end(1, 1, 2),
                ],
                vec![Invalid, Invalid, Invalid, Accepted, Accepted, Accepted],
            ),
            (
                // Cut short before its end, and done again in the next session.
                vec![
                    trial(1, 1, 1, false),
                    trial(2, 1, 1, false),
                    end(2, 1, 1),
                    trial(2, 2, 1, false),
                ],
                vec![Superseded, Accepted, Accepted, Superseded],
            ),
            (
                // Nothing replaces what stands.
                vec![
                    trial(1, 1, 1, false),
                    end(1, 1, 1),
                    trial(1, 1, 2, false),
                    end(1, 1, 2),
                ],
                vec![Accepted, Accepted, Superseded, Superseded],
            ),
            // A block without trials shows nothing.
            (vec![end(1, 1, 1)], vec![Invalid]),
            (vec![], vec![]),
        ] {
            assert_eq!(fates(&records), expected);
        }
    }

    #[test]
    fn a_record_reads_back_as_written() {
        for record in [trial(1, 2, 3, true), end(1, 2, 3)] {
            let line = serde_json::to_string(&record).unwrap();
            assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), record);
        }
    }
}
