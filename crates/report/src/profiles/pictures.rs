//! Flame graphs of every variant, and of every variant with its baseline.

use fwdlab_model::{Stratum, VariantName};
use fwdlab_profile::{Caption, CostUnit, FlameBoxes, Folded, Width, difference_boxes, flame_boxes};

use super::evidence::Profiles;
use super::{ProfileEvidence, sentences};
use crate::format;
use crate::profile_sections::{ProfileDifference, ProfileSection, ProfilesSection};
use crate::report::Report;
use crate::text;

/// A flame graph of a report.
pub(crate) struct FlameGraph {
    /// Its file's name.
    pub(crate) file: String,
    pub(crate) stratum: Stratum,
    /// What it is of.
    pub(crate) title: String,
    /// What it rests on.
    pub(crate) subtitle: String,
    /// Why its ns/packet are not those of the verdicts.
    pub(crate) basis: String,
    pub(crate) boxes: FlameBoxes,
}

impl FlameGraph {
    /// None where there is nothing to draw.
    pub(crate) fn svg(&self) -> Option<String> {
        let title = format!("{}, {}", self.title, self.stratum.label());
        let caption = Caption {
            title: &title,
            subtitle: Some(&self.subtitle),
        };
        self.boxes.svg(caption).ok()
    }
}

/// The flame graphs, those of differences first, in the order of the report's section.
pub(crate) fn flame_graphs(
    report: &Report,
    evidence: Option<&ProfileEvidence<'_>>,
) -> Vec<FlameGraph> {
    let Some((section, evidence)) = report.profiles.as_ref().zip(evidence) else {
        return Vec::new();
    };
    let of_variants = (section.variants.iter())
        .map(|variant| of_variant(report, section, variant, &evidence.profiles));
    let of_differences = (section.differences.iter())
        .filter_map(|difference| of_difference(report, difference, evidence));
    of_differences.chain(of_variants).collect()
}

fn of_variant(
    report: &Report,
    section: &ProfilesSection,
    variant: &ProfileSection,
    profiles: &Profiles<'_>,
) -> FlameGraph {
    let mut together = Folded::new();
    for taken in profiles.of(&variant.variant, variant.stratum).values() {
        for stack in taken.stacks.stacks() {
            together.push(stack.frames(), stack.samples);
        }
    }
    let subtitle = format!(
        "{} ns/packet | {} samples of {} in {}",
        format::short(variant.cost_ns, 1),
        format::count(variant.samples),
        section.event,
        sentences::of_blocks(variant.blocks, report.progress.measured_blocks),
    );
    let cost = cost_ns(report, &variant.variant, variant.stratum);
    let basis = sentences::basis(report, variant.blocks, &[cost]);
    let mut boxes = flame_boxes(&together.merged(), Width::NsPerPacket(variant.cost_ns));
    boxes.lines.push(basis.clone());
    FlameGraph {
        file: variant.flame_graph.clone(),
        stratum: variant.stratum,
        title: text::one_line(report.label(&variant.variant)),
        subtitle,
        basis,
        boxes,
    }
}

fn of_difference(
    report: &Report,
    difference: &ProfileDifference,
    evidence: &ProfileEvidence<'_>,
) -> Option<FlameGraph> {
    let (baseline, variant) = (&difference.baseline, &difference.variant);
    let comparison = evidence.comparison(baseline, variant, difference.stratum)?;
    let pairs = evidence
        .profiles
        .pairs(baseline, variant, difference.stratum);
    let subtitle = format!(
        "{} -> {} ns/packet in {}",
        format::short(difference.packet.baseline_ns, 1),
        format::short(difference.packet.variant_ns, 1),
        sentences::of_blocks(difference.blocks, report.progress.measured_blocks),
    );
    let costs = [baseline, variant].map(|variant| cost_ns(report, variant, difference.stratum));
    let basis = sentences::basis(report, difference.blocks, &costs);
    let mut boxes = difference_boxes(&pairs, comparison, CostUnit::NsPerPacket);
    boxes.lines.push(basis.clone());
    Some(FlameGraph {
        file: difference.flame_graph.clone(),
        stratum: difference.stratum,
        title: format!(
            "{} against {}",
            text::one_line(report.label(variant)),
            text::one_line(report.label(baseline)),
        ),
        subtitle,
        basis,
        boxes,
    })
}

/// What a packet costs in a variant by the tables of the report, of its first comparison that has it.
fn cost_ns(report: &Report, variant: &VariantName, stratum: Stratum) -> Option<f64> {
    let comparisons = (report.comparisons.iter()).filter(|of| of.stratum == stratum);
    comparisons
        .flat_map(|of| {
            let control = of.control.iter().map(|control| &control.row);
            of.rows.iter().chain(control)
        })
        .find(|row| &row.variant == variant)?
        .cost_ns
}
