//! The order of flows of which some are heavier than others.

use std::fmt;
use std::sync::{Arc, OnceLock};

use fwdlab_model::{SCHEDULE_FRAMES, Zipf};
use fwdlab_stats::Generator;

/// The same in every run, so that the same traffic is the same frames.
const SEED: u64 = 0x7a69_7066;

/// An order of Zipf-distributed flows, which repeats after [`SCHEDULE_FRAMES`] frames.
///
/// Each flow comes as often as its rank says, at places drawn at random. Which flow has which rank is drawn, too: were it
/// the flows' own order, neighbours in the address space would be the heavy ones.
#[derive(Clone)]
pub(crate) struct Schedule {
    zipf: Zipf,
    flows: u32,
    /// Made when it is first asked for: sinks never do.
    made: Arc<OnceLock<Box<[u16]>>>,
    /// The place in the order of the first frame that is sent.
    first: u32,
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedule")
            .field("zipf", &self.zipf)
            .field("flows", &self.flows)
            .field("first", &self.first)
            .finish_non_exhaustive()
    }
}

impl Schedule {
    /// The order of so many flows, at most 65536.
    pub(crate) fn new(zipf: Zipf, flows: u32) -> Self {
        Self {
            zipf,
            flows,
            made: Arc::default(),
            first: 0,
        }
    }

    /// The same order for one of several CPUs that send at the same time: whole, so that every flow keeps its share
    /// however fast each of them is, and from another place on, so that they do not send the same flows together.
    pub(crate) fn of_part(&self, part: u32, parts: u32) -> Self {
        let first = u64::from(SCHEDULE_FRAMES) * u64::from(part) / u64::from(parts);
        Self {
            first: u32::try_from(first).expect("a part comes before the end"),
            ..self.clone()
        }
    }

    /// The flow of the frame at a place, counted from the first that is sent.
    #[inline]
    pub(crate) fn flow(&self, place: u32) -> u32 {
        let place = self.first + place;
        let place = place.checked_sub(SCHEDULE_FRAMES).unwrap_or(place);
        self.made()[place as usize].into()
    }

    /// The flow of each frame, from the first that is sent until all repeats.
    pub(crate) fn flows(&self) -> impl Iterator<Item = u16> {
        let (before, from_first) = self.made().split_at(self.first as usize);
        from_first.iter().chain(before).copied()
    }

    /// The flow at each place, which takes some milliseconds to make the first time.
    pub(crate) fn made(&self) -> &[u16] {
        self.made.get_or_init(|| make(self.zipf, self.flows))
    }
}

fn make(zipf: Zipf, flows: u32) -> Box<[u16]> {
    let mut generator = Generator::new(SEED);
    let last = u16::try_from(flows - 1).expect("there are at most 65536 flows");
    let mut by_rank: Vec<u16> = (0..=last).collect();
    generator.shuffle(&mut by_rank);
    let mut schedule = Vec::with_capacity(SCHEDULE_FRAMES as usize);
    for (flow, frames) in by_rank.into_iter().zip(zipf.frames_by_rank(flows)) {
        schedule.extend(std::iter::repeat_n(flow, frames as usize));
    }
    generator.shuffle(&mut schedule);
    schedule.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn schedule(exponent: f64, flows: u32) -> Schedule {
        Schedule::new(Zipf::try_from(exponent).unwrap(), flows)
    }

    fn frames_of_flows(schedule: &Schedule) -> Vec<u32> {
        let mut frames = vec![0; schedule.flows as usize];
        for flow in schedule.flows() {
            frames[usize::from(flow)] += 1;
        }
        frames
    }

    #[test]
    fn ranks_and_addresses_have_nothing_to_do_with_each_other() {
        let frames = frames_of_flows(&schedule(1.0, 10_000));
        // The first half of the flows would have 93 % of the frames where ranks followed them.
        let first_half: u32 = frames[..5000].iter().sum();
        let percent = f64::from(first_half) / f64::from(SCHEDULE_FRAMES) * 100.0;
        assert!((30.0..70.0).contains(&percent), "{percent}");
    }

    #[test]
    fn an_order_stays_the_same_for_ever() {
        let schedule = schedule(1.1, 1000);
        let first: Vec<u16> = schedule.flows().take(8).collect();
        assert_eq!(first, [156, 510, 535, 436, 544, 119, 119, 891]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn every_flow_comes_as_often_as_its_rank_says_and_all_along_the_order(
            exponent in 0.5_f64..3.0, flows in 1_u32..=65_536, part in 0_u32..4,
        ) {
            let all = schedule(exponent, flows);
            let schedule = all.of_part(part, 4);
            let mut frames = frames_of_flows(&schedule);
            let heaviest = (0..).zip(&frames).max_by_key(|(_, frames)| **frames).unwrap();
            let (heaviest, most): (u16, u32) = (heaviest.0, *heaviest.1);
            frames.sort_unstable();
            let mut expected = schedule.zipf.frames_by_rank(flows);
            expected.sort_unstable();
            prop_assert_eq!(frames, expected);
            // A tenth of the order has a tenth of the heaviest flow's frames, to within six standard deviations.
            let tenth = schedule.flows().take(SCHEDULE_FRAMES as usize / 10);
            let seen = tenth.filter(|&flow| flow == heaviest).count();
            let off = (seen as f64 - f64::from(most) / 10.0).abs();
            prop_assert!(off <= 6.0 * (f64::from(most) * 0.09).sqrt() + 1.0, "{seen} of {most}");
            // Each CPU begins elsewhere in the same order.
            let offset = u64::from(SCHEDULE_FRAMES) * u64::from(part) / 4;
            for (place, flow) in (0..).zip(schedule.flows()).step_by(10_007) {
                prop_assert_eq!(schedule.flow(place), u32::from(flow));
                let in_all = (offset + u64::from(place)) % u64::from(SCHEDULE_FRAMES);
                prop_assert_eq!(all.flow(u32::try_from(in_all).unwrap()), u32::from(flow));
            }
        }
    }
}
