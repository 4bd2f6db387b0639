//! W233: checked frames that were wrong in an attempt at a block. The attempt does not count, and the one that does has
//! checked other frames: without a word, a variant that forwards some frames wrongly would get a verdict.

use std::collections::{BTreeMap, BTreeSet};

use fwdlab_archive::Loaded;
use fwdlab_model::{InvalidReason, Stratum, TrialRecord, VariantName};

use crate::report::Warning;
use crate::text;

/// What was wrong, and in which blocks.
#[derive(Default)]
struct Wrong<'a> {
    what: BTreeSet<&'a str>,
    blocks: BTreeSet<u32>,
}

/// A warning for each variant and stratum whose frames were wrong, and for strata where it is not known whose they were.
pub(crate) fn warnings(loaded: &Loaded) -> impl Iterator<Item = Warning> {
    let mut all: BTreeMap<(Stratum, Option<&VariantName>), Wrong<'_>> = BTreeMap::new();
    for attempt in &loaded.attempts {
        for trial in &attempt.trials {
            for reason in &trial.invalid {
                if let InvalidReason::Verification { what, .. } = reason {
                    let is_own = !is_of_all(&attempt.trials, trial, reason);
                    let variant = is_own.then_some(&trial.variant);
                    let wrong = all.entry((trial.stratum, variant)).or_default();
                    wrong.what.insert(what);
                    wrong.blocks.insert(trial.block);
                }
            }
        }
    }
    all.into_iter().map(move |((stratum, variant), wrong)| {
        let label = variant.map(|name| match loaded.resolved.variant(name) {
            Some(variant) => text::one_line(&variant.label),
            None => text::one_line(name.as_str()),
        });
        let whose = match &label {
            Some(_) => "",
            None => "; whose they were is not known",
        };
        let what: Vec<&str> = wrong.what.into_iter().collect();
        let blocks: Vec<String> = wrong.blocks.iter().map(ToString::to_string).collect();
        Warning::new(
            "W233",
            label,
            format!(
                "checked frames of {} were wrong ({}) in attempts at block {}, which do not count{whose}",
                stratum.label(),
                text::one_line(&what.join(", ")),
                blocks.join(", ")
            ),
            "find out why first: about one frame in 64 is checked, so that attempts that count may hold such frames too",
        )
    })
}

/// Whether a reason speaks against all trials of a trial's stratum, of which there are several, among those of a block.
pub(crate) fn is_of_all(
    trials: &[TrialRecord],
    trial: &TrialRecord,
    reason: &InvalidReason,
) -> bool {
    let mut of_stratum = trials.iter().filter(|of| of.stratum == trial.stratum);
    let are_several = of_stratum.clone().nth(1).is_some();
    are_several && of_stratum.all(|of| of.invalid.contains(reason))
}
