//! Frames that a forwarder in user space loses, which nothing counts.

use fwdlab_model::{Stratum, VariantName};

use crate::counters::{Drops, OTHERS_MAX};

/// Under which the frames are counted that a forwarder in user space loses.
pub(super) const LOST_IN_FORWARDER: &str = "lost in the forwarder";

/// Counters of the DUT's ports and of the sink, read when no frame is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// Frames inside the DUT by the counters of its ports, of which only differences mean anything.
    pub(super) inside: i64,
    /// Frames at the sink that are not the tester's.
    pub(super) foreign_frames: u64,
}

impl Look {
    /// Frames of the tester that went in since an earlier look, and have not come out.
    fn lost_since(&self, before: &Self) -> u64 {
        let foreign_frames = self.foreign_frames.saturating_sub(before.foreign_frames);
        // What the DUT's kernel sends comes out without having gone in. More than it sends are damaged frames of the tester,
        // which are not lost and stay unaccounted for.
        let others = if foreign_frames <= OTHERS_MAX {
            foreign_frames.cast_signed()
        } else {
            0
        };
        // Where more came out than went in, frames were sent twice, which stay unaccounted for too.
        u64::try_from(self.inside - before.inside + others).unwrap_or(0)
    }
}

/// Frames that the forwarders of all strata have lost so far.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// The look when the forwarder began that runs now; none while the DUT's kernel forwards.
    began: Option<Look>,
    /// Frames that it had lost by the last look.
    of_running: u64,
    /// Its slice, once that was measured.
    slice: Option<EndedSlice>,
    /// Frames that those before it have lost.
    of_ended: u64,
}

impl Losses {
    /// A forwarder begins.
    pub(super) fn begin(&mut self, look: Look) {
        self.end();
        self.began = Some(look);
    }

    /// Counts as lost what went in since the forwarder began and has not come out, and no longer what has come out late.
    pub(super) fn look(&mut self, look: Look) {
        if let Some(began) = &self.began {
            self.of_running = look.lost_since(began);
        }
    }

    /// A slice of the one that runs has ended, after a look; nothing where none runs.
    pub(super) fn end_slice(&mut self, stratum: Stratum, variant: &VariantName, part: PartOfLoad) {
        self.slice = self.began.is_some().then(|| EndedSlice {
            stratum,
            variant: variant.clone(),
            part,
            lost_frames: self.of_running,
        });
    }

    /// The forwarder has ended: which frames of its slice have come out since the slice's end.
    pub(super) fn end(&mut self) -> Option<LateFrames> {
        self.began = None;
        let lost_frames = std::mem::take(&mut self.of_running);
        self.of_ended += lost_frames;
        let slice = self.slice.take()?;
        Some(LateFrames {
            frames: (slice.part).share(slice.lost_frames.saturating_sub(lost_frames)),
            stratum: slice.stratum,
            variant: slice.variant,
        })
    }

    /// Whether a forwarder runs.
    pub(super) fn are_looked_for(&self) -> bool {
        self.began.is_some()
    }

    /// How many the one that runs had lost by the last look.
    pub(super) fn of_running(&self) -> u64 {
        self.of_running
    }

    /// How many were lost so far.
    pub(super) fn frames(&self) -> u64 {
        self.of_ended + self.of_running
    }
}

/// A slice that was measured of a forwarder that has not ended.
#[derive(Debug)]
struct EndedSlice {
    stratum: Stratum,
    variant: VariantName,
    part: PartOfLoad,
    /// Frames of its load that were lost at its end.
    lost_frames: u64,
}

/// Frames of a slice that came out after it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LateFrames {
    pub(super) stratum: Stratum,
    pub(super) variant: VariantName,
    pub(super) frames: u64,
}

/// A slice of a forwarder, as a part of its load.
#[derive(Debug)]
pub(super) struct PartOfLoad {
    /// Frames offered in the slice.
    pub(super) offered_frames: u64,
    /// Frames offered from the start of the load to the slice's end.
    pub(super) window_frames: u64,
}

