//! The ports of a Linux host, as `/sys` tells.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

use fwdlab_packet::MacAddress;

use super::ports::{
    ADDRESSES, NEIGHBOURS, NEXT_HOPS, PROXIES, address_in, is_of, is_up, owners_neighbours, shown,
    words_of,
};
use super::reached::{addresses, network};
use crate::LabError;
use crate::cabling::Port;
use crate::hosts::reached::kept;
use crate::hosts::ssh::Connection;
use crate::mechanism::step::owned;

/// Lists the names of a host's interfaces.
pub(in crate::hosts) const NAMES: [&str; 2] = ["ls", "/sys/class/net"];

/// Lists interfaces, each with files of its folder: `= eth1`, then a word and what it says in a line.
const INTERFACES: [&str; 3] = [
    "sh",
    "-c",
    "for path in /sys/class/net/*; do echo \"= ${path##*/}\"; \
     for file in address type flags carrier speed tun_flags device/local_cpulist; do \
     value=$(cat \"$path/$file\" 2>/dev/null) && echo \"$file $value\"; done; \
     mode=$(cat \"/proc/sys/net/ipv6/conf/${path##*/}/addr_gen_mode\" 2>/dev/null) && \
     echo \"addr_gen_mode $mode\"; \
     driver=$(readlink \"$path/device/driver\") && echo \"driver ${driver##*/}\"; \
     grep -s '^DEVTYPE=' \"$path/uevent\"; \
     for other in \"$path\"/upper_* \"$path\"/lower_*; do [ -e \"$other\" ] && echo \"${other##*/}\"; done; done; :",
];
/// Lists the ends of virtual cables, which are ports without a device. BusyBox knows no types, and lists all.
const VIRTUAL: [&str; 3] = [
    "sh",
    "-c",
    "ip -o link show type veth 2>/dev/null || ip -o link show",
];
/// Lists devices with how NetworkManager has them: `eth1:connected`.
const NETWORK_MANAGER: [&str; 5] = ["nmcli", "-t", "-f", "DEVICE,STATE", "device"];
const ONLINE: [&str; 2] = ["cat", "/sys/devices/system/cpu/online"];
/// Names the interfaces given that have a link.
const LINKED: &str = "for port; do carrier=$(cat \"/sys/class/net/$port/carrier\" 2>/dev/null) && \
                      [ \"$carrier\" = 1 ] && echo \"$port\"; done; :";

/// `ARPHRD_ETHER`.
const ETHERNET: &str = "1";

/// The ports of a host.
///
/// # Errors
/// `Host` where it does not tell, and those of the connection.
pub(in crate::hosts) fn ports(connection: &Connection) -> Result<Vec<Port>, LabError> {
    let questions = [
        &INTERFACES[..],
        &VIRTUAL,
        &ONLINE,
        &NETWORK_MANAGER,
        &ADDRESSES,
        &NEXT_HOPS,
        &NEIGHBOURS,
        &PROXIES,
    ];
    let questions = questions.map(owned).to_vec();
    let answers = connection.ask(questions)?;
    let needed = |words: &[&str]| answers.needed(&owned(words));
    let listed = needed(&ADDRESSES)?;
    let asked = |words: &[&str]| answers.get(&owned(words)).unwrap_or_default();
    let neighbours = owners_neighbours(needed(&NEIGHBOURS)?, asked(&PROXIES));
    let losses: Vec<&str> = neighbours.chain(asked(&NEXT_HOPS).lines()).collect();
    let addresses = addresses(listed);
    let network = network(connection)?;
    let mut ports = read(
        needed(&INTERFACES)?,
        asked(&VIRTUAL),
        asked(&ONLINE),
        listed,
        asked(&NETWORK_MANAGER),
    );
    for port in &mut ports {
        let mut losses = losses.iter();
        let lost = losses.find(|line| is_of(&port.name, line));
        port.kept = port
            .kept
            .take()
            .or_else(|| lost.map(|line| would_lose(line)));
        kept(port, &network, &addresses);
    }
    Ok(ports)
}

/// The command that names those of some ports that have a link.
pub(in crate::hosts) fn linked(ports: &[&str]) -> Vec<String> {
    owned(&[&["sh", "-c", LINKED, "sh"][..], ports].concat())
}

