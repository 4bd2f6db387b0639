//! Who else had the CPUs of the load while it was measured, how fast they were clocked, and what that did to observations.

use std::collections::{BTreeMap, BTreeSet};

use fwdlab_archive::Loaded;
use fwdlab_model::record::Fate;
use fwdlab_model::{AccountSource, CpuSpeed, TrialRecord};

use crate::format::counted;
use crate::report::Warning;
use crate::text;

/// A competitor is warned of that had this part of all accepted trials' time, or [`TRIAL_RATIO_MIN`] of one trial's.
const RATIO_MIN: f64 = 0.01;

const TRIAL_RATIO_MIN: f64 = 0.05;

/// A CPU whose lowest clock was less than this part of its highest is warned of.
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
    let is_guess = accepted().any(|of| of.record.cpu_account == Some(AccountSource::Clocks));
    let mut competitors: Vec<_> = shares.into_iter().collect();
    competitors.retain(|(_, share)| {
        share.time_s >= measured_s * RATIO_MIN || share.greatest_ratio >= TRIAL_RATIO_MIN
    });
    competitors.sort_by(|one, other| other.1.time_s.total_cmp(&one.1.time_s));
    let of_competitor = |((name, cpu), share): ((&str, u32), Share)| Warning {
        code: "W225".to_owned(),
        subjects: vec![text::one_line(name)],
        text: format!(
            "had {}{:.1} % of the measured time on CPU {cpu}, which is the load's (up to {:.0} % of a trial, in {}); \
             that time is left out of the rates",
            if is_guess { "probably " } else { "" },
            share.time_s / measured_s * 100.0,
            share.greatest_ratio * 100.0,
            counted(share.blocks.len() as u64, "block"),
        ),
        remedy: Some(format!(
            "stop it or keep it off CPU {cpu}; or name another load_cpu in the lab file"
        )),
        percent: Some(share.time_s / measured_s * 100.0),
    };
    let mut warnings: Vec<_> = competitors.into_iter().map(of_competitor).collect();
    warnings.extend(silent(trials()));
    warnings.extend(slowed(loaded));
    warnings
}

/// CPUs that were throttled, or clocked up and down.
fn slowed(loaded: &Loaded) -> Vec<Warning> {
    let mut of_cpu: BTreeMap<u32, CpuSpeed> = BTreeMap::new();
    let accepted = loaded.attempts.iter();
    let accepted = accepted.filter(|attempt| attempt.fate == Fate::Accepted);
    for speed in accepted.flat_map(|attempt| &attempt.record.cpu_speeds) {
        let all = of_cpu.entry(speed.cpu).or_insert_with(|| CpuSpeed {
            throttled: 0,
            ..speed.clone()
        });
        all.lowest_khz = all.lowest_khz.min(speed.lowest_khz);
        all.highest_khz = all.highest_khz.max(speed.highest_khz);
        all.throttled += speed.throttled;
    }
    of_cpu
        .into_values()
        .filter_map(|of| slowed_cpu(&of))
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "clocks are far below 2^53 kHz")]
fn slowed_cpu(of: &CpuSpeed) -> Option<Warning> {
    let (low, high) = (of.lowest_khz? as f64, of.highest_khz? as f64);
    let (text, remedy) = if of.throttled > 0 {
        (
            format!(
                "was slowed down {} for being too hot, at {:.2} to {:.2} GHz",
                counted(of.throttled, "time"),
                low / 1e6,
                high / 1e6
            ),
            "cool the machine, or set a clock that it can hold",
        )
    } else if low < high * CLOCK_RATIO_MIN {
        (
            format!("was clocked at {:.2} to {:.2} GHz", low / 1e6, high / 1e6),
            "set a fixed clock: cpupower frequency-set -g performance, and no turbo",
        )
    } else {
        return None;
    };
    Some(Warning {
        code: "W228".to_owned(),
        subjects: vec![format!("CPU {}", of.cpu)],
        text,
        remedy: Some(remedy.to_owned()),
        percent: Some((1.0 - low / high) * 100.0),
    })
}

/// Observations of 0 beside frames that were forwarded, variant by variant.
fn silent<'a>(trials: impl Iterator<Item = &'a TrialRecord>) -> Vec<Warning> {
    let mut silent: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for trial in trials.filter(|trial| trial.observation_pps <= 0.0 && trial.pooled_pps > 0.0) {
        let blocks = silent.entry(trial.variant.as_str()).or_default();
        blocks.push(trial.block.to_string());
    }
    let of_variant = |(variant, blocks): (&str, Vec<String>)| Warning {
        code: "W226".to_owned(),
        subjects: vec![text::one_line(variant)],
        text: format!(
            "{} of 0 although frames were forwarded: in most slices nothing came out in the time that counts (block {})",
            counted(blocks.len() as u64, "observation"),
            blocks.join(", ")
        ),
        remedy: Some(
            "measure longer slices (slice_ms) or on a quieter machine; see blocks/N.csv".to_owned(),
        ),
        percent: None,
    };
    silent.into_iter().map(of_variant).collect()
}
