//! A load that was sent, and what became of it.

use std::time::Instant;

use super::protocol::Counted;
use super::tester::Sent;
use crate::block::as_f64;
use crate::counters::Drops;

/// What became of a load.
pub(super) struct Load {
    pub(super) started: Instant,
    /// At the sink, at least two.
    pub(super) counted: Vec<Counted>,
    /// From the first to the last of them.
    pub(super) offered_frames: u64,
    /// From its start to its end.
    pub(super) sent: Sent,
    /// From its start to its end, by reason.
    pub(super) dropped: Drops,
}

impl Load {
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

    pub(super) fn forwarded_pps(&self) -> f64 {
        let [first, last] = [0, self.counted.len() - 1].map(|of| self.counted[of].forwarded_frames);
        as_f64(last - first) / self.time_s()
    }
}

/// From the first of some samples to the last, in seconds.
pub(super) fn time_s(counted: &[Counted]) -> f64 {
    counted[counted.len() - 1].at_s - counted[0].at_s
}

/// How many frames there would have been in another time, at the same rate.
pub(super) fn in_time(frames: u64, time_s: f64, other_s: f64) -> u64 {
    if time_s <= 0.0 {
        return frames;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of frames, not below 0"
    )]
    let frames = (as_f64(frames) * (other_s / time_s)).round() as u64;
    frames
}

/// What became of all the loads of a family in a block.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) offered_frames: u64,
    pub(super) dropped: Drops,
    /// Why a generator had stopped by itself.
    pub(super) failed: Option<String>,
}

impl Sums {
    pub(super) fn add(&mut self, sent: &Sent, dropped: &Drops) {
        self.offered_frames += sent.offered_frames;
        for (reason, frames) in dropped {
            *self.dropped.entry(reason.clone()).or_default() += frames;
        }
        if self.failed.is_none() {
            self.failed.clone_from(&sent.failed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_another_time_are_in_proportion() {
        assert_eq!(in_time(1000, 0.2, 0.2), 1000);
        assert_eq!(in_time(1000, 0.25, 0.2), 800);
        assert_eq!(in_time(0, 0.25, 0.2), 0);
        // Two looks in the same moment tell no rate.
        assert_eq!(in_time(7, 0.0, 0.2), 7);
    }
}
