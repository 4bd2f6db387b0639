//! Copies of the journals of what was changed on a host, kept there.

use std::rc::Rc;

use fwdlab_model::System;

use super::dut::unless_refused;
use super::ssh::Connection;
use crate::LabError;
use crate::journal::{FoundCopy, KeepCopy, Undo, found};
use crate::mechanism::step::{Errand, owned};

/// Appends its standard input to a file of a folder, durably. What stood there torn ends where this begins.
const APPEND: &str =
    "umask 077 && mkdir -p \"$0\" && cat >> \"$0/$1\" && { sync \"$0/$1\" 2>/dev/null || sync; }";

/// Prints each copy of a folder behind its name.
const LIST: &str = "for copy in \"$0\"/*.jsonl; do if [ -f \"$copy\" ]; then echo \"= ${copy##*/}\"; cat \"$copy\"; echo; fi; done";

/// A copy on a host.
#[derive(Debug)]
pub(super) struct JournalCopy {
    connection: Rc<Connection>,
    folder: String,
    name: String,
}

impl JournalCopy {
    /// Of a journal of that name, kept in a folder of the host.
    pub(super) fn new(
        connection: &Rc<Connection>,
        folder: &str,
        controller: &str,
        journal: &str,
    ) -> Self {
        Self {
            connection: Rc::clone(connection),
            folder: folder.to_owned(),
            name: format!("{controller}.{journal}.jsonl"),
        }
    }

    /// Why none can be kept; none where one can.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) fn unavailable(&self) -> Result<Option<String>, LabError> {
        let tried = self
            .append("")
            .and_then(|()| self.connection.run(&self.removing(), ""));
        Ok(unless_refused(tried)?.err())
    }

    fn removing(&self) -> Vec<String> {
        let path = format!("{}/{}", self.folder, self.name);
        owned(&["rm", "-f", &path])
    }
}

impl KeepCopy for JournalCopy {
    fn append(&self, lines: &str) -> Result<(), LabError> {
        let words = ["sh", "-c", APPEND, &self.folder, &self.name];
        let text = format!("\n{lines}");
        self.connection.run(&words, &text).map(|_| ())
    }

    fn removal(&self) -> Undo {
        self.connection.undo_by(Errand::of(&self.removing()))
    }
}

/// Where a DUT keeps copies of the journals of what was changed there.
pub(super) fn journal_folder(system: System) -> &'static str {
    match system {
        System::Freebsd => "/var/db/fwdlab/copies",
        System::Linux => "/var/lib/fwdlab/copies",
    }
}

/// All copies on a host in which something is open; those of boots behind the others.
///
/// # Errors
/// Those of the connection.
pub(crate) fn copies(connection: &Connection, system: System) -> Result<Vec<FoundCopy>, LabError> {
    let folder = journal_folder(system);
    let printed = connection.run(&["sh", "-c", LIST, folder], "")?;
    Ok(found(&printed, folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_lines_that_a_c_shell_takes_as_they_are() {
        for script in [APPEND, LIST] {
            assert!(!script.contains(['\n', '!']), "{script}");
        }
    }
}
