//! `fwdlab gen` and `fwdlab sink` at the two ends of a cable, with and without a router in between.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs::{self, File, Permissions};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_sys::NetworkNamespace;
use serde_json::Value;

const FWDLAB: &str = env!("CARGO_BIN_EXE_fwdlab");

/// The generator's end and its address.
const NEAR: &str = "near";
const NEAR_MAC: &str = "02:00:00:00:00:01";
/// The sink's.
const FAR: &str = "far";
const FAR_MAC: &str = "02:00:00:00:00:02";
/// That of an interface on top of it.
const TOP_MAC: &str = "02:00:00:00:00:03";
/// The router's two ports, where there is one.
const ROUTER_IN_MAC: &str = "02:00:00:00:00:11";
const ROUTER_OUT_MAC: &str = "02:00:00:00:00:12";

/// Who is nobody in particular, on every system.
const NOBODY: u32 = 65534;

/// Two interfaces in a namespace, joined by a cable or by a router.
struct Bench {
    namespace: NetworkNamespace,
    _router: Option<NetworkNamespace>,
    // Tests of other programs want the same CPU; it is this one's until the file is dropped.
    _machine: File,
}

impl Bench {
    /// One cable, whose far end polls if the generator's XDP frames are to get through.
    fn with_cable(far_end_polls: bool) -> Self {
        let machine = own_the_machine();
        let namespace = NetworkNamespace::create("gensink").unwrap();
        let lay = || {
            let peer = ["peer", "name", FAR, "address", FAR_MAC];
            let pair = ["link", "add", NEAR, "address", NEAR_MAC, "type", "veth"];
            ip(&[&pair[..], &peer[..]].concat());
            if far_end_polls {
                fwdlab_sys::enable_gro(FAR).unwrap();
            }
            set_up(NEAR);
            set_up(FAR);
        };
        namespace.run(lay).unwrap();
        Self {
            namespace,
            _router: None,
            _machine: machine,
        }
    }

    /// A router of the kernel's, in a namespace of its own.
    fn with_router() -> Self {
        let machine = own_the_machine();
        let namespace = NetworkNamespace::create("gensink").unwrap();
        let router = NetworkNamespace::create("gensink-router").unwrap();
        let tester = namespace.name();
        let lay = || {
            for (port, port_mac, end, end_mac) in [
                ("r0", ROUTER_IN_MAC, NEAR, NEAR_MAC),
                ("r1", ROUTER_OUT_MAC, FAR, FAR_MAC),
            ] {
                let peer = ["peer", "name", end, "address", end_mac, "netns", tester];
                let pair = ["link", "add", port, "address", port_mac, "type", "veth"];
                ip(&[&pair[..], &peer[..]].concat());
                fwdlab_sys::enable_gro(port).unwrap();
                set_up(port);
            }
            for file in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
                fs::write(format!("/proc/sys/net/{file}"), "1").unwrap();
            }
            for (version, sources, destinations, hop) in [
                ("-4", "198.18.10.0/24", "198.19.10.0/24", "198.19.255.1"),
                (
                    "-6",
                    "2001:2:0:10::/64",
                    "2001:2:0:8010::/64",
                    "2001:2:0:ffff::1",
                ),
            ] {
                let route = |to: &str, port| ip(&[version, "route", "add", to, "dev", port]);
                route(sources, "r0");
                route(hop, "r1");
                let via = ["via", hop, "dev", "r1"];
                ip(&[&[version, "route", "add", destinations], &via[..]].concat());
                let neighbour = ["neigh", "add", hop, "lladdr", FAR_MAC, "dev", "r1"];
                ip(&[&[version], &neighbour[..]].concat());
            }
        };
        router.run(lay).unwrap();
        let lay = || {
            set_up(NEAR);
            set_up(FAR);
        };
        namespace.run(lay).unwrap();
        Self {
            namespace,
            _router: Some(router),
            _machine: machine,
        }
    }

    /// Starts a command line in the namespace.
    fn start(&self, arguments: &str) -> Running {
        let mut command = Command::new(FWDLAB);
        command.args(arguments.split_whitespace());
        self.start_command(&mut command)
    }

    fn start_command(&self, command: &mut Command) -> Running {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Running(Some(
            self.namespace.run(|| command.spawn()).unwrap().unwrap(),
        ))
    }

    fn run(&self, arguments: &str) -> Output {
        self.start(arguments).wait()
    }
}

fn own_the_machine() -> File {
    let path = std::env::temp_dir().join("fwdlab-tests-own-the-machine");
    let machine = File::create(path).unwrap();
    machine.lock().unwrap();
    machine
}

