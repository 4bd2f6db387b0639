//! Tail probabilities and quantiles of the normal distribution, Student's t, chi-squared and F, to
//! 1e-11 relative far out in the tails, and the noncentral t, to 1e-9.
//!
//! A p-value of 1e-12 is the complement of nothing: each tail is computed as itself, never as 1
//! minus the other one where it is the smaller. Degrees of freedom are positive and need not be
//! whole; up to 1e7 of them are tested.

use crate::hodges_lehmann::smallest_double;

/// P(Z >= z) for a standard normal Z.
///
/// # Source
/// Oracle: SciPy and mpmath, `oracle/distributions.py`, as for all of this module.
pub fn normal_upper_tail(z: f64) -> f64 {
    libm::erfc(z * std::f64::consts::FRAC_1_SQRT_2) / 2.0
}

/// The z with P(Z >= z) = `probability` for a standard normal Z.
///
/// Shape: `probability` strictly between 0 and 1.
pub fn normal_upper_quantile(probability: f64) -> f64 {
    if probability > 0.5 {
        return -normal_upper_quantile(1.0 - probability);
    }
    smallest_double(0.0, f64::MAX, |z| normal_upper_tail(z) <= probability)
}

/// P(T >= t) for Student's T.
///
/// # Examples
/// ```
/// use fwdlab_stats::distribution::t_upper_tail;
/// assert!((t_upper_tail(1.0, 1.0) - 0.25).abs() < 1e-15);
/// assert_eq!(t_upper_tail(f64::INFINITY, 9.0), 0.0);
/// ```
pub fn t_upper_tail(t: f64, degrees_of_freedom: f64) -> f64 {
    if t < 0.0 {
        return 1.0 - t_upper_tail(-t, degrees_of_freedom);
    }
    let square = t * t;
    if square.is_infinite() {
        return 0.0;
    }
    let sum = degrees_of_freedom + square;
    let (tail, _) = incomplete_beta(
        degrees_of_freedom / 2.0,
        0.5,
        degrees_of_freedom / sum,
        square / sum,
    );
    tail / 2.0
}

/// The t with P(T >= t) = `probability` for Student's T.
///
/// Shape: `probability` strictly between 0 and 1.
pub fn t_upper_quantile(probability: f64, degrees_of_freedom: f64) -> f64 {
    if probability > 0.5 {
        return -t_upper_quantile(1.0 - probability, degrees_of_freedom);
    }
    smallest_double(0.0, f64::MAX, |t| {
        t_upper_tail(t, degrees_of_freedom) <= probability
    })
}

/// P(T >= t) for noncentral T: (Z + `noncentrality`) / S, with a standard normal Z and S the square root of
/// chi-squared over its degrees of freedom. To 1e-9 of itself down to 1e-12.
///
/// Infinite degrees of freedom are a known deviation: the normal distribution.
///
/// # Source
/// The normal tail averaged over ln S by the trapezoidal rule, which gains digits exponentially with
/// smooth integrands that vanish at both ends. Oracle: SciPy and mpmath, `oracle/power.py`.
///
/// # Examples
/// ```
/// use fwdlab_stats::distribution::{noncentral_t_upper_tail, t_upper_tail};
/// let central = noncentral_t_upper_tail(2.5, 7.0, 0.0);
/// assert!((central / t_upper_tail(2.5, 7.0) - 1.0).abs() < 1e-11);
/// assert!(noncentral_t_upper_tail(2.5, 7.0, 3.0) > 0.6);
/// ```
pub fn noncentral_t_upper_tail(t: f64, degrees_of_freedom: f64, noncentrality: f64) -> f64 {
    if degrees_of_freedom.is_infinite() {
        return normal_upper_tail(t - noncentrality);
    }
    // Neither Z nor S is ever so far from 0 and 1: S has a normal's tail.
    let largest = 1.0 + NORMAL_MAX / degrees_of_freedom.sqrt();
    if noncentrality.abs() > t.abs() * largest + NORMAL_MAX {
        return if noncentrality > 0.0 { 1.0 } else { 0.0 };
    }
    let step = deviation_step(degrees_of_freedom, noncentrality);
    let mut total = 0.0;
    for (sign, first) in [(1.0, 0), (-1.0, 1)] {
        for point in first..STEPS_MAX {
            let u = sign * f64::from(point) * step;
            let weight = deviation_density(u, degrees_of_freedom);
            if weight.is_nan() || weight < DENSITY_MIN {
                break;
            }
            total += weight * normal_upper_tail(t * u.exp() - noncentrality);
        }
    }
    // What is not a number stays none.
    (total * step).clamp(0.0, 1.0)
}

