//! Labs of hosts with several generators, and with netmap's pkt-gen. In its place stands a script that prints what pkt-gen
//! does, and whose frames are real: netmap is on no machine that these tests run on.

use std::fs;
use std::process::Command;

use crate::rig::{BLOCKS, Rig, assert_as_before};
use crate::shared::{self, FWDLAB, block_records, records, trial_records};
use testkit::{Host, text};

/// A rig whose tester is the stand-in for pkt-gen.
fn start_with_pkt_gen() -> Rig {
    let rig = Rig::start();
    // A host need not see where the program was built: its `/tmp` is its own. Copied by another process, so that nothing
    // that this one starts has it open for writing.
    let own = rig.lab.own_folder(Host::Tester);
    testkit::succeed(Command::new("cp").arg(FWDLAB).arg(own.join("fwdlab")));
    let script = fs::read_to_string(shared::data("pkt-gen")).unwrap();
    rig.lab
        .put_program(Host::Tester, "pkt-gen", &script)
        .unwrap();
    rig.change(
        "hosts-lab.toml",
        "host = \"tester\"\n",
        "host = \"tester\"\nuses = \"pkt-gen\"\n",
    );
    rig.change("hosts.toml", "slice_ms = 200", "slice_ms = 3000");
    rig.change("hosts.toml", "pps = 10000", "pps = 4000");
    rig
}

/// Whether a pkt-gen lives on the tester's host, or what it sends with.
fn has_pkt_gen(rig: &Rig) -> bool {
    let namespace = rig.lab.namespace(Host::Tester);
    let pids = testkit::succeed(Command::new("ip").args(["netns", "pids", &namespace]));
    let pids = String::from_utf8(pids.stdout).unwrap();
    pids.lines().any(|pid| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.contains("pkt-gen\0") || line.contains("\0gen\0")
    })
}

/// Joins two more ports of the tester's host, `gen1` and `gen2`, and its `eth1` by a switch.
const SWITCH: &str = r#"
set -e
ip link add switch type bridge
ip link add gen1 type veth peer name to-gen1
ip link add gen2 type veth peer name to-gen2
for port in eth1 to-gen1 to-gen2; do
    ip link set $port master switch
done
for interface in switch gen1 gen2 to-gen1 to-gen2; do
    # Nothing is sent by itself.
    echo 1 > /proc/sys/net/ipv6/conf/$interface/disable_ipv6
    ip link set $interface up
done
"#;

/// The ports of a lab file that sends from there.
const SWITCHED: &str = "out = \"gen1\"\n\n[receiver]\nhost = \"tester\"\nin = \"eth2\"\n\n\
                        [[generator]]\nhost = \"tester\"\nout = \"gen2\"\n";

#[test]
fn a_receiver_and_a_second_generator_have_processes_of_their_own() {
    require_rig!();
    let rig = Rig::start();
    rig.send_from_two_cpus();
    rig.watch_for_longer();
    let before = rig.dut();
    rig.lab.inside(Host::Tester, &["sh", "-c", SWITCH]);
    for port in ["to-gen1", "to-gen2"] {
        // A veth takes frames of an eBPF program where its peer polls.
        let words = ["ethtool", "-K", port, "gro", "on"];
        rig.lab.inside(Host::Tester, &words);
    }
    // All on the tester's host: what matters is that each is reached and asked by itself.
    rig.change(
        "hosts-lab.toml",
        "out = \"eth1\"\nin = \"eth2\"\n",
        SWITCHED,
    );
    rig.change(
        "hosts.toml",
        "[design]",
        "[profile]\nevery = \"block\"\nslice_ms = 300\n\n[design]",
    );
    let output = rig.run().output().unwrap();
    rig.assert_measured(&output, BLOCKS);
    assert_as_before(&rig, &before);
    let directory = rig.directory();
    // What the DUT's own process and script saw of the loads that they had waited for.
    let trials = trial_records(&records(&directory));
    assert!(
        trials.iter().any(|trial| trial["dut_cpus"].is_array()),
        "{trials:?}"
    );
    for trial in &trials {
        let profile = &trial["profile"];
        assert!(profile["samples"].as_u64() > Some(0), "{trial}");
        assert_eq!(profile["has_kernel"], true, "{trial}");
    }
    let profiles = fs::read_dir(directory.join("profiles")).unwrap();
    let mut stacks = profiles.map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    assert!(stacks.any(|stacks| stacks.contains(";ip_forward")));
    for block in block_records(&records(&directory)) {
        let family = &block["conservation"]["inet"];
        assert_eq!(family["unaccounted_frames"], 0, "{family}");
        // Two slices of 800 ms at 10,000 frames a second; each generator alone offers half of them.
        assert!(family["offered_frames"].as_u64() > Some(12_800), "{family}");
    }
    let readme = fs::read_to_string(directory.join("README.md")).unwrap();
    assert!(
        readme.contains("| tester's CPUs that send | 0, 1 |"),
        "{readme}"
    );
    testkit::wait_until("the tester's processes end", || !rig.has_tester());

    // What its host has not is said before anything is sent.
    rig.change("hosts-lab.toml", "cpus = [0, 1]", "cpus = [0, 8000]");
    let refused = rig.run().output().unwrap();
    assert_eq!(refused.status.code(), Some(3), "{}", text(&refused));
    let what = "tester: it has no CPU 8000 that fwdlab may use; name some of 0, 1";
    assert!(text(&refused).contains(what), "{}", text(&refused));
}

