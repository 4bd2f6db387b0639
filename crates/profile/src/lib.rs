#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod call_graph;
mod folded;
mod idle;
mod perf_script;
mod statistics;
mod text;

pub use call_graph::{
    CallGraph, CallGraphError, Frame, FrameNames, LastLine, Section, SectionShortfall, Truncation,
};
pub use folded::{Folded, FoldedError, Stack};
pub use idle::is_idle;
pub use perf_script::{PerfScript, PerfScriptError};
pub use statistics::{ConversionStatistics, StatisticsError};
