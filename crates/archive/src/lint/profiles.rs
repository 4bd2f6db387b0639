//! Profiles against what is recorded of them.

use fwdlab_profile::Folded;

use crate::layout::{self, name_in};
use crate::load::Loaded;

use super::{Finding, PROFILE_ALTERED, PROFILE_MISSING};

/// Holds the stacks of every profile against the samples that its trial records.
pub(super) fn lint_profiles(loaded: &Loaded, findings: &mut Vec<Finding>) {
    let mut missing = Vec::new();
    for attempt in &loaded.attempts {
        for trial in &attempt.trials {
            let Some(recorded) = trial.profile.as_ref().map(|profile| profile.samples) else {
                continue;
            };
            let path = layout::profile(
                &loaded.dir,
                trial.block,
                trial.attempt,
                &trial.variant,
                trial.stratum,
            );
            let Some(folded) = attempt.stacks(trial) else {
                missing.push(path);
                continue;
            };
            let found = match Folded::parse(folded.as_bytes()) {
                Ok(stacks) if stacks.samples() == recorded => continue,
                Ok(stacks) => format!("{} samples", stacks.samples()),
                Err(error) => error.to_string(),
            };
            let name = name_in(&loaded.dir, &path);
            let sentence =
                format!("{name} does not hold the {recorded} samples recorded of it: {found}");
            let trials = loaded.dir.join(layout::TRIALS);
            findings.push(
                Finding::new(&PROFILE_ALTERED, &loaded.dir, sentence)
                    .published(&path, found)
                    .derived(&trials, format!("{recorded} samples")),
            );
        }
    }
    // A run published without its profiles is one finding.
    if let Some(first) = missing.first() {
        let name = name_in(&loaded.dir, first);
        let sentence = match missing.len() {
            1 => format!("{name} is not there"),
            count => format!("the stacks of {count} profiles are not there, as {name}"),
        };
        let finding = Finding::new(&PROFILE_MISSING, &loaded.dir, sentence);
        findings.push(finding.published(first, "is not there"));
    }
}
