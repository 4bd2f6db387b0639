//! Tables of the catalogue's answers.

use fwdlab_archive::catalogue::{Cell, Problem, RateRow, ResultsRow, Series, Table as Answer};

use crate::format;
use crate::text::{columns, one_line};

/// What stands where nothing is known.
const UNKNOWN: &str = "-";

/// Eight heights of a sparkline.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A line for each results directory, and one for each that cannot be read; cut at `width`.
pub(crate) fn listing(
    results: &[ResultsRow],
    problems: &[Problem],
    width: Option<usize>,
) -> String {
    let mut table = Table::new(&[
        "date", "results", "platform", "os", "lab", "#blocks", "state", "verdict",
    ]);
    for row in results {
        let state = if row.finished {
            "finished"
        } else {
            "unfinished"
        };
        table.row([
            day(row.date.as_deref()),
            format!("{}/{}", row.topic, row.label),
            known(row.platform.as_deref()),
            known(row.os.as_deref()),
            known(row.lab.as_deref()),
            row.blocks.to_string(),
            state.to_owned(),
            known(row.verdict.as_deref()),
        ]);
    }
    let mut text = if results.is_empty() {
        String::new()
    } else {
        table.text(width)
    };
    for problem in problems {
        text += &cut(
            &format!("unreadable: {}", one_line(&problem.problem)),
            width,
        );
        text.push('\n');
    }
    text
}

/// Why a directory is not in an answer.
pub(crate) fn passed_over(problem: &Problem) -> String {
    format!("warning: passed over: {}", one_line(&problem.problem))
}

/// A line for what each variant forwarded in each results directory.
pub(crate) fn rates(rates: &[RateRow], width: Option<usize>) -> String {
    let mut table = Table::new(&[
        "date",
        "results",
        "variant",
        "family",
        "#n",
        "#median pps",
        "#IQR",
        "#min",
        "#max",
        "os",
        "platform",
    ]);
    for row in rates {
        table.row([
            day(row.date.as_deref()),
            format!("{}/{}", row.topic, row.label),
            row.variant.clone(),
            row.family.clone(),
            row.observations.to_string(),
            format::rate_digits(row.median_pps),
            format::rate_digits(row.iqr_pps),
            format::rate_digits(row.min_pps),
            format::rate_digits(row.max_pps),
            known(row.os.as_deref()),
            known(row.platform.as_deref()),
        ]);
    }
    table.text(width)
}

/// A table for each configuration, below a sparkline of its medians.
pub(crate) fn series(all: &[Series], width: Option<usize>) -> String {
    let mut text = String::new();
    for series in all {
        if !text.is_empty() {
            text.push('\n');
        }
        let where_measured: Vec<&str> =
            [&series.platform, &series.nic, &series.lab, &series.regime]
                .into_iter()
                .flatten()
                .map(String::as_str)
                .collect();
        let heading = format!(
            "{}: {}, {} ({})",
            series.topic,
            series.variant,
            series.family,
            where_measured.join(", ")
        );
        text += &cut(&one_line(&heading), width);
        text.push('\n');
        let medians: Vec<f64> = series.rates.iter().map(|rate| rate.median_pps).collect();
        if medians.len() > 1 {
            text += &cut(&sparkline(&medians), width);
            text.push('\n');
        }
        let mut table = Table::new(&[
            "date",
            "os",
            "label",
            "#n",
            "#median pps",
            "#IQR",
            "#min",
            "#max",
            "#vs previous",
        ]);
        let mut previous: Option<f64> = None;
        for rate in &series.rates {
            let change = previous.filter(|before| *before > 0.0).map(|before| {
                format!(
                    "{} %",
                    format::signed((rate.median_pps / before - 1.0) * 100.0, 1)
                )
            });
            previous = Some(rate.median_pps);
            table.row([
                day(rate.date.as_deref()),
                known(rate.os.as_deref()),
                rate.label.clone(),
                rate.observations.to_string(),
                format::rate_digits(rate.median_pps),
                format::rate_digits(rate.iqr_pps),
                format::rate_digits(rate.min_pps),
                format::rate_digits(rate.max_pps),
                change.unwrap_or_default(),
            ]);
        }
        text += &table.text(width);
    }
    text
}

