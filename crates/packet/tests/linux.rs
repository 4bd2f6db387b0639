//! What the Linux kernel answered to a packet, and what this crate makes of it.
//!
//! `oracle/linux_icmp.txt` was recorded by `oracle/linux_icmp.py`. Where the
//! kernel does something else, the difference is put into its bytes here, with
//! the reason, and nothing else may differ.

use std::net::{Ipv4Addr, Ipv6Addr};

use fwdlab_packet::checksum::Sum;
use fwdlab_packet::ipv4::{self, Ipv4Packet, ipv4_options};
use fwdlab_packet::ipv6::{self, Ipv6Packet, ParameterProblem};
use fwdlab_packet::{Fragments, Icmp4Error, Icmp6Error, MacAddress, NoAnswer};

const ROUTER_MAC: MacAddress = MacAddress([2, 0, 0, 0, 1, 1]);
const ROUTER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const ROUTER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);

/// What was sent, and what came back or was forwarded.
struct Record {
    sent: Vec<u8>,
    got: Vec<Vec<u8>>,
}

fn record(name: &str) -> Record {
    let mut record = Record {
        sent: Vec::new(),
        got: Vec::new(),
    };
    for line in include_str!("oracle/linux_icmp.txt").lines() {
        let mut fields = line.split(' ');
        if fields.next() != Some(name) {
            continue;
        }
        match (fields.next(), fields.next().map(bytes)) {
            (Some("sent"), Some(packet)) => record.sent = packet,
            (Some("got"), Some(packet)) => record.got.push(packet),
            _ => panic!("cannot be read: {line}"),
        }
    }
    assert!(!record.sent.is_empty(), "{name} is not recorded");
    record
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    (0..hexadecimal.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hexadecimal[at..at + 2], 16).expect("two digits"))
        .collect()
}

fn packet4(bytes: &[u8]) -> Ipv4Packet<&[u8]> {
    Ipv4Packet::new_validated(bytes).expect("the header is valid")
}

fn packet6(bytes: &[u8]) -> Ipv6Packet<&[u8]> {
    Ipv6Packet::new_checked(bytes).expect("the header is valid")
}

fn without_a_hop(bytes: &[u8]) -> Vec<u8> {
    let mut forwarded = bytes.to_vec();
    if bytes[0] >> 4 == 4 {
        Ipv4Packet::new_validated(forwarded.as_mut_slice())
            .and_then(|mut packet| packet.decrement_hop_limit())
    } else {
        Ipv6Packet::new_checked(forwarded.as_mut_slice())
            .and_then(|mut packet| packet.decrement_hop_limit())
    }
    .expect("the packet can be forwarded");
    forwarded
}

/// The kernel counts its messages and allows them to be fragmented; ours have
/// no number and must not be.
fn with_our_identification(kernel: &[u8]) -> Vec<u8> {
    assert_ne!(kernel[4..6], [0, 0]);
    assert_eq!(kernel[6..8], [0, 0]);
    with_ipv4_change(kernel, 4, &[0, 0, 0x40, 0])
}

fn with_ipv4_change(packet: &[u8], at: usize, change: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet[at..at + change.len()].copy_from_slice(change);
    packet[10..12].fill(0);
    let header_length = usize::from(packet[0] & 0x0f) * 4;
    let checksum = Sum::default().bytes(&packet[..header_length]).checksum();
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet
}

fn emitted4(error: Icmp4Error, original: &[u8]) -> Vec<u8> {
    let original = packet4(original);
    assert_eq!(Icmp4Error::may_answer(original, ROUTER_MAC), Ok(()));
    let mut into = [0xaa; 2048];
    let length = error.emit(original, ROUTER, &mut into);
    into[..length].to_vec()
}

fn emitted6(error: Icmp6Error, original: &[u8], source: Ipv6Addr) -> Vec<u8> {
    let original = packet6(original);
    assert_eq!(error.may_answer(original, ROUTER_MAC), Ok(()));
    let mut into = [0xaa; 2048];
    let length = error.emit(original, source, &mut into);
    into[..length].to_vec()
}

