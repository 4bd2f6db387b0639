//! Whichever operation on a host fails, and whenever a run on hosts is killed, the DUT is put back and the run goes
//! on to the same plan.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use crate::rig::{BLOCKS, Rig, assert_as_before, vary_the_command_line};
use crate::shared::{self, data, finish, storm_in_lanes};
use testkit::{Host, Reboots, cases, is_soak, text};

/// How many of the cases of operations are gone through in the ordinary tests; a soak goes through all.
const SAMPLE: usize = 2;
/// How many runs are killed in the ordinary tests.
const KILLS: usize = 2;
/// How many restores fail in the ordinary tests.
const RESTORES: usize = 2;
/// A run's first operation behind those that open the lab, or a little earlier.
const OPENING: usize = 22;
/// More than any run has, however often its blocks are begun anew.
const OPERATIONS_MAX: usize = 2500;
/// How many operations are done twice: more than a block has.
const TWICE: usize = 36;
/// How long a host may be silent.
const SILENCE_S_MAX: usize = 290;
/// How long a host is down that boots.
const DOWNTIME: Duration = Duration::from_millis(300);
/// Rigs that go through a storm at the same time: much of it is waiting.
const LANES: usize = 3;
/// The same where hosts that boot, or were out of reach, are waited for.
const OPERATIONS_LANES: usize = 6;

/// What these tests need; a test goes no further where it is missing.
macro_rules! require_faults {
    () => {
        require_rig!();
        testkit::require_tool!("cc");
    };
}

/// How operations fail.
const WAYS: [Way; 3] = [
    Way {
        how: "before",
        times: 1,
    },
    Way {
        how: "after",
        times: 1,
    },
    Way {
        how: "before",
        times: 12,
    },
];

/// How an operation fails.
#[derive(Clone, Copy)]
struct Way {
    /// Before it is done, or after.
    how: &'static str,
    /// How many in a row: once is tried again, many are not.
    times: usize,
}

/// An operation that fails.
#[derive(Clone, Copy)]
struct Fault {
    /// From 1.
    nth: usize,
    way: Way,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { nth, way } = self;
        write!(f, "operation {nth} {}, {} times", way.how, way.times)
    }
}

/// A rig with a short experiment, the program that stands for ssh, and how its DUT was.
struct Short {
    rig: Rig,
    before: BTreeMap<&'static str, String>,
    /// The command line that was booted at first, and what serves reboots; none where nothing is booted.
    boots: Option<(String, Reboots)>,
}

impl Short {
    fn start() -> Self {
        Self::of(Rig::start())
    }

    /// The same, with an experiment that boots its DUT for every trial.
    fn start_booting() -> Self {
        let rig = Rig::start();
        vary_the_command_line(&rig);
        let reboots = rig.lab.serve_reboots(Some(DOWNTIME));
        let mut short = Self::of(rig);
        let command_line = short.rig.ssh(Host::Dut, "cat /proc/cmdline");
        short.boots = Some((command_line, reboots));
        short
    }

    fn of(rig: Rig) -> Self {
        rig.change("hosts.toml", "slice_ms = 200", "slice_ms = 100");
        let folder = rig.path("bin");
        fs::create_dir(&folder).unwrap();
        let mut compiler = Command::new("cc");
        compiler
            .args(["-O1", "-Wall", "-o"])
            .arg(folder.join("ssh"));
        testkit::succeed(compiler.arg(data("failing_ssh.c")));
        let before = rig.dut();
        Self {
            rig,
            before,
            boots: None,
        }
    }

