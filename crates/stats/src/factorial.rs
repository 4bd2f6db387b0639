//! The analysis of factorial designs: main effects and interactions of two factors or more.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::distribution::{f_upper_tail, t_upper_quantile, t_upper_tail};
use crate::error::{
    StatsError, require_any, require_count, require_finite, require_held, require_length,
    require_spread, significance,
};
use crate::hodges_lehmann::Interval;
use crate::least_squares::{LeastSquares, dot};

/// A factor: which of its levels each response was measured at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Factor {
    /// The caller's name for it.
    pub name: String,
    /// One a response, numbered from 0; effects are differences from level 0.
    pub levels: Vec<usize>,
}

impl Factor {
    /// Whether every combination of its levels with the other's was measured.
    #[must_use]
    pub fn is_crossed_with(&self, other: &Self) -> bool {
        let count = |factor: &Self| factor.levels.iter().max().map_or(0, |highest| highest + 1);
        let measured: BTreeSet<(&usize, &usize)> = self.levels.iter().zip(&other.levels).collect();
        count(self).checked_mul(count(other)) == Some(measured.len())
    }
}

/// What a factorial design showed.
///
/// Units: those of the responses; of log rates all effects are log ratios (see
/// [`crate::format_effect`]).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FactorialAnalysis {
    /// Main effects first, then interactions by the number of their factors.
    pub terms: Vec<FactorialTerm>,
    /// The standard deviation that no term and no block explains.
    pub residual_standard_deviation: f64,
    /// Its degrees of freedom, one or more.
    pub residual_degrees_of_freedom: usize,
}

/// A main effect or an interaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FactorialTerm {
    /// The names of its factors; one for a main effect.
    pub factors: Vec<String>,
    /// The product over its factors of their levels less one.
    pub degrees_of_freedom: usize,
    /// What the term explains beyond all others (type III).
    pub sum_of_squares: f64,
    /// Its mean square over the residual one.
    pub f: f64,
    /// The p-value of the claim that the term has any effect.
    pub p: f64,
    /// Every level, or combination of levels, against level 0; a single one for factors of two
    /// levels.
    pub contrasts: Vec<FactorialContrast>,
}

/// How far a level, or a combination of them, differs from level 0.
///
/// Of a main effect: the response at the level less that at level 0, averaged over the other
/// factors' levels, each counting the same. Of an interaction: how much that difference itself
/// differs between a level of the other factor and its level 0. So on log rates the first is the
/// ratio of two rates, the second the ratio of two such ratios.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FactorialContrast {
    /// One of each of the term's factors, 1 or more.
    pub levels: Vec<usize>,
    /// The difference.
    pub estimate: f64,
    /// Its interval, for this contrast alone.
    pub interval: Interval,
    /// The two-sided p-value against no difference, for this contrast alone.
    pub p: f64,
}

