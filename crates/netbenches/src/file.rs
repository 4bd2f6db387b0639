//! A file of the archive: what it says, why it was left, or what is wrong with it.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use fwdlab_pkt_gen::PktGenError;
use fwdlab_profile::{ConversionStatistics, StatisticsError, named_events};
use fwdlab_stats::ministat::parse_points;
use fwdlab_sys::{Bounded, Input, Refusal};

use crate::config_file::ConfigFile;
use crate::equilibrium::{Estimate, parse_rates_mbps};
use crate::info::BenchInfo;
use crate::kind::{FileKind, is_configurations};
use crate::lab_config::LabConfig;
use crate::log::LogFacts;
use crate::log_name::Role;
use crate::pktgen_config::PktGenConfig;
use crate::profile::{CallGraphFacts, FoldedFacts};
use crate::readme::PublishedReadme;
use crate::secret::Secret;
use crate::table::{Row, Table};

/// Larger files are not read: nothing of the archive that is read comes near.
pub const FILE_BYTES_MAX: u64 = 64 << 20;

/// What a thread keeps of the memory that it reads files to.
const TEXT_BYTES_KEPT: usize = 1 << 20;

thread_local! {
    /// The file that is read. One memory for all of them: what is kept of each would else lie between the gaps that
    /// their texts leave.
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A file of the archive.
#[derive(Clone, Debug, PartialEq)]
pub struct ArchiveFile {
    /// Below the root.
    pub path: PathBuf,
    /// What it is.
    pub kind: FileKind,
    /// What became of it.
    pub outcome: Outcome,
}

impl ArchiveFile {
    /// What of a file that was read is in no number: lines of a log, with the first of them, or events of a profile.
    #[must_use]
    pub fn left_out(&self) -> Option<Problem> {
        let log = match &self.outcome {
            Outcome::Read(Content::Log(log)) => log,
            Outcome::Read(Content::CallGraph(graph)) if !graph.left_out.is_empty() => {
                let left_out = named_events(&graph.left_out);
                return Some(Problem::new(format_args!(
                    "how idle it is and its functions are of {} alone; left out: {left_out}",
                    graph.event.escape_debug()
                )));
            }
            _ => return None,
        };
        let first = log.unknown.first()?;
        let text = first.text.trim();
        let message = match log.unknown_lines {
            1 => format!("a line that fwdlab does not understand or that cannot be: {text:?}"),
            lines => format!(
                "{lines} lines that fwdlab does not understand or that cannot be, the first: {text:?}"
            ),
        };
        Some(Problem::at(first.line, message))
    }
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It was read.
    Read(Content),
    /// It was left, for a reason that is no fault of it.
    Skipped(Skip),
    /// It is not what it should be.
    Failed(Problem),
}

/// Why a file was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Skip {
    /// A picture.
    Picture,
    /// The profiler's own form, which says nothing without the machine's kernel.
    ProfileSamples,
    /// Called the profiler's samples, and not in its form.
    NoSamples,
    /// Counters of the DUT, printed by programs of its own.
    DutCounters,
    /// Made of the tables.
    PlotScript,
    /// Nothing here is ever run.
    Program,
    /// A copyright licence.
    Licence,
    /// What an editor or a file manager leaves beside what it opens.
    Leftover,
    /// A key, a certificate, or a file that holds one.
    Secret,
    /// It may lead out of the tree, or round in it.
    SymbolicLink,
    /// A socket, a pipe or a device.
    NoRegularFile,
    /// `.git` and the like.
    Bookkeeping,
    /// What an import of ours has written.
    Imported,
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Picture => "a picture",
            Self::ProfileSamples => {
                "the profiler's own form: says nothing without the machine's kernel"
            }
            Self::NoSamples => "called the profiler's samples, and not in pmcstat's form",
            Self::DutCounters => "counters of the DUT, as programs of its own print them",
            Self::PlotScript => "a script for gnuplot: says nothing that its table does not",
            Self::Program => "a program: nothing is ever run",
            Self::Licence => "a licence",
            Self::Leftover => "hidden, or left by an editor or a file manager",
            Self::Secret => "a key or certificate: never read further, never copied",
            Self::SymbolicLink => "a symbolic link: not followed",
            Self::NoRegularFile => "no regular file",
            Self::Imported => "what fwdlab has imported before",
            Self::Bookkeeping => "a version control system's own folder",
        })
    }
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line where that shows, from 1.
    pub line: Option<usize>,
    /// What it is.
    pub message: String,
    /// What to do for whoever wants the file to be read; what to do about a finding is its rule's to say.
    pub remedy: Option<String>,
    /// Whether the system did not let it be read, so that nothing is known of what is in it.
    pub is_unreadable: bool,
}

