//! The verdict in words on each comparison of a family.
//!
//! Two facts are established at confidence 1 - alpha (95 %):
//!
//! - **direction**: the two-sided signed-rank test against no effect, the 95 % interval against
//!   0;
//! - **size**: the one-sided tests against the practical threshold, the 90 % interval against
//!   ±d. *Inside* if both reject (two one-sided tests), *beyond* if the one in the estimate's
//!   direction shows an effect larger than d.
//!
//! The threshold is a change in percent as it is printed: d = 0.01 means that the rate ratio lies
//! between 0.99 and 1.01, so block effects, being log ratios, are compared with ln(0.99) and
//! ln(1.01).
//!
//! The words follow Holm-adjusted p-values over the family: one Holm over the direction
//! p-values, one over the inside ones. The beyond p-values belong to the direction family: an
//! effect is beyond the threshold if its direction is shown *and* Holm over all the family's
//! beyond p-values shows it. Borrowing each comparison's multiplier from the direction p-values
//! instead would not hold the level: two true effects of exactly d, both with a clear direction,
//! would be tested at alpha / 2 and at alpha, and one of them be called larger than d in up to
//! 1.5 alpha of all families. So at most a share alpha of families holds a wrong direction, at
//! most alpha an effect wrongly called beyond d, at most alpha one wrongly called inside.

use std::cell::LazyCell;

use serde::Serialize;

use crate::control::ControlVerdict;
use crate::count::whole;
use crate::distribution::t_upper_quantile;
use crate::error::{StatsError, significance};
use crate::format::percent;
use crate::hodges_lehmann::Interval;
use crate::multiplicity::holm_adjusted;
use crate::power::{DETECTION_POWER, KnownError};
use crate::shift_test::ShiftTest;
use crate::signed_rank::{EXACT_BLOCKS_MAX, SignedRank, minimum_blocks};
use crate::spread::{Spread, outlying};
use crate::student::StudentSample;
use crate::warning::Warning;

/// The words, exclusive and exhaustive; the last one is of what was offered, the others are of effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum Verdict {
    /// An effect beyond the practical threshold is shown.
    #[serde(rename = "different")]
    Different,
    /// A direction is shown, and that the size is inside the threshold.
    #[serde(rename = "different but negligible")]
    DifferentButNegligible,
    /// A direction is shown; the size may be inside or beyond the threshold.
    #[serde(rename = "different, size undecided")]
    DifferentSizeUndecided,
    /// The size is shown to be inside the threshold, no direction is.
    #[serde(rename = "equivalent")]
    Equivalent,
    /// Nothing is shown.
    #[serde(rename = "undecided")]
    Undecided,
    /// The rates are those of the load, all of which came through: nothing of them is the device's. No test finds
    /// this; a caller who knows what was offered says it, by [`ComparisonVerdict::not_limited_by_dut`].
    #[serde(rename = "not limited by the DUT")]
    NotLimitedByDut,
}

impl Verdict {
    /// The word for what is shown. `beyond` counts only with `direction`.
    fn of_facts(direction: bool, beyond: bool, inside: bool) -> Self {
        match (direction, beyond, inside) {
            (true, true, _) => Self::Different,
            (true, false, true) => Self::DifferentButNegligible,
            (true, false, false) => Self::DifferentSizeUndecided,
            (false, _, true) => Self::Equivalent,
            (false, _, false) => Self::Undecided,
        }
    }

    /// The exact words of reports.
    pub fn words(self) -> &'static str {
        match self {
            Self::Different => "different",
            Self::DifferentButNegligible => "different but negligible",
            Self::DifferentSizeUndecided => "different, size undecided",
            Self::Equivalent => "equivalent",
            Self::Undecided => "undecided",
            Self::NotLimitedByDut => "not limited by the DUT",
        }
    }

    /// Whether it claims that there is an effect.
    pub fn shows_difference(self) -> bool {
        match self {
            Self::Different | Self::DifferentButNegligible | Self::DifferentSizeUndecided => true,
            Self::Equivalent | Self::Undecided | Self::NotLimitedByDut => false,
        }
    }

    /// Whether it leaves something open that more blocks could decide.
    pub fn leaves_open(self) -> bool {
        matches!(self, Self::DifferentSizeUndecided | Self::Undecided)
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.words())
    }
}

/// What a verdict is asked to hold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct VerdictSettings {
    /// 1 - the error probability of each family of claims.
    pub confidence: f64,
    /// The smallest change that matters, as a ratio: 0.01 is 1 %.
    pub practical_threshold: f64,
}

impl Default for VerdictSettings {
    /// 95 % and 1 %.
    fn default() -> Self {
        Self {
            confidence: 0.95,
            practical_threshold: 0.01,
        }
    }
}

