//! IPv4.

use std::net::Ipv4Addr;

use fwdlab_packet::ethernet::HEADER_LENGTH as ETHERNET;
use fwdlab_packet::ipv4;

use super::{Fate, Lane, Leaving, Slow, Vector, set_aside};
use crate::buffer::{HEAD_BYTES, Packet};
use crate::counters::{Counters, Drop, Event};
use crate::fib::{InetFib, NextHopId};
use crate::link::write_link_header;
use crate::network::{Network, NextHop, NextHopKind};

/// Version 4, and a header of five 32-bit words: no options.
const PLAIN_HEADER: u8 = 0x45;

/// Where a header's fields are in a frame.
mod at {
    use super::ETHERNET;

    pub(super) const TOTAL_LENGTH: usize = ETHERNET + 2;
    pub(super) const TTL: usize = ETHERNET + 8;
    pub(super) const CHECKSUM: usize = ETHERNET + 10;
    pub(super) const SOURCE: usize = ETHERNET + 12;
    pub(super) const DESTINATION: usize = ETHERNET + 16;
}

/// The destination of a packet whose header is as it should be.
#[inline(always)]
pub(super) fn check(head: &[u8; HEAD_BYTES], length: usize) -> Result<u32, Fate> {
    // A frame that holds the packet's length holds a header, too.
    let total_length = usize::from(word(head, at::TOTAL_LENGTH));
    if head[ETHERNET] != PLAIN_HEADER
        || total_length < ipv4::HEADER_LENGTH
        || ETHERNET + total_length > length
        || !is_checksum_right(header(head))
    {
        return Err(of_unusual_header(head, length));
    }
    let (source, destination) = (head[at::SOURCE], head[at::DESTINATION]);
    if SUSPICIOUS[usize::from(source)] | SUSPICIOUS[usize::from(destination)]
        && let Some(martian) = martian(head)
    {
        return Err(Fate::Drop(martian));
    }
    Ok(double_word(head, at::DESTINATION))
}

#[inline]
fn header(head: &[u8; HEAD_BYTES]) -> &[u8; ipv4::HEADER_LENGTH] {
    head[ETHERNET..]
        .first_chunk()
        .expect("a cache line holds it")
}

/// What is wrong first with a header, or that it has options.
#[cold]
#[inline(never)]
fn of_unusual_header(head: &[u8; HEAD_BYTES], length: usize) -> Fate {
    let (version, words) = (head[ETHERNET] >> 4, head[ETHERNET] & 0x0f);
    let total_length = usize::from(word(head, at::TOTAL_LENGTH));
    if length < ETHERNET + ipv4::HEADER_LENGTH {
        Fate::Drop(Drop::EthernetShort)
    } else if version != 4 {
        Fate::Drop(Drop::InetVersion)
    } else if words < 5 {
        Fate::Drop(Drop::InetHeaderLength)
    } else if words > 5 {
        Fate::Slow(Slow::InetOptions)
    } else if total_length < ipv4::HEADER_LENGTH || ETHERNET + total_length > length {
        Fate::Drop(Drop::InetLength)
    } else {
        Fate::Drop(Drop::InetChecksum)
    }
}

/// Whether a header's words, its checksum among them, sum up to all ones (RFC 1071); the order of bytes
/// does not matter to that.
#[inline(always)]
fn is_checksum_right(header: &[u8; ipv4::HEADER_LENGTH]) -> bool {
    let (words, _) = header.as_chunks::<4>();
    let sum: u64 = words
        .iter()
        .map(|word| u64::from(u32::from_ne_bytes(*word)))
        .sum();
    // Folding is taking the remainder by 65535, and this one is all ones or zero where that is 0; the
    // version keeps the sum from being 0.
    sum.is_multiple_of(0xffff)
}

/// First octets of which some addresses are martian.
const SUSPICIOUS: [bool; 256] = {
    let mut suspicious = [false; 256];
    let mut octet = 0;
    while octet < suspicious.len() {
        suspicious[octet] = matches!(octet, 0 | 127 | 169 | 224..);
        octet += 1;
    }
    suspicious
};

#[cold]
#[inline(never)]
fn martian(head: &[u8; HEAD_BYTES]) -> Option<Drop> {
    let is_martian = |at| is_martian(Ipv4Addr::from_bits(double_word(head, at)));
    if is_martian(at::SOURCE) {
        Some(Drop::InetMartianSource)
    } else {
        is_martian(at::DESTINATION).then_some(Drop::InetMartianDestination)
    }
}

