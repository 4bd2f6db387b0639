//! The XDP program on the DUT's receiving interfaces.

use std::collections::BTreeMap;

use fwdlab_model::{Binding, Direction, Lab, Tester, Variant, XdpProgram};
use fwdlab_traffic::{CountingProgram, object_bytes};

use super::{Mechanism, Site, bound, moved, unbound_level};
use crate::topology::receiving;
use crate::{LabError, Topology};

/// Outcomes of the XDP forwarder, in the order of its `enum outcome`.
pub(crate) const FORWARDER_DROPPED: u32 = 2;

/// Loads the XDP forwarder that asks the kernel's FIB for every packet.
///
/// # Errors
/// Without the privilege.
pub fn fib_forwarder() -> Result<CountingProgram, LabError> {
    let object = object_bytes!("../../bpf/fib_forwarder.bpf.o");
    Ok(CountingProgram::load(object, "forward", "outcomes")?)
}

pub(super) struct Xdp {
    /// The program of each level, by factor.
    programs: BTreeMap<String, BTreeMap<String, XdpProgram>>,
    /// None where this process may load no eBPF program.
    forwarder: Option<CountingProgram>,
    interfaces: &'static [&'static str],
}

impl Xdp {
    pub(super) fn new(lab: &Lab, tester: Tester, direction: Direction) -> Result<Self, LabError> {
        let programs = bound(lab, |binding| match binding {
            Binding::Xdp(programs) => Some(programs.clone()),
            _ => None,
        });
        // Whoever may load the generator may load the forwarder.
        let forwarder = match tester {
            Tester::Ebpf => {
                let mut forwarder = fib_forwarder()?;
                forwarder.xdp.park()?;
                Some(forwarder)
            }
            _ => None,
        };
        Ok(Self {
            programs: programs.collect(),
            forwarder,
            interfaces: receiving(direction),
        })
    }

    pub(super) fn forwarder(&self) -> Option<&CountingProgram> {
        self.forwarder.as_ref()
    }

    pub(super) fn detach(&mut self) -> Result<(), LabError> {
        if let Some(forwarder) = &mut self.forwarder {
            forwarder.xdp.detach()?;
        }
        Ok(())
    }

    /// The variant's program, where any factor sets one.
    fn wanted(&self, variant: &Variant) -> Result<Option<XdpProgram>, LabError> {
        let mut wanted = None;
        for (factor, programs) in &self.programs {
            if let Some(level) = variant.levels.get(factor) {
                let program = programs.get(&level.to_string());
                wanted = Some(*program.ok_or_else(|| unbound_level(factor, level))?);
            }
        }
        Ok(wanted)
    }
}

impl Mechanism for Xdp {
    fn unavailable(
        &self,
        _topology: &mut Topology,
        variant: &Variant,
    ) -> Result<Option<String>, LabError> {
        let wants_forwarder = self.wanted(variant)? == Some(XdpProgram::Fib);
        Ok((wants_forwarder && self.forwarder.is_none())
            .then(|| "this process may load no XDP program; run fwdlab as root (sudo)".into()))
    }

    fn may_change_program(&self, variant: &Variant) -> bool {
        let is_attached = self
            .forwarder()
            .is_some_and(|program| program.xdp.is_attached());
        // What is not bound is refused when it is applied.
        let wanted = self.wanted(variant).ok().flatten();
        wanted.is_some_and(|wanted| (wanted == XdpProgram::Fib) != is_attached)
    }

    fn apply(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        match (self.wanted(variant)?, &mut self.forwarder) {
            (Some(XdpProgram::Fib), Some(forwarder)) if !forwarder.xdp.is_attached() => {
                for interface in self.interfaces {
                    let attach = || forwarder.xdp.attach_to_stay(interface);
                    site.topology.dut().run(attach)??;
                }
            }
            (Some(XdpProgram::Off), Some(forwarder)) => forwarder.xdp.detach()?,
            // Where it cannot be loaded, variants that want it are not run.
            (Some(_) | None, _) => {}
        }
        Ok(())
    }

    fn read_back(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        let asked = match self.wanted(variant)? {
            None => return Ok(()),
            Some(XdpProgram::Off) => Some(0),
            Some(XdpProgram::Fib) => match &self.forwarder {
                Some(forwarder) => Some(forwarder.xdp.id()?),
                None => None,
            },
        };
        for interface in self.interfaces {
            let seen = site.topology.dut_xdp_program(interface)?;
            if asked != Some(seen) {
                let setting = format!("the XDP program on {interface}");
                let asked =
                    asked.map_or_else(|| "one that was not loaded".into(), |id| id.to_string());
                return Err(moved(setting, asked, seen.to_string()));
            }
        }
        Ok(())
    }
}
