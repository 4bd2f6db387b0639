//! The nodes that a vector of packets passes through, each a loop over the packets that it concerns.
//!
//! | node | reads | writes | next | drops |
//! |---|---|---|---|---|
//! | `input` | Ethernet, IPv4 and IPv6 headers | destinations by family | `inet_lookup`, `inet6_lookup`, slow path | `ethernet: …`, and what is wrong with an IP header |
//! | `inet_lookup`, `inet6_lookup` | destinations | next hops | `inet_rewrite`, `inet6_rewrite` | |
//! | `inet_rewrite`, `inet6_rewrite` | next hops | Ethernet header, TTL or hop limit, checksum | transmit, slow path | `inet: for this router`, `inet6: for this router` |

pub(crate) mod inet;
pub(crate) mod inet6;
mod input;

pub(crate) use inet::{inet_lookup, inet_rewrite};
pub(crate) use inet6::{inet6_lookup, inet6_rewrite};
pub(crate) use input::input;

use crate::buffer::Packet;
use crate::counters::Drop;
use crate::fib::NextHopId;

/// Packets that are taken through the nodes together.
pub(crate) const VECTOR_MAX: usize = 64;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It leaves through that port.
    Transmit(u16),
    /// It is dropped.
    Drop(Drop),
    /// It needs more than plain forwarding.
    Slow(Slow),
}

/// Notes what becomes of a packet that does not leave at once.
#[cold]
#[inline(never)]
fn set_aside(fates: &mut [Fate; VECTOR_MAX], place: usize, fate: Fate) {
    fates[place] = fate;
}

/// Why a packet leaves the fast path. What the fast path has not looked at, the slow path does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slow {
    /// IPv4 options: nothing behind version and length is checked yet.
    InetOptions,
    /// IPv6 hop-by-hop options; the header itself is checked.
    Inet6Options,
    /// The time to live or hop limit is used up.
    Expired,
    /// No route leads to the destination.
    NoRoute,
    /// The next hop's link address is not known.
    NoNeighbour,
    /// Longer than the next link takes.
    TooBig,
    /// It leaves where it came in.
    Redirect,
}

/// A vector of packets on its way, all of one receive queue.
#[derive(Debug)]
pub(crate) struct Vector {
    /// The port they came in through.
    pub(crate) ingress: u16,
    pub(crate) packets: Vec<Packet>,
    /// Of each packet that is not in a lane, and at the end of each.
    pub(crate) fates: [Fate; VECTOR_MAX],
    pub(crate) inet: Lane<u32>,
    pub(crate) inet6: Lane<u128>,
    pub(crate) leaving: Leaving,
}

/// Whether all packets leave through one port, found out without a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leaving {
    /// The bits that the numbers of all ports have.
    all: u16,
    /// The bits that any of them has.
    any: u16,
}

impl Leaving {
    /// Of no packets yet.
    pub(crate) const NONE: Self = Self {
        all: u16::MAX,
        any: 0,
    };

    /// With a packet that does not leave, or not at once.
    pub(crate) const NOT_ALIKE: Self = Self {
        all: 0,
        any: u16::MAX,
    };

    #[inline]
    pub(crate) fn note(&mut self, port: u16) {
        self.all &= port;
        self.any |= port;
    }

    /// The port that all leave through.
    #[inline]
    pub(crate) fn port(self) -> Option<u16> {
        (self.all == self.any).then_some(self.all)
    }
}

/// The packets of one family: their places in the vector, and what their nodes found out in turn.
#[derive(Debug)]
pub(crate) struct Lane<A> {
    count: usize,
    places: [u8; VECTOR_MAX],
    destinations: [A; VECTOR_MAX],
    next_hops: [NextHopId; VECTOR_MAX],
}

impl<A: Copy + Default> Lane<A> {
    fn new() -> Self {
        Self {
            count: 0,
            places: [0; VECTOR_MAX],
            destinations: [A::default(); VECTOR_MAX],
            next_hops: [NextHopId::NONE; VECTOR_MAX],
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Notes a packet behind the `count` that it has, and how many these are then; the caller keeps the
    /// count, in a register.
    #[inline(always)]
    fn put(&mut self, count: usize, place: u8, destination: A) -> usize {
        let index = count % VECTOR_MAX;
        self.places[index] = place;
        self.destinations[index] = destination;
        index + 1
    }

    /// The place and next hop of each packet.
    #[inline]
    fn routed(&self) -> impl Iterator<Item = (usize, NextHopId)> {
        let places = &self.places[..self.count];
        let next_hops = &self.next_hops[..self.count];
        places
            .iter()
            .zip(next_hops)
            .map(|(&place, &next_hop)| (usize::from(place) % VECTOR_MAX, next_hop))
    }
}

impl Vector {
    pub(crate) fn new() -> Self {
        Self {
            ingress: 0,
            packets: Vec::with_capacity(VECTOR_MAX),
            fates: [Fate::Transmit(0); VECTOR_MAX],
            inet: Lane::new(),
            inet6: Lane::new(),
            leaving: Leaving::NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use fwdlab_model::AddressRange;

    use super::{inet, inet6};

    #[test]
    fn addresses_that_no_traffic_may_have_are_dropped_and_no_others() {
        let is_refused = |address: IpAddr| {
            let range = AddressRange::new(address, 1).unwrap();
            range.check_forwarded().is_err()
        };
        for begin in 0..=u16::MAX {
            for end in [0, 1, 2, u16::MAX] {
                let address = Ipv4Addr::from_bits(u32::from(begin) << 16 | u32::from(end));
                let is_dropped = inet::is_martian(address);
                assert_eq!(is_dropped, is_refused(address.into()), "{address}");
                let bits = u128::from(begin) << 112 | u128::from(end);
                let is_dropped = !inet6::may_be_forwarded(bits);
                let address = Ipv6Addr::from_bits(bits);
                assert_eq!(is_dropped, is_refused(address.into()), "{address}");
            }
        }
    }
}
