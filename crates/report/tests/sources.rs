//! Every figure of a README stands in `report.json`, where the line beneath it says.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod figures;
mod profiled;
mod synthetic;

use std::collections::BTreeMap;

use figures::{Block, blocks, unfounded};
use fwdlab_archive::Loaded;
use fwdlab_model::{
    CpuTimes, Factor, Level, Load, LoadRecord, LoadRegime, RateBasis, Reference, ReferenceData,
    Stratum, StratumLoad,
};
use fwdlab_report::{Report, render};
use profiled::{profiled, with_rules};
use serde_json::Value;
use synthetic::{Synthetic, with_facts};

const BOTH: [Stratum; 2] = [Stratum::INET, Stratum::INET6];

fn labelled(variants: &[(&str, f64)]) -> Vec<(String, f64)> {
    let owned = variants
        .iter()
        .map(|(label, effect)| ((*label).to_owned(), *effect));
    owned.collect()
}

/// Overload with losses, counters of the DUT, a load that was settled, and data of an earlier session.
fn overloaded() -> Loaded {
    let mut loaded = Synthetic {
        variants: labelled(&[("plain", 0.0), ("filtered", -4.0), ("1000 rules", -37.0)]),
        ..Synthetic::default()
    }
    .loaded();
    loaded.resolved.traffics[0].load = Load::Overload;
    loaded.resolved.traffics[0].source_ports.last =
        loaded.resolved.traffics[0].source_ports.first + 3;
    for attempt in &mut loaded.attempts {
        let block = u64::from(attempt.record.block);
        for (slice, number) in attempt.slices.iter_mut().zip(block..) {
            slice.offered_frames = slice.forwarded_frames + 10_000 + number * 37 % 2_000;
        }
        for trial in &mut attempt.trials {
            let dropped = 8_191 * block + u64::from(trial.order) * 77;
            trial.tester.offered_frames += dropped;
            trial.dut.drops = [("full ring".to_owned(), dropped), ("ARP".to_owned(), block)].into();
            trial.kernel_drop_reasons = [("CPU_BACKLOG".to_owned(), 7 * block)].into();
            trial.dut.events = BTreeMap::from([
                ("received".to_owned(), trial.tester.forwarded_frames),
                ("reclaims".to_owned(), trial.tester.forwarded_frames / 37),
                ("task drains".to_owned(), 7 * block),
            ]);
            trial.dut.cpus = [(3, 0.61), (17, 0.83)]
                .map(|(cpu, ratio)| {
                    let times = CpuTimes {
                        watched_s: trial.measured_s,
                        busy_s: trial.measured_s * ratio,
                        interrupts_s: trial.measured_s * ratio / 1.7,
                        stolen_s: 0.0,
                    };
                    (cpu, times)
                })
                .into();
        }
    }
    let stratum = StratumLoad {
        baseline_capacity_pps: Some(2_431_000.0),
        tester_ceiling_pps: Some(6_120_000.0),
        intended_pps: Some(3_038_750.0),
    };
    for session in &mut loaded.sessions {
        session.load = Some(LoadRecord {
            regime: LoadRegime::Overload,
            instead_of: None,
            why: None,
            strata: BTreeMap::from([(Stratum::INET, stratum)]),
        });
    }
    let data = ReferenceData {
        path: "earlier/2025.inet.pps".to_owned(),
        sha256: "e3b0c442".to_owned(),
        observations_pps: vec![2.0e6, 2.2e6, 2.1234e6],
    };
    loaded.resolved.references = vec![Reference {
        label: "last year".to_owned(),
        strata: [(Stratum::INET, data)].into(),
    }];
    loaded
}

/// Slices of which a part was disturbed, the rest of it left out in all blocks but two.
fn disturbed() -> Loaded {
    let mut loaded = Synthetic::default().loaded();
    for attempt in &mut loaded.attempts {
        let block = attempt.record.block;
        for (number, slice) in (block..).zip(&mut attempt.slices) {
            slice.undisturbed_s = slice.time_s * 0.7;
            slice.undisturbed_frames = slice.forwarded_frames * 7 / 10;
            slice.forwarded_frames -= slice.forwarded_frames / 200 * u64::from(number * 37 % 50);
        }
        for trial in &mut attempt.trials {
            trial.undisturbed_s = trial.measured_s * 0.7;
        }
        if block < 3 {
            let basis = &mut attempt.record.rate_basis;
            basis.insert(Stratum::INET, RateBasis::AllTime);
        }
    }
    loaded
}

