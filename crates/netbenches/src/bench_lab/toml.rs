//! Texts as TOML has them.

use std::fmt::Write as _;

pub(super) use fwdlab_model::quoted;

/// A text that stays on its line and speaks to no terminal.
pub(super) fn one_line(text: &str) -> String {
    let visible = |character: char| {
        if character.is_control() {
            char::REPLACEMENT_CHARACTER
        } else {
            character
        }
    };
    text.chars().map(visible).collect()
}

/// Lines of comment, broken between words; nothing where there is no text.
pub(super) fn comment(text: &str) -> String {
    const COLUMNS: usize = 110;
    let mut lines = String::new();
    let mut line = String::new();
    for word in one_line(text).split_whitespace() {
        if !line.is_empty() && line.chars().count() + word.chars().count() >= COLUMNS {
            let _ = writeln!(lines, "#{line}");
            line.clear();
        }
        line.push(' ');
        line += word;
    }
    if !line.is_empty() {
        let _ = writeln!(lines, "#{line}");
    }
    lines
}
