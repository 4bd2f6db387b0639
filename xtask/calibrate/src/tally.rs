//! What each method says about simulated sessions, and how often it is wrong.

use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result};
use fwdlab_stats::ministat::{Comparison, Confidence, Dataset};
use fwdlab_stats::{
    ComparisonEffects, Draws, IndependentObservations, MODES_LEVEL, Method, MethodResult,
    ORDER_LEVEL, OrderedSlice, Slice, StudentSample, VariantObservations, Verdict, VerdictSettings,
    block_effect, block_methods, ceiling_warnings, family_verdicts, holm_adjusted,
    independent_methods, observation, order_effects, sign_flip_p, two_modes,
};

use crate::noise::Noise;
use crate::session::{Block, Run, in_blocks, in_sequence};
use crate::setting::Setting;

/// How many variants are compared with one baseline.
pub(crate) const VARIANTS: usize = 4;

/// The true effects of the variants, in percent, before coupling and ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// No variant differs from the baseline.
    Null,
    /// Four variants with four effects, none among them.
    Graded,
    /// All have an effect of exactly the practical threshold.
    Threshold,
}

impl Family {
    pub(crate) const ALL: [Self; 3] = [Self::Null, Self::Graded, Self::Threshold];

    pub(crate) fn effects_percent(self) -> [f64; VARIANTS] {
        match self {
            Self::Null => [0.0; VARIANTS],
            Self::Graded => [0.0, -0.5, -1.0, -5.0],
            Self::Threshold => [-1.0; VARIANTS],
        }
    }

    /// Log ratios of all arms, the baseline's first.
    fn effects(self) -> [f64; VARIANTS + 1] {
        let mut effects = [0.0; VARIANTS + 1];
        for (effect, percent) in effects[1..].iter_mut().zip(self.effects_percent()) {
            *effect = (percent / 100.0).ln_1p();
        }
        effects
    }
}

/// How often one method was right and wrong.
///
/// Shape: counts of replicates; arrays have an entry for each variant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MethodTally {
    /// Families in which a variant was called different that is not, or in the wrong direction.
    pub(crate) false_positives: u64,
    /// Intervals that hold the true effect.
    pub(crate) covered: [u64; VARIANTS],
    /// Variants called different in the direction in which they are.
    pub(crate) shown: [u64; VARIANTS],
}

impl MethodTally {
    /// Counts one family. `claims`: for each variant whether it is called different, the estimate, and
    /// whether the interval holds the true effect.
    fn count(&mut self, truths: &[f64; VARIANTS], claims: [(bool, f64, bool); VARIANTS]) {
        let mut wrong = false;
        for (index, (different, estimate, covered)) in claims.into_iter().enumerate() {
            let right_direction = estimate * truths[index] > 0.0;
            wrong |= different && !right_direction;
            self.shown[index] += u64::from(different && right_direction);
            self.covered[index] += u64::from(covered);
        }
        self.false_positives += u64::from(wrong);
    }
}

impl AddAssign for MethodTally {
    fn add_assign(&mut self, other: Self) {
        self.false_positives += other.false_positives;
        for index in 0..VARIANTS {
            self.covered[index] += other.covered[index];
            self.shown[index] += other.shown[index];
        }
    }
}

/// A method that stands beside the verdicts, and what it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beside {
    pub(crate) method: Method,
    /// Block effects, as the default; otherwise runs, as ministat's practice.
    pub(crate) is_of_blocks: bool,
}

/// The methods of which fewer sessions are counted, because resampling takes its time.
pub(crate) const BESIDE: [Beside; 9] = {
    const fn of(method: Method, is_of_blocks: bool) -> Beside {
        Beside {
            method,
            is_of_blocks,
        }
    }
    [
        of(Method::MaxTSignFlip, true),
        of(Method::Bca, true),
        of(Method::WelchT, false),
        of(Method::PooledT, false),
        of(Method::MannWhitney, false),
        of(Method::Permutation, false),
        of(Method::Dunnett, false),
        of(Method::MaxTPermutation, false),
        of(Method::Bca, false),
    ]
};

/// In how many sessions of each kind they are counted.
pub(crate) const BESIDE_REPLICATES_MAX: u64 = 4000;

/// In how many sessions without an effect it is looked for what the orders do: enough to tell the share
/// of false warnings from the largest that is allowed.
pub(crate) const CHECKED_REPLICATES_MAX: u64 = 12_000;

