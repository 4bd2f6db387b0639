//! What every method makes of the same data, side by side. Verdicts follow the first of them.

use serde::{Deserialize, Serialize};

use crate::bootstrap::bca_interval;
use crate::dunnett::dunnett;
use crate::error::StatsError;
use crate::hodges_lehmann::Interval;
use crate::independent::IndependentObservations;
use crate::logarithms::logarithms;
use crate::mann_whitney::MannWhitney;
use crate::max_t::{max_t_permutation, max_t_sign_flip};
use crate::multiplicity::holm_adjusted;
use crate::permutation::{Draws, PermutationTest, Stratum};
use crate::shift_test::ShiftTest as _;
use crate::sign_flip::sign_flip_p;
use crate::signed_rank::SignedRank;
use crate::student::StudentSample;
use crate::two_sample_t::TwoSampleT;
use crate::verdict::{ComparisonEffects, Unit};

/// Resampling is left out where there are more values than this: it would take minutes and say what
/// Student's t says.
pub const RESAMPLED_MAX: usize = 10_000;

/// A method of this crate that compares a variant with its baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The exact signed-rank test of block effects and their Hodges-Lehmann estimate, on which
    /// verdicts rest.
    SignedRank,
    /// Student's t of block effects.
    StudentT,
    /// The sign-flip test of block effects.
    SignFlip,
    /// The largest statistic of a family of block effects under common signs.
    MaxTSignFlip,
    /// Welch's t of independent observations, on which their verdicts rest.
    WelchT,
    /// The pooled t of independent observations: ministat's.
    PooledT,
    /// The Mann-Whitney test of independent observations, and the Hodges-Lehmann estimate of a shift.
    MannWhitney,
    /// The permutation test of independent observations, unstratified.
    Permutation,
    /// Dunnett's test of independent observations, which corrects for the family by itself.
    Dunnett,
    /// The largest statistic of a family of independent observations under exchanged labels.
    MaxTPermutation,
    /// The bootstrap's bias-corrected and accelerated interval of the mean.
    Bca,
}

impl Method {
    /// Its name in sentences and tables.
    pub fn words(self) -> &'static str {
        match self {
            Self::SignedRank => "signed-rank",
            Self::StudentT => "Student's t",
            Self::SignFlip => "sign-flip",
            Self::WelchT => "Welch's t",
            Self::PooledT => "pooled t",
            Self::MannWhitney => "Mann-Whitney",
            Self::Permutation => "permutation",
            Self::Dunnett => "Dunnett",
            Self::MaxTSignFlip | Self::MaxTPermutation => "max-T",
            Self::Bca => "bootstrap (BCa)",
        }
    }

    /// What its samples are made of; the bootstrap takes either.
    pub fn unit(self) -> Unit {
        match self {
            Self::SignedRank | Self::StudentT | Self::SignFlip | Self::MaxTSignFlip => Unit::Blocks,
            _ => Unit::Observations,
        }
    }
}

/// What one method makes of one comparison.
///
/// Units: log ratios.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MethodResult {
    /// The method.
    pub method: Method,
    /// Its estimate of the effect.
    pub estimate: f64,
    /// Its interval; of Dunnett's, all intervals of the family hold together, every other is for
    /// this comparison alone. `None` where it has none, or the data cannot reach the confidence.
    pub interval: Option<Interval>,
    /// Two-sided, against no effect, for this comparison alone; `None` where it has none.
    pub p: Option<f64>,
    /// Corrected for the family: by Holm, or as the method itself does; `None` where it has none.
    pub adjusted_p: Option<f64>,
}

impl MethodResult {
    /// An estimate with nothing beside it.
    fn estimated(method: Method, estimate: f64) -> Self {
        Self {
            method,
            estimate,
            interval: None,
            p: None,
            adjusted_p: None,
        }
    }
}

