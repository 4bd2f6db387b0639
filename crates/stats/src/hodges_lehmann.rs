//! The Hodges-Lehmann estimate of a location and the interval that inverts the signed-rank
//! test.

use serde::Serialize;

use crate::error::{StatsError, significance};
use crate::rank_null::RankNull;
use crate::signed_rank::SignedRank;

/// A two-sided interval with the confidence it really has.
///
/// Units: those of the values it was computed from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end, belonging to the interval.
    pub lower: f64,
    /// Upper end, belonging to the interval.
    pub upper: f64,
    /// The confidence asked for.
    pub nominal_confidence: f64,
    /// The confidence it has: the smallest attainable one at or above the nominal.
    pub attained_confidence: f64,
}

impl Interval {
    /// As far to both sides of an estimate, with the very confidence that was asked for.
    pub(crate) fn around(estimate: f64, reach: f64, confidence: f64) -> Self {
        Self {
            lower: estimate - reach,
            upper: estimate + reach,
            nominal_confidence: confidence,
            attained_confidence: confidence,
        }
    }

    /// Half its length.
    pub fn half_width(&self) -> f64 {
        (self.upper - self.lower) / 2.0
    }

    /// Whether `value` lies in it, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.lower <= value && value <= self.upper
    }
}

/// The means of all pairs of values, each value also paired with itself, never written out.
#[derive(Debug, Clone)]
pub(crate) struct WalshAverages {
    sorted: Vec<f64>,
}

impl WalshAverages {
    /// The Walsh averages of finite values.
    pub(crate) fn of_finite(values: &[f64]) -> Self {
        debug_assert!(values.iter().all(|value| value.is_finite()));
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Self { sorted }
    }

    /// The values they are made of, ascending.
    pub(crate) fn values(&self) -> &[f64] {
        &self.sorted
    }
}

/// How far beyond the value sought a guess is aimed, as a part of what is left.
const OVERSHOOT: f64 = 1.0 / 64.0;

/// The values of all pairs of a sorted matrix, never written out: counting takes one pass over its
/// border, and so do the steps of selecting.
pub(crate) trait PairValues {
    /// How many there are; at least one.
    fn count(&self) -> u64;

    /// The smallest and the largest.
    fn extremes(&self) -> (f64, f64);

    /// The length of the matrix's border.
    fn border(&self) -> u64;

    /// The values greater than `low` and at most `high`, in no order.
    fn between(&self, low: f64, high: f64) -> Vec<f64>;

    /// Counts the values in an upper set, that is one that holds every number above any of its
    /// members.
    fn count_upper(&self, holds: impl Fn(f64) -> bool) -> u64;

    /// How many are greater than `shift`.
    fn count_above(&self, shift: f64) -> u64 {
        self.count_upper(|value| value > shift)
    }

    /// How many are less than `shift`.
    fn count_below(&self, shift: f64) -> u64 {
        self.count() - self.count_upper(|value| value >= shift)
    }

    /// The `rank`-th smallest, from 1.
    ///
    /// # Panics
    /// If `rank` is 0 or more than there are.
    fn select(&self, rank: u64) -> f64 {
        self.narrowed(rank).select(rank)
    }

    /// Their median.
    fn median(&self) -> f64 {
        let count = self.count();
        if count % 2 == 1 {
            return self.select(count / 2 + 1);
        }
        let mut around = self.narrowed(count / 2);
        let lower = around.select(count / 2);
        let upper = if around.holds(count / 2 + 1) {
            around.select(count / 2 + 1)
        } else {
            self.select(count / 2 + 1)
        };
        mean_of_two(lower, upper)
    }

    /// The few values around the `rank`-th smallest.
    ///
    /// # Panics
    /// If `rank` is 0 or more than there are.
    fn narrowed(&self, rank: u64) -> Narrowed {
        assert!(
            (1..=self.count()).contains(&rank),
            "rank {rank} of {}",
            self.count()
        );
        let (mut low, mut high) = self.extremes();
        let up_to = |value: f64| self.count() - self.count_above(value);
        let (mut below, mut reached) = (up_to(low), self.count());
        if below >= rank {
            return Narrowed::same(0, below, low);
        }
        // The value sought is above `low` and at most `high`. Values lie densely, so that a straight
        // line through the counts guesses well; aimed a little beyond the value, from either end in
        // turn, a guess brings the other end near, too. Where it does not, halving what doubles are
        // left takes over, so that there are 128 passes at most. Once no more values are left than a
        // pass looks at, they are written out, and the answer is the very number.
        let mut aim = OVERSHOOT;
        let mut guess_next = true;
        while order_key(high) - order_key(low) > 1 {
            if reached - below <= self.border() {
                return Narrowed {
                    below,
                    reached,
                    values: self.between(low, high),
                };
            }
            let gap = order_key(high) - order_key(low);
            let part = (rank - below) as f64 / (reached - below) as f64 + aim;
            let guess = low + (high - low) * part;
            let candidate = if guess_next && low < guess && guess < high {
                guess
            } else {
                from_order_key(order_key(low).midpoint(order_key(high)))
            };
            let count = up_to(candidate);
            if count >= rank {
                (high, reached, aim) = (candidate, count, -OVERSHOOT);
            } else {
                (low, below, aim) = (candidate, count, OVERSHOOT);
            }
            guess_next = !guess_next || (order_key(high) - order_key(low)) <= gap / 2;
        }
        Narrowed::same(below, reached, high)
    }

