//! The ports of hosts that pkt-gen runs on: which stations they are, and whether they may be used.

use std::net::IpAddr;

use crate::LabError;
use crate::hosts::ssh::Connection;
use crate::hosts::tester::Station;

/// What a host runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    Freebsd,
    Linux,
}

impl System {
    /// That of a host.
    ///
    /// # Errors
    /// `Host` where it is none that pkt-gen is known to run on, or lacks a program; those of the connection.
    pub(super) fn of(connection: &Connection) -> Result<Self, LabError> {
        let name = connection.run(&["uname", "-s"], "")?;
        let system = match name.trim() {
            "FreeBSD" => Self::Freebsd,
            "Linux" => Self::Linux,
            other => {
                let why = format!("it runs {other:?}; pkt-gen's hosts are FreeBSD or Linux");
                return Err(refused(connection, why));
            }
        };
        const MISSING: &str =
            "for program; do command -v \"$program\" > /dev/null || echo \"$program\"; done";
        let missing = connection.run(
            &["sh", "-c", MISSING, "sh", "pkt-gen", "timeout", "head"],
            "",
        )?;
        let missing: Vec<&str> = missing.split_whitespace().collect();
        if missing.is_empty() {
            return Ok(system);
        }
        Err(refused(
            connection,
            format!(
                "its PATH has no {}; install netmap's pkt-gen there (FreeBSD: the package pkt-gen, or \
                 tools/tools/netmap of its source; Linux: apps/pkt-gen of netmap's source), or name another tester \
                 (`uses` in [tester])",
                missing.join(" and no ")
            ),
        ))
    }

    /// What the host is, in a line, and how many CPUs it has.
    pub(super) fn described(self, connection: &Connection) -> Result<(String, u32), LabError> {
        let model: &[&str] = match self {
            Self::Freebsd => &["sysctl", "-n", "hw.model"],
            Self::Linux => &["sed", "-n", "s/^model name[^:]*: //p", "/proc/cpuinfo"],
        };
        let commands = [model, &["getconf", "_NPROCESSORS_ONLN"], &["uname", "-sr"]];
        let said = connection.run_all(&commands.map(owned))?;
        let line = |index: usize| {
            let text = said[index].as_deref().unwrap_or_default();
            text.lines().next().unwrap_or_default().trim().to_owned()
        };
        let cpus = line(1).parse().unwrap_or(1);
        Ok((format!("{}, {cpus} CPUs, {}", line(0), line(2)), cpus))
    }

    /// A port as a station.
    ///
    /// # Errors
    /// `Host` where there is no such port, it is down, a default route leads through it or the connection comes in
    /// there; those of the connection.
    pub(super) fn station(
        self,
        connection: &Connection,
        interface: &str,
    ) -> Result<Station, LabError> {
        let refused = |why: String| refused(connection, why);
        let said = connection.run_all(&self.questions(interface))?;
        let answer = |index: usize| said[index].as_deref().unwrap_or_default().trim();
        let Some(found) = said[0].as_deref() else {
            let list = match self {
                Self::Freebsd => "`ifconfig -l`",
                Self::Linux => "`ip link`",
            };
            return Err(refused(format!(
                "it has no interface {interface}; {list} lists those it has"
            )));
        };
        let mac = match self {
            Self::Freebsd => word_behind(found, "ether"),
            Self::Linux => Some(found.trim()),
        };
        let Some(mac) = mac.filter(|mac| !mac.is_empty()) else {
            return Err(refused(format!(
                "{interface} has no Ethernet address; name a port of a network card"
            )));
        };
        let is_up = match self {
            Self::Freebsd => is_up_by_ifconfig(found),
            Self::Linux => is_up_by_flags(answer(1)),
        };
        if !is_up {
            return Err(refused(format!(
                "{interface} is down; bring it up (`ifconfig {interface} up`, on Linux `ip link set {interface} up`)"
            )));
        }
        let through = match self {
            Self::Freebsd => [2, 3].map(|index| word_behind(answer(index), "interface:")),
            Self::Linux => {
                if said[2].is_none() || said[3].is_none() {
                    return Err(refused(
                        "its default routes are not known; `ip route show default` has to work there"
                            .to_owned(),
                    ));
                }
                [2, 3].map(|index| {
                    answer(index)
                        .lines()
                        .filter_map(|route| word_behind(route, "dev"))
                        .find(|device| *device == interface)
                })
            }
        };
        if through.contains(&Some(interface)) {
            return Err(refused(format!(
                "a default route leads through {interface}, which a load could cut off; name the interfaces between \
                 the DUT's ports in the lab file"
            )));
        }
        if is_among(server_address(answer(4)), answer(5)) {
            return Err(refused(format!(
                "this connection to it comes in at {interface}, and a load would cut it off; reach it through \
                 another interface"
            )));
        }
        Ok(Station {
            mac: mac.to_owned(),
            is_virtual: self == Self::Linux && said[6].is_none(),
        })
    }

