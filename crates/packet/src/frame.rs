use crate::ethernet::{self, EthernetFrame, FCS_LENGTH, MINIMUM_LENGTH};
use crate::ipv4::{self, Ipv4Packet};
use crate::ipv6::{self, Ipv6Packet};
use crate::udp::{self, UdpDatagram};
use crate::{AddressPair, Flow, MacAddress, PacketError};

/// A UDP frame of a flow: everything in it that can differ.
///
/// The rest is fixed when it is written: IPv4 identification 0 and "don't
/// fragment", IPv6 flow label 0, traffic class 0, both checksums.
///
/// # Examples
/// ```
/// use fwdlab_packet::{Flows, MacAddress, UdpFrame, parse};
///
/// let flow = Flows::inet().flow(0).expect("there are 2000");
/// let frame = UdpFrame {
///     source_mac: MacAddress([2, 0, 0, 0, 0, 1]),
///     destination_mac: MacAddress([2, 0, 0, 0, 0, 2]),
///     flow,
///     hop_limit: 64,
///     payload: &[0; 18],
/// };
/// assert_eq!(frame.frame_size_bytes(), 64);
/// let bytes = frame.emit();
/// assert_eq!(bytes.len(), 60);
/// assert_eq!(parse(&bytes), Ok(frame));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpFrame<'a> {
    /// Who sends the frame on this link.
    pub source_mac: MacAddress,
    /// Where the frame goes on this link.
    pub destination_mac: MacAddress,
    /// The flow that the frame belongs to.
    pub flow: Flow,
    /// How many routers the packet may pass: IPv4's time to live.
    pub hop_limit: u8,
    /// What the datagram carries.
    pub payload: &'a [u8],
}

impl UdpFrame<'_> {
    /// The payload length that makes a frame between `addresses` as big as
    /// asked.
    ///
    /// UDP over IPv6 cannot be under 66 bytes: there 64 means the smallest
    /// frame, which has no payload.
    ///
    /// Units: `frame_size_bytes` includes the FCS.
    ///
    /// # Errors
    /// `FrameSize`.
    pub fn payload_length(
        addresses: &AddressPair,
        frame_size_bytes: usize,
    ) -> Result<usize, PacketError> {
        const SMALLEST: usize = MINIMUM_LENGTH + FCS_LENGTH;
        let without_payload = headers_length(addresses) + FCS_LENGTH;
        let minimum = SMALLEST.max(without_payload);
        let maximum = without_payload + payload_length_max(addresses);
        match frame_size_bytes {
            SMALLEST => Ok(minimum - without_payload),
            size if (minimum..=maximum).contains(&size) => Ok(size - without_payload),
            seen => Err(PacketError::FrameSize {
                seen,
                minimum,
                maximum,
            }),
        }
    }

    /// The size of the frame.
    ///
    /// Units: bytes, with the FCS and, in a very small frame, the padding.
    #[must_use]
    pub fn frame_size_bytes(&self) -> usize {
        self.length() + FCS_LENGTH
    }

    /// The bytes of the frame without its FCS, padded to 60 if they are fewer.
    ///
    /// # Panics
    /// If the payload is longer than an IP packet can carry;
    /// [`payload_length`](Self::payload_length) never gives so much.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        assert!(
            self.payload.len() <= payload_length_max(&self.flow.addresses),
            "payload of {} bytes does not fit an IP packet",
            self.payload.len()
        );
        let udp_length = u16::try_from(udp::HEADER_LENGTH + self.payload.len())
            .expect("the payload fits an IP packet");
        let mut bytes = vec![0; self.length()];
        let mut frame = EthernetFrame::emit(
            bytes.as_mut_slice(),
            self.destination_mac,
            self.source_mac,
            match self.flow.addresses {
                AddressPair::Inet { .. } => ethernet::IPV4,
                AddressPair::Inet6 { .. } => ethernet::IPV6,
            },
        );
        match self.flow.addresses {
            AddressPair::Inet {
                source,
                destination,
            } => {
                let mut packet = Ipv4Packet::emit(
                    frame.payload_mut(),
                    source,
                    destination,
                    udp::PROTOCOL,
                    self.hop_limit,
                    udp_length,
                );
                self.emit_udp(packet.payload_mut(), udp_length);
            }
            AddressPair::Inet6 {
                source,
                destination,
            } => {
                let mut packet = Ipv6Packet::emit(
                    frame.payload_mut(),
                    source,
                    destination,
                    udp::PROTOCOL,
                    self.hop_limit,
                    udp_length,
                );
                self.emit_udp(packet.payload_mut(), udp_length);
            }
        }
        bytes
    }

    fn emit_udp(&self, datagram: &mut [u8], length: u16) {
        udp::emit(
            datagram,
            self.flow.addresses.pseudo_header(udp::PROTOCOL, length),
            self.flow.source_port,
            self.flow.destination_port,
            length,
            self.payload,
        );
    }

    /// Bytes without the FCS.
    fn length(&self) -> usize {
        (headers_length(&self.flow.addresses) + self.payload.len()).max(MINIMUM_LENGTH)
    }
}

