//! The Mann-Whitney test of two independent samples, and the Hodges-Lehmann estimate and interval
//! of their shift that invert it.
//!
//! The statistic against a shift is the number of pairwise differences, sample less reference,
//! beyond it. As in the signed-rank test a difference equal to the shift is no evidence and the
//! reference distribution is the one without ties, so that test, estimate and interval agree for
//! all data and ties make them conservative, never wrong. What ties really allow says
//! [`MannWhitney::midrank`], the textbook test against no shift; without ties the two are one.

use serde::Serialize;

use crate::distribution::normal_upper_tail;
use crate::error::{StatsError, require_finite, require_held, significance};
use crate::hodges_lehmann::{Interval, PairValues};
use crate::rank_null::RankNull;
use crate::shift_test::ShiftTest;

/// The largest number of pairs for which arrangements are counted, if there are fewer than 2^127
/// arrangements: 65 values a side, or 3 against 349,525. Beyond, the normal approximation with
/// continuity correction takes over. With 65 a side its one-sided p-values are within 0.4 % of the
/// exact ones down to 0.03, and too large by 8 % of themselves at 0.001 and by 21 % at 0.0001: in
/// the tails it errs to the safe side.
pub const EXACT_PAIRS_MAX: u64 = 1 << 20;

/// The largest number of steps spent on counting the arrangements of tied ranks: a second or so.
/// About 60 values a side.
const TIED_STEPS_MAX: u64 = 1 << 26;

/// The Mann-Whitney test of two independent samples, ready for any shift.
///
/// Shape: one value or more a side, any order, any ties. A million a side take 16 bytes each and
/// seconds: the pairs are never written out. Units: those of the values.
///
/// # Source
/// Mann & Whitney 1947; Hodges & Lehmann 1963; Noether 1967 for ties. Oracle: SciPy and exact
/// fractions, `oracle/two_samples.py`.
///
/// # Examples
/// ```
/// use fwdlab_stats::{MannWhitney, ShiftTest as _};
/// let test = MannWhitney::new(&[6.1, 6.3, 6.2, 6.4], &[5.4, 5.9, 5.5, 5.8])?;
/// assert_eq!(test.p_two_sided(0.0), 2.0 / 70.0);
/// assert!((test.estimate() - 0.6).abs() < 1e-12);
/// let interval = test.interval(0.95)?.expect("4 against 4 reach 95 %");
/// assert!((interval.lower - 0.2).abs() < 1e-12);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
#[derive(Debug, Clone)]
pub struct MannWhitney {
    differences: PairwiseDifferences,
    null: RankNull,
}

/// The p-values of one statistic to both sides.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SidedPValues {
    /// Of the claim that the sample lies above the reference.
    pub greater: f64,
    /// Of the claim that it lies below.
    pub less: f64,
    /// Of the claim that it lies elsewhere: twice the smaller one.
    pub two_sided: f64,
}

impl SidedPValues {
    fn new(greater: f64, less: f64) -> Self {
        Self {
            greater,
            less,
            two_sided: (2.0 * greater.min(less)).min(1.0),
        }
    }
}

impl MannWhitney {
    /// Prepares the test.
    ///
    /// # Errors
    /// [`StatsError::Empty`], [`StatsError::NotFinite`]; [`StatsError::TooLarge`] where a
    /// difference is infinite.
    pub fn new(sample: &[f64], reference: &[f64]) -> Result<Self, StatsError> {
        require_finite("Mann-Whitney test, sample", sample)?;
        require_finite("Mann-Whitney test, reference", reference)?;
        let differences = PairwiseDifferences::of_finite(sample, reference);
        let (lowest, highest) = differences.extremes();
        require_held(
            "Mann-Whitney test",
            lowest.is_finite() && highest.is_finite(),
        )?;
        Ok(Self {
            differences,
            null: mann_whitney_null(sample.len() as u64, reference.len() as u64),
        })
    }

