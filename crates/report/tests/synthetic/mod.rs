//! Records of a run that never was: seeded, with the noise of a real machine.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fwdlab_archive::{Attempt, Loaded};
use fwdlab_model::record::fates;
use fwdlab_model::{
    AccountSource, AddressFamily, Binding, BlockRecord, Comparison, Conservation, Design,
    DutReading, Environment, Factor, InvalidReason, Lab, Level, Placement, Plan, PlannedBlock,
    PlannedSlice, RateBasis, Record, Resolved, SCHEMA_VERSION, SessionRecord, SliceRecord, Stratum,
    StratumOrder, Tester, TesterReading, Traffic, TrialRecord, Variant, VariantName, Verification,
};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// A run to be made up.
#[derive(Clone, Debug)]
pub(crate) struct Synthetic {
    /// Label and true effect of each variant, in percent; the first is the baseline.
    pub(crate) variants: Vec<(String, f64)>,
    pub(crate) strata: Vec<Stratum>,
    /// By how many percent the rate of which variant is another in which strata, beside its effect.
    pub(crate) in_strata: Vec<(Stratum, usize, f64)>,
    /// Whether the baseline is entered twice.
    pub(crate) control: bool,
    pub(crate) planned_blocks: u32,
    pub(crate) measured_blocks: u32,
    pub(crate) rounds: u32,
    /// Standard deviations of the log rate, in percent.
    pub(crate) block_noise_percent: f64,
    pub(crate) round_noise_percent: f64,
    /// Block and index of variant of the trials that are invalid.
    pub(crate) invalid: Vec<(u32, usize)>,
    /// Titles of comparisons; each has the same variants.
    pub(crate) titles: Vec<Option<String>>,
    pub(crate) question: String,
    pub(crate) background: Option<String>,
    pub(crate) sessions: u32,
}

impl Default for Synthetic {
    fn default() -> Self {
        Self {
            variants: [
                ("no filter", 0.0),
                ("nftables, 10 stateless rules", -21.4),
                ("nftables conntrack", -28.9),
                ("XDP fib forwarding", 143.0),
            ]
            .map(|(label, effect)| (label.to_owned(), effect))
            .to_vec(),
            strata: vec![Stratum::INET],
            in_strata: Vec::new(),
            control: true,
            planned_blocks: 8,
            measured_blocks: 8,
            rounds: 10,
            block_noise_percent: 0.4,
            round_noise_percent: 2.0,
            invalid: Vec::new(),
            titles: vec![None],
            question: "Impact of a packet filter on this machine's IPv4 forwarding".to_owned(),
            background: None,
            sessions: 1,
        }
    }
}

impl Synthetic {
    /// As large as runs get: 200 variants and 100 blocks of 10 rounds, so 200 000 slices.
    #[allow(dead_code, reason = "every test program uses a part of it")]
    pub(crate) fn largest() -> Self {
        Self {
            variants: rules(200),
            control: false,
            planned_blocks: 100,
            measured_blocks: 100,
            ..Self::default()
        }
    }

    pub(crate) fn loaded(&self) -> Loaded {
        let resolved = self.resolved();
        let mut random = Random(Pcg64::seed_from_u64(7));
        let mut measured = Vec::new();
        for block in 1..=self.measured_blocks {
            if self.invalid.iter().any(|(invalid, _)| *invalid == block) {
                measured.push(self.measure(block, 1, &resolved, &mut random));
                measured.push(self.measure(block, 2, &resolved, &mut random));
            } else {
                measured.push(self.measure(block, 1, &resolved, &mut random));
            }
        }
        let mut records = Vec::new();
        for (block, trials, _) in &measured {
            records.extend(trials.iter().cloned().map(Record::Trial));
            records.push(Record::Block(block.clone()));
        }
        let fates = fates(&records);
        let of_blocks = records
            .iter()
            .zip(fates)
            .filter(|(record, _)| matches!(record, Record::Block(_)));
        let attempts = measured
            .into_iter()
            .zip(of_blocks)
            .map(|((record, trials, slices), (_, fate))| Attempt {
                profiles: Vec::new(),
                record,
                fate,
                trials,
                slices,
            })
            .collect();
        Loaded {
            dir: PathBuf::from("results/quickstart/made-up"),
            hash: resolved.hash(),
            started: "2026-11-21T09:00:00Z".to_owned(),
            kernel: "6.18.5".to_owned(),
            plan: self.plan(&resolved),
            sessions: (1..=self.sessions).map(session).collect(),
            records,
            attempts,
            finished: None,
            warnings: Vec::new(),
            resolved,
        }
    }

