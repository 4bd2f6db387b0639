//! Puts back what runs that are gone have left.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use fwdlab_model::{Hosts, Lab, LabKind, System};

use crate::LabError;
use crate::doctor::Finding;
use crate::hosts::{Connection, copies};
use crate::journal::{
    COPY, CarryOut, Change, Destination, FoundCopy, HOST_JOURNAL, Turn, Undo, boot, boot_journal,
    controller, failed, host_journal, left_changes, living_process, marks_of_commands,
};
use crate::netns::ThisMachine;

/// Something that a run left, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Leftover {
    /// What was changed.
    pub what: String,
    /// What undoes it; in what is printed without what a program reads, which may be a file with keys.
    #[serde(serialize_with = "without_input")]
    pub undo: Undo,
    /// The process that is gone, and when it announced the change (UTC), where a journal tells.
    pub left_by: Option<LeftBy>,
    /// What became of it.
    #[serde(flatten)]
    pub state: LeftoverState,
}

fn without_input<S: serde::Serializer>(undo: &Undo, serializer: S) -> Result<S::Ok, S::Error> {
    let mut shown = undo.clone();
    if let Undo::OnHost { input, .. } = &mut shown {
        input.clear();
    }
    shown.serialize(serializer)
}

/// Who left something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftBy {
    /// The process.
    pub pid: u32,
    /// When it announced the change, UTC.
    pub time: String,
    /// The journal that tells, or its copy on a DUT.
    pub journal: PathBuf,
    /// The journal's copy on a DUT, where both were found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<PathBuf>,
}

/// What became of something that was left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum LeftoverState {
    /// It is still there.
    Left,
    /// It is undone.
    PutBack,
    /// It could not be undone.
    Failed {
        /// Why.
        why: String,
    },
    /// It could not be undone, and is not to be tried again.
    Forgotten {
        /// Why.
        why: String,
    },
}

impl Leftover {
    /// What was changed, and what takes it back, for a reader. What does so on a host may be a script.
    fn in_words(&self) -> (&str, String) {
        let Undo::OnHost { at, .. } = &self.undo else {
            return (&self.what, self.undo.to_string());
        };
        // A value that was kept stands behind what had it.
        let kept = self.what.strip_suffix(')');
        match kept.and_then(|what| what.split_once(" (")) {
            Some((what, value)) => (what, format!("set it back to {value} on host {}", at.host)),
            None => (&self.what, format!("take it back on host {}", at.host)),
        }
    }

    /// Whether both are the same change.
    fn is(&self, other: &Self) -> bool {
        let announced = |leftover: &Self| {
            let by = leftover.left_by.as_ref();
            by.map(|by| (by.pid, by.time.clone(), leftover.what.clone()))
        };
        announced(self) == announced(other)
    }
}

impl std::fmt::Display for Leftover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (what, undo) = self.in_words();
        write!(f, "{what}")?;
        match &self.left_by {
            Some(LeftBy { pid, time, .. }) => {
                write!(f, ", left by process {pid} at {time}")?;
            }
            None => f.write_str(", left by a run that is gone")?,
        }
        match &self.state {
            LeftoverState::Left => {
                write!(f, ": to {undo}")?;
                let places = self.left_by.iter();
                let places = places.flat_map(|by| [Some(&by.journal), by.copy.as_ref()]);
                for (number, place) in places.flatten().enumerate() {
                    let lead = if number == 0 { "; found in" } else { " and in" };
                    write!(f, "{lead} {}", place.display())?;
                }
                Ok(())
            }
            LeftoverState::PutBack => write!(f, ": put back ({undo})"),
            LeftoverState::Failed { why } => write!(f, ": could not {undo}: {why}"),
            LeftoverState::Forgotten { why } => write!(f, ": forgotten; could not {undo}: {why}"),
        }
    }
}

/// What to do about changes that cannot be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// Keep them in the journal.
    Keep,
    /// Strike them out; the user has seen to them.
    Forget,
}

/// Whose leftovers are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose<'a> {
    /// All there are.
    Everybody,
    /// Those of this machine.
    ThisMachine,
    /// Those of a host.
    Host(&'a str),
}

