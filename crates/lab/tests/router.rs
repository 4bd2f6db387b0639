//! The router lab, from the experiment to the block's records, without any privilege.
//!
//! Tests take turns: each owns the machine while it runs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;

use fwdlab_lab::{BlockOutcome, BlockRun, LabError, LabEvent, RouterLab};
use fwdlab_model::{
    AddressFamily, Binding, Comparison, Conservation, Design, Direction, Factor, InvalidReason,
    Knob, Lab, LabKind, Level, Load, LoadRegime, PlannedBlock, ProfileEvery, Profiling, Resolved,
    RouterTester, Stratum, StratumOrder, Tester, Traffic, TrialRecord, Variant, VariantName,
};
use fwdlab_profile::{Folded, ProfilePair, Profiled, compare_profiles};
use fwdlab_router::Topology;
use testkit::own_the_machine;

const FAMILIES: [AddressFamily; 2] = [AddressFamily::Inet, AddressFamily::Inet6];

/// Forwards in turns with the tester unless told otherwise; the first variant is what the others are
/// compared with. A level is a knob's number.
fn experiment(variants: &[&[(Knob, i64)]]) -> Resolved {
    let label = |levels: &[(Knob, i64)]| {
        let levels = levels.iter();
        let labels = levels.map(|(knob, level)| format!("{}={level}", knob.name()));
        labels.collect::<Vec<_>>().join(" ")
    };
    let variants: Vec<_> = variants
        .iter()
        .map(|levels| Variant {
            name: VariantName::from_label(&label(levels)),
            label: label(levels),
            levels: levels
                .iter()
                .map(|&(knob, level)| (knob.name().to_owned(), Level::Integer(level)))
                .collect(),
            control_of: None,
            unavailable: None,
        })
        .collect();
    let mut factors = BTreeMap::<String, Factor>::new();
    for variant in &variants {
        for (name, level) in &variant.levels {
            let default = Knob::named(name).unwrap().default_level();
            let factor = factors.entry(name.clone()).or_insert_with(|| Factor {
                name: name.clone(),
                description: None,
                levels: Vec::new(),
                default: Level::Integer(default),
            });
            if !factor.levels.contains(level) {
                factor.levels.push(level.clone());
            }
        }
    }
    let bindings = Knob::ALL.map(|knob| (knob.name().to_owned(), Binding::Knob { knob }));
    let mut names = variants.iter().map(|variant| variant.name.clone());
    Resolved {
        name: "test".into(),
        question: "Impact of a test".into(),
        background: None,
        factors: factors.into_values().collect(),
        comparisons: vec![Comparison {
            title: None,
            baseline: names.next().unwrap(),
            variants: names.collect(),
        }],
        variants,
        traffics: vec![Traffic {
            families: FAMILIES.to_vec(),
            load: Load::SelfClocked,
            ..Traffic::default()
        }],
        design: Design {
            blocks: 1,
            rounds: 2,
            slice_ms: 60,
            settle_ms: 10,
            warm_up_ms: 10,
            ..Design::default()
        },
        lab: Lab {
            bindings: bindings.into(),
            kind: LabKind::Router,
            router: Some(fwdlab_model::RouterLab::default()),
            ..Lab::netns("router")
        },
        references: vec![],
        profiling: None,
    }
}

/// What is offered, in the router's own words.
fn under(
    load: Load,
    tester: RouterTester,
    queues: u32,
    overload_ratio: f64,
    resolved: Resolved,
) -> Resolved {
    let mut resolved = resolved;
    resolved.traffics[0].load = load;
    let router = resolved.lab.router.as_mut().unwrap();
    router.tester = tester;
    router.queues = queues;
    router.overload_ratio = overload_ratio;
    resolved
}

/// The block of an experiment: the second round turns the order of the first around.
fn block(resolved: &Resolved) -> PlannedBlock {
    let names = resolved
        .variants
        .iter()
        .map(|variant| variant.name.clone().into());
    let order: Vec<_> = names.collect();
    let reversed: Vec<_> = order.iter().rev().cloned().collect();
    let strata = resolved.strata();
    PlannedBlock {
        number: 3,
        strata: strata
            .map(|stratum| StratumOrder {
                stratum,
                rounds: vec![order.clone(), reversed.clone()],
            })
            .collect(),
    }
}

