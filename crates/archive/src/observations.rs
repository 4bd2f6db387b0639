//! Observations from files that others wrote: numbers in lines, or in a column of a table.

use fwdlab_stats::ministat::parse_number;

use crate::csv_text::{CsvRows, Row, TextError, TextFault, csv_separator, plain_text};

/// Messages show so many characters of a cell, and so many headings.
const CHARACTERS_SHOWN_MAX: usize = 40;
const HEADINGS_SHOWN_MAX: usize = 10;

/// What rates are printed in, without their prefixes.
const UNITS: [&str; 8] = [
    "pps",
    "bps",
    "fps",
    "p/s",
    "b/s",
    "bit/s",
    "pkt/s",
    "packets/s",
];

/// What the rows of a summary are called, which other programs write below the observations.
const SUMMARIES: [&str; 14] = [
    "average", "avg", "geomean", "max", "maximum", "mean", "median", "min", "minimum", "sd", "std",
    "stddev", "sum", "total",
];

/// Which column of a file holds the observations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// Counted from 1.
    Number(usize),
    /// The one under this heading.
    Named(String),
}

impl Column {
    /// A column as a user names it: by a number from 1, or by its heading.
    #[must_use]
    pub fn of(text: &str) -> Self {
        match text.parse() {
            Ok(number) if number > 0 => Self::Number(number),
            _ => Self::Named(text.to_owned()),
        }
    }
}

/// What separates the columns of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Separators {
    /// Runs of blanks, as in ministat's files.
    Blanks,
    /// Runs of any of these characters.
    Runs(String),
    /// Those of CSV: the comma, semicolon or tab in the first row.
    Csv,
    /// CSV with this ASCII character.
    One(u8),
}

/// A number in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Finite, above 0.
    pub value: f64,
    /// Its line, from 1.
    pub line: usize,
}

/// What keeps a file from being read as observations.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObservationsError {
    /// It is no text, or no table.
    #[error(transparent)]
    Text(#[from] TextError),
    /// No heading is the one that was asked for, or several are.
    #[error("line {line}: {} called {name:?}; it has {}", columns_called(*number), headings.join(", "))]
    NotOneColumn {
        /// The line of the headings, from 1.
        line: usize,
        /// None, or two or more.
        number: usize,
        /// The heading asked for.
        name: String,
        /// The headings, or the first of them.
        headings: Vec<String>,
    },
    /// The first row may be headings or observations.
    #[error(
        "line {line}, column {column}: {text:?} may be a heading or an observation; give each column a heading with a letter, \
         or none"
    )]
    HeadingOrNumber {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What the cell holds.
        text: String,
    },
    /// The line ends before the column.
    #[error("line {line}: no column {column} (it has {have}); --column chooses another one")]
    NoCell {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// How many columns the line has.
        have: usize,
    },
    /// There is nothing in a cell.
    #[error(
        "line {line}, column {column}: an empty cell; leave the row out, or --column chooses another one"
    )]
    Empty {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// A cell holds something else.
    #[error(
        "line {line}, column {column}: {text:?} is no plain number like 1020033.5; --column chooses another one"
    )]
    NotANumber {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// How the cell begins.
        text: String,
    },
    /// Rates are compared by their logarithms, which such a number does not have.
    #[error("line {line}, column {column}: {text} is no rate above 0; leave the row out")]
    NotPositive {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// How the cell begins.
        text: String,
    },
    /// Columns that look like the digits of one number.
    #[error(
        "line {line}: {text:?} may be one number or several columns; write numbers as 1020033.5, or name what separates \
         columns (--delimiters)"
    )]
    OneNumber {
        /// The line, from 1.
        line: usize,
        /// Its columns.
        text: String,
    },
    /// A number is followed by its unit, which other rows may not have.
    #[error(
        "line {line}, column {column}: {unit:?} is the unit of the number before it; write all numbers in one unit, without it"
    )]
    Unit {
        /// The line, from 1.
        line: usize,
        /// The column of the unit, from 1.
        column: usize,
        /// The unit.
        unit: String,
    },
    /// Its heading says that a column holds something else than rates of packets.
    #[error(
        "line {line}: the column {heading:?} holds no packets per second; --column chooses another one, and `fwdlab ministat` \
         compares numbers of any unit"
    )]
    NoRate {
        /// The line of the headings, from 1.
        line: usize,
        /// The heading.
        heading: String,
    },
    /// The numbers are those of the rows, which say nothing of what was measured.
    #[error("column {column} counts the rows; --column chooses another one")]
    Counter {
        /// The column, from 1.
        column: usize,
    },
    /// A row below the observations sums them up.
    #[error("line {line}: the row {text:?} sums up others, and is no observation; leave it out")]
    Summary {
        /// The line, from 1.
        line: usize,
        /// What the row is called.
        text: String,
    },
    /// There is no row but headings.
    #[error("no number in it; give a file of observations")]
    None,
}

