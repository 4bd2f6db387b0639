//! Calibration: how often each verdict method errs on this field's noise, by simulation.
//!
//! To be run as `cargo xtask calibrate`, which builds it optimised. What is simulated are slices; from
//! there on the code that decides is the code of `crates/stats`, in the orders that `crates/plan` draws.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line program talks to its terminal"
)]

mod noise;
mod page;
mod session;
mod setting;
mod tally;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Parser;
use clap::builder::PossibleValuesParser;

use page::Row;
use setting::{SETTINGS, Setting};
use tally::{BESIDE_REPLICATES_MAX, CHECKED_REPLICATES_MAX, Family, Replicates, tally};

/// Simulates how often each verdict method errs, as docs/calibration.md shows it.
///
/// Ends with 1 and names what does not hold where the default method errs more often than it may. With
/// far fewer replicates than 40000 the bounds are too wide for that. The same number gives the same figures.
#[derive(Parser)]
#[command(name = "cargo xtask calibrate", bin_name = "cargo xtask calibrate")]
struct Arguments {
    /// Sessions of each kind, for every family in every setting
    #[arg(long, value_name = "N", default_value_t = 40_000, value_parser = clap::value_parser!(u64).range(1..))]
    replicates: u64,
    /// Only these settings; all otherwise
    #[arg(long, value_name = "NAME", num_args = 1.., value_parser = setting_names())]
    setting: Vec<String>,
    /// Also put the tables into a Markdown file, in place of those of an earlier run
    #[arg(long, value_name = "FILE", conflicts_with = "setting")]
    into: Option<PathBuf>,
}

fn setting_names() -> PossibleValuesParser {
    PossibleValuesParser::new(SETTINGS.iter().map(|setting| setting.name))
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
    let started = Instant::now();
    let threads = std::thread::available_parallelism()?.get();
    let chosen = SETTINGS.iter().filter(|setting| {
        arguments.setting.is_empty() || arguments.setting.iter().any(|name| name == setting.name)
    });
    let mut rows = Vec::new();
    for setting in chosen {
        rows.push(row(setting, arguments.replicates, threads)?);
        eprintln!(
            "{} after {:.0} s",
            setting.name,
            started.elapsed().as_secs_f64()
        );
    }
    let failures = page::failures(&rows);
    let tables = page::markdown(&rows, &failures);
    print!("{tables}");
    if let Some(document) = &arguments.into {
        page::put_into(document, &tables)?;
    }
    if !failures.is_empty() {
        bail!("calibrate: {} of the bounds do not hold", failures.len());
    }
    Ok(())
}

fn row(setting: &'static Setting, replicates: u64, threads: usize) -> Result<Row> {
    let replicates = Replicates {
        all: replicates,
        beside: replicates.min(BESIDE_REPLICATES_MAX),
        checked: replicates.min(CHECKED_REPLICATES_MAX),
    };
    let [null, graded, threshold] =
        Family::ALL.map(|family| tally(setting, family, replicates, threads));
    Ok(Row {
        setting,
        null: null?,
        graded: graded?,
        threshold: threshold?,
    })
}
