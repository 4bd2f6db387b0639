//! `fwdlab analyze`.

use std::path::Path;

use fwdlab_archive::Loaded;
use fwdlab_model::{Comparison, VariantName};
use fwdlab_report::{CompareSettings, Report, render};

use crate::args::{AnalyzeArguments, FormArguments};
use crate::exit::{Code, WrongArguments};
use crate::output;
use crate::report;
use crate::results::{self, Directory};

pub(crate) fn analyze(arguments: &AnalyzeArguments) -> anyhow::Result<Code> {
    let directory = match results::find(&arguments.named)? {
        Directory::OfRun(directory) => directory,
        Directory::Imported(directory) => return imported(&directory, arguments),
    };
    let mut loaded = results::load(&directory)?;
    let design = &mut loaded.resolved.design;
    let asked = &arguments.verdicts;
    design.threshold_percent = asked.threshold.unwrap_or(design.threshold_percent);
    design.confidence_percent = asked.confidence.unwrap_or(design.confidence_percent);
    if let Some(baseline) = &arguments.baseline {
        loaded.resolved.comparisons = vec![against(&loaded, baseline)?];
    }
    let report = Report::build(&loaded)?;
    let form = FormArguments {
        json: arguments.json,
        markdown: false,
        summary: false,
    };
    let code = report::print(&report, None, form, &[])?;
    if arguments.methods && !arguments.json {
        let columns = output::terminal_columns();
        output::print(&render::methods(
            &report,
            columns,
            output::stdout_takes_colour(),
        ))?;
    }
    Ok(code)
}

/// Published results, judged as asked; what is compared with what is as their text has it.
fn imported(directory: &Path, arguments: &AnalyzeArguments) -> anyhow::Result<Code> {
    if let Some(baseline) = &arguments.baseline {
        let text = format!(
            "--baseline {baseline:?}: {} holds published results, whose published text fixes what is compared; for \
             other comparisons, give its files (*.pps) to `fwdlab compare`",
            directory.display()
        );
        return Err(WrongArguments(text).into());
    }
    let asked = &arguments.verdicts;
    let usual = CompareSettings::default();
    let settings = CompareSettings {
        confidence_percent: asked.confidence.unwrap_or(usual.confidence_percent),
        threshold_percent: asked.threshold.unwrap_or(usual.threshold_percent),
        with_methods: arguments.methods,
        ministat: None,
    };
    report::print_imported(&report::read_imported(directory, settings)?, arguments.json)
}

/// All other variants compared with one, which is given by its label or its name in files.
fn against(loaded: &Loaded, baseline: &str) -> Result<Comparison, WrongArguments> {
    let variants = &loaded.resolved.variants;
    let measured = || {
        variants
            .iter()
            .filter(|variant| variant.unavailable.is_none())
    };
    let baseline = measured()
        .find(|variant| variant.label == baseline || variant.name.as_str() == baseline)
        .ok_or_else(|| {
            let labels: Vec<String> = measured()
                .map(|variant| format!("{:?}", variant.label))
                .collect();
            WrongArguments(format!(
                "--baseline {baseline:?}: no variant of that name was measured; there are {}",
                labels.join(", ")
            ))
        })?;
    let others: Vec<VariantName> = measured()
        .filter(|variant| variant.name != baseline.name && variant.control_of.is_none())
        .map(|variant| variant.name.clone())
        .collect();
    Ok(Comparison {
        title: None,
        baseline: baseline.name.clone(),
        variants: others,
    })
}
