//! Interfaces, addresses, neighbours and routes over rtnetlink, one request at a time.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};

use fwdlab_model::masked;
use fwdlab_packet::MacAddress;
use fwdlab_sys::NetworkNamespace;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkBuffer,
    NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, LinkXdp,
};
use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use crate::LabError;
use crate::addresses::Prefix;

/// Room for the longest answer: one link with all its attributes.
const ANSWER_SIZE: usize = 32 * 1024;

/// Routes in one message to the kernel: more gains nothing, and has to fit a socket's buffer.
const ROUTES_A_BATCH: usize = 512;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
const RTNLGRP_IPV4_ROUTE: u32 = 7;
const RTNLGRP_IPV6_ROUTE: u32 = 11;
/// What a socket says that had no room for all that it was told.
const ENOBUFS: i32 = 105;

/// rtnetlink of one namespace.
pub(crate) struct Netlink {
    socket: Socket,
    namespace: String,
    sequence_number: u32,
    answer: Vec<u8>,
}

/// An end of a veth pair: its name and its MAC address.
pub(crate) type End<'a> = (&'a str, MacAddress);

/// What an interface has counted and carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InterfaceState {
    pub(crate) rx_packets: u64,
    pub(crate) tx_packets: u64,
    pub(crate) rx_dropped: u64,
    pub(crate) tx_dropped: u64,
    /// Frames dropped because they came in for another station.
    pub(crate) rx_otherhost_dropped: u64,
    /// The kernel's number of the XDP program on it; 0 where there is none.
    pub(crate) xdp_program: u32,
}

/// What of an interface anyone may set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkSettings {
    pub(crate) mac: MacAddress,
    pub(crate) mtu: u32,
    pub(crate) is_promiscuous: bool,
    pub(crate) takes_all_multicast: bool,
}

/// What is to be done with routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteChange {
    Add,
    Delete,
}

