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
    /// How much of the slice counted; 0 for nothing of it.
    pub duration_s: f64,
}

impl Slice {
    /// The slice of a round in which so many frames arrived, in so many seconds that counted.
    #[must_use]
    pub fn of(round: u32, (forwarded_frames, duration_s): (u64, f64)) -> Self {
        Self {
            round,
            forwarded_frames,
            duration_s,
        }
    }
}

/// Frames, and the time that they took.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    forwarded_frames: u64,
    duration_s: f64,
}

impl Count {
    fn of(slice: &Slice) -> Result<Self, StatsError> {
        if slice.duration_s.is_finite() && slice.duration_s >= 0.0 {
            Ok(Self {
                forwarded_frames: slice.forwarded_frames,
                duration_s: slice.duration_s,
            })
        } else {
            Err(StatsError::SliceDuration {
                round: slice.round,
                duration_s: slice.duration_s,
            })
        }
    }

    fn add(&mut self, other: Self) {
        self.forwarded_frames += other.forwarded_frames;
        self.duration_s += other.duration_s;
    }

    fn forwarding_rate_pps(self) -> f64 {
        self.forwarded_frames as f64 / self.duration_s
    }

    /// The same, with half a frame where there was none.
    fn rate_above_0_pps(self) -> f64 {
        (self.forwarded_frames as f64).max(HALF_A_FRAME) / self.duration_s
    }
}

/// What a side that forwarded nothing counts as, where its whole block is a ratio without a finite logarithm.
///
/// A variant that stops forwarding in some blocks has its worst effect there. Leaving these blocks out would judge it
/// by the others alone. Half a frame is below all that can be counted, so ranks put the block last, where it belongs,
/// and every sum over blocks stays finite.
pub const HALF_A_FRAME: f64 = 0.5;

/// Takes rounds together, in their order, until every side of them has lasted long enough; what is
/// left at the end goes to the last. Empty where a side has no time at all.
fn rounds_together<const SIDES: usize>(
    rounds: impl IntoIterator<Item = [Count; SIDES]>,
    shortest_s: f64,
) -> Vec<[Count; SIDES]> {
    let lasted = |sides: &[Count; SIDES]| {
        sides
            .iter()
            .all(|side| side.duration_s > 0.0 && side.duration_s >= shortest_s)
    };
    let join = |to: &mut [Count; SIDES], from: [Count; SIDES]| {
        for (to, from) in to.iter_mut().zip(from) {
            to.add(from);
        }
    };
    let nothing = [Count::default(); SIDES];
    let mut together: Vec<[Count; SIDES]> = Vec::new();
    let mut open = nothing;
    for round in rounds {
        join(&mut open, round);
        if lasted(&open) {
            together.push(std::mem::replace(&mut open, nothing));
        }
    }
    match together.last_mut() {
        Some(last) => join(last, open),
        None if open.iter().all(|side| side.duration_s > 0.0) => together.push(open),
        None => {}
    }
    together
}

/// A trial's one number, and the one beside it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Observation {
    /// The median over the slices of forwarded frames / slice duration: the observation.
    pub median_forwarding_rate_pps: f64,
    /// All frames / all time.
    pub pooled_forwarding_rate_pps: f64,
}

