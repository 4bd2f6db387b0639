//! A call graph is read or refused: folded it keeps every sample, and what is missing adds up.
#![no_main]

use fwdlab_profile::{CallGraph, ConversionStatistics, Folded, FrameNames};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let _ = ConversionStatistics::parse(text);
    if let Ok(folded) = Folded::parse(text) {
        read_back(&folded);
        assert_eq!(folded.merged().samples(), folded.samples());
    }
    let Ok(graph) = CallGraph::parse(text) else {
        return;
    };
    let samples = graph.read_samples();
    for names in [FrameNames::Symbols, FrameNames::ObjectsAndSymbols] {
        let folded = graph.fold(names);
        assert_eq!(folded.samples(), samples);
        read_back(&folded);
    }
    let collapsed = graph.stackcollapse();
    let torn = graph.torn_frame().map_or(0, |frame| frame.samples);
    assert!(collapsed.samples() <= samples + u64::from(torn));
    read_back(&collapsed);
    let leaves: u64 = graph
        .leaf_samples()
        .iter()
        .map(|(_, samples)| samples)
        .sum();
    assert_eq!(leaves, samples);
    assert_eq!(graph.samples_through(|_| true), samples);
    if let Some(truncation) = graph.truncation(None) {
        assert_eq!(truncation.missing_samples, graph.samples() - samples);
    } else {
        assert_eq!(graph.samples(), samples);
    }
});

/// What is written reads back.
fn read_back(folded: &Folded) {
    let text = folded.to_string();
    assert_eq!(&Folded::parse(text.as_bytes()).expect("as written"), folded);
}