/// The ports among the interfaces that were listed.
fn read(
    text: &str,
    virtual_ends: &str,
    online: &str,
    addresses: &str,
    network_manager: &str,
) -> Vec<Port> {
    // `4: veth0@if9: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 ...`
    let ends = virtual_ends.lines().filter_map(|line| {
        let (_, name) = line.split_once(": ")?;
        let (name, other) = name.split(':').next()?.split_once('@')?;
        (other != "NONE").then_some(name)
    });
    let ends: BTreeSet<&str> = ends.collect();
    let mut ports = Vec::new();
    for part in text.split("= ").skip(1) {
        let mut lines = part.lines();
        let name = lines.next().unwrap_or_default().trim();
        let said: BTreeMap<&str, &str> = lines
            .map(|line| line.split_once([' ', '=']).unwrap_or((line, "")))
            .collect();
        let of = |word: &str| said.get(word).copied();
        let is_joined_to = |way: &str| said.keys().find_map(|word| word.strip_prefix(way));
        // What has a type of its own is no port (a bridge, a VLAN, a radio), nor what is on top of another one.
        let is_port = of("type") == Some(ETHERNET)
            && of("DEVTYPE").is_none()
            && of("tun_flags").is_none()
            && is_joined_to("lower_").is_none();
        let has_end = of("driver").is_some() || ends.contains(name);
        let Some(mac) = of("address").filter(|_| is_port && has_end) else {
            continue;
        };
        ports.push(Port {
            name: name.to_owned(),
            mac: mac.to_owned(),
            driver: of("driver").map(str::to_owned),
            is_up: of("flags").is_some_and(is_up),
            has_link: of("carrier") == Some("1"),
            speed_mbps: of("speed")
                .and_then(|speed| speed.parse().ok())
                .filter(|speed| (1..u64::from(u32::MAX)).contains(speed)),
            cpus_near: of("device/local_cpulist")
                .filter(|cpus| !cpus.is_empty() && *cpus != online)
                .map(str::to_owned),
            kept: is_joined_to("upper_")
                .map(|upper| format!("{upper} is on top of it"))
                .or_else(|| {
                    let line = set_link_local(addresses, name, mac, of("addr_gen_mode"))?;
                    let remedy = remedy(name, line, network_manager);
                    Some(format!("{}; {remedy}", would_lose(line)))
                }),
            refused: None,
        });
    }
    ports
}

/// Why a port is not set down that Linux would take this from, which `ip` lists.
fn would_lose(line: &str) -> String {
    format!("Linux would drop {:?} if it went down", shown(line))
}

/// What to do about the address of a link that somebody has set, in a line of `ip -o address`, so that its port is free.
///
/// NetworkManager sets `addr_gen_mode` to 1 and adds the address itself. Whether it would add it again, only its connections
/// know.
fn remedy(port: &str, line: &str, network_manager: &str) -> String {
    let is_managed = network_manager.lines().any(|line| {
        let state = line
            .strip_prefix(port)
            .and_then(|line| line.strip_prefix(':'));
        state.is_some_and(|state| state != "unmanaged")
    });
    if is_managed {
        return format!(
            "NetworkManager has added it; to have the port looked at, run `nmcli device set {port} managed no` before, and \
             `nmcli device set {port} managed yes` afterwards"
        );
    }
    let address = address_in(line).map_or("ADDRESS", |(_, address)| address);
    format!(
        "to have the port looked at, run `ip address delete {address} dev {port}` before, and `ip address add {address} dev \
         {port}` afterwards"
    )
}

/// The address of a link, in a line of `ip -o address`, that a port does not get by itself when it is set up.
///
/// # Source
/// Linux, `net/ipv6/addrconf.c`: `addrconf_ifdown` drops addresses of a link whatever `keep_addr_on_down` says;
/// `addrconf_addr_gen` makes them, in no way with mode 1, and flagged as stable with 2 and 3.
fn set_link_local<'a>(
    addresses: &'a str,
    port: &str,
    mac: &str,
    mode: Option<&str>,
) -> Option<&'a str> {
    let of_mac = MacAddress::of_station(mac).ok().map(link_local);
    let is_set = |line: &&str| {
        let words = words_of(line);
        let Some((device, address)) = address_in(line) else {
            return false;
        };
        let address = address.split('/').next().unwrap_or_default();
        let Ok(address) = address.parse::<Ipv6Addr>() else {
            return false;
        };
        let comes_by_itself = mode != Some("1")
            && (words.contains(&"kernel_ll")
                || words.contains(&"stable-privacy")
                || Some(address) == of_mac);
        device == port && address.is_unicast_link_local() && !comes_by_itself
    };
    addresses.lines().find(is_set)
}

