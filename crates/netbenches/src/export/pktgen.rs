//! The traffic as a configuration of netmap's pkt-gen.

use std::fmt::Write as _;
use std::net::IpAddr;

use fwdlab_model::{AddressFamily, PortRange, Traffic, TrafficFault};

/// Bytes that pkt-gen leaves out of a frame's size.
const FCS_BYTES: u16 = 4;

/// Variables of a shell, as the archive's scripts read them. What one pkt-gen cannot send stands there as a
/// comment.
///
/// # Errors
/// Those of [`Traffic::ranges`].
pub(super) fn config(traffic: &Traffic, family: AddressFamily) -> Result<Vec<u8>, TrafficFault> {
    let mut text = String::new();
    let flows = traffic.flows();
    let _ = writeln!(
        text,
        "# {flows} UDP flows over {}, sizes without the FCS of 4 bytes",
        family.protocol()
    );
    if let Some(zipf) = traffic.zipf {
        let _ = writeln!(
            text,
            "# Zipf-distributed with exponent {zipf}: some flows are heavy"
        );
    }
    if let Some(vlan) = traffic.vlan {
        let _ = writeln!(
            text,
            "# every frame has a tag besides, which these scripts have no option for: `vlan_id {vlan}` of pktgen"
        );
    }
    let bytes = |frame: u16| {
        let whole = frame.max(family.smallest_frame_bytes());
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
    let [sources, destinations] = traffic.ranges(family)?;
    for (variable, range, port) in [
        ("SENDER_LAB_NET", sources, traffic.source_ports.first),
        (
            "RECEIVER_LAB_NET",
            destinations,
            traffic.destination_ports.first,
        ),
    ] {
        let range = match (range.first(), range.last()) {
            (IpAddr::V4(first), IpAddr::V4(last)) => format!("\"{first}:{port}-{last}\""),
            // The quotes inside keep the brackets from the shell that runs pkt-gen.
            (first, last) => format!("\"\\\"[{first}]-[{last}]\\\"\""),
        };
        let _ = writeln!(text, "{variable}={range}");
    }
    Ok(text.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_traffic_is_the_archives_own() {
        let traffic = Traffic::default();
        let text = |family| String::from_utf8(config(&traffic, family).unwrap()).unwrap();
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

    #[test]
    fn what_pkt_gen_cannot_send_is_a_comment() {
        let traffic = Traffic {
            zipf: Some("1.1".parse().unwrap()),
            ..Traffic::default()
        };
        let text = String::from_utf8(config(&traffic, AddressFamily::Inet).unwrap()).unwrap();
        let comment = "# Zipf-distributed with exponent 1.1: some flows are heavy";
        assert_eq!(text.lines().nth(1), Some(comment));
    }

    #[test]
    fn addresses_behind_the_last_one_are_not_written() {
        let traffic = Traffic {
            destinations: u32::MAX,
            ..Traffic::default()
        };
        let fault = config(&traffic, AddressFamily::Inet).unwrap_err();
        assert_eq!(
            fault.to_string(),
            "4294967295 addresses from 198.19.10.1 run past the last one there is"
        );
    }
}
