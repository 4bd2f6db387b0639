//! A whole block, from the set-up to the records.

use fwdlab_lab::{BlockRun, LabError, LabEvent, NetnsLab};
use fwdlab_model::{
    AddressFamily, Binding, Direction, InvalidReason, Load, LoadRegime, NextSlice, PlannedBlock,
    PortRange, SCHEMA_VERSION, SliceRecord, SliceSource, Stratum, Tester, Traffic, VariantName,
    XdpProgram,
};

use crate::rig::{
    FAMILIES, block, dut_namespace, evidence_against, experiment, forward_chain, imix, measure,
    measure_slices, own_namespaces, own_the_machine, rulesets, run, wait_until,
};

#[test]
fn a_block_of_an_imix_over_65536_flows_is_valid_and_loses_nothing() {
    testkit::require_root!();
    let mut resolved = experiment(&FAMILIES, rulesets(&[("a", "")]), &["a"]);
    resolved.traffics[0] = Traffic {
        sources: 16,
        destinations: 256,
        source_ports: PortRange {
            first: 65_520,
            last: 65_535,
        },
        families: FAMILIES.to_vec(),
        ..imix()
    };
    assert_eq!(resolved.traffics[0].flows(), 65_536);
    let outcome = measure(&resolved, &mut |_| ()).unwrap();
    assert_eq!(outcome.trials.len(), 2);
    for trial in &outcome.trials {
        assert_eq!(evidence_against(trial), Vec::<&InvalidReason>::new());
    }
    for conservation in outcome.block.conservation.values() {
        assert_eq!(conservation.unaccounted_frames, 0, "{conservation:?}");
        assert!(conservation.forwarded_frames > 0);
        assert!(conservation.verification.checked_frames > 0);
        assert!(conservation.verification.wrong_frames.is_empty());
    }
}

#[test]
fn a_block_of_both_directions_has_every_flow_and_the_one_that_answers_it() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let tracking = forward_chain("ct state established,new accept");
    let programs = [("off", XdpProgram::Off), ("fib", XdpProgram::Fib)];
    let programs = programs.map(|(level, program)| (level.to_owned(), program));
    let bindings = [
        (rulesets(&[("none", ""), ("ct", &tracking)]), ["none", "ct"]),
        (Binding::Xdp(programs.into_iter().collect()), ["off", "fib"]),
    ];
    for (binding, levels) in bindings {
        for traffic in [Traffic::default(), imix()] {
            let mut resolved = experiment(&FAMILIES, binding.clone(), &levels);
            resolved.traffics[0] = Traffic {
                direction: Direction::Both,
                families: FAMILIES.to_vec(),
                ..traffic
            };
            let outcome = measure(&resolved, &mut |_| ()).unwrap();
            for trial in &outcome.trials {
                assert_eq!(evidence_against(trial), Vec::<&InvalidReason>::new());
            }
            for conservation in outcome.block.conservation.values() {
                assert_eq!(conservation.unaccounted_frames, 0, "{conservation:?}");
                // More than there are in one direction.
                assert!(conservation.verification.flows_seen > 2000);
                assert!(conservation.verification.wrong_frames.is_empty());
            }
        }
    }
}

/// One flow, a thousand and the most there can be, of several sizes: each proved and conserved by itself.
#[test]
fn several_traffics_are_measured_one_after_the_other_and_each_is_proved() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let rules = forward_chain("udp dport 5001 drop");
    let levels = [("none", ""), ("rule", rules.as_str())];
    let mut resolved = experiment(&FAMILIES, rulesets(&levels), &["none", "rule"]);
    let traffic = |name: &str, traffic: Traffic| Traffic {
        name: Some(name.parse().unwrap()),
        families: FAMILIES.to_vec(),
        ..traffic
    };
    let flows = |sources, destinations| Traffic {
        sources,
        destinations,
        ..Traffic::default()
    };
    resolved.traffics = vec![
        traffic("one-flow", flows(1, 1)),
        traffic("many", flows(60, 1000)),
        traffic("imix", imix()),
    ];
    let outcome = measure(&resolved, &mut |_| ()).unwrap();
    assert_eq!(outcome.trials.len(), 3 * 2 * 2);
    for trial in &outcome.trials {
        assert_eq!(evidence_against(trial), Vec::<&InvalidReason>::new());
        assert!(trial.tester.forwarded_frames > 0);
    }
    let strata: Vec<_> = resolved.strata().collect();
    assert!(
        outcome
            .block
            .conservation
            .keys()
            .all(|of| strata.contains(of))
    );
    for stratum in strata {
        let conservation = &outcome.block.conservation[&stratum];
        assert_eq!(
            conservation.unaccounted_frames, 0,
            "{stratum}: {conservation:?}"
        );
        let verification = &conservation.verification;
        assert!(verification.checked_frames > 0, "{stratum}");
        assert!(
            verification.wrong_frames.is_empty(),
            "{stratum}: {verification:?}"
        );
        // No frame of another traffic: those have other flows.
        assert!(verification.flows_seen <= resolved.traffic(stratum).flows());
    }
    let one_flow = &outcome.block.conservation[&"inet-one-flow".parse().unwrap()];
    assert_eq!(one_flow.verification.flows_seen, 1);
}

