//! Experiment and lab become one: defaults filled in, variants made, every name looked up.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;

use crate::diagnostic::{Diagnostic, Diagnostics, Source, Span, list, nearest};
use crate::document::Reading;
use crate::experiment::{
    ComparisonEntry, ExperimentFile, FactorEntry, VariantEntry, nearest_level, written, written_all,
};
use crate::lab_file::{LabFile, Mechanism};
use crate::resolved::{Binding, Comparison, Design, Factor, Lab, Resolved, Variant};
use crate::words::{Level, VariantName, safe_name};

/// More would make a block so long that its ends no longer belong together.
const VARIANTS_MAX: usize = 256;

/// How the text of a file is had: from the disk, or in tests from memory.
pub type Read<'r> = &'r dyn Fn(&Path) -> io::Result<String>;

/// An experiment that can be run.
#[derive(Debug)]
pub struct Loaded {
    /// The experiment with its lab, every default filled in.
    pub resolved: Resolved,
    /// The experiment file as it was read.
    pub experiment_source: String,
    /// What its author may not have meant.
    pub warnings: Diagnostics,
}

/// Reads an experiment, its lab and the lab's rulesets.
///
/// The lab is `lab_path`, or else the file that the experiment names, relative to the experiment.
/// `drawn_seed` orders the run where the experiment gives no seed.
///
/// # Errors
/// Everything that is wrong in the files, at once; of a file with broken syntax the syntax alone.
pub fn load(
    experiment_path: &Path,
    lab_path: Option<&Path>,
    read: Read<'_>,
    drawn_seed: u64,
) -> Result<Loaded, Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    let source = open(experiment_path, read, None, &mut diagnostics);
    let experiment = source
        .as_ref()
        .and_then(|source| ExperimentFile::parse(source, &mut diagnostics));
    let lab_source = match (lab_path, &experiment) {
        (Some(path), _) => open(path, read, None, &mut diagnostics),
        (None, Some(experiment)) => open_named_lab(experiment, read, &mut diagnostics),
        (None, None) => None,
    };
    let lab = lab_source
        .as_ref()
        .and_then(|source| LabFile::parse(source, &mut diagnostics));
    let resolved =
        experiment.and_then(|file| resolve(file, lab, read, drawn_seed, &mut diagnostics));
    let files = [&source, &lab_source].map(|source| {
        source
            .as_ref()
            .map_or(Path::new(""), |source| source.path.as_path())
    });
    diagnostics.keep_the_worst();
    diagnostics.sort(&files);
    match (source, resolved) {
        (Some(source), Some(resolved)) if diagnostics.errors() == 0 => Ok(Loaded {
            resolved,
            experiment_source: source.text.clone(),
            warnings: diagnostics,
        }),
        _ => Err(diagnostics),
    }
}

/// Reads a lab file alone, without any experiment: its bindings are checked and left out.
///
/// # Errors
/// Everything that is wrong in the file, at once.
pub fn load_lab(path: &Path, read: Read<'_>) -> Result<Lab, Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    let file = open(path, read, None, &mut diagnostics)
        .and_then(|source| LabFile::parse(&source, &mut diagnostics));
    match file {
        Some(file) if diagnostics.errors() == 0 => Ok(lab_of(file, BTreeMap::new())),
        _ => Err(diagnostics),
    }
}

/// A lab file with the bindings of an experiment's factors.
fn lab_of(file: LabFile, bindings: BTreeMap<String, Binding>) -> Lab {
    Lab {
        name: short_name(&file.source.path, "lab"),
        description: file.description,
        kind: file.kind,
        load_cpu: file.load_cpu,
        dut_cpu: None,
        control_cpu: file.control_cpu,
        link_gbps: None,
        bindings,
    }
}

/// Reads a file; the place is where it is named.
fn open(
    path: &Path,
    read: Read<'_>,
    place: Option<(&Arc<Source>, Span)>,
    diagnostics: &mut Diagnostics,
) -> Option<Arc<Source>> {
    match read(path) {
        Ok(text) => Some(Arc::new(Source {
            path: path.to_owned(),
            text,
        })),
        Err(error) => {
            diagnostics.error(place, format!("cannot read {}: {error}", path.display()));
            None
        }
    }
}

