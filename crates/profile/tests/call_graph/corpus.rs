//! The part of the public archive that lies in the shared data.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fwdlab_profile::{
    CallGraph, ConversionStatistics, Folded, FrameNames, LastLine, StatisticsError,
};

use crate::print::{hundredths, printed};

/// Every file below a folder whose name ends like this.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    let mut found = Vec::new();
    for entry in entries {
        if entry.is_dir() {
            found.extend(files(&entry, ending));
        } else if entry.to_str().is_some_and(|path| path.ends_with(ending)) {
            found.push(entry);
        }
    }
    found
}

fn count(counts: &mut BTreeMap<String, usize>, what: impl Into<String>) {
    *counts.entry(what.into()).or_default() += 1;
}

/// What was counted, a line each.
fn lines(counts: &BTreeMap<String, usize>) -> String {
    let lines = counts
        .iter()
        .map(|(what, count)| format!("{count} {what}\n"));
    lines.collect()
}

#[test]
fn every_graph_is_read_to_its_last_byte() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let (mut endings, mut events, mut sections) =
        (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let (mut frames, mut samples, mut read_samples, mut depth_most) = (0, 0, 0, 0);
    let mut shares_missing = Vec::new();
    for path in files(&archive, ".graph") {
        let text = fs::read_to_string(&path).unwrap();
        let shown = path.strip_prefix(&archive).unwrap().display().to_string();
        let graph =
            CallGraph::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{shown}: {error}"));

        // What is read is what is printed, but for the line that is torn.
        let again = printed(&graph);
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        let truncation = graph.truncation(None);
        match &truncation {
            None => assert_eq!(again, text, "{shown}"),
            // The empty line behind its last tree is printed here.
            Some(_) => assert_eq!(again.trim_end(), text[..whole].trim_end(), "{shown}"),
        }
        assert_eq!(
            truncation.is_some_and(|truncation| truncation.last_line == LastLine::Torn),
            !text.ends_with('\n'),
            "{shown}"
        );
        for section in graph.sections() {
            let mut path = vec![section.samples];
            for frame in graph.frames(section) {
                path.truncate(frame.depth + 1);
                assert_eq!(
                    frame.percent_hundredths,
                    hundredths(frame.samples, path[path.len() - 1]),
                    "{shown}"
                );
                assert!(
                    frame.object.is_some_and(|object| object.starts_with('/')),
                    "{shown}"
                );
                path.push(frame.samples);
                depth_most = depth_most.max(frame.depth);
                frames += 1;
            }
        }
        let [event] = &graph.events()[..] else {
            panic!("{shown}: {:?}", graph.events());
        };
        count(&mut events, &event.event);
        count(
            &mut sections,
            format!("of {} sections", graph.sections().len()),
        );
        samples += graph.samples();
        read_samples += graph.read_samples();
        let ending = match graph.truncation(None) {
            None => "whole".to_owned(),
            Some(truncation) => {
                // The buffer of pmcstat that was not written out.
                assert!(text.len().is_multiple_of(4096), "{shown}");
                // Of the section that is cut: those behind it are missing whole.
                assert_eq!(truncation.sections.len(), 1, "{shown}");
                assert_eq!(
                    truncation.sections[0].section,
                    graph.sections().len() - 1,
                    "{shown}"
                );
                shares_missing.push(format!("{:.4}", truncation.missing_share()));
                format!("{:?}", truncation.last_line)
            }
        };
        count(&mut endings, ending);
    }
    assert_eq!(lines(&endings), "15 Torn\n1 TreeOpen\n31 whole\n");
    assert_eq!(
        lines(&events),
        "\
7 BU_CPU_CLK_UNHALTED
9 CPU_CLK_UNHALTED_CORE
15 cpu_clk_unhalted.core_p
14 cpu_clk_unhalted.thread
2 ls_not_halted_cyc
"
    );
    assert_eq!(
        lines(&sections),
        "\
2 of 1 sections
22 of 2 sections
3 of 3 sections
16 of 4 sections
4 of 8 sections
"
    );
    assert_eq!((frames, depth_most), (215_032, 15));
    assert_eq!((samples, read_samples), (3_465_580, 3_420_337));
    assert_eq!(
        shares_missing.join(" "),
        "0.0042 0.0872 0.0281 0.0089 0.0539 0.0090 0.0726 0.0266 \
         0.0707 0.0753 0.0720 0.1417 0.0925 0.0467 0.0981 0.0491"
    );
}

