#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod build;
mod duration;
pub mod orders;
mod run;

pub use build::{PlanError, build, minimum_blocks, variants_run};
pub use duration::{Estimate, Overheads};
pub use run::{ATTEMPTS_MAX, BlockRequest, PlanRun, Summary};