fn columns_called(number: usize) -> String {
    match number {
        0 => "no column is".to_owned(),
        number => format!("{number} columns are"),
    }
}

/// The numbers in a column of a file, in order.
///
/// Shape: one or more, in the unit of the file; under a heading with a unit (`kpps`, `Mpps`) in packets per second. Lines that begin with `#` are comments, and so is what follows a column that does where runs
/// separate columns. The first row is headings where the column is named; in CSV also where it is a word.
///
/// # Errors
/// [`ObservationsError`].
///
/// # Examples
/// ```
/// use fwdlab_archive::{Column, Separators, parse_observations};
/// let table = b"block,pps\n1,833890\n2,834120.5\n";
/// let observations = parse_observations(table, &Column::of("pps"), &Separators::Csv)?;
/// let values: Vec<f64> = observations.iter().map(|observation| observation.value).collect();
/// assert_eq!(values, [833890.0, 834120.5]);
/// # Ok::<(), fwdlab_archive::ObservationsError>(())
/// ```
pub fn parse_observations(
    bytes: &[u8],
    column: &Column,
    separators: &Separators,
) -> Result<Vec<Observation>, ObservationsError> {
    let text = plain_text(bytes)?;
    let csv = |separator| CsvRows::new(text, separator, Some(b'#'));
    match separators {
        Separators::Blanks => observations(
            rows_of_runs(text, " \t"),
            column,
            false,
            Some(Ambiguous::Blanks),
        ),
        Separators::Runs(delimiters) => {
            observations(rows_of_runs(text, delimiters), column, false, None)
        }
        Separators::Csv => {
            let separator = csv_separator(text)?;
            let ambiguous = (separator == b',').then_some(Ambiguous::Comma);
            observations(csv(separator), column, true, ambiguous)
        }
        Separators::One(separator) => observations(csv(*separator), column, true, None),
    }
}

/// The lines of a text, in columns as C's `strtok` finds them.
fn rows_of_runs<'a>(
    text: &'a str,
    delimiters: &'a str,
) -> impl Iterator<Item = Result<Row, TextError>> + use<'a> {
    (1..).zip(text.split('\n')).filter_map(|(line, text)| {
        let columns = text
            .trim_end()
            .split(|character| delimiters.contains(character))
            .filter(|column| !column.is_empty());
        let cells: csv::StringRecord = columns
            .take_while(|column| !column.starts_with('#'))
            .collect();
        (!cells.is_empty()).then_some(Ok(Row { line, cells }))
    })
}

/// What may separate columns, or stand within one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ambiguous {
    /// They may be between thousands.
    Blanks,
    /// It may be between thousands, or that of a fraction.
    Comma,
}

impl Ambiguous {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Blanks => " ",
            Self::Comma => ",",
        }
    }
}

