//! `fwdlab lint`.

use std::cmp::Reverse;
use std::env;
use std::fs;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fwdlab_archive::input::input;
use fwdlab_archive::lint::{
    BLOCK_CHANGED, CHAIN_BROKEN, Finding, Severity, lint_directory, search,
};
use fwdlab_archive::{Results, layout};
use fwdlab_netbenches::lint::{lint_imported, lint_tree};
use fwdlab_netbenches::{ArchiveTree, holds_bench};
use fwdlab_report::{Baseline, FindingsView, lint_imported_report, lint_report, render, rules};
use fwdlab_sys::Input;

use crate::args::{FailOn, LintArguments};
use crate::exit::{Code, DONE, GOAL_MISSED, WrongArguments};
use crate::output;

/// Some hundred thousand findings.
const BASELINE_BYTES_MAX: u64 = 256 << 20;

pub(crate) fn lint(arguments: &LintArguments) -> anyhow::Result<Code> {
    if let Some(code) = &arguments.explain {
        return explain(code);
    }
    let baseline = baseline(arguments)?;
    let mut roots = Vec::new();
    let mut directories = Vec::new();
    let mut imported = Vec::new();
    let mut findings = Vec::new();
    let mut published_folders = 0;
    for root in distinct_roots(arguments)? {
        let mut found = search(&root)?;
        found.directories.retain(|folder| !is_of_others(folder));
        found.imported.retain(|folder| !is_of_others(folder));
        let own = [found.directories.as_slice(), found.imported.as_slice()].concat();
        let published = lint_published(&root, &own)?;
        let is_empty = own.is_empty() && found.findings.is_empty();
        if is_empty && published.is_none() {
            return Err(WrongArguments(format!(
                "{}: there are no results below it; give a results directory, or a folder with some in it",
                root.display()
            ))
            .into());
        }
        roots.push(root);
        directories.extend(found.directories);
        imported.extend(found.imported);
        match published {
            // What cannot be read was met by both who looked for something there.
            Some((folders, of_published)) => {
                published_folders += folders;
                findings.extend(of_published);
            }
            None => findings.extend(found.findings),
        }
    }
    directories.sort();
    directories.dedup();
    for directory in &directories {
        let linted = lint_directory(directory);
        findings.extend(linted.findings);
        if let Some(loaded) = &linted.loaded {
            findings.extend(lint_report(loaded, &linted.published));
        }
    }
    imported.sort();
    imported.dedup();
    for directory in &imported {
        let linted = lint_imported(directory);
        findings.extend(linted.findings);
        if let Some((results, runs)) = &linted.loaded {
            let of_report = lint_imported_report(directory, results, runs, &linted.published);
            findings.extend(of_report);
        }
    }
    findings.retain(|finding| is_asked_for(arguments, finding.rule.code));
    sort(&mut findings);
    let compared = baseline.map(|baseline| baseline.compare(&findings, &roots));
    let new: Vec<&Finding> = match &compared {
        None => findings.iter().collect(),
        Some(compared) => {
            let known = findings.iter().zip(&compared.is_known);
            known
                .filter(|(_, known)| !**known)
                .map(|(finding, _)| finding)
                .collect()
        }
    };
    let is_failure = least_failing(arguments.fail_on)
        .is_some_and(|severity| new.iter().any(|finding| finding.rule.severity >= severity));
    let beside = (compared.as_ref().zip(arguments.baseline.as_ref()))
        .map(|(compared, path)| compared.sentence(path));
    let text = if arguments.json {
        render::findings_json(&findings, &roots, compared.as_ref())?
    } else if arguments.sarif {
        render::findings_sarif(&findings, compared.as_ref())?
    } else if arguments.github {
        render::findings_github(&new)
    } else {
        let view = FindingsView {
            width: output::terminal_columns(),
            colour: output::stdout_takes_colour(),
            all: arguments.all,
        };
        let looked_at = directories.len() + imported.len() + published_folders;
        render::findings(&new, looked_at, beside.as_deref(), view)
    };
    output::print(&text)?;
    if let Some(beside) = beside.filter(|_| is_for_programs(arguments)) {
        output::tell(&beside);
    }
    Ok(if is_failure { GOAL_MISSED } else { DONE })
}

