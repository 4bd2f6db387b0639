//! The ports of a FreeBSD host, as its programs tell.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::reached::{INTERFACES, blocks, network, stacked};
use super::text::{Interface, ListedNeighbour, interface, interface_counters, static_neighbours};
use crate::LabError;
use crate::cabling::Port;
use crate::hosts::reached::kept;
use crate::hosts::ssh::Connection;
use crate::mechanism::step::owned;

/// Lists the names of a host's interfaces.
pub(in crate::hosts) const NAMES: [&str; 2] = ["ifconfig", "-l"];

/// Lists what interfaces can be made of nothing (`sbin/ifconfig/ifclone.c`): those are no ports.
const CLONERS: [&str; 2] = ["ifconfig", "-C"];

const ARP: [&str; 2] = ["arp", "-an"];
const NDP: [&str; 2] = ["ndp", "-an"];

/// The ports of a host.
///
/// # Errors
/// `Host` where it does not tell, and those of the connection.
pub(in crate::hosts) fn ports(connection: &Connection) -> Result<Vec<Port>, LabError> {
    let questions = [&INTERFACES[..], &CLONERS, &ARP, &NDP].map(owned).to_vec();
    let answers = connection.ask(questions)?;
    let interfaces = answers.needed(&owned(&INTERFACES))?;
    let network = network(connection)?;
    let cloners = answers.get(&owned(&CLONERS)).unwrap_or_default();
    let (mut ports, addresses) = read(interfaces, cloners);
    let neighbours = [&ARP, &NDP].map(|words| answers.get(&owned(words)).unwrap_or_default());
    let neighbours = neighbours.map(static_neighbours).concat();
    let domains = ports
        .iter()
        .map(|port| domain(&port.name))
        .collect::<Vec<_>>();
    let domains = connection.run_all(&domains)?;
    let masks = domains.iter().map(|domain| {
        let domain = domain.as_deref().unwrap_or_default().trim();
        owned(&["cpuset", "-g", "-d", domain])
    });
    let mut masks: Vec<Vec<String>> = masks.collect();
    masks.push(owned(&["sysctl", "-n", "vm.ndomains"]));
    let mut masks = connection.run_all(&masks)?;
    let count = masks
        .pop()
        .flatten()
        .and_then(|count| count.trim().parse::<u32>().ok());
    let is_parted = count.is_some_and(|count| count > 1);
    for ((port, domain), mask) in ports.iter_mut().zip(domains).zip(masks) {
        // Of a device without a domain, cpuset(1) would tell the CPUs of the first: it reads an empty word as 0.
        let mask = mask.filter(|_| is_parted && domain.is_some());
        port.cpus_near = mask.as_deref().and_then(cpus_of);
        let lost = set_neighbour(&port.name, &neighbours, &addresses);
        let lost = lost.map(|it| format!("FreeBSD could drop its neighbour {it} if it went down"));
        port.kept = port.kept.take().or(lost);
        kept(port, &network, &addresses);
    }
    Ok(ports)
}

/// A permanent neighbour of a port; the host's own addresses, which are listed too, are none.
fn set_neighbour<'a>(
    port: &str,
    neighbours: &[ListedNeighbour<'a>],
    addresses: &[(String, IpAddr)],
) -> Option<ListedNeighbour<'a>> {
    let is_own = |it: &ListedNeighbour<'_>| addresses.iter().any(|(_, own)| it.is_of(*own));
    let mut set = neighbours.iter();
    set.find(|it| it.interface == port && !is_own(it)).copied()
}

/// The interfaces of `ifconfig` that have a link.
pub(in crate::hosts) fn linked(text: &str) -> BTreeSet<String> {
    let linked = blocks(text).into_iter().filter_map(|(name, lines)| {
        has_link(&interface(&lines.join("\n"))).then(|| name.to_owned())
    });
    linked.collect()
}

/// How many frames a port has received, by `netstat -i -b -n -d -W -I NAME`.
pub(in crate::hosts) fn received(text: &str) -> Option<u64> {
    interface_counters(text).get("Ipkts").copied()
}

/// Asks for the domain of memory that a device is near (`sys/kern/subr_bus.c`): of `ix0` it is `dev.ix.0.%domain`.
fn domain(name: &str) -> Vec<String> {
    let driver = driver(name);
    let unit = &name[driver.len()..];
    owned(&["sysctl", "-n", &format!("dev.{driver}.{unit}.%domain")])
}

fn driver(name: &str) -> &str {
    name.trim_end_matches(|letter: char| letter.is_ascii_digit())
}

/// The CPUs of `domain 0 mask: 0, 1, 2` (`usr.bin/cpuset/cpuset.c`).
fn cpus_of(text: &str) -> Option<String> {
    let (_, cpus) = text.trim().split_once("mask: ")?;
    Some(cpus.replace(", ", ","))
}

/// Drivers that know tell `active` or `no carrier` (`sbin/ifconfig/ifmedia.c`, `media_status`).
fn has_link(interface: &Interface) -> bool {
    let status = interface.status.as_deref();
    interface.is_up && status.is_none_or(|status| status == "active")
}

