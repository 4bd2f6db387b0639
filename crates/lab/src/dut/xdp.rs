//! The XDP program on the DUT's receiving interface.

use std::collections::BTreeMap;

use fwdlab_model::{Binding, Lab, Variant, XdpProgram};
use fwdlab_traffic::{CountingProgram, object_bytes};

use super::{Mechanism, Site, bound, moved, unbound_level};
use crate::topology::DUT_IN;
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
    forwarder: CountingProgram,
}

impl Xdp {
    pub(super) fn new(lab: &Lab) -> Result<Self, LabError> {
        let programs = bound(lab, |binding| match binding {
            Binding::Xdp(programs) => Some(programs.clone()),
            _ => None,
        });
        Ok(Self {
            programs: programs.collect(),
            forwarder: fib_forwarder()?,
        })
    }

    pub(super) fn forwarder(&self) -> &CountingProgram {
        &self.forwarder
    }

    pub(super) fn detach(&mut self) {
        self.forwarder.xdp.detach();
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
        // Whoever may load the generator may load the forwarder.
        self.wanted(variant).map(|_| None)
    }

    fn apply(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        match self.wanted(variant)? {
            Some(XdpProgram::Fib) if !self.forwarder.xdp.is_attached() => {
                let attach = || self.forwarder.xdp.attach(DUT_IN);
                site.topology.dut().run(attach)??;
            }
            Some(XdpProgram::Off) => self.forwarder.xdp.detach(),
            Some(XdpProgram::Fib) | None => {}
        }
        Ok(())
    }

    fn read_back(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        let asked = match self.wanted(variant)? {
            None => return Ok(()),
            Some(XdpProgram::Off) => 0,
            Some(XdpProgram::Fib) => self.forwarder.xdp.id()?,
        };
        let seen = site.topology.dut_xdp_program()?;
        if asked == seen {
            return Ok(());
        }
        let setting = format!("the XDP program on {DUT_IN}");
        Err(moved(setting, asked.to_string(), seen.to_string()))
    }
}