impl Problem {
    pub(super) fn new(message: impl fmt::Display) -> Self {
        Self {
            line: None,
            message: message.to_string(),
            remedy: None,
            is_unreadable: false,
        }
    }

    /// What it is, and what to do.
    #[must_use]
    pub fn whole(&self) -> String {
        match &self.remedy {
            Some(remedy) => format!("{}; {remedy}", self.message),
            None => self.message.clone(),
        }
    }

    fn unreadable(why: impl fmt::Display) -> Self {
        Self {
            is_unreadable: true,
            ..Self::new(format_args!("cannot be read: {why}"))
        }
    }

    pub(super) fn at(line: usize, message: impl fmt::Display) -> Self {
        Self {
            line: Some(line),
            ..Self::new(message)
        }
    }
}

/// An error of a reader: `line 7: …`, where it knows the line, and what to do behind a semicolon.
impl<E: std::error::Error> From<E> for Problem {
    fn from(error: E) -> Self {
        let whole = error.to_string();
        let (message, remedy) = match whole.rsplit_once("; ") {
            Some((message, remedy)) => (message, Some(remedy.to_owned())),
            None => (&*whole, None),
        };
        let with_line = message.strip_prefix("line ").and_then(|rest| {
            let (line, rest) = rest.split_once(": ")?;
            Some(Self::at(line.parse().ok()?, rest))
        });
        Self {
            remedy,
            ..with_line.unwrap_or_else(|| Self::new(message))
        }
    }
}

/// What a file says.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A log of pkt-gen.
    Log(Box<LogFacts>),
    /// What a log of equilibrium ends with; none where it ends before.
    EquilibriumLog(Option<Estimate>),
    /// What equilibrium found, in Mb/s, one a line.
    EquilibriumValues(Vec<f64>),
    /// What a bench ran on.
    Info(Box<BenchInfo>),
    /// Observations.
    Dataset(Dataset),
    /// What gnuplot was given.
    Table(Table),
    /// A text for readers.
    Readme(Box<PublishedReadme>),
    /// A profile, by callers.
    CallGraph(Box<CallGraphFacts>),
    /// A profile, by stacks.
    FoldedStacks(FoldedFacts),
    /// How many samples a call graph holds by the count of the profiler that made it; none where it says nothing.
    ProfileLog(Option<u64>),
    /// A file of a configuration set.
    Configuration(Box<ConfigFile>),
    /// Which traffic a bench sends.
    PktGenConfiguration(Box<PktGenConfig>),
    /// The machines of a lab.
    LabConfiguration(Box<LabConfig>),
}

/// Published observations, in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// One a line that is not blank; may be empty, as 5 in the archive are.
    pub values: Vec<f64>,
    /// The file as it is: whether it is made again is asked byte for byte.
    pub text: String,
}

impl Dataset {
    /// Its values as they are written, with their lines: what a line begins with, unless that is a comment.
    pub(crate) fn written(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = (1..).zip(self.text.lines());
        let words = lines.filter_map(|(line, text)| Some((line, text.split_whitespace().next()?)));
        words.filter(|(_, word)| !word.starts_with('#'))
    }

    fn parse(text: &[u8]) -> Result<Self, usize> {
        Ok(Self {
            values: parse_points(text, 1, b" \t")?,
            text: String::from_utf8_lossy(text).into_owned(),
        })
    }
}

impl Outcome {
    pub(crate) fn unreadable(why: impl fmt::Display) -> Self {
        Self::Failed(Problem::unreadable(why))
    }
}

/// Reads a file of a kind.
///
/// A file that turns out to be of another kind than its name says is an error: names are what the
/// archive is ordered by.
pub(super) fn read(root: &Path, path: &Path, kind: FileKind) -> (FileKind, Outcome) {
    match skipped_by_kind(kind) {
        // They tell which run was profiled, if that is what they are.
        Some(Skip::ProfileSamples) if !holds_samples(&root.join(path)) => {
            return (kind, Outcome::Skipped(Skip::NoSamples));
        }
        Some(skip) => return (kind, Outcome::Skipped(skip)),
        None => {}
    }
    // Wherever it lies, and before it is opened.
    if Secret::of_name(&path.to_string_lossy()).is_some() {
        return (kind, Outcome::Skipped(Skip::Secret));
    }
    TEXT.with_borrow_mut(|text| {
        let outcome = match read_to(text, &root.join(path)) {
            Ok(()) => read_text(path, kind, text),
            Err(problem) => (kind, Outcome::Failed(problem)),
        };
        if text.capacity() > TEXT_BYTES_KEPT {
            *text = Vec::new();
        }
        outcome
    })
}

