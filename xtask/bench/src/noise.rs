//! What the noise of this machine leaves of whole runs: how wide their intervals are, and whether
//! they hold what they should.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::command::{REPOSITORY, cargo};
use crate::figure::{Figure, Outcome};
use crate::pairs::median;

const HALF_WIDTH_PERCENT_MAX: f64 = 2.0;

/// Part of the intervals that must hold what they should.
const HOLDING_RATIO_MIN: f64 = 0.8;

/// The variants of the quickstart whose intervals have a goal.
const VARIANTS: [&str; 2] = ["nftables-10-stateless-rules", "nftables-conntrack"];

/// How often to measure; the defaults take about half an hour.
#[derive(Args)]
pub(crate) struct Settings {
    /// Runs of the quickstart
    #[arg(long, default_value_t = 10)]
    quickstarts: u32,
    /// Runs that compare the quickstart's baseline with itself
    #[arg(long, default_value_t = 20)]
    controls: u32,
}

/// An interval of an effect, in percent.
#[derive(Clone, Copy)]
struct Interval {
    estimate: f64,
    low: f64,
    high: f64,
}

impl Interval {
    fn half_width(self) -> f64 {
        (self.high - self.low) / 2.0
    }

    fn holds(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// Runs quickstarts and A/A runs in turn, with the program that users run.
pub(crate) fn run(bench: &Bench, settings: &Settings) -> Result<Vec<Figure>> {
    let program = build()?;
    let results = tempfile::tempdir()?;
    let mut effects = [Vec::new(), Vec::new()];
    let mut controls = Vec::new();
    // Spread over each other, so that both kinds see the same weather.
    let total = settings.quickstarts + settings.controls;
    let due = |kind: u32, runs: u32| u64::from(kind) * u64::from(runs) / u64::from(total.max(1));
    for number in 1..=total {
        eprintln!("run {number} of {total}");
        if due(settings.quickstarts, number) > due(settings.quickstarts, number - 1) {
            let report = measure(
                bench,
                &program,
                "experiments/quickstart.toml",
                results.path(),
            )?;
            for (intervals, variant) in effects.iter_mut().zip(VARIANTS) {
                intervals.push(interval(row(&report, variant)?)?);
            }
        } else {
            let report = measure(bench, &program, "xtask/bench/control.toml", results.path())?;
            controls.push(interval(row(&report, "no-packet-filter-once-more")?)?);
        }
    }
    let mut figures = Vec::new();
    for (variant, intervals) in VARIANTS.iter().zip(&effects) {
        let estimates: Vec<_> = intervals.iter().map(|interval| interval.estimate).collect();
        let what = format!("{} quickstarts: {variant}", intervals.len());
        figures.extend(figure(
            &what,
            intervals,
            median(&estimates),
            "the median of their estimates",
        ));
    }
    let what = format!("{} A/A runs", controls.len());
    figures.extend(figure(&what, &controls, 0.0, "0"));
    Ok(figures)
}

/// How wide some intervals are and how many hold what they should; nothing for none.
fn figure(what: &str, intervals: &[Interval], truth: f64, truth_words: &str) -> Option<Figure> {
    if intervals.is_empty() {
        return None;
    }
    let half_widths: Vec<_> = intervals
        .iter()
        .map(|interval| interval.half_width())
        .collect();
    let half_width = median(&half_widths);
    let holding = intervals
        .iter()
        .filter(|interval| interval.holds(truth))
        .count();
    let count = intervals.len();
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a handful of runs"
    )]
    let holding_min = (count as f64 * HOLDING_RATIO_MIN).ceil() as usize;
    let is_met = half_width <= HALF_WIDTH_PERCENT_MAX && holding >= holding_min;
    let narrowest = half_widths.iter().copied().fold(f64::INFINITY, f64::min);
    let widest = half_widths.iter().copied().fold(0.0, f64::max);
    Some(Figure {
        what: what.to_owned(),
        goal: format!(
            "median half-width at most {HALF_WIDTH_PERCENT_MAX} %; at least {holding_min} of \
             {count} intervals hold {truth_words}"
        ),
        measured: format!("{half_width:.2} %; {holding} of {count}"),
        beside: format!("half-widths {narrowest:.2} to {widest:.2} %; {truth_words}: {truth:.2} %"),
        outcome: if is_met {
            Outcome::Met
        } else {
            Outcome::Missed
        },
        observations: intervals
            .iter()
            .map(|interval| json!([interval.low, interval.estimate, interval.high]))
            .collect(),
    })
}

/// Builds the program as users do, and tells where it is: beside this one.
pub(crate) fn build() -> Result<PathBuf> {
    let status = cargo()
        .args(["build", "--quiet", "--release", "--package", "fwdlab"])
        .status()
        .context("building fwdlab")?;
    if !status.success() {
        bail!("building fwdlab: {status}");
    }
    Ok(env::current_exe()?.with_file_name("fwdlab"))
}

/// One run; its report.
pub(crate) fn measure(
    bench: &Bench,
    program: &Path,
    experiment: &str,
    results: &Path,
) -> Result<Value> {
    bench.stop_if_asked()?;
    let output = Command::new(program)
        .args(["run", experiment, "--new", "--json", "--quiet", "--results"])
        .arg(results)
        .current_dir(REPOSITORY)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| program.display().to_string())?;
    if !output.status.success() {
        bail!("fwdlab run {experiment}: {}", output.status);
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// What a report's only comparison says of a variant.
fn row<'a>(report: &'a Value, variant: &str) -> Result<&'a Value> {
    let rows = report["comparisons"][0]["rows"].as_array();
    rows.and_then(|rows| rows.iter().find(|row| row["variant"] == variant))
        .with_context(|| format!("report: no {variant}"))
}

/// The effect in a report's row.
fn interval(row: &Value) -> Result<Interval> {
    let effect = &row["effect"];
    let number = |value: &Value| value.as_f64().context("report: no effect with an interval");
    Ok(Interval {
        estimate: number(&effect["estimate_percent"])?,
        low: number(&effect["interval"]["low_percent"])?,
        high: number(&effect["interval"]["high_percent"])?,
    })
}
