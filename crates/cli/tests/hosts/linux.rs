//! Labs of hosts: a DUT and a tester in network namespaces, each with an OpenSSH server, and what fails there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::rig::{BLOCKS, Rig, assert_as_before};
use crate::shared::{self, FWDLAB, block_records, finish, records};
use testkit::{Host, text};

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
    // What the kernel would change along with `ip_forward`.
    let hardened = "echo 0 > /proc/sys/net/ipv4/conf/all/accept_redirects";
    rig.lab.inside(Host::Dut, &["sh", "-c", hardened]);
    let counters = "[dut]\ndrop_counters = [\"rx_queue_0_xdp_drops\"]\n";
    rig.change("hosts-lab.toml", "[dut]\n", counters);
    let before = rig.dut();
    let output = rig.run().output().unwrap();
    rig.assert_measured(&output, BLOCKS);
    assert_as_before(&rig, &before);

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
    // From here on it is known how long a run takes.
    let plan = rig
        .fwdlab(&["plan", "--json", "--results"])
        .arg(rig.results())
        .arg(rig.path("hosts.toml"))
        .output()
        .unwrap();
    let plan: serde_json::Value = serde_json::from_slice(&plan.stdout).unwrap();
    assert!(plan["duration_s"].as_f64().unwrap() > 1.0, "{plan}");
    let lint = rig.fwdlab(&["lint"]).arg(&directory).output().unwrap();
    assert_eq!(lint.status.code(), Some(0), "{}", text(&lint));
}

#[test]
fn connections_that_break_and_hosts_that_boot_cost_a_block_at_most() {
    require_rig!();
    let rig = Rig::start();
    // One that is disturbed by each fault, and one that is not.
    const BLOCKS: usize = 6;
    rig.change("hosts.toml", "blocks = 3", &format!("blocks = {BLOCKS}"));
    let before = rig.dut();
    let mut child = rig.run().spawn().unwrap();
    let faults: [&dyn Fn(); 5] = [
        &|| rig.lab.cut(Host::Dut),
        &|| rig.lab.cut(Host::Tester),
        // Nobody asked them to.
        &|| rig.lab.reboot(Host::Dut),
        &|| rig.lab.reboot(Host::Tester),
        // A control plane that has no time: what was under way is only late.
        &|| {
            rig.lab.silence(Host::Dut, true);
            thread::sleep(Duration::from_secs(5));
            rig.lab.silence(Host::Dut, false);
        },
    ];
    for (number, fault) in faults.into_iter().enumerate() {
        child = shared::wait_for_child("a block", child, || rig.blocks() > number);
        fault();
    }
    let output = finish(child);
    rig.assert_measured(&output, BLOCKS);
    assert_as_before(&rig, &before);
}

