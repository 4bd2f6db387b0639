//! A copy of what stands open in a host's journal, on that host: whoever finds a DUT changed can put it back, though
//! the controller that changed it is gone with its disk.
//!
//! One file a controller and journal, only ever appended to while anything in it is open. Its first line is the change
//! that makes it, which removing it undoes: the last of all, as the latest change is undone first.

use std::fmt;

use super::{Change, Line, Undo};
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
}

/// The copies of a folder in which something is open, by what was printed of each behind a line with `= ` and its name.
pub(crate) fn found(printed: &str, folder: &str) -> Vec<FoundCopy> {
    let mut copies: Vec<FoundCopy> = Vec::new();
    for line in printed.lines() {
        if let Some(name) = line.strip_prefix("= ") {
            let mut parts = name.splitn(3, '.');
            let controller = parts.by_ref().take(2).collect::<Vec<_>>().join(".");
            copies.push(FoundCopy {
                path: format!("{folder}/{name}"),
                controller,
                open: Vec::new(),
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
            Ok(Line::Undone { id }) => copy.open.retain(|change| change.id != id),
            Ok(Line::Change(_)) | Err(_) => {}
        }
    }
    copies.retain(|copy| !copy.open.is_empty());
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
            "= laptop.0123456789ab.changes.jsonl\n\n{torn}\n{CHANGE}\n\n{CHANGE}\n\n\
             = other.ba9876543210.changes.jsonl\n\n{CHANGE}\n\n{UNDONE}\n\n"
        );
        let copies = found(&printed, "/var/lib/fwdlab");
        assert_eq!(copies.len(), 1, "{copies:?}");
        assert_eq!(copies[0].controller, "laptop.0123456789ab");
        assert_eq!(
            copies[0].path,
            "/var/lib/fwdlab/laptop.0123456789ab.changes.jsonl"
        );
        assert_eq!(copies[0].open.len(), 1);
        assert_eq!(copies[0].open[0].what, "a route");
    }

    proptest! {
        #[test]
        fn any_text_is_copies(text in "(= [a-z.]{0,8}\\n|\\{\"record\":|\\n|\\PC){0,40}") {
            let _ = found(&text, "/");
        }
    }
}
