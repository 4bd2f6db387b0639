//! What was offered to a variant beside what was offered to its baseline, and what that makes of the
//! effect: a sensitivity, on which no verdict rests.
//!
//! Nothing is said of a self-clocked load. There generator and DUT take turns on one core, so that what
//! is offered follows from what is forwarded: offered load is the outcome, and an effect adjusted for it
//! would be no effect at all.

use fwdlab_archive::Loaded;
use fwdlab_model::{Comparison, LoadRegime, SliceRecord, Stratum, TrialRecord, VariantName};
use fwdlab_stats::{
    AdjustedEffect, ArmsCovariate, CovariateArm, Interval, SignedRank, Slice, Slope, StatsError,
    Trust, TwoSampleT, VerdictSettings, block_effect, covariate_of_arms, covariate_of_blocks,
    log_ratio, logarithms, percent,
};
use serde::{Deserialize, Serialize};

use crate::evidence::{self, Scope, Slices};
use crate::format;
use crate::report::{IntervalSection, Row, Warning};
use crate::sections::{interval_section, verdict_settings};

/// The part of the practical threshold from which a shift of the offered load matters: a rate that
/// follows the offered load in full would have half of an effect that does.
const SHIFT_RATIO_MIN: f64 = 0.5;

/// What was offered to a variant, against what was offered to the baseline in the same blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfferedLoadRow {
    /// The variant.
    pub variant: VariantName,
    /// How much more was offered to it, as the effect is estimated: in percent of the baseline's.
    pub shift_percent: f64,
    /// The interval of that; none where the blocks are too few for one.
    pub shift_interval: Option<IntervalSection>,
    /// Whether it differs by so much that it matters: the interval excludes 0, and the shift is at least
    /// half the practical threshold.
    pub differs: bool,
    /// What that makes of the effect; none with fewer than three blocks, and where the ratio of the
    /// offered loads is the same in all.
    pub sensitivity: Option<SensitivitySection>,
    /// All of it in a sentence.
    pub sentence: String,
}

/// An effect at equal offered load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SensitivitySection {
    /// The effect where as much is offered to both, in percent.
    pub adjusted_percent: f64,
    /// Its interval.
    pub adjusted_interval: IntervalSection,
    /// The slope of the block effects over the blocks' ratios of the offered load, both as logarithms:
    /// 1 where the rate follows the offered load, 0 where it does not care. Between runs, of the trials'
    /// rates over their offered loads, the same for both sides.
    pub slope: SlopeSection,
    /// The baseline's own slope over its trials; none where its offered load never changed.
    pub baseline_slope: Option<SlopeSection>,
    /// The variant's own.
    pub variant_slope: Option<SlopeSection>,
    /// Probability of slopes as different as those two by chance.
    pub one_slope_p: Option<f64>,
    /// Whether the slope is known at all, and the same for both sides.
    pub is_supported: bool,
}

/// How much a rate changes with the offered load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlopeSection {
    /// The slope.
    pub estimate: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
    /// Probability of a slope as far from 0 by chance.
    pub p: f64,
}

impl OfferedLoadRow {
    fn new(
        variant: VariantName,
        shift: f64,
        interval: Option<Interval>,
        sensitivity: Option<(SensitivitySection, Trust)>,
        threshold: f64,
    ) -> Self {
        let matters = (threshold * SHIFT_RATIO_MIN).ln_1p();
        let differs = interval.is_some_and(|interval| !interval.contains(0.0));
        let shift_percent = percent(shift);
        let shift_interval = interval.map(interval_section);
        Self {
            variant,
            sentence: sentence(shift_percent, shift_interval, sensitivity.as_ref()),
            shift_percent,
            shift_interval,
            differs: differs && shift.abs() >= matters,
            sensitivity: sensitivity.map(|(sensitivity, _)| sensitivity),
        }
    }

    /// W217, where the offered load differs.
    pub(crate) fn warning(&self, subject: String) -> Option<Warning> {
        self.differs.then(|| Warning {
            percent: Some(self.shift_percent),
            ..Warning::new(
                "W217",
                [subject],
                format!(
                    "its offered load differs from the baseline's by half the threshold or more: {}",
                    format::change_with_interval(self.shift_percent, self.shift_interval)
                ),
                "hold the verdict against the effect at equal offered load, or pace the load at what the generator can \
                 offer to every variant",
            )
        })
    }
}

impl SensitivitySection {
    fn new(
        adjusted: &AdjustedEffect,
        trust: Trust,
        slope: &Slope,
        arms: Option<&ArmsCovariate>,
    ) -> (Self, Trust) {
        let own = |index: usize| arms.map(|arms| slope_section(&arms.slopes[index]));
        let section = Self {
            adjusted_percent: percent(adjusted.estimate),
            adjusted_interval: interval_section(adjusted.interval),
            slope: slope_section(slope),
            baseline_slope: own(0),
            variant_slope: own(1),
            one_slope_p: arms.map(|arms| arms.interaction.p),
            is_supported: trust == Trust::Supported,
        };
        (section, trust)
    }
}

