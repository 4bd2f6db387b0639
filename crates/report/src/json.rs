//! JSON that people can read.

use serde::Serialize;

use crate::error::ReportError;

/// A report on indented lines: `report.json`, `audit.json`, and what `fwdlab plan --json` and its kind print.
///
/// # Errors
/// [`ReportError::Json`].
pub fn pretty(value: &impl Serialize) -> Result<String, ReportError> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n")
        .map_err(|source| ReportError::Json { source })
}
