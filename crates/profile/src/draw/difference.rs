//! Two variants in one picture.

use std::collections::HashMap;

use inferno::flamegraph::color::Color;

use super::boxes::{FlameBox, FlameBoxes};
use super::canvas::GREY;
use super::tree::{Tree, Visited};
use super::{Caption, CostUnit, DrawError, decimals};
use crate::comparison::{Comparison, CostDifference, FrameDifference, Noise, ProfilePair};

/// Where significant differences begin, so that the smallest is told from grey, and where they end:
/// readable below black text.
const RED: (Color, Color) = (
    Color {
        r: 255,
        g: 205,
        b: 190,
    },
    Color {
        r: 240,
        g: 85,
        b: 60,
    },
);
const BLUE: (Color, Color) = (
    Color {
        r: 200,
        g: 220,
        b: 255,
    },
    Color {
        r: 90,
        g: 150,
        b: 245,
    },
);

/// Draws what the pairs have in both variants, coloured by where they differ.
///
/// A box is as wide as the **mean of both** variants' costs: so new frames and vanished ones are both
/// there, at half of what they cost in the one that has them; a caller is exactly as wide as what it
/// calls and what it does itself; and the whole is the mean of both wholes. The larger of both would
/// do neither: callers and the whole would swell by the noise of every rare stack.
///
/// Colours tell of what a frame costs **itself**, in all its stacks together, because that is what the
/// comparison judges: red where it is shown to cost more, blue where less, deeper with size, grey where
/// no difference is shown. On hover stand both costs and the interval, the same with what it calls,
/// and what this stack alone costs where there are others.
///
/// Shape: `comparison` is that of `pairs`. The same input gives the same bytes.
///
/// # Errors
/// [`DrawError`].
pub fn difference_graph(
    pairs: &[ProfilePair<'_>],
    comparison: &Comparison,
    unit: CostUnit,
    caption: Caption<'_>,
) -> Result<String, DrawError> {
    difference_boxes(pairs, comparison, unit).svg(caption)
}

/// The boxes of [`difference_graph`], to be drawn by others.
#[must_use]
pub fn difference_boxes(
    pairs: &[ProfilePair<'_>],
    comparison: &Comparison,
    unit: CostUnit,
) -> FlameBoxes {
    let mut tree = Tree::new();
    for pair in pairs {
        for (of, profile) in [pair.baseline, pair.variant].into_iter().enumerate() {
            let samples = profile.stacks.samples() as f64 * pairs.len() as f64;
            for stack in profile.stacks.stacks() {
                let mut costs = [0.0; 2];
                costs[of] = stack.samples as f64 / samples * profile.ns_per_packet;
                tree.add(stack.frames(), costs);
            }
        }
    }
    let frames: HashMap<&str, &FrameDifference> = comparison
        .frames
        .iter()
        .map(|frame| (frame.frame.as_str(), frame))
        .collect();
    let largest = comparison
        .frames
        .iter()
        .filter(|frame| frame.itself.is_significant)
        .map(|frame| frame.itself.difference_ns.abs())
        .fold(0.0, f64::max);
    let words = Words { comparison, unit };
    let counted = format!("{}, the mean of both", unit.suffix().trim_start());
    let whole = &comparison.whole;
    let width = f64::midpoint(whole.baseline_ns, whole.variant_ns);
    let mut boxes = FlameBoxes::new(&counted, words.legend(), width);
    tree.visit(|node| {
        let frame = frames.get(node.name()).copied();
        boxes.boxes.push(FlameBox {
            depth: node.path.len() - 1,
            frame: node.name().to_owned(),
            width: f64::midpoint(node.costs[0], node.costs[1]),
            own_width: f64::midpoint(node.own[0], node.own[1]),
            colour: frame.map_or(GREY, |frame| colour(&frame.itself, largest)),
            note: frame.map_or_else(String::new, |frame| words.note(frame, node)),
        });
    });
    boxes
}

fn colour(cost: &CostDifference, largest: f64) -> Color {
    if !cost.is_significant {
        return GREY;
    }
    let (from, to) = if cost.difference_ns > 0.0 { RED } else { BLUE };
    // The root, so that a tenth of the largest is still seen.
    let depth = (cost.difference_ns.abs() / largest).sqrt();
    let between = |from: u8, to: u8| {
        let value = f64::from(from) + (f64::from(to) - f64::from(from)) * depth;
        #[allow(clippy::cast_possible_truncation, reason = "between two bytes")]
        let byte = value.round().clamp(0.0, 255.0) as u8;
        byte
    };
    Color {
        r: between(from.r, to.r),
        g: between(from.g, to.g),
        b: between(from.b, to.b),
    }
}

/// What is said of differences; without parentheses, which end a name on hover.
struct Words<'w> {
    comparison: &'w Comparison,
    unit: CostUnit,
}

impl Words<'_> {
    fn legend(&self) -> String {
        if !self.comparison.can_show() {
            return format!(
                "grey: {} blocks show no difference, {} might; width: mean of both",
                self.comparison.blocks, self.comparison.blocks_needed
            );
        }
        let mut legend =
            "red: costs more, blue: less, grey: no difference shown; width: mean of both"
                .to_owned();
        if self.comparison.noise == Noise::Samples {
            legend += "; one profile each";
        }
        legend
    }

    fn note(&self, frame: &FrameDifference, node: &Visited<'_>) -> String {
        let mut note = format!("itself {}", self.cost(&frame.itself));
        let with_callees = &frame.with_callees;
        if !is_same(frame.itself.costs(), with_callees.costs()) {
            note += &format!("; with callees {}", self.cost(with_callees));
        }
        if !is_same(node.costs, with_callees.costs()) {
            note += &format!("; this stack {}", self.change(node.costs));
        }
        note
    }

    /// `30.0 -> 42.0 ns/packet, +12.0 ± 3.1`.
    fn cost(&self, cost: &CostDifference) -> String {
        let change = self.change(cost.costs());
        let (Some(_), interval) = (cost.p, cost.interval) else {
            return format!("{change}, too few samples to judge");
        };
        let Some(interval) = interval else {
            return format!("{change}, too few blocks to judge");
        };
        if !cost.is_significant {
            return format!("{change}, no difference shown");
        }
        let sign = if cost.difference_ns > 0.0 { "+" } else { "" };
        let difference = decimals(cost.difference_ns);
        match self.comparison.noise {
            Noise::Blocks => {
                let half_width = decimals(interval.half_width_ns());
                format!("{change}, {sign}{difference} ± {half_width}")
            }
            Noise::Samples => format!(
                "{change}, {sign}{difference}, between {} and {}",
                decimals(interval.lower_ns),
                decimals(interval.upper_ns)
            ),
        }
    }

    fn change(&self, [baseline, variant]: [f64; 2]) -> String {
        let word = match (baseline > 0.0, variant > 0.0) {
            (false, true) => "new: ",
            (true, false) => "vanished: ",
            _ => "",
        };
        let unit = self.unit.suffix();
        format!(
            "{word}{} -> {}{unit}",
            decimals(baseline),
            decimals(variant)
        )
    }
}

/// The same but for rounding.
fn is_same(one: [f64; 2], other: [f64; 2]) -> bool {
    one.iter()
        .zip(other)
        .all(|(one, other)| (one - other).abs() <= 1e-9 * one.abs().max(other))
}