impl Whose<'_> {
    fn holds(self, journal: &Path) -> bool {
        let name = journal.file_stem().unwrap_or_default().to_string_lossy();
        match self {
            Self::Everybody => true,
            Self::ThisMachine => !name.starts_with(HOST_JOURNAL),
            Self::Host(host) => name == host_journal(host) || name == boot_journal(host),
        }
    }

    fn holds_this_machine(self) -> bool {
        !matches!(self, Self::Host(_))
    }
}

/// What runs that are gone have left, by the journals of a folder and by the names of namespaces;
/// looks only.
///
/// # Errors
/// When a journal cannot be read.
pub fn leftovers(directory: &Path) -> Result<Vec<Leftover>, LabError> {
    leftovers_of(directory, Whose::Everybody)
}

fn leftovers_of(directory: &Path, whose: Whose<'_>) -> Result<Vec<Leftover>, LabError> {
    let mut leftovers = journalled(directory, whose)?;
    if !whose.holds_this_machine() {
        return Ok(leftovers);
    }
    for name in fwdlab_sys::leftover_namespaces()? {
        if !leftovers.iter().any(|leftover| removes(leftover, &name)) {
            leftovers.push(unjournalled(name, LeftoverState::Left));
        }
    }
    Ok(leftovers)
}

/// The same by the journals alone.
fn journalled(directory: &Path, whose: Whose<'_>) -> Result<Vec<Leftover>, LabError> {
    let mut leftovers = Vec::new();
    let journals = journals(directory)?.into_iter();
    for journal in journals.filter(|journal| whose.holds(journal)) {
        for change in left_changes(&journal)? {
            leftovers.push(leftover(&journal, change, LeftoverState::Left));
        }
    }
    Ok(leftovers)
}

/// Puts back what runs that are gone have left, the latest change of each first, and says what it did.
/// What a living run has changed is left alone.
///
/// # Errors
/// When a journal cannot be read or written; what cannot be undone is no error but stays in its journal.
pub fn restore(
    directory: &Path,
    whose: Whose<'_>,
    on_failure: OnFailure,
) -> Result<Vec<Leftover>, LabError> {
    let mut leftovers = Vec::new();
    let journals = journals(directory)?.into_iter();
    for journal in journals.filter(|journal| whose.holds(journal)) {
        let mut turn = Turn::wait(&journal)?;
        let mut closed = Vec::new();
        let mut host = None;
        let mut keeps_copy = false;
        let mut away: Option<LeftoverState> = None;
        let left = turn.left_changes()?;
        let marks = marks_of_commands(&left);
        for change in left {
            if change.is_of_copy() && keeps_copy {
                continue;
            }
            let mut undone = || undone(&mut host, &marks, &change.undo);
            // A host that is away is not tried again for each change.
            let state = match &away {
                Some(state) => state.clone(),
                None => match undone() {
                    Ok(()) => LeftoverState::PutBack,
                    Err(error) => {
                        let state = failure(&error, on_failure);
                        if error.is_of_a_connection() {
                            away = Some(state.clone());
                        }
                        state
                    }
                },
            };
            if matches!(state, LeftoverState::Failed { .. }) {
                // It has to outlive what it tells of.
                keeps_copy = true;
            } else {
                closed.push(change.id.clone());
            }
            leftovers.push(leftover(&journal, change, state));
        }
        turn.close(closed)?;
    }
    if !whose.holds_this_machine() {
        return Ok(leftovers);
    }
    // A namespace's name says whose it is, so that it is found even where its journal was lost.
    for name in fwdlab_sys::leftover_namespaces()? {
        let state = match fwdlab_sys::remove_namespace(&name) {
            Ok(()) => LeftoverState::PutBack,
            Err(error) => LeftoverState::Failed {
                why: error.to_string(),
            },
        };
        if !leftovers.iter().any(|leftover| removes(leftover, &name)) {
            leftovers.push(unjournalled(name, state));
        }
    }
    Ok(leftovers)
}

