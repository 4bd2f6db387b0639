//! Taking back, over ssh, what was changed on a host.

use std::time::Duration;

use super::boot::{BootId, BootLoader, reboot};
use super::freebsd::{Loader, is_on_slice};
use super::linux::Grub;
use super::ssh::Connection;
use crate::LabError;
use crate::journal::{BootUntil, CarryOut, Destination, Undo, Until};
use crate::mechanism::step::Errand;

/// Over a connection for each change.
impl CarryOut for Destination {
    fn carry_out(&self, undo: &Undo) -> Result<(), LabError> {
        let at = undo.destination().unwrap_or(self);
        Connection::open_again(at.clone())?.carry_out(undo)
    }
}

impl CarryOut for Connection {
    fn carry_out(&self, undo: &Undo) -> Result<(), LabError> {
        if let Some(errand) = errand_to(self.destination(), undo) {
            return self.run(&errand.words, &errand.input).map(|_| ());
        }
        match undo {
            Undo::Boot(boot) if boot.at == *self.destination() => boot_until(self, boot),
            Undo::OnHost { at, .. } | Undo::Boot(BootUntil { at, .. }) => at.carry_out(undo),
            Undo::RemoveNamespace { .. } | Undo::Run { .. } | Undo::WriteSysctl { .. } => {
                Err(LabError::NotRestored {
                    leftover: format!("could not {undo}, which is of the controller, on a host"),
                })
            }
        }
    }

    fn carry_out_at_once(&self, undos: &[&Undo]) -> Vec<bool> {
        let errands = undos.iter();
        let errands = errands.map_while(|undo| errand_to(self.destination(), undo));
        let errands: Vec<Errand> = errands.collect();
        // What takes time is the way.
        let outputs = self.run_all_with_input(&errands).unwrap_or_default();
        outputs.iter().map(Option::is_some).collect()
    }
}

/// The command that undoes something on a host that is reached so; none where that takes something else.
fn errand_to(destination: &Destination, undo: &Undo) -> Option<Errand> {
    match undo {
        Undo::OnHost {
            at,
            arguments,
            input,
        } if at == destination => Some(Errand::reading(arguments, input)),
        _ => None,
    }
}

/// Boots a host until it has booted into something, unless it has already, and waits until it answers.
fn boot_until(connection: &Connection, boot: &BootUntil) -> Result<(), LabError> {
    if let Until::Slice { slice } = &boot.until
        && is_on_slice(connection, slice)?
    {
        return Ok(());
    }
    let loader: Box<dyn BootLoader> = match boot.until {
        Until::Kernel { .. } => Box::new(Grub),
        Until::Itself { .. } | Until::Slice { .. } => Box::new(Loader::by_itself()),
    };
    let booted = loader.look(connection)?;
    let has_booted = match &boot.until {
        Until::Kernel {
            kernel,
            command_line,
        } => booted.kernel == *kernel && booted.command_line == *command_line,
        Until::Itself { boot_time_s } => booted.id.is(&BootId::BeganAt(*boot_time_s)),
        Until::Slice { .. } => false,
    };
    if has_booted {
        return Ok(());
    }
    let time_max = Duration::from_secs(boot.time_s_max);
    reboot(connection, &*loader, &booted.id, time_max)?;
    match &boot.until {
        Until::Slice { slice } if !is_on_slice(connection, slice)? => Err(connection.wrong(
            format!("it was to boot from {slice}, and has not; see what `gpart show` tells there"),
        )),
        _ => Ok(()),
    }
}