/// Analyses a factorial design by least squares with effect coding.
///
/// Terms are tested by what each explains beyond all the others (type III), so that with unequal
/// numbers of responses a main effect still averages over the other factors' levels evenly.
///
/// Shape: `blocks`, if given, and each factor have one number a response; blocks are strata, each
/// with a level of its own that is taken out. `order` is the largest number of factors in an
/// interaction: 1 for main effects alone. Every combination of levels up to that order must have
/// been measured, and there must be more responses than coefficients.
///
/// # Errors
/// [`StatsError::Empty`], [`StatsError::NotFinite`], [`StatsError::UnequalLengths`],
/// [`StatsError::TooFew`] levels or responses, [`StatsError::NotEstimable`],
/// [`StatsError::NoSpread`] where nothing is left over to measure effects with,
/// [`StatsError::TooLarge`], [`StatsError::Confidence`].
///
/// # Source
/// Yates 1934; Searle 1971. Oracle: statsmodels' `anova_lm(typ=3)` and `t_test`,
/// `oracle/factorial.py`.
///
/// # Examples
/// ```
/// use fwdlab_stats::{Factor, factorial_analysis, format_effect, logarithms};
/// let rates = [100.0, 80.2, 90.1, 54.1, 100.4, 79.7, 89.6, 53.9];
/// let factors = [("rules", [0, 1, 0, 1, 0, 1, 0, 1]), ("conntrack", [0, 0, 1, 1, 0, 0, 1, 1])]
///     .map(|(name, levels)| Factor { name: name.to_owned(), levels: levels.to_vec() });
/// let analysis = factorial_analysis(&logarithms("rates", &rates)?, &factors, None, 2, 0.95)?;
/// let effects: Vec<String> = analysis
///     .terms
///     .iter()
///     .map(|term| {
///         let contrast = &term.contrasts[0];
///         let effect = format_effect(contrast.estimate, Some(&contrast.interval));
///         format!("{}: {effect}", term.factors.join(" x "))
///     })
///     .collect();
/// assert_eq!(
///     effects,
///     [
///         "rules: -30.75 % [-31.23, -30.27]",
///         "conntrack: -22.18 % [-22.71, -21.63]",
///         "rules x conntrack: -24.7 % [-25.7, -23.6]",
///     ]
/// );
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn factorial_analysis(
    responses: &[f64],
    factors: &[Factor],
    blocks: Option<&[usize]>,
    order: usize,
    confidence: f64,
) -> Result<FactorialAnalysis, StatsError> {
    let tail = significance(confidence)? / 2.0;
    require_finite("factorial analysis, responses", responses)?;
    let terms = terms_up_to(factors.len(), order);
    let design = Design::new(responses.len(), factors, blocks, terms)?;
    let need = design.column_count() + 1;
    require_count("factorial analysis, responses", need, responses.len())?;
    // With an intercept in the model a common offset changes nothing but digits.
    let responses: Vec<f64> = responses.iter().map(|value| value - responses[0]).collect();
    let total_squares = dot(&responses, &responses);
    require_held("factorial analysis", total_squares.is_finite())?;
    let full = design.fit(&responses, None)?;
    let rounding = f64::EPSILON * responses.len() as f64;
    require_spread(
        "factorial analysis, residuals",
        full.residual_squares > rounding * rounding * total_squares,
    )?;
    let freedom = responses.len() - design.column_count();
    let variance = full.residual_squares / freedom as f64;
    let coefficients = full.coefficients();
    let quantile = t_upper_quantile(tail, freedom as f64);
    let contrast = |columns: std::ops::Range<usize>, levels: Vec<usize>, weights: Vec<f64>| {
        let mut all_weights = vec![0.0; coefficients.len()];
        all_weights[columns.clone()].copy_from_slice(&weights);
        let estimate = dot(&weights, &coefficients[columns]);
        let error = (variance * full.variance(&all_weights)).sqrt();
        FactorialContrast {
            levels,
            estimate,
            interval: Interval::around(estimate, quantile * error, confidence),
            p: (2.0 * t_upper_tail(estimate.abs() / error, freedom as f64)).min(1.0),
        }
    };
    let mut terms = Vec::with_capacity(design.terms.len());
    for (number, term) in design.terms.iter().enumerate() {
        let columns = design.columns_of(number);
        let degrees_of_freedom = columns.len();
        // With the term's columns last, what they add stands by itself.
        let last = design.fit(&responses, Some(number))?;
        let added = &last.effects[last.effects.len() - degrees_of_freedom..];
        let sum_of_squares = dot(added, added);
        let f = sum_of_squares / degrees_of_freedom as f64 / variance;
        terms.push(FactorialTerm {
            factors: term.names(factors),
            degrees_of_freedom,
            sum_of_squares,
            f,
            p: f_upper_tail(f, degrees_of_freedom as f64, freedom as f64),
            contrasts: term
                .contrast_weights()
                .into_iter()
                .map(|(levels, weights)| contrast(columns.clone(), levels, weights))
                .collect(),
        });
    }
    Ok(FactorialAnalysis {
        terms,
        residual_standard_deviation: variance.sqrt(),
        residual_degrees_of_freedom: freedom,
    })
}

/// All choices of up to `order` of the factors, by their number.
fn terms_up_to(factors: usize, order: usize) -> Vec<Vec<usize>> {
    (1..=order.min(factors))
        .flat_map(|size| combinations(factors, size))
        .collect()
}

/// The columns of the linear model: the intercept, blocks, then the terms one after the other.
pub(crate) struct Design {
    /// The intercept and the blocks.
    strata: Vec<Vec<f64>>,
    pub(crate) terms: Vec<Term>,
    names: Vec<String>,
}

