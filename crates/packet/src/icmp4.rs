//! The ICMP messages that a router makes.

use std::net::Ipv4Addr;

use crate::checksum::Sum;
use crate::field::{set_octets, set_word};
use crate::ipv4::{self, Ipv4Packet};
use crate::{MacAddress, NoAnswer};

/// The number of ICMP as IPv4 protocol.
pub const PROTOCOL: u8 = 1;
/// Bytes of the ICMP header.
pub const HEADER_LENGTH: usize = 8;
/// Bytes of the longest packet that is made: every host takes that much.
///
/// # Source
/// RFC 1812, section 4.3.2.3.
pub const PACKET_LENGTH_MAX: usize = 576;
/// Time to live of what is made: FreeBSD's and Linux's default.
///
/// # Source
/// `net.inet.ip.ttl`, `net.ipv4.ip_default_ttl`; RFC 1700.
pub const HOP_LIMIT: u8 = 64;

const CHECKSUM: usize = 2;
const REST_OF_HEADER: usize = 4;

const DESTINATION_UNREACHABLE: u8 = 3;
const REDIRECT: u8 = 5;
const TIME_EXCEEDED: u8 = 11;
const PARAMETER_PROBLEM: u8 = 12;

/// Precedence 6, internetwork control.
const INTERNETWORK_CONTROL: u8 = 0xc0;
/// The bits of the type of service that RFC 1812 knew, without those that are
/// ECN's since RFC 3168: an ICMP message is not ECN-capable.
const TYPE_OF_SERVICE: u8 = 0x1c;

/// What a router reports to the sender of an IPv4 packet.
///
/// # Source
/// RFC 792; RFC 1812, sections 4.3.3 and 5.2.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icmp4Error {
    /// No route leads to the destination.
    NetUnreachable,
    /// The destination, or the next router, does not answer on its link.
    HostUnreachable,
    /// The packet does not fit the next link and must not be fragmented.
    FragmentationNeeded {
        /// Bytes of the longest packet that would fit (RFC 1191).
        mtu: u16,
    },
    /// The packet asks for a source route, which the router refuses.
    SourceRouteFailed,
    /// There is a better first hop on the sender's own link.
    Redirect {
        /// The better first hop, or the destination itself.
        gateway: Ipv4Addr,
    },
    /// The time to live was used up on the way.
    TimeExceeded,
    /// The options are malformed.
    ParameterProblem {
        /// Which byte of the packet is wrong, counted from 0.
        pointer: u8,
    },
}

impl Icmp4Error {
    /// Whether a router may report anything about the packet that came in a
    /// frame to `link_destination`.
    ///
    /// That the destination is no directed broadcast, and the source none
    /// either, only a router that knows the prefix lengths can tell.
    ///
    /// An ICMP message of unknown type counts as an error, as it does for
    /// FreeBSD and Linux. A redirect about an ICMP error is not sent, as by
    /// Linux and RFC 1122; FreeBSD sends it.
    ///
    /// # Errors
    /// Why it must keep silent.
    ///
    /// # Source
    /// RFC 1812, sections 4.3.2.7 and 5.3.7; RFC 1122, section 3.2.2.
    pub fn may_answer(
        original: Ipv4Packet<&[u8]>,
        link_destination: MacAddress,
    ) -> Result<(), NoAnswer> {
        if link_destination.is_group() {
            return Err(NoAnswer::LinkGroup);
        }
        let destination = original.destination();
        if destination.is_multicast() || destination.is_broadcast() {
            return Err(NoAnswer::DestinationGroup);
        }
        if !is_one_host(original.source()) {
            return Err(NoAnswer::Source);
        }
        if original.fragment_offset_blocks() != 0 {
            return Err(NoAnswer::Fragment);
        }
        let is_information = |message: &u8| {
            // Echo, router discovery, timestamp, information, address mask.
            matches!(message, 0 | 8..=10 | 13..=18)
        };
        if original.protocol() == PROTOCOL
            && !original.payload().first().is_some_and(is_information)
        {
            return Err(NoAnswer::IcmpError);
        }
        Ok(())
    }

    /// Writes the IPv4 packet that reports the error about `original`, and
    /// returns its length.
    ///
    /// It quotes the original as it is, without what follows it in its frame,
    /// as far as 576 bytes and `into` reach.
    ///
    /// Precedence is 6 and the type of service the original's (RFC 1812,
    /// section 4.3.2.5). Linux does so, too, but copies half of ECN along;
    /// FreeBSD sends 0. The identification is 0 and fragmentation forbidden:
    /// so no counter is needed, as RFC 6864 says. Linux and FreeBSD allow
    /// fragmentation and count. There are no options: of a source route, which
    /// RFC 1812 has reversed, no packet gets this far.
    ///
    /// # Panics
    /// If `into` is shorter than 28 bytes.
    pub fn emit(&self, original: Ipv4Packet<&[u8]>, source: Ipv4Addr, into: &mut [u8]) -> usize {
        let room = into.len().min(PACKET_LENGTH_MAX) - ipv4::HEADER_LENGTH - HEADER_LENGTH;
        let quoted = original.bytes();
        let quoted = &quoted[..quoted.len().min(room)];
        let message_length = u16::try_from(HEADER_LENGTH + quoted.len())
            .expect("the message is shorter than 576 bytes");
        let mut packet = Ipv4Packet::emit(
            into,
            source,
            original.source(),
            PROTOCOL,
            HOP_LIMIT,
            message_length,
        );
        packet.set_type_of_service(
            INTERNETWORK_CONTROL | original.type_of_service() & TYPE_OF_SERVICE,
        );
        let message = packet.payload_mut();
        let (kind, code, rest) = self.header();
        message[0] = kind;
        message[1] = code;
        set_word(message, CHECKSUM, 0);
        set_octets(message, REST_OF_HEADER, &rest);
        set_octets(message, HEADER_LENGTH, quoted);
        let checksum = Sum::default().bytes(message).checksum();
        set_word(message, CHECKSUM, checksum);
        packet.total_length()
    }

