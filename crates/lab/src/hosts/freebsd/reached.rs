//! How a FreeBSD host is reached, as its programs tell.

use std::net::IpAddr;

use fwdlab_traffic::{Network, Route, TcpConnection, is_ssh_server};

use super::text::{interface, listed_routes, route_interface};
use crate::LabError;
use crate::hosts::reached::{Destinations, SESSION, any};
use crate::hosts::ssh::Connection;
use crate::mechanism::step::owned;

pub(super) const INTERFACES: [&str; 1] = ["ifconfig"];
/// Lists the routes of all tables.
const ROUTES: [&str; 3] = [
    "sh",
    "-c",
    "netstat -rnW && fibs=$(sysctl -n net.fibs || echo 1) && fib=1 && \
     while [ \"$fib\" -lt \"$fibs\" ]; do netstat -rnW -F \"$fib\" && fib=$((fib + 1)) || exit; done",
];
/// Lists TCP connections and whose they are.
const CONNECTIONS: [&str; 4] = ["sockstat", "-46cw", "-P", "tcp"];

/// How a host is reached.
///
/// # Errors
/// `Host` where it does not tell, and those of the connection.
pub(in crate::hosts) fn network(connection: &Connection) -> Result<Network, LabError> {
    let questions = [&INTERFACES[..], &ROUTES, &CONNECTIONS, &SESSION];
    let answers = connection.ask(questions.map(owned).to_vec())?;
    let needed = |words: &[&str]| answers.needed(&owned(words));

    let mut network = Network::default();
    let interfaces = needed(&INTERFACES)?;
    for (upper, lower) in stacked(interfaces) {
        network.add_stacked(upper, lower);
    }
    for (master, port) in pairs(interfaces, member) {
        network.add_master(master, port);
    }
    for (device, route) in routes(needed(&ROUTES)?) {
        network.add_route(device, route);
    }
    let addresses = addresses(interfaces);
    let clients = clients(needed(&CONNECTIONS)?);
    let destinations = Destinations::new(clients, needed(&SESSION)?, &addresses, &mut network);
    let questions = destinations.questions(|to, _| {
        let family = if to.is_ipv6() { "-6" } else { "-4" };
        owned(&["route", "-n", family, "get", &to.to_string()])
    });
    let ways = connection.run_all(&questions)?;
    let devices = |answer: &str| {
        let is_connected = !answer
            .lines()
            .any(|line| line.trim().starts_with("gateway:"));
        let device = route_interface(answer).map(|device| (device.to_owned(), is_connected));
        device.into_iter().collect()
    };
    destinations.note(&ways, devices, &mut network);
    Ok(network)
}

/// The interfaces of `ifconfig`, each with its own lines.
pub(super) fn blocks(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut blocks: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        match (line.split_once(": flags="), blocks.last_mut()) {
            (Some((name, _)), _) if !name.contains(char::is_whitespace) => {
                blocks.push((name, vec![line]));
            }
            (_, Some((_, lines))) => lines.push(line),
            _ => {}
        }
    }
    blocks
}

/// Pairs of interfaces of which the first is on top of the second: VLANs, bridges, laggs.
pub(super) fn stacked(text: &str) -> Vec<(&str, &str)> {
    pairs(text, |line| parent(line).or_else(|| member(line)))
}

/// Each interface with those that its lines name, as a function finds them.
fn pairs(text: &str, lower: fn(&str) -> Option<&str>) -> Vec<(&str, &str)> {
    let mut pairs = Vec::new();
    for (name, lines) in blocks(text) {
        let lowers = lines.into_iter().filter_map(lower);
        pairs.extend(lowers.map(|lower| (name, lower)));
    }
    pairs
}

/// That of a VLAN: `vlan: 10 vlanproto: 802.1q vlanpcp: 0 parent interface: igb0`.
fn parent(line: &str) -> Option<&str> {
    let (_, parent) = line.split_once("parent interface: ")?;
    parent.split_whitespace().next()
}

