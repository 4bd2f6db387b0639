//! What a covariate that moved, such as offered load, makes of an effect.
//!
//! A sensitivity beside the effect, which never changes a verdict. Two forms: arms of independent
//! observations, each with a slope of its own and one in common ([`covariate_of_arms`]), and block
//! effects against the covariate's own block effects ([`covariate_of_blocks`]).
//!
//! Both take logarithms on both sides: a slope of 1 is a rate that follows the covariate in full, one
//! of 0 a rate that does not care. An adjusted effect is believed only where [`AdjustedEffect::trust`]
//! says so: nothing is adjusted by a slope that nobody knows.

use serde::Serialize;

use crate::distribution::{f_upper_tail, t_upper_quantile, t_upper_tail};
use crate::error::{
    StatsError, require_count, require_held, require_length, require_sample, significance,
};
use crate::hodges_lehmann::Interval;
use crate::moments::{Moments, sum};

/// An interval of the slope that holds 0 and is longer than this tells nothing: of a rate that follows
/// the covariate (1) and one that does not (0) it excludes neither, or as much on the other side.
pub const SLOPE_INTERVAL_MAX: f64 = 1.0;

/// How much the logarithm of a rate changes with that of the covariate, by least squares.
///
/// Units: none, a ratio of log ratios.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Slope {
    /// The slope.
    pub estimate: f64,
    /// Student's t interval.
    pub interval: Interval,
    /// Two-sided, against a slope of 0.
    pub p: f64,
    /// Of the residuals.
    pub degrees_of_freedom: f64,
}

impl Slope {
    /// Whether the data tell it at all: its interval excludes 0, or is no longer than
    /// [`SLOPE_INTERVAL_MAX`]. If not, the covariate hardly moved beside the noise.
    pub fn is_known(&self) -> bool {
        !self.interval.contains(0.0) || 2.0 * self.interval.half_width() <= SLOPE_INTERVAL_MAX
    }

    /// What an effect adjusted by it is worth, where there is one slope for all.
    fn trust(&self) -> Trust {
        if self.is_known() {
            Trust::Supported
        } else {
            Trust::SlopeUnknown
        }
    }
}

/// An F test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FTest {
    /// The ratio of mean squares; `None` where nothing is left over to compare with, and the p is then
    /// 0 or 1.
    pub f: Option<f64>,
    /// Degrees of freedom of the numerator and the denominator.
    pub degrees_of_freedom: (f64, f64),
    /// The probability of a ratio as large by chance.
    pub p: f64,
}

/// Whether an adjusted effect can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// The slope is known, and nothing speaks against one for all.
    Supported,
    /// The data do not support a common slope: the effect depends on where it is asked for.
    SlopesDiffer,
    /// The covariate hardly moved, so that nobody knows the slope.
    SlopeUnknown,
}

/// An effect at equal values of the covariate.
///
/// Units: log ratios.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AdjustedEffect {
    /// The effect without adjustment: the difference of the means, the mean of the block effects.
    pub raw: f64,
    /// How far the covariate's mean lies above the reference's.
    pub covariate_shift: f64,
    /// The effect at equal values of the covariate.
    pub estimate: f64,
    /// Student's t interval.
    pub interval: Interval,
    /// Two-sided, against no effect.
    pub p: f64,
    /// Whether to rely on it.
    pub trust: Trust,
}

/// One arm of independent observations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CovariateArm<'a> {
    /// The caller's name for it.
    pub name: &'a str,
    /// Logarithms of what was observed.
    pub values: &'a [f64],
    /// Logarithms of the covariate, one for each value.
    pub covariate: &'a [f64],
}

/// What a covariate makes of the effects of some arms against the first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmsCovariate {
    /// Each arm's own slope, in the order given.
    pub slopes: Vec<Slope>,
    /// Whether the arms share a slope: the interaction of arm and covariate.
    pub interaction: FTest,
    /// The slope under the assumption that they do.
    pub common_slope: Slope,
    /// The effect of each arm but the first, at the common mean of the covariate.
    pub adjusted: Vec<AdjustedEffect>,
}

