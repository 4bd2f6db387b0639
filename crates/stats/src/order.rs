//! Whether the order of the slices shows in them: what ran before, and the place in the round.

use serde::Serialize;

use crate::cells::{Cells, Place, ROUNDING};
use crate::error::StatsError;
use crate::generator::Generator;
use crate::monte_carlo::{drawn_p, draws_and_one};

/// The level of the test of the predecessor, and of that of the place, for all slices of a report.
///
/// Of reports without order effects at most 1 in 100 show one by the predecessor, and at most 1 in 100
/// by the place: the other half of that is for slices that are correlated with those before them, up to
/// 0.6, which the orders do not cover. See `tests/checks_calibration.rs` and `cargo xtask calibrate`.
pub const ORDER_LEVEL: f64 = 0.005;

/// Scores that differ by less are the same, in parts of all that is left of the log rates.
const TIE: f64 = 1e-6;

/// One slice in the order of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OrderedSlice {
    /// Number of its variant, from 0.
    pub variant: usize,
    /// The logarithm of its forwarding rate; none where nothing of it counts.
    pub log_rate: Option<f64>,
}

/// What the order of the slices does to them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OrderEffects {
    /// What ran before; the label is the predecessor's variant.
    pub predecessor: OrderEffect,
    /// The place in the round; the label is the place, from 0.
    pub place: OrderEffect,
}

/// The clearest of the effects of all predecessors, or of all places.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OrderEffect {
    /// Which one.
    pub label: usize,
    /// How much slices after it, or there, are faster than the others, as a log ratio.
    pub effect: f64,
    /// The probability of one as clear by chance, among all of them.
    pub p: f64,
    /// By how much the effect of one variant against another can be off for it, as a log ratio: the
    /// largest difference between variants of what their slices have on average, in the recorded
    /// orders.
    pub largest_bias: f64,
}

impl OrderEffect {
    /// Whether it is shown at a level.
    #[must_use]
    pub fn is_shown(&self, level: f64) -> bool {
        self.p <= level
    }
}

/// Tests whether slices depend on what ran before them, and on their place in the round.
///
/// What a block does to a variant and to a round is taken out of the log rates. What is left is
/// gathered by predecessor (by place); the statistic is the largest sum, over the root of how many
/// they are. The predecessor of a round's first slice is the last of the round before; a block's
/// first slice has none.
///
/// The p-values come from the orders, not from a model of the noise. A block's rows of variants are
/// put over its rounds in random order by the plan, whatever rows they are: every order of the same
/// rows was equally likely. If a slice were what its variant and its round make it, no matter what
/// ran before and at which place, then the slices of another order of the rows would be the same
/// numbers, filed under other predecessors and places. So the statistic of the recorded order is one
/// of a set of which each was equally likely, and is among the largest 1 % of them in 1 % of all
/// runs. The rows of different blocks are drawn one by one, so that all blocks are reordered, each
/// in itself. (Slices of one variant could not be exchanged for themselves: the rows of a design
/// hang together by the balance of their neighbours. Nor could rows go to other blocks.) Noise that
/// belongs to moments rather than to rounds, as correlation from slice to slice does, is not covered
/// by that argument; the levels hold in simulation up to a correlation of 0.6.
///
/// All orders are tried where they are few, `seed` draws them otherwise. Effects are least squares
/// with outlying slices drawn in, which keeps apart what rounds, variants and predecessors do.
///
/// Shape: `blocks` holds for each block its rounds in the order of time, each the slices of all
/// `variants`, every one once, in the order of time.
///
/// `None` where the order cannot be judged: one variant, no block of two rounds, or orders that are the
/// same in every round.
///
/// # Errors
/// [`StatsError::NotARound`], [`StatsError::NotFinite`], [`StatsError::Level`].
///
/// # Source
/// Fisher 1935; Edgington & Onghena 2007, "Randomization Tests", for designs; Huber & Ronchetti
/// 2009, section 7.8, for least squares with winsorised residuals. Oracle: complete enumeration,
/// `oracle/checks.py`.
///
/// # Examples
/// ```
/// use fwdlab_stats::{ORDER_LEVEL, OrderedSlice, order_effects};
/// // Two variants; after variant 1 a slice loses 2 %.
/// let slice = |variant, log_rate| OrderedSlice { variant, log_rate: Some(log_rate) };
/// let block = vec![
///     vec![slice(0, 0.000), slice(1, 0.500)],
///     vec![slice(0, -0.020), slice(1, 0.500)],
///     vec![slice(1, 0.480), slice(0, -0.020)],
///     vec![slice(1, 0.500), slice(0, -0.020)],
/// ];
/// let blocks = vec![block; 3];
/// let effects = order_effects(2, &blocks, ORDER_LEVEL, 1)?.expect("two orders, four rounds");
/// assert!((effects.predecessor.effect.abs() - 0.02).abs() < 1e-9);
/// # Ok::<(), fwdlab_stats::StatsError>(())
/// ```
pub fn order_effects(
    variants: usize,
    blocks: &[Vec<Vec<OrderedSlice>>],
    level: f64,
    seed: u64,
) -> Result<Option<OrderEffects>, StatsError> {
    let draws_and_one = draws_and_one(level)?;
    let blocks = blocks
        .iter()
        .enumerate()
        .map(|(number, rounds)| Block::new(number, variants, rounds))
        .collect::<Result<Vec<_>, _>>()?;
    if variants < 2 || blocks.iter().all(|block| block.rows.len() < 2) {
        return Ok(None);
    }
    let effect = |labels| {
        let test = Test {
            variants,
            blocks: &blocks,
            labels,
        };
        test.effect(draws_and_one, seed)
    };
    Ok(effect(Labels::Predecessors)
        .zip(effect(Labels::Places))
        .map(|(predecessor, place)| OrderEffects { predecessor, place }))
}

