//! How often the usual practice finds what is not there: simulated, with as many runs and rows as were published.

use std::collections::BTreeMap;

use fwdlab_netbenches::audit::PublishedResults;
use fwdlab_stats::{Draws, Practice, median, whole};
use serde::Serialize;

use super::verdicts::{CONFIDENCE, VerdictsSection};

/// A share of 20 % has a standard error of 0.4 % then.
const DRAWS: Draws = Draws {
    seed: 1,
    count: 10_000,
};
/// Up to how many runs a side whoever measures until a difference shows goes.
const RUNS_MAX: usize = 20;

/// Differences that ministat finds where there are none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PracticeSection {
    /// Runs of each side: the median over the published datasets.
    pub runs: usize,
    /// How often each number was drawn.
    pub draws: u32,
    /// Blocks of several comparisons with one baseline.
    pub families: Vec<FamilyRow>,
    /// All runs of one side behind those of the other, while the machine drifts.
    pub drifts: Vec<DriftRow>,
    /// The part of comparisons that show one at some time when runs are added until one shows, up to 20 a
    /// side.
    pub until_shown: f64,
}

/// Blocks of so many comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FamilyRow {
    /// How many.
    pub comparisons: usize,
    /// How many such blocks there are.
    pub blocks: usize,
    /// The part of them with a difference where there is none.
    pub false_part: f64,
}

/// A drift over the session.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DriftRow {
    /// From the first run to the last, in standard deviations of a run.
    pub deviations: f64,
    /// The part of comparisons with a difference where there is none, one side behind the other.
    pub false_part: f64,
    /// The same with the runs in the order A B B A.
    pub interleaved_false_part: f64,
}

impl PracticeSection {
    pub(super) fn build(published: &PublishedResults, verdicts: &VerdictsSection) -> Option<Self> {
        if verdicts.comparisons.is_empty() {
            return None;
        }
        let counts = published.datasets.iter();
        let counts: Vec<f64> = counts
            .map(|dataset| dataset.observations_pps.len() as f64)
            .collect();
        let runs = whole(median(&counts)?).clamp(3, RUNS_MAX);
        let practice = Practice::new(runs, CONFIDENCE, DRAWS).ok()?;
        let mut blocks: BTreeMap<usize, usize> = BTreeMap::new();
        for block in &published.blocks {
            let comparisons = block.rows.len().saturating_sub(1);
            if comparisons > 0 {
                *blocks.entry(comparisons).or_default() += 1;
            }
        }
        let families = blocks.into_iter().map(|(comparisons, blocks)| FamilyRow {
            comparisons,
            blocks,
            false_part: practice.in_a_family(comparisons),
        });
        let drifts = [1.0, 2.0, 3.0].map(|deviations| {
            let [false_part, interleaved_false_part] = practice.under_drift(deviations);
            DriftRow {
                deviations,
                false_part,
                interleaved_false_part,
            }
        });
        Some(Self {
            runs,
            draws: DRAWS.count,
            families: families.collect(),
            drifts: drifts.into(),
            until_shown: practice.until_shown(RUNS_MAX),
        })
    }

    /// How many of the published blocks would show a difference where there is none.
    #[must_use]
    pub fn expected_false_blocks(&self) -> f64 {
        let rows = self.families.iter();
        rows.map(|row| row.blocks as f64 * row.false_part).sum()
    }
}