#[test]
fn two_pkt_gens_and_a_receiver_measure_what_interfaces_count() {
    require_rig!();
    testkit::require_tool!("bash");
    let rig = start_with_pkt_gen();
    let before = rig.dut();
    rig.lab.inside(Host::Tester, &["sh", "-c", SWITCH]);
    // All on the tester's host: what matters is that each is reached and counted by itself.
    rig.change(
        "hosts-lab.toml",
        "out = \"eth1\"\nin = \"eth2\"\n",
        SWITCHED,
    );
    // What it cannot do is said before anything is done.
    rig.change("hosts.toml", "slice_ms = 3000", "slice_ms = 500");
    let refused = rig.run().output().unwrap();
    assert_eq!(refused.status.code(), Some(3), "{}", text(&refused));
    assert!(
        text(&refused).contains("write slice_ms = 3000 or more"),
        "{}",
        text(&refused)
    );
    rig.change("hosts.toml", "slice_ms = 500", "slice_ms = 3000");
    // pkt-gen takes the header of Ethernet for a part of what the MTU bounds.
    let of_size = |bytes| format!("frame_size = {bytes}\n[design]");
    rig.change("hosts.toml", "[design]", &of_size(1505));
    let refused = rig.run().output().unwrap();
    assert_eq!(refused.status.code(), Some(3), "{}", text(&refused));
    let expected = "gen1 has an MTU of 1500, and pkt-gen, which counts the header of Ethernet too, is to send 1501 bytes; \
                    give it more there (`ip link set dev gen1 mtu 1501`)";
    assert!(text(&refused).contains(expected), "{}", text(&refused));
    rig.change("hosts.toml", &of_size(1505), "[design]");
    let received = || rig.frames("eth2", "rx_packets");
    let received_before = received();
    let output = rig.run().output().unwrap();
    rig.assert_measured(&output, BLOCKS);
    assert_as_before(&rig, &before);
    testkit::wait_until("pkt-gen and what watches it end", || !has_pkt_gen(&rig));
    let received = received() - received_before;
    let directory = rig.directory();
    let records = records(&directory);
    // Those too that were invalid: what was sent was sent.
    let blocks = block_records(&records);
    let (mut offered, mut forwarded) = (0, 0);
    for block in &blocks {
        let family = &block["conservation"]["inet"];
        offered += family["offered_frames"].as_u64().unwrap();
        forwarded += family["forwarded_frames"].as_u64().unwrap();
        assert_eq!(family["verification"]["checked_frames"], 0, "{family}");
    }
    // Beside are those of probes, of each of 100 flows from both ports in both trials of a block, and of neighbours.
    let probes = blocks.len() as u64 * 2 * 2 * 100;
    assert!(
        received.abs_diff(forwarded + probes) * 100 < received,
        "{received} and {forwarded}"
    );
    let sent = ["gen1", "gen2"].map(|port| rig.frames(port, "tx_packets"));
    let all = sent[0] + sent[1];
    assert!(
        all.abs_diff(offered + probes) * 100 < all,
        "{sent:?} and {offered}"
    );
    assert!(sent.iter().all(|sent| sent * 5 > all * 2), "{sent:?}");
    let readme = fs::read_to_string(directory.join("README.md")).unwrap();
    for expected in ["netmap's pkt-gen", "not checked", "W213"] {
        assert!(readme.contains(expected), "{expected}: {readme}");
    }
}

#[test]
fn a_pkt_gen_that_fails_costs_a_block_and_a_killed_run_leaves_none() {
    require_rig!();
    testkit::require_tool!("bash");
    let rig = start_with_pkt_gen();
    let before = rig.dut();
    rig.change(
        "hosts.toml",
        "families = [\"inet\"]",
        "families = [\"inet6\"]",
    );
    let crash = rig.lab.own_folder(Host::Tester).join("crash");
    fs::write(&crash, "").unwrap();
    let mut child = rig.begin("a block", || rig.blocks() > 0);
    assert!(!crash.exists());
    let sent = rig.sent_frames();
    child = shared::wait_for_child("a load", child, || rig.sent_frames() > sent + 3000);
    assert!(has_pkt_gen(&rig));
    child.kill().unwrap();
    let said = text(&child.wait_with_output().unwrap());
    assert!(
        said.contains("a thread of pkt-gen failed") && said.contains("ouch, thread 0"),
        "{said}"
    );
    testkit::wait_until("pkt-gen ends", || !has_pkt_gen(&rig));
    let sent = rig.sent_frames();
    let restored = rig.fwdlab(&["restore"]).output().unwrap();
    assert_eq!(restored.status.code(), Some(0), "{}", text(&restored));
    assert_as_before(&rig, &before);
    assert_eq!(rig.sent_frames(), sent);
}
