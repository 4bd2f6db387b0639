//! What `fwdlab flame fold` prints of profiles that others took.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod shared;

use std::fs;
use std::process::{Command, Output};

use shared::fwdlab;

const GRAPH: &str = "@ cpu_clk [20 samples]\n\n\
    60.00%  [12]       ip_input @ /boot/kernel/kernel\n \
    75.00%  [9]         ether_demux\n\n\
    40.00%  [8]        ixgbe_rxd @ /boot/kernel/if_ix.ko\n \
    100.0%  [8]         iflib_rxeof @ /boot/kernel/kernel\n\n";

fn fold(arguments: &[&str]) -> Command {
    fwdlab(&[&["flame", "fold"], arguments].concat())
}

fn printed(output: &Output) -> (Option<i32>, &str, &str) {
    (
        output.status.code(),
        str::from_utf8(&output.stdout).unwrap(),
        str::from_utf8(&output.stderr).unwrap(),
    )
}

#[test]
fn a_graph_is_folded_as_the_scripts_do_or_whole() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("x.graph");
    fs::write(&path, GRAPH).unwrap();
    let path = path.to_str().unwrap();
    for (options, expected) in [
        (&[][..], "ether_demux;ip_input 9\niflib_rxeof;ixgbe_rxd 8\n"),
        (
            &["--whole"],
            "ether_demux;ip_input 9\niflib_rxeof;ixgbe_rxd 8\nip_input 3\n",
        ),
        (
            &["--objects"],
            "kernel`ether_demux;kernel`ip_input 9\nkernel`iflib_rxeof;if_ix.ko`ixgbe_rxd 8\nkernel`ip_input 3\n",
        ),
    ] {
        let output = fold(&[&[path], options].concat()).output().unwrap();
        assert_eq!(printed(&output), (Some(0), expected, ""));
    }
    // What was printed folds to itself, from standard input as well.
    let folded = scratch.path().join("x.stack");
    fs::write(&folded, "b;a 1\nb;a 2\n").unwrap();
    let input = fs::File::open(&folded).unwrap();
    let output = fold(&["--whole", "-", path]).stdin(input).output().unwrap();
    let expected = "b;a 3\nether_demux;ip_input 9\niflib_rxeof;ixgbe_rxd 8\nip_input 3\n";
    assert_eq!(printed(&output), (Some(0), expected, ""));
}

#[test]
fn what_is_truncated_or_no_profile_is_said() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = scratch.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let cut = path("cut.graph", &GRAPH[..GRAPH.find("40.00%").unwrap() + 20]);
    let output = fold(&[&cut]).output().unwrap();
    let (code, stacks, told) = printed(&output);
    assert_eq!(code, Some(1));
    assert!(stacks.contains("ether_demux;ip_input 9"), "{stacks}");
    assert!(
        told.contains("truncated: 40.0 % of its samples are missing"),
        "{told}"
    );
    for (name, text, expected) in [
        ("empty", "", "empty: it is empty; give what perf script"),
        (
            "torn",
            "nc 7 1.0: c: \n\tno hex\n",
            "line 2: expected an address",
        ),
        (
            "prose",
            "no profile\n",
            "line 1: expected \"frame;frame;frame N\"",
        ),
        ("head", "@ x\n", "line 1: expected an event and its samples"),
    ] {
        let output = fold(&[&path(name, text)]).output().unwrap();
        let (code, stacks, told) = printed(&output);
        assert_eq!((code, stacks), (Some(2), ""));
        assert!(told.contains(expected), "{told}");
    }
    let output = fold(&["/nowhere"]).output().unwrap();
    assert_eq!(printed(&output).0, Some(2));
}

#[test]
fn what_perf_script_prints_is_folded() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("perf.txt");
    let sample = "nc 7 [001] 12.5: 1000 cycles: \n\
        \tffffffff81 ip_forward+0x40 ([kernel.kallsyms])\n\
        \tffffffff80 ip_rcv+0x31 ([kernel.kallsyms])\n\n";
    fs::write(&path, sample.repeat(3)).unwrap();
    let path = path.to_str().unwrap();
    let output = fold(&[path]).output().unwrap();
    assert_eq!(printed(&output), (Some(0), "nc;ip_rcv;ip_forward 3\n", ""));
    let lost = scratch.path().join("lost.txt");
    fs::write(
        &lost,
        format!("{sample}nc 7 [001] 13.0: PERF_RECORD_LOST lost 2\n"),
    )
    .unwrap();
    let input = fs::File::open(&lost).unwrap();
    let output = fold(&["--objects", "-"]).stdin(input).output().unwrap();
    let (code, stacks, told) = printed(&output);
    let expected = "nc;[kernel.kallsyms]`ip_rcv;[kernel.kallsyms]`ip_forward 1\n";
    assert_eq!((code, stacks), (Some(1), expected));
    assert!(
        told.contains("standard input: 2 of 3 samples were lost"),
        "{told}"
    );
}

/// perf's own samples of this machine, where there is a perf.
#[test]
fn no_sample_of_a_real_recording_is_lost() {
    testkit::require_tool!("perf");
    let scratch = tempfile::tempdir().unwrap();
    let recording = scratch.path().join("perf.data");
    let status = Command::new("perf")
        .args(["record", "-q", "-g", "-e", "cpu-clock", "-F", "999", "-o"])
        .arg(&recording)
        .args([
            "--",
            "sh",
            "-c",
            "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done",
        ])
        .status()
        .unwrap();
    assert!(status.success());
    let script = Command::new("perf")
        .args(["script", "-i"])
        .arg(&recording)
        .output()
        .unwrap();
    let samples = String::from_utf8_lossy(&script.stdout);
    let samples = samples
        .lines()
        .filter(|line| line.contains("cpu-clock"))
        .count();
    let text = scratch.path().join("perf.txt");
    fs::write(&text, &script.stdout).unwrap();
    let output = fold(&[text.to_str().unwrap()]).output().unwrap();
    let (code, stacks, told) = printed(&output);
    assert_eq!((code, told), (Some(0), ""));
    let counts = stacks.lines().map(|line| line.rsplit_once(' ').unwrap().1);
    let counted: usize = counts.map(|count| count.parse::<usize>().unwrap()).sum();
    assert!(samples > 0 && counted == samples, "{counted} of {samples}");
}

/// Every folded file that was published beside its graph, byte for byte.
#[test]
fn published_stacks_come_out_of_their_graphs() {
    let root = testkit::require_shared!("corpus/netbenches");
    let mut compared = 0;
    for stack in testkit::files_below(&root) {
        if !stack
            .extension()
            .is_some_and(|ending| ending == "stack" || ending == "folded")
        {
            continue;
        }
        let graph = stack.with_extension("graph");
        if !graph.is_file() {
            continue;
        }
        let output = fold(&[graph.to_str().unwrap()]).output().unwrap();
        assert!(
            output.stdout == fs::read(&stack).unwrap(),
            "{}",
            graph.display()
        );
        compared += 1;
    }
    assert!(compared >= 10, "{compared}");
}