    fn names(&self) -> Vec<VariantName> {
        // Numbered, because hostile labels may share a name.
        let names = self.variants.iter().enumerate();
        names
            .map(|(index, (label, _))| VariantName::from_label(label).numbered(index))
            .collect()
    }

    /// One for each name that its strata have.
    fn traffics(&self) -> Vec<Traffic> {
        let mut traffics: Vec<Traffic> = Vec::new();
        for stratum in &self.strata {
            match traffics.iter_mut().find(|of| of.name == stratum.traffic) {
                Some(traffic) => traffic.families.push(stratum.family),
                None => traffics.push(Traffic {
                    name: stratum.traffic,
                    families: vec![stratum.family],
                    ..Traffic::default()
                }),
            }
        }
        traffics
    }

    fn resolved(&self) -> Resolved {
        let names = self.names();
        let level = |index: usize| Level::Text(format!("level-{index}"));
        let mut variants: Vec<Variant> = self
            .variants
            .iter()
            .enumerate()
            .map(|(index, (label, _))| Variant {
                name: names[index].clone(),
                label: label.clone(),
                levels: BTreeMap::from([("filter".to_owned(), level(index))]),
                control_of: None,
                unavailable: None,
            })
            .collect();
        if self.control {
            variants.push(Variant {
                name: control_name(),
                label: format!("{} (again)", self.variants[0].0),
                levels: variants[0].levels.clone(),
                control_of: Some(names[0].clone()),
                unavailable: None,
            });
        }
        Resolved {
            name: "quickstart".to_owned(),
            question: self.question.clone(),
            background: self.background.clone(),
            factors: vec![Factor {
                name: "filter".to_owned(),
                description: Some("What looks at every packet on its way".to_owned()),
                levels: (0..self.variants.len()).map(level).collect(),
                default: level(0),
            }],
            comparisons: self
                .titles
                .iter()
                .map(|title| Comparison {
                    title: title.clone(),
                    baseline: names[0].clone(),
                    variants: names[1..].to_vec(),
                })
                .collect(),
            variants,
            traffics: self.traffics(),
            design: Design {
                blocks: self.planned_blocks,
                rounds: self.rounds,
                warm_up_ms: 500,
                seed: 42,
                seed_was_drawn: true,
                ..Design::default()
            },
            lab: Lab {
                description: Some("A laptop on the kitchen table".to_owned()),
                bindings: BTreeMap::from([("filter".to_owned(), Binding::Nft(BTreeMap::new()))]),
                ..Lab::netns("local")
            },
            references: Vec::new(),
            profiling: None,
        }
    }

    fn plan(&self, resolved: &Resolved) -> Plan {
        let names: Vec<&VariantName> = resolved.variants.iter().map(|v| &v.name).collect();
        let order = |places: Vec<u32>| {
            let mut order: Vec<(u32, &VariantName)> =
                places.into_iter().zip(names.iter().copied()).collect();
            order.sort();
            order
                .into_iter()
                .map(|(_, name)| name.clone().into())
                .collect()
        };
        let block = |number| {
            let rounds: Vec<Vec<PlannedSlice>> = self
                .places(number, names.len())
                .into_iter()
                .map(order)
                .collect();
            let strata = self.strata.iter().map(|&stratum| StratumOrder {
                stratum,
                rounds: rounds.clone(),
            });
            PlannedBlock {
                number,
                strata: strata.collect(),
            }
        };
        Plan {
            seed: 42,
            blocks: (1..=self.planned_blocks).map(block).collect(),
        }
    }

    /// The place of each variant in each round of a block.
    fn places(&self, block: u32, variants: usize) -> Vec<Vec<u32>> {
        let mut random = Random(Pcg64::seed_from_u64(u64::from(block)));
        (0..self.rounds)
            .map(|_| random.permutation(count(variants)))
            .collect()
    }

