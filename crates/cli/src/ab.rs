//! `fwdlab ab`: one change as an experiment file and a lab file, and a run of them.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;
use fwdlab_model::{Change, ChangeError, CommandText, Conditions, Files, Resolved, load, load_lab};
use fwdlab_plan::{Overheads, PlanError};
use fwdlab_report::format::duration;
use fwdlab_stats::{CONTROL_CONFIDENCE, minimum_blocks};
use fwdlab_sys::give_to_caller;

use crate::args::{AbArguments, FileArguments, RunArguments};
use crate::disk::{Disk, one_file_twice};
use crate::exit::{Code, DONE, WrongArguments};
use crate::output::tell;
use crate::plan;
use crate::run;

/// Who may read a new file, but for what the user's mask takes.
const MODE: u32 = 0o666;

/// What an experiment has by itself.
const ROUNDS: u32 = 10;
/// Fewer rounds leave too little of a block to judge its noise by.
const ROUNDS_MIN: u32 = 2;
const ROUNDS_MAX: u32 = 1000;
/// More set-ups than these narrow an interval little.
const BLOCKS_MAX: u32 = 30;

/// The lab where none is given.
const THIS_MACHINE: &str = "\
# This machine's kernel, in separate namespaces (docs/netns-lab.md).
kind = \"netns\"
";

/// What splits commands for a shell, and is a word like any other here.
const SHELL_WORDS: [&str; 10] = ["|", "||", "&&", "&", ";", ">", ">>", "<", "2>", "2>&1"];

pub(crate) fn ab(arguments: AbArguments) -> anyhow::Result<Code> {
    let folder = arguments
        .lab
        .as_deref()
        .and_then(Path::parent)
        .unwrap_or(Path::new(""));
    let mut change = change(&arguments, folder).map_err(wrong)?;
    let name = match &arguments.name {
        Some(name) => file_name(name)?,
        None => change.name(),
    };
    let experiment = PathBuf::from(format!("{name}.toml"));
    let lab = folder.join(format!("{name}.lab.toml"));

    let lab_text = match &arguments.lab {
        None => change.lab_text(THIS_MACHINE),
        Some(path) => {
            load_lab(path, &Disk)?;
            let text = Disk
                .text(path)
                .with_context(|| format!("reading {}", path.display()))?;
            change.lab_text(&text)
        }
    };
    let lab_named = lab.to_string_lossy();
    let mut conditions = Conditions {
        families: arguments.family.clone(),
        frame_sizes: arguments.frame_size.clone(),
        flows: arguments.flows.clone(),
        zipf: arguments.zipf,
        vlan: arguments.vlan,
        load: arguments.load,
        blocks: blocks_min(change.compared())?,
        rounds: ROUNDS,
    };
    let mut written = Written {
        experiment: (experiment.clone(), String::new()),
        lab: (lab.clone(), lab_text),
        lab_mode: match &arguments.lab {
            None => MODE,
            Some(path) => fs::metadata(path)?.mode() & 0o777,
        },
    };
    written.experiment.1 = change.experiment_text(&lab_named, &conditions);
    let resolved = load(&experiment, None, &written, 0)
        .inspect_err(|_| tell("no files written, because the experiment would be invalid:"))?
        .resolved;
    if let Some((minutes, there)) = arguments.minutes.zip(written.same_question()) {
        // An interrupted run goes on, however long the estimate that rests on its blocks is.
        if !arguments.measurement.quiet {
            let path = experiment.display();
            tell(&format!(
                "{path} keeps its blocks and rounds, whatever --minutes {minutes} would give; change them there, or give a \
                 new file another name with --name"
            ));
        }
        written.experiment.1 = there;
    } else if let Some(minutes) = arguments.minutes {
        let estimate = plan::estimate_here(&arguments.measurement.results, &resolved)?;
        let overheads = estimate.known().ok_or_else(|| {
            WrongArguments(
                "--minutes: only a run shows how long a set-up takes in this lab; omit --minutes the first time".to_owned(),
            )
        })?;
        (conditions.blocks, conditions.rounds) =
            fit(minutes, &resolved, overheads, conditions.blocks)?;
        written.experiment.1 = change.experiment_text(&lab_named, &conditions);
    }
    if arguments.write_only {
        plan::check_files(resolved, &experiment, &written)?;
        written.keep(arguments.measurement.quiet)?;
        tell(&format!(
            "run it with `fwdlab run {}`, or change it first (docs/experiment-file.md)",
            shlex::try_quote(&experiment.to_string_lossy())?
        ));
        return Ok(DONE);
    }
    let quiet = arguments.measurement.quiet;
    let made = written.keep(quiet)?;
    let files = FileArguments {
        experiment,
        lab: None,
    };
    let ended = run::run(&RunArguments {
        files,
        measurement: arguments.measurement,
    });
    if !ended.has_results {
        remove(&made, quiet)?;
    }
    ended.outcome.map_err(|error| match error.downcast_ref() {
        // It is these arguments that the lab cannot do.
        Some(PlanError::NoComparison { .. }) => WrongArguments(error.to_string()).into(),
        _ => error,
    })
}

