//! The README.md of results in the public archive's form.

use std::fmt::Write as _;

use fwdlab_archive::Loaded;
use fwdlab_model::{Stratum, VariantName};
use fwdlab_netbenches::export::{Dataset as Exported, Export};
use fwdlab_stats::ministat::{Confidence, Dataset, Dialect};

use crate::error::ReportError;
use crate::judge::ministat_blocks;
use crate::text::{code, fenced, markdown, markdown_lines, table};

/// What is not in the folder although the archive's own have it, and what is there instead.
const NOTE: &str = "\
Measured by fwdlab, not by the archive's scripts: there are no logs of pkt-gen, because none was run. Each \
line of a `.pps` file is a block, a fresh set-up in which every variant was measured; `RAW` holds the \
slices of each block as fwdlab records them (docs/results-format.md), frames and seconds of all variants in \
the order in which they were measured. Same lines of different `.pps` files are of the same block. ministat \
takes them for independent samples; the verdicts of fwdlab, which compare within blocks, are in its own \
report.";

/// The README.md of results that are exported in the public archive's form.
///
/// # Errors
/// [`ReportError::Ministat`].
pub fn readme(run: &Loaded, export: &Export) -> Result<String, ReportError> {
    let resolved = &run.resolved;
    let mut text = format!("# {}\n\n", markdown(&resolved.question));
    if let Some(background) = &resolved.background {
        let _ = writeln!(text, "{}\n", markdown_lines(background));
    }
    let _ = writeln!(text, "{NOTE}\n");
    if let Some(session) = run.sessions.last() {
        let environment = &session.environment;
        let _ = writeln!(text, "- CPU: {}", markdown(&environment.cpu_model));
        let _ = writeln!(text, "- kernel: {}", markdown(&environment.kernel));
        let _ = writeln!(
            text,
            "- lab: {} ({}), load {}",
            markdown(&resolved.lab.name),
            resolved.lab.kind,
            run.regime()
        );
        let _ = writeln!(text, "- start: {}\n", markdown(&session.start));
    }
    let rows = export.datasets.iter().filter_map(|dataset| {
        let variant = resolved.variant(&dataset.variant)?;
        let levels = variant.levels.iter();
        let levels: Vec<String> = levels
            .map(|(factor, level)| markdown(&format!("{factor}={level}")))
            .collect();
        Some(vec![
            code(&dataset.file_name()),
            markdown(&variant.label),
            levels.join(", "),
        ])
    });
    text += &table("file | variant | levels", rows);
    for comparison in &resolved.comparisons {
        for stratum in resolved.strata() {
            let dataset = |variant: &VariantName| dataset(export, variant, stratum);
            let Some(baseline) = dataset(&comparison.baseline) else {
                continue;
            };
            let others: Vec<Dataset> = comparison.variants.iter().filter_map(dataset).collect();
            if others.is_empty() {
                continue;
            }
            let heading = match &comparison.title {
                Some(title) => format!("{}, {}", markdown(title), stratum.label()),
                None => stratum.label(),
            };
            let _ = write!(text, "\n## {heading}\n");
            let confidence = Confidence::Percent95;
            for block in ministat_blocks(&baseline, &others, confidence, Dialect::default())? {
                let _ = write!(text, "\n{}", fenced(&block));
            }
        }
    }
    Ok(text)
}

/// What ministat makes of a file; none where it has fewer than three lines.
fn dataset(export: &Export, variant: &VariantName, stratum: Stratum) -> Option<Dataset> {
    let of = |dataset: &&Exported| dataset.variant == *variant && dataset.stratum == stratum;
    let found = export.datasets.iter().find(of)?;
    Dataset::new(found.file_name(), found.observations_pps.clone()).ok()
}
