//! What may happen around a run: the clock jumps, the disk is full or read-only, an interface goes, the
//! generator ends. It says so, leaves the host as it was, and goes on or can be continued.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod shared;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use shared::{
    Host, Preload, assert_complete, block_records, directories, finish, has_a_block, leftovers,
    namespaces_of, records, wait_for_child,
};
use testkit::{succeed, text};

/// Long enough to be met in its middle.
const EXPERIMENT: &str = "short";
const BLOCKS: usize = 6;
const HOURS_3_S: i64 = 3 * 3600;

fn run_command(results: &Path) -> Command {
    shared::run_command(EXPERIMENT, results)
}

fn only_directory(results: &Path) -> PathBuf {
    let mut directories = directories(results, EXPERIMENT);
    assert_eq!(directories.len(), 1, "{directories:?}");
    directories.pop().unwrap()
}

/// Proves that a run ended with a code and told why, and that nothing is left of it.
fn assert_failed(output: &Output, code: i32, why: &[&str]) {
    assert_eq!(output.status.code(), Some(code), "{}", text(output));
    let stderr = String::from_utf8_lossy(&output.stderr);
    for part in why {
        assert!(stderr.contains(part), "{part:?} is not in {stderr}");
    }
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert_eq!(leftovers(), Vec::<String>::new());
}

/// Proves that the same command goes on in the same directory, to its end, with nothing lost.
fn assert_goes_on(results: &Path, moment: &str) {
    let records_before = records(&only_directory(results));
    succeed(&mut run_command(results));
    let directory = only_directory(results);
    assert!(records(&directory).starts_with(&records_before), "{moment}");
    assert_complete(&directory, BLOCKS, moment);
}

/// A moment in UTC as seconds since 1970.
fn seconds(utc: &Value) -> i64 {
    let output = succeed(Command::new("date").args(["--date", utc.as_str().unwrap(), "+%s"]));
    String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .unwrap()
}

/// Whether more frames came in at an interface than the probes send.
fn is_loaded(shown: &Output) -> bool {
    const PROBES_MAX: u64 = 10_000;
    let links: Value = serde_json::from_slice(&shown.stdout).unwrap_or_default();
    let frames = &links[0]["stats64"]["rx"]["packets"];
    frames.as_u64().is_some_and(|frames| frames > PROBES_MAX)
}