/// What every method makes of block effects, one list a comparison.
///
/// Shape: a family with one baseline, each with one block effect or more. Methods that need more
/// blocks, or the same number in all comparisons, are left out. `draws` are those of the resampling
/// methods: the same ones give the same results.
///
/// # Errors
/// [`StatsError::Empty`], [`StatsError::NotFinite`], [`StatsError::Confidence`].
pub fn block_methods(
    family: &[ComparisonEffects],
    confidence: f64,
    draws: Draws,
) -> Result<Vec<Vec<MethodResult>>, StatsError> {
    let mut of_comparisons = Vec::with_capacity(family.len());
    for comparison in family {
        let effects = &comparison.block_effects;
        let signed_rank = SignedRank::new(effects)?;
        let student = StudentSample::new(effects)?;
        let has_spread = student
            .standard_deviation
            .is_some_and(|spread| spread > 0.0);
        let mut results = vec![
            MethodResult {
                interval: signed_rank.interval(confidence)?,
                p: Some(signed_rank.p_two_sided(0.0)),
                ..MethodResult::estimated(Method::SignedRank, signed_rank.estimate())
            },
            MethodResult::estimated(Method::StudentT, student.mean),
        ];
        if has_spread {
            results[1].interval = Some(student.interval(confidence)?);
            results[1].p = Some(student.p_two_sided(0.0)?);
        }
        if let Some(p) = sign_flip_p(effects, 0.0)? {
            results.push(MethodResult {
                p: Some(p),
                ..MethodResult::estimated(Method::SignFlip, student.mean)
            });
        }
        if has_spread && effects.len() <= RESAMPLED_MAX {
            results.push(MethodResult {
                interval: bca_interval(&[effects], |samples| mean(&samples[0]), draws, confidence)
                    .ok(),
                ..MethodResult::estimated(Method::Bca, student.mean)
            });
        }
        of_comparisons.push(results);
    }
    correct_by_holm(&mut of_comparisons)?;
    let effects: Vec<Vec<f64>> = family
        .iter()
        .map(|comparison| comparison.block_effects.clone())
        .collect();
    let all_values: usize = effects.iter().map(Vec::len).sum();
    if all_values <= RESAMPLED_MAX
        && let Ok(adjusted) = max_t_sign_flip(&effects, draws)
    {
        for (results, adjusted_p) in of_comparisons.iter_mut().zip(adjusted) {
            results.push(MethodResult {
                adjusted_p: Some(adjusted_p),
                ..MethodResult::estimated(Method::MaxTSignFlip, results[1].estimate)
            });
        }
    }
    Ok(of_comparisons)
}

/// What every method makes of independent observations, one list a comparison; all on the
/// logarithms.
///
/// Shape: a family with one baseline; each side with two observations or more, all positive.
/// Resampling, by `draws`, is left out beyond [`RESAMPLED_MAX`] observations.
///
/// # Errors
/// Those of [`crate::independent_verdicts`].
pub fn independent_methods(
    family: &[IndependentObservations],
    confidence: f64,
    draws: Draws,
) -> Result<Vec<Vec<MethodResult>>, StatsError> {
    let Some(first) = family.first() else {
        return Ok(Vec::new());
    };
    let reference = logarithms(&first.name, &first.baseline)?;
    let samples = family
        .iter()
        .map(|comparison| logarithms(&comparison.name, &comparison.variant))
        .collect::<Result<Vec<_>, _>>()?;
    let all_values = reference.len() + samples.iter().map(Vec::len).sum::<usize>();
    let is_resampled = all_values <= RESAMPLED_MAX;
    let mut of_comparisons = Vec::with_capacity(family.len());
    for sample in &samples {
        of_comparisons.push(two_sample_methods(
            sample,
            &reference,
            confidence,
            is_resampled.then_some(draws),
        )?);
    }
    correct_by_holm(&mut of_comparisons)?;
    let samples: Vec<&[f64]> = samples.iter().map(Vec::as_slice).collect();
    // Both need a common variance, or none at all; where there is none they have nothing to say.
    if let Ok(compared) = dunnett(&reference, &samples, confidence) {
        for (results, compared) in of_comparisons.iter_mut().zip(compared) {
            results.push(MethodResult {
                interval: Some(compared.interval),
                adjusted_p: Some(compared.adjusted_p),
                ..MethodResult::estimated(Method::Dunnett, compared.difference)
            });
        }
    }
    if is_resampled && let Ok(adjusted) = max_t_permutation(&reference, &samples, draws) {
        for (results, adjusted_p) in of_comparisons.iter_mut().zip(adjusted) {
            results.push(MethodResult {
                adjusted_p: Some(adjusted_p),
                ..MethodResult::estimated(Method::MaxTPermutation, results[0].estimate)
            });
        }
    }
    Ok(of_comparisons)
}

