//! Dunnett's test: several samples against one reference, with normal noise of one variance.

use serde::Serialize;

use crate::distribution::{normal_upper_tail, t_upper_quantile, t_upper_tail};
use crate::error::{StatsError, require_held, require_sample, require_spread, significance};
use crate::hodges_lehmann::Interval;
use crate::moments::Moments;

/// One sample against the reference.
///
/// Units: those of the values; of logarithms the difference is a log ratio.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DunnettComparison {
    /// The mean of the sample less that of the reference.
    pub difference: f64,
    /// The difference over its standard error, the variance pooled over all samples.
    pub t: f64,
    /// Two-sided, adjusted for the whole family.
    pub adjusted_p: f64,
    /// With the others: all intervals hold their truths together at the confidence.
    pub interval: Interval,
}

/// Dunnett's two-sided test of each sample against the reference.
///
/// It knows how comparisons with one reference depend on each other, where noise is normal and
/// has the same variance everywhere: the sharpest of the corrections, with the most assumptions.
///
/// Shape: one value or more in each sample and the reference, more values than these in all.
/// Returned in the order of `samples`; none for none.
///
/// # Errors
/// [`StatsError::Empty`], [`StatsError::NotFinite`], [`StatsError::TooFew`],
/// [`StatsError::NoSpread`] where nothing varies, [`StatsError::TooLarge`],
/// [`StatsError::Confidence`].
///
/// # Source
/// Dunnett 1955; the multivariate t of a product structure as a double integral. Oracle: another
/// quadrature in `oracle/families.py`, which agrees with SciPy's `dunnett`.
///
/// # Examples
/// ```
/// use fwdlab_stats::dunnett;
/// let reference = [7.40, 8.50, 7.20, 8.24, 9.84, 8.32];
/// let drugs = [&[9.76, 8.80, 7.68, 9.36][..], &[12.80, 9.68, 12.16, 9.20, 10.55]];
/// let comparisons = dunnett(&reference, &drugs, 0.95)?;
/// assert!((comparisons[0].adjusted_p - 0.62).abs() < 0.01);
/// assert!((comparisons[1].adjusted_p - 0.0059).abs() < 0.0001);
/// assert!(comparisons[1].interval.lower > 0.0);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn dunnett(
    reference: &[f64],
    samples: &[&[f64]],
    confidence: f64,
) -> Result<Vec<DunnettComparison>, StatsError> {
    let alpha = significance(confidence)?;
    require_sample("Dunnett's test, reference", 1, reference)?;
    let base = Moments::around(reference[0], reference);
    let mut squares = base.squares;
    let mut degrees_of_freedom = base.count - 1.0;
    let mut groups = Vec::with_capacity(samples.len());
    for (number, sample) in samples.iter().enumerate() {
        require_sample(&format!("Dunnett's test, sample {number}"), 1, sample)?;
        let moments = Moments::around(sample[0], sample);
        squares += moments.squares;
        degrees_of_freedom += moments.count - 1.0;
        let difference = (sample[0] - reference[0]) + (moments.offset - base.offset);
        groups.push((difference, moments.count));
    }
    if samples.is_empty() {
        return Ok(Vec::new());
    }
    if degrees_of_freedom < 1.0 {
        return Err(StatsError::TooFew {
            subject: "Dunnett's test, values of all samples".to_owned(),
            need: samples.len() + 2,
            have: samples.len() + 1,
        });
    }
    let finite = groups.iter().all(|(difference, _)| difference.is_finite());
    require_held("Dunnett's test", finite && squares.is_finite())?;
    require_spread("Dunnett's test", squares > 0.0)?;
    let mut loadings: Vec<(f64, f64)> = Vec::new();
    for (_, count) in &groups {
        let loading = (count / (count + base.count)).sqrt();
        // Equal sizes give the same double.
        let same = |(known, _): &&mut (f64, f64)| known.to_bits() == loading.to_bits();
        match loadings.iter_mut().find(same) {
            Some((_, samples)) => *samples += 1.0,
            None => loadings.push((loading, 1.0)),
        }
    }
    let family = ManyToOne {
        loadings,
        degrees_of_freedom,
    };
    let critical = family.quantile(alpha);
    let variance = squares / degrees_of_freedom;
    Ok(groups
        .into_iter()
        .map(|(difference, count)| {
            let error = (variance * (1.0 / count + 1.0 / base.count)).sqrt();
            let t = difference / error;
            DunnettComparison {
                difference,
                t,
                adjusted_p: family.p_beyond(t.abs()),
                interval: Interval::around(difference, critical * error, confidence),
            }
        })
        .collect())
}

