//! `fwdlab import` and `fwdlab lint` of a public archive beside what its own script does for each log.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;

use crate::bench::Bench;
use crate::figure::{Figure, Outcome};
use crate::noise::build;
use crate::pairs::{Pairs, median};

const SPEED_RATIO_MIN: f64 = 100.0;
const SECONDS_MAX: f64 = 2.0;
const MEMORY_MAX_BYTES: f64 = 300e6;
/// How many copies of the archive are read in one go.
const COPIES: u32 = 10;

/// What the archive's script does for each receiver's log, and nothing more: the median of the rates.
const SCRIPT: &str = r"
find . -name '*.receiver' | sort | while IFS= read -r log; do
    lines=$(wc -l < $log)
    head -n $((lines - 10)) $log | tail -n $((lines - 25)) |
        grep -E 'main_thread[[:space:]]\[[[:digit:]]+\][[:space:]][1-9].*pps' |
        cut -d ' ' -f 4 | ministat -n | tail -n 1 | tr -s ' ' | cut -d ' ' -f 5
done 2> /dev/null
";

/// How often to measure; the defaults take about ten minutes, most of it in the script.
#[derive(Args)]
pub(crate) struct Settings {
    /// Pairs of each comparison
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(2..))]
    pairs: u32,
    /// The archive, or a part of it
    #[arg(long, value_name = "DIR", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus/netbenches"))]
    archive: PathBuf,
}

/// What is measured of fwdlab.
#[derive(Clone, Copy)]
enum Task {
    Import,
    Lint,
}

impl Task {
    const fn name(self) -> &'static str {
        match self {
            Self::Import => "fwdlab import",
            Self::Lint => "fwdlab lint",
        }
    }

    fn command(self, program: &Path, archive: &Path, out: &Path) -> Command {
        let mut command = Command::new(program);
        match self {
            Self::Import => command
                .args(["import", "netbenches"])
                .arg(archive)
                .arg("--results")
                .arg(out),
            Self::Lint => command.args(["lint", "--fail-on", "never"]).arg(archive),
        };
        command
    }
}

/// Measures both commands against the script, against the clock, and on ten copies.
pub(crate) fn run(bench: &Bench, settings: &Settings) -> Result<Vec<Figure>> {
    let program = build()?;
    if Command::new("ministat")
        .stdin(Stdio::null())
        .output()
        .is_err()
    {
        bail!("ministat is not installed; `cargo xtask setup` installs it");
    }
    let archive = &settings.archive;
    let folder = tempfile::tempdir()?;
    let copies = folder.path().join("copies");
    for copy in 1..=COPIES {
        link_tree(archive, &copies.join(copy.to_string()))
            .with_context(|| archive.display().to_string())?;
    }
    let out = folder.path().join("out");
    let script = || {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT]).current_dir(archive);
        seconds(bench, command)
    };
    let mut figures = Vec::new();
    for task in [Task::Import, Task::Lint] {
        let name = task.name();
        let ours = |archive: &Path| seconds(bench, task.command(&program, archive, &out));
        // The first to read a file waits for the disk.
        ours(&copies)?;

        let pairs = Pairs::measure(settings.pairs, script, || ours(archive), |_, _, _| ())?;
        let ratio = pairs.ratio()?;
        let (of_script, of_ours) = pairs.medians();
        figures.push(Figure {
            what: format!("time of the archive's script, logs alone / {name}, everything"),
            goal: format!("at least {SPEED_RATIO_MIN}"),
            measured: ratio.written(1, ""),
            beside: format!("{of_script:.1} s and {of_ours:.3} s"),
            outcome: ratio.at_least(SPEED_RATIO_MIN),
            observations: json!({ "script_s": pairs.first, "ours_s": pairs.second }),
        });

        let times = Pairs {
            second: vec![0.0; pairs.second.len()],
            first: pairs.second,
        };
        let time = times.difference()?;
        figures.push(Figure {
            what: format!("{name}, wall time"),
            goal: format!("at most {SECONDS_MAX} s"),
            measured: time.written(3, " s"),
            beside: String::new(),
            outcome: time.at_most(SECONDS_MAX),
            observations: json!({ "ours_s": times.first }),
        });

        let peaks = (0..settings.pairs)
            .map(|_| peak_bytes(bench, task.command(&program, archive, &out)))
            .collect::<Result<Vec<f64>>>()?;
        let largest = peaks.iter().copied().fold(0.0, f64::max);
        figures.push(Figure {
            what: format!("{name}, peak of its memory"),
            goal: format!("at most {:.0} MB", MEMORY_MAX_BYTES / 1e6),
            measured: format!("{:.0} MB, the largest of {}", largest / 1e6, peaks.len()),
            beside: format!("{:.0} MB, the median", median(&peaks) / 1e6),
            outcome: if largest <= MEMORY_MAX_BYTES {
                Outcome::Met
            } else {
                Outcome::Missed
            },
            observations: json!({ "peak_bytes": peaks }),
        });

        let pairs = Pairs::measure(
            settings.pairs,
            || ours(&copies),
            || ours(archive),
            |_, _, _| (),
        )?;
        let ratio = pairs.ratio()?;
        let (of_copies, of_one) = pairs.medians();
        figures.push(Figure {
            what: format!("{name}, time of {COPIES} copies / time of one"),
            goal: format!("at most {COPIES}"),
            measured: ratio.written(2, ""),
            beside: format!("{of_copies:.2} s and {of_one:.3} s"),
            outcome: ratio.at_most(f64::from(COPIES)),
            observations: json!({ "copies_s": pairs.first, "one_s": pairs.second }),
        });
    }
    Ok(figures)
}

