//! The sink that needs no eBPF: the interface counts all frames, a packet socket shows some of them.
//!
//! The frames are addressed to a station that is not there, so the kernel drops them where it first
//! looks at them and counts them apart (`rx_otherhost_dropped`): exactly the tester's.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fwdlab_model::{AddressFamily, Verification};
use fwdlab_sys::ReceiveRing;

use crate::interface_counters::{InterfaceCounters, InterfaceCounts};
use crate::sink::{SinkCounts, WRONG};
use crate::{Frames, TrafficError};

/// Frames that may wait to be checked: those of a fifth of a second, or more.
const WAITING_FRAMES: usize = 8192;

/// Bytes of both MAC addresses.
const MAC_ADDRESSES: Range<usize> = 0..12;

/// A sink, counting since it was loaded or reset.
pub struct CounterSink {
    expected: Expected,
    check_every: u32,
    // The watch asks from another thread than the one that resets.
    state: Mutex<State>,
}

struct State {
    every: u32,
    attached: Option<Attached>,
    /// What is neither in the interface's counters nor checked any more, because it was detached.
    counts: SinkCounts,
    flows_seen: Vec<bool>,
    lengths_seen: BTreeSet<usize>,
}

struct Attached {
    counters: InterfaceCounters,
    before: InterfaceCounts,
    ring: ReceiveRing,
}

impl CounterSink {
    /// A sink that is to expect these frames.
    #[must_use]
    pub fn new(frames: &Frames) -> Self {
        let flows = frames.flows().count() as usize;
        Self {
            expected: Expected::new(frames),
            check_every: frames.check_every(),
            state: Mutex::new(State {
                every: frames.check_every(),
                attached: None,
                counts: SinkCounts::default(),
                flows_seen: vec![false; flows],
                lengths_seen: BTreeSet::new(),
            }),
        }
    }

    /// Counts what comes in at an interface of the calling thread's namespace, from now on.
    ///
    /// # Errors
    /// Without the privilege in that namespace, or when there is no such interface.
    pub fn attach(&mut self, interface_index: u32) -> Result<(), TrafficError> {
        let length_max = self.expected.length_max();
        let mut state = self.state();
        let counters = InterfaceCounters::open(interface_index)?;
        state.attached = Some(Attached {
            before: counters.read()?,
            counters,
            ring: ReceiveRing::open(interface_index, WAITING_FRAMES, length_max, state.every)?,
        });
        Ok(())
    }

    /// Takes the sink off its interface.
    ///
    /// # Errors
    /// When the kernel does not say what was counted last.
    pub fn detach(&mut self) -> Result<(), TrafficError> {
        let mut state = self.state();
        state.counts = self.counts_of(&mut state)?;
        state.attached = None;
        Ok(())
    }

