//! Folded stacks: a stack and its samples in a line.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::str;

use foldhash::fast::RandomState;

use crate::ForeignForm;
use crate::text::{line_of, quoted, readable, whole_lines};

/// What a frame without a name is called.
const UNNAMED: &str = "[unknown]";

/// Stacks and how many samples each has.
///
/// Text is a stack a line, frames from the first function called to the one in which the samples were
/// taken, between semicolons, and behind a space the samples:
///
/// ```text
/// fork_exit;gtaskqueue_thread_loop;_task_fn_rx;iflib_rxeof 113
/// ```
///
/// Stacks stand in any order, and the same one may stand there more than once; [`Folded::merged`] has
/// each once. What is written reads back the same.
///
/// # Source
/// github.com/brendangregg/FlameGraph, whose scripts are named `stackcollapse`.
#[derive(Clone, Debug, Default)]
pub struct Folded<'a> {
    names: Vec<Cow<'a, str>>,
    indices: HashMap<Cow<'a, str>, u32, RandomState>,
    /// The frames of all stacks, one after the other.
    frames: Vec<u32>,
    stacks: Vec<Entry>,
}

/// A stack as it is held.
#[derive(Clone, Debug)]
struct Entry {
    frames: Range<usize>,
    samples: u64,
}

/// A stack and its samples.
#[derive(Clone, Copy, Debug)]
pub struct Stack<'f> {
    names: &'f [Cow<'f, str>],
    frames: &'f [u32],
    /// How many samples have just this stack.
    pub samples: u64,
}

impl<'f> Stack<'f> {
    /// Its frames, one or more, from the root on; the last is the leaf, in which the samples were taken.
    pub fn frames(&self) -> impl DoubleEndedIterator<Item = &'f str> + ExactSizeIterator + use<'f> {
        let names = self.names;
        self.frames.iter().map(|&name| &*names[name as usize])
    }
}

impl Stack<'_> {
    /// Whether its CPU had nothing to do.
    fn is_idle(&self) -> bool {
        self.frames().next_back().is_some_and(crate::is_sleeping)
            || self.frames().any(crate::is_idle)
    }
}

/// Why a text is no folded stacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoldedError {
    /// A line is no stack with its samples.
    #[error("line {line}: expected \"frame;frame;frame N\" ({found:?}); give folded stacks")]
    Line {
        /// The line, from 1.
        line: usize,
        /// How it begins.
        found: String,
    },
    /// There are bytes that are no text.
    #[error("line {line}: bytes that are no text; give folded stacks")]
    NotText {
        /// Where the first of them are, from 1.
        line: usize,
    },
    /// The last line does not end, so its number may be cut.
    #[error("line {line}: it does not end, its number may be cut; fold the profile again")]
    Torn {
        /// The line, from 1.
        line: usize,
    },
    /// All samples are more than are counted.
    #[error("line {line}: its samples and those above are more than 2^64; take wrong counts out")]
    TooMany {
        /// The line, from 1.
        line: usize,
    },
    /// It is another form.
    #[error(transparent)]
    Foreign(#[from] ForeignForm),
}

