//! What a traffic has to fulfil as a whole, wherever it is asked for: in a file, on a command line, by a run elsewhere.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::addresses::{AddressRange, NeverForwarded, RangeError};
use crate::resolved::{FirstAddresses, Traffic};
use crate::traffic::{FLOWS_MAX, FRAME_SIZE, VLAN};
use crate::words::AddressFamily;

/// What to do about an address that cannot be.
pub(crate) const OTHER_ADDRESSES: &str = "begin elsewhere or ask for another number of addresses";

/// One end of all flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowEnd {
    /// Where they come from.
    Sources,
    /// Where they go to.
    Destinations,
}

/// Why nothing sends a traffic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrafficFault {
    /// More flows than there may be.
    #[error("{} are {flows} flows", factors(*counts))]
    Flows {
        /// Sources, destinations, and the ports of each.
        counts: [u32; 4],
        /// Their product.
        flows: u64,
    },
    /// A size that no frame of the family has.
    #[error("no UDP frame over {} has {bytes} bytes", family.protocol())]
    FrameSize {
        /// The size, with FCS.
        bytes: u16,
        /// The family.
        family: AddressFamily,
    },
    /// A number that no VLAN has.
    #[error("no VLAN has the number {vlan}")]
    Vlan {
        /// The number.
        vlan: u16,
    },
    /// An address of the other family.
    #[error("{first} is no {} address", family.protocol())]
    Family {
        /// What begins with it.
        end: FlowEnd,
        /// The address.
        first: IpAddr,
        /// The family that it was given for.
        family: AddressFamily,
    },
    /// No range of addresses.
    #[error("{error}")]
    Range {
        /// What it would be.
        end: FlowEnd,
        /// Why it is none.
        error: RangeError,
    },
    /// An address of frames that end where they are.
    #[error("{refusal}")]
    NeverForwarded {
        /// What it is among.
        end: FlowEnd,
        /// The address.
        refusal: NeverForwarded,
    },
    /// An address at both ends.
    #[error("sources ({sources}) and destinations ({destinations}) overlap")]
    Overlap {
        /// The sources.
        sources: AddressRange,
        /// The destinations.
        destinations: AddressRange,
    },
}

impl TrafficFault {
    /// What to do.
    #[must_use]
    pub fn advice(&self) -> String {
        match self {
            Self::Flows { .. } => format!("there are at most {FLOWS_MAX} flows"),
            Self::FrameSize { family, .. } => {
                let (smallest, largest) = (FRAME_SIZE.start(), FRAME_SIZE.end());
                match family.smallest_frame_bytes() {
                    bytes if bytes == *smallest => format!("give {smallest} to {largest}"),
                    bytes => format!("give {smallest} for the smallest, or {bytes} to {largest}"),
                }
            }
            Self::Vlan { .. } => format!("give {} to {}", VLAN.start(), VLAN.end()),
            Self::Family { .. } => "give one, or another family".to_owned(),
            Self::Range { .. } | Self::NeverForwarded { .. } => OTHER_ADDRESSES.to_owned(),
            Self::Overlap { .. } => {
                "a router never forwards a frame to its own sender; begin one of them elsewhere"
                    .to_owned()
            }
        }
    }
}

/// The numbers that are multiplied.
fn factors([sources, destinations, source_ports, destination_ports]: [u32; 4]) -> String {
    let mut text = format!("{sources} sources x {destinations} destinations");
    for (ports, what) in [
        (source_ports, "source ports"),
        (destination_ports, "destination ports"),
    ] {
        // One port is the usual case and says nothing.
        if ports > 1 {
            text += &format!(" x {ports} {what}");
        }
    }
    text
}

impl AddressFamily {
    /// Bytes of the smallest UDP frame, FCS included: what the frame size of 64 makes.
    #[must_use]
    pub const fn smallest_frame_bytes(self) -> u16 {
        match self {
            Self::Inet => *FRAME_SIZE.start(),
            Self::Inet6 => 66,
        }
    }
}

impl FirstAddresses {
    /// Where a family's sources and destinations begin where nobody says.
    ///
    /// # Source
    /// RFC 6890: 198.18.0.0/15 and 2001:2::/48 are set aside for benchmarks.
    const fn usual(family: AddressFamily) -> [IpAddr; 2] {
        const fn inet(second: u8) -> IpAddr {
            IpAddr::V4(Ipv4Addr::new(198, second, 10, 1))
        }
        const fn inet6(subnet: u16) -> IpAddr {
            IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, subnet, 0, 0, 0, 1))
        }
        match family {
            AddressFamily::Inet => [inet(18), inet(19)],
            AddressFamily::Inet6 => [inet6(0x10), inet6(0x8010)],
        }
    }
}

