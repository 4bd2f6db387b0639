//! What should come of the tester's frames, and what is wrong with what comes instead.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::OnceLock;

use fwdlab_model::AddressFamily;

use crate::Frames;
use crate::sink::WRONG;

/// Bytes of both MAC addresses.
const MAC_ADDRESSES: Range<usize> = 0..12;

/// Bytes that say what follows the MAC addresses: a tag, or a packet.
const ETHER_TYPE: Range<usize> = 12..14;

/// What expected frames may take together: flows in sizes beyond that are made anew for every check.
const KEPT_BYTES_MAX: usize = 32 << 20;

/// Bytes of a frame that are shown from where it differs on.
const SHOWN_BYTES: usize = 8;

/// What was wrong first with a frame, in the order of [`WRONG`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    Flow,
    Length,
    MacAddress,
    Ttl,
    Content,
}

const _: () = assert!(Wrong::Content as usize + 1 == WRONG.len());

/// The frames that should come, found by what they are sent to.
#[derive(Debug)]
pub(crate) struct Expected {
    frames: Frames,
    sizes_by_length: BTreeMap<usize, u16>,
    /// Flows by addresses and ports, which lie side by side.
    flows: HashMap<Vec<u8>, u32>,
    /// Those of the first flow in all sizes, then those of the next; each is made when it is first asked
    /// for, and kept unless all would take too much memory.
    made: Vec<OnceLock<Box<[u8]>>>,
}

impl Expected {
    pub(crate) fn new(frames: &Frames) -> Self {
        let place = addresses(frames.family());
        let behind = frames.tag().map_or(0, |tag| tag.len());
        let sizes_by_length = frames.sizes_by_length();
        let smallest = *sizes_by_length.values().next().expect("there is a size");
        let flows = (0..).zip(frames.flows().iter()).map(|(number, flow)| {
            let frame = frames.expected_in_size(flow, smallest);
            (frame[behind..][place.clone()].to_vec(), number)
        });
        let count = frames.flows().count() as usize;
        let bytes = count * sizes_by_length.keys().sum::<usize>();
        let kept = if bytes <= KEPT_BYTES_MAX {
            count * sizes_by_length.len()
        } else {
            0
        };
        Self {
            frames: frames.clone(),
            flows: flows.collect(),
            made: (0..kept).map(|_| OnceLock::new()).collect(),
            sizes_by_length,
        }
    }

    /// The lengths that frames may have, without FCS, each once and in order.
    pub(crate) fn lengths(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.sizes_by_length.keys().copied()
    }

    pub(crate) fn length_max(&self) -> usize {
        self.lengths().next_back().expect("there is a size")
    }

    /// Which flow a frame is of, and what is wrong with it first.
    pub(crate) fn check(&self, frame: &[u8]) -> (Option<usize>, Option<Wrong>) {
        let number = self
            .behind_tag(frame)
            .get(addresses(self.frames.family()))
            .and_then(|addresses| self.flows.get(addresses));
        let Some((&number, flow)) =
            number.and_then(|number| Some((number, self.frames.flows().flow(*number)?)))
        else {
            return (None, Some(Wrong::Flow));
        };
        let seen = number as usize;
        let size = (0..)
            .zip(&self.sizes_by_length)
            .find(|(_, (length, _))| **length == frame.len());
        let Some((index, (_, &size))) = size else {
            return (Some(seen), Some(Wrong::Length));
        };
        let make = || self.frames.expected_in_size(flow, size);
        let wrong = match self.made.get(seen * self.sizes_by_length.len() + index) {
            Some(made) => self.differs(frame, made.get_or_init(|| make().into())),
            None => self.differs(frame, &make()),
        };
        (Some(seen), wrong)
    }

