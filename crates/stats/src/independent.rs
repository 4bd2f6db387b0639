//! Verdicts on independent observations: data without a design, of which nobody knows which belong
//! together.
//!
//! The observations' logarithms are compared by Welch's t, so that an effect is a rate ratio as in a
//! block, and the two sides may scatter differently.

use crate::error::StatsError;
use crate::hodges_lehmann::Interval;
use crate::logarithms::logarithms;
use crate::shift_test::ShiftTest;
use crate::two_sample_t::TwoSampleT;
use crate::verdict::{EffectTest, FamilyVerdicts, Unit, VerdictSettings, judged};

/// Two sides that are to be compared.
#[derive(Debug, Clone, PartialEq)]
pub struct IndependentObservations {
    /// The caller's name for the comparison.
    pub name: String,
    /// Observations of what the other side is compared with.
    pub baseline: Vec<f64>,
    /// Observations of that other side.
    pub variant: Vec<f64>,
}

/// Judges a family of comparisons of independent observations.
///
/// Shape: any number of comparisons; each side with two observations or more, all positive.
///
/// Units: of the observations, any that both sides share; of the effects, log ratios.
///
/// # Errors
/// [`StatsError::TooFew`], [`StatsError::NotFinite`] and [`StatsError::NotPositive`] with the comparison
/// as their subject, [`StatsError::NoSpread`] where neither side scatters,
/// [`StatsError::Confidence`], [`StatsError::Threshold`].
///
/// # Source
/// [`TwoSampleT`].
///
/// # Examples
/// ```
/// use fwdlab_stats::{IndependentObservations, Verdict, VerdictSettings, independent_verdicts};
/// let slower = IndependentObservations {
///     name: "nft, 10 rules".to_owned(),
///     baseline: vec![1.02e6, 1.01e6, 1.03e6, 1.02e6, 1.01e6],
///     variant: vec![0.75e6, 0.77e6, 0.76e6, 0.76e6, 0.75e6],
/// };
/// let family = independent_verdicts(&[slower], &VerdictSettings::default())?;
/// assert_eq!(family.comparisons[0].verdict, Verdict::Different);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn independent_verdicts(
    comparisons: &[IndependentObservations],
    settings: &VerdictSettings,
) -> Result<FamilyVerdicts, StatsError> {
    let tests = comparisons
        .iter()
        .map(|comparison| Ok((comparison.name.clone(), LogWelch::new(comparison)?)))
        .collect::<Result<Vec<_>, StatsError>>()?;
    Ok(FamilyVerdicts {
        settings: *settings,
        comparisons: judged(&tests, settings)?,
        warnings: Vec::new(),
    })
}

/// Welch's t of the logarithms.
pub(crate) struct LogWelch {
    pub(crate) test: TwoSampleT,
    /// Of the side that has fewer.
    pub(crate) observations: usize,
}

impl LogWelch {
    fn new(comparison: &IndependentObservations) -> Result<Self, StatsError> {
        let IndependentObservations {
            name,
            baseline,
            variant,
        } = comparison;
        Ok(Self {
            test: TwoSampleT::welch(&logarithms(name, variant)?, &logarithms(name, baseline)?)?,
            observations: baseline.len().min(variant.len()),
        })
    }
}

impl ShiftTest for LogWelch {
    fn p_greater(&self, shift: f64) -> f64 {
        self.test.p_greater(shift)
    }

    fn p_less(&self, shift: f64) -> f64 {
        self.test.p_less(shift)
    }
}

impl EffectTest for LogWelch {
    fn estimate(&self) -> f64 {
        self.test.difference
    }

    fn interval_with_tail(&self, tail: f64) -> Option<Interval> {
        self.test.interval(1.0 - 2.0 * tail).ok()
    }

    fn widest_interval(&self, confidence: f64) -> Result<Option<Interval>, StatsError> {
        self.test.interval(confidence).map(Some)
    }

