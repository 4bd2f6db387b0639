//! Labs of hosts: a DUT and a tester in network namespaces, each with an OpenSSH server, and what fails there.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod shared;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use shared::{FWDLAB, REPOSITORY, block_records, data, directories, finish, records};
use testkit::{Host, SshLab, text};

const EXPERIMENT: &str = "hosts";
const BLOCKS: usize = 6;

/// A rig, and the experiment's files beside its configuration of ssh.
struct Rig {
    lab: Arc<SshLab>,
}

impl Rig {
    fn start() -> Self {
        let rig = Self {
            lab: Arc::new(SshLab::start().unwrap()),
        };
        for file in ["hosts.toml", "hosts-lab.toml"] {
            fs::copy(data(file), rig.path(file)).unwrap();
        }
        let ruleset = Path::new(REPOSITORY).join("labs/rulesets/conntrack.nft");
        fs::copy(ruleset, rig.path("conntrack.nft")).unwrap();
        testkit::wait_until("addresses are proved to be the only ones", || {
            let addresses = rig.lab.inside(Host::Dut, &["ip", "address"]);
            !addresses.contains("tentative")
        });
        rig
    }

    fn path(&self, name: &str) -> PathBuf {
        self.lab.folder().join(name)
    }

    fn results(&self) -> PathBuf {
        self.path("results")
    }

    /// Replaces a text in one of the files.
    fn change(&self, file: &str, from: &str, to: &str) {
        let path = self.path(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from}");
        fs::write(path, text.replace(from, to)).unwrap();
    }

