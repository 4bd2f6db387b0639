//! A report as files and as text; the same report gives the same bytes.

use std::collections::BTreeMap;

use fwdlab_archive::Loaded;

use crate::error::ReportError;
use crate::gate::GateResult;
use crate::json::pretty;
use crate::page;
use crate::profiles::{ProfileEvidence, flame_graphs};
use crate::report::Report;
use crate::summary::Summary;

pub use crate::catalogue::{SERIES_MAX, listing, passed_over, rates, selected, series, series_svg};
pub use crate::comment::{comment, compared_comment};
pub use crate::distributions_plot::distributions_svg;
pub use crate::effects_plot::{effects_svg, traffic_svg};
pub use crate::findings::{
    explanation, github as findings_github, json as findings_json, sarif as findings_sarif,
    terminal as findings,
};
pub use crate::json::pretty as json;
pub use crate::netbenches::readme as netbenches_readme;
pub use crate::preview_text::text as preview;
pub use crate::readme::readme;
pub use crate::terminal::{compared, imported, methods, terminal, warnings};
pub use crate::trials_plot::trials_svg;

/// What `fwdlab report --summary` prints, with what became of the conditions that the run was held against.
///
/// # Errors
/// [`ReportError::Json`].
pub fn summary(report: &Report, conditions: &[GateResult]) -> Result<String, ReportError> {
    pretty(&Summary::new(report, conditions))
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
    for section in &report.traffic_effects {
        files.insert(section.plot.clone(), traffic_svg(report, section));
    }
    let flame_graphs = flame_graphs(report, evidence);
    let pictures = flame_graphs.iter();
    files.extend(pictures.filter_map(|graph| Some((graph.file.clone(), graph.svg()?))));
    let page = page::page(report, loaded, &flame_graphs)?;
    files.insert("report.html".to_owned(), page);
    Ok(files)
}
