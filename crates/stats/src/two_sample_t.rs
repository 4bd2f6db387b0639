//! Welch's and the pooled t test of two independent samples.

use serde::Serialize;

use crate::distribution::{t_upper_quantile, t_upper_tail};
use crate::error::{StatsError, require_held, require_sample, require_spread, significance};
use crate::hodges_lehmann::Interval;
use crate::moments::Moments;
use crate::shift_test::ShiftTest;

/// How far the mean of a sample lies above that of a reference, by Student's t.
///
/// Units: those of the values; of logarithms (see [`crate::logarithms`]) the difference is a log
/// ratio.
///
/// # Source
/// Student 1908, Welch 1947. Oracle: exact fractions and SciPy, `oracle/two_samples.py`, to 1e-9
/// relative down to p = 1e-12, a mean of 1e7 with deviation 1 and a million values included.
///
/// # Examples
/// ```
/// use fwdlab_stats::{ShiftTest as _, TwoSampleT};
/// let welch = TwoSampleT::welch(&[6.1, 6.3, 6.2, 6.4], &[5.4, 5.9, 5.5, 5.8])?;
/// assert!((welch.difference - 0.6).abs() < 1e-12);
/// assert!(welch.p_two_sided(0.0) < 0.01);
/// assert!(welch.interval(0.95)?.lower > 0.2);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TwoSampleT {
    /// The mean of the sample less that of the reference.
    pub difference: f64,
    /// The standard error of the difference, positive.
    pub standard_error: f64,
    /// Whole for the pooled test, seldom for Welch's.
    pub degrees_of_freedom: f64,
}

impl TwoSampleT {
    /// Welch's test, which lets each sample have a variance of its own.
    ///
    /// Shape: two values or more a side, any order.
    ///
    /// # Errors
    /// [`StatsError::Empty`], [`StatsError::NotFinite`], [`StatsError::TooFew`],
    /// [`StatsError::NoSpread`] where neither side varies, [`StatsError::TooLarge`].
    pub fn welch(sample: &[f64], reference: &[f64]) -> Result<Self, StatsError> {
        Self::new("Welch's t", sample, reference, |first, second| {
            let (a, b) = (first.variance_of_mean(), second.variance_of_mean());
            // Shares of the variance, so that no square of it overflows or vanishes.
            let share = a / (a + b);
            let degrees_of_freedom = 1.0
                / (share * share / (first.count - 1.0)
                    + (1.0 - share) * (1.0 - share) / (second.count - 1.0));
            (a + b, degrees_of_freedom)
        })
    }

    /// Student's test, which takes both samples to have the same variance: ministat's.
    ///
    /// Shape: two values or more a side, any order.
    ///
    /// # Errors
    /// As [`TwoSampleT::welch`].
    pub fn pooled(sample: &[f64], reference: &[f64]) -> Result<Self, StatsError> {
        Self::new("pooled t", sample, reference, |first, second| {
            let degrees_of_freedom = first.count + second.count - 2.0;
            let variance = (first.squares + second.squares) / degrees_of_freedom;
            (
                variance * (1.0 / first.count + 1.0 / second.count),
                degrees_of_freedom,
            )
        })
    }

    /// The weighted sum of the samples' means, each with a variance of its own, as if it were a
    /// difference of two: of weights 1 and -1 it is.
    ///
    /// Shape: weights that sum up to zero; two values or more in each sample of a weight other than
    /// zero.
    ///
    /// # Source
    /// Satterthwaite 1946.
    pub(crate) fn welch_contrast(
        test: &str,
        samples: &[(f64, &[f64])],
    ) -> Result<Self, StatsError> {
        let (mut estimate, mut parts) = (0.0, Vec::with_capacity(samples.len()));
        for &(weight, values) in samples.iter().filter(|(weight, _)| *weight != 0.0) {
            require_sample(test, 2, values)?;
            let moments = Moments::around(values[0], values);
            estimate += weight * (values[0] + moments.offset);
            parts.push((
                weight * weight * moments.variance_of_mean(),
                moments.count - 1.0,
            ));
        }
        let variance: f64 = parts.iter().map(|(part, _)| part).sum();
        require_held(test, variance.is_finite() && estimate.is_finite())?;
        require_spread(test, variance != 0.0)?;
        let inverse: f64 = parts
            .iter()
            .map(|(part, freedom)| (part / variance).powi(2) / freedom)
            .sum();
        Ok(Self {
            difference: estimate,
            standard_error: variance.sqrt(),
            degrees_of_freedom: 1.0 / inverse,
        })
    }

    fn new(
        test: &str,
        sample: &[f64],
        reference: &[f64],
        variance_and_freedom: impl Fn(&Moments, &Moments) -> (f64, f64),
    ) -> Result<Self, StatsError> {
        require_sample(&format!("{test}, sample"), 2, sample)?;
        require_sample(&format!("{test}, reference"), 2, reference)?;
        let first = Moments::around(sample[0], sample);
        let second = Moments::around(reference[0], reference);
        let (variance, degrees_of_freedom) = variance_and_freedom(&first, &second);
        let difference = (sample[0] - reference[0]) + (first.offset - second.offset);
        require_held(test, variance.is_finite() && difference.is_finite())?;
        require_spread(test, variance != 0.0)?;
        Ok(Self {
            difference,
            standard_error: variance.sqrt(),
            degrees_of_freedom,
        })
    }

