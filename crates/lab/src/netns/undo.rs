//! Taking back what was changed on this machine.

use std::path::Path;

use fwdlab_sys::{NamespaceEntrance, NetworkNamespace};

use crate::journal::{CarryOut, Undo};
use crate::kernel_file::{read, write};
use crate::{LabError, program};

/// This machine, where no DUT is at hand.
#[derive(Debug)]
pub(crate) struct ThisMachine;

/// This machine with the way into the DUT of the moment. One of a process in a user namespace has no place where its name
/// would lead to it.
#[derive(Debug)]
pub(super) struct WithDut(pub(super) NamespaceEntrance);

impl CarryOut for ThisMachine {
    fn carry_out(&self, undo: &Undo) -> Result<(), LabError> {
        carry_out(undo, None)
    }
}

impl CarryOut for WithDut {
    fn carry_out(&self, undo: &Undo) -> Result<(), LabError> {
        carry_out(undo, Some(&self.0))
    }
}

fn carry_out(undo: &Undo, dut: Option<&NamespaceEntrance>) -> Result<(), LabError> {
    match undo {
        Undo::RemoveNamespace { name } => Ok(fwdlab_sys::remove_namespace(name)?),
        Undo::Run {
            namespace,
            arguments,
            started,
        } => {
            // It could change what is put back. Where it does not end, the change stays open, and is put back now
            // all the same.
            let ended = match started {
                Some(started) => started.descendants().end().map_err(LabError::from),
                None => Ok(()),
            };
            let run = || program::run_bound(arguments).map(|_| ());
            if let Some(dut) = dut.filter(|dut| dut.name() == namespace) {
                return dut.run(run)?.and(ended);
            }
            let undone = match fwdlab_sys::run_in_namespace(namespace, run)? {
                Some(result) => result,
                None => NetworkNamespace::create("restore")?.run(run)?,
            };
            undone.and(ended)
        }
        Undo::WriteSysctl { setting, value } => {
            let path = Path::new("/proc/sys").join(setting);
            if read(&path)?.trim() == value.trim() {
                return Ok(());
            }
            write(&path, value)
        }
        Undo::OnHost { .. } | Undo::Boot(_) => Err(LabError::NotRestored {
            leftover: format!("could not {undo}: it is of another machine"),
        }),
    }
}
