//! A small SVG writer: shapes and text on a card that follows the reader's light or dark theme.
//!
//! The same calls give the same bytes: coordinates have one decimal, and there are no generated
//! identifiers.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar;

use crate::colours::{
    BETTER, CONTROL, Colour, FRAME, GRID, LINE, MUTED, PAPER, SERIES, TEXT, Tone, WORSE,
};
use crate::text;

/// How wide every plot is.
pub(crate) const WIDTH: f64 = 860.0;
/// What is left free at its sides.
pub(crate) const MARGIN: f64 = 20.0;

/// Shapes and type, the same in both themes.
const SHAPED: &str = "\
text{font-family:-apple-system,BlinkMacSystemFont,'Segoe UI','Noto Sans',Helvetica,Arial,sans-serif;font-size:12px}\
.heading{font-size:14px;font-weight:600}\
.small{font-size:11px}\
.strong{font-weight:600}\
.grid,.frame,.session{stroke-width:1}\
.frame{fill:none}\
.zero{stroke-width:1.5}\
.session{stroke-dasharray:4 3}\
.threshold{fill-opacity:.16}\
.stripe{fill-opacity:.08}\
.dot{fill:currentColor}\
.faint{fill:currentColor;fill-opacity:.5}\
.hollow{fill:none;stroke:currentColor;stroke-width:1.5}\
.whisker{stroke:currentColor;stroke-width:3;stroke-linecap:round;stroke-opacity:.75;fill:none}\
.trace{stroke:currentColor;stroke-width:1.2;stroke-opacity:.4;fill:none}";

/// What is coloured, in the order in which later rules win.
const COLOURED: &[(&str, &str, Colour)] = &[
    ("text", "fill", TEXT),
    (".card", "fill", PAPER),
    (".card", "stroke", LINE),
    (".muted", "fill", MUTED),
    (".grid", "stroke", GRID),
    (".frame", "stroke", FRAME),
    (".zero", "stroke", TEXT),
    (".session", "stroke", MUTED),
    (".threshold", "fill", MUTED),
    (".stripe", "fill", MUTED),
    (".control,.same,.open", "color", CONTROL),
    (".better", "color", BETTER),
    (".worse", "color", WORSE),
    ("text.better", "fill", BETTER),
    ("text.worse", "fill", WORSE),
];

/// The style of every plot. The classes stand on each element so that viewers without media queries show light.
fn style() -> String {
    let rules = |of: fn(&Colour) -> &str| {
        let mut rules = String::new();
        for (selector, property, colour) in COLOURED {
            let _ = write!(rules, "{selector}{{{property}:{}}}", of(colour));
        }
        for colour in &SERIES {
            let _ = write!(rules, ".{}{{color:{}}}", colour.name, of(colour));
        }
        rules
    };
    format!(
        "{SHAPED}{}@media(prefers-color-scheme:dark){{{}}}",
        rules(|colour| colour.light),
        rules(|colour| colour.dark)
    )
}

/// Shapes of the points, so that colour is never the only difference.
const SHAPES: u32 = 5;

/// Colour and shape of one variant: its own, the same in every plot of trials, or its verdict's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The variant with that index; thirty have distinct marks.
    Variant(u32),
    /// The variant with that index, in the colour of its verdict instead.
    Judged(u32, Tone),
    /// The A/A control.
    Control,
}

impl Mark {
    /// The same shape in the colour of a verdict; the control is not judged.
    pub(crate) fn judged(self, tone: Tone) -> Self {
        match self {
            Self::Variant(index) | Self::Judged(index, _) => Self::Judged(index, tone),
            Self::Control => Self::Control,
        }
    }

    /// Of its colour.
    pub(crate) fn class(self) -> String {
        match self {
            Self::Variant(index) => SERIES[index as usize % SERIES.len()].name.to_owned(),
            Self::Judged(_, tone) => tone.class().to_owned(),
            Self::Control => CONTROL.name.to_owned(),
        }
    }

    fn shape(self) -> u32 {
        match self {
            Self::Variant(index) | Self::Judged(index, _) => index % SHAPES,
            Self::Control => 1,
        }
    }
}

/// How a point is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// An estimate or a valid trial.
    Solid,
    /// One of many.
    Faint,
    /// An invalid trial.
    Hollow,
}

impl Fill {
    /// Of a trial that counts, or does not.
    pub(crate) fn of_trial(counts: bool) -> Self {
        if counts { Self::Solid } else { Self::Hollow }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Solid => "dot",
            Self::Faint => "faint",
            Self::Hollow => "hollow",
        }
    }
}

