//! Changes of a host: announced to the journal with what undoes them, and then made.

use super::ssh::Connection;
use crate::LabError;
use crate::journal::{ChangeId, Journal};
use crate::mechanism::step::{Errand, Rehearsal, Step};

/// Tries what undoes them, where only trying tells whether it works, announces them, and then makes them in their order.
///
/// # Errors
/// `Host` where a change could not be undone, when the journal cannot be written, and what the host refuses.
pub(super) fn change_all(
    connection: &Connection,
    journal: &mut Journal,
    steps: Vec<Step>,
) -> Result<(), LabError> {
    for step in &steps {
        rehearse(connection, step.rehearsal.as_ref())?;
    }
    let mut announced = Vec::new();
    let mut errands = Vec::new();
    for step in steps {
        announced.push((step.what, connection.undo_by(step.undo)));
        errands.extend(step.errands);
    }
    journal.announce_all(announced)?;
    connection.run_in_order(&errands)
}

fn rehearse(connection: &Connection, rehearsal: Option<&Rehearsal>) -> Result<(), LabError> {
    let Some(Rehearsal { errand, refused }) = rehearsal else {
        return Ok(());
    };
    match connection.complaint(errand)? {
        None => Ok(()),
        Some(stderr) => Err(connection.wrong(refused(&stderr))),
    }
}

/// Announces what is about to be changed on a host, and the command there that undoes it.
///
/// # Errors
/// When the journal cannot be written.
pub(super) fn announce(
    connection: &Connection,
    journal: &mut Journal,
    what: String,
    undo: &[impl AsRef<str>],
    input: &str,
) -> Result<ChangeId, LabError> {
    let undo = connection.undo_by(Errand::reading(undo, input));
    journal.announce(what, undo)
}
