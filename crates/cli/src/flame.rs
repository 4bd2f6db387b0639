//! `fwdlab flame`: profiles that others took.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use fwdlab_profile::{CallGraph, Folded, FrameNames};
use fwdlab_report::one_line;

use crate::exit::{Code, GOAL_MISSED, WrongArguments};
use crate::output::{self, tell};

#[derive(Debug, Subcommand)]
pub(crate) enum FlameCommand {
    /// Print profiles as folded stacks, one a line, see docs/flame.md
    Fold(FoldArguments),
}

#[derive(Debug, Args)]
pub(crate) struct FoldArguments {
    /// Call graphs of pmcstat -G, or folded stacks; - for standard input
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
    let texts = arguments.inputs.iter().map(|path| {
        let text =
            read(path).map_err(|error| WrongArguments(format!("{}: {error}", shown(path))))?;
        Ok((path.as_path(), text))
    });
    let texts: Vec<(&Path, Vec<u8>)> = texts.collect::<anyhow::Result<_>>()?;
    let mut printed = String::new();
    let mut together = Folded::new();
    let mut is_truncated = false;
    for (path, text) in &texts {
        let profile = Profile::parse(text)
            .map_err(|error| WrongArguments(format!("{}: {error}", shown(path))))?;
        if let Some(missing) = profile.missing() {
            tell(&format!("{}: {missing}", shown(path)));
            is_truncated = true;
        }
        if arguments.whole || arguments.objects {
            let names = if arguments.objects {
                FrameNames::ObjectsAndSymbols
            } else {
                FrameNames::Symbols
            };
            let folded = profile.whole(names);
            for stack in folded.stacks() {
                together.push(stack.frames().map(str::to_owned), stack.samples);
            }
        } else {
            printed += &profile.as_scripts_do().to_string();
        }
    }
    printed += &together.merged().to_string();
    let code = output::print(&printed)?;
    Ok(if is_truncated { GOAL_MISSED } else { code })
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    if path == Path::new("-") {
        let mut text = Vec::new();
        io::stdin().lock().read_to_end(&mut text)?;
        return Ok(text);
    }
    fs::read(path)
}

fn shown(path: &Path) -> String {
    if path == Path::new("-") {
        return "standard input".to_owned();
    }
    one_line(&path.display().to_string())
}

/// A profile in one of the forms that can be read.
enum Profile<'a> {
    Graph(CallGraph<'a>),
    Folded(Folded<'a>),
}

impl<'a> Profile<'a> {
    /// The first character tells: no stack begins with the mark of a section.
    fn parse(text: &'a [u8]) -> Result<Self, String> {
        let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
        match first {
            Some(b'@') => CallGraph::parse(text)
                .map(Self::Graph)
                .map_err(|error| error.to_string()),
            Some(_) => Folded::parse(text)
                .map(Self::Folded)
                .map_err(|error| error.to_string()),
            None => {
                Err("it is empty; give a call graph of pmcstat -G, or folded stacks".to_owned())
            }
        }
    }

    /// What is known to be missing, in a sentence.
    fn missing(&self) -> Option<String> {
        let Self::Graph(graph) = self else {
            return None;
        };
        let truncation = graph.truncation(None)?;
        Some(format!(
            "truncated: {:.1} % of its samples are missing, and what is left is what has most of them; profile again, or \
             fetch the file when pmcstat has ended",
            truncation.missing_share() * 100.0
        ))
    }

    fn whole(&self, names: FrameNames) -> Folded<'a> {
        match self {
            Self::Graph(graph) => graph.fold(names),
            Self::Folded(folded) => folded.merged(),
        }
    }

    /// Byte for byte what FlameGraph's scripts print.
    fn as_scripts_do(&self) -> Folded<'a> {
        match self {
            Self::Graph(graph) => graph.stackcollapse(),
            Self::Folded(folded) => folded.clone(),
        }
    }
}
