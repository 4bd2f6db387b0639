//! Packets that take more than plain forwarding: options, fragments, ICMP errors and redirects.

use std::net::{IpAddr, Ipv6Addr};

use fwdlab_packet::ethernet::{self, HEADER_LENGTH as ETHERNET};
use fwdlab_packet::ipv4::{self, Ipv4Packet, ipv4_options};
use fwdlab_packet::ipv6::{self, Ipv6Packet};
use fwdlab_packet::{Fragments, Icmp4Error, Icmp6Error, MacAddress, PacketError};

use crate::buffer::{BUFFER_BYTES, BufferPool, Packet};
use crate::counters::{Counters, Drop, Event};
use crate::error_rate_limit::{ErrorRateLimit, ICMP_ERRORS_PER_S, ICMP6_ERRORS_PER_S};
use crate::link::write_link_header;
use crate::network::{Network, NextHopKind};
use crate::nodes::{Fate, Slow, inet, inet6};
use crate::transmit::queue_of;

/// Packets of the current vector that left the fast path, and how many errors may still be told.
#[derive(Debug)]
pub(crate) struct SlowPath {
    waiting: Vec<(Packet, Slow)>,
    inet_errors: ErrorRateLimit,
    inet6_errors: ErrorRateLimit,
}

impl Default for SlowPath {
    fn default() -> Self {
        Self {
            waiting: Vec::new(),
            inet_errors: ErrorRateLimit::new(ICMP_ERRORS_PER_S),
            inet6_errors: ErrorRateLimit::new(ICMP6_ERRORS_PER_S),
        }
    }
}

/// What the slow path works with.
pub(crate) struct Site<'w> {
    pub(crate) network: &'w Network,
    /// The port that the packets came in through.
    pub(crate) ingress: u16,
    pub(crate) now_ns: u64,
    /// The level of `l2_prepend`.
    pub(crate) l2_prepend: bool,
    pub(crate) pool: &'w mut BufferPool,
    pub(crate) counters: &'w mut Counters,
    /// Of each port and queue, what leaves through it.
    pub(crate) leaving: &'w mut [Vec<Vec<Packet>>],
}

impl SlowPath {
    pub(crate) fn take(&mut self, packet: Packet, why: Slow) {
        self.waiting.push((packet, why));
    }

    pub(crate) fn has_work(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Every packet that waits is forwarded, as it is or in fragments, or dropped; and who must be told is
    /// told.
    pub(crate) fn run(&mut self, site: &mut Site<'_>) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for (packet, why) in waiting.drain(..) {
            self.handle(packet, why, site);
        }
        self.waiting = waiting;
    }

    fn handle(&mut self, packet: Packet, why: Slow, site: &mut Site<'_>) {
        if is_inet(&packet) {
            self.inet(packet, why, site);
        } else {
            self.inet6(packet, why, site);
        }
    }

    /// Forwards a packet whose header is checked; the redirect that it may call for is sent already, or
    /// not to be.
    fn forward(&mut self, mut packet: Packet, site: &mut Site<'_>) {
        let is_inet = is_inet(&packet);
        let head = packet.buffer.head();
        let next_hop = if is_inet {
            site.network.inet.lookup(inet::destination(head))
        } else {
            site.network.inet6.lookup(inet6::destination(head))
        };
        let rewrite = match (is_inet, site.l2_prepend) {
            (true, true) => inet::rewrite::<true, false>,
            (true, false) => inet::rewrite::<false, false>,
            (false, true) => inet6::rewrite::<true, false>,
            (false, false) => inet6::rewrite::<false, false>,
        };
        match rewrite(
            &mut packet,
            next_hop,
            site.ingress,
            site.network,
            site.counters,
        ) {
            Ok(port) | Err(Fate::Transmit(port)) => site.send(port, packet),
            Err(Fate::Drop(reason)) => site.discard(packet, reason),
            Err(Fate::Slow(why)) => self.handle(packet, why, site),
        }
    }

