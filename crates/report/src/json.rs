//! JSON that people can read.

use serde::Serialize;

use crate::error::ReportError;

/// A value on indented lines.
///
/// # Errors
/// [`ReportError::Json`].
pub(crate) fn pretty(value: &impl Serialize) -> Result<String, ReportError> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n")
        .map_err(|source| ReportError::Json { source })
}