/// Without an address, so that it sends nothing of its own.
fn set_up(interface: &str) {
    ip(&["link", "set", interface, "addrgenmode", "none", "up"]);
}

fn ip(arguments: &[&str]) -> String {
    let output = Command::new("ip").args(arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments:?}: {stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A program that is killed where the test gives up on it.
struct Running(Option<Child>);

impl Running {
    fn child(&mut self) -> &mut Child {
        self.0.as_mut().unwrap()
    }

    /// Waits for what is said once all is in place.
    fn wait_for_introduction(&mut self) {
        let mut stderr = BufReader::with_capacity(1, self.child().stderr.as_mut().unwrap());
        let mut line = String::new();
        while !line.ends_with("Ctrl-C ends it\n") {
            line.clear();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "it has ended");
        }
    }

    /// Waits for so many lines of results.
    fn wait_for_lines(&mut self, lines: usize) {
        let mut stdout = BufReader::with_capacity(1, self.child().stdout.as_mut().unwrap());
        for _ in 0..lines {
            let mut line = String::new();
            assert!(stdout.read_line(&mut line).unwrap() > 0, "it has ended");
        }
    }

    fn signal(&mut self, signal: &str) {
        testkit::signal(self.child().id(), signal);
    }

    fn wait(mut self) -> Output {
        let start = Instant::now();
        let mut child = self.0.take().unwrap();
        // Little enough is printed that it does not wait for a reader.
        while child.try_wait().unwrap().is_none() {
            if start.elapsed() > Duration::from_secs(60) {
                child.kill().unwrap();
                panic!(
                    "it does not end: {}",
                    text(&child.wait_with_output().unwrap())
                );
            }
            sleep(Duration::from_millis(5));
        }
        child.wait_with_output().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn text(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    format!("{}\n{stdout}{stderr}", output.status)
}

fn assert_ends(output: &Output, code: i32, parts: &[&str]) {
    let text = text(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

/// The seconds and the summary.
fn records(output: &Output) -> (Vec<Value>, Value) {
    let stdout = std::str::from_utf8(&output.stdout).unwrap();
    let lines = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let mut seconds: Vec<Value> = lines.collect();
    let summary = seconds.pop().unwrap_or_else(|| panic!("{}", text(output)));
    assert_eq!(summary["record"], "summary", "{}", text(output));
    assert!(seconds.iter().all(|second| second["record"] == "second"));
    (seconds, summary)
}

fn frames(record: &Value, key: &str) -> u64 {
    let frames = record[key].as_u64();
    frames.unwrap_or_else(|| panic!("no {key} in {record}"))
}

/// Sends for a second and counts with the same options; the summaries of both ends.
fn send_and_count(bench: &Bench, options: &str, sender: &str, sink: &str) -> (Value, Value) {
    let mut counting = bench.start(&format!("sink {FAR} --json {sink} {options}"));
    counting.wait_for_introduction();
    let sent = bench.run(&format!("gen {NEAR} --json --time 1 {sender} {options}"));
    assert_ends(&sent, 0, &[]);
    // Frames that are on their way.
    sleep(Duration::from_millis(300));
    counting.signal("-INT");
    let counted = counting.wait();
    assert_ends(&counted, 0, &[]);
    let (seconds, sent) = records(&sent);
    assert_eq!(seconds.len(), 1);
    assert!(frames(&seconds[0], "offered_frames") <= frames(&sent, "offered_frames"));
    assert!(seconds[0]["layer_1_mbps"].as_f64() > seconds[0]["layer_2_mbps"].as_f64());
    let (seconds, counted) = records(&counted);
    let in_seconds: u64 = seconds
        .iter()
        .map(|second| frames(second, "forwarded_frames"))
        .sum();
    assert!(in_seconds <= frames(&counted, "forwarded_frames"));
    (sent, counted)
}

/// Every frame is accounted for, and none is wrong.
fn assert_conserved(sent: &Value, counted: &Value) {
    let offered = frames(sent, "offered_frames");
    assert!(offered > 0);
    assert_eq!(
        offered,
        frames(counted, "forwarded_frames") + frames(sent, "not_transmitted_frames"),
        "{sent}\n{counted}"
    );
    assert!(frames(counted, "checked_frames") > 0);
    assert_eq!(counted["wrong_frames"], serde_json::json!({}), "{counted}");
}

#[test]
fn every_frame_that_is_sent_is_counted_and_verified() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let bench = Bench::with_cable(true);
    let (to, from) = (format!("--to {FAR_MAC}"), format!("--from {NEAR_MAC}"));
    for (options, sender, name) in [
        ("", "", "ebpf"),
        (
            "--family inet6 --frame-size imix",
            "--pps 20000 --burst 8",
            "ebpf",
        ),
        (
            "--sources 256 --destinations 256 --source-address 10.0.0.1 --frame-size 100:3,1518:1",
            "--cpu 0",
            "ebpf",
        ),
        // Up to the last addresses before those that no router forwards.
        (
            "--source-address 126.255.255.252 --sources 4 --destination-address 223.255.255.236 --destinations 20",
            "",
            "ebpf",
        ),
        (
            "--family inet6 --source-ports 1000-1009 --destination-ports 53 --sources 1",
            "--sender tx-ring",
            "tx-ring",
        ),
        (
            "--frame-size imix",
            "--cpus 1,0 --pps 20001 --burst 8",
            "ebpf",
        ),
    ] {
        let (sent, counted) = send_and_count(&bench, options, &format!("{to} {sender}"), &from);
        assert_conserved(&sent, &counted);
        assert_eq!(sent["sender"], name);
        assert_eq!(frames(&counted, "foreign_frames"), 0);
        assert_eq!(sent["family"], counted["family"]);
        assert_eq!(sent["flows"], counted["flows"]);
    }
}

#[test]
fn a_router_in_between_is_verified() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let bench = Bench::with_router();
    for family in ["inet", "inet6"] {
        let options = format!("--family {family} --frame-size imix");
        let sender = format!("--to {ROUTER_IN_MAC} --pps 5000");
        let sink = format!("--from {ROUTER_OUT_MAC} --routed");
        let (sent, counted) = send_and_count(&bench, &options, &sender, &sink);
        assert_conserved(&sent, &counted);
        assert_eq!(sent["intended_load_pps"], 5000);
    }
}

#[test]
fn wrong_frames_are_named_and_change_the_exit_code() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let bench = Bench::with_cable(true);
    let mut sending = bench.start(&format!("gen {NEAR} --to {FAR_MAC} --pps 20000"));
    sending.wait_for_introduction();
    for (options, parts) in [
        (
            "--from 02:00:00:00:00:99",
            &["WRONG (MAC address: ", "--from is that of the port"][..],
        ),
        (
            "--from 02:00:00:00:00:01 --routed",
            &["WRONG (TTL: ", "is there exactly one router in between?"],
        ),
        (
            "--from 02:00:00:00:00:01 --source-address 10.0.0.1",
            &["WRONG (flow: ", "give both ends the same traffic options"],
        ),
        (
            "--from 02:00:00:00:00:01 --frame-size 65",
            &["WRONG (length: ", "the same --frame-size"],
        ),
        (
            "--from 02:00:00:00:00:01 --family inet6",
            &["NOTHING VERIFIED", " foreign frames"],
        ),
    ] {
        let counted = bench.run(&format!("sink {FAR} --time 1 {options}"));
        assert_ends(&counted, 1, parts);
    }
    let counted = bench.run(&format!(
        "sink {FAR} --from {NEAR_MAC} --time 1 --routed --json"
    ));
    let (_, summary) = records(&counted);
    assert_eq!(summary["vlan"], Value::Null);
    let wrong = frames(&summary["wrong_frames"], "TTL");
    assert_eq!(wrong, frames(&summary, "checked_frames"));
    sending.signal("-TERM");
    let parts = ["offered ", "transmitted ", "as near counts"];
    assert_ends(&sending.wait(), 0, &parts);
}

#[test]
fn a_signal_ends_both_and_leaves_nothing() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let bench = Bench::with_cable(true);
    for (signal, time, code) in [
        ("-INT", "", 0),
        ("-TERM", "", 0),
        ("-INT", "--time 600", 130),
    ] {
        let mut counting = bench.start(&format!("sink {FAR} --from {NEAR_MAC} {time}"));
        counting.wait_for_introduction();
        let shown = || ip(&["link", "show", FAR]);
        assert!(bench.namespace.run(shown).unwrap().contains("xdp"));
        let mut sending = bench.start(&format!("gen {NEAR} --to {FAR_MAC} --pps 1000 {time}"));
        sending.wait_for_introduction();
        counting.wait_for_lines(2);
        sending.signal(signal);
        assert_ends(&sending.wait(), code, &["offered "]);
        counting.signal(signal);
        assert_ends(&counting.wait(), code, &[": 0 wrong"]);
        assert!(!bench.namespace.run(shown).unwrap().contains("xdp"));
    }
}

#[test]
fn a_reader_that_has_seen_enough_ends_it() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let bench = Bench::with_cable(true);
    let mut sending = bench.start(&format!("gen {NEAR} --to {FAR_MAC} --pps 1000"));
    sending.wait_for_lines(1);
    drop(sending.child().stdout.take());
    assert_ends(&sending.wait(), 0, &[]);
}

