//! What FreeBSD's programs print, taken apart.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// An interface as `ifconfig NAME` prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Interface {
    /// Its station.
    pub(super) mac: Option<String>,
    /// Whether its owner has it up.
    pub(super) is_up: bool,
    /// `active`, `no carrier`; none where its driver does not tell.
    pub(super) status: Option<String>,
    /// Addresses of both families, with the lengths of their networks where they are shown.
    pub(super) addresses: Vec<(IpAddr, Option<u8>)>,
    /// Whether an address is still being probed for duplicates.
    pub(super) is_tentative: bool,
    /// Whether IPv6 is off there (`IFDISABLED`), so that its addresses stay tentative for good.
    pub(super) is_inet6_off: bool,
    /// Each line that sets something, under its first word.
    pub(super) settings: BTreeMap<String, String>,
}

/// Reads `ifconfig NAME`.
pub(super) fn interface(text: &str) -> Interface {
    let mut interface = Interface::default();
    for line in text.lines() {
        let line = line.trim();
        // `ix0: flags=1008843<UP,BROADCAST,RUNNING> metric 0 mtu 1500`
        if let Some((_, flags)) = line.split_once(": flags=") {
            let names = flags.split(['<', '>']).nth(1).unwrap_or_default();
            interface.is_up = names.split(',').any(|name| name == "UP");
            let mut words = flags.split_whitespace();
            let mtu = words.find(|word| *word == "mtu").and(words.next());
            let mut settings = vec![("flags", settled_flags(names))];
            settings.extend(mtu.map(|mtu| ("mtu", mtu.to_owned())));
            for (name, value) in settings {
                interface.settings.insert(name.to_owned(), value);
            }
            continue;
        }
        let mut words = line.split_whitespace();
        let (Some(first), second) = (words.next(), words.next()) else {
            continue;
        };
        match (first, second) {
            ("ether", Some(mac)) => interface.mac = Some(mac.to_owned()),
            ("status:", _) => {
                interface.status = line.strip_prefix("status:").map(|it| it.trim().to_owned());
            }
            ("inet" | "inet6", Some(address)) => {
                interface.addresses.extend(own_address(address, words));
                interface.is_tentative |= line.contains(" tentative");
                let all = interface.settings.entry(first.to_owned()).or_default();
                if !all.is_empty() {
                    all.push('\n');
                }
                all.push_str(&line.replace(" tentative", ""));
            }
            _ => {
                // `options=4e507bb<RXCSUM,TXCSUM>`, `nd6 options=21<PERFORMNUD>`, `media: Ethernet autoselect`
                let name = first.split(['=', ':']).next().unwrap_or_default();
                let name = if line.starts_with("nd6 options") {
                    interface.is_inet6_off = line.contains("IFDISABLED");
                    "nd6 options"
                } else {
                    name
                };
                // What the link has agreed on comes and goes with it: `autoselect (10Gbase-SR <full-duplex>)`.
                let setting = match name {
                    "media" => line.split(" (").next().unwrap_or(line),
                    _ => line,
                };
                let setting = setting.to_owned();
                interface.settings.insert(name.to_owned(), setting);
            }
        }
    }
    interface.is_tentative &= !interface.is_inet6_off;
    interface
}

/// An address, which words follow: `netmask 0xffffff00`, `prefixlen 64`. Where its owner has set `IFCONFIG_FORMAT`, a netmask
/// is `255.255.255.0`, or the length stands with the address, `198.18.0.2/24`.
///
/// # Source
/// FreeBSD: `in_status_tunnel` and `in_status` in `sbin/ifconfig/af_inet.c`, `in6_status` in `sbin/ifconfig/af_inet6.c`.
fn own_address<'a>(
    shown: &str,
    mut words: impl Iterator<Item = &'a str>,
) -> Option<(IpAddr, Option<u8>)> {
    let (address, length) = shown.split_once('/').unzip();
    let address = address.unwrap_or(shown).split('%').next()?;
    let named = words.find(|word| ["netmask", "prefixlen"].contains(word));
    let value = words.next().unwrap_or_default();
    let length = match (length, named) {
        (Some(length), _) => length.parse().ok(),
        (None, Some("netmask")) => length_of(value),
        (None, _) => value.parse().ok(),
    };
    Some((address.parse().ok()?, length))
}