#[test]
fn published_stacks_are_made_again_byte_for_byte() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let (mut made, mut of_truncated, mut right) = (BTreeMap::new(), 0, BTreeMap::new());
    for ending in [".stack", ".folded"] {
        for path in files(&archive, ending) {
            let shown = path.strip_prefix(&archive).unwrap().display().to_string();
            let published = fs::read(&path).unwrap();
            let stacks =
                Folded::parse(&published).unwrap_or_else(|error| panic!("{shown}: {error}"));
            assert_eq!(stacks.to_string().as_bytes(), published, "{shown}");
            let graph = path.with_extension("graph");
            if !graph.exists() {
                count(&mut made, format!("{ending} without a graph"));
                continue;
            }
            let text = fs::read(&graph).unwrap();
            let graph = CallGraph::parse(&text).unwrap();
            assert_eq!(
                graph.stackcollapse().to_string().as_bytes(),
                published,
                "{shown}"
            );
            count(&mut made, format!("{ending} as published"));
            of_truncated += usize::from(graph.truncation(None).is_some());

            // What the script loses.
            let folded = graph.fold(FrameNames::Symbols);
            assert_eq!(folded.samples(), graph.read_samples(), "{shown}");
            let by_object = graph.fold(FrameNames::ObjectsAndSymbols);
            assert_eq!(by_object.samples(), folded.samples(), "{shown}");
            let torn = graph.torn_frame().map_or(0, |frame| frame.samples);
            let lost = folded.samples() + u64::from(torn) - stacks.samples();
            assert!(
                lost as f64 <= 0.013 * folded.samples() as f64,
                "{shown}: {lost}"
            );
            count(
                &mut right,
                if lost > 0 {
                    "lose samples"
                } else {
                    "lose none"
                },
            );
            let is_merged = stacks.merged().stacks().len() < stacks.stacks().len();
            count(
                &mut right,
                if is_merged {
                    "hold a stack twice"
                } else {
                    "hold none twice"
                },
            );
        }
    }
    assert_eq!(
        lines(&made),
        "1 .folded as published\n17 .stack as published\n"
    );
    assert_eq!(of_truncated, 6);
    assert_eq!(
        lines(&right),
        "\
16 hold a stack twice
2 hold none twice
1 lose none
17 lose samples
"
    );
}

#[test]
fn idle_profiles_are_told() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let mut shares = Vec::new();
    let mut leaves = BTreeMap::new();
    for path in files(&archive, ".graph") {
        let text = fs::read(&path).unwrap();
        let graph = CallGraph::parse(&text).unwrap();
        let idle_share = graph.idle_share().unwrap();
        assert_eq!(
            graph.fold(FrameNames::Symbols).idle_share(),
            Some(idle_share)
        );
        assert_eq!(
            graph.fold(FrameNames::ObjectsAndSymbols).idle_share(),
            Some(idle_share)
        );
        shares.push(idle_share);

        let leaf_samples = graph.leaf_samples();
        assert_eq!(
            leaf_samples.iter().map(|(_, samples)| samples).sum::<u64>(),
            graph.read_samples()
        );
        count(&mut leaves, leaf_samples[0].0);
    }
    let above = |bound| shares.iter().filter(|share| **share > bound).count();
    assert_eq!([0.9, 0.5, 0.1].map(above), [7, 7, 16]);
    assert_eq!(
        lines(&leaves),
        "\
1 __rw_rlock
3 eth_tx
1 ether_output
2 iflib_completed_tx_reclaim
6 iflib_encap
2 iflib_simple_transmit
5 iflib_txq_drain
1 igb_mq_start_locked
1 lock_delay
1 memcpy_erms
6 rn_match
1 rxd_frag_to_sd
16 sched_idletd
1 service_iq_fl
"
    );
}

#[test]
fn what_pmcstat_counted_tells_of_sections_that_are_missing() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let mut kinds = BTreeMap::new();
    let mut shares_missing = Vec::new();
    for path in files(&archive, ".pmc.log") {
        let shown = path.strip_prefix(&archive).unwrap().display().to_string();
        let text = fs::read(&path).unwrap();
        let statistics = match ConversionStatistics::parse(&text) {
            Ok(statistics) => statistics,
            Err(StatisticsError::Empty) => {
                count(&mut kinds, "empty");
                continue;
            }
            Err(error) => panic!("{shown}: {error}"),
        };
        assert_eq!(statistics.warnings, [], "{shown}");
        let Ok(graph) = fs::read(path.with_extension("graph")) else {
            count(&mut kinds, "without a graph");
            continue;
        };
        let graph = CallGraph::parse(&graph).unwrap();
        if graph.truncation(None).is_none() {
            // A whole graph holds every sample that was counted.
            assert_eq!(graph.truncation(Some(&statistics)), None, "{shown}");
            assert_eq!(statistics.graphed_samples(), graph.samples(), "{shown}");
            count(&mut kinds, "of a whole graph");
        } else {
            let truncation = graph.truncation(Some(&statistics)).unwrap();
            assert_eq!(truncation.samples, statistics.graphed_samples(), "{shown}");
            shares_missing.push(format!("{:.3}", truncation.missing_share()));
            count(&mut kinds, "of a graph without most of its sections");
        }
    }
    assert_eq!(
        lines(&kinds),
        "\
5 empty
2 of a graph without most of its sections
16 of a whole graph
15 without a graph
"
    );
    // By their sums less than a tenth: the sections of the other CPUs are not there.
    assert_eq!(shares_missing.join(" "), "0.872 0.882");
}