/// Bytes of the three headers.
fn headers_length(addresses: &AddressPair) -> usize {
    let ip = match addresses {
        AddressPair::Inet { .. } => ipv4::HEADER_LENGTH,
        AddressPair::Inet6 { .. } => ipv6::HEADER_LENGTH,
    };
    ethernet::HEADER_LENGTH + ip + udp::HEADER_LENGTH
}

/// IPv4 counts its own header in its 16-bit length, IPv6 does not.
fn payload_length_max(addresses: &AddressPair) -> usize {
    let ip_payload = match addresses {
        AddressPair::Inet { .. } => usize::from(u16::MAX) - ipv4::HEADER_LENGTH,
        AddressPair::Inet6 { .. } => usize::from(u16::MAX),
    };
    ip_payload - udp::HEADER_LENGTH
}

/// The UDP frame in these bytes, after everything in them was verified.
///
/// Shape: `frame` is without its FCS; it may be padded with zeros to 60 bytes.
///
/// What no checksum covers is taken as it is: both MAC addresses, and in IPv6
/// the traffic class, flow label and hop limit. One flipped bit anywhere else
/// is an error. Ignored, because a sender may choose them: the DSCP, ECN,
/// identification and "don't fragment" of IPv4, the traffic class and flow
/// label of IPv6.
///
/// # Errors
/// All that name a header, and `TrailingBytes`.
pub fn parse(frame: &[u8]) -> Result<UdpFrame<'_>, PacketError> {
    let ethernet = EthernetFrame::new_checked(frame)?;
    let (addresses, hop_limit, payload) = match ethernet.ether_type() {
        ethernet::IPV4 => {
            let packet = Ipv4Packet::new_checked(ethernet.payload())?;
            check_protocol("ipv4", packet.protocol())?;
            check_padding(frame, packet.total_length())?;
            let addresses = AddressPair::Inet {
                source: packet.source(),
                destination: packet.destination(),
            };
            (addresses, packet.hop_limit(), packet.payload())
        }
        ethernet::IPV6 => {
            let packet = Ipv6Packet::new_checked(ethernet.payload())?;
            check_protocol("ipv6", packet.next_header())?;
            check_padding(frame, packet.total_length())?;
            let addresses = AddressPair::Inet6 {
                source: packet.source(),
                destination: packet.destination(),
            };
            (addresses, packet.hop_limit(), packet.payload())
        }
        seen => return Err(PacketError::EtherType { seen }),
    };
    let datagram = UdpDatagram::new_checked(payload, |length| {
        addresses.pseudo_header(udp::PROTOCOL, length)
    })?;
    Ok(UdpFrame {
        source_mac: ethernet.source_mac(),
        destination_mac: ethernet.destination_mac(),
        flow: Flow {
            addresses,
            source_port: datagram.source_port(),
            destination_port: datagram.destination_port(),
        },
        hop_limit,
        payload: datagram.payload(),
    })
}

fn check_protocol(header: &'static str, seen: u8) -> Result<(), PacketError> {
    match seen {
        udp::PROTOCOL => Ok(()),
        _ => Err(PacketError::Protocol { header, seen }),
    }
}

