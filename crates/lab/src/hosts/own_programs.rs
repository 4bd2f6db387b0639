//! The owner's programs on a host, each in the place of the one that ran before it.

use std::collections::BTreeMap;

use fwdlab_model::{CommandBinding, Level};

use super::descendants;
use super::ssh::Connection;
use crate::LabError;
use crate::journal::{ChangeId, Journal, PROCESSES_OF};
use crate::mechanism::step::Errand;
use crate::program::command_line;

/// The levels that the owner's programs have set on a host, by factor, each with its changes in the order in which
/// they are to be undone.
#[derive(Debug, Default)]
pub(super) struct OwnPrograms(BTreeMap<String, (Level, Vec<ChangeId>)>);

impl OwnPrograms {
    /// Nothing stands any more.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// Has a level set, and one that stood before undone, unless it is the same; whether anything was done.
    ///
    /// # Errors
    /// Those of the programs.
    pub(super) fn apply(
        &mut self,
        connection: &Connection,
        journal: &mut Journal,
        factor: &str,
        level: &Level,
        programs: &CommandBinding,
    ) -> Result<bool, LabError> {
        if let Some((standing, changes)) = self.0.remove(factor) {
            if standing == *level {
                self.0.insert(factor.to_owned(), (standing, changes));
                return Ok(false);
            }
            for change in changes {
                journal.undo(&change)?;
            }
        }
        let what = format!("factor {factor:?} at level {:?}", level.to_string());
        let mark = journal.mark();
        let undo = Errand::of(&programs.undo(level));
        let ending = descendants::ending(&mark);
        // The latest is undone first: what the program has started could change the host behind the undo.
        let mut changes = journal.announce_all([
            (what.clone(), connection.undo_by(undo)),
            (format!("{PROCESSES_OF} {what}"), connection.undo_by(ending)),
        ])?;
        changes.reverse();
        self.0.insert(factor.to_owned(), (level.clone(), changes));
        let apply = programs.apply(level);
        match connection.run(&descendants::marked(&mark, &apply), "") {
            Ok(_) => Ok(true),
            // In the owner's words.
            Err(LabError::OnHost {
                host,
                status,
                stderr,
                ..
            }) => Err(LabError::OnHost {
                host,
                command: command_line(&apply),
                status,
                stderr,
            }),
            Err(error) => Err(error),
        }
    }
}