    fn size(&self) -> (usize, Unit) {
        (self.observations, Unit::Observations)
    }

    fn smallest_p(&self, _size: usize) -> f64 {
        0.0
    }

    fn degrees_of_freedom(&self) -> f64 {
        self.test.degrees_of_freedom
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::verdict::Verdict;

    fn compared(baseline: &[f64], variant: &[f64]) -> IndependentObservations {
        IndependentObservations {
            name: "b".to_owned(),
            baseline: baseline.to_vec(),
            variant: variant.to_vec(),
        }
    }

    fn refusal(baseline: &[f64], variant: &[f64]) -> String {
        independent_verdicts(&[compared(baseline, variant)], &VerdictSettings::default())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        insta::assert_snapshot!(
            [
                refusal(&[], &[1.0, 2.0]),
                refusal(&[1.0], &[1.0, 2.0]),
                refusal(&[1.0, 2.0], &[1.0, f64::NAN]),
                refusal(&[1.0, 2.0], &[1.0, 0.0]),
                refusal(&[2.0, 2.0], &[1.0, 1.0]),
            ]
            .join("\n"),
            @r#"
b: no values (0 given); give at least one
Welch's t, reference: too few values (1); give at least 2
b: value 1 is not finite (NaN); give finite numbers only
b: value 1 has no logarithm (0); give positive numbers only
Welch's t: the values do not vary (0 spread); give values that do, or a rank test
"#
        );
    }

    #[test]
    fn many_comparisons_are_corrected_together() {
        let noisy = [1.00, 1.02, 0.99, 1.01, 0.98, 1.00, 1.01, 0.99];
        let shifted = noisy.map(|value| value * 1.012);
        let alone = [compared(&noisy, &shifted)];
        let verdicts = |comparisons: &[IndependentObservations]| {
            independent_verdicts(comparisons, &VerdictSettings::default()).unwrap()
        };
        let among_many = vec![compared(&noisy, &shifted); 5];
        let (alone, among_many) = (
            &verdicts(&alone).comparisons[0],
            &verdicts(&among_many).comparisons[0],
        );
        assert!((among_many.adjusted_p.direction - 5.0 * alone.p.direction).abs() < 1e-12);
        assert_eq!(alone.direction_interval, among_many.direction_interval);
        assert!(alone.blocks.is_none());
    }

    proptest! {
        #[test]
        fn words_do_not_hang_on_the_unit_and_sides_mirror(
            baseline in prop::collection::vec(0.5_f64..2.0, 3..20),
            variant in prop::collection::vec(0.5_f64..2.0, 3..20),
            unit in 1e-3_f64..1e7,
        ) {
            let judge = |baseline: &[f64], variant: &[f64]| {
                let settings = VerdictSettings::default();
                independent_verdicts(&[compared(baseline, variant)], &settings)
                    .unwrap()
                    .comparisons
                    .remove(0)
            };
            let scaled = |values: &[f64]| values.iter().map(|value| value * unit).collect::<Vec<_>>();
            let judged = judge(&baseline, &variant);
            let in_unit = judge(&scaled(&baseline), &scaled(&variant));
            prop_assert_eq!(judged.verdict, in_unit.verdict);
            prop_assert!((judged.estimate - in_unit.estimate).abs() < 1e-9);
            let mirrored = judge(&variant, &baseline);
            prop_assert!((judged.estimate + mirrored.estimate).abs() < 1e-12);
            prop_assert!((judged.p.direction - mirrored.p.direction).abs() < 1e-12);
            // The interval and the test for this comparison alone agree.
            let interval = judged.direction_interval.unwrap();
            let holds_none = interval.lower > 0.0 || interval.upper < 0.0;
            prop_assert_eq!(holds_none, judged.p.direction < 0.05);
            prop_assert_eq!(judged.verdict == Verdict::Undecided, in_unit.verdict == Verdict::Undecided);
        }
    }
}
