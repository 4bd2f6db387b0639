//! The correction for several comparisons that knows how they depend on each other: the
//! distribution of the largest statistic of the family, by joint sign flips or permutations.
//!
//! Comparisons with one baseline share its noise. Holm's correction must allow for the worst
//! dependence; these measure it, and are the sharper for it.

use crate::error::{
    StatsError, require_count, require_finite, require_held, require_length, require_sample,
};
use crate::generator::Generator;
use crate::moments::Moments;
use crate::permutation::{Draws, PERMUTATION_EXACT_MAX};
use crate::sign_flip::SIGN_FLIP_EXACT_MAX;

/// Adjusted two-sided p-values of a family of paired comparisons against no effect, step by step
/// from the clearest one.
///
/// In each arrangement all effects of a block change sign together or none does, which keeps what
/// they have in common. The statistic is Student's t; p-values are exact for the family up to
/// [`SIGN_FLIP_EXACT_MAX`] blocks, and from `draws` beyond. For one comparison it is
/// [`crate::sign_flip_p`].
///
/// Shape: `effects` holds one list a comparison, each with one effect a block, the same blocks in
/// the same order. Returned in the order given; none for none.
///
/// # Errors
/// [`StatsError::Empty`], [`StatsError::NotFinite`], [`StatsError::UnequalLengths`],
/// [`StatsError::TooLarge`], [`StatsError::TooFew`] draws.
///
/// # Source
/// Westfall & Young 1993, algorithm 4.1. Oracle: complete enumeration, `oracle/families.py`.
///
/// # Examples
/// ```
/// use fwdlab_stats::{Draws, max_t_sign_flip};
/// let effects = [
///     vec![-0.23, -0.24, -0.24, -0.25, -0.23, -0.24, -0.24, -0.23],
///     vec![-0.011, 0.014, -0.009, 0.006, -0.013, 0.008, -0.003, 0.011],
/// ];
/// let adjusted = max_t_sign_flip(&effects, Draws { seed: 1, count: 9999 })?;
/// assert_eq!(adjusted[0], 2.0 / 256.0);
/// assert!(adjusted[1] > 0.5);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn max_t_sign_flip(effects: &[Vec<f64>], draws: Draws) -> Result<Vec<f64>, StatsError> {
    let Some(first) = effects.first() else {
        return Ok(Vec::new());
    };
    let blocks = first.len();
    let mut scaled = Vec::with_capacity(effects.len());
    for (number, effects) in effects.iter().enumerate() {
        let subject = format!("max-T, comparison {number}");
        require_finite(&subject, effects)?;
        require_length(&subject, blocks, effects.len())?;
        // The sum over the root of the sum of squares, which no sign changes: it rises with
        // Student's t, the same way for every comparison of as many blocks.
        let length = effects.iter().map(|e| e * e).sum::<f64>().sqrt();
        require_held(&subject, length.is_finite())?;
        let divisor = if length > 0.0 { length } else { 1.0 };
        scaled.push(effects.iter().map(|e| e / divisor).collect::<Vec<f64>>());
    }
    let statistic = |effects: &[f64], flipped: &dyn Fn(usize) -> bool| {
        effects
            .iter()
            .enumerate()
            .map(|(block, effect)| if flipped(block) { -effect } else { *effect })
            .sum::<f64>()
            .abs()
    };
    let observed: Vec<f64> = scaled.iter().map(|e| statistic(e, &|_| false)).collect();
    let mut counts = StepDown::new(&observed, (blocks as f64).sqrt());
    let arrangements = if blocks <= SIGN_FLIP_EXACT_MAX {
        // A pattern and its mirror image have the same statistics, so one sign can stay.
        let patterns = 1_u64 << (blocks - 1);
        for signs in 0..patterns {
            counts.count(|number| statistic(&scaled[number], &|block| signs >> block & 1 == 1));
        }
        Arrangements::All(patterns)
    } else {
        require_count("max-T, sign patterns to draw", 1, draws.count as usize)?;
        let mut generator = Generator::new(draws.seed);
        for _ in 0..draws.count {
            let signs: Vec<bool> = (0..blocks).map(|_| generator.coin()).collect();
            counts.count(|number| statistic(&scaled[number], &|block| signs[block]));
        }
        Arrangements::Drawn(draws.count)
    };
    Ok(counts.adjusted(arrangements))
}