/// Two factors in all their levels.
fn combined() -> Loaded {
    let mut loaded = Synthetic {
        variants: labelled(&[
            ("neither", 0.0),
            ("a", -10.0),
            ("b", -20.0),
            ("both", -35.0),
        ]),
        ..Synthetic::default()
    }
    .loaded();
    let factor = |name: &str| Factor {
        name: name.to_owned(),
        description: None,
        levels: vec![Level::Integer(0), Level::Integer(512)],
        default: Level::Integer(0),
    };
    loaded.resolved.factors = vec![factor("rules"), factor("offload")];
    let levels = [(0, 0), (512, 0), (0, 512), (512, 512), (0, 0)];
    for (variant, (rules, offload)) in loaded.resolved.variants.iter_mut().zip(levels) {
        variant.levels = [("rules", rules), ("offload", offload)]
            .map(|(name, level)| (name.to_owned(), Level::Integer(level)))
            .into();
    }
    loaded
}

fn runs() -> Vec<(&'static str, Loaded)> {
    vec![
        ("default", Synthetic::default().loaded()),
        (
            "both families, several comparisons, invalid trials",
            Synthetic {
                strata: BOTH.to_vec(),
                titles: vec![Some("First of 3".to_owned()), Some("Second".to_owned())],
                invalid: vec![(2, 1), (5, 3)],
                sessions: 2,
                background: Some("Measured at 31.5 degrees.".to_owned()),
                ..Synthetic::default()
            }
            .loaded(),
        ),
        ("several traffics", synthetic::by_traffic().loaded()),
        (
            "unfinished",
            Synthetic {
                measured_blocks: 3,
                ..Synthetic::default()
            }
            .loaded(),
        ),
        (
            "nothing measured",
            Synthetic {
                measured_blocks: 0,
                ..Synthetic::default()
            }
            .loaded(),
        ),
        (
            "twelve",
            Synthetic {
                variants: (0..12)
                    .map(|index| (format!("{} rules", index * 10), -2.5 * f64::from(index)))
                    .collect(),
                control: false,
                ..Synthetic::default()
            }
            .loaded(),
        ),
        (
            "quiet",
            Synthetic {
                variants: labelled(&[("a", 0.0), ("b", 0.02), ("c", -0.05)]),
                block_noise_percent: 0.01,
                round_noise_percent: 0.02,
                ..Synthetic::default()
            }
            .loaded(),
        ),
        ("overload", overloaded()),
        ("disturbed", disturbed()),
        ("combined", combined()),
        ("facts", with_facts(Synthetic::default().loaded())),
        (
            "profiled",
            profiled(Synthetic::default().loaded(), with_rules),
        ),
    ]
}

fn of_run(loaded: &Loaded) -> (Report, Value) {
    let report = Report::build(loaded).unwrap();
    let json = serde_json::from_str(&render::json(&report).unwrap()).unwrap();
    (report, json)
}

#[test]
fn every_figure_stands_where_its_line_says() {
    for (name, loaded) in runs() {
        let (report, json) = of_run(&loaded);
        for folder in ["", "derived/"] {
            let readme = render::readme(&report, folder);
            let blocks = blocks(&readme, folder);
            assert!(blocks.len() > 8, "{name}: {} blocks", blocks.len());
            for block in blocks {
                let problems = unfounded(&block, &json);
                assert!(problems.is_empty(), "{name}: {problems:#?}\n{}", block.text);
            }
        }
    }
}

/// A line names nothing that is not there, and says where its report is.
#[test]
fn every_pointer_resolves_beside_the_readme() {
    for (name, loaded) in runs() {
        let (report, json) = of_run(&loaded);
        let readme = render::readme(&report, "derived/");
        for block in blocks(&readme, "derived/") {
            assert!(
                block.figures().is_empty() || !block.pointers.is_empty(),
                "{name}: {block:?}"
            );
            for pointer in &block.pointers {
                assert!(json.pointer(pointer).is_some(), "{name}: {pointer}");
            }
        }
    }
}

/// Changes every figure in turn: its last digit, and its size.
#[test]
fn a_changed_figure_is_objected_to() {
    let (mut by_digit, mut tried) = (0, 0);
    for (name, loaded) in runs() {
        let (report, json) = of_run(&loaded);
        let readme = render::readme(&report, "derived/");
        for block in blocks(&readme, "derived/") {
            for figure in block.figures() {
                let text = &block.text[figure.clone()];
                let larger = with(&block, figure.clone(), &format!("73{text}"));
                assert!(
                    !unfounded(&larger, &json).is_empty(),
                    "{name}: 73{text} for {text}\n{}",
                    block.text
                );
                let last = text.rfind(|c: char| c.is_ascii_digit()).unwrap();
                let digit = (text.as_bytes()[last] - b'0' + 3) % 10;
                let other = format!("{}{digit}{}", &text[..last], &text[last + 1..]);
                tried += 1;
                by_digit +=
                    usize::from(!unfounded(&with(&block, figure, &other), &json).is_empty());
            }
        }
    }
    // Some changes make another figure of the same variant.
    assert!(
        tried > 2000 && by_digit * 100 > tried * 85,
        "{by_digit} of {tried}"
    );
}

fn with(block: &Block, figure: std::ops::Range<usize>, text: &str) -> Block {
    let mut changed = block.clone();
    changed.text.replace_range(figure, text);
    changed
}