pub(crate) struct Term {
    /// Positions among the factors, rising.
    pub(crate) factors: Vec<usize>,
    /// How many levels each of them has.
    level_counts: Vec<usize>,
    columns: Vec<Vec<f64>>,
}

impl Design {
    /// The columns for `responses`; `chosen` are the factors of each term.
    pub(crate) fn new(
        responses: usize,
        factors: &[Factor],
        blocks: Option<&[usize]>,
        chosen: Vec<Vec<usize>>,
    ) -> Result<Self, StatsError> {
        require_any("factorial analysis, factors", chosen.len())?;
        let mut codes = Vec::with_capacity(factors.len());
        for factor in factors {
            let subject = format!("factor {}", factor.name);
            codes.push(coded(&subject, &factor.levels, responses)?);
            if codes[codes.len() - 1].is_empty() {
                return Err(StatsError::TooFew {
                    subject: format!("{subject}, levels"),
                    need: 2,
                    have: 1,
                });
            }
        }
        let mut strata = vec![vec![1.0; responses]];
        if let Some(blocks) = blocks {
            strata.extend(coded("blocks", blocks, responses)?);
        }
        let terms: Vec<Term> = chosen
            .into_iter()
            .map(|chosen| {
                let columns = chosen
                    .iter()
                    .fold(vec![vec![1.0; responses]], |products, at| {
                        products
                            .iter()
                            .flat_map(|product| {
                                codes[*at].iter().map(move |code| times(product, code))
                            })
                            .collect()
                    });
                Term {
                    level_counts: chosen.iter().map(|at| codes[*at].len() + 1).collect(),
                    factors: chosen,
                    columns,
                }
            })
            .collect();
        Ok(Self {
            strata,
            names: terms
                .iter()
                .map(|term| term.names(factors).join(" x "))
                .collect(),
            terms,
        })
    }

    fn column_count(&self) -> usize {
        let of_terms: usize = self.terms.iter().map(|term| term.columns.len()).sum();
        self.strata.len() + of_terms
    }

    /// Where a term's columns stand in the order of the terms.
    pub(crate) fn columns_of(&self, number: usize) -> std::ops::Range<usize> {
        let before: usize = self.terms[..number]
            .iter()
            .map(|term| term.columns.len())
            .sum();
        let start = self.strata.len() + before;
        start..start + self.terms[number].columns.len()
    }

    /// The fit with the columns in order, but those of the term `last` at the end.
    pub(crate) fn fit(
        &self,
        responses: &[f64],
        last: Option<usize>,
    ) -> Result<LeastSquares, StatsError> {
        let mut order: Vec<usize> = (0..self.terms.len()).collect();
        if let Some(last) = last {
            order.remove(last);
            order.push(last);
        }
        let mut owners = vec!["blocks"; self.strata.len()];
        let mut columns = self.strata.clone();
        for number in order {
            columns.extend(self.terms[number].columns.iter().cloned());
            owners.resize(columns.len(), &self.names[number]);
        }
        LeastSquares::new(columns, responses.to_vec()).map_err(|column| StatsError::NotEstimable {
            subject: owners[column].to_owned(),
        })
    }
}

impl Term {
    fn names(&self, factors: &[Factor]) -> Vec<String> {
        self.factors
            .iter()
            .map(|at| factors[*at].name.clone())
            .collect()
    }

    /// The levels of each contrast with the weights of the term's coefficients in it.
    pub(crate) fn contrast_weights(&self) -> Vec<(Vec<usize>, Vec<f64>)> {
        let nothing = vec![(Vec::new(), vec![1.0])];
        self.level_counts.iter().fold(nothing, |contrasts, count| {
            contrasts
                .iter()
                .flat_map(|(levels, weights)| {
                    (1..*count).map(move |level| {
                        // A level's code less that of level 0, which is -1 in every column.
                        let code =
                            (1..*count).map(|column| if column == level { 2.0 } else { 1.0 });
                        let longer = weights
                            .iter()
                            .flat_map(|weight| code.clone().map(move |code| weight * code))
                            .collect();
                        ([&levels[..], &[level]].concat(), longer)
                    })
                })
                .collect()
        })
    }
}

