//! The ports of a Linux host, as `ip` and `/sys` show them: flags, addresses, neighbours and next hops.

use crate::addresses::Prefix;
use crate::mechanism::step::owned;

pub(super) const ADDRESSES: [&str; 4] = ["ip", "-o", "address", "show"];
pub(super) const NEIGHBOURS: [&str; 5] = ["ip", "neigh", "show", "nud", "all"];
/// Lists addresses for which a port answers. BusyBox's `ip` does not know them, the kernel's file of IPv4 has them.
pub(super) const PROXIES: [&str; 3] = [
    "sh",
    "-c",
    "case $(ip 2>&1) in BusyBox*) \
     sed -n 's/^\\([^ ]*\\) .* 0xc .* \\([^ ]*\\)$/\\1 dev \\2 proxy/p' /proc/net/arp ;; \
     *) ip neigh show proxy ;; esac",
];
pub(super) const NEXT_HOPS: [&str; 4] = ["ip", "-o", "nexthop", "show"];

/// `IFF_UP` of an interface's flags.
const INTERFACE_UP: u32 = 1;

/// The words of a line of `ip`.
pub(super) fn words_of(line: &str) -> Vec<&str> {
    // The end of a line within a route is a backslash.
    let is_blank = |letter: char| letter.is_whitespace() || letter == '\\';
    let words = line.split(is_blank);
    words.filter(|word| !word.is_empty()).collect()
}

/// The words that follow a name, each time: `eth1` of `dev eth1`.
pub(super) fn values<'a>(words: &[&'a str], name: &str) -> impl Iterator<Item = &'a str> {
    let pairs = words.windows(2);
    pairs
        .filter(move |pair| pair[0] == name)
        .map(|pair| pair[1])
}

/// Whether the words of a line name a device.
pub(super) fn is_of(interface: &str, line: &str) -> bool {
    values(&words_of(line), "dev").any(|device| device == interface)
}

/// A line of `ip` as one of a message: of an address without how long it is valid.
pub(super) fn shown(line: &str) -> String {
    let mut words = words_of(line);
    let end = words.iter().position(|word| *word == "valid_lft");
    words.truncate(end.unwrap_or(words.len()));
    words.join(" ")
}

/// Asks for the flags of a port.
pub(super) fn flags_of(interface: &str) -> Vec<String> {
    owned(&["cat", &format!("/sys/class/net/{interface}/flags")])
}

/// Whether a port with these flags is up.
pub(super) fn is_up(flags: &str) -> bool {
    let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16);
    flags.is_ok_and(|flags| flags & INTERFACE_UP != 0)
}

/// Asks for the addresses of a port.
pub(super) fn addresses_of(interface: &str) -> Vec<String> {
    owned(&["ip", "-o", "address", "show", "dev", interface])
}

/// Whether an address among those that [`ADDRESSES`] lists is being proved to be the only one. One of which that failed stays
/// tentative for good.
pub(super) fn has_tentative_address(listed: &str) -> bool {
    let is_tentative = |line| {
        let words = words_of(line);
        words.contains(&"tentative") && !words.contains(&"dadfailed")
    };
    listed.lines().any(is_tentative)
}

/// The device and the address of `3: eth1    inet 192.0.2.1/24 scope global eth1`; of a peer's the address has no length.
pub(super) fn address_in(line: &str) -> Option<(&str, &str)> {
    match words_of(line).as_slice() {
        [_, device, "inet" | "inet6", address, ..] => Some((device, address)),
        _ => None,
    }
}

/// Whether a port has an address with this length among those that [`addresses_of`] lists.
pub(super) fn has_address(listed: &str, (address, length): Prefix) -> bool {
    let address = format!("{address}/{length}");
    let mut lines = listed.lines();
    lines.any(|line| address_in(line).is_some_and(|(_, there)| there == address))
}

/// The neighbours and proxies of ports, by the lines of [`NEIGHBOURS`] and [`PROXIES`], that do not come back by
/// themselves.
pub(super) fn owners_neighbours<'a>(
    neighbours: &'a str,
    proxies: &'a str,
) -> impl Iterator<Item = &'a str> {
    let set = neighbours.lines().filter(|line| is_set(line));
    set.chain(proxies.lines()).map(str::trim)
}

/// Whether somebody has set a neighbour: the kernel resolves the others, but for groups, which it knows.
fn is_set(line: &str) -> bool {
    let words = words_of(line);
    let has = |word: &str| words.contains(&word);
    let is_station = values(&words, "lladdr").next().is_some_and(|address| {
        let first = address.get(..2).map(|first| u8::from_str_radix(first, 16));
        matches!(first, Some(Ok(first)) if first & 1 == 0)
    });
    has("PERMANENT") || has("managed") || has("extern_learn") || has("NOARP") && is_station
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_shown_without_what_passes() {
        let line = "3: eth1    inet 192.0.2.7/24 scope global eth1\\       valid_lft forever preferred_lft forever";
        assert_eq!(shown(line), "3: eth1 inet 192.0.2.7/24 scope global eth1");
        assert_eq!(address_in(line), Some(("eth1", "192.0.2.7/24")));
        assert!(has_address(line, ("192.0.2.7".parse().unwrap(), 24)));
        assert!(!has_address(line, ("192.0.2.7".parse().unwrap(), 16)));
        assert!(is_of(
            "eth2",
            "10.0.0.0/8 \\\tnexthop dev eth1 \\\tnexthop dev eth2"
        ));
        assert!(is_up("0x1003") && !is_up("0x1002") && !is_up(""));
    }

    #[test]
    fn an_address_is_tentative_until_it_is_proved_or_found_elsewhere() {
        let proved = "3: eth1    inet6 fe80::1/64 scope link \\       valid_lft forever";
        let tentative =
            |rest: &str| format!("{proved}\n3: eth1    inet6 fe80::2/64 scope link {rest}");
        assert!(!has_tentative_address(proved));
        assert!(has_tentative_address(&tentative(
            "tentative \\ valid_lft forever"
        )));
        assert!(!has_tentative_address(&tentative(
            "dadfailed tentative \\ valid_lft forever"
        )));
    }
}
