//! What an experiment would measure, and what it could detect: said before it is run.

use fwdlab_archive::Loaded;
use fwdlab_model::{
    Binding, Comparison, Design, Factor, LabKind, Plan, PlannedBlock, Profiling, Reference,
    Resolved, Stratum, Traffic, Variant, VariantName, one_or_several,
};
use fwdlab_stats::{
    METHODS_WITH_POWER, Method, PooledSpread, PowerAnalysis, StatsError, Unit, percent,
};
use serde::Serialize;

use crate::error::ReportError;
use crate::report::Report;
use crate::text::one_line;

/// Version of what `fwdlab plan --json` prints.
pub const PREVIEW_SCHEMA_VERSION: u32 = 1;

/// Confidence of the upper bound of the spread that the smallest effect is reckoned with.
const SPREAD_CONFIDENCE: f64 = 0.8;

/// A plan and what can be said about it beforehand.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Preview {
    /// [`PREVIEW_SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// Short name of the experiment.
    pub name: String,
    /// The question as a title.
    pub question: String,
    /// Short name of the lab.
    pub lab: String,
    /// What kind of lab.
    pub kind: LabKind,
    /// Why the lab was not asked what it can have; none where it was.
    pub lab_not_asked: Option<String>,
    /// Programs that the DUT needs beyond those that every host has; the caller, who knows the lab, sets them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dut_programs: Vec<DutProgram>,
    /// What the tester would send.
    #[serde(rename = "traffic", with = "one_or_several")]
    pub traffics: Vec<Traffic>,
    /// How often, how long and in what order.
    pub design: Design,
    /// The things that are varied, and behind them what is held at one level.
    pub factors: Vec<Factor>,
    /// The names of the factors whose levels need a reboot.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rebooting_factors: Vec<String>,
    /// The names of the factors whose levels start forwarders in user space.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forwarder_factors: Vec<String>,
    /// The names of the factors for whose levels the content of the DUT's other slice is lost.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overwriting_factors: Vec<String>,
    /// All variants, those that the lab cannot have included.
    pub variants: Vec<Variant>,
    /// What is compared, and in what it differs.
    pub comparisons: Vec<ComparisonPreview>,
    /// Earlier data that the report will show.
    pub references: Vec<Reference>,
    /// The profiles that are taken, where any are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profiling: Option<Profiling>,
    /// Why the profiles that the experiment asks for are not taken; none where they are, or it asks for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profiles_unavailable: Option<String>,
    /// The first block, as an example of the order.
    pub first_block: PlannedBlock,
    /// How long the run takes, in seconds; none where nothing tells.
    pub duration_s: Option<f64>,
    /// The smallest effect it could detect, for each stratum.
    pub detectable: Vec<Detectable>,
}

/// A program that the DUT needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DutProgram {
    /// Its name.
    pub program: String,
    /// What the experiment needs it for.
    pub purposes: Vec<String>,
}

/// A baseline and how the others differ from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ComparisonPreview {
    /// Heading, where the experiment gives one.
    pub title: Option<String>,
    /// What the others are compared with.
    pub baseline: VariantName,
    /// The others that the lab can have.
    pub variants: Vec<VariantPreview>,
}

/// A variant of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VariantPreview {
    /// The variant.
    pub variant: VariantName,
    /// The factors whose level is not the baseline's.
    pub differences: Vec<Difference>,
}

/// One factor in which a variant differs from its baseline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The factor.
    pub factor: String,
    /// Its level in the baseline.
    pub baseline: String,
    /// Its level in the variant.
    pub variant: String,
}

/// The smallest effect that an experiment could detect in one stratum.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Detectable {
    /// The stratum.
    #[serde(flatten)]
    pub stratum: Stratum,
    /// What earlier runs of the lab say; none without any.
    pub reckoned: Option<Reckoned>,
}

/// The smallest effect that is detected four times out of five by the test that verdicts rest on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reckoned {
    /// The effect, one way or the other; none where so few blocks detect none, however large.
    pub smallest_effect_percent: Option<f64>,
    /// Blocks in which an effect as large as the practical threshold is detected; none where that
    /// is beyond reckoning.
    pub blocks_for_threshold: Option<usize>,
    /// Variants that share the error probability.
    pub compared: usize,
    /// Upper bound of the standard deviation of a block effect.
    pub spread_percent: f64,
    /// The confidence of that bound.
    pub spread_confidence_percent: f64,
    /// How many independent deviations it rests on.
    pub degrees_of_freedom: usize,
    /// The runs that it rests on, as `<name>/<label>`.
    pub runs: Vec<String>,
    /// Whether they are runs of an experiment of this name; of any experiment in this lab otherwise.
    pub same_experiment: bool,
    /// Whether each of them measured as many rounds of slices as long as this one would.
    pub same_slices: bool,
    /// What every method would need; empty unless it was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<MethodPreview>,
}

