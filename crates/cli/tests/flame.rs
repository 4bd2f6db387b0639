//! What `fwdlab flame` makes of profiles that others took.
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

/// Samples of `event` in `function` as perf script prints them.
fn samples(event: &str, function: &str, count: usize) -> String {
    let sample = format!(
        "nc 7 [001] 12.5: 1000 {event}: \n\tffffffff81 {function}+0x40 ([kernel.kallsyms])\n\n"
    );
    sample.repeat(count)
}

#[test]
fn one_event_is_taken_and_the_others_are_said_with_their_counts() {
    let scratch = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(scratch.path().join(name), text).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = fwdlab(&[&["flame"], arguments].concat());
        command.current_dir(scratch.path()).output().unwrap()
    };
    let several = [
        samples("cpu-clock", "work", 43),
        samples("page-faults", "touch", 10),
        samples("context-switches", "schedule", 58),
    ];
    write("several", &several.concat());
    write("faults", &samples("page-faults", "touch", 20));
    write("precise", &samples("cpu-clock:ppp", "work", 40));
    write("user", &samples("cpu-clock:u", "work", 40));
    write("stacks", "nc;work 40\n");
    write("graph", GRAPH);
    write(
        "graphs",
        &format!(
            "{GRAPH}@ llc-misses [5 samples]\n\n100.0%  [5]        touch @ /boot/kernel/kernel\n\n"
        ),
    );

    let told = "several: samples of cpu-clock alone; left out: context-switches (58), page-faults (10); --event chooses \
                another\n";
    for options in [&[][..], &["--whole"]] {
        let output = run(&[&["fold", "several"], options].concat());
        assert_eq!(printed(&output), (Some(0), "nc;work 43\n", told));
    }
    let output = run(&["fold", "several", "--event", "page-faults"]);
    assert_eq!(
        (printed(&output).0, printed(&output).1),
        (Some(0), "nc;touch 10\n")
    );
    assert!(
        printed(&output).2.contains(
            "samples of page-faults alone; left out: context-switches (58), cpu-clock (43)"
        )
    );
    let output = run(&["fold", "graphs"]);
    let folded = "ether_demux;ip_input 9\niflib_rxeof;ixgbe_rxd 8\n";
    let told =
        "graphs: samples of cpu_clk alone; left out: llc-misses (5); --event chooses another\n";
    assert_eq!(printed(&output), (Some(0), folded, told));
    let output = run(&["fold", "graphs", "--event", "llc-misses"]);
    assert_eq!(printed(&output).1, "touch 5\n");

    // The costs of a packet are shared out among the samples of one event, which the table names.
    let output = run(&["diff", "several", "precise", "--ns-per-packet", "400,320"]);
    let (code, table, _) = printed(&output);
    assert_eq!(code, Some(0));
    assert!(
        table.starts_with(
            "before: several, 43 samples of cpu-clock\nafter: precise, 40 samples of cpu-clock:ppp\n"
        ),
        "{table}"
    );
    let output = run(&[
        "diff",
        "several",
        "faults",
        "--event",
        "page-faults",
        "--json",
    ]);
    let data: serde_json::Value = serde_json::from_str(printed(&output).1).unwrap();
    assert_eq!(data["baseline"]["samples"], 10);
    assert_eq!(data["baseline"]["event"], "page-faults");
    assert_eq!(data["baseline"]["left_out"]["context-switches"], 58);
    assert_eq!(data["variant"]["left_out"], serde_json::json!({}));
    // Stacks without an event may be of any.
    assert_eq!(printed(&run(&["diff", "several", "stacks"])).0, Some(0));
    let output = run(&["svg", "several", "precise", "-o", "x.svg"]);
    assert_eq!(printed(&output).0, Some(0));
    let picture = fs::read_to_string(scratch.path().join("x.svg")).unwrap();
    assert!(picture.contains(">83 samples</text>"));
    run(&["svg", "several", "-o", "x.svg"]);
    let picture = fs::read_to_string(scratch.path().join("x.svg")).unwrap();
    assert!(picture.contains(">43 samples of cpu-clock</text>"));

    for (arguments, expected) in [
        (
            &["diff", "several", "faults"][..],
            "faults: samples of page-faults, but those of several are of cpu-clock; give profiles of one event, or choose \
             one that all have by --event",
        ),
        (
            &["diff", "several", "user"],
            "user: samples of cpu-clock:u, but those of several are of cpu-clock;",
        ),
        (
            &["diff", "several", "graph"],
            "graph: samples of cpu_clk, but",
        ),
        (
            &["fold", "several", "stacks", "faults"],
            "faults: samples of page-faults, but those of several are",
        ),
        (
            &["svg", "several", "faults", "-o", "y.svg"],
            "faults: samples of page-faults, but",
        ),
        (
            &["pprof", "several", "faults", "-o", "y.pb.gz"],
            "faults: samples of page-faults, but",
        ),
        (
            &["diff", "several", "faults", "--event", "cpu-clock"],
            "faults: no samples of \"cpu-clock\"; it has those of page-faults (20)",
        ),
        (
            &["fold", "graphs", "--event", "cycles"],
            "graphs: no samples of \"cycles\"; it has those of cpu_clk (20), llc-misses (5)",
        ),
        (
            &["fold", "stacks", "--event", "cycles"],
            "stacks: its form names no events, so none is \"cycles\"; leave --event out",
        ),
    ] {
        let output = run(arguments);
        let (code, text, told) = printed(&output);
        assert_eq!((code, text), (Some(2), ""), "{told}");
        assert!(told.contains(expected), "{told}");
    }
    assert!(!scratch.path().join("y.svg").exists());
}