/// By what slices are gathered.
#[derive(Clone, Copy)]
enum Labels {
    /// The variant of the slice before.
    Predecessors,
    /// The place in the round.
    Places,
}

/// A block's orders, and its slices by round and variant.
struct Block {
    /// The variants of each round, in the order of time.
    rows: Vec<Vec<usize>>,
    /// Log rates by round and variant; NaN where nothing counts.
    log_rates: Vec<Vec<f64>>,
}

impl Block {
    fn new(
        number: usize,
        variants: usize,
        rounds: &[Vec<OrderedSlice>],
    ) -> Result<Self, StatsError> {
        let mut rows = Vec::with_capacity(rounds.len());
        let mut log_rates = Vec::with_capacity(rounds.len());
        for (round, slices) in rounds.iter().enumerate() {
            let mut of_variants = vec![None; variants];
            for (index, slice) in slices.iter().enumerate() {
                let log_rate = match slice.log_rate {
                    Some(value) if !value.is_finite() => {
                        return Err(StatsError::NotFinite {
                            subject: format!("order of the slices, block {number}, round {round}"),
                            index,
                            value,
                        });
                    }
                    other => other.unwrap_or(f64::NAN),
                };
                match of_variants.get_mut(slice.variant) {
                    Some(free @ None) => *free = Some(log_rate),
                    _ => {
                        return Err(StatsError::NotARound {
                            block: number,
                            round,
                        });
                    }
                }
            }
            let complete: Option<Vec<f64>> = of_variants.into_iter().collect();
            log_rates.push(complete.ok_or(StatsError::NotARound {
                block: number,
                round,
            })?);
            rows.push(slices.iter().map(|slice| slice.variant).collect());
        }
        Ok(Self { rows, log_rates })
    }

    /// Calls with round, variant and label of every slice that has a label; `order` says which row each
    /// round has.
    fn each(&self, labels: Labels, order: &[usize], mut call: impl FnMut(usize, usize, usize)) {
        let mut predecessor = None;
        for (round, row) in order.iter().enumerate() {
            for (place, &variant) in self.rows[*row].iter().enumerate() {
                let label = match labels {
                    Labels::Predecessors => predecessor.replace(variant),
                    Labels::Places => Some(place),
                };
                if let Some(label) = label {
                    call(round, variant, label);
                }
            }
        }
    }

    fn recorded_order(&self) -> Vec<usize> {
        (0..self.rows.len()).collect()
    }
}

/// The test of one kind of labels.
struct Test<'a> {
    variants: usize,
    blocks: &'a [Block],
    labels: Labels,
}

