//! The decision: which interfaces a machine is reached by, from what its system lists.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::sessions::TcpConnection;

/// Routes that reach this part of the public addresses, the reciprocal of it, do what a default route does.
///
/// Half is what a VPN's `0.0.0.0/1` reaches, and several devices may share the work. The largest tables that
/// experiments make, a million routes to /24 networks, reach a fourteenth.
const WIDE_PART: u128 = 8;

/// How many routes a message names.
const NAMED_MAX: usize = 3;

/// Addresses of the public Internet that a machine reaches by its way to the world: name servers that everybody knows.
/// No table of an experiment has routes to them.
pub const PUBLIC_ADDRESSES: [IpAddr; 6] = [
    IpAddr::V4(Ipv4Addr::new(1, 1, 1, 1)),
    IpAddr::V4(Ipv4Addr::new(9, 9, 9, 9)),
    IpAddr::V4(Ipv4Addr::new(208, 67, 222, 222)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0x4860, 0x4860, 0, 0, 0, 0, 0x8888)),
    IpAddr::V6(Ipv6Addr::new(0x2606, 0x4700, 0x4700, 0, 0, 0, 0, 0x1111)),
    IpAddr::V6(Ipv6Addr::new(0x2620, 0xfe, 0, 0, 0, 0, 0, 0xfe)),
];

/// A route that hands frames to a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// The first address of the network that it leads to, and the length of the network's prefix.
    pub destination: (IpAddr, u8),
    /// Its routing table, unless that is the main one.
    pub table: Option<Box<str>>,
}

/// Devices and routes of a machine, and where its ssh clients are.
///
/// Networks that are directly connected to a device are no routes of it.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// Pairs of devices of which the first is on top of the second.
    stacked: Vec<(String, String)>,
    /// Each port with the device that takes its frames.
    masters: BTreeMap<String, String>,
    /// Each end of a cable with the other.
    cables: BTreeSet<(String, String)>,
    routes: BTreeMap<String, Vec<Route>>,
    clients: BTreeMap<String, BTreeSet<IpAddr>>,
    public: BTreeMap<String, BTreeSet<IpAddr>>,
}

/// Why an interface must not take a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needed {
    device: String,
    place: Place,
    reason: Reason,
}

/// A device's place, seen from the interface that is to be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Itself,
    Above,
    Below,
    /// Neither, but both are on top of a third device, or below one.
    Beside,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Reason {
    Default { table: Option<Box<str>> },
    Wide { destinations: Vec<(IpAddr, u8)> },
    Public { address: IpAddr },
    Ssh { client: IpAddr },
}

impl Network {
    /// A device is on top of another: a VLAN on its parent, a bridge on its ports, a bond on its members.
    pub fn add_stacked(&mut self, upper: &str, lower: &str) {
        self.stacked.push((upper.to_owned(), lower.to_owned()));
    }

    /// A device takes the frames of a port: a bridge, a bond, a team.
    pub fn add_master(&mut self, master: &str, port: &str) {
        self.masters.insert(port.to_owned(), master.to_owned());
    }

    /// The device that takes the frames of a port.
    #[must_use]
    pub fn master(&self, port: &str) -> Option<&str> {
        self.masters.get(port).map(String::as_str)
    }

    /// A route leads through a device.
    pub fn add_route(&mut self, device: &str, route: Route) {
        match self.routes.get_mut(device) {
            Some(routes) => routes.push(route),
            None => {
                self.routes.insert(device.to_owned(), vec![route]);
            }
        }
    }

    /// Whether a route other than to its own networks leads through a device.
    #[must_use]
    pub fn has_route(&self, device: &str) -> bool {
        self.routes.contains_key(device)
    }

    /// Two devices are the ends of a cable: what one sends the other receives.
    pub fn add_cable(&mut self, one: &str, other: &str) {
        self.cables.insert((one.to_owned(), other.to_owned()));
        self.cables.insert((other.to_owned(), one.to_owned()));
    }

    /// An ssh client is reached through a device, or reaches the machine there.
    pub fn add_client(&mut self, device: &str, client: IpAddr) {
        let clients = self.clients.entry(device.to_owned()).or_default();
        clients.insert(client);
    }

