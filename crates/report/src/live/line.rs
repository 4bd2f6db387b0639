//! Lines that are never wider than the terminal.

use crate::terminal::Style;
use crate::text::{beginning, columns};

/// A line of pieces that look different.
#[derive(Clone, Debug, Default)]
pub(super) struct Line(Vec<(String, Style)>);

impl Line {
    pub(super) fn of(text: impl Into<String>, style: Style) -> Self {
        Self::default().and(text, style)
    }

    pub(super) fn and(mut self, text: impl Into<String>, style: Style) -> Self {
        self.0.push((text.into(), style));
        self
    }

    /// The line as it is printed: cut where it is wider than `width` columns.
    pub(super) fn written(&self, width: usize, colour: bool) -> String {
        let mut written = String::new();
        let pieces = fitting(self.0.clone(), width);
        let last = pieces.len().saturating_sub(1);
        for (index, (text, style)) in pieces.iter().enumerate() {
            let text = if index == last { text.trim_end() } else { text };
            if colour && *style != Style::Plain && !text.trim().is_empty() {
                written.push_str(&format!("\x1b[{}m{text}\x1b[0m", style.code()));
            } else {
                written.push_str(text);
            }
        }
        written.trim_end().to_owned()
    }
}

/// The pieces as far as they fit, with an ellipsis where something is left out.
fn fitting(pieces: Vec<(String, Style)>, width: usize) -> Vec<(String, Style)> {
    let whole: String = pieces.iter().map(|(text, _)| text.as_str()).collect();
    if columns(whole.trim_end()) <= width {
        return pieces;
    }
    let kept = beginning(&whole, width.saturating_sub(1)).len();
    let mut fitting = Vec::new();
    let mut length = 0;
    for (text, style) in pieces {
        let room = kept.saturating_sub(length);
        length += text.len();
        if text.len() <= room {
            fitting.push((text, style));
        } else {
            fitting.push((format!("{}…", &text[..room]), style));
            break;
        }
    }
    fitting
}

/// The text with blanks behind it, to that many columns.
pub(super) fn left(text: &str, width: usize) -> String {
    let blanks = width.saturating_sub(columns(text));
    format!("{text}{}", " ".repeat(blanks))
}

/// The text with blanks before it, to that many columns.
pub(super) fn right(text: &str, width: usize) -> String {
    let blanks = width.saturating_sub(columns(text));
    format!("{}{text}", " ".repeat(blanks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_by_columns_and_keeps_its_colours() {
        let line = Line::of("全角", Style::Bold).and(" and more", Style::Plain);
        assert_eq!(line.written(80, false), "全角 and more");
        assert_eq!(line.written(8, false), "全角 an…");
        assert_eq!(line.written(4, false), "全…");
        assert_eq!(line.written(4, true), "\x1b[1m全…\x1b[0m");
        assert_eq!(line.written(6, true), "\x1b[1m全角\x1b[0m …");
    }

    #[test]
    fn a_mark_that_widens_what_is_before_it_is_measured() {
        let line = Line::of("☀\u{fe0f}☀\u{fe0f}", Style::Plain);
        for width in 1..6 {
            assert!(columns(&line.written(width, false)) <= width, "{width}");
        }
    }
}