    fn inet(&mut self, packet: Packet, why: Slow, site: &mut Site<'_>) {
        match why {
            Slow::InetOptions => self.inet_with_options(packet, site),
            Slow::Inet6Options => unreachable!("it is an IPv4 packet"),
            Slow::Expired => {
                self.refuse_inet(packet, Drop::InetTtl, Icmp4Error::TimeExceeded, site);
            }
            Slow::NoRoute => {
                self.refuse_inet(packet, Drop::InetNoRoute, Icmp4Error::NetUnreachable, site);
            }
            Slow::NoNeighbour => {
                let error = Icmp4Error::HostUnreachable;
                self.refuse_inet(packet, Drop::InetNeighbour, error, site);
            }
            Slow::TooBig => self.fragment(packet, site),
            Slow::Redirect => {
                self.redirect_inet(&packet, site);
                self.forward(packet, site);
            }
        }
    }

    fn inet_with_options(&mut self, packet: Packet, site: &mut Site<'_>) {
        let view = match Ipv4Packet::new_validated(&packet.frame()[ETHERNET..]) {
            Ok(view) => view,
            Err(error) => return site.discard(packet, of_inet_error(&error)),
        };
        let (source, destination) = (view.source(), view.destination());
        let verdict = ipv4_options(view.options());
        if inet::is_martian(source) {
            return site.discard(packet, Drop::InetMartianSource);
        }
        if inet::is_martian(destination) {
            return site.discard(packet, Drop::InetMartianDestination);
        }
        let error = match verdict {
            ipv4::OptionsVerdict::Forward => return self.forward(packet, site),
            ipv4::OptionsVerdict::SourceRoute => Icmp4Error::SourceRouteFailed,
            ipv4::OptionsVerdict::ParameterProblem { pointer } => {
                Icmp4Error::ParameterProblem { pointer }
            }
        };
        self.refuse_inet(packet, Drop::InetOptions, error, site);
    }

    fn fragment(&mut self, packet: Packet, site: &mut Site<'_>) {
        let view = view_of_inet(&packet);
        let destination = view.destination();
        let hop = site.network.hop_to(destination.into());
        let (mtu, egress) = (hop.mtu, hop.egress);
        if view.dont_fragment() {
            let error = Icmp4Error::FragmentationNeeded { mtu };
            return self.refuse_inet(packet, Drop::InetTooBig, error, site);
        }
        let mut whole = packet;
        let mut link_header = [0; ETHERNET];
        {
            let head = whole.buffer.head_mut();
            if !site.write_header(head, destination.into()) {
                let error = Icmp4Error::HostUnreachable;
                return self.refuse_inet(whole, Drop::InetNeighbour, error, site);
            }
            link_header.copy_from_slice(&head[..ETHERNET]);
            inet::age(head);
        }
        let fragments = Fragments::new(view_of_inet(&whole), mtu.into());
        let count = fragments.clone().count();
        if site.pool.ready(count) < count {
            return site.discard(whole, Drop::NoBuffer);
        }
        for fragment in fragments {
            let emit = |into: &mut [u8]| fragment.emit(into);
            site.send_own(egress, whole.flow_hash, &link_header, emit);
        }
        site.counters.add(Event::Fragments, count);
        site.counters.add(Event::Fragmented, 1);
        site.pool.put(whole.buffer);
    }

    /// Tells the sender of a better first hop, where it is on the link that the packet came in from.
    fn redirect_inet(&mut self, packet: &Packet, site: &mut Site<'_>) {
        let view = view_of_inet(packet);
        let destination = view.destination();
        let gateway = match site.network.hop_to(destination.into()).kind {
            NextHopKind::Gateway(IpAddr::V4(gateway)) => gateway,
            NextHopKind::Connected => destination,
            _ => return,
        };
        if !site.is_on_ingress_link(view.source().into()) || view.hop_limit() <= 1 {
            return;
        }
        self.tell_inet(packet, &Icmp4Error::Redirect { gateway }, site);
    }

    fn refuse_inet(
        &mut self,
        packet: Packet,
        reason: Drop,
        error: Icmp4Error,
        site: &mut Site<'_>,
    ) {
        self.tell_inet(&packet, &error, site);
        site.discard(packet, reason);
    }

