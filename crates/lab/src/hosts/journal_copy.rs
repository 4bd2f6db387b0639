//! Copies of the journals of what was changed on a host, kept there.

use std::rc::Rc;

use fwdlab_model::System;

use super::dut::unless_refused;
use super::ssh::Connection;
use crate::LabError;
use crate::journal::{ChangeId, FoundCopy, KeepCopy, Undo, found, lines_of_undone};
use crate::mechanism::step::{Errand, owned};

/// Appends its standard input to a file of a folder, durably. What stood there torn ends where this begins.
const APPEND: &str =
    "umask 077 && mkdir -p \"$0\" && cat >> \"$0/$1\" && { sync \"$0/$1\" 2>/dev/null || sync; }";

/// Writes its standard input in place of a copy, durably; removes that where there is no input, or no room for it.
const REPLACE: &str = "umask 077; cat > \"$0\" && { sync \"$0\" 2>/dev/null || sync; } && [ -s \"$0\" ] || rm -f \"$0\"";

/// Prints each copy of some folders behind its path.
const LIST: &str = "for folder; do for copy in \"$folder\"/*.jsonl; do if [ -f \"$copy\" ]; then echo \"= $copy\"; \
                    cat \"$copy\"; echo; fi; done; done";

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

/// Where a DUT of FreeBSD keeps copies of the journals of what was changed there, and one of Linux.
const FOLDERS: [&str; 2] = ["/var/db/fwdlab/copies", "/var/lib/fwdlab/copies"];

/// That of a system.
pub(super) fn journal_folder(system: System) -> &'static str {
    match system {
        System::Freebsd => FOLDERS[0],
        System::Linux => FOLDERS[1],
    }
}

/// All copies on a host, also those in which nothing is open; those of boots behind the others.
///
/// # Errors
/// Those of the connection.
pub(crate) fn copies(connection: &Connection) -> Result<Vec<FoundCopy>, LabError> {
    let printed = connection.run(&[&["sh", "-c", LIST, "sh"][..], &FOLDERS].concat(), "")?;
    Ok(found(&printed))
}

/// Writes down in a copy that some of its changes are undone, while others are open.
///
/// # Errors
/// Where that cannot be written, and those of the connection.
pub(crate) fn note_undone(
    connection: &Connection,
    copy: &FoundCopy,
    ids: impl IntoIterator<Item = ChangeId>,
) -> Result<(), LabError> {
    let (folder, name) = copy.path.rsplit_once('/').unwrap_or_default();
    let words = ["sh", "-c", APPEND, folder, name];
    let lines = format!("\n{}", lines_of_undone(ids));
    connection.run(&words, &lines).map(|_| ())
}

/// Leaves of another controller's copy, whose changes are all undone, only that they are, for that controller to read.
///
/// # Errors
/// Those of the connection.
pub(crate) fn leave_undone(
    connection: &Connection,
    copy: &FoundCopy,
    ids: impl IntoIterator<Item = ChangeId>,
) -> Result<(), LabError> {
    let words = ["sh", "-c", REPLACE, &copy.path];
    let lines = lines_of_undone(ids);
    connection.run(&words, &lines).map(|_| ())
}

/// Fails where a run of another controller has changes open on a host.
///
/// # Errors
/// `Host`, which names the controller and the first of the changes.
pub(crate) fn refuse_others(
    connection: &Connection,
    copies: &[FoundCopy],
    own: &str,
) -> Result<(), LabError> {
    match open_of_another(copies, own) {
        Some(why) => Err(connection.wrong(why)),
        None => Ok(()),
    }
}

/// What another controller has open, and what to do; none where there is nothing.
fn open_of_another(copies: &[FoundCopy], own: &str) -> Option<String> {
    let mut others = copies.iter().filter(|copy| copy.controller != own);
    let copy = others.find(|copy| !copy.open.is_empty())?;
    let mut changes = copy.open.iter();
    let first = changes
        .find(|change| !change.is_of_copy())
        .unwrap_or(&copy.open[0]);
    Some(format!(
        "a run of {} has changes open there, the first of {}: {}; it may be measuring now: wait until it has ended \
         (`--wait` waits for runs of this machine alone). If it was killed, run `fwdlab restore` {}; if that controller is \
         gone, `fwdlab restore LAB` here puts them back",
        copy.owner(),
        first.time,
        first.what,
        copy.place_to_restore(own)
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn scripts_are_lines_that_a_c_shell_takes_as_they_are() {
        for script in [APPEND, REPLACE, LIST] {
            assert!(!script.contains(['\n', '!']), "{script}");
        }
    }

    /// Another controller's copy with one change open.
    const OTHERS: &str = r#"= /copies/laptop.0123456789ab.changes.jsonl
{"record":"change","id":{"boot":"b","pid":7,"start_time":1,"number":2},"time":"2026-01-01T00:00:00Z","what":"a route","undo":{"kind":"on-host","host":"router","arguments":["true"],"input":""}}
"#;

    #[test]
    fn a_host_with_open_changes_of_another_controller_is_refused_until_they_are_undone() {
        let copies = found(OTHERS);
        let why = open_of_another(&copies, "laptop.ba9876543210").unwrap();
        assert!(
            why.starts_with(
                "a run of controller laptop.0123456789ab has changes open there, the first of 2026-01-01T00:00:00Z: a route"
            ),
            "{why}"
        );
        assert!(
            why.contains("`--wait` waits for runs of this machine alone"),
            "{why}"
        );
        assert_eq!(open_of_another(&copies, "laptop.0123456789ab"), None);
        let undone = lines_of_undone([copies[0].open[0].id.clone()]);
        let put_back = found(&format!("{OTHERS}{undone}"));
        assert_eq!(open_of_another(&put_back, "laptop.ba9876543210"), None);
    }

    #[test]
    fn a_copy_is_replaced_by_what_is_undone_and_found_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("laptop.0123456789ab.changes.jsonl");
        std::fs::write(&path, OTHERS.lines().nth(1).unwrap()).unwrap();
        let shell = |arguments: &[&str], input: &str| {
            let words = [&["sh", "-c"][..], arguments].concat();
            let output = crate::program::run_for(Duration::from_secs(60), &words, input).unwrap();
            assert!(output.status.success(), "{}", output.stderr);
            output.stdout
        };
        let list = || {
            found(&shell(
                &[LIST, "sh", "/nowhere", folder.path().to_str().unwrap()],
                "",
            ))
        };
        let open = list();
        let path = path.to_str().unwrap();
        assert_eq!(
            (open.len(), &*open[0].path, open[0].open.len()),
            (1, path, 1)
        );
        let id = open[0].open[0].id.clone();
        shell(&[REPLACE, path], &lines_of_undone([id.clone()]));
        let undone = list();
        assert_eq!((undone[0].open.len(), &undone[0].undone), (0, &vec![id]));
        // Where it cannot be written there is none.
        shell(&[REPLACE, "/nowhere/copy.jsonl"], "");
    }
}
