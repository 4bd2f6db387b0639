//! Whether observations rise or fall in the order in which they stand.

use serde::Serialize;

use crate::distribution::normal_upper_tail;
use crate::error::{StatsError, require_count, require_finite};
use crate::spread::median;
use crate::warning::Warning;

/// The p-value from which on [`trend_warning`] warns: one set of observations in fifty by chance.
pub const TREND_LEVEL: f64 = 0.02;

/// The most observations whose orders are counted: there are 33! of them, 2^123.
const EXACT_OBSERVATIONS_MAX: usize = 33;

/// A rise or a fall over the order of the observations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Trend {
    /// Kendall's tau b against the order: 1 where they only rise, -1 where they only fall.
    pub tau: f64,
    /// The probability of one as clear, either way, if all orders are equally likely.
    pub p: f64,
}

/// The Mann-Kendall test of a trend.
///
/// Exact up to 33 observations, ties counted in; beyond, the normal approximation with continuity
/// correction, which takes a time of n log n.
///
/// Shape: two observations or more, in the order of time. Units: any.
///
/// # Errors
/// [`StatsError::Empty`], [`StatsError::NotFinite`], [`StatsError::TooFew`].
///
/// # Source
/// Mann 1945; Kendall 1970, "Rank Correlation Methods". The numbers of orders with so many
/// inversions, ties or not, are the coefficients of a Gaussian multinomial (MacMahon 1913). Oracle:
/// SciPy's `kendalltau` and complete enumeration, `oracle/checks.py`.
///
/// # Examples
/// ```
/// use fwdlab_stats::trend;
/// let rising = trend(&[5.1, 5.2, 5.4, 5.5, 5.8])?;
/// assert!((rising.tau - 1.0).abs() < 1e-12 && rising.p == 2.0 / 120.0);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn trend(observations: &[f64]) -> Result<Trend, StatsError> {
    require_finite("trend", observations)?;
    let count = observations.len();
    require_count("trend", 2, count)?;
    let ties = tie_lengths(observations);
    let pairs = |count: u64| count * (count - 1) / 2;
    let all_pairs = pairs(count as u64);
    let untied = all_pairs - ties.iter().map(|length| pairs(*length)).sum::<u64>();
    if untied == 0 {
        return Ok(Trend { tau: 0.0, p: 1.0 });
    }
    let falling = inversions(&mut observations.to_vec());
    let rising = untied - falling;
    let fewer = falling.min(rising);
    let p = if count <= EXACT_OBSERVATIONS_MAX {
        exact_p(&ties, untied, fewer)
    } else {
        let squares = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
        let of_ties: f64 = ties.iter().map(|length| squares(*length as f64)).sum();
        let standard_deviation = ((squares(count as f64) - of_ties) / 18.0).sqrt();
        let score = (untied - 2 * fewer) as f64;
        (2.0 * normal_upper_tail((score - 1.0).max(0.0) / standard_deviation)).min(1.0)
    };
    let score = rising as f64 - falling as f64;
    Ok(Trend {
        tau: score / (untied as f64).sqrt() / (all_pairs as f64).sqrt(),
        p,
    })
}

/// W111 where a set of observations has a trend; none for fewer than two, or without one.
///
/// # Errors
/// [`StatsError::NotFinite`].
pub fn trend_warning(name: &str, observations: &[f64]) -> Result<Option<Warning>, StatsError> {
    if observations.len() < 2 {
        return Ok(None);
    }
    require_finite(name, observations)?;
    let trend = trend(observations)?;
    let third = observations.len().div_ceil(3);
    let of = |part: &[f64]| median(part).unwrap_or(f64::NAN);
    Ok((trend.p <= TREND_LEVEL).then(|| Warning::Trend {
        observations: name.to_owned(),
        have: observations.len(),
        first: of(&observations[..third]),
        last: of(&observations[observations.len() - third..]),
        trend,
    }))
}

/// How many observations share each value.
fn tie_lengths(observations: &[f64]) -> Vec<u64> {
    let mut sorted = observations.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    // 0 and -0 are one value, so bits do not tell.
    sorted
        .chunk_by(|one, next| one >= next)
        .map(|tied| tied.len() as u64)
        .collect()
}

/// How many pairs stand with the larger value first; sorts the values.
fn inversions(values: &mut [f64]) -> u64 {
    let mut spare = values.to_vec();
    let count = values.len();
    let mut total = 0;
    let mut width = 1;
    while width < count {
        for start in (0..count).step_by(2 * width) {
            let middle = (start + width).min(count);
            let end = (start + 2 * width).min(count);
            let (mut left, mut right) = (start, middle);
            for place in &mut spare[start..end] {
                if right == end || (left < middle && values[left] <= values[right]) {
                    *place = values[left];
                    left += 1;
                } else {
                    // It stands behind all that are left of the first half, which are larger.
                    total += (middle - left) as u64;
                    *place = values[right];
                    right += 1;
                }
            }
        }
        values.copy_from_slice(&spare);
        width *= 2;
    }
    total
}

/// The share of all orders with `fewer` or fewer inversions, or as few rises.
fn exact_p(ties: &[u64], untied: u64, fewer: u64) -> f64 {
    if 2 * fewer >= untied {
        return 1.0;
    }
    let orders = orders_by_inversions(ties, untied);
    let at_most: u128 = orders
        .iter()
        .take(usize::try_from(fewer).map_or(usize::MAX, |fewer| fewer + 1))
        .sum();
    // Both numbers are whole, and as many orders have so few rises.
    2.0 * at_most as f64 / orders.iter().sum::<u128>() as f64
}

