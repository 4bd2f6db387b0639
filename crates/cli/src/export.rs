//! `fwdlab export`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use fwdlab_archive::Results;
use fwdlab_netbenches::export::Export;
use fwdlab_report::render;

use crate::exit::Code;
use crate::output;
use crate::results;

#[derive(Debug, Subcommand)]
pub(crate) enum ExportCommand {
    /// As the public archive of netmap benches has its own: <platform>/<nic>/<topic>/results/<label>/
    Netbenches(NetbenchesArguments),
}

#[derive(Debug, Args)]
pub(crate) struct NetbenchesArguments {
    /// A results directory, or <experiment>/<label> under --results, or <experiment> for its newest
    directory: String,
    /// Where the results directories are
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    /// The folder to lay them out in; nothing in it is overwritten
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

pub(crate) fn export(command: &ExportCommand) -> anyhow::Result<Code> {
    let ExportCommand::Netbenches(arguments) = command;
    let directory = Results::find(&arguments.results, &arguments.directory)?;
    let run = results::load(&directory)?;
    let mut export = Export::of_run(&run)?;
    export.add_readme(render::netbenches_readme(&run, &export)?);
    export.write(&arguments.to)?;
    output::print(&format!(
        "{}\n",
        arguments.to.join(&export.results).display()
    ))
}
