//! How probable it is that a method shows an effect, how small an effect it shows, and how many blocks
//! or observations that takes: for every method, reckoned before anything is measured.
//!
//! Noise is taken to be normal. The powers of the t tests are then exact (noncentral t). Those of the
//! rank tests are those of a t test with 3 / pi (0.955) as many observations, their asymptotic relative
//! efficiency, at the level that the exact test attains with so few; those of the re-randomisation tests
//! the t test's at that level. Where but the one most extreme arrangement of a sample reaches the level,
//! the power by blocks is exact again. Simulation puts rank tests within 0.03 and re-randomisation
//! within 0.06 of the truth, from the smallest samples on that show anything. With heavy tails rank
//! tests do better than said here, and t tests as a rule no worse.

use serde::Serialize;

use crate::control::CONTROL_CONFIDENCE;
use crate::distribution::{
    noncentral_t_upper_tail, normal_upper_quantile, normal_upper_tail, t_upper_quantile,
    two_one_sided_probability,
};
use crate::dunnett::dunnett_critical;
use crate::error::{StatsError, significance};
use crate::mann_whitney::mann_whitney_null;
use crate::methods::Method;
use crate::rank_null::RankNull;
use crate::signed_rank::signed_rank_null;
use crate::verdict::Unit;

/// How probable it is that an effect of the size reckoned with is shown.
pub const DETECTION_POWER: f64 = 0.8;

/// Sizes are not counted beyond this: a million.
pub const SIZE_MAX: usize = 1 << 20;

/// The methods whose power can be reckoned, the default first.
pub const METHODS_WITH_POWER: [Method; 8] = [
    Method::SignedRank,
    Method::StudentT,
    Method::SignFlip,
    Method::WelchT,
    Method::PooledT,
    Method::MannWhitney,
    Method::Permutation,
    Method::Dunnett,
];

/// How many observations of a t test one of a method's own is worth, with normal noise.
///
/// # Source
/// Hodges & Lehmann 1956 for the rank tests, Hoeffding 1952 for those by re-randomisation.
fn relative_efficiency(method: Method) -> f64 {
    match method {
        Method::SignedRank | Method::MannWhitney => 3.0 / std::f64::consts::PI,
        _ => 1.0,
    }
}

/// A method, the noise and the level, of which power is asked.
///
/// `compared` variants share the error probability, each at Holm's first step. Sizes are blocks, or
/// observations of each side ([`Method::unit`]).
///
/// Units: effects in those of the standard deviation, log ratios as a rule.
///
/// # Source
/// Oracle: statsmodels, SciPy and mpmath, `oracle/power.py`; the approximations are compared with
/// simulations in `tests/power_simulation.rs`.
///
/// # Examples
/// ```
/// use fwdlab_stats::{Method, PowerAnalysis};
/// let verdict = PowerAnalysis::new(Method::SignedRank, 0.01, 1, 0.95)?;
/// assert_eq!(verdict.power(0.5, 5), 0.0); // 5 blocks can show nothing
/// assert_eq!(verdict.size_to_show(0.01), Some(11));
/// let smallest = verdict.smallest_effect(8).expect("8 blocks can show something");
/// assert!((0.0124..0.0126).contains(&smallest));
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PowerAnalysis {
    /// The method.
    pub method: Method,
    /// Of a block effect, or of an observation, the same on both sides.
    pub standard_deviation: f64,
    /// Variants that are compared at once.
    pub compared: usize,
    /// Of the family.
    pub confidence: f64,
}

