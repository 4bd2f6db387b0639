//! A small simulation: where nothing differs, the methods say so as often as they claim.
//!
//! Noise is t with 3 degrees of freedom, as this field's is, for the methods that claim to hold for
//! any; normal for those that ask for it. Everything is seeded: the counts are the same on every
//! run.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod noise;

use fwdlab_stats::{
    Draws, Factor, MannWhitney, PermutationTest, ShiftTest, Stratum, TwoSampleT,
    factorial_analysis, max_t_permutation, max_t_sign_flip,
};
use noise::Noise;

const REPLICATES: usize = 2000;
const DRAWS: Draws = Draws {
    seed: 9,
    count: 199,
};

/// 5 % and three standard errors of a share of 5 % in 2000 replicates, either way.
const NOMINAL: std::ops::RangeInclusive<f64> = 0.0353..=0.0647;

/// The share of replicates with a p-value of 5 % or less.
fn share(seed: u64, p: impl Fn(&mut Noise) -> f64) -> f64 {
    let mut noise = Noise::new(seed);
    let rejected = (0..REPLICATES).filter(|_| p(&mut noise) <= 0.05).count();
    rejected as f64 / REPLICATES as f64
}

fn sample(size: usize, mut value: impl FnMut() -> f64) -> Vec<f64> {
    (0..size).map(|_| value()).collect()
}

fn smallest(p_values: &[f64]) -> f64 {
    p_values.iter().copied().fold(1.0, f64::min)
}

#[test]
fn welch_with_unequal_sizes_and_deviations() {
    let found = share(1, |noise| {
        let (a, b) = (
            sample(6, || 3.0 * noise.normal()),
            sample(15, || noise.normal()),
        );
        TwoSampleT::welch(&a, &b).unwrap().p_two_sided(0.0)
    });
    assert!(NOMINAL.contains(&found), "{found}");
}

#[test]
fn pooled_with_one_deviation() {
    let found = share(2, |noise| {
        let (a, b) = (sample(5, || noise.normal()), sample(9, || noise.normal()));
        TwoSampleT::pooled(&a, &b).unwrap().p_two_sided(0.0)
    });
    assert!(NOMINAL.contains(&found), "{found}");
}

#[test]
fn mann_whitney_exact_and_approximate() {
    for (seed, n, m) in [(3, 20, 25), (4, 70, 80)] {
        let found = share(seed, |noise| {
            let (a, b) = (sample(n, || noise.t3()), sample(m, || noise.t3()));
            MannWhitney::new(&a, &b).unwrap().p_two_sided(0.0)
        });
        assert!(NOMINAL.contains(&found), "{n} {m}: {found}");
    }
}

/// Ties in plenty: what is rounded to whole numbers is tested by the exact distribution of its
/// midranks, which cannot reach every level.
#[test]
fn midranks_of_ties() {
    let found = share(5, |noise| {
        let (a, b) = (
            sample(12, || noise.t3().round()),
            sample(10, || noise.t3().round()),
        );
        MannWhitney::new(&a, &b).unwrap().midrank().two_sided
    });
    assert!((0.02..=*NOMINAL.end()).contains(&found), "{found}");
}

#[test]
fn permutation_within_strata_that_differ() {
    let found = share(6, |noise| {
        let strata: Vec<[Vec<f64>; 2]> = (0..3)
            .map(|_| {
                let level = 10.0 * noise.normal();
                [3, 4].map(|size| sample(size, || level + noise.t3()))
            })
            .collect();
        let strata: Vec<Stratum<'_>> = strata
            .iter()
            .map(|[sample, reference]| Stratum { sample, reference })
            .collect();
        PermutationTest::new(&strata, DRAWS)
            .unwrap()
            .p_two_sided(0.0)
    });
    assert!(NOMINAL.contains(&found), "{found}");
}

#[test]
fn permutation_by_draws() {
    let found = share(7, |noise| {
        let (a, b) = (sample(15, || noise.t3()), sample(15, || noise.t3()));
        let stratum = Stratum {
            sample: &a,
            reference: &b,
        };
        PermutationTest::new(&[stratum], DRAWS)
            .unwrap()
            .p_two_sided(0.0)
    });
    assert!(NOMINAL.contains(&found), "{found}");
}

/// Four comparisons share the baseline's noise: one family in twenty errs, not one comparison.
#[test]
fn max_t_over_a_family() {
    let found = share(8, |noise| {
        let baseline = sample(9, || noise.t3());
        let effects: Vec<Vec<f64>> = (0..4)
            .map(|_| baseline.iter().map(|base| noise.t3() - base).collect())
            .collect();
        smallest(&max_t_sign_flip(&effects, DRAWS).unwrap())
    });
    assert!(NOMINAL.contains(&found), "{found}");
    let found = share(9, |noise| {
        let [reference, a, b] = [9, 12, 10].map(|size| sample(size, || noise.t3()));
        smallest(&max_t_permutation(&reference, &[&a, &b], DRAWS).unwrap())
    });
    assert!(NOMINAL.contains(&found), "{found}");
}

/// A main effect stands beside a large one, blocks that differ and a combination less.
#[test]
fn factorial_terms() {
    let levels = |of: fn(usize) -> usize| (0..15).map(of).collect();
    let factors =
        [("a", levels(|i| i % 2)), ("b", levels(|i| i / 2 % 2))].map(|(name, levels)| Factor {
            name: name.to_owned(),
            levels,
        });
    let blocks: Vec<usize> = (0..15).map(|i| i / 4).collect();
    for (term, expected) in [(1, "b"), (2, "a b")] {
        let found = share(10 + term as u64, |noise| {
            let of_block = sample(4, || 5.0 * noise.normal());
            let responses: Vec<f64> = (0..15)
                .map(|i| of_block[blocks[i]] + 3.0 * factors[0].levels[i] as f64 + noise.normal())
                .collect();
            let analysis =
                factorial_analysis(&responses, &factors, Some(&blocks), 2, 0.95).unwrap();
            assert_eq!(analysis.terms[term].factors.join(" "), expected);
            analysis.terms[term].p
        });
        assert!(NOMINAL.contains(&found), "{expected}: {found}");
    }
}
