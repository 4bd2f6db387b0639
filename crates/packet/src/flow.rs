use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::PacketError;
use crate::checksum::Sum;

/// One flow: a pair of addresses, whose family is the flow's.
///
/// Ports and payload play no part. The smallest UDP frame over IPv6 has no
/// payload to carry a flow number in, so the addresses must tell flows apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flow {
    /// A flow over IPv4.
    Inet {
        /// Who sends.
        source: Ipv4Addr,
        /// Who receives.
        destination: Ipv4Addr,
    },
    /// A flow over IPv6.
    Inet6 {
        /// Who sends.
        source: Ipv6Addr,
        /// Who receives.
        destination: Ipv6Addr,
    },
}

impl Flow {
    /// The flow from `source` to `destination`.
    ///
    /// # Errors
    /// `MixedFamilies`.
    pub fn new(source: IpAddr, destination: IpAddr) -> Result<Self, PacketError> {
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Ok(Self::Inet {
                source,
                destination,
            }),
            (IpAddr::V6(source), IpAddr::V6(destination)) => Ok(Self::Inet6 {
                source,
                destination,
            }),
            _ => Err(PacketError::MixedFamilies {
                source_address: source,
                destination_address: destination,
            }),
        }
    }

    /// Who sends.
    #[must_use]
    pub fn source(&self) -> IpAddr {
        match *self {
            Self::Inet { source, .. } => source.into(),
            Self::Inet6 { source, .. } => source.into(),
        }
    }

    /// Who receives.
    #[must_use]
    pub fn destination(&self) -> IpAddr {
        match *self {
            Self::Inet { destination, .. } => destination.into(),
            Self::Inet6 { destination, .. } => destination.into(),
        }
    }

    /// The pseudo header of an upper-layer packet of this flow.
    pub(crate) fn pseudo_header(&self, protocol: u8, length: u16) -> Sum {
        match *self {
            Self::Inet {
                source,
                destination,
            } => Sum::pseudo_header_v4(source, destination, protocol, length),
            Self::Inet6 {
                source,
                destination,
            } => Sum::pseudo_header_v6(source, destination, protocol, length.into()),
        }
    }
}

/// Consecutive addresses of one family, at least one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    first: IpAddr,
    count: u32,
}

impl AddressRange {
    /// The range of `count` addresses that begins with `first`.
    ///
    /// # Errors
    /// `EmptyRange`, `RangeEnd`.
    pub fn new(first: IpAddr, count: u32) -> Result<Self, PacketError> {
        let last_index = count
            .checked_sub(1)
            .ok_or(PacketError::EmptyRange { first })?;
        match address_after(first, last_index) {
            Some(_) => Ok(Self { first, count }),
            None => Err(PacketError::RangeEnd { first, count }),
        }
    }

    /// The first address.
    #[must_use]
    pub fn first(&self) -> IpAddr {
        self.first
    }

    /// How many addresses there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The address at `index`, if the range reaches that far.
    #[must_use]
    pub fn address(&self, index: u32) -> Option<IpAddr> {
        (index < self.count)
            .then(|| address_after(self.first, index))
            .flatten()
    }

    /// The index of `address`, if the range holds it.
    #[must_use]
    pub fn index(&self, address: IpAddr) -> Option<u32> {
        let distance = match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                address.to_bits().checked_sub(first.to_bits())?
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                u32::try_from(address.to_bits().checked_sub(first.to_bits())?).ok()?
            }
            _ => return None,
        };
        (distance < self.count).then_some(distance)
    }
}

fn address_after(first: IpAddr, distance: u32) -> Option<IpAddr> {
    match first {
        IpAddr::V4(first) => first
            .to_bits()
            .checked_add(distance)
            .map(|bits| Ipv4Addr::from_bits(bits).into()),
        IpAddr::V6(first) => first
            .to_bits()
            .checked_add(distance.into())
            .map(|bits| Ipv6Addr::from_bits(bits).into()),
    }
}

