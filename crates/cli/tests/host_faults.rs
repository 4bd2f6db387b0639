//! Whichever operation on a host fails, and whenever a run on hosts is killed, the DUT is put back and the run goes
//! on to the same plan.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod shared;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use shared::rig::{Rig, assert_as_before};
use shared::{cases, finish, storm};
use testkit::{Host, text};

/// How many of the operations fail in the ordinary tests; a soak lets each of them fail.
const SAMPLE: usize = 3;
/// How many runs are killed in the ordinary tests.
const KILLS: usize = 2;
/// As few as there can be at the confidence that is asked for.
const BLOCKS: usize = 3;

/// Stands for ssh: counts how often it is started, and lets the n-th fail in one of several ways.
const SSH: &str = r#"#!/bin/sh
exec 9>>"$OPERATIONS"
flock 9
echo >&9
number=$(wc -l < "$OPERATIONS")
exec 9>&-
last=$((FAIL_NTH + FAIL_TIMES - 1))
if [ "$number" -ge "$FAIL_NTH" ] && [ "$number" -le "$last" ]; then
    case $FAIL_HOW in
        after)
            # It was done, and nobody is told. What holds the connection has no end of its own.
            case " $* " in *" -N "*) ;; *) "$SSH" "$@" ;; esac
            ;;
    esac
    echo "Connection reset by peer" >&2
    exit 255
fi
exec "$SSH" "$@"
"#;

/// How an operation fails.
#[derive(Clone, Copy)]
struct Fault {
    /// From 1; none where it is 0.
    nth: usize,
    /// Before it is done, or after.
    how: &'static str,
    /// How many in a row: once is tried again, many are not.
    times: usize,
}

const NONE: Fault = Fault {
    nth: 0,
    how: "before",
    times: 0,
};

/// A rig with a short experiment and the program that stands for ssh.
fn short_rig() -> Rig {
    let rig = Rig::start();
    rig.change(
        "hosts.toml",
        "blocks = 6",
        &format!("blocks = {BLOCKS}\nconfidence_percent = 60"),
    );
    rig.change("hosts.toml", "slice_ms = 300", "slice_ms = 100");
    let folder = rig.path("bin");
    fs::create_dir(&folder).unwrap();
    let stand_in = folder.join("ssh");
    fs::write(&stand_in, SSH).unwrap();
    fs::set_permissions(&stand_in, Permissions::from_mode(0o755)).unwrap();
    rig
}

/// The run with a fault, and how many operations it had.
fn run(rig: &Rig, results: &Path, fault: Fault) -> (Output, usize) {
    let operations = rig.path("operations");
    let _ = fs::remove_file(&operations);
    let path = format!(
        "{}:{}",
        rig.path("bin").display(),
        std::env::var("PATH").unwrap()
    );
    let output = run_into(rig, results)
        .env("PATH", path)
        .env("SSH", "/usr/bin/ssh")
        .env("OPERATIONS", &operations)
        .env("FAIL_NTH", fault.nth.to_string())
        .env("FAIL_TIMES", fault.times.to_string())
        .env("FAIL_HOW", fault.how)
        .output()
        .unwrap();
    let lines = fs::read_to_string(&operations).unwrap_or_default();
    (output, lines.lines().count())
}

fn run_into(rig: &Rig, results: &Path) -> Command {
    let mut command = rig.fwdlab(&["run"]);
    command
        .arg(rig.path("hosts.toml"))
        .arg("--results")
        .arg(results)
        .args(["--seed", "1"]);
    command
}

fn directory(results: &Path) -> Option<PathBuf> {
    shared::directories(results, shared::rig::EXPERIMENT).pop()
}

/// Runs until all is measured, at most twice, and judges what is left.
fn go_on_and_judge(rig: &Rig, results: &Path, before: &BTreeMap<&'static str, String>, what: &str) {
    let plan = |path: PathBuf| fs::read(path.join("plan.json")).ok();
    let planned = directory(results).and_then(plan);
    let is_finished = |results: &Path| {
        directory(results).is_some_and(|path| path.join("finished.json").is_file())
    };
    if !is_finished(results) {
        let output = run_into(rig, results).output().unwrap();
        assert!(is_measured(&output), "{what}: {}", text(&output));
    }
    let found = directory(results).unwrap();
    if let Some(planned) = planned {
        assert_eq!(plan(found.clone()), Some(planned), "{what}");
    }
    let blocks = shared::block_records(&shared::records(&found));
    let measured: BTreeSet<u64> = blocks
        .iter()
        .filter_map(|block| block["block"].as_u64())
        .collect();
    assert_eq!(measured.len(), BLOCKS, "{what}: {measured:?}");
    assert!(is_finished(results), "{what}");
    let left = rig.fwdlab(&["restore", "--list"]).output().unwrap();
    let left = String::from_utf8_lossy(&left.stdout).into_owned();
    assert!(!left.contains("router"), "{what}: {left}");
    assert_as_before(rig, before);
}

/// Whether all was measured: on a busy machine blocks may stay invalid because their load was too low.
fn is_measured(output: &Output) -> bool {
    matches!(output.status.code(), Some(0 | 1))
}

