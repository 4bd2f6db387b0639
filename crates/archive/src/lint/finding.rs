//! What a rule finds, with both sides as evidence.

use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use fwdlab_sys::Input;

use crate::error::{ArchiveError, ArchiveWarning, Place};
use crate::layout::{self, name_in};

use super::{NEWER_FORM, NOT_OF_ITS_FORM, RUN_MISSING, Rule, TORN_LINE, UNREADABLE};

/// A number of things for a sentence: `1 value`, `2 values`.
#[must_use]
pub fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Something that a rule has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// The results directory that it concerns, or what was searched for such.
    pub directory: PathBuf,
    /// What is the case, in a plain sentence.
    pub sentence: String,
    /// What shows it: the published side first, then what it was held against.
    pub evidence: Vec<Evidence>,
}

impl Finding {
    /// A finding without evidence yet.
    #[must_use]
    pub fn new(rule: &'static Rule, directory: &Path, sentence: impl Into<String>) -> Self {
        Self {
            rule,
            directory: directory.to_owned(),
            sentence: sentence.into(),
            evidence: Vec::new(),
        }
    }

    /// The same with one more piece of evidence.
    #[must_use]
    pub fn with(mut self, evidence: Evidence) -> Self {
        self.evidence.push(evidence);
        self
    }

    /// The same with what a published file says.
    #[must_use]
    pub fn published(self, path: &Path, says: impl Into<String>) -> Self {
        self.with(Evidence::published(path, None, says))
    }

    /// The same with what a line of a published file says, where one is meant.
    #[must_use]
    pub fn published_at(
        self,
        path: &Path,
        line: impl Into<Option<usize>>,
        says: impl Into<String>,
    ) -> Self {
        self.with(Evidence::published(path, line.into(), says))
    }

    /// The same with what a file of the raw data gives.
    #[must_use]
    pub fn derived(self, path: &Path, says: impl Into<String>) -> Self {
        self.with(Evidence::derived(path, None, says))
    }

    /// The same with what a line of the raw data gives, where one is meant.
    #[must_use]
    pub fn derived_at(
        self,
        path: &Path,
        line: impl Into<Option<usize>>,
        says: impl Into<String>,
    ) -> Self {
        self.with(Evidence::derived(path, line.into(), says))
    }

    /// A file that the system does not let be read.
    pub(super) fn unreadable(directory: &Path, path: &Path, error: &io::Error) -> Self {
        let sentence = format!("{} cannot be read: {error}", name_in(directory, path));
        Self::new(&UNREADABLE, directory, sentence).published(path, error.to_string())
    }

    /// What keeps a file from being read.
    #[must_use]
    pub fn of_error(directory: &Path, error: &ArchiveError) -> Self {
        let (rule, place, says) = match error {
            ArchiveError::Io { path, source, .. } | ArchiveError::DiskFull { path, source, .. } => {
                let is_run = path.starts_with(directory.join(layout::BLOCKS));
                let is_missing = source.kind() == io::ErrorKind::NotFound;
                let rule = if is_run && is_missing {
                    &RUN_MISSING
                } else {
                    &UNREADABLE
                };
                (rule, Place::file(path), source.to_string())
            }
            ArchiveError::Refused { path, refusal } => {
                (&UNREADABLE, Place::file(path), refusal.to_string())
            }
            ArchiveError::NewerSchema { place, schema, .. } => {
                (&NEWER_FORM, place.clone(), format!("schema {schema}"))
            }
            ArchiveError::Damaged { place, what } | ArchiveError::OtherForm { place, what } => {
                (&NOT_OF_ITS_FORM, place.clone(), what.clone())
            }
            other => (&NOT_OF_ITS_FORM, Place::file(directory), other.to_string()),
        };
        let name = name_in(directory, &place.path);
        let line = place
            .line
            .map_or_else(String::new, |line| format!(", line {line}"));
        let sentence = match error {
            ArchiveError::Io { .. }
            | ArchiveError::DiskFull { .. }
            | ArchiveError::Refused { .. } => {
                format!("{name} cannot be read: {says}")
            }
            ArchiveError::NewerSchema { .. } => {
                format!("{name} was written by a later fwdlab ({says})")
            }
            _ => format!("{name}{line} is not of its form: {says}"),
        };
        let evidence = Evidence::of_line(&place.path, place.line, &says);
        Self::new(rule, directory, sentence).with(evidence)
    }

    pub(crate) fn of_warning(directory: &Path, warning: &ArchiveWarning) -> Option<Self> {
        let ArchiveWarning::TornLine { place, bytes } = warning else {
            return None;
        };
        let says = format!("{bytes} bytes without the end of the line");
        let name = name_in(directory, &place.path);
        let sentence = format!("the last line of {name} was cut short and does not count");
        let evidence = Evidence::of_line(&place.path, place.line, &says);
        Some(Self::new(&TORN_LINE, directory, sentence).with(evidence))
    }
}

/// Which side of a finding a piece of evidence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// What is published, or what the finding is about.
    Published,
    /// What it was held against: the raw data, and what follows from it.
    Derived,
}

impl Side {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Derived => "derived",
        }
    }
}

/// A place, and what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Which side it is.
    pub side: Side,
    /// The file or folder, as it would be opened.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The value or the excerpt.
    pub says: String,
}

impl Evidence {
    /// What is published.
    #[must_use]
    pub fn published(path: &Path, line: Option<usize>, says: impl Into<String>) -> Self {
        Self {
            side: Side::Published,
            path: path.to_owned(),
            line,
            says: says.into(),
        }
    }

    /// The line of a file that is wrong, as it is in the file; where there is no such line to be shown, what is wrong
    /// with it.
    #[must_use]
    pub fn of_line(path: &Path, line: Option<usize>, wrong: &str) -> Self {
        let text = line.and_then(|line| line_of(path, line));
        let line = line.filter(|_| text.is_some());
        Self::published(path, line, text.unwrap_or_else(|| wrong.to_owned()))
    }

    /// What it is held against.
    #[must_use]
    pub fn derived(path: &Path, line: Option<usize>, says: impl Into<String>) -> Self {
        Self {
            side: Side::Derived,
            ..Self::published(path, line, says)
        }
    }
}

/// A line of a file, as far as it can be shown; none where it is empty or does not read.
fn line_of(path: &Path, line: usize) -> Option<String> {
    const SHOWN_BYTES_MAX: u64 = 1000;
    let mut file = BufReader::new(Input::file(path, u64::MAX).open_file().ok()?);
    for _ in 1..line {
        file.skip_until(b'\n').ok()?;
    }
    let mut bytes = Vec::new();
    file.take(SHOWN_BYTES_MAX)
        .read_until(b'\n', &mut bytes)
        .ok()?;
    let text = String::from_utf8_lossy(&bytes).trim_end().to_owned();
    (!text.trim().is_empty()).then_some(text)
}