    /// These ssh clients are met on the machine's addresses, each of a device. Those that are left are to be looked up
    /// in its routes.
    ///
    /// Frames of a client come in where the address is that it talks to, and leave where its own is routed to.
    #[must_use]
    pub fn add_clients(
        &mut self,
        mut clients: Vec<TcpConnection>,
        addresses: &[(String, IpAddr)],
    ) -> Vec<TcpConnection> {
        // Of several connections of a client to one address, one is enough.
        clients.sort_unstable_by_key(|client| (client.local, client.peer));
        clients.dedup_by_key(|client| (client.local, client.peer));
        // A machine reaches itself through no interface.
        clients.retain(|client| !addresses.iter().any(|(_, own)| *own == client.peer));
        for client in &clients {
            for (device, _) in addresses.iter().filter(|(_, own)| *own == client.local) {
                self.add_client(device, client.peer);
            }
        }
        clients.retain(TcpConnection::is_routed);
        clients
    }

    /// The system sends what is for a public address through a device.
    pub fn add_public(&mut self, device: &str, address: IpAddr) {
        let addresses = self.public.entry(device.to_owned()).or_default();
        addresses.insert(address);
    }

    /// Why an interface must not take a load; none where it may.
    ///
    /// What shares the interface counts as the interface: devices on top of it and below it, and what is on top of and
    /// below those.
    #[must_use]
    pub fn needed(&self, interface: &str) -> Option<Needed> {
        let mut places = BTreeMap::new();
        self.spread(interface, Place::Above, up, &mut places);
        self.spread(interface, Place::Below, down, &mut places);
        let found: Vec<String> = places.keys().cloned().collect();
        for name in &found {
            self.spread(
                name,
                Place::Beside,
                |pair, of| up(pair, of).or(down(pair, of)),
                &mut places,
            );
        }
        // The other ends count by themselves, not with what they are stacked with: that is on the other side.
        let has_place = |name: &str| name == interface || places.contains_key(name);
        let ends = self
            .cables
            .iter()
            .filter(|(one, other)| has_place(one) && !has_place(other));
        let ends: Vec<String> = ends.map(|(_, other)| other.clone()).collect();
        places.extend(ends.into_iter().map(|end| (end, Place::Beside)));
        places.remove(interface);
        let itself = [(interface, Place::Itself)].into_iter();
        let mut devices = itself.chain(places.iter().map(|(name, place)| (name.as_str(), *place)));
        devices.find_map(|(device, place)| {
            Some(Needed {
                reason: self.reason(device)?,
                device: device.to_owned(),
                place,
            })
        })
    }

    /// Gives a place to all devices that have none yet, step by step from one of them.
    fn spread(
        &self,
        from: &str,
        place: Place,
        next: impl for<'a> Fn(&'a (String, String), &str) -> Option<&'a str>,
        places: &mut BTreeMap<String, Place>,
    ) {
        let mut left = vec![from];
        while let Some(name) = left.pop() {
            for found in self.stacked.iter().filter_map(|pair| next(pair, name)) {
                if found != from && !places.contains_key(found) {
                    places.insert(found.to_owned(), place);
                    left.push(found);
                }
            }
        }
    }

    /// What a device is needed for by itself.
    fn reason(&self, device: &str) -> Option<Reason> {
        let routes = self.routes.get(device).map_or(&[][..], Vec::as_slice);
        let defaults = routes.iter().filter(|route| route.destination.1 == 0);
        // The main table's comes first.
        if let Some(route) = defaults.min_by(|a, b| a.table.cmp(&b.table)) {
            let table = route.table.clone();
            return Some(Reason::Default { table });
        }
        let clients = self.clients.get(device);
        let wide = || {
            let mut families = [false, true].into_iter();
            let is_inet6 = families.find(|&is_inet6| are_wide(routes, is_inet6))?;
            let of_family = routes.iter().map(|route| route.destination);
            let mut destinations: Vec<_> = of_family
                .filter(|(network, _)| network.is_ipv6() == is_inet6)
                .collect();
            destinations.sort_unstable_by_key(|&(network, length)| (length, network));
            destinations.dedup();
            Some(Reason::Wide { destinations })
        };
        let client = || {
            let client = *clients?.first()?;
            Some(Reason::Ssh { client })
        };
        let public = || {
            let address = *self.public.get(device)?.first()?;
            Some(Reason::Public { address })
        };
        wide().or_else(client).or_else(public)
    }
}

/// The upper device of a pair whose lower one is the device in question.
fn up<'a>((upper, lower): &'a (String, String), of: &str) -> Option<&'a str> {
    (lower == of).then_some(upper)
}

/// The lower device of a pair whose upper one is the device in question.
fn down<'a>((upper, lower): &'a (String, String), of: &str) -> Option<&'a str> {
    (upper == of).then_some(lower)
}

