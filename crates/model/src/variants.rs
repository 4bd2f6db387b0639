//! Variants and comparisons: from the names in an experiment file to what is measured.

use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;

use crate::diagnostic::{list, suggest};
use crate::document::Reading;
use crate::experiment::{
    ComparisonEntry, ExcludeEntry, ExperimentFile, VariantEntry, no_such_level,
};
use crate::factor::{FactorEntry, written};
use crate::resolved::{Comparison, Variant};
use crate::words::{Level, VariantName};

/// More would make a block so long that its ends no longer belong together.
pub(crate) const VARIANTS_MAX: usize = 256;
/// More combinations are not even made to see which of them are excluded.
const COMBINATIONS_MAX: usize = 65_536;

pub(crate) fn check_factors(reading: &mut Reading<'_>, file: &ExperimentFile) {
    let mut seen = BTreeSet::new();
    for factor in &file.factors {
        let name = factor.name.get_ref();
        if !seen.insert(name) {
            reading.error(
                factor.name.span(),
                format!("factor {name:?} is given twice"),
            );
        }
    }
    for setting in &file.settings {
        let name = setting.name.get_ref();
        if seen.contains(name) {
            reading
                .error(setting.name.span(), format!("{name:?} is a factor, too"))
                .with_help("what is varied is not held constant; leave out one of them");
        }
    }
}

/// The explicit list, or all combinations but the excluded ones; none where there are too many to
/// be made, or nothing is left.
pub(crate) fn variants(reading: &mut Reading<'_>, file: &ExperimentFile) -> Option<Vec<Variant>> {
    let mut variants = if file.variants.is_empty() {
        combined(reading, file)?
    } else {
        listed(reading, file)?
    };
    for variant in &mut variants {
        for setting in &file.settings {
            let (name, level) = (setting.name.get_ref().clone(), setting.default.clone());
            variant.levels.entry(name).or_insert(level);
        }
    }
    Some(variants)
}

fn listed(reading: &mut Reading<'_>, file: &ExperimentFile) -> Option<Vec<Variant>> {
    for entry in &file.excludes {
        reading
            .error(
                entry.span.clone(),
                "[[exclude]] stands beside a list of variants",
            )
            .with_help(
                "variants that are listed are all there are; leave out those you do not want",
            );
    }
    check_count(reading, file.variants.len())?;
    let defaults: BTreeMap<String, Level> = file
        .factors
        .iter()
        .map(|factor| (factor.name.get_ref().clone(), factor.default.clone()))
        .collect();
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

fn has_level(factor: &FactorEntry, level: &Level) -> bool {
    let mut levels = factor.levels.iter();
    levels.any(|known| known.get_ref() == level)
}

fn is_known(factors: &[FactorEntry], (name, level): &(Spanned<String>, Spanned<Level>)) -> bool {
    let mut named = factors
        .iter()
        .filter(|factor| factor.name.get_ref() == name.get_ref());
    named.any(|factor| has_level(factor, level.get_ref()))
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
        let suggestion = reading.nearest(name, names());
        let diagnostic = reading.error(factor.span(), format!("unknown factor {name:?}"));
        suggest(diagnostic, suggestion);
        diagnostic.with_help(format!("factors: {}", list(names())));
        return;
    };
    // A factor without a single level has its own error.
    let found = has_level(known, level.get_ref());
    if !found && !known.levels.is_empty() {
        let message = format!("{name:?} has no level {}", written(level.get_ref()));
        no_such_level(reading, level, &known.levels, message);
    }
}

fn check_count(reading: &mut Reading<'_>, count: usize) -> Option<()> {
    if count <= VARIANTS_MAX {
        return Some(());
    }
    reading
        .error(
            0..0,
            format!("there are {count} variants, more than {VARIANTS_MAX}"),
        )
        .with_help("list those that answer the question as [[variant]]");
    None
}

/// All combinations of levels but the excluded ones.
fn combined(reading: &mut Reading<'_>, file: &ExperimentFile) -> Option<Vec<Variant>> {
    let factors = &file.factors;
    for (factor, level) in file.excludes.iter().flat_map(|entry| &entry.levels) {
        // Without a single factor, that is the error.
        if !factors.is_empty() {
            check_level(reading, factors, factor, level);
        }
    }
    let count = factors.iter().fold(1_usize, |count, factor| {
        count.saturating_mul(factor.levels.len())
    });
    if count > COMBINATIONS_MAX {
        check_count(reading, count)?;
    }
    let all = combinations(factors);
    for entry in &file.excludes {
        // Without levels, or without combinations, that is the error.
        if !entry.levels.is_empty()
            && !all.is_empty()
            && !all.iter().any(|combination| excludes(entry, combination))
            && entry.levels.iter().all(|level| is_known(factors, level))
        {
            reading
                .error(entry.span.clone(), "[[exclude]] excludes nothing")
                .with_help("no combination has all of these levels");
        }
    }
    let is_excluded = |combination: &Combination<'_>| {
        let mut entries = file.excludes.iter();
        entries.any(|entry| excludes(entry, combination))
    };
    let made: Vec<Combination<'_>> = all
        .iter()
        .filter(|combination| !is_excluded(combination))
        .cloned()
        .collect();
    if made.is_empty() && !all.is_empty() {
        let last = file
            .excludes
            .last()
            .map_or(0..0, |entry| entry.span.clone());
        reading
            .error(last, "every combination is excluded")
            .with_help("leave out one [[exclude]], or name more levels in it");
        return None;
    }
    check_count(reading, made.len())?;
    let variants = named(made);
    if !file.excludes.is_empty() {
        warn_of_unused_levels(reading, factors, &variants);
    }
    Some(variants)
}

/// A level of each factor.
type Combination<'f> = Vec<(&'f str, &'f Level)>;

/// Whether a combination has all levels of an entry that has any.
fn excludes(entry: &ExcludeEntry, combination: &Combination<'_>) -> bool {
    !entry.levels.is_empty()
        && entry.levels.iter().all(|(factor, level)| {
            let wanted = (factor.get_ref().as_str(), level.get_ref());
            combination.contains(&wanted)
        })
}

/// Every combination of levels, the last factor's level changing fastest.
fn combinations(factors: &[FactorEntry]) -> Vec<Combination<'_>> {
    let mut combinations: Vec<Combination<'_>> = vec![Vec::new()];
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
    combinations
}

/// Combinations as variants, labelled by their levels.
fn named(combinations: Vec<Combination<'_>>) -> Vec<Variant> {
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
pub(crate) fn comparisons(
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
        let suggestion = reading.nearest(written, labels());
        let diagnostic = reading.error(label.span(), format!("unknown variant {written:?}"));
        suggest(diagnostic, suggestion);
        diagnostic.with_help(format!("variants: {}", list(labels())));
    }
    found
}

/// The baseline a second time: what the lab's own noise makes of no difference at all.
pub(crate) fn control(
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