/// What a question in SQL gives.
pub(crate) fn selected(selected: &Answer, width: Option<usize>) -> String {
    let is_number = |column: usize| {
        let mut cells = selected.rows.iter().map(|row| &row[column]);
        cells.all(|cell| !matches!(cell, Cell::Text(_)))
    };
    let headings: Vec<String> = (0..selected.columns.len())
        .map(|column| {
            let mark = if is_number(column) { "#" } else { "" };
            format!("{mark}{}", selected.columns[column])
        })
        .collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let mut table = Table::new(&headings);
    for row in &selected.rows {
        table.row(row.iter().map(|cell| match cell {
            Cell::Null => UNKNOWN.to_owned(),
            Cell::Boolean(value) => value.to_string(),
            Cell::Integer(number) => number.to_string(),
            Cell::Real(number) => number.to_string(),
            Cell::Text(text) => text.clone(),
        }));
    }
    table.text(width)
}

/// Medians as bars, from the smallest to the largest.
fn sparkline(values: &[f64]) -> String {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let bar = |value: &f64| {
        let part = if high > low {
            (value - low) / (high - low)
        } else {
            0.5
        };
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of 8 heights"
        )]
        let height = (part * 7.0).round().clamp(0.0, 7.0) as usize;
        BARS[height]
    };
    let bars: String = values.iter().map(bar).collect();
    format!("{bars}  {} to {}", format::rate(low), format::rate(high))
}

fn known(text: Option<&str>) -> String {
    text.unwrap_or(UNKNOWN).to_owned()
}

/// The day of a date, as far as it is known.
fn day(date: Option<&str>) -> String {
    date.map_or_else(
        || UNKNOWN.to_owned(),
        |date| date.split('T').next().unwrap_or(date).to_owned(),
    )
}

/// A line that fits, with an ellipsis where something is missing.
fn cut(line: &str, width: Option<usize>) -> String {
    let Some(width) = width.filter(|width| columns(line) > *width) else {
        return line.to_owned();
    };
    let mut kept = String::new();
    for character in line.chars() {
        kept.push(character);
        if columns(&kept) >= width {
            kept.pop();
            break;
        }
    }
    format!("{}…", kept.trim_end())
}

/// Cells in columns, two blanks between them.
struct Table {
    rows: Vec<Vec<String>>,
    is_number: Vec<bool>,
}

impl Table {
    /// Shape: the headings of columns of numbers, which end at one line, begin with `#`.
    fn new(headings: &[&str]) -> Self {
        let names = headings
            .iter()
            .map(|heading| heading.strip_prefix('#').unwrap_or(heading));
        Self {
            rows: vec![names.map(one_line).collect()],
            is_number: headings
                .iter()
                .map(|heading| heading.starts_with('#'))
                .collect(),
        }
    }

    fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows
            .push(cells.into_iter().map(|cell| one_line(&cell)).collect());
    }

    fn text(&self, width: Option<usize>) -> String {
        let widths: Vec<usize> = (0..self.is_number.len())
            .map(|column| {
                let cells = self.rows.iter().map(|row| columns(&row[column]));
                cells.max().unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                if column > 0 {
                    line.push_str("  ");
                }
                let air = " ".repeat(widths[column] - columns(cell));
                if self.is_number[column] {
                    line += &air;
                    line += cell;
                } else {
                    line += cell;
                    line += &air;
                }
            }
            text += &cut(line.trim_end(), width);
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_columns_and_is_cut_where_it_does_not_fit() {
        let mut table = Table::new(&["a", "#n", "rest"]);
        table.row(["x\u{1b}[31m".to_owned(), "10".to_owned(), "漢字".to_owned()]);
        table.row(["long one".to_owned(), "7".to_owned(), "a b\nc".to_owned()]);
        assert_eq!(
            table.text(None),
            "a          n  rest\nx\u{fffd}[31m    10  漢字\nlong one   7  a b c\n"
        );
        assert_eq!(
            table.text(Some(15)),
            "a          n…\nx\u{fffd}[31m    10…\nlong one   7…\n"
        );
    }

    #[test]
    fn a_sparkline_goes_from_the_smallest_to_the_largest() {
        assert_eq!(sparkline(&[1e6, 2e6, 1.5e6]), "▁█▅  1.00 Mpps to 2.00 Mpps");
        assert_eq!(sparkline(&[5.0, 5.0]), "▅▅  5.00 pps to 5.00 pps");
    }
}
