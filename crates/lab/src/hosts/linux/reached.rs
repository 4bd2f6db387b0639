//! How a Linux host is reached, as `ip`, `/sys` and `/proc` tell.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fwdlab_model::masked;
use fwdlab_traffic::{Network, Route, SSH_PORT, TcpConnection, established, ssh_connection};

use super::ports::{ADDRESSES, NEXT_HOPS, address_in, values, words_of};
use crate::LabError;
use crate::hosts::reached::{Destinations, SESSION, any};
use crate::hosts::ssh::Connection;
use crate::mechanism::step::owned;
use crate::mechanism::tools::Tool;

/// Lists which device is below which: `/sys/class/net/eth0.10/lower_eth0`.
const STACKED: [&str; 3] = [
    "sh",
    "-c",
    "for below in /sys/class/net/*/lower_*; do echo \"$below\"; done",
];
/// Lists which device takes the frames of which port: `/sys/class/net/eth1/master br0`.
const MASTERS: [&str; 3] = [
    "sh",
    "-c",
    "for link in /sys/class/net/*/master; do master=$(readlink \"$link\" 2>/dev/null) && echo \"$link ${master##*/}\"; done; :",
];
/// Lists the devices whose members share routes with them, but no frames.
const VRFS: [&str; 6] = ["ip", "-o", "link", "show", "type", "vrf"];
const ROUTES: [[&str; 7]; 2] = [
    ["ip", "-o", "-4", "route", "show", "table", "all"],
    ["ip", "-o", "-6", "route", "show", "table", "all"],
];
const TCP: [&str; 3] = [
    "sh",
    "-c",
    "cat /proc/net/tcp && { cat /proc/net/tcp6 2>/dev/null || :; }",
];
/// Lists the descriptors of every server of ssh.
const SERVERS: [&str; 3] = [
    "sh",
    "-c",
    "for name in $(grep -lsx -e 'sshd.*' -e dropbear /proc/[0-9]*/comm); do ls -l \"${name%comm}fd\"; done; :",
];
/// Looks up the route to `$1`, from `$2` if there is one; older programs cannot show it whole.
const LOOKUP: &str =
    "ip -o route get fibmatch \"$@\" || ip -o route get \"$@\" || ip -o route get \"$1\"";

/// Types of routes that hand frames to no device, as `ip route` puts them in front.
const NOT_UNICAST: [&str; 11] = [
    "local",
    "broadcast",
    "multicast",
    "anycast",
    "unreachable",
    "blackhole",
    "prohibit",
    "throw",
    "nat",
    "none",
    "xresolve",
];

/// A route that hands frames to devices, as `ip route` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listed<'a> {
    route: Route,
    devices: Vec<&'a str>,
    next_hop: Option<&'a str>,
    has_gateway: bool,
    /// Whether `ip` says that the kernel made it for an address.
    is_connected: bool,
}

impl Listed<'_> {
    /// Whether it leads by a device to the network of an address of the device: BusyBox does not tell who made a route.
    fn is_to(&self, own_networks: &BTreeSet<(&str, (IpAddr, u8))>) -> bool {
        let is_own = |device: &&str| own_networks.contains(&(*device, self.route.destination));
        let is_default = self.route.destination.1 == 0;
        !is_default
            && !self.has_gateway
            && !self.devices.is_empty()
            && self.devices.iter().all(is_own)
    }
}

