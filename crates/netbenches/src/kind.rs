//! What a file of the archive is, by its name and place.

use std::borrow::Cow;
use std::path::Path;

use crate::log_name::{BenchName, Role};
use crate::place::{names, results_at};

/// What a file is; what is inside decides only where names do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileKind {
    /// A file of a bench: a log, a profile, a description.
    Bench(Role),
    /// Observations, one a line: `<key>.pps`, and without that ending where all lines are numbers.
    Dataset,
    /// `.equilibrium`, `.equilibrium.max`: what equilibrium found, in Mb/s, one a line.
    EquilibriumValues,
    /// `.data`: what gnuplot was given.
    Table,
    /// What gnuplot was told.
    PlotScript,
    /// Text for readers.
    Readme,
    /// Text of nothing but a table in Markdown.
    MarkdownTable,
    /// A file of a configuration set.
    Configuration,
    /// A file below `pktgen.configs`.
    PktGenConfiguration,
    /// `bench-lab-….config`: hosts and interfaces of a lab.
    LabConfiguration,
    /// A program or a patch.
    Program,
    /// A copyright licence.
    Licence,
    /// What an editor or a file manager leaves beside what it opens.
    Leftover,
    /// Nothing in its name tells: its content has to.
    Unnamed,
}

/// Whether a folder of this name holds configuration sets: `configs`, `configs.vti`.
pub(super) fn is_configurations(folder: &str) -> bool {
    folder == "configs" || folder.starts_with("configs.")
}

/// Whether files of this ending are pictures.
pub(super) fn is_picture(ending: &str) -> bool {
    matches!(ending, "svg" | "png" | "jpg" | "jpeg" | "gif" | "pdf")
}

/// Folders of settings of a machine or a lab that are no sets: nothing in them was measured.
const SETTINGS: &[&str] = &["config", "lab"];

