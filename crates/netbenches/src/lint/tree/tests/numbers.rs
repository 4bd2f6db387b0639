use fwdlab_model::imported::BlockOutcome;

use crate::audit::PublishedResults;
use crate::lint::tree::sample::{OFF, ON, Sample, receiver};
use crate::{ArchiveTree, Imported, imported_observations};

/// How pmcstat's samples begin.
const SAMPLES: &[u8] = b"\x18\0\x0a\xee";

/// A sound tree whose `off` is published with other values.
fn published_as(off: &[u64]) -> Sample {
    let sample = Sample::sound();
    sample.publish(&[("off", off), ("on", &ON)]);
    sample
}

#[test]
fn values_that_no_log_gives_are_one_finding() {
    let sample = published_as(&[1_001_001, 1_004_001, 1_003_001, 1_005_001, 1_002_001]);
    assert_eq!(
        sample.found(),
        ["L101\n\
          published off.pps:1: 1001001\n\
          derived RAW/bench.off.1.receiver: 1001000"]
    );
}

#[test]
fn a_value_beyond_those_of_the_logs_is_found() {
    let mut values = OFF.to_vec();
    values.push(1_003_500);
    assert_eq!(
        published_as(&values).found(),
        ["L104\npublished off.pps:6: 1003500"]
    );
}

#[test]
fn the_value_of_a_log_that_does_not_read_cannot_be_traced_and_the_others_can() {
    let sample = Sample::sound();
    let untraced = "L104\npublished off.pps:2: 1004000".to_owned();
    sample.write("RAW/bench.off.2.receiver", "no log\n");
    let found = sample.found();
    assert!(found[0].starts_with("L902\npublished RAW/bench.off.2.receiver"));
    assert_eq!(found[1..], *std::slice::from_ref(&untraced));
    sample.remove("RAW/bench.off.2.receiver");
    assert_eq!(sample.found(), [untraced]);
}

#[test]
fn a_log_that_does_not_read_silences_its_own_value_alone() {
    // A wrong value beside it.
    let sample = published_as(&[OFF[0], OFF[1], 1_003_333, OFF[3], OFF[4]]);
    sample.write("RAW/bench.off.2.receiver", "no log\n");
    let found = sample.found();
    assert_eq!(
        found[1..],
        [
            "L104\npublished off.pps:2: 1004000",
            "L103\n\
             published off.pps:3: 1003333\n\
             derived RAW/bench.off.3.receiver: 1003000",
        ]
    );
    // One that was left out: whether it or that of the log is there is not known, and that one is missing is.
    let sample = published_as(&[OFF[0], OFF[1], OFF[3], OFF[4]]);
    sample.remove("RAW/bench.off.2.receiver");
    assert_eq!(
        sample.found(),
        ["L102\n\
          published off.pps: 3 values\n\
          derived RAW/bench.off.3.receiver: 1003000"]
    );
}

#[test]
fn sub_folders_may_have_the_same_names() {
    let sample = Sample::sound();
    for (folder, rates) in [("1rx", &OFF), ("8rx", &ON)] {
        let lines: String = rates.iter().map(|rate| format!("{}\n", rate + 7)).collect();
        sample.write(&format!("{folder}/off.pps"), &lines);
        sample.write(&format!("{folder}/x.pps"), lines);
    }
    // Neither is of the logs of the folder above, and neither table is of one of them alone.
    sample.write(
        "8rx.data",
        "#index median minimum maximum\nx 1103007 1101007 1105007\n",
    );
    let found = sample.found();
    assert!(
        found.iter().all(|found| found.starts_with("L113")),
        "{found:?}"
    );
}

#[test]
fn a_run_that_was_left_out_is_found() {
    let values = [OFF[0], OFF[1], OFF[3], OFF[4]];
    assert_eq!(
        published_as(&values).found(),
        ["L102\n\
          published off.pps: 4 values\n\
          derived RAW/bench.off.3.receiver: 1003000"]
    );
}

#[test]
fn a_run_of_which_the_script_makes_nothing_is_not_left_out() {
    let sample = published_as(&[OFF[0], OFF[1], OFF[3], OFF[4]]);
    // Two seconds: no median of three.
    sample.write("RAW/bench.off.3.receiver", receiver(&[OFF[2]; 2]));
    assert_eq!(sample.found(), [""; 0]);
}

