//! Puts back what runs that are gone have left.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fwdlab_model::{Hosts, Lab, LabKind};

use crate::LabError;
use crate::doctor::Finding;
use crate::hosts::{Connection, copies, leave_undone, note_undone, refuse_others};
use crate::journal::{
    CarryOut, Change, ChangeId, Destination, FoundCopy, HOST_JOURNAL, Turn, Undo, boot,
    boot_journal, controller, failed, host_journal, left_changes, living_process,
    marks_of_commands,
};
use crate::leftover::{Leftover, LeftoverState, findings_of};
use crate::netns::ThisMachine;

/// Takes what was looked for or put back, also where an error follows.
pub type Tell<'a> = dyn FnMut(&[Leftover]) + 'a;

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
    /// Those of some hosts.
    Hosts(&'a [&'a str]),
}

impl Whose<'_> {
    fn holds(self, journal: &Path) -> bool {
        let name = journal.file_stem().unwrap_or_default().to_string_lossy();
        match self {
            Self::Everybody => true,
            Self::ThisMachine => !name.starts_with(HOST_JOURNAL),
            Self::Hosts(hosts) => hosts
                .iter()
                .any(|host| name == host_journal(host) || name == boot_journal(host)),
        }
    }

    fn holds_this_machine(self) -> bool {
        !matches!(self, Self::Hosts(_))
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
    let mut leftovers = journalled(directory, whose, &[])?;
    if !whose.holds_this_machine() {
        return Ok(leftovers);
    }
    for name in fwdlab_sys::leftover_namespaces()? {
        if !leftovers
            .iter()
            .any(|leftover| leftover.is_namespace(&name))
        {
            leftovers.push(Leftover::unjournalled(name, LeftoverState::Left));
        }
    }
    Ok(leftovers)
}

/// The same by the journals alone, and what others have put back by the copies on their host.
fn journalled(
    directory: &Path,
    whose: Whose<'_>,
    copies: &[FoundCopy],
) -> Result<Vec<Leftover>, LabError> {
    let mut leftovers = Vec::new();
    for journal in journals_of(directory, whose)? {
        let left = left_changes(&journal)?;
        let put_back = put_back_by_another(&left, copies);
        for change in left {
            let state = if put_back.contains(&change.id) {
                LeftoverState::PutBackByAnother
            } else {
                LeftoverState::Left
            };
            leftovers.push(Leftover::journalled(&journal, change, state));
        }
    }
    Ok(leftovers)
}

/// Those of a journal's changes that are undone as its copy says. Numbers of changes are those of a journal.
fn put_back_by_another(left: &[Change], copies: &[FoundCopy]) -> Vec<ChangeId> {
    let is_of_journal =
        |copy: &&FoundCopy| left.iter().any(|change| change.is_of_copy_at(&copy.path));
    let of_journal = copies.iter().filter(is_of_journal);
    of_journal.flat_map(|copy| copy.undone.clone()).collect()
}

/// Puts back what runs that are gone have left, the latest change of each first, and tells what it did of each journal.
/// What a living run has changed is left alone. On a host where another controller has changes open nothing is put back,
/// and nothing that another one has put back already.
///
/// # Errors
/// When a journal cannot be read or written; what cannot be undone is no error but stays in its journal.
pub fn restore(
    directory: &Path,
    whose: Whose<'_>,
    on_failure: OnFailure,
    tell: &mut Tell<'_>,
) -> Result<(), LabError> {
    let own = controller(directory);
    let mut journalled = Vec::new();
    for journal in journals_of(directory, whose)? {
        let leftovers = restore_journal(&journal, &own, on_failure)?;
        tell(&leftovers);
        journalled.extend(leftovers);
    }
    if !whose.holds_this_machine() {
        return Ok(());
    }
    // A namespace's name says whose it is, so that it is found even where its journal was lost.
    for name in fwdlab_sys::leftover_namespaces()? {
        let state = match fwdlab_sys::remove_namespace(&name) {
            Ok(()) => LeftoverState::PutBack,
            Err(error) => LeftoverState::Failed {
                why: error.to_string(),
            },
        };
        if !journalled
            .iter()
            .any(|leftover| leftover.is_namespace(&name))
        {
            tell(&[Leftover::unjournalled(name, state)]);
        }
    }
    Ok(())
}

