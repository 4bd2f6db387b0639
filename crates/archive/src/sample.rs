//! Runs for the tests.

use std::collections::BTreeMap;

use fwdlab_model::{
    AccountSource, BlockRecord, Comparison, Conservation, Contention, CpuSamples, Design,
    DutReading, Environment, InvalidReason, Lab, LoadRegime, Placement, Plan, PlannedBlock,
    ProfileFault, ProfileRecord, ProfileStacks, RateBasis, Resolved, SCHEMA_VERSION, SessionRecord,
    SliceLoad, SliceRecord, Stratum, StratumOrder, TesterReading, Traffic, TrialRecord, Variant,
    VariantName,
};

use crate::results::NewRun;

/// How many blocks its plan has.
pub const BLOCKS: u32 = 4;
/// When it was started.
pub const STARTED: &str = "20261121T084253Z";
/// Its kernel.
pub const KERNEL: &str = "6.18.44";
/// Its label.
pub const LABEL: &str = "6.18.44-20261121T084253Z";
/// Its experiment file.
pub const SOURCE: &[u8] = b"question = \"Impact of a test\" # as given\n";

fn variant_names() -> Vec<VariantName> {
    ["none", "nft", "xdp"].map(VariantName::from_label).into()
}

/// Its experiment, resolved.
#[must_use]
pub fn resolved() -> Resolved {
    let names = variant_names();
    Resolved {
        name: "quickstart".into(),
        question: "Impact of a test".into(),
        background: None,
        factors: vec![],
        variants: names
            .iter()
            .map(|name| Variant {
                name: name.clone(),
                label: name.to_string(),
                levels: BTreeMap::new(),
                control_of: None,
                unavailable: None,
            })
            .collect(),
        comparisons: vec![Comparison {
            title: None,
            baseline: names[0].clone(),
            variants: names[1..].to_vec(),
        }],
        traffics: vec![Traffic::default()],
        design: Design {
            blocks: BLOCKS,
            rounds: 2,
            warm_up_ms: 1000,
            seed: 42,
            seed_was_drawn: true,
            ..Design::default()
        },
        lab: Lab::netns("here"),
        references: vec![],
        profiling: None,
    }
}

/// Its plan.
#[must_use]
pub fn plan() -> Plan {
    let mut reversed = variant_names();
    reversed.reverse();
    Plan {
        seed: 42,
        blocks: (1..=BLOCKS)
            .map(|number| PlannedBlock {
                number,
                strata: vec![StratumOrder {
                    stratum: Stratum::INET,
                    rounds: [variant_names(), reversed.clone()]
                        .map(|row| row.into_iter().map(Into::into).collect())
                        .into(),
                }],
            })
            .collect(),
    }
}

/// What a directory of it is created from.
#[must_use]
pub fn new_run<'a>(resolved: &'a Resolved, plan: &'a Plan) -> NewRun<'a> {
    NewRun {
        resolved,
        plan,
        experiment_source: SOURCE,
        kernel: KERNEL,
        started: STARTED,
    }
}

/// A session of it.
#[must_use]
pub fn session(session: u32) -> SessionRecord {
    SessionRecord {
        schema: SCHEMA_VERSION,
        session,
        start: "2026-11-21T08:42:53Z".into(),
        fwdlab: "0.1.0".into(),
        experiment_path: "experiments/sample.toml".into(),
        lab_path: None,
        environment: Environment {
            kernel: "6.18.44 #1 SMP".into(),
            cpu_model: "A CPU".into(),
            cpus: 2,
            ..Environment::default()
        },
        placement: Placement {
            load_cpu: 1,
            dut_cpu: None,
            control_cpu: 0,
            queues: BTreeMap::new(),
        },
        load: None,
    }
}

/// What a lab makes of an attempt at a block.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Those of an attempt.
    pub trials: Vec<TrialRecord>,
    /// Its end.
    pub block: BlockRecord,
    /// What the trials were made of.
    pub slices: Vec<SliceRecord>,
    /// A profile of each trial.
    pub profiles: Vec<ProfileStacks>,
}

/// What the stacks of every trial's profile are.
pub const STACKS: &str = "fwdlab;ip_forward 5\nfwdlab;ip_forward;fib_lookup 2\n";

