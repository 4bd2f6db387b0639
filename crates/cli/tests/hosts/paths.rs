//! Labs of hosts whose DUT forwards in other ways: by XDP, with more routes, in both directions.

use std::fs;
use std::path::Path;

use crate::rig::{BLOCKS, Rig, assert_as_before};
use crate::shared::{REPOSITORY, block_records, records, trial_records};
use testkit::{Host, text};

/// Frames of both directions, which the kernel forwards, or XDP beside many routes.
fn start_with_paths() -> Rig {
    let rig = Rig::start();
    rig.change(
        "hosts.toml",
        "name = \"packet filter\"\nlevels = [\"none\", \"conntrack\"]\ndefault = \"none\"",
        "name = \"forwarding path\"\nlevels = [\"kernel\", \"XDP\"]\n\n\
         [[factor]]\nname = \"routes\"\nlevels = [2, 1000]\n\n\
         [[variant]]\nlabel = \"kernel\"\n\n\
         [[variant]]\nlabel = \"XDP\"\nlevels = { \"forwarding path\" = \"XDP\", routes = 1000 }\n",
    );
    rig.change(
        "hosts.toml",
        "families = [\"inet\"]",
        "families = [\"inet6\"]\ndirection = \"both\"",
    );
    rig.send_from_two_cpus();
    // The sink counts elsewhere, for all that fwdlab sees, so that what goes back has the same two CPUs.
    rig.change(
        "hosts-lab.toml",
        "out = \"eth1\"\nin = \"eth2\"\n",
        "out = \"eth1\"\n\n[receiver]\nhost = \"tester\"\nin = \"eth2\"\n",
    );
    rig.change(
        "hosts-lab.toml",
        "[bind.\"rp_filter\"]",
        "[bind]\n\"forwarding path\" = { xdp = { kernel = \"off\", XDP = \"fib\" } }\n\
         routes = { routes = true }\n\n[bind.\"rp_filter\"]",
    );
    rig
}

#[test]
fn frames_go_both_ways_by_xdp_too_and_past_many_routes() {
    require_rig!();
    let rig = start_with_paths();
    // A network of the owner's that the routes of the experiment have to leave alone: they would begin with it.
    let own = ["ip", "route", "add", "2000::/16", "dev", "admin"];
    rig.lab.inside(Host::Dut, &own);
    // One that the kernel would change along with all others, and a port that its owner has left down.
    let own = "echo 1 > /proc/sys/net/ipv6/conf/default/forwarding && ip link set dev eth1 down";
    rig.lab.inside(Host::Dut, &["sh", "-c", own]);
    let before = rig.dut();
    let show = |words: &[&str]| rig.lab.inside(Host::Dut, words);
    let has_program = || show(&["ip", "-d", "link", "show", "dev", "eth2"]).contains("prog/xdp");
    let mut child = rig.begin("XDP forwards", || rig.blocks() > 0 && has_program());
    child.kill().unwrap();
    child.wait().unwrap();
    testkit::wait_until("the forwarder goes with the run", || !has_program());
    let restored = rig.fwdlab(&["restore"]).output().unwrap();
    assert_eq!(restored.status.code(), Some(0), "{}", text(&restored));
    assert_as_before(&rig, &before);

    let output = rig.run().output().unwrap();
    rig.assert_measured(&output, BLOCKS);
    assert_as_before(&rig, &before);
    let directory = rig.directory();
    let records = records(&directory);
    for trial in trial_records(&records) {
        // Half of 10,000 frames a second each way; what was late on a busy machine is sent behind.
        let offered = trial["offered_frames"].as_f64().unwrap();
        let measured_s = trial["measured_s"].as_f64().unwrap();
        assert!(offered / measured_s < 15_000.0, "{trial}");
    }
    for block in block_records(&records) {
        let frames = &block["conservation"]["inet6"];
        assert_eq!(frames["unaccounted_frames"], 0, "{frames}");
        let seen = &frames["verification"];
        assert_eq!(seen["wrong_frames"], serde_json::json!({}));
        assert!(seen["checked_frames"].as_u64() > Some(0), "{frames}");
        let facts = block["differing_facts"]["xdp"].as_object().unwrap();
        let names: Vec<&String> = facts.keys().collect();
        let expected = [
            "XDP program eth1",
            "XDP program eth2",
            "routes of the experiment inet6",
        ];
        assert_eq!(names, expected);
        assert_eq!(facts["routes of the experiment inet6"], "998");
        let program = facts["XDP program eth2"].as_str().unwrap();
        assert!(program.starts_with("forward (tag "), "{program}");
    }
    let readme = fs::read_to_string(directory.join("README.md")).unwrap();
    assert!(readme.contains("in both directions"), "{readme}");
    assert!(
        readme.contains("| CPUs that send what goes back | 1, 0 |"),
        "{readme}"
    );
}