/// How many sessions of each kind there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replicates {
    pub(crate) all: u64,
    /// The first so many are also judged by the methods beside the verdicts.
    pub(crate) beside: u64,
    /// In the first so many without an effect it is looked for what the orders do.
    pub(crate) checked: u64,
}

/// Of the resampling methods; with reports' 9999 the calibration would take hours.
pub(crate) const DRAWS: Draws = Draws {
    seed: 1,
    count: 999,
};

/// What came of all replicates of one family in one setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) replicates: u64,
    /// The default: signed-rank test, Hodges-Lehmann interval.
    pub(crate) signed_rank: MethodTally,
    /// Student's t on the same block effects.
    pub(crate) student: MethodTally,
    /// The sign-flip test on the same block effects; it has no interval.
    pub(crate) sign_flip: MethodTally,
    /// Runs of one arm after those of the other, and what ministat makes of them.
    pub(crate) ministat: MethodTally,
    /// Families in which the default calls an effect larger than the threshold that is not.
    pub(crate) wrong_beyond: u64,
    /// Families in which the default calls an effect smaller than the threshold that is not.
    pub(crate) wrong_inside: u64,
    /// Families with a warning of a ceiling.
    pub(crate) ceiling_warnings: u64,
    /// Replicates of which the methods beside were asked.
    pub(crate) beside_replicates: u64,
    /// Those of [`BESIDE`], in its order.
    pub(crate) beside: [MethodTally; BESIDE.len()],
    /// Replicates in which it was looked for what the orders do.
    pub(crate) checked_replicates: u64,
    /// Families with a warning of what ran before a slice.
    pub(crate) carry_over_warnings: u64,
    /// Families with a warning of the place in the round.
    pub(crate) place_warnings: u64,
    /// Families with a warning of effects in two groups.
    pub(crate) modes_warnings: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.replicates += other.replicates;
        self.signed_rank += other.signed_rank;
        self.student += other.student;
        self.sign_flip += other.sign_flip;
        self.ministat += other.ministat;
        self.wrong_beyond += other.wrong_beyond;
        self.wrong_inside += other.wrong_inside;
        self.ceiling_warnings += other.ceiling_warnings;
        self.beside_replicates += other.beside_replicates;
        for (sum, other) in self.beside.iter_mut().zip(other.beside) {
            *sum += other;
        }
        self.checked_replicates += other.checked_replicates;
        self.carry_over_warnings += other.carry_over_warnings;
        self.place_warnings += other.place_warnings;
        self.modes_warnings += other.modes_warnings;
    }
}

/// How many replicates a thread takes at a time.
const CHUNK: u64 = 250;