/// Whether routes of a family together reach so many public addresses as only a default route does.
fn are_wide(routes: &[Route], is_inet6: bool) -> bool {
    // 0.0.0.0 to 223.255.255.255; 2000::/3. What is beyond goes to nobody in particular, or to nobody.
    let (first, last) = if is_inet6 {
        (0x2000 << 112, (0x4000 << 112) - 1)
    } else {
        (0, 0xdfff_ffff)
    };
    let of_family = routes
        .iter()
        .map(|route| route.destination)
        .filter(|(network, _)| network.is_ipv6() == is_inet6);
    let mut runs: Vec<(u128, u128)> = of_family
        .map(run)
        .map(|(from, to)| (from.max(first), to.min(last)))
        .filter(|(from, to)| from <= to)
        .collect();
    runs.sort_unstable();
    let mut next = first;
    let mut reached = 0;
    for (from, to) in runs {
        let from = from.max(next);
        if from <= to {
            reached += to - from + 1;
            next = to + 1;
        }
    }
    reached >= (last - first + 1) / WIDE_PART
}

/// The first and the last address of a network.
fn run((network, length): (IpAddr, u8)) -> (u128, u128) {
    let (bits, width) = match network {
        IpAddr::V4(network) => (u128::from(network.to_bits()), 32),
        IpAddr::V6(network) => (network.to_bits(), 128),
    };
    let all = u128::MAX >> (128 - width);
    let hosts = all.checked_shr(u32::from(length)).unwrap_or(0);
    (bits & !hosts, bits | hosts)
}

impl Needed {
    /// Whether an ssh client is what would be cut off.
    #[must_use]
    pub fn is_by_ssh(&self) -> bool {
        matches!(self.reason, Reason::Ssh { .. })
    }

