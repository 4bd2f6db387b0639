//! The IPv6 header, and what a router makes of the headers behind it.

use std::net::Ipv6Addr;

use crate::PacketError;
use crate::error::require_header;
use crate::field::{octets, set_octets, set_word, word};

/// Bytes of the header.
pub const HEADER_LENGTH: usize = 40;

/// Version 6, with the upper half of a traffic class of 0.
const VERSION: u8 = 0x60;

const PAYLOAD_LENGTH: usize = 4;
pub(crate) const NEXT_HEADER: usize = 6;
const HOP_LIMIT: usize = 7;
const SOURCE: usize = 8;
const DESTINATION: usize = 24;

const HOP_BY_HOP_OPTIONS: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;

const FRAGMENT_HEADER_LENGTH: usize = 8;
/// In the second word of a fragment header, above two reserved bits and "more
/// fragments".
const FRAGMENT_OFFSET: u16 = 0xfff8;

const PAD_1: u8 = 0;
const PAD_N: u8 = 1;
const ROUTER_ALERT: u8 = 5;

/// Where the first extension header begins, as a pointer of ICMPv6.
const HEADER_LENGTH_POINTER: u32 = 40;

/// What a router does about the hop-by-hop options of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionsVerdict {
    /// Forward the packet, its options as they are.
    Forward,
    /// Drop the packet without an answer, as an unknown option demands.
    Discard,
    /// Drop the packet and report a parameter problem.
    ParameterProblem {
        /// What is wrong.
        problem: ParameterProblem,
        /// Which byte of the packet is wrong, counted from 0.
        pointer: u32,
    },
}

/// What ICMPv6 can report about a header.
///
/// # Source
/// RFC 4443, section 3.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterProblem {
    /// A field has a value that it cannot have.
    ErroneousHeaderField,
    /// No header of this number is known.
    UnrecognizedNextHeader,
    /// No option of this type is known, and the option wants that reported.
    UnrecognizedOption,
}

fn unrecognized_option(pointer: u32) -> OptionsVerdict {
    OptionsVerdict::ParameterProblem {
        problem: ParameterProblem::UnrecognizedOption,
        pointer,
    }
}

/// The length of the extension header at `offset`, and its bytes, if it fits.
///
/// Shape: `blocks` of eight bytes are counted without the first.
fn extension_header(bytes: &[u8], offset: usize, blocks: u8) -> Option<(usize, &[u8])> {
    let length = (usize::from(blocks) + 1) * 8;
    Some((length, bytes.get(offset..offset + length)?))
}

/// A view of an IPv6 packet.
///
/// # Source
/// RFC 8200.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6Packet<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Ipv6Packet<T> {
    /// A view of the packet at the start of `buffer`, padding may follow it.
    ///
    /// # Errors
    /// `Truncated`, `IpVersion`, `IpLength`.
    pub fn new_checked(buffer: T) -> Result<Self, PacketError> {
        let bytes = buffer.as_ref();
        let available = bytes.len();
        require_header("ipv6", available, HEADER_LENGTH)?;
        let version = bytes[0] >> 4;
        if version != 6 {
            return Err(PacketError::IpVersion {
                header: "ipv6",
                seen: version,
            });
        }
        let packet = Self { buffer };
        let stated = packet.total_length();
        if stated > available {
            return Err(PacketError::IpLength {
                header: "ipv6",
                stated,
                available,
            });
        }
        Ok(packet)
    }

    /// Bytes of header and payload.
    pub fn total_length(&self) -> usize {
        HEADER_LENGTH + usize::from(word(self.buffer.as_ref(), PAYLOAD_LENGTH))
    }

    /// What the packet carries.
    pub fn next_header(&self) -> u8 {
        self.buffer.as_ref()[NEXT_HEADER]
    }

    /// How many routers the packet may still pass.
    pub fn hop_limit(&self) -> u8 {
        self.buffer.as_ref()[HOP_LIMIT]
    }

    /// Who sent the packet.
    pub fn source(&self) -> Ipv6Addr {
        octets(self.buffer.as_ref(), SOURCE).into()
    }

    /// Where the packet goes.
    pub fn destination(&self) -> Ipv6Addr {
        octets(self.buffer.as_ref(), DESTINATION).into()
    }
}