#[test]
fn whichever_operation_on_a_host_fails_the_run_goes_on() {
    require_rig!();
    testkit::require_tool!("flock");
    let rig = short_rig();
    let before = rig.dut();
    let (output, all) = run(&rig, &rig.path("sound"), NONE);
    assert!(is_measured(&output), "{}", text(&output));
    assert!(all > 100, "{all} operations were seen");
    let numbers = cases(all, SAMPLE);
    storm("operation", &numbers, |nth| {
        // Each way in turn, so that a sample has all of them.
        let (how, times) = [("before", 1), ("after", 1), ("before", 12)][nth % 3];
        let what = format!("operation {nth} {how}, {times} times");
        let results = rig.path(&format!("operation-{nth}"));
        let (output, _) = run(&rig, &results, Fault { nth, how, times });
        let said = text(&output);
        assert!(!said.contains("panicked"), "{what}: {said}");
        assert!(
            is_measured(&output) || said.contains("error: "),
            "{what}: {said}"
        );
        go_on_and_judge(&rig, &results, &before, &what);
        testkit::wait_until("the tester's process ends", || !rig.has_tester());
        format!(
            "{how}, {times} times: {}",
            if is_measured(&output) {
                "all was measured"
            } else {
                "continued by the same command"
            }
        )
    });
}

#[test]
fn runs_on_hosts_that_are_killed_at_any_moment_go_on_to_the_same_plan() {
    require_rig!();
    let rig = short_rig();
    let before = rig.dut();
    // A run takes about ten seconds; a step of a golden ratio covers them evenly, however many there are.
    storm("kill", &cases(1000, KILLS), |number| {
        #[expect(clippy::cast_precision_loss, reason = "some hundred cases")]
        let moment = Duration::from_secs_f64((number as f64 * 0.618).fract() * 10.0);
        let what = format!("killed after {} ms", moment.as_millis());
        let results = rig.path(&format!("kill-{number}"));
        let mut child = run_into(&rig, &results).spawn().unwrap();
        thread::sleep(moment);
        // The program is a child of the one that entered its namespace, or has taken its place.
        child.kill().unwrap();
        finish(child);
        testkit::wait_until("the tester's process ends", || !rig.has_tester());
        let sent = rig.sent_frames();
        let restored = rig.fwdlab(&["restore"]).output().unwrap();
        assert_eq!(
            restored.status.code(),
            Some(0),
            "{what}: {}",
            text(&restored)
        );
        assert_as_before(&rig, &before);
        assert_eq!(rig.sent_frames(), sent, "{what}");
        go_on_and_judge(&rig, &results, &before, &what);
        testkit::wait_until("the tester's process ends", || !rig.has_tester());
        "put back and continued".to_owned()
    });
}

#[test]
fn a_control_plane_that_is_silent_costs_time_and_nothing_else() {
    require_rig!();
    let rig = short_rig();
    let before = rig.dut();
    // Seconds: a soak asks for a minute of both hosts.
    let silence = cases(60, 2);
    let (seconds, hosts) = match silence.as_slice() {
        [1, 60] => (3, [Host::Tester].as_slice()),
        asked => (*asked.last().unwrap(), Host::ALL.as_slice()),
    };
    for &host in hosts {
        let results = rig.path(&format!("silent-{}", host.ssh_name()));
        let child = run_into(&rig, &results).spawn().unwrap();
        let child = shared::wait_for_child("a block", child, || {
            directory(&results)
                .is_some_and(|path| !shared::block_records(&shared::records(&path)).is_empty())
        });
        rig.lab.silence(host, true);
        thread::sleep(Duration::from_secs(seconds as u64));
        rig.lab.silence(host, false);
        let output = finish(child);
        assert!(is_measured(&output), "{}", text(&output));
        // A process on a host that was silent may live on: nothing has told it that its run is gone. It sends
        // nothing, and lets go of its port by itself.
        go_on_and_judge(&rig, &results, &before, "a silence");
        let frames = rig.sent_frames();
        thread::sleep(Duration::from_secs(2));
        assert_eq!(rig.sent_frames(), frames);
    }
}

#[test]
fn a_load_whose_run_stands_still_ends_by_itself() {
    require_rig!();
    let rig = short_rig();
    rig.change("hosts.toml", "slice_ms = 100", "slice_ms = 5000");
    let before = rig.dut();
    let results = rig.path("standing-still");
    let child = run_into(&rig, &results).spawn().unwrap();
    let frames = rig.sent_frames();
    // More than probes: the load of a slice.
    let child = shared::wait_for_child("a load", child, || rig.sent_frames() > frames + 5000);
    // The program has taken the place of the one that entered its namespace.
    let signal =
        |name: &str| testkit::succeed(Command::new("kill").args([name, &child.id().to_string()]));
    signal("-STOP");
    testkit::wait_until("the load ends by itself", || {
        let frames = rig.sent_frames();
        thread::sleep(Duration::from_secs(1));
        rig.sent_frames() == frames
    });
    signal("-CONT");
    let output = finish(child);
    assert!(is_measured(&output), "{}", text(&output));
    assert!(text(&output).contains("begun anew"), "{}", text(&output));
    go_on_and_judge(&rig, &results, &before, "a run that stood still");
}