fn profile() -> ProfileRecord {
    ProfileRecord {
        event: "cpu-clock".into(),
        frequency_hz: 1999,
        has_kernel: true,
        time_s: 0.25,
        pooled_pps: 1_100_000.5,
        samples: 7,
        idle_samples: 0,
        samples_by_cpu: vec![CpuSamples { cpu: 1, samples: 7 }],
        foreign_samples: 0,
        harness_samples: 3,
        lost_samples: 0,
        outside_samples: 0,
        attempts: 1,
        faults: vec![ProfileFault::FewSamples {
            samples: 7,
            bound: 100,
        }],
    }
}

/// What a lab would measure; numbers depend on the block and the variant only.
///
/// # Panics
/// The plan has no such block.
#[must_use]
pub fn outcome(plan: &Plan, block: u32, attempt: u32, session: u32, valid: bool) -> Outcome {
    let order = &plan.blocks[block as usize - 1].strata[0];
    let slices: Vec<SliceRecord> = (1_u32..)
        .zip(&order.rounds)
        .flat_map(|(round, row)| {
            (0_u32..)
                .zip(row)
                .map(move |(position, slice)| SliceRecord {
                    start_s: f64::from(round * 3 + position) * 0.15,
                    time_s: 0.1,
                    offered_frames: 130_001,
                    forwarded_frames: 120_000 + u64::from(block),
                    undisturbed_s: 0.09,
                    undisturbed_frames: 108_000,
                    dropped_frames: 10_001 - u64::from(block),
                    calibration_ns: 100_000,
                    switch_s: 0.003,
                    contention: Some(Contention {
                        competing_s: 0.0005,
                        alone_s: 0.098,
                        alone_frames: 117_000,
                    }),
                    load: Some(SliceLoad {
                        regime: LoadRegime::SelfClocked,
                        intended_pps: None,
                        taken_frames: 130_001,
                    }),
                    ..SliceRecord::at(order.stratum, round, position, slice.variant.clone())
                })
        })
        .collect();
    let trials: Vec<TrialRecord> = (0_u32..)
        .zip(order.variants())
        .map(|(position, variant)| TrialRecord {
            schema: SCHEMA_VERSION,
            session,
            block,
            attempt,
            order: position,
            variant: variant.clone(),
            stratum: order.stratum,
            start: "2026-11-21T08:43:00Z".into(),
            measured_s: 0.2,
            tester: TesterReading {
                offered_frames: 260_002,
                forwarded_frames: 240_000,
                ..TesterReading::default()
            },
            dut: DutReading {
                drops: BTreeMap::from([("nft".into(), 20_002)]),
                ..DutReading::default()
            },
            kernel_drop_reasons: BTreeMap::new(),
            undisturbed_s: 0.18,
            observation_pps: 1_200_000.0 + f64::from(block * 10 + position) / 3.0,
            pooled_pps: 1_200_000.1,
            competing_s: Some(0.001),
            competitors: Vec::new(),
            steal_s: 0.0,
            calibration_ns: 1e5,
            profile: Some(Box::new(profile())),
            invalid: (!valid && position == 1)
                .then_some(InvalidReason::Stolen {
                    ratio: 0.1,
                    bound: 0.01,
                })
                .into_iter()
                .collect(),
        })
        .collect();
    let block = BlockRecord {
        schema: SCHEMA_VERSION,
        session,
        block,
        attempt,
        start: "2026-11-21T08:42:59Z".into(),
        set_up_s: 0.7,
        took_s: None,
        clock_step_s: None,
        switch_s: 0.003,
        conservation: BTreeMap::from([(order.stratum, Conservation::default())]),
        generator_cost_ns: BTreeMap::from([(order.stratum, 81.25)]),
        undisturbed_loop_ns: 690.0,
        cpu_account: Some(AccountSource::Scheduler),
        cpu_speeds: Vec::new(),
        rate_basis: BTreeMap::from([(order.stratum, RateBasis::Undisturbed)]),
        differing_facts: BTreeMap::new(),
        tester: None,
    };
    let profiles = trials
        .iter()
        .map(|trial| ProfileStacks {
            variant: trial.variant.clone(),
            stratum: trial.stratum,
            folded: STACKS.to_owned(),
        })
        .collect();
    Outcome {
        trials,
        block,
        slices,
        profiles,
    }
}
