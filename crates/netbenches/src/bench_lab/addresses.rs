//! Addresses and routes as `rc.conf` has them: arguments of `ifconfig` and `route`, and the lists and ranges that
//! FreeBSD's `network.subr` makes such arguments of.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fwdlab_model::masked;

/// Words of `ifconfig` whose values may look like addresses of the interface, and how many values they have.
const WITH_VALUES: &[(&str, usize)] = &[
    ("addm", 1),
    ("broadcast", 1),
    ("description", 1),
    ("ether", 1),
    ("laggport", 1),
    ("link", 1),
    ("lladdr", 1),
    ("name", 1),
    ("pass", 1),
    ("ssid", 1),
    ("tunnel", 2),
    ("vlandev", 1),
    ("vnet", 1),
    ("vxlandev", 1),
    ("vxlanlocal", 1),
    ("vxlanremote", 1),
];
/// `network.subr` makes no more addresses of a range, and says so.
const RANGE_MAX: usize = 2048;

/// A net: an address of it, and the bits that are the net's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Net {
    pub(super) address: IpAddr,
    pub(super) length: u8,
}

impl Net {
    pub(super) const fn inet(address: Ipv4Addr, length: u8) -> Self {
        let address = IpAddr::V4(address);
        Self { address, length }
    }

    pub(super) const fn inet6(address: Ipv6Addr, length: u8) -> Self {
        let address = IpAddr::V6(address);
        Self { address, length }
    }

    pub(super) fn contains(self, address: IpAddr) -> bool {
        masked(self.address, self.length) == masked(address, self.length)
    }
}

/// What arguments give, and what of them is no address though it is in the place of one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Nets {
    pub(super) known: Vec<Net>,
    pub(super) wrong: Vec<String>,
}

impl Nets {
    /// The addresses in arguments of `ifconfig`; ranges are for aliases alone.
    pub(super) fn of(arguments: &str, has_ranges: bool) -> Self {
        let mut nets = Self::default();
        let (mut address, mut mask) = (None, None);
        let mut words = arguments.split_whitespace();
        while let Some(word) = words.next() {
            if matches!(word, "inet" | "inet6") {
                nets.add(address.take(), mask.take(), has_ranges);
            } else if matches!(word, "netmask" | "prefixlen") {
                mask = words.next();
            } else if let Some((_, values)) = WITH_VALUES.iter().find(|(with, _)| *with == word) {
                words.nth(values - 1);
            } else if address.is_none() && word.contains(['.', ':', '/', '$']) {
                address = Some(word);
            }
        }
        nets.add(address, mask, has_ranges);
        nets
    }

    fn add(&mut self, address: Option<&str>, mask: Option<&str>, has_ranges: bool) {
        let found = match (address, mask) {
            (Some(address), mask) => of_address(address, mask, has_ranges),
            (None, Some(mask)) => Err(format!("the mask {mask} has no address")),
            (None, None) => return,
        };
        match found {
            Ok(nets) => self.known.extend(nets),
            Err(wrong) => self.wrong.push(wrong),
        }
    }

    /// The nets of `ipv6_prefix_…`: the first groups of addresses.
    pub(super) fn of_prefixes(value: &str) -> Self {
        let mut nets = Self::default();
        for word in value.split_whitespace() {
            let (prefix, length) = word.split_once('/').unwrap_or((word, "64"));
            let address = format!("{}::", prefix.trim_end_matches(':'));
            nets.add(Some(&address), Some(length), false);
        }
        nets
    }
}

/// `192.0.2.1/24`, `2001:db8::1%ix0/64`, and the same with a mask behind it, which counts before the length.
fn of_address(text: &str, mask: Option<&str>, has_ranges: bool) -> Result<Vec<Net>, String> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let address = address.split('%').next().unwrap_or_default();
    let is_range = has_ranges && address.contains('-');
    let addresses = if is_range {
        range(address)
    } else {
        address.parse().ok().map(|address| vec![address])
    };
    let addresses = addresses.ok_or_else(|| match is_range {
        true => format!("{text} is no range of addresses, or one of more than {RANGE_MAX}"),
        false => format!("{text} is no address"),
    })?;
    let length = match mask.or(length) {
        Some(mask) => Some(mask_length(mask).ok_or_else(|| format!("{mask} is no mask"))?),
        None => None,
    };
    let net = |(index, address): (usize, IpAddr)| {
        let (usual, max) = match address {
            // The others of a range share the first one's net.
            IpAddr::V4(_) if is_range => (32, 32),
            IpAddr::V4(address) => (class_length(address), 32),
            IpAddr::V6(_) => (64, 128),
        };
        let is_other = index > 0 && address.is_ipv4();
        let length = length.filter(|_| !is_other).unwrap_or(usual);
        let too_long = || format!("{text} has more than {max} bits for its net");
        (length <= max)
            .then_some(Net { address, length })
            .ok_or_else(too_long)
    };
    addresses.into_iter().enumerate().map(net).collect()
}

