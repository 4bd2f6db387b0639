//! Observations from files that others wrote: numbers in lines, or in a column of a table.

use fwdlab_stats::ministat::parse_points;

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

/// What keeps a file from being read as observations.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObservationsError {
    /// No heading is the one that was asked for.
    #[error("its first line has no column {name:?}; it has {}", present.join(", "))]
    NoColumn {
        /// The heading asked for.
        name: String,
        /// Those that there are.
        present: Vec<String>,
    },
    /// A cell holds something else.
    #[error(
        "line {line}: column {column} is not a number ({text:?}); --column chooses another one"
    )]
    NotANumber {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// How the line begins.
        text: String,
    },
    /// There are lines, but no number in that column.
    #[error("no number in column {column}; give a file of observations")]
    None {
        /// The column, from 1.
        column: usize,
    },
}

/// The numbers in a column of a file, in order.
///
/// Shape: one or more. Columns stand between runs of `delimiters`; comments begin with `#`. The first
/// line is headings where the column is named, or where `may_have_headings` and that column of it is
/// no number.
///
/// # Errors
/// [`ObservationsError`].
///
/// # Examples
/// ```
/// use fwdlab_archive::{Column, parse_observations};
/// let table = b"block,pps\n1,833890\n2,834120.5\n";
/// let observations = parse_observations(table, &Column::of("pps"), b",", true)?;
/// assert_eq!(observations, [833890.0, 834120.5]);
/// # Ok::<(), fwdlab_archive::ObservationsError>(())
/// ```
pub fn parse_observations(
    bytes: &[u8],
    column: &Column,
    delimiters: &[u8],
    may_have_headings: bool,
) -> Result<Vec<f64>, ObservationsError> {
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
            let heading = number.checked_sub(1).and_then(|at| headings.get(at));
            let is_number = |text: &String| parse_points(text.as_bytes(), 1, b"\n").is_ok();
            (
                *number,
                may_have_headings && !heading.is_some_and(is_number),
            )
        }
        Column::Named(name) => match headings.iter().position(|heading| heading == name) {
            Some(place) => (place + 1, true),
            None => {
                return Err(ObservationsError::NoColumn {
                    name: name.clone(),
                    present: headings,
                });
            }
        },
    };
    let (skipped, text) = if has_headings { (1, rest) } else { (0, bytes) };
    let points = parse_points(text, number, delimiters).map_err(|line| {
        let line = line + skipped;
        let text = bytes.split(|&byte| byte == b'\n').nth(line - 1);
        ObservationsError::NotANumber {
            line,
            column: number,
            text: text.map_or_else(String::new, |text| {
                String::from_utf8_lossy(text)
                    .trim()
                    .chars()
                    .take(40)
                    .collect()
            }),
        }
    })?;
    if points.is_empty() {
        return Err(ObservationsError::None { column: number });
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str, column: &str, delimiters: &str, may_have_headings: bool) -> String {
        let column = Column::of(column);
        match parse_observations(
            text.as_bytes(),
            &column,
            delimiters.as_bytes(),
            may_have_headings,
        ) {
            Ok(observations) => format!("{observations:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_column_is_found_by_number_and_by_name() {
        for (text, column, delimiters, may_have_headings, expected) in [
            ("1\n2.5\n", "1", " \t", false, "[1.0, 2.5]"),
            ("a 1\nb 2\n", "2", " \t", false, "[1.0, 2.0]"),
            ("n,\"pps\"\n1,7\n2,8\n", "pps", ",", true, "[7.0, 8.0]"),
            ("n,pps\n1,7\n2,8\n", "2", ",", true, "[7.0, 8.0]"),
            ("1,7\n2,8\n", "2", ",", true, "[7.0, 8.0]"),
            (
                "n,pps\n1,7\n",
                "0",
                ",",
                true,
                "its first line has no column \"0\"; it has n, pps",
            ),
            (
                "n,pps\n1,7\n2,x\n",
                "2",
                ",",
                true,
                "line 3: column 2 is not a number (\"2,x\"); --column chooses another one",
            ),
            (
                "# none\n",
                "1",
                " ",
                false,
                "no number in column 1; give a file of observations",
            ),
        ] {
            assert_eq!(
                read(text, column, delimiters, may_have_headings),
                expected,
                "{text:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            bytes: Vec<u8>,
            name: String,
            number in 0_usize..5,
            delimiters: Vec<u8>,
            may_have_headings: bool,
        ) {
            for column in [Column::of(&name), Column::Number(number)] {
                let read = parse_observations(&bytes, &column, &delimiters, may_have_headings);
                prop_assert!(read.is_err() || read.is_ok_and(|points| !points.is_empty()));
            }
        }

        #[test]
        fn written_columns_are_read_back(rows in prop::collection::vec((-1e9..1e9_f64, -1e9..1e9_f64), 1..20)) {
            let mut text = "first,second\n".to_owned();
            for (first, second) in &rows {
                text += &format!("{first},{second}\n");
            }
            let read = parse_observations(text.as_bytes(), &Column::of("second"), b",", true);
            let expected: Vec<f64> = rows.iter().map(|row| row.1).collect();
            prop_assert_eq!(read.unwrap(), expected);
        }
    }
}