/// Analysis of covariance: each arm's slope, whether they share one, and the effects against the first
/// arm at equal values of the covariate.
///
/// Shape: two arms or more, each with three values or more and a covariate that varies within it.
///
/// # Errors
/// [`StatsError::Empty`], [`StatsError::NotFinite`], [`StatsError::TooFew`],
/// [`StatsError::UnequalLengths`], [`StatsError::ConstantCovariate`], [`StatsError::TooLarge`],
/// [`StatsError::Confidence`].
///
/// # Source
/// Fisher 1932. Oracle: statsmodels, `oracle/covariate.py`.
///
/// # Examples
/// ```
/// use fwdlab_stats::{CovariateArm, Trust, covariate_of_arms};
/// // The variant's rate is the same, had it been offered as much.
/// let base = CovariateArm {
///     name: "base",
///     values: &[0.002, 0.009, 0.021, 0.032, 0.038],
///     covariate: &[0.00, 0.01, 0.02, 0.03, 0.04],
/// };
/// let patched = CovariateArm {
///     name: "patched",
///     values: &[0.031, 0.039, 0.052, 0.058, 0.071],
///     covariate: &[0.03, 0.04, 0.05, 0.06, 0.07],
/// };
/// let found = covariate_of_arms(&[base, patched], 0.95)?;
/// assert!((found.common_slope.estimate - 1.0).abs() < 0.05);
/// assert!(found.interaction.p > 0.5);
/// let effect = &found.adjusted[0];
/// assert!((effect.raw - 0.03).abs() < 0.001 && effect.interval.contains(0.0));
/// assert_eq!(effect.trust, Trust::Supported);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn covariate_of_arms(
    arms: &[CovariateArm<'_>],
    confidence: f64,
) -> Result<ArmsCovariate, StatsError> {
    let alpha = significance(confidence)?;
    require_count("covariate, arms", 2, arms.len())?;
    let lines = arms
        .iter()
        .map(|arm| Line::new(arm.name, arm.values, arm.covariate))
        .collect::<Result<Vec<_>, _>>()?;
    let slopes = lines
        .iter()
        .map(|line| {
            line.residual()
                .slope(line.slope(), line.covariate_squares, alpha)
        })
        .collect();

    let count: f64 = lines.iter().map(|line| line.count).sum();
    let sides = lines.len() as f64;
    let covariate_squares = sum(lines.iter().map(|line| line.covariate_squares));
    let common = sum(lines.iter().map(|line| line.products)) / covariate_squares;
    let residual = Residual {
        squares: sum(lines.iter().map(|line| line.residual_squares(common))),
        degrees_of_freedom: count - sides - 1.0,
    };
    let interaction = f_test(
        // What separate slopes explain beyond the common one, without a difference of large sums.
        sum(lines
            .iter()
            .map(|line| (line.slope() - common).powi(2) * line.covariate_squares)),
        sides - 1.0,
        sum(lines.iter().map(|line| line.residual_squares(line.slope()))),
        count - 2.0 * sides,
    );
    let common_slope = residual.slope(common, covariate_squares, alpha);
    let trust = if interaction.p <= alpha {
        Trust::SlopesDiffer
    } else {
        common_slope.trust()
    };
    let reference = &lines[0];
    let adjusted = lines[1..]
        .iter()
        .map(|line| {
            let raw = line.value_mean - reference.value_mean;
            let shift = line.covariate_mean - reference.covariate_mean;
            let scale =
                1.0 / line.count + 1.0 / reference.count + shift * shift / covariate_squares;
            let (interval, p) = residual.judged(raw - common * shift, scale, alpha);
            AdjustedEffect {
                raw,
                covariate_shift: shift,
                estimate: raw - common * shift,
                interval,
                p,
                trust,
            }
        })
        .collect();
    Ok(ArmsCovariate {
        slopes,
        interaction,
        common_slope,
        adjusted,
    })
}

/// What a covariate makes of the effect of one variant by blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BlocksCovariate {
    /// How much a block's effect changes with the covariate's.
    pub slope: Slope,
    /// The effect where the covariate is the same on both sides.
    pub adjusted: AdjustedEffect,
}