/// Adjusted two-sided p-values of independent samples against one reference, all at once.
///
/// In each arrangement the labels of all samples and the reference are exchanged together. The
/// statistic is the difference of means over its standard error, with the variance pooled over
/// all of them; its largest over the family is the reference for each comparison, in a single
/// step: exchanging all labels says nothing about the rest once one sample is known to differ,
/// whose values only make it the stricter with the others.
///
/// Shape: one value or more a sample, and more values than samples. All arrangements are tried up
/// to [`PERMUTATION_EXACT_MAX`]; `draws` counts beyond. Returned in the order of `samples`; none
/// for none.
///
/// # Errors
/// [`StatsError::Empty`], [`StatsError::NotFinite`], [`StatsError::TooFew`] values or draws,
/// [`StatsError::TooLarge`].
///
/// # Source
/// Westfall & Young 1993, section 5.2. Oracle: complete enumeration, `oracle/families.py`.
///
/// # Examples
/// ```
/// use fwdlab_stats::{Draws, max_t_permutation};
/// let draws = Draws { seed: 1, count: 9999 };
/// let adjusted = max_t_permutation(&[5.4, 5.9, 5.5], &[&[6.3, 6.2, 6.4], &[5.6, 5.3]], draws)?;
/// assert!(adjusted[0] < 0.05 && adjusted[1] > 0.5);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn max_t_permutation(
    reference: &[f64],
    samples: &[&[f64]],
    draws: Draws,
) -> Result<Vec<f64>, StatsError> {
    require_finite("max-T, reference", reference)?;
    for (number, sample) in samples.iter().enumerate() {
        require_finite(&format!("max-T, sample {number}"), sample)?;
    }
    let origin = reference[0];
    let mut pooled: Vec<f64> = reference.iter().map(|value| value - origin).collect();
    pooled.extend(
        samples
            .iter()
            .copied()
            .flatten()
            .map(|value| value - origin),
    );
    // The reference is group 0.
    let sizes: Vec<usize> = std::iter::once(reference.len())
        .chain(samples.iter().map(|sample| sample.len()))
        .collect();
    require_sample("max-T, values of all samples", sizes.len() + 1, &pooled)?;
    let moments = Moments::around(0.0, &pooled);
    require_held("max-T", moments.squares.is_finite())?;
    let scale = if moments.squares > 0.0 {
        moments.squares.sqrt()
    } else {
        1.0
    };
    for value in &mut pooled {
        *value = (*value - moments.offset) / scale;
    }
    let mut observed_sums = vec![0.0; sizes.len()];
    let mut rest = &pooled[..];
    for (sum, size) in observed_sums.iter_mut().zip(&sizes) {
        let (group, later) = rest.split_at(*size);
        *sum = group.iter().sum();
        rest = later;
    }
    // Without any deviation left within the groups t is infinite; a floor at rounding keeps it a
    // number that any other such arrangement reaches, too.
    let statistics = |sums: &[f64]| -> Vec<f64> {
        let between: f64 = sums
            .iter()
            .zip(&sizes)
            .map(|(s, n)| s * s / *n as f64)
            .sum();
        let within = (1.0 - between).max(1e-12);
        (1..sizes.len())
            .map(|group| {
                let (n, m) = (sizes[group] as f64, sizes[0] as f64);
                let difference = sums[group] / n - sums[0] / m;
                difference.abs() / (within * (1.0 / n + 1.0 / m)).sqrt()
            })
            .collect()
    };
    let observed = statistics(&observed_sums);
    let mut at_least = vec![0_u64; samples.len()];
    let mut count = |sums: &[f64]| {
        let largest = statistics(sums).into_iter().fold(0.0, f64::max);
        for (count, observed) in at_least.iter_mut().zip(&observed) {
            // Equal in exact arithmetic may differ in the last digits.
            *count += u64::from(largest >= observed * (1.0 - 1e-9) - 1e-12);
        }
    };
    let arrangements = match multinomial(&sizes).filter(|count| *count <= PERMUTATION_EXACT_MAX) {
        Some(total) => {
            let mut sums = vec![0.0; sizes.len()];
            deal(&pooled, &mut sizes.clone(), &mut sums, &mut count);
            Arrangements::All(total)
        }
        None => {
            require_count("max-T, arrangements to draw", 1, draws.count as usize)?;
            let mut generator = Generator::new(draws.seed);
            for _ in 0..draws.count {
                let chosen = pooled.len() - 1;
                generator.choose(&mut pooled, chosen);
                let mut rest = &pooled[..];
                let sums: Vec<f64> = sizes
                    .iter()
                    .map(|size| {
                        let (group, later) = rest.split_at(*size);
                        rest = later;
                        group.iter().sum()
                    })
                    .collect();
                count(&sums);
            }
            Arrangements::Drawn(draws.count)
        }
    };
    Ok(at_least
        .into_iter()
        .map(|count| arrangements.share(count))
        .collect())
}

