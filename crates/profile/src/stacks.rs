//! Stacks, counted while they are read.

use std::borrow::Cow;
use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::Folded;

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
}

impl Stacks {
    /// The index of the name that `make` gives a text; the same for the same text, whatever is made of it.
    pub(crate) fn name(&mut self, text: &[u8], make: impl FnOnce(&str) -> Cow<'_, str>) -> u32 {
        if let Some(&known) = self.by_text.get(text) {
            return known;
        }
        let name = make(&String::from_utf8_lossy(text)).into_owned();
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
        let name = self.folded.name(name.into());
        self.open.push(name);
    }

    /// Whether the stack that is being read has no frame yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Counts the stack that was read, and begins the next.
    ///
    /// Shape: it has one frame or more.
    pub(crate) fn end(&mut self, samples: u64) {
        match self.samples.get_mut(self.open.as_slice()) {
            Some(known) => *known = known.saturating_add(samples),
            None => {
                self.samples.insert(self.open.as_slice().into(), samples);
            }
        }
        self.open.clear();
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