impl Test<'_> {
    /// None where the labels cannot be separated from rounds and variants.
    fn effect(&self, draws_and_one: u32, seed: u64) -> Option<OrderEffect> {
        let recorded: Vec<Vec<usize>> = self.blocks.iter().map(Block::recorded_order).collect();
        let effects = self.effects(&recorded)?;
        let residuals = self.residuals();
        let scores = self.scores(&residuals, &recorded);
        let observed = scores.iter().copied().fold(0.0, f64::max);
        let magnitude: f64 = residuals
            .iter()
            .flatten()
            .flatten()
            .filter(|residual| !residual.is_nan())
            .map(|residual| residual.abs())
            .sum();
        // What is the same in exact arithmetic differs by the rounding of log rates, which are far larger than what is
        // left of them.
        let threshold = observed - magnitude * TIE;
        let label = scores.iter().position(|score| *score >= threshold)?;
        let is_as_extreme = |orders: &[Vec<usize>]| {
            let scores = self.scores(&residuals, orders);
            scores.into_iter().any(|score| score >= threshold)
        };
        let p = match self.number_of_orders(draws_and_one) {
            Some(all) => {
                let mut orders = recorded;
                let mut extreme = 0_u32;
                for _ in 0..all {
                    extreme += u32::from(is_as_extreme(&orders));
                    next_orders(&mut orders);
                }
                f64::from(extreme) / f64::from(all)
            }
            None => {
                let mut generator = Generator::new(seed);
                let mut orders = recorded;
                drawn_p(draws_and_one, || {
                    for order in &mut orders {
                        generator.shuffle(order);
                    }
                    is_as_extreme(&orders)
                })
            }
        };
        let others = self.variants as f64 / (self.variants - 1) as f64;
        Some(OrderEffect {
            label,
            // Effects add up to nothing, so that this is what it differs from the mean of the others.
            effect: effects[label] * others,
            p,
            largest_bias: self.largest_bias(&effects),
        })
    }

    /// How many orders there are, if no more than `most`.
    fn number_of_orders(&self, most: u32) -> Option<u32> {
        self.blocks
            .iter()
            .flat_map(|block| 1..=block.rows.len())
            .try_fold(1_u32, |product, factor| {
                product
                    .checked_mul(u32::try_from(factor).ok()?)
                    .filter(|product| *product <= most)
            })
    }

    /// For each label the sum of its residuals over the root of their number, without sign.
    fn scores(&self, residuals: &[Vec<Vec<f64>>], orders: &[Vec<usize>]) -> Vec<f64> {
        let mut sums = vec![(0.0_f64, 0_u32); self.variants];
        for ((block, residuals), order) in self.blocks.iter().zip(residuals).zip(orders) {
            block.each(self.labels, order, |round, variant, label| {
                let residual = residuals[round][variant];
                if !residual.is_nan() {
                    sums[label].0 += residual;
                    sums[label].1 += 1;
                }
            });
        }
        sums.into_iter()
            .map(|(sum, count)| sum.abs() / f64::from(count.max(1)).sqrt())
            .collect()
    }

    /// What is left of every slice where rounds and variants are taken out; NaN where nothing
    /// counts. It belongs to a variant in a round, whatever the order.
    fn residuals(&self) -> Vec<Vec<Vec<f64>>> {
        let cells = all_cells(self.blocks);
        let mut residuals: Vec<Vec<Vec<f64>>> = self
            .blocks
            .iter()
            .map(|block| vec![vec![f64::NAN; self.variants]; block.rows.len()])
            .collect();
        for (&(block, round, variant), residual) in cells.places().iter().zip(cells.fit().residuals)
        {
            residuals[block][round][variant] = residual;
        }
        residuals
    }

    /// The effect of every label, which add up to nothing.
    fn effects(&self, recorded: &[Vec<usize>]) -> Option<Vec<f64>> {
        let mut places = Vec::new();
        let mut labels = Vec::new();
        for (number, (block, order)) in self.blocks.iter().zip(recorded).enumerate() {
            block.each(self.labels, order, |round, variant, label| {
                if !block.log_rates[round][variant].is_nan() {
                    places.push((number, round, variant));
                    labels.push(label);
                }
            });
        }
        let fit = cells(self.blocks, places).fit_labels(&labels, self.variants)?;
        Some(fit.effects)
    }

    fn largest_bias(&self, effects: &[f64]) -> f64 {
        let mut sums = vec![(0.0_f64, 0_u32); self.variants];
        for block in self.blocks {
            block.each(self.labels, &block.recorded_order(), |_, variant, label| {
                sums[variant].0 += effects[label];
                sums[variant].1 += 1;
            });
        }
        let means = sums
            .into_iter()
            .map(|(sum, count)| sum / f64::from(count.max(1)));
        let (lowest, highest) = means.fold((f64::INFINITY, f64::NEG_INFINITY), |ends, mean| {
            (ends.0.min(mean), ends.1.max(mean))
        });
        // Whole designs leave nothing but rounding.
        let largest = effects
            .iter()
            .fold(0.0_f64, |most, effect| most.max(effect.abs()));
        let bias = highest - lowest;
        if bias > largest * ROUNDING { bias } else { 0.0 }
    }
}

