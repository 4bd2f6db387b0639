//! What an experiment would measure, and what it could detect: said before it is run.

use std::fmt::Write as _;

use fwdlab_archive::Loaded;
use fwdlab_model::{
    AddressFamily, Comparison, Design, Factor, LoadRegime, Order, Plan, PlannedBlock, Reference,
    Resolved, Traffic, Variant, VariantName,
};
use fwdlab_stats::{
    DETECTION_POWER, PooledSpread, StatsError, blocks_to_show, percent, smallest_effect,
};
use serde::Serialize;

use crate::error::ReportError;
use crate::format;
use crate::report::Report;
use crate::sentences;
use crate::text::{columns, one_line, wrap_to_columns};

/// Version of what `fwdlab plan --json` prints.
pub const PREVIEW_SCHEMA_VERSION: u32 = 1;

/// Confidence of the upper bound of the spread that the smallest effect is reckoned with.
const SPREAD_CONFIDENCE: f64 = 0.8;

/// Narrower than this nothing can be laid out; text then sticks out.
const WIDTH_MIN: usize = 40;

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
    /// Why the lab could not be asked what it can have; none where it was.
    pub lab_not_asked: Option<String>,
    /// What the tester would send.
    pub traffic: Traffic,
    /// How often, how long and in what order.
    pub design: Design,
    /// The things that are varied.
    pub factors: Vec<Factor>,
    /// All variants, those that the lab cannot have included.
    pub variants: Vec<Variant>,
    /// What is compared, and in what it differs.
    pub comparisons: Vec<ComparisonPreview>,
    /// Earlier data that the report will show.
    pub references: Vec<Reference>,
    /// The first block, as an example of the order.
    pub first_block: PlannedBlock,
    /// How long the run takes, in seconds.
    pub duration_s: f64,
    /// The smallest effect it could detect, for each address family.
    pub detectable: Vec<Detectable>,
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

/// The smallest effect that an experiment could detect in one address family.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Detectable {
    /// The family.
    pub family: AddressFamily,
    /// What earlier runs of the lab say; none without any.
    pub reckoned: Option<Reckoned>,
}

/// The smallest effect that is detected four times out of five, in the normal approximation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reckoned {
    /// The effect, one way or the other.
    pub smallest_effect_percent: f64,
    /// Blocks in which an effect as large as the practical threshold is detected; none where that
    /// is beyond reckoning.
    pub blocks_for_threshold: Option<f64>,
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
}

impl Preview {
    /// Draws up what can be said.
    ///
    /// Shape: `earlier` are runs in the same lab under the same load regime, in any order;
    /// `lab_not_asked` is why the lab could not be asked what it can have.
    ///
    /// # Errors
    /// [`ReportError`] for a plan without blocks, and for records that contradict themselves.
    pub fn build(
        resolved: &Resolved,
        plan: &Plan,
        earlier: &[Loaded],
        lab_not_asked: Option<String>,
        duration_s: f64,
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
            .traffic
            .families
            .iter()
            .map(|&family| {
                let reckoned = reckoned(resolved, earlier, family, compared)?;
                Ok(Detectable { family, reckoned })
            })
            .collect::<Result<_, ReportError>>()?;
        Ok(Self {
            schema: PREVIEW_SCHEMA_VERSION,
            name: resolved.name.clone(),
            question: resolved.question.clone(),
            lab: resolved.lab.name.clone(),
            lab_not_asked,
            traffic: resolved.traffic.clone(),
            design: resolved.design.clone(),
            factors: resolved.factors.clone(),
            variants: resolved.variants.clone(),
            comparisons,
            references: resolved.references.clone(),
            first_block,
            duration_s,
            detectable,
        })
    }

    fn variant(&self, name: &VariantName) -> Option<&Variant> {
        self.variants.iter().find(|variant| &variant.name == name)
    }

    fn label(&self, name: &VariantName) -> String {
        self.variant(name)
            .map_or_else(|| name.to_string(), |variant| one_line(&variant.label))
    }

