//! Findings of lint, for people and for programs.
//!
//! Paths and what files hold are others' words: they are shown so that they act nowhere, whatever is in
//! them.

mod github;
mod json;
mod rules;
mod sarif;
mod terminal;

pub use github::github;
pub use json::json;
pub use rules::rules;
pub use sarif::sarif;
pub use terminal::{explanation, terminal};

use fwdlab_archive::lint::{Evidence, Finding};

use crate::text::{acts, one_line, shown};

/// Version of an item of `fwdlab lint --json`.
pub const FINDINGS_SCHEMA_VERSION: u32 = 1;

/// More of an excerpt than this is no help.
const EXCERPT_MAX: usize = 160;

/// An excerpt on one line, its end left out where it is long.
fn excerpt(text: &str) -> String {
    let line = one_line(text);
    if line.chars().count() <= EXCERPT_MAX {
        return line;
    }
    let kept: String = line.chars().take(EXCERPT_MAX - 1).collect();
    format!("{kept}\u{2026}")
}

/// The finding in one line: the sentence, and what shows it.
fn message(finding: &Finding) -> String {
    let mut message = one_line(&finding.sentence);
    for Evidence {
        side,
        path,
        line,
        says,
    } in &finding.evidence
    {
        let line = line.map_or_else(String::new, |line| format!(":{line}"));
        let (path, says) = (shown(path), excerpt(says));
        message += &format!("; {}: {says} ({path}{line})", side.as_str());
    }
    message
}

/// JSON that no character of a name can act in: those that do are escaped.
fn inert(json: &str) -> String {
    let mut inert = String::with_capacity(json.len());
    for character in json.chars() {
        // Line ends are the layout's own; those inside strings are escaped already.
        if acts(character) && character != '\n' {
            inert += &format!("\\u{:04x}", u32::from(character));
        } else {
            inert.push(character);
        }
    }
    inert
}