/// Block effects against the covariate's own block effects: the slope, and the effect where both sides
/// have the same covariate.
///
/// Whatever both sides of a block share, a fast or a slow hour, is in neither.
///
/// Shape: three blocks or more, one log ratio of each a block, the covariate's not all equal.
///
/// # Errors
/// As [`covariate_of_arms`], with `subject` as theirs.
///
/// # Source
/// Ordinary least squares. Oracle: statsmodels, `oracle/covariate.py`.
///
/// # Examples
/// ```
/// use fwdlab_stats::covariate_of_blocks;
/// let effects = [-0.020, -0.031, -0.009, -0.041, -0.030, -0.021];
/// let offered = [-0.019, -0.030, -0.010, -0.040, -0.031, -0.020];
/// let found = covariate_of_blocks("patched", &effects, &offered, 0.95)?;
/// assert!((found.slope.estimate - 1.0).abs() < 0.1);
/// assert!(found.adjusted.raw < -0.02 && found.adjusted.interval.contains(0.0));
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn covariate_of_blocks(
    subject: &str,
    block_effects: &[f64],
    covariate_effects: &[f64],
    confidence: f64,
) -> Result<BlocksCovariate, StatsError> {
    let alpha = significance(confidence)?;
    let line = Line::new(subject, block_effects, covariate_effects)?;
    let own = line.slope();
    let residual = line.residual();
    let slope = residual.slope(own, line.covariate_squares, alpha);
    let shift = line.covariate_mean;
    let estimate = line.value_mean - own * shift;
    let scale = 1.0 / line.count + shift * shift / line.covariate_squares;
    let (interval, p) = residual.judged(estimate, scale, alpha);
    let adjusted = AdjustedEffect {
        raw: line.value_mean,
        covariate_shift: shift,
        estimate,
        interval,
        p,
        trust: slope.trust(),
    };
    Ok(BlocksCovariate { slope, adjusted })
}

/// Fewer points have no line with anything left over.
const POINTS_MIN: usize = 3;

/// Values over a covariate, with their sums of squares and products around both means.
struct Line {
    count: f64,
    value_mean: f64,
    covariate_mean: f64,
    /// Deviations from the means, value and covariate.
    deviations: Vec<(f64, f64)>,
    covariate_squares: f64,
    products: f64,
}

impl Line {
    fn new(subject: &str, values: &[f64], covariate: &[f64]) -> Result<Self, StatsError> {
        let of_covariate = format!("{subject}, covariate");
        require_sample(subject, POINTS_MIN, values)?;
        require_length(&of_covariate, values.len(), covariate.len())?;
        require_sample(&of_covariate, POINTS_MIN, covariate)?;
        let of_values = Moments::around(values[0], values);
        let moments = Moments::around(covariate[0], covariate);
        require_held(
            subject,
            of_values.squares.is_finite() && moments.squares.is_finite(),
        )?;
        if moments.squares == 0.0 {
            return Err(StatsError::ConstantCovariate {
                subject: of_covariate,
            });
        }
        let deviations: Vec<(f64, f64)> = values
            .iter()
            .zip(covariate)
            .map(|(value, x)| {
                (
                    (value - values[0]) - of_values.offset,
                    (x - covariate[0]) - moments.offset,
                )
            })
            .collect();
        Ok(Self {
            count: values.len() as f64,
            value_mean: values[0] + of_values.offset,
            covariate_mean: covariate[0] + moments.offset,
            covariate_squares: moments.squares,
            products: sum(deviations.iter().map(|(value, x)| value * x)),
            deviations,
        })
    }

    fn slope(&self) -> f64 {
        self.products / self.covariate_squares
    }

    /// What its own slope leaves over.
    fn residual(&self) -> Residual {
        Residual {
            squares: self.residual_squares(self.slope()),
            degrees_of_freedom: self.count - 2.0,
        }
    }

    /// What a line of that slope through the means leaves over.
    fn residual_squares(&self, slope: f64) -> f64 {
        sum(self
            .deviations
            .iter()
            .map(|(value, x)| (value - slope * x).powi(2)))
    }
}

/// What a fit left over.
struct Residual {
    squares: f64,
    degrees_of_freedom: f64,
}

impl Residual {
    /// The interval of an estimate whose variance is `scale` times that of the residuals, and its
    /// two-sided p against 0.
    fn judged(&self, estimate: f64, scale: f64, alpha: f64) -> (Interval, f64) {
        let error = (self.squares / self.degrees_of_freedom * scale).sqrt();
        let reach = t_upper_quantile(alpha / 2.0, self.degrees_of_freedom) * error;
        let interval = Interval::around(estimate, reach, 1.0 - alpha);
        let p = if estimate == 0.0 {
            1.0
        } else {
            // Without residuals infinitely far from 0.
            2.0 * t_upper_tail(estimate.abs() / error, self.degrees_of_freedom)
        };
        (interval, p)
    }

    fn slope(&self, estimate: f64, covariate_squares: f64, alpha: f64) -> Slope {
        let (interval, p) = self.judged(estimate, 1.0 / covariate_squares, alpha);
        Slope {
            estimate,
            interval,
            p,
            degrees_of_freedom: self.degrees_of_freedom,
        }
    }
}