fn open_named_lab(
    experiment: &ExperimentFile,
    read: Read<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Arc<Source>> {
    let source = &experiment.source;
    if let Some(lab) = &experiment.lab {
        let path = beside(&source.path, lab.get_ref());
        open(&path, read, Some((source, lab.span())), diagnostics)
    } else {
        diagnostics
            .error(Some((source, 0..0)), "no lab is given")
            .with_help("name its file with `--lab FILE`")
            .with_help("or in the experiment: lab = \"../labs/netns.toml\"");
        None
    }
}

/// A path that a file names, relative to that file.
fn beside(file: &Path, named: &str) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).join(named)
}

/// The name under which the results of a file are kept.
fn short_name(path: &Path, otherwise: &str) -> String {
    path.file_stem()
        .and_then(|stem| safe_name(&stem.to_string_lossy()))
        .unwrap_or_else(|| otherwise.into())
}

/// None without a lab, or where names are wrong so that nothing whole can be made.
fn resolve(
    file: ExperimentFile,
    lab: Option<LabFile>,
    read: Read<'_>,
    drawn_seed: u64,
    diagnostics: &mut Diagnostics,
) -> Option<Resolved> {
    let source = Arc::clone(&file.source);
    let reading = &mut Reading {
        source: &source,
        diagnostics,
    };
    check_factors(reading, &file.factors);
    let made = variants(reading, &file);
    let comparisons = comparisons(reading, &file, made.as_deref());
    let bindings = lab
        .as_ref()
        .map(|lab| bindings(reading, &file.factors, lab, read));

    let mut variants = made?;
    if variants.len() == 1 && !file.control {
        reading
            .error(0..0, "there is one variant, and nothing to compare it with")
            .with_help("add a variant, or measure it twice with control = true in [design]");
    }
    if file.control {
        let baseline = comparisons.first()?.baseline.clone();
        let control = control(reading, &file.variants, &variants, &baseline)?;
        variants.push(control);
    }
    let lab = lab?;
    Some(Resolved {
        name: short_name(&source.path, "experiment"),
        question: file.question,
        background: file.background,
        factors: file.factors.into_iter().map(factor).collect(),
        variants,
        comparisons,
        traffic: file.traffic,
        design: Design {
            seed: if file.design.seed_was_drawn {
                drawn_seed
            } else {
                file.design.seed
            },
            ..file.design
        },
        lab: lab_of(lab, bindings?),
    })
}

fn factor(entry: FactorEntry) -> Factor {
    Factor {
        name: entry.name.into_inner(),
        description: entry.description,
        levels: entry.levels.into_iter().map(Spanned::into_inner).collect(),
        default: entry.default,
    }
}

fn check_factors(reading: &mut Reading<'_>, factors: &[FactorEntry]) {
    let mut seen = BTreeSet::new();
    for factor in factors {
        let name = factor.name.get_ref();
        if !seen.insert(name) {
            reading.error(
                factor.name.span(),
                format!("factor {name:?} is given twice"),
            );
        }
    }
}

/// The explicit list, or all combinations; none where there are too many to be made.
fn variants(reading: &mut Reading<'_>, file: &ExperimentFile) -> Option<Vec<Variant>> {
    let defaults: BTreeMap<String, Level> = file
        .factors
        .iter()
        .map(|factor| (factor.name.get_ref().clone(), factor.default.clone()))
        .collect();
    let count = if file.variants.is_empty() {
        file.factors.iter().fold(1_usize, |count, factor| {
            count.saturating_mul(factor.levels.len())
        })
    } else {
        file.variants.len()
    };
    if count > VARIANTS_MAX {
        reading
            .error(
                0..0,
                format!("there are {count} variants, more than {VARIANTS_MAX}"),
            )
            .with_help("list those that answer the question as [[variant]]");
        return None;
    }
    if file.variants.is_empty() {
        return Some(combinations(&file.factors));
    }
    let mut variants: Vec<Variant> = Vec::new();
    for entry in &file.variants {
        let label = entry.label.get_ref();
        if variants.iter().any(|other| &other.label == label) {
            reading
                .error(
                    entry.label.span(),
                    format!("label {label:?} is given twice"),
                )
                .with_help("a label names one variant");
        }
        let mut levels = defaults.clone();
        for (factor, level) in &entry.levels {
            // Without a single factor, that is the error.
            if !file.factors.is_empty() {
                check_level(reading, &file.factors, factor, level);
            }
            levels.insert(factor.get_ref().clone(), level.get_ref().clone());
        }
        variants.push(Variant {
            name: unused_name(label, &variants),
            label: label.clone(),
            levels,
            control_of: None,
            unavailable: None,
        });
    }
    warn_of_twins(reading, &file.variants, &variants);
    warn_of_unused_levels(reading, &file.factors, &variants);
    Some(variants)
}

