//! What a router makes beside plain forwarding: ICMP messages as an independent
//! parser sees them, fragments as an independent reassembler does.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use etherparse::icmpv6::{Icmpv6PayloadSlice, NdpOptionSlice, ParameterProblemCode};
use etherparse::{
    Icmpv4Header, Icmpv4Type, Icmpv6Type, NetSlice, SlicedPacket, TransportSlice, icmpv4, icmpv6,
};
use fwdlab_packet::ipv4::Ipv4Packet;
use fwdlab_packet::ipv6::{Ipv6Packet, ParameterProblem};
use fwdlab_packet::{Fragments, Icmp4Error, Icmp6Error, MacAddress};
use proptest::prelude::*;

const ROUTER_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

/// RFC 1071 as it is written, over an IPv4 header.
fn header_checksum(header: &[u8]) -> u16 {
    let mut sum: u32 = header
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).expect("it is short")
}

/// One option: no operation, or a type, a length and data.
fn any_option() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(vec![1]),
        (2_u8.., prop::collection::vec(any::<u8>(), 0..10)).prop_map(|(kind, data)| {
            let length = u8::try_from(data.len() + 2).expect("it is short");
            [vec![kind, length], data].concat()
        }),
    ]
}

/// A list of options that can be read, padded to whole words.
fn any_options() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any_option(), 0..8).prop_map(|options| {
        let mut list = Vec::new();
        for option in options {
            if list.len() + option.len() <= 40 {
                list.extend(option);
            }
        }
        list.resize(list.len().next_multiple_of(4), 0);
        list
    })
}

prop_compose! {
    fn any_ipv4_packet(payload_length: usize)(
        type_of_service: u8,
        identification: u16,
        dont_fragment: bool,
        more_fragments: bool,
        offset in prop_oneof![Just(0_u16), 0..4000_u16],
        hop_limit: u8,
        protocol: u8,
        addresses: [u8; 8],
        options in any_options(),
        payload in prop::collection::vec(any::<u8>(), 0..payload_length),
    ) -> Vec<u8> {
        let header_length = 20 + options.len();
        let total_length = u16::try_from(header_length + payload.len()).expect("it is short");
        let flags = u16::from(dont_fragment) << 14 | u16::from(more_fragments) << 13 | offset;
        let mut header = vec![0x40 | u8::try_from(header_length / 4).expect("it is short"), type_of_service];
        header.extend(total_length.to_be_bytes());
        header.extend(identification.to_be_bytes());
        header.extend(flags.to_be_bytes());
        header.extend([hop_limit, protocol, 0, 0]);
        header.extend(addresses);
        header.extend(options);
        let checksum = header_checksum(&header).to_be_bytes();
        header[10..12].copy_from_slice(&checksum);
        [header, payload].concat()
    }
}

prop_compose! {
    fn any_ipv6_packet(payload_length: usize)(
        first_word: u32,
        next_header in prop_oneof![any::<u8>(), Just(0_u8), Just(44), Just(58), Just(60)],
        hop_limit: u8,
        addresses: [u8; 32],
        payload in prop::collection::vec(any::<u8>(), 0..payload_length),
    ) -> Vec<u8> {
        let mut packet = (first_word >> 4 | 6 << 28).to_be_bytes().to_vec();
        packet.extend(u16::try_from(payload.len()).expect("it is short").to_be_bytes());
        packet.extend([next_header, hop_limit]);
        packet.extend(addresses);
        packet.extend(payload);
        packet
    }
}

fn any_icmp4_error() -> impl Strategy<Value = Icmp4Error> {
    prop_oneof![
        Just(Icmp4Error::NetUnreachable),
        Just(Icmp4Error::HostUnreachable),
        Just(Icmp4Error::SourceRouteFailed),
        Just(Icmp4Error::TimeExceeded),
        any::<u16>().prop_map(|mtu| Icmp4Error::FragmentationNeeded { mtu }),
        any::<u8>().prop_map(|pointer| Icmp4Error::ParameterProblem { pointer }),
        any::<u32>().prop_map(|gateway| Icmp4Error::Redirect {
            gateway: gateway.into()
        }),
    ]
}

