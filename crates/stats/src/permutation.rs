//! The permutation test of two independent samples, within strata where there are any.

use crate::error::{StatsError, require_any, require_finite, require_held};
use crate::generator::Generator;
use crate::moments::Moments;
use crate::shift_test::ShiftTest;

/// The largest number of arrangements that are all tried: a million.
pub const PERMUTATION_EXACT_MAX: u64 = 1 << 20;

/// How arrangements are drawn where there are too many to try all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draws {
    /// The same seed draws the same arrangements.
    pub seed: u64,
    /// How many; 9999 leave p = 0.05 a standard error of 0.002.
    pub count: u32,
}

/// The values of one stratum: what is exchangeable, a block or a session.
#[derive(Debug, Clone, Copy)]
pub struct Stratum<'a> {
    /// Of the sample.
    pub sample: &'a [f64],
    /// Of the reference.
    pub reference: &'a [f64],
}

/// The test of a difference of means by exchanging labels within strata.
///
/// The statistic is the sum over strata of the sample's values less the stratum's mean: with one
/// stratum the difference of the means, with several their differences weighted by n m / (n + m),
/// as least squares would. A one-sided p-value is the share of arrangements as extreme as the
/// observed one; of `count` drawn at random, of which b are, (b + 1) / (count + 1).
///
/// Units: those of the values.
///
/// # Source
/// Fisher 1935; Pitman 1937; Phipson & Smyth 2010 for the drawn ones. Oracle: SciPy's
/// `permutation_test` and complete enumeration, `oracle/two_samples.py`.
///
/// # Examples
/// ```
/// use fwdlab_stats::{Draws, PermutationTest, ShiftTest as _, Stratum};
/// let draws = Draws { seed: 1, count: 9999 };
/// let stratum = Stratum { sample: &[6.1, 6.3, 6.2, 6.4], reference: &[5.4, 5.9, 5.5, 5.8] };
/// let test = PermutationTest::new(&[stratum], draws)?;
/// assert_eq!(test.arrangements(), Some(70));
/// assert_eq!(test.p_greater(0.0), 1.0 / 70.0);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
#[derive(Debug, Clone)]
pub struct PermutationTest {
    strata: Vec<Labelled>,
    /// `None` beyond what is tried.
    arrangements: Option<u64>,
    draws: Draws,
}

/// A stratum's values less its first one, those of the sample before those of the reference.
#[derive(Debug, Clone)]
struct Labelled {
    values: Vec<f64>,
    sample_size: usize,
}

impl PermutationTest {
    /// Prepares the test; `draws` counts only beyond [`PERMUTATION_EXACT_MAX`] arrangements.
    ///
    /// Shape: one stratum or more, each with one value or more on both sides.
    ///
    /// # Errors
    /// [`StatsError::Empty`], [`StatsError::NotFinite`], [`StatsError::TooLarge`];
    /// [`StatsError::TooFew`] for no draws where some are needed.
    pub fn new(strata: &[Stratum<'_>], draws: Draws) -> Result<Self, StatsError> {
        require_any("permutation test, strata", strata.len())?;
        let strata = strata
            .iter()
            .enumerate()
            .map(|(number, stratum)| Labelled::new(number, stratum))
            .collect::<Result<Vec<_>, _>>()?;
        let arrangements = strata
            .iter()
            .try_fold(1, |product, stratum| {
                let choices = binomial(stratum.values.len() as u64, stratum.sample_size as u64)?;
                u64::checked_mul(product, choices)
            })
            .filter(|count| *count <= PERMUTATION_EXACT_MAX);
        if arrangements.is_none() && draws.count == 0 {
            return Err(StatsError::TooFew {
                subject: "permutation test, arrangements to draw".to_owned(),
                need: 1,
                have: 0,
            });
        }
        Ok(Self {
            strata,
            arrangements,
            draws,
        })
    }

    /// How many arrangements there are if all are tried; `None` if some are drawn.
    pub fn arrangements(&self) -> Option<u64> {
        self.arrangements
    }

    /// The difference of the means, strata weighted by n m / (n + m).
    pub fn difference(&self) -> f64 {
        let (mut total, mut weights) = (0.0, 0.0);
        for stratum in &self.strata {
            let (sample, reference) = stratum.values.split_at(stratum.sample_size);
            let (sample, reference) = (
                Moments::around(0.0, sample),
                Moments::around(0.0, reference),
            );
            let weight = sample.count / (sample.count + reference.count) * reference.count;
            total += weight * (sample.offset - reference.offset);
            weights += weight;
        }
        total / weights
    }

    /// The share of arrangements whose statistic is at least the observed one, with the sample's
    /// values moved by -`shift` and everything multiplied by `sign`.
    fn p(&self, shift: f64, sign: f64) -> f64 {
        let mut strata: Vec<Labelled> = self
            .strata
            .iter()
            .map(|stratum| stratum.centred(shift, sign))
            .collect();
        let observed: f64 = strata.iter().map(Labelled::statistic).sum();
        let magnitude: f64 = strata
            .iter()
            .flat_map(|stratum| &stratum.values)
            .map(|value| value.abs())
            .sum();
        // Arrangements with the same sum in exact arithmetic may differ in the last digits.
        let threshold = observed - magnitude * 1e-12;
        match self.arrangements {
            Some(arrangements) => {
                count_at_least(&strata, 0, 0, 0.0, threshold) as f64 / arrangements as f64
            }
            None => drawn_p(&mut strata, threshold, self.draws),
        }
    }
}

impl ShiftTest for PermutationTest {
    fn p_greater(&self, shift: f64) -> f64 {
        self.p(shift, 1.0)
    }

