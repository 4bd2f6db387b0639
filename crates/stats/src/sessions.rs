//! Comparing sessions: uninterrupted stretches of measurements, between which a machine changes by more than its
//! noise within one of them.
//!
//! A session's observations say nothing of the next session. So its median is one number, and a verdict needs several
//! sessions of each side ([`session_verdicts`]), or several of one configuration that show how far sessions differ
//! ([`rerun_verdicts`]). With neither there is a difference within the sessions at hand ([`within_sessions`]), and no
//! verdict.

use crate::error::{StatsError, require_any, require_count, significance};
use crate::hodges_lehmann::Interval;
use crate::logarithms::logarithms;
use crate::mann_whitney::{MannWhitney, smallest_rank_p};
use crate::shift_test::ShiftTest;
use crate::spread::median;
use crate::student::StudentSample;
use crate::two_sample_t::TwoSampleT;
use crate::verdict::{EffectTest, FamilyVerdicts, Unit, VerdictSettings, judged};
use crate::warning::Warning;

/// The fewest sessions of a side that are tested, and the fewest reruns that tell the noise between sessions.
///
/// With 3 sessions of each side the exact rank test has no p-value below 0.10; with 4 it reaches 0.029. The spread of
/// fewer than 4 reruns is hardly known: its 95 % interval reaches from half the estimate to six times it with 3.
pub const SESSIONS_MIN: usize = 4;

/// Two sides of one session or more, each with its observations.
///
/// Shape: sessions with one observation or more, all positive. Units: any that all share.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedSessions {
    /// The caller's name for the comparison.
    pub name: String,
    /// The sessions of what the other side is compared with.
    pub baseline: Vec<Vec<f64>>,
    /// The sessions of that other side.
    pub variant: Vec<Vec<f64>>,
}

/// A difference as the sessions at hand show it; another session may show another one.
///
/// Units: log ratios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WithinSessions {
    /// The difference of the sides, each the mean over its sessions of their mean logarithms.
    pub estimate: f64,
    /// How far the noise within the sessions leaves it open; `None` where a session has one observation only, or
    /// nothing scatters.
    pub interval: Option<Interval>,
}

/// The difference of two sides within the sessions at hand, by Welch's t of the logarithms: the sessions are taken as
/// they are, and only the noise within them is in the interval.
///
/// # Errors
/// [`StatsError::Empty`], [`StatsError::NotFinite`] and [`StatsError::NotPositive`] with the comparison as their
/// subject, [`StatsError::Confidence`].
///
/// # Examples
/// ```
/// use fwdlab_stats::{ComparedSessions, within_sessions};
/// let compared = ComparedSessions {
///     name: "autumn".to_owned(),
///     baseline: vec![vec![1.02e6, 1.01e6, 1.03e6]],
///     variant: vec![vec![1.31e6, 1.30e6, 1.32e6]],
/// };
/// let within = within_sessions(&compared, 0.95)?;
/// assert!((within.estimate.exp() - 1.284).abs() < 1e-3);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn within_sessions(
    compared: &ComparedSessions,
    confidence: f64,
) -> Result<WithinSessions, StatsError> {
    let sides = compared.logarithms()?;
    let mean_of = |side: &[Vec<f64>]| -> Result<f64, StatsError> {
        let means = side.iter().map(|session| StudentSample::new(session));
        let means = means.collect::<Result<Vec<_>, _>>()?;
        Ok(means.iter().map(|of| of.mean).sum::<f64>() / means.len() as f64)
    };
    Ok(WithinSessions {
        estimate: mean_of(&sides.variant)? - mean_of(&sides.baseline)?,
        interval: match sides.within_test()? {
            Some(test) => Some(test.interval(confidence)?),
            None => None,
        },
    })
}