    /// The textbook test against no shift by midranks: every tied pair counts one half.
    ///
    /// Exact among all arrangements of the very ranks while those can be counted (some 60 values
    /// a side), beyond by the normal approximation with corrections for ties and continuity.
    pub fn midrank(&self) -> SidedPValues {
        let (sample, reference) = (&self.differences.sample, &self.differences.reference);
        let ties = tie_lengths(sample, reference);
        let above = self.differences.count_above(0.0);
        let below = self.differences.count_below(0.0);
        if ties.iter().all(|length| *length == 1) {
            return SidedPValues::new(self.null.upper_tail(above), self.null.upper_tail(below));
        }
        let pairs = self.differences.count();
        // Twice the statistic, so that halves are whole.
        let doubled = pairs + above - below;
        let (n, m) = (sample.len() as u64, reference.len() as u64);
        if let Some((at_least, at_most)) = tied_tails(&ties, n, m, doubled) {
            return SidedPValues::new(at_least, at_most);
        }
        let (n, m) = (n as f64, m as f64);
        let total = n + m;
        let tied: f64 = ties
            .iter()
            .map(|length| *length as f64)
            .map(|length| length * (length * length - 1.0))
            .sum();
        let variance = n * m / 12.0 * (total + 1.0 - tied / (total * (total - 1.0)));
        if variance <= 0.0 {
            return SidedPValues::new(1.0, 1.0);
        }
        let excess = (above as f64 - below as f64) / 2.0;
        SidedPValues::new(
            normal_upper_tail((excess - 0.5) / variance.sqrt()),
            normal_upper_tail((-excess - 0.5) / variance.sqrt()),
        )
    }

    /// The Hodges-Lehmann estimate of the shift: the median of all pairwise differences.
    pub fn estimate(&self) -> f64 {
        self.differences.median()
    }

    /// The shifts that the two-sided test does not reject at `confidence`: from the k-th smallest
    /// to the k-th largest pairwise difference.
    ///
    /// `None` if no two of them reach that confidence: the interval would be unbounded.
    ///
    /// # Errors
    /// [`StatsError::Confidence`].
    pub fn interval(&self, confidence: f64) -> Result<Option<Interval>, StatsError> {
        Ok(self.interval_with_tail(significance(confidence)? / 2.0))
    }

    /// The interval that errs with at most this probability on each side.
    pub(crate) fn interval_with_tail(&self, tail_max: f64) -> Option<Interval> {
        self.null.bound_rank(tail_max).map(|rank| {
            self.differences
                .interval_at_rank(&self.null, rank, 1.0 - 2.0 * tail_max)
        })
    }

    /// The interval from the smallest to the largest pairwise difference, with the confidence it has.
    pub(crate) fn widest_interval(&self, nominal_confidence: f64) -> Interval {
        self.differences
            .interval_at_rank(&self.null, 1, nominal_confidence)
    }

    /// How many values the sample and the reference have.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        let PairwiseDifferences { sample, reference } = &self.differences;
        (sample.len(), reference.len())
    }
}

impl ShiftTest for MannWhitney {
    fn p_greater(&self, shift: f64) -> f64 {
        self.null.upper_tail(self.differences.count_above(shift))
    }

    fn p_less(&self, shift: f64) -> f64 {
        self.null.upper_tail(self.differences.count_below(shift))
    }
}

/// The differences of all pairs, sample less reference, never written out.
#[derive(Debug, Clone)]
struct PairwiseDifferences {
    sample: Vec<f64>,
    reference: Vec<f64>,
}

impl PairwiseDifferences {
    fn of_finite(sample: &[f64], reference: &[f64]) -> Self {
        let sorted = |values: &[f64]| {
            let mut sorted = values.to_vec();
            sorted.sort_unstable_by(f64::total_cmp);
            sorted
        };
        Self {
            sample: sorted(sample),
            reference: sorted(reference),
        }
    }
}

impl PairValues for PairwiseDifferences {
    fn count(&self) -> u64 {
        self.sample.len() as u64 * self.reference.len() as u64
    }

    fn extremes(&self) -> (f64, f64) {
        let (sample, reference) = (&self.sample, &self.reference);
        (
            sample[0] - reference[reference.len() - 1],
            sample[sample.len() - 1] - reference[0],
        )
    }

    fn border(&self) -> u64 {
        (self.sample.len() + self.reference.len()) as u64
    }

    fn between(&self, low: f64, high: f64) -> Vec<f64> {
        let partners = self.reference.len();
        let mut values = Vec::new();
        // As in counting, but for both ends at once.
        let (mut above_low, mut above_high) = (0, 0);
        for value in &self.sample {
            let difference = |partner: usize| value - self.reference[partner];
            while above_low < partners && difference(above_low) > low {
                above_low += 1;
            }
            while above_high < partners && difference(above_high) > high {
                above_high += 1;
            }
            values.extend((above_high..above_low).map(difference));
        }
        values
    }

