//! Why records make no report.

use fwdlab_stats::{StatsError, ministat};

/// Records from which no report can be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The plan has no block.
    #[error("the plan has no block to show; give the experiment some")]
    NoBlock,
    /// Nothing says where it was measured.
    #[error("sessions: no session record (0 seen); run the experiment first")]
    NoSession,
    /// A statistic refuses the records.
    #[error("comparison with {comparison:?}: {source}")]
    Statistics {
        /// The baseline and the address family.
        comparison: String,
        /// What it refuses.
        source: StatsError,
    },
    /// Pairs of which one side is missing.
    #[error(
        "{one} has {observations} observations and {other} has {other_observations}: lines can only be \
         paired where there are as many; leave --paired out, or give files of one length"
    )]
    Lengths {
        /// The baseline.
        one: String,
        /// Its observations.
        observations: usize,
        /// What was to be paired with it.
        other: String,
        /// Its observations.
        other_observations: usize,
    },
    /// Results directories without a common variant.
    #[error(
        "the results directories have no measured variant in common; compare files of theirs (*.pps) instead"
    )]
    NothingShared,
    /// The text of `ministat` cannot be made.
    #[error("ministat: {source}")]
    Ministat {
        /// Why.
        source: ministat::Error,
    },
    /// The report cannot be written as JSON.
    #[error("report.json: {source}")]
    Json {
        /// Why.
        source: serde_json::Error,
    },
}