/// The same files under other folders; copied where they cannot be linked.
fn link_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            link_tree(&path, &target)?;
        } else if kind.is_file() {
            fs::hard_link(&path, &target).or_else(|_| fs::copy(&path, &target).map(|_| ()))?;
        }
    }
    Ok(())
}

/// How long a command takes from its start to its end.
fn seconds(bench: &Bench, mut command: Command) -> Result<f64> {
    bench.stop_if_asked()?;
    let start = Instant::now();
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("{command:?}"))?;
    let elapsed = start.elapsed();
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(elapsed.as_secs_f64())
}

/// The most memory that a command had at a time, asked for every millisecond while it runs.
fn peak_bytes(bench: &Bench, mut command: Command) -> Result<f64> {
    bench.stop_if_asked()?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("{command:?}"))?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0.0;
    let ended = loop {
        // A process that has ended has no memory, and says nothing.
        let text = fs::read_to_string(&status).unwrap_or_default();
        peak = peak_of_status(&text).unwrap_or(peak);
        if let Some(ended) = child.try_wait()? {
            break ended;
        }
        thread::sleep(Duration::from_millis(1));
    };
    if !ended.success() {
        bail!("{command:?}: {ended}");
    }
    Ok(peak)
}

/// `VmHWM: 123456 kB`.
fn peak_of_status(status: &str) -> Option<f64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_read_where_there_is_one() {
        let status = "Name:\tfwdlab\nVmPeak:\t  90000 kB\nVmHWM:\t   2048 kB\nVmRSS:\t 1 kB\n";
        assert_eq!(peak_of_status(status), Some(2048.0 * 1024.0));
        assert_eq!(peak_of_status("Name:\tfwdlab\nState:\tZ (zombie)\n"), None);
        let own = fs::read_to_string("/proc/self/status").unwrap();
        assert!(peak_of_status(&own).is_some_and(|bytes| bytes > 1e5));
    }

    #[test]
    fn a_linked_tree_holds_the_same_files() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("a/b")).unwrap();
        fs::write(from.join("a/b/c"), "text").unwrap();
        link_tree(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("a/b/c")).unwrap(), "text");
    }
}
