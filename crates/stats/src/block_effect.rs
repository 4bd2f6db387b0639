//! From the slices of one block to its observations and effects.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::StatsError;
use crate::spread::median;

/// One valid slice: what was forwarded in one round while one variant was switched on.
///
/// Invalid slices are left out by the caller, never passed as zeros; a zero is a result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slice {
    /// The round within the block.
    pub round: u32,
    /// Frames that arrived at the sink.
    pub forwarded_frames: u64,
    /// How long the slice counted, without the settle window.
    pub duration_s: f64,
}

impl Slice {
    /// The forwarding rate over the slice.
    ///
    /// # Errors
    /// [`StatsError::SliceDuration`].
    pub fn forwarding_rate_pps(&self) -> Result<f64, StatsError> {
        if self.duration_s.is_finite() && self.duration_s > 0.0 {
            Ok(self.forwarded_frames as f64 / self.duration_s)
        } else {
            Err(StatsError::SliceDuration {
                round: self.round,
                duration_s: self.duration_s,
            })
        }
    }
}

/// A trial's one number, and the one beside it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Observation {
    /// The median over the slices of forwarded frames / slice duration: the observation.
    pub median_forwarding_rate_pps: f64,
    /// All frames / all time.
    pub pooled_forwarding_rate_pps: f64,
    /// How many slices it is made of.
    pub slices: usize,
}

/// The observation of one trial.
///
/// # Errors
/// [`StatsError::Empty`], [`StatsError::SliceDuration`].
///
/// # Examples
/// ```
/// use fwdlab_stats::{Slice, observation};
/// let slice = |round, forwarded_frames| Slice { round, forwarded_frames, duration_s: 0.1 };
/// let trial = observation(&[slice(0, 100_000), slice(1, 40_000), slice(2, 110_000)])?;
/// assert_eq!(trial.median_forwarding_rate_pps, 1_000_000.0);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn observation(slices: &[Slice]) -> Result<Observation, StatsError> {
    let rates_pps = slices
        .iter()
        .map(Slice::forwarding_rate_pps)
        .collect::<Result<Vec<f64>, _>>()?;
    let median_forwarding_rate_pps = median(&rates_pps).ok_or_else(|| StatsError::Empty {
        subject: "observation".to_owned(),
    })?;
    let frames: u64 = slices.iter().map(|slice| slice.forwarded_frames).sum();
    let duration_s: f64 = slices.iter().map(|slice| slice.duration_s).sum();
    Ok(Observation {
        median_forwarding_rate_pps,
        pooled_forwarding_rate_pps: frames as f64 / duration_s,
        slices: slices.len(),
    })
}

/// One block's effect of a variant against the baseline.
///
/// Units: natural logarithms of rate ratios; -0.01 is about -1 %.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BlockEffect {
    /// The median of the round log ratios; finite.
    pub log_ratio: f64,
    /// The log ratio of each round that both share, in round order; finite, so that rounds in
    /// which only one side forwarded are missing here although the median counts them.
    pub round_log_ratios: Vec<f64>,
    /// Rounds with a valid slice of one side only, or in which neither forwarded a frame.
    pub rounds_without_ratio: usize,
}

/// The effect of one block: the median over its rounds of the log ratio to the baseline's slice
/// of the same round.
///
/// With one round this is the log ratio of the two slices. Rounds of which only one side has a
/// slice do not count; a round in which one side forwarded nothing counts as an infinite ratio,
/// which the median bears up to half the rounds.
///
/// Shape: at most one slice a round each, any order.
///
/// # Errors
/// [`StatsError::DuplicateRound`], [`StatsError::SliceDuration`],
/// [`StatsError::NoCommonRound`], [`StatsError::NothingForwarded`].
pub fn block_effect(variant: &[Slice], baseline: &[Slice]) -> Result<BlockEffect, StatsError> {
    let variant_rates_pps = rates_by_round(variant)?;
    let baseline_rates_pps = rates_by_round(baseline)?;
    let common: Vec<f64> = variant_rates_pps
        .iter()
        .filter_map(|(round, rate_pps)| Some((rate_pps, baseline_rates_pps.get(round)?)))
        .map(|(variant_pps, baseline_pps)| (variant_pps / baseline_pps).ln())
        .collect();
    if common.is_empty() {
        return Err(StatsError::NoCommonRound {
            variant_slices: variant.len(),
            baseline_slices: baseline.len(),
        });
    }
    let rounds = variant_rates_pps.len() + baseline_rates_pps.len() - common.len();
    // 0 / 0: a round that says nothing.
    let ratios: Vec<f64> = common.into_iter().filter(|ratio| !ratio.is_nan()).collect();
    let log_ratio = median(&ratios).unwrap_or(f64::NAN);
    if !log_ratio.is_finite() {
        return Err(StatsError::NothingForwarded {
            side: side_that_forwarded_nothing(log_ratio),
        });
    }
    Ok(BlockEffect {
        log_ratio,
        rounds_without_ratio: rounds - ratios.len(),
        round_log_ratios: ratios
            .into_iter()
            .filter(|ratio| ratio.is_finite())
            .collect(),
    })
}

/// The effect of a block of whole measurements: the log ratio of the two observations.
///
/// # Errors
/// [`StatsError::NothingForwarded`].
pub fn log_ratio(variant_pps: f64, baseline_pps: f64) -> Result<f64, StatsError> {
    let ratio = (variant_pps / baseline_pps).ln();
    if ratio.is_finite() {
        Ok(ratio)
    } else {
        Err(StatsError::NothingForwarded {
            side: side_that_forwarded_nothing(ratio),
        })
    }
}

