//! `fwdlab compare`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use fwdlab_archive::{Loaded, Observation, Results, is_imported};
use fwdlab_model::{Stratum, VariantName};
use fwdlab_report::{
    CompareReport, CompareSettings, Observations, ReportError, compare_blocks, compare_independent,
    compare_pairs, compare_sessions, render,
};

use crate::args::CompareArguments;
use crate::dataset::{self, Column};
use crate::design;
use crate::disk::one_file_twice;
use crate::exit::{Code, WrongArguments};
use crate::gate;
use crate::output;
use crate::sides::Directories;

pub(crate) fn compare(arguments: &CompareArguments) -> anyhow::Result<Code> {
    let report = accepted(compared(arguments, arguments.verdicts.threshold))?;
    let mut results = Vec::new();
    for gate in &arguments.gates.fail_on {
        results.push(
            match gate::other_threshold(gate, report.threshold_percent) {
                None => gate.of_comparison(&report),
                threshold => gate.of_comparison(&accepted(compared(arguments, threshold))?),
            },
        );
    }
    output::print(&if arguments.json {
        render::json(&report)?
    } else if arguments.markdown {
        render::compared_comment(&report, &results)
    } else {
        let columns = output::terminal_columns();
        render::compared(&report, columns, output::stdout_takes_colour())
    })?;
    Ok(gate::conclude(&results))
}

/// What the statistics refuse is what the user gave.
fn accepted(compared: anyhow::Result<CompareReport>) -> anyhow::Result<CompareReport> {
    compared.map_err(|error| match error.downcast::<ReportError>() {
        Ok(refusal) => WrongArguments(refusal.to_string()).into(),
        Err(error) => error,
    })
}

/// Shape: `threshold` in percent, where it is not the usual one.
fn compared(arguments: &CompareArguments, threshold: Option<f64>) -> anyhow::Result<CompareReport> {
    let asked = &arguments.verdicts;
    let usual = CompareSettings::default();
    if arguments.dialect.is_some() && !arguments.ministat {
        let text = "--dialect: there is no text of ministat to print that way; add --ministat";
        return Err(WrongArguments(text.to_owned()).into());
    }
    let settings = CompareSettings {
        confidence_percent: asked.confidence.unwrap_or(usual.confidence_percent),
        threshold_percent: threshold.unwrap_or(usual.threshold_percent),
        with_methods: arguments.methods,
        ministat: arguments
            .ministat
            .then(|| arguments.dialect.unwrap_or_default()),
    };
    let (sources, design) = match &arguments.design {
        Some(path) => {
            let (sources, design) = design::read(path)?;
            (sources, Some(design))
        }
        None => (arguments.sources.clone(), None),
    };
    let sources = &sources;
    if let (Some(path), Some(directory)) = (
        &arguments.design,
        sources.iter().find(|source| source.is_dir()),
    ) {
        let text = format!(
            "{}: {} is a directory; of a results directory, `fwdlab analyze` knows the factors",
            path.display(),
            directory.display()
        );
        return Err(WrongArguments(text).into());
    }
    refuse_one_alone(arguments, sources)?;
    let of_sessions = [
        ("--with", &arguments.with),
        ("--sessions", &arguments.sessions),
    ];
    for (option, directories) in of_sessions {
        let named = sources.iter().chain(directories.iter());
        let file = named.into_iter().find(|source| !source.is_dir());
        if let Some(file) = file.filter(|_| !directories.is_empty()) {
            let text = format!(
                "{option}: {} is not a directory; sessions are those of results directories",
                file.display()
            );
            return Err(WrongArguments(text).into());
        }
    }
    let directories = sources.iter().filter(|source| source.is_dir()).count();
    if directories > 0 && !arguments.offered.is_empty() {
        let text = "--offered: results directories know what was offered; leave it out";
        return Err(WrongArguments(text.to_owned()).into());
    }
    if directories == sources.len() {
        if arguments.paired {
            let text = "--paired: results directories are of different runs, whose blocks do not belong \
                        together; leave it out";
            return Err(WrongArguments(text.to_owned()).into());
        }
        let mut read = Directories::default();
        let sides = if arguments.with.is_empty() {
            let sides = sources
                .iter()
                .map(|source| read.sessions(std::slice::from_ref(source)));
            sides.collect::<anyhow::Result<Vec<_>>>()?
        } else {
            vec![read.sessions(sources)?, read.sessions(&arguments.with)?]
        };
        let reruns = read.sessions(&arguments.sessions)?;
        return Ok(compare_sessions(&sides, &reruns, settings)?);
    }
    if directories > 0 {
        let text = "files and results directories cannot be compared with each other; of a directory \
                    give the files (*.pps)";
        return Err(WrongArguments(text.to_owned()).into());
    }
    // Every verdict would be "equivalent", and every condition of a check pass.
    if let Some((one, other)) = one_file_twice(sources) {
        let (one, other) = (one.display(), other.display());
        let text = format!(
            "{one} and {other} are one file; comparing a file with itself shows nothing; give another one"
        );
        return Err(WrongArguments(text).into());
    }
    if design.is_none()
        && arguments.offered.is_empty()
        && let Some((loaded, stratum, variants)) = of_one_run(sources)?
    {
        return Ok(compare_blocks(&loaded, stratum, &variants, settings)?);
    }
    let sets = observations(arguments, sources)?;
    refuse_copies(&sets)?;
    if !arguments.paired && design.is_none() {
        refuse_constant(&arguments.column, &sets)?;
    }
    let mut report = if arguments.paired {
        compare_pairs(&sets, design.as_ref(), settings)?
    } else {
        compare_independent(&sets, design.as_ref(), settings)?
    };
    let folders = sources.iter().filter_map(|source| results_folder(source));
    if folders.collect::<BTreeSet<_>>().len() > 1 {
        report.warn_of_sessions();
    }
    Ok(report)
}

