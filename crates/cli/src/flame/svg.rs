//! `fwdlab flame svg`.

use std::path::PathBuf;

use clap::Args;
use fwdlab_profile::{Caption, Width, flame_graph};

use super::input::{Profile, Reading, shown};
use crate::exit::{Code, DONE, GOAL_MISSED, WrongArguments};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct SvgArguments {
    /// What perf script, dtrace or pmcstat -G printed, or folded stacks; - for standard input
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// The picture, for any browser
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// What stands above it [default: the names of the inputs]
    #[arg(long)]
    title: Option<String>,
    /// Put the object in front of each symbol: kernel`ip_input
    #[arg(long)]
    objects: bool,
    /// Take the samples of this event [default: that of the first sample]
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
}

pub(super) fn svg(arguments: &SvgArguments) -> anyhow::Result<Code> {
    output::refuse_input("--output", &arguments.output, &arguments.inputs)?;
    let reading = Reading::whole(arguments.objects, arguments.event.as_deref());
    let profile = Profile::read_all(&arguments.inputs, reading)?;
    let inputs: Vec<String> = arguments.inputs.iter().map(|path| shown(path)).collect();
    let title = arguments.title.clone().unwrap_or_else(|| inputs.join(", "));
    let subtitle = profile.samples();
    let caption = Caption {
        title: &title,
        subtitle: Some(&subtitle),
    };
    let picture = flame_graph(&profile.folded, Width::Samples, caption)
        .map_err(|error| WrongArguments(format!("{}: {error}", inputs.join(", "))))?;
    output::write_file("--output", &arguments.output, picture.as_bytes())?;
    Ok(profile.missing.map_or(DONE, |_| GOAL_MISSED))
}