    /// Counts from 0 again and checks one of so many frames; to be called when nothing is sent.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn reset(&mut self) -> Result<(), TrafficError> {
        self.restart(self.check_every)
    }

    /// Counts from 0 again and checks every frame; to be called when nothing is sent.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn reset_to_check_all(&mut self) -> Result<(), TrafficError> {
        self.restart(1)
    }

    fn restart(&mut self, every: u32) -> Result<(), TrafficError> {
        let mut state = self.state();
        state.every = every;
        state.counts = SinkCounts::default();
        state.flows_seen.fill(false);
        state.lengths_seen.clear();
        if let Some(attached) = &mut state.attached {
            attached.ring.read(|_| {});
            attached.ring.sample(every)?;
            attached.before = attached.counters.read()?;
        }
        Ok(())
    }

    /// Frames of the tester so far; faster than all [`counts`](Self::counts).
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn forwarded_frames(&self) -> Result<u64, TrafficError> {
        let state = self.state();
        let forwarded_frames = state.counts.forwarded_frames;
        Ok(match &state.attached {
            Some(attached) => forwarded_frames + attached.frames()?.0,
            None => forwarded_frames,
        })
    }

    /// What was counted so far, and checked: all that waits for it is.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn counts(&self) -> Result<SinkCounts, TrafficError> {
        self.counts_of(&mut self.state())
    }

    fn counts_of(&self, state: &mut State) -> Result<SinkCounts, TrafficError> {
        let State {
            attached,
            counts,
            flows_seen,
            lengths_seen,
            ..
        } = state;
        let Some(attached) = attached else {
            return Ok(counts.clone());
        };
        attached.ring.read(|frame| {
            counts.checked_frames += 1;
            let (flow, wrong) = self.expected.check(frame);
            if let Some(flow) = flow {
                flows_seen[flow] = true;
                lengths_seen.insert(frame.len());
            }
            if let Some(wrong) = wrong {
                counts.wrong_frames[wrong as usize] += 1;
            }
        });
        let (forwarded_frames, foreign_frames) = attached.frames()?;
        let mut counts = counts.clone();
        counts.forwarded_frames += forwarded_frames;
        counts.foreign_frames += foreign_frames;
        Ok(counts)
    }

    /// Distinct flows among the checked frames.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn flows_seen(&self) -> Result<u32, TrafficError> {
        let mut state = self.state();
        self.counts_of(&mut state)?;
        let seen = state.flows_seen.iter().filter(|&&seen| seen).count();
        Ok(u32::try_from(seen).expect("flows are counted in 32 bits"))
    }

    /// Whether every planned size was among the checked frames.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn all_sizes_seen(&self) -> Result<bool, TrafficError> {
        let mut state = self.state();
        self.counts_of(&mut state)?;
        Ok(self
            .expected
            .sizes_by_length
            .keys()
            .all(|length| state.lengths_seen.contains(length)))
    }

    /// The outcome of the check, for the records.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn verification(&self) -> Result<Verification, TrafficError> {
        Ok(self.counts()?.verification(self.flows_seen()?))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whoever panicked meanwhile left counts behind that are right up to there.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attached {
    /// Frames of the tester, and all others.
    fn frames(&self) -> Result<(u64, u64), TrafficError> {
        let now = self.counters.read()?;
        let forwarded_frames = now.other_station_frames - self.before.other_station_frames;
        let received_frames = now.received_frames - self.before.received_frames;
        // A frame is counted as received before it is dropped.
        Ok((
            forwarded_frames,
            received_frames.saturating_sub(forwarded_frames),
        ))
    }
}

/// What was wrong first with a frame, in the order of [`WRONG`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Flow,
    Length,
    MacAddress,
    Ttl,
    Content,
}

const _: () = assert!(Wrong::Content as usize + 1 == WRONG.len());

/// The frames that should come, found by what they are sent to, and made when one is to be compared:
/// all flows in all sizes would take more memory than all else.
struct Expected {
    frames: Frames,
    sizes_by_length: BTreeMap<usize, u16>,
    /// Flows by addresses and ports, which lie side by side.
    flows: HashMap<Vec<u8>, u32>,
}

impl Expected {
    fn new(frames: &Frames) -> Self {
        let place = addresses(frames.family());
        let sizes_by_length = frames.sizes_by_length();
        let smallest = *sizes_by_length.values().next().expect("there is a size");
        let flows = (0..).zip(frames.flows().iter()).map(|(number, flow)| {
            let frame = frames.expected_in_size(flow, smallest);
            (frame[place.clone()].to_vec(), number)
        });
        Self {
            frames: frames.clone(),
            sizes_by_length,
            flows: flows.collect(),
        }
    }

    fn length_max(&self) -> usize {
        let longest = self.sizes_by_length.keys().next_back();
        *longest.expect("there is a size")
    }

    /// Which flow a frame is of, and what is wrong with it first.
    fn check(&self, frame: &[u8]) -> (Option<usize>, Option<Wrong>) {
        let family = self.frames.family();
        let number = frame
            .get(addresses(family))
            .and_then(|addresses| self.flows.get(addresses));
        let Some((&number, flow)) =
            number.and_then(|number| Some((number, self.frames.flows().flow(*number)?)))
        else {
            return (None, Some(Wrong::Flow));
        };
        let seen = Some(number as usize);
        let Some(&size) = self.sizes_by_length.get(&frame.len()) else {
            return (seen, Some(Wrong::Length));
        };
        let expected = self.frames.expected_in_size(flow, size);
        let ttl = ttl(family);
        let wrong = if frame == expected {
            None
        } else if frame[MAC_ADDRESSES] != expected[MAC_ADDRESSES] {
            Some(Wrong::MacAddress)
        } else if frame[ttl] != expected[ttl] {
            Some(Wrong::Ttl)
        } else {
            Some(Wrong::Content)
        };
        (seen, wrong)
    }
}

