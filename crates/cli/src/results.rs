//! Results directories as commands read them.

use std::path::Path;

use fwdlab_archive::lint::{Finding, Severity, lint_changes};
use fwdlab_archive::{ArchiveError, Loaded, Results};

use crate::output::tell;

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