/// `ambiguous` is of a separator that nobody named.
fn observations(
    mut rows: impl Iterator<Item = Result<Row, TextError>>,
    column: &Column,
    is_csv: bool,
    ambiguous: Option<Ambiguous>,
) -> Result<Vec<Observation>, ObservationsError> {
    let head = rows.by_ref().take(2).collect::<Result<Vec<_>, _>>()?;
    let first = head.first().ok_or(ObservationsError::None)?;
    let is_named = matches!(column, Column::Named(_));
    let (column, has_headings) = match column {
        Column::Named(name) => (column_named(first, name)?, true),
        Column::Number(number) if is_csv => (*number, has_headings(first, head.get(1), *number)?),
        Column::Number(number) => (*number, false),
    };
    let need = first.cells.len();
    // Headings say that there are columns, and so does who asks for another one than the first.
    let ambiguous = ambiguous.filter(|_| !has_headings && column == 1);
    let mut observations: Vec<Observation> = Vec::new();
    let mut has_summary = None;
    let skipped = usize::from(has_headings);
    let factor = match first.cells.get(column.wrapping_sub(1)) {
        Some(heading) if has_headings => {
            unit_of(heading).ok_or_else(|| ObservationsError::NoRate {
                line: first.line,
                heading: shown(heading.trim()),
            })?
        }
        _ => 1.0,
    };
    for row in head.into_iter().map(Ok).chain(rows).skip(skipped) {
        let row = row?;
        let (line, have) = (row.line, row.cells.len());
        if has_headings && have != need {
            return Err(TextFault::Cells { need, have }.at(line).into());
        }
        if ambiguous.is_some_and(|separator| is_one_number(&row, separator)) {
            let between = ambiguous.map_or(" ", Ambiguous::as_str);
            let text = row.cells.iter().collect::<Vec<_>>().join(between);
            let text = shown(text.trim());
            return Err(ObservationsError::OneNumber { line, text });
        }
        let value = value_of(&row, column, factor)?;
        if let Some(unit) = unit_behind(&row, column) {
            return Err(ObservationsError::Unit {
                line,
                column: column + 1,
                unit: shown(unit),
            });
        }
        let name = row.cells.get(0).unwrap_or_default().trim();
        // Where the first row is called so, it is what the rows are of.
        has_summary.get_or_insert_with(|| !is_summary(name));
        if has_summary == Some(true) && is_summary(name) {
            let text = name.to_owned();
            return Err(ObservationsError::Summary { line, text });
        }
        observations.push(Observation { value, line });
    }
    if observations.is_empty() {
        return Err(ObservationsError::None);
    }
    if need > 1 && !is_named && counts_rows(&observations) {
        return Err(ObservationsError::Counter { column });
    }
    Ok(observations)
}

/// How many packets per second one of the unit in a heading is; 1 where it names none, and none where it is of something
/// else: `rate (Mpps)`, `ns/packet`.
fn unit_of(heading: &str) -> Option<f64> {
    let heading = heading.to_lowercase();
    let words = || heading.split(|character: char| !character.is_alphanumeric());
    let rate = words().find_map(|word| match word {
        "pps" => Some(1.0),
        "kpps" => Some(1e3),
        "mpps" => Some(1e6),
        "gpps" => Some(1e9),
        _ => None,
    });
    let is_other = |word: &str| {
        matches!(word, "nsec" | "usec" | "msec" | "latency" | "cycles")
            || (word.ends_with("bps") || word.ends_with("bit")) && word.len() <= 4
    };
    // `us` may be a place: it is a unit at the end, or where something is behind it that times are of.
    let mut pairs = words().zip(words().skip(1).chain([""]));
    let has_time = pairs.any(|(word, next)| {
        matches!(word, "ns" | "us" | "\u{b5}s" | "\u{3bc}s" | "ms")
            && matches!(next, "" | "per" | "packet" | "pkt" | "frame")
    });
    match rate {
        None if has_time || words().any(is_other) => None,
        rate => Some(rate.unwrap_or(1.0)),
    }
}

fn is_summary(cell: &str) -> bool {
    SUMMARIES
        .iter()
        .any(|summary| cell.eq_ignore_ascii_case(summary))
}

/// Whether the observations are 1, 2, 3 and so on.
fn counts_rows(observations: &[Observation]) -> bool {
    let numbers = (1_u32..).zip(observations);
    // Whole numbers are exact.
    let mut is_number = numbers.map(|(number, of)| of.value.total_cmp(&f64::from(number)).is_eq());
    observations.len() > 2 && is_number.all(|is_number| is_number)
}

fn column_named(headings: &Row, name: &str) -> Result<usize, ObservationsError> {
    let cells = || headings.cells.iter().map(str::trim);
    let mut found = (1..).zip(cells()).filter(|(_, heading)| *heading == name);
    match (found.next(), found.count()) {
        (Some((column, _)), 0) => Ok(column),
        (first, more) => Err(ObservationsError::NotOneColumn {
            line: headings.line,
            number: usize::from(first.is_some()) + more,
            name: shown(name),
            headings: cells().take(HEADINGS_SHOWN_MAX).map(shown).collect(),
        }),
    }
}

