//! Fragmentation of IPv4 packets by a router.

use crate::checksum::Sum;
use crate::field::{set_word, word};
use crate::ipv4::{
    CHECKSUM, END_OF_OPTIONS, FLAGS_AND_OFFSET, FRAGMENT_OFFSET, HEADER_LENGTH, HEADER_LENGTH_MAX,
    Ipv4Packet, MORE_FRAGMENTS, TOTAL_LENGTH, options_of,
};

/// The least MTU of a link that carries IPv4: the longest header and one block.
///
/// # Source
/// RFC 791, section 3.2.
pub const MTU_MIN: usize = 68;

/// Fragments but the last carry a multiple of this many bytes.
const BLOCK_LENGTH: usize = 8;
/// Bit of an option's type: every fragment has the option, not only the first.
const COPIED: u8 = 0x80;

/// The fragments of a packet, in order.
///
/// The first has all options, the others those that are to be copied. A packet
/// that fits is its own only fragment. A fragment is taken apart into fragments
/// of its datagram.
///
/// # Source
/// RFC 791, section 3.2; RFC 1812, section 4.2.2.7.
///
/// # Examples
/// ```
/// use fwdlab_packet::ethernet::{EthernetFrame, HEADER_LENGTH};
/// use fwdlab_packet::ipv4::Ipv4Packet;
/// use fwdlab_packet::{Flows, Fragments, MacAddress, UdpFrame};
///
/// let frame = UdpFrame {
///     source_mac: MacAddress([2, 0, 0, 0, 0, 1]),
///     destination_mac: MacAddress([2, 0, 0, 0, 0, 2]),
///     flow: Flows::inet().flow(0).expect("there are 2000"),
///     hop_limit: 64,
///     payload: &[0; 1472],
/// }
/// .emit();
/// let packet = Ipv4Packet::new_validated(&frame[HEADER_LENGTH..])?;
/// let mut bytes = [0; 1280];
/// let lengths: Vec<_> = Fragments::new(packet, 1280)
///     .map(|fragment| fragment.emit(&mut bytes))
///     .collect();
/// assert_eq!(lengths, [1276, 244]);
/// # Ok::<(), fwdlab_packet::PacketError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Fragments<'a> {
    packet: Ipv4Packet<&'a [u8]>,
    mtu: usize,
    /// Bytes of the payload that are in fragments already.
    done: usize,
    is_finished: bool,
}

impl<'a> Fragments<'a> {
    /// The fragments of `packet` for a link of `mtu` bytes.
    ///
    /// Whether the packet may be fragmented at all, the caller has to look at:
    /// [`Ipv4Packet::dont_fragment`]. What of a malformed fragment would lie
    /// beyond the end of the longest datagram is in none.
    ///
    /// Shape: an `mtu` below [`MTU_MIN`] counts as that.
    #[must_use]
    pub fn new(packet: Ipv4Packet<&'a [u8]>, mtu: usize) -> Self {
        Self {
            packet,
            mtu: mtu.max(MTU_MIN),
            done: 0,
            is_finished: false,
        }
    }
}

impl<'a> Iterator for Fragments<'a> {
    type Item = Fragment<'a>;

    fn next(&mut self) -> Option<Fragment<'a>> {
        if self.is_finished {
            return None;
        }
        let payload = &self.packet.payload()[self.done..];
        if self.done == 0 && self.packet.total_length() <= self.mtu {
            self.is_finished = true;
            return Some(Fragment {
                header: Header::of(self.packet),
                payload,
            });
        }
        let mut header = if self.done == 0 {
            Header::of(self.packet)
        } else {
            Header::of_later_fragments(self.packet)
        };
        let room = self.mtu - header.length;
        let is_last = payload.len() <= room;
        let (payload, _) = payload.split_at(if is_last {
            payload.len()
        } else {
            room - room % BLOCK_LENGTH
        });
        let offset = usize::from(self.packet.fragment_offset_blocks()) + self.done / BLOCK_LENGTH;
        let offset = u16::try_from(offset)
            .ok()
            .filter(|&offset| offset <= FRAGMENT_OFFSET);
        self.done += payload.len();
        self.is_finished = is_last || offset.is_none();
        header.place(
            offset?,
            !is_last || self.packet.more_fragments(),
            payload.len(),
        );
        Some(Fragment { header, payload })
    }
}

/// One fragment of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Fragment<'a> {
    header: Header,
    payload: &'a [u8],
}

impl Fragment<'_> {
    /// Bytes of the fragment, header included.
    #[must_use]
    pub fn total_length(&self) -> usize {
        self.header.length + self.payload.len()
    }

    /// Writes the fragment and returns its length.
    ///
    /// # Panics
    /// If `into` is shorter than the fragment, which the MTU bounds.
    pub fn emit(&self, into: &mut [u8]) -> usize {
        let (header, payload) = into[..self.total_length()].split_at_mut(self.header.length);
        header.copy_from_slice(self.header.as_slice());
        payload.copy_from_slice(self.payload);
        self.total_length()
    }
}

#[derive(Clone, Copy, Debug)]
struct Header {
    bytes: [u8; HEADER_LENGTH_MAX],
    length: usize,
}

impl Header {
    /// The header of the packet.
    fn of(packet: Ipv4Packet<&[u8]>) -> Self {
        let mut header = Self {
            bytes: [0; HEADER_LENGTH_MAX],
            length: 0,
        };
        header.push(&packet.bytes()[..packet.header_length()]);
        header
    }

    /// The header of the packet without the options that only the first
    /// fragment has.
    fn of_later_fragments(packet: Ipv4Packet<&[u8]>) -> Self {
        let mut header = Self {
            bytes: [0; HEADER_LENGTH_MAX],
            length: 0,
        };
        header.push(&packet.bytes()[..HEADER_LENGTH]);
        for (_, option) in options_of(packet.options()).map_while(Result::ok) {
            if option[0] & COPIED != 0 {
                header.push(option);
            }
        }
        // What pads the options to whole words is the end of their list.
        let length = header.length.next_multiple_of(4);
        header.bytes[header.length..length].fill(END_OF_OPTIONS);
        header.length = length;
        let words = u8::try_from(length / 4).expect("a header has at most 15 words");
        header.bytes[0] = header.bytes[0] & 0xf0 | words;
        header
    }

    /// Adds bytes of the packet's own header, of which there are at most 60.
    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.length..][..bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    /// Fills in what differs between fragments.
    fn place(&mut self, offset_blocks: u16, more_fragments: bool, payload_length: usize) {
        let total_length = u16::try_from(self.length + payload_length)
            .expect("a fragment is shorter than its packet");
        let header = &mut self.bytes[..self.length];
        let flags = word(header, FLAGS_AND_OFFSET) & !(MORE_FRAGMENTS | FRAGMENT_OFFSET)
            | if more_fragments { MORE_FRAGMENTS } else { 0 };
        set_word(header, TOTAL_LENGTH, total_length);
        set_word(header, FLAGS_AND_OFFSET, flags | offset_blocks);
        set_word(header, CHECKSUM, 0);
        let checksum = Sum::default().bytes(header).checksum();
        set_word(header, CHECKSUM, checksum);
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}
