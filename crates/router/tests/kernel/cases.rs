//! The frames, and the network that they meet.

use fwdlab_packet::ethernet::{IPV4, IPV6};
use fwdlab_router::{NeighbourConfig, NetworkConfig, RouteConfig};

use crate::rig::packets::{
    DONT_FRAGMENT, ICMP, ICMP6, Inet, Inet6, MORE_FRAGMENTS, frame_of, frame_to, inet, inet6,
    right_checksum, udp,
};
use crate::rig::{TESTER, network, with_mtu};

/// Port 1's link takes less than port 0's.
const PORT_1_MTU: u16 = 1280;
/// The first two lead to nobody.
const ROUTES: [(&str, u8, &str); 3] = [
    ("203.0.113.0", 24, "198.19.0.99"),
    ("2001:db8:9::", 48, "2001:2:0:2::99"),
    ("2001:db8:7::", 48, "fe80::9"),
];
/// Link-local stations on port 0's link.
const LINK_LOCAL: [&str; 2] = ["fe80::1", "fe80::9"];
/// More stations there: Linux tells each of a better first hop once a second at most.
const STATIONS: u8 = 8;

/// What is sent: what it is, the port it comes in at, the frame.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) port: usize,
    pub(crate) frame: Vec<u8>,
}

pub(crate) fn config() -> NetworkConfig {
    let mut network = with_mtu(&network(), PORT_1_MTU);
    network
        .routes
        .extend(ROUTES.map(|(prefix, length, gateway)| RouteConfig {
            prefix: (prefix.parse().unwrap(), length),
            gateway: gateway.parse().unwrap(),
        }));
    let stations = (0..STATIONS).flat_map(|number| [station(number), station6(number)]);
    let neighbours = LINK_LOCAL
        .map(str::to_owned)
        .into_iter()
        .chain(stations)
        .map(|address| NeighbourConfig {
            port: 0,
            address: address.parse().unwrap(),
            mac: TESTER[0],
        });
    network.neighbours.extend(neighbours);
    network
}

fn station(number: u8) -> String {
    format!("198.18.0.{}", 100 + number)
}

fn station6(number: u8) -> String {
    format!("2001:2:0:1::{:x}", 0x100 + u16::from(number))
}

/// Packets, each with a source of its own, so that an answer tells what it is about.
struct Cases {
    last: u8,
    all: Vec<Case>,
}

impl Cases {
    fn source(&mut self) -> u8 {
        self.last = if self.last == 254 { 1 } else { self.last + 1 };
        self.last
    }

    fn inet(&mut self) -> Inet {
        Inet {
            source: [198, 18, 10, self.source()].into(),
            ..Inet::default()
        }
    }

    fn inet6(&mut self) -> Inet6 {
        Inet6 {
            source: [0x2001, 2, 0, 0x10, 0, 0, 0, u16::from(self.source())].into(),
            ..Inet6::default()
        }
    }

    /// Adds a frame to port 0.
    fn add(&mut self, name: impl Into<String>, frame: Vec<u8>) {
        self.all.push(Case {
            name: name.into(),
            port: 0,
            frame,
        });
    }

    /// Adds a packet with some bytes changed, and its checksum made right again or not.
    fn add_changed(
        &mut self,
        name: String,
        change: impl FnOnce(&mut Vec<u8>),
        has_right_checksum: bool,
    ) {
        let mut bytes = self.inet().packet();
        change(&mut bytes);
        if has_right_checksum {
            right_checksum(&mut bytes);
        }
        self.add(name, frame_of(0, IPV4, &bytes));
    }
}