    /// The program on the controller's side, with a journal of the rig's own.
    fn fwdlab(&self, arguments: &[&str]) -> Command {
        let mut command = self.lab.controller(FWDLAB);
        command
            .args(arguments)
            .env("XDG_STATE_HOME", self.path("state"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self) -> Command {
        let experiment = self.path("hosts.toml");
        let mut command = self.fwdlab(&["run"]);
        command
            .arg(experiment)
            .arg("--results")
            .arg(self.results())
            .args(["--seed", "1"]);
        command
    }

    fn directory(&self) -> PathBuf {
        directories(&self.results(), EXPERIMENT).pop().unwrap()
    }

    fn blocks(&self) -> usize {
        let directories = directories(&self.results(), EXPERIMENT);
        directories
            .first()
            .map_or(0, |directory| block_records(&records(directory)).len())
    }

    /// What a run may change of the DUT, by what tells it.
    fn dut(&self) -> BTreeMap<&'static str, String> {
        [
            ["ip", "address"].as_slice(),
            &["ip", "route", "show", "table", "all"],
            &["ip", "-6", "route", "show", "table", "main"],
            &["ip", "neigh", "show", "nud", "permanent"],
            &["nft", "list", "ruleset"],
            &["ethtool", "-k", "eth2"],
            &["grep", "-r", "", "/proc/sys/net/ipv4/conf"],
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

    /// Whether a tester's process lives on its host.
    fn has_tester(&self) -> bool {
        let namespace = self.lab.namespace(Host::Tester);
        let pids = testkit::succeed(Command::new("ip").args(["netns", "pids", &namespace]));
        let pids = String::from_utf8(pids.stdout).unwrap();
        pids.lines().any(|pid| {
            let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.contains("/.cache/fwdlab/")
        })
    }

    /// Frames that left the tester's port so far.
    fn sent_frames(&self) -> u64 {
        let counter = "/sys/class/net/eth1/statistics/tx_packets";
        let frames = self.lab.inside(Host::Tester, &["cat", counter]);
        frames.trim().parse().unwrap()
    }
}

/// Whether the DUT is as it was; what differs where not.
fn assert_as_before(rig: &Rig, before: &BTreeMap<&'static str, String>) {
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

macro_rules! require_rig {
    () => {
        testkit::require_root!();
        testkit::require_sshd!();
        testkit::require_tool!("ip", "ssh", "ssh-keygen", "ethtool", "nft");
    };
}

/// Starts a run and waits until something holds of it.
fn start(rig: &Rig, what: &str, holds: impl Fn() -> bool) -> Child {
    shared::wait_for_child(what, rig.run().spawn().unwrap(), holds)
}

#[test]
fn a_run_on_hosts_is_published_and_leaves_the_dut_as_it_was() {
    require_rig!();
    let rig = Rig::start();
    // An owner's ruleset and address that are not to be lost.
    rig.lab.inside(
        Host::Dut,
        &[
            "nft",
            "add table inet owner { chain c { tcp dport 7 counter; }; }",
        ],
    );
    rig.lab.inside(
        Host::Dut,
        &["ip", "address", "add", "192.0.2.7/32", "dev", "eth2"],
    );
    rig.lab.inside(
        Host::Dut,
        &["ip", "address", "add", "198.18.0.5/24", "dev", "eth1"],
    );
    let before = rig.dut();
    let output = rig.run().output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_as_before(&rig, &before);
    assert_eq!(rig.blocks(), BLOCKS);

    let directory = rig.directory();
    let readme = fs::read_to_string(directory.join("README.md")).unwrap();
    for expected in [
        "A Linux host between the two ports of a tester, both reached by ssh",
        "two hosts in network namespaces",
        "The variants differ in 1 fact of the DUT",
        "nft ruleset",
    ] {
        assert!(readme.contains(expected), "{expected}: {readme}");
    }
    // Every frame is accounted for, and every flow was seen.
    for block in block_records(&records(&directory)) {
        let family = &block["conservation"]["inet"];
        assert_eq!(family["unaccounted_frames"], 0, "{family}");
        assert_eq!(family["offered_frames"], family["forwarded_frames"]);
        assert_eq!(
            family["verification"]["wrong_frames"],
            serde_json::json!({})
        );
        let facts = block["differing_facts"]["packet-filter-conntrack"]
            .as_object()
            .unwrap();
        assert_eq!(facts.keys().collect::<Vec<_>>(), ["nft ruleset"]);
    }
    testkit::wait_until("the tester's process ends", || !rig.has_tester());
    let lint = rig.fwdlab(&["lint"]).arg(&directory).output().unwrap();
    assert_eq!(lint.status.code(), Some(0), "{}", text(&lint));
}

#[test]
fn a_receiver_and_a_second_generator_have_processes_of_their_own() {
    require_rig!();
    let rig = Rig::start();
    let before = rig.dut();
    // Both on the tester's host: what matters is that each is reached and asked by itself.
    rig.change("hosts-lab.toml", "out = \"eth1\"\nin = \"eth2\"\n", "out = \"eth1\"\n\n[receiver]\nhost = \"tester\"\nin = \"eth2\"\n\n[[generator]]\nhost = \"tester\"\nout = \"eth1\"\n");
    let output = rig.run().output().unwrap();
    assert!(text(&output).contains("block 6 of 6"), "{}", text(&output));
    assert_as_before(&rig, &before);
    let directory = rig.directory();
    for block in block_records(&records(&directory)) {
        let family = &block["conservation"]["inet"];
        assert_eq!(family["unaccounted_frames"], 0, "{family}");
        // Slices of 300 ms at 10,000 frames a second, with what is sent before and after them.
        assert!(family["offered_frames"].as_u64() > Some(6000), "{family}");
        assert_eq!(family["verification"]["flows_seen"], 100, "{family}");
    }
    testkit::wait_until("the tester's processes end", || !rig.has_tester());
}

#[test]
fn connections_that_break_cost_a_block_at_most() {
    require_rig!();
    let rig = Rig::start();
    let before = rig.dut();
    let mut child = rig.run().spawn().unwrap();
    for (number, host) in [Host::Dut, Host::Tester, Host::Dut].into_iter().enumerate() {
        child = shared::wait_for_child("a block", child, || rig.blocks() > number);
        rig.lab.cut(host);
    }
    let output = finish(child);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_as_before(&rig, &before);
    shared::assert_complete(&rig.directory(), BLOCKS, "connections were cut");
}

#[test]
fn a_killed_run_sends_nothing_more_and_is_put_back_and_continued() {
    require_rig!();
    let rig = Rig::start();
    let before = rig.dut();
    let plan = |directory: &Path| fs::read(directory.join("plan.json")).unwrap();
    let mut child = start(&rig, "a block", || rig.blocks() > 0);
    // The program is a child of the one that entered its namespace, or has taken its place.
    child.kill().unwrap();
    child.wait().unwrap();
    testkit::wait_until("the tester's process ends", || !rig.has_tester());
    let sent = rig.sent_frames();
    let planned = plan(&rig.directory());
    let restored = rig.fwdlab(&["restore"]).output().unwrap();
    assert_eq!(restored.status.code(), Some(0), "{}", text(&restored));
    assert_as_before(&rig, &before);
    assert_eq!(rig.sent_frames(), sent);
    let output = rig.run().output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("going on in"), "{}", text(&output));
    assert_eq!(plan(&rig.directory()), planned);
    assert_as_before(&rig, &before);
}

#[test]
fn hosts_that_are_not_to_be_trusted_or_loaded_are_refused() {
    require_rig!();
    let rig = Rig::start();
    let before = rig.dut();
    let refused = |why: &str| {
        let output = rig.run().output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", text(&output));
        assert!(text(&output).contains(why), "{why}: {}", text(&output));
    };
    rig.change("hosts-lab.toml", "out = \"eth1\"", "out = \"admin\"");
    refused("default route");
    rig.change("hosts-lab.toml", "out = \"admin\"", "out = \"eth1\"");
    rig.change("hosts-lab.toml", "in = \"eth1\"", "in = \"admin\"");
    refused("a default route leads through admin");
    rig.lab
        .inside(Host::Dut, &["ip", "route", "delete", "default"]);
    refused("this connection to it comes in at admin");
    rig.change("hosts-lab.toml", "in = \"admin\"", "in = \"eth7\"");
    refused("it has no interface eth7");
    rig.change("hosts-lab.toml", "in = \"eth7\"", "in = \"eth1\"");
    rig.lab.change_host_key(Host::Tester);
    refused("host tester: logging in: ssh failed");
    rig.lab.inside(
        Host::Dut,
        &["ip", "route", "add", "default", "via", "10.99.1.1"],
    );
    assert_as_before(&rig, &before);
}

#[test]
fn what_bleeds_from_one_variant_to_the_next_is_told() {
    require_rig!();
    let rig = Rig::start();
    // A program that leaves something of its own behind whenever it sets a level.
    rig.change("hosts-lab.toml", "[bind.\"marker\"]\ncommand.do = [\"sh\", \"-c\", \"", "[bind.\"marker\"]\ncommand.do = [\"sh\", \"-c\", \"echo $(($(cat /proc/sys/net/ipv4/ip_default_ttl) - 1)) > /proc/sys/net/ipv4/ip_default_ttl; ");
    rig.change(
        "hosts.toml",
        "name = \"packet filter\"\nlevels = [\"none\", \"conntrack\"]\ndefault = \"none\"",
        "name = \"marker\"\nlevels = [\"a\", \"b\"]",
    );
    let output = rig.run().output().unwrap();
    assert_ne!(output.status.code(), Some(0), "{}", text(&output));
    let said = text(&output);
    assert!(
        said.contains("sysctl net.ipv4.ip_default_ttl was"),
        "{said}"
    );
}

/// Has the experiment vary what stands on the DUT's kernel's command line, in few blocks.
fn vary_the_command_line(rig: &Rig) {
    rig.change(
        "hosts.toml",
        "name = \"packet filter\"\nlevels = [\"none\", \"conntrack\"]\ndefault = \"none\"",
        "name = \"mitigations\"\nlevels = [\"on\", \"off\"]",
    );
    rig.change(
        "hosts.toml",
        "blocks = 6",
        "blocks = 3\nconfidence_percent = 75",
    );
    rig.change(
        "hosts-lab.toml",
        "[bind.\"rp_filter\"]",
        "[bind.\"mitigations\"]\ncmdline = { \"on\" = \"\", \"off\" = \"mitigations=off nosmt\" }\n\n[bind.\"rp_filter\"]",
    );
}

#[test]
fn a_dut_boots_for_every_trial_and_as_by_itself_in_the_end() {
    require_rig!();
    let rig = Rig::start();
    vary_the_command_line(&rig);
    rig.change(
        "hosts-lab.toml",
        "host = \"router\"\n",
        "host = \"router\"\nreboot_s_max = 30\n",
    );
    let custom = rig.lab.grub(Host::Dut).join("custom.cfg");
    fs::write(&custom, "# the owner's\n").unwrap();
    let _reboots = rig.lab.serve_reboots(Some(Duration::from_millis(300)));
    let output = rig.run().output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    // Twice to see what differs from boot to boot, for every trial, and in the end where the last was another.
    let boots = rig.lab.reboots(Host::Dut);
    assert!((8..=9).contains(&boots), "{boots}: {}", text(&output));
    assert_eq!(fs::read_to_string(custom).unwrap(), "# the owner's\n");
    let directory = rig.directory();
    for block in block_records(&records(&directory)) {
        let facts = &block["differing_facts"]["mitigations-off"];
        let names: Vec<&String> = facts.as_object().unwrap().keys().collect();
        assert_eq!(names, ["kernel command line"], "{facts}");
        let line = facts["kernel command line"].as_str().unwrap();
        assert!(line.ends_with(" mitigations=off nosmt"), "{line}");
    }
    let lint = rig.fwdlab(&["lint"]).arg(&directory).output().unwrap();
    assert_eq!(lint.status.code(), Some(0), "{}", text(&lint));
}
