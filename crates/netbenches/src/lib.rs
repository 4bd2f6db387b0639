#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod assignments;
pub mod audit;
pub mod bench_lab;
mod config_file;
mod config_set;
mod counted;
mod datasets;
mod equilibrium;
mod error;
pub mod export;
mod file;
mod folder;
mod import;
mod imported;
mod info;
mod kind;
mod lab_config;
pub mod lint;
mod log;
mod log_name;
mod natural;
mod pktgen_config;
mod place;
mod profile;
mod published_text;
pub mod readme;
mod replacement;
mod secret;
mod table;
mod time;
mod tree;
mod uname;
mod walk;

pub use assignments::{Assignment, AssignmentError, Assignments, Dialect, Expansion, Operator};
pub use config_file::{ConfigFile, ConfigKind, Fingerprint, Setting, SettingValue};
pub use config_set::{ConfigSet, Difference, Effective, SettingKey, differences};
pub use counted::Counted;
pub use datasets::TreeDataset;
pub use equilibrium::{EquilibriumError, Estimate, parse_rates_mbps};
pub use error::NetbenchesError;
pub use file::{ArchiveFile, Content, Dataset, FILE_BYTES_MAX, Outcome, Problem, Skip};
pub use folder::{PublishedDataset, ResultsFolder, Run, RunGroup};
pub use import::Imported;
pub use imported::{
    FileCounts, ImportAccount, imported_files, imported_observations, imported_start,
    load_imported, write_import,
};
pub use info::{BenchInfo, InfoError, InfoForm};
pub use kind::FileKind;
pub use lab_config::{LabConfig, LabVariable};
pub use log::{Load, LogFacts, Published, SampleCounts};
pub use log_name::{BenchName, Role};
pub use pktgen_config::{PktGenConfig, PktGenConfigError};
pub use place::ArchivePlace;
pub use profile::{CallGraphFacts, FoldedFacts};
pub use secret::Secret;
pub use table::{Comment, Row, Table, TableError};
pub use time::PrintedTime;
pub use tree::ArchiveTree;
pub use uname::{CommitCount, OsRevision, Uname};
pub use walk::holds_bench;