/// All slices that count.
fn all_cells(blocks: &[Block]) -> Cells {
    let mut places = Vec::new();
    for (number, block) in blocks.iter().enumerate() {
        for (round, log_rates) in block.log_rates.iter().enumerate() {
            let counted = (0..log_rates.len()).filter(|variant| !log_rates[*variant].is_nan());
            places.extend(counted.map(|variant| (number, round, variant)));
        }
    }
    cells(blocks, places)
}

fn cells(blocks: &[Block], places: Vec<Place>) -> Cells {
    let log_rate = |&(block, round, variant): &Place| blocks[block].log_rates[round][variant];
    let log_rates = places.iter().map(log_rate).collect();
    Cells::new(places, log_rates)
}

/// The next orders of all blocks, as on an odometer.
fn next_orders(orders: &mut [Vec<usize>]) {
    for order in orders {
        if next_permutation(order) {
            return;
        }
    }
}

/// The next permutation in the order of a dictionary; after the last one the first, and false.
fn next_permutation(order: &mut [usize]) -> bool {
    let Some(rise) = order.windows(2).rposition(|pair| pair[0] < pair[1]) else {
        order.reverse();
        return false;
    };
    let larger = order
        .iter()
        .rposition(|item| *item > order[rise])
        .unwrap_or(rise);
    order.swap(rise, larger);
    order[rise + 1..].reverse();
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Rounds of orders, with a log rate for each variant in each round.
    fn rounds(
        orders: &[&[usize]],
        log_rate: impl Fn(usize, usize) -> Option<f64>,
    ) -> Vec<Vec<OrderedSlice>> {
        let slice = |round: usize, variant: usize| OrderedSlice {
            variant,
            log_rate: log_rate(round, variant),
        };
        orders
            .iter()
            .enumerate()
            .map(|(round, row)| row.iter().map(|v| slice(round, *v)).collect())
            .collect()
    }

    fn nothing(variants: usize, blocks: &[Vec<Vec<OrderedSlice>>]) -> bool {
        order_effects(variants, blocks, ORDER_LEVEL, 1)
            .unwrap()
            .is_none()
    }

    #[test]
    fn nothing_can_be_told_of_one_order_one_round_or_one_variant() {
        let rate = |round: usize, variant: usize| Some((round * 7 + variant * 3) as f64 % 5.0);
        assert!(nothing(0, &[]));
        assert!(nothing(2, &[]));
        assert!(nothing(2, &[Vec::new()]));
        assert!(nothing(2, &[rounds(&[&[0, 1]], rate)]));
        assert!(nothing(1, &[rounds(&[&[0], &[0]], rate)]));
        // In sequence: what runs before is always the same.
        assert!(nothing(3, &vec![rounds(&[&[0, 1, 2][..]; 4], rate); 3]));
        let missing = rounds(&[&[0, 1], &[1, 0], &[0, 1]], |_, _| None);
        assert!(nothing(2, &[missing]));
    }

    #[test]
    fn orders_that_are_as_extreme_stay_so_in_other_units() {
        let log_rates = [
            [Some(0.4511107406790946), None, Some(0.49472531621692006)],
            [Some(0.0), None, Some(0.7418485330819401)],
            [
                Some(-0.44182890870029656),
                Some(0.0),
                Some(-0.9221959418734095),
            ],
        ];
        let p = |scale: f64, level: f64| {
            let log_rate = |round: usize, variant: usize| {
                log_rates[round][variant].map(|rate| rate * scale + level)
            };
            let block = rounds(&[&[1, 2, 0], &[0, 1, 2], &[2, 1, 0]], log_rate);
            let effects = order_effects(3, &[block], ORDER_LEVEL, 1).unwrap().unwrap();
            // Of six orders.
            [effects.predecessor.p, effects.place.p].map(|p| format!("{:.0}", p * 6.0))
        };
        for level in 0..128 {
            assert_eq!(p(0.5, f64::from(level)), ["4", "2"], "{level}");
        }
    }

    #[test]
    fn what_is_no_round_or_no_number_is_refused() {
        let refused = |variants, rounds| {
            let error = order_effects(variants, &[rounds], ORDER_LEVEL, 1).unwrap_err();
            error.to_string()
        };
        let one = |_: usize, _: usize| Some(1.0);
        insta::assert_snapshot!(
            [
                refused(2, rounds(&[&[0, 1], &[1, 1]], one)),
                refused(2, rounds(&[&[0]], one)),
                refused(2, rounds(&[&[0, 2]], one)),
                refused(2, rounds(&[&[1, 0]], |_, v| Some([1.0, f64::NAN][v]))),
                order_effects(2, &[], 0.0, 1).unwrap_err().to_string(),
            ]
            .join("\n"),
            @r#"
block 0, round 1: not one slice of every variant (counted from 0); leave the block out
block 0, round 0: not one slice of every variant (counted from 0); leave the block out
block 0, round 0: not one slice of every variant (counted from 0); leave the block out
order of the slices, block 0, round 0: value 0 is not finite (NaN); give finite numbers only
level: not between 0.00000001 and 1 (0); give for example 0.01
"#
        );
    }

    #[test]
    fn constant_slices_show_nothing() {
        let same = |_: usize, variant: usize| Some(14.0 + variant as f64);
        let orders: [&[usize]; 4] = [&[0, 1, 2], &[2, 1, 0], &[1, 0, 2], &[0, 2, 1]];
        let blocks = vec![rounds(&orders, same); 4];
        let effects = order_effects(3, &blocks, ORDER_LEVEL, 1).unwrap().unwrap();
        for effect in [effects.predecessor, effects.place] {
            assert!(effect.p > 0.99, "{effect:?}");
            assert!(effect.effect.abs() < 1e-12, "{effect:?}");
        }
    }

    #[test]
    fn every_order_comes_once() {
        let mut orders = vec![vec![0, 1], vec![0, 1, 2]];
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..12 {
            seen.insert(orders.clone());
            next_orders(&mut orders);
        }
        assert_eq!(seen.len(), 12);
        assert_eq!(orders, [vec![0, 1], vec![0, 1, 2]]);
    }

    /// Blocks of three variants with random orders and log rates, some of them missing.
    fn blocks() -> impl Strategy<Value = Vec<Vec<Vec<OrderedSlice>>>> {
        let round = (
            Just(vec![0_usize, 1, 2]).prop_shuffle(),
            prop::collection::vec(prop::option::weighted(0.9, -1.0..1.0_f64), 3),
        )
            .prop_map(|(order, rates)| {
                let slices = order.into_iter();
                slices
                    .map(|variant| OrderedSlice {
                        variant,
                        log_rate: rates[variant],
                    })
                    .collect::<Vec<_>>()
            });
        prop::collection::vec(prop::collection::vec(round, 0..6), 0..4)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Other units, and other levels of blocks and variants, change nothing; another scale changes
        /// the effects by as much.
        #[test]
        fn units_levels_and_scale(blocks in blocks(), level: i8, scale in 0.5..2.0_f64) {
            let moved: Vec<Vec<Vec<OrderedSlice>>> = blocks
                .iter()
                .enumerate()
                .map(|(block, rounds)| {
                    let rounds = rounds.iter();
                    rounds.map(|round| {
                        let slices = round.iter();
                        slices.map(|slice| OrderedSlice {
                            log_rate: slice.log_rate.map(|rate| {
                                let of_variant = (slice.variant * block) as f64;
                                rate * scale + f64::from(level) + of_variant
                            }),
                            ..*slice
                        }).collect()
                    }).collect()
                })
                .collect();
            let of = |blocks: &[Vec<Vec<OrderedSlice>>]| {
                order_effects(3, blocks, 0.05, 1).unwrap()
            };
            let (plain, moved) = (of(&blocks), of(&moved));
            prop_assert_eq!(plain.is_some(), moved.is_some());
            if let Some((plain, moved)) = plain.zip(moved) {
                for (plain, moved) in [
                    (plain.predecessor, moved.predecessor),
                    (plain.place, moved.place),
                ] {
                    prop_assert!((0.0..=1.0).contains(&plain.p));
                    prop_assert!(plain.largest_bias >= 0.0);
                    prop_assert!((plain.p - moved.p).abs() < 1e-12, "{:?} {:?}", plain, moved);
                    if plain.label == moved.label {
                        let expected = plain.effect * scale;
                        prop_assert!((moved.effect - expected).abs() < 1e-6);
                    }
                }
            }
        }

        /// No matter which block came first.
        #[test]
        fn order_of_blocks(blocks in blocks()) {
            let mut backwards = blocks.clone();
            backwards.reverse();
            let of = |blocks: &[Vec<Vec<OrderedSlice>>]| {
                order_effects(3, blocks, 0.05, 1).unwrap()
            };
            if let Some((one, other)) = of(&blocks).zip(of(&backwards)) {
                prop_assert!((one.place.largest_bias - other.place.largest_bias).abs() < 1e-9);
                // The draws are others, so that p-values agree where all orders are tried.
                let orders: u64 = blocks.iter().map(|b| (1..=b.len() as u64).product::<u64>()).product();
                if orders <= 400 {
                    prop_assert!((one.predecessor.p - other.predecessor.p).abs() < 1e-12);
                }
            }
        }
    }
}
