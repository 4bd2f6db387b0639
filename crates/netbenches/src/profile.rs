//! What the profiles of a bench say, without their stacks.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use fwdlab_profile::{CallGraph, CallGraphError, EventSamples, Folded, FoldedError, Truncation};

/// How many functions are kept: enough to see whether any of them forwards.
const LEAVES_MAX: usize = 10;

/// A call graph, read and reckoned.
#[derive(Clone, Debug, PartialEq)]
pub struct CallGraphFacts {
    /// Samples in all, as its sections say.
    pub samples: u64,
    /// Those of the trees that are there.
    pub read_samples: u64,
    /// Its sections, one for each counter: how many there are of each event, by the events' names.
    pub sections: BTreeMap<String, usize>,
    /// What is missing of it; none where it is whole.
    pub truncation: Option<Truncation>,
    /// The event of its first section, which the next two are of.
    pub event: String,
    /// The samples of other events, the most first.
    pub left_out: Vec<EventSamples>,
    /// The part of the samples in which nothing was to be done; none without samples.
    pub idle_share: Option<f64>,
    /// The functions with the most samples of their own, and how many; at most ten.
    pub leaves: Vec<(String, u64)>,
    /// Tells what the archive's folding makes of it from anything else.
    pub folded: u64,
}

impl CallGraphFacts {
    pub(super) fn parse(text: &[u8]) -> Result<Self, CallGraphError> {
        let graph = CallGraph::parse(text)?;
        let mut sections: BTreeMap<String, usize> = BTreeMap::new();
        for section in graph.sections() {
            *sections.entry(section.event.to_owned()).or_default() += 1;
        }
        let (samples, truncation) = (graph.samples(), graph.truncation(None));
        let read_samples = graph.read_samples();
        // The archive's script folds all events.
        let folded = fingerprint(graph.stackcollapse().to_string().as_bytes());
        let event = graph.sections()[0].event.to_owned();
        let of_event = graph.of_event(None);
        let (graph, left_out) = of_event.expect("the event of the first section");
        Ok(Self {
            samples,
            read_samples,
            sections,
            truncation,
            event,
            left_out,
            idle_share: graph.idle_share(),
            leaves: graph
                .leaf_samples()
                .into_iter()
                .take(LEAVES_MAX)
                .map(|(name, samples)| (name.to_owned(), samples))
                .collect(),
            folded,
        })
    }
}

/// Folded stacks, read and reckoned.
#[derive(Clone, Debug, PartialEq)]
pub struct FoldedFacts {
    /// Samples in all.
    pub samples: u64,
    /// The part of its samples in which nothing was to be done; none without samples.
    pub idle_share: Option<f64>,
    /// The function with the most samples of its own, and how many.
    pub leaf: Option<(String, u64)>,
    /// Equal to [`CallGraphFacts::folded`] where it was made of that graph.
    pub folded: u64,
}

impl FoldedFacts {
    pub(super) fn parse(text: &[u8]) -> Result<Self, FoldedError> {
        let folded = Folded::parse(text)?.of_one_profile()?;
        Ok(Self {
            samples: folded.samples(),
            idle_share: folded.idle_share(),
            leaf: leaf(&folded),
            folded: fingerprint(folded.to_string().as_bytes()),
        })
    }
}

/// The function with the most samples of its own; of equals the first by name.
fn leaf(folded: &Folded<'_>) -> Option<(String, u64)> {
    let mut samples: BTreeMap<&str, u64> = BTreeMap::new();
    for stack in folded.stacks() {
        if let Some(leaf) = stack.frames().next_back() {
            let sum = samples.entry(leaf).or_default();
            *sum = sum.saturating_add(stack.samples);
        }
    }
    let most = samples
        .into_iter()
        .rev()
        .max_by_key(|(_, samples)| *samples);
    most.map(|(leaf, samples)| (leaf.to_owned(), samples))
}

fn fingerprint(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRAPH: &[u8] = b"@ cycles [12 samples]\n\n\
        83.33%  [10]       ip_input @ /boot/kernel/kernel\n \
        100.0%  [10]        ether_demux\n\n\
        16.67%  [2]        sched_idletd @ /boot/kernel/kernel\n\n";

    #[test]
    fn functions_are_those_of_one_event() {
        let idle =
            "@ misses [30 samples]\n\n100.0%  [30]       sched_idletd @ /boot/kernel/kernel\n\n";
        let facts = CallGraphFacts::parse(&[GRAPH, idle.as_bytes()].concat()).unwrap();
        assert_eq!((facts.samples, facts.event.as_str()), (42, "cycles"));
        let (event, samples) = ("misses".to_owned(), 30);
        assert_eq!(facts.left_out, [EventSamples { event, samples }]);
        assert_eq!(
            facts.leaves,
            [("ip_input".into(), 10), ("sched_idletd".into(), 2)]
        );
        assert_eq!(facts.idle_share, Some(2.0 / 12.0));
    }

    #[test]
    fn folded_stacks_are_known_for_those_of_their_graph() {
        let graph = CallGraphFacts::parse(GRAPH).unwrap();
        assert_eq!(graph.samples, 12);
        assert_eq!(graph.leaves[0], ("ip_input".into(), 10));
        assert_eq!(graph.truncation, None);
        let of_it = FoldedFacts::parse(b"ether_demux;ip_input 10\nsched_idletd 2\n").unwrap();
        assert_eq!(of_it.folded, graph.folded);
        // An editor's mark of byte order and line ends are no part of either.
        let edited = b"\xef\xbb\xbfether_demux;ip_input 10\r\nsched_idletd 2\r\n";
        assert_eq!(FoldedFacts::parse(edited).unwrap().folded, graph.folded);
        let edited = [&b"\xef\xbb\xbf"[..], &GRAPH[..GRAPH.len() - 1]].concat();
        assert_eq!(CallGraphFacts::parse(&edited).unwrap(), graph);
        let other = FoldedFacts::parse(b"ether_demux;ip_input 9\nsched_idletd 2\n").unwrap();
        assert_ne!(other.folded, graph.folded);
    }
}
