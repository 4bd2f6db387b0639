//! The results that the chore keeps: runs under `results/<experiment>/` with a label of their own.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

/// How the labels of these runs begin.
pub(super) const PREFIX: &str = "ready-";

/// What is to be done for a result.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// Nothing: it is there, under this label.
    Done(String),
    /// A run under this label, new or begun.
    Measure(String),
}

/// Whether an experiment still has to be measured under a label; asked for again, under a label with
/// the next number behind it.
///
/// # Errors
/// Its results cannot be looked through.
pub(super) fn next(results: &Path, label: &str, again: bool) -> Result<Next> {
    let mut newest = None;
    for number in 1_u32.. {
        let numbered = if number == 1 {
            label.to_owned()
        } else {
            format!("{label}-{number}")
        };
        let directory = results.join(&numbered);
        let exists = directory.try_exists();
        if !exists.with_context(|| directory.display().to_string())? {
            return Ok(match newest {
                Some(done) if !again => Next::Done(done),
                _ => Next::Measure(numbered),
            });
        }
        if !is_finished(&directory) {
            return Ok(Next::Measure(numbered));
        }
        newest = Some(numbered);
    }
    unreachable!("no folder holds as many")
}

/// The run that began last among the finished ones, of whatever code; none where there is none.
///
/// # Errors
/// The results cannot be read.
pub(super) fn newest(results: &Path) -> Result<Option<PathBuf>> {
    if !results.is_dir() {
        return Ok(None);
    }
    let mut newest: Option<(String, PathBuf)> = None;
    for entry in fs::read_dir(results).with_context(|| results.display().to_string())? {
        let entry = entry?;
        let directory = entry.path();
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if !is_ours || !is_finished(&directory) {
            continue;
        }
        let started = resolved(&directory)?["started"].as_str().map(str::to_owned);
        let started = started.with_context(|| format!("{}: no start", directory.display()))?;
        if newest.as_ref().is_none_or(|(other, _)| *other < started) {
            newest = Some((started, directory));
        }
    }
    Ok(newest.map(|(_, directory)| directory))
}

/// How each factor of a run was set, by its name.
///
/// # Errors
/// The run's record cannot be read.
pub(super) fn bindings(directory: &Path) -> Result<Value> {
    Ok(resolved(directory)?["experiment"]["lab"]["bindings"].take())
}

fn is_finished(directory: &Path) -> bool {
    directory.join("finished.json").is_file()
}

fn resolved(directory: &Path) -> Result<Value> {
    let path = directory.join("resolved.json");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(results: &Path, label: &str, started: &str, is_finished: bool) {
        let directory = results.join(label);
        fs::create_dir_all(&directory).unwrap();
        let resolved = format!(r#"{{"started": "{started}"}}"#);
        fs::write(directory.join("resolved.json"), resolved).unwrap();
        if is_finished {
            fs::write(directory.join("finished.json"), "{}").unwrap();
        }
    }

    #[test]
    fn a_run_is_made_once_gone_on_with_and_made_again_only_where_asked() {
        let results = tempfile::tempdir().unwrap();
        let results = results.path();
        let next = |again| next(results, "ready-1", again).unwrap();
        let measure = |label: &str| Next::Measure(label.into());
        assert_eq!(next(false), measure("ready-1"));
        run(results, "ready-1", "1", false);
        assert_eq!(next(false), measure("ready-1"));
        run(results, "ready-1", "1", true);
        assert_eq!(next(false), Next::Done("ready-1".into()));
        assert_eq!(next(true), measure("ready-1-2"));
        run(results, "ready-1-2", "2", false);
        assert_eq!(next(false), measure("ready-1-2"));
    }

    #[test]
    fn the_newest_finished_run_is_shown_whatever_its_code() {
        let results = tempfile::tempdir().unwrap();
        let results = results.path();
        assert_eq!(newest(&results.join("none")).unwrap(), None);
        assert_eq!(newest(results).unwrap(), None);
        run(results, "ready-b", "20261121T084253Z", true);
        run(results, "ready-a", "20261121T094253Z", true);
        run(results, "ready-c", "20261121T104253Z", false);
        run(results, "mine", "20261121T104253Z", true);
        assert_eq!(newest(results).unwrap(), Some(results.join("ready-a")));
    }
}
