//! Wilcoxon's signed-rank test, written so that it inverts exactly into the Hodges-Lehmann
//! interval.
//!
//! The statistic against a shift theta is the number of Walsh averages (means of all pairs,
//! each value also paired with itself) above theta, which for continuous data is Wilcoxon's
//! rank sum of the positive differences. Two conventions keep test, estimate and interval in
//! agreement for *all* data:
//!
//! - A Walsh average equal to theta never counts as evidence: "greater" counts the averages
//!   strictly above theta, "less" those strictly below.
//! - The reference distribution is always the one without ties.
//!
//! Both are conservative: break all ties with infinitesimal symmetric noise, and the counts can
//! only grow while their distribution becomes the tie-free one (Noether 1967). So the error
//! rate is at most the stated level with ties and zeros, exactly attained without.

use crate::error::{StatsError, require_finite};
use crate::hodges_lehmann::{PairValues as _, WalshAverages};
use crate::rank_null::RankNull;
use crate::shift_test::ShiftTest;

/// The largest number of blocks with an exact null distribution; above it the normal
/// approximation with continuity correction takes over.
///
/// At 201 blocks its one-sided p-values are within 0.3 % of the exact ones down to 0.05, and too
/// large by 1.2 % of themselves at 0.01 and by 13 % at 0.0001: in the tails it errs to the safe
/// side.
pub const EXACT_BLOCKS_MAX: usize = 200;

/// The distribution of the signed-rank statistic of `blocks` independent effects when the true
/// shift is the tested one.
///
/// # Source
/// Wilcoxon 1945; the recursion over ranks by dynamic programming. Oracle: complete enumeration
/// for n <= 12, SciPy for n = 3..30 (`oracle/verdicts.py`).
pub(crate) fn signed_rank_null(blocks: usize) -> RankNull {
    if blocks <= EXACT_BLOCKS_MAX {
        return RankNull::exact(exact_upper_tail(blocks));
    }
    let n = blocks as f64;
    let standard_deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
    RankNull::normal(walsh_average_count(blocks), standard_deviation)
}

/// The number of Walsh averages of `blocks` values.
fn walsh_average_count(blocks: usize) -> u64 {
    let n = blocks as u64;
    n * (n + 1) / 2
}

/// P(W >= w) for w = 0..=n(n+1)/2, every sign of every rank equally likely.
///
/// All intermediate values are multiples of 2^-n, so the result is free of rounding up to 52
/// blocks; beyond, sums of positive terms keep the relative error near n * 1e-16.
fn exact_upper_tail(blocks: usize) -> Vec<f64> {
    let mut probability = vec![1.0];
    for rank in 1..=blocks {
        let mut next = vec![0.0; probability.len() + rank];
        for (sum, p) in probability.iter().enumerate() {
            next[sum] += p / 2.0;
            next[sum + rank] += p / 2.0;
        }
        probability = next;
    }
    let mut above = 0.0;
    for p in probability.iter_mut().rev() {
        above += *p;
        *p = above;
    }
    probability
}

/// The signed-rank test of one sample of block effects, ready for any shift.
///
/// Its estimate and interval stand in `hodges_lehmann.rs`.
///
/// Shape: one finite value or more, any order, any ties. Units: those of the values.
///
/// # Examples
/// ```
/// use fwdlab_stats::{ShiftTest as _, SignedRank};
/// let test = SignedRank::new(&[0.9, 1.4, 0.2, 1.1, 0.7, 2.0, 1.6, 0.8])?;
/// assert_eq!(test.p_two_sided(0.0), 2.0 / 256.0); // all eight above 0: the smallest p there is
/// assert!(test.p_two_sided(1.0) > 0.5);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
#[derive(Debug, Clone)]
pub struct SignedRank {
    pub(crate) walsh: WalshAverages,
    pub(crate) null: RankNull,
}

impl SignedRank {
    /// Prepares the test of `values`.
    ///
    /// # Errors
    /// [`StatsError::Empty`], [`StatsError::NotFinite`].
    pub fn new(values: &[f64]) -> Result<Self, StatsError> {
        require_finite("signed-rank test", values)?;
        Ok(Self {
            walsh: WalshAverages::of_finite(values),
            null: signed_rank_null(values.len()),
        })
    }

    /// The number of values.
    pub fn blocks(&self) -> usize {
        self.walsh.values().len()
    }
}

/// The two-sided p-value is at least 2^(1-n).
impl ShiftTest for SignedRank {
    fn p_greater(&self, shift: f64) -> f64 {
        self.null.upper_tail(self.walsh.count_above(shift))
    }

    fn p_less(&self, shift: f64) -> f64 {
        self.null.upper_tail(self.walsh.count_below(shift))
    }
}