/// P(`lower` + c S <= Z <= `upper` - c S), with a standard normal Z, S as in
/// [`noncentral_t_upper_tail`] and c positive: the probability that two one-sided t tests against bounds
/// that far from the truth both reject at the critical value c. Units of all: standard errors.
///
/// # Source
/// Owen 1965, "A special case of a bivariate non-central t-distribution"; integrated over how far ln S is
/// below the point from which on no Z is left. Oracle: mpmath, `oracle/power.py`.
pub(crate) fn two_one_sided_probability(
    lower: f64,
    upper: f64,
    critical: f64,
    degrees_of_freedom: f64,
) -> f64 {
    // Farther bounds are as good as none, and infinite ones cannot be reckoned with.
    let (lower, upper) = (lower.max(-BOUND_MAX), upper.min(BOUND_MAX));
    let between = |deviation: f64| {
        let (from, to) = (lower + critical * deviation, upper - critical * deviation);
        if from >= to {
            0.0
        } else if from > 0.0 {
            // Each tail as itself.
            normal_upper_tail(from) - normal_upper_tail(to)
        } else {
            normal_upper_tail(-to) - normal_upper_tail(-from)
        }
    };
    if degrees_of_freedom.is_infinite() {
        return between(1.0);
    }
    let end = ((upper - lower) / (2.0 * critical)).ln();
    if end.is_nan() {
        return 0.0;
    }
    let step = deviation_step(degrees_of_freedom, lower.abs().max(upper.abs()).min(40.0));
    let mut total = 0.0;
    // ln S = end - ln(1 + e^w): both ends are where w is infinite, and everything vanishes there, at the
    // upper one as e^2w, or, where that is far above 1, by the density, which has a normal's tail.
    let top = (-DENSITY_MIN.ln() / degrees_of_freedom).sqrt();
    let first = (end - top).max(0.0).exp_m1().ln().max(-20.0);
    for point in 0..STEPS_MAX {
        let w = first + f64::from(point) * step;
        let u = end - w.exp().ln_1p();
        let weight = deviation_density(u, degrees_of_freedom);
        if u < 0.0 && (weight.is_nan() || weight < DENSITY_MIN) {
            break;
        }
        total += weight * between(u.exp()) / (1.0 + (-w).exp());
    }
    (total * step).clamp(0.0, 1.0)
}

/// Standard errors beyond which a bound is out of sight.
const BOUND_MAX: f64 = 1e4;

/// A normal's tail beyond this is 0 to the smallest number.
const NORMAL_MAX: f64 = 40.0;

/// Densities of ln S below this are nothing beside any probability that matters.
const DENSITY_MIN: f64 = 1e-30;

/// A step over ln S that is small beside the width of its density, and of where a normal tail that far
/// out passes from 0 to 1; with few degrees of freedom the density is skewed and wants smaller ones.
fn deviation_step(degrees_of_freedom: f64, noncentrality: f64) -> f64 {
    (0.5 / (2.0 * degrees_of_freedom + noncentrality * noncentrality).sqrt()).min(0.15)
}

/// The density of u = ln S, where S squared is chi-squared over its degrees of freedom.
fn deviation_density(u: f64, degrees_of_freedom: f64) -> f64 {
    let n = degrees_of_freedom;
    let scale = (n / std::f64::consts::PI).sqrt() * (-stirling_error(n / 2.0)).exp();
    scale * (n * (u - (2.0 * u).exp_m1() / 2.0)).exp()
}

