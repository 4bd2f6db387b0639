//! The load regimes in which the DUT forwards on a CPU of its own.

use std::collections::BTreeSet;

use fwdlab_lab::{LabEvent, NetnsLab};
use fwdlab_model::{
    AddressFamily, Binding, Direction, DutInterface, InvalidReason, Load, Resolved, Stratum,
    Values, XdpProgram,
};

use crate::rig::{
    FAMILIES, dut_namespace, evidence_against, experiment, measure, own_the_machine, rulesets, run,
};

/// Two CPUs for generator and DUT; none where this machine has but one.
fn two_cpus() -> Option<(u32, u32)> {
    let cpus = fwdlab_sys::online_cpus().unwrap();
    let (&first, &last) = (cpus.first()?, cpus.last()?);
    (first != last).then_some((first, last))
}

fn forwarding_paths(families: &[AddressFamily]) -> Resolved {
    let programs = [
        ("kernel".to_owned(), XdpProgram::Off),
        ("fib".to_owned(), XdpProgram::Fib),
    ];
    let binding = Binding::Xdp(programs.into_iter().collect());
    experiment(families, binding, &["kernel", "fib"])
}

/// CPUs on which the threads that poll for the DUT may run.
fn polling_cpus(threads: &str) -> BTreeSet<String> {
    let threads = fwdlab_sys::kernel_threads(threads).unwrap();
    threads
        .iter()
        .map(|pid| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            let line = status
                .lines()
                .find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
            line.unwrap().trim().to_owned()
        })
        .collect()
}

#[test]
fn under_overload_every_frame_is_forwarded_or_counted_as_dropped() {
    testkit::require_root!();
    let Some((load_cpu, dut_cpu)) = two_cpus() else {
        testkit::skip!("one CPU");
    };
    let mut resolved = forwarding_paths(&FAMILIES);
    resolved.traffics[0].load = Load::Overload;
    let mut pinned = BTreeSet::new();
    let outcome = measure(&resolved, &mut |event| {
        if let LabEvent::Slice(_) = event {
            pinned.extend(polling_cpus("napi/dut-in-"));
        }
    })
    .unwrap();
    assert_eq!(pinned, BTreeSet::from([dut_cpu.to_string()]));
    assert_ne!(load_cpu, dut_cpu);
    for family in FAMILIES {
        let conservation = &outcome.block.conservation[&Stratum::from(family)];
        assert_eq!(conservation.unaccounted_frames, 0, "{conservation:?}");
        assert!(
            conservation.drops["between tester-out and dut-in"] > 0,
            "{conservation:?}"
        );
        assert_eq!(conservation.verification.wrong_frames.len(), 0);
    }
    for trial in &outcome.trials {
        assert!(
            trial.tester.forwarded_frames > 0
                && trial.tester.offered_frames > trial.tester.forwarded_frames
        );
        assert_eq!(evidence_against(trial), Vec::<&InvalidReason>::new());
    }
}

#[test]
fn both_directions_under_overload_lose_nothing_unnoticed() {
    testkit::require_root!();
    let Some((_, dut_cpu)) = two_cpus() else {
        testkit::skip!("one CPU");
    };
    let mut resolved = forwarding_paths(&FAMILIES);
    resolved.traffics[0].load = Load::Overload;
    resolved.traffics[0].direction = Direction::Both;
    let mut pinned = BTreeSet::new();
    let outcome = measure(&resolved, &mut |event| {
        if let LabEvent::Slice(_) = event {
            pinned.extend(polling_cpus("napi/dut-in-"));
            pinned.extend(polling_cpus("napi/dut-out-"));
        }
    })
    .unwrap();
    assert_eq!(pinned, BTreeSet::from([dut_cpu.to_string()]));
    for conservation in outcome.block.conservation.values() {
        assert_eq!(conservation.unaccounted_frames, 0, "{conservation:?}");
        for cable in [
            "between tester-out and dut-in",
            "between tester-in and dut-out",
        ] {
            assert!(conservation.drops[cable] > 0, "{conservation:?}");
        }
        assert_eq!(conservation.verification.wrong_frames.len(), 0);
    }
    for trial in &outcome.trials {
        assert!(
            trial.tester.forwarded_frames > 0
                && trial.tester.offered_frames > trial.tester.forwarded_frames
        );
        assert_eq!(evidence_against(trial), Vec::<&InvalidReason>::new());
    }
}

