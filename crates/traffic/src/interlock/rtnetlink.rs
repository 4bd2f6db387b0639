//! Links, routes and next hops as Linux's rtnetlink tells them.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

use fwdlab_sys::{Netlink, netlink_attribute, netlink_attributes};

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RTM_NEWNEXTHOP: u16 = 104;
const RTM_GETNEXTHOP: u16 = 106;

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// `struct ifinfomsg`, `struct rtmsg` and `struct nhmsg`, which attributes follow.
const LINK_HEADER: usize = 16;
const ROUTE_HEADER: usize = 12;
const NEXT_HOP_HEADER: usize = 8;

const IFLA_IFNAME: u16 = 3;
const IFLA_LINK: u16 = 5;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_INFO_KIND: u16 = 1;

const RTA_DST: u16 = 1;
const RTA_SRC: u16 = 2;
const RTA_OIF: u16 = 4;
const RTA_MULTIPATH: u16 = 9;
const RTA_TABLE: u16 = 15;
const RTA_NH_ID: u16 = 30;

const NHA_ID: u16 = 1;
const NHA_GROUP: u16 = 2;
const NHA_OIF: u16 = 5;

const RTN_UNICAST: u8 = 1;
const RTPROT_KERNEL: u8 = 2;
const RTM_F_CLONED: u32 = 0x200;
const RTM_F_FIB_MATCH: u32 = 0x2000;

/// Kinds of link that name the other end of a cable where others name the device below.
const CABLES: [&[u8]; 3] = [b"veth", b"vxcan", b"netkit"];
/// A kind whose members share routes with it, but no frames.
const VRF: &[u8] = b"vrf";

/// Errors of a lookup where there is no route, also because one forbids it or the kernel lacks the family: `ESRCH`,
/// `EACCES`, `EINVAL`, `EOPNOTSUPP`, `EAFNOSUPPORT`, `ENETUNREACH` and `EHOSTUNREACH` of `errno.h`.
const NO_ROUTE: [i32; 7] = [3, 13, 22, 95, 97, 101, 113];

/// The main routing table.
const TABLE_MAIN: u32 = 254;

/// A network device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) index: u32,
    pub(super) name: String,
    /// Of the device that it is made of, in this namespace.
    lower: Option<u32>,
    /// The other end of a cable, in this namespace.
    peer: Option<u32>,
    /// Of the device that it is a part of.
    master: Option<u32>,
    is_vrf: bool,
}

/// One way of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hop {
    /// The first address of the network, and its prefix's length.
    pub(super) destination: (IpAddr, u8),
    /// None of the main table.
    pub(super) table: Option<u32>,
    /// Whether the kernel made it for an address of the device's own.
    pub(super) is_connected: bool,
    through: Through,
}

/// Through what a route leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Through {
    Device(u32),
    /// A next hop that has its own number and may be a group.
    NextHop(u32),
}

/// What a next hop is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NextHop {
    Device(u32),
    Group(Vec<u32>),
}

/// The next hops that routes name by number.
#[derive(Debug, Default)]
pub(super) struct NextHops(BTreeMap<u32, NextHop>);

/// Lists all links.
pub(super) fn links(netlink: &mut Netlink) -> io::Result<Vec<Link>> {
    netlink.list(RTM_GETLINK, &[0; LINK_HEADER], RTM_NEWLINK, link)
}

/// Lists the ways of all routes, of all tables, that hand frames to a device.
pub(super) fn hops(netlink: &mut Netlink) -> io::Result<Vec<Hop>> {
    let mut hops = Vec::new();
    for family in [AF_INET, AF_INET6] {
        let mut request = [0; ROUTE_HEADER];
        request[0] = family;
        let lists = netlink.list(RTM_GETROUTE, &request, RTM_NEWROUTE, route)?;
        hops.extend(lists.into_iter().flatten());
    }
    Ok(hops)
}

/// The ways of the route by which the kernel sends from an address to another one; none where there is no route, and
/// where the address is one of its own.
pub(super) fn hops_to(
    netlink: &mut Netlink,
    to: IpAddr,
    from: Option<IpAddr>,
) -> io::Result<Vec<Hop>> {
    match netlink.ask(RTM_GETROUTE, &lookup(to, from), RTM_NEWROUTE) {
        Ok(answer) => route(&answer),
        Err(error)
            if error
                .raw_os_error()
                .is_some_and(|code| NO_ROUTE.contains(&code)) =>
        {
            // The address may have gone since.
            match from {
                Some(_) => hops_to(netlink, to, None),
                None => Ok(Vec::new()),
            }
        }
        Err(error) => Err(error),
    }
}