fn side_that_forwarded_nothing(ratio: f64) -> &'static str {
    if ratio.is_nan() {
        "both sides"
    } else if ratio < 0.0 {
        "the variant"
    } else {
        "the baseline"
    }
}

fn rates_by_round(slices: &[Slice]) -> Result<BTreeMap<u32, f64>, StatsError> {
    let mut rates_pps = BTreeMap::new();
    for slice in slices {
        let rate_pps = slice.forwarding_rate_pps()?;
        if rates_pps.insert(slice.round, rate_pps).is_some() {
            return Err(StatsError::DuplicateRound { round: slice.round });
        }
    }
    Ok(rates_pps)
}

#[cfg(test)]
#[allow(
    clippy::float_cmp,
    reason = "these results are exact, down to the last bit"
)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slice(round: u32, forwarded_frames: u64) -> Slice {
        Slice {
            round,
            forwarded_frames,
            duration_s: 0.1,
        }
    }

    #[test]
    fn observation_is_the_median_with_the_pooled_rate_beside_it() {
        let trial = observation(&[
            slice(0, 100),
            slice(1, 200),
            Slice {
                round: 2,
                forwarded_frames: 900,
                duration_s: 0.3,
            },
        ])
        .unwrap();
        assert_eq!(trial.median_forwarding_rate_pps, 2000.0);
        assert_eq!(trial.pooled_forwarding_rate_pps, 2400.0);
        assert_eq!(trial.slices, 3);
    }

    #[test]
    fn one_round_is_the_log_ratio_of_the_observations() {
        let effect = block_effect(&[slice(0, 90)], &[slice(0, 100)]).unwrap();
        assert_eq!(effect.log_ratio, 0.9_f64.ln());
        assert_eq!(log_ratio(900.0, 1000.0).unwrap(), 0.9_f64.ln());
    }

    #[test]
    fn only_rounds_with_both_count() {
        let variant = [slice(0, 50), slice(1, 90), slice(3, 80)];
        let baseline = [slice(3, 100), slice(1, 100), slice(2, 1)];
        let effect = block_effect(&variant, &baseline).unwrap();
        assert_eq!(effect.round_log_ratios, [0.9_f64.ln(), 0.8_f64.ln()]);
        assert_eq!(effect.rounds_without_ratio, 2);
        assert_eq!(effect.log_ratio, 0.9_f64.ln() * 0.5 + 0.8_f64.ln() * 0.5);
    }

    #[test]
    fn a_silent_round_counts_as_the_result_it_is() {
        let baseline: Vec<Slice> = (0..3).map(|round| slice(round, 100)).collect();
        let variant = [slice(0, 0), slice(1, 80), slice(2, 90)];
        let effect = block_effect(&variant, &baseline).unwrap();
        assert_eq!(effect.log_ratio, 0.8_f64.ln());
        assert_eq!(effect.round_log_ratios.len(), 2);
    }

    #[test]
    fn impossible_blocks_are_refused() {
        let refusal = |variant: &[Slice], baseline: &[Slice]| {
            block_effect(variant, baseline).unwrap_err().to_string()
        };
        insta::assert_snapshot!(
            [
                refusal(&[slice(0, 1)], &[slice(1, 1)]),
                refusal(&[], &[]),
                refusal(&[slice(0, 0)], &[slice(0, 1)]),
                refusal(&[slice(0, 1)], &[slice(0, 0)]),
                refusal(&[slice(0, 0)], &[slice(0, 0)]),
                refusal(&[slice(4, 1), slice(4, 1)], &[slice(4, 1)]),
                refusal(&[Slice { round: 7, forwarded_frames: 1, duration_s: 0.0 }], &[]),
            ]
            .join("\n"),
            @r#"
block: no round holds a slice of both (variant 1 slices, baseline 1); leave the block out
block: no round holds a slice of both (variant 0 slices, baseline 0); leave the block out
block: no finite ratio to the baseline (the variant forwarded nothing in most rounds); report the zero itself, it has no effect in percent
block: no finite ratio to the baseline (the baseline forwarded nothing in most rounds); report the zero itself, it has no effect in percent
block: no finite ratio to the baseline (both sides forwarded nothing in most rounds); report the zero itself, it has no effect in percent
round 4: more than one slice of a variant (2 seen); give one a round
round 7: slice duration is not positive (0 s); leave invalid slices out
"#
        );
        assert!(log_ratio(f64::NAN, 1.0).is_err());
        assert!(observation(&[]).is_err());
    }

    proptest! {
        #[test]
        fn effects_ignore_order_and_the_common_scale_and_flip_with_the_sides(
            frames in prop::collection::vec((1_u64..1_000_000, 1_u64..1_000_000), 1..12),
        ) {
            let side = |pick: fn(&(u64, u64)) -> u64| -> Vec<Slice> {
                (0..).zip(&frames).map(|(round, pair)| slice(round, pick(pair))).collect()
            };
            let (variant, baseline) = (side(|pair| pair.0), side(|pair| pair.1));
            let effect = block_effect(&variant, &baseline).unwrap();
            let reversed: Vec<Slice> = variant.iter().rev().copied().collect();
            prop_assert_eq!(&block_effect(&reversed, &baseline).unwrap(), &effect);
            let mirrored = block_effect(&baseline, &variant).unwrap();
            prop_assert!((mirrored.log_ratio + effect.log_ratio).abs() < 1e-12);
            let slower = |slices: &[Slice]| -> Vec<Slice> {
                slices.iter().map(|s| Slice { duration_s: s.duration_s * 2.0, ..*s }).collect()
            };
            prop_assert_eq!(block_effect(&slower(&variant), &slower(&baseline)).unwrap(), effect);
        }
    }
}