impl PowerAnalysis {
    /// Prepares the answers; no variant counts as one.
    ///
    /// # Errors
    /// [`StatsError::Confidence`], [`StatsError::StandardDeviation`], [`StatsError::PowerUnknown`] for a
    /// method that is not among [`METHODS_WITH_POWER`].
    pub fn new(
        method: Method,
        standard_deviation: f64,
        compared: usize,
        confidence: f64,
    ) -> Result<Self, StatsError> {
        significance(confidence)?;
        if !METHODS_WITH_POWER.contains(&method) {
            return Err(StatsError::PowerUnknown { method });
        }
        if !(standard_deviation >= 0.0 && standard_deviation.is_finite()) {
            return Err(StatsError::StandardDeviation {
                value: standard_deviation,
            });
        }
        Ok(Self {
            method,
            standard_deviation,
            compared: compared.max(1),
            confidence,
        })
    }

    /// That of the A/A control: the default test outside the family, at its own 1 %. What it shows is a
    /// baseline that differs from its own copy.
    ///
    /// # Errors
    /// As [`PowerAnalysis::new`].
    pub fn control(standard_deviation: f64) -> Result<Self, StatsError> {
        Self::new(
            Method::SignedRank,
            standard_deviation,
            1,
            CONTROL_CONFIDENCE,
        )
    }

    /// The probability that a sample of that size shows an effect of that one to be one, in either
    /// direction.
    ///
    /// Shape: a finite effect; 0 gives the error probability that the test attains.
    pub fn power(&self, effect: f64, size: usize) -> f64 {
        let Some(test) = self.two_sided(size) else {
            return 0.0;
        };
        test.two_sided(self.in_deviations(effect))
    }

    /// The smallest effect that a sample of that size shows with a probability of [`DETECTION_POWER`];
    /// `None` where it shows none, however large.
    pub fn smallest_effect(&self, size: usize) -> Option<f64> {
        let test = self.two_sided(size)?;
        let smallest = smallest_that(|effect| test.two_sided(effect) >= DETECTION_POWER)?;
        Some(smallest * self.standard_deviation)
    }

    /// The smallest sample that shows an effect of that size with a probability of [`DETECTION_POWER`];
    /// `None` for no effect, and beyond [`SIZE_MAX`].
    pub fn size_to_show(&self, effect: f64) -> Option<usize> {
        if self.method != Method::Dunnett {
            return self.first_size(|size| self.power(effect, size) >= DETECTION_POWER);
        }
        // Its critical value takes long to find and hardly depends on the size: the size for one critical
        // value has the next. A larger size has a smaller value, so that two sizes in turn are neighbours,
        // of which the smaller does not suffice.
        let effect = self.in_deviations(effect);
        let (mut previous, mut size) = (0, 2);
        for _ in 0..20 {
            let critical = self.dunnett_critical(size)?;
            let next = self.first_size(|size| {
                let test = self.dunnett(size, critical);
                test.is_some_and(|test| test.two_sided(effect) >= DETECTION_POWER)
            })?;
            if next == size || next == previous {
                return Some(next.max(size));
            }
            (previous, size) = (size, next);
        }
        Some(size.max(previous))
    }

    /// The probability that two one-sided tests show the effect to lie between two bounds.
    ///
    /// They are the method's own tests, each at the level of the family, as in the verdicts; Dunnett's
    /// test has none, and is replaced by t tests with its variance, corrected as the others.
    ///
    /// Shape: finite, `lower` below `upper`.
    pub fn power_inside(&self, effect: f64, lower: f64, upper: f64, size: usize) -> f64 {
        self.one_sided(size).map_or(0.0, |test| {
            let [lower, upper] = [lower, upper].map(|bound| self.in_deviations(bound - effect));
            // An integral over a distribution may sum up to a little more than all of it.
            test.inside(lower, upper).clamp(0.0, 1.0)
        })
    }

    /// The smallest threshold inside of which a sample of that size shows no effect to be, with a
    /// probability of [`DETECTION_POWER`]; `None` where it shows nothing.
    pub fn smallest_threshold(&self, size: usize) -> Option<f64> {
        let test = self.one_sided(size)?;
        let smallest =
            smallest_that(|threshold| test.inside(-threshold, threshold) >= DETECTION_POWER)?;
        Some(smallest * self.standard_deviation)
    }

