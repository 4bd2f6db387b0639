//! The IPv4 header, and what a router makes of its options.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use crate::PacketError;
use crate::checksum::{Sum, updated};
use crate::error::require_header;
use crate::field::{octets, set_octets, set_word, word};

/// Bytes of the header without options.
pub const HEADER_LENGTH: usize = 20;
/// Bytes of the longest header: 40 of them are options.
pub const HEADER_LENGTH_MAX: usize = 60;

/// Version 4, and a header of five 32-bit words.
const VERSION_AND_HEADER_LENGTH: u8 = 0x45;
const DONT_FRAGMENT: u16 = 0x4000;
pub(crate) const MORE_FRAGMENTS: u16 = 0x2000;
pub(crate) const MORE_FRAGMENTS_AND_OFFSET: u16 = 0x3fff;
/// The fragment offset counts blocks of eight bytes.
pub(crate) const FRAGMENT_OFFSET: u16 = 0x1fff;

const TYPE_OF_SERVICE: usize = 1;
pub(crate) const TOTAL_LENGTH: usize = 2;
pub(crate) const FLAGS_AND_OFFSET: usize = 6;
const HOP_LIMIT: usize = 8;
pub(crate) const PROTOCOL: usize = 9;
pub(crate) const CHECKSUM: usize = 10;
const SOURCE: usize = 12;
const DESTINATION: usize = 16;

/// Bytes of the header, as its first byte states them: from 0 to 60.
pub(crate) const fn header_length(version_and_header_length: u8) -> usize {
    (version_and_header_length & 0x0f) as usize * 4
}

/// A view of an IPv4 packet.
///
/// # Source
/// RFC 791.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4Packet<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Ipv4Packet<T> {
    /// A view of the packet at the start of `buffer`, padding may follow it:
    /// one without options that is not a fragment.
    ///
    /// # Errors
    /// `Truncated`, `IpVersion`, `Ipv4HeaderLength`, `IpLength`,
    /// `Ipv4Checksum`, `Fragment`.
    pub fn new_checked(buffer: T) -> Result<Self, PacketError> {
        let packet = Self::with_header_length_in(HEADER_LENGTH..=HEADER_LENGTH, buffer)?;
        if packet.is_fragment() {
            let seen = word(packet.buffer.as_ref(), FLAGS_AND_OFFSET);
            return Err(PacketError::Fragment { seen });
        }
        Ok(packet)
    }

    /// A view of any packet that a router may forward, options and fragments
    /// included. Padding may follow it.
    ///
    /// The options are not looked at: see [`ipv4_options`].
    ///
    /// # Errors
    /// `Truncated`, `IpVersion`, `Ipv4HeaderLength`, `IpLength`,
    /// `Ipv4Checksum`: the packet is dropped without an answer.
    ///
    /// # Source
    /// RFC 1812, section 5.2.2.
    pub fn new_validated(buffer: T) -> Result<Self, PacketError> {
        Self::with_header_length_in(HEADER_LENGTH..=HEADER_LENGTH_MAX, buffer)
    }

    fn with_header_length_in(
        header_lengths: RangeInclusive<usize>,
        buffer: T,
    ) -> Result<Self, PacketError> {
        let bytes = buffer.as_ref();
        let available = bytes.len();
        require_header("ipv4", available, HEADER_LENGTH)?;
        let version = bytes[0] >> 4;
        if version != 4 {
            return Err(PacketError::IpVersion {
                header: "ipv4",
                seen: version,
            });
        }
        let packet = Self { buffer };
        let header_length = packet.header_length();
        if !header_lengths.contains(&header_length) {
            return Err(PacketError::Ipv4HeaderLength {
                seen: header_length,
            });
        }
        require_header("ipv4", available, header_length)?;
        let stated = packet.total_length();
        if !(header_length..=available).contains(&stated) {
            return Err(PacketError::IpLength {
                header: "ipv4",
                stated,
                available,
            });
        }
        if packet.header_sum().checksum() != 0 {
            return Err(PacketError::Ipv4Checksum {
                seen: packet.checksum(),
                expected: packet.header_sum().word(!packet.checksum()).checksum(),
            });
        }
        Ok(packet)
    }

    /// Bytes of the header, options included.
    pub fn header_length(&self) -> usize {
        header_length(self.buffer.as_ref()[0])
    }

    /// Bytes of header and payload.
    pub fn total_length(&self) -> usize {
        word(self.buffer.as_ref(), TOTAL_LENGTH).into()
    }

    /// Precedence and type of service; today differentiated services and ECN.
    pub fn type_of_service(&self) -> u8 {
        self.buffer.as_ref()[TYPE_OF_SERVICE]
    }

    /// Whether routers have to drop the packet rather than fragment it.
    pub fn dont_fragment(&self) -> bool {
        word(self.buffer.as_ref(), FLAGS_AND_OFFSET) & DONT_FRAGMENT != 0
    }

    /// Whether fragments follow this one.
    pub fn more_fragments(&self) -> bool {
        word(self.buffer.as_ref(), FLAGS_AND_OFFSET) & MORE_FRAGMENTS != 0
    }

    /// Where in its datagram the payload of this packet begins.
    ///
    /// Units: blocks of eight bytes; 0 in the first fragment and in a packet
    /// that is whole.
    pub fn fragment_offset_blocks(&self) -> u16 {
        word(self.buffer.as_ref(), FLAGS_AND_OFFSET) & FRAGMENT_OFFSET
    }

    /// Whether the packet is a part of a datagram only.
    pub fn is_fragment(&self) -> bool {
        word(self.buffer.as_ref(), FLAGS_AND_OFFSET) & MORE_FRAGMENTS_AND_OFFSET != 0
    }

    /// How many routers the packet may still pass: the time to live.
    pub fn hop_limit(&self) -> u8 {
        self.buffer.as_ref()[HOP_LIMIT]
    }

    /// What the packet carries.
    pub fn protocol(&self) -> u8 {
        self.buffer.as_ref()[PROTOCOL]
    }

    /// The checksum of the header.
    pub fn checksum(&self) -> u16 {
        word(self.buffer.as_ref(), CHECKSUM)
    }

    /// Who sent the packet.
    pub fn source(&self) -> Ipv4Addr {
        octets(self.buffer.as_ref(), SOURCE).into()
    }

    /// Where the packet goes.
    pub fn destination(&self) -> Ipv4Addr {
        octets(self.buffer.as_ref(), DESTINATION).into()
    }

    fn header_sum(&self) -> Sum {
        Sum::default().bytes(&self.buffer.as_ref()[..self.header_length()])
    }
}

