//! `fwdlab compare`.

use std::path::{Path, PathBuf};

use fwdlab_archive::{Loaded, Results};
use fwdlab_model::{AddressFamily, VariantName};
use fwdlab_report::{
    CompareReport, CompareSettings, Observations, ReportError, compare_blocks, compare_directories,
    compare_independent, compare_pairs, render,
};
use fwdlab_stats::VerdictSettings;

use crate::args::CompareArguments;
use crate::dataset::{self, Column};
use crate::exit::{Code, WrongArguments};
use crate::output;

pub(crate) fn compare(arguments: &CompareArguments) -> anyhow::Result<Code> {
    // What the statistics refuse is what the user gave.
    let report = compared(arguments).map_err(|error| match error.downcast::<ReportError>() {
        Ok(refusal) => WrongArguments(refusal.to_string()).into(),
        Err(error) => error,
    })?;
    if arguments.json {
        return output::print(&render::compared_json(&report)?);
    }
    let columns = output::terminal_columns();
    output::print(&render::compared(
        &report,
        columns,
        output::stdout_takes_colour(),
    ))
}

fn compared(arguments: &CompareArguments) -> anyhow::Result<CompareReport> {
    let asked = &arguments.verdicts;
    let usual = VerdictSettings::default();
    let settings = CompareSettings {
        confidence_percent: asked.confidence.unwrap_or(usual.confidence * 100.0),
        threshold_percent: asked.threshold.unwrap_or(usual.practical_threshold * 100.0),
        with_ministat: arguments.ministat,
    };
    let sources = &arguments.sources;
    let directories = sources.iter().filter(|source| source.is_dir()).count();
    if directories == sources.len() {
        if arguments.paired {
            let text = "--paired: results directories are of different runs, whose blocks do not belong \
                        together; leave it out";
            return Err(WrongArguments(text.to_owned()).into());
        }
        let loaded = sources
            .iter()
            .map(|source| Ok((source.display().to_string(), Results::load(source)?)))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let loaded: Vec<(String, &Loaded)> = loaded
            .iter()
            .map(|(path, loaded)| (path.clone(), loaded))
            .collect();
        return Ok(compare_directories(&loaded, settings)?);
    }
    if directories > 0 {
        let text = "files and results directories cannot be compared with each other; of a directory \
                    give the files (*.pps)";
        return Err(WrongArguments(text.to_owned()).into());
    }
    if let Some((loaded, family, variants)) = of_one_run(sources)? {
        return Ok(compare_blocks(&loaded, family, &variants, settings)?);
    }
    let column = Column::of(&arguments.column);
    let labels = labels(sources);
    let mut sets = Vec::new();
    for (path, label) in sources.iter().zip(labels) {
        sets.push(Observations {
            label,
            path: path.display().to_string(),
            values_pps: dataset::read(path, &column, arguments.delimiters.as_deref())?,
        });
    }
    Ok(if arguments.paired {
        compare_pairs(&sets, settings)?
    } else {
        compare_independent(&sets, settings)?
    })
}

/// The variants of one results directory whose `.pps` files these are; none where they are anything
/// else.
#[expect(clippy::type_complexity, reason = "it is taken apart at once")]
fn of_one_run(
    sources: &[PathBuf],
) -> anyhow::Result<Option<(Loaded, AddressFamily, Vec<(VariantName, String)>)>> {
    let folder = |path: &Path| path.parent().map(|parent| parent.join("trials.jsonl"));
    let Some(records) = sources.first().and_then(|path| folder(path)) else {
        return Ok(None);
    };
    let same = sources
        .iter()
        .all(|path| folder(path).as_ref() == Some(&records));
    if !same || !records.is_file() {
        return Ok(None);
    }
    let directory = match records.parent() {
        Some(directory) if directory.as_os_str().is_empty() => Path::new("."),
        Some(directory) => directory,
        None => return Ok(None),
    };
    let loaded = Results::load(directory)?;
    for &family in &loaded.resolved.traffic.families {
        let variants: Option<Vec<(VariantName, String)>> = sources
            .iter()
            .map(|path| {
                let file = path.file_name()?.to_str()?;
                let of_file = |name: &VariantName| format!("{name}.{family}.pps") == file;
                let mut names = loaded.resolved.variants.iter().map(|variant| &variant.name);
                let name = names.find(|name| of_file(name))?.clone();
                Some((name, path.display().to_string()))
            })
            .collect();
        if let Some(variants) = variants {
            return Ok(Some((loaded, family, variants)));
        }
    }
    Ok(None)
}

/// Names for readers: those of the files, or the whole paths where two files share theirs.
fn labels(sources: &[PathBuf]) -> Vec<String> {
    let stem = |path: &PathBuf| {
        let stem = path.file_stem().unwrap_or(path.as_os_str());
        stem.to_string_lossy().into_owned()
    };
    let stems: Vec<String> = sources.iter().map(stem).collect();
    let unique = stems
        .iter()
        .collect::<std::collections::BTreeSet<_>>()
        .len();
    if unique == stems.len() {
        stems
    } else {
        sources
            .iter()
            .map(|path| path.display().to_string())
            .collect()
    }
}
