//! Findings as a JSON array.

use fwdlab_archive::lint::Finding;
use serde::Serialize;

use crate::error::ReportError;
use crate::json::pretty;
use crate::text::one_line;

use super::{FINDINGS_SCHEMA_VERSION, inert};

#[derive(Serialize)]
struct Item<'a> {
    schema: u32,
    code: &'a str,
    name: &'a str,
    severity: &'a str,
    directory: String,
    sentence: String,
    evidence: Vec<Piece<'a>>,
    help: &'a str,
}

#[derive(Serialize)]
struct Piece<'a> {
    side: &'a str,
    path: String,
    line: Option<usize>,
    says: String,
}

/// What `fwdlab lint --json` prints: one array, see `docs/lint.md`.
///
/// # Errors
/// [`ReportError::Json`].
pub fn json(findings: &[Finding]) -> Result<String, ReportError> {
    let items: Vec<Item<'_>> = findings
        .iter()
        .map(|finding| Item {
            schema: FINDINGS_SCHEMA_VERSION,
            code: finding.rule.code,
            name: finding.rule.name,
            severity: finding.rule.severity.as_str(),
            directory: finding.directory.to_string_lossy().into_owned(),
            sentence: one_line(&finding.sentence),
            evidence: finding
                .evidence
                .iter()
                .map(|evidence| Piece {
                    side: evidence.side.as_str(),
                    path: evidence.path.to_string_lossy().into_owned(),
                    line: evidence.line,
                    says: one_line(&evidence.says),
                })
                .collect(),
            help: finding.rule.help,
        })
        .collect();
    Ok(inert(&pretty(&items)?))
}