impl<'a> Ipv4Packet<&'a [u8]> {
    /// The packet without padding.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        &self.buffer[..self.total_length()]
    }

    /// The options, their padding included: 0 to 40 bytes.
    #[must_use]
    pub fn options(&self) -> &'a [u8] {
        &self.buffer[HEADER_LENGTH..self.header_length()]
    }

    /// What the packet carries, without padding.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.buffer[self.header_length()..self.total_length()]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Ipv4Packet<T> {
    /// A new packet at the start of `buffer`: identification 0, not to be
    /// fragmented, its header complete.
    ///
    /// # Panics
    /// If `buffer` is shorter than the packet, or the packet longer than
    /// 65535 bytes.
    pub(crate) fn emit(
        mut buffer: T,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        protocol: u8,
        hop_limit: u8,
        payload_length: u16,
    ) -> Self {
        let total_length = u16::try_from(HEADER_LENGTH + usize::from(payload_length))
            .expect("the length of the packet fits its field");
        let bytes = &mut buffer.as_mut()[..usize::from(total_length)];
        bytes[..HEADER_LENGTH].fill(0);
        bytes[0] = VERSION_AND_HEADER_LENGTH;
        set_word(bytes, TOTAL_LENGTH, total_length);
        set_word(bytes, FLAGS_AND_OFFSET, DONT_FRAGMENT);
        bytes[HOP_LIMIT] = hop_limit;
        bytes[PROTOCOL] = protocol;
        set_octets(bytes, SOURCE, &source.octets());
        set_octets(bytes, DESTINATION, &destination.octets());
        let checksum = Sum::default().bytes(&bytes[..HEADER_LENGTH]).checksum();
        set_word(bytes, CHECKSUM, checksum);
        Self { buffer }
    }

    /// Sets precedence and type of service, and brings the checksum up to date.
    pub(crate) fn set_type_of_service(&mut self, type_of_service: u8) {
        // It shares a word with version and header length.
        let old = word(self.buffer.as_ref(), 0);
        let new = old & 0xff00 | u16::from(type_of_service);
        let checksum = updated(self.checksum(), old, new);
        set_word(self.buffer.as_mut(), 0, new);
        set_word(self.buffer.as_mut(), CHECKSUM, checksum);
    }

    /// What the packet carries, without padding.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let payload = self.header_length()..self.total_length();
        &mut self.buffer.as_mut()[payload]
    }

    /// Takes one hop off, and brings the checksum up to date.
    ///
    /// # Errors
    /// `HopLimitExpired` when no hop would be left; the packet is unchanged.
    pub fn decrement_hop_limit(&mut self) -> Result<(), PacketError> {
        let hop_limit = self.hop_limit();
        if hop_limit <= 1 {
            return Err(PacketError::HopLimitExpired { seen: hop_limit });
        }
        // The checksum is of words: the hop limit shares one with the protocol.
        let old = word(self.buffer.as_ref(), HOP_LIMIT);
        let new = old - 0x0100;
        let checksum = updated(self.checksum(), old, new);
        set_word(self.buffer.as_mut(), HOP_LIMIT, new);
        set_word(self.buffer.as_mut(), CHECKSUM, checksum);
        Ok(())
    }
}

