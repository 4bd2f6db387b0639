//! `fwdlab import` and `fwdlab lint` of a public archive beside what its own script does for each log.

use std::cell::Cell;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use fwdlab_pkt_gen::{PublishedMedian, published_observation};
use serde_json::json;

use crate::bench::Bench;
use crate::command::{peak_bytes, seconds};
use crate::figure::{Figure, Outcome};
use crate::noise::build;
use crate::pairs::{Pairs, median};

const SPEED_RATIO_MIN: f64 = 100.0;
const SECONDS_MAX: f64 = 2.0;
const MEMORY_MAX_BYTES: f64 = 300e6;
/// How many copies of the archive are read in one go.
const COPIES: u32 = 10;
/// How long ext4 gives new files no inode of one that was deleted, and the longer looks for others the more those were:
/// what the build in front has deleted is not to count.
const DELETED_AGO: Duration = Duration::from_secs(310);
/// More than all that is written here.
const TOUCHED_BYTES_MAX: usize = 10 << 30;

/// What the archive's script does for each receiver's log, and nothing more: the median of the rates.
const SCRIPT: &str = r#"
find . -name '*.receiver' | LC_ALL=C sort | while IFS= read -r log; do
    lines=$(wc -l < "$log")
    head -n $((lines - 10)) "$log" | tail -n $((lines - 25)) |
        grep -E 'main_thread[[:space:]]\[[[:digit:]]+\][[:space:]][1-9].*pps' |
        cut -d ' ' -f 4 | ministat -n | tail -n 1 | tr -s ' ' | cut -d ' ' -f 5
done 2> /dev/null
"#;

/// How often to measure; the defaults take about eight minutes.
#[derive(Args)]
pub(crate) struct Settings {
    /// Pairs of each comparison but that with the script
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(2..))]
    pairs: u32,
    /// Pairs of the comparison with the script, which takes a quarter of a minute each time
    #[arg(long, value_name = "PAIRS", default_value_t = 6, value_parser = clap::value_parser!(u32).range(2..))]
    script_pairs: u32,
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

/// Measures the observations against the script, and both commands against the clock, the memory and ten
/// copies.
pub(crate) fn run(bench: &Bench, settings: &Settings) -> Result<Vec<Figure>> {
    let program = build()?;
    let built = Instant::now();
    let archive = &settings.archive;
    let folder = tempfile::tempdir()?;
    // Every import has a folder of its own, and all are removed in the end.
    let imports = Cell::new(0);
    let command = |task: Task, archive: &Path| {
        imports.set(imports.get() + 1);
        let out = folder.path().join(format!("import-{}", imports.get()));
        task.command(&program, archive, &out)
    };
    let ours = |task: Task, archive: &Path| seconds(bench, command(task, archive));

    let mut figures = vec![observations(bench, settings)?];
    // The first to read a file waits for the disk.
    ours(Task::Import, archive)?;
    ours(Task::Lint, archive)?;
    figures.push(wall_time(settings, |task| ours(task, archive))?);
    for task in [Task::Import, Task::Lint] {
        figures.push(memory(bench, settings, task, || command(task, archive))?);
    }

    eprintln!("memory is touched, {COPIES} copies are made and read once");
    touch_memory(&fs::read_to_string("/proc/meminfo")?);
    let copies = folder.path().join("copies");
    for copy in 1..=COPIES {
        link_tree(archive, &copies.join(copy.to_string()))
            .with_context(|| archive.display().to_string())?;
    }
    ours(Task::Lint, &copies)?;
    while built.elapsed() < DELETED_AGO {
        bench.stop_if_asked()?;
        thread::sleep(Duration::from_millis(200));
    }
    figures.extend(growth(settings, ours, &copies)?);
    // Minutes, where each file's blocks are given back to the disk.
    eprintln!("what was imported is removed");
    folder.close()?;
    Ok(figures)
}

