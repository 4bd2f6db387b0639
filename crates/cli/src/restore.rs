//! `fwdlab restore`: puts back what a run that was killed has left changed.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use fwdlab_lab::{LeftBy, Leftover, LeftoverState, OnFailure, Whose};
use fwdlab_model::{Hosts, LabKind};

use crate::args::RestoreArguments;
use crate::disk::Disk;
use crate::exit::{Code, DONE, LAB_ERROR};
use crate::output;

pub(crate) fn restore(arguments: &RestoreArguments) -> anyhow::Result<Code> {
    let directory = fwdlab_lab::state_directory()?;
    let hosts = match &arguments.lab {
        Some(path) => Some(hosts_of(path)?),
        None => None,
    };
    let on_failure = if arguments.forget {
        OnFailure::Forget
    } else {
        OnFailure::Keep
    };
    let mut leftovers = Vec::new();
    let mut tell = |some: &[Leftover]| leftovers.extend_from_slice(some);
    let looked = match (&hosts, arguments.list) {
        (None, true) => fwdlab_lab::leftovers(&directory).map(|found| tell(&found)),
        (None, false) => fwdlab_lab::restore(&directory, Whose::Everybody, on_failure, &mut tell),
        (Some(hosts), true) => fwdlab_lab::leftovers_on_hosts(&directory, hosts, &mut tell),
        (Some(hosts), false) => {
            fwdlab_lab::restore_on_hosts(&directory, hosts, on_failure, &mut tell)
        }
    };
    // What was found or put back before an error is said all the same.
    let mut code = DONE;
    if looked.is_ok() || !leftovers.is_empty() {
        code = output::print(&if arguments.json {
            serde_json::to_string_pretty(&leftovers)? + "\n"
        } else {
            text(&leftovers)
        })?;
    }
    looked?;
    if leftovers.iter().any(Leftover::has_failed) {
        output::tell(
            "see why, and run `fwdlab restore` again; what was put back by hand is struck out by `fwdlab restore --forget`",
        );
        return Ok(LAB_ERROR);
    }
    Ok(code)
}

fn hosts_of(path: &Path) -> anyhow::Result<Hosts> {
    let (lab, _) = fwdlab_model::load_lab(path, &Disk)?;
    let (Some(hosts), LabKind::Ssh(_)) = (lab.hosts, lab.kind) else {
        anyhow::bail!(
            "lab {}: it names no hosts; `fwdlab restore` without a lab puts this machine back",
            lab.name
        );
    };
    Ok(hosts)
}

/// Tells what was put back before a lab was opened: many changes of runs that are gone in one line.
pub(crate) fn tell_put_back(leftovers: &[Leftover]) {
    for line in lines(leftovers) {
        output::tell(&line);
    }
}

fn lines(leftovers: &[Leftover]) -> Vec<String> {
    let mut lines = Vec::new();
    for state in [LeftoverState::PutBack, LeftoverState::PutBackByAnother] {
        let alike: Vec<&Leftover> = leftovers
            .iter()
            .filter(|leftover| leftover.state == state)
            .collect();
        match alike.as_slice() {
            [] => {}
            [one] => lines.push(one.to_string()),
            several if state == LeftoverState::PutBack => {
                lines.push(format!("put back {}", changes_in_one(several)));
            }
            several => lines.push(format!(
                "{} were put back by another controller; nothing was changed",
                changes_in_one(several)
            )),
        }
    }
    let is_other = |leftover: &&Leftover| {
        let state = &leftover.state;
        !matches!(
            state,
            LeftoverState::PutBack | LeftoverState::PutBackByAnother
        )
    };
    lines.extend(leftovers.iter().filter(is_other).map(Leftover::to_string));
    lines
}

/// Several changes in few words, with the number of runs that had left them.
fn changes_in_one(leftovers: &[&Leftover]) -> String {
    let changes = format!("{} changes that", leftovers.len());
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

/// A line for each change, below a heading for those of one journal.
fn text(leftovers: &[Leftover]) -> String {
    if leftovers.is_empty() {
        return "nothing to restore\n".into();
    }
    let mut text = String::new();
    let mut heading = None;
    for leftover in leftovers {
        let place = leftover.place();
        if heading.as_ref() != Some(&place) {
            _ = writeln!(text, "{place}:");
            heading = Some(place);
        }
        _ = writeln!(text, "  {}", leftover.line());
    }
    text
}

#[cfg(test)]
mod tests {
    use fwdlab_lab::Undo;

    use super::*;

    fn leftover(of: Option<(u32, &str)>) -> Leftover {
        Leftover {
            what: "a route".to_owned(),
            undo: Undo::RemoveNamespace {
                name: "fwdlab-1-2-dut".to_owned(),
            },
            left_by: of.map(|(pid, time)| LeftBy {
                pid,
                time: time.to_owned(),
                journal: "/state/host.jsonl".into(),
                copy: None,
                controller: None,
            }),
            state: LeftoverState::PutBack,
        }
    }

    #[test]
    fn changes_of_several_runs_are_counted_as_theirs() {
        let line = |of: &[Option<(u32, &str)>]| {
            let leftovers: Vec<Leftover> = of.iter().map(|of| leftover(*of)).collect();
            lines(&leftovers).join("\n")
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

    #[test]
    fn changes_that_another_controller_has_put_back_are_told_apart() {
        let mut leftovers = [1, 2, 3].map(|_| leftover(Some((7, "1 h"))));
        for leftover in &mut leftovers[1..] {
            leftover.state = LeftoverState::PutBackByAnother;
        }
        assert_eq!(
            lines(&leftovers),
            [
                "removed: a route, left by process 7 at 1 h",
                "2 changes that process 7 left at 1 h were put back by another controller; nothing was changed"
            ]
        );
    }

    #[test]
    fn a_journal_is_named_once_above_its_changes() {
        let leftovers = [
            leftover(Some((7, "1 h"))),
            leftover(Some((7, "2 h"))),
            leftover(None),
        ];
        assert_eq!(
            text(&leftovers),
            "this machine, by /state/host.jsonl:\n  \
             removed: a route, left by process 7 at 1 h\n  \
             removed: a route, left by process 7 at 2 h\n\
             this machine:\n  \
             removed: a route, left by a run that is gone\n"
        );
        assert_eq!(text(&[]), "nothing to restore\n");
    }
}