    fn count_upper(&self, holds: impl Fn(f64) -> bool) -> u64 {
        let mut count = 0;
        // The partners that hold are those before `end`, which rises with the value.
        let mut end = 0;
        for value in &self.sample {
            while end < self.reference.len() && holds(value - self.reference[end]) {
                end += 1;
            }
            count += end as u64;
        }
        count
    }
}

/// The smallest two-sided p-value that the test of so many values against so many can have: that of samples
/// that do not overlap. Beyond 2^127 arrangements it is 0.
///
/// # Examples
/// ```
/// use fwdlab_stats::smallest_rank_p;
/// assert_eq!(smallest_rank_p(3, 3), 0.1);
/// assert_eq!(smallest_rank_p(4, 4), 2.0 / 70.0);
/// ```
pub fn smallest_rank_p(n: usize, m: usize) -> f64 {
    let arrangements = arrangements(n as u64, m as u64);
    arrangements.map_or(0.0, |number| (2.0 / number as f64).min(1.0))
}

/// The distribution of the number of pairs in which the sample's value is the larger one, without
/// ties.
pub(crate) fn mann_whitney_null(n: u64, m: u64) -> RankNull {
    let pairs = n * m;
    if pairs <= EXACT_PAIRS_MAX
        && let Some(total) = arrangements(n, m)
    {
        let mut above = 0_u128;
        let mut tail: Vec<f64> = untied_counts(n, m)
            .into_iter()
            .rev()
            .map(|count| {
                above += count;
                above as f64 / total as f64
            })
            .collect();
        tail.reverse();
        return RankNull::exact(tail);
    }
    let (n, m) = (n as f64, m as f64);
    RankNull::normal(pairs, (n * m / 12.0 * (n + m + 1.0)).sqrt())
}

/// How many of the arrangements of n and m values have each number of larger pairs: the
/// coefficients of the Gaussian binomial, the product of (1 - q^(m+i)) / (1 - q^i) for i = 1..n.
///
/// Products and quotients of power series are exact modulo 2^128, so wrapping on the way does no
/// harm: the coefficients themselves are smaller.
fn untied_counts(n: u64, m: u64) -> Vec<u128> {
    let index = |value: u64| usize::try_from(value).expect("pairs are few where they are counted");
    let (few, many) = (n.min(m), n.max(m));
    let mut counts = vec![0_u128; index(n * m) + 1];
    counts[0] = 1;
    for step in 1..=few {
        let (up, down) = (index(many + step), index(step));
        for power in (up..counts.len()).rev() {
            counts[power] = counts[power].wrapping_sub(counts[power - up]);
        }
        for power in down..counts.len() {
            counts[power] = counts[power].wrapping_add(counts[power - down]);
        }
    }
    counts
}

/// n + m over n; `None` from 2^127 on.
fn arrangements(n: u64, m: u64) -> Option<u128> {
    (1..=n.min(m))
        .try_fold(1_u128, |product, step| {
            // Dividing first keeps what fits in the end from overflowing on the way.
            let common = greatest_common_divisor(product, u128::from(step));
            let factor = u128::from(n.max(m) + step) / (u128::from(step) / common);
            (product / common).checked_mul(factor)
        })
        .filter(|count| *count < 1 << 127)
}

fn greatest_common_divisor(a: u128, b: u128) -> u128 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

/// The lengths of the runs of equal values in both sorted samples together, in order.
fn tie_lengths(sample: &[f64], reference: &[f64]) -> Vec<u64> {
    let mut pooled: Vec<f64> = sample.iter().chain(reference).copied().collect();
    pooled.sort_unstable_by(f64::total_cmp);
    pooled
        .chunk_by(|a, b| a >= b)
        .map(|run| run.len() as u64)
        .collect()
}