/// Proves that no time that was measured, or told while measuring, went with the wall clock.
fn assert_times_are_sane(directory: &Path, output: &Output) {
    for record in records(directory).lines() {
        let record: Value = serde_json::from_str(record).unwrap();
        for field in ["measured_s", "set_up_s", "switch_s"] {
            let value = &record[field];
            assert!(
                value.is_null() || (0.0..60.0).contains(&value.as_f64().unwrap()),
                "{record}"
            );
        }
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let told: Vec<_> = stderr
        .lines()
        .filter(|line| line.ends_with(" left"))
        .collect();
    assert!(told.len() >= BLOCKS - 1, "{stderr}");
    for line in told {
        assert!(!line.contains(" h "), "hours left of a few seconds: {line}");
    }
}

#[test]
fn a_clock_that_jumps_inside_a_run_moves_nothing_but_time_stamps() {
    testkit::require_root!();
    testkit::require_tool!("nft", "cc", "date");
    let preload = Preload::build("step_clock");
    for step_s in [-HOURS_3_S, HOURS_3_S] {
        let scratch = tempfile::tempdir().unwrap();
        let mut command = run_command(scratch.path());
        preload.put_before(&mut command);
        let output = succeed(
            command
                .env("CLOCK_STEP_S", step_s.to_string())
                .env("CLOCK_STEP_AFTER", "25"),
        );
        let directory = only_directory(scratch.path());
        assert_complete(&directory, BLOCKS, "after a jump of the clock");
        assert_times_are_sane(&directory, &output);
        let blocks = block_records(&records(&directory));
        let numbers: Vec<_> = blocks.iter().map(|block| &block["block"]).collect();
        assert!(numbers.is_sorted_by_key(|number| number.as_u64()));
        // The jump was inside the run.
        let between = seconds(&blocks[blocks.len() - 1]["start"]) - seconds(&blocks[0]["start"]);
        assert!((between - step_s).abs() < 600, "{between} s");
    }
}

#[test]
fn a_run_is_continued_whatever_the_clock_says_since() {
    testkit::require_root!();
    testkit::require_tool!("nft", "cc", "date");
    let preload = Preload::build("step_clock");
    let host = Host::now();
    for step_s in [-HOURS_3_S, HOURS_3_S] {
        let scratch = tempfile::tempdir().unwrap();
        let child = run_command(scratch.path()).spawn().unwrap();
        let mut child = wait_for_child("a block is measured", child, || {
            has_a_block(scratch.path(), EXPERIMENT)
        });
        child.kill().unwrap();
        finish(child);
        let directory = only_directory(scratch.path());
        let records_before = records(&directory);

        let mut command = run_command(scratch.path());
        preload.put_before(&mut command);
        let output = succeed(command.env("CLOCK_STEP_S", step_s.to_string()));
        assert_eq!(only_directory(scratch.path()), directory);
        assert!(records(&directory).starts_with(&records_before));
        assert_complete(&directory, BLOCKS, "on another day");
        assert_times_are_sane(&directory, &output);
        let start = |session: u32| {
            let path = directory.join(format!("sessions/{session}.json"));
            let session: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
            seconds(&session["start"])
        };
        let between = start(2) - start(1);
        assert!((between - step_s).abs() < 600, "{between} s");
        host.assert_unchanged("on another day");
    }
}

#[test]
fn a_full_disk_is_told_and_the_run_goes_on_when_there_is_room() {
    testkit::require_root!();
    testkit::require_tool!("nft", "ip", "mount", "umount");
    let host = Host::now();
    let scratch = tempfile::tempdir().unwrap();
    let small = Mount::new(&["-t", "tmpfs", "-o", "size=48k", "tmpfs"], scratch.path());
    let output = run_command(scratch.path()).output().unwrap();
    let why = [
        "No space left on device",
        "the disk is full",
        "run the same command",
    ];
    assert_failed(&output, 2, &why);
    host.assert_unchanged("on a full disk");
    small.again("remount,size=8m");
    // Where there was no room for as much as the experiment itself, there is no directory yet.
    let records_before = directories(scratch.path(), EXPERIMENT)
        .first()
        .map(|directory| records(directory))
        .unwrap_or_default();
    succeed(&mut run_command(scratch.path()));
    let directory = only_directory(scratch.path());
    assert!(records(&directory).starts_with(&records_before));
    assert_complete(&directory, BLOCKS, "after a full disk");
}

#[test]
fn a_read_only_folder_is_told_before_anything_is_measured() {
    testkit::require_root!();
    testkit::require_tool!("nft", "ip", "mount", "umount");
    let host = Host::now();
    let scratch = tempfile::tempdir().unwrap();
    let results = scratch.path().join("results");
    fs::create_dir(&results).unwrap();
    let disk = Mount::new(&["-t", "tmpfs", "-o", "ro", "tmpfs"], &results);
    let output = run_command(&results).output().unwrap();
    let why = ["Read-only file system", "--results"];
    assert_failed(&output, 2, &why);
    host.assert_unchanged("on a read-only disk");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!stderr.contains("block 1 of"), "{stderr}");

    disk.again("remount,rw");
    succeed(&mut run_command(&results));
    assert_complete(&only_directory(&results), BLOCKS, "when it can be written");
}

#[test]
fn a_folder_that_turns_read_only_ends_the_run_which_goes_on_when_it_is_writable() {
    testkit::require_root!();
    testkit::require_tool!("nft", "ip", "mount", "umount");
    let host = Host::now();
    let scratch = tempfile::tempdir().unwrap();
    let child = run_command(scratch.path()).spawn().unwrap();
    let child = wait_for_child("a block is measured", child, || {
        has_a_block(scratch.path(), EXPERIMENT)
    });
    let directory = only_directory(scratch.path());
    // Made read-only aside, where nothing is open for writing, and then laid over the directory.
    let aside = tempfile::tempdir().unwrap();
    let read_only = Mount::new(&["--bind", directory.to_str().unwrap()], aside.path());
    read_only.again("remount,bind,ro");
    let over = Mount::new(&["--bind", aside.path().to_str().unwrap()], &directory);
    let output = finish(child);
    let why = ["Read-only file system", "goes on where it stopped"];
    assert_failed(&output, 2, &why);
    drop(over);
    host.assert_unchanged("on a disk that turned read-only");
    assert_goes_on(scratch.path(), "after a read-only disk");
}

