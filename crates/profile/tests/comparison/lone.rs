//! The comparison of one profile each, by sampling error alone.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use fwdlab_profile::{Comparison, Folded, Noise, ProfilePair, Profiled, compare_lone_profiles};
use fwdlab_stats::Generator;
use proptest::prelude::*;

fn compare(baseline: &[u64], variant: &[u64], ns: [f64; 2]) -> Comparison {
    let profile = |counts: &[u64]| {
        let mut folded = Folded::new();
        for (leaf, count) in counts.iter().enumerate() {
            folded.push([format!("f{leaf}")], *count);
        }
        folded
    };
    let (baseline, variant) = (profile(baseline), profile(variant));
    let pair = ProfilePair {
        baseline: Profiled {
            stacks: &baseline,
            ns_per_packet: ns[0],
        },
        variant: Profiled {
            stacks: &variant,
            ns_per_packet: ns[1],
        },
    };
    compare_lone_profiles(pair, 0.95).unwrap()
}

/// Newcombe 1998, table II, row (a) of method 10: 56/70 and 48/80, whose interval is 0.0524 to 0.3339.
#[test]
fn an_interval_is_that_of_its_source() {
    let found = compare(&[48, 32], &[56, 14], [1.0, 1.0]);
    let first = found.frame("f0").unwrap().itself;
    // Both frames are of the family and mirror each other, so that the level is half of 5 %.
    let wider = first.interval.unwrap();
    assert!(
        wider.lower_ns < 0.0524 && wider.upper_ns > 0.3339,
        "{wider:?}"
    );
    assert!(first.is_significant && first.p.is_some_and(|p| p < 0.05));
    let found = compare(&[48, 0, 32], &[56, 0, 14], [1.0, 1.0]);
    assert_eq!((found.family, found.noise), (2, Noise::Samples));
    assert!(found.can_show() && found.whole.interval.is_none());
}

#[test]
fn profiles_of_the_same_truth_rarely_differ_anywhere() {
    let mut generator = Generator::new(5);
    let mut profile = || {
        let mut counts = vec![0_u64; 60];
        for _ in 0..2000 {
            // The product of two numbers: many small frames.
            let at = generator.below(60) * generator.below(60) / 60;
            counts[at as usize] += 1;
        }
        counts
    };
    let wrong = (0..1000)
        .filter(|_| {
            let found = compare(&profile(), &profile(), [100.0, 100.0]);
            found.significant().next().is_some()
        })
        .count();
    assert!(wrong <= 78, "{wrong} of 1000");
}

#[test]
fn the_same_profile_twice_shows_nothing_and_another_cost_shows_all() {
    let same = compare(&[500, 300, 9], &[500, 300, 9], [100.0, 100.0]);
    assert_eq!(same.significant().count(), 0);
    let costly = compare(&[5000, 3000], &[5000, 3000], [100.0, 200.0]);
    assert_eq!(costly.significant().count(), 2);
    assert!((costly.whole.difference_ns - 100.0).abs() < 1e-9);
}

proptest! {
    #[test]
    fn intervals_agree_with_the_test_and_hold_the_difference(
        baseline in prop::collection::vec(0..300_u64, 6),
        variant in prop::collection::vec(0..300_u64, 6),
        ns in 50.0..200.0_f64,
    ) {
        let more = |mut counts: Vec<u64>| { counts.push(1); counts };
        let found = compare(&more(baseline), &more(variant), [100.0, ns]);
        for frame in &found.frames {
            let of = frame.itself;
            let Some(interval) = of.interval else { continue };
            let has_zero = interval.lower_ns <= 0.0 && interval.upper_ns >= 0.0;
            prop_assert_eq!(of.is_significant, !has_zero, "{:?}", of);
            prop_assert!(interval.lower_ns <= of.difference_ns && of.difference_ns <= interval.upper_ns);
        }
    }
}
