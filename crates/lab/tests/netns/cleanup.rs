//! What is left behind: nothing, and what a killed run leaves is found by the next one.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use fwdlab_lab::{
    Lab, LabError, Leftover, LeftoverState, NetnsLab, OnFailure, Topology, Undo, Whose,
};
use fwdlab_model::AddressFamily;

use crate::rig::{experiment, own_namespaces, own_the_machine, rulesets, run};

/// Tells this program, started by a test of its own, to play the other part of that test.
const OTHER_PART: &str = "FWDLAB_TEST_OTHER_PART";

fn plays_other_part() -> bool {
    std::env::var_os(OTHER_PART).is_some()
}

/// Starts this program again for one test.
fn start_other_part(test: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(OTHER_PART, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// Prints a line that the other part's output is searched for.
#[allow(
    clippy::print_stdout,
    reason = "it is how the two parts of a test talk to each other"
)]
fn tell(line: &str) {
    println!("\n{line}");
}

fn exists(namespace: &str) -> bool {
    Path::new("/run/netns").join(namespace).exists()
}

#[test]
fn a_lab_that_goes_takes_its_namespaces_along() {
    testkit::require_root!();
    let _machine = own_the_machine();
    for _ in 0..3 {
        let topology = Topology::build().unwrap();
        let mut names = [topology.tester().name(), topology.dut().name()].map(str::to_owned);
        names.sort();
        assert_eq!(own_namespaces(std::process::id()), names);
        drop(topology);
        assert_eq!(own_namespaces(std::process::id()), Vec::<String>::new());
    }
}

#[test]
fn a_panic_takes_the_namespaces_along() {
    testkit::require_root!();
    let _machine = own_the_machine();
    let result = std::thread::spawn(|| {
        let _topology = Topology::build().unwrap();
        panic!("this panic is part of the test");
    })
    .join();
    assert!(result.is_err());
    assert_eq!(own_namespaces(std::process::id()), Vec::<String>::new());
}

/// A namespace that is nobody's of fwdlab's.
struct Foreign(String);

impl Foreign {
    fn new(name: String) -> Self {
        run(&["ip", "netns", "add", &name]);
        Self(name)
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        run(&["ip", "netns", "del", &self.0]);
    }
}

#[test]
fn only_what_a_killed_run_left_is_removed() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    if plays_other_part() {
        let _topology = Topology::build().unwrap();
        tell("the lab stands");
        // Until it is killed, or the test that started it ends.
        let _ = std::io::stdin().read(&mut [0]);
        return;
    }
    let _machine = own_the_machine();
    let mut killed = start_other_part("cleanup::only_what_a_killed_run_left_is_removed");
    let mut lines = BufReader::new(killed.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "the lab stands"));
    let left = own_namespaces(killed.id());
    assert_eq!(left.len(), 2);

    let live = Topology::build().unwrap();
    let pid = std::process::id();
    let foreign = [
        Foreign::new(format!("other-{pid}")),
        Foreign::new(format!("fwdlab-{pid}")),
        // As if of a process that is gone, but not one of ours: no start time.
        Foreign::new(format!("fwdlab-{}-mine-dut", killed.id())),
    ];

    // While the other process lives nothing of it is touched.
    let removed = fwdlab_sys::remove_leftovers().unwrap();
    assert!(
        left.iter()
            .all(|name| !removed.contains(name) && exists(name))
    );

    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(left.iter().all(|name| exists(name)));
    let removed = fwdlab_sys::remove_leftovers().unwrap();
    let of_killed: Vec<_> = removed
        .iter()
        .filter(|name| name.starts_with(&format!("fwdlab-{}-", killed.id())))
        .collect();
    assert_eq!(of_killed, left.iter().collect::<Vec<_>>());
    assert!(left.iter().all(|name| !exists(name)));
    assert!(exists(live.tester().name()) && exists(live.dut().name()));
    assert!(foreign.iter().all(|foreign| exists(&foreign.0)));
    let again = fwdlab_sys::remove_leftovers().unwrap();
    assert!(left.iter().all(|name| !again.contains(name)));
}

/// What becomes of all that was left.
fn restore(directory: &Path, on_failure: OnFailure) -> Result<Vec<Leftover>, LabError> {
    let mut all = Vec::new();
    let mut tell = |leftovers: &[Leftover]| all.extend_from_slice(leftovers);
    fwdlab_lab::restore(directory, Whose::Everybody, on_failure, &mut tell)?;
    Ok(all)
}

/// What a journal of another process says, put down by hand: the change, and the process that made it.
fn journal_line(undo: &str, pid: u32) -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    format!(
        r#"{{"record":"change","id":{{"boot":"{}","pid":{pid},"start_time":1,"number":1}},"time":"2026-11-21T15:00:00Z","what":"a test","undo":{undo}}}"#,
        boot.trim()
    ) + "\n"
}