fn open(resolved: &Resolved) -> Result<RouterLab, LabError> {
    RouterLab::open(resolved, fwdlab_sys::watch_interrupts().unwrap())
}

/// Opens the lab, settles its load, and measures the experiment's block as attempt 2 of session 7.
fn measure(resolved: &Resolved) -> (RouterLab, BlockOutcome) {
    let _machine = own_the_machine();
    let mut lab = open(resolved).unwrap();
    lab.settle_load(None).unwrap();
    let outcome = lab
        .measure(&mut BlockRun {
            planned: &block(resolved),
            slices: &mut block(resolved),
            session: 7,
            attempt: 2,
            on_event: &mut |_| (),
        })
        .unwrap();
    assert_sound(resolved, &outcome);
    (lab, outcome)
}

/// Every frame is accounted for and as it should be, and nothing speaks against any trial but that this
/// machine is busy.
fn assert_sound(resolved: &Resolved, outcome: &BlockOutcome) {
    let variants = resolved.variants.len();
    assert_eq!(outcome.trials.len(), 2 * variants);
    assert_eq!(outcome.slices.len(), 4 * variants);
    for family in FAMILIES {
        let Conservation {
            offered_frames,
            forwarded_frames,
            not_transmitted_frames,
            drops,
            unaccounted_frames,
            foreign_frames,
            verification,
        } = &outcome.block.conservation[&Stratum::from(family)];
        assert_eq!(*unaccounted_frames, 0, "{family}: {drops:?}");
        assert_eq!(
            *offered_frames,
            forwarded_frames + drops.values().sum::<u64>(),
            "{family}: {drops:?}"
        );
        assert!(*forwarded_frames > 0);
        assert_eq!(*not_transmitted_frames, 0);
        assert_eq!(*foreign_frames, 0);
        assert!(verification.checked_frames > 0);
        assert_eq!(verification.wrong_frames, BTreeMap::new());
        assert!(outcome.block.generator_cost_ns[&Stratum::from(family)] > 0.0);
    }
    for trial in &outcome.trials {
        assert_eq!((trial.session, trial.block, trial.attempt), (7, 3, 2));
        assert_eq!(evidence_against(trial), Vec::<&InvalidReason>::new());
        assert!(trial.tester.forwarded_frames > 0);
    }
}

/// What speaks against a trial, without what only says that this machine is busy or fast.
fn evidence_against(trial: &TrialRecord) -> Vec<&InvalidReason> {
    let is_of_the_machine = |reason: &InvalidReason| {
        matches!(
            reason,
            InvalidReason::Stolen { .. }
                | InvalidReason::Calibration { .. }
                | InvalidReason::LoadShort { .. }
                | InvalidReason::EarlierFrames { .. }
                | InvalidReason::GeneratorLimited
        )
    };
    let reasons = trial.invalid.iter();
    reasons
        .filter(|reason| !is_of_the_machine(reason))
        .collect()
}

/// Whether a trial is said to have been offered too little.
fn is_said_of_load(trial: &TrialRecord) -> bool {
    trial.invalid.iter().any(|reason| {
        matches!(
            reason,
            InvalidReason::LoadShort { .. } | InvalidReason::GeneratorLimited
        )
    })
}

fn cpus() -> u32 {
    u32::try_from(fwdlab_sys::online_cpus().unwrap().len()).unwrap()
}

const L2_PREPEND: &[&[(Knob, i64)]] = &[&[(Knob::L2Prepend, 1)], &[(Knob::L2Prepend, 0)]];

