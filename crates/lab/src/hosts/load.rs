//! A load that was sent, and what became of it.

use std::collections::BTreeSet;
use std::time::Duration;

use fwdlab_stats::as_f64;
use fwdlab_sys::BootTime;

use super::protocol::{Counted, Sent};
use crate::counters::Drops;

/// How long counters of a host may be behind: the drivers of some ports read their cards every two seconds.
pub(super) const COUNTERS_LATE_MAX: Duration = Duration::from_millis(2500);
/// How often they are read until then.
pub(super) const BETWEEN_LOOKS: Duration = Duration::from_millis(250);

/// Under which frames are counted that the DUT's end of a virtual cable did not take from the tester's.
const NOT_TAKEN: &str = "not taken by the DUT's port";

/// The part of the frames offered that may be missing for counters to be taken for complete.
const DROPS_MISSING_RATIO: f64 = 1e-4;

/// What became of a load.
pub(super) struct SentLoad {
    pub(super) started: BootTime,
    /// At the sink, at least two.
    pub(super) counted: Vec<Counted>,
    /// From the first to the last of them.
    pub(super) offered_frames: u64,
    /// From its start to its end.
    pub(super) sent: Sent,
    /// Frames offered that a port of a card did not transmit, from its start to its end.
    pub(super) not_transmitted_frames: u64,
    /// From its start to its end, by reason.
    pub(super) dropped: Drops,
    /// The DUT's ports whose link was lost meanwhile.
    pub(super) links_lost: BTreeSet<String>,
}

impl SentLoad {
    pub(super) fn time_s(&self) -> f64 {
        time_s(&self.counted)
    }

    fn offered_pps(&self) -> f64 {
        as_f64(self.offered_frames) / self.time_s()
    }

    /// What left the tester: of loads as a whole it is known which part that was.
    pub(super) fn transmitted_pps(&self) -> f64 {
        let part = as_f64(self.sent.transmitted_frames) / as_f64(self.sent.offered_frames.max(1));
        self.offered_pps() * part
    }

    /// Frames that the DUT took in while they were counted: what was not transmitted is known of the load as a whole.
    pub(super) fn taken_frames(&self) -> u64 {
        let (load, counted) = (self.sent.offered_frames, self.offered_frames);
        let not_taken = in_proportion(self.not_transmitted_frames, as_f64(load), as_f64(counted));
        counted.saturating_sub(not_taken)
    }

    pub(super) fn forwarded_pps(&self) -> f64 {
        let [first, last] = [0, self.counted.len() - 1].map(|of| self.counted[of].forwarded_frames);
        as_f64(last - first) / self.time_s()
    }
}

/// The part of a load, in packets a second, that one of some ports sends, counted from 0; what does not divide is the
/// first's.
pub(super) fn part_of(pps: Option<u64>, port: usize, ports: usize) -> Option<u64> {
    let ports = ports as u64;
    let rest = |pps: u64| if port == 0 { pps % ports } else { 0 };
    pps.map(|pps| pps / ports + rest(pps))
}

/// From the first of some samples to the last, in seconds.
pub(super) fn time_s(counted: &[Counted]) -> f64 {
    counted[counted.len() - 1].at_s - counted[0].at_s
}

/// How many frames there would have been in another time, at the same rate.
pub(super) fn in_time(frames: u64, time_s: f64, other_s: f64) -> u64 {
    in_proportion(frames, time_s, other_s)
}

/// Scales a count of frames from one total to another; the same count where the first total is 0.
fn in_proportion(frames: u64, whole: f64, other: f64) -> u64 {
    if whole <= 0.0 {
        return frames;
    }
    fwdlab_stats::whole((as_f64(frames) * (other / whole)).round()) as u64
}

/// Whether what was dropped tells of all frames that were lost of so many.
pub(super) fn explain(dropped: &Drops, lost: u64, offered: u64) -> bool {
    let missing = lost.saturating_sub(dropped.values().sum());
    as_f64(missing) <= DROPS_MISSING_RATIO * as_f64(offered)
}