/// The address that a port makes of its station (RFC 4291, appendix A).
fn link_local(MacAddress([a, b, c, d, e, f]): MacAddress) -> Ipv6Addr {
    let pair = |high, low| u16::from_be_bytes([high, low]);
    let parts = [pair(a ^ 2, b), pair(c, 0xff), pair(0xfe, d), pair(e, f)];
    Ipv6Addr::new(0xfe80, 0, 0, 0, parts[0], parts[1], parts[2], parts[3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_distinguished_from_what_is_made_of_them() {
        let text = "= lo\naddress 00:00:00:00:00:00\ntype 772\nflags 0x9\n\
                    = eth0\naddress 52:54:00:00:00:01\ntype 1\nflags 0x1003\ncarrier 1\nspeed 10000\ndevice/local_cpulist 0-7\ndriver ixgbe\nupper_br0\n\
                    = eth1\naddress 52:54:00:00:00:02\ntype 1\nflags 0x1002\nspeed -1\n\
                    device/local_cpulist 0-15\ndriver ixgbe\n\
                    = veth0\naddress 52:54:00:00:00:03\ntype 1\nflags 0x1003\ncarrier 0\n\
                    = br0\naddress 52:54:00:00:00:01\ntype 1\nflags 0x1003\nDEVTYPE=bridge\nlower_eth0\n\
                    = tap0\naddress 52:54:00:00:00:05\ntype 1\ntun_flags 0x1002\n\
                    = gretap0\naddress 00:00:00:00:00:00\ntype 1\n= dummy0\naddress 52:54:00:00:00:06\ntype 1\n\
                    = eth0.10\naddress 52:54:00:00:00:01\ntype 1\nDEVTYPE=vlan\nlower_eth0\n";
        let ends = "3: eth1: <BROADCAST> mtu 1500\n8: gretap0@NONE: <BROADCAST> mtu 1462\n\
            4: veth0@if9: <BROADCAST,MULTICAST,UP> mtu 1500 qdisc noqueue state LOWERLAYERDOWN\n";
        let ports = read(text, ends, "0-15", "", "");
        let names: Vec<&str> = ports.iter().map(|port| &*port.name).collect();
        assert_eq!(names, ["eth0", "eth1", "veth0"]);
        assert_eq!(
            ports[0],
            Port {
                name: "eth0".to_owned(),
                mac: "52:54:00:00:00:01".to_owned(),
                driver: Some("ixgbe".to_owned()),
                is_up: true,
                has_link: true,
                speed_mbps: Some(10_000),
                cpus_near: Some("0-7".to_owned()),
                kept: Some("br0 is on top of it".to_owned()),
                refused: None,
            }
        );
        assert!(!ports[1].is_up && !ports[1].has_link && ports[2].is_up && !ports[2].has_link);
        assert_eq!((ports[1].speed_mbps, &ports[1].cpus_near), (None, &None));
    }

    #[test]
    fn an_address_of_a_link_that_its_owner_set_is_distinguished_from_the_kernels() {
        let mac = "02:00:00:00:00:09";
        let set = |address: &str, mode| {
            let line = format!("3: eth1    inet6 {address}");
            set_link_local(&line, "eth1", mac, mode).is_some()
        };
        let own = "fe80::ff:fe00:9/64 scope link tentative";
        assert!(!set(own, Some("0")) && !set(own, None) && set(own, Some("1")));
        let own = "fe80::5/64 scope link proto kernel_ll";
        assert!(!set(own, Some("3")) && set("fe80::5/64 scope link", Some("0")));
        assert!(!set("fe80::77/64 scope link stable-privacy", Some("2")));
        assert!(!set("2001:db8::5/64 scope global", Some("0")));
        assert_eq!(
            set_link_local("3: eth1 inet6 fe80::5/64", "eth2", mac, None),
            None
        );
    }

    #[test]
    fn a_port_that_network_manager_has_is_freed_by_network_manager() {
        let text = "= eth1\naddress 02:00:00:00:00:09\ntype 1\nflags 0x1003\naddr_gen_mode 1\ndriver ixgbe\n";
        let addresses =
            "3: eth1    inet6 fe80::5/64 scope link noprefixroute \\       valid_lft forever";
        let kept = |states| {
            read(text, "", "", addresses, states)[0]
                .kept
                .clone()
                .unwrap()
        };
        let why = "Linux would drop \"3: eth1 inet6 fe80::5/64 scope link noprefixroute\" if it went down; ";
        let by_it = "NetworkManager has added it; to have the port looked at, run `nmcli device set eth1 managed no` before";
        let by_hand = "to have the port looked at, run `ip address delete fe80::5/64 dev eth1` before, and `ip address add";
        for (states, remedy) in [
            ("lo:unmanaged\neth1:connected\neth10:unmanaged", by_it),
            ("eth1:connecting (getting IP configuration)", by_it),
            ("eth1:unmanaged\neth10:connected", by_hand),
            ("", by_hand),
        ] {
            let kept = kept(states);
            assert!(
                kept.starts_with(&format!("{why}{remedy}")),
                "{states}: {kept}"
            );
        }
    }
}
