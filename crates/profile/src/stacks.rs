//! Stacks, counted while they are read.

use std::borrow::Cow;
use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::Folded;
use crate::text::PrintedError;

/// More than the names and the distinct stacks of any profile need: what is kept of the longest text.
const KEPT_BYTES_MAX: usize = 512 << 20;
/// What an entry needs beside its text or its frames, about.
const ENTRY_BYTES: usize = 96;

/// Stacks and their samples, each held once, and the one that is being read.
#[derive(Default)]
pub(crate) struct Stacks {
    /// The names; without stacks until the end.
    folded: Folded<'static>,
    /// The same by the text that they were made of, so that a text is taken apart once.
    by_text: HashMap<Box<[u8]>, u32, RandomState>,
    /// From the leaf to the root, as samplers print them.
    samples: HashMap<Box<[u32]>, u64, RandomState>,
    open: Vec<u32>,
    /// All samples.
    all: u64,
    /// What names and stacks need, about.
    kept_bytes: usize,
}

impl Stacks {
    /// The index of the name that `make` gives a text; the same for the same text, whatever is made of it.
    pub(crate) fn name(&mut self, text: &[u8], make: impl FnOnce(&str) -> Cow<'_, str>) -> u32 {
        if let Some(&known) = self.by_text.get(text) {
            return known;
        }
        let name = make(&String::from_utf8_lossy(text)).into_owned();
        self.keep(text.len() + name.len());
        let name = self.folded.name(name.into());
        self.by_text.insert(text.into(), name);
        name
    }

    /// Adds a frame to the stack that is being read, nearer to the root than those before.
    pub(crate) fn push(&mut self, name: u32) {
        self.open.push(name);
    }

    /// The same by its name.
    pub(crate) fn push_named(&mut self, name: String) {
        if !self.folded.has_name(&name) {
            self.keep(name.len());
        }
        let name = self.folded.name(name.into());
        self.open.push(name);
    }

    /// Whether the stack that is being read has no frame yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Counts the stack that was read, and begins the next.
    ///
    /// Shape: it has one frame or more, and no more samples than [`Stacks::room`].
    pub(crate) fn end(&mut self, samples: u64) {
        self.all += samples;
        match self.samples.get_mut(self.open.as_slice()) {
            Some(known) => *known += samples,
            None => {
                self.keep(size_of_val(self.open.as_slice()));
                self.samples.insert(self.open.as_slice().into(), samples);
            }
        }
        self.open.clear();
    }

    /// How many more samples can be counted.
    pub(crate) fn room(&self) -> u64 {
        u64::MAX - self.all
    }

    /// Counts an entry that is kept to the end, beside its own `bytes`.
    pub(crate) fn keep(&mut self, bytes: usize) {
        self.kept_bytes += bytes + ENTRY_BYTES;
    }

    /// Whether what is kept is no more than is bearable, with `waiting` bytes that a reader holds of an open stack.
    ///
    /// # Errors
    /// [`PrintedError::TooMuch`] with this line.
    pub(crate) fn check(&self, line: u64, waiting: usize) -> Result<(), PrintedError> {
        let open = size_of_val(self.open.as_slice());
        if self.kept_bytes + open + waiting > KEPT_BYTES_MAX {
            return Err(PrintedError::TooMuch { line });
        }
        Ok(())
    }

    /// Each stack once, in the order of its names.
    pub(crate) fn finish(mut self) -> Folded<'static> {
        for (stack, samples) in &self.samples {
            self.folded
                .push_names(stack.iter().rev().copied(), *samples);
        }
        self.folded.merged()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_and_equal_stacks_need_no_more() {
        let mut stacks = Stacks::default();
        let add = |stacks: &mut Stacks| {
            let name = stacks.name(&[b'x'; 100], |text| text.to_owned().into());
            stacks.push(name);
            stacks.end(1);
        };
        add(&mut stacks);
        let kept = stacks.kept_bytes;
        assert!((200..1000).contains(&kept), "{kept}");
        add(&mut stacks);
        assert_eq!(stacks.kept_bytes, kept);
        assert!(stacks.check(7, KEPT_BYTES_MAX - kept).is_ok());
        let error = stacks.check(7, KEPT_BYTES_MAX - kept + 1).unwrap_err();
        assert!(error.to_string().starts_with(
            "line 7: with it the names and the distinct stacks need more than 512 MiB"
        ));
        stacks.keep(KEPT_BYTES_MAX);
        assert!(stacks.check(8, 0).is_err());
    }
}