/// Judges a family of comparisons whose unit is the session: the logarithms of the sessions' medians, by the exact
/// Mann-Whitney test, with the Hodges-Lehmann estimate and the interval that invert it.
///
/// Shape: [`SESSIONS_MIN`] sessions of each side or more.
///
/// # Errors
/// [`StatsError::TooFew`], [`StatsError::Empty`], [`StatsError::NotFinite`] and [`StatsError::NotPositive`] with the
/// comparison as their subject, [`StatsError::Confidence`], [`StatsError::Threshold`].
///
/// # Source
/// [`MannWhitney`].
///
/// # Examples
/// ```
/// use fwdlab_stats::{ComparedSessions, Verdict, VerdictSettings, session_verdicts};
/// let sessions = |medians: [f64; 4]| medians.map(|median| vec![median]).to_vec();
/// let slower = ComparedSessions {
///     name: "patched".to_owned(),
///     baseline: sessions([1.02e6, 1.01e6, 1.03e6, 1.00e6]),
///     variant: sessions([0.75e6, 0.77e6, 0.76e6, 0.78e6]),
/// };
/// let family = session_verdicts(&[slower], &VerdictSettings::default())?;
/// assert_eq!(family.comparisons[0].verdict, Verdict::Different);
/// assert_eq!(family.comparisons[0].p.direction, 2.0 / 70.0);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn session_verdicts(
    comparisons: &[ComparedSessions],
    settings: &VerdictSettings,
) -> Result<FamilyVerdicts, StatsError> {
    let mut tests = Vec::with_capacity(comparisons.len());
    for compared in comparisons {
        require_count(&compared.name, SESSIONS_MIN, compared.fewer_sessions())?;
        let medians = compared.log_medians()?;
        tests.push((
            compared.name.clone(),
            MannWhitney::new(&medians.1, &medians.0)?,
        ));
    }
    let need = minimum_sessions(comparisons.len(), settings.confidence)?;
    let level = significance(settings.confidence)? / comparisons.len().max(1) as f64;
    let too_few = |(name, test): &(String, MannWhitney)| {
        let (variant, baseline) = test.sizes();
        (smallest_rank_p(variant, baseline) > level).then(|| Warning::TooFewSessionsForFamily {
            comparison: name.clone(),
            comparisons: comparisons.len(),
            need,
            have: variant.min(baseline),
        })
    };
    Ok(FamilyVerdicts {
        settings: *settings,
        comparisons: judged(&tests, settings)?,
        warnings: tests.iter().filter_map(too_few).collect(),
    })
}

/// The smallest number of sessions of each side with which any of so many comparisons can be shown: the first whose
/// smallest p-value reaches the level of Holm's first step. At least [`SESSIONS_MIN`].
///
/// # Errors
/// [`StatsError::Confidence`].
///
/// # Examples
/// ```
/// use fwdlab_stats::minimum_sessions;
/// assert_eq!(minimum_sessions(1, 0.95)?, 4);
/// assert_eq!(minimum_sessions(2, 0.95)?, 5);
/// assert_eq!(minimum_sessions(7, 0.95)?, 6);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn minimum_sessions(comparisons: usize, confidence: f64) -> Result<usize, StatsError> {
    let level = significance(confidence)? / comparisons.max(1) as f64;
    let mut sessions = SESSIONS_MIN;
    while smallest_rank_p(sessions, sessions) > level {
        sessions += 1;
    }
    Ok(sessions)
}

/// How far sessions of one configuration differ: the spread of their medians.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RerunNoise {
    /// How many sessions tell it.
    pub sessions: usize,
    /// Standard deviation of the logarithms of their medians, with n - 1.
    pub standard_deviation: f64,
}

impl RerunNoise {
    /// The noise that sessions of one configuration show; `subject` names them in errors.
    ///
    /// # Errors
    /// [`StatsError::TooFew`] below [`SESSIONS_MIN`] sessions, [`StatsError::NoSpread`] where all medians are the same,
    /// [`StatsError::Empty`], [`StatsError::NotFinite`], [`StatsError::NotPositive`].
    pub fn new(subject: &str, sessions: &[Vec<f64>]) -> Result<Self, StatsError> {
        require_count(subject, SESSIONS_MIN, sessions.len())?;
        let medians = StudentSample::new(&log_medians(subject, sessions)?)?;
        let standard_deviation = medians.standard_deviation.filter(|spread| *spread > 0.0);
        Ok(Self {
            sessions: sessions.len(),
            standard_deviation: standard_deviation.ok_or_else(|| StatsError::NoSpread {
                subject: subject.to_owned(),
            })?,
        })
    }