    /// Type, code and the four bytes behind the checksum.
    fn header(&self) -> (u8, u8, [u8; 4]) {
        match *self {
            Self::NetUnreachable => (DESTINATION_UNREACHABLE, 0, [0; 4]),
            Self::HostUnreachable => (DESTINATION_UNREACHABLE, 1, [0; 4]),
            Self::FragmentationNeeded { mtu } => {
                let [high, low] = mtu.to_be_bytes();
                (DESTINATION_UNREACHABLE, 4, [0, 0, high, low])
            }
            Self::SourceRouteFailed => (DESTINATION_UNREACHABLE, 5, [0; 4]),
            // Redirects for networks are not sent (RFC 1812, section 5.2.7.2).
            Self::Redirect { gateway } => (REDIRECT, 1, gateway.octets()),
            Self::TimeExceeded => (TIME_EXCEEDED, 0, [0; 4]),
            Self::ParameterProblem { pointer } => (PARAMETER_PROBLEM, 0, [pointer, 0, 0, 0]),
        }
    }
}

/// Not "this network", loopback, multicast, class E or broadcast.
fn is_one_host(address: Ipv4Addr) -> bool {
    !matches!(address.octets()[0], 0 | 127 | 224..)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTER_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

    /// A packet, its first byte behind the header being `kind`.
    fn packet(source: &str, destination: &str, protocol: u8, kind: u8) -> Vec<u8> {
        let mut bytes = vec![0; 28];
        let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
        Ipv4Packet::emit(&mut bytes, source, destination, protocol, 64, 8).payload_mut()[0] = kind;
        bytes
    }

    fn verdict(bytes: &[u8], link_destination: MacAddress) -> Result<(), NoAnswer> {
        Icmp4Error::may_answer(Ipv4Packet::new_validated(bytes).unwrap(), link_destination)
    }

    #[test]
    fn only_one_host_is_answered() {
        for (source, destination, expected) in [
            ("192.0.2.1", "198.51.100.1", Ok(())),
            ("223.255.255.255", "198.51.100.1", Ok(())),
            ("0.0.0.0", "198.51.100.1", Err(NoAnswer::Source)),
            ("0.1.2.3", "198.51.100.1", Err(NoAnswer::Source)),
            ("127.0.0.1", "198.51.100.1", Err(NoAnswer::Source)),
            ("224.0.0.1", "198.51.100.1", Err(NoAnswer::Source)),
            ("240.0.0.1", "198.51.100.1", Err(NoAnswer::Source)),
            ("255.255.255.255", "198.51.100.1", Err(NoAnswer::Source)),
            ("192.0.2.1", "224.0.0.1", Err(NoAnswer::DestinationGroup)),
            (
                "192.0.2.1",
                "255.255.255.255",
                Err(NoAnswer::DestinationGroup),
            ),
        ] {
            let bytes = packet(source, destination, 17, 0);
            assert_eq!(
                verdict(&bytes, ROUTER_MAC),
                expected,
                "{source} {destination}"
            );
        }
        let bytes = packet("192.0.2.1", "198.51.100.1", 17, 0);
        for link_destination in [[0xff; 6], [1, 0, 0x5e, 0, 0, 1]] {
            let verdict = verdict(&bytes, MacAddress(link_destination));
            assert_eq!(verdict, Err(NoAnswer::LinkGroup));
        }
    }

    #[test]
    fn an_error_is_not_answered_and_information_is() {
        let answered: Vec<u8> = (0..=255)
            .filter(|&kind| {
                let bytes = packet("192.0.2.1", "198.51.100.1", PROTOCOL, kind);
                verdict(&bytes, ROUTER_MAC).is_ok()
            })
            .collect();
        assert_eq!(answered, [0, 8, 9, 10, 13, 14, 15, 16, 17, 18]);
        // A message without a type may be an error.
        let mut bytes = vec![0; 20];
        let (source, destination) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
        Ipv4Packet::emit(&mut bytes, source, destination, PROTOCOL, 64, 0);
        assert_eq!(verdict(&bytes, ROUTER_MAC), Err(NoAnswer::IcmpError));
    }
}
