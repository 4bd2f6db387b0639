#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod call_graph;
mod comparison;
mod draw;
mod dtrace;
mod ebpf;
mod events;
mod folded;
mod foreign;
mod forwarding;
mod harness;
mod idle;
mod kernel_symbols;
mod perf_line;
mod perf_script;
mod pprof;
mod stacks;
mod statistics;
mod text;

pub use call_graph::{
    CallGraph, CallGraphError, Frame, FrameNames, LastLine, Section, SectionShortfall, Truncation,
};
pub use comparison::{
    Comparison, ComparisonError, CostDifference, CostInterval, FrameDifference, Noise, ProfilePair,
    Profiled, compare_lone_profiles, compare_profiles,
};
pub use draw::{
    Caption, Color, CostUnit, DrawError, FlameBox, FlameBoxes, Width, difference_boxes,
    difference_graph, flame_boxes, flame_graph,
};
pub use dtrace::Dtrace;
pub use events::{EventSamples, NoSuchEvent, is_same_event, named_events};
pub use folded::{Folded, FoldedError, Stack};
pub use foreign::ForeignForm;
pub use forwarding::is_forwarding;
pub use idle::{is_idle, is_sleeping, may_be_idle};
pub use kernel_symbols::{KernelFunction, KernelSymbols, KernelSymbolsError};
pub use perf_script::PerfScript;
pub use statistics::{ConversionStatistics, StatisticsError};
pub use text::{PrintedError, without_byte_order_mark};
