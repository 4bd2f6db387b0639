//! Trials held against their slices, and the frames of a block against each other.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;

use fwdlab_model::record::stall_bound_s;
use fwdlab_model::{RateBasis, SliceRecord, Tester, TrialRecord};
use fwdlab_stats::{Slice, as_f64, median, observation};

use crate::fit;
use crate::layout;
use crate::load::{Attempt, Loaded};

use super::lines::Lines;
use super::{FRAMES_DO_NOT_ADD_UP, Finding, SLICE_STALLED, TRIAL_NOT_OF_SLICES};

/// Sums of the same numbers in another order may differ by so much.
const ROUNDING: f64 = 1e-9;

pub(super) fn lint_numbers(loaded: &Loaded, findings: &mut Vec<Finding>) {
    let lines = Lines::of(loaded);
    for attempt in &loaded.attempts {
        // With their rows in the file, below that of the columns' names.
        let mut by_trial: HashMap<_, Vec<(usize, &SliceRecord)>> = HashMap::new();
        for (row, slice) in (2..).zip(&attempt.slices) {
            let trial = (&slice.variant, slice.stratum);
            by_trial.entry(trial).or_default().push((row, slice));
        }
        for trial in &attempt.trials {
            let own = by_trial.get(&(&trial.variant, trial.stratum));
            let own = own.map_or(&[][..], Vec::as_slice);
            findings.extend(lint_trial(loaded, attempt, trial, own, &lines));
            findings.extend(lint_stalls(loaded, attempt, trial, own));
            findings.extend(lint_taken(loaded, trial, own));
        }
        lint_conservation(loaded, attempt, &lines, findings);
    }
}

/// A trial that counts although something stood still in one of its slices, as older versions let it.
fn lint_stalls(
    loaded: &Loaded,
    attempt: &Attempt,
    trial: &TrialRecord,
    own: &[(usize, &SliceRecord)],
) -> Option<Finding> {
    // The reports of pkt-gen say where its windows end.
    if !trial.invalid.is_empty() || attempt.record.tester == Some(Tester::PktGen) {
        return None;
    }
    let planned_s = f64::from(loaded.resolved.design.slice_ms) / 1e3;
    let is_stalled = |slice: &SliceRecord| slice.time_s > planned_s + stall_bound_s(planned_s);
    let (row, slice) = own.iter().find(|(_, slice)| is_stalled(slice))?;
    let sentence = format!(
        "block {}, {} {}: round {} lasted {:.3} s instead of {planned_s:.3} s, and its trial counts",
        trial.block, trial.variant, trial.stratum, slice.round, slice.time_s
    );
    let slices = layout::slices(&loaded.dir, trial.block, trial.attempt);
    let resolved = loaded.dir.join(layout::RESOLVED);
    Some(
        Finding::new(&SLICE_STALLED, &loaded.dir, sentence)
            .published_at(&slices, *row, format!("time_s {}", slice.time_s))
            .derived(
                &resolved,
                format!("\"slice_ms\": {}", loaded.resolved.design.slice_ms),
            ),
    )
}

/// A slice of which the DUT took in more than was offered.
fn lint_taken(
    loaded: &Loaded,
    trial: &TrialRecord,
    own: &[(usize, &SliceRecord)],
) -> Option<Finding> {
    let taken = own.iter().filter_map(|(row, slice)| {
        let load = slice.load.as_ref()?;
        Some((row, slice, load.taken_frames))
    });
    let mut too_many =
        taken.filter(|(_, slice, taken_frames)| *taken_frames > slice.offered_frames);
    let (row, slice, taken_frames) = too_many.next()?;
    let sentence = format!(
        "block {}, {} {}: the DUT took in more frames in round {} than were offered",
        trial.block, trial.variant, trial.stratum, slice.round
    );
    let slices = layout::slices(&loaded.dir, trial.block, trial.attempt);
    Some(
        Finding::new(&FRAMES_DO_NOT_ADD_UP, &loaded.dir, sentence)
            .published_at(&slices, *row, format!("taken_frames {taken_frames}"))
            .derived_at(
                &slices,
                *row,
                format!("offered_frames {}", slice.offered_frames),
            ),
    )
}

/// A figure of a trial under its key, as it is recorded and as its slices give it.
struct Figure {
    key: &'static str,
    recorded: String,
    derived: String,
    agrees: bool,
}

impl Figure {
    fn count(key: &'static str, recorded: u64, derived: u64) -> Self {
        Self::new(key, recorded, derived, recorded == derived)
    }

    fn number(key: &'static str, recorded: f64, derived: f64) -> Self {
        let agrees = (recorded - derived).abs() <= ROUNDING * derived.abs();
        Self::new(key, recorded, derived, agrees)
    }

    fn new<T: Display>(key: &'static str, recorded: T, derived: T, agrees: bool) -> Self {
        Self {
            key,
            recorded: recorded.to_string(),
            derived: derived.to_string(),
            agrees,
        }
    }
}

