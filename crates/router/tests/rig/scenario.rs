//! Any frames at any levels of the knobs, out of any bytes, and whether what comes of it may be.

use std::cell::Cell;
use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, LazyLock};

use etherparse::{Ethernet2HeaderSlice, Ipv4HeaderSlice, Ipv6HeaderSlice, ether_type};
use fwdlab_model::Knob;
use fwdlab_packet::ethernet::{IPV4, IPV6};
use fwdlab_router::{BUFFER_BYTES, Buffer, Drop, Event, Knobs, Layout, Network, Router};

use super::packets::{Inet, Inet6, frame_of, frame_to, inet, inet6, right_checksum, udp};
use super::verify::{is_sum_right, seen};
use super::{ROUTER, Rig, network, with_mtu};

/// Frames that come in before anything is polled: fewer than the smallest receive ring has descriptors.
const BURST_MAX: usize = 60;

/// What port 1's link may take, each with a network that takes it.
static NETWORKS: LazyLock<[(usize, Arc<Network>); 3]> = LazyLock::new(|| {
    [1500, 1280, 68].map(|mtu| {
        let network = with_mtu(&network(), mtu);
        (mtu.into(), Arc::new(Network::build(&network).unwrap()))
    })
});

thread_local! {
    /// Those of the last run, with what is left in them.
    static BUFFERS: Cell<Vec<Box<Buffer>>> = const { Cell::new(Vec::new()) };
}

const INET: [&str; 16] = [
    "198.18.10.7",
    "198.19.10.9",
    "198.18.0.1",
    "198.19.0.1",
    "198.18.0.2",
    "198.19.0.2",
    "198.19.0.77",
    "198.19.0.255",
    "192.0.2.1",
    "0.0.0.1",
    "127.0.0.1",
    "169.254.3.4",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "169.253.0.1",
];

const INET6: [&str; 16] = [
    "2001:2:0:10::7",
    "2001:2:0:8010::9",
    "2001:2:0:1::1",
    "2001:2:0:2::1",
    "2001:2:0:1::2",
    "2001:2:0:2::2",
    "2001:2:0:2::77",
    "2001:2:0:2::",
    "2001:db8::1",
    "::",
    "::1",
    "fe80::1",
    "fe80::2",
    "ff02::1",
    "ff0e::1",
    "fec0::1",
];

/// A run of the router.
#[derive(Debug)]
pub(crate) struct Scenario {
    knobs: Knobs,
    layout: Layout,
    /// Which of the networks.
    network: usize,
    /// What comes in between polls: ports and frames.
    bursts: Vec<Vec<(usize, Vec<u8>)>>,
}

/// Bytes that something is made of; zeros at their end.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        let (&first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        first
    }

    fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    fn some(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()]
    }

    /// More often a small length than a large one.
    fn length(&mut self) -> usize {
        match self.byte() {
            small @ 0..192 => usize::from(small % 64),
            _ => usize::from(self.word()) % 1473,
        }
    }
}