    /// What a command with faults came to, and its operations: those that failed are `x`.
    fn fail(&self, mut command: Command, faults: &[Fault]) -> (Output, Vec<u8>) {
        let operations = self.rig.path("operations");
        let _ = fs::remove_file(&operations);
        let path = format!(
            "{}:{}",
            self.rig.path("bin").display(),
            std::env::var("PATH").unwrap()
        );
        let faults = faults
            .iter()
            .map(|Fault { nth, way }| format!("{} {nth} {} ", way.how, way.times));
        let output = command
            .env("PATH", path)
            .env("SSH", "/usr/bin/ssh")
            .env("OPERATIONS", &operations)
            .env("FAULTS", faults.collect::<String>())
            .output()
            .unwrap();
        (output, fs::read(&operations).unwrap_or_default())
    }

    /// Nothing is open in the journal, and the DUT is as it was.
    fn judge(&self, what: &str) {
        let left = self.rig.fwdlab(&["restore", "--list"]).output().unwrap();
        let left = String::from_utf8_lossy(&left.stdout).into_owned();
        assert!(!left.contains("router"), "{what}: {left}");
        assert_as_before(&self.rig, &self.before);
        if let Some((command_line, _)) = &self.boots {
            let now = self.rig.ssh(Host::Dut, "cat /proc/cmdline");
            assert_eq!(now, *command_line, "{what}");
            assert!(!self.rig.lab.grub(Host::Dut).join("custom.cfg").exists());
        }
    }

