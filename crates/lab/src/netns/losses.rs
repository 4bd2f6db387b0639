//! Frames that a forwarder in user space loses, which nothing counts.

/// Those of all forwarders of a stratum so far.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// How many frames were inside the DUT at the last look; none while its kernel forwards.
    inside: Option<i64>,
    frames: u64,
}

impl Losses {
    /// A forwarder begins, with so many frames inside the DUT by its counters.
    pub(super) fn begin(&mut self, inside: i64) {
        self.inside = Some(inside);
    }

    /// So many frames are inside, where none is under way: what has become more since the last look is lost.
    pub(super) fn look(&mut self, inside: i64) {
        if let Some(before) = self.inside {
            // More that came out than went in are no loss, and stay unaccounted for.
            self.frames += u64::try_from(inside - before).unwrap_or(0);
            self.inside = Some(inside);
        }
    }

    /// The forwarder has ended.
    pub(super) fn end(&mut self) {
        self.inside = None;
    }

    /// Whether a forwarder runs.
    pub(super) fn are_looked_for(&self) -> bool {
        self.inside.is_some()
    }

    /// How many were lost so far.
    pub(super) fn frames(&self) -> u64 {
        self.frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_in_and_did_not_come_out_is_lost_while_a_forwarder_runs() {
        let mut losses = Losses::default();
        losses.look(1000);
        assert_eq!(losses.frames(), 0);
        losses.begin(-4);
        losses.look(-4);
        losses.look(96);
        assert_eq!(losses.frames(), 100);
        // Frames sent twice.
        losses.look(90);
        losses.look(91);
        assert_eq!(losses.frames(), 101);
        losses.end();
        losses.look(5000);
        assert_eq!(losses.frames(), 101);
        losses.begin(5000);
        losses.look(5003);
        assert_eq!(losses.frames(), 104);
    }
}
