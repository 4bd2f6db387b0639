//! What gnuplot was given against the datasets.

use fwdlab_stats::median;
use fwdlab_stats::ministat::general;

use crate::lint::{Finding, TABLE_ALTERED, VALUES_OF_ANOTHER};
use crate::netbenches::{Content, Dataset, FileKind, Outcome, Row};

use super::Folder;

/// A dataset by its name, and what a table shows of it.
struct Shown<'a> {
    file: usize,
    name: &'a str,
    /// Median, minimum and maximum.
    figures: [f64; 3],
}

pub(super) fn lint_tables(folder: Folder<'_>, findings: &mut Vec<Finding>) {
    let shown: Vec<Shown<'_>> = folder
        .folder
        .datasets
        .iter()
        .filter_map(|dataset| {
            let Outcome::Read(Content::Dataset(content)) = &folder.file(dataset.file).outcome else {
                return None;
            };
            Some(Shown {
                file: dataset.file,
                name: &dataset.name,
                figures: figures(content)?,
            })
        })
        .collect();
    for &index in &folder.folder.members {
        let file = folder.file(index);
        if file.kind != FileKind::Table {
            continue;
        }
        let Outcome::Read(Content::Table(table)) = &file.outcome else {
            continue;
        };
        let stem = file.path.file_stem().unwrap_or_default().to_string_lossy();
        for row in &table.rows {
            lint_row(folder, index, &stem, row, &shown, findings);
        }
    }
}

fn figures(dataset: &Dataset) -> Option<[f64; 3]> {
    let values = &dataset.values;
    Some([
        median(values)?,
        values.iter().copied().fold(f64::INFINITY, f64::min),
        values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    ])
}

/// A row's key is the dataset's name, or is put together with the table's: `ipfw.data` has a row `r123` of
/// `r123.ipfw-statefull`.
fn lint_row(
    folder: Folder<'_>,
    table: usize,
    stem: &str,
    row: &Row,
    shown: &[Shown<'_>],
    findings: &mut Vec<Finding>,
) {
    let [.., _, _, _] = row.numbers[..] else {
        return;
    };
    let numbers = &row.numbers[row.numbers.len() - 3..];
    let agrees = |shown: &Shown<'_>| {
        let same = |(a, b): (&f64, &f64)| printed(*a) == printed(*b);
        numbers.iter().zip(&shown.figures).all(same)
    };
    let key = row.keys.join(".");
    let mut of_name = shown.iter().filter(|shown| shown.name == key).peekable();
    if let Some(dataset) = of_name.peek() {
        if agrees(dataset) {
            return;
        }
        let other = shown.iter().find(|other| other.file != dataset.file && agrees(other));
        let (rule, whose) = match other {
            Some(other) => (
                &VALUES_OF_ANOTHER,
                format!(": they are those of {}", folder.name(other.file)),
            ),
            None => (&TABLE_ALTERED, String::new()),
        };
        let sentence = format!(
            "{} has other figures for {key} than {}{whose}",
            folder.name(table),
            folder.name(dataset.file)
        );
        let finding = folder
            .finding(rule, sentence)
            .with(folder.published(table, Some(row.line), text(numbers)))
            .with(folder.derived(dataset.file, None, text(&dataset.figures)));
        findings.push(finding);
        return;
    }
    // `pf.data` beside `ipfw.data`: both have a row for each revision.
    let of_table = |shown: &&Shown<'_>| {
        shown
            .name
            .strip_prefix(&key)
            .and_then(|rest| rest.strip_prefix('.'))
            .is_some_and(|rest| rest == stem || rest.split(['-', '_']).next() == Some(stem))
    };
    let mut own = shown.iter().filter(of_table);
    let (Some(own), None) = (own.next(), own.next()) else {
        return;
    };
    let same_key = |shown: &&Shown<'_>| shown.name.strip_prefix(&key).is_some_and(|rest| rest.starts_with('.'));
    let other = shown
        .iter()
        .filter(same_key)
        .find(|other| other.file != own.file && agrees(other));
    if let Some(other) = other.filter(|_| !agrees(own)) {
        let sentence = format!(
            "{} has for {key} the figures of {}, not of {}",
            folder.name(table),
            folder.name(other.file),
            folder.name(own.file)
        );
        let finding = folder
            .finding(&VALUES_OF_ANOTHER, sentence)
            .with(folder.published(table, Some(row.line), text(numbers)))
            .with(folder.derived(own.file, None, text(&own.figures)));
        findings.push(finding);
    }
}

/// As the archive's scripts print them.
fn printed(value: f64) -> String {
    general(value, 8).to_string()
}

fn text(figures: &[f64]) -> String {
    let figures: Vec<String> = figures.iter().map(|figure| printed(*figure)).collect();
    figures.join(" ")
}
