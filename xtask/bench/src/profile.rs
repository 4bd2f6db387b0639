//! `fwdlab flame fold` beside inferno's `inferno-collapse-perf`, on the same text of perf script.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::json;

use crate::bench::Bench;
use crate::command::{peak_bytes, seconds};
use crate::figure::{Figure, Outcome};
use crate::noise::build;
use crate::pairs::Pairs;

const RATE_MIN_MB_S: f64 = 200.0;
const SPEED_RATIO_MIN: f64 = 1.0;
const MEGABYTE: u64 = 1_000_000;

/// A busy forwarder's: what was distinct among its samples.
const STACKS: usize = 4000;
const KERNEL_FUNCTIONS: usize = 2000;
const USER_FUNCTIONS: usize = 300;
/// Functions of a process at the root of each stack.
const USER_FRAMES: usize = 3;
/// Frames of a stack, from and below.
const DEPTHS: (u64, u64) = (8, 24);

/// How much, and how often to measure; the defaults take about two minutes.
#[derive(Args)]
pub(crate) struct Settings {
    /// Pairs of a run of each program
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..))]
    pairs: u32,
    /// The size of the text, in millions of bytes
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    megabytes: u32,
}

/// Measures both programs' time, and both their memory.
pub(crate) fn run(bench: &Bench, settings: &Settings) -> Result<Vec<Figure>> {
    let program = build()?;
    let folder = tempfile::tempdir()?;
    let text = folder.path().join("perf.txt");
    eprintln!("{} MB of perf script are made", settings.megabytes);
    let size = write_samples(&text, u64::from(settings.megabytes) * MEGABYTE)
        .with_context(|| text.display().to_string())?;
    let ours = || {
        let mut command = Command::new(&program);
        command.args(["flame", "fold"]).arg(&text);
        command
    };
    let theirs = || {
        let mut command = Command::new("inferno-collapse-perf");
        command.arg("--quiet").arg(&text);
        command
    };
    // The first to read the text waits for the disk as well.
    let samples = agreed_samples(ours(), theirs())?;

    let pairs = Pairs::measure(
        settings.pairs,
        || seconds(bench, theirs()),
        || seconds(bench, ours()),
        |pair, theirs, ours| eprintln!("pair {pair}: inferno {theirs:.2} s, fwdlab {ours:.2} s"),
    )?;
    let peaks = |command: &dyn Fn() -> Command| {
        let peaks = (0..3).map(|_| peak_bytes(bench, command()));
        peaks.collect::<Result<Vec<f64>>>()
    };
    Ok(vec![
        rate(&pairs, size, samples)?,
        ratio(&pairs)?,
        memory(&peaks(&ours)?, &peaks(&theirs)?),
    ])
}

/// The samples that both programs say there are, in the same stacks.
fn agreed_samples(ours: Command, theirs: Command) -> Result<u64> {
    let stacks = |mut command: Command| {
        let output = command
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| {
                format!("{command:?} cannot be started; `cargo xtask setup` installs inferno")
            })?;
        ensure!(output.status.success(), "{command:?}: {}", output.status);
        let mut lines: Vec<String> = String::from_utf8(output.stdout)?
            .lines()
            .map(str::to_owned)
            .collect();
        lines.sort_unstable();
        anyhow::Ok(lines)
    };
    let (ours, theirs) = (stacks(ours)?, stacks(theirs)?);
    let sum = |stacks: &[String]| -> Result<u64> {
        let counts = stacks
            .iter()
            .map(|line| line.rsplit(' ').next().unwrap_or(""));
        counts.map(|count| Ok(count.parse::<u64>()?)).sum()
    };
    let samples = sum(&ours)?;
    ensure!(
        samples == sum(&theirs)?,
        "fwdlab counts {samples} samples, inferno {}",
        sum(&theirs)?
    );
    let different = ours
        .iter()
        .zip(&theirs)
        .find(|(ours, theirs)| ours != theirs);
    ensure!(
        ours.len() == theirs.len() && different.is_none(),
        "fwdlab and inferno fold the same text to other stacks: {different:?}"
    );
    Ok(samples)
}

