//! Flows of which some are heavy: how many of the frames each of them has.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::document::{Reading, Value};
use crate::resolved::Traffic;

/// Frames after which an order of Zipf-distributed flows repeats.
///
/// So many that each of 65536 flows comes at an exponent of 1, and a prime number, so that each place in the order
/// meets every frame size.
pub const SCHEDULE_FRAMES: u32 = 1_048_573;

/// Below, all flows are about alike; above, one flow has 99.9 % of the frames.
pub(crate) const ZIPF_EXPONENT: RangeInclusive<f64> = 0.01..=10.0;

/// The exponent of a Zipf distribution: the flow of rank k is sent in proportion to k to the power of -exponent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Zipf(f64);

/// A number that is no exponent of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a Zipf exponent from {} to {}; without one, every flow is sent in its turn",
    ZIPF_EXPONENT.start(),
    ZIPF_EXPONENT.end()
)]
pub struct ZipfError;

impl TryFrom<f64> for Zipf {
    type Error = ZipfError;

    fn try_from(exponent: f64) -> Result<Self, ZipfError> {
        if ZIPF_EXPONENT.contains(&exponent) {
            Ok(Self(exponent))
        } else {
            Err(ZipfError)
        }
    }
}

impl From<Zipf> for f64 {
    fn from(zipf: Zipf) -> Self {
        zipf.0
    }
}

impl FromStr for Zipf {
    type Err = ZipfError;

    fn from_str(text: &str) -> Result<Self, ZipfError> {
        text.parse::<f64>().map_err(|_| ZipfError)?.try_into()
    }
}

impl fmt::Display for Zipf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Zipf {
    pub(crate) fn read(reading: &mut Reading<'_>, value: &Value<'_>, what: &str) -> Option<Self> {
        reading.number(value, what, ZIPF_EXPONENT).map(Self)
    }

    /// How many of [`SCHEDULE_FRAMES`] each of so many flows has, the heaviest first: within one of what the
    /// distribution says, so that a flow with less than one may have none.
    ///
    /// # Panics
    /// Where there are no flows.
    #[must_use]
    pub fn frames_by_rank(self, flows: u32) -> Vec<u32> {
        assert!(flows > 0, "no flows to share frames");
        let weights = (1..=flows).map(|rank| f64::from(rank).powf(-self.0));
        let up_to: Vec<f64> = weights
            .scan(0.0, |sum, weight| {
                *sum += weight;
                Some(*sum)
            })
            .collect();
        let all = up_to[up_to.len() - 1];
        let mut before = 0;
        // Rounding the sums rather than the parts has the parts add up, and lets light flows come in equal steps.
        let parts = up_to.into_iter().map(|sum| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a whole number of frames, up to all of them"
            )]
            let frames = (sum / all * f64::from(SCHEDULE_FRAMES)).round() as u32;
            frames - std::mem::replace(&mut before, frames)
        });
        parts.collect()
    }
}

/// What the heaviest of some flows have of the frames.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowShares {
    /// Percent of the frames that are of the heaviest flow.
    pub heaviest_flow_percent: f64,
    /// Percent that are of the heaviest hundredth of the flows, of one flow at least.
    pub heaviest_hundredth_percent: f64,
    /// Flows that are sent at all: others have less than one of [`SCHEDULE_FRAMES`].
    pub flows_sent: u32,
}

