//! Which of the DUT's interfaces faces whom, as its configuration sets and the drawing tell.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use super::drawing::{Drawing, Port};
use crate::config_file::SettingValue;
use crate::{ConfigKind, ConfigSet};

/// Interfaces that are made of nothing, so that no cable ends in them.
const NO_PORTS: &[&str] = &[
    "bridge", "epair", "gif", "gre", "ipsec", "lagg", "lo", "ovpn", "tap", "tun", "vlan", "vxlan",
    "wg",
];
/// The first 15 bits of the addresses for benches: 198.18.0.0/15 (RFC 2544).
const BENCH_NET: Net = Net {
    address: Ipv4Addr::new(198, 18, 0, 0),
    length: 15,
};

/// A net: an address of it, and the bits that are the net's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Net {
    address: Ipv4Addr,
    length: u8,
}

impl Net {
    fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/').unwrap_or((text, "24"));
        let length = length.parse().ok().filter(|length| *length <= 32)?;
        let address = address.parse().ok()?;
        Some(Self { address, length })
    }

    fn contains(self, address: Ipv4Addr) -> bool {
        let mask = u32::MAX
            .checked_shl(32 - u32::from(self.length))
            .unwrap_or(0);
        u32::from(self.address) & mask == u32::from(address) & mask
    }
}

/// What is looked for: the port that faces one of the two ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side<'a> {
    /// `SENDER_LAB_IP` or `RECEIVER_LAB_IP`.
    pub(super) address: Option<Ipv4Addr>,
    /// The first address of its flows.
    pub(super) flows: Option<Ipv4Addr>,
    /// The MAC address of the DUT's port, where the configuration says.
    pub(super) mac: Option<&'a str>,
}

/// What was found out about a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Its interface, and how that is known.
    Known {
        interface: String,
        how: String,
        /// What the drawing has instead.
        drawn: Option<Port>,
    },
    /// Why it is not known.
    Unknown(String),
}

impl Found {
    pub(super) fn interface(&self) -> Option<&str> {
        match self {
            Self::Known { interface, .. } => Some(interface),
            Self::Unknown(_) => None,
        }
    }
}

/// The DUT's two ports: the one that faces the sender, and the one that faces the receiver.
pub(super) fn ports<'s>(
    sets: impl Iterator<Item = (&'s str, &'s ConfigSet)>,
    drawing: &Drawing,
    sender: Side<'_>,
    receiver: Side<'_>,
) -> [Found; 2] {
    let sets: Vec<(&str, Network)> = sets.map(|(name, set)| (name, Network::of(set))).collect();
    let mut of_sets = [BTreeMap::new(), BTreeMap::new()];
    for (name, network) in &sets {
        for (named, found) in of_sets.iter_mut().zip(network.ports(sender, receiver)) {
            if let Some((port, how)) = found {
                named.entry(port).or_insert((*name, how));
            }
        }
    }
    let ingress = sender.mac.and_then(|mac| drawing.port_of(mac));
    let egress = match receiver.mac {
        Some(mac) => drawing.port_of(mac),
        None => ingress.and_then(|port| drawing.other(port)),
    };
    let [of_sets_in, of_sets_out] = of_sets;
    let mut ports = [
        one_of(of_sets_in, ingress.cloned()),
        one_of(of_sets_out, egress.cloned()),
    ];
    let names = [0, 1].map(|side: usize| ports[side].interface().map(str::to_owned));
    if let [Some(ingress), Some(egress)] = &names
        && ingress == egress
    {
        let why = format!("both ports would be {ingress}");
        ports = [Found::Unknown(why.clone()), Found::Unknown(why)];
    }
    ports
}

/// What sets and drawing say together; `named` are interfaces with the first set that names them.
fn one_of(named: BTreeMap<String, (&str, String)>, drawn: Option<Port>) -> Found {
    let mut entries = named.into_iter();
    match (entries.next(), entries.next(), drawn) {
        (None, _, None) => Found::Unknown("neither a set nor the drawing tells it".into()),
        (None, _, Some(drawn)) => Found::Known {
            how: format!("As the drawing in line {} has it.", drawn.line),
            interface: drawn.interface,
            drawn: None,
        },
        (Some((interface, (set, how))), None, drawn) => Found::Known {
            how: format!("{how}, by rc.conf of {set}."),
            drawn: drawn.filter(|drawn| drawn.interface != interface),
            interface,
        },
        (Some((one, (set, _))), Some((other, (other_set, _))), _) => Found::Unknown(format!(
            "the sets disagree: {one} in {set}, {other} in {other_set}"
        )),
    }
}

