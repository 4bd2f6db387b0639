//! Whether values lie in two groups: bimodal set-ups, and jumps from one mode to another.

use serde::Serialize;

use crate::count::whole;
use crate::error::{StatsError, require_finite};
use crate::generator::Generator;
use crate::monte_carlo::{drawn_p, draws_and_one};
use crate::spread::median;

/// The level of all dip tests of a report together.
pub const MODES_LEVEL: f64 = 0.01;

/// From so many values on, groups are found by the dip test; below, by their gap.
pub const DIP_VALUES_MIN: usize = 20;

/// The fewest values of a group that is found by its gap: fewer are outliers.
const GAP_GROUP_MIN: usize = 3;

/// A gap has to be so many times as wide as the wider one of the groups beside it.
const GAP_RATIO_MIN: f64 = 3.0;

/// The part of the values that the smaller group has to have where the dip test tells.
const GROUP_RATIO_MIN: f64 = 0.1;

/// Groups have to be so many of their own standard deviations apart. The halves of a normal sample are
/// 2.3 apart, those of a uniform one 2.7.
const SEPARATION_MIN: f64 = 4.0;

/// The quartiles of a normal distribution are 1 / 0.7413 standard deviations apart.
const QUARTILES_TO_DEVIATION: f64 = 0.741_301_109_252_801;

/// Samples larger than that are compared with the dips of samples of that size: the root of the
/// number times the dip has its limiting distribution by then.
const NULL_VALUES_MAX: usize = 1000;

/// Two groups of values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TwoModes {
    /// Median of the lower group.
    pub lower: f64,
    /// Median of the upper group.
    pub upper: f64,
    /// The smallest value of the upper group.
    pub upper_from: f64,
    /// How many values the lower group has.
    pub lower_count: usize,
    /// How many values the upper group has.
    pub upper_count: usize,
    /// The dip test's; none where the gap tells.
    pub p: Option<f64>,
}

/// The two groups in which values lie, if they do.
///
/// From 20 values on: Hartigan's dip test at `level`, and medians that are four standard deviations of
/// the groups apart (measured by quartiles, which outliers do not move), where the values are cut so
/// that they lie nearest to the medians, a tenth of them or more on each side. The p-value comes from uniform samples, the
/// worst of all distributions with one mode, so that the test errs less often than `level`.
///
/// From 6 to 19: a gap three times as wide as the wider group, with three values or more on each side.
/// It has no p-value; this field's noise (Student's t with 3 degrees of freedom, 5 % of values 5 to
/// 60 % lower, or differences of two such) has one in 3 of 1000 samples or fewer, normal noise in 5 of
/// 1000 with 6 values and in 1 of 1000 with 8, uniform noise in 13 and 5 of 1000.
///
/// Groups whose medians are closer than `distance_min` are none: rounded values make the finest ones.
///
/// Shape: any number of values, any order; `None` below 6. A million take a second. Units: those of
/// the values.
///
/// # Errors
/// [`StatsError::NotFinite`], [`StatsError::Level`].
///
/// # Source
/// Hartigan & Hartigan 1985, "The Dip Test of Unimodality". Oracle: the `diptest` package,
/// `oracle/checks.py`.
///
/// # Examples
/// ```
/// use fwdlab_stats::two_modes;
/// let mpps = [9.71, 4.31, 9.68, 9.74, 4.29, 9.70, 4.33, 9.69];
/// let modes = two_modes(&mpps, 0.01, 0.0, 1)?.expect("three runs lie far below the others");
/// assert_eq!((modes.lower_count, modes.lower), (3, 4.31));
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn two_modes(
    values: &[f64],
    level: f64,
    distance_min: f64,
    seed: u64,
) -> Result<Option<TwoModes>, StatsError> {
    let draws_and_one = draws_and_one(level)?;
    if values.is_empty() {
        return Ok(None);
    }
    require_finite("modes", values)?;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    if sorted.len() < DIP_VALUES_MIN {
        return Ok(cut_at_a_gap(&sorted)
            .map(|cut| groups(&sorted, cut, None))
            .filter(|modes| modes.upper - modes.lower >= distance_min));
    }
    // What can be looked up first is: the draws cost more.
    let Some(modes) = best_cut(&sorted)
        .map(|cut| groups(&sorted, cut, None))
        .filter(|modes| modes.upper - modes.lower >= distance_min)
    else {
        return Ok(None);
    };
    let p = dip_p(&sorted, draws_and_one, seed);
    Ok((p <= level).then_some(TwoModes {
        p: Some(p),
        ..modes
    }))
}

