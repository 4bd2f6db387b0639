//! Whether what others published is what they measured: trees of theirs, and imports.
//!
//! Findings, and the rules that hold for results directories as well, are those of [`fwdlab_archive::lint`]. Nothing is
//! written, and nothing that is read can stop it.

mod imported;
mod rule;
mod tree;

pub use imported::lint_imported;
pub use rule::*;
pub use tree::lint_tree;
