//! What the tester counted while a DUT was measured.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// What the tester counted in a slice, or in all slices of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TesterReading {
    /// Frames that it sent.
    pub offered_frames: u64,
    /// Frames that reached its sink.
    pub forwarded_frames: u64,
    /// Frames offered that its own port did not transmit: the DUT never saw them. In a lab of hosts from the start of each
    /// slice's load to its end, as the drops are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_transmitted_frames: u64,
}

impl AddAssign for TesterReading {
    fn add_assign(&mut self, other: Self) {
        self.offered_frames += other.offered_frames;
        self.forwarded_frames += other.forwarded_frames;
        self.not_transmitted_frames += other.not_transmitted_frames;
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
pub(crate) fn is_zero(frames: &u64) -> bool {
    *frames == 0
}