/// P(X <= x) for chi-squared X.
pub fn chi_squared_lower_tail(x: f64, degrees_of_freedom: f64) -> f64 {
    incomplete_gamma(degrees_of_freedom / 2.0, x / 2.0).0
}

/// The x with P(X <= x) = `probability` for chi-squared X.
///
/// Shape: `probability` strictly between 0 and 1.
pub fn chi_squared_lower_quantile(probability: f64, degrees_of_freedom: f64) -> f64 {
    smallest_double(0.0, f64::MAX, |x| {
        chi_squared_lower_tail(x, degrees_of_freedom) >= probability
    })
}

/// P(X >= x) for F with so many degrees of freedom in the numerator and the denominator.
pub fn f_upper_tail(x: f64, numerator: f64, denominator: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    let scaled = numerator * x;
    if scaled.is_infinite() {
        return 0.0;
    }
    let sum = scaled + denominator;
    let (tail, _) = incomplete_beta(
        denominator / 2.0,
        numerator / 2.0,
        denominator / sum,
        scaled / sum,
    );
    tail
}

/// Steps after which a continued fraction or series is taken as it is. They converge in about
/// the square root of the largest parameter, which 1e10 does not exceed.
const STEPS_MAX: u32 = 200_000;

/// The regularised incomplete beta function I_x(a, b) and its complement, the smaller of them to
/// full precision. `y` is 1 - `x`, which the caller knows without the subtraction.
///
/// # Source
/// Didonato & Morris 1992, the continued fraction of their BFRAC: unlike the classic one it takes
/// no difference of nearly equal numbers where `x` is near 1 and `a` is large.
fn incomplete_beta(a: f64, b: f64, x: f64, y: f64) -> (f64, f64) {
    if x <= 0.0 {
        return (0.0, 1.0);
    }
    if y <= 0.0 {
        return (1.0, 0.0);
    }
    if a * y < b * x {
        let (upper, lower) = incomplete_beta(b, a, y, x);
        return (lower, upper);
    }
    let offset = a * y - b * x + 1.0;
    let numerator = |m: f64| {
        let twice = a + 2.0 * m - 1.0;
        (a + m - 1.0) / twice * ((a + b + m - 1.0) / twice) * m * (b - m) * x * x
    };
    let denominator = |m: f64| {
        m + m * (b - m) * x / (a + 2.0 * m - 1.0)
            + (a + m) / (a + 2.0 * m + 1.0) * (offset + m * (1.0 + y))
    };
    let first = a / (a + 1.0) * offset;
    let lower = beta_power_terms(a, b, x, y) / continued_fraction(first, numerator, denominator);
    (lower, 1.0 - lower)
}

/// The regularised incomplete gamma functions P(a, x) and Q(a, x), the smaller of them to full
/// precision.
fn incomplete_gamma(a: f64, x: f64) -> (f64, f64) {
    if x <= 0.0 {
        return (0.0, 1.0);
    }
    if x.is_infinite() {
        return (1.0, 0.0);
    }
    // x^a e^-x / Gamma(a)
    let power_terms =
        (a / std::f64::consts::TAU).sqrt() * (-stirling_error(a) - deviance(a, x)).exp();
    if x < a + 1.0 {
        let (mut term, mut sum, mut divisor) = (1.0 / a, 1.0 / a, a);
        for _ in 0..STEPS_MAX {
            divisor += 1.0;
            term *= x / divisor;
            sum += term;
            if term <= sum * f64::EPSILON / 4.0 || term.is_nan() {
                break;
            }
        }
        let lower = power_terms * sum;
        return (lower, 1.0 - lower);
    }
    let fraction = continued_fraction(x + 1.0 - a, |m| m * (a - m), |m| x + 2.0 * m + 1.0 - a);
    let upper = power_terms / fraction;
    (1.0 - upper, upper)
}