/// Effect coding: a column for each level but level 0, 1 at that level and -1 at level 0.
fn coded(subject: &str, levels: &[usize], responses: usize) -> Result<Vec<Vec<f64>>, StatsError> {
    require_length(subject, responses, levels.len())?;
    let highest = levels.iter().copied().max().unwrap_or(0);
    // Every level is measured at least once, so there are no more of them than responses.
    if highest >= responses {
        return Err(StatsError::NotEstimable {
            subject: subject.to_owned(),
        });
    }
    let code = |level: usize, column: usize| match level {
        0 => -1.0,
        level if level == column => 1.0,
        _ => 0.0,
    };
    Ok((1..=highest)
        .map(|column| levels.iter().map(|level| code(*level, column)).collect())
        .collect())
}

fn times(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a * b).collect()
}

/// All choices of `size` among `0..count`, in order.
fn combinations(count: usize, size: usize) -> Vec<Vec<usize>> {
    if size == 0 {
        return vec![Vec::new()];
    }
    combinations(count, size - 1)
        .into_iter()
        .flat_map(|chosen| {
            let from = chosen.last().map_or(0, |last| last + 1);
            (from..count).map(move |next| [&chosen[..], &[next]].concat())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn factor(name: &str, levels: &[usize]) -> Factor {
        Factor {
            name: name.to_owned(),
            levels: levels.to_vec(),
        }
    }

    #[test]
    fn choices_are_in_order() {
        assert_eq!(
            combinations(4, 2),
            [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
        );
        assert_eq!(combinations(2, 3), Vec::<Vec<usize>>::new());
    }

    #[test]
    fn bad_input_is_refused_by_name() {
        let y = [1.0, 2.0, 3.5, 4.0, 5.0, 7.0];
        let (a, b) = (
            factor("a", &[0, 1, 0, 1, 0, 1]),
            factor("b", &[0, 0, 1, 1, 0, 1]),
        );
        let refusal = |y: &[f64], factors: &[Factor], blocks: Option<&[usize]>| {
            factorial_analysis(y, factors, blocks, 2, 0.95)
                .unwrap_err()
                .to_string()
        };
        let both = [a.clone(), b.clone()];
        let refusals = [
            refusal(&[], &both, None),
            refusal(&[1.0, f64::NAN], &both, None),
            refusal(&y, &[], None),
            refusal(&y[..5], &both, None),
            refusal(&y, &both, Some(&[0, 1])),
            refusal(&y, &[a.clone(), factor("c", &[0; 6])], None),
            refusal(&y, &[a.clone(), factor("c", &[0, 2, 0, 2, 0, 0])], None),
            refusal(&y, &[a.clone(), factor("same", &a.levels)], None),
            refusal(
                &y,
                &[a.clone(), factor("c", &[0, 0, 0, 0, 0, usize::MAX])],
                None,
            ),
            refusal(&y, &both, Some(&[0, 1, 2, 0, 1, 2])),
            refusal(&[3.0; 6], &both, None),
            refusal(&[1e300, -1e300, 0.0, 0.0, 0.0, 0.0], &both, None),
            factorial_analysis(&y, &both, None, 2, 1.0)
                .unwrap_err()
                .to_string(),
        ];
        insta::assert_snapshot!(refusals.join("\n"), @r"
factorial analysis, responses: no values (0 given); give at least one
factorial analysis, responses: value 1 is not finite (NaN); give finite numbers only
factorial analysis, factors: no values (0 given); give at least one
factor a: 6 values where 5 are needed; give one for each
blocks: 2 values where 6 are needed; give one for each
factor c, levels: too few values (1); give at least 2
factorial analysis, responses: too few values (6); give at least 7
same: not told from the other effects by these data (a level or a combination was never measured); measure it or leave it out
factor c: not told from the other effects by these data (a level or a combination was never measured); measure it or leave it out
factorial analysis, responses: too few values (6); give at least 7
factorial analysis, residuals: the values do not vary (0 spread); give values that do, or a rank test
factorial analysis: values too large to reckon with; give them in a larger unit
confidence: not between 0.5 and 1 (1); give for example 0.95
");
    }

    #[test]
    fn data_without_noise_are_refused() {
        let y: Vec<f64> = [0.1, 0.2, 0.4, 0.5].repeat(3);
        let factors = [
            factor("a", &[0, 1, 0, 1].repeat(3)),
            factor("b", &[0, 0, 1, 1].repeat(3)),
        ];
        assert!(matches!(
            factorial_analysis(&y, &factors, None, 1, 0.95),
            Err(StatsError::NoSpread { .. })
        ));
    }

    /// Two by three levels in blocks, unbalanced: one response more in some cells.
    fn design() -> impl Strategy<Value = (Vec<f64>, [Factor; 2], Vec<usize>)> {
        prop::collection::vec((-1.0..1.0_f64, 0_usize..6), 18..40).prop_map(|drawn| {
            let cell = |i: usize| if i < 18 { i % 6 } else { drawn[i].1 };
            let cells: Vec<usize> = (0..drawn.len()).map(cell).collect();
            let levels = |of: fn(usize) -> usize| -> Vec<usize> {
                cells.iter().map(|cell| of(*cell)).collect()
            };
            (
                drawn.iter().map(|(value, _)| *value).collect(),
                [
                    factor("a", &levels(|c| c % 2)),
                    factor("b", &levels(|c| c / 2)),
                ],
                (0..drawn.len()).map(|i| i % 18 / 6).collect(),
            )
        })
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * (a.abs() + b.abs()).max(1e-3)
    }

    proptest! {
        #[test]
        fn one_degree_of_freedom_is_student_s_t((y, factors, blocks) in design()) {
            let analysis = factorial_analysis(&y, &factors, Some(&blocks), 2, 0.95).unwrap();
            let main = &analysis.terms[0];
            prop_assert_eq!(main.contrasts.len(), 1);
            prop_assert!(close(main.p, main.contrasts[0].p));
            for term in &analysis.terms {
                for contrast in &term.contrasts {
                    prop_assert_eq!(contrast.p <= 0.05, !contrast.interval.contains(0.0));
                }
            }
        }

        #[test]
        fn shift_scale_and_swapped_levels((y, factors, blocks) in design(), shift in -9.0..9.0_f64) {
            let plain = factorial_analysis(&y, &factors, Some(&blocks), 2, 0.95).unwrap();
            // A block's own level is taken out, too.
            let moved: Vec<f64> = y
                .iter()
                .zip(&blocks)
                .map(|(value, block)| -2.0 * value + shift * *block as f64 + 4.0)
                .collect();
            let moved = factorial_analysis(&moved, &factors, Some(&blocks), 2, 0.95).unwrap();
            let mut swapped = factors.clone();
            swapped[0].levels.iter_mut().for_each(|level| *level = 1 - *level);
            let swapped = factorial_analysis(&y, &swapped, Some(&blocks), 2, 0.95).unwrap();
            for ((plain, moved), swapped) in plain.terms.iter().zip(&moved.terms).zip(&swapped.terms)
            {
                prop_assert!(close(plain.p, moved.p), "{} {}", plain.p, moved.p);
                prop_assert!(close(plain.p, swapped.p));
                let sign = if plain.factors.contains(&"a".to_owned()) { -1.0 } else { 1.0 };
                for ((plain, moved), swapped) in
                    plain.contrasts.iter().zip(&moved.contrasts).zip(&swapped.contrasts)
                {
                    prop_assert!(close(-2.0 * plain.estimate, moved.estimate));
                    prop_assert!(close(-2.0 * plain.interval.lower, moved.interval.upper));
                    prop_assert!(close(sign * plain.estimate, swapped.estimate));
                }
            }
        }

        /// Of one factor with two levels the analysis is the pooled t test.
        #[test]
        fn one_factor_is_the_pooled_t(
            a in prop::collection::vec(-5.0..5.0_f64, 2..9),
            b in prop::collection::vec(-5.0..5.0_f64, 2..9),
        ) {
            let levels: Vec<usize> = a.iter().map(|_| 1).chain(b.iter().map(|_| 0)).collect();
            let both = [&a[..], &b[..]].concat();
            let analysis =
                factorial_analysis(&both, &[factor("side", &levels)], None, 1, 0.95).unwrap();
            let pooled = crate::TwoSampleT::pooled(&a, &b).unwrap();
            let contrast = &analysis.terms[0].contrasts[0];
            prop_assert!(close(contrast.estimate, pooled.difference));
            prop_assert!(close(contrast.p, crate::ShiftTest::p_two_sided(&pooled, 0.0)));
            prop_assert!(close(contrast.interval.upper, pooled.interval(0.95).unwrap().upper));
        }
    }
}