/// How a host is reached.
///
/// # Errors
/// `Host` where it does not tell, and those of the connection.
pub(in crate::hosts) fn network(connection: &Connection) -> Result<Network, LabError> {
    let mut questions = ROUTES.map(|words| owned(&words)).to_vec();
    questions.extend(
        [
            &SESSION[..],
            &STACKED,
            &MASTERS,
            &VRFS,
            &NEXT_HOPS,
            &ADDRESSES,
            &TCP,
            &SERVERS,
        ]
        .map(owned),
    );
    questions.push(Tool::Iproute2.probe());
    let answers = connection.ask(questions)?;
    let needed = |words: &[&str]| answers.needed(&owned(words));
    let asked = |words: &[&str]| answers.get(&owned(words)).unwrap_or_default();

    let mut network = Network::default();
    let vrfs = names(asked(&VRFS));
    for (upper, lower) in stacked(asked(&STACKED), &vrfs) {
        network.add_stacked(upper, lower);
    }
    for (master, port) in masters(asked(&MASTERS), &vrfs) {
        network.add_master(master, port);
    }
    let next_hops = next_hops(asked(&NEXT_HOPS));
    let says_who_made_it = answers.get(&Tool::Iproute2.probe()).is_some();
    let own_networks = own_networks(needed(&ADDRESSES)?);
    let is_connected = |listed: &Listed<'_>| match says_who_made_it {
        true => listed.is_connected,
        false => listed.is_to(&own_networks),
    };
    for (words, is_inet6) in ROUTES.iter().zip([false, true]) {
        let routes = all_routes(needed(words)?, is_inet6, &next_hops);
        let routes = routes.map_err(|line| {
            answers.wrong(format!(
                "its `ip route` lists {line:?}, and does not tell by which device that route leads, so that nobody knows \
                 whether the host is reached by its ports; {}",
                Tool::Iproute2.remedy()
            ))
        })?;
        for (listed, devices) in routes {
            for device in devices.into_iter().filter(|_| !is_connected(&listed)) {
                network.add_route(device, listed.route.clone());
            }
        }
    }
    let session = needed(&SESSION)?;
    let clients =
        clients(needed(&TCP)?, asked(&SERVERS), session).map_err(|why| answers.wrong(why))?;
    let addresses = addresses(needed(&ADDRESSES)?);
    let destinations = Destinations::new(clients, session, &addresses, &mut network);
    let questions = destinations.questions(|to, from| {
        let mut words = owned(&["sh", "-c", LOOKUP, "sh", &to.to_string()]);
        words.extend(
            from.into_iter()
                .flat_map(|from| ["from".to_owned(), from.to_string()]),
        );
        words
    });
    let ways = connection.run_all(&questions)?;
    let devices = |answer: &str| {
        let listed = routes(answer, false);
        let found = listed.iter().flat_map(|listed| {
            let devices = devices(listed, &next_hops);
            devices
                .into_iter()
                .map(|device| (device.to_owned(), listed.is_connected))
        });
        found.collect()
    };
    destinations.note(&ways, devices, &mut network);
    Ok(network)
}

/// The names of devices in lines of `ip -o link`: `4: vrf0: <NOARP,MASTER> mtu 65575 ...`.
fn names(links: &str) -> BTreeSet<&str> {
    let names = links.lines().filter_map(|line| {
        let name = line.split_whitespace().nth(1)?;
        name.strip_suffix(':')
    });
    names.collect()
}

/// Pairs of a device and a port whose frames it takes, by the paths of links; a VRF takes none.
fn masters<'a>(listed: &'a str, vrfs: &BTreeSet<&str>) -> Vec<(&'a str, &'a str)> {
    let pairs = listed.lines().filter_map(|line| {
        let (port, master) = line
            .strip_prefix("/sys/class/net/")?
            .split_once("/master ")?;
        (!vrfs.contains(master)).then_some((master, port))
    });
    pairs.collect()
}

/// Pairs of devices of which the first is on top of the second, by the paths of their links.
fn stacked<'a>(paths: &'a str, vrfs: &BTreeSet<&str>) -> Vec<(&'a str, &'a str)> {
    let pairs = paths.lines().filter_map(|path| {
        let (upper, lower) = path
            .strip_prefix("/sys/class/net/")?
            .split_once("/lower_")?;
        // Without any the shell prints the pattern.
        (upper != "*" && !vrfs.contains(upper)).then_some((upper, lower))
    });
    pairs.collect()
}

/// The routes of `ip -o route` that hand frames to devices, with these; or a line of which that is not understood.
///
/// BusyBox leaves out the next hops of a route that has several (networking/libiproute/iproute.c, `print_route`).
fn all_routes<'a>(
    text: &'a str,
    is_inet6: bool,
    next_hops: &BTreeMap<&str, Vec<&'a str>>,
) -> Result<Vec<(Listed<'a>, Vec<&'a str>)>, &'a str> {
    let mut routes = Vec::new();
    for line in text.lines() {
        if words_of(line).is_empty() || is_of_no_device(line) {
            continue;
        }
        let listed = listed(line, is_inet6).ok_or(line)?;
        let devices = devices(&listed, next_hops);
        // A next hop without a device drops frames.
        let is_known = listed.next_hop.is_some_and(|id| next_hops.contains_key(id));
        if devices.is_empty() && !is_known {
            return Err(line);
        }
        routes.push((listed, devices));
    }
    Ok(routes)
}