/// Each of the 60000 flows is proved, and under the load a few of them have nearly all frames.
#[test]
fn a_block_of_heavy_flows_is_valid_and_the_others_hardly_come() {
    testkit::require_root!();
    for direction in [Direction::Forward, Direction::Both] {
        let mut resolved = experiment(&FAMILIES, rulesets(&[("a", "")]), &["a"]);
        resolved.traffics[0] = Traffic {
            sources: 60,
            destinations: 1000,
            zipf: Some("3".parse().unwrap()),
            direction,
            families: FAMILIES.to_vec(),
            ..imix()
        };
        let traffic = &resolved.traffics[0];
        let flows_sent = traffic.flow_shares().unwrap().flows_sent * traffic.directions();
        let outcome = measure(&resolved, &mut |_| ()).unwrap();
        for trial in &outcome.trials {
            assert_eq!(evidence_against(trial), Vec::<&InvalidReason>::new());
        }
        for conservation in outcome.block.conservation.values() {
            assert_eq!(conservation.unaccounted_frames, 0, "{conservation:?}");
            let verification = &conservation.verification;
            assert!(verification.wrong_frames.is_empty(), "{verification:?}");
            assert!(
                verification.checked_frames > u64::from(flows_sent),
                "{verification:?}"
            );
            assert!(
                (1..=flows_sent).contains(&verification.flows_seen),
                "{verification:?}"
            );
        }
    }
}

#[test]
fn a_block_of_both_families_is_measured_as_planned() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let rules = forward_chain("udp dport 5001 drop\ntcp dport 23 drop");
    let levels = [("none", ""), ("two rules", rules.as_str())];
    let resolved = experiment(&FAMILIES, rulesets(&levels), &["none", "two rules"]);
    let mut events = Vec::new();
    let outcome = measure(&resolved, &mut |event| {
        events.push(match event {
            LabEvent::SetUp => "set-up",
            LabEvent::Ready { .. } => "ready",
            LabEvent::Slice(_) => "slice",
            LabEvent::Boot { .. } => "boot",
            LabEvent::FindsLoad => "finds load",
            LabEvent::NotSentBy { .. } => "not sent by",
            LabEvent::Unseen { .. } => "unseen",
            LabEvent::Again { .. } => "again",
            LabEvent::Profile(_) => "profile",
        });
    })
    .unwrap();

    let mut expected = vec!["set-up", "ready"];
    expected.extend(["slice"; 8]);
    assert_eq!(events, expected);

    let order: Vec<_> = outcome
        .slices
        .iter()
        .map(|slice| {
            (
                slice.stratum.family,
                slice.round,
                slice.position,
                slice.variant.as_str(),
            )
        })
        .collect();
    let mut planned = Vec::new();
    for family in FAMILIES {
        planned.extend([
            (family, 1, 0, "none"),
            (family, 1, 1, "two-rules"),
            (family, 2, 0, "two-rules"),
            (family, 2, 1, "none"),
        ]);
    }
    assert_eq!(order, planned);
    let mut end_s = outcome.block.set_up_s;
    for slice in &outcome.slices {
        assert!(slice.start_s >= end_s, "{slice:?}");
        assert!(slice.time_s >= 0.1 && slice.switch_s > 0.0, "{slice:?}");
        assert!(slice.forwarded_frames > 0 && slice.offered_frames > 0);
        assert_eq!(slice.dropped_frames, 0);
        assert!(slice.calibration_ns > 0);
        end_s = slice.start_s + slice.time_s;
    }

    assert_eq!(outcome.trials.len(), 4);
    for (trial, (family, order)) in outcome.trials.iter().zip([
        (FAMILIES[0], 0),
        (FAMILIES[0], 1),
        (FAMILIES[1], 0),
        (FAMILIES[1], 1),
    ]) {
        assert_eq!((trial.stratum.family, trial.order), (family, order));
        assert_eq!((trial.schema, trial.session), (SCHEMA_VERSION, 7));
        assert_eq!((trial.block, trial.attempt), (3, 2));
        assert_eq!(evidence_against(trial), Vec::<&InvalidReason>::new());
        let own = outcome
            .slices
            .iter()
            .filter(|slice| slice.stratum.family == family && slice.variant == trial.variant);
        let forwarded: u64 = own.map(|slice| slice.forwarded_frames).sum();
        assert_eq!(trial.tester.forwarded_frames, forwarded);
        assert!(trial.observation_pps > 0.0 && trial.pooled_pps > 0.0);
    }

    assert_eq!((outcome.block.block, outcome.block.session), (3, 7));
    for family in FAMILIES {
        let conservation = &outcome.block.conservation[&Stratum::from(family)];
        assert_eq!(conservation.unaccounted_frames, 0, "{conservation:?}");
        // The only drops are the generator's yardstick's.
        let reasons: Vec<_> = conservation.drops.keys().collect();
        assert_eq!(reasons, ["drop-at-ingress control"]);
        assert!(conservation.verification.checked_frames > 0);
        assert_eq!(conservation.verification.wrong_frames.len(), 0);
        assert!(outcome.block.generator_cost_ns[&Stratum::from(family)] > 0.0);
    }
    assert_eq!(own_namespaces(std::process::id()), Vec::<String>::new());
}