/// Every flow from a range of sources to a range of destinations.
///
/// Flows are numbered source by source:
/// `flow_id = source_index * destinations + destination_index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flows {
    sources: AddressRange,
    destinations: AddressRange,
}

impl Flows {
    const DEFAULT_SOURCES: u32 = 20;
    const DEFAULT_DESTINATIONS: u32 = 100;

    /// The flows from each of `sources` to each of `destinations`.
    ///
    /// # Errors
    /// `MixedFamilies`, `TooManyFlows`.
    pub fn new(sources: AddressRange, destinations: AddressRange) -> Result<Self, PacketError> {
        Flow::new(sources.first, destinations.first)?;
        if sources.count.checked_mul(destinations.count).is_none() {
            return Err(PacketError::TooManyFlows {
                sources: sources.count,
                destinations: destinations.count,
            });
        }
        Ok(Self {
            sources,
            destinations,
        })
    }

    /// 2000 flows over IPv4: 20 sources from 198.18.10.1 to 100 destinations
    /// from 198.19.10.1.
    ///
    /// # Source
    /// RFC 6890: 198.18.0.0/15 is set aside for benchmarks.
    #[must_use]
    pub fn inet() -> Self {
        Self::from_first(
            Ipv4Addr::new(198, 18, 10, 1).into(),
            Ipv4Addr::new(198, 19, 10, 1).into(),
        )
    }

    /// 2000 flows over IPv6: 20 sources from 2001:2:0:10::1 to 100
    /// destinations from 2001:2:0:8010::1.
    ///
    /// # Source
    /// RFC 6890: 2001:2::/48 is set aside for benchmarks.
    #[must_use]
    pub fn inet6() -> Self {
        Self::from_first(
            Ipv6Addr::new(0x2001, 2, 0, 0x10, 0, 0, 0, 1).into(),
            Ipv6Addr::new(0x2001, 2, 0, 0x8010, 0, 0, 0, 1).into(),
        )
    }

    /// The usual number of flows between two addresses known to leave room.
    fn from_first(source: IpAddr, destination: IpAddr) -> Self {
        Self {
            sources: AddressRange {
                first: source,
                count: Self::DEFAULT_SOURCES,
            },
            destinations: AddressRange {
                first: destination,
                count: Self::DEFAULT_DESTINATIONS,
            },
        }
    }

    /// The addresses that send.
    #[must_use]
    pub fn sources(&self) -> AddressRange {
        self.sources
    }

    /// The addresses that receive.
    #[must_use]
    pub fn destinations(&self) -> AddressRange {
        self.destinations
    }