#[test]
fn in_turns_a_block_is_measured_as_planned_and_nothing_is_dropped() {
    let resolved = experiment(L2_PREPEND);
    let _machine = own_the_machine();
    let mut lab = open(&resolved).unwrap();
    lab.settle_load(None).unwrap();
    let mut events = Vec::new();
    let outcome = lab
        .measure(&mut BlockRun {
            planned: &block(&resolved),
            slices: &mut block(&resolved),
            session: 7,
            attempt: 2,
            on_event: &mut |event| {
                events.push(match event {
                    LabEvent::SetUp => "set-up",
                    LabEvent::Ready { .. } => "ready",
                    LabEvent::Slice(_) => "slice",
                    LabEvent::Profile(_) => "profile",
                    LabEvent::Boot { .. } => "boot",
                    LabEvent::FindsLoad => "finds load",
                    LabEvent::NotSentBy { .. } => "not sent by",
                    LabEvent::Unseen { .. } => "unseen",
                    LabEvent::Again { .. } => "again",
                });
            },
        })
        .unwrap();
    assert_sound(&resolved, &outcome);

    let mut expected = vec!["set-up", "ready"];
    expected.extend(["slice"; 8]);
    assert_eq!(events, expected);
    let mut planned = Vec::new();
    for family in FAMILIES {
        for (round, order) in [(1, [0, 1]), (2, [1, 0])] {
            for (position, variant) in (0..).zip(order) {
                planned.push((
                    family,
                    round,
                    position,
                    resolved.variants[variant].name.clone(),
                ));
            }
        }
    }
    let slices = outcome.slices.iter();
    let order = slices.map(|slice| {
        let variant = slice.variant.clone();
        (slice.stratum.family, slice.round, slice.position, variant)
    });
    assert_eq!(order.collect::<Vec<_>>(), planned);

    for conservation in outcome.block.conservation.values() {
        assert_eq!(conservation.drops, BTreeMap::new());
        // Where nothing is dropped, the checks take the flows in turn.
        let verification = &conservation.verification;
        let flows = u64::from(resolved.traffics[0].flows());
        assert_eq!(
            u64::from(verification.flows_seen),
            verification.checked_frames.min(flows)
        );
    }
    for trial in &outcome.trials {
        assert_eq!(trial.dut.drops, BTreeMap::new());
        assert!(!is_said_of_load(trial), "{:?}", trial.invalid);
    }
    let load = lab.load();
    assert_eq!(load.regime, LoadRegime::SelfClocked);
    assert_eq!((load.instead_of, &load.why), (None, &None));
    assert_eq!(lab.choices.tester.tester, Tester::MemoryInline);
    assert_eq!(lab.choices.placement.dut_cpu, None);
    for queues in lab.choices.placement.queues.values() {
        assert_eq!(queues.len(), 1);
        assert_eq!(queues[0].rx_cpu, lab.choices.placement.load_cpu);
    }
}

#[test]
fn the_ends_of_every_knob_are_forwarded_through_in_both_directions() {
    let mut resolved = experiment(&[
        &[],
        &[(Knob::OverrideNrxds, 64)],
        &[(Knob::OverrideNtxds, 64)],
        &[(Knob::OverrideNtxds, 64), (Knob::SimpleTx, 1)],
        &[(Knob::OverrideNrxds, 16_384), (Knob::OverrideNtxds, 16_384)],
        &[(Knob::TxAbdicate, 1)],
        &[(Knob::TxReclaimThresh, 16_384)],
        &[(Knob::Prefetch, 0), (Knob::HarvestMask, 0xffff_ffff)],
        &[(Knob::Ipv4Redirect, 0), (Knob::Ipv6Redirect, 0)],
    ]);
    resolved.design.slice_ms = 20;
    for direction in [Direction::Forward, Direction::Both] {
        resolved.traffics[0].direction = direction;
        let (_, outcome) = measure(&resolved);
        for conservation in outcome.block.conservation.values() {
            assert_eq!(conservation.drops, BTreeMap::new());
        }
    }
}

/// Each of the 2000 flows is proved, and under the load a few of them have nearly all frames.
#[test]
fn heavy_flows_go_through_one_queue_or_several() {
    let mut resolved = experiment(L2_PREPEND);
    resolved.traffics[0].zipf = Some("3".parse().unwrap());
    let flows_sent = resolved.traffics[0].flow_shares().unwrap().flows_sent;
    assert!(flows_sent < 200);
    for queues in [1, 3] {
        let load = Load::SelfClocked;
        let resolved = under(load, RouterTester::Inline, queues, 1.25, resolved.clone());
        let (_, outcome) = measure(&resolved);
        for conservation in outcome.block.conservation.values() {
            let verification = &conservation.verification;
            assert!(verification.checked_frames > u64::from(flows_sent));
            assert!((1..=flows_sent).contains(&verification.flows_seen));
        }
    }
}

