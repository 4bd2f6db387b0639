//! What is reported of a text that is cut.

use fwdlab_profile::{
    CallGraph, ConversionStatistics, EventSamples, FrameNames, LastLine, SectionShortfall,
};

const GRAPH: &str = "\
@ cpu_clk_unhalted.core_p [20 samples]

60.00%  [12]       iflib_encap @ /boot/kernel/kernel
 75.00%  [9]         iflib_txq_drain
  100.0%  [9]          ixgbe_isc_txd_encap @ /boot/kernel/if_ix.ko
 16.67%  [2]         iflib_rxeof

40.00%  [8]        cpu_idle @ /boot/kernel/kernel
 100.0%  [8]         sched_idletd

@ cpu_clk_unhalted.core_p [10 samples]

100.0%  [10]       sched_idletd @ /boot/kernel/kernel

";

fn cut(behind: &str) -> CallGraph<'static> {
    let length = GRAPH.find(behind).expect("it is in there") + behind.len();
    CallGraph::parse(&GRAPH.as_bytes()[..length]).expect("a beginning of a graph")
}

#[test]
fn a_whole_graph_is_whole_and_keeps_the_object_from_line_to_line() {
    let graph = cut(GRAPH);
    assert_eq!(graph.truncation(None), None);
    let of_it = EventSamples {
        event: "cpu_clk_unhalted.core_p".into(),
        samples: 30,
    };
    assert_eq!(graph.events(), [of_it]);
    assert_eq!((graph.samples(), graph.read_samples()), (30, 30));
    let [first, second] = graph.sections() else {
        panic!("{:?}", graph.sections());
    };
    assert_eq!((first.line, second.line), (1, 11));
    let objects: Vec<_> = graph
        .frames(first)
        .map(|frame| frame.object.unwrap().rsplit('/').next().unwrap())
        .collect();
    // Printed where it changes from the line before, not from the function called.
    assert_eq!(
        objects,
        [
            "kernel", "kernel", "if_ix.ko", "if_ix.ko", "kernel", "kernel"
        ]
    );
    assert_eq!(graph.frames(second).len(), 1);
    assert_eq!(
        graph.leaf_samples(),
        [("iflib_encap", 12), ("sched_idletd", 10), ("cpu_idle", 8)]
    );
    assert_eq!(graph.idle_share(), Some(0.6));
}

