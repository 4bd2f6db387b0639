//! Call graphs as `pmcstat -R pmc.out -z16 -G pmc.graph` prints them.

mod fold;
mod line;
mod parse;
mod truncation;

use std::collections::HashMap;
use std::ops::Range;

pub use fold::FrameNames;
pub use parse::CallGraphError;
pub use truncation::{LastLine, SectionShortfall, Truncation};

use crate::events::most_first;
use crate::{EventSamples, NoSuchEvent};

/// A call graph of FreeBSD's pmcstat: where the program counter was, and who had called that.
///
/// It is a list of sections, one for each counter that has samples, the last allocated first. A counter
/// is of a CPU, or of several, and its section does not say of which. A section is a list of trees. Each has the function at its root in which samples were taken,
/// and the callers of a function one deeper than it:
///
/// ```text
/// @ cpu_clk_unhalted.core_p [2546 samples]
///
/// 09.39%  [239]      iflib_encap @ /boot/kernel/kernel
///  87.03%  [208]       iflib_txq_drain
///   100.0%  [208]        drain_ring_lockless
/// ```
///
/// The percentage is of the samples one less deep. Callers may have fewer samples together than what
/// they called, since stacks also end: at the first function, at the depth that pmcstat was asked for,
/// at an address that is nobody's. Sections and the roots within them are in order, as printed.
///
/// Shape: frames are held in 16 bytes each, names once, as they stand in the text.
///
/// # Source
/// FreeBSD, `usr.sbin/pmcstat/pmcpl_callgraph.c`.
///
/// # Examples
/// ```
/// use fwdlab_profile::{CallGraph, FrameNames};
/// let graph = CallGraph::parse(
///     b"@ instructions [12 samples]\n\n\
///       83.33%  [10]       ip_input @ /boot/kernel/kernel\n \
///       70.00%  [7]         ether_demux\n\n\
///       16.67%  [2]        sched_idletd @ /boot/kernel/kernel\n\n",
/// )?;
/// assert_eq!(graph.truncation(None), None);
/// assert_eq!(
///     graph.fold(FrameNames::Symbols).to_string(),
///     "ether_demux;ip_input 7\nip_input 3\nsched_idletd 2\n",
/// );
/// # Ok::<(), fwdlab_profile::CallGraphError>(())
/// ```
#[derive(Clone, Debug)]
pub struct CallGraph<'a> {
    sections: Vec<Section<'a>>,
    nodes: Vec<Node>,
    symbols: Vec<&'a str>,
    objects: Vec<&'a str>,
    last_line: LastLine,
    /// The frame of a last line that has no end, as far as it goes; its symbol may be cut.
    torn: Option<Frame<'a>>,
}

/// The samples of one counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// The event that was sampled, as the processor's tables name it.
    pub event: &'a str,
    /// Its samples, as its first line says.
    pub samples: u32,
    /// The samples of the trees that are there; fewer where the text is cut.
    pub read_samples: u32,
    /// Its first line, from 1.
    pub line: usize,
    nodes: Range<usize>,
}

/// A function on a stack: the sampled one at depth 0, or a caller of the one before that is one less
/// deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// How many calls lie between it and the sampled function.
    pub depth: usize,
    /// The percentage printed, of the samples one less deep; `100.0%` is 10,000.
    pub percent_hundredths: u16,
    /// Samples that went through it to there.
    pub samples: u32,
    /// The function; its address, `0x…`, where the object has no symbol for it.
    pub symbol: &'a str,
    /// The file it is from. pmcstat prints it where it changes from one line to the next.
    pub object: Option<&'a str>,
}

/// A frame as it is held.
#[derive(Clone, Copy, Debug)]
struct Node {
    symbol: u32,
    /// One more than the index, so that 0 is none.
    object: u32,
    samples: u32,
    percent_hundredths: u16,
    depth: u16,
}

impl<'a> CallGraph<'a> {
    /// The sections, one or more.
    #[must_use]
    pub fn sections(&self) -> &[Section<'a>] {
        &self.sections
    }

    /// The frames of one of its sections, as printed: a function before its callers.
    ///
    /// # Panics
    /// If the section is of another, larger graph.
    pub fn frames<'g>(
        &'g self,
        section: &Section<'a>,
    ) -> impl ExactSizeIterator<Item = Frame<'a>> + use<'g, 'a> {
        let nodes = &self.nodes[section.nodes.clone()];
        nodes.iter().map(|node| Frame {
            depth: node.depth.into(),
            percent_hundredths: node.percent_hundredths,
            samples: node.samples,
            symbol: self.symbols[node.symbol as usize],
            object: (node.object as usize)
                .checked_sub(1)
                .map(|index| self.objects[index]),
        })
    }

    /// The frame of a last line that has no end, as far as it goes: its names may be cut. It is in no
    /// section, and its samples are missing there.
    #[must_use]
    pub fn torn_frame(&self) -> Option<Frame<'a>> {
        self.torn
    }

    /// Every event that was sampled, once, the most samples first.
    #[must_use]
    pub fn events(&self) -> Vec<EventSamples> {
        let mut samples: HashMap<&str, u64> = HashMap::new();
        for section in &self.sections {
            *samples.entry(section.event).or_default() += u64::from(section.samples);
        }
        let of_events = samples.into_iter();
        most_first(of_events.map(|(event, samples)| (event.to_owned(), samples)))
    }

    /// The sections of one event, the one asked for or that of the first section, and the samples of the others.
    ///
    /// # Errors
    /// [`NoSuchEvent`].
    pub fn of_event(
        mut self,
        event: Option<&str>,
    ) -> Result<(Self, Vec<EventSamples>), NoSuchEvent> {
        let event = event.unwrap_or(self.sections[0].event);
        let mut others = self.events();
        let events = others.len();
        others.retain(|other| other.event != event);
        if others.len() == events {
            let event = event.to_owned();
            return Err(NoSuchEvent { event, others });
        }
        if self.sections.last().is_some_and(|last| last.event != event) {
            self.torn = None;
        }
        let mut nodes = Vec::new();
        self.sections.retain_mut(|section| {
            let start = nodes.len();
            let is_taken = section.event == event;
            if is_taken {
                nodes.extend_from_slice(&self.nodes[section.nodes.clone()]);
                section.nodes = start..nodes.len();
            }
            is_taken
        });
        self.nodes = nodes;
        Ok((self, others))
    }

    /// The samples of all sections, as their first lines say.
    #[must_use]
    pub fn samples(&self) -> u64 {
        let samples = |section: &Section| u64::from(section.samples);
        self.sections.iter().map(samples).sum()
    }

    /// The samples of all trees that are there.
    #[must_use]
    pub fn read_samples(&self) -> u64 {
        let samples = |section: &Section| u64::from(section.read_samples);
        self.sections.iter().map(samples).sum()
    }
}
