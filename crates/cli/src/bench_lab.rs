//! `fwdlab import bench-lab`: the files that the public archive's scripts are given, as a lab and experiments.

use std::fmt::Write as _;
use std::io;
use std::path::{Component, Path, PathBuf};

use clap::Args;
use fwdlab_model::Files;
use fwdlab_netbenches::bench_lab::{BenchLabPaths, Draft, Note, Source, VariableUse, real_path};
use fwdlab_report::format::counted;
use fwdlab_report::one_line;
use serde::Serialize;

use crate::disk::Disk;
use crate::exit::{Code, DONE, GOAL_MISSED};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct BenchLabArguments {
    /// The lab's configuration: a bench-lab….config, read as data and never run
    config: PathBuf,
    /// The folder of the configuration sets, which become the levels of a factor
    #[arg(long, value_name = "DIR")]
    configs: Option<PathBuf>,
    /// A folder of sets of pkt-gen, which say what is sent
    #[arg(long, value_name = "DIR")]
    pktgen: Option<PathBuf>,
    /// The folder to write the lab and its experiments to; nothing in it is overwritten
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// What the files are called; default: as the folder that the configuration sets are kept in
    #[arg(long)]
    name: Option<String>,
    /// Print what was made of what as JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn import(arguments: &BenchLabArguments) -> anyhow::Result<Code> {
    let source = Source::read(BenchLabPaths {
        config: &arguments.config,
        configs: arguments.configs.as_deref(),
        pktgen: arguments.pktgen.as_deref(),
        to: &arguments.to,
        name: arguments.name.as_deref(),
    })?;
    let draft = Draft::of(&source);
    let wrong = wrong(&draft, &arguments.to);
    let mut written = draft.write(&arguments.to)?;
    let lab = written.remove(0);
    let summary = Summary {
        is_ready: draft.missing.is_empty() && wrong.is_empty(),
        lab,
        experiments: written,
        used: &draft.used,
        unused: &draft.unused,
        missing: &draft.missing,
        wrong,
        notes: &draft.notes,
    };
    let code = output::print(&if arguments.json {
        serde_json::to_string_pretty(&summary)? + "\n"
    } else {
        summary.text()
    })?;
    Ok(if code == DONE && !summary.is_ready {
        GOAL_MISSED
    } else {
        code
    })
}

/// What a run would say against the files, before they are there; nothing where something has to be filled in
/// anyway.
fn wrong(draft: &Draft, to: &Path) -> Vec<String> {
    if !draft.missing.is_empty() {
        return Vec::new();
    }
    let read = Drafted { draft, to };
    let lab = to.join(&draft.lab.name);
    let of_lab = fwdlab_model::load_lab(&lab, &read).err();
    let mut wrong: Vec<String> = of_lab
        .map(|found| found.render(false))
        .into_iter()
        .collect();
    if !wrong.is_empty() {
        return wrong;
    }
    for experiment in &draft.experiments {
        match fwdlab_model::load(&to.join(&experiment.name), None, &read, 0) {
            Ok(loaded) => {
                let plan = fwdlab_plan::build(&loaded.resolved);
                wrong.extend(
                    plan.err()
                        .map(|error| format!("{}: {error}", experiment.name)),
                );
            }
            Err(found) => wrong.push(found.render(false)),
        }
    }
    wrong
}

/// The disk with the files on it that are about to be written.
struct Drafted<'a> {
    draft: &'a Draft,
    to: &'a Path,
}

impl Files for Drafted<'_> {
    fn text(&self, path: &Path) -> io::Result<String> {
        let mut files = self.draft.files();
        match files.find(|file| self.to.join(&file.name) == path) {
            Some(file) => Ok(file.text.clone()),
            None => Disk.text(path),
        }
    }

    /// The folder that the files will be in may not be there yet, and then no `..` leads out of it.
    fn sha256(&self, path: &Path) -> io::Result<String> {
        let mut real = real_path(self.to)?;
        for part in path.strip_prefix(self.to).unwrap_or(path).components() {
            match part {
                Component::ParentDir => drop(real.pop()),
                part => real.push(part),
            }
        }
        Disk.sha256(&real)
    }

    fn is_quotable(&self, path: &Path, named_by: &Path) -> bool {
        let mut files = self.draft.files();
        files.any(|file| self.to.join(&file.name) == path) || Disk.is_quotable(path, named_by)
    }
}

/// What was made of what.
#[derive(Serialize)]
struct Summary<'a> {
    /// Whether the files can be planned as they are.
    is_ready: bool,
    lab: PathBuf,
    experiments: Vec<PathBuf>,
    used: &'a [VariableUse],
    unused: &'a [VariableUse],
    missing: &'a [String],
    wrong: Vec<String>,
    notes: &'a [Note],
}

impl Summary<'_> {
    fn text(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "lab: {}", shown(&self.lab));
        for experiment in &self.experiments {
            let _ = writeln!(text, "experiment: {}", shown(experiment));
        }
        for (heading, variables) in [("used", self.used), ("not used", self.unused)] {
            if variables.is_empty() {
                continue;
            }
            let mut file = "";
            for variable in variables {
                let VariableUse {
                    variable,
                    file: of,
                    line,
                    purpose,
                } = variable;
                if of != file {
                    let _ = writeln!(text, "\n{heading} of {}:", one_line(of));
                    file = of;
                }
                let _ = writeln!(text, "  {line}: {variable}: {}", one_line(purpose));
            }
        }
        if !self.notes.is_empty() {
            text += "\nto know:\n";
            for note in self.notes {
                let _ = writeln!(text, "  {}", one_line(&note.to_string()));
            }
        }
        if !self.missing.is_empty() {
            let keys = counted(self.missing.len() as u64, "key");
            let _ = writeln!(text, "\nto fill in, {keys}; nothing can be planned before:");
            for missing in self.missing {
                let _ = writeln!(text, "  {}", one_line(missing));
            }
        }
        if !self.wrong.is_empty() {
            text += "\nto put right; nothing can be planned before:\n";
            for wrong in &self.wrong {
                for line in wrong.lines() {
                    let _ = writeln!(text, "  {line}");
                }
            }
        }
        if let (Some(experiment), true) = (self.experiments.first(), self.is_ready) {
            let _ = writeln!(text, "\nnext: fwdlab plan {}", shown(experiment));
        }
        text
    }
}

fn shown(path: &Path) -> String {
    one_line(&path.display().to_string())
}
