//! What is left behind: nothing, and what a killed run leaves is found by the next one.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use fwdlab_lab::{NetnsLab, Topology};
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

#[test]
fn without_privilege_the_lab_says_what_it_needs() {
    testkit::require_root!();
    if plays_other_part() {
        nix::unistd::setuid(nix::unistd::Uid::from_raw(65534)).unwrap();
        let resolved = experiment(&[AddressFamily::Inet], rulesets(&[("a", "")]), &["a"]);
        let interrupts = fwdlab_sys::watch_interrupts().unwrap();
        match NetnsLab::open(&resolved, interrupts) {
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
    assert!(
        text.contains(
            "\nlab netns: it needs root (CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_BPF) to make \
             namespaces and load eBPF programs, and this process has user id 65534; run it with \
             sudo\n"
        ),
        "{text}"
    );
    assert!(text.contains("; run as root (sudo)\n"), "{text}");
    assert_eq!(own_namespaces(pid), Vec::<String>::new());
}
