//! The undo journal: what a run changes beyond its own lifetime stands on disk, with what undoes it,
//! before it is changed.
//!
//! One file a DUT, one JSON object a line, only ever appended to while anything in it is open; every
//! line is durable before what it announces happens. Undo steps are data, never shell. Runs that share
//! a file take turns at it, and every line says whose it is.

mod copy;
mod place;
mod turn;
mod undo;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use fwdlab_sys::Process;
use serde::{Deserialize, Serialize};

pub(crate) use self::copy::{FoundCopy, KeepCopy, found, lines_of_undone};
pub use self::place::state_directory;
pub(crate) use self::place::{HOST_JOURNAL, boot_journal, controller, host_journal};
pub(crate) use self::turn::Turn;
pub use self::undo::Undo;
pub(crate) use self::undo::{BootUntil, CarryOut, Destination, NOTHING, Started, Until};

use crate::LabError;
use crate::kernel_file::read;

/// What is changed first on a host: that there is a copy of the journal.
pub(crate) const COPY: &str = "copy of the journal";
/// What a change is called that is put back by ending processes; what started them follows.
pub(crate) const PROCESSES_OF: &str = "processes started by";

/// Which change of which process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChangeId {
    /// The boot, as `/proc/sys/kernel/random/boot_id` names it.
    boot: String,
    pub(crate) pid: u32,
    start_time: u64,
    /// Counts the changes of a process.
    number: u64,
}

impl ChangeId {
    fn process(&self) -> Process {
        Process {
            pid: self.pid,
            start_time: self.start_time,
        }
    }

    /// Whether the process that made the change still lives.
    pub(crate) fn is_of_a_living_process(&self, boot: &str) -> bool {
        self.boot == boot && self.process().is_alive()
    }
}

/// By what commands of a process, in a boot of its machine, are found on hosts.
pub(crate) fn mark_of_commands(boot: &str, process: Process) -> String {
    let Process { pid, start_time } = process;
    format!("fwdlab-{boot}-{pid}-{start_time}")
}

/// The same of the processes that made some changes.
pub(crate) fn marks_of_commands(changes: &[Change]) -> BTreeSet<String> {
    let ids = changes.iter().map(|change| &change.id);
    ids.map(|id| mark_of_commands(&id.boot, id.process()))
        .collect()
}

/// A change that was announced and, as far as the journal knows, not undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Change {
    pub(crate) id: ChangeId,
    /// When it was announced, UTC.
    pub(crate) time: String,
    /// What is changed, for the reader.
    pub(crate) what: String,
    pub(crate) undo: Undo,
    /// Where the change is that there is a copy: the folder of the journal, which says whose run it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) directory: Option<PathBuf>,
}

impl Change {
    /// Whether it is that there is a copy of the journal.
    pub(crate) fn is_of_copy(&self) -> bool {
        self.what == COPY
    }

    /// Whether it is that there is a copy at that path.
    pub(crate) fn is_of_copy_at(&self, path: &str) -> bool {
        let Undo::OnHost { arguments, .. } = &self.undo else {
            return false;
        };
        self.is_of_copy() && arguments.last().is_some_and(|last| last == path)
    }
}

/// A line of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
enum Line {
    /// Is about to be changed.
    Change(Change),
    /// Is undone.
    Undone { id: ChangeId },
}

/// Lines as they stand in a journal.
fn text_of(lines: &[Line]) -> String {
    let texts = lines.iter().map(serde_json::to_string);
    texts
        .map(|text| text.expect("a line is plain data") + "\n")
        .collect()
}

/// The changes that stand open at the end of a journal's text, in the order in which they were made.
///
/// A last line without its end was torn: what it announced never happened.
///
/// # Errors
/// The number of the first line, from 1, that is no line of a journal, and what is wrong with it.
fn open_changes(text: &str) -> Result<Vec<Change>, (usize, String)> {
    let mut open: Vec<Change> = Vec::new();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    for (number, line) in (1..).zip(whole.lines()) {
        match serde_json::from_str(line).map_err(|error| (number, error.to_string()))? {
            Line::Change(change) => open.push(change),
            Line::Undone { id } => open.retain(|change| change.id != id),
        }
    }
    Ok(open)
}