#[test]
fn icmp_errors_are_the_kernels_but_for_the_identification() {
    for (name, error) in [
        ("inet.ttl", Icmp4Error::TimeExceeded),
        ("inet.ttl_options", Icmp4Error::TimeExceeded),
        ("inet.ttl_first_fragment", Icmp4Error::TimeExceeded),
        ("inet.ttl_of_echo", Icmp4Error::TimeExceeded),
        // Cut to 576 bytes.
        ("inet.ttl_long", Icmp4Error::TimeExceeded),
        (
            "inet.fragmentation_needed",
            Icmp4Error::FragmentationNeeded { mtu: 1280 },
        ),
        ("inet.no_route", Icmp4Error::NetUnreachable),
        (
            "inet.option_pointer",
            Icmp4Error::ParameterProblem { pointer: 23 },
        ),
    ] {
        let record = record(name);
        let expected = with_our_identification(&record.got[0]);
        assert_eq!(emitted4(error, &record.sent), expected, "{name}");
    }
}

#[test]
fn the_kernel_quotes_some_packets_after_it_took_a_hop_off() {
    let gateway = Ipv4Addr::new(192, 0, 2, 9);
    for (name, error) in [
        ("inet.no_neighbour", Icmp4Error::HostUnreachable),
        ("inet.redirect", Icmp4Error::Redirect { gateway }),
    ] {
        let record = record(name);
        let expected = with_our_identification(&record.got[0]);
        assert_eq!(
            emitted4(error, &without_a_hop(&record.sent)),
            expected,
            "{name}"
        );
        // Quoted as it came, only its hop limit and what sums it up differ.
        let ours = emitted4(error, &record.sent);
        let differing: Vec<_> = (0..ours.len())
            .filter(|&at| ours[at] != expected[at])
            .collect();
        assert_eq!(ours.len(), expected.len(), "{name}");
        assert_eq!(differing, [36, 38], "{name}");
    }
}

#[test]
fn the_kernel_copies_half_of_ecn_into_the_type_of_service() {
    let record = record("inet.ttl_tos");
    assert_eq!(record.sent[1], 0b1011_1011);
    assert_eq!(record.got[0][1], 0b1101_1010);
    let expected = with_ipv4_change(&with_our_identification(&record.got[0]), 1, &[0b1101_1000]);
    assert_eq!(emitted4(Icmp4Error::TimeExceeded, &record.sent), expected);
}

#[test]
fn the_kernel_points_in_front_of_the_wrong_length_of_an_option() {
    for name in ["inet.option_too_short", "inet.option_too_long"] {
        let record = record(name);
        let original = packet4(&record.sent);
        let pointer = match ipv4_options(original.options()) {
            ipv4::OptionsVerdict::ParameterProblem { pointer } => pointer,
            verdict => panic!("{name}: {verdict:?}"),
        };
        assert_eq!(pointer, 22);
        let ours = emitted4(Icmp4Error::ParameterProblem { pointer: 21 }, &record.sent);
        assert_eq!(ours, with_our_identification(&record.got[0]), "{name}");
    }
}

#[test]
fn icmp_is_silent_where_the_kernel_is() {
    for (name, reason) in [
        ("inet.ttl_next_fragment", NoAnswer::Fragment),
        ("inet.ttl_of_error", NoAnswer::IcmpError),
    ] {
        let record = record(name);
        assert!(record.got.is_empty());
        assert_eq!(
            Icmp4Error::may_answer(packet4(&record.sent), ROUTER_MAC),
            Err(reason),
            "{name}"
        );
    }
}

#[test]
fn options_are_forwarded_as_by_the_kernel_unless_it_writes_into_them() {
    let verdict = |record: &Record| ipv4_options(packet4(&record.sent).options());

    let unknown = record("inet.unknown_option");
    assert_eq!(verdict(&unknown), ipv4::OptionsVerdict::Forward);
    assert_eq!(unknown.got, [without_a_hop(&unknown.sent)]);

    let source_route = record("inet.source_route");
    assert_eq!(verdict(&source_route), ipv4::OptionsVerdict::SourceRoute);
    assert!(source_route.got.is_empty());

    // The kernel records its address and moves the pointer behind it.
    let recorded = record("inet.record_route");
    assert_eq!(verdict(&recorded), ipv4::OptionsVerdict::Forward);
    let written = with_ipv4_change(&without_a_hop(&recorded.sent), 23, &[8, 198, 51, 100, 1]);
    assert_eq!(recorded.got, [written]);
}

