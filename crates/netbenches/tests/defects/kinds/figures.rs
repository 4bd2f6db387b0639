//! Wrong digits in figures whose data is in the part, so that they are visible as printed.

use std::path::Path;

use fwdlab_pkt_gen::PublishedMedian;
use testkit::Random;

use super::other_digit;
use crate::part::{Defect, Part};
use crate::published::{Block, Dataset, Row, is_same, name, prose_lines};

type Text<'a> = (&'a Path, String);

/// A figure whose data is in the part: which number of a line it is, both counted from 0.
struct Figure<'a> {
    text: &'a Text<'a>,
    line: usize,
    nth: usize,
}

/// Gives one of some figures another digit.
fn planted(figures: &[Figure<'_>], random: &mut Random) -> Option<Defect> {
    let figure = random.pick(figures)?;
    let line = figure.text.1.lines().nth(figure.line)?;
    let &(at, number) = numbers(line).get(figure.nth)?;
    let changed = other_digit(number, random)?;
    let changed = format!("{}{changed}{}", &line[..at], &line[at + number.len()..]);
    Some(Defect::of_line(
        figure.text.0,
        &figure.text.1,
        figure.line,
        &changed,
    ))
}

/// The numbers of a line, without signs, each with where it begins.
fn numbers(line: &str) -> Vec<(usize, &str)> {
    let mut numbers = Vec::new();
    let mut at = 0;
    while at < line.len() {
        let length = line[at..]
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(line.len() - at);
        let number = line[at..at + length].trim_end_matches('.');
        let is_apart =
            !line[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
        if is_apart && number.parse::<f64>().is_ok() {
            numbers.push((at, number));
        }
        at += length.max(line[at..].chars().next().map_or(1, char::len_utf8));
    }
    numbers
}

/// All figures of a line.
fn of_line<'a>(text: &'a Text<'a>, line: usize) -> impl Iterator<Item = Figure<'a>> {
    let count = numbers(text.1.lines().nth(line).unwrap_or_default()).len();
    (0..count).map(move |nth| Figure { text, line, nth })
}

/// A row that a dataset of the part gives.
struct Backed<'a> {
    text: &'a Text<'a>,
    row: Row,
    is_under_name: bool,
}

fn backed_rows<'a>(part: &Part, texts: &'a [Text<'a>]) -> Vec<Backed<'a>> {
    let mut backed = Vec::new();
    for text in texts {
        for block in Block::all(&text.1) {
            for row in &block.rows {
                let (Some(dataset), Some(legend)) = (part.dataset_of(row), block.legend(row))
                else {
                    continue;
                };
                let is_under_name =
                    legend.label.ends_with(".pps") || legend.label.ends_with(&name(&dataset.path));
                backed.push(Backed {
                    text,
                    row: row.clone(),
                    is_under_name,
                });
            }
        }
    }
    backed
}

fn rows<'a>(
    part: &Part,
    texts: &'a [Text<'a>],
    is_meant: impl Fn(&Backed<'_>) -> bool,
) -> Vec<Figure<'a>> {
    let rows = backed_rows(part, texts).into_iter();
    let meant = rows.filter(|backed| is_meant(backed));
    meant
        .flat_map(|backed| of_line(backed.text, backed.row.line))
        .collect()
}

pub(super) fn any_row(part: &Part, random: &mut Random) -> Option<Defect> {
    planted(&rows(part, &part.texts(), |_| true), random)
}

pub(super) fn named_row(part: &Part, random: &mut Random) -> Option<Defect> {
    planted(
        &rows(part, &part.texts(), |backed| backed.is_under_name),
        random,
    )
}

pub(super) fn labelled_row(part: &Part, random: &mut Random) -> Option<Defect> {
    planted(
        &rows(part, &part.texts(), |backed| !backed.is_under_name),
        random,
    )
}