    /// The smallest sample that shows no effect to be inside the threshold with a probability of
    /// [`DETECTION_POWER`]; `None` beyond [`SIZE_MAX`].
    pub fn size_to_show_inside(&self, threshold: f64) -> Option<usize> {
        self.first_size(|size| {
            self.power_inside(0.0, -threshold, threshold, size) >= DETECTION_POWER
        })
    }

    /// No distance is none also where there is no noise.
    fn in_deviations(&self, distance: f64) -> f64 {
        if distance == 0.0 {
            0.0
        } else {
            distance / self.standard_deviation
        }
    }

    /// The error probability of each comparison.
    fn level(&self) -> f64 {
        // The confidence was seen to be one.
        significance(self.confidence).unwrap_or(0.0) / self.compared as f64
    }

    fn two_sided(&self, size: usize) -> Option<Test> {
        if self.method == Method::Dunnett {
            return self.dunnett(size, self.dunnett_critical(size)?);
        }
        self.one_sided_at(size, self.level() / 2.0)
    }

    fn dunnett(&self, size: usize, critical: f64) -> Option<Test> {
        Some(Test::T {
            standard_errors_of_one: (size as f64 / 2.0).sqrt(),
            degrees_of_freedom: self.pooled_freedom(size)?,
            critical: vec![(1.0, critical)],
        })
    }

    fn dunnett_critical(&self, size: usize) -> Option<f64> {
        let alpha = self.level() * self.compared as f64;
        let freedom = self.pooled_freedom(size)?;
        Some(dunnett_critical(self.compared, freedom, alpha))
    }

    fn one_sided(&self, size: usize) -> Option<Test> {
        self.one_sided_at(size, self.level())
    }

    /// The one-sided test at the largest level that it attains up to `tail`; none where it attains none.
    fn one_sided_at(&self, size: usize, tail: f64) -> Option<Test> {
        let n = size as f64;
        let attained = match self.method {
            Method::SignedRank => attained_by_rank(size, tail, signed_rank_null)?,
            Method::MannWhitney => attained_by_rank(size, tail, |size| {
                mann_whitney_null(size as u64, size as u64)
            })?,
            Method::SignFlip => attained_of_arrangements(2_f64.powf(n), tail)?,
            Method::Permutation => attained_of_arrangements(choices(size), tail)?,
            _ => Attained::Tail(tail),
        };
        let is_by_blocks = self.method.unit() == Unit::Blocks;
        let tail = match attained {
            Attained::MostExtreme(_) if is_by_blocks => return Some(Test::AllBeyond { size }),
            Attained::MostExtreme(tail) | Attained::Tail(tail) => tail,
        };
        let degrees_of_freedom = match self.method {
            Method::Dunnett => self.pooled_freedom(size)?,
            _ if size < 2 => return None,
            _ if is_by_blocks => n - 1.0,
            _ => 2.0 * n - 2.0,
        };
        let worth = n * relative_efficiency(self.method);
        Some(Test::T {
            standard_errors_of_one: if is_by_blocks {
                worth.sqrt()
            } else {
                (worth / 2.0).sqrt()
            },
            degrees_of_freedom,
            critical: if self.method == Method::WelchT {
                welch_critical(n, tail)
            } else {
                vec![(1.0, t_upper_quantile(tail, degrees_of_freedom))]
            },
        })
    }

    /// Of a variance that all variants and the baseline share.
    fn pooled_freedom(&self, size: usize) -> Option<f64> {
        (size > 1).then(|| (self.compared + 1) as f64 * (size as f64 - 1.0))
    }

