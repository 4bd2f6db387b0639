//! Whose frame it is, what it carries, and whether its IP header is as it should be.

use fwdlab_packet::{MacAddress, ethernet};

use super::{Fate, Leaving, Vector, inet, inet6, set_aside};
use crate::buffer::HEAD_BYTES;
use crate::counters::{Counters, Drop, Event};
use crate::harvest::{Harvester, NET_ETHER};
use crate::network::Network;

/// The EtherType of ARP (RFC 826).
const ARP: u16 = 0x0806;

/// Sorts packets by their family and checks their headers.
///
/// *Reads* the Ethernet and IP headers. *Writes* the lanes of both families. *Next* `inet_lookup`,
/// `inet6_lookup`; the slow path for options. *Drops* `NotOurs`, `EthernetShort`, `Arp`, `EtherType`, and
/// what is wrong with an IP header. With `PREFETCH`, fetches what the lookup will read, as the receive
/// queue fetched the headers; with `ETHER`, harvests entropy from every frame.
#[inline(always)]
fn sort<const PREFETCH: bool, const ETHER: bool>(
    vector: &mut Vector,
    network: &Network,
    harvester: &Harvester,
    counters: &mut Counters,
) {
    vector.leaving = Leaving::NONE;
    let (mut inet_count, mut inet6_count) = (0, 0);
    let own = station(network.ports[usize::from(vector.ingress)].mac);
    for (place, packet) in (0_u8..).zip(&vector.packets[..]) {
        let head = packet.buffer.head();
        if ETHER {
            harvester.harvest(NET_ETHER, head);
            counters.add(Event::Harvests, 1);
        }
        let checked = if destination(head) != own {
            Err(Fate::Drop(Drop::NotOurs))
        } else {
            let length = usize::from(packet.length);
            match u16::from_be_bytes([head[12], head[13]]) {
                ethernet::IPV4 => inet::check(head, length).map(|destination| {
                    if PREFETCH {
                        network.inet.prefetch(destination);
                    }
                    inet_count = vector.inet.put(inet_count, place, destination);
                }),
                ethernet::IPV6 => inet6::check(head, length).map(|destination| {
                    if PREFETCH {
                        network.inet6.prefetch(destination);
                    }
                    inet6_count = vector.inet6.put(inet6_count, place, destination);
                }),
                ether_type => Err(Fate::Drop(of_other_protocols(ether_type, length))),
            }
        };
        if let Err(fate) = checked {
            vector.leaving = Leaving::NOT_ALIKE;
            set_aside(&mut vector.fates, place.into(), fate);
        }
    }
    if PREFETCH {
        counters.add(Event::Prefetches, inet_count + inet6_count);
    }
    vector.inet.count = inet_count;
    vector.inet6.count = inet6_count;
}

/// A node is a loop of its own for each level of its knobs, under its own name.
macro_rules! node {
    ($name:ident, $prefetch:literal, $ether:literal) => {
        #[inline(never)]
        fn $name(
            vector: &mut Vector,
            network: &Network,
            harvester: &Harvester,
            counters: &mut Counters,
        ) {
            sort::<$prefetch, $ether>(vector, network, harvester, counters);
        }
    };
}

node!(input_plain, false, false);
node!(input_prefetching, true, false);
node!(input_harvesting, false, true);
node!(input_prefetching_and_harvesting, true, true);

/// The node for the levels of `iflib.prefetch` and of the harvest mask's `NET_ETHER`.
#[inline]
pub(crate) fn input(
    (prefetch, harvest): (bool, bool),
) -> fn(&mut Vector, &Network, &Harvester, &mut Counters) {
    match (prefetch, harvest) {
        (false, false) => input_plain,
        (true, false) => input_prefetching,
        (false, true) => input_harvesting,
        (true, true) => input_prefetching_and_harvesting,
    }
}

#[cold]
fn of_other_protocols(ether_type: u16, length: usize) -> Drop {
    if length < ethernet::HEADER_LENGTH {
        Drop::EthernetShort
    } else if ether_type == ARP {
        Drop::Arp
    } else {
        Drop::EtherType
    }
}

/// A link address as a number that is compared at once.
fn station(mac: MacAddress) -> u64 {
    let [a, b, c, d, e, f] = mac.0;
    u64::from_ne_bytes([a, b, c, d, e, f, 0, 0])
}

#[inline]
fn destination(head: &[u8; HEAD_BYTES]) -> u64 {
    let first: &[u8; 8] = head.first_chunk().expect("a cache line is longer");
    u64::from_ne_bytes(*first) & u64::from_ne_bytes([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0])
}
