//! The command lines of pkt-gen, and what it cannot be told.

use std::net::IpAddr;

use fwdlab_model::{AddressFamily, AddressRange, PortRange, Resolved, Traffic};
use fwdlab_packet::Flows;

/// How long a receiver lets the link come up again that opening the port takes down, in seconds.
const RECEIVER_WAIT_S: &str = "2";
/// The same of a sender, whose frames are lost before.
const SENDER_WAIT_S: &str = "4";
/// Bytes of the frame check sequence, which pkt-gen leaves out of its sizes.
const FCS_BYTES: u16 = 4;
/// The shortest slice: pkt-gen reports once a second, and a slice is made of whole reports.
const SLICE_MS_MIN: u32 = 3000;

/// What a sender is to send.
pub(super) struct Sending<'a> {
    pub(super) interface: &'a str,
    pub(super) family: AddressFamily,
    pub(super) traffic: &'a Traffic,
    pub(super) flows: &'a Flows,
    pub(super) source: &'a str,
    pub(super) destination: &'a str,
    pub(super) cpu: u32,
    /// Frames a second, and how many of them back to back; as fast as it goes without.
    pub(super) pace: Option<(u64, u32)>,
    /// After how many it ends by itself.
    pub(super) frames: Option<u64>,
}

/// The command line of a receiver.
pub(super) fn receiving(interface: &str) -> Vec<String> {
    let words = [
        "pkt-gen",
        "-f",
        "rx",
        "-i",
        interface,
        "-w",
        RECEIVER_WAIT_S,
        "-N",
    ];
    words.map(str::to_owned).into()
}

/// The command line of a sender.
pub(super) fn sending(of: &Sending<'_>) -> Vec<String> {
    let mut words = vec!["pkt-gen".to_owned()];
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    option("-f", "tx".to_owned());
    option("-i", of.interface.to_owned());
    option("-l", packet_bytes(of.family, of.traffic).to_string());
    option("-s", range(of.flows.sources(), of.flows.source_ports()));
    option(
        "-d",
        range(of.flows.destinations(), of.flows.destination_ports()),
    );
    option("-S", of.source.to_owned());
    option("-D", of.destination.to_owned());
    option("-w", SENDER_WAIT_S.to_owned());
    // The CPU is taken modulo so many.
    option("-c", (of.cpu + 1).to_string());
    option("-a", of.cpu.to_string());
    if let Some((pps, burst_frames)) = of.pace {
        option("-R", pps.to_string());
        option("-b", burst_frames.to_string());
    }
    if let Some(frames) = of.frames {
        option("-n", frames.to_string());
    }
    let family = match of.family {
        AddressFamily::Inet => "-4",
        AddressFamily::Inet6 => "-6",
    };
    words.extend([family, "-N"].map(str::to_owned));
    words
}

/// Bytes of the largest packets that are sent, as pkt-gen counts them: with the header of Ethernet, without the FCS.
pub(super) fn packet_bytes_max(resolved: &Resolved) -> u16 {
    let strata = resolved.strata();
    let bytes = strata.map(|stratum| packet_bytes(stratum.family, resolved.traffic(stratum)));
    bytes.max().unwrap_or(0)
}

fn packet_bytes(family: AddressFamily, traffic: &Traffic) -> u16 {
    let bytes = traffic.frame_sizes.first().map_or(0, |size| size.bytes);
    bytes.max(family.smallest_frame_bytes()) - FCS_BYTES
}

/// `198.18.10.1:2000-198.18.10.20`, `[2001:2:0:10::1]:2000-[2001:2:0:10::14]:2000`.
fn range(addresses: AddressRange, ports: PortRange) -> String {
    let (first, last) = (addresses.first(), addresses.last());
    let text = |address: IpAddr| match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    };
    let begin = format!("{}:{}", text(first), ports.first);
    if ports.first == ports.last && first.is_ipv4() {
        // Without a last port it is the first.
        return match first == last {
            true => begin,
            false => format!("{begin}-{}", text(last)),
        };
    }
    format!("{begin}-{}:{}", text(last), ports.last)
}

