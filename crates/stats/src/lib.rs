#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod ministat;

mod block_effect;
mod ceiling;
mod control;
mod detectable;
mod error;
mod format;
mod hodges_lehmann;
mod interference;
mod multiplicity;
mod sign_flip;
mod signed_rank;
mod spread;
mod student;
mod verdict;
mod warning;

pub use block_effect::{BlockEffect, Observation, Slice, block_effect, log_ratio, observation};
pub use ceiling::{VariantObservations, ceiling_warnings};
pub use control::{CONTROL_CONFIDENCE, ControlVerdict, control_verdict};
pub use detectable::{DETECTION_POWER, PooledSpread, blocks_to_show, smallest_effect};
pub use error::StatsError;
pub use format::{format_confidence, format_effect, format_p, percent};
pub use hodges_lehmann::Interval;
pub use interference::{DISTURBED_RATIO, Sample, Undisturbed, undisturbed, undisturbed_loop_ns};
pub use multiplicity::holm_adjusted;
pub use sign_flip::{SIGN_FLIP_EXACT_MAX, sign_flip_p};
pub use signed_rank::{EXACT_BLOCKS_MAX, SignedRank, SignedRankNull, minimum_blocks};
pub use spread::{Spread, VarianceComponents, median, variance_components};
pub use student::StudentSample;
pub use verdict::{
    ClaimPValues, ComparisonEffects, ComparisonVerdict, FamilyVerdicts, MoreBlocks, OtherMethods,
    Verdict, VerdictSettings, family_verdicts,
};
pub use warning::Warning;