/// Frames that were offered and that the tester's card did not transmit: the tester was the limit.
///
/// On a virtual cable a full port of the DUT is the cause, so that they are added to what was dropped, less those that the
/// DUT counted itself under these reasons.
pub(super) fn account_for_not_sent(
    dropped: &mut Drops,
    sent: &Sent,
    counted_twice: Option<&[String]>,
) -> u64 {
    let not_sent = sent.offered_frames.saturating_sub(sent.transmitted_frames);
    let Some(reasons) = counted_twice else {
        return not_sent;
    };
    let counted = reasons.iter().filter_map(|reason| dropped.get(reason));
    let not_taken = not_sent.saturating_sub(counted.sum());
    if not_taken > 0 {
        dropped.insert(NOT_TAKEN.to_owned(), not_taken);
    }
    0
}

/// What became of all the loads of a family in a block.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) offered_frames: u64,
    pub(super) not_transmitted_frames: u64,
    pub(super) dropped: Drops,
    /// Why a generator had stopped by itself.
    pub(super) failed: Option<String>,
}

impl Sums {
    pub(super) fn add(&mut self, load: &SentLoad) {
        self.offered_frames += load.sent.offered_frames;
        self.not_transmitted_frames += load.not_transmitted_frames;
        for (reason, frames) in &load.dropped {
            *self.dropped.entry(reason.clone()).or_default() += frames;
        }
        if self.failed.is_none() {
            self.failed.clone_from(&load.sent.failed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drops<const N: usize>(of: [(&str, u64); N]) -> Drops {
        Drops::from(of.map(|(reason, frames)| (reason.to_owned(), frames)))
    }

    #[test]
    fn counters_are_complete_where_they_account_for_almost_all_that_was_lost() {
        let some = drops([("eth1 rx_missed_errors", 900), ("Ip.InDiscards", 95)]);
        assert!(explain(&some, 995, 1000));
        // Others' frames are dropped, too.
        assert!(explain(&some, 10, 1000));
        assert!(!explain(&some, 1000, 1000));
        assert!(explain(&some, 1000, 100_000));
        assert!(explain(&Drops::new(), 0, 0));
    }

    #[test]
    fn a_frame_that_a_port_did_not_take_is_the_testers_or_the_duts() {
        let sent = Sent {
            offered_frames: 1000,
            transmitted_frames: 700,
            failed: None,
        };
        let seen = [("eth1 rx_dropped", 100), ("eth2 tx_dropped", 5)];
        let mut of_card = drops(seen);
        assert_eq!(account_for_not_sent(&mut of_card, &sent, None), 300);
        assert_eq!(of_card, drops(seen));
        // Both ends of a virtual cable have counted 100 of them.
        let twice = ["eth1 rx_dropped".to_owned()];
        let mut of_veth = drops(seen);
        assert_eq!(account_for_not_sent(&mut of_veth, &sent, Some(&twice)), 0);
        assert_eq!(of_veth, drops([seen[0], seen[1], (NOT_TAKEN, 200)]));
        let mut all = drops([("eth1 rx_dropped", 400)]);
        account_for_not_sent(&mut all, &sent, Some(&twice));
        assert_eq!(all, drops([("eth1 rx_dropped", 400)]));
    }

    #[test]
    fn what_was_not_transmitted_is_the_same_part_of_the_time_that_was_counted() {
        let load = |not_transmitted_frames| SentLoad {
            started: BootTime::now(),
            counted: Vec::new(),
            offered_frames: 1000,
            sent: Sent {
                offered_frames: 3000,
                ..Sent::default()
            },
            not_transmitted_frames,
            dropped: Drops::new(),
            links_lost: BTreeSet::new(),
        };
        assert_eq!(load(0).taken_frames(), 1000);
        assert_eq!(load(300).taken_frames(), 900);
        assert_eq!(load(3000).taken_frames(), 0);
    }

    #[test]
    fn ports_share_a_load_whole() {
        let parts = |pps| [0, 1, 2].map(|port| part_of(Some(pps), port, 3));
        assert_eq!(parts(1_000_001), [333_335, 333_333, 333_333].map(Some));
        assert_eq!(parts(2), [2, 0, 0].map(Some));
        assert_eq!(part_of(Some(7), 0, 1), Some(7));
        assert_eq!(part_of(None, 1, 2), None);
    }

    #[test]
    fn frames_of_another_time_are_in_proportion() {
        assert_eq!(in_time(1000, 0.2, 0.2), 1000);
        assert_eq!(in_time(1000, 0.25, 0.2), 800);
        assert_eq!(in_time(0, 0.25, 0.2), 0);
        // Two looks in the same moment tell no rate.
        assert_eq!(in_time(7, 0.0, 0.2), 7);
    }
}