    /// Degrees of freedom of the standard deviation.
    #[must_use]
    pub fn degrees_of_freedom(&self) -> f64 {
        (self.sessions - 1) as f64
    }
}

/// Judges a family of comparisons of few sessions by the noise between sessions that reruns show.
///
/// The difference of the sides, each the mean of its sessions' log medians, has the standard error
/// s · sqrt(1/n + 1/m) with n and m sessions, where s is the reruns' standard deviation; it is compared with Student's t
/// with as many degrees of freedom as s has. The reruns may not be among the sessions compared: a deviation that is
/// part of s would be too small beside it.
///
/// A session that is shorter than the reruns has more noise within than their spread shows. So every claim has to be
/// shown within the sessions as well, by the test of [`within_sessions`] where there is one, and an interval reaches
/// as far as the farther of the two.
///
/// # Errors
/// [`StatsError::Empty`], [`StatsError::NotFinite`] and [`StatsError::NotPositive`] with the comparison as their
/// subject, [`StatsError::Confidence`], [`StatsError::Threshold`].
///
/// # Source
/// Student 1908: the difference of future observations of a normal distribution whose variance is estimated apart.
pub fn rerun_verdicts(
    comparisons: &[(ComparedSessions, RerunNoise)],
    settings: &VerdictSettings,
) -> Result<FamilyVerdicts, StatsError> {
    let tests = comparisons
        .iter()
        .map(|(compared, noise)| Ok((compared.name.clone(), RerunTest::new(compared, noise)?)))
        .collect::<Result<Vec<_>, StatsError>>()?;
    Ok(FamilyVerdicts {
        settings: *settings,
        comparisons: judged(&tests, settings)?,
        warnings: Vec::new(),
    })
}

impl ComparedSessions {
    fn fewer_sessions(&self) -> usize {
        self.baseline.len().min(self.variant.len())
    }

    fn log_medians(&self) -> Result<(Vec<f64>, Vec<f64>), StatsError> {
        Ok((
            log_medians(&self.name, &self.baseline)?,
            log_medians(&self.name, &self.variant)?,
        ))
    }

    /// The same with the logarithms of the observations.
    fn logarithms(&self) -> Result<Self, StatsError> {
        let of = |side: &[Vec<f64>]| -> Result<Vec<Vec<f64>>, StatsError> {
            require_any(&self.name, side.len())?;
            let sessions = side.iter();
            sessions
                .map(|session| logarithms(&self.name, session))
                .collect()
        };
        Ok(Self {
            name: self.name.clone(),
            baseline: of(&self.baseline)?,
            variant: of(&self.variant)?,
        })
    }