    fn tell_inet(&mut self, packet: &Packet, error: &Icmp4Error, site: &mut Site<'_>) {
        let view = view_of_inet(packet);
        // The address on the link that the message leaves by (RFC 1812, 4.3.2.4), wherever the packet came in.
        let egress = site.network.hop_to(view.source().into()).egress;
        let own = site.network.inet_address(egress);
        let may = Icmp4Error::may_answer(view, link_destination(packet)).is_ok();
        match own.filter(|_| may && self.inet_errors.allows(site.now_ns)) {
            Some(own) => {
                let emit = |into: &mut [u8]| error.emit(view, own, into);
                site.originate(view.source().into(), packet.flow_hash, emit);
            }
            None => site.counters.add(Event::ErrorsSuppressed, 1),
        }
    }

    fn inet6(&mut self, packet: Packet, why: Slow, site: &mut Site<'_>) {
        match why {
            Slow::InetOptions => unreachable!("it is an IPv6 packet"),
            Slow::Inet6Options => self.inet6_with_options(packet, site),
            Slow::Expired => {
                self.refuse_inet6(packet, Drop::Inet6HopLimit, Icmp6Error::TimeExceeded, site);
            }
            Slow::NoRoute => {
                self.refuse_inet6(packet, Drop::Inet6NoRoute, Icmp6Error::NoRoute, site);
            }
            Slow::NoNeighbour => {
                let error = Icmp6Error::AddressUnreachable;
                self.refuse_inet6(packet, Drop::Inet6Neighbour, error, site);
            }
            Slow::TooBig => {
                let destination = view_of_inet6(&packet).destination();
                let mtu = site.network.hop_to(destination.into()).mtu.into();
                let error = Icmp6Error::PacketTooBig { mtu };
                self.refuse_inet6(packet, Drop::Inet6TooBig, error, site);
            }
            Slow::Redirect => {
                self.redirect_inet6(&packet, site);
                self.forward(packet, site);
            }
        }
    }

    fn inet6_with_options(&mut self, packet: Packet, site: &mut Site<'_>) {
        match view_of_inet6(&packet).hop_by_hop_options() {
            ipv6::OptionsVerdict::Forward => self.forward(packet, site),
            ipv6::OptionsVerdict::Discard => site.discard(packet, Drop::Inet6Options),
            ipv6::OptionsVerdict::ParameterProblem { problem, pointer } => {
                let error = Icmp6Error::ParameterProblem { problem, pointer };
                self.refuse_inet6(packet, Drop::Inet6Options, error, site);
            }
        }
    }

    /// As for IPv4; hosts believe only a link-local sender, and a link-local target unless it is the
    /// destination itself (RFC 4861, 8.1).
    fn redirect_inet6(&mut self, packet: &Packet, site: &mut Site<'_>) {
        let view = view_of_inet6(packet);
        let destination = view.destination();
        let target = match site.network.hop_to(destination.into()).kind {
            NextHopKind::Gateway(IpAddr::V6(gateway)) if gateway.is_unicast_link_local() => gateway,
            NextHopKind::Connected => destination,
            _ => return,
        };
        if !site.is_on_ingress_link(view.source().into()) || view.hop_limit() <= 1 {
            return;
        }
        let error = Icmp6Error::Redirect {
            target,
            target_link_layer_address: site.network.link_address(site.ingress, target.into()),
        };
        let own = site.network.inet6_address(site.ingress, true);
        self.tell_inet6(packet, &error, own, site);
    }

    fn refuse_inet6(
        &mut self,
        packet: Packet,
        reason: Drop,
        error: Icmp6Error,
        site: &mut Site<'_>,
    ) {
        // Of the addresses that RFC 4443, 2.2, leaves the choice of, the one that the packet came in by: it is
        // what traceroute asks for.
        let own = site.network.inet6_address(site.ingress, false);
        self.tell_inet6(&packet, &error, own, site);
        site.discard(packet, reason);
    }

    fn tell_inet6(
        &mut self,
        packet: &Packet,
        error: &Icmp6Error,
        own: Option<Ipv6Addr>,
        site: &mut Site<'_>,
    ) {
        let view = view_of_inet6(packet);
        let may = error.may_answer(view, link_destination(packet)).is_ok();
        match own.filter(|_| may && self.inet6_errors.allows(site.now_ns)) {
            Some(own) => {
                let emit = |into: &mut [u8]| error.emit(view, own, into);
                site.originate(view.source().into(), packet.flow_hash, emit);
            }
            None => site.counters.add(Event::ErrorsSuppressed, 1),
        }
    }
}

