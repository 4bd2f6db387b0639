use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fwdlab_model::{AddressFamily, AddressRange, PortRange, Traffic};

use crate::PacketError;
use crate::checksum::Sum;

/// The two ends of a flow, of one address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressPair {
    /// Over IPv4.
    Inet {
        /// Who sends.
        source: Ipv4Addr,
        /// Who receives.
        destination: Ipv4Addr,
    },
    /// Over IPv6.
    Inet6 {
        /// Who sends.
        source: Ipv6Addr,
        /// Who receives.
        destination: Ipv6Addr,
    },
}

impl AddressPair {
    /// The pair of `source` and `destination`.
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

    /// The pseudo header of an upper-layer packet between these addresses.
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

/// One flow of UDP: a pair of addresses and a pair of ports.
///
/// The payload plays no part. The smallest UDP frame over IPv6 has none to
/// carry a flow number in, so addresses and ports must tell flows apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// The addresses between which the packets travel.
    pub addresses: AddressPair,
    /// The port of the sender.
    pub source_port: u16,
    /// The port of the receiver.
    pub destination_port: u16,
}

/// Every flow from a range of sources to a range of destinations, between
/// each two of their ports.
///
/// Flows are numbered source by source, then destination by destination, then
/// source port by source port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flows {
    sources: AddressRange,
    destinations: AddressRange,
    source_ports: PortRange,
    destination_ports: PortRange,
}

impl Flows {
    /// The flows from each of `sources` to each of `destinations`, from each
    /// of the one's ports to each of the other's.
    ///
    /// # Errors
    /// `MixedFamilies`, `PortRange`, `TooManyFlows`.
    pub fn new(
        sources: AddressRange,
        destinations: AddressRange,
        source_ports: PortRange,
        destination_ports: PortRange,
    ) -> Result<Self, PacketError> {
        AddressPair::new(sources.first(), destinations.first())?;
        for PortRange { first, last } in [source_ports, destination_ports] {
            if last < first {
                return Err(PacketError::PortRange { first, last });
            }
        }
        [source_ports.count(), destination_ports.count()]
            .into_iter()
            .try_fold(sources.count(), u32::checked_mul)
            .and_then(|flows| flows.checked_mul(destinations.count()))
            .ok_or(PacketError::TooManyFlows {
                sources: sources.count(),
                destinations: destinations.count(),
                source_ports: source_ports.count(),
                destination_ports: destination_ports.count(),
            })?;
        Ok(Self {
            sources,
            destinations,
            source_ports,
            destination_ports,
        })
    }

    /// 2000 flows over IPv4: 20 sources from 198.18.10.1 to 100 destinations
    /// from 198.19.10.1, all between port 2000 and port 2000.
    #[must_use]
    pub fn inet() -> Self {
        Self::usual(AddressFamily::Inet)
    }

    /// 2000 flows over IPv6: 20 sources from 2001:2:0:10::1 to 100
    /// destinations from 2001:2:0:8010::1, all between port 2000 and port
    /// 2000.
    #[must_use]
    pub fn inet6() -> Self {
        Self::usual(AddressFamily::Inet6)
    }

    /// What is sent where nobody says.
    fn usual(family: AddressFamily) -> Self {
        let traffic = Traffic::default();
        let [sources, destinations] = traffic.ranges(family).expect("it leaves room");
        Self {
            sources,
            destinations,
            source_ports: traffic.source_ports,
            destination_ports: traffic.destination_ports,
        }
    }