/// What one method would need, and what it could show with the planned blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MethodPreview {
    /// The method.
    pub method: Method,
    /// What it is to show.
    pub claim: Claim,
    /// What its samples are made of.
    pub unit: Unit,
    /// Upper bound of the standard deviation of one of these.
    pub spread_percent: f64,
    /// How many of them show an effect as large as the practical threshold, or that there is none beyond
    /// it; none where that is beyond reckoning.
    pub size_for_threshold: Option<usize>,
    /// The smallest effect, or threshold, with as many as there are blocks; none where so few show
    /// nothing.
    pub smallest_percent: Option<f64>,
}

/// What a method is to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Claim {
    /// That there is a difference.
    Difference,
    /// That there is none beyond a threshold, where there is none at all: two one-sided tests.
    Equivalence,
    /// That the baseline differs from its own copy: the A/A control, at its 1 %.
    Control,
}

impl Preview {
    /// Draws up what can be said.
    ///
    /// Shape: `earlier` are runs in the same lab under the same load regime, in any order;
    /// `lab_not_asked` is why the lab was not asked what it can have; `with_methods` also reckons
    /// what every other method would need; `duration_s` is none where nothing tells how long it takes.
    ///
    /// # Errors
    /// [`ReportError`] for a plan without blocks, and for records that contradict themselves.
    pub fn build(
        resolved: &Resolved,
        plan: &Plan,
        earlier: &[Loaded],
        lab_not_asked: Option<String>,
        duration_s: Option<f64>,
        with_methods: bool,
    ) -> Result<Self, ReportError> {
        let first_block = plan.blocks.first().cloned().ok_or(ReportError::NoBlock)?;
        let comparisons: Vec<ComparisonPreview> = resolved
            .comparisons
            .iter()
            .map(|comparison| comparison_preview(resolved, comparison))
            .collect();
        let compared = comparisons
            .iter()
            .map(|comparison| comparison.variants.len())
            .max()
            .unwrap_or(0)
            .max(1);
        let detectable = resolved
            .strata()
            .map(|stratum| {
                let reckoned = reckoned(resolved, earlier, stratum, compared, with_methods)?;
                Ok(Detectable { stratum, reckoned })
            })
            .collect::<Result<_, ReportError>>()?;
        Ok(Self {
            schema: PREVIEW_SCHEMA_VERSION,
            name: resolved.name.clone(),
            question: resolved.question.clone(),
            lab: resolved.lab.name.clone(),
            kind: resolved.lab.kind,
            lab_not_asked,
            dut_programs: Vec::new(),
            traffics: resolved.traffics.clone(),
            design: resolved.design.clone(),
            factors: resolved.factors.clone(),
            rebooting_factors: resolved
                .rebooting_factors()
                .iter()
                .map(|factor| factor.name.clone())
                .collect(),
            forwarder_factors: forwarder_factors(resolved),
            overwriting_factors: overwriting_factors(resolved),
            variants: resolved.variants.clone(),
            comparisons,
            references: resolved.references.clone(),
            profiling: resolved.profiling,
            profiles_unavailable: None,
            first_block,
            duration_s,
            detectable,
        })
    }

    fn variant(&self, name: &VariantName) -> Option<&Variant> {
        self.variants.iter().find(|variant| &variant.name == name)
    }

    pub(crate) fn label(&self, name: &VariantName) -> String {
        self.variant(name)
            .map_or_else(|| name.to_string(), |variant| one_line(&variant.label))
    }