/// A trial under overload counts as held by its load where it forwarded this part of what was offered.
///
/// Rings that are full lose a thousandth at once: a router that keeps up loses less in all.
const HELD_RATIO: f64 = 0.999;

/// The part of a variant's trials that were held by their load, from which on that is said.
const HELD_TRIALS: f64 = 0.25;

/// As much of a load as may be lost where all of it is said to have come through: a few frames of a ring that was
/// full for a moment.
const LOST_RATIO_MAX: f64 = 1e-5;

/// Whether all that was to be offered was offered and came through, in every trial of every variant of a comparison: the
/// rates are then those of the load. Never under a self-clocked load, which is as high as the DUT lets it be.
pub(crate) fn is_carried_whole(loaded: &Loaded, comparison: &Comparison, stratum: Stratum) -> bool {
    if loaded.regime() == LoadRegime::SelfClocked {
        return false;
    }
    let attempts = evidence::attempts(loaded, Scope::Accepted);
    let variants = || std::iter::once(&comparison.baseline).chain(&comparison.variants);
    let mut trials = attempts.iter().flat_map(|attempt| {
        variants().filter_map(|variant| evidence::trial(attempt, variant, stratum))
    });
    !attempts.is_empty() && trials.all(is_carried)
}

/// Whether all that was offered in a trial came through. One that offered less than was intended is not valid.
pub(crate) fn is_carried(trial: &TrialRecord) -> bool {
    let lost = trial.dut.dropped_frames() as f64;
    let offered = trial.tester.offered_frames as f64;
    // Frames that are under way at the edges of slices are no loss.
    let came_through = trial.tester.forwarded_frames as f64 >= HELD_RATIO * offered;
    came_through && trial.tester.not_transmitted_frames == 0 && lost <= LOST_RATIO_MAX * offered
}

/// W218 for each variant whose trials show the load, and not the DUT: under overload, all that was offered
/// was forwarded.
pub(crate) fn held_by_load(
    loaded: &Loaded,
    variants: &[VariantName],
    stratum: Stratum,
    subject: impl Fn(&VariantName) -> String,
) -> Vec<Warning> {
    if loaded.regime() != LoadRegime::Overload {
        return Vec::new();
    }
    let attempts = evidence::attempts(loaded, Scope::Accepted);
    let warning = |variant: &VariantName| {
        let trials: Vec<&TrialRecord> = attempts
            .iter()
            .filter_map(|attempt| evidence::trial(attempt, variant, stratum))
            .collect();
        let is_held = |trial: &&&TrialRecord| {
            let offered_pps = trial.tester.offered_frames as f64 / trial.measured_s;
            // Where the tester's own port does not take all, what left it is not known for the slices alone; drops are
            // those of whole loads, and more than the slices'.
            let dropped = trial.dut.dropped_frames() as f64;
            let is_short = trial.tester.not_transmitted_frames > 0
                && dropped <= (1.0 - HELD_RATIO) * trial.tester.forwarded_frames as f64;
            is_short || trial.observation_pps >= HELD_RATIO * offered_pps
        };
        let held = trials.iter().filter(is_held).count();
        (held > 0 && held as f64 >= HELD_TRIALS * trials.len() as f64).then(|| {
            Warning::new(
                "W218",
                [subject(variant)],
                format!(
                    "in {held} of {} trials it forwarded all that was offered: what it could do beyond does not \
                     show, and its effect is larger than it looks",
                    trials.len()
                ),
                match loaded.resolved.has_forwarder() {
                    // It takes no turns with a generator.
                    true => "offer more",
                    false => "offer more, of a router's lab by `overload_ratio`; or measure self-clocked",
                },
            )
        })
    };
    variants.iter().filter_map(warning).collect()
}