impl Scenario {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut bytes = Bytes(bytes);
        let switches = bytes.word();
        let mut knobs = Knobs::default();
        for (bit, knob) in [
            Knob::TxAbdicate,
            Knob::SimpleTx,
            Knob::Prefetch,
            Knob::L2Prepend,
            Knob::Ipv4Redirect,
            Knob::Ipv6Redirect,
        ]
        .into_iter()
        .enumerate()
        {
            knobs = knobs.with(knob, u32::from(switches >> bit & 1));
        }
        let knobs = knobs
            .with(
                Knob::HarvestMask,
                (u32::from(switches >> 6 & 3) * 0x20) | 0x80,
            )
            .with(Knob::OverrideNrxds, bytes.one_of(&[64, 128]))
            .with(Knob::OverrideNtxds, bytes.one_of(&[64, 256]))
            .with(Knob::TxReclaimThresh, bytes.one_of(&[0, 5, 63, 64, 512]));
        let layout = Layout::even(bytes.one_of(&[1, 1, 2]));
        let network = usize::from(bytes.byte()) % NETWORKS.len();
        let mut bursts = vec![Vec::new()];
        while !bytes.0.is_empty() {
            let is_full = bursts.last().is_none_or(|burst| burst.len() == BURST_MAX);
            let what = bytes.byte();
            if is_full || what & 0x30 == 0 {
                bursts.push(Vec::new());
            }
            let frame = frame(what, &mut bytes);
            let burst = bursts.last_mut().expect("there is one");
            burst.push((usize::from(what >> 7), frame));
        }
        Self {
            knobs,
            layout,
            network,
            bursts,
        }
    }

    /// Runs it, and looks at everything that comes out and at every count.
    ///
    /// # Panics
    /// Where anything is wrong.
    pub(crate) fn run(&self) {
        let (mtu, network) = &NETWORKS[self.network];
        let used = BUFFERS.take();
        let (router, left) = Router::assemble(network, &self.knobs, &self.layout, used).unwrap();
        let mut rig = Rig::of(router);
        let mut judge = Judge::new([1500, *mtu]);
        let mut out = 0;
        for burst in &self.bursts {
            for (port, frame) in burst {
                rig.receive(*port, std::slice::from_ref(frame));
                judge.receive(*port, frame);
            }
            loop {
                let received = rig.poll();
                let mut sent = 0;
                for port in 0..2 {
                    for frame in rig.sent(port) {
                        judge.send(port, &frame);
                        sent += 1;
                    }
                }
                out += sent;
                if received + sent == 0 {
                    break;
                }
            }
        }
        rig.assert_conservation();
        let counters = rig.counters();
        let events = |event| counters.events(event);
        let received: usize = self.bursts.iter().map(Vec::len).sum();
        assert_eq!(events(Event::Received), received as u64);
        let made = events(Event::Forwarded) + events(Event::Originated) + events(Event::Fragments);
        assert_eq!(made - events(Event::OwnLost), out as u64, "{counters:?}");
        let is_short = counters.drops(Drop::TxFull) + counters.drops(Drop::NoBuffer) > 0;
        judge.finish(is_short);

        let needed = Router::buffers_needed(network, &self.knobs, &self.layout);
        let mut buffers = Router::disassemble(rig.workers, rig.ports).unwrap();
        assert_eq!(buffers.len(), needed, "no buffer is lost");
        buffers.extend(left);
        BUFFERS.set(buffers);
    }
}

/// A frame of some kind out of bytes.
fn frame(what: u8, bytes: &mut Bytes<'_>) -> Vec<u8> {
    let port = usize::from(what >> 7);
    match what & 7 {
        0 => {
            let length = usize::from(bytes.word()) % (BUFFER_BYTES + 1);
            bytes.some(length)
        }
        1 => {
            let ether_type = bytes.one_of(&[IPV4, IPV6, 0x0806, 0x8100]);
            let length = bytes.length();
            let packet = bytes.some(length);
            frame_of(port, ether_type, &packet)
        }
        2..=4 => {
            let mut packet = inet_packet(bytes);
            change(&mut packet, bytes);
            if !bytes.byte().is_multiple_of(4) && packet.len() >= 20 {
                right_checksum(&mut packet);
            }
            frame_to(port, &packet)
        }
        _ => {
            let mut packet = inet6_packet(bytes);
            change(&mut packet, bytes);
            frame_to(port, &packet)
        }
    }
}

/// Sets some bytes, or cuts or adds some.
fn change(packet: &mut Vec<u8>, bytes: &mut Bytes<'_>) {
    for _ in 0..bytes.byte().saturating_sub(192) % 4 {
        let at = usize::from(bytes.byte()) % packet.len().min(64);
        packet[at] = bytes.byte();
    }
    match bytes.byte() {
        0..232 => {}
        232..244 => packet.truncate(usize::from(bytes.byte())),
        _ => {
            let more = bytes.length().min(BUFFER_BYTES - 14 - packet.len());
            packet.extend(bytes.some(more));
        }
    }
}

/// Often one that is far from its end.
fn hop_limit(bytes: &mut Bytes<'_>) -> u8 {
    bytes.one_of(&[64, 64, 64, 255, 2, 1, 0])
}

fn inet_packet(bytes: &mut Bytes<'_>) -> Vec<u8> {
    let source = inet(bytes.one_of(&INET));
    let destination = inet(bytes.one_of(&INET));
    let options = usize::from(bytes.byte().saturating_sub(192)) % 11 * 4;
    Inet {
        source,
        destination,
        ttl: hop_limit(bytes),
        type_of_service: bytes.byte(),
        identification: bytes.word(),
        flags_and_offset: bytes.one_of(&[0, 0, 0x4000, 0x2000, 0x2007, 0x0009, 0x1fff, 0xffff]),
        protocol: bytes.one_of(&[17, 6, 1, 47]),
        options: bytes.some(options),
        payload: udp(bytes.length()),
    }
    .packet()
}

