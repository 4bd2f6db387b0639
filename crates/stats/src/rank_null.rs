//! The distribution of a rank statistic when the tested shift is the true one.

use crate::distribution::normal_upper_tail;

/// The distribution of a count of pairs, symmetric between 0 and its maximum.
///
/// Units: the statistic counts pairs, Walsh averages or pairwise differences.
#[derive(Debug, Clone)]
pub(crate) struct RankNull {
    statistic_max: u64,
    tail: Tail,
}

#[derive(Debug, Clone)]
enum Tail {
    /// Entry w is P(W >= w), for w from 0 to the maximum.
    Exact(Vec<f64>),
    /// With continuity correction.
    Normal { standard_deviation: f64 },
}

impl RankNull {
    /// The distribution with P(W >= w) at entry w.
    pub(crate) fn exact(upper_tail: Vec<f64>) -> Self {
        Self {
            statistic_max: (upper_tail.len() - 1) as u64,
            tail: Tail::Exact(upper_tail),
        }
    }

    /// The normal approximation around half the maximum.
    pub(crate) fn normal(statistic_max: u64, standard_deviation: f64) -> Self {
        Self {
            statistic_max,
            tail: Tail::Normal { standard_deviation },
        }
    }

    /// The probability of `statistic` or more pairs above the true shift.
    pub(crate) fn upper_tail(&self, statistic: u64) -> f64 {
        if statistic == 0 {
            return 1.0;
        }
        if statistic > self.statistic_max {
            return 0.0;
        }
        match &self.tail {
            Tail::Exact(tail) => usize::try_from(statistic)
                .ok()
                .and_then(|index| tail.get(index))
                .copied()
                .unwrap_or(0.0),
            Tail::Normal { standard_deviation } => {
                let distance = statistic as f64 - 0.5 - self.statistic_max as f64 / 2.0;
                normal_upper_tail(distance / standard_deviation)
            }
        }
    }

    /// The rank k of the pair that bounds a one-sided interval with error probability at most
    /// `tail_max`: the k-th smallest from below, the k-th largest from above.
    ///
    /// `None` if even the outermost pair would be wrong more often than that.
    pub(crate) fn bound_rank(&self, tail_max: f64) -> Option<u64> {
        // P(W >= max - k + 1) rises with k: find the last k that stays within `tail_max`.
        let within = |rank: u64| self.bound_error(rank) <= tail_max;
        if self.statistic_max == 0 || !within(1) {
            return None;
        }
        let (mut reached, mut exceeded) = (1, self.statistic_max + 1);
        while exceeded - reached > 1 {
            let middle = reached + (exceeded - reached) / 2;
            if within(middle) {
                reached = middle;
            } else {
                exceeded = middle;
            }
        }
        Some(reached)
    }

    /// The probability that the true shift lies beyond the pair of this rank.
    pub(crate) fn bound_error(&self, rank: u64) -> f64 {
        self.upper_tail(self.statistic_max + 1 - rank)
    }
}
