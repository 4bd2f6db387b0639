//! `fwdlab flame pprof`.

use std::path::PathBuf;

use clap::Args;

use super::input::{Profile, frame_names};
use crate::exit::{Code, DONE, GOAL_MISSED};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct PprofArguments {
    /// What perf script, dtrace or pmcstat -G printed, or folded stacks; - for standard input
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// The file to write, for go tool pprof
    #[arg(short, long, value_name = "OUT.pb.gz")]
    output: PathBuf,
    /// Keep the object of each function, as the mapping it is in
    #[arg(long)]
    objects: bool,
}

pub(super) fn pprof(arguments: &PprofArguments) -> anyhow::Result<Code> {
    let names = frame_names(arguments.objects);
    let (folded, is_partial) = Profile::read_all(&arguments.inputs, names)?;
    output::write_file("--output", &arguments.output, &folded.pprof())?;
    Ok(if is_partial { GOAL_MISSED } else { DONE })
}
