//! What comes out of the router, as a parser sees it that is not the router's.

use std::net::IpAddr;

use etherparse::checksum::Sum16BitWords;
use etherparse::{
    Ethernet2Slice, Icmpv6Slice, IpNumber, Ipv4HeaderSlice, Ipv6HeaderSlice, ether_type,
};

use super::{ROUTER, TESTER};

/// An ICMP or ICMPv6 message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) kind: u8,
    pub(crate) code: u8,
    /// The four bytes behind the checksum.
    pub(crate) rest: [u8; 4],
    /// What follows them.
    pub(crate) body: Vec<u8>,
}

/// A packet that is right in everything that a router is answerable for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) hop_limit: u8,
    /// The IP packet, without what fills its frame.
    pub(crate) packet: Vec<u8>,
    /// Where it is one of ICMP, whole, with a right checksum.
    pub(crate) message: Option<Message>,
}

/// The packet in a frame that the router sent from a port.
///
/// # Panics
/// Where anything is wrong with it that a router is answerable for: Ethernet addresses, version, lengths,
/// the header's checksum, a hop limit of 0, or a frame longer than its packet needs.
pub(crate) fn seen(port: usize, mtu: usize, frame: &[u8]) -> Seen {
    let ethernet = Ethernet2Slice::from_slice_without_fcs(frame).unwrap();
    assert_eq!(ethernet.source(), ROUTER[port].0, "{frame:02x?}");
    assert_eq!(ethernet.destination(), TESTER[port].0, "{frame:02x?}");
    let payload = ethernet.payload_slice();
    let (seen, length) = match ethernet.ether_type() {
        ether_type::IPV4 => inet(payload),
        ether_type::IPV6 => inet6(payload),
        other => panic!("a frame of {other:?}"),
    };
    assert!(length <= mtu, "{length} bytes over a link of {mtu}");
    assert!(
        frame.len() <= (14 + length).max(60),
        "{length}: {frame:02x?}"
    );
    assert_ne!(seen.hop_limit, 0, "{frame:02x?}");
    seen
}

fn inet(payload: &[u8]) -> (Seen, usize) {
    let header = Ipv4HeaderSlice::from_slice(payload).unwrap();
    assert!(is_sum_right(header.slice()), "{payload:02x?}");
    assert_ne!(header.header_checksum(), 0xffff, "{payload:02x?}");
    let length = usize::from(header.total_len());
    let packet = &payload[..length];
    let data = &packet[header.slice().len()..];
    let is_whole = !header.more_fragments() && header.fragments_offset().value() == 0;
    let is_message = header.protocol() == IpNumber::ICMP && is_whole && data.len() >= 8;
    let message = (is_message && is_sum_right(data)).then(|| message_of(data));
    let seen = Seen {
        source: header.source_addr().into(),
        destination: header.destination_addr().into(),
        hop_limit: header.ttl(),
        packet: packet.to_vec(),
        message,
    };
    (seen, length)
}

fn inet6(payload: &[u8]) -> (Seen, usize) {
    let header = Ipv6HeaderSlice::from_slice(payload).unwrap();
    let length = 40 + usize::from(header.payload_length());
    let packet = &payload[..length];
    let data = &packet[40..];
    let message = (header.next_header() == IpNumber::IPV6_ICMP)
        .then(|| Icmpv6Slice::from_slice(data).ok())
        .flatten()
        .filter(|message| message.is_checksum_valid(header.source(), header.destination()))
        .map(|_| message_of(data));
    let seen = Seen {
        source: header.source_addr().into(),
        destination: header.destination_addr().into(),
        hop_limit: header.hop_limit(),
        packet: packet.to_vec(),
        message,
    };
    (seen, length)
}

/// Whether what holds its own checksum sums up as it should.
pub(crate) fn is_sum_right(data: &[u8]) -> bool {
    Sum16BitWords::new().add_slice(data).ones_complement() == 0
}

fn message_of(data: &[u8]) -> Message {
    Message {
        kind: data[0],
        code: data[1],
        rest: *data[4..].first_chunk().unwrap(),
        body: data[8..].to_vec(),
    }
}