/// The length of `0xffffff00` or `255.255.255.0`.
fn length_of(netmask: &str) -> Option<u8> {
    let bits = match netmask.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => netmask.parse::<Ipv4Addr>().ok()?.to_bits(),
    };
    let ones = bits.leading_ones();
    (ones == bits.count_ones()).then(|| u8::try_from(ones).ok())?
}

/// Flags but for those that come and go with the link and its users.
fn settled_flags(names: &str) -> String {
    let settled = names
        .split(',')
        .filter(|name| !["RUNNING", "LOWER_UP", "OACTIVE", "PROMISC", "ALLMULTI"].contains(name));
    settled.collect::<Vec<_>>().join(",")
}

/// The interface that `route -n get` names.
pub(super) fn route_interface(text: &str) -> Option<&str> {
    text.lines()
        .find_map(|line| line.trim().strip_prefix("interface:").map(str::trim))
}

/// When the boot began, in seconds, as `sysctl -n kern.boottime` prints it:
/// `{ sec = 1732448000, usec = 123456 } Sun Nov 24 11:33:20 2024`.
pub(super) fn boot_time_s(text: &str) -> Option<i64> {
    let (_, behind) = text.split_once("sec = ")?;
    let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Names and values of `sysctl -ae`: lines of `name=value`, and what goes on below one.
pub(super) fn sysctls(text: &str) -> BTreeMap<String, String> {
    let mut sysctls: BTreeMap<String, String> = BTreeMap::new();
    let mut last: Option<String> = None;
    for line in text.lines() {
        let pair = line.split_once('=').filter(|(name, _)| is_name(name));
        match (pair, &last) {
            (Some((name, value)), _) => {
                last = Some(name.to_owned());
                sysctls.insert(name.to_owned(), value.trim().to_owned());
            }
            (None, Some(name)) if !line.trim().is_empty() => {
                let value = sysctls.entry(name.clone()).or_default();
                value.push('\n');
                value.push_str(line.trim_end());
            }
            (None, _) => {}
        }
    }
    sysctls
}

/// Whether a text can be the name of a sysctl: `dev.ix.0.%desc`.
fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-%/:".contains(&byte);
    text.contains('.') && text.bytes().all(is_plain)
}

/// Names and values of `kenv`: lines of `name="value"`.
pub(super) fn kernel_environment(text: &str) -> BTreeMap<String, String> {
    let pairs = text.lines().filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        Some((name.to_owned(), value.trim_matches('"').to_owned()))
    });
    pairs.collect()
}

/// The names of `kldstat`'s modules, whose column is the last.
pub(super) fn modules(text: &str) -> Vec<String> {
    let names = text.lines().skip(1);
    let names = names.filter_map(|line| line.split_whitespace().last().map(str::to_owned));
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// A line of `netstat -rn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListedRoute<'a> {
    pub(super) is_inet6: bool,
    pub(super) destination: &'a str,
    pub(super) gateway: &'a str,
    pub(super) flags: &'a str,
    pub(super) interface: &'a str,
}

impl ListedRoute<'_> {
    /// Whether it is that of an address of its interface.
    pub(super) fn is_connected(&self) -> bool {
        !self.flags.contains(['G', 'S'])
    }
}

impl std::fmt::Display for ListedRoute<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} {} {}",
            self.destination, self.gateway, self.interface
        )
    }
}

/// The routes of `netstat -rn`.
pub(super) fn listed_routes(text: &str) -> Vec<ListedRoute<'_>> {
    let mut routes = Vec::new();
    let mut is_inet6 = false;
    let mut place = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [family @ ("Internet:" | "Internet6:")] => is_inet6 = *family == "Internet6:",
            // Older systems have columns of numbers in between.
            ["Destination", ..] => place = words.iter().position(|word| *word == "Netif"),
            [destination, gateway, flags, ..] => {
                let interface = place.and_then(|place| netif(&words, place));
                routes.extend(interface.map(|interface| ListedRoute {
                    is_inet6,
                    destination,
                    gateway,
                    flags,
                    interface,
                }));
            }
            _ => {}
        }
    }
    routes
}