#[test]
fn a_paced_block_of_the_xdp_forwarder_loses_nothing() {
    testkit::require_root!();
    let programs = [
        ("kernel".to_owned(), XdpProgram::Off),
        ("fib".to_owned(), XdpProgram::Fib),
    ];
    let binding = Binding::Xdp(programs.into_iter().collect());
    let mut resolved = experiment(&[AddressFamily::Inet6], binding, &["fib", "kernel"]);
    resolved.traffics[0].load = Load::Paced { pps: 100_000 };
    let outcome = measure(&resolved, &mut |_| ()).unwrap();
    let conservation = &outcome.block.conservation[&Stratum::INET6];
    assert_eq!(conservation.unaccounted_frames, 0, "{conservation:?}");
    assert_eq!(conservation.verification.wrong_frames.len(), 0);
    for trial in &outcome.trials {
        assert_eq!(evidence_against(trial), Vec::<&InvalidReason>::new());
        // Never ahead of its time; the pacer makes up for 20 ms that it was kept from its CPU, so that
        // much may be sent in each of the trial's two slices that was due before.
        #[expect(clippy::cast_precision_loss, reason = "some ten thousand frames")]
        let offered_frames = trial.tester.offered_frames as f64;
        let due_frames = 100_000.0 * (trial.measured_s + 2.0 * 0.02);
        assert!(offered_frames < due_frames * 1.01, "{trial:?}");
    }
}

/// Slices of the block, each under a load that follows from the slice before it.
struct Following {
    block: PlannedBlock,
    load: fn(&SliceRecord) -> Load,
}

impl SliceSource for Following {
    fn next_slice(&mut self, stratum: Stratum, last: Option<&SliceRecord>) -> Option<NextSlice> {
        let mut next = self.block.slice_after(stratum, last)?;
        next.slice.load = last.map(self.load);
        Some(next)
    }
}