/// What runs of this machine have left on a lab's DUT by their journals, and runs of any controller by the copies of theirs
/// there; looks only.
///
/// # Errors
/// Those of the connection, and where a journal cannot be read.
pub fn leftovers_on_host(
    directory: &Path,
    hosts: &Hosts,
    system: System,
) -> Result<Vec<Leftover>, LabError> {
    let connection = Connection::open(Destination::of_dut(hosts))?;
    let (own, boot) = (controller(directory), boot()?);
    let copies = copies(&connection, system)?.into_iter();
    // What a living run of this machine's has changed is not left.
    let left = copies
        .filter(|copy| copy.controller != own || !copy.open[0].id.is_of_a_living_process(&boot));
    let copied = left.flat_map(|copy| {
        let path = copy.path;
        let changes = copy.open.into_iter().rev();
        changes.map(move |change| leftover(path.as_ref(), change, LeftoverState::Left))
    });
    let mut leftovers = journalled(directory, Whose::Host(&hosts.dut.host))?;
    for copied in copied {
        match leftovers.iter_mut().find(|leftover| leftover.is(&copied)) {
            Some(Leftover {
                left_by: Some(by), ..
            }) => by.copy = copied.left_by.map(|by| by.journal),
            _ => leftovers.push(copied),
        }
    }
    Ok(leftovers)
}

/// What the doctor says of changes that killed runs have left where a lab measures; none where there are none. A DUT that is
/// not reached is known by the journals of this machine alone.
///
/// # Errors
/// Those of the connection to a DUT that is reached, and where a journal cannot be read.
pub(crate) fn left_finding(
    directory: &Path,
    lab: &Lab,
    is_reached: bool,
) -> Result<Option<Finding>, LabError> {
    const CHECK: &str = "undo journal";
    let (check, leftovers, remedy) = match (lab.kind, &lab.hosts) {
        (LabKind::Ssh(system), Some(hosts)) => {
            let host = &hosts.dut.host;
            let leftovers = if is_reached {
                leftovers_on_host(directory, hosts, system)?
            } else {
                leftovers_of(directory, Whose::Host(host))?
            };
            let remedy = "see that no run of another controller is at work there; then `fwdlab restore LAB` puts it back";
            (format!("{host}: {CHECK}"), leftovers, remedy)
        }
        _ => (
            CHECK.to_owned(),
            leftovers_of(directory, Whose::ThisMachine)?,
            "`fwdlab restore` puts it back, and so does the next run",
        ),
    };
    Ok(summary(&leftovers).map(|seen| Finding::warning(check, seen, remedy)))
}

/// How many changes were left, and the latest of them that is more than the copy of a journal.
fn summary(leftovers: &[Leftover]) -> Option<String> {
    let latest = leftovers.iter().find(|leftover| leftover.what != COPY);
    let (what, _) = latest.or(leftovers.first())?.in_words();
    Some(match leftovers.len() {
        1 => format!("a run has left a change: {what}"),
        number => format!("runs have left {number} changes, the latest: {what}"),
    })
}

/// Puts back what runs have left on a lab's DUT: those of this machine by their journals, then those of any controller by
/// the copies of their journals there. Whether a run of another controller still lives cannot be seen from here.
///
/// # Errors
/// Those of the connection and of [`restore`]; `Host` where a run of this machine's is at work there.
pub fn restore_on_host(
    directory: &Path,
    hosts: &Hosts,
    system: System,
    on_failure: OnFailure,
) -> Result<Vec<Leftover>, LabError> {
    let host = &hosts.dut.host;
    let mut leftovers = restore(directory, Whose::Host(host), on_failure)?;
    refuse_living(directory, host)?;
    let connection = Connection::open(Destination::of_dut(hosts))?;
    let (own, boot) = (controller(directory), boot()?);
    for copy in copies(&connection, system)? {
        if copy.controller == own {
            refuse_living_of(&copy, host, &boot)?;
        }
        leftovers.extend(restore_copy(&connection, copy, on_failure)?);
    }
    Ok(leftovers)
}

/// Puts back what this controller has left on a DUT and does not know of any more, before anything is measured.
///
/// # Errors
/// `Host` where a run is at work there, or another controller has something open; `NotRestored`.
pub(crate) fn restore_own_copies(
    connection: &Connection,
    directory: &Path,
    system: System,
) -> Result<Vec<Leftover>, LabError> {
    let (own, boot) = (controller(directory), boot()?);
    let mut leftovers = Vec::new();
    for copy in copies(connection, system)? {
        if copy.controller != own {
            let changes = copy.open.iter();
            let mut changes = changes.filter(|change| !change.is_of_copy());
            let first = changes.next().unwrap_or(&copy.open[0]);
            return Err(connection.wrong(format!(
                "a run of controller {} has changes open there, the first of {}: {}; it may be measuring now: wait until it \
                 has ended. If it was killed, `fwdlab restore` puts them back on that controller, and `fwdlab restore LAB` \
                 from here if that controller is gone",
                copy.controller, first.time, first.what
            )));
        }
        refuse_living_of(&copy, connection.host(), &boot)?;
        leftovers.extend(restore_copy(connection, copy, OnFailure::Keep)?);
    }
    refuse_failures(leftovers)
}