/// Simulates one family in one setting.
///
/// The numbers follow from the names and the number of replicates, not from the threads: each replicate
/// has a seed of its own, and counts are added up.
pub(crate) fn tally(
    setting: &Setting,
    family: Family,
    replicates: Replicates,
    threads: usize,
) -> Result<Tally> {
    let next = AtomicU64::new(0);
    let work = || -> Result<Tally> {
        let mut sum = Tally::default();
        loop {
            let first = next.fetch_add(CHUNK, Ordering::Relaxed);
            if first >= replicates.all {
                return Ok(sum);
            }
            for replicate in first..(first + CHUNK).min(replicates.all) {
                // The families at the threshold are there for the words of the verdicts, which only
                // those have.
                let with = With {
                    beside: replicate < replicates.beside && family != Family::Threshold,
                    // What the orders do is the same whatever the effects are.
                    order: replicate < replicates.checked && family == Family::Null,
                };
                sum += simulate(setting, family, replicate, with)
                    .with_context(|| format!("{}, replicate {replicate}", setting.name))?;
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        let mut total = Tally::default();
        for worker in workers {
            total += worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        Ok(total)
    })
}

/// A seed for every replicate of every cell: FNV-1a over what names it.
fn seed(setting: &Setting, family: Family, replicate: u64) -> u64 {
    let name = format!("{} {family:?}", setting.name);
    name.bytes()
        .chain(replicate.to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

/// What is asked of a session besides the verdicts.
#[derive(Clone, Copy)]
struct With {
    beside: bool,
    order: bool,
}

fn simulate(setting: &Setting, family: Family, replicate: u64, with: With) -> Result<Tally> {
    let seed = seed(setting, family, replicate);
    let mut noise = Noise::new(seed);
    let effects = family.effects();
    let truths: [f64; VARIANTS] =
        std::array::from_fn(|index| setting.true_effect(effects[index + 1]));
    let mut tally = Tally {
        replicates: 1,
        ..Tally::default()
    };
    let blocks = in_blocks(setting, &effects, &mut noise);
    judge_blocks(&mut tally, &truths, &blocks)?;
    if with.order {
        tally.checked_replicates = 1;
        check_order(&mut tally, &blocks, seed)?;
    }
    let arms = in_sequence(setting, &effects, &mut noise);
    judge_sequence(&mut tally.ministat, &truths, &arms)?;
    if with.beside {
        tally.beside_replicates = 1;
        judge_beside(&mut tally, &truths, &blocks, &arms)?;
    }
    Ok(tally)
}

/// From slices to words, through the functions that reports use.
fn judge_blocks(tally: &mut Tally, truths: &[f64; VARIANTS], blocks: &[Block]) -> Result<()> {
    let settings = VerdictSettings::default();
    let comparisons = block_effects(blocks)?;
    let judged = family_verdicts(&comparisons, None, &settings)?.comparisons;
    let alpha = 1.0 - settings.confidence;
    let students = comparisons
        .iter()
        .map(|comparison| StudentSample::new(&comparison.block_effects))
        .collect::<Result<Vec<_>, _>>()?;
    let student_p = students
        .iter()
        .map(|student| student.p_two_sided(0.0))
        .collect::<Result<Vec<_>, _>>()?;
    let student_p = holm_adjusted(&student_p)?;
    let sign_flip = comparisons
        .iter()
        .map(|comparison| {
            let p = sign_flip_p(&comparison.block_effects, 0.0)?;
            p.context("too many blocks to flip all signs")
        })
        .collect::<Result<Vec<_>>>()?;
    let sign_flip_p = holm_adjusted(&sign_flip)?;
    let student_intervals = students
        .iter()
        .map(|student| student.interval(settings.confidence))
        .collect::<Result<Vec<_>, _>>()?;

    tally.signed_rank.count(
        truths,
        std::array::from_fn(|index| {
            let interval = judged[index].direction_interval;
            (
                judged[index].verdict.shows_difference(),
                judged[index].estimate,
                interval.is_some_and(|interval| interval.contains(truths[index])),
            )
        }),
    );
    tally.student.count(
        truths,
        std::array::from_fn(|index| {
            let covered = student_intervals[index].contains(truths[index]);
            (student_p[index] <= alpha, students[index].mean, covered)
        }),
    );
    tally.sign_flip.count(
        truths,
        std::array::from_fn(|index| {
            let mean = students[index].mean;
            (sign_flip_p[index] <= alpha, mean, false)
        }),
    );

    let wrong = |words: &[Verdict], is_wrong: &dyn Fn(f64) -> bool| {
        let mut pairs = judged.iter().zip(truths);
        u64::from(pairs.any(|(judged, truth)| words.contains(&judged.verdict) && is_wrong(*truth)))
    };
    let threshold = settings.practical_threshold;
    let (below, above) = ((-threshold).ln_1p(), threshold.ln_1p());
    // An effect on the threshold is neither beyond it nor inside; rounding must not decide.
    let rounding = 1e-12;
    tally.wrong_beyond = wrong(&[Verdict::Different], &|truth| {
        below - rounding < truth && truth < above + rounding
    });
    tally.wrong_inside = wrong(
        &[Verdict::Equivalent, Verdict::DifferentButNegligible],
        &|truth| truth < below + rounding || above - rounding < truth,
    );

    let observations = (0..=VARIANTS)
        .map(|arm| {
            let observed = blocks.iter().map(|block| rate_pps(&block.runs[arm]));
            Ok(VariantObservations {
                name: arm.to_string(),
                observations_pps: observed.collect::<Result<_>>()?,
            })
        })
        .collect::<Result<Vec<_>>>()?;
    tally.ceiling_warnings = u64::from(!ceiling_warnings(&observations)?.is_empty());

    let level = MODES_LEVEL / VARIANTS as f64;
    for comparison in &comparisons {
        let modes = two_modes(&comparison.block_effects, level, above, 1)?;
        tally.modes_warnings |= u64::from(modes.is_some());
    }
    Ok(())
}

/// Whether the order of the slices shows in them.
fn check_order(tally: &mut Tally, blocks: &[Block], seed: u64) -> Result<()> {
    let ordered: Vec<Vec<Vec<OrderedSlice>>> = blocks
        .iter()
        .map(|block| {
            let slice = |round: usize, variant: usize| {
                let slice = block.runs[variant][round];
                let rate = slice.forwarded_frames as f64 / slice.duration_s;
                OrderedSlice {
                    variant,
                    log_rate: Some(rate.ln()),
                }
            };
            let rounds = block.orders.iter().enumerate();
            rounds
                .map(|(round, order)| order.iter().map(|arm| slice(round, *arm)).collect())
                .collect()
        })
        .collect();
    let effects = order_effects(VARIANTS + 1, &ordered, ORDER_LEVEL, seed)?;
    let effects = effects.context("blocks without an order")?;
    tally.carry_over_warnings = u64::from(effects.predecessor.is_shown(ORDER_LEVEL));
    tally.place_warnings = u64::from(effects.place.is_shown(ORDER_LEVEL));
    Ok(())
}

fn block_effects(blocks: &[Block]) -> Result<Vec<ComparisonEffects>> {
    (1..=VARIANTS)
        .map(|arm| {
            let effects = blocks.iter().map(|block| {
                block_effect(&block.runs[arm], &block.runs[0], 0.0).map(|effect| effect.log_ratio)
            });
            Ok(ComparisonEffects {
                name: arm.to_string(),
                block_effects: effects.collect::<Result<_, _>>()?,
            })
        })
        .collect()
}

/// What the methods say that stand beside the verdicts.
fn judge_beside(
    tally: &mut Tally,
    truths: &[f64; VARIANTS],
    blocks: &[Block],
    arms: &[Vec<Run>],
) -> Result<()> {
    let confidence = VerdictSettings::default().confidence;
    let rates = |runs: &[Run]| {
        runs.iter()
            .map(|run| rate_pps(run))
            .collect::<Result<Vec<_>>>()
    };
    let baseline = rates(&arms[0])?;
    let independent = arms[1..]
        .iter()
        .map(|runs| {
            Ok(IndependentObservations {
                name: String::new(),
                baseline: baseline.clone(),
                variant: rates(runs)?,
            })
        })
        .collect::<Result<Vec<_>>>()?;
    let of_blocks = block_methods(&block_effects(blocks)?, confidence, DRAWS)?;
    // All runs of all arms may be at the ceiling: then no method of two samples has anything to say.
    let of_runs = independent_methods(&independent, confidence, DRAWS).ok();
    for (beside, tally) in BESIDE.iter().zip(&mut tally.beside) {
        let results = if beside.is_of_blocks {
            Some(&of_blocks)
        } else {
            of_runs.as_ref()
        };
        let claim = |index: usize| {
            let of_variant = results.map_or(&[][..], |results| &results[index][..]);
            let result = of_variant
                .iter()
                .find(|result| result.method == beside.method);
            result.map_or((false, 0.0, false), |result| claim(result, truths[index]))
        };
        tally.count(truths, std::array::from_fn(claim));
    }
    Ok(())
}

/// Whether a method calls a variant different, its estimate, and whether its interval holds the truth.
fn claim(result: &MethodResult, truth: f64) -> (bool, f64, bool) {
    let alpha = 1.0 - VerdictSettings::default().confidence;
    let excludes_none = || {
        result
            .interval
            .is_some_and(|interval| !interval.contains(0.0))
    };
    (
        result.adjusted_p.map_or_else(excludes_none, |p| p <= alpha),
        result.estimate,
        result
            .interval
            .is_some_and(|interval| interval.contains(truth)),
    )
}

/// Each variant's runs against the baseline's, as ministat computes them.
fn judge_sequence(
    tally: &mut MethodTally,
    truths: &[f64; VARIANTS],
    arms: &[Vec<Run>],
) -> Result<()> {
    let datasets = arms
        .iter()
        .map(|runs| {
            let rates = runs
                .iter()
                .map(|run| rate_pps(run))
                .collect::<Result<_>>()?;
            Ok(Dataset::new("", rates)?)
        })
        .collect::<Result<Vec<_>>>()?;
    tally.count(
        truths,
        std::array::from_fn(|index| {
            let comparison =
                Comparison::new(&datasets[index + 1], &datasets[0], Confidence::Percent95);
            let distance = truths[index].exp_m1() * 100.0 - comparison.difference_percent;
            (
                comparison.is_proven(),
                comparison.difference,
                distance.abs() <= comparison.half_width_percent,
            )
        }),
    );
    Ok(())
}

fn rate_pps(run: &[Slice]) -> Result<f64> {
    Ok(observation(run, 0.0)?.median_forwarding_rate_pps)
}

/// A small version of the calibration. Everything is seeded: the counts are the same on every run.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::{Asked, SETTINGS};

    /// The verdicts alone: resampling takes its time.
    fn tally(setting: &Setting, family: Family, all: u64, threads: usize) -> Result<Tally> {
        super::tally(
            setting,
            family,
            Replicates {
                all,
                beside: 0,
                checked: all,
            },
            threads,
        )
    }

    fn setting(name: &str) -> &'static Setting {
        let mut settings = SETTINGS.iter();
        settings.find(|setting| setting.name == name).unwrap()
    }

    /// A share of `nominal` in `replicates`, and four standard errors: one seed in 30 000 would exceed
    /// it.
    fn at_most(nominal: f64, replicates: u64) -> u64 {
        let mean = nominal * replicates as f64;
        whole(mean + 4.0 * (mean * (1.0 - nominal)).sqrt())
    }

    fn whole(count: f64) -> u64 {
        #[allow(clippy::cast_possible_truncation, reason = "a count, rounded down")]
        let whole = count as u64;
        whole
    }

    #[test]
    fn the_counts_do_not_depend_on_the_threads() {
        let everything = setting("everything");
        let replicates = 2 * CHUNK + 7;
        let of = |threads| {
            let all = replicates;
            super::tally(
                everything,
                Family::Graded,
                Replicates {
                    all,
                    beside: 20,
                    checked: 30,
                },
                threads,
            )
            .unwrap()
        };
        let alone = of(1);
        assert_eq!(
            (alone.replicates, alone.beside_replicates),
            (replicates, 20)
        );
        assert_eq!(of(3), alone);
    }

    #[test]
    fn the_default_holds_in_every_setting() {
        let replicates = 250;
        for setting in SETTINGS {
            let null = tally(setting, Family::Null, replicates, 2).unwrap();
            let graded = tally(setting, Family::Graded, replicates, 2).unwrap();
            let wrong = null.signed_rank.false_positives;
            assert!(
                setting.asked < Asked::Direction || wrong <= at_most(0.05, replicates),
                "{}: {wrong} of {replicates}",
                setting.name
            );
            for covered in graded.signed_rank.covered {
                assert!(
                    setting.asked < Asked::Coverage
                        || replicates - covered <= at_most(0.06, replicates),
                    "{}: {covered} of {replicates}",
                    setting.name
                );
            }
            if setting.carry_over >= 0.005 {
                let warned = null.carry_over_warnings;
                assert!(warned > replicates * 9 / 10, "{}: {warned}", setting.name);
            } else if setting.ceiling.is_none() {
                for warned in [null.carry_over_warnings, null.place_warnings] {
                    assert!(
                        warned <= at_most(0.01, replicates),
                        "{}: {warned} of {replicates}",
                        setting.name
                    );
                }
            }
            let modal = null.modes_warnings;
            assert!(
                modal <= at_most(0.01, replicates),
                "{}: {modal}",
                setting.name
            );
            let warned = graded.ceiling_warnings;
            if setting.ceiling.is_some() {
                assert!(warned > replicates / 2, "{}: {warned}", setting.name);
            } else {
                assert_eq!(warned, 0, "{}", setting.name);
            }
        }
    }

    #[test]
    fn levels_are_used_and_kept() {
        let replicates = 2000;
        let limit = at_most(0.05, replicates);
        let typical = setting("typical");
        let null = tally(typical, Family::Null, replicates, 2).unwrap();
        // At 8 blocks Holm over four reaches 4 times 0.8 %; less than half of it would be a test that
        // gives power away.
        let wrong = null.signed_rank.false_positives;
        assert!((replicates / 64..=limit).contains(&wrong), "{wrong}");
        let threshold = tally(typical, Family::Threshold, replicates, 2).unwrap();
        let (beyond, inside) = (threshold.wrong_beyond, threshold.wrong_inside);
        assert!((replicates / 64..=limit).contains(&beyond), "{beyond}");
        assert!(inside <= limit, "{inside}");
        let quiet = tally(setting("quiet"), Family::Graded, replicates, 2).unwrap();
        assert!(
            quiet.signed_rank.shown[3] > replicates * 98 / 100,
            "{quiet:?}"
        );
        assert!(quiet.signed_rank.false_positives <= limit, "{quiet:?}");
    }

    #[test]
    fn ministats_practice_takes_drift_for_an_effect() {
        let wrong = |name| {
            let tally = tally(setting(name), Family::Null, 500, 2).unwrap();
            tally.ministat.false_positives
        };
        // Four tests at 5 % each.
        assert!(wrong("typical") <= at_most(0.2, 500));
        assert!(wrong("drift-3") > 200);
    }
}