/// Which end of a text stands at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// A drawing that grows downwards.
#[derive(Default)]
pub(crate) struct Svg {
    body: String,
}

impl Svg {
    /// One with a heading of one line.
    pub(crate) fn headed(heading: &str) -> Self {
        let mut svg = Self::default();
        svg.text("heading", (MARGIN, 30.0), heading);
        svg
    }

    /// The whole file; `title` and `description` are read out to those who cannot see it.
    pub(crate) fn finish(self, height: f64, title: &str, description: &str) -> String {
        let (width, height) = (number(WIDTH), number(height));
        let (inner_width, inner_height) = (
            number(WIDTH - 1.0),
            number(height.parse::<f64>().unwrap_or_default() - 1.0),
        );
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" role=\"img\">\n\
             <title>{}</title>\n<desc>{}</desc>\n<style>{}</style>\n\
             <rect class=\"card\" x=\"0.5\" y=\"0.5\" width=\"{inner_width}\" \
             height=\"{inner_height}\" rx=\"6\"/>\n{}</svg>\n",
            text::xml(title),
            text::xml(description),
            style(),
            self.body
        )
    }

    pub(crate) fn rect(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64) {
        self.line_of_xml(&format!(
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            number(x),
            number(y),
            number(width.max(0.0)),
            number(height.max(0.0))
        ));
    }

    /// A rectangle in the colour of a variant.
    pub(crate) fn bar(&mut self, mark: Mark, x: f64, y: f64, width: f64, height: f64) {
        self.rect(&format!("dot {}", mark.class()), x, y, width, height);
    }

    /// The outline of a rectangle in the colour of a variant, between two corners.
    pub(crate) fn frame(&mut self, mark: Mark, from: (f64, f64), to: (f64, f64)) {
        let class = format!("hollow {}", mark.class());
        self.rect(&class, from.0, from.1, to.0 - from.0, to.1 - from.1);
    }

    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.line_of_xml(&format!(
            "<line class=\"{class}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
            number(from.0),
            number(from.1),
            number(to.0),
            number(to.1)
        ));
    }

    /// The interval of an estimate, an arrow head on each end that goes on for ever.
    pub(crate) fn whisker(&mut self, mark: Mark, y: f64, from: Whisker, to: Whisker) {
        let mut path = format!("M{} {}H{}", number(from.x), number(y), number(to.x));
        for (end, inwards) in [(from, 6.0), (to, -6.0)] {
            if end.open {
                let _ = write!(
                    path,
                    "M{0} {1}L{2} {3}L{0} {4}",
                    number(end.x + inwards),
                    number(y - 5.0),
                    number(end.x),
                    number(y),
                    number(y + 5.0)
                );
            }
        }
        self.line_of_xml(&format!(
            "<path class=\"whisker {}\" d=\"{path}\"/>",
            mark.class()
        ));
    }

    /// How far the values of one point go up and down; what most of them keep to is thick.
    pub(crate) fn spread(&mut self, mark: Mark, x: f64, ends: (f64, f64), thick: bool) {
        let class = if thick { "whisker" } else { "trace" };
        let class = format!("{class} {}", mark.class());
        self.line(&class, (x, ends.0), (x, ends.1));
    }

    /// How far the values of one point go left and right; what most of them keep to is thick.
    pub(crate) fn span(&mut self, mark: Mark, y: f64, ends: (f64, f64), thick: bool) {
        let class = if thick { "whisker" } else { "trace" };
        let class = format!("{class} {}", mark.class());
        self.line(&class, (ends.0, y), (ends.1, y));
    }

    /// A thick line through many points.
    pub(crate) fn curve(&mut self, mark: Mark, points: &[(f64, f64)]) {
        self.polyline("whisker", mark, points);
    }

    /// A thin line through the points of one variant.
    pub(crate) fn trace(&mut self, mark: Mark, points: &[(f64, f64)]) {
        self.polyline("trace", mark, points);
    }

    fn polyline(&mut self, class: &str, mark: Mark, points: &[(f64, f64)]) {
        if points.len() < 2 {
            return;
        }
        let points: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{},{}", number(*x), number(*y)))
            .collect();
        self.line_of_xml(&format!(
            "<polyline class=\"{class} {}\" points=\"{}\"/>",
            mark.class(),
            points.join(" ")
        ));
    }

    /// One point; `title` shows when the pointer rests on it.
    pub(crate) fn point(
        &mut self,
        mark: Mark,
        fill: Fill,
        at: (f64, f64),
        radius: f64,
        title: &str,
    ) {
        let class = format!("{} {}", fill.class(), mark.class());
        let (x, y) = at;
        let n = number;
        let title = text::xml(title);
        let shape = match mark.shape() {
            0 => format!(
                "circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{}\"",
                n(x),
                n(y),
                n(radius)
            ),
            1 => {
                let side = radius * 0.9;
                format!(
                    "rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{2}\" height=\"{2}\"",
                    n(x - side),
                    n(y - side),
                    n(2.0 * side)
                )
            }
            2 => {
                let reach = radius * 1.25;
                format!(
                    "path class=\"{class}\" d=\"M{0} {1}L{2} {3}L{0} {4}L{5} {3}Z\"",
                    n(x),
                    n(y - reach),
                    n(x + reach),
                    n(y),
                    n(y + reach),
                    n(x - reach)
                )
            }
            shape => {
                // A triangle on its base, then one on its tip.
                let up = if shape == 3 { 1.0 } else { -1.0 };
                let reach = radius * 1.2;
                format!(
                    "path class=\"{class}\" d=\"M{} {}L{} {1}L{} {}Z\"",
                    n(x - reach),
                    n(y + up * reach * 0.8),
                    n(x + reach),
                    n(x),
                    n(y - up * reach)
                )
            }
        };
        let name = shape.split(' ').next().unwrap_or_default().to_owned();
        self.line_of_xml(&if title.is_empty() {
            format!("<{shape}/>")
        } else {
            format!("<{shape}><title>{title}</title></{name}>")
        });
    }

    /// A text that begins at a point.
    pub(crate) fn text(&mut self, class: &str, at: (f64, f64), text: &str) {
        self.titled_text(class, Anchor::Start, at, text, "");
    }

    /// A text whose middle is at a point.
    pub(crate) fn centred(&mut self, class: &str, at: (f64, f64), text: &str) {
        self.titled_text(class, Anchor::Middle, at, text, "");
    }

    /// A text that ends at a point.
    pub(crate) fn text_before(&mut self, class: &str, at: (f64, f64), text: &str) {
        self.titled_text(class, Anchor::End, at, text, "");
    }

    /// A text; `title` shows when the pointer rests on it.
    pub(crate) fn titled_text(
        &mut self,
        class: &str,
        anchor: Anchor,
        (x, y): (f64, f64),
        text: &str,
        title: &str,
    ) {
        let title = match text::xml(title) {
            title if title.is_empty() => title,
            title => format!("<title>{title}</title>"),
        };
        let class = if class.is_empty() {
            String::new()
        } else {
            format!(" class=\"{class}\"")
        };
        self.line_of_xml(&format!(
            "<text{class} x=\"{}\" y=\"{}\" text-anchor=\"{}\">{title}{}</text>",
            number(x),
            number(y),
            anchor.word(),
            text::xml(text)
        ));
    }

    fn line_of_xml(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }
}

