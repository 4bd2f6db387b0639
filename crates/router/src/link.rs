//! The Ethernet header of a packet that leaves: ready in its next hop, or made of a neighbour lookup.

use std::net::IpAddr;

use fwdlab_packet::ethernet;

use crate::buffer::HEAD_BYTES;
use crate::counters::{Counters, Event};
use crate::network::{Network, NextHop, NextHopKind, ethernet_header};

/// Writes the header of a packet over a next hop; whether the neighbour is known.
///
/// With `L2_PREPEND` that of the next hop, where it is one station; otherwise from the neighbour table,
/// every time.
#[inline]
pub(crate) fn write_link_header<const L2_PREPEND: bool, D: FnOnce() -> IpAddr>(
    head: &mut [u8; HEAD_BYTES],
    network: &Network,
    hop: &NextHop,
    destination: D,
    counters: &mut Counters,
) -> bool {
    let place = &mut head[..ethernet::HEADER_LENGTH];
    if L2_PREPEND && let Some(header) = &hop.prepend {
        place.copy_from_slice(header);
        return true;
    }
    let Some(header) = resolve(network, hop, destination(), counters) else {
        return false;
    };
    place.copy_from_slice(&header);
    true
}

/// A lookup in the neighbour table.
#[inline(never)]
fn resolve(
    network: &Network,
    hop: &NextHop,
    destination: IpAddr,
    counters: &mut Counters,
) -> Option<[u8; ethernet::HEADER_LENGTH]> {
    let address = match hop.kind {
        NextHopKind::Gateway(gateway) => gateway,
        _ => destination,
    };
    counters.add(Event::NeighbourLookups, 1);
    let neighbour = network.link_address(hop.egress, address)?;
    let own = network.ports[usize::from(hop.egress)].mac;
    Some(ethernet_header(neighbour, own, address.is_ipv4()))
}