#[test]
fn frames_that_another_cpu_has_no_room_for_are_counted_apart() {
    testkit::require_root!();
    let Some((_, other_cpu)) = two_cpus() else {
        testkit::skip!("one CPU");
    };
    // The generator's CPU hands frames over to one that forwards fewer than it can send.
    let binding = Binding::Sysfs {
        file: "queues/rx-0/rps_cpus".into(),
        interfaces: vec![DutInterface::DutIn],
        values: Values::default(),
    };
    let mask = format!("{:x}", 1_u64 << other_cpu);
    let resolved = experiment(&[AddressFamily::Inet], binding, &["0", &mask]);
    let outcome = measure(&resolved, &mut |_| ()).unwrap();
    let conservation = &outcome.block.conservation[&Stratum::INET];
    // The backlogs are the machine's: they may have been full for frames of others too, such as the
    // tester's own multicast reports.
    assert!(
        (-9..=0).contains(&conservation.unaccounted_frames)
            && conservation.drops["CPU backlog"] > 9,
        "{conservation:?}"
    );
    // Not every slice sees the other CPU fall behind: a machine of others' may give it more time.
    let has_dropped = |label: &str| {
        let mut trials = outcome.trials.iter();
        trials.any(|trial| {
            trial.variant.as_str() == label && trial.kernel_drop_reasons.contains_key("CPU_BACKLOG")
        })
    };
    assert!(has_dropped(&mask) && !has_dropped("0"));
}

#[test]
fn a_paced_dut_on_a_cpu_of_its_own_loses_nothing() {
    testkit::require_root!();
    let Some((_, dut_cpu)) = two_cpus() else {
        testkit::skip!("one CPU");
    };
    let mut resolved = forwarding_paths(&[AddressFamily::Inet]);
    resolved.traffics[0].load = Load::Paced { pps: 20_000 };
    resolved.lab.dut_cpu = Some(dut_cpu);
    let outcome = measure(&resolved, &mut |_| ()).unwrap();
    let conservation = &outcome.block.conservation[&Stratum::INET];
    assert_eq!(conservation.unaccounted_frames, 0, "{conservation:?}");
    for trial in &outcome.trials {
        assert!(trial.tester.forwarded_frames > 0, "{trial:?}");
        assert_eq!(evidence_against(trial), Vec::<&InvalidReason>::new());
    }
}

#[test]
fn an_overload_that_is_none_shows_the_generator_and_makes_its_trials_invalid() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    if two_cpus().is_none() {
        testkit::skip!("one CPU");
    }
    let mut resolved = forwarding_paths(&[AddressFamily::Inet]);
    resolved.traffics[0].load = Load::Overload;
    // Without its thread the DUT takes turns with the generator, which then never sends too much.
    let outcome = measure(&resolved, &mut |event| {
        if let LabEvent::Ready { .. } = event {
            let take_away = "echo 0 > /sys/class/net/dut-in/threaded";
            run(&[
                "ip",
                "netns",
                "exec",
                &dut_namespace(),
                "sh",
                "-c",
                take_away,
            ]);
        }
    })
    .unwrap();
    for trial in &outcome.trials {
        let against = evidence_against(trial);
        assert!(
            against.contains(&&InvalidReason::GeneratorLimited),
            "{against:?}"
        );
    }
}

#[test]
fn with_one_cpu_overload_is_unavailable_with_the_reason() {
    testkit::require_root!();
    let _machine = own_the_machine();
    let cpus = fwdlab_sys::online_cpus().unwrap();
    let mut resolved = experiment(&[AddressFamily::Inet], rulesets(&[("a", "")]), &["a"]);
    resolved.traffics[0].load = Load::Overload;
    resolved.lab.dut_cpu = Some(cpus[0]);
    let interrupts = fwdlab_sys::watch_interrupts().unwrap();
    let state = tempfile::tempdir().unwrap();
    let lab = NetnsLab::open(&resolved, state.path(), interrupts).unwrap();
    let reasons = lab.unavailable().unwrap();
    let reason = reasons[0].as_ref().unwrap();
    assert!(
        reason.contains("overload") && reason.contains("another CPU than the generator's"),
        "{reason}"
    );
}

#[test]
fn where_the_dut_has_a_cpu_of_its_own_no_factor_can_take_its_thread_away() {
    testkit::require_root!();
    if two_cpus().is_none() {
        testkit::skip!("one CPU");
    }
    let _machine = own_the_machine();
    let binding = Binding::Sysfs {
        file: "threaded".into(),
        interfaces: vec![DutInterface::DutIn],
        values: Values::default(),
    };
    let mut resolved = experiment(&[AddressFamily::Inet], binding, &["0", "1"]);
    resolved.traffics[0].load = Load::Overload;
    let interrupts = fwdlab_sys::watch_interrupts().unwrap();
    let state = tempfile::tempdir().unwrap();
    let lab = NetnsLab::open(&resolved, state.path(), interrupts).unwrap();
    let reasons = lab.unavailable().unwrap();
    assert!(
        reasons[0]
            .as_ref()
            .unwrap()
            .contains("forwards in a thread"),
        "{reasons:?}"
    );
    assert_eq!(reasons[1], None);
}
