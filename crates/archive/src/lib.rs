#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod chain;
mod csv_text;
mod error;
mod find;
mod fit;
pub mod input;
pub mod layout;
pub mod lint;
mod load;
mod lock;
pub mod name;
mod observations;
mod pps;
mod results;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
mod slices;
mod stamp;

pub use csv_text::{CsvRows, Row, TextError, TextFault, csv_separator, plain_text};
pub use error::{ArchiveError, ArchiveWarning, Place, READ_FILE};
pub use find::{Found, find, is_imported, is_results};
pub use load::{Attempt, Finished, Loaded, json, parse_json_up_to, read_json};
pub use lock::holder;
pub use observations::{Column, Observation, ObservationsError, Separators, parse_observations};
pub use pps::{format_observation, format_observations};
pub use results::{Choice, NewRun, Results, write_derived, write_readme};
pub use slices::{format_slices, parse_slices};
pub use stamp::Stamp;
