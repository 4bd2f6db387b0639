//! What the variables of traffic ask for, as an experiment says it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;

use fwdlab_archive::Place;
use fwdlab_model::{AddressFamily, FRAME_SIZE, FirstAddresses, PortRange};
use fwdlab_pkt_gen::AddressRange;

use super::account::Account;
use super::expand::{Environment, Value};
use super::{Note, SourceTraffic};
use crate::Assignment;

/// Bytes of a frame check sequence, which netmap leaves out of its sizes.
const FCS_BYTES: u64 = 4;

/// The traffic of one experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Traffic {
    /// The sets of pkt-gen that ask for it; none where the configuration of the lab does.
    pub(super) sets: Vec<String>,
    /// By family, what its flows run through.
    pub(super) families: BTreeMap<AddressFamily, Flows>,
    /// Bytes of a frame with its check sequence.
    pub(super) frame_bytes: u64,
}

/// What the flows of a family run through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Flows {
    pub(super) source: Option<AddressRange>,
    pub(super) destination: Option<AddressRange>,
}

impl Flows {
    /// The traffic that an experiment on them asks for, as far as its flows go.
    fn asked(&self, family: AddressFamily) -> fwdlab_model::Traffic {
        let mut asked = fwdlab_model::Traffic::default();
        let count = |range| u32::try_from(addresses(range)).unwrap_or(u32::MAX);
        let between = |(first, last)| PortRange { first, last };
        if let Some(range) = &self.source {
            asked.sources = count(range);
            asked.source_ports = ports(range).map_or(asked.source_ports, between);
        }
        if let Some(range) = &self.destination {
            asked.destinations = count(range);
            asked.destination_ports = ports(range).map_or(asked.destination_ports, between);
        }
        let first = |range: &Option<AddressRange>| range.as_ref().map(|range| range.first);
        let first = FirstAddresses {
            source: first(&self.source),
            destination: first(&self.destination),
        };
        asked.first_addresses = [(family, first)].into();
        asked
    }
}

/// What every set asks for, sets that differ in their family alone as one; what no experiment can ask for is
/// left out, with a note.
pub(super) fn traffics(
    config: (&Path, &[Assignment]),
    sets: &[SourceTraffic],
    account: &mut Account,
) -> Vec<Traffic> {
    let own = SourceTraffic::default();
    let sets = if sets.is_empty() {
        std::slice::from_ref(&own)
    } else {
        sets
    };
    let mut traffics: Vec<Traffic> = Vec::new();
    for set in sets {
        // The scripts read the set first: what it sets stays, because the lab only has defaults for it.
        let mut environment = Environment::default();
        let mut notes = Vec::new();
        environment.read(&set.path, &set.variables, &mut notes);
        // What is to be said of the lab's own lines was said when they were read for themselves.
        environment.read(config.0, config.1, &mut Vec::new());
        account.notes.append(&mut notes);
        let Some(traffic) = traffic(set, config.0, &environment, account) else {
            continue;
        };
        match traffics.iter_mut().find_map(|other| {
            let both = other.with(&traffic)?;
            Some((other, both))
        }) {
            Some((other, both)) => *other = both,
            None => traffics.push(traffic),
        }
    }
    traffics
}

impl Traffic {
    /// Both as one, where they differ in their family alone.
    fn with(&self, other: &Self) -> Option<Self> {
        let is_other = |family: &AddressFamily| !self.families.contains_key(family);
        if self.frame_bytes != other.frame_bytes || !other.families.keys().all(is_other) {
            return None;
        }
        let families = self.families.iter().chain(&other.families);
        let both = Self {
            sets: self.sets.iter().chain(&other.sets).cloned().collect(),
            families: families
                .map(|(family, flows)| (*family, flows.clone()))
                .collect(),
            frame_bytes: self.frame_bytes,
        };
        both.is_one().then_some(both)
    }

    /// Whether all families have as many addresses, and the same ports as far as they name any.
    fn is_one(&self) -> bool {
        are_alike(self.sources()) && are_alike(self.destinations())
    }

    fn sources(&self) -> impl Iterator<Item = &AddressRange> {
        let families = self.families.values();
        families.filter_map(|flows| flows.source.as_ref())
    }

    fn destinations(&self) -> impl Iterator<Item = &AddressRange> {
        let families = self.families.values();
        families.filter_map(|flows| flows.destination.as_ref())
    }

    /// The source ports, of the first family that names some.
    pub(super) fn source_ports(&self) -> Option<(u16, u16)> {
        self.sources().find_map(ports)
    }

    /// As [`Traffic::source_ports`].
    pub(super) fn destination_ports(&self) -> Option<(u16, u16)> {
        self.destinations().find_map(ports)
    }
}

/// Whether ranges of several families have as many addresses, and the same ports as far as they name any.
fn are_alike<'r>(ranges: impl Iterator<Item = &'r AddressRange>) -> bool {
    let ranges: Vec<&AddressRange> = ranges.collect();
    let counts: BTreeSet<u128> = ranges.iter().map(|range| addresses(range)).collect();
    let ports: BTreeSet<(u16, u16)> = ranges.iter().filter_map(|range| ports(range)).collect();
    counts.len() <= 1 && ports.len() <= 1
}

