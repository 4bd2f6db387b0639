//! What the readers share: bytes to text, and lines to quotes.

use std::str::{self, Utf8Error};

/// How much of a line an error quotes, in characters.
const QUOTED: usize = 60;

/// How a line begins, for an error.
pub(crate) fn quoted(line: &str) -> String {
    line.chars().take(QUOTED).collect()
}

/// The line, from 1, in which the first bytes are that are no text.
pub(crate) fn line_of(bytes: &[u8], error: Utf8Error) -> usize {
    let valid = &bytes[..error.valid_up_to()];
    1 + valid.iter().filter(|&&byte| byte == b'\n').count()
}

/// The lines by their number from 1, without their ends of either kind; the number of a last line that
/// has none as an error.
pub(crate) fn whole_lines(text: &str) -> impl Iterator<Item = Result<(usize, &str), usize>> {
    let lines = text.split_inclusive('\n').zip(1..);
    lines.map(|(line, number)| {
        let line = line.strip_suffix('\n').ok_or(number)?;
        Ok((number, line.strip_suffix('\r').unwrap_or(line)))
    })
}