fn inet6_packet(bytes: &mut Bytes<'_>) -> Vec<u8> {
    let source = inet6(bytes.one_of(&INET6));
    let destination = inet6(bytes.one_of(&INET6));
    let options = usize::from(bytes.byte().saturating_sub(192)) % 23;
    let packet = Inet6 {
        source,
        destination,
        hop_limit: hop_limit(bytes),
        traffic_class: bytes.byte(),
        flow_label: bytes.word().into(),
        next_header: bytes.one_of(&[17, 6, 58, 0, 43, 44, 51, 59, 60]),
        payload: udp(bytes.length()),
    };
    if options == 0 {
        return packet.packet();
    }
    let options = bytes.some(options);
    packet.with_hop_by_hop_options(&options).packet()
}

/// What becomes of a packet that is right, as RFC 1812 and RFC 8200 have it.
#[derive(Debug)]
struct Forwarding {
    /// The port that it leaves through, where it is behind one of the gateways or is one.
    egress: Option<usize>,
    /// With a hop less.
    packet: Vec<u8>,
    /// Whether there is nothing about it that a router may refuse.
    is_plain: bool,
    may_be_fragmented: bool,
}

/// Knows what came in, and what may come of it.
struct Judge {
    mtu: [usize; 2],
    received: Vec<Vec<u8>>,
    /// How often a packet may leave through a port, and how often it must.
    forwarding: HashMap<(usize, Vec<u8>), (usize, usize)>,
    /// What may leave through a port in fragments.
    fragmented: Vec<(usize, Vec<u8>)>,
}

impl Judge {
    fn new(mtu: [usize; 2]) -> Self {
        Self {
            mtu,
            received: Vec::new(),
            forwarding: HashMap::new(),
            fragmented: Vec::new(),
        }
    }

    fn receive(&mut self, port: usize, frame: &[u8]) {
        self.received
            .push(frame.get(14..).unwrap_or_default().to_vec());
        let Some(forwarding) = forwarding(port, frame) else {
            return;
        };
        let Some(egress) = forwarding.egress else {
            return;
        };
        // A link that is too narrow for IPv6 has none.
        if self.mtu[egress] < 1280 && forwarding.packet[0] >> 4 == 6 {
            return;
        }
        if forwarding.packet.len() <= self.mtu[egress] {
            let key = (egress, forwarding.packet);
            let (may, must) = self.forwarding.entry(key).or_default();
            *may += 1;
            *must += usize::from(forwarding.is_plain);
        } else if forwarding.may_be_fragmented {
            self.fragmented.push((egress, forwarding.packet));
        }
    }

    fn send(&mut self, port: usize, frame: &[u8]) {
        let seen = seen(port, self.mtu[port], frame);
        let key = (port, seen.packet);
        if let Some((may, must)) = self.forwarding.get_mut(&key)
            && *may > 0
        {
            *may -= 1;
            *must = must.saturating_sub(1);
            return;
        }
        let packet = key.1;
        if self
            .fragmented
            .iter()
            .any(|(egress, whole)| *egress == port && is_fragment_of(&packet, whole))
        {
            return;
        }
        let message = seen.message.unwrap_or_else(|| {
            panic!("from nowhere: {packet:02x?} of {:02x?}", self.received);
        });
        let own = [
            "198.18.0.2",
            "198.19.0.2",
            "2001:2:0:1::2",
            "2001:2:0:2::2",
            "fe80::2",
        ];
        assert!(
            own.iter().any(|own| seen.source.to_string() == *own),
            "{packet:02x?}"
        );
        let quotation = match (packet[0] >> 4, message.kind) {
            (4, 3 | 5 | 11 | 12) => &message.body[..],
            (6, 1..=4) => &message.body[..],
            (6, 137) => redirected(&message.body[32..]),
            (_, kind) => panic!("a message of type {kind}"),
        };
        assert!(
            self.received
                .iter()
                .any(|packet| packet.starts_with(quotation)),
            "{quotation:02x?} was never received"
        );
    }

    /// Shape: whether the router was short of something, and might drop what is right.
    fn finish(&self, is_short: bool) {
        if is_short {
            return;
        }
        for ((port, packet), (_, must)) in &self.forwarding {
            assert_eq!(*must, 0, "missing at port {port}: {packet:02x?}");
        }
    }
}