/// One whose frames a bridge or a lagg takes: `member: igb1 flags=143<LEARNING,DISCOVER>`, `laggport: igb0 flags=1c<ACTIVE>`.
fn member(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let member = line
        .strip_prefix("member: ")
        .or_else(|| line.strip_prefix("laggport: "))?;
    member.split_whitespace().next()
}

fn addresses(text: &str) -> Vec<(String, IpAddr)> {
    let mut addresses = Vec::new();
    for (name, lines) in blocks(text) {
        let own = interface(&lines.join("\n")).addresses.into_iter();
        addresses.extend(own.map(|(address, _)| (name.to_owned(), address)));
    }
    addresses
}

/// The routes of `netstat -rn` that hand frames to an interface, but for networks that are connected to it.
fn routes(text: &str) -> Vec<(&str, Route)> {
    let mut routes = Vec::new();
    for line in listed_routes(text) {
        let Some(destination) = destination(line.destination, line.is_inet6) else {
            continue;
        };
        // Rejected, or dropped; a link's own networks have no gateway, and are there for its addresses.
        let is_way = !line.flags.contains(['R', 'B'])
            && (line.flags.contains(['G', 'S']) || destination.1 == 0);
        if is_way {
            let table = None;
            routes.push((line.interface, Route { destination, table }));
        }
    }
    routes
}

/// `default`, `198.18.0.0/16`, `198.18.0.1`, `10/8`, `fe80::%ix0/64`.
fn destination(word: &str, is_inet6: bool) -> Option<(IpAddr, u8)> {
    if word == "default" {
        return Some((any(is_inet6), 0));
    }
    let (network, length) = match word.split_once('/') {
        Some((network, length)) => (network, Some(length.parse().ok()?)),
        None => (word, None),
    };
    let network = network.split('%').next()?;
    let mut full = network.to_owned();
    if !is_inet6 {
        // Older systems leave zeros at the end out.
        let missing = 3_usize.saturating_sub(network.matches('.').count());
        full.push_str(&".0".repeat(missing));
    }
    let address: IpAddr = full.parse().ok()?;
    let whole = if address.is_ipv6() { 128 } else { 32 };
    let length = length.unwrap_or(whole);
    (length <= whole).then_some((address, length))
}

/// The connections of ssh's servers, in `sockstat -46cw`:
/// `root     sshd         812   4  tcp4   192.0.2.1:22          192.0.2.7:50000`.
fn clients(text: &str) -> Vec<TcpConnection> {
    let clients = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, command, _, _, protocol, local, peer, ..] = words.as_slice() else {
            return None;
        };
        if !is_ssh_server(command) || !protocol.starts_with("tcp") {
            return None;
        }
        let endpoint = |text: &str| -> Option<(IpAddr, u16)> {
            let (address, port) = text.rsplit_once(':')?;
            let address: IpAddr = address.split('%').next()?.parse().ok()?;
            Some((address.to_canonical(), port.parse().ok()?))
        };
        let (local, local_port) = endpoint(local)?;
        Some(TcpConnection {
            local,
            local_port,
            peer: endpoint(peer)?.0,
            inode: 0,
        })
    });
    clients.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const INTERFACES: &str = "\
igb0: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500
\tether 00:1b:21:c4:95:7a
\tinet 192.0.2.1 netmask 0xffffff00 broadcast 192.0.2.255
\tinet6 fe80::21b:21ff:fec4:957a%igb0 prefixlen 64 scopeid 0x1
vlan10: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500
\tinet 198.51.100.1 netmask 0xffffff00 broadcast 198.51.100.255
\tvlan: 10 vlanproto: 802.1q vlanpcp: 0 parent interface: igb0
lagg0: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500
\tlaggproto lacp lagghash l2,l3,l4
\tlaggport: igb1 flags=1c<ACTIVE,COLLECTING,DISTRIBUTING>
\tlaggport: igb2 flags=1c<ACTIVE,COLLECTING,DISTRIBUTING>
bridge0: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500
\tmember: lagg0 flags=143<LEARNING,DISCOVER,AUTOEDGE,AUTOPTP>
";

    const ROUTES: &str = "\
Routing tables

