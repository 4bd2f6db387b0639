//! What Linux does otherwise, and why.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use fwdlab_packet::checksum::Sum;

use crate::linux::{Sent, forwarded, is_inet};
use crate::rig::packets::{ICMP, ICMP6, right_checksum};

/// Why Linux does something else with a packet; functions are the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    // What its own messages are like.
    /// It numbers its ICMP messages, which may be fragmented (`icmp_sk_init`, `IP_PMTUDISC_DONT`); ours are
    /// atomic datagrams, which need no number (RFC 6864, 4.1).
    Identification,
    /// It copies a bit of the type of service that has become one of ECN's two (`icmp_send`); ours are
    /// not ECN-capable (RFC 3168).
    Ecn,
    /// It draws a flow label for its ICMPv6 messages (`net.ipv6.auto_flowlabels`; RFC 6437); ours is 0.
    FlowLabel,
    /// It quotes a packet as it had become when a neighbour did not answer, or it told of a better hop: one
    /// hop older (`ip_forward`, `ip6_forward`), as RFC 1812, 4.3.2.3, allows. We quote what came in.
    QuotedLater,
    /// It points at an option's type where the length behind it is wrong (`__ip_options_compile`); we and
    /// FreeBSD point at the length.
    OptionPointer,
    /// It copies options that record a route or times into its ICMP messages (`ip_options_echo`); ours have
    /// no options.
    EchoedOptions,
    /// It knows jumbograms, and says what is wrong with one (`ipv6_hop_jumbo`); routers whose links do not
    /// take any need not know them (RFC 2675), and then say so as the option demands.
    JumboPayload,

    // What it does to packets.
    /// It writes its address and the time into options that ask for it (`ip_options_compile`,
    /// `ip_forward_options`); RFC 1812, 5.3.13.5 and 5.3.13.6, lets routers be set not to.
    RecordedOptions,
    /// It overwrites the options that only the first fragment has, where we leave them out
    /// (`ip_options_fragment`; RFC 791, 3.2).
    OptionsOfFragments,

    // What it forwards or answers, and we drop without a word.
    /// It takes addresses of network 0 for ordinary ones, but for 0.0.0.0 (`ipv4_is_zeronet`); RFC 1812,
    /// 5.3.7, does not.
    NetworkZero,
    /// It takes class E for ordinary addresses, but for the broadcast address (`ip_route_input_slow`); RFC
    /// 1812, 5.3.7, does not.
    ClassE,
    /// It takes link-local IPv4 addresses for ordinary ones; routers must not (RFC 3927, 7).
    LinkLocal,
    /// It looks for a route to the unspecified address and to link-local ones first, and tells what comes of
    /// that, or forwards on the same link (`ip6_forward`); we do not look (RFC 4291, 2.5.2 and 2.5.6).
    UnroutableDestination,
    /// It tells senders with link-local addresses that they reach no further (RFC 4443, 3.1, code 2), or
    /// are out of hops; we have no routes to them.
    BeyondScope,
    /// It answers redirects that run out of hops (`is_ineligible`); RFC 4443, 2.4 (e.2), forbids it.
    AnsweredRedirect,
    /// It is an end system, too, and answers what is for itself.
    Services,
    /// It tells of a better first hop also where there are options, as RFC 1812, 5.2.7.2, allows; with us,
    /// packets with options do not pass that test.
    RedirectWithOptions,

    // What it drops without a word, and we forward or answer.
    /// It takes nothing from its own IPv4 addresses (`fib_validate_source`); we and FreeBSD forward it.
    OwnSource,
    /// It says nothing when it refuses a source route (`ip_rcv_options`); we do, as FreeBSD does.
    SourceRoute,
    /// It says nothing of hop-by-hop options that do not fit (`ip6_parse_tlv`); we report them (RFC 4443,
    /// 3.4).
    MalformedHopByHop,
    /// It drops what has more padding than any alignment takes, or padding that is not zero
    /// (`ip6_parse_tlv`); RFC 4942, 2.1.9.5, advises hosts to.
    Padding,
}
use Reason::*;

