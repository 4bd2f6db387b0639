//! The reader of a whole call graph.

use std::collections::HashMap;
use std::str;

use super::line::{Fault, Line};
use super::{CallGraph, Frame, LastLine, Node, Section};
use crate::ForeignForm;
use crate::text::{line_of, quoted, readable, without_byte_order_mark};

/// Why a text is no call graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallGraphError {
    /// Not even the first line of a section is whole.
    #[error("no section at all, not even a whole first line; give what pmcstat -G wrote")]
    NoSection,
    /// A line is not of the grammar.
    #[error("line {line}: expected {expected} ({found:?}); give what pmcstat -G wrote")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What should stand where it ceases to be of the grammar.
        expected: &'static str,
        /// How it begins.
        found: String,
    },
    /// There are bytes that are no text.
    #[error("line {line}: bytes that are no text; give what pmcstat -G wrote")]
    NotText {
        /// Where the first of them are, from 1.
        line: usize,
    },
    /// A frame stands before the first section.
    #[error(
        "line {line}: a frame before any section; the first line should be \"@ EVENT [N samples]\""
    )]
    OutsideSection {
        /// The line, from 1.
        line: usize,
    },
    /// A caller stands where the function that it called is missing.
    #[error(
        "line {line}: a frame at depth {depth} where at most {most} follows; lines are missing before it"
    )]
    TooDeep {
        /// The line, from 1.
        line: usize,
        /// How deep it is.
        depth: usize,
        /// How deep it may be.
        most: usize,
    },
    /// A tree or a section begins where the tree before it has not ended.
    #[error("line {line}: no empty line before it; lines are missing or joined")]
    NotSeparated {
        /// The line, from 1.
        line: usize,
    },
    /// Frames have more samples together than what they are a part of.
    #[error(
        "line {line}: {samples} samples with those beside it, of {whole}; a number was changed"
    )]
    TooManySamples {
        /// The line, from 1.
        line: usize,
        /// Their samples up to this line.
        samples: u64,
        /// The samples of the function called, or of the section.
        whole: u32,
    },
    /// It is larger than any call graph.
    #[error("{bytes} bytes; call graphs of at most 4 GiB are read")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// It is another form.
    #[error(transparent)]
    Foreign(#[from] ForeignForm),
}

impl<'a> CallGraph<'a> {
    /// Whether a text that begins so is one: no stack begins with the mark of a section.
    #[must_use]
    pub fn is_begun_by(text: &[u8]) -> bool {
        let text = without_byte_order_mark(text).trim_ascii_start();
        text.starts_with(b"@")
    }

    /// Reads a call graph. A text that is cut anywhere behind its first line is read as far as it goes;
    /// [`CallGraph::truncation`] tells.
    ///
    /// Shape: the bytes of the file; line ends of either kind.
    ///
    /// # Errors
    /// [`CallGraphError`] where anything but a last line without end is not as pmcstat prints it.
    pub fn parse(text: &'a [u8]) -> Result<Self, CallGraphError> {
        if u32::try_from(text.len()).is_err() {
            return Err(CallGraphError::TooLarge { bytes: text.len() });
        }
        let text = readable(text)?;
        Self::parse_lines(text)
            .map_err(|error| ForeignForm::of_text(text).map_or(error, CallGraphError::Foreign))
    }

    fn parse_lines(text: &'a [u8]) -> Result<Self, CallGraphError> {
        let mut reader = Reader::default();
        for (index, line) in text_of(text)?.split_inclusive('\n').enumerate() {
            reader.line = index + 1;
            match line.strip_suffix('\n') {
                Some(line) => reader.read(line.strip_suffix('\r').unwrap_or(line))?,
                None => reader.read_torn(line)?,
            }
        }
        reader.finish()
    }
}

/// The bytes as text, without a last character that is cut.
fn text_of(bytes: &[u8]) -> Result<&str, CallGraphError> {
    let error = match str::from_utf8(bytes) {
        Ok(text) => return Ok(text),
        Err(error) => error,
    };
    match error.error_len() {
        None => Ok(str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()),
        Some(_) => Err(CallGraphError::NotText {
            line: line_of(bytes, error),
        }),
    }
}

/// What was read so far.
#[derive(Default)]
struct Reader<'a> {
    line: usize,
    sections: Vec<Section<'a>>,
    nodes: Vec<Node>,
    symbols: Names<'a>,
    objects: Names<'a>,
    /// The frames from the root of the tree to the last one; empty between trees.
    path: Vec<Open>,
    /// The object of the last frame, as a [`Node`] has it.
    object: u32,
    torn: Option<Frame<'a>>,
    is_torn: bool,
}

/// A frame whose callers may follow.
struct Open {
    samples: u32,
    /// Samples of its callers so far.
    of_callers: u64,
}

impl<'a> Reader<'a> {
    /// Reads a line that has its end.
    fn read(&mut self, text: &'a str) -> Result<(), CallGraphError> {
        match Line::of(text) {
            Ok(Line::Empty) => self.path.clear(),
            Ok(Line::Header { event, samples }) => self.open(event, samples)?,
            Ok(Line::Frame(frame)) => self.add(&frame)?,
            Err(Fault::Expected(expected) | Fault::Incomplete(expected, _)) => {
                return Err(self.fault(expected, text));
            }
        }
        Ok(())
    }