/// The observation of one trial.
///
/// Slices that counted for less than `shortest_s` say too little one by one: they are taken together
/// with the next ones until they have lasted so long. 0 takes every slice by itself.
///
/// Shape: slices in the order of their rounds.
///
/// # Errors
/// [`StatsError::Empty`] where no time counted, [`StatsError::SliceDuration`].
///
/// # Examples
/// ```
/// use fwdlab_stats::{Slice, observation};
/// let slice = |round, forwarded_frames| Slice { round, forwarded_frames, duration_s: 0.1 };
/// let trial = observation(&[slice(0, 100_000), slice(1, 40_000), slice(2, 110_000)], 0.0)?;
/// assert_eq!(trial.median_forwarding_rate_pps, 1_000_000.0);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn observation(slices: &[Slice], shortest_s: f64) -> Result<Observation, StatsError> {
    let counts = slices
        .iter()
        .map(|slice| Ok([Count::of(slice)?]))
        .collect::<Result<Vec<_>, _>>()?;
    let together = rounds_together(counts, shortest_s);
    let rates_pps: Vec<f64> = together
        .iter()
        .map(|[count]| count.forwarding_rate_pps())
        .collect();
    let median_forwarding_rate_pps = median(&rates_pps).ok_or_else(|| StatsError::Empty {
        subject: "observation".to_owned(),
    })?;
    let mut all = Count::default();
    for [count] in together {
        all.add(count);
    }
    Ok(Observation {
        median_forwarding_rate_pps,
        pooled_forwarding_rate_pps: all.forwarding_rate_pps(),
    })
}

/// One block's effect of a variant against the baseline.
///
/// Units: natural logarithms of rate ratios; -0.01 is about -1 %.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BlockEffect {
    /// The median of the round log ratios; finite.
    pub log_ratio: f64,
    /// The log ratios of the rounds that both share, one for those that were taken together, in
    /// round order; finite, so that those in which only one side forwarded are missing here although
    /// the median counts them.
    pub round_log_ratios: Vec<f64>,
    /// Whether one side forwarded nothing in most rounds, and so counts as half a frame in each of those.
    pub is_of_silence: bool,
}

/// The effect of one block: the median over its rounds of the log ratio to the baseline's slice
/// of the same round.
///
/// With one round this is the log ratio of the two slices. Rounds of which only one side has a
/// slice do not count; a round in which one side forwarded nothing counts as an infinite ratio,
/// which the median bears up to half the rounds. Where one side forwarded nothing in more of them, it
/// counts as half a frame in each. Rounds that counted for less than `shortest_s` are taken together, as
/// for [`observation`].
///
/// Shape: at most one slice a round each, any order.
///
/// # Errors
/// [`StatsError::DuplicateRound`], [`StatsError::SliceDuration`],
/// [`StatsError::NoCommonRound`]; [`StatsError::NothingForwarded`] where neither side forwarded a frame.
pub fn block_effect(
    variant: &[Slice],
    baseline: &[Slice],
    shortest_s: f64,
) -> Result<BlockEffect, StatsError> {
    let variant_counts = counts_by_round(variant)?;
    let baseline_counts = counts_by_round(baseline)?;
    let common = variant_counts
        .iter()
        .filter_map(|(round, &count)| Some([count, *baseline_counts.get(round)?]));
    let together = rounds_together(common, shortest_s);
    if together.is_empty() {
        return Err(StatsError::NoCommonRound {
            variant_slices: variant.len(),
            baseline_slices: baseline.len(),
        });
    }
    let log_ratios = |rate_pps: fn(Count) -> f64| -> Vec<f64> {
        let says_something =
            |sides: &&[Count; 2]| sides.iter().any(|side| side.forwarded_frames > 0);
        let rounds = together.iter().filter(says_something);
        rounds
            .map(|&[variant, baseline]| (rate_pps(variant) / rate_pps(baseline)).ln())
            .collect()
    };
    let mut ratios = log_ratios(Count::forwarding_rate_pps);
    let is_of_silence = !median(&ratios).is_some_and(f64::is_finite);
    if is_of_silence {
        ratios = log_ratios(Count::rate_above_0_pps);
    }
    let log_ratio = median(&ratios).ok_or(StatsError::NothingForwarded)?;
    Ok(BlockEffect {
        log_ratio,
        round_log_ratios: ratios
            .into_iter()
            .filter(|ratio| ratio.is_finite())
            .collect(),
        is_of_silence,
    })
}

/// The log ratio of two whole measurements, which have no slices.
///
/// # Errors
/// [`StatsError::NoRatio`] where it is not finite.
pub fn log_ratio(variant: f64, baseline: f64) -> Result<f64, StatsError> {
    let ratio = (variant / baseline).ln();
    if ratio.is_finite() {
        Ok(ratio)
    } else {
        Err(StatsError::NoRatio { variant, baseline })
    }
}

