//! The UDP header.

use crate::PacketError;
use crate::checksum::Sum;
use crate::error::require_header;
use crate::field::{set_octets, set_word, word};

/// Bytes of the header.
pub const HEADER_LENGTH: usize = 8;
/// The number of UDP as IPv4 protocol and as IPv6 next header.
pub const PROTOCOL: u8 = 17;

const SOURCE_PORT: usize = 0;
const DESTINATION_PORT: usize = 2;
const LENGTH: usize = 4;
const CHECKSUM: usize = 6;

/// A view of a UDP datagram that fills the payload of its IP packet.
///
/// # Source
/// RFC 768.
#[derive(Clone, Copy, Debug)]
pub struct UdpDatagram<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> UdpDatagram<T> {
    /// A view of `buffer`, whose checksum is right with the pseudo header that
    /// `pseudo_header` gives for its length.
    ///
    /// IPv4 allows a datagram without a checksum; here it is an error, because
    /// nothing about it could be verified.
    ///
    /// # Errors
    /// `Truncated`, `UdpLength`, `UdpChecksumAbsent`, `UdpChecksum`.
    pub fn new_checked(
        buffer: T,
        pseudo_header: impl FnOnce(u16) -> Sum,
    ) -> Result<Self, PacketError> {
        let bytes = buffer.as_ref();
        require_header("udp", bytes.len(), HEADER_LENGTH)?;
        let length = word(bytes, LENGTH);
        if usize::from(length) != bytes.len() {
            return Err(PacketError::UdpLength {
                seen: length.into(),
                expected: bytes.len(),
            });
        }
        let seen = word(bytes, CHECKSUM);
        if seen == 0 {
            return Err(PacketError::UdpChecksumAbsent);
        }
        let expected = checksum(bytes, pseudo_header(length));
        if seen != expected {
            return Err(PacketError::UdpChecksum { seen, expected });
        }
        Ok(Self { buffer })
    }

    /// The port of the sender.
    pub fn source_port(&self) -> u16 {
        word(self.buffer.as_ref(), SOURCE_PORT)
    }

    /// The port of the receiver.
    pub fn destination_port(&self) -> u16 {
        word(self.buffer.as_ref(), DESTINATION_PORT)
    }
}

impl<'a> UdpDatagram<&'a [u8]> {
    /// What the datagram carries.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.buffer[HEADER_LENGTH..]
    }
}

/// Writes a datagram that fills `bytes`, of which there are `length`.
pub(crate) fn emit(
    bytes: &mut [u8],
    pseudo_header: Sum,
    source_port: u16,
    destination_port: u16,
    length: u16,
    payload: &[u8],
) {
    set_word(bytes, SOURCE_PORT, source_port);
    set_word(bytes, DESTINATION_PORT, destination_port);
    set_word(bytes, LENGTH, length);
    set_octets(bytes, HEADER_LENGTH, payload);
    let checksum = checksum(bytes, pseudo_header);
    set_word(bytes, CHECKSUM, checksum);
}

/// The checksum the datagram should have, whatever stands in its field.
fn checksum(bytes: &[u8], pseudo_header: Sum) -> u16 {
    let sum = pseudo_header
        .bytes(&bytes[..CHECKSUM])
        .bytes(&bytes[HEADER_LENGTH..]);
    match sum.checksum() {
        // Zero on the wire means "no checksum"; 0xffff is the same number.
        0 => 0xffff,
        checksum => checksum,
    }
}