/// One process's access to the journal of a DUT.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    boot: String,
    process: Process,
    /// How many changes this process has announced.
    announced: u64,
    /// Those of them that are not undone, oldest first.
    open: Vec<Change>,
    /// What undoes changes where no DUT is at hand.
    anywhere: Rc<dyn CarryOut>,
    /// What does so with the DUT of the moment.
    dut: Option<Rc<dyn CarryOut>>,
    /// On the DUT, where that is a host.
    copy: Option<Box<dyn KeepCopy>>,
    /// Whether the copy may lack that it is there: the way to it broke when that was written.
    lacks_copy: bool,
}

impl Journal {
    /// Opens the journal of a DUT in a folder, and makes both where they are not. `anywhere` undoes changes where no DUT is
    /// at hand.
    ///
    /// # Errors
    /// When the folder cannot be written to.
    pub(crate) fn open(
        directory: &Path,
        dut: &str,
        anywhere: Rc<dyn CarryOut>,
    ) -> Result<Self, LabError> {
        fs::create_dir_all(directory).map_err(failed("making", directory))?;
        let path = directory.join(format!("{dut}.jsonl"));
        Turn::wait(&path)?;
        let sync = || File::open(directory)?.sync_all();
        sync().map_err(failed("writing", directory))?;
        Ok(Self {
            path,
            boot: boot()?,
            process: Process::this()?,
            announced: 0,
            open: Vec::new(),
            anywhere,
            dut: None,
            copy: None,
            lacks_copy: false,
        })
    }

    /// Keeps a copy of what is open from now on.
    pub(crate) fn keep_copy(&mut self, copy: Box<dyn KeepCopy>) {
        self.copy = Some(copy);
    }

    /// Says what undoes changes until all of them are undone.
    pub(crate) fn enter_dut(&mut self, dut: Rc<dyn CarryOut>) {
        self.dut = Some(dut);
    }

    /// What undoes changes now.
    fn here(&self) -> &dyn CarryOut {
        &**self.dut.as_ref().unwrap_or(&self.anywhere)
    }

    /// Writes down, durably, what is about to be changed and what undoes it.
    pub(crate) fn announce(&mut self, what: String, undo: Undo) -> Result<ChangeId, LabError> {
        let mut ids = self.announce_all([(what, undo)])?;
        Ok(ids.pop().expect("one was announced"))
    }

    /// The same of several changes that are made one after the other: written down all at once, or none of them.
    ///
    /// # Errors
    /// When they cannot be written, here or in the copy: then none of them is open, and none may be made.
    pub(crate) fn announce_all(
        &mut self,
        changes: impl IntoIterator<Item = (String, Undo)>,
    ) -> Result<Vec<ChangeId>, LabError> {
        let changes = changes.into_iter();
        let mut announced: Vec<Change> = changes
            .map(|(what, undo)| self.change(what, undo))
            .collect();
        let ids: Vec<ChangeId> = announced.iter().map(|change| change.id.clone()).collect();
        if let Some(copy) = &self.copy
            && self.open.is_empty()
            && !announced.is_empty()
        {
            let removal = copy.removal();
            let directory = self.path.parent().map(Path::to_owned);
            let change = self.change(COPY.to_owned(), removal);
            announced.insert(
                0,
                Change {
                    directory,
                    ..change
                },
            );
        }
        let mut lines: Vec<Line> = announced.iter().cloned().map(Line::Change).collect();
        Turn::wait(&self.path)?.append(&lines)?;
        if self.lacks_copy {
            let of_copy = self.open.iter().filter(|change| change.is_of_copy());
            lines.splice(..0, of_copy.cloned().map(Line::Change));
        }
        self.open.extend(announced);
        if let Some(copy) = &self.copy
            && let Err(error) = copy.append(&text_of(&lines))
        {
            // That there is a copy stays open: the way to it may have broken behind it.
            self.lacks_copy = true;
            self.open.retain(|change| !ids.contains(&change.id));
            let lines: Vec<Line> = ids.into_iter().map(|id| Line::Undone { id }).collect();
            Turn::wait(&self.path)?.append(&lines)?;
            return Err(error);
        }
        self.lacks_copy = false;
        Ok(ids)
    }