#[test]
fn a_mark_of_byte_order_is_no_part_of_a_profile_and_a_graph_needs_no_last_empty_line() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("x");
    let graph = GRAPH.strip_suffix('\n').unwrap();
    let dtrace = "\n              kernel`ip_input+0x12c\n                5\n";
    for (text, expected) in [
        (samples("cycles", "work", 2).as_str(), "nc;work 2\n"),
        (graph, "ether_demux;ip_input 9\niflib_rxeof;ixgbe_rxd 8\n"),
        (dtrace, "kernel`ip_input 5\n"),
        ("b;a 1\n", "b;a 1\n"),
    ] {
        for text in [text.to_owned(), format!("\u{feff}{text}")] {
            fs::write(&path, text).unwrap();
            let output = fold(&[path.to_str().unwrap()]).output().unwrap();
            assert_eq!(printed(&output), (Some(0), expected, ""));
        }
    }
    // Whether a name is whole is not known where its line does not end.
    fs::write(&path, GRAPH.trim_end()).unwrap();
    let output = fold(&[path.to_str().unwrap()]).output().unwrap();
    let (code, _, told) = printed(&output);
    assert_eq!(code, Some(1));
    assert!(
        told.contains("truncated: its last line has no end, so a name may be cut"),
        "{told}"
    );
}