impl Traffic {
    /// What the heaviest flows have of the frames, where flows are not sent in turn.
    #[must_use]
    pub fn flow_shares(&self) -> Option<FlowShares> {
        let mut frames = self.zipf?.frames_by_rank(self.flows());
        frames.sort_unstable_by(|one, other| other.cmp(one));
        let percent = |flows: usize| {
            let sum: u32 = frames[..flows].iter().sum();
            f64::from(sum) / f64::from(SCHEDULE_FRAMES) * 100.0
        };
        let flows_sent = frames.iter().filter(|frames| **frames > 0).count();
        Some(FlowShares {
            heaviest_flow_percent: percent(1),
            heaviest_hundredth_percent: percent(frames.len().div_ceil(100)),
            flows_sent: u32::try_from(flows_sent).expect("flows are counted in 32 bits"),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::traffic::FLOWS_MAX;

    fn zipf(exponent: f64) -> Zipf {
        Zipf::try_from(exponent).unwrap()
    }

    fn shares(exponent: f64, sources: u32, destinations: u32) -> FlowShares {
        let traffic = Traffic {
            sources,
            destinations,
            zipf: Some(zipf(exponent)),
            ..Traffic::default()
        };
        traffic.flow_shares().unwrap()
    }

    #[test]
    fn what_is_no_exponent_is_refused() {
        for wrong in ["0", "-1", "0.001", "10.1", "nan", "inf", "-inf", "", "one"] {
            let error = wrong.parse::<Zipf>().unwrap_err();
            assert_eq!(
                error.to_string(),
                "expected a Zipf exponent from 0.01 to 10; without one, every flow is sent in its turn",
                "{wrong}"
            );
        }
        for wrong in ["0.0", "-1.5", "11", "null", "\"1\""] {
            assert!(serde_json::from_str::<Zipf>(wrong).is_err(), "{wrong}");
        }
        assert_eq!("1.1".parse(), Ok(zipf(1.1)));
        assert_eq!(serde_json::from_str::<Zipf>("1").unwrap(), zipf(1.0));
        assert_eq!(serde_json::to_string(&zipf(1.1)).unwrap(), "1.1");
    }

    /// Harmonic numbers that are known: H(3) = 11/6, H(10) = 7381/2520, and zeta(2) = pi^2/6 for many flows.
    #[test]
    fn shares_are_those_of_the_distribution() {
        assert_eq!(zipf(2.0).frames_by_rank(1), [SCHEDULE_FRAMES]);
        let all = f64::from(SCHEDULE_FRAMES);
        for (frames, eleventh) in zipf(1.0).frames_by_rank(3).into_iter().zip([6.0, 3.0, 2.0]) {
            assert!((f64::from(frames) - all * eleventh / 11.0).abs() <= 1.0);
        }
        let ten = shares(1.0, 2, 5);
        assert!((ten.heaviest_flow_percent - 252_000.0 / 7381.0).abs() < 0.001);
        assert!((ten.heaviest_hundredth_percent - ten.heaviest_flow_percent).abs() < 1e-9);
        assert_eq!(ten.flows_sent, 10);
        let many = shares(2.0, 256, 256);
        let expected = 600.0 / std::f64::consts::PI.powi(2);
        assert!((many.heaviest_flow_percent - expected).abs() < 0.01);
        assert!(many.flows_sent < 65_536);
        // Nearly alike: a hundredth of the flows has about a hundredth of the frames.
        let even = shares(0.01, 20, 100);
        assert!((1.0..1.06).contains(&even.heaviest_hundredth_percent));
        assert_eq!(even.flows_sent, 2000);
        assert!(Traffic::default().flow_shares().is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn every_flow_has_its_part_to_within_one_frame(
            flows in 1..=FLOWS_MAX, exponent in ZIPF_EXPONENT,
        ) {
            let frames = zipf(exponent).frames_by_rank(flows);
            prop_assert_eq!(frames.len(), flows as usize);
            prop_assert_eq!(frames.iter().sum::<u32>(), SCHEDULE_FRAMES);
            // Added up from the lightest on, as the code does not.
            let weight = |rank: u32| f64::from(rank).powf(-exponent);
            let all: f64 = (1..=flows).rev().map(weight).sum();
            for (rank, frames) in (1..).zip(frames) {
                let exact = weight(rank) / all * f64::from(SCHEDULE_FRAMES);
                prop_assert!((f64::from(frames) - exact).abs() <= 1.001, "{rank}: {frames}, {exact}");
            }
        }
    }
}