/// `first` + n(1) / (d(1) + n(2) / (d(2) + ...)) by the modified Lentz method.
fn continued_fraction(
    first: f64,
    numerator: impl Fn(f64) -> f64,
    denominator: impl Fn(f64) -> f64,
) -> f64 {
    let nonzero = |value: f64| {
        if value.abs() < f64::MIN_POSITIVE {
            f64::MIN_POSITIVE
        } else {
            value
        }
    };
    let mut fraction = nonzero(first);
    let (mut c, mut d) = (fraction, 0.0);
    for step in 1..STEPS_MAX {
        let m = f64::from(step);
        let (a, b) = (numerator(m), denominator(m));
        d = 1.0 / nonzero(b + a * d);
        c = nonzero(b + a / c);
        let factor = c * d;
        fraction *= factor;
        if (factor - 1.0).abs() <= f64::EPSILON || factor.is_nan() {
            break;
        }
    }
    fraction
}

/// x^a y^b / B(a, b), with `y` = 1 - `x`.
///
/// # Source
/// Loader 2000: Stirling's leading terms cancel on paper instead of in doubles.
fn beta_power_terms(a: f64, b: f64, x: f64, y: f64) -> f64 {
    let n = a + b;
    let exponent = stirling_error(n)
        - stirling_error(a)
        - stirling_error(b)
        - deviance(a, n * x)
        - deviance(b, n * y);
    (a * (b / n) / std::f64::consts::TAU).sqrt() * exponent.exp()
}

/// What Stirling's formula misses of ln Gamma(z + 1).
fn stirling_error(z: f64) -> f64 {
    let mut z = z;
    let mut error = 0.0;
    while z < 15.0 {
        error += (z + 0.5) * (1.0 / z).ln_1p() - 1.0;
        z += 1.0;
    }
    let square = z * z;
    let series = 1.0 / 1188.0 - 691.0 / 360_360.0 / square;
    let series = 1.0 / 1680.0 - series / square;
    let series = 1.0 / 1260.0 - series / square;
    let series = 1.0 / 360.0 - series / square;
    error + (1.0 / 12.0 - series / square) / z
}

