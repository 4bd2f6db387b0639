//! From records to effects, verdicts and `ministat`'s text; all statistics are those of
//! `fwdlab_stats`.

use fwdlab_archive::{Loaded, format_observation};
use fwdlab_model::record::Fate;
use fwdlab_model::{
    Comparison, LoadRegime, ProfileFault, Reference, Stratum, TrialRecord, VariantName,
};
use fwdlab_stats::ministat::{self, Confidence, Dataset, Dialect, Layout};
use fwdlab_stats::{
    BlockEffect, ComparisonEffects, ComparisonVerdict, ControlVerdict, HALF_A_FRAME, StatsError,
    VariantObservations, VerdictSettings, block_effect, block_methods, ceiling_warnings,
    control_verdict, family_verdicts, log_ratio, median, percent, variance_components,
};

use crate::bases;
use crate::checks;
use crate::error::ReportError;
use crate::evidence::{self, Scope, Slices};
use crate::factorial::{FactorialDesign, FactorialSection};
use crate::labels::label_of;
use crate::offered_load;
use crate::outcomes::Outcomes;
use crate::report::{
    BlockEffectSection, ComparisonSection, ControlSection, Effect, NoiseSection, ReferenceRow, Row,
    VerdictSection, Warning,
};
use crate::sections::{
    DRAWS, control_sentence, cost_ns, method_sections, verdict_section, verdict_settings,
};
use crate::text;

/// As many datasets as `ministat` has symbols for.
const MINISTAT_DATASETS_MAX: usize = 7;

/// Judges one comparison in one stratum, and says what is to be warned of.
pub(crate) fn judge(
    loaded: &Loaded,
    comparison: &Comparison,
    stratum: Stratum,
    dialect: Dialect,
    plot: String,
) -> Result<(ComparisonSection, Vec<Warning>), ReportError> {
    let judge = Judge {
        loaded,
        comparison,
        stratum,
        slices: Slices::of(loaded, stratum),
        is_carried_whole: offered_load::is_carried_whole(loaded, comparison, stratum),
    };
    let error = |source| judge.error(source);
    let accepted = judge.family_of(Scope::Accepted).map_err(error)?;
    let has_invalid = loaded
        .attempts
        .iter()
        .any(|attempt| attempt.fate == Fate::Invalid);
    let rows_with_all_trials = if has_invalid {
        judge.family_of(Scope::AllTrials).map_err(error)?.rows
    } else {
        Vec::new()
    };
    let is_disturbed = evidence::disturbed_ratio(loaded, stratum).is_some_and(|ratio| ratio > 0.0);
    let rows_over_all_time = if is_disturbed {
        let judged = judge.family_of(Scope::AllTime).map_err(error)?;
        let control = judged.control.map(|control| control.row);
        judged.rows.into_iter().chain(control).collect()
    } else {
        Vec::new()
    };
    let (ministat, ministat_note) = judge.ministat(&accepted.rows, dialect)?;
    let mut warnings = accepted.warnings;
    warnings.extend(judge.words_that_change(
        &accepted.rows,
        &rows_with_all_trials,
        &Sensitivity {
            code: "W206",
            rests_on: "which trials count",
            here: "the valid ones",
            there: "all",
            remedy: "remove what made trials invalid and measure again",
        },
    ));
    warnings.extend(judge.words_that_change(
        &accepted.rows,
        &rows_over_all_time,
        &Sensitivity {
            code: "W210",
            rests_on: "leaving out the time in which the load CPU was disturbed",
            here: "the undisturbed time",
            there: "all of it",
            remedy: "measure on a quieter machine, or more blocks",
        },
    ));
    let (factorial, factorial_warnings) = accepted.factorial.unzip();
    warnings.extend(factorial_warnings.unwrap_or_default());
    let offered_load =
        offered_load::rows(loaded, comparison, &judge.slices, &accepted.rows).map_err(error)?;
    warnings.extend(
        offered_load
            .iter()
            .filter_map(|row| row.warning(judge.subject(&row.variant))),
    );
    if !judge.is_carried_whole {
        warnings.extend(offered_load::held_by_load(
            loaded,
            &comparison.variants,
            stratum,
            |variant| judge.subject(variant),
        ));
    }
    warnings.extend(bases::warnings(loaded, stratum, &accepted.rows, |row| {
        judge.subject(&row.variant)
    }));
    let outcomes = Outcomes::judge(loaded, comparison, stratum, |variant| {
        judge.subject(variant)
    })
    .map_err(error)?;
    let section = ComparisonSection {
        title: comparison.title.as_deref().map(text::one_line),
        stratum,
        rows: accepted.rows,
        references: references(loaded, stratum),
        control: accepted.control,
        family_size: accepted.family_size,
        factorial,
        outcomes,
        rows_with_all_trials,
        rows_over_all_time,
        offered_load,
        ministat,
        ministat_note,
        plot,
    };
    Ok((section, warnings))
}