/// Lists the next hops, if a route names one.
pub(super) fn next_hops(netlink: &mut Netlink, hops: &[Hop]) -> io::Result<NextHops> {
    let named = |hop: &Hop| matches!(hop.through, Through::NextHop(_));
    if !hops.iter().any(named) {
        return Ok(NextHops::default());
    }
    let list = netlink.list(
        RTM_GETNEXTHOP,
        &[0; NEXT_HOP_HEADER],
        RTM_NEWNEXTHOP,
        next_hop,
    )?;
    Ok(NextHops(list.into_iter().flatten().collect()))
}

impl Link {
    /// The devices that are stacked on each other here, by their numbers: the upper one first.
    pub(super) fn stacked<'a>(
        &'a self,
        links: &'a BTreeMap<u32, Self>,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let lower = self.lower.and_then(|lower| links.get(&lower));
        let below = lower.map(|lower| (&*self.name, &*lower.name));
        let above = self.master(links).map(|master| (master, &*self.name));
        below.into_iter().chain(above)
    }

    /// The device that takes its frames.
    pub(super) fn master<'a>(&self, links: &'a BTreeMap<u32, Self>) -> Option<&'a str> {
        let master = links.get(&self.master?)?;
        (!master.is_vrf).then_some(&*master.name)
    }

    /// The other end of the cable that it is an end of, where that is here.
    pub(super) fn other_end<'a>(&self, links: &'a BTreeMap<u32, Self>) -> Option<&'a str> {
        Some(&links.get(&self.peer?)?.name)
    }
}

impl NextHops {
    /// The devices that a way leads through.
    pub(super) fn devices(&self, hop: &Hop) -> Vec<u32> {
        match hop.through {
            Through::Device(device) => vec![device],
            Through::NextHop(id) => match self.0.get(&id) {
                Some(NextHop::Device(device)) => vec![*device],
                Some(NextHop::Group(ids)) => {
                    let single = |id| match self.0.get(id)? {
                        NextHop::Device(device) => Some(*device),
                        // Groups of groups are none of the kernel's.
                        NextHop::Group(_) => None,
                    };
                    ids.iter().filter_map(single).collect()
                }
                None => Vec::new(),
            },
        }
    }
}

fn lookup(to: IpAddr, from: Option<IpAddr>) -> Vec<u8> {
    let bytes = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let from = from.filter(|from| from.is_ipv6() == to.is_ipv6());
    let (family, length) = if to.is_ipv6() {
        (AF_INET6, 128)
    } else {
        (AF_INET, 32)
    };
    let mut request = vec![family, length, from.map_or(0, |_| length), 0, 0, 0, 0, 0];
    request.extend(RTM_F_FIB_MATCH.to_ne_bytes());
    request.extend(attribute(RTA_DST, &bytes(to)));
    if let Some(from) = from {
        request.extend(attribute(RTA_SRC, &bytes(from)));
    }
    request
}

/// An attribute whose value has a multiple of four bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len() + 4).expect("attributes are short");
    let mut attribute = length.to_ne_bytes().to_vec();
    attribute.extend(kind.to_ne_bytes());
    attribute.extend(value);
    attribute
}

fn link(body: &[u8]) -> io::Result<Link> {
    let index = word(body.get(4..).unwrap_or_default())?;
    let mut link = Link {
        index,
        name: String::new(),
        lower: None,
        peer: None,
        master: None,
        is_vrf: false,
    };
    let mut is_elsewhere = false;
    let mut is_cable = false;
    for attribute in netlink_attributes(behind(body, LINK_HEADER)?) {
        let (kind, value) = attribute?;
        match kind {
            IFLA_IFNAME => link.name = String::from_utf8_lossy(text(value)).into_owned(),
            IFLA_LINK => link.lower = Some(word(value)?),
            IFLA_MASTER => link.master = Some(word(value)?),
            IFLA_LINK_NETNSID => is_elsewhere = true,
            IFLA_LINKINFO => {
                // Not every driver says what it is.
                let kind = netlink_attribute(value, 0, IFLA_INFO_KIND).unwrap_or_default();
                link.is_vrf = text(kind) == VRF;
                is_cable = CABLES.contains(&text(kind));
            }
            _ => {}
        }
    }
    let other = link.lower.filter(|other| !is_elsewhere && *other != index);
    (link.lower, link.peer) = if is_cable {
        (None, other)
    } else {
        (other, None)
    };
    Ok(link)
}

