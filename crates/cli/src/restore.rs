//! `fwdlab restore`: puts back what a run that was killed has left changed.

use fwdlab_lab::{Leftover, LeftoverState, OnFailure, Whose};

use crate::args::RestoreArguments;
use crate::exit::{Code, LAB_ERROR};
use crate::output;

pub(crate) fn restore(arguments: &RestoreArguments) -> anyhow::Result<Code> {
    let directory = fwdlab_lab::state_directory()?;
    let leftovers = if arguments.list {
        fwdlab_lab::leftovers(&directory)?
    } else if arguments.forget {
        fwdlab_lab::restore(&directory, Whose::Everybody, OnFailure::Forget)?
    } else {
        fwdlab_lab::restore(&directory, Whose::Everybody, OnFailure::Keep)?
    };
    let code = output::print(&if arguments.json {
        serde_json::to_string_pretty(&leftovers)? + "\n"
    } else {
        text(&leftovers)
    })?;
    let is_failure = |leftover: &Leftover| matches!(leftover.state, LeftoverState::Failed { .. });
    if leftovers.iter().any(is_failure) {
        output::tell(
            "put back by hand what could not be put back, then run `fwdlab restore --forget`",
        );
        return Ok(LAB_ERROR);
    }
    Ok(code)
}

fn text(leftovers: &[Leftover]) -> String {
    if leftovers.is_empty() {
        return "nothing was left by runs that are gone\n".into();
    }
    leftovers
        .iter()
        .map(|leftover| format!("{leftover}\n"))
        .collect()
}
