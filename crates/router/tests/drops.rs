//! Every reason to drop a packet: by a frame made for it, counted exactly, and who is told what of it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod rig;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fwdlab_model::Knob;
use fwdlab_packet::ethernet::{IPV4, IPV6};
use fwdlab_router::{
    Drop, Event, ICMP_ERRORS_PER_S, ICMP6_ERRORS_PER_S, Knobs, NetworkConfig, RouteConfig,
    RouterError,
};

use rig::packets::{
    DONT_FRAGMENT, ICMP, ICMP6, Inet, Inet6, MORE_FRAGMENTS, frame_of, frame_to, inet, inet6,
    right_checksum, udp,
};
use rig::verify::{Seen, seen};
use rig::{Rig, network, with_mtu};

/// What the sender of a packet is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Nothing,
    /// Type, code, and the four bytes behind the checksum.
    Error(u8, u8, u32),
}
use Told::{Error, Nothing};

/// Which ICMP errors come to whom: from the router's address on the link to the sender.
fn assert_told(port: usize, frame: &[u8], told: Told, out: &[Vec<Vec<u8>>; 2], name: &str) {
    assert!(out[1 - port].is_empty(), "{name}: {out:02x?}");
    let Error(kind, code, rest) = told else {
        assert!(out[port].is_empty(), "{name}: {out:02x?}");
        return;
    };
    let [answer] = &out[port][..] else {
        panic!("{name}: {} answers", out[port].len());
    };
    let seen = seen(port, 1500, answer);
    let message = seen.message.as_ref().expect("it is an ICMP message");
    assert_eq!((message.kind, message.code), (kind, code), "{name}");
    assert_eq!(u32::from_be_bytes(message.rest), rest, "{name}");
    assert_eq!(
        (seen.source, seen.destination),
        (own(port, frame), source(frame)),
        "{name}"
    );
    assert_eq!(seen.hop_limit, 64, "{name}");
    // The packet as it came, as far as it fits.
    let packet = packet(frame);
    let (most, head) = if is_inet(frame) {
        (576, 28)
    } else {
        (1280, 48)
    };
    assert_eq!(
        message.body,
        packet[..packet.len().min(most - head)],
        "{name}"
    );
}

fn is_inet(frame: &[u8]) -> bool {
    frame[12..14] == IPV4.to_be_bytes()
}

/// The IP packet of a frame, without padding.
fn packet(frame: &[u8]) -> &[u8] {
    let length = if is_inet(frame) {
        usize::from(u16::from_be_bytes([frame[16], frame[17]]))
    } else {
        40 + usize::from(u16::from_be_bytes([frame[18], frame[19]]))
    };
    &frame[14..14 + length]
}

fn source(frame: &[u8]) -> IpAddr {
    if is_inet(frame) {
        Ipv4Addr::from(*frame[26..].first_chunk::<4>().unwrap()).into()
    } else {
        Ipv6Addr::from(*frame[22..].first_chunk::<16>().unwrap()).into()
    }
}

/// The router's address on a port's link, in a frame's family.
fn own(port: usize, frame: &[u8]) -> IpAddr {
    let text = match (port, is_inet(frame)) {
        (0, true) => "198.18.0.2",
        (_, true) => "198.19.0.2",
        (0, false) => "2001:2:0:1::2",
        (_, false) => "2001:2:0:2::2",
    };
    text.parse().unwrap()
}

/// A packet with some bytes changed, and its checksum made right again.
fn with(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut packet = Inet::default().packet();
    change(&mut packet);
    right_checksum(&mut packet);
    frame_of(0, IPV4, &packet)
}

fn with6(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut packet = Inet6::default().packet();
    change(&mut packet);
    frame_of(0, IPV6, &packet)
}

fn with_options(options: &[u8]) -> Inet {
    Inet {
        options: options.to_vec(),
        ..Inet::default()
    }
}

/// Port 1's link takes less, so that frames that the tester may send do not fit.
fn narrow() -> NetworkConfig {
    with_mtu(&network(), 1280)
}

/// Gateways that nobody knows the link address of.
fn with_dead_gateways() -> NetworkConfig {
    let mut network = narrow();
    let route = |prefix: &str, length, gateway: &str| RouteConfig {
        prefix: (prefix.parse().unwrap(), length),
        gateway: gateway.parse().unwrap(),
    };
    network.routes.extend([
        route("203.0.113.0", 24, "198.19.0.99"),
        route("2001:db8:9::", 48, "2001:2:0:2::99"),
    ]);
    network
}

