//! Observations that somebody has, compared: loose files, pairs, or the blocks of one run. Whole results directories are
//! compared in `sessions.rs`.

use fwdlab_archive::Loaded;
use fwdlab_model::{Comparison, Stratum, VariantName};
use fwdlab_stats::ministat::{Confidence, Dataset, Dialect};
use fwdlab_stats::{
    ComparisonEffects, ComparisonVerdict, FamilyVerdicts, IndependentObservations, MethodResult,
    StatsError, VerdictSettings, block_methods, family_verdicts, independent_methods,
    independent_verdicts, logarithms, median, trend_warning,
};
use serde::Serialize;

use crate::checks;
use crate::error::ReportError;
use crate::factorial::{FactorialDesign, FactorialSection};
use crate::format;
use crate::judge::{self, ministat_blocks};
use crate::labels::label_of;
use crate::offered_load::{self, OfferedLoadRow};
use crate::report::{ComparisonSection, Effect, Row, Warning};
use crate::sections::{DRAWS, method_sections, verdict_section};
use crate::sessions::{RerunsSection, SessionSection};
use crate::text::one_line;

/// The version of the JSON that `fwdlab compare` prints.
pub const COMPARE_SCHEMA_VERSION: u32 = 2;

/// Medians that differ by so much are rather of different units than of different settings.
const UNITS_RATIO: f64 = 100.0;

/// What verdicts on given observations are asked to hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompareSettings {
    /// Confidence of the verdicts, in percent.
    pub confidence_percent: f64,
    /// Smaller effects are treated as irrelevant, in percent.
    pub threshold_percent: f64,
    /// Whether to say what every method makes of the observations, too.
    pub with_methods: bool,
    /// In which dialect to draw up `ministat`'s text, too; none leaves it out.
    pub ministat: Option<Dialect>,
}

impl Default for CompareSettings {
    /// What [`VerdictSettings`] has by default, and nothing beside the verdicts.
    fn default() -> Self {
        let usual = VerdictSettings::default();
        Self {
            confidence_percent: usual.confidence * 100.0,
            threshold_percent: usual.practical_threshold * 100.0,
            with_methods: false,
            ministat: None,
        }
    }
}

impl CompareSettings {
    pub(crate) fn verdicts(self) -> VerdictSettings {
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
    /// What was offered, one number an observation; none where it is not known.
    pub offered_pps: Option<Vec<f64>>,
}

impl Observations {
    fn with_offered(&self) -> Option<(&[f64], &[f64])> {
        Some((&self.values_pps, self.offered_pps.as_deref()?))
    }
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
    /// One session a side: what differs within them, and nothing to conclude from it.
    WithinSessions,
    /// Few sessions a side, and reruns that show the noise between sessions.
    Reruns,
    /// Several sessions a side, each one number.
    Sessions,
}

impl Basis {
    /// Whether the observations shown are of sessions too few to be compared by their own spread.
    pub(crate) fn is_of_few_sessions(self) -> bool {
        matches!(self, Self::WithinSessions | Self::Reruns)
    }