/// The results directory that a file lies in.
fn results_folder(path: &Path) -> Option<PathBuf> {
    let folder = fs::canonicalize(path).ok()?.parent()?.to_owned();
    (folder.join("trials.jsonl").is_file() || is_imported(&folder)).then_some(folder)
}

/// One file or directory alone: what looks at it instead.
fn refuse_one_alone(
    arguments: &CompareArguments,
    sources: &[PathBuf],
) -> Result<(), WrongArguments> {
    let [source] = sources else {
        return Ok(());
    };
    if !arguments.with.is_empty() || arguments.design.is_some() {
        return Ok(());
    }
    let shown = source.display();
    let (what, instead) = if !source.is_dir() {
        (
            "file",
            format!("to describe one, `fwdlab ministat {shown}`"),
        )
    } else if is_imported(source) {
        (
            "results directory",
            format!("to judge what was published in it, `fwdlab analyze {shown}`"),
        )
    } else {
        (
            "results directory",
            format!("to compare the variants of one, `fwdlab analyze {shown}`"),
        )
    };
    let text = format!(
        "{shown}: one {what}; compare needs two or more, the first is the baseline; {instead}"
    );
    Err(WrongArguments(text))
}

/// Observations that vary on neither side: without any noise there is no test.
fn refuse_constant(column: &str, sets: &[Observations]) -> Result<(), WrongArguments> {
    let (baseline, others) = (&sets[0], &sets[1..]);
    let constant = others.iter().find(|set| !varies(baseline) && !varies(set));
    let Some(set) = constant.filter(|set| set.values_pps.len() > 1) else {
        return Ok(());
    };
    let text = format!(
        "{} and {}: column {column} is {} in every line of the one and {} in every line of the other; values that do not \
         vary cannot be compared; --column chooses another one",
        baseline.path, set.path, baseline.values_pps[0], set.values_pps[0]
    );
    Err(WrongArguments(text))
}

fn varies(set: &Observations) -> bool {
    let first = set.values_pps[0];
    let mut values = set.values_pps.iter();
    values.any(|value| value.total_cmp(&first).is_ne())
}

/// Observations that are copies of others, which agree whatever was measured. Values that are all the same say nothing:
/// a line's rate is often measured twice.
fn refuse_copies(sets: &[Observations]) -> Result<(), WrongArguments> {
    for (number, set) in sets.iter().enumerate() {
        let mut others = sets[..number].iter();
        let copy = others.find(|other| varies(set) && other.values_pps == set.values_pps);
        if let Some(other) = copy {
            let text = format!(
                "{} and {} hold the same observations: one is a copy of the other; give another one",
                other.path, set.path
            );
            return Err(WrongArguments(text));
        }
    }
    Ok(())
}

