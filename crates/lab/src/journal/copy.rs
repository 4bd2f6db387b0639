//! A copy of what stands open in a host's journal, on that host: whoever finds a DUT changed can put it back, though
//! the controller that changed it is gone with its disk.
//!
//! One file a controller and journal, only ever appended to while anything in it is open. Its first line is the change
//! that makes it, which removing it undoes: the last of all, as the latest change is undone first. Where another controller
//! puts all of it back, the file stays and says so, until its own controller has read it: that one's journal has the
//! changes open still, and would undo them over what the host was set to since.

use std::fmt;

use super::{Change, ChangeId, Line, Undo, text_of};
use crate::LabError;

/// Keeps a copy where it outlives this machine.
pub(crate) trait KeepCopy: fmt::Debug {
    /// Appends lines; they are durable there when this returns. What stood there torn ends where they begin.
    ///
    /// # Errors
    /// Where they cannot be written.
    fn append(&self, lines: &str) -> Result<(), LabError>;

    /// What undoes that there is a copy.
    fn removal(&self) -> Undo;
}

/// What a copy holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundCopy {
    /// The file.
    pub(crate) path: String,
    /// Whose it is, as the file's name says.
    pub(crate) controller: String,
    /// In the order in which they were made.
    pub(crate) open: Vec<Change>,
    /// What it says to be undone.
    pub(crate) undone: Vec<ChangeId>,
}

impl FoundCopy {
    /// Whose it is, with the folder of the journal where the copy says it: users of a machine are told apart by that.
    pub(crate) fn owner(&self) -> String {
        let mut directories = self
            .open
            .iter()
            .filter_map(|change| change.directory.as_ref());
        match directories.next() {
            Some(directory) => format!(
                "controller {} (journals in {})",
                self.controller,
                directory.display()
            ),
            None => format!("controller {}", self.controller),
        }
    }

    /// Where its owner has to run `fwdlab restore`, as seen from a controller.
    pub(crate) fn place_to_restore(&self, own: &str) -> &'static str {
        let machine = |controller: &str| controller.split('.').next().map(str::to_owned);
        if machine(&self.controller) == machine(own) {
            "as the user who started it, with the same XDG_STATE_HOME"
        } else {
            "on that controller"
        }
    }
}

/// Lines that say what is undone.
pub(crate) fn lines_of_undone(ids: impl IntoIterator<Item = ChangeId>) -> String {
    let lines = ids.into_iter().map(|id| Line::Undone { id });
    text_of(&lines.collect::<Vec<_>>())
}

/// The copies of a host, by what was printed of each behind a line with `= ` and its path.
pub(crate) fn found(printed: &str) -> Vec<FoundCopy> {
    let mut copies: Vec<FoundCopy> = Vec::new();
    for line in printed.lines() {
        if let Some(path) = line.strip_prefix("= ") {
            let name = path.rsplit('/').next().unwrap_or_default();
            let parts: Vec<&str> = name.splitn(3, '.').take(2).collect();
            copies.push(FoundCopy {
                path: path.to_owned(),
                controller: parts.join("."),
                open: Vec::new(),
                undone: Vec::new(),
            });
            continue;
        }
        let Some(copy) = copies.last_mut() else {
            continue;
        };
        // A line that was torn announced what has never happened.
        match serde_json::from_str(line) {
            // One that was sent twice because the connection broke stands there twice.
            Ok(Line::Change(change)) if !copy.open.contains(&change) => copy.open.push(change),
            Ok(Line::Undone { id }) => {
                copy.open.retain(|change| change.id != id);
                copy.undone.push(id);
            }
            Ok(Line::Change(_)) | Err(_) => {}
        }
    }
    copies
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CHANGE: &str = r#"{"record":"change","id":{"boot":"b","pid":7,"start_time":1,"number":2},"time":"2026-01-01T00:00:00Z","what":"a route","undo":{"kind":"on-host","host":"router","arguments":["true"],"input":""}}"#;
    const UNDONE: &str =
        r#"{"record":"undone","id":{"boot":"b","pid":7,"start_time":1,"number":2}}"#;

    #[test]
    fn what_is_open_is_found_by_its_controller() {
        let torn = &CHANGE[..40];
        let printed = format!(
            "= /var/lib/fwdlab/laptop.0123456789ab.changes.jsonl\n\n{torn}\n{CHANGE}\n\n{CHANGE}\n\n\
             = /var/db/fwdlab/other.ba9876543210.changes.jsonl\n\n{CHANGE}\n\n{UNDONE}\n\n"
        );
        let copies = found(&printed);
        assert_eq!(copies.len(), 2, "{copies:?}");
        assert_eq!(copies[0].controller, "laptop.0123456789ab");
        assert_eq!(
            copies[0].path,
            "/var/lib/fwdlab/laptop.0123456789ab.changes.jsonl"
        );
        assert_eq!(copies[0].open.len(), 1);
        assert_eq!(copies[0].open[0].what, "a route");
        assert_eq!(copies[0].undone, []);
        assert_eq!(copies[1].open, []);
        assert_eq!(copies[1].undone, [copies[0].open[0].id.clone()]);
        let lines = lines_of_undone(copies[1].undone.clone());
        assert_eq!(lines, format!("{UNDONE}\n"));
    }

    #[test]
    fn an_owner_is_named_so_that_users_of_a_machine_are_told_apart() {
        let of_copy = CHANGE.replace("a route", crate::journal::COPY);
        let of_copy = of_copy.replacen('}', r#"},"directory":"/home/a/state""#, 1);
        let printed = format!("= /copies/laptop.0123456789ab.changes.jsonl\n{of_copy}\n");
        let copies = found(&printed);
        let copy = &copies[0];
        assert_eq!(
            copy.owner(),
            "controller laptop.0123456789ab (journals in /home/a/state)"
        );
        let place = |own| copy.place_to_restore(own);
        assert_eq!(place("other.0123456789ab"), "on that controller");
        assert!(place("laptop.ba9876543210").starts_with("as the user who started it"));
    }

    proptest! {
        #[test]
        fn any_text_is_copies(text in "(= [a-z.]{0,8}\\n|\\{\"record\":|\\n|\\PC){0,40}") {
            let _ = found(&text);
        }
    }
}
