//! What the router knows of the network around it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fwdlab_packet::{MacAddress, ethernet};

use crate::RouterError;
use crate::fib::{Inet6Fib, InetFib, Ipv4Prefix, Ipv6Prefix, NextHopId};
use crate::neighbours::{Neighbour, NeighbourState, Neighbours};

/// What every link takes that carries IPv4 (RFC 791, section 3.2).
const INET_MTU_MIN: u16 = 68;
/// What every link takes that carries IPv6 (RFC 8200, section 5).
const INET6_MTU_MIN: u16 = 1280;

/// A port of the router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// Its link address.
    pub mac: MacAddress,
    /// The router's addresses on its link, each with the length of the link's prefix.
    pub addresses: Vec<(IpAddr, u8)>,
    /// The longest IP packet that its link takes, in bytes; at least 68, with IPv6 at least 1280.
    pub mtu: u16,
}

/// Where packets to a prefix go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteConfig {
    /// The prefix's address and length.
    pub prefix: (IpAddr, u8),
    /// The next router, on the link of one of the ports.
    pub gateway: IpAddr,
}

/// A station on the link of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeighbourConfig {
    /// The port's number, from 0.
    pub port: u16,
    /// Its address.
    pub address: IpAddr,
    /// Its link address.
    pub mac: MacAddress,
}

/// Everything a router is told before it forwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkConfig {
    /// The ports, numbered from 0.
    pub ports: Vec<PortConfig>,
    /// Routes beside those to the ports' own links.
    pub routes: Vec<RouteConfig>,
    /// Permanent neighbours.
    pub neighbours: Vec<NeighbourConfig>,
}

/// The tables that all workers read: nothing in them changes while packets pass.
#[derive(Debug)]
pub struct Network {
    pub(crate) ports: Vec<PortConfig>,
    pub(crate) inet: InetFib,
    pub(crate) inet6: Inet6Fib,
    pub(crate) next_hops: Vec<NextHop>,
    pub(crate) neighbours: Neighbours,
}

/// Where packets of a route go.
///
/// All of it in one cache line, the number of which is a shift away.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct NextHop {
    pub(crate) kind: NextHopKind,
    /// The port they leave through.
    pub(crate) egress: u16,
    /// The longest IP packet that fits, in bytes; 0 where none goes on.
    pub(crate) mtu: u16,
    /// The ready Ethernet header, where the next hop is one station and its link address is known.
    pub(crate) prepend: Option<[u8; ethernet::HEADER_LENGTH]>,
}