impl Reason {
    pub(crate) const ALL: [Self; 21] = [
        Identification,
        Ecn,
        FlowLabel,
        QuotedLater,
        OptionPointer,
        EchoedOptions,
        JumboPayload,
        RecordedOptions,
        OptionsOfFragments,
        NetworkZero,
        ClassE,
        LinkLocal,
        UnroutableDestination,
        BeyondScope,
        AnsweredRedirect,
        Services,
        RedirectWithOptions,
        OwnSource,
        SourceRoute,
        MalformedHopByHop,
        Padding,
    ];
}

/// Where headers are in a frame.
const IP: usize = 14;
const INET_OPTIONS: usize = IP + 20;
const ICMP6_MESSAGE: usize = IP + 40;

const RECORD_ROUTE: u8 = 7;
const TIMESTAMP: u8 = 68;

/// The reasons why what comes of a frame differs, if there are reasons for all that does.
pub(crate) fn explained(frame: &[u8], ours: &Sent, linux: &Sent) -> Option<BTreeSet<Reason>> {
    let mut reasons = BTreeSet::new();
    let mut left = linux.clone();
    for (ours, theirs) in ours.iter().zip(&mut left) {
        for (ours, theirs) in ours.iter().zip(theirs) {
            let (same, why) = as_ours(frame, ours, theirs);
            if same == *ours {
                *theirs = same;
                reasons.extend(why);
            }
        }
    }
    if *ours != left {
        reasons.insert(of_another_fate(frame, ours, &left)?);
    }
    Some(reasons)
}

/// Linux's frame as we would have made it, and why it was another.
fn as_ours(received: &[u8], ours: &[u8], theirs: &[u8]) -> (Vec<u8>, BTreeSet<Reason>) {
    match (is_own(theirs), is_inet(theirs)) {
        (true, true) => as_our_icmp(ours, theirs),
        (true, false) => as_our_icmp6(ours, theirs),
        (false, true) => as_we_forward(received, ours, theirs),
        (false, false) => (theirs.to_vec(), BTreeSet::new()),
    }
}

fn as_our_icmp(ours: &[u8], theirs: &[u8]) -> (Vec<u8>, BTreeSet<Reason>) {
    let mut frame = theirs.to_vec();
    let mut reasons = BTreeSet::new();
    if without_echoed_options(&mut frame) {
        reasons.insert(EchoedOptions);
    }
    if frame.len() != ours.len() {
        return (frame, reasons);
    }
    // No flags and the first fragment; any number.
    if frame[20..22] == [0, 0] {
        frame[18..22].copy_from_slice(&[0, 0, 0x40, 0]);
        reasons.insert(Identification);
    }
    if frame[15] & 3 == 2 {
        frame[15] &= !2;
        reasons.insert(Ecn);
    }
    let (message, quoted) = (INET_OPTIONS, INET_OPTIONS + 8);
    let kind = (frame[message], frame[message + 1]);
    if kind == (12, 0) && frame[message + 4] + 1 == ours[message + 4] {
        frame[message + 4] += 1;
        reasons.insert(OptionPointer);
    }
    if without_records(&mut frame[quoted..], &ours[quoted..]) {
        reasons.insert(RecordedOptions);
    }
    let ttl = quoted + 8;
    if matches!(kind, (3, 1) | (5, 1)) && frame[ttl] + 1 == ours[ttl] {
        frame[ttl] += 1;
        right_checksum(&mut frame[quoted..]);
        reasons.insert(QuotedLater);
    }
    right_checksum(&mut frame[IP..]);
    frame[message + 2..message + 4].fill(0);
    let sum = Sum::default().bytes(&frame[message..]).checksum();
    frame[message + 2..message + 4].copy_from_slice(&sum.to_be_bytes());
    (frame, reasons)
}

