//! Verdicts on factorial designs: main effects and interactions, each a contrast of the variants.
//!
//! A contrast is a weighted sum of the variants' log rates. Its weights are those of least squares
//! on the variants, so that a main effect averages over the other factors' levels, each counting
//! the same, and every effect is cleared of the others. In blocks a contrast has a value in every
//! block and is judged as the effect of a variant is; of independent observations it is judged by
//! Welch's t of the weighted means. The main effects are one family of comparisons, the
//! interactions another.
//!
//! Interactions are those of two factors. In a design of all combinations, others change nothing in
//! them.

use serde::Serialize;

use crate::error::StatsError;
use crate::factorial::{Design, Factor};
use crate::independent::LogWelch;
use crate::least_squares::dot;
use crate::logarithms::logarithms;
use crate::two_sample_t::TwoSampleT;
use crate::verdict::{
    ComparisonEffects, ComparisonVerdict, VerdictSettings, family_verdicts, judged,
};
use crate::warning::Warning;

/// What a contrast is of: one factor for a main effect, two for an interaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContrastOf {
    /// Positions among the factors, rising.
    pub factors: Vec<usize>,
    /// The level of each, 1 or more; it is compared with level 0.
    pub levels: Vec<usize>,
}

/// What is concluded about a main effect or an interaction.
///
/// Units: log ratios. Of a main effect: of the rate at the level to that at level 0. Of an
/// interaction: of the rate with both levels to what the effects of each alone would make.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FactorialVerdict {
    /// Which it is.
    pub of: ContrastOf,
    /// The verdict.
    pub verdict: ComparisonVerdict,
}

/// What is concluded about a factorial design.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FactorialVerdicts {
    /// Every level but level 0 of every factor; one family of comparisons.
    pub main_effects: Vec<FactorialVerdict>,
    /// Of every pair of factors of which all combinations were measured; one family.
    pub interactions: Vec<FactorialVerdict>,
    /// What to beware of.
    pub warnings: Vec<Warning>,
}

/// Judges the factors of a design that was measured in blocks.
///
/// Shape: each factor has the level of every variant; `effects` has a row for every variant, with
/// its effect in every block, all against the same baseline (whose own are zero). `name` names a
/// contrast for readers.
///
/// # Errors
/// [`StatsError::UnequalLengths`], [`StatsError::NotEstimable`] where factors changed together,
/// [`StatsError::TooFew`] levels, and those of [`family_verdicts`].
///
/// # Source
/// Yates 1937, "The design and analysis of factorial experiments".
///
/// # Examples
/// ```
/// use fwdlab_stats::{Factor, VerdictSettings, block_factorial, format_effect};
/// let factors = [("rules", [0, 1, 0, 1]), ("conntrack", [0, 0, 1, 1])]
///     .map(|(name, levels)| Factor { name: name.to_owned(), levels: levels.to_vec() });
/// let noise = [0.001, -0.002, 0.0, 0.003, -0.001, 0.002, -0.003, 0.0];
/// // Both together cost 0.05 more than the sum of each alone.
/// let effects = [0.0, -0.10, -0.20, -0.35].map(|effect| noise.map(|n| effect * (1.0 + n)).to_vec());
/// let names = ["rules", "conntrack"];
/// let verdicts = block_factorial(&factors, &effects, &VerdictSettings::default(), |of| {
///     of.factors.iter().map(|at| names[*at]).collect::<Vec<_>>().join(" x ")
/// })?;
/// let interaction = &verdicts.interactions[0].verdict;
/// assert_eq!(interaction.name, "rules x conntrack");
/// assert_eq!(format_effect(interaction.estimate, None), "-4.9 %");
/// assert_eq!(interaction.verdict.words(), "different");
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn block_factorial(
    factors: &[Factor],
    effects: &[Vec<f64>],
    settings: &VerdictSettings,
    name: impl Fn(&ContrastOf) -> String,
) -> Result<FactorialVerdicts, StatsError> {
    let blocks = effects.first().map_or(0, Vec::len);
    if let Some(other) = effects.iter().find(|effects| effects.len() != blocks) {
        return Err(StatsError::UnequalLengths {
            subject: "factorial design, blocks".to_owned(),
            need: blocks,
            have: other.len(),
        });
    }
    let effects_of = |block: usize| effects.iter().map(move |row| row[block]).collect();
    let of_blocks: Vec<Vec<f64>> = (0..blocks).map(effects_of).collect();
    let mut warnings = Vec::new();
    let mut judge = |contrasts: Vec<Contrast>| {
        let comparisons: Vec<ComparisonEffects> = contrasts
            .iter()
            .map(|contrast| ComparisonEffects {
                name: name(&contrast.of),
                block_effects: of_blocks
                    .iter()
                    .map(|effects| dot(&contrast.weights, effects))
                    .collect(),
            })
            .collect();
        let family = family_verdicts(&comparisons, None, settings)?;
        warnings.extend(family.warnings);
        Ok(with_verdicts(contrasts, family.comparisons))
    };
    let (main_effects, interactions) = contrasts(factors, effects.len())?;
    Ok(FactorialVerdicts {
        main_effects: judge(main_effects)?,
        interactions: judge(interactions)?,
        warnings,
    })
}