/// Every reason but the two that depend on what the router has left, some for several causes: the frame,
/// which comes in at port 0, and what its sender is told.
fn cases() -> Vec<(&'static str, Drop, Vec<u8>, Told)> {
    let to = |destination| Inet::between("198.18.10.7", destination).frame(0);
    let from = |source| Inet::between(source, "198.19.10.9").frame(0);
    let to6 = |destination| Inet6::between("2001:2:0:10::7", destination).frame(0);
    let from6 = |source| Inet6::between(source, "2001:2:0:8010::9").frame(0);
    let options = |options: &[u8]| with_options(options).frame(0);
    let hop_by_hop = |options: &[u8]| Inet6::default().with_hop_by_hop_options(options).frame(0);
    let station = |octets: [u8; 6]| {
        let mut frame = Inet::default().frame(0);
        frame[..6].copy_from_slice(&octets);
        frame
    };
    let long = |flags_and_offset| Inet {
        flags_and_offset,
        payload: udp(1400),
        ..Inet::default()
    };
    let ttl = |ttl| Inet {
        ttl,
        ..Inet::default()
    };
    let hop_limit = |hop_limit| Inet6 {
        hop_limit,
        ..Inet6::default()
    };
    vec![
        (
            "another station",
            Drop::NotOurs,
            station([2, 0, 0, 0, 0, 9]),
            Nothing,
        ),
        ("all stations", Drop::NotOurs, station([0xff; 6]), Nothing),
        (
            "a group",
            Drop::NotOurs,
            station([1, 0, 0x5e, 0, 0, 1]),
            Nothing,
        ),
        (
            "no packet",
            Drop::EthernetShort,
            Inet::default().frame(0)[..14].to_vec(),
            Nothing,
        ),
        (
            "half a header",
            Drop::EthernetShort,
            Inet::default().frame(0)[..33].to_vec(),
            Nothing,
        ),
        (
            "half an IPv6 header",
            Drop::EthernetShort,
            Inet6::default().frame(0)[..53].to_vec(),
            Nothing,
        ),
        (
            "no EtherType",
            Drop::EthernetShort,
            Inet::default().frame(0)[..12].to_vec(),
            Nothing,
        ),
        (
            "LLDP",
            Drop::EtherType,
            frame_of(0, 0x88cc, &[0; 46]),
            Nothing,
        ),
        (
            "VLAN",
            Drop::EtherType,
            frame_of(0, 0x8100, &[0; 46]),
            Nothing,
        ),
        (
            "IEEE 802.3",
            Drop::EtherType,
            frame_of(0, 46, &[0; 46]),
            Nothing,
        ),
        ("ARP", Drop::Arp, frame_of(0, 0x0806, &[0; 46]), Nothing),
        (
            "version 6 as IPv4",
            Drop::InetVersion,
            with(|packet| packet[0] = 0x65),
            Nothing,
        ),
        (
            "version 0",
            Drop::InetVersion,
            with(|packet| packet[0] = 0x05),
            Nothing,
        ),
        (
            "a header of 16",
            Drop::InetHeaderLength,
            with(|packet| packet[0] = 0x44),
            Nothing,
        ),
        (
            "a header of 0",
            Drop::InetHeaderLength,
            with(|packet| packet[0] = 0x40),
            Nothing,
        ),
        (
            "shorter than its header",
            Drop::InetLength,
            with(|packet| packet[3] = 19),
            Nothing,
        ),
        (
            "shorter than its options",
            Drop::InetLength,
            with(|packet| {
                packet[0] = 0x4f;
                packet.resize(60, 0);
            }),
            Nothing,
        ),
        (
            "longer than its frame",
            Drop::InetLength,
            with(|packet| packet[3] = 47),
            Nothing,
        ),
        (
            "much longer than its frame",
            Drop::InetLength,
            with(|packet| packet[2] = 0xff),
            Nothing,
        ),
        (
            "a wrong checksum",
            Drop::InetChecksum,
            frame_to(0, &{
                let mut packet = Inet::default().packet();
                packet[11] ^= 1;
                packet
            }),
            Nothing,
        ),
        (
            "a wrong checksum with options",
            Drop::InetChecksum,
            frame_to(0, &{
                let mut packet = with_options(&[1; 4]).packet();
                packet[10] ^= 0x80;
                packet
            }),
            Nothing,
        ),
        (
            "from this network",
            Drop::InetMartianSource,
            from("0.0.0.0"),
            Nothing,
        ),
        (
            "from loopback",
            Drop::InetMartianSource,
            from("127.0.0.1"),
            Nothing,
        ),
        (
            "from a link",
            Drop::InetMartianSource,
            from("169.254.1.1"),
            Nothing,
        ),
        (
            "from a group",
            Drop::InetMartianSource,
            from("224.0.0.1"),
            Nothing,
        ),
        (
            "from all",
            Drop::InetMartianSource,
            from("255.255.255.255"),
            Nothing,
        ),
        (
            "from class E",
            Drop::InetMartianSource,
            from("240.0.0.1"),
            Nothing,
        ),
        (
            "from loopback, with options",
            Drop::InetMartianSource,
            Inet {
                source: inet("127.0.0.1"),
                ..with_options(&[1; 4])
            }
            .frame(0),
            Nothing,
        ),
        (
            "to this network",
            Drop::InetMartianDestination,
            to("0.1.2.3"),
            Nothing,
        ),
        (
            "to loopback",
            Drop::InetMartianDestination,
            to("127.0.0.1"),
            Nothing,
        ),
        (
            "to a link",
            Drop::InetMartianDestination,
            to("169.254.255.1"),
            Nothing,
        ),
        (
            "to a group",
            Drop::InetMartianDestination,
            to("239.1.2.3"),
            Nothing,
        ),
        (
            "to all",
            Drop::InetMartianDestination,
            to("255.255.255.255"),
            Nothing,
        ),
        (
            "to all of port 1's link",
            Drop::InetMartianDestination,
            to("198.19.0.255"),
            Nothing,
        ),
        (
            "to all of port 0's link",
            Drop::InetMartianDestination,
            to("198.18.0.255"),
            Nothing,
        ),
        (
            "to a group, with options",
            Drop::InetMartianDestination,
            Inet {
                destination: inet("224.0.0.5"),
                ..with_options(&[1; 4])
            }
            .frame(0),
            Nothing,
        ),
        (
            "a loose source route",
            Drop::InetOptions,
            options(&[131, 7, 4, 192, 0, 2, 1, 0]),
            Error(3, 5, 0),
        ),
        (
            "a strict source route",
            Drop::InetOptions,
            options(&[137, 7, 4, 192, 0, 2, 1, 0]),
            Error(3, 5, 0),
        ),
        (
            "an option of 9 in 4",
            Drop::InetOptions,
            options(&[7, 9, 4, 0]),
            Error(12, 0, 21 << 24),
        ),
        (
            "an option of 1",
            Drop::InetOptions,
            options(&[1, 30, 1, 0]),
            Error(12, 0, 22 << 24),
        ),
        (
            "a pointer inside",
            Drop::InetOptions,
            options(&[7, 3, 2, 0]),
            Error(12, 0, 22 << 24),
        ),
        ("TTL 1", Drop::InetTtl, ttl(1).frame(0), Error(11, 0, 0)),
        ("TTL 0", Drop::InetTtl, ttl(0).frame(0), Error(11, 0, 0)),
        (
            "TTL 1 with options",
            Drop::InetTtl,
            Inet {
                ttl: 1,
                ..with_options(&[1; 4])
            }
            .frame(0),
            Error(11, 0, 0),
        ),
        (
            "TTL 1 of a first fragment",
            Drop::InetTtl,
            Inet {
                flags_and_offset: MORE_FRAGMENTS,
                payload: udp(16),
                ..ttl(1)
            }
            .frame(0),
            Error(11, 0, 0),
        ),
        (
            "TTL 1 of a later fragment",
            Drop::InetTtl,
            Inet {
                flags_and_offset: 1,
                ..ttl(1)
            }
            .frame(0),
            Nothing,
        ),
        (
            "TTL 1 of an ICMP error",
            Drop::InetTtl,
            Inet {
                protocol: ICMP,
                payload: vec![3, 0, 0xfc, 0xff, 0, 0, 0, 0],
                ..ttl(1)
            }
            .frame(0),
            Nothing,
        ),
        (
            "TTL 1 of an echo",
            Drop::InetTtl,
            Inet {
                protocol: ICMP,
                payload: vec![8, 0, 0xf7, 0xff, 0, 0, 0, 0],
                ..ttl(1)
            }
            .frame(0),
            Error(11, 0, 0),
        ),
        (
            "TTL 1, more than is quoted",
            Drop::InetTtl,
            Inet {
                payload: udp(1000),
                ..ttl(1)
            }
            .frame(0),
            Error(11, 0, 0),
        ),
        (
            "no route",
            Drop::InetNoRoute,
            to("192.0.2.1"),
            Error(3, 0, 0),
        ),
        (
            "TTL 1 and no route",
            Drop::InetNoRoute,
            with_ttl_1(&to("192.0.2.1")),
            Error(3, 0, 0),
        ),
        (
            "too big",
            Drop::InetTooBig,
            long(DONT_FRAGMENT).frame(0),
            Error(3, 4, 1280),
        ),
        (
            "too big by one",
            Drop::InetTooBig,
            Inet {
                payload: udp(1281 - 28),
                ..long(DONT_FRAGMENT)
            }
            .frame(0),
            Error(3, 4, 1280),
        ),
        (
            "nobody there",
            Drop::InetNeighbour,
            to("198.19.0.77"),
            Error(3, 1, 0),
        ),
        (
            "a dead gateway",
            Drop::InetNeighbour,
            to("203.0.113.1"),
            Error(3, 1, 0),
        ),
        (
            "a dead gateway, and too big",
            Drop::InetNeighbour,
            Inet {
                destination: inet("203.0.113.1"),
                ..long(0)
            }
            .frame(0),
            Error(3, 1, 0),
        ),
        ("to port 0", Drop::InetLocal, to("198.18.0.2"), Nothing),
        ("to port 1", Drop::InetLocal, to("198.19.0.2"), Nothing),
        (
            "version 4 as IPv6",
            Drop::Inet6Version,
            with6(|packet| packet[0] = 0x45),
            Nothing,
        ),
        (
            "longer than its frame",
            Drop::Inet6Length,
            with6(|packet| packet[5] += 1),
            Nothing,
        ),
        (
            "much longer",
            Drop::Inet6Length,
            with6(|packet| packet[4] = 0xff),
            Nothing,
        ),
        (
            "from nobody",
            Drop::Inet6MartianSource,
            from6("::"),
            Nothing,
        ),
        (
            "from loopback",
            Drop::Inet6MartianSource,
            from6("::1"),
            Nothing,
        ),
        (
            "from a link",
            Drop::Inet6MartianSource,
            from6("fe80::1"),
            Nothing,
        ),
        (
            "from a group",
            Drop::Inet6MartianSource,
            from6("ff02::1"),
            Nothing,
        ),
        (
            "to nobody",
            Drop::Inet6MartianDestination,
            to6("::"),
            Nothing,
        ),
        (
            "to loopback",
            Drop::Inet6MartianDestination,
            to6("::1"),
            Nothing,
        ),
        (
            "to a link",
            Drop::Inet6MartianDestination,
            to6("febf::1"),
            Nothing,
        ),
        (
            "to a group",
            Drop::Inet6MartianDestination,
            to6("ff05::2"),
            Nothing,
        ),
        (
            "to be discarded",
            Drop::Inet6Options,
            hop_by_hop(&[0x5e, 0]),
            Nothing,
        ),
        (
            "to be reported",
            Drop::Inet6Options,
            hop_by_hop(&[1, 0, 0x9e, 0]),
            Error(4, 2, 44),
        ),
        (
            "to be reported unless multicast",
            Drop::Inet6Options,
            hop_by_hop(&[0xde, 0]),
            Error(4, 2, 42),
        ),
        (
            "a jumbogram",
            Drop::Inet6Options,
            hop_by_hop(&[0xc2, 4, 0, 1, 0, 0]),
            Error(4, 2, 42),
        ),
        (
            "an option beyond its header",
            Drop::Inet6Options,
            hop_by_hop(&[0x1e, 9, 0, 0, 0, 0]),
            Error(4, 0, 43),
        ),
        (
            "options beyond the packet",
            Drop::Inet6Options,
            Inet6 {
                next_header: 0,
                payload: vec![17, 1, 0, 0, 0, 0, 0, 0],
                ..Inet6::default()
            }
            .frame(0),
            Error(4, 0, 41),
        ),
        (
            "hop limit 1",
            Drop::Inet6HopLimit,
            hop_limit(1).frame(0),
            Error(3, 0, 0),
        ),
        (
            "hop limit 0",
            Drop::Inet6HopLimit,
            hop_limit(0).frame(0),
            Error(3, 0, 0),
        ),
        (
            "hop limit 1 with options",
            Drop::Inet6HopLimit,
            hop_limit(1).with_hop_by_hop_options(&[1, 0]).frame(0),
            Error(3, 0, 0),
        ),
        (
            "hop limit 1 of an error",
            Drop::Inet6HopLimit,
            Inet6 {
                next_header: ICMP6,
                payload: vec![1, 0, 0, 0, 0, 0, 0, 0],
                ..hop_limit(1)
            }
            .frame(0),
            Nothing,
        ),
        (
            "hop limit 1 of an echo",
            Drop::Inet6HopLimit,
            Inet6 {
                next_header: ICMP6,
                payload: vec![128, 0, 0, 0, 0, 0, 0, 0],
                ..hop_limit(1)
            }
            .frame(0),
            Error(3, 0, 0),
        ),
        (
            "hop limit 1, more than is quoted",
            Drop::Inet6HopLimit,
            Inet6 {
                payload: udp(1400),
                ..hop_limit(1)
            }
            .frame(0),
            Error(3, 0, 0),
        ),
        (
            "no route",
            Drop::Inet6NoRoute,
            to6("2001:db8::1"),
            Error(1, 0, 0),
        ),
        (
            "too big by one",
            Drop::Inet6TooBig,
            Inet6 {
                payload: udp(1281 - 48),
                ..Inet6::default()
            }
            .frame(0),
            Error(2, 0, 1280),
        ),
        (
            "nobody there",
            Drop::Inet6Neighbour,
            to6("2001:2:0:2::77"),
            Error(1, 3, 0),
        ),
        (
            "a dead gateway",
            Drop::Inet6Neighbour,
            to6("2001:db8:9::1"),
            Error(1, 3, 0),
        ),
        ("to port 0", Drop::Inet6Local, to6("2001:2:0:1::2"), Nothing),
        ("to port 1", Drop::Inet6Local, to6("2001:2:0:2::2"), Nothing),
        (
            "to any router of a link",
            Drop::Inet6Local,
            to6("2001:2:0:2::"),
            Nothing,
        ),
    ]
}