    /// The variant's levels, in the order of the factors.
    fn levels(&self, variant: &Variant) -> String {
        let levels = self.factors.iter().filter_map(|factor| {
            let level = variant.levels.get(&factor.name)?;
            Some(one_line(&format!("{}={level}", factor.name)))
        });
        levels.collect::<Vec<_>>().join(", ")
    }

    /// The variant's number in the text, from 1.
    fn number(&self, name: &VariantName) -> usize {
        let position = self
            .variants
            .iter()
            .position(|variant| &variant.name == name);
        position.map_or(0, |position| position + 1)
    }
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
    family: AddressFamily,
    compared: usize,
) -> Result<Option<Reckoned>, ReportError> {
    let (same, others): (Vec<&Loaded>, Vec<&Loaded>) = earlier
        .iter()
        .partition(|loaded| loaded.resolved.name == resolved.name);
    for (runs, same_experiment) in [(same, true), (others, false)] {
        let mut effects = Vec::new();
        let mut used = Vec::new();
        for loaded in runs {
            let of_run = block_effects(loaded, family)?;
            if of_run.iter().any(|effects| effects.len() > 1) {
                effects.push(of_run);
                used.push(loaded);
            }
        }
        let error = |source: StatsError| ReportError::Statistics {
            comparison: format!("earlier runs ({})", family.protocol()),
            source,
        };
        let Some(spread) = PooledSpread::of_runs(&effects).map_err(error)? else {
            continue;
        };
        let design = &resolved.design;
        let confidence = design.confidence_percent / 100.0;
        let bound = spread.upper_bound(SPREAD_CONFIDENCE).map_err(error)?;
        let blocks = design.blocks as usize;
        let smallest = smallest_effect(bound, blocks, compared, confidence).map_err(error)?;
        let threshold = (design.threshold_percent / 100.0).ln_1p();
        let slices = |design: &Design| (design.rounds, design.slice_ms);
        return Ok(Some(Reckoned {
            smallest_effect_percent: percent(smallest),
            blocks_for_threshold: blocks_to_show(threshold, bound, compared, confidence)
                .map_err(error)?,
            compared,
            spread_percent: percent(bound),
            spread_confidence_percent: SPREAD_CONFIDENCE * 100.0,
            degrees_of_freedom: spread.degrees_of_freedom,
            runs: used.iter().map(|loaded| run_name(loaded)).collect(),
            same_experiment,
            same_slices: used
                .iter()
                .all(|loaded| slices(&loaded.resolved.design) == slices(design)),
        }));
    }
    Ok(None)
}

/// The block effects of everything that a run compares with a baseline, the A/A control included,
/// as log ratios.
fn block_effects(loaded: &Loaded, family: AddressFamily) -> Result<Vec<Vec<f64>>, ReportError> {
    if loaded.sessions.is_empty() {
        return Ok(Vec::new());
    }
    let report = Report::build(loaded)?;
    let of_family = report
        .comparisons
        .iter()
        .filter(|comparison| comparison.family == family);
    let rows = of_family.flat_map(|comparison| {
        let control = comparison.control.iter().map(|control| &control.row);
        comparison.rows.iter().chain(control)
    });
    Ok(rows
        .filter_map(|row| row.effect.as_ref())
        .map(|effect| {
            let blocks = effect.blocks.iter();
            blocks
                .map(|block| (block.percent / 100.0).ln_1p())
                .collect()
        })
        .collect())
}

fn run_name(loaded: &Loaded) -> String {
    let label = loaded.dir.file_name().unwrap_or_default();
    format!("{}/{}", loaded.resolved.name, label.to_string_lossy())
}

/// The preview as a terminal of `width` columns shows it.
pub(crate) fn text(preview: &Preview, width: usize) -> String {
    let mut page = Page {
        preview,
        width: width.max(WIDTH_MIN),
        text: String::new(),
    };
    page.opening();
    page.variants();
    page.comparisons();
    page.order();
    page.duration();
    page.detectable();
    page.text
}

