#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod audit;
pub mod format;
pub mod render;

mod bases;
mod build;
mod catalogue;
mod causes;
mod checks;
mod colours;
mod comment;
mod compare;
mod competition;
mod design_form;
mod distributions_plot;
mod effect_axis;
mod effects_plot;
mod error;
mod evidence;
mod factorial;
mod findings;
mod gate;
mod imported;
mod json;
mod judge;
mod labels;
mod lint;
mod live;
mod netbenches;
mod offered_load;
mod outcomes;
mod page;
mod preview;
mod preview_text;
mod profile_sections;
mod profiles;
mod rate_panel;
mod readme;
mod report;
mod sections;
mod sentences;
mod sessions;
mod summary;
mod svg;
mod terminal;
mod text;
mod totals;
mod traffic_effects;
mod trials_plot;
mod variant_rows;
mod wrong_frames;

pub use compare::{
    Basis, COMPARE_SCHEMA_VERSION, CompareGroup, CompareReport, CompareRow, CompareSettings,
    Observations, compare_blocks, compare_independent, compare_pairs,
};
pub use error::ReportError;
pub use factorial::{FactorLevel, FactorialDesign, FactorialRow, FactorialSection, VarianceRow};
pub use findings::{Baseline, Compared, FINDINGS_SCHEMA_VERSION, FindingsView, rules};
pub use gate::{Gate, GateFailure, GateResult, cautions};
pub use imported::{IMPORTED_REPORT_SCHEMA_VERSION, ImportedReport, JudgedBlock, VariantSummary};
pub use lint::{lint_imported_report, lint_report};
pub use live::{BlockUnderWay, Frame, LiveView, Moment, Reader, RunState, block_outcome};
pub use offered_load::{OfferedLoadRow, SensitivitySection, SlopeSection};
pub use outcomes::{Amount, OutcomeRow, Outcomes};
pub use preview::{
    Claim, ComparisonPreview, Detectable, Difference, DutProgram, MethodPreview,
    PREVIEW_SCHEMA_VERSION, Preview, Reckoned, VariantPreview,
};
pub use profile_sections::{
    CostSection, FrameSection, OverheadSection, ProfileDifference, ProfileSection, ProfilesSection,
    RejectedProfile,
};
pub use report::*;
pub use sentences::{heavy_flows, settled_load};
pub use sessions::{RerunsSection, Session, SessionSection, SessionVariant, compare_sessions};
pub use summary::SUMMARY_SCHEMA_VERSION;
pub use text::{inert, one_line};
pub use totals::{ConservationTotals, FlowsSection};
pub use traffic_effects::{TrafficChange, TrafficSection};