fn with_ttl_1(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[22] = 1;
    right_checksum(&mut frame[14..34]);
    frame
}

#[test]
fn every_reason_is_counted_once_and_its_sender_told_what_he_may_know() {
    for l2_prepend in [0, 1] {
        let knobs = Knobs::default().with(Knob::L2Prepend, l2_prepend);
        for (name, reason, frame, told) in cases() {
            let mut rig = Rig::new(&with_dead_gateways(), &knobs);
            let out = rig.pass(0, &frame);
            assert_told(0, &frame, told, &out, name);
            let counters = rig.counters();
            assert_eq!(counters.drops(reason), 1, "{name}: {counters:?}");
            assert_eq!(counters.all_drops(), 1, "{name}");
            assert_eq!(counters.events(Event::Received), 1, "{name}");
            assert_eq!(
                counters.events(Event::Originated),
                u64::from(told != Nothing)
            );
            rig.assert_conservation();
        }
    }
}

#[test]
fn no_reason_is_left_out() {
    let provoked: Vec<_> = cases().iter().map(|(_, reason, ..)| *reason).collect();
    for reason in Drop::ALL {
        let elsewhere = matches!(reason, Drop::TxFull | Drop::NoBuffer);
        assert!(provoked.contains(reason) != elsewhere, "{reason:?}");
    }
}