#[test]
fn several_queues_take_turns_on_one_cpu() {
    let resolved = experiment(L2_PREPEND);
    let load = Load::SelfClocked;
    let resolved = under(load, RouterTester::Inline, 3, 1.25, resolved);
    let (lab, _) = measure(&resolved);
    for queues in lab.choices.placement.queues.values() {
        assert_eq!(queues.len(), 3);
        assert!(
            queues
                .iter()
                .all(|queue| queue.rx_cpu == lab.choices.placement.load_cpu)
        );
    }
}

#[test]
fn overload_is_what_the_baseline_forwards_times_the_ratio_or_a_reason_why_not() {
    let resolved = experiment(L2_PREPEND);
    let resolved = under(Load::Overload, RouterTester::Auto, 1, 1.25, resolved);
    let (lab, _) = measure(&resolved);
    let load = lab.load();
    if cpus() < 2 {
        assert_eq!(load.regime, LoadRegime::SelfClocked);
        assert!(load.why.as_ref().unwrap().contains("CPUs"));
        return;
    }
    let mut is_short = false;
    assert!(load.strata.keys().copied().eq(FAMILIES.map(Stratum::from)));
    for of_stratum in load.strata.values() {
        let capacity = of_stratum.baseline_capacity_pps.unwrap();
        let intended = of_stratum.intended_pps.unwrap();
        assert!(capacity > 0.0);
        assert!((intended / capacity - 1.25).abs() < 1e-9);
        is_short |= of_stratum.tester_ceiling_pps.unwrap() < intended;
    }
    if is_short {
        assert_eq!(load.regime, LoadRegime::SelfClocked);
        assert_eq!(load.instead_of, Some(LoadRegime::Overload));
        assert!(
            load.why
                .as_ref()
                .unwrap()
                .starts_with("the tester can send and count")
        );
        assert_eq!(lab.choices.tester.tester, Tester::MemoryInline);
    } else {
        assert_eq!(load.regime, LoadRegime::Overload);
        assert_eq!((load.instead_of, &load.why), (None, &None));
        assert_eq!(lab.choices.tester.tester, Tester::MemoryThreaded);
    }
    // A run that goes on keeps its load, whatever the machine could do by now.
    let _machine = own_the_machine();
    let mut going_on = open(&resolved).unwrap();
    going_on.settle_load(Some(load)).unwrap();
    assert_eq!(going_on.load(), load);
    assert_eq!(going_on.choices.tester.tester, lab.choices.tester.tester);
}

#[test]
fn a_tester_in_threads_of_its_own_loses_nothing_uncounted() {
    if cpus() < 2 {
        testkit::skip!("a tester in threads of its own needs 2 CPUs");
    }
    // Whatever the machine, so little can be offered, and so much cannot be taken.
    let resolved = experiment(&[
        &[(Knob::TxAbdicate, 0)],
        &[(Knob::TxAbdicate, 1)],
        &[(Knob::L2Prepend, 0), (Knob::HarvestMask, 0xffff_ffff)],
    ]);
    let little = under(
        Load::Overload,
        RouterTester::Threaded,
        1,
        0.01,
        resolved.clone(),
    );
    let paced = Load::Paced { pps: 1_000_000_000 };
    let much = under(paced, RouterTester::Threaded, 1, 1.25, resolved);
    for (resolved, is_overload) in [(little, false), (much, true)] {
        let (lab, outcome) = measure(&resolved);
        assert_eq!(lab.load().regime, resolved.traffics[0].load.regime());
        assert_eq!(lab.choices.tester.tester, Tester::MemoryThreaded);
        let placement = &lab.choices.placement;
        assert_ne!(placement.dut_cpu.unwrap(), placement.load_cpu);
        for queues in placement.queues.values() {
            assert_ne!(queues[0].rx_cpu, placement.load_cpu);
        }
        if is_overload {
            for conservation in outcome.block.conservation.values() {
                let reasons: Vec<&str> = conservation.drops.keys().map(String::as_str).collect();
                assert!(reasons.contains(&"rx: no descriptor"), "{reasons:?}");
            }
        }
    }
}

