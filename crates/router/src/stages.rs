//! Where a worker's time goes.

use fwdlab_sys::cycle_counter;

/// What a worker does with a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Full buffers out of the receive ring, empty ones in.
    Receive,
    /// Whose frames they are, and whether their IP headers are as they should be.
    Input,
    /// The forwarding table.
    Lookup,
    /// Link header, TTL or hop limit, checksum.
    Rewrite,
    /// Through the ring of many producers, or under the lock, into the descriptors.
    Transmit,
    /// Sent buffers back to the pool.
    Reclaim,
    /// The slow path, the transmit tasks, and publishing the counters.
    Rest,
}

impl Stage {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::Receive,
        Self::Input,
        Self::Lookup,
        Self::Rewrite,
        Self::Transmit,
        Self::Reclaim,
        Self::Rest,
    ];

    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Receive => "receive",
            Self::Input => "input",
            Self::Lookup => "lookup",
            Self::Rewrite => "rewrite",
            Self::Transmit => "transmit",
            Self::Reclaim => "reclaim",
            Self::Rest => "rest",
        }
    }
}

/// Whoever is told when a stage is over.
pub(crate) trait Laps {
    /// What was done since the last lap was this.
    fn lap(&mut self, stage: Stage);
}

/// Nobody: it costs nothing.
impl Laps for () {
    #[inline(always)]
    fn lap(&mut self, _stage: Stage) {}
}

/// The time that stages took.
#[derive(Clone, Debug)]
pub struct StageTicks {
    ticks: [u64; Stage::ALL.len()],
    last: u64,
}

impl StageTicks {
    /// None so far; the first stage begins now.
    #[must_use]
    pub fn start() -> Self {
        Self {
            ticks: [0; Stage::ALL.len()],
            last: cycle_counter(),
        }
    }

    /// The time of a stage.
    ///
    /// Units: those of [`cycle_counter`].
    #[must_use]
    pub fn of(&self, stage: Stage) -> u64 {
        self.ticks[stage as usize]
    }
}

impl Laps for StageTicks {
    #[inline]
    fn lap(&mut self, stage: Stage) {
        let now = cycle_counter();
        self.ticks[stage as usize] += now.wrapping_sub(self.last);
        self.last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_lost_between_stages() {
        let mut ticks = StageTicks::start();
        let start = ticks.last;
        for &stage in Stage::ALL {
            ticks.lap(stage);
        }
        let sum: u64 = Stage::ALL.iter().map(|&stage| ticks.of(stage)).sum();
        assert_eq!(sum, ticks.last - start);
    }
}