/// One end of an interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whisker {
    pub(crate) x: f64,
    /// Whether the interval goes on beyond the plot.
    pub(crate) open: bool,
}

/// A straight map from values to pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) values: (f64, f64),
    pub(crate) pixels: (f64, f64),
}

impl Scale {
    pub(crate) fn pixel(&self, value: f64) -> f64 {
        let span = self.values.1 - self.values.0;
        let part = if span > 0.0 {
            (value - self.values.0) / span
        } else {
            0.5
        };
        self.pixels.0 + part * (self.pixels.1 - self.pixels.0)
    }

    pub(crate) fn holds(&self, value: f64) -> bool {
        (self.values.0..=self.values.1).contains(&value)
    }
}

/// Round values inside the range, at most `count_max` of them, and the decimals that they need.
pub(crate) fn ticks(low: f64, high: f64, count_max: usize) -> (Vec<f64>, usize) {
    let span = high - low;
    if !(span > 0.0 && span.is_finite()) || count_max == 0 {
        return (vec![low], 1);
    }
    let mut exponent = -9;
    loop {
        for digit in [1.0, 2.0, 5.0] {
            // Divided for the negative powers: 2 / 10 is exactly 0.2, 2 x 0.1 is not always.
            let value_of = |index: f64| {
                if exponent < 0 {
                    index * digit / 10_f64.powi(-exponent)
                } else {
                    index * digit * 10_f64.powi(exponent)
                }
            };
            let step = value_of(1.0);
            let (first, last) = ((low / step).ceil(), (high / step).floor());
            if last - first < count_max as f64 {
                let mut values = Vec::new();
                let mut index = first;
                while index <= last {
                    values.push(value_of(index));
                    index += 1.0;
                }
                let decimals = usize::try_from(-exponent).unwrap_or(0);
                return (values, decimals);
            }
        }
        exponent += 1;
    }
}