#[test]
fn a_value_that_was_changed_is_found_with_its_line() {
    let mut values = OFF;
    values[2] = 1_033_000;
    assert_eq!(
        published_as(&values).found(),
        ["L103\n\
          published off.pps:3: 1033000\n\
          derived RAW/bench.off.3.receiver: 1003000"]
    );
}

#[test]
fn values_in_another_order_are_found() {
    let mut values = OFF;
    values.sort_unstable();
    assert_eq!(
        published_as(&values).found(),
        ["L105\n\
          published off.pps:2: 1002000\n\
          derived RAW/bench.off.2.receiver: 1004000"]
    );
}

#[test]
fn the_order_of_runs_is_that_of_their_names() {
    let sample = Sample::sound();
    let values: Vec<u64> = (1..=11).map(|run| 1_000_000 + run * 1000).collect();
    sample.measure("off", &values);
    // 1, 10, 11, 2, as `ls` has them.
    let mut published = vec![values[0], values[9], values[10]];
    published.extend(&values[1..9]);
    sample.publish(&[("off", &published), ("on", &ON)]);
    assert_eq!(sample.found(), [""; 0]);
}

#[test]
fn a_log_that_a_profiled_run_has_overwritten_is_told_from_a_changed_value() {
    let sample = Sample::sound();
    sample.write("RAW/bench.off.3.receiver", receiver(&[900_000; 30]));
    let replaced = "published off.pps:3: 1003000\nderived RAW/bench.off.3.receiver: 900000";
    assert_eq!(sample.found(), [format!("L103\n{replaced}")]);
    // What bears its name and is no profile says nothing.
    sample.write("RAW/bench.off.3.pmc.out", "samples");
    assert_eq!(sample.found(), [format!("L103\n{replaced}")]);
    sample.write("RAW/bench.off.3.pmc.out", SAMPLES);
    assert_eq!(sample.found(), [format!("L111\n{replaced}")]);
    // A profiler does not make a device faster.
    sample.write("RAW/bench.off.3.receiver", receiver(&[1_004_500; 30]));
    let replaced = "published off.pps:3: 1003000\nderived RAW/bench.off.3.receiver: 1004500";
    assert_eq!(sample.found(), [format!("L103\n{replaced}")]);
}

#[test]
fn the_same_observations_count_in_a_report_an_audit_a_query_and_lint() {
    let sample = Sample::sound();
    let text = sample.path("README.md");
    let text = std::fs::read_to_string(text).unwrap();
    // Both were measured once more with a profiler, and the logs of the first runs overwritten.
    for (key, pps) in [("off", 400_000), ("on", 990_000)] {
        sample.write(&format!("RAW/bench.{key}.1.receiver"), receiver(&[pps; 30]));
        sample.write(&format!("RAW/bench.{key}.1.pmc.out"), SAMPLES);
    }
    let rates = |rates: &[u64]| -> Vec<f64> { rates.iter().map(|&pps| pps as f64).collect() };
    let counting = [rates(&OFF), rates(&ON)];
    assert_eq!(
        counted(&sample),
        [counting.clone(), counting.clone(), counting]
    );
    let tree = ArchiveTree::read(sample.root()).unwrap();
    let folder = Imported::all(&tree).remove(0);
    let imported = folder.results.text.unwrap();
    assert_eq!(imported.text, text);
    assert_eq!(imported.blocks[0].outcome, BlockOutcome::Same);
    assert_eq!(imported.blocks[0].rows[0].profiled_runs, 1);
    let codes = sample.lint().into_iter().map(|found| found.rule.code);
    assert_eq!(codes.collect::<Vec<_>>(), ["L111", "L111"]);
    // Where the profiled runs themselves were published, they do not count.
    let [mut off, mut on] = [OFF, ON];
    (off[0], on[0]) = (400_000, 990_000);
    sample.publish(&[("off", &off), ("on", &on)]);
    let counting = [rates(&OFF[1..]), rates(&ON[1..])];
    assert_eq!(
        counted(&sample),
        [counting.clone(), counting.clone(), counting]
    );
    // One value of five is 60 % below the others, so that nothing would be decided; ministat said so.
    assert_eq!(sample.found(), [""; 0]);
}

