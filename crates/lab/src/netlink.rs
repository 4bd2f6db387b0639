//! Interfaces, addresses, neighbours and routes over rtnetlink, one request at a time.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};

use fwdlab_packet::MacAddress;
use fwdlab_sys::NetworkNamespace;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader,
    NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, LinkXdp,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use crate::LabError;

/// Room for the longest answer: one link with all its attributes.
const ANSWER_SIZE: usize = 32 * 1024;

/// rtnetlink of one namespace.
pub(crate) struct Netlink {
    socket: Socket,
    namespace: String,
    sequence_number: u32,
    answer: Vec<u8>,
}

/// One end of a veth pair.
pub(crate) struct End<'a> {
    pub(crate) name: &'a str,
    pub(crate) mac: MacAddress,
}

/// What an interface has counted and carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InterfaceState {
    pub(crate) rx_dropped: u64,
    pub(crate) tx_dropped: u64,
    /// Frames dropped because they came in for another station.
    pub(crate) rx_otherhost_dropped: u64,
    /// The kernel's number of the XDP program on it; 0 where there is none.
    pub(crate) xdp_program: u32,
}

/// A prefix: address and length.
pub(crate) type Prefix = (IpAddr, u8);

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
            .map_err(|source: io::Error| LabError::Netlink {
                namespace: namespace.name().to_owned(),
                what: "opening rtnetlink".into(),
                source,
            })?;
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
        here: &End<'_>,
        there: &End<'_>,
        namespace: &NetworkNamespace,
    ) -> Result<(), LabError> {
        let named = |end: &End<'_>| {
            let mut link = LinkMessage::default();
            link.attributes
                .push(LinkAttribute::IfName(end.name.to_owned()));
            link.attributes
                .push(LinkAttribute::Address(end.mac.0.to_vec()));
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
            format!("making veth pair {} - {}", here.name, there.name),
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

    /// Gives an interface an address, at once usable (no duplicate address detection).
    pub(crate) fn add_address(&mut self, index: u32, prefix: Prefix) -> Result<(), LabError> {
        let mut message = AddressMessage::default();
        message.header.family = family(prefix.0);
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
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }

    /// Sets a permanent neighbour, replacing what was known of it.
    pub(crate) fn set_neighbour(
        &mut self,
        index: u32,
        address: IpAddr,
        mac: MacAddress,
    ) -> Result<(), LabError> {
        let mut message = NeighbourMessage::default();
        message.header.family = family(address);
        message.header.ifindex = index;
        message.header.state = NeighbourState::Permanent;
        message.header.kind = RouteType::Unicast;
        let destination = match address {
            IpAddr::V4(address) => NeighbourAddress::Inet(address),
            IpAddr::V6(address) => NeighbourAddress::Inet6(address),
        };
        message.attributes = vec![
            NeighbourAttribute::Destination(destination),
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
        let mut message = route(prefix);
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Universe;
        message.header.kind = RouteType::Unicast;
        message
            .attributes
            .push(RouteAttribute::Gateway(route_address(gateway)));
        self.change(
            format!(
                "setting the route to {}/{} through {gateway}",
                prefix.0, prefix.1
            ),
            RouteNetlinkMessage::NewRoute(message),
            NLM_F_CREATE | NLM_F_REPLACE,
        )
    }

    /// Deletes the route to a prefix.
    pub(crate) fn delete_route(&mut self, prefix: Prefix) -> Result<(), LabError> {
        let mut message = route(prefix);
        message.header.scope = RouteScope::NoWhere;
        self.change(
            format!("deleting the route to {}/{}", prefix.0, prefix.1),
            RouteNetlinkMessage::DelRoute(message),
            0,
        )
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
        LabError::Netlink {
            namespace: self.namespace.clone(),
            what,
            source,
        }
    }

    /// Sends one message and waits for its answer: an object, an acknowledgement, or an error.
    fn request(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<Option<RouteNetlinkMessage>> {
        self.sequence_number = self.sequence_number.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence_number;
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::from(message));
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
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

fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

fn route_address(address: IpAddr) -> RouteAddress {
    match address {
        IpAddr::V4(address) => RouteAddress::Inet(address),
        IpAddr::V6(address) => RouteAddress::Inet6(address),
    }
}

fn route(prefix: Prefix) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family(prefix.0);
    message.header.destination_prefix_length = prefix.1;
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message
        .attributes
        .push(RouteAttribute::Destination(route_address(prefix.0)));
    message
}
