//! `fwdlab flame pprof`.

use std::path::PathBuf;

use clap::Args;

use super::input::{Profile, Reading};
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
    /// Take the samples of this event [default: that of the first sample]
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
}

pub(super) fn pprof(arguments: &PprofArguments) -> anyhow::Result<Code> {
    output::refuse_input("--output", &arguments.output, &arguments.inputs)?;
    let reading = Reading::whole(arguments.objects, arguments.event.as_deref());
    let profile = Profile::read_all(&arguments.inputs, reading)?;
    output::write_file("--output", &arguments.output, &profile.folded.pprof())?;
    Ok(profile.missing.map_or(DONE, |_| GOAL_MISSED))
}
