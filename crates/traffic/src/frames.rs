//! The frames that the tester sends, and those that a correct router makes of them.

use std::collections::{BTreeMap, BTreeSet};

use fwdlab_model::{AddressFamily, Forwards, SCHEDULE_FRAMES, Traffic};
use fwdlab_packet::checksum::Sum;
use fwdlab_packet::{Flow, Flows, MacAddress, UdpFrame, forwarded};

use crate::TrafficError;
use crate::schedule::Schedule;
use crate::turn::{Order, Sequence, turn};

/// The largest frame, with FCS but for a VLAN tag: 1500 bytes of IP.
pub const FRAME_SIZE_MAX: u16 = 1518;

/// Where the tag of a VLAN begins: behind the MAC addresses (IEEE 802.1Q).
const TAG_PLACE: usize = 12;
/// The EtherType that says that a tag follows (IEEE 802.1Q).
const TAGGED: u16 = 0x8100;

/// The tag of a VLAN as it lies in a frame, or none.
pub(crate) type Tag = Option<[u8; 4]>;

/// The smallest frame of either family, with FCS, as an experiment names it.
const SMALLEST: u16 = 64;

/// Bytes of the head of a frame as the eBPF programs' maps hold it.
const HEAD_SIZE: usize = 64;
/// Bytes of what follows the head, likewise.
pub(crate) const REST_SIZE: usize = 1464;

const HOP_LIMIT: u8 = 64;

/// `union head` of the eBPF programs, in words.
pub(crate) type Head = [u64; HEAD_SIZE / 8];
/// `struct size` of the eBPF programs, in half words.
pub(crate) type Size = [u16; 8];

/// The two ends of one cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The sending end.
    pub source: MacAddress,
    /// The receiving end.
    pub destination: MacAddress,
}

/// All frames of one address family, in the order in which they are sent.
///
/// Flow and size step on with each frame: through the flows in turn, or through an order in which some of them are
/// heavy. Every turn of the sizes holds each of them in its exact proportion, and every flow has every size.
#[derive(Clone, Debug)]
pub struct Frames {
    family: AddressFamily,
    flows: Flows,
    tester_to_dut: Link,
    /// None where no router lies between generator and sink.
    dut_to_sink: Option<Link>,
    /// What is between them otherwise.
    forwards: Forwards,
    vlan: Option<u16>,
    sizes: Vec<u16>,
    turn: Vec<usize>,
    share: Share,
    /// The order of flows that are not sent in turn; those are not shared out.
    schedule: Option<Schedule>,
}

/// The flows that are sent: every `parts`-th of all, from the one with the number `part` on.
#[derive(Clone, Copy, Debug)]
struct Share {
    part: u32,
    parts: u32,
}

impl Share {
    const ALL: Self = Self { part: 0, parts: 1 };
}

impl Frames {
    /// The frames of the traffic's flows, from the tester to the DUT over one link and from the DUT
    /// to the sink over another.
    ///
    /// # Errors
    /// `Traffic`, `NoFrameSize`, `NoShare`, `LongTurn`.
    pub fn new(
        family: AddressFamily,
        traffic: &Traffic,
        tester_to_dut: Link,
        dut_to_sink: Link,
    ) -> Result<Self, TrafficError> {
        let unrouted = Self::unrouted(family, traffic, tester_to_dut)?;
        Ok(Self {
            dut_to_sink: Some(dut_to_sink),
            ..unrouted
        })
    }

