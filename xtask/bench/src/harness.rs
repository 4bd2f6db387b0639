//! The harness beside the same load without it, and the time that a switch takes.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use fwdlab_lab::{BlockRun, Lab, TESTER_IN, Topology};
use fwdlab_model::{
    AddressFamily, PlannedBlock, PlannedSlice, Resolved, SliceRecord, Stratum, StratumOrder,
};
use fwdlab_traffic::{Generator, Pace, Receiver as _, Sink};
use serde_json::json;

use crate::bench::Bench;
use crate::counter::Window;
use crate::figure::{Figure, Outcome, mpps};
use crate::pairs::{Pairs, median};

const RATE_RATIO_MIN: f64 = 0.95;
const SWITCH_MS_MAX: f64 = 100.0;

/// The experiment: two variants, between which every slice switches.
const EXPERIMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/harness.toml");

/// How long the lab's drop-at-ingress control takes at the start of a block, beside its settling.
const CONTROL_MS: u64 = 100;

/// How often to measure; the defaults take about three minutes.
#[derive(Args)]
pub(crate) struct Settings {
    /// Pairs of a block of the harness and a window of the same load without it
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(2..))]
    pairs: u32,
}

/// Measures all figures of the harness.
pub(crate) fn run(bench: &Bench, settings: &Settings) -> Result<Vec<Figure>> {
    bench.leave_load_cpu()?;
    let resolved = experiment()?;
    let state_directory = fwdlab_lab::state_directory()?;
    let lab = Lab::open(&resolved, &state_directory, bench.interrupts, &mut |_| {})?;
    let Lab::Netns(mut lab) = lab else {
        unreachable!("the experiment is of this machine's kernel");
    };
    let mut blocks: Vec<Vec<SliceRecord>> = Vec::new();
    let mut invalid_blocks = 0;
    let baseline = resolved.variants[0].name.clone();
    let pairs = Pairs::measure(
        settings.pairs,
        || {
            bench.stop_if_asked()?;
            let number = u32::try_from(blocks.len() + 1)?;
            let mut block = planned_block(&resolved, number);
            let outcome = lab.measure(&mut BlockRun {
                planned: &block.clone(),
                slices: &mut block,
                session: 1,
                attempt: 1,
                on_event: &mut |_| (),
            })?;
            let reasons: Vec<_> = outcome
                .trials
                .iter()
                .flat_map(|trial| &trial.invalid)
                .collect();
            if let Some(reason) = reasons.first() {
                invalid_blocks += 1;
                eprintln!("block {number} would not be valid: {reason}");
            }
            blocks.push(outcome.slices);
            let rate_pps = outcome
                .trials
                .iter()
                .find(|trial| trial.variant == baseline)
                .map(|trial| trial.pooled_pps);
            rate_pps.context("a block has a trial of every variant")
        },
        || {
            bench.stop_if_asked()?;
            plain_rate_pps(bench, &resolved)
        },
        |pair, harness, plain| {
            eprintln!(
                "harness, pair {pair} of {}: {}, without {}: {:.4}",
                settings.pairs,
                mpps(harness),
                mpps(plain),
                harness / plain
            );
        },
    )?;
    let ratio = pairs.ratio()?;
    let (harness, plain) = pairs.medians();
    Ok(vec![
        Figure {
            what: "baseline's slices inside a run / the same load without harness".into(),
            goal: format!("lower end at least {RATE_RATIO_MIN}"),
            measured: ratio.written(4, ""),
            beside: format!(
                "{} and {}; {invalid_blocks} of {} blocks not valid",
                mpps(harness),
                mpps(plain),
                blocks.len()
            ),
            outcome: ratio.at_least(RATE_RATIO_MIN),
            observations: json!({ "rates_pps": pairs, "ratio": ratio }),
        },
        switching(&blocks),
    ])
}

