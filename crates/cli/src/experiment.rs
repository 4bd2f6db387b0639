//! The experiment that a command is about, read with its lab.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::path::Path;

use fwdlab_lab::LabError;
use fwdlab_model::{Diagnostics, Read, Resolved};

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

/// What is wrong in a ruleset that nft does not understand, with its place; none where an error is of anything else.
pub(crate) fn placed(
    error: &anyhow::Error,
    experiment: &Path,
    lab: Option<&Path>,
    read: Read<'_>,
) -> Option<Diagnostics> {
    let Some(LabError::Ruleset {
        factor,
        level,
        line,
        reason,
        ..
    }) = error.downcast_ref()
    else {
        return None;
    };
    let source = fwdlab_model::ruleset_source(experiment, lab, read, factor, level)?;
    let start = |line: usize| -> usize {
        let lines = source.text.split_inclusive('\n').take(line);
        lines.map(str::len).sum()
    };
    let text = source.text.get(start(line - 1)..start(*line)).unwrap_or("");
    let from = start(line - 1) + text.len() - text.trim_start().len();
    let span = from..from + text.trim().len();
    let mut diagnostics = Diagnostics::default();
    diagnostics.error(
        Some((&source, span)),
        format!("nft does not understand this ruleset: {reason}"),
    );
    Some(diagnostics)
}

/// What a lab was asked, unless a file that the experiment names is wrong: then that, with its place where it is known.
pub(crate) fn unless_a_file_is_wrong<T>(
    asked: anyhow::Result<T>,
    experiment: &Path,
    lab: Option<&Path>,
    read: Read<'_>,
) -> anyhow::Result<anyhow::Result<T>> {
    let Err(error) = asked else {
        return Ok(asked);
    };
    match placed(&error, experiment, lab, read) {
        Some(refusal) => Err(refusal.into()),
        None if matches!(error.downcast_ref(), Some(LabError::Object { .. })) => Err(error),
        None => Ok(Err(error)),
    }
}

/// A seed that differs from run to run; the standard library draws its hash keys from the kernel.
fn drawn_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}
