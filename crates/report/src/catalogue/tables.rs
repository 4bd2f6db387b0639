//! Tables of the catalogue's answers.

use fwdlab_catalogue::{Cell, Problem, RateRow, ResultsRow, Series, Table as Answer};
use fwdlab_stats::whole;

use crate::format;
use crate::labels::shortened;
use crate::text::{beginning, columns, in_columns, one_line, wrap_to_columns};

/// What stands where nothing is known.
const UNKNOWN: &str = "-";

/// Eight heights of a sparkline.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Less of the name of a results directory says little.
const RESULTS_MIN: usize = 20;

/// More of a verdict is not worth what it takes of that name.
const VERDICT_ENOUGH: usize = 44;

/// Less of a variant's label says nothing.
const LABEL_MIN: usize = 8;

/// What `fwdlab ls` prints: a line for each results directory, and one for each that cannot be read. Within `width`, where
/// there is one, state and verdict are always there: other columns go, and names are shortened.
#[must_use]
pub fn listing(results: &[ResultsRow], problems: &[Problem], width: Option<usize>) -> String {
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
        let left_out = table.leave_out(&[&["lab"], &["os"], &["platform"], &["blocks"]], width);
        table.shorten_names(width);
        table.text(width) + &told(&left_out, width)
    };
    for problem in problems {
        let line = format!("unreadable: {}", one_line(&problem.problem));
        // Behind the reason stands what to do, so it is not cut.
        let lines = match width {
            Some(width) => wrap_to_columns(&line, width.saturating_sub(2).max(20)),
            None => vec![line],
        };
        text += &(lines.join("\n  ") + "\n");
    }
    text
}

/// Which columns there was no room for.
fn told(left_out: &[&str], width: Option<usize>) -> String {
    let (names, fit) = match left_out {
        [] => return String::new(),
        [name] => ((*name).to_owned(), "does"),
        [names @ .., last] => (format!("{} and {last}", names.join(", ")), "do"),
    };
    let text = format!("{names} {fit} not fit; use a wider terminal, or --csv");
    cut(&text, width) + "\n"
}

/// A finding of the catalogue, `label: words effect (n of m differ)`, in so many columns: how many differ is the
/// first to go, then the label is shortened, then the words.
fn verdict_within(verdict: &str, room: usize) -> String {
    let Some((label, finding)) = verdict
        .rsplit_once(": ")
        .filter(|_| columns(verdict) > room)
    else {
        return cut(verdict, Some(room));
    };
    let bare = finding
        .rsplit_once(" (")
        .map_or(finding, |(finding, _)| finding);
    let for_label = room.saturating_sub(columns(bare) + 2);
    if for_label >= LABEL_MIN.min(columns(label)) {
        return format!("{}: {bare}", cut(label, Some(for_label)));
    }
    match bare.rmatch_indices(' ').nth(1) {
        Some((at, _)) if columns(&bare[at..]) < room => {
            let (words, effect) = bare.split_at(at);
            cut(words, Some(room - columns(effect))) + effect
        }
        _ => cut(bare, Some(room)),
    }
}

/// What `fwdlab query` says of a directory that it passed over, on one line.
#[must_use]
pub fn passed_over(problem: &Problem) -> String {
    format!("warning: passed over: {}", one_line(&problem.problem))
}

/// What `fwdlab query` prints: a line for what each variant forwarded in each results directory, cut at `width` columns
/// where there is one.
#[must_use]
pub fn rates(rates: &[RateRow], width: Option<usize>) -> String {
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
    let left_out = table.leave_out(&[&["platform"], &["os"], &["min", "max"], &["IQR"]], width);
    table.text(width) + &told(&left_out, width)
}

/// What `fwdlab query --over` prints: a table for each configuration, below a sparkline of its medians; lines are cut at
/// `width` columns, where there is one.
#[must_use]
pub fn series(all: &[Series], width: Option<usize>) -> String {
    let mut text = String::new();
    let mut left_out: Vec<&str> = Vec::new();
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
        let left_out_here = table.leave_out(&[&["min", "max"], &["IQR"], &["label"]], width);
        if left_out_here.len() > left_out.len() {
            left_out = left_out_here;
        }
        text += &table.text(width);
    }
    if !left_out.is_empty() {
        text = text + "\n" + &told(&left_out, width);
    }
    text
}

/// What `fwdlab query --sql` prints; lines are cut at `width` columns, where there is one.
#[must_use]
pub fn selected(selected: &Answer, width: Option<usize>) -> String {
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
        BARS[whole((part * 7.0).round()).min(7)]
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
    let kept = beginning(line, width.saturating_sub(1));
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

    fn widths(&self) -> Vec<usize> {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| columns(&row[column]));
            cells.max().unwrap_or(0)
        };
        (0..self.is_number.len()).map(width).collect()
    }

    /// By how much the table is too wide.
    fn excess(&self, width: Option<usize>) -> usize {
        let widths = self.widths();
        let all = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
        width.map_or(0, |width| all.saturating_sub(width))
    }

    /// Leaves out columns until the table fits, the first group first, each as a whole; returns which.
    fn leave_out<'a>(&mut self, groups: &[&[&'a str]], width: Option<usize>) -> Vec<&'a str> {
        let mut left_out = Vec::new();
        for group in groups {
            if self.excess(width) == 0 {
                break;
            }
            for &name in *group {
                self.leave_out_column(name);
                left_out.push(name);
            }
        }
        left_out
    }

    fn leave_out_column(&mut self, name: &str) {
        let column = self.rows[0].iter().position(|heading| heading == name);
        if let Some(column) = column {
            self.is_number.remove(column);
            for row in &mut self.rows {
                row.remove(column);
            }
        }
    }

    /// Shortens the names of results and the verdicts until the table fits.
    fn shorten_names(&mut self, width: Option<usize>) {
        let of = |name: &str| self.rows[0].iter().position(|heading| heading == name);
        let (Some(results), Some(verdict)) = (of("results"), of("verdict")) else {
            return;
        };
        let widths = self.widths();
        let both = (widths[results] + widths[verdict]).saturating_sub(self.excess(width));
        let room = both.saturating_sub(widths[verdict].min(VERDICT_ENOUGH));
        let names: Vec<&str> = self.rows.iter().map(|row| row[results].as_str()).collect();
        let names = shortened(&names, &|name| columns(name) <= room.max(RESULTS_MIN));
        for (row, name) in self.rows.iter_mut().zip(names) {
            row[results] = name;
        }
        let room = self.widths()[verdict].saturating_sub(self.excess(width));
        for row in &mut self.rows {
            row[verdict] = verdict_within(&row[verdict], room);
        }
    }

    fn text(&self, width: Option<usize>) -> String {
        let mut text = String::new();
        for line in in_columns(&self.rows, |column| self.is_number[column]) {
            text += &cut(&line, width);
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