#[test]
fn forms_that_are_not_read_are_named_with_what_makes_one_that_is() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("x");
    let utf16: Vec<u8> = "\u{feff}b;a 1\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    // What compression gives looks like any form if it is long enough.
    let noise = [&b"\x1f\x8b"[..], &b"\n k`a\n".repeat(100)].concat();
    for (text, expected) in [
        (&utf16[..], "it is text in UTF-16; give it in UTF-8: iconv"),
        (b"PERFILE2\x68\0\0\0", "it is a recording of perf record; give what perf script -i FILE prints"),
        (&noise, "it is compressed by gzip; give what zcat FILE prints"),
        (b"{\"frames\": []}\n", "it is JSON"),
        (b"Attaching 1 probe...\n\n\n@[\n    ip_rcv+1\n]: 5\n", "it is a map of bpftrace's"),
        (b"\xef\xbb\xbf@[\n    ip_rcv+1\n]: 5\n", "it is a map of bpftrace's"),
        (
            b"Sampling at 49 Hertz of all threads by kernel stack... Hit Ctrl-C to end.\n    b'ip_rcv'\n    -  nc (7)\n        5\n",
            "it is what a tool of bcc printed",
        ),
        (b"# Samples: 1  of event 'cycles'\n#\n   100.00%  nc  [k] ip_rcv\n", "it is what perf report printed"),
        (
            b"nc 12.5: 1000 cycles: \n\tffffffff81 ip_rcv+0x1 ([k])\n\n",
            "it is what perf script -F printed, without a field that is needed",
        ),
        (
            b"      ls 13779 53232.453277: page-faults:     56494f4715c0 __progname (/usr/bin/ls)\n",
            "x: line 1: expected the function right behind the event, without fields such as addr",
        ),
        (b"a;b;c 10 12\na;b 0 3\n", "each of its lines ends in two counts, as difffolded.pl prints them"),
        (b"nc 7 12.5: 1000 cycles: \nnc 7 12.6: 1000 cycles: \n", "no sample of \"cycles\" has a function; record"),
        (b"\xef\xbb\xbf\n", "it is empty"),
    ] {
        fs::write(&path, text).unwrap();
        let output = fold(&[path.to_str().unwrap()]).output().unwrap();
        let (code, stacks, told) = printed(&output);
        assert_eq!((code, stacks), (Some(2), ""), "{told}");
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn profiles_are_drawn_as_one_picture_or_not_at_all() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("x.graph"), GRAPH).unwrap();
    fs::write(path("y.stack"), "ether_demux;ip_input 3\n").unwrap();
    fs::write(path("empty.stack"), "a 0\n").unwrap();
    let svg = |arguments: &[&str]| {
        let mut command = fwdlab(&[&["flame", "svg"], arguments].concat());
        command.current_dir(scratch.path()).output().unwrap()
    };
    // A name without a folder is one of this folder.
    let output = svg(&["x.graph", "y.stack", "-o", "x.svg", "--title", "Two & more"]);
    assert_eq!(printed(&output), (Some(0), "", ""));
    let picture = fs::read_to_string(path("x.svg")).unwrap();
    for part in [
        "<title>ether_demux (12 samples, 52.2 %)</title>",
        ">Two &amp; more</text>",
        ">23 samples</text>",
    ] {
        assert!(picture.contains(part), "{part}: {picture}");
    }
    let output = svg(&["--objects", "x.graph", "-o", "x.svg"]);
    assert_eq!(printed(&output), (Some(0), "", ""));
    let picture = fs::read_to_string(path("x.svg")).unwrap();
    assert!(picture.contains("<title>if_ix.ko`ixgbe_rxd (8 samples, 40.0 %)</title>"));
    assert!(picture.contains(">x.graph</text>"));
    for (arguments, expected) in [
        (
            &["empty.stack", "-o", "x.svg"][..],
            "empty.stack: no samples to draw",
        ),
        (
            &["x.graph", "-o", "nowhere/x.svg"],
            "nowhere/x.svg: cannot write",
        ),
        (
            &["x.graph", "-o", "."],
            ".: cannot write the file (Is a directory",
        ),
        (&["x.graph"], "--output <FILE>"),
    ] {
        let output = svg(arguments);
        let (code, _, told) = printed(&output);
        assert_eq!(code, Some(2), "{told}");
        assert!(told.contains(expected), "{told}");
    }
    // What was there stays as it was, and nothing unfinished beside it.
    assert_eq!(fs::read_to_string(path("x.svg")).unwrap(), picture);
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 4);
}