#[test]
fn every_sample_is_folded_once_and_the_script_loses_those_that_end_early() {
    let graph = cut(GRAPH);
    assert_eq!(
        graph.fold(FrameNames::Symbols).to_string(),
        "\
iflib_encap 1
iflib_rxeof;iflib_encap 2
ixgbe_isc_txd_encap;iflib_txq_drain;iflib_encap 9
sched_idletd 10
sched_idletd;cpu_idle 8
"
    );
    assert_eq!(
        graph.fold(FrameNames::ObjectsAndSymbols).to_string(),
        "\
if_ix.ko`iflib_rxeof;kernel`iflib_encap 2
if_ix.ko`ixgbe_isc_txd_encap;kernel`iflib_txq_drain;kernel`iflib_encap 9
kernel`iflib_encap 1
kernel`sched_idletd 10
kernel`sched_idletd;kernel`cpu_idle 8
"
    );
    assert_eq!(
        graph.stackcollapse().to_string(),
        "\
ixgbe_isc_txd_encap;iflib_txq_drain;iflib_encap 9
iflib_rxeof;iflib_encap 2
sched_idletd;cpu_idle 8
sched_idletd 10
"
    );
    for names in [FrameNames::Symbols, FrameNames::ObjectsAndSymbols] {
        assert_eq!(graph.fold(names).idle_share(), graph.idle_share());
    }
}

#[test]
fn a_cut_is_told_by_the_last_line_by_the_sums_and_by_what_pmcstat_counted() {
    let torn = cut("ixgbe_isc");
    let truncation = torn.truncation(None).unwrap();
    assert_eq!(truncation.last_line, LastLine::Torn);
    let short = SectionShortfall {
        section: 0,
        line: 1,
        samples: 20,
        missing_samples: 8,
    };
    assert_eq!(truncation.sections, [short]);
    assert_eq!((truncation.samples, truncation.missing_samples), (20, 8));
    assert!((truncation.missing_share() - 0.4).abs() < 1e-12);
    assert_eq!(torn.torn_frame().unwrap().symbol, "ixgbe_isc");
    // The script takes the torn name; here it is where the stack ends.
    let collapsed = torn.stackcollapse().to_string();
    assert_eq!(collapsed, "ixgbe_isc;iflib_txq_drain;iflib_encap 9\n");
    assert_eq!(
        torn.fold(FrameNames::Symbols).to_string(),
        "iflib_encap 3\niflib_txq_drain;iflib_encap 9\n"
    );

    // Between two trees the sums alone tell; between two sections, that pmcstat counted more.
    let between_trees = cut("iflib_rxeof\n\n").truncation(None).unwrap();
    assert_eq!(between_trees.last_line, LastLine::Whole);
    assert_eq!(between_trees.missing_samples, 8);
    let open = cut("iflib_rxeof\n").truncation(None).unwrap();
    assert_eq!(
        (open.last_line, open.missing_samples),
        (LastLine::TreeOpen, 8)
    );
    let first_section = cut("sched_idletd\n\n");
    assert_eq!(first_section.truncation(None), None);
    let statistics = ConversionStatistics::parse(
        b"CONVERSION STATISTICS:\n #samples/total 32\n #callchain/dubious-frames 2\n",
    )
    .unwrap();
    let by_count = first_section.truncation(Some(&statistics)).unwrap();
    assert_eq!(
        (by_count.samples, by_count.missing_section_samples),
        (30, 10)
    );
    assert!((by_count.missing_share() - 1.0 / 3.0).abs() < 1e-12);
    assert_eq!(cut(GRAPH).truncation(Some(&statistics)), None);

    // A first line without its end still says what is missing.
    let header = cut("[20 samples]");
    let truncation = header.truncation(None).unwrap();
    assert_eq!(
        (truncation.missing_samples, truncation.missing_share()),
        (20, 1.0)
    );
    assert_eq!(header.idle_share(), None);
    assert_eq!(header.stackcollapse().to_string(), "");
}

#[test]
fn a_graph_without_its_last_empty_line_is_whole() {
    for text in [GRAPH, &GRAPH.replace('\n', "\r\n")] {
        let line_end = if text.ends_with("\r\n") { "\r\n" } else { "\n" };
        let graph = CallGraph::parse(text.strip_suffix(line_end).unwrap().as_bytes()).unwrap();
        assert_eq!(graph.truncation(None), None);
        assert_eq!(graph.fold(FrameNames::Symbols).samples(), 30);
    }
    // Without the end of its last line a name may be cut.
    let torn = CallGraph::parse(GRAPH.trim_end().as_bytes()).unwrap();
    assert_eq!(torn.truncation(None).unwrap().last_line, LastLine::Torn);
}

#[test]
fn samples_of_one_event_are_taken_and_those_of_others_counted() {
    let text = format!(
        "{GRAPH}@ llc-misses [5 samples]\n\n80.00%  [4]        ether_demux @ /boot/kernel/kernel\n \
         50.00%  [2]         ip_input"
    );
    let parse = || CallGraph::parse(text.as_bytes()).unwrap();
    let (cycles, others) = parse().of_event(None).unwrap();
    let other = |event: &str, samples| EventSamples {
        event: event.into(),
        samples,
    };
    assert_eq!(others, [other("llc-misses", 5)]);
    assert_eq!(
        cycles.fold(FrameNames::Symbols).to_string(),
        cut(GRAPH).fold(FrameNames::Symbols).to_string()
    );
    assert_eq!(
        cycles.stackcollapse().to_string(),
        cut(GRAPH).stackcollapse().to_string()
    );
    // The text is cut, whichever event is taken.
    assert_eq!(cycles.truncation(None).unwrap().missing_samples, 0);
    let (misses, others) = parse().of_event(Some("llc-misses")).unwrap();
    assert_eq!(others, [other("cpu_clk_unhalted.core_p", 30)]);
    assert_eq!(
        misses.stackcollapse().to_string(),
        "ip_input;ether_demux 2\n"
    );
    assert_eq!(misses.truncation(None).unwrap().missing_samples, 1);
    assert_eq!(misses.fold(FrameNames::Symbols).samples(), 4);
    assert_eq!(
        parse().of_event(Some("cycles")).unwrap_err().to_string(),
        "no samples of \"cycles\"; it has those of cpu_clk_unhalted.core_p (30), llc-misses (5)"
    );
}

#[test]
fn a_character_that_is_cut_is_a_torn_line() {
    let text = "@ e [2 samples]\n\n100.0%  [2]  a\u{b7}b @ c\n\n".as_bytes();
    let dot = text
        .windows(2)
        .position(|bytes| bytes == "\u{b7}".as_bytes())
        .unwrap();
    let graph = CallGraph::parse(&text[..=dot]).unwrap();
    assert_eq!(graph.torn_frame().unwrap().symbol, "a");
    assert_eq!(graph.truncation(None).unwrap().missing_samples, 2);
}