struct Judge<'a> {
    loaded: &'a Loaded,
    comparison: &'a Comparison,
    stratum: Stratum,
    slices: Slices<'a>,
    /// Whether the rates are those of the load.
    is_carried_whole: bool,
}

/// A choice of what counts, and the words to say that a verdict hangs on it.
struct Sensitivity {
    code: &'static str,
    rests_on: &'static str,
    here: &'static str,
    there: &'static str,
    remedy: &'static str,
}

/// A comparison judged on one scope of trials.
struct Judged {
    rows: Vec<Row>,
    control: Option<ControlSection>,
    family_size: usize,
    warnings: Vec<Warning>,
    /// Of the accepted trials only.
    factorial: Option<(FactorialSection, Vec<Warning>)>,
}

/// The effects of one variant by block.
struct Effects {
    blocks: Vec<(u32, f64)>,
    rounds: Vec<Vec<f64>>,
}

impl Effects {
    fn log_ratios(&self) -> Vec<f64> {
        self.blocks
            .iter()
            .map(|(_, log_ratio)| *log_ratio)
            .collect()
    }
}

impl Judge<'_> {
    fn family_of(&self, scope: Scope) -> Result<Judged, StatsError> {
        let mut warnings = Vec::new();
        let baseline = self.plain_row(&self.comparison.baseline, scope);
        let control = self.control(&baseline, scope, &mut warnings)?;

        let mut effects = Vec::new();
        for variant in &self.comparison.variants {
            effects.push(self.effects(variant, scope, &mut warnings)?);
        }
        let with_effects: Vec<ComparisonEffects> = self
            .comparison
            .variants
            .iter()
            .zip(&effects)
            .filter(|(_, effects)| !effects.blocks.is_empty())
            .map(|(variant, effects)| ComparisonEffects {
                name: self.subject(variant),
                block_effects: effects.log_ratios(),
            })
            .collect();
        let verdicts = family_verdicts(
            &with_effects,
            control.as_ref().map(|(_, verdict)| verdict),
            &self.settings(),
        )?;
        let variants = self.comparison.variants.iter();
        let named: Vec<_> = variants
            .map(|variant| self.subject(variant))
            .zip(&effects)
            .collect();
        for mut warning in verdicts.warnings {
            if let fwdlab_stats::Warning::OutlyingBlock {
                comparison, block, ..
            } = &mut warning
                && let Some((_, effects)) = named.iter().find(|(name, _)| name == comparison)
            {
                // Blocks without an effect leave gaps in the numbers.
                *block = effects.blocks[*block as usize - 1].0;
            }
            warnings.push(Warning::from(&warning));
        }
        // What the verdicts say of the load goes for all variants.
        if !self.is_carried_whole {
            warnings.extend(self.ceiling(scope)?);
        }
        warnings.extend(self.modes(&effects, scope)?);

        let mut methods = match scope {
            Scope::Accepted => block_methods(&with_effects, self.settings().confidence, DRAWS)?,
            Scope::AllTrials | Scope::AllTime => Vec::new(),
        }
        .into_iter();
        let judged = verdicts.comparisons.into_iter();
        let mut judged = judged.map(|verdict| match self.is_carried_whole {
            true => verdict.not_limited_by_dut(),
            false => verdict,
        });
        let mut rows = vec![baseline.clone()];
        for (variant, effects) in self.comparison.variants.iter().zip(&effects) {
            let mut row = self.plain_row(variant, scope);
            if let Some(verdict) = (!effects.blocks.is_empty())
                .then(|| judged.next())
                .flatten()
            {
                let effect = self.effect(&verdict, effects, &baseline)?;
                row.verdict = Some(verdict_section(&verdict, &effect));
                row.effect = Some(effect);
                row.methods = methods.next().map_or_else(Vec::new, method_sections);
            }
            rows.push(row);
        }
        let factorial = match scope {
            Scope::Accepted if !self.is_carried_whole => self.factorial(&effects)?,
            Scope::Accepted | Scope::AllTrials | Scope::AllTime => None,
        };
        Ok(Judged {
            rows,
            control: control.map(|(section, _)| section),
            family_size: with_effects.len(),
            warnings,
            factorial,
        })
    }

    /// What the factors do, in the blocks that every variant has an effect in; none where they cannot
    /// be separated.
    fn factorial(
        &self,
        effects: &[Effects],
    ) -> Result<Option<(FactorialSection, Vec<Warning>)>, StatsError> {
        let Some(design) = FactorialDesign::of_comparison(&self.loaded.resolved, self.comparison)
        else {
            return Ok(None);
        };
        let in_all = |block: &u32| {
            let has = |effects: &Effects| effects.blocks.iter().any(|(number, _)| number == block);
            effects.iter().all(has)
        };
        let blocks: Vec<u32> = effects[0]
            .blocks
            .iter()
            .map(|(block, _)| *block)
            .filter(in_all)
            .collect();
        if blocks.is_empty() {
            return Ok(None);
        }
        let in_blocks = effects.iter().map(|effects| {
            let of_blocks = effects.blocks.iter();
            of_blocks
                .filter(|(block, _)| blocks.contains(block))
                .map(|(_, log_ratio)| *log_ratio)
                .collect()
        });
        let in_blocks: Vec<Vec<f64>> = std::iter::once(vec![0.0; blocks.len()])
            .chain(in_blocks)
            .collect();
        match design.judge_blocks(&in_blocks, &self.settings()) {
            Err(StatsError::NotEstimable { .. }) => Ok(None),
            judged => judged.map(Some),
        }
    }

    /// Warnings of an upper limit that several variants share, which is not the DUT's.
    fn ceiling(&self, scope: Scope) -> Result<Vec<Warning>, StatsError> {
        let observed: Vec<VariantObservations> = std::iter::once(&self.comparison.baseline)
            .chain(&self.comparison.variants)
            .map(|variant| VariantObservations {
                name: self.subject(variant),
                observations_pps: self.observations(variant, scope),
            })
            .collect();
        let warnings = ceiling_warnings(&observed)?;
        Ok(warnings.iter().map(Warning::from).collect())
    }

    /// Warnings of effects that lie in two groups.
    fn modes(&self, effects: &[Effects], scope: Scope) -> Result<Vec<Warning>, StatsError> {
        let resolved = &self.loaded.resolved;
        let compared = resolved.comparisons.iter().map(|c| c.variants.len());
        let tests = compared.sum::<usize>() * resolved.strata().count();
        let attempts = evidence::attempts(self.loaded, scope);
        let mut warnings = Vec::new();
        for (variant, effects) in self.comparison.variants.iter().zip(effects) {
            let rate_of_block = |block: u32| {
                let attempt = evidence::of_block(&attempts, block)?;
                Some(evidence::trial(attempt, variant, self.stratum)?.observation_pps)
            };
            // What W220 says of the profiles of the two.
            let has_other_programs = |block: u32| {
                let attempt = evidence::of_block(&attempts, block);
                let both = [variant, &self.comparison.baseline];
                both.into_iter()
                    .filter_map(|variant| evidence::trial(attempt?, variant, self.stratum))
                    .filter_map(|trial| trial.profile.as_deref())
                    .flat_map(|profile| &profile.faults)
                    .any(|fault| matches!(fault, ProfileFault::Foreign { .. }))
            };
            warnings.extend(checks::block_modes(
                self.subject(variant),
                &effects.blocks,
                rate_of_block,
                has_other_programs,
                resolved.design.threshold_percent,
                tests,
            )?);
        }
        Ok(warnings)
    }

    fn settings(&self) -> VerdictSettings {
        verdict_settings(&self.loaded.resolved.design)
    }

    fn shortest_counted_s(&self) -> f64 {
        self.loaded.resolved.design.shortest_counted_s()
    }

    fn plain_row(&self, variant: &VariantName, scope: Scope) -> Row {
        let row = Row::of_observations(variant.clone(), &self.observations(variant, scope));
        let cost_ns = row.cost_ns.filter(|_| has_costs(self.loaded));
        Row { cost_ns, ..row }
    }

    fn observations(&self, variant: &VariantName, scope: Scope) -> Vec<f64> {
        evidence::attempts(self.loaded, scope)
            .into_iter()
            .filter_map(|attempt| {
                let trial = evidence::trial(attempt, variant, self.stratum)?;
                if scope == Scope::AllTime {
                    let slices = self.slices.counted(attempt, variant, scope);
                    let observation =
                        fwdlab_stats::observation(&slices, self.shortest_counted_s()).ok()?;
                    return Some(observation.median_forwarding_rate_pps);
                }
                Some(trial.observation_pps)
            })
            .collect()
    }

    /// The effects of all blocks in which variant and baseline have a trial.
    fn effects(
        &self,
        variant: &VariantName,
        scope: Scope,
        warnings: &mut Vec<Warning>,
    ) -> Result<Effects, StatsError> {
        let baseline = &self.comparison.baseline;
        let mut effects = Effects {
            blocks: Vec::new(),
            rounds: Vec::new(),
        };
        for attempt in evidence::attempts(self.loaded, scope) {
            let Some((trial, baseline_trial)) = evidence::trial(attempt, variant, self.stratum)
                .zip(evidence::trial(attempt, baseline, self.stratum))
            else {
                continue;
            };
            let block = attempt.record.block;
            let slices = self.slices.counted(attempt, variant, scope);
            let baseline_slices = self.slices.counted(attempt, baseline, scope);
            // Whole measurements have observations and no slices.
            let effect = if slices.is_empty() && baseline_slices.is_empty() {
                whole_effect(trial, baseline_trial)
            } else {
                block_effect(&slices, &baseline_slices, self.shortest_counted_s())
            };
            match effect {
                Ok(effect) => {
                    if effect.is_of_silence {
                        let side = if effect.log_ratio < 0.0 {
                            variant
                        } else {
                            baseline
                        };
                        warnings.push(self.silence(side, block));
                    }
                    effects.blocks.push((block, effect.log_ratio));
                    effects.rounds.push(effect.round_log_ratios);
                }
                Err(reason @ (StatsError::NothingForwarded | StatsError::NoCommonRound { .. })) => {
                    warnings.push(Warning {
                        code: "W205".to_owned(),
                        subjects: vec![self.subject(variant)],
                        text: format!("block {block} has no effect and is left out: {reason}"),
                        remedy: None,
                        percent: None,
                    })
                }
                Err(error) => return Err(error),
            }
        }
        Ok(effects)
    }

    fn silence(&self, side: &VariantName, block: u32) -> Warning {
        Warning::new(
            "W223",
            [self.subject(side)],
            format!(
                "block {block}: nothing was forwarded in most of its slices; it counts as half a frame in each of them, \
                 so that the block ranks behind every other"
            ),
            "find out whether it fails now and then; a rate says little of a variant that does",
        )
    }

    fn effect(
        &self,
        verdict: &ComparisonVerdict,
        effects: &Effects,
        baseline: &Row,
    ) -> Result<Effect, StatsError> {
        Ok(Effect {
            noise: self.noise(effects)?,
            blocks: block_sections(effects),
            ..Effect::of_verdict(verdict, Some(baseline))
        })
    }

    fn noise(&self, effects: &Effects) -> Result<Option<NoiseSection>, StatsError> {
        let components = variance_components(&effects.rounds)?;
        Ok(components.map(|components| NoiseSection {
            between_blocks_percent: percent(components.between_blocks_standard_deviation),
            between_rounds_percent: percent(components.between_rounds_standard_deviation),
        }))
    }

    fn control(
        &self,
        baseline: &Row,
        scope: Scope,
        warnings: &mut Vec<Warning>,
    ) -> Result<Option<(ControlSection, ControlVerdict)>, StatsError> {
        let Some(variant) = self
            .loaded
            .resolved
            .variants
            .iter()
            .find(|variant| variant.control_of.as_ref() == Some(&self.comparison.baseline))
        else {
            return Ok(None);
        };
        let effects = self.effects(&variant.name, scope, warnings)?;
        if effects.blocks.is_empty() {
            return Ok(None);
        }
        let log_ratios = effects.log_ratios();
        let verdict = control_verdict(&log_ratios)?;
        let mut row = self.plain_row(&variant.name, scope);
        let mean = log_ratios.iter().sum::<f64>() / log_ratios.len() as f64;
        row.effect = Some(Effect {
            mean_percent: percent(mean),
            p: Some(verdict.p),
            noise: self.noise(&effects)?,
            blocks: block_sections(&effects),
            ..Effect::of_ratio(verdict.estimate, verdict.interval, Some(baseline))
        });
        let control_warnings = verdict.warnings();
        let too_few = control_warnings
            .iter()
            .any(|warning| matches!(warning, fwdlab_stats::Warning::ControlTooFewBlocks { .. }));
        warnings.extend(control_warnings.iter().map(|warning| Warning {
            subjects: vec![self.subject(&variant.name)],
            ..Warning::from(warning)
        }));
        let passed = (!too_few).then_some(!verdict.failed);
        let is_too_wide = verdict.is_wider_than(self.settings().practical_threshold);
        let threshold_percent = self.loaded.resolved.design.threshold_percent;
        let section = ControlSection {
            sentence: control_sentence(
                row.effect.as_ref(),
                passed,
                is_too_wide.then_some(threshold_percent),
            ),
            row,
            passed,
            is_too_wide,
        };
        Ok(Some((section, verdict)))
    }

    /// The blocks of `ministat`, and what there is to say where it and the verdicts differ.
    fn ministat(
        &self,
        rows: &[Row],
        dialect: Dialect,
    ) -> Result<(Vec<String>, Option<String>), ReportError> {
        let dataset = |variant: &VariantName| {
            // As they stand in the `.pps` file, so that ministat prints the same text from it.
            let observations = self
                .observations(variant, Scope::Accepted)
                .into_iter()
                .filter_map(|pps| format_observation(pps).parse().ok())
                .collect();
            // Below three points ministat has nothing to say.
            Dataset::new(self.label(variant), observations).ok()
        };
        let Some(baseline) = dataset(&self.comparison.baseline) else {
            return Ok((Vec::new(), None));
        };
        let mut measured = Vec::new();
        let mut datasets = Vec::new();
        for variant in &self.comparison.variants {
            if let Some(dataset) = dataset(variant) {
                measured.push(variant);
                datasets.push(dataset);
            }
        }
        let confidence = Confidence::default();
        let blocks = ministat_blocks(&baseline, &datasets, confidence, dialect)?;

        let mut only_ministat = Vec::new();
        let mut only_verdict = Vec::new();
        for (variant, dataset) in measured.into_iter().zip(&datasets) {
            let proven = ministat::Comparison::new(dataset, &baseline, confidence).is_proven();
            let row = rows.iter().find(|row| &row.variant == variant);
            let Some(verdict) = row.and_then(|row| row.verdict.as_ref()) else {
                continue;
            };
            let words = format!("{} ({})", self.label(variant), verdict.words);
            match (proven, verdict.shows_difference) {
                (true, false) => only_ministat.push(words),
                (false, true) => only_verdict.push(words),
                _ => {}
            }
        }
        Ok((blocks, self.ministat_note(&only_ministat, &only_verdict)))
    }

    fn ministat_note(&self, only_ministat: &[String], only_verdict: &[String]) -> Option<String> {
        let mut parts = Vec::new();
        if !only_verdict.is_empty() {
            parts.push(format!(
                "proves no difference where the verdict finds one: {}",
                only_verdict.join("; ")
            ));
        }
        if !only_ministat.is_empty() {
            parts.push(format!(
                "proves a difference where the verdict does not: {}",
                only_ministat.join("; ")
            ));
        }
        if parts.is_empty() {
            return None;
        }
        let several = match self.comparison.variants.len() {
            0 | 1 => String::new(),
            number => format!(", nor that {number} comparisons are made at once"),
        };
        Some(format!(
            "ministat {}. It takes the trials for independent samples and knows neither that \
             those of one block belong together (pairing){several}; the verdicts do.",
            parts.join("; and ")
        ))
    }

    /// Verdicts that would read otherwise with what does not count.
    fn words_that_change(
        &self,
        rows: &[Row],
        others: &[Row],
        sensitivity: &Sensitivity,
    ) -> Vec<Warning> {
        let words = |row: &Row| {
            let verdict = row.verdict.as_ref();
            verdict.map_or_else(|| "no verdict".to_owned(), VerdictSection::said)
        };
        let Sensitivity {
            rests_on,
            here,
            there,
            ..
        } = sensitivity;
        rows.iter()
            .zip(others)
            .filter(|(row, other)| words(row) != words(other))
            .map(|(row, other)| {
                let text = format!(
                    "the verdict rests on {rests_on}: {:?} with {here}, {:?} with {there}",
                    words(row),
                    words(other)
                );
                let subject = self.subject(&row.variant);
                Warning::new(sensitivity.code, [subject], text, sensitivity.remedy)
            })
            .collect()
    }

    fn label(&self, variant: &VariantName) -> String {
        label_of(&self.loaded.resolved, variant)
    }

    /// The variant, with what tells it from the same variant in another comparison or stratum.
    fn subject(&self, variant: &VariantName) -> String {
        let mut subject = self.label(variant);
        let resolved = &self.loaded.resolved;
        if let (true, Some(title)) = (resolved.comparisons.len() > 1, &self.comparison.title) {
            subject = format!("{}, {subject}", text::one_line(title));
        }
        if resolved.has_several_strata() {
            subject = format!("{subject}, {}", self.stratum.label());
        }
        subject
    }

    fn error(&self, source: StatsError) -> ReportError {
        ReportError::Statistics {
            comparison: format!(
                "{} ({})",
                self.label(&self.comparison.baseline),
                self.stratum.label()
            ),
            source,
        }
    }
}

