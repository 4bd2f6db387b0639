//! The IPv4 header, without options.

use std::net::Ipv4Addr;

use crate::PacketError;
use crate::checksum::{Sum, updated};
use crate::field::{octets, set_octets, set_word, word};

/// Bytes of the header.
pub const HEADER_LENGTH: usize = 20;

/// Version 4, and a header of five 32-bit words.
const VERSION_AND_HEADER_LENGTH: u8 = 0x45;
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS_AND_OFFSET: u16 = 0x3fff;

const TOTAL_LENGTH: usize = 2;
const FLAGS_AND_OFFSET: usize = 6;
const HOP_LIMIT: usize = 8;
const PROTOCOL: usize = 9;
const CHECKSUM: usize = 10;
const SOURCE: usize = 12;
const DESTINATION: usize = 16;

/// A view of an IPv4 packet that has no options and is not a fragment.
///
/// # Source
/// RFC 791.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4Packet<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Ipv4Packet<T> {
    /// A view of the packet at the start of `buffer`, padding may follow it.
    ///
    /// # Errors
    /// `Truncated`, `IpVersion`, `Ipv4HeaderLength`, `IpLength`,
    /// `Ipv4Checksum`, `Fragment`.
    pub fn new_checked(buffer: T) -> Result<Self, PacketError> {
        let bytes = buffer.as_ref();
        let available = bytes.len();
        if available < HEADER_LENGTH {
            return Err(PacketError::Truncated {
                header: "ipv4",
                length: available,
                minimum: HEADER_LENGTH,
            });
        }
        let version = bytes[0] >> 4;
        if version != 4 {
            return Err(PacketError::IpVersion {
                header: "ipv4",
                seen: version,
            });
        }
        let header_length = usize::from(bytes[0] & 0x0f) * 4;
        if header_length != HEADER_LENGTH {
            return Err(PacketError::Ipv4HeaderLength {
                seen: header_length,
            });
        }
        let packet = Self { buffer };
        let stated = packet.total_length();
        if !(HEADER_LENGTH..=available).contains(&stated) {
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
        let seen = word(packet.buffer.as_ref(), FLAGS_AND_OFFSET);
        if seen & MORE_FRAGMENTS_AND_OFFSET != 0 {
            return Err(PacketError::Fragment { seen });
        }
        Ok(packet)
    }

    /// Bytes of header and payload.
    pub fn total_length(&self) -> usize {
        word(self.buffer.as_ref(), TOTAL_LENGTH).into()
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
        Sum::default().bytes(&self.buffer.as_ref()[..HEADER_LENGTH])
    }
}

impl<'a> Ipv4Packet<&'a [u8]> {
    /// What the packet carries, without padding.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.buffer[HEADER_LENGTH..self.total_length()]
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

    /// What the packet carries, without padding.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let end = self.total_length();
        &mut self.buffer.as_mut()[HEADER_LENGTH..end]
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
