//! `fwdlab import`: published results of others as records of ours, and their labs as ours.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::mem::ManuallyDrop;
use std::path::Path;

use anyhow::Context as _;
use fwdlab_model::imported::DatasetOrigin;
use fwdlab_netbenches::{ArchiveTree, ImportAccount, Outcome, write_import};
use fwdlab_report::format::{count, counted};
use fwdlab_report::one_line;
use serde::Serialize;

use crate::args::{ImportArguments, ImportCommand};
use crate::bench_lab;
use crate::exit::{Code, GOAL_MISSED, WrongArguments};
use crate::output;

/// How many files are printed that are wrong or were read in part; all of them are in `files.jsonl`.
const PROBLEMS_SHOWN: usize = 20;

pub(crate) fn import(command: &ImportCommand) -> anyhow::Result<Code> {
    match command {
        ImportCommand::Netbenches(arguments) => netbenches(arguments),
        ImportCommand::BenchLab(arguments) => bench_lab::import(arguments),
    }
}

fn netbenches(arguments: &ImportArguments) -> anyhow::Result<Code> {
    let root = &arguments.directory;
    refuse_inside(root, &arguments.results, "--results")?;
    let tree = ArchiveTree::read(root)
        .with_context(|| format!("{}: cannot be listed; give a folder", root.display()))
        .map_err(|error| anyhow::Error::new(WrongArguments(format!("{error:#}"))))?;
    // The program is about to end: giving back millions of pieces of memory one by one would only take time.
    let tree = ManuallyDrop::new(tree);
    let account = write_import(&arguments.results, &tree)?;
    let summary = Summary::new(&tree, account);
    let code = output::print(&if arguments.json {
        serde_json::to_string_pretty(&summary)? + "\n"
    } else {
        summary.text(&tree, arguments)
    })?;
    Ok(if tree.folders.is_empty() {
        GOAL_MISSED
    } else {
        code
    })
}

/// What is written there would be read by the next import.
pub(crate) fn refuse_inside(root: &Path, out: &Path, option: &str) -> anyhow::Result<()> {
    if is_inside(root, out) {
        return Err(anyhow::Error::new(WrongArguments(format!(
            "{}: lies in the archive that is read; give a folder elsewhere with {option}",
            out.display()
        ))));
    }
    Ok(())
}

/// Whether a path, which need not be there yet, is in a folder or is that folder.
fn is_inside(folder: &Path, path: &Path) -> bool {
    let (Ok(folder), Ok(path)) = (folder.canonicalize(), std::path::absolute(path)) else {
        return false;
    };
    let existing = path.ancestors().find_map(|path| path.canonicalize().ok());
    existing.is_some_and(|path| path.starts_with(folder))
}

/// What was imported, in numbers.
#[derive(Serialize)]
struct Summary {
    #[serde(flatten)]
    account: ImportAccount,
    /// Files by kind.
    kinds: BTreeMap<&'static str, usize>,
    /// Files that were left, by reason.
    skipped: BTreeMap<String, usize>,
    /// Datasets by where their numbers are from.
    datasets: Datasets,
}

/// Datasets by where their numbers are from.
#[derive(Default, Serialize)]
struct Datasets {
    /// The logs of that name give them, digit for digit.
    from_logs: usize,
    /// Logs of another name do.
    renamed: usize,
    /// The logs of that name give something else.
    altered: usize,
    /// There are no logs.
    without_logs: usize,
}

impl Summary {
    fn new(tree: &ArchiveTree, account: ImportAccount) -> Self {
        let (mut kinds, mut skipped) = (BTreeMap::new(), BTreeMap::new());
        for file in &tree.files {
            *kinds.entry(file.kind.as_str()).or_default() += 1;
            if let Outcome::Skipped(skip) = file.outcome {
                *skipped.entry(skip.to_string()).or_default() += 1;
            }
        }
        let mut datasets = Datasets::default();
        for dataset in tree.folders.iter().flat_map(|folder| &folder.datasets) {
            *match dataset.origin {
                DatasetOrigin::Logs => &mut datasets.from_logs,
                DatasetOrigin::OtherLogs => &mut datasets.renamed,
                DatasetOrigin::Altered => &mut datasets.altered,
                DatasetOrigin::NoLogs => &mut datasets.without_logs,
            } += 1;
        }
        Self {
            account,
            kinds,
            skipped,
            datasets,
        }
    }

    fn text(&self, tree: &ArchiveTree, arguments: &ImportArguments) -> String {
        let mut text = String::new();
        let files = &self.account.files;
        let all = files.read + files.read_in_part + files.skipped + files.failed;
        let _ = writeln!(
            text,
            "{}: {} read, {} read in part, {} left, {} wrong",
            counted(all as u64, "file"),
            count(files.read as u64),
            count(files.read_in_part as u64),
            count(files.skipped as u64),
            count(files.failed as u64)
        );
        for (reason, files) in &self.skipped {
            let _ = writeln!(text, "  left {}: {reason}", count(*files as u64));
        }
        let problems = tree.files.iter().filter_map(|file| match &file.outcome {
            Outcome::Failed(problem) => Some(("wrong", file, problem.clone())),
            _ => Some(("in part", file, file.left_out()?)),
        });
        for (word, file, problem) in problems.clone().take(PROBLEMS_SHOWN) {
            let line = problem
                .line
                .map_or_else(String::new, |line| format!(":{line}"));
            let path = file.path.display().to_string();
            let message = one_line(&problem.whole());
            let _ = writeln!(text, "  {word}: {}{line}: {message}", one_line(&path));
        }
        let more = problems.count().saturating_sub(PROBLEMS_SHOWN);
        if more > 0 {
            let _ = writeln!(text, "  and {more} more; all files are in files.jsonl");
        }
        let datasets = &self.datasets;
        let _ = writeln!(
            text,
            "{} in {}\n\
             {} that logs give digit for digit, {} of them under another name; \
             {} that logs do not give; {} without logs",
            counted(self.account.runs as u64, "run"),
            counted(self.account.folders as u64, "results folder"),
            counted((datasets.from_logs + datasets.renamed) as u64, "dataset"),
            count(datasets.renamed as u64),
            count(datasets.altered as u64),
            count(datasets.without_logs as u64)
        );
        let _ = writeln!(text, "written to {}", arguments.results.display());
        if self.account.folders == 0 {
            text += "there is no folder of results in it\n";
        } else if datasets.altered > 0 {
            let directory = arguments.directory.display();
            let _ = writeln!(text, "what was altered: fwdlab lint {directory}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn paths_that_are_not_there_yet_are_inside_as_well() {
        let scratch = tempfile::tempdir().unwrap();
        let archive = scratch.path().join("archive");
        fs::create_dir_all(archive.join("P")).unwrap();
        fs::create_dir(scratch.path().join("archive-2")).unwrap();
        symlink(&archive, scratch.path().join("link")).unwrap();
        for (path, expected) in [
            ("archive", true),
            ("archive/P", true),
            ("archive/new/newer", true),
            ("archive-2/../archive/new", true),
            ("link/new", true),
            ("archive-2", false),
            ("archive-3/new", false),
            ("", false),
        ] {
            let path = scratch.path().join(path);
            assert_eq!(is_inside(&archive, &path), expected, "{}", path.display());
        }
        assert!(is_inside(Path::new("."), Path::new("new/newer")));
        assert!(!is_inside(&archive, Path::new("new")));
        assert!(!is_inside(&archive.join("missing"), &archive));
    }
}
