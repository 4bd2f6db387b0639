//! The ICMPv6 messages that a router makes.

use std::net::Ipv6Addr;

use crate::checksum::Sum;
use crate::field::{set_octets, set_word};
use crate::ipv6::{self, Ipv6Packet, ParameterProblem};
use crate::{MacAddress, NoAnswer};

/// The number of ICMPv6 as next header.
pub const PROTOCOL: u8 = 58;
/// Bytes of the ICMPv6 header.
pub const HEADER_LENGTH: usize = 8;
/// Bytes of the longest packet that is made: every link carries that much.
///
/// # Source
/// RFC 4443, section 2.4(c); RFC 4861, section 4.5.
pub const PACKET_LENGTH_MAX: usize = 1280;
/// Hop limit of what is made, but for redirects: FreeBSD's and Linux's default.
///
/// # Source
/// `net.inet6.ip6.hlim`, `net.ipv6.conf.default.hop_limit`.
pub const HOP_LIMIT: u8 = 64;
/// Hop limit of redirects: who receives one knows that no router passed it on.
///
/// # Source
/// RFC 4861, section 4.5.
pub const REDIRECT_HOP_LIMIT: u8 = 255;

const CHECKSUM: usize = 2;
const REST_OF_HEADER: usize = 4;
/// Target and destination address of a redirect.
const REDIRECT_ADDRESSES_LENGTH: usize = 32;
const TARGET_LINK_LAYER_ADDRESS: u8 = 2;
const REDIRECTED_HEADER: u8 = 4;
/// Options of neighbour discovery count blocks of eight bytes.
const OPTION_BLOCK_LENGTH: usize = 8;

const DESTINATION_UNREACHABLE: u8 = 1;
const PACKET_TOO_BIG: u8 = 2;
const TIME_EXCEEDED: u8 = 3;
const PARAMETER_PROBLEM: u8 = 4;
const REDIRECT: u8 = 137;
/// Types below are errors.
const FIRST_INFORMATION: u8 = 128;

/// What a router reports to the sender of an IPv6 packet.
///
/// # Source
/// RFC 4443; RFC 4861, section 4.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icmp6Error {
    /// No route leads to the destination.
    NoRoute,
    /// The destination, or the next router, does not answer on its link.
    AddressUnreachable,
    /// The packet does not fit the next link.
    PacketTooBig {
        /// Bytes of the longest packet that would fit.
        mtu: u32,
    },
    /// The hop limit was used up on the way.
    TimeExceeded,
    /// A header is malformed, or asks for what the router does not know.
    ParameterProblem {
        /// What is wrong.
        problem: ParameterProblem,
        /// Which byte of the packet is wrong, counted from 0.
        pointer: u32,
    },
    /// There is a better first hop on the sender's own link.
    Redirect {
        /// The link-local address of the better first hop, or the destination
        /// itself.
        target: Ipv6Addr,
        /// The link-layer address of the target, if it is known.
        target_link_layer_address: Option<MacAddress>,
    },
}

impl Icmp6Error {
    /// Whether a router may report this about the packet that came in a frame
    /// to `link_destination`.
    ///
    /// That the source is no anycast address only the router can tell. About a
    /// fragment that is not the first RFC 4443 allows an answer; it is sent, as
    /// by Linux and FreeBSD.
    ///
    /// Shape: an unrecognized option is reported only if
    /// [`hop_by_hop_options`](Ipv6Packet::hop_by_hop_options) says so, which
    /// knows the exception for multicast.
    ///
    /// # Errors
    /// Why it must keep silent.
    ///
    /// # Source
    /// RFC 4443, section 2.4(e).
    pub fn may_answer(
        &self,
        original: Ipv6Packet<&[u8]>,
        link_destination: MacAddress,
    ) -> Result<(), NoAnswer> {
        let is_for_groups_too = matches!(
            self,
            Self::PacketTooBig { .. }
                | Self::ParameterProblem {
                    problem: ParameterProblem::UnrecognizedOption,
                    ..
                }
        );
        let is_broadcast = link_destination == MacAddress([0xff; 6]);
        if is_broadcast || link_destination.is_group() && !is_for_groups_too {
            return Err(NoAnswer::LinkGroup);
        }
        if original.destination().is_multicast() && !is_for_groups_too {
            return Err(NoAnswer::DestinationGroup);
        }
        let source = original.source();
        if source.is_unspecified() || source.is_loopback() || source.is_multicast() {
            return Err(NoAnswer::Source);
        }
        let is_error = |message: &u8| *message < FIRST_INFORMATION || *message == REDIRECT;
        match original.upper_layer() {
            Some((PROTOCOL, message)) if message.first().is_none_or(is_error) => {
                Err(NoAnswer::IcmpError)
            }
            _ => Ok(()),
        }
    }