/// Deals the values to groups with so many places left, in every way there is.
fn deal(values: &[f64], places: &mut [usize], sums: &mut [f64], arrived: &mut impl FnMut(&[f64])) {
    let Some((value, rest)) = values.split_first() else {
        return arrived(sums);
    };
    for group in 0..places.len() {
        if places[group] > 0 {
            places[group] -= 1;
            let before = sums[group];
            sums[group] += value;
            deal(rest, places, sums, arrived);
            sums[group] = before;
            places[group] += 1;
        }
    }
}

/// In how many ways groups of those sizes are dealt; `None` beyond what 64 bits hold.
fn multinomial(sizes: &[usize]) -> Option<u64> {
    let mut dealt = 0_u64;
    let mut ways = 1_u64;
    for size in sizes {
        for step in 1..=*size as u64 {
            dealt += 1;
            ways = ways.checked_mul(dealt)? / step;
        }
    }
    Some(ways)
}

#[derive(Debug, Clone, Copy)]
enum Arrangements {
    All(u64),
    Drawn(u32),
}

impl Arrangements {
    /// The p-value where so many arrangements reach the observed one. Drawn ones count the
    /// observed arrangement, too.
    fn share(self, count: u64) -> f64 {
        match self {
            Self::All(all) => count as f64 / all as f64,
            Self::Drawn(drawn) => (count as f64 + 1.0) / (f64::from(drawn) + 1.0),
        }
    }
}

/// How often the largest statistic of those not clearer reaches each observed one.
struct StepDown {
    /// Positions in the family, clearest first.
    order: Vec<usize>,
    /// What counts as reached, in that order.
    thresholds: Vec<f64>,
    counts: Vec<u64>,
}

impl StepDown {
    fn new(observed: &[f64], largest_possible: f64) -> Self {
        let mut order: Vec<usize> = (0..observed.len()).collect();
        order.sort_by(|a, b| observed[*b].total_cmp(&observed[*a]));
        Self {
            // Statistics equal in exact arithmetic may differ in the last digits.
            thresholds: order
                .iter()
                .map(|number| observed[*number] - 1e-12 * largest_possible)
                .collect(),
            counts: vec![0; observed.len()],
            order,
        }
    }

    fn count(&mut self, statistic: impl Fn(usize) -> f64) {
        let mut largest = 0.0_f64;
        for step in (0..self.order.len()).rev() {
            largest = largest.max(statistic(self.order[step]));
            self.counts[step] += u64::from(largest >= self.thresholds[step]);
        }
    }

