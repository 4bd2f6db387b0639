//! Where two variants differ: profiles taken in pairs, or one of each, in nanoseconds per packet.
//!
//! What a frame costs is its share of the profile's samples times what a packet costs. So the frames'
//! own costs sum to that of a packet, and their differences to the difference of the variants.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use fwdlab_stats::distribution::{normal_upper_quantile, normal_upper_tail};
use fwdlab_stats::{
    Draws, ModeratedEffects, StatsError, StudentSample, holm_adjusted, max_t_moderated,
    minimum_blocks,
};

use crate::folded::Folded;

/// The least samples of a frame, in all profiles together, for which it is judged.
///
/// With fewer, next to no difference could be shown, and every frame in the family makes the others'
/// harder to show. Samples of both variants count alike, so that which is which makes no choice.
const SAMPLES_MIN: u64 = 10;

/// Arrangements of signs where there are too many blocks to try all.
const DRAWS: Draws = Draws {
    seed: 0x5eed_f1a3,
    count: 9999,
};

/// A profile of one variant, and what a packet cost while it was taken.
#[derive(Clone, Copy, Debug)]
pub struct Profiled<'a> {
    /// Its samples. Those of idle CPUs count as any: leave them out where a packet's cost has no part
    /// of them.
    pub stacks: &'a Folded<'a>,
    /// The cost that the samples share among them, in nanoseconds per packet. With 100 in both
    /// profiles, costs are percent of the samples.
    pub ns_per_packet: f64,
}

/// The two variants of one block.
#[derive(Clone, Copy, Debug)]
pub struct ProfilePair<'a> {
    /// What the other is compared with.
    pub baseline: Profiled<'a>,
    /// The other.
    pub variant: Profiled<'a>,
}

/// From where a comparison knows how far its differences may be off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    /// From how they vary from block to block.
    Blocks,
    /// From the number of samples alone, as if each was independent of the others. It says nothing of
    /// how a difference varies from one set-up to the next.
    Samples,
}

/// Two variants, frame by frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What intervals and p-values rest on.
    pub noise: Noise,
    /// How many pairs were compared.
    pub blocks: usize,
    /// How many blocks the confidence takes at least; with fewer no frame can be shown to differ,
    /// whatever it does, and none has an interval.
    pub blocks_needed: usize,
    /// 1 less the chance that any frame is called different where the variants do not differ; from blocks
    /// also of all intervals together.
    pub confidence: f64,
    /// The whole. Its interval and p-value are Student's t over the blocks, and no part of the
    /// family; of lone profiles it has none.
    pub whole: CostDifference,
    /// How many comparisons the family has: costs that enough samples were seen of, each once.
    pub family: usize,
    /// Every frame of any profile, in the order of their own differences' size, the largest first.
    pub frames: Vec<FrameDifference>,
}

/// One frame in two variants.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameDifference {
    /// Its name.
    pub frame: String,
    /// Of samples taken in it.
    pub itself: CostDifference,
    /// Of samples with it anywhere on their stack, each counted once.
    pub with_callees: CostDifference,
}

/// What something costs in two variants.
///
/// Units: nanoseconds per packet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CostDifference {
    /// In the baseline, the mean over blocks.
    pub baseline_ns: f64,
    /// In the variant, the mean over blocks.
    pub variant_ns: f64,
    /// The variant's less the baseline's.
    pub difference_ns: f64,
    /// The interval of the difference; `None` where it was not judged: too few samples, or too few
    /// blocks.
    pub interval: Option<CostInterval>,
    /// Two-sided, adjusted for the family; `None` where too few samples were seen to judge.
    pub p: Option<f64>,
    /// Whether a difference is shown: the interval leaves 0 out.
    pub is_significant: bool,
}

/// The ends of an interval.
///
/// Units: nanoseconds per packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostInterval {
    /// The lower end.
    pub lower_ns: f64,
    /// The upper end.
    pub upper_ns: f64,
}

impl CostInterval {
    /// Half its width.
    #[must_use]
    pub fn half_width_ns(&self) -> f64 {
        (self.upper_ns - self.lower_ns) / 2.0
    }

    fn around(middle: f64, half_width: f64) -> Self {
        Self {
            lower_ns: middle - half_width,
            upper_ns: middle + half_width,
        }
    }
}

impl CostDifference {
    /// In the baseline and in the variant.
    pub(crate) fn costs(&self) -> [f64; 2] {
        [self.baseline_ns, self.variant_ns]
    }

