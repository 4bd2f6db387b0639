//! A run that is killed or interrupted loses at most its running block, leaves the host as it was, and
//! goes on where it was.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod shared;

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_archive::Attempt;
use fwdlab_model::InvalidReason;
use fwdlab_model::record::Fate;
use shared::{
    Host, assert_complete, block_records, directories, finish, has_a_block, leftovers, records,
    storm, wait_for_child,
};
use testkit::{cases, text};

/// The experiment that is interrupted, and its blocks.
const EXPERIMENT: &str = "short";
const BLOCKS: usize = 6;

/// The one that is killed, often: two variants, three blocks of one round.
const KILLED: &str = "smallest";
const KILLED_BLOCKS: usize = 3;

/// The one that is stopped and continued: the same with long slices.
const STOPPED: &str = "long-slices";
const STOPPED_SLICE_S: f64 = 0.4;

/// Runs of a soak that are stopped twice each.
const STOPPED_RUNS: usize = 30;
const STOPPED_SAMPLE: usize = 4;

/// Runs of a soak that are left alone, of [`EXPERIMENT`].
const UNDISTURBED_RUNS: usize = 50;
const UNDISTURBED_SAMPLE: usize = 2;

/// Kills of a soak; the ordinary tests take a sample of them.
const KILLS: usize = 200;
const SAMPLE: usize = 8;

fn run_command(results: &Path) -> Command {
    shared::run_command(EXPERIMENT, results)
}

fn run_to_its_end(results: &Path) -> Output {
    testkit::succeed(&mut run_command(results))
}

/// A signal to a run that still lives.
fn signal(child: &Child, signal: &str) {
    testkit::signal(child.id(), signal);
}

/// The moment of the n-th kill, as a part of a run; the same in every run of this test.
fn moment(number: usize) -> f64 {
    let mut state = 0x5eed_u64;
    for _ in 0..number {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
    }
    f64::from(u32::try_from(state >> 32).unwrap()) / 2.0_f64.powi(32)
}

fn killed_command(results: &Path) -> Command {
    shared::run_command(KILLED, results)
}

/// What a run was doing when it was killed, by what is in its directory.
fn phase(results: &Path) -> String {
    let Some(directory) = directories(results, KILLED).pop() else {
        return "killed before there were results".into();
    };
    match block_records(&records(&directory)).len() {
        _ if directory.join("README.md").is_file() => "killed after the report".into(),
        _ if directory.join("finished.json").is_file() => "killed while reporting".into(),
        0 if !directory.join("sessions/1.json").is_file() => "killed before its session".into(),
        blocks if blocks < KILLED_BLOCKS => {
            format!("killed in block {} of {KILLED_BLOCKS}", blocks + 1)
        }
        _ => "killed after its last block".into(),
    }
}

#[test]
fn a_run_killed_at_any_moment_goes_on_to_the_same_plan() {
    testkit::require_root!();
    testkit::require_tool!("nft", "ip");
    // The first run of all is slower than those after it.
    let length = || {
        let scratch = tempfile::tempdir().unwrap();
        let start = Instant::now();
        testkit::succeed(&mut killed_command(scratch.path()));
        start.elapsed()
    };
    let whole = length().min(length());

    let host = Host::now();
    assert!(host.sysctls() > 100, "{} sysctls", host.sysctls());
    storm("kill", &cases(KILLS, SAMPLE), |number| {
        let after = whole.mul_f64(moment(number));
        kill_and_go_on(after, &host)
    });
}

/// Tells the phase in which the run was killed.
fn kill_and_go_on(after: Duration, host: &Host) -> String {
    let moment = format!("killed after {after:?}");
    let scratch = tempfile::tempdir().unwrap();
    let mut child = killed_command(scratch.path()).spawn().unwrap();
    sleep(after);
    let _ = child.kill();
    let output = finish(child);
    // Whether the kill came in time is told by how the run ended, as it may end just before its kill.
    let phase = if output.status.signal() == Some(9) {
        phase(scratch.path())
    } else {
        assert!(output.status.success(), "{moment}: {}", text(&output));
        "ended before it was killed".into()
    };

    let before = directories(scratch.path(), KILLED).pop();
    if let Some(directory) = &before {
        assert_sound(directory, &moment);
    }
    let records_before = before.as_deref().map(records).unwrap_or_default();
    let plan_before = before.and_then(|directory| fs::read(directory.join("plan.json")).ok());
    let is_finished = directories(scratch.path(), KILLED)
        .iter()
        .any(|directory| directory.join("finished.json").is_file());
    if is_finished {
        // All is measured: the report is made again, and the next run puts the host back.
        let directory = directories(scratch.path(), KILLED).pop().unwrap();
        testkit::succeed(shared::fwdlab(&["report"]).arg(directory));
        testkit::succeed(&mut shared::fwdlab(&["restore"]));
    } else {
        testkit::succeed(&mut killed_command(scratch.path()));
    }
    let after = directories(scratch.path(), KILLED);
    assert_eq!(after.len(), 1, "{moment}: the same directory is continued");
    assert!(
        records(&after[0]).starts_with(&records_before),
        "{moment}: nothing is lost"
    );
    if let Some(plan) = plan_before {
        let plan_after = fs::read(after[0].join("plan.json")).unwrap();
        assert_eq!(plan, plan_after, "{moment}");
    }
    assert_complete(&after[0], KILLED_BLOCKS, &moment);
    assert_sound(&after[0], &moment);
    assert_eq!(leftovers(), Vec::<String>::new(), "{moment}");
    host.assert_unchanged(&moment);
    phase
}

