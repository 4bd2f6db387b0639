//! Linux as a router: a namespace of its own, with two cables whose far ends nobody listens at.

use std::fs;
use std::net::IpAddr;
use std::process::Command;
use std::thread::{sleep, yield_now};
use std::time::{Duration, Instant};

use fwdlab_packet::ethernet::{HEADER_LENGTH, IPV4, IPV6};
use fwdlab_router::NetworkConfig;
use fwdlab_sys::{PacketSocket, ReceiveRing};

use crate::rig::packets::{Inet, Inet6, right_checksum};
use crate::rig::{ROUTER, TESTER};

/// How long anything may take that should take no time.
const WAIT: Duration = Duration::from_secs(30);
/// What no other packet has as its identification.
const MARK: u16 = 0xffff;

/// What each port sent: frames without what fills them up.
pub(crate) type Sent = [Vec<Vec<u8>>; 2];

pub(crate) struct Linux {
    senders: [PacketSocket; 2],
    receivers: [ReceiveRing; 2],
}

fn ip(arguments: &str) {
    testkit::succeed(Command::new("ip").args(arguments.split(' ')));
}

fn set(setting: &str, value: &str) {
    let path = format!("/proc/sys/net/{setting}");
    fs::write(&path, value).unwrap_or_else(|error| panic!("{path}: {error}"));
}

impl Linux {
    /// Shape: the calling thread is in a namespace that has nothing yet.
    pub(crate) fn set_up(config: &NetworkConfig) -> Self {
        ip("link set lo up");
        for (setting, value) in [
            ("ipv4/ip_forward", "1"),
            ("ipv6/conf/all/forwarding", "1"),
            // Types of messages that are limited: none, and one that never is (packet too big).
            ("ipv4/icmp_ratemask", "0"),
            ("ipv6/icmp/ratemask", "2"),
        ] {
            set(setting, value);
        }
        // A new namespace may have what the host is set to, and not the kernel's defaults.
        for (setting, value) in [
            ("rp_filter", "0"),
            ("accept_source_route", "0"),
            ("send_redirects", "1"),
            ("shared_media", "1"),
        ] {
            for interfaces in ["all", "default"] {
                set(&format!("ipv4/conf/{interfaces}/{setting}"), value);
            }
        }
        for (number, port) in config.ports.iter().enumerate() {
            let (near, far) = (format!("t{number}"), format!("r{number}"));
            let mac = port.mac;
            ip(&format!(
                "link add {near} address 02:00:00:00:ff:0{number} type veth peer name {far} address {mac}"
            ));
            ip(&format!("link set {near} addrgenmode none"));
            ip(&format!("link set {far} addrgenmode none mtu {}", port.mtu));
            // The near end has frames sent and received as they are, and no address of its own.
            set(&format!("ipv6/conf/{near}/disable_ipv6"), "1");
            set(&format!("ipv4/conf/{near}/arp_ignore"), "8");
            for family in ["ipv4", "ipv6"] {
                set(&format!("{family}/neigh/{far}/mcast_solicit"), "1");
                set(&format!("{family}/neigh/{far}/retrans_time_ms"), "50");
            }
            ip(&format!("link set {near} up"));
            ip(&format!("link set {far} up"));
            for (address, length) in &port.addresses {
                let nodad = if address.is_ipv6() { " nodad" } else { "" };
                ip(&format!("address add {address}/{length} dev {far}{nodad}"));
            }
        }
        for neighbour in &config.neighbours {
            let (port, address, mac) = (neighbour.port, neighbour.address, neighbour.mac);
            ip(&format!(
                "neighbour replace {address} lladdr {mac} dev r{port} nud permanent"
            ));
        }
        for route in &config.routes {
            let ((address, length), gateway) = (route.prefix, route.gateway);
            // The links have the same link-local prefix; the router takes the first.
            let link = match gateway {
                IpAddr::V6(gateway) if gateway.is_unicast_link_local() => " dev r0",
                _ => "",
            };
            ip(&format!("route add {address}/{length} via {gateway}{link}"));
        }
        let index = |number| fwdlab_sys::interface_index(&format!("t{number}")).unwrap();
        let mut linux = Self {
            senders: [0, 1].map(|number| PacketSocket::open(index(number)).unwrap()),
            receivers: [0, 1]
                .map(|number| ReceiveRing::open(index(number), 1024, 2048, 1).unwrap()),
        };
        linux.wait_until_up();
        linux
    }

