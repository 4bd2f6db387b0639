//! Results directories as sides of a comparison: their sessions, each directory once.

use std::fs;
use std::path::{Path, PathBuf};

use fwdlab_archive::{Results, is_imported, load_imported};
use fwdlab_model::Record;
use fwdlab_model::imported::{ImportedRun, ImportedVariant};
use fwdlab_report::Session;

use crate::exit::WrongArguments;

/// The directories of a comparison that were read, by which one that is given again is known.
#[derive(Default)]
pub(crate) struct Directories {
    read: Vec<Known>,
}

/// A directory, and its records, by which a copy of it is known.
struct Known {
    given: PathBuf,
    canonical: PathBuf,
    contents: Contents,
}

enum Contents {
    Run(Vec<Record>),
    Import(Vec<ImportedVariant>, Vec<ImportedRun>),
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
        let (sessions, contents) = if is_imported(directory) {
            let (results, runs) = load_imported(directory)?;
            let session = Session::of_import(&shown, &results, &runs);
            let contents = Contents::Import(results.variants, runs);
            (session.into_iter().collect::<Vec<_>>(), contents)
        } else {
            let loaded = Results::load(directory)?;
            let sessions = Session::of_run(&shown, &loaded);
            (sessions, Contents::Run(loaded.records))
        };
        if sessions.is_empty() {
            let why = match contents {
                Contents::Run(_) => "no block was measured yet, or none was valid",
                Contents::Import(..) => "nothing was published in it, and no log gives a value",
            };
            let text =
                format!("{shown}: no observation to compare ({why}); give a directory with some");
            return Err(WrongArguments(text).into());
        }
        if let Some(known) = self
            .read
            .iter()
            .find(|known| known.contents.is_copy_of(&contents))
        {
            let text = format!(
                "{} and {shown} hold the same records: one is a copy of the other; give another run",
                known.given.display()
            );
            return Err(WrongArguments(text).into());
        }
        self.read.push(Known {
            given: directory.to_owned(),
            canonical,
            contents,
        });
        Ok(sessions)
    }
}

impl Contents {
    /// Whether both are of the very same measurements.
    fn is_copy_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Run(one), Self::Run(other)) => one == other,
            (Self::Import(one, runs), Self::Import(other, other_runs)) => {
                one == other && runs == other_runs
            }
            _ => false,
        }
    }
}