/// Entry i: how many orders of values with such ties have i inversions.
///
/// The product of 1 - q^j for all j up to n, over the same product for each tie. All of it is done
/// modulo 2^128, so that what is larger, or negative, on the way does no harm: the numbers asked for
/// are none of that.
fn orders_by_inversions(ties: &[u64], untied: u64) -> Vec<u128> {
    let length = usize::try_from(untied).map_or(0, |untied| untied + 1);
    let mut series = vec![0_u128; length];
    series[0] = 1;
    let degree = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).min(length);
    for factor in 1..=ties.iter().sum::<u64>() {
        let step = degree(factor);
        for index in (step..length).rev() {
            series[index] = series[index].wrapping_sub(series[index - step]);
        }
    }
    for factor in ties.iter().flat_map(|tied| 1..=*tied) {
        let step = degree(factor);
        for index in step..length {
            series[index] = series[index].wrapping_add(series[index - step]);
        }
    }
    series
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn inversions_are_pairs_with_the_larger_first() {
        assert_eq!(inversions(&mut [3.0, 1.0, 2.0]), 2);
        assert_eq!(inversions(&mut [1.0, 1.0, 1.0]), 0);
        assert_eq!(inversions(&mut []), 0);
        let mut falling: Vec<f64> = (0..1000).map(|i| -f64::from(i)).collect();
        assert_eq!(inversions(&mut falling), 999 * 500);
        assert!(falling.is_sorted());
    }

    #[test]
    fn all_orders_are_counted() {
        // 4! = 24 orders: 1, 3, 5, 6, 5, 3, 1.
        assert_eq!(orders_by_inversions(&[1; 4], 6), [1, 3, 5, 6, 5, 3, 1]);
        // 1 1 2: 112, 121, 211.
        assert_eq!(orders_by_inversions(&[2, 1], 2), [1, 1, 1]);
        // The largest number of orders that fits.
        let all: u128 = orders_by_inversions(&[1; 33], 33 * 16).iter().sum();
        assert_eq!(all, (1..=33).product::<u128>());
    }

    #[test]
    fn constants_have_no_trend_and_one_value_is_too_few() {
        assert_eq!(trend(&[1.0; 50]).unwrap(), Trend { tau: 0.0, p: 1.0 });
        assert_eq!(trend(&[0.0, -0.0]).unwrap().p, 1.0);
        assert!(matches!(trend(&[1.0]), Err(StatsError::TooFew { .. })));
        assert!(matches!(trend(&[]), Err(StatsError::Empty { .. })));
        assert!(trend(&[1.0, f64::NAN]).is_err());
        assert_eq!(trend_warning("a", &[]).unwrap(), None);
        let error = trend_warning("a.pps", &[1.0, f64::NAN]).unwrap_err();
        assert!(error.to_string().starts_with("a.pps: value 1"), "{error}");
    }

    #[test]
    fn five_that_only_rise_are_warned_of_and_four_are_not() {
        let warned = |values: &[f64]| trend_warning("a", values).unwrap().is_some();
        assert!(warned(&[1.0, 2.0, 3.0, 4.0, 5.0]));
        assert!(warned(&[5.0, 4.0, 3.0, 2.0, 1.0]));
        assert!(!warned(&[1.0, 2.0, 3.0, 4.0]));
        assert!(!warned(&[1.0, 2.0, 3.0, 5.0, 4.0]));
    }

    #[test]
    fn the_approximation_joins_the_exact_distribution() {
        // 33 values with one trend, and the same with a 34th that has none of its own.
        let values: Vec<f64> = (0..33)
            .map(|i| f64::from(i * 7 % 33) + f64::from(i))
            .collect();
        let exact = trend(&values).unwrap();
        let mut longer = values.clone();
        longer.insert(16, 24.5);
        let approximate = trend(&longer).unwrap();
        assert!(
            (exact.p / approximate.p).ln().abs() < 0.7,
            "{exact:?} {approximate:?}"
        );
    }

    #[test]
    fn a_million_values() {
        let values: Vec<f64> = (0..1_000_000_u32)
            .map(|i| f64::from(i.wrapping_mul(2_654_435_761) >> 12))
            .collect();
        let found = trend(&values).unwrap();
        assert!(found.tau.abs() < 0.01 && found.p > 1e-6, "{found:?}");
        assert_eq!(trend(&vec![2.0; 1_000_000]).unwrap().p, 1.0);
    }

    proptest! {
        #[test]
        fn only_the_order_of_values_counts(
            values in prop::collection::vec(-20_i32..20, 2..50),
            shift in -1000_i32..1000,
        ) {
            let of = |value: &dyn Fn(f64) -> f64| -> Trend {
                let values: Vec<f64> = values.iter().map(|v| value(f64::from(*v))).collect();
                trend(&values).unwrap()
            };
            let plain = of(&|v| v);
            prop_assert!((0.0..=1.0).contains(&plain.p));
            prop_assert!(plain.tau.abs() <= 1.0 + 1e-12);
            prop_assert_eq!(of(&|v| (v / 10.0).exp() * 3.0 + f64::from(shift)), plain);
            let mirrored = of(&|v| -v);
            prop_assert_eq!((mirrored.tau, mirrored.p), (-plain.tau, plain.p));
        }

        #[test]
        fn any_numbers_are_tested_or_refused(values in prop::collection::vec(prop::num::f64::ANY, 0..40)) {
            if let Ok(found) = trend(&values) {
                prop_assert!((0.0..=1.0).contains(&found.p));
            }
        }
    }
}