    /// The reason in words; `it` is what they call the interface.
    #[must_use]
    pub fn told_of(&self, it: &str) -> String {
        let device = &self.device;
        let place = match self.place {
            Place::Itself => it.to_owned(),
            Place::Above => format!("{device} on top of {it}"),
            Place::Below => format!("{device} below {it}"),
            Place::Beside => format!("{device}, which shares a device with {it}"),
        };
        format!("{} through {place}", self.reason)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default { table: None } => write!(f, "a default route leads"),
            Self::Default { table: Some(table) } => {
                write!(f, "a default route of table {table} leads")
            }
            Self::Wide { destinations } => {
                let named = destinations.iter().take(NAMED_MAX);
                let mut words: Vec<String> = named
                    .map(|(network, length)| format!("{network}/{length}"))
                    .collect();
                if let more @ 1.. = destinations.len() - words.len() {
                    words.push(format!("{more} more"));
                }
                match words.as_slice() {
                    [one] => write!(f, "the route {one} leads"),
                    [first @ .., last] => {
                        write!(f, "the routes {} and {last} lead", first.join(", "))
                    }
                    [] => Ok(()),
                }
            }
            Self::Public { address } => write!(f, "the way to {address} and the Internet leads"),
            Self::Ssh { client } => write!(f, "ssh from {client} comes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn route(destination: &str, table: Option<&str>) -> Route {
        let (network, length) = destination.split_once('/').unwrap();
        Route {
            destination: (network.parse().unwrap(), length.parse().unwrap()),
            table: table.map(Into::into),
        }
    }

    /// A machine with routes in the main table.
    fn network(routes: &[(&str, &str)], stacked: &[(&str, &str)]) -> Network {
        let mut network = Network::default();
        for (destination, device) in routes {
            network.add_route(device, route(destination, None));
        }
        for (upper, lower) in stacked {
            network.add_stacked(upper, lower);
        }
        network
    }

    fn why(network: &Network, interface: &str) -> Option<String> {
        Some(network.needed(interface)?.told_of("it"))
    }

    #[test]
    fn routes_that_do_what_a_default_route_does_are_refused() {
        for (destinations, expected) in [
            (&["0.0.0.0/0"][..], "a default route leads through it"),
            (&["::/0"], "a default route leads through it"),
            (
                &["128.0.0.0/1", "0.0.0.0/1", "10.0.0.0/8"],
                "the routes 0.0.0.0/1, 128.0.0.0/1 and 10.0.0.0/8 lead through it",
            ),
            (&["0.0.0.0/1"], "the route 0.0.0.0/1 leads through it"),
            (
                &["::/1", "8000::/1"],
                "the routes ::/1 and 8000::/1 lead through it",
            ),
            (&["2000::/3"], "the route 2000::/3 leads through it"),
            (
                &[
                    "0.0.0.0/5",
                    "8.0.0.0/7",
                    "11.0.0.0/8",
                    "12.0.0.0/6",
                    "16.0.0.0/4",
                ],
                "the routes 16.0.0.0/4, 0.0.0.0/5, 12.0.0.0/6 and 2 more lead through it",
            ),
        ] {
            let routes: Vec<_> = destinations.iter().map(|to| (*to, "eth0")).collect();
            let network = network(&routes, &[]);
            assert_eq!(why(&network, "eth0").as_deref(), Some(expected));
            assert_eq!(why(&network, "eth1"), None);
        }
    }

    #[test]
    fn a_default_route_of_any_table_counts_and_the_main_one_is_named_first() {
        let mut network = network(&[], &[]);
        network.add_route("eth0", route("0.0.0.0/0", Some("100")));
        let expected = "a default route of table 100 leads through it";
        assert_eq!(why(&network, "eth0").as_deref(), Some(expected));
        network.add_route("eth0", route("::/0", None));
        let expected = "a default route leads through it";
        assert_eq!(why(&network, "eth0").as_deref(), Some(expected));
    }

    #[test]
    fn routes_to_parts_of_the_world_are_none_of_the_machines_ways() {
        let routes = [
            ("10.0.0.0/8", "eth0"),
            ("172.16.0.0/12", "eth0"),
            ("192.168.0.0/16", "eth0"),
            ("198.18.0.0/15", "eth0"),
            ("224.0.0.0/4", "eth0"),
            ("240.0.0.0/4", "eth0"),
            ("fc00::/7", "eth0"),
            ("ff00::/8", "eth0"),
            ("2001:2::/48", "eth0"),
            ("2000::/16", "eth0"),
        ];
        assert_eq!(why(&network(&routes, &[]), "eth0"), None);
        let mut million = Network::default();
        for number in 0..1_000_000_u32 {
            let inet = Ipv4Addr::from_bits(0x0100_0000 + number * 0xd00);
            let inet6 = Ipv6Addr::from_bits(u128::from(0x2000_0000 + number * 0x200) << 96);
            for destination in [(inet.into(), 24), (inet6.into(), 48)] {
                let table = None;
                million.add_route("eth0", Route { destination, table });
            }
        }
        assert_eq!(why(&million, "eth0"), None);
    }

    #[test]
    fn what_shares_the_interface_counts_as_the_interface() {
        let stacked = [
            ("eth0.10", "eth0"),
            ("eth0.20", "eth0"),
            ("macvlan0", "eth0"),
            ("bond0", "eth1"),
            ("bond0", "eth2"),
            ("br0", "eth3"),
            ("br0", "tap0"),
            ("br0.5", "br0"),
        ];
        let default_of = |device, interface| {
            let network = network(&[("0.0.0.0/0", device)], &stacked);
            why(&network, interface)
        };
        for (device, interface, place) in [
            ("eth0.10", "eth0", "eth0.10 on top of it"),
            ("eth0", "macvlan0", "eth0 below it"),
            (
                "eth0.10",
                "eth0.20",
                "eth0.10, which shares a device with it",
            ),
            ("bond0", "eth2", "bond0 on top of it"),
            ("eth1", "eth2", "eth1, which shares a device with it"),
            ("br0", "eth3", "br0 on top of it"),
            ("br0.5", "tap0", "br0.5 on top of it"),
            ("eth3", "tap0", "eth3, which shares a device with it"),
        ] {
            let expected = format!("a default route leads through {place}");
            assert_eq!(default_of(device, interface), Some(expected));
        }
        assert_eq!(default_of("eth0.10", "eth1"), None);
        assert_eq!(default_of("bond0", "br0"), None);
    }

    #[test]
    fn clients_and_the_way_to_the_world_are_named() {
        let mut network = network(&[], &[("eth0.10", "eth0")]);
        network.add_public("eth1", PUBLIC_ADDRESSES[1]);
        network.add_client("eth0.10", "192.0.2.7".parse().unwrap());
        let expected = "ssh from 192.0.2.7 comes through eth0.10 on top of it";
        assert_eq!(why(&network, "eth0").as_deref(), Some(expected));
        assert!(network.needed("eth0").unwrap().is_by_ssh());
        let expected = "the way to 9.9.9.9 and the Internet leads through it";
        assert_eq!(why(&network, "eth1").as_deref(), Some(expected));
        assert!(!network.needed("eth1").unwrap().is_by_ssh());
    }

    #[test]
    fn what_leads_through_the_other_end_of_a_cable_leads_through_this_one() {
        let mut network = network(
            &[("0.0.0.0/0", "near")],
            &[("br0", "far"), ("br0", "uplink")],
        );
        network.add_cable("near", "far");
        for (interface, expected) in [
            ("near", "a default route leads through it"),
            (
                "far",
                "a default route leads through near, which shares a device with it",
            ),
            (
                "uplink",
                "a default route leads through near, which shares a device with it",
            ),
        ] {
            assert_eq!(why(&network, interface).as_deref(), Some(expected));
        }
        assert_eq!(why(&network, "other"), None);
    }

    #[test]
    fn clients_are_met_where_the_address_is_that_they_talk_to() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let client = |local: &str, peer: &str| TcpConnection {
            local: address(local),
            local_port: 22,
            peer: address(peer),
            inode: 1,
        };
        let addresses = [
            ("eth0".to_owned(), address("192.0.2.1")),
            ("eth1".to_owned(), address("198.51.100.1")),
        ];
        let mut network = Network::default();
        let left = network.add_clients(
            vec![
                client("192.0.2.1", "203.0.113.9"),
                client("192.0.2.1", "203.0.113.9"),
                // The machine itself, and an address of no device.
                client("192.0.2.1", "198.51.100.1"),
                client("203.0.113.1", "203.0.113.8"),
            ],
            &addresses,
        );
        let peers: Vec<IpAddr> = left.iter().map(|client| client.peer).collect();
        assert_eq!(peers, [address("203.0.113.9"), address("203.0.113.8")]);
        let expected = "ssh from 203.0.113.9 comes through it";
        assert_eq!(why(&network, "eth0").as_deref(), Some(expected));
        assert_eq!(why(&network, "eth1"), None);
    }

