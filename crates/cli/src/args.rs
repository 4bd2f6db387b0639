//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

/// Does X change how fast this box forwards packets, by how much, and why?
#[derive(Debug, Parser)]
#[command(version, disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure an experiment, or go on with one that was interrupted, and publish the result
    Run(RunArguments),
    /// Make README.md, plots and report.json of a results directory again from its records
    Report(ReportArguments),
    /// Look for what would spoil a measurement here, and measure how much noise the lab has
    Doctor(DoctorArguments),
    /// Compare samples the way FreeBSD's ministat does, byte for byte
    #[command(disable_help_flag = true)]
    Ministat {
        /// Options and files, as ministat takes them: [-Anqs] [-C column] [-c confidence]
        /// [-d delimiters] [-w width] [file ...]
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Print the completions of a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The experiment file, see docs/experiment-file.md
    pub(crate) experiment: PathBuf,
    /// The lab to measure in, instead of the one that the experiment names
    #[arg(long, value_name = "FILE")]
    pub(crate) lab: Option<PathBuf>,
    /// Where the results directories are
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) results: PathBuf,
    /// Name of this run under results/<experiment>/; default: kernel and start time
    #[arg(long)]
    pub(crate) label: Option<String>,
    /// Start afresh, even if an earlier run of this experiment was interrupted
    #[arg(long)]
    pub(crate) new: bool,
    /// Seed of the random orders, instead of the file's or a drawn one
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Print the report as JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Print no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// The lab file; default: this machine's kernel, as labs/netns.toml has it
    pub(crate) lab: Option<PathBuf>,
    /// Only look at the machine; measure nothing
    #[arg(long)]
    pub(crate) quick: bool,
    /// Blocks of the A/A measurement
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(8..=100))]
    pub(crate) blocks: u32,
    /// Print the findings as JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// A results directory, or <experiment>/<label> under --results, or <experiment> for its newest
    pub(crate) directory: String,
    /// Where the results directories are
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) results: PathBuf,
    /// Print the report as JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
