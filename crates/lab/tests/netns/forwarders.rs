//! Forwarders in user space: a program of packet sockets, and DPDK's testpmd.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use fwdlab_lab::{BlockOutcome, LabEvent, NetnsLab};
use fwdlab_model::{
    AddressFamily, Binding, Conservation, Direction, DutInterface, Forwarder, Forwards,
    InvalidReason, Level, Load, Ready, Resolved, Stratum, TrialRecord, Values,
};

use crate::rig::{
    FAMILIES, dut_namespace, evidence_against, experiment, measure, own_the_machine, run,
};

const LOST: &str = "lost in the forwarder";
const REFUSED: &str = "between tester-out and dut-in";
const INET: [AddressFamily; 1] = [AddressFamily::Inet];

/// The packet router, compiled.
pub(crate) struct PacketRouter(tempfile::TempDir);

impl PacketRouter {
    pub(crate) fn build() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/packet_router.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-Wall", "-Werror", "-o"]);
        compiler.arg(folder.path().join("packet_router"));
        assert!(compiler.arg(source).status().unwrap().success());
        Self(folder)
    }

    /// The router with some of its switches.
    pub(crate) fn forwarder(&self, switches: &[&str]) -> Forwarder {
        let program = self.0.path().join("packet_router");
        let words = [
            program.to_str().unwrap(),
            "{dut-in}",
            "{dut-out}",
            "{dut-out-peer}",
        ];
        forwarder(&[&words, switches].concat(), "forwarding", Forwards::Routed)
    }
}

fn forwarder(start: &[&str], ready: &str, forwards: Forwards) -> Forwarder {
    Forwarder {
        start: start.iter().map(|&word| word.to_owned()).collect(),
        ready: Ready::Prints(ready.to_owned()),
        stop: None,
        forwards,
    }
}

/// testpmd, which changes MAC addresses alone.
pub(crate) fn testpmd(devices: [&str; 2]) -> Forwarder {
    let words = [
        "stdbuf",
        "-oL",
        "dpdk-testpmd",
        "--no-huge",
        "-m",
        "64",
        "--no-pci",
        "--no-telemetry",
        "--no-shconf",
        devices[0],
        devices[1],
        "--lcores={load-cpu},{dut-cpu}",
        "--main-lcore={load-cpu}",
        "--",
        "--forward-mode=mac",
        "--eth-peer=1,{dut-out-peer}",
        "--total-num-mbufs=8192",
    ];
    forwarder(&words, "Press enter to exit", Forwards::Mac)
}

/// Its AF_XDP sockets, with frames copied between kernel and program.
const AF_XDP: [&str; 2] = [
    "--vdev=net_af_xdp0,iface={dut-in},force_copy=1",
    "--vdev=net_af_xdp1,iface={dut-out},force_copy=1",
];

/// Variants with such forwarders, paced and in whole measurements.
pub(crate) fn forwarders<const N: usize>(
    families: &[AddressFamily],
    levels: [(&str, Option<Forwarder>); N],
) -> Resolved {
    let names = levels.each_ref().map(|(name, _)| *name);
    let levels = levels
        .into_iter()
        .map(|(name, level)| (name.to_owned(), level));
    let binding = Binding::Forwarder(levels.collect());
    let mut resolved = experiment(families, binding, &names);
    resolved.traffics[0].load = Load::Paced { pps: 20_000 };
    resolved.design.rounds = 1;
    resolved
}

fn trial<'o>(outcome: &'o BlockOutcome, variant: &str) -> &'o TrialRecord {
    let mut trials = outcome.trials.iter();
    trials
        .find(|trial| trial.variant.as_str() == variant)
        .unwrap()
}

fn conservation(outcome: &BlockOutcome) -> &Conservation {
    &outcome.block.conservation[&Stratum::INET]
}

fn unaccounted(outcome: &BlockOutcome) -> i64 {
    conservation(outcome).unaccounted_frames
}

/// What is on the DUT's ports, and which programs run in its namespace.
fn standing() -> (String, BTreeSet<String>) {
    let dut = dut_namespace();
    let links = run(&["ip", "netns", "exec", &dut, "ip", "link"]);
    let programs = run(&["ip", "netns", "pids", &dut]);
    let names = programs.lines().filter_map(|pid| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        Some(name.trim().to_owned())
    });
    (links, names.collect())
}

