//! The interlock on a machine with two ports, each cabled to a router of the world, in two namespaces.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;

use fwdlab_sys::NetworkNamespace;
use fwdlab_traffic::{
    InterfaceExpectation, InterfaceGenerator, InterfaceLoad, InterfaceSink, Pace, Way,
    refuse_needed,
};
use proptest::prelude::*;

const PORTS: [&str; 2] = ["eth0", "eth1"];
/// The machine's addresses on them, the world's, and the version as `ip` wants it.
const INET: ([&str; 2], [&str; 2], &str) = (
    ["192.0.2.1/24", "198.51.100.1/24"],
    ["192.0.2.2", "198.51.100.2"],
    "-4",
);
const INET6: ([&str; 2], [&str; 2], &str) = (
    ["2001:db8:0:1::1/64", "2001:db8:0:2::1/64"],
    ["2001:db8:0:1::2", "2001:db8:0:2::2"],
    "-6",
);

struct Machine {
    namespace: NetworkNamespace,
    world: NetworkNamespace,
}

impl Machine {
    /// One with cables, and without an address.
    fn cabled() -> Self {
        let namespace = NetworkNamespace::create("interlock").unwrap();
        let world = NetworkNamespace::create("interlock-world").unwrap();
        let lay = || {
            ip("link set lo up");
            for port in PORTS {
                let world = world.name();
                ip(&format!(
                    "link add name {port} type veth peer name {port} netns {world}"
                ));
                ip(&format!("link set {port} addrgenmode none up"));
                ip(&format!("-n {world} link set {port} addrgenmode none up"));
            }
        };
        namespace.run(lay).unwrap();
        Self { namespace, world }
    }

    /// One with an address of each family on each port.
    fn new() -> Self {
        let machine = Self::cabled();
        machine.with_addresses_on(PORTS);
        // Neighbours of IPv6 are asked by these.
        for port in PORTS {
            machine.ip(&format!("address add fe80::1/64 dev {port} nodad"));
            let world = || ip(&format!("address add fe80::2/64 dev {port} nodad"));
            machine.world.run(world).unwrap();
        }
        machine
    }

    fn with_addresses_on(&self, devices: [&str; 2]) {
        for (own, worlds, _) in [INET, INET6] {
            for (at, device) in devices.into_iter().enumerate() {
                let length = own[at].split_once('/').unwrap().1;
                self.ip(&format!("address add {} dev {device} nodad", own[at]));
                self.world
                    .run(|| {
                        let port = PORTS[at];
                        ip(&format!(
                            "address add {}/{length} dev {port} nodad",
                            worlds[at]
                        ));
                    })
                    .unwrap();
            }
        }
    }

    fn ip(&self, arguments: &str) {
        self.namespace.run(|| ip(arguments)).unwrap();
    }

    /// Why an interface is refused.
    fn why(&self, interface: &str) -> Option<String> {
        let refused = self.namespace.run(|| refuse_needed(interface)).unwrap();
        refused.err().map(|error| error.to_string())
    }

    /// Both ports are refused for these reasons, if there is one.
    fn assert_refused(&self, what: &str, expected: [Option<&str>; 2]) {
        for (port, expected) in PORTS.into_iter().zip(expected) {
            let why = self.why(port);
            let is_so = match (&why, expected) {
                (Some(why), Some(expected)) => why.starts_with(&format!("{port}: {expected}")),
                (why, expected) => why.is_none() && expected.is_none(),
            };
            assert!(is_so, "{what}: {port}: {why:?}, not {expected:?}");
        }
    }
}

fn ip(arguments: &str) {
    testkit::succeed(Command::new("ip").args(arguments.split_whitespace()));
}

/// Whether the kernel has a kind of link, which is then there.
fn has_link(machine: &Machine, arguments: &str) -> bool {
    let add = || {
        let words = arguments.split_whitespace();
        Command::new("ip")
            .args(["link", "add"])
            .args(words)
            .output()
            .unwrap()
    };
    let output = machine.namespace.run(add).unwrap();
    let is_unknown = String::from_utf8_lossy(&output.stderr).contains("Unknown device type");
    assert!(
        output.status.success() || is_unknown,
        "{arguments}: {output:?}"
    );
    output.status.success()
}

const DEFAULT: &str = "a default route leads through it, and a load there could cut its machine off; \
                       name another interface";

