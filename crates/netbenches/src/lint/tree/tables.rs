//! What gnuplot was given against the datasets.

use std::path::Path;

use fwdlab_archive::lint::{Finding, VALUES_OF_ANOTHER};
use fwdlab_stats::median;
use fwdlab_stats::ministat::general;

use crate::lint::TABLE_ALTERED;
use crate::{Content, Dataset, Outcome, Row};

use super::Folder;

/// A dataset by its name, and what a table shows of it.
struct Shown<'a> {
    file: usize,
    name: &'a str,
    parent: Option<&'a Path>,
    /// Median, minimum and maximum.
    figures: [f64; 3],
}

pub(super) fn lint_tables(folder: Folder<'_>, findings: &mut Vec<Finding>) {
    let shown: Vec<Shown<'_>> = folder
        .folder
        .datasets
        .iter()
        .filter_map(|dataset| {
            Some(Shown {
                file: dataset.file,
                name: &dataset.name,
                parent: folder.file(dataset.file).path.parent(),
                figures: figures(dataset.content(&folder.tree.files)?)?,
            })
        })
        .collect();
    for &index in &folder.folder.members {
        let file = folder.file(index);
        let Outcome::Read(Content::Table(table)) = &file.outcome else {
            continue;
        };
        let stem = file.path.file_stem().unwrap_or_default().to_string_lossy();
        // Where a folder has several tables with datasets of their own, names repeat.
        let parent = file.path.parent();
        let (beside, elsewhere): (Vec<_>, Vec<_>) =
            shown.iter().partition(|shown| shown.parent == parent);
        let shown = if beside.is_empty() { elsewhere } else { beside };
        let rows = table.rows.iter();
        let wrong: Vec<Wrong<'_>> = rows
            .filter_map(|row| {
                of_its_name(row, &shown).or_else(|| of_the_tables(row, &stem, &shown))
            })
            .collect();
        lint_table(folder, index, &wrong, findings);
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

/// A row that is not of its dataset.
struct Wrong<'a> {
    row: &'a Row,
    own: &'a Shown<'a>,
    /// The dataset that it is of.
    other: Option<&'a Shown<'a>>,
}

/// A row whose key is the name of a dataset.
fn of_its_name<'a>(row: &'a Row, shown: &[&'a Shown<'a>]) -> Option<Wrong<'a>> {
    let key = row.keys.join(".");
    let mut of_name = shown.iter().filter(|shown| shown.name == key);
    let own = *of_name.next()?;
    // Of several of the name nothing tells which the row should be of.
    if own.agrees(row)? || of_name.next().is_some() {
        return None;
    }
    let mut others = shown.iter().filter(|other| other.file != own.file);
    let other = others
        .find(|other| other.agrees(row) == Some(true))
        .copied();
    Some(Wrong { row, own, other })
}

/// A row whose key is the name of a dataset together with the table's: `ipfw.data` has a row `r123` of
/// `r123.ipfw-statefull`. It is wrong where it is of another dataset of that key.
fn of_the_tables<'a>(row: &'a Row, stem: &str, shown: &[&'a Shown<'a>]) -> Option<Wrong<'a>> {
    let key = row.keys.join(".");
    let of_key = |shown: &&'a Shown<'a>| {
        let rest = shown.name.strip_prefix(&key)?.strip_prefix('.')?;
        let is_tables = rest == stem || rest.split(['-', '_']).next() == Some(stem);
        Some((*shown, is_tables))
    };
    let (own, others): (Vec<_>, Vec<_>) =
        shown.iter().filter_map(of_key).partition(|(_, own)| *own);
    let [(own, _)] = own[..] else {
        return None;
    };
    if own.agrees(row)? {
        return None;
    }
    let mut others = others.into_iter().map(|(other, _)| other);
    let other = others.find(|other| other.agrees(row) == Some(true))?;
    Some(Wrong {
        row,
        own,
        other: Some(other),
    })
}

/// One mistake of a script is one finding, however many rows it is in.
fn lint_table(folder: Folder<'_>, table: usize, wrong: &[Wrong<'_>], findings: &mut Vec<Finding>) {
    let (exchanged, altered): (Vec<&Wrong<'_>>, Vec<&Wrong<'_>>) =
        wrong.iter().partition(|wrong| wrong.other.is_some());
    for (rule, wrong) in [(&VALUES_OF_ANOTHER, exchanged), (&TABLE_ALTERED, altered)] {
        let Some(first) = wrong.first() else {
            continue;
        };
        let rows = match wrong.len() {
            1 => String::new(),
            count => format!(", and so in {count} rows"),
        };
        let whose = first.other.map_or_else(
            || "figures that are not those".to_owned(),
            |other| format!("the figures of {}, not", folder.name(other.file)),
        );
        let sentence = format!(
            "{} has for {} {whose} of {}{rows}",
            folder.name(table),
            first.row.keys.join(" "),
            folder.name(first.own.file)
        );
        let numbers = &first.row.numbers[first.row.numbers.len() - 3..];
        let mut finding = folder
            .finding(rule, sentence)
            .with(folder.published_at(table, first.row.line, text(numbers)))
            .with(folder.derived(first.own.file, text(&first.own.figures)));
        if let Some(other) = first.other {
            finding = finding.with(folder.derived(other.file, text(&other.figures)));
        }
        findings.push(finding);
    }
}

impl Shown<'_> {
    /// Whether a row shows it; none where the row has too few numbers to tell.
    fn agrees(&self, row: &Row) -> Option<bool> {
        let numbers = row.numbers.last_chunk::<3>()?;
        let same = |(a, b): (&f64, &f64)| printed(*a) == printed(*b);
        Some(numbers.iter().zip(&self.figures).all(same))
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
