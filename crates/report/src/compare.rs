//! Observations that somebody has, compared: loose files, pairs, or whole results directories.

use fwdlab_archive::Loaded;
use fwdlab_model::{AddressFamily, Comparison, VariantName};
use fwdlab_stats::ministat::{Confidence, Dataset};
use fwdlab_stats::{
    ComparisonEffects, ComparisonVerdict, FamilyVerdicts, IndependentObservations, StatsError,
    VerdictSettings, family_verdicts, independent_verdicts, logarithms, median, trend_warning,
};
use serde::Serialize;

use crate::checks;
use crate::error::ReportError;
use crate::evidence::{self, Scope};
use crate::format;
use crate::judge::{self, ministat_blocks, verdict_section};
use crate::report::{ComparisonSection, Effect, Row, Warning};
use crate::text::one_line;

/// The version of the JSON that `fwdlab compare` prints.
pub const COMPARE_SCHEMA_VERSION: u32 = 1;

/// Medians that differ by so much are rather of different units than of different settings.
const UNITS_RATIO: f64 = 100.0;

/// What verdicts on given observations are asked to hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompareSettings {
    /// Confidence of the verdicts, in percent.
    pub confidence_percent: f64,
    /// Smaller effects do not matter to the asker, in percent.
    pub threshold_percent: f64,
    /// Whether to draw up `ministat`'s text, too.
    pub with_ministat: bool,
}

impl CompareSettings {
    fn verdicts(self) -> VerdictSettings {
        VerdictSettings {
            confidence: self.confidence_percent / 100.0,
            practical_threshold: self.threshold_percent / 100.0,
        }
    }
}

/// Observations under a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Observations {
    /// Their name for readers.
    pub label: String,
    /// Where they are from.
    pub path: String,
    /// In the order of the file.
    pub values_pps: Vec<f64>,
}

/// What the verdicts rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Nothing says which observations belong together.
    IndependentObservations,
    /// The observations of one line belong together, because the caller says so.
    Pairs,
    /// The blocks of one experiment.
    Blocks,
}

impl Basis {
    /// What is compared, and how.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::IndependentObservations => {
                "Independent observations, compared by Welch's t of their logarithms"
            }
            Self::Pairs => {
                "Pairs: line by line, compared by the exact signed-rank test of their log ratios"
            }
            Self::Blocks => {
                "Blocks of one experiment, compared by the exact signed-rank test of their effects"
            }
        }
    }
}

/// What `fwdlab compare` finds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CompareReport {
    /// [`COMPARE_SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// What the verdicts rest on.
    pub basis: Basis,
    /// Confidence of the verdicts, in percent.
    pub confidence_percent: f64,
    /// Smaller effects do not matter to the asker, in percent.
    pub threshold_percent: f64,
    /// The comparisons, each with one baseline.
    pub groups: Vec<CompareGroup>,
    /// What to beware of.
    pub warnings: Vec<Warning>,
}

/// A baseline and what was compared with it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CompareGroup {
    /// What tells it from the others; none for the only one.
    pub title: Option<String>,
    /// The baseline first.
    pub rows: Vec<CompareRow>,
    /// How many verdicts are corrected together.
    pub family_size: usize,
    /// Exact text of ministat, where it was asked for.
    pub ministat: Vec<String>,
}

/// One set of observations in a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CompareRow {
    /// Its name for readers.
    pub label: String,
    /// Where it is from.
    pub path: String,
    /// Rates, effect and verdict; `trials` counts the observations.
    #[serde(flatten)]
    pub row: Row,
}

