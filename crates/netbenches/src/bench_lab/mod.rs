//! A lab file and experiments, made of the files that the scripts of the public archive are given: a
//! `bench-lab….config`, configuration sets, and sets of pkt-gen.
//!
//! [`Source::read`] reads them, [`Draft::of`] says which files that makes, and [`Draft::write`] writes those.
//! Nothing is run or sourced, and of configuration sets no more than their paths is written.

mod account;
mod addresses;
mod drawing;
mod error;
mod expand;
mod experiment_file;
mod lab;
mod lab_file;
mod ports;
mod read;
mod toml;
mod traffic;
mod write;

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use fwdlab_archive::Place;
use fwdlab_archive::name::{first_free, safe_name};
use serde::Serialize;

use crate::assignments::Assignment;
use crate::config_set::ConfigSet;
use crate::lab_config::LabConfig;
use account::{Account, uses};
use drawing::Drawing;
pub use error::BenchLabError;
use expand::Environment;
use lab::{lab_parts, note_commands};
pub use read::{BenchLabPaths, real_path};

/// What the factor is called whose levels are the configuration sets.
const FACTOR: &str = "configuration";

/// What is to become a lab and experiments, as it was read.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The lab's configuration, as it was named.
    config: PathBuf,
    lab: LabConfig,
    /// The whole text, for its drawing.
    text: String,
    /// What the folders above it say of the DUT: `Atom_C2758_8Cores`, `Intel_82599`.
    platform: Option<[String; 2]>,
    /// The folder of the sets, as it was named.
    configs: Option<String>,
    /// What the sets are about: the folder that they are in.
    topic: Option<String>,
    sets: Vec<SourceSet>,
    traffic: Vec<SourceTraffic>,
    /// What the files are to be called.
    name: String,
    /// What was found while all this was read.
    notes: Vec<Note>,
}

/// A configuration set.
#[derive(Clone, Debug)]
struct SourceSet {
    name: String,
    /// Its folder, as it was named.
    path: PathBuf,
    /// Its folder, from the lab file.
    folder: String,
    files: ConfigSet,
}

/// A set of pkt-gen; without a name it sets nothing.
#[derive(Clone, Debug, Default)]
struct SourceTraffic {
    name: Option<String>,
    path: PathBuf,
    variables: Vec<Assignment>,
}

/// Something a reader of the files should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The file, and the line where one is meant; none where all of it is.
    #[serde(serialize_with = "as_text")]
    pub place: Option<Place>,
    /// What it is.
    pub text: String,
}

/// A place as messages have it.
fn as_text<S: serde::Serializer>(place: &Option<Place>, serializer: S) -> Result<S::Ok, S::Error> {
    place
        .as_ref()
        .map(ToString::to_string)
        .serialize(serializer)
}

impl Note {
    fn at(place: Place, text: String) -> Self {
        let place = Some(place);
        Self { place, text }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// What became of a variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VariableUse {
    /// Its name.
    pub variable: String,
    /// The file that sets it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What it is for here, or why it is for nothing.
    pub purpose: String,
}

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftFile {
    /// Its name; harmless, and a part of a path.
    pub name: String,
    /// What is to stand in it.
    pub text: String,
}

/// A lab and its experiments, and what was made of what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The lab file.
    pub lab: DraftFile,
    /// The experiments; none without configuration sets.
    pub experiments: Vec<DraftFile>,
    /// The variables that something was made of, in the order of their lines.
    pub used: Vec<VariableUse>,
    /// Those that nothing was made of.
    pub unused: Vec<VariableUse>,
    /// What somebody has to fill in before the files can be loaded.
    pub missing: Vec<String>,
    /// What a reader should know.
    pub notes: Vec<Note>,
}

impl Draft {
    /// The files that a source makes.
    ///
    /// Every text is made to be read again; where something is missing, a comment says what to write there.
    #[must_use]
    pub fn of(source: &Source) -> Self {
        let mut account = Account::default();
        account.notes.clone_from(&source.notes);
        let mut environment = Environment::default();
        let variables = &source.lab.variables;
        environment.read(&source.config, variables, &mut account.notes);
        let drawing = Drawing::parse(&source.text);

        let parts = lab_parts(source, &environment, &drawing, &mut account);
        let lab = DraftFile {
            name: format!("{}-lab.toml", source.name),
            text: lab_file::text(source, &parts, &mut account),
        };
        let experiments = experiments(source, &lab.name, &mut account);
        note_commands(&environment, &mut account);
        let (used, unused) = uses(&environment, &account);
        // Several sets of pkt-gen run into the same line of the lab.
        let mut said = Vec::new();
        for note in account.notes {
            if !said.contains(&note) {
                said.push(note);
            }
        }
        Self {
            lab,
            experiments,
            used,
            unused,
            missing: account.missing,
            notes: said,
        }
    }
}

fn experiments(source: &Source, lab_file: &str, account: &mut Account) -> Vec<DraftFile> {
    if source.sets.is_empty() {
        let pktgen = if source.traffic.is_empty() {
            ""
        } else {
            ", and the sets of pkt-gen are for nothing"
        };
        account.notes.push(Note {
            place: None,
            text: format!("no experiment: nothing is varied without --configs{pktgen}"),
        });
        return Vec::new();
    }
    let config = (source.config.as_path(), source.lab.variables.as_slice());
    let traffics = traffic::traffics(config, &source.traffic, account);
    let is_alone = traffics.len() == 1;
    let mut taken = BTreeSet::from([lab_file.to_owned()]);
    let mut experiments = Vec::new();
    for traffic in &traffics {
        let stem = match traffic.sets.as_slice() {
            sets if !is_alone && !sets.is_empty() => format!("{}-{}", source.name, sets.join("-")),
            _ => source.name.clone(),
        };
        let stem = safe_name(&stem);
        let numbered = |number| format!("{stem}-{number}.toml");
        let name = first_free(format!("{stem}.toml"), numbered, |name| {
            taken.insert(name.clone())
        });
        if traffic.families.len() > 1 {
            let sets = traffic.sets.join(" and ");
            let text = format!("{sets} differ in their family alone: {name} measures both");
            account.notes.push(Note { place: None, text });
        }
        let text = experiment_file::text(source, lab_file, traffic, is_alone);
        experiments.push(DraftFile { name, text });
    }
    if experiments.len() > 1 {
        let text = format!(
            "{} experiments, because an experiment has one traffic; they share the lab file",
            experiments.len()
        );
        account.notes.push(Note { place: None, text });
    }
    experiments
}

#[cfg(test)]
mod tests;
