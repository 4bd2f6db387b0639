//! Which records a number rests on.

use fwdlab_archive::{Attempt, Loaded};
use fwdlab_model::record::Fate;
use fwdlab_model::{AddressFamily, RateBasis, TrialRecord, VariantName};

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

/// The trial of one variant and family in one attempt.
pub(crate) fn trial<'a>(
    attempt: &'a Attempt,
    variant: &VariantName,
    family: AddressFamily,
) -> Option<&'a TrialRecord> {
    attempt
        .trials
        .iter()
        .find(|trial| &trial.variant == variant && trial.family == family)
}

/// What the forwarding rates of one attempt rest on.
pub(crate) fn basis(attempt: &Attempt, family: AddressFamily, scope: Scope) -> RateBasis {
    // A record without a basis is of a lab that knows nothing of disturbances.
    match (scope, attempt.record.rate_basis.get(&family)) {
        (Scope::Accepted | Scope::AllTrials, Some(&basis)) => basis,
        (Scope::AllTime, _) | (_, None) => RateBasis::AllTime,
    }
}

/// The slices of one variant and family in one attempt, as the statistics take them: what their
/// forwarding rates rest on.
pub(crate) fn slices(
    attempt: &Attempt,
    variant: &VariantName,
    family: AddressFamily,
    scope: Scope,
) -> Vec<fwdlab_stats::Slice> {
    let basis = basis(attempt, family, scope);
    attempt
        .slices
        .iter()
        .filter(|slice| &slice.variant == variant && slice.family == family)
        .map(|slice| {
            let (forwarded_frames, duration_s) = slice.counted(basis);
            fwdlab_stats::Slice {
                round: slice.round,
                forwarded_frames,
                duration_s,
            }
        })
        .collect()
}

/// The part of the measured time, over the attempts that stand, in which the load CPU was disturbed;
/// none without measured time.
pub(crate) fn disturbed_ratio(loaded: &Loaded, family: AddressFamily) -> Option<f64> {
    let (mut measured_s, mut undisturbed_s) = (0.0, 0.0);
    for attempt in attempts(loaded, Scope::Accepted) {
        for trial in attempt.trials.iter().filter(|trial| trial.family == family) {
            measured_s += trial.measured_s;
            undisturbed_s += trial.undisturbed_s;
        }
    }
    (measured_s > 0.0).then(|| (1.0 - undisturbed_s / measured_s).max(0.0))
}
