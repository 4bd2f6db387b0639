//! The checks that stand beside verdicts: whether the order of the slices shows in them, whether set-ups
//! or slices lie in two groups, whether observations drift.

use std::collections::{BTreeMap, HashMap, HashSet};

use fwdlab_archive::{Attempt, Loaded};
use fwdlab_model::{Order, SliceRecord, Stratum, VariantName};
use fwdlab_stats::{
    MODES_LEVEL, ModalValues, ORDER_LEVEL, OrderEffect, OrderedSlice, StatsError, TwoModes,
    lag_1_autocorrelation, median, order_effects, percent, rate_components, two_modes,
};

use crate::error::ReportError;
use crate::evidence::{self, Scope};
use crate::labels::label_of;
use crate::report::{OrderEffectSection, RateNoiseSection, SlicesSection, Warning};

/// The checks draw from their null distributions; the same records give the same report.
const SEED: u64 = 1;

/// What the slices of one stratum show beside their rates, and what is to be warned of.
///
/// Modes are looked for in the slices of `modal_variants`.
pub(crate) fn slices(
    loaded: &Loaded,
    stratum: Stratum,
    modal_variants: &[&VariantName],
) -> Result<(Option<SlicesSection>, Vec<Warning>), ReportError> {
    let checks = Checks::new(loaded, stratum);
    checks
        .all(modal_variants)
        .map_err(|source| ReportError::Statistics {
            comparison: format!("slices ({})", stratum.label()),
            source,
        })
}

/// W110 where block effects lie in two groups: `tests` are made at once.
///
/// Shape: `effects` are log ratios with their blocks; `has_other_programs` says in which blocks other programs ran
/// where frames are forwarded.
pub(crate) fn block_modes(
    subject: String,
    effects: &[(u32, f64)],
    rate_of_block: impl Fn(u32) -> Option<f64>,
    has_other_programs: impl Fn(u32) -> bool,
    threshold_percent: f64,
    tests: usize,
) -> Result<Option<Warning>, StatsError> {
    let log_ratios: Vec<f64> = effects.iter().map(|(_, log_ratio)| *log_ratio).collect();
    let level = MODES_LEVEL / tests.max(1) as f64;
    let distance_min = (threshold_percent / 100.0).ln_1p();
    let Some(modes) = two_modes(&log_ratios, level, distance_min, SEED)? else {
        return Ok(None);
    };
    let blocks_of = |is_upper: bool| {
        let of_group = effects
            .iter()
            .filter(move |(_, log_ratio)| (*log_ratio >= modes.upper_from) == is_upper);
        of_group.map(|(block, _)| *block)
    };
    let rate_pps = |is_upper: bool| {
        let rates: Option<Vec<f64>> = blocks_of(is_upper).map(&rate_of_block).collect();
        median(&rates?)
    };
    let other_programs = [false, true].into_iter().any(|group| {
        let (mut these, others) = (blocks_of(group), blocks_of(!group));
        let (disturbed, quiet): (Vec<u32>, Vec<u32>) =
            others.partition(|block| has_other_programs(*block));
        these.all(&has_other_programs) && disturbed.len() < quiet.len()
    });
    Ok(Some(modes_warning(
        subject,
        ModalValues::BlockEffects,
        modes,
        rate_pps(false).zip(rate_pps(true)),
        other_programs,
    )))
}

/// W110 where observations lie in two groups: `tests` are made at once.
///
/// Groups closer than the threshold are none, and what is not positive is left to the verdicts.
pub(crate) fn observation_modes(
    subject: String,
    observations_pps: &[f64],
    threshold_percent: f64,
    tests: usize,
) -> Result<Option<Warning>, StatsError> {
    let level = MODES_LEVEL / tests.max(1) as f64;
    let distance_min =
        median(observations_pps).map_or(0.0, |median| median * threshold_percent / 100.0);
    let modes = two_modes(observations_pps, level, distance_min, SEED)?;
    Ok(modes.map(|modes| modes_warning(subject, ModalValues::Observations, modes, None, false)))
}

fn modes_warning(
    variant: String,
    values: ModalValues,
    modes: TwoModes,
    rates_pps: Option<(f64, f64)>,
    other_programs: bool,
) -> Warning {
    Warning::from(&fwdlab_stats::Warning::TwoModes {
        variant,
        values,
        modes,
        rates_pps,
        other_programs,
    })
}

/// One variant's log rates in one block, by round.
type Series = Vec<Option<f64>>;