#[test]
fn profiles_are_compared_in_words_as_data_and_as_a_picture() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = scratch.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    path("off", "rx;lookup 3000\nrx;copy 1000\nrx 3\n");
    path("on", "rx;lookup 3000\nrx;inline 200\n");
    path("idle", "fork_exit;sched_idletd 900\nrx 100\n");
    path("cut", &GRAPH[..GRAPH.find("40.00%").unwrap() + 20]);
    let diff = |arguments: &[&str]| {
        let mut command = fwdlab(&[&["flame", "diff"], arguments].concat());
        command.current_dir(scratch.path()).output().unwrap()
    };
    let output = diff(&["off", "on", "--ns-per-packet", "400,320", "-o", "x.svg"]);
    let (code, table, told) = printed(&output);
    assert_eq!(code, Some(0), "{told}");
    insta::assert_snapshot!(table, @r"
    before: off, 4003 samples
    after: on, 3200 samples
    costs in ns/packet, 400.0 -> 320.0

    frame   before  after  difference             with callees
    copy      99.9    0.0  -99.9 [-106.9, -93.2]  -99.9 [-106.9, -93.2]
    inline     0.0   20.0  +20.0 [+17.1, +23.3]   +20.0 [+17.1, +23.3]
    rx         0.3    0.0  -                      -80.0 [-80.6, -79.4]

    no difference shown: 1 frame; of too few samples to judge: 0 frames
    ");
    assert!(told.contains("they say nothing of how profiles differ from run to run"));
    let picture = fs::read_to_string(scratch.path().join("x.svg")).unwrap();
    assert!(
        picture
            .contains("<title>- copy (itself vanished: 99.9 -&gt; 0.0 ns/packet, -99.9, between")
    );
    assert!(
        picture.contains("<title>+ inline (itself new: 0.0 -&gt; 20.0 ns/packet, +20.0, between")
    );

    let output = diff(&["off", "on", "--json"]);
    let (code, text, told) = printed(&output);
    assert_eq!((code, told), (Some(0), ""));
    let data: serde_json::Value = serde_json::from_str(text).unwrap();
    assert_eq!(data["schema"], 1);
    assert_eq!(data["unit"], "percent_of_samples");
    assert_eq!(data["frames"].as_array().unwrap().len(), 4);
    assert_eq!(data["frames"][0]["frame"], "copy");
    assert_eq!(data["frames"][0]["itself"]["is_significant"], true);

    let (same, idle, cut) = (
        diff(&["off", "off"]),
        diff(&["off", "idle"]),
        diff(&["off", "cut"]),
    );
    assert!(
        printed(&same)
            .1
            .contains("No frame is shown to differ.\nno difference shown: 3 frames")
    );
    assert!(
        printed(&idle)
            .2
            .contains("idle: its CPUs were idle in 90 % of the samples")
    );
    path("chains", "nc;rx;lookup 3000\nnc;rx;copy 1000\n");
    for (one, other) in [("off", "chains"), ("chains", "off")] {
        let mixed = diff(&[one, other]);
        assert!(
            printed(&mixed)
                .2
                .contains("off: no stack in it has callers")
        );
    }
    assert!(!printed(&same).2.contains("callers"));
    assert_eq!(printed(&cut).0, Some(1));
    assert!(
        printed(&cut)
            .2
            .contains("cut: truncated: 40.0 % of its samples are missing")
    );
    for (arguments, expected) in [
        (&["-", "-"][..], "standard input holds one profile"),
        (&["off", "nowhere"], "nowhere: No such file"),
        (
            &["off", "on", "--ns-per-packet", "400"],
            "expected two positive numbers",
        ),
        (
            &["off", "on", "--ns-per-packet", "400,-1"],
            "expected two positive numbers",
        ),
    ] {
        let output = diff(arguments);
        let (code, text, told) = printed(&output);
        assert_eq!((code, text), (Some(2), ""));
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn what_dtrace_prints_is_folded() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("x.dtrace");
    let text = "dtrace: description 'profile-997 ' matched 1 probe\n\
        CPU     ID                    FUNCTION:NAME\n  3  81043                        :tick-10s \n\n\n\
        \x20             kernel`ip_input+0x12c\n              if_ix.ko`ixgbe_rxd+0x31\n                5\n";
    fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    let objects = "if_ix.ko`ixgbe_rxd;kernel`ip_input 5\n";
    for (options, expected) in [
        (&[][..], objects),
        (&["--objects"], objects),
        (&["--whole"], "ixgbe_rxd;ip_input 5\n"),
    ] {
        let output = fold(&[&[path], options].concat()).output().unwrap();
        assert_eq!(printed(&output), (Some(0), expected, ""));
    }
    let dropped = scratch.path().join("dropped.dtrace");
    fs::write(
        &dropped,
        format!("{text}dtrace: 2 aggregation drops on CPU 0\n"),
    )
    .unwrap();
    let output = fold(&[dropped.to_str().unwrap()]).output().unwrap();
    let (code, stacks, told) = printed(&output);
    assert_eq!((code, stacks), (Some(1), objects));
    assert!(told.contains("2 of 7 samples were lost"), "{told}");
}

fn pprof(arguments: &[&str]) -> Command {
    fwdlab(&[&["flame", "pprof"], arguments].concat())
}

#[test]
fn pprof_reads_what_is_written_for_it() {
    testkit::require_tool!("go");
    let scratch = tempfile::tempdir().unwrap();
    let graph = scratch.path().join("x.graph");
    fs::write(&graph, GRAPH).unwrap();
    let graph = graph.to_str().unwrap();
    let written = scratch.path().join("x.pb.gz");
    // A file of an earlier time is replaced.
    fs::write(&written, "old").unwrap();
    let arguments = [graph, "--objects", "-o", written.to_str().unwrap()];
    let output = pprof(&arguments).output().unwrap();
    assert_eq!(printed(&output), (Some(0), "", ""));
    let of_pprof = |options: &[&str]| {
        let mut command = Command::new("go");
        command.args(["tool", "pprof"]).args(options).arg(&written);
        let output = testkit::succeed(&mut command);
        let text = String::from_utf8(output.stdout).unwrap();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        text.lines().map(words).collect::<Vec<_>>().join("\n")
    };
    let top = of_pprof(&["-top"]);
    for line in [
        "Type: samples",
        "Showing nodes accounting for 20, 100% of 20 total",
        "12 60.00% 60.00% 12 60.00% ip_input",
        "8 40.00% 100% 8 40.00% ixgbe_rxd",
        "0 0% 100% 9 45.00% ether_demux",
    ] {
        assert!(top.contains(line), "{top}");
    }
    let raw = of_pprof(&["-raw"]);
    for object in ["kernel", "if_ix.ko"] {
        assert!(raw.contains(object), "{raw}");
    }
}

#[test]
fn what_cannot_be_read_or_written_leaves_no_file_for_pprof() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("prose"), "no profile\n").unwrap();
    fs::write(path("x.graph"), GRAPH).unwrap();
    for (input, output, expected) in [
        ("prose", "x.pb.gz", "prose: line 1: expected"),
        ("x.graph", "none/x.pb.gz", "--output: "),
    ] {
        let output = pprof(&[&path(input), "-o", &path(output)])
            .output()
            .unwrap();
        let (code, text, told) = printed(&output);
        assert_eq!((code, text), (Some(2), ""));
        assert!(told.contains(expected), "{told}");
    }
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 2);
    let output = pprof(&[&path("x.graph"), "-o", "/dev/stdout"])
        .output()
        .unwrap();
    assert!(output.stdout.starts_with(b"\x1f\x8b"));
}

