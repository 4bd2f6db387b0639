//! `fwdlab analyze`.

use fwdlab_archive::{Loaded, Results};
use fwdlab_model::{Comparison, VariantName};
use fwdlab_report::{Report, render};

use crate::args::{AnalyzeArguments, FormArguments};
use crate::exit::{Code, WrongArguments};
use crate::output;
use crate::report;

pub(crate) fn analyze(arguments: &AnalyzeArguments) -> anyhow::Result<Code> {
    let directory = Results::find(&arguments.results, &arguments.directory)?;
    let mut loaded = Results::load(&directory)?;
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
