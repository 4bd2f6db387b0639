//! The order in which flows and sizes take turns.

use fwdlab_model::FrameSize;

use crate::TrafficError;
use crate::schedule::Schedule;

/// Frames in a turn of all sizes that the generator's map holds: any 16 sizes with shares of 1000.
pub const SLOTS_MAX: u32 = 16_384;

/// One turn of the sizes, each as an index: every size as often as its share says, after the shares
/// have lost their common divisor, and spread evenly rather than in runs.
///
/// # Errors
/// `NoFrameSize`, `NoShare`, `LongTurn`.
///
/// # Source
/// The smooth weighted round robin of nginx: whoever waited longest, by weight, is next.
pub(crate) fn turn(sizes: &[FrameSize]) -> Result<Vec<usize>, TrafficError> {
    if sizes.is_empty() {
        return Err(TrafficError::NoFrameSize);
    }
    if let Some(size) = sizes.iter().find(|size| size.share == 0) {
        return Err(TrafficError::NoShare {
            frame_size: size.bytes,
        });
    }
    let divisor = sizes.iter().fold(0, |divisor, size| {
        greatest_common_divisor(divisor, size.share.into())
    });
    let shares: Vec<i64> = sizes
        .iter()
        .map(|size| (u64::from(size.share) / divisor).cast_signed())
        .collect();
    let slots: i64 = shares.iter().sum();
    if slots > SLOTS_MAX.into() {
        return Err(TrafficError::LongTurn { slots });
    }
    let mut waited = vec![0; shares.len()];
    let mut turn = Vec::new();
    for _ in 0..slots {
        for (waited, share) in waited.iter_mut().zip(&shares) {
            *waited += share;
        }
        // The first of equals, so that the order is that of the file.
        let next = (0..waited.len())
            .rev()
            .max_by_key(|&size| waited[size])
            .expect("there is a size");
        waited[next] -= slots;
        turn.push(next);
    }
    Ok(turn)
}

/// Which flow each frame is of, and which slot of a turn of the sizes it has.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) sequence: Sequence,
    /// The flows at the sequence's places; without one, each is the flow of that number.
    pub(crate) schedule: Option<Schedule>,
}

impl Order {
    /// Flow and slot of a frame, counted from 0.
    pub(crate) fn at(&self, number: u64) -> (u32, u32) {
        let (place, slot) = self.sequence.at(number);
        (self.flow(place), slot)
    }

    #[inline]
    pub(crate) fn flow(&self, place: u32) -> u32 {
        match &self.schedule {
            None => place,
            Some(schedule) => schedule.flow(place),
        }
    }
}

/// Places and slots in turn, until every place has had every slot. Where flows are sent in turn, their numbers are the
/// places.
///
/// Both step on with each frame. After a stretch, their least common multiple, they would meet as
/// they met before; so each stretch begins one slot further, and after as many stretches as they
/// have in common divisor, all is as at the start. A stretch is so many whole turns, so that the
/// sizes keep their proportions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sequence {
    places: u32,
    slots: u32,
}

impl Sequence {
    pub(crate) fn new(places: u32, slots: u32) -> Self {
        Self { places, slots }
    }

    pub(crate) fn places(self) -> u32 {
        self.places
    }

    pub(crate) fn slots(self) -> u32 {
        self.slots
    }

    /// Frames after which places and slots meet again.
    pub(crate) fn stretch(self) -> u64 {
        u64::from(self.places / self.stretches()) * u64::from(self.slots)
    }

    /// Stretches until every place has had every slot.
    pub(crate) fn stretches(self) -> u32 {
        let divisor = greatest_common_divisor(self.places.into(), self.slots.into());
        u32::try_from(divisor).expect("it divides both")
    }

    /// Frames after which all is as at the start.
    pub(crate) fn period(self) -> u64 {
        u64::from(self.places) * u64::from(self.slots)
    }

    /// Place and slot of a frame, counted from 0.
    pub(crate) fn at(self, number: u64) -> (u32, u32) {
        let stretches_done = number % self.period() / self.stretch();
        let place = number % u64::from(self.places);
        let slot = (number % self.period() + stretches_done) % u64::from(self.slots);
        let small = |n| u32::try_from(n).expect("a remainder is smaller than its divisor");
        (small(place), small(slot))
    }