/// The routes of `ip -o route` that hand frames to devices, or to next hops with numbers of their own.
fn routes(text: &str, is_inet6: bool) -> Vec<Listed<'_>> {
    text.lines()
        .filter_map(|line| listed(line, is_inet6))
        .collect()
}

fn is_of_no_device(line: &str) -> bool {
    let words = words_of(line);
    words.first().is_some_and(|kind| NOT_UNICAST.contains(kind))
}

fn listed(line: &str, is_inet6: bool) -> Option<Listed<'_>> {
    if is_of_no_device(line) {
        return None;
    }
    let words = words_of(line);
    let words = match words.as_slice() {
        ["unicast", words @ ..] => words,
        words => words,
    };
    let destination = destination(words.first()?, is_inet6)?;
    let table = values(words, "table")
        .next()
        .filter(|table| *table != "main");
    Some(Listed {
        route: Route {
            destination,
            table: table.map(Into::into),
        },
        devices: values(words, "dev").collect(),
        next_hop: values(words, "nhid").next(),
        has_gateway: values(words, "via").next().is_some(),
        is_connected: values(words, "proto").any(|by| by == "kernel") && destination.1 > 0,
    })
}

/// `default`, `192.0.2.0/24`, `192.0.2.1`.
fn destination(word: &str, is_inet6: bool) -> Option<(IpAddr, u8)> {
    if word == "default" {
        return Some((any(is_inet6), 0));
    }
    let (network, length) = word.split_once('/').unzip();
    let network: IpAddr = network.unwrap_or(word).parse().ok()?;
    let whole = if network.is_ipv6() { 128 } else { 32 };
    let length = length.map_or(Some(whole), |length| length.parse().ok())?;
    (length <= whole).then_some((network, length))
}

/// The devices of next hops by their numbers, as `ip -o nexthop` lists them: `id 10 via 192.0.2.2 dev eth0 scope link`,
/// `id 12 group 10/11,3`.
fn next_hops(text: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut devices: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut groups = Vec::new();
    for line in text.lines() {
        let words = words_of(line);
        let value = |name| values(&words, name).next();
        let Some(id) = value("id") else {
            continue;
        };
        devices.entry(id).or_default().extend(value("dev"));
        groups.extend(value("group").map(|members| (id, members)));
    }
    for (id, members) in groups {
        let members = members
            .split('/')
            .filter_map(|member| member.split(',').next());
        let all: Vec<&str> = members
            .filter_map(|member| devices.get(member))
            .flatten()
            .copied()
            .collect();
        devices.entry(id).or_default().extend(all);
    }
    devices
}

fn devices<'a>(listed: &Listed<'a>, next_hops: &BTreeMap<&str, Vec<&'a str>>) -> Vec<&'a str> {
    match listed.next_hop {
        // Where `nexthop_compat_mode` is off, a route does not repeat what its next hop says.
        Some(id) if listed.devices.is_empty() => next_hops.get(id).cloned().unwrap_or_default(),
        _ => listed.devices.clone(),
    }
}

/// The interfaces and addresses of `ip -o address`.
pub(super) fn addresses(text: &str) -> Vec<(String, IpAddr)> {
    let addresses = text.lines().filter_map(|line| {
        let (device, address) = address_in(line)?;
        let address = address.split('/').next()?.parse().ok()?;
        Some((device.to_owned(), address))
    });
    addresses.collect()
}

/// The networks of the addresses of `ip -o address`, each with its interface.
pub(super) fn own_networks(text: &str) -> BTreeSet<(&str, (IpAddr, u8))> {
    let networks = text.lines().filter_map(|line| {
        let (device, address) = address_in(line)?;
        let (address, length) = destination(address, false)?;
        Some((device, (masked(address, length), length)))
    });
    networks.collect()
}