impl NextHop {
    /// Whether packets go on from here: to a gateway, or to a station on a link.
    pub(crate) fn is_transit(&self) -> bool {
        matches!(self.kind, NextHopKind::Gateway(_) | NextHopKind::Connected)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextHopKind {
    /// To another router.
    Gateway(IpAddr),
    /// To the destination itself, on the port's link.
    Connected,
    /// To this router.
    Local,
    /// To all stations on the port's link at once.
    Broadcast,
    /// Nowhere: what a lookup without a route leads to.
    None,
}

impl Network {
    /// Builds the tables.
    ///
    /// # Errors
    /// `NoSuchPort`, `UnreachableGateway`, `Mtu`, and what the tables refuse: a prefix with host bits, given
    /// twice, or one too many.
    pub fn build(config: &NetworkConfig) -> Result<Self, RouterError> {
        let neighbours = Neighbours::new(config.neighbours.len())?;
        for neighbour in &config.neighbours {
            if usize::from(neighbour.port) >= config.ports.len() {
                return Err(RouterError::NoSuchPort {
                    port: neighbour.port,
                });
            }
            let permanent = Neighbour {
                mac: neighbour.mac,
                state: NeighbourState::Permanent,
            };
            neighbours.insert(neighbour.port.into(), neighbour.address, permanent)?;
        }
        let mut building = Building {
            ports: &config.ports,
            neighbours: &neighbours,
            next_hops: vec![NextHop {
                kind: NextHopKind::None,
                egress: 0,
                mtu: 0,
                prepend: None,
            }],
            inet: Vec::new(),
            inet6: Vec::new(),
        };
        building.connect()?;
        for route in &config.routes {
            building.route(route)?;
        }
        let Building {
            next_hops,
            inet,
            inet6,
            ..
        } = building;
        Ok(Self {
            ports: config.ports.clone(),
            inet: InetFib::build(&inet)?,
            inet6: Inet6Fib::build(&inet6)?,
            next_hops,
            neighbours,
        })
    }

    #[inline]
    pub(crate) fn next_hop(&self, id: NextHopId) -> &NextHop {
        &self.next_hops[id.index()]
    }

    /// Where packets to an address go.
    pub(crate) fn hop_to(&self, destination: IpAddr) -> &NextHop {
        self.next_hop(match destination {
            IpAddr::V4(destination) => self.inet.lookup(destination.to_bits()),
            IpAddr::V6(destination) => self.inet6.lookup(destination.to_bits()),
        })
    }

    /// The link address of a station on a port's link, where it is known.
    #[inline]
    pub(crate) fn link_address(&self, port: u16, address: IpAddr) -> Option<MacAddress> {
        link_address(&self.neighbours, port, address)
    }

    /// The router's own addresses on a port.
    fn addresses(&self, port: u16) -> impl Iterator<Item = IpAddr> {
        let addresses = self.ports[usize::from(port)].addresses.iter();
        addresses.map(|(address, _)| *address)
    }

    /// The router's own address on a port, in a packet's family.
    pub(crate) fn inet_address(&self, port: u16) -> Option<Ipv4Addr> {
        self.addresses(port).find_map(|address| match address {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(_) => None,
        })
    }

    /// The same for IPv6: the link-local address, or one that reaches beyond the link.
    pub(crate) fn inet6_address(&self, port: u16, is_link_local: bool) -> Option<Ipv6Addr> {
        let is_asked = |address: &Ipv6Addr| address.is_unicast_link_local() == is_link_local;
        self.addresses(port).find_map(|address| match address {
            IpAddr::V4(_) => None,
            IpAddr::V6(address) => Some(address).filter(is_asked),
        })
    }
}

struct Building<'a> {
    ports: &'a [PortConfig],
    neighbours: &'a Neighbours,
    next_hops: Vec<NextHop>,
    inet: Vec<(Ipv4Prefix, NextHopId)>,
    inet6: Vec<(Ipv6Prefix, NextHopId)>,
}

impl Building<'_> {
    /// The routes to the ports' links and to the router itself.
    fn connect(&mut self) -> Result<(), RouterError> {
        for (number, port) in (0_u16..).zip(self.ports) {
            let has_inet6 = port.addresses.iter().any(|(address, _)| address.is_ipv6());
            let minimum = if has_inet6 {
                INET6_MTU_MIN
            } else {
                INET_MTU_MIN
            };
            if port.mtu < minimum {
                return Err(RouterError::Mtu {
                    port: number,
                    mtu: port.mtu,
                    minimum,
                });
            }
            for &(address, length) in &port.addresses {
                // Every link has the same link-local prefix, to which nothing is forwarded.
                if matches!(address, IpAddr::V6(address) if address.is_unicast_link_local()) {
                    continue;
                }
                let connected = self.next_hop(number, NextHopKind::Connected);
                self.add((network_of(address, length), length), connected)?;
                let bits = if address.is_ipv4() { 32 } else { 128 };
                if length < bits {
                    let local = self.next_hop(number, NextHopKind::Local);
                    self.add((address, bits), local)?;
                }
                // A link of two stations has neither (RFC 3021; RFC 6164).
                if length >= bits - 1 {
                    continue;
                }
                match address {
                    IpAddr::V4(address) => {
                        let last = Ipv4Addr::from_bits(address.to_bits() | u32::MAX >> length);
                        let broadcast = self.next_hop(number, NextHopKind::Broadcast);
                        self.add((last.into(), bits), broadcast)?;
                    }
                    // The anycast address of the link's routers (RFC 4291, 2.6.1).
                    IpAddr::V6(_) if network_of(address, length) != address => {
                        let local = self.next_hop(number, NextHopKind::Local);
                        self.add((network_of(address, length), bits), local)?;
                    }
                    IpAddr::V6(_) => {}
                }
            }
        }
        Ok(())
    }