fn rate(pairs: &Pairs, size_bytes: u64, samples: u64) -> Result<Figure> {
    let megabytes = size_bytes as f64 / MEGABYTE as f64;
    let rate = Pairs {
        first: vec![megabytes; pairs.second.len()],
        second: pairs.second.clone(),
    }
    .ratio()?;
    Ok(Figure {
        what: format!("fwdlab flame fold, {megabytes:.0} MB of perf script"),
        goal: format!("at least {RATE_MIN_MB_S} MB/s"),
        measured: rate.written(0, " MB/s"),
        beside: format!("{samples} samples in {STACKS} stacks, as many as inferno's"),
        outcome: rate.at_least(RATE_MIN_MB_S),
        observations: json!({ "size_bytes": size_bytes, "ours_s": pairs.second }),
    })
}

fn ratio(pairs: &Pairs) -> Result<Figure> {
    let ratio = pairs.ratio()?;
    let (theirs, ours) = pairs.medians();
    Ok(Figure {
        what: "time of inferno-collapse-perf / ours, the same text".to_owned(),
        goal: format!("at least {SPEED_RATIO_MIN}"),
        measured: ratio.written(2, ""),
        beside: format!("{theirs:.2} s and {ours:.2} s"),
        outcome: ratio.at_least(SPEED_RATIO_MIN),
        observations: json!({ "theirs_s": pairs.first, "ours_s": pairs.second }),
    })
}

fn memory(ours: &[f64], theirs: &[f64]) -> Figure {
    let largest = |peaks: &[f64]| peaks.iter().copied().fold(0.0, f64::max);
    Figure {
        what: "fwdlab flame fold, peak of its memory".to_owned(),
        goal: "none: it grows with the distinct stacks".to_owned(),
        measured: format!(
            "{:.0} MB, the largest of {}",
            largest(ours) / 1e6,
            ours.len()
        ),
        beside: format!("{:.0} MB, inferno", largest(theirs) / 1e6),
        outcome: Outcome::NoGoal,
        observations: json!({ "ours_bytes": ours, "theirs_bytes": theirs }),
    }
}

/// Numbers that look random, the same in every run of this bench.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn index_below(&mut self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).unwrap_or_default()
    }

    /// An index of the stacks, the first ones far more often than the last.
    fn stack(&mut self) -> usize {
        let end = self.index_below(STACKS) + 1;
        self.index_below(end)
    }
}

/// A function, and where in it the next one was called.
#[derive(Clone, Copy, PartialEq)]
enum Call {
    User { function: usize, offset: u64 },
    Kernel { function: usize, offset: u64 },
}

impl Call {
    fn any(numbers: &mut Numbers, is_user: bool) -> Self {
        // A function calls others from a few places.
        let offset = 8 * (1 + numbers.below(4));
        if is_user {
            let function = numbers.index_below(USER_FUNCTIONS);
            Self::User { function, offset }
        } else {
            let function = numbers.index_below(KERNEL_FUNCTIONS);
            Self::Kernel { function, offset }
        }
    }