    /// The interval from the `rank`-th smallest to the `rank`-th largest.
    fn interval_at_rank(&self, null: &RankNull, rank: u64, nominal_confidence: f64) -> Interval {
        Interval {
            lower: self.select(rank),
            upper: self.select(self.count() + 1 - rank),
            nominal_confidence,
            attained_confidence: 1.0 - 2.0 * null.bound_error(rank),
        }
    }
}

/// Some of the values of all pairs: those of the ranks above `below`, up to `reached`.
pub(crate) struct Narrowed {
    below: u64,
    reached: u64,
    /// One for each rank, in no order; a single one where all are the same.
    values: Vec<f64>,
}

impl Narrowed {
    fn same(below: u64, reached: u64, value: f64) -> Self {
        Self {
            below,
            reached,
            values: vec![value],
        }
    }

    fn holds(&self, rank: u64) -> bool {
        self.below < rank && rank <= self.reached
    }

    fn select(&mut self, rank: u64) -> f64 {
        debug_assert!(self.holds(rank), "rank {rank}");
        let place = usize::try_from(rank - self.below - 1).unwrap_or(usize::MAX);
        let place = place.min(self.values.len() - 1);
        let (_, value, _) = self.values.select_nth_unstable_by(place, f64::total_cmp);
        // Adding zero turns -0 into 0.
        *value + 0.0
    }
}

impl PairValues for WalshAverages {
    fn count(&self) -> u64 {
        let n = self.sorted.len() as u64;
        n * (n + 1) / 2
    }

    fn extremes(&self) -> (f64, f64) {
        (self.sorted[0], self.sorted[self.sorted.len() - 1])
    }

    fn border(&self) -> u64 {
        self.sorted.len() as u64
    }

    fn between(&self, low: f64, high: f64) -> Vec<f64> {
        let n = self.sorted.len();
        let mut values = Vec::new();
        // As in counting, but for both ends at once.
        let (mut above_low, mut above_high) = (n, n);
        for (i, value) in self.sorted.iter().enumerate() {
            let mean = |partner: usize| mean_of_two(*value, self.sorted[partner]);
            while above_low > 0 && mean(above_low - 1) > low {
                above_low -= 1;
            }
            while above_high > 0 && mean(above_high - 1) > high {
                above_high -= 1;
            }
            values.extend((above_low.max(i)..above_high.max(i)).map(mean));
        }
        values
    }

    fn count_upper(&self, holds: impl Fn(f64) -> bool) -> u64 {
        let n = self.sorted.len();
        let mut count = 0;
        // Partners of the i-th value that hold are those from `first` on, and `first` falls
        // as i rises; only partners at or after i count, each pair once.
        let mut first = n;
        for (i, value) in self.sorted.iter().enumerate() {
            while first > 0 && holds(mean_of_two(*value, self.sorted[first - 1])) {
                first -= 1;
            }
            count += (n - first.max(i)) as u64;
        }
        count
    }
}

/// The mean of two numbers, rising in both and unable to overflow.
fn mean_of_two(a: f64, b: f64) -> f64 {
    a * 0.5 + b * 0.5
}

/// The smallest number from `lower` to `upper` that is `enough`, where every larger one is, too;
/// `upper` if none is.
///
/// Bisection over all numbers a double can hold: 64 passes at most, and the answer is the very
/// number, not an approximation.
pub(crate) fn smallest_double(lower: f64, upper: f64, enough: impl Fn(f64) -> bool) -> f64 {
    let (mut lower, mut upper) = (order_key(lower), order_key(upper));
    while lower < upper {
        let middle = lower.midpoint(upper);
        if enough(from_order_key(middle)) {
            upper = middle;
        } else {
            lower = middle + 1;
        }
    }
    // Adding zero turns -0 into 0.
    from_order_key(lower) + 0.0
}

/// An integer that orders finite doubles as their values do (-0 just below 0).
fn order_key(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits < SIGN { bits | SIGN } else { !bits }
}

