//! What a report says of profiles, as data; [`crate::profiles`] makes it.

use fwdlab_model::{ProfileEvery, ProfileFault, Stratum, VariantName};
use fwdlab_profile::CostDifference;
use serde::{Deserialize, Serialize};

use crate::report::IntervalSection;

/// The profiles of a run, and what they say of its effects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfilesSection {
    /// Where in a block they were taken.
    pub every: ProfileEvery,
    /// After what samples were taken: `cpu-clock` or `cycles`.
    pub event: String,
    /// Samples a second that were asked for.
    pub frequency_hz: u32,
    /// Whether the kernel's functions were sampled, too.
    pub has_kernel: bool,
    /// What sampling does to the forwarding rate; none from a single block.
    pub overhead: Option<OverheadSection>,
    /// One a variant and stratum, in the experiment's order, the control behind.
    pub variants: Vec<ProfileSection>,
    /// One a variant that is compared with a baseline, and one a control.
    pub differences: Vec<ProfileDifference>,
    /// Profiles that do not show the load, of the blocks that count.
    pub rejected: Vec<RejectedProfile>,
    /// That no two variants could be compared, and why, in words; none where some could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unused: Option<String>,
}

/// What sampling does to the forwarding rate: of slices with samples against those of the same trials without.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverheadSection {
    /// Mean over the blocks, each the mean over its trials.
    pub estimate_percent: f64,
    /// Student's interval over the blocks.
    pub interval: IntervalSection,
    /// How many blocks.
    pub blocks: u32,
}

/// The profiles of one variant in one stratum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfileSection {
    /// The variant.
    pub variant: VariantName,
    /// The stratum.
    #[serde(flatten)]
    pub stratum: Stratum,
    /// Blocks with a profile that shows the load.
    pub blocks: u32,
    /// Samples of all of them, those of idle CPUs left out.
    pub samples: u64,
    /// Part of all samples that were of an idle CPU, and left out.
    pub idle_percent: f64,
    /// Samples that found no room.
    pub lost_samples: u64,
    /// What a packet costs, mean over the blocks.
    ///
    /// Units: nanoseconds of the CPUs that forward.
    pub cost_ns: f64,
    /// File name of the flame graph.
    pub flame_graph: String,
}

/// Where a variant and its baseline spend their time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfileDifference {
    /// What it is compared with.
    pub baseline: VariantName,
    /// The variant.
    pub variant: VariantName,
    /// The stratum.
    #[serde(flatten)]
    pub stratum: Stratum,
    /// Blocks with a profile of both.
    pub blocks: u32,
    /// Blocks that it takes at least to show a difference.
    pub blocks_needed: u32,
    /// What a packet costs, and how that differs; not corrected for the functions.
    pub packet: CostSection,
    /// What the functions say of that, in words, in Markdown.
    pub sentence: String,
    /// The functions that are shown to differ, those that differ most by themselves first; not all where they
    /// are many.
    pub frames: Vec<FrameSection>,
    /// How many are shown to differ.
    pub frames_different: u32,
    /// How many functions were sampled in all.
    pub frames_sampled: u32,
    /// What the list of functions leaves out and how it is to be read, in words; none without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<String>,
    /// File name of the flame graph of both.
    pub flame_graph: String,
}

/// A function in two variants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrameSection {
    /// Its name.
    pub frame: String,
    /// Of samples in it.
    pub itself: CostSection,
    /// Of samples in it or in what it calls.
    pub with_callees: CostSection,
}

/// What something costs a packet in two variants.
///
/// Units: nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostSection {
    /// In the baseline, mean over the blocks.
    pub baseline_ns: f64,
    /// In the variant.
    pub variant_ns: f64,
    /// The variant's less the baseline's.
    pub difference_ns: f64,
    /// Half the interval's length; none where too little was seen for one.
    pub half_width_ns: Option<f64>,
    /// Corrected for all functions of the comparison; none where too little was seen.
    pub p: Option<f64>,
    /// Whether a difference is shown.
    pub is_significant: bool,
}

impl From<CostDifference> for CostSection {
    fn from(cost: CostDifference) -> Self {
        Self {
            baseline_ns: cost.baseline_ns,
            variant_ns: cost.variant_ns,
            difference_ns: cost.difference_ns,
            half_width_ns: cost.interval.map(|interval| interval.half_width_ns()),
            p: cost.p,
            is_significant: cost.is_significant,
        }
    }
}

/// A profile that does not show the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RejectedProfile {
    /// Its block.
    pub block: u32,
    /// The variant.
    pub variant: VariantName,
    /// The stratum.
    #[serde(flatten)]
    pub stratum: Stratum,
    /// How often it was taken.
    pub attempts: u32,
    /// Why it was rejected each time, as of the last time.
    pub reasons: Vec<String>,
    /// The same in figures.
    #[serde(default)]
    pub faults: Vec<ProfileFault>,
}