/// The observations in files, each with what was offered where that was given.
fn observations(
    arguments: &CompareArguments,
    sources: &[PathBuf],
) -> anyhow::Result<Vec<Observations>> {
    let offered = &arguments.offered;
    if !offered.is_empty() && offered.len() != sources.len() {
        let text = format!(
            "--offered: {} files for {} files of observations; give one for each",
            offered.len(),
            sources.len()
        );
        return Err(WrongArguments(text).into());
    }
    let column = Column::of(&arguments.column);
    let read = |path: &Path| dataset::read(path, &column, arguments.delimiters.as_deref());
    let mut sets = Vec::new();
    let mut baseline = None;
    for (number, (path, label)) in sources.iter().zip(labels(sources)).enumerate() {
        let values = read(path)?;
        let offered_pps = match offered.get(number) {
            Some(of_path) => {
                let offered = read(of_path)?;
                if offered.len() != values.len() {
                    let text = format!(
                        "{}: {} offered loads for the {} observations of {}; give one for each",
                        of_path.display(),
                        offered.len(),
                        values.len(),
                        path.display()
                    );
                    return Err(WrongArguments(text).into());
                }
                refuse_other_lines((path, &values), (of_path, &offered))?;
                Some(values_of(&offered))
            }
            None => None,
        };
        sets.push(Observations {
            label,
            path: path.display().to_string(),
            values_pps: values_of(&values),
            offered_pps,
        });
        let baseline = baseline.get_or_insert((path, values.clone()));
        if arguments.paired {
            refuse_other_lines((baseline.0, &baseline.1), (path, &values))?;
        }
    }
    Ok(sets)
}

fn values_of(observations: &[Observation]) -> Vec<f64> {
    let values = observations.iter().map(|observation| observation.value);
    values.collect()
}

/// Observations of which a line of the one belongs to that of the other, and which do not stand in the same lines as seen
/// from the first: one that is missing makes pairs of all others that are none.
fn refuse_other_lines(
    one: (&Path, &[Observation]),
    other: (&Path, &[Observation]),
) -> Result<(), WrongArguments> {
    let after_first =
        |observations: &[Observation], at: usize| observations[at].line - observations[0].line;
    let both = one.1.len().min(other.1.len());
    let shifted = (0..both).find(|at| after_first(one.1, *at) != after_first(other.1, *at));
    let Some(at) = shifted else {
        return Ok(());
    };
    let text = format!(
        "{}, line {}, and {}, line {}: observation {} stands in another line as seen from the first, so one may be missing \
         above; leave out what stands between the observations",
        one.0.display(),
        one.1[at].line,
        other.0.display(),
        other.1[at].line,
        at + 1
    );
    Err(WrongArguments(text))
}

/// The variants of one results directory whose `.pps` files these are; none where they are anything
/// else.
#[expect(clippy::type_complexity, reason = "it is taken apart at once")]
fn of_one_run(
    sources: &[PathBuf],
) -> anyhow::Result<Option<(Loaded, Stratum, Vec<(VariantName, String)>)>> {
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
    let strata: Vec<Stratum> = loaded.resolved.strata().collect();
    for stratum in strata {
        let variants: Option<Vec<(VariantName, String)>> = sources
            .iter()
            .map(|path| {
                let file = path.file_name()?.to_str()?;
                let of_file = |name: &VariantName| format!("{name}.{stratum}.pps") == file;
                let mut names = loaded.resolved.variants.iter().map(|variant| &variant.name);
                let name = names.find(|name| of_file(name))?.clone();
                Some((name, path.display().to_string()))
            })
            .collect();
        if let Some(variants) = variants {
            return Ok(Some((loaded, stratum, variants)));
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
    let unique = stems.iter().collect::<BTreeSet<_>>().len();
    if unique == stems.len() {
        stems
    } else {
        sources
            .iter()
            .map(|path| path.display().to_string())
            .collect()
    }
}