fn from_order_key(key: u64) -> f64 {
    f64::from_bits(if key < SIGN { !key } else { key ^ SIGN })
}

/// The sign bit of a double.
const SIGN: u64 = 1 << 63;

/// # Source
/// Hodges & Lehmann 1963; Noether 1967 for the closed interval under ties. Oracle:
/// `oracle/verdicts.py`, and all Walsh averages written out.
impl SignedRank {
    /// The Hodges-Lehmann estimate: the median of the Walsh averages.
    pub fn estimate(&self) -> f64 {
        self.walsh.median()
    }

    /// The shifts that the two-sided test does not reject at `confidence`: from the k-th
    /// smallest to the k-th largest Walsh average.
    ///
    /// `None` if no two Walsh averages reach that confidence: the interval would be unbounded.
    ///
    /// # Errors
    /// [`StatsError::Confidence`].
    ///
    /// # Examples
    /// ```
    /// use fwdlab_stats::SignedRank;
    /// let effects = SignedRank::new(&[0.9, 1.4, 0.2, 1.1, 0.7, 2.0, 1.6, 0.8])?;
    /// let interval = effects.interval(0.95)?.expect("8 blocks reach 95 %");
    /// assert_eq!((interval.attained_confidence * 1000.0).round(), 961.0);
    /// # Ok::<(), fwdlab_stats::StatsError>(())
    /// ```
    pub fn interval(&self, confidence: f64) -> Result<Option<Interval>, StatsError> {
        Ok(self.interval_with_tail(significance(confidence)? / 2.0))
    }

    /// The interval that errs with at most this probability on each side.
    pub(crate) fn interval_with_tail(&self, tail_max: f64) -> Option<Interval> {
        self.null.bound_rank(tail_max).map(|rank| {
            self.walsh
                .interval_at_rank(&self.null, rank, 1.0 - 2.0 * tail_max)
        })
    }