/// Proves that lint finds neither an error nor a warning in the records.
fn assert_sound(directory: &Path, moment: &str) {
    let mut lint = shared::fwdlab(&["lint", "--only", "L1,L2,L9", "--fail-on", "warning"]);
    let output = lint.arg(directory).output().unwrap();
    assert!(output.status.success(), "{moment}: {}", text(&output));
}

/// Ctrl-Z, a frozen cgroup, a paused virtual machine: time in which nothing was read is no time of a measurement.
#[test]
fn no_accepted_slice_holds_a_time_in_which_the_run_was_stopped() {
    testkit::require_root!();
    testkit::require_tool!("nft", "ip");
    let stop = Duration::from_millis(300);
    let stalled = std::cell::Cell::new(0);
    let numbers = cases(STOPPED_RUNS, STOPPED_SAMPLE);
    storm("stop", &numbers, |number| {
        let scratch = tempfile::tempdir().unwrap();
        let mut child = shared::run_command(STOPPED, scratch.path())
            .spawn()
            .unwrap();
        let is_running = |child: &mut Child| child.try_wait().unwrap().is_none();
        for part in [moment(2 * number), moment(2 * number + 1)] {
            sleep(Duration::from_secs_f64(0.5 + 1.5 * part));
            if is_running(&mut child) {
                signal(&child, "-STOP");
                sleep(stop);
                signal(&child, "-CONT");
            }
        }
        let output = finish(child);
        assert!(output.status.success(), "{}", text(&output));
        let directory = directories(scratch.path(), STOPPED).pop().unwrap();
        let loaded = fwdlab_archive::Results::load(&directory).unwrap();
        let longest_s = STOPPED_SLICE_S + fwdlab_model::record::stall_bound_s(STOPPED_SLICE_S);
        for slice in loaded.accepted().iter().flat_map(|attempt| &attempt.slices) {
            assert!(slice.time_s < longest_s, "{} s", slice.time_s);
        }
        let reasons = loaded.trials().flat_map(|(trial, _)| &trial.invalid);
        let is_stall = |reason: &&InvalidReason| matches!(reason, InvalidReason::Stalled { .. });
        match reasons.filter(is_stall).count() {
            0 => "between slices".into(),
            found => {
                stalled.set(stalled.get() + found);
                "in a slice, which is invalid".into()
            }
        }
    });
    // A few stops may all fall between slices.
    let is_enough = numbers.len() >= STOPPED_SAMPLE;
    assert!(!is_enough || stalled.get() > 0, "no stop met a slice");
}

/// What tells that something stood still is of no use where it tells so of every machine: undisturbed runs keep their
/// blocks.
#[test]
fn undisturbed_runs_keep_their_blocks() {
    testkit::require_root!();
    testkit::require_tool!("nft", "ip");
    let (blocks, lost) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let numbers = cases(UNDISTURBED_RUNS, UNDISTURBED_SAMPLE);
    storm("run", &numbers, |_| {
        let scratch = tempfile::tempdir().unwrap();
        run_to_its_end(scratch.path());
        let directory = directories(scratch.path(), EXPERIMENT).pop().unwrap();
        let loaded = fwdlab_archive::Results::load(&directory).unwrap();
        let is_invalid = |attempt: &&Attempt| attempt.fate == Fate::Invalid;
        let invalid = loaded.attempts.iter().filter(is_invalid).count();
        blocks.set(blocks.get() + loaded.attempts.len());
        lost.set(lost.get() + invalid);
        let trials = loaded.attempts.iter().flat_map(|attempt| &attempt.trials);
        let reasons = trials.flat_map(|trial| &trial.invalid);
        let reasons: Vec<String> = reasons.map(ToString::to_string).collect();
        format!("{invalid} blocks lost {}", reasons.join("; "))
    });
    println!("{} of {} blocks lost", lost.get(), blocks.get());
    // A few runs beside other work say little of what an undisturbed machine does.
    let is_enough = numbers.len() >= UNDISTURBED_RUNS;
    let bound = if is_enough {
        blocks.get() / 100
    } else {
        blocks.get() / 2
    };
    assert!(
        lost.get() <= bound,
        "{} of {} blocks lost",
        lost.get(),
        blocks.get()
    );
}

#[test]
fn one_interrupt_finishes_the_block_and_two_stop_now() {
    testkit::require_root!();
    testkit::require_tool!("nft", "ip");
    let host = Host::now();
    for interrupts in [1, 2] {
        let scratch = tempfile::tempdir().unwrap();
        let child = run_command(scratch.path()).spawn().unwrap();
        let child = wait_for_child("a block is measured", child, || {
            has_a_block(scratch.path(), EXPERIMENT)
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
        host.assert_unchanged(&format!("{interrupts} interrupts"));
        run_to_its_end(scratch.path());
        let directories = directories(scratch.path(), EXPERIMENT);
        assert_eq!(directories.len(), 1);
        assert_complete(&directories[0], BLOCKS, &format!("{interrupts} interrupts"));
    }
}

#[test]
fn a_second_run_on_a_live_directory_is_refused() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let scratch = tempfile::tempdir().unwrap();
    let child = run_command(scratch.path()).spawn().unwrap();
    let child = wait_for_child("its directory is there", child, || {
        !directories(scratch.path(), EXPERIMENT).is_empty()
    });
    let second = finish(run_command(scratch.path()).spawn().unwrap());
    assert_eq!(second.status.code(), Some(3), "{}", text(&second));
    let holder = format!("(process {}) is already measuring", child.id());
    assert!(text(&second).contains(&holder), "{}", text(&second));
    let first = finish(child);
    assert!(first.status.success(), "{}", text(&first));
    let directories = directories(scratch.path(), EXPERIMENT);
    assert_eq!(directories.len(), 1);
    assert_complete(&directories[0], BLOCKS, "beside a second run");
}