#[test]
fn a_killed_run_sends_nothing_more_and_is_put_back_and_continued() {
    require_rig!();
    let rig = Rig::start();
    let before = rig.dut();
    let plan = |directory: &Path| fs::read(directory.join("plan.json")).unwrap();
    let own_routes = || {
        rig.lab
            .inside(Host::Dut, &["ip", "route", "show", "proto", "196"])
    };
    let mut child = rig.begin("a block, and the next one's set-up", || {
        rig.blocks() > 0 && !own_routes().is_empty()
    });
    // The program is a child of the one that entered its namespace, or has taken its place.
    child.kill().unwrap();
    child.wait().unwrap();
    testkit::wait_until("the tester's process ends", || !rig.has_tester());
    let sent = rig.sent_frames();
    let planned = plan(&rig.directory());
    // Another controller has no journal, but finds the copy on the DUT.
    let elsewhere = |mut command: Command| {
        let state = rig.path("state-of-another");
        command.env("XDG_STATE_HOME", state).output().unwrap()
    };
    let refused = elsewhere(rig.run());
    assert_eq!(refused.status.code(), Some(3), "{}", text(&refused));
    let said = text(&refused);
    assert!(said.contains("has changes open there"), "{said}");
    let lab = rig.path("hosts-lab.toml");
    let lab = lab.to_str().unwrap();
    // Here each change stands in the journal and in its copy, and is told once, in words.
    let listed = rig.fwdlab(&["restore", "--list", lab]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let lines: Vec<&str> = listed
        .lines()
        .filter(|line| line.starts_with("  "))
        .collect();
    let changes: BTreeSet<&str> = lines
        .iter()
        .map(|line| line.split(", left by").next().unwrap())
        .collect();
    assert_eq!(changes.len(), lines.len(), "{listed}");
    assert!(!listed.contains("sh -c"), "{listed}");
    let both = ".jsonl and its copy there, /var/lib/fwdlab/copies/";
    assert_eq!(listed.matches(both).count(), 1, "{listed}");
    let forwarding = lines.iter().find(|line| line.contains("forwarding"));
    assert!(
        forwarding.is_some_and(|line| line.contains(": to be set back to 0")),
        "{listed}"
    );
    let listed = elsewhere(rig.fwdlab(&["restore", "--list", lab]));
    assert!(
        text(&listed).contains("copy of the journal"),
        "{}",
        text(&listed)
    );
    let restored = elsewhere(rig.fwdlab(&["restore", lab]));
    assert_eq!(restored.status.code(), Some(0), "{}", text(&restored));
    assert_as_before(&rig, &before);
    let listed = elsewhere(rig.fwdlab(&["restore", "--list", lab]));
    assert!(
        text(&listed).contains("nothing to restore"),
        "{}",
        text(&listed)
    );
    assert_eq!(rig.sent_frames(), sent);
    // The journal here does not know that it was done, and what the host was set to since stays.
    let forwarding = |script: &str| {
        let script = format!("{script} /proc/sys/net/ipv4/ip_forward");
        rig.lab.inside(Host::Dut, &["sh", "-c", &script])
    };
    forwarding("echo 1 >");
    let restored = rig.fwdlab(&["restore"]).output().unwrap();
    assert_eq!(restored.status.code(), Some(0), "{}", text(&restored));
    let by_another = "put back by another controller; nothing was changed";
    assert!(text(&restored).contains(by_another), "{}", text(&restored));
    assert_eq!(forwarding("cat").trim(), "1");
    forwarding("echo 0 >");
    assert_as_before(&rig, &before);
    let output = rig.run().output().unwrap();
    rig.assert_measured(&output, BLOCKS);
    assert!(text(&output).contains("going on in"), "{}", text(&output));
    assert_eq!(plan(&rig.directory()), planned);
    assert_as_before(&rig, &before);
}

#[test]
fn hosts_that_are_not_to_be_trusted_or_loaded_are_refused() {
    require_rig!();
    let rig = Rig::start();
    let before = rig.dut();
    let error = |mut command: Command, why: &str| {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", text(&output));
        let said = text(&output);
        let (_, error) = said.split_once("error: ").unwrap_or_default();
        assert!(error.contains(why), "{why}: {said}");
        error.to_owned()
    };
    let plan = || {
        let mut command = rig.fwdlab(&["plan"]);
        command.arg(rig.path("hosts.toml"));
        command
    };
    let refused = |why: &str| {
        error(rig.run(), why);
    };
    let refused_by_plan_too = |why: &str| {
        let of_a_run = error(rig.run(), why);
        // Which block it was that a plan does not come to.
        let of_a_run = of_a_run.trim_start_matches("block 1: ");
        assert_eq!(error(plan(), why), of_a_run);
    };
    rig.change("hosts-lab.toml", "out = \"eth1\"", "out = \"admin\"");
    refused_by_plan_too("admin: a default route leads through it");
    rig.lab
        .inside(Host::Tester, &["ip", "route", "delete", "default"]);
    refused("admin: ssh from 10.99.2.1 comes through it");
    rig.change("hosts-lab.toml", "out = \"admin\"", "out = \"eth1\"");
    rig.change("hosts-lab.toml", "in = \"eth1\"", "in = \"admin\"");
    refused("a default route leads through admin");
    rig.lab
        .inside(Host::Dut, &["ip", "route", "delete", "default"]);
    refused("ssh from 10.99.1.1 comes through admin");
    for (routes, why) in [
        (
            &["0.0.0.0/1 via 10.99.1.1", "128.0.0.0/1 via 10.99.1.1"][..],
            "the routes 0.0.0.0/1 and 128.0.0.0/1 lead through admin",
        ),
        (
            &["default table 100 via 10.99.1.1"],
            "a default route of table 100 leads through admin",
        ),
        (
            &["default nexthop dev lo nexthop via 10.99.1.1"],
            "a default route leads through admin",
        ),
    ] {
        let change = |what| {
            for route in routes {
                let words = ["ip", "route", what].into_iter();
                let words: Vec<&str> = words.chain(route.split(' ')).collect();
                rig.lab.inside(Host::Dut, &words);
            }
        };
        change("add");
        refused(why);
        change("delete");
    }
    rig.change("hosts-lab.toml", "in = \"admin\"", "in = \"eth1\"");
    // A port of a bridge, which has the address now.
    let bridge = "ip link add name bridge up type bridge && address=$(ip -o -4 address show dev admin | \
                  awk '{ print $4 }') && ip address add \"$address\" dev bridge && \
                  ip link set dev eth1 master bridge";
    rig.lab.inside(Host::Dut, &["sh", "-c", bridge]);
    refused("ssh from 10.99.1.1 comes through bridge on top of eth1");
    rig.lab
        .inside(Host::Dut, &["ip", "link", "delete", "bridge"]);
    rig.change("hosts-lab.toml", "in = \"eth1\"", "in = \"eth7\"");
    refused_by_plan_too("it has no interface eth7");
    rig.change("hosts-lab.toml", "in = \"eth7\"", "in = \"eth1\"");
    let counters = "[dut]\ndrop_counters = [\"no_such\"]\n";
    rig.change("hosts-lab.toml", "[dut]\n", counters);
    refused_by_plan_too("neither eth1 nor eth2 has a counter \"no_such\"");
    rig.change("hosts-lab.toml", counters, "[dut]\n");
    let uses = "host = \"tester\"\nuses = \"pkt-gen\"\n";
    rig.change("hosts-lab.toml", "host = \"tester\"\n", uses);
    refused_by_plan_too("a slice of 200 ms cannot be told");
    rig.change("hosts-lab.toml", uses, "host = \"tester\"\n");
    // As the kernel of a host answers that has no IPv6.
    let without = "#!/bin/sh\ncase $* in */net/ipv6/*) echo 'No such file' >&2; exit 1 ;; esac\n\
                   exec /bin/cat \"$@\"\n";
    rig.lab.put_program(Host::Dut, "cat", without).unwrap();
    rig.change("hosts.toml", "\"inet\"", "\"inet6\"");
    refused_by_plan_too("net/ipv6");
    rig.change("hosts.toml", "\"inet6\"", "\"inet\"");
    for host in [Host::Dut, Host::Tester] {
        let start_up = rig.lab.home(host).join(".bashrc");
        fs::write(&start_up, "echo hi\n").unwrap();
        let name = host.ssh_name();
        refused(&format!(
            "host {name}: its shell prints text at login (\"hi\")"
        ));
        fs::remove_file(start_up).unwrap();
    }
    rig.change(
        "hosts-lab.toml",
        "in = \"eth1\"\nout = \"eth2\"",
        "in = \"eth2\"\nout = \"eth1\"",
    );
    refused("the cables seem crossed: the tester's frames came in at eth1, the `out` of [dut]");
    rig.change(
        "hosts-lab.toml",
        "in = \"eth2\"\nout = \"eth1\"",
        "in = \"eth1\"\nout = \"eth2\"",
    );
    rig.lab.change_host_key(Host::Tester);
    refused("host tester: logging in: ssh failed");
    rig.lab.inside(
        Host::Dut,
        &["ip", "route", "add", "default", "via", "10.99.1.1"],
    );
    assert_as_before(&rig, &before);
}

#[test]
fn what_linux_would_drop_of_its_owners_is_refused_before_anything_is_changed() {
    require_rig!();
    let rig = Rig::start();
    let inside = |script: &str| rig.lab.inside(Host::Dut, &["sh", "-c", script]);
    rig.dut();
    for (set, unset, why) in [
        (
            "ip neigh add 192.0.2.9 lladdr 02:00:00:00:00:09 dev eth1 nud permanent",
            "ip neigh delete 192.0.2.9 dev eth1",
            "Linux drops \"192.0.2.9 dev eth1 lladdr 02:00:00:00:00:09 PERMANENT\"; give eth1 an IPv4 address",
        ),
        (
            "ip route add 203.0.113.0/24 dev eth2",
            "ip route delete 203.0.113.0/24 dev eth2",
            "Linux drops \"203.0.113.0/24 dev eth2 scope link\"",
        ),
        (
            "ip link set dev eth2 down && ip link add link eth2 name vmac type macvlan",
            "ip link delete vmac && ip link set dev eth2 up",
            "what vmac on top of it has; set it up before the run with `ip link set dev eth2 up`",
        ),
        (
            "ip link add name bridge type bridge && ip link set dev eth2 master bridge",
            "ip link delete bridge",
            "eth2 is a port of bridge, which takes the frames that come in there",
        ),
        (
            "ip address add 198.18.0.2/20 dev eth1",
            "ip address delete 198.18.0.2/20 dev eth1",
            "inet 198.18.0.2/20 scope global eth1\", and the lab needs 198.18.0.2/24",
        ),
        (
            "ip address add 198.18.0.9/16 dev eth1",
            "ip address delete 198.18.0.9/16 dev eth1",
            "through 198.18.0.1; delete the address 198.18.0.9 of eth1 for the run, which has brought that route",
        ),
        (
            "ip nexthop add id 7 dev eth2",
            "ip nexthop delete id 7",
            "it has the next hop \"id 7 dev eth2",
        ),
        (
            "ip route add 198.19.0.0/16 via 10.99.1.1",
            "ip route delete 198.19.0.0/16 via 10.99.1.1",
            "it has the route \"198.19.0.0/16 via 10.99.1.1 dev admin\" already, and the lab needs 198.19.0.0/16 through \
             198.19.0.1",
        ),
        (
            "ip address add 192.0.2.7/24 dev eth2 && \
             ip neigh add 198.19.0.1 lladdr 02:00:00:00:00:09 dev eth2 nud permanent",
            "ip neigh delete 198.19.0.1 dev eth2 && ip address delete 192.0.2.7/24 dev eth2",
            "delete it for the run with `ip neigh delete 198.19.0.1 dev eth2`",
        ),
    ] {
        inside(set);
        let state = || {
            inside(
                // Those that come by themselves come late.
                "ip -o address | grep -v ' fe80::'; ip neigh show nud permanent; ip neigh show proxy; ip route; \
                 cat /sys/class/net/eth?/flags",
            )
        };
        let before = state();
        let output = rig.run().output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{set}: {}", text(&output));
        assert!(text(&output).contains(why), "{why}: {}", text(&output));
        assert_eq!(state(), before, "{set}");
        inside(unset);
    }
    // What an owner may have beside the lab's stays.
    inside(
        "ip address add 192.0.2.7/24 dev eth1 && ip neigh add 192.0.2.9 lladdr 02:00:00:00:00:09 dev eth1 nud permanent && \
         ip neigh add proxy 192.0.2.8 dev eth1 && ip route add 203.0.113.0/24 dev eth1",
    );
    let before = rig.dut();
    let output = rig.run().output().unwrap();
    rig.assert_measured(&output, BLOCKS);
    assert_as_before(&rig, &before);
}

#[test]
fn a_cable_that_comes_out_invalidates_the_trial_and_a_port_that_is_set_down_ends_the_run() {
    require_rig!();
    let rig = Rig::start();
    rig.change("hosts.toml", "slice_ms = 200", "slice_ms = 2000");
    // More than all probes send.
    let is_loaded = |since: u64| rig.sent_frames() > since + 8000;
    let plug = |host, state| {
        rig.lab
            .inside(host, &["ip", "link", "set", "dev", "eth2", state])
    };
    let child = rig.begin("the load of a trial", || is_loaded(0));
    plug(Host::Tester, "down");
    plug(Host::Tester, "up");
    let child = shared::wait_for_child("two blocks", child, || rig.blocks() > 1);
    let output = finish(child);
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{}",
        text(&output)
    );
    let why = "the link of eth2 was lost under the load; check the cable";
    assert!(text(&output).contains(why), "{}", text(&output));
    let records = records(&rig.directory());
    let lost = shared::invalid_reasons(&records)
        .into_iter()
        .filter(|reason| reason["reason"] == "link-lost" && reason["ports"] == "eth2");
    assert_eq!(lost.count(), 1, "{records:?}");
    let mut blocks = block_records(&records).into_iter();
    assert!(blocks.any(|block| block["attempt"] == 2), "{records:?}");

    fs::remove_dir_all(rig.results()).unwrap();
    let since = rig.sent_frames();
    let child = rig.begin("the load of a trial", || is_loaded(since));
    plug(Host::Dut, "down");
    let output = finish(child);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    let why = "its port eth2 went down during the block; set it up (`ip link set dev eth2 up`";
    assert!(text(&output).contains(why), "{}", text(&output));
}