/// A row for each variant of a comparison that has an effect; none under a self-clocked load.
pub(crate) fn rows(
    loaded: &Loaded,
    comparison: &Comparison,
    slices: &Slices<'_>,
    rows: &[Row],
) -> Result<Vec<OfferedLoadRow>, StatsError> {
    if loaded.regime() == LoadRegime::SelfClocked {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for row in rows {
        let sides = Sides::of_row(loaded, &comparison.baseline, slices, row)?;
        if !sides.shifts.is_empty() {
            let settings = verdict_settings(&loaded.resolved.design);
            found.push(sides.row(row.variant.clone(), &settings)?);
        }
    }
    Ok(found)
}

/// The same for observations whose offered loads are known, each side a sample of its own: by Welch's t and an analysis of
/// covariance. Logarithms need positive rates and loads.
///
/// Shape: forwarding rates and as many offered loads, the baseline's first.
pub(crate) fn row_of_observations(
    [baseline, other]: [(&[f64], &[f64]); 2],
    as_variant: VariantName,
    settings: &VerdictSettings,
) -> Result<OfferedLoadRow, StatsError> {
    let sides = [Side::of(baseline)?, Side::of(other)?];
    let confidence = settings.confidence;
    let welch = TwoSampleT::welch(&sides[1].offered, &sides[0].offered);
    let (shift, interval) = match welch {
        Ok(welch) => (welch.difference, Some(welch.interval(confidence)?)),
        // The same load in every trial of a side, or one trial.
        Err(StatsError::NoSpread { .. } | StatsError::TooFew { .. }) => {
            (sides[1].offered[0] - sides[0].offered[0], None)
        }
        Err(error) => return Err(error),
    };
    let arms = where_there_is_a_line(covariate_of_arms(
        &[sides[0].arm("baseline"), sides[1].arm("variant")],
        confidence,
    ))?;
    let sensitivity = arms.map(|arms| {
        let adjusted = arms.adjusted[0];
        SensitivitySection::new(&adjusted, adjusted.trust, &arms.common_slope, Some(&arms))
    });
    Ok(OfferedLoadRow::new(
        as_variant,
        shift,
        interval,
        sensitivity,
        settings.practical_threshold,
    ))
}

/// The same where the observations of one place belong together.
///
/// Shape: forwarding rates and as many offered loads on both sides, the baseline's first.
pub(crate) fn row_of_pairs(
    [baseline, other]: [(&[f64], &[f64]); 2],
    as_variant: VariantName,
    settings: &VerdictSettings,
) -> Result<OfferedLoadRow, StatsError> {
    let (baseline, variant) = (Side::of(baseline)?, Side::of(other)?);
    let ratios = |variant: &[f64], baseline: &[f64]| -> Vec<f64> {
        let pairs = variant.iter().zip(baseline);
        pairs
            .map(|(variant, baseline)| variant - baseline)
            .collect()
    };
    let sides = Sides {
        effects: ratios(&variant.rates, &baseline.rates),
        shifts: ratios(&variant.offered, &baseline.offered),
        baseline,
        variant,
    };
    sides.row(as_variant, settings)
}

/// Forwarding rates and offered loads of one side's trials, as logarithms.
#[derive(Default)]
struct Side {
    rates: Vec<f64>,
    offered: Vec<f64>,
}

impl Side {
    /// Shape: forwarding rates and as many offered loads, all positive.
    fn of((rates, offered): (&[f64], &[f64])) -> Result<Self, StatsError> {
        Ok(Self {
            rates: logarithms("forwarding rates", rates)?,
            offered: logarithms("offered loads", offered)?,
        })
    }

    fn push(&mut self, trial: &TrialRecord) {
        self.rates.push(trial.observation_pps.ln());
        self.offered.push(offered_pps(trial).ln());
    }

    fn arm<'a>(&'a self, name: &'a str) -> CovariateArm<'a> {
        CovariateArm {
            name,
            values: &self.rates,
            covariate: &self.offered,
        }
    }
}

/// What the blocks with an effect say of both sides; all of it logarithms.
#[derive(Default)]
struct Sides {
    effects: Vec<f64>,
    shifts: Vec<f64>,
    baseline: Side,
    variant: Side,
}

impl Sides {
    fn of_row(
        loaded: &Loaded,
        baseline: &VariantName,
        slices: &Slices<'_>,
        row: &Row,
    ) -> Result<Self, StatsError> {
        let mut sides = Self::default();
        let shortest_counted_s = loaded.resolved.design.shortest_counted_s();
        let attempts = evidence::attempts(loaded, Scope::Accepted);
        for effect in row.effect.iter().flat_map(|effect| &effect.blocks) {
            let of_block = evidence::of_block(&attempts, effect.block);
            let Some((attempt, trial, baseline_trial)) = of_block.and_then(|attempt| {
                let trial = evidence::trial(attempt, &row.variant, slices.stratum)?;
                let baseline_trial = evidence::trial(attempt, baseline, slices.stratum)?;
                Some((attempt, trial, baseline_trial))
            }) else {
                continue;
            };
            let offered = offered_slices(slices.of_trial(attempt, &row.variant));
            let baseline_offered = offered_slices(slices.of_trial(attempt, baseline));
            // Estimated as the effect is; whole measurements have no slices.
            let shift = if offered.is_empty() && baseline_offered.is_empty() {
                log_ratio(offered_pps(trial), offered_pps(baseline_trial))
            } else {
                block_effect(&offered, &baseline_offered, shortest_counted_s)
                    .map(|effect| effect.log_ratio)
            };
            let shift = match shift {
                Ok(shift) => shift,
                // Records that do not say what was offered.
                Err(
                    StatsError::NothingForwarded
                    | StatsError::NoRatio { .. }
                    | StatsError::NoCommonRound { .. },
                ) => {
                    continue;
                }
                Err(error) => return Err(error),
            };
            sides.effects.push((effect.percent / 100.0).ln_1p());
            sides.shifts.push(shift);
            sides.variant.push(trial);
            sides.baseline.push(baseline_trial);
        }
        Ok(sides)
    }

    fn row(
        &self,
        variant: VariantName,
        settings: &VerdictSettings,
    ) -> Result<OfferedLoadRow, StatsError> {
        let test = SignedRank::new(&self.shifts)?;
        Ok(OfferedLoadRow::new(
            variant,
            test.estimate(),
            test.interval(settings.confidence)?,
            self.sensitivity(settings.confidence)?,
            settings.practical_threshold,
        ))
    }

    /// None where there is no line to be drawn.
    fn sensitivity(
        &self,
        confidence: f64,
    ) -> Result<Option<(SensitivitySection, Trust)>, StatsError> {
        let blocks = covariate_of_blocks("offered load", &self.effects, &self.shifts, confidence);
        let Some(blocks) = where_there_is_a_line(blocks)? else {
            return Ok(None);
        };
        let arms = [self.baseline.arm("baseline"), self.variant.arm("variant")];
        let arms = where_there_is_a_line(covariate_of_arms(&arms, confidence))?;
        let slopes_differ = arms
            .as_ref()
            .and_then(|arms| arms.adjusted.first())
            .is_some_and(|adjusted| adjusted.trust == Trust::SlopesDiffer);
        let trust = if slopes_differ {
            Trust::SlopesDiffer
        } else {
            blocks.adjusted.trust
        };
        Ok(Some(SensitivitySection::new(
            &blocks.adjusted,
            trust,
            &blocks.slope,
            arms.as_ref(),
        )))
    }
}

/// What there is to say, and nothing where the offered load is the same everywhere, the blocks are too
/// few or a rate is 0.
fn where_there_is_a_line<T>(found: Result<T, StatsError>) -> Result<Option<T>, StatsError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(
            StatsError::ConstantCovariate { .. }
            | StatsError::TooFew { .. }
            | StatsError::NotFinite { .. },
        ) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) fn offered_pps(trial: &TrialRecord) -> f64 {
    trial.tester.offered_frames as f64 / trial.measured_s
}