#[test]
fn two_halves_of_a_default_route_are_one() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    for ((_, worlds, version), [low, high]) in [
        (INET, ["0.0.0.0/1", "128.0.0.0/1"]),
        (INET6, ["::/1", "8000::/1"]),
    ] {
        let machine = Machine::new();
        for half in [low, high] {
            machine.ip(&format!("{version} route add {half} via {}", worlds[0]));
        }
        let expected = format!("the routes {low} and {high} lead through it");
        machine.assert_refused(version, [Some(&expected), None]);
        // Each is as bad as the other, wherever it leads.
        machine.ip(&format!("{version} route change {high} via {}", worlds[1]));
        let low = format!("the route {low} leads through it");
        let high = format!("the route {high} leads through it");
        let expected = if version == "-4" {
            [Some(&*low), Some(&*high)]
        } else {
            // All that is global unicast is in the lower half.
            [Some(&*low), None]
        };
        machine.assert_refused(version, expected);
    }
}

#[test]
fn a_default_route_counts_in_every_table() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    for (_, worlds, version) in [INET, INET6] {
        let machine = Machine::new();
        machine.ip(&format!("{version} rule add from all table 100"));
        machine.ip(&format!(
            "{version} route add default via {} table 100",
            worlds[1]
        ));
        let expected = "a default route of table 100 leads through it";
        machine.assert_refused(version, [None, Some(expected)]);
    }
}

#[test]
fn all_next_hops_of_a_default_route_count() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    for (_, [first, second], version) in [INET, INET6] {
        let machine = Machine::new();
        let hops = format!("nexthop via {first} dev eth0 nexthop via {second} dev eth1");
        machine.ip(&format!("{version} route add default {hops}"));
        machine.assert_refused("multipath", [Some(DEFAULT), Some(DEFAULT)]);
        machine.ip(&format!("{version} route delete default"));
        machine.assert_refused("none", [None, None]);

        for (id, hop, dev) in [(10, first, "eth0"), (11, second, "eth1")] {
            machine.ip(&format!(
                "{version} nexthop add id {id} via {hop} dev {dev}"
            ));
        }
        machine.ip("nexthop add id 12 group 10/11");
        for compatible in ["1", "0"] {
            let set = || fs::write("/proc/sys/net/ipv4/nexthop_compat_mode", compatible).unwrap();
            machine.namespace.run(set).unwrap();
            machine.ip(&format!("{version} route replace default nhid 11"));
            machine.assert_refused("next hop", [None, Some(DEFAULT)]);
            machine.ip(&format!("{version} route replace default nhid 12"));
            machine.assert_refused("group", [Some(DEFAULT), Some(DEFAULT)]);
        }
    }
}

#[test]
fn the_way_to_the_internet_needs_no_default_route() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    for ((_, worlds, version), network) in [(INET, "9.9.0.0/16"), (INET6, "2620:fe::/48")] {
        let machine = Machine::new();
        machine.ip(&format!("{version} route add {network} via {}", worlds[1]));
        machine.assert_refused(network, [None, Some("the way to ")]);
    }
}

