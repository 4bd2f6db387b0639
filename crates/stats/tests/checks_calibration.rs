//! A small simulation of the checks beside verdicts: how often they warn where there is nothing, and
//! where there is something.
//!
//! Noise is this field's: t with 3 degrees of freedom and low outliers between set-ups, correlation from
//! slice to slice. Everything is seeded: the counts are the same on every run.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod noise;

use fwdlab_stats::{
    Generator, MODES_LEVEL, ORDER_LEVEL, OrderEffects, OrderedSlice, order_effects, two_modes,
};
use noise::Noise;

const VARIANTS: usize = 5;
const SLICE_DEVIATION: f64 = 0.003;

/// What happens between slices.
#[derive(Clone, Copy)]
struct Order {
    correlation: f64,
    /// What a slice loses right after another variant than the first.
    carry_over: f64,
    /// What the first slice of a round gains.
    first: f64,
}

fn checked(seed: u64, order: Order) -> OrderEffects {
    let mut noise = Noise::new(seed);
    let mut orders = Generator::new(seed);
    let mut last = SLICE_DEVIATION * noise.normal();
    let blocks: Vec<Vec<Vec<OrderedSlice>>> = (0..8)
        .map(|_| {
            let runs: Vec<f64> = (0..VARIANTS).map(|_| 0.003 * noise.t3()).collect();
            let mut predecessor = 0;
            let mut round = || {
                let mut row: Vec<usize> = (0..VARIANTS).collect();
                orders.shuffle(&mut row);
                let slices = row.into_iter().enumerate();
                slices
                    .map(|(place, variant)| {
                        let innovation = (1.0 - order.correlation.powi(2)).sqrt();
                        last = order.correlation * last
                            + innovation * SLICE_DEVIATION * noise.normal();
                        let mut log_rate = 14.0 + runs[variant] + last;
                        if predecessor != 0 {
                            log_rate -= order.carry_over;
                        }
                        if place == 0 {
                            log_rate += order.first;
                        }
                        predecessor = variant;
                        OrderedSlice {
                            variant,
                            log_rate: Some(log_rate),
                        }
                    })
                    .collect()
            };
            (0..10).map(|_| round()).collect()
        })
        .collect();
    order_effects(VARIANTS, &blocks, ORDER_LEVEL, seed)
        .unwrap()
        .unwrap()
}

const NOTHING: Order = Order {
    correlation: 0.0,
    carry_over: 0.0,
    first: 0.0,
};

/// A share of `nominal` in `replicates`, and four standard errors.
fn at_most(nominal: f64, replicates: u32) -> f64 {
    let mean = nominal * f64::from(replicates);
    mean + 4.0 * (mean * (1.0 - nominal)).sqrt()
}

/// At most 1 % each, as reports say.
#[test]
fn orders_that_do_nothing_are_rarely_warned_of() {
    for correlation in [0.0, 0.2, 0.6] {
        let order = Order {
            correlation,
            ..NOTHING
        };
        let replicates = 1000;
        let (mut predecessors, mut places) = (0, 0);
        for seed in 0..replicates {
            let effects = checked(seed.into(), order);
            predecessors += u32::from(effects.predecessor.is_shown(ORDER_LEVEL));
            places += u32::from(effects.place.is_shown(ORDER_LEVEL));
        }
        for shown in [predecessors, places] {
            assert!(
                f64::from(shown) <= at_most(0.01, replicates),
                "{correlation}: {shown}"
            );
        }
    }
}

/// 8 blocks of 10 rounds find a carry-over of 1 % every time, and of 0.2 % as a rule; nothing else
/// is found then.
#[test]
fn carry_over_is_found() {
    for (carry_over, least) in [(0.01, 40), (0.002, 35)] {
        let order = Order {
            carry_over,
            correlation: 0.2,
            ..NOTHING
        };
        let found = (0..40)
            .filter(|seed| {
                let effects = checked(*seed, order);
                assert!(effects.place.p > 0.0005, "{effects:?}");
                let found = effects.predecessor;
                let is_right = found.label == 0 && (found.effect - carry_over).abs() < 0.001;
                found.is_shown(ORDER_LEVEL) && is_right
            })
            .count();
        assert!(found >= least, "{carry_over}: {found} of 40");
    }
}

#[test]
fn a_place_is_found() {
    let order = Order {
        first: 0.003,
        correlation: 0.2,
        ..NOTHING
    };
    for seed in 0..20 {
        let effects = checked(seed, order);
        assert!(effects.place.is_shown(ORDER_LEVEL), "{effects:?}");
        assert_eq!(effects.place.label, 0);
        assert!((effects.place.effect - 0.003).abs() < 0.001, "{effects:?}");
        assert!(effects.place.largest_bias < 0.002, "{effects:?}");
    }
}

/// One set-up: 5 % of them are 5 to 60 % slower.
fn run(noise: &mut Noise) -> f64 {
    let outlier = if noise.uniform() <= 0.05 {
        (-0.05 - 0.55 * noise.uniform()).ln_1p()
    } else {
        0.0
    };
    0.008 * noise.t3() + outlier
}

/// One mode: at most 5 of 1000 samples by their gap, 1 of 100 by their dip.
#[test]
fn one_mode_is_rarely_taken_for_two() {
    let kinds: [fn(&mut Noise) -> f64; 3] = [
        Noise::normal,
        run,
        // Effects: a variant's runs against the baseline's.
        |noise| run(noise) - run(noise),
    ];
    for (kind, draw) in kinds.into_iter().enumerate() {
        for (count, nominal, replicates) in [
            (6, 0.005, 4000),
            (8, 0.003, 4000),
            (19, 0.003, 4000),
            (20, 0.01, 1000),
            (100, 0.01, 1000),
        ] {
            let mut noise = Noise::new(count as u64);
            let found = (0..replicates)
                .filter(|_| {
                    let values: Vec<f64> = (0..count).map(|_| draw(&mut noise)).collect();
                    two_modes(&values, MODES_LEVEL, 0.0, 1).unwrap().is_some()
                })
                .count();
            let most = at_most(nominal, replicates);
            assert!(found as f64 <= most, "{kind}, {count}: {found}");
        }
    }
}

#[test]
fn two_modes_are_found() {
    for count in [8, 12, 30, 80] {
        let mut noise = Noise::new(count);
        let found = (0..100)
            .filter(|_| {
                // 9.7 and 4.3 Mpps.
                let values: Vec<f64> = (0..count)
                    .map(|number| if number % 8 < 3 { -0.8 } else { 0.0 } + 0.008 * noise.t3())
                    .collect();
                two_modes(&values, MODES_LEVEL, 0.01, 1).unwrap().is_some()
            })
            .count();
        assert!(found >= 95, "{count}: {found}");
    }
}
