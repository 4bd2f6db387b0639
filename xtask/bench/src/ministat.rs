//! `fwdlab ministat` beside the `ministat` that is installed, on the same file.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};
use clap::Args;
use serde_json::json;

use crate::bench::Bench;
use crate::command::seconds;
use crate::figure::Figure;
use crate::noise::build;
use crate::pairs::{Pairs, median};

const SPEED_RATIO_MIN: f64 = 5.0;

/// How often to measure; the defaults take about a minute.
#[derive(Args)]
pub(crate) struct Settings {
    /// Pairs of a run of each program, for each kind of number
    #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u32).range(2..))]
    pairs: u32,
    /// Lines of the file
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(3..))]
    lines: u32,
}

/// Measures both programs on integers and on decimals.
pub(crate) fn run(bench: &Bench, settings: &Settings) -> Result<Vec<Figure>> {
    let ours = build()?;
    let theirs = Path::new("ministat");
    if Command::new(theirs).stdin(Stdio::null()).output().is_err() {
        bail!("ministat is not installed; `cargo xtask setup` installs it");
    }
    let folder = tempfile::tempdir()?;
    let command = |program: &Path, arguments: &[&str], file: &Path| {
        let mut command = Command::new(program);
        command.args(arguments).arg(file);
        command
    };
    let mut figures = Vec::new();
    for (kind, digits) in [("integers", 0), ("decimals", 3)] {
        let file = folder.path().join(kind);
        fs::write(&file, numbers(settings.lines, digits))?;
        let pairs = Pairs::measure(
            settings.pairs,
            || seconds(bench, command(theirs, &[], &file)),
            || seconds(bench, command(&ours, &["ministat"], &file)),
            |_, _, _| (),
        )?;
        let ratio = pairs.ratio()?;
        figures.push(Figure {
            what: format!(
                "time of Debian's ministat / ours, {} {kind}",
                settings.lines
            ),
            goal: format!("at least {SPEED_RATIO_MIN}"),
            measured: ratio.written(2, ""),
            beside: format!(
                "{:.0} ms and {:.0} ms",
                median(&pairs.first) * 1e3,
                median(&pairs.second) * 1e3
            ),
            outcome: ratio.at_least(SPEED_RATIO_MIN),
            observations: json!({ "theirs_s": pairs.first, "ours_s": pairs.second }),
        });
    }
    Ok(figures)
}

/// Forwarding rates of a few Mpps, the same in every run of this bench.
fn numbers(lines: u32, digits: usize) -> Vec<u8> {
    let mut text = Vec::new();
    let mut state = 1_u64;
    for _ in 0..lines {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let spread = f64::from(u32::try_from(state >> 32).unwrap_or_default()) / 1e4;
        let _ = writeln!(text, "{:.digits$}", 4.0e6 + spread);
    }
    text
}