/// Compares every set of observations with the first, as independent ones.
///
/// Shape: two sets or more.
///
/// # Errors
/// What the statistics refuse.
pub fn compare_independent(
    sets: &[Observations],
    settings: CompareSettings,
) -> Result<CompareReport, ReportError> {
    let (baseline, others) = split(sets);
    let comparisons: Vec<IndependentObservations> = others
        .iter()
        .map(|set| independent(&set.label, baseline, set))
        .collect();
    let family = independent_verdicts(&comparisons, &settings.verdicts())
        .map_err(|source| error(baseline, source))?;
    let group = group(None, baseline, others, &family.comparisons, settings)?;
    let mut warnings = vec![order_is_unknown()];
    warnings.extend(others.iter().filter_map(|set| units(baseline, set)));
    warnings.extend(modes(sets, sets.len(), settings).map_err(|source| error(baseline, source))?);
    for set in sets {
        let found = trend_warning(&one_line(&set.label), &set.values_pps);
        let found = found.map_err(|source| error(baseline, source))?;
        warnings.extend(found.iter().map(Warning::from));
    }
    Ok(report(
        Basis::IndependentObservations,
        settings,
        vec![group],
        warnings,
    ))
}

/// Compares every set of observations with the first, those of the same line with each other.
///
/// Shape: two sets or more, all of one length.
///
/// # Errors
/// [`ReportError::Lengths`], and what the statistics refuse.
pub fn compare_pairs(
    sets: &[Observations],
    settings: CompareSettings,
) -> Result<CompareReport, ReportError> {
    let (baseline, others) = split(sets);
    let mut comparisons = Vec::new();
    for set in others {
        if set.values_pps.len() != baseline.values_pps.len() {
            return Err(ReportError::Lengths {
                one: baseline.path.clone(),
                observations: baseline.values_pps.len(),
                other: set.path.clone(),
                other_observations: set.values_pps.len(),
            });
        }
        let of = |set: &Observations| {
            logarithms(&one_line(&set.label), &set.values_pps)
                .map_err(|source| error(baseline, source))
        };
        let effects = of(set)?
            .iter()
            .zip(of(baseline)?)
            .map(|(variant, baseline)| variant - baseline)
            .collect();
        comparisons.push(ComparisonEffects {
            name: one_line(&set.label),
            block_effects: effects,
        });
    }
    let family = family_verdicts(&comparisons, None, &settings.verdicts())
        .map_err(|source| error(baseline, source))?;
    let group = group(None, baseline, others, &family.comparisons, settings)?;
    let mut warnings = stats_warnings(&family);
    warnings.extend(others.iter().filter_map(|set| units(baseline, set)));
    for comparison in &comparisons {
        let pairs: Vec<(u32, f64)> = (1..)
            .zip(comparison.block_effects.iter().copied())
            .collect();
        warnings.extend(
            checks::block_modes(
                comparison.name.clone(),
                &pairs,
                |_| None,
                settings.threshold_percent,
                others.len(),
            )
            .map_err(|source| error(baseline, source))?,
        );
    }
    Ok(report(Basis::Pairs, settings, vec![group], warnings))
}

/// Compares variants of one results directory, block by block.
///
/// Shape: two variants or more, the first one the baseline, each with its path.
///
/// # Errors
/// What the statistics refuse.
pub fn compare_blocks(
    loaded: &Loaded,
    family: AddressFamily,
    variants: &[(VariantName, String)],
    settings: CompareSettings,
) -> Result<CompareReport, ReportError> {
    let mut loaded = loaded.clone();
    loaded.resolved.design.confidence_percent = settings.confidence_percent;
    loaded.resolved.design.threshold_percent = settings.threshold_percent;
    let comparison = Comparison {
        title: None,
        baseline: variants[0].0.clone(),
        variants: variants[1..].iter().map(|(name, _)| name.clone()).collect(),
    };
    let (section, mut warnings) = judge::judge(&loaded, &comparison, family, String::new())?;
    let compared: Vec<&VariantName> = variants.iter().map(|(name, _)| name).collect();
    warnings.extend(checks::slices(&loaded, family, &compared)?.1);
    let ComparisonSection {
        rows,
        family_size,
        ministat,
        ..
    } = section;
    let rows = rows
        .into_iter()
        .zip(variants)
        .map(|(row, (name, path))| CompareRow {
            label: loaded
                .resolved
                .variant(name)
                .map_or_else(|| name.to_string(), |variant| one_line(&variant.label)),
            path: path.clone(),
            row,
        })
        .collect();
    let group = CompareGroup {
        title: None,
        rows,
        family_size,
        ministat: if settings.with_ministat {
            ministat
        } else {
            Vec::new()
        },
    };
    Ok(report(Basis::Blocks, settings, vec![group], warnings))
}

