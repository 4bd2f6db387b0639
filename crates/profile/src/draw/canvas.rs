//! Boxes to an SVG, by inferno.
//!
//! inferno reads text: a stack a line, and gives colours and words to names. Here every box is to have
//! its own, whatever it is called, and names may hold what inferno takes for something else: a number
//! at the end for a second count, a mark at the beginning for a comment. So each box has a name of its
//! own in between, the frame's with control characters behind, which no frame has, and control
//! characters for spaces; what comes out has the frame's name again.

use std::fmt::Write as _;

use inferno::flamegraph::color::{BackgroundColor, Color, PaletteMap};
use inferno::flamegraph::{self, FuncFrameAttrsMap, Options, TextTruncateDirection};

use super::{Caption, DrawError};

/// What stands for white space in names.
const SPACE: char = '\u{1f}';
/// Digits, to base 8, of the number behind a name.
const DIGITS: [char; 8] = [
    '\u{10}', '\u{11}', '\u{12}', '\u{13}', '\u{14}', '\u{15}', '\u{16}', '\u{17}',
];
/// Into how many units the whole width is divided; inferno counts in whole ones.
const UNITS: f64 = 1e9;
/// What fits above a picture, in characters.
const TITLE_MAX: usize = 80;
const SUBTITLE_MAX: usize = 160;
/// From one line below a picture to the next, in pixels.
const LINE_HEIGHT: usize = 16;
/// Light, so that black text is readable on it in any viewer.
const BACKGROUND: Color = Color {
    r: 248,
    g: 248,
    b: 246,
};
pub(super) const GREY: Color = Color {
    r: 214,
    g: 214,
    b: 210,
};

pub(super) struct Canvas<'c> {
    caption: Caption<'c>,
    /// What the whole width is counted in.
    unit: &'c str,
    legend: String,
    colours: PaletteMap,
    notes: String,
    lines: Vec<(String, f64)>,
}

impl<'c> Canvas<'c> {
    /// Shape: `legend` stands below the title, behind the subtitle.
    pub(super) fn new(caption: Caption<'c>, unit: &'c str, legend: String) -> Self {
        let mut colours = PaletteMap::default();
        // The box below all others.
        colours.insert("", GREY);
        Self {
            caption,
            unit,
            legend,
            colours,
            notes: String::new(),
            lines: Vec::new(),
        }
    }

    /// Adds a box on the box of its caller.
    ///
    /// Shape: `path` has the names below it and its own, each with a number that no other box has; `width` is what no
    /// box above it has of its width; `note` stands in parentheses behind its name when the pointer rests on it, and
    /// has none itself.
    pub(super) fn add(&mut self, path: &[(&str, usize)], width: f64, colour: Color, note: &str) {
        let Some(&(frame, number)) = path.last() else {
            return;
        };
        let name = name(frame, number);
        let _ = writeln!(self.notes, "{name}\ttitle={} ({note})", shown(frame));
        self.colours.insert(name, colour);
        if width > 0.0 {
            let mut line = String::new();
            for (frame, number) in path {
                if !line.is_empty() {
                    line.push(';');
                }
                line += &self::name(frame, *number);
            }
            self.lines.push((line, width));
        }
    }

    /// The picture, with lines below it; `whole` is the width of all boxes together.
    pub(super) fn finish(mut self, whole: f64, lines: &[String]) -> Result<String, DrawError> {
        if !(whole > 0.0 && whole.is_finite()) || self.lines.is_empty() {
            return Err(DrawError::Empty);
        }
        let failed = |error: std::io::Error| DrawError::Inferno(error.to_string());
        let mut options = Options::default();
        options.title = cut(self.caption.title, TITLE_MAX);
        options.subtitle = self.subtitle();
        self.unit.clone_into(&mut options.count_name);
        options.factor = whole / UNITS;
        options.bgcolors = Some(BackgroundColor::Flat(BACKGROUND));
        options.func_frameattrs =
            FuncFrameAttrsMap::from_reader(self.notes.as_bytes()).map_err(failed)?;
        options.palette_map = Some(&mut self.colours);
        options.text_truncate_direction = TextTruncateDirection::Right;
        // Lines from the last to the first, as they are: sorted as text, "a;b" and "a" may have "a!"
        // in between, and a box would be drawn twice.
        options.flame_chart = true;
        let stacks: Vec<String> = self
            .lines
            .iter()
            .rev()
            .map(|(line, width)| format!("{line} {:.0}", width / whole * UNITS))
            .collect();
        let mut svg = Vec::new();
        flamegraph::from_lines(&mut options, stacks.iter().map(String::as_str), &mut svg)
            .map_err(failed)?;
        let svg = String::from_utf8(svg).map_err(|error| DrawError::Inferno(error.to_string()))?;
        Ok(with_lines_below(finished(&svg), lines))
    }