impl PartOfLoad {
    /// Leaves of the frames that were lost in the forwarder the slice's share.
    pub(super) fn share_losses(&self, drops: &mut Drops) {
        let lost = drops.remove(LOST_IN_FORWARDER);
        let lost = lost.map_or(0, |lost| self.share(lost));
        if lost > 0 {
            drops.insert(LOST_IN_FORWARDER.to_owned(), lost);
        }
    }

    /// The slice's share of so many frames of the load.
    fn share(&self, frames: u64) -> u64 {
        let share = u128::from(frames) * u128::from(self.offered_frames);
        let window = u128::from(self.window_frames.max(self.offered_frames).max(1));
        u64::try_from((share + window / 2) / window).unwrap_or(frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(inside: i64, foreign_frames: u64) -> Look {
        Look {
            inside,
            foreign_frames,
        }
    }

    #[test]
    fn what_went_in_and_did_not_come_out_is_lost_while_a_forwarder_runs() {
        let mut losses = Losses::default();
        losses.look(look(1000, 0));
        assert_eq!(losses.frames(), 0);
        losses.begin(look(-4, 0));
        losses.look(look(-4, 0));
        assert_eq!(losses.frames(), 0);
        losses.look(look(96, 0));
        assert_eq!(losses.frames(), 100);
        losses.end();
        losses.look(look(5000, 0));
        assert_eq!(losses.frames(), 100);
        losses.begin(look(5000, 0));
        losses.look(look(5003, 0));
        assert_eq!(losses.frames(), 103);
    }

    #[test]
    fn what_comes_out_late_is_no_longer_lost_and_what_is_sent_twice_never_was() {
        let mut losses = Losses::default();
        losses.begin(look(0, 0));
        losses.look(look(10, 0));
        losses.end();
        losses.begin(look(10, 0));
        losses.look(look(110, 0));
        losses.look(look(17, 0));
        assert_eq!(losses.frames(), 17);
        // Those of the forwarder before are not made up for.
        losses.look(look(4, 0));
        losses.end();
        assert_eq!(losses.frames(), 10);
    }

    #[test]
    fn what_comes_out_after_a_slice_is_late_in_it() {
        let (stratum, variant) = (Stratum::INET, VariantName::from_label("a"));
        let half = || PartOfLoad {
            offered_frames: 50,
            window_frames: 100,
        };
        let mut losses = Losses::default();
        losses.end_slice(stratum, &variant, half());
        assert_eq!(losses.end(), None);
        losses.begin(look(0, 0));
        losses.look(look(9, 0));
        losses.end_slice(stratum, &variant, half());
        losses.look(look(1, 0));
        let late = LateFrames {
            stratum,
            variant,
            frames: 4,
        };
        assert_eq!(losses.end(), Some(late));
        assert_eq!((losses.frames(), losses.end()), (1, None));
    }

    #[test]
    fn frames_of_others_are_made_up_for_and_damaged_ones_are_not() {
        let lost = |inside, foreign| look(inside, 7 + foreign).lost_since(&look(20, 7));
        // Three of the kernel's own, beside five that were lost.
        assert_eq!(lost(22, 3), 5);
        assert_eq!(lost(20 - OTHERS_MAX.cast_signed(), OTHERS_MAX), 0);
        // As many damaged frames came out as went in.
        assert_eq!(lost(20, OTHERS_MAX + 1), 0);
        assert_eq!(lost(25, OTHERS_MAX + 1), 5);
    }

    #[test]
    fn a_slice_has_its_share_of_what_its_load_lost() {
        let after = |lost: u64, offered_frames, window_frames| {
            let drops = [(LOST_IN_FORWARDER, lost), ("CPU backlog", 10)];
            let mut drops = drops
                .map(|(reason, frames)| (reason.to_owned(), frames))
                .into();
            let part = PartOfLoad {
                offered_frames,
                window_frames,
            };
            part.share_losses(&mut drops);
            assert_eq!(drops["CPU backlog"], 10);
            drops.get(LOST_IN_FORWARDER).copied()
        };
        assert_eq!(after(700, 1000, 3500), Some(200));
        assert_eq!(after(3500, 1000, 3500), Some(1000));
        assert_eq!(after(1, 1000, 3500), None);
        assert_eq!(after(2, 1000, 3500), Some(1));
        assert_eq!(after(5, 1000, 0), Some(5));
    }
}