/// Removes files of a run that has measured nothing, so that they are in nobody's way.
fn remove(files: &[PathBuf], quiet: bool) -> anyhow::Result<()> {
    for path in files {
        fs::remove_file(path).with_context(|| format!("removing {}", path.display()))?;
        if !quiet {
            tell(&format!(
                "removed, because nothing was measured: {}",
                path.display()
            ));
        }
    }
    Ok(())
}

/// What the arguments ask to be changed.
///
/// Shape: `folder` is that of the lab file, to which its files are relative.
fn change(arguments: &AbArguments, folder: &Path) -> Result<Change, AbError> {
    let asked = &arguments.change;
    if asked.mechanism != "command" {
        let of_commands = [("--undo", &arguments.undo), ("--check", &arguments.check)];
        if let Some((option, _)) = of_commands.iter().find(|(_, text)| text.is_some()) {
            let mechanism = asked.mechanism;
            return Err(AbError::OfCommands { option, mechanism });
        }
        let file = |path: &str| {
            beside(folder, Path::new(path))
                .to_string_lossy()
                .into_owned()
        };
        if let Some((one, other)) = one_file_twice(&asked.words) {
            let (one, other) = (one.clone(), other.clone());
            return Err(AbError::OneFile { one, other });
        }
        return Ok(Change::of_words(asked.mechanism, &asked.words, file)?);
    }
    let commands = asked.words.iter().map(|text| command("--command", text));
    let commands = commands.collect::<Result<Vec<_>, _>>()?;
    let undo = arguments.undo.as_ref().map(|text| command("--undo", text));
    let check = arguments
        .check
        .as_ref()
        .map(|text| command("--check", text));
    let (undo, check) = (undo.transpose()?, check.transpose()?);
    Ok(Change::of_commands(
        &commands,
        undo.as_ref(),
        check.as_ref(),
    )?)
}

/// What is wrong with the arguments.
#[derive(Debug, thiserror::Error)]
enum AbError {
    #[error(transparent)]
    Change(#[from] ChangeError),
    #[error(
        "{option} belongs to --command; fwdlab itself undoes and checks --{mechanism}, so leave it out"
    )]
    OfCommands {
        option: &'static str,
        mechanism: &'static str,
    },
    #[error("{one} and {other} are one file; give variants that differ")]
    OneFile { one: String, other: String },
    #[error("{option}: {text:?} names no program")]
    NoWords { option: &'static str, text: String },
    #[error("{option}: {text:?} has an unclosed quote or a trailing backslash")]
    Quotes { option: &'static str, text: String },
    #[error(
        "{option}: {text:?} contains {word:?}, which only a shell understands, but fwdlab starts programs without a \
         shell; put the commands into a script and give that"
    )]
    Shell {
        option: &'static str,
        text: String,
        word: String,
    },
}

fn wrong(error: AbError) -> WrongArguments {
    WrongArguments(error.to_string())
}

/// A command split into words: blanks separate them, quotes and backslashes keep blanks; nothing else is special.
fn command(option: &'static str, text: &str) -> Result<CommandText, AbError> {
    let text = text.trim();
    let owned = || text.to_owned();
    let words = shlex::split(text).ok_or_else(|| AbError::Quotes {
        option,
        text: owned(),
    })?;
    if words.first().is_none_or(String::is_empty) {
        return Err(AbError::NoWords {
            option,
            text: owned(),
        });
    }
    if let Some(word) = words
        .iter()
        .find(|word| SHELL_WORDS.contains(&word.as_str()))
    {
        return Err(AbError::Shell {
            option,
            text: owned(),
            word: word.clone(),
        });
    }
    Ok(CommandText {
        text: owned(),
        words,
    })
}

/// A name that is that of a file and of nothing else.
fn file_name(name: &str) -> Result<String, WrongArguments> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(part)), None) if part == name && !name.starts_with('.') => {
            Ok(name.trim_end_matches(".toml").to_owned())
        }
        _ => Err(WrongArguments(format!(
            "--name: {name:?} is not a plain file name; give one without a folder or a leading dot"
        ))),
    }
}

/// A path as one that is relative to a folder: both are relative to where the program runs.
fn beside(folder: &Path, path: &Path) -> PathBuf {
    if path.is_absolute() || folder.as_os_str().is_empty() {
        return path.to_owned();
    }
    let absolute = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path));
    let (Ok(from), Ok(to)) = (absolute(folder), absolute(path)) else {
        return path.to_owned();
    };
    let same = from
        .components()
        .zip(to.components())
        .take_while(|(from, to)| from == to)
        .count();
    let up = from.components().skip(same).map(|_| Component::ParentDir);
    up.chain(to.components().skip(same)).collect()
}

/// The fewest blocks that can show a difference between variants, and in which the A/A control can fail.
fn blocks_min(compared: usize) -> anyhow::Result<u32> {
    let confidence = fwdlab_stats::VerdictSettings::default().confidence;
    let need = minimum_blocks(compared, confidence)?.max(minimum_blocks(1, CONTROL_CONFIDENCE)?);
    Ok(u32::try_from(need)?)
}