    /// The flows of the answers: sources and destinations change places, and
    /// so do their ports.
    #[must_use]
    pub fn reversed(&self) -> Self {
        Self {
            sources: self.destinations,
            destinations: self.sources,
            source_ports: self.destination_ports,
            destination_ports: self.source_ports,
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

    /// The ports of those that send.
    #[must_use]
    pub fn source_ports(&self) -> PortRange {
        self.source_ports
    }

    /// The ports of those that receive.
    #[must_use]
    pub fn destination_ports(&self) -> PortRange {
        self.destination_ports
    }

    /// How many flows there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        // `new` refuses ranges whose product does not fit.
        self.sources.count()
            * self.destinations.count()
            * self.source_ports.count()
            * self.destination_ports.count()
    }

    /// The flow with that number, if there are so many.
    #[must_use]
    pub fn flow(&self, flow_id: u32) -> Option<Flow> {
        let (rest, destination_port) = split(flow_id, self.destination_ports.count());
        let (rest, source_port) = split(rest, self.source_ports.count());
        let (source, destination) = split(rest, self.destinations.count());
        let addresses = AddressPair::new(
            self.sources.address(source)?,
            self.destinations.address(destination)?,
        );
        Some(Flow {
            addresses: addresses.ok()?,
            source_port: port(self.source_ports, source_port)?,
            destination_port: port(self.destination_ports, destination_port)?,
        })
    }

    /// The number of `flow`, if it is one of these.
    #[must_use]
    pub fn flow_id(&self, flow: &Flow) -> Option<u32> {
        let source = self.sources.index(flow.addresses.source())?;
        let destination = self.destinations.index(flow.addresses.destination())?;
        let source_port = port_index(self.source_ports, flow.source_port)?;
        let destination_port = port_index(self.destination_ports, flow.destination_port)?;
        let addresses = source * self.destinations.count() + destination;
        let sender = addresses * self.source_ports.count() + source_port;
        Some(sender * self.destination_ports.count() + destination_port)
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

/// The digits of a number whose last one counts to `count`.
fn split(number: u32, count: u32) -> (u32, u32) {
    (number / count, number % count)
}

fn port(range: PortRange, index: u32) -> Option<u16> {
    range.first.checked_add(u16::try_from(index).ok()?)
}

fn port_index(range: PortRange, port: u16) -> Option<u32> {
    (range.first..=range.last)
        .contains(&port)
        .then(|| u32::from(port - range.first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn flow(source: &str, destination: &str) -> Flow {
        Flow {
            addresses: AddressPair::new(address(source), address(destination)).unwrap(),
            source_port: 2000,
            destination_port: 2000,
        }
    }

    fn ports(first: u16, last: u16) -> PortRange {
        PortRange { first, last }
    }

    /// Flows between single ports.
    fn flows(sources: AddressRange, destinations: AddressRange) -> Result<Flows, PacketError> {
        Flows::new(sources, destinations, ports(2000, 2000), ports(2000, 2000))
    }

    fn range(first: &str, count: u32) -> AddressRange {
        AddressRange::new(address(first), count).unwrap()
    }

    #[test]
    fn the_usual_flows_are_2000_different_ones_in_order() {
        for usual in [Flows::inet(), Flows::inet6()] {
            let flows = flows(usual.sources, usual.destinations).unwrap();
            assert_eq!(flows, usual);
            assert_eq!(flows.iter().len(), 2000);
            assert_eq!(flows.iter().collect::<HashSet<_>>().len(), 2000);
            for (flow_id, flow) in (0..).zip(flows.iter()) {
                assert_eq!(flows.flow_id(&flow), Some(flow_id));
            }
            assert_eq!(flows.flow(2000), None);
        }
        let last = flow("198.18.10.20", "198.19.10.100");
        assert_eq!(Flows::inet().flow(1999), Some(last));
        let second_of_second = flow("2001:2:0:10::2", "2001:2:0:8010::2");
        assert_eq!(Flows::inet6().flow(101), Some(second_of_second));
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
            let flow = flow(source, destination);
            assert_eq!(flows.flow_id(&flow), None, "{source} {destination}");
        }
        // 2^32 addresses further is not the first address again.
        let far = flow("2001:2:0:10:0:1:0:1", "2001:2:0:8010::1");
        assert_eq!(Flows::inet6().flow_id(&far), None);
        let first = flows.flow(0).unwrap();
        assert_eq!(flows.flow_id(&first), Some(0));
        for port in [1999, 2001] {
            let from_elsewhere = Flow {
                source_port: port,
                ..first
            };
            let to_elsewhere = Flow {
                destination_port: port,
                ..first
            };
            assert_eq!(flows.flow_id(&from_elsewhere), None);
            assert_eq!(flows.flow_id(&to_elsewhere), None);
        }
    }

    #[test]
    fn families_do_not_mix() {
        let mixed = flows(range("198.18.0.1", 1), range("2001:2::1", 1));
        assert_eq!(
            mixed,
            Err(PacketError::MixedFamilies {
                source_address: address("198.18.0.1"),
                destination_address: address("2001:2::1"),
            })
        );
    }

    #[test]
    fn ports_end_where_they_begin_or_later() {
        let one = range("198.18.0.1", 1);
        for (source_ports, destination_ports) in
            [(ports(2, 1), ports(1, 1)), (ports(1, 1), ports(2, 1))]
        {
            assert_eq!(
                Flows::new(one, one, source_ports, destination_ports),
                Err(PacketError::PortRange { first: 2, last: 1 })
            );
        }
    }

    #[test]
    fn flow_numbers_are_of_32_bits() {
        let half = range("0.0.0.0", 1 << 16);
        let one = range("0.0.0.0", 1);
        let all = ports(0, u16::MAX);
        let too_many = |sources, destinations, source_ports, destination_ports| {
            Err(PacketError::TooManyFlows {
                sources,
                destinations,
                source_ports,
                destination_ports,
            })
        };
        assert_eq!(flows(half, half), too_many(1 << 16, 1 << 16, 1, 1));
        assert_eq!(
            Flows::new(one, one, all, all),
            too_many(1, 1, 1 << 16, 1 << 16)
        );
        let most = range("0.0.0.0", (1 << 16) - 1);
        for flows in [
            flows(most, half).unwrap(),
            Flows::new(most, one, ports(9, 9), all).unwrap(),
            Flows::new(one, one, ports(1, u16::MAX), all).unwrap(),
        ] {
            let last = flows.flow(flows.count() - 1).unwrap();
            assert_eq!(flows.flow_id(&last), Some(flows.count() - 1));
        }
    }

    #[test]
    fn ports_change_fastest() {
        let flows = Flows::new(
            range("198.18.0.1", 2),
            range("198.19.0.1", 2),
            ports(10, 11),
            ports(20, 22),
        )
        .unwrap();
        let seen: Vec<_> = flows
            .iter()
            .map(|flow| (flow.source_port, flow.destination_port))
            .collect();
        let of_a_pair = [(10, 20), (10, 21), (10, 22), (11, 20), (11, 21), (11, 22)];
        assert_eq!(seen, of_a_pair.repeat(4));
        let seventh = flows.flow(6).unwrap().addresses;
        assert_eq!(seventh, flow("198.18.0.1", "198.19.0.2").addresses);
    }

    proptest! {
        #[test]
        fn numbers_and_flows_are_one_to_one(
            source: u128, destination: u128, sources in 1u32..500, destinations in 1u32..500,
            source_ports in any_ports(), destination_ports in any_ports(), flow_id: u32,
        ) {
            let first = |bits: u128| IpAddr::from(Ipv6Addr::from_bits(bits >> 1));
            let flows = Flows::new(
                AddressRange::new(first(source), sources).unwrap(),
                AddressRange::new(first(destination), destinations).unwrap(),
                source_ports,
                destination_ports,
            )
            .unwrap();
            let flow_id = flow_id % (flows.count() * 2);
            match flows.flow(flow_id) {
                Some(flow) => {
                    prop_assert_eq!(flows.flow_id(&flow), Some(flow_id));
                    // Its answer is one of the answers.
                    let (source, destination) = (flow.addresses.source(), flow.addresses.destination());
                    let answer = Flow {
                        addresses: AddressPair::new(destination, source).unwrap(),
                        source_port: flow.destination_port,
                        destination_port: flow.source_port,
                    };
                    prop_assert!(flows.reversed().flow_id(&answer).is_some());
                }
                None => prop_assert!(flow_id >= flows.count()),
            }
        }
    }

    /// At most 50 ports.
    fn any_ports() -> impl Strategy<Value = PortRange> {
        (0u16..u16::MAX - 50, 0u16..50).prop_map(|(first, more)| ports(first, first + more))
    }
}