    /// The interval at `confidence`, or where that is out of reach the widest there is, from the
    /// smallest to the largest value, with the lower confidence it has.
    ///
    /// `None` for one value, which bounds nothing.
    ///
    /// # Errors
    /// [`StatsError::Confidence`].
    pub fn interval_or_widest(&self, confidence: f64) -> Result<Option<Interval>, StatsError> {
        let interval = self.interval(confidence)?;
        Ok(interval.or_else(|| {
            (self.blocks() > 1).then(|| self.walsh.interval_at_rank(&self.null, 1, confidence))
        }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::shift_test::ShiftTest as _;

    fn written_out(values: &[f64]) -> Vec<f64> {
        let mut averages: Vec<f64> = (0..values.len())
            .flat_map(|i| (i..values.len()).map(move |j| (i, j)))
            .map(|(i, j)| mean_of_two(values[i], values[j]))
            .collect();
        averages.sort_unstable_by(f64::total_cmp);
        averages
    }

    fn attained(blocks: i32, confidence: f64) -> Option<f64> {
        let values: Vec<f64> = (0..blocks).map(f64::from).collect();
        SignedRank::new(&values)
            .unwrap()
            .interval(confidence)
            .unwrap()
            .map(|interval| (interval.attained_confidence * 1000.0).round() / 10.0)
    }

    #[test]
    fn attained_levels_are_those_of_the_specification() {
        assert_eq!(attained(8, 0.95), Some(96.1));
        assert_eq!(attained(8, 0.90), Some(92.2));
        assert_eq!(attained(8, 0.9833), Some(98.4));
        assert_eq!(attained(8, 0.99), Some(99.2));
    }

    #[test]
    fn an_unattainable_level_has_no_interval() {
        assert_eq!(attained(5, 0.95), None);
        assert_eq!(attained(6, 0.95), Some(96.9));
        assert_eq!(attained(7, 0.99), None);
        assert_eq!(attained(1, 0.51), None);
    }

    #[test]
    fn the_widest_interval_says_what_it_attains() {
        let effects = SignedRank::new(&[3.0, 1.0, 2.0, 5.0, 4.0]).unwrap();
        let interval = effects.interval_or_widest(0.95).unwrap().unwrap();
        assert_eq!((interval.lower, interval.upper), (1.0, 5.0));
        assert_eq!(interval.attained_confidence, 1.0 - 2.0 / 32.0);
        assert_eq!(interval.nominal_confidence, 0.95);
        let one = SignedRank::new(&[3.0]).unwrap();
        assert_eq!(one.interval_or_widest(0.95).unwrap(), None);
    }

    #[test]
    fn constant_data_are_their_own_interval() {
        let effects = SignedRank::new(&[-0.0; 8]).unwrap();
        let interval = effects.interval(0.95).unwrap().unwrap();
        assert_eq!(effects.estimate().to_bits(), 0);
        assert_eq!((interval.lower.to_bits(), interval.upper.to_bits()), (0, 0));
        assert_eq!(effects.p_two_sided(0.0), 1.0);
        assert_eq!(effects.p_two_sided(1.0), 2.0 / 256.0);
    }

    #[test]
    fn order_key_orders_as_the_numbers() {
        let numbers = [
            f64::MIN,
            -1.0,
            -f64::MIN_POSITIVE,
            -0.0,
            0.0,
            5e-324,
            1.0,
            f64::MAX,
        ];
        for pair in numbers.windows(2) {
            assert!(order_key(pair[0]) < order_key(pair[1]), "{pair:?}");
        }
        for number in numbers {
            assert_eq!(
                from_order_key(order_key(number)).to_bits(),
                number.to_bits()
            );
        }
    }

    #[test]
    fn many_values_need_no_quadratic_memory() {
        let values: Vec<f64> = (0..100_000)
            .map(|i| f64::from(i * 7919 % 100_003))
            .collect();
        let effects = SignedRank::new(&values).unwrap();
        let interval = effects.interval(0.95).unwrap().unwrap();
        assert!(interval.contains(effects.estimate()));
        assert!(interval.half_width() < 300.0);
    }

    fn samples() -> impl Strategy<Value = Vec<f64>> {
        prop_oneof![
            prop::collection::vec(-50.0..50.0_f64, 1..25),
            // Few distinct values: ties within and across zero.
            prop::collection::vec((-4_i8..=4).prop_map(f64::from), 1..25),
        ]
    }

    proptest! {
        #[test]
        fn counts_and_selection_agree_with_all_averages_written_out(
            values in samples(),
            shift in -5_i8..=5,
        ) {
            let averages = written_out(&values);
            let walsh = WalshAverages::of_finite(&values);
            let shift = f64::from(shift);
            prop_assert_eq!(walsh.count(), averages.len() as u64);
            prop_assert_eq!(
                walsh.count_above(shift),
                averages.iter().filter(|a| **a > shift).count() as u64
            );
            prop_assert_eq!(
                walsh.count_below(shift),
                averages.iter().filter(|a| **a < shift).count() as u64
            );
            for (i, average) in averages.iter().enumerate() {
                prop_assert_eq!(walsh.select(i as u64 + 1), *average);
            }
        }

        /// A shift lies in the interval exactly if the test does not reject it, at the ends of
        /// the interval and one step beyond too.
        #[test]
        fn interval_and_test_agree(
            values in samples(),
            shift in -60.0..60.0_f64,
            confidence in prop::sample::select(vec![0.8, 0.9, 0.95, 0.9833, 0.99]),
        ) {
            let effects = SignedRank::new(&values).unwrap();
            let alpha = significance(confidence).unwrap();
            let interval = effects.interval(confidence).unwrap();
            let mut shifts = vec![shift, shift.round(), effects.estimate()];
            if let Some(interval) = interval {
                prop_assert!(interval.attained_confidence >= confidence);
                prop_assert!(interval.contains(effects.estimate()));
                for end in [interval.lower, interval.upper] {
                    shifts.extend([end, end.next_down(), end.next_up()]);
                }
            }
            for shift in shifts {
                let rejected = effects.p_two_sided(shift) <= alpha;
                let outside = interval.is_some_and(|interval| !interval.contains(shift));
                prop_assert_eq!(rejected, outside, "shift {}", shift);
            }
        }

        #[test]
        fn estimate_and_interval_ignore_order_and_follow_shift_scale_and_mirror(
            values in prop::collection::vec((-1000_i32..1000).prop_map(f64::from), 6..20),
            shift in (-100_i32..100).prop_map(f64::from),
            scale in prop::sample::select(vec![0.25, 2.0, 1024.0]),
        ) {
            // Integers and powers of two: the laws hold without rounding.
            let reading = |values: &[f64]| {
                let effects = SignedRank::new(values).unwrap();
                let interval = effects.interval(0.95).unwrap().unwrap();
                (interval.lower, effects.estimate(), interval.upper)
            };
            let (lower, estimate, upper) = reading(&values);
            let reversed: Vec<f64> = values.iter().rev().copied().collect();
            prop_assert_eq!(reading(&reversed), (lower, estimate, upper));
            let moved: Vec<f64> = values.iter().map(|v| v * scale + shift).collect();
            prop_assert_eq!(
                reading(&moved),
                (lower * scale + shift, estimate * scale + shift, upper * scale + shift)
            );
            let mirrored: Vec<f64> = values.iter().map(|v| -v).collect();
            prop_assert_eq!(reading(&mirrored), (-upper, -estimate, -lower));
        }
    }
}
