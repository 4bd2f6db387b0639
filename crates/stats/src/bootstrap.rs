//! The bias-corrected and accelerated bootstrap interval of any statistic.

use crate::count::whole;
use crate::distribution::{normal_upper_quantile, normal_upper_tail};
use crate::error::{
    StatsError, require_any, require_count, require_sample, require_spread, significance,
};
use crate::generator::Generator;
use crate::hodges_lehmann::Interval;
use crate::permutation::Draws;
use crate::spread::sorted_quantile;

/// The BCa bootstrap interval of a statistic of one sample or several independent ones.
///
/// Each draw takes every sample anew, as many values with replacement. The interval follows the
/// statistic through any rising transformation; its level is attained only as samples grow, and
/// with 8 values a 95 % interval may hold the truth in 90 % of all cases: where a rank test or t
/// answers the question, they stand before it.
///
/// Shape: two values or more in each sample; `statistic` gets as many samples of the same sizes,
/// when the acceleration is estimated with one value less, and must be finite. `draws` counts at
/// least 2 / (1 - `confidence`); 9999 are usual. Units: those of the statistic.
///
/// # Errors
/// [`StatsError::Empty`], [`StatsError::NotFinite`] values or statistics, [`StatsError::TooFew`]
/// values or draws, [`StatsError::NoSpread`] where every draw gives the same,
/// [`StatsError::Confidence`].
///
/// # Source
/// Efron 1987; Efron & Tibshirani 1993, chapter 14. Oracle: SciPy's `bootstrap` on the same draws,
/// `oracle/families.py`.
///
/// # Examples
/// ```
/// use fwdlab_stats::{Draws, bca_interval, median};
/// let rates = [6.1, 6.3, 6.2, 6.4, 5.2, 6.0, 6.3, 6.2, 6.1, 6.5];
/// let draws = Draws { seed: 1, count: 9999 };
/// let interval = bca_interval(&[&rates], |samples| median(&samples[0]).unwrap(), draws, 0.95)?;
/// assert!(interval.contains(6.2) && interval.half_width() < 0.2);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn bca_interval(
    samples: &[&[f64]],
    statistic: impl Fn(&[Vec<f64>]) -> f64,
    draws: Draws,
    confidence: f64,
) -> Result<Interval, StatsError> {
    let alpha = significance(confidence)?;
    require_any("bootstrap, samples", samples.len())?;
    for (number, sample) in samples.iter().enumerate() {
        require_sample(&format!("bootstrap, sample {number}"), 2, sample)?;
    }
    let need = whole((2.0 / alpha).ceil());
    let have = draws.count as usize;
    require_count("bootstrap, draws", need, have)?;
    let mut evaluations = 0;
    let mut finite = |samples: &[Vec<f64>]| {
        let value = statistic(samples);
        evaluations += 1;
        if value.is_finite() {
            Ok(value)
        } else {
            Err(StatsError::NotFinite {
                subject: "bootstrap, statistic of the draws".to_owned(),
                index: evaluations - 1,
                value,
            })
        }
    };
    let mut drawn = drawn_statistics(samples, &mut finite, draws)?;
    drawn.sort_unstable_by(f64::total_cmp);
    require_spread("bootstrap", drawn[0] < drawn[drawn.len() - 1])?;
    let whole: Vec<Vec<f64>> = samples.iter().map(|sample| sample.to_vec()).collect();
    let observed = finite(&whole)?;
    let bias = bias_correction(&drawn, observed);
    let acceleration = acceleration(&whole, &mut finite)?;
    let end = |probability: f64| {
        let z = bias + normal_upper_quantile(1.0 - probability);
        let level = normal_upper_tail(-(bias + z / (1.0 - acceleration * z)));
        sorted_quantile(&drawn, level)
    };
    Ok(Interval {
        lower: end(alpha / 2.0),
        upper: end(1.0 - alpha / 2.0),
        nominal_confidence: confidence,
        attained_confidence: confidence,
    })
}

fn drawn_statistics(
    samples: &[&[f64]],
    statistic: &mut impl FnMut(&[Vec<f64>]) -> Result<f64, StatsError>,
    draws: Draws,
) -> Result<Vec<f64>, StatsError> {
    let mut generator = Generator::new(draws.seed);
    let mut resampled: Vec<Vec<f64>> = samples.iter().map(|sample| sample.to_vec()).collect();
    (0..draws.count)
        .map(|_| {
            for (resampled, sample) in resampled.iter_mut().zip(samples) {
                let bound = u32::try_from(sample.len()).expect("samples have fewer than 2^32");
                resampled.fill_with(|| sample[generator.below(bound) as usize]);
            }
            statistic(&resampled)
        })
        .collect()
}

/// The normal quantile of the share of draws below the observed statistic, half of those equal
/// to it; of a share of nothing or all, that of half a draw.
fn bias_correction(drawn: &[f64], observed: f64) -> f64 {
    // Statistics equal in exact arithmetic may differ in the last digits.
    let slack = 1e-12 * observed.abs();
    let below = drawn.partition_point(|value| *value < observed - slack) as f64;
    let not_above = drawn.partition_point(|value| *value <= observed + slack) as f64;
    let count = drawn.len() as f64;
    let share = (below + not_above) / 2.0 / count;
    -normal_upper_quantile(share.clamp(0.5 / count, 1.0 - 0.5 / count))
}