/// The connections that a server of ssh holds, and those at ssh's port or at this session's.
fn clients(tcp: &str, servers: &str, session: &str) -> Result<Vec<TcpConnection>, String> {
    // `lrwx------ 1 root root 64 Nov 26 18:00 4 -> socket:[24590]`
    let sockets: BTreeSet<&str> = servers
        .lines()
        .filter_map(|line| line.split_once("-> socket:["))
        .map(|(_, number)| number.trim_end_matches(']'))
        .collect();
    let own_port = ssh_connection(session).map_or(SSH_PORT, |session| session.local_port);
    let mut connections = established(tcp)?;
    connections.retain(|connection| {
        [SSH_PORT, own_port].contains(&connection.local_port)
            || sockets.contains(connection.inode.to_string().as_str())
    });
    Ok(connections)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lines that iproute2 6.1 prints of hosts of several kinds.
    const INET: &str = "\
default via 192.0.2.1 dev eth0 proto dhcp metric 100
0.0.0.0/1 dev tun0 scope link
10.0.0.0/8 proto static metric 5 \\\tnexthop via 192.0.2.1 dev eth0 weight 1 \\\tnexthop via 198.51.100.1 dev eth1 weight 1
default nhid 12 table mgmt proto static
192.0.2.0/24 dev eth0 proto kernel scope link src 192.0.2.2
unicast 192.0.2.9 dev eth2 table 100
local 192.0.2.2 dev eth0 table local proto kernel scope host src 192.0.2.2
unreachable default metric 4278198272
blackhole 10.1.0.0/16
";

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn routes_are_read_with_all_their_devices() {
        let route = |network: &str, length, table: Option<&str>| Route {
            destination: (address(network), length),
            table: table.map(Into::into),
        };
        let read = |route,
                    devices: &[&'static str],
                    next_hop,
                    [has_gateway, is_connected]: [bool; 2]| Listed {
            route,
            devices: devices.to_vec(),
            next_hop,
            has_gateway,
            is_connected,
        };
        let (neither, by_gateway, connected) = ([false; 2], [true, false], [false, true]);
        assert_eq!(
            routes(INET, false),
            [
                read(route("0.0.0.0", 0, None), &["eth0"], None, by_gateway),
                read(route("0.0.0.0", 1, None), &["tun0"], None, neither),
                read(
                    route("10.0.0.0", 8, None),
                    &["eth0", "eth1"],
                    None,
                    by_gateway
                ),
                read(route("0.0.0.0", 0, Some("mgmt")), &[], Some("12"), neither),
                read(route("192.0.2.0", 24, None), &["eth0"], None, connected),
                read(
                    route("192.0.2.9", 32, Some("100")),
                    &["eth2"],
                    None,
                    neither
                ),
            ]
        );
        let inet6 = "default via fe80::1 dev eth0 proto ra metric 1024 expires 1798sec hoplimit 64 pref medium\n";
        let listed = &routes(inet6, true)[0];
        assert_eq!(listed.route, route("::", 0, None));
        assert!(!listed.is_connected);
    }

    #[test]
    fn a_route_leads_through_its_next_hops() {
        let text = "id 10 via 192.0.2.2 dev eth0 scope link \nid 11 dev eth1 \nid 12 group 10/11,3 \nid 13 blackhole \n";
        let next_hops = next_hops(text);
        let through = |line| devices(&listed(line, false).unwrap(), &next_hops);
        assert_eq!(through("default nhid 12 proto static"), ["eth0", "eth1"]);
        assert_eq!(through("default nhid 10 via 192.0.2.2 dev eth5"), ["eth5"]);
        assert!(through("default nhid 13").is_empty());
    }

    #[test]
    fn a_route_whose_devices_are_not_shown_is_named() {
        let known = next_hops("id 10 via 192.0.2.2 dev eth0\nid 13 blackhole\n");
        let all = |text: &'static str| all_routes(text, false, &known).map(|routes| routes.len());
        assert_eq!(all(INET), Err("default nhid 12 table mgmt proto static"));
        let known_alone = "default nhid 13\n10.0.0.0/8 nhid 10\n\nnone 192.0.2.1\n";
        assert_eq!(all(known_alone), Ok(2));
        // BusyBox 1.35 of a route through two next hops; and what nobody knows.
        for line in [
            "default ",
            "10.9.0.0/16 ",
            "10.0.0.0/33 dev eth0",
            "word dev eth0",
        ] {
            assert_eq!(all(line), Err(line));
        }
    }

    // BusyBox, networking/libiproute/iproute.c, `print_route`: "Todo: parse & show proto kernel here".
    #[test]
    fn a_route_of_busybox_is_connected_where_an_address_of_its_device_has_its_network() {
        let addresses = "2: eth2    inet 10.1.0.1/24 scope global eth2\\       valid_lft forever\n\
                         2: eth2    inet6 fe80::451:6eff:fe25:bdf3/64 scope link \n\
                         5: tun0    inet 10.8.0.1 peer 10.8.0.2/32 scope global tun0\n\
                         6: all0    inet 10.9.0.1/0 scope global all0\n";
        let own = own_networks(addresses);
        let is_connected = |line, is_inet6| listed(line, is_inet6).unwrap().is_to(&own);
        assert!(is_connected(
            "10.1.0.0/24 dev eth2 scope link  src 10.1.0.1 ",
            false
        ));
        assert!(is_connected("fe80::/64 dev eth2  metric 256 ", true));
        for line in [
            "10.1.0.0/24 via 10.1.0.9 dev eth2 ",
            "10.1.0.0/24 dev eth3 scope link ",
            "10.1.0.0/16 dev eth2 scope link ",
            "0.0.0.0/1 dev tun0 scope link ",
            "default via 10.1.0.2 dev eth2 ",
            "10.1.0.0/24 nhid 12",
        ] {
            assert!(!is_connected(line, false), "{line}");
        }
    }

    #[test]
    fn what_is_on_top_of_what_is_read_from_paths() {
        let paths = "/sys/class/net/bond0/lower_eth1\n/sys/class/net/eth0.10/lower_eth0\n/sys/class/net/vrf0/lower_eth2\n";
        let vrfs = names("4: vrf0: <NOARP,MASTER,UP> mtu 65575 qdisc noqueue state UP\n");
        assert_eq!(
            stacked(paths, &vrfs),
            [("bond0", "eth1"), ("eth0.10", "eth0")]
        );
        let listed = "/sys/class/net/eth1/master bond0\n/sys/class/net/eth2/master vrf0\n";
        assert_eq!(masters(listed, &vrfs), [("bond0", "eth1")]);
        assert!(stacked("/sys/class/net/*/lower_*\n", &vrfs).is_empty());
    }

    #[test]
    fn clients_are_those_of_servers_and_of_ports() {
        let line = |port: u16, inode| {
            format!(
                "   1: 00000000:{port:04X} 01010101:C350 01 0:0 00:0 0     0        0 {inode} 4 0\n"
            )
        };
        let tcp = [line(22, 1), line(80, 2), line(2222, 3), line(4444, 4)].concat();
        let servers = "total 0\nlrwx------ 1 root root 64 Nov 26 18:00 4 -> socket:[3]\nlr-x------ 1 root root 64 Nov 26 18:00 0 -> /dev/null\n";
        let inodes = |session| {
            let clients = clients(&tcp, servers, session).unwrap();
            clients
                .iter()
                .map(|client| client.inode)
                .collect::<Vec<_>>()
        };
        assert_eq!(inodes(""), [1, 3]);
        assert_eq!(inodes("192.0.2.1 50000 192.0.2.2 4444"), [1, 3, 4]);
        assert!(clients("x", "", "").is_err());
    }

    #[test]
    fn addresses_are_read_with_their_interfaces() {
        let listed = "3: eth1    inet 198.18.0.2/24 scope global eth1\\       valid_lft forever\n7: br0    inet6 fe80::1/64 scope link\n";
        assert_eq!(
            addresses(listed),
            [
                ("eth1".to_owned(), address("198.18.0.2")),
                ("br0".to_owned(), address("fe80::1"))
            ]
        );
    }

    proptest! {
        #[test]
        fn any_text_is_taken_apart(
            text in "((default|dev|nhid|group|id|via|table|lower_|/sys/class/net/|->|socket:\\[|[a-z0-9./:]{0,9})[ \\\\\n]|\\PC){0,40}"
        ) {
            let _ = (routes(&text, true), next_hops(&text));
            let _ = (stacked(&text, &names(&text)), masters(&text, &names(&text)));
            let _ = (all_routes(&text, true, &next_hops(&text)), own_networks(&text));
            let _ = (addresses(&text), clients("", &text, &text));
        }

        #[test]
        fn a_route_is_read_back(
            inet6: [u8; 16],
            inet: [u8; 4],
            is_inet6: bool,
            length in 0_u8..=32,
            devices in prop::collection::vec("eth[0-9]{1,3}(\\.[0-9]{1,4})?", 1..4),
        ) {
            let network: IpAddr = if is_inet6 {
                inet6.into()
            } else {
                inet.into()
            };
            let hops = devices.iter().map(|device| format!("\\\tnexthop dev {device} weight 1"));
            let line = format!("{network}/{length} table 7 {}", hops.collect::<Vec<_>>().join(" "));
            let read = listed(&line, is_inet6).unwrap();
            prop_assert_eq!(read.route.destination, (network, length));
            prop_assert_eq!(read.devices, devices);
        }
    }
}
