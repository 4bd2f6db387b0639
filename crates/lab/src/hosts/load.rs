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
        self.counted[self.counted.len() - 1].at_s - self.counted[0].at_s
    }

    pub(super) fn offered_pps(&self) -> f64 {
        as_f64(self.offered_frames) / self.time_s()
    }

    pub(super) fn forwarded_pps(&self) -> f64 {
        let [first, last] = [0, self.counted.len() - 1].map(|of| self.counted[of].forwarded_frames);
        as_f64(last - first) / self.time_s()
    }
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
