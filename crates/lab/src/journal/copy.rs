//! A copy of what stands open in a host's journal, on that host: whoever finds a DUT changed can put it back, though
//! the controller that changed it is gone with its disk.
//!
//! One file a controller and journal, only ever appended to while anything in it is open. Its first line is the change
//! that makes it, which removing it undoes: the last of all, as the latest change is undone first.

use std::path::Path;
use std::rc::Rc;

use super::{Change, Line, Undo};
use crate::LabError;
use crate::hosts::Connection;

/// Appends its standard input to a file of a folder, durably. What stood there torn ends where this begins.
const APPEND: &str =
    "umask 077 && mkdir -p \"$0\" && cat >> \"$0/$1\" && { sync \"$0/$1\" 2>/dev/null || sync; }";

/// Prints each copy of a folder behind its name.
const LIST: &str = "for copy in \"$0\"/*.jsonl; do if [ -f \"$copy\" ]; then echo \"= ${copy##*/}\"; cat \"$copy\"; echo; fi; done";

/// A copy on a host.
#[derive(Debug)]
pub(crate) struct JournalCopy {
    connection: Rc<Connection>,
    folder: String,
    name: String,
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

/// Who changes hosts from here: this machine's name, and what tells it and the folder of its journals from others.
pub(crate) fn controller(state_directory: &Path) -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let name: String = read("/proc/sys/kernel/hostname")
        .trim()
        .chars()
        .filter(|character| character.is_ascii_alphanumeric() || *character == '-')
        .take(40)
        .collect();
    let machine = read("/etc/machine-id");
    let hash = fwdlab_model::sha256(format!("{machine} {}", state_directory.display()).as_bytes());
    format!("{name}.{}", &hash[..12])
}

impl JournalCopy {
    /// Of a journal of that name, kept in a folder of the host.
    pub(crate) fn new(
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

    /// Appends lines; they are durable there when this returns.
    ///
    /// # Errors
    /// `OnHost` where they cannot be written, and those of the connection.
    pub(super) fn append(&self, lines: &[Line]) -> Result<(), LabError> {
        let mut text = String::from("\n");
        for line in lines {
            text += &serde_json::to_string(line).expect("a line is plain data");
            text.push('\n');
        }
        let words = ["sh", "-c", APPEND, &self.folder, &self.name];
        self.connection.run(&words, &text).map(|_| ())
    }

    /// Why none can be kept; none where one can.
    ///
    /// # Errors
    /// Those of the connection.
    pub(crate) fn unavailable(&self) -> Result<Option<String>, LabError> {
        let path = format!("{}/{}", self.folder, self.name);
        let tried = self
            .append(&[])
            .and_then(|()| self.connection.run(&removal(&path), ""));
        match tried {
            Ok(_) => Ok(None),
            Err(error @ LabError::OnHost { .. }) => Ok(Some(error.to_string())),
            Err(error) => Err(error),
        }
    }

    /// What undoes that there is one.
    pub(crate) fn removal(&self) -> Undo {
        let destination = self.connection.destination();
        Undo::OnHost {
            host: destination.host.clone(),
            ssh_config: destination.config.clone(),
            arguments: removal(&format!("{}/{}", self.folder, self.name)),
            input: String::new(),
        }
    }
}

fn removal(path: &str) -> Vec<String> {
    ["rm", "-f", path].map(str::to_owned).to_vec()
}

/// All copies in a folder of a host in which something is open; those of boots behind the others.
///
/// # Errors
/// Those of the connection.
pub(crate) fn copies(connection: &Connection, folder: &str) -> Result<Vec<FoundCopy>, LabError> {
    let printed = connection.run(&["sh", "-c", LIST, folder], "")?;
    Ok(found(&printed, folder))
}

fn found(printed: &str, folder: &str) -> Vec<FoundCopy> {
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

    #[test]
    fn scripts_are_lines_that_a_c_shell_takes_as_they_are() {
        for script in [APPEND, LIST] {
            assert!(!script.contains(['\n', '!']), "{script}");
        }
    }

    #[test]
    fn two_folders_of_journals_are_two_controllers() {
        let of = |folder: &str| controller(Path::new(folder));
        assert_eq!(of("/a"), of("/a"));
        assert_ne!(of("/a"), of("/b"));
        assert_eq!(of("/a").matches('.').count(), 1, "{}", of("/a"));
    }

    proptest! {
        #[test]
        fn any_text_is_copies(text in "(= [a-z.]{0,8}\\n|\\{\"record\":|\\n|\\PC){0,40}") {
            let _ = found(&text, "/");
        }
    }
}
