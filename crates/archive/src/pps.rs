//! `<variant>.<stratum>.pps`: one observation a line, as ministat and the archives' tools read it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fwdlab_model::TrialRecord;

use crate::layout;
use crate::load::Loaded;

/// Significant digits of an observation, as ministat prints them.
const DIGITS: i32 = 8;

/// An observation as it stands in a `.pps` file: eight significant digits, no exponent, no
/// trailing zeros; all digits in front of the point where they are more.
///
/// Shape: finite. Units: frames per second.
#[must_use]
pub fn format_observation(observation_pps: f64) -> String {
    // `{:e}` gives the exponent of the value itself, without the error of a logarithm.
    let exponent = format!("{observation_pps:e}")
        .rsplit_once('e')
        .and_then(|(_, exponent)| exponent.parse::<i32>().ok())
        .unwrap_or(0);
    let decimals = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
    let text = format!("{observation_pps:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Observations as the text of a `.pps` file.
///
/// Shape: finite. Units: frames per second.
pub fn format_observations(observations_pps: impl Iterator<Item = f64>) -> String {
    observations_pps
        .map(|observation_pps| format_observation(observation_pps) + "\n")
        .collect()
}

/// The accepted trials of a run in block order, by the `.pps` file that publishes them.
///
/// Shape: each attempt has a trial of every variant, so that rows of different files belong together.
pub(crate) fn published_trials(run: &Loaded) -> BTreeMap<PathBuf, Vec<&TrialRecord>> {
    let mut files: BTreeMap<PathBuf, Vec<&TrialRecord>> = BTreeMap::new();
    for trial in run.accepted().iter().flat_map(|attempt| &attempt.trials) {
        let path = layout::observations(&run.dir, &trial.variant, trial.stratum);
        files.entry(path).or_default().push(trial);
    }
    files
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn observations_are_plain_numbers_of_eight_digits() {
        for (observation_pps, text) in [
            (833_890.0, "833890"),
            (1_234_567.891, "1234567.9"),
            (9_999_999.96, "10000000"),
            (99_999_999.9, "100000000"),
            (123_456_789.4, "123456789"),
            (0.5, "0.5"),
            (0.0, "0"),
            (1.0e-3, "0.001"),
            (1_200_000.0, "1200000"),
        ] {
            assert_eq!(format_observation(observation_pps), text);
        }
    }

    proptest! {
        #[test]
        fn an_observation_reads_back_within_eight_digits(observation_pps in 1.0e-3..1.0e12_f64) {
            let text = format_observation(observation_pps);
            prop_assert!(text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'));
            let read: f64 = text.parse().unwrap();
            prop_assert!((read / observation_pps - 1.0).abs() <= 0.5000001e-7);
        }
    }
}