#[test]
fn forwarders_in_user_space_are_measured_beside_the_kernel() {
    testkit::require_root!();
    testkit::require_tool!("cc", "ip");
    let router = PacketRouter::build();
    let mut resolved = forwarders(
        &FAMILIES,
        [
            ("kernel", None),
            ("router", Some(router.forwarder(&["spin"]))),
        ],
    );
    resolved.traffics[0].sources = 4;
    let mut seen = BTreeMap::new();
    let outcome = measure(&resolved, &mut |event| {
        if let LabEvent::Slice(slice) = event {
            seen.insert((slice.variant.to_string(), slice.stratum), standing().1);
        }
    })
    .unwrap();
    for family in FAMILIES {
        let stratum = Stratum::from(family);
        assert!(
            seen[&("router".to_owned(), stratum)].contains("packet_router"),
            "{seen:?}"
        );
        assert!(seen[&("kernel".to_owned(), stratum)].is_empty(), "{seen:?}");
        let conservation = &outcome.block.conservation[&stratum];
        assert_eq!(conservation.unaccounted_frames, 0, "{conservation:?}");
        assert!(conservation.verification.checked_frames > 0);
        assert!(
            conservation.verification.wrong_frames.is_empty(),
            "{conservation:?}"
        );
    }
    for trial in &outcome.trials {
        assert_eq!(evidence_against(trial), Vec::<&InvalidReason>::new());
        assert!(trial.tester.forwarded_frames > 0, "{trial:?}");
    }
}

#[test]
fn testpmd_forwards_between_packet_sockets_and_af_xdp_sockets() {
    testkit::require_root!();
    testkit::require_tool!("dpdk-testpmd", "stdbuf", "ip");
    let resolved = forwarders(
        &INET,
        [
            ("kernel", None),
            (
                "af-packet",
                Some(testpmd([
                    "--vdev=net_af_packet0,iface={dut-in}",
                    "--vdev=net_af_packet1,iface={dut-out},qdisc_bypass=1",
                ])),
            ),
            ("af-xdp", Some(testpmd(AF_XDP))),
        ],
    );
    let mut seen = BTreeMap::new();
    let outcome = measure(&resolved, &mut |event| {
        if let LabEvent::Slice(slice) = event {
            let (links, programs) = standing();
            let has_xdp = links.contains("prog/xdp");
            seen.insert(slice.variant.to_string(), (has_xdp, !programs.is_empty()));
        }
    })
    .unwrap();
    let expected = [
        ("af-packet", (false, true)),
        ("af-xdp", (true, true)),
        ("kernel", (false, false)),
    ];
    assert_eq!(
        seen,
        expected.map(|(name, is)| (name.to_owned(), is)).into()
    );
    assert_eq!(unaccounted(&outcome), 0, "{:?}", outcome.block.conservation);
    for trial in &outcome.trials {
        assert_eq!(evidence_against(trial), Vec::<&InvalidReason>::new());
        assert!(trial.tester.forwarded_frames > 0, "{trial:?}");
    }
}

#[test]
fn what_a_forwarder_loses_is_counted_to_the_frame_and_its_crash_is_a_reason() {
    testkit::require_root!();
    testkit::require_tool!("cc", "ip");
    let router = PacketRouter::build();
    // After the 2000 probe frames.
    let mut resolved = forwarders(
        &INET,
        [
            ("loses", Some(router.forwarder(&["lose=3000"]))),
            ("crashes", Some(router.forwarder(&["crash=2500"]))),
        ],
    );
    // So that some of them are lost inside the slice.
    resolved.design.slice_ms = 500;
    let outcome = measure(&resolved, &mut |_| ()).unwrap();
    assert_eq!(unaccounted(&outcome), 0, "{:?}", outcome.block.conservation);
    let lossy = trial(&outcome, "loses");
    assert_eq!(evidence_against(lossy), Vec::<&InvalidReason>::new());
    // One of 3000, from the start of the load to the slice's end.
    assert!((1..=20).contains(&lossy.dut.drops[LOST]), "{lossy:?}");
    let crashed = trial(&outcome, "crashes");
    let [InvalidReason::ForwarderEnded { what }] = evidence_against(crashed)[..] else {
        panic!("{crashed:?}");
    };
    assert!(what.starts_with("signal: 6 (SIGABRT)"), "{what}");
    assert!(what.contains("it printed last: forwarding"), "{what}");
}