#[test]
fn all_of_them_at_once_among_good_frames() {
    let mut rig = Rig::new(&with_dead_gateways(), &Knobs::default());
    let mut frames = Vec::new();
    for (index, (_, _, frame, _)) in cases().into_iter().enumerate() {
        frames.push(frame);
        frames.push(if index % 2 == 0 {
            Inet::default().frame(0)
        } else {
            Inet6::default().frame(0)
        });
    }
    let out = rig.exchange(0, &frames);
    let counters = rig.counters();
    for reason in Drop::ALL {
        let expected = cases().iter().filter(|case| case.1 == *reason).count();
        assert_eq!(counters.drops(*reason), expected as u64, "{reason:?}");
    }
    assert_eq!(out[1].len(), cases().len());
    let told = cases().iter().filter(|case| case.3 != Nothing).count();
    assert_eq!(out[0].len(), told);
    rig.assert_conservation();
}

#[test]
fn what_is_told_comes_from_the_port_that_the_packet_came_in_at() {
    for frame in [
        with_ttl_1(&Inet::between("198.19.10.9", "198.18.10.7").frame(1)),
        Inet6 {
            hop_limit: 1,
            ..Inet6::between("2001:2:0:8010::9", "2001:2:0:10::7")
        }
        .frame(1),
    ] {
        let mut rig = Rig::new(&network(), &Knobs::default());
        let out = rig.pass(1, &frame);
        let told = if is_inet(&frame) {
            Error(11, 0, 0)
        } else {
            Error(3, 0, 0)
        };
        assert_told(1, &frame, told, &out, "from port 1");
    }
}

