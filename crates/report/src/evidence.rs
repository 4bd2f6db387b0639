//! Which records a number rests on.

use std::collections::HashMap;

use fwdlab_archive::{Attempt, Loaded};
use fwdlab_model::record::Fate;
use fwdlab_model::{RateBasis, SliceRecord, Stratum, TrialRecord, VariantName};

/// Which attempts at blocks are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The valid attempt that stands for each block.
    Accepted,
    /// The invalid attempts too.
    AllTrials,
    /// The valid attempts, with the disturbed time of their slices.
    AllTime,
}

/// The attempts in scope, in block order.
pub(crate) fn attempts(loaded: &Loaded, scope: Scope) -> Vec<&Attempt> {
    let mut attempts: Vec<&Attempt> = loaded
        .attempts
        .iter()
        .filter(|attempt| match scope {
            Scope::Accepted | Scope::AllTime => attempt.fate == Fate::Accepted,
            Scope::AllTrials => attempt.fate != Fate::Superseded,
        })
        .collect();
    attempts.sort_by_key(|attempt| (attempt.record.block, attempt.record.attempt));
    attempts
}

/// The first of the attempts at a block.
pub(crate) fn of_block<'a>(attempts: &[&'a Attempt], block: u32) -> Option<&'a Attempt> {
    let mut attempts = attempts.iter().copied();
    attempts.find(|attempt| attempt.record.block == block)
}

/// The trial of one variant and stratum in one attempt.
pub(crate) fn trial<'a>(
    attempt: &'a Attempt,
    variant: &VariantName,
    stratum: Stratum,
) -> Option<&'a TrialRecord> {
    attempt
        .trials
        .iter()
        .find(|trial| &trial.variant == variant && trial.stratum == stratum)
}

/// What the forwarding rates of one attempt rest on.
pub(crate) fn basis(attempt: &Attempt, stratum: Stratum, scope: Scope) -> RateBasis {
    // A record without a basis is of a lab that knows nothing of disturbances.
    match (scope, attempt.record.rate_basis.get(&stratum)) {
        (Scope::Accepted | Scope::AllTrials, Some(&basis)) => basis,
        (Scope::AllTime, _) | (_, None) => RateBasis::AllTime,
    }
}

/// The slices of one stratum, found by attempt and variant: large runs have hundreds of thousands.
pub(crate) struct Slices<'a> {
    pub(crate) stratum: Stratum,
    /// By block, attempt and variant, in the order in which they were written.
    by_trial: HashMap<(u32, u32, &'a VariantName), Vec<&'a SliceRecord>>,
}

impl<'a> Slices<'a> {
    pub(crate) fn of(loaded: &'a Loaded, stratum: Stratum) -> Self {
        let mut by_trial: HashMap<_, Vec<_>> = HashMap::new();
        for attempt in &loaded.attempts {
            let Attempt { record, slices, .. } = attempt;
            for slice in slices.iter().filter(|slice| slice.stratum == stratum) {
                let trial = (record.block, record.attempt, &slice.variant);
                by_trial.entry(trial).or_default().push(slice);
            }
        }
        Self { stratum, by_trial }
    }

    /// The slices of one variant in one attempt.
    pub(crate) fn of_trial<'b>(
        &'b self,
        attempt: &Attempt,
        variant: &'b VariantName,
    ) -> &'b [&'a SliceRecord] {
        let record = &attempt.record;
        let slices = self.by_trial.get(&(record.block, record.attempt, variant));
        slices.map_or(&[], Vec::as_slice)
    }

    /// The same as the statistics take them: what their forwarding rates rest on.
    pub(crate) fn counted(
        &self,
        attempt: &Attempt,
        variant: &VariantName,
        scope: Scope,
    ) -> Vec<fwdlab_stats::Slice> {
        let basis = basis(attempt, self.stratum, scope);
        let slices = self.of_trial(attempt, variant).iter();
        slices
            .map(|slice| fwdlab_stats::Slice::of(slice.round, slice.counted(basis)))
            .collect()
    }
}

/// The part of the measured time, over the attempts that stand, in which the load CPU was disturbed;
/// none without measured time.
pub(crate) fn disturbed_ratio(loaded: &Loaded, stratum: Stratum) -> Option<f64> {
    let (mut measured_s, mut undisturbed_s) = (0.0, 0.0);
    for attempt in attempts(loaded, Scope::Accepted) {
        for trial in attempt
            .trials
            .iter()
            .filter(|trial| trial.stratum == stratum)
        {
            measured_s += trial.measured_s;
            undisturbed_s += trial.undisturbed_s;
        }
    }
    (measured_s > 0.0).then(|| (1.0 - undisturbed_s / measured_s).max(0.0))
}