struct Page<'a> {
    preview: &'a Preview,
    width: usize,
    text: String,
}

impl Page<'_> {
    /// A text in lines, the first behind `lead`, the others indented as far.
    fn wrapped(&mut self, lead: &str, text: &str) {
        let indent = columns(lead);
        let room = self.width.saturating_sub(indent).max(20);
        let lines = wrap_to_columns(text, room);
        for (index, line) in lines.iter().enumerate() {
            let lead = if index == 0 {
                lead.to_owned()
            } else {
                " ".repeat(indent)
            };
            let _ = writeln!(self.text, "{}", format!("{lead}{line}").trim_end());
        }
    }

    fn heading(&mut self, heading: &str) {
        self.text.push('\n');
        self.wrapped("", heading);
    }

    fn opening(&mut self) {
        let preview = self.preview;
        self.wrapped("", &one_line(&preview.question));
        self.heading("Lab and traffic");
        self.wrapped("  ", &format!("lab {}", one_line(&preview.lab)));
        if let Some(reason) = &preview.lab_not_asked {
            self.wrapped(
                "  ",
                &format!(
                    "the lab could not be asked which variants it can have: {}",
                    one_line(reason)
                ),
            );
        }
        self.wrapped("  ", &sentences::flows(&preview.traffic));
        self.wrapped("  ", &load(&preview.traffic));
    }

    fn variants(&mut self) {
        let preview = self.preview;
        self.heading("Variants");
        for variant in &preview.variants {
            let number = preview.number(&variant.name);
            self.wrapped(&format!("{number:>4}  "), &one_line(&variant.label));
            let words = match &variant.control_of {
                Some(of) => format!("{} a second time", preview.label(of)),
                None => preview.levels(variant),
            };
            // A label made of the levels has said them.
            if words != one_line(&variant.label) {
                self.wrapped("        ", &words);
            }
            if let Some(reason) = &variant.unavailable {
                self.wrapped("        ", &format!("not run: {}", one_line(reason)));
            }
        }
    }

    fn comparisons(&mut self) {
        let preview = self.preview;
        for comparison in &preview.comparisons {
            let title = comparison.title.as_deref().map(one_line);
            let compared = title.map_or_else(
                || "Compared".to_owned(),
                |title| format!("{title}: compared"),
            );
            let baseline = preview.label(&comparison.baseline);
            self.heading(&format!("{compared} with {baseline}"));
            for other in &comparison.variants {
                let number = preview.number(&other.variant);
                let differences: Vec<String> = other
                    .differences
                    .iter()
                    .map(|difference| {
                        one_line(&format!(
                            "{}: {} -> {}",
                            difference.factor, difference.baseline, difference.variant
                        ))
                    })
                    .collect();
                let words = if differences.is_empty() {
                    "nothing differs".to_owned()
                } else {
                    differences.join(", ")
                };
                self.wrapped(&format!("{number:>4}  "), &words);
            }
            if comparison.variants.is_empty() {
                self.wrapped("  ", "nothing but its own copy, where there is one");
            }
        }
        if !preview.references.is_empty() {
            self.heading("Earlier sessions, shown beside the results");
        }
        for reference in &preview.references {
            for (family, data) in &reference.families {
                let observations = data.observations_pps.len() as u64;
                self.wrapped(
                    "  ",
                    &format!(
                        "{}: {} of {} from {} (SHA-256 {})",
                        one_line(&reference.label),
                        format::counted(observations, "observation"),
                        family.protocol(),
                        one_line(&data.path),
                        data.sha256
                    ),
                );
            }
        }
    }

    fn order(&mut self) {
        let preview = self.preview;
        let design = &preview.design;
        let block = &preview.first_block;
        let order = match (design.order, design.seed_was_drawn) {
            (Order::InSequence, _) => "in sequence".to_owned(),
            (Order::Random, false) => format!("at random (seed {})", design.seed),
            (Order::Random, true) => format!(
                "at random (seed {}, drawn for this plan: a run draws its own)",
                design.seed
            ),
        };
        self.heading(&format!("Order of block {}, {order}", block.number));
        for family in &block.families {
            for (round, row) in (1..).zip(&family.rounds) {
                let numbers: Vec<String> = row
                    .iter()
                    .map(|name| preview.number(name).to_string())
                    .collect();
                let lead = format!("  {} round {round:>2}:  ", family.family.protocol());
                self.wrapped(&lead, &numbers.join(" "));
            }
        }
    }

    fn duration(&mut self) {
        let design = &self.preview.design;
        self.heading("Time");
        let words = format!(
            "about {}: {} of {}, slices of {} ms after {} ms of settling, {} ms of warm-up",
            format::duration(self.preview.duration_s),
            format::counted(design.blocks.into(), "block"),
            format::counted(design.rounds.into(), "round"),
            design.slice_ms,
            design.settle_ms,
            design.warm_up_ms
        );
        self.wrapped("  ", &words);
    }

    fn detectable(&mut self) {
        let preview = self.preview;
        self.heading("Smallest effect that it could detect");
        for detectable in &preview.detectable {
            if preview.detectable.len() > 1 {
                self.wrapped("  ", detectable.family.protocol());
            }
            let lead = "  - ";
            let Some(reckoned) = &detectable.reckoned else {
                self.wrapped(
                    lead,
                    "not known: there is no earlier run in this lab on this machine under this load \
                     whose blocks show how much they scatter; measure the lab with `fwdlab doctor`, or \
                     run this experiment once, and plan again",
                );
                continue;
            };
            for sentence in sentences_of(reckoned, &preview.design) {
                self.wrapped(lead, &sentence);
            }
        }
    }
}