#[test]
fn an_error_goes_where_the_route_to_the_sender_leads_and_nowhere_without_one() {
    // Its source is behind port 1, but it came in at port 0. Of which port the address is, RFC 1812 says and
    // RFC 4443 leaves open.
    let hop_limit_1 = Inet6 {
        hop_limit: 1,
        ..Inet6::between("2001:2:0:8010::1", "2001:2:0:8010::2")
    };
    for (frame, source, destination) in [
        (
            with_ttl_1(&Inet::between("198.19.10.1", "198.19.10.2").frame(0)),
            "198.19.0.2",
            "198.19.10.1",
        ),
        (hop_limit_1.frame(0), "2001:2:0:1::2", "2001:2:0:8010::1"),
    ] {
        let mut rig = Rig::new(&network(), &Knobs::default());
        let [back, on] = rig.pass(0, &frame);
        assert!(back.is_empty());
        let seen = seen(1, 1500, &on[0]);
        assert_eq!(seen.source.to_string(), source);
        assert_eq!(seen.destination.to_string(), destination);
    }
    for frame in [
        with_ttl_1(&Inet::between("192.0.2.9", "198.19.10.2").frame(0)),
        // The router itself, and a station that is not there.
        with_ttl_1(&Inet::between("198.18.0.2", "198.19.10.2").frame(0)),
        with_ttl_1(&Inet::between("198.18.0.9", "198.19.10.2").frame(0)),
        with_ttl_1(&Inet::between("198.18.0.255", "198.19.10.2").frame(0)),
    ] {
        let mut rig = Rig::new(&network(), &Knobs::default());
        assert_eq!(rig.pass(0, &frame), [const { Vec::<Vec<u8>>::new() }; 2]);
        let counters = rig.counters();
        assert_eq!(counters.drops(Drop::InetTtl), 1);
        assert_eq!(counters.events(Event::ErrorsSuppressed), 1);
        assert_eq!(counters.events(Event::Originated), 0);
    }
}

#[test]
fn errors_are_limited_and_what_is_silent_does_not_count_against_the_limit() {
    let silent = Inet {
        ttl: 1,
        flags_and_offset: 1,
        ..Inet::default()
    };
    let expired = Inet {
        ttl: 1,
        ..Inet::default()
    };
    let expired6 = Inet6 {
        hop_limit: 1,
        ..Inet6::default()
    };
    let mut rig = Rig::new(&network(), &Knobs::default());
    rig.now_ns = 7;
    let frames = |frame: Vec<u8>, count| vec![frame; count];
    rig.exchange(0, &frames(silent.frame(0), 1000));
    assert_eq!(rig.counters().events(Event::ErrorsSuppressed), 1000);
    for (frame, limit) in [
        (expired.frame(0), ICMP_ERRORS_PER_S),
        (expired6.frame(0), ICMP6_ERRORS_PER_S),
    ] {
        let told = |rig: &mut Rig| rig.exchange(0, &frames(frame.clone(), 1000))[0].len();
        rig.now_ns = 7;
        assert_eq!(told(&mut rig), limit as usize);
        assert_eq!(told(&mut rig), 0);
        rig.now_ns += 500_000_000;
        assert_eq!(told(&mut rig), limit as usize / 2);
    }
    let counters = rig.counters();
    assert_eq!(counters.drops(Drop::InetTtl), 4000);
    assert_eq!(counters.drops(Drop::Inet6HopLimit), 3000);
    assert_eq!(counters.events(Event::Originated), 300 + 150);
    assert_eq!(counters.events(Event::ErrorsSuppressed), 7000 - 450);
    rig.assert_conservation();
}

/// What is forwarded of a packet: a hop less, and nothing else.
fn assert_forwarded(sent: &[u8], seen: &Seen) {
    let mut expected = sent.to_vec();
    if sent[0] >> 4 == 4 {
        expected[8] -= 1;
        right_checksum(&mut expected);
    } else {
        expected[7] -= 1;
    }
    assert_eq!(seen.packet, expected);
}