#[test]
fn more_threads_than_cpus_are_refused_where_they_are_asked_for_and_else_take_turns() {
    let queues = cpus();
    let with = |tester| {
        let mut resolved = experiment(L2_PREPEND);
        resolved.design.slice_ms = 20;
        under(Load::Overload, tester, queues, 1.25, resolved)
    };
    {
        let _machine = own_the_machine();
        let error = open(&with(RouterTester::Threaded)).err().unwrap();
        assert!(matches!(error, LabError::Oversubscribed { .. }), "{error}");
        let wanted = format!(
            "a tester in threads of its own and {queues} queues need {} CPUs, and this process may use \
             {queues}; ask for fewer queues, or for tester = \"auto\" or \"inline\" in the lab file",
            queues + 1
        );
        assert_eq!(error.to_string(), wanted);
    }
    let too_few = format!(
        "{queues} queues with a worker each and a tester need {} CPUs, and there are {queues}",
        queues + 1
    );
    for (tester, why) in [
        (RouterTester::Auto, too_few.as_str()),
        (
            RouterTester::Inline,
            "the lab file asks for an inline tester",
        ),
    ] {
        let (lab, outcome) = measure(&with(tester));
        let load = lab.load();
        assert_eq!(load.regime, LoadRegime::SelfClocked);
        assert_eq!(load.instead_of, Some(LoadRegime::Overload));
        assert_eq!(load.why.as_deref(), Some(why));
        assert!(load.strata.is_empty());
        assert_eq!(lab.choices.tester.tester, Tester::MemoryInline);
        // Nobody demands drops of who takes turns.
        assert!(!outcome.trials.iter().any(is_said_of_load));
    }
}

#[test]
fn a_load_that_is_not_offered_is_not_missed() {
    let resolved = experiment(L2_PREPEND);
    let paced = Load::Paced { pps: 1_000_000_000 };
    let resolved = under(paced, RouterTester::Inline, 1, 1.25, resolved);
    let (lab, outcome) = measure(&resolved);
    assert_eq!(lab.load().regime, LoadRegime::SelfClocked);
    assert_eq!(lab.load().instead_of, Some(LoadRegime::Paced));
    for trial in &outcome.trials {
        assert!(!is_said_of_load(trial), "{:?}", trial.invalid);
    }
}

#[test]
fn places_that_this_machine_lacks_are_unavailable_and_say_why() {
    let topology = Topology::read(|path| std::fs::read_to_string(path).ok()).unwrap();
    let has_second_threads = topology.cpus().iter().any(|cpu| cpu.siblings.len() > 1);
    if has_second_threads {
        testkit::skip!("this machine's cores have second hardware threads");
    }
    for (knob, levels) in [
        (Knob::UseLogicalCores, [0, 1]),
        (Knob::HyperthreadingIntrAllowed, [0, 1]),
        (Knob::HyperthreadingAllowed, [1, 0]),
    ] {
        let variants = levels.map(|level| [(knob, level)]);
        let resolved = experiment(&[&variants[0], &variants[1]]);
        let lab = open(&under(
            Load::SelfClocked,
            RouterTester::Inline,
            // The tester's CPU is set aside, whoever has the others.
            cpus() - 1,
            1.25,
            resolved,
        ))
        .unwrap();
        let name = knob.name();
        let unavailable = lab.unavailable();
        let [available, lacking] = &unavailable[..] else {
            panic!("{unavailable:?}");
        };
        if cpus() > 1 {
            assert_eq!(*available, None);
        }
        assert_eq!(
            lacking.as_deref(),
            Some(
                format!(
                    "{name}={}: no core that the router may use has a second hardware thread, so \
                     nothing would differ",
                    levels[1]
                )
                .as_str()
            )
        );
    }
}