/// The observations of both datasets that a report has, those of an audit, and those of a query.
fn counted(sample: &Sample) -> [[Vec<f64>; 2]; 3] {
    let tree = ArchiveTree::read(sample.root()).unwrap();
    let folder = Imported::all(&tree).remove(0);
    let text = folder.results.text.as_ref().unwrap();
    let audited = PublishedResults::of(&tree).datasets;
    let queried = |index: usize| {
        let counted = imported_observations(&folder.results.variants[index], &folder.runs);
        counted.into_iter().map(|one| one.pps).collect()
    };
    [
        [0, 1].map(|index| text.blocks[0].rows[index].observations_pps.clone()),
        [0, 1].map(|index| audited[index].observations_pps.clone()),
        [0, 1].map(queried),
    ]
}

#[test]
fn a_dataset_without_a_value_is_found() {
    let sample = Sample::sound();
    sample.write("other.pps", "");
    assert_eq!(sample.found(), ["L112\npublished other.pps: no value"]);
    sample.remove("other.pps");
    // Its logs would give values.
    sample.write("on.pps", "");
    sample.text("", &[("off", &OFF)]);
    assert_eq!(
        sample.found(),
        ["L112\npublished on.pps: no value\nderived RAW/bench.on.1.receiver: 1101000"]
    );
}

#[test]
fn a_dataset_without_logs_is_found_where_others_have_theirs() {
    let sample = Sample::sound();
    sample.write("other.pps", "1000\n2000\n");
    assert_eq!(sample.found(), ["L113\npublished other.pps: 2 values"]);
    // Most of the archive was published without any log.
    std::fs::remove_dir_all(sample.path("RAW")).unwrap();
    assert_eq!(sample.found(), [""; 0]);
}

#[test]
fn runs_without_a_dataset_are_no_finding() {
    let sample = Sample::sound();
    sample.measure("other", &OFF.map(|rate| rate - 100_000));
    assert_eq!(sample.found(), [""; 0]);
}

#[test]
fn names_that_were_exchanged_are_found_and_names_that_were_completed_are_not() {
    let sample = Sample::sound();
    sample.publish(&[("off", &ON), ("on", &OFF)]);
    assert_eq!(
        sample.found(),
        [
            "L202\npublished off.pps: off\nderived RAW/bench.on.1.receiver: on",
            "L202\npublished on.pps: on\nderived RAW/bench.off.1.receiver: off",
        ]
    );
    sample.remove("off.pps");
    sample.remove("on.pps");
    sample.publish(&[("r302145.off_default", &OFF), ("r302145.queues", &ON)]);
    assert_eq!(sample.found(), [""; 0]);
}

#[test]
fn ministats_old_median_is_not_an_altered_value() {
    let sample = Sample::sound();
    // Even counts of samples: the two in the middle differ.
    for (run, rate) in OFF.iter().enumerate() {
        let rates: Vec<u64> = (0..30).map(|second| rate + second % 2 * 100).collect();
        sample.write(
            &format!("RAW/bench.off.{}.receiver", run + 1),
            receiver(&rates),
        );
    }
    sample.publish(&[("off", &OFF.map(|rate| rate + 100)), ("on", &ON)]);
    assert_eq!(sample.found(), [""; 0]);
}