/// The two-sided critical value of as many comparisons with a reference of the same size as each.
pub(crate) fn dunnett_critical(comparisons: usize, degrees_of_freedom: f64, alpha: f64) -> f64 {
    let family = ManyToOne {
        loadings: vec![(0.5_f64.sqrt(), comparisons as f64)],
        degrees_of_freedom,
    };
    family.quantile(alpha)
}

/// The joint distribution of t statistics that share a reference and a variance: with Z0, Zi
/// normal and S the estimated deviation, Ti = (li Z0 + sqrt(1 - li^2) Zi) / S.
struct ManyToOne {
    /// The li, each with the number of samples that have it: two statistics correlate by the product of
    /// theirs.
    loadings: Vec<(f64, f64)>,
    degrees_of_freedom: f64,
}

/// Steps of the trapezoidal rule in units of the integrand's own width; the rule gains digits
/// exponentially with smooth integrands that vanish at both ends.
const STEP: f64 = 0.5;

/// With few degrees of freedom the density of ln S is skewed and wants smaller steps: its Fourier
/// transform, a gamma function, falls off like exp(-pi w / 4), to 1e-12 at this step.
const STEP_FEW_MAX: f64 = 0.18;

impl ManyToOne {
    /// The probability that one |Ti| or more is beyond `t`, to about 1e-10 relative down to 1e-25.
    fn p_beyond(&self, t: f64) -> f64 {
        // No single one so far out is possible in doubles: there is nothing to integrate.
        if t_upper_tail(t, self.degrees_of_freedom) <= 0.0 {
            return 0.0;
        }
        // Over u = ln S, whose density falls off around 0 within 1 / sqrt(2 n), and at large `t`
        // around where S makes the statistics large.
        let n = self.degrees_of_freedom;
        let density = |u: f64| (n * (u - (2.0 * u).exp_m1() / 2.0)).exp();
        let step = (STEP / (2.0 * n).sqrt()).min(STEP_FEW_MAX);
        let centre = -0.5 * (t * t / n).ln_1p();
        let (mut sum, mut total) = (0.0, 0.0);
        // The density sums to its own normalisation, over the same points.
        for direction in [1.0, -1.0] {
            for point in 0..POINTS_MAX {
                if point == 0 && direction < 0.0 {
                    continue;
                }
                let u = centre + direction * f64::from(point) * step;
                let weight = density(u);
                let term = weight * self.p_beyond_normal(t * u.exp());
                sum += term;
                total += weight;
                let past_the_peak = direction < 0.0 || u > 0.0;
                if past_the_peak && weight <= total * 1e-18 && term <= sum * 1e-18 {
                    break;
                }
            }
        }
        (sum / total).min(1.0)
    }

    /// The same with a known deviation of 1.
    fn p_beyond_normal(&self, t: f64) -> f64 {
        // The sharpest edge of the integrand over Z0 sets the step.
        let width = self
            .loadings
            .iter()
            .map(|(loading, _)| ((1.0 - loading * loading).sqrt() / loading).min(1.0))
            .fold(1.0, f64::min);
        let step = STEP * width;
        let (mut sum, mut total) = (0.0, 0.0);
        for point in 0..POINTS_MAX {
            let z = f64::from(point) * step;
            // Negative z are as probable and give the same.
            let weight = (-z * z / 2.0).exp() * if point == 0 { 1.0 } else { 2.0 };
            if weight < 1e-40 {
                break;
            }
            let none_beyond: f64 = self
                .loadings
                .iter()
                .map(|(loading, samples)| {
                    let rest = (1.0 - loading * loading).sqrt();
                    let beyond = normal_upper_tail((t + loading * z) / rest)
                        + normal_upper_tail((t - loading * z) / rest);
                    samples * (-beyond.min(1.0)).ln_1p()
                })
                .sum();
            sum -= weight * none_beyond.exp_m1();
            total += weight;
        }
        sum / total
    }

