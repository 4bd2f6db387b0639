//! Whether two things go together.

use crate::distribution::t_upper_quantile;
use crate::error::{StatsError, require_count, require_finite, significance};

/// Pearson's correlation of pairs; `None` where one side does not vary.
///
/// Shape: as many values on each side, two or more. Units: any.
///
/// # Errors
/// [`StatsError::Empty`], [`StatsError::NotFinite`], [`StatsError::TooFew`] where the sides differ in length
/// or have one value.
///
/// # Source
/// Pearson 1895; oracle: R's `cor`.
///
/// # Examples
/// ```
/// use fwdlab_stats::correlation;
/// let r = correlation(&[1.0, 2.0, 3.0, 4.0], &[2.0, 1.0, 4.0, 3.0])?.expect("both vary");
/// assert!((r - 0.6).abs() < 1e-12);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn correlation(one: &[f64], other: &[f64]) -> Result<Option<f64>, StatsError> {
    require_finite("correlation", one)?;
    require_finite("correlation", other)?;
    let need = one.len().max(other.len()).max(2);
    let have = one.len().min(other.len());
    require_count("correlation", need, have)?;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (a, b) = (mean(one), mean(other));
    let sum = |of: fn(f64, f64) -> f64| -> f64 {
        let pairs = one.iter().zip(other);
        pairs.map(|(x, y)| of(x - a, y - b)).sum()
    };
    // The root of each, so that no product of squares overflows.
    let scale = sum(|x, _| x * x).sqrt() * sum(|_, y| y * y).sqrt();
    Ok((scale > 0.0 && scale.is_finite()).then(|| (sum(|x, y| x * y) / scale).clamp(-1.0, 1.0)))
}

/// The size that a correlation of so many pairs exceeds by chance, either way, with a probability of 1 -
/// `confidence` where there is none.
///
/// # Errors
/// [`StatsError::Confidence`], [`StatsError::TooFew`] for fewer than three pairs.
///
/// # Source
/// Student 1908: the correlation of n pairs is t by sqrt(n - 2 + t^2), t of n - 2 degrees of freedom. Oracle:
/// tables of the product-moment correlation, 0.878 for five pairs at 95 %.
pub fn critical_correlation(pairs: usize, confidence: f64) -> Result<f64, StatsError> {
    let alpha = significance(confidence)?;
    require_count("correlation", 3, pairs)?;
    let freedom = pairs as f64 - 2.0;
    let t = t_upper_quantile(alpha / 2.0, freedom);
    Ok(t / (freedom + t * t).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_together_is_one() {
        let rising = [1.0, 2.0, 4.0];
        let of = |other: &[f64]| correlation(&rising, other).unwrap();
        assert!((of(&[3.0, 5.0, 9.0]).unwrap() - 1.0).abs() < 1e-12);
        assert!((of(&[-1.0, -2.0, -4.0]).unwrap() + 1.0).abs() < 1e-12);
        assert_eq!(of(&[7.0; 3]), None);
        assert!(correlation(&rising, &[1.0]).is_err() && correlation(&[1.0], &[1.0]).is_err());
        assert!(correlation(&[f64::NAN, 1.0], &[1.0, 2.0]).is_err());
    }

    #[test]
    fn critical_values_are_those_of_tables() {
        for (pairs, confidence, expected) in [
            (5, 0.95, 0.878),
            (10, 0.95, 0.632),
            (3, 0.95, 0.997),
            (20, 0.99, 0.561),
        ] {
            let critical = critical_correlation(pairs, confidence).unwrap();
            assert!((critical - expected).abs() < 5e-4, "{pairs}: {critical}");
        }
        assert!(critical_correlation(2, 0.95).is_err());
    }
}