fn as_our_icmp6(ours: &[u8], theirs: &[u8]) -> (Vec<u8>, BTreeSet<Reason>) {
    let mut frame = theirs.to_vec();
    let mut reasons = BTreeSet::new();
    if frame.len() != ours.len() {
        return (frame, reasons);
    }
    if frame[15] & 0x0f != 0 || frame[16..18] != [0; 2] {
        frame[15] &= 0xf0;
        frame[16..18].fill(0);
        reasons.insert(FlowLabel);
    }
    let (message, quoted) = (ICMP6_MESSAGE, ICMP6_MESSAGE + 8);
    let kind = |frame: &[u8]| (frame[message], frame[message + 1]);
    if kind(&frame) == (4, 0) && kind(ours) == (4, 2) {
        let pointer: [u8; 4] = *frame[message + 4..].first_chunk().unwrap();
        let wrong = quoted + usize::try_from(u32::from_be_bytes(pointer)).unwrap();
        if frame.get(wrong) == Some(&0xc2) {
            frame[message + 1] = 2;
            reasons.insert(JumboPayload);
        }
    }
    let hop_limit = quoted + 7;
    if kind(&frame) == (1, 3) && frame[hop_limit] + 1 == ours[hop_limit] {
        frame[hop_limit] += 1;
        reasons.insert(QuotedLater);
    }
    let length = u32::try_from(frame.len() - message).unwrap();
    let (source, destination) = (inet6_at(&frame, 22), inet6_at(&frame, 38));
    let pseudo_header = Sum::pseudo_header_v6(source, destination, ICMP6, length);
    frame[message + 2..message + 4].fill(0);
    let sum = pseudo_header.bytes(&frame[message..]).checksum();
    frame[message + 2..message + 4].copy_from_slice(&sum.to_be_bytes());
    (frame, reasons)
}

fn as_we_forward(received: &[u8], ours: &[u8], theirs: &[u8]) -> (Vec<u8>, BTreeSet<Reason>) {
    let mut frame = theirs.to_vec();
    let mut reasons = BTreeSet::new();
    if without_records(&mut frame[IP..], &ours[IP..]) {
        right_checksum(&mut frame[IP..]);
        reasons.insert(RecordedOptions);
    }
    let offset = |frame: &[u8]| u16::from_be_bytes([frame[20], frame[21]]) & 0x1fff;
    if offset(theirs) > offset(received) && without_overwritten_options(&mut frame) {
        reasons.insert(OptionsOfFragments);
    }
    (frame, reasons)
}

/// Takes the options out of an ICMP message if they are those of the packet that it quotes; whether they
/// are.
fn without_echoed_options(frame: &mut Vec<u8>) -> bool {
    let end = end_of_header(&frame[IP..]) + IP;
    let quoted_options = end + 8 + 20;
    let (Some(options), Some(quoted)) = (
        frame.get(INET_OPTIONS..end),
        frame.get(quoted_options..quoted_options + end - INET_OPTIONS),
    ) else {
        return false;
    };
    // Times may have gone on.
    let is_echo = match options.first() {
        Some(&RECORD_ROUTE) => options == quoted,
        Some(&TIMESTAMP) => options[..4] == quoted[..4],
        _ => false,
    };
    if is_echo {
        frame.drain(INET_OPTIONS..end);
        let length = u16::try_from(frame.len() - IP).unwrap();
        frame[IP] = 0x45;
        frame[16..18].copy_from_slice(&length.to_be_bytes());
    }
    is_echo
}

/// Takes back what Linux recorded in a packet's first option, if there is something and it is right; the
/// checksum of the header is left.
fn without_records(theirs: &mut [u8], ours: &[u8]) -> bool {
    let end = end_of_header(ours);
    let (Some(theirs), Some(ours)) = (theirs.get_mut(20..end), ours.get(20..end)) else {
        return false;
    };
    let &[kind @ (RECORD_ROUTE | TIMESTAMP), length, next, flags, ..] = ours else {
        return false;
    };
    let (has_address, size) = match (kind, flags) {
        (RECORD_ROUTE, _) => (true, 4),
        (_, 0) => (false, 4),
        (_, 1) => (true, 8),
        _ => return false,
    };
    let slot = usize::from(next) - 1..usize::from(next) - 1 + size;
    let is_right = slot.end <= usize::from(length)
        && theirs[2] == next + u8::try_from(size).unwrap()
        && (!has_address || matches!(theirs[slot.clone()], [198, 18 | 19, 0, 2, ..]))
        // The upper bit says that a time is not one of day (RFC 791, 3.1).
        && (kind == RECORD_ROUTE || theirs[slot.end - 4] & 0x80 == 0);
    if is_right {
        theirs[2] = next;
        theirs[slot.clone()].copy_from_slice(&ours[slot]);
    }
    is_right
}