fn warn_of_twins(reading: &mut Reading<'_>, entries: &[VariantEntry], variants: &[Variant]) {
    for (position, (entry, variant)) in entries.iter().zip(variants).enumerate() {
        let earlier = &variants[..position];
        if let Some(twin) = earlier.iter().find(|twin| twin.levels == variant.levels) {
            let message = format!(
                "{:?} has the same levels as {:?}",
                variant.label, twin.label
            );
            reading
                .warning(entry.label.span(), message)
                .with_help("control = true in [design] measures the first baseline twice");
        }
    }
}

fn warn_of_unused_levels(reading: &mut Reading<'_>, factors: &[FactorEntry], variants: &[Variant]) {
    for factor in factors {
        let name = factor.name.get_ref();
        for level in &factor.levels {
            let measured = |variant: &Variant| variant.levels.get(name) == Some(level.get_ref());
            if !variants.iter().any(measured) {
                let message = format!("no variant has level {}", written(level.get_ref()));
                reading.warning(level.span(), message);
            }
        }
    }
}

/// A variant's level is one of that factor's.
fn check_level(
    reading: &mut Reading<'_>,
    factors: &[FactorEntry],
    factor: &Spanned<String>,
    level: &Spanned<Level>,
) {
    let name = factor.get_ref();
    let names = || factors.iter().map(|factor| factor.name.get_ref().as_str());
    let Some(known) = factors.iter().find(|known| known.name.get_ref() == name) else {
        let diagnostic = reading.error(factor.span(), format!("unknown factor {name:?}"));
        suggest(diagnostic, name, names());
        diagnostic.with_help(format!("factors: {}", list(names())));
        return;
    };
    // A factor without a single level has its own error.
    let found = known
        .levels
        .iter()
        .any(|known| known.get_ref() == level.get_ref());
    if !found && !known.levels.is_empty() {
        let wrong = level.get_ref();
        let message = format!("{name:?} has no level {}", written(wrong));
        let diagnostic = reading.error(level.span(), message);
        if let Some(suggestion) = nearest_level(wrong, &known.levels) {
            diagnostic.with_label(format!("did you mean {suggestion}?"));
        }
        diagnostic.with_help(format!("levels: {}", written_all(&known.levels)));
    }
}

fn suggest<'n>(
    diagnostic: &mut Diagnostic,
    written: &str,
    names: impl IntoIterator<Item = &'n str>,
) {
    if let Some(suggestion) = nearest(written, names) {
        diagnostic.with_label(format!("did you mean {suggestion:?}?"));
    }
}

/// Every combination of levels, the last factor's level changing fastest.
fn combinations(factors: &[FactorEntry]) -> Vec<Variant> {
    let mut combinations: Vec<Vec<(&str, &Level)>> = vec![Vec::new()];
    for factor in factors {
        combinations = combinations
            .iter()
            .flat_map(|combination| {
                factor.levels.iter().map(|level| {
                    let mut longer = combination.clone();
                    longer.push((factor.name.get_ref().as_str(), level.get_ref()));
                    longer
                })
            })
            .collect();
    }
    let mut variants = Vec::new();
    for combination in combinations {
        let parts: Vec<String> = combination
            .iter()
            .map(|(factor, level)| format!("{factor}={level}"))
            .collect();
        let label = parts.join(", ");
        variants.push(Variant {
            name: unused_name(&label, &variants),
            label,
            levels: combination
                .into_iter()
                .map(|(factor, level)| (factor.to_owned(), level.clone()))
                .collect(),
            control_of: None,
            unavailable: None,
        });
    }
    variants
}

/// A name made from the label that no other variant has.
fn unused_name(label: &str, variants: &[Variant]) -> VariantName {
    let name = VariantName::from_label(label);
    let taken = |name: &VariantName| variants.iter().any(|variant| &variant.name == name);
    if taken(&name) {
        (2..)
            .map(|number| name.numbered(number))
            .find(|name| !taken(name))
            .expect("there are more numbers than variants")
    } else {
        name
    }
}