    /// How many frames lie between two that the sink checks: at most 64, and without a common
    /// divisor with the period, so that every place gets its turn with every slot.
    pub(crate) fn check_every(self) -> u32 {
        (1..=64)
            .rev()
            .find(|&every| greatest_common_divisor(every, self.period()) == 1)
            .and_then(|every| u32::try_from(every).ok())
            .unwrap_or(1)
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use fwdlab_model::FLOWS_MAX;

    fn sizes(shares: &[u16]) -> Vec<FrameSize> {
        let bytes = [64, 128, 256, 512, 1024, 1280, 1518];
        bytes
            .into_iter()
            .zip(shares)
            .map(|(bytes, &share)| FrameSize { bytes, share })
            .collect()
    }

    #[test]
    fn an_imix_is_spread() {
        let turn = |shares: &[u16]| turn(&sizes(shares)).unwrap();
        assert_eq!(turn(&[7, 4, 1]), [0, 1, 0, 0, 1, 0, 2, 0, 1, 0, 1, 0]);
        assert_eq!(turn(&[700, 400, 100]), turn(&[7, 4, 1]));
        assert_eq!(turn(&[5]), [0]);
        assert_eq!(turn(&[1, 1, 1]), [0, 1, 2]);
    }

    #[test]
    fn what_cannot_be_shared_out_is_refused() {
        let error = |shares: &[u16]| turn(&sizes(shares)).unwrap_err();
        assert!(matches!(error(&[]), TrafficError::NoFrameSize));
        assert!(matches!(
            error(&[1, 0]),
            TrafficError::NoShare { frame_size: 128 }
        ));
        assert!(matches!(
            error(&[16_384, 1]),
            TrafficError::LongTurn { slots: 16_385 }
        ));
        assert_eq!(turn(&sizes(&[16_383, 1])).unwrap().len(), 16_384);
    }

    proptest! {
        #[test]
        fn every_size_has_its_share_and_never_a_run(
            shares in prop::collection::vec(1u16..140, 1..=7),
        ) {
            let turn = turn(&sizes(&shares)).unwrap();
            let all: usize = shares.iter().map(|&share| usize::from(share)).sum();
            for (size, &share) in shares.iter().enumerate() {
                let share = usize::from(share);
                let times = turn.iter().filter(|&&slot| slot == size).count();
                prop_assert_eq!(times * all, share * turn.len());
                // Wherever one looks, the size is there as often as it should, give or take less
                // than one frame for each size.
                for length in 1..=turn.len() {
                    let seen = turn[..length].iter().filter(|&&slot| slot == size).count();
                    let off = (seen * all).abs_diff(share * length);
                    prop_assert!(off < all * shares.len(), "{seen} of {length}");
                }
            }
        }

        #[test]
        fn every_flow_has_every_slot_once_in_a_period(flows in 1u32..300, slots in 1u32..60) {
            let sequence = Sequence::new(flows, slots);
            let mut seen: Vec<_> = (0..sequence.period()).map(|n| sequence.at(n)).collect();
            prop_assert_eq!(sequence.at(sequence.period()), seen[0]);
            // The first frames probe all flows and all slots.
            let first = &seen[..flows.max(slots) as usize];
            prop_assert!((0..flows).all(|flow| first.iter().any(|at| at.0 == flow)));
            prop_assert!((0..slots).all(|slot| first.iter().any(|at| at.1 == slot)));
            seen.sort_unstable();
            seen.dedup();
            prop_assert_eq!(seen.len() as u64, sequence.period());
        }

        #[test]
        fn checked_frames_visit_every_flow_with_every_slot(
            flows in 1u32..300, slots in 1u32..60, first: u16,
        ) {
            let sequence = Sequence::new(flows, slots);
            let every = u64::from(sequence.check_every());
            prop_assert!((1..=64).contains(&every));
            let mut seen: Vec<_> = (0..sequence.period())
                .map(|check| sequence.at(u64::from(first) + check * every))
                .collect();
            seen.sort_unstable();
            seen.dedup();
            prop_assert_eq!(seen.len() as u64, sequence.period());
        }

        #[test]
        fn as_many_checks_as_there_are_flows_visit_every_flow(
            flows in 1u32..=FLOWS_MAX, slots in 1u32..=SLOTS_MAX, first: u32,
        ) {
            let sequence = Sequence::new(flows, slots);
            let every = u64::from(sequence.check_every());
            let mut seen = vec![false; flows as usize];
            for check in 0..u64::from(flows) {
                seen[sequence.at(u64::from(first) + check * every).0 as usize] = true;
            }
            prop_assert!(seen.iter().all(|&seen| seen));
        }

        #[test]
        fn every_turn_has_every_slot_once(
            flows in 1u32..=FLOWS_MAX, slots in 1u32..=SLOTS_MAX, turn: u32,
        ) {
            let sequence = Sequence::new(flows, slots);
            let first = u64::from(turn) * u64::from(slots);
            let mut seen = vec![false; slots as usize];
            for number in first..first + u64::from(slots) {
                seen[sequence.at(number).1 as usize] = true;
            }
            prop_assert!(seen.iter().all(|&seen| seen));
        }
    }
}