/// The interface of a route: at its column's place, or one before that where the route says no MTU
/// (`usr.bin/netstat/route_netlink.c`, `p_path`). What expires has a number behind it.
fn netif<'a, 'b>(words: &'b [&'a str], place: usize) -> Option<&'b &'a str> {
    let named = |at: usize| {
        let word = words.get(at)?;
        word.starts_with(|first: char| first.is_ascii_alphabetic())
            .then_some(word)
    };
    named(place).or_else(|| named(place.checked_sub(1)?))
}

/// The static ones among the routes of `netstat -rn`, sorted.
pub(super) fn static_routes(text: &str) -> Vec<ListedRoute<'_>> {
    let mut routes = listed_routes(text);
    routes.retain(|route| route.flags.contains('S'));
    routes.sort_by_key(|route| (route.destination, route.gateway, route.interface));
    routes
}

/// A neighbour of `arp -an` or `ndp -an`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ListedNeighbour<'a> {
    pub(super) address: &'a str,
    pub(super) mac: &'a str,
    pub(super) interface: &'a str,
    /// Whether the host answers for it.
    pub(super) is_published: bool,
}

impl ListedNeighbour<'_> {
    /// Whether it has an address, whatever link that is of.
    pub(super) fn is_of(&self, address: IpAddr) -> bool {
        let own = self.address.split('%').next().unwrap_or_default();
        own.parse() == Ok(address)
    }
}

impl std::fmt::Display for ListedNeighbour<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.address, self.mac, self.interface)?;
        f.write_str(if self.is_published { " published" } else { "" })
    }
}

/// The neighbours of `arp -an` and `ndp -an` that do not go by themselves, sorted.
///
/// # Source
/// FreeBSD: `print_entry` in `usr.sbin/arp/arp.c`; `print_entry_nl` in `usr.sbin/ndp/ndp_netlink.c`, which has the state and
/// the flags behind the time.
pub(super) fn static_neighbours(text: &str) -> Vec<ListedNeighbour<'_>> {
    let neighbours = text.lines().filter_map(|line| {
        let (neighbour, behind) = line.split_once(" permanent")?;
        let words: Vec<&str> = neighbour.split_whitespace().collect();
        let mut behind = behind.split_whitespace();
        let (address, mac, interface) = match words.as_slice() {
            // `? (198.18.0.1) at 00:1b:21:c4:95:7a on ix0 permanent published [ethernet]`
            ["?", address, "at", mac, "on", interface, ..] => {
                (address.trim_matches(['(', ')']), mac, interface)
            }
            // `2001:2::1  00:1b:21:c4:95:7a  ix0 permanent R Rp`
            [address, mac, interface, ..] => (*address, mac, interface),
            _ => return None,
        };
        Some(ListedNeighbour {
            address,
            mac,
            interface,
            is_published: behind.any(|word| ["published", "p", "Rp"].contains(&word)),
        })
    });
    let mut neighbours: Vec<ListedNeighbour<'_>> = neighbours.collect();
    neighbours.sort();
    neighbours
}

/// Drop counters of `netstat -s -p ip`, as the singular of its sentences begins.
const INET: [&str; 13] = [
    "bad header checksum",
    "with size smaller than minimum",
    "with data size < data length",
    "with bad options",
    "with incorrect version number",
    "packet not forwardable",
    "output packet dropped due to no bufs",
    "output packet discarded due to no route",
    "datagram that can't be fragmented",
    "with ip length > max ip packet size",
    "with header length < data size",
    "with data length < header length",
    "datagram with bad address in header",
];
/// Those of `netstat -s -p ip6`.
const INET6: [&str; 9] = [
    "with size smaller than minimum",
    "with data size < data length",
    "with bad options",
    "with incorrect version number",
    "packet that violated scope rules",
    "datagram that can't be fragmented",
    "packet not forwardable",
    "output packet dropped due to no bufs",
    "output packet discarded due to no route",
];

/// The drop counters of a stack in `netstat -s -p ip` or `ip6`: sentences behind numbers, in the plural where the
/// number is not 1.
pub(super) fn stack_drops(is_inet6: bool, text: &str) -> BTreeMap<String, u64> {
    let (stack, sentences): (&str, &[&str]) = if is_inet6 {
        ("ip6", &INET6)
    } else {
        ("ip", &INET)
    };
    let mut drops = BTreeMap::new();
    for line in text.lines() {
        let Some((number, sentence)) = line.trim().split_once(' ') else {
            continue;
        };
        let Ok(frames) = number.parse::<u64>() else {
            continue;
        };
        let singular = sentence
            .replacen("packets", "packet", 1)
            .replacen("datagrams", "datagram", 1)
            .replacen("checksums", "checksum", 1);
        if let Some(reason) = sentences
            .iter()
            .find(|reason| singular.starts_with(**reason))
        {
            drops.insert(format!("{stack}: {reason}"), frames);
        }
    }
    drops
}