#[test]
fn options_that_are_none_of_a_routers_business_are_forwarded() {
    let packets = [
        with_options(&[1; 4]).packet(),
        with_options(&[0; 40]).packet(),
        with_options(&[7, 7, 4, 0, 0, 0, 0, 0]).packet(),
        with_options(&[68, 8, 5, 0, 0, 0, 0, 0]).packet(),
        with_options(&[148, 4, 0, 0]).packet(),
        with_options(&[0x9e, 4, 1, 2, 0, 99, 99, 99]).packet(),
        Inet6::default().with_hop_by_hop_options(&[1, 0]).packet(),
        Inet6::default()
            .with_hop_by_hop_options(&[5, 2, 0, 0])
            .packet(),
        Inet6::default()
            .with_hop_by_hop_options(&[0x1e, 4, 1, 2, 3, 4])
            .packet(),
        // No other extension header is looked at: a routing header, destination options.
        Inet6 {
            next_header: 43,
            payload: vec![17, 0, 0, 1, 0, 0, 0, 0],
            ..Inet6::default()
        }
        .packet(),
        Inet6 {
            next_header: 60,
            payload: vec![17, 99, 0xde, 1],
            ..Inet6::default()
        }
        .packet(),
    ];
    for l2_prepend in [0, 1] {
        let knobs = Knobs::default().with(Knob::L2Prepend, l2_prepend);
        for packet in &packets {
            let mut rig = Rig::new(&network(), &knobs);
            let [back, on] = rig.pass(0, &frame_to(0, packet));
            assert!(back.is_empty());
            assert_forwarded(packet, &seen(1, 1500, &on[0]));
            assert_eq!(rig.counters().events(Event::Forwarded), 1);
            rig.assert_conservation();
        }
    }
}

#[test]
fn the_checksum_is_that_of_the_whole_header_for_every_checksum() {
    let mut rig = Rig::new(&network(), &Knobs::default());
    let identifications: Vec<u16> = (0..=u16::MAX).collect();
    for some in identifications.chunks(1024) {
        let packets = some.iter().map(|&identification| Inet {
            identification,
            ..Inet::default()
        });
        let frames: Vec<_> = packets.clone().map(|packet| packet.frame(0)).collect();
        let [_, on] = rig.exchange(0, &frames);
        assert_eq!(on.len(), some.len());
        for (frame, packet) in on.iter().zip(packets) {
            assert_forwarded(&packet.packet(), &seen(1, 1500, frame));
        }
    }
}

#[test]
fn what_follows_a_packet_in_its_frame_stays_behind() {
    for (packet, mtu) in [
        (Inet::default().packet(), 1500),
        (Inet6::default().packet(), 1500),
        (with_options(&[1; 4]).packet(), 1280),
        (
            Inet6::default().with_hop_by_hop_options(&[1, 0]).packet(),
            1280,
        ),
    ] {
        for extra in [0, 1, 2, 100, 1400] {
            let network = with_mtu(&network(), mtu);
            let mut rig = Rig::new(&network, &Knobs::default());
            let mut frame = frame_to(0, &packet);
            frame.extend(vec![0xee; extra]);
            let [_, on] = rig.pass(0, &frame);
            assert_forwarded(&packet, &seen(1, mtu.into(), &on[0]));
            assert_eq!(on[0].len(), (14 + packet.len()).max(60));
        }
    }
}

#[test]
fn an_error_quotes_no_more_than_fits_the_link_to_the_sender() {
    let expired = Inet {
        ttl: 1,
        payload: udp(1000),
        ..Inet::between("198.19.10.9", "198.18.10.7")
    };
    for mtu in [68, 300, 575, 576, 577, 1500] {
        let mut rig = Rig::new(&with_mtu(&network(), mtu), &Knobs::default());
        let [_, on] = rig.pass(1, &expired.frame(1));
        let seen = seen(1, mtu.into(), &on[0]);
        assert_eq!(seen.packet.len(), usize::from(mtu).min(576));
        let message = seen.message.unwrap();
        assert!(expired.packet().starts_with(&message.body));
    }
}

#[test]
fn a_link_takes_what_every_link_takes() {
    let refused = |network: &NetworkConfig| match fwdlab_router::Network::build(network) {
        Err(RouterError::Mtu { port, mtu, minimum }) => Some((port, mtu, minimum)),
        _ => None,
    };
    let mut narrow = network();
    narrow.ports[1].mtu = 1279;
    assert_eq!(refused(&narrow), Some((1, 1279, 1280)));
    assert_eq!(refused(&with_mtu(&network(), 1279)), None);
    assert_eq!(refused(&with_mtu(&network(), 67)), Some((1, 67, 68)));
}

#[test]
fn a_packet_that_just_fits_is_forwarded() {
    for packet in [
        Inet {
            payload: udp(1280 - 28),
            flags_and_offset: DONT_FRAGMENT,
            ..Inet::default()
        }
        .packet(),
        Inet6 {
            payload: udp(1280 - 48),
            ..Inet6::default()
        }
        .packet(),
    ] {
        assert_eq!(packet.len(), 1280);
        let mut rig = Rig::new(&narrow(), &Knobs::default());
        let [back, on] = rig.pass(0, &frame_to(0, &packet));
        assert!(back.is_empty());
        assert_forwarded(&packet, &seen(1, 1280, &on[0]));
        assert_eq!(rig.counters().events(Event::Fragmented), 0);
    }
}

