//! How the CPUs of a FreeBSD DUT are watched and sampled under the load: scripts there that wait for its frames, and
//! read counters twice or have `pmcstat` sample.

use std::collections::BTreeMap;
use std::time::Duration;

use fwdlab_model::{CpuSamples, CpuTimes};
use fwdlab_profile::{CallGraph, Folded, FrameNames, is_forwarding};
use fwdlab_stats::as_f64;

use super::text::interface_counters;
use crate::hosts::cpu_watch::{CpuWatch, Look};
use crate::hosts::detached::{LOAD_AWAY_MAX, Window};
use crate::mechanism::step::owned;
use crate::profiler::{ProfileSlice, leave_out_bystanders, nothing_sampled};

/// Waits for the load at `$1`: `$2` frames that make one, `$3` looks at most. One line, as all that follows it.
const AWAIT_LOAD: &str = "\
counters() { netstat -i -b -n -d -W -I \"$1\"; }; \
received() { counters \"$1\" | awk '\
NR == 1 { for (i = 1; i <= NF; i++) if ($i == \"Ipkts\") right = NF - i } /<Link#/ { print $(NF - right); exit }'; }; \
first=$(received \"$1\") && [ -n \"$first\" ] || { echo \"netstat counts no frames of $1\" >&2; exit 1; }; \
echo ready; left=$3; \
while now=$(received \"$1\") && [ $((now - first)) -lt \"$2\" ]; do \
[ \"$left\" -gt 0 ] || { echo \"no load has come\" >&2; exit 1; }; \
left=$((left - 1)); sleep 0.02 || exit 1; \
done; ";

/// Behind the wait: settle window and length in seconds, and the sending interface.
const LOOK_TWICE: &str = "\
look() { sysctl -n kern.clockrate && sysctl -n kern.cp_times && counters \"$1\" && counters \"$2\"; }; \
sleep \"$4\" && look \"$1\" \"$6\" && echo --- && sleep \"$5\" && look \"$1\" \"$6\"";

/// Behind the wait: settle window and length in seconds, the event, and samples a second of a CPU at its nominal
/// frequency, which `hw.clockrate` says on x86 alone (`sys/x86/x86/identcpu.c`). Where `pmcstat` refuses the event, the
/// script names those that the CPU has. The log lies beside nothing else, and is gone when the script ends. It is only
/// read when `pmcstat` has ended, and a graph only sent when it is written: one a CPU, since the sections of a graph of all do not say whose they are (FreeBSD,
/// `lib/libpmcstat/libpmcstat_logging.c`, `pmcstat_analyze_log`: with `-R`, `-c` leaves out the samples of other CPUs).
const SAMPLE: &str = "\
mhz=$(sysctl -n hw.clockrate 2>/dev/null || sysctl -n dev.cpu.0.freq) && last=$(sysctl -n kern.smp.maxid) || exit 1; \
folder=$(mktemp -d /tmp/fwdlab.XXXXXX) || exit 1; \
trap 'rm -rf \"$folder\"' EXIT; trap 'exit 1' HUP INT TERM PIPE; \
sleep \"$4\" || exit 1; \
pmcstat -n $((mhz * 1000000 / $7)) -S \"$6\" -l \"$5\" -O \"$folder/log\" >&2 || { \
echo \"if that CPU has no such event, pmc_event of [dut] may be one of:\" \
$(pmcstat -L | grep -E 'clk_unhalted|not_halted|cpu_cycles') >&2; exit 1; }; \
cpu=0; while [ \"$cpu\" -le \"$last\" ]; do \
pmcstat -R \"$folder/log\" -c \"$cpu\" -z 32 -G \"$folder/graph\" >/dev/null || exit 1; \
echo \"cpu $cpu\" && cat \"$folder/graph\" || exit 1; cpu=$((cpu + 1)); \
done";