/// Ends the list of options.
pub(crate) const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;
const RECORD_ROUTE: u8 = 7;
const TIMESTAMP: u8 = 68;
const LOOSE_SOURCE_ROUTE: u8 = 131;
const STRICT_SOURCE_ROUTE: u8 = 137;

/// What a router does about the options of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionsVerdict {
    /// Forward the packet, its options as they are.
    Forward,
    /// Drop the packet: it asks for a source route. FreeBSD says so to the
    /// sender ([`Icmp4Error::SourceRouteFailed`]), Linux does not.
    ///
    /// [`Icmp4Error::SourceRouteFailed`]: crate::Icmp4Error::SourceRouteFailed
    SourceRoute,
    /// Drop the packet and report a parameter problem.
    ParameterProblem {
        /// Which byte of the packet is wrong, counted from 0.
        pointer: u8,
    },
}

/// What a router does about `options`, which may be empty.
///
/// - Source routes, loose or strict, are refused: the default of FreeBSD
///   (`net.inet.ip.sourceroute` is 0), of Linux (`accept_source_route` is 0 for
///   `all`) and of RFC 7126.
/// - Record route and timestamp are forwarded as they are, well-formed or not
///   at all. FreeBSD (`net.inet.ip.process_options` is 1) and Linux write
///   their address and the time into them; RFC 1812 has a router do that but
///   allows a setting that does not, and this function has no clock.
/// - Every other option is none of a router's business, known or not.
/// - A list that cannot be read, or a pointer of the options above that lies
///   outside of its option, is a parameter problem at the first byte that is
///   wrong. FreeBSD, too, points at a wrong length; Linux points at the type in
///   front of it.
///
/// Shape: the bytes after the first 20 of a header.
///
/// # Source
/// RFC 791, section 3.1; RFC 1812, sections 4.2.2.1 and 5.3.13;
/// RFC 7126.
///
/// # Examples
/// ```
/// use fwdlab_packet::ipv4::{OptionsVerdict, ipv4_options};
///
/// // No operation, then router alert.
/// assert_eq!(ipv4_options(&[1, 1, 1, 1, 148, 4, 0, 0]), OptionsVerdict::Forward);
/// // A loose source route by way of one address.
/// let options = [131, 7, 4, 192, 0, 2, 1, 0];
/// assert_eq!(ipv4_options(&options), OptionsVerdict::SourceRoute);
/// // An option of nine bytes, where four are left.
/// let verdict = OptionsVerdict::ParameterProblem { pointer: 21 };
/// assert_eq!(ipv4_options(&[7, 9, 4, 0]), verdict);
/// ```
#[must_use]
pub fn ipv4_options(options: &[u8]) -> OptionsVerdict {
    for option in options_of(options) {
        let (offset, bytes) = match option {
            Ok(option) => option,
            Err(offset) => return parameter_problem(offset),
        };
        // The least bytes of the option, and the least its pointer may be.
        let (least, first_slot) = match bytes[0] {
            RECORD_ROUTE | LOOSE_SOURCE_ROUTE | STRICT_SOURCE_ROUTE => (3, 4),
            TIMESTAMP => (4, 5),
            _ => continue,
        };
        if bytes.len() < least {
            return parameter_problem(offset + 1);
        }
        // A pointer behind the option says that it is full.
        let pointer = usize::from(bytes[2]);
        let is_full = pointer > bytes.len();
        if pointer < first_slot || !is_full && pointer + 3 > bytes.len() {
            return parameter_problem(offset + 2);
        }
        if matches!(bytes[0], LOOSE_SOURCE_ROUTE | STRICT_SOURCE_ROUTE) {
            return OptionsVerdict::SourceRoute;
        }
    }
    OptionsVerdict::Forward
}

