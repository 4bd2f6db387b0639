//! What a flame graph shows, before it is drawn.

use std::borrow::Cow;

use super::canvas::Canvas;
use super::{Caption, DrawError};

pub use inferno::flamegraph::color::Color;

/// The boxes of a flame graph.
#[derive(Clone, Debug)]
pub struct FlameBoxes {
    /// What widths are counted in.
    pub unit: String,
    /// What the colours mean; empty where they have no meaning.
    pub legend: String,
    /// The width of the box below all others, which has no entry.
    pub width: f64,
    /// Callers before what they call, siblings by their names.
    pub boxes: Vec<FlameBox>,
    /// Lines below the picture: what no box has room for.
    pub lines: Vec<String>,
}

/// A box on the box of its caller.
#[derive(Clone, Debug)]
pub struct FlameBox {
    /// How many boxes with an entry are below it.
    pub depth: usize,
    /// The function's name.
    pub frame: String,
    /// Its width.
    pub width: f64,
    /// What no box above it has of that.
    pub own_width: f64,
    /// `+` where it is shown to cost more, `-` where less: what the colour says, before the name.
    pub sign: Option<char>,
    /// Its colour; text on it is black.
    pub colour: Color,
    /// What is said of it beside its name.
    pub note: String,
}

impl FlameBox {
    /// `+ nft_do_chain`.
    fn label(&self) -> Cow<'_, str> {
        match self.sign {
            Some(sign) => format!("{sign} {}", self.frame).into(),
            None => self.frame.as_str().into(),
        }
    }
}

impl FlameBoxes {
    pub(super) fn new(unit: &str, legend: String, width: f64) -> Self {
        Self {
            unit: unit.to_owned(),
            legend,
            width,
            boxes: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// The picture as an SVG file that can be searched and zoomed in a browser.
    ///
    /// # Errors
    /// [`DrawError`].
    pub fn svg(&self, caption: Caption<'_>) -> Result<String, DrawError> {
        let mut canvas = Canvas::new(caption, &self.unit, self.legend.clone());
        let labels: Vec<Cow<'_, str>> = self.boxes.iter().map(FlameBox::label).collect();
        let mut path: Vec<(&str, usize)> = Vec::new();
        for (number, shown) in self.boxes.iter().enumerate() {
            path.truncate(shown.depth);
            path.push((&labels[number], number));
            canvas.add(&path, shown.own_width, shown.colour, &shown.note);
        }
        canvas.finish(self.width, &self.lines)
    }
}
