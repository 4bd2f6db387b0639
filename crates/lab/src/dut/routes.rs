//! The number of routes in the DUT's table.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fwdlab_model::{AddressFamily, Level, Variant};

use super::{Mechanism, Site, moved, unbound_level};
use crate::netlink::{Prefix, RouteChange, RouteMonitor};
use crate::{LabError, Topology};

/// Routes of the lab's own through a next hop: to the sources and to the destinations.
const OWN_ROUTES: u32 = 2;

/// More would take the kernel gigabytes.
const ROUTES_MAX: u32 = 1_000_000;

pub(super) struct Routes {
    factor: String,
    /// Routes that were added to the lab's own, by family.
    added: BTreeMap<AddressFamily, u32>,
    /// Tells whether a route was changed since the table was read back.
    monitor: Option<RouteMonitor>,
}

impl Routes {
    pub(super) fn new(factor: String) -> Self {
        Self {
            factor,
            added: BTreeMap::new(),
            monitor: None,
        }
    }

    /// How many routes the variant wants, where it says.
    fn wanted(&self, variant: &Variant) -> Result<Option<u32>, LabError> {
        let Some(level) = variant.levels.get(&self.factor) else {
            return Ok(None);
        };
        let count = match level {
            Level::Integer(count) => u32::try_from(*count).ok(),
            Level::Text(word) => word.parse().ok(),
            Level::Boolean(_) => None,
        };
        count
            .map(Some)
            .ok_or_else(|| unbound_level(&self.factor, level))
    }
}

impl Mechanism for Routes {
    fn unavailable(
        &self,
        _topology: &mut Topology,
        variant: &Variant,
    ) -> Result<Option<String>, LabError> {
        Ok(self.wanted(variant)?.and_then(|count| {
            if count < OWN_ROUTES {
                Some(format!("the lab itself needs {OWN_ROUTES} routes"))
            } else if count > ROUTES_MAX {
                Some(format!("this lab makes at most {ROUTES_MAX} routes"))
            } else {
                None
            }
        }))
    }

    fn apply(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        let Some(count) = self.wanted(variant)? else {
            return Ok(());
        };
        // Its notifications would slow the change, and tell nothing.
        self.monitor = None;
        let family = site.family;
        let wanted = count.saturating_sub(OWN_ROUTES);
        let added = self.added.entry(family).or_default();
        let (change, from, to) = if wanted > *added {
            (RouteChange::Add, *added, wanted)
        } else {
            (RouteChange::Delete, wanted, *added)
        };
        let avoided = Topology::prefixes(family);
        let prefixes = prefixes(family, &avoided)
            .skip(from as usize)
            .take((to - from) as usize);
        site.topology.change_dut_routes(family, change, prefixes)?;
        *added = wanted;
        Ok(())
    }

    fn read_back(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        let Some(asked) = self.wanted(variant)? else {
            return Ok(());
        };
        // Opened before the routes are counted, so that no change falls in between.
        self.monitor = Some(RouteMonitor::open(site.topology.dut(), site.family)?);
        let seen = site.topology.count_dut_routes(site.family)?;
        if seen == asked {
            return Ok(());
        }
        let setting = format!("the number of {} routes", site.family);
        Err(moved(setting, asked.to_string(), seen.to_string()))
    }

    fn prove_unmoved(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        let (Some(asked), Some(monitor)) = (self.wanted(variant)?, &mut self.monitor) else {
            return Ok(());
        };
        if !monitor.saw_a_change()? {
            return Ok(());
        }
        let setting = format!("the {} table of {asked} routes", site.family);
        Err(moved(setting, "unchanged", "changed"))
    }
}

/// Bits of a prefix that the sequence varies.
const SPREAD_BITS: u32 = 24;

/// The routes beside the lab's own: one fixed sequence for each family, of which every beginning lies
/// evenly over the family's unicast space, so that a table grows around the traffic's routes as the
/// Internet's does, and a smaller table is a part of every larger one.
///
/// IPv4: networks of 24 bits. IPv6: of 48 bits, under 2000::/3.
fn prefixes(family: AddressFamily, avoided: &[Prefix]) -> impl Iterator<Item = Prefix> {
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
        .filter(|&prefix| !avoided.iter().any(|&avoided| overlap(prefix, avoided)))
}

/// Whether two prefixes have an address in common.
fn overlap(one: Prefix, other: Prefix) -> bool {
    let bits = |address| match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    };
    let length = one.1.min(other.1);
    one.0.is_ipv4() == other.0.is_ipv4()
        && (length == 0 || (bits(one.0) ^ bits(other.0)) >> (128 - length) == 0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const FAMILIES: [AddressFamily; 2] = [AddressFamily::Inet, AddressFamily::Inet6];

    #[test]
    fn there_are_enough_prefixes_and_none_twice_nor_near_the_traffic() {
        for family in FAMILIES {
            let avoided = Topology::prefixes(family);
            let all: BTreeSet<_> = prefixes(family, &avoided)
                .take(ROUTES_MAX as usize)
                .collect();
            assert_eq!(all.len(), ROUTES_MAX as usize);
            assert!(
                all.iter()
                    .all(|&prefix| !avoided.iter().any(|&avoided| overlap(prefix, avoided)))
            );
        }
    }

    #[test]
    fn every_beginning_lies_evenly_over_the_space() {
        for (family, parts) in [(AddressFamily::Inet, 7), (AddressFamily::Inet6, 8)] {
            for count in [1000, 10_000] {
                let mut in_part = [0_usize; 8];
                for (address, _) in prefixes(family, &[]).take(count) {
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
    fn prefixes_overlap_where_one_holds_the_other() {
        let prefix = |text: &str, length| (text.parse().unwrap(), length);
        assert!(overlap(prefix("10.0.0.0", 8), prefix("10.1.0.0", 16)));
        assert!(overlap(prefix("10.1.0.0", 16), prefix("10.0.0.0", 8)));
        assert!(overlap(prefix("0.0.0.0", 0), prefix("10.0.0.0", 8)));
        assert!(!overlap(prefix("10.0.0.0", 16), prefix("10.1.0.0", 16)));
        assert!(!overlap(prefix("::", 0), prefix("10.0.0.0", 8)));
        assert!(overlap(prefix("2001:2::", 48), prefix("2001:2::1", 128)));
    }
}