impl Site<'_> {
    /// Writes the Ethernet header of a packet to a destination; whether the neighbour is known.
    fn write_header(
        &mut self,
        head: &mut [u8; crate::buffer::HEAD_BYTES],
        destination: IpAddr,
    ) -> bool {
        let network = self.network;
        let hop = network.hop_to(destination);
        let write = if self.l2_prepend {
            write_link_header::<true, _>
        } else {
            write_link_header::<false, _>
        };
        write(head, network, hop, || destination, self.counters)
    }

    fn is_on_ingress_link(&self, address: IpAddr) -> bool {
        let hop = self.network.hop_to(address);
        hop.kind == NextHopKind::Connected && hop.egress == self.ingress
    }

    fn discard(&mut self, packet: Packet, reason: Drop) {
        self.counters.drop_one(reason);
        self.pool.put(packet.buffer);
    }

    fn send(&mut self, port: u16, packet: Packet) {
        let queues = &mut self.leaving[usize::from(port)];
        let queue = queue_of(packet.flow_hash, queues.len());
        queues[queue].push(packet);
    }

    /// Sends a packet of the router's own, where a route and a neighbour are known.
    fn originate(
        &mut self,
        destination: IpAddr,
        flow_hash: u32,
        emit: impl FnOnce(&mut [u8]) -> usize,
    ) {
        let hop = self.network.hop_to(destination);
        let (is_transit, egress, mtu) = (hop.is_transit(), hop.egress, usize::from(hop.mtu));
        let mut head = [0; crate::buffer::HEAD_BYTES];
        if !is_transit || !self.write_header(&mut head, destination) || self.pool.ready(1) == 0 {
            self.counters.add(Event::ErrorsSuppressed, 1);
            return;
        }
        let mut link_header = [0; ETHERNET];
        link_header.copy_from_slice(&head[..ETHERNET]);
        let emit_to_fit = |into: &mut [u8]| {
            let room = into.len().min(mtu);
            emit(&mut into[..room])
        };
        self.send_own(egress, flow_hash, &link_header, emit_to_fit);
        self.counters.add(Event::Originated, 1);
    }

    /// Shape: a buffer is ready.
    fn send_own(
        &mut self,
        egress: u16,
        flow_hash: u32,
        link_header: &[u8; ETHERNET],
        emit: impl FnOnce(&mut [u8]) -> usize,
    ) {
        let mut buffer = self.pool.take().expect("a buffer is ready");
        let bytes = buffer.bytes_mut();
        bytes[..ETHERNET].copy_from_slice(link_header);
        let end = ETHERNET + emit(&mut bytes[ETHERNET..]);
        let length = end.max(ethernet::MINIMUM_LENGTH);
        bytes[end..length].fill(0);
        let length = u16::try_from(length).expect("a buffer is shorter");
        self.send(
            egress,
            Packet {
                buffer,
                length,
                is_own: true,
                flow_hash,
            },
        );
    }
}

const _: () = assert!(BUFFER_BYTES <= u16::MAX as usize);

/// The view of a packet whose header is checked.
fn view_of_inet(packet: &Packet) -> Ipv4Packet<&[u8]> {
    Ipv4Packet::new_validated(&packet.frame()[ETHERNET..]).expect("its header is checked")
}

fn view_of_inet6(packet: &Packet) -> Ipv6Packet<&[u8]> {
    Ipv6Packet::new_checked(&packet.frame()[ETHERNET..]).expect("its header is checked")
}

fn is_inet(packet: &Packet) -> bool {
    let head = packet.buffer.head();
    u16::from_be_bytes([head[12], head[13]]) == ethernet::IPV4
}

fn link_destination(packet: &Packet) -> MacAddress {
    let mut mac = [0; 6];
    mac.copy_from_slice(&packet.buffer.head()[..6]);
    MacAddress(mac)
}

fn of_inet_error(error: &PacketError) -> Drop {
    match error {
        PacketError::Truncated { .. } => Drop::EthernetShort,
        PacketError::Ipv4HeaderLength { .. } => Drop::InetHeaderLength,
        PacketError::Ipv4Checksum { .. } => Drop::InetChecksum,
        _ => Drop::InetLength,
    }
}