/// perf's own samples of this machine, of several events, where there is a perf.
#[test]
fn no_sample_of_a_real_recording_is_lost() {
    testkit::require_tool!("perf");
    let scratch = tempfile::tempdir().unwrap();
    let recording = scratch.path().join("perf.data");
    let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done; ls / > /dev/null; sleep 0.01";
    // With callers and without: perf prints another form then.
    for options in [&["-g"][..], &[]] {
        let mut record = Command::new("perf");
        record
            .args(["record", "-q", "-F", "999", "-e"])
            .arg("cpu-clock,page-faults,context-switches")
            .args(options)
            .arg("-o")
            .arg(&recording)
            .args(["--", "sh", "-c", busy]);
        testkit::succeed(&mut record);
        let script = |options: &[&str]| {
            let mut command = Command::new("perf");
            command.args(["script", "-i"]).arg(&recording).args(options);
            testkit::succeed(&mut command).stdout
        };
        let plain = script(&[]);
        let text = scratch.path().join("perf.txt");
        for event in ["cpu-clock", "page-faults", "context-switches"] {
            let part = format!(" {event}: ");
            let lines = String::from_utf8_lossy(&plain);
            let samples = lines.lines().filter(|line| line.contains(&part)).count();
            // Other records among them are no samples.
            for shown in [
                &plain,
                &script(&[
                    "--show-mmap-events",
                    "--show-task-events",
                    "--show-lost-events",
                ]),
            ] {
                fs::write(&text, shown).unwrap();
                let output = fold(&[text.to_str().unwrap(), "--event", event])
                    .output()
                    .unwrap();
                let (code, stacks, told) = printed(&output);
                assert_eq!(code, Some(0), "{told}");
                assert_eq!(told.matches("left out: ").count(), 1, "{told}");
                let counts = stacks.lines().map(|line| line.rsplit_once(' ').unwrap().1);
                let counted: usize = counts.map(|count| count.parse::<usize>().unwrap()).sum();
                assert!(
                    samples > 0 && counted == samples,
                    "{event}: {counted} of {samples}"
                );
            }
        }
    }
    let output = fold(&[recording.to_str().unwrap()]).output().unwrap();
    assert!(
        printed(&output)
            .2
            .contains("it is a recording of perf record")
    );
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

#[test]
fn no_output_takes_the_place_of_an_input() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    let (one, other, link) = (path("one"), path("other"), path("link"));
    fs::write(&one, "b;a 1\n").unwrap();
    fs::write(&other, "b;a 2\n").unwrap();
    std::os::unix::fs::symlink(&other, &link).unwrap();
    for arguments in [
        &["svg", &one, &other, "--output", &one][..],
        &["diff", &one, &other, "--output", &other],
        &["pprof", &one, "--output", &one],
        &["svg", &one, &link, "--output", &other],
    ] {
        let output = fwdlab(&[&["flame"], arguments].concat()).output().unwrap();
        let said = format!(
            "error: --output: {} is one of the inputs; name another file\n",
            arguments.last().unwrap()
        );
        assert_eq!(printed(&output), (Some(2), "", said.as_str()));
    }
    assert_eq!(fs::read_to_string(&one).unwrap(), "b;a 1\n");
    assert_eq!(fs::read_to_string(&other).unwrap(), "b;a 2\n");
}