/// Whether a router must not forward from or to an address: this network and loopback (RFC 1122,
/// 3.2.1.3), link-local (RFC 3927, 2.7), multicast, reserved and broadcast (RFC 1812, 5.3.7).
pub(crate) fn is_martian(address: Ipv4Addr) -> bool {
    matches!(address.octets(), [0 | 127 | 224.., ..] | [169, 254, ..])
}

/// Looks every packet's destination up.
///
/// *Reads* destinations. *Writes* next hops. *Next* `inet_rewrite`.
#[inline(never)]
pub(crate) fn inet_lookup(lane: &mut Lane<u32>, fib: &InetFib) {
    let Lane {
        count,
        destinations,
        next_hops,
        ..
    } = lane;
    fib.lookup_vector(&destinations[..*count], &mut next_hops[..*count]);
}

/// Makes of each packet what leaves the router.
///
/// *Reads* next hops. *Writes* the Ethernet header, TTL and checksum. *Next* transmit; the slow path for
/// what is answered or takes fragments. *Drops* `InetLocal`; `InetMartianDestination` for broadcasts to a
/// link (RFC 2644). With `L2_PREPEND` the next hop's ready header is copied, without it the neighbour is
/// looked up for every packet; with `REDIRECT` packets are tested for leaving where they came in.
#[inline(never)]
pub(crate) fn inet_rewrite<const L2_PREPEND: bool, const REDIRECT: bool>(
    vector: &mut Vector,
    network: &Network,
    counters: &mut Counters,
) {
    if REDIRECT {
        counters.add(Event::RedirectTests, vector.inet.count);
    }
    let ingress = vector.ingress;
    let packets = &mut vector.packets[..];
    let mut leaving = vector.leaving;
    for (place, next_hop) in vector.inet.routed() {
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
    let length = word(head, at::TOTAL_LENGTH);
    if head[at::TTL] <= 1 || length > hop.mtu || REDIRECT && hop.egress == ingress {
        return Err(of_unusual_packet(head, hop));
    }
    let destination = double_word(head, at::DESTINATION);
    let address = || Ipv4Addr::from_bits(destination).into();
    if !write_link_header::<L2_PREPEND, _>(head, network, hop, address, counters) {
        return Err(Fate::Slow(Slow::NoNeighbour));
    }
    age(head);
    packet.trim(length.into());
    Ok(hop.egress)
}

/// What stands in the way first.
#[cold]
#[inline(never)]
fn of_unusual_packet(head: &[u8; HEAD_BYTES], hop: &NextHop) -> Fate {
    match hop.kind {
        NextHopKind::Local => Fate::Drop(Drop::InetLocal),
        NextHopKind::Broadcast => Fate::Drop(Drop::InetMartianDestination),
        NextHopKind::None => Fate::Slow(Slow::NoRoute),
        _ if head[at::TTL] <= 1 => Fate::Slow(Slow::Expired),
        _ if word(head, at::TOTAL_LENGTH) > hop.mtu => Fate::Slow(Slow::TooBig),
        _ => Fate::Slow(Slow::Redirect),
    }
}

/// Where a packet goes.
pub(crate) fn destination(head: &[u8; HEAD_BYTES]) -> u32 {
    double_word(head, at::DESTINATION)
}

/// Takes one off the time to live, which is not 0, and brings the checksum up to date.
#[inline(always)]
pub(crate) fn age(head: &mut [u8; HEAD_BYTES]) {
    head[at::TTL] -= 1;
    // RFC 1624 for one less in the upper byte of a word: the sum grows by 0x0100 and its carry. Sums are
    // the same in either order of bytes (RFC 1071). All ones are written as zero, as by whoever sums up
    // the whole header.
    let one = u16::from_ne_bytes([1, 0]);
    let checksum = u16::from_ne_bytes([head[at::CHECKSUM], head[at::CHECKSUM + 1]]);
    let (sum, carry) = checksum.overflowing_add(one);
    let checksum = sum.wrapping_add(u16::from(carry | (sum == u16::MAX)));
    head[at::CHECKSUM..at::CHECKSUM + 2].copy_from_slice(&checksum.to_ne_bytes());
}

#[inline]
fn word(head: &[u8; HEAD_BYTES], offset: usize) -> u16 {
    u16::from_be_bytes([head[offset], head[offset + 1]])
}

#[inline]
fn double_word(head: &[u8; HEAD_BYTES], offset: usize) -> u32 {
    let bytes: &[u8; 4] = head[offset..].first_chunk().expect("a field of the header");
    u32::from_be_bytes(*bytes)
}
