//! `fwdlab flame fold`.

use std::path::PathBuf;

use clap::Args;

use super::input::{Profile, Reading};
use crate::exit::{Code, GOAL_MISSED};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct FoldArguments {
    /// What perf script, dtrace or pmcstat -G printed, or folded stacks; - for standard input
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Print every sample once and equal stacks as one, of all inputs together
    #[arg(long)]
    whole: bool,
    /// The same with the object in front of each symbol: kernel`ip_input
    #[arg(long)]
    objects: bool,
    /// Take the samples of this event [default: that of the first sample]
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
}

pub(super) fn fold(arguments: &FoldArguments) -> anyhow::Result<Code> {
    let reading = Reading::whole(arguments.objects, arguments.event.as_deref());
    let profiles = if arguments.whole || arguments.objects {
        vec![Profile::read_all(&arguments.inputs, reading)?]
    } else {
        let is_whole = false;
        Profile::read_each(
            &arguments.inputs,
            Reading {
                is_whole,
                ..reading
            },
        )?
    };
    let printed: String = profiles
        .iter()
        .map(|profile| profile.folded.to_string())
        .collect();
    let is_partial = profiles.iter().any(|profile| profile.missing.is_some());
    let code = output::print(&printed)?;
    Ok(if is_partial { GOAL_MISSED } else { code })
}