    /// A mark for what the next change starts, which nothing else on this machine has.
    pub(crate) fn mark(&self) -> String {
        let Process { pid, start_time } = self.process;
        format!("fwdlab-{pid}-{start_time}-{}", self.announced + 1)
    }

    /// The next change of this process.
    fn change(&mut self, what: String, undo: Undo) -> Change {
        self.announced += 1;
        Change {
            id: ChangeId {
                boot: self.boot.clone(),
                pid: self.process.pid,
                start_time: self.process.start_time,
                number: self.announced,
            },
            time: jiff::Timestamp::now()
                .strftime("%Y-%m-%dT%H:%M:%SZ")
                .to_string(),
            what,
            undo,
            directory: None,
        }
    }

    /// Whether anything that was announced is not undone, but that there is a copy.
    pub(crate) fn has_open_changes(&self) -> bool {
        self.open.iter().any(|change| !change.is_of_copy())
    }

    /// Undoes one change that was announced, and writes that down.
    ///
    /// # Errors
    /// When it cannot be undone; it then stays open.
    pub(crate) fn undo(&mut self, id: &ChangeId) -> Result<(), LabError> {
        if let Some(place) = self.open.iter().position(|change| &change.id == id) {
            self.here().carry_out(&self.open[place].undo)?;
            let lines = [Line::Undone { id: id.clone() }];
            Turn::wait(&self.path)?.append(&lines)?;
            self.open.remove(place);
            if let Some(copy) = &self.copy {
                copy.append(&text_of(&lines))?;
            }
        }
        Ok(())
    }

    /// Has the latest changes undone at once, as many as can be. Those that could not be undone stay open, and whoever
    /// undoes them one by one learns why.
    fn undo_at_once(&mut self) -> Vec<Line> {
        // The copy has to outlive what it tells of.
        let latest = self.open.iter().rev();
        let latest = latest.take_while(|change| !change.is_of_copy());
        let undos: Vec<&Undo> = latest.map(|change| &change.undo).collect();
        let undone = self.here().carry_out_at_once(&undos);
        let mut done = Vec::new();
        let latest = self.open.split_off(self.open.len() - undone.len());
        for (change, is_undone) in latest.into_iter().zip(undone.into_iter().rev()) {
            if is_undone {
                done.push(Line::Undone { id: change.id });
            } else {
                self.open.push(change);
            }
        }
        done
    }

    /// Undoes all that was announced, the latest change first, and goes on where one cannot be undone, unless the
    /// way into the DUT is gone.
    ///
    /// # Errors
    /// The first of those that could not; they stay open.
    pub(crate) fn undo_all(&mut self) -> Result<(), LabError> {
        let mut first_error = Ok(());
        let mut left = Vec::new();
        let mut done = self.undo_at_once();
        while let Some(change) = self.open.pop() {
            if change.is_of_copy() {
                // The copy has to outlive what it tells of.
                if !left.is_empty() {
                    left.insert(0, change);
                    continue;
                }
                // Without the copy another controller may use the host: whoever comes after this process must not undo
                // all that once more.
                if let Err(error) = self.write_down(&mut done) {
                    self.open.push(change);
                    return Err(error);
                }
            }
            match self.here().carry_out(&change.undo) {
                Ok(()) => done.push(Line::Undone { id: change.id }),
                Err(error) => {
                    let is_way_gone = error.is_of_a_connection();
                    first_error = first_error.and(Err(error));
                    left.insert(0, change);
                    if is_way_gone {
                        break;
                    }
                }
            }
        }
        self.open.append(&mut left);
        self.dut = None;
        self.write_down(&mut done)?;
        first_error
    }

