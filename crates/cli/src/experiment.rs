//! The experiment that a command is about, read with its lab.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::path::Path;

use fwdlab_model::Resolved;

use crate::disk::Disk;
use crate::output::{self, tell};

/// Reads an experiment and its lab and tells what their author may not have meant; with it, the
/// text of the experiment file.
pub(crate) fn read(
    experiment: &Path,
    lab: Option<&Path>,
    seed: Option<u64>,
) -> anyhow::Result<(Resolved, String)> {
    let loaded = fwdlab_model::load(experiment, lab, &Disk, drawn_seed())?;
    if !loaded.warnings.is_empty() {
        tell(&loaded.warnings.render(output::stderr_takes_colour()));
    }
    let mut resolved = loaded.resolved;
    if let Some(seed) = seed {
        resolved.design.seed = seed;
        resolved.design.seed_was_drawn = false;
    }
    Ok((resolved, loaded.experiment_source))
}

/// A seed that differs from run to run; the standard library draws its hash keys from the kernel.
fn drawn_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}
