//! Published results judged again: what every method makes of their comparisons, and how much noise they have.

mod noise;
mod page;
mod plot;
mod practice;
mod quantiles;
mod runs;
mod sentences;
mod terminal;
#[cfg(test)]
mod tests;
mod verdicts;

use std::collections::BTreeMap;

use fwdlab_netbenches::audit::PublishedResults;
use serde::Serialize;

pub use noise::{NeededRuns, NoiseRow, NoiseSection};
pub use practice::{DriftRow, FamilyRow, PracticeSection};
pub use quantiles::Quantiles;
pub use runs::{
    OfferedSection, OrderSection, SessionPair, SessionsSection, TailsSection, WithinSection,
};
pub use verdicts::{AuditComparison, MethodTally, VerdictsSection, WordTally};

/// The version of what [`AuditReport`] is as JSON.
pub const AUDIT_SCHEMA_VERSION: u32 = 1;

/// What is said about published results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AuditReport {
    /// [`AUDIT_SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// Where the results were.
    pub source: String,
    /// How many folders of results there are.
    pub folders: usize,
    /// How many datasets there are in them.
    pub datasets: usize,
    /// How many runs there are logs of.
    pub runs: usize,
    /// What was said to differ, judged by every method.
    pub verdicts: VerdictsSection,
    /// How far runs of the same are apart; none where there are too few.
    pub noise: Option<NoiseSection>,
    /// What is far from all others.
    pub tails: Option<TailsSection>,
    /// What happens within a run.
    pub within: Option<WithinSection>,
    /// The same measured again in another session.
    pub sessions: Option<SessionsSection>,
    /// How steady the load was.
    pub offered: Option<OfferedSection>,
    /// Whether runs get better or worse from the first to the last.
    pub order: Option<OrderSection>,
    /// How often the usual practice finds what is not there.
    pub practice: Option<PracticeSection>,
}

impl AuditReport {
    /// Judges what a tree publishes; `source` is where it is, as readers are to see it.
    #[must_use]
    pub fn build(source: &str, published: &PublishedResults) -> Self {
        let datasets = &published.datasets;
        let verdicts = VerdictsSection::build(published);
        Self {
            schema: AUDIT_SCHEMA_VERSION,
            source: source.to_owned(),
            folders: published.folders,
            datasets: datasets.len(),
            runs: datasets.iter().map(|dataset| dataset.runs.len()).sum(),
            noise: NoiseSection::build(datasets),
            tails: TailsSection::build(datasets),
            within: WithinSection::build(datasets),
            sessions: SessionsSection::build(datasets),
            offered: OfferedSection::build(datasets),
            order: OrderSection::build(datasets),
            practice: PracticeSection::build(published, &verdicts),
            verdicts,
        }
    }

    /// `README.md`, for a folder in which the plots lie in `plots`.
    #[must_use]
    pub fn readme(&self) -> String {
        page::readme(self)
    }

    /// What `fwdlab audit` prints, for a terminal of `width` columns.
    #[must_use]
    pub fn terminal(&self, width: usize, colour: bool) -> String {
        terminal::terminal(self, width, colour)
    }

    /// The plots, by their names.
    #[must_use]
    pub fn plots(&self) -> BTreeMap<&'static str, String> {
        plot::plots(self).into_iter().collect()
    }
}