    /// Runs until all is measured, at most twice, and judges what is left.
    fn go_on_and_judge(&self, results: &Path, what: &str) {
        let plan = |path: PathBuf| fs::read(path.join("plan.json")).ok();
        let planned = directory(results).and_then(plan);
        let is_finished = |results: &Path| {
            directory(results).is_some_and(|path| path.join("finished.json").is_file())
        };
        if !is_finished(results) {
            let output = run_into(&self.rig, results).output().unwrap();
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
        self.judge(what);
    }

    /// Starts a run and kills it when something holds.
    fn kill(&self, results: &Path, what: &str, holds: impl Fn() -> bool) {
        let child = run_into(&self.rig, results).spawn().unwrap();
        let mut child = shared::wait_for_child(what, child, holds);
        child.kill().unwrap();
        finish(child);
        testkit::wait_until("the tester's process ends", || !self.rig.has_tester());
    }
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
    shared::directories(results, crate::rig::EXPERIMENT).pop()
}

/// Whether all was measured: on a busy machine blocks may stay invalid because their load was too low.
fn is_measured(output: &Output) -> bool {
    matches!(output.status.code(), Some(0 | 1))
}

#[test]
fn whichever_operation_on_a_host_fails_the_run_goes_on() {
    require_faults!();
    operations_fail(&OperationStorm {
        what: "operation",
        start: Short::start,
        apart: 35,
        most: WAYS.len(),
    });
}

#[test]
fn whichever_operation_fails_of_a_run_that_boots_the_dut_it_goes_on() {
    require_faults!();
    operations_fail(&OperationStorm {
        what: "operation of boots",
        start: Short::start_booting,
        apart: 80,
        most: 1,
    });
}

/// Has each operation of runs fail in each way.
struct OperationStorm {
    what: &'static str,
    start: fn() -> Short,
    /// Every so many operations one fails; what fails for long is three times as far apart, which has to be more than
    /// a block's operations, or none would ever be measured.
    apart: usize,
    /// How many operations fail in a case of the ordinary tests: of one that boots, a failure costs a minute. A soak goes
    /// to the end of a run, which is longer because operations fail.
    most: usize,
}

fn operations_fail(storm: &OperationStorm) {
    let most = if is_soak() { usize::MAX } else { storm.most };
    storm_in_lanes(
        storm.what,
        &cases(storm.apart * WAYS.len(), SAMPLE),
        OPERATIONS_LANES,
        storm.start,
        |short, number| {
            // As many cases as operations in between, with each way in turn to begin with.
            let (way, first) = ((number - 1) / storm.apart, (number - 1) % storm.apart + 1);
            let numbers = (first..OPERATIONS_MAX).step_by(storm.apart);
            let ways = WAYS.into_iter().cycle().skip(way);
            let faults = numbers.zip(ways).take(most);
            let faults = faults.map(|(nth, way)| Fault { nth, way });
            let least = WAYS.len().min(most);
            fail_and_go_on(short, faults.collect(), least, number)
        },
    );
}

/// Has operations fail, so many at least, in as few runs as reach all of them: one that cannot go on ends its run.
fn fail_and_go_on(short: &Short, mut faults: Vec<Fault>, least: usize, number: usize) -> String {
    let rig = &short.rig;
    let (mut failed, mut runs) = (0, 0);
    loop {
        runs += 1;
        let what: Vec<String> = faults.iter().map(Fault::to_string).collect();
        let what = format!("case {number}, run {runs}: {}", what.join("; "));
        let results = rig.path(&format!("operation-{number}-{runs}"));
        let (output, operations) = short.fail(run_into(rig, &results), &faults);
        let said = text(&output);
        assert!(!said.contains("panicked"), "{what}: {said}");
        // A run ends because a host is out of reach, never because something was done twice.
        let ended_by = said.split_once("error: ").map(|(_, error)| error);
        assert!(
            is_measured(&output)
                || ended_by.is_some_and(|error| error.contains("Connection reset by peer")),
            "{what}: {said}"
        );
        short.go_on_and_judge(&results, &what);
        testkit::wait_until("the tester's process ends", || !rig.has_tester());
        fs::remove_dir_all(&results).unwrap();
        let before = faults.len();
        faults.retain(|fault| operations.get(fault.nth - 1) != Some(&b'x'));
        failed += before - faults.len();
        if is_measured(&output) {
            let is_reached = faults.iter().all(|fault| operations.len() < fault.nth);
            assert!(is_reached && failed >= least, "{what}: {said}");
            let then = if runs == 1 {
                "all was measured"
            } else {
                "continued by the same command"
            };
            return format!("{failed} of {} operations failed, {then}", operations.len());
        }
        assert!(faults.len() < before, "{what}: {said}");
    }
}

#[test]
fn what_is_done_twice_is_as_if_done_once() {
    require_faults!();
    let short = Short::start();
    let results = short.rig.path("twice");
    // From the set-up of the first block to its end: an operation that is done and not told, the connection opened
    // anew, what ends the operation where it still runs, and the operation again.
    let faults = (0..TWICE).map(|number| Fault {
        nth: OPENING + 4 * number,
        way: WAYS[1],
    });
    let faults: Vec<Fault> = faults.collect();
    let (output, operations) = short.fail(run_into(&short.rig, &results), &faults);
    assert!(is_measured(&output), "{}", text(&output));
    for fault in faults {
        assert_eq!(operations.get(fault.nth - 1), Some(&b'x'), "{fault}");
    }
    short.go_on_and_judge(&results, "everything done twice");
}

#[test]
fn whichever_operation_of_a_restore_fails_the_next_puts_all_back() {
    require_faults!();
    let kill = |short: &Short, results: &Path| {
        let state = short.rig.path("state/fwdlab");
        short.kill(results, "all of the set-up is announced", || {
            let journals = fs::read_dir(&state).into_iter().flatten().flatten();
            journals.into_iter().any(|journal| {
                let text = fs::read_to_string(journal.path()).unwrap_or_default();
                text.contains("the nft ruleset")
            })
        });
    };
    let short = Short::start();
    kill(&short, &short.rig.path("sound"));
    let (output, sound) = short.fail(short.rig.fwdlab(&["restore"]), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    short.judge("nothing fails");
    let all = sound.len();
    assert!(all > 5, "{all} operations were seen");
    drop(short);
    storm_in_lanes(
        "restore",
        &cases(all * WAYS.len(), RESTORES),
        LANES,
        Short::start,
        |short, number| {
            let fault = Fault {
                nth: 1 + (number - 1) / WAYS.len(),
                way: WAYS[(number - 1) % WAYS.len()],
            };
            let results = short.rig.path(&format!("restore-{number}"));
            kill(short, &results);
            let (output, operations) = short.fail(short.rig.fwdlab(&["restore"]), &[fault]);
            let said = text(&output);
            assert_eq!(
                operations.get(fault.nth - 1),
                Some(&b'x'),
                "{fault}: {said}"
            );
            let is_done = match output.status.code() {
                Some(0) => true,
                Some(3) => false,
                _ => panic!("{fault}: {said}"),
            };
            if !is_done {
                let again = short.rig.fwdlab(&["restore"]).output().unwrap();
                assert_eq!(again.status.code(), Some(0), "{fault}: {}", text(&again));
            }
            short.judge(&fault.to_string());
            fs::remove_dir_all(&results).unwrap();
            let then = if is_done {
                "all was put back"
            } else {
                "put back by the next"
            };
            format!("{}, {} times: {then}", fault.way.how, fault.way.times)
        },
    );
}

#[test]
fn runs_on_hosts_that_are_killed_at_any_moment_go_on_to_the_same_plan() {
    require_faults!();
    // A run takes about ten seconds; a step of a golden ratio covers them evenly, however many there are.
    storm_in_lanes(
        "kill",
        &cases(1000, KILLS),
        LANES,
        Short::start,
        |short, number| {
            let rig = &short.rig;
            #[expect(clippy::cast_precision_loss, reason = "some hundred cases")]
            let moment = Duration::from_secs_f64((number as f64 * 0.618).fract() * 10.0);
            let what = format!("killed after {} ms", moment.as_millis());
            let results = rig.path(&format!("kill-{number}"));
            let mut child = run_into(rig, &results).spawn().unwrap();
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
            assert_as_before(rig, &short.before);
            assert_eq!(rig.sent_frames(), sent, "{what}");
            short.go_on_and_judge(&results, &what);
            testkit::wait_until("the tester's process ends", || !rig.has_tester());
            "put back and continued".to_owned()
        },
    );
}

#[test]
fn a_control_plane_that_is_silent_costs_time_and_nothing_else() {
    require_faults!();
    let short = Short::start();
    let rig = &short.rig;
    // Seconds: a soak asks for a minute of both hosts, or for more than a connection lasts.
    let silence = cases(SILENCE_S_MAX, 2);
    let (seconds, hosts) = match silence.as_slice() {
        [1, SILENCE_S_MAX] => (3, [Host::Tester].as_slice()),
        asked => (*asked.last().unwrap(), Host::ALL.as_slice()),
    };
    for &host in hosts {
        let results = rig.path(&format!("silent-{}", host.ssh_name()));
        let child = run_into(rig, &results).spawn().unwrap();
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
        short.go_on_and_judge(&results, "a silence");
        let frames = rig.sent_frames();
        thread::sleep(Duration::from_secs(2));
        assert_eq!(rig.sent_frames(), frames);
    }
}

#[test]
fn a_load_whose_run_stands_still_ends_by_itself() {
    require_faults!();
    let short = Short::start();
    let rig = &short.rig;
    rig.change("hosts.toml", "slice_ms = 100", "slice_ms = 1500");
    let results = rig.path("standing-still");
    let child = run_into(rig, &results).spawn().unwrap();
    let frames = rig.sent_frames();
    // More than probes: the load of a slice.
    let child = shared::wait_for_child("a load", child, || rig.sent_frames() > frames + 5000);
    // The program has taken the place of the one that entered its namespace.
    let signal = |name: &str| testkit::signal(child.id(), name);
    signal("-STOP");
    testkit::wait_until("the load ends by itself", || {
        let frames = rig.sent_frames();
        thread::sleep(Duration::from_secs(1));
        rig.sent_frames() == frames
    });
    signal("-CONT");
    let output = finish(child);
    assert!(is_measured(&output), "{}", text(&output));
    assert!(
        text(&output).contains("repeating this block"),
        "{}",
        text(&output)
    );
    short.go_on_and_judge(&results, "a run that stood still");
}
