//! Findings as a JSON array.

use std::path::PathBuf;

use fwdlab_archive::lint::Finding;
use serde::Serialize;

use crate::error::ReportError;
use crate::json::pretty;
use crate::text::{inert, one_line};

use super::baseline::Compared;
use super::{FINDINGS_SCHEMA_VERSION, place};

#[derive(Serialize)]
struct Item<'a> {
    schema: u32,
    code: &'a str,
    name: &'a str,
    severity: &'a str,
    /// Whether the baseline has it, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<bool>,
    directory: String,
    place: String,
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
/// Shape: `roots` are the folders that were given.
///
/// # Errors
/// [`ReportError::Json`].
pub fn json(
    findings: &[Finding],
    roots: &[PathBuf],
    compared: Option<&Compared>,
) -> Result<String, ReportError> {
    let items: Vec<Item<'_>> = findings
        .iter()
        .enumerate()
        .map(|(number, finding)| Item {
            schema: FINDINGS_SCHEMA_VERSION,
            code: finding.rule.code,
            name: finding.rule.name,
            severity: finding.rule.severity.as_str(),
            known: compared.map(|compared| compared.is_known[number]),
            directory: finding.directory.to_string_lossy().into_owned(),
            place: place(finding, roots),
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
    Ok(inert(&pretty(&items)?, false).into_owned())
}