    /// The t with `p_beyond` of `alpha`.
    fn quantile(&self, alpha: f64) -> f64 {
        let count: f64 = self.loadings.iter().map(|(_, samples)| samples).sum();
        // One comparison alone, and as many as there are at worst apart, bound it.
        let excess = |t: f64| self.p_beyond(t).ln() - alpha.ln();
        let mut low = t_upper_quantile(alpha / 2.0, self.degrees_of_freedom);
        let mut high = t_upper_quantile(alpha / 2.0 / count, self.degrees_of_freedom);
        let (mut above, mut below) = (excess(low), excess(high));
        // The false position, halving the end that stays (Illinois).
        for _ in 0..100 {
            if above <= 0.0 || (high - low) <= 1e-12 * high {
                return low;
            }
            if below >= 0.0 {
                return high;
            }
            let middle = low + (high - low) * above / (above - below);
            let there = excess(middle);
            if there.abs() < 1e-12 {
                return middle;
            }
            if there > 0.0 {
                low = middle;
                above = there;
                below /= 2.0;
            } else {
                high = middle;
                below = there;
                above /= 2.0;
            }
        }
        f64::midpoint(low, high)
    }
}

/// More points than any integral takes.
const POINTS_MAX: u32 = 100_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{ShiftTest as _, TwoSampleT};

    #[test]
    fn bad_input_is_refused_by_name() {
        let refusal = |reference: &[f64], samples: &[&[f64]]| {
            dunnett(reference, samples, 0.95).unwrap_err().to_string()
        };
        let good: &[f64] = &[1.0, 2.0, 4.0];
        let refusals = [
            refusal(&[], &[good]),
            refusal(good, &[good, &[]]),
            refusal(good, &[&[1.0, f64::NAN]]),
            refusal(&[1.0], &[&[2.0], &[3.0]]),
            refusal(&[1.0; 4], &[&[2.0; 4]]),
            refusal(&[1e300, -1e300], &[good]),
            dunnett(good, &[good], 1.0).unwrap_err().to_string(),
        ];
        insta::assert_snapshot!(refusals.join("\n"), @r"
Dunnett's test, reference: no values (0 given); give at least one
Dunnett's test, sample 1: no values (0 given); give at least one
Dunnett's test, sample 0: value 1 is not finite (NaN); give finite numbers only
Dunnett's test, values of all samples: too few values (3); give at least 4
Dunnett's test: the values do not vary (0 spread); give values that do, or a rank test
Dunnett's test: values too large to reckon with; give them in a larger unit
confidence: not between 0.5 and 1 (1); give for example 0.95
");
        assert!(dunnett(good, &[], 0.95).unwrap().is_empty());
    }

    #[test]
    fn a_difference_beyond_all_noise() {
        let reference: Vec<f64> = (0..2000).map(|i| f64::from(i % 2) * 1e-9).collect();
        let sample: Vec<f64> = reference.iter().map(|value| value + 100.0).collect();
        let found = dunnett(&reference, &[&sample, &reference], 0.95).unwrap();
        assert!(found[0].adjusted_p <= 0.0 && found[1].adjusted_p > 0.99);
    }

    fn samples() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(-5.0..5.0_f64, 2..7)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// A family of one is the pooled t test.
        #[test]
        fn one_comparison_is_the_pooled_t(reference in samples(), sample in samples()) {
            let found = dunnett(&reference, &[&sample], 0.95).unwrap()[0];
            let pooled = TwoSampleT::pooled(&sample, &reference).unwrap();
            let p = pooled.p_two_sided(0.0);
            prop_assert!((found.adjusted_p / p - 1.0).abs() < 1e-9, "{} {}", found.adjusted_p, p);
            let interval = pooled.interval(0.95).unwrap();
            prop_assert!((found.interval.upper - interval.upper).abs() < 1e-9);
        }

        #[test]
        fn shift_scale_mirror_and_agreement(
            reference in samples(),
            first in samples(),
            second in samples(),
        ) {
            let of = |scale: f64, shift: f64| {
                let moved = |values: &[f64]| -> Vec<f64> {
                    values.iter().map(|v| v * scale + shift).collect()
                };
                dunnett(&moved(&reference), &[&moved(&first), &moved(&second)], 0.95).unwrap()
            };
            for (plain, moved) in of(1.0, 0.0).iter().zip(of(-4.0, 9.0)) {
                prop_assert!((plain.adjusted_p - moved.adjusted_p).abs() < 1e-9);
                prop_assert!((plain.interval.lower * -4.0 - moved.interval.upper).abs() < 1e-6);
                prop_assert_eq!(plain.adjusted_p <= 0.05, !plain.interval.contains(0.0));
            }
        }
    }
}