    /// What is compared, and how.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::IndependentObservations => {
                "Independent observations, compared by Welch's t of their logarithms"
            }
            Self::Pairs => {
                "Pairs: each line is a block, compared by the exact signed-rank test of their log ratios"
            }
            Self::Blocks => {
                "Blocks of one experiment, compared by the exact signed-rank test of their effects"
            }
            Self::WithinSessions => {
                "One session a side: the difference within these sessions, by Welch's t of their logarithms"
            }
            Self::Reruns => {
                "Medians of sessions, compared by Student's t with the spread that reruns of one configuration show \
                 between sessions"
            }
            Self::Sessions => {
                "Sessions, each by its median, compared by the exact Mann-Whitney test of the logarithms"
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
    /// Smaller effects are treated as irrelevant, in percent.
    pub threshold_percent: f64,
    /// Why nothing is concluded, and what would help; none where there are verdicts.
    pub no_verdict: Option<String>,
    /// The sessions of each side, the baseline's first; empty where files were compared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sides: Vec<Vec<SessionSection>>,
    /// The sessions that the noise between sessions is from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reruns: Vec<SessionSection>,
    /// The comparisons, each with one baseline.
    pub groups: Vec<CompareGroup>,
    /// What to beware of.
    pub warnings: Vec<Warning>,
}

impl CompareReport {
    /// Adds what to beware of where the files that were compared are of several results directories.
    pub fn warn_of_sessions(&mut self) {
        self.warnings.push(Warning::new(
            "W215",
            None,
            "these files come from several results directories, so from different sessions, but are judged as if from \
             one: what changed between the sessions reads as an effect",
            "compare the directories instead, which takes sessions into account",
        ));
    }
}

/// A baseline and what was compared with it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CompareGroup {
    /// What tells it from the others; none for the only one.
    pub title: Option<String>,
    /// The baseline first.
    pub rows: Vec<CompareRow>,
    /// How many verdicts are corrected together; 0 where there are none.
    pub family_size: usize,
    /// How far sessions differ; none where no reruns say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reruns: Option<RerunsSection>,
    /// What the factors do; none where no two are combined in all their levels.
    pub factorial: Option<FactorialSection>,
    /// As in `report.json`; empty where nothing says what was offered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub offered_load: Vec<OfferedLoadRow>,
    /// Exact text of ministat, where it was asked for.
    pub ministat: Vec<String>,
}

/// How the offered loads of two sides are compared, the baseline's first: each with its observations.
type RowOfSides =
    fn([(&[f64], &[f64]); 2], VariantName, &VerdictSettings) -> Result<OfferedLoadRow, StatsError>;

impl CompareGroup {
    /// Adds what was offered, where that is known, and returns what is to be warned of.
    pub(crate) fn add_offered_loads(
        &mut self,
        sets: &[Observations],
        settings: CompareSettings,
        row_of_sides: RowOfSides,
    ) -> Result<Vec<Warning>, ReportError> {
        let (baseline, others) = split(sets);
        let mut warnings = Vec::new();
        for set in others {
            let Some(sides) = baseline.with_offered().zip(set.with_offered()) else {
                continue;
            };
            let as_variant = VariantName::from_label(&set.label);
            let row = row_of_sides(sides.into(), as_variant, &settings.verdicts())
                .map_err(|source| error(baseline, source))?;
            warnings.extend(row.warning(one_line(&set.label)));
            self.offered_load.push(row);
        }
        Ok(warnings)
    }

    pub(crate) fn add_methods(&mut self, methods: Vec<Vec<MethodResult>>) {
        for (row, results) in self.rows.iter_mut().skip(1).zip(methods) {
            row.row.methods = method_sections(results);
        }
    }
}

/// One set of observations in a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CompareRow {
    /// Its name for readers.
    pub label: String,
    /// Where it is from.
    pub path: String,
    /// Rates, effect and verdict; `trials` counts the observations, or the sessions where several are compared.
    #[serde(flatten)]
    pub row: Row,
}

