//! Whether the effects of a comparison change with the traffic, where an experiment has several.

use std::collections::BTreeMap;

use fwdlab_model::{AddressFamily, Comparison, Resolved, TrafficName, VariantName};
use fwdlab_stats::{ComparisonEffects, StatsError, Verdict, family_verdicts, percent};
use serde::{Deserialize, Serialize};

use crate::labels::label_of;
use crate::report::{
    BlockEffectSection, ComparisonSection, Effect, Report, Row, VerdictSection, Warning,
};
use crate::sections::{change_section, verdict_settings};
use crate::text;

/// The effects of one comparison under each traffic of one address family, and how they change with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrafficSection {
    /// Heading of the comparison, where the experiment gives one.
    pub title: Option<String>,
    /// The address family.
    pub family: AddressFamily,
    /// Its comparisons in the report, from 0: one for each traffic, in the experiment's order.
    pub comparisons: Vec<usize>,
    /// The traffics, in the same order.
    pub traffics: Vec<TrafficName>,
    /// Every variant under every traffic but the first.
    pub changes: Vec<TrafficChange>,
    /// File name of the plot of the effects by traffic.
    pub plot: String,
}

/// How far the effect of a variant under one traffic is from its effect under the first: their interaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrafficChange {
    /// The variant.
    pub variant: VariantName,
    /// The traffic.
    pub traffic: TrafficName,
    /// Ratio of the variant's rate to the baseline's under that traffic, against the same ratio under the first.
    pub effect: Effect,
    /// What is concluded; the changes of a section are a family of their own.
    pub verdict: VerdictSection,
}

/// The sections of a report, from its comparisons: none where no family has several traffics.
///
/// Shape: the comparisons as a report has them, those of the experiment one after the other, each in all strata.
pub(crate) fn sections(
    resolved: &Resolved,
    comparisons: &[ComparisonSection],
) -> Result<(Vec<TrafficSection>, Vec<Warning>), StatsError> {
    let mut sections = Vec::new();
    let mut warnings = Vec::new();
    let strata = resolved.strata().count();
    for (number, (of, judged)) in resolved
        .comparisons
        .iter()
        .zip(comparisons.chunks(strata.max(1)))
        .enumerate()
    {
        for family in resolved.families() {
            let mut traffics = Vec::new();
            let mut indices = Vec::new();
            for (place, section) in judged.iter().enumerate() {
                if section.stratum.family == family
                    && let Some(traffic) = section.stratum.traffic
                {
                    traffics.push(traffic);
                    indices.push(number * strata + place);
                }
            }
            if traffics.len() < 2 || of.variants.is_empty() {
                continue;
            }
            let of_traffics: Vec<_> = indices.iter().map(|&index| &comparisons[index]).collect();
            let (changes, found) = changes(resolved, of, &of_traffics, &traffics)?;
            warnings.extend(found);
            sections.push(TrafficSection {
                title: of.title.as_deref().map(text::one_line),
                family,
                comparisons: indices,
                traffics,
                changes,
                plot: format!("traffic-{}-{family}.svg", number + 1),
            });
        }
    }
    Ok((sections, warnings))
}

/// The changes of all variants of a comparison, judged together.
fn changes(
    resolved: &Resolved,
    comparison: &Comparison,
    sections: &[&ComparisonSection],
    traffics: &[TrafficName],
) -> Result<(Vec<TrafficChange>, Vec<Warning>), StatsError> {
    let mut of = Vec::new();
    let mut effects = Vec::new();
    for variant in &comparison.variants {
        let Some(first) = block_effects(sections[0], variant) else {
            continue;
        };
        for (section, traffic) in sections.iter().zip(traffics).skip(1) {
            let Some(other) = block_effects(section, variant) else {
                continue;
            };
            // Both were measured in one set-up, so that what is special to it falls out.
            let blocks: Vec<(u32, f64)> = other
                .iter()
                .filter_map(|(block, effect)| Some((*block, effect - first.get(block)?)))
                .collect();
            if blocks.is_empty() {
                continue;
            }
            effects.push(ComparisonEffects {
                name: format!(
                    "{}, {}, against {}",
                    label_of(resolved, variant),
                    section.stratum.label(),
                    traffics[0]
                ),
                block_effects: blocks.iter().map(|(_, effect)| *effect).collect(),
            });
            of.push((variant, *traffic, blocks));
        }
    }
    if effects.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let verdicts = family_verdicts(&effects, None, &verdict_settings(&resolved.design))?;
    // What is to be said of blocks, the effects themselves say: how many there are, and which lie far from the others.
    let is_new = |warning: &&fwdlab_stats::Warning| {
        !matches!(
            warning,
            fwdlab_stats::Warning::OutlyingBlock { .. }
                | fwdlab_stats::Warning::TooFewBlocks { .. }
                | fwdlab_stats::Warning::TooFewBlocksForFamily { .. }
        )
    };
    let warnings = verdicts.warnings.iter().filter(is_new);
    let warnings = warnings.map(Warning::from).collect();
    let changes = of.into_iter().zip(&verdicts.comparisons);
    let changes = changes.map(|((variant, traffic, blocks), verdict)| {
        let of_blocks = blocks.iter().map(|&(block, effect)| BlockEffectSection {
            block,
            percent: percent(effect),
        });
        let effect = Effect {
            blocks: of_blocks.collect(),
            ..Effect::of_verdict(verdict, None)
        };
        TrafficChange {
            variant: variant.clone(),
            traffic,
            verdict: change_section(verdict, &effect),
            effect,
        }
    });
    Ok((changes.collect(), warnings))
}

/// The effect of a variant in each block, as log ratios; none where it was not measured, or the load decided it.
fn block_effects(section: &ComparisonSection, variant: &VariantName) -> Option<BTreeMap<u32, f64>> {
    let row = row_of(section, variant)?;
    let verdict = row.verdict.as_ref()?;
    if verdict.words == Verdict::NotLimitedByDut.words() {
        return None;
    }
    let blocks = row.effect.iter().flat_map(|effect| &effect.blocks);
    Some(
        blocks
            .map(|of| (of.block, (of.percent / 100.0).ln_1p()))
            .collect(),
    )
}

/// Every variant that was compared, each under all traffics one after the other.
pub(crate) fn compared<'r>(
    report: &'r Report,
    section: &'r TrafficSection,
) -> impl Iterator<Item = (&'r Row, TrafficName)> {
    variants(report, section).flat_map(|variant| rows(report, section, variant))
}

/// The variants that were compared with the baseline.
pub(crate) fn variants<'r>(
    report: &'r Report,
    section: &TrafficSection,
) -> impl Iterator<Item = &'r VariantName> {
    let first = section.comparisons.first();
    let first = first.and_then(|&index| report.comparisons.get(index));
    let rows = first.into_iter().flat_map(|of| of.rows.iter().skip(1));
    rows.map(|row| &row.variant)
}

/// The rows of a variant under each traffic.
pub(crate) fn rows<'r>(
    report: &'r Report,
    section: &'r TrafficSection,
    variant: &'r VariantName,
) -> impl Iterator<Item = (&'r Row, TrafficName)> {
    let of_traffics = section.comparisons.iter().zip(&section.traffics);
    of_traffics.filter_map(move |(&index, &traffic)| {
        Some((row_of(report.comparisons.get(index)?, variant)?, traffic))
    })
}

/// The row of a variant that was compared with the baseline.
fn row_of<'s>(section: &'s ComparisonSection, variant: &VariantName) -> Option<&'s Row> {
    let mut compared = section.rows.iter().skip(1);
    compared.find(|row| &row.variant == variant)
}