impl Traffic {
    /// Checks all that makes a traffic of one family one that can be sent and forwarded, but for the order of its sizes.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self, family: AddressFamily) -> Result<(), TrafficFault> {
        self.check_flows()?;
        self.check_frame_sizes(family)?;
        if let Some(vlan) = self.vlan.filter(|vlan| !VLAN.contains(vlan)) {
            return Err(TrafficFault::Vlan { vlan });
        }
        let [sources, destinations] = self.ranges(family)?;
        for (end, range) in [
            (FlowEnd::Sources, sources),
            (FlowEnd::Destinations, destinations),
        ] {
            let checked = range.check_forwarded();
            checked.map_err(|refusal| TrafficFault::NeverForwarded { end, refusal })?;
        }
        check_apart(sources, destinations)
    }

    /// The sources and the destinations of a family's flows.
    ///
    /// # Errors
    /// `Family`, `Range`.
    pub fn ranges(&self, family: AddressFamily) -> Result<[AddressRange; 2], TrafficFault> {
        let given = self.first_addresses.get(&family);
        let [source, destination] = FirstAddresses::usual(family);
        let range = |end, given: Option<IpAddr>, usual, count| {
            let first = given.unwrap_or(usual);
            let range = AddressRange::new(first, count)
                .map_err(|error| TrafficFault::Range { end, error })?;
            if range.family() != family {
                return Err(TrafficFault::Family { end, first, family });
            }
            Ok(range)
        };
        Ok([
            range(
                FlowEnd::Sources,
                given.and_then(|first| first.source),
                source,
                self.sources,
            )?,
            range(
                FlowEnd::Destinations,
                given.and_then(|first| first.destination),
                destination,
                self.destinations,
            )?,
        ])
    }

    /// Checks how many flows there are.
    pub(crate) fn check_flows(&self) -> Result<(), TrafficFault> {
        let counts = [
            self.sources,
            self.destinations,
            self.source_ports.count(),
            self.destination_ports.count(),
        ];
        // In full: the product that `flows` gives stops at the largest number of its type.
        let flows = counts
            .into_iter()
            .map(u64::from)
            .fold(1, u64::saturating_mul);
        if flows > FLOWS_MAX.into() {
            return Err(TrafficFault::Flows { counts, flows });
        }
        Ok(())
    }

    /// Checks that the family has frames of all the sizes.
    pub(crate) fn check_frame_sizes(&self, family: AddressFamily) -> Result<(), TrafficFault> {
        let sizes = family.smallest_frame_bytes()..=*FRAME_SIZE.end();
        let mut all = self.frame_sizes.iter().map(|size| size.bytes);
        match all.find(|bytes| bytes != FRAME_SIZE.start() && !sizes.contains(bytes)) {
            Some(bytes) => Err(TrafficFault::FrameSize { bytes, family }),
            None => Ok(()),
        }
    }

    /// Checks that no address is at both ends.
    pub(crate) fn check_apart(&self, family: AddressFamily) -> Result<(), TrafficFault> {
        let [sources, destinations] = self.ranges(family)?;
        check_apart(sources, destinations)
    }
}