/// x ln(x / mean) + mean - x, without cancellation where the two are close.
fn deviance(x: f64, mean: f64) -> f64 {
    let difference = x - mean;
    if difference.abs() >= 0.1 * (x + mean) {
        return x * (x / mean).ln() + mean - x;
    }
    let ratio = difference / (x + mean);
    let square = ratio * ratio;
    let mut sum = difference * ratio;
    let mut term = 2.0 * x * ratio;
    for odd in 1..100_u32 {
        term *= square;
        let next = sum + term / f64::from(2 * odd + 1);
        if next.to_bits() == sum.to_bits() {
            break;
        }
        sum = next;
    }
    sum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn cases(table: &str) -> Vec<Value> {
        let oracle: Value =
            serde_json::from_str(include_str!("../oracle/distributions.json")).unwrap();
        let cases = oracle[table].as_array().unwrap().clone();
        assert!(cases.len() > 10, "{table}");
        cases
    }

    fn number(value: &Value) -> f64 {
        value.as_f64().unwrap()
    }

    #[test]
    fn what_is_far_above_the_noise_is_certain() {
        for degrees_of_freedom in [1.0, 8.0, 1e6] {
            for noncentrality in [1e3, 1e6, 1e300, f64::INFINITY] {
                let tail = |sign: f64| {
                    noncentral_t_upper_tail(4.3, degrees_of_freedom, sign * noncentrality)
                };
                let case = format!("{degrees_of_freedom} {noncentrality}");
                assert_eq!([tail(1.0), tail(-1.0)], [1.0, 0.0], "{case}");
            }
        }
    }

    /// Of what is off, how far the worst is.
    fn worst(found: impl Iterator<Item = (f64, f64, String)>) -> (f64, String) {
        found
            .map(|(ours, theirs, case)| ((ours / theirs - 1.0).abs(), case))
            .map(|(off, case)| (if off.is_nan() { f64::INFINITY } else { off }, case))
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap()
    }

    #[track_caller]
    fn assert_within(
        tolerance: f64,
        table: &str,
        pick: impl Fn(&Value) -> bool,
        ours_theirs: impl Fn(&Value) -> (f64, f64),
    ) {
        let (off, case) = worst(cases(table).iter().filter(|case| pick(case)).map(|case| {
            let (ours, theirs) = ours_theirs(case);
            (ours, theirs, case.to_string())
        }));
        assert!(off <= tolerance, "{off:e}: {case}");
    }

    /// The points of the table whose probability is 0.5 have quantiles near 0, where a relative
    /// difference means nothing.
    fn in_tail(case: &Value) -> bool {
        number(&case["p"]) < 0.4
    }

    #[test]
    fn normal_is_that_of_the_table() {
        let (x, p) = (|c: &Value| number(&c["x"]), |c: &Value| number(&c["p"]));
        assert_within(
            1e-11,
            "normal",
            |_| true,
            |c| (normal_upper_tail(x(c)), p(c)),
        );
        assert_within(1e-11, "normal", in_tail, |c| {
            (normal_upper_quantile(p(c)), x(c))
        });
    }

    #[test]
    fn t_is_that_of_the_table() {
        let (x, p) = (|c: &Value| number(&c["x"]), |c: &Value| number(&c["p"]));
        let freedom = |c: &Value| number(&c["df"]);
        assert_within(
            1e-11,
            "t",
            |_| true,
            |c| (t_upper_tail(x(c), freedom(c)), p(c)),
        );
        assert_within(1e-11, "t", in_tail, |c| {
            (t_upper_quantile(p(c), freedom(c)), x(c))
        });
    }

    #[test]
    fn chi_squared_is_that_of_the_table() {
        let (x, p) = (|c: &Value| number(&c["x"]), |c: &Value| number(&c["p"]));
        let freedom = |c: &Value| number(&c["df"]);
        let lower = |c: &Value| c["tail"] == "lower";
        let table = "chi_squared";
        assert_within(1e-11, table, lower, |c| {
            (chi_squared_lower_tail(x(c), freedom(c)), p(c))
        });
        assert_within(1e-11, table, lower, |c| {
            (chi_squared_lower_quantile(p(c), freedom(c)), x(c))
        });
    }

    #[test]
    fn f_is_that_of_the_table() {
        let (x, p) = (|c: &Value| number(&c["x"]), |c: &Value| number(&c["p"]));
        let freedom = |c: &Value| (number(&c["df"][0]), number(&c["df"][1]));
        assert_within(
            1e-11,
            "f",
            |_| true,
            |c| {
                let (first, second) = freedom(c);
                (f_upper_tail(x(c), first, second), p(c))
            },
        );
    }

    /// `oracle/power.py`; to 1e-9, which no power needs.
    #[test]
    fn two_one_sided_tests_are_those_of_the_table() {
        let oracle: Value = serde_json::from_str(include_str!("../oracle/power.json")).unwrap();
        let cases = oracle["two_one_sided"].as_array().unwrap();
        assert!(cases.len() > 5);
        for case in cases {
            let numbers: Vec<f64> = case.as_array().unwrap().iter().map(number).collect();
            let [lower, upper, critical, freedom, p] = numbers[..] else {
                panic!("{case}")
            };
            let found = two_one_sided_probability(lower, upper, critical, freedom);
            assert!((found - p).abs() < 1e-9, "{found}: {case}");
            let mirrored = two_one_sided_probability(-upper, -lower, critical, freedom);
            assert!((mirrored - p).abs() < 1e-9, "{mirrored}: {case}");
        }
        // Bounds out of sight, none between them, and a known deviation.
        let infinite = two_one_sided_probability(f64::NEG_INFINITY, f64::INFINITY, 2.0, 7.0);
        assert!((infinite - 1.0).abs() < 1e-9, "{infinite}");
        assert_eq!(two_one_sided_probability(1.0, 1.0, 2.0, 7.0).to_bits(), 0);
        let known = two_one_sided_probability(-3.0, 3.0, 1.5, f64::INFINITY);
        assert!((known - (1.0 - 2.0 * normal_upper_tail(1.5))).abs() < 1e-12);
    }

    #[test]
    fn no_number_gives_no_number() {
        assert!(noncentral_t_upper_tail(f64::NAN, 3.0, 1.0).is_nan());
        assert!(normal_upper_tail(f64::NAN).is_nan());
        assert!(t_upper_tail(f64::NAN, 3.0).is_nan());
        assert!(chi_squared_lower_tail(f64::NAN, 3.0).is_nan());
        assert!(f_upper_tail(f64::NAN, 3.0, 4.0).is_nan());
    }

    #[test]
    fn ends_of_the_line() {
        for (tail, expected) in [
            (t_upper_tail(0.0, 3.0), 0.5),
            (t_upper_tail(f64::NEG_INFINITY, 3.0), 1.0),
            (t_upper_tail(1e200, 3.0), 0.0),
            (chi_squared_lower_tail(0.0, 3.0), 0.0),
            (chi_squared_lower_tail(f64::INFINITY, 3.0), 1.0),
            (f_upper_tail(0.0, 3.0, 4.0), 1.0),
            (f_upper_tail(f64::INFINITY, 3.0, 4.0), 0.0),
        ] {
            assert!((tail - expected).abs() < 1e-15, "{tail} {expected}");
        }
    }

    proptest! {
        /// F with one degree of freedom above is the square of t; with infinitely many below it
        /// would be chi-squared.
        #[test]
        fn t_squared_is_f(t in 0.0..20.0_f64, freedom in 0.5..1e6_f64) {
            let (two_sided, f) = (2.0 * t_upper_tail(t, freedom), f_upper_tail(t * t, 1.0, freedom));
            prop_assert!((two_sided - f).abs() <= 1e-12 * f, "{} {}", two_sided, f);
        }

        #[test]
        fn quantiles_invert_tails(
            exponent in -12.0..-0.4_f64,
            first in 0.5..1e4_f64,
        ) {
            let p = 10_f64.powf(exponent);
            for back in [
                t_upper_tail(t_upper_quantile(p, first), first),
                chi_squared_lower_tail(chi_squared_lower_quantile(p, first), first),
            ] {
                prop_assert!((back / p - 1.0).abs() < 1e-9, "{} {}", back, p);
            }
        }

        /// Both tails of the noncentral t, and the central one, and the normal one that it nears.
        #[test]
        fn noncentral_t_joins_its_neighbours(
            t in -20.0..20.0_f64,
            freedom in 1.0..2000.0_f64,
            noncentrality in -12.0..12.0_f64,
        ) {
            let upper = noncentral_t_upper_tail(t, freedom, noncentrality);
            let lower = noncentral_t_upper_tail(-t, freedom, -noncentrality);
            prop_assert!((upper + lower - 1.0).abs() < 1e-10, "{} {}", upper, lower);
            let central = noncentral_t_upper_tail(t.abs(), freedom, 0.0);
            let expected = t_upper_tail(t.abs(), freedom);
            prop_assert!((central - expected).abs() <= 1e-9 * expected.max(1e-15));
            let many = noncentral_t_upper_tail(t / 5.0, 1e7, noncentrality);
            prop_assert!((many - normal_upper_tail(t / 5.0 - noncentrality)).abs() < 1e-5);
        }

        #[test]
        fn the_two_tails_make_one(x in 0.0..500.0_f64, freedom in 0.5..500.0_f64) {
            let (lower, upper) = incomplete_gamma(freedom / 2.0, x / 2.0);
            prop_assert!((lower + upper - 1.0).abs() < 1e-15);
            prop_assert!((0.0..=1.0).contains(&lower) && (0.0..=1.0).contains(&upper));
        }
    }
}
