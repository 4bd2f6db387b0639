//! What is known of a host and its ports.

use std::fmt;

use fwdlab_model::System;
use serde::Serialize;

/// A host of the lab to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The one that forwards.
    Dut,
    /// The one that sends and counts.
    Tester,
}

impl Side {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Dut, Self::Tester];
}

/// A port of one of the hosts: an end of a cable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct End {
    /// The host.
    pub side: Side,
    /// Its port.
    pub port: String,
}

/// A host as it tells about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostFacts {
    /// As ssh is told.
    pub host: String,
    /// What it runs.
    #[serde(serialize_with = "word")]
    pub system: System,
    /// `Linux 6.12.30`.
    pub release: String,
    /// How many CPUs are online.
    pub cpus: u32,
    /// Those that a lab may ask for and that are installed.
    pub programs: Vec<String>,
    /// What binds factors in a lab file that cannot be set there, each with why and what to do.
    #[serde(skip)]
    pub unset: Vec<(String, String)>,
    /// Its ports of Ethernet, in the order of their names.
    pub ports: Vec<Port>,
}

fn word<S: serde::Serializer>(system: &System, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match system {
        System::Freebsd => "freebsd",
        System::Linux => "linux",
    })
}

/// A port of Ethernet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its station.
    pub mac: String,
    /// What drives it, where the host tells.
    pub driver: Option<String>,
    /// Whether its owner has it up.
    pub is_up: bool,
    /// Whether it has a link; a port that is down tells of none.
    pub has_link: bool,
    /// How fast its link is.
    pub speed_mbps: Option<u64>,
    /// The CPUs near it as the host lists them, where it has others too.
    pub cpus_near: Option<String>,
    /// Why it is not set down.
    pub kept: Option<String>,
    /// Why a run refuses it.
    pub refused: Option<String>,
}

impl HostFacts {
    /// The port of a name.
    pub(crate) fn port(&self, name: &str) -> Option<&Port> {
        self.ports.iter().find(|port| port.name == name)
    }

    /// Whether a program is installed.
    pub(crate) fn has(&self, program: &str) -> bool {
        self.programs.iter().any(|known| known == program)
    }

    /// Whether two logins led to the same machine: it has the same stations under the same names.
    #[must_use]
    pub fn is_machine_of(&self, other: &Self) -> bool {
        let stations = |host: &Self| -> Vec<(String, String)> {
            let ports = host.ports.iter();
            ports
                .map(|port| (port.name.clone(), port.mac.clone()))
                .collect()
        };
        !self.ports.is_empty() && stations(self) == stations(other)
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dut => "DUT",
            Self::Tester => "tester",
        })
    }
}

/// `DUT's eth1`.
impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}'s {}", self.side, self.port)
    }
}

/// A name in the order in which people count: `ix2` is in front of `ix10`.
pub(crate) fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts: Vec<(String, u64)> = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digit = |letter: char| letter.is_ascii_digit();
        let (text, behind) = rest.split_at(rest.find(digit).unwrap_or(rest.len()));
        let end = behind.find(|letter| !digit(letter)).unwrap_or(behind.len());
        let (number, behind) = behind.split_at(end);
        parts.push((text.to_owned(), number.parse().unwrap_or(0)));
        rest = behind;
    }
    parts
}