fn check_apart(sources: AddressRange, destinations: AddressRange) -> Result<(), TrafficFault> {
    if sources.overlaps(&destinations) {
        return Err(TrafficFault::Overlap {
            sources,
            destinations,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::resolved::{FrameSize, PortRange};
    use crate::traffic_text::FrameSizes;

    fn traffic(
        family: AddressFamily,
        (source, sources): (Option<&str>, u32),
        (destination, destinations): (Option<&str>, u32),
    ) -> Traffic {
        let first = |text: Option<&str>| text.map(|text| text.parse().unwrap());
        let first = FirstAddresses {
            source: first(source),
            destination: first(destination),
        };
        Traffic {
            sources,
            destinations,
            first_addresses: [(family, first)].into(),
            ..Traffic::default()
        }
    }

    fn fault(traffic: &Traffic, family: AddressFamily) -> String {
        let fault = traffic.check(family).err();
        fault.map_or_else(String::new, |fault| format!("{fault}; {}", fault.advice()))
    }

    #[test]
    fn addresses_of_flows_are_checked_to_the_last_one() {
        use AddressFamily::{Inet, Inet6};
        let never = "no router forwards ";
        for (family, sources, destinations, expected) in [
            (Inet, (None, 20), (None, 100), ""),
            (Inet6, (None, 20), (None, 100), ""),
            (Inet, (None, 65_536), (None, 1), ""),
            (Inet, (None, 1), (None, 65_536), ""),
            (Inet, (None, 20), (Some("223.255.255.250"), 20), never),
            (Inet, (Some("126.255.255.254"), 4), (None, 100), never),
            (
                Inet6,
                (Some("fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), 2),
                (None, 100),
                never,
            ),
            (
                Inet,
                (Some("2001:2::1"), 1),
                (None, 1),
                "2001:2::1 is no IPv4 address; give one, or another family",
            ),
            (
                Inet6,
                (None, 1),
                (Some("198.18.0.1"), 1),
                "198.18.0.1 is no IPv6 address; give one, or another family",
            ),
            (
                Inet,
                (None, 1),
                (Some("255.255.255.255"), 2),
                "2 addresses from 255.255.255.255 run past the last one there is; begin elsewhere",
            ),
            (
                Inet,
                (None, 0),
                (None, 1),
                "no addresses from 198.18.10.1; ",
            ),
            (
                Inet,
                (Some("198.18.10.1"), 20),
                (Some("198.18.10.20"), 1),
                "sources (198.18.10.1 to 198.18.10.20) and destinations (198.18.10.20) overlap; a router never \
                 forwards a frame to its own sender; begin one of them elsewhere",
            ),
            (
                Inet,
                (Some("198.18.10.1"), 20),
                (Some("198.18.10.21"), 1),
                "",
            ),
            // The sources that nobody gave.
            (Inet, (None, 20), (Some("198.18.9.255"), 3), "sources (198"),
            // The last source is the first destination that nobody gave.
            (Inet, (Some("198.19.9.254"), 4), (None, 1), "sources (198"),
        ] {
            let fault = fault(&traffic(family, sources, destinations), family);
            let is_expected =
                fault.starts_with(expected) && fault.is_empty() == expected.is_empty();
            assert!(is_expected, "{sources:?} to {destinations:?}: {fault}");
        }
    }

    #[test]
    fn flows_and_sizes_are_those_that_can_be() {
        let many = Traffic {
            sources: 256,
            destinations: 256,
            source_ports: PortRange { first: 1, last: 2 },
            ..Traffic::default()
        };
        assert_eq!(
            fault(&many, AddressFamily::Inet),
            "256 sources x 256 destinations x 2 source ports are 131072 flows; there are at most 65536 flows"
        );
        for (sizes, family, expected) in [
            ("64", AddressFamily::Inet, ""),
            ("65", AddressFamily::Inet, ""),
            ("64", AddressFamily::Inet6, ""),
            ("imix", AddressFamily::Inet6, ""),
            ("66", AddressFamily::Inet6, ""),
            (
                "64:1,65:1",
                AddressFamily::Inet6,
                "no UDP frame over IPv6 has 65 bytes; give 64 for the smallest, or 66 to 1518",
            ),
        ] {
            let sizes: FrameSizes = sizes.parse().unwrap();
            let traffic = Traffic {
                frame_sizes: sizes.0,
                ..Traffic::default()
            };
            assert_eq!(fault(&traffic, family), expected);
        }
        // As a run elsewhere could ask.
        for bytes in [63, 1519] {
            let traffic = Traffic {
                frame_sizes: vec![FrameSize { bytes, share: 1 }],
                ..Traffic::default()
            };
            assert_eq!(
                fault(&traffic, AddressFamily::Inet),
                format!("no UDP frame over IPv4 has {bytes} bytes; give 64 to 1518")
            );
        }
    }

    proptest! {
        #[test]
        fn what_passes_is_forwarded_from_one_end_to_another(
            source: u32, destination: u32, sources in 1_u32..100, destinations in 1_u32..100,
        ) {
            let first = FirstAddresses {
                source: Some(IpAddr::from(source.to_be_bytes())),
                destination: Some(IpAddr::from(destination.to_be_bytes())),
            };
            let traffic = Traffic {
                sources,
                destinations,
                first_addresses: [(AddressFamily::Inet, first)].into(),
                ..Traffic::default()
            };
            if traffic.check(AddressFamily::Inet).is_ok() {
                let [from, to] = traffic.ranges(AddressFamily::Inet).unwrap();
                for address in (0..sources).map(|index| from.address(index).unwrap()) {
                    prop_assert_eq!(to.index(address), None);
                    let alone = AddressRange::new(address, 1).unwrap();
                    prop_assert_eq!(alone.check_forwarded(), Ok(()));
                }
            }
        }
    }
}
