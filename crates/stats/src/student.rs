//! Mean, standard deviation and Student's t for one sample: what stands beside the default
//! test.

use crate::distribution::{t_upper_quantile, t_upper_tail};
use crate::error::{StatsError, require_finite, significance};
use crate::hodges_lehmann::Interval;
use crate::moments::Moments;
use serde::Serialize;

/// One sample's mean, standard deviation and what Student's t makes of them.
///
/// Units: those of the values.
///
/// # Source
/// Oracle: SciPy, `oracle/verdicts.py`.
///
/// # Examples
/// ```
/// use fwdlab_stats::StudentSample;
/// let sample = StudentSample::new(&[1.0, 2.0, 3.0, 4.0])?;
/// assert_eq!(sample.mean, 2.5);
/// assert!(sample.p_two_sided(0.0)? < 0.05);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StudentSample {
    /// The number of values.
    pub count: usize,
    /// Their arithmetic mean.
    pub mean: f64,
    /// Their standard deviation with n - 1; `None` for one value.
    pub standard_deviation: Option<f64>,
    /// The mean as a value near it and what is to be added: a mean of 1e7 has no digits left for a
    /// standard error of 1e-3.
    #[serde(skip)]
    parts_of_mean: (f64, f64),
}

impl StudentSample {
    /// Summarises `values`.
    ///
    /// # Errors
    /// [`StatsError::Empty`], [`StatsError::NotFinite`].
    pub fn new(values: &[f64]) -> Result<Self, StatsError> {
        require_finite("mean", values)?;
        let moments = Moments::around(values[0], values);
        let standard_deviation =
            (values.len() > 1).then(|| (moments.squares / (moments.count - 1.0)).sqrt());
        Ok(Self {
            count: values.len(),
            mean: values[0] + moments.offset,
            standard_deviation,
            parts_of_mean: (values[0], moments.offset),
        })
    }

    /// The interval of the mean at `confidence`.
    ///
    /// # Errors
    /// [`StatsError::Confidence`]; [`StatsError::TooFew`] for one value.
    pub fn interval(&self, confidence: f64) -> Result<Interval, StatsError> {
        let standard_error = self.standard_error()?;
        let tail = significance(confidence)? / 2.0;
        let reach = t_upper_quantile(tail, self.degrees_of_freedom()) * standard_error;
        Ok(Interval::around(self.mean, reach, confidence))
    }

    /// The two-sided p-value of the claim that the true mean is not `shift`.
    ///
    /// Values without any spread are infinitely far from any mean but their own: 0 or 1.
    ///
    /// # Errors
    /// [`StatsError::TooFew`] for one value.
    pub fn p_two_sided(&self, shift: f64) -> Result<f64, StatsError> {
        let standard_error = self.standard_error()?;
        let (near, rest) = self.parts_of_mean;
        let distance = ((near - shift) + rest).abs();
        if distance == 0.0 {
            return Ok(1.0);
        }
        if standard_error == 0.0 {
            return Ok(0.0);
        }
        Ok(2.0 * t_upper_tail(distance / standard_error, self.degrees_of_freedom()))
    }

    fn standard_error(&self) -> Result<f64, StatsError> {
        let standard_deviation = self.standard_deviation.ok_or(StatsError::TooFew {
            subject: "Student's t".to_owned(),
            need: 2,
            have: self.count,
        })?;
        Ok(standard_deviation / (self.count as f64).sqrt())
    }

    fn degrees_of_freedom(&self) -> f64 {
        (self.count - 1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_has_a_mean_and_nothing_else() {
        let sample = StudentSample::new(&[7.0]).unwrap();
        assert_eq!((sample.mean, sample.standard_deviation), (7.0, None));
        assert!(matches!(
            sample.interval(0.95),
            Err(StatsError::TooFew {
                need: 2,
                have: 1,
                ..
            })
        ));
        assert!(sample.p_two_sided(0.0).is_err());
    }

    #[test]
    fn constants_have_no_width() {
        let sample = StudentSample::new(&[7.0; 5]).unwrap();
        let interval = sample.interval(0.95).unwrap();
        assert_eq!((interval.lower, interval.upper), (7.0, 7.0));
        assert_eq!(sample.p_two_sided(7.0).unwrap(), 1.0);
        assert_eq!(sample.p_two_sided(6.0).unwrap(), 0.0);
    }

    #[test]
    fn a_large_mean_does_not_swallow_the_spread() {
        let values: Vec<f64> = [-1.0, 0.0, 1.0].iter().map(|v| v + 1e9).collect();
        let sample = StudentSample::new(&values).unwrap();
        assert_eq!(sample.standard_deviation, Some(1.0));
    }

    /// A million values around 1e7 say the same as those values around 0, which are exact in both places.
    #[test]
    fn a_large_mean_keeps_its_digits() {
        let around = |origin: f64| -> StudentSample {
            let value = |i: u32| origin + (f64::from(i % 4093 * 7919 % 4093) - 2046.0) / 1024.0;
            StudentSample::new(&(0..1_000_000).map(value).collect::<Vec<_>>()).unwrap()
        };
        let (near, far) = (around(0.0), around(1e7));
        for shift in [-1.0 / 128.0, 1.0 / 1024.0, 1.0 / 256.0] {
            let (expected, found) = (near.p_two_sided(shift), far.p_two_sided(1e7 + shift));
            let (expected, found) = (expected.unwrap(), found.unwrap());
            assert!(expected > 0.0 && expected < 0.5, "{expected}");
            assert!(
                ((found - expected) / expected).abs() < 1e-9,
                "{found} {expected}"
            );
        }
        let spread = |sample: &StudentSample| sample.standard_deviation.unwrap();
        assert!((spread(&far) / spread(&near) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn bad_input_is_refused() {
        assert!(StudentSample::new(&[]).is_err());
        assert!(StudentSample::new(&[1.0, f64::INFINITY]).is_err());
        assert!(
            StudentSample::new(&[1.0, 2.0])
                .unwrap()
                .interval(1.5)
                .is_err()
        );
    }
}