/// Frames that are forwarded, answered or dropped at once.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Cases {
        last: 0,
        all: Vec::new(),
    };
    add_lengths(&mut cases);
    for ttl in [0, 1, 2, 255] {
        add_hop_limits(&mut cases, ttl);
    }
    add_malformed(&mut cases);
    for ttl in [64, 1] {
        add_addresses(&mut cases, ttl);
        add_addresses6(&mut cases, ttl);
        add_hop_by_hop_options(&mut cases, ttl);
    }
    add_options(&mut cases);
    add_redirects(&mut cases);
    add_for_the_router(&mut cases);
    let back = [
        Inet::between("198.19.10.3", "198.18.10.4").frame(1),
        Inet6::between("2001:2:0:8010::3", "2001:2:0:10::4").frame(1),
    ];
    cases.all.extend(back.map(|frame| Case {
        name: "back".into(),
        port: 1,
        frame,
    }));
    cases.all
}

/// Frames for neighbours that a router asks for first, and that do not answer.
pub(crate) fn late_cases() -> Vec<Case> {
    let mut cases = Cases {
        last: 100,
        all: Vec::new(),
    };
    for destination in ["198.19.0.77", "203.0.113.1"] {
        let packet = Inet {
            destination: inet(destination),
            ..cases.inet()
        };
        cases.add(format!("nobody at {destination}"), packet.frame(0));
    }
    for destination in ["2001:2:0:2::77", "2001:db8:9::1"] {
        let packet = Inet6 {
            destination: inet6(destination),
            ..cases.inet6()
        };
        cases.add(format!("nobody at {destination}"), packet.frame(0));
    }
    cases.all
}

/// About the least frame, what fits the next link, what an error quotes.
fn add_lengths(cases: &mut Cases) {
    for length in [
        0, 1, 2, 3, 17, 18, 19, 64, 100, 555, 556, 557, 1000, 1200, 1231, 1232, 1233, 1251, 1252,
        1253, 1400, 1451, 1452, 1472,
    ] {
        for flags_and_offset in [0, DONT_FRAGMENT, MORE_FRAGMENTS, 10, MORE_FRAGMENTS | 10] {
            let packet = Inet {
                payload: udp(length),
                flags_and_offset,
                ..cases.inet()
            };
            // Fragments but the last have whole blocks.
            if flags_and_offset & MORE_FRAGMENTS == 0 || packet.payload.len().is_multiple_of(8) {
                let name = format!("{length} bytes, flags {flags_and_offset:04x}");
                cases.add(name, packet.frame(0));
            }
        }
        if length <= 1452 {
            let packet = Inet6 {
                payload: udp(length),
                ..cases.inet6()
            };
            cases.add(format!("{length} bytes over IPv6"), packet.frame(0));
        }
    }
}

