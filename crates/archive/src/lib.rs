#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod audit;
pub mod catalogue;
mod chain;
mod error;
pub mod export;
mod find;
mod fit;
mod imported;
mod input;
mod layout;
pub mod lint;
mod load;
mod lock;
mod name;
pub mod netbenches;
mod observations;
mod pps;
mod replacement;
mod results;
#[cfg(test)]
mod sample;
mod slices;
mod stamp;

pub use error::{ArchiveError, ArchiveWarning, Place};
pub use fwdlab_pkt_gen as pkt_gen;
pub use imported::{
    FileCounts, ImportAccount, imported_observations, imported_start, is_imported, load_imported,
    write_import,
};
pub use input::read_derived;
pub use load::{Attempt, Finished, Loaded};
pub use lock::holder;
pub use observations::{Column, ObservationsError, parse_observations};
pub use pps::format_observation;
pub use results::{Choice, NewRun, Results, write_derived, write_readme};
pub use slices::{format_slices, parse_slices};
pub use stamp::Stamp;