    fn route(&mut self, route: &RouteConfig) -> Result<(), RouterError> {
        let is_on_link = |port: &PortConfig| {
            port.addresses.iter().any(|&(address, length)| {
                network_of(address, length) == network_of(route.gateway, length)
                    && address.is_ipv4() == route.gateway.is_ipv4()
            })
        };
        let egress = (0_u16..)
            .zip(self.ports)
            .find_map(|(number, port)| is_on_link(port).then_some(number))
            .ok_or(RouterError::UnreachableGateway {
                gateway: route.gateway,
            })?;
        let hop = self.next_hop(egress, NextHopKind::Gateway(route.gateway));
        self.add(route.prefix, hop)
    }

    /// The number of a next hop, which routes share.
    fn next_hop(&mut self, egress: u16, kind: NextHopKind) -> usize {
        let same = |hop: &NextHop| hop.egress == egress && hop.kind == kind;
        // A table has many routes over few next hops, and the last ones are asked for most.
        if let Some(index) = self.next_hops.iter().rposition(same) {
            return index;
        }
        let port = &self.ports[usize::from(egress)];
        let prepend = match kind {
            NextHopKind::Gateway(gateway) => link_address(self.neighbours, egress, gateway)
                .map(|neighbour| ethernet_header(neighbour, port.mac, gateway.is_ipv4())),
            _ => None,
        };
        let mtu = match kind {
            NextHopKind::Gateway(_) | NextHopKind::Connected => port.mtu,
            NextHopKind::Local | NextHopKind::Broadcast | NextHopKind::None => 0,
        };
        self.next_hops.push(NextHop {
            kind,
            egress,
            mtu,
            prepend,
        });
        self.next_hops.len() - 1
    }

    fn add(&mut self, (address, length): (IpAddr, u8), hop: usize) -> Result<(), RouterError> {
        let id = u16::try_from(hop)
            .ok()
            .and_then(NextHopId::new)
            .ok_or(RouterError::TooManyNextHops)?;
        match address {
            IpAddr::V4(address) => self.inet.push((Ipv4Prefix::new(address, length)?, id)),
            IpAddr::V6(address) => self.inet6.push((Ipv6Prefix::new(address, length)?, id)),
        }
        Ok(())
    }
}

#[inline]
fn link_address(neighbours: &Neighbours, port: u16, address: IpAddr) -> Option<MacAddress> {
    let neighbour = match address {
        IpAddr::V4(address) => neighbours.lookup_inet(port.into(), address),
        IpAddr::V6(address) => neighbours.lookup_inet6(port.into(), address),
    }?;
    (neighbour.state != NeighbourState::Incomplete).then_some(neighbour.mac)
}

/// The first bits of an address, the rest zero.
fn network_of(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX
                .checked_shl(32 - u32::from(length.min(32)))
                .unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX
                .checked_shl(128 - u32::from(length.min(128)))
                .unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

/// The header of a frame from this router to a neighbour.
#[inline]
pub(crate) fn ethernet_header(
    neighbour: MacAddress,
    own: MacAddress,
    is_inet: bool,
) -> [u8; ethernet::HEADER_LENGTH] {
    let mut header = [0; ethernet::HEADER_LENGTH];
    header[..6].copy_from_slice(&neighbour.0);
    header[6..12].copy_from_slice(&own.0);
    let ether_type = if is_inet {
        ethernet::IPV4
    } else {
        ethernet::IPV6
    };
    header[12..].copy_from_slice(&ether_type.to_be_bytes());
    header
}