    /// The interval of the difference at `confidence`.
    ///
    /// # Errors
    /// [`StatsError::Confidence`].
    pub fn interval(&self, confidence: f64) -> Result<Interval, StatsError> {
        let quantile = t_upper_quantile(significance(confidence)? / 2.0, self.degrees_of_freedom);
        let reach = quantile * self.standard_error;
        Ok(Interval::around(self.difference, reach, confidence))
    }
}

impl ShiftTest for TwoSampleT {
    fn p_greater(&self, shift: f64) -> f64 {
        let t = (self.difference - shift) / self.standard_error;
        t_upper_tail(t, self.degrees_of_freedom)
    }

    fn p_less(&self, shift: f64) -> f64 {
        let t = (shift - self.difference) / self.standard_error;
        t_upper_tail(t, self.degrees_of_freedom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bad_input_is_refused_by_name() {
        let refusal = |a: &[f64], b: &[f64]| TwoSampleT::welch(a, b).unwrap_err().to_string();
        let good = [1.0, 2.0];
        let refusals = [
            refusal(&[], &good),
            refusal(&good, &[1.0]),
            refusal(&good, &[1.0, f64::INFINITY]),
            refusal(&[f64::NAN, 1.0], &good),
            refusal(&[0.1; 3], &[0.3; 7]),
            refusal(&[f64::MAX, f64::MIN], &good),
            refusal(&[1e200, -1e200], &good),
            TwoSampleT::pooled(&[1.0; 3], &[1.0; 3])
                .unwrap_err()
                .to_string(),
            TwoSampleT::welch(&good, &good)
                .unwrap()
                .interval(95.0)
                .unwrap_err()
                .to_string(),
        ];
        insta::assert_snapshot!(refusals.join("\n"), @r"
Welch's t, sample: no values (0 given); give at least one
Welch's t, reference: too few values (1); give at least 2
Welch's t, reference: value 1 is not finite (inf); give finite numbers only
Welch's t, sample: value 0 is not finite (NaN); give finite numbers only
Welch's t: the values do not vary (0 spread); give values that do, or a rank test
Welch's t: values too large to reckon with; give them in a larger unit
Welch's t: values too large to reckon with; give them in a larger unit
pooled t: the values do not vary (0 spread); give values that do, or a rank test
confidence: not between 0.5 and 1 (95); give for example 0.95
");
    }

    #[test]
    fn one_side_may_be_constant() {
        let welch = TwoSampleT::welch(&[1.0, 2.0, 4.0], &[3.0; 5]).unwrap();
        assert!((welch.degrees_of_freedom - 2.0).abs() < 1e-12);
    }

    fn samples() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(-50.0..50.0_f64, 2..25)
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs().max(1e-300)
    }

    type Test = fn(&[f64], &[f64]) -> Result<TwoSampleT, StatsError>;

    fn tests() -> impl Strategy<Value = Test> {
        prop::sample::select(vec![TwoSampleT::welch as Test, TwoSampleT::pooled])
    }

    proptest! {
        #[test]
        fn sides_swap_shift_and_scale(
            test in tests(),
            a in samples(),
            b in samples(),
            scale in prop::sample::select(vec![0.25, 2.0, 1024.0]),
        ) {
            let plain = test(&a, &b).unwrap();
            let swapped = test(&b, &a).unwrap();
            prop_assert!(close(plain.p_greater(0.5), swapped.p_less(-0.5)));
            prop_assert!(close(plain.p_two_sided(0.5), swapped.p_two_sided(-0.5)));
            let moved = |values: &[f64]| -> Vec<f64> {
                values.iter().map(|v| v * scale + 1024.0).collect()
            };
            let moved = test(&moved(&a), &moved(&b)).unwrap();
            prop_assert!((moved.difference / scale - plain.difference).abs() < 1e-9);
            let (ours, theirs) = (plain.p_two_sided(0.0), moved.p_two_sided(0.0));
            prop_assert!((ours - theirs).abs() < 1e-8, "{} {}", ours, theirs);
        }

        #[test]
        fn interval_and_test_agree(
            test in tests(),
            a in samples(),
            b in samples(),
            shift in -30.0..30.0_f64,
            confidence in prop::sample::select(vec![0.8, 0.9, 0.95, 0.99]),
        ) {
            let test = test(&a, &b).unwrap();
            let interval = test.interval(confidence).unwrap();
            let alpha = significance(confidence).unwrap();
            prop_assert_eq!(test.p_two_sided(shift) <= alpha, !interval.contains(shift));
            for end in [interval.lower, interval.upper] {
                prop_assert!(close(test.p_two_sided(end), alpha));
            }
            let size = test.interval(1.0 - 2.0 * alpha);
            if let Ok(size) = size {
                let inside = shift.abs() - size.lower.abs().max(size.upper.abs());
                prop_assert_eq!(test.p_inside(-shift.abs(), shift.abs()) <= alpha, inside >= 0.0);
            }
        }
    }
}