/// The ways of a route; none of one that hands no frames to a device.
fn route(body: &[u8]) -> io::Result<Vec<Hop>> {
    let &[
        family,
        length,
        _,
        _,
        table,
        protocol,
        _,
        kind,
        ref flags @ ..,
    ] = body.get(..ROUTE_HEADER).ok_or_else(damaged)?
    else {
        return Err(damaged());
    };
    let mut destination: IpAddr = match family {
        AF_INET => [0; 4].into(),
        AF_INET6 => [0; 16].into(),
        _ => return Ok(Vec::new()),
    };
    if kind != RTN_UNICAST || word(flags)? & RTM_F_CLONED != 0 {
        return Ok(Vec::new());
    }
    let mut table = u32::from(table);
    let mut devices = Vec::new();
    let mut next_hop = None;
    for attribute in netlink_attributes(behind(body, ROUTE_HEADER)?) {
        let (kind, value) = attribute?;
        match kind {
            RTA_DST => destination = address(value)?,
            RTA_OIF => devices.push(word(value)?),
            RTA_MULTIPATH => devices.extend(multipath(value)?),
            RTA_TABLE => table = word(value)?,
            RTA_NH_ID => next_hop = Some(word(value)?),
            _ => {}
        }
    }
    let mut ways: Vec<Through> = devices.into_iter().map(Through::Device).collect();
    if ways.is_empty() {
        // Where `nexthop_compat_mode` is off, routes do not repeat what their next hop says.
        ways.extend(next_hop.map(Through::NextHop));
    }
    let hop = |through| Hop {
        destination: (destination, length),
        table: (table != TABLE_MAIN).then_some(table),
        // Router advertisements make default routes that older kernels call their own.
        is_connected: protocol == RTPROT_KERNEL && length > 0,
        through,
    };
    Ok(ways.into_iter().map(hop).collect())
}