    /// The variant's levels, in the order of the factors.
    pub(crate) fn levels(&self, variant: &Variant) -> String {
        let levels = self.factors.iter().filter_map(|factor| {
            let level = variant.levels.get(&factor.name)?;
            // What has one level is said once, for all variants.
            if !factor.is_varied() && self.has_varied_factors() {
                return None;
            }
            Some(one_line(&format!("{}={level}", factor.name)))
        });
        levels.collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn has_varied_factors(&self) -> bool {
        self.factors.iter().any(Factor::is_varied)
    }

    /// The variant's number in the text, from 1.
    pub(crate) fn number(&self, name: &VariantName) -> usize {
        let position = self
            .variants
            .iter()
            .position(|variant| &variant.name == name);
        position.map_or(0, |position| position + 1)
    }
}

/// The factors and settings whose levels start forwarders in user space.
fn forwarder_factors(resolved: &Resolved) -> Vec<String> {
    let bindings = resolved.lab.bindings.iter();
    bindings
        .filter(|(_, binding)| binding.has_forwarder())
        .map(|(factor, _)| factor.clone())
        .collect()
}

/// The factors of which some level that is measured is an image.
fn overwriting_factors(resolved: &Resolved) -> Vec<String> {
    let bindings = resolved.lab.bindings.iter();
    let overwriting = bindings.filter(|(_, binding)| match binding {
        Binding::Image(images) => images.values().any(Option::is_some),
        _ => false,
    });
    overwriting.map(|(factor, _)| factor.clone()).collect()
}

fn comparison_preview(resolved: &Resolved, comparison: &Comparison) -> ComparisonPreview {
    let baseline = resolved.variant(&comparison.baseline);
    let is_run = |variant: &&Variant| variant.unavailable.is_none();
    let variants = comparison
        .variants
        .iter()
        .filter_map(|name| resolved.variant(name))
        .filter(is_run)
        .map(|variant| VariantPreview {
            variant: variant.name.clone(),
            differences: baseline.map_or_else(Vec::new, |baseline| {
                differences(resolved, baseline, variant)
            }),
        });
    ComparisonPreview {
        title: comparison.title.clone(),
        baseline: comparison.baseline.clone(),
        variants: if baseline.as_ref().is_some_and(is_run) {
            variants.collect()
        } else {
            Vec::new()
        },
    }
}

/// The factors whose levels differ, in the order of the experiment.
fn differences(resolved: &Resolved, baseline: &Variant, variant: &Variant) -> Vec<Difference> {
    let level = |of: &Variant, factor: &str| {
        of.levels
            .get(factor)
            .map(ToString::to_string)
            .unwrap_or_default()
    };
    resolved
        .factors
        .iter()
        .map(|factor| Difference {
            factor: factor.name.clone(),
            baseline: level(baseline, &factor.name),
            variant: level(variant, &factor.name),
        })
        .filter(|difference| difference.baseline != difference.variant)
        .collect()
}

/// What earlier runs say: those of the same experiment, or else all.
fn reckoned(
    resolved: &Resolved,
    earlier: &[Loaded],
    stratum: Stratum,
    compared: usize,
    with_methods: bool,
) -> Result<Option<Reckoned>, ReportError> {
    let (same, others): (Vec<&Loaded>, Vec<&Loaded>) = earlier
        .iter()
        .partition(|loaded| loaded.resolved.name == resolved.name);
    for (runs, same_experiment) in [(same, true), (others, false)] {
        let mut effects = Vec::new();
        let mut observations = Vec::new();
        let mut used = Vec::new();
        for loaded in runs {
            let of_run = scattered(loaded, stratum)?;
            if of_run.effects.iter().any(|effects| effects.len() > 1) {
                effects.push(of_run.effects);
                observations.push(of_run.observations);
                used.push(loaded);
            }
        }
        let error = |source: StatsError| ReportError::Statistics {
            comparison: format!("earlier runs ({})", stratum.label()),
            source,
        };
        let Some(spread) = PooledSpread::of_runs(&effects).map_err(error)? else {
            continue;
        };
        let design = &resolved.design;
        let of_method = |method, bound| {
            let confidence = design.confidence_percent / 100.0;
            PowerAnalysis::new(method, bound, compared, confidence)
        };
        let bound = spread.upper_bound(SPREAD_CONFIDENCE).map_err(error)?;
        let verdicts = of_method(Method::SignedRank, bound).map_err(error)?;
        let methods = if with_methods {
            let of_observations = PooledSpread::of_runs(&observations)
                .and_then(|spread| {
                    spread
                        .map(|spread| spread.upper_bound(SPREAD_CONFIDENCE))
                        .transpose()
                })
                .map_err(error)?;
            methods(design, bound, of_observations, of_method).map_err(error)?
        } else {
            Vec::new()
        };
        let slices = |design: &Design| (design.rounds, design.slice_ms);
        return Ok(Some(Reckoned {
            smallest_effect_percent: verdicts
                .smallest_effect(design.blocks as usize)
                .map(percent),
            blocks_for_threshold: verdicts.size_to_show(threshold(design)),
            compared,
            spread_percent: percent(bound),
            spread_confidence_percent: SPREAD_CONFIDENCE * 100.0,
            degrees_of_freedom: spread.degrees_of_freedom,
            runs: used.iter().map(|loaded| run_name(loaded)).collect(),
            same_experiment,
            same_slices: used
                .iter()
                .all(|loaded| slices(&loaded.resolved.design) == slices(design)),
            methods,
        }));
    }
    Ok(None)
}

/// The practical threshold as a log ratio.
fn threshold(design: &Design) -> f64 {
    (design.threshold_percent / 100.0).ln_1p()
}

/// Every method with the noise of what its samples are made of; without observations only those by
/// blocks.
fn methods(
    design: &Design,
    of_effects: f64,
    of_observations: Option<f64>,
    of_method: impl Fn(Method, f64) -> Result<PowerAnalysis, StatsError>,
) -> Result<Vec<MethodPreview>, StatsError> {
    let blocks = design.blocks as usize;
    let threshold = threshold(design);
    let preview = |claim, analysis: PowerAnalysis| {
        let (size_for_threshold, smallest) = match claim {
            Claim::Difference | Claim::Control => (
                analysis.size_to_show(threshold),
                analysis.smallest_effect(blocks),
            ),
            Claim::Equivalence => (
                analysis.size_to_show_inside(threshold),
                analysis.smallest_threshold(blocks),
            ),
        };
        MethodPreview {
            method: analysis.method,
            claim,
            unit: analysis.method.unit(),
            spread_percent: percent(analysis.standard_deviation),
            size_for_threshold,
            smallest_percent: smallest.map(percent),
        }
    };
    let mut previews = Vec::new();
    for method in METHODS_WITH_POWER {
        let bound = match method.unit() {
            Unit::Blocks => Some(of_effects),
            Unit::Observations | Unit::Sessions => of_observations,
        };
        if let Some(bound) = bound {
            previews.push(preview(Claim::Difference, of_method(method, bound)?));
        }
    }
    for (method, bound) in [
        (Method::SignedRank, Some(of_effects)),
        (Method::WelchT, of_observations),
    ] {
        if let Some(bound) = bound {
            previews.push(preview(Claim::Equivalence, of_method(method, bound)?));
        }
    }
    previews.push(preview(Claim::Control, PowerAnalysis::control(of_effects)?));
    Ok(previews)
}

/// What a run tells of noise, as logarithms.
#[derive(Default)]
struct Scattered {
    /// The block effects of each variant, the A/A control included.
    effects: Vec<Vec<f64>>,
    /// The observations of each variant, the control included.
    observations: Vec<Vec<f64>>,
}

/// How everything that a run compares with a baseline scatters from block to block.
fn scattered(loaded: &Loaded, stratum: Stratum) -> Result<Scattered, ReportError> {
    if loaded.sessions.is_empty() {
        return Ok(Scattered::default());
    }
    let report = Report::build(loaded)?;
    // Traffics of other experiments have names of their own, and scatter as those of their family do.
    let has_it = report.strata().any(|of| of == stratum);
    let is_like = |of: Stratum| match has_it {
        true => of == stratum,
        false => of.family == stratum.family,
    };
    let of_stratum = report
        .comparisons
        .iter()
        .filter(|comparison| is_like(comparison.stratum));
    let rows = of_stratum.flat_map(|comparison| {
        let control = comparison.control.iter().map(|control| &control.row);
        comparison.rows.iter().chain(control)
    });
    let effects = rows
        .filter_map(|row| row.effect.as_ref())
        .map(|effect| {
            let blocks = effect.blocks.iter();
            blocks
                .map(|block| (block.percent / 100.0).ln_1p())
                .collect()
        })
        .collect();
    let observations = report.variants.iter().map(|variant| {
        let trials = report.trials.iter();
        trials
            .filter(|trial| trial.counts && trial.stratum == stratum)
            .filter(|trial| trial.variant == variant.name && trial.forwarding_rate_pps > 0.0)
            .map(|trial| trial.forwarding_rate_pps.ln())
            .collect()
    });
    Ok(Scattered {
        effects,
        observations: observations.collect(),
    })
}

fn run_name(loaded: &Loaded) -> String {
    let label = loaded.dir.file_name().unwrap_or_default();
    format!("{}/{}", loaded.resolved.name, label.to_string_lossy())
}