/// Compares every set of observations with the first, as independent ones; with a design, the factors
/// that the sets combine, too.
///
/// Shape: two sets or more; the design is of as many.
///
/// # Errors
/// What the statistics refuse.
pub fn compare_independent(
    sets: &[Observations],
    design: Option<&FactorialDesign>,
    settings: CompareSettings,
) -> Result<CompareReport, ReportError> {
    let (baseline, others) = split(sets);
    let refused = |source| error(baseline, source);
    let comparisons: Vec<IndependentObservations> = others
        .iter()
        .map(|set| independent(&set.label, baseline, set))
        .collect();
    let family = independent_verdicts(&comparisons, &settings.verdicts()).map_err(refused)?;
    let mut group = group(baseline, others, &family.comparisons, settings)?;
    if settings.with_methods {
        let methods = independent_methods(&comparisons, settings.verdicts().confidence, DRAWS)
            .map_err(refused)?;
        group.add_methods(methods);
    }
    if let Some(design) = design {
        let observations: Vec<Vec<f64>> = sets.iter().map(|set| set.values_pps.clone()).collect();
        let judged = design.judge_independent(&observations, &settings.verdicts());
        let (mut section, _) = judged.map_err(refused)?;
        if settings.with_methods {
            // Terms of combinations that were not measured cannot be estimated; then there is no table.
            section.analysis_of_variance = design
                .analysis_of_variance(&observations, settings.verdicts().confidence)
                .unwrap_or_default();
        }
        group.factorial = Some(section);
    }
    let mut warnings = vec![order_is_unknown()];
    warnings.extend(others.iter().filter_map(|set| units(baseline, set)));
    warnings.extend(modes(sets, sets.len(), settings).map_err(refused)?);
    for set in sets {
        let found = trend_warning(&one_line(&set.label), &set.values_pps);
        let found = found.map_err(refused)?;
        warnings.extend(found.iter().map(Warning::from));
    }
    let offered = group.add_offered_loads(sets, settings, offered_load::row_of_observations)?;
    warnings.extend(offered);
    Ok(report(
        Basis::IndependentObservations,
        settings,
        vec![group],
        warnings,
    ))
}

/// Compares every set of observations with the first, those of the same line with each other; with a
/// design, the factors that the sets combine, too.
///
/// Shape: two sets or more, all of one length; the design is of as many.
///
/// # Errors
/// [`ReportError::Lengths`], and what the statistics refuse.
pub fn compare_pairs(
    sets: &[Observations],
    design: Option<&FactorialDesign>,
    settings: CompareSettings,
) -> Result<CompareReport, ReportError> {
    let (baseline, others) = split(sets);
    let refused = |source| error(baseline, source);
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
            logarithms(&one_line(&set.label), &set.values_pps).map_err(refused)
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
    let family = family_verdicts(&comparisons, None, &settings.verdicts()).map_err(refused)?;
    let mut group = group(baseline, others, &family.comparisons, settings)?;
    let mut warnings = stats_warnings(&family);
    if settings.with_methods {
        let methods =
            block_methods(&comparisons, settings.verdicts().confidence, DRAWS).map_err(refused)?;
        group.add_methods(methods);
    }
    if let Some(design) = design {
        let effects: Vec<Vec<f64>> = std::iter::once(vec![0.0; baseline.values_pps.len()])
            .chain(
                comparisons
                    .iter()
                    .map(|compared| compared.block_effects.clone()),
            )
            .collect();
        let judged = design.judge_blocks(&effects, &settings.verdicts());
        let (section, found) = judged.map_err(refused)?;
        group.factorial = Some(section);
        warnings.extend(found);
    }
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
                |_| false,
                settings.threshold_percent,
                others.len(),
            )
            .map_err(refused)?,
        );
    }
    let offered = group.add_offered_loads(sets, settings, offered_load::row_of_pairs)?;
    warnings.extend(offered);
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
    stratum: Stratum,
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
    let dialect = settings.ministat.unwrap_or_default();
    let (section, mut warnings) =
        judge::judge(&loaded, &comparison, stratum, dialect, String::new())?;
    let compared: Vec<&VariantName> = variants.iter().map(|(name, _)| name).collect();
    warnings.extend(checks::slices(&loaded, stratum, &compared)?.1);
    let ComparisonSection {
        rows,
        family_size,
        factorial,
        offered_load,
        ministat,
        ..
    } = section;
    let rows = rows
        .into_iter()
        .zip(variants)
        .map(|(row, (name, path))| CompareRow {
            row: if settings.with_methods {
                row
            } else {
                Row {
                    methods: Vec::new(),
                    ..row
                }
            },
            label: label_of(&loaded.resolved, name),
            path: path.clone(),
        })
        .collect();
    let group = CompareGroup {
        title: None,
        rows,
        family_size,
        reruns: None,
        factorial,
        offered_load,
        ministat: if settings.ministat.is_some() {
            ministat
        } else {
            Vec::new()
        },
    };
    Ok(report(Basis::Blocks, settings, vec![group], warnings))
}

