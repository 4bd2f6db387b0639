//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use clap_complete::Shell;

use crate::schema::FileKind;

/// How `--help` groups the commands: every one stands in one group.
const GROUPS: &[(&str, &[&str])] = &[
    ("Measure", &["run", "plan", "doctor", "restore"]),
    ("Results", &["report", "ministat"]),
    ("Files and shells", &["schema", "completions"]),
];

/// Does X change how fast this box forwards packets, by how much, and why?
#[derive(Debug, Parser)]
#[command(version, disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// The command line's arguments.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        let matches = Self::grouped().try_get_matches()?;
        Self::from_arg_matches(&matches)
    }

    /// The command with its help in groups, which clap knows for options only.
    pub(crate) fn grouped() -> clap::Command {
        let mut command = Self::command();
        let width = command
            .get_subcommands()
            .map(|subcommand| subcommand.get_name().len())
            .max()
            .unwrap_or(0);
        let mut commands = String::new();
        for (heading, names) in GROUPS {
            commands += &format!("{heading}:\n");
            for subcommand in names
                .iter()
                .filter_map(|name| command.find_subcommand(name))
            {
                let name = subcommand.get_name();
                let about = subcommand.get_about().cloned().unwrap_or_default();
                commands += &format!("  {name:width$}  {about}\n");
            }
            commands.push('\n');
        }
        command = command.help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{commands}Options:\n{{options}}"
        ));
        command
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure an experiment, or go on with one that was interrupted, and publish the result
    Run(RunArguments),
    /// Show what an experiment would measure, how long it takes and what it could detect
    Plan(PlanArguments),
    /// Make README.md, plots and report.json of a results directory again from its records
    Report(ReportArguments),
    /// Look for what would spoil a measurement here, and measure how much noise the lab has
    Doctor(DoctorArguments),
    /// Put back what a run that was killed has left changed
    Restore(RestoreArguments),
    /// Compare samples the way FreeBSD's ministat does, byte for byte
    #[command(disable_help_flag = true)]
    Ministat {
        /// Options and files, as ministat takes them: [-Anqs] [-C column] [-c confidence]
        /// [-d delimiters] [-w width] [file ...]
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Print the JSON Schema of experiment or lab files
    Schema {
        /// The kind of file
        file: FileKind,
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
    /// Where the results directories are; the measurement is kept there, and plans rest on it
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) results: PathBuf,
    /// Blocks of the A/A measurement
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(8..=100))]
    pub(crate) blocks: u32,
    /// Print the findings as JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    /// The experiment file, see docs/experiment-file.md
    pub(crate) experiment: PathBuf,
    /// The lab to measure in, instead of the one that the experiment names
    #[arg(long, value_name = "FILE")]
    pub(crate) lab: Option<PathBuf>,
    /// Where the results directories are, whose earlier runs tell how much this lab scatters
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) results: PathBuf,
    /// Seed of the random orders, instead of the file's or a drawn one
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Print the plan as JSON instead of text
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

#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// Only say what is left, and change nothing
    #[arg(long, conflicts_with = "forget")]
    pub(crate) list: bool,
    /// Strike what cannot be put back out of the journal, once it was seen to by hand
    #[arg(long)]
    pub(crate) forget: bool,
    /// Print what is left, or what became of it, as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_stands_in_one_group() {
        let command = Arguments::command();
        let mut commands: Vec<&str> = command
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        commands.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, commands);
    }
}
