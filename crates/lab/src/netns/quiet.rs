//! Standing still: while an XDP program is attached or detached, no frame is under way to it.
//!
//! Linux takes a veth's receive queue apart while its polls go on (docs/reliability.md), so a program
//! that changes under load can end the whole machine.

use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::Direction;
use fwdlab_traffic::{Receivers, RunningSender};

use crate::{LabError, Topology};

/// How long frames may take to arrive after the last one was sent: a virtual machine's CPU may be away
/// for seconds.
const ARRIVAL_TIME_MAX: Duration = Duration::from_secs(10);

/// How often the counters are looked at meanwhile.
const STEP: Duration = Duration::from_micros(500);

/// A load that can be held.
pub(super) struct RunningLoad {
    pub(super) sender: RunningSender,
    direction: Direction,
    /// What the DUT's receiving interfaces had received or dropped before the first frame.
    arrived_before: u64,
    /// How many looks have to find that no more frames came out.
    still_looks: u32,
}

impl RunningLoad {
    /// A load that `start` starts, held. No more frames are under way where so many looks find that none came out: one does
    /// where the kernel forwards, and a forwarder in user space may be off its CPU for some time.
    pub(super) fn start(
        topology: &mut Topology,
        direction: Direction,
        still_looks: u32,
        start: impl FnOnce() -> Result<RunningSender, LabError>,
    ) -> Result<Self, LabError> {
        let arrived_before = topology.arrived_frames(direction)?;
        Ok(Self {
            sender: start()?,
            direction,
            arrived_before,
            still_looks,
        })
    }

    /// Holds the load until all of its frames have arrived, and none comes out of the DUT any more.
    ///
    /// # Errors
    /// After a bounded time, `UnderWay` when frames have not arrived, and `StillSends` when more come out; the load is released
    /// then.
    pub(super) fn hold(&self, topology: &mut Topology, sink: &Receivers) -> Result<(), LabError> {
        self.sender.hold()?;
        let quiet = self.await_quiet(topology, sink);
        if quiet.is_err() {
            self.sender.release();
        }
        quiet
    }

    fn await_quiet(&self, topology: &mut Topology, sink: &Receivers) -> Result<(), LabError> {
        if matches!(self.sender, RunningSender::Socket(_)) {
            return Ok(());
        }
        let offered = self.sender.offered_frames()?;
        let deadline = Instant::now() + ARRIVAL_TIME_MAX;
        let mut forwarded = None;
        let mut still_looks = 0;
        loop {
            // A veth counts the frames of a poll after the program has run for the last of them.
            let arrived = topology.arrived_frames(self.direction)? - self.arrived_before;
            let forwarded_before = forwarded.replace(sink.forwarded_frames()?);
            still_looks = if forwarded == forwarded_before {
                still_looks + 1
            } else {
                0
            };
            if arrived >= offered && still_looks >= self.still_looks {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(not_quiet(offered, arrived));
            }
            sleep(STEP);
        }
    }
}

/// Why frames are under way for too long, of which so many were offered and have arrived.
fn not_quiet(offered: u64, arrived: u64) -> LabError {
    let seconds = ARRIVAL_TIME_MAX.as_secs();
    match offered.saturating_sub(arrived) {
        0 => LabError::StillSends { seconds },
        frames => LabError::UnderWay { frames, seconds },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_come_out_for_too_long_are_not_said_to_be_missing() {
        let text = |offered, arrived| not_quiet(offered, arrived).to_string();
        let missing = text(10, 7);
        assert!(missing.starts_with("3 frames were still on"), "{missing}");
        let late = text(10, 10);
        assert!(late.starts_with("the DUT still sent frames"), "{late}");
    }
}