/// The addresses of `192.0.2.1-5`, `10.0-3.0.1` or `2001:db8::1-f`.
fn range(text: &str) -> Option<Vec<IpAddr>> {
    let (separator, radix) = if text.contains(':') {
        (':', 16)
    } else {
        ('.', 10)
    };
    let mut beginnings = vec![String::new()];
    for (index, part) in text.split(separator).enumerate() {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let numbers = match first == last {
            true => vec![first.to_owned()],
            false => {
                let number = |text| u16::from_str_radix(text, radix).ok();
                let numbers = number(first)?..=number(last)?;
                let shown = |number| match radix {
                    16 => format!("{number:x}"),
                    _ => format!("{number}"),
                };
                numbers.take(RANGE_MAX + 1).map(shown).collect()
            }
        };
        if beginnings.len() * numbers.len() > RANGE_MAX {
            return None;
        }
        let between = if index > 0 {
            separator.to_string()
        } else {
            String::new()
        };
        let longer = |beginning: String| {
            let of = |number: &String| format!("{beginning}{between}{number}");
            numbers.iter().map(of).collect::<Vec<_>>()
        };
        beginnings = beginnings.into_iter().flat_map(longer).collect();
    }
    let addresses = beginnings.iter().map(|address| address.parse().ok());
    addresses
        .collect::<Option<Vec<_>>>()
        .filter(|all| !all.is_empty())
}

/// `24`, `255.255.255.0`, `0xffffff00`.
fn mask_length(text: &str) -> Option<u8> {
    let mask = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None if text.contains('.') => text.parse::<Ipv4Addr>().ok()?.to_bits(),
        None => return text.parse().ok(),
    };
    let ones = mask.leading_ones();
    (ones == mask.count_ones()).then(|| u8::try_from(ones).ok())?
}

/// The bits of the net that an address without a mask is in: those of its class.
fn class_length(address: Ipv4Addr) -> u8 {
    match address.octets()[0] {
        0..128 => 8,
        128..192 => 16,
        192.. => 24,
    }
}

/// Where packets of a route go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hop {
    Gateway(IpAddr),
    Interface(String),
}