fn any_icmp6_error() -> impl Strategy<Value = Icmp6Error> {
    use ParameterProblem::{ErroneousHeaderField, UnrecognizedNextHeader, UnrecognizedOption};
    let problems = vec![
        ErroneousHeaderField,
        UnrecognizedNextHeader,
        UnrecognizedOption,
    ];
    prop_oneof![
        Just(Icmp6Error::NoRoute),
        Just(Icmp6Error::AddressUnreachable),
        Just(Icmp6Error::TimeExceeded),
        any::<u32>().prop_map(|mtu| Icmp6Error::PacketTooBig { mtu }),
        (prop::sample::select(problems), any::<u32>())
            .prop_map(|(problem, pointer)| Icmp6Error::ParameterProblem { problem, pointer }),
        any::<(u128, Option<[u8; 6]>)>().prop_map(|(target, address)| Icmp6Error::Redirect {
            target: target.into(),
            target_link_layer_address: address.map(MacAddress),
        }),
    ]
}

fn parsed_icmp4_type(error: Icmp4Error) -> Icmpv4Type {
    use icmpv4::DestUnreachableHeader::{FragmentationNeeded, Host, Network, SourceRouteFailed};
    match error {
        Icmp4Error::NetUnreachable => Icmpv4Type::DestinationUnreachable(Network),
        Icmp4Error::HostUnreachable => Icmpv4Type::DestinationUnreachable(Host),
        Icmp4Error::SourceRouteFailed => Icmpv4Type::DestinationUnreachable(SourceRouteFailed),
        Icmp4Error::FragmentationNeeded { mtu } => {
            Icmpv4Type::DestinationUnreachable(FragmentationNeeded { next_hop_mtu: mtu })
        }
        Icmp4Error::TimeExceeded => {
            Icmpv4Type::TimeExceeded(icmpv4::TimeExceededCode::TtlExceededInTransit)
        }
        Icmp4Error::ParameterProblem { pointer } => Icmpv4Type::ParameterProblem(
            icmpv4::ParameterProblemHeader::PointerIndicatesError(pointer),
        ),
        Icmp4Error::Redirect { gateway } => Icmpv4Type::Redirect(icmpv4::RedirectHeader {
            code: icmpv4::RedirectCode::RedirectForHost,
            gateway_internet_address: gateway.octets(),
        }),
    }
}

fn parsed_icmp6_type(error: Icmp6Error) -> Icmpv6Type {
    use ParameterProblem::{ErroneousHeaderField, UnrecognizedNextHeader, UnrecognizedOption};
    match error {
        Icmp6Error::NoRoute => {
            Icmpv6Type::DestinationUnreachable(icmpv6::DestUnreachableCode::NoRoute)
        }
        Icmp6Error::AddressUnreachable => {
            Icmpv6Type::DestinationUnreachable(icmpv6::DestUnreachableCode::Address)
        }
        Icmp6Error::PacketTooBig { mtu } => Icmpv6Type::PacketTooBig { mtu },
        Icmp6Error::TimeExceeded => {
            Icmpv6Type::TimeExceeded(icmpv6::TimeExceededCode::HopLimitExceeded)
        }
        Icmp6Error::ParameterProblem { problem, pointer } => {
            Icmpv6Type::ParameterProblem(icmpv6::ParameterProblemHeader {
                code: match problem {
                    ErroneousHeaderField => ParameterProblemCode::ErroneousHeaderField,
                    UnrecognizedNextHeader => ParameterProblemCode::UnrecognizedNextHeader,
                    UnrecognizedOption => ParameterProblemCode::UnrecognizedIpv6Option,
                },
                pointer,
            })
        }
        Icmp6Error::Redirect { .. } => Icmpv6Type::Redirect,
    }
}