/// The same of a file that has been read.
fn read_text(path: &Path, kind: FileKind, text: &[u8]) -> (FileKind, Outcome) {
    match content(path, kind, text).map_err(|problem| (kind, problem)) {
        Ok((kind, Content::Configuration(file))) if file.secret.is_some() => {
            (kind, Outcome::Skipped(Skip::Secret))
        }
        // Texts are kept, and messages quote what they are about.
        Ok((kind, Content::Readme(_))) | Err((kind, _)) if holds_key(text) => {
            (kind, Outcome::Skipped(Skip::Secret))
        }
        Ok((kind, Content::Log(log))) if log.unknown_lines > 0 && holds_key(text) => {
            (kind, Outcome::Skipped(Skip::Secret))
        }
        Ok((kind, content)) => (kind, Outcome::Read(content)),
        Err((kind, problem)) => (kind, Outcome::Failed(problem)),
    }
}

/// Whether a text that is no configuration holds a key; a certificate alone is none.
fn holds_key(text: &[u8]) -> bool {
    matches!(
        Secret::of_content(text),
        Some(Secret::PrivateKey | Secret::SharedKey)
    )
}

fn skipped_by_kind(kind: FileKind) -> Option<Skip> {
    match kind {
        FileKind::Bench(Role::Picture) => Some(Skip::Picture),
        FileKind::Bench(Role::ProfileSamples) => Some(Skip::ProfileSamples),
        FileKind::Bench(Role::DutCounters) => Some(Skip::DutCounters),
        FileKind::PlotScript => Some(Skip::PlotScript),
        FileKind::Program => Some(Skip::Program),
        FileKind::Licence => Some(Skip::Licence),
        FileKind::Leftover => Some(Skip::Leftover),
        _ => None,
    }
}

/// Whether a file begins with a record of pmcstat: the magic number is the fourth byte of each, on machines that
/// store the least byte first, as all are that pmcstat runs on and that the archive has.
fn holds_samples(path: &Path) -> bool {
    const MAGIC: u8 = 0xee;
    let mut header = [0; 4];
    let opened = Input::file(path, u64::MAX).open_file();
    opened.is_ok_and(|mut file| file.read_exact(&mut header).is_ok() && header[3] == MAGIC)
}

fn read_to(text: &mut Vec<u8>, path: &Path) -> Result<(), Problem> {
    let too_large = || Problem {
        remedy: Some("take it out of the tree".to_owned()),
        ..Problem::new(format_args!(
            "larger than {} MiB, so no file of the archive's",
            FILE_BYTES_MAX >> 20
        ))
    };
    text.clear();
    let mut read = || -> io::Result<()> {
        let file = Input::file(path, FILE_BYTES_MAX).open_file()?;
        let expected = file.metadata()?.len();
        text.reserve(usize::try_from(expected).unwrap_or(0) + 1);
        // It may grow while it is read.
        Bounded::new(file, FILE_BYTES_MAX).read_to_end(text)?;
        Ok(())
    };
    read().map_err(|error| match Refusal::of(&error) {
        Some(Refusal::TooLarge { .. }) => too_large(),
        _ => Problem::unreadable(error),
    })
}

fn content(path: &Path, kind: FileKind, text: &[u8]) -> Result<(FileKind, Content), Problem> {
    let content = match kind {
        FileKind::Bench(role @ (Role::Receiver | Role::Sender(_))) => log(role, text)?,
        FileKind::Bench(Role::Info) => Content::Info(Box::new(BenchInfo::parse(text)?)),
        FileKind::Bench(Role::CallGraph) => {
            Content::CallGraph(Box::new(CallGraphFacts::parse(text)?))
        }
        FileKind::Bench(Role::FoldedStacks) => Content::FoldedStacks(FoldedFacts::parse(text)?),
        FileKind::Bench(Role::ProfileLog) => profile_log(text)?,
        FileKind::Dataset => Content::Dataset(dataset(text)?),
        FileKind::EquilibriumValues => Content::EquilibriumValues(parse_rates_mbps(text)?),
        FileKind::Table => return table(text),
        FileKind::Readme => {
            let readme = PublishedReadme::parse(text);
            let kind = if readme.is_of_tables() {
                FileKind::MarkdownTable
            } else {
                kind
            };
            return Ok((kind, Content::Readme(Box::new(readme))));
        }
        FileKind::Configuration => {
            let within = path_in_set(path).to_string_lossy().into_owned();
            Content::Configuration(Box::new(ConfigFile::parse(&within, text)))
        }
        FileKind::PktGenConfiguration => {
            Content::PktGenConfiguration(Box::new(PktGenConfig::parse(text)?))
        }
        FileKind::LabConfiguration => Content::LabConfiguration(Box::new(LabConfig::parse(text)?)),
        FileKind::Unnamed => return unnamed(text),
        FileKind::MarkdownTable
        | FileKind::Leftover
        | FileKind::Bench(Role::Picture | Role::ProfileSamples | Role::DutCounters)
        | FileKind::PlotScript
        | FileKind::Program
        | FileKind::Licence => unreachable!("left by its kind, or known by its content"),
    };
    Ok((kind, content))
}