impl Netlink {
    /// Opens rtnetlink inside a namespace.
    pub(crate) fn open(namespace: &NetworkNamespace) -> Result<Self, LabError> {
        let open = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok(socket)
        };
        let socket = namespace
            .run(open)?
            .map_err(|source| failed(namespace.name(), "opening rtnetlink", source))?;
        Ok(Self {
            socket,
            namespace: namespace.name().to_owned(),
            sequence_number: 0,
            answer: vec![0; ANSWER_SIZE],
        })
    }

    /// Makes a veth pair with one end here and the other in another namespace.
    pub(crate) fn add_veth(
        &mut self,
        here: End<'_>,
        there: End<'_>,
        namespace: &NetworkNamespace,
    ) -> Result<(), LabError> {
        let named = |(name, mac): End<'_>| {
            let mut link = LinkMessage::default();
            link.attributes = vec![
                LinkAttribute::IfName(name.to_owned()),
                LinkAttribute::Address(mac.0.to_vec()),
            ];
            link
        };
        let mut peer = named(there);
        peer.attributes
            .push(LinkAttribute::NetNsFd(namespace.as_fd().as_raw_fd()));
        let mut link = named(here);
        link.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        self.change(
            format!("making veth pair {} - {}", here.0, there.0),
            RouteNetlinkMessage::NewLink(link),
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }

    /// Sets an interface up.
    pub(crate) fn set_up(&mut self, index: u32) -> Result<(), LabError> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        self.change(
            format!("setting interface {index} up"),
            RouteNetlinkMessage::SetLink(link),
            0,
        )
    }

    /// Gives an interface an address, at once usable (no duplicate address detection); one that it has stays.
    pub(crate) fn set_address(&mut self, index: u32, prefix: Prefix) -> Result<(), LabError> {
        let mut message = AddressMessage::default();
        message.header.family = prefix.0.into();
        message.header.prefix_len = prefix.1;
        message.header.index = index;
        message.header.flags = AddressHeaderFlags::Nodad;
        message.attributes = vec![
            AddressAttribute::Address(prefix.0),
            AddressAttribute::Local(prefix.0),
        ];
        self.change(
            format!(
                "adding address {}/{} to interface {index}",
                prefix.0, prefix.1
            ),
            RouteNetlinkMessage::NewAddress(message),
            NLM_F_CREATE | NLM_F_REPLACE,
        )
    }

    /// Adds the route to the network of an interface's address where it is gone: the kernel makes it with the address, and
    /// not again for one that is there.
    pub(crate) fn add_connected_route(
        &mut self,
        index: u32,
        prefix: Prefix,
    ) -> Result<(), LabError> {
        let message = connected_route(index, prefix);
        let added = self.request(
            RouteNetlinkMessage::NewRoute(message),
            NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL,
        );
        match added {
            Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
                let what = format!(
                    "adding the route to the network of {}/{} on interface {index}",
                    prefix.0, prefix.1
                );
                Err(self.error(what, source))
            }
            _ => Ok(()),
        }
    }

    /// Sets a permanent neighbour, replacing what was known of it.
    pub(crate) fn set_neighbour(
        &mut self,
        index: u32,
        address: IpAddr,
        mac: MacAddress,
    ) -> Result<(), LabError> {
        let mut message = NeighbourMessage::default();
        message.header.family = address.into();
        message.header.ifindex = index;
        message.header.state = NeighbourState::Permanent;
        message.header.kind = RouteType::Unicast;
        message.attributes = vec![
            NeighbourAttribute::Destination(address.into()),
            NeighbourAttribute::LinkLayerAddress(mac.0.to_vec()),
        ];
        self.change(
            format!("setting neighbour {address} to {mac}"),
            RouteNetlinkMessage::NewNeighbour(message),
            NLM_F_CREATE | NLM_F_REPLACE,
        )
    }

    /// Sets a route through a gateway, replacing the one to the same prefix.
    pub(crate) fn set_route(&mut self, prefix: Prefix, gateway: IpAddr) -> Result<(), LabError> {
        let message = static_route(prefix, gateway);
        self.change(
            format!(
                "setting the route to {}/{} through {gateway}",
                prefix.0, prefix.1
            ),
            RouteNetlinkMessage::NewRoute(message),
            NLM_F_CREATE | NLM_F_REPLACE,
        )
    }

    /// Adds or deletes routes through one gateway, many in one message to the kernel.
    pub(crate) fn change_routes(
        &mut self,
        change: RouteChange,
        gateway: IpAddr,
        prefixes: impl Iterator<Item = Prefix>,
    ) -> Result<(), LabError> {
        let mut prefixes = prefixes.peekable();
        while prefixes.peek().is_some() {
            let batch = prefixes.by_ref().take(ROUTES_A_BATCH);
            self.change_batch(change, gateway, batch)
                .map_err(|source| {
                    let what = match change {
                        RouteChange::Add => format!("adding routes through {gateway}"),
                        RouteChange::Delete => format!("deleting routes through {gateway}"),
                    };
                    self.error(what, source)
                })?;
        }
        Ok(())
    }

    fn change_batch(
        &mut self,
        change: RouteChange,
        gateway: IpAddr,
        prefixes: impl Iterator<Item = Prefix>,
    ) -> io::Result<()> {
        let mut bytes = Vec::new();
        let mut last = 0;
        for prefix in prefixes {
            let message = static_route(prefix, gateway);
            let (message, flags) = match change {
                RouteChange::Add => (
                    RouteNetlinkMessage::NewRoute(message),
                    NLM_F_CREATE | NLM_F_EXCL,
                ),
                RouteChange::Delete => (RouteNetlinkMessage::DelRoute(message), 0),
            };
            last = bytes.len();
            self.write_request(message, flags, &mut bytes);
        }
        // Refusals are told in any case; beyond them, it is enough to hear when the last one is done.
        let flags_at = last + 6;
        let flags = u16::from_ne_bytes([bytes[flags_at], bytes[flags_at + 1]]) | NLM_F_ACK;
        bytes[flags_at..flags_at + 2].copy_from_slice(&flags.to_ne_bytes());
        self.socket.send(&bytes, 0)?;
        let mut refusal = Ok(());
        loop {
            let length = self.socket.recv(&mut &mut self.answer[..], 0)?;
            for answer in messages(&self.answer[..length]) {
                if answer.kind == NLMSG_ERROR && answer.error_code != 0 {
                    let error = io::Error::from_raw_os_error(answer.error_code.saturating_neg());
                    refusal = refusal.and(Err(error));
                }
                if answer.sequence_number == self.sequence_number {
                    return refusal;
                }
            }
        }
    }

    /// Counts the static routes of a family's main table.
    pub(crate) fn count_static_routes(&mut self, family: AddressFamily) -> Result<u32, LabError> {
        self.dump_static_routes(family)
            .map_err(|source| self.error("counting routes".into(), source))
    }

    fn dump_static_routes(&mut self, family: AddressFamily) -> io::Result<u32> {
        let mut message = RouteMessage::default();
        message.header.address_family = family;
        let mut bytes = Vec::new();
        let request = RouteNetlinkMessage::GetRoute(message);
        self.write_request(request, NLM_F_DUMP, &mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut routes = 0;
        loop {
            let length = self.socket.recv(&mut &mut self.answer[..], 0)?;
            for answer in messages(&self.answer[..length]) {
                if answer.sequence_number != self.sequence_number {
                    continue;
                }
                match answer.kind {
                    NLMSG_DONE => return Ok(routes),
                    NLMSG_ERROR => {
                        let code = answer.error_code.saturating_neg();
                        return Err(io::Error::from_raw_os_error(code));
                    }
                    _ => routes += u32::from(answer.is_static_route()),
                }
            }
        }
    }

    /// The index of an interface.
    pub(crate) fn index(&mut self, name: &str) -> Result<u32, LabError> {
        let mut link = LinkMessage::default();
        link.attributes.push(LinkAttribute::IfName(name.to_owned()));
        Ok(self
            .link(format!("looking for interface {name}"), link)?
            .header
            .index)
    }

    /// What an interface has counted and carries.
    pub(crate) fn interface_state(&mut self, index: u32) -> Result<InterfaceState, LabError> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        let link = self.link(format!("reading interface {index}"), link)?;
        let mut state = InterfaceState::default();
        for attribute in &link.attributes {
            match attribute {
                LinkAttribute::Stats64(stats) => {
                    state.rx_packets = stats.rx_packets;
                    state.tx_packets = stats.tx_packets;
                    state.rx_dropped = stats.rx_dropped;
                    state.tx_dropped = stats.tx_dropped;
                    state.rx_otherhost_dropped = stats.rx_otherhost_dropped;
                }
                LinkAttribute::Xdp(attributes) => {
                    for attribute in attributes {
                        if let LinkXdp::ProgId(program) = attribute {
                            state.xdp_program = *program;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(state)
    }

    /// How an interface is set.
    pub(crate) fn link_settings(&mut self, index: u32) -> Result<LinkSettings, LabError> {
        let what = format!("reading interface {index}");
        let mut link = LinkMessage::default();
        link.header.index = index;
        let link = self.link(what.clone(), link)?;
        let (mut mac, mut mtu) = (None, None);
        for attribute in &link.attributes {
            match attribute {
                LinkAttribute::Address(address) => {
                    mac = <[u8; 6]>::try_from(address.as_slice()).ok().map(MacAddress);
                }
                LinkAttribute::Mtu(bytes) => mtu = Some(*bytes),
                _ => {}
            }
        }
        let (Some(mac), Some(mtu)) = (mac, mtu) else {
            return Err(self.error(what, io::ErrorKind::InvalidData.into()));
        };
        Ok(LinkSettings {
            mac,
            mtu,
            is_promiscuous: link.header.flags.contains(LinkFlags::Promisc),
            takes_all_multicast: link.header.flags.contains(LinkFlags::Allmulti),
        })
    }

    /// Sets an interface so. The kernel then forgets its neighbours.
    pub(crate) fn set_link(&mut self, index: u32, settings: &LinkSettings) -> Result<(), LabError> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.change_mask = LinkFlags::Promisc | LinkFlags::Allmulti;
        let wanted = [
            (settings.is_promiscuous, LinkFlags::Promisc),
            (settings.takes_all_multicast, LinkFlags::Allmulti),
        ];
        for (_, flag) in wanted.into_iter().filter(|(is_wanted, _)| *is_wanted) {
            link.header.flags |= flag;
        }
        link.attributes = vec![
            LinkAttribute::Address(settings.mac.0.to_vec()),
            LinkAttribute::Mtu(settings.mtu),
        ];
        self.change(
            format!("setting MAC address, MTU and flags of interface {index}"),
            RouteNetlinkMessage::SetLink(link),
            0,
        )
    }

    fn link(&mut self, what: String, request: LinkMessage) -> Result<LinkMessage, LabError> {
        match self.request(RouteNetlinkMessage::GetLink(request), 0) {
            Ok(Some(RouteNetlinkMessage::NewLink(link))) => Ok(link),
            Ok(_) => Err(self.error(what, io::ErrorKind::InvalidData.into())),
            Err(source) => Err(self.error(what, source)),
        }
    }

    fn change(
        &mut self,
        what: String,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> Result<(), LabError> {
        match self.request(message, NLM_F_ACK | flags) {
            Ok(_) => Ok(()),
            Err(source) => Err(self.error(what, source)),
        }
    }

    fn error(&self, what: String, source: io::Error) -> LabError {
        failed(&self.namespace, what, source)
    }

    /// Appends one message, with the next sequence number.
    fn write_request(&mut self, message: RouteNetlinkMessage, flags: u16, bytes: &mut Vec<u8>) {
        self.sequence_number = self.sequence_number.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence_number;
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::from(message));
        packet.finalize();
        let start = bytes.len();
        bytes.resize(start + packet.buffer_len(), 0);
        packet.serialize(&mut bytes[start..]);
    }

    /// Sends one message and waits for its answer: an object, an acknowledgement, or an error.
    fn request(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<Option<RouteNetlinkMessage>> {
        let mut bytes = Vec::new();
        self.write_request(message, flags, &mut bytes);
        self.socket.send(&bytes, 0)?;
        loop {
            let length = self.socket.recv(&mut &mut self.answer[..], 0)?;
            let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&self.answer[..length])
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            // An answer to an earlier, interrupted request may still be in the socket.
            if answer.header.sequence_number != self.sequence_number {
                continue;
            }
            return match answer.payload {
                NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
                NetlinkPayload::InnerMessage(message) => Ok(Some(message)),
                _ => Ok(None),
            };
        }
    }
}

/// What the kernel refused.
pub(crate) fn failed(namespace: &str, what: impl Into<String>, source: io::Error) -> LabError {
    LabError::Netlink {
        namespace: namespace.to_owned(),
        what: what.into(),
        source,
    }
}

/// Hears of changes of a namespace's routes.
pub(crate) struct RouteMonitor {
    socket: Socket,
    namespace: String,
    heard: Vec<u8>,
}

impl RouteMonitor {
    /// Listens from now on.
    pub(crate) fn open(
        namespace: &NetworkNamespace,
        family: fwdlab_model::AddressFamily,
    ) -> Result<Self, LabError> {
        let group = match family {
            fwdlab_model::AddressFamily::Inet => RTNLGRP_IPV4_ROUTE,
            fwdlab_model::AddressFamily::Inet6 => RTNLGRP_IPV6_ROUTE,
        };
        let open = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto()?;
            socket.add_membership(group)?;
            socket.set_non_blocking(true)?;
            Ok(socket)
        };
        let name = namespace.name();
        let socket = namespace.run(open)?;
        Ok(Self {
            socket: socket
                .map_err(|source| failed(name, "listening for changes of routes", source))?,
            namespace: name.to_owned(),
            heard: vec![0; ANSWER_SIZE],
        })
    }

    /// Whether a static route of the main table was changed since it was opened or asked last; what
    /// the kernel changes of its own routes does not count.
    pub(crate) fn saw_a_change(&mut self) -> Result<bool, LabError> {
        let mut saw = false;
        loop {
            match self.socket.recv(&mut &mut self.heard[..], 0) {
                Ok(length) => {
                    saw |= messages(&self.heard[..length]).any(|message| message.is_static_route());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(saw),
                // More was changed than there was room to tell.
                Err(error) if error.raw_os_error() == Some(ENOBUFS) => saw = true,
                Err(source) => {
                    return Err(failed(
                        &self.namespace,
                        "hearing of changes of routes",
                        source,
                    ));
                }
            }
        }
    }
}

/// The head of a message of rtnetlink's, as far as many of them are to be read fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    kind: u16,
    sequence_number: u32,
    /// Of an answer that is a refusal; 0 of an acknowledgement.
    error_code: i32,
    /// Table, protocol and type, where it tells of a route.
    route: Option<(u8, u8, u8)>,
}

impl Head {
    fn is_static_route(&self) -> bool {
        self.route
            == Some((
                RouteHeader::RT_TABLE_MAIN,
                RouteProtocol::Static.into(),
                RouteType::Unicast.into(),
            ))
    }
}

/// The messages in what a netlink socket received; what is damaged ends them.
fn messages(bytes: &[u8]) -> impl Iterator<Item = Head> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let message = NetlinkBuffer::new_checked(rest).ok()?;
        let (kind, body) = (message.message_type(), message.payload());
        let length = message.length() as usize;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        let is_route = matches!(kind, RTM_NEWROUTE | RTM_DELROUTE);
        Some(Head {
            kind,
            sequence_number: message.sequence_number(),
            error_code: match kind {
                NLMSG_ERROR => i32::from_ne_bytes(*body.first_chunk()?),
                _ => 0,
            },
            // struct rtmsg: family, two lengths, TOS, table, protocol, scope, type.
            route: (is_route && body.len() >= 8).then(|| (body[4], body[5], body[7])),
        })
    })
}