#[test]
fn what_bleeds_from_one_variant_to_the_next_is_reported() {
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

#[test]
fn what_a_program_left_running_on_a_host_ends_before_its_level_is_taken_back() {
    require_rig!();
    let rig = Rig::start();
    rig.change(
        "hosts-lab.toml",
        "> /run/fwdlab-test-$1\", \"{level}\"",
        "> /run/fwdlab-test-$1; setsid sh -c 'while sleep 0.05; do echo $1 > /run/testlab/stray; done' \
         > /dev/null 2>&1 &\", \"{level}\"",
    );
    rig.change(
        "hosts-lab.toml",
        "rm -f /run/fwdlab-test-$0",
        "rm -f /run/fwdlab-test-$0 /run/testlab/stray",
    );
    rig.change(
        "hosts.toml",
        "name = \"packet filter\"\nlevels = [\"none\", \"conntrack\"]\ndefault = \"none\"",
        "name = \"marker\"\nlevels = [\"a\", \"b\"]",
    );
    let stray = rig.lab.own_folder(Host::Dut).join("stray");
    let has_stray = || stray.exists();
    let assert_ended = |when: &str| {
        assert!(!has_stray(), "{when}");
        thread::sleep(Duration::from_millis(300));
        assert!(!has_stray(), "{when}: it still writes");
    };
    let mut child = rig.begin("something that it left running", has_stray);
    child.kill().unwrap();
    child.wait().unwrap();
    testkit::wait_until("the tester's process ends", || !rig.has_tester());
    assert!(has_stray());
    let restored = rig.fwdlab(&["restore"]).output().unwrap();
    assert_eq!(restored.status.code(), Some(0), "{}", text(&restored));
    assert!(
        text(&restored).contains("processes started by factor \"marker\" at level"),
        "{}",
        text(&restored)
    );
    assert_ended("a killed run");
    let output = rig.run().output().unwrap();
    rig.assert_measured(&output, BLOCKS);
    assert_ended("a run to its end");
}

#[test]
fn a_clock_that_jumps_changes_nothing() {
    require_rig!();
    testkit::require_tool!("faketime");
    let rig = Rig::start();
    // What it is told to be, read anew at every look.
    let clock = rig.path("clock");
    fs::write(&clock, "+0").unwrap();
    let mut command = rig.lab.controller("faketime");
    command
        .args(["-m", "-f", "+0", "env", "--unset=FAKETIME", FWDLAB, "run"])
        .arg(rig.path("hosts.toml"))
        .arg("--results")
        .arg(rig.results())
        .env("XDG_STATE_HOME", rig.path("state"))
        .env("FAKETIME_TIMESTAMP_FILE", &clock)
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    for (number, jump) in ["+400d", "-400d"].into_iter().enumerate() {
        child = shared::wait_for_child("a block", child, || rig.blocks() > number);
        fs::write(&clock, jump).unwrap();
    }
    let output = finish(child);
    rig.assert_measured(&output, BLOCKS);
    let years: BTreeSet<String> = block_records(&records(&rig.directory()))
        .iter()
        .filter_map(|block| Some(block["start"].as_str()?[..4].to_owned()))
        .collect();
    assert!(years.len() > 1, "the clock did not jump: {years:?}");
}

#[test]
fn the_doctor_tries_every_command_on_the_real_thing() {
    require_rig!();
    let rig = Rig::start();
    let before = rig.dut();
    let doctor = |arguments: &[&str]| {
        let mut command = rig.fwdlab(&["doctor"]);
        command
            .arg(rig.path("hosts-lab.toml"))
            .args(arguments)
            .arg("--results")
            .arg(rig.results());
        command.output().unwrap()
    };
    let output = doctor(&["--quick"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let said = text(&output);
    for expected in [
        "router: ssh: let in after",
        "router: nft list ruleset: works",
        "router: ports: eth1",
        "router: boot loader: GRUB in /boot/grub",
        "router: CPUs: can be watched under the load",
        "router: profiles: its kernel's stacks can be sampled",
        "router: XDP: its kernel takes the forwarder",
        "tester: ssh: let in after",
        "tester: its program runs there",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    assert_as_before(&rig, &before);
    // What a host lacks is named, with what is lost.
    rig.change("hosts-lab.toml", "out = \"eth2\"", "out = \"admin\"");
    rig.lab.stop(Host::Tester);
    let output = doctor(&["--quick", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = found["findings"].as_array().unwrap();
    let fatal: Vec<&str> = findings
        .iter()
        .filter(|finding| finding["state"] == "fatal")
        .map(|finding| finding["check"].as_str().unwrap())
        .collect();
    assert_eq!(fatal, ["router: ports", "tester: ssh"], "{found:#}");
}

#[test]
fn a_dut_without_nft_is_measured_in_what_needs_none() {
    require_rig!();
    let rig = Rig::start();
    // As a host answers that has none.
    let missing = "#!/bin/sh\necho 'nft: not found' >&2\nexit 127\n";
    rig.lab.put_program(Host::Dut, "nft", missing).unwrap();
    let variants = "[[factor]]\nname = \"marker\"\nlevels = [\"a\", \"b\"]\n\n\
                    [[variant]]\nlabel = \"plain\"\n\n\
                    [[variant]]\nlabel = \"tracked\"\nlevels = { \"packet filter\" = \"conntrack\" }\n\n\
                    [[variant]]\nlabel = \"marked\"\nlevels = { marker = \"b\" }\n\n[settings]\n";
    rig.change("hosts.toml", "[settings]\n", variants);
    let output = rig.run().output().unwrap();
    rig.assert_measured(&output, BLOCKS);
    let said = text(&output);
    assert!(
        said.contains(
            "not run: tracked: host router: nft is not installed, but factor \"packet filter\" at level \"conntrack\" \
             needs it; install nft"
        ),
        "{said}"
    );
    assert!(said.contains("marked\n"), "{said}");
    let readme = fs::read_to_string(rig.directory().join("README.md")).unwrap();
    assert!(readme.contains("the nft ruleset (no nft)"), "{readme}");
}
