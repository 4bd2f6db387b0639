//! `.data`: what gnuplot is given, a row for each configuration.

/// A table of keys and numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The names of the columns, where a comment in front of the rows gives them.
    pub headings: Vec<String>,
    /// How many columns, counted from the right, are numbers.
    pub number_columns: usize,
    /// The rows, in order.
    pub rows: Vec<Row>,
    /// The other comments.
    pub comments: Vec<Comment>,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The line, from 1.
    pub line: usize,
    /// What is measured, quotes taken off; escapes like `\n` stand as they are.
    pub keys: Vec<String>,
    /// How many of the keys, counted from the left, are not printed here but taken over from the row
    /// above: those of a group, which only its first row has.
    pub inherited_keys: usize,
    /// The numbers: median, minimum and maximum, in packets per second or Mb/s, unless the headings name
    /// others.
    pub numbers: Vec<f64>,
}

/// A comment, which may be a row that somebody took out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// The line, from 1.
    pub line: usize,
    /// What it says behind its `#`; bytes that are no UTF-8 are replaced.
    pub text: String,
}

/// Why a text is no table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A quote has no end.
    #[error("line {line}: a quote without an end; close it")]
    Open {
        /// The line, from 1.
        line: usize,
    },
    /// There are fewer columns than numbers.
    #[error("line {line}: {columns} columns, where {numbers} numbers are due; complete the row")]
    Short {
        /// The line, from 1.
        line: usize,
        /// How many it has.
        columns: usize,
        /// How many of them have to be numbers.
        numbers: usize,
    },
    /// A cell that has to be a number holds something else.
    #[error("line {line}: column {column} is not a number ({text:?}); give one")]
    NotANumber {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// How the cell begins.
        text: String,
    },
}

/// What headings call columns of numbers.
const NUMBERS: &[&str] = &[
    "median", "minimum", "maximum", "min", "max", "average", "avg", "mean", "stddev",
];

impl Table {
    /// Reads a table.
    ///
    /// Which columns are numbers is said by the headings, which end with `median minimum maximum` or the
    /// like. Without such, the last three are where all rows have a median between a minimum and a
    /// maximum there; otherwise all columns from the last that is no number in some row, but for a first
    /// one, of which gnuplot makes the horizontal axis. Whatever stands in front of them is a key.
    ///
    /// Shape: the bytes of the file; columns stand between blanks or tabs, and in double quotes where they
    /// hold some; a line whose first letter is `#` is a comment. Units: those of the file.
    ///
    /// # Errors
    /// [`TableError`], with a line.
    ///
    /// # Examples
    /// ```
    /// use fwdlab_netbenches::Table;
    /// let table = Table::parse(b"#index median minimum maximum\ninet4 5490 5413 5621\n")?;
    /// assert_eq!((table.rows[0].keys[0].as_str(), table.rows[0].numbers[1]), ("inet4", 5413.0));
    /// # Ok::<(), fwdlab_netbenches::TableError>(())
    /// ```
    pub fn parse(text: &[u8]) -> Result<Self, TableError> {
        let mut table = Self::default();
        let mut lines = Vec::new();
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let (number, text) = (index + 1, String::from_utf8_lossy(line.trim_ascii()));
            if let Some(comment) = text.strip_prefix('#') {
                let headings: Vec<_> = comment
                    .split_ascii_whitespace()
                    .map(str::to_owned)
                    .collect();
                if table.headings.is_empty() && lines.is_empty() && numbers_named(&headings) > 0 {
                    table.headings = headings;
                } else {
                    let text = comment.trim().to_owned();
                    table.comments.push(Comment { line: number, text });
                }
            } else if !text.is_empty() {
                let cells = cells(&text).ok_or(TableError::Open { line: number })?;
                lines.push(Line { number, cells });
            }
        }
        table.number_columns = match numbers_named(&table.headings) {
            0 => numbers_found(&lines),
            named => named,
        };
        for line in lines {
            let row = line.row(table.number_columns, table.rows.last())?;
            table.rows.push(row);
        }
        Ok(table)
    }
}

/// A line that is no comment.
struct Line {
    number: usize,
    cells: Vec<Cell>,
}

/// What stands in a column.
struct Cell {
    text: String,
    /// What it is worth; nothing in quotes is a number.
    number: Option<f64>,
}

