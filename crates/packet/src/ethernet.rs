//! The Ethernet II header.

use crate::error::require_header;
use crate::field::{octets, set_octets, set_word, word};
use crate::{MacAddress, PacketError};

/// Bytes of the header.
pub const HEADER_LENGTH: usize = 14;
/// Bytes of the frame check sequence, which hardware adds and takes away.
pub const FCS_LENGTH: usize = 4;
/// The smallest frame without its FCS; a shorter one is padded with zeros.
pub const MINIMUM_LENGTH: usize = 60;
/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;

const DESTINATION: usize = 0;
const SOURCE: usize = 6;
const ETHER_TYPE: usize = 12;

/// A view of an Ethernet frame without its FCS.
#[derive(Clone, Copy, Debug)]
pub struct EthernetFrame<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> EthernetFrame<T> {
    /// A view of `buffer`, which holds a whole header.
    ///
    /// # Errors
    /// `Truncated`.
    pub fn new_checked(buffer: T) -> Result<Self, PacketError> {
        require_header("ethernet", buffer.as_ref().len(), HEADER_LENGTH)?;
        Ok(Self { buffer })
    }

    /// Where the frame goes on this link.
    pub fn destination_mac(&self) -> MacAddress {
        MacAddress(octets(self.buffer.as_ref(), DESTINATION))
    }

    /// Who sent the frame on this link.
    pub fn source_mac(&self) -> MacAddress {
        MacAddress(octets(self.buffer.as_ref(), SOURCE))
    }

    /// What the frame carries.
    pub fn ether_type(&self) -> u16 {
        word(self.buffer.as_ref(), ETHER_TYPE)
    }
}

impl<'a> EthernetFrame<&'a [u8]> {
    /// Everything after the header, padding included.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.buffer[HEADER_LENGTH..]
    }
}

impl<T: AsMut<[u8]>> EthernetFrame<T> {
    /// A new header at the start of `buffer`.
    ///
    /// # Panics
    /// If `buffer` is shorter than the header.
    pub(crate) fn emit(
        buffer: T,
        destination_mac: MacAddress,
        source_mac: MacAddress,
        ether_type: u16,
    ) -> Self {
        let mut frame = Self { buffer };
        frame.set_destination_mac(destination_mac);
        frame.set_source_mac(source_mac);
        set_word(frame.buffer.as_mut(), ETHER_TYPE, ether_type);
        frame
    }

    /// Sets where the frame goes on this link.
    pub fn set_destination_mac(&mut self, address: MacAddress) {
        set_octets(self.buffer.as_mut(), DESTINATION, &address.0);
    }

    /// Sets who sends the frame on this link.
    pub fn set_source_mac(&mut self, address: MacAddress) {
        set_octets(self.buffer.as_mut(), SOURCE, &address.0);
    }

    /// Everything after the header, padding included.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.buffer.as_mut()[HEADER_LENGTH..]
    }
}
