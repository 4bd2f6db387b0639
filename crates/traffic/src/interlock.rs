//! The interlock of `gen` and `sink`: the way by which a machine is reached is no place for a load.

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;

use crate::TrafficError;

const INET: &str = "/proc/thread-self/net/route";
const INET6: &str = "/proc/thread-self/net/ipv6_route";

/// `RTF_UP` and `RTF_REJECT` of `linux/route.h`.
const UP: u32 = 0x1;
const REJECT: u32 = 0x200;

/// Refuses an interface that a default route of either family leads through.
///
/// To be asked on a thread in the interface's namespace. What stands on an interface, as bridges, bonds
/// and VLANs do, is looked at too. What the main tables do not say, it does not know: other tables, and
/// IPv4's next hops but the first.
///
/// # Errors
/// `DefaultRoute`; or the kernel's tables cannot be read, in which case nothing is known.
pub fn refuse_default_route(interface: &str) -> Result<(), TrafficError> {
    for (file, parse) in [
        (INET, parse_inet as fn(&str) -> Result<_, String>),
        (INET6, parse_inet6),
    ] {
        let failed = |why: String| TrafficError::Routes {
            file: file.to_owned(),
            why,
        };
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            // A kernel without IPv6.
            Err(error) if file == INET6 && error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(error.to_string())),
        };
        let leading = parse(&text).map_err(failed)?;
        if standing_on(interface)
            .iter()
            .any(|name| leading.contains(name))
        {
            return Err(TrafficError::DefaultRoute {
                interface: interface.to_owned(),
            });
        }
    }
    Ok(())
}

/// Refuses an interface by which the ssh connection of this session comes in, if there is one.
///
/// To be asked on a thread in the interface's namespace. What stands on an interface is looked at too.
///
/// # Errors
/// `SshConnection`; when the kernel does not say what addresses there are.
pub fn refuse_ssh_connection(interface: &str) -> Result<(), TrafficError> {
    let session = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let Some((address, zone)) = server_of(&session) else {
        return Ok(());
    };
    for name in standing_on(interface) {
        let is_there = fwdlab_sys::addresses(&name)?.contains(&address);
        if is_there && zone.is_none_or(|zone| zone == name) {
            return Err(TrafficError::SshConnection {
                interface: interface.to_owned(),
            });
        }
    }
    Ok(())
}

/// The address by which a session of ssh was reached, and the interface where the address holds there only: the third
/// word of client, port, server, port.
fn server_of(session: &str) -> Option<(IpAddr, Option<&str>)> {
    let server = session.split_whitespace().nth(2)?;
    let (address, zone) = match server.split_once('%') {
        Some((address, zone)) => (address, Some(zone)),
        None => (server, None),
    };
    Some((address.parse().ok()?, zone))
}

/// An interface, and all that stand on it: bridges, bonds, VLANs.
fn standing_on(interface: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut left = vec![interface.to_owned()];
    while let Some(name) = left.pop() {
        let entries = fs::read_dir(format!("/sys/class/net/{name}"));
        for entry in entries.into_iter().flatten().flatten() {
            let entry = entry.file_name();
            let upper = entry.to_str().and_then(|name| name.strip_prefix("upper_"));
            left.extend(
                upper
                    .filter(|upper| !all.contains(*upper))
                    .map(str::to_owned),
            );
        }
        all.insert(name);
    }
    all
}

/// The interfaces of the default routes in `/proc/net/route`: destination and mask are 0.
fn parse_inet(text: &str) -> Result<BTreeSet<String>, String> {
    // The first line names the columns.
    interfaces(text.lines().skip(1), |fields| {
        let [interface, destination, _, flags, _, _, _, mask, ..] = fields else {
            return None;
        };
        let is_default = hex(destination)? == 0 && hex(mask)? == 0;
        Some((*interface, is_default && is_used(hex(flags)?)))
    })
}

