//! Where each file lies in a results directory.

use std::path::{Path, PathBuf};

use fwdlab_model::{Stratum, VariantName};

pub(crate) const EXPERIMENT: &str = "experiment.toml";
/// The experiment, resolved.
pub const RESOLVED: &str = "resolved.json";
/// What is measured in which order.
pub const PLAN: &str = "plan.json";
/// The records of trials and blocks.
pub const TRIALS: &str = "trials.jsonl";
pub(crate) const CHAIN: &str = "chain.jsonl";
pub(crate) const LOCK: &str = "lock";
/// What marks a run as finished.
pub const FINISHED: &str = "finished.json";
/// The report.
pub const README: &str = "README.md";
/// The folder of sessions.
pub const SESSIONS: &str = "sessions";
/// The folder of slices.
pub const BLOCKS: &str = "blocks";
pub(crate) const PROFILES: &str = "profiles";
/// The folder of what follows from the records.
pub const DERIVED: &str = "derived";
/// What stands in front of the number of an attempt in the names of its files.
const ATTEMPT: &str = ".attempt-";
/// What the name of a file of folded stacks ends in.
pub(crate) const FOLDED: &str = ".folded";
/// What the name of a file of observations ends in.
pub const OBSERVATIONS: &str = ".pps";

/// The file by which a folder of imported results is known.
pub const IMPORTED: &str = "imported.json";

/// What the name of a directory begins with while it is created.
pub(crate) const NEW: &str = ".new-";

pub(crate) fn session(dir: &Path, session: u32) -> PathBuf {
    dir.join(SESSIONS).join(format!("{session}.json"))
}

/// The slices of one attempt at a block; first attempts go without their number, because nearly
/// all are.
pub(crate) fn slices(dir: &Path, block: u32, attempt: u32) -> PathBuf {
    dir.join(BLOCKS).join(if attempt == 1 {
        format!("{block}.csv")
    } else {
        format!("{block}{ATTEMPT}{attempt}.csv")
    })
}

/// The stacks of the profile of one trial, in one attempt at its block.
pub(crate) fn profile(
    dir: &Path,
    block: u32,
    attempt: u32,
    variant: &VariantName,
    stratum: Stratum,
) -> PathBuf {
    let attempt = match attempt {
        1 => String::new(),
        attempt => format!("{ATTEMPT}{attempt}"),
    };
    let name = format!("{block}{attempt}.{variant}.{stratum}{FOLDED}");
    dir.join(PROFILES).join(name)
}

/// Whether a file of that name holds slices.
pub(crate) fn is_slices(name: &str) -> bool {
    slices_of(name).is_some()
}

/// Block and attempt whose slices a file of that name holds.
fn slices_of(name: &str) -> Option<(u32, u32)> {
    let stem = name.strip_suffix(".csv")?;
    match stem.split_once(ATTEMPT) {
        Some((block, attempt)) => Some((number(block)?, number(attempt)?)),
        None => Some((number(stem)?, 1)),
    }
}

/// Whether a file of that name holds the stacks of a profile: of which variants is for who knows the run.
pub(crate) fn is_profile(name: &str) -> bool {
    profile_of(name).is_some()
}

/// Block and attempt of whose profiles a file of that name holds one.
fn profile_of(name: &str) -> Option<(u32, u32)> {
    let stem = name.strip_suffix(FOLDED)?;
    let (block, rest) = stem.split_once('.')?;
    // A variant may be called as attempts are.
    let attempt = (stem[block.len()..].strip_prefix(ATTEMPT))
        .and_then(|rest| rest.split_once('.'))
        .filter(|(_, rest)| rest.contains('.'))
        .and_then(|(attempt, _)| number(attempt));
    rest.contains('.')
        .then(|| Some((number(block)?, attempt.unwrap_or(1))))?
}

/// Block and attempt that a file of that name is of, of slices or a profile.
pub(crate) fn attempt_of(name: &str) -> Option<(u32, u32)> {
    slices_of(name).or_else(|| profile_of(name))
}

/// Whether a file of that name is a session's.
pub(crate) fn is_session(name: &str) -> bool {
    name.strip_suffix(".json").and_then(number).is_some()
}

/// A number as names have it: in one way only.
fn number(text: &str) -> Option<u32> {
    text.parse()
        .ok()
        .filter(|number: &u32| number.to_string() == text)
}

/// A file as it is called inside its results directory.
#[must_use]
pub fn name_in(dir: &Path, path: &Path) -> String {
    path.strip_prefix(dir)
        .ok()
        .filter(|inside| !inside.as_os_str().is_empty())
        .unwrap_or(path)
        .display()
        .to_string()
}

pub(crate) fn observations(dir: &Path, variant: &VariantName, stratum: Stratum) -> PathBuf {
    dir.join(format!("{variant}.{stratum}{OBSERVATIONS}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_attempt_that_they_are_of() {
        let dir = Path::new("run");
        for variant in ["none", "attempt-7", "a.b", "attempt-7.x"] {
            let variant = VariantName::from_label(variant);
            for attempt in [1, 2, 11] {
                for path in [
                    slices(dir, 3, attempt),
                    profile(dir, 3, attempt, &variant, Stratum::INET6),
                ] {
                    let name = path.file_name().unwrap().to_str().unwrap();
                    let is_taken_for_another = variant.as_str() == "attempt-7.x" && attempt == 1;
                    if !is_taken_for_another || is_slices(name) {
                        assert_eq!(attempt_of(name), Some((3, attempt)), "{name}");
                    }
                }
            }
        }
        for name in [
            "01.csv",
            "1.attempt-x.csv",
            ".csv",
            "1.folded",
            "x.a.inet.folded",
            "1",
        ] {
            assert_eq!(attempt_of(name), None, "{name}");
        }
        assert!(is_session("12.json") && !is_session("012.json") && !is_session("1.jsn"));
    }
}