    /// Whether only the variant has it.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.baseline_ns <= 0.0 && self.variant_ns > 0.0
    }
}

impl Comparison {
    /// Whether there are enough blocks to show any difference at all.
    #[must_use]
    pub fn can_show(&self) -> bool {
        self.noise == Noise::Samples || self.blocks >= self.blocks_needed
    }

    /// The frames that are shown to differ, by their own cost or with what they call.
    pub fn significant(&self) -> impl Iterator<Item = &FrameDifference> {
        let differs = |frame: &&FrameDifference| {
            frame.itself.is_significant || frame.with_callees.is_significant
        };
        self.frames.iter().filter(differs)
    }

    /// The frames whose own costs are worth naming, the largest difference first: those that are shown to differ; where
    /// there are too few blocks to show any difference, those that enough samples were seen of.
    pub fn notable(&self) -> impl Iterator<Item = &FrameDifference> {
        let can_show = self.can_show();
        self.frames.iter().filter(move |frame| {
            let own = &frame.itself;
            if can_show {
                own.is_significant
            } else {
                own.p.is_some() && own.difference_ns.abs() > 0.0
            }
        })
    }

    /// A frame by its name.
    #[must_use]
    pub fn frame(&self, name: &str) -> Option<&FrameDifference> {
        self.frames.iter().find(|frame| frame.frame == name)
    }
}

/// Why profiles cannot be compared.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ComparisonError {
    /// There are no profiles.
    #[error("no profiles; give at least one of each variant")]
    Empty,
    /// A profile has no samples.
    #[error("block {block}: a profile has no samples; profile again, or leave the block out")]
    NoSamples {
        /// The block, from 1.
        block: usize,
    },
    /// What a packet costs is no cost.
    #[error("block {block}: {value} ns/packet is no cost; give a positive number")]
    Cost {
        /// The block, from 1.
        block: usize,
        /// What was given.
        value: f64,
    },
    /// The statistics refuse.
    #[error(transparent)]
    Statistics(#[from] StatsError),
}

/// Compares the profiles of two variants that were taken in pairs, one pair a block.
///
/// Differences are taken within blocks and judged by how they vary between them. The family is every
/// frame's own cost and its cost with callees, where enough samples were seen of it. Signs are flipped
/// for a whole block at once ([`max_t_moderated`]), so that the chance of calling any frame different
/// is exactly held where the variants of a block are exchangeable, however frames depend on each other
/// and however few samples there are. A difference is divided by its spread between blocks and what
/// counting samples makes of it at least, so that no rare frame stands out by accident.
///
/// Intervals are simultaneous and agree with the test: one leaves 0 out just where the frame is
/// significant. They are exact where no frame differs, and approximate elsewhere.
///
/// Shape: `confidence` between 0.5 and 1.
///
/// # Errors
/// [`ComparisonError`].
///
/// # Examples
/// ```
/// use fwdlab_profile::{Folded, ProfilePair, Profiled, compare_profiles};
/// let off = Folded::parse(b"rx;lookup 300\nrx;copy 100\n")?;
/// let on = Folded::parse(b"rx;lookup 300\n")?;
/// let pair = ProfilePair {
///     baseline: Profiled { stacks: &off, ns_per_packet: 400.0 },
///     variant: Profiled { stacks: &on, ns_per_packet: 300.0 },
/// };
/// let found = compare_profiles(&[pair; 8], 0.95)?;
/// let copy = found.frame("copy").expect("it was sampled").itself;
/// assert!(copy.is_significant && copy.variant_ns == 0.0 && copy.difference_ns == -100.0);
/// assert!(!found.frame("lookup").expect("it was sampled").itself.is_significant);
/// // However large a difference is, a few blocks cannot show it.
/// let few = compare_profiles(&[pair; 3], 0.95)?;
/// assert_eq!((few.can_show(), few.blocks_needed, few.significant().count()), (false, 6, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn compare_profiles(
    pairs: &[ProfilePair<'_>],
    confidence: f64,
) -> Result<Comparison, ComparisonError> {
    let counted = Counted::of(pairs)?;
    let mut comparison = counted.comparison(confidence, Noise::Blocks)?;
    let family = counted.family();
    let effects: Vec<ModeratedEffects> = family.iter().map(|cost| counted.effects(cost)).collect();
    let judged = max_t_moderated(&effects, confidence, DRAWS)?;
    let alpha = 1.0 - confidence;
    let judgements = judged.iter().map(|judged| Judgement {
        p: judged.adjusted_p,
        interval: judged
            .half_width
            .map(|half_width| CostInterval::around(judged.mean, half_width)),
        is_significant: judged.adjusted_p <= alpha + 1e-12,
    });
    counted.fill(&mut comparison, family.iter().zip(judgements));

    let differences: Vec<f64> = pairs
        .iter()
        .map(|pair| pair.variant.ns_per_packet - pair.baseline.ns_per_packet)
        .collect();
    if pairs.len() > 1 {
        let sample = StudentSample::new(&differences)?;
        let interval = sample.interval(confidence)?;
        let p = sample.p_two_sided(0.0)?;
        comparison.whole.interval = Some(CostInterval {
            lower_ns: interval.lower,
            upper_ns: interval.upper,
        });
        comparison.whole.p = Some(p);
        comparison.whole.is_significant = p <= alpha + 1e-12;
    }
    Ok(comparison)
}