/// The slices of one stratum of the blocks that stand.
struct Checks<'a> {
    loaded: &'a Loaded,
    stratum: Stratum,
    /// Their variants, numbered in the experiment's order.
    variants: Vec<&'a VariantName>,
    /// For each block its rounds, each its slices, in the order of time.
    blocks: Vec<Vec<Vec<OrderedSlice>>>,
}

impl<'a> Checks<'a> {
    fn new(loaded: &'a Loaded, stratum: Stratum) -> Self {
        let attempts: Vec<(&Attempt, Vec<&SliceRecord>)> =
            evidence::attempts(loaded, Scope::Accepted)
                .into_iter()
                .map(|attempt| {
                    let slices = attempt.slices.iter();
                    let mut slices: Vec<_> = slices.filter(|s| s.stratum == stratum).collect();
                    slices.sort_by_key(|slice| (slice.round, slice.position));
                    (attempt, slices)
                })
                .collect();
        let all = attempts.iter().flat_map(|(_, slices)| slices);
        let with_slices: HashSet<&VariantName> = all.map(|slice| &slice.variant).collect();
        let variants: Vec<&VariantName> = loaded
            .resolved
            .variants
            .iter()
            .map(|variant| &variant.name)
            .filter(|name| with_slices.contains(name))
            .collect();
        let numbered = variants.iter().enumerate();
        let numbers: HashMap<&VariantName, usize> =
            numbered.map(|(number, name)| (*name, number)).collect();
        let shortest_s = loaded.resolved.design.shortest_counted_s();
        let blocks = attempts
            .iter()
            .map(|(attempt, slices)| {
                let basis = evidence::basis(attempt, stratum, Scope::Accepted);
                slices
                    .chunk_by(|one, next| one.round == next.round)
                    .map(|round| {
                        round
                            .iter()
                            .filter_map(|slice| {
                                let (frames, duration_s) = slice.counted(basis);
                                let log_rate = (frames as f64 / duration_s).ln();
                                let counts = duration_s >= shortest_s && log_rate.is_finite();
                                Some(OrderedSlice {
                                    variant: *numbers.get(&slice.variant)?,
                                    log_rate: counts.then_some(log_rate),
                                })
                            })
                            .collect()
                    })
                    .collect()
            })
            .collect();
        Self {
            loaded,
            stratum,
            variants,
            blocks,
        }
    }

    fn all(
        &self,
        modal_variants: &[&VariantName],
    ) -> Result<(Option<SlicesSection>, Vec<Warning>), StatsError> {
        if self.blocks.iter().all(Vec::is_empty) {
            return Ok((None, Vec::new()));
        }
        let mut warnings = Vec::new();
        let mut section = SlicesSection {
            places: u32::try_from(self.variants.len()).unwrap_or(u32::MAX),
            predecessor: None,
            place: None,
            lag_1_autocorrelation: None,
            lag_1_autocorrelation_by_variant: BTreeMap::new(),
            rate_noise: self.rate_noise()?,
        };
        self.order(&mut section, &mut warnings)?;
        let by_variant = self.series();
        for (name, series) in self.variants.iter().zip(&by_variant) {
            if let Some(correlation) = lag_1_autocorrelation(series)? {
                section
                    .lag_1_autocorrelation_by_variant
                    .insert((*name).clone(), correlation);
            }
            if modal_variants.contains(name) {
                warnings.extend(self.slice_modes(name, series)?);
            }
        }
        section.lag_1_autocorrelation = lag_1_autocorrelation(&by_variant.concat())?;
        Ok((Some(section), warnings))
    }

    /// What rates vary by, from the rounds in which every variant counts.
    fn rate_noise(&self) -> Result<Option<RateNoiseSection>, StatsError> {
        let rates_of = |round: &Vec<OrderedSlice>| -> Option<Vec<f64>> {
            self.by_variant(round).into_iter().collect()
        };
        let blocks: Vec<Vec<Vec<f64>>> = self
            .blocks
            .iter()
            .map(|rounds| rounds.iter().filter_map(rates_of).collect())
            .collect();
        let components = rate_components(&blocks)?;
        Ok(components.map(|components| RateNoiseSection {
            between_blocks_percent: percent(components.between_blocks_standard_deviation),
            between_rounds_percent: percent(components.between_rounds_standard_deviation),
            between_slices_percent: percent(components.between_slices_standard_deviation),
        }))
    }