/// How many looks for a load fit into a second, at most.
const LOOKS_PER_SECOND: u64 = 20;

fn command(script: &str, arguments: &[&str], window: Window, load_frames_min: u32) -> Vec<String> {
    let looks = LOAD_AWAY_MAX.as_secs() * LOOKS_PER_SECOND;
    let seconds = |length: Duration| format!("{:.3}", length.as_secs_f64());
    let (interface, rest) = arguments.split_first().expect("an interface is watched");
    let mut words = owned(&["sh", "-c"]);
    words.push(format!("{AWAIT_LOAD}{script}"));
    words.extend(["watch", interface].map(str::to_owned));
    words.extend([load_frames_min.to_string(), looks.to_string()]);
    words.extend([seconds(window.settle), seconds(window.length)]);
    words.extend(owned(rest));
    words
}

/// The command that watches from so many frames on.
pub(super) fn words(
    [interface_in, interface_out]: [&str; 2],
    window: Window,
    load_frames_min: u32,
) -> Vec<String> {
    let arguments = [interface_in, interface_out];
    command(LOOK_TWICE, &arguments, window, load_frames_min)
}

/// What was watched; none where the output is something else.
pub(super) fn watched(text: &str) -> Option<CpuWatch> {
    CpuWatch::read(text, look)
}

/// The command that samples from so many frames on.
pub(super) fn sampling_words(
    interface: &str,
    event: &str,
    frequency_hz: u32,
    window: Window,
    load_frames_min: u32,
) -> Vec<String> {
    let arguments = [interface, event, &frequency_hz.to_string()];
    command(SAMPLE, &arguments, window, load_frames_min)
}

/// What was sampled on the CPUs that forward.
///
/// # Errors
/// Where the output is no call graph, or one that is not whole.
pub(super) fn sampled(
    text: &str,
    frequency_hz: u32,
    length: Duration,
) -> Result<ProfileSlice, String> {
    let graphs = graphs(text).ok_or("it names no CPU whose samples it has")?;
    let mut record = nothing_sampled(frequency_hz);
    let mut of_cpus = Vec::new();
    // Of a CPU that slept all the time, pmcstat prints nothing.
    let sampled = graphs
        .into_iter()
        .filter(|(_, graph)| !graph.trim().is_empty());
    for (cpu, graph) in sampled {
        let graph = CallGraph::parse(graph.as_bytes())
            .map_err(|error| format!("its call graph of CPU {cpu}: {error}"))?;
        if graph.truncation(None).is_some() {
            return Err(format!(
                "its call graph of CPU {cpu} has fewer samples than it says"
            ));
        }
        if let Some(section) = graph.sections().first() {
            section.event.clone_into(&mut record.event);
        }
        of_cpus.push((cpu, graph.fold(FrameNames::Symbols).into_owned()));
    }
    leave_out_bystanders(&mut of_cpus, |(_, stacks)| {
        stacks.samples_through(is_forwarding)
    });
    record.time_s = length.as_secs_f64();
    let mut stacks = Folded::new();
    for (cpu, of_cpu) in of_cpus {
        let samples = of_cpu.samples();
        record.samples_by_cpu.push(CpuSamples { cpu, samples });
        for stack in of_cpu.stacks() {
            stacks.push(stack.frames().map(str::to_owned), stack.samples);
        }
    }
    record.samples = stacks.samples();
    record.idle_samples = stacks.idle_samples();
    Ok(ProfileSlice { record, stacks })
}

/// The call graphs of a text by their CPUs, each behind a line `cpu 3`.
fn graphs(text: &str) -> Option<Vec<(u32, &str)>> {
    let parts = text.strip_prefix("cpu ")?.split("\ncpu ");
    let graphs = parts.map(|part| {
        let (cpu, graph) = part.split_once('\n').unwrap_or((part, ""));
        Some((cpu.parse().ok()?, graph))
    });
    graphs.collect()
}