/// Compares one profile of each variant, by their numbers of samples alone.
///
/// **Every sample is treated as independent of the others, and what a packet cost as known.** That a
/// difference is significant says that other samples of the same two runs would show it again. It
/// says nothing of how profiles vary from block to block: two runs of the same variant differ
/// "significantly", too, if enough samples are taken. Only [`compare_profiles`] can tell.
///
/// Intervals are Newcombe's, from the score intervals of both shares; a p-value is the level at which
/// the interval begins to leave 0 out. They are adjusted by Holm's correction over the family, and the
/// interval of a frame has the level at which that correction tests it, so that the two agree.
///
/// Shape: `confidence` between 0.5 and 1.
///
/// # Errors
/// [`ComparisonError`].
///
/// # Source
/// Newcombe 1998, method 10; with costs in front of the shares: Zou & Donner 2008.
pub fn compare_lone_profiles(
    pair: ProfilePair<'_>,
    confidence: f64,
) -> Result<Comparison, ComparisonError> {
    let counted = Counted::of(&[pair])?;
    let mut comparison = counted.comparison(confidence, Noise::Samples)?;
    let family = counted.family();
    let shares: Vec<SharePair> = family.iter().map(|cost| counted.shares(cost)).collect();
    let p_values: Vec<f64> = shares.iter().map(SharePair::p).collect();
    let adjusted = holm_adjusted(&p_values)?;
    let alpha = 1.0 - confidence;
    let is_rejected = |p: f64| p <= alpha + 1e-12;
    let rejected = adjusted.iter().filter(|p| is_rejected(**p)).count();
    let judgements = shares.iter().enumerate().map(|(index, shares)| {
        // Those not rejected are all judged at the step at which the correction stopped.
        let smaller = p_values.iter().filter(|p| **p < p_values[index]).count();
        let step = smaller.min(rejected);
        let tail = alpha / (2.0 * (family.len() - step) as f64);
        Judgement {
            p: adjusted[index],
            interval: Some(shares.interval(normal_upper_quantile(tail))),
            is_significant: is_rejected(adjusted[index]),
        }
    });
    counted.fill(&mut comparison, family.iter().zip(judgements));
    Ok(comparison)
}

/// What was found of one comparison of the family.
struct Judgement {
    p: f64,
    interval: Option<CostInterval>,
    is_significant: bool,
}

/// The samples of one frame in every profile, those of the baseline before those of the variant in
/// each block.
type Samples = Vec<u64>;

/// Which of a frame's two costs.
#[derive(Clone, Copy)]
enum Part {
    Itself,
    WithCallees,
}

/// Costs that are the same in every profile, judged as one.
struct Cost<'c> {
    samples: &'c Samples,
    /// The frames that have it.
    of: Vec<(usize, Part)>,
}

/// The frames of all profiles, counted.
struct Counted<'a> {
    names: Vec<&'a str>,
    itself: Vec<Samples>,
    with_callees: Vec<Samples>,
    /// Of every profile: its samples, and what a packet cost.
    profiles: Vec<(u64, f64)>,
}

