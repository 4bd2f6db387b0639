//! Findings that are known, because an earlier `fwdlab lint --json` printed them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fwdlab_archive::lint::Finding;
use serde::Deserialize;

use crate::error::ReportError;
use crate::text::one_line;

use super::{FINDINGS_SCHEMA_VERSION, place};

/// What an earlier look found, each as often as it did.
#[derive(Clone, Debug)]
pub struct Baseline(BTreeMap<Identity, usize>);

/// What makes two findings the same; lines are no part of it, because they move.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(from = "Item")]
struct Identity {
    code: String,
    place: String,
    sentence: String,
    says: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    code: String,
    place: String,
    sentence: String,
    evidence: Vec<Piece>,
}

#[derive(Deserialize)]
struct Piece {
    says: String,
}

#[derive(Deserialize)]
struct Version {
    schema: u32,
}

impl From<Item> for Identity {
    fn from(item: Item) -> Self {
        Self {
            code: item.code,
            place: item.place,
            sentence: item.sentence,
            says: item.evidence.into_iter().next().map(|piece| piece.says),
        }
    }
}

impl Identity {
    fn of(finding: &Finding, roots: &[PathBuf]) -> Self {
        let first = finding.evidence.first();
        Self {
            code: finding.rule.code.to_owned(),
            place: place(finding, roots),
            sentence: one_line(&finding.sentence),
            says: first.map(|evidence| one_line(&evidence.says)),
        }
    }
}

impl Baseline {
    /// Reads what `fwdlab lint --json` printed, but for rules of codes that are not looked at.
    ///
    /// # Errors
    /// [`ReportError::NoBaseline`], [`ReportError::NewerBaseline`].
    pub fn parse(json: &str, is_looked_at: impl Fn(&str) -> bool) -> Result<Self, ReportError> {
        let no_baseline = |source| ReportError::NoBaseline { source };
        let versions: Vec<Version> = serde_json::from_str(json).map_err(no_baseline)?;
        let newest = versions.iter().map(|item| item.schema).max();
        if let Some(schema) = newest.filter(|&schema| schema > FINDINGS_SCHEMA_VERSION) {
            return Err(ReportError::NewerBaseline { schema });
        }
        let identities: Vec<Identity> = serde_json::from_str(json).map_err(no_baseline)?;
        let mut baseline = BTreeMap::new();
        for identity in identities {
            if is_looked_at(&identity.code) {
                *baseline.entry(identity).or_default() += 1;
            }
        }
        Ok(Self(baseline))
    }

    /// Which findings it has.
    ///
    /// Shape: `roots` are the folders that were given.
    #[must_use]
    pub fn compare(&self, findings: &[Finding], roots: &[PathBuf]) -> Compared {
        let mut left = self.0.clone();
        let is_known = findings
            .iter()
            .map(
                |finding| match left.get_mut(&Identity::of(finding, roots)) {
                    Some(count) if *count > 0 => {
                        *count -= 1;
                        true
                    }
                    _ => false,
                },
            )
            .collect();
        Compared {
            is_known,
            gone: left.values().sum(),
        }
    }
}

/// Findings beside a baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Of each finding, whether the baseline has it.
    pub is_known: Vec<bool>,
    /// How many of the baseline were not found again.
    pub gone: usize,
}

impl Compared {
    /// How many are known, and how many of the baseline are gone.
    #[must_use]
    pub fn sentence(&self, baseline: &Path) -> String {
        let known = self.is_known.iter().filter(|known| **known).count();
        let name = crate::text::shown(baseline);
        format!("{known} known from {name}, {} of it gone", self.gone)
    }
}