/// `ministat`'s text, the baseline with at most six others at a time.
pub(crate) fn ministat_blocks(
    baseline: &Dataset,
    others: &[Dataset],
    confidence: Confidence,
    dialect: Dialect,
) -> Result<Vec<String>, ReportError> {
    let layout = Layout {
        separate_bars: true,
        confidence,
        dialect,
        ..Layout::default()
    };
    others
        .chunks(MINISTAT_DATASETS_MAX - 1)
        .map(|others| {
            let shown = std::iter::once(baseline).chain(others).cloned().collect();
            let report = ministat::Report::new(shown, layout)
                .map_err(|source| ReportError::Ministat { source })?;
            Ok(report.to_string())
        })
        .collect()
}

/// Whether the time of a packet is what the DUT takes for it: under a pace, it is what the tester leaves it.
fn has_costs(loaded: &Loaded) -> bool {
    loaded.regime() != LoadRegime::Paced
}

/// The earlier data of a stratum; a file that could not be read was refused before the run.
fn references(loaded: &Loaded, stratum: Stratum) -> Vec<ReferenceRow> {
    let row = |reference: &Reference| {
        let data = reference.strata.get(&stratum)?;
        let forwarding_rate_pps = median(&data.observations_pps)?;
        Some(ReferenceRow {
            label: text::one_line(&reference.label),
            observations: u32::try_from(data.observations_pps.len()).unwrap_or(u32::MAX),
            forwarding_rate_pps,
            cost_ns: cost_ns(forwarding_rate_pps).filter(|_| has_costs(loaded)),
            path: text::one_line(&data.path),
            sha256: data.sha256.clone(),
        })
    };
    let references = &loaded.resolved.references;
    references.iter().filter_map(row).collect()
}

fn block_sections(effects: &Effects) -> Vec<BlockEffectSection> {
    effects
        .blocks
        .iter()
        .map(|&(block, log_ratio)| BlockEffectSection {
            block,
            percent: percent(log_ratio),
        })
        .collect()
}

/// The effect of a block of whole measurements, which have no slices; an observation of 0 counts as half a frame, as in
/// slices.
fn whole_effect(trial: &TrialRecord, baseline: &TrialRecord) -> Result<BlockEffect, StatsError> {
    let whole = |trial: &TrialRecord| {
        let is_silent = trial.observation_pps == 0.0;
        let above_0 = if is_silent {
            HALF_A_FRAME / trial.measured_s
        } else {
            trial.observation_pps
        };
        (is_silent, above_0)
    };
    let ((silent, pps), (baseline_silent, baseline_pps)) = (whole(trial), whole(baseline));
    if silent && baseline_silent {
        return Err(StatsError::NothingForwarded);
    }
    let ratio = log_ratio(pps, baseline_pps)?;
    Ok(BlockEffect {
        log_ratio: ratio,
        round_log_ratios: vec![ratio],
        is_of_silence: silent || baseline_silent,
    })
}
