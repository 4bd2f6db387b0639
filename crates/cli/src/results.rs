//! Results directories as commands read them.

use std::path::{Path, PathBuf};

use fwdlab_archive::lint::{Finding, Severity, lint_changes};
use fwdlab_archive::{ArchiveError, Loaded, Results, is_imported};

use crate::args::NamedArguments;
use crate::output::tell;

/// A directory that somebody named.
pub(crate) enum Directory {
    OfRun(PathBuf),
    /// What others have published.
    Imported(PathBuf),
}

/// The directory that is meant: a path, or one below the results directories.
pub(crate) fn find(named: &NamedArguments) -> Result<Directory, ArchiveError> {
    let (results, directory) = (&named.results, &named.directory);
    let places = [PathBuf::from(directory), results.join(directory)];
    let imported = places.into_iter().find(|place| is_imported(place));
    imported.map_or_else(
        || find_run(named).map(Directory::OfRun),
        |directory| Ok(Directory::Imported(directory)),
    )
}

/// The same where only a run's will do.
pub(crate) fn find_run(named: &NamedArguments) -> Result<PathBuf, ArchiveError> {
    Results::find(&named.results, &named.directory)
}

/// Reads a directory, and says on standard error where it is no longer as it was written.
pub(crate) fn load(directory: &Path) -> Result<Loaded, ArchiveError> {
    let loaded = Results::load(directory)?;
    warn_of_changes(directory);
    Ok(loaded)
}

/// Says on standard error where a directory is no longer as it was written.
pub(crate) fn warn_of_changes(directory: &Path) {
    let changes = lint_changes(directory);
    let is_error = |change: &&Finding| change.rule.severity == Severity::Error;
    if let Some(change) = changes.iter().find(is_error) {
        let shown = directory.display();
        tell(&format!(
            "warning: {shown}: {} ({}); what follows is of these records; see `fwdlab lint {shown}`",
            change.sentence, change.rule.code,
        ));
    }
}
