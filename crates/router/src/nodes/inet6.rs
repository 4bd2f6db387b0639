//! IPv6.

use std::net::Ipv6Addr;

use fwdlab_packet::ethernet::HEADER_LENGTH as ETHERNET;
use fwdlab_packet::ipv6;

use super::{Fate, Lane, Leaving, Slow, Vector, set_aside};
use crate::buffer::{HEAD_BYTES, Packet};
use crate::counters::{Counters, Drop, Event};
use crate::fib::{Inet6Fib, NextHopId};
use crate::link::write_link_header;
use crate::network::{Network, NextHop, NextHopKind};

/// The next header that a router has to look at: hop-by-hop options (RFC 8200, section 4.3).
const HOP_BY_HOP: u8 = 0;

/// Where a header's fields are in a frame.
mod at {
    use super::ETHERNET;

    pub(super) const PAYLOAD_LENGTH: usize = ETHERNET + 4;
    pub(super) const NEXT_HEADER: usize = ETHERNET + 6;
    pub(super) const HOP_LIMIT: usize = ETHERNET + 7;
    pub(super) const SOURCE: usize = ETHERNET + 8;
    pub(super) const DESTINATION: usize = ETHERNET + 24;
}

/// The destination of a packet whose header is as it should be.
#[inline(always)]
pub(super) fn check(head: &[u8; HEAD_BYTES], length: usize) -> Result<u128, Fate> {
    // A frame that holds the packet's length holds a header, too.
    if (head[ETHERNET] >> 4 != 6
        || ETHERNET + packet_length(head) > length
        || is_suspicious(head[at::SOURCE])
        || is_suspicious(head[at::DESTINATION])
        || head[at::NEXT_HEADER] == HOP_BY_HOP)
        && let Some(fate) = of_unusual_header(head, length)
    {
        return Err(fate);
    }
    Ok(destination(head))
}

/// Whether some of the addresses with this first octet may not be forwarded.
#[inline]
const fn is_suspicious(octet: u8) -> bool {
    matches!(octet, 0 | 0xfe | 0xff)
}

/// What is wrong first with a header, or that it has options to be looked at; a suspicious address may
/// be none.
#[cold]
#[inline(never)]
fn of_unusual_header(head: &[u8; HEAD_BYTES], length: usize) -> Option<Fate> {
    if length < ETHERNET + ipv6::HEADER_LENGTH {
        Some(Fate::Drop(Drop::EthernetShort))
    } else if head[ETHERNET] >> 4 != 6 {
        Some(Fate::Drop(Drop::Inet6Version))
    } else if ETHERNET + packet_length(head) > length {
        Some(Fate::Drop(Drop::Inet6Length))
    } else if !may_be_forwarded(address(head, at::SOURCE)) {
        Some(Fate::Drop(Drop::Inet6MartianSource))
    } else if !may_be_forwarded(destination(head)) {
        Some(Fate::Drop(Drop::Inet6MartianDestination))
    } else if head[at::NEXT_HEADER] == HOP_BY_HOP {
        Some(Fate::Slow(Slow::Inet6Options))
    } else {
        None
    }
}

/// Bytes of header and payload.
#[inline]
fn packet_length(head: &[u8; HEAD_BYTES]) -> usize {
    let payload = u16::from_be_bytes([head[at::PAYLOAD_LENGTH], head[at::PAYLOAD_LENGTH + 1]]);
    ipv6::HEADER_LENGTH + usize::from(payload)
}

/// Where a packet goes.
pub(crate) fn destination(head: &[u8; HEAD_BYTES]) -> u128 {
    address(head, at::DESTINATION)
}

#[inline]
fn address(head: &[u8; HEAD_BYTES], offset: usize) -> u128 {
    let bytes: &[u8; 16] = head[offset..].first_chunk().expect("a field of the header");
    u128::from_be_bytes(*bytes)
}

/// Whether packets from or to an address may be forwarded: not nobody's, loopback, a link's or a group's
/// (RFC 4291, 2.5.2, 2.5.3, 2.5.6 and 2.7).
#[inline]
pub(crate) fn may_be_forwarded(address: u128) -> bool {
    address > 1 && address >> 118 != 0xfe80 >> 6 && address >> 120 != 0xff
}