/// One variant's effects against the family's baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparisonEffects {
    /// The caller's name for it.
    pub name: String,
    /// One log ratio a block, in block order.
    pub block_effects: Vec<f64>,
}

/// The p-values behind a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClaimPValues {
    /// Two-sided, against no effect.
    pub direction: f64,
    /// Of the two one-sided tests against ±d, the larger: the effect is inside.
    pub inside: f64,
    /// One-sided, against d in the direction of the estimate: the effect is beyond.
    pub beyond: f64,
}

/// What a sample grows by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Blocks, each with every variant in it.
    Blocks,
    /// Observations of both sides.
    Observations,
    /// Sessions of both sides.
    Sessions,
}

impl Unit {
    fn words(self, number: usize) -> &'static str {
        match (self, number) {
            (Self::Blocks, 1) => "more block",
            (Self::Blocks, _) => "more blocks",
            (Self::Observations, 1) => "more observation of each set",
            (Self::Observations, _) => "more observations of each set",
            (Self::Sessions, 1) => "more session of each side",
            (Self::Sessions, _) => "more sessions of each side",
        }
    }
}

/// How much more data would decide what a verdict leaves open.
///
/// For planning a new measurement. Adding to this one until it is decided spends error probability at
/// every look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MoreData {
    /// About so many more.
    About(usize, Unit),
    /// More than so many more: the estimate is too close to the threshold for its noise.
    MoreThan(usize, Unit),
    /// One block shows no noise to reckon with.
    NoiseUnknown,
}

/// `about 12 more blocks would decide it at the noise seen`.
impl std::fmt::Display for MoreData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::About(number, unit) => {
                let words = unit.words(number);
                write!(
                    f,
                    "about {number} {words} would decide it at the noise seen"
                )
            }
            Self::MoreThan(number, unit) => {
                let words = unit.words(number);
                write!(
                    f,
                    "it would take more than {number} {words} to decide it at the noise seen"
                )
            }
            Self::NoiseUnknown => {
                f.write_str("how many more blocks would decide it cannot be said from one block")
            }
        }
    }
}

/// What is concluded about one comparison, whatever test it rests on.
///
/// Units: effects are log ratios (see [`crate::format_effect`]).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparisonVerdict {
    /// The caller's name for it.
    pub name: String,
    /// The test's own estimate of the effect.
    pub estimate: f64,
    /// The interval of the direction, for this comparison alone; `None` if the data cannot
    /// reach its level.
    pub direction_interval: Option<Interval>,
    /// The interval of the size, for this comparison alone: the error probability of the
    /// direction's on each side, 90 % for 95 %.
    pub size_interval: Option<Interval>,
    /// For this comparison alone.
    pub p: ClaimPValues,
    /// Holm-adjusted over the family; the words follow these.
    pub adjusted_p: ClaimPValues,
    /// The word.
    pub verdict: Verdict,
    /// The word that the printed intervals alone would suggest.
    pub uncorrected_verdict: Verdict,
    /// How many comparisons the family holds.
    pub family_size: usize,
    /// For a verdict that leaves something open.
    pub more: Option<MoreData>,
    /// What blocks tell besides; `None` for independent observations.
    pub blocks: Option<BlockDetails>,
}

impl ComparisonVerdict {
    /// Where the word differs from what its intervals suggest, the words that say why.
    pub fn correction_note(&self) -> Option<String> {
        (self.verdict != self.uncorrected_verdict)
            .then(|| format!("after correction for {} comparisons", self.family_size))
    }

    /// The same of rates that the load decided, and not the device under test.
    #[must_use]
    pub fn not_limited_by_dut(self) -> Self {
        Self {
            verdict: Verdict::NotLimitedByDut,
            uncorrected_verdict: Verdict::NotLimitedByDut,
            more: None,
            ..self
        }
    }
}

/// The block effects behind a verdict, and what else they say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BlockDetails {
    /// The effects, in block order.
    pub effects: Vec<f64>,
    /// Whether the estimate is smaller than the A/A control's half-width.
    pub below_control: bool,
    /// How far the block effects scatter; `None` for one block.
    pub spread: Option<Spread>,
    /// Their mean, as ministat's reader expects it; the estimate stands beside it.
    pub mean: f64,
}

/// The verdicts on a family of comparisons with one baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FamilyVerdicts {
    /// What was asked.
    pub settings: VerdictSettings,
    /// In the order given.
    pub comparisons: Vec<ComparisonVerdict>,
    /// In the order of the comparisons; the control's own are in
    /// [`ControlVerdict::warnings`].
    pub warnings: Vec<Warning>,
}