/// Fails where a run of this machine's is at work on a host, as its journals tell: it puts back by itself what it has
/// changed, and no copy may tell of it.
///
/// # Errors
/// `Host`, and where a journal cannot be read.
pub(crate) fn refuse_living(directory: &Path, host: &str) -> Result<(), LabError> {
    let mut journals = journals(directory)?.into_iter();
    let living = journals.find_map(|journal| {
        let is_of_host = Whose::Host(host).holds(&journal);
        is_of_host.then(|| living_process(&journal).transpose())?
    });
    match living {
        Some(pid) => Err(at_work(host, pid?)),
        None => Ok(()),
    }
}

/// The same as the copy of a journal tells.
fn refuse_living_of(copy: &FoundCopy, host: &str, boot: &str) -> Result<(), LabError> {
    let first = &copy.open[0];
    if first.id.is_of_a_living_process(boot) {
        return Err(at_work(host, first.id.pid));
    }
    Ok(())
}

fn at_work(host: &str, pid: u32) -> LabError {
    LabError::Host {
        host: host.to_owned(),
        why: format!("a run of process {pid} is at work there; wait until it has ended"),
    }
}

/// Carries out what a copy says, the latest change first; the last of them is that there is the copy.
fn restore_copy(
    connection: &Connection,
    copy: FoundCopy,
    on_failure: OnFailure,
) -> Result<Vec<Leftover>, LabError> {
    let mut leftovers: Vec<Leftover> = Vec::new();
    let mut marks = marks_of_commands(&copy.open);
    for mut change in copy.open.iter().rev().cloned() {
        // It has to outlive what it tells of.
        if change.is_of_copy() && leftovers.iter().any(has_failed) {
            continue;
        }
        // The controller that wrote it may know the host by another name.
        change.undo = change.undo.at(connection.destination());
        let ended = connection.end_commands(&marks);
        let state = match ended.and_then(|()| {
            marks.clear();
            connection.carry_out(&change.undo)
        }) {
            Ok(()) => LeftoverState::PutBack,
            Err(error) => failure(&error, on_failure),
        };
        leftovers.push(leftover(copy.path.as_ref(), change, state));
    }
    Ok(leftovers)
}

/// Takes a change back: on this machine, or over the connection to its host, which is opened for the first such change of
/// a journal. What the processes that are gone have left running there, as their marks tell, would go on changing it, and is
/// ended first.
fn undone(
    host: &mut Option<Connection>,
    marks: &BTreeSet<String>,
    undo: &Undo,
) -> Result<(), LabError> {
    let Some(destination) = undo.destination() else {
        return ThisMachine.carry_out(undo);
    };
    let connection = match host {
        Some(connection) => connection,
        none => {
            let connection = Connection::open(destination.clone())?;
            connection.end_commands(marks)?;
            none.insert(connection)
        }
    };
    connection.carry_out(undo)
}

/// Puts back all that runs that are gone have left, before anything is measured.
///
/// # Errors
/// Those of [`restore`], and `NotRestored` where something cannot be undone.
pub(crate) fn restore_all(directory: &Path, whose: Whose<'_>) -> Result<Vec<Leftover>, LabError> {
    refuse_failures(restore(directory, whose, OnFailure::Keep)?)
}

fn has_failed(leftover: &Leftover) -> bool {
    matches!(leftover.state, LeftoverState::Failed { .. })
}

fn refuse_failures(leftovers: Vec<Leftover>) -> Result<Vec<Leftover>, LabError> {
    match leftovers.iter().find(|leftover| has_failed(leftover)) {
        None => Ok(leftovers),
        Some(leftover) => Err(LabError::NotRestored {
            leftover: leftover.to_string(),
        }),
    }
}

fn failure(error: &LabError, on_failure: OnFailure) -> LeftoverState {
    let why = error.to_string();
    match on_failure {
        OnFailure::Keep if error.is_of_a_connection() => LeftoverState::Failed {
            why: why + "; it is put back when the host can be reached again",
        },
        OnFailure::Keep => LeftoverState::Failed { why },
        OnFailure::Forget => LeftoverState::Forgotten { why },
    }
}

