//! Which records a number rests on.

use fwdlab_archive::{Attempt, Loaded};
use fwdlab_model::record::Fate;
use fwdlab_model::{AddressFamily, TrialRecord, VariantName};

/// Which attempts at blocks are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The valid attempt that stands for each block.
    Accepted,
    /// The invalid attempts too.
    AllTrials,
}

/// The attempts in scope, in block order.
pub(crate) fn attempts(loaded: &Loaded, scope: Scope) -> Vec<&Attempt> {
    let mut attempts: Vec<&Attempt> = loaded
        .attempts
        .iter()
        .filter(|attempt| match scope {
            Scope::Accepted => attempt.fate == Fate::Accepted,
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

/// The slices of one variant and family in one attempt, as the statistics take them.
pub(crate) fn slices(
    attempt: &Attempt,
    variant: &VariantName,
    family: AddressFamily,
) -> Vec<fwdlab_stats::Slice> {
    attempt
        .slices
        .iter()
        .filter(|slice| &slice.variant == variant && slice.family == family)
        .map(|slice| fwdlab_stats::Slice {
            round: slice.round,
            forwarded_frames: slice.forwarded_frames,
            duration_s: slice.time_s,
        })
        .collect()
}
