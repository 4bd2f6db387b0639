//! `fwdlab flame fold`.

use std::path::PathBuf;

use clap::Args;

use super::input::{Profile, frame_names};
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
}

pub(super) fn fold(arguments: &FoldArguments) -> anyhow::Result<Code> {
    let names = frame_names(arguments.objects);
    let mut printed = String::new();
    let mut is_partial = false;
    if arguments.whole || arguments.objects {
        let (folded, is_any_partial) = Profile::read_all(&arguments.inputs, names)?;
        printed = folded.to_string();
        is_partial = is_any_partial;
    } else {
        for path in &arguments.inputs {
            let profile = Profile::read_telling(path, names, false)?;
            printed += &profile.folded.to_string();
            is_partial |= profile.missing.is_some();
        }
    }
    let code = output::print(&printed)?;
    Ok(if is_partial { GOAL_MISSED } else { code })
}