/// The same of one journal.
fn restore_journal(
    journal: &Path,
    own: &str,
    on_failure: OnFailure,
) -> Result<Vec<Leftover>, LabError> {
    let mut turn = Turn::wait(journal)?;
    let left = turn.left_changes()?;
    let mut host = None;
    // A host that is away is not tried again for each change.
    let mut away: Option<LeftoverState> = None;
    let mut destinations = left.iter().filter_map(|change| change.undo.destination());
    if let Some(destination) = destinations.next() {
        match LeftHost::open(destination.clone(), &left, own) {
            Ok(reached) => host = Some(reached),
            Err(error) => away = Some(failure(&error, on_failure)),
        }
    }
    let mut leftovers: Vec<Leftover> = Vec::new();
    let mut closed = Vec::new();
    for change in left {
        // It has to outlive what it tells of.
        if change.is_of_copy() && leftovers.iter().any(Leftover::has_failed) {
            continue;
        }
        let is_put_back = |host: &LeftHost| host.put_back.contains(&change.id);
        let state = match &away {
            Some(state) => state.clone(),
            None if host.as_ref().is_some_and(is_put_back) => LeftoverState::PutBackByAnother,
            None => match undone(host.as_ref(), &change.undo) {
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
        if !matches!(state, LeftoverState::Failed { .. }) {
            closed.push(change.id.clone());
        }
        leftovers.push(Leftover::journalled(journal, change, state));
    }
    turn.close(closed)?;
    Ok(leftovers)
}

/// A host on which runs have left changes.
struct LeftHost {
    connection: Connection,
    /// Those of the changes that another controller has undone.
    put_back: Vec<ChangeId>,
}

impl LeftHost {
    /// Logs in, and ends what the processes that are gone have left running there, as their marks tell: it would go on
    /// changing the host.
    ///
    /// # Errors
    /// `Host` where something is to be undone while a run of another controller has changes open there; those of the
    /// connection.
    fn open(destination: Destination, left: &[Change], own: &str) -> Result<Self, LabError> {
        let connection = Connection::open(destination)?;
        let copies = copies(&connection)?;
        let put_back = put_back_by_another(left, &copies);
        let is_open = |change: &Change| !change.is_of_copy() && !put_back.contains(&change.id);
        if left.iter().any(is_open) {
            refuse_others(&connection, &copies, own)?;
        }
        connection.end_commands(&marks_of_commands(left))?;
        Ok(Self {
            connection,
            put_back,
        })
    }
}

/// Takes a change back: on this machine, or over the connection to its host.
fn undone(host: Option<&LeftHost>, undo: &Undo) -> Result<(), LabError> {
    match host {
        Some(host) if undo.destination().is_some() => host.connection.carry_out(undo),
        _ => ThisMachine.carry_out(undo),
    }
}

/// What runs of this machine have left on a lab's hosts by their journals, and runs of any controller on its DUT by the copies
/// of theirs there; looks only. Where the DUT is away, the journals are told all the same.
///
/// # Errors
/// Those of the connection, and where a journal cannot be read.
pub fn leftovers_on_hosts(
    directory: &Path,
    hosts: &Hosts,
    tell: &mut Tell<'_>,
) -> Result<(), LabError> {
    let connection = match Connection::open(Destination::of_dut(hosts)) {
        Ok(connection) => connection,
        Err(error) => {
            tell(&leftovers_of(directory, Whose::Hosts(&hosts.names()))?);
            return Err(error);
        }
    };
    let (own, boot) = (controller(directory), boot()?);
    let copies = copies(&connection)?;
    let mut leftovers = journalled(directory, Whose::Hosts(&hosts.names()), &copies)?;
    // What a living run of this machine's has changed is not left.
    let left = copies.into_iter().filter(|copy| {
        let mut open = copy.open.iter();
        copy.controller != own || !open.any(|change| change.id.is_of_a_living_process(&boot))
    });
    let copied = left.flat_map(|copy| {
        let (path, owner) = (PathBuf::from(&copy.path), copy.owner());
        let owner = (copy.controller != own).then_some(owner);
        let changes = copy.open.into_iter().rev();
        changes.map(move |change| {
            let mut copied = Leftover::journalled(&path, change, LeftoverState::Left);
            if let Some(by) = &mut copied.left_by {
                by.controller.clone_from(&owner);
            }
            copied
        })
    });
    for copied in copied {
        match leftovers.iter_mut().find(|leftover| leftover.is(&copied)) {
            Some(Leftover {
                left_by: Some(by), ..
            }) => by.copy = copied.left_by.map(|by| by.journal),
            _ => leftovers.push(copied),
        }
    }
    tell(&leftovers);
    Ok(())
}

/// What the doctor says of changes that killed runs have left where a lab measures. A DUT that is not reached is known by the
/// journals of this machine alone.
///
/// # Errors
/// Those of the connection to a DUT that is reached, and where a journal cannot be read.
pub(crate) fn left_findings(
    directory: &Path,
    lab: &Lab,
    is_reached: bool,
) -> Result<Vec<Finding>, LabError> {
    let leftovers = match (lab.kind, &lab.hosts) {
        (LabKind::Ssh(_), Some(hosts)) if is_reached => {
            let mut found = Vec::new();
            leftovers_on_hosts(directory, hosts, &mut |some| found.extend_from_slice(some))?;
            found
        }
        (LabKind::Ssh(_), Some(hosts)) => leftovers_of(directory, Whose::Hosts(&hosts.names()))?,
        _ => leftovers_of(directory, Whose::ThisMachine)?,
    };
    Ok(findings_of(&leftovers, directory))
}

/// Puts back what runs have left on a lab's hosts: on its DUT those of other controllers by the copies of their journals there,
/// then those of this machine on all hosts by their journals, or by a copy that is all that is left of one. Whether a run of
/// another controller still lives cannot be seen from here.
///
/// # Errors
/// Those of the connection and of [`restore`]; `Host` where a run of this machine's is at work there.
pub fn restore_on_hosts(
    directory: &Path,
    hosts: &Hosts,
    on_failure: OnFailure,
    tell: &mut Tell<'_>,
) -> Result<(), LabError> {
    let own = controller(directory);
    let names = hosts.names();
    let at_rest = refuse_living(directory, &hosts.dut.host);
    let connection = Connection::open(Destination::of_dut(hosts));
    if let (Ok(()), Ok(connection)) = (&at_rest, &connection) {
        let others = copies(connection)?.into_iter();
        for copy in others.filter(|copy| copy.controller != own && !copy.open.is_empty()) {
            tell(&restore_copy(connection, copy, &own, on_failure)?);
        }
    }
    // A DUT that is away, or in use, has no other host wait.
    restore(directory, Whose::Hosts(&names), on_failure, tell)?;
    at_rest?;
    let connection = connection?;
    let (copies, boot) = (copies(&connection)?.into_iter(), boot()?);
    for copy in copies.filter(|copy| copy.controller == own && !copy.open.is_empty()) {
        refuse_living_of(&copy, &hosts.dut.host, &boot)?;
        tell(&restore_copy(&connection, copy, &own, on_failure)?);
    }
    Ok(())
}

/// Fails where a run of another controller has changes open on a host, before anything there is put back.
///
/// # Errors
/// `Host`, and those of the connection.
pub(crate) fn refuse_other_controllers(
    connection: &Connection,
    directory: &Path,
) -> Result<(), LabError> {
    refuse_others(connection, &copies(connection)?, &controller(directory))
}

/// Puts back what this controller has left on a DUT and does not know of any more, before anything is measured.
///
/// # Errors
/// `Host` where a run is at work there, or another controller has something open; `NotRestored`.
pub(crate) fn restore_own_copies(
    connection: &Connection,
    directory: &Path,
    tell: &mut Tell<'_>,
) -> Result<(), LabError> {
    let (own, boot) = (controller(directory), boot()?);
    let copies = copies(connection)?;
    refuse_others(connection, &copies, &own)?;
    let copies = copies.into_iter();
    for copy in copies.filter(|copy| copy.controller == own && !copy.open.is_empty()) {
        refuse_living_of(&copy, connection.host(), &boot)?;
        let leftovers = restore_copy(connection, copy, &own, OnFailure::Keep)?;
        tell_done(&leftovers, tell);
        refuse_failures(&leftovers)?;
    }
    Ok(())
}

/// Fails where a run of this machine's is at work on a host, as its journals tell: it puts back by itself what it has
/// changed, and no copy may tell of it.
///
/// # Errors
/// `Host`, and where a journal cannot be read.
pub(crate) fn refuse_living(directory: &Path, host: &str) -> Result<(), LabError> {
    let mut journals = journals_of(directory, Whose::Hosts(&[host]))?.into_iter();
    let living = journals.find_map(|journal| living_process(&journal).transpose());
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

/// Carries out what a copy says, the latest change first; the last of them is that there is the copy. What of another
/// controller's is put back stays written there, for that one to read.
fn restore_copy(
    connection: &Connection,
    copy: FoundCopy,
    own: &str,
    on_failure: OnFailure,
) -> Result<Vec<Leftover>, LabError> {
    let mut leftovers: Vec<Leftover> = Vec::new();
    let mut marks = marks_of_commands(&copy.open);
    let mut closed: Vec<ChangeId> = Vec::new();
    for mut change in copy.open.iter().rev().cloned() {
        // It has to outlive what it tells of.
        if change.is_of_copy() && leftovers.iter().any(Leftover::has_failed) {
            continue;
        }
        // The controller that wrote it may know the host by another name.
        change.undo = change.undo.at(connection.destination());
        let ended = connection.end_commands(&marks);
        let undone = ended.and_then(|()| {
            marks.clear();
            if change.is_of_copy() && copy.controller != own {
                let ids = copy.undone.iter().chain(&closed);
                leave_undone(connection, &copy, ids.cloned())
            } else {
                connection.carry_out(&change.undo)
            }
        });
        let state = match undone {
            Ok(()) => LeftoverState::PutBack,
            Err(error) => failure(&error, on_failure),
        };
        if !matches!(state, LeftoverState::Failed { .. }) && !change.is_of_copy() {
            closed.push(change.id.clone());
        }
        leftovers.push(Leftover::journalled(copy.path.as_ref(), change, state));
    }
    if leftovers.iter().any(Leftover::has_failed) && !closed.is_empty() {
        // Where that cannot be written, it is undone twice, as after a kill.
        let _ = note_undone(connection, &copy, closed);
    }
    Ok(leftovers)
}

/// Puts back all that runs that are gone have left, before anything is measured.
///
/// # Errors
/// Those of [`restore`], and `NotRestored` where something cannot be undone.
pub(crate) fn restore_all(
    directory: &Path,
    whose: Whose<'_>,
    tell: &mut Tell<'_>,
) -> Result<(), LabError> {
    let mut leftovers = Vec::new();
    let restored = restore(directory, whose, OnFailure::Keep, &mut |of_journal| {
        leftovers.extend_from_slice(of_journal);
    });
    tell_done(&leftovers, tell);
    restored?;
    refuse_failures(&leftovers)
}

/// Tells all but what could not be put back, which an error names.
fn tell_done(leftovers: &[Leftover], tell: &mut Tell<'_>) {
    let done = leftovers.iter().filter(|leftover| !leftover.has_failed());
    let done: Vec<Leftover> = done.cloned().collect();
    if !done.is_empty() {
        tell(&done);
    }
}

fn refuse_failures(leftovers: &[Leftover]) -> Result<(), LabError> {
    match leftovers.iter().find(|leftover| leftover.has_failed()) {
        None => Ok(()),
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

/// Those journals of a folder that are somebody's, sorted.
fn journals_of(directory: &Path, whose: Whose<'_>) -> Result<Vec<PathBuf>, LabError> {
    let mut journals = journals(directory)?;
    journals.retain(|journal| whose.holds(journal));
    Ok(journals)
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
    use crate::journal::{COPY, Journal, found, lines_of_undone};

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
    fn the_doctor_names_what_a_killed_run_left_on_any_host_of_a_lab() {
        let folder = tempfile::tempdir().unwrap();
        let found = |hosts: &[&str]| {
            let leftovers = leftovers_of(folder.path(), Whose::Hosts(hosts)).unwrap();
            let findings = findings_of(&leftovers, folder.path());
            findings
                .into_iter()
                .map(|finding| finding.seen)
                .collect::<Vec<_>>()
        };
        journals_with_a_change(folder.path(), &["tester"]);
        assert_eq!(found(&["router"]), [""; 0]);
        assert_eq!(
            found(&["router", "tester"]),
            ["a run has left a change: a port"]
        );
        // A living run has left nothing.
        let name = host_journal("router");
        let mut journal = Journal::open(folder.path(), &name, Rc::new(ThisMachine)).unwrap();
        let undo = Undo::RemoveNamespace {
            name: "fwdlab-1-2-never-there".to_owned(),
        };
        journal.announce("a route".to_owned(), undo).unwrap();
        assert_eq!(found(&["router"]), [""; 0]);
    }

    /// Journals of hosts in each of which a process that is gone has left a change.
    fn journals_with_a_change(folder: &Path, hosts: &[&str]) -> Vec<PathBuf> {
        let journals = hosts.iter().map(|host| {
            let name = host_journal(host);
            let path = folder.join(format!("{name}.jsonl"));
            let mut journal = Journal::open(folder, &name, Rc::new(ThisMachine)).unwrap();
            let undo = Undo::RemoveNamespace {
                name: "fwdlab-1-2-never-there".to_owned(),
            };
            journal.announce("a port".to_owned(), undo).unwrap();
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, text.replace(&boot().unwrap(), "another")).unwrap();
            path
        });
        journals.collect()
    }

    #[test]
    fn what_is_left_on_a_labs_tester_is_put_back_and_nothing_on_other_hosts() {
        let folder = tempfile::tempdir().unwrap();
        let journals = journals_with_a_change(folder.path(), &["router", "tester", "other"]);
        let mut told = Vec::new();
        let whose = Whose::Hosts(&["router", "tester"]);
        let mut tell = |some: &[Leftover]| told.extend_from_slice(some);
        restore_all(folder.path(), whose, &mut tell).unwrap();
        let put_back = told
            .iter()
            .filter(|leftover| leftover.state == LeftoverState::PutBack);
        assert_eq!(put_back.count(), 2, "{told:?}");
        let left = journals
            .iter()
            .map(|journal| left_changes(journal).unwrap().len());
        assert_eq!(left.collect::<Vec<_>>(), [0, 0, 1]);
    }

    #[test]
    fn what_was_put_back_is_told_though_an_error_follows() {
        let folder = tempfile::tempdir().unwrap();
        let hosts = ["router", "tester"];
        let journals = journals_with_a_change(folder.path(), &hosts);
        fs::write(&journals[1], "no line of a journal\n").unwrap();
        let mut told = Vec::new();
        let mut tell = |some: &[Leftover]| told.extend_from_slice(some);
        let error = restore_all(folder.path(), Whose::Hosts(&hosts), &mut tell).unwrap_err();
        assert!(matches!(error, LabError::JournalDamaged { .. }), "{error}");
        assert_eq!(told.len(), 1, "{told:?}");
    }

    /// A change of this controller's on a host, with the path of its copy where it is that there is one.
    fn change(number: u64, copy: Option<&str>) -> Change {
        let what = if copy.is_some() { COPY } else { "a route" };
        let last = copy.unwrap_or("route");
        let text = format!(
            r#"{{"id":{{"boot":"b","pid":7,"start_time":9,"number":{number}}},"time":"now","what":"{what}","undo":{{"kind":"on-host","host":"router","arguments":["rm","{last}"],"input":""}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn what_another_controller_has_put_back_is_known_by_the_copy_of_the_same_journal() {
        let [route, other] = [change(2, None), change(3, None)];
        let left = [
            route.clone(),
            change(1, Some("/copies/here.1.changes.jsonl")),
        ];
        let undone = lines_of_undone([route.id.clone(), other.id]);
        let copies = |name: &str| found(&format!("= /copies/{name}.jsonl\n{undone}"));
        let put_back = put_back_by_another(&left, &copies("here.1.changes"));
        assert!(put_back.contains(&route.id));
        assert!(!put_back.contains(&left[1].id));
        // Changes of another journal have the same numbers.
        assert_eq!(put_back_by_another(&left, &copies("here.1.reboot")), []);
        assert_eq!(put_back_by_another(&left, &[]), []);
    }
}
