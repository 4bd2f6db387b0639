//! One thing that was looked at, and what to do about it.

use serde::Serialize;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// As it should be.
    Fine,
    /// It adds noise, or takes something away.
    Warning,
    /// Without it nothing can be measured.
    Fatal,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub check: String,
    /// How it is.
    pub state: State,
    /// What was seen.
    pub seen: String,
    /// What to do, unless it is fine.
    pub remedy: Option<String>,
}

impl Finding {
    pub(crate) fn fine(check: impl Into<String>, seen: impl Into<String>) -> Self {
        Self {
            check: check.into(),
            state: State::Fine,
            seen: seen.into(),
            remedy: None,
        }
    }

    pub(crate) fn warning(
        check: impl Into<String>,
        seen: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            check: check.into(),
            state: State::Warning,
            seen: seen.into(),
            remedy: Some(remedy.into()),
        }
    }

    pub(crate) fn fatal(
        check: impl Into<String>,
        seen: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            state: State::Fatal,
            ..Self::warning(check, seen, remedy)
        }
    }
}
