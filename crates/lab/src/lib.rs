#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod addresses;
mod asks;
mod block;
pub mod cabling;
mod choices;
mod clock;
mod counters;
mod cpu_account;
mod cpu_speed;
pub mod doctor;
mod drop_reasons;
mod environment;
mod error;
mod hosts;
mod interference;
mod journal;
mod kept_log;
mod kernel_file;
mod kernel_types;
mod lab;
mod leftover;
mod machine;
mod mechanism;
mod netlink;
mod netns;
mod notify;
mod placement;
mod probe;
mod profiler;
mod program;
mod restore;
mod router;
mod sample;
mod sequence;
mod survey;
mod tester;
mod topology;
mod validity;
mod watch;

pub use asks::Asks;
pub use block::{BlockOutcome, BlockRun, LabEvent};
pub use choices::Choices;
pub use environment::environment;
pub use error::{LabError, Moved};
pub use hosts::{HostsLab, StackWatch, serve_agent, serve_stacks};
pub use journal::{Undo, state_directory};
pub use lab::{Lab, examine};
pub use leftover::{LeftBy, Leftover, LeftoverState};
pub use machine::MachineClaim;
pub use mechanism::fib_forwarder;
pub use mechanism::tools::{Tool, ToolNeed, by_tool, tools_needed};
pub use netns::{NetnsLab, SETTLING_STEP};
pub use notify::{Message, notify};
pub use restore::{
    OnFailure, Tell, Whose, leftovers, leftovers_on_hosts, restore, restore_on_hosts,
};
pub use router::RouterLab;
pub use survey::Survey;
pub use tester::TesterChoice;
pub use topology::{DUT_IN, DUT_OUT, TESTER_IN, TESTER_OUT, Topology};
pub use validity::{CALIBRATION_RATIO_MAX, LOAD_RATIO_MIN, STEAL_RATIO_MAX};
