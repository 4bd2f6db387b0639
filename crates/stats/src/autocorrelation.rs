//! How much a slice has in common with the next one of the same variant.

use crate::error::StatsError;

/// The correlation of each value with the next one of its series, over all series together.
///
/// 0 where the order of a series says nothing: the usual estimate lies 1 / n too low there, for a
/// series of n values around its own mean, and that is added. 1 where values hardly change from one to
/// the next while the series wanders far.
///
/// Shape: any number of series of any length, in the order of time; `None` marks a value that is
/// missing. Series of fewer than three values say nothing. Units: any; only differences count.
///
/// `None` where no series says anything, or nothing varies.
///
/// # Errors
/// [`StatsError::NotFinite`].
///
/// # Source
/// Box, Jenkins & Reinsel 1994, "Time Series Analysis", 2.1.5. That the mean over all orders of a series
/// is -1 / n is by symmetry: all products of two values around their mean add up to minus the squares.
/// Oracle: `oracle/checks.py`.
///
/// # Examples
/// ```
/// use fwdlab_stats::lag_1_autocorrelation;
/// let series = [1.0, 1.2, 1.3, 1.1, 0.8, 0.7, 0.9].map(Some).to_vec();
/// let correlation = lag_1_autocorrelation(&[series])?.expect("seven values that vary");
/// assert!((correlation - 0.714).abs() < 0.001, "{correlation}");
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn lag_1_autocorrelation(series: &[Vec<Option<f64>>]) -> Result<Option<f64>, StatsError> {
    let (mut products, mut squares, mut expected) = (0.0, 0.0, 0.0);
    for (number, series) in series.iter().enumerate() {
        let values: Vec<f64> = series.iter().copied().flatten().collect();
        if let Some(index) = values.iter().position(|value| !value.is_finite()) {
            return Err(StatsError::NotFinite {
                subject: format!("autocorrelation, series {number}"),
                index,
                value: values[index],
            });
        }
        if values.len() < 3 {
            continue;
        }
        let count = values.len() as f64;
        let origin = values[0];
        let mean = origin + values.iter().map(|value| value - origin).sum::<f64>() / count;
        let own: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let neighbours = series
            .windows(2)
            .filter_map(|pair| pair[0].zip(pair[1]))
            .map(|(value, next)| (value - mean) * (next - mean));
        let mut pairs = 0.0;
        for product in neighbours {
            products += product;
            pairs += 1.0;
        }
        squares += own;
        expected -= own * pairs / (count * (count - 1.0));
    }
    let correlation = (products - expected) / squares;
    Ok(correlation.is_finite().then_some(correlation))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(series: &[&[f64]]) -> Option<f64> {
        let series: Vec<Vec<Option<f64>>> = series
            .iter()
            .map(|series| series.iter().copied().map(Some).collect())
            .collect();
        lag_1_autocorrelation(&series).unwrap()
    }

    #[test]
    fn too_little_to_tell() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[&[], &[1.0], &[1.0, 2.0]]), None);
        assert_eq!(of(&[&[3.0; 9]]), None);
        let gaps = vec![vec![None; 5], vec![Some(1.0), None, Some(2.0)]];
        assert_eq!(lag_1_autocorrelation(&gaps).unwrap(), None);
        let error = lag_1_autocorrelation(&[vec![Some(f64::INFINITY)]]).unwrap_err();
        assert!(error.to_string().contains("series 0"), "{error}");
    }

    #[test]
    fn a_wave_is_positive_and_an_alternation_negative() {
        assert!(of(&[&[1.0, 2.0, 3.0, 4.0, 3.0, 2.0, 1.0]]).unwrap() > 0.4);
        assert!(of(&[&[1.0, -1.0, 1.0, -1.0, 1.0, -1.0]]).unwrap() < -0.5);
    }

    proptest! {
        #[test]
        fn shift_scale_and_order_of_series(
            series in prop::collection::vec(prop::collection::vec(-1.0..1.0_f64, 0..9), 0..5),
            shift in -1e3..1e3_f64,
            scale in 0.1..10.0_f64,
        ) {
            let moved: Vec<Vec<f64>> = series
                .iter()
                .rev()
                .map(|series| series.iter().map(|value| value * scale + shift).collect())
                .collect();
            let slices = |series: &[Vec<f64>]| {
                of(&series.iter().map(Vec::as_slice).collect::<Vec<_>>())
            };
            let (plain, moved) = (slices(&series), slices(&moved));
            if let Some((plain, moved)) = plain.zip(moved) {
                prop_assert!((plain - moved).abs() < 1e-6, "{} {}", plain, moved);
            }
        }
    }
}
