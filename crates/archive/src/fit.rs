//! Whether what was measured is what the plan asked for.

use std::collections::BTreeSet;

use fwdlab_model::{Plan, PlannedBlock, Stratum, TrialRecord, VariantName};

/// The block of that number.
pub(crate) fn planned(plan: &Plan, number: u32) -> Result<&PlannedBlock, String> {
    plan.blocks
        .iter()
        .find(|block| block.number == number)
        .ok_or_else(|| format!("the plan has no block {number}"))
}

/// Every variant of every stratum has exactly one trial.
pub(crate) fn check_trials(planned: &PlannedBlock, trials: &[TrialRecord]) -> Result<(), String> {
    let asked: BTreeSet<(Stratum, &VariantName)> = planned
        .strata
        .iter()
        .flat_map(|order| order.variants().map(|variant| (order.stratum, variant)))
        .collect();
    let mut seen = BTreeSet::new();
    for trial in trials {
        let key = (trial.stratum, &trial.variant);
        if !asked.contains(&key) {
            return Err(format!(
                "{} {} is not in the plan",
                trial.variant, trial.stratum
            ));
        }
        if !seen.insert(key) {
            return Err(format!(
                "{} {} has two trials",
                trial.variant, trial.stratum
            ));
        }
    }
    match asked.difference(&seen).next() {
        Some((stratum, variant)) => Err(format!("{variant} {stratum} has no trial")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn what_the_plan_did_not_ask_for_is_refused() {
        let plan = sample::plan();
        let block = planned(&plan, 2).unwrap();
        assert!(planned(&plan, 99).is_err());

        let outcome = sample::outcome(&plan, 2, 1, 1, true);
        check_trials(block, &outcome.trials).unwrap();
        block.check_slices(&outcome.slices, true).unwrap();
        block.check_slices(&outcome.slices[1..], false).unwrap();

        for (change, what) in [
            (0, "has no trial"),
            (1, "has two trials"),
            (2, "is not in the plan"),
        ] {
            let mut trials = outcome.trials.clone();
            match change {
                0 => drop(trials.pop()),
                1 => trials.push(trials[0].clone()),
                _ => trials[0].variant = VariantName::from_label("stranger"),
            }
            let error = check_trials(block, &trials).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
        for (change, what) in [
            (0, "5 of 6 slices are there"),
            (1, "has two slices"),
            (2, "is not in the plan"),
            (3, "is not in the plan"),
        ] {
            let mut slices = outcome.slices.clone();
            match change {
                0 => drop(slices.pop()),
                1 => slices.push(slices[0].clone()),
                2 => slices[0].round = 0,
                _ => slices[0].position = u32::MAX,
            }
            let error = block.check_slices(&slices, true).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
    }
}