/// The figures of comparisons in blocks of which every row is of a dataset.
fn comparisons<'a>(part: &Part, texts: &'a [Text<'a>]) -> Vec<Figure<'a>> {
    let mut figures = Vec::new();
    for text in texts {
        for block in part.backed_blocks(&text.1) {
            // What the confidence is is not in the data.
            let lines = block.comparisons.into_iter();
            let lines = lines.filter(|&(_, is_verdict)| !is_verdict);
            figures.extend(lines.flat_map(|(line, _)| of_line(text, line)));
        }
    }
    figures
}

pub(super) fn comparison(part: &Part, random: &mut Random) -> Option<Defect> {
    planted(&comparisons(part, &part.texts()), random)
}

pub(super) fn dataset(part: &Part, random: &mut Random) -> Option<Defect> {
    let logged = random.pick(part.logged())?;
    let path = &logged.dataset.path;
    let text = (path.as_path(), part.text(path)?);
    let lines = 0..logged.dataset.values.len();
    let figures: Vec<Figure<'_>> = lines.flat_map(|line| of_line(&text, line)).collect();
    planted(&figures, random)
}

pub(super) fn plot_table(part: &Part, random: &mut Random) -> Option<Defect> {
    let tables = part.ending(".data").into_iter();
    let tables: Vec<Text<'_>> = tables
        .filter_map(|path| Some((path, part.text(path)?)))
        .collect();
    let mut figures = Vec::new();
    for table in &tables {
        for (line, row) in table.1.lines().enumerate() {
            if is_row_of_a_dataset(part, table.0, row) {
                let numbers = numbers(row).len();
                let of_dataset = of_line(table, line).skip(numbers.saturating_sub(3));
                figures.extend(of_dataset);
            }
        }
    }
    planted(&figures, random)
}

/// Whether a row of a plot's table has a name, and the median, minimum and maximum of the dataset of that name.
fn is_row_of_a_dataset(part: &Part, table: &Path, row: &str) -> bool {
    let words: Vec<&str> = row.split_whitespace().collect();
    let [name, figures @ ..] = &words[..] else {
        return false;
    };
    let figures: Vec<f64> = figures
        .iter()
        .filter_map(|word| word.parse().ok())
        .collect();
    let mut datasets = part.datasets().iter();
    let of_name =
        datasets.find(|dataset| dataset.path.parent() == table.parent() && dataset.stem() == *name);
    of_name.is_some_and(|dataset| {
        [PublishedMedian::Averaged, PublishedMedian::Upper]
            .iter()
            .any(|&median| {
                let [_, minimum, maximum, median, ..] = dataset.figures(median);
                let own = [median, minimum, maximum];
                figures.len() == 3
                    && own
                        .iter()
                        .zip(&figures)
                        .all(|(&own, &printed)| is_same(own, printed))
            })
    })
}

/// The figures of prose that ministat gives in the same text, rounded as a reader would: percentages of comparisons,
/// rates of rows.
fn in_prose<'a>(part: &Part, texts: &'a [Text<'a>]) -> Vec<Figure<'a>> {
    texts
        .iter()
        .flat_map(|text| in_prose_of(part, text))
        .collect()
}

fn in_prose_of<'a>(part: &Part, text: &'a Text<'a>) -> Vec<Figure<'a>> {
    let of_text = std::slice::from_ref(text);
    let lines: Vec<&str> = text.1.lines().collect();
    let percents: Vec<f64> = (comparisons(part, of_text).iter())
        .filter_map(|figure| lines[figure.line].split_once('%')?.0.trim().parse().ok())
        .collect();
    let rates: Vec<f64> = (backed_rows(part, of_text).iter())
        .flat_map(|backed| backed.row.figures[1..5].to_vec())
        .collect();
    let mut figures = Vec::new();
    for (line, words) in prose_lines(&text.1) {
        for (nth, (at, number)) in numbers(words).into_iter().enumerate() {
            let decimals = number
                .split_once('.')
                .map_or(0, |(_, decimals)| decimals.len());
            let is_one_of = |values: &[f64], unit: f64| {
                let rounded = |value: &f64| format!("{:.decimals$}", value.abs() / unit);
                values.iter().any(|value| rounded(value) == number)
            };
            let behind = words[at + number.len()..].trim_start();
            let is_of_data = match number.len() {
                _ if behind.starts_with('%') => is_one_of(&percents, 1.0),
                3.. if behind.starts_with("Mpps") => is_one_of(&rates, 1e6),
                3.. if behind.starts_with("Kpps") => is_one_of(&rates, 1e3),
                5.. => is_one_of(&rates, 1.0),
                _ => false,
            };
            if is_of_data {
                figures.push(Figure { text, line, nth });
            }
        }
    }
    figures
}

pub(super) fn prose(part: &Part, random: &mut Random) -> Option<Defect> {
    planted(&in_prose(part, &part.texts()), random)
}

/// Each figure of the texts is as likely as any other.
pub(super) fn any_of_texts(part: &Part, random: &mut Random) -> Option<Defect> {
    let texts = part.texts();
    let mut figures = rows(part, &texts, |_| true);
    figures.extend(comparisons(part, &texts));
    figures.extend(in_prose(part, &texts));
    planted(&figures, random)
}

/// A table of medians, and how far each is from the first, is put behind a text; then a digit of it is changed. The
/// corpus has hardly any.
pub(super) fn markdown_table(part: &Part, random: &mut Random) -> Option<Defect> {
    let mut texts = part.texts();
    let beside = |path: &Path| -> Vec<&Dataset> {
        let datasets = part.datasets().iter();
        datasets
            .filter(|dataset| dataset.path.parent() == path.parent())
            .take(6)
            .collect()
    };
    texts.retain(|(path, _)| beside(path).len() > 1);
    let (path, text) = random.pick(&texts)?;
    let medians: Vec<(String, f64)> = (beside(path).iter())
        .map(|dataset| {
            (
                dataset.stem(),
                dataset.figures(PublishedMedian::Averaged)[3],
            )
        })
        .collect();
    let first = medians[0].1;
    let mut table = format!(
        "{}\n\n| variant | median (pps) | difference |\n|---|---:|---:|\n",
        text.trim_end()
    );
    let head = table.lines().count();
    for (name, median) in &medians {
        table += &format!(
            "| {name} | {median:.0} | {:+.1}% |\n",
            100.0 * (median / first - 1.0)
        );
    }
    // The first differs from itself by nothing.
    let number = head + 1 + random.below(medians.len() - 1);
    let with_table = (*path, table);
    // The last two numbers are the median and the difference; others are of the name.
    let all: Vec<Figure<'_>> = of_line(&with_table, number).collect();
    let mut defect = planted(&all[all.len() - 2..], random)?;
    defect.ready = vec![((*path).to_owned(), with_table.1.into_bytes())];
    Some(defect)
}