/// The payload of a datagram, put together from the fragments of any order.
///
/// Panics where a byte is there twice, missing or not marked as last.
fn reassembled(fragments: &[Vec<u8>], first_offset: usize, last_is_marked: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut seen = BTreeSet::new();
    let mut ends = Vec::new();
    for fragment in fragments {
        let header_length = usize::from(fragment[0] & 15) * 4;
        let flags = u16::from_be_bytes([fragment[6], fragment[7]]);
        let offset = usize::from(flags & 0x1fff) * 8 - first_offset;
        let payload = &fragment[header_length..];
        if bytes.len() < offset + payload.len() {
            bytes.resize(offset + payload.len(), 0);
        }
        for (at, byte) in payload.iter().enumerate() {
            assert!(
                seen.insert(offset + at),
                "byte {} is there twice",
                offset + at
            );
            bytes[offset + at] = *byte;
        }
        if flags & 0x2000 == 0 {
            ends.push(offset + payload.len());
        }
    }
    assert_eq!(seen.len(), bytes.len(), "there is a hole");
    assert_eq!(
        ends,
        if last_is_marked {
            vec![bytes.len()]
        } else {
            vec![]
        }
    );
    bytes
}

/// The options of a list that come with every fragment, without padding.
fn copied_options(mut options: &[u8]) -> Vec<u8> {
    let mut copied = Vec::new();
    while let [kind, rest @ ..] = options {
        match kind {
            0 => break,
            1 => options = rest,
            _ => {
                let (option, others) = options.split_at(rest[0].into());
                if kind & 0x80 != 0 {
                    copied.extend(option);
                }
                options = others;
            }
        }
    }
    copied
}