/// The smallest number of blocks with which each of `comparisons` can still be shown to differ
/// at `confidence` under Holm's correction: the smallest n with 2^(1-n) <= (1 - confidence) /
/// comparisons.
///
/// No comparison counts as one.
///
/// # Errors
/// [`StatsError::Confidence`].
///
/// # Examples
/// ```
/// use fwdlab_stats::minimum_blocks;
/// assert_eq!(minimum_blocks(1, 0.95)?, 6);
/// assert_eq!(minimum_blocks(4, 0.95)?, 8);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn minimum_blocks(comparisons: usize, confidence: f64) -> Result<usize, StatsError> {
    let level = crate::error::significance(confidence)? / comparisons.max(1) as f64;
    let mut blocks = 1;
    let mut smallest_p = 1.0;
    while smallest_p > level {
        blocks += 1;
        smallest_p /= 2.0;
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Counts over all 2^n sign patterns how often the signed ranks sum to each value.
    fn enumerated_upper_tail(blocks: usize) -> Vec<f64> {
        let statistic_max = blocks * (blocks + 1) / 2;
        let mut count = vec![0_u32; statistic_max + 1];
        for signs in 0_u32..1 << blocks {
            let sum: usize = (1..=blocks).filter(|r| signs >> (r - 1) & 1 == 1).sum();
            count[sum] += 1;
        }
        (0..=statistic_max)
            .map(|w| f64::from(count[w..].iter().sum::<u32>()) / f64::from(1_u32 << blocks))
            .collect()
    }

    #[test]
    fn exact_null_is_the_enumeration_of_all_sign_patterns() {
        for blocks in 0..=12 {
            assert_eq!(
                exact_upper_tail(blocks),
                enumerated_upper_tail(blocks),
                "{blocks}"
            );
        }
    }

    #[test]
    fn normal_approximation_joins_the_exact_distribution() {
        let blocks = EXACT_BLOCKS_MAX + 1;
        let exact = exact_upper_tail(blocks);
        let approximate = signed_rank_null(blocks);
        for (p_min, excess_max) in [(0.05, 0.003), (0.01, 0.012), (1e-4, 0.13)] {
            for (w, p) in exact.iter().enumerate().filter(|(_, p)| **p > p_min) {
                let excess = approximate.upper_tail(w as u64) / p - 1.0;
                assert!(
                    (-0.003..excess_max).contains(&excess),
                    "P(W >= {w}) = {p}: {excess}"
                );
            }
        }
    }

    #[test]
    fn minimum_blocks_are_those_of_the_specification() {
        let needed = |k| minimum_blocks(k, 0.95).unwrap();
        assert_eq!(needed(0), 6);
        assert_eq!(needed(1), 6);
        assert_eq!((needed(2), needed(3)), (7, 7));
        assert_eq!((needed(4), needed(6)), (8, 8));
        assert_eq!((needed(7), needed(12)), (9, 9));
        assert_eq!(needed(13), 10);
        assert_eq!(minimum_blocks(1, 0.99).unwrap(), 8);
        assert!(minimum_blocks(1, 1.0).is_err());
        assert!(minimum_blocks(1, f64::NAN).is_err());
    }

    #[test]
    fn smallest_p_is_two_to_the_one_minus_n() {
        for blocks in 1..=30 {
            let values: Vec<f64> = (1..=blocks).map(f64::from).collect();
            let p = SignedRank::new(&values).unwrap().p_two_sided(0.0);
            assert_eq!(p, 2_f64.powi(1 - blocks));
        }
    }

    #[test]
    fn bad_input_is_refused() {
        assert!(matches!(
            SignedRank::new(&[]),
            Err(StatsError::Empty { .. })
        ));
        assert!(matches!(
            SignedRank::new(&[1.0, f64::NAN]),
            Err(StatsError::NotFinite { index: 1, .. })
        ));
    }

    #[test]
    fn one_value_shows_nothing() {
        let test = SignedRank::new(&[3.0]).unwrap();
        assert_eq!(test.p_two_sided(0.0), 1.0);
        assert_eq!(test.p_greater(0.0), 0.5);
    }

    proptest! {
        /// The level holds whatever the ties: among all sign patterns of any magnitudes, zeros
        /// included, at most a share alpha has a p-value of alpha or less.
        #[test]
        fn ties_and_zeros_never_inflate_the_level(
            magnitudes in prop::collection::vec(0_u8..4, 1..=8),
        ) {
            let patterns = 1_u32 << magnitudes.len();
            let mut p_values: Vec<f64> = (0..patterns)
                .map(|signs| {
                    let values: Vec<f64> = magnitudes
                        .iter()
                        .enumerate()
                        .map(|(i, m)| if signs >> i & 1 == 1 { f64::from(*m) } else { -f64::from(*m) })
                        .collect();
                    SignedRank::new(&values).unwrap().p_two_sided(0.0)
                })
                .collect();
            p_values.sort_unstable_by(f64::total_cmp);
            for (i, p) in p_values.iter().enumerate() {
                let share = (i + 1) as f64 / f64::from(patterns);
                let last_of_its_value = p_values.get(i + 1).is_none_or(|next| next > p);
                prop_assert!(!last_of_its_value || share <= *p + 1e-12, "P(p <= {p}) = {share}");
            }
        }

        #[test]
        fn mirrored_data_swap_the_sides(
            values in prop::collection::vec(-5.0..5.0_f64, 1..20),
            shift in -2.0..2.0_f64,
        ) {
            let mirrored: Vec<f64> = values.iter().map(|v| -v).collect();
            let test = SignedRank::new(&values).unwrap();
            let mirror = SignedRank::new(&mirrored).unwrap();
            prop_assert_eq!(test.p_greater(shift), mirror.p_less(-shift));
            prop_assert_eq!(test.p_two_sided(shift), mirror.p_two_sided(-shift));
        }
    }
}
