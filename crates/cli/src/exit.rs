//! Exit codes, and which error gives which.

use std::process::ExitCode;

use fwdlab_archive::ArchiveError;
use fwdlab_catalogue::CatalogueError;
use fwdlab_lab::LabError;
use fwdlab_model::Diagnostics;
use fwdlab_netbenches::NetbenchesError;
use fwdlab_netbenches::bench_lab::BenchLabError;
use fwdlab_netbenches::export::ExportError;
use fwdlab_plan::PlanError;
use fwdlab_traffic::TrafficError;

use crate::output;

/// An exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) u8);

/// All done.
pub(crate) const DONE: Code = Code(0);
/// Done, but no comparison could be made, fewer blocks stand than were planned, a frame was wrong, something was
/// found, or a condition of `--fail-on` holds.
pub(crate) const GOAL_MISSED: Code = Code(1);
/// The user's arguments or files cannot be used.
pub(crate) const USER_ERROR: Code = Code(2);
/// The lab failed.
pub(crate) const LAB_ERROR: Code = Code(3);
/// The user stopped the run; it can be continued.
pub(crate) const INTERRUPTED: Code = Code(130);

/// Arguments that do not go together.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WrongArguments(pub(crate) String);

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code.0)
    }
}

/// An error with its causes, each said once: most errors name theirs themselves.
pub(crate) fn in_words(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text += &format!(": {cause}");
        }
    }
    text
}

/// Prints an error and tells its exit code.
pub(crate) fn explain(error: &anyhow::Error) -> Code {
    if let Some(diagnostics) = error.downcast_ref::<Diagnostics>() {
        output::tell(&diagnostics.render(output::stderr_takes_colour()));
        return USER_ERROR;
    }
    output::tell(&format!("error: {}", in_words(error)));
    for cause in error.chain() {
        if let Some(error) = cause.downcast_ref::<LabError>() {
            return match error {
                LabError::Interrupted => INTERRUPTED,
                LabError::NoHosts { .. } | LabError::Ruleset { .. } | LabError::Object { .. } => {
                    USER_ERROR
                }
                _ => LAB_ERROR,
            };
        }
        if let Some(error) = cause.downcast_ref::<PlanError>() {
            let none_left = matches!(error, PlanError::NoComparison { .. });
            return if none_left { GOAL_MISSED } else { USER_ERROR };
        }
        if let Some(error) = cause.downcast_ref::<TrafficError>() {
            return if error.is_users() {
                USER_ERROR
            } else {
                LAB_ERROR
            };
        }
        let is_users = cause.is::<ArchiveError>()
            || cause.is::<CatalogueError>()
            || cause.is::<NetbenchesError>()
            || cause.is::<ExportError>()
            || cause.is::<BenchLabError>()
            || cause.is::<WrongArguments>();
        if is_users {
            return USER_ERROR;
        }
    }
    LAB_ERROR
}
