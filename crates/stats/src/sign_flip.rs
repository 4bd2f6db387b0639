//! The sign-flip (one-sample permutation) test of a mean, exact.

use crate::error::{StatsError, require_finite};

/// The largest number of values whose sign patterns are all tried: a million patterns.
pub const SIGN_FLIP_EXACT_MAX: usize = 20;

/// The two-sided p-value of the claim that the values do not lie symmetrically around `shift`:
/// the share of all 2^n sign patterns whose sum is at least as far from zero as the observed
/// one.
///
/// Shape: at most [`SIGN_FLIP_EXACT_MAX`] values; `None` beyond. Units: those of the values.
///
/// # Errors
/// [`StatsError::Empty`], [`StatsError::NotFinite`].
///
/// # Source
/// Fisher 1935. Oracle: SciPy's `permutation_test`, `oracle/verdicts.py`.
///
/// # Examples
/// ```
/// use fwdlab_stats::sign_flip_p;
/// assert_eq!(sign_flip_p(&[0.9, 1.4, 0.2, 1.1], 0.0)?, Some(2.0 / 16.0));
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn sign_flip_p(values: &[f64], shift: f64) -> Result<Option<f64>, StatsError> {
    require_finite("sign-flip test", values)?;
    if values.len() > SIGN_FLIP_EXACT_MAX {
        return Ok(None);
    }
    let differences: Vec<f64> = values.iter().map(|value| value - shift).collect();
    let observed = differences.iter().sum::<f64>().abs();
    let magnitude = differences.iter().map(|value| value.abs()).sum::<f64>();
    // Patterns with the same sum in exact arithmetic may differ in the last digits.
    let threshold = observed - magnitude * 1e-12;
    // A pattern and its mirror image are equally far from zero, so one sign can stay.
    let (first, rest) = differences
        .split_first()
        .expect("an empty sample has been refused");
    let extreme = count_extreme(*first, rest, threshold);
    let patterns = 1_u32 << rest.len();
    Ok(Some(f64::from(extreme) / f64::from(patterns)))
}

/// Counts the sign patterns of `rest` that carry `sum` to `threshold` or beyond, either way.
fn count_extreme(sum: f64, rest: &[f64], threshold: f64) -> u32 {
    match rest.split_first() {
        None => u32::from(sum.abs() >= threshold),
        Some((value, rest)) => {
            count_extreme(sum + value, rest, threshold)
                + count_extreme(sum - value, rest, threshold)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smallest_p_is_two_to_the_one_minus_n() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(sign_flip_p(&values, 0.0).unwrap(), Some(2_f64.powi(-9)));
        let mirrored: Vec<f64> = values.iter().map(|v| -v).collect();
        assert_eq!(sign_flip_p(&mirrored, 0.0).unwrap(), Some(2_f64.powi(-9)));
    }

    #[test]
    fn values_around_the_shift_show_nothing() {
        assert_eq!(sign_flip_p(&[0.9, 1.1], 1.0).unwrap(), Some(1.0));
        assert_eq!(sign_flip_p(&[1.0; 4], 1.0).unwrap(), Some(1.0));
    }

    #[test]
    fn sums_equal_but_for_rounding_count_as_equal() {
        // 0.1 + 0.2 is not 0.3 in doubles: every pattern of these sums to 0 or beyond.
        assert_eq!(sign_flip_p(&[0.1, 0.2, -0.3], 0.0).unwrap(), Some(1.0));
    }

    #[test]
    fn sizes_out_of_range() {
        assert!(sign_flip_p(&[], 0.0).is_err());
        assert!(sign_flip_p(&[f64::NAN], 0.0).is_err());
        assert_eq!(sign_flip_p(&[1.0], 0.0).unwrap(), Some(1.0));
        assert_eq!(sign_flip_p(&[1.0; 21], 0.0).unwrap(), None);
    }
}
