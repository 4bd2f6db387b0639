//! The traffic as a configuration of netmap's pkt-gen.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fwdlab_model::{AddressFamily, PortRange, Traffic};

/// Bytes that pkt-gen leaves out of a frame's size.
const FCS_BYTES: u16 = 4;

/// The smallest UDP frames, FCS included.
const fn smallest_bytes(family: AddressFamily) -> u16 {
    match family {
        AddressFamily::Inet => 64,
        AddressFamily::Inet6 => 66,
    }
}

/// Variables of a shell, as the archive's scripts read them. What one pkt-gen cannot send stands there as a
/// comment.
pub(super) fn config(traffic: &Traffic, family: AddressFamily) -> Vec<u8> {
    let mut text = String::new();
    let flows = traffic.flows();
    let _ = writeln!(
        text,
        "# {flows} UDP flows over {}, sizes without the FCS of 4 bytes",
        family.protocol()
    );
    let bytes = |frame: u16| {
        let whole = frame.max(smallest_bytes(family));
        whole.saturating_sub(FCS_BYTES)
    };
    match &traffic.frame_sizes[..] {
        [only] => {
            let _ = writeln!(text, "PKT_SIZE=\"{}\"", bytes(only.bytes));
        }
        several => {
            let sizes: Vec<String> = several
                .iter()
                .map(|size| format!("{} of {}", size.share, bytes(size.bytes)))
                .collect();
            let _ = writeln!(text, "# sizes in turn: {}", sizes.join(", "));
        }
    }
    for (what, ports) in [
        ("source", traffic.source_ports),
        ("destination", traffic.destination_ports),
    ] {
        let PortRange { first, last } = ports;
        if first != last {
            let _ = writeln!(text, "# {what} ports {first} to {last}");
        }
    }
    let af = match family {
        AddressFamily::Inet => "4",
        AddressFamily::Inet6 => "6",
    };
    let _ = writeln!(text, "AF=\"{af}\"");
    let first = traffic.first_addresses.get(&family);
    let (source, destination) = usual_addresses(family);
    for (variable, first, count, port) in [
        (
            "SENDER_LAB_NET",
            first.and_then(|first| first.source).unwrap_or(source),
            traffic.sources,
            traffic.source_ports.first,
        ),
        (
            "RECEIVER_LAB_NET",
            first
                .and_then(|first| first.destination)
                .unwrap_or(destination),
            traffic.destinations,
            traffic.destination_ports.first,
        ),
    ] {
        let range = match (first, last(first, count)) {
            (IpAddr::V4(first), IpAddr::V4(last)) => format!("\"{first}:{port}-{last}\""),
            // The quotes inside keep the brackets from the shell that runs pkt-gen.
            (first, last) => format!("\"\\\"[{first}]-[{last}]\\\"\""),
        };
        let _ = writeln!(text, "{variable}={range}");
    }
    text.into_bytes()
}

/// Where flows begin where the experiment does not say.
const fn usual_addresses(family: AddressFamily) -> (IpAddr, IpAddr) {
    match family {
        AddressFamily::Inet => (
            IpAddr::V4(Ipv4Addr::new(198, 18, 10, 1)),
            IpAddr::V4(Ipv4Addr::new(198, 19, 10, 1)),
        ),
        AddressFamily::Inet6 => (
            IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, 0x10, 0, 0, 0, 1)),
            IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, 0x8010, 0, 0, 0, 1)),
        ),
    }
}

fn last(first: IpAddr, count: u32) -> IpAddr {
    let more = count.saturating_sub(1);
    match first {
        IpAddr::V4(first) => Ipv4Addr::from(u32::from(first).saturating_add(more)).into(),
        IpAddr::V6(first) => Ipv6Addr::from(u128::from(first).saturating_add(more.into())).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_traffic_is_the_archives_own() {
        let traffic = Traffic::default();
        let text = |family| String::from_utf8(config(&traffic, family)).unwrap();
        assert_eq!(
            text(AddressFamily::Inet),
            "# 2000 UDP flows over IPv4, sizes without the FCS of 4 bytes\nPKT_SIZE=\"60\"\nAF=\"4\"\n\
             SENDER_LAB_NET=\"198.18.10.1:2000-198.18.10.20\"\n\
             RECEIVER_LAB_NET=\"198.19.10.1:2000-198.19.10.100\"\n"
        );
        assert_eq!(
            text(AddressFamily::Inet6),
            "# 2000 UDP flows over IPv6, sizes without the FCS of 4 bytes\nPKT_SIZE=\"62\"\nAF=\"6\"\n\
             SENDER_LAB_NET=\"\\\"[2001:2:0:10::1]-[2001:2:0:10::14]\\\"\"\n\
             RECEIVER_LAB_NET=\"\\\"[2001:2:0:8010::1]-[2001:2:0:8010::64]\\\"\"\n"
        );
    }
}
