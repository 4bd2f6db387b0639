//! What a forwarder in user space may change of the DUT and leave behind: read before it starts, put back when it has ended.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use crate::netlink::LinkSettings;
use crate::topology::{DUT_IN, DUT_OUT};
use crate::{LabError, Topology};

const PORTS: [&str; 2] = [DUT_IN, DUT_OUT];

/// Files below `/proc/sys/net/ipv4/conf` and `ipv6/conf` that decide whether frames are forwarded.
const FORWARDING: [(&str, &str); 5] = [
    ("ipv4", "forwarding"),
    ("ipv4", "rp_filter"),
    ("ipv4", "accept_local"),
    ("ipv6", "forwarding"),
    ("ipv6", "disable_ipv6"),
];

/// How the DUT is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DutSettings {
    ports: [PortSettings; 2],
    /// The contents of files, in the order in which they are written.
    files: Vec<(String, String)>,
}

/// How one of its ports is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PortSettings {
    has_xdp_program: bool,
    link: LinkSettings,
    transmit_queues: u32,
    /// Which of those that may be changed are on.
    features: BTreeMap<String, bool>,
}

impl DutSettings {
    /// Reads them.
    ///
    /// # Errors
    /// What the kernel does not say.
    pub(super) fn read(topology: &mut Topology) -> Result<Self, LabError> {
        let files = files().map(|file| {
            let value = topology.read_dut_file(Path::new(&file))?;
            Ok::<_, LabError>((file, value.trim().to_owned()))
        });
        let files = files.collect::<Result<_, _>>()?;
        let [dut_in, dut_out] = PORTS.map(|port| PortSettings::read(port, topology));
        Ok(Self {
            ports: [dut_in?, dut_out?],
            files,
        })
    }

    /// Puts back what is another now, and gives the ports their addresses, neighbours and routes. Returns what it could not
    /// put back.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub(super) fn put_back(&self, topology: &mut Topology) -> Result<Vec<String>, LabError> {
        for (port, before) in PORTS.into_iter().zip(&self.ports) {
            before.put_back(port, topology)?;
        }
        for (file, before) in &self.files {
            let file = Path::new(file);
            if topology.read_dut_file(file)?.trim() != before {
                topology.write_dut_file(file, before)?;
            }
        }
        topology.set_up_dut()?;
        Ok(self.changes(&Self::read(topology)?))
    }

    /// What is another now, for a reader.
    fn changes(&self, now: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        for ((port, before), now) in PORTS.into_iter().zip(&self.ports).zip(&now.ports) {
            let mut of_port = |what: &str, before: &dyn Display, now: &dyn Display| {
                note(&mut changes, &format!("{what} of {port}"), before, now);
            };
            let has_program = |has: bool| if has { "there" } else { "none" };
            of_port(
                "the XDP program",
                &has_program(before.has_xdp_program),
                &has_program(now.has_xdp_program),
            );
            of_port("the MTU", &before.link.mtu, &now.link.mtu);
            of_port("the MAC address", &before.link.mac, &now.link.mac);
            of_port(
                "promiscuous mode",
                &on_or_off(before.link.is_promiscuous),
                &on_or_off(now.link.is_promiscuous),
            );
            of_port(
                "reception of all multicast frames",
                &on_or_off(before.link.takes_all_multicast),
                &on_or_off(now.link.takes_all_multicast),
            );
            of_port(
                "the number of transmit queues",
                &before.transmit_queues,
                &now.transmit_queues,
            );
            for (feature, &is_on) in &before.features {
                if let Some(&is_on_now) = now.features.get(feature) {
                    of_port(feature, &on_or_off(is_on), &on_or_off(is_on_now));
                }
            }
        }
        for ((file, before), (_, now)) in self.files.iter().zip(&now.files) {
            note(&mut changes, file, before, now);
        }
        changes
    }
}

impl PortSettings {
    fn read(port: &str, topology: &mut Topology) -> Result<Self, LabError> {
        let has_xdp_program = topology.dut_xdp_program(port)? != 0;
        let link = topology.dut_link_settings(port)?;
        let queues = || fwdlab_sys::transmit_queues(port);
        let transmit_queues = topology.dut().run(queues)??;
        let features = topology.dut().run(|| fwdlab_sys::features(port))??;
        let changeable = features.into_iter().filter(|feature| feature.is_changeable);
        Ok(Self {
            has_xdp_program,
            link,
            transmit_queues,
            features: changeable
                .map(|feature| (feature.name, feature.is_on))
                .collect(),
        })
    }

    fn put_back(&self, port: &str, topology: &mut Topology) -> Result<(), LabError> {
        // Of a forwarder that was killed, the kernel keeps XDP programs, under which features are others.
        if !self.has_xdp_program && topology.dut_xdp_program(port)? != 0 {
            topology.remove_dut_xdp_program(port)?;
        }
        let now = Self::read(port, topology)?;
        if now.link != self.link {
            topology.set_dut_link(port, &self.link)?;
        }
        for is_on in [true, false] {
            let otherwise = self.features.iter().filter(|(feature, was_on)| {
                let is_now = now.features.get(*feature);
                **was_on == is_on && is_now.is_some_and(|&is_now| is_now != is_on)
            });
            let names: Vec<&str> = otherwise.map(|(feature, _)| feature.as_str()).collect();
            if !names.is_empty() {
                let set = || fwdlab_sys::set_features(port, &names, is_on);
                // What the kernel refuses shows when they are read again.
                let _ = topology.dut().run(set)?;
            }
        }
        Ok(())
    }
}