fn two_sample_methods(
    sample: &[f64],
    reference: &[f64],
    confidence: f64,
    draws: Option<Draws>,
) -> Result<Vec<MethodResult>, StatsError> {
    let of_t = |method: Method, test: TwoSampleT| {
        Ok(MethodResult {
            interval: Some(test.interval(confidence)?),
            p: Some(test.p_two_sided(0.0)),
            ..MethodResult::estimated(method, test.difference)
        })
    };
    let welch = TwoSampleT::welch(sample, reference)?;
    let mann_whitney = MannWhitney::new(sample, reference)?;
    let mut results = vec![
        of_t(Method::WelchT, welch)?,
        of_t(Method::PooledT, TwoSampleT::pooled(sample, reference)?)?,
        MethodResult {
            interval: mann_whitney.interval(confidence)?,
            p: Some(mann_whitney.midrank().two_sided),
            ..MethodResult::estimated(Method::MannWhitney, mann_whitney.estimate())
        },
    ];
    if let Some(draws) = draws {
        let test = PermutationTest::new(&[Stratum { sample, reference }], draws)?;
        results.push(MethodResult {
            p: Some(test.p_two_sided(0.0)),
            ..MethodResult::estimated(Method::Permutation, test.difference())
        });
        let difference = |samples: &[Vec<f64>]| mean(&samples[0]) - mean(&samples[1]);
        results.push(MethodResult {
            interval: bca_interval(&[sample, reference], difference, draws, confidence).ok(),
            ..MethodResult::estimated(Method::Bca, welch.difference)
        });
    }
    Ok(results)
}

