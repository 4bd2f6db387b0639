//! When frames are due, for senders that ask a clock.

use std::time::Duration;

use crate::Pace;

/// A sender that fell behind by more than this does not make up for it: a burst of that length would
/// no longer be the load that was asked for.
const BACKLOG_MAX: Duration = Duration::from_millis(20);

/// Says how many frames are due; told the time, so that it needs no clock of its own.
#[derive(Debug)]
pub(crate) struct Pacer {
    pace: Pace,
    sent_frames: u64,
    /// From when on the frames are counted.
    start: Duration,
}

impl Pacer {
    /// A pacer that starts at a time; the first frame is due at once.
    pub(crate) fn new(pace: Pace, now: Duration) -> Self {
        Self {
            pace,
            sent_frames: 0,
            start: now,
        }
    }

    /// Another pace from now on, with its first frame due at once; nothing where it is the same.
    pub(crate) fn set_pace(&mut self, pace: Pace, now: Duration) {
        if pace != self.pace {
            *self = Self::new(pace, now);
        }
    }

    /// Frames that may be sent now.
    pub(crate) fn due_frames(&mut self, now: Duration) -> u64 {
        let Pace::Paced { pps, burst_frames } = self.pace else {
            return u64::MAX;
        };
        let burst = u64::from(burst_frames.max(1));
        let bursts_due = frames_in(now.saturating_sub(self.start), pps) / burst + 1;
        let due = bursts_due
            .saturating_mul(burst)
            .saturating_sub(self.sent_frames);
        if due > frames_in(BACKLOG_MAX, pps) + burst {
            self.start = now;
            self.sent_frames = 0;
            return burst;
        }
        due
    }

    /// So many were sent.
    pub(crate) fn sent(&mut self, frames: u64) {
        self.sent_frames += frames;
    }
}

/// Whole frames of a pace in a time.
fn frames_in(time: Duration, pps: u64) -> u64 {
    let frames = time.as_nanos() * u128::from(pps) / 1_000_000_000;
    u64::try_from(frames).unwrap_or(u64::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_due_when_their_time_has_come() {
        let start = Duration::from_secs(5);
        let mut pacer = Pacer::new(Pace::even(1000), start);
        let mut sent = 0;
        for microseconds in (0..1_000_000).step_by(150) {
            let due = pacer.due_frames(start + Duration::from_micros(microseconds));
            assert!(due <= 1, "never ahead, and no burst");
            pacer.sent(due);
            sent += due;
        }
        assert_eq!(sent, 1000);
    }

    #[test]
    fn a_burst_is_due_at_once_and_the_mean_stays() {
        let pace = Pace::Paced {
            pps: 1000,
            burst_frames: 10,
        };
        let mut pacer = Pacer::new(pace, Duration::ZERO);
        let mut sent = Vec::new();
        for milliseconds in 0..100 {
            let due = pacer.due_frames(Duration::from_millis(milliseconds));
            pacer.sent(due);
            sent.push(due);
        }
        assert_eq!(sent.iter().sum::<u64>(), 100);
        for (millisecond, frames) in sent.into_iter().enumerate() {
            assert_eq!(frames, if millisecond % 10 == 0 { 10 } else { 0 });
        }
    }

    #[test]
    fn what_was_missed_is_made_up_for_unless_it_is_too_long_ago() {
        let at = Duration::from_millis;
        let mut pacer = Pacer::new(Pace::even(1000), at(0));
        pacer.sent(1);
        assert_eq!(pacer.due_frames(at(15)), 15);
        pacer.sent(15);
        assert_eq!(pacer.due_frames(at(100)), 1);
        pacer.sent(1);
        assert_eq!(pacer.due_frames(at(100)), 0);
        assert_eq!(pacer.due_frames(at(101)), 1);
    }

    #[test]
    fn another_pace_begins_when_it_is_set() {
        let at = Duration::from_millis;
        let mut pacer = Pacer::new(Pace::even(1000), at(0));
        pacer.sent(10);
        pacer.set_pace(Pace::even(1000), at(5));
        assert_eq!(pacer.due_frames(at(5)), 0);
        pacer.set_pace(Pace::even(2000), at(5));
        assert_eq!(pacer.due_frames(at(5)), 1);
        pacer.sent(1);
        assert_eq!(pacer.due_frames(at(10)), 10);
    }

    #[test]
    fn without_a_pace_there_is_always_something_to_send() {
        let mut pacer = Pacer::new(Pace::SelfClocked, Duration::ZERO);
        pacer.sent(1 << 40);
        assert_eq!(pacer.due_frames(Duration::ZERO), u64::MAX);
    }
}
