//! The ports of hosts that pkt-gen runs on: which stations they are, and whether they may be used.

use fwdlab_packet::MacAddress;

use crate::LabError;
use crate::hosts::dut::no_interface;
use crate::hosts::protocol::Station;
use crate::hosts::reached::refuse_needed;
use crate::hosts::ssh::Connection;
use crate::hosts::{freebsd, linux};
use crate::mechanism::step::owned;

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
                return Err(connection.wrong(why));
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
        Err(connection.wrong(format!(
            "its PATH has no {}; install netmap's pkt-gen there (FreeBSD: the package pkt-gen, or \
             tools/tools/netmap of its source; Linux: apps/pkt-gen of netmap's source), or name another tester \
             (`uses` in [tester])",
            missing.join(" and no ")
        )))
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
    /// `Host` where there is no such port, it is down, or the host is reached by it; those of the connection.
    pub(super) fn station(
        self,
        connection: &Connection,
        interface: &str,
    ) -> Result<Station, LabError> {
        let said = connection.run_all(&self.questions(interface))?;
        let answer = |index: usize| said[index].as_deref().unwrap_or_default().trim();
        let Some(found) = said[0].as_deref() else {
            let list = match self {
                Self::Freebsd => freebsd::NAMES,
                Self::Linux => linux::NAMES,
            };
            return Err(no_interface(connection, interface, &list));
        };
        let mac = match self {
            Self::Freebsd => word_behind(found, "ether"),
            Self::Linux => Some(found.trim()),
        };
        let Some(mac) = mac.filter(|mac| MacAddress::of_station(mac).is_ok()) else {
            return Err(connection.wrong(format!(
                "{interface} has no Ethernet address; name a port of a network card"
            )));
        };
        let is_up = match self {
            Self::Freebsd => is_up_by_ifconfig(found),
            Self::Linux => is_up_by_flags(answer(1)),
        };
        if !is_up {
            return Err(connection.wrong(format!(
                "{interface} is down; bring it up (`ifconfig {interface} up`, on Linux `ip link set {interface} up`)"
            )));
        }
        let network = match self {
            Self::Freebsd => freebsd::network(connection)?,
            Self::Linux => linux::network(connection)?,
        };
        refuse_needed(connection, &network, &[interface], "the DUT's ports")?;
        Ok(Station {
            mac: mac.to_owned(),
            is_virtual: self == Self::Linux && said[2].is_none(),
        })
    }

    /// The MTU of a port; none where it does not tell.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) fn mtu(
        self,
        connection: &Connection,
        interface: &str,
    ) -> Result<Option<u32>, LabError> {
        let question = match self {
            Self::Freebsd => owned(&["ifconfig", interface]),
            Self::Linux => owned(&["cat", &format!("/sys/class/net/{interface}/mtu")]),
        };
        let said = connection.run_all(&[question])?.pop().flatten();
        let said = said.unwrap_or_default();
        let mtu = match self {
            Self::Freebsd => word_behind(&said, "mtu"),
            Self::Linux => Some(said.trim()),
        };
        Ok(mtu.and_then(|mtu| mtu.parse().ok()))
    }

    /// The command that gives a port another MTU.
    pub(super) fn set_mtu(self, interface: &str, mtu: u16) -> String {
        match self {
            Self::Freebsd => format!("ifconfig {interface} mtu {mtu}"),
            Self::Linux => format!("ip link set dev {interface} mtu {mtu}"),
        }
    }

    /// What is asked of a port: itself, its flags, its device.
    fn questions(self, interface: &str) -> [Vec<String>; 3] {
        match self {
            Self::Freebsd => [
                owned(&["ifconfig", interface]),
                owned(&["true"]),
                owned(&["true"]),
            ],
            Self::Linux => {
                let of_port = |name: &str| format!("/sys/class/net/{interface}/{name}");
                [
                    owned(&["cat", &of_port("address")]),
                    owned(&["cat", &of_port("flags")]),
                    owned(&["test", "-e", &of_port("device")]),
                ]
            }
        }
    }
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

    #[test]
    fn a_port_of_freebsd_is_read() {
        assert_eq!(word_behind(IFCONFIG, "ether"), Some("00:1b:21:c4:95:7a"));
        assert!(is_up_by_ifconfig(IFCONFIG));
        assert!(!is_up_by_ifconfig(&IFCONFIG.replace("<UP,", "<")));
        assert_eq!(word_behind(IFCONFIG, "mtu"), Some("1500"));
        assert_eq!(word_behind("", "ether"), None);
    }

    #[test]
    fn flags_of_linux_say_whether_a_port_is_up() {
        assert!(is_up_by_flags("0x1003\n") && !is_up_by_flags("0x1002\n"));
    }
}