fn parameter_problem(offset: usize) -> OptionsVerdict {
    OptionsVerdict::ParameterProblem {
        // A header has 60 bytes; from longer input the last pointer is given.
        pointer: u8::try_from(HEADER_LENGTH + offset).unwrap_or(u8::MAX),
    }
}

/// The options that are longer than a byte, each with where it begins, up to
/// the end of the list or to the byte that is wrong, which is then the error.
pub(crate) fn options_of(options: &[u8]) -> impl Iterator<Item = Result<(usize, &[u8]), usize>> {
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let mut offset = next?;
        while options.get(offset) == Some(&NO_OPERATION) {
            offset += 1;
        }
        // Nothing more is read after the end of the list or an error.
        next = None;
        if *options.get(offset)? == END_OF_OPTIONS {
            return None;
        }
        let Some(&length) = options.get(offset + 1) else {
            return Some(Err(offset));
        };
        let end = offset + usize::from(length);
        match options.get(offset..end) {
            Some(option) if length >= 2 => {
                next = Some(end);
                Some(Ok((offset, option)))
            }
            _ => Some(Err(offset + 1)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use OptionsVerdict::{Forward, ParameterProblem, SourceRoute};
    use proptest::prelude::*;

    #[test]
    fn options_are_forwarded_refused_or_reported() {
        for (options, verdict) in [
            (&[][..], Forward),
            (&[1, 1, 1, 0], Forward),
            // Nothing counts behind the end of the list.
            (&[0, 131, 1, 0], Forward),
            // Unknown options, copied and not.
            (&[1, 0x9e, 3, 0xaa], Forward),
            (&[0x1e, 2, 0x9e, 2], Forward),
            // Record route: empty, half full, full.
            (&[7, 7, 4, 0, 0, 0, 0, 0], Forward),
            (&[7, 11, 8, 1, 2, 3, 4, 0, 0, 0, 0, 0], Forward),
            (&[7, 7, 8, 1, 2, 3, 4, 0], Forward),
            (&[7, 3, 4, 0], Forward),
            (&[68, 8, 5, 0, 0, 0, 0, 0], Forward),
            (&[68, 4, 5, 0], Forward),
            (&[131, 7, 4, 192, 0, 2, 1, 0], SourceRoute),
            (&[1, 137, 7, 8, 192, 0, 2, 1], SourceRoute),
            // No room for the length; a length too short; one too long.
            (&[1, 1, 1, 7], ParameterProblem { pointer: 23 }),
            (&[1, 0x9e, 1, 0], ParameterProblem { pointer: 22 }),
            (&[1, 0x9e, 0, 0], ParameterProblem { pointer: 22 }),
            (&[1, 0x9e, 4, 0], ParameterProblem { pointer: 22 }),
            // Too short for a pointer; pointers before, and half behind, the slots.
            (&[7, 2, 0, 0], ParameterProblem { pointer: 21 }),
            (&[68, 3, 5, 0], ParameterProblem { pointer: 21 }),
            (&[1, 7, 7, 3, 0, 0, 0, 0], ParameterProblem { pointer: 23 }),
            (&[7, 7, 5, 0, 0, 0, 0, 0], ParameterProblem { pointer: 22 }),
            (&[68, 8, 4, 0, 0, 0, 0, 0], ParameterProblem { pointer: 22 }),
            (
                &[131, 7, 6, 0, 0, 0, 0, 0],
                ParameterProblem { pointer: 22 },
            ),
            // The first that is found counts.
            (&[0x9e, 2, 131, 3, 4, 7, 0, 0], SourceRoute),
        ] {
            assert_eq!(ipv4_options(options), verdict, "{options:?}");
        }
    }

    /// A header with options and nothing behind it, its checksum right.
    fn header(flags_and_offset: u16, options: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_LENGTH];
        bytes.extend(options);
        bytes[0] = 0x40 | u8::try_from(bytes.len() / 4).unwrap();
        let total_length = u16::try_from(bytes.len()).unwrap();
        set_word(&mut bytes, TOTAL_LENGTH, total_length);
        set_word(&mut bytes, FLAGS_AND_OFFSET, flags_and_offset);
        bytes[HOP_LIMIT] = 2;
        let checksum = Sum::default().bytes(&bytes).checksum();
        set_word(&mut bytes, CHECKSUM, checksum);
        bytes
    }

    #[test]
    fn a_router_takes_options_and_fragments() {
        let bytes = header(0x2003, &[1, 2, 3, 4, 5, 6, 7, 8]);
        let packet = Ipv4Packet::new_validated(bytes.as_slice()).unwrap();
        assert_eq!(packet.options(), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(packet.payload(), [0; 0]);
        assert!(packet.is_fragment() && packet.more_fragments() && !packet.dont_fragment());
        assert_eq!(packet.fragment_offset_blocks(), 3);

        let whole = header(0x4000, &[]);
        let whole = Ipv4Packet::new_validated(whole.as_slice()).unwrap();
        assert!(!whole.is_fragment() && !whole.more_fragments() && whole.dont_fragment());
    }

    #[test]
    fn a_router_refuses_what_is_no_header() {
        let good = header(0, &[1; 40]);
        let error = |bytes: &[u8]| Ipv4Packet::new_validated(bytes).err();
        assert_eq!(error(&good), None);
        assert_eq!(
            error(&good[..59]),
            Some(PacketError::Truncated {
                header: "ipv4",
                length: 59,
                minimum: 60
            })
        );
        let mut short = good.clone();
        short[0] = 0x44;
        assert_eq!(
            error(&short),
            Some(PacketError::Ipv4HeaderLength { seen: 16 })
        );
        let mut inside_the_header = good.clone();
        inside_the_header[3] = 59;
        assert_eq!(
            error(&inside_the_header),
            Some(PacketError::IpLength {
                header: "ipv4",
                stated: 59,
                available: 60
            })
        );
        // The checksum covers the options.
        let mut damaged = good;
        damaged[59] = 2;
        assert!(matches!(
            error(&damaged),
            Some(PacketError::Ipv4Checksum { .. })
        ));
    }

    proptest! {
        #[test]
        fn no_options_panic(options: Vec<u8>) {
            let verdict = ipv4_options(&options);
            if options.len() <= 40 && let ParameterProblem { pointer } = verdict {
                prop_assert!((20..20 + options.len()).contains(&pointer.into()));
            }
        }

        #[test]
        fn no_header_panics(
            mut bytes in prop::collection::vec(any::<u8>(), 0..100), words in 0..16_u8,
        ) {
            if let Some(first) = bytes.first_mut() {
                *first = 0x40 | words;
            }
            if bytes.len() >= HEADER_LENGTH {
                let total_length = u16::try_from(bytes.len()).unwrap();
                set_word(&mut bytes, TOTAL_LENGTH, total_length);
                if let Some(header) = bytes.get_mut(..header_length(words))
                    && header.len() >= HEADER_LENGTH
                {
                    set_word(header, CHECKSUM, 0);
                    let checksum = Sum::default().bytes(header).checksum();
                    set_word(header, CHECKSUM, checksum);
                }
            }
            if let Ok(packet) = Ipv4Packet::new_validated(bytes.as_slice()) {
                prop_assert_eq!(
                    HEADER_LENGTH + packet.options().len() + packet.payload().len(),
                    packet.bytes().len()
                );
            }
        }

        #[test]
        fn one_hop_less_keeps_the_checksum_of_options_right(
            options in prop::collection::vec(any::<u8>(), 0..10),
        ) {
            let options: Vec<u8> = options.iter().flat_map(|byte| [*byte; 4]).collect();
            let mut bytes = header(0, &options);
            let mut packet = Ipv4Packet::new_validated(bytes.as_mut_slice()).unwrap();
            packet.decrement_hop_limit().unwrap();
            prop_assert!(Ipv4Packet::new_validated(bytes).is_ok());
        }
    }
}
