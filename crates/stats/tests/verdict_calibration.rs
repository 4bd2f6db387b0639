//! A small simulation: the verdicts' error rates on this field's noise are what they claim.
//!
//! Block effects are t with 3 degrees of freedom, scale 0.5 %, and share the baseline's noise
//! within a block. Everything is seeded: the counts are the same on every run.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod noise;

use fwdlab_stats::{ComparisonEffects, Verdict, VerdictSettings, family_verdicts};
use noise::Noise;

const REPLICATES: usize = 2000;
const BLOCKS: usize = 8;
const NOISE_SCALE: f64 = 0.005;

/// The share of families in which `counts` holds for one comparison or more.
fn share(effects: &[f64], seed: u64, counts: impl Fn(usize, Verdict) -> bool) -> f64 {
    let mut noise = Noise::new(seed);
    let hits = (0..REPLICATES)
        .filter(|_| {
            let mut family: Vec<ComparisonEffects> = (0..effects.len())
                .map(|index| ComparisonEffects {
                    name: format!("variant {index}"),
                    block_effects: Vec::new(),
                })
                .collect();
            for _ in 0..BLOCKS {
                let baseline = noise.t3();
                for (comparison, effect) in family.iter_mut().zip(effects) {
                    let error = NOISE_SCALE * (noise.t3() - baseline);
                    comparison.block_effects.push(effect + error);
                }
            }
            family_verdicts(&family, None, &VerdictSettings::default())
                .unwrap()
                .comparisons
                .iter()
                .enumerate()
                .any(|(index, judged)| counts(index, judged.verdict))
        })
        .count();
    hits as f64 / REPLICATES as f64
}

/// 5 % and three standard errors of a share of 5 % in 2000 replicates.
const AT_MOST_NOMINAL: f64 = 0.05 + 0.0147;

#[test]
fn one_comparison_without_effect_is_rarely_called_different() {
    let false_positives = share(&[0.0], 1, |_, verdict| verdict.shows_difference());
    // The exact level at 8 blocks is 3.9 %.
    assert!(
        (0.026..=AT_MOST_NOMINAL).contains(&false_positives),
        "{false_positives}"
    );
}

#[test]
fn four_comparisons_without_effect_are_rarely_called_different() {
    let false_positives = share(&[0.0; 4], 2, |_, verdict| verdict.shows_difference());
    assert!(
        (0.005..=AT_MOST_NOMINAL).contains(&false_positives),
        "{false_positives}"
    );
}

/// Effects of exactly the threshold, whose directions are often clear.
#[test]
fn effects_on_the_threshold_are_rarely_called_inside_or_beyond() {
    let threshold = 0.01_f64.ln_1p();
    let beyond = share(&[threshold; 3], 3, |_, verdict| {
        verdict == Verdict::Different
    });
    assert!(beyond <= AT_MOST_NOMINAL, "{beyond}");
    let inside = share(&[threshold; 3], 3, |_, verdict| {
        matches!(
            verdict,
            Verdict::Equivalent | Verdict::DifferentButNegligible
        )
    });
    assert!(inside <= AT_MOST_NOMINAL, "{inside}");
}

#[test]
fn a_large_effect_is_found_beside_two_that_are_none() {
    let found = share(&[-0.2, 0.0, 0.0], 4, |index, verdict| {
        index == 0 && verdict == Verdict::Different
    });
    assert!(found > 0.95, "{found}");
}