/// Whether the first row is headings.
fn has_headings(
    first: &Row,
    second: Option<&Row>,
    column: usize,
) -> Result<bool, ObservationsError> {
    let cell = column.checked_sub(1).and_then(|at| first.cells.get(at));
    let Some(cell) = cell.map(str::trim) else {
        return Ok(false);
    };
    if is_word(cell) {
        return Ok(true);
    }
    let below = second.iter().flat_map(|row| &row.cells);
    let mut columns = first.cells.iter().zip(below);
    let is_heading = |(above, below)| is_word(above) && number(below).is_some();
    // As years or numbers of runs do, and observations do not.
    let is_unlike = counts_up(first) && second.is_some_and(|row| !counts_up(row));
    if number(cell).is_some() && (is_unlike || columns.any(is_heading)) {
        return Err(ObservationsError::HeadingOrNumber {
            line: first.line,
            column,
            text: shown(cell),
        });
    }
    Ok(false)
}

/// Whether a row is whole numbers of which each is the next one: `2024,2025`.
fn counts_up(row: &Row) -> bool {
    let whole = row.cells.iter().map(|cell| cell.trim().parse::<u64>().ok());
    let whole: Option<Vec<u64>> = whole.collect();
    let is_next = |pair: &[u64]| pair[0].checked_add(1) == Some(pair[1]);
    whole.is_some_and(|row| row.len() > 1 && row.windows(2).all(is_next))
}

/// Whether this is a word: its first letter or digit is a letter, and it is no number as `inf` is one.
fn is_word(cell: &str) -> bool {
    let first = cell.chars().find(|character| character.is_alphanumeric());
    first.is_some_and(char::is_alphabetic) && number(cell).is_none()
}

fn number(cell: &str) -> Option<f64> {
    parse_number(cell.trim().as_bytes())
}

/// Whether the first two columns look like the digits of one number, whatever is behind them: `1 020 pps`, `-950,12`.
fn is_one_number(row: &Row, separator: Ambiguous) -> bool {
    let mut cells = row.cells.iter().map(str::trim);
    let (Some(first), Some(second)) = (cells.next(), cells.next()) else {
        return false;
    };
    let digits_of = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let is_digits = |text: &str| !text.is_empty() && digits_of(text) == text.len();
    let first = first.trim_start_matches(['+', '-']);
    match separator {
        Ambiguous::Blanks => is_digits(first) && first.len() <= 3 && digits_of(second) == 3,
        Ambiguous::Comma => {
            // Points may separate thousands where the comma is that of the fraction.
            let mut parts = first.split('.');
            parts.next().is_some_and(is_digits)
                && parts.all(|part| is_digits(part) && part.len() == 3)
                && digits_of(second) > 0
        }
    }
}

/// The column behind a number, where it is the number's unit: `Mpps` of `1.19 Mpps`.
fn unit_behind(row: &Row, column: usize) -> Option<&str> {
    let cell = row.cells.get(column)?.trim();
    let bare = cell.trim_start_matches(['k', 'K', 'm', 'M', 'g', 'G']);
    let is_unit = matches!(cell, "k" | "K" | "M" | "G")
        || UNITS.iter().any(|unit| bare.eq_ignore_ascii_case(unit));
    is_unit.then_some(cell)
}

/// `factor` is what one of the file's unit is in that of the answer.
fn value_of(row: &Row, column: usize, factor: f64) -> Result<f64, ObservationsError> {
    let (line, have) = (row.line, row.cells.len());
    let cell = column.checked_sub(1).and_then(|at| row.cells.get(at));
    let cell = cell.map(str::trim);
    let cell = cell.ok_or(ObservationsError::NoCell { line, column, have })?;
    let text = shown(cell);
    // As the lower digits of `1 012 033` are, where blanks separate thousands.
    if matches!(cell.as_bytes(), [b'0', b'0'..=b'9', ..]) {
        return Err(ObservationsError::NotANumber { line, column, text });
    }
    let value = number(cell).map(|value| value * factor);
    if let Some(value) = value.filter(|value| *value > 0.0 && value.is_finite()) {
        return Ok(value);
    }
    Err(match number(cell) {
        Some(_) => ObservationsError::NotPositive { line, column, text },
        None if cell.is_empty() => ObservationsError::Empty { line, column },
        None => ObservationsError::NotANumber { line, column, text },
    })
}