/// Judges a family of comparisons: those with the same baseline in the same address family.
///
/// The A/A control, if there was one, is not part of the family; effects below its half-width
/// are flagged.
///
/// Shape: any number of comparisons, none included; each with one block effect or more, not
/// necessarily the same number.
///
/// # Errors
/// [`StatsError::Empty`] and [`StatsError::NotFinite`] with the comparison as their subject,
/// [`StatsError::Confidence`], [`StatsError::Threshold`].
///
/// # Examples
/// ```
/// use fwdlab_stats::{ComparisonEffects, Verdict, VerdictSettings, family_verdicts};
/// let slower = ComparisonEffects {
///     name: "nft, 10 rules".to_owned(),
///     block_effects: vec![-0.21, -0.24, -0.22, -0.23, -0.22, -0.25, -0.20, -0.23],
/// };
/// let family = family_verdicts(&[slower], None, &VerdictSettings::default())?;
/// assert_eq!(family.comparisons[0].verdict, Verdict::Different);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn family_verdicts(
    comparisons: &[ComparisonEffects],
    control: Option<&ControlVerdict>,
    settings: &VerdictSettings,
) -> Result<FamilyVerdicts, StatsError> {
    let tests = comparisons
        .iter()
        .map(|comparison| Ok((comparison.name.clone(), signed_rank_test(comparison)?)))
        .collect::<Result<Vec<_>, StatsError>>()?;
    let mut family = FamilyVerdicts {
        settings: *settings,
        comparisons: Vec::with_capacity(comparisons.len()),
        warnings: Vec::new(),
    };
    for (comparison, mut judged) in comparisons.iter().zip(judged(&tests, settings)?) {
        let details = BlockDetails {
            effects: comparison.block_effects.clone(),
            below_control: control
                .and_then(ControlVerdict::half_width_percent)
                .is_some_and(|half_width| percent(judged.estimate).abs() < half_width),
            spread: Spread::new(&comparison.block_effects)?,
            mean: StudentSample::new(&comparison.block_effects)?.mean,
        };
        family
            .warnings
            .extend(warnings(&judged, &details, control, settings)?);
        judged.blocks = Some(details);
        family.comparisons.push(judged);
    }
    Ok(family)
}

/// What a comparison's claims are tested with: a test of every shift of the effect, the estimate and the
/// intervals that invert it.
pub(crate) trait EffectTest: ShiftTest {
    fn estimate(&self) -> f64;
    /// None where the data cannot reach the level.
    fn interval_with_tail(&self, tail: f64) -> Option<Interval>;
    /// The widest that there is, where none reaches the confidence; none where nothing tells the noise.
    fn widest_interval(&self, confidence: f64) -> Result<Option<Interval>, StatsError>;
    /// How many there are of what the sample grows by.
    fn size(&self) -> (usize, Unit);
    /// The smallest one-sided p that a sample of a size can have.
    fn smallest_p(&self, size: usize) -> f64;
    /// Degrees of freedom of the t that the estimate over its standard error is like.
    fn degrees_of_freedom(&self) -> f64;
}

impl EffectTest for SignedRank {
    fn estimate(&self) -> f64 {
        self.estimate()
    }

    fn interval_with_tail(&self, tail: f64) -> Option<Interval> {
        self.interval_with_tail(tail)
    }

    fn widest_interval(&self, confidence: f64) -> Result<Option<Interval>, StatsError> {
        self.interval_or_widest(confidence)
    }

    fn size(&self) -> (usize, Unit) {
        (self.blocks(), Unit::Blocks)
    }

    fn smallest_p(&self, size: usize) -> f64 {
        0.5_f64.powf(size as f64)
    }

    fn degrees_of_freedom(&self) -> f64 {
        self.blocks() as f64 - 1.0
    }
}

/// Judges a family by its tests, each with the name of its comparison.
pub(crate) fn judged<T: EffectTest>(
    tests: &[(String, T)],
    settings: &VerdictSettings,
) -> Result<Vec<ComparisonVerdict>, StatsError> {
    let claims = Claims::new(settings)?;
    // Selecting an estimate takes many passes over the data.
    let estimates: Vec<f64> = tests.iter().map(|(_, test)| test.estimate()).collect();
    let p_values: Vec<ClaimPValues> = tests
        .iter()
        .zip(&estimates)
        .map(|((_, test), &estimate)| claims.p_values(test, estimate))
        .collect();
    let adjusted_p_values = adjusted(&p_values)?;
    // Quantiles take long, and most families leave nothing open.
    let at_first_step = LazyCell::new(|| KnownError::new(claims.alpha / tests.len() as f64));
    tests
        .iter()
        .zip(estimates)
        .zip(p_values)
        .zip(adjusted_p_values)
        .map(|((((name, test), estimate), p), adjusted_p)| {
            let verdict = claims.verdict(&adjusted_p);
            let direction_interval = test.interval_with_tail(claims.alpha / 2.0);
            Ok(ComparisonVerdict {
                name: name.clone(),
                estimate,
                direction_interval,
                size_interval: test.interval_with_tail(claims.alpha),
                p,
                adjusted_p,
                verdict,
                uncorrected_verdict: claims.verdict(&p),
                family_size: tests.len(),
                more: if verdict.leaves_open() {
                    Some(claims.more_data(test, estimate, direction_interval, &at_first_step)?)
                } else {
                    None
                },
                blocks: None,
            })
        })
        .collect()
}