/// Corrects the p-values of each method over the family, where every comparison has one.
fn correct_by_holm(of_comparisons: &mut [Vec<MethodResult>]) -> Result<(), StatsError> {
    let methods: Vec<Method> = of_comparisons
        .first()
        .map(|results| results.iter().map(|result| result.method).collect())
        .unwrap_or_default();
    for method in methods {
        let mut of_method: Vec<&mut MethodResult> = of_comparisons
            .iter_mut()
            .filter_map(|results| results.iter_mut().find(|result| result.method == method))
            .collect();
        let p_values: Option<Vec<f64>> = of_method.iter().map(|result| result.p).collect();
        let Some(p_values) = p_values.filter(|p_values| p_values.len() == of_method.len()) else {
            continue;
        };
        for (result, adjusted) in of_method.iter_mut().zip(holm_adjusted(&p_values)?) {
            result.adjusted_p = Some(adjusted);
        }
    }
    Ok(())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::independent::independent_verdicts;
    use crate::verdict::{VerdictSettings, family_verdicts};

    const FEW: Draws = Draws { seed: 7, count: 99 };

    fn effects(name: &str, block_effects: &[f64]) -> ComparisonEffects {
        ComparisonEffects {
            name: name.to_owned(),
            block_effects: block_effects.to_vec(),
        }
    }

    fn methods(results: &[MethodResult]) -> Vec<Method> {
        results.iter().map(|result| result.method).collect()
    }

    #[test]
    fn methods_that_need_more_are_left_out() {
        let of = |values: &[f64]| {
            methods(&block_methods(&[effects("a", values)], 0.95, FEW).unwrap()[0])
        };
        let always = [Method::SignedRank, Method::StudentT, Method::SignFlip];
        assert_eq!(of(&[0.1])[..3], always);
        assert!(!of(&[0.1; 8]).contains(&Method::Bca));
        let all = of(&[0.1, 0.2, 0.15, 0.11]);
        assert_eq!(all[3..], [Method::Bca, Method::MaxTSignFlip]);
        // Effects of different numbers of blocks have no common signs.
        let uneven = [effects("a", &[0.1, 0.2, 0.15]), effects("b", &[0.1, 0.3])];
        let uneven = block_methods(&uneven, 0.95, FEW).unwrap();
        assert!(!methods(&uneven[0]).contains(&Method::MaxTSignFlip));
        assert!(block_methods(&[], 0.95, FEW).unwrap().is_empty());
        assert!(independent_methods(&[], 0.95, FEW).unwrap().is_empty());
    }

    #[test]
    fn resampling_ends_where_it_would_take_minutes() {
        let many: Vec<f64> = (0..RESAMPLED_MAX).map(|i| 1.0 + (i % 7) as f64).collect();
        let family = [IndependentObservations {
            name: "b".to_owned(),
            baseline: many.clone(),
            variant: many,
        }];
        let results = &independent_methods(&family, 0.95, FEW).unwrap()[0];
        assert_eq!(
            methods(results),
            [
                Method::WelchT,
                Method::PooledT,
                Method::MannWhitney,
                Method::Dunnett
            ]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// The first method is the verdict's own, in estimate, interval and corrected p.
        #[test]
        fn the_first_is_the_verdict_s(
            family in prop::collection::vec(prop::collection::vec(-0.1..0.1_f64, 8), 1..4),
            baseline in prop::collection::vec(0.5..2.0_f64, 2..7),
            variants in prop::collection::vec(prop::collection::vec(0.5..2.0_f64, 2..7), 1..4),
        ) {
            let family: Vec<ComparisonEffects> = family.iter().map(|values| effects("a", values)).collect();
            let verdicts = family_verdicts(&family, None, &VerdictSettings::default()).unwrap();
            let of_blocks = block_methods(&family, 0.95, FEW).unwrap();
            let independent: Vec<IndependentObservations> = variants
                .iter()
                .map(|variant| IndependentObservations {
                    name: "b".to_owned(),
                    baseline: baseline.clone(),
                    variant: variant.clone(),
                })
                .collect();
            let judged = independent_verdicts(&independent, &VerdictSettings::default()).unwrap();
            let of_sides = independent_methods(&independent, 0.95, FEW).unwrap();
            let both = verdicts.comparisons.iter().zip(&of_blocks)
                .chain(judged.comparisons.iter().zip(&of_sides));
            for (verdict, results) in both {
                prop_assert_eq!(verdict.estimate.to_bits(), results[0].estimate.to_bits());
                prop_assert_eq!(verdict.direction_interval, results[0].interval);
                prop_assert_eq!(Some(verdict.p.direction), results[0].p);
                prop_assert_eq!(Some(verdict.adjusted_p.direction), results[0].adjusted_p);
            }
            for result in of_blocks.iter().chain(&of_sides).flatten() {
                prop_assert!(result.p.is_none_or(|p| (0.0..=1.0).contains(&p)));
                prop_assert!(result.adjusted_p.is_none_or(|p| (0.0..=1.0).contains(&p)));
                // The bootstrap's interval is corrected for a bias that its estimate is not.
                let holds = |interval: &Interval| interval.contains(result.estimate);
                let is_bootstrap = result.method == Method::Bca;
                prop_assert!(is_bootstrap || result.interval.as_ref().is_none_or(holds));
            }
        }
    }
}
