//! Who else had the CPUs of the load while it was measured, how fast they were clocked, and what that did to observations.

use std::collections::{BTreeMap, BTreeSet};

use fwdlab_archive::Loaded;
use fwdlab_model::record::Fate;
use fwdlab_model::{AccountSource, CpuSpeed, LoadRegime, RateBasis, TrialRecord};

use crate::format::counted;
use crate::report::Warning;
use crate::text;

/// A competitor is warned of that had this part of all accepted trials' time, or [`TRIAL_RATIO_MIN`] of one trial's.
const RATIO_MIN: f64 = 0.01;

const TRIAL_RATIO_MIN: f64 = 0.05;

/// A CPU whose clock in one block was less than this part of that in another is warned of.
const CLOCK_RATIO_MIN: f64 = 0.95;

/// What one competitor had of one CPU.
#[derive(Default)]
struct Share {
    time_s: f64,
    greatest_ratio: f64,
    blocks: BTreeSet<u32>,
}

/// The warnings of competitors, the greatest first, and of observations that say nothing was forwarded.
pub(crate) fn warnings(loaded: &Loaded) -> Vec<Warning> {
    let accepted = || {
        let attempts = loaded.attempts.iter();
        attempts.filter(|attempt| attempt.fate == Fate::Accepted)
    };
    let trials = || accepted().flat_map(|attempt| &attempt.trials);
    let measured_s: f64 = trials().map(|trial| trial.measured_s).sum();
    let mut shares: BTreeMap<(&str, u32), Share> = BTreeMap::new();
    for trial in trials() {
        for competitor in &trial.competitors {
            let share = shares
                .entry((&competitor.name, competitor.cpu))
                .or_default();
            share.time_s += competitor.time_s;
            share.greatest_ratio = share
                .greatest_ratio
                .max(competitor.time_s / trial.measured_s);
            share.blocks.insert(trial.block);
        }
    }
    let over_all_time: BTreeSet<u32> = accepted()
        .filter(|of| {
            of.record
                .rate_basis
                .values()
                .any(|basis| *basis == RateBasis::AllTime)
        })
        .map(|of| of.record.block)
        .collect();
    let left_out = |blocks: &BTreeSet<u32>| {
        let kept: Vec<String> = (blocks & &over_all_time)
            .iter()
            .map(ToString::to_string)
            .collect();
        if loaded.resolved.regime() == LoadRegime::Paced || kept.len() == blocks.len() {
            String::new()
        } else if kept.is_empty() {
            "; that time is left out of the rates".to_owned()
        } else {
            format!(
                "; that time is left out of the rates, but for block {}",
                kept.join(", ")
            )
        }
    };
    let is_guess = accepted().any(|of| of.record.cpu_account == Some(AccountSource::Clocks));
    let mut competitors: Vec<_> = shares.into_iter().collect();
    competitors.retain(|(_, share)| {
        share.time_s >= measured_s * RATIO_MIN || share.greatest_ratio >= TRIAL_RATIO_MIN
    });
    competitors.sort_by(|one, other| other.1.time_s.total_cmp(&one.1.time_s));
    let of_competitor = |((name, cpu), share): ((&str, u32), Share)| {
        let subject = match name {
            "fwdlab" => "another fwdlab".to_owned(),
            name => text::one_line(name),
        };
        let percent = share.time_s / measured_s * 100.0;
        let text = format!(
            "had {}{percent:.1} % of the measured time on CPU {cpu}, which is the load's (up to {:.0} % of a trial, in {}){}",
            if is_guess { "probably " } else { "" },
            share.greatest_ratio * 100.0,
            counted(share.blocks.len() as u64, "block"),
            left_out(&share.blocks),
        );
        let remedy =
            format!("stop it or keep it off CPU {cpu}; or name another load_cpu in the lab file");
        Warning {
            percent: Some(percent),
            ..Warning::new("W225", [subject], text, remedy)
        }
    };
    let mut warnings: Vec<_> = competitors.into_iter().map(of_competitor).collect();
    warnings.extend(silent(trials()));
    warnings.extend(slowed(loaded));
    warnings
}

/// CPUs that were throttled, or clocked up and down from block to block.
fn slowed(loaded: &Loaded) -> Vec<Warning> {
    let mut of_cpu: BTreeMap<u32, Vec<&CpuSpeed>> = BTreeMap::new();
    let accepted = loaded.attempts.iter();
    let accepted = accepted.filter(|attempt| attempt.fate == Fate::Accepted);
    for speed in accepted.flat_map(|attempt| &attempt.record.cpu_speeds) {
        of_cpu.entry(speed.cpu).or_default().push(speed);
    }
    let of_cpu = of_cpu.into_iter();
    of_cpu
        .filter_map(|(cpu, of)| slowed_cpu(cpu, &of))
        .collect()
}

fn slowed_cpu(cpu: u32, blocks: &[&CpuSpeed]) -> Option<Warning> {
    // The highest clock of a block is what it is able to hold; a single reading may be of a moment without load.
    let clocks_ghz = blocks.iter().filter_map(|of| of.highest_khz);
    let clocks_ghz: Vec<f64> = clocks_ghz.map(gigahertz).collect();
    let low = clocks_ghz.iter().copied().reduce(f64::min);
    let high = clocks_ghz.iter().copied().reduce(f64::max);
    let (low, high) = low.zip(high).unwrap_or((1.0, 1.0));
    let clocks = if clocks_ghz.is_empty() {
        String::new()
    } else {
        format!(", at {low:.2} to {high:.2} GHz")
    };
    let throttled: u64 = blocks.iter().map(|of| of.throttled).sum();
    let (text, remedy) = if throttled > 0 {
        let times = counted(throttled, "time");
        (
            format!("was slowed down {times} for being too hot{clocks}"),
            "cool the machine, or set a clock that it can hold",
        )
    } else if low < high * CLOCK_RATIO_MIN {
        (
            format!("was clocked at {low:.2} to {high:.2} GHz from block to block"),
            "set a fixed clock: cpupower frequency-set -g performance, and no turbo",
        )
    } else {
        return None;
    };
    Some(Warning {
        percent: Some((1.0 - low / high) * 100.0),
        ..Warning::new("W228", [format!("CPU {cpu}")], text, remedy)
    })
}

#[expect(clippy::cast_precision_loss, reason = "clocks are far below 2^53 kHz")]
fn gigahertz(khz: u64) -> f64 {
    khz as f64 / 1e6
}

/// Observations of 0 beside frames that were forwarded, variant by variant.
fn silent<'a>(trials: impl Iterator<Item = &'a TrialRecord>) -> Vec<Warning> {
    let mut silent: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for trial in trials.filter(|trial| trial.observation_pps <= 0.0 && trial.pooled_pps > 0.0) {
        let blocks = silent.entry(trial.variant.as_str()).or_default();
        blocks.push(trial.block.to_string());
    }
    let of_variant = |(variant, blocks): (&str, Vec<String>)| {
        let observations = match blocks.len() {
            1 => "1 observation is".to_owned(),
            number => format!("{number} observations are"),
        };
        Warning::new(
            "W226",
            [text::one_line(variant)],
            format!(
                "{observations} 0 although frames were forwarded: most slices had no frames in their counted time \
                 (block {})",
                blocks.join(", ")
            ),
            "measure longer slices (slice_ms) or on a quieter machine; see blocks/N.csv",
        )
    };
    silent.into_iter().map(of_variant).collect()
}
