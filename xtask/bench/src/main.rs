//! Benches: what the figures in docs/performance.md are measured with.
//!
//! To be run as `cargo xtask bench NAME`, which builds it as fwdlab ships. Whatever is compared is
//! measured in pairs, one right after the other, because machines drift from moment to moment; the
//! ratios of the pairs give an interval. Nothing here fails because something is slow: a figure
//! that misses its goal is a figure.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line program talks to its terminal"
)]

mod archive;
mod bench;
mod command;
mod counter;
mod figure;
mod generator;
mod harness;
mod inline;
mod large;
mod ministat;
mod noise;
mod page;
mod pairs;
mod profile;
mod router;
mod testpmd;
mod trafgen;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};

use bench::Bench;
use figure::Report;

/// Measures fwdlab itself, against the goals that docs/performance.md states.
#[derive(Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    output: Output,
}

#[derive(Subcommand)]
enum Command {
    /// The archive: import and lint beside the shell script that they do the work of
    Archive(archive::Settings),
    /// The generator: its rate beside trafgen's, its cost, its pacing
    Gen(generator::Settings),
    /// The harness: what it costs the rate that it measures, and how fast it switches
    Lab(harness::Settings),
    /// A large run: how long report and lint take, and with how much memory
    Large(large::Settings),
    /// ministat: ours beside the one that is installed
    Ministat(ministat::Settings),
    /// The noise: how wide the intervals of whole runs are, and whether they hold what they should
    Noise(noise::Settings),
    /// The page: how fast report.html is made, opens and answers
    Page(page::Settings),
    /// Profiles: a long text of perf script folded, beside inferno
    Profile(profile::Settings),
    /// The router: beside testpmd, IPv6 beside IPv4, many routes beside few, and stage by stage
    Router(router::Settings),
}

#[derive(Args)]
struct Output {
    /// Also write all observations into a JSON file
    #[arg(long, global = true, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also put the table into a Markdown file, in place of the one of an earlier run
    #[arg(long, global = true, value_name = "FILE")]
    into: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let bench = Bench::open()?;
    let (name, figures) = match &arguments.command {
        Command::Archive(settings) => ("archive", archive::run(&bench, settings)?),
        Command::Gen(settings) => ("gen", generator::run(&bench, settings)?),
        Command::Lab(settings) => ("lab", harness::run(&bench, settings)?),
        Command::Large(settings) => ("large", large::run(&bench, settings)?),
        Command::Ministat(settings) => ("ministat", ministat::run(&bench, settings)?),
        Command::Noise(settings) => ("noise", noise::run(&bench, settings)?),
        Command::Page(settings) => ("page", page::run(&bench, settings)?),
        Command::Profile(settings) => ("profile", profile::run(&bench, settings)?),
        Command::Router(settings) => ("router", router::run(&bench, settings)?),
    };
    let report = Report::new(name, &bench, figures);
    print!("{}", report.markdown());
    if let Some(file) = &arguments.output.json {
        fs::write(file, serde_json::to_string_pretty(&report)? + "\n")
            .with_context(|| file.display().to_string())?;
    }
    if let Some(document) = &arguments.output.into {
        report.put_into(document)?;
    }
    Ok(())
}
