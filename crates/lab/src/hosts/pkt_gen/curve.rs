//! What a pkt-gen has sent or received by when, made of its reports.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use fwdlab_pkt_gen::Sample;

use crate::hosts::protocol::Counted;

/// So many of the last reports say when the first interval began: what came late is told from what did not, and
/// clocks that run apart a little do no harm.
const ARRIVALS: usize = 16;

/// A report of no more packets than this is one of a port at rest: what others send now and then, as a switch or
/// a neighbour does, is no load.
const QUIET_PACKETS: u64 = 50;

/// Packets in all at the end of each report's interval.
///
/// Intervals follow each other without a gap, so that their sum is the time by the clock of the host. When that
/// was by the clock here is known from when reports came: none comes before its interval has ended.
#[derive(Debug)]
pub(super) struct Curve {
    edges: Vec<Edge>,
    arrivals: VecDeque<(Instant, Duration)>,
}

/// The end of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Edge {
    elapsed: Duration,
    packets: u64,
}

/// A stretch of whole reports.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) begin: Instant,
    pub(super) end: Instant,
    pub(super) counted: Vec<Counted>,
}

impl Default for Curve {
    fn default() -> Self {
        Self {
            edges: vec![Edge::default()],
            arrivals: VecDeque::new(),
        }
    }
}

impl Curve {
    /// Takes the next report, which came at a moment.
    pub(super) fn add(&mut self, sample: &Sample, at: Instant) {
        let last = self.last();
        let edge = Edge {
            elapsed: last.elapsed + Duration::from_micros(sample.interval_us),
            packets: last.packets + sample.packets,
        };
        self.edges.push(edge);
        self.arrivals.push_back((at, edge.elapsed));
        if self.arrivals.len() > ARRIVALS {
            self.arrivals.pop_front();
        }
    }

    fn last(&self) -> Edge {
        self.edges[self.edges.len() - 1]
    }

    /// Packets in all.
    pub(super) fn total(&self) -> u64 {
        self.last().packets
    }

    /// How many reports there were.
    pub(super) fn reports(&self) -> usize {
        self.edges.len() - 1
    }

    /// Whether since a number of reports two more have come, and the last two are those of a port at rest.
    pub(super) fn is_quiet_since(&self, reports: usize) -> bool {
        self.reports() >= reports + 2
            && self.edges[self.edges.len() - 3..]
                .windows(2)
                .all(|pair| pair[1].packets - pair[0].packets <= QUIET_PACKETS)
    }

    /// When the first interval began, by the clock here.
    fn origin(&self) -> Option<Instant> {
        let origins = self.arrivals.iter();
        origins
            .filter_map(|&(at, elapsed)| at.checked_sub(elapsed))
            .min()
    }

    /// When the last interval ended.
    pub(super) fn end(&self) -> Option<Instant> {
        Some(self.origin()? + self.last().elapsed)
    }

    /// Packets between two moments, as if those of an interval had come evenly; none where the reports do not
    /// reach so far.
    pub(super) fn packets_between(&self, from: Instant, to: Instant) -> Option<f64> {
        let origin = self.origin()?;
        Some(self.packets_at(to, origin)? - self.packets_at(from, origin)?)
    }

    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    fn packets_at(&self, moment: Instant, origin: Instant) -> Option<f64> {
        let elapsed = moment.saturating_duration_since(origin);
        let index = self.edges.partition_point(|edge| edge.elapsed < elapsed);
        let after = self.edges.get(index)?;
        let Some(before) = index.checked_sub(1).map(|index| self.edges[index]) else {
            return Some(0.0);
        };
        let length_s = (after.elapsed - before.elapsed).as_secs_f64();
        let part = (elapsed - before.elapsed).as_secs_f64() / length_s;
        Some(before.packets as f64 + part * (after.packets - before.packets) as f64)
    }

