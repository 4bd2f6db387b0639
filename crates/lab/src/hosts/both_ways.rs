//! Two testers of fwdlab's own that send against each other, so that frames go through the DUT in both directions.

use std::rc::Rc;

use fwdlab_model::{Hosts, Tester};
use fwdlab_stats::{as_f64, whole};

use super::load::{in_time, part_of, time_s};
use super::protocol::{Counted, Sent, SinkState, Station};
use super::ssh::Connection;
use super::tester::{Crossing, HostTester, OwnTester, listed};
use crate::LabError;

/// A tester for each direction.
pub(super) struct BothWays {
    there: OwnTester,
    back: OwnTester,
}

impl BothWays {
    /// Starts both; `connect` logs in on a host.
    ///
    /// # Errors
    /// As of [`OwnTester::start`].
    pub(super) fn start(
        hosts: &Hosts,
        connect: &mut dyn FnMut(&str) -> Result<Rc<Connection>, LabError>,
    ) -> Result<Self, LabError> {
        let there = OwnTester::start(hosts, connect)?;
        let back = OwnTester::start_reversed(&there, hosts, connect)?;
        Ok(Self { there, back })
    }

    fn each(&mut self) -> [&mut OwnTester; 2] {
        [&mut self.there, &mut self.back]
    }
}

impl HostTester for BothWays {
    fn cpus(&self) -> &[u32] {
        self.there.cpus()
    }

    fn sender(&self) -> Tester {
        self.there.sender()
    }

    fn refused(&self) -> &[(Tester, String)] {
        self.there.refused()
    }

    fn sees_flows(&self) -> bool {
        true
    }

    fn described(&self) -> Vec<(String, String)> {
        let mut all = self.there.described();
        let cpus = listed(self.back.cpus());
        all.push(("CPUs that send what goes back".to_owned(), cpus));
        all
    }

    fn stations(&mut self) -> Result<[Station; 2], LabError> {
        self.there.stations()
    }

    fn expect(&mut self, to: Crossing<'_>, every_frame: bool) -> Result<(), LabError> {
        let mut each = self.each().into_iter();
        each.try_for_each(|tester| tester.expect(to, every_frame))
    }

    /// One direction after the other: a flow is there before it is answered.
    fn probe(&mut self, to: Crossing<'_>) -> Result<(Sent, SinkState), LabError> {
        let (mut sent, mut seen) = self.there.probe(to)?;
        let (sent_back, seen_back) = self.back.probe(to)?;
        sent.add(sent_back);
        seen.add_other_flows(seen_back);
        Ok((sent, seen))
    }

    fn send(&mut self, to: Crossing<'_>, pps: Option<u64>) -> Result<(), LabError> {
        for (number, tester) in self.each().into_iter().enumerate() {
            tester.send(to, part_of(pps, number, 2))?;
        }
        Ok(())
    }

    fn measure(&mut self, settle_ms: u32, slice_ms: u32) -> Result<(Vec<Counted>, u64), LabError> {
        for tester in self.each() {
            tester.begin_measuring(settle_ms, slice_ms)?;
        }
        let (there, offered_there) = self.there.end_measuring(settle_ms, slice_ms)?;
        let (back, offered_back) = self.back.end_measuring(settle_ms, slice_ms)?;
        let offered_back = in_time(offered_back, time_s(&back), time_s(&there));
        Ok((together(&there, &back), offered_there + offered_back))
    }

    fn stop(&mut self) -> Result<Sent, LabError> {
        let mut all = self.there.stop()?;
        all.add(self.back.stop()?);
        Ok(all)
    }

    fn count(&mut self) -> Result<SinkState, LabError> {
        let mut all = self.there.count()?;
        all.add_other_flows(self.back.count()?);
        Ok(all)
    }

    fn release(&mut self) -> Result<(), LabError> {
        self.each().into_iter().try_for_each(OwnTester::release)
    }
}

/// What both sinks have counted, at the moments of the first: the other's is read by its own clock at moments that are
/// not quite the same, and lies on straight lines in between.
fn together(one: &[Counted], other: &[Counted]) -> Vec<Counted> {
    let sum = |counted: &Counted| Counted {
        at_s: counted.at_s,
        forwarded_frames: counted.forwarded_frames + at(other, counted.at_s),
    };
    one.iter().map(sum).collect()
}

/// How many frames there were at a moment; the line of the last two samples goes on behind them.
fn at(counted: &[Counted], at_s: f64) -> u64 {
    let behind = counted.iter().position(|sample| sample.at_s >= at_s);
    let last = behind.unwrap_or(counted.len() - 1).max(1);
    let (from, to) = (counted[last - 1], counted[last]);
    let part = (at_s - from.at_s) / (to.at_s - from.at_s);
    let frames = to.forwarded_frames - from.forwarded_frames;
    from.forwarded_frames + whole((as_f64(frames) * part).round()) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn samples(of: &[(f64, u64)]) -> Vec<Counted> {
        let of = of.iter().map(|&(at_s, forwarded_frames)| Counted {
            at_s,
            forwarded_frames,
        });
        of.collect()
    }

    #[test]
    fn counts_of_two_clocks_are_added_at_the_moments_of_the_first() {
        let one = samples(&[(0.0, 10), (0.1, 20), (0.25, 40)]);
        let other = samples(&[(0.0, 1000), (0.2, 1200)]);
        let all = samples(&[(0.0, 1010), (0.1, 1120), (0.25, 1290)]);
        assert_eq!(together(&one, &other), all);
    }

    proptest! {
        #[test]
        fn sums_never_fall(steps in prop::collection::vec((1_u32..1000, 0_u64..1_000_000, 1_u32..1000, 0_u64..1_000_000), 1..20)) {
            let (mut one, mut other) = (vec![(0.0, 7)], vec![(0.0, 0)]);
            for (ms, frames, other_ms, other_frames) in steps {
                let next = |(at, count): (f64, u64), ms: u32, frames| (at + f64::from(ms) / 1e3, count + frames);
                one.push(next(one[one.len() - 1], ms, frames));
                other.push(next(other[other.len() - 1], other_ms, other_frames));
            }
            let all = together(&samples(&one), &samples(&other));
            prop_assert_eq!(all.len(), one.len());
            prop_assert!(all.is_sorted_by_key(|sample| sample.forwarded_frames));
            prop_assert_eq!(all[0].forwarded_frames, 7);
        }
    }
}
