//! The IPv6 header.

use std::net::Ipv6Addr;

use crate::PacketError;
use crate::field::{octets, set_octets, set_word, word};

/// Bytes of the header.
pub const HEADER_LENGTH: usize = 40;

/// Version 6, with the upper half of a traffic class of 0.
const VERSION: u8 = 0x60;

const PAYLOAD_LENGTH: usize = 4;
const NEXT_HEADER: usize = 6;
const HOP_LIMIT: usize = 7;
const SOURCE: usize = 8;
const DESTINATION: usize = 24;

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
        if available < HEADER_LENGTH {
            return Err(PacketError::Truncated {
                header: "ipv6",
                length: available,
                minimum: HEADER_LENGTH,
            });
        }
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