/// Compares the variants that several results directories share, as independent observations: they
/// were measured at different times.
///
/// Shape: two directories or more with their paths, the first one the baseline.
///
/// # Errors
/// [`ReportError::NothingShared`], and what the statistics refuse.
pub fn compare_directories(
    directories: &[(String, &Loaded)],
    settings: CompareSettings,
) -> Result<CompareReport, ReportError> {
    let first = directories[0].1;
    let mut groups = Vec::new();
    let mut modal = Vec::new();
    for &family in &first.resolved.traffic.families {
        let mut shared: Vec<(String, Vec<Observations>)> = Vec::new();
        for variant in &first.resolved.variants {
            let label = one_line(&variant.label);
            let sets: Vec<Observations> = directories
                .iter()
                .map(|(path, loaded)| Observations {
                    label: one_line(path),
                    path: format!("{path}: {label}, {}", family.protocol()),
                    values_pps: observations(loaded, &variant.name, family),
                })
                .collect();
            let is_everywhere = sets.iter().all(|set| !set.values_pps.is_empty());
            if variant.control_of.is_none() && is_everywhere {
                shared.push((format!("{label}, {}", family.protocol()), sets));
            }
        }
        // The variants of an address family are one family of comparisons.
        let comparisons: Vec<IndependentObservations> = shared
            .iter()
            .flat_map(|(_, sets)| {
                let (baseline, others) = split(sets);
                others
                    .iter()
                    .map(|set| independent(&set.path, baseline, set))
            })
            .collect();
        let verdicts =
            independent_verdicts(&comparisons, &settings.verdicts()).map_err(|source| {
                ReportError::Statistics {
                    comparison: directories[0].0.clone(),
                    source,
                }
            })?;
        let of_variants = verdicts.comparisons.chunks(directories.len() - 1);
        for ((title, sets), verdicts) in shared.iter().zip(of_variants) {
            let (baseline, others) = split(sets);
            let tests = shared.len() * directories.len() * first.resolved.traffic.families.len();
            let found = modes(sets, tests, settings).map_err(|source| error(baseline, source))?;
            modal.extend(found.into_iter().map(|warning| Warning {
                subjects: vec![format!("{title}, {}", warning.subjects.join(", "))],
                ..warning
            }));
            groups.push(group(
                Some(title.clone()),
                baseline,
                others,
                verdicts,
                settings,
            )?);
        }
    }
    if groups.is_empty() {
        return Err(ReportError::NothingShared);
    }
    let mut warnings = vec![other_sessions()];
    warnings.append(&mut modal);
    Ok(report(
        Basis::IndependentObservations,
        settings,
        groups,
        warnings,
    ))
}

/// The observations of a variant's accepted trials, in block order.
fn observations(loaded: &Loaded, variant: &VariantName, family: AddressFamily) -> Vec<f64> {
    evidence::attempts(loaded, Scope::Accepted)
        .into_iter()
        .filter_map(|attempt| evidence::trial(attempt, variant, family))
        .map(|trial| trial.observation_pps)
        .collect()
}

fn split(sets: &[Observations]) -> (&Observations, &[Observations]) {
    let (baseline, others) = sets.split_first().expect("two sets or more are compared");
    (baseline, others)
}

fn independent(
    name: &str,
    baseline: &Observations,
    variant: &Observations,
) -> IndependentObservations {
    IndependentObservations {
        name: one_line(name),
        baseline: baseline.values_pps.clone(),
        variant: variant.values_pps.clone(),
    }
}

