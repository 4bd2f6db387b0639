//! `fwdlab lab new`: cables between hosts are found by the links that drop, and the lab file that follows is run as it is.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::freebsd;
use crate::rig::{BLOCKS, Rig, small_experiment};
use crate::shared;
use testkit::{Host, text};

/// An experiment that the bindings of a new file are enough for.
const EXPERIMENT: &str =
    "question = \"Impact of reverse path filtering on a host that was just found\"\n";

fn file(rig: &Rig) -> PathBuf {
    rig.path("found.toml")
}

fn lab_new(rig: &Rig, hosts: [&str; 2]) -> Command {
    let mut command = rig.fwdlab(&["lab", "new", hosts[0], hosts[1], "--ssh-config"]);
    command.arg(rig.lab.ssh_config());
    command.arg("-o").arg(file(rig));
    command
}

/// A search at a terminal, made by util-linux, at which somebody answers.
fn answered(rig: &Rig, answer: &str) -> Output {
    let command = lab_new(rig, ["router", "tester"]);
    let words = [command.get_program()].into_iter();
    let words: Vec<&str> = words
        .chain(command.get_args())
        .map(|word| word.to_str().unwrap())
        .collect();
    let line = shlex::try_join(words).unwrap();
    let mut terminal = Command::new("script");
    terminal.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    for (name, value) in command.get_envs() {
        terminal.env(name, value.unwrap());
    }
    let mut child = terminal
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(answer.as_bytes()).unwrap();
    // The terminal is there until the program has ended.
    let output = child.wait_with_output().unwrap();
    drop(input);
    output
}

