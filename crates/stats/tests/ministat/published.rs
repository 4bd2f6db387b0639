//! Every block in the part of the archive at hand, made again from the datasets beside it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fwdlab_stats::ministat::Dialect::{FreeBsd10, FreeBsd11, FreeBsd12, FreeBsd13};
use fwdlab_stats::ministat::{
    Dataset, Dialect, Layout, PublishedBlock, PublishedRow, Report, general, parse_points,
    published_blocks,
};

/// Blocks that no dialect gives byte for byte, though it gives all their numbers.
const PASTED_WRONGLY: &[&str] = &[
    // A label is pasted right behind the last line.
    "Xeon_E5-2697Av4_16Cores/Chelsio_T580/firewalls/results/fbsd-c255761-mlxperf/README.md:36",
];

#[test]
fn blocks_come_out_byte_for_byte_in_the_dialects_they_agree_with() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let mut paths = Vec::new();
    collect_pages(&archive, &mut paths);
    let mut without_datasets = 0;
    let mut blocks_by_dialects: BTreeMap<Vec<Dialect>, usize> = BTreeMap::new();
    for path in paths {
        let blocks = published_blocks(&fs::read_to_string(&path).unwrap());
        if blocks.is_empty() {
            continue;
        }
        let datasets = datasets(path.parent().unwrap());
        for block in blocks {
            let page = path.strip_prefix(&archive).unwrap().display();
            let name = format!("{page}:{}", block.line);
            let Some(observations) = observations(&block, &datasets) else {
                without_datasets += 1;
                continue;
            };
            let dialects = block.dialects(&observations);
            assert!(!dialects.is_empty(), "{name} agrees with no dialect");
            let exact: Vec<Dialect> = Dialect::ALL
                .into_iter()
                .filter(|dialect| printed(&block, &observations, *dialect) == block.text)
                .collect();
            if PASTED_WRONGLY.contains(&name.as_str()) {
                assert_eq!(exact, [], "{name}");
            } else {
                assert_eq!(exact, dialects, "{name}");
            }
            *blocks_by_dialects.entry(dialects).or_default() += 1;
        }
    }
    // Their other datasets lie in other directories.
    assert_eq!(without_datasets, 40);
    let expected = BTreeMap::from([
        (vec![FreeBsd10, FreeBsd11], 15),
        (vec![FreeBsd11], 13),
        (vec![FreeBsd11, FreeBsd12, FreeBsd13], 14),
        (vec![FreeBsd12], 1),
        (vec![FreeBsd12, FreeBsd13], 185),
        (vec![FreeBsd13], 12),
        // Odd counts, and no difference proven: nothing that differs is printed.
        (Dialect::ALL.to_vec(), 97),
    ]);
    assert_eq!(blocks_by_dialects, expected);
}

fn collect_pages(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            collect_pages(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}

/// The datasets of a results directory by name. Those of 2015 have no extension of their own, so
/// it is whatever holds a number in every line.
fn datasets(folder: &Path) -> BTreeMap<String, Vec<f64>> {
    let mut datasets = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let others = [".md", ".svg", ".png", ".data", ".plt"];
        if name.starts_with("bench.")
            || others.iter().any(|extension| name.ends_with(extension))
            || !entry.file_type().unwrap().is_file()
        {
            continue;
        }
        if let Ok(values) = parse_points(&fs::read(entry.path()).unwrap(), 1, b" \t")
            && values.len() >= 3
        {
            datasets.insert(name, values);
        }
    }
    datasets
}

/// The observations behind every row of a block, if all their datasets are here.
fn observations(
    block: &PublishedBlock,
    datasets: &BTreeMap<String, Vec<f64>>,
) -> Option<Vec<Vec<f64>>> {
    // Every dialect prints count, minimum, maximum and average alike.
    let identity = |row: &PublishedRow| {
        let [minimum, maximum, _, average, _] = row.figures.clone();
        (row.count, minimum, maximum, average)
    };
    let behind = |row: &PublishedRow| {
        let alike = |(_, values): &(&String, &Vec<f64>)| {
            identity(&summary(values, FreeBsd13)) == identity(row)
        };
        let alike: Vec<(&String, &Vec<f64>)> = datasets.iter().filter(alike).collect();
        let named = |(name, _): &&(&String, &Vec<f64>)| row.label.as_ref() == Some(name);
        let chosen = alike.iter().find(named).or(alike.first());
        chosen.map(|(_, values)| (*values).clone())
    };
    block.rows.iter().map(behind).collect()
}

