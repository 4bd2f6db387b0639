//! The mechanisms of a DUT that is a namespace of this machine: each sets it by itself.
//!
//! A mechanism knows how to *do* (apply a variant's level), *check* (read it back, and prove later that
//! it has not moved), and *undo*: what it changes inside the DUT's namespace goes with that, and what
//! outlives it is announced to the journal before it is done.

use fwdlab_model::{AddressFamily, Placement, Resolved, Tester, Variant};

use super::{in_namespace, unbound_level, xdp};
use crate::counters::Drops;
use crate::journal::Journal;
use crate::{LabError, Topology};

/// What the mechanisms work on.
pub(crate) struct Site<'a> {
    pub(crate) topology: &'a mut Topology,
    pub(crate) journal: &'a mut Journal,
    /// The family whose frames are to be forwarded.
    pub(crate) family: AddressFamily,
}

/// One way to set something of a DUT that is a namespace of this machine.
pub(super) trait InNamespace {
    /// Why this machine cannot have the variant's level; none where it can.
    fn unavailable(
        &self,
        topology: &mut Topology,
        variant: &Variant,
    ) -> Result<Option<String>, LabError>;

    /// Whether setting the variant's level may attach or detach an XDP program: then no frame may be
    /// under way meanwhile.
    fn may_change_program(&self, _variant: &Variant) -> bool {
        false
    }

    /// Frames so far that were dropped by what the mechanism sets, by reason, beside the kernel's own counters.
    fn drops(&mut self, _topology: &Topology) -> Result<Drops, LabError> {
        Ok(Drops::new())
    }

    /// Sets the variant's level.
    fn apply(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError>;

    /// Reads the variant's level back; `ReadBack` where it is another one.
    fn read_back(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError>;

    /// Fails with `ReadBack` where the level is another one than when it was read back. It is asked
    /// after every slice, so it has to be fast.
    fn prove_unmoved(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        self.read_back(site, variant)
    }
}

/// What sets the DUT, and what it has found when reading back.
pub(crate) struct Dut {
    xdp: xdp::Xdp,
    others: Vec<Box<dyn InNamespace>>,
    bound_factors: Vec<String>,
}

impl Dut {
    pub(crate) fn new(
        resolved: &Resolved,
        placement: &Placement,
        tester: Tester,
    ) -> Result<Self, LabError> {
        let lab = &resolved.lab;
        Ok(Self {
            xdp: xdp::Xdp::new(lab, tester, resolved.traffic.direction)?,
            others: in_namespace(resolved, placement)?,
            bound_factors: lab.bindings.keys().cloned().collect(),
        })
    }

    /// Takes the XDP forwarder off the DUT, until the next variant is applied.
    pub(crate) fn detach_forwarder(&mut self) -> Result<(), LabError> {
        self.xdp.detach()
    }

    /// Whether applying a variant may attach or detach an XDP program.
    pub(crate) fn may_change_program(&mut self, variant: &Variant) -> bool {
        self.mechanisms()
            .any(|mechanism| mechanism.may_change_program(variant))
    }

    /// Why this machine cannot have a variant.
    pub(crate) fn unavailable(
        &mut self,
        topology: &mut Topology,
        variant: &Variant,
    ) -> Result<Option<String>, LabError> {
        self.prove_bound(variant)?;
        for mechanism in self.mechanisms() {
            let reason = mechanism.unavailable(topology, variant)?;
            if reason.is_some() {
                return Ok(reason);
            }
        }
        Ok(None)
    }

    /// Frames so far that were dropped by what variants may set, by reason.
    pub(crate) fn drops(&mut self, topology: &Topology) -> Result<Drops, LabError> {
        let mut drops = Drops::new();
        for mechanism in self.mechanisms() {
            drops.extend(mechanism.drops(topology)?);
        }
        Ok(drops)
    }

    /// Applies all levels of a variant.
    pub(crate) fn apply(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        self.prove_bound(variant)?;
        self.mechanisms()
            .try_for_each(|mechanism| mechanism.apply(site, variant))
    }

    /// Reads all levels of a variant back.
    pub(crate) fn read_back(
        &mut self,
        site: &mut Site<'_>,
        variant: &Variant,
    ) -> Result<(), LabError> {
        self.mechanisms()
            .try_for_each(|mechanism| mechanism.read_back(site, variant))
    }

    /// Fails where any level of a variant is another one than when it was read back; what says so
    /// itself (a ruleset, routes) counts as moved even where it was moved back.
    pub(crate) fn prove_unmoved(
        &mut self,
        site: &mut Site<'_>,
        variant: &Variant,
    ) -> Result<(), LabError> {
        self.mechanisms()
            .try_for_each(|mechanism| mechanism.prove_unmoved(site, variant))
    }

    fn mechanisms(&mut self) -> impl Iterator<Item = &mut (dyn InNamespace + 'static)> {
        let others = self.others.iter_mut().map(|mechanism| &mut **mechanism);
        std::iter::once(&mut self.xdp as &mut dyn InNamespace).chain(others)
    }

    fn prove_bound(&self, variant: &Variant) -> Result<(), LabError> {
        let unbound = variant
            .levels
            .iter()
            .find(|(factor, _)| !self.bound_factors.contains(factor));
        unbound.map_or(Ok(()), |(factor, level)| Err(unbound_level(factor, level)))
    }
}

/// What is said of a setting that reads back as something else.
pub(super) fn moved(
    setting: impl Into<String>,
    asked: impl Into<String>,
    seen: impl Into<String>,
) -> LabError {
    LabError::ReadBack {
        setting: setting.into(),
        asked: asked.into(),
        seen: seen.into(),
    }
}