/// The ports among the interfaces of `ifconfig`, and the addresses of all of them.
fn read(text: &str, cloners: &str) -> (Vec<Port>, Vec<(String, IpAddr)>) {
    let mut ports = Vec::new();
    let mut addresses = Vec::new();
    let stacked = stacked(text);
    for (name, lines) in blocks(text) {
        let block = lines.join("\n");
        let is = interface(&block);
        let own = is.addresses.iter();
        addresses.extend(own.map(|(address, _)| (name.to_owned(), *address)));
        let driver = driver(name);
        let is_made = cloners.split_whitespace().any(|cloner| cloner == driver);
        let is_on_top = stacked.iter().any(|(upper, _)| *upper == name);
        // With what the link has agreed on, which is no setting.
        let mut media = lines.iter().map(|line| line.trim());
        let media = media.find(|line| line.starts_with("media: "));
        let media = media.unwrap_or_default();
        let upper = stacked.iter().find(|(_, lower)| *lower == name);
        let Some(mac) = is.mac.clone().filter(|_| !is_made && !is_on_top) else {
            continue;
        };
        if !media.contains("Ethernet") {
            continue;
        }
        ports.push(Port {
            name: name.to_owned(),
            mac,
            driver: Some(driver.to_owned()),
            is_up: is.is_up,
            has_link: has_link(&is),
            speed_mbps: speed_mbps(media),
            kept: upper.map(|(upper, _)| format!("{upper} is on top of it")),
            ..Port::default()
        });
    }
    (ports, addresses)
}

/// The speed in `media: Ethernet autoselect (10Gbase-SR <full-duplex>)`, `1000baseT`, `2500Base-T` (`sys/net/if_media.h`).
fn speed_mbps(media: &str) -> Option<u64> {
    let mut words = media.split([' ', '(', ')']).rev();
    words.find_map(|word| {
        let end = word.find(|letter: char| !letter.is_ascii_digit())?;
        let number: u64 = word[..end].parse().ok()?;
        let behind = word[end..].to_ascii_lowercase();
        match behind.strip_prefix('g') {
            Some(behind) if behind.starts_with("base") => number.checked_mul(1000),
            _ if behind.starts_with("base") => Some(number),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_distinguished_from_what_is_made_of_them() {
        let text = "\
ix0: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500
\tether 00:1b:21:c4:95:7a
\tinet 192.0.2.1 netmask 0xffffff00 broadcast 192.0.2.255
\tmedia: Ethernet autoselect (10Gbase-SR <full-duplex,rxpause,txpause>)
\tstatus: active
ix1: flags=8802<BROADCAST,SIMPLEX,MULTICAST> metric 0 mtu 1500
\tether 00:1b:21:c4:95:7b
\tmedia: Ethernet autoselect
\tstatus: no carrier
igb0: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500
\tether 00:1b:21:c4:95:7c
\tmedia: Ethernet autoselect (1000baseT <full-duplex>)
lo0: flags=1008049<UP,LOOPBACK,RUNNING,MULTICAST,LOWER_UP> metric 0 mtu 16384
\tinet 127.0.0.1 netmask 0xff000000
bridge0: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500
\tether 58:9c:fc:10:ff:ed
\tmember: ix1 flags=143<LEARNING,DISCOVER,AUTOEDGE,AUTOPTP>
tap0: flags=8802<BROADCAST,SIMPLEX,MULTICAST> metric 0 mtu 1500
\tether 58:9c:fc:10:2f:b9
\tmedia: Ethernet 1000baseT <full-duplex>
ix0.7: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500
\tether 00:1b:21:c4:95:7a
\tvlan: 7 vlanproto: 802.1q vlanpcp: 0 parent interface: ix0
\tmedia: Ethernet autoselect (10Gbase-SR <full-duplex>)
";
        let (ports, addresses) = read(text, "bridge gif lagg lo tap tun vlan\n");
        let seen: Vec<_> = ports
            .iter()
            .map(|port| (&*port.name, port.is_up, port.has_link, port.speed_mbps))
            .collect();
        let expected = [
            ("ix0", true, true, Some(10_000)),
            ("ix1", false, false, None),
            ("igb0", true, true, Some(1000)),
        ];
        assert_eq!(seen, expected);
        let kept: Vec<_> = ports.iter().map(|port| port.kept.as_deref()).collect();
        let on_top = [
            Some("ix0.7 is on top of it"),
            Some("bridge0 is on top of it"),
            None,
        ];
        assert_eq!(kept, on_top);
        assert_eq!(addresses.len(), 2);
        assert_eq!(linked(text).len(), 5, "{:?}", linked(text));
        assert_eq!(domain("ix0").last().unwrap(), "dev.ix.0.%domain");
        let cpus = cpus_of("domain 0 mask: 0, 1, 2\n");
        assert_eq!(cpus.as_deref(), Some("0,1,2"));
    }

    #[test]
    fn a_neighbour_that_somebody_set_is_distinguished_from_a_ports_own_addresses() {
        let text = "fe80::1%ix0 00:1b:21:c4:95:7a ix0 permanent R\n\
                    fe80::9%ix1 00:1b:21:c4:95:7b ix1 permanent R Rp\n";
        let neighbours = static_neighbours(text);
        let own = [("ix0".to_owned(), "fe80::1".parse().unwrap())];
        let of = |port: &str| set_neighbour(port, &neighbours, &own).map(|it| it.to_string());
        assert_eq!(of("ix0"), None);
        let set = "fe80::9%ix1 00:1b:21:c4:95:7b ix1 published";
        assert_eq!(of("ix1").as_deref(), Some(set));
    }

    #[test]
    fn speeds_are_read_of_media() {
        for (media, mbps) in [
            (
                "media: Ethernet autoselect (2500Base-T <full-duplex>)",
                Some(2500),
            ),
            ("media: Ethernet 25GBase-CR <full-duplex>", Some(25_000)),
            (
                "media: Ethernet autoselect (100GBase-CR4 <full-duplex>)",
                Some(100_000),
            ),
            ("media: Ethernet autoselect (none)", None),
            ("", None),
        ] {
            assert_eq!(speed_mbps(media), mbps, "{media}");
        }
    }
}