    fn measure(
        &self,
        block: u32,
        attempt: u32,
        resolved: &Resolved,
        random: &mut Random,
    ) -> (BlockRecord, Vec<TrialRecord>, Vec<SliceRecord>) {
        let variants = &resolved.variants;
        let mut trials = Vec::new();
        let per_session = self.measured_blocks.div_ceil(self.sessions).max(1);
        let session = (block - 1) / per_session + 1;
        let mut slices = Vec::new();
        let mut conservation = BTreeMap::new();
        for &stratum in &self.strata {
            let baseline_pps = match stratum.family {
                AddressFamily::Inet => 2_410_000.0,
                AddressFamily::Inet6 => 2_050_000.0,
            } * random.normal_percent(3.0);
            let mut forwarded_in_block = 0;
            let places = self.places(block, variants.len());
            random.below(count(variants.len()));
            for (index, variant) in variants.iter().enumerate() {
                let effect = self.variants.get(index).map_or(0.0, |(_, effect)| *effect);
                let set_up = random.normal_percent(self.block_noise_percent);
                let there = self.in_strata.iter();
                let mut there = there.filter(|(of, number, _)| (*of, *number) == (stratum, index));
                let there = there.next().map_or(1.0, |(_, _, more)| 1.0 + more / 100.0);
                let pps = baseline_pps * (1.0 + effect / 100.0) * there * set_up;
                let mut rates = Vec::new();
                let mut forwarded_frames = 0;
                for round in 1..=self.rounds {
                    let rate = pps * random.normal_percent(self.round_noise_percent);
                    let frames = whole(rate * 0.1);
                    rates.push(frames as f64 / 0.1);
                    forwarded_frames += frames;
                    let position = places[round as usize - 1][index];
                    slices.push(SliceRecord {
                        start_s: f64::from(round) * 0.75,
                        time_s: 0.1,
                        offered_frames: frames,
                        forwarded_frames: frames,
                        undisturbed_s: 0.1,
                        undisturbed_frames: frames,
                        calibration_ns: 700,
                        switch_s: 0.004,
                        ..SliceRecord::at(stratum, round, position, variant.name.clone())
                    });
                }
                rates.sort_by(f64::total_cmp);
                let invalid = if attempt == 1 && self.invalid.contains(&(block, index)) {
                    vec![InvalidReason::Stolen {
                        ratio: 0.083,
                        bound: 0.05,
                    }]
                } else {
                    Vec::new()
                };
                forwarded_in_block += forwarded_frames;
                trials.push(TrialRecord {
                    schema: SCHEMA_VERSION,
                    session,
                    block,
                    attempt,
                    order: places[0][index],
                    variant: variant.name.clone(),
                    stratum,
                    start: minute(block),
                    measured_s: 0.1 * f64::from(self.rounds),
                    tester: TesterReading {
                        offered_frames: forwarded_frames,
                        forwarded_frames,
                        ..TesterReading::default()
                    },
                    dut: DutReading::default(),
                    kernel_drop_reasons: BTreeMap::new(),
                    undisturbed_s: 0.1 * f64::from(self.rounds),
                    observation_pps: f64::midpoint(
                        rates[(rates.len() - 1) / 2],
                        rates[rates.len() / 2],
                    ),
                    pooled_pps: forwarded_frames as f64 / (0.1 * f64::from(self.rounds)),
                    competing_s: Some(0.0),
                    competitors: Vec::new(),
                    steal_s: 0.0,
                    calibration_ns: 700.0,
                    profile: None,
                    invalid,
                });
            }
            let frames = Conservation {
                offered_frames: forwarded_in_block + 1200,
                forwarded_frames: forwarded_in_block,
                not_transmitted_frames: 0,
                drops: BTreeMap::from([("switching".to_owned(), 1200)]),
                unaccounted_frames: 0,
                foreign_frames: 3,
                verification: Verification {
                    checked_frames: forwarded_in_block / 64,
                    wrong_frames: BTreeMap::new(),
                    flows_seen: 2000,
                },
            };
            conservation.insert(stratum, frames);
        }
        let record = BlockRecord {
            schema: SCHEMA_VERSION,
            session,
            block,
            attempt,
            start: minute(block),
            set_up_s: 0.4,
            took_s: None,
            clock_step_s: None,
            switch_s: 0.004,
            cpu_account: Some(AccountSource::Scheduler),
            cpu_speeds: Vec::new(),
            conservation,
            generator_cost_ns: self
                .strata
                .iter()
                .map(|&stratum| (stratum, 48.2 + f64::from(block) * 0.1))
                .collect(),
            undisturbed_loop_ns: 690.0,
            differing_facts: BTreeMap::new(),
            tester: None,
            rate_basis: self
                .strata
                .iter()
                .map(|&stratum| (stratum, RateBasis::Undisturbed))
                .collect(),
        };
        (record, trials, slices)
    }
}