#[test]
fn frames_that_come_out_late_or_at_a_forwarders_end_are_not_lost() {
    testkit::require_root!();
    testkit::require_tool!("cc");
    let router = PacketRouter::build();
    // After the 2000 probe frames.
    let mut resolved = forwarders(
        &INET,
        [
            ("late", Some(router.forwarder(&["keep=3000", "late"]))),
            ("at-end", Some(router.forwarder(&["keep=3000"]))),
        ],
    );
    // So that some are kept inside the slice.
    resolved.design.slice_ms = 500;
    let outcome = measure(&resolved, &mut |event| {
        if let LabEvent::Slice(_) = event {
            // Between two looks, until the first has sent what it kept.
            sleep(Duration::from_millis(300));
        }
    })
    .unwrap();
    let account = conservation(&outcome);
    assert_eq!(account.unaccounted_frames, 0, "{account:?}");
    assert_eq!(account.drops.get(LOST), None, "{account:?}");
    assert!(account.verification.wrong_frames.is_empty(), "{account:?}");
    for trial in &outcome.trials {
        assert_eq!(evidence_against(trial), Vec::<&InvalidReason>::new());
        // They were missing when the slice ended.
        assert!(trial.dut.drops[LOST] > 0, "{trial:?}");
    }
}

#[test]
fn a_trial_whose_frames_come_out_after_its_slice_is_invalid() {
    testkit::require_root!();
    testkit::require_tool!("cc");
    let router = PacketRouter::build();
    // Keeps as many frames as are sent until the slice has ended.
    let keeps = router.forwarder(&["keep=1", "late"]);
    let mut resolved = forwarders(&INET, [("keeps", Some(keeps))]);
    resolved.traffics[0].load = Load::Paced { pps: 1000 };
    let design = &mut resolved.design;
    (design.settle_ms, design.warm_up_ms, design.slice_ms) = (10, 10, 150);
    let outcome = measure(&resolved, &mut |_| ()).unwrap();
    let account = conservation(&outcome);
    assert_eq!(account.drops.get(LOST), None, "{account:?}");
    let evidence = evidence_against(&outcome.trials[0]);
    assert!(
        matches!(evidence[..], [InvalidReason::LateFrames { .. }]),
        "{evidence:?}"
    );
}

#[test]
fn frames_that_a_forwarder_damages_are_not_lost_in_it() {
    testkit::require_root!();
    testkit::require_tool!("cc");
    let router = PacketRouter::build();
    // After the 2000 probe frames.
    let damages = router.forwarder(&["damage=2500"]);
    let mut resolved = forwarders(&INET, [("damages", Some(damages))]);
    resolved.design.slice_ms = 200;
    let outcome = measure(&resolved, &mut |_| ()).unwrap();
    let account = conservation(&outcome);
    assert_eq!(account.drops.get(LOST), None, "{account:?}");
    let others = account.foreign_frames.cast_signed() - account.unaccounted_frames;
    // The rest are of the DUT's kernel, such as neighbour discovery.
    assert!((0..=200).contains(&others), "{account:?}");
    let evidence = evidence_against(&outcome.trials[0]);
    let is_named = |reason: &&InvalidReason| matches!(reason, InvalidReason::Unaccounted { frames } if *frames > 0);
    assert!(evidence.iter().any(is_named), "{evidence:?}");
}

#[test]
fn wrong_frames_speak_against_their_forwarder_alone() {
    testkit::require_root!();
    testkit::require_tool!("cc");
    let router = PacketRouter::build();
    // After the 2000 probe frames.
    let levels = [
        ("before", Some(router.forwarder(&[]))),
        ("wrong", Some(router.forwarder(&["wrong=2500"]))),
        ("after", None),
    ];
    let mut resolved = forwarders(&INET, levels);
    resolved.design.slice_ms = 200;
    let outcome = measure(&resolved, &mut |_| ()).unwrap();
    let wrong = trial(&outcome, "wrong");
    let is_named = |reason: &&InvalidReason| matches!(reason, InvalidReason::Verification { what, .. } if what == "MAC address");
    assert!(evidence_against(wrong).iter().any(is_named), "{wrong:?}");
    for variant in ["before", "after"] {
        let right = trial(&outcome, variant);
        assert_eq!(evidence_against(right), Vec::<&InvalidReason>::new());
    }
}