#[test]
fn what_shares_a_device_with_the_route_is_refused() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    // The device with the address, and what is made; then each interface with what is said of it.
    for (carrier, links, expected) in [
        (
            "macvlan0",
            &["name macvlan0 link eth0 type macvlan"][..],
            &[("macvlan0", "it"), ("eth0", "macvlan0 on top of it")][..],
        ),
        (
            "eth0",
            &["name macvlan0 link eth0 type macvlan"],
            &[("macvlan0", "eth0 below it"), ("eth0", "it")],
        ),
        (
            "macvlan0",
            &[
                "name macvlan0 link eth0 type macvlan",
                "name macvlan1 link eth0 type macvlan",
            ],
            &[("macvlan1", "macvlan0, which shares a device with it")],
        ),
        (
            "eth0.10",
            &[
                "name eth0.10 link eth0 type vlan id 10",
                "name eth0.20 link eth0 type vlan id 20",
            ],
            &[
                ("eth0", "eth0.10 on top of it"),
                ("eth0.20", "eth0.10, which shares a device with it"),
            ],
        ),
        (
            "br0",
            &["name br0 type bridge", "name tap0 type veth peer name tap1"],
            &[
                ("eth0", "br0 on top of it"),
                ("tap0", "br0 on top of it"),
                ("br0", "it"),
            ],
        ),
        (
            "eth0",
            &["name br0 type bridge", "name tap0 type veth peer name tap1"],
            &[
                ("tap0", "eth0, which shares a device with it"),
                ("br0", "eth0 below it"),
            ],
        ),
        (
            "bond0",
            &["name bond0 type bond", "name tap0 type veth peer name tap1"],
            &[
                ("eth0", "bond0 on top of it"),
                ("tap0", "bond0 on top of it"),
            ],
        ),
    ] {
        let machine = Machine::cabled();
        if !links.iter().all(|link| has_link(&machine, link)) {
            continue;
        }
        let master = links[0].split_whitespace().nth(1).unwrap();
        for link in links {
            let name = link.split_whitespace().nth(1).unwrap();
            machine.ip(&format!("link set {name} up"));
        }
        if links[0].ends_with("bridge") || links[0].ends_with("bond") {
            for port in ["eth0", "tap0"] {
                machine.ip(&format!("link set {port} down"));
                machine.ip(&format!("link set {port} master {master}"));
                machine.ip(&format!("link set {port} up"));
            }
        }
        machine.with_addresses_on([carrier, "eth1"]);
        let (_, worlds, _) = INET;
        machine.ip(&format!(
            "route add default via {} dev {carrier}",
            worlds[0]
        ));
        for (interface, place) in expected {
            let expected = format!("{interface}: a default route leads through {place}, and");
            let why = machine.why(interface).unwrap();
            assert!(
                why.starts_with(&expected),
                "{carrier}: {why}, not {expected}"
            );
        }
        assert_eq!(machine.why("eth1"), None, "{carrier}");
        if links.iter().any(|link| link.contains("tap1")) {
            assert_eq!(machine.why("tap1"), None, "{carrier}");
        }
    }
}

#[test]
fn the_other_end_of_the_routes_cable_is_refused_and_what_shares_a_bridge_with_it() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let machine = Machine::cabled();
    machine.ip("link add name tap0 type veth peer name tap1");
    machine.ip("link add name br0 type bridge");
    for port in ["tap1", "eth0"] {
        machine.ip(&format!("link set {port} master br0"));
    }
    for device in ["tap0", "tap1", "br0"] {
        machine.ip(&format!("link set {device} up"));
    }
    machine.with_addresses_on(["tap0", "eth1"]);
    let (_, worlds, _) = INET;
    machine.ip(&format!("route add default via {} dev tap0", worlds[0]));
    for interface in ["tap1", "eth0", "br0"] {
        let why = machine.why(interface).unwrap_or_default();
        let expected = format!(
            "{interface}: a default route leads through tap0, which shares a device with it"
        );
        assert!(why.starts_with(&expected), "{why}");
    }
    assert_eq!(machine.why("eth1"), None);
}

/// A client of the world's, beyond both of its ports, with a connection to the machine's address on `eth0`, whose
/// answers leave by `eth1`.
struct Client {
    machine: Machine,
    _ends: [TcpStream; 2],
}

const CLIENTS: [&str; 2] = ["203.0.113.7", "2001:db8:7::7"];

fn connect(is_inet6: bool, port: u16) -> Client {
    let machine = Machine::new();
    let (own, worlds, version) = if is_inet6 { INET6 } else { INET };
    let client: IpAddr = CLIENTS[usize::from(is_inet6)].parse().unwrap();
    let own: IpAddr = own[0].split_once('/').unwrap().0.parse().unwrap();
    let loose = || {
        for interface in ["all", "eth0", "eth1"] {
            let file = format!("/proc/sys/net/ipv4/conf/{interface}/rp_filter");
            fs::write(file, "0").unwrap();
        }
    };
    machine.namespace.run(loose).unwrap();
    machine.ip(&format!("{version} route add {client} via {}", worlds[1]));
    let listen = || TcpListener::bind(SocketAddr::new(own, port)).unwrap();
    let listener = machine.namespace.run(listen).unwrap();
    let call = || {
        loose();
        ip("link set lo up");
        ip(&format!("address add {client} dev lo"));
        // Its own address is the first that it thinks of.
        let device = PORTS[0];
        ip(&format!(
            "{version} route replace {own} dev {device} src {client}"
        ));
        TcpStream::connect(SocketAddr::new(own, port)).unwrap()
    };
    let called = machine.world.run(call).unwrap();
    let (answered, peer) = listener.accept().unwrap();
    assert_eq!(peer.ip(), client);
    Client {
        machine,
        _ends: [called, answered],
    }
}

