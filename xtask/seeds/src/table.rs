//! Markdown tables, and the figures in them.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use fwdlab_stats::distribution::t_upper_quantile;
use fwdlab_stats::ministat::{Comparison, Confidence, Dataset, general};
use fwdlab_stats::{
    ComparisonVerdict, CovariateArm, Draws, FactorialVerdict, FactorialVerdicts,
    IndependentObservations, Method, PermutationTest, PowerAnalysis, ShiftTest as _, Stratum,
    StudentSample, VerdictSettings, covariate_of_arms, format_effect, format_p,
    independent_verdicts, logarithms,
};

use crate::archive::Measured;

/// What 5 runs an arm are asked to show.
const CONFIDENCE: f64 = 0.95;
/// What ministat says of a difference that it does not see.
const NOT_PROVEN: &str = "no difference proven";
/// An offered load that moved less than this did not move, as a log ratio.
const STEADY: f64 = 0.001;
/// The effect that matters, as a ratio.
const THRESHOLD: f64 = 0.01;

/// A Markdown table.
pub(crate) fn markdown(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut text = format!("| {} |\n|{}", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        let _ = write!(text, "\n| {} |", row.join(" | "));
    }
    text
}

/// Arms compared with a baseline; judged as one family.
pub(crate) struct Family<'a> {
    pub(crate) baseline: &'a Measured,
    pub(crate) others: Vec<&'a Measured>,
}

impl Family<'_> {
    fn verdicts(&self) -> Result<Vec<ComparisonVerdict>> {
        let comparisons: Vec<IndependentObservations> = self
            .others
            .iter()
            .map(|other| IndependentObservations {
                name: other.arm.label.to_owned(),
                baseline: self.baseline.observations_pps.clone(),
                variant: other.observations_pps.clone(),
            })
            .collect();
        let settings = VerdictSettings {
            confidence: CONFIDENCE,
            practical_threshold: THRESHOLD,
        };
        Ok(independent_verdicts(&comparisons, &settings)?.comparisons)
    }
}

