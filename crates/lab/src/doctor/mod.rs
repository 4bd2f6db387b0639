//! Before a run: what on this machine would spoil it, and how much noise the lab has.

mod finding;
mod host;
mod noise;

pub use finding::{Finding, State};
pub(crate) use host::{cpu_settings, examine_netns, examine_router};
pub use noise::{control_experiment, lab_noise, settle_ms};
