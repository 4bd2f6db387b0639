//! Whether one of several has more of some events than chance would give it.

/// The probability that one of them has as many of the events as the one that has most, where each event
/// falls on any of them alike.
///
/// Bonferroni's bound: the binomial tail of one of them, times their number. None where there is no event,
/// or nobody to share them with.
///
/// Shape: the events of each. Units: counts.
///
/// # Source
/// Feller 1968, "An Introduction to Probability Theory", I.IV.1 and VI. Oracle: complete enumeration, in
/// the tests.
///
/// # Examples
/// ```
/// use fwdlab_stats::imbalance_p;
/// assert!(imbalance_p(&[2, 1, 1]).unwrap() > 0.5);
/// assert!(imbalance_p(&[9, 0, 0]).unwrap() < 0.001);
/// ```
#[must_use]
pub fn imbalance_p(counts: &[u64]) -> Option<f64> {
    let events: u64 = counts.iter().sum();
    let most = *counts.iter().max()?;
    if events == 0 || counts.len() < 2 {
        return None;
    }
    let share = 1.0 / counts.len() as f64;
    let log_choose = |hits: u64| {
        libm::lgamma(events as f64 + 1.0)
            - libm::lgamma(hits as f64 + 1.0)
            - libm::lgamma((events - hits) as f64 + 1.0)
    };
    let tail: f64 = (most..=events)
        .map(|hits| {
            let rest = (events - hits) as f64;
            (log_choose(hits) + hits as f64 * share.ln() + rest * (-share).ln_1p()).exp()
        })
        .sum();
    Some((tail * counts.len() as f64).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often one of `parts` has `most` or more of `events`, over all ways in which they can fall.
    fn enumerated(parts: usize, events: u32, most: u64) -> f64 {
        let ways = parts.pow(events);
        let hits = (0..ways).filter(|&way| {
            let mut counts = vec![0; parts];
            let mut rest = way;
            for _ in 0..events {
                counts[rest % parts] += 1;
                rest /= parts;
            }
            counts.iter().any(|&count| count >= most)
        });
        hits.count() as f64 / ways as f64
    }

    #[test]
    fn it_bounds_the_exact_probability_and_meets_it_where_only_one_can_have_so_many() {
        for (counts, parts, events) in [
            (vec![6_u64, 0, 0], 3_usize, 6_u32),
            (vec![5, 1, 0], 3, 6),
            (vec![4, 1, 1], 3, 6),
            (vec![3, 2, 1], 3, 6),
            (vec![4, 4], 2, 8),
            (vec![7, 1], 2, 8),
        ] {
            let exact = enumerated(parts, events, counts[0]);
            let bound = imbalance_p(&counts).unwrap();
            assert!(bound >= exact - 1e-12, "{counts:?}: {bound} {exact}");
            if counts[0] * 2 > u64::from(events) {
                assert!((bound - exact).abs() < 1e-12, "{counts:?}: {bound} {exact}");
            }
        }
        assert_eq!(imbalance_p(&[0, 0]), None);
        assert_eq!(imbalance_p(&[3]), None);
        assert_eq!(imbalance_p(&[]), None);
    }
}