/// Import and lint, one behind the other, of the copies and of one; of these pairs also each of the two alone.
fn growth(
    settings: &Settings,
    ours: impl Fn(Task, &Path) -> Result<f64>,
    copies: &Path,
) -> Result<Vec<Figure>> {
    let both = |archive: &Path, times_s: &mut [Vec<f64>; 2]| {
        let [import, lint] = [ours(Task::Import, archive)?, ours(Task::Lint, archive)?];
        times_s[0].push(import);
        times_s[1].push(lint);
        Ok(import + lint)
    };
    let (mut of_copies, mut of_one) = ([vec![], vec![]], [vec![], vec![]]);
    let of_both = Pairs::measure(
        settings.pairs,
        || both(copies, &mut of_copies),
        || both(&settings.archive, &mut of_one),
        |pair, copies, one| {
            eprintln!("import and lint {pair}: {copies:.2} s of copies, {one:.3} s of one");
        },
    )?;
    let of_task = |task: usize| Pairs {
        first: of_copies[task].clone(),
        second: of_one[task].clone(),
    };
    let [import, lint] = [Task::Import, Task::Lint].map(Task::name);
    [
        (format!("{import} and {lint}"), of_both),
        (format!("of that {import}"), of_task(0)),
        (format!("of that {lint}"), of_task(1)),
    ]
    .into_iter()
    .map(|(what, pairs)| {
        let ratio = pairs.ratio()?;
        let (of_copies, of_one) = pairs.medians();
        Ok(Figure {
            what: format!("{what}, time of {COPIES} copies / time of one"),
            goal: format!("at most {COPIES}"),
            measured: ratio.written(2, ""),
            beside: format!("{of_copies:.2} s and {of_one:.3} s"),
            outcome: ratio.at_most(f64::from(COPIES)),
            observations: json!({ "copies_s": pairs.first, "one_s": pairs.second }),
        })
    })
    .collect()
}

/// The script beside the very same work of ours: find the logs, read them, reckon an observation of each.
/// What both say is compared, digit for digit.
fn observations(bench: &Bench, settings: &Settings) -> Result<Figure> {
    let archive = &settings.archive;
    let median = installed_median()?;
    let (mut of_script, mut of_ours) = (String::new(), String::new());
    let script = || {
        bench.stop_if_asked()?;
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT]).current_dir(archive);
        let start = Instant::now();
        let output = command.stdin(Stdio::null()).output().context("sh")?;
        let elapsed = start.elapsed();
        of_script = String::from_utf8(output.stdout)?;
        Ok(elapsed.as_secs_f64())
    };
    let ours = || {
        bench.stop_if_asked()?;
        let start = Instant::now();
        of_ours = published_observations(archive, median)?;
        Ok(start.elapsed().as_secs_f64())
    };
    let pairs = Pairs::measure(settings.script_pairs, script, ours, |pair, script, ours| {
        eprintln!("observations {pair}: {script:.2} s of the script, {ours:.3} s of ours");
    })?;
    let mut lines = of_script.lines().zip(of_ours.lines());
    if let Some((script, ours)) = lines.find(|(script, ours)| script != ours) {
        bail!("the script says {script}, fwdlab {ours}");
    }
    ensure!(
        of_script.lines().count() == of_ours.lines().count(),
        "the script gives {} observations, fwdlab {}",
        of_script.lines().count(),
        of_ours.lines().count()
    );
    let ratio = pairs.ratio()?;
    let (script_s, ours_s) = pairs.medians();
    Ok(Figure {
        what: format!(
            "time of the archive's script / ours, the same {} observations of receivers' logs",
            of_ours.lines().count()
        ),
        goal: format!("at least {SPEED_RATIO_MIN}"),
        measured: ratio.written(0, ""),
        beside: format!("{script_s:.1} s and {:.0} ms", ours_s * 1e3),
        outcome: ratio.at_least(SPEED_RATIO_MIN),
        observations: json!({ "script_s": pairs.first, "ours_s": pairs.second }),
    })
}

/// Which of two values in the middle the installed ministat takes.
fn installed_median() -> Result<PublishedMedian> {
    let mut numbers = tempfile::NamedTempFile::new()?;
    numbers.write_all(b"1\n2\n3\n4\n")?;
    let output = Command::new("ministat")
        .arg("-n")
        .arg(numbers.path())
        .output()
        .context("ministat is not installed; `cargo xtask setup` installs it")?;
    let text = String::from_utf8_lossy(&output.stdout);
    // The first line with an x names the file.
    let median = text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("x") && words.next() == Some("4")).then(|| words.nth(2))?
    });
    match median {
        Some("2.5") => Ok(PublishedMedian::Averaged),
        Some("3") => Ok(PublishedMedian::Upper),
        _ => bail!("the installed ministat prints something else than ministat does: {text}"),
    }
}

