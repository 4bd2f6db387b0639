//! What gnuplot was given against the datasets.

use std::path::Path;

use fwdlab_archive::lint::{Finding, VALUES_OF_ANOTHER};
use fwdlab_stats::ministat::general;

use crate::datasets::place;
use crate::lint::TABLE_ALTERED;
use crate::readme::medians;
use crate::{Content, Outcome, PublishedDataset, ResultsFolder, Row};

use super::Folder;
use super::links::linked_places;

/// A dataset by its name, and what a table shows of it.
struct Shown<'a> {
    file: usize,
    name: &'a str,
    parent: Option<&'a Path>,
    /// Median, minimum and maximum.
    figures: [f64; 3],
    /// The median of ministat before the end of 2015.
    upper_median: f64,
}

impl<'a> Shown<'a> {
    fn new(folder: Folder<'a>, dataset: &'a PublishedDataset) -> Option<Self> {
        let values = &dataset.content(&folder.tree.files)?.values;
        let [median, upper_median] = medians(values)?;
        let minimum = values.iter().copied().fold(f64::INFINITY, f64::min);
        let maximum = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Self {
            file: dataset.file,
            name: &dataset.name,
            parent: folder.file(dataset.file).path.parent(),
            figures: [median, minimum, maximum],
            upper_median,
        })
    }
}

pub(super) fn lint_tables(folder: Folder<'_>, findings: &mut Vec<Finding>) {
    let datasets = folder.folder.datasets.iter();
    let shown: Vec<Shown<'_>> = datasets
        .filter_map(|dataset| Shown::new(folder, dataset))
        .collect();
    let mut linked = None;
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
        let mut wrong: Vec<Wrong<'_>> = rows
            .filter_map(|row| {
                of_its_name(row, &shown).or_else(|| of_the_tables(row, &stem, &shown))
            })
            .collect();
        if !wrong.is_empty() {
            let linked = linked.get_or_insert_with(|| linked_datasets(folder));
            wrong.retain(|wrong| !linked.iter().any(|linked| wrong.is_of(linked)));
        }
        lint_table(folder, index, &wrong, findings);
    }
}

/// The datasets of the other folders that the folder's text links to or calls by their labels: a table may show
/// them.
fn linked_datasets(folder: Folder<'_>) -> Vec<Shown<'_>> {
    let Some((file, readme)) = folder.folder.readme_file(&folder.tree.files) else {
        return Vec::new();
    };
    let own = place(file.path.parent().unwrap_or(Path::new("")));
    let linked = linked_places(&own, &readme.links);
    let prose = readme.sections.iter().flat_map(|section| &section.prose);
    let headings = readme
        .sections
        .iter()
        .filter_map(|section| section.heading.as_ref());
    let lines: Vec<&str> = prose
        .map(|line| line.text.as_str())
        .chain(headings.map(|heading| heading.text.as_str()))
        .collect();
    let is_meant = |other: &&ResultsFolder| {
        let label = other.place.label.as_deref().unwrap_or_default();
        other.path != folder.folder.path
            && (linked.contains(&place(&other.path))
                || label.len() >= LABEL_MIN && lines.iter().any(|line| line.contains(label)))
    };
    let others = folder.tree.folders.iter().filter(is_meant);
    others
        .flat_map(|other| {
            let other = Folder {
                folder: other,
                ..folder
            };
            let datasets = other.folder.datasets.iter();
            datasets.filter_map(move |dataset| Shown::new(other, dataset))
        })
        .collect()
}

/// Shorter labels are words of any text.
const LABEL_MIN: usize = 8;

/// A row that is not of its dataset.
struct Wrong<'a> {
    row: &'a Row,
    own: &'a Shown<'a>,
    /// The dataset that it is of.
    other: Option<&'a Shown<'a>>,
}

impl Wrong<'_> {
    /// Whether the row is that of a dataset of the same name in another folder.
    fn is_of(&self, linked: &Shown<'_>) -> bool {
        linked.name == self.own.name && linked.agrees(self.row) == Some(true)
    }
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
        let [median, ends @ ..] = numbers;
        let same = |(a, b): (&f64, &f64)| printed(*a) == printed(*b);
        let has_median = [self.figures[0], self.upper_median]
            .iter()
            .any(|own| same((own, median)));
        Some(has_median && ends.iter().zip(&self.figures[1..]).all(same))
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