/// Has an experiment compare the levels `none` and `v1` of programs of an object.
fn compare_programs(rig: &Rig, object: &str, binding: &str) {
    let objects = Path::new(REPOSITORY).join("crates/testkit/bpf");
    fs::copy(objects.join(object), rig.path(object)).unwrap();
    rig.change(
        "hosts.toml",
        "name = \"packet filter\"\nlevels = [\"none\", \"conntrack\"]\ndefault = \"none\"",
        "name = \"program\"\nlevels = [\"none\", \"v1\"]\ndefault = \"none\"",
    );
    rig.change(
        "hosts-lab.toml",
        "[bind.\"rp_filter\"]",
        &format!("[bind.\"program\"]\n{binding}\n\n[bind.\"rp_filter\"]"),
    );
}

#[test]
fn an_xdp_program_of_the_owners_forwards_and_what_the_verifier_refuses_is_shown() {
    require_rig!();
    let rig = Rig::start();
    let object = "xdp_router.bpf.o";
    let maps = r#"[{ "key": 1, "value": "{dut-out}" }]"#;
    fs::write(rig.path("ports.json"), maps).unwrap();
    let binding = format!(
        "xdp = {{ none = \"off\", v1 = {{ object = {object:?}, program = \"by_port\", interfaces = [\"dut-in\", \
         \"dut-out\"], maps = {{ ports = \"ports.json\" }} }}, bad = {{ object = {object:?}, program = \"is_refused\" }} }}"
    );
    compare_programs(&rig, object, &binding);
    let output = rig.run().output().unwrap();
    rig.assert_measured(&output, BLOCKS);
    for block in block_records(&records(&rig.directory())) {
        let facts = block["differing_facts"].as_object().unwrap();
        let mut programs = facts.values().map(|facts| &facts["XDP program eth1"]);
        let is_there = programs.any(|program| program.to_string().contains("by_port (tag "));
        assert!(is_there, "{block}");
    }

    let state = tempfile::tempdir().unwrap();
    let levels = "levels = [\"none\", \"v1\"]";
    rig.change("hosts.toml", levels, "levels = [\"none\", \"v1\", \"bad\"]");
    let plan = rig
        .fwdlab(&["plan"])
        .arg(rig.path("hosts.toml"))
        .env("XDG_STATE_HOME", state.path())
        .output()
        .unwrap();
    // Lines are as long as a terminal is wide.
    let said = text(&plan);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "the kernel's verifier refuses program is_refused; its last lines:",
        "invalid access to packet",
        "(all of it: ",
    ] {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
    let (_, log) = said.split_once("(all of it: ").unwrap();
    let (log, _) = log.split_once(')').unwrap();
    let log = fs::read_to_string(log).unwrap();
    assert!(log.starts_with("0: "), "{log}");

    let show = |words: &[&str]| rig.lab.inside(Host::Dut, words);
    let path = rig.path(object);
    let path = path.to_str().unwrap();
    show(&[
        "ip",
        "link",
        "set",
        "dev",
        "eth1",
        "xdpgeneric",
        "obj",
        path,
        "program",
        "plain",
    ]);
    let refused = text(&rig.run().output().unwrap());
    let expected = "eth1 has an XDP program already (plain); take it off before the run";
    assert!(refused.contains(expected), "{refused}");
}

#[test]
fn a_tc_program_of_the_owners_is_compared_and_taken_away() {
    require_rig!();
    let rig = Rig::start();
    let object = "tc_pass.bpf.o";
    // Each takes the other's place: at a hook there is a program, and none.
    let tcx = "{ object = \"tc_pass.bpf.o\", hook = \"egress\", attach = \"tcx\" }";
    let binding = format!("tc = {{ none = {tcx}, v1 = \"tc_pass.bpf.o\" }}");
    compare_programs(&rig, object, &binding);
    let show = |words: &[&str]| rig.lab.inside(Host::Dut, words);
    let filters = || show(&["tc", "filter", "show", "dev", "eth1", "ingress"]);
    let disciplines = || show(&["tc", "qdisc", "show", "dev", "eth1"]);
    let before = disciplines();
    let mut child = rig.begin("the program is attached", || {
        rig.blocks() > 0 && filters().contains(" name pass ")
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let restored = rig.fwdlab(&["restore"]).output().unwrap();
    assert_eq!(restored.status.code(), Some(0), "{}", text(&restored));
    assert_eq!(disciplines(), before);

    let output = rig.run().output().unwrap();
    rig.assert_measured(&output, BLOCKS);
    assert_eq!(disciplines(), before);
    for block in block_records(&records(&rig.directory())) {
        let facts = block["differing_facts"].as_object().unwrap();
        let mut filters = facts.values().map(|facts| &facts["tc filters eth1"]);
        let is_there = filters.any(|filters| filters.to_string().contains(" name pass tag "));
        assert!(is_there, "{block}");
    }

    // A filter of the owner's would run beside it, and could not be put back.
    show(&["tc", "qdisc", "add", "dev", "eth1", "clsact"]);
    let object = rig.path(object);
    let filter = [
        "filter",
        "add",
        "dev",
        "eth1",
        "ingress",
        "bpf",
        "direct-action",
    ];
    let program = [
        "object-file",
        object.to_str().unwrap(),
        "section",
        "classifier",
    ];
    show(&[&["tc"], &filter[..], &program].concat());
    let refused = rig.run().output().unwrap();
    let said = text(&refused);
    assert!(said.contains("eth1 has filters at its ingress"), "{said}");
    assert!(filters().contains("tc_pass.bpf.o"), "{said}");
}
