//! What was said to differ, judged by every method.

use fwdlab_netbenches::audit::{AuditedBlock, AuditedDataset, AuditedRow, PublishedResults};
use fwdlab_stats::{
    Draws, IndependentObservations, Method, Verdict, VerdictSettings, independent_methods,
    independent_verdicts, percent,
};
use serde::Serialize;

use crate::report::{IntervalSection, MethodSection};
use crate::sections::{interval_section, method_sections};

/// The level of the archive, and of ministat where nobody asks for another.
pub(super) const CONFIDENCE: f64 = 0.95;

/// For max-T alone; permutations of five runs a side are counted, not drawn.
const DRAWS: Draws = Draws {
    seed: 1,
    count: 1999,
};

/// Published comparisons, judged again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VerdictsSection {
    /// How many blocks of ministat the texts show.
    pub blocks: usize,
    /// How many of them are not judged because a row is of no dataset.
    pub blocks_without_data: usize,
    /// How many of them are not judged because their data allow no test: no spread, rates of zero.
    pub blocks_without_test: usize,
    /// Every comparison that is.
    pub comparisons: Vec<AuditComparison>,
    /// How many of them each method decides how.
    pub methods: Vec<MethodTally>,
    /// How many of them are what.
    pub words: Vec<WordTally>,
}

/// A row of a block against the first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AuditComparison {
    /// The text, below the root.
    pub text: String,
    /// The line of the row, from 1.
    pub line: usize,
    /// What the text calls it.
    pub label: String,
    /// The datasets of the first row and of this one.
    pub datasets: [String; 2],
    /// Whether a difference is said; none where nothing is.
    pub says_difference: Option<bool>,
    /// How many comparisons its block has.
    pub family_size: usize,
    /// Whether the two sides are of two folders of results: two sessions.
    pub across_sessions: bool,
    /// The change of the forwarding rate, by Welch's t of the logarithms.
    pub effect_percent: f64,
    /// Its interval, for this comparison alone.
    pub interval: Option<IntervalSection>,
    /// What fwdlab makes of it.
    pub verdict: Verdict,
    /// The same of the rates over the steady states of the logs; none where logs are missing.
    pub steady_verdict: Option<Verdict>,
    /// What every method makes of it.
    pub methods: Vec<MethodSection>,
}

/// What one method decides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MethodTally {
    /// What it is called.
    pub method: String,
    /// Whether it corrects for the number of comparisons of a block.
    pub is_corrected: bool,
    /// Comparisons that are said to differ and that it decides on.
    pub said: usize,
    /// Of these, those that it finds to differ.
    pub said_kept: usize,
    /// Comparisons that are not said to differ and that it decides on.
    pub unsaid: usize,
    /// Of these, those that it finds to differ.
    pub unsaid_found: usize,
}

/// How many comparisons are what.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WordTally {
    /// What fwdlab makes of them.
    pub verdict: Verdict,
    /// Of those that are said to differ.
    pub said: usize,
    /// Of those that are not.
    pub unsaid: usize,
}

/// In the order of how much they say.
const WORDS: [Verdict; 5] = [
    Verdict::Different,
    Verdict::DifferentSizeUndecided,
    Verdict::DifferentButNegligible,
    Verdict::Equivalent,
    Verdict::Undecided,
];

impl VerdictsSection {
    pub(super) fn build(published: &PublishedResults) -> Self {
        let (mut without_data, mut without_test) = (0, 0);
        let mut comparisons = Vec::new();
        for block in &published.blocks {
            match Family::of(block, &published.datasets) {
                None => without_data += 1,
                Some(family) => match family.judged() {
                    Some(judged) => comparisons.extend(judged),
                    None => without_test += 1,
                },
            }
        }
        Self {
            blocks: published.blocks.len(),
            blocks_without_data: without_data,
            blocks_without_test: without_test,
            methods: tallies(&comparisons),
            words: words(&comparisons),
            comparisons,
        }
    }
}

impl VerdictsSection {
    /// The methods that correct for the number of comparisons, or those that do not.
    pub(super) fn tallies(&self, is_corrected: bool) -> impl Iterator<Item = &MethodTally> {
        let tallies = self.methods.iter();
        tallies.filter(move |tally| tally.is_corrected == is_corrected)
    }
}

/// A block whose rows are all of datasets.
struct Family<'a> {
    block: &'a AuditedBlock,
    baseline: &'a AuditedDataset,
    others: Vec<(&'a AuditedRow, &'a AuditedDataset)>,
}

impl<'a> Family<'a> {
    fn of(block: &'a AuditedBlock, datasets: &'a [AuditedDataset]) -> Option<Self> {
        let with_data = |row: &'a AuditedRow| Some((row, &datasets[row.dataset?]));
        let rows: Option<Vec<_>> = block.rows.iter().map(with_data).collect();
        let rows = rows?;
        let (&(_, baseline), others) = rows.split_first()?;
        Some(Self {
            block,
            baseline,
            others: others.to_vec(),
        })
    }