/// The interfaces and routes of a configuration set, as far as `rc.conf` says them.
#[derive(Debug, Default)]
struct Network {
    interfaces: Vec<(String, Net)>,
    /// A net, and the gateway it is behind.
    routes: Vec<(Net, Ipv4Addr)>,
}

impl Network {
    fn of(set: &ConfigSet) -> Self {
        let mut network = Self::default();
        let is_dut = |machine: &str| matches!(machine, "" | "dut");
        let settings: BTreeMap<String, String> = set
            .settings()
            .into_iter()
            .filter(|(key, _)| key.kind == ConfigKind::Rc && is_dut(key.machine))
            .filter_map(|(key, setting)| match setting.value {
                SettingValue::Text(text) => Some((key.name.to_owned(), text)),
                SettingValue::Secret(_) => None,
            })
            .collect();
        let vlan_parents: BTreeSet<&str> = settings
            .keys()
            .filter_map(|name| name.strip_prefix("vlans_"))
            .collect();
        for (name, value) in &settings {
            if let Some(interface) = name.strip_prefix("ifconfig_") {
                let words: Vec<&str> = value.split_whitespace().collect();
                let behind = |word: &str| {
                    let at = words.iter().position(|found| *found == word)?;
                    words.get(at + 1).copied()
                };
                let address = behind("inet").or(words.first().copied());
                let Some(net) = address.and_then(Net::parse) else {
                    continue;
                };
                // `ix0_2` is a VLAN of ix0, and a bridge ends in the cables of its members.
                let parent = interface
                    .rsplit_once('_')
                    .map(|(parent, _)| parent)
                    .filter(|parent| vlan_parents.contains(parent));
                let port = parent.or_else(|| behind("addm")).unwrap_or(interface);
                if is_port(port) {
                    network.interfaces.push((port.to_owned(), net));
                }
            } else if name.starts_with("route_") {
                let words: Vec<&str> = value.split_whitespace().collect();
                if let ["-net", net, gateway] | [net, gateway] = words.as_slice()
                    && let (Some(net), Ok(gateway)) = (Net::parse(net), gateway.parse())
                {
                    network.routes.push((net, gateway));
                }
            }
        }
        network
    }

    /// The two ports, each with how it is known.
    fn ports(&self, sender: Side<'_>, receiver: Side<'_>) -> [Option<(String, String)>; 2] {
        let mut ports = [sender, receiver].map(|side| self.facing(side));
        for (missing, known) in [(0, 1), (1, 0)] {
            if let (None, Some((other, _))) = (&ports[missing], &ports[known]) {
                let other = other.clone();
                ports[missing] = self.only_other(&other);
            }
        }
        ports
    }

    fn facing(&self, side: Side<'_>) -> Option<(String, String)> {
        if let Some(address) = side.address
            && let Some(interface) = self.in_net_of(address)
        {
            return Some((interface.to_owned(), format!("In the net of {address}")));
        }
        let flows = side.flows?;
        let (_, gateway) = self
            .routes
            .iter()
            .filter(|(net, _)| net.contains(flows))
            .max_by_key(|(net, _)| net.length)?;
        let interface = self.in_net_of(*gateway)?;
        Some((interface.to_owned(), format!("On the route to {flows}")))
    }

    /// The interface of which that holds, where it is one; it may have several nets.
    fn only(&self, is_meant: impl Fn(&str, Net) -> bool) -> Option<&str> {
        let names = self.interfaces.iter();
        let names = names.filter(|(name, net)| is_meant(name, *net));
        let names: BTreeSet<&str> = names.map(|(name, _)| name.as_str()).collect();
        names.first().copied().filter(|_| names.len() == 1)
    }

    /// The interface in the net of an address, where that is one.
    fn in_net_of(&self, address: Ipv4Addr) -> Option<&str> {
        self.only(|_, net| net.contains(address))
    }

    fn only_other(&self, known: &str) -> Option<(String, String)> {
        let other = self.only(|name, net| name != known && BENCH_NET.contains(net.address))?;
        let how = "The only other port in 198.18.0.0/15";
        Some((other.to_owned(), how.to_owned()))
    }
}