/// Takes out of a fragment the options that are nothing any more; whether there are any.
fn without_overwritten_options(frame: &mut Vec<u8>) -> bool {
    let end = end_of_header(&frame[IP..]) + IP;
    let options = &frame[INET_OPTIONS..end];
    let mut left = Vec::new();
    let mut at = 0;
    while at < options.len() && options[at] != 0 {
        let length = if options[at] == 1 {
            1
        } else {
            let length = options.get(at + 1).map_or(0, |&length| usize::from(length));
            let Some(option) = options.get(at..at + length.max(2)) else {
                return false;
            };
            left.extend(option);
            option.len()
        };
        at += length;
    }
    left.resize(left.len().next_multiple_of(4), 0);
    if left.len() == options.len() {
        return false;
    }
    let words = u8::try_from(5 + left.len() / 4).unwrap();
    frame.splice(INET_OPTIONS..end, left);
    frame[IP] = 0x40 | words;
    let length = u16::try_from(frame.len() - IP).unwrap();
    frame[16..18].copy_from_slice(&length.to_be_bytes());
    right_checksum(&mut frame[IP..]);
    true
}

/// Why a packet has another fate.
fn of_another_fate(frame: &[u8], ours: &Sent, linux: &Sent) -> Option<Reason> {
    if is_silent(ours) {
        if is_inet(frame) {
            of_inet_that_we_drop(frame, linux)
        } else {
            of_inet6_that_we_drop(frame, linux)
        }
    } else if is_silent(linux) {
        if is_inet(frame) {
            of_inet_that_it_drops(frame, ours)
        } else {
            of_inet6_that_it_drops(frame, ours)
        }
    } else {
        // One message more, about a packet with options.
        let [message, rest @ ..] = &linux[0][..] else {
            return None;
        };
        let (redirect, has_options) = if is_inet(frame) {
            ((5, 1), frame[IP] & 0x0f > 5)
        } else {
            ((137, 0), frame[20] == 0)
        };
        let is_one_more = ours[0] == rest && ours[1] == linux[1];
        let is_redirect = is_own(message) && kind_of(message) == Some(redirect);
        (is_one_more && is_redirect && has_options).then_some(RedirectWithOptions)
    }
}

fn of_inet_that_we_drop(frame: &[u8], linux: &Sent) -> Option<Reason> {
    let (source, destination) = (inet_at(frame, 26).octets(), inet_at(frame, 30).octets());
    if matches!(destination, [198, 18 | 19, 0, 2]) {
        return is_answer(frame, linux).then_some(Services);
    }
    let is_ordinary = is_forwarded(frame, linux, 1) || matches!(told(linux), Some((3 | 11, 0)));
    let reason = match (source, destination) {
        ([0, 0, 0, 0], _) | (_, [0, 0, 0, 0]) => return None,
        ([0, ..], _) | (_, [0, ..]) => NetworkZero,
        ([169, 254, ..], _) | (_, [169, 254, ..]) => LinkLocal,
        ([240..=254, ..], _) | (_, [240..=254, ..] | [255, _, _, 254]) => ClassE,
        _ => return None,
    };
    is_ordinary.then_some(reason)
}

fn of_inet6_that_we_drop(frame: &[u8], linux: &Sent) -> Option<Reason> {
    let (source, destination) = (inet6_at(frame, 22), inet6_at(frame, 38));
    let is_port = |address: Ipv6Addr| {
        // The router's own, and those of any router on a link (RFC 4291, 2.6.1).
        let text = address.to_string();
        ["2001:2:0:1::", "2001:2:0:2::"]
            .iter()
            .any(|link| text == format!("{link}2") || text == *link)
    };
    if is_port(destination) {
        return is_answer(frame, linux).then_some(Services);
    }
    if source.is_unicast_link_local() && matches!(told(linux), Some((1, 2) | (3, 0))) {
        return Some(BeyondScope);
    }
    if destination.is_unspecified() && told(linux) == Some((1, 0)) {
        return Some(UnroutableDestination);
    }
    if destination.is_unicast_link_local()
        && (is_forwarded(frame, linux, 0) || matches!(told(linux), Some((1 | 3, 0))))
    {
        return Some(UnroutableDestination);
    }
    (kind_of(frame) == Some((137, 0)) && told(linux) == Some((3, 0))).then_some(AnsweredRedirect)
}