/// The comparisons of the file, or the usual one.
fn comparisons(
    reading: &mut Reading<'_>,
    file: &ExperimentFile,
    variants: Option<&[Variant]>,
) -> Vec<Comparison> {
    let Some(variants) = variants else {
        return Vec::new();
    };
    if file.comparisons.is_empty() {
        let is_default = |variant: &&Variant| {
            file.factors
                .iter()
                .all(|factor| variant.levels.get(factor.name.get_ref()) == Some(&factor.default))
        };
        let baseline = variants.iter().find(is_default).or(variants.first());
        return baseline
            .map(|baseline| Comparison {
                title: None,
                baseline: baseline.name.clone(),
                variants: all_others(variants, baseline),
            })
            .into_iter()
            .collect();
    }
    let mut titles = BTreeSet::new();
    for entry in &file.comparisons {
        match &entry.title {
            None if file.comparisons.len() > 1 => {
                reading
                    .error(entry.span.clone(), "`title` in [[comparison]] is missing")
                    .with_help("titles tell several comparisons apart");
            }
            Some(title) if !titles.insert(title.get_ref()) => {
                let message = format!("title {:?} is given twice", title.get_ref());
                reading.error(title.span(), message);
            }
            _ => {}
        }
    }
    file.comparisons
        .iter()
        .filter_map(|entry| comparison(reading, entry, variants))
        .collect()
}

fn all_others(variants: &[Variant], baseline: &Variant) -> Vec<VariantName> {
    variants
        .iter()
        .filter(|variant| variant.name != baseline.name)
        .map(|variant| variant.name.clone())
        .collect()
}

fn comparison(
    reading: &mut Reading<'_>,
    entry: &ComparisonEntry,
    variants: &[Variant],
) -> Option<Comparison> {
    let baseline = entry
        .baseline
        .as_ref()
        .and_then(|label| labelled(reading, label, variants));
    let mut others: Vec<VariantName> = Vec::new();
    for label in entry.variants.iter().flatten() {
        let Some(variant) = labelled(reading, label, variants) else {
            continue;
        };
        if baseline.is_some_and(|baseline| baseline.name == variant.name) {
            reading.error(label.span(), "the baseline is compared with itself");
        } else if others.contains(&variant.name) {
            let message = format!("{:?} is listed twice", label.get_ref());
            reading.error(label.span(), message);
        } else {
            others.push(variant.name.clone());
        }
    }
    let baseline = baseline?;
    Some(Comparison {
        title: entry.title.as_ref().map(|title| title.get_ref().clone()),
        baseline: baseline.name.clone(),
        variants: if entry.variants.is_some() {
            others
        } else {
            all_others(variants, baseline)
        },
    })
}

fn labelled<'v>(
    reading: &mut Reading<'_>,
    label: &Spanned<String>,
    variants: &'v [Variant],
) -> Option<&'v Variant> {
    let written = label.get_ref();
    let found = variants.iter().find(|variant| &variant.label == written);
    if found.is_none() {
        let labels = || variants.iter().map(|variant| variant.label.as_str());
        let diagnostic = reading.error(label.span(), format!("unknown variant {written:?}"));
        suggest(diagnostic, written, labels());
        diagnostic.with_help(format!("variants: {}", list(labels())));
    }
    found
}

/// The baseline a second time: what the lab's own noise makes of no difference at all.
fn control(
    reading: &mut Reading<'_>,
    entries: &[VariantEntry],
    variants: &[Variant],
    baseline: &VariantName,
) -> Option<Variant> {
    let baseline = variants.iter().find(|variant| &variant.name == baseline)?;
    let label = format!("{} (A/A control)", baseline.label);
    if let Some(entry) = entries.iter().find(|entry| entry.label.get_ref() == &label) {
        reading
            .error(
                entry.label.span(),
                format!("{label:?} is the label of the A/A control"),
            )
            .with_help("choose another label, or set control = false in [design]");
    }
    Some(Variant {
        name: unused_name(&format!("{}-again", baseline.name), variants),
        label,
        levels: baseline.levels.clone(),
        control_of: Some(baseline.name.clone()),
        unavailable: None,
    })
}