/// What an ICMPv6 redirect quotes.
fn redirected(options: &[u8]) -> &[u8] {
    let mut options = options;
    while let [kind, blocks, ..] = *options {
        let (option, rest) = options.split_at(usize::from(blocks) * 8);
        if kind == 4 {
            return &option[8..];
        }
        options = rest;
    }
    panic!("a redirect without the packet")
}

fn is_fragment_of(fragment: &[u8], whole: &[u8]) -> bool {
    let of = |packet: &[u8]| {
        let header = Ipv4HeaderSlice::from_slice(packet).unwrap();
        let rest = packet[header.slice().len()..].to_vec();
        let offset = usize::from(header.fragments_offset().value()) * 8;
        let same = (
            packet[1],
            header.identification(),
            header.ttl(),
            header.source(),
        );
        (
            rest,
            offset,
            (same, header.protocol(), header.destination()),
            header.more_fragments(),
        )
    };
    if whole[0] >> 4 != 4 || fragment[0] >> 4 != 4 {
        return false;
    }
    let (data, offset, same, more) = of(fragment);
    let (whole_data, whole_offset, whole_same, whole_more) = of(whole);
    let Some(start) = offset.checked_sub(whole_offset) else {
        return false;
    };
    let is_last = start + data.len() == whole_data.len();
    same == whole_same
        && whole_data.get(start..start + data.len()) == Some(&data[..])
        && (more == (!is_last || whole_more) || offset + data.len() > 65_000)
}

fn forwarding(port: usize, frame: &[u8]) -> Option<Forwarding> {
    let ethernet = Ethernet2HeaderSlice::from_slice(frame).ok()?;
    if ethernet.destination() != ROUTER[port].0 {
        return None;
    }
    match ethernet.ether_type() {
        ether_type::IPV4 => inet_forwarding(&frame[14..]),
        ether_type::IPV6 => inet6_forwarding(&frame[14..]),
        _ => None,
    }
}

fn inet_forwarding(payload: &[u8]) -> Option<Forwarding> {
    let header = Ipv4HeaderSlice::from_slice(payload).ok()?;
    let length = usize::from(header.total_len());
    let is_right = length >= header.slice().len()
        && length <= payload.len()
        && is_sum_right(header.slice())
        && header.ttl() > 1;
    let is_host = |address: Ipv4Addr| {
        !address.is_loopback()
            && !address.is_multicast()
            && !address.is_link_local()
            && address.octets()[0] != 0
            && address.octets()[0] < 240
    };
    let (source, destination) = (header.source_addr(), header.destination_addr());
    if !is_right || !is_host(source) || !is_host(destination) {
        return None;
    }
    let mut packet = payload[..length].to_vec();
    packet[8] -= 1;
    right_checksum(&mut packet);
    Some(Forwarding {
        egress: match destination.octets() {
            [198, 18, 10, _] | [198, 18, 0, 1] => Some(0),
            [198, 19, 10, _] | [198, 19, 0, 1] => Some(1),
            _ => None,
        },
        is_plain: header.ihl() == 5,
        may_be_fragmented: !header.dont_fragment(),
        packet,
    })
}

fn inet6_forwarding(payload: &[u8]) -> Option<Forwarding> {
    let header = Ipv6HeaderSlice::from_slice(payload).ok()?;
    let length = 40 + usize::from(header.payload_length());
    let is_host = |address: Ipv6Addr| {
        !address.is_unspecified()
            && !address.is_loopback()
            && !address.is_multicast()
            && !address.is_unicast_link_local()
    };
    let (source, destination) = (header.source_addr(), header.destination_addr());
    if length > payload.len()
        || header.hop_limit() <= 1
        || !is_host(source)
        || !is_host(destination)
    {
        return None;
    }
    let mut packet = payload[..length].to_vec();
    packet[7] -= 1;
    Some(Forwarding {
        egress: match destination.segments() {
            [0x2001, 2, 0, 0x10, ..] | [0x2001, 2, 0, 1, 0, 0, 0, 1] => Some(0),
            [0x2001, 2, 0, 0x8010, ..] | [0x2001, 2, 0, 2, 0, 0, 0, 1] => Some(1),
            _ => None,
        },
        is_plain: header.next_header().0 != 0,
        may_be_fragmented: false,
        packet,
    })
}
