//! What can be wrong with a results directory, and what to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use fwdlab_sys::Refusal;
use fwdlab_sys::durable::FileError;

/// A file, and a line of it where one is meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file or directory.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: Option<usize>,
}

impl Place {
    /// A file or directory as a whole.
    #[must_use]
    pub fn file(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            line: None,
        }
    }

    /// A line of a file, from 1.
    #[must_use]
    pub fn line(path: &Path, line: usize) -> Self {
        Self {
            path: path.to_owned(),
            line: Some(line),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        match self.line {
            Some(line) => write!(f, ":{line}"),
            None => Ok(()),
        }
    }
}

/// What keeps a results directory from being opened, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The disk or the quota is full. Nothing that was recorded is lost.
    #[error(
        "{}: the disk is full (cannot {action}: {source}); make room and run the same command \
         again, nothing that was recorded is lost", path.display()
    )]
    DiskFull {
        /// The file that could not be written.
        path: PathBuf,
        /// What was being done.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A report cannot be written, which can be made again from the records.
    #[error(
        "{}: cannot {action} ({source}); {}, then `fwdlab report {}` writes the report: nothing that was recorded is \
         lost", path.display(), remedy_of_report(source), dir.display()
    )]
    NoReport {
        /// The file or directory.
        path: PathBuf,
        /// What was being done.
        action: &'static str,
        /// What the system said.
        source: io::Error,
        /// The results directory.
        dir: PathBuf,
    },
    /// Something is no regular file, is too large, or lies outside the directory.
    #[error("{}: {refusal}", path.display())]
    Refused {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        refusal: Refusal,
    },
    /// The system refused something else.
    #[error("{}: cannot {action} ({source}); {}", path.display(), remedy(action, source))]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was being done.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Another run is measuring into the directory.
    #[error(
        "{}: in use by a run that is alive ({}); wait for it, or start another with --new or \
         --label", dir.display(), process_text(*.pid)
    )]
    Locked {
        /// The directory.
        dir: PathBuf,
        /// The process that holds it, where it says.
        pid: Option<u32>,
    },
    /// The directory is finished, and finished ones never change.
    #[error(
        "{}: this run is finished and never changes; choose another --label, or none",
        dir.display()
    )]
    Finished {
        /// The directory.
        dir: PathBuf,
    },
    /// The directory belongs to another experiment, or to an older state of this one.
    #[error(
        "{}: started with another experiment (hash {found:.12}, this one has {asked:.12}); \
         choose another --label, or none", dir.display()
    )]
    OtherExperiment {
        /// The directory.
        dir: PathBuf,
        /// The hash of the experiment it was started with.
        found: String,
        /// The hash of the experiment at hand.
        asked: String,
    },
    /// A new run was asked for under a label that is taken.
    #[error("{}: exists already; choose another --label, or go without --new", dir.display())]
    LabelTaken {
        /// The directory.
        dir: PathBuf,
    },
    /// A text that is to name a file or a directory cannot.
    #[error(
        "{what}: {name:?} cannot name a file; use letters, digits, '.', '_' and '-', for example \
         {suggestion:?}"
    )]
    BadName {
        /// What the text is.
        what: &'static str,
        /// The text.
        name: String,
        /// The nearest text that could.
        suggestion: String,
    },
    /// A file does not hold what it should.
    #[error("{place}: {what}; restore the file from a copy, or start afresh with --new")]
    Damaged {
        /// Where.
        place: Place,
        /// What is wrong.
        what: String,
    },
    /// A file is well-formed and yet not what this version writes.
    #[error(
        "{place}: not of the form that this fwdlab reads ({what}): damaged, or written by another \
         version; read it with that version, or start afresh with --new"
    )]
    OtherForm {
        /// Where.
        place: Place,
        /// What is missing or unknown.
        what: String,
    },
    /// A file was written by a later version.
    #[error(
        "{place}: written by a later fwdlab (schema {schema}, this one reads up to {supported}); \
         use that version"
    )]
    NewerSchema {
        /// Where.
        place: Place,
        /// The version of the records' form that was found.
        schema: u32,
        /// The latest that can be read.
        supported: u32,
    },
    /// What was measured is not what the plan asked for, or cannot be written down.
    #[error("{}: block {block}, attempt {attempt}: {what}; report this as a bug", dir.display())]
    BadOutcome {
        /// The directory.
        dir: PathBuf,
        /// The block.
        block: u32,
        /// The attempt at it.
        attempt: u32,
        /// What is wrong.
        what: String,
    },
    /// A session cannot stand beside those before it.
    #[error(
        "{}: cannot be continued here: {difference} (session {session}); go back to that \
         environment, or start afresh with --new", dir.display()
    )]
    EnvironmentChanged {
        /// The directory.
        dir: PathBuf,
        /// The session compared with, the last one.
        session: u32,
        /// The first difference.
        difference: String,
    },
    /// A session's number does not follow the last one's.
    #[error("{}: session {session} does not follow session {last}; report this as a bug", dir.display())]
    SessionOutOfTurn {
        /// The directory.
        dir: PathBuf,
        /// The number given.
        session: u32,
        /// The last session's; 0 where there is none.
        last: u32,
    },
    /// A run is to be finished with blocks that were never measured.
    #[error("{}: block {block} was not measured; run the same command again", dir.display())]
    BlockMissing {
        /// The directory.
        dir: PathBuf,
        /// The first such block.
        block: u32,
    },
    /// No results have that name.
    #[error("{name}: no results of that name under {}; {}", root.display(), present_text(.present, nearest.as_deref()))]
    NotFound {
        /// What was asked for.
        name: String,
        /// Where it was looked for.
        root: PathBuf,
        /// What was probably meant.
        nearest: Option<String>,
        /// What there is.
        present: Vec<String>,
    },
    /// A folder that holds no results itself.
    #[error("{}: no results directory; {}", dir.display(), below_text(.below, *.is_whole))]
    NotResults {
        /// The folder.
        dir: PathBuf,
        /// The results directories below it.
        below: Vec<PathBuf>,
        /// Whether all folders below it were looked at.
        is_whole: bool,
    },
}