/// `kern.clockrate`, `kern.cp_times`, and what `netstat` says of the receiving and the sending interface.
fn look(text: &str) -> Option<Look> {
    let (clock, rest) = text.split_once('\n')?;
    let (ticks, rest) = rest.split_once('\n')?;
    // Each table has a heading of its own.
    let second = rest.match_indices("Name ").nth(1)?.0;
    let (of_in, of_out) = rest.split_at(second);
    let per_second: u64 = clock
        .split_once("stathz = ")?
        .1
        .split(|char: char| !char.is_ascii_digit())
        .next()?
        .parse()
        .ok()?;
    let ticks: Vec<u64> = ticks
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    // user, nice, sys, intr, idle
    let (of_cpus, []) = ticks.as_chunks::<5>() else {
        return None;
    };
    let per_second = as_f64(Some(per_second).filter(|&ticks| ticks > 0)?);
    let seconds = |all: &[u64]| all.iter().map(|&ticks| as_f64(ticks)).sum::<f64>() / per_second;
    let times: BTreeMap<u32, CpuTimes> = (0..)
        .zip(of_cpus)
        .map(|(cpu, ticks)| {
            let [user, nice, system, interrupts, _] = *ticks;
            let times = CpuTimes {
                watched_s: seconds(ticks),
                busy_s: seconds(&[user, nice, system, interrupts]),
                interrupts_s: seconds(&[interrupts]),
                stolen_s: 0.0,
            };
            (cpu, times)
        })
        .collect();
    Some(Look {
        // No clock of a shell tells parts of a second.
        at_s: times.get(&0)?.watched_s,
        received_frames: received(of_in)?.checked_add(received(of_out)?)?,
        times,
    })
}

