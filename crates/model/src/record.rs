//! What a run leaves behind: one record a trial, a block and a session, and one row a slice.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::words::{AddressFamily, VariantName};

/// Version of the records' form; readers refuse a newer one.
pub const SCHEMA_VERSION: u32 = 1;

/// One line of `trials.jsonl`.
///
/// The trials of a block come first and its block record last: a block without one was cut short,
/// and its trials are superseded by the next attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "lowercase")]
pub enum Record {
    /// One variant in one block.
    Trial(TrialRecord),
    /// A whole block: its end mark.
    Block(BlockRecord),
}

/// One variant of one address family in one block.
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
    /// The address family.
    pub family: AddressFamily,
    /// Start of its first slice, UTC.
    pub start: String,
    /// Sum of its slices' time, in seconds.
    pub measured_s: f64,
    /// Frames the tester sent during its slices.
    pub offered_frames: u64,
    /// Frames that reached the sink during its slices.
    pub forwarded_frames: u64,
    /// Frames dropped during its slices, by reason.
    pub drops: BTreeMap<String, u64>,
    /// The observation: median over the slices of forwarded frames / slice time.
    pub observation_pps: f64,
    /// All forwarded frames / all slice time.
    pub pooled_pps: f64,
    /// CPU time that the hypervisor took from the load CPU during its slices, in seconds.
    pub steal_s: f64,
    /// Median of the calibration loop's time at its slices' edges, in nanoseconds.
    pub calibration_ns: f64,
    /// Empty where the trial is valid.
    pub invalid: Vec<InvalidReason>,
}

/// Evidence against a trial that does not use its forwarding rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum InvalidReason {
    /// Frames offered and not found again, as forwarded or as a counted drop.
    Unaccounted {
        /// Offered minus forwarded minus all drops.
        frames: i64,
    },
    /// Frames that reached the sink and were not what the DUT should have sent.
    Verification {
        /// How many of the checked frames were wrong.
        frames: u64,
        /// What was wrong with them.
        what: String,
    },
    /// The DUT's settings, read back, were not the variant's.
    SettingsMoved {
        /// What was read back.
        what: String,
    },
    /// The hypervisor took more of the load CPU than the stated bound.
    Stolen {
        /// Part of the measured time.
        ratio: f64,
        /// The bound.
        bound: f64,
    },
    /// The calibration loop ran further off its usual time than the stated bound.
    Calibration {
        /// Its time / the usual time.
        ratio: f64,
        /// The bound.
        bound: f64,
    },
    /// The tester sent less than the intended load.
    LoadShort {
        /// Offered / intended.
        ratio: f64,
        /// The bound.
        bound: f64,
    },
    /// The generator stopped inside the block.
    GeneratorStopped {
        /// What it said.
        what: String,
    },
    /// Checked frames did not come from all the planned flows.
    FlowsMissing {
        /// Flows seen among the checked frames.
        seen: u32,
        /// Flows planned.
        planned: u32,
    },
}

impl std::fmt::Display for InvalidReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unaccounted { frames } => write!(f, "{frames} frames are unaccounted for"),
            Self::Verification { frames, what } => {
                write!(f, "{frames} checked frames were wrong ({what})")
            }
            Self::SettingsMoved { what } => write!(f, "the DUT's settings moved: {what}"),
            Self::Stolen { ratio, bound } => write!(
                f,
                "the hypervisor took {:.1} % of the CPU (bound {:.1} %)",
                ratio * 100.0,
                bound * 100.0
            ),
            Self::Calibration { ratio, bound } => write!(
                f,
                "the calibration loop took {ratio:.2} times its usual time (bound {bound:.2})"
            ),
            Self::LoadShort { ratio, bound } => write!(
                f,
                "offered {:.2} % of the intended load (bound {:.2} %)",
                ratio * 100.0,
                bound * 100.0
            ),
            Self::GeneratorStopped { what } => write!(f, "the generator stopped: {what}"),
            Self::FlowsMissing { seen, planned } => {
                write!(f, "checked frames came from {seen} of {planned} flows")
            }
        }
    }
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
    /// Median time to switch from one variant to another, before the settle window, in seconds.
    pub switch_s: f64,
    /// Conservation of frames from the generator's start to its end, by family.
    pub conservation: BTreeMap<AddressFamily, Conservation>,
    /// The generator's own cost, from the drop-at-ingress control, in ns/packet, by family.
    pub generator_cost_ns: BTreeMap<AddressFamily, f64>,
}

/// Where the frames of a block went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conservation {
    /// Frames sent by the tester.
    pub offered_frames: u64,
    /// Frames of the tester that reached the sink.
    pub forwarded_frames: u64,
    /// Frames dropped, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Offered minus forwarded minus drops: 0, or the block is invalid.
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
    /// The address family.
    pub family: AddressFamily,
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
    /// Frames dropped, all reasons.
    pub dropped_frames: u64,
    /// The calibration loop's time on the load CPU at the slice's start, in nanoseconds.
    pub calibration_ns: u64,
    /// CPU time that the hypervisor took from the load CPU during the slice, in seconds.
    pub steal_s: f64,
    /// Time to switch to this variant, before the settle window, in seconds.
    pub switch_s: f64,
}

/// `sessions/<n>.json`: an uninterrupted stretch of blocks on an untouched lab.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// Number, from 1.
    pub session: u32,
    /// Start, UTC.
    pub start: String,
    /// Version of fwdlab.
    pub fwdlab: String,
    /// What was found on the machine.
    pub environment: Environment,
    /// Who runs where.
    pub placement: Placement,
}

/// What was found on the machine before the first block of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Kernel release and version, as `uname -rv` prints them.
    pub kernel: String,
    /// CPU model.
    pub cpu_model: String,
    /// Logical CPUs online.
    pub cpus: u32,
    /// Machine's vendor and product where it says.
    pub machine: Option<String>,
    /// Everything else, by name: SMT, frequency governor, hypervisor, clock source, versions.
    pub facts: BTreeMap<String, String>,
    /// What is known to spoil measurements, in sentences.
    pub noise_sources: Vec<String>,
}

impl Environment {
    /// Whether blocks measured in the other environment may stand beside those of this one; the
    /// first difference where not.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<String> {
        let pairs = [
            ("kernel", &self.kernel, &other.kernel),
            ("CPU", &self.cpu_model, &other.cpu_model),
        ];
        for (what, mine, theirs) in pairs {
            if mine != theirs {
                return Some(format!("{what} was {theirs:?} and is {mine:?}"));
            }
        }
        (self.cpus != other.cpus)
            .then(|| format!("there were {} CPUs and are {}", other.cpus, self.cpus))
    }
}

/// Who runs where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// CPU of generator, DUT and sink.
    pub load_cpu: u32,
    /// CPU of the harness.
    pub control_cpu: u32,
}