#[test]
fn an_interface_that_is_removed_under_load_ends_the_run_which_can_be_continued() {
    testkit::require_root!();
    testkit::require_tool!("nft", "ip");
    let host = Host::now();
    let scratch = tempfile::tempdir().unwrap();
    let child = run_command(scratch.path()).spawn().unwrap();
    let pid = child.id();
    let child = wait_for_child("a block is measured", child, || {
        has_a_block(scratch.path(), EXPERIMENT)
    });
    let child = wait_for_child("it is removed", child, || {
        let namespaces = namespaces_of(pid);
        let dut = namespaces.iter().find(|name| name.ends_with("-dut"));
        dut.is_some_and(|dut| {
            let interface = |action: &[&str]| {
                let mut ip = Command::new("ip");
                ip.args(["-n", dut]).args(action).arg("dut-in");
                ip.output().unwrap()
            };
            // Between two blocks there is none, and before a block's rounds there are but probes.
            is_loaded(&interface(&["-json", "-stats", "link", "show"]))
                && interface(&["link", "delete"]).status.success()
        })
    });
    let output = finish(child);
    assert_failed(&output, 3, &["error: block "]);
    host.assert_unchanged("without an interface");
    assert_goes_on(scratch.path(), "after an interface was removed");
}

/// Measures to the end with something done to the load of the second generator, after which nothing is left behind.
///
/// Shape: the results directory, and what the run said on standard error.
fn with_a_spoilt_load(scratch: &Path, how: &str) -> (PathBuf, String) {
    let preload = Preload::build("fail_nth");
    let host = Host::now();
    let mut command = run_command(scratch);
    preload.put_before(&mut command);
    let output = succeed(command.env(how, "2"));
    let directory = only_directory(scratch);
    assert_complete(&directory, BLOCKS, how);
    host.assert_unchanged(how);
    assert_eq!(leftovers(), Vec::<String>::new());
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    (directory, stderr)
}

#[test]
fn a_generator_that_ends_by_itself_makes_its_block_invalid_which_is_repeated() {
    testkit::require_root!();
    testkit::require_tool!("nft", "ip", "cc");
    let scratch = tempfile::tempdir().unwrap();
    let (directory, stderr) = with_a_spoilt_load(scratch.path(), "FAIL_LOAD");
    let told = "the generator stopped: running the generator: ";
    assert!(stderr.contains(told), "{stderr}");
    let trials: Vec<Value> = records(&directory)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|record: &Value| record["record"] == "trial" && record["block"] == 2)
        .collect();
    let stopped = |trial: &Value| trial["invalid"].to_string().contains("generator-stopped");
    for trial in &trials {
        assert_eq!(stopped(trial), trial["attempt"] == 1, "{trial}");
    }
    assert!(trials.iter().any(|trial| trial["attempt"] == 2));
}

#[test]
fn a_generator_that_cannot_be_held_has_its_block_begun_anew() {
    testkit::require_root!();
    testkit::require_tool!("nft", "ip", "cc");
    let scratch = tempfile::tempdir().unwrap();
    let (directory, stderr) = with_a_spoilt_load(scratch.path(), "SLOW_LOAD");
    let told = "others took the CPU of the load: the generator still sent 10 s after fwdlab held it; repeating this block";
    assert!(stderr.contains(told), "{stderr}");
    // Nothing of what was begun was written down, nor counted as an attempt.
    let mut attempts = BTreeMap::new();
    for block in block_records(&records(&directory)) {
        let last = attempts.entry(block["block"].as_u64()).or_insert(0);
        *last += 1;
        assert_eq!(block["attempt"], *last, "{block}");
    }
}

/// A file system or a folder over a folder, gone when its value goes.
struct Mount<'a>(&'a Path);

impl<'a> Mount<'a> {
    fn new(arguments: &[&str], path: &'a Path) -> Self {
        succeed(Command::new("mount").args(arguments).arg(path));
        Self(path)
    }

    /// Changes its options.
    fn again(&self, options: &str) {
        succeed(Command::new("mount").args(["-o", options]).arg(self.0));
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}