#[test]
fn the_interface_of_a_default_route_is_refused() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let bench = Bench::with_cable(true);
    let route = || {
        ip(&["address", "add", "192.0.2.1/24", "dev", NEAR]);
        ip(&["route", "add", "default", "via", "192.0.2.2"]);
    };
    bench.namespace.run(route).unwrap();
    for arguments in [
        format!("gen {NEAR} --to {FAR_MAC}"),
        format!("gen {NEAR} --to {FAR_MAC} --sender sendmmsg"),
        format!("sink {NEAR} --from {FAR_MAC}"),
    ] {
        let output = bench.run(&arguments);
        assert_ends(&output, 2, &["near: a default route leads through it"]);
        assert!(output.stdout.is_empty());
    }
    // What a sink at the other end takes is what leaves by the route.
    let output = bench.run(&format!("sink {FAR} --from {NEAR_MAC} --time 0.1"));
    assert_ends(&output, 2, &["far: a default route leads through near"]);
}

#[test]
fn an_interface_that_goes_ends_both() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let bench = Bench::with_cable(true);
    let mut counting = bench.start(&format!("sink {FAR} --from {NEAR_MAC}"));
    counting.wait_for_introduction();
    let mut sending = bench.start(&format!("gen {NEAR} --to {FAR_MAC} --pps 1000"));
    sending.wait_for_introduction();
    let delete = || ip(&["link", "delete", NEAR]);
    bench.namespace.run(delete).unwrap();
    assert_ends(&counting.wait(), 3, &["error: far: it was removed"]);
    assert_ends(&sending.wait(), 3, &["error: near: it was removed"]);
}

