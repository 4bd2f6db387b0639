//! The frames as an independent parser sees them.

use std::net::IpAddr;

use etherparse::{LinkSlice, NetSlice, SlicedPacket, TransportSlice};
use fwdlab_packet::{AddressPair, Flow, Flows, MacAddress, UdpFrame, forwarded};
use proptest::prelude::*;

/// Checks every field of `bytes` against `frame` with etherparse alone.
fn assert_agrees(frame: &UdpFrame<'_>, bytes: &[u8]) {
    let packet = SlicedPacket::from_ethernet(bytes).expect("etherparse reads the frame");

    let Some(LinkSlice::Ethernet2(ethernet)) = packet.link else {
        panic!("not Ethernet II: {:?}", packet.link);
    };
    assert_eq!(ethernet.source(), frame.source_mac.0);
    assert_eq!(ethernet.destination(), frame.destination_mac.0);

    let Some(TransportSlice::Udp(datagram)) = packet.transport else {
        panic!("not UDP: {:?}", packet.transport);
    };
    let udp = datagram.to_header();
    assert_eq!(udp.source_port, frame.flow.source_port);
    assert_eq!(udp.destination_port, frame.flow.destination_port);
    assert_eq!(usize::from(udp.length), 8 + frame.payload.len());
    assert_eq!(datagram.payload(), frame.payload);

    match packet.net {
        Some(NetSlice::Ipv4(ip)) => {
            let header = ip.header().to_header();
            assert_eq!(IpAddr::from(header.source), frame.flow.addresses.source());
            assert_eq!(
                IpAddr::from(header.destination),
                frame.flow.addresses.destination()
            );
            assert_eq!(header.time_to_live, frame.hop_limit);
            assert_eq!(header.identification, 0);
            assert!(header.dont_fragment);
            assert!(!header.is_fragmenting_payload());
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            let checksum = udp
                .calc_checksum_ipv4(&header, frame.payload)
                .expect("the payload fits");
            assert_eq!(udp.checksum, checksum);
        }
        Some(NetSlice::Ipv6(ip)) => {
            let header = ip.header().to_header();
            assert_eq!(IpAddr::from(header.source), frame.flow.addresses.source());
            assert_eq!(
                IpAddr::from(header.destination),
                frame.flow.addresses.destination()
            );
            assert_eq!(header.hop_limit, frame.hop_limit);
            assert_eq!(header.flow_label.value(), 0);
            assert_eq!(header.traffic_class, 0);
            let checksum = udp
                .calc_checksum_ipv6(&header, frame.payload)
                .expect("the payload fits");
            assert_eq!(udp.checksum, checksum);
        }
        net => panic!("not IP: {net:?}"),
    }
}

#[test]
fn all_2000_smallest_frames_of_both_families_agree_before_and_after_a_router() {
    for flows in [Flows::inet(), Flows::inet6()] {
        for flow in flows.iter() {
            let payload = vec![0; UdpFrame::payload_length(&flow.addresses, 64).unwrap()];
            let sent = UdpFrame {
                source_mac: MacAddress([2, 0, 0, 0, 0, 1]),
                destination_mac: MacAddress([2, 0, 0, 0, 0, 2]),
                flow,
                hop_limit: 64,
                payload: &payload,
            };
            let bytes = sent.emit();
            assert_agrees(&sent, &bytes);

            let received = UdpFrame {
                source_mac: MacAddress([2, 0, 0, 0, 0, 3]),
                destination_mac: MacAddress([2, 0, 0, 0, 0, 4]),
                hop_limit: 63,
                ..sent
            };
            let bytes = forwarded(&bytes, received.source_mac, received.destination_mac).unwrap();
            assert_agrees(&received, &bytes);
        }
    }
}

proptest! {
    #[test]
    fn any_frame_agrees(
        macs: ([u8; 6], [u8; 6]),
        addresses: ([u8; 16], [u8; 16]),
        is_inet6: bool,
        ports: (u16, u16),
        hop_limit: u8,
        payload in prop::collection::vec(any::<u8>(), 0..1500),
    ) {
        let address = |octets: [u8; 16]| match (is_inet6, octets.first_chunk::<4>()) {
            (false, Some(octets)) => IpAddr::from(*octets),
            _ => IpAddr::from(octets),
        };
        let frame = UdpFrame {
            source_mac: MacAddress(macs.0),
            destination_mac: MacAddress(macs.1),
            flow: Flow {
                addresses: AddressPair::new(address(addresses.0), address(addresses.1)).unwrap(),
                source_port: ports.0,
                destination_port: ports.1,
            },
            hop_limit,
            payload: &payload,
        };
        assert_agrees(&frame, &frame.emit());
    }
}