/// What runs out of hops or nearly, of every class, protocol and kind of ICMP.
fn add_hop_limits(cases: &mut Cases, ttl: u8) {
    for type_of_service in [0, 0xb8, 0x03, 0x01, 0xff] {
        for length in [18, 540, 1000] {
            let packet = Inet {
                ttl,
                type_of_service,
                payload: udp(length),
                ..cases.inet()
            };
            let name = format!("TTL {ttl}, TOS {type_of_service:02x}, {length} bytes");
            cases.add(name, packet.frame(0));
            let packet = Inet6 {
                hop_limit: ttl,
                traffic_class: type_of_service,
                flow_label: 0x12345,
                payload: udp(length + 300),
                ..cases.inet6()
            };
            let name = format!("hop limit {ttl}, class {type_of_service:02x}, {length} bytes");
            cases.add(name, packet.frame(0));
        }
    }
    for (protocol, payload) in [
        (ICMP, vec![0, 0, 0xff, 0xff, 0, 0, 0, 0]),
        (ICMP, vec![3, 0, 0xfc, 0xff, 0, 0, 0, 0]),
        (ICMP, vec![5, 0, 0xfa, 0xff, 0, 0, 0, 0]),
        (ICMP, vec![8, 0, 0xf7, 0xff, 0, 0, 0, 0]),
        (ICMP, vec![11, 0, 0xf4, 0xff, 0, 0, 0, 0]),
        (6, vec![0; 20]),
        (255, vec![0; 4]),
        (17, Vec::new()),
    ] {
        let name = format!("TTL {ttl}, protocol {protocol}, {payload:02x?}");
        let packet = Inet {
            ttl,
            protocol,
            payload,
            ..cases.inet()
        };
        cases.add(name, packet.frame(0));
    }
    for (next_header, payload) in [
        (ICMP6, vec![1, 0, 0, 0, 0, 0, 0, 0]),
        (ICMP6, vec![127, 0, 0, 0, 0, 0, 0, 0]),
        (ICMP6, vec![128, 0, 0, 0, 0, 0, 0, 0]),
        (ICMP6, vec![137, 0, 0, 0, 0, 0, 0, 0]),
        (59, Vec::new()),
        (44, vec![17, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0]),
        (44, vec![17, 0, 0, 0x10, 0, 0, 0, 1, 0, 0, 0, 0]),
        (60, vec![ICMP6, 0, 1, 4, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]),
    ] {
        let name = format!("hop limit {ttl}, header {next_header}, {payload:02x?}");
        let packet = Inet6 {
            hop_limit: ttl,
            next_header,
            payload,
            ..cases.inet6()
        };
        cases.add(name, packet.frame(0));
    }
    for flags_and_offset in [MORE_FRAGMENTS, 1, MORE_FRAGMENTS | 1] {
        let packet = Inet {
            ttl,
            flags_and_offset,
            payload: udp(16),
            ..cases.inet()
        };
        let name = format!("TTL {ttl} of a fragment, {flags_and_offset:04x}");
        cases.add(name, packet.frame(0));
    }
}

/// Headers that are wrong, and frames that hold more or are somebody else's.
fn add_malformed(cases: &mut Cases) {
    for bit in 0..160 {
        let flip = |bytes: &mut Vec<u8>| bytes[bit / 8] ^= 0x80 >> (bit % 8);
        cases.add_changed(format!("bit {bit} is wrong"), flip, false);
    }
    for (at, value) in [
        (0, 0x44),
        (0, 0x40),
        (0, 0x4f),
        (0, 0x55),
        (0, 0x65),
        (3, 19),
        (3, 0),
        (3, 47),
        (2, 1),
    ] {
        let set = |bytes: &mut Vec<u8>| bytes[at] = value;
        cases.add_changed(format!("byte {at} is {value:02x}"), set, true);
    }
    for (at, value) in [
        (0, 0x45),
        (0, 0x70),
        (5, 27),
        (5, 255),
        (4, 1),
        (5, 0),
        (5, 7),
    ] {
        let mut bytes = cases.inet6().packet();
        bytes[at] = value;
        let name = format!("byte {at} over IPv6 is {value:02x}");
        cases.add(name, frame_of(0, IPV6, &bytes));
    }
    for extra in [1, 40, 200] {
        for packet in [cases.inet().packet(), cases.inet6().packet()] {
            let mut frame = frame_to(0, &packet);
            frame.resize(frame.len() + extra, 0xee);
            cases.add(format!("{extra} bytes behind"), frame);
        }
    }
    for station in [[2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 1, 2]] {
        let mut frame = cases.inet().frame(0);
        frame[..6].copy_from_slice(&station);
        cases.add(format!("to station {station:02x?}"), frame);
    }
}