#[test]
fn fragments_are_the_kernels_but_for_the_options_that_only_the_first_has() {
    let record = record("inet.fragments");
    let forwarded = without_a_hop(&record.sent);
    let fragments: Vec<_> = Fragments::new(packet4(&forwarded), 1280)
        .map(|fragment| {
            let mut into = [0xaa; 1280];
            let length = fragment.emit(&mut into);
            into[..length].to_vec()
        })
        .collect();
    let [first, last] = record.got.as_slice() else {
        panic!("{} fragments were recorded", record.got.len());
    };
    assert_eq!(fragments[0], *first);
    // The kernel puts no-operations in their place, we leave them out.
    assert_eq!(last[20..28], [0x9e, 3, 0xaa, 1, 1, 1, 1, 1]);
    let mut expected = [&last[..20], &[0x9e, 3, 0xaa, 0], &last[28..]].concat();
    expected[0] = 0x46;
    let total_length = u16::try_from(expected.len()).unwrap();
    let expected = with_ipv4_change(&expected, 2, &total_length.to_be_bytes());
    assert_eq!(fragments[1..], [expected]);
}

#[test]
fn icmp6_errors_are_the_kernels_but_for_the_flow_label() {
    let option = |pointer| Icmp6Error::ParameterProblem {
        problem: ParameterProblem::UnrecognizedOption,
        pointer,
    };
    for (name, error) in [
        ("inet6.hop_limit", Icmp6Error::TimeExceeded),
        ("inet6.hop_limit_class", Icmp6Error::TimeExceeded),
        // Cut to 1280 bytes.
        ("inet6.hop_limit_long", Icmp6Error::TimeExceeded),
        (
            "inet6.packet_too_big",
            Icmp6Error::PacketTooBig { mtu: 1280 },
        ),
        ("inet6.no_route", Icmp6Error::NoRoute),
        ("inet6.option_report", option(42)),
        ("inet6.option_report_unicast", option(44)),
    ] {
        let record = record(name);
        let mut expected = record.got[0].clone();
        // The kernel draws it, and no checksum covers it.
        assert_ne!(expected[1..4], [0, 0, 0]);
        expected[1..4].fill(0);
        assert_eq!(emitted6(error, &record.sent, ROUTER6), expected, "{name}");
    }
    // Here, too, the quotation has a hop less.
    let record = record("inet6.no_neighbour");
    let mut expected = record.got[0].clone();
    expected[1..4].fill(0);
    let original = without_a_hop(&record.sent);
    assert_eq!(
        emitted6(Icmp6Error::AddressUnreachable, &original, ROUTER6),
        expected
    );
}

#[test]
fn redirects_are_the_kernels() {
    let link_local = "fe80::ff:fe00:101".parse().unwrap();
    let error = Icmp6Error::Redirect {
        target: "fe80::9".parse().unwrap(),
        target_link_layer_address: Some(MacAddress([2, 0, 0, 0, 1, 9])),
    };
    for name in ["inet6.redirect", "inet6.redirect_long"] {
        let record = record(name);
        assert_eq!(
            emitted6(error, &record.sent, link_local),
            record.got[0],
            "{name}"
        );
    }
}

#[test]
fn hop_by_hop_options_are_treated_as_by_the_kernel_but_for_malformed_ones() {
    let verdict = |record: &Record| packet6(&record.sent).hop_by_hop_options();
    let problem = |problem, pointer| ipv6::OptionsVerdict::ParameterProblem { problem, pointer };

    let skipped = record("inet6.option_skip");
    assert_eq!(verdict(&skipped), ipv6::OptionsVerdict::Forward);
    assert_eq!(skipped.got, [without_a_hop(&skipped.sent)]);

    let discarded = record("inet6.option_discard");
    assert_eq!(verdict(&discarded), ipv6::OptionsVerdict::Discard);
    assert!(discarded.got.is_empty());

    for (name, pointer) in [
        ("inet6.option_report", 42),
        ("inet6.option_report_unicast", 44),
    ] {
        let expected = problem(ParameterProblem::UnrecognizedOption, pointer);
        assert_eq!(verdict(&record(name)), expected);
    }

    // Reported by us (RFC 4443, section 3.4), dropped in silence by the kernel.
    let malformed = record("inet6.option_overrun");
    assert_eq!(
        verdict(&malformed),
        problem(ParameterProblem::ErroneousHeaderField, 43)
    );
    assert!(malformed.got.is_empty());
}

#[test]
fn icmp6_is_silent_where_the_kernel_is() {
    let record = record("inet6.hop_limit_of_error");
    assert!(record.got.is_empty());
    let verdict = Icmp6Error::TimeExceeded.may_answer(packet6(&record.sent), ROUTER_MAC);
    assert_eq!(verdict, Err(NoAnswer::IcmpError));
}