fn groups(sorted: &[f64], cut: usize, p: Option<f64>) -> TwoModes {
    let (lower, upper) = sorted.split_at(cut);
    TwoModes {
        lower: median(lower).unwrap_or(f64::NAN),
        upper: median(upper).unwrap_or(f64::NAN),
        upper_from: upper.first().copied().unwrap_or(f64::NAN),
        lower_count: lower.len(),
        upper_count: upper.len(),
        p,
    }
}

/// Where the widest gap is, if it is wide enough.
fn cut_at_a_gap(sorted: &[f64]) -> Option<usize> {
    let count = sorted.len();
    let cuts = GAP_GROUP_MIN..(count + 1).saturating_sub(GAP_GROUP_MIN);
    let gap = |cut: &usize| sorted[*cut] - sorted[cut - 1];
    let cut = cuts.max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
    let wider = (sorted[cut - 1] - sorted[0]).max(sorted[count - 1] - sorted[cut]);
    (gap(&cut) > 0.0 && gap(&cut) >= GAP_RATIO_MIN * wider).then_some(cut)
}

/// The cut that leaves the values nearest to their group's median, if that leaves the groups far enough
/// apart.
fn best_cut(sorted: &[f64]) -> Option<usize> {
    let count = sorted.len();
    let smallest = whole((count as f64 * GROUP_RATIO_MIN).ceil());
    // Sums of the values before each place, less the middle one, which keeps their digits.
    let middle = sorted[count / 2];
    let mut sums = vec![0.0];
    sums.extend(sorted.iter().scan(0.0, |sum, value| {
        *sum += value - middle;
        Some(*sum)
    }));
    let distances = |from: usize, to: usize| {
        let (left, right) = (from + (to - from) / 2, from + (to - from).div_ceil(2));
        (sums[to] - sums[right]) - (sums[left] - sums[from])
    };
    let cut = (smallest..=count - smallest)
        // Tied values stay together.
        .filter(|cut| sorted[cut - 1] < sorted[*cut])
        .min_by(|a, b| {
            let distance = |cut: usize| distances(0, cut) + distances(cut, count);
            distance(*a).total_cmp(&distance(*b))
        })?;
    let (lower, upper) = sorted.split_at(cut);
    let at = |group: &[f64], part: f64| group[quantile_place(group.len(), part)];
    let width = |group: &[f64]| at(group, 0.75) - at(group, 0.25);
    let variance = (width(lower).powi(2) + width(upper).powi(2)) / 2.0;
    let apart = at(upper, 0.5) - at(lower, 0.5);
    (apart >= SEPARATION_MIN * QUARTILES_TO_DEVIATION * variance.sqrt()).then_some(cut)
}

fn quantile_place(count: usize, part: f64) -> usize {
    whole((part * (count - 1) as f64).round())
}

/// The probability that so many uniform values have a dip as large.
fn dip_p(sorted: &[f64], draws_and_one: u32, seed: u64) -> f64 {
    let count = sorted.len();
    let drawn_count = count.min(NULL_VALUES_MAX);
    let observed = dip_of_sorted(sorted) * (count as f64).sqrt();
    let root = (drawn_count as f64).sqrt();
    let mut generator = Generator::new(seed);
    let mut uniform = vec![0.0; drawn_count];
    drawn_p(draws_and_one, || {
        // Sums of exponential steps are uniform values in order, but for a scale that a dip ignores.
        let mut sum = 0.0;
        for value in &mut uniform {
            sum -= generator.unit().ln();
            *value = sum;
        }
        dip_of_sorted(&uniform) * root >= observed
    })
}

/// Hartigan's dip: how far the empirical distribution is from the nearest one with a single mode.
///
/// Shape: one value or more, any order. 0.25 is the most there is, of two values that are taken half
/// of the times each; 1 / (2 n) the least. Units: any.
///
/// # Errors
/// [`StatsError::Empty`], [`StatsError::NotFinite`].
///
/// # Source
/// Hartigan & Hartigan 1985. Oracle: the `diptest` package, `oracle/checks.py`.
///
/// # Examples
/// ```
/// assert_eq!(fwdlab_stats::dip(&[1.0, 1.0, 2.0, 2.0])?, 0.25);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn dip(values: &[f64]) -> Result<f64, StatsError> {
    require_finite("dip", values)?;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Ok(dip_of_sorted(&sorted))
}