fn group(
    title: Option<String>,
    baseline: &Observations,
    others: &[Observations],
    verdicts: &[ComparisonVerdict],
    settings: CompareSettings,
) -> Result<CompareGroup, ReportError> {
    let baseline_row = row(baseline);
    let mut rows = vec![baseline_row.clone()];
    for (set, verdict) in others.iter().zip(verdicts) {
        let mut row = row(set);
        let effect = Effect::of_verdict(verdict, &baseline_row.row);
        row.row.verdict = Some(verdict_section(verdict, &effect));
        row.row.effect = Some(effect);
        rows.push(row);
    }
    Ok(CompareGroup {
        title,
        rows,
        family_size: verdicts.first().map_or(0, |verdict| verdict.family_size),
        ministat: if settings.with_ministat {
            ministat(baseline, others, settings.confidence_percent)?
        } else {
            Vec::new()
        },
    })
}

fn row(set: &Observations) -> CompareRow {
    CompareRow {
        label: one_line(&set.label),
        path: set.path.clone(),
        row: Row::of_observations(VariantName::from_label(&set.label), &set.values_pps),
    }
}

/// `ministat`'s text; at 95 % where it does not know the confidence.
fn ministat(
    baseline: &Observations,
    others: &[Observations],
    confidence_percent: f64,
) -> Result<Vec<String>, ReportError> {
    let dataset = |set: &Observations| {
        Dataset::new(one_line(&set.label), set.values_pps.clone())
            .map_err(|source| ReportError::Ministat { source })
    };
    let others = others.iter().map(dataset).collect::<Result<Vec<_>, _>>()?;
    let confidence = Confidence::from_percent(confidence_percent).unwrap_or_default();
    ministat_blocks(&dataset(baseline)?, &others, confidence)
}

fn report(
    basis: Basis,
    settings: CompareSettings,
    groups: Vec<CompareGroup>,
    warnings: Vec<Warning>,
) -> CompareReport {
    CompareReport {
        schema: COMPARE_SCHEMA_VERSION,
        basis,
        confidence_percent: settings.confidence_percent,
        threshold_percent: settings.threshold_percent,
        groups,
        warnings,
    }
}

fn stats_warnings(family: &FamilyVerdicts) -> Vec<Warning> {
    family.warnings.iter().map(Warning::from).collect()
}

fn order_is_unknown() -> Warning {
    Warning {
        code: "W214".to_owned(),
        subjects: Vec::new(),
        text:
            "nothing says in what order these were measured: what drifted between them reads as an \
               effect"
                .to_owned(),
        remedy: Some("measure them in the blocks of one experiment (fwdlab run)".to_owned()),
    }
}

fn other_sessions() -> Warning {
    Warning {
        code: "W215".to_owned(),
        subjects: Vec::new(),
        text: "these were measured in different runs, between which the machine may have changed"
            .to_owned(),
        remedy: Some("measure them as variants of one experiment".to_owned()),
    }
}

/// W110 for every set that lies in two groups, of `tests` that are made at once.
fn modes(
    sets: &[Observations],
    tests: usize,
    settings: CompareSettings,
) -> Result<Vec<Warning>, StatsError> {
    let mut warnings = Vec::new();
    for set in sets {
        let label = one_line(&set.label);
        let values_pps = &set.values_pps;
        let threshold_percent = settings.threshold_percent;
        warnings.extend(checks::observation_modes(
            &label,
            values_pps,
            threshold_percent,
            tests,
        )?);
    }
    Ok(warnings)
}

/// A warning where two medians are rather of different units.
fn units(baseline: &Observations, set: &Observations) -> Option<Warning> {
    let ratio = median(&set.values_pps)? / median(&baseline.values_pps)?;
    let (times, larger) = if ratio > 1.0 {
        (ratio, "larger")
    } else {
        (1.0 / ratio, "smaller")
    };
    (times >= UNITS_RATIO).then(|| Warning {
        code: "W216".to_owned(),
        subjects: vec![one_line(&set.label)],
        text: format!(
            "its values are about {} times {larger} than the baseline's: they may be of different units",
            format::grouped_float(times)
        ),
        remedy: Some("give both in packets per second".to_owned()),
    })
}

fn error(baseline: &Observations, source: StatsError) -> ReportError {
    ReportError::Statistics {
        comparison: one_line(&baseline.label),
        source,
    }
}
