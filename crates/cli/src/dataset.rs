//! Observations from files that others wrote: numbers in lines, or in a column of a table.

use std::fs;
use std::path::Path;

use fwdlab_stats::ministat::parse_points;

use crate::exit::WrongArguments;

const BLANKS: &str = " \t";
const CSV_SEPARATORS: &str = ",;\t";

/// Which column of a file holds the observations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// Counted from 1.
    Number(usize),
    /// The one under this heading.
    Named(String),
}

impl Column {
    pub(crate) fn of(text: &str) -> Self {
        match text.parse() {
            Ok(number) if number > 0 => Self::Number(number),
            _ => Self::Named(text.to_owned()),
        }
    }
}

/// The observations in a file.
pub(crate) fn read(
    path: &Path,
    column: &Column,
    delimiters: Option<&str>,
) -> anyhow::Result<Vec<f64>> {
    let bytes = fs::read(path)
        .map_err(|error| WrongArguments(format!("{}: cannot be read ({error})", path.display())))?;
    let is_csv = path.extension().is_some_and(|extension| extension == "csv");
    let delimiters = delimiters.unwrap_or(if is_csv { CSV_SEPARATORS } else { BLANKS });
    let observations = numbers(&bytes, column, delimiters.as_bytes(), is_csv);
    Ok(observations.map_err(|what| WrongArguments(format!("{}: {what}", path.display())))?)
}

/// The numbers of a column, or what is wrong with it.
fn numbers(
    bytes: &[u8],
    column: &Column,
    delimiters: &[u8],
    is_csv: bool,
) -> Result<Vec<f64>, String> {
    let first_end = bytes
        .iter()
        .position(|&byte| byte == b'\n')
        .map_or(bytes.len(), |end| end + 1);
    let (first, rest) = bytes.split_at(first_end);
    let headings: Vec<String> = first
        .split(|byte| delimiters.contains(byte))
        .map(|heading| {
            String::from_utf8_lossy(heading)
                .trim()
                .trim_matches('"')
                .to_owned()
        })
        .collect();
    let (number, has_headings) = match column {
        Column::Number(number) => {
            let heading = headings.get(number - 1);
            let is_number = |text: &String| parse_points(text.as_bytes(), 1, b"\n").is_ok();
            (*number, is_csv && !heading.is_some_and(is_number))
        }
        Column::Named(name) => {
            let place = headings.iter().position(|heading| heading == name);
            let place = place.ok_or_else(|| {
                format!(
                    "its first line has no column {name:?}; it has {}",
                    headings.join(", ")
                )
            })?;
            (place + 1, true)
        }
    };
    let (skipped, text) = if has_headings { (1, rest) } else { (0, bytes) };
    let points = parse_points(text, number, delimiters).map_err(|line| {
        let line = line + skipped;
        let text = bytes.split(|&byte| byte == b'\n').nth(line - 1);
        let text = text.map_or_else(String::new, |text| {
            String::from_utf8_lossy(text)
                .trim()
                .chars()
                .take(40)
                .collect()
        });
        format!(
            "line {line}: column {number} is not a number ({text:?}); --column chooses another one"
        )
    })?;
    if points.is_empty() {
        return Err(format!(
            "no number in column {number}; give a file of observations"
        ));
    }
    Ok(points)
}
