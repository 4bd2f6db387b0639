use crate::lint::tree::sample::Sample;

const GRAPH: &str = "@ cycles [12 samples]\n\n\
    83.33%  [10]       ip_input @ /boot/kernel/kernel\n \
    100.0%  [10]        ether_demux\n\n\
    16.67%  [2]        sched_idletd @ /boot/kernel/kernel\n\n";
const STACKS: &str = "ether_demux;ip_input 10\nsched_idletd 2\n";
const LOG: &str = "CONVERSION STATISTICS:\n #samples/total                           12\n";

/// What is found of a profile in a sound tree.
fn found(graph: &str, stacks: &str, log: &str) -> Vec<String> {
    let sample = Sample::sound();
    sample.write("PMC/bench.off.pmc.graph", graph);
    sample.write("PMC/bench.off.pmc.stack", stacks);
    sample.write("PMC/bench.off.pmc.log", log);
    sample.found()
}

#[test]
fn a_profile_that_is_whole_and_of_a_device_at_work_is_no_finding() {
    assert_eq!(found(GRAPH, STACKS, LOG), [""; 0]);
    // pmcstat was stopped before it said anything.
    assert_eq!(found(GRAPH, STACKS, ""), [""; 0]);
}

#[test]
fn a_graph_that_is_cut_is_found_with_the_section_that_is_not_whole() {
    let cut = &GRAPH[..GRAPH.find("16.67").unwrap()];
    assert_eq!(
        found(cut, STACKS, LOG),
        ["L501\npublished PMC/bench.off.pmc.graph:1: 10 samples there, of 12 said"]
    );
}

#[test]
fn a_graph_without_its_last_sections_is_found_by_what_the_profiler_counted() {
    let more = LOG.replace("12", "20");
    assert_eq!(
        found(GRAPH, STACKS, &more),
        ["L501\n\
          published PMC/bench.off.pmc.graph: 12 samples there, of 12 said\n\
          derived PMC/bench.off.pmc.log: 20 samples"]
    );
    // What is nobody's address is counted, but never printed.
    let dubious = more + " #callchain/dubious-frames                8\n";
    assert_eq!(found(GRAPH, STACKS, &dubious), [""; 0]);
}

#[test]
fn a_log_of_another_profile_says_nothing_of_a_graph() {
    let sample = Sample::sound();
    sample.write("PMC/bench.off.pmc.graph", GRAPH);
    sample.write("RAW/bench.off.pmc.log", LOG.replace("12", "20"));
    sample.write("RAW/bench.off.pmc.stack", STACKS.replace("10", "90"));
    assert_eq!(sample.found(), [""; 0]);
}

#[test]
fn a_profile_of_an_idle_device_is_found() {
    let idle = GRAPH
        .replace("ip_input", "acpi_cpu_c1")
        .replace("ether_demux", "sched_idletd");
    let stacks = "sched_idletd;acpi_cpu_c1 10\nsched_idletd 2\n";
    assert_eq!(
        found(&idle, stacks, LOG),
        ["L502\npublished PMC/bench.off.pmc.graph: most samples: acpi_cpu_c1"]
    );
}

#[test]
fn stacks_of_another_graph_are_found() {
    assert_eq!(
        found(GRAPH, "ether_demux;ip_input 100\n", LOG),
        ["L503\n\
          published PMC/bench.off.pmc.stack: 100 samples\n\
          derived PMC/bench.off.pmc.graph: 12 samples"]
    );
    // Folded by another program: other names, the same samples.
    assert_eq!(found(GRAPH, "demux;input 12\n", LOG), [""; 0]);
}

/// A graph of so many counters, each with its section.
fn of_sections(count: usize) -> String {
    GRAPH.repeat(count)
}

fn sentences(sample: &Sample) -> Vec<String> {
    let findings = sample.lint().into_iter();
    let shown = findings.map(|finding| format!("{} {}", finding.rule.code, finding.sentence));
    shown.collect()
}

