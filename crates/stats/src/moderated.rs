//! Paired comparisons of a large family over few blocks, each with noise that is known in part
//! beforehand: max-T by joint sign flips of a moderated t, and the intervals that go with it.
//!
//! Student's t of few blocks has heavy tails: among hundreds of comparisons one has differences that
//! happen to lie close together, and what is large by that accident hides what is large indeed. What
//! is known of the noise beforehand (that of counting, say) keeps the divisor from being small by
//! accident.

use serde::Serialize;

use crate::error::{
    StatsError, require_count, require_finite, require_held, require_length, significance,
};
use crate::generator::Generator;
use crate::permutation::Draws;
use crate::sign_flip::SIGN_FLIP_EXACT_MAX;

/// One comparison of a family: a difference for each block, and the noise that they have at least.
#[derive(Debug, Clone, PartialEq)]
pub struct ModeratedEffects {
    /// One a block, the same blocks in the same order in all comparisons.
    pub differences: Vec<f64>,
    /// The sum of their squares to be expected of known noise alone; 0 where nothing is known, which
    /// leaves Student's t.
    ///
    /// It must not depend on which variant of a block is called the baseline: else the test is not
    /// exact.
    pub expected_squares: f64,
}

/// What the test says of one comparison.
///
/// Units: those of the differences.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ModeratedDifference {
    /// The mean of the differences.
    pub mean: f64,
    /// Two-sided, adjusted for the whole family.
    pub adjusted_p: f64,
    /// How far the interval goes to either side of the mean; `None` where no width is wide enough: too
    /// few blocks for the confidence.
    ///
    /// It leaves 0 out just where `adjusted_p` is at most 1 - confidence.
    pub half_width: Option<f64>,
}

/// The max-T test of a family of paired comparisons by a moderated t, with simultaneous intervals.
///
/// The statistic is the sum of a comparison's differences over the root of their squares' sum plus
/// the expected one: as Student's t with the variance drawn half way to the known one, it rises with
/// it. In each arrangement all differences of a block change sign together or none does, and what each
/// comparison is referred to is the largest statistic of the family, in a single step. p-values are
/// exact for the family where the variants of a block are exchangeable, up to [`SIGN_FLIP_EXACT_MAX`]
/// blocks; beyond they come from `draws`. Intervals have the reach that the test has; they are exact
/// where nothing differs and approximate elsewhere.
///
/// Shape: returned in the order given; none for none. Units: any, the same throughout.
///
/// # Errors
/// [`StatsError::Confidence`], [`StatsError::Empty`], [`StatsError::NotFinite`],
/// [`StatsError::UnequalLengths`], [`StatsError::TooLarge`], [`StatsError::TooFew`] draws.
///
/// # Source
/// Westfall & Young 1993, section 2.3.3 (single step); the added constant: Tusher, Tibshirani & Chu
/// 2001; its meaning as prior degrees of freedom, as many as there are blocks: Smyth 2004.
///
/// # Examples
/// ```
/// use fwdlab_stats::{Draws, ModeratedEffects, max_t_moderated};
/// let effects = |differences: [f64; 8]| ModeratedEffects {
///     differences: differences.to_vec(),
///     expected_squares: 0.001,
/// };
/// let family = [
///     effects([-0.23, -0.24, -0.24, -0.25, -0.23, -0.24, -0.24, -0.23]),
///     effects([-0.011, 0.014, -0.009, 0.006, -0.013, 0.008, -0.003, 0.011]),
/// ];
/// let found = max_t_moderated(&family, 0.95, Draws { seed: 1, count: 9999 })?;
/// assert_eq!(found[0].adjusted_p, 2.0 / 256.0);
/// assert!(found[0].half_width.is_some_and(|half| half < 0.05));
/// assert!(found[1].adjusted_p > 0.5);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn max_t_moderated(
    family: &[ModeratedEffects],
    confidence: f64,
    draws: Draws,
) -> Result<Vec<ModeratedDifference>, StatsError> {
    let level = significance(confidence)?;
    let Some(first) = family.first() else {
        return Ok(Vec::new());
    };
    let blocks = first.differences.len();
    let mut lengths = Vec::with_capacity(family.len());
    for (number, effects) in family.iter().enumerate() {
        lengths.push(length(number, effects, blocks)?);
    }
    // Scaled by block, so that a sign changes a row at once.
    let rows: Vec<Vec<f64>> = (0..blocks)
        .map(|block| {
            let scaled = family.iter().zip(&lengths);
            scaled
                .map(|(effects, length)| effects.differences[block] / length)
                .collect()
        })
        .collect();
    let observed: Vec<f64> = (0..family.len())
        .map(|number| rows.iter().map(|row| row[number]).sum::<f64>().abs())
        .collect();
    let mut largest = if blocks <= SIGN_FLIP_EXACT_MAX {
        all_arrangements(&rows)
    } else {
        drawn_arrangements(&rows, &observed, draws)?
    };
    largest.sort_unstable_by(|a, b| b.total_cmp(a));

    let n = blocks as f64;
    // Statistics equal in exact arithmetic may differ in the last digits.
    let tolerance = 1e-12 * n.sqrt();
    // So many arrangements may reach a statistic that is still significant.
    let allowed = (level * largest.len() as f64 + 1e-9).floor();
    let critical = (1..largest.len())
        .find(|rank| *rank as f64 >= allowed)
        .filter(|_| allowed >= 1.0)
        .map(|rank| largest[rank] + tolerance);
    let judged = family.iter().zip(lengths).zip(observed);
    Ok(judged
        .map(|((effects, length), observed)| {
            let reached = largest.partition_point(|largest| *largest >= observed - tolerance);
            let mean = effects.differences.iter().sum::<f64>() / n;
            ModeratedDifference {
                mean,
                adjusted_p: reached as f64 / largest.len() as f64,
                half_width: critical.and_then(|critical| reach(length, observed, critical, n)),
            }
        })
        .collect())
}