/// The data of fragments put together, which has to be all of it, once.
fn reassembled(fragments: &[Seen], first_block: usize) -> Vec<u8> {
    let mut data = Vec::new();
    for (index, fragment) in fragments.iter().enumerate() {
        let packet = &fragment.packet;
        let field = u16::from_be_bytes([packet[6], packet[7]]);
        assert_eq!(usize::from(field & 0x1fff), first_block + data.len() / 8);
        assert_eq!(data.len() % 8, 0);
        let is_last = index + 1 == fragments.len();
        assert_eq!(field & MORE_FRAGMENTS == 0, is_last);
        let header_length = usize::from(packet[0] & 0x0f) * 4;
        data.extend(&packet[header_length..]);
    }
    data
}

#[test]
fn a_packet_too_long_for_the_next_link_goes_in_fragments() {
    for l2_prepend in [0, 1] {
        for mtu in [68, 100, 576, 1280, 1499] {
            for (length, options) in [
                (1400, &[][..]),
                (1480 - 48, &[1, 0x9e, 4, 1, 2, 0x1e, 2, 0]),
            ] {
                let packet = Inet {
                    payload: udp(length),
                    options: options.to_vec(),
                    type_of_service: 0xb8,
                    ..Inet::default()
                };
                if packet.packet().len() <= mtu {
                    continue;
                }
                let network = with_mtu(&network(), u16::try_from(mtu).unwrap());
                let knobs = Knobs::default().with(Knob::L2Prepend, l2_prepend);
                let mut rig = Rig::new(&network, &knobs);
                let [back, on] = rig.pass(0, &packet.frame(0));
                assert!(back.is_empty());
                let fragments: Vec<_> = on.iter().map(|frame| seen(1, mtu, frame)).collect();
                assert!(fragments.len() > 1);
                assert_eq!(reassembled(&fragments, 0), packet.payload);
                for fragment in &fragments {
                    assert_eq!(fragment.hop_limit, 63);
                    assert_eq!(fragment.packet[1], 0xb8);
                    assert_eq!(fragment.packet[4..6], [0x12, 0x34]);
                    assert_eq!(fragment.source, packet.source);
                    assert_eq!(fragment.destination, packet.destination);
                }
                // The first has all options, the others those that are to be copied.
                assert_eq!(fragments[0].packet[20..20 + options.len()], *options);
                let later = &fragments[1].packet;
                let copied: &[u8] = if options.is_empty() {
                    &[]
                } else {
                    &[0x9e, 4, 1, 2]
                };
                assert_eq!(later[20..usize::from(later[0] & 0x0f) * 4], *copied);
                let counters = rig.counters();
                assert_eq!(counters.events(Event::Fragmented), 1);
                assert_eq!(counters.events(Event::Fragments), fragments.len() as u64);
                assert_eq!(counters.events(Event::Forwarded), 0);
                rig.assert_conservation();
            }
        }
    }
}

#[test]
fn a_fragment_is_taken_apart_into_fragments_of_its_packet() {
    let packet = Inet {
        payload: udp(1392),
        flags_and_offset: 10,
        ..Inet::default()
    };
    let mut rig = Rig::new(&narrow(), &Knobs::default());
    let [_, on] = rig.pass(0, &packet.frame(0));
    let fragments: Vec<_> = on.iter().map(|frame| seen(1, 1280, frame)).collect();
    assert_eq!(fragments.len(), 2);
    assert_eq!(reassembled(&fragments, 10), packet.payload);
}

#[test]
fn a_fragment_that_fits_is_forwarded_as_it_is() {
    for flags_and_offset in [
        MORE_FRAGMENTS,
        MORE_FRAGMENTS | 5,
        0x1fff,
        DONT_FRAGMENT | 7,
    ] {
        let packet = Inet {
            flags_and_offset,
            payload: vec![7; 16],
            ..Inet::default()
        };
        let mut rig = Rig::new(&network(), &Knobs::default());
        let [_, on] = rig.pass(0, &packet.frame(0));
        assert_forwarded(&packet.packet(), &seen(1, 1500, &on[0]));
    }
}

/// What comes back of a packet that leaves where it came in, and whether it is forwarded.
fn redirected(network: &NetworkConfig, knobs: &Knobs, frame: &[u8]) -> Vec<Seen> {
    let mut rig = Rig::new(network, knobs);
    let [back, on] = rig.pass(0, frame);
    assert!(on.is_empty());
    let back: Vec<_> = back.iter().map(|frame| seen(0, 1500, frame)).collect();
    assert_forwarded(packet(frame), back.last().unwrap());
    assert_eq!(rig.counters().events(Event::Forwarded), 1);
    assert_eq!(
        rig.counters().events(Event::Originated),
        back.len() as u64 - 1
    );
    rig.assert_conservation();
    back[..back.len() - 1].to_vec()
}

#[test]
fn a_better_first_hop_is_told_to_senders_on_the_link() {
    let on_link = Inet::between("198.18.0.1", "198.18.10.9").frame(0);
    for l2_prepend in [0, 1] {
        let at = |level| {
            Knobs::default()
                .with(Knob::Ipv4Redirect, level)
                .with(Knob::L2Prepend, l2_prepend)
        };
        let told = redirected(&network(), &at(1), &on_link);
        let [redirect] = &told[..] else {
            panic!("{told:?}");
        };
        assert_eq!(redirect.source, inet("198.18.0.2"));
        assert_eq!(redirect.destination, inet("198.18.0.1"));
        let message = redirect.message.as_ref().unwrap();
        assert_eq!((message.kind, message.code), (5, 1));
        assert_eq!(message.rest, [198, 18, 0, 1]);
        assert_eq!(message.body, packet(&on_link));
        // Not at the other level, and nobody who is not on the link.
        assert_eq!(redirected(&network(), &at(0), &on_link), []);
        let off_link = Inet::between("198.18.10.7", "198.18.10.9").frame(0);
        assert_eq!(redirected(&network(), &at(1), &off_link), []);
    }
}