#[test]
fn a_graph_with_fewer_sections_than_those_beside_it_is_cut() {
    let sample = Sample::sound();
    sample.write("PMC/bench.off.pmc.graph", of_sections(4));
    sample.write("PMC/bench.on.pmc.graph", of_sections(3));
    // Another counter, and another session's.
    sample.write(
        "PMC/bench.x.pmc.graph",
        GRAPH.replace("cycles", "instructions"),
    );
    sample.write("old/PMC/bench.y.pmc.graph", GRAPH);
    assert_eq!(
        sample.found(),
        ["L501\n\
          published PMC/bench.on.pmc.graph: 36 samples there, of 36 said\n\
          derived PMC/bench.off.pmc.graph: 4 sections"]
    );
    assert_eq!(
        sentences(&sample),
        [
            "L501 PMC/bench.on.pmc.graph is cut: it has 3 of the 4 sections of PMC/bench.off.pmc.graph"
        ]
    );
    // What the profiler counted is known better than what others have.
    sample.write("PMC/bench.on.pmc.log", LOG.replace("12", "36"));
    assert_eq!(sample.found(), [""; 0]);
    sample.write("PMC/bench.on.pmc.log", LOG.replace("12", "48"));
    assert_eq!(
        sentences(&sample),
        [
            "L501 PMC/bench.on.pmc.graph is cut: 25.0 % of 48 samples are missing; it has 3 of the 4 sections of \
             PMC/bench.off.pmc.graph"
        ]
    );
}

#[test]
fn what_is_missing_of_a_graph_is_at_least_what_its_own_sections_say() {
    let sample = Sample::sound();
    let whole = of_sections(4);
    let cut = &whole[..whole.rfind("16.67").unwrap() - 4 * 20];
    sample.write("PMC/bench.off.pmc.graph", cut);
    let found = sentences(&sample);
    assert!(found[0].contains("is cut: at least "), "{found:?}");
    let cut = &GRAPH[..GRAPH.find("16.67").unwrap()];
    sample.write("PMC/bench.off.pmc.graph", cut);
    sample.write("PMC/bench.on.pmc.graph", whole);
    assert_eq!(
        sentences(&sample),
        [
            "L501 PMC/bench.off.pmc.graph is cut: at least 16.7 % of 12 samples are missing; it has 1 of the 4 sections \
             of PMC/bench.on.pmc.graph"
        ]
    );
}

#[test]
fn stacks_of_an_idle_device_are_found_without_their_graph() {
    let sample = Sample::sound();
    let stacks = "fork_exit;sched_ule_idletd;cpu_idle 57\nether_demux;ip_input 43\n";
    sample.write("PMC/bench.off.pmc.stack", stacks);
    assert_eq!(
        sample.found(),
        ["L502\npublished PMC/bench.off.pmc.stack: most samples: cpu_idle"]
    );
    sample.write("PMC/bench.off.pmc.stack", stacks.replace("57", "40"));
    assert_eq!(sample.found(), [""; 0]);
}

#[test]
fn a_function_that_is_named_for_idling_and_not_known_is_a_question() {
    let sample = Sample::sound();
    let graph = GRAPH.replace("ip_input", "cpu_idle_newly");
    sample.write("PMC/bench.off.pmc.graph", &graph);
    assert_eq!(
        sentences(&sample),
        [
            "L506 PMC/bench.off.pmc.graph has 83 % of its samples in cpu_idle_newly, which fwdlab does not know: its \
             name is as those of functions in which a device is idle"
        ]
    );
    // Work that has idling in its name, and a function that little time is spent in.
    for work in ["cpu_idle_wakeup", "mp_ring_is_idle"] {
        sample.write(
            "PMC/bench.off.pmc.graph",
            graph.replace("cpu_idle_newly", work),
        );
        assert_eq!(sample.found(), [""; 0], "{work}");
    }
    let little = GRAPH.replace("sched_idletd", "cpu_idle_newly");
    sample.write("PMC/bench.off.pmc.graph", little);
    assert_eq!(sample.found(), [""; 0]);
}