    /// Welch's t of the sessions as they are; none where their noise is not known.
    ///
    /// Shape: of logarithms.
    fn within_test(&self) -> Result<Option<TwoSampleT>, StatsError> {
        let weighted = |side: &'_ [Vec<f64>], sign: f64| {
            let weight = sign / side.len() as f64;
            let sessions = side.iter();
            sessions
                .map(|session| (weight, session.clone()))
                .collect::<Vec<_>>()
        };
        let samples = [weighted(&self.variant, 1.0), weighted(&self.baseline, -1.0)].concat();
        let samples: Vec<(f64, &[f64])> = samples
            .iter()
            .map(|(weight, session)| (*weight, session.as_slice()))
            .collect();
        match TwoSampleT::welch_contrast(&self.name, &samples) {
            Ok(test) => Ok(Some(test)),
            Err(StatsError::TooFew { .. } | StatsError::NoSpread { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn log_medians(subject: &str, sessions: &[Vec<f64>]) -> Result<Vec<f64>, StatsError> {
    let mut medians = Vec::with_capacity(sessions.len());
    for session in sessions {
        logarithms(subject, session)?;
        medians.extend(median(session).map(f64::ln));
    }
    Ok(medians)
}

impl EffectTest for MannWhitney {
    fn estimate(&self) -> f64 {
        self.estimate()
    }

    fn interval_with_tail(&self, tail: f64) -> Option<Interval> {
        self.interval_with_tail(tail)
    }

    fn widest_interval(&self, confidence: f64) -> Result<Option<Interval>, StatsError> {
        Ok(Some(self.widest_interval(confidence)))
    }

    fn size(&self) -> (usize, Unit) {
        let (sample, reference) = self.sizes();
        (sample.min(reference), Unit::Sessions)
    }

    fn smallest_p(&self, size: usize) -> f64 {
        smallest_rank_p(size, size) / 2.0
    }

    fn degrees_of_freedom(&self) -> f64 {
        let (sample, reference) = self.sizes();
        (sample + reference) as f64 - 2.0
    }
}

/// Student's t with the reruns' spread, and Welch's within the sessions: what is claimed, both have to show.
struct RerunTest {
    between: TwoSampleT,
    within: Option<TwoSampleT>,
    /// Of the side that has fewer.
    sessions: usize,
}

impl RerunTest {
    fn new(compared: &ComparedSessions, noise: &RerunNoise) -> Result<Self, StatsError> {
        let within = compared.logarithms()?.within_test()?;
        let (baseline, variant) = compared.log_medians()?;
        let mean = |medians: &[f64]| medians.iter().sum::<f64>() / medians.len() as f64;
        let of_means = (1.0 / baseline.len() as f64 + 1.0 / variant.len() as f64).sqrt();
        Ok(Self {
            between: TwoSampleT {
                difference: mean(&variant) - mean(&baseline),
                standard_error: noise.standard_deviation * of_means,
                degrees_of_freedom: noise.degrees_of_freedom(),
            },
            within,
            sessions: compared.fewer_sessions(),
        })
    }

    fn larger_of_both(&self, p: impl Fn(&TwoSampleT) -> f64) -> f64 {
        self.within.as_ref().map_or(0.0, &p).max(p(&self.between))
    }
}

impl ShiftTest for RerunTest {
    fn p_greater(&self, shift: f64) -> f64 {
        self.larger_of_both(|test| test.p_greater(shift))
    }

    fn p_less(&self, shift: f64) -> f64 {
        self.larger_of_both(|test| test.p_less(shift))
    }
}

impl EffectTest for RerunTest {
    fn estimate(&self) -> f64 {
        self.between.difference
    }

    fn interval_with_tail(&self, tail: f64) -> Option<Interval> {
        let confidence = 1.0 - 2.0 * tail;
        let between = self.between.interval(confidence).ok()?;
        let Some(within) = &self.within else {
            return Some(between);
        };
        let within = within.interval(confidence).ok()?;
        Some(Interval {
            lower: between.lower.min(within.lower),
            upper: between.upper.max(within.upper),
            ..between
        })
    }

    fn widest_interval(&self, confidence: f64) -> Result<Option<Interval>, StatsError> {
        let tail = significance(confidence)? / 2.0;
        Ok(self.interval_with_tail(tail))
    }

    fn size(&self) -> (usize, Unit) {
        (self.sessions, Unit::Sessions)
    }

    fn smallest_p(&self, _size: usize) -> f64 {
        0.0
    }

    fn degrees_of_freedom(&self) -> f64 {
        self.between.degrees_of_freedom
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::verdict::Verdict;

    const SETTINGS: VerdictSettings = VerdictSettings {
        confidence: 0.95,
        practical_threshold: 0.01,
    };

    fn medians(values: &[f64]) -> Vec<Vec<f64>> {
        values.iter().map(|value| vec![*value]).collect()
    }

    fn compared(baseline: Vec<Vec<f64>>, variant: Vec<Vec<f64>>) -> ComparedSessions {
        ComparedSessions {
            name: "b".to_owned(),
            baseline,
            variant,
        }
    }

    /// Observations that share their session's luck: it moves them more than their own noise does.
    #[test]
    fn a_session_is_one_number_however_many_observations_it_has() {
        let session = |level: f64| (0..50).map(|n| level + f64::from(n % 5)).collect();
        let baseline: Vec<Vec<f64>> = [1000.0, 1040.0, 1020.0, 1060.0].map(session).to_vec();
        let variant: Vec<Vec<f64>> = [1030.0, 1010.0, 1070.0, 1050.0].map(session).to_vec();
        let family =
            session_verdicts(&[compared(baseline.clone(), variant.clone())], &SETTINGS).unwrap();
        // Of the 16 pairs 10 rise; so many or more do in 24 of the 70 arrangements.
        assert_eq!(family.comparisons[0].p.direction, 2.0 * 24.0 / 70.0);
        assert_eq!(family.comparisons[0].verdict, Verdict::Undecided);
        let within = within_sessions(&compared(baseline, variant), 0.95).unwrap();
        // 1040 against 1030, with an interval that knows nothing of sessions.
        assert!((within.estimate - 0.0097).abs() < 2e-4, "{within:?}");
        assert!(within.interval.unwrap().lower > 0.009, "{within:?}");
    }

    #[test]
    fn few_sessions_are_refused_and_a_family_may_need_more() {
        let few = compared(medians(&[1.0, 1.1, 1.2]), medians(&[2.0, 2.1, 2.2, 2.3]));
        let refusal = session_verdicts(&[few], &SETTINGS).unwrap_err();
        assert_eq!(
            refusal,
            StatsError::TooFew {
                subject: "b".to_owned(),
                need: 4,
                have: 3
            }
        );
        assert!(RerunNoise::new("reruns", &medians(&[1.0, 1.1, 1.2])).is_err());
        assert!(matches!(
            RerunNoise::new("reruns", &medians(&[1.0; 4])),
            Err(StatsError::NoSpread { .. })
        ));
        let apart = compared(
            medians(&[1.0, 1.1, 1.2, 1.3]),
            medians(&[2.0, 2.1, 2.2, 2.3]),
        );
        let alone = session_verdicts(std::slice::from_ref(&apart), &SETTINGS).unwrap();
        assert_eq!(alone.comparisons[0].verdict, Verdict::Different);
        assert!(alone.warnings.is_empty());
        let two = session_verdicts(&[apart.clone(), apart], &SETTINGS).unwrap();
        assert_eq!(two.comparisons[0].verdict, Verdict::Undecided);
        assert_eq!(two.warnings.len(), 2);
        assert_eq!(two.warnings[0].code(), "W112");
        assert!(two.warnings[0].text().contains(">= 5 sessions"));
    }

    #[test]
    fn the_fewest_sessions_are_those_whose_smallest_p_serves() {
        for (comparisons, confidence, expected) in [
            (1, 0.9, 4),
            (1, 0.95, 4),
            (1, 0.99, 5),
            (2, 0.95, 5),
            (6, 0.95, 5),
            (7, 0.95, 6),
        ] {
            assert_eq!(minimum_sessions(comparisons, confidence).unwrap(), expected);
        }
        assert!(minimum_sessions(1, 1.0).is_err());
    }

    #[test]
    fn a_claim_from_reruns_has_to_hold_within_the_sessions_too() {
        let reruns = medians(&[1.000, 1.002, 0.999, 1.001, 0.998]);
        let noise = RerunNoise::new("reruns", &reruns).unwrap();
        assert_eq!(noise.degrees_of_freedom(), 4.0);
        let judge = |baseline: &[f64], variant: &[f64]| {
            let compared = compared(vec![baseline.to_vec()], vec![variant.to_vec()]);
            rerun_verdicts(&[(compared, noise)], &SETTINGS)
                .unwrap()
                .comparisons
                .remove(0)
        };
        let steady = judge(&[1.0, 1.001, 0.999, 1.0], &[1.05, 1.051, 1.049, 1.05]);
        assert_eq!(steady.verdict, Verdict::Different);
        // The same medians; the sessions themselves do not show it.
        let noisy = judge(&[1.0, 1.2, 0.8, 1.0], &[1.05, 1.25, 0.85, 1.05]);
        assert_eq!(noisy.estimate, steady.estimate);
        assert_eq!(noisy.verdict, Verdict::Undecided);
        assert!(noisy.direction_interval.unwrap().half_width() > 0.1);
        // A single observation has no noise within; then the reruns' is all there is.
        let single = judge(&[1.0], &[1.05]);
        assert!(single.p.direction <= steady.p.direction);
        assert!(matches!(
            within_sessions(&compared(vec![vec![1.0]], vec![vec![1.05]]), 0.95),
            Ok(WithinSessions { interval: None, .. })
        ));
    }

    fn session() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(0.5_f64..2.0, 2..6)
    }

    proptest! {
        /// No unit, no order of the sessions and no order within them matters, and sides mirror.
        #[test]
        fn verdicts_hang_on_nothing_but_the_sessions(
            baseline in prop::collection::vec(session(), 4..7),
            variant in prop::collection::vec(session(), 4..7),
            unit in prop::sample::select(vec![0.25, 2.0, 1024.0]),
        ) {
            let judge = |baseline: &[Vec<f64>], variant: &[Vec<f64>]| {
                let compared = compared(baseline.to_vec(), variant.to_vec());
                session_verdicts(&[compared], &SETTINGS).unwrap().comparisons.remove(0)
            };
            let other = |side: &[Vec<f64>]| -> Vec<Vec<f64>> {
                let reversed = side.iter().rev();
                reversed
                    .map(|session| session.iter().rev().map(|value| value * unit).collect())
                    .collect()
            };
            let judged = judge(&baseline, &variant);
            let again = judge(&other(&baseline), &other(&variant));
            prop_assert_eq!(judged.verdict, again.verdict);
            prop_assert_eq!(judged.p.direction, again.p.direction);
            prop_assert!((judged.estimate - again.estimate).abs() < 1e-12);
            let mirrored = judge(&variant, &baseline);
            prop_assert!((judged.estimate + mirrored.estimate).abs() < 1e-12);
            prop_assert_eq!(judged.p.direction, mirrored.p.direction);
            // The interval and the test for this comparison alone agree.
            let interval = judged.direction_interval.unwrap();
            let holds_none = interval.lower > 0.0 || interval.upper < 0.0;
            prop_assert_eq!(holds_none, judged.p.direction <= 0.05);
            prop_assert!(interval.contains(judged.estimate));
        }

        #[test]
        fn an_interval_from_reruns_goes_with_its_test(
            baseline in prop::collection::vec(session(), 1..4),
            variant in prop::collection::vec(session(), 1..4),
            reruns in prop::collection::vec(session(), 4..8),
        ) {
            let Ok(noise) = RerunNoise::new("reruns", &reruns) else {
                return Ok(());
            };
            let compared = compared(baseline, variant);
            let judged = rerun_verdicts(&[(compared.clone(), noise)], &SETTINGS)
                .unwrap()
                .comparisons
                .remove(0);
            let interval = judged.direction_interval.unwrap();
            let holds_none = interval.lower > 0.0 || interval.upper < 0.0;
            prop_assert_eq!(holds_none, judged.p.direction < 0.05);
            prop_assert!(interval.contains(judged.estimate));
            // It is nowhere narrower than that within the sessions.
            let within = within_sessions(&compared, 0.95).unwrap().interval.unwrap();
            prop_assert!(interval.lower <= within.lower && within.upper <= interval.upper);
        }
    }
}
