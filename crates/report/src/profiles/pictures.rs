//! Flame graphs of every variant, and of every variant with its baseline.

use std::collections::BTreeMap;

use fwdlab_archive::Loaded;
use fwdlab_profile::{Caption, CostUnit, Folded, Width, difference_graph, flame_graph};

use super::evidence::Profiles;
use super::{ProfileDifference, ProfileSection, ProfilesSection, compare};
use crate::format;
use crate::report::Report;
use crate::text;

/// The pictures by the names of their files.
pub(crate) fn pictures(report: &Report, loaded: &Loaded) -> BTreeMap<String, String> {
    let Some(section) = &report.profiles else {
        return BTreeMap::new();
    };
    let profiles = Profiles::read(loaded);
    let of_variants = section.variants.iter().filter_map(|variant| {
        let picture = of_variant(report, section, variant, &profiles)?;
        Some((variant.flame_graph.clone(), picture))
    });
    let of_differences = section.differences.iter().filter_map(|difference| {
        let picture = of_difference(report, difference, &profiles, loaded)?;
        Some((difference.flame_graph.clone(), picture))
    });
    of_variants.chain(of_differences).collect()
}

fn of_variant(
    report: &Report,
    section: &ProfilesSection,
    variant: &ProfileSection,
    profiles: &Profiles<'_>,
) -> Option<String> {
    let mut together = Folded::new();
    for taken in profiles.of(&variant.variant, variant.family).values() {
        for stack in taken.stacks.stacks() {
            together.push(stack.frames(), stack.samples);
        }
    }
    let label = text::one_line(report.label(&variant.variant));
    let title = format!("{label}, {}", variant.family.protocol());
    let subtitle = format!(
        "{} ns/packet | {} samples of {} in {}",
        format::short(variant.cost_ns, 1),
        format::count(variant.samples),
        section.event,
        format::counted(variant.blocks.into(), "block"),
    );
    let caption = Caption {
        title: &title,
        subtitle: Some(&subtitle),
    };
    flame_graph(
        &together.merged(),
        Width::NsPerPacket(variant.cost_ns),
        caption,
    )
    .ok()
}

fn of_difference(
    report: &Report,
    difference: &ProfileDifference,
    profiles: &Profiles<'_>,
    loaded: &Loaded,
) -> Option<String> {
    let (baseline, variant) = (&difference.baseline, &difference.variant);
    let pairs = profiles.pairs(baseline, variant, difference.family);
    let comparison = compare(&pairs, loaded).ok()?;
    let title = format!(
        "{} against {}, {}",
        text::one_line(report.label(variant)),
        text::one_line(report.label(baseline)),
        difference.family.protocol()
    );
    let subtitle = format!(
        "{} -> {} ns/packet",
        format::short(difference.packet.baseline_ns, 1),
        format::short(difference.packet.variant_ns, 1)
    );
    let caption = Caption {
        title: &title,
        subtitle: Some(&subtitle),
    };
    difference_graph(&pairs, &comparison, CostUnit::NsPerPacket, caption).ok()
}
