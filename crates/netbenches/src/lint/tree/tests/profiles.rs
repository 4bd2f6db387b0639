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
