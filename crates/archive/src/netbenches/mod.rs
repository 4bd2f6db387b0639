//! Readers of the files of the public archive github.com/ocochard/netbenches.

mod assignments;

pub use assignments::{Assignment, AssignmentError, Assignments, Dialect, Expansion, Operator};