fn add_addresses(cases: &mut Cases, ttl: u8) {
    for destination in [
        "192.0.2.1",
        "198.19.0.1",
        "198.19.0.2",
        "198.18.0.2",
        "198.18.0.255",
        "198.19.0.255",
        "0.0.0.0",
        "0.1.2.3",
        "10.1.2.3",
        "127.0.0.1",
        "127.1.2.3",
        "169.254.1.1",
        "224.0.0.1",
        "224.0.0.9",
        "239.1.2.3",
        "240.0.0.1",
        "255.255.255.254",
        "255.255.255.255",
        "198.18.10.200",
    ] {
        let packet = Inet {
            destination: inet(destination),
            ttl,
            ..cases.inet()
        };
        cases.add(format!("to {destination}, TTL {ttl}"), packet.frame(0));
    }
    for source in [
        "0.0.0.0",
        "0.1.2.3",
        "127.0.0.1",
        "169.254.1.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "198.18.0.2",
        "198.19.0.2",
        "198.18.0.1",
        "198.19.10.1",
        "192.0.2.1",
        "198.18.0.255",
        "198.19.0.255",
    ] {
        let packet = Inet {
            source: inet(source),
            ttl,
            ..cases.inet()
        };
        cases.add(format!("from {source}, TTL {ttl}"), packet.frame(0));
    }
}

fn add_addresses6(cases: &mut Cases, hop_limit: u8) {
    for destination in [
        "2001:db8::1",
        "2001:2:0:2::1",
        "2001:2:0:2::2",
        "2001:2:0:1::2",
        "2001:2:0:2::",
        "2001:2:0:1::",
        "::",
        "::1",
        "fe80::1",
        "fe80::2",
        "febf::1",
        "ff01::1",
        "ff02::1",
        "ff02::2",
        "ff05::2",
        "ff0e::5",
        "2001:2:0:10::200",
    ] {
        let packet = Inet6 {
            destination: inet6(destination),
            hop_limit,
            ..cases.inet6()
        };
        let name = format!("to {destination}, hop limit {hop_limit}");
        cases.add(name, packet.frame(0));
    }
    for source in [
        "::",
        "::1",
        "fe80::1",
        "fe80::2",
        "febf::1",
        "ff02::1",
        "ff0e::1",
        "2001:2:0:1::2",
        "2001:2:0:2::2",
        "2001:2:0:1::1",
        "2001:2:0:8010::1",
        "2001:db8::1",
    ] {
        let packet = Inet6 {
            source: inet6(source),
            hop_limit,
            ..cases.inet6()
        };
        let name = format!("from {source}, hop limit {hop_limit}");
        cases.add(name, packet.frame(0));
    }
}

fn add_options(cases: &mut Cases) {
    for options in [
        &[0, 0, 0, 0][..],
        &[1, 1, 1, 1],
        &[1, 1, 1, 0],
        &[0x9e, 4, 1, 2],
        &[0x1e, 3, 1, 0],
        &[148, 4, 0, 0],
        &[0x9e, 4, 1, 2, 0x1e, 4, 3, 4],
        &[7, 7, 4, 0, 0, 0, 0, 0],
        &[7, 3, 4, 0],
        &[7, 7, 8, 1, 2, 3, 4, 0],
        &[7, 7, 3, 0, 0, 0, 0, 0],
        &[7, 7, 6, 0, 0, 0, 0, 0],
        &[68, 8, 5, 0, 0, 0, 0, 0],
        &[68, 12, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0],
        &[131, 7, 4, 198, 19, 0, 1, 0],
        &[137, 7, 4, 198, 19, 0, 1, 0],
        &[1, 30, 1, 0],
        &[1, 30, 9, 0],
        &[30, 9, 0, 0],
        &[1, 1, 1, 30],
    ] {
        for (ttl, payload) in [(64, udp(18)), (1, udp(18)), (64, udp(1300))] {
            let name = format!("options {options:02x?}, TTL {ttl}, {} bytes", payload.len());
            let packet = Inet {
                options: options.to_vec(),
                ttl,
                payload,
                ..cases.inet()
            };
            cases.add(name, packet.frame(0));
        }
    }
}