/// Whether a cable can end in an interface: `ix0`, and neither `wg0` nor `ix0_alias0`.
fn is_port(name: &str) -> bool {
    let driver = name.trim_end_matches(|last: char| last.is_ascii_digit());
    driver.len() < name.len()
        && !driver.is_empty()
        && !NO_PORTS.contains(&driver)
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(rc_conf: &str) -> ConfigSet {
        let mut set = ConfigSet::default();
        set.read("etc/rc.conf", rc_conf.as_bytes());
        set
    }

    fn side(address: &str, flows: &str) -> Side<'static> {
        Side {
            address: address.parse().ok(),
            flows: flows.parse().ok(),
            mac: None,
        }
    }

    fn found(rc_confs: &[&str], sender: Side<'_>, receiver: Side<'_>) -> [Found; 2] {
        let sets: Vec<ConfigSet> = rc_confs.iter().map(|text| set(text)).collect();
        let named = ["one", "two"].into_iter().zip(&sets);
        ports(named, &Drawing::default(), sender, receiver)
    }

    fn interfaces(rc_conf: &str, sender: Side<'_>, receiver: Side<'_>) -> [Option<String>; 2] {
        found(&[rc_conf], sender, receiver).map(|port| port.interface().map(str::to_owned))
    }

    #[test]
    fn ports_are_told_by_nets_routes_and_by_being_left_over() {
        let both = [Some("ix0".to_owned()), Some("ix1".to_owned())];
        let plain = "ifconfig_igb0=\"inet 192.168.1.4/24\"\nifconfig_ix0=\"inet 198.18.0.4/24 -tso4\"\n\
                     ifconfig_ix0_ipv6=\"inet6 2001:2::4\"\nifconfig_ix1=\"198.19.0.4/24\"\n\
                     route_receiver=\"-net 198.19.0.0/16 198.19.0.2\"\n";
        let sender = side("198.18.0.2", "198.18.10.1");
        for receiver in [
            side("198.19.0.2", ""),
            // The far end of a tunnel, and only the flows tell.
            side("", "198.19.10.1"),
            side("198.18.77.7", ""),
        ] {
            assert_eq!(interfaces(plain, sender, receiver), both);
        }
        let vlans = "vlans_ix0=\"2\"\nifconfig_ix0_2=\"inet 198.18.0.4/24\"\n\
                     ifconfig_bridge0=\"inet 198.19.0.4/24 addm ix1 up\"\nifconfig_wg0=\"inet 198.18.2.4/24\"\n";
        assert_eq!(interfaces(vlans, sender, side("198.19.0.2", "")), both);
    }

    #[test]
    fn what_is_not_clear_is_not_guessed() {
        let sender = side("198.18.0.2", "");
        let receiver = side("198.19.0.2", "");
        let [ingress, egress] = found(
            &[
                "ifconfig_ix0=\"inet 198.18.0.4/24\"\n",
                "ifconfig_ixl0=\"inet 198.18.0.4/24\"\n",
            ],
            sender,
            receiver,
        );
        let why = "the sets disagree: ix0 in one, ixl0 in two";
        assert_eq!(ingress, Found::Unknown(why.into()));
        let why = "neither a set nor the drawing tells it";
        assert_eq!(egress, Found::Unknown(why.into()));
        let both = found(&["ifconfig_ix0=\"inet 198.18.0.4/15\"\n"], sender, receiver);
        let why = "both ports would be ix0";
        assert_eq!(
            both,
            [Found::Unknown(why.into()), Found::Unknown(why.into())]
        );
    }

    proptest! {
        #[test]
        fn any_configuration_is_read(text in "(ifconfig_ix[01]=|route_a=|vlans_ix0=|[\"/ \n-]|inet|-net|addm|198[.]1[89][.]0[.]0|[0-9_a-z]){0,60}") {
            let sender = side("198.18.0.2", "198.18.10.1");
            found(&[&text, &text], sender, side("198.19.0.2", "198.19.10.1"));
        }

        #[test]
        fn a_net_holds_its_own_address(address: Ipv4Addr, length in 0_u8..=32) {
            let net = Net { address, length };
            prop_assert!(net.contains(address));
        }
    }
}