/// Shape: sorted, not empty.
fn dip_of_sorted(sorted: &[f64]) -> f64 {
    let steps = Steps::new(sorted);
    let (mut low, mut high) = (0, steps.at.len() - 1);
    // In values; twice what a distribution with one mode can come near to.
    let mut dip = 1.0_f64;
    loop {
        let minorant = steps.hull(low, high, &steps.below, |turn| turn <= 0.0);
        let majorant = steps.hull(low, high, &steps.through, |turn| turn >= 0.0);
        let (apart, new_low, new_high) = steps.farthest(&minorant, &majorant);
        if apart <= dip {
            break;
        }
        // A mode may be a step of its own, so the one that a part ends with on its side does not count.
        let convex = parts(&minorant)
            .filter(|part| part.1 <= new_low)
            .flat_map(|part| (part.0..part.1).map(move |step| (part, step)))
            .map(|(part, step)| steps.through[step] - steps.line(&steps.below, part, step));
        let concave = parts(&majorant)
            .filter(|part| part.0 >= new_high)
            .flat_map(|part| (part.0 + 1..=part.1).map(move |step| (part, step)))
            .map(|(part, step)| steps.line(&steps.through, part, step) - steps.below[step]);
        dip = convex.chain(concave).fold(dip, f64::max);
        if (new_low, new_high) == (low, high) {
            break;
        }
        (low, high) = (new_low, new_high);
    }
    dip / (2.0 * sorted.len() as f64)
}

/// The steps of an empirical distribution, counted in values.
struct Steps {
    /// The distinct values.
    at: Vec<f64>,
    /// How many values lie below each.
    below: Vec<f64>,
    /// How many are no larger.
    through: Vec<f64>,
}

impl Steps {
    fn new(sorted: &[f64]) -> Self {
        let mut steps = Self {
            at: Vec::with_capacity(sorted.len()),
            below: Vec::with_capacity(sorted.len()),
            through: Vec::with_capacity(sorted.len()),
        };
        let mut count = 0.0;
        for tied in sorted.chunk_by(|one, next| one >= next) {
            steps.at.push(tied[0]);
            steps.below.push(count);
            count += tied.len() as f64;
            steps.through.push(count);
        }
        steps
    }

    /// The corners of the greatest convex minorant, or of the least concave majorant, of heights
    /// between two steps; `leaves_out` says which turns are none of its corners.
    fn hull(
        &self,
        low: usize,
        high: usize,
        heights: &[f64],
        leaves_out: fn(f64) -> bool,
    ) -> Vec<usize> {
        let mut corners: Vec<usize> = Vec::new();
        for next in low..=high {
            while let [.., first, middle] = corners[..] {
                let turn = (self.at[middle] - self.at[first]) * (heights[next] - heights[middle])
                    - (self.at[next] - self.at[middle]) * (heights[middle] - heights[first]);
                if !leaves_out(turn) {
                    break;
                }
                corners.pop();
            }
            corners.push(next);
        }
        corners
    }

    /// The height at a step of the line between two others.
    fn line(&self, heights: &[f64], (from, to): (usize, usize), step: usize) -> f64 {
        if from == to {
            return heights[from];
        }
        let part = (self.at[step] - self.at[from]) / (self.at[to] - self.at[from]);
        heights[from] + part * (heights[to] - heights[from])
    }

    /// How far majorant and minorant are apart at the most, and the corners around: the minorant's at
    /// or before it, the majorant's at or behind it.
    fn farthest(&self, minorant: &[usize], majorant: &[usize]) -> (f64, usize, usize) {
        let mut farthest = (0.0, minorant[0], majorant[majorant.len() - 1]);
        let mut behind = 0;
        for &corner in minorant {
            while majorant[behind] < corner {
                behind += 1;
            }
            let part = (majorant[behind.max(1) - 1], majorant[behind]);
            let apart = self.line(&self.through, part, corner) - self.below[corner];
            if apart > farthest.0 {
                farthest = (apart, corner, majorant[behind]);
            }
        }
        let mut behind = 0;
        for &corner in majorant {
            while minorant[behind] < corner {
                behind += 1;
            }
            let before = if minorant[behind] == corner {
                behind
            } else {
                behind - 1
            };
            let part = (minorant[before], minorant[behind]);
            let apart = self.through[corner] - self.line(&self.below, part, corner);
            if apart > farthest.0 {
                farthest = (apart, minorant[before], corner);
            }
        }
        farthest
    }
}

