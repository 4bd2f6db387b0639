//! A run that is killed, interrupted or out of space loses at most its running block, leaves
//! nothing behind, and goes on where it was.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const EXPERIMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/short.toml");
const BLOCKS: usize = 6;
const VARIANTS: usize = 2;
/// How long the experiment takes, about; moments to kill it are drawn from this range.
const RUN_MS: u64 = 5000;
/// No run of it may take longer than this, whatever the machine does.
const RUN_S_MAX: u64 = 120;

fn run_command(results: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fwdlab"));
    command.args(["run", EXPERIMENT, "--results"]).arg(results);
    command
        .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn finish(child: Child) -> Output {
    child.wait_with_output().expect("the child was started")
}

fn run_to_its_end(results: &Path) -> Output {
    let output = finish(run_command(results).spawn().unwrap());
    assert!(output.status.success(), "{}", text(&output));
    output
}

fn text(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    format!("{}\n{stdout}{stderr}", output.status)
}

fn signal(child: &Child, signal: &str) {
    let status = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

/// The results directories under `results/short/`.
fn directories(results: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(results.join("short")) else {
        return Vec::new();
    };
    let mut directories: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    directories.sort();
    directories
}

/// The whole lines of `trials.jsonl` so far.
fn records(directory: &Path) -> String {
    let text = fs::read_to_string(directory.join("trials.jsonl")).unwrap_or_default();
    let end = text.rfind('\n').map_or(0, |newline| newline + 1);
    text[..end].to_owned()
}

/// How many block records say that a block was measured to its end.
fn blocks_measured(records: &str) -> Vec<u64> {
    records
        .lines()
        .filter(|line| line.contains(r#""record":"block""#))
        .map(|line| {
            let rest = line.split(r#""block":"#).last().unwrap();
            rest.split(|c: char| !c.is_ascii_digit())
                .next()
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect()
}

/// Namespaces of runs that are gone; others may be measuring on this machine.
fn leftovers() -> Vec<String> {
    let Ok(entries) = fs::read_dir("/run/netns") else {
        return Vec::new();
    };
    let is_left_over = |name: &String| {
        let pid = name
            .strip_prefix("fwdlab-")
            .and_then(|rest| rest.split('-').next());
        pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists())
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(is_left_over)
        .collect()
}

fn assert_complete(directory: &Path, moment: &str) {
    let records = records(directory);
    let mut blocks = blocks_measured(&records);
    blocks.sort_unstable();
    blocks.dedup();
    assert_eq!(
        blocks,
        (1..=BLOCKS as u64).collect::<Vec<_>>(),
        "{moment}: {records}"
    );
    for name in [
        "no-packet-filter",
        "packet-filter-none",
        "packet-filter-conntrack",
    ] {
        let path = directory.join(format!("{name}.inet.pps"));
        if let Ok(observations) = fs::read_to_string(path) {
            assert_eq!(observations.lines().count(), BLOCKS, "{moment}");
        }
    }
    let observations = fs::read_dir(directory)
        .unwrap()
        .filter(|entry| {
            entry
                .as_ref()
                .unwrap()
                .path()
                .extension()
                .is_some_and(|e| e == "pps")
        })
        .count();
    assert_eq!(observations, VARIANTS, "{moment}");
    assert!(directory.join("README.md").is_file(), "{moment}");
}

/// A draw that is the same in every run of this test: moments in milliseconds.
fn moments(count: usize) -> impl Iterator<Item = u64> {
    let mut state = 0x5eed_u64;
    (0..count).map(move |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % RUN_MS
    })
}

#[test]
fn a_run_killed_at_any_moment_goes_on_to_the_same_plan() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let soaks = std::env::var_os("FWDLAB_SOAK").is_some();
    let kills = if soaks { 200 } else { 20 };
    for moment_ms in moments(kills) {
        let moment = format!("killed after {moment_ms} ms");
        let scratch = tempfile::tempdir().unwrap();
        let mut child = run_command(scratch.path()).spawn().unwrap();
        sleep(Duration::from_millis(moment_ms));
        let ended_before = child.try_wait().unwrap().is_some();
        let _ = child.kill();
        let output = finish(child);
        assert!(
            if ended_before {
                output.status.success()
            } else {
                output.status.signal() == Some(9)
            },
            "{moment}: {}",
            text(&output)
        );

        let before = directories(scratch.path());
        let (records_before, plan_before) =
            before.first().map_or_else(Default::default, |directory| {
                (
                    records(directory),
                    fs::read(directory.join("plan.json")).ok(),
                )
            });
        if !ended_before {
            run_to_its_end(scratch.path());
        }
        let after = directories(scratch.path());
        assert_eq!(after.len(), 1, "{moment}: the same directory is continued");
        assert!(
            records(&after[0]).starts_with(&records_before),
            "{moment}: nothing is lost"
        );
        if let Some(plan) = plan_before {
            assert_eq!(
                plan,
                fs::read(after[0].join("plan.json")).unwrap(),
                "{moment}"
            );
        }
        assert_complete(&after[0], &moment);
        assert_eq!(leftovers(), Vec::<String>::new(), "{moment}");
    }
}

#[test]
fn one_interrupt_finishes_the_block_and_two_stop_now() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    for interrupts in [1, 2] {
        let scratch = tempfile::tempdir().unwrap();
        let child = run_command(scratch.path()).spawn().unwrap();
        wait_for(|| {
            directories(scratch.path())
                .first()
                .is_some_and(|directory| !records(directory).is_empty())
        });
        for _ in 0..interrupts {
            signal(&child, "-INT");
            sleep(Duration::from_millis(50));
        }
        let output = finish(child);
        assert_eq!(output.status.code(), Some(130), "{}", text(&output));
        assert!(
            text(&output).contains("fwdlab run"),
            "it says how to go on: {}",
            text(&output)
        );
        assert_eq!(leftovers(), Vec::<String>::new());
        run_to_its_end(scratch.path());
        let directories = directories(scratch.path());
        assert_eq!(directories.len(), 1);
        assert_complete(&directories[0], &format!("{interrupts} interrupts"));
    }
}

#[test]
fn a_second_run_on_a_live_directory_is_refused() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let scratch = tempfile::tempdir().unwrap();
    let child = run_command(scratch.path()).spawn().unwrap();
    wait_for(|| !directories(scratch.path()).is_empty());
    let second = finish(run_command(scratch.path()).spawn().unwrap());
    assert_eq!(second.status.code(), Some(2), "{}", text(&second));
    assert!(
        text(&second).contains(&child.id().to_string()),
        "{}",
        text(&second)
    );
    let first = finish(child);
    assert!(first.status.success(), "{}", text(&first));
    let directories = directories(scratch.path());
    assert_eq!(directories.len(), 1);
    assert_complete(&directories[0], "beside a second run");
}

#[test]
fn a_full_disk_is_told_and_the_run_goes_on_when_there_is_room() {
    testkit::require_root!();
    testkit::require_tool!("nft", "mount");
    let scratch = tempfile::tempdir().unwrap();
    let small = Tmpfs::mount(scratch.path(), "48k");
    let output = finish(run_command(scratch.path()).spawn().unwrap());
    assert_ne!(output.status.code(), Some(0), "{}", text(&output));
    assert!(
        text(&output).contains("No space left on device"),
        "{}",
        text(&output)
    );
    assert_eq!(leftovers(), Vec::<String>::new());
    let before = directories(scratch.path());
    let records_before = before
        .first()
        .map(|directory| records(directory))
        .unwrap_or_default();
    small.resize("8m");
    run_to_its_end(scratch.path());
    let after = directories(scratch.path());
    let complete = after.last().unwrap();
    assert!(
        records(complete).starts_with(&records_before),
        "nothing is lost"
    );
    assert_complete(complete, "after a full disk");
}

fn wait_for(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(RUN_S_MAX);
    while !condition() {
        assert!(Instant::now() < deadline, "it did not come to that");
        sleep(Duration::from_millis(10));
    }
}

/// A small file system of its own, gone when its value goes.
struct Tmpfs<'a>(&'a Path);

impl<'a> Tmpfs<'a> {
    fn mount(path: &'a Path, size: &str) -> Self {
        mount(
            &["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"],
            path,
        );
        Self(path)
    }

    fn resize(&self, size: &str) {
        mount(&["-o", &format!("remount,size={size}")], self.0);
    }
}

fn mount(arguments: &[&str], path: &Path) {
    let status = Command::new("mount")
        .args(arguments)
        .arg(path)
        .status()
        .unwrap();
    assert!(status.success());
}

impl Drop for Tmpfs<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}