fn signed_rank_test(comparison: &ComparisonEffects) -> Result<SignedRank, StatsError> {
    crate::error::require_finite(&comparison.name, &comparison.block_effects)?;
    SignedRank::new(&comparison.block_effects)
}

/// The claims made about each comparison, with what bounds them.
struct Claims {
    alpha: f64,
    /// ln(1 - d) and ln(1 + d).
    threshold: (f64, f64),
}

impl Claims {
    fn new(settings: &VerdictSettings) -> Result<Self, StatsError> {
        let d = settings.practical_threshold;
        if !(d > 0.0 && d < 1.0) {
            return Err(StatsError::Threshold { value: d });
        }
        Ok(Self {
            alpha: significance(settings.confidence)?,
            threshold: ((-d).ln_1p(), d.ln_1p()),
        })
    }

    fn p_values(&self, test: &impl EffectTest, estimate: f64) -> ClaimPValues {
        let (below, above) = self.threshold;
        ClaimPValues {
            direction: test.p_two_sided(0.0),
            inside: test.p_inside(below, above),
            beyond: if estimate > 0.0 {
                test.p_greater(above)
            } else {
                test.p_less(below)
            },
        }
    }

    fn verdict(&self, p: &ClaimPValues) -> Verdict {
        Verdict::of_facts(
            p.direction <= self.alpha,
            p.beyond <= self.alpha,
            p.inside <= self.alpha,
        )
    }

    /// How much more data makes it 80 % probable that the verdict leaves nothing open, if the
    /// estimate is the true effect.
    ///
    /// The noise is read off the interval (Lehmann 1963): its half-width over a quantile of its
    /// confidence estimates the standard error of the estimate, whatever the tails, and shrinks
    /// with the square root of the sample's size. The quantile is that of t, as [`crate::PowerAnalysis`]
    /// takes the tests: the normal one would make 8 blocks look a fifth noisier than they are, and ask
    /// for a third more. From there on the error is taken for known, which is quick, and a few blocks
    /// short of that analysis where few suffice. Each claim is held to the level
    /// alpha / family size, Holm's first step; so the number errs to the large side where other
    /// comparisons of the family are clear.
    fn more_data(
        &self,
        test: &impl EffectTest,
        estimate: f64,
        direction_interval: Option<Interval>,
        at_first_step: &KnownError,
    ) -> Result<MoreData, StatsError> {
        let interval = match direction_interval {
            Some(interval) => Some(interval),
            None => test.widest_interval(1.0 - self.alpha)?,
        };
        let Some(interval) = interval else {
            return Ok(MoreData::NoiseUnknown);
        };
        let (have, unit) = test.size();
        let tail = (1.0 - interval.attained_confidence) / 2.0;
        let noise_of_one = interval.half_width()
            / t_upper_quantile(tail, test.degrees_of_freedom())
            * (have as f64).sqrt();
        let decided = |size: usize| {
            let standard_error = noise_of_one / (size as f64).sqrt();
            let smallest_p = test.smallest_p(size);
            self.power(estimate, standard_error, at_first_step, smallest_p) >= DETECTION_POWER
        };
        if !decided(have + MORE_DATA_MAX) {
            return Ok(MoreData::MoreThan(MORE_DATA_MAX, unit));
        }
        // The power rises with the size: find the first that suffices.
        let (mut too_few, mut enough) = (0, MORE_DATA_MAX);
        while enough - too_few > 1 {
            let middle = too_few + (enough - too_few) / 2;
            if decided(have + middle) {
                enough = middle;
            } else {
                too_few = middle;
            }
        }
        Ok(MoreData::About(enough, unit))
    }

    /// The probability that a sample shows an effect of this size to be beyond the threshold, or
    /// inside it if that is where it is.
    fn power(&self, effect: f64, standard_error: f64, tests: &KnownError, smallest_p: f64) -> f64 {
        let (below, above) = self.threshold;
        let in_errors = |distance: f64| {
            let standardised = distance / standard_error;
            // 0 / 0 only where effects without noise sit on the bound: never shown.
            if standardised.is_nan() {
                f64::NEG_INFINITY
            } else {
                standardised
            }
        };
        if below < effect && effect < above {
            if smallest_p > tests.level {
                return 0.0;
            }
            tests.inside(in_errors(below - effect), in_errors(above - effect))
        } else {
            if smallest_p > tests.level / 2.0 {
                return 0.0;
            }
            let bound = if effect > 0.0 { above } else { below };
            tests.beyond(in_errors(effect.abs()), in_errors((effect - bound).abs()))
        }
    }
}