pub(crate) fn split(sets: &[Observations]) -> (&Observations, &[Observations]) {
    let (baseline, others) = sets.split_first().expect("two sets or more are compared");
    (baseline, others)
}

pub(crate) fn independent(
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
    baseline: &Observations,
    others: &[Observations],
    verdicts: &[ComparisonVerdict],
    settings: CompareSettings,
) -> Result<CompareGroup, ReportError> {
    let baseline_row = row(baseline);
    let mut rows = vec![baseline_row.clone()];
    for (set, verdict) in others.iter().zip(verdicts) {
        let mut row = row(set);
        let effect = Effect::of_verdict(verdict, Some(&baseline_row.row));
        row.row.verdict = Some(verdict_section(verdict, &effect));
        row.row.effect = Some(effect);
        rows.push(row);
    }
    Ok(CompareGroup {
        title: None,
        rows,
        family_size: verdicts.first().map_or(0, |verdict| verdict.family_size),
        reruns: None,
        offered_load: Vec::new(),
        factorial: None,
        ministat: match settings.ministat {
            Some(dialect) => ministat(baseline, others, settings.confidence_percent, dialect)?,
            None => Vec::new(),
        },
    })
}

pub(crate) fn row(set: &Observations) -> CompareRow {
    CompareRow {
        label: one_line(&set.label),
        path: set.path.clone(),
        row: Row::of_observations(VariantName::from_label(&set.label), &set.values_pps),
    }
}

/// `ministat`'s text; at 95 % where it does not know the confidence.
pub(crate) fn ministat(
    baseline: &Observations,
    others: &[Observations],
    confidence_percent: f64,
    dialect: Dialect,
) -> Result<Vec<String>, ReportError> {
    let dataset = |set: &Observations| {
        Dataset::new(one_line(&set.label), set.values_pps.clone())
            .map_err(|source| ReportError::Ministat { source })
    };
    let others = others.iter().map(dataset).collect::<Result<Vec<_>, _>>()?;
    let confidence = Confidence::from_percent(confidence_percent).unwrap_or_default();
    ministat_blocks(&dataset(baseline)?, &others, confidence, dialect)
}

pub(crate) fn report(
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
        no_verdict: None,
        sides: Vec::new(),
        reruns: Vec::new(),
        groups,
        warnings,
    }
}

pub(crate) fn stats_warnings(family: &FamilyVerdicts) -> Vec<Warning> {
    family.warnings.iter().map(Warning::from).collect()
}

fn order_is_unknown() -> Warning {
    Warning::new(
        "W214",
        None,
        "nothing says in what order these were measured: what drifted between them reads as an effect",
        "measure them in the blocks of one experiment (fwdlab run)",
    )
}

/// W110 for every set that lies in two groups, of `tests` that are made at once.
pub(crate) fn modes(
    sets: &[Observations],
    tests: usize,
    settings: CompareSettings,
) -> Result<Vec<Warning>, StatsError> {
    let mut warnings = Vec::new();
    for set in sets {
        warnings.extend(checks::observation_modes(
            one_line(&set.label),
            &set.values_pps,
            settings.threshold_percent,
            tests,
        )?);
    }
    Ok(warnings)
}

/// A warning where two medians are rather of different units.
pub(crate) fn units(baseline: &Observations, set: &Observations) -> Option<Warning> {
    let ratio = median(&set.values_pps)? / median(&baseline.values_pps)?;
    let (times, larger) = if ratio > 1.0 {
        (ratio, "larger")
    } else {
        (1.0 / ratio, "smaller")
    };
    (times >= UNITS_RATIO).then(|| {
        Warning::new(
            "W216",
            [one_line(&set.label)],
            format!(
                "its values are about {} times {larger} than the baseline's: they may be of different units",
                format::grouped_float(times)
            ),
            "give both in packets per second",
        )
    })
}

pub(crate) fn error(baseline: &Observations, source: StatsError) -> ReportError {
    ReportError::Statistics {
        comparison: one_line(&baseline.label),
        source,
    }
}