    /// The frames of the traffic's flows over a link with no router behind it: the sink should get
    /// them as they were sent.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn unrouted(
        family: AddressFamily,
        traffic: &Traffic,
        link: Link,
    ) -> Result<Self, TrafficError> {
        traffic.check(family)?;
        let [sources, destinations] = traffic.ranges(family)?;
        let (from, to) = (traffic.source_ports, traffic.destination_ports);
        let flows = Flows::new(sources, destinations, from, to)?;
        let sizes = traffic.frame_sizes.iter().map(|size| size.bytes).collect();
        Ok(Self {
            family,
            flows,
            tester_to_dut: link,
            dut_to_sink: None,
            forwards: Forwards::default(),
            vlan: traffic.vlan,
            sizes,
            turn: turn(&traffic.frame_sizes)?,
            share: Share::ALL,
            schedule: traffic.zipf.map(|zipf| Schedule::new(zipf, flows.count())),
        })
    }

    /// The same frames with every flow in its turn, whatever their order is: for a proof of each of them.
    #[must_use]
    pub fn in_turn(&self) -> Self {
        Self {
            schedule: None,
            ..self.clone()
        }
    }

    /// The same frames shared out: each flow is in one share, and each share has all sizes in their proportions. Where some
    /// flows are heavy, each share has all of them, from another place in their order on: no share of the flows would be
    /// as heavy as another.
    ///
    /// # Errors
    /// `TooManyCpus` where there are fewer flows than shares.
    pub(crate) fn shared_out(&self, parts: usize) -> Result<Vec<Self>, TrafficError> {
        let flows = self.flows.count();
        let parts = u32::try_from(parts)
            .ok()
            .filter(|&parts| parts <= flows)
            .ok_or(TrafficError::TooManyCpus { cpus: parts, flows })?;
        let share = |part| match &self.schedule {
            None => Self {
                share: Share { part, parts },
                ..self.clone()
            },
            Some(schedule) => Self {
                schedule: Some(schedule.of_part(part, parts)),
                ..self.clone()
            },
        };
        Ok((0..parts).map(share).collect())
    }

    /// The frames of the opposite direction over links of its own: sources and destinations change
    /// places, and so do their ports.
    #[must_use]
    pub fn reversed(&self, tester_to_dut: Link, dut_to_sink: Link) -> Self {
        Self {
            flows: self.flows.reversed(),
            tester_to_dut,
            dut_to_sink: Some(dut_to_sink),
            ..self.clone()
        }
    }

    /// The same frames where something else than a router lies between generator and sink.
    #[must_use]
    pub fn passing(&self, forwards: Forwards) -> Self {
        Self {
            forwards,
            ..self.clone()
        }
    }

    /// What is expected to lie between generator and sink.
    pub(crate) fn forwards(&self) -> Forwards {
        self.forwards
    }

    /// All flows, in the order of their turns.
    #[must_use]
    pub fn flows(&self) -> Flows {
        self.flows
    }

    /// The address family.
    #[must_use]
    pub fn family(&self) -> AddressFamily {
        self.family
    }

    /// The frame with that number, counted from 0, as it is sent: without FCS.
    #[must_use]
    pub fn sent(&self, number: u64) -> Vec<u8> {
        let (flow, slot) = self.order().at(number);
        self.emit(self.sent_flow(flow), self.sizes[self.turn[slot as usize]])
    }

    /// The frame with that number as the sink should get it: without FCS.
    #[must_use]
    pub fn expected(&self, number: u64) -> Vec<u8> {
        let (flow, slot) = self.order().at(number);
        self.expected_in_size(self.sent_flow(flow), self.sizes[self.turn[slot as usize]])
    }

    /// The lengths that the frames have, without FCS, each once and in order.
    #[must_use]
    pub fn lengths(&self) -> BTreeSet<usize> {
        self.sizes
            .iter()
            .map(|&size| self.length_of(size))
            .collect()
    }

    /// How many frames, from the first, hold every flow and every size at least once where flows are sent
    /// [in turn](Self::in_turn).
    #[must_use]
    pub fn probe_frames(&self) -> u32 {
        self.flows_in_share().max(self.slots())
    }

    /// How many frames lie between two that the sink checks: at most 64, and so many that every
    /// flow in the order gets its turn with every size.
    #[must_use]
    pub fn check_every(&self) -> u32 {
        self.sequence().check_every()
    }

    pub(crate) fn sequence(&self) -> Sequence {
        let places = match self.schedule {
            None => self.flows_in_share(),
            Some(_) => SCHEDULE_FRAMES,
        };
        Sequence::new(places, self.slots())
    }

    /// The order of the frames, by the numbers of the flows in this share.
    pub(crate) fn order(&self) -> Order {
        if let Some(schedule) = &self.schedule {
            // Now, rather than when the first frame is due.
            schedule.made();
        }
        Order {
            sequence: self.sequence(),
            schedule: self.schedule.clone(),
        }
    }

    /// The order of the flows where they are not sent in turn.
    pub(crate) fn schedule(&self) -> Option<&Schedule> {
        self.schedule.as_ref()
    }

    fn slots(&self) -> u32 {
        u32::try_from(self.turn.len()).expect("a turn is bounded")
    }

    pub(crate) fn flows_in_share(&self) -> u32 {
        let Share { part, parts } = self.share;
        (self.flows.count() - part).div_ceil(parts)
    }

    /// The flows of this share, in the order of their numbers in it.
    fn sent_flows(&self) -> impl Iterator<Item = Flow> {
        (0..self.flows_in_share()).map(|number| self.sent_flow(number))
    }

    fn sent_flow(&self, number: u32) -> Flow {
        let Share { part, parts } = self.share;
        let flow = self.flows.flow(number * parts + part);
        flow.expect("it is below the count")
    }

    /// Whether all frames are the smallest of their family.
    pub(crate) fn are_smallest(&self) -> bool {
        let smallest = self.length_of(SMALLEST);
        self.lengths().into_iter().all(|length| length == smallest)
    }

    /// The head of each flow's frames as they are sent.
    pub(crate) fn sent_heads(&self) -> impl Iterator<Item = Head> {
        self.sent_flows().map(|flow| head(&self.smallest(flow)))
    }

    /// The head of each flow's frames as the sink should get them.
    pub(crate) fn expected_heads(&self) -> impl Iterator<Item = Head> {
        self.flows
            .iter()
            .map(|flow| head(&self.forwarded(&self.smallest(flow))))
    }

    /// The sizes in the order of a turn.
    pub(crate) fn sizes_in_turn(&self) -> Vec<Size> {
        let sizes: Vec<_> = self.sizes.iter().map(|&size| self.size(size)).collect();
        self.turn.iter().map(|&size| sizes[size]).collect()
    }

    /// How many sizes there are.
    pub(crate) fn sizes(&self) -> usize {
        self.sizes.len()
    }

    /// The index of each slot's size.
    pub(crate) fn turn(&self) -> &[usize] {
        &self.turn
    }

    /// The frames of the first flow in all sizes, then those of the next, as they are sent.
    pub(crate) fn each_flow_in_each_size(&self) -> impl Iterator<Item = Vec<u8>> {
        self.sent_flows()
            .flat_map(move |flow| self.sizes.iter().map(move |&size| self.emit(flow, size)))
    }

    /// The tag that every frame has, as it lies there.
    pub(crate) fn tag(&self) -> Tag {
        let [first, second] = TAGGED.to_be_bytes();
        // Priority and drop eligibility are 0.
        let [third, fourth] = self.vlan?.to_be_bytes();
        Some([first, second, third, fourth])
    }

    /// The tag as the eBPF programs have it: in one word, and 0 where there is none.
    pub(crate) fn tag_word(&self) -> u32 {
        self.tag().map_or(0, u32::from_ne_bytes)
    }

    /// The sizes by the length that their frames have.
    pub(crate) fn sizes_by_length(&self) -> BTreeMap<usize, u16> {
        self.sizes
            .iter()
            .map(|&size| (self.length_of(size), size))
            .collect()
    }

    /// The frame of a flow in one of the sizes, as the sink should get it.
    pub(crate) fn expected_in_size(&self, flow: Flow, size: u16) -> Vec<u8> {
        self.tagged(self.forwarded(&self.untagged(flow, size)))
    }

    /// A frame as large as any.
    pub(crate) fn largest(&self) -> Vec<u8> {
        let size = self.sizes.iter().max().expect("there is a size");
        self.emit(first(&self.flows), *size)
    }

    /// What follows the head, in the largest frame that can be; shorter ones end sooner.
    pub(crate) fn rest(&self) -> [u8; REST_SIZE] {
        let flow = first(&self.flows);
        let frame = self.untagged(flow, FRAME_SIZE_MAX);
        let rest = &frame[self.smallest(flow).len()..];
        let mut bytes = [0; REST_SIZE];
        bytes[..rest.len()].copy_from_slice(rest);
        bytes
    }

    /// The smallest frame of a flow, without a tag: heads have none, the programs insert it.
    fn smallest(&self, flow: Flow) -> Vec<u8> {
        self.untagged(flow, SMALLEST)
    }

    fn length_of(&self, frame_size: u16) -> usize {
        self.emit(first(&self.flows), frame_size).len()
    }

    /// What a size changes in the head of a frame. The payload is the same in all flows, so what it
    /// adds to a sum is so, too.
    fn size(&self, frame_size: u16) -> Size {
        let flow = first(&self.flows);
        let (smallest, frame) = (self.smallest(flow), self.untagged(flow, frame_size));
        let (ip_length, ip_checksum, udp_length, udp_checksum) = match self.family {
            AddressFamily::Inet => (16, Some(24), 38, 40),
            AddressFamily::Inet6 => (18, None, 58, 60),
        };
        let change = |at| {
            let sum = Sum::default()
                .word(!half(&frame, at))
                .word(half(&smallest, at));
            !sum.checksum()
        };
        let length = u16::try_from(self.length_of(frame_size)).expect("it is bounded");
        [
            length,
            half(&frame, ip_length),
            half(&frame, udp_length),
            ip_checksum.map_or(0, change),
            change(udp_checksum),
            0,
            0,
            0,
        ]
    }

    /// A frame as it is sent.
    fn emit(&self, flow: Flow, frame_size: u16) -> Vec<u8> {
        self.tagged(self.untagged(flow, frame_size))
    }

    /// The frame with its VLAN's tag, where all have one.
    fn tagged(&self, mut frame: Vec<u8>) -> Vec<u8> {
        if let Some(tag) = self.tag() {
            frame.splice(TAG_PLACE..TAG_PLACE, tag);
        }
        frame
    }

    fn untagged(&self, flow: Flow, frame_size: u16) -> Vec<u8> {
        let length = UdpFrame::payload_length(&flow.addresses, frame_size.into())
            .expect("`new` refuses other sizes");
        UdpFrame {
            source_mac: self.tester_to_dut.source,
            destination_mac: self.tester_to_dut.destination,
            flow,
            hop_limit: HOP_LIMIT,
            payload: &payload(length),
        }
        .emit()
    }

    fn forwarded(&self, frame: &[u8]) -> Vec<u8> {
        let Some(link) = self.dut_to_sink else {
            return frame.to_vec();
        };
        match self.forwards {
            Forwards::Routed => forwarded(frame, link.source, link.destination)
                .expect("its own frames can be forwarded"),
            Forwards::Mac => {
                let addresses = [link.destination.0, link.source.0].concat();
                [&addresses, &frame[addresses.len()..]].concat()
            }
            Forwards::Unchanged => frame.to_vec(),
        }
    }
}