fn shown(text: &str) -> String {
    text.chars().take(CHARACTERS_SHOWN_MAX).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(
        text: &[u8],
        column: &str,
        separators: &Separators,
    ) -> Result<Vec<f64>, ObservationsError> {
        let observations = parse_observations(text, &Column::of(column), separators)?;
        Ok(observations
            .iter()
            .map(|observation| observation.value)
            .collect())
    }

    fn read(text: &str, column: &str, separators: &Separators) -> String {
        match values(text.as_bytes(), column, separators) {
            Ok(values) => format!("{values:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_first_row_that_counts_up_is_neither_heading_nor_observation() {
        let read = |text: &str| read(text, "2", &Separators::One(b','));
        assert_eq!(
            read("2024,2025\n833890,834120\n"),
            "line 1, column 2: \"2025\" may be a heading or an observation; give each column a heading with a letter, \
             or none"
        );
        assert_eq!(read("1,2\n2,3\n"), "[2.0, 3.0]");
        assert_eq!(read("833890,834120\n2024,2025\n"), "[834120.0, 2025.0]");
    }

    #[test]
    fn a_column_is_found_by_number_and_by_name() {
        use Separators::{Blanks, Csv, One, Runs};
        for (text, column, separators, expected) in [
            ("1\n2.5\n", "1", Blanks, "[1.0, 2.5]"),
            ("\u{feff}1\r\n\r\n2.5 # x\r\n", "1", Blanks, "[1.0, 2.5]"),
            ("a 1\nb \t2\n", "2", Blanks, "[1.0, 2.0]"),
            ("# x\nname pps\na 1\n", "pps", Blanks, "[1.0]"),
            ("a,;1\nb;2\n", "2", Runs(",;".to_owned()), "[1.0, 2.0]"),
            ("\u{feff}n,\"pps\"\n1,7\n2, 8\n", "pps", Csv, "[7.0, 8.0]"),
            ("n;pps\n\"a;b\";7\n", "2", Csv, "[7.0]"),
            ("n\tpps\r\n1\t7\r\n", "pps", Csv, "[7.0]"),
            ("pps\n7\n8", "1", Csv, "[7.0, 8.0]"),
            ("7\n8", "1", Csv, "[7.0, 8.0]"),
            ("a,7\nb,8\n", "2", Csv, "[7.0, 8.0]"),
            ("1,7\n2,8\n", "2", Csv, "[7.0, 8.0]"),
            ("1,020\n1,021\n", "1", One(b','), "[1.0, 1.0]"),
            ("1,20\n1,21\n", "2", Csv, "[20.0, 21.0]"),
            ("n,Mpps\n1,1.5\n2,0.75\n", "2", Csv, "[1500000.0, 750000.0]"),
            ("rate (kpps)\n950\n", "1", Csv, "[950000.0]"),
            ("ns pps_out\n1 950\n", "pps_out", Blanks, "[950.0]"),
            ("n,max\n1,950\n", "max", Csv, "[950.0]"),
            ("1,7\n2,7\n3,7\n", "2", Csv, "[7.0, 7.0, 7.0]"),
            ("1\n2\n3\n", "1", Blanks, "[1.0, 2.0, 3.0]"),
            ("14 a\n15 a\n16 b\n", "1", Blanks, "[14.0, 15.0, 16.0]"),
            ("n,pps\n7,1\n7,2\n7,3\n", "pps", Csv, "[1.0, 2.0, 3.0]"),
            ("load,pps\nmin,950\nmax,960\n", "2", Csv, "[950.0, 960.0]"),
            ("pps,note\n950,max\n", "1", Csv, "[950.0]"),
            ("rate us-east\n950\n", "1", Csv, "[950.0]"),
            ("a|7\nb|8\n", "2", One(b'|'), "[7.0, 8.0]"),
            ("1.5 300\n1020 300 Mon\n", "1", Blanks, "[1.5, 1020.0]"),
        ] {
            assert_eq!(read(text, column, &separators), expected, "{text:?}");
        }
    }

    #[test]
    fn what_may_be_read_otherwise_is_refused_with_line_and_column() {
        use Separators::{Blanks, Csv};
        let refusals: Vec<String> = [
            ("name,old,new\nr1,150,152\nr2,,151\n", "old", Csv),
            ("pps\n1,020,033\n", "1", Csv),
            ("1,020,033.5\n1,020,034.5\n", "1", Csv),
            ("1 020 033\n", "1", Blanks),
            ("950,12\n951,4\n", "1", Csv),
            ("950,12;1\n951,40;1\n", "1", Csv),
            (" +920, 033 pps,x\n", "1", Csv),
            ("1.020,5\n", "1", Csv),
            ("920 033 pps\n", "1", Blanks),
            ("920 033,5\n", "1", Blanks),
            ("1.19 Mpps\n998 Kpps\n", "1", Blanks),
            ("a 1.19 M\n", "2", Blanks),
            ("rate,unit\n1.19,mbps\n", "1", Csv),
            ("100pps\n101pps\n", "1", Csv),
            ("pps\n950,12\n", "1", Csv),
            ("pps;n\n950,12;1\n", "pps", Csv),
            ("pps\n1'020'033\n", "1", Csv),
            ("pps\n1\u{202f}020\n", "1", Csv),
            ("pps\n12 Mpps\n", "1", Csv),
            ("(12)\n13\n", "1", Csv),
            ("-\n1\n", "1", Csv),
            ("block,64,1500\n1,833890,81274\n", "2", Csv),
            ("n,pps\n1,7\n", "mpps", Csv),
            ("pps,pps\n1,7\n", "pps", Csv),
            ("n,pps\n1,7\n", "3", Csv),
            ("n,pps\n1,7\n", "0", Csv),
            ("a 1\nb\n", "2", Blanks),
            ("name pps\nmy run 7\n", "pps", Blanks),
            ("1\nx\n", "1", Blanks),
            ("1\n\n0\n", "1", Blanks),
            ("pps\n-1e3\n", "1", Csv),
            ("nan\n1\n", "1", Csv),
            ("1\n1e999\n", "1", Blanks),
            ("1 012 033\n", "2", Blanks),
            ("run,latency_ns\n1,950\n", "2", Csv),
            ("run,ns/packet\n1,950\n", "2", Csv),
            ("run,Gbit/s\n1,9.5\n", "2", Csv),
            ("run,Mbps\n1,9.5\n", "Mbps", Csv),
            ("run,pps\n1,950\n2,951\n3,960\n", "1", Csv),
            ("1 9500\n2 9510\n3 9600\n", "1", Blanks),
            ("run,pps\n1,950\n2,952\nMean,951\n", "2", Csv),
            ("r1 950\nr2 952\nstddev 1.4\n", "2", Blanks),
            ("# none\n", "1", Blanks),
            ("pps\n", "1", Csv),
            ("", "pps", Csv),
        ]
        .map(|(text, column, separators)| read(text, column, &separators))
        .into();
        insta::assert_snapshot!(refusals.join("\n"), @r#"
line 3, column 2: an empty cell; leave the row out, or --column chooses another one
line 2: the first line has 1 cell, this one 3; give as many
line 1: "1,020,033.5" may be one number or several columns; write numbers as 1020033.5, or name what separates columns (--delimiters)
line 1: "1 020 033" may be one number or several columns; write numbers as 1020033.5, or name what separates columns (--delimiters)
line 1: "950,12" may be one number or several columns; write numbers as 1020033.5, or name what separates columns (--delimiters)
line 1: commas and semicolons outside of quotes: either may separate cells; quote the cells that hold one of them
line 1: "+920, 033 pps,x" may be one number or several columns; write numbers as 1020033.5, or name what separates columns (--delimiters)
line 1: "1.020,5" may be one number or several columns; write numbers as 1020033.5, or name what separates columns (--delimiters)
line 1: "920 033 pps" may be one number or several columns; write numbers as 1020033.5, or name what separates columns (--delimiters)
line 1: "920 033,5" may be one number or several columns; write numbers as 1020033.5, or name what separates columns (--delimiters)
line 1, column 2: "Mpps" is the unit of the number before it; write all numbers in one unit, without it
line 1, column 3: "M" is the unit of the number before it; write all numbers in one unit, without it
line 2, column 2: "mbps" is the unit of the number before it; write all numbers in one unit, without it
line 1, column 1: "100pps" is no plain number like 1020033.5; --column chooses another one
line 2: the first line has 1 cell, this one 2; give as many
line 2, column 1: "950,12" is no plain number like 1020033.5; --column chooses another one
line 2, column 1: "1'020'033" is no plain number like 1020033.5; --column chooses another one
line 2, column 1: "1\u{202f}020" is no plain number like 1020033.5; --column chooses another one
line 2, column 1: "12 Mpps" is no plain number like 1020033.5; --column chooses another one
line 1, column 1: "(12)" is no plain number like 1020033.5; --column chooses another one
line 1, column 1: "-" is no plain number like 1020033.5; --column chooses another one
line 1, column 2: "64" may be a heading or an observation; give each column a heading with a letter, or none
line 1: no column is called "mpps"; it has n, pps
line 1: 2 columns are called "pps"; it has pps, pps
line 1: no column 3 (it has 2); --column chooses another one
line 1: no column is called "0"; it has n, pps
line 2: no column 2 (it has 1); --column chooses another one
line 2: the first line has 2 cells, this one 3; give as many
line 2, column 1: "x" is no plain number like 1020033.5; --column chooses another one
line 3, column 1: 0 is no rate above 0; leave the row out
line 2, column 1: -1e3 is no rate above 0; leave the row out
line 1, column 1: nan is no rate above 0; leave the row out
line 2, column 1: 1e999 is no rate above 0; leave the row out
line 1, column 2: "012" is no plain number like 1020033.5; --column chooses another one
line 1: the column "latency_ns" holds no packets per second; --column chooses another one, and `fwdlab ministat` compares numbers of any unit
line 1: the column "ns/packet" holds no packets per second; --column chooses another one, and `fwdlab ministat` compares numbers of any unit
line 1: the column "Gbit/s" holds no packets per second; --column chooses another one, and `fwdlab ministat` compares numbers of any unit
line 1: the column "Mbps" holds no packets per second; --column chooses another one, and `fwdlab ministat` compares numbers of any unit
column 1 counts the rows; --column chooses another one
column 1 counts the rows; --column chooses another one
line 4: the row "Mean" sums up others, and is no observation; leave it out
line 3: the row "stddev" sums up others, and is no observation; leave it out
no number in it; give a file of observations
no number in it; give a file of observations
no number in it; give a file of observations
"#);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            bytes: Vec<u8>,
            name: String,
            number in 0_usize..5,
            delimiters: String,
            separator in 0_u8..128,
        ) {
            for column in [Column::of(&name), Column::Number(number)] {
                for separators in [
                    Separators::Blanks,
                    Separators::Csv,
                    Separators::Runs(delimiters.clone()),
                    Separators::One(separator),
                ] {
                    let read = parse_observations(&bytes, &column, &separators);
                    prop_assert!(read.is_err() || read.is_ok_and(|read| !read.is_empty()));
                }
            }
        }

        /// Whatever the cells of the other columns hold, and whatever separates them.
        #[test]
        fn written_columns_are_read_back(
            rows in prop::collection::vec((".{0,6}", 1e-9..1e9_f64, "[ ,;\t\"a1]{0,6}"), 1..20),
            separator in prop::sample::select(vec![b',', b';', b'\t']),
        ) {
            let one_line = |cell: &str| cell.replace(['\n', '\r', '\0'], " ");
            let mut writer = csv::WriterBuilder::new().delimiter(separator).from_writer(Vec::new());
            writer.write_record(["first", "second", "third"]).unwrap();
            for (first, second, third) in &rows {
                // One that looks like a comment is quoted by no writer that does not know of comments.
                let first = format!("_{}", one_line(first));
                writer.write_record([first, second.to_string(), third.clone()]).unwrap();
            }
            let text = writer.into_inner().unwrap();
            let expected: Vec<f64> = rows.iter().map(|row| row.1).collect();
            prop_assert_eq!(values(&text, "second", &Separators::Csv).unwrap(), expected.clone());
            prop_assert_eq!(values(&text, "2", &Separators::One(separator)).unwrap(), expected);
        }
    }
}