fn counts_by_round(slices: &[Slice]) -> Result<BTreeMap<u32, Count>, StatsError> {
    let mut counts = BTreeMap::new();
    for slice in slices {
        if counts.insert(slice.round, Count::of(slice)?).is_some() {
            return Err(StatsError::DuplicateRound { round: slice.round });
        }
    }
    Ok(counts)
}

#[cfg(test)]
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
        let trial = observation(
            &[
                slice(0, 100),
                slice(1, 200),
                Slice {
                    round: 2,
                    forwarded_frames: 900,
                    duration_s: 0.3,
                },
            ],
            0.1,
        )
        .unwrap();
        assert_eq!(trial.median_forwarding_rate_pps, 2000.0);
        assert_eq!(trial.pooled_forwarding_rate_pps, 2400.0);
    }

    #[test]
    fn rounds_that_hardly_counted_are_taken_together() {
        let part = |round, forwarded_frames, duration_s| Slice {
            round,
            forwarded_frames,
            duration_s,
        };
        let variant = [
            part(0, 90, 0.1),
            part(1, 10, 0.01),
            part(2, 0, 0.0),
            part(3, 26, 0.02),
            part(4, 8, 0.01),
        ];
        let baseline = [0, 1, 2, 3, 4].map(|round| slice(round, 100));
        // By itself, 1 to 3 together, and what is left goes to the last.
        let effect = block_effect(&variant, &baseline, 0.02).unwrap();
        let expected = [0.9_f64.ln(), (44.0 / 0.04 / 1000.0_f64).ln()];
        assert_eq!(effect.round_log_ratios.len(), 2);
        for (ratio, expected) in effect.round_log_ratios.iter().zip(expected) {
            assert!((ratio - expected).abs() < 1e-12, "{effect:?}");
        }
        // All together where nothing lasted long enough, and each that counted by itself.
        assert_eq!(
            block_effect(&variant, &baseline, 9.0)
                .unwrap()
                .round_log_ratios
                .len(),
            1
        );
        assert_eq!(
            block_effect(&variant, &baseline, 0.0)
                .unwrap()
                .round_log_ratios
                .len(),
            4
        );
        let trial = observation(&variant, 0.02).unwrap();
        assert!(
            (trial.median_forwarding_rate_pps - 1000.0).abs() < 1e-9,
            "{trial:?}"
        );
        assert!((trial.pooled_forwarding_rate_pps - 134.0 / 0.14).abs() < 1e-9);
        // A round that did not count on one side says nothing without others.
        let nothing = [part(0, 0, 0.0)];
        assert!(block_effect(&nothing, &baseline, 0.02).is_err());
        assert!(observation(&nothing, 0.02).is_err());
    }

    #[test]
    fn one_round_is_the_log_ratio_of_the_observations() {
        let effect = block_effect(&[slice(0, 90)], &[slice(0, 100)], 0.0).unwrap();
        assert_eq!(effect.log_ratio, 0.9_f64.ln());
        assert_eq!(log_ratio(900.0, 1000.0).unwrap(), 0.9_f64.ln());
    }

    #[test]
    fn only_rounds_with_both_count() {
        let variant = [slice(0, 50), slice(1, 90), slice(3, 80)];
        let baseline = [slice(3, 100), slice(1, 100), slice(2, 1)];
        let effect = block_effect(&variant, &baseline, 0.0).unwrap();
        assert_eq!(effect.round_log_ratios, [0.9_f64.ln(), 0.8_f64.ln()]);
        assert_eq!(effect.log_ratio, 0.9_f64.ln() * 0.5 + 0.8_f64.ln() * 0.5);
    }

    #[test]
    fn a_silent_round_counts_as_the_result_it_is() {
        let baseline: Vec<Slice> = (0..3).map(|round| slice(round, 100)).collect();
        let variant = [slice(0, 0), slice(1, 80), slice(2, 90)];
        let effect = block_effect(&variant, &baseline, 0.0).unwrap();
        assert_eq!(effect.log_ratio, 0.8_f64.ln());
        assert_eq!(effect.round_log_ratios.len(), 2);
    }

    #[test]
    fn a_side_that_forwards_nothing_is_the_slowest_that_there_is() {
        let baseline = [slice(0, 100), slice(1, 100), slice(2, 100)];
        let silent = [slice(0, 0), slice(1, 0), slice(2, 90)];
        let effect = block_effect(&silent, &baseline, 0.0).unwrap();
        assert_eq!(effect.log_ratio, 0.005_f64.ln());
        assert!(effect.is_of_silence);
        assert_eq!(effect.round_log_ratios.len(), 3);
        let one_frame = [slice(0, 1), slice(1, 1), slice(2, 90)];
        let slowest = block_effect(&one_frame, &baseline, 0.0).unwrap();
        assert!(effect.log_ratio < slowest.log_ratio && !slowest.is_of_silence);
        let mirrored = block_effect(&baseline, &silent, 0.0).unwrap();
        assert_eq!(mirrored.log_ratio, 200.0_f64.ln());
        // A round in which both were silent says nothing.
        let one = block_effect(
            &[slice(0, 0), slice(1, 0)],
            &[slice(0, 0), slice(1, 100)],
            0.0,
        );
        assert_eq!(one.unwrap().round_log_ratios, [0.005_f64.ln()]);
    }

    #[test]
    fn impossible_blocks_are_refused() {
        let refusal = |variant: &[Slice], baseline: &[Slice]| {
            block_effect(variant, baseline, 0.0)
                .unwrap_err()
                .to_string()
        };
        insta::assert_snapshot!(
            [
                refusal(&[slice(0, 1)], &[slice(1, 1)]),
                refusal(&[], &[]),
                refusal(&[slice(0, 0)], &[slice(0, 0)]),
                refusal(&[slice(4, 1), slice(4, 1)], &[slice(4, 1)]),
                refusal(&[Slice { round: 7, forwarded_frames: 1, duration_s: -1.0 }], &[]),
            ]
            .join("\n"),
            @r#"
block: no round holds a slice of both (variant 1 slices, baseline 1); leave the block out
block: no round holds a slice of both (variant 0 slices, baseline 0); leave the block out
block: neither side forwarded a frame; leave the block out
round 4: more than one slice of a variant (2 seen); give one a round
round 7: slice duration is negative or not a number (-1 s); leave invalid slices out
"#
        );
        assert!(log_ratio(f64::NAN, 1.0).is_err());
        assert!(observation(&[], 0.0).is_err());
    }

    proptest! {
        #[test]
        fn effects_ignore_order_and_the_common_scale_and_flip_with_the_sides(
            frames in prop::collection::vec((1_u64..1_000_000, 1_u64..1_000_000), 1..12),
            shortest_s in 0.0..1.0,
        ) {
            let side = |pick: fn(&(u64, u64)) -> u64| -> Vec<Slice> {
                (0..).zip(&frames).map(|(round, pair)| slice(round, pick(pair))).collect()
            };
            let (variant, baseline) = (side(|pair| pair.0), side(|pair| pair.1));
            let effect = block_effect(&variant, &baseline, shortest_s).unwrap();
            let reversed: Vec<Slice> = variant.iter().rev().copied().collect();
            prop_assert_eq!(&block_effect(&reversed, &baseline, shortest_s).unwrap(), &effect);
            let mirrored = block_effect(&baseline, &variant, shortest_s).unwrap();
            prop_assert!((mirrored.log_ratio + effect.log_ratio).abs() < 1e-12);
            let slower = |slices: &[Slice]| -> Vec<Slice> {
                slices.iter().map(|s| Slice { duration_s: s.duration_s * 2.0, ..*s }).collect()
            };
            prop_assert_eq!(block_effect(&slower(&variant), &slower(&baseline), shortest_s * 2.0).unwrap(), effect);
        }
    }
}