/// The divisor of a comparison's statistic, which no sign changes; 1 where all is 0.
fn length(number: usize, effects: &ModeratedEffects, blocks: usize) -> Result<f64, StatsError> {
    let subject = format!("max-T, comparison {number}");
    require_finite(&subject, &effects.differences)?;
    require_finite(&subject, &[effects.expected_squares])?;
    require_length(&subject, blocks, effects.differences.len())?;
    let squares: f64 = effects.differences.iter().map(|d| d * d).sum();
    let length = (squares + effects.expected_squares.max(0.0)).sqrt();
    require_held(&subject, length.is_finite())?;
    Ok(if length > 0.0 { length } else { 1.0 })
}

/// How far from the mean a claimed mean has a statistic of at most `critical`.
///
/// With a claim at distance x the statistic is n x / sqrt(rest + n x^2), where the rest is what the
/// squares have left around the mean.
fn reach(length: f64, observed: f64, critical: f64, n: f64) -> Option<f64> {
    let rest = (1.0 - observed * observed / n).max(0.0);
    let room = n - critical * critical;
    (room > 1e-9).then(|| length * critical * (rest / (n * room)).sqrt())
}

/// The largest statistic of every pattern of signs; the first block keeps its own, because a pattern
/// and its mirror image have the same.
fn all_arrangements(rows: &[Vec<f64>]) -> Vec<f64> {
    let mut largest = Vec::with_capacity(1 << (rows.len() - 1));
    if let Some((first, rest)) = rows.split_first() {
        flip(first, rest, &mut largest);
    }
    largest
}

/// Goes on with either sign of the first row left.
fn flip(sums: &[f64], rows: &[Vec<f64>], largest: &mut Vec<f64>) {
    let Some((row, rest)) = rows.split_first() else {
        largest.push(sums.iter().fold(0.0, |most: f64, sum| most.max(sum.abs())));
        return;
    };
    let with = |sign: f64| -> Vec<f64> {
        let terms = sums.iter().zip(row);
        terms.map(|(sum, value)| sum + sign * value).collect()
    };
    flip(&with(1.0), rest, largest);
    flip(&with(-1.0), rest, largest);
}

