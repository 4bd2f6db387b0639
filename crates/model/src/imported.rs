//! What `fwdlab import` leaves: logs and texts of others as records of ours.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::words::{AddressFamily, VariantName};

/// Version of the form of imported records; readers refuse a newer one.
pub const IMPORT_SCHEMA_VERSION: u32 = 2;

/// `imported.json`: one folder of published results.
///
/// Paths are those below the root of what was imported. They are texts: bytes that are no UTF-8 are
/// replaced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportedResults {
    /// [`IMPORT_SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// The folder.
    pub source: String,
    /// The DUT, as the folder's path says.
    pub platform: Option<String>,
    /// Its network interface card, as the folder's path says.
    pub nic: Option<String>,
    /// What was asked, as the folder's path says.
    pub topic: Option<String>,
    /// What was measured, as the folder's path says.
    pub label: Option<String>,
    /// The title of the text that was published with it.
    pub title: Option<String>,
    /// The lab, as that text lists it.
    pub lab: Vec<String>,
    /// The text that was published with it, with its blocks of ministat made again; none where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<ImportedText>,
    /// What was measured, by name.
    pub variants: Vec<ImportedVariant>,
    /// Every file of the folder.
    pub files: Vec<ImportedFile>,
}

/// A text that was published with results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportedText {
    /// The file.
    pub path: String,
    /// The text, every block of ministat printed again from the observations that the logs give; what
    /// already was as it is printed is left as it stands.
    pub text: String,
    /// Those blocks, in order.
    pub blocks: Vec<ImportedBlock>,
}

/// A block of ministat in a published text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportedBlock {
    /// The heading that it stands under.
    pub heading: Option<String>,
    /// The line of the published text that it begins on, from 1.
    pub line: usize,
    /// What became of it.
    pub outcome: BlockOutcome,
    /// Its rows, the baseline first.
    pub rows: Vec<ImportedRow>,
}

/// What became of a block of ministat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BlockOutcome {
    /// The observations give it as it was published.
    Same,
    /// The observations give other figures or another plot: they stand in the text now.
    MadeAgain,
    /// A row is of no dataset: it was left as it was published.
    NotDerived,
}

/// A row of a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportedRow {
    /// What it is called there; the dataset's name where it is called nothing.
    pub label: String,
    /// The dataset; none where no dataset gives the row.
    pub dataset: Option<String>,
    /// Whether that lies in another folder of results.
    pub is_of_another_folder: bool,
    /// Whether logs give the observations; otherwise they are the published ones.
    pub is_of_logs: bool,
    /// How many of its runs were profiled: they do not count, but what else was published in their place.
    #[serde(default)]
    pub profiled_runs: usize,
    /// The observations that count, in packets per second.
    pub observations_pps: Vec<f64>,
    /// What was offered, one number an observation; none where a log does not say.
    pub offered_pps: Option<Vec<f64>>,
}

/// One variant of one address family.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportedVariant {
    /// What its files here are named by.
    pub name: VariantName,
    /// What the archive's files of it are named by.
    pub key: String,
    /// The address family, where its name or its traffic says.
    pub family: Option<AddressFamily>,
    /// The description that lies beside its logs.
    pub description: Option<ImportedDescription>,
    /// What was published of it; none where only logs are there.
    pub dataset: Option<ImportedDataset>,
    /// How many flows the sender was asked for, where its log says.
    pub flows: Option<u64>,
    /// The frame size that the sender was asked for, its frame check sequence included.
    pub frame_size_bytes: Option<u64>,
    /// What its configuration set, by file and name; nothing that is a secret.
    pub settings: BTreeMap<String, BTreeMap<String, String>>,
}

/// The archive's `.info`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedDescription {
    /// The image that the DUT booted.
    pub image: Option<String>,
    /// The configuration set.
    pub configuration: Option<String>,
    /// The set of traffic.
    pub pktgen: Option<String>,
    /// The DUT's `uname -a`.
    pub uname: Option<String>,
    /// When it began, as printed.
    pub start: Option<String>,
    /// When it ended, as printed.
    pub end: Option<String>,
}

/// Numbers that were published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportedDataset {
    /// The file.
    pub path: String,
    /// Whether the logs give them.
    pub origin: DatasetOrigin,
    /// The numbers, in the order of the file, in packets per second.
    pub published_pps: Vec<f64>,
}

/// Where published numbers are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DatasetOrigin {
    /// The logs of that name give them, digit for digit.
    Logs,
    /// Logs of another name give them, digit for digit.
    OtherLogs,
    /// The logs of that name give something else.
    Altered,
    /// No logs are there.
    NoLogs,
}

impl DatasetOrigin {
    /// Whether logs give the numbers, digit for digit.
    #[must_use]
    pub const fn is_given_by_logs(self) -> bool {
        matches!(self, Self::Logs | Self::OtherLogs)
    }
}

/// One line of `runs.jsonl`: one run of one variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportedRun {
    /// [`IMPORT_SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// The variant.
    pub variant: VariantName,
    /// The run's number; none where its files have none.
    pub iteration: Option<u32>,
    /// The receiver's log.
    pub receiver: Option<String>,
    /// The logs of all senders.
    pub senders: Vec<String>,
    /// The observation as the archive reckons it: the median over the lines of the log that its script
    /// keeps, in packets per second.
    pub archive_pps: Option<f64>,
    /// The forwarding rate over the steady state of the receiver's log: all packets over all time, a stall
    /// included, in packets per second.
    pub forwarded_pps: Option<f64>,
    /// The median of the samples of that steady state, in packets per second.
    pub forwarded_median_pps: Option<f64>,
    /// The offered load over the steady state of all senders' logs, in packets per second; none where one of several
    /// senders lasted clearly shorter than another.
    pub offered_pps: Option<f64>,
    /// What was published of this run; none where nothing, or something else, was.
    pub published_pps: Option<f64>,
    /// How the receiver's log ends.
    pub ending: Option<String>,
    /// Samples without any packet between samples with some: stalls, which the archive's script leaves out.
    pub stalls: usize,
    /// Whether the run is known to be profiled; it does not count then.
    pub is_profiled: bool,
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedFile {
    /// Where it is.
    pub path: String,
    /// What it is.
    pub kind: String,
    /// Whether it was read.
    pub outcome: FileOutcome,
    /// Why it was left, what of it was not understood, or what is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The first line that is meant, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
}

/// Whether a file was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileOutcome {
    /// It was.
    Read,
    /// It was, but for lines that fwdlab does not understand or that cannot be, or for further events of a profile.
    ReadInPart,
    /// It was left, for a reason that is no fault of it.
    Skipped,
    /// It is not what it should be.
    Failed,
}