#[test]
fn every_kind_of_change_is_put_back_once() {
    testkit::require_root!();
    testkit::require_tool!("ip", "rm", "sh");
    let _machine = own_the_machine();
    let state = tempfile::tempdir().unwrap();
    let path = state.path().join("netns.jsonl");
    let pid = std::process::id();
    let mark = state.path().join("mark");
    std::fs::write(&mark, "").unwrap();
    // Nothing but loopback is in the namespace where it runs: the one it names is gone.
    let script = "ip -o link | grep -v ' lo:' && exit 1; rm -f \"$0\"";
    let gone = format!("fwdlab-{pid}-1-dut");
    let run = format!(
        r#"{{"kind":"run","namespace":"{gone}","arguments":["sh","-c",{script:?},{mark:?}]}}"#
    );
    let left = Foreign::new(format!("fwdlab-{pid}-1-left"));
    let namespace = format!(r#"{{"kind":"remove-namespace","name":"{}"}}"#, left.0);
    let sysctl_path = "/proc/sys/kernel/printk_ratelimit_burst";
    let value = std::fs::read_to_string(sysctl_path).unwrap();
    let changed = value.trim().parse::<u32>().unwrap() + 1;
    std::fs::write(sysctl_path, changed.to_string()).unwrap();
    let sysctl = format!(
        r#"{{"kind":"write-sysctl","setting":"kernel/printk_ratelimit_burst","value":{:?}}}"#,
        value.trim()
    );
    let failing = r#"{"kind":"run","namespace":"x","arguments":["false"]}"#;
    let text: String = [run.as_str(), &namespace, &sysctl, failing]
        .iter()
        .map(|undo| journal_line(undo, pid))
        .collect();
    // The numbers tell the changes of one process apart; the last line is torn.
    let numbered: String = text
        .lines()
        .enumerate()
        .map(|(number, line)| {
            line.replace(r#""number":1"#, &format!(r#""number":{number}"#)) + "\n"
        })
        .collect();
    std::fs::write(&path, numbered + "{\"record\":\"undo").unwrap();

    let states = |leftovers: &[Leftover]| -> Vec<(Undo, &'static str)> {
        leftovers
            .iter()
            .filter(|leftover| leftover.what == "a test")
            .map(|leftover| {
                let state = match leftover.state {
                    LeftoverState::Left => "left",
                    LeftoverState::PutBack => "put back",
                    LeftoverState::PutBackByAnother => "put back by another",
                    LeftoverState::Failed { .. } => "failed",
                    LeftoverState::Forgotten { .. } => "forgotten",
                };
                (leftover.undo.clone(), state)
            })
            .collect()
    };
    let listed = fwdlab_lab::leftovers(state.path()).unwrap();
    let told = states(&listed);
    assert_eq!(told.len(), 4);
    assert!(told.iter().all(|(_, state)| *state == "left") && mark.exists());

    // The latest change is undone first, and one that cannot be holds the others up no more than this.
    let restored = restore(state.path(), OnFailure::Keep).unwrap();
    let words: Vec<_> = states(&restored)
        .into_iter()
        .map(|(_, state)| state)
        .collect();
    assert_eq!(
        words,
        ["failed", "put back", "put back", "put back"],
        "{restored:?}"
    );
    assert_eq!(std::fs::read_to_string(sysctl_path).unwrap(), value);
    assert!(!exists(&left.0) && !mark.exists());
    std::mem::forget(left);

    let again = restore(state.path(), OnFailure::Keep).unwrap();
    let words: Vec<_> = states(&again).into_iter().map(|(_, state)| state).collect();
    assert_eq!(words, ["failed"]);
    let resolved = experiment(&[AddressFamily::Inet], rulesets(&[("a", "")]), &["a"]);
    let interrupts = fwdlab_sys::watch_interrupts().unwrap();
    let Err(error) = Lab::open(&resolved, state.path(), interrupts, &mut |_| {}) else {
        panic!("the machine is not as it was");
    };
    assert!(
        error.to_string().contains("could not be undone by `false`"),
        "{error}"
    );
    assert!(
        error.to_string().contains("fwdlab restore --forget"),
        "{error}"
    );

    let forgotten = restore(state.path(), OnFailure::Forget).unwrap();
    let words: Vec<_> = states(&forgotten)
        .into_iter()
        .map(|(_, state)| state)
        .collect();
    assert_eq!(words, ["forgotten"]);
    assert_eq!(states(&fwdlab_lab::leftovers(state.path()).unwrap()), []);
    assert_eq!(std::fs::read(&path).unwrap(), b"");
    Lab::open(&resolved, state.path(), interrupts, &mut |_| {}).unwrap();
}

#[test]
fn a_damaged_journal_is_refused_with_its_line() {
    testkit::require_root!();
    let _machine = own_the_machine();
    let state = tempfile::tempdir().unwrap();
    let path = state.path().join("netns.jsonl");
    let line = journal_line(r#"{"kind":"burn"}"#, std::process::id());
    std::fs::write(&path, line).unwrap();
    let error = restore(state.path(), OnFailure::Keep).unwrap_err();
    assert!(
        error.to_string().contains("netns.jsonl\":1: not a line"),
        "{error}"
    );
    assert!(
        error.to_string().contains("unknown variant `burn`"),
        "{error}"
    );
}

#[test]
fn without_privilege_the_lab_says_what_it_needs() {
    testkit::require_root!();
    if plays_other_part() {
        nix::unistd::setuid(nix::unistd::Uid::from_raw(65534)).unwrap();
        let resolved = experiment(&[AddressFamily::Inet], rulesets(&[("a", "")]), &["a"]);
        let interrupts = fwdlab_sys::watch_interrupts().unwrap();
        let state = tempfile::tempdir().unwrap();
        match NetnsLab::open(&resolved, state.path(), interrupts) {
            Ok(_) => tell("the lab opened"),
            Err(error) => tell(&error.to_string()),
        }
        match Topology::build() {
            Ok(_) => tell("the topology stands"),
            Err(error) => tell(&error.to_string()),
        }
        return;
    }
    let other = start_other_part("cleanup::without_privilege_the_lab_says_what_it_needs");
    let pid = other.id();
    let output = other.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    // Both without the user namespace that `NetnsLab::prepare_process` makes.
    let refusals = text.matches("; run as root (sudo)\n").count();
    assert_eq!(refusals, 2, "{text}");
    assert_eq!(own_namespaces(pid), Vec::<String>::new());
}