/// Frames that came to a port, those that it had no room for too.
fn received(table: &str) -> Option<u64> {
    let counters = interface_counters(table);
    let missed = ["Ierrs", "Idrop"].map(|name| counters.get(name).copied().unwrap_or(0));
    let all = missed.into_iter();
    let mut all = all.chain([*counters.get("Ipkts")?]);
    all.try_fold(0_u64, u64::checked_add)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::files::tests::is_one_line;
    use super::*;

    const CLOCK: &str = "{ hz = 1000, tick = 1000, profhz = 8128, stathz = 127 }\n";
    const HEADING: &str =
        "Name Mtu Network Address Ipkts Ierrs Idrop Ibytes Opkts Oerrs Obytes Coll Drop\n";

    fn look_of(ticks: &str, received: u64, missed: u64) -> String {
        format!(
            "{CLOCK}{ticks}\n\
             {HEADING}ix0 1500 <Link#1> 00:1b:21:c4:95:7a {received} 0 {missed} 1 0 0 0 0 0\n\
             {HEADING}ix1 1500 <Link#2> 00:1b:21:c4:95:7b 0 0 0 1 800 0 0 0 0\n"
        )
    }

    #[test]
    fn a_busy_cpu_is_distinguished_from_an_idle_one() {
        let first = look_of("10 0 20 30 1000 10 0 20 30 1000", 100, 90);
        let second = look_of("10 0 40 120 1017 10 0 20 30 1127", 1100, 1000);
        let watch = watched(&format!("{first}---\n{second}")).unwrap();
        assert_eq!(watch.received_frames, 1910);
        assert!((watch.time_s - 1.0).abs() < 1e-9);
        let ticks = |cpu: u32| {
            let CpuTimes {
                busy_s,
                interrupts_s,
                ..
            } = watch.cpus[&cpu];
            [busy_s, interrupts_s].map(|seconds| format!("{:.0}", seconds * 127.0))
        };
        assert_eq!(ticks(0), ["110", "90"]);
        assert_eq!(ticks(1), ["0", "0"]);
        assert_eq!(watched(&first), None);
    }

    /// What is sent of five CPUs: the first two and the fourth forward, the third sleeps, the last idles.
    const GRAPHS: &str = "\
cpu 0
@ cpu_clk_unhalted.core_p [700 samples]

100.0%  [700]      ip_tryforward @ /boot/kernel/kernel
 100.0%  [700]       ether_demux

cpu 1
@ cpu_clk_unhalted.core_p [800 samples]

97.50%  [780]      ip_tryforward @ /boot/kernel/kernel
 100.0%  [780]       ether_demux

02.50%  [20]       acpi_cpu_c1 @ /boot/kernel/kernel

cpu 2
cpu 3
@ cpu_clk_unhalted.core_p [900 samples]

100.0%  [900]      ip_tryforward @ /boot/kernel/kernel
 100.0%  [900]       ether_demux

cpu 4
@ cpu_clk_unhalted.core_p [30 samples]

100.0%  [30]       sched_idletd @ /boot/kernel/kernel

";

    // FreeBSD, `usr.sbin/pmcstat/pmcpl_callgraph.c`, `pmcstat_callgraph_print`: sections come in the order of the list
    // that `pmcstat_pmcid_add` adds to at its head, those without samples are left out, and none says its CPU.
    #[test]
    fn samples_are_those_of_the_cpus_that_forward_and_bear_their_numbers() {
        let slice = sampled(GRAPHS, 997, Duration::from_secs(2)).unwrap();
        assert_eq!(slice.record.event, "cpu_clk_unhalted.core_p");
        assert_eq!(
            (slice.record.samples, slice.record.idle_samples),
            (2400, 20)
        );
        let of_cpu = |(cpu, samples)| CpuSamples { cpu, samples };
        assert_eq!(
            slice.record.samples_by_cpu,
            [(0, 700), (1, 800), (3, 900)].map(of_cpu)
        );
        let stacks = slice.stacks.merged().to_string();
        assert!(
            stacks.contains("ether_demux;ip_tryforward 2380"),
            "{stacks}"
        );
    }

    #[test]
    fn cpus_that_slept_have_no_samples_and_a_text_without_cpus_is_refused() {
        let slice = sampled("cpu 0\ncpu 1", 997, Duration::from_secs(2)).unwrap();
        assert_eq!(
            (slice.record.samples, slice.record.samples_by_cpu),
            (0, vec![])
        );
        for text in ["", "@ CYCLES [1 samples]\n", "cpu x\n"] {
            let why = sampled(text, 997, Duration::from_secs(2)).err();
            assert_eq!(why.as_deref(), Some("it names no CPU whose samples it has"));
        }
    }

    #[test]
    fn a_graph_that_is_cut_is_refused() {
        let cut = GRAPHS.replace("[20] ", "[7] ");
        let why = sampled(&cut, 997, Duration::from_secs(2)).unwrap_err();
        assert_eq!(
            why,
            "its call graph of CPU 1 has fewer samples than it says"
        );
    }

    #[test]
    fn the_scripts_are_a_line_of_shell_each() {
        let window = Window {
            settle: Duration::ZERO,
            length: Duration::from_secs(1),
        };
        for command in [
            words(["ix0", "ix1"], window, 50),
            sampling_words("ix0", "unhalted-cycles", 997, window, 50),
        ] {
            assert!(is_one_line(&command), "{command:?}");
            let status = std::process::Command::new("sh")
                .args(["-n", "-c", &command[2]])
                .status();
            assert!(status.unwrap().success(), "{command:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_looks_or_none(text in "([0-9]{0,3} |---\\n|Name |<Link#1> |stathz = |\\n|\\PC){0,60}") {
            let _ = watched(&text);
        }

        #[test]
        fn any_text_is_a_graph_or_an_error(text in "cpu 0\n([0-9]{0,3}|@|%|  |\\[|\\]| samples|cpu |\\n|\\PC){0,60}") {
            let _ = sampled(&text, 997, Duration::from_secs(1));
        }
    }
}