fn leftover(journal: &Path, change: Change, state: LeftoverState) -> Leftover {
    Leftover {
        what: change.what,
        undo: change.undo,
        left_by: Some(LeftBy {
            pid: change.id.pid,
            time: change.time,
            journal: journal.to_owned(),
            copy: None,
        }),
        state,
    }
}

fn unjournalled(name: String, state: LeftoverState) -> Leftover {
    Leftover {
        what: format!("network namespace {name}"),
        undo: Undo::RemoveNamespace { name },
        left_by: None,
        state,
    }
}

fn removes(leftover: &Leftover, namespace: &str) -> bool {
    matches!(&leftover.undo, Undo::RemoveNamespace { name } if name == namespace)
}

/// The journals of a folder, sorted; none where there is no such folder.
fn journals(directory: &Path) -> Result<Vec<PathBuf>, LabError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed("listing", directory)(error)),
    };
    let mut journals = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()
        .map_err(failed("listing", directory))?;
    journals.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    journals.sort();
    Ok(journals)
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::journal::Journal;

    #[test]
    fn a_run_at_work_is_found_by_its_journal_alone() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |host| {
            let refused = refuse_living(folder.path(), host);
            refused.err().map(|error| error.to_string())
        };
        assert_eq!(refused("router"), None);
        let open =
            |name: String| Journal::open(folder.path(), &name, Rc::new(ThisMachine)).unwrap();
        for name in [host_journal, boot_journal] {
            let mut journal = open(name("router"));
            let undo = Undo::RemoveNamespace {
                name: "fwdlab-1-2-never-there".to_owned(),
            };
            journal.announce("a route".to_owned(), undo).unwrap();
            let why = format!(
                "host router: a run of process {} is at work there; wait until it has ended",
                std::process::id()
            );
            assert_eq!(refused("router"), Some(why));
            assert_eq!(refused("other"), None);
            journal.undo_all().unwrap();
            assert_eq!(refused("router"), None);
        }
    }

    #[test]
    fn the_doctor_names_what_a_killed_run_left() {
        let folder = tempfile::tempdir().unwrap();
        let found = || summary(&leftovers_of(folder.path(), Whose::Host("router")).unwrap());
        assert_eq!(found(), None);
        let name = host_journal("router");
        let mut journal = Journal::open(folder.path(), &name, Rc::new(ThisMachine)).unwrap();
        for what in [COPY, "a route"] {
            let undo = Undo::RemoveNamespace {
                name: "fwdlab-1-2-never-there".to_owned(),
            };
            journal.announce(what.to_owned(), undo).unwrap();
        }
        // A living run has left nothing.
        assert_eq!(found(), None);
        let path = folder.path().join(format!("{name}.jsonl"));
        let of_another_boot = fs::read_to_string(&path)
            .unwrap()
            .replace(&boot().unwrap(), "another");
        fs::write(&path, of_another_boot).unwrap();
        let of_two = "runs have left 2 changes, the latest: a route";
        assert_eq!(found().as_deref(), Some(of_two));
    }

    #[test]
    fn what_is_left_on_a_host_is_described_in_words() {
        let script = ["sh", "-c", "[ ! -e \"$0\" ] || tee \"$0\"", "x"];
        let undo = Undo::OnHost {
            at: Destination {
                host: "router".to_owned(),
                config: None,
            },
            arguments: script.map(str::to_owned).into(),
            input: "0".to_owned(),
        };
        let mut leftover = Leftover {
            what: "sysctl net.ipv4.ip_forward (0)".to_owned(),
            undo,
            left_by: Some(LeftBy {
                pid: 7,
                time: "now".to_owned(),
                journal: "/state/host.jsonl".into(),
                copy: Some("/var/copy".into()),
            }),
            state: LeftoverState::Left,
        };
        assert_eq!(
            leftover.to_string(),
            "sysctl net.ipv4.ip_forward, left by process 7 at now: to set it back to 0 on host router; found in \
             /state/host.jsonl and in /var/copy"
        );
        leftover.what = "route to 198.18.0.0/15".to_owned();
        leftover.state = LeftoverState::PutBack;
        assert_eq!(
            leftover.to_string(),
            "route to 198.18.0.0/15, left by process 7 at now: put back (take it back on host router)"
        );
    }
}
