//! Which of the DUT's interfaces faces whom, as its configuration sets and the drawing tell.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::addresses::{Hop, Net, Nets, route};
use super::drawing::{Drawing, Port};
use crate::config_file::SettingValue;
use crate::config_set::machine;
use crate::{ConfigKind, ConfigSet, Effective};

/// Interfaces that are made of nothing, so that no cable ends in them.
const NO_PORTS: &[&str] = &[
    "bridge", "epair", "gif", "gre", "ipsec", "lagg", "lo", "ovpn", "tap", "tun", "vlan", "vxlan",
    "wg",
];
/// The addresses for benches (RFC 2544, RFC 5180).
const BENCH_NETS: [Net; 2] = [
    Net::inet(Ipv4Addr::new(198, 18, 0, 0), 15),
    Net::inet6(Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0), 48),
];

/// What is looked for: the port that faces one of the two ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side<'a> {
    /// `SENDER_LAB_IP` or `RECEIVER_LAB_IP`.
    pub(super) address: Option<IpAddr>,
    /// The first address of its flows.
    pub(super) flows: Option<IpAddr>,
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
pub(super) fn ports(
    sets: &[(&str, Network)],
    drawing: &Drawing,
    sender: Side<'_>,
    receiver: Side<'_>,
) -> [Found; 2] {
    let mut of_sets = [BTreeMap::new(), BTreeMap::new()];
    for (name, network) in sets {
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
pub(super) struct Network {
    interfaces: Vec<(String, Net)>,
    routes: Vec<(Net, Hop)>,
    pub(super) not_read: Vec<NotRead>,
}

/// What of an `rc.conf` may have an address, and was not understood.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotRead {
    /// The file, from the set's folder.
    pub(super) path: String,
    /// The line, from 1.
    pub(super) line: usize,
    /// What it is; nothing that is a secret.
    pub(super) what: String,
}

/// What a variable of `rc.conf` says of addresses.
enum Variable<'n> {
    /// Addresses of an interface.
    Interface(&'n str, Nets),
    Route(Result<(Net, Hop), String>),
}

impl<'n> Variable<'n> {
    /// None where it says nothing of addresses.
    fn of(name: &'n str, value: &str) -> Option<Self> {
        if name.starts_with("route_") || name.starts_with("ipv6_route_") {
            return Some(Self::Route(route(value)));
        }
        if matches!(name, "defaultrouter" | "ipv6_defaultrouter") {
            let is_set = !value.is_empty() && !value.eq_ignore_ascii_case("no");
            return is_set.then(|| Self::Route(route(&format!("default {value}"))));
        }
        if let Some(interface) = name.strip_prefix("ipv4_addrs_") {
            let words = value.split_whitespace();
            let arguments: String = words.map(|word| format!("inet {word} ")).collect();
            return Some(Self::Interface(interface, Nets::of(&arguments, true)));
        }
        if let Some(interface) = name.strip_prefix("ipv6_prefix_") {
            return Some(Self::Interface(interface, Nets::of_prefixes(value)));
        }
        let rest = name
            .strip_prefix("ifconfig_")
            .or_else(|| name.strip_prefix("ipv6_ifconfig_"))?;
        if rest.ends_with("_name") || rest.ends_with("_descr") {
            return None;
        }
        let interface = rest.strip_suffix("_ipv6").unwrap_or(rest);
        let of_alias = interface.rsplit_once("_alias").filter(|(_, number)| {
            *number == "es" || number.starts_with(|first: char| first.is_ascii_digit())
        });
        let has_ranges = of_alias.is_some();
        let interface = of_alias.map_or(interface, |(interface, _)| interface);
        Some(Self::Interface(interface, Nets::of(value, has_ranges)))
    }
}

impl Network {
    pub(super) fn of(set: &ConfigSet) -> Self {
        let mut network = Self::default();
        let is_dut = |machine: &str| matches!(machine, "" | "dut");
        let settings: Vec<_> = set
            .settings()
            .into_iter()
            .filter(|(key, _)| key.kind == ConfigKind::Rc && is_dut(key.machine))
            .map(|(key, setting)| (key.name, setting))
            .collect();
        let children = children(&settings);
        for (name, setting) in &settings {
            let mut not_read = |what: &str| {
                network.not_read.push(NotRead {
                    path: setting.path.to_owned(),
                    line: setting.line,
                    what: format!("{name}: {what}"),
                });
            };
            let SettingValue::Text(value) = &setting.value else {
                if Variable::of(name, "").is_some() {
                    not_read("holds a password, so that no address of it is read");
                }
                continue;
            };
            match Variable::of(name, value) {
                None => {}
                Some(Variable::Route(Err(wrong))) => not_read(&wrong),
                Some(Variable::Route(Ok((_, Hop::Interface(name))))) if !is_port(&name) => {}
                Some(Variable::Route(Ok(route))) => network.routes.push(route),
                Some(Variable::Interface(interface, nets)) => {
                    nets.wrong.iter().for_each(|wrong| not_read(wrong));
                    // A VLAN is in the cable of its parent, and a bridge ends in the cables of its members.
                    let parent = ["addm", "vlandev"]
                        .iter()
                        .find_map(|word| after(value, word));
                    let parent = parent.or_else(|| children.get(interface).copied());
                    let port = parent.unwrap_or(interface);
                    if is_port(port) {
                        let nets = nets.known.into_iter().map(|net| (port.to_owned(), net));
                        network.interfaces.extend(nets);
                    }
                }
            }
        }
        let files = set.files().iter();
        for (path, file) in files.filter(|(_, file)| file.kind == ConfigKind::Rc) {
            if let Some(first) = file.unread.first().filter(|_| is_dut(machine(path))) {
                let lines = file.unread.len();
                network.not_read.push(NotRead {
                    path: path.clone(),
                    line: first.line(),
                    what: match lines {
                        1 => "no plain assignment, and not read".to_owned(),
                        _ => format!(
                            "{lines} lines from here on are no plain assignments, and not read"
                        ),
                    },
                });
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
        let (_, hop) = self
            .routes
            .iter()
            .filter(|(net, _)| net.contains(flows))
            .max_by_key(|(net, _)| net.length)?;
        let interface = match hop {
            Hop::Gateway(gateway) => self.in_net_of(*gateway)?,
            Hop::Interface(interface) => interface,
        };
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
    fn in_net_of(&self, address: IpAddr) -> Option<&str> {
        self.only(|_, net| net.contains(address))
    }

    fn only_other(&self, known: &str) -> Option<(String, String)> {
        let is_of_bench = |net: Net| BENCH_NETS.iter().any(|bench| bench.contains(net.address));
        let other = self.only(|name, net| name != known && is_of_bench(net))?;
        let how = "The only other port with an address for benches";
        Some((other.to_owned(), how.to_owned()))
    }
}

/// The parents of VLANs, by their names in variables: `ix0_2` of `vlans_ix0="2"`, `dmz` of `vlans_ix0="dmz"`.
fn children<'s>(settings: &'s [(&str, Effective<'_>)]) -> BTreeMap<String, &'s str> {
    let mut children = BTreeMap::new();
    for (name, setting) in settings {
        let SettingValue::Text(value) = &setting.value else {
            continue;
        };
        if let Some(parent) = name.strip_prefix("vlans_") {
            for child in value.split_whitespace() {
                let is_number = child.bytes().all(|byte| byte.is_ascii_digit());
                let name = match is_number {
                    true => format!("{parent}_{child}"),
                    false => child.replace(['.', '-', '/', '+'], "_"),
                };
                children.insert(name, parent);
            }
        } else if let Some(child) = name.strip_prefix("create_args_")
            && let Some(parent) = after(value, "vlandev")
        {
            children.insert(child.to_owned(), parent);
        }
    }
    children
}

/// The word after another one.
fn after<'v>(value: &'v str, word: &str) -> Option<&'v str> {
    let mut words = value.split_whitespace();
    words.find(|found| *found == word)?;
    words.next()
}

/// Whether a cable can end in an interface: `ix0`, and not `wg0`.
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
        let networks = rc_confs.iter().map(|text| Network::of(&set(text)));
        let named: Vec<_> = ["one", "two"].into_iter().zip(networks).collect();
        ports(&named, &Drawing::default(), sender, receiver)
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
    fn every_variable_with_addresses_tells_ports() {
        let both = [Some("ix0".to_owned()), Some("ix1".to_owned())];
        let inet = [side("198.18.0.2", ""), side("198.19.0.2", "")];
        let inet6 = [side("2001:2::2", ""), side("2001:2:0:8000::2", "")];
        for (first, second, [sender, receiver]) in [
            (
                "ifconfig_ix0_alias0=\"inet 198.18.0.4/24\"",
                "ifconfig_ix1_alias12=\"198.19.0.4 netmask 255.255.255.0\"",
                inet,
            ),
            (
                "ifconfig_ix0_aliases=\"inet 10.0.0.1/32 inet 198.18.0.4-9/24 inet6 ::1/128\"",
                "ifconfig_ix1=\"up\" ifconfig_ix1_alias0=\"inet 192.0.2.1/32 inet 198.19.0.4/24\"",
                inet,
            ),
            (
                "ipv4_addrs_ix0=\"10.0.0.1/32 198.18.0.4-9/24\"",
                "ifconfig_ix1=\"inet 198.19.0.4 netmask 0xffffff00\"",
                inet,
            ),
            (
                "ifconfig_ix0_ipv6=\"inet6 2001:2::4 prefixlen 49\"",
                "ifconfig_ix1_ipv6=\"inet6 2001:2:0:8000::4/49\"",
                inet6,
            ),
            (
                "ifconfig_ix0_alias0=\"inet6 2001:2::4-9/49\"",
                "ipv6_ifconfig_ix1=\"2001:2:0:8000::4/49\"",
                inet6,
            ),
            (
                "ipv6_ifconfig_ix0_alias0=\"2001:2::4/49\"",
                "ipv6_prefix_ix1=\"2001:2:0:8000\"",
                inet6,
            ),
            (
                "vlans_ix0=\"dmz\" ifconfig_dmz_alias0=\"inet 198.18.0.4/24\"",
                "ifconfig_vlan7=\"inet 198.19.0.4/24 vlan 7 vlandev ix1\"",
                inet,
            ),
        ] {
            let rc_conf = format!("{first}\n{second}\n");
            assert_eq!(interfaces(&rc_conf, sender, receiver), both, "{rc_conf}");
            assert_eq!(Network::of(&set(&rc_conf)).not_read, [], "{rc_conf}");
        }
    }

    #[test]
    fn routes_lead_to_ports_by_gateway_interface_and_default() {
        let nets = "ifconfig_ix0=\"inet 198.18.0.4/24\"\nifconfig_ix1=\"inet 192.0.2.4/24\"\n";
        let both = [Some("ix0".to_owned()), Some("ix1".to_owned())];
        for routes in [
            "route_r=\"-net 198.19.0.0 192.0.2.2 255.255.0.0\"",
            "route_r=\"-net 198.19.0.0/16 -interface ix1\"",
            "defaultrouter=\"192.0.2.2\"",
        ] {
            let rc_conf = format!("{nets}{routes}\n");
            let sender = side("198.18.0.2", "");
            assert_eq!(
                interfaces(&rc_conf, sender, side("", "198.19.10.1")),
                both,
                "{routes}"
            );
        }
    }

    #[test]
    fn what_may_be_an_address_and_is_not_read_is_said_with_its_line() {
        let not_read = Network::of(&set("\
hostname=dut
ifconfig_ix0=\"inet 198.18.0.4/24\"
ifconfig_ix1=\"inet ${ADDRESS}/24\"
ipv4_addrs_ix2=\"198.18.1.1/24 198.18.2.9-1/24\"
ifconfig_ix3_alias0=\"inet vhid 1 pass SESAME 198.18.3.1/32\"
route_r=\"-net 198.19/16 198.18.0.2\"
ifconfig_ix4_descr=\"to 10.0.0.1/8\"
. /etc/more
if true; then
"))
        .not_read;
        let shown: Vec<String> = not_read
            .iter()
            .map(|of| format!("{}:{}: {}", of.path, of.line, of.what))
            .collect();
        assert_eq!(
            shown,
            [
                "etc/rc.conf:3: ifconfig_ix1: ${ADDRESS}/24 is no address",
                "etc/rc.conf:5: ifconfig_ix3_alias0: holds a password, so that no address of it is read",
                "etc/rc.conf:4: ipv4_addrs_ix2: 198.18.2.9-1/24 is no range of addresses, or one of more than 2048",
                "etc/rc.conf:6: route_r: 198.19/16 is no address",
                "etc/rc.conf:8: 2 lines from here on are no plain assignments, and not read",
            ]
        );
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
        fn any_configuration_is_read(text in "(ifconfig_ix[01](_alias[0-9es]*|_ipv6)?=|ipv[46]_(addrs|prefix)_ix0=|route_a=|vlans_ix0=|[\"/ \n-]|inet|-net|addm|198[.]1[89][.]0[.]0|[0-9_a-z]){0,60}") {
            let sender = side("198.18.0.2", "198.18.10.1");
            found(&[&text, &text], sender, side("198.19.0.2", "198.19.10.1"));
        }
    }
}