    /// Writes the IPv6 packet that reports the error about `original`, and
    /// returns its length.
    ///
    /// It quotes the original as it is, without what follows it in its frame,
    /// as far as 1280 bytes and `into` reach; a redirect, whose options have
    /// lengths of whole blocks, leaves out up to seven bytes of the end, as
    /// Linux and FreeBSD do.
    ///
    /// Traffic class and flow label are 0; Linux draws a flow label.
    ///
    /// Shape: `source` is an address of the router; in a redirect it is the
    /// link-local one of the interface, or the host does not believe it.
    ///
    /// # Panics
    /// If `into` is shorter than 96 bytes.
    pub fn emit(&self, original: Ipv6Packet<&[u8]>, source: Ipv6Addr, into: &mut [u8]) -> usize {
        let head_length = self.head_length();
        let room = into.len().min(PACKET_LENGTH_MAX) - ipv6::HEADER_LENGTH - head_length;
        let quoted = original.bytes();
        let mut quoted_length = quoted.len().min(room);
        if let Self::Redirect { .. } = self {
            quoted_length -= quoted_length % OPTION_BLOCK_LENGTH;
        }
        let message_length = u16::try_from(head_length + quoted_length)
            .expect("the message is shorter than 1280 bytes");
        let destination = original.source();
        let hop_limit = match self {
            Self::Redirect { .. } => REDIRECT_HOP_LIMIT,
            _ => HOP_LIMIT,
        };
        let mut packet = Ipv6Packet::emit(
            into,
            source,
            destination,
            PROTOCOL,
            hop_limit,
            message_length,
        );
        let message = packet.payload_mut();
        let (head, quotation) = message.split_at_mut(head_length);
        quotation.copy_from_slice(&quoted[..quoted_length]);
        self.emit_head(head, original.destination(), quoted_length);
        let checksum = Sum::pseudo_header_v6(source, destination, PROTOCOL, message_length.into())
            .bytes(message)
            .checksum();
        set_word(message, CHECKSUM, checksum);
        packet.total_length()
    }

    /// Bytes of the message in front of what it quotes.
    fn head_length(&self) -> usize {
        let options = match self {
            Self::Redirect {
                target_link_layer_address,
                ..
            } => {
                let blocks = 1 + usize::from(target_link_layer_address.is_some());
                REDIRECT_ADDRESSES_LENGTH + blocks * OPTION_BLOCK_LENGTH
            }
            _ => 0,
        };
        HEADER_LENGTH + options
    }