    /// Appends lines to the journal alone, and takes them out of what is to be appended.
    fn write_down(&self, lines: &mut Vec<Line>) -> Result<(), LabError> {
        if !lines.is_empty() {
            Turn::wait(&self.path)?.append(lines)?;
            lines.clear();
        }
        Ok(())
    }
}

/// What a block changes beyond its own lifetime, undone at the latest when the value goes.
pub(crate) struct Changes<'a>(pub(crate) &'a mut Journal);

impl Drop for Changes<'_> {
    fn drop(&mut self) {
        // What cannot be undone now stands in the journal, where the next run finds it.
        let _ = self.0.undo_all();
    }
}

/// What processes that are gone left open in a journal, the latest change first; looks only.
pub(crate) fn left_changes(path: &Path) -> Result<Vec<Change>, LabError> {
    let mut changes = read_open_changes(path)?;
    leave_the_living(&mut changes, &boot()?);
    Ok(changes)
}

/// A living process that has changes open in a journal; looks only.
pub(crate) fn living_process(path: &Path) -> Result<Option<u32>, LabError> {
    let (changes, boot) = (read_open_changes(path)?, boot()?);
    let mut living = changes.iter().map(|change| &change.id);
    let living = living.find(|id| id.is_of_a_living_process(&boot));
    Ok(living.map(|id| id.pid))
}

fn read_open_changes(path: &Path) -> Result<Vec<Change>, LabError> {
    let bytes = fs::read(path).map_err(failed("reading", path))?;
    open_changes(&String::from_utf8_lossy(&bytes)).map_err(damaged(path))
}

fn leave_the_living(changes: &mut Vec<Change>, boot: &str) {
    changes.retain(|change| !change.id.is_of_a_living_process(boot));
    changes.reverse();
}

pub(crate) fn boot() -> Result<String, LabError> {
    Ok(read(Path::new("/proc/sys/kernel/random/boot_id"))?
        .trim()
        .to_owned())
}

pub(crate) fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LabError {
    move |error| LabError::Journal {
        what,
        path: path.to_owned(),
        error,
    }
}