/// Blocks and rounds that take so many minutes at most: first blocks of the usual number of rounds, then rounds.
fn fit(
    minutes: f64,
    resolved: &Resolved,
    overheads: Overheads,
    blocks_min: u32,
) -> anyhow::Result<(u32, u32)> {
    let seconds = |blocks: u32, rounds: u32| -> anyhow::Result<f64> {
        let mut resolved = resolved.clone();
        resolved.design.blocks = blocks;
        resolved.design.rounds = rounds;
        let plan = fwdlab_plan::build(&resolved)?;
        Ok(overheads.blocks_s(&plan.blocks, &resolved))
    };
    let budget_s = minutes * 60.0;
    let fewest_s = seconds(blocks_min, ROUNDS_MIN)?;
    if fewest_s > budget_s {
        let needed = (fewest_s / 6.0).ceil() / 10.0;
        return Err(WrongArguments(format!(
            "--minutes: {minutes} is too short: {blocks_min} blocks of {ROUNDS_MIN} rounds, the fewest that can show a \
             difference, take about {}; give at least {needed}",
            duration(fewest_s)
        ))
        .into());
    }
    let largest = |mut low: u32, high: u32, takes: &dyn Fn(u32) -> anyhow::Result<f64>| {
        let mut above = high + 1;
        while above - low > 1 {
            let middle = low.midpoint(above);
            if takes(middle)? <= budget_s {
                low = middle;
            } else {
                above = middle;
            }
        }
        anyhow::Ok(low)
    };
    let blocks = largest(blocks_min, BLOCKS_MAX.max(blocks_min), &|blocks| {
        seconds(blocks, ROUNDS)
    })?;
    let rounds = largest(ROUNDS_MIN, ROUNDS_MAX, &|rounds| seconds(blocks, rounds))?;
    Ok((blocks, rounds))
}

/// The two files, before they are on the disk: all others are there.
struct Written {
    experiment: (PathBuf, String),
    lab: (PathBuf, String),
    /// Who may read the lab file: a copy of one that names a secret is as secret.
    lab_mode: u32,
}

impl Files for Written {
    fn text(&self, path: &Path) -> io::Result<String> {
        let mut files = [&self.experiment, &self.lab].into_iter();
        match files.find(|(known, _)| known == path) {
            Some((_, text)) => Ok(text.clone()),
            None => Disk.text(path),
        }
    }

    fn sha256(&self, path: &Path) -> io::Result<String> {
        Disk.sha256(path)
    }

    fn is_quotable(&self, path: &Path, named_by: &Path) -> bool {
        let own = [&self.experiment, &self.lab];
        own.iter().any(|(known, _)| known == path) || Disk.is_quotable(path, named_by)
    }
}

impl Written {
    /// The experiment that is on the disk, where it differs in nothing but blocks and rounds.
    fn same_question(&self) -> Option<String> {
        fn without_length(text: &str) -> impl Iterator<Item = &str> {
            let is_length =
                |line: &&str| line.starts_with("blocks = ") || line.starts_with("rounds = ");
            text.lines().filter(move |line| !is_length(line))
        }
        let (path, text) = &self.experiment;
        let there = Disk.text(path).ok()?;
        without_length(&there)
            .eq(without_length(text))
            .then_some(there)
    }

    /// Puts both on the disk, or neither, and names those that were not there. Those that are there already are left
    /// alone.
    fn keep(&self, quiet: bool) -> anyhow::Result<Vec<PathBuf>> {
        let mut new = Vec::new();
        for (path, text) in [&self.lab, &self.experiment] {
            match Disk.text(path) {
                Ok(there) if there == *text => {}
                Ok(_) => {
                    let text = format!(
                        "{} already exists with different contents; run the experiment with `fwdlab run`, or give \
                         the new files another name with --name",
                        path.display()
                    );
                    return Err(WrongArguments(text).into());
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => new.push((path, text)),
                Err(error) => {
                    return Err(error).with_context(|| format!("reading {}", path.display()));
                }
            }
        }
        let mut made: Vec<PathBuf> = Vec::new();
        for (path, text) in &new {
            let mode = if *path == &self.lab.0 {
                self.lab_mode
            } else {
                MODE
            };
            let create = |path: &Path| {
                let mut options = File::options();
                options.write(true).create_new(true).mode(mode).open(path)
            };
            let kept = create(path).and_then(|mut file| {
                made.push(path.to_path_buf());
                give_to_caller(&file);
                file.write_all(text.as_bytes())?;
                file.sync_all()
            });
            if let Err(error) = kept {
                for path in made {
                    let _ = fs::remove_file(path);
                }
                return Err(WrongArguments(format!("{}: {error}", path.display())).into());
            }
        }
        for (path, _) in [&self.lab, &self.experiment] {
            let is_new = made.contains(path);
            let state = if is_new { "written" } else { "already there" };
            if !quiet {
                tell(&format!("{state}: {}", path.display()));
            }
        }
        Ok(made)
    }
}