proptest! {
    #[test]
    fn icmp_messages_are_parsed_as_they_were_meant(
        error in any_icmp4_error(),
        original in any_ipv4_packet(1600),
        padding in 0..20_usize,
        source: u32,
        room in prop_oneof![28..700_usize, Just(576), Just(2048)],
    ) {
        let source = Ipv4Addr::from(source);
        let mut frame = original.clone();
        frame.resize(original.len() + padding, 0);
        let view = Ipv4Packet::new_validated(frame.as_slice()).unwrap();
        let mut into = vec![0xaa; room];
        let length = error.emit(view, source, &mut into);
        prop_assert_eq!(length, 28 + original.len().min(room.min(576) - 28));
        prop_assert!(into[length..].iter().all(|&byte| byte == 0xaa));

        let packet = SlicedPacket::from_ip(&into[..length]).unwrap();
        let Some(NetSlice::Ipv4(ip)) = packet.net else {
            panic!("not IPv4: {:?}", packet.net);
        };
        let header = ip.header().to_header();
        prop_assert_eq!(header.header_checksum, header.calc_header_checksum());
        prop_assert_eq!(header.source, source.octets());
        prop_assert_eq!(header.destination, view.source().octets());
        prop_assert_eq!(header.time_to_live, 64);
        prop_assert_eq!(usize::from(header.total_len), length);
        prop_assert!(!header.is_fragmenting_payload());
        prop_assert_eq!(into[1], 0xc0 | original[1] & 0x1c);
        let Some(TransportSlice::Icmpv4(message)) = packet.transport else {
            panic!("not ICMP: {:?}", packet.transport);
        };
        prop_assert_eq!(message.icmp_type(), parsed_icmp4_type(error));
        prop_assert_eq!(message.payload(), &original[..length - 28]);
        let expected = Icmpv4Header::with_checksum(message.icmp_type(), message.payload());
        prop_assert_eq!(message.checksum(), expected.checksum);
    }

    #[test]
    fn icmp6_messages_are_parsed_as_they_were_meant(
        error in any_icmp6_error(),
        original in any_ipv6_packet(1600),
        padding in 0..20_usize,
        source: u128,
        room in prop_oneof![96..1400_usize, Just(1280), Just(2048)],
    ) {
        let source = Ipv6Addr::from(source);
        let mut frame = original.clone();
        frame.resize(original.len() + padding, 0);
        let view = Ipv6Packet::new_checked(frame.as_slice()).unwrap();
        let mut into = vec![0xaa; room];
        let length = error.emit(view, source, &mut into);
        prop_assert!(into[length..].iter().all(|&byte| byte == 0xaa));

        let packet = SlicedPacket::from_ip(&into[..length]).unwrap();
        let Some(NetSlice::Ipv6(ip)) = packet.net else {
            panic!("not IPv6: {:?}", packet.net);
        };
        let header = ip.header().to_header();
        prop_assert_eq!(header.source, source.octets());
        prop_assert_eq!(header.destination, view.source().octets());
        prop_assert_eq!(usize::from(header.payload_length), length - 40);
        prop_assert_eq!(&into[..4], &[0x60, 0, 0, 0]);
        let Some(TransportSlice::Icmpv6(message)) = packet.transport else {
            panic!("not ICMPv6: {:?}", packet.transport);
        };
        prop_assert_eq!(message.icmp_type(), parsed_icmp6_type(error));
        prop_assert!(message.is_checksum_valid(header.source, header.destination));

        let Icmp6Error::Redirect { target, target_link_layer_address } = error else {
            prop_assert_eq!(header.hop_limit, 64);
            prop_assert_eq!(length, 48 + original.len().min(room.min(1280) - 48));
            prop_assert_eq!(message.payload(), &original[..length - 48]);
            return Ok(());
        };
        prop_assert_eq!(header.hop_limit, 255);
        let Ok(Icmpv6PayloadSlice::Redirect(redirect)) = message.payload_slice() else {
            panic!("no redirect: {:?}", message.payload_slice());
        };
        prop_assert_eq!(redirect.target_address(), target);
        prop_assert_eq!(redirect.destination_address(), view.destination());
        let mut options = redirect.options_iterator();
        if let Some(address) = target_link_layer_address {
            let Some(Ok(NdpOptionSlice::TargetLinkLayerAddress(option))) = options.next() else {
                panic!("no link-layer address");
            };
            prop_assert_eq!(option.link_layer_address(), address.0);
        }
        let Some(Ok(NdpOptionSlice::RedirectedHeader(option))) = options.next() else {
            panic!("no redirected header");
        };
        let quoted = option.redirected_packet();
        prop_assert!(original.starts_with(quoted));
        // Nothing is left out that would have made a whole block.
        let head_length = length - quoted.len();
        prop_assert_eq!(quoted.len(), original.len().min(room.min(1280) - head_length) & !7);
        prop_assert!(options.next().is_none());
    }

    #[test]
    fn fragments_make_the_packet_again(
        original in any_ipv4_packet(4000), mtu in prop_oneof![68..200_usize, 68..4100_usize],
    ) {
        let packet = Ipv4Packet::new_validated(original.as_slice()).unwrap();
        let fragments: Vec<_> = Fragments::new(packet, mtu)
            .map(|fragment| {
                let mut into = vec![0xaa; mtu];
                let length = fragment.emit(&mut into);
                assert_eq!(length, fragment.total_length());
                into.truncate(length);
                into
            })
            .collect();
        if original.len() <= mtu {
            prop_assert_eq!(fragments, [original.clone()]);
            return Ok(());
        }
        let header_length = packet.header_length();
        let copied = copied_options(&original[20..header_length]);
        for (index, fragment) in fragments.iter().enumerate() {
            let view = Ipv4Packet::new_validated(fragment.as_slice()).unwrap();
            prop_assert_eq!(view.bytes(), fragment);
            // Version, service and identification; don't fragment; from the
            // time to live to the destination, but for the checksum.
            prop_assert_eq!(fragment[1], original[1]);
            prop_assert_eq!(&fragment[4..6], &original[4..6]);
            prop_assert_eq!(view.dont_fragment(), packet.dont_fragment());
            prop_assert_eq!(&fragment[8..10], &original[8..10]);
            prop_assert_eq!(&fragment[12..20], &original[12..20]);
            if index == 0 {
                prop_assert_eq!(view.options(), &original[20..header_length]);
            } else {
                let (options, padding) = view.options().split_at(copied.len());
                prop_assert_eq!(options, copied.as_slice());
                prop_assert!(padding.len() < 4 && padding.iter().all(|&byte| byte == 0));
            }
            // A fragment that is not the last is as long as it can be.
            if index + 1 < fragments.len() {
                prop_assert!(mtu - fragment.len() < 8);
            }
        }
        let mut shuffled = fragments;
        shuffled.reverse();
        let offset = usize::from(packet.fragment_offset_blocks()) * 8;
        prop_assert_eq!(
            reassembled(&shuffled, offset, !packet.more_fragments()),
            packet.payload()
        );
    }

    #[test]
    fn a_fragment_can_be_fragmented_again(
        original in any_ipv4_packet(4000), mtu in 600..1500_usize, smaller_mtu in 68..600_usize,
    ) {
        let packet = Ipv4Packet::new_validated(original.as_slice()).unwrap();
        let mut pieces = Vec::new();
        for fragment in Fragments::new(packet, mtu) {
            let mut into = vec![0; mtu];
            let length = fragment.emit(&mut into);
            let fragment = Ipv4Packet::new_validated(&into[..length]).unwrap();
            for piece in Fragments::new(fragment, smaller_mtu) {
                let mut into = vec![0; smaller_mtu];
                let length = piece.emit(&mut into);
                pieces.push(into[..length].to_vec());
            }
        }
        let offset = usize::from(packet.fragment_offset_blocks()) * 8;
        prop_assert_eq!(
            reassembled(&pieces, offset, !packet.more_fragments()),
            packet.payload()
        );
    }

    #[test]
    fn no_packet_with_a_valid_header_panics(
        mut bytes in prop::collection::vec(any::<u8>(), 20..300),
        words in 5..16_u8,
        mtu in 0..200_usize,
        link: [u8; 6],
    ) {
        let header_length = usize::from(words) * 4;
        bytes.resize(bytes.len().max(header_length), 0);
        bytes[0] = 0x40 | words;
        let total_length = u16::try_from(bytes.len()).unwrap();
        bytes[2..4].copy_from_slice(&total_length.to_be_bytes());
        bytes[10..12].fill(0);
        let checksum = header_checksum(&bytes[..header_length]).to_be_bytes();
        bytes[10..12].copy_from_slice(&checksum);
        let packet = Ipv4Packet::new_validated(bytes.as_slice()).unwrap();
        let _ = Icmp4Error::may_answer(packet, MacAddress(link));
        let mut into = [0; 576];
        Icmp4Error::TimeExceeded.emit(packet, Ipv4Addr::LOCALHOST, &mut into);
        for fragment in Fragments::new(packet, mtu) {
            prop_assert!(fragment.emit(&mut into) <= mtu.max(68));
        }
    }

    #[test]
    fn no_ipv6_packet_panics(bytes in any_ipv6_packet(300), error in any_icmp6_error()) {
        let packet = Ipv6Packet::new_checked(bytes.as_slice()).unwrap();
        let _ = error.may_answer(packet, ROUTER_MAC);
        let _ = packet.hop_by_hop_options();
    }
}

#[test]
fn what_lies_beyond_the_longest_datagram_is_in_no_fragment() {
    let mut bytes = vec![0; 20 + 4000];
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&4020_u16.to_be_bytes());
    // Its payload would end 3992 bytes behind what an offset can say.
    bytes[6..8].copy_from_slice(&0x1fff_u16.to_be_bytes());
    let checksum = header_checksum(&bytes[..20]).to_be_bytes();
    bytes[10..12].copy_from_slice(&checksum);
    let packet = Ipv4Packet::new_validated(bytes.as_slice()).unwrap();
    let lengths: Vec<_> = Fragments::new(packet, 1500)
        .map(|fragment| fragment.total_length())
        .collect();
    assert_eq!(lengths, [1500]);
}