/// The destination of a route and its next hop; of arguments of `route add`.
///
/// # Errors
/// What is in the place of an address and is none.
pub(super) fn route(arguments: &str) -> Result<(Net, Hop), String> {
    let (mut mask, mut interface, mut is_host) = (None, None, false);
    let mut addresses = Vec::new();
    let mut words = arguments.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "-host" => is_host = true,
            "-netmask" | "-prefixlen" => mask = words.next(),
            "-interface" | "-iface" => interface = words.next(),
            // FreeBSD, `sbin/route/route.c`, `newroute`: those with a value.
            "-fib" | "-mtu" | "-weight" | "-ifa" | "-ifp" | "-genmask" | "-hopcount"
            | "-expire" | "-recvpipe" | "-sendpipe" | "-ssthresh" | "-rtt" | "-rttvar" => {
                _ = words.next()
            }
            "-dst" | "-gateway" => addresses.extend(words.next()),
            _ if word.starts_with('-') => {}
            _ => addresses.push(word),
        }
    }
    let mut addresses = addresses.into_iter();
    let (Some(destination), hop) = (addresses.next(), interface.or_else(|| addresses.next()))
    else {
        return Err("a route without a destination".into());
    };
    let hop = hop.ok_or("a route without a gateway")?;
    let hop = match (interface, hop.parse()) {
        (Some(interface), _) => Hop::Interface(interface.to_owned()),
        (None, Ok(gateway)) => Hop::Gateway(gateway),
        (None, Err(_)) => return Err(format!("{hop} is no address")),
    };
    let mask = mask.or_else(|| addresses.next());
    let net = match destination {
        "default" if matches!(hop, Hop::Gateway(IpAddr::V6(_))) => {
            Net::inet6(Ipv6Addr::UNSPECIFIED, 0)
        }
        "default" => Net::inet(Ipv4Addr::UNSPECIFIED, 0),
        _ => {
            let mut net = of_address(destination, mask, false)?[0];
            if is_host {
                net.length = if net.address.is_ipv4() { 32 } else { 128 };
            }
            net
        }
    };
    Ok((net, hop))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(nets: &[Net]) -> String {
        let shown = nets
            .iter()
            .map(|net| format!("{}/{}", net.address, net.length));
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn arguments_of_ifconfig_give_addresses_and_lengths() {
        for (arguments, expected) in [
            ("inet 198.18.0.4/24 -tso4 -lro", "198.18.0.4/24"),
            ("198.18.0.4/24 up", "198.18.0.4/24"),
            ("inet 198.18.0.4 netmask 255.255.0.0", "198.18.0.4/16"),
            ("inet 198.18.0.4 netmask 0xfffffffc", "198.18.0.4/30"),
            ("inet 198.18.0.4/8 netmask 255.255.255.0", "198.18.0.4/24"),
            ("inet 10.0.0.1", "10.0.0.1/8"),
            ("inet 172.16.0.1", "172.16.0.1/16"),
            ("inet 198.18.0.4", "198.18.0.4/24"),
            (
                "inet vhid 1 advskew 100 pass x.y 192.0.2.1/32",
                "192.0.2.1/32",
            ),
            (
                "inet 10.0.0.1/30 10.0.0.2 tunnel 192.0.2.1 192.0.2.2",
                "10.0.0.1/30",
            ),
            ("tunnel 192.0.2.1 192.0.2.2 mtu 1400", ""),
            (
                "laggproto lacp laggport ix0.2 laggport ix1 192.0.2.1/24",
                "192.0.2.1/24",
            ),
            ("ether 00:25:90:91:14:0a up", ""),
            ("inet6 2001:2::4 prefixlen 64", "2001:2::4/64"),
            ("inet6 2001:2::4/49", "2001:2::4/49"),
            ("inet6 fe80::1%ix0", "fe80::1/64"),
            ("inet6 accept_rtadv auto_linklocal", ""),
            (
                "inet 192.0.2.1/24 inet 192.0.2.2/32 inet6 ::1/128",
                "192.0.2.1/24 192.0.2.2/32 ::1/128",
            ),
            ("SYNCDHCP", ""),
            ("", ""),
        ] {
            let nets = Nets::of(arguments, false);
            assert_eq!(
                (shown(&nets.known).as_str(), nets.wrong),
                (expected, vec![]),
                "{arguments}"
            );
        }
    }

    #[test]
    fn ranges_are_of_the_net_of_their_first_address() {
        for (arguments, expected) in [
            (
                "inet 192.0.2.1-3/24",
                "192.0.2.1/24 192.0.2.2/32 192.0.2.3/32",
            ),
            ("inet 192.0.2.1-2", "192.0.2.1/32 192.0.2.2/32"),
            ("inet 10.0-1.0.1/16", "10.0.0.1/16 10.1.0.1/32"),
            (
                "inet 10.0-1.0.1-2/16",
                "10.0.0.1/16 10.0.0.2/32 10.1.0.1/32 10.1.0.2/32",
            ),
            (
                "inet 192.0.2.1-2 netmask 255.255.255.0",
                "192.0.2.1/24 192.0.2.2/32",
            ),
            (
                "inet6 2001:db8::e-10/48",
                "2001:db8::e/48 2001:db8::f/48 2001:db8::10/48",
            ),
            ("inet6 2001:db8:1-2::1", "2001:db8:1::1/64 2001:db8:2::1/64"),
            (
                "inet 192.0.2.7/24 inet 192.0.2.9-9/24",
                "192.0.2.7/24 192.0.2.9/24",
            ),
        ] {
            let nets = Nets::of(arguments, true);
            assert_eq!(
                (shown(&nets.known).as_str(), nets.wrong),
                (expected, vec![]),
                "{arguments}"
            );
        }
    }

    #[test]
    fn what_is_in_the_place_of_an_address_and_is_none_is_said() {
        for (arguments, has_ranges, wrong) in [
            ("inet 192.0.2.300/24", false, "192.0.2.300/24 is no address"),
            ("inet $ADDRESS/24", false, "$ADDRESS/24 is no address"),
            ("inet gw.example.org", false, "gw.example.org is no address"),
            (
                "inet gw netmask 255.255.255.0",
                false,
                "the mask 255.255.255.0 has no address",
            ),
            (
                "inet 192.0.2.1/33",
                false,
                "192.0.2.1/33 has more than 32 bits for its net",
            ),
            ("inet 192.0.2.1/x", false, "x is no mask"),
            (
                "inet 192.0.2.1 netmask 255.0.255.0",
                false,
                "255.0.255.0 is no mask",
            ),
            ("inet 192.0.2.1-5/24", false, "192.0.2.1-5/24 is no address"),
            (
                "inet 192.0.2.5-1/24",
                true,
                "192.0.2.5-1/24 is no range of addresses, or one of more than 2048",
            ),
            (
                "inet 10.0-99.0-99.1/24",
                true,
                "10.0-99.0-99.1/24 is no range of addresses, or one of more than 2048",
            ),
            (
                "inet6 2001:db8::0-ffff",
                true,
                "2001:db8::0-ffff is no range of addresses, or one of more than 2048",
            ),
            (
                "inet 192.0.2.1--5",
                true,
                "192.0.2.1--5 is no range of addresses, or one of more than 2048",
            ),
        ] {
            let nets = Nets::of(&format!("{arguments} inet 192.0.2.9/28"), has_ranges);
            assert_eq!(nets.wrong, [wrong]);
            assert_eq!(shown(&nets.known), "192.0.2.9/28", "{arguments}");
        }
    }

    #[test]
    fn prefixes_are_nets() {
        let nets = Nets::of_prefixes("2001:db8:1:2 2001:db8:1:3:: 2001:db8::/48");
        assert_eq!(
            shown(&nets.known),
            "2001:db8:1:2::/64 2001:db8:1:3::/64 2001:db8::/48"
        );
        assert_eq!(Nets::of_prefixes("x").wrong, ["x:: is no address"]);
    }

    #[test]
    fn routes_have_a_net_and_a_next_hop() {
        for (arguments, expected) in [
            (
                "-net 198.19.0.0/16 198.19.0.2",
                Ok("198.19.0.0/16 198.19.0.2"),
            ),
            ("198.19.0.0/16 198.19.0.2", Ok("198.19.0.0/16 198.19.0.2")),
            (
                "-net 10.1.0.0 -netmask 255.255.0.0 10.0.0.1",
                Ok("10.1.0.0/16 10.0.0.1"),
            ),
            (
                "-net 10.1.0.0 10.0.0.1 255.255.0.0",
                Ok("10.1.0.0/16 10.0.0.1"),
            ),
            (
                "-host 198.19.0.7 198.18.0.2 -fib 1",
                Ok("198.19.0.7/32 198.18.0.2"),
            ),
            (
                "-net 198.19.0.0/16 -ifp ix0 -rtt 5 198.19.0.2",
                Ok("198.19.0.0/16 198.19.0.2"),
            ),
            (
                "-host -dst 198.19.0.7 -gateway 198.18.0.2",
                Ok("198.19.0.7/32 198.18.0.2"),
            ),
            ("default 198.18.0.2", Ok("0.0.0.0/0 198.18.0.2")),
            ("default 2001:2::2", Ok("::/0 2001:2::2")),
            (
                "2001:2:0:8000:: -prefixlen 49 2001:2::2",
                Ok("2001:2:0:8000::/49 2001:2::2"),
            ),
            ("-net 198.19.0.0/16 -interface ix1", Ok("198.19.0.0/16 ix1")),
            ("-net 198.19/16 198.19.0.2", Err("198.19/16 is no address")),
            ("-net 198.19.0.0/16 gw", Err("gw is no address")),
            ("-net 198.19.0.0/16", Err("a route without a gateway")),
            ("", Err("a route without a destination")),
        ] {
            let found = route(arguments).map(|(net, hop)| match hop {
                Hop::Gateway(gateway) => format!("{} {gateway}", shown(&[net])),
                Hop::Interface(interface) => format!("{} {interface}", shown(&[net])),
            });
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(found, expected, "{arguments}");
        }
    }

    proptest! {
        #[test]
        fn any_arguments_are_read(text in "(inet6? |netmask |prefixlen |0x|[0-9a-f:./% -]|255|[.]){0,40}") {
            for has_ranges in [false, true] {
                let nets = Nets::of(&text, has_ranges);
                prop_assert!(nets.known.len() <= RANGE_MAX * (text.len() + 1));
            }
            Nets::of_prefixes(&text);
            let _ = route(&text);
        }

        #[test]
        fn a_net_holds_its_own_address(address: IpAddr, length in 0_u8..=128) {
            let net = Net { address, length };
            prop_assert!(net.contains(address));
        }
    }
}
