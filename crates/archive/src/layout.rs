//! Where each file lies in a results directory.

use std::path::{Path, PathBuf};

use fwdlab_model::{AddressFamily, VariantName};

pub(crate) const EXPERIMENT: &str = "experiment.toml";
pub(crate) const RESOLVED: &str = "resolved.json";
pub(crate) const PLAN: &str = "plan.json";
pub(crate) const TRIALS: &str = "trials.jsonl";
pub(crate) const LOCK: &str = "lock";
pub(crate) const FINISHED: &str = "finished.json";
pub(crate) const README: &str = "README.md";
pub(crate) const SESSIONS: &str = "sessions";
pub(crate) const BLOCKS: &str = "blocks";
pub(crate) const PROFILES: &str = "profiles";
pub(crate) const DERIVED: &str = "derived";
/// What the name of a file of folded stacks ends in.
pub(crate) const FOLDED: &str = ".folded";
/// What the name of a file of observations ends in.
pub(crate) const OBSERVATIONS: &str = ".pps";

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
        format!("{block}.attempt-{attempt}.csv")
    })
}

/// The stacks of the profile of one trial, in one attempt at its block.
pub(crate) fn profile(
    dir: &Path,
    block: u32,
    attempt: u32,
    variant: &VariantName,
    family: AddressFamily,
) -> PathBuf {
    let attempt = match attempt {
        1 => String::new(),
        attempt => format!(".attempt-{attempt}"),
    };
    let name = format!("{block}{attempt}.{variant}.{family}{FOLDED}");
    dir.join(PROFILES).join(name)
}

pub(crate) fn observations(dir: &Path, variant: &VariantName, family: AddressFamily) -> PathBuf {
    dir.join(format!("{variant}.{family}{OBSERVATIONS}"))
}
