//! Why records make no report.

use fwdlab_stats::{StatsError, ministat};

/// Records from which no report can be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// What was given as known findings are none.
    #[error(
        "this is not what `fwdlab lint --json` prints: {source}; give a file that it has written"
    )]
    NoBaseline {
        /// What the parser says.
        source: serde_json::Error,
    },
    /// The known findings are of a later version.
    #[error(
        "a later fwdlab has printed these findings (schema {schema}); use that version, or print them again with --json"
    )]
    NewerBaseline {
        /// The version of their form.
        schema: u32,
    },
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
    /// A session with an observation that has no logarithm.
    #[error(
        "{directory}{}: observation {observation} of {variant:?} is {value}, and only rates above 0 can be compared; \
         give another directory", in_session(*session)
    )]
    NotPositive {
        /// The results directory.
        directory: String,
        /// The session in it, where it says.
        session: Option<u32>,
        /// Its name for readers.
        variant: String,
        /// Which one of the variant's in the session, from 1.
        observation: usize,
        /// Zero or less.
        value: f64,
    },
    /// Sides of several sessions, of which no test could show anything.
    #[error(
        "{baseline} ({}) and {other} ({}): where a side has several sessions, each counts as one observation, and \
         with {other_sessions} against {baseline_sessions} the smallest p of the exact rank test is {}; give at least \
         {need} sessions of each side, or reruns of one configuration with --sessions",
        counted_sessions(*baseline_sessions), counted_sessions(*other_sessions), fwdlab_stats::format_p(*smallest_p)
    )]
    TooFewSessions {
        /// The baseline.
        baseline: String,
        /// Its sessions.
        baseline_sessions: usize,
        /// The other side.
        other: String,
        /// Its sessions.
        other_sessions: usize,
        /// The smallest p-value that their test can have.
        smallest_p: f64,
        /// How many sessions a side would do.
        need: usize,
    },
    /// Reruns that show nothing of the noise between sessions.
    #[error(
        "--sessions: {} given, too few to estimate the noise between sessions; give at least {need}",
        counted_sessions(*have)
    )]
    TooFewReruns {
        /// Their sessions.
        have: usize,
        /// How many would do.
        need: usize,
    },
    /// Reruns where the sides show the noise between sessions themselves.
    #[error(
        "--sessions: each side has {need} sessions or more, which show the noise between sessions themselves; leave it out"
    )]
    NeedlessReruns {
        /// How many sessions a side do.
        need: usize,
    },
    /// Methods were asked for where nothing is tested.
    #[error(
        "--methods: with so few sessions a side there is no test to compare other methods with; omit --methods"
    )]
    NothingTested,
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

fn counted_sessions(number: usize) -> String {
    crate::format::counted(number as u64, "session")
}

fn in_session(number: Option<u32>) -> String {
    number.map_or_else(String::new, |number| format!(", session {number}"))
}