    /// Devices in pairs, as a system that is right or wrong could list them.
    fn stacks() -> impl Strategy<Value = Vec<(u8, u8)>> {
        prop::collection::vec((0_u8..12, 0_u8..12), 0..20)
    }

    proptest! {
        #[test]
        fn an_interface_is_needed_exactly_where_its_stack_has_the_route(
            stacked in stacks(),
            route_of in 0_u8..12,
        ) {
            let name = |number: u8| format!("d{number}");
            let mut network = network(&[("::/0", &name(route_of))], &[]);
            let mut group: Vec<u8> = (0..12).collect();
            for (upper, lower) in stacked {
                network.add_stacked(&name(upper), &name(lower));
                let (from, to) = (group[usize::from(upper)], group[usize::from(lower)]);
                group.iter_mut().filter(|of| **of == from).for_each(|of| *of = to);
            }
            for interface in 0..12 {
                let is_shared = group[usize::from(interface)] == group[usize::from(route_of)];
                prop_assert_eq!(network.needed(&name(interface)).is_some(), is_shared);
            }
        }

        #[test]
        fn a_split_of_all_addresses_is_wide(
            cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..40),
            is_inet6: bool,
        ) {
            let whole = if is_inet6 { "2000::/3" } else { "0.0.0.0/0" };
            let mut parts = vec![route(whole, None)];
            for (at, _) in &cuts {
                let part = parts.swap_remove(at.index(parts.len()));
                let (network, length) = part.destination;
                let (first, last) = run((network, length));
                for bits in [first, first + (last - first) / 2 + 1] {
                    let network = match network {
                        IpAddr::V4(_) => Ipv4Addr::from_bits(bits.try_into().unwrap()).into(),
                        IpAddr::V6(_) => Ipv6Addr::from_bits(bits).into(),
                    };
                    parts.push(Route { destination: (network, length + 1), table: None });
                }
            }
            prop_assert!(are_wide(&parts, is_inet6));
            prop_assert!(!are_wide(&parts, !is_inet6));
            let mut network = Network::default();
            for part in parts {
                network.add_route("eth0", part);
            }
            prop_assert!(network.needed("eth0").is_some());
        }

        #[test]
        fn a_seventh_of_it_is_not_wide_whatever_is_listed_twice(
            copies in 1_usize..20,
            parts in prop::collection::vec(16_u8..32, 1..200),
        ) {
            let networks = parts.iter().map(|third| Route {
                destination: (Ipv4Addr::new(20, *third, 0, 0).into(), 16),
                table: None,
            });
            let routes: Vec<Route> = networks.flat_map(|route| vec![route; copies]).collect();
            prop_assert!(!are_wide(&routes, false));
        }
    }
}