#[test]
fn a_redirect_to_a_station_on_the_link_names_it() {
    let frame = Inet::between("198.18.0.1", "198.18.0.1").frame(0);
    let told = redirected(&network(), &Knobs::default(), &frame);
    assert_eq!(told[0].message.as_ref().unwrap().rest, [198, 18, 0, 1]);
    let frame = Inet6::between("2001:2:0:1::1", "2001:2:0:1::1").frame(0);
    let told = redirected(&network(), &Knobs::default(), &frame);
    let body = &told[0].message.as_ref().unwrap().body;
    assert_eq!(body[..16], inet6("2001:2:0:1::1").octets());
    assert_eq!(body[16..32], inet6("2001:2:0:1::1").octets());
}

#[test]
fn a_better_first_hop_of_ipv6_is_told_by_link_local_addresses() {
    let mut linked = network();
    linked.routes.push(RouteConfig {
        prefix: (inet6("2001:db8:7::").into(), 48),
        gateway: inet6("fe80::9").into(),
    });
    linked.neighbours.push(fwdlab_router::NeighbourConfig {
        port: 0,
        address: inet6("fe80::9").into(),
        mac: rig::TESTER[0],
    });
    let frame = Inet6::between("2001:2:0:1::1", "2001:db8:7::5").frame(0);
    let at = |level| Knobs::default().with(Knob::Ipv6Redirect, level);
    let told = redirected(&linked, &at(1), &frame);
    let [redirect] = &told[..] else {
        panic!("{told:?}");
    };
    assert_eq!(redirect.source, inet6("fe80::2"));
    assert_eq!(redirect.hop_limit, 255);
    let message = redirect.message.as_ref().unwrap();
    assert_eq!((message.kind, message.code), (137, 0));
    assert_eq!(message.body[..16], inet6("fe80::9").octets());
    assert_eq!(message.body[16..32], inet6("2001:db8:7::5").octets());
    assert_eq!(
        message.body[32..40],
        [&[2, 1][..], &rig::TESTER[0].0].concat()
    );
    assert_eq!(redirected(&linked, &at(0), &frame), []);
    // A gateway that is not known by its link-local address cannot be told (RFC 4861, 8.1).
    let frame = Inet6::between("2001:2:0:1::1", "2001:2:0:10::9").frame(0);
    assert_eq!(redirected(&linked, &at(1), &frame), []);
}

#[test]
fn a_full_transmit_ring_drops_what_it_has_no_room_for() {
    let knobs = Knobs::default()
        .with(Knob::SimpleTx, 1)
        .with(Knob::OverrideNtxds, 64);
    let mut rig = Rig::new(&network(), &knobs);
    let frames = vec![Inet::default().frame(0); 60];
    for _ in 0..2 {
        rig.receive(0, &frames);
        rig.poll();
    }
    assert_eq!(rig.counters().drops(Drop::TxFull), 56);
    assert_eq!(rig.counters().events(Event::Forwarded), 64);
    // The router's own are lost, not dropped: they were never received.
    let expired = with_ttl_1(&Inet::between("198.19.10.1", "198.19.10.2").frame(0));
    rig.receive(0, &[expired]);
    rig.poll();
    assert_eq!(rig.counters().drops(Drop::InetTtl), 1);
    assert_eq!(rig.counters().events(Event::OwnLost), 1);
    assert_eq!(rig.sent(1).len(), 64);
    rig.assert_conservation();
}

#[test]
fn without_buffers_nothing_is_fragmented_or_told_and_nothing_is_lost() {
    let knobs = Knobs::default().with(Knob::OverrideNtxds, 64);
    let mut rig = Rig::new(&narrow(), &knobs);
    // Nothing is sent: every packet keeps a buffer, until one is left.
    let buffers = 2 * 64 + 256;
    let good = vec![Inet::default().frame(0); buffers - 1];
    for burst in good.chunks(60) {
        rig.receive(0, burst);
        rig.poll();
    }
    assert_eq!(rig.counters().events(Event::Forwarded), buffers as u64 - 1);
    let long = Inet {
        payload: udp(1400),
        ..Inet::default()
    };
    rig.receive(0, &[long.frame(0)]);
    rig.poll();
    assert_eq!(rig.counters().drops(Drop::NoBuffer), 1);
    rig.receive(0, &[with_ttl_1(&Inet::default().frame(0))]);
    rig.poll();
    assert_eq!(rig.counters().drops(Drop::InetTtl), 1);
    assert_eq!(rig.counters().events(Event::ErrorsSuppressed), 1);
    // The last buffer goes; then packets wait in the receive ring until some come back.
    rig.receive(0, &vec![Inet::default().frame(0); 3]);
    assert_eq!(rig.poll(), 1);
    assert_eq!(rig.poll(), 0);
    let mut sent = rig.sent(1).len();
    while sent < buffers + 2 {
        rig.poll();
        let more = rig.sent(1).len();
        assert!(more > 0, "{sent} of {} were sent", buffers + 2);
        sent += more;
    }
    assert_eq!(rig.counters().events(Event::Forwarded), buffers as u64 + 2);
    rig.assert_conservation();
}