/// How many addresses a range has, whatever its ports are.
pub(super) fn addresses(range: &AddressRange) -> u128 {
    let without_ports = AddressRange {
        first_port: None,
        last_port: None,
        ..range.clone()
    };
    without_ports.endpoints()
}

/// The first and the last port; without a last one there is one.
fn ports(range: &AddressRange) -> Option<(u16, u16)> {
    let first = range.first_port?;
    Some((first, range.last_port.unwrap_or(first)))
}

fn traffic(
    set: &SourceTraffic,
    config: &Path,
    environment: &Environment,
    account: &mut Account,
) -> Option<Traffic> {
    let place = || Place {
        path: if set.name.is_some() {
            set.path.clone()
        } else {
            config.to_owned()
        },
        line: None,
    };
    let family = environment.value("AF").and_then(|value| {
        let family = match value.text.as_str() {
            "4" => Some(AddressFamily::Inet),
            "6" => Some(AddressFamily::Inet6),
            _ => None,
        };
        if let Some(family) = family {
            account.uses("AF", value, format!("families of [traffic]: {family}"));
        } else {
            account.refuses("AF", value, "no address family; give 4 or 6");
        }
        family
    });
    let mut range = |name: &str, what: &str| {
        let value = environment.value(name)?;
        let Some(range) = plain(value).and_then(AddressRange::parse) else {
            account.refuses(name, value, "no addresses; give the first and the last one");
            return None;
        };
        account.uses(name, value, format!("{what} of [traffic]"));
        Some((range, value.place.clone()))
    };
    let source = range("SENDER_LAB_NET", "sources and source_ports");
    let destination = range("RECEIVER_LAB_NET", "destinations and destination_ports");
    let of_ranges = [&source, &destination]
        .into_iter()
        .flatten()
        .map(|(range, _)| family_of(range.first))
        .next();
    let family = family.or(of_ranges).unwrap_or(AddressFamily::Inet);
    let mut of_family = |range: Option<(AddressRange, Place)>| {
        let (range, place) = range?;
        if family_of(range.first) == family {
            return Some(range);
        }
        let text = format!("no addresses of {family}, which AF asks for; the lab chooses them");
        account.notes.push(Note::at(place, text));
        None
    };
    let flows = Flows {
        source: of_family(source),
        destination: of_family(destination),
    };
    if let Err(fault) = flows.asked(family).check(family) {
        let text = format!("no experiment: {fault}; {}", fault.advice());
        account.notes.push(Note::at(place(), text));
        return None;
    }
    let frame_bytes = frame_bytes(environment, family, account, &place())?;
    Some(Traffic {
        sets: set.name.iter().cloned().collect(),
        families: [(family, flows)].into(),
        frame_bytes,
    })
}

/// IPv6 addresses have quotes of their own, because a second shell reads them.
fn plain(value: &Value) -> Option<&str> {
    Some(value.text.trim_matches('"')).filter(|_| !value.is_open)
}

fn family_of(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() {
        AddressFamily::Inet
    } else {
        AddressFamily::Inet6
    }
}

/// Bytes of a frame as an experiment has them; none where it cannot.
fn frame_bytes(
    environment: &Environment,
    family: AddressFamily,
    account: &mut Account,
    place: &Place,
) -> Option<u64> {
    let smallest = u64::from(*FRAME_SIZE.start());
    let Some(value) = environment.value("PKT_SIZE") else {
        let text = format!("no PKT_SIZE: frames of {smallest} bytes");
        account.notes.push(Note::at(place.clone(), text));
        return Some(smallest);
    };
    let Some(packet_bytes) = plain(value).and_then(|text| text.parse::<u64>().ok()) else {
        account.refuses(
            "PKT_SIZE",
            value,
            "no size; give bytes of a frame without its check sequence",
        );
        return Some(smallest);
    };
    let bytes = packet_bytes.saturating_add(FCS_BYTES);
    if bytes > u64::from(*FRAME_SIZE.end()) {
        let text = format!(
            "no experiment: frames of {bytes} bytes; fwdlab sends at most {}",
            FRAME_SIZE.end()
        );
        account.notes.push(Note::at(value.place.clone(), text));
        return None;
    }
    let is_smallest = bytes <= u64::from(family.smallest_frame_bytes());
    let bytes = if is_smallest { smallest } else { bytes };
    let why = match family {
        AddressFamily::Inet6 if is_smallest => ", the smallest, which is 66 over IPv6",
        AddressFamily::Inet if packet_bytes + FCS_BYTES < smallest => ", to which Ethernet pads it",
        _ => " with the check sequence",
    };
    account.uses(
        "PKT_SIZE",
        value,
        format!("frame_size of [traffic]: {bytes}{why}"),
    );
    Some(bytes)
}