#[test]
fn what_is_unavailable_is_left_out_and_the_rest_is_measured() {
    let mut resolved = experiment(L2_PREPEND);
    resolved
        .lab
        .bindings
        .insert("routes".into(), Binding::Routes);
    for (variant, routes) in resolved.variants.iter_mut().zip([1000, 1]) {
        let level = Level::Integer(routes);
        variant.levels.insert("routes".into(), level);
    }
    let lab = open(&resolved).unwrap();
    let reason = "the lab itself needs 2 routes".to_owned();
    assert_eq!(lab.unavailable(), [None, Some(reason)]);
    drop(lab);

    let _machine = own_the_machine();
    let mut lab = open(&resolved).unwrap();
    lab.settle_load(None).unwrap();
    let mut planned = block(&resolved);
    for order in planned
        .strata
        .iter_mut()
        .flat_map(|stratum| &mut stratum.rounds)
    {
        order.retain(|slice| slice.variant == resolved.variants[0].name);
    }
    resolved.variants.truncate(1);
    let outcome = lab
        .measure(&mut BlockRun {
            planned: &planned.clone(),
            slices: &mut planned,
            session: 7,
            attempt: 2,
            on_event: &mut |_| (),
        })
        .unwrap();
    assert_sound(&resolved, &outcome);
}

#[test]
fn a_cpu_that_is_not_there_is_refused() {
    let mut resolved = experiment(L2_PREPEND);
    resolved.lab.load_cpu = Some(100_000);
    let error = open(&resolved).map(|_| ()).unwrap_err();
    assert!(
        matches!(error, LabError::Cpu { cpu: 100_000, .. }),
        "{error}"
    );
}

#[test]
fn the_function_of_a_knobs_cost_is_on_top_of_the_difference() {
    let _machine = own_the_machine();
    let mut resolved = experiment(L2_PREPEND);
    resolved.traffics[0].families = vec![AddressFamily::Inet6];
    resolved.profiling = Some(Profiling {
        every: ProfileEvery::Block,
        slice_ms: 150,
        frequency_hz: 1999,
    });
    let mut lab = open(&resolved).unwrap();
    assert_eq!(lab.choices.profiles_unavailable, None);
    lab.settle_load(None).unwrap();
    let blocks: Vec<BlockOutcome> = (1..=8)
        .map(|_| {
            lab.measure(&mut BlockRun {
                planned: &block(&resolved),
                slices: &mut block(&resolved),
                session: 1,
                attempt: 1,
                on_event: &mut |_| (),
            })
            .unwrap()
        })
        .collect();
    let stacks: Vec<[Folded<'_>; 2]> = blocks
        .iter()
        .map(|block| {
            let of = |level: &str| {
                let mut profiles = block.profiles.iter();
                let profile = profiles.find(|profile| profile.variant.as_str().ends_with(level));
                Folded::parse(profile.unwrap().folded.as_bytes()).unwrap()
            };
            [of("1"), of("0")]
        })
        .collect();
    let profiled = |block: &BlockOutcome, index: usize| {
        let name = &resolved.variants[index].name;
        let mut trials = block.trials.iter();
        let trial = trials.find(|trial| &trial.variant == name).unwrap();
        1e9 / trial.observation_pps
    };
    let pairs: Vec<ProfilePair<'_>> = blocks
        .iter()
        .zip(&stacks)
        .map(|(block, [with, without])| ProfilePair {
            baseline: Profiled {
                stacks: with,
                ns_per_packet: profiled(block, 0),
            },
            variant: Profiled {
                stacks: without,
                ns_per_packet: profiled(block, 1),
            },
        })
        .collect();
    let found = compare_profiles(&pairs, 0.95).unwrap();
    // Without the ready header every packet looks its neighbour up, in a function of its own that calls another:
    // which of them has more of the time depends on what the compiler inlines.
    let lookups = [
        "fwdlab_router::link::resolve",
        "fwdlab_router::network::link_address",
    ];
    let top = &found.frames[0];
    assert!(lookups.contains(&top.frame.as_str()), "{found:?}");
    assert!(top.itself.is_significant && top.itself.is_new(), "{top:?}");
    let lookup = found.frame(lookups[0]).unwrap().with_callees;
    assert!(lookup.is_significant && lookup.is_new(), "{lookup:?}");
    assert!(
        lookup.difference_ns > 0.3 * found.whole.difference_ns,
        "{lookup:?}"
    );
}