#[test]
fn a_slice_has_a_pace_of_its_own_under_a_load_that_goes_on() {
    testkit::require_root!();
    let levels = [("a", ""), ("b", "")];
    let mut resolved = experiment(&[AddressFamily::Inet], rulesets(&levels), &["a", "b"]);
    resolved.traffics[0].load = Load::Paced { pps: 80_000 };
    for tester in [Tester::Ebpf, Tester::Sendmmsg] {
        let mut slower = Following {
            block: block(&resolved),
            load: |_| Load::Paced { pps: 20_000 },
        };
        let outcome = measure_slices(tester, &resolved, &mut slower, &mut |_| ()).unwrap();
        let conservation = &outcome.block.conservation[&Stratum::INET];
        assert_eq!(conservation.unaccounted_frames, 0, "{conservation:?}");
        assert_eq!(outcome.slices.len(), 4);
        for slice in &outcome.slices[1..] {
            #[expect(clippy::cast_precision_loss, reason = "some thousand frames")]
            let offered_frames = slice.offered_frames as f64;
            // As much as may be made up for.
            let due_frames = 20_000.0 * (slice.time_s + 0.02);
            assert!(offered_frames < due_frames * 1.01, "{tester}: {slice:?}");
            let load = slice.load.unwrap();
            assert_eq!(load.regime, LoadRegime::Paced);
            assert_eq!(load.intended_pps, Some(20_000.0));
            assert_eq!(load.taken_frames, slice.offered_frames);
        }
        assert_eq!(outcome.slices[0].load.unwrap().intended_pps, Some(80_000.0));
    }
    let mut overload = Following {
        block: block(&resolved),
        load: |_| Load::Overload,
    };
    let refused = measure_slices(None, &resolved, &mut overload, &mut |_| ());
    assert!(matches!(refused, Err(LabError::OtherRegime { .. })));
}

#[test]
fn the_lab_is_opened_twice_in_one_thread_with_the_same_placement() {
    testkit::require_root!();
    let resolved = experiment(&[AddressFamily::Inet], rulesets(&[("a", "")]), &["a"]);
    let _machine = own_the_machine();
    let interrupts = fwdlab_sys::watch_interrupts().unwrap();
    let state = tempfile::tempdir().unwrap();
    let cpus = fwdlab_sys::online_cpus().unwrap();
    let mut first = NetnsLab::open(&resolved, state.path(), interrupts).unwrap();
    first
        .measure(&mut BlockRun {
            planned: &block(&resolved),
            slices: &mut block(&resolved),
            session: 1,
            attempt: 1,
            on_event: &mut |_| (),
        })
        .unwrap();
    assert_eq!(fwdlab_sys::online_cpus().unwrap(), cpus);
    let second = NetnsLab::open(&resolved, state.path(), interrupts).unwrap();
    assert_eq!(first.choices.placement, second.choices.placement);
    assert_eq!(first.choices.placement.load_cpu, cpus[0]);
    assert_eq!(second.unavailable().unwrap(), [None]);
}

#[test]
fn a_cpu_that_is_not_there_is_refused() {
    testkit::require_root!();
    let mut resolved = experiment(&[AddressFamily::Inet], rulesets(&[("a", "")]), &["a"]);
    resolved.lab.load_cpu = Some(1000);
    let interrupts = fwdlab_sys::watch_interrupts().unwrap();
    let state = tempfile::tempdir().unwrap();
    let Err(error) = NetnsLab::open(&resolved, state.path(), interrupts) else {
        panic!("there is no CPU 1000");
    };
    assert!(matches!(error, LabError::Cpu { cpu: 1000, .. }), "{error}");
}

#[test]
fn a_block_that_fails_under_load_leaves_nothing_running() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let resolved = experiment(&[AddressFamily::Inet], rulesets(&[("a", "")]), &["a"]);
    let _machine = own_the_machine();
    let interrupts = fwdlab_sys::watch_interrupts().unwrap();
    let state = tempfile::tempdir().unwrap();
    let mut lab = NetnsLab::open(&resolved, state.path(), interrupts).unwrap();
    let before = threads();
    let error = lab
        .measure(&mut BlockRun {
            planned: &block(&resolved),
            slices: &mut block(&resolved),
            session: 1,
            attempt: 1,
            on_event: &mut |event| {
                if let LabEvent::Slice(slice) = event {
                    assert_eq!(slice.variant, VariantName::from_label("a"));
                    run(&["ip", "-n", &dut_namespace(), "link", "del", "dut-in"]);
                }
            },
        })
        .unwrap_err();
    assert!(matches!(error, LabError::Netlink { .. }), "{error}");
    // A thread that has just been joined may be listed for a moment.
    wait_until("no thread is left", || threads() <= before);
    assert_eq!(own_namespaces(std::process::id()), Vec::<String>::new());
}

/// How many threads this process has.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}