fn first(flows: &Flows) -> Flow {
    flows.flow(0).expect("no range is empty")
}

/// What a datagram carries: a greeting, then bytes that nowhere repeat, so that no part of them can
/// stand in another's place unnoticed.
fn payload(length: usize) -> Vec<u8> {
    let greeting = b"fwdlab probe frame".iter().copied();
    let noise = (1_u64..).flat_map(|n| {
        // SplitMix64, whose outputs for different numbers differ.
        let mut word = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)).to_be_bytes()
    });
    greeting.chain(noise).take(length).collect()
}

/// The first bytes of a frame as a map holds them.
fn head(frame: &[u8]) -> Head {
    let mut bytes = [0; HEAD_SIZE];
    bytes[..frame.len()].copy_from_slice(frame);
    let mut words = [0; HEAD_SIZE / 8];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_ne_bytes(chunk.try_into().expect("a chunk of 8 has 8 bytes"));
    }
    words
}

/// Two bytes as a program reads them.
fn half(frame: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([frame[at], frame[at + 1]])
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use fwdlab_model::{FirstAddresses, FrameSize, PortRange, TrafficFault};
    use fwdlab_packet::parse;
    use proptest::prelude::*;

    use super::*;

    const FAMILIES: [AddressFamily; 2] = [AddressFamily::Inet, AddressFamily::Inet6];

    fn link(last: u8) -> Link {
        Link {
            source: MacAddress([2, 0, 0, 0, last, 1]),
            destination: MacAddress([2, 0, 0, 0, last, 2]),
        }
    }

    fn frames(family: AddressFamily, traffic: &Traffic) -> Result<Frames, TrafficError> {
        Frames::new(family, traffic, link(1), link(2))
    }

    fn of_sizes(sizes: &[(u16, u16)]) -> Traffic {
        Traffic {
            frame_sizes: sizes
                .iter()
                .map(|&(bytes, share)| FrameSize { bytes, share })
                .collect(),
            ..Traffic::default()
        }
    }

    #[test]
    fn every_flow_has_its_frame_of_the_smallest_size() {
        for (family, length) in [(AddressFamily::Inet, 60), (AddressFamily::Inet6, 62)] {
            let frames = frames(family, &Traffic::default()).unwrap();
            assert!(frames.are_smallest());
            assert_eq!(frames.lengths(), BTreeSet::from([length]));
            let mut distinct: Vec<_> = (0..2000).map(|number| frames.expected(number)).collect();
            assert!(distinct.iter().all(|frame| frame.len() == length));
            distinct.sort();
            distinct.dedup();
            assert_eq!(distinct.len(), 2000);
            assert_eq!(frames.sent(2000), frames.sent(0));
        }
    }

    #[test]
    fn a_tag_is_behind_the_mac_addresses_and_the_frames_are_otherwise_the_same() {
        let sizes = of_sizes(&[(64, 3), (1518, 1)]);
        for family in FAMILIES {
            let plain = frames(family, &sizes).unwrap();
            let vlan = Some(100);
            let tagged = frames(
                family,
                &Traffic {
                    vlan,
                    ..sizes.clone()
                },
            )
            .unwrap();
            assert_eq!(tagged.are_smallest(), plain.are_smallest());
            let longer = plain.lengths().into_iter().map(|length| length + 4);
            assert!(tagged.lengths().into_iter().eq(longer));
            for number in 0..40 {
                for (plain, tagged) in [
                    (plain.sent(number), tagged.sent(number)),
                    (plain.expected(number), tagged.expected(number)),
                ] {
                    // IEEE 802.1Q: TPID, and priority 0, not eligible to be dropped, VLAN 100.
                    assert_eq!(tagged[12..16], [0x81, 0, 0, 100]);
                    assert_eq!([&tagged[..12], &tagged[16..]].concat(), plain);
                }
            }
            let back = tagged.reversed(link(3), link(4));
            assert_eq!(back.sent(0)[12..16], [0x81, 0, 0, 100]);
            let passed = tagged.passing(Forwards::Unchanged);
            assert_eq!(passed.expected(7), tagged.sent(7));
        }
        for vlan in [0, 4095, u16::MAX] {
            let traffic = Traffic {
                vlan: Some(vlan),
                ..Traffic::default()
            };
            let error = frames(AddressFamily::Inet, &traffic)
                .unwrap_err()
                .to_string();
            let refused = format!("traffic: no VLAN has the number {vlan}; give 1 to 4094");
            assert_eq!(error, refused);
        }
    }

    #[test]
    fn an_imix_has_its_proportions_in_every_turn_of_every_family() {
        for family in FAMILIES {
            let imix = of_sizes(&[(64, 7), (594, 4), (1518, 1)]);
            let frames = frames(family, &imix).unwrap();
            assert!(!frames.are_smallest());
            let smallest = frames.lengths().into_iter().next().unwrap();
            assert_eq!(frames.lengths(), BTreeSet::from([smallest, 590, 1514]));
            for turn in [0, 1, 499, 500, 12_345] {
                let mut seen = BTreeMap::new();
                for number in 12 * turn..12 * (turn + 1) {
                    *seen.entry(frames.sent(number).len()).or_insert(0) += 1;
                }
                assert_eq!(seen, BTreeMap::from([(smallest, 7), (590, 4), (1514, 1)]));
            }
        }
    }

    #[test]
    fn addresses_and_ports_begin_where_they_are_told_to() {
        let traffic = Traffic {
            sources: 1,
            destinations: 2,
            source_ports: PortRange { first: 7, last: 8 },
            destination_ports: PortRange { first: 9, last: 9 },
            first_addresses: BTreeMap::from([(
                AddressFamily::Inet,
                FirstAddresses {
                    source: None,
                    destination: Some("198.19.200.7".parse().unwrap()),
                },
            )]),
            ..Traffic::default()
        };
        let seen = |frames: &Frames| -> Vec<_> {
            (0..4)
                .map(|number| {
                    let frame = frames.sent(number);
                    let flow = parse(&frame).unwrap().flow;
                    let (source, destination) =
                        (flow.addresses.source(), flow.addresses.destination());
                    format!(
                        "{source}:{} {destination}:{}",
                        flow.source_port, flow.destination_port
                    )
                })
                .collect()
        };
        let there = frames(AddressFamily::Inet, &traffic).unwrap();
        assert_eq!(
            seen(&there),
            [
                "198.18.10.1:7 198.19.200.7:9",
                "198.18.10.1:8 198.19.200.7:9",
                "198.18.10.1:7 198.19.200.8:9",
                "198.18.10.1:8 198.19.200.8:9",
            ]
        );
        let back = there.reversed(link(3), link(4));
        assert_eq!(
            seen(&back),
            [
                "198.19.200.7:9 198.18.10.1:7",
                "198.19.200.7:9 198.18.10.1:8",
                "198.19.200.8:9 198.18.10.1:7",
                "198.19.200.8:9 198.18.10.1:8",
            ]
        );
        let (sent, expected) = (back.sent(0), back.expected(0));
        assert_eq!(parse(&sent).unwrap().source_mac, link(3).source);
        assert_eq!(parse(&expected).unwrap().source_mac, link(4).source);
        // The other family's addresses are the lab's own.
        let other = frames(AddressFamily::Inet6, &traffic).unwrap();
        assert_eq!(seen(&other)[3], "2001:2:0:10::1:8 2001:2:0:8010::2:9");
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        let error = |traffic: &Traffic| frames(AddressFamily::Inet, traffic).unwrap_err();
        let too_many = Traffic {
            sources: 656,
            ..Traffic::default()
        };
        assert_eq!(
            error(&too_many).to_string(),
            "traffic: 656 sources x 100 destinations are 65600 flows; there are at most 65536 flows"
        );
        for bytes in [63, 1519] {
            let fault = TrafficFault::FrameSize {
                bytes,
                family: AddressFamily::Inet,
            };
            let error = error(&of_sizes(&[(64, 1), (bytes, 1)]));
            assert!(matches!(error, TrafficError::Traffic(seen) if seen == fault));
        }
        // As in an experiment, whoever asks.
        let to_groups = Traffic {
            destinations: 20,
            first_addresses: BTreeMap::from([(
                AddressFamily::Inet,
                FirstAddresses {
                    source: None,
                    destination: Some("223.255.255.250".parse().unwrap()),
                },
            )]),
            ..Traffic::default()
        };
        assert_eq!(
            error(&to_groups).to_string(),
            "traffic: no router forwards 224.0.0.0, one of the 20 addresses from 223.255.255.250: it is a multicast \
             address (224.0.0.0/4); begin elsewhere or ask for another number of addresses"
        );
    }

    #[test]
    fn no_eight_bytes_of_a_payload_come_twice() {
        let payload = payload(1472);
        let windows: BTreeSet<_> = payload.windows(8).collect();
        assert_eq!(windows.len(), 1472 - 7);
    }

    /// What the eBPF programs make of a head and a size; they have to agree with whole frames.
    fn resized(family: AddressFamily, head: Head, size: Size, rest: &[u8]) -> Vec<u8> {
        let [length, ip_length, udp_length, ip_change, udp_change, ..] = size;
        let mut bytes: Vec<u8> = head.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut set = |at: usize, value: u16| {
            bytes[at..at + 2].copy_from_slice(&value.to_ne_bytes());
        };
        let after = |at: usize, change: u16| {
            let old = head[at / 8].to_ne_bytes();
            let old = half(&old, at % 8);
            Sum::default().word(!old).word(change).checksum()
        };
        let never_zero = |checksum| if checksum == 0 { 0xffff } else { checksum };
        let head_length = match family {
            AddressFamily::Inet => {
                set(16, ip_length);
                set(24, after(24, ip_change));
                set(38, udp_length);
                set(40, never_zero(after(40, udp_change)));
                60
            }
            AddressFamily::Inet6 => {
                set(18, ip_length);
                set(58, udp_length);
                set(60, never_zero(after(60, udp_change)));
                62
            }
        };
        bytes.truncate(head_length);
        bytes.extend(&rest[..usize::from(length) - head_length]);
        bytes
    }

    proptest! {
        #[test]
        fn a_head_with_a_size_is_the_whole_frame(
            is_inet6: bool, source in 1_u32 << 24..127 << 24, destination in 128_u32 << 24..169 << 24, port: u16,
            size in 66u16..=1518,
        ) {
            let family = FAMILIES[usize::from(is_inet6)];
            let first = |last: u32| Some(match family {
                AddressFamily::Inet => IpAddr::from(last.to_be_bytes()),
                AddressFamily::Inet6 => IpAddr::from((u128::from(last) << 64).to_be_bytes()),
            });
            let traffic = Traffic {
                sources: 1,
                destinations: 1,
                source_ports: PortRange { first: port, last: port },
                first_addresses: BTreeMap::from([(
                    family,
                    FirstAddresses { source: first(source), destination: first(destination) },
                )]),
                ..of_sizes(&[(64, 1), (size, 1)])
            };
            let frames = frames(family, &traffic).unwrap();
            let sizes = frames.sizes_in_turn();
            let sent = frames.sent_heads().next().unwrap();
            let expected = frames.expected_heads().next().unwrap();
            for (number, size) in (0..).zip(sizes) {
                let rest = frames.rest();
                prop_assert_eq!(resized(family, sent, size, &rest), frames.sent(number));
                prop_assert_eq!(resized(family, expected, size, &rest), frames.expected(number));
            }
        }
    }
}