/// The largest statistic of the arrangement at hand and of so many drawn ones.
fn drawn_arrangements(
    rows: &[Vec<f64>],
    observed: &[f64],
    draws: Draws,
) -> Result<Vec<f64>, StatsError> {
    require_count("max-T, sign patterns to draw", 1, draws.count as usize)?;
    let mut generator = Generator::new(draws.seed);
    let mut largest = vec![observed.iter().copied().fold(0.0, f64::max)];
    for _ in 0..draws.count {
        let mut sums = vec![0.0; observed.len()];
        for row in rows {
            let sign = if generator.coin() { -1.0 } else { 1.0 };
            for (sum, value) in sums.iter_mut().zip(row) {
                *sum += sign * value;
            }
        }
        largest.push(sums.iter().fold(0.0, |most: f64, sum| most.max(sum.abs())));
    }
    Ok(largest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{max_t_sign_flip, sign_flip_p};

    const DRAWS: Draws = Draws {
        seed: 3,
        count: 1999,
    };

    fn plain(differences: &[f64]) -> ModeratedEffects {
        ModeratedEffects {
            differences: differences.to_vec(),
            expected_squares: 0.0,
        }
    }

    #[test]
    fn bad_input_is_refused_by_name() {
        let refusal = |family: &[ModeratedEffects], count| {
            let draws = Draws { count, ..DRAWS };
            max_t_moderated(family, 0.95, draws)
                .unwrap_err()
                .to_string()
        };
        for (found, expected) in [
            (refusal(&[plain(&[])], 9), "comparison 0: no values"),
            (
                refusal(&[plain(&[1.0, 2.0]), plain(&[1.0])], 9),
                "comparison 1: 1 values where 2",
            ),
            (
                refusal(&[plain(&[1.0, f64::NAN])], 9),
                "value 1 is not finite",
            ),
            (refusal(&[plain(&[1e200, 1e200])], 9), "too large"),
            (refusal(&[plain(&[1.0; 21])], 0), "too few values (0)"),
        ] {
            assert!(found.contains(expected), "{found}");
        }
        assert!(max_t_moderated(&[plain(&[1.0])], 1.0, DRAWS).is_err());
        assert!(max_t_moderated(&[], 0.95, DRAWS).unwrap().is_empty());
    }

    #[test]
    fn too_few_blocks_have_no_interval_and_show_nothing() {
        for blocks in 1..=5 {
            let found = max_t_moderated(&[plain(&vec![-7.0; blocks])], 0.95, DRAWS).unwrap();
            assert!(found[0].adjusted_p > 0.05 && found[0].half_width.is_none());
        }
        let found = max_t_moderated(&[plain(&[-7.0; 6])], 0.95, DRAWS).unwrap();
        assert!(found[0].adjusted_p < 0.05 && found[0].half_width.is_some());
    }

    #[test]
    fn what_does_not_vary_shows_nothing() {
        let found = max_t_moderated(&[plain(&[0.0; 8])], 0.95, DRAWS).unwrap();
        assert!(found[0].adjusted_p >= 1.0);
        assert!(found[0].half_width.is_some_and(|half| half < 1e-9));
    }

    #[test]
    fn drawn_arrangements_agree_with_all_of_them() {
        let values: Vec<f64> = (0..20).map(|i| f64::from(i * 7 % 11) - 3.7).collect();
        let exact = max_t_moderated(&[plain(&values)], 0.95, DRAWS).unwrap()[0];
        let rows: Vec<Vec<f64>> = {
            let length = values.iter().map(|v| v * v).sum::<f64>().sqrt();
            values.iter().map(|v| vec![v / length]).collect()
        };
        let observed = [rows.iter().map(|row| row[0]).sum::<f64>().abs()];
        let drawn = drawn_arrangements(&rows, &observed, DRAWS).unwrap();
        let reached = drawn.iter().filter(|l| **l >= observed[0] - 1e-12).count();
        let drawn_p = reached as f64 / drawn.len() as f64;
        assert!(
            (drawn_p - exact.adjusted_p).abs() < 0.03,
            "{drawn_p} {exact:?}"
        );
    }

    proptest! {
        #[test]
        fn of_one_plain_comparison_it_is_the_sign_flip_test(
            values in prop::collection::vec(-9.0..9.0_f64, 1..10),
        ) {
            let found = max_t_moderated(&[plain(&values)], 0.95, DRAWS).unwrap();
            let expected = sign_flip_p(&values, 0.0).unwrap().unwrap();
            prop_assert!((found[0].adjusted_p - expected).abs() < 1e-12);
        }

        #[test]
        fn the_clearest_of_a_family_is_as_clear_step_by_step(
            family in prop::collection::vec(prop::collection::vec(-9.0..9.0_f64, 7), 1..6),
        ) {
            let step_down = max_t_sign_flip(&family, DRAWS).unwrap();
            let moderated: Vec<_> = family.iter().map(|values| plain(values)).collect();
            let single = max_t_moderated(&moderated, 0.95, DRAWS).unwrap();
            let least = |ps: Vec<f64>| ps.into_iter().fold(1.0, f64::min);
            let single_ps: Vec<f64> = single.iter().map(|found| found.adjusted_p).collect();
            for (single, step) in single_ps.iter().zip(&step_down) {
                prop_assert!(*single >= step - 1e-12);
            }
            prop_assert!((least(single_ps) - least(step_down)).abs() < 1e-12);
        }

        /// A claimed mean at the end of the interval has just the critical statistic.
        #[test]
        fn an_interval_leaves_0_out_just_where_the_test_rejects(
            family in prop::collection::vec((prop::collection::vec(-3.0..9.0_f64, 8), 0.0..40.0_f64), 1..6),
        ) {
            let family: Vec<_> = family
                .into_iter()
                .map(|(differences, expected_squares)| ModeratedEffects { differences, expected_squares })
                .collect();
            for found in max_t_moderated(&family, 0.95, DRAWS).unwrap() {
                let half = found.half_width.unwrap_or(f64::INFINITY);
                prop_assert_eq!(found.adjusted_p <= 0.05, found.mean.abs() > half, "{:?}", found);
            }
        }
    }
}
