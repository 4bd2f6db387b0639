//! A lab of any kind, as whoever measures in it sees it.

use std::path::Path;
use std::rc::Rc;

use fwdlab_model::{Environment, Hosts, LabKind, Load, LoadRecord, Resolved};
use fwdlab_sys::Interrupts;

use crate::doctor::{Finding, State, examine_netns, examine_router};
use crate::hosts::{Connection, HostsLab, examine_hosts, refuse_unoffered};
use crate::journal::{Destination, state_directory};
use crate::netns::NetnsLab;
use crate::restore::{
    Tell, Whose, left_findings, refuse_living, refuse_other_controllers, restore_all,
    restore_own_copies,
};
use crate::router::RouterLab;
use crate::{Asks, BlockOutcome, BlockRun, Choices, LabError, LabEvent};

/// A lab that is open, ready to measure.
pub enum Lab {
    /// This machine's kernel.
    Netns(NetnsLab),
    /// The reference router.
    Router(RouterLab),
    /// Hosts reached by ssh.
    Hosts(Box<HostsLab>),
}

impl Lab {
    /// Gives an ordinary user's process what a lab needs; to be called before any thread is started.
    ///
    /// # Errors
    /// `NoHosts`, or `NoUserNamespace`.
    pub fn prepare_process(lab: &fwdlab_model::Lab) -> Result<(), LabError> {
        match lab.kind {
            LabKind::Netns => NetnsLab::prepare_process(lab),
            LabKind::Router => Ok(()),
            LabKind::Ssh(_) => named_hosts(lab).map(|_| ()),
        }
    }

    /// Opens the experiment's lab: puts back what killed runs had left, and tells it, and chooses the CPUs and the tester. Hosts
    /// on which another controller has changes open are left as they are.
    ///
    /// # Errors
    /// `NoHosts`, `Cpu`, `NotRestored`, or what the kernel refuses.
    pub fn open(
        resolved: &Resolved,
        state_directory: &Path,
        interrupts: Interrupts,
        tell: &mut Tell<'_>,
    ) -> Result<Self, LabError> {
        match resolved.lab.kind {
            LabKind::Netns => {
                restore_all(state_directory, Whose::ThisMachine, tell)?;
                let lab = NetnsLab::open(resolved, state_directory, interrupts)?;
                Ok(Self::Netns(lab))
            }
            LabKind::Router => {
                let lab = RouterLab::open(resolved, interrupts)?;
                Ok(Self::Router(lab))
            }
            LabKind::Ssh(system) => {
                let hosts = named_hosts(&resolved.lab)?;
                // No host is asked for traffic that would not be routed.
                for stratum in resolved.strata() {
                    crate::addresses::frames(stratum.family, resolved.traffic(stratum))?;
                }
                refuse_unoffered(&hosts, resolved)?;
                let connection = Rc::new(Connection::open(Destination::of_dut(&hosts))?);
                refuse_other_controllers(&connection, state_directory)?;
                restore_all(state_directory, Whose::Hosts(&hosts.names()), tell)?;
                refuse_living(state_directory, &hosts.dut.host)?;
                restore_own_copies(&connection, state_directory, tell)?;
                let lab = HostsLab::open(
                    resolved,
                    hosts,
                    system,
                    connection,
                    state_directory,
                    interrupts,
                )?;
                Ok(Self::Hosts(Box::new(lab)))
            }
        }
    }

    /// What it works with.
    #[must_use]
    pub fn choices(&self) -> &Choices {
        match self {
            Self::Netns(lab) => &lab.choices,
            Self::Router(lab) => &lab.choices,
            Self::Hosts(lab) => &lab.choices,
        }
    }

    /// What the machine is that forwards.
    #[must_use]
    pub fn environment(&self) -> Environment {
        match self {
            Self::Netns(_) => crate::environment(),
            Self::Router(lab) => lab.environment(),
            Self::Hosts(lab) => lab.environment().clone(),
        }
    }

