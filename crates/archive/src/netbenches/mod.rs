//! Readers of the files of the public archive github.com/ocochard/netbenches.

mod assignments;
mod config_file;
mod config_set;
mod equilibrium;
mod info;
mod lab_config;
mod pktgen_config;
mod secret;
mod table;
mod time;
mod uname;

pub use assignments::{Assignment, AssignmentError, Assignments, Dialect, Expansion, Operator};
pub use config_file::{ConfigFile, ConfigKind, Fingerprint, Setting, SettingValue};
pub use config_set::{ConfigSet, Difference, Effective, SettingKey, differences};
pub use equilibrium::{
    EquilibriumCommand, EquilibriumError, EquilibriumLog, Estimate, Iteration, SearchWarning,
    Trend, parse_rates_mbps,
};
pub use info::{BenchInfo, InfoError, InfoForm};
pub use lab_config::{LabConfig, LabVariable};
pub use pktgen_config::{PktGenConfig, PktGenConfigError};
pub use secret::Secret;
pub use table::{Comment, Row, Table, TableError};
pub use time::PrintedTime;
pub use uname::{CommitCount, OsRevision, Uname};