/// Judges the factors of a design by independent observations.
///
/// Shape: each factor has the level of every variant; `observations` has a row for every variant,
/// of two observations or more, all positive. `name` names a contrast for readers.
///
/// Units: of the observations, any that all share.
///
/// # Errors
/// As [`block_factorial`], and those of [`crate::independent_verdicts`].
///
/// # Source
/// Yates 1937; Satterthwaite 1946. Oracle: `oracle/factorial.py`.
pub fn independent_factorial(
    factors: &[Factor],
    observations: &[Vec<f64>],
    settings: &VerdictSettings,
    name: impl Fn(&ContrastOf) -> String,
) -> Result<FactorialVerdicts, StatsError> {
    let logs = observations
        .iter()
        .enumerate()
        .map(|(variant, values)| logarithms(&format!("set {}", variant + 1), values))
        .collect::<Result<Vec<_>, _>>()?;
    let fewest = logs.iter().map(Vec::len).min().unwrap_or(0);
    let judge = |contrasts: Vec<Contrast>| {
        let tests = contrasts
            .iter()
            .map(|contrast| {
                let samples: Vec<(f64, &[f64])> = contrast
                    .weights
                    .iter()
                    .copied()
                    .zip(logs.iter().map(Vec::as_slice))
                    .collect();
                let name = name(&contrast.of);
                let test = TwoSampleT::welch_contrast(&name, &samples)?;
                let observations = fewest;
                Ok((name, LogWelch { test, observations }))
            })
            .collect::<Result<Vec<_>, StatsError>>()?;
        Ok(with_verdicts(contrasts, judged(&tests, settings)?))
    };
    let (main_effects, interactions) = contrasts(factors, observations.len())?;
    Ok(FactorialVerdicts {
        main_effects: judge(main_effects)?,
        interactions: judge(interactions)?,
        warnings: Vec::new(),
    })
}

fn with_verdicts(
    contrasts: Vec<Contrast>,
    verdicts: Vec<ComparisonVerdict>,
) -> Vec<FactorialVerdict> {
    contrasts
        .into_iter()
        .zip(verdicts)
        .map(|(contrast, verdict)| FactorialVerdict {
            of: contrast.of,
            verdict,
        })
        .collect()
}

/// A weighted sum of the variants' log rates.
struct Contrast {
    of: ContrastOf,
    /// One a variant; they sum up to zero.
    weights: Vec<f64>,
}

/// Weights below this are rounding: true ones are 1 / levels or more.
const WEIGHT_ROUNDING: f64 = 1e-9;