/// Whether a folder of settings lies around a file: in a folder of results, or where no folder is called `results`.
/// Shape: the names of the folders around it.
fn is_among_settings(folders: &[Cow<'_, str>]) -> bool {
    let within = results_at(folders).map_or(0, |results| results + 2);
    let mut inner = folders.iter().skip(within);
    inner.any(|folder| SETTINGS.contains(&&**folder))
}

/// Whether a file is a backup, or hidden.
fn is_leftover(name: &str) -> bool {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    name.starts_with('.')
        || name.ends_with('~')
        || (name.starts_with('#') && name.ends_with('#'))
        || ["bak", "orig", "rej", "swp"].contains(&ending)
        || ["Thumbs.db", "desktop.ini"].contains(&name)
}

impl FileKind {
    /// What a file's path below the root says it is.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let mut folders: Vec<_> = names(path).collect();
        let Some(name) = folders.pop() else {
            return Self::Unnamed;
        };
        let is_in = |wanted: &str| folders.iter().any(|folder| folder == wanted);
        if is_leftover(&name) {
            return Self::Leftover;
        }
        if let Some(bench) = BenchName::parse(&name) {
            return Self::Bench(bench.role);
        }
        if is_in("pktgen.configs") {
            return Self::PktGenConfiguration;
        }
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        let ending = ending.to_ascii_lowercase();
        // A set may hold any file of a DUT.
        if folders.iter().any(|folder| is_configurations(folder)) && ending != "md" {
            return Self::Configuration;
        }
        match ending.as_str() {
            "pps" => Self::Dataset,
            _ if is_among_settings(&folders) && ending != "md" => Self::Configuration,
            "equilibrium" | "throughput" | "throughpt" => Self::EquilibriumValues,
            "max" if name.ends_with(".equilibrium.max") => Self::EquilibriumValues,
            "max" if name.ends_with(".data.max") => Self::Table,
            "data" => Self::Table,
            "md" | "markdown" => Self::Readme,
            "graph" => Self::Bench(Role::CallGraph),
            "stack" | "folded" => Self::Bench(Role::FoldedStacks),
            "txt" if name.ends_with(".folded.txt") => Self::Bench(Role::FoldedStacks),
            "txt" if name.split(['.', '-', '_']).any(|part| part == "netstat") => {
                Self::Bench(Role::DutCounters)
            }
            ending if is_picture(ending) => Self::Bench(Role::Picture),
            "out" => Self::Bench(Role::ProfileSamples),
            "plt" | "gnuplot" | "gp" => Self::PlotScript,
            "config" => Self::LabConfiguration,
            "sh" | "pl" | "py" | "awk" | "patch" | "diff" | "d" => Self::Program,
            _ if matches!(name.as_ref(), "LICENSE" | "LICENCE" | "COPYING") => Self::Licence,
            _ => Self::Unnamed,
        }
    }

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bench(Role::Info) => "description of a bench",
            Self::Bench(Role::Receiver) => "receiver's log",
            Self::Bench(Role::Sender(_)) => "sender's log",
            Self::Bench(Role::CallGraph) => "call graph",
            Self::Bench(Role::FoldedStacks) => "folded stacks",
            Self::Bench(Role::ProfileLog) => "profiler's log",
            Self::Bench(Role::ProfileSamples) => "profiler's samples",
            Self::Bench(Role::Picture) => "picture",
            Self::Bench(Role::DutCounters) => "counters of the DUT",
            Self::Dataset => "dataset",
            Self::EquilibriumValues => "values of equilibrium",
            Self::Table => "table for gnuplot",
            Self::PlotScript => "script for gnuplot",
            Self::Readme => "text",
            Self::MarkdownTable => "table in Markdown",
            Self::Configuration => "configuration of a DUT",
            Self::PktGenConfiguration => "configuration of the traffic",
            Self::LabConfiguration => "configuration of a lab",
            Self::Program => "program",
            Self::Licence => "licence",
            Self::Leftover => "left by a program",
            Self::Unnamed => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_folders_say_what_a_file_is() {
        for (path, kind) in [
            (
                "P/N/T/results/L/RAW/bench.x.1.receiver",
                FileKind::Bench(Role::Receiver),
            ),
            ("P/N/T/results/L/x.pps", FileKind::Dataset),
            ("P/N/T/results/L/291909.fastforwarding", FileKind::Unnamed),
            (
                "P/N/T/results/L/x.equilibrium.max",
                FileKind::EquilibriumValues,
            ),
            ("P/N/T/results/L/gnuplot.data.max", FileKind::Table),
            ("P/N/T/configs/x/etc/rc.conf", FileKind::Configuration),
            (
                "P/N/T/configs.vti/x/dut/etc/rc.conf",
                FileKind::Configuration,
            ),
            ("P/N/T/configs/README.md", FileKind::Readme),
            ("pktgen.configs/RFC2544/64", FileKind::PktGenConfiguration),
            ("P/N/bench-lab-2nodes.config", FileKind::LabConfiguration),
            ("P/N/T/results/L/x.svg", FileKind::Bench(Role::Picture)),
            ("LICENSE", FileKind::Licence),
            (
                "T/results/L/PMC/on/netstat.on.1.txt",
                FileKind::Bench(Role::DutCounters),
            ),
            (
                "T/results/L/bench.on.netstat.txt",
                FileKind::Bench(Role::DutCounters),
            ),
            (
                "T/results/L/PMC/on.folded.txt",
                FileKind::Bench(Role::FoldedStacks),
            ),
            ("T/results/L/prepatch.data", FileKind::Table),
            ("T/results/L/notes.txt", FileKind::Unnamed),
            // Settings beside results and in them, and results that are called so.
            ("T/config/ncpus", FileKind::Configuration),
            ("T/results/L/lab/1.data", FileKind::Configuration),
            ("lab/P/N/T/results/config/4", FileKind::Unnamed),
            ("T/lab/x.pps", FileKind::Dataset),
            ("T/lab/x.png", FileKind::Configuration),
            ("T/results/L/x.pps~", FileKind::Leftover),
            ("T/results/L/.bench.x.1.receiver.swp", FileKind::Leftover),
            ("T/results/L/#bench.x.1.receiver#", FileKind::Leftover),
            ("T/results/L/RAW/Thumbs.db", FileKind::Leftover),
            ("T/configs/x/etc/rc.conf.orig", FileKind::Leftover),
            ("", FileKind::Unnamed),
        ] {
            assert_eq!(FileKind::of(Path::new(path)), kind, "{path}");
        }
    }
}