/// A sixth of the skewness of the statistic, from leaving out each value in turn.
fn acceleration(
    samples: &[Vec<f64>],
    statistic: &mut impl FnMut(&[Vec<f64>]) -> Result<f64, StatsError>,
) -> Result<f64, StatsError> {
    let (mut cubes, mut squares) = (0.0, 0.0);
    let mut reduced = samples.to_vec();
    for (number, sample) in samples.iter().enumerate() {
        let mut left_out = Vec::with_capacity(sample.len());
        for place in 0..sample.len() {
            reduced[number].clone_from(sample);
            reduced[number].remove(place);
            left_out.push(statistic(&reduced)?);
        }
        reduced[number].clone_from(sample);
        let count = sample.len() as f64;
        let mean = left_out.iter().sum::<f64>() / count;
        for value in left_out {
            let influence = (count - 1.0) * (mean - value) / count;
            cubes += influence.powi(3);
            squares += influence.powi(2);
        }
    }
    if squares > 0.0 {
        Ok(cubes / squares.powf(1.5) / 6.0)
    } else {
        Ok(0.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DRAWS: Draws = Draws {
        seed: 3,
        count: 999,
    };

    fn mean(samples: &[Vec<f64>]) -> f64 {
        samples[0].iter().sum::<f64>() / samples[0].len() as f64
    }

    #[test]
    fn bad_input_is_refused_by_name() {
        let refusal = |samples: &[&[f64]], draws: Draws, confidence: f64| {
            bca_interval(samples, mean, draws, confidence)
                .unwrap_err()
                .to_string()
        };
        let good: &[f64] = &[1.0, 2.0, 4.0];
        let few = Draws { count: 39, ..DRAWS };
        let refusals = [
            refusal(&[], DRAWS, 0.95),
            refusal(&[&[]], DRAWS, 0.95),
            refusal(&[good, &[1.0]], DRAWS, 0.95),
            refusal(&[&[1.0, f64::NAN]], DRAWS, 0.95),
            refusal(&[&[2.0; 5]], DRAWS, 0.95),
            refusal(&[good], few, 0.95),
            refusal(&[good], DRAWS, 0.0),
            bca_interval(&[good], |_| f64::NAN, DRAWS, 0.95)
                .unwrap_err()
                .to_string(),
        ];
        insta::assert_snapshot!(refusals.join("\n"), @r"
bootstrap, samples: no values (0 given); give at least one
bootstrap, sample 0: no values (0 given); give at least one
bootstrap, sample 1: too few values (1); give at least 2
bootstrap, sample 0: value 1 is not finite (NaN); give finite numbers only
bootstrap: the values do not vary (0 spread); give values that do, or a rank test
bootstrap, draws: too few values (39); give at least 40
confidence: not between 0.5 and 1 (0); give for example 0.95
bootstrap, statistic of the draws: value 0 is not finite (NaN); give finite numbers only
");
    }

    /// Normal data: the interval of the mean holds the truth about as often as it says.
    #[test]
    fn coverage_is_near_the_level() {
        let mut generator = Generator::new(5);
        let mut uniform = || (f64::from(generator.below(1 << 30)) + 0.5) / f64::from(1 << 30);
        let draws = |seed| Draws { seed, count: 399 };
        let held = (0..600)
            .filter(|seed| {
                let sample: Vec<f64> = (0..25).map(|_| normal_upper_quantile(uniform())).collect();
                bca_interval(&[&sample], mean, draws(*seed), 0.9)
                    .unwrap()
                    .contains(0.0)
            })
            .count();
        // 88 % is what 25 values give; three standard deviations to either side.
        assert!((504..564).contains(&held), "{held}");
    }

    proptest! {
        /// Whole numbers, whose sums tie exactly before and after.
        #[test]
        fn shift_scale_and_seed(
            values in prop::collection::vec((-50_i8..50).prop_map(f64::from), 4..20),
            shift in (-9_i8..9).prop_map(f64::from),
        ) {
            let Ok(plain) = bca_interval(&[&values], mean, DRAWS, 0.9) else {
                return Ok(());
            };
            prop_assert_eq!(plain, bca_interval(&[&values], mean, DRAWS, 0.9).unwrap());
            prop_assert!(plain.lower <= plain.upper);
            let moved: Vec<f64> = values.iter().map(|v| v * 4.0 + shift).collect();
            let moved = bca_interval(&[&moved], mean, DRAWS, 0.9).unwrap();
            prop_assert!((moved.lower - plain.lower * 4.0 - shift).abs() < 1e-6);
            prop_assert!((moved.upper - plain.upper * 4.0 - shift).abs() < 1e-6);
        }

        #[test]
        fn it_lies_within_the_values(
            values in prop::collection::vec(-50.0..50.0_f64, 4..20),
            other in prop::collection::vec(-50.0..50.0_f64, 4..20),
        ) {
            let difference = |samples: &[Vec<f64>]| mean(samples) - mean(&samples[1..]);
            let interval = bca_interval(&[&values, &other], difference, DRAWS, 0.95).unwrap();
            let swapped = |samples: &[Vec<f64>]| -difference(samples);
            let mirrored = bca_interval(&[&values, &other], swapped, DRAWS, 0.95).unwrap();
            prop_assert!((interval.lower + mirrored.upper).abs() < 1e-9);
            prop_assert!((interval.upper + mirrored.lower).abs() < 1e-9);
            prop_assert!(-100.0 <= interval.lower && interval.upper <= 100.0);
        }
    }
}