#[test]
fn the_ports_of_an_ssh_client_are_refused_both_ways() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    for (is_inet6, client) in [false, true].into_iter().zip(CLIENTS) {
        let expected = format!(
            "ssh from {client} comes through it, and a load there could cut its machine off; name another \
             interface, or log in through another one"
        );
        let connected = connect(is_inet6, 22);
        let machine = &connected.machine;
        machine.assert_refused(client, [Some(&expected), Some(&expected)]);
        // One that has gone is nobody's.
        let Client { machine, _ends } = connected;
        drop(_ends);
        machine.assert_refused(client, [None, None]);
    }
}

#[test]
fn ssh_is_known_by_its_server_at_any_port() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    const NAME: &str = "/proc/self/comm";
    let connected = connect(false, 2222);
    connected
        .machine
        .assert_refused("of no server", [None, None]);
    let own = fs::read_to_string(NAME).unwrap();
    // This process holds the socket, as a session's does, in whose environment sudo has left nothing.
    fs::write(NAME, "sshd-session").unwrap();
    let expected = format!("ssh from {} comes through it", CLIENTS[0]);
    let why = PORTS.map(|port| connected.machine.why(port));
    fs::write(NAME, own.trim_end()).unwrap();
    for (port, why) in PORTS.into_iter().zip(why) {
        assert!(
            why.as_ref().is_some_and(|why| why.contains(&expected)),
            "{port}: {why:?}"
        );
    }
}

#[test]
fn another_name_of_the_routes_interface_is_no_way_around() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let machine = Machine::new();
    let (_, worlds, _) = INET;
    machine.ip(&format!("route add default via {}", worlds[0]));
    machine.ip("link property add dev eth0 altname enp1s0f0np0");
    let found = machine
        .namespace
        .run(|| fwdlab_sys::interface_index("enp1s0f0np0").is_ok());
    assert!(found.unwrap(), "the kernel takes it");
    let why = machine.why("enp1s0f0np0").unwrap();
    assert!(why.contains("no alternative names"), "{why}");
    assert!(
        machine
            .why("nowhere")
            .unwrap()
            .contains("no such interface")
    );
}

#[test]
fn generator_and_sink_ask_it() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let machine = Machine::new();
    let (_, worlds, _) = INET;
    machine.ip(&format!("route add default via {} table 100", worlds[0]));
    let traffic = fwdlab_model::Traffic::default();
    let nobody = fwdlab_packet::MacAddress([2, 0, 0, 0, 0, 1]);
    let load = InterfaceLoad {
        destination: nobody,
        family: fwdlab_model::AddressFamily::Inet,
        traffic: &traffic,
        is_reversed: false,
        cpus: &[0],
        pace: Pace::SelfClocked,
    };
    let expectation = InterfaceExpectation {
        source: nobody,
        family: fwdlab_model::AddressFamily::Inet,
        traffic: &traffic,
        way: Way::Cable,
    };
    let ask = || {
        [
            InterfaceGenerator::start("eth0", &load).err(),
            InterfaceSink::attach("eth0", &expectation).err(),
        ]
    };
    for error in machine.namespace.run(ask).unwrap() {
        let text = error.unwrap().to_string();
        let expected = "eth0: a default route of table 100 leads through it";
        assert!(text.starts_with(expected), "{text}");
    }
}

#[test]
fn networks_of_its_own_are_no_reason() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let machine = Machine::cabled();
    let inet = (1_u8..=126, any::<[u8; 2]>(), 1_u8..=254, 1_u8..=30);
    let inet6 = (any::<[u16; 3]>(), 1_u16.., 3_u8..=126);
    proptest!(
        ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(8) },
        |(inet in prop::array::uniform2(inet), inet6 in prop::array::uniform2(inet6))| {
            for port in PORTS {
                machine.ip(&format!("address flush dev {port}"));
            }
            for (port, (first, [second, third], last, length)) in PORTS.into_iter().zip(inet) {
                let address = format!("{first}.{second}.{third}.{last}/{length}");
                machine.ip(&format!("address replace {address} dev {port}"));
            }
            for (port, ([first, second, third], last, length)) in PORTS.into_iter().zip(inet6) {
                // Global unicast.
                let first = 0x2000 | first & 0x1fff;
                let address = format!("{first:x}:{second:x}:{third:x}::{last:x}/{length}");
                machine.ip(&format!("address replace {address} dev {port} nodad"));
            }
            machine.assert_refused("networks of its own", [None, None]);
            prop_assert_eq!(machine.why("lo"), None);
        }
    );
}
