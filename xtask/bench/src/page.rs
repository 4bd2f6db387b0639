//! `report.html`: how fast it is made, how large it is, and how fast it opens and answers in a browser.

use std::env;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;
use fwdlab_stats::median;
use serde::Deserialize;
use serde_json::json;

use crate::bench::Bench;
use crate::command::{REPOSITORY, cargo};
use crate::figure::{Figure, Outcome};

const BUILD_MAX_MS: f64 = 300.0;
const SIZE_MAX_BYTES: f64 = 1.5e6;
const OPEN_MAX_MS: f64 = 2000.0;
/// What people take for an answer at once.
///
/// # Source
/// Miller 1968, "Response time in man-computer conversational transactions".
const ANSWER_MAX_MS: f64 = 100.0;

/// How often to measure; the defaults take about two minutes behind the builds.
#[derive(Args)]
pub(crate) struct Settings {
    /// How often the page of a published result's size is made
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(2..))]
    builds: u32,
    /// How often each page is opened, in a context of its own
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(2..))]
    opens: u32,
}

/// Milliseconds, as the browser says.
#[derive(Deserialize)]
struct Browsed {
    published: Vec<f64>,
    largest: Vec<f64>,
    zoom: Vec<f64>,
    walk: Vec<f64>,
    filter: Vec<f64>,
}

/// A page that was made.
struct Made {
    bytes: f64,
    seconds: Vec<f64>,
}

pub(crate) fn run(bench: &Bench, settings: &Settings) -> Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let printed = output(
        bench,
        cargo()
            .args(["run", "--quiet", "--release", "--package", "fwdlab-report"])
            .args(["--example", "page", "--"])
            .arg(folder.path())
            .arg(settings.builds.to_string()),
    )?;
    let (published, largest) = made(&printed).context("what the example printed")?;
    let page = Path::new(REPOSITORY).join("crates/report/page");
    let chromium = env::var_os("FWDLAB_CHROMIUM").unwrap_or_else(|| "chromium".into());
    let chromium = output(bench, Command::new("which").arg(chromium))?;
    let printed = output(
        bench,
        Command::new("node")
            .arg("bench.mjs")
            .arg(folder.path().join("published.html"))
            .arg(folder.path().join("largest.html"))
            .arg(settings.opens.to_string())
            .current_dir(page)
            .env("FWDLAB_CHROMIUM", OsStr::new(chromium.trim())),
    )
    .context("`cargo xtask setup` installs Playwright and Chromium")?;
    let browsed: Browsed = serde_json::from_str(&printed)?;
    let build_ms: Vec<f64> = published.seconds.iter().map(|s| s * 1e3).collect();
    let megabytes = |made: &Made| format!("{:.2} MB", made.bytes / 1e6);
    Ok(vec![
        times(
            "a published result's size: the report and all its files from the records",
            Some(BUILD_MAX_MS),
            &build_ms,
            "7 variants with the control, 2 families, 10 blocks, 14 flame graphs and 12 differences",
        ),
        Figure {
            what: "the same: size of report.html".to_owned(),
            goal: format!("at most {:.1} MB", SIZE_MAX_BYTES / 1e6),
            measured: megabytes(&published),
            beside: String::new(),
            outcome: at_most(published.bytes, SIZE_MAX_BYTES),
            observations: json!({ "bytes": published.bytes }),
        },
        times("the same: report.html opens", None, &browsed.published, ""),
        times(
            "200 variants, 100 blocks of 10 rounds: report.html opens",
            Some(OPEN_MAX_MS),
            &browsed.largest,
            &format!(
                "{}, made in {:.1} s",
                megabytes(&largest),
                median(&largest.seconds).unwrap_or(f64::NAN)
            ),
        ),
        times(
            "the same: zoom by a key",
            Some(ANSWER_MAX_MS),
            &browsed.zoom,
            "",
        ),
        times(
            "the same: on to the next trial",
            Some(ANSWER_MAX_MS),
            &browsed.walk,
            "",
        ),
        times(
            "the same: filter by a letter more",
            Some(ANSWER_MAX_MS),
            &browsed.filter,
            "",
        ),
    ])
}

fn output(bench: &Bench, command: &mut Command) -> Result<String> {
    bench.stop_if_asked()?;
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}

/// The page of a published result's size and the largest: a line each of its name, its bytes and a list of
/// seconds.
fn made(printed: &str) -> Option<(Made, Made)> {
    let page = |name: &str| {
        let line = printed.lines().find_map(|line| line.strip_prefix(name))?;
        let (bytes, seconds) = line.trim().split_once(' ')?;
        Some(Made {
            bytes: bytes.parse().ok()?,
            seconds: serde_json::from_str(seconds).ok()?,
        })
    };
    Some((page("published")?, page("largest")?))
}

/// The median of some times, with the quartiles and the longest; what is asked is of the median.
fn times(what: &str, max_ms: Option<f64>, times_ms: &[f64], beside: &str) -> Figure {
    let mut sorted = times_ms.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = median(&sorted).unwrap_or(f64::NAN);
    let longest = sorted.last().copied().unwrap_or(f64::NAN);
    let ninth = sorted
        .get(sorted.len() * 9 / 10)
        .copied()
        .unwrap_or(longest);
    let mut notes = vec![format!(
        "nine tenths within {ninth:.0} ms, longest {longest:.0} ms"
    )];
    notes.extend(Some(beside.to_owned()).filter(|beside| !beside.is_empty()));
    Figure {
        what: what.to_owned(),
        goal: max_ms.map_or_else(
            || "none".to_owned(),
            |max| format!("median at most {max:.0} ms"),
        ),
        measured: format!("{middle:.0} ms (n {})", sorted.len()),
        beside: notes.join("; "),
        outcome: max_ms.map_or(Outcome::NoGoal, |max| at_most(middle, max)),
        observations: json!({ "ms": times_ms }),
    }
}

fn at_most(measured: f64, max: f64) -> Outcome {
    if measured <= max {
        Outcome::Met
    } else {
        Outcome::Missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_example_prints_is_read() {
        let (published, largest) = made("published 12 [0.5, 0.25]\nlargest 30 [1.5]\n").unwrap();
        assert!((published.bytes - 12.0).abs() < 1e-9);
        assert_eq!(published.seconds, [0.5, 0.25]);
        assert_eq!(largest.seconds, [1.5]);
        assert!(made("published 12 [0.5]\n").is_none());
    }

    #[test]
    fn times_tell_the_middle_and_the_longest() {
        let figure = times("x", Some(20.0), &[10.0, 30.0, 15.0], "y");
        assert_eq!(figure.measured, "15 ms (n 3)");
        assert_eq!(figure.beside, "nine tenths within 30 ms, longest 30 ms; y");
        assert_eq!(figure.outcome, Outcome::Met);
        assert_eq!(times("x", Some(14.0), &[15.0], "").outcome, Outcome::Missed);
    }
}
