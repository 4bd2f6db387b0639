use std::net::IpAddr;

use crate::address::MacAddress;

/// Refuses bytes that end before a header of `minimum` bytes does.
#[inline]
pub(crate) fn require_header(
    header: &'static str,
    length: usize,
    minimum: usize,
) -> Result<(), PacketError> {
    if length >= minimum {
        return Ok(());
    }
    Err(PacketError::Truncated {
        header,
        length,
        minimum,
    })
}

/// What can be wrong with a frame, a flow or an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// The bytes end before the header does.
    #[error(
        "{header} header: too short ({length} bytes seen, {minimum} needed); capture whole frames"
    )]
    Truncated {
        /// Which header: `ethernet`, `ipv4`, `ipv6` or `udp`.
        header: &'static str,
        /// Bytes that were there.
        length: usize,
        /// Bytes the header has.
        minimum: usize,
    },
    /// The frame carries neither IPv4 nor IPv6.
    #[error("ethernet header: EtherType is not IP ({seen:#06x} seen); expect 0x0800 or 0x86dd")]
    EtherType {
        /// The EtherType of the frame.
        seen: u16,
    },
    /// The version nibble contradicts the EtherType.
    #[error("{header} header: wrong IP version ({seen} seen); the frame is damaged")]
    IpVersion {
        /// The header the EtherType promised.
        header: &'static str,
        /// The version nibble.
        seen: u8,
    },
    /// The IPv4 header has options, or a length no header can have.
    #[error("ipv4 header: header length is not 20 bytes ({seen} seen); send no options")]
    Ipv4HeaderLength {
        /// The stated length in bytes.
        seen: usize,
    },
    /// The stated length of the IP packet is impossible.
    #[error(
        "{header} header: stated packet length does not fit ({stated} bytes stated, {available} there); the frame is cut or damaged"
    )]
    IpLength {
        /// `ipv4` or `ipv6`.
        header: &'static str,
        /// Bytes of header and payload, as the header states them.
        stated: usize,
        /// Bytes after the Ethernet header.
        available: usize,
    },
    /// The IPv4 header checksum does not match.
    #[error(
        "ipv4 header: wrong checksum ({seen:#06x} seen, {expected:#06x} expected); the frame is damaged or was rewritten wrongly"
    )]
    Ipv4Checksum {
        /// The checksum in the header.
        seen: u16,
        /// The checksum the header should have.
        expected: u16,
    },
    /// The IPv4 packet is a fragment.
    #[error(
        "ipv4 header: packet is a fragment (flags and offset {seen:#06x} seen); send frames that fit the MTU"
    )]
    Fragment {
        /// The flags and fragment offset word.
        seen: u16,
    },
    /// The packet carries something other than UDP.
    #[error("{header} header: payload is not UDP (protocol {seen} seen); expect 17")]
    Protocol {
        /// `ipv4` or `ipv6`.
        header: &'static str,
        /// The protocol or next header number.
        seen: u8,
    },
    /// The UDP length is not that of the IP payload.
    #[error(
        "udp header: wrong length ({seen} bytes stated, {expected} carried by IP); the frame is damaged"
    )]
    UdpLength {
        /// The length the UDP header states.
        seen: usize,
        /// The length of the IP payload.
        expected: usize,
    },
    /// The UDP checksum is zero: nothing protects the payload.
    #[error("udp header: no checksum (0x0000 seen); let the sender compute it")]
    UdpChecksumAbsent,
    /// The UDP checksum does not match.
    #[error(
        "udp header: wrong checksum ({seen:#06x} seen, {expected:#06x} expected); the frame is damaged, or was captured before checksum offload"
    )]
    UdpChecksum {
        /// The checksum in the header.
        seen: u16,
        /// The checksum the datagram should have.
        expected: u16,
    },
    /// Bytes follow the IP packet that are not the zeros of Ethernet padding.
    #[error(
        "ethernet frame: {extra} bytes after the IP packet are not padding; only zeros that fill a frame to 60 bytes may stand there"
    )]
    TrailingBytes {
        /// How many bytes follow the IP packet.
        extra: usize,
    },
    /// A router may not forward the packet any more.
    #[error("ip header: hop limit is used up ({seen} seen); send with at least 2")]
    HopLimitExpired {
        /// The TTL or hop limit of the packet.
        seen: u8,
    },
    /// No UDP frame of this address family has the wanted size.
    #[error(
        "frame size: impossible for UDP between these addresses ({seen} bytes asked, FCS included); choose 64, or {minimum} to {maximum}"
    )]
    FrameSize {
        /// The size asked for, FCS included.
        seen: usize,
        /// The smallest possible size, FCS included.
        minimum: usize,
        /// The largest possible size, FCS included.
        maximum: usize,
    },
    /// The two ends of a flow are of different address families.
    #[error(
        "flow: address families differ ({source_address} and {destination_address} seen); use two of one family"
    )]
    MixedFamilies {
        /// The source address, or the first of them.
        source_address: IpAddr,
        /// The destination address, or the first of them.
        destination_address: IpAddr,
    },
    /// There are more flows than flow numbers.
    #[error(
        "flows: more than a 32-bit flow number can tell apart ({sources} x {destinations} addresses, {source_ports} x {destination_ports} ports seen); ask for fewer"
    )]
    TooManyFlows {
        /// Source addresses.
        sources: u32,
        /// Destination addresses.
        destinations: u32,
        /// Ports of each source.
        source_ports: u32,
        /// Ports of each destination.
        destination_ports: u32,
    },
    /// A range of ports ends before it begins.
    #[error("ports: the last is below the first ({first} to {last} seen); change their places")]
    PortRange {
        /// Where the range begins.
        first: u16,
        /// Where it would end.
        last: u16,
    },
    /// A MAC address that no single station has.
    #[error("mac address: {address} is that of {whose}; give that of one station")]
    NoStation {
        /// The address.
        address: MacAddress,
        /// Whose it is.
        whose: &'static str,
    },
    /// The text is not a MAC address.
    #[error("mac address: cannot be read ({text:?} seen); write it like 02:00:00:00:00:01")]
    MacAddress {
        /// The text.
        text: String,
    },
}