fn damaged(path: &Path) -> impl FnOnce((usize, String)) -> LabError {
    move |(line, what)| LabError::JournalDamaged {
        path: path.to_owned(),
        line,
        what,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use proptest::prelude::*;

    use super::*;

    fn change(number: u64, undo: Undo) -> Change {
        Change {
            id: ChangeId {
                boot: "b".into(),
                pid: 7,
                start_time: 9,
                number,
            },
            time: "2026-11-21T15:00:00Z".into(),
            what: format!("change {number}"),
            undo,
            directory: None,
        }
    }

    pub(super) fn removal(number: u64) -> Change {
        let name = format!("fwdlab-7-9-{number}");
        change(number, Undo::RemoveNamespace { name })
    }

    /// Undoes what is ours.
    #[derive(Debug)]
    struct Ours;

    impl CarryOut for Ours {
        fn carry_out(&self, undo: &Undo) -> Result<(), LabError> {
            match undo {
                Undo::RemoveNamespace { name } if name.starts_with("fwdlab-") => Ok(()),
                _ => Err(LabError::NotRestored {
                    leftover: undo.to_string(),
                }),
            }
        }
    }

    #[test]
    fn what_is_not_undone_is_open() {
        let [first, second] = [removal(1), removal(2)];
        let undone = Line::Undone {
            id: first.id.clone(),
        };
        let whole = text_of(&[
            Line::Change(first),
            Line::Change(second.clone()),
            undone.clone(),
            undone,
        ]);
        assert_eq!(open_changes(&whole).unwrap(), std::slice::from_ref(&second));
        // The last line, cut at any place, does not count.
        let torn = text_of(&[Line::Change(second.clone())]) + &text_of(&[Line::Change(removal(3))]);
        for end in torn.find('\n').unwrap() + 1..torn.len() {
            assert_eq!(
                open_changes(&torn[..end]).unwrap(),
                std::slice::from_ref(&second)
            );
        }
        assert_eq!(open_changes("").unwrap(), []);
    }

    #[test]
    fn commands_of_a_process_have_one_mark_whatever_it_changed() {
        let process = Process {
            pid: 7,
            start_time: 9,
        };
        let mark = mark_of_commands("b", process);
        assert_eq!(mark, "fwdlab-b-7-9");
        let marks = marks_of_commands(&[removal(1), removal(2)]);
        assert_eq!(marks, BTreeSet::from([mark]));
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        let text = text_of(&[Line::Change(removal(1))]) + "{\"record\":\"else\"}\n";
        let (line, what) = open_changes(&text).unwrap_err();
        assert_eq!(line, 2);
        assert!(what.contains("unknown variant `else`"), "{what}");
    }

    #[test]
    fn lines_are_plain_data() {
        let run = Undo::Run {
            namespace: "fwdlab-7-9-dut".into(),
            arguments: vec!["rm".into(), "a file".into()],
            started: None,
        };
        let line = serde_json::to_string(&Line::Change(change(1, run.clone()))).unwrap();
        assert_eq!(
            line,
            r#"{"record":"change","id":{"boot":"b","pid":7,"start_time":9,"number":1},"time":"2026-11-21T15:00:00Z","what":"change 1","undo":{"kind":"run","namespace":"fwdlab-7-9-dut","arguments":["rm","a file"]}}"#
        );
        assert_eq!(run.to_string(), r#"run rm "a file""#);
    }

    #[test]
    fn a_journal_says_what_this_process_has_open_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("a/b");
        let mut journal = Journal::open(&directory, "dut", Rc::new(Ours)).unwrap();
        let other_path = directory.join("dut.jsonl");
        let undo = || Undo::RemoveNamespace {
            name: "fwdlab-1-2-never-there".into(),
        };
        let first = journal.announce("first".into(), undo()).unwrap();
        journal.announce("second".into(), undo()).unwrap();
        // This process lives, so nobody else is to undo what it did.
        assert_eq!(left_changes(&other_path).unwrap(), []);
        let living = || living_process(&other_path).unwrap();
        assert_eq!(living(), Some(std::process::id()));
        let open = || open_changes(&fs::read_to_string(&other_path).unwrap()).unwrap();
        assert_eq!(open().len(), 2);
        journal.undo(&first).unwrap();
        assert_eq!(open().len(), 1);
        assert_eq!(open()[0].what, "second");
        journal.undo_all().unwrap();
        assert_eq!(open(), []);
        assert_eq!(journal.open, []);
        assert_eq!(living(), None);
    }

    /// A copy that cannot be written for some times.
    #[derive(Debug)]
    struct BrokenCopy {
        times: Cell<usize>,
        text: Rc<RefCell<String>>,
    }

    impl KeepCopy for BrokenCopy {
        fn append(&self, lines: &str) -> Result<(), LabError> {
            match self.times.get() {
                0 => self.text.borrow_mut().push_str(lines),
                times => {
                    self.times.set(times - 1);
                    return Err(LabError::Interrupted);
                }
            }
            Ok(())
        }

        fn removal(&self) -> Undo {
            Undo::RemoveNamespace {
                name: "fwdlab-1-2-copy".into(),
            }
        }
    }

    #[test]
    fn what_the_copy_does_not_have_is_not_announced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dut.jsonl");
        let mut journal = Journal::open(folder.path(), "dut", Rc::new(Ours)).unwrap();
        let copied = Rc::new(RefCell::new(String::new()));
        journal.keep_copy(Box::new(BrokenCopy {
            times: Cell::new(2),
            text: Rc::clone(&copied),
        }));
        let open_in = |text: &str| {
            let open = open_changes(text).unwrap().into_iter();
            open.map(|change| change.what).collect::<Vec<_>>()
        };
        let open = || open_in(&fs::read_to_string(&path).unwrap());
        let undo = || Undo::RemoveNamespace {
            name: "fwdlab-1-2-never-there".into(),
        };
        let both = || ["one", "other"].map(|what| (what.to_owned(), undo()));
        for _ in 0..2 {
            assert!(journal.announce_all(both()).is_err());
            assert!(!journal.has_open_changes());
            assert_eq!(open(), [COPY]);
        }
        journal.announce_all(both()).unwrap();
        assert!(journal.has_open_changes());
        assert_eq!(open(), [COPY, "one", "other"]);
        assert_eq!(open_in(&copied.borrow()), open());
        journal.undo_all().unwrap();
        assert_eq!(open(), [""; 0]);
    }

    /// Notes what a journal has open whenever it undoes something.
    #[derive(Debug)]
    struct Looking {
        path: PathBuf,
        seen: RefCell<Vec<usize>>,
    }

    impl CarryOut for Looking {
        fn carry_out(&self, _: &Undo) -> Result<(), LabError> {
            let open = read_open_changes(&self.path)?;
            self.seen.borrow_mut().push(open.len());
            Ok(())
        }
    }

    /// Killed behind the removal of the copy, the process would leave changes that its controller undoes again, over what
    /// another one has set since.
    #[test]
    fn what_is_undone_is_written_down_before_the_copy_goes() {
        let folder = tempfile::tempdir().unwrap();
        let looking = Rc::new(Looking {
            path: folder.path().join("dut.jsonl"),
            seen: RefCell::default(),
        });
        let mut journal = Journal::open(folder.path(), "dut", looking.clone()).unwrap();
        journal.keep_copy(Box::new(BrokenCopy {
            times: Cell::new(0),
            text: Rc::default(),
        }));
        for what in ["one", "other"] {
            let name = "fwdlab-1-2-never-there".to_owned();
            let undo = Undo::RemoveNamespace { name };
            journal.announce(what.to_owned(), undo).unwrap();
        }
        journal.undo_all().unwrap();
        assert_eq!(*looking.seen.borrow(), [3, 3, 1]);
    }

    #[test]
    fn what_cannot_be_undone_stays_open_and_the_rest_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path(), "dut", Rc::new(Ours)).unwrap();
        let wrong = Undo::RemoveNamespace {
            name: "not ours".into(),
        };
        let right = Undo::RemoveNamespace {
            name: "fwdlab-1-2-never-there".into(),
        };
        journal.announce("before".into(), right.clone()).unwrap();
        journal.announce("wrong".into(), wrong).unwrap();
        journal.announce("behind".into(), right).unwrap();
        let error = journal.undo_all().unwrap_err();
        assert!(error.to_string().contains("not ours"), "{error}");
        let text = fs::read_to_string(folder.path().join("dut.jsonl")).unwrap();
        let open = open_changes(&text).unwrap();
        assert_eq!(open.len(), 1);
        assert_eq!(open[0].what, "wrong");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = open_changes(&text);
        }

        #[test]
        fn any_journal_cut_anywhere_is_read(numbers in prop::collection::vec((0_u64..4, any::<bool>()), 0..8), cut in 0_usize..2000) {
            let lines: Vec<_> = numbers
                .into_iter()
                .map(|(number, is_change)| {
                    let change = removal(number);
                    if is_change { Line::Change(change) } else { Line::Undone { id: change.id } }
                })
                .collect();
            let text = text_of(&lines);
            prop_assert!(open_changes(&text[..cut.min(text.len())]).is_ok());
        }
    }
}