/// Every comparison: what ministat says of it, and what the data support.
///
/// Shape: `readme` is the text in which they were published; what it shows as proven has to be what is
/// shown here.
pub(crate) fn comparisons(families: &[Family<'_>], readme: &str) -> Result<String> {
    let mut rows = Vec::new();
    for family in families {
        for (other, verdict) in family.others.iter().zip(family.verdicts()?) {
            let ministat = ministat(family.baseline, other)?;
            ensure!(
                ministat == NOT_PROVEN || readme.contains(&ministat),
                "{}: its README does not say {ministat}",
                other.arm.key
            );
            rows.push(vec![
                format!("{} against {}", other.arm.label, family.baseline.arm.label),
                ministat,
                format_effect(verdict.estimate, verdict.direction_interval.as_ref()),
                format_p(verdict.p.direction),
                format_p(verdict.adjusted_p.direction),
                format_p(permutation_p(family.baseline, other)?),
                format!("**{}**", verdict.verdict),
            ]);
        }
    }
    Ok(markdown(
        &[
            "compared",
            "ministat",
            "effect [95 %]",
            "p",
            "p, corrected",
            "p, permutation",
            "fwdlab's words",
        ],
        rows,
    ))
}

/// What ministat prints of a comparison, in one line.
fn ministat(baseline: &Measured, other: &Measured) -> Result<String> {
    let dataset =
        |measured: &Measured| Dataset::new(measured.arm.key, measured.observations_pps.clone());
    let comparison = Comparison::new(&dataset(other)?, &dataset(baseline)?, Confidence::Percent95);
    Ok(if comparison.is_proven() {
        format!(
            "{}% +/- {}%",
            general(comparison.difference_percent, 6),
            general(comparison.half_width_percent, 6)
        )
    } else {
        NOT_PROVEN.to_owned()
    })
}

/// The exact two-sided p of exchanging labels between two samples.
fn permutation_p(baseline: &Measured, other: &Measured) -> Result<f64> {
    let stratum = Stratum {
        sample: &logs(other)?,
        reference: &logs(baseline)?,
    };
    // All 252 arrangements of 5 and 5 are tried.
    let draws = Draws { seed: 0, count: 1 };
    Ok(PermutationTest::new(&[stratum], draws)?.p_two_sided(0.0))
}

pub(crate) fn logs(measured: &Measured) -> Result<Vec<f64>> {
    Ok(logarithms(measured.arm.key, &measured.observations_pps)?)
}

/// What so many runs could have shown, at the noise seen.
pub(crate) fn power(families: &[(&str, Family<'_>)]) -> Result<String> {
    let mut rows = Vec::new();
    for (seed, family) in families {
        for other in &family.others {
            let (runs, compared) = (other.observations_pps.len(), family.others.len());
            let deviation = pooled_deviation(family.baseline, other)?;
            let analysis = PowerAnalysis::new(Method::WelchT, deviation, compared, CONFIDENCE)?;
            let smallest = analysis.smallest_effect(runs);
            let smallest = smallest.context("no effect shows, however large")?;
            let needed = analysis.size_to_show(THRESHOLD.ln_1p());
            rows.push(vec![
                (*seed).to_owned(),
                format!("{} against {}", other.arm.label, family.baseline.arm.label),
                format!("{:.2} %", deviation * 100.0),
                format!("{:.1} %", smallest.exp_m1() * 100.0),
                needed.map_or_else(|| "more than a million".to_owned(), |runs| runs.to_string()),
            ]);
        }
    }
    Ok(markdown(
        &[
            "result",
            "compared",
            "noise of a run (SD)",
            "what 5 runs each show",
            "runs each that show 1 %",
        ],
        rows,
    ))
}

/// The standard deviation that two arms share, of the logarithms.
fn pooled_deviation(baseline: &Measured, other: &Measured) -> Result<f64> {
    let (mut squares, mut freedom) = (0.0, 0.0);
    for measured in [baseline, other] {
        let values = logs(measured)?;
        let deviation = StudentSample::new(&values)?
            .standard_deviation
            .unwrap_or(0.0);
        let degrees = values.len() as f64 - 1.0;
        squares += degrees * deviation * deviation;
        freedom += degrees;
    }
    Ok((squares / freedom).sqrt())
}

/// Main effects and interactions with their intervals and words.
pub(crate) fn factorial(verdicts: &FactorialVerdicts) -> String {
    let rows = |what: &'static str, verdicts: &[FactorialVerdict]| -> Vec<Vec<String>> {
        let row = |of: &FactorialVerdict| {
            let verdict = &of.verdict;
            vec![
                verdict.name.clone(),
                what.to_owned(),
                format_effect(verdict.estimate, verdict.direction_interval.as_ref()),
                format_p(verdict.p.direction),
                format_p(verdict.adjusted_p.direction),
                format!("**{}**", verdict.verdict.words()),
            ]
        };
        verdicts.iter().map(row).collect()
    };
    let main_effects = rows("main effect", &verdicts.main_effects);
    let interactions = rows("interaction", &verdicts.interactions);
    markdown(
        &[
            "term",
            "",
            "effect [95 %]",
            "p",
            "p, corrected",
            "fwdlab's words",
        ],
        main_effects.into_iter().chain(interactions),
    )
}

/// The offered load of every run beside its forwarding rate, with what ties them in each arm.
pub(crate) fn offered(arms: &[Measured]) -> Result<String> {
    let runs = arms.first().map_or(0, |arm| arm.observations_pps.len());
    let numbers: Vec<String> = (1..=runs).map(|run| format!("run {run}")).collect();
    let mut head = vec!["arm", "Mpps"];
    head.extend(numbers.iter().map(String::as_str));
    head.extend(["correlation", "slope [95 %]"]);
    let mut rows = Vec::new();
    for arm in arms {
        let cells = |rates: &[f64]| -> Vec<String> {
            rates
                .iter()
                .map(|rate| format!("{:.3}", rate / 1e6))
                .collect()
        };
        let mut offered = vec![arm.arm.label.to_owned(), "offered".to_owned()];
        offered.extend(cells(&arm.offered_pps));
        offered.extend([String::new(), String::new()]);
        let mut forwarded = vec![String::new(), "forwarded".to_owned()];
        forwarded.extend(cells(&arm.observations_pps));
        let offered_logs = logarithms(arm.arm.key, &arm.offered_pps)?;
        forwarded.extend(if spread(&offered_logs) < STEADY {
            ["none: it did not move".to_owned(), String::new()]
        } else {
            let tie = Tie::of(&offered_logs, &logs(arm)?);
            let (from, to) = (tie.slope - tie.half_width, tie.slope + tie.half_width);
            [
                format!("{:+.2}", tie.correlation),
                format!("{:+.2} [{from:+.2}, {to:+.2}]", tie.slope),
            ]
        });
        rows.extend([offered, forwarded]);
    }
    Ok(markdown(&head, rows))
}

/// The effects against the first arm at equal offered load, if all arms shared one slope; and whether
/// they do, all of them and each with the first.
pub(crate) fn adjusted(arms: &[Measured]) -> Result<String> {
    let values: Vec<(Vec<f64>, Vec<f64>)> = arms
        .iter()
        .map(|arm| Ok((logs(arm)?, logarithms(arm.arm.key, &arm.offered_pps)?)))
        .collect::<Result<_>>()?;
    let sides: Vec<CovariateArm<'_>> = arms
        .iter()
        .zip(&values)
        .map(|(arm, (values, covariate))| CovariateArm {
            name: arm.arm.label,
            values,
            covariate,
        })
        .collect();
    let all = covariate_of_arms(&sides, CONFIDENCE)?;
    let rows = all
        .adjusted
        .iter()
        .zip(&sides[1..])
        .map(|(effect, side)| {
            let pair = covariate_of_arms(&[sides[0], *side], CONFIDENCE)?;
            Ok(vec![
                format!("{} against {}", side.name, sides[0].name),
                format_effect(effect.raw, None),
                format_effect(effect.estimate, Some(&effect.interval)),
                format_p(pair.interaction.p),
            ])
        })
        .collect::<Result<Vec<_>>>()?;
    let slope = &all.common_slope;
    Ok(format!(
        "{}\n\nThe slope that all five would share: {:+.2} [{:+.2}, {:+.2}]. p that they share one: {}.",
        markdown(
            &[
                "compared",
                "raw",
                "at equal load, with one slope for all",
                "p that these two share a slope"
            ],
            rows,
        ),
        slope.estimate,
        slope.interval.lower,
        slope.interval.upper,
        format_p(all.interaction.p)
    ))
}

/// How far the largest value lies above the smallest.
fn spread(values: &[f64]) -> f64 {
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    most - least
}

/// How two variables go together, by least squares.
struct Tie {
    correlation: f64,
    slope: f64,
    /// Of the slope's 95 % interval.
    half_width: f64,
}

impl Tie {
    fn of(x: &[f64], y: &[f64]) -> Self {
        let n = x.len() as f64;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / n;
        let (mean_x, mean_y) = (mean(x), mean(y));
        let products = |a: &[f64], mean_a: f64, b: &[f64], mean_b: f64| -> f64 {
            a.iter()
                .zip(b)
                .map(|(a, b)| (a - mean_a) * (b - mean_b))
                .sum()
        };
        let (xx, xy, yy) = (
            products(x, mean_x, x, mean_x),
            products(x, mean_x, y, mean_y),
            products(y, mean_y, y, mean_y),
        );
        let slope = xy / xx;
        let residual = (yy - slope * xy).max(0.0) / (n - 2.0);
        Self {
            correlation: xy / (xx * yy).sqrt(),
            slope,
            half_width: t_upper_quantile((1.0 - CONFIDENCE) / 2.0, n - 2.0)
                * (residual / xx).sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_variables_go_together_as_least_squares_says() {
        // SciPy 1.17.1: linregress([1, 2, 3, 4, 5], [2, 1, 4, 3, 7]).
        let tie = Tie::of(&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.0, 1.0, 4.0, 3.0, 7.0]);
        assert!((tie.correlation - 0.824_163_383_692_134_3).abs() < 1e-12);
        assert!((tie.slope - 1.2).abs() < 1e-12);
        // 3.182446305284263 times a standard error of 0.47609522856952335.
        assert!((tie.half_width - 1.515_147_501_124_281_9).abs() < 1e-9);
    }

    #[test]
    fn a_table_has_a_row_for_each() {
        let rows = [vec!["1".to_owned(), "2".to_owned()]];
        assert_eq!(
            markdown(&["a", "b"], rows),
            "| a | b |\n|---|---|\n| 1 | 2 |"
        );
    }
}
