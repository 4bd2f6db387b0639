//! A run for the tests whose numbers follow from its slices, as those of a measured one do.

use std::fs;
use std::path::{Path, PathBuf};

use fwdlab_model::{Conservation, RateBasis, TrialRecord};
use fwdlab_stats::{Slice, observation};
use serde_json::Value;

use crate::lint::{Finding, lint_directory};
use crate::results::{Choice, Results};
use crate::sample::{self, Outcome};

/// What was measured: block, and whether the attempt was valid.
const SCRIPT: [(u32, bool); 5] = [(1, true), (2, false), (2, true), (3, true), (4, true)];

/// A run that is finished, in a folder.
pub(super) fn finished(root: &Path) -> PathBuf {
    let results = measured(root, SCRIPT.len());
    let dir = results.dir().to_owned();
    results.finish("2026-11-21T08:50:00Z").unwrap();
    dir
}

/// A run with so many attempts of the script.
pub(super) fn measured(root: &Path, attempts: usize) -> Results {
    let (resolved, plan) = (sample::resolved(), sample::plan());
    let run = sample::new_run(&resolved, &plan);
    let mut results = Results::open_or_create(root, &run, &Choice::default()).unwrap();
    let session = results.next_session();
    results.begin_session(sample::session(session)).unwrap();
    let mut last = 0;
    let mut attempt = 0;
    for (block, valid) in SCRIPT.into_iter().take(attempts) {
        attempt = if block == last { attempt + 1 } else { 1 };
        last = block;
        append(&mut results, outcome(block, attempt, session, valid));
    }
    results
}

pub(super) fn append(results: &mut Results, outcome: Outcome) {
    let Outcome {
        trials,
        block,
        slices,
        profiles,
    } = outcome;
    results
        .append_block(&trials, &block, &slices, &profiles)
        .unwrap();
}

/// A finished run as earlier versions left it: without a chain.
pub(super) fn without_chain(root: &Path) -> PathBuf {
    let dir = finished(root);
    fs::remove_file(dir.join("chain.jsonl")).unwrap();
    for name in ["resolved.json", "finished.json"] {
        let mut file: Value = serde_json::from_slice(&fs::read(dir.join(name)).unwrap()).unwrap();
        for key in ["chain", "last_link", "files", "seal"] {
            file.as_object_mut().unwrap().remove(key);
        }
        fs::write(dir.join(name), serde_json::to_vec_pretty(&file).unwrap()).unwrap();
    }
    dir
}

/// The findings' codes, and their sentences for whoever reads a failed test.
pub(super) fn lint(dir: &Path) -> (Vec<&'static str>, Vec<Finding>) {
    let findings = lint_directory(dir).findings;
    (
        findings.iter().map(|finding| finding.rule.code).collect(),
        findings,
    )
}

/// An outcome of the tests whose trials are those of its slices.
pub(super) fn outcome(block: u32, attempt: u32, session: u32, valid: bool) -> Outcome {
    let mut outcome = sample::outcome(&sample::plan(), block, attempt, session, valid);
    for (number, slice) in (0_u64..).zip(&mut outcome.slices) {
        let of_variant = 10_000 * slice.variant.as_str().len() as u64;
        slice.forwarded_frames = 100_000 + of_variant + 131 * u64::from(block) + 17 * number;
        slice.dropped_frames = slice.offered_frames.saturating_sub(slice.forwarded_frames);
        slice.offered_frames = slice.forwarded_frames + slice.dropped_frames;
        slice.undisturbed_frames = slice.forwarded_frames * 9 / 10;
    }
    for trial in &mut outcome.trials {
        follow(trial, &outcome.slices);
    }
    let sum = |of: fn(&TrialRecord) -> u64| outcome.trials.iter().map(of).sum::<u64>();
    let frames = Conservation {
        offered_frames: sum(|trial| trial.tester.offered_frames) + 7,
        forwarded_frames: sum(|trial| trial.tester.forwarded_frames) + 4,
        drops: [("nft".to_owned(), sum(|trial| trial.dut.drops["nft"]) + 3)].into(),
        ..Conservation::default()
    };
    let time = |seconds| {
        format!(
            "2026-11-21T08:4{}:{}Z",
            block + 2,
            25 + 5 * attempt + seconds
        )
    };
    outcome.block.start = time(0);
    for trial in &mut outcome.trials {
        trial.start = time(1 + trial.order);
    }
    outcome
        .block
        .conservation
        .values_mut()
        .for_each(|of_stratum| *of_stratum = frames.clone());
    outcome
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn follow(trial: &mut TrialRecord, slices: &[fwdlab_model::SliceRecord]) {
    let own: Vec<_> = slices
        .iter()
        .filter(|slice| slice.variant == trial.variant)
        .collect();
    let counted: Vec<Slice> = own
        .iter()
        .map(|slice| Slice::of(slice.round, slice.counted(RateBasis::Undisturbed)))
        .collect();
    let shortest_s = sample::resolved().design.shortest_counted_s();
    trial.observation_pps = observation(&counted, shortest_s)
        .unwrap()
        .median_forwarding_rate_pps;
    trial.tester.offered_frames = own.iter().map(|slice| slice.offered_frames).sum();
    trial.tester.forwarded_frames = own.iter().map(|slice| slice.forwarded_frames).sum();
    let dropped = own.iter().map(|slice| slice.dropped_frames).sum();
    trial.dut.drops = [("nft".to_owned(), dropped)].into();
    trial.pooled_pps = trial.tester.forwarded_frames as f64 / trial.measured_s;
}