impl<'a> Folded<'a> {
    /// No stacks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, without what it was read from.
    #[must_use]
    pub fn into_owned(self) -> Folded<'static> {
        let owned = |name: Cow<'a, str>| Cow::Owned(name.into_owned());
        Folded {
            names: self.names.into_iter().map(owned).collect(),
            indices: self
                .indices
                .into_iter()
                .map(|(name, index)| (owned(name), index))
                .collect(),
            frames: self.frames,
            stacks: self.stacks,
        }
    }

    /// Reads folded stacks, in the order of the text.
    ///
    /// Shape: the bytes of the file; line ends of either kind. No line is no stack.
    ///
    /// # Errors
    /// [`FoldedError`].
    pub fn parse(text: &'a [u8]) -> Result<Self, FoldedError> {
        let text = readable(text)?;
        Self::parse_lines(text)
            .map_err(|error| ForeignForm::of_text(text).map_or(error, FoldedError::Foreign))
    }

    fn parse_lines(text: &'a [u8]) -> Result<Self, FoldedError> {
        let text = str::from_utf8(text).map_err(|error| FoldedError::NotText {
            line: line_of(text, error),
        })?;
        let mut folded = Self::new();
        let mut all = 0_u64;
        for line in whole_lines(text) {
            let (line, text) = line.map_err(|line| FoldedError::Torn { line })?;
            let (stack, samples) = parse_line(text).ok_or_else(|| FoldedError::Line {
                line,
                found: quoted(text),
            })?;
            all = all
                .checked_add(samples)
                .ok_or(FoldedError::TooMany { line })?;
            folded.push(stack.split(';'), samples);
        }
        Ok(folded)
    }

    /// The same where it is of one profile: a name may end in a number, but hardly that of every leaf.
    ///
    /// # Errors
    /// [`ForeignForm::FoldedDifference`].
    pub fn of_one_profile(self) -> Result<Self, ForeignForm> {
        let has_count = |stack: Stack<'_>| {
            let leaf = stack.frames().next_back();
            leaf.is_some_and(|leaf| parse_line(leaf).is_some())
        };
        if self.stacks.is_empty() || !self.stacks().all(has_count) {
            return Ok(self);
        }
        Err(ForeignForm::FoldedDifference)
    }

    /// Adds a stack behind all others.
    ///
    /// Shape: `frames` from the root to the leaf. What would be mistaken in text is replaced: semicolons
    /// in a name by colons, control characters by question marks, no name by `[unknown]`.
    pub fn push(
        &mut self,
        frames: impl IntoIterator<Item = impl Into<Cow<'a, str>>>,
        samples: u64,
    ) {
        let start = self.frames.len();
        for frame in frames {
            let name = self.name(frame.into());
            self.frames.push(name);
        }
        if self.frames.len() == start {
            let name = self.name(UNNAMED.into());
            self.frames.push(name);
        }
        self.end(start, samples);
    }

    /// Adds a stack of names, one or more, that [`Folded::name`] gave.
    pub(crate) fn push_names(&mut self, names: impl Iterator<Item = u32>, samples: u64) {
        let start = self.frames.len();
        self.frames.extend(names);
        self.end(start, samples);
    }

    fn end(&mut self, start: usize, samples: u64) {
        self.stacks.push(Entry {
            frames: start..self.frames.len(),
            samples,
        });
    }

    /// Whether a frame was made of a name.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.indices.contains_key(name)
    }

    /// The index of a name, made fit for a frame.
    pub(crate) fn name(&mut self, name: Cow<'a, str>) -> u32 {
        if let Some(&index) = self.indices.get(&name) {
            return index;
        }
        let fit = if name.is_empty() {
            UNNAMED.into()
        } else if !name.bytes().all(is_fit) {
            let replace = |char: char| match char {
                ';' => ':',
                char if char.is_ascii_control() => '?',
                char => char,
            };
            name.chars().map(replace).collect::<String>().into()
        } else {
            name.clone()
        };
        let index = match self.indices.get(&fit) {
            Some(&index) => index,
            None => {
                let index = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
                self.names.push(fit.clone());
                self.indices.insert(fit, index);
                index
            }
        };
        self.indices.insert(name, index);
        index
    }

    /// The stacks, in order.
    pub fn stacks(&self) -> impl ExactSizeIterator<Item = Stack<'_>> {
        self.stacks.iter().map(|entry| Stack {
            names: &self.names,
            frames: &self.frames[entry.frames.clone()],
            samples: entry.samples,
        })
    }

    /// All samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        let add = |sum: u64, entry: &Entry| sum.saturating_add(entry.samples);
        self.stacks.iter().fold(0, add)
    }

    /// Each stack once, with the samples of all that are equal, in the order of their frames' names
    /// from the root on.
    #[must_use]
    pub fn merged(&self) -> Self {
        // Names by their order, so that stacks compare as numbers.
        let mut order: Vec<u32> = (0..).take(self.names.len()).collect();
        order.sort_unstable_by_key(|&name| &self.names[name as usize]);
        let mut rank = vec![0; order.len()];
        for (place, &name) in (0..).zip(&order) {
            rank[name as usize] = place;
        }
        let ranked: Vec<u32> = self
            .frames
            .iter()
            .map(|&name| rank[name as usize])
            .collect();
        let mut stacks: Vec<&Entry> = self.stacks.iter().collect();
        stacks.sort_by(|a, b| ranked[a.frames.clone()].cmp(&ranked[b.frames.clone()]));

        let mut merged = Self::new();
        for name in order {
            merged.name(self.names[name as usize].clone());
        }
        for entry in stacks {
            let frames = &ranked[entry.frames.clone()];
            match merged.stacks.last_mut() {
                Some(last) if merged.frames[last.frames.clone()] == *frames => {
                    last.samples = last.samples.saturating_add(entry.samples);
                }
                _ => merged.push_names(frames.iter().copied(), entry.samples),
            }
        }
        merged
    }

    /// The samples by the function they were taken in, the most first.
    #[must_use]
    pub fn leaf_samples(&self) -> Vec<(&str, u64)> {
        let mut samples = vec![0_u64; self.names.len()];
        for entry in &self.stacks {
            let leaf = self.frames[entry.frames.end - 1] as usize;
            samples[leaf] = samples[leaf].saturating_add(entry.samples);
        }
        descending(self.names.iter().map(|name| &**name).zip(samples))
    }

    /// The samples with one of these frames anywhere on their stack.
    #[must_use]
    pub fn samples_through(&self, is_one: impl Fn(&str) -> bool) -> u64 {
        let is_one: Vec<bool> = self.names.iter().map(|name| is_one(name)).collect();
        let goes_through = |entry: &&Entry| {
            let frames = &self.frames[entry.frames.clone()];
            frames.iter().any(|&name| is_one[name as usize])
        };
        let add = |sum: u64, entry: &Entry| sum.saturating_add(entry.samples);
        self.stacks.iter().filter(goes_through).fold(0, add)
    }

    /// The part of the samples that were taken while a CPU had nothing to do, from 0 to 1; `None`
    /// without samples.
    #[must_use]
    pub fn idle_share(&self) -> Option<f64> {
        let samples = self.samples();
        (samples > 0).then(|| self.idle_samples() as f64 / samples as f64)
    }

    /// The samples that were taken while a CPU had nothing to do.
    #[must_use]
    pub fn idle_samples(&self) -> u64 {
        let add = |sum: u64, stack: Stack<'_>| sum.saturating_add(stack.samples);
        self.stacks().filter(Stack::is_idle).fold(0, add)
    }

    /// The stacks that were taken while a CPU had something to do.
    #[must_use]
    pub fn without_idle(mut self) -> Self {
        let is_idle: Vec<bool> = self.stacks().map(|stack| stack.is_idle()).collect();
        let mut is_idle = is_idle.into_iter();
        self.stacks.retain(|_| is_idle.next() == Some(false));
        self
    }
}