    fn write(self, text: &mut impl Write) -> io::Result<()> {
        let areas = ["ip", "fib", "nf", "skb", "napi", "veth", "dev", "tcp"];
        let deeds = ["rcv", "forward", "lookup", "poll", "xmit", "alloc", "free"];
        match self {
            Self::User { function, offset } => {
                let address = 0x7f32_0000_0000 + function as u64 * 0x400 + offset;
                let object = "/usr/lib/x86_64-linux-gnu/libc.so.6";
                writeln!(
                    text,
                    "\t{address:16x} worker_{function}+{offset:#x} ({object})"
                )
            }
            Self::Kernel { function, offset } => {
                let address = 0xffff_ffff_8100_0000 + function as u64 * 0x400 + offset;
                let name = |names: &[&'static str]| names[function % names.len()];
                let (area, deed) = (name(&areas), name(&deeds));
                let object = "[kernel.kallsyms]";
                writeln!(
                    text,
                    "\t{address:16x} {area}_{deed}_{function}+{offset:#x} ({object})"
                )
            }
        }
    }
}

/// A stack whose samples differ in where in its leaf they were taken.
struct Stack {
    process: &'static str,
    leaf: usize,
    callers: Vec<u8>,
}

/// Stacks of a call tree: each shares callers with an earlier one.
fn stacks(numbers: &mut Numbers) -> io::Result<Vec<Stack>> {
    let processes = ["iperf3", "ksoftirqd/0", "swapper", "nginx", "sshd"];
    let mut calls: Vec<Vec<Call>> = Vec::new();
    let mut stacks = Vec::new();
    for index in 0..STACKS {
        let depth = DEPTHS.0 + numbers.below(DEPTHS.1 - DEPTHS.0);
        let depth = usize::try_from(depth).unwrap_or_default();
        let mut path = Vec::new();
        if index > 0 {
            let earlier: &Vec<Call> = &calls[numbers.index_below(index)];
            let shared = numbers.index_below(earlier.len());
            path.extend_from_slice(&earlier[..shared]);
        }
        while path.len() < depth {
            let is_user = path.len() < USER_FRAMES;
            path.push(Call::any(numbers, is_user));
        }
        let mut callers = Vec::new();
        for call in path.iter().rev() {
            call.write(&mut callers)?;
        }
        calls.push(path);
        stacks.push(Stack {
            process: processes[index % processes.len()],
            leaf: numbers.index_below(KERNEL_FUNCTIONS),
            callers,
        });
    }
    Ok(stacks)
}

/// Writes samples as perf script prints them, until there are that many bytes; how many there are.
///
/// Their period is 1, because inferno adds up periods, and fwdlab counts samples.
fn write_samples(path: &Path, bytes: u64) -> io::Result<u64> {
    let mut numbers = Numbers(1);
    let stacks = stacks(&mut numbers)?;
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut sample = Vec::new();
    let (mut written, mut count) = (0, 0);
    while written < bytes {
        // Each at least once.
        let index = if count < STACKS {
            count
        } else {
            numbers.stack()
        };
        let stack = &stacks[index];
        let (seconds, micros) = (count / 4000, count % 4000 * 250);
        let (process, id, cpu) = (stack.process, 700 + stack.process.len(), count % 8);
        sample.clear();
        writeln!(
            sample,
            "{process} {id} [{cpu:03}] {seconds}.{micros:06}:          1 cycles: "
        )?;
        let offset = 4 * numbers.below(32);
        Call::Kernel {
            function: stack.leaf,
            offset,
        }
        .write(&mut sample)?;
        sample.extend_from_slice(&stack.callers);
        sample.push(b'\n');
        file.write_all(&sample)?;
        written += sample.len() as u64;
        count += 1;
    }
    file.into_inner()?.sync_all()?;
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_perf_scripts_and_as_long_as_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("perf.txt");
        let size = write_samples(&path, 6 * MEGABYTE).unwrap();
        assert_eq!(size, path.metadata().unwrap().len());
        assert!((6 * MEGABYTE..6 * MEGABYTE + 10_000).contains(&size));
        let text = std::fs::read(&path).unwrap();
        let script = fwdlab_profile::PerfScript::read(
            text.as_slice(),
            fwdlab_profile::FrameNames::Symbols,
            None,
        )
        .unwrap();
        let samples = text
            .split(|&byte| byte == b'\n')
            .filter(|line| line.is_empty());
        // The text ends with a newline, behind which there is no line.
        assert_eq!(script.folded.samples(), samples.count() as u64 - 1);
        let stacks = script.folded.stacks();
        assert!(stacks.len() > STACKS * 9 / 10);
        let frames: usize = stacks.map(|stack| stack.frames().len()).sum();
        let mean = frames as f64 / script.folded.stacks().len() as f64;
        assert!((14.0..20.0).contains(&mean), "{mean}");
    }
}