    /// The caller's subtitle as far as it leaves room for the legend.
    fn subtitle(&self) -> Option<String> {
        let legend = (!self.legend.is_empty()).then_some(self.legend.as_str());
        let room = SUBTITLE_MAX.saturating_sub(legend.map_or(0, |legend| legend.len() + 3));
        let parts: Vec<String> = self
            .caption
            .subtitle
            .map(|subtitle| cut(subtitle, room))
            .into_iter()
            .chain(legend.map(str::to_owned))
            .collect();
        (!parts.is_empty()).then(|| parts.join(" | "))
    }
}

/// A frame's name as it is shown: without what no XML may hold, and what turns the text around it.
fn shown(frame: &str) -> String {
    frame
        .chars()
        .map(|char| match char {
            char if char.is_whitespace() => ' ',
            '\u{fffe}' | '\u{ffff}' | '\u{61c}' | '\u{200e}' | '\u{200f}' => '\u{fffd}',
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
            char if char.is_control() => '\u{fffd}',
            char => char,
        })
        .collect()
}

/// The name of a box that no other one has.
fn name(frame: &str, number: usize) -> String {
    let mut name: String = shown(frame)
        .chars()
        .map(|char| if char == ' ' { SPACE } else { char })
        .collect();
    let mut rest = number;
    loop {
        name.push(DIGITS[rest % 8]);
        rest /= 8;
        if rest == 0 {
            return name;
        }
    }
}

/// A line of the caption, at most so long.
fn cut(text: &str, max: usize) -> String {
    let text = shown(text);
    if text.chars().count() <= max {
        return text;
    }
    let kept: String = text.chars().take(max.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// inferno's picture with the frames' names again, and without the reference to a document type: a
/// reader of XML may fetch that.
fn finished(svg: &str) -> String {
    let (before, rest) = svg.split_once("<!DOCTYPE").unwrap_or((svg, ""));
    let rest = rest.split_once('>').map_or("", |(_, rest)| rest);
    let mut finished = String::with_capacity(svg.len());
    for part in [before, rest] {
        let mut chars = part.chars().peekable();
        while let Some(char) = chars.next() {
            if DIGITS.contains(&char) {
                let ends = chars.peek().is_none_or(|next| !DIGITS.contains(next));
                // A label that was cut behind the whole name is not cut.
                if ends && chars.peek() == Some(&'.') {
                    chars.next();
                    chars.next();
                }
            } else {
                finished.push(if char == SPACE { ' ' } else { char });
            }
        }
    }
    // What is to be found need not be looked for.
    finished.replacen("opacity:0.1;", "opacity:0.7;", 1)
}

/// The picture made higher by lines of text below it.
fn with_lines_below(svg: String, lines: &[String]) -> String {
    let height = svg
        .split_once(" height=\"")
        .and_then(|(_, rest)| rest.split_once('"')?.0.parse::<usize>().ok());
    let (Some(height), Some(picture)) = (height, svg.strip_suffix("</svg>")) else {
        return svg;
    };
    if lines.is_empty() {
        return svg;
    }
    let higher = height + lines.len() * LINE_HEIGHT + LINE_HEIGHT / 2;
    let mut picture = picture
        .replacen(
            &format!(" height=\"{height}\""),
            &format!(" height=\"{higher}\""),
            1,
        )
        .replacen(
            &format!(" {height}\" xmlns"),
            &format!(" {higher}\" xmlns"),
            1,
        )
        .replacen(
            &format!("width=\"100%\" height=\"{height}\""),
            &format!("width=\"100%\" height=\"{higher}\""),
            1,
        );
    for (line, y) in lines.iter().zip((height..).step_by(LINE_HEIGHT)) {
        let text = cut(line, SUBTITLE_MAX)
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        let _ = write!(
            picture,
            "<text x=\"10\" y=\"{y}\" xml:space=\"preserve\">{text}</text>"
        );
    }
    picture + "</svg>"
}

/// A colour between yellow and amber that follows from the name; orange-red is for what costs more.
pub(super) fn warm(name: &str) -> Color {
    let hash = fnv(name);
    let part = |shift: u32, most: u64| {
        let byte = hash >> shift & 0xff;
        u8::try_from(byte * most / 255).unwrap_or(u8::MAX)
    };
    Color {
        r: 225 + part(0, 30),
        g: 165 + part(16, 65),
        b: 50 + part(32, 80),
    }
}

/// FNV-1a, mixed: names that differ in the last letter get other colours, too.
fn fnv(name: &str) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
    (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 8
}