/// Rates in Mb/s are below that, so that what is above is in packets per second.
const MBPS_MAX: f64 = 100_000.0;

/// A table; or a dataset, where each line is a rate in packets per second and nothing else: `prepatch.data`.
fn table(text: &[u8]) -> Result<(FileKind, Content), Problem> {
    let table = Table::parse(text)?;
    let is_rate =
        |row: &Row| row.keys.is_empty() && matches!(row.numbers[..], [rate] if rate > MBPS_MAX);
    let is_dataset =
        table.headings.is_empty() && !table.rows.is_empty() && table.rows.iter().all(is_rate);
    match dataset(text) {
        Ok(dataset) if is_dataset => Ok((FileKind::Dataset, Content::Dataset(dataset))),
        _ => Ok((FileKind::Table, Content::Table(table))),
    }
}

/// What a file is whose name does not tell: before the end of 2015 datasets had no ending.
fn unnamed(text: &[u8]) -> Result<(FileKind, Content), Problem> {
    const UNKNOWN: &str = "of no known kind, by its name or by what it holds";
    match dataset(text) {
        Ok(dataset) if dataset.values.is_empty() => Err(Problem::new(UNKNOWN)),
        Ok(dataset) => Ok((FileKind::Dataset, Content::Dataset(dataset))),
        Err(problem) => {
            let is_table = text.trim_ascii_start().starts_with(b"|");
            let readme = is_table.then(|| PublishedReadme::parse(text));
            match readme.filter(PublishedReadme::is_of_tables) {
                Some(readme) => Ok((FileKind::MarkdownTable, Content::Readme(Box::new(readme)))),
                None => Err(Problem {
                    message: UNKNOWN.to_owned(),
                    ..problem
                }),
            }
        }
    }
}

/// A file's path from the folder of its configuration set.
fn path_in_set(path: &Path) -> &Path {
    let mut components = path.components();
    while let Some(component) = components.next() {
        if is_configurations(&component.as_os_str().to_string_lossy()) {
            // The set.
            components.next();
            return components.as_path();
        }
    }
    path
}

/// A log of the side that its name says: rates of the other would be taken for its own.
fn log(role: Role, text: &[u8]) -> Result<Content, Problem> {
    match LogFacts::parse(text) {
        Ok(facts) => {
            let (other, ending) = match (role, facts.role) {
                (Role::Receiver, fwdlab_pkt_gen::Role::Sender) => ("a sender", ".sender"),
                (Role::Sender(_), fwdlab_pkt_gen::Role::Receiver) => ("a receiver", ".receiver"),
                _ => return Ok(Content::Log(Box::new(facts))),
            };
            let message = format!("it holds the log of {other}");
            Err(Problem {
                remedy: Some(format!(
                    "name it {ending}, or bring its own log back from a copy"
                )),
                ..Problem::at(facts.role_line, message)
            })
        }
        Err(PktGenError::Equilibrium { .. }) => Ok(Content::EquilibriumLog(Estimate::of_log(text))),
        Err(error) => Err(error.into()),
    }
}

fn profile_log(text: &[u8]) -> Result<Content, Problem> {
    match ConversionStatistics::parse(text) {
        Ok(statistics) => Ok(Content::ProfileLog(Some(statistics.graphed_samples()))),
        // pmcstat that was stopped before it ended says nothing.
        Err(StatisticsError::Empty) => Ok(Content::ProfileLog(None)),
        Err(error) => Err(error.into()),
    }
}

fn dataset(text: &[u8]) -> Result<Dataset, Problem> {
    let not_a_number = |line| Problem::at(line, "not a number; observations stand one a line");
    Dataset::parse(text).map_err(not_a_number)
}