/// From the end of each slice to the start of the next: reading the counters, switching the
/// ruleset, and the settle window with all that is read back in it.
fn switching(blocks: &[Vec<SliceRecord>]) -> Figure {
    let gaps_ms: Vec<f64> = blocks.iter().flat_map(|slices| gaps_ms(slices)).collect();
    let switches_ms: Vec<f64> = blocks
        .iter()
        .flatten()
        .map(|slice| slice.switch_s * 1e3)
        .collect();
    let largest_ms = gaps_ms.iter().copied().fold(0.0, f64::max);
    let within = gaps_ms.iter().filter(|&&gap| gap < SWITCH_MS_MAX).count();
    Figure {
        what: "from one slice to the next: switching the ruleset and settling".into(),
        goal: format!("under {SWITCH_MS_MAX} ms"),
        measured: format!(
            "median {:.1} ms, largest {largest_ms:.1} ms",
            median(&gaps_ms)
        ),
        beside: format!(
            "{within} of {} under; switch alone: median {:.1} ms, largest {:.1} ms",
            gaps_ms.len(),
            median(&switches_ms),
            switches_ms.iter().copied().fold(0.0, f64::max)
        ),
        outcome: if largest_ms < SWITCH_MS_MAX {
            Outcome::Met
        } else {
            Outcome::Missed
        },
        observations: json!({ "gaps_ms": gaps_ms, "switches_ms": switches_ms }),
    }
}

fn gaps_ms(slices: &[SliceRecord]) -> Vec<f64> {
    slices
        .windows(2)
        .map(|pair| (pair[1].start_s - pair[0].start_s - pair[0].time_s) * 1e3)
        .collect()
}

/// The load of a block, set up the same way and for about as long, but left alone: no switching, no
/// slices, counters read at the start and at the end.
fn plain_rate_pps(bench: &Bench, resolved: &Resolved) -> Result<f64> {
    let family = AddressFamily::Inet;
    let topology = Topology::build()?;
    let frames = topology.frames(family, &resolved.traffics[0])?;
    let interface = topology.generator_interface();
    let generator = topology
        .tester()
        .run(|| Generator::load(&frames, interface))??;
    let mut sink = Sink::load(&frames)?;
    topology.tester().run(|| sink.attach(TESTER_IN))??;

    let design = &resolved.design;
    let settle_ms = u64::from(design.settle_ms);
    // What a block does before its first slice, then as long as its slices and switches take.
    let before_ms = settle_ms + CONTROL_MS + u64::from(design.warm_up_ms) + settle_ms;
    let slices = u64::from(design.rounds) * resolved.variants.len() as u64;
    let window = Window {
        settle: Duration::from_millis(before_ms),
        length: Duration::from_millis(slices * (settle_ms + u64::from(design.slice_ms))),
    };
    let running = generator.start(bench.load_cpu, Pace::SelfClocked)?;
    let rate_pps = window.rate_pps(&|| Ok(sink.counts()?.forwarded_frames));
    running.stop()?;
    rate_pps
}

fn experiment() -> Result<Resolved> {
    let read = |path: &Path| fs::read_to_string(path);
    let loaded = fwdlab_model::load(Path::new(EXPERIMENT), None, &read, 1)
        .map_err(|diagnostics| anyhow!("{diagnostics}"))?;
    Ok(loaded.resolved)
}

/// The same order in every round, so that every slice follows one of the other variant; which of them
/// is first takes turns from block to block.
fn planned_block(resolved: &Resolved, number: u32) -> PlannedBlock {
    let mut order: Vec<PlannedSlice> = resolved
        .variants
        .iter()
        .map(|variant| variant.name.clone().into())
        .collect();
    if number.is_multiple_of(2) {
        order.reverse();
    }
    PlannedBlock {
        number,
        strata: vec![StratumOrder {
            stratum: Stratum::INET,
            rounds: vec![order; resolved.design.rounds as usize],
        }],
    }
}

#[cfg(test)]
mod tests {
    use fwdlab_model::VariantName;

    use super::*;

    #[test]
    fn every_slice_follows_a_switch() {
        let resolved = experiment().unwrap();
        for number in [1, 2] {
            let block = planned_block(&resolved, number);
            let names: Vec<_> = block.strata[0].rounds.iter().flatten().collect();
            assert_eq!(names.len(), 2 * resolved.design.rounds as usize);
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        }
        assert_ne!(
            planned_block(&resolved, 1).strata,
            planned_block(&resolved, 2).strata
        );
    }

    #[test]
    fn a_gap_is_all_that_lies_between_two_slices() {
        let slice = |start_s| SliceRecord {
            start_s,
            time_s: 0.1,
            ..SliceRecord::at(Stratum::INET, 1, 0, VariantName::from_label("a"))
        };
        let gaps = gaps_ms(&[slice(1.0), slice(1.165), slice(1.335)]);
        assert_eq!(gaps.len(), 2);
        assert!((gaps[0] - 65.0).abs() < 1e-6 && (gaps[1] - 70.0).abs() < 1e-6);
    }
}
