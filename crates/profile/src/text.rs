//! What the readers share: bytes to text, texts to lines, and lines to quotes.

use std::io::{self, BufRead};
use std::str::{self, Utf8Error};

use memchr::memchr_iter;

/// How much of a line an error quotes, in characters.
const QUOTED: usize = 60;

/// No line of a profile is nearly as long; whatever is, is read no further.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Why a text is not what a program prints.
#[derive(Debug, thiserror::Error)]
pub enum PrintedError {
    /// A line is none of that program's.
    #[error("line {line}: expected {expected} ({found:?}); give what {program} prints")]
    Line {
        /// The line, from 1.
        line: u64,
        /// What should stand there.
        expected: &'static str,
        /// How it begins.
        found: String,
        /// Whose text was to be read.
        program: &'static str,
    },
    /// A line goes on for ever.
    #[error("line {line}: longer than 1 MiB; give what {program} prints")]
    TooLong {
        /// The line, from 1.
        line: u64,
        /// Whose text was to be read.
        program: &'static str,
    },
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl PrintedError {
    /// Of a line that is not what it should be.
    pub(crate) fn of_line(
        program: &'static str,
        line: u64,
        expected: &'static str,
        found: &[u8],
    ) -> Self {
        Self::Line {
            line,
            expected,
            found: quoted(&String::from_utf8_lossy(found)),
            program,
        }
    }
}

/// Hands over the lines by their number from 1, without their newlines, while the text is read; whether
/// the last one was cut: it has something in it, and no newline.
///
/// # Errors
/// [`PrintedError`]: the text's, or what is made of a line.
pub(crate) fn each_line(
    program: &'static str,
    mut text: impl BufRead,
    mut take: impl FnMut(u64, &[u8]) -> Result<(), PrintedError>,
) -> Result<bool, PrintedError> {
    let mut line = 0;
    // A line that goes on in the next buffer.
    let mut begun: Vec<u8> = Vec::new();
    loop {
        let buffer = match text.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            buffer => buffer?,
        };
        if buffer.is_empty() {
            break;
        }
        let mut from = 0;
        for end in memchr_iter(b'\n', buffer) {
            line += 1;
            let rest = &buffer[from..end];
            from = end + 1;
            if begun.len() + rest.len() > LINE_BYTES_MAX {
                return Err(PrintedError::TooLong { line, program });
            }
            if begun.is_empty() {
                take(line, rest)?;
            } else {
                begun.extend_from_slice(rest);
                take(line, &begun)?;
                begun.clear();
            }
        }
        begun.extend_from_slice(&buffer[from..]);
        if begun.len() > LINE_BYTES_MAX {
            line += 1;
            return Err(PrintedError::TooLong { line, program });
        }
        let read = buffer.len();
        text.consume(read);
    }
    if begun.is_empty() {
        return Ok(false);
    }
    take(line + 1, &begun)?;
    Ok(!begun.trim_ascii().is_empty())
}

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