fn add_hop_by_hop_options(cases: &mut Cases, hop_limit: u8) {
    for options in [
        &[][..],
        &[1, 0],
        &[0, 0, 0],
        // More padding than any alignment takes, and padding that is not zero.
        &[1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[1, 4, 0, 7, 0, 0],
        &[5, 2, 0, 0],
        &[0x1e, 4, 1, 2, 3, 4],
        &[0x5e, 0],
        &[0x9e, 0],
        &[0xde, 1, 7],
        &[1, 0, 0x9e, 0],
        // A jumbo payload in a packet that has a payload length.
        &[0xc2, 4, 0, 1, 0, 0],
        &[0x1e, 9, 0, 0, 0, 0],
        &[0x1e, 1, 1, 0x9e, 1, 2, 0x5e, 4],
    ] {
        let packet = Inet6 {
            hop_limit,
            ..cases.inet6()
        };
        let packet = packet.with_hop_by_hop_options(options);
        let name = format!("hop-by-hop {options:02x?}, hop limit {hop_limit}");
        cases.add(name, packet.frame(0));
    }
    let packet = Inet6 {
        hop_limit,
        next_header: 0,
        payload: vec![17, 1, 0, 0, 0, 0, 0, 0],
        ..cases.inet6()
    };
    let name = format!("hop-by-hop beyond the packet, hop limit {hop_limit}");
    cases.add(name, packet.frame(0));
}

/// Out where it came in.
fn add_redirects(cases: &mut Cases) {
    for (number, destination, options) in [
        (0, "198.18.10.9", &[][..]),
        (1, "198.18.0.1", &[]),
        (2, "198.18.10.9", &[1, 1, 1, 1]),
        (3, "198.18.10.9", &[0x9e, 4, 1, 2]),
    ] {
        let packet = Inet {
            options: options.to_vec(),
            ..Inet::between(&station(number), destination)
        };
        let name = format!("redirect for {destination}, options {options:02x?}");
        cases.add(name, packet.frame(0));
    }
    let icmp_error = Inet {
        protocol: ICMP,
        payload: vec![3, 0, 0xfc, 0xff, 0, 0, 0, 0],
        ..Inet::between(&station(4), "198.18.10.9")
    };
    cases.add("redirect about an ICMP error", icmp_error.frame(0));
    let not_on_link = Inet::between("198.18.10.7", "198.18.10.9");
    cases.add("redirect to nobody on the link", not_on_link.frame(0));
    for (number, destination) in [
        (0, "2001:db8:7::5"),
        (1, &station6(7)),
        // By a gateway's global address, which no host would believe.
        (2, "2001:2:0:10::9"),
    ] {
        let packet = Inet6::between(&station6(number), destination);
        cases.add(format!("redirect for {destination}"), packet.frame(0));
    }
    let with_options = Inet6::between(&station6(3), "2001:db8:7::7");
    let with_options = with_options.with_hop_by_hop_options(&[1, 4, 0, 0, 0, 0]);
    cases.add("redirect with options over IPv6", with_options.frame(0));
    let not_on_link = Inet6::between("2001:2:0:10::7", "2001:db8:7::6");
    cases.add(
        "redirect over IPv6 to nobody on the link",
        not_on_link.frame(0),
    );
}

/// What an end system answers.
fn add_for_the_router(cases: &mut Cases) {
    let echo_request = Inet {
        destination: inet("198.18.0.2"),
        protocol: ICMP,
        payload: vec![8, 0, 0xf7, 0xff, 0, 0, 0, 0],
        ..cases.inet()
    };
    cases.add("an echo request for the router", echo_request.frame(0));
    let mut datagram = udp(18);
    // It has no checksum.
    datagram[6..8].fill(0);
    let to_a_port = Inet {
        destination: inet("198.18.0.2"),
        payload: datagram,
        ..cases.inet()
    };
    cases.add("a datagram for the router", to_a_port.frame(0));
    let of_no_protocol = Inet6 {
        destination: inet6("2001:2:0:1::2"),
        next_header: 254,
        ..cases.inet6()
    };
    cases.add(
        "IPv6 of no protocol for the router",
        of_no_protocol.frame(0),
    );
}
