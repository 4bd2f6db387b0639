//! Which cable frames go in by, and which out.

use std::fmt;

use fwdlab_model::System;

use super::facts::{End, HostFacts, Port, Side, natural};
use super::search::{Cable, Cabling, Proof};

/// The two cables of a lab.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Tester's `out` to DUT's `in`.
    pub to_dut: Option<Cable>,
    /// DUT's `out` to tester's `in`.
    pub from_dut: Option<Cable>,
    /// What whoever starts the search has to know of it.
    pub remarks: Vec<String>,
}

impl Layout {
    /// The first two cables that a run takes, in the order of the DUT's names.
    #[must_use]
    pub fn of(dut: &HostFacts, tester: &HostFacts, cabling: &Cabling) -> Self {
        let mut remarks = Vec::new();
        let port_of = |side, name: &str| match side {
            Side::Dut => dut.port(name),
            Side::Tester => tester.port(name),
        };
        let port = |cable: &Cable, side| match side {
            Side::Dut => port_of(side, &cable.dut),
            Side::Tester => port_of(side, &cable.tester),
        };
        let mut cables = cabling.cables.clone();
        cables.sort_by_key(|cable| natural(&cable.dut));
        cables.retain(|cable| {
            let refused = Side::ALL.map(|side| port(cable, side)?.refused.as_deref());
            let refused = refused.into_iter().flatten().next();
            let refused = refused.map(|why| format!("{cable} is left out: {why}"));
            remarks.extend(refused.clone());
            refused.is_none()
        });
        let count = cables.len();
        let mut cables = cables.into_iter();
        let layout = Self {
            to_dut: cables.next(),
            from_dut: cables.next(),
            remarks: Vec::new(),
        };
        let used = || layout.to_dut.iter().chain(&layout.from_dut);
        match (&layout.to_dut, &layout.from_dut) {
            (Some(_), Some(_)) => {
                remarks.push(
                    "the direction is free: frames go in by the first of the DUT's ports, in the order of their names"
                        .to_owned(),
                );
            }
            (Some(cable), None) => remarks.push(format!(
                "one cable was found, {cable}, and a lab needs two; plug in the other one, or write its ports into \
                 the file"
            )),
            _ => remarks.push(
                "no cable was found between the hosts, and a lab needs two; check the cables, or write the ports into \
                 the file"
                    .to_owned(),
            ),
        }
        let spare: Vec<String> = cables.map(|cable| cable.to_string()).collect();
        if !spare.is_empty() {
            remarks.push(format!(
                "{count} cables were found, and a lab takes two; left over: {}",
                spare.join(", ")
            ));
        }
        for cable in used().filter(|cable| cable.by == Proof::Frames) {
            remarks.push(format!(
                "{cable} was found by frames: no link drops where the other end is set down, so that a switch or the \
                 like may be in between; a measurement wants nothing there"
            ));
        }
        for [one, other] in &cabling.loops {
            remarks.push(format!(
                "{one} is cabled to {other}, a port of the same host; cables have to lead from host to host"
            ));
        }
        for group in &cabling.ambiguous {
            remarks.push(format!(
                "which of {} are cabled to each other cannot be told apart: their links drop together, or they all \
                 hear each other as behind a switch; unplug all but two of them and try again, or write the ports \
                 into the file",
                listed(group)
            ));
        }
        let mut alone = cabling.alone.clone();
        // By the others a host is reached: that they lead elsewhere is no news.
        alone.retain(|end| port_of(end.side, &end.port).is_some_and(|port| port.refused.is_none()));
        if !alone.is_empty() {
            remarks.push(format!(
                "nothing of these hosts was found at the other end of {}",
                listed(&alone)
            ));
        }
        let speeds: Vec<u64> = used()
            .flat_map(|cable| Side::ALL.map(|side| port(cable, side)))
            .filter_map(|port| port?.speed_mbps)
            .collect();
        if speeds.iter().max() != speeds.iter().min() {
            remarks.push("the links are not equally fast; the slowest is in the file".to_owned());
        }
        // A run sets up the DUT's ports only.
        let down = used().filter_map(|cable| port(cable, Side::Tester).filter(|port| !port.is_up));
        for port in down {
            remarks.push(format!(
                "{} was down on {}, and is down again; before a run, set it up: {}",
                port.name,
                tester.host,
                set_up(tester.system, &port.name)
            ));
        }
        if tester.system == System::Freebsd && !tester.has("pkt-gen") {
            remarks.push(format!(
                "{} has no pkt-gen, which sends and counts on FreeBSD: pkg install pkt-gen",
                tester.host
            ));
        }
        Self { remarks, ..layout }
    }

    /// Whether a lab can be made of it.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.from_dut.is_some()
    }

    /// The port of a host in each cable: the first of frames that go in.
    pub(super) fn ports(&self, side: Side) -> [Option<&str>; 2] {
        [&self.to_dut, &self.from_dut].map(|cable| {
            let cable = cable.as_ref()?;
            Some(match side {
                Side::Dut => &*cable.dut,
                Side::Tester => &*cable.tester,
            })
        })
    }

    /// The speed of the slowest of its links.
    pub(super) fn speed_mbps(&self, dut: &HostFacts, tester: &HostFacts) -> Option<u64> {
        let speed = |port: Option<&Port>| port?.speed_mbps;
        let cables = self.to_dut.iter().chain(&self.from_dut);
        let speeds = cables.flat_map(|cable| {
            [
                speed(dut.port(&cable.dut)),
                speed(tester.port(&cable.tester)),
            ]
        });
        speeds.flatten().min()
    }
}

/// The command that sets a port up.
fn set_up(system: System, port: &str) -> String {
    match system {
        System::Freebsd => format!("ifconfig {port} up"),
        System::Linux => format!("ip link set dev {port} up"),
    }
}

fn listed(ends: &[End]) -> String {
    let ends = ends.iter().map(ToString::to_string);
    ends.collect::<Vec<_>>().join(", ")
}

/// `DUT's eth1 to tester's eth2`.
impl fmt::Display for Cable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DUT's {} to tester's {}", self.dut, self.tester)
    }
}