    fn p_less(&self, shift: f64) -> f64 {
        self.p(shift, -1.0)
    }
}

impl Labelled {
    fn new(number: usize, stratum: &Stratum<'_>) -> Result<Self, StatsError> {
        let subject = |side| format!("permutation test, stratum {number}, {side}");
        require_finite(&subject("sample"), stratum.sample)?;
        require_finite(&subject("reference"), stratum.reference)?;
        let origin = stratum.reference[0];
        let values: Vec<f64> = stratum
            .sample
            .iter()
            .chain(stratum.reference)
            .map(|value| value - origin)
            .collect();
        // The sum of them all must be finite, too.
        let largest = values
            .iter()
            .fold(0.0_f64, |max, value| max.max(value.abs()));
        require_held(
            &subject("values"),
            (largest * values.len() as f64 * 4.0).is_finite(),
        )?;
        Ok(Self {
            values,
            sample_size: stratum.sample.len(),
        })
    }

    /// The stratum with the sample moved by -`shift`, less its mean, times `sign`.
    fn centred(&self, shift: f64, sign: f64) -> Self {
        let mut values = self.values.clone();
        for value in &mut values[..self.sample_size] {
            *value -= shift;
        }
        let mean = Moments::around(0.0, &values).offset;
        for value in &mut values {
            *value = sign * (*value - mean);
        }
        Self {
            values,
            sample_size: self.sample_size,
        }
    }

