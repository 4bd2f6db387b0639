//! `fwdlab report`, and what a run publishes at its end.

use std::path::Path;

use fwdlab_archive::{Loaded, Results, is_imported, load_imported, write_derived, write_readme};
use fwdlab_report::{CompareSettings, ImportedReport, Report, render};

use crate::args::ReportArguments;
use crate::exit::Code;
use crate::output;

pub(crate) fn report(arguments: &ReportArguments) -> anyhow::Result<Code> {
    let directory = Path::new(&arguments.directory);
    if is_imported(directory) {
        return imported(directory, arguments.json);
    }
    let directory = Results::find(&arguments.results, &arguments.directory)?;
    let report = publish(&Results::load(&directory)?)?;
    print(&report, Some(&directory), arguments.json)
}

/// Writes README.md of imported results.
fn imported(directory: &Path, json: bool) -> anyhow::Result<Code> {
    let (results, runs) = load_imported(directory)?;
    let report = ImportedReport::build(&results, &runs, CompareSettings::default());
    let readme = report.readme();
    write_readme(directory, readme.as_bytes())?;
    if json {
        return output::print(&(serde_json::to_string_pretty(&report)? + "\n"));
    }
    output::print(&format!(
        "{}: written\n",
        directory.join("README.md").display()
    ))
}

/// Writes README.md, the plots and report.json from the records.
pub(crate) fn publish(loaded: &Loaded) -> anyhow::Result<Report> {
    let report = Report::build(loaded)?;
    for (name, text) in render::derived_files(&report, loaded)? {
        write_derived(&loaded.dir, &name, text.as_bytes())?;
    }
    write_readme(&loaded.dir, render::readme(&report, "derived/").as_bytes())?;
    Ok(report)
}

/// Prints a report for people, or for programs; `directory` is where it was published, if it was.
pub(crate) fn print(report: &Report, directory: Option<&Path>, json: bool) -> anyhow::Result<Code> {
    if json {
        return output::print(&render::json(report)?);
    }
    let readme = directory.map(|directory| directory.join("README.md"));
    let columns = output::terminal_columns();
    output::print(&render::terminal(
        report,
        readme.as_deref(),
        columns,
        output::stdout_takes_colour(),
    ))
}