#[test]
fn throughputs_are_held_against_the_searches_that_found_them() {
    let log = |mbps: u64, maximum: u64| {
        format!(
            "Benchmark tool using equilibrium throughput method\n\
             - Benchmark mode: Throughput (pps) for Router\n\
             Iteration 1\n  - Offering load = 500 Mb/s\n  - Step = 250 Mb/s\n\
             Estimated Equilibrium Ethernet throughput= {mbps} Mb/s (maximum value seen: {maximum} Mb/s)\n"
        )
    };
    let sample = Sample::sound();
    let searched = [(56, 58), (55, 55), (55, 57)];
    for (run, (mbps, maximum)) in searched.into_iter().enumerate() {
        sample.write(&format!("bench.vpn.{}.sender", run + 1), log(mbps, maximum));
    }
    sample.write("vpn.equilibrium", "56\n55\n55\n");
    sample.write("vpn.equilibrium.max", "58\n55\n57\n");
    let found = |sample: &Sample| -> Vec<String> {
        let found = sample.found().into_iter();
        found
            .filter(|found| found.contains("equilibrium"))
            .collect()
    };
    assert_eq!(found(&sample), [""; 0]);
    sample.write("vpn.equilibrium", "56\n900\n55\n");
    assert_eq!(
        found(&sample),
        ["L103\npublished vpn.equilibrium:2: 900\nderived bench.vpn.2.sender:6: 55 Mb/s"]
    );
    sample.write("vpn.equilibrium.max", "1\n2\n3\n");
    let none = "L101\npublished vpn.equilibrium.max: 1 Mb/s\nderived bench.vpn.1.sender:6: 58 Mb/s";
    assert_eq!(found(&sample)[1], none);
    // A search that found nothing leaves open what its value should be.
    sample.write(
        "bench.vpn.3.sender",
        "Benchmark tool using equilibrium throughput method\nIteration 1\n",
    );
    assert_eq!(found(&sample), [""; 0]);
}

#[test]
fn a_table_may_have_the_upper_median_of_an_even_number() {
    let sample = Sample::sound();
    sample.publish(&[("off", &OFF[..4]), ("on", &ON)]);
    let table = |sample: &Sample, median: u64| {
        let rows = format!("#index median minimum maximum\noff {median} 1001000 1005000\n");
        sample.write("gnuplot.data", rows);
        let found = sample.found().into_iter();
        found.filter(|found| found.starts_with("L114")).count()
    };
    // Of 1001, 1003, 1004 and 1005.
    assert_eq!(table(&sample, 1_003_500), 0);
    assert_eq!(table(&sample, 1_004_000), 0);
    assert_eq!(table(&sample, 1_003_000), 1);
}

#[test]
fn a_table_may_show_another_folder_that_the_text_names() {
    let sample = Sample::sound();
    let old = OFF.map(|rate| rate - 200_000);
    let values: String = old.iter().map(|value| format!("{value}\n")).collect();
    sample.write("../fbsd14.r1/off.pps", values);
    sample.write(
        "old.data",
        "#index median minimum maximum\noff 803000 801000 805000\n",
    );
    let altered = "L114\npublished old.data:2: 803000 801000 805000\nderived off.pps: 1003000 1001000 1005000";
    assert_eq!(sample.found(), [altered]);
    for names in ["[old](../fbsd14.r1/)", "old.data is that of fbsd14.r1"] {
        sample.text(names, &[("off", &OFF), ("on", &ON)]);
        assert_eq!(sample.found(), [""; 0], "{names}");
    }
}

#[test]
fn comments_in_a_dataset_are_no_observations() {
    let sample = Sample::sound();
    sample.edit("off.pps", |text| {
        format!("# five runs\n{}", text.replacen('\n', " # first\n", 1))
    });
    assert_eq!(sample.found(), [""; 0]);
}

#[test]
fn a_dataset_that_holds_what_the_logs_of_another_give_is_exchanged() {
    let sample = Sample::sound();
    let values = |rates: [u64; 5]| rates.map(|rate| format!("{rate}\n")).concat();
    let [slow, quick] = [OFF, ON].map(|rates| rates.map(|rate| rate + 50));
    sample.measure("bridge", &slow);
    sample.measure("routed", &quick);
    sample.write("bridge.pps", values(slow));
    sample.write("routed.pps", values(quick));
    assert_eq!(sample.found(), [""; 0]);
    sample.write("bridge.pps", values(quick));
    sample.write("routed.pps", values(slow));
    let findings = sample.lint();
    let sentences: Vec<&str> = findings
        .iter()
        .map(|finding| finding.sentence.as_str())
        .collect();
    assert_eq!(
        sentences,
        [
            "bridge.pps holds what the logs of routed give, and not what its own do",
            "routed.pps holds what the logs of bridge give, and not what its own do",
        ]
    );
    // Under a name without logs it was renamed.
    for run in 1..=5 {
        sample.remove(&format!("RAW/bench.bridge.{run}.receiver"));
        sample.remove(&format!("RAW/bench.bridge.{run}.sender"));
    }
    sample.remove("routed.pps");
    assert_eq!(sample.found(), [""; 0]);
}