impl<'a> Counted<'a> {
    fn of(pairs: &[ProfilePair<'a>]) -> Result<Self, ComparisonError> {
        if pairs.is_empty() {
            return Err(ComparisonError::Empty);
        }
        let mut counted = Self {
            names: Vec::new(),
            itself: Vec::new(),
            with_callees: Vec::new(),
            profiles: Vec::with_capacity(pairs.len() * 2),
        };
        let mut indices = HashMap::default();
        let profiles = pairs.iter().flat_map(|pair| [pair.baseline, pair.variant]);
        for (number, profile) in profiles.enumerate() {
            counted.count(number, pairs.len() * 2, profile, &mut indices)?;
        }
        Ok(counted)
    }

    fn count(
        &mut self,
        number: usize,
        profiles: usize,
        profile: Profiled<'a>,
        indices: &mut HashMap<&'a str, usize, RandomState>,
    ) -> Result<(), ComparisonError> {
        let block = number / 2 + 1;
        let cost = profile.ns_per_packet;
        if !(cost.is_finite() && cost > 0.0) {
            return Err(ComparisonError::Cost { block, value: cost });
        }
        let samples = profile.stacks.samples();
        if samples == 0 {
            return Err(ComparisonError::NoSamples { block });
        }
        self.profiles.push((samples, cost));
        for stack in profile.stacks.stacks() {
            let mut frames: Vec<usize> = stack
                .frames()
                .map(|name| {
                    *indices.entry(name).or_insert_with(|| {
                        self.names.push(name);
                        self.itself.push(vec![0; profiles]);
                        self.with_callees.push(vec![0; profiles]);
                        self.names.len() - 1
                    })
                })
                .collect();
            if let Some(&leaf) = frames.last() {
                self.itself[leaf][number] += stack.samples;
            }
            frames.sort_unstable();
            frames.dedup();
            for frame in frames {
                self.with_callees[frame][number] += stack.samples;
            }
        }
        Ok(())
    }

    fn blocks(&self) -> usize {
        self.profiles.len() / 2
    }

    /// All but the judgements.
    fn comparison(&self, confidence: f64, noise: Noise) -> Result<Comparison, ComparisonError> {
        let all: Samples = self.profiles.iter().map(|(samples, _)| *samples).collect();
        let frames = self.names.iter().enumerate();
        Ok(Comparison {
            noise,
            blocks: self.blocks(),
            blocks_needed: minimum_blocks(1, confidence)?,
            confidence,
            whole: self.difference(&all),
            family: 0,
            frames: frames
                .map(|(frame, name)| FrameDifference {
                    frame: (*name).to_owned(),
                    itself: self.difference(&self.itself[frame]),
                    with_callees: self.difference(&self.with_callees[frame]),
                })
                .collect(),
        })
    }

    /// What those samples cost in every block, in the baseline and in the variant.
    fn costs(&self, samples: &Samples) -> Vec<[f64; 2]> {
        let cost = |number: usize| {
            let (all, ns_per_packet) = self.profiles[number];
            samples[number] as f64 / all as f64 * ns_per_packet
        };
        (0..self.blocks())
            .map(|block| [cost(2 * block), cost(2 * block + 1)])
            .collect()
    }

    fn difference(&self, samples: &Samples) -> CostDifference {
        let costs = self.costs(samples);
        let mean =
            |of: usize| costs.iter().map(|costs| costs[of]).sum::<f64>() / costs.len() as f64;
        let (baseline_ns, variant_ns) = (mean(0), mean(1));
        CostDifference {
            baseline_ns,
            variant_ns,
            difference_ns: variant_ns - baseline_ns,
            ..CostDifference::default()
        }
    }

    /// The costs that are judged, those of the same samples once: a function that is only called by
    /// another, say.
    fn family(&self) -> Vec<Cost<'_>> {
        let samples_min = SAMPLES_MIN.max(self.profiles.len() as u64);
        let mut family: Vec<Cost> = Vec::new();
        let mut known: HashMap<&Samples, usize, RandomState> = HashMap::default();
        for frame in 0..self.names.len() {
            for (samples, part) in [
                (&self.itself[frame], Part::Itself),
                (&self.with_callees[frame], Part::WithCallees),
            ] {
                if samples.iter().sum::<u64>() < samples_min {
                    continue;
                }
                let index = *known.entry(samples).or_insert(family.len());
                if index == family.len() {
                    let of = Vec::new();
                    family.push(Cost { samples, of });
                }
                family[index].of.push((frame, part));
            }
        }
        family
    }