    /// Reads the last line, which has no end.
    fn read_torn(&mut self, text: &'a str) -> Result<(), CallGraphError> {
        // A carriage return is half of a line's end.
        match Line::of(text.strip_suffix('\r').unwrap_or(text)) {
            Ok(Line::Header { event, samples }) => self.open(event, samples)?,
            Ok(Line::Frame(frame)) | Err(Fault::Incomplete(_, Some(frame))) => {
                self.check_depth(&frame)?;
                self.torn = Some(frame);
            }
            Ok(Line::Empty) | Err(Fault::Incomplete(..)) => {}
            Err(Fault::Expected(expected)) => return Err(self.fault(expected, text)),
        }
        self.is_torn = true;
        Ok(())
    }

    fn open(&mut self, event: &'a str, samples: u32) -> Result<(), CallGraphError> {
        if !self.path.is_empty() {
            return Err(CallGraphError::NotSeparated { line: self.line });
        }
        self.sections.push(Section {
            event,
            samples,
            read_samples: 0,
            line: self.line,
            nodes: self.nodes.len()..self.nodes.len(),
        });
        Ok(())
    }

    fn add(&mut self, frame: &Frame<'a>) -> Result<(), CallGraphError> {
        let depth = self.check_depth(frame)?;
        self.path.truncate(frame.depth);
        self.add_samples(frame.samples)?;
        self.path.push(Open {
            samples: frame.samples,
            of_callers: 0,
        });
        // Printed where it is another one than on the line before, and on the first of a tree.
        self.object = match frame.object {
            Some(object) => self.objects.index(object) + 1,
            None if depth == 0 => 0,
            None => self.object,
        };
        self.nodes.push(Node {
            symbol: self.symbols.index(frame.symbol),
            object: self.object,
            samples: frame.samples,
            percent_hundredths: frame.percent_hundredths,
            depth,
        });
        Ok(())
    }

    /// The depth of a frame, if it may stand here.
    fn check_depth(&self, frame: &Frame) -> Result<u16, CallGraphError> {
        if self.sections.is_empty() {
            return Err(CallGraphError::OutsideSection { line: self.line });
        }
        if frame.depth == 0 && !self.path.is_empty() {
            return Err(CallGraphError::NotSeparated { line: self.line });
        }
        let most = self.path.len().min(u16::MAX.into());
        match u16::try_from(frame.depth) {
            Ok(depth) if frame.depth <= most => Ok(depth),
            _ => Err(CallGraphError::TooDeep {
                line: self.line,
                depth: frame.depth,
                most,
            }),
        }
    }

    /// Takes the samples of a frame out of what it is a part of: the last open frame, or the section.
    fn add_samples(&mut self, samples: u32) -> Result<(), CallGraphError> {
        let too_many = |samples, whole| CallGraphError::TooManySamples {
            line: self.line,
            samples,
            whole,
        };
        if let Some(called) = self.path.last_mut() {
            called.of_callers += u64::from(samples);
            if called.of_callers > u64::from(called.samples) {
                return Err(too_many(called.of_callers, called.samples));
            }
        } else if let Some(section) = self.sections.last_mut() {
            section.read_samples = match section.read_samples.checked_add(samples) {
                Some(read) if read <= section.samples => read,
                _ => {
                    let read = u64::from(section.read_samples) + u64::from(samples);
                    return Err(too_many(read, section.samples));
                }
            };
        }
        Ok(())
    }

    fn fault(&self, expected: &'static str, text: &str) -> CallGraphError {
        CallGraphError::Line {
            line: self.line,
            expected,
            found: quoted(text),
        }
    }

    fn finish(mut self) -> Result<CallGraph<'a>, CallGraphError> {
        if self.sections.is_empty() {
            return Err(CallGraphError::NoSection);
        }
        // A section's frames reach to the next section's.
        let mut end = self.nodes.len();
        for section in self.sections.iter_mut().rev() {
            section.nodes.end = end;
            end = section.nodes.start;
        }
        let last_line = if self.is_torn {
            LastLine::Torn
        } else if self.path.is_empty() {
            LastLine::Whole
        } else {
            LastLine::TreeOpen
        };
        Ok(CallGraph {
            sections: self.sections,
            nodes: self.nodes,
            symbols: self.symbols.names,
            objects: self.objects.names,
            last_line,
            torn: self.torn,
        })
    }
}

/// Names, each once.
#[derive(Default)]
struct Names<'a> {
    names: Vec<&'a str>,
    indices: HashMap<&'a str, u32>,
}

impl<'a> Names<'a> {
    fn index(&mut self, name: &'a str) -> u32 {
        *self.indices.entry(name).or_insert_with(|| {
            self.names.push(name);
            // Each takes a byte of a text of at most 4 GiB.
            u32::try_from(self.names.len() - 1).unwrap_or(u32::MAX)
        })
    }
}
