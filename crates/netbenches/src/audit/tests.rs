use std::fs;
use std::path::Path;

use fwdlab_stats::ministat::{Dataset, Layout, Report};

use super::*;

const UNAME: &str =
    "FreeBSD dut 13.0 FreeBSD 13.0 #0 r1: Mon Jun  3 10:00:00 UTC 2019  root@b:/x  amd64";

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn receiver(rate_pps: u64) -> String {
    let sample = |second| {
        format!(
            "{second:03}.000000 main_thread [1441] {rate_pps} pps ({rate_pps} pkts in 1000000 usec)\n"
        )
    };
    let samples: String = (0..40).map(sample).collect();
    format!("CMD: pkt-gen -f rx -i ix1\n{samples}")
}

/// A dataset, its description and its settings.
fn publish(root: &Path, topic: &str, label: &str, key: &str, setting: &str, rates: &[u64]) {
    let folder = format!("P/N/{topic}/results/{label}");
    let lines: String = rates.iter().map(|rate| format!("{rate}\n")).collect();
    write(root, &format!("{folder}/{key}.pps"), &lines);
    let info = format!("IMAGE=\"\"\nCFG=\"{key}\"\nPKTGEN=\"inet4\"\nUNAME=\"{UNAME}\"");
    write(root, &format!("{folder}/RAW/bench.{key}.info"), &info);
    let settings = format!("P/N/{topic}/configs/{key}/etc/sysctl.conf");
    write(root, &settings, setting);
}

fn published(root: &Path) -> PublishedResults {
    PublishedResults::of(&ArchiveTree::read(root).unwrap())
}

#[test]
fn a_dataset_is_placed_dated_and_has_its_runs() {
    let root = tempfile::tempdir().unwrap();
    publish(root.path(), "t", "l", "x", "a=1\n", &[100, 200]);
    for (run, rate) in [("1", 100), ("2", 200)] {
        let log = format!("P/N/t/results/l/RAW/bench.x.{run}.receiver");
        write(root.path(), &log, &receiver(rate));
    }
    let published = published(root.path());
    let [dataset] = &published.datasets[..] else {
        panic!("{published:?}");
    };
    assert_eq!(dataset.path, "P/N/t/results/l/x.pps");
    assert_eq!(dataset.folder, "P/N/t/results/l");
    assert_eq!(
        (dataset.topic.as_deref(), dataset.year),
        (Some("t"), Some(2019))
    );
    let steady = dataset
        .runs
        .iter()
        .map(|run| run.forwarded.unwrap().mean_pps());
    assert_eq!(steady.collect::<Vec<_>>(), [100.0, 200.0]);
    assert_eq!(dataset.runs[1].archive_pps, Some(200.0));
    assert_eq!(dataset.runs[1].offered_pps, None);
}

#[test]
fn configurations_are_the_same_where_all_that_is_written_down_is() {
    let root = tempfile::tempdir().unwrap();
    let rates = [1, 2, 3];
    for (topic, label, key, setting) in [
        ("a", "l", "x", "net.x=1 # one\n"),
        ("b", "l", "y", "net.x=1\n"),
        ("b", "l", "z", "net.x=2\n"),
        ("c", "patched", "x", "net.x=1\n"),
        // What tells these two apart is not written down.
        ("d", "l", "v", "net.x=1\n"),
        ("d", "l", "w", "net.x=1\n"),
    ] {
        publish(root.path(), topic, label, key, setting, &rates);
    }
    // Without its settings, or without a description, nothing is known to be the same.
    publish(root.path(), "e", "l", "x", "net.x=1\n", &rates);
    fs::remove_dir_all(root.path().join("P/N/e/configs")).unwrap();
    write(root.path(), "P/N/f/results/l/x.pps", "1\n2\n3\n");
    let published = published(root.path());
    let configurations: Vec<_> = published
        .datasets
        .iter()
        .map(|dataset| dataset.configuration)
        .collect();
    let [ax, by, bz, cx, rest @ ..] = &configurations[..] else {
        panic!("{configurations:?}");
    };
    assert!(ax.is_some() && ax == by, "{configurations:?}");
    assert!(bz.is_some() && bz != by, "{configurations:?}");
    assert!(cx.is_some() && cx != ax, "{configurations:?}");
    assert_eq!(rest, [None; 4]);
}

#[test]
fn rows_have_their_datasets_and_what_is_said() {
    let root = tempfile::tempdir().unwrap();
    let values: [&[u64]; 3] = [&[10, 11, 12], &[20, 21, 22], &[10, 11, 13]];
    for (key, rates) in ["x", "y", "z"].iter().zip(values) {
        publish(root.path(), "t", "l", key, "", rates);
    }
    let datasets = ["x", "y", "z"].iter().zip(values).map(|(name, values)| {
        let values = values.iter().map(|&value| value as f64).collect();
        Dataset::new(format!("{name}.pps"), values).unwrap()
    });
    let block = Report::new(datasets.collect(), Layout::default()).unwrap();
    let text = format!("# t\n\n```\n{block}```\n");
    write(root.path(), "P/N/t/results/l/README.md", &text);
    let published = published(root.path());
    let [block] = &published.blocks[..] else {
        panic!("{published:?}");
    };
    assert_eq!(block.path, "P/N/t/results/l/README.md");
    let rows = block.rows.iter();
    let rows: Vec<_> = rows
        .map(|row| {
            let path = row
                .dataset
                .map(|place| published.datasets[place].path.as_str());
            (
                row.label.as_str(),
                path.unwrap_or_default(),
                row.says_difference,
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("x.pps", "P/N/t/results/l/x.pps", None),
            ("y.pps", "P/N/t/results/l/y.pps", Some(true)),
            ("z.pps", "P/N/t/results/l/z.pps", Some(false)),
        ]
    );
}
