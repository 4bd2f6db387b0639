//! The number of routes in the DUT's table.

use std::collections::BTreeMap;

use fwdlab_model::{AddressFamily, Level, Variant};

use super::{Mechanism, Site, moved, unbound_level};
use crate::addresses::{own_prefixes, spread_prefixes};
use crate::netlink::{RouteChange, RouteMonitor};
use crate::{LabError, Topology};

/// Routes of the lab's own through a next hop: to the sources and to the destinations.
pub(crate) const OWN_ROUTES: u32 = 2;

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
        let level = variant.levels.get(&self.factor);
        level
            .map(|level| routes_of(&self.factor, level))
            .transpose()
    }
}

/// How many routes a level is.
///
/// # Errors
/// `Unbound` where it is no number of routes.
pub(crate) fn routes_of(factor: &str, level: &Level) -> Result<u32, LabError> {
    let count = match level {
        Level::Integer(count) => u32::try_from(*count).ok(),
        Level::Text(word) => word.parse().ok(),
        Level::Boolean(_) => None,
    };
    count.ok_or_else(|| unbound_level(factor, level))
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
        let avoided = own_prefixes(family);
        let prefixes = spread_prefixes(family, &avoided)
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
