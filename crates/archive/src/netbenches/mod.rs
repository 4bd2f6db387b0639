//! The public archive of forwarding benchmarks (github.com/ocochard/netbenches), as it is: loose logs, what
//! was published of them, and texts written by hand.
//!
//! [`ArchiveTree::read`] reads any part of it. Every file is read, left for a named reason, or an error with
//! its line; nothing is run or sourced, and nothing of it is judged here.

mod file;
mod folder;
mod import;
mod kind;
mod log;
mod log_name;
mod place;
mod tree;
mod walk;

pub use file::{ArchiveFile, Content, Dataset, FILE_BYTES_MAX, Outcome, Problem, Skip};
pub use folder::{Origin, PublishedDataset, ResultsFolder, Run, RunGroup};
pub use import::Imported;
pub(crate) use import::imported_file;
pub use kind::FileKind;
pub use log::{LogFacts, Published, SampleCounts};
pub use log_name::{BenchName, Role};
pub use place::ArchivePlace;
pub use tree::ArchiveTree;
