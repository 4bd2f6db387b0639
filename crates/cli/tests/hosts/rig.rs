//! A lab of hosts for the program: a DUT and a tester in network namespaces, each with an OpenSSH server.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use testkit::{Host, SshLab, text};

use crate::shared::{
    self, FWDLAB, REPOSITORY, block_records, data, directories, invalid_reasons, records,
};

pub(crate) const EXPERIMENT: &str = "hosts";
/// As few as there can be at the confidence that is asked for.
pub(crate) const BLOCKS: usize = 3;

/// A factor, traffic and design for an experiment that asks little of its DUT; what is above it in the file is the test's.
const SMALL: &str = r#"
[[factor]]
name = "rp_filter"
levels = [0, 2]

[traffic]
families = ["inet"]
sources = 4
destinations = 25
load = { pps = 10000 }

[design]
blocks = 3
confidence_percent = 75
rounds = 1
slice_ms = 200
settle_ms = 50
warm_up_ms = 50
control = false
"#;

/// The text of a small experiment, behind lines of its own.
pub(crate) fn small_experiment(lines: &str) -> String {
    format!("{lines}\n{SMALL}")
}

/// A rig, and the experiment's files beside its configuration of ssh.
pub(crate) struct Rig {
    pub(crate) lab: Arc<SshLab>,
}

impl Rig {
    pub(crate) fn start() -> Self {
        let rig = Self {
            lab: Arc::new(SshLab::start().unwrap()),
        };
        for file in ["hosts.toml", "hosts-lab.toml"] {
            fs::copy(data(file), rig.path(file)).unwrap();
        }
        rig.send_from_the_next_cpu();
        let ruleset = Path::new(REPOSITORY).join("labs/rulesets/conntrack.nft");
        fs::copy(ruleset, rig.path("conntrack.nft")).unwrap();
        rig
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.lab.folder().join(name)
    }

    pub(crate) fn results(&self) -> PathBuf {
        self.path("results")
    }

    /// What sends leaves a CPU no rest: rigs of a program take the CPUs in turn.
    pub(crate) fn send_from_the_next_cpu(&self) {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let cpus = thread::available_parallelism().map_or(1, NonZero::get);
        let cpu = STARTED.fetch_add(1, Ordering::Relaxed) % cpus;
        let own = format!("[tester]\ncpu = {cpu}\n");
        self.change("hosts-lab.toml", "[tester]\n", &own);
    }

    /// Has the first two CPUs send from the tester's port.
    pub(crate) fn send_from_two_cpus(&self) {
        let lab = fs::read_to_string(self.path("hosts-lab.toml")).unwrap();
        let cpu = lab.lines().find(|line| line.starts_with("cpu = "));
        self.change("hosts-lab.toml", cpu.unwrap(), "cpus = [0, 1]");
    }

    /// Measures long enough for the watch of the DUT's CPUs, which has half of a slice, to end with the load on a
    /// machine that is busy with other tests.
    pub(crate) fn watch_for_longer(&self) {
        let text = fs::read_to_string(self.path("hosts.toml")).unwrap();
        let slice = text.lines().find(|line| line.starts_with("slice_ms = "));
        self.change(
            "hosts.toml",
            &format!("\n{}\n", slice.unwrap()),
            "\nslice_ms = 800\n",
        );
    }

    /// Replaces a text in one of the files.
    pub(crate) fn change(&self, file: &str, from: &str, to: &str) {
        let path = self.path(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from}");
        fs::write(path, text.replace(from, to)).unwrap();
    }

