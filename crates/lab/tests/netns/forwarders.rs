//! Forwarders in user space: a program of packet sockets, and DPDK's testpmd.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use fwdlab_lab::{BlockOutcome, LabEvent, NetnsLab};
use fwdlab_model::{
    AddressFamily, Binding, Forwarder, Forwards, InvalidReason, Load, Ready, Resolved, Stratum,
    TrialRecord,
};

use crate::rig::{self, FAMILIES, dut_namespace, experiment, measure, own_the_machine, run};

const LOST: &str = "lost in the forwarder";
const INET: [AddressFamily; 1] = [AddressFamily::Inet];

/// The packet router, compiled.
struct PacketRouter(tempfile::TempDir);

impl PacketRouter {
    fn build() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/packet_router.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-Wall", "-Werror", "-o"]);
        compiler.arg(folder.path().join("packet_router"));
        assert!(compiler.arg(source).status().unwrap().success());
        Self(folder)
    }

    /// The router with some of its switches.
    fn forwarder(&self, switches: &[&str]) -> Forwarder {
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
fn testpmd(devices: [&str; 2]) -> Forwarder {
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

/// Variants with such forwarders, paced and in whole measurements.
fn forwarders<const N: usize>(
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

/// What speaks against a trial, without the programs that had a part of the CPUs: a forwarder that polls leaves them no
/// idle time on the DUT's, so that a busy machine's others always compete with it.
fn evidence_against(trial: &TrialRecord) -> Vec<&InvalidReason> {
    let mut against = rig::evidence_against(trial);
    against.retain(|reason| !matches!(reason, InvalidReason::Competition { .. }));
    against
}

fn trial<'o>(outcome: &'o BlockOutcome, variant: &str) -> &'o TrialRecord {
    let mut trials = outcome.trials.iter();
    trials
        .find(|trial| trial.variant.as_str() == variant)
        .unwrap()
}

fn unaccounted(outcome: &BlockOutcome) -> i64 {
    outcome.block.conservation[&Stratum::INET].unaccounted_frames
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
            (
                "af-xdp",
                Some(testpmd([
                    "--vdev=net_af_xdp0,iface={dut-in},force_copy=1",
                    "--vdev=net_af_xdp1,iface={dut-out},force_copy=1",
                ])),
            ),
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
    let conservation = &outcome.block.conservation[&Stratum::INET];
    assert_eq!(conservation.unaccounted_frames, 0, "{conservation:?}");
    assert!(conservation.drops[LOST] > 0, "{conservation:?}");
    assert_eq!(
        evidence_against(&outcome.trials[0]),
        Vec::<&InvalidReason>::new()
    );
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
    let missing = forwarder(&["no-such-program"], "ready", Forwards::Routed);
    let resolved = forwarders(&INET, [("missing", Some(missing))]);
    let _machine = own_the_machine();
    let interrupts = fwdlab_sys::watch_interrupts().unwrap();
    let state = tempfile::tempdir().unwrap();
    let lab = NetnsLab::open(&resolved, state.path(), interrupts).unwrap();
    let reasons = lab.unavailable().unwrap();
    let reason = reasons[0].as_ref().unwrap();
    assert!(
        reason.contains("\"no-such-program\" is not installed"),
        "{reason}"
    );
}