#[test]
fn what_a_forwarder_of_both_directions_loses_is_counted_to_the_frame() {
    testkit::require_root!();
    testkit::require_tool!("cc");
    let router = PacketRouter::build();
    // After the 4000 probe frames.
    let both = router.forwarder(&["back={dut-in-peer}", "lose=5000"]);
    let mut resolved = forwarders(&INET, [("both", Some(both))]);
    resolved.traffics[0].direction = Direction::Both;
    resolved.design.slice_ms = 500;
    let outcome = measure(&resolved, &mut |_| ()).unwrap();
    let account = conservation(&outcome);
    assert_eq!(account.unaccounted_frames, 0, "{account:?}");
    assert!(account.drops[LOST] > 0, "{account:?}");
    assert!(account.verification.wrong_frames.is_empty(), "{account:?}");
    assert_eq!(
        evidence_against(&outcome.trials[0]),
        Vec::<&InvalidReason>::new()
    );
}

#[test]
fn a_forwarder_that_forwards_wrongly_is_refused_with_the_bytes() {
    testkit::require_root!();
    testkit::require_tool!("cc");
    let router = PacketRouter::build();
    for (switches, forwards, named) in [
        (
            &["ttl"][..],
            Forwards::Routed,
            "from byte 22 on expected 3f",
        ),
        (&[], Forwards::Mac, "from byte 22 on expected 40"),
        (
            &["ttl"],
            Forwards::Unchanged,
            "from byte 4 on expected 01 02",
        ),
    ] {
        let forwarder = Forwarder {
            forwards,
            ..router.forwarder(switches)
        };
        let resolved = forwarders(&INET, [("router", Some(forwarder))]);
        let error = measure(&resolved, &mut |_| ()).err().unwrap().to_string();
        assert!(error.contains(named), "{error}");
    }
    // What it says it does is what is expected.
    let forwarder = Forwarder {
        forwards: Forwards::Mac,
        ..router.forwarder(&["ttl"])
    };
    let resolved = forwarders(&INET, [("router", Some(forwarder))]);
    let outcome = measure(&resolved, &mut |_| ()).unwrap();
    assert_eq!(
        evidence_against(&outcome.trials[0]),
        Vec::<&InvalidReason>::new()
    );
}

#[test]
fn under_overload_what_finds_no_room_is_lost_in_the_forwarder() {
    testkit::require_root!();
    testkit::require_tool!("cc");
    let router = PacketRouter::build();
    let mut resolved = forwarders(&INET, [("router", Some(router.forwarder(&["spin"])))]);
    resolved.traffics[0].load = Load::Overload;
    let outcome = measure(&resolved, &mut |_| ()).unwrap();
    let account = conservation(&outcome);
    assert_eq!(account.unaccounted_frames, 0, "{account:?}");
    assert!(account.drops[LOST] > 0, "{account:?}");
    assert_eq!(
        evidence_against(&outcome.trials[0]),
        Vec::<&InvalidReason>::new()
    );
}

#[test]
fn under_overload_what_the_ring_of_an_af_xdp_socket_refuses_is_counted_once() {
    testkit::require_root!();
    testkit::require_tool!("dpdk-testpmd", "stdbuf");
    let mut resolved = forwarders(&INET, [("af-xdp", Some(testpmd(AF_XDP)))]);
    resolved.traffics[0].load = Load::Overload;
    let outcome = measure(&resolved, &mut |_| ()).unwrap();
    let account = conservation(&outcome);
    assert_eq!(account.unaccounted_frames, 0, "{account:?}");
    assert!(account.drops[REFUSED] > 0, "{account:?}");
    assert!(account.verification.wrong_frames.is_empty(), "{account:?}");
}

#[test]
fn a_forwarder_that_does_not_start_says_why() {
    testkit::require_root!();
    testkit::require_tool!("sh");
    let ends = forwarder(
        &["sh", "-c", "echo no such device >&2; exit 3"],
        "ready",
        Forwards::Routed,
    );
    let resolved = forwarders(&INET, [("ends", Some(ends))]);
    let error = measure(&resolved, &mut |_| ()).err().unwrap().to_string();
    assert!(
        error.starts_with("forwarder \"ends\": it ended before it was ready: exit status: 3; it printed last: no such device"),
        "{error}"
    );
    let _machine = own_the_machine();
    let folder = std::env::current_dir().unwrap();
    let in_folder = format!(
        "there is no executable file \"./no-such-router\" in {}",
        folder.display()
    );
    for (program, expected) in [
        ("no-such-program", "\"no-such-program\" is not installed"),
        ("./no-such-router", in_folder.as_str()),
    ] {
        let reason = unavailable(program);
        assert!(reason.contains(expected), "{reason}");
    }
}