/// The contrasts of the main effects, and those of the interactions of two factors.
fn contrasts(
    factors: &[Factor],
    variants: usize,
) -> Result<(Vec<Contrast>, Vec<Contrast>), StatsError> {
    let mut terms: Vec<Vec<usize>> = (0..factors.len()).map(|factor| vec![factor]).collect();
    for second in 0..factors.len() {
        for first in 0..second {
            if factors[first].is_crossed_with(&factors[second]) {
                terms.push(vec![first, second]);
            }
        }
    }
    let design = Design::new(variants, factors, None, terms)?;
    // What each coefficient makes of each variant: the fit is linear, so that of one variant at a
    // time tells its weights.
    let coefficients = (0..variants)
        .map(|variant| {
            let mut alone = vec![0.0; variants];
            alone[variant] = 1.0;
            Ok(design.fit(&alone, None)?.coefficients())
        })
        .collect::<Result<Vec<Vec<f64>>, StatsError>>()?;
    let (mut main_effects, mut interactions) = (Vec::new(), Vec::new());
    for (number, term) in design.terms.iter().enumerate() {
        let columns = design.columns_of(number);
        for (levels, of_coefficients) in term.contrast_weights() {
            let weight = |coefficients: &Vec<f64>| {
                let weight = dot(&of_coefficients, &coefficients[columns.clone()]);
                if weight.abs() < WEIGHT_ROUNDING {
                    0.0
                } else {
                    weight
                }
            };
            let contrast = Contrast {
                weights: coefficients.iter().map(weight).collect(),
                of: ContrastOf {
                    factors: term.factors.clone(),
                    levels,
                },
            };
            if term.factors.len() == 1 {
                main_effects.push(contrast);
            } else {
                interactions.push(contrast);
            }
        }
    }
    Ok((main_effects, interactions))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::factorial::factorial_analysis;
    use crate::verdict::Verdict;

    fn factor(name: &str, levels: &[usize]) -> Factor {
        Factor {
            name: name.to_owned(),
            levels: levels.to_vec(),
        }
    }

    fn named(of: &ContrastOf) -> String {
        let parts = of.factors.iter().zip(&of.levels);
        let parts: Vec<String> = parts
            .map(|(factor, level)| format!("{factor}.{level}"))
            .collect();
        parts.join("x")
    }

    fn weights(factors: &[Factor], variants: usize) -> Vec<(String, Vec<f64>)> {
        let (main_effects, interactions) = contrasts(factors, variants).unwrap();
        main_effects
            .into_iter()
            .chain(interactions)
            .map(|contrast| {
                let round = |weight: &f64| (weight * 1e9).round() / 1e9;
                (
                    named(&contrast.of),
                    contrast.weights.iter().map(round).collect(),
                )
            })
            .collect()
    }

    #[test]
    fn two_by_two() {
        let factors = [factor("a", &[0, 1, 0, 1]), factor("b", &[0, 0, 1, 1])];
        assert_eq!(
            weights(&factors, 4),
            [
                ("0.1".to_owned(), vec![-0.5, 0.5, -0.5, 0.5]),
                ("1.1".to_owned(), vec![-0.5, -0.5, 0.5, 0.5]),
                ("0.1x1.1".to_owned(), vec![1.0, -1.0, -1.0, 1.0]),
            ]
        );
    }

    #[test]
    fn a_factor_on_its_own_beside_two_that_are_crossed() {
        // The last variant changes the third factor alone: that is all its effect says.
        let factors = [
            factor("a", &[0, 1, 0, 1, 0]),
            factor("b", &[0, 0, 1, 1, 0]),
            factor("c", &[0, 0, 0, 0, 1]),
        ];
        let weights = weights(&factors, 5);
        assert_eq!(weights.len(), 4);
        assert_eq!(
            weights[2],
            ("2.1".to_owned(), vec![-1.0, 0.0, 0.0, 0.0, 1.0])
        );
        assert_eq!(weights[3].0, "0.1x1.1");
    }

    #[test]
    fn three_levels_are_told_against_the_first() {
        let factors = [
            factor("a", &[0, 1, 2, 0, 1, 2]),
            factor("b", &[0, 0, 0, 1, 1, 1]),
        ];
        let weights = weights(&factors, 6);
        let names: Vec<&str> = weights.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["0.1", "0.2", "1.1", "0.1x1.1", "0.2x1.1"]);
        assert_eq!(weights[1].1, [-0.5, 0.0, 0.5, -0.5, 0.0, 0.5]);
        assert_eq!(weights[4].1, [1.0, 0.0, -1.0, -1.0, 0.0, 1.0]);
    }

    #[test]
    fn main_effects_and_interactions_are_families_of_their_own() {
        let factors = [factor("a", &[0, 1, 0, 1]), factor("b", &[0, 0, 1, 1])];
        let noise = [1e-4, -2e-4, 3e-4, -1e-4, 2e-4, -3e-4, 5e-5, -5e-5];
        let effects: Vec<Vec<f64>> = [0.0, 0.05, 0.1, 0.15]
            .iter()
            .enumerate()
            .map(|(variant, effect)| {
                let rotated = (0..8).map(|block| noise[(block + variant) % 8]);
                rotated
                    .map(|noise| if variant == 0 { 0.0 } else { effect + noise })
                    .collect()
            })
            .collect();
        let judged = block_factorial(&factors, &effects, &VerdictSettings::default(), named);
        let judged = judged.unwrap();
        assert_eq!(judged.main_effects[0].verdict.family_size, 2);
        assert_eq!(judged.interactions[0].verdict.family_size, 1);
        assert!(
            judged
                .main_effects
                .iter()
                .all(|of| of.verdict.verdict == Verdict::Different)
        );
        assert_eq!(judged.interactions[0].verdict.verdict, Verdict::Equivalent);
        assert!(judged.warnings.is_empty(), "{:?}", judged.warnings);
    }

    #[test]
    fn what_cannot_be_told_is_refused() {
        let settings = VerdictSettings::default();
        let together = [factor("a", &[0, 1, 0, 1]), factor("b", &[0, 1, 0, 1])];
        let crossed = [factor("a", &[0, 1, 0, 1]), factor("b", &[0, 0, 1, 1])];
        let blocks = |lengths: [usize; 4]| lengths.map(|length| vec![0.1; length]).to_vec();
        let refusal = |factors: &[Factor], effects: &[Vec<f64>]| {
            block_factorial(factors, effects, &settings, named)
                .unwrap_err()
                .to_string()
        };
        let observed = |values: [&[f64]; 4]| {
            let values = values.map(<[f64]>::to_vec);
            independent_factorial(&crossed, &values, &settings, named)
                .unwrap_err()
                .to_string()
        };
        let good: &[f64] = &[1.0, 2.0];
        let refusals = [
            refusal(&together, &blocks([8; 4])),
            refusal(&crossed, &blocks([8, 8, 7, 8])),
            refusal(&crossed, &blocks([8; 4])[..3]),
            refusal(&crossed, &blocks([0; 4])),
            refusal(&[], &blocks([8; 4])),
            observed([good, good, good, &[1.0]]),
            observed([good, good, good, &[1.0, -1.0]]),
            observed([&[1.0, 1.0]; 4]),
        ];
        insta::assert_snapshot!(refusals.join("\n"), @r"
b: not told from the other effects by these data (a level or a combination was never measured); measure it or leave it out
factorial design, blocks: 7 values where 8 are needed; give one for each
factor a: 4 values where 3 are needed; give one for each
0.1: no values (0 given); give at least one
factorial analysis, factors: no values (0 given); give at least one
0.1: too few values (1); give at least 2
set 4: value 1 has no logarithm (-1); give positive numbers only
0.1: the values do not vary (0 spread); give values that do, or a rank test
");
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * (a.abs() + b.abs()).max(1e-3)
    }

    proptest! {
        /// In a design of all combinations least squares on observations gives the same estimates, with
        /// blocks as strata and without.
        #[test]
        fn estimates_are_those_of_least_squares(
            cells in prop::collection::vec(prop::collection::vec(0.5..2.0_f64, 6), 6),
        ) {
            let (a, b) = ([0, 1, 0, 1, 0, 1], [0, 0, 1, 1, 2, 2]);
            let factors = [factor("a", &a), factor("b", &b)];
            let long = |levels: &[usize]| -> Vec<usize> {
                levels.iter().flat_map(|level| [*level; 6]).collect()
            };
            let long = [factor("a", &long(&a)), factor("b", &long(&b))];
            let logs: Vec<f64> = cells.iter().flatten().map(|value| value.ln()).collect();
            let blocks: Vec<usize> = (0..6).cycle().take(36).collect();
            let plain = factorial_analysis(&logs, &long, None, 2, 0.95).unwrap();
            let in_blocks = factorial_analysis(&logs, &long, Some(&blocks), 2, 0.95).unwrap();

            let settings = VerdictSettings::default();
            let independent = independent_factorial(&factors, &cells, &settings, named).unwrap();
            let effects: Vec<Vec<f64>> = cells
                .iter()
                .map(|cell| cell.iter().zip(&cells[0]).map(|(value, base)| (value / base).ln()).collect())
                .collect();
            let blocked = block_factorial(&factors, &effects, &settings, named).unwrap();
            let of_terms = |analysis: &crate::FactorialAnalysis| -> Vec<f64> {
                let terms = analysis.terms.iter();
                terms.flat_map(|term| term.contrasts.iter().map(|contrast| contrast.estimate)).collect()
            };
            let (plain, in_blocks) = (of_terms(&plain), of_terms(&in_blocks));
            let of_independent = independent.main_effects.iter().chain(&independent.interactions);
            let of_blocks = blocked.main_effects.iter().chain(&blocked.interactions);
            for (((plain, in_blocks), independent), blocked) in
                plain.iter().zip(&in_blocks).zip(of_independent).zip(of_blocks)
            {
                prop_assert!(close(*plain, independent.verdict.estimate));
                let mean = blocked.verdict.blocks.as_ref().unwrap().mean;
                prop_assert!(close(*in_blocks, mean), "{} {}", in_blocks, mean);
            }
        }

        /// Of one factor's two levels at each level of another, the effects average to the main effect.
        #[test]
        fn which_block_is_which_and_the_unit_do_not_matter(
            effects in prop::collection::vec(prop::collection::vec(-0.3..0.3_f64, 8), 4),
            unit in 0.1..10.0_f64,
        ) {
            let factors = [factor("a", &[0, 1, 0, 1]), factor("b", &[0, 0, 1, 1])];
            let settings = VerdictSettings::default();
            let judge = |effects: &[Vec<f64>]| {
                block_factorial(&factors, effects, &settings, named).unwrap()
            };
            let plain = judge(&effects);
            let reversed: Vec<Vec<f64>> = effects
                .iter()
                .map(|row| row.iter().rev().copied().collect())
                .collect();
            let reversed = judge(&reversed);
            // A unit of its own for each block shifts all variants alike.
            let shifted: Vec<Vec<f64>> = effects
                .iter()
                .map(|row| row.iter().zip(1..).map(|(effect, n)| effect + unit.ln() * f64::from(n)).collect())
                .collect();
            let shifted = judge(&shifted);
            for other in [&reversed, &shifted] {
                let pairs = plain.main_effects.iter().zip(&other.main_effects)
                    .chain(plain.interactions.iter().zip(&other.interactions));
                for (plain, other) in pairs {
                    prop_assert!(close(plain.verdict.estimate, other.verdict.estimate));
                    prop_assert!(close(plain.verdict.p.direction, other.verdict.p.direction));
                }
            }
        }

        #[test]
        fn a_contrast_of_two_is_welch_s(
            a in prop::collection::vec(-5.0..5.0_f64, 2..9),
            b in prop::collection::vec(-5.0..5.0_f64, 2..9),
        ) {
            let welch = TwoSampleT::welch(&a, &b).unwrap();
            let contrast = TwoSampleT::welch_contrast("t", &[(1.0, &a), (0.0, &[]), (-1.0, &b)]);
            let contrast = contrast.unwrap();
            prop_assert!(close(welch.difference, contrast.difference));
            prop_assert!(close(welch.standard_error, contrast.standard_error));
            prop_assert!(close(welch.degrees_of_freedom, contrast.degrees_of_freedom));
        }
    }
}
