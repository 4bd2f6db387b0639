//! Two things measured in turn, and what their pairs say.

use anyhow::{Context, Result};
use fwdlab_stats::SignedRank;
use serde::Serialize;

use crate::figure::Outcome;

const CONFIDENCE: f64 = 0.95;

/// Observations of two things, each pair made right one after the other.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Pairs {
    pub(crate) first: Vec<f64>,
    pub(crate) second: Vec<f64>,
}

impl Pairs {
    /// Measures both things that often, in the order first, second, second, first, and so on, so
    /// that neither gains from a steady drift.
    pub(crate) fn measure(
        pairs: u32,
        mut first: impl FnMut() -> Result<f64>,
        mut second: impl FnMut() -> Result<f64>,
        mut on_pair: impl FnMut(u32, f64, f64),
    ) -> Result<Self> {
        let mut measured = Self::default();
        for pair in 1..=pairs {
            let (one, other);
            if pair % 2 == 1 {
                one = first()?;
                other = second()?;
            } else {
                other = second()?;
                one = first()?;
            }
            on_pair(pair, one, other);
            measured.first.push(one);
            measured.second.push(other);
        }
        Ok(measured)
    }

    /// How many times the second the first is.
    pub(crate) fn ratio(&self) -> Result<Estimate> {
        let estimate = self.estimate(|first, second| (first / second).ln())?;
        Ok(Estimate {
            estimate: estimate.estimate.exp(),
            lower: estimate.lower.exp(),
            upper: estimate.upper.exp(),
            ..estimate
        })
    }

    /// How much more than the second the first is.
    pub(crate) fn difference(&self) -> Result<Estimate> {
        self.estimate(|first, second| first - second)
    }

    fn estimate(&self, of_pair: impl Fn(f64, f64) -> f64) -> Result<Estimate> {
        let values: Vec<f64> = self
            .first
            .iter()
            .zip(&self.second)
            .map(|(&first, &second)| of_pair(first, second))
            .collect();
        let effects = SignedRank::new(&values)?;
        let interval = effects
            .interval_or_widest(CONFIDENCE)?
            .context("pairs: one pair bounds nothing; measure at least two")?;
        Ok(Estimate {
            pairs: values.len(),
            estimate: effects.estimate(),
            lower: interval.lower,
            upper: interval.upper,
            confidence: interval.attained_confidence,
        })
    }

    /// The medians of both.
    pub(crate) fn medians(&self) -> (f64, f64) {
        (median(&self.first), median(&self.second))
    }
}

/// The Hodges-Lehmann estimate over pairs with its Wilcoxon interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Estimate {
    pub(crate) pairs: usize,
    pub(crate) estimate: f64,
    pub(crate) lower: f64,
    pub(crate) upper: f64,
    /// What the interval attains: the next level at or above 95 %, or with few pairs the highest.
    pub(crate) confidence: f64,
}

impl Estimate {
    /// Whether it is shown to be at least so much.
    pub(crate) fn at_least(&self, goal: f64) -> Outcome {
        if self.lower >= goal {
            Outcome::Met
        } else if self.upper < goal {
            Outcome::Missed
        } else {
            Outcome::Open
        }
    }

    /// Whether it is shown to be at most so much.
    pub(crate) fn at_most(&self, goal: f64) -> Outcome {
        if self.upper <= goal {
            Outcome::Met
        } else if self.lower > goal {
            Outcome::Missed
        } else {
            Outcome::Open
        }
    }

    /// `9.81 (9.55 to 10.1; n 16, 95.2 %)`, with a unit after the estimate.
    pub(crate) fn written(&self, decimals: usize, unit: &str) -> String {
        format!(
            "{:.decimals$}{unit} ({:.decimals$} to {:.decimals$}; n {}, {:.1} %)",
            self.estimate,
            self.lower,
            self.upper,
            self.pairs,
            self.confidence * 100.0
        )
    }
}

pub(crate) fn median(values: &[f64]) -> f64 {
    fwdlab_stats::median(values).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn pairs(first: &[f64], second: &[f64]) -> Pairs {
        Pairs {
            first: first.to_vec(),
            second: second.to_vec(),
        }
    }

    #[test]
    fn neither_side_always_goes_first() {
        let order = RefCell::new(String::new());
        let side = |name: char| {
            let order = &order;
            move || {
                order.borrow_mut().push(name);
                Ok(1.0)
            }
        };
        let measured = Pairs::measure(4, side('a'), side('b'), |_, _, _| ()).unwrap();
        assert_eq!(*order.borrow(), "abbaabba");
        assert_eq!(measured.first.len(), 4);
    }

    #[test]
    fn a_common_drift_leaves_the_ratio_alone() {
        let second = [1.0, 2.0, 4.0, 3.0, 1.5, 2.5, 8.0, 0.5];
        let first = second.map(|rate| rate * 9.5);
        let ratio = pairs(&first, &second).ratio().unwrap();
        for value in [ratio.estimate, ratio.lower, ratio.upper] {
            assert!((value - 9.5).abs() < 1e-12, "{value}");
        }
        assert_eq!(ratio.at_least(9.0), Outcome::Met);
        assert_eq!(ratio.at_least(10.0), Outcome::Missed);
    }

    #[test]
    fn an_interval_that_holds_the_goal_leaves_it_open() {
        let first = [11.0, 9.0, 12.0, 8.0, 13.0, 7.0, 10.0, 10.0];
        let difference = pairs(&first, &[0.0; 8]).difference().unwrap();
        assert_eq!(difference.at_most(10.0), Outcome::Open);
        assert_eq!(difference.at_most(13.5), Outcome::Met);
        assert_eq!(difference.at_most(6.5), Outcome::Missed);
        assert_eq!(
            difference.written(1, " ns"),
            "10.0 ns (8.0 to 12.0; n 8, 96.1 %)"
        );
    }

    #[test]
    fn one_pair_is_refused() {
        assert!(pairs(&[1.0], &[1.0]).ratio().is_err());
    }
}