impl Line {
    fn row(self, numbers: usize, above: Option<&Row>) -> Result<Row, TableError> {
        let (line, columns) = (self.number, self.cells.len());
        let key_columns = columns.checked_sub(numbers).ok_or(TableError::Short {
            line,
            columns,
            numbers,
        })?;
        let mut row = Row {
            line,
            keys: Vec::new(),
            inherited_keys: 0,
            numbers: Vec::new(),
        };
        if let Some(above) = above.filter(|_| key_columns > 0) {
            row.inherited_keys = above.keys.len().saturating_sub(key_columns);
            row.keys
                .extend_from_slice(&above.keys[..row.inherited_keys]);
        }
        for (index, cell) in self.cells.into_iter().enumerate() {
            if index < key_columns {
                row.keys.push(cell.text);
            } else {
                row.numbers
                    .push(cell.number.ok_or_else(|| TableError::NotANumber {
                        line,
                        column: index + 1,
                        text: cell.text.chars().take(40).collect(),
                    })?);
            }
        }
        Ok(row)
    }

    fn last_numbers(&self) -> impl Iterator<Item = f64> {
        self.cells.iter().rev().map_while(|cell| cell.number)
    }
}

/// How many columns in the end headings name as numbers.
fn numbers_named(headings: &[String]) -> usize {
    let is_number = |heading: &&String| NUMBERS.contains(&heading.to_ascii_lowercase().as_str());
    headings.iter().rev().take_while(is_number).count()
}

/// How many columns in the end are numbers, as far as the rows tell.
fn numbers_found(lines: &[Line]) -> usize {
    let is_median = |line: &Line| {
        let last: Vec<f64> = line.last_numbers().take(3).collect();
        matches!(*last, [maximum, minimum, median] if minimum <= median && median <= maximum)
    };
    if !lines.is_empty() && lines.iter().all(is_median) {
        return 3;
    }
    let Some(numbers) = lines.iter().map(|line| line.last_numbers().count()).min() else {
        return 0;
    };
    let is_full = numbers > 1 && lines.iter().all(|line| line.cells.len() == numbers);
    // A row without any number is told by its line.
    if is_full { numbers - 1 } else { numbers.max(1) }
}

/// The cells of a line; `None` where a quote has no end.
fn cells(text: &str) -> Option<Vec<Cell>> {
    let mut cells = Vec::new();
    let mut rest = text.trim_ascii_start();
    while !rest.is_empty() {
        let (text, number, after) = if let Some(quoted) = rest.strip_prefix('"') {
            let (text, after) = quoted.split_once('"')?;
            (text, None, after)
        } else {
            let end = rest.find(|letter: char| letter.is_ascii_whitespace());
            let (text, after) = rest.split_at(end.unwrap_or(rest.len()));
            (text, number(text), after)
        };
        cells.push(Cell {
            text: text.to_owned(),
            number,
        });
        rest = after.trim_ascii_start();
    }
    Some(cells)
}

