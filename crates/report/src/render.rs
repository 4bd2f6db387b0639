//! A report as files and as text; the same report gives the same bytes.

use std::collections::BTreeMap;
use std::path::Path;

use fwdlab_archive::Loaded;
use fwdlab_archive::catalogue::{Over, Problem, RateRow, ResultsRow, Series, Table};
use fwdlab_archive::export::Export;
use fwdlab_archive::lint::{Finding, Rule};

use crate::audit::AuditReport;
use crate::catalogue;
use crate::compare::CompareReport;
use crate::error::ReportError;
use crate::gate::GateResult;
use crate::imported::ImportedReport;
use crate::json::pretty;
use crate::page;
use crate::preview::{self, Preview};
use crate::profiles::{ProfileEvidence, flame_graphs};
use crate::report::{ComparisonSection, Report};
use crate::summary::Summary;

/// `README.md`; `plots` is the folder of the plots as seen from it: `""` or `"derived/"`.
#[must_use]
pub fn readme(report: &Report, plots: &str) -> String {
    crate::readme::readme(report, plots)
}

/// The plot of one comparison's effects; [`ComparisonSection::plot`] is its file's name.
#[must_use]
pub fn effects_svg(report: &Report, comparison: &ComparisonSection) -> String {
    crate::effects_plot::effects_plot(report, comparison)
}

/// `trials.svg`: every trial in time order.
#[must_use]
pub fn trials_svg(report: &Report) -> String {
    crate::trials_plot::trials_plot(report)
}

/// `distributions.svg`: how the trials of each variant are distributed.
#[must_use]
pub fn distributions_svg(report: &Report) -> String {
    crate::distributions_plot::distributions_plot(report)
}

/// `report.json`.
///
/// # Errors
/// [`ReportError::Json`].
pub fn json(report: &Report) -> Result<String, ReportError> {
    pretty(report)
}

/// What `fwdlab report --summary` prints, with what became of the conditions that the run was held against.
///
/// # Errors
/// [`ReportError::Json`].
pub fn summary(report: &Report, conditions: &[GateResult]) -> Result<String, ReportError> {
    pretty(&Summary::new(report, conditions))
}

/// A comment on a run for a pull request, in Markdown.
#[must_use]
pub fn comment(report: &Report, conditions: &[GateResult]) -> String {
    crate::comment::of_report(report, conditions)
}

/// A comment on a comparison, likewise.
#[must_use]
pub fn compared_comment(report: &CompareReport, conditions: &[GateResult]) -> String {
    crate::comment::of_comparison(report, conditions)
}

/// What `fwdlab plan` prints, for a terminal of `width` columns.
#[must_use]
pub fn preview(preview: &Preview, width: usize) -> String {
    preview::text(preview, width)
}

/// What `fwdlab plan --json` prints.
///
/// # Errors
/// [`ReportError::Json`].
pub fn preview_json(preview: &Preview) -> Result<String, ReportError> {
    pretty(preview)
}

/// What a run prints at its end, for a terminal of `width` columns; `readme` is where the README
/// was written, if it was: then warnings are summed up, a line for each cause.
#[must_use]
pub fn terminal(report: &Report, readme: Option<&Path>, width: usize, colour: bool) -> String {
    crate::terminal::terminal(report, readme, width, colour)
}

/// What `fwdlab show --warnings` prints, for a terminal of `width` columns.
#[must_use]
pub fn warnings(report: &Report, width: usize, colour: bool) -> String {
    crate::terminal::warnings(report, width, colour)
}

/// What every method makes of the blocks of a run, for a terminal of `width` columns.
#[must_use]
pub fn methods(report: &Report, width: usize, colour: bool) -> String {
    crate::terminal::methods(report, width, colour)
}

/// What `fwdlab compare` prints, for a terminal of `width` columns.
#[must_use]
pub fn compared(report: &CompareReport, width: usize, colour: bool) -> String {
    crate::terminal::compared(report, width, colour)
}

/// What `fwdlab show` and `fwdlab analyze` print of imported results, for a terminal of `width` columns.
#[must_use]
pub fn imported(report: &ImportedReport, width: usize, colour: bool) -> String {
    crate::terminal::imported(report, width, colour)
}

/// What `fwdlab compare --json` prints.
///
/// # Errors
/// [`ReportError::Json`].
pub fn compared_json(report: &CompareReport) -> Result<String, ReportError> {
    pretty(report)
}

/// What `fwdlab lint` prints; `directories` is how many were looked at.
///
/// Shape: findings of a directory stand together.
#[must_use]
pub fn findings(findings: &[Finding], directories: usize, colour: bool) -> String {
    crate::findings::terminal(findings, directories, colour)
}