    fn judged(&self) -> Option<Vec<AuditComparison>> {
        let family = self.observations(|dataset| Some(dataset.observations_pps.clone()))?;
        let settings = VerdictSettings::default();
        let verdicts = independent_verdicts(&family, &settings).ok()?;
        let methods = independent_methods(&family, CONFIDENCE, DRAWS).ok()?;
        let steady = self
            .observations(steady_rates)
            .and_then(|family| independent_verdicts(&family, &settings).ok());
        let others = self.others.iter().enumerate();
        let judged = others
            .zip(methods)
            .map(|((index, (row, dataset)), methods)| {
                let verdict = &verdicts.comparisons[index];
                AuditComparison {
                    text: self.block.path.clone(),
                    line: row.line,
                    label: row.label.clone(),
                    datasets: [self.baseline.path.clone(), dataset.path.clone()],
                    says_difference: row.says_difference,
                    family_size: self.others.len(),
                    across_sessions: self.baseline.folder != dataset.folder,
                    effect_percent: percent(verdict.estimate),
                    interval: verdict.direction_interval.map(interval_section),
                    verdict: verdict.verdict,
                    steady_verdict: steady
                        .as_ref()
                        .map(|steady| steady.comparisons[index].verdict),
                    methods: method_sections(methods),
                }
            });
        Some(judged.collect())
    }

    /// None where a dataset has none of them.
    fn observations(
        &self,
        of: impl Fn(&AuditedDataset) -> Option<Vec<f64>>,
    ) -> Option<Vec<IndependentObservations>> {
        let baseline = of(self.baseline)?;
        let others = self.others.iter().map(|(row, dataset)| {
            Some(IndependentObservations {
                name: row.label.clone(),
                baseline: baseline.clone(),
                variant: of(dataset)?,
            })
        });
        others.collect()
    }
}

fn steady_rates(dataset: &AuditedDataset) -> Option<Vec<f64>> {
    let rates = dataset
        .runs
        .iter()
        .map(|run| Some(run.forwarded?.mean_pps()));
    rates
        .collect::<Option<Vec<f64>>>()
        .filter(|rates| !rates.is_empty())
}

fn tallies(comparisons: &[AuditComparison]) -> Vec<MethodTally> {
    let alone = [
        Method::PooledT,
        Method::WelchT,
        Method::MannWhitney,
        Method::Permutation,
    ];
    let corrected = [
        Method::WelchT,
        Method::MannWhitney,
        Method::Permutation,
        Method::Dunnett,
        Method::MaxTPermutation,
    ];
    let p_of = |comparison: &AuditComparison, method: Method, is_corrected: bool| {
        let mut sections = comparison.methods.iter();
        let section = sections.find(|section| section.method == method)?;
        if is_corrected {
            section.adjusted_p
        } else {
            section.p
        }
    };
    let of_method = |method: Method, is_corrected: bool| {
        let holm = is_corrected && !matches!(method, Method::Dunnett | Method::MaxTPermutation);
        let name = if holm {
            format!("{}, Holm", method.words())
        } else {
            method.words().to_owned()
        };
        tally(name, is_corrected, comparisons, |comparison| {
            Some(p_of(comparison, method, is_corrected)? < 1.0 - CONFIDENCE)
        })
    };
    let mut tallies: Vec<MethodTally> = alone.map(|method| of_method(method, false)).into();
    tallies.extend(corrected.map(|method| of_method(method, true)));
    let of_steady =
        |comparison: &AuditComparison| Some(comparison.steady_verdict?.shows_difference());
    let name = "Welch's t, Holm, of steady states".to_owned();
    tallies.push(tally(name, true, comparisons, of_steady));
    tallies.retain(|tally| tally.said + tally.unsaid > 0);
    tallies
}

fn tally(
    method: String,
    is_corrected: bool,
    comparisons: &[AuditComparison],
    differs: impl Fn(&AuditComparison) -> Option<bool>,
) -> MethodTally {
    let mut tally = MethodTally {
        method,
        is_corrected,
        said: 0,
        said_kept: 0,
        unsaid: 0,
        unsaid_found: 0,
    };
    for comparison in comparisons {
        let (Some(says), Some(differs)) = (comparison.says_difference, differs(comparison)) else {
            continue;
        };
        if says {
            tally.said += 1;
            tally.said_kept += usize::from(differs);
        } else {
            tally.unsaid += 1;
            tally.unsaid_found += usize::from(differs);
        }
    }
    tally
}

fn words(comparisons: &[AuditComparison]) -> Vec<WordTally> {
    let count = |verdict: Verdict, said: bool| {
        let is_one = |comparison: &&AuditComparison| {
            comparison.verdict == verdict && comparison.says_difference == Some(said)
        };
        comparisons.iter().filter(is_one).count()
    };
    WORDS
        .map(|verdict| WordTally {
            verdict,
            said: count(verdict, true),
            unsaid: count(verdict, false),
        })
        .into()
}