/// A coordinate with one decimal at most.
fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// Estimated width of a text in pixels, on the wide side of the fonts that the style names.
pub(crate) fn text_width(text: &str, font_px: f64) -> f64 {
    let ems: f64 = text
        .chars()
        .map(|character| match character {
            'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.31,
            'f' | 't' | 'r' | ' ' | '(' | ')' | '[' | ']' | '-' | '/' | '\\' | '"' => 0.38,
            'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.95,
            'A'..='Z' | '&' | '+' | '=' | '<' | '>' | '~' | '#' => 0.72,
            ' '..='~' => 0.6,
            wide if wide.width() == Some(2) => 1.05,
            _ => 0.75,
        })
        .sum();
    ems * font_px
}

/// The text in at most `lines_max` lines of that width, with an ellipsis where something is
/// missing; a word that is too long for a line is broken.
pub(crate) fn wrap(text: &str, font_px: f64, width_px: f64, lines_max: usize) -> Vec<String> {
    let line = text::one_line(text);
    let mut words: Vec<String> = Vec::new();
    for word in line.split(' ') {
        let mut piece = String::new();
        for character in word.chars() {
            piece.push(character);
            if text_width(&piece, font_px) > width_px && piece.chars().count() > 1 {
                piece.pop();
                words.push(std::mem::take(&mut piece));
                piece.push(character);
            }
        }
        words.push(piece);
    }
    let mut lines: Vec<String> = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let longer = lines.last().map(|line| format!("{line} {word}"));
        match longer {
            Some(longer) if text_width(&longer, font_px) <= width_px => {
                lines.pop();
                lines.push(longer);
            }
            _ if lines.len() == lines_max && index > 0 => {
                let last = lines.pop().unwrap_or_default();
                lines.push(ellipsis(&last, font_px, width_px));
                return lines;
            }
            _ => lines.push(word.clone()),
        }
    }
    lines
}

fn ellipsis(line: &str, font_px: f64, width_px: f64) -> String {
    let mut cut = line.to_owned();
    while text_width(&format!("{cut}…"), font_px) > width_px && cut.pop().is_some() {}
    format!("{}…", cut.trim_end_matches([' ', ',', ';', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(
            ticks(-23.0, 4.0, 8),
            (vec![-20.0, -15.0, -10.0, -5.0, 0.0], 0)
        );
        assert_eq!(ticks(0.0, 1.0, 6).0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
        assert_eq!(ticks(0.0, 1.0, 6).1, 1);
        assert_eq!(ticks(-0.012, 0.013, 6).1, 3);
        assert_eq!(ticks(5.0, 5.0, 6).0, [5.0]);
        let (values, _) = ticks(1_900_000.0, 8_500_000.0, 6);
        assert!(values.len() <= 6 && values.len() >= 3);
    }

    #[test]
    fn thirty_variants_have_thirty_marks() {
        let marks: std::collections::BTreeSet<(String, u32)> = (0..30)
            .map(|index| (Mark::Variant(index).class(), Mark::Variant(index).shape()))
            .collect();
        assert_eq!(marks.len(), 30);
    }

    #[test]
    fn long_labels_are_wrapped_then_cut() {
        assert_eq!(wrap("no filter", 12.0, 200.0, 2), ["no filter"]);
        let lines = wrap(&"nftables with many rules ".repeat(9), 12.0, 150.0, 2);
        assert_eq!(lines.len(), 2);
        assert!(lines[1].ends_with('…'));
        let lines = wrap(&"x".repeat(300), 12.0, 150.0, 2);
        assert_eq!(lines.len(), 2);
        assert!(lines.iter().all(|line| text_width(line, 12.0) <= 150.0));
        assert_eq!(wrap("", 12.0, 150.0, 2), [""]);
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!(number(1.0), "1");
        assert_eq!(number(-0.04), "0");
        assert_eq!(number(12.345), "12.3");
    }
}