/// The interfaces of the default routes in `/proc/net/ipv6_route`: the prefix has length 0.
fn parse_inet6(text: &str) -> Result<BTreeSet<String>, String> {
    interfaces(text.lines(), |fields| {
        let [_, length, _, _, _, _, _, _, flags, interface] = fields else {
            return None;
        };
        Some((*interface, hex(length)? == 0 && is_used(hex(flags)?)))
    })
}

/// Reads a table line by line: the interface of each, and whether it counts.
fn interfaces<'a>(
    lines: impl Iterator<Item = &'a str>,
    read: impl Fn(&[&'a str]) -> Option<(&'a str, bool)>,
) -> Result<BTreeSet<String>, String> {
    let mut found = BTreeSet::new();
    for line in lines.filter(|line| !line.trim().is_empty()) {
        let fields: Vec<_> = line.split_whitespace().collect();
        let (interface, counts) =
            read(&fields).ok_or_else(|| format!("not a line of the kernel's ({line:?} seen)"))?;
        if counts {
            found.insert(interface.to_owned());
        }
    }
    Ok(found)
}

fn hex(text: &str) -> Option<u32> {
    u32::from_str_radix(text, 16).ok()
}

/// Whether frames go along a route: it is up and does not say "unreachable".
fn is_used(flags: u32) -> bool {
    flags & UP != 0 && flags & REJECT == 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const INET_TABLE: &str = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
eth1\t00000000\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
eth2\t00000000\t00000000\t0000\t0\t0\t0\t00000000\t0\t0\t0
*\t00000000\t00000000\t0201\t0\t0\t0\t00000000\t0\t0\t0
";

    const INET6_TABLE: &str = "\
fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth1
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd000000000000000000000000000001 00000400 00000002 00000000 00000003     eth0
00000000000000000000000000000001 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000002 00000000 80200001       lo
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo
";

    #[test]
    fn only_default_routes_in_use_count() {
        let eth0 = BTreeSet::from(["eth0".to_owned()]);
        assert_eq!(parse_inet(INET_TABLE), Ok(eth0.clone()));
        assert_eq!(parse_inet6(INET6_TABLE), Ok(eth0));
        assert_eq!(parse_inet(""), Ok(BTreeSet::new()));
        assert_eq!(parse_inet6(""), Ok(BTreeSet::new()));
    }

    #[test]
    fn what_the_kernel_would_not_say_is_refused() {
        assert_eq!(
            parse_inet("Iface\neth0\t0000000g\t0\t1\t0\t0\t0\t0"),
            Err(
                "not a line of the kernel's (\"eth0\\t0000000g\\t0\\t1\\t0\\t0\\t0\\t0\" seen)"
                    .to_owned()
            )
        );
        assert!(parse_inet6("00 00 eth0").is_err());
    }

    #[test]
    fn the_address_of_a_session_is_that_of_the_server() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(
            server_of("192.0.2.1 50000 192.0.2.2 22"),
            Some((address("192.0.2.2"), None))
        );
        assert_eq!(
            server_of("fe80::1%eth1 50000 fe80::2%eth1 22"),
            Some((address("fe80::2"), Some("eth1")))
        );
        for session in ["", "192.0.2.1 50000", "a b c d"] {
            assert_eq!(server_of(session), None, "{session}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = parse_inet(&text);
            let _ = parse_inet6(&text);
        }

        #[test]
        fn a_default_route_is_found_among_others(
            others in prop::collection::vec(("[a-z]{1,8}", 1u32.., any::<u32>()), 0..20),
            at: prop::sample::Index,
        ) {
            let mut lines: Vec<_> = others
                .iter()
                .map(|(name, destination, mask)| {
                    format!("{name}\t{destination:08X}\t0\t0003\t0\t0\t0\t{mask:08X}\t0\t0\t0")
                })
                .collect();
            let default = "THIS0\t00000000\t0\t0003\t0\t0\t0\t00000000\t0\t0\t0";
            lines.insert(at.index(lines.len() + 1), default.to_owned());
            let table = format!("Iface\n{}\n", lines.join("\n"));
            prop_assert_eq!(parse_inet(&table), Ok(BTreeSet::from(["THIS0".to_owned()])));
        }
    }
}