    /// How many flows there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        // `new` refuses ranges whose product does not fit.
        self.sources.count * self.destinations.count
    }

    /// The flow with that number, if there are so many.
    #[must_use]
    pub fn flow(&self, flow_id: u32) -> Option<Flow> {
        let source = self.sources.address(flow_id / self.destinations.count)?;
        let destination = self
            .destinations
            .address(flow_id % self.destinations.count)?;
        Flow::new(source, destination).ok()
    }

    /// The number of `flow`, if it is one of these.
    #[must_use]
    pub fn flow_id(&self, flow: &Flow) -> Option<u32> {
        let source_index = self.sources.index(flow.source())?;
        let destination_index = self.destinations.index(flow.destination())?;
        Some(source_index * self.destinations.count + destination_index)
    }

    /// All flows in the order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Flow> + use<> {
        let flows = *self;
        (0..flows.count()).map(move |flow_id| {
            flows
                .flow(flow_id)
                .expect("every number below the count has a flow")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn range(first: &str, count: u32) -> AddressRange {
        AddressRange::new(address(first), count).unwrap()
    }

    #[test]
    fn the_usual_flows_are_2000_different_ones_in_order() {
        for flows in [Flows::inet(), Flows::inet6()] {
            assert_eq!(Flows::new(flows.sources, flows.destinations), Ok(flows));
            assert_eq!(flows.iter().len(), 2000);
            assert_eq!(flows.iter().collect::<HashSet<_>>().len(), 2000);
            for (flow_id, flow) in (0..).zip(flows.iter()) {
                assert_eq!(flows.flow_id(&flow), Some(flow_id));
            }
            assert_eq!(flows.flow(2000), None);
        }
        let flow = Flows::inet().flow(1999).unwrap();
        assert_eq!(flow.source(), address("198.18.10.20"));
        assert_eq!(flow.destination(), address("198.19.10.100"));
        let flow = Flows::inet6().flow(101).unwrap();
        assert_eq!(flow.source(), address("2001:2:0:10::2"));
        assert_eq!(flow.destination(), address("2001:2:0:8010::2"));
    }

    #[test]
    fn a_flow_of_others_has_no_number() {
        let flows = Flows::inet();
        for (source, destination) in [
            ("198.18.10.0", "198.19.10.1"),
            ("198.18.10.21", "198.19.10.1"),
            ("198.18.10.1", "198.19.10.101"),
            ("2001:2:0:10::1", "2001:2:0:8010::1"),
            ("::c612:0a01", "::c613:0a01"),
        ] {
            let flow = Flow::new(address(source), address(destination)).unwrap();
            assert_eq!(flows.flow_id(&flow), None, "{source} {destination}");
        }
        // 2^32 addresses further is not the first address again.
        let flow = Flow::new(address("2001:2:0:10:0:1:0:1"), address("2001:2:0:8010::1")).unwrap();
        assert_eq!(Flows::inet6().flow_id(&flow), None);
    }

    #[test]
    fn families_do_not_mix() {
        let mixed = Flows::new(range("198.18.0.1", 1), range("2001:2::1", 1));
        assert_eq!(
            mixed,
            Err(PacketError::MixedFamilies {
                source_address: address("198.18.0.1"),
                destination_address: address("2001:2::1"),
            })
        );
    }

    #[test]
    fn a_range_ends_with_its_address_space() {
        assert!(AddressRange::new(address("255.255.255.254"), 2).is_ok());
        for first in ["255.255.255.254", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"] {
            let first = address(first);
            assert_eq!(
                AddressRange::new(first, 3),
                Err(PacketError::RangeEnd { first, count: 3 })
            );
            assert_eq!(
                AddressRange::new(first, 0),
                Err(PacketError::EmptyRange { first })
            );
        }
    }

    #[test]
    fn flow_numbers_are_of_32_bits() {
        let half = range("0.0.0.0", 1 << 16);
        assert_eq!(
            Flows::new(half, half),
            Err(PacketError::TooManyFlows {
                sources: 1 << 16,
                destinations: 1 << 16
            })
        );
        let flows = Flows::new(range("0.0.0.0", (1 << 16) - 1), half).unwrap();
        let last = flows.flow(flows.count() - 1).unwrap();
        assert_eq!(flows.flow_id(&last), Some(flows.count() - 1));
    }

    proptest! {
        #[test]
        fn numbers_and_flows_are_one_to_one(
            source: u128, destination: u128, sources in 1u32..5000, destinations in 1u32..5000,
            flow_id: u32,
        ) {
            let first = |bits: u128| IpAddr::from(Ipv6Addr::from_bits(bits >> 1));
            let flows = Flows::new(
                AddressRange::new(first(source), sources).unwrap(),
                AddressRange::new(first(destination), destinations).unwrap(),
            )
            .unwrap();
            let flow_id = flow_id % (sources * destinations * 2);
            match flows.flow(flow_id) {
                Some(flow) => prop_assert_eq!(flows.flow_id(&flow), Some(flow_id)),
                None => prop_assert!(flow_id >= flows.count()),
            }
        }
    }
}