    /// The first reports behind a moment that are as long as asked for: from the first whole interval with packets
    /// on. None where they have not come yet.
    pub(super) fn window(&self, settled: Instant, length: Duration) -> Option<Window> {
        let origin = self.origin()?;
        let first = self.edges.windows(2).position(|pair| {
            origin + pair[0].elapsed >= settled && pair[1].packets > pair[0].packets
        })?;
        let begin = self.edges[first];
        let last = self.edges[first..]
            .iter()
            .position(|edge| edge.elapsed - begin.elapsed >= length)?;
        let edges = &self.edges[first..=first + last.max(1)];
        let counted = edges.iter().map(|edge| Counted {
            at_s: (edge.elapsed - begin.elapsed).as_secs_f64(),
            forwarded_frames: edge.packets,
        });
        Some(Window {
            begin: origin + begin.elapsed,
            end: origin + edges[edges.len() - 1].elapsed,
            counted: counted.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use fwdlab_pkt_gen::LogReader;
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn sample(packets: u64, interval_us: u64) -> Sample {
        Sample {
            line: 1,
            end_us: 0,
            packets,
            interval_us,
            printed_pps: 0,
            details: None,
        }
    }

    /// Reports of intervals, each delayed on its way.
    fn curve(start: Instant, reports: &[(u64, u64, u64)]) -> Curve {
        let mut curve = Curve::default();
        let mut at = start;
        for &(packets, interval_us, delay_us) in reports {
            at += Duration::from_micros(interval_us);
            curve.add(
                &sample(packets, interval_us),
                at + Duration::from_micros(delay_us),
            );
        }
        curve
    }

    /// What both families of pkt-gen print, as it was recorded.
    const RECORDED: [&str; 2] = [
        "\
992.788404 main [2044] Ready...
992.788525 receiver_body [1282] reading from netmap:igb2 fd 4 main_fd 3
993.790400 main_thread [1550] 739193 pps (740588 pkts in 1001887 usec)
994.791410 main_thread [1550] 735920 pps (736663 pkts in 1001010 usec)
995.793366 main_thread [1550] 730472 pps (731901 pkts in 1001956 usec)
996.793401 main_thread [1550] 727261 pps (727286 pkts in 1000035 usec)
997.794398 main_thread [1550] 725625 pps (726348 pkts in 1000997 usec)
",
        "\
052.993481 receiver_body [1744] reading from netmap:igb3 fd 3 main_fd 3
053.993541 main_thread [2514] 0 pps (0 pkts 0 bps in 1000066 usec) 0.00 avg_batch 0 min_space
053.994542 receiver_body [1759] waiting for initial packets, poll returns 0 0
247.487151 main_thread [2687] 26439735 pps (28116596 pkts 13114107175 bps in 1063422 usec) 43.92 avg_batch 0 min_space
248.523588 main_thread [2687] 27446817 pps (28446897 pkts 13613620942 bps in 1036437 usec) 44.37 avg_batch 888 min_space
249.587086 main_thread [2687] 27489394 pps (29234916 pkts 13634739097 bps in 1063498 usec) 44.40 avg_batch 870 min_space
250.650085 main_thread [2687] 27558050 pps (29294152 pkts 13668792212 bps in 1062998 usec) 44.45 avg_batch 896 min_space
",
    ];

    #[test]
    fn recorded_reports_become_a_window_of_whole_ones() {
        let start = Instant::now();
        for (log, packets) in RECORDED.into_iter().zip([
            [736_663, 731_901, 727_286],
            [28_446_897, 29_234_916, 29_294_152],
        ]) {
            let mut reader = LogReader::default();
            let (mut curve, mut at) = (Curve::default(), start);
            for line in log.lines() {
                let before = reader.samples().len();
                reader.read(line).unwrap();
                if let Some(sample) = reader.samples().get(before) {
                    at += Duration::from_micros(sample.interval_us);
                    curve.add(sample, at);
                }
            }
            // The first interval with packets had begun before.
            let settled =
                start + Duration::from_millis(if packets[0] < 1_000_000 { 500 } else { 1500 });
            let window = curve.window(settled, 3 * SECOND).unwrap();
            let counts: Vec<u64> = window
                .counted
                .windows(2)
                .map(|pair| pair[1].forwarded_frames - pair[0].forwarded_frames)
                .collect();
            assert_eq!(counts, packets);
            assert!(window.counted[3].at_s >= 3.0);
            assert!(curve.window(settled, 9 * SECOND).is_none());
        }
    }

    #[test]
    fn a_window_begins_with_packets_and_keeps_what_stalls() {
        let start = Instant::now();
        let second = 1_000_000;
        let curve = curve(
            start,
            &[
                (0, second, 0),
                (7, second, 0),
                (0, second, 0),
                (5, second, 0),
            ],
        );
        let window = curve.window(start, 3 * SECOND).unwrap();
        assert_eq!(window.begin, start + SECOND);
        let frames: Vec<u64> = window
            .counted
            .iter()
            .map(|at| at.forwarded_frames)
            .collect();
        assert_eq!(frames, [0, 7, 7, 12]);
        assert!(curve.window(start + 4 * SECOND, SECOND).is_none());
        assert!(curve.is_quiet_since(2) && !curve.is_quiet_since(3));
    }

    proptest! {
        #[test]
        fn nothing_is_counted_twice_or_lost(
            reports in prop::collection::vec((0_u64..40_000_000, 900_000_u64..1_100_000, 0_u64..700_000), 1..40),
        ) {
            let start = Instant::now();
            let curve = curve(start, &reports);
            prop_assert_eq!(curve.total(), reports.iter().map(|report| report.0).sum::<u64>());
            prop_assert_eq!(curve.reports(), reports.len());
            let end = curve.end().unwrap();
            let origin = curve.origin().unwrap();
            let all = curve.packets_between(origin, end).unwrap();
            prop_assert!((all - curve.total() as f64).abs() < 1e-3);
            let middle = origin + (end - origin) / 2;
            let halves = curve.packets_between(origin, middle).unwrap()
                + curve.packets_between(middle, end).unwrap();
            prop_assert!((halves - all).abs() < 1e-3);
            prop_assert!(curve.packets_between(origin, end + SECOND).is_none());
        }

        #[test]
        fn a_steady_load_is_offered_at_its_rate_however_late_reports_are(
            late in prop::collection::vec(0_u64..700_000, 8..20), settle_ms in 0_u64..2000,
        ) {
            let start = Instant::now();
            let mut reports: Vec<_> = late.iter().map(|&late_us| (100_000, 1_000_000, late_us)).collect();
            reports[0].2 = 0;
            let sender = curve(start, &reports);
            let receiver = curve(start + Duration::from_millis(300), &reports);
            let settled = start + Duration::from_millis(300 + settle_ms);
            let window = receiver.window(settled, 3 * SECOND).unwrap();
            prop_assert_eq!(window.end - window.begin, 3 * SECOND);
            let offered = sender.packets_between(window.begin, window.end).unwrap();
            prop_assert!((offered - 300_000.0).abs() < 1.0, "{}", offered);
        }
    }
}