fn f_test(explained: f64, numerator: f64, residual: f64, denominator: f64) -> FTest {
    let ratio = (explained / numerator) / (residual / denominator);
    FTest {
        f: ratio.is_finite().then_some(ratio),
        degrees_of_freedom: (numerator, denominator),
        // Nothing to explain and nothing left over.
        p: if ratio.is_nan() {
            1.0
        } else {
            f_upper_tail(ratio, numerator, denominator)
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn arm<'a>(name: &'a str, values: &'a [f64], covariate: &'a [f64]) -> CovariateArm<'a> {
        CovariateArm {
            name,
            values,
            covariate,
        }
    }

    #[test]
    fn bad_input_is_refused_by_name() {
        let good = arm("base", &[1.0, 2.0, 4.0], &[1.0, 2.0, 3.0]);
        let refusal =
            |second: CovariateArm<'_>| covariate_of_arms(&[good, second], 0.95).unwrap_err();
        let refusals = [
            covariate_of_arms(&[good], 0.95).unwrap_err(),
            refusal(arm("b", &[], &[])),
            refusal(arm("b", &[1.0, 2.0], &[1.0, 2.0])),
            refusal(arm("b", &[1.0, 2.0, 3.0], &[1.0, 2.0])),
            refusal(arm("b", &[1.0, 2.0, f64::NAN], &[1.0, 2.0, 3.0])),
            refusal(arm("b", &[1.0, 2.0, 3.0], &[1.0, f64::INFINITY, 3.0])),
            refusal(arm("b", &[1.0, 2.0, 3.0], &[0.1; 3])),
            refusal(arm("b", &[1e200, -1e200, 0.0], &[1.0, 2.0, 3.0])),
            covariate_of_arms(&[good, good], 95.0).unwrap_err(),
            covariate_of_blocks("v", &[0.1; 3], &[0.0; 3], 0.95).unwrap_err(),
            covariate_of_blocks("v", &[0.1; 3], &[0.0; 4], 0.95).unwrap_err(),
        ];
        insta::assert_snapshot!(refusals.map(|error| error.to_string()).join("\n"), @r"
covariate, arms: too few values (1); give at least 2
b: no values (0 given); give at least one
b: too few values (2); give at least 3
b, covariate: 2 values where 3 are needed; give one for each
b: value 2 is not finite (NaN); give finite numbers only
b, covariate: value 1 is not finite (inf); give finite numbers only
b, covariate: it does not vary (0 spread), so that it has no slope; leave the adjustment out
b: values too large to reckon with; give them in a larger unit
confidence: not between 0.5 and 1 (95); give for example 0.95
v, covariate: it does not vary (0 spread), so that it has no slope; leave the adjustment out
v, covariate: 4 values where 3 are needed; give one for each
");
    }

    #[test]
    fn points_on_a_line_have_no_doubt() {
        let x = [0.0, 1.0, 2.0, 3.0];
        let found = covariate_of_arms(
            &[
                arm("a", &x, &x),
                arm("b", &x.map(|x| x + 1.0), &x),
                arm("c", &x.map(|x| x + 2.0), &x),
            ],
            0.95,
        )
        .unwrap();
        assert_eq!(found.interaction.f, None);
        assert!((found.interaction.p - 1.0).abs() < 1e-12);
        assert!(found.common_slope.p < 1e-12 && found.common_slope.is_known());
        assert!((found.adjusted[1].estimate - 2.0).abs() < 1e-12);
        assert!(found.adjusted[1].p < 1e-12);
        // Other slopes on lines of their own: as certain that they differ.
        let crossed =
            covariate_of_arms(&[arm("a", &x, &x), arm("b", &x.map(|x| -x), &x)], 0.95).unwrap();
        assert!(crossed.interaction.p < 1e-12);
        assert_eq!(crossed.adjusted[0].trust, Trust::SlopesDiffer);
        let flat = covariate_of_blocks("v", &[0.5; 4], &x, 0.95).unwrap();
        assert!((flat.slope.p - 1.0).abs() < 1e-12 && flat.slope.is_known());
    }

    /// The same scatter around the same line, over a covariate that moves a hundredth as far.
    #[test]
    fn a_covariate_that_hardly_moved_tells_no_slope() {
        let offered = [-0.02, -0.01, 0.0, 0.01, 0.02, 0.03];
        let scatter = [0.001, -0.001, 0.0005, 0.0, -0.001, 0.001];
        let judged = |scale: f64| {
            let offered = offered.map(|x| x * scale);
            let mut effects = scatter;
            for (effect, x) in effects.iter_mut().zip(offered) {
                *effect += 0.5 * x;
            }
            covariate_of_blocks("v", &effects, &offered, 0.95).unwrap()
        };
        assert_eq!(judged(1.0).adjusted.trust, Trust::Supported);
        let narrow = judged(0.01);
        assert_eq!(narrow.adjusted.trust, Trust::SlopeUnknown);
        assert!(!narrow.slope.is_known());
        // A steep slope is known however long its interval.
        let effects = [0.0, 0.6, 0.9, 1.6, 1.9, 2.6];
        let steep = covariate_of_blocks("v", &effects, &offered, 0.95).unwrap();
        assert!(2.0 * steep.slope.interval.half_width() > SLOPE_INTERVAL_MAX);
        assert!(steep.slope.is_known());
    }

    fn points() -> impl Strategy<Value = Vec<(f64, f64)>> {
        let point = (-1.0..1.0_f64, -1.0..1.0_f64);
        prop::collection::vec(point, 3..12).prop_filter("a covariate that varies", |points| {
            points.iter().any(|(_, x)| (x - points[0].1).abs() > 1e-3)
        })
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-7 * (1.0 + a.abs().max(b.abs()))
    }

    proptest! {
        /// Rates in another unit are logarithms moved by a constant.
        #[test]
        fn units_do_not_matter_and_sides_mirror(
            first in points(),
            second in points(),
            unit in -20.0..20.0_f64,
            load_unit in -20.0..20.0_f64,
        ) {
            let of = |first: &[(f64, f64)], second: &[(f64, f64)], unit: f64, load_unit: f64| {
                let split = |points: &[(f64, f64)]| -> (Vec<f64>, Vec<f64>) {
                    points.iter().map(|(y, x)| (y + unit, x + load_unit)).unzip()
                };
                let ((y, x), (v, u)) = (split(first), split(second));
                covariate_of_arms(&[arm("a", &y, &x), arm("b", &v, &u)], 0.95).unwrap()
            };
            let plain = of(&first, &second, 0.0, 0.0);
            let moved = of(&first, &second, unit, load_unit);
            let mirrored = of(&second, &first, 0.0, 0.0);
            prop_assert!(close(plain.common_slope.estimate, moved.common_slope.estimate));
            prop_assert!(close(plain.common_slope.estimate, mirrored.common_slope.estimate));
            prop_assert!(close(plain.adjusted[0].estimate, moved.adjusted[0].estimate));
            prop_assert!(close(plain.adjusted[0].estimate, -mirrored.adjusted[0].estimate));
            prop_assert!(close(plain.adjusted[0].interval.lower, -mirrored.adjusted[0].interval.upper));
            prop_assert!((plain.interaction.p - mirrored.interaction.p).abs() < 1e-6);
            for slope in plain.slopes.iter().chain([&plain.common_slope]) {
                prop_assert!((0.0..=1.0).contains(&slope.p));
                prop_assert_eq!(slope.p <= 0.05, !slope.interval.contains(0.0));
            }
            // A common slope is a weighted mean of the arms' own.
            let own = [plain.slopes[0].estimate, plain.slopes[1].estimate];
            let between = own[0].min(own[1]) - 1e-9..=own[0].max(own[1]) + 1e-9;
            prop_assert!(between.contains(&plain.common_slope.estimate));
        }

        /// What is adjusted back to is what was put in.
        #[test]
        fn a_slope_put_in_is_taken_out(points in points(), slope in -3.0..3.0_f64) {
            let (effects, offered): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
            let plain = covariate_of_blocks("v", &effects, &offered, 0.95).unwrap();
            let sloped: Vec<f64> = points.iter().map(|(effect, x)| effect + slope * x).collect();
            let found = covariate_of_blocks("v", &sloped, &offered, 0.95).unwrap();
            prop_assert!(close(found.slope.estimate, plain.slope.estimate + slope));
            prop_assert!(close(found.adjusted.estimate, plain.adjusted.estimate));
            prop_assert!(close(found.adjusted.interval.upper, plain.adjusted.interval.upper));
            prop_assert!((found.adjusted.p - plain.adjusted.p).abs() < 1e-6);
        }
    }
}