Internet:
Destination        Gateway            Flags     Netif Expire
default            192.0.2.254        UGS        igb0
0.0.0.0/1          link#7             US         tun0
10/8               192.0.2.254        UGSB       igb0
192.0.2.0/24       link#1             U          igb0
192.0.2.1          link#1             UHS         lo0

Internet6:
Destination                       Gateway                       Flags     Netif Expire
::/96                             ::1                           UGRS        lo0
default                           fe80::1%igb0                  UG         igb0
fe80::%igb0/64                    link#1                        U          igb0
Routing tables (fib: 1)

Internet:
Destination        Gateway            Flags     Netif Expire
128.0/1            192.0.2.254        UGS        igb2
";

    const CONNECTIONS: &str = "\
USER     COMMAND    PID   FD  PROTO  LOCAL ADDRESS         FOREIGN ADDRESS
root     sshd-sessi 812   4   tcp4   192.0.2.1:22          192.0.2.7:50000
root     sshd       813   4   tcp6   2001:db8::1:2222      2001:db8::7:50001
root     ssh        814   3   tcp4   192.0.2.1:50002       192.0.2.8:22
?        ?          ?     ?   tcp4   192.0.2.1:22          192.0.2.9:50003
";

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_on_top_of_what_is_read() {
        assert_eq!(
            stacked(INTERFACES),
            [
                ("vlan10", "igb0"),
                ("lagg0", "igb1"),
                ("lagg0", "igb2"),
                ("bridge0", "lagg0")
            ]
        );
        assert_eq!(
            pairs(INTERFACES, member),
            [("lagg0", "igb1"), ("lagg0", "igb2"), ("bridge0", "lagg0")]
        );
        assert_eq!(
            addresses(INTERFACES),
            [
                ("igb0".to_owned(), address("192.0.2.1")),
                ("igb0".to_owned(), address("fe80::21b:21ff:fec4:957a")),
                ("vlan10".to_owned(), address("198.51.100.1"))
            ]
        );
    }

    #[test]
    fn routes_of_all_tables_are_read() {
        let route = |network: &str, length| Route {
            destination: (address(network), length),
            table: None,
        };
        assert_eq!(
            routes(ROUTES),
            [
                ("igb0", route("0.0.0.0", 0)),
                ("tun0", route("0.0.0.0", 1)),
                ("lo0", route("192.0.2.1", 32)),
                ("igb0", route("::", 0)),
                ("igb2", route("128.0.0.0", 1)),
            ]
        );
        let mut network = Network::default();
        for (device, route) in routes(ROUTES) {
            network.add_route(device, route);
        }
        let why = |port| Some(network.needed(port)?.told_of(port));
        assert_eq!(
            why("igb0").as_deref(),
            Some("a default route leads through igb0")
        );
        assert_eq!(
            why("igb2").as_deref(),
            Some("the route 128.0.0.0/1 leads through igb2")
        );
        assert_eq!(why("lo0"), None);
    }

    #[test]
    fn clients_are_those_of_servers() {
        let clients: Vec<_> = clients(CONNECTIONS)
            .iter()
            .map(|client| (client.local, client.local_port, client.peer))
            .collect();
        assert_eq!(
            clients,
            [
                (address("192.0.2.1"), 22, address("192.0.2.7")),
                (address("2001:db8::1"), 2222, address("2001:db8::7"))
            ]
        );
    }

    proptest! {
        #[test]
        fn any_text_is_taken_apart(
            text in "((default|Destination|Netif|Internet6?:|member: |parent interface: |sshd|tcp4|[a-z0-9./:%]{0,9})[ \\t\n]|\\PC){0,60}"
        ) {
            let _ = (stacked(&text), addresses(&text), routes(&text), clients(&text));
        }

        #[test]
        fn destinations_are_read_back(inet6: [u8; 16], inet: [u8; 4], is_inet6: bool, length in 0_u8..=32) {
            let network: IpAddr = if is_inet6 {
                inet6.into()
            } else {
                inet.into()
            };
            prop_assert_eq!(destination(&format!("{network}/{length}"), is_inet6), Some((network, length)));
        }
    }
}