/// Counters of `netstat -i -b -n -d -W -I NAME`: those of its link, by the column's heading.
///
/// Shape: columns are counted from the right, because an address may be missing.
pub(super) fn interface_counters(text: &str) -> BTreeMap<String, u64> {
    let mut lines = text.lines();
    let headings: Vec<&str> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let Some(link) = lines.find(|line| line.contains("<Link#")) else {
        return BTreeMap::new();
    };
    let words = link.split_whitespace().rev();
    let counters = headings.iter().rev().zip(words);
    counters
        .take_while(|(heading, _)| **heading != "Address")
        .filter_map(|(heading, word)| Some(((*heading).to_owned(), word.parse().ok()?)))
        .collect()
}

/// How many frames of a protocol found the queues of `netstat -Q` full: the third of its columns from the right,
/// in the rows of all workstreams.
pub(super) fn queue_drops(protocol: &str, text: &str) -> u64 {
    let Some((_, streams)) = text.split_once("Workstreams:") else {
        return 0;
    };
    let drops = streams.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // `0   0   ip    0  19  1234  0  0  6373  7607`, and without the first two from the second row on.
        let place = words.iter().position(|word| *word == protocol)?;
        let counters = &words[place + 1..];
        let drops = counters.len().checked_sub(3)?;
        counters.get(drops)?.parse::<u64>().ok()
    });
    drops.fold(0, u64::saturating_add)
}

/// Rules of pf without what each load of them changes: the number in the name of a table that pfctl makes of alike rules,
/// `__automatic_1f2e3d_0` (FreeBSD, `sbin/pfctl/pfctl_optimize.c`, `pf_opt_create_table`).
pub(super) fn without_random_names(rules: &str) -> String {
    const BEGIN: &str = "__automatic_";
    let mut parts = rules.split(BEGIN);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |shown, part| {
        let behind = part.trim_start_matches(|digit: char| digit.is_ascii_hexdigit());
        shown + BEGIN + "*" + behind
    })
}

