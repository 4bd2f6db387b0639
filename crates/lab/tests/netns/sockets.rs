//! Whole blocks with the senders and the sink that need no eBPF.

use std::time::Instant;

use fwdlab_lab::{DUT_OUT, LabEvent, NetnsLab, TESTER_OUT};
use fwdlab_model::{
    AddressFamily, Binding, FrameSize, InvalidReason, Load, Stratum, Tester, XdpProgram,
};

use crate::conservation::with_route_changed;
use crate::rig::{
    FAMILIES, dut_namespace, evidence_against, experiment, forward_chain, measure_with,
    own_namespaces, own_the_machine, rulesets, run,
};

#[test]
fn every_sender_measures_a_block_of_both_families_and_accounts_for_every_frame() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let rules = forward_chain("udp dport 5001 drop");
    let levels = [("none", ""), ("a rule", rules.as_str())];
    let resolved = experiment(&FAMILIES, rulesets(&levels), &["none", "a rule"]);
    for tester in Tester::SOCKETS {
        let outcome = measure_with(tester, &resolved, &mut |_| {}).unwrap();
        assert_eq!((outcome.slices.len(), outcome.trials.len()), (8, 4));
        for trial in &outcome.trials {
            let against = evidence_against(trial);
            assert_eq!(against, Vec::<&InvalidReason>::new(), "{tester}");
        }
        for family in FAMILIES {
            let conservation = &outcome.block.conservation[&Stratum::from(family)];
            assert_eq!(
                conservation.unaccounted_frames, 0,
                "{tester}: {conservation:?}"
            );
            assert!(conservation.forwarded_frames > 0, "{tester}");
            let reasons: Vec<_> = conservation.drops.keys().collect();
            assert_eq!(reasons, ["drop-at-ingress control"], "{tester}");
            let verification = &conservation.verification;
            assert!(verification.checked_frames > 0, "{tester}");
            assert!(
                verification.wrong_frames.is_empty(),
                "{tester}: {verification:?}"
            );
            let cost_ns = outcome.block.generator_cost_ns[&Stratum::from(family)];
            assert!(cost_ns.is_finite() && cost_ns > 0.0, "{tester}");
        }
    }
}

#[test]
fn a_generator_that_dies_under_load_makes_all_trials_of_its_block_invalid() {
    testkit::require_root!();
    testkit::require_tool!("nft", "ip");
    let levels = [("a", ""), ("b", "")];
    let resolved = experiment(&[AddressFamily::Inet], rulesets(&levels), &["a", "b"]);
    for tester in Tester::SOCKETS {
        let mut slices = 0;
        let outcome = measure_with(tester, &resolved, &mut |event| {
            if let LabEvent::Slice(_) = event {
                slices += 1;
                if slices == 2 {
                    let namespace = own_namespaces(std::process::id())
                        .into_iter()
                        .find(|name| name.ends_with("-tester"))
                        .unwrap();
                    run(&["ip", "-n", &namespace, "link", "set", TESTER_OUT, "down"]);
                }
            }
        });
        let outcome = outcome.unwrap();
        assert_eq!((outcome.slices.len(), outcome.trials.len()), (4, 2));
        for trial in &outcome.trials {
            let is_told = trial.invalid.iter().any(|reason| {
                matches!(reason, InvalidReason::GeneratorStopped { what }
                    if what.contains("Network is down"))
            });
            assert!(is_told, "{tester}: {trial:?}");
        }
        assert_eq!(own_namespaces(std::process::id()), Vec::<String>::new());
    }
}

#[test]
fn a_mix_of_sizes_is_sent_and_checked() {
    testkit::require_root!();
    let mut resolved = experiment(&FAMILIES, rulesets(&[("a", "")]), &["a"]);
    resolved.traffics[0].frame_sizes = [(64, 7), (594, 4), (1518, 1)]
        .map(|(bytes, share)| FrameSize { bytes, share })
        .to_vec();
    for tester in Tester::SOCKETS {
        // What the probe does not find forwarded, every flow in some size and every size, is an error.
        let outcome = measure_with(tester, &resolved, &mut |_| {}).unwrap();
        for family in FAMILIES {
            let conservation = &outcome.block.conservation[&Stratum::from(family)];
            assert_eq!(
                conservation.unaccounted_frames, 0,
                "{tester}: {conservation:?}"
            );
            assert!(
                conservation.verification.wrong_frames.is_empty(),
                "{tester}"
            );
        }
    }
}

