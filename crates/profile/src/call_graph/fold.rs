//! Stacks from a call graph, and what its leaves and its idle CPUs say.

use std::collections::HashMap;

use super::{CallGraph, Node};
use crate::Folded;
use crate::folded::descending;

/// What the frames of folded stacks are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameNames {
    /// By the symbol alone: functions of the same name in two objects become one.
    Symbols,
    /// ``kernel`ip_input``: the object's file name and the symbol, as DTrace writes them.
    ObjectsAndSymbols,
}

/// A frame on the way down a tree.
struct Open {
    name: u32,
    /// Samples whose stack ends with it.
    residual: u32,
}

impl<'a> CallGraph<'a> {
    /// The stacks of all sections: every sample that is there once, at its whole stack.
    ///
    /// Samples whose stack ends at a function with other callers are kept, at the shorter stack. Equal
    /// stacks are one, in the order of their names from the root on. The torn frame is left out: what
    /// went through it counts for the frame before, as if the stack ended there.
    #[must_use]
    pub fn fold(&self, names: FrameNames) -> Folded<'a> {
        let mut folded = Folded::new();
        let mut known = HashMap::new();
        let mut path: Vec<Open> = Vec::new();
        for node in &self.nodes {
            close(&mut folded, &mut path, node.depth.into());
            if let Some(called) = path.last_mut() {
                called.residual -= node.samples;
            }
            let object = match names {
                FrameNames::Symbols => 0,
                FrameNames::ObjectsAndSymbols => node.object,
            };
            let name = *known
                .entry((object, node.symbol))
                .or_insert_with(|| self.name(&mut folded, object, node));
            path.push(Open {
                name,
                residual: node.samples,
            });
        }
        close(&mut folded, &mut path, 0);
        folded.merged()
    }

    fn name(&self, folded: &mut Folded<'a>, object: u32, node: &Node) -> u32 {
        let symbol = self.symbols[node.symbol as usize];
        match (object as usize).checked_sub(1) {
            None => folded.name(symbol.into()),
            Some(index) => {
                let object = self.objects[index];
                let file = object.rsplit('/').next().unwrap_or(object);
                folded.name(format!("{file}`{symbol}").into())
            }
        }
    }

    /// The stacks as `stackcollapse-pmc.pl` prints them, byte for byte, for telling whether a file was
    /// made so.
    ///
    /// The script prints a stack for each frame that no deeper one follows, with all of its samples.
    /// So samples whose stack ends at a function with other callers are lost, objects as well; equal
    /// stacks stay apart, and the torn frame counts with as much of its name as there is. In a symbol
    /// that holds one, a semicolon becomes a colon, where the script leaves it to be mistaken.
    ///
    /// # Source
    /// github.com/brendangregg/FlameGraph, `stackcollapse-pmc.pl`.
    #[must_use]
    pub fn stackcollapse(&self) -> Folded<'a> {
        let mut folded = Folded::new();
        let names: Vec<u32> = self
            .symbols
            .iter()
            .map(|&symbol| folded.name(symbol.into()))
            .collect();
        let nodes = self.nodes.iter().map(|node| {
            (
                usize::from(node.depth),
                names[node.symbol as usize],
                node.samples,
            )
        });
        let torn = self
            .torn
            .map(|frame| (frame.depth, folded.name(frame.symbol.into()), frame.samples));
        let mut path: Vec<u32> = Vec::new();
        let mut last_samples = 0;
        for (depth, name, samples) in nodes.chain(torn) {
            if depth < path.len() {
                folded.push_names(path.iter().rev().copied(), last_samples);
            }
            path.truncate(depth);
            path.push(name);
            last_samples = u64::from(samples);
        }
        if !path.is_empty() {
            folded.push_names(path.iter().rev().copied(), last_samples);
        }
        folded
    }

    /// The samples of the trees that are there by the function they were taken in, the most first.
    #[must_use]
    pub fn leaf_samples(&self) -> Vec<(&'a str, u64)> {
        let mut samples = vec![0; self.symbols.len()];
        for root in self.nodes.iter().filter(|node| node.depth == 0) {
            samples[root.symbol as usize] += u64::from(root.samples);
        }
        descending(self.symbols.iter().copied().zip(samples))
    }

    /// The samples with one of these functions anywhere on their stack.
    #[must_use]
    pub fn samples_through(&self, is_one: impl Fn(&str) -> bool) -> u64 {
        let is_one: Vec<bool> = self.symbols.iter().map(|&symbol| is_one(symbol)).collect();
        let mut total = 0;
        // All that is deeper than one that was counted was counted with it.
        let mut counted_depth = u16::MAX;
        for node in &self.nodes {
            if node.depth > counted_depth {
                continue;
            }
            counted_depth = u16::MAX;
            if is_one[node.symbol as usize] {
                total += u64::from(node.samples);
                counted_depth = node.depth;
            }
        }
        total
    }

    /// The part of the samples that were taken while a CPU had nothing to do, from 0 to 1; `None`
    /// without samples.
    ///
    /// A profile of forwarding that is mostly idle does not show the load: it was taken before or after
    /// it. How much is too much depends on the event: one that counts only cycles that are not halted
    /// hardly sees idle CPUs that sleep, and sees those that poll.
    #[must_use]
    pub fn idle_share(&self) -> Option<f64> {
        let samples = self.read_samples();
        let idle = self.samples_through(crate::is_idle);
        (samples > 0).then(|| idle as f64 / samples as f64)
    }
}

/// Leaves all frames from a depth on, and takes the stacks that end at them.
fn close(folded: &mut Folded<'_>, path: &mut Vec<Open>, depth: usize) {
    while path.len() > depth {
        let residual = path.last().map_or(0, |open| open.residual);
        if residual > 0 {
            folded.push_names(path.iter().rev().map(|open| open.name), residual.into());
        }
        path.pop();
    }
}