/// The shares of all arrangements of those tied values whose doubled statistic is at least, and
/// at most, `doubled`; `None` where there are too many to count.
fn tied_tails(ties: &[u64], n: u64, m: u64, doubled: u64) -> Option<(f64, f64)> {
    let few = n.min(m);
    let total = arrangements(n, m)?;
    if n.checked_mul(m)?.checked_mul(2 * few)?.checked_mul(n + m)? > TIED_STEPS_MAX {
        return None;
    }
    let index = |value: u64| usize::try_from(value).expect("steps are few where they are counted");
    // The side with fewer values is dealt out; seen from the other side the statistic mirrors.
    let target = if n <= m { doubled } else { 2 * n * m - doubled };
    // counts[k][u]: k values dealt to runs so far, with a doubled statistic of u.
    let width = index(2 * n * m) + 1;
    let mut counts = vec![vec![0_u128; width]; index(few) + 1];
    counts[0][0] = 1;
    let mut before = 0_u64;
    for length in ties {
        for dealt in (0..=index(few)).rev() {
            let mut next = vec![0_u128; width];
            for taken in 0..=(*length).min(dealt as u64) {
                let earlier = dealt - index(taken);
                // Values of the other side below this run, and in it.
                let Some(below) = u64::checked_sub(before, earlier as u64) else {
                    continue;
                };
                let gain = index(taken * (2 * below + (length - taken)));
                let ways = arrangements(taken, length - taken)?;
                for (statistic, count) in counts[earlier].iter().enumerate() {
                    if *count > 0 && statistic + gain < width {
                        next[statistic + gain] += count * ways;
                    }
                }
            }
            counts[dealt] = next;
        }
        before += length;
    }
    let dealt = &counts[index(few)];
    let share = |counts: &[u128]| counts.iter().sum::<u128>() as f64 / total as f64;
    let (at_least, at_most) = (
        share(&dealt[index(target)..]),
        share(&dealt[..=index(target)]),
    );
    Some(if n <= m {
        (at_least, at_most)
    } else {
        (at_most, at_least)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written_out(a: &[f64], b: &[f64]) -> Vec<f64> {
        let mut all: Vec<f64> = a
            .iter()
            .flat_map(|x| b.iter().map(move |y| x - y))
            .collect();
        all.sort_unstable_by(f64::total_cmp);
        all
    }

    #[test]
    fn counts_are_those_of_all_arrangements() {
        assert_eq!(untied_counts(2, 2), [1, 1, 2, 1, 1]);
        assert_eq!(untied_counts(1, 3), [1, 1, 1, 1]);
        for (n, m) in [(3, 7), (7, 3), (65, 65), (3, 349_525), (20, 300)] {
            let counted = untied_counts(n, m).iter().sum::<u128>();
            assert_eq!(Some(counted), arrangements(n, m), "{n} {m}");
        }
        assert_eq!(arrangements(66, 66), None);
    }

    #[test]
    fn too_few_values_have_no_interval() {
        let test = MannWhitney::new(&[1.0, 2.0, 3.0], &[0.0, 0.5, 0.7]).unwrap();
        assert_eq!(test.p_two_sided(0.0), 0.1);
        assert_eq!(test.interval(0.95).unwrap(), None);
        assert!(test.interval(0.9).unwrap().is_some());
        assert!(test.interval(0.0).is_err());
    }

    #[test]
    fn constants_show_nothing() {
        for size in [3, 8, 100, 1000] {
            let test = MannWhitney::new(&vec![0.1; size], &vec![0.1; size + 1]).unwrap();
            assert_eq!(test.midrank().two_sided, 1.0);
            assert_eq!(test.p_two_sided(0.0), 1.0);
            assert_eq!(test.estimate(), 0.0);
        }
    }

    #[test]
    fn a_million_values_a_side() {
        let values = |factor: u64, offset: f64| -> Vec<f64> {
            (0..1_000_000_u64)
                .map(|i| (i * factor % 1_000_003) as f64 + offset)
                .collect()
        };
        let test = MannWhitney::new(&values(7919, 100.0), &values(104_729, 0.0)).unwrap();
        assert!((test.estimate() - 100.0).abs() < 10.0);
        assert!(test.interval(0.95).unwrap().unwrap().contains(100.0));
    }

    #[test]
    fn bad_input_is_refused_by_name() {
        let refusal = |a: &[f64], b: &[f64]| MannWhitney::new(a, b).unwrap_err().to_string();
        let refusals = [
            refusal(&[], &[1.0]),
            refusal(&[1.0], &[]),
            refusal(&[1.0], &[1.0, f64::NEG_INFINITY]),
            refusal(&[f64::MAX], &[f64::MIN]),
        ];
        insta::assert_snapshot!(refusals.join("\n"), @r"
Mann-Whitney test, sample: no values (0 given); give at least one
Mann-Whitney test, reference: no values (0 given); give at least one
Mann-Whitney test, reference: value 1 is not finite (-inf); give finite numbers only
Mann-Whitney test: values too large to reckon with; give them in a larger unit
");
    }

    fn samples() -> impl Strategy<Value = Vec<f64>> {
        prop_oneof![
            prop::collection::vec(-50.0..50.0_f64, 1..12),
            prop::collection::vec((-4_i8..=4).prop_map(f64::from), 1..12),
        ]
    }

    proptest! {
        #[test]
        fn counts_and_selection_agree_with_all_differences_written_out(
            a in samples(),
            b in samples(),
            shift in -5_i8..=5,
        ) {
            let all = written_out(&a, &b);
            let differences = PairwiseDifferences::of_finite(&a, &b);
            let shift = f64::from(shift);
            let above = all.iter().filter(|d| **d > shift).count() as u64;
            let below = all.iter().filter(|d| **d < shift).count() as u64;
            prop_assert_eq!(differences.count_above(shift), above);
            prop_assert_eq!(differences.count_below(shift), below);
            for (i, difference) in all.iter().enumerate() {
                prop_assert_eq!(differences.select(i as u64 + 1), *difference);
            }
        }

        #[test]
        fn interval_and_test_agree(
            a in samples(),
            b in samples(),
            shift in -60.0..60.0_f64,
            confidence in prop::sample::select(vec![0.8, 0.9, 0.95, 0.99]),
        ) {
            let test = MannWhitney::new(&a, &b).unwrap();
            let alpha = significance(confidence).unwrap();
            let interval = test.interval(confidence).unwrap();
            let mut shifts = vec![shift, shift.round(), test.estimate()];
            if let Some(interval) = interval {
                prop_assert!(interval.attained_confidence >= confidence);
                prop_assert!(interval.contains(test.estimate()));
                for end in [interval.lower, interval.upper] {
                    shifts.extend([end, end.next_down(), end.next_up()]);
                }
            }
            for shift in shifts {
                let rejected = test.p_two_sided(shift) <= alpha;
                let outside = interval.is_some_and(|interval| !interval.contains(shift));
                prop_assert_eq!(rejected, outside, "shift {}", shift);
            }
            if let Ok(size) = test.interval(1.0 - 2.0 * alpha) {
                let bound = shift.abs();
                let inside = size.is_some_and(|size| -bound < size.lower && size.upper < bound);
                prop_assert_eq!(test.p_inside(-bound, bound) <= alpha, inside);
            }
        }

        #[test]
        fn sides_swap_shift_and_scale(
            a in prop::collection::vec((-30_i32..30).prop_map(f64::from), 1..12),
            b in prop::collection::vec((-30_i32..30).prop_map(f64::from), 1..12),
            scale in prop::sample::select(vec![0.25, 2.0, 1024.0]),
        ) {
            let plain = MannWhitney::new(&a, &b).unwrap();
            let swapped = MannWhitney::new(&b, &a).unwrap();
            prop_assert_eq!(plain.estimate(), 0.0 - swapped.estimate());
            prop_assert_eq!(plain.p_greater(3.0), swapped.p_less(-3.0));
            prop_assert_eq!(plain.midrank().greater, swapped.midrank().less);
            prop_assert_eq!(plain.midrank().two_sided, swapped.midrank().two_sided);
            let moved = |values: &[f64]| -> Vec<f64> {
                values.iter().map(|v| v * scale + 64.0).collect()
            };
            let moved = MannWhitney::new(&moved(&a), &moved(&b)).unwrap();
            prop_assert_eq!(moved.estimate(), plain.estimate() * scale);
            prop_assert_eq!(moved.midrank(), plain.midrank());
        }

        /// The level holds whatever the ties: among all arrangements of any values, at most a
        /// share p has a p-value of p or less.
        #[test]
        fn ties_never_inflate_the_level(
            pooled in prop::collection::vec((-2_i32..2).prop_map(f64::from), 2..9),
            size in 1_usize..8,
        ) {
            let size = size.min(pooled.len() - 1);
            let mut p_values: Vec<f64> = (0_u32..1 << pooled.len())
                .filter(|labels| labels.count_ones() as usize == size)
                .map(|labels| {
                    let side = |wanted| -> Vec<f64> {
                        (0..pooled.len())
                            .filter(|i| (labels >> i & 1) == wanted)
                            .map(|i| pooled[i])
                            .collect()
                    };
                    MannWhitney::new(&side(1), &side(0)).unwrap().p_two_sided(0.0)
                })
                .collect();
            p_values.sort_unstable_by(f64::total_cmp);
            for (i, p) in p_values.iter().enumerate() {
                let share = (i + 1) as f64 / p_values.len() as f64;
                let last_of_its_value = p_values.get(i + 1).is_none_or(|next| next > p);
                prop_assert!(!last_of_its_value || share <= *p + 1e-12, "P(p <= {p}) = {share}");
            }
        }
    }
}