/// What `fwdlab lint --json` prints: one array, see `docs/lint.md`.
///
/// # Errors
/// [`ReportError::Json`].
pub fn findings_json(findings: &[Finding]) -> Result<String, ReportError> {
    crate::findings::json(findings)
}

/// What `fwdlab lint --sarif` prints: a log of SARIF 2.1.0.
///
/// # Errors
/// [`ReportError::Json`].
pub fn findings_sarif(findings: &[Finding]) -> Result<String, ReportError> {
    crate::findings::sarif(findings)
}

/// What `fwdlab lint --github` prints: a workflow command a finding.
#[must_use]
pub fn findings_github(findings: &[Finding]) -> String {
    crate::findings::github(findings)
}

/// What `fwdlab lint --explain` prints of a rule, for a terminal of `width` columns.
#[must_use]
pub fn explanation(rule: &Rule, width: usize) -> String {
    crate::findings::explanation(rule, width)
}

/// What `fwdlab audit` prints, for a terminal of `width` columns.
#[must_use]
pub fn audited(report: &AuditReport, width: usize, colour: bool) -> String {
    crate::audit::terminal(report, width, colour)
}

/// What `fwdlab audit --json` prints, and `audit.json`.
///
/// # Errors
/// [`ReportError::Json`].
pub fn audited_json(report: &AuditReport) -> Result<String, ReportError> {
    pretty(report)
}

/// What `fwdlab ls` prints; lines are cut at `width` columns, where there is one.
#[must_use]
pub fn listing(results: &[ResultsRow], problems: &[Problem], width: Option<usize>) -> String {
    catalogue::listing(results, problems, width)
}

/// What `fwdlab query` tells of a directory that it passed over, on one line.
#[must_use]
pub fn passed_over(problem: &Problem) -> String {
    catalogue::passed_over(problem)
}

/// What `fwdlab query` prints; lines are cut at `width` columns, where there is one.
#[must_use]
pub fn rates(rates: &[RateRow], width: Option<usize>) -> String {
    catalogue::rates(rates, width)
}

/// What `fwdlab query --over` prints; lines are cut at `width` columns, where there is one.
#[must_use]
pub fn series(all: &[Series], width: Option<usize>) -> String {
    catalogue::series(all, width)
}

/// What `fwdlab query --sql` prints; lines are cut at `width` columns, where there is one.
#[must_use]
pub fn selected(selected: &Table, width: Option<usize>) -> String {
    catalogue::selected(selected, width)
}

/// How many series a plot can tell apart.
pub const SERIES_MAX: usize = catalogue::SERIES_MAX;

/// The plot of `fwdlab query --svg`, at most [`SERIES_MAX`] series in each address family.
#[must_use]
pub fn series_svg(all: &[Series], over: Over) -> String {
    catalogue::plot(all, over)
}

/// The README.md of results that are exported in the public archive's form.
///
/// # Errors
/// [`ReportError::Ministat`].
pub fn netbenches_readme(run: &Loaded, export: &Export) -> Result<String, ReportError> {
    crate::netbenches::readme(run, export)
}

/// Builds a report, and the files of `derived/` with it: quicker than one after the other, as profiles are
/// read and compared once.
///
/// # Errors
/// Those of [`Report::build`] and [`derived_files`].
pub fn publish(loaded: &Loaded) -> Result<(Report, BTreeMap<String, String>), ReportError> {
    let evidence = ProfileEvidence::read(loaded);
    let report = Report::with_evidence(loaded, evidence.as_ref())?;
    let files = files(&report, loaded, evidence.as_ref())?;
    Ok((report, files))
}

/// The files of `derived/` by their names: README.md, report.html, report.json and the plots; `loaded` is what the report
/// was built from.
///
/// # Errors
/// [`ReportError::Json`].
pub fn derived_files(
    report: &Report,
    loaded: &Loaded,
) -> Result<BTreeMap<String, String>, ReportError> {
    files(report, loaded, ProfileEvidence::read(loaded).as_ref())
}

fn files(
    report: &Report,
    loaded: &Loaded,
    evidence: Option<&ProfileEvidence<'_>>,
) -> Result<BTreeMap<String, String>, ReportError> {
    let mut files = BTreeMap::from([
        ("README.md".to_owned(), readme(report, "")),
        ("report.json".to_owned(), json(report)?),
        ("trials.svg".to_owned(), trials_svg(report)),
        ("distributions.svg".to_owned(), distributions_svg(report)),
    ]);
    for comparison in &report.comparisons {
        files.insert(comparison.plot.clone(), effects_svg(report, comparison));
    }
    let flame_graphs = flame_graphs(report, evidence);
    let pictures = flame_graphs.iter();
    files.extend(pictures.filter_map(|graph| Some((graph.file.clone(), graph.svg()?))));
    let page = page::page(report, loaded, &flame_graphs)?;
    files.insert("report.html".to_owned(), page);
    Ok(files)
}