/// Whether a byte may stand in the name of a frame.
fn is_fit(byte: u8) -> bool {
    byte != b';' && !byte.is_ascii_control()
}

/// The stack and the samples of a line.
fn parse_line(line: &str) -> Option<(&str, u64)> {
    let (stack, samples) = line.rsplit_once(' ')?;
    let is_number = samples.bytes().all(|byte| byte.is_ascii_digit());
    let has_names = stack.split(';').all(|frame| !frame.is_empty());
    let is_printed = stack.bytes().all(|byte| byte == b';' || is_fit(byte));
    if !(is_number && has_names && is_printed) {
        return None;
    }
    Some((stack, samples.parse().ok()?))
}

/// What has samples, the most first and otherwise by name.
pub(crate) fn descending<'a>(samples: impl Iterator<Item = (&'a str, u64)>) -> Vec<(&'a str, u64)> {
    let mut found: Vec<_> = samples.filter(|(_, samples)| *samples > 0).collect();
    found.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    found
}

/// Equal where they are written the same.
impl PartialEq for Folded<'_> {
    fn eq(&self, other: &Self) -> bool {
        let is_same = |(a, b): (Stack, Stack)| a.samples == b.samples && a.frames().eq(b.frames());
        self.stacks.len() == other.stacks.len() && self.stacks().zip(other.stacks()).all(is_same)
    }
}

impl Eq for Folded<'_> {}

/// The text: a stack a line.
impl fmt::Display for Folded<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for stack in self.stacks() {
            for (index, frame) in stack.frames().enumerate() {
                if index > 0 {
                    formatter.write_str(";")?;
                }
                formatter.write_str(frame)?;
            }
            writeln!(formatter, " {}", stack.samples)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_counts_a_line_and_sums_beyond_any_count_are_refused_and_a_name_may_end_in_a_number() {
        let folded = Folded::parse(b"a;b;c 10 12\na;b 0 3\n").unwrap();
        let error = folded.of_one_profile().unwrap_err();
        assert!(
            error.to_string().starts_with(
                "each of its lines ends in two counts, as difffolded.pl prints them; give one"
            ),
            "{error}"
        );
        let error = Folded::parse(b"a 18446744073709551615\nb 1\n").unwrap_err();
        assert_eq!(error, FoldedError::TooMany { line: 2 });
        let text = "a;thread 10 12\na;b 3\n";
        let folded = Folded::parse(text.as_bytes()).unwrap();
        assert_eq!(folded.of_one_profile().unwrap().to_string(), text);
    }
}
