//! Whether what others published is what they measured: trees of theirs, and imports.
//!
//! Rules and findings are those of [`fwdlab_archive::lint`]. Nothing is written, and nothing that is read can stop it.

mod imported;
mod tree;

pub use imported::lint_imported;
pub use tree::lint_tree;
