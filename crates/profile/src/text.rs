//! What the readers share: bytes to text, texts to lines, and lines to quotes.

use std::io::{self, BufRead};
use std::str::{self, Utf8Error};

use memchr::{memchr, memchr_iter};

use crate::{ForeignForm, NoSuchEvent};

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
    /// Its names and distinct stacks are too many to be kept.
    #[error(
        "line {line}: with it the names and the distinct stacks need more than 512 MiB; give a part of the profile, \
         as perf script --time prints, or fold parts of it and add them up: fwdlab flame fold --whole PART PART"
    )]
    TooMuch {
        /// The line, from 1.
        line: u64,
    },
    /// It is another form.
    #[error(transparent)]
    Foreign(#[from] ForeignForm),
    /// It has no samples of the event that was asked for.
    #[error(transparent)]
    Event(#[from] NoSuchEvent),
    /// No sample has a stack.
    #[error(
        "no sample of {event:?} has a function; record with perf record -g, and print with perf script, or with \
         -F comm,tid,time,event,ip,sym,dso"
    )]
    NoFunctions {
        /// The event that was to be folded.
        event: String,
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
    let mut take = |line, bytes: &[u8]| {
        let bytes = if line == 1 { readable(bytes)? } else { bytes };
        match memchr(0, bytes) {
            Some(_) => Err(PrintedError::of_line(
                program,
                line,
                "text without a zero byte",
                bytes,
            )),
            None => take(line, bytes),
        }
    };
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
                begun.extend_from_slice(rest);
                return Err(too_long(line, program, &begun));
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
            return Err(too_long(line + 1, program, &begun));
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

/// A first line without an end may be no text at all.
fn too_long(line: u64, program: &'static str, found: &[u8]) -> PrintedError {
    match readable(found) {
        Err(form) if line == 1 => form.into(),
        _ => PrintedError::TooLong { line, program },
    }
}

/// A text as it is read: behind the mark of byte order that some editors put in front of it.
///
/// # Errors
/// [`ForeignForm`] of bytes that are no text in UTF-8.
pub(crate) fn readable(text: &[u8]) -> Result<&[u8], ForeignForm> {
    match ForeignForm::of_bytes(text) {
        Some(form) => Err(form),
        None => Ok(without_byte_order_mark(text)),
    }
}

/// A text without the mark of byte order that some editors put in front of it.
#[must_use]
pub fn without_byte_order_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
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