    /// The program on the controller's side, with a journal of the rig's own.
    pub(crate) fn fwdlab(&self, arguments: &[&str]) -> Command {
        let mut command = self.lab.controller(FWDLAB);
        command
            .args(arguments)
            .env("XDG_STATE_HOME", self.path("state"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self) -> Command {
        let experiment = self.path("hosts.toml");
        let mut command = self.fwdlab(&["run"]);
        command
            .arg(experiment)
            .arg("--results")
            .arg(self.results())
            .args(["--seed", "1"]);
        command
    }

    /// Starts a run and waits until something holds of it.
    pub(crate) fn begin(&self, what: &str, holds: impl Fn() -> bool) -> Child {
        shared::wait_for_child(what, self.run().spawn().unwrap(), holds)
    }

    pub(crate) fn directory(&self) -> PathBuf {
        directories(&self.results(), EXPERIMENT).pop().unwrap()
    }

    pub(crate) fn blocks(&self) -> usize {
        let directories = directories(&self.results(), EXPERIMENT);
        directories
            .first()
            .map_or(0, |directory| block_records(&records(directory)).len())
    }

    /// Proves that a run came to its end: all of so many blocks were measured. On a busy machine some may be invalid,
    /// for a load that fell short or a slice that stood still, and nothing else.
    pub(crate) fn assert_measured(&self, output: &Output, blocks: usize) {
        let said = text(output);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
        let directory = self.directory();
        let records = records(&directory);
        let measured: BTreeSet<u64> = block_records(&records)
            .iter()
            .filter_map(|block| block["block"].as_u64())
            .collect();
        assert!(measured.into_iter().eq(1..=blocks as u64), "{said}");
        for reason in invalid_reasons(&records) {
            let is_of_the_machine =
                ["load-short", "stalled"].contains(&reason["reason"].as_str().unwrap());
            assert!(is_of_the_machine, "{reason}: {said}");
        }
        for name in ["finished.json", "README.md"] {
            assert!(directory.join(name).is_file(), "no {name}: {said}");
        }
    }

    /// What a run may change of the DUT, by what tells it, once it is at rest.
    pub(crate) fn dut(&self) -> BTreeMap<&'static str, String> {
        testkit::wait_until(
            "links are up, and addresses proved to be the only ones",
            || {
                let addresses = self.lab.inside(Host::Dut, &["ip", "address"]);
                !addresses.contains("tentative") && !addresses.contains("NO-CARRIER")
            },
        );
        [
            ["ip", "address"].as_slice(),
            &["ip", "route", "show", "table", "all"],
            &["ip", "-6", "route", "show", "table", "main"],
            &["ip", "neigh", "show", "nud", "permanent"],
            &["ip", "neigh", "show", "proxy"],
            &["nft", "list", "ruleset"],
            &["ethtool", "-k", "eth2"],
            &["grep", "-r", "", "/proc/sys/net/ipv4/conf"],
            &["sh", "-c", "grep '' /proc/sys/net/ipv6/conf/*/forwarding"],
            &["cat", "/proc/sys/net/ipv4/ip_forward"],
        ]
        .into_iter()
        .map(|command| {
            (
                command[command.len() - 1],
                self.lab.inside(Host::Dut, command),
            )
        })
        .collect()
    }

    /// What a script prints that is run on a host over ssh.
    pub(crate) fn ssh(&self, host: Host, script: &str) -> String {
        let mut command = self.lab.controller("ssh");
        command.arg("-F").arg(self.lab.ssh_config());
        let output = command.args([host.ssh_name(), script]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Whether a tester's process lives on its host.
    pub(crate) fn has_tester(&self) -> bool {
        let namespace = self.lab.namespace(Host::Tester);
        let pids = testkit::succeed(Command::new("ip").args(["netns", "pids", &namespace]));
        let pids = String::from_utf8(pids.stdout).unwrap();
        pids.lines().any(|pid| {
            let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.contains("/.cache/fwdlab/")
        })
    }

    /// Frames that left the tester's port so far.
    pub(crate) fn sent_frames(&self) -> u64 {
        self.frames("eth1", "tx_packets")
    }

    /// What a port of the tester's host has counted so far.
    pub(crate) fn frames(&self, port: &str, counter: &str) -> u64 {
        let counter = format!("/sys/class/net/{port}/statistics/{counter}");
        let frames = self.lab.inside(Host::Tester, &["cat", &counter]);
        frames.trim().parse().unwrap()
    }
}

/// Whether the DUT is as it was; what differs where not.
pub(crate) fn assert_as_before(rig: &Rig, before: &BTreeMap<&'static str, String>) {
    for (what, now) in rig.dut() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let (was, is) = (lines(&before[what]), lines(&now));
        let gone: Vec<_> = was.iter().filter(|line| !is.contains(line)).collect();
        let new: Vec<_> = is.iter().filter(|line| !was.contains(line)).collect();
        assert!(
            gone.is_empty() && new.is_empty(),
            "{what}: {gone:#?} became {new:#?}"
        );
    }
}

/// Has the experiment vary what stands on the DUT's kernel's command line.
pub(crate) fn vary_the_command_line(rig: &Rig) {
    rig.change(
        "hosts.toml",
        "name = \"packet filter\"\nlevels = [\"none\", \"conntrack\"]\ndefault = \"none\"",
        "name = \"mitigations\"\nlevels = [\"on\", \"off\"]",
    );
    rig.change(
        "hosts-lab.toml",
        "[bind.\"rp_filter\"]",
        "[bind.\"mitigations\"]\ncmdline = { \"on\" = \"\", \"off\" = \"mitigations=off nosmt\" }\n\n[bind.\"rp_filter\"]",
    );
}

/// What a rig needs; a test goes no further where it is missing.
macro_rules! require_rig {
    () => {
        testkit::require_root!();
        testkit::require_sshd!();
        testkit::require_tool!("ip", "ssh", "ssh-keygen", "ethtool", "nft", "setpriv");
    };
}