/// The devices of several next hops, each a `struct rtnexthop` with attributes behind it.
fn multipath(mut hops: &[u8]) -> io::Result<Vec<u32>> {
    let mut devices = Vec::new();
    while !hops.is_empty() {
        let length = usize::from(half(hops)?);
        devices.push(word(hops.get(4..).unwrap_or_default())?);
        if length < 8 || length > hops.len() {
            return Err(damaged());
        }
        hops = hops.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(devices)
}

/// A next hop and its number; none of a blackhole.
fn next_hop(body: &[u8]) -> io::Result<Option<(u32, NextHop)>> {
    let (mut id, mut found) = (None, None);
    for attribute in netlink_attributes(behind(body, NEXT_HOP_HEADER)?) {
        let (kind, value) = attribute?;
        match kind {
            NHA_ID => id = Some(word(value)?),
            NHA_OIF => found = Some(NextHop::Device(word(value)?)),
            NHA_GROUP => {
                // struct nexthop_grp: a number, and a weight.
                let members = value.chunks(8).map(word).collect::<io::Result<_>>()?;
                found = Some(NextHop::Group(members));
            }
            _ => {}
        }
    }
    Ok(id.zip(found))
}

fn address(value: &[u8]) -> io::Result<IpAddr> {
    let inet = || Some(IpAddr::from(<[u8; 4]>::try_from(value).ok()?));
    let inet6 = || Some(IpAddr::from(<[u8; 16]>::try_from(value).ok()?));
    inet().or_else(inet6).ok_or_else(damaged)
}

/// A text up to the zero that ends it.
fn text(value: &[u8]) -> &[u8] {
    value.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn behind(body: &[u8], header: usize) -> io::Result<&[u8]> {
    body.get(header..).ok_or_else(damaged)
}

fn word(bytes: &[u8]) -> io::Result<u32> {
    let word = bytes.first_chunk().copied().map(u32::from_ne_bytes);
    word.ok_or_else(damaged)
}

fn half(bytes: &[u8]) -> io::Result<u16> {
    let half = bytes.first_chunk().copied().map(u16::from_ne_bytes);
    half.ok_or_else(damaged)
}

fn damaged() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ETH0: u32 = 2;
    const ETH1: u32 = 3;

    fn padded(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut attribute = attribute(kind, value);
        attribute.resize(attribute.len().next_multiple_of(4), 0);
        attribute
    }

    /// A link as the kernel lists it.
    fn link_message(index: u32, name: &str, kind: &str, attributes: &[(u16, u32)]) -> Vec<u8> {
        let mut body = vec![0; 4];
        body.extend(index.to_ne_bytes());
        body.resize(LINK_HEADER, 0);
        body.extend(padded(IFLA_IFNAME, format!("{name}\0").as_bytes()));
        for (kind, value) in attributes {
            body.extend(padded(*kind, &value.to_ne_bytes()));
        }
        let kind = padded(IFLA_INFO_KIND, format!("{kind}\0").as_bytes());
        // Its flag says that attributes are inside.
        body.extend(padded(IFLA_LINKINFO | 0x8000, &kind));
        body
    }

    fn route_message(header: [u8; 8], attributes: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let mut body = header.to_vec();
        body.extend([0; 4]);
        for (kind, value) in attributes {
            body.extend(padded(*kind, value));
        }
        body
    }

    /// A default route of IPv4.
    const DEFAULT: [u8; 8] = [AF_INET, 0, 0, 0, 254, 3, 0, RTN_UNICAST];

    fn number(value: u32) -> Vec<u8> {
        value.to_ne_bytes().to_vec()
    }

    fn devices(body: &[u8]) -> Vec<u32> {
        let hops = route(body).unwrap();
        let devices = hops.iter().map(|hop| NextHops::default().devices(hop));
        devices.flatten().collect()
    }

    #[test]
    fn what_a_link_is_made_of_and_part_of_is_read() {
        let bodies = [
            link_message(2, "eth0", "", &[(IFLA_MASTER, 9)]),
            link_message(3, "eth0.10", "vlan", &[(IFLA_LINK, 2)]),
            link_message(4, "macvlan0", "macvlan", &[(IFLA_LINK, 2)]),
            // Its parent has the number of one of ours, in another namespace.
            link_message(
                5,
                "macvlan1",
                "macvlan",
                &[(IFLA_LINK, 2), (IFLA_LINK_NETNSID, 0)],
            ),
            link_message(6, "veth0", "veth", &[(IFLA_LINK, 7)]),
            link_message(7, "veth1", "veth", &[(IFLA_LINK, 6), (IFLA_MASTER, 10)]),
            link_message(9, "bond0", "bond", &[]),
            link_message(10, "vrf0", "vrf", &[]),
            link_message(11, "lan0", "dsa", &[(IFLA_LINK, 2)]),
        ];
        let links = bodies.iter().map(|body| link(body).unwrap());
        let links: BTreeMap<u32, Link> = links.map(|link| (link.index, link)).collect();
        let stacked: Vec<_> = links
            .values()
            .flat_map(|link| link.stacked(&links))
            .collect();
        assert_eq!(
            stacked,
            [
                ("bond0", "eth0"),
                ("eth0.10", "eth0"),
                ("macvlan0", "eth0"),
                ("lan0", "eth0")
            ]
        );
        let masters = links.values().filter_map(|link| link.master(&links));
        assert_eq!(masters.collect::<Vec<_>>(), ["bond0"]);
    }

    #[test]
    fn a_route_leads_through_all_its_next_hops() {
        let single = route_message(DEFAULT, &[(RTA_OIF, number(ETH0))]);
        assert_eq!(devices(&single), [ETH0]);
        let hop = |device: u32| {
            let mut hop = 16_u16.to_ne_bytes().to_vec();
            hop.extend([0, 0]);
            hop.extend(number(device));
            hop.extend(attribute(5, &[192, 0, 2, 1]));
            hop
        };
        let several = (RTA_MULTIPATH, [hop(ETH0), hop(ETH1)].concat());
        assert_eq!(devices(&route_message(DEFAULT, &[several])), [ETH0, ETH1]);
        let cut = (RTA_MULTIPATH, hop(ETH0)[..15].to_vec());
        assert!(route(&route_message(DEFAULT, &[cut])).is_err());
    }

    #[test]
    fn a_route_tells_its_network_and_its_table() {
        let halves = [AF_INET6, 1, 0, 0, 0, 3, 0, RTN_UNICAST];
        let upper = [&[0x80][..], &[0; 15]].concat();
        let through = [(RTA_OIF, number(ETH1))];
        let body = route_message(
            halves,
            &[
                (RTA_TABLE, number(51820)),
                (RTA_DST, upper),
                through[0].clone(),
            ],
        );
        let hop = Hop {
            destination: ("8000::".parse().unwrap(), 1),
            table: Some(51820),
            is_connected: false,
            through: Through::Device(ETH1),
        };
        assert_eq!(route(&body).unwrap(), [hop]);
        let connected = [AF_INET, 24, 0, 0, 254, RTPROT_KERNEL, 253, RTN_UNICAST];
        let body = route_message(connected, &through);
        let [hop] = route(&body).unwrap()[..] else {
            panic!("one way");
        };
        assert!(hop.is_connected && hop.table.is_none());
        // "unreachable", a multicast route of another family, and what was learned for one destination.
        let unreachable = [AF_INET, 0, 0, 0, 254, 3, 0, 7];
        let multicast = [129, 0, 0, 0, 254, 3, 0, RTN_UNICAST];
        for header in [unreachable, multicast] {
            assert_eq!(route(&route_message(header, &through)).unwrap(), []);
        }
        let mut cloned = route_message(DEFAULT, &through);
        cloned[8..12].copy_from_slice(&RTM_F_CLONED.to_ne_bytes());
        assert_eq!(route(&cloned).unwrap(), []);
    }

    #[test]
    fn next_hops_are_found_by_their_numbers() {
        let message = |attributes: &[(u16, Vec<u8>)]| {
            let mut body = vec![0; NEXT_HOP_HEADER];
            for (kind, value) in attributes {
                body.extend(padded(*kind, value));
            }
            next_hop(&body).unwrap()
        };
        let group = [number(10), number(0), number(11), number(0)].concat();
        let all = [
            message(&[(NHA_ID, number(10)), (NHA_OIF, number(ETH0))]),
            message(&[(NHA_ID, number(11)), (NHA_OIF, number(ETH1))]),
            message(&[(NHA_ID, number(12)), (NHA_GROUP, group)]),
            // A blackhole.
            message(&[(NHA_ID, number(13)), (4, Vec::new())]),
        ];
        let all = NextHops(all.into_iter().flatten().collect());
        let through = |id: u32| {
            let hops = route(&route_message(DEFAULT, &[(RTA_NH_ID, number(id))])).unwrap();
            all.devices(&hops[0])
        };
        assert_eq!(through(10), [ETH0]);
        assert_eq!(through(12), [ETH0, ETH1]);
        assert_eq!((through(13), through(14)), (vec![], vec![]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, attributes: Vec<u8>) {
            let _ = (link(&bytes), route(&bytes), next_hop(&bytes), multipath(&bytes));
            let body = [&DEFAULT[..], &[0; 4], &attributes].concat();
            let _ = route(&body);
        }

        #[test]
        fn routes_of_any_network_are_read_back(
            inet6: [u8; 16],
            is_inet6: bool,
            length in 0_u8..=32,
            table: u32,
            device: u32,
            protocol: u8,
        ) {
            let (family, bytes) = if is_inet6 { (AF_INET6, &inet6[..]) } else { (AF_INET, &inet6[..4]) };
            let header = [family, length, 0, 0, 0, protocol, 0, RTN_UNICAST];
            let body = route_message(header, &[
                (RTA_TABLE, number(table)),
                (RTA_DST, bytes.to_vec()),
                (RTA_OIF, number(device)),
            ]);
            let hops = route(&body).unwrap();
            prop_assert_eq!(hops.len(), 1);
            prop_assert_eq!(hops[0].destination, (address(bytes).unwrap(), length));
            prop_assert_eq!(hops[0].table, (table != TABLE_MAIN).then_some(table));
            prop_assert_eq!(hops[0].is_connected, protocol == RTPROT_KERNEL && length > 0);
            prop_assert_eq!(devices(&body), [device]);
        }
    }
}