fn lint_trial(
    loaded: &Loaded,
    attempt: &Attempt,
    trial: &TrialRecord,
    own: &[(usize, &SliceRecord)],
    lines: &Lines,
) -> Option<Finding> {
    let own: Vec<&SliceRecord> = own.iter().map(|(_, slice)| *slice).collect();
    let count = |of: fn(&SliceRecord) -> u64| own.iter().map(|slice| of(slice)).sum::<u64>();
    let time = |of: fn(&SliceRecord) -> f64| own.iter().map(|slice| of(slice)).sum::<f64>();
    // A record without a basis is of a lab that knows nothing of disturbances.
    let basis = attempt.record.rate_basis.get(&trial.stratum);
    let basis = basis.copied().unwrap_or(RateBasis::AllTime);
    let counted: Vec<Slice> = own
        .iter()
        .map(|slice| Slice::of(slice.round, slice.counted(basis)))
        .collect();
    let observed = observation(&counted, loaded.resolved.design.shortest_counted_s());
    let calibrations: Vec<f64> = own
        .iter()
        .map(|slice| as_f64(slice.calibration_ns))
        .collect();
    let (forwarded, measured_s) = (
        count(|slice| slice.forwarded_frames),
        time(|slice| slice.time_s),
    );
    let mut figures = vec![
        Figure::number(
            "observation_pps",
            trial.observation_pps,
            observed.map_or(f64::NAN, |observed| observed.median_forwarding_rate_pps),
        ),
        Figure::number(
            "pooled_pps",
            trial.pooled_pps,
            as_f64(forwarded) / measured_s,
        ),
        Figure::number("measured_s", trial.measured_s, measured_s),
        Figure::number(
            "undisturbed_s",
            trial.undisturbed_s,
            time(|slice| slice.undisturbed_s),
        ),
        Figure::number("steal_s", trial.steal_s, time(|slice| slice.steal_s)),
        Figure::count(
            "offered_frames",
            trial.tester.offered_frames,
            count(|slice| slice.offered_frames),
        ),
        Figure::count("forwarded_frames", trial.tester.forwarded_frames, forwarded),
        Figure::count(
            "drops",
            trial
                .dut
                .dropped_frames()
                .saturating_add(trial.tester.not_transmitted_frames),
            count(|slice| slice.dropped_frames),
        ),
        Figure::number(
            "calibration_ns",
            trial.calibration_ns,
            median(&calibrations).unwrap_or(f64::NAN),
        ),
    ];
    let place = fit::planned(&loaded.plan, trial.block)
        .ok()
        .and_then(|planned| {
            planned
                .strata
                .iter()
                .find(|order| order.stratum == trial.stratum)
        })
        .and_then(|order| order.variants().position(|name| name == &trial.variant));
    figures.extend(place.map(|place| Figure::count("order", trial.order.into(), place as u64)));
    figures.retain(|figure| !figure.agrees);

    let keys: Vec<&str> = figures.iter().map(|figure| figure.key).collect();
    let is = if keys.len() == 1 { "is" } else { "are" };
    let sentence = format!(
        "block {}, {} {}: {} {is} not what its slices give",
        trial.block,
        trial.variant,
        trial.stratum,
        keys.join(", ")
    );
    let trials = loaded.dir.join(layout::TRIALS);
    let slices = layout::slices(&loaded.dir, trial.block, trial.attempt);
    let finding = Finding::new(&TRIAL_NOT_OF_SLICES, &loaded.dir, sentence);
    (!figures.is_empty()).then(|| {
        figures.iter().fold(finding, |finding, figure| {
            let source = if figure.key == "order" {
                loaded.dir.join(layout::PLAN)
            } else {
                slices.clone()
            };
            finding
                .published_at(
                    &trials,
                    lines.trial(trial),
                    format!("\"{}\":{}", figure.key, figure.recorded),
                )
                .derived(&source, format!("{} {}", figure.key, figure.derived))
        })
    })
}

/// Every frame that was offered went somewhere, or the block does not count; and what its slices saw is
/// a part of what the whole block saw.
fn lint_conservation(
    loaded: &Loaded,
    attempt: &Attempt,
    lines: &Lines,
    findings: &mut Vec<Finding>,
) {
    let trials = loaded.dir.join(layout::TRIALS);
    let line = lines.block(&attempt.record);
    for (stratum, frames) in &attempt.record.conservation {
        let dropped: u64 = frames
            .drops
            .values()
            .fold(frames.not_transmitted_frames, |sum, n| {
                sum.saturating_add(*n)
            });
        let lost = i128::from(frames.offered_frames)
            - i128::from(frames.forwarded_frames)
            - i128::from(dropped);
        let own = || {
            attempt
                .trials
                .iter()
                .filter(|trial| trial.stratum == *stratum)
        };
        let in_slices = |of: fn(&TrialRecord) -> u64| own().map(of).fold(0, u64::saturating_add);
        let offered = in_slices(|trial| trial.tester.offered_frames);
        let forwarded = in_slices(|trial| trial.tester.forwarded_frames);
        let block = attempt.record.block;
        let counts = BTreeMap::from([
            ("offered_frames", (frames.offered_frames, offered)),
            ("forwarded_frames", (frames.forwarded_frames, forwarded)),
        ]);
        let mut say = |sentence: String, published: String, derived: String| {
            findings.push(
                Finding::new(&FRAMES_DO_NOT_ADD_UP, &loaded.dir, sentence)
                    .published_at(&trials, line, published)
                    .derived_at(&trials, line, derived),
            );
        };
        if i128::from(frames.unaccounted_frames) != lost {
            say(
                format!("block {block}, {stratum}: its frames do not add up"),
                format!("\"unaccounted_frames\":{}", frames.unaccounted_frames),
                format!("offered - forwarded - not transmitted - drops = {lost}"),
            );
        } else if lost != 0 && own().any(|trial| trial.invalid.is_empty()) {
            say(
                format!(
                    "block {block}, {stratum}: {lost} frames are unaccounted for, and its trials count"
                ),
                format!("\"unaccounted_frames\":{lost}"),
                "\"invalid\":[]".to_owned(),
            );
        }
        for (key, (in_block, in_slices)) in counts {
            if in_slices > in_block {
                say(
                    format!("block {block}, {stratum}: its slices hold more {key} than the block"),
                    format!("\"{key}\":{in_block}"),
                    format!("{in_slices} in its trials"),
                );
            }
        }
    }
}
