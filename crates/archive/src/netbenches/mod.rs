//! Readers of the files of the public archive github.com/ocochard/netbenches.

mod assignments;
mod equilibrium;
mod info;
mod table;
mod time;
mod uname;

pub use assignments::{Assignment, AssignmentError, Assignments, Dialect, Expansion, Operator};
pub use equilibrium::{
    EquilibriumCommand, EquilibriumError, EquilibriumLog, Estimate, Iteration, SearchWarning,
    Trend, parse_rates_mbps,
};
pub use info::{BenchInfo, InfoError, InfoForm};
pub use table::{Comment, Row, Table, TableError};
pub use time::PrintedTime;
pub use uname::{CommitCount, OsRevision, Uname};
