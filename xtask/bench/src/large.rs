//! `fwdlab report` and `fwdlab lint` of a run as large as runs get: how long, and with how much memory.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::json;

use crate::bench::Bench;
use crate::command::{cargo, peak_bytes, seconds};
use crate::figure::{Figure, Outcome};
use crate::noise::build;
use crate::pairs::{Pairs, median};

const SECONDS_MAX: f64 = 5.0;
const MEMORY_MAX_BYTES: f64 = 210e6;
/// Of another fwdlab's time and memory to this one's.
const RATIO_MIN: f64 = 5.0;

/// How often to measure; the defaults take about one minute behind the builds.
#[derive(Args)]
pub(crate) struct Settings {
    /// How often each of the two is measured, in time and in memory
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(2..))]
    pairs: u32,
    /// Another fwdlab, as it was before a change, to be measured in pairs with this one
    #[arg(long, value_name = "PROGRAM")]
    beside: Option<PathBuf>,
}

pub(crate) fn run(bench: &Bench, settings: &Settings) -> Result<Vec<Figure>> {
    let program = build()?;
    // Each has a directory of its own: lint takes longer where the report is another version's.
    let folders = [tempfile::tempdir()?, tempfile::tempdir()?];
    let mut directories = Vec::new();
    for folder in folders
        .iter()
        .take(1 + usize::from(settings.beside.is_some()))
    {
        directories.push(make(bench, folder.path())?);
    }
    let mut figures = Vec::new();
    for task in ["report", "lint"] {
        let command = |of: &Path| {
            let is_ours = of == program;
            let directory = if is_ours {
                directories.first()
            } else {
                directories.last()
            };
            let mut command = Command::new(of);
            command.arg(task).args(directory);
            command
        };
        let time = || seconds(bench, command(&program));
        let memory = || peak_bytes(bench, command(&program));
        // Lint holds the report's files against the records, so they have to be there; and the first to read waits
        // for the disk.
        for program in [Some(&program), settings.beside.as_ref()]
            .into_iter()
            .flatten()
        {
            seconds(bench, command(program)).context(task)?;
        }
        let (mut times_s, mut peaks) = (Vec::new(), Vec::new());
        if let Some(other) = &settings.beside {
            let pairs = Pairs::measure(
                settings.pairs,
                || seconds(bench, command(other)),
                time,
                |pair, other, ours| eprintln!("{task} {pair}: {other:.2} s and {ours:.2} s"),
            )?;
            figures.push(beside(
                &format!("{task}, time of the other / ours"),
                &pairs,
            )?);
            times_s = pairs.second;
            let pairs = Pairs::measure(
                settings.pairs,
                || peak_bytes(bench, command(other)),
                memory,
                |pair, other, ours| {
                    eprintln!(
                        "{task} {pair}: {:.0} MB and {:.0} MB",
                        other / 1e6,
                        ours / 1e6
                    );
                },
            )?;
            figures.push(beside(
                &format!("{task}, memory of the other / ours"),
                &pairs,
            )?);
            peaks = pairs.second;
        } else {
            for _ in 0..settings.pairs {
                times_s.push(time()?);
                peaks.push(memory()?);
            }
        }
        figures.push(absolute(
            format!("fwdlab {task} of 200 variants, 100 blocks of 10 rounds: wall time, median"),
            (format!("at most {SECONDS_MAX} s"), SECONDS_MAX),
            |seconds| format!("{seconds:.2} s"),
            times_s,
        ));
        figures.push(absolute(
            "the same: most memory at a time, median".to_owned(),
            (
                format!("at most {:.0} MB", MEMORY_MAX_BYTES / 1e6),
                MEMORY_MAX_BYTES,
            ),
            |bytes| format!("{:.0} MB", bytes / 1e6),
            peaks,
        ));
    }
    Ok(figures)
}

/// The made-up run's directory in a folder.
fn make(bench: &Bench, folder: &Path) -> Result<PathBuf> {
    bench.stop_if_asked()?;
    let made = cargo()
        .args(["run", "--quiet", "--release", "--package", "fwdlab-report"])
        .args(["--example", "directory", "--"])
        .arg(folder)
        .stdin(Stdio::null())
        .output()?;
    ensure!(made.status.success(), "the made-up run: {}", made.status);
    Ok(String::from_utf8(made.stdout)?.trim().into())
}

fn beside(what: &str, pairs: &Pairs) -> Result<Figure> {
    let ratio = pairs.ratio()?;
    Ok(Figure {
        what: what.to_owned(),
        goal: format!("at least {RATIO_MIN}"),
        measured: ratio.written(2, ""),
        beside: String::new(),
        outcome: ratio.at_least(RATIO_MIN),
        observations: json!({ "other": pairs.first, "ours": pairs.second }),
    })
}

fn absolute(
    what: String,
    (goal, most): (String, f64),
    written: impl Fn(f64) -> String,
    values: Vec<f64>,
) -> Figure {
    let middle = median(&values);
    let largest = values.iter().copied().fold(0.0, f64::max);
    Figure {
        what,
        goal,
        measured: format!("{} (n {})", written(middle), values.len()),
        beside: format!("largest {}", written(largest)),
        outcome: if middle <= most {
            Outcome::Met
        } else {
            Outcome::Missed
        },
        observations: json!({ "values": values }),
    }
}