    /// The first size that is enough, and the larger ones, too, but for small samples: there the attained
    /// level jumps from one size to the next, and each is looked at.
    fn first_size(&self, enough: impl Fn(usize) -> bool) -> Option<usize> {
        let is_exact = matches!(
            self.method,
            Method::SignedRank | Method::SignFlip | Method::MannWhitney | Method::Permutation
        );
        if is_exact && let Some(size) = (1..=EXACT_SIZE_MAX).find(|size| enough(*size)) {
            return Some(size);
        }
        let mut too_few = if is_exact { EXACT_SIZE_MAX } else { 1 };
        let mut sufficient = 2 * too_few;
        while !enough(sufficient) {
            if sufficient >= SIZE_MAX {
                return None;
            }
            too_few = sufficient;
            sufficient *= 2;
        }
        while sufficient - too_few > 1 {
            let middle = usize::midpoint(too_few, sufficient);
            if enough(middle) {
                sufficient = middle;
            } else {
                too_few = middle;
            }
        }
        Some(sufficient)
    }
}

/// A larger sample attains every level to a few percent of itself.
const EXACT_SIZE_MAX: usize = 64;

/// A one-sided test of a sample whose noise has a deviation of 1.
enum Test {
    /// It rejects where all block effects lie beyond the bound.
    AllBeyond { size: usize },
    /// It rejects where t does, at a critical value that may depend on the sample: each with its
    /// probability, which adds up to 1.
    T {
        standard_errors_of_one: f64,
        degrees_of_freedom: f64,
        critical: Vec<(f64, f64)>,
    },
}

impl Test {
    /// The probability to show that the effect lies beyond a bound that it lies so far beyond.
    fn beyond(&self, distance: f64) -> f64 {
        match self {
            Self::AllBeyond { size } => normal_upper_tail(-distance).powf(*size as f64),
            Self::T {
                standard_errors_of_one,
                degrees_of_freedom,
                critical,
            } => {
                let noncentrality = distance * standard_errors_of_one;
                critical
                    .iter()
                    .map(|(probability, critical)| {
                        let tail =
                            noncentral_t_upper_tail(*critical, *degrees_of_freedom, noncentrality);
                        probability * tail
                    })
                    .sum()
            }
        }
    }

    fn two_sided(&self, effect: f64) -> f64 {
        (self.beyond(effect) + self.beyond(-effect)).min(1.0)
    }

    /// The probability to show that the effect lies between two bounds at those distances from it.
    fn inside(&self, lower: f64, upper: f64) -> f64 {
        match self {
            Self::AllBeyond { size } => {
                let one = normal_upper_tail(lower) - normal_upper_tail(upper);
                one.max(0.0).powf(*size as f64)
            }
            Self::T {
                standard_errors_of_one,
                degrees_of_freedom,
                critical,
            } => critical
                .iter()
                .map(|(probability, critical)| {
                    let (lower, upper) = (
                        lower * standard_errors_of_one,
                        upper * standard_errors_of_one,
                    );
                    probability
                        * two_one_sided_probability(lower, upper, *critical, *degrees_of_freedom)
                })
                .sum(),
        }
    }
}

/// The power of claims on an estimate with a known, normal error: what [`crate::MoreData`] reckons with,
/// which reads that error off an interval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownError {
    /// The error probability of each claim.
    pub(crate) level: f64,
    /// The critical value of one-sided tests at the level.
    critical: f64,
    /// The same at half of the level, for a two-sided one.
    two_sided_critical: f64,
}

impl KnownError {
    pub(crate) fn new(level: f64) -> Self {
        Self {
            level,
            critical: normal_upper_quantile(level),
            two_sided_critical: normal_upper_quantile(level / 2.0),
        }
    }

    /// The probability to show that an effect differs from none and lies beyond a bound that it lies so
    /// far beyond. Units: standard errors.
    pub(crate) fn beyond(&self, effect: f64, distance: f64) -> f64 {
        let shown = |critical: f64, distance: f64| {
            noncentral_t_upper_tail(critical, f64::INFINITY, distance)
        };
        shown(self.critical, distance).min(shown(self.two_sided_critical, effect))
    }