impl<'a> Ipv6Packet<&'a [u8]> {
    /// The packet without padding.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        &self.buffer[..self.total_length()]
    }

    /// What a router does about the hop-by-hop options: nothing, if there are
    /// none. It looks at no other extension header.
    ///
    /// The header is examined, not skipped as RFC 8200 allows since 2017;
    /// FreeBSD and Linux examine it, too. No option is known here but padding
    /// and router alert (RFC 2711), which asks for nothing that this router
    /// has; so jumbograms (RFC 2675) are refused as any unknown option is that
    /// says so. A header or an option that does not fit is a parameter problem;
    /// Linux drops such a packet without a word.
    ///
    /// # Source
    /// RFC 8200, sections 4.2 and 4.3; RFC 4443, section 3.4.
    #[must_use]
    pub fn hop_by_hop_options(&self) -> OptionsVerdict {
        if self.next_header() != HOP_BY_HOP_OPTIONS {
            return OptionsVerdict::Forward;
        }
        let bytes = self.bytes();
        let erroneous = |pointer| OptionsVerdict::ParameterProblem {
            problem: ParameterProblem::ErroneousHeaderField,
            pointer,
        };
        let Some((options_length, options)) = bytes
            .get(HEADER_LENGTH + 1)
            .and_then(|&blocks| extension_header(bytes, HEADER_LENGTH, blocks))
        else {
            // Where the length of the header stands, or would.
            return erroneous(HEADER_LENGTH_POINTER + 1);
        };
        let mut offset = 2;
        while offset < options_length {
            // Within the header, which is shorter than 2056 bytes.
            let pointer = |offset| HEADER_LENGTH_POINTER + u32::try_from(offset).unwrap_or(0);
            let option = options[offset];
            if option == PAD_1 {
                offset += 1;
                continue;
            }
            let Some(end) = options
                .get(offset + 1)
                .map(|&length| offset + 2 + usize::from(length))
                .filter(|&end| end <= options_length)
            else {
                return erroneous(pointer((offset + 1).min(options_length - 1)));
            };
            match (option, option >> 6) {
                (PAD_N | ROUTER_ALERT, _) | (_, 0b00) => {}
                (_, 0b10) => return unrecognized_option(pointer(offset)),
                (_, 0b11) if !self.destination().is_multicast() => {
                    return unrecognized_option(pointer(offset));
                }
                _ => return OptionsVerdict::Discard,
            }
            offset = end;
        }
        OptionsVerdict::Forward
    }

    /// The protocol behind the extension headers and what of it is there, or
    /// `None` where a header is cut, or a fragment begins in the middle.
    ///
    /// A router needs it only before it reports an error, because an error
    /// about an ICMPv6 error is not to be sent.
    ///
    /// # Source
    /// RFC 8200, section 4; RFC 4302, section 2.2.
    #[must_use]
    pub fn upper_layer(&self) -> Option<(u8, &'a [u8])> {
        let bytes = self.bytes();
        let mut protocol = self.next_header();
        let mut offset = HEADER_LENGTH;
        loop {
            let header = bytes.get(offset..)?;
            let length = match protocol {
                HOP_BY_HOP_OPTIONS | ROUTING | DESTINATION_OPTIONS => {
                    extension_header(bytes, offset, *header.get(1)?)?.0
                }
                FRAGMENT => {
                    let (fragment, _) = header.split_first_chunk::<FRAGMENT_HEADER_LENGTH>()?;
                    if word(fragment, 2) & FRAGMENT_OFFSET != 0 {
                        return None;
                    }
                    FRAGMENT_HEADER_LENGTH
                }
                // Its length counts words of four bytes.
                AUTHENTICATION => (usize::from(*header.get(1)?) + 2) * 4,
                _ => return Some((protocol, header)),
            };
            // Every header has at least eight bytes, so this ends.
            protocol = header[0];
            offset += length;
        }
    }

    /// What the packet carries, without padding.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.buffer[HEADER_LENGTH..self.total_length()]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Ipv6Packet<T> {
    /// A new packet at the start of `buffer`: traffic class and flow label 0.
    ///
    /// # Panics
    /// If `buffer` is shorter than the packet.
    pub(crate) fn emit(
        mut buffer: T,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        next_header: u8,
        hop_limit: u8,
        payload_length: u16,
    ) -> Self {
        let bytes = &mut buffer.as_mut()[..HEADER_LENGTH + usize::from(payload_length)];
        bytes[..HEADER_LENGTH].fill(0);
        bytes[0] = VERSION;
        set_word(bytes, PAYLOAD_LENGTH, payload_length);
        bytes[NEXT_HEADER] = next_header;
        bytes[HOP_LIMIT] = hop_limit;
        set_octets(bytes, SOURCE, &source.octets());
        set_octets(bytes, DESTINATION, &destination.octets());
        Self { buffer }
    }

    /// What the packet carries, without padding.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let end = self.total_length();
        &mut self.buffer.as_mut()[HEADER_LENGTH..end]
    }

    /// Takes one hop off.
    ///
    /// # Errors
    /// `HopLimitExpired` when no hop would be left; the packet is unchanged.
    pub fn decrement_hop_limit(&mut self) -> Result<(), PacketError> {
        let hop_limit = self.hop_limit();
        if hop_limit <= 1 {
            return Err(PacketError::HopLimitExpired { seen: hop_limit });
        }
        self.buffer.as_mut()[HOP_LIMIT] = hop_limit - 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use OptionsVerdict::{Discard, Forward};
    use proptest::prelude::*;

    fn packet(destination: Ipv6Addr, next_header: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_LENGTH + payload.len()];
        let length = u16::try_from(payload.len()).unwrap();
        Ipv6Packet::emit(
            &mut bytes,
            Ipv6Addr::LOCALHOST,
            destination,
            next_header,
            64,
            length,
        )
        .payload_mut()
        .copy_from_slice(payload);
        bytes
    }

    fn verdict(destination: &str, payload: &[u8]) -> OptionsVerdict {
        let bytes = packet(destination.parse().unwrap(), HOP_BY_HOP_OPTIONS, payload);
        Ipv6Packet::new_checked(bytes.as_slice())
            .unwrap()
            .hop_by_hop_options()
    }

    #[test]
    fn hop_by_hop_options_are_skipped_discarded_or_reported() {
        use ParameterProblem::{ErroneousHeaderField, UnrecognizedOption};
        let problem = |problem, pointer| OptionsVerdict::ParameterProblem { problem, pointer };
        let (unicast, multicast) = ("2001:db8::1", "ff0e::1");
        for (destination, payload, expected) in [
            (unicast, &[17, 0, 1, 4, 0, 0, 0, 0][..], Forward),
            (unicast, &[17, 0, 0, 0, 0, 0, 0, 0], Forward),
            (unicast, &[17, 0, 5, 2, 0, 0, 1, 0], Forward),
            (unicast, &[17, 0, 0x1e, 4, 1, 2, 3, 4], Forward),
            (unicast, &[17, 0, 0x5e, 4, 1, 2, 3, 4], Discard),
            (
                unicast,
                &[17, 0, 0x9e, 4, 1, 2, 3, 4],
                problem(UnrecognizedOption, 42),
            ),
            (
                multicast,
                &[17, 0, 0x9e, 4, 1, 2, 3, 4],
                problem(UnrecognizedOption, 42),
            ),
            (
                unicast,
                &[17, 0, 1, 0, 0xde, 2, 3, 4],
                problem(UnrecognizedOption, 44),
            ),
            (multicast, &[17, 0, 1, 0, 0xde, 2, 3, 4], Discard),
            // A jumbogram.
            (
                unicast,
                &[17, 0, 0xc2, 4, 0, 1, 0, 0],
                problem(UnrecognizedOption, 42),
            ),
            // The option does not fit; there is no room for its length.
            (
                unicast,
                &[17, 0, 0x1e, 5, 1, 2, 3, 4],
                problem(ErroneousHeaderField, 43),
            ),
            (
                unicast,
                &[17, 0, 1, 3, 0, 0, 0, 0x1e],
                problem(ErroneousHeaderField, 47),
            ),
            // The header does not fit; its length is not there.
            (
                unicast,
                &[17, 1, 1, 4, 0, 0, 0, 0],
                problem(ErroneousHeaderField, 41),
            ),
            (unicast, &[17], problem(ErroneousHeaderField, 41)),
            (unicast, &[], problem(ErroneousHeaderField, 41)),
        ] {
            assert_eq!(
                verdict(destination, payload),
                expected,
                "{destination} {payload:?}"
            );
        }
    }

    #[test]
    fn only_the_first_header_is_looked_at() {
        let destination_options = [17, 0, 0x9e, 4, 1, 2, 3, 4];
        let bytes = packet(
            Ipv6Addr::LOCALHOST,
            DESTINATION_OPTIONS,
            &destination_options,
        );
        let packet = Ipv6Packet::new_checked(bytes.as_slice()).unwrap();
        assert_eq!(packet.hop_by_hop_options(), Forward);
    }

    #[test]
    fn the_upper_layer_is_found_behind_every_extension_header() {
        let chain = [
            (HOP_BY_HOP_OPTIONS, vec![0, 0, 1, 4, 0, 0, 0, 0]),
            (
                ROUTING,
                vec![0, 1, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8],
            ),
            (FRAGMENT, vec![0, 0, 0, 1, 9, 9, 9, 9]),
            (AUTHENTICATION, vec![0, 1, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]),
            (DESTINATION_OPTIONS, vec![0, 0, 1, 4, 0, 0, 0, 0]),
        ];
        let mut payload = Vec::new();
        for (index, (_, header)) in chain.iter().enumerate() {
            let start = payload.len();
            payload.extend(header);
            payload[start] = chain.get(index + 1).map_or(58, |(number, _)| *number);
        }
        payload.extend([1, 2, 3]);
        let bytes = packet(Ipv6Addr::LOCALHOST, chain[0].0, &payload);
        let packet = |bytes| Ipv6Packet::new_checked(bytes).unwrap();
        assert_eq!(
            packet(bytes.as_slice()).upper_layer(),
            Some((58, &[1, 2, 3][..]))
        );
        let mut second_fragment = bytes.clone();
        second_fragment[HEADER_LENGTH + 8 + 16 + 3] = 8 | 1;
        assert_eq!(packet(second_fragment.as_slice()).upper_layer(), None);
    }

    proptest! {
        #[test]
        fn no_chain_of_headers_panics(
            next_header in prop::sample::select(vec![0_u8, 43, 44, 51, 60, 17, 58]),
            mut payload in prop::collection::vec(any::<u8>(), 0..200),
            lengths in prop::collection::vec(0..3_u8, 100),
        ) {
            // Mostly short headers, so that the walk goes on.
            for (pair, length) in payload.chunks_mut(8).zip(lengths) {
                if let [number, blocks, ..] = pair {
                    *number = [0, 43, 44, 51, 60, 17, 58, 1][usize::from(*number) % 8];
                    *blocks = length;
                }
            }
            let bytes = packet(Ipv6Addr::LOCALHOST, next_header, &payload);
            let packet = Ipv6Packet::new_checked(bytes.as_slice()).unwrap();
            if let Some((_, upper_layer)) = packet.upper_layer() {
                prop_assert!(payload.ends_with(upper_layer));
            }
            if let OptionsVerdict::ParameterProblem { pointer, .. } = packet.hop_by_hop_options() {
                prop_assert!((41..=41.max(40 + payload.len())).contains(&(pointer as usize)));
            }
        }
    }
}