/// Why a variant is unavailable whose forwarder is that program.
fn unavailable(program: &str) -> String {
    let missing = forwarder(&[program], "ready", Forwards::Routed);
    let resolved = forwarders(&INET, [("missing", Some(missing))]);
    let interrupts = fwdlab_sys::watch_interrupts().unwrap();
    let state = tempfile::tempdir().unwrap();
    let lab = NetnsLab::open(&resolved, state.path(), interrupts).unwrap();
    let mut reasons = lab.unavailable().unwrap();
    reasons.remove(0).unwrap()
}

#[test]
fn a_forwarder_that_crashes_under_the_probe_frames_says_how() {
    testkit::require_root!();
    testkit::require_tool!("cc");
    let router = PacketRouter::build();
    let resolved = forwarders(&INET, [("crashes", Some(router.forwarder(&["crash=100"])))]);
    let error = measure(&resolved, &mut |_| ()).err().unwrap().to_string();
    let expected = "forwarder \"crashes\": it ended under the probe frames: signal: 6 (SIGABRT)";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn the_kernel_polls_nothing_on_the_cpu_of_a_forwarder() {
    testkit::require_root!();
    testkit::require_tool!("sh");
    let _machine = own_the_machine();
    let interrupts = fwdlab_sys::watch_interrupts().unwrap();
    for (file, value, expected) in [
        ("threaded", "1", Some("/sys/class/net/dut-in/threaded = 1")),
        ("threaded", "0", None),
        (
            "queues/rx-0/rps_cpus",
            "ffffffff",
            Some("rps_cpus = ffffffff"),
        ),
        ("queues/rx-0/rps_cpus", "0", None),
    ] {
        let program = forwarder(&["sh"], "ready", Forwards::Routed);
        let mut resolved = forwarders(&INET, [("program", Some(program))]);
        let held = Level::Text(value.to_owned());
        resolved.variants[0].levels.insert("held".to_owned(), held);
        let binding = Binding::Sysfs {
            file: file.to_owned(),
            interfaces: vec![DutInterface::DutIn],
            values: Values::default(),
        };
        resolved.lab.bindings.insert("held".to_owned(), binding);
        let state = tempfile::tempdir().unwrap();
        let lab = NetnsLab::open(&resolved, state.path(), interrupts).unwrap();
        let reasons = lab.unavailable().unwrap();
        match (expected, &reasons[0]) {
            (None, None) => {}
            (Some(expected), Some(reason)) => assert!(reason.contains(expected), "{reason}"),
            (_, reason) => panic!("{file} = {value}: {reason:?}"),
        }
    }
}

#[test]
fn what_a_forwarder_changes_of_the_ports_is_put_back_for_the_next_variant() {
    testkit::require_root!();
    testkit::require_tool!("cc", "ip", "sh");
    let router = PacketRouter::build();
    let Forwarder { start, .. } = router.forwarder(&[]);
    let script = format!(
        "ip link set {{dut-in}} mtu 1400 promisc on; exec {}",
        start.join(" ")
    );
    let changes = forwarder(&["sh", "-c", &script], "forwarding", Forwards::Routed);
    let resolved = forwarders(&INET, [("changes", Some(changes)), ("kernel", None)]);
    let mut seen = BTreeMap::new();
    let outcome = measure(&resolved, &mut |event| {
        if let LabEvent::Slice(slice) = event {
            let (links, _) = standing();
            let is_changed = ["mtu 1400", "PROMISC"].map(|word| links.contains(word));
            seen.insert(slice.variant.to_string(), is_changed);
        }
    })
    .unwrap();
    let expected = [("changes", [true; 2]), ("kernel", [false; 2])];
    assert_eq!(
        seen,
        expected.map(|(name, is)| (name.to_owned(), is)).into()
    );
    for trial in &outcome.trials {
        assert_eq!(evidence_against(trial), Vec::<&InvalidReason>::new());
    }
}