    fn adjusted(&self, arrangements: Arrangements) -> Vec<f64> {
        let mut adjusted = vec![0.0; self.order.len()];
        let mut largest = 0.0_f64;
        for (number, count) in self.order.iter().zip(&self.counts) {
            largest = largest.max(arrangements.share(*count));
            adjusted[*number] = largest;
        }
        adjusted
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sign_flip_p;

    const DRAWS: Draws = Draws {
        seed: 2,
        count: 4999,
    };

    #[test]
    fn multinomials() {
        assert_eq!(multinomial(&[2, 2]), Some(6));
        assert_eq!(multinomial(&[3, 3, 2]), Some(560));
        assert_eq!(multinomial(&[40, 40, 40]), None);
    }

    #[test]
    fn bad_input_is_refused_by_name() {
        let flip =
            |effects: &[Vec<f64>], draws| max_t_sign_flip(effects, draws).unwrap_err().to_string();
        let permute = |reference: &[f64], samples: &[&[f64]]| {
            max_t_permutation(reference, samples, Draws { count: 0, ..DRAWS })
                .unwrap_err()
                .to_string()
        };
        let refusals = [
            flip(&[vec![]], DRAWS),
            flip(&[vec![1.0, 2.0], vec![1.0]], DRAWS),
            flip(&[vec![1.0, f64::NAN]], DRAWS),
            flip(&[vec![1e200, 1e200]], DRAWS),
            flip(&[vec![1.0; 21]], Draws { count: 0, ..DRAWS }),
            permute(&[], &[&[1.0]]),
            permute(&[1.0], &[&[f64::INFINITY]]),
            permute(&[1.0], &[&[2.0]]),
            permute(&[1.0, 2.0], &[&[1e300, -1e300]]),
            permute(&[1.0; 30], &[&[2.0; 30]]),
        ];
        insta::assert_snapshot!(refusals.join("\n"), @r"
max-T, comparison 0: no values (0 given); give at least one
max-T, comparison 1: 1 values where 2 are needed; give one for each
max-T, comparison 0: value 1 is not finite (NaN); give finite numbers only
max-T, comparison 0: values too large to reckon with; give them in a larger unit
max-T, sign patterns to draw: too few values (0); give at least 1
max-T, reference: no values (0 given); give at least one
max-T, sample 0: value 0 is not finite (inf); give finite numbers only
max-T, values of all samples: too few values (2); give at least 3
max-T: values too large to reckon with; give them in a larger unit
max-T, arrangements to draw: too few values (0); give at least 1
");
        assert!(max_t_sign_flip(&[], DRAWS).unwrap().is_empty());
        assert!(
            max_t_permutation(&[1.0, 2.0], &[], DRAWS)
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn values_that_do_not_vary_show_nothing() {
        let flip = max_t_sign_flip(&[vec![0.0; 8], vec![0.0; 8]], DRAWS).unwrap();
        assert!(flip.iter().all(|p| *p >= 1.0), "{flip:?}");
        let permute = max_t_permutation(&[0.1; 4], &[&[0.1; 4], &[0.1; 3]], DRAWS).unwrap();
        assert!(permute.iter().all(|p| *p >= 1.0), "{permute:?}");
    }

    /// Beyond 20 blocks patterns are drawn: the same seed gives the same p-values, and an effect
    /// without noise the smallest one.
    #[test]
    fn drawn_patterns() {
        let effects = [
            vec![0.5; 24],
            (0..24).map(|i| f64::from(i % 5) - 2.0).collect(),
        ];
        let adjusted = max_t_sign_flip(&effects, DRAWS).unwrap();
        assert!((adjusted[0] - 1.0 / 5000.0).abs() < 1e-15);
        assert!(adjusted[1] > 0.7);
        assert_eq!(adjusted, max_t_sign_flip(&effects, DRAWS).unwrap());
        let clear: Vec<f64> = (0..40).map(|i| 10.0 + f64::from(i % 3)).collect();
        let same: Vec<f64> = (0..40).map(|i| f64::from(i % 3)).collect();
        let adjusted = max_t_permutation(&same, &[&clear, &same], DRAWS).unwrap();
        assert!((adjusted[0] - 1.0 / 5000.0).abs() < 1e-15);
        assert!(adjusted[1] >= 1.0);
    }

    proptest! {
        #[test]
        fn dependence_is_known_and_correction_never_helps(
            effects in (3_usize..9).prop_flat_map(|blocks| {
                prop::collection::vec(prop::collection::vec(-1.0..2.0_f64, blocks), 1..5)
            }),
        ) {
            let adjusted = max_t_sign_flip(&effects, DRAWS).unwrap();
            let plain: Vec<f64> =
                effects.iter().map(|e| sign_flip_p(e, 0.0).unwrap().unwrap()).collect();
            for (adjusted, plain) in adjusted.iter().zip(&plain) {
                prop_assert!(*adjusted >= plain - 1e-12);
            }
            // Comparisons that depend on each other wholly cost nothing: here Holm would pay.
            let copies = vec![effects[0].clone(); effects.len()];
            for p in max_t_sign_flip(&copies, DRAWS).unwrap() {
                prop_assert!((p - plain[0]).abs() < 1e-12);
            }
        }

        #[test]
        fn scale_mirror_and_order(
            effects in prop::collection::vec(prop::collection::vec(-4_i8..5, 7), 2..5),
        ) {
            let of = |scale: f64, reversed: bool| {
                let mut effects: Vec<Vec<f64>> = effects
                    .iter()
                    .map(|e| e.iter().map(|v| f64::from(*v) * scale).collect())
                    .collect();
                if reversed {
                    effects.reverse();
                }
                max_t_sign_flip(&effects, DRAWS).unwrap()
            };
            let plain = of(1.0, false);
            prop_assert_eq!(&plain, &of(-4.0, false));
            let mut backwards = of(1.0, true);
            backwards.reverse();
            prop_assert_eq!(plain, backwards);
        }

        #[test]
        fn permutation_ignores_shift_scale_and_mirror(
            reference in prop::collection::vec((-9_i8..9).prop_map(f64::from), 2..4),
            first in prop::collection::vec((-9_i8..9).prop_map(f64::from), 2..4),
            second in prop::collection::vec((-9_i8..9).prop_map(f64::from), 1..4),
        ) {
            let of = |scale: f64, shift: f64| {
                let moved = |values: &[f64]| -> Vec<f64> {
                    values.iter().map(|v| v * scale + shift).collect()
                };
                let samples = [moved(&first), moved(&second)];
                let samples: Vec<&[f64]> = samples.iter().map(Vec::as_slice).collect();
                max_t_permutation(&moved(&reference), &samples, DRAWS).unwrap()
            };
            prop_assert_eq!(of(1.0, 0.0), of(-8.0, 100.0));
        }
    }
}