fn of_inet_that_it_drops(frame: &[u8], ours: &Sent) -> Option<Reason> {
    if matches!(inet_at(frame, 26).octets(), [198, 18 | 19, 0, 2]) {
        return is_forwarded(frame, ours, 1).then_some(OwnSource);
    }
    let is_source_route = matches!(frame[INET_OPTIONS], 131 | 137) && frame[IP] & 0x0f > 5;
    (is_source_route && told(ours) == Some((3, 5))).then_some(SourceRoute)
}

fn of_inet6_that_it_drops(frame: &[u8], ours: &Sent) -> Option<Reason> {
    let has_options = frame[20] == 0;
    let is_only_padding = frame.get(IP + 42) == Some(&1);
    if has_options && told(ours) == Some((4, 0)) {
        Some(MalformedHopByHop)
    } else if has_options
        && is_only_padding
        && (is_forwarded(frame, ours, 1) || told(ours) == Some((3, 0)))
    {
        Some(Padding)
    } else {
        None
    }
}

fn is_silent(sent: &Sent) -> bool {
    sent.iter().all(Vec::is_empty)
}

/// What the sender at port 0 is told, if that is all.
fn told(sent: &Sent) -> Option<(u8, u8)> {
    match &sent[0][..] {
        [one] if sent[1].is_empty() && is_own(one) => kind_of(one),
        _ => None,
    }
}

/// Whether a frame is forwarded out of a port as any is, and that is all.
fn is_forwarded(frame: &[u8], sent: &Sent, egress: usize) -> bool {
    sent[1 - egress].is_empty() && sent[egress] == [forwarded(frame, egress)]
}

/// Whether it is answered by the address that it went to, and that is all.
fn is_answer(frame: &[u8], sent: &Sent) -> bool {
    let [answer] = &sent[0][..] else {
        return false;
    };
    let is_back = if is_inet(frame) {
        inet_at(answer, 26) == inet_at(frame, 30) && inet_at(answer, 30) == inet_at(frame, 26)
    } else {
        inet6_at(answer, 22) == inet6_at(frame, 38) && inet6_at(answer, 38) == inet6_at(frame, 22)
    };
    sent[1].is_empty() && is_inet(answer) == is_inet(frame) && is_back
}

/// The type and code of an ICMP message, in either family.
fn kind_of(frame: &[u8]) -> Option<(u8, u8)> {
    let at = if is_inet(frame) && frame[23] == ICMP {
        IP + end_of_header(&frame[IP..])
    } else if !is_inet(frame) && frame[20] == ICMP6 {
        ICMP6_MESSAGE
    } else {
        return None;
    };
    Some((*frame.get(at)?, *frame.get(at + 1)?))
}

/// Whether the router itself made it, which only makes messages.
fn is_own(frame: &[u8]) -> bool {
    let is_router = if is_inet(frame) {
        matches!(inet_at(frame, 26).octets(), [198, 18 | 19, 0, 2])
    } else {
        let source = inet6_at(frame, 22).to_string();
        ["2001:2:0:1::2", "2001:2:0:2::2", "fe80::2"].contains(&source.as_str())
    };
    is_router && kind_of(frame).is_some()
}

fn end_of_header(packet: &[u8]) -> usize {
    usize::from(packet[0] & 0x0f) * 4
}

fn inet_at(frame: &[u8], at: usize) -> Ipv4Addr {
    (*frame[at..].first_chunk::<4>().unwrap()).into()
}

fn inet6_at(frame: &[u8], at: usize) -> Ipv6Addr {
    (*frame[at..].first_chunk::<16>().unwrap()).into()
}