    fn order(
        &self,
        section: &mut SlicesSection,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), StatsError> {
        let design = &self.loaded.resolved.design;
        // W212 says that nothing can be concluded where they are in sequence.
        if design.order != Order::Random {
            return Ok(());
        }
        let level = ORDER_LEVEL / self.loaded.resolved.strata().count().max(1) as f64;
        let blocks = self.whole_blocks();
        let Some(effects) = order_effects(self.variants.len(), &blocks, level, SEED)? else {
            return Ok(());
        };
        let effect_section = |effect: OrderEffect| OrderEffectSection {
            effect_percent: percent(effect.effect),
            p: effect.p,
            largest_bias_percent: percent(effect.largest_bias),
        };
        let (predecessor, place) = (effects.predecessor, effects.place);
        let after = self.variants[predecessor.label];
        section.predecessor = Some((after.clone(), effect_section(predecessor)));
        if predecessor.is_shown(level) {
            warnings.push(Warning::from(&fwdlab_stats::Warning::CarryOver {
                predecessor: self.subject(after),
                effect: predecessor.effect,
                p: predecessor.p,
                largest_bias: predecessor.largest_bias,
                settle_ms: design.settle_ms,
                slice_ms: design.slice_ms,
            }));
        }
        let number = u32::try_from(place.label + 1).unwrap_or(u32::MAX);
        section.place = Some((number, effect_section(place)));
        if place.is_shown(level) {
            warnings.push(Warning::from(&fwdlab_stats::Warning::PlaceInRound {
                place: place.label + 1,
                places: self.variants.len(),
                effect: place.effect,
                p: place.p,
                largest_bias: place.largest_bias,
                round_ms: (design.settle_ms + design.slice_ms).saturating_mul(section.places),
            }));
        }
        Ok(())
    }

    /// The blocks in whose rounds every variant has one slice.
    fn whole_blocks(&self) -> Vec<Vec<Vec<OrderedSlice>>> {
        let is_whole = |round: &Vec<OrderedSlice>| {
            let mut variants: Vec<usize> = round.iter().map(|slice| slice.variant).collect();
            variants.sort_unstable();
            variants.into_iter().eq(0..self.variants.len())
        };
        let blocks = self.blocks.iter();
        blocks
            .filter(|rounds| rounds.iter().all(is_whole))
            .cloned()
            .collect()
    }

    /// The log rates of every variant, a series a block.
    fn series(&self) -> Vec<Vec<Series>> {
        let mut by_variant = vec![vec![Series::new(); self.blocks.len()]; self.variants.len()];
        for (number, rounds) in self.blocks.iter().enumerate() {
            for round in rounds {
                for (all, log_rate) in by_variant.iter_mut().zip(self.by_variant(round)) {
                    all[number].push(log_rate);
                }
            }
        }
        by_variant
    }

    /// The log rates of a round by variant; none where it has no slice that counts.
    fn by_variant(&self, round: &[OrderedSlice]) -> Vec<Option<f64>> {
        let mut log_rates = vec![None; self.variants.len()];
        // Of several the first.
        for slice in round.iter().rev() {
            log_rates[slice.variant] = slice.log_rate;
        }
        log_rates
    }

    /// W110 where slices lie in two groups around their block's middle one.
    fn slice_modes(
        &self,
        name: &VariantName,
        series: &[Series],
    ) -> Result<Option<Warning>, StatsError> {
        let resolved = &self.loaded.resolved;
        let mut residuals = Vec::new();
        for series in series {
            let mut counted: Vec<f64> = series.iter().copied().flatten().collect();
            counted.sort_by(f64::total_cmp);
            // A slice itself, not the middle between two of them: where that is, there would be a hole.
            let Some(&middle) = counted.get(counted.len().saturating_sub(1) / 2) else {
                continue;
            };
            residuals.extend(counted.iter().map(|log_rate| log_rate - middle));
        }
        if residuals.len() < fwdlab_stats::DIP_VALUES_MIN {
            return Ok(None);
        }
        let tests = self.variants.len() * resolved.strata().count();
        let level = MODES_LEVEL / tests.max(1) as f64;
        let distance_min = (resolved.design.threshold_percent / 100.0).ln_1p();
        let modes = two_modes(&residuals, level, distance_min, SEED)?;
        Ok(modes.map(|modes| {
            modes_warning(self.subject(name), ModalValues::Slices, modes, None, false)
        }))
    }

    /// The variant, with its stratum where there are several.
    fn subject(&self, name: &VariantName) -> String {
        let resolved = &self.loaded.resolved;
        let label = label_of(resolved, name);
        if resolved.has_several_strata() {
            format!("{label}, {}", self.stratum.label())
        } else {
            label
        }
    }
}
