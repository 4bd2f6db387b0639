//! `fwdlab restore`: puts back what a run that was killed has left changed.

use std::path::Path;

use fwdlab_lab::{Leftover, LeftoverState, OnFailure, Whose};
use fwdlab_model::{Hosts, LabKind, System};

use crate::args::RestoreArguments;
use crate::disk::Disk;
use crate::exit::{Code, LAB_ERROR};
use crate::output;

pub(crate) fn restore(arguments: &RestoreArguments) -> anyhow::Result<Code> {
    let directory = fwdlab_lab::state_directory()?;
    let dut = match &arguments.lab {
        Some(path) => Some(lab_of_hosts(path)?),
        None => None,
    };
    let on_failure = if arguments.forget {
        OnFailure::Forget
    } else {
        OnFailure::Keep
    };
    let leftovers = match (&dut, arguments.list) {
        (None, true) => fwdlab_lab::leftovers(&directory)?,
        (None, false) => fwdlab_lab::restore(&directory, Whose::Everybody, on_failure)?,
        (Some((hosts, system)), true) => fwdlab_lab::leftovers_on_host(&directory, hosts, *system)?,
        (Some((hosts, system)), false) => {
            fwdlab_lab::restore_on_host(&directory, hosts, *system, on_failure)?
        }
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

fn lab_of_hosts(path: &Path) -> anyhow::Result<(Hosts, System)> {
    let (lab, _) = fwdlab_model::load_lab(path, &Disk)?;
    let (Some(hosts), LabKind::Ssh(system)) = (lab.hosts, lab.kind) else {
        anyhow::bail!(
            "lab {}: it names no hosts; `fwdlab restore` without a lab puts this machine back",
            lab.name
        );
    };
    Ok((hosts, system))
}

/// Tells before a run what it has put back: many changes of runs that are gone in one line.
pub(crate) fn tell_put_back(leftovers: &[Leftover]) {
    let is_put_back = |leftover: &&Leftover| leftover.state == LeftoverState::PutBack;
    let (put_back, others): (Vec<_>, Vec<_>) = leftovers.iter().partition(is_put_back);
    match put_back.as_slice() {
        [] => {}
        [one] => output::tell(&one.to_string()),
        [.., last] => {
            let by = last.left_by.as_ref();
            let by = by.map_or("a run that is gone left".to_owned(), |by| {
                format!("process {} left at {}", by.pid, by.time)
            });
            output::tell(&format!("put back {} changes that {by}", put_back.len()));
        }
    }
    for leftover in others {
        output::tell(&leftover.to_string());
    }
}

fn text(leftovers: &[Leftover]) -> String {
    if leftovers.is_empty() {
        return "nothing to restore\n".into();
    }
    leftovers
        .iter()
        .map(|leftover| format!("{leftover}\n"))
        .collect()
}
