//! Packets of any kind, right ones and wrong ones.

use std::net::{Ipv4Addr, Ipv6Addr};

use fwdlab_packet::checksum::Sum;
use fwdlab_packet::ethernet;

use super::{ROUTER, TESTER};

pub(crate) const UDP: u8 = 17;
pub(crate) const ICMP: u8 = 1;
pub(crate) const ICMP6: u8 = 58;
pub(crate) const DONT_FRAGMENT: u16 = 0x4000;
pub(crate) const MORE_FRAGMENTS: u16 = 0x2000;

/// An address of a text.
pub(crate) fn inet(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

/// An address of a text.
pub(crate) fn inet6(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

/// An IPv4 packet, from the network behind port 0 to the one behind port 1 unless told otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Inet {
    pub(crate) source: Ipv4Addr,
    pub(crate) destination: Ipv4Addr,
    pub(crate) ttl: u8,
    pub(crate) type_of_service: u8,
    pub(crate) identification: u16,
    pub(crate) flags_and_offset: u16,
    pub(crate) protocol: u8,
    pub(crate) options: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

impl Default for Inet {
    fn default() -> Self {
        Self {
            source: inet("198.18.10.7"),
            destination: inet("198.19.10.9"),
            ttl: 64,
            type_of_service: 0,
            identification: 0x1234,
            flags_and_offset: 0,
            protocol: UDP,
            options: Vec::new(),
            payload: udp(18),
        }
    }
}

impl Inet {
    /// From one address to another.
    pub(crate) fn between(source: &str, destination: &str) -> Self {
        Self {
            source: inet(source),
            destination: inet(destination),
            ..Self::default()
        }
    }

    pub(crate) fn packet(&self) -> Vec<u8> {
        assert_eq!(self.options.len() % 4, 0);
        let header_length = 20 + self.options.len();
        let total_length = u16::try_from(header_length + self.payload.len()).unwrap();
        let mut bytes = vec![
            0x40 | u8::try_from(header_length / 4).unwrap(),
            self.type_of_service,
        ];
        bytes.extend(total_length.to_be_bytes());
        bytes.extend(self.identification.to_be_bytes());
        bytes.extend(self.flags_and_offset.to_be_bytes());
        bytes.extend([self.ttl, self.protocol, 0, 0]);
        bytes.extend(self.source.octets());
        bytes.extend(self.destination.octets());
        bytes.extend(&self.options);
        right_checksum(&mut bytes);
        bytes.extend(&self.payload);
        bytes
    }

    /// In a frame to the router's port.
    pub(crate) fn frame(&self, port: usize) -> Vec<u8> {
        frame_to(port, &self.packet())
    }
}

/// Makes the checksum of an IPv4 header right, whatever else is wrong with it.
pub(crate) fn right_checksum(packet: &mut [u8]) {
    let header_length = (usize::from(packet[0] & 0x0f) * 4).clamp(20, packet.len());
    packet[10..12].fill(0);
    let checksum = Sum::default().bytes(&packet[..header_length]).checksum();
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// An IPv6 packet, from the network behind port 0 to the one behind port 1 unless told otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Inet6 {
    pub(crate) source: Ipv6Addr,
    pub(crate) destination: Ipv6Addr,
    pub(crate) hop_limit: u8,
    pub(crate) traffic_class: u8,
    pub(crate) flow_label: u32,
    pub(crate) next_header: u8,
    pub(crate) payload: Vec<u8>,
}

impl Default for Inet6 {
    fn default() -> Self {
        Self {
            source: inet6("2001:2:0:10::7"),
            destination: inet6("2001:2:0:8010::9"),
            hop_limit: 64,
            traffic_class: 0,
            flow_label: 0,
            next_header: UDP,
            payload: udp(18),
        }
    }
}

impl Inet6 {
    /// From one address to another.
    pub(crate) fn between(source: &str, destination: &str) -> Self {
        Self {
            source: inet6(source),
            destination: inet6(destination),
            ..Self::default()
        }
    }

    /// With hop-by-hop options, which are padded to a whole header, before its payload.
    pub(crate) fn with_hop_by_hop_options(mut self, options: &[u8]) -> Self {
        let length = (2 + options.len()).next_multiple_of(8);
        let mut header = vec![self.next_header, u8::try_from(length / 8 - 1).unwrap()];
        header.extend(options);
        match length - header.len() {
            0 => {}
            1 => header.push(0),
            padding => {
                header.extend([1, u8::try_from(padding - 2).unwrap()]);
                header.resize(length, 0);
            }
        }
        self.next_header = 0;
        self.payload.splice(0..0, header);
        self
    }

    pub(crate) fn packet(&self) -> Vec<u8> {
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label;
        let mut bytes = first.to_be_bytes().to_vec();
        bytes.extend(u16::try_from(self.payload.len()).unwrap().to_be_bytes());
        bytes.extend([self.next_header, self.hop_limit]);
        bytes.extend(self.source.octets());
        bytes.extend(self.destination.octets());
        bytes.extend(&self.payload);
        bytes
    }

    /// In a frame to the router's port.
    pub(crate) fn frame(&self, port: usize) -> Vec<u8> {
        frame_to(port, &self.packet())
    }
}

/// A UDP datagram with so many bytes of data, which a router does not look at.
pub(crate) fn udp(data_length: usize) -> Vec<u8> {
    let length = u16::try_from(8 + data_length).unwrap();
    let mut bytes = Vec::new();
    for word in [1000, 2000, length, 0xc0de] {
        bytes.extend(word.to_be_bytes());
    }
    bytes.extend((0..data_length).map(|index| u8::try_from(index % 251).unwrap()));
    bytes
}

/// A frame of these bytes from the tester to the router, padded to Ethernet's minimum.
pub(crate) fn frame_to(port: usize, packet: &[u8]) -> Vec<u8> {
    let ether_type = if packet.first().is_some_and(|first| first >> 4 == 6) {
        ethernet::IPV6
    } else {
        ethernet::IPV4
    };
    frame_of(port, ether_type, packet)
}

/// The same, of any protocol.
pub(crate) fn frame_of(port: usize, ether_type: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.extend(ROUTER[port].0);
    frame.extend(TESTER[port].0);
    frame.extend(ether_type.to_be_bytes());
    frame.extend(packet);
    let length = frame.len().max(ethernet::MINIMUM_LENGTH);
    frame.resize(length, 0);
    frame
}