/// Rulesets of more and more rules, each a little slower.
#[allow(dead_code, reason = "every test program uses a part of it")]
pub(crate) fn rules(count: u32) -> Vec<(String, f64)> {
    (0..count)
        .map(|number| (format!("{} rules", number * 10), -0.2 * f64::from(number)))
        .collect()
}

/// The same run with facts of a DUT that differ between its variants, as a lab of hosts finds them.
#[allow(dead_code, reason = "every test program uses a part of it")]
pub(crate) fn with_facts(mut loaded: Loaded) -> Loaded {
    let names: Vec<VariantName> = (loaded.resolved.variants.iter())
        .map(|variant| variant.name.clone())
        .collect();
    let facts = |index: usize| {
        let ruleset = "table inet t {\n\tchain c { }\n}\n".repeat(index);
        let facts = [
            ("nft ruleset", ruleset),
            ("sysctl net.ipv4.conf.eth1.rp_filter", index.to_string()),
            (
                "sysctl <img src=x onerror=hostile=3>|`\u{202e}",
                "a | b".to_owned(),
            ),
        ];
        facts.map(|(fact, value)| (fact.to_owned(), value)).into()
    };
    for record in &mut loaded.records {
        if let Record::Block(block) = record {
            let named = names.iter().cloned().enumerate();
            block.differing_facts = named.map(|(index, name)| (name, facts(index))).collect();
        }
    }
    loaded
}

pub(crate) fn control_name() -> VariantName {
    VariantName::from_label("control")
}

/// When a block starts: one a minute, from nine on.
fn minute(block: u32) -> String {
    format!("2026-11-21T{:02}:{:02}:00Z", 9 + block / 60, block % 60)
}

fn session(number: u32) -> SessionRecord {
    SessionRecord {
        schema: SCHEMA_VERSION,
        session: number,
        start: "2026-11-21T09:00:00Z".to_owned(),
        fwdlab: "0.1.0".to_owned(),
        experiment_path: "experiments/packet filter.toml".to_owned(),
        lab_path: Some("labs/netns.toml".to_owned()),
        environment: Environment {
            kernel: "6.18.5 #1 SMP PREEMPT_DYNAMIC".to_owned(),
            cpu_model: "Example CPU at 3.0 GHz".to_owned(),
            cpus: 2,
            machine: Some("Example Works Model 7".to_owned()),
            facts: BTreeMap::from([
                ("clock source".to_owned(), "tsc".to_owned()),
                ("hypervisor".to_owned(), "kvm".to_owned()),
            ]),
            noise_sources: vec![
                "this is a virtual machine: other guests share its cores".to_owned(),
            ],
            tester: Tester::Ebpf,
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

fn whole(value: f64) -> u64 {
    format!("{value:.0}").parse().expect("digits are a number")
}

fn count(number: usize) -> u32 {
    u32::try_from(number).expect("a made-up run is small")
}

struct Random(Pcg64);

impl Random {
    fn uniform(&mut self) -> f64 {
        f64::from(self.0.next_u32()) / f64::from(u32::MAX)
    }

    fn below(&mut self, limit: u32) -> u32 {
        self.0.next_u32() % limit
    }

    fn permutation(&mut self, length: u32) -> Vec<u32> {
        let mut items: Vec<u32> = (0..length).collect();
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(count(last + 1)) as usize);
        }
        items
    }

    /// A factor around 1; the sum of twelve uniform numbers is normal enough.
    fn normal_percent(&mut self, standard_deviation_percent: f64) -> f64 {
        let sum: f64 = (0..12).map(|_| self.uniform()).sum();
        ((sum - 6.0) * standard_deviation_percent / 100.0).exp()
    }
}

/// Two traffics of both families; XDP gains less under the second one, over IPv4.
#[allow(dead_code, reason = "not every test has several traffics")]
pub(crate) fn by_traffic() -> Synthetic {
    let strata = ["inet-few", "inet6-few", "inet-many", "inet6-many"]
        .map(|word| word.parse().expect("it is a stratum"));
    Synthetic {
        strata: strata.to_vec(),
        in_strata: vec![(strata[2], 3, -20.0)],
        ..Synthetic::default()
    }
}