#[test]
fn a_driver_without_xdp_counts_by_generic_xdp_and_one_sink_is_enough() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let bench = Bench::with_cable(true);
    let lay = || {
        let on_far = [
            "link", "add", "link", FAR, "name", "top", "address", TOP_MAC,
        ];
        ip(&[&on_far[..], &["type", "macvlan", "mode", "private"]].concat());
        set_up("top");
    };
    bench.namespace.run(lay).unwrap();
    let sink = format!("sink top --from {NEAR_MAC}");
    let mut counting = bench.start(&sink);
    counting.wait_for_introduction();
    let again = bench.run(&sink);
    assert_ends(
        &again,
        3,
        &["another XDP program is attached to the interface"],
    );
    let sent = bench.run(&format!(
        "gen {NEAR} --to {TOP_MAC} --time 1 --pps 1000 --sender sendmmsg"
    ));
    assert_ends(&sent, 0, &["by a packet socket (sendmmsg)"]);
    counting.signal("-INT");
    assert_ends(&counting.wait(), 0, &["flows: 0 wrong"]);
    let counted = bench.run(&format!("{sink} --time 0.1"));
    assert_ends(&counted, 1, &["counted by generic XDP"]);
}

#[test]
fn what_no_other_station_or_router_would_get_is_refused() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let bench = Bench::with_cable(true);
    let (to, from) = (format!("--to {FAR_MAC}"), format!("--from {NEAR_MAC}"));
    for (options, part) in [
        (
            "--destination-address 223.255.255.250 --destinations 20",
            "error: --destination-address: no router forwards 224.0.0.0, one of the 20 addresses from 223.255.255.250",
        ),
        (
            "--source-address 126.255.255.254 --sources 4",
            "error: --source-address: no router forwards 127.0.0.0, one of the 4 addresses from 126.255.255.254",
        ),
        (
            "--family inet6 --destination-address fe7f:ffff:ffff:ffff:ffff:ffff:ffff:fff0",
            "error: --destination-address: no router forwards fe80::, one of the 100 addresses from fe7f:",
        ),
        (
            "--destination-address 198.18.10.20",
            "error: --source-address, --destination-address: sources (198.18.10.1 to 198.18.10.20) and destinations",
        ),
        ("--family inet6 --frame-size 65", "error: --frame-size: "),
    ] {
        for command in [format!("gen {NEAR} {to}"), format!("sink {FAR} {from}")] {
            let refused = bench.run(&format!("{command} --time 1 {options}"));
            assert_ends(&refused, 2, &[part]);
            assert!(refused.stdout.is_empty(), "{}", text(&refused));
        }
    }
    for command in [
        format!("gen {NEAR} --to {NEAR_MAC}"),
        format!("sink {NEAR} --from {NEAR_MAC}"),
    ] {
        let refused = bench.run(&command);
        assert_ends(
            &refused,
            2,
            &["error: near: 02:00:00:00:00:01 is its own MAC address"],
        );
    }
}