/// The straight parts of a hull, each from one corner to the next.
fn parts(corners: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    corners.windows(2).map(|pair| (pair[0], pair[1]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn modes(values: &[f64]) -> Option<TwoModes> {
        two_modes(values, MODES_LEVEL, 0.0, 1).unwrap()
    }

    /// Values evenly around a centre.
    fn around(centre: f64, step: f64, count: usize) -> Vec<f64> {
        (0..count)
            .map(|i| centre + step * (i as f64 - count as f64 / 2.0))
            .collect()
    }

    #[test]
    fn a_gap_tells_of_two_groups_of_three_or_more() {
        let jump = [&around(9.7, 0.02, 5)[..], &around(4.3, 0.02, 3)].concat();
        let found = modes(&jump).unwrap();
        assert_eq!(
            (found.lower_count, found.upper_count, found.p),
            (3, 5, None)
        );
        assert!(found.upper_from > 9.0);
        // Two values are outliers.
        assert_eq!(
            modes(&[&around(9.7, 0.02, 6)[..], &[4.3, 4.31]].concat()),
            None
        );
        // The groups are 0.8 and 0.4 wide, so the gap has to be 2.4.
        let wide = |gap: f64| [&around(0.0, 0.2, 5)[..], &around(gap + 0.5, 0.2, 3)].concat();
        assert!(modes(&wide(2.5)).is_some());
        assert_eq!(modes(&wide(2.2)), None);
        // Closer than what matters.
        assert_eq!(two_modes(&jump, MODES_LEVEL, 6.0, 1).unwrap(), None);
    }

    #[test]
    fn the_dip_tells_where_there_are_many() {
        let jump = [&around(9.7, 0.01, 30)[..], &around(4.3, 0.01, 20)].concat();
        let found = modes(&jump).unwrap();
        assert_eq!((found.lower_count, found.upper_count), (20, 30));
        assert!(found.p.unwrap() <= MODES_LEVEL);
        assert_eq!(modes(&around(1.0, 0.01, 50)), None);
        // Outliers are no mode.
        let outliers = [&around(9.7, 0.01, 60)[..], &around(4.3, 0.01, 5)].concat();
        assert_eq!(modes(&outliers), None);
        // What is rounded to few digits is closer together than what matters.
        let rounded: Vec<f64> = (0..40).map(|i| 1.0 + 0.001 * f64::from(i % 2)).collect();
        assert!(modes(&rounded).is_some());
        assert_eq!(two_modes(&rounded, MODES_LEVEL, 0.01, 1).unwrap(), None);
    }

    #[test]
    fn few_or_constant_values_have_one_mode() {
        assert_eq!(modes(&[]), None);
        assert_eq!(modes(&[1.0, 1.0, 9.0, 9.0, 9.0]), None);
        assert_eq!(modes(&[3.0; 8]), None);
        assert_eq!(modes(&[3.0; 80]), None);
        assert_eq!(modes(&[-0.0, 0.0, 0.0, -0.0, 0.0, -0.0]), None);
        assert!(two_modes(&[1.0, f64::NAN], MODES_LEVEL, 0.0, 1).is_err());
        assert!(two_modes(&[], 0.0, 0.0, 1).is_err());
        assert!(dip(&[]).is_err());
    }

    #[test]
    fn a_million_values() {
        let values: Vec<f64> = (0..1_000_000_u32)
            .map(|i| {
                let noise = f64::from(i.wrapping_mul(2_654_435_761) >> 12) / f64::from(1 << 20);
                if i % 3 == 0 { noise } else { noise + 9.0 }
            })
            .collect();
        let found = modes(&values).unwrap();
        assert_eq!(found.lower_count, 333_334);
        assert_eq!(
            modes(&values.iter().map(|v| v % 1.0).collect::<Vec<_>>()),
            None
        );
    }

    fn samples() -> impl Strategy<Value = Vec<f64>> {
        prop_oneof![
            prop::collection::vec(-1.0..1.0_f64, 0..60),
            prop::collection::vec((-3_i8..3).prop_map(f64::from), 0..60),
            (3..20_usize, 3..20_usize, 0.0..9.0_f64)
                .prop_map(|(n, m, gap)| { [around(0.0, 0.1, n), around(gap, 0.1, m)].concat() }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn order_scale_and_mirror(values in samples(), power in -8_i32..8) {
            let scale = 2.0_f64.powi(power);
            let scaled: Vec<f64> = values.iter().rev().map(|value| value * scale).collect();
            let (plain, scaled) = (modes(&values), modes(&scaled));
            prop_assert_eq!(
                plain.map(|m| (m.lower * scale, m.upper * scale, m.lower_count, m.p)),
                scaled.map(|m| (m.lower, m.upper, m.lower_count, m.p))
            );
            if !values.is_empty() {
                let mirrored: Vec<f64> = values.iter().map(|value| -value).collect();
                let (plain, mirrored) = (dip(&values).unwrap(), dip(&mirrored).unwrap());
                prop_assert!((plain - mirrored).abs() < 1e-9);
                let least = 1.0 / (2.0 * values.len() as f64);
                prop_assert!((least..=0.25_f64.max(least)).contains(&(plain - 1e-15).max(least)));
            }
        }

        #[test]
        fn any_numbers_are_judged_or_refused(values in prop::collection::vec(prop::num::f64::ANY, 0..40)) {
            let _ = two_modes(&values, MODES_LEVEL, 0.0, 1);
        }
    }
}