#[test]
fn what_the_dut_drops_is_counted_by_reason() {
    testkit::require_root!();
    testkit::require_tool!("ip", "nft");
    let family = AddressFamily::Inet;
    for tester in Tester::SOCKETS {
        let resolved = experiment(&[family], rulesets(&[("a", ""), ("b", "")]), &["a", "b"]);
        let (gone, back) = (
            ["del", "198.19.0.0/16"],
            ["add", "198.19.0.0/16", "via", "198.19.0.1"],
        );
        let mut change = with_route_changed(family, &gone, &back);
        let outcome = measure_with(tester, &resolved, &mut change).unwrap();
        let conservation = &outcome.block.conservation[&Stratum::from(family)];
        assert_eq!(
            conservation.unaccounted_frames, 0,
            "{tester}: {conservation:?}"
        );
        assert!(conservation.drops["IpExt.InNoRoutes"] > 0, "{tester}");
        // The second slice belongs to b.
        assert_eq!(outcome.slices[1].forwarded_frames, 0, "{tester}");
    }
}

#[test]
fn frames_that_went_another_way_are_found_wrong() {
    testkit::require_root!();
    testkit::require_tool!("ip", "nft");
    let family = AddressFamily::Inet6;
    let resolved = experiment(&[family], rulesets(&[("a", ""), ("b", "")]), &["a", "b"]);
    let prefix = "2001:2:0:8010::/64";
    let other = "2001:2:0:8000::3";
    let (there, back) = (
        ["replace", prefix, "via", other],
        ["replace", prefix, "via", "2001:2:0:8000::1"],
    );
    let mut change_route = with_route_changed(family, &there, &back);
    let mut change = |event: LabEvent<'_>| {
        if let LabEvent::Ready { .. } = event {
            let (dut, mac) = (dut_namespace(), "02:00:00:00:02:03");
            let add = ["ip", "-n", &dut, "neigh", "add", other];
            run(&[&add[..], &["lladdr", mac, "dev", DUT_OUT]].concat());
        }
        change_route(event);
    };
    let outcome = measure_with(Tester::AfXdp, &resolved, &mut change).unwrap();
    let conservation = &outcome.block.conservation[&Stratum::from(family)];
    assert_eq!(conservation.unaccounted_frames, 0, "{conservation:?}");
    let wrong: Vec<_> = conservation.verification.wrong_frames.keys().collect();
    assert_eq!(wrong, ["MAC address"]);
    for trial in &outcome.trials {
        let against = evidence_against(trial);
        // Those of the slice are the variant's, and those that came while it settled nobody's.
        let is_named =
            |reason: &&InvalidReason| matches!(reason, InvalidReason::Verification { .. });
        assert!(
            !against.is_empty() && against.iter().all(is_named),
            "{against:?}"
        );
    }
}

#[test]
fn a_pace_is_kept_without_ebpf() {
    testkit::require_root!();
    let mut resolved = experiment(&[AddressFamily::Inet], rulesets(&[("a", "")]), &["a"]);
    resolved.traffics[0].load = Load::Paced { pps: 20_000 };
    resolved.traffics[0].burst_frames = 10;
    let start = Instant::now();
    let outcome = measure_with(Tester::Sendmmsg, &resolved, &mut |_| {}).unwrap();
    let conservation = &outcome.block.conservation[&Stratum::INET];
    assert_eq!(conservation.unaccounted_frames, 0, "{conservation:?}");
    // Never ahead of its time, but for the burst that it begins with.
    let most = start.elapsed().as_millis() * 20 + 10;
    let offered = conservation.offered_frames;
    assert!(
        offered > 0 && u128::from(offered) <= most,
        "{offered} of {most}"
    );
}

#[test]
fn variants_with_an_xdp_program_are_unavailable() {
    testkit::require_root!();
    let programs = [("off", XdpProgram::Off), ("fib", XdpProgram::Fib)];
    let programs = programs.map(|(level, program)| (level.to_owned(), program));
    let binding = Binding::Xdp(programs.into());
    let resolved = experiment(&[AddressFamily::Inet], binding, &["off", "fib"]);
    let _machine = own_the_machine();
    let state = tempfile::tempdir().unwrap();
    let interrupts = fwdlab_sys::watch_interrupts().unwrap();
    let mut lab = NetnsLab::open(&resolved, state.path(), interrupts).unwrap();
    // As root nothing is refused.
    assert_eq!(lab.choices.tester.tester, Tester::Ebpf);
    assert!(lab.choices.tester.refused.is_empty());
    assert_eq!(lab.unavailable().unwrap(), [None, None]);
    lab.choices.tester.tester = Tester::AfXdp;
    let [off, fib] = &lab.unavailable().unwrap()[..] else {
        panic!("there are two variants");
    };
    assert_eq!(*off, None);
    assert!(fib.as_ref().unwrap().contains("run fwdlab as root"));
}