/// How the lab sets each factor, for the levels that the experiment has.
fn bindings(
    reading: &mut Reading<'_>,
    factors: &[FactorEntry],
    lab: &LabFile,
    read: Read<'_>,
) -> BTreeMap<String, Binding> {
    let mut bindings = BTreeMap::new();
    for factor in factors {
        let name = factor.name.get_ref();
        let Some(mechanism) = lab.bindings.get(name) else {
            let bound = || lab.bindings.keys().map(String::as_str);
            let message = format!(
                "factor {name:?} is not bound in {}",
                lab.source.path.display()
            );
            let diagnostic = reading.error(factor.name.span(), message);
            suggest(diagnostic, name, bound());
            diagnostic.with_help(format!("bound there: {}", list(bound())));
            continue;
        };
        let binding = match mechanism {
            None => continue,
            Some(Mechanism::Sysctl(key)) => {
                check_sysctl_levels(reading, factor);
                Binding::Sysctl(key.get_ref().clone())
            }
            Some(Mechanism::Nft(files)) => {
                let files = bound_levels(reading, factor, lab, files);
                let texts = files.into_iter().map(|(level, file)| {
                    let text = ruleset(file, lab, read, reading.diagnostics);
                    (level, text.unwrap_or_default())
                });
                Binding::Nft(texts.collect())
            }
            Some(Mechanism::Xdp(programs)) => {
                let programs = bound_levels(reading, factor, lab, programs);
                let programs = programs
                    .into_iter()
                    .map(|(level, program)| (level, *program));
                Binding::Xdp(programs.collect())
            }
        };
        if let Some((other, _)) = bindings.iter().find(|(_, other)| collide(other, &binding)) {
            let message = format!("factors {other:?} and {name:?} set the same thing");
            reading
                .error(factor.name.span(), message)
                .with_help(format!(
                    "see their bindings in {}",
                    lab.source.path.display()
                ));
        }
        bindings.insert(name.clone(), binding);
    }
    bindings
}

/// Whether setting one factor would undo the other.
fn collide(one: &Binding, other: &Binding) -> bool {
    match (one, other) {
        (Binding::Sysctl(one), Binding::Sysctl(other)) => one == other,
        (Binding::Xdp(_), Binding::Xdp(_)) => true,
        _ => false,
    }
}

fn check_sysctl_levels(reading: &mut Reading<'_>, factor: &FactorEntry) {
    for level in &factor.levels {
        if matches!(level.get_ref(), Level::Boolean(_)) {
            reading
                .error(level.span(), "a sysctl has no level `true` or `false`")
                .with_help("write 0 or 1");
        }
    }
}

/// What each level of a factor means to its mechanism.
fn bound_levels<'m, T>(
    reading: &mut Reading<'_>,
    factor: &FactorEntry,
    lab: &LabFile,
    meanings: &'m BTreeMap<String, T>,
) -> BTreeMap<String, &'m T> {
    let mut bound = BTreeMap::new();
    for level in &factor.levels {
        let text = level.get_ref().to_string();
        if let Some(meaning) = meanings.get(&text) {
            bound.insert(text, meaning);
            continue;
        }
        let names = || meanings.keys().map(String::as_str);
        let message = format!(
            "level {text:?} of {:?} is not bound in {}",
            factor.name.get_ref(),
            lab.source.path.display()
        );
        let diagnostic = reading.error(level.span(), message);
        suggest(diagnostic, &text, names());
        diagnostic.with_help(format!("bound there: {}", list(names())));
    }
    bound
}

/// The text of a ruleset's file, which is all of the ruleset.
fn ruleset(
    file: &Spanned<String>,
    lab: &LabFile,
    read: Read<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<String> {
    if file.get_ref().is_empty() {
        return Some(String::new());
    }
    let path = beside(&lab.source.path, file.get_ref());
    let place = || Some((&lab.source, file.span()));
    let source = open(&path, read, place(), diagnostics)?;
    let includes = |line: &str| line.trim_start().starts_with("include");
    if let Some(line) = source.text.lines().position(includes) {
        let message = format!("{}:{}: includes another file", path.display(), line + 1);
        diagnostics
            .error(place(), message)
            .with_help("what an include brings would not be in the record; write it into the file");
    }
    Some(source.text.clone())
}
