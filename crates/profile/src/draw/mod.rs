//! Flame graphs: stacks drawn as boxes on boxes, as wide as they cost.
//!
//! A picture is one SVG file that asks for nothing outside of it: what it needs to be searched and
//! zoomed in a browser is in it. The drawing is inferno's; what stands here tells it what to draw, in
//! which order and colour, and with which words on hover.

mod boxes;
mod canvas;
mod difference;
mod tree;

use crate::folded::Folded;
use tree::Tree;

pub use boxes::{Color, FlameBox, FlameBoxes};
pub use difference::{difference_boxes, difference_graph};

/// What stands above a picture.
#[derive(Clone, Copy, Debug, Default)]
pub struct Caption<'a> {
    /// The first line.
    pub title: &'a str,
    /// A smaller line below it.
    pub subtitle: Option<&'a str>,
}

/// What a width means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Width {
    /// A number of samples.
    Samples,
    /// Its part of what a packet costs.
    NsPerPacket(f64),
}

/// What costs are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostUnit {
    /// Nanoseconds per packet.
    NsPerPacket,
    /// Percent of the samples: what costs are where a packet's is said to be 100.
    Percent,
}

impl CostUnit {
    /// How it is written behind a number, the space included.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::NsPerPacket => " ns/packet",
            Self::Percent => " %",
        }
    }
}

/// Why there is no picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DrawError {
    /// Nothing has a width.
    #[error("no samples to draw; give a profile that has some")]
    Empty,
    /// inferno failed.
    #[error("cannot draw: {0}")]
    Inferno(String),
}

/// Draws stacks: a box for each frame on the box of its caller, as wide as its samples.
///
/// Boxes of the same name have the same colour; it has no other meaning. The same stacks give the same
/// bytes, in whatever order they come.
///
/// # Errors
/// [`DrawError`].
pub fn flame_graph(
    stacks: &Folded<'_>,
    width: Width,
    caption: Caption<'_>,
) -> Result<String, DrawError> {
    flame_boxes(stacks, width).svg(caption)
}

/// The boxes of [`flame_graph`], to be drawn by others.
#[must_use]
pub fn flame_boxes(stacks: &Folded<'_>, width: Width) -> FlameBoxes {
    let mut tree = Tree::new();
    for stack in stacks.stacks() {
        tree.add(stack.frames(), [stack.samples as f64, 0.0]);
    }
    let samples = stacks.samples() as f64;
    let (scale, unit) = match width {
        Width::Samples => (1.0, "samples"),
        Width::NsPerPacket(cost) => (cost / samples, "ns/packet"),
    };
    let mut boxes = FlameBoxes::new(unit, String::new(), samples * scale);
    tree.visit(|node| {
        let cost = node.costs[0] * scale;
        let shown = match width {
            Width::Samples => format!("{cost:.0}"),
            Width::NsPerPacket(_) => decimals(cost),
        };
        let share = node.costs[0] / samples * 100.0;
        boxes.boxes.push(FlameBox {
            depth: node.path.len() - 1,
            frame: node.name().to_owned(),
            width: cost,
            own_width: node.own[0] * scale,
            sign: None,
            colour: canvas::warm(node.name()),
            note: format!("{shown} {unit}, {share:.1} %"),
        });
    });
    boxes
}

/// A cost with as many digits as are worth reading.
fn decimals(cost: f64) -> String {
    let digits = if cost.abs() < 0.995 && cost.abs() > 0.0 {
        2
    } else {
        1
    };
    format!("{cost:.digits$}")
}