fn static_route(prefix: Prefix, gateway: IpAddr) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = prefix.0.into();
    message.header.destination_prefix_length = prefix.1;
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.protocol = RouteProtocol::Static;
    message.header.scope = RouteScope::Universe;
    message.header.kind = RouteType::Unicast;
    message.attributes = vec![
        RouteAttribute::Destination(prefix.0.into()),
        RouteAttribute::Gateway(gateway.into()),
    ];
    message
}

/// As the kernel makes it.
///
/// # Source
/// Linux: `fib_add_ifaddr` in `net/ipv4/fib_frontend.c`, `addrconf_prefix_route` in `net/ipv6/addrconf.c`.
fn connected_route(index: u32, prefix: Prefix) -> RouteMessage {
    const IP6_RT_PRIO_ADDRCONF: u32 = 256;
    let (scope, of_family) = match prefix.0 {
        IpAddr::V4(own) => (RouteScope::Link, RouteAttribute::PrefSource(own.into())),
        IpAddr::V6(_) => (
            RouteScope::Universe,
            RouteAttribute::Priority(IP6_RT_PRIO_ADDRCONF),
        ),
    };
    let mut message = RouteMessage::default();
    message.header.address_family = prefix.0.into();
    message.header.destination_prefix_length = prefix.1;
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.protocol = RouteProtocol::Kernel;
    message.header.scope = scope;
    message.header.kind = RouteType::Unicast;
    message.attributes = vec![
        RouteAttribute::Destination(masked(prefix.0, prefix.1).into()),
        RouteAttribute::Oif(index),
        of_family,
    ];
    message
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn many_messages_are_read_one_by_one() {
        let header = |length: u32, kind: u16, sequence_number: u32| {
            let mut bytes = length.to_ne_bytes().to_vec();
            bytes.extend(kind.to_ne_bytes());
            bytes.extend([0, 0]);
            bytes.extend(sequence_number.to_ne_bytes());
            bytes.extend([0; 4]);
            bytes
        };
        let mut bytes = header(28, RTM_NEWROUTE, 5);
        bytes.extend([2, 24, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0]);
        bytes.extend(header(36, NLMSG_ERROR, 6));
        bytes.extend((-17_i32).to_ne_bytes());
        bytes.extend(header(28, RTM_NEWROUTE, 6));
        // One that was cut.
        bytes.extend(header(28, RTM_NEWROUTE, 7));
        let read: Vec<_> = messages(&bytes).collect();
        assert_eq!(read.len(), 2);
        assert!(read[0].is_static_route());
        assert_eq!((read[1].error_code, read[1].sequence_number), (-17, 6));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            prop_assert!(messages(&bytes).count() <= bytes.len() / 16);
        }
    }
}