    /// In what a frame differs from what was expected, for a reader; none where it is as it should be, and where its
    /// addresses and ports are nobody's that was sent to, as other hosts' frames are.
    pub(crate) fn difference(&self, frame: &[u8]) -> Option<String> {
        let (flow, wrong) = self.check(frame);
        let flow = self.frames.flows().flow(u32::try_from(flow?).ok()?)?;
        wrong?;
        let Some(size) = self.sizes_by_length.get(&frame.len()) else {
            let lengths: Vec<String> = self.lengths().map(|length| length.to_string()).collect();
            let untagged = match self.frames.tag() {
                Some(_) if self.behind_tag(frame).len() == frame.len() => " without its VLAN tag",
                _ => "",
            };
            return Some(format!(
                "expected {} bytes without FCS, saw {}{untagged}",
                lengths.join(" or "),
                frame.len()
            ));
        };
        let expected = self.frames.expected_in_size(flow, *size);
        let at = (0..frame.len()).find(|&at| frame[at] != expected[at])?;
        let shown = at..frame.len().min(at + SHOWN_BYTES);
        let hex = |bytes: &[u8]| {
            let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            bytes.join(" ")
        };
        Some(format!(
            "from byte {at} on expected {}, saw {}",
            hex(&expected[shown.clone()]),
            hex(&frame[shown])
        ))
    }

    /// The frame from behind the tag on, where tags are expected and it has one; the whole otherwise. Places in it are those
    /// of a frame without a tag.
    fn behind_tag<'f>(&self, frame: &'f [u8]) -> &'f [u8] {
        match self.frames.tag() {
            Some(tag) if frame.get(ETHER_TYPE) == Some(&tag[..ETHER_TYPE.len()]) => {
                &frame[tag.len()..]
            }
            _ => frame,
        }
    }

    /// What is wrong first with a frame of the right length.
    fn differs(&self, frame: &[u8], expected: &[u8]) -> Option<Wrong> {
        let ttl = ttl(self.frames.family());
        if frame == expected {
            None
        } else if frame[MAC_ADDRESSES] != expected[MAC_ADDRESSES] {
            Some(Wrong::MacAddress)
        } else if self.behind_tag(frame)[ttl] != self.behind_tag(expected)[ttl] {
            Some(Wrong::Ttl)
        } else {
            Some(Wrong::Content)
        }
    }
}

/// Where addresses and ports lie in a frame without a tag.
fn addresses(family: AddressFamily) -> Range<usize> {
    match family {
        AddressFamily::Inet => 26..38,
        AddressFamily::Inet6 => 22..58,
    }
}

/// Where the TTL or the hop limit lies in a frame without a tag.
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
        frames_of(family, sizes, None)
    }

    fn frames_of(family: AddressFamily, sizes: &[u16], vlan: Option<u16>) -> Frames {
        let link = |last| Link {
            source: MacAddress([2, 0, 0, 0, last, 1]),
            destination: MacAddress([2, 0, 0, 0, last, 2]),
        };
        let traffic = Traffic {
            vlan,
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
    fn a_tag_is_expected_where_frames_have_one() {
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let frames = frames_of(family, &[64], Some(100));
            let expected = Expected::new(&frames);
            let good = frames.expected(1234);
            assert_eq!(expected.check(&good), (Some(1234), None));
            assert_eq!(expected.difference(&good), None);
            let mut of_another = good.clone();
            of_another[15] = 101;
            let checked = expected.check(&of_another);
            assert_eq!(checked, (Some(1234), Some(Wrong::Content)));
            let mut late = good.clone();
            late[4 + ttl(family)] -= 1;
            assert_eq!(expected.check(&late), (Some(1234), Some(Wrong::Ttl)));
            let untagged = [&good[..12], &good[16..]].concat();
            let checked = expected.check(&untagged);
            assert_eq!(checked, (Some(1234), Some(Wrong::Length)));
            let difference = format!(
                "expected {} bytes without FCS, saw {} without its VLAN tag",
                good.len(),
                untagged.len()
            );
            assert_eq!(expected.difference(&untagged), Some(difference));
            let short = expected.difference(&good[..good.len() - 1]).unwrap();
            assert!(!short.contains("VLAN"), "{short}");
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
                for vlan in [None, Some(100)] {
                    let expected = Expected::new(&frames_of(family, &[64, 128], vlan));
                    prop_assert!(expected.check(&bytes).1.is_some());
                }
            }
        }
    }
}
