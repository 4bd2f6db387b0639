//! The stations, addresses and routes of every lab that is inside this machine, whatever forwards there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fwdlab_model::{AddressFamily, Traffic, masked};
use fwdlab_packet::{Flows, MacAddress};
use fwdlab_traffic::{Frames, Link};

use crate::LabError;

/// The first address of a network, or one inside it, and the length of the network's prefix.
pub(crate) type Prefix = (IpAddr, u8);

pub(crate) const TESTER_OUT_MAC: MacAddress = MacAddress([2, 0, 0, 0, 1, 1]);
pub(crate) const DUT_IN_MAC: MacAddress = MacAddress([2, 0, 0, 0, 1, 2]);
pub(crate) const DUT_OUT_MAC: MacAddress = MacAddress([2, 0, 0, 0, 2, 1]);
/// The next hop on the sink's cable, which the DUT sends to. No interface has this address: frames for
/// it are dropped where the tester's kernel first looks at them, which costs the least and is counted.
pub(crate) const SINK_MAC: MacAddress = MacAddress([2, 0, 0, 0, 2, 2]);
pub(crate) const TESTER_IN_MAC: MacAddress = MacAddress([2, 0, 0, 0, 2, 0x22]);

/// Addresses of one family. RFC 6890 sets 198.18.0.0/15 and 2001:2::/48 aside for benchmarks.
pub(crate) struct Addresses {
    pub(crate) dut_in: Prefix,
    pub(crate) dut_out: Prefix,
    pub(crate) generator: IpAddr,
    pub(crate) sink: IpAddr,
    pub(crate) sources: Prefix,
    pub(crate) destinations: Prefix,
}

pub(crate) fn addresses(family: AddressFamily) -> Addresses {
    let inet = |second, third, last| IpAddr::from(Ipv4Addr::new(198, second, third, last));
    let inet6 = |subnet, last| IpAddr::from(Ipv6Addr::new(0x2001, 2, 0, subnet, 0, 0, 0, last));
    match family {
        AddressFamily::Inet => Addresses {
            dut_in: (inet(18, 0, 2), 24),
            dut_out: (inet(19, 0, 2), 24),
            generator: inet(18, 0, 1),
            sink: inet(19, 0, 1),
            sources: (inet(18, 0, 0), 16),
            destinations: (inet(19, 0, 0), 16),
        },
        AddressFamily::Inet6 => Addresses {
            dut_in: (inet6(0, 2), 64),
            dut_out: (inet6(0x8000, 2), 64),
            generator: inet6(0, 1),
            sink: inet6(0x8000, 1),
            sources: (inet6(0x10, 0), 64),
            destinations: (inet6(0x8010, 0), 64),
        },
    }
}

/// The prefixes of a family that the lab itself uses.
pub(crate) fn own_prefixes(family: AddressFamily) -> [Prefix; 4] {
    let addresses = addresses(family);
    [
        addresses.dut_in,
        addresses.dut_out,
        addresses.sources,
        addresses.destinations,
    ]
}

/// The frames of one family from the generator through the DUT to the sink.
///
/// # Errors
/// When the traffic is more than a generator can do, or its addresses are not all routed.
pub(crate) fn frames(family: AddressFamily, traffic: &Traffic) -> Result<Frames, LabError> {
    let tester_to_dut = Link {
        source: TESTER_OUT_MAC,
        destination: DUT_IN_MAC,
    };
    let dut_to_sink = Link {
        source: DUT_OUT_MAC,
        destination: SINK_MAC,
    };
    let frames = Frames::new(family, traffic, tester_to_dut, dut_to_sink)?;
    check_routed(family, &frames.flows())?;
    Ok(frames)
}

/// The frames that go back: from the destinations of others to their sources, over the same cables,
/// sent by the station of that address.
pub(crate) fn frames_back(frames: &Frames, sender: MacAddress) -> Frames {
    let tester_to_dut = Link {
        source: sender,
        destination: DUT_OUT_MAC,
    };
    let dut_to_sink = Link {
        source: DUT_IN_MAC,
        destination: TESTER_OUT_MAC,
    };
    frames.reversed(tester_to_dut, dut_to_sink)
}

