#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod diagnostic;
mod document;
mod experiment;
mod lab_file;
pub mod plan;
pub mod record;
pub mod resolve;
pub mod resolved;
pub mod words;

pub use diagnostic::{Diagnostic, Diagnostics, Severity, Source, Span};
pub use plan::{FamilyOrder, Plan, PlannedBlock};
pub use record::{
    BlockRecord, Conservation, Environment, InvalidReason, Placement, RateBasis, Record,
    SCHEMA_VERSION, SessionRecord, SliceRecord, Tester, TrialRecord, Verification,
};
pub use resolve::{Loaded, Read, load};
pub use resolved::{
    Binding, CommandBinding, Comparison, Design, Direction, DutInterface, Factor, FirstAddresses,
    FrameSize, Lab, LabKind, PortRange, Resolved, Traffic, Variant, XdpProgram,
};
pub use words::{AddressFamily, Level, LoadRegime, VariantName};