/// What was found, by a search that came to its end.
fn found(rig: &Rig, code: i32) -> (Value, Output) {
    let mut command = lab_new(rig, ["router", "tester"]);
    let output = command.args(["--yes", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{}", text(&output));
    let found = serde_json::from_slice(&output.stdout);
    let found = found.unwrap_or_else(|error| panic!("{error}: {}", text(&output)));
    (found, output)
}

/// Flags and addresses of all interfaces of a host.
fn interfaces(rig: &Rig, host: Host) -> String {
    rig.dut();
    rig.lab.inside(host, &["ip", "-o", "-4", "address"])
        + &rig
            .lab
            .inside(host, &["sh", "-c", "grep . /sys/class/net/*/flags"])
}

fn is_up(rig: &Rig, host: Host, port: &str) -> bool {
    let flags = rig
        .lab
        .inside(host, &["cat", &format!("/sys/class/net/{port}/flags")]);
    let flags = flags.trim().trim_start_matches("0x");
    u32::from_str_radix(flags, 16).unwrap() & 1 == 1
}

fn assert_doctor_takes(rig: &Rig) {
    let mut doctor = rig.fwdlab(&["doctor", "--quick"]);
    let output = doctor.arg(file(rig)).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}

#[test]
fn a_lab_of_two_linux_hosts_is_found_and_run_as_it_is() {
    require_rig!();
    testkit::require_tool!("script");
    let rig = Rig::start();
    let before = Host::ALL.map(|host| interfaces(&rig, host));
    let output = answered(&rig, "n\n");
    let said = text(&output);
    assert_eq!(output.status.code(), Some(130), "{said}");
    let nothing = "nothing was set down, and no file was written";
    assert!(said.contains(nothing) && !file(&rig).exists(), "{said}");
    let output = answered(&rig, "yes\n");
    let said = text(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    for expected in [
        "DUT's eth1, DUT's eth2, tester's eth1, tester's eth2\r\ngo on? [y/N]",
        "tester's eth1 down: the link of DUT's eth1 drops",
        "tester's eth1 -> DUT's eth1, DUT's eth2 -> tester's eth2",
        "not set down: a default route leads through admin",
        "next: fwdlab doctor ",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    assert_eq!(Host::ALL.map(|host| interfaces(&rig, host)), before);
    let restored = rig.fwdlab(&["restore", "--list"]).output().unwrap();
    assert!(
        text(&restored).contains("nothing to restore"),
        "{}",
        text(&restored)
    );
    assert_doctor_takes(&rig);
    fs::write(rig.path("hosts.toml"), small_experiment(EXPERIMENT)).unwrap();
    let mut run = rig.run();
    let output = run.arg("--lab").arg(file(&rig)).output().unwrap();
    rig.assert_measured(&output, BLOCKS);
    // A file that is there is never written over.
    let again = lab_new(&rig, ["router", "tester"]).output().unwrap();
    assert_eq!(again.status.code(), Some(2), "{}", text(&again));
    assert!(
        text(&again).contains("is there already"),
        "{}",
        text(&again)
    );
}

#[test]
fn ports_that_were_down_are_looked_at_and_left_down_and_two_of_three_cables_are_taken() {
    require_rig!();
    let rig = Rig::start();
    let [dut, tester] = Host::ALL.map(|host| rig.lab.namespace(host));
    let third = [
        "link", "add", "eth10", "netns", &dut, "type", "veth", "peer", "name", "eth3", "netns",
        &tester,
    ];
    testkit::succeed(Command::new("ip").args(third));
    rig.lab
        .inside(Host::Dut, &["ip", "link", "set", "eth2", "down"]);
    let (found, output) = found(&rig, 0);
    let said = text(&output);
    let cables = found["cabling"]["cables"].as_array().unwrap();
    assert_eq!(cables.len(), 3, "{found}");
    assert_eq!(found["to_dut"]["dut"], "eth1", "{found}");
    assert_eq!(found["from_dut"]["dut"], "eth2", "{found}");
    assert!(
        said.contains("setting up DUT's eth2, which is down"),
        "{said}"
    );
    let remarks = found["remarks"].to_string();
    assert!(
        remarks.contains("left over: DUT's eth10 to tester's eth3"),
        "{remarks}"
    );
    for (host, port, expected) in [
        (Host::Dut, "eth1", true),
        (Host::Dut, "eth2", false),
        (Host::Dut, "eth10", false),
        (Host::Tester, "eth2", true),
        (Host::Tester, "eth3", false),
    ] {
        assert_eq!(is_up(&rig, host, port), expected, "{port}");
    }
}

#[test]
fn of_one_cable_and_a_loop_the_file_says_what_is_missing() {
    require_rig!();
    let rig = Rig::start();
    rig.lab.inside(Host::Dut, &["ip", "link", "delete", "eth2"]);
    rig.lab.inside(
        Host::Tester,
        &[
            "ip", "link", "add", "eth5", "type", "veth", "peer", "name", "eth6",
        ],
    );
    let (found, output) = found(&rig, 1);
    assert_eq!(found["from_dut"], Value::Null, "{found}");
    let remarks = found["remarks"].to_string();
    for expected in [
        "one cable was found, DUT's eth1 to tester's eth1",
        "tester's eth5 is cabled to tester's eth6",
    ] {
        assert!(remarks.contains(expected), "{remarks}");
    }
    assert!(
        text(&output).contains("write the ports that are missing"),
        "{}",
        text(&output)
    );
    let written = fs::read_to_string(file(&rig)).unwrap();
    assert!(
        written.contains("in = \"eth1\"\n# Not found: no port is left.\n"),
        "{written}"
    );
    assert!(
        written.contains("# Not found: one of eth5, eth6.\n# in = \"eth5\"\n"),
        "{written}"
    );
}

#[test]
fn behind_a_switch_cables_are_found_by_frames() {
    require_rig!();
    let rig = Rig::start();
    rig.lab.inside(Host::Dut, &["ip", "link", "delete", "eth2"]);
    let controller = rig.lab.controller_namespace();
    for (host, name) in [(Host::Dut, "to-eth2-d"), (Host::Tester, "to-eth2-t")] {
        let at = rig.lab.namespace(host);
        let cable = [
            "link",
            "add",
            "eth2",
            "netns",
            &at,
            "type",
            "veth",
            "peer",
            "name",
            name,
            "netns",
            &controller,
        ];
        testkit::succeed(Command::new("ip").args(cable));
        rig.lab.inside(host, &["ip", "link", "set", "eth2", "up"]);
    }
    let switch = "ip link add switch type bridge && for port in to-eth2-d to-eth2-t; do \
                  ip link set $port master switch up; done && ip link set switch up";
    testkit::succeed(rig.lab.controller("sh").args(["-c", switch]));
    let (found, output) = found(&rig, 0);
    assert_eq!(found["to_dut"]["by"], "link", "{found}");
    assert_eq!(found["from_dut"]["by"], "frames", "{found}");
    assert_eq!(found["from_dut"]["tester"], "eth2", "{found}");
    let said = text(&output);
    assert!(
        said.contains("DUT's eth2 receives frames of tester's eth2"),
        "{said}"
    );
    assert!(
        found["remarks"].to_string().contains("found by frames"),
        "{found}"
    );
    testkit::wait_until("the tester's process ends", || !rig.has_tester());
}

#[test]
fn a_search_that_cannot_be_made_says_why_and_changes_nothing() {
    require_rig!();
    let rig = Rig::start();
    let before = Host::ALL.map(|host| interfaces(&rig, host));
    let refused = |hosts: [&str; 2], arguments: &[&str], code: i32, expected: &str| {
        let output = lab_new(&rig, hosts).args(arguments).output().unwrap();
        let said = text(&output);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(expected), "{expected}: {said}");
        assert!(!file(&rig).exists(), "{said}");
    };
    let hosts = ["router", "tester"];
    // Not at a terminal: what would be set down is listed.
    let ports = "DUT's eth1, DUT's eth2, tester's eth1, tester's eth2; no terminal to ask at; pass --yes to agree";
    refused(hosts, &[], 2, ports);
    // What Linux would drop with a port is not put at risk.
    let inside = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        rig.lab.inside(Host::Dut, &words)
    };
    let set = "neigh add 192.0.2.9 lladdr 02:00:00:00:00:09 dev eth1 nud permanent";
    for (set, unset, why) in [
        (
            set,
            "neigh delete 192.0.2.9 dev eth1",
            "192.0.2.9 dev eth1 lladdr",
        ),
        (
            "neigh add proxy 2001:db8::9 dev eth1",
            "neigh delete proxy 2001:db8::9 dev eth1",
            "2001:db8::9 dev eth1 proxy",
        ),
        (
            "nexthop add id 7 dev eth1",
            "nexthop delete id 7",
            "id 7 dev eth1",
        ),
        (
            "address add fe80::9/64 dev eth1",
            "address delete fe80::9/64 dev eth1",
            "eth1 inet6 fe80::9/64",
        ),
    ] {
        inside(&format!("ip {set}"));
        let output = lab_new(&rig, hosts).output().unwrap();
        let said = text(&output);
        for expected in [
            "DUT's eth1 is not set down: Linux would drop \"",
            why,
            ": DUT's eth2, tester's eth1, tester's eth2; no terminal",
        ] {
            assert!(said.contains(expected), "{expected}: {said}");
        }
        inside(&format!("ip {unset}"));
    }
    refused(
        ["router", "router"],
        &["--yes"],
        3,
        "the DUT and the tester are the same machine",
    );
    refused(["router", "nowhere"], &["--yes"], 3, "nowhere");
    rig.lab
        .install(Host::Tester, "id", "#!/bin/sh\necho 1000\n");
    refused(
        hosts,
        &["--yes"],
        3,
        "it lets us in as user 1000, who may not set ports down; write root@tester",
    );
    rig.lab
        .install(Host::Tester, "uname", "#!/bin/sh\necho SunOS 5.11\n");
    refused(
        hosts,
        &["--yes"],
        3,
        "it runs SunOS 5.11; a lab's hosts run Linux or FreeBSD",
    );
    assert_eq!(Host::ALL.map(|host| interfaces(&rig, host)), before);
}

#[test]
fn a_killed_search_is_put_back() {
    require_rig!();
    let rig = Rig::start();
    // Set up by the search, and left so by a kill.
    rig.lab
        .inside(Host::Dut, &["ip", "link", "set", "eth2", "down"]);
    let before = Host::ALL.map(|host| flags(&rig, host));
    let mut command = lab_new(&rig, ["router", "tester"]);
    let child = command.arg("--yes").spawn().unwrap();
    let mut child = shared::wait_for_child("a port is set down", child, || {
        !is_up(&rig, Host::Tester, "eth1")
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_up(&rig, Host::Dut, "eth2"));
    let restored = rig.fwdlab(&["restore"]).output().unwrap();
    assert_eq!(restored.status.code(), Some(0), "{}", text(&restored));
    for expected in [
        "set back to up: eth1, left by ",
        "set back to down: eth2, left by ",
    ] {
        assert!(text(&restored).contains(expected), "{}", text(&restored));
    }
    assert_eq!(Host::ALL.map(|host| flags(&rig, host)), before);
    assert!(!file(&rig).exists());
}

fn flags(rig: &Rig, host: Host) -> String {
    rig.lab
        .inside(host, &["sh", "-c", "grep . /sys/class/net/*/flags"])
}

#[test]
fn a_freebsd_dut_whose_links_come_slowly_is_found() {
    require_rig!();
    let rig = freebsd::start();
    fs::write(rig.lab.home(Host::Dut).join("slow"), "3\n").unwrap();
    // One port has a domain of memory, the other one does not tell.
    fs::write(rig.lab.home(Host::Dut).join("domains"), "2\n").unwrap();
    // With IPv6 on a port, an address comes when it is set up.
    rig.ssh(
        Host::Dut,
        "ifconfig >/dev/null; rm /run/freebsd/eth1.ifdisabled",
    );
    rig.lab
        .inside(Host::Dut, &["ip", "link", "set", "eth1", "down"]);
    // One end that may not be set down: the other one is.
    rig.lab.inside(
        Host::Tester,
        &["ip", "address", "add", "192.0.2.1/24", "dev", "eth2"],
    );
    let (found, output) = found(&rig, 0);
    let said = text(&output);
    assert!(
        said.contains("DUT's eth2 down: the link of tester's eth2 drops"),
        "{said}"
    );
    assert_eq!(found["dut"]["system"], "freebsd", "{found}");
    assert_eq!(found["from_dut"]["tester"], "eth2", "{found}");
    let changes = freebsd::written(&rig, "changes");
    let changes: Vec<&str> = changes
        .lines()
        .filter(|line| line.starts_with("ifconfig"))
        .collect();
    assert_eq!(
        changes,
        [
            "ifconfig eth1 up",
            "ifconfig eth2 down",
            "ifconfig eth2 up",
            "ifconfig eth1 down",
            "ifconfig eth1 inet6 fe80::1%eth1 -alias"
        ]
    );
    let written = fs::read_to_string(file(&rig)).unwrap();
    for expected in [
        "kind = \"freebsd-ssh\"",
        "uses = \"fwdlab\"",
        "eth2: eth, 10 Gbit/s, near CPUs 4,5,6,7, ",
        "dev.eth.{1,2}.iflib.simple_tx",
    ] {
        assert!(written.contains(expected), "{expected}: {written}");
    }
    assert_eq!(written.matches("near CPUs").count(), 1, "{written}");
    assert_doctor_takes(&rig);
}
