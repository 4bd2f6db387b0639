//! Profiles: what an experiment asks for, and what is recorded of one that was taken.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::document::{Reading, Table};
use crate::experiment::SLICE_MS;
use crate::stratum::Stratum;
use crate::words::VariantName;

pub(crate) const PROFILE_KEYS: &[&str] = &["every", "slice_ms", "frequency_hz"];

pub(crate) const EVERY: &[(&str, ProfileEvery)] = &[
    ("block", ProfileEvery::Block),
    ("trial", ProfileEvery::Trial),
];

/// With fewer a slice holds too few samples to tell anything; with more the samples are what is measured.
pub(crate) const FREQUENCY_HZ: RangeInclusive<u32> = 49..=19_999;

/// No multiple of what timers use, so that samples do not fall in step with them; on a virtual machine, where
/// every sample costs a turn of the hypervisor, this many take some six percent of a CPU, and 4999 thirteen.
const FREQUENCY_HZ_DEFAULT: u32 = 1999;

/// Some 500 samples of a CPU.
const SLICE_MS_DEFAULT: u32 = 250;

/// The profiles that an experiment asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profiling {
    /// Where in a block they are taken.
    pub every: ProfileEvery,
    /// Length of a slice in which stacks are sampled; it is no slice of a trial.
    pub slice_ms: u32,
    /// Samples a second.
    pub frequency_hz: u32,
}

/// Where in a block stacks are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileEvery {
    /// In one more round behind its last one.
    Block,
    /// Behind every slice of each trial, before the next variant's.
    Trial,
}

/// Reads the `[profile]` of an experiment.
pub(crate) fn profiling(reading: &mut Reading<'_>, table: &Table<'_>) -> Option<Profiling> {
    let every = table.required(reading, "every");
    let every = every.and_then(|value| reading.word(value, &table.what("every"), EVERY));
    let slice_ms = table.integer(reading, "slice_ms", SLICE_MS);
    let frequency_hz = table.integer(reading, "frequency_hz", FREQUENCY_HZ);
    Some(Profiling {
        every: every?,
        slice_ms: slice_ms.unwrap_or(SLICE_MS_DEFAULT),
        frequency_hz: frequency_hz.unwrap_or(FREQUENCY_HZ_DEFAULT),
    })
}

/// The stacks of a trial's profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileStacks {
    /// The variant.
    pub variant: VariantName,
    /// The stratum.
    pub stratum: Stratum,
    /// Folded stacks, a stack a line: the thread, what it ran from the outermost function on, and samples.
    pub folded: String,
}

/// What is known of the profile of a trial; its stacks are in a file of their own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProfileRecord {
    /// After what samples were taken: `cpu-clock` or `cycles`.
    pub event: String,
    /// Samples a second that were asked for.
    pub frequency_hz: u32,
    /// Whether the kernel's functions were sampled, too, or the process's alone.
    pub has_kernel: bool,
    /// Sum of the time in which samples were taken, in seconds.
    pub time_s: f64,
    /// Forwarded frames / that time: beside the trial's own it is what sampling costs.
    pub pooled_pps: f64,
    /// Samples in the file of stacks, those of idle CPUs included.
    pub samples: u64,
    /// How many of them show a CPU that had nothing to do.
    pub idle_samples: u64,
    /// Samples by CPU, of all that were to be sampled; those of other programs count here, too.
    pub samples_by_cpu: Vec<CpuSamples>,
    /// Samples of other programs on these CPUs, which are left out.
    pub foreign_samples: u64,
    /// Samples of what watches the load, which are left out.
    pub harness_samples: u64,
    /// Samples that found no room.
    pub lost_samples: u64,
    /// Samples from before the slices or behind them, which are left out.
    pub outside_samples: u64,
    /// How often it was taken until it showed the load, or was given up.
    pub attempts: u32,
    /// Why it does not show the load; empty where it does.
    pub faults: Vec<ProfileFault>,
}

/// How often a CPU was sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuSamples {
    /// The CPU.
    pub cpu: u32,
    /// Its samples.
    pub samples: u64,
}

/// Why a profile does not show the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "fault", rename_all = "kebab-case")]
pub enum ProfileFault {
    /// No sample, or so few that no share is known to a tenth of itself.
    #[error("{samples} samples are too few (bound {bound})")]
    FewSamples {
        /// How many there are.
        samples: u64,
        /// How many there have to be.
        bound: u64,
    },
    /// A CPU that forwards gave hardly a sample.
    #[error("CPU {cpu} gave {:.0} % of the samples that its time should give", ratio * 100.0)]
    MissingCpu {
        /// The CPU.
        cpu: u32,
        /// Its samples / those that its busy time should have given.
        ratio: f64,
    },
    /// Samples found no room.
    #[error("{:.1} % of the samples were lost (bound {:.1} %)", ratio * 100.0, bound * 100.0)]
    Lost {
        /// Part of all samples.
        ratio: f64,
        /// The bound.
        bound: f64,
    },
    /// Samples are not from the time in which the load was measured.
    #[error("{samples} samples are from outside the measured slices")]
    Outside {
        /// How many.
        samples: u64,
    },
    /// The machine had nothing to do, though the load regime keeps it busy.
    #[error("{:.0} % of the samples are of an idle CPU (bound {:.0} %)", ratio * 100.0, bound * 100.0)]
    Idle {
        /// Part of the samples.
        ratio: f64,
        /// The bound.
        bound: f64,
    },
    /// Other programs ran on the CPUs that forward.
    #[error("{:.0} % of the samples are of other programs (bound {:.0} %)", ratio * 100.0, bound * 100.0)]
    Foreign {
        /// Part of the samples.
        ratio: f64,
        /// The bound.
        bound: f64,
    },
    /// No sample was taken in a function that forwards.
    #[error("no sample was taken in a function that forwards")]
    NoForwarding,
    /// Nothing was read for longer than the stated bound: this process or the machine stood still.
    #[error(
        "nothing was read for {longest_s:.3} s (bound {bound_s:.3} s); was fwdlab stopped, the machine paused, or its \
         CPUs taken by others?"
    )]
    Stalled {
        /// The longest such time, in seconds.
        longest_s: f64,
        /// The bound.
        bound_s: f64,
    },
    /// It could not be taken.
    #[error("it could not be taken: {why}")]
    NotTaken {
        /// What was said.
        why: String,
    },
}