/// What is done where a file of results is read.
pub const READ_FILE: &str = "read the file";

fn remedy(action: &str, source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::ReadOnlyFilesystem => {
            "make it writable and run the same command again, it goes on where it stopped, or choose \
             another folder with --results"
        }
        io::ErrorKind::PermissionDenied => {
            "check that the path is yours to use, or give another folder with --results DIR"
        }
        io::ErrorKind::NotFound if action == READ_FILE => {
            "bring it back from a copy; `fwdlab lint DIR` says what else is missing"
        }
        _ => "check that the path is yours to use",
    }
}

fn remedy_of_report(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "the disk is full: make room",
        io::ErrorKind::ReadOnlyFilesystem => "make it writable",
        _ => "check that the path is yours to use",
    }
}

fn process_text(pid: Option<u32>) -> String {
    pid.map_or_else(
        || "it has not said which".into(),
        |pid| format!("process {pid}"),
    )
}

fn present_text(present: &[String], nearest: Option<&str>) -> String {
    const SHOWN_MAX: usize = 5;
    if present.is_empty() {
        return "there are none; give a results directory, or where they are with --results".into();
    }
    let mut shown = present[..present.len().min(SHOWN_MAX)].join(", ");
    if present.len() > SHOWN_MAX {
        shown += &format!(" and {} more", present.len() - SHOWN_MAX);
    }
    match nearest {
        Some(nearest) => format!("did you mean {nearest:?}? There are {shown}"),
        None => format!("there are {shown}; give <name>/<label> or a directory"),
    }
}

fn below_text(below: &[PathBuf], is_whole: bool) -> String {
    const SHOWN_MAX: usize = 3;
    let shown = below.iter().take(SHOWN_MAX);
    let shown: Vec<_> = shown.map(|dir| dir.display().to_string()).collect();
    match below.len().saturating_sub(SHOWN_MAX) {
        _ if below.is_empty() && is_whole => "there is none below it either; give another".into(),
        _ if below.is_empty() => {
            "there is none in the folders below it that were looked at first; give the directory itself".into()
        }
        0 => format!("give one below it: {}", shown.join(", ")),
        more => format!(
            "give one below it: {} or one of {more} more",
            shown.join(", ")
        ),
    }
}

impl ArchiveError {
    /// The error of a system call on `path`; for `map_err`.
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        let of = FileError::of(path, action);
        move |source| of(source).into()
    }

    /// The same error of a system call while a report of a directory was written.
    pub(crate) fn of_report(self, dir: &Path) -> Self {
        match self {
            Self::DiskFull {
                path,
                action,
                source,
            }
            | Self::Io {
                path,
                action,
                source,
            } => Self::NoReport {
                path,
                action,
                source,
                dir: dir.to_owned(),
            },
            other => other,
        }
    }

    pub(crate) fn damaged(place: Place, what: impl fmt::Display) -> Self {
        Self::Damaged {
            place,
            what: what.to_string(),
        }
    }
}

impl From<FileError> for ArchiveError {
    fn from(error: FileError) -> Self {
        let FileError {
            path,
            action,
            source,
        } = error;
        if let Some(refusal) = Refusal::of(&source) {
            let refusal = refusal.clone();
            return Self::Refused { path, refusal };
        }
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull {
                path,
                action,
                source,
            },
            _ => Self::Io {
                path,
                action,
                source,
            },
        }
    }
}

/// What was found when a directory was opened and does not keep it from being used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArchiveWarning {
    /// The last line of `trials.jsonl` was cut short while it was written.
    TornLine {
        /// The file and the line.
        place: Place,
        /// Length of what is there of it, in bytes.
        bytes: usize,
    },
    /// A directory beside this one cannot be read and was passed over.
    PassedOver {
        /// The directory.
        dir: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

impl ArchiveWarning {
    /// Its stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TornLine { .. } => "W301",
            Self::PassedOver { .. } => "W302",
        }
    }
}

impl fmt::Display for ArchiveWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TornLine { place, bytes } => write!(
                f,
                "{place}: the last line was cut short ({bytes} bytes of it are there) and does \
                 not count"
            ),
            Self::PassedOver { dir, what } => {
                write!(f, "{}: passed over: {what}", dir.display())
            }
        }
    }
}
