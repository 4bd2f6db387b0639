//! `fwdlab flame`: profiles that others took.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use fwdlab_profile::{CallGraph, Folded, FrameNames, PerfScript};
use fwdlab_report::format::count;
use fwdlab_report::one_line;

use crate::exit::{Code, GOAL_MISSED, WrongArguments};
use crate::output::{self, tell};

/// What is read at once; its beginning tells the form.
const BUFFER_BYTES: usize = 1 << 18;

#[derive(Debug, Subcommand)]
pub(crate) enum FlameCommand {
    /// Print profiles as folded stacks, one a line, see docs/flame.md
    Fold(FoldArguments),
}

#[derive(Debug, Args)]
pub(crate) struct FoldArguments {
    /// What perf script or pmcstat -G printed, or folded stacks; - for standard input
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Print every sample once and equal stacks as one, of all inputs together
    #[arg(long)]
    whole: bool,
    /// The same with the object in front of each symbol: kernel`ip_input
    #[arg(long)]
    objects: bool,
}

pub(crate) fn flame(command: &FlameCommand) -> anyhow::Result<Code> {
    let FlameCommand::Fold(arguments) = command;
    fold(arguments)
}

fn fold(arguments: &FoldArguments) -> anyhow::Result<Code> {
    let names = if arguments.objects {
        FrameNames::ObjectsAndSymbols
    } else {
        FrameNames::Symbols
    };
    let is_whole = arguments.whole || arguments.objects;
    let mut printed = String::new();
    let mut together = Folded::new();
    let mut is_partial = false;
    for path in &arguments.inputs {
        let profile = Profile::read(path, names, is_whole)
            .map_err(|why| WrongArguments(format!("{}: {why}", shown(path))))?;
        if let Some(missing) = profile.missing {
            tell(&format!("{}: {missing}", shown(path)));
            is_partial = true;
        }
        if is_whole {
            for stack in profile.folded.stacks() {
                together.push(stack.frames().map(str::to_owned), stack.samples);
            }
        } else {
            printed += &profile.folded.to_string();
        }
    }
    printed += &together.merged().to_string();
    let code = output::print(&printed)?;
    Ok(if is_partial { GOAL_MISSED } else { code })
}

fn shown(path: &Path) -> String {
    if path == Path::new("-") {
        return "standard input".to_owned();
    }
    one_line(&path.display().to_string())
}

/// A profile, folded.
struct Profile {
    folded: Folded<'static>,
    /// What is known to be missing, in a sentence.
    missing: Option<String>,
}

impl Profile {
    /// Reads a file of any form, or standard input; how it begins tells which.
    ///
    /// Shape: `is_whole` of a call graph gives every sample, not what FlameGraph's script does.
    fn read(path: &Path, names: FrameNames, is_whole: bool) -> Result<Self, String> {
        let mut input: Box<dyn BufRead> = if path == Path::new("-") {
            Box::new(io::stdin().lock())
        } else {
            let file = File::open(path).map_err(|error| error.to_string())?;
            Box::new(BufReader::with_capacity(BUFFER_BYTES, file))
        };
        let begin = input.fill_buf().map_err(|error| error.to_string())?;
        if PerfScript::is_begun_by(begin) {
            return Self::of_perf_script(input, names);
        }
        let mut text = Vec::new();
        input
            .read_to_end(&mut text)
            .map_err(|error| error.to_string())?;
        let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
        match first {
            // No stack begins with the mark of a section.
            Some(b'@') => Self::of_call_graph(&text, names, is_whole),
            Some(_) => Self::of_folded(&text, is_whole),
            None => Err(
                "it is empty; give what perf script or pmcstat -G printed, or folded stacks".into(),
            ),
        }
    }

    fn of_perf_script(input: impl BufRead, names: FrameNames) -> Result<Self, String> {
        let script = PerfScript::read(input, names).map_err(|error| error.to_string())?;
        let lost = script.lost_samples;
        let missing = (lost > 0).then(|| {
            let all = script.folded.samples().saturating_add(lost);
            format!(
                "{} of {all} samples were lost; sample less often, or give perf record larger buffers (-m)",
                count(lost)
            )
        });
        Ok(Self {
            folded: script.folded,
            missing,
        })
    }

    fn of_call_graph(text: &[u8], names: FrameNames, is_whole: bool) -> Result<Self, String> {
        let graph = CallGraph::parse(text).map_err(|error| error.to_string())?;
        let missing = graph.truncation(None).map(|truncation| {
            format!(
                "truncated: {:.1} % of its samples are missing, and what is left is what has most of them; profile \
                 again, or fetch the file when pmcstat has ended",
                truncation.missing_share() * 100.0
            )
        });
        let folded = if is_whole {
            graph.fold(names)
        } else {
            graph.stackcollapse()
        };
        Ok(Self {
            folded: folded.into_owned(),
            missing,
        })
    }

    fn of_folded(text: &[u8], is_whole: bool) -> Result<Self, String> {
        let folded = Folded::parse(text).map_err(|error| error.to_string())?;
        let folded = if is_whole { folded.merged() } else { folded };
        Ok(Self {
            folded: folded.into_owned(),
            missing: None,
        })
    }
}