    /// Until frames of both families pass both ways.
    fn wait_until_up(&mut self) {
        let start = Instant::now();
        let mut sent = Sent::default();
        let passes = |sent: &[Vec<u8>]| {
            let is_there = |family| sent.iter().any(|frame| ether_type(frame) == family);
            is_there(IPV4) && is_there(IPV6)
        };
        while !(passes(&sent[0]) && passes(&sent[1])) {
            assert!(start.elapsed() < WAIT, "the links are down: {sent:02x?}");
            for port in [0, 1] {
                self.send(port, &through(port).frame(port));
                self.send(port, &through6(port).frame(port));
            }
            sleep(Duration::from_millis(5));
            self.receive(&mut sent);
        }
        // What is still under way comes before the mark of these.
        for port in [0, 1] {
            self.pass(port, &through(port).frame(port));
        }
    }

    pub(crate) fn send(&mut self, port: usize, frame: &[u8]) {
        let start = Instant::now();
        while self.senders[port].send(&[frame]).unwrap() == 0 {
            assert!(start.elapsed() < WAIT, "a frame cannot be sent");
            yield_now();
        }
    }

    /// What has been sent since.
    pub(crate) fn receive(&mut self, sent: &mut Sent) {
        for (ring, sent) in self.receivers.iter_mut().zip(sent) {
            ring.read(|frame| sent.push(without_padding(frame)));
        }
    }

    /// What comes of a frame at once: before what comes of the next one, which is a mark.
    pub(crate) fn pass(&mut self, port: usize, frame: &[u8]) -> Sent {
        let mark = Inet {
            identification: MARK,
            ..through(port)
        };
        let mark = mark.frame(port);
        let expected = forwarded(&mark, 1 - port);
        self.send(port, frame);
        self.send(port, &mark);
        let mut sent = Sent::default();
        let start = Instant::now();
        while sent[1 - port].last() != Some(&expected) {
            assert!(start.elapsed() < WAIT, "{sent:02x?} of {frame:02x?}");
            yield_now();
            self.receive(&mut sent);
        }
        self.receive(&mut sent);
        sent[1 - port].pop();
        sent
    }
}

/// A packet in at a port and out at the other.
fn through(port: usize) -> Inet {
    if port == 0 {
        Inet::between("198.18.10.255", "198.19.10.255")
    } else {
        Inet::between("198.19.10.255", "198.18.10.255")
    }
}

/// The same of IPv6.
fn through6(port: usize) -> Inet6 {
    if port == 0 {
        Inet6::between("2001:2:0:10::ff", "2001:2:0:8010::ff")
    } else {
        Inet6::between("2001:2:0:8010::ff", "2001:2:0:10::ff")
    }
}

fn ether_type(frame: &[u8]) -> u16 {
    u16::from_be_bytes([frame[12], frame[13]])
}

pub(crate) fn is_inet(frame: &[u8]) -> bool {
    ether_type(frame) == IPV4
}

/// A frame up to the end of its packet.
pub(crate) fn without_padding(frame: &[u8]) -> Vec<u8> {
    let word = |at| usize::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
    let length = match ether_type(frame) {
        IPV4 => word(16),
        IPV6 => 40 + word(18),
        other => panic!("a frame of type {other:04x}"),
    };
    frame[..HEADER_LENGTH + length].to_vec()
}

/// What comes of a frame that leaves from a port as any packet does.
pub(crate) fn forwarded(frame: &[u8], egress: usize) -> Vec<u8> {
    let mut frame = without_padding(frame);
    frame[..6].copy_from_slice(&TESTER[egress].0);
    frame[6..12].copy_from_slice(&ROUTER[egress].0);
    if is_inet(&frame) {
        frame[22] = frame[22].wrapping_sub(1);
        right_checksum(&mut frame[HEADER_LENGTH..]);
    } else {
        frame[21] = frame[21].wrapping_sub(1);
    }
    frame
}
