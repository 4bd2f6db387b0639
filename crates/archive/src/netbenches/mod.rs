//! The public archive of forwarding benchmarks (github.com/ocochard/netbenches), as it is: loose logs, what
//! was published of them, and texts written by hand.
//!
//! [`ArchiveTree::read`] reads any part of it. Every file is read, left for a named reason, or an error with
//! its line; nothing is run or sourced, and nothing of it is judged here.

mod assignments;
pub mod bench_lab;
mod config_file;
mod config_set;
mod datasets;
mod equilibrium;
mod file;
mod folder;
mod import;
mod info;
mod kind;
mod lab_config;
mod log;
mod log_name;
mod pktgen_config;
mod place;
mod profile;
mod published_text;
pub mod readme;
mod secret;
mod table;
mod time;
mod tree;
mod uname;
mod walk;

pub use assignments::{Assignment, AssignmentError, Assignments, Dialect, Expansion, Operator};
pub use config_file::{ConfigFile, ConfigKind, Fingerprint, Setting, SettingValue};
pub use config_set::{ConfigSet, Difference, Effective, SettingKey, differences};
pub use datasets::TreeDataset;
pub(crate) use datasets::place;
pub use equilibrium::{EquilibriumError, Estimate, parse_rates_mbps};
pub use file::{ArchiveFile, Content, Dataset, FILE_BYTES_MAX, Outcome, Problem, Skip};
pub use folder::{PublishedDataset, ResultsFolder, Run, RunGroup};
pub use import::Imported;
pub(crate) use import::imported_file;
pub use info::{BenchInfo, InfoError, InfoForm};
pub use kind::FileKind;
pub use lab_config::{LabConfig, LabVariable};
pub use log::{LogFacts, Published, SampleCounts};
pub use log_name::{BenchName, Role};
pub use pktgen_config::{PktGenConfig, PktGenConfigError};
pub use place::ArchivePlace;
pub use profile::{CallGraphFacts, FoldedFacts};
pub use secret::Secret;
pub use table::{Comment, Row, Table, TableError};
pub use time::PrintedTime;
pub use tree::ArchiveTree;
pub use uname::{CommitCount, OsRevision, Uname};