    /// Finds out what has to be known before anything is measured: a DUT whose variants need a boot is booted, and how much
    /// is offered is settled where that depends on what the machine can do. Tells that load; a run that goes on keeps the
    /// `first` of its sessions.
    ///
    /// # Errors
    /// When a host does not come back, or the machine cannot do what the lab file asks for.
    pub fn get_ready(
        &mut self,
        first: Option<&LoadRecord>,
        on_event: &mut dyn FnMut(LabEvent<'_>),
    ) -> Result<Option<LoadRecord>, LabError> {
        match self {
            Self::Netns(_) => Ok(None),
            Self::Router(lab) => {
                if first.is_none() && lab.measures_load() {
                    on_event(LabEvent::FindsLoad);
                }
                lab.settle_load(first)?;
                Ok(Some(lab.load().clone()))
            }
            Self::Hosts(lab) => lab.get_ready(on_event).map(|()| None),
        }
    }

    /// Why the lab cannot have a variant, for each variant of the experiment.
    ///
    /// # Errors
    /// When the lab cannot be made at all.
    pub fn unavailable(&mut self, asks: Asks) -> Result<Vec<Option<String>>, LabError> {
        match self {
            Self::Netns(lab) => lab.unavailable(),
            Self::Router(lab) => Ok(lab.unavailable()),
            Self::Hosts(lab) => lab.unavailable(asks),
        }
    }

    /// Measures one block on a fresh set-up.
    ///
    /// # Errors
    /// When the lab cannot be set up, a variant does not forward its probe frames, or the user asks to
    /// stop now. Nothing of the set-up remains.
    pub fn measure(&mut self, run: &mut BlockRun<'_>) -> Result<BlockOutcome, LabError> {
        match self {
            Self::Netns(lab) => lab.measure(run),
            Self::Router(lab) => lab.measure(run),
            Self::Hosts(lab) => lab.measure(run),
        }
    }
}

/// Looks at everything of a lab that is not measured in blocks; takes some seconds.
///
/// Shape: `load` is that of the lab file; `prepared` is what [`Lab::prepare_process`] said.
///
/// # Errors
/// `NoHosts`, `Cpu` where the lab file names a CPU that is not there, `Interrupted`, or where an undo journal cannot be read.
pub fn examine(
    lab: &fwdlab_model::Lab,
    load: Load,
    environment: &Environment,
    prepared: &Result<(), LabError>,
    interrupts: Interrupts,
) -> Result<Vec<Finding>, LabError> {
    let mut findings = match lab.kind {
        LabKind::Netns => examine_netns(lab, load, environment, prepared)?,
        // It changes nothing that could be left.
        LabKind::Router => return examine_router(lab, load, environment, interrupts),
        LabKind::Ssh(system) => examine_hosts(system, lab, load)?,
    };
    let mut states = findings.iter().map(|finding| finding.state);
    let is_reached = states.all(|state| state != State::Fatal);
    findings.extend(left_findings(&state_directory()?, lab, is_reached)?);
    Ok(findings)
}

/// The hosts of a lab, as they are reached from any folder: the journal is read from wherever somebody restores. A lab of
/// FreeBSD hosts may be one to plan with, which names none.
fn named_hosts(lab: &fwdlab_model::Lab) -> Result<Hosts, LabError> {
    let no_hosts = || LabError::NoHosts {
        lab: lab.name.clone(),
    };
    let mut hosts = lab.hosts.clone().ok_or_else(no_hosts)?;
    if let Some(config) = &mut hosts.ssh_config {
        *config = std::path::absolute(&*config)
            .map_err(|source| LabError::file("looking for", config, source))?;
    }
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use fwdlab_model::System;

    use super::*;

    fn refusal(kind: LabKind) -> String {
        let lab = fwdlab_model::Lab {
            kind,
            ..fwdlab_model::Lab::netns("here")
        };
        Lab::prepare_process(&lab).unwrap_err().to_string()
    }

    #[test]
    fn a_lab_without_hosts_says_what_to_do() {
        assert_eq!(
            refusal(LabKind::Ssh(System::Freebsd)),
            "lab here: it names no hosts and can only be planned; `fwdlab plan` shows what would be measured \
             there, [dut] and [tester] in its file name hosts (docs/labs.md), and `--lab labs/router.toml` of fwdlab's \
             repository runs the same experiment on the reference router"
        );
    }
}
