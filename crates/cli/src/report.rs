//! `fwdlab report`, and what a run publishes at its end.

use std::path::Path;

use fwdlab_archive::{Loaded, Results, write_derived, write_readme};
use fwdlab_netbenches::load_imported;
use fwdlab_report::{CompareSettings, GateResult, ImportedReport, Report, render};

use crate::args::{FormArguments, ReportArguments};
use crate::exit::{Code, WrongArguments};
use crate::gate;
use crate::output;
use crate::results::{self, Directory};

pub(crate) fn report(arguments: &ReportArguments) -> anyhow::Result<Code> {
    let directory = match results::find(&arguments.named)? {
        Directory::OfRun(directory) => directory,
        Directory::Imported(directory) => return imported(&directory, arguments),
    };
    let gates = &arguments.gates.fail_on;
    let (mut loaded, objection) = if gates.is_empty() {
        (results::load(&directory)?, None)
    } else {
        (Results::load(&directory)?, gate::objection(&directory))
    };
    let report = match &objection {
        // What was published of the right records stays.
        Some(objection) if objection.is_grave => Report::build(&loaded)?,
        _ => publish(&loaded)?,
    };
    let mut results = gate::hold(gates, &mut loaded, &report)?;
    for (result, objection) in results.iter_mut().zip(objection.iter().cycle()) {
        result.fail(objection.text.clone());
    }
    print(&report, Some(&directory), arguments.form, &results)?;
    Ok(gate::conclude(&results))
}

/// Writes README.md of imported results.
fn imported(directory: &Path, arguments: &ReportArguments) -> anyhow::Result<Code> {
    let form = arguments.form;
    if form.markdown || form.summary || !arguments.gates.fail_on.is_empty() {
        let text = format!(
            "{}: published results have verdicts of several kinds; --markdown, --summary and --fail-on are for \
             results of `fwdlab run`",
            directory.display()
        );
        return Err(WrongArguments(text).into());
    }
    let report = read_imported(directory, CompareSettings::default())?;
    for (name, plot) in report.plots() {
        write_derived(directory, &name, plot.as_bytes())?;
    }
    let readme = report.readme();
    write_readme(directory, readme.as_bytes())?;
    if form.json {
        return print_imported(&report, true);
    }
    output::print(&format!(
        "{}: written\n",
        directory.join("README.md").display()
    ))
}

pub(crate) fn read_imported(
    directory: &Path,
    settings: CompareSettings,
) -> anyhow::Result<ImportedReport> {
    let (results, runs) = load_imported(directory)?;
    Ok(ImportedReport::build(&results, &runs, settings))
}

pub(crate) fn print_imported(report: &ImportedReport, is_json: bool) -> anyhow::Result<Code> {
    if is_json {
        return output::print(&(serde_json::to_string_pretty(report)? + "\n"));
    }
    let columns = output::terminal_columns();
    output::print(&render::imported(
        report,
        columns,
        output::stdout_takes_colour(),
    ))
}

/// Writes README.md, the plots and report.json from the records.
pub(crate) fn publish(loaded: &Loaded) -> anyhow::Result<Report> {
    let (report, files) = render::publish(loaded)?;
    for (name, text) in files {
        write_derived(&loaded.dir, &name, text.as_bytes())?;
    }
    write_readme(&loaded.dir, render::readme(&report, "derived/").as_bytes())?;
    Ok(report)
}

/// Prints a report for people, or for programs; `directory` is where it was published, if it was, `results`
/// what became of the conditions that it was held against.
pub(crate) fn print(
    report: &Report,
    directory: Option<&Path>,
    form: FormArguments,
    results: &[GateResult],
) -> anyhow::Result<Code> {
    if form.json {
        return output::print(&render::json(report)?);
    }
    if form.summary {
        return output::print(&render::summary(report, results)?);
    }
    if form.markdown {
        return output::print(&render::comment(report, results));
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