/// The folders that were given, as they are seen from here; one inside another is looked at with it.
fn distinct_roots(arguments: &LintArguments) -> anyhow::Result<Vec<PathBuf>> {
    let mut roots: Vec<(PathBuf, PathBuf)> = Vec::new();
    for given in &arguments.directories {
        let root = if given.exists() {
            given.clone()
        } else {
            Results::find(&arguments.results, &given.to_string_lossy())?
        };
        let real = fs::canonicalize(&root).unwrap_or_else(|_| root.clone());
        if !roots.iter().any(|(other, _)| real.starts_with(other)) {
            roots.retain(|(other, _)| !other.starts_with(&real));
            roots.push((real, as_seen_from_here(&root)));
        }
    }
    Ok(roots.into_iter().map(|(_, root)| root).collect())
}

fn is_for_programs(arguments: &LintArguments) -> bool {
    arguments.json || arguments.sarif || arguments.github
}

/// The findings that are known.
fn baseline(arguments: &LintArguments) -> anyhow::Result<Option<Baseline>> {
    let Some(path) = &arguments.baseline else {
        return Ok(None);
    };
    let wrong = |why: String| WrongArguments(format!("--baseline {}: {why}", path.display()));
    let json = Input::file_or_stream(path, BASELINE_BYTES_MAX)
        .text()
        .map_err(|error| wrong(error.to_string()))?;
    let baseline = Baseline::parse(&json, |code| is_asked_for(arguments, code));
    Ok(Some(baseline.map_err(|error| wrong(error.to_string()))?))
}

/// Whether a folder holds the logs of a bench, and none of the files that tell that we wrote it: one of their names alone
/// does not make what lies around it ours.
fn is_of_others(folder: &Path) -> bool {
    let is_ours = |name: &str| {
        let text = input(folder, &folder.join(name)).text();
        text.is_ok_and(|text| text.starts_with('{') && text.contains("\"schema\""))
    };
    let names = [layout::RESOLVED, layout::TRIALS, layout::IMPORTED];
    holds_bench(folder) && !names.into_iter().any(is_ours)
}

/// What others have published below a folder, beside our own results: how many folders of results, and what was
/// found; none where there are none.
fn lint_published(root: &Path, own: &[PathBuf]) -> anyhow::Result<Option<(usize, Vec<Finding>)>> {
    // The program is about to end: giving back millions of pieces of memory one by one would only take time.
    let tree = ManuallyDrop::new(
        ArchiveTree::read_without(root, own)
            .with_context(|| format!("{}: cannot be listed", root.display()))?,
    );
    Ok((!tree.folders.is_empty()).then(|| (tree.folders.len(), lint_tree(&tree))))
}

/// A path below the working directory is shown relative to it, as annotations and links have to be.
fn as_seen_from_here(path: &Path) -> PathBuf {
    let here = env::current_dir().unwrap_or_default();
    match path.strip_prefix(&here) {
        Ok(inside) if inside.as_os_str().is_empty() => PathBuf::from("."),
        Ok(inside) => inside.to_owned(),
        Err(_) => path.to_owned(),
    }
}

fn is_asked_for(arguments: &LintArguments, code: &str) -> bool {
    let is_one_of = |codes: &[String]| codes.iter().any(|begin| code.starts_with(begin));
    (arguments.only.is_empty() || is_one_of(&arguments.only)) && !is_one_of(&arguments.skip)
}

/// By directory, the worst first, then by code and place. Records that changed come first: what follows from them is of no
/// use before they are brought back.
fn sort(findings: &mut [Finding]) {
    findings.sort_by(|one, other| {
        let key = |finding: &Finding| {
            let rule = finding.rule;
            let is_of_records = [BLOCK_CHANGED.code, CHAIN_BROKEN.code].contains(&rule.code);
            (Reverse(rule.severity), !is_of_records, rule.code)
        };
        (one.directory.cmp(&other.directory))
            .then_with(|| key(one).cmp(&key(other)))
            .then_with(|| place(one).cmp(&place(other)))
    });
}

/// Where what was found stands.
fn place(finding: &Finding) -> Option<(&Path, Option<usize>)> {
    let first = finding.evidence.first()?;
    Some((&first.path, first.line))
}

/// The least severity that is a failure.
fn least_failing(fail_on: FailOn) -> Option<Severity> {
    match fail_on {
        FailOn::Error => Some(Severity::Error),
        FailOn::Warning => Some(Severity::Warning),
        FailOn::Note => Some(Severity::Note),
        FailOn::Never => None,
    }
}

fn explain(code: &str) -> anyhow::Result<Code> {
    let columns = output::terminal_columns();
    let rules = rules()
        .into_iter()
        .filter(|rule| rule.code.starts_with(code));
    let texts: Vec<String> = rules
        .map(|rule| render::explanation(rule, columns))
        .collect();
    output::print(&texts.join("\n"))
}