/// Looks every packet's destination up.
///
/// *Reads* destinations. *Writes* next hops. *Next* `inet6_rewrite`. With `PREFETCH`, every step of the
/// lookups asks for what the next one reads.
#[inline(always)]
fn look_up<const PREFETCH: bool>(lane: &mut Lane<u128>, fib: &Inet6Fib, counters: &mut Counters) {
    let Lane {
        count,
        destinations,
        next_hops,
        ..
    } = lane;
    let (destinations, next_hops) = (&destinations[..*count], &mut next_hops[..*count]);
    if PREFETCH {
        counters.add(Event::Prefetches, destinations.len());
        fib.lookup_vector_prefetching(destinations, next_hops);
    } else {
        fib.lookup_vector(destinations, next_hops);
    }
}

#[inline(never)]
fn inet6_lookup_plain(lane: &mut Lane<u128>, fib: &Inet6Fib, counters: &mut Counters) {
    look_up::<false>(lane, fib, counters);
}

#[inline(never)]
fn inet6_lookup_prefetching(lane: &mut Lane<u128>, fib: &Inet6Fib, counters: &mut Counters) {
    look_up::<true>(lane, fib, counters);
}

/// The node for a level of `iflib.prefetch`.
#[inline]
pub(crate) fn inet6_lookup(prefetch: bool) -> fn(&mut Lane<u128>, &Inet6Fib, &mut Counters) {
    if prefetch {
        inet6_lookup_prefetching
    } else {
        inet6_lookup_plain
    }
}

/// Makes of each packet what leaves the router.
///
/// *Reads* next hops. *Writes* the Ethernet header and the hop limit. *Next* transmit; the slow path for
/// what is answered. *Drops* `Inet6Local`. The parameters are those of IPv4's.
#[inline(never)]
pub(crate) fn inet6_rewrite<const L2_PREPEND: bool, const REDIRECT: bool>(
    vector: &mut Vector,
    network: &Network,
    counters: &mut Counters,
) {
    if REDIRECT {
        counters.add(Event::RedirectTests, vector.inet6.count);
    }
    let ingress = vector.ingress;
    let packets = &mut vector.packets[..];
    let mut leaving = vector.leaving;
    for (place, next_hop) in vector.inet6.routed() {
        let packet = &mut packets[place];
        match rewrite::<L2_PREPEND, REDIRECT>(packet, next_hop, ingress, network, counters) {
            Ok(port) => {
                leaving.note(port);
                vector.fates[place] = Fate::Transmit(port);
            }
            Err(fate) => {
                leaving = Leaving::NOT_ALIKE;
                set_aside(&mut vector.fates, place, fate);
            }
        }
    }
    vector.leaving = leaving;
}

#[inline(always)]
pub(crate) fn rewrite<const L2_PREPEND: bool, const REDIRECT: bool>(
    packet: &mut Packet,
    next_hop: NextHopId,
    ingress: u16,
    network: &Network,
    counters: &mut Counters,
) -> Result<u16, Fate> {
    let hop = network.next_hop(next_hop);
    let head = packet.buffer.head_mut();
    let length = packet_length(head);
    if head[at::HOP_LIMIT] <= 1
        || length > usize::from(hop.mtu)
        || REDIRECT && hop.egress == ingress
    {
        return Err(of_unusual_packet(head, hop));
    }
    let destination = address(head, at::DESTINATION);
    let address = || Ipv6Addr::from_bits(destination).into();
    if !write_link_header::<L2_PREPEND, _>(head, network, hop, address, counters) {
        return Err(Fate::Slow(Slow::NoNeighbour));
    }
    head[at::HOP_LIMIT] -= 1;
    packet.trim(length);
    Ok(hop.egress)
}

/// What stands in the way first.
#[cold]
#[inline(never)]
fn of_unusual_packet(head: &[u8; HEAD_BYTES], hop: &NextHop) -> Fate {
    match hop.kind {
        NextHopKind::Local => Fate::Drop(Drop::Inet6Local),
        // IPv6 has no broadcasts.
        NextHopKind::None | NextHopKind::Broadcast => Fate::Slow(Slow::NoRoute),
        _ if head[at::HOP_LIMIT] <= 1 => Fate::Slow(Slow::Expired),
        _ if packet_length(head) > usize::from(hop.mtu) => Fate::Slow(Slow::TooBig),
        _ => Fate::Slow(Slow::Redirect),
    }
}