    /// Differences by block, and what counting samples alone makes of their squares.
    ///
    /// The latter is reckoned from the share in all profiles together, which stays as it is when the
    /// variants of a block are exchanged.
    fn effects(&self, cost: &Cost) -> ModeratedEffects {
        let costs = self.costs(cost.samples);
        let pooled = cost.samples.iter().sum::<u64>() as f64;
        let all: f64 = self.profiles.iter().map(|(all, _)| *all as f64).sum();
        let share = pooled / all;
        let of_one: f64 = self
            .profiles
            .iter()
            .map(|(all, ns_per_packet)| ns_per_packet * ns_per_packet / *all as f64)
            .sum();
        ModeratedEffects {
            differences: costs
                .iter()
                .map(|[baseline, variant]| variant - baseline)
                .collect(),
            expected_squares: share * (1.0 - share) * of_one,
        }
    }

    /// The shares in the first pair of profiles.
    fn shares(&self, cost: &Cost) -> SharePair {
        let share = |number: usize| Share {
            samples: cost.samples[number] as f64,
            all: self.profiles[number].0 as f64,
            cost: self.profiles[number].1,
        };
        SharePair {
            baseline: share(0),
            variant: share(1),
        }
    }

    /// Puts what was found where it belongs, and the frames into their order.
    fn fill<'c>(
        &self,
        comparison: &mut Comparison,
        judged: impl Iterator<Item = (&'c Cost<'c>, Judgement)>,
    ) {
        for (cost, judgement) in judged {
            comparison.family += 1;
            for (frame, part) in &cost.of {
                let frame = &mut comparison.frames[*frame];
                let of = match part {
                    Part::Itself => &mut frame.itself,
                    Part::WithCallees => &mut frame.with_callees,
                };
                of.p = Some(judgement.p);
                of.interval = judgement.interval;
                of.is_significant = judgement.is_significant;
            }
        }
        comparison.frames.sort_by(|a, b| {
            let size = |frame: &FrameDifference| frame.itself.difference_ns.abs();
            size(b)
                .total_cmp(&size(a))
                .then_with(|| a.frame.cmp(&b.frame))
        });
    }
}

/// Samples of a profile's, and what all of them cost.
struct Share {
    samples: f64,
    all: f64,
    cost: f64,
}

impl Share {
    fn estimate(&self) -> f64 {
        self.samples / self.all * self.cost
    }

    /// How far the score interval goes below and above the estimate.
    fn reach(&self, z: f64) -> (f64, f64) {
        let (share, squared) = (self.samples / self.all, z * z);
        let middle = (self.samples + squared / 2.0) / (self.all + squared);
        let variance = share * (1.0 - share) * self.all + squared / 4.0;
        let half_width = z * variance.sqrt() / (self.all + squared);
        (
            (share - middle + half_width).max(0.0) * self.cost,
            (middle + half_width - share).max(0.0) * self.cost,
        )
    }
}

struct SharePair {
    baseline: Share,
    variant: Share,
}

/// Beyond every normal deviate whose p-value is a number.
const DEVIATE_MAX: f64 = 40.0;

impl SharePair {
    fn interval(&self, z: f64) -> CostInterval {
        let difference = self.variant.estimate() - self.baseline.estimate();
        let (baseline, variant) = (self.baseline.reach(z), self.variant.reach(z));
        CostInterval {
            lower_ns: difference - variant.0.hypot(baseline.1),
            upper_ns: difference + variant.1.hypot(baseline.0),
        }
    }

    /// The level at which the interval begins to leave 0 out.
    fn p(&self) -> f64 {
        let has_zero = |z: f64| {
            let interval = self.interval(z);
            interval.lower_ns <= 0.0 && interval.upper_ns >= 0.0
        };
        let (mut below, mut above) = (0.0, DEVIATE_MAX);
        for _ in 0..60 {
            let middle = f64::midpoint(below, above);
            if has_zero(middle) {
                above = middle;
            } else {
                below = middle;
            }
        }
        (2.0 * normal_upper_tail(above)).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Newcombe 1998, table II, contrast (a) by method 10.
    #[test]
    fn the_interval_of_two_shares_is_that_of_its_source() {
        let share = |samples, all| Share {
            samples,
            all,
            cost: 1.0,
        };
        let pair = SharePair {
            baseline: share(48.0, 80.0),
            variant: share(56.0, 70.0),
        };
        let interval = pair.interval(normal_upper_quantile(0.025));
        assert!((interval.lower_ns - 0.0524).abs() < 5e-5, "{interval:?}");
        assert!((interval.upper_ns - 0.3339).abs() < 5e-5, "{interval:?}");
    }
}