fn check_padding(frame: &[u8], packet_length: usize) -> Result<(), PacketError> {
    let padding = &frame[ethernet::HEADER_LENGTH + packet_length..];
    let allowed = frame.len() <= MINIMUM_LENGTH && padding.iter().all(|byte| *byte == 0);
    if padding.is_empty() || allowed {
        Ok(())
    } else {
        Err(PacketError::TrailingBytes {
            extra: padding.len(),
        })
    }
}

/// The frame a router sends on when it received `frame`.
///
/// It has the MAC addresses of the next link and one hop less; the IPv4
/// checksum follows incrementally, every other byte is the same.
///
/// # Errors
/// Those of [`parse`], and `HopLimitExpired`.
///
/// # Source
/// RFC 1812, section 5; RFC 8200, section 3.
pub fn forwarded(
    frame: &[u8],
    source_mac: MacAddress,
    destination_mac: MacAddress,
) -> Result<Vec<u8>, PacketError> {
    let addresses = parse(frame)?.flow.addresses;
    let mut bytes = frame.to_vec();
    let mut ethernet = EthernetFrame::new_checked(bytes.as_mut_slice())?;
    ethernet.set_source_mac(source_mac);
    ethernet.set_destination_mac(destination_mac);
    match addresses {
        AddressPair::Inet { .. } => {
            Ipv4Packet::new_checked(ethernet.payload_mut())?.decrement_hop_limit()?;
        }
        AddressPair::Inet6 { .. } => {
            Ipv6Packet::new_checked(ethernet.payload_mut())?.decrement_hop_limit()?;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Flows;
    use proptest::prelude::*;

    const SOURCE_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const DESTINATION_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

    fn frame(flows: Flows, payload: &[u8]) -> UdpFrame<'_> {
        UdpFrame {
            source_mac: SOURCE_MAC,
            destination_mac: DESTINATION_MAC,
            flow: flows.flow(0).unwrap(),
            hop_limit: 64,
            payload,
        }
    }

    /// `bytes` with the byte at `offset` replaced.
    fn with(mut bytes: Vec<u8>, offset: usize, byte: u8) -> Vec<u8> {
        bytes[offset] = byte;
        bytes
    }

    /// `bytes`, whose IPv4 header was changed, with a header checksum that is
    /// right again.
    fn with_ipv4_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
        bytes[24..26].fill(0);
        let checksum = crate::checksum::Sum::default()
            .bytes(&bytes[14..34])
            .checksum();
        bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    #[test]
    fn the_smallest_frames_byte_by_byte() {
        #[rustfmt::skip]
        let inet = [
            2, 0, 0, 0, 0, 2,  2, 0, 0, 0, 0, 1,  0x08, 0x00,
            0x45, 0, 0, 46,  0, 0, 0x40, 0,  64, 17, 0x9a, 0x97,
            198, 18, 10, 1,  198, 19, 10, 1,
            0x07, 0xd0, 0x07, 0xd0, 0, 26, 0x4f, 0xf2,
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(frame(Flows::inet(), &[0; 18]).emit(), inet);
        #[rustfmt::skip]
        let inet6 = [
            2, 0, 0, 0, 0, 2,  2, 0, 0, 0, 0, 1,  0x86, 0xdd,
            0x60, 0, 0, 0,  0, 8, 17, 64,
            0x20, 0x01, 0, 2, 0, 0, 0x00, 0x10, 0, 0, 0, 0, 0, 0, 0, 1,
            0x20, 0x01, 0, 2, 0, 0, 0x80, 0x10, 0, 0, 0, 0, 0, 0, 0, 1,
            0x07, 0xd0, 0x07, 0xd0, 0, 8, 0x30, 0x16,
        ];
        assert_eq!(frame(Flows::inet6(), &[]).emit(), inet6);
    }

    #[test]
    fn frame_sizes_include_the_fcs() {
        for (flows, sizes) in [
            (Flows::inet(), [(64, 64), (65, 65), (1518, 1518)]),
            (Flows::inet6(), [(64, 66), (66, 66), (1518, 1518)]),
        ] {
            let flow = flows.flow(0).unwrap();
            for (asked, built) in sizes {
                let payload = vec![0; UdpFrame::payload_length(&flow.addresses, asked).unwrap()];
                let frame = frame(flows, &payload);
                assert_eq!(frame.frame_size_bytes(), built);
                assert_eq!(frame.emit().len(), built - 4);
            }
        }
    }

    #[test]
    fn impossible_frame_sizes_are_refused() {
        let inet = Flows::inet().flow(0).unwrap();
        let inet6 = Flows::inet6().flow(0).unwrap();
        for (flow, seen, minimum, maximum) in [
            (inet, 63, 64, 65_553),
            (inet, 65_554, 64, 65_553),
            (inet6, 63, 66, 65_593),
            (inet6, 65, 66, 65_593),
            (inet6, 65_594, 66, 65_593),
        ] {
            assert_eq!(
                UdpFrame::payload_length(&flow.addresses, seen),
                Err(PacketError::FrameSize {
                    seen,
                    minimum,
                    maximum
                })
            );
        }
    }

    #[test]
    fn the_largest_frames_are_written_and_read() {
        for (flows, size) in [(Flows::inet(), 65_553), (Flows::inet6(), 65_593)] {
            let length = UdpFrame::payload_length(&flows.flow(0).unwrap().addresses, size).unwrap();
            let payload = vec![0xa5; length];
            let frame = frame(flows, &payload);
            assert_eq!(parse(&frame.emit()), Ok(frame));
        }
    }

    #[test]
    #[should_panic(expected = "does not fit an IP packet")]
    fn a_longer_payload_is_a_bug() {
        let _ = frame(Flows::inet(), &[0; 65_508]).emit();
    }

    #[test]
    fn a_checksum_of_zero_is_sent_as_ones() {
        for flows in [Flows::inet(), Flows::inet6()] {
            let checksum = |bytes: &[u8]| {
                let offset = headers_length(&flows.flow(0).unwrap().addresses) - 2;
                [bytes[offset], bytes[offset + 1]]
            };
            // Adding the checksum of the frame as data makes the sum 0xffff.
            let data = checksum(&frame(flows, &[0; 20]).emit());
            let payload = [data.as_slice(), &[0; 18]].concat();
            let bytes = frame(flows, &payload).emit();
            assert_eq!(checksum(&bytes), [0xff, 0xff]);
            assert!(parse(&bytes).is_ok());
        }
    }

    #[test]
    fn a_short_frame_is_padded_with_zeros() {
        let frame = frame(Flows::inet(), &[7; 4]);
        let bytes = frame.emit();
        assert_eq!(bytes.len(), 60);
        assert_eq!(bytes[46..], [0; 14]);
        assert_eq!(parse(&bytes), Ok(frame));
        // A veth pair carries it without the padding too.
        assert_eq!(parse(&bytes[..46]), Ok(frame));
        assert_eq!(
            parse(&with(bytes, 50, 1)),
            Err(PacketError::TrailingBytes { extra: 14 })
        );
        let longer = [frame.emit(), vec![0]].concat();
        assert_eq!(
            parse(&longer),
            Err(PacketError::TrailingBytes { extra: 15 })
        );
    }

    #[test]
    fn what_a_sender_may_choose_is_ignored() {
        let inet = frame(Flows::inet(), &[0; 18]);
        let type_of_service = with(inet.emit(), 15, 0xb8);
        let identification = with(type_of_service, 18, 0x12);
        let may_fragment = with(identification, 20, 0);
        assert_eq!(parse(&with_ipv4_checksum(may_fragment)), Ok(inet));

        let inet6 = frame(Flows::inet6(), &[]);
        let traffic_class = with(inet6.emit(), 14, 0x6b);
        let flow_label = with(traffic_class, 17, 0x34);
        assert_eq!(parse(&flow_label), Ok(inet6));
    }

    #[test]
    fn every_fault_has_its_name() {
        let inet = || frame(Flows::inet(), &[0; 18]).emit();
        let inet6 = || frame(Flows::inet6(), &[]).emit();
        for (bytes, error) in [
            (
                inet()[..13].to_vec(),
                PacketError::Truncated {
                    header: "ethernet",
                    length: 13,
                    minimum: 14,
                },
            ),
            (
                with(inet(), 12, 0x81),
                PacketError::EtherType { seen: 0x8100 },
            ),
            (
                inet()[..33].to_vec(),
                PacketError::Truncated {
                    header: "ipv4",
                    length: 19,
                    minimum: 20,
                },
            ),
            (
                with(inet(), 14, 0x65),
                PacketError::IpVersion {
                    header: "ipv4",
                    seen: 6,
                },
            ),
            (
                with(inet(), 14, 0x46),
                PacketError::Ipv4HeaderLength { seen: 24 },
            ),
            (
                inet()[..59].to_vec(),
                PacketError::IpLength {
                    header: "ipv4",
                    stated: 46,
                    available: 45,
                },
            ),
            (
                with(inet(), 17, 19),
                PacketError::IpLength {
                    header: "ipv4",
                    stated: 19,
                    available: 46,
                },
            ),
            (
                with(inet(), 22, 63),
                PacketError::Ipv4Checksum {
                    seen: 0x9a97,
                    expected: 0x9b97,
                },
            ),
            (
                with_ipv4_checksum(with(inet(), 20, 0x20)),
                PacketError::Fragment { seen: 0x2000 },
            ),
            (
                with_ipv4_checksum(with(inet(), 21, 1)),
                PacketError::Fragment { seen: 0x4001 },
            ),
            (
                with_ipv4_checksum(with(inet(), 23, 6)),
                PacketError::Protocol {
                    header: "ipv4",
                    seen: 6,
                },
            ),
            (
                with_ipv4_checksum(with(inet()[..41].to_vec(), 17, 27)),
                PacketError::Truncated {
                    header: "udp",
                    length: 7,
                    minimum: 8,
                },
            ),
            (
                with(inet(), 39, 25),
                PacketError::UdpLength {
                    seen: 25,
                    expected: 26,
                },
            ),
            (
                with(with(inet(), 40, 0), 41, 0),
                PacketError::UdpChecksumAbsent,
            ),
            (
                with(inet(), 41, 0xf3),
                PacketError::UdpChecksum {
                    seen: 0x4ff3,
                    expected: 0x4ff2,
                },
            ),
            (
                inet6()[..53].to_vec(),
                PacketError::Truncated {
                    header: "ipv6",
                    length: 39,
                    minimum: 40,
                },
            ),
            (
                with(inet6(), 14, 0x40),
                PacketError::IpVersion {
                    header: "ipv6",
                    seen: 4,
                },
            ),
            (
                with(inet6(), 19, 9),
                PacketError::IpLength {
                    header: "ipv6",
                    stated: 49,
                    available: 48,
                },
            ),
            (
                with(inet6(), 20, 58),
                PacketError::Protocol {
                    header: "ipv6",
                    seen: 58,
                },
            ),
            (
                with(inet6(), 61, 0x17),
                PacketError::UdpChecksum {
                    seen: 0x3017,
                    expected: 0x3016,
                },
            ),
        ] {
            assert_eq!(parse(&bytes), Err(error));
        }
    }

    #[test]
    fn the_last_hop_is_not_forwarded() {
        for flows in [Flows::inet(), Flows::inet6()] {
            for hop_limit in [0, 1] {
                let frame = UdpFrame {
                    hop_limit,
                    ..frame(flows, &[0; 18])
                };
                assert_eq!(
                    forwarded(&frame.emit(), SOURCE_MAC, DESTINATION_MAC),
                    Err(PacketError::HopLimitExpired { seen: hop_limit })
                );
            }
        }
    }

    fn any_addresses() -> impl Strategy<Value = AddressPair> {
        prop_oneof![
            any::<(u32, u32)>().prop_map(|(source, destination)| AddressPair::Inet {
                source: source.into(),
                destination: destination.into(),
            }),
            any::<(u128, u128)>().prop_map(|(source, destination)| AddressPair::Inet6 {
                source: source.into(),
                destination: destination.into(),
            }),
        ]
    }

    prop_compose! {
        /// A frame around no payload yet.
        fn any_headers()(
            source_mac: [u8; 6],
            destination_mac: [u8; 6],
            addresses in any_addresses(),
            source_port: u16,
            destination_port: u16,
            hop_limit: u8,
        ) -> UdpFrame<'static> {
            UdpFrame {
                source_mac: MacAddress(source_mac),
                destination_mac: MacAddress(destination_mac),
                flow: Flow {
                    addresses,
                    source_port,
                    destination_port,
                },
                hop_limit,
                payload: &[],
            }
        }
    }

    fn any_payload() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 0..80)
    }

    /// Whether a checksum or a check covers the bit, counted from the first
    /// byte of the frame and from the most significant bit of the byte.
    fn is_protected(addresses: &AddressPair, bit: usize) -> bool {
        let mac_addresses = 0..12 * 8;
        let traffic_class_and_flow_label = 14 * 8 + 4..18 * 8;
        let hop_limit = 21 * 8..22 * 8;
        match addresses {
            AddressPair::Inet { .. } => !mac_addresses.contains(&bit),
            AddressPair::Inet6 { .. } => ![mac_addresses, traffic_class_and_flow_label, hop_limit]
                .iter()
                .any(|unprotected| unprotected.contains(&bit)),
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(headers in any_headers(), payload in any_payload()) {
            let frame = UdpFrame { payload: &payload, ..headers };
            let bytes = frame.emit();
            prop_assert_eq!(bytes.len() + 4, frame.frame_size_bytes());
            prop_assert_eq!(parse(&bytes), Ok(frame));
        }

        #[test]
        fn any_flipped_bit_is_noticed_where_something_protects_it(
            headers in any_headers(), payload in any_payload(),
        ) {
            let mut bytes = UdpFrame { payload: &payload, ..headers }.emit();
            for bit in 0..bytes.len() * 8 {
                let mask = 0x80 >> (bit % 8);
                bytes[bit / 8] ^= mask;
                prop_assert_eq!(
                    parse(&bytes).is_err(),
                    is_protected(&headers.flow.addresses, bit),
                    "byte {} mask {:#04x}", bit / 8, mask
                );
                bytes[bit / 8] ^= mask;
            }
        }

        #[test]
        fn a_cut_frame_is_noticed(headers in any_headers(), payload in any_payload()) {
            let frame = UdpFrame { payload: &payload, ..headers };
            let bytes = frame.emit();
            for length in 0..headers_length(&headers.flow.addresses) + payload.len() {
                prop_assert!(parse(&bytes[..length]).is_err(), "cut to {} bytes", length);
            }
        }

        #[test]
        fn reading_anything_does_not_panic(bytes: Vec<u8>) {
            let _ = parse(&bytes);
        }

        #[test]
        fn reading_something_like_a_frame_does_not_panic(
            headers in any_headers(),
            payload in any_payload(),
            changes in prop::collection::vec(any::<(prop::sample::Index, u8)>(), 0..8),
            length: prop::sample::Index,
        ) {
            let mut bytes = UdpFrame { payload: &payload, ..headers }.emit();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let _ = parse(&bytes[..length.index(bytes.len() + 1)]);
            let _ = forwarded(&bytes, SOURCE_MAC, DESTINATION_MAC);
        }

        #[test]
        fn a_forwarded_frame_is_one_built_anew(
            headers in any_headers(), payload in any_payload(), hop_limit in 2u8..,
        ) {
            let received = UdpFrame { hop_limit, payload: &payload, ..headers };
            let sent = UdpFrame {
                source_mac: SOURCE_MAC,
                destination_mac: DESTINATION_MAC,
                hop_limit: hop_limit - 1,
                ..received
            };
            prop_assert_eq!(
                forwarded(&received.emit(), SOURCE_MAC, DESTINATION_MAC),
                Ok(sent.emit())
            );
        }
    }
}