    fn statistic(&self) -> f64 {
        self.values[..self.sample_size].iter().sum()
    }
}

/// Counts the arrangements that carry `sum` to `threshold` or beyond: of the stratum `stratum`
/// `chosen` values are in the sample already, all of them before `from`.
fn count_at_least(
    strata: &[Labelled],
    from: usize,
    chosen: usize,
    sum: f64,
    threshold: f64,
) -> u64 {
    let Some((stratum, later)) = strata.split_first() else {
        return u64::from(sum >= threshold);
    };
    let open = stratum.sample_size - chosen;
    if open == 0 {
        return count_at_least(later, 0, 0, sum, threshold);
    }
    (from..=stratum.values.len() - open)
        .map(|next| {
            let sum = sum + stratum.values[next];
            count_at_least(strata, next + 1, chosen + 1, sum, threshold)
        })
        .sum()
}

fn drawn_p(strata: &mut [Labelled], threshold: f64, draws: Draws) -> f64 {
    let mut generator = Generator::new(draws.seed);
    let totals: Vec<f64> = strata.iter().map(|s| s.values.iter().sum()).collect();
    let extreme = (0..draws.count)
        .filter(|_| {
            let mut sum = 0.0;
            for (stratum, total) in strata.iter_mut().zip(&totals) {
                // Drawing the smaller side is enough.
                let (sample, reference) = (
                    stratum.sample_size,
                    stratum.values.len() - stratum.sample_size,
                );
                let chosen = sample.min(reference);
                generator.choose(&mut stratum.values, chosen);
                let chosen_sum: f64 = stratum.values[..chosen].iter().sum();
                sum += if chosen == sample {
                    chosen_sum
                } else {
                    total - chosen_sum
                };
            }
            sum >= threshold
        })
        .count();
    (extreme as f64 + 1.0) / (f64::from(draws.count) + 1.0)
}

/// n over k; `None` beyond what 64 bits hold.
fn binomial(n: u64, k: u64) -> Option<u64> {
    (1..=k.min(n - k)).try_fold(1, |product, step| {
        Some(u64::checked_mul(product, n + 1 - step)? / step)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DRAWS: Draws = Draws {
        seed: 1,
        count: 9999,
    };

    fn unstratified(sample: &[f64], reference: &[f64]) -> PermutationTest {
        PermutationTest::new(&[Stratum { sample, reference }], DRAWS).unwrap()
    }

    #[test]
    fn binomials() {
        assert_eq!(binomial(8, 4), Some(70));
        assert_eq!(binomial(5, 0), Some(1));
        assert_eq!(binomial(1_000_000, 3), Some(166_666_166_667_000_000));
        assert_eq!(binomial(1000, 500), None);
    }

    #[test]
    fn values_that_do_not_vary_show_nothing() {
        let test = unstratified(&[0.1; 4], &[0.1; 4]);
        assert_eq!(test.p_two_sided(0.0), 1.0);
        assert_eq!(test.difference(), 0.0);
    }

    /// Arrangements drawn and arrangements tried give the same p-value but for chance.
    #[test]
    fn drawn_arrangements_are_as_likely_as_they_should_be() {
        let samples: [(&[f64], &[f64]); 2] = [
            (
                &[0.3, 1.9, 0.8, 1.4, 2.2],
                &[0.1, 0.7, -0.4, 1.2, 0.0, 0.5, 0.2],
            ),
            (&[5.0, 5.5, 6.1, 4.9, 5.2, 5.8], &[5.1, 4.8, 4.9, 5.4]),
        ];
        let strata = samples.map(|(sample, reference)| Stratum { sample, reference });
        let test = PermutationTest::new(&strata, DRAWS).unwrap();
        assert!(test.arrangements().is_some());
        let drawn = PermutationTest {
            arrangements: None,
            ..test.clone()
        };
        for shift in [0.0, 0.3, 0.6, 0.9] {
            for (tried, drawn) in [
                (test.p_greater(shift), drawn.p_greater(shift)),
                (test.p_less(shift), drawn.p_less(shift)),
            ] {
                let error = (tried * (1.0 - tried) / 1e4).sqrt();
                assert!(
                    (tried - drawn).abs() < 4.0 * error + 1e-4,
                    "{tried} {drawn}"
                );
            }
        }
    }

    #[test]
    fn many_values_are_drawn() {
        let sample: Vec<f64> = (0..1000).map(|i| f64::from(i % 37)).collect();
        let reference: Vec<f64> = (0..1500).map(|i| f64::from(i % 41)).collect();
        let test = unstratified(&sample, &reference);
        assert_eq!(test.arrangements(), None);
        assert_eq!(test.p_less(0.0), 1e-4);
        assert_eq!(
            test.p_less(0.0),
            unstratified(&sample, &reference).p_less(0.0)
        );
    }

    #[test]
    fn bad_input_is_refused_by_name() {
        let refusal = |sample: &[f64], reference: &[f64], draws| {
            let good = Stratum {
                sample: &[1.0],
                reference: &[2.0],
            };
            PermutationTest::new(&[good, Stratum { sample, reference }], draws)
                .unwrap_err()
                .to_string()
        };
        let refusals = [
            refusal(&[], &[1.0], DRAWS),
            refusal(&[1.0], &[1.0, f64::NAN], DRAWS),
            refusal(&[f64::MAX], &[f64::MIN], DRAWS),
            refusal(&[1.0; 20], &[1.0; 20], Draws { count: 0, ..DRAWS }),
            PermutationTest::new(&[], DRAWS).unwrap_err().to_string(),
        ];
        insta::assert_snapshot!(refusals.join("\n"), @r"
permutation test, stratum 1, sample: no values (0 given); give at least one
permutation test, stratum 1, reference: value 1 is not finite (NaN); give finite numbers only
permutation test, stratum 1, values: values too large to reckon with; give them in a larger unit
permutation test, arrangements to draw: too few values (0); give at least 1
permutation test, strata: no values (0 given); give at least one
");
    }

    fn samples() -> impl Strategy<Value = Vec<f64>> {
        // Quarters: sums are exact, so that the laws hold for ties, too.
        prop::collection::vec((-20_i8..20).prop_map(|v| f64::from(v) / 4.0), 1..7)
    }

    proptest! {
        #[test]
        fn sides_swap_shift_and_scale(
            a in samples(),
            b in samples(),
            shift in (-8_i8..8).prop_map(|v| f64::from(v) / 4.0),
            scale in prop::sample::select(vec![0.25, 2.0, 1024.0]),
        ) {
            let plain = unstratified(&a, &b);
            let swapped = unstratified(&b, &a);
            prop_assert_eq!(plain.p_greater(shift), swapped.p_less(-shift));
            prop_assert_eq!(plain.p_two_sided(shift), swapped.p_two_sided(-shift));
            let moved = |values: &[f64]| -> Vec<f64> {
                values.iter().map(|v| v * scale + 64.0).collect()
            };
            let moved = unstratified(&moved(&a), &moved(&b));
            prop_assert_eq!(moved.p_greater(shift * scale), plain.p_greater(shift));
        }

        /// A stratum more in which nothing differs takes nothing away but weight.
        #[test]
        fn strata_may_lie_anywhere(a in samples(), b in samples(), offset in -9_i8..9) {
            let moved = |values: &[f64]| -> Vec<f64> {
                values.iter().map(|v| v + f64::from(offset) * 16.0).collect()
            };
            let (far_a, far_b) = (moved(&a[..1]), moved(&b[..1]));
            let p = |other: (&[f64], &[f64])| {
                let strata = [(&a[..], &b[..]), other]
                    .map(|(sample, reference)| Stratum { sample, reference });
                PermutationTest::new(&strata, DRAWS).unwrap().p_greater(0.0)
            };
            prop_assert_eq!(p((&a[..1], &b[..1])), p((&far_a, &far_b)));
        }
    }
}