    /// What is asked of a port: itself, its flags, the default routes of both families, the connection, the port's
    /// addresses, its device.
    fn questions(self, interface: &str) -> [Vec<String>; 7] {
        let connection = ["sh", "-c", "echo \"$SSH_CONNECTION\""];
        match self {
            Self::Freebsd => [
                owned(&["ifconfig", interface]),
                owned(&["true"]),
                owned(&["route", "-n", "get", "default"]),
                owned(&["route", "-n", "get", "-inet6", "default"]),
                owned(&connection),
                owned(&["ifconfig", interface]),
                owned(&["true"]),
            ],
            Self::Linux => {
                let of_port = |name: &str| format!("/sys/class/net/{interface}/{name}");
                [
                    owned(&["cat", &of_port("address")]),
                    owned(&["cat", &of_port("flags")]),
                    owned(&["ip", "-o", "-4", "route", "show", "default"]),
                    owned(&["ip", "-o", "-6", "route", "show", "default"]),
                    owned(&connection),
                    owned(&["ip", "-o", "address", "show", "dev", interface]),
                    owned(&["test", "-e", &of_port("device")]),
                ]
            }
        }
    }
}

fn refused(connection: &Connection, why: String) -> LabError {
    LabError::Host {
        host: connection.host().to_owned(),
        why,
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The word that stands behind another one.
fn word_behind<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let mut words = text.split_whitespace();
    words.find(|found| *found == word)?;
    words.next()
}

/// `igb2: flags=1008843<UP,BROADCAST,RUNNING,...> metric 0 mtu 1500`
fn is_up_by_ifconfig(text: &str) -> bool {
    let flags = text
        .split_once('<')
        .and_then(|(_, rest)| rest.split_once('>'));
    flags.is_some_and(|(flags, _)| flags.split(',').any(|flag| flag == "UP"))
}

/// `0x1003`
fn is_up_by_flags(text: &str) -> bool {
    let digits = text.trim().trim_start_matches("0x");
    u32::from_str_radix(digits, 16).is_ok_and(|flags| flags & 1 == 1)
}

/// Of client, port, server and port.
fn server_address(connection: &str) -> Option<IpAddr> {
    plain_address(connection.split_whitespace().nth(2)?)
}

/// Whether one of the words of a text is the address, with a prefix length or zone or without.
fn is_among(address: Option<IpAddr>, text: &str) -> bool {
    address.is_some()
        && text
            .split_whitespace()
            .any(|word| plain_address(word) == address)
}

fn plain_address(word: &str) -> Option<IpAddr> {
    word.split(['/', '%']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IFCONFIG: &str = "\
igb2: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500
\toptions=4e120bb<RXCSUM,TXCSUM>
\tether 00:1b:21:c4:95:7a
\tinet 192.168.1.3 netmask 0xffffff00 broadcast 192.168.1.255
\tinet6 fe80::21b:21ff:fec4:957a%igb2 prefixlen 64 scopeid 0x3
\tmedia: Ethernet autoselect (1000baseT <full-duplex>)
\tstatus: active
";
    const ROUTE: &str = "   route to: default\ndestination: default\n       mask: default\n    gateway: 192.168.1.1\n        fib: 0\n  interface: igb0\n      flags: <UP,GATEWAY,DONE,STATIC>\n";

    #[test]
    fn a_port_of_freebsd_is_read() {
        assert_eq!(word_behind(IFCONFIG, "ether"), Some("00:1b:21:c4:95:7a"));
        assert!(is_up_by_ifconfig(IFCONFIG));
        assert!(!is_up_by_ifconfig(&IFCONFIG.replace("<UP,", "<")));
        assert_eq!(word_behind(ROUTE, "interface:"), Some("igb0"));
        assert_eq!(word_behind("", "interface:"), None);
    }

    #[test]
    fn the_port_of_the_connection_is_told() {
        for (connection, is_own) in [
            ("192.168.1.9 50000 192.168.1.3 22", true),
            ("fe80::9%igb2 50000 fe80::21b:21ff:fec4:957a%igb2 22", true),
            ("192.168.1.9 50000 192.168.1.4 22", false),
            ("", false),
        ] {
            let found = is_among(server_address(connection), IFCONFIG);
            assert_eq!(found, is_own, "{connection}");
        }
        let of_linux = "2: eth1    inet 10.99.2.2/24 scope global eth1\\       valid_lft forever";
        assert!(is_among(
            server_address("10.99.2.1 1 10.99.2.2 22"),
            of_linux
        ));
        assert!(is_up_by_flags("0x1003\n") && !is_up_by_flags("0x1002\n"));
    }
}