    /// The probability to show that it lies between two bounds. Units: standard errors.
    pub(crate) fn inside(&self, lower: f64, upper: f64) -> f64 {
        two_one_sided_probability(lower, upper, self.critical, f64::INFINITY)
    }
}

/// The largest level up to the one asked for that a discrete test attains.
enum Attained {
    /// Only the one most extreme sample reaches it.
    MostExtreme(f64),
    Tail(f64),
}

fn attained_by_rank(size: usize, tail: f64, null: impl Fn(usize) -> RankNull) -> Option<Attained> {
    if size > EXACT_SIZE_MAX {
        return Some(Attained::Tail(tail));
    }
    let null = null(size);
    let rank = null.bound_rank(tail)?;
    let attained = null.bound_error(rank);
    Some(if rank == 1 {
        Attained::MostExtreme(attained)
    } else {
        Attained::Tail(attained)
    })
}

/// Of so many arrangements, each as probable.
fn attained_of_arrangements(arrangements: f64, tail: f64) -> Option<Attained> {
    // Rounding must not cost an arrangement.
    let reached = (tail * arrangements * (1.0 + 1e-12)).floor();
    if reached < 1.0 {
        None
    } else if reached < 2.0 {
        Some(Attained::MostExtreme(1.0 / arrangements))
    } else if reached.is_finite() {
        Some(Attained::Tail(reached / arrangements))
    } else {
        Some(Attained::Tail(tail))
    }
}

/// How many ways there are to choose `size` of twice as many.
fn choices(size: usize) -> f64 {
    (1..=size)
        .map(|step| (size + step) as f64 / step as f64)
        .product()
}

/// The critical values of Welch's t with as many observations a side and the same variance, with their
/// probabilities.
///
/// With as many a side t itself is the pooled one; only its degrees of freedom follow how the two
/// estimated variances share their sum, which does not depend on t and has a beta distribution. By the
/// trapezoidal rule over the logarithm of their ratio.
fn welch_critical(n: f64, tail: f64) -> Vec<(f64, f64)> {
    let half_freedom = (n - 1.0) / 2.0;
    let step = (0.5 * (2.0 / half_freedom).sqrt()).min(0.4);
    let mut values = Vec::new();
    for point in 0..1000_u32 {
        let v = f64::from(point) * step;
        let density = (v / 2.0).cosh().powf(-2.0 * half_freedom);
        if density < 1e-12 {
            break;
        }
        // Both sides of an even distribution.
        let weight = if point == 0 { density } else { 2.0 * density };
        let balance = (v / 2.0).tanh();
        let freedom = 2.0 * (n - 1.0) / (1.0 + balance * balance);
        values.push((weight, t_upper_quantile(tail, freedom)));
    }
    let total: f64 = values.iter().map(|(weight, _)| weight).sum();
    for (weight, _) in &mut values {
        *weight /= total;
    }
    values
}

