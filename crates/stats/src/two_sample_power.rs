//! What two samples of independent observations could show, reckoned with their noise.
//!
//! For blocks, which pair the variants, see [`crate::smallest_effect`].

use statrs::function::gamma::ln_gamma;

use crate::detectable::DETECTION_POWER;
use crate::distribution::{normal_upper_tail, t_upper_quantile};
use crate::error::{StatsError, significance};

/// Where counting observations stops.
const OBSERVATIONS_MAX: usize = 1 << 20;

/// The probability that Student's t shows an effect of that size, whatever sign it has.
///
/// `observations` on each side of a normal distribution with that standard deviation, compared by the
/// two-sided t test with pooled variance; `compared` variants share the error probability, each at
/// Holm's first step. Welch's test needs a little more where the two sides scatter alike.
///
/// Shape: two observations or more. Units: those of the standard deviation.
///
/// # Errors
/// [`StatsError::Confidence`], [`StatsError::TooFew`].
///
/// # Source
/// The non-central t distribution, integrated over the variance that is found. Oracle: SciPy's `nct`,
/// `oracle/two_sample_power.py`.
///
/// # Examples
/// ```
/// use fwdlab_stats::two_sample_power;
/// // Five runs on each side see an effect of two standard deviations four times in five.
/// let power = two_sample_power(2.0, 1.0, 5, 1, 0.95)?;
/// assert!((power - 0.79).abs() < 0.005);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn two_sample_power(
    effect: f64,
    standard_deviation: f64,
    observations: usize,
    compared: usize,
    confidence: f64,
) -> Result<f64, StatsError> {
    let test = TwoSamples::new(observations, compared, confidence)?;
    Ok(test.power(effect.abs() / standard_deviation))
}

/// The smallest effect that so many observations on each side show with a probability of
/// [`DETECTION_POWER`].
///
/// Shape: two observations or more. Units: those of the standard deviation.
///
/// # Errors
/// As [`two_sample_power`].
pub fn two_sample_smallest_effect(
    standard_deviation: f64,
    observations: usize,
    compared: usize,
    confidence: f64,
) -> Result<f64, StatsError> {
    let test = TwoSamples::new(observations, compared, confidence)?;
    let mut above = 1.0;
    while test.power(above) < DETECTION_POWER {
        above *= 2.0;
    }
    let mut below = 0.0;
    // Each step gives a binary digit.
    for _ in 0..f64::MANTISSA_DIGITS {
        let middle = f64::midpoint(below, above);
        if test.power(middle) < DETECTION_POWER {
            below = middle;
        } else {
            above = middle;
        }
    }
    Ok(above * standard_deviation)
}

/// How many observations on each side show an effect of that size with a probability of
/// [`DETECTION_POWER`]; `None` beyond a million.
///
/// Units: `effect` and the standard deviation in the same.
///
/// # Errors
/// As [`two_sample_power`].
pub fn two_sample_observations(
    effect: f64,
    standard_deviation: f64,
    compared: usize,
    confidence: f64,
) -> Result<Option<usize>, StatsError> {
    let shows = |observations| {
        two_sample_power(
            effect,
            standard_deviation,
            observations,
            compared,
            confidence,
        )
        .map(|power| power >= DETECTION_POWER)
    };
    let mut enough = 2;
    while !shows(enough)? {
        enough *= 2;
        if enough > OBSERVATIONS_MAX {
            return Ok(None);
        }
    }
    let mut too_few = enough / 2;
    while enough - too_few > 1 {
        let middle = usize::midpoint(too_few, enough);
        if shows(middle)? {
            enough = middle;
        } else {
            too_few = middle;
        }
    }
    Ok(Some(enough))
}

/// A two-sided t test of two samples of one size.
struct TwoSamples {
    /// Effects in standard deviations times this are effects in standard errors.
    scale: f64,
    /// What t has to exceed.
    critical_t: f64,
    degrees_of_freedom: f64,
}

impl TwoSamples {
    fn new(observations: usize, compared: usize, confidence: f64) -> Result<Self, StatsError> {
        let tail = significance(confidence)? / compared.max(1) as f64 / 2.0;
        if observations < 2 {
            return Err(StatsError::TooFew {
                subject: "power of two samples, observations".to_owned(),
                need: 2,
                have: observations,
            });
        }
        let degrees_of_freedom = 2.0 * (observations as f64 - 1.0);
        Ok(Self {
            scale: (observations as f64 / 2.0).sqrt(),
            critical_t: t_upper_quantile(tail, degrees_of_freedom),
            degrees_of_freedom,
        })
    }

    /// The probability that t exceeds what it has to, on either side, for an effect in standard
    /// deviations.
    fn power(&self, effect: f64) -> f64 {
        /// Simpson's intervals: an even number, enough for ten digits.
        const STEPS: u32 = 1200;
        let shift = effect * self.scale;
        let freedom = self.degrees_of_freedom;
        // The standard deviation that is found, over the true one, lies between these.
        let reach = 11.0 / (2.0 * freedom).sqrt();
        let (from, to) = ((1.0 - reach).max(0.0), 1.0 + reach);
        let width = (to - from) / f64::from(STEPS);
        let ln_scale =
            std::f64::consts::LN_2 + freedom / 2.0 * (freedom / 2.0).ln() - ln_gamma(freedom / 2.0);
        let term = |step: u32| {
            let found = from + f64::from(step) * width;
            if found <= 0.0 {
                return 0.0;
            }
            let ln_density =
                ln_scale + (freedom - 1.0) * found.ln() - freedom * found * found / 2.0;
            let bound = self.critical_t * found;
            let shown = normal_upper_tail(bound - shift) + normal_upper_tail(bound + shift);
            ln_density.exp() * shown
        };
        let inner: f64 = (1..STEPS)
            .map(|step| term(step) * if step % 2 == 1 { 4.0 } else { 2.0 })
            .sum();
        ((term(0) + inner + term(STEPS)) * width / 3.0).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_effect_and_number_are_inverse_to_one_another() {
        for observations in [2, 5, 20] {
            for compared in [1, 4] {
                let effect =
                    two_sample_smallest_effect(0.01, observations, compared, 0.95).unwrap();
                let power = two_sample_power(effect, 0.01, observations, compared, 0.95).unwrap();
                assert!((power - DETECTION_POWER).abs() < 1e-9, "{power}");
                let needed = two_sample_observations(effect * 1.000_001, 0.01, compared, 0.95);
                assert_eq!(needed.unwrap(), Some(observations));
            }
        }
        assert_eq!(two_sample_observations(0.0, 1.0, 1, 0.95).unwrap(), None);
    }

    #[test]
    fn without_an_effect_the_power_is_the_error_probability() {
        let power = two_sample_power(0.0, 1.0, 5, 1, 0.95).unwrap();
        assert!((power - 0.05).abs() < 1e-9, "{power}");
        let shared = two_sample_power(0.0, 1.0, 5, 4, 0.95).unwrap();
        assert!((shared - 0.0125).abs() < 1e-9, "{shared}");
    }

    #[test]
    fn what_cannot_be_reckoned_is_refused() {
        assert_eq!(
            two_sample_power(1.0, 1.0, 1, 1, 0.95)
                .unwrap_err()
                .to_string(),
            "power of two samples, observations: too few values (1); give at least 2"
        );
        assert!(two_sample_power(1.0, 1.0, 5, 1, 95.0).is_err());
    }
}
