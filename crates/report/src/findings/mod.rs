//! Findings of lint, for people and for programs.
//!
//! Paths and what files hold are others' words: they are shown so that they act nowhere, whatever is in
//! them.

mod baseline;
mod github;
mod json;
mod rules;
mod sarif;
mod terminal;

pub use baseline::{Baseline, Compared};
pub use github::github;
pub use json::json;
pub use rules::rules;
pub use sarif::sarif;
pub use terminal::{FindingsView, explanation, terminal};

use std::path::PathBuf;

use fwdlab_archive::lint::{Evidence, Finding};

use crate::text::{one_line, shown};

/// Version of an item of `fwdlab lint --json`.
pub const FINDINGS_SCHEMA_VERSION: u32 = 1;

/// More of an excerpt than this is no help.
const EXCERPT_MAX: usize = 160;

/// An excerpt on one line, its end left out where it is long.
fn excerpt(text: &str) -> String {
    shortened(text, EXCERPT_MAX)
}

fn shortened(text: &str, characters_max: usize) -> String {
    let line = one_line(text);
    if line.chars().count() <= characters_max {
        return line;
    }
    let kept: String = line.chars().take(characters_max - 1).collect();
    format!("{kept}\u{2026}")
}

/// The file that a finding is about, below the folder that was given.
fn place(finding: &Finding, roots: &[PathBuf]) -> String {
    let first = finding.evidence.first();
    let path = first.map_or(&finding.directory, |evidence| &evidence.path);
    let below = roots.iter().filter_map(|root| path.strip_prefix(root).ok());
    let place = below.min_by_key(|below| below.components().count());
    place.unwrap_or(path).to_string_lossy().into_owned()
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