    /// Writes what stands in front of the quotation, its checksum 0.
    fn emit_head(&self, head: &mut [u8], destination: Ipv6Addr, quoted_length: usize) {
        let (kind, code, rest) = match *self {
            Self::NoRoute => (DESTINATION_UNREACHABLE, 0, 0),
            Self::AddressUnreachable => (DESTINATION_UNREACHABLE, 3, 0),
            Self::PacketTooBig { mtu } => (PACKET_TOO_BIG, 0, mtu),
            Self::TimeExceeded => (TIME_EXCEEDED, 0, 0),
            Self::ParameterProblem { problem, pointer } => {
                let code = match problem {
                    ParameterProblem::ErroneousHeaderField => 0,
                    ParameterProblem::UnrecognizedNextHeader => 1,
                    ParameterProblem::UnrecognizedOption => 2,
                };
                (PARAMETER_PROBLEM, code, pointer)
            }
            Self::Redirect { .. } => (REDIRECT, 0, 0),
        };
        head[0] = kind;
        head[1] = code;
        set_word(head, CHECKSUM, 0);
        set_octets(head, REST_OF_HEADER, &rest.to_be_bytes());
        let Self::Redirect {
            target,
            target_link_layer_address,
        } = self
        else {
            return;
        };
        let (addresses, options) = head[HEADER_LENGTH..].split_at_mut(REDIRECT_ADDRESSES_LENGTH);
        set_octets(addresses, 0, &target.octets());
        set_octets(addresses, 16, &destination.octets());
        if let Some(address) = target_link_layer_address {
            set_octets(options, 0, &[TARGET_LINK_LAYER_ADDRESS, 1]);
            set_octets(options, 2, &address.0);
        }
        let blocks = u8::try_from(1 + quoted_length / OPTION_BLOCK_LENGTH)
            .expect("1280 bytes are 160 blocks");
        let redirected_header = options.len() - OPTION_BLOCK_LENGTH;
        options[redirected_header..].copy_from_slice(&[
            REDIRECTED_HEADER,
            blocks,
            0,
            0,
            0,
            0,
            0,
            0,
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTER_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const TOO_BIG: Icmp6Error = Icmp6Error::PacketTooBig { mtu: 1280 };
    const OPTION: Icmp6Error = Icmp6Error::ParameterProblem {
        problem: ParameterProblem::UnrecognizedOption,
        pointer: 42,
    };
    const FIELD: Icmp6Error = Icmp6Error::ParameterProblem {
        problem: ParameterProblem::ErroneousHeaderField,
        pointer: 42,
    };

    fn packet(source: &str, destination: &str, next_header: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 40 + payload.len()];
        let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
        let length = u16::try_from(payload.len()).unwrap();
        Ipv6Packet::emit(&mut bytes, source, destination, next_header, 64, length)
            .payload_mut()
            .copy_from_slice(payload);
        bytes
    }

    fn verdict(error: Icmp6Error, bytes: &[u8], link: MacAddress) -> Result<(), NoAnswer> {
        error.may_answer(Ipv6Packet::new_checked(bytes).unwrap(), link)
    }

    #[test]
    fn only_one_node_is_answered() {
        for (source, expected) in [
            ("2001:db8::1", Ok(())),
            ("fe80::1", Ok(())),
            ("::", Err(NoAnswer::Source)),
            ("::1", Err(NoAnswer::Source)),
            ("ff02::1", Err(NoAnswer::Source)),
        ] {
            let bytes = packet(source, "2001:db8::2", 17, &[]);
            let verdict = verdict(Icmp6Error::TimeExceeded, &bytes, ROUTER_MAC);
            assert_eq!(verdict, expected, "{source}");
        }
    }

    #[test]
    fn about_a_group_only_its_exceptions_are_reported() {
        let multicast_mac = MacAddress([0x33, 0x33, 0, 0, 0, 1]);
        let to_one = packet("2001:db8::1", "2001:db8::2", 17, &[]);
        let to_group = packet("2001:db8::1", "ff0e::1", 17, &[]);
        for error in [TOO_BIG, OPTION] {
            assert_eq!(verdict(error, &to_group, multicast_mac), Ok(()));
            let broadcast = verdict(error, &to_group, MacAddress([0xff; 6]));
            assert_eq!(broadcast, Err(NoAnswer::LinkGroup));
        }
        for error in [Icmp6Error::TimeExceeded, Icmp6Error::NoRoute, FIELD] {
            let to_group = verdict(error, &to_group, ROUTER_MAC);
            assert_eq!(to_group, Err(NoAnswer::DestinationGroup));
            assert_eq!(
                verdict(error, &to_one, multicast_mac),
                Err(NoAnswer::LinkGroup)
            );
        }
    }

    #[test]
    fn an_error_or_a_redirect_is_not_answered() {
        let options = [PROTOCOL, 0, 1, 4, 0, 0, 0, 0];
        for kind in 0..=255 {
            let expected = if kind >= 128 && kind != 137 {
                Ok(())
            } else {
                Err(NoAnswer::IcmpError)
            };
            let direct = packet("2001:db8::1", "2001:db8::2", PROTOCOL, &[kind]);
            assert_eq!(verdict(TOO_BIG, &direct, ROUTER_MAC), expected, "{kind}");
            let payload = [&options[..], &[kind]].concat();
            let behind_options = packet("2001:db8::1", "2001:db8::2", 60, &payload);
            assert_eq!(
                verdict(TOO_BIG, &behind_options, ROUTER_MAC),
                expected,
                "{kind}"
            );
        }
        let empty = packet("2001:db8::1", "2001:db8::2", PROTOCOL, &[]);
        assert_eq!(
            verdict(TOO_BIG, &empty, ROUTER_MAC),
            Err(NoAnswer::IcmpError)
        );
    }
}