/// A number as `awk` and `ministat` print it; words like `inf` are keys.
fn number(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let begins_well = digits
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| begins_well)?;
    Some(number).filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The rows as `line keys: numbers`, with a mark for keys that are taken over.
    fn read(text: &str) -> Vec<String> {
        let table = match Table::parse(text.as_bytes()) {
            Ok(table) => table,
            Err(error) => return vec![error.to_string()],
        };
        let shown = table.rows.iter().map(|row| {
            let keys = row.keys.iter().enumerate();
            let keys: Vec<String> = keys
                .map(|(place, key)| {
                    if place < row.inherited_keys {
                        format!("({key})")
                    } else {
                        key.clone()
                    }
                })
                .collect();
            format!("{} {}: {:?}", row.line, keys.join(","), row.numbers)
        });
        shown.collect()
    }

    #[test]
    fn headings_say_which_columns_are_numbers() {
        for heading in [
            "#index median minimum maximum",
            "# (revision)\tmedian\tminimum\t\tmaximum",
            "#config-set revision key median minimum maximum\r",
        ] {
            assert_eq!(
                read(&format!("{heading}\n\n287478 5 4 6\nx\t5.5  4\t6\n1 2 3\n")),
                [
                    "3 287478: [5.0, 4.0, 6.0]",
                    "4 x: [5.5, 4.0, 6.0]",
                    "5 : [1.0, 2.0, 3.0]"
                ]
            );
        }
        assert_eq!(read("#index median\nx 1\n"), ["2 x: [1.0]"]);
    }

    #[test]
    fn without_headings_the_rows_say_it() {
        for (text, expected) in [
            ("inet4 5 4 6\n1 5 4 6", "1 inet4: [5.0, 4.0, 6.0]"),
            ("4 5 4 6", "1 4: [5.0, 4.0, 6.0]"),
            ("5 4 6", "1 : [5.0, 4.0, 6.0]"),
            ("378\n376", "1 : [378.0]"),
            ("1 378\n2 376", "1 1: [378.0]"),
            ("a 7 8", "1 a: [7.0, 8.0]"),
            ("1 2 3 4", "1 1: [2.0, 3.0, 4.0]"),
            (
                "a 1\nb c",
                "line 2: column 2 is not a number (\"c\"); give one",
            ),
        ] {
            assert_eq!(read(text)[0], expected, "{text}");
        }
        assert_eq!(Table::parse(b" \n").unwrap(), Table::default());
    }

    #[test]
    fn the_rows_of_a_group_share_its_key() {
        assert_eq!(
            read(
                "#key median minimum maximum\nfast 295150 5 4 6\n295150mbuf 5 4 6\npf 295150 5 4 6\n"
            ),
            [
                "2 fast,295150: [5.0, 4.0, 6.0]",
                "3 (fast),295150mbuf: [5.0, 4.0, 6.0]",
                "4 pf,295150: [5.0, 4.0, 6.0]"
            ]
        );
    }

    #[test]
    fn quotes_hold_keys_together_and_comments_are_kept() {
        let text = "#index median minimum maximum\n#9 5 4 6\n\"IPsec VTI\\naes\" 0.5 0.4 0.6\n # later\n\"7\" 5 4 6";
        assert_eq!(
            read(text),
            ["3 IPsec VTI\\naes: [0.5, 0.4, 0.6]", "5 7: [5.0, 4.0, 6.0]"]
        );
        let comments = Table::parse(text.as_bytes()).unwrap().comments;
        let comments: Vec<_> = comments
            .iter()
            .map(|comment| (comment.line, comment.text.as_str()))
            .collect();
        assert_eq!(comments, [(2, "9 5 4 6"), (4, "later")]);
    }

    #[test]
    fn rows_that_are_none_are_refused_with_their_line() {
        let heading = "#index median minimum maximum\n";
        for (row, message) in [
            (
                "x 1 2",
                "line 2: column 1 is not a number (\"x\"); give one",
            ),
            (
                "1 2",
                "line 2: 2 columns, where 3 numbers are due; complete the row",
            ),
            ("\"x 1 2 3", "line 2: a quote without an end; close it"),
            (
                "x 1 inf 3",
                "line 2: column 3 is not a number (\"inf\"); give one",
            ),
            (
                "x 1 \"2\" 3",
                "line 2: column 3 is not a number (\"2\"); give one",
            ),
        ] {
            assert_eq!(read(&format!("{heading}{row}\n")), [message]);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, text in "[#a1. \"\n\t]{0,40}") {
            for text in [&bytes, text.as_bytes()] {
                if let Ok(table) = Table::parse(text) {
                    prop_assert!(table.rows.iter().all(|row| row.numbers.len() == table.number_columns));
                }
            }
        }

        #[test]
        fn written_rows_are_read_back(
            rows in prop::collection::vec(("[a-z .#]{0,9}", 0.0..1e9_f64, 0.0..1e9_f64, 0.0..1e9_f64), 1..20),
            has_headings: bool,
        ) {
            let mut text = String::from(if has_headings { "#index median minimum maximum\n" } else { "" });
            let mut written = Vec::new();
            for (key, a, b, c) in rows {
                let mut sorted = [a, b, c];
                sorted.sort_by(f64::total_cmp);
                let [minimum, median, maximum] = sorted;
                text += &format!("\"{key}\" {median} {minimum}\t{maximum}\n");
                written.push((vec![key], vec![median, minimum, maximum]));
            }
            let table = Table::parse(text.as_bytes()).unwrap();
            let read: Vec<_> = table.rows.into_iter().map(|row| (row.keys, row.numbers)).collect();
            prop_assert_eq!(read, written);
        }
    }
}