/// The smallest positive number that suffices, where all larger ones do, too; none up to a million.
fn smallest_that(suffices: impl Fn(f64) -> bool) -> Option<f64> {
    let (mut low, mut high) = (0.0, 1.0 / 1024.0);
    while !suffices(high) {
        low = high;
        high *= 2.0;
        if high > 1e6 {
            return None;
        }
    }
    while high - low > 1e-12 * high {
        let middle = f64::midpoint(low, high);
        if suffices(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::signed_rank::minimum_blocks;

    fn analysis(method: Method, compared: usize) -> PowerAnalysis {
        PowerAnalysis::new(method, 1.0, compared, 0.95).unwrap()
    }

    #[test]
    fn bad_input_is_refused() {
        let refusals = [
            (-1.0, 0.95),
            (f64::INFINITY, 0.95),
            (f64::NAN, 0.95),
            (1.0, 1.0),
        ]
        .map(|(deviation, confidence)| {
            PowerAnalysis::new(Method::StudentT, deviation, 1, confidence)
                .unwrap_err()
                .to_string()
        });
        insta::assert_snapshot!(refusals.join("\n"), @r"
standard deviation: not a number from 0 on (-1); give for example 0.01
standard deviation: not a number from 0 on (inf); give for example 0.01
standard deviation: not a number from 0 on (NaN); give for example 0.01
confidence: not between 0.5 and 1 (1); give for example 0.95
");
    }

    #[test]
    fn without_noise_every_effect_is_shown() {
        for method in METHODS_WITH_POWER {
            let quiet = PowerAnalysis::new(method, 0.0, 1, 0.95).unwrap();
            assert!(quiet.power(1e-9, 8) > 0.999_999, "{method:?}");
            assert!(quiet.power(0.0, 8) < 0.051, "{method:?}");
            assert!(
                quiet.power_inside(0.0, -1e-9, 1e-9, 8) > 0.999_999,
                "{method:?}"
            );
            assert_eq!(quiet.smallest_effect(8), Some(0.0), "{method:?}");
            assert!(quiet.size_to_show(0.01).unwrap() <= 6, "{method:?}");
        }
    }

    /// However large the effect, and whatever the family: the exact test's smallest p decides.
    #[test]
    fn too_few_blocks_show_nothing() {
        for compared in [1, 3, 4, 7, 12] {
            let need = minimum_blocks(compared, 0.95).unwrap();
            for method in [Method::SignedRank, Method::SignFlip] {
                let analysis = analysis(method, compared);
                assert_eq!(analysis.power(1e3, need - 1), 0.0);
                assert!(analysis.power(1e3, need) > 0.999_999);
                assert_eq!(analysis.smallest_effect(need - 1), None);
                assert_eq!(analysis.size_to_show(1e3), Some(need));
            }
        }
        let control = PowerAnalysis::control(1.0).unwrap();
        assert_eq!(
            (control.power(1e3, 7), control.size_to_show(1e3)),
            (0.0, Some(8))
        );
        // 4 against 4 have 70 arrangements, 3 against 3 only 20.
        for method in [Method::MannWhitney, Method::Permutation] {
            assert_eq!(analysis(method, 1).power(1e3, 3), 0.0);
            assert_eq!(analysis(method, 1).size_to_show(1e3), Some(4));
        }
        for method in METHODS_WITH_POWER {
            for size in [0, 1] {
                assert_eq!(analysis(method, 2).power(1e3, size), 0.0, "{method:?}");
                assert_eq!(analysis(method, 2).power_inside(0.0, -1e3, 1e3, size), 0.0);
            }
        }
    }

    #[test]
    fn the_most_extreme_sample_is_exact() {
        // Six blocks show a difference where all six have the same sign.
        let six = analysis(Method::SignedRank, 1);
        let one = normal_upper_tail(-0.7);
        let expected = one.powi(6) + (1.0 - one).powi(6);
        assert!((six.power(0.7, 6) - expected).abs() < 1e-14);
        // Five show an effect to be inside where all five are.
        let five = normal_upper_tail(-2.0) - normal_upper_tail(2.0);
        assert!((six.power_inside(0.0, -2.0, 2.0, 5) - five.powi(5)).abs() < 1e-14);
        assert_eq!(six.power_inside(0.0, -2.0, 2.0, 4), 0.0);
    }

    #[test]
    fn no_effect_has_no_size() {
        for method in METHODS_WITH_POWER {
            assert_eq!(analysis(method, 1).size_to_show(0.0), None, "{method:?}");
        }
        assert_eq!(
            analysis(Method::StudentT, 1).size_to_show_inside(1e-9),
            None
        );
    }

    /// With no effect the probability is the level that the test attains.
    #[test]
    fn without_an_effect_power_is_the_level() {
        let level = |method| analysis(method, 1).power(0.0, 8);
        for method in [Method::StudentT, Method::PooledT, Method::Dunnett] {
            assert!((level(method) - 0.05).abs() < 1e-9, "{method:?}");
        }
        assert!((level(Method::SignedRank) - 10.0 / 256.0).abs() < 1e-12);
        assert!((level(Method::SignFlip) - 12.0 / 256.0).abs() < 1e-12);
        // Welch's test keeps a little below its level with equal variances.
        assert!((0.046..0.05).contains(&level(Method::WelchT)));
    }

    #[test]
    fn dunnett_is_between_no_correction_and_bonferroni() {
        let power = |method, compared| analysis(method, compared).power(1.2, 12);
        let dunnett = power(Method::Dunnett, 4);
        assert!(dunnett < power(Method::PooledT, 1) && dunnett > power(Method::PooledT, 4));
        assert!((power(Method::Dunnett, 1) - power(Method::PooledT, 1)).abs() < 1e-9);
    }

    #[test]
    fn no_probability_is_more_than_one() {
        let welch = analysis(Method::WelchT, 1);
        let effect = 3.942_976_785_823_385_7;
        let inside = welch.power_inside(0.0, -effect, effect, 16);
        assert!((0.999..=1.0).contains(&inside), "{inside}");
    }

    fn methods() -> impl Strategy<Value = Method> {
        prop::sample::select(METHODS_WITH_POWER.to_vec())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn power_rises_with_the_effect_and_mirrors(
            method in methods(),
            effect in 0.0..4.0_f64,
            more in 0.01..1.0_f64,
            size in 2_usize..40,
            compared in 1_usize..5,
        ) {
            let analysis = analysis(method, compared);
            let power = analysis.power(effect, size);
            prop_assert!((0.0..=1.0).contains(&power));
            prop_assert!((power - analysis.power(-effect, size)).abs() < 1e-12);
            prop_assert!(analysis.power(effect + more, size) >= power - 1e-12);
            let inside = analysis.power_inside(0.0, -effect, effect, size);
            prop_assert!((0.0..=1.0).contains(&inside));
            prop_assert!(analysis.power_inside(0.0, -effect - more, effect + more, size) >= inside - 1e-9);
            prop_assert!(analysis.power_inside(more, -effect, effect, size) <= inside + 1e-9);
        }

        /// The three answers are one: the sizes that show an effect are those that show as small a one.
        #[test]
        fn the_answers_agree(
            method in methods(),
            effect in 0.2..3.0_f64,
            compared in 1_usize..4,
        ) {
            let analysis = analysis(method, compared);
            let size = analysis.size_to_show(effect).unwrap();
            prop_assert!(analysis.power(effect, size) >= DETECTION_POWER);
            prop_assert!(analysis.power(effect, size - 1) < DETECTION_POWER);
            prop_assert!(analysis.smallest_effect(size).unwrap() <= effect * (1.0 + 1e-9));
            let smallest = analysis.smallest_effect(size).unwrap();
            prop_assert!((analysis.power(smallest, size) - DETECTION_POWER).abs() < 1e-6);
            let inside = analysis.size_to_show_inside(effect).unwrap();
            prop_assert!(analysis.smallest_threshold(inside).unwrap() <= effect * (1.0 + 1e-9));
        }

        /// Another unit of the effects changes nothing.
        #[test]
        fn units_do_not_matter(method in methods(), unit in 1e-6..1e6_f64, size in 8_usize..20) {
            let plain = analysis(method, 1);
            let scaled = PowerAnalysis { standard_deviation: unit, ..plain };
            prop_assert!((plain.power(0.9, size) - scaled.power(0.9 * unit, size)).abs() < 1e-9);
            let (a, b) = (plain.smallest_effect(size).unwrap(), scaled.smallest_effect(size).unwrap());
            prop_assert!((a * unit / b - 1.0).abs() < 1e-9);
        }
    }
}