/// Whether a kernel was built with `options RSS`, by its configuration.
pub(super) fn has_rss(configuration: &str) -> bool {
    configuration.lines().any(|line| {
        let mut words = line.split_whitespace();
        matches!(words.next(), Some("options")) && words.next() == Some("RSS")
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // FreeBSD, `usr.bin/netstat/route_netlink.c`, `p_path`: without an MTU of route and port its column is blank.
    #[test]
    fn the_port_of_a_route_without_an_mtu_is_read() {
        let text = "Internet:\nDestination        Gateway            Flags   Nhop#    Mtu      Netif Expire\n\
                    default            192.0.2.1          UGS         5   1500       igb0\n\
                    10.0.0.0/8         192.0.2.2          UGS         6              ix0\n\
                    10.0.0.7           192.0.2.2          UGHD        7              ix1   1799\n";
        let routes = listed_routes(text);
        let ports: Vec<&str> = routes.iter().map(|route| route.interface).collect();
        assert_eq!(ports, ["igb0", "ix0", "ix1"]);
    }

    // FreeBSD, `sbin/pfctl/pfctl_optimize.c`, `pf_opt_create_table`: "%s%x_%d" of a prefix, arc4random() and a count.
    #[test]
    fn tables_that_pfctl_makes_have_a_name_that_stays() {
        let rules = |random: &str| {
            format!(
                "block drop in from <__automatic_{random}_0> to any\n\
                 pass in from <clients> to <__automatic_{random}_1>"
            )
        };
        let shown = without_random_names(&rules("9f3c01ab"));
        assert_eq!(shown, rules("*"));
        assert_eq!(without_random_names(&rules("1")), shown);
        assert_eq!(without_random_names("pass all"), "pass all");
    }

    const IX0: &str = "\
ix0: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500
	options=48538b8<VLAN_MTU,VLAN_HWTAGGING,JUMBO_MTU,VLAN_HWCSUM,WOL_UCAST,HWSTATS>
	ether 00:1b:21:c4:95:7a
	inet 198.18.0.2 netmask 0xffffff00 broadcast 198.18.0.255
	inet6 fe80::21b:21ff:fec4:957a%ix0 prefixlen 64 scopeid 0x1
	inet6 2001:2::2 prefixlen 64 tentative
	media: Ethernet autoselect (10Gbase-SR <full-duplex,rxpause,txpause>)
	status: active
	nd6 options=21<PERFORMNUD,AUTO_LINKLOCAL>
";

    #[test]
    fn an_interface_is_read() {
        let ix0 = interface(IX0);
        assert_eq!(ix0.mac.as_deref(), Some("00:1b:21:c4:95:7a"));
        assert_eq!(ix0.status.as_deref(), Some("active"));
        assert!(ix0.is_up && ix0.is_tentative);
        let with_length = |text: &str, length| (text.parse::<IpAddr>().unwrap(), Some(length));
        assert_eq!(
            ix0.addresses,
            [
                with_length("198.18.0.2", 24),
                with_length("fe80::21b:21ff:fec4:957a", 64),
                with_length("2001:2::2", 64)
            ]
        );
        assert_eq!(ix0.settings["mtu"], "1500");
        assert_eq!(ix0.settings["flags"], "UP,BROADCAST,SIMPLEX,MULTICAST");
        assert!(ix0.settings["options"].contains("VLAN_MTU"));
        assert_eq!(ix0.settings["media"], "media: Ethernet autoselect");
        let down = interface("ix1: flags=8802<BROADCAST,SIMPLEX,MULTICAST> metric 0 mtu 1500\n");
        assert!(!down.is_up && down.status.is_none());
    }

    #[test]
    fn netmasks_are_read_in_every_form() {
        let length = |line: &str| interface(line).addresses[0].1;
        for (line, expected) in [
            (
                "inet 198.18.0.2 netmask 0xfffe0000 broadcast 198.19.255.255",
                Some(15),
            ),
            (
                "inet 198.18.0.2 --> 198.18.0.1 netmask 0xffffffff",
                Some(32),
            ),
            (
                "inet 198.18.0.2 netmask 255.255.0.0 broadcast 198.18.255.255",
                Some(16),
            ),
            ("inet 198.18.0.2/20 broadcast 198.18.15.255", Some(20)),
            ("inet6 2001:2::2/48", Some(48)),
            ("inet 198.18.0.2 netmask 0xff00ff00", None),
            ("inet 198.18.0.2", None),
        ] {
            assert_eq!(length(line), expected, "{line}");
        }
    }

    // FreeBSD, `sbin/ifconfig/ifmedia.c`, `media_status`: what is in parentheses is the active media of the link.
    #[test]
    fn media_are_what_was_set_not_what_was_agreed_on() {
        let without_link = IX0.replace("(10Gbase-SR <full-duplex,rxpause,txpause>)", "(none)");
        let media = |text: &str| interface(text).settings["media"].clone();
        assert_eq!(media(&without_link), media(IX0));
        let set = "\tmedia: Ethernet 10Gbase-T <full-duplex,rxpause>\n";
        assert_eq!(media(set), set.trim());
    }

    // FreeBSD, `sys/netinet6/nd6.c`, `nd6_ioctl`: with IFDISABLED all addresses become tentative, and nothing proves them.
    #[test]
    fn addresses_where_ipv6_is_off_are_waited_for_by_nobody() {
        let off = "nd6 options=29<PERFORMNUD,IFDISABLED,AUTO_LINKLOCAL>";
        let ix0 = interface(&IX0.replace("nd6 options=21<PERFORMNUD,AUTO_LINKLOCAL>", off));
        assert!(ix0.is_inet6_off && !ix0.is_tentative);
        assert_eq!(ix0.settings["nd6 options"], off);
        assert!(!interface(IX0).is_inet6_off);
    }

    #[test]
    fn where_a_route_leads_is_read() {
        let text = "   route to: default\ndestination: default\n       mask: default\n    gateway: 192.168.1.254\n        \
                    fib: 0\n  interface: igb5\n      flags: <UP,GATEWAY,DONE,STATIC>\n";
        assert_eq!(route_interface(text), Some("igb5"));
        assert_eq!(route_interface("route: route has not been found"), None);
    }

    #[test]
    fn a_boot_is_known_by_its_moment() {
        let text = "{ sec = 1732448000, usec = 123456 } Sun Nov 24 11:33:20 2024\n";
        assert_eq!(boot_time_s(text), Some(1_732_448_000));
        assert_eq!(boot_time_s("sysctl: unknown oid"), None);
    }

    #[test]
    fn sysctls_may_go_on_below() {
        let text = "net.inet.ip.forwarding=1\nkern.geom.conftxt=0 DISK ada0\n1 PART ada0p1 a=b\n\n\
                    dev.ix.0.%desc=Intel(R) X520\nnet.inet.tcp.cc.algorithm=\n";
        let sysctls = sysctls(text);
        assert_eq!(sysctls["net.inet.ip.forwarding"], "1");
        assert_eq!(
            sysctls["kern.geom.conftxt"],
            "0 DISK ada0\n1 PART ada0p1 a=b"
        );
        assert_eq!(sysctls["net.inet.tcp.cc.algorithm"], "");
        assert_eq!(sysctls.len(), 4);
        let environment = kernel_environment("hw.ix.num_queues=\"4\"\nconsole=\"a=b\"\n");
        assert_eq!(environment["console"], "a=b");
    }

    #[test]
    fn modules_are_named_in_the_last_column() {
        let text = "Id Refs Address                Size Name\n 1   14 0xffffffff80200000  2465d28 kernel\n \
                    2    1 0xffffffff82668000   5d7838 if_ix.ko\n";
        assert_eq!(modules(text), ["if_ix.ko", "kernel"]);
    }

    #[test]
    fn routes_that_somebody_has_set_are_distinguished_from_the_others() {
        let text = "Routing tables\n\nInternet:\nDestination        Gateway            Flags     Netif Expire\n\
                    default            192.168.1.254      UGS        igb5\n127.0.0.1          link#7             UH          lo0\n\
                    198.18.0.0/24      link#1             U           ix0\n198.18.0.0/16      198.18.0.1         UGS         ix0\n";
        let routes = static_routes(text);
        let shown: Vec<String> = routes.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            ["198.18.0.0/16 198.18.0.1 ix0", "default 192.168.1.254 igb5"]
        );
        let older = "Destination        Gateway            Flags    Refs      Use  Netif Expire\n\
                     default            192.168.1.254      UGS         0       12   igb5\n";
        assert_eq!(static_routes(older)[0].interface, "igb5");
    }

    #[test]
    fn neighbours_that_stay_are_distinguished_from_the_others() {
        let arp = "? (198.18.0.1) at 00:1b:21:c4:95:7a on ix0 permanent [ethernet]\n\
                   ? (198.18.0.9) at 00:1b:21:c4:95:7b on ix1 permanent published [ethernet]\n\
                   ? (192.168.1.254) at 00:00:5e:00:01:01 on igb5 expires in 1197 seconds [ethernet]\n";
        let shown = |text: &str| {
            let neighbours = static_neighbours(text).into_iter();
            neighbours.map(|it| it.to_string()).collect::<Vec<_>>()
        };
        let published = "198.18.0.9 00:1b:21:c4:95:7b ix1 published";
        assert_eq!(shown(arp), ["198.18.0.1 00:1b:21:c4:95:7a ix0", published]);
        let ndp = "Neighbor                        Linklayer Address  Netif Expire    S Flags\n\
                   2001:2::1                       00:1b:21:c4:95:7a    ix0 permanent R\n\
                   2001:2::9                       00:1b:21:c4:95:7b    ix1 permanent R Rp\n\
                   fe80::1%igb5                    00:00:5e:00:01:01   igb5 23h59m58s S R\n";
        let published = "2001:2::9 00:1b:21:c4:95:7b ix1 published";
        assert_eq!(shown(ndp), ["2001:2::1 00:1b:21:c4:95:7a ix0", published]);
    }

    #[test]
    fn drops_of_the_stack_are_read_in_singular_and_plural() {
        let text = "ip:\n\t1234567 total packets received\n\t1 bad header checksum\n\t0 with size smaller than minimum\n\
                    \t1222 packets forwarded (1222 packets fast forwarded)\n\t3 packets not forwardable\n\
                    \t12 output packets dropped due to no bufs, etc.\n\t1 output packet discarded due to no route\n\
                    \t2 datagrams that can't be fragmented\n\
                    \t3 with ip length > max ip packet size\n\t4 with header length < data size\n\
                    \t5 with data length < header length\n\t1 datagram with bad address in header\n";
        let drops = stack_drops(false, text);
        assert_eq!(drops["ip: bad header checksum"], 1);
        assert_eq!(drops["ip: packet not forwardable"], 3);
        assert_eq!(drops["ip: output packet dropped due to no bufs"], 12);
        assert_eq!(drops["ip: output packet discarded due to no route"], 1);
        assert_eq!(drops["ip: datagram that can't be fragmented"], 2);
        assert_eq!(drops["ip: with ip length > max ip packet size"], 3);
        assert_eq!(drops["ip: with header length < data size"], 4);
        assert_eq!(drops["ip: with data length < header length"], 5);
        assert_eq!(drops["ip: datagram with bad address in header"], 1);
        assert_eq!(drops.len(), 10);
        let inet6 = "ip6:\n\t7 packets that violated scope rules\n";
        assert_eq!(
            stack_drops(true, inet6)["ip6: packet that violated scope rules"],
            7
        );
    }

    #[test]
    fn counters_of_a_link_are_read_from_the_right() {
        let text = "Name          Mtu Network           Address               Ipkts Ierrs Idrop     Ibytes      Opkts Oerrs     Obytes  Coll  Drop\n\
                    ix0          1500 <Link#1>          00:1b:21:c4:95:7a  12345678     5    17  740740680          3     2        180     0     0\n\
                    ix0             - 198.18.0.0/24     198.18.0.2                0     -     -          0          0     -          0     -     -\n";
        let counters = interface_counters(text);
        assert_eq!(counters["Ierrs"], 5);
        assert_eq!(counters["Idrop"], 17);
        assert_eq!(counters["Oerrs"], 2);
        assert_eq!(counters["Ipkts"], 12_345_678);
        assert!(interface_counters("netstat: no such interface").is_empty());
    }

    #[test]
    fn frames_that_found_queues_full_are_added_up() {
        let text = "Configuration:\nSetting                        Current        Limit\nThread count                         2            2\n\
                    Protocols:\nName   Proto QLimit Policy Dispatch Flags\nip         1    256    cpu   hybrid   C--\n\n\
                    Workstreams:\nWSID CPU   Name     Len WMark   Disp'd  HDisp'd   QDrops   Queued  Handled\n\
                    \x20  0   0   ip         0   256        0    19733  9012345   456789   476522\n\
                    \x20          igmp       0     0        0        0        0        0        0\n\
                    \x20          ip6        0     0        0        0        3        0        0\n\
                    \x20  1   1   ip         0     0        0        0        5        0        0\n";
        assert_eq!(queue_drops("ip", text), 9_012_350);
        assert_eq!(queue_drops("ip6", text), 3);
        assert_eq!(queue_drops("ip", "netstat: illegal option"), 0);
    }

    #[test]
    fn what_a_kernel_was_built_with_is_read() {
        assert!(has_rss("options\tPCBGROUP\noptions\tRSS\ndevice\tix\n"));
        assert!(!has_rss("options\tRSSI\n#options\tRSS\n"));
    }

    proptest! {
        #[test]
        fn any_text_is_taken_apart(text in "([a-z]{0,9}[ =:\\t\\n.<>#0-9-]{0,3}|\\PC){0,60}") {
            let _ = (interface(&text), route_interface(&text), boot_time_s(&text), sysctls(&text));
            let _ = (kernel_environment(&text), modules(&text), static_routes(&text), static_neighbours(&text));
            let _ = (stack_drops(true, &text), interface_counters(&text));
            let _ = (queue_drops("ip", &format!("Workstreams:{text}")), has_rss(&text));
        }

        #[test]
        fn a_sysctl_is_read_back(name in "[a-z]{1,5}(\\.[a-z0-9_%]{1,6}){1,3}", value in "[ -~]{0,20}") {
            let text = format!("{name}={value}\nkern.other=x\n");
            let sysctls = sysctls(&text);
            prop_assert_eq!(sysctls[&name].as_str(), value.trim());
        }
    }
}