#[test]
fn another_tag_than_expected_is_said_to_be_one() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let bench = Bench::with_cable(true);
    for (sent, expected, parts) in [
        (
            "--vlan 100",
            "--vlan 101",
            &["WRONG (checksum or content: ", "the same --vlan"][..],
        ),
        ("", "--vlan 101", &["WRONG (length: ", "and --vlan"]),
        ("--vlan 100", "", &[" foreign frames", "the same --vlan"]),
    ] {
        let mut sending = bench.start(&format!("gen {NEAR} --to {FAR_MAC} --pps 20000 {sent}"));
        sending.wait_for_introduction();
        let counted = bench.run(&format!("sink {FAR} --from {NEAR_MAC} --time 1 {expected}"));
        assert_ends(&counted, 1, parts);
        sending.signal("-TERM");
        assert_ends(&sending.wait(), 0, &["offered "]);
    }
    let sent = bench.run(&format!(
        "gen {NEAR} --to {FAR_MAC} --pps 1000 --time 1 --vlan 100 --json"
    ));
    let (_, summary) = records(&sent);
    assert_eq!(summary["vlan"], 100);
}

#[test]
fn what_cannot_be_used_says_what_to_do() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let bench = Bench::with_cable(false);
    // The far end does not poll, so the next sender is taken, unless one was asked for.
    let sent = bench.run(&format!("gen {NEAR} --to {FAR_MAC} --time 1"));
    assert_ends(
        &sent,
        0,
        &[
            "not eBPF live frames: near: transmitted none of",
            "by an AF_XDP socket",
        ],
    );
    let sent = bench.run(&format!("gen {NEAR} --to {FAR_MAC} --time 1 --sender ebpf"));
    assert_ends(&sent, 3, &["ethtool -K PEER gro on", "--sender tx-ring"]);

    for (cpus, said) in [
        ("--cpus 0,0", "--cpus: CPU 0 is named twice; leave one out"),
        ("--cpus 0,8000", "--cpus 8000: there is no such CPU online"),
        ("--cpus 0 --cpu 0", "cannot be used with"),
        (
            "--cpus 0,1 --sources 1 --destinations 1",
            "more CPUs are to send (2) than there are flows (1)",
        ),
        (
            "--cpus 0,1 --pps 1",
            "1 a second are too few frames for 2 CPUs",
        ),
    ] {
        let sent = bench.run(&format!("gen {NEAR} --to {FAR_MAC} --time 1 {cpus}"));
        assert_ends(&sent, 2, &[said]);
    }

    let set_down = || ip(&["link", "set", FAR, "down"]);
    bench.namespace.run(set_down).unwrap();
    let sent = bench.run(&format!("gen {NEAR} --to {FAR_MAC}"));
    assert_ends(&sent, 3, &["error: near: it has no carrier"]);
    let counted = bench.run(&format!("sink {FAR} --from {NEAR_MAC}"));
    assert_ends(
        &counted,
        3,
        &["error: far: it is down", "ip link set dev far up"],
    );
    let counted = bench.run(&format!("sink nowhere --from {NEAR_MAC}"));
    assert_ends(&counted, 2, &["error: nowhere: there is no such interface"]);
}

#[test]
fn an_ordinary_user_is_told_to_be_root() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let bench = Bench::with_cable(true);
    // Where nobody may execute it, whoever has built it and wherever.
    let scratch = tempfile::tempdir().unwrap();
    fs::set_permissions(scratch.path(), Permissions::from_mode(0o755)).unwrap();
    let program = scratch.path().join("fwdlab");
    fs::copy(FWDLAB, &program).unwrap();
    for arguments in [
        ["gen", NEAR, "--to", FAR_MAC],
        ["sink", FAR, "--from", NEAR_MAC],
    ] {
        let mut command = Command::new(&program);
        command.args(arguments).uid(NOBODY).gid(NOBODY);
        let output = bench.start_command(&mut command).wait();
        assert_ends(&output, 3, &["error: ", "run as root (sudo)"]);
    }
}
