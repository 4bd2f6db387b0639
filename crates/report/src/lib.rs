#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod format;
pub mod render;

mod build;
mod effects_plot;
mod error;
mod evidence;
mod judge;
mod preview;
mod readme;
mod report;
mod sentences;
mod svg;
mod terminal;
mod text;
mod trials_plot;

pub use error::ReportError;
pub use preview::{
    ComparisonPreview, Detectable, Difference, PREVIEW_SCHEMA_VERSION, Preview, Reckoned,
    VariantPreview,
};
pub use report::*;
