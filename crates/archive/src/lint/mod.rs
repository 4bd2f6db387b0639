//! Whether what is published is what was measured: every number traced to its raw data.
//!
//! A rule ([`Rule`]) has a stable code; what it finds is a [`Finding`] with both sides as evidence: what is
//! published, and what the raw data gives. Nothing is written, and nothing that is read can stop it: what
//! does not read is a finding, too.
//!
//! Rules on a kind of directory are functions from what was read of it to findings: those on a results
//! directory of fwdlab start at [`lint_directory`]. Other trees have others, and share the codes.

mod chain;
mod directory;
mod files;
mod finding;
mod lines;
mod links;
mod numbers;
mod observations;
mod profiles;
mod rule;
mod run;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
mod times;

pub use chain::lint_changes;
pub use directory::{Linted, lint_directory, published};
pub use files::{Search, acts, search};
pub use finding::{Evidence, Finding, Side, counted};
pub use observations::{Value, is_observations, read_values};
pub use rule::*;
