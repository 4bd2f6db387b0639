//! Readers of the public archive's files.

pub mod readme;