/// Slices with what was offered in them.
fn offered_slices(slices: &[&SliceRecord]) -> Vec<Slice> {
    slices
        .iter()
        .map(|slice| Slice::of(slice.round, (slice.offered_frames, slice.time_s)))
        .collect()
}

fn slope_section(slope: &Slope) -> SlopeSection {
    SlopeSection {
        estimate: slope.estimate,
        low: slope.interval.lower,
        high: slope.interval.upper,
        p: slope.p,
    }
}

fn sentence(
    shift_percent: f64,
    shift_interval: Option<IntervalSection>,
    sensitivity: Option<&(SensitivitySection, Trust)>,
) -> String {
    let shift = format!(
        "offered load {} against the baseline's",
        format::change_with_interval(shift_percent, shift_interval)
    );
    let Some((sensitivity, trust)) = sensitivity else {
        return format!("{shift}; from so few blocks, or equal ones, no slope can be estimated");
    };
    let doubt = match trust {
        Trust::SlopeUnknown => {
            return format!(
                "{shift}; it moved too little beside the noise for a slope to be known, so that \
                 nothing can be adjusted by it"
            );
        }
        Trust::SlopesDiffer => {
            "; the two sides do not share a slope, so that there is no one such effect"
        }
        Trust::Supported => "",
    };
    let own = match (
        &sensitivity.baseline_slope,
        &sensitivity.variant_slope,
        sensitivity.one_slope_p,
    ) {
        (Some(baseline), Some(variant), Some(p)) => format!(
            "; over the trials of each side {} for the baseline and {} for the variant, p of one slope {}",
            slope_text(baseline),
            slope_text(variant),
            fwdlab_stats::format_p(p)
        ),
        _ => String::new(),
    };
    format!(
        "{shift}; at equal offered load the effect would be {} (slope {}{own}){doubt}",
        format::change_with_interval(
            sensitivity.adjusted_percent,
            Some(sensitivity.adjusted_interval)
        ),
        slope_text(&sensitivity.slope)
    )
}

fn slope_text(slope: &SlopeSection) -> String {
    format!(
        "{} {}",
        format::signed(slope.estimate, 2),
        format::ends(slope.low, slope.high, 2)
    )
}
