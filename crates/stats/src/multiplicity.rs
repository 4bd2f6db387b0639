//! Corrections for making several comparisons at once.

use crate::error::StatsError;

/// Holm's adjusted p-values, in the order given.
///
/// Rejecting where the adjusted p-value is at most alpha makes one or more false rejections
/// with probability at most alpha, however the comparisons depend on each other (they do: they
/// share a baseline).
///
/// Shape: any number, none included.
///
/// # Errors
/// [`StatsError::NotAProbability`].
///
/// # Source
/// Holm 1979. Oracle: statsmodels, `oracle/verdicts.py`.
///
/// # Examples
/// ```
/// use fwdlab_stats::holm_adjusted;
/// assert_eq!(holm_adjusted(&[0.25, 0.0625])?, [0.25, 0.125]);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn holm_adjusted(p_values: &[f64]) -> Result<Vec<f64>, StatsError> {
    if let Some(index) = p_values.iter().position(|p| !(0.0..=1.0).contains(p)) {
        return Err(StatsError::NotAProbability {
            index,
            value: p_values[index],
        });
    }
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (rank, index) in order.into_iter().enumerate() {
        let remaining = (p_values.len() - rank) as f64;
        largest = largest.max((p_values[index] * remaining).min(1.0));
        adjusted[index] = largest;
    }
    Ok(adjusted)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_later_value_is_never_below_an_earlier_one() {
        let adjusted = holm_adjusted(&[0.25, 0.125, 0.1875]).unwrap();
        assert_eq!(adjusted, [0.375, 0.375, 0.375]);
    }

    #[test]
    fn nothing_and_nonsense() {
        assert_eq!(holm_adjusted(&[]).unwrap(), Vec::<f64>::new());
        assert!(holm_adjusted(&[0.5, f64::NAN]).is_err());
        assert!(holm_adjusted(&[1.5]).is_err());
    }

    proptest! {
        /// Holm by its definition: step down from the smallest while p_(i) <= alpha / (k - i).
        #[test]
        fn adjusted_values_reject_what_the_steps_reject(
            p_values in prop::collection::vec(0.0..=1.0_f64, 1..12),
            alpha in 0.001..0.5_f64,
        ) {
            let adjusted = holm_adjusted(&p_values).unwrap();
            let mut sorted = p_values.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            let k = sorted.len();
            let rejections = (0..k)
                .take_while(|i| sorted[*i] * (k - i) as f64 <= alpha)
                .count();
            prop_assert_eq!(adjusted.iter().filter(|p| **p <= alpha).count(), rejections);
            for (p, raw) in adjusted.iter().zip(&p_values) {
                prop_assert!(p >= raw && *p <= 1.0);
            }
        }
    }
}
