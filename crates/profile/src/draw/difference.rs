//! Two variants in one picture.

use std::collections::HashMap;

use inferno::flamegraph::color::Color;

use super::boxes::{FlameBox, FlameBoxes};
use super::canvas::GREY;
use super::tree::{Tree, Visited};
use super::{Caption, CostUnit, DrawError, decimals};
use crate::comparison::{Comparison, CostDifference, FrameDifference, Noise, ProfilePair};

/// Worse and better: where significant differences begin, so that the smallest is not mistaken for grey, and where
/// they end, readable below black text.
const ORANGE_RED: (Color, Color) = (
    Color {
        r: 255,
        g: 208,
        b: 186,
    },
    Color {
        r: 242,
        g: 96,
        b: 44,
    },
);
const BLUE_GREEN: (Color, Color) = (
    Color {
        r: 190,
        g: 236,
        b: 228,
    },
    Color {
        r: 32,
        g: 170,
        b: 152,
    },
);

/// So many differences stand in words below a picture.
const NOTABLE_MAX: usize = 5;

/// Draws what the pairs have in both variants, coloured by where they differ.
///
/// A box is as wide as the **mean of both** variants' costs: so new frames and vanished ones are both
/// there, at half of what they cost in the one that has them; a caller is exactly as wide as what it
/// calls and what it does itself; and the whole is the mean of both wholes. The larger of both would
/// do neither: callers and the whole would swell by the noise of every rare stack.
///
/// Colours tell of what a frame costs **itself**, in all its stacks together, because that is what the
/// comparison judges: orange-red and a `+` where it is shown to cost more, blue-green and a `-` where less,
/// deeper with size, grey where no difference is shown. The largest are listed below. On hover stand both costs and the interval, the same with what it calls,
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
    boxes.lines = words.notable();
    tree.visit(|node| {
        let frame = frames.get(node.name()).copied();
        boxes.boxes.push(FlameBox {
            depth: node.path.len() - 1,
            frame: node.name().to_owned(),
            width: f64::midpoint(node.costs[0], node.costs[1]),
            own_width: f64::midpoint(node.own[0], node.own[1]),
            sign: frame.and_then(|frame| sign(&frame.itself)),
            colour: frame.map_or(GREY, |frame| colour(&frame.itself, largest)),
            note: frame.map_or_else(String::new, |frame| words.note(frame, node)),
        });
    });
    boxes
}

fn sign(cost: &CostDifference) -> Option<char> {
    let sign = if cost.difference_ns > 0.0 { '+' } else { '-' };
    cost.is_significant.then_some(sign)
}

fn colour(cost: &CostDifference, largest: f64) -> Color {
    let (from, to) = match sign(cost) {
        Some('+') => ORANGE_RED,
        Some(_) => BLUE_GREEN,
        None => return GREY,
    };
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
                "grey: too few blocks to show a difference ({}, at least {} are needed); width: mean of both",
                self.comparison.blocks, self.comparison.blocks_needed
            );
        }
        let mut legend =
            "+ orange-red: costs more, - blue-green: less, grey: no difference shown; width: mean of both"
                .to_owned();
        if self.comparison.noise == Noise::Samples {
            legend += "; one profile each";
        }
        legend
    }

    /// The largest differences in words: their boxes may be too narrow for their names.
    fn notable(&self) -> Vec<String> {
        let named: Vec<&FrameDifference> = self.comparison.notable().take(NOTABLE_MAX).collect();
        if named.is_empty() {
            return Vec::new();
        }
        let shown = match (self.comparison.can_show(), self.comparison.noise) {
            (false, _) => "not proven: too few blocks",
            (true, Noise::Blocks) => "shown to differ",
            (true, Noise::Samples) => "shown to differ by samples alone",
        };
        let unit = self.unit.suffix();
        let mut lines = vec![format!(
            "Largest differences of functions by themselves, {shown}:"
        )];
        lines.extend(named.into_iter().map(|frame| {
            let difference = format!("{:+.1}", frame.itself.difference_ns);
            format!("{difference:>9}{unit}  {}", frame.frame)
        }));
        lines
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

    /// `30.0 -> 42.0 ns/packet, +12.0 ± 3.1, more`.
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
        let (sign, word) = if cost.difference_ns > 0.0 {
            ("+", "more")
        } else {
            ("", "less")
        };
        let difference = decimals(cost.difference_ns);
        match self.comparison.noise {
            Noise::Blocks => {
                let half_width = decimals(interval.half_width_ns());
                format!("{change}, {sign}{difference} ± {half_width}, {word}")
            }
            Noise::Samples => format!(
                "{change}, {sign}{difference}, between {} and {}, {word}",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn black_text_is_read_on_every_colour() {
        for Color { r, g, b } in [ORANGE_RED.0, ORANGE_RED.1, BLUE_GREEN.0, BLUE_GREEN.1, GREY] {
            let linear = |byte: u8| ((f64::from(byte) / 255.0 + 0.055) / 1.055).powf(2.4);
            let luminance = 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
            // The contrast ratio of WCAG 2 with black, of which 4.5 are asked.
            let contrast = (luminance + 0.05) / 0.05;
            assert!(contrast >= 4.5, "{r} {g} {b}: {contrast}");
        }
    }
}