/// What [`SCRIPT`] prints, by the functions that import and lint call, on as many threads as there are CPUs.
fn published_observations(archive: &Path, median: PublishedMedian) -> Result<String> {
    let mut logs = Vec::new();
    receivers_logs(archive, &mut logs).with_context(|| archive.display().to_string())?;
    logs.sort_by(|one, other| {
        let bytes = |path: &Path| path.as_os_str().as_encoded_bytes().to_vec();
        bytes(one).cmp(&bytes(other))
    });
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let share = logs.len().div_ceil(cpus).max(1);
    let of_logs = |logs: &[PathBuf]| {
        let mut text = String::new();
        for log in logs {
            let content = fs::read(log).with_context(|| log.display().to_string())?;
            if let Some(line) = published_observation(&content, median) {
                text += &line;
                text.push('\n');
            }
        }
        anyhow::Ok(text)
    };
    thread::scope(|scope| {
        let shares = logs.chunks(share);
        let threads: Vec<_> = shares
            .map(|logs| scope.spawn(move || of_logs(logs)))
            .collect();
        let texts = threads.into_iter().map(|thread| {
            let text = thread.join();
            text.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        texts.collect()
    })
}

fn receivers_logs(folder: &Path, logs: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            receivers_logs(&path, logs)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == "receiver")
        {
            logs.push(path);
        }
    }
    Ok(())
}

/// Import and lint, one behind the other.
fn wall_time(settings: &Settings, ours: impl Fn(Task) -> Result<f64>) -> Result<Figure> {
    let pairs = Pairs::measure(
        settings.pairs,
        || ours(Task::Import),
        || ours(Task::Lint),
        |pair, import, lint| eprintln!("pair {pair}: import {import:.3} s, lint {lint:.3} s"),
    )?;
    let (import, lint) = pairs.medians();
    let sums = pairs.first.iter().zip(&pairs.second);
    let both = Pairs {
        first: sums.map(|(import, lint)| import + lint).collect(),
        second: vec![0.0; pairs.first.len()],
    };
    let time = both.difference()?;
    Ok(Figure {
        what: "fwdlab import and fwdlab lint, one after the other, wall time".to_owned(),
        goal: format!("at most {SECONDS_MAX} s"),
        measured: time.written(2, " s"),
        beside: format!("{import:.2} s and {lint:.2} s"),
        outcome: time.at_most(SECONDS_MAX),
        observations: json!({ "import_s": pairs.first, "lint_s": pairs.second }),
    })
}

/// The most memory that a command has at a time.
fn memory(
    bench: &Bench,
    settings: &Settings,
    task: Task,
    command: impl Fn() -> Command,
) -> Result<Figure> {
    let peaks = (0..settings.pairs)
        .map(|_| peak_bytes(bench, command()))
        .collect::<Result<Vec<f64>>>()?;
    let largest = peaks.iter().copied().fold(0.0, f64::max);
    Ok(Figure {
        what: format!("{}, peak of its memory", task.name()),
        goal: format!("at most {:.0} MB", MEMORY_MAX_BYTES / 1e6),
        measured: format!("{:.0} MB, the largest of {}", largest / 1e6, peaks.len()),
        beside: format!("{:.0} MB, the median", median(&peaks) / 1e6),
        outcome: if largest <= MEMORY_MAX_BYTES {
            Outcome::Met
        } else {
            Outcome::Missed
        },
        observations: json!({ "peak_bytes": peaks }),
    })
}

/// Writes to memory that nobody uses, half of it at most, and gives it back.
///
/// A virtual machine gets a page from its host when it first writes there, which takes many times as long as to
/// write: who writes much would pay for that, and who writes little finds pages that others gave back.
fn touch_memory(meminfo: &str) {
    let free = meminfo.lines().find_map(|line| {
        let kibibytes = line.strip_prefix("MemFree:")?.strip_suffix("kB")?.trim();
        kibibytes.parse::<usize>().ok()
    });
    let bytes = (free.unwrap_or(0) / 2 * 1024).min(TOUCHED_BYTES_MAX);
    std::hint::black_box(vec![1_u8; bytes]);
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

#[cfg(test)]
mod tests {
    use super::*;

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