/// The row of a dataset.
fn summary(values: &[f64], dialect: Dialect) -> PublishedRow {
    let dataset = Dataset::new("dataset", values.to_vec()).unwrap();
    let layout = Layout {
        plot: false,
        dialect,
        ..Layout::default()
    };
    let report = Report::new(vec![dataset], layout).unwrap();
    published_blocks(&report.to_string())[0].rows[0].clone()
}

/// The text of a block's options and labels.
fn printed(block: &PublishedBlock, observations: &[Vec<f64>], dialect: Dialect) -> String {
    let dataset = |(row, values): (&PublishedRow, &Vec<f64>)| {
        Dataset::new(row.label.as_deref().unwrap_or_default(), values.clone()).unwrap()
    };
    let datasets = block.rows.iter().zip(observations).map(dataset).collect();
    let layout = Layout {
        dialect,
        ..block.layout
    };
    Report::new(datasets, layout).unwrap().to_string()
}

/// Results of 2015, whose datasets are the medians that the `ministat` of that time printed of the
/// logs beside them.
const WITH_LOGS: [&str; 3] = [
    "Atom_C2558_4Cores/Intel_i350/forwarding-fastforwarding/results/fbsd10.2",
    "Atom_C2558_4Cores/Intel_i350/hw.igb.num_queues/results/fbsd10.2",
    "Xeon_E5-2650_8Cores/Chelsio_T540-CR/fastforwarding-pf-ipfw.4nxq10g/results/fbsd10.2",
];

#[test]
fn the_oldest_datasets_are_medians_in_the_oldest_dialect() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let mut datasets_by_dialects: BTreeMap<Vec<Dialect>, usize> = BTreeMap::new();
    for folder in WITH_LOGS.map(|folder| archive.join(folder)) {
        for (name, published) in datasets(&folder) {
            let published: Vec<String> = published
                .iter()
                .map(|pps| general(*pps, 8).to_string())
                .collect();
            let key = name.strip_prefix("pps.").unwrap_or(&name);
            let logs: Vec<Vec<f64>> = logs(&folder, key);
            if logs.is_empty() {
                continue;
            }
            let agrees = |dialect: &Dialect| {
                let medians = logs
                    .iter()
                    .map(|samples| summary(samples, *dialect).figures[2].clone());
                medians.eq(published.iter().cloned())
            };
            let dialects = Dialect::ALL.into_iter().filter(agrees).collect();
            *datasets_by_dialects.entry(dialects).or_default() += 1;
        }
    }
    let expected = BTreeMap::from([
        (vec![FreeBsd10], 5),
        (vec![FreeBsd11, FreeBsd12, FreeBsd13], 1),
        (Dialect::ALL.to_vec(), 3),
    ]);
    assert_eq!(datasets_by_dialects, expected);
}

/// The samples of every receiver's log, in the order of the logs' names, as the archive's script
/// took them: 15 lines at the beginning and 10 at the end are left out, and samples of zero.
fn logs(folder: &Path, key: &str) -> Vec<Vec<f64>> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| {
            let number = name
                .strip_prefix(&format!("bench.{key}."))
                .and_then(|rest| rest.strip_suffix(".receiver"));
            number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        })
        .collect();
    names.sort();
    let samples = |name: String| {
        let log = fs::read_to_string(folder.join(name)).unwrap();
        let lines: Vec<&str> = log.lines().collect();
        let window = &lines[15..lines.len() - 10];
        let sample = |line: &&str| {
            let mut words = line
                .split_whitespace()
                .skip_while(|word| *word != "main_thread");
            let sample = words.nth(2)?;
            (words.next() == Some("pps") && !sample.starts_with('0'))
                .then(|| sample.parse().unwrap())
        };
        window.iter().filter_map(sample).collect()
    };
    names.into_iter().map(samples).collect()
}