/// Where [`MoreData`] stops counting.
const MORE_DATA_MAX: usize = 1000;

/// Robust standard deviations from the median beyond which a block is shown as outlying.
const OUTLYING_DEVIATIONS: f64 = 5.0;

fn adjusted(p_values: &[ClaimPValues]) -> Result<Vec<ClaimPValues>, StatsError> {
    let holm = |claim: fn(&ClaimPValues) -> f64| {
        holm_adjusted(&p_values.iter().map(claim).collect::<Vec<f64>>())
    };
    let direction = holm(|p| p.direction)?;
    let inside = holm(|p| p.inside)?;
    let beyond = holm(|p| p.beyond)?;
    Ok((0..p_values.len())
        .map(|i| ClaimPValues {
            direction: direction[i],
            inside: inside[i],
            beyond: beyond[i].max(direction[i]),
        })
        .collect())
}

fn warnings(
    judged: &ComparisonVerdict,
    details: &BlockDetails,
    control: Option<&ControlVerdict>,
    settings: &VerdictSettings,
) -> Result<Vec<Warning>, StatsError> {
    let mut warnings = Vec::new();
    let have = details.effects.len();
    let need_alone = minimum_blocks(1, settings.confidence)?;
    let need_in_family = minimum_blocks(judged.family_size, settings.confidence)?;
    if have < need_alone {
        warnings.push(Warning::TooFewBlocks {
            comparison: judged.name.clone(),
            confidence: settings.confidence,
            need: need_alone,
            have,
        });
    }
    if need_in_family > need_alone && have < need_in_family {
        warnings.push(Warning::TooFewBlocksForFamily {
            comparison: judged.name.clone(),
            comparisons: judged.family_size,
            need: need_in_family,
            have,
        });
    }
    if let Some(control) = control
        && let Some(half_width_percent) = control.half_width_percent()
        && details.below_control
        && judged.verdict.shows_difference()
    {
        let shrink = half_width_percent / percent(judged.estimate);
        warnings.push(Warning::EffectBelowControl {
            comparison: judged.name.clone(),
            estimate: judged.estimate,
            half_width_percent,
            blocks: whole((control.block_effects.len() as f64 * shrink * shrink).ceil()) as u64,
        });
    }
    // One of so many blocks moves nothing.
    let outlying = if have > EXACT_BLOCKS_MAX {
        Vec::new()
    } else {
        outlying(
            &details.effects,
            OUTLYING_DEVIATIONS,
            settings.practical_threshold,
        )
    };
    for index in outlying {
        let mut others = details.effects.clone();
        let effect = others.remove(index);
        warnings.push(Warning::OutlyingBlock {
            comparison: judged.name.clone(),
            block: u32::try_from(index + 1).unwrap_or(u32::MAX),
            effect,
            estimate: judged.estimate,
            estimate_without: SignedRank::new(&others)?.estimate(),
        });
    }
    Ok(warnings)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn comparison(name: &str, block_effects: &[f64]) -> ComparisonEffects {
        ComparisonEffects {
            name: name.to_owned(),
            block_effects: block_effects.to_vec(),
        }
    }

    fn judge(effects: &[f64]) -> ComparisonVerdict {
        family_verdicts(
            &[comparison("variant", effects)],
            None,
            &VerdictSettings::default(),
        )
        .unwrap()
        .comparisons
        .remove(0)
    }

    /// Eight effects around a centre, none equal.
    fn around(centre: f64, step: f64) -> Vec<f64> {
        (-4..4)
            .map(|i| centre + step * (f64::from(i) + 0.5))
            .collect()
    }

    fn codes(warnings: &[Warning]) -> Vec<&'static str> {
        warnings.iter().map(Warning::code).collect()
    }

    #[test]
    fn each_word_has_its_data() {
        let word = |centre, step| judge(&around(centre, step)).verdict.words();
        assert_eq!(word(-0.2, 0.01), "different");
        assert_eq!(word(0.2, 0.01), "different");
        assert_eq!(word(0.004, 0.0005), "different but negligible");
        assert_eq!(word(-0.011, 0.002), "different, size undecided");
        assert_eq!(word(0.0, 0.001), "equivalent");
        assert_eq!(word(0.0, 0.02), "undecided");
    }

    #[test]
    fn words_travel_as_they_are_printed() {
        for verdict in [
            Verdict::Different,
            Verdict::DifferentButNegligible,
            Verdict::DifferentSizeUndecided,
            Verdict::Equivalent,
            Verdict::Undecided,
        ] {
            assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.words());
            assert_eq!(verdict.to_string(), verdict.words());
        }
    }

    #[test]
    fn intervals_and_p_values_are_those_of_eight_blocks() {
        let judged = judge(&around(-0.2, 0.01));
        let direction = judged.direction_interval.unwrap();
        let size = judged.size_interval.unwrap();
        assert_eq!(direction.nominal_confidence, 0.95);
        assert_eq!(direction.attained_confidence, 1.0 - 10.0 / 256.0);
        assert_eq!(size.nominal_confidence, 0.9);
        assert_eq!(size.attained_confidence, 1.0 - 20.0 / 256.0);
        assert_eq!(judged.p.direction, 2.0 / 256.0);
        assert_eq!(judged.p.beyond, 1.0 / 256.0);
        assert_eq!(judged.p.inside, 1.0);
        assert_eq!(judged.adjusted_p.direction, judged.p.direction);
        // Being beyond implies the direction: not shown more firmly than that.
        assert_eq!(judged.adjusted_p.beyond, judged.p.direction);
        assert_eq!(judged.more, None);
    }

    #[test]
    fn five_blocks_show_no_direction_however_clear() {
        let family = family_verdicts(
            &[comparison("variant", &[-0.3, -0.31, -0.29, -0.3, -0.28])],
            None,
            &VerdictSettings::default(),
        )
        .unwrap();
        let judged = &family.comparisons[0];
        assert_eq!(judged.verdict, Verdict::Undecided);
        assert_eq!(judged.direction_interval, None);
        assert_eq!(judged.more, Some(MoreData::About(1, Unit::Blocks)));
        assert_eq!(codes(&family.warnings), ["W101"]);
    }

    #[test]
    fn a_family_that_needs_more_blocks_says_so() {
        let clear = around(-0.2, 0.01);
        let six = comparison("six", &clear[..6]);
        let family = |size: usize| {
            family_verdicts(&vec![six.clone(); size], None, &VerdictSettings::default()).unwrap()
        };
        assert!(family(1).warnings.is_empty());
        assert_eq!(family(1).comparisons[0].verdict, Verdict::Different);
        let three = family(3);
        assert_eq!(codes(&three.warnings), ["W102"; 3]);
        assert_eq!(three.comparisons[0].verdict, Verdict::Undecided);
        assert_eq!(three.comparisons[0].uncorrected_verdict, Verdict::Different);
        assert_eq!(
            three.comparisons[0].correction_note().unwrap(),
            "after correction for 3 comparisons"
        );
        assert_eq!(family(1).comparisons[0].correction_note(), None);
    }

    #[test]
    fn so_many_blocks_have_no_outlying_one() {
        let mut effects: Vec<f64> = (0..EXACT_BLOCKS_MAX)
            .map(|i| (i % 7) as f64 * 1e-4)
            .collect();
        effects[3] = -0.3;
        let warned = |effects: &[f64]| {
            let family = family_verdicts(
                &[comparison("variant", effects)],
                None,
                &VerdictSettings::default(),
            );
            codes(&family.unwrap().warnings).contains(&"W106")
        };
        assert!(warned(&effects));
        effects.push(0.0);
        assert!(!warned(&effects));
    }

    #[test]
    fn one_block_is_undecided_and_says_why() {
        let family = family_verdicts(
            &[comparison("variant", &[0.1])],
            None,
            &VerdictSettings::default(),
        )
        .unwrap();
        let judged = &family.comparisons[0];
        assert_eq!(judged.verdict, Verdict::Undecided);
        assert_eq!(judged.more, Some(MoreData::NoiseUnknown));
        let details = judged.blocks.as_ref().unwrap();
        assert_eq!(details.spread, None);
        assert_eq!(codes(&family.warnings), ["W101"]);
    }

    #[test]
    fn bad_input_is_refused_by_name() {
        let settings = VerdictSettings::default();
        let refusal = |effects: &[f64], settings: &VerdictSettings| {
            family_verdicts(&[comparison("nft", effects)], None, settings)
                .unwrap_err()
                .to_string()
        };
        insta::assert_snapshot!(
            [
                refusal(&[], &settings),
                refusal(&[0.0, f64::NAN], &settings),
                refusal(&[0.0], &VerdictSettings { confidence: 95.0, ..settings }),
                refusal(&[0.0], &VerdictSettings { practical_threshold: 0.0, ..settings }),
            ]
            .join("\n"),
            @r#"
nft: no values (0 given); give at least one
nft: value 1 is not finite (NaN); give finite numbers only
confidence: not between 0.5 and 1 (95); give for example 0.95
practical threshold: not between 0 and 1 (0); give a ratio, for example 0.01 for 1 %
"#
        );
        let none = family_verdicts(&[], None, &settings).unwrap();
        assert!(none.comparisons.is_empty() && none.warnings.is_empty());
    }

    #[test]
    fn a_hundred_comparisons_are_judged() {
        let family = vec![comparison("variant", &around(-0.2, 0.01)); 100];
        let judged = family_verdicts(&family, None, &VerdictSettings::default()).unwrap();
        assert!(
            judged
                .comparisons
                .iter()
                .all(|c| c.verdict == Verdict::Undecided)
        );
        assert_eq!(
            judged.comparisons[0].adjusted_p.direction,
            100.0 * 2.0 / 256.0
        );
    }

    #[test]
    fn effects_below_the_control_are_flagged() {
        let control = crate::control_verdict(&around(0.0, 0.005)).unwrap();
        let family = family_verdicts(
            &[
                comparison("small", &around(0.004, 0.0005)),
                comparison("none", &around(0.0, 0.0005)),
                comparison("large", &around(0.2, 0.0005)),
            ],
            Some(&control),
            &VerdictSettings::default(),
        )
        .unwrap();
        let flags: Vec<bool> = family
            .comparisons
            .iter()
            .map(|c| c.blocks.as_ref().unwrap().below_control)
            .collect();
        assert_eq!(flags, [true, true, false]);
        assert_eq!(codes(&family.warnings), ["W105"]);
        assert_eq!(family.warnings[0].subject(), "small");
    }

    /// As it is printed: -17.8 % is less than 18.4 %, though its logarithm is -0.196.
    #[test]
    fn an_effect_and_the_control_are_compared_in_the_percent_that_is_printed() {
        let control =
            crate::control_verdict(&[-0.186, 0.181, 0.02, -0.05, 0.11, -0.09, 0.03, -0.01])
                .unwrap();
        let half_width = control.half_width_percent().unwrap();
        let shown = -17.8_f64;
        let log_ratio = (shown / 100.0).ln_1p();
        assert!(
            half_width > 17.8 && half_width < log_ratio.abs() * 100.0,
            "{half_width}"
        );
        let family = family_verdicts(
            &[comparison("variant", &around(log_ratio, 0.001))],
            Some(&control),
            &VerdictSettings::default(),
        )
        .unwrap();
        assert_eq!(codes(&family.warnings), ["W105"]);
        assert_eq!(
            family.warnings[0].text(),
            "the effect (-17.8 %) is smaller than the half-width of the A/A control (18.4 %); about 9 blocks would \
             bring it down to that"
        );
    }

    #[test]
    fn an_outlying_block_is_shown_and_kept() {
        let mut effects = around(-0.2, 0.001);
        effects[3] = -0.5;
        let family = family_verdicts(
            &[comparison("variant", &effects)],
            None,
            &VerdictSettings::default(),
        )
        .unwrap();
        assert_eq!(codes(&family.warnings), ["W106"]);
        assert_eq!(
            family.comparisons[0].blocks.as_ref().unwrap().effects.len(),
            8
        );
        assert!(matches!(
            family.warnings[0],
            Warning::OutlyingBlock { block: 4, .. }
        ));
    }

    #[test]
    fn more_blocks_shrink_with_the_noise_and_end_at_the_cap() {
        let more = |centre, step| judge(&around(centre, step)).more;
        let (
            Some(MoreData::About(noisy, Unit::Blocks)),
            Some(MoreData::About(quieter, Unit::Blocks)),
        ) = (more(0.0, 0.02), more(0.0, 0.01))
        else {
            panic!("{:?} {:?}", more(0.0, 0.02), more(0.0, 0.01))
        };
        // Half the noise needs a quarter of the blocks, in all.
        let ratio = (noisy + 8) as f64 / (quieter + 8) as f64;
        assert!((3.7..=4.3).contains(&ratio), "{noisy} {quieter}");
        assert_eq!(
            more(0.01_f64.ln_1p(), 0.01),
            Some(MoreData::MoreThan(MORE_DATA_MAX, Unit::Blocks))
        );
    }

    /// 80 % is where an effect lies the sum of two quantiles of standard errors off the bound.
    #[test]
    fn power_is_that_of_a_normal_estimate() {
        let claims = Claims::new(&VerdictSettings::default()).unwrap();
        let (below, above) = claims.threshold;
        let tests = KnownError::new(0.05);
        let power = |effect: f64, error: f64, smallest_p: f64| {
            claims.power(effect, error, &tests, smallest_p)
        };
        let error = 0.001;
        let tiny = 0.5_f64.powi(50);
        let beyond = power(above + (1.644_854 + 0.841_621) * error, error, tiny);
        assert!((beyond - 0.8).abs() < 1e-6, "{beyond}");
        let mirrored = power(below - (1.644_854 + 0.841_621) * error, error, tiny);
        assert!((mirrored - 0.8).abs() < 1e-6, "{mirrored}");
        let centre = f64::midpoint(below, above);
        let error = (above - below) / 2.0 / (1.644_854 + 1.281_552);
        let inside = power(centre, error, tiny);
        assert!((inside - 0.8).abs() < 1e-6, "{inside}");
        // The exact test's smallest p-value bounds it even where there is no noise.
        assert_eq!(power(0.5, 0.0, 0.5_f64.powi(5)), 0.0);
        assert_eq!(power(0.5, 0.0, 0.5_f64.powi(6)), 1.0);
    }

    fn families() -> impl Strategy<Value = Vec<Vec<f64>>> {
        let effects = prop_oneof![
            prop::collection::vec(-0.03..0.03_f64, 1..14),
            prop::collection::vec((-3_i8..=3).prop_map(|v| f64::from(v) / 100.0), 1..14),
            (-0.03..0.03_f64, 0.0..0.004_f64).prop_map(|(centre, step)| around(centre, step)),
        ];
        prop::collection::vec(effects, 1..6)
    }

    proptest! {
        /// For a single comparison the word says what the two intervals say.
        #[test]
        fn the_uncorrected_word_reads_the_intervals(effects in families()) {
            let (below, above) = Claims::new(&VerdictSettings::default()).unwrap().threshold;
            for effects in effects {
                let judged = judge(&effects);
                prop_assert_eq!(judged.verdict, judged.uncorrected_verdict);
                let direction = judged.direction_interval.is_some_and(|i| !i.contains(0.0));
                let size = judged.size_interval;
                let inside = size.is_some_and(|i| below < i.lower && i.upper < above);
                let beyond = size.is_some_and(|i| above < i.lower || i.upper < below);
                prop_assert!(!(inside && beyond));
                let expected = match (direction, inside, beyond) {
                    (true, false, true) => Verdict::Different,
                    (true, true, false) => Verdict::DifferentButNegligible,
                    (true, false, false) => Verdict::DifferentSizeUndecided,
                    (false, true, _) => Verdict::Equivalent,
                    _ => Verdict::Undecided,
                };
                prop_assert_eq!(judged.verdict, expected);
            }
        }

        /// The correction only takes claims away, and the notes appear exactly where it does.
        #[test]
        fn correction_never_adds_a_claim(effects in families()) {
            let family: Vec<ComparisonEffects> =
                effects.iter().map(|effects| comparison("variant", effects)).collect();
            let judged = family_verdicts(&family, None, &VerdictSettings::default()).unwrap();
            for c in &judged.comparisons {
                prop_assert!(c.adjusted_p.direction >= c.p.direction);
                prop_assert!(c.adjusted_p.inside >= c.p.inside);
                prop_assert!(c.adjusted_p.beyond >= c.p.beyond);
                prop_assert!(c.uncorrected_verdict.shows_difference() || !c.verdict.shows_difference());
                prop_assert_eq!(c.correction_note().is_some(), c.verdict != c.uncorrected_verdict);
                prop_assert_eq!(c.more.is_some(), c.verdict.leaves_open());
            }
        }

        /// Neither the order of the family nor that of the blocks moves a word.
        #[test]
        fn order_is_irrelevant(effects in families()) {
            let words = |effects: &[Vec<f64>]| -> Vec<Verdict> {
                let family: Vec<ComparisonEffects> =
                    effects.iter().map(|effects| comparison("variant", effects)).collect();
                let judged = family_verdicts(&family, None, &VerdictSettings::default()).unwrap();
                judged.comparisons.iter().map(|c| c.verdict).collect()
            };
            let backwards: Vec<Vec<f64>> = effects
                .iter()
                .rev()
                .map(|effects| effects.iter().rev().copied().collect())
                .collect();
            let mut reversed = words(&backwards);
            reversed.reverse();
            prop_assert_eq!(words(&effects), reversed);
        }

        /// Results survive the way into report.json: no number that JSON cannot hold.
        #[test]
        fn every_number_is_finite(effects in families()) {
            let family: Vec<ComparisonEffects> =
                effects.iter().map(|effects| comparison("variant", effects)).collect();
            let judged = family_verdicts(&family, None, &VerdictSettings::default()).unwrap();
            for c in &judged.comparisons {
                for p in [c.p, c.adjusted_p] {
                    for p in [p.direction, p.inside, p.beyond] {
                        prop_assert!((0.0..=1.0).contains(&p));
                    }
                }
                prop_assert!(c.estimate.is_finite());
            }
        }
    }
}
