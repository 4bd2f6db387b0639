//! `fwdlab restore`: puts back what a run that was killed has left changed.

use std::collections::BTreeSet;
use std::path::Path;

use fwdlab_lab::{LeftBy, Leftover, LeftoverState, OnFailure, Whose};
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

/// Tells what was put back before a lab was opened: many changes of runs that are gone in one line.
pub(crate) fn tell_put_back(leftovers: &[Leftover]) {
    let is_put_back = |leftover: &&Leftover| leftover.state == LeftoverState::PutBack;
    let (put_back, others): (Vec<_>, Vec<_>) = leftovers.iter().partition(is_put_back);
    match put_back.as_slice() {
        [] => {}
        [one] => output::tell(&one.to_string()),
        several => output::tell(&put_back_in_one(several)),
    }
    for leftover in others {
        output::tell(&leftover.to_string());
    }
}

/// Changes that were put back, in one line, with the number of runs that had left them.
fn put_back_in_one(leftovers: &[&Leftover]) -> String {
    let changes = format!("put back {} changes that", leftovers.len());
    let known: Vec<&LeftBy> = leftovers
        .iter()
        .filter_map(|leftover| leftover.left_by.as_ref())
        .collect();
    let pids: BTreeSet<u32> = known.iter().map(|by| by.pid).collect();
    // Changes that no journal names count as one run more.
    let runs = pids.len() + usize::from(known.len() < leftovers.len());
    match known.iter().max_by_key(|by| &by.time) {
        Some(by) if runs > 1 => format!(
            "{changes} {runs} runs left, the last of them process {} at {}",
            by.pid, by.time
        ),
        Some(by) => {
            let first = known.iter().map(|by| &by.time).min().unwrap_or(&by.time);
            format!("{changes} process {} left at {first}", by.pid)
        }
        None => format!("{changes} a run that is gone left"),
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

#[cfg(test)]
mod tests {
    use fwdlab_lab::Undo;

    use super::*;

    #[test]
    fn changes_of_several_runs_are_counted_as_theirs() {
        let leftover = |of: Option<(u32, &str)>| Leftover {
            what: "a route".to_owned(),
            undo: Undo::RemoveNamespace {
                name: "fwdlab-1-2-dut".to_owned(),
            },
            left_by: of.map(|(pid, time)| LeftBy {
                pid,
                time: time.to_owned(),
                journal: "/state/host.jsonl".into(),
                copy: None,
            }),
            state: LeftoverState::PutBack,
        };
        let line = |of: &[Option<(u32, &str)>]| {
            let leftovers: Vec<Leftover> = of.iter().map(|of| leftover(*of)).collect();
            put_back_in_one(&leftovers.iter().collect::<Vec<_>>())
        };
        let (one, later, other) = (Some((7, "1 h")), Some((7, "2 h")), Some((9, "3 h")));
        assert_eq!(
            line(&[later, one]),
            "put back 2 changes that process 7 left at 1 h"
        );
        let of_two = "put back 3 changes that 2 runs left, the last of them process 9 at 3 h";
        assert_eq!(line(&[other, later, one]), of_two);
        assert_eq!(line(&[one, other, one]), of_two);
        assert_eq!(
            line(&[one, None]),
            "put back 2 changes that 2 runs left, the last of them process 7 at 1 h"
        );
        assert_eq!(
            line(&[None, None]),
            "put back 2 changes that a run that is gone left"
        );
    }
}