/// The files of all interfaces come first: writing one may change those of the ports.
fn files() -> impl Iterator<Item = String> {
    ["all", DUT_IN, DUT_OUT].into_iter().flat_map(|of| {
        FORWARDING.map(|(family, name)| format!("/proc/sys/net/{family}/conf/{of}/{name}"))
    })
}

fn note(changes: &mut Vec<String>, what: &str, before: &dyn Display, now: &dyn Display) {
    let (before, now) = (before.to_string(), now.to_string());
    if before != now {
        changes.push(format!("{what} (was {before}, is {now})"));
    }
}

fn on_or_off(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fwdlab_packet::MacAddress;

    use super::*;
    use crate::addresses::DUT_IN_MAC;
    use crate::program;

    fn settings() -> DutSettings {
        let features = [("rx-gro", true), ("tx-checksum-sctp", true)];
        let features = features.map(|(name, is_on)| (name.to_owned(), is_on));
        let port = PortSettings {
            has_xdp_program: false,
            link: LinkSettings {
                mac: DUT_IN_MAC,
                mtu: 1500,
                is_promiscuous: false,
                takes_all_multicast: false,
            },
            transmit_queues: 1,
            features: features.into(),
        };
        DutSettings {
            ports: [port.clone(), port],
            files: files().map(|file| (file, "1".to_owned())).collect(),
        }
    }

    #[test]
    fn what_is_another_is_named_with_what_it_was() {
        let before = settings();
        assert!(before.changes(&before).is_empty());
        let mut now = settings();
        let [dut_in, dut_out] = &mut now.ports;
        dut_in.link.mtu = 9000;
        dut_in.features.insert("rx-gro".to_owned(), false);
        // One that the driver no longer lets change is not compared.
        dut_in.features.remove("tx-checksum-sctp");
        dut_out.link.is_promiscuous = true;
        dut_out.transmit_queues = 2;
        now.files[0].1 = "0".to_owned();
        assert_eq!(
            before.changes(&now),
            [
                "the MTU of dut-in (was 1500, is 9000)",
                "rx-gro of dut-in (was on, is off)",
                "promiscuous mode of dut-out (was off, is on)",
                "the number of transmit queues of dut-out (was 1, is 2)",
                "/proc/sys/net/ipv4/conf/all/forwarding (was 1, is 0)",
            ]
        );
    }

    #[test]
    fn what_was_changed_is_put_back() {
        testkit::require_root!();
        let _machine = testkit::own_the_machine();
        let mut topology = Topology::build().unwrap();
        let before = DutSettings::read(&mut topology).unwrap();
        let changed = LinkSettings {
            mac: MacAddress([2, 0, 0, 0, 0, 0x77]),
            mtu: 1400,
            is_promiscuous: true,
            takes_all_multicast: true,
        };
        topology.set_dut_link(DUT_IN, &changed).unwrap();
        let off = || fwdlab_sys::set_features(DUT_OUT, &["tx-checksum-sctp"], false);
        topology.dut().run(off).unwrap().unwrap();
        let forwarding = Path::new("/proc/sys/net/ipv4/conf/all/forwarding");
        topology.write_dut_file(forwarding, "0").unwrap();
        assert_eq!(
            before.put_back(&mut topology).unwrap(),
            Vec::<String>::new()
        );
        assert_eq!(DutSettings::read(&mut topology).unwrap(), before);
    }

    #[test]
    fn routes_that_are_gone_come_back_those_of_the_ports_networks_too() {
        testkit::require_root!();
        testkit::require_tool!("ip");
        let _machine = testkit::own_the_machine();
        let mut topology = Topology::build().unwrap();
        let before = DutSettings::read(&mut topology).unwrap();
        let ip = |topology: &Topology, arguments: &[&str]| {
            let words = [&["ip"][..], arguments].concat();
            let run = || program::run(&words, "");
            topology.dut().run(run).unwrap().unwrap()
        };
        let routes = |topology: &Topology| {
            let routes = ip(topology, &["route", "show", "table", "main"]);
            routes.lines().map(str::to_owned).collect::<BTreeSet<_>>()
        };
        let were = routes(&topology);
        assert!(
            were.iter().any(|route| route.contains("scope link")),
            "{were:?}"
        );
        for family in ["-4", "-6"] {
            ip(&topology, &[family, "route", "flush", "table", "main"]);
        }
        assert!(routes(&topology).is_empty());
        before.put_back(&mut topology).unwrap();
        assert_eq!(routes(&topology), were);
        let inet6 = ip(&topology, &["-6", "route", "show", "table", "main"]);
        let of_network = |port: &str| {
            let mut routes = inet6.lines();
            routes.any(|route| route.contains(&format!("dev {port} proto kernel metric 256")))
        };
        assert!(of_network(DUT_IN) && of_network(DUT_OUT), "{inet6}");
    }
}
