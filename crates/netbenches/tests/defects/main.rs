//! How much lint finds: defects of known kinds, planted by seeds into copies of parts of the public archive.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, reason = "a measurement tells what it measured")]

mod bench;
mod kinds;
mod part;
mod published;

use std::collections::{BTreeMap, BTreeSet};

use fwdlab_archive::lint::Severity;
use testkit::{Random, cases, is_soak};

use bench::{Bench, Found};
use kinds::{KINDS, Kind, Wanted};
use part::Part;

/// Seeds of a soak; the ordinary tests take a sample of them.
const SEEDS: usize = 100_000;
const SAMPLE: usize = 2;
/// So many trials of a kind are needed for its floor to be held against them alone.
const TRIALS_MIN: usize = 20;

/// What became of the trials of a kind.
#[derive(Default)]
struct Tally {
    trials: usize,
    by_severity: BTreeMap<Severity, usize>,
    /// Trials in which a finding is gone that no other of the same rule took the place of.
    vanished: usize,
    rules: BTreeMap<&'static str, usize>,
}

impl Tally {
    fn found(&self, at_least: Severity) -> usize {
        let found = self.by_severity.range(at_least..);
        found.map(|(_, count)| count).sum()
    }

    /// The trials that went as they should.
    fn right(&self, kind: &Kind) -> usize {
        match kind.wanted {
            Wanted::Nothing => self.trials - self.found(Severity::Note).max(self.vanished),
            Wanted::AtLeast(severity) => self.found(severity),
        }
    }
}

#[test]
fn planted_defects_are_found() {
    let corpus = testkit::require_shared!("corpus/netbenches");
    let parts = Part::all(&corpus);
    let mut bench = Bench::new(&corpus);
    let mut tallies: Vec<Tally> = KINDS.iter().map(|_| Tally::default()).collect();
    for seed in cases(SEEDS, SAMPLE) {
        let order = Random::new(seed as u64).shuffled(&parts);
        for (number, (kind, tally)) in KINDS.iter().zip(&mut tallies).enumerate() {
            let mut random = Random::new((seed * KINDS.len() + number) as u64);
            let planted = order
                .iter()
                .find_map(|part| Some((*part, (kind.plan)(part, &mut random)?)));
            let Some((part, defect)) = planted else {
                continue;
            };
            let outcome = bench.plant(part, &defect);
            let counts = |found: &&Found| {
                kind.rules.iter().any(|rule| found.code.starts_with(rule))
                    && defect.places.iter().any(|path| found.is_of(path))
            };
            let is_nothing = kind.wanted == Wanted::Nothing;
            let new: Vec<&Found> = (outcome.new.iter())
                .filter(|found| is_nothing || counts(found))
                .collect();
            let worst = new.iter().max_by_key(|found| found.severity);
            tally.trials += 1;
            tally.vanished += usize::from(outcome.has_vanished());
            if let Some(worst) = worst {
                *tally.by_severity.entry(worst.severity).or_default() += 1;
            }
            let codes: BTreeSet<&'static str> = new.iter().map(|found| found.code).collect();
            for code in &codes {
                *tally.rules.entry(*code).or_default() += 1;
            }
            if is_soak() {
                println!("{seed} {}: {codes:?}: {}", kind.name, defect.what);
                for elsewhere in outcome.new.iter().filter(|found| !new.contains(found)) {
                    println!("    elsewhere: {} {}", elsewhere.code, elsewhere.sentence);
                }
                for gone in &outcome.gone {
                    println!("    gone: {} {}", gone.code, gone.sentence);
                }
            }
        }
    }
    println!("{}", table(&tallies));
    hold_to_floors(&tallies);
}

/// The table of docs/lint.md.
fn table(tallies: &[Tally]) -> String {
    let mut text = "| planted | trials | error | warning | note | not found | vanished | by |\n|---|---|---|---|---|---|---|---|\n".to_owned();
    for (kind, tally) in KINDS.iter().zip(tallies) {
        let of = |severity| tally.by_severity.get(&severity).copied().unwrap_or(0);
        let (error, warning, note) = (
            of(Severity::Error),
            of(Severity::Warning),
            of(Severity::Note),
        );
        let rules: Vec<String> = tally
            .rules
            .iter()
            .map(|(code, count)| format!("{code} {count}"))
            .collect();
        text += &format!(
            "| {} | {} | {error} | {warning} | {note} | {} | {} | {} |\n",
            kind.name,
            tally.trials,
            tally.trials - error - warning - note,
            tally.vanished,
            rules.join(", ")
        );
    }
    text
}

/// Kind by kind where there are enough trials, and all of them together.
fn hold_to_floors(tallies: &[Tally]) {
    let (mut right, mut floor) = (0, 0);
    for (kind, tally) in KINDS.iter().zip(tallies) {
        let of_kind = tally.right(kind);
        assert!(
            tally.trials < TRIALS_MIN || of_kind * 100 >= kind.floor_percent * tally.trials,
            "{}: {of_kind} of {}, and not {} %",
            kind.name,
            tally.trials,
            kind.floor_percent
        );
        right += of_kind * 100;
        floor += kind.floor_percent * tally.trials;
    }
    assert!(right >= floor, "{right} of {floor}");
}
