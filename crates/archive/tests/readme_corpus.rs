//! The reader of published READMEs against the part of the public archive that lies in the shared
//! data, and against the seeds.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use fwdlab_archive::netbenches::readme::{
    Candidate, DatasetIndex, Printing, PublishedReadme, RowBacking,
};
use fwdlab_stats::ministat::parse_points;

/// Every file below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            files(&entry, found);
        } else {
            found.push(entry);
        }
    }
}

struct Dataset {
    place: String,
    name: String,
    values: Vec<f64>,
}

struct Corpus {
    datasets: Vec<Dataset>,
    /// Path from the root, and bytes.
    readmes: Vec<(String, Vec<u8>)>,
}

/// Those of 2015 have no extension of their own, so a dataset is whatever holds a number in every line.
fn corpus(root: &Path) -> Corpus {
    let mut paths = Vec::new();
    files(root, &mut paths);
    let mut corpus = Corpus {
        datasets: Vec::new(),
        readmes: Vec::new(),
    };
    for path in paths {
        let shown = path.strip_prefix(root).unwrap().to_str().unwrap();
        let (place, name) = shown.rsplit_once('/').unwrap_or(("", shown));
        let others = [".svg", ".png", ".data", ".plt"];
        if name.ends_with(".md") {
            corpus
                .readmes
                .push((shown.to_owned(), fs::read(&path).unwrap()));
        } else if !name.starts_with("bench.") && !others.iter().any(|other| name.ends_with(other)) {
            let bytes = fs::read(&path).unwrap();
            if let Ok(values) = parse_points(&bytes, 1, b" \t")
                && values.len() >= 3
            {
                corpus.datasets.push(Dataset {
                    place: place.to_owned(),
                    name: name.to_owned(),
                    values,
                });
            }
        }
    }
    corpus
}

impl Corpus {
    fn index(&self) -> DatasetIndex<'_> {
        DatasetIndex::new(self.datasets.iter().map(|dataset| Candidate {
            place: &dataset.place,
            name: &dataset.name,
            values: &dataset.values,
        }))
    }
}

fn place_of(readme: &str) -> &str {
    readme.rsplit_once('/').map_or("", |(place, _)| place)
}

/// What was counted, a line each.
fn lines(counts: &BTreeMap<String, usize>) -> String {
    let lines = counts
        .iter()
        .map(|(what, count)| format!("{count} {what}\n"));
    lines.collect()
}

fn count(counts: &mut BTreeMap<String, usize>, what: impl Into<String>) {
    *counts.entry(what.into()).or_default() += 1;
}

#[test]
fn blocks_are_backed_and_printed_again() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let corpus = corpus(&archive);
    let start = Instant::now();
    let index = corpus.index();
    let (mut backed, mut printings) = (BTreeMap::new(), BTreeMap::new());
    let mut exceptions = String::new();
    let mut parts = BTreeMap::new();
    for (path, bytes) in &corpus.readmes {
        let readme = PublishedReadme::parse(bytes);
        for (what, number) in [
            ("titles", usize::from(readme.title.is_some())),
            ("lines of a laboratory", readme.lab.len()),
            ("sections", readme.sections.len()),
            ("links", readme.links.len()),
            ("claims", readme.claims.len()),
            ("tables", readme.tables.len()),
            ("lines of code", readme.code.len()),
            ("blocks", readme.blocks.len()),
            (
                "READMEs with blocks",
                usize::from(!readme.blocks.is_empty()),
            ),
            ("READMEs", 1),
        ] {
            *parts.entry(what.to_owned()).or_default() += number;
        }
        for block in &readme.blocks {
            let block = &block.block;
            let backing = index.back(block, place_of(path));
            let kinds = backing.rows.iter().map(|row| match row {
                RowBacking::SameFolder(_) => "here",
                RowBacking::Elsewhere(_) => "elsewhere",
                RowBacking::Ambiguous(_) => "ambiguous",
                RowBacking::None => "none",
            });
            let mut kinds: Vec<&str> = kinds.collect();
            kinds.sort_unstable();
            kinds.dedup();
            count(&mut backed, kinds.join(" and "));
            match &backing.printing {
                None => {
                    exceptions += &format!("{path}:{}: {}\n", block.line, kinds.join(" and "));
                    count(&mut printings, "not backed");
                }
                Some(Printing::Exact(_)) => count(&mut printings, "exact"),
                Some(Printing::Departs(departures)) => {
                    count(&mut printings, "departs");
                    for departure in departures {
                        exceptions +=
                            &format!("{path}:{}: {}\n", departure.line, departure.kind.as_str());
                    }
                }
            }
        }
    }
    eprintln!("{:?}", start.elapsed());
    assert_eq!(lines(&parts), "");
    assert_eq!(lines(&backed), "");
    assert_eq!(lines(&printings), "");
    assert_eq!(exceptions, "");
}