/// Why pkt-gen cannot be the tester of an experiment, and what to do.
pub(super) fn refusal(resolved: &Resolved) -> Option<String> {
    let design = &resolved.design;
    let traffics = &resolved.traffics;
    if traffics.iter().any(|traffic| traffic.zipf.is_some()) {
        return Some(
            "pkt-gen sends every flow as often as any other; leave `zipf` out of [traffic], or have another tester \
             send the flows (`uses = \"fwdlab\"` in [tester])"
                .to_owned(),
        );
    }
    if traffics.iter().any(|traffic| traffic.frame_sizes.len() > 1) {
        return Some(
            "pkt-gen sends frames of one size; write one number as `frame_size` into [traffic], or have another \
             tester send them (`uses = \"fwdlab\"` in [tester])"
                .to_owned(),
        );
    }
    if design.slice_ms < SLICE_MS_MIN {
        return Some(format!(
            "pkt-gen reports once a second, so that a slice of {} ms cannot be told; write slice_ms = {SLICE_MS_MIN} \
             or more into [design]",
            design.slice_ms
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use fwdlab_model::{Lab, Load};
    use fwdlab_pkt_gen::AddressRange as Said;
    use proptest::prelude::*;

    use super::*;
    use crate::doctor::control_experiment;

    fn flows(source: &str, destination: &str, ports: (u16, u16)) -> Flows {
        let of = |first: &str, count| AddressRange::new(first.parse().unwrap(), count).unwrap();
        let ports = PortRange {
            first: ports.0,
            last: ports.1,
        };
        let port = PortRange {
            first: 2000,
            last: 2000,
        };
        Flows::new(of(source, 20), of(destination, 100), ports, port).unwrap()
    }

    fn words(family: AddressFamily, flows: &Flows, pace: Option<(u64, u32)>) -> String {
        let traffic = Traffic::default();
        let of = Sending {
            interface: "igb2",
            family,
            traffic: &traffic,
            flows,
            source: "00:1b:21:c4:95:7a",
            destination: "00:08:a2:09:33:da",
            cpu: 3,
            pace,
            frames: pace.map(|_| 2000),
        };
        sending(&of).join(" ")
    }

    #[test]
    fn heavy_flows_are_refused() {
        let mut resolved = control_experiment(&Lab::netns("bench"), Load::Overload, 8, false);
        resolved.design.slice_ms = SLICE_MS_MIN;
        assert_eq!(refusal(&resolved), None);
        resolved.traffics[0].zipf = Some("1.1".parse().unwrap());
        assert_eq!(
            refusal(&resolved).unwrap(),
            "pkt-gen sends every flow as often as any other; leave `zipf` out of [traffic], or have another tester \
             send the flows (`uses = \"fwdlab\"` in [tester])"
        );
    }

    #[test]
    fn command_lines_are_those_that_benches_use() {
        assert_eq!(receiving("igb3").join(" "), "pkt-gen -f rx -i igb3 -w 2 -N");
        let inet = flows("198.18.10.1", "198.19.10.1", (2000, 2000));
        assert_eq!(
            words(AddressFamily::Inet, &inet, None),
            "pkt-gen -f tx -i igb2 -l 60 -s 198.18.10.1:2000-198.18.10.20 -d 198.19.10.1:2000-198.19.10.100 \
             -S 00:1b:21:c4:95:7a -D 00:08:a2:09:33:da -w 4 -c 4 -a 3 -4 -N"
        );
        let inet6 = flows("2001:2:0:10::1", "2001:2:0:8010::1", (2000, 2003));
        assert_eq!(
            words(AddressFamily::Inet6, &inet6, Some((20_000, 1))),
            "pkt-gen -f tx -i igb2 -l 62 -s [2001:2:0:10::1]:2000-[2001:2:0:10::14]:2003 \
             -d [2001:2:0:8010::1]:2000-[2001:2:0:8010::64]:2000 -S 00:1b:21:c4:95:7a -D 00:08:a2:09:33:da -w 4 \
             -c 4 -a 3 -R 20000 -b 1 -n 2000 -6 -N"
        );
    }

    proptest! {
        #[test]
        fn a_range_has_every_pair_of_address_and_port(
            is_inet6: bool, count in 1_u32..5000, first in 1_u16..60_000, ports in 0_u16..5000,
        ) {
            let address = if is_inet6 { "2001:2:0:10::1" } else { "198.18.10.1" };
            let addresses = AddressRange::new(address.parse().unwrap(), count).unwrap();
            let text = range(addresses, PortRange { first, last: first + ports });
            let said = Said::parse(&text).unwrap();
            prop_assert_eq!(said.first, addresses.first());
            prop_assert_eq!(said.endpoints(), u128::from(count) * (u128::from(ports) + 1), "{}", text);
        }
    }
}