fn sentences_of(reckoned: &Reckoned, design: &Design) -> Vec<String> {
    let threshold = format::short(design.threshold_percent, 3);
    let sharing = match reckoned.compared {
        1 => String::new(),
        compared => format!(", corrected for {compared} comparisons"),
    };
    let mut sentences = vec![format!(
        "about {} %, up or down, with a probability of {} %, at {} % confidence{sharing}",
        format::significant(reckoned.smallest_effect_percent, 2),
        format::short(DETECTION_POWER * 100.0, 0),
        format::short(design.confidence_percent, 2),
    )];
    sentences.push(match reckoned.blocks_for_threshold {
        Some(blocks) if blocks <= f64::from(design.blocks) => {
            format!("that is within the threshold of {threshold} %")
        }
        Some(blocks) if blocks < 1e6 => format!(
            "an effect of the threshold's {threshold} % would take about {blocks:.0} blocks"
        ),
        _ => format!("an effect of the threshold's {threshold} % is out of reach"),
    });
    let of = if reckoned.same_experiment {
        "of this experiment"
    } else {
        "of other experiments in this lab"
    };
    let runs = format::counted(reckoned.runs.len() as u64, "earlier run");
    sentences.push(format!(
        "it rests on {runs} {of} ({}): with {} % confidence block effects scatter by no more than \
         {} % (chi-squared, {} degrees of freedom)",
        one_line(&reckoned.runs.join(", ")),
        format::short(reckoned.spread_confidence_percent, 0),
        format::significant(reckoned.spread_percent, 2),
        reckoned.degrees_of_freedom
    ));
    if !reckoned.same_slices {
        sentences.push(
            "their slices were not as many or as long: fewer and shorter ones scatter more"
                .to_owned(),
        );
    }
    sentences.push(
        "it is the normal approximation: with few blocks the exact test needs more, about a quarter \
         with 8, a tenth with 16"
            .to_owned(),
    );
    sentences
}

fn load(traffic: &Traffic) -> String {
    let burst = match traffic.burst_frames {
        1 => String::new(),
        frames => format!(", {frames} frames back to back"),
    };
    match (traffic.regime, traffic.intended_load_pps) {
        (LoadRegime::Paced, Some(pps)) => {
            format!("load: paced at {}{burst}", format::rate(pps as f64))
        }
        (regime, _) => format!("load: {regime}"),
    }
}