/// Where addresses and ports lie in a frame.
fn addresses(family: AddressFamily) -> Range<usize> {
    match family {
        AddressFamily::Inet => 26..38,
        AddressFamily::Inet6 => 22..58,
    }
}

/// Where the TTL or the hop limit lies in a frame.
fn ttl(family: AddressFamily) -> usize {
    match family {
        AddressFamily::Inet => 22,
        AddressFamily::Inet6 => 21,
    }
}

#[cfg(test)]
mod tests {
    use fwdlab_model::{FrameSize, Traffic};
    use fwdlab_packet::MacAddress;
    use proptest::prelude::*;

    use super::*;
    use crate::Link;

    fn frames(family: AddressFamily, sizes: &[u16]) -> Frames {
        let link = |last| Link {
            source: MacAddress([2, 0, 0, 0, last, 1]),
            destination: MacAddress([2, 0, 0, 0, last, 2]),
        };
        let traffic = Traffic {
            frame_sizes: sizes
                .iter()
                .map(|&bytes| FrameSize { bytes, share: 1 })
                .collect(),
            ..Traffic::default()
        };
        Frames::new(family, &traffic, link(1), link(2)).unwrap()
    }

    #[test]
    fn what_is_wrong_is_named_in_the_order_in_which_it_is_looked_for() {
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let frames = frames(family, &[64]);
            let expected = Expected::new(&frames);
            let good = frames.expected(1234);
            assert_eq!(expected.check(&good), (Some(1234), None));
            let changed = |place: usize| {
                let mut frame = good.clone();
                frame[place] ^= 0x55;
                expected.check(&frame)
            };
            let last = good.len() - 1;
            assert_eq!(changed(addresses(family).start), (None, Some(Wrong::Flow)));
            assert_eq!(changed(0), (Some(1234), Some(Wrong::MacAddress)));
            assert_eq!(changed(11), (Some(1234), Some(Wrong::MacAddress)));
            assert_eq!(changed(ttl(family)), (Some(1234), Some(Wrong::Ttl)));
            assert_eq!(changed(last), (Some(1234), Some(Wrong::Content)));
            assert_eq!(changed(12), (Some(1234), Some(Wrong::Content)));
            let short = expected.check(&good[..last]);
            assert_eq!(short, (Some(1234), Some(Wrong::Length)));
            let sent = expected.check(&frames.sent(1234));
            assert_eq!(sent, (Some(1234), Some(Wrong::MacAddress)));
            assert_eq!(expected.check(&[]), (None, Some(Wrong::Flow)));
        }
    }

    #[test]
    fn every_size_of_a_flow_is_expected() {
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let frames = frames(family, &[64, 594, 1518]);
            let expected = Expected::new(&frames);
            assert_eq!(expected.length_max(), 1514);
            for (number, flow) in (0..3 * 2000).zip((0..2000).cycle()) {
                let checked = expected.check(&frames.expected(number));
                assert_eq!(checked, (Some(flow), None));
            }
            let mut corrupted = frames.expected(1);
            let last = corrupted.len() - 1;
            corrupted[last] ^= 1;
            assert_eq!(expected.check(&corrupted), (Some(1), Some(Wrong::Content)));
            let cut = &corrupted[..last];
            assert_eq!(expected.check(cut), (Some(1), Some(Wrong::Length)));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged(bytes: Vec<u8>) {
            for family in [AddressFamily::Inet, AddressFamily::Inet6] {
                let expected = Expected::new(&frames(family, &[64, 128]));
                prop_assert!(expected.check(&bytes).1.is_some());
            }
        }
    }
}