/// Whether the DUT's routes lead to all sources and destinations.
fn check_routed(family: AddressFamily, flows: &Flows) -> Result<(), LabError> {
    let own = addresses(family);
    for (what, range, routed, link) in [
        ("sources", flows.sources(), own.sources, own.dut_in),
        (
            "destinations",
            flows.destinations(),
            own.destinations,
            own.dut_out,
        ),
    ] {
        let (first, last) = (range.first(), range.last());
        // A cable's own addresses are the first of what is routed, so a range that begins behind
        // them has none of them.
        let is_routed = contains(routed, last) && contains(routed, first) && !contains(link, first);
        if !is_routed {
            let text = |(network, length): Prefix| format!("{}/{length}", masked(network, length));
            return Err(LabError::NotRouted {
                what,
                first,
                count: range.count(),
                routed: text(routed),
                link: text(link),
            });
        }
    }
    Ok(())
}

fn contains((network, length): Prefix, address: IpAddr) -> bool {
    masked(network, length) == masked(address, length)
}

/// Bits of a prefix that the sequence varies.
const SPREAD_BITS: u32 = 24;

/// The routes beside the lab's own: one fixed sequence for each family, of which every beginning lies
/// evenly over the family's unicast space, so that a table grows around the traffic's routes as the
/// Internet's does, and a smaller table is a part of every larger one.
///
/// IPv4: networks of 24 bits. IPv6: of 48 bits, under 2000::/3.
pub(crate) fn spread_prefixes(
    family: AddressFamily,
    avoided: &[Prefix],
) -> impl Iterator<Item = Prefix> + use<> {
    let avoided = Avoided::new(family, avoided);
    (0..1 << SPREAD_BITS)
        // The lowest bit decides between the halves of the space, the next one between its quarters.
        .map(|number: u32| number.reverse_bits() >> (u32::BITS - SPREAD_BITS))
        .filter_map(move |spread| match family {
            AddressFamily::Inet => {
                let address = Ipv4Addr::from_bits(spread << 8);
                let is_unicast = matches!(address.octets()[0], 1..=126 | 128..=223);
                is_unicast.then_some((IpAddr::from(address), 24))
            }
            AddressFamily::Inet6 => {
                const GLOBAL_UNICAST: u128 = 0x2000 << 112;
                let bits = u128::from(spread) << (125 - SPREAD_BITS);
                Some((Ipv6Addr::from_bits(GLOBAL_UNICAST | bits).into(), 48))
            }
        })
        .filter(move |&prefix| !avoided.has_some_of(prefix))
}

/// Networks that are to be left alone, as runs of their addresses in order, of which none touches another: a DUT of an
/// owner's may have a table of its own.
struct Avoided(Vec<(u128, u128)>);

impl Avoided {
    fn new(family: AddressFamily, prefixes: &[Prefix]) -> Self {
        let is_of_family = |(address, _): &&Prefix| match family {
            AddressFamily::Inet => address.is_ipv4(),
            AddressFamily::Inet6 => address.is_ipv6(),
        };
        let prefixes = prefixes.iter().filter(is_of_family);
        let mut runs: Vec<_> = prefixes.map(|&prefix| run(prefix)).collect();
        runs.sort_unstable();
        let mut apart: Vec<(u128, u128)> = Vec::new();
        for (first, last) in runs {
            match apart.last_mut() {
                Some((_, before)) if first <= *before => *before = last.max(*before),
                _ => apart.push((first, last)),
            }
        }
        Self(apart)
    }

    fn has_some_of(&self, prefix: Prefix) -> bool {
        let (first, last) = run(prefix);
        let behind = self.0.partition_point(|(_, end)| *end < first);
        self.0.get(behind).is_some_and(|(begin, _)| *begin <= last)
    }
}

