//! Results directories as sides of a comparison: their sessions, each directory once.

use std::fs;
use std::path::{Path, PathBuf};

use fwdlab_archive::is_imported;
use fwdlab_netbenches::load_imported;
use fwdlab_report::Session;

use crate::exit::WrongArguments;
use crate::results;

/// The directories of a comparison that were read, by which one that is given again is known.
#[derive(Default)]
pub(crate) struct Directories {
    read: Vec<Known>,
}

/// A directory, and its sessions, by which a copy of it is known.
struct Known {
    given: PathBuf,
    canonical: PathBuf,
    sessions: Vec<Session>,
}

impl Directories {
    /// The sessions of one side, or those of the reruns.
    pub(crate) fn sessions(&mut self, directories: &[PathBuf]) -> anyhow::Result<Vec<Session>> {
        let mut sessions = Vec::new();
        for directory in directories {
            sessions.extend(self.sessions_of(directory)?);
        }
        Ok(sessions)
    }

    fn sessions_of(&mut self, directory: &Path) -> anyhow::Result<Vec<Session>> {
        let canonical = fs::canonicalize(directory).map_err(|error| {
            WrongArguments(format!("{}: cannot be read ({error})", directory.display()))
        })?;
        if let Some(known) = self.read.iter().find(|known| known.canonical == canonical) {
            let text = if known.given == directory {
                format!(
                    "{}: given twice; comparing a directory with itself shows nothing; give another one",
                    directory.display()
                )
            } else {
                format!(
                    "{} and {} are one directory; comparing a directory with itself shows nothing; give another one",
                    known.given.display(),
                    directory.display()
                )
            };
            return Err(WrongArguments(text).into());
        }
        let shown = directory.display().to_string();
        let is_imported = is_imported(directory);
        let sessions = if is_imported {
            let (results, runs) = load_imported(directory)?;
            Vec::from_iter(Session::of_import(&shown, &results, &runs))
        } else {
            Session::of_run(&shown, &results::load(directory)?)
        };
        if sessions.is_empty() {
            let why = if is_imported {
                "nothing was published in it, and no log gives a value"
            } else {
                "no block was measured yet, or none was valid"
            };
            let text =
                format!("{shown}: no observation to compare ({why}); give a directory with some");
            return Err(WrongArguments(text).into());
        }
        let is_known = |session: &Session| sessions.iter().any(|new| new.is_copy_of(session));
        if let Some(known) = self
            .read
            .iter()
            .find(|known| known.sessions.iter().any(is_known))
        {
            let text = format!(
                "{} and {shown} hold the same session: one is a copy of the other; give another run",
                known.given.display()
            );
            return Err(WrongArguments(text).into());
        }
        self.read.push(Known {
            given: directory.to_owned(),
            canonical,
            sessions: sessions.clone(),
        });
        Ok(sessions)
    }
}
