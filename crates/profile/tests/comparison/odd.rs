//! What the comparison makes of odd profiles.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use fwdlab_profile::{Comparison, Folded, ProfilePair, compare_profiles};
use proptest::prelude::*;

use crate::shared::{folded, pair};

fn itself(comparison: &Comparison, frame: &str) -> (f64, bool) {
    let of = comparison.frame(frame).unwrap().itself;
    (of.difference_ns, of.is_significant)
}

#[test]
fn a_frame_that_calls_itself_is_counted_once() {
    let (off, on) = (folded("a;b;a 30\nb;b 10\n"), folded("a;b;a 10\nb;b 10\n"));
    let found = compare_profiles(&[pair(&off, &on, [400.0, 200.0]); 6], 0.95).unwrap();
    let a = found.frame("a").unwrap();
    assert!((a.with_callees.baseline_ns - 300.0).abs() < 1e-9);
    assert!((a.with_callees.variant_ns - 100.0).abs() < 1e-9);
    let b = found.frame("b").unwrap();
    assert!((b.with_callees.baseline_ns - 400.0).abs() < 1e-9);
    assert!((b.itself.baseline_ns - 100.0).abs() < 1e-9);
}

#[test]
fn new_and_vanished_frames_are_found() {
    let (off, on) = (
        folded("rx;old 100\nrx 300\n"),
        folded("rx;new 100\nrx 300\n"),
    );
    let found = compare_profiles(&[pair(&off, &on, [400.0, 400.0]); 8], 0.95).unwrap();
    assert_eq!(itself(&found, "old"), (-100.0, true));
    assert_eq!(itself(&found, "new"), (100.0, true));
    assert_eq!(itself(&found, "rx"), (0.0, false));
    assert!(found.frame("old").unwrap().itself.variant_ns <= 0.0);
    assert!(found.frame("new").unwrap().itself.is_new());
    assert!(!found.whole.is_significant);
}

#[test]
fn few_blocks_say_that_they_can_show_nothing() {
    let (off, on) = (folded("a 1000\n"), folded("b 1000\n"));
    for blocks in 1..6 {
        let found = compare_profiles(&vec![pair(&off, &on, [1.0, 9.0]); blocks], 0.95).unwrap();
        assert!(!found.can_show() && found.blocks_needed == 6);
        assert_eq!(found.significant().count(), 0);
        let a = found.frame("a").unwrap().itself;
        assert!(
            a.interval.is_none() && a.p.is_some_and(|p| p > 0.05),
            "{a:?}"
        );
    }
    let found = compare_profiles(&[pair(&off, &on, [1.0, 9.0]); 8], 0.99).unwrap();
    assert!(found.can_show() && found.blocks_needed == 8);
}

#[test]
fn a_frame_of_few_samples_is_not_judged() {
    let (off, on) = (folded("a 1000\nb 1\n"), folded("a 1000\n"));
    let found = compare_profiles(&[pair(&off, &on, [9.0, 9.0]); 8], 0.95).unwrap();
    let b = found.frame("b").unwrap().itself;
    assert!(b.p.is_none() && b.interval.is_none() && !b.is_significant);
    assert!(b.difference_ns < 0.0);
    // Of "a" both costs are the same, and judged once.
    assert_eq!(found.family, 1);
}

#[test]
fn a_difference_that_is_the_same_in_every_block_has_a_width_all_the_same() {
    let (off, on) = (folded("a 490\nb 10\n"), folded("a 489\nb 11\n"));
    let found = compare_profiles(&[pair(&off, &on, [500.0, 500.0]); 8], 0.95).unwrap();
    let b = found.frame("b").unwrap().itself;
    assert!(b.interval.unwrap().half_width_ns() > 0.3, "{b:?}");
}

#[test]
fn what_is_no_comparison_is_refused() {
    let (some, none) = (folded("a 1\n"), folded(""));
    let error = |pairs: &[ProfilePair]| compare_profiles(pairs, 0.95).unwrap_err().to_string();
    assert!(error(&[]).contains("no profiles"));
    let good = pair(&some, &some, [1.0, 1.0]);
    assert!(
        error(&[good, pair(&some, &none, [1.0, 1.0])])
            .contains("block 2: a profile has no samples")
    );
    for cost in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(error(&[pair(&some, &some, [1.0, cost])]).contains("is no cost"));
    }
    assert!(compare_profiles(&[good], 95.0).is_err());
}

proptest! {
    #[test]
    fn own_differences_sum_to_the_whole_and_exchanging_the_variants_changes_signs_only(
        samples in prop::collection::vec(prop::collection::vec(0..400_u64, 8), 2..9),
        costs in prop::collection::vec(100.0..900.0_f64, 16),
    ) {
        let profile = |counts: &[u64]| {
            let mut folded = Folded::new();
            for (leaf, count) in counts.iter().enumerate() {
                folded.push(["all".to_owned(), format!("f{leaf}")], count + u64::from(leaf == 0));
            }
            folded
        };
        let profiles: Vec<_> = samples
            .iter()
            .map(|counts| (profile(&counts[..4]), profile(&counts[4..])))
            .collect();
        let forth: Vec<_> = profiles
            .iter()
            .zip(costs.chunks(2))
            .map(|((off, on), ns)| pair(off, on, [ns[0], ns[1]]))
            .collect();
        let back: Vec<_> = forth
            .iter()
            .map(|pair| ProfilePair { baseline: pair.variant, variant: pair.baseline })
            .collect();
        let forth = compare_profiles(&forth, 0.95).unwrap();
        let back = compare_profiles(&back, 0.95).unwrap();
        let sum: f64 = forth.frames.iter().map(|frame| frame.itself.difference_ns).sum();
        prop_assert!((sum - forth.whole.difference_ns).abs() < 1e-9);
        prop_assert_eq!(forth.family, back.family);
        for frame in &forth.frames {
            let other = back.frame(&frame.frame).unwrap();
            for (one, other) in [(frame.itself, other.itself), (frame.with_callees, other.with_callees)] {
                prop_assert!((one.difference_ns + other.difference_ns).abs() < 1e-9);
                prop_assert_eq!(one.p, other.p);
                prop_assert_eq!(one.is_significant, other.is_significant);
                if let Some(interval) = one.interval {
                    let has_zero = interval.lower_ns <= 0.0 && interval.upper_ns >= 0.0;
                    prop_assert_eq!(one.is_significant, !has_zero);
                }
            }
        }
    }
}