/// The first and the last address of a prefix, as numbers that begin with its bits.
fn run((address, length): Prefix) -> (u128, u128) {
    let bits = match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    };
    let behind = u128::MAX.checked_shr(length.into()).unwrap_or(0);
    (bits & !behind, bits | behind)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fwdlab_model::{AddressRange, PortRange};
    use fwdlab_traffic::PUBLIC_ADDRESSES;

    use super::*;

    const FAMILIES: [AddressFamily; 2] = [AddressFamily::Inet, AddressFamily::Inet6];

    #[test]
    fn there_are_enough_prefixes_and_none_twice_nor_near_the_traffic() {
        for family in FAMILIES {
            let avoided = own_prefixes(family);
            let all: BTreeSet<_> = spread_prefixes(family, &avoided).take(1_000_000).collect();
            assert_eq!(all.len(), 1_000_000);
            let avoided = Avoided::new(family, &avoided);
            assert!(all.iter().all(|&prefix| !avoided.has_some_of(prefix)));
            // With such a route the interlock would take a port for the way to the Internet.
            let is_of_family =
                |public: &IpAddr| public.is_ipv6() == (family == AddressFamily::Inet6);
            for public in PUBLIC_ADDRESSES.into_iter().filter(is_of_family) {
                assert!(all.iter().all(|&prefix| !contains(prefix, public)));
            }
        }
    }

    #[test]
    fn every_beginning_lies_evenly_over_the_space() {
        for (family, parts) in [(AddressFamily::Inet, 7), (AddressFamily::Inet6, 8)] {
            for count in [1000, 10_000] {
                let mut in_part = [0_usize; 8];
                for (address, _) in spread_prefixes(family, &[]).take(count) {
                    let part = match address {
                        IpAddr::V4(address) => address.octets()[0] / 32,
                        IpAddr::V6(address) => address.octets()[0] % 32 / 4,
                    };
                    in_part[usize::from(part)] += 1;
                }
                for frames in &in_part[..parts] {
                    let even = count / parts;
                    assert!(frames.abs_diff(even) <= even / 10 + 1, "{in_part:?}");
                }
            }
        }
    }

    #[test]
    fn prefixes_are_avoided_where_one_holds_the_other() {
        let prefix = |text: &str, length| (text.parse().unwrap(), length);
        let both = [
            prefix("10.0.0.0", 8),
            prefix("10.1.0.0", 16),
            prefix("192.0.2.0", 24),
            prefix("192.0.3.7", 32),
            prefix("2001:2::", 48),
        ];
        let inet = Avoided::new(AddressFamily::Inet, &both);
        for (address, length) in [
            ("10.1.0.0", 16),
            ("10.0.0.0", 8),
            ("10.255.255.255", 32),
            ("0.0.0.0", 0),
            ("192.0.3.0", 24),
            ("192.0.2.99", 24),
        ] {
            assert!(inet.has_some_of(prefix(address, length)), "{address}");
        }
        for (address, length) in [("11.0.0.0", 8), ("192.0.4.0", 24), ("192.0.3.8", 29)] {
            assert!(!inet.has_some_of(prefix(address, length)), "{address}");
        }
        assert!(!Avoided::new(AddressFamily::Inet, &both[4..]).has_some_of(prefix("0.0.0.0", 0)));
        let inet6 = Avoided::new(AddressFamily::Inet6, &both);
        assert!(inet6.has_some_of(prefix("2001:2::1", 128)));
        assert!(!inet6.has_some_of(prefix("2001:3::", 32)));
    }

    fn flows(source: &str, destination: &str, count: u32) -> Flows {
        let range = |first: &str, count| AddressRange::new(first.parse().unwrap(), count).unwrap();
        let port = PortRange { first: 9, last: 9 };
        Flows::new(range(source, 1), range(destination, count), port, port).unwrap()
    }

    #[test]
    fn addresses_that_the_dut_has_no_route_to_are_refused() {
        let (inet, inet6) = (AddressFamily::Inet, AddressFamily::Inet6);
        for (family, source, destination, count, is_routed) in [
            (inet, "198.18.10.1", "198.19.10.1", 100, true),
            (inet, "198.18.1.0", "198.19.1.0", 65_280, true),
            (inet, "198.18.1.0", "198.19.1.0", 65_281, false),
            (inet, "198.18.1.0", "198.19.0.255", 1, false),
            (inet, "198.18.0.2", "198.19.1.0", 1, false),
            (inet, "10.0.0.1", "198.19.1.0", 1, false),
            (inet, "198.18.255.255", "10.0.0.1", 1, false),
            (inet6, "2001:2:0:10::1", "2001:2:0:8010::1", 65_536, true),
            (inet6, "2001:2:0:11::1", "2001:2:0:8010::1", 1, false),
            (inet6, "2001:2:0:10::1", "2001:2:0:8000::9", 1, false),
        ] {
            let checked = check_routed(family, &flows(source, destination, count));
            assert_eq!(checked.is_ok(), is_routed, "{source} {destination} {count}");
        }
        let far = flows("198.18.10.1", "198.19.200.0", 20_000);
        assert_eq!(
            check_routed(inet, &far).unwrap_err().to_string(),
            "traffic: the lab routes 198.19.0.0/16 except 198.19.0.0/24, and not all 20000 \
             destinations from 198.19.200.0 are in there; begin elsewhere or ask for fewer"
        );
    }
}
