//! Text that others wrote, and the rows of CSV in it.

/// What separates the cells of a CSV text, where its first row has one of these.
const SEPARATORS: [(char, &str); 3] = [(',', "commas"), (';', "semicolons"), ('\t', "tabs")];

/// What keeps bytes from being read as text, or text as CSV.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct TextError {
    /// From 1.
    pub line: usize,
    /// What is wrong there.
    pub fault: TextFault,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextFault {
    /// It begins with a byte order mark of UTF-16.
    #[error("it is UTF-16; save it as UTF-8")]
    Utf16,
    /// It holds a byte that no text has.
    #[error("a NUL byte, as UTF-16 and binary files have; save it as UTF-8 text")]
    Nul,
    /// It is in another encoding.
    #[error("not UTF-8 text; save it as such")]
    NotUtf8,
    /// Two characters may separate the cells.
    #[error(
        "{one} and {other} outside of quotes: either may separate cells; quote the cells that hold one of them"
    )]
    TwoSeparators {
        /// The one, in the plural.
        one: &'static str,
        /// The other.
        other: &'static str,
    },
    /// A quote that is not closed swallows the rows below it.
    #[error("a quoted cell goes on beyond its line; close the quote")]
    LineBreak,
    /// A row that lacks its cells, or another table.
    #[error("an empty line between rows; leave it out, or give its cells")]
    EmptyLine,
    /// Cells cannot be assigned to columns.
    #[error("the first line has {need} cell{}, this one {have}; give as many", if *need == 1 { "" } else { "s" })]
    Cells {
        /// How many the first row has.
        need: usize,
        /// How many there are.
        have: usize,
    },
}

impl TextFault {
    pub(crate) const fn at(self, line: usize) -> TextError {
        TextError { line, fault: self }
    }
}

/// The bytes as text, without a byte order mark.
///
/// # Errors
/// [`TextFault::Utf16`], [`TextFault::Nul`], [`TextFault::NotUtf8`].
pub fn plain_text(bytes: &[u8]) -> Result<&str, TextError> {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(TextFault::Utf16.at(1));
    }
    let line_of = |at: usize| 1 + bytes[..at].iter().filter(|byte| **byte == b'\n').count();
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        return Err(TextFault::Nul.at(line_of(at)));
    }
    let text = str::from_utf8(bytes)
        .map_err(|error| TextFault::NotUtf8.at(line_of(error.valid_up_to())))?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// The separator of a CSV text with comments (`#`): the comma, semicolon or tab in its first row; a comma where there
/// is none of them.
///
/// # Errors
/// [`TextFault::TwoSeparators`].
pub fn csv_separator(text: &str) -> Result<u8, TextError> {
    let mut lines = (1..).zip(text.lines());
    let Some((line, first)) = lines.find(|(_, line)| !line.is_empty() && !line.starts_with('#'))
    else {
        return Ok(b',');
    };
    // A doubled quote inside of quotes ends one part and begins the next.
    let outside: Vec<&str> = first.split('"').step_by(2).collect();
    let mut found = SEPARATORS
        .iter()
        .filter(|(separator, _)| outside.iter().any(|part| part.contains(*separator)));
    match (found.next(), found.next()) {
        (Some((_, one)), Some((_, other))) => Err(TextFault::TwoSeparators { one, other }.at(line)),
        (Some((separator, _)), None) => Ok(*separator as u8),
        (None, _) => Ok(b','),
    }
}

/// A row of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Where it stands, from 1.
    pub line: usize,
    /// Its cells, with the blanks around them.
    pub cells: csv::StringRecord,
}

/// The rows of a CSV text (RFC 4180), each in one line and with as many cells as the first; the first error is the end.
///
/// # Examples
/// ```
/// use fwdlab_archive::CsvRows;
/// let rows = CsvRows::new("name,pps\n# as published\n\"a, b\",151\n", b',', Some(b'#'));
/// let rows = rows.collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(rows[1].cells, vec!["a, b", "151"]);
/// assert_eq!(rows[1].line, 3);
/// # Ok::<(), fwdlab_archive::TextError>(())
/// ```
#[derive(Debug)]
pub struct CsvRows<'a> {
    text: &'a str,
    reader: csv::Reader<&'a [u8]>,
    comment: Option<u8>,
    /// Where the last row ends: the byte, and its line.
    end: usize,
    line: usize,
    /// How many cells the first row has.
    cells: Option<usize>,
    has_failed: bool,
}

impl<'a> CsvRows<'a> {
    /// The rows of a text with this separator, an ASCII character; lines that begin with `comment` are passed over.
    #[must_use]
    pub fn new(text: &'a str, separator: u8, comment: Option<u8>) -> Self {
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(separator)
            .comment(comment)
            .from_reader(text.as_bytes());
        Self {
            text,
            reader,
            comment,
            end: 0,
            line: 1,
            cells: None,
            has_failed: false,
        }
    }

    /// The row that was just read, checked; none of a comment that ends the text.
    fn checked(&mut self, cells: csv::StringRecord) -> Result<Option<Row>, TextError> {
        let (before, mut rest) = self.text.split_at(self.end);
        self.end = usize::try_from(self.reader.position().byte()).unwrap_or(self.text.len());
        // The reader ends a row at its carriage return, and leaves the newline.
        if before.ends_with('\r')
            && let Some(after) = rest.strip_prefix('\n')
        {
            (rest, self.line) = (after, self.line + 1);
        }
        // Lines that the reader passed over.
        let comment = self.comment.map(char::from);
        let mut lines = rest.split('\n').map(|line| line.trim_start_matches('\r'));
        loop {
            let Some(text) = lines.next() else {
                return Ok(None);
            };
            if text.is_empty() && self.cells.is_some() {
                return Err(TextFault::EmptyLine.at(self.line));
            }
            if !text.is_empty() && !comment.is_some_and(|comment| text.starts_with(comment)) {
                break;
            }
            self.line += 1;
        }
        let line = self.line;
        if cells.iter().any(|cell| cell.contains(['\n', '\r'])) {
            return Err(TextFault::LineBreak.at(line));
        }
        self.line += usize::from(self.text[..self.end].ends_with('\n'));
        let (have, need) = (cells.len(), *self.cells.get_or_insert(cells.len()));
        if have != need {
            return Err(TextFault::Cells { need, have }.at(line));
        }
        Ok(Some(Row { line, cells }))
    }
}

impl Iterator for CsvRows<'_> {
    type Item = Result<Row, TextError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut cells = csv::StringRecord::new();
        let read = self.reader.read_record(&mut cells);
        // Rows of any length are taken, and text in memory is UTF-8 and always there.
        let is_row = read.expect("text in memory can be read") && !self.has_failed;
        let row = is_row.then(|| self.checked(cells))?;
        self.has_failed = row.is_err();
        row.transpose()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(text: &str) -> Result<Vec<(usize, Vec<String>)>, String> {
        let owned = |row: Row| {
            let cells = row.cells.iter().map(str::to_owned);
            (row.line, cells.collect())
        };
        let separator = csv_separator(text).map_err(|error| error.to_string())?;
        CsvRows::new(text, separator, Some(b'#'))
            .map(|row| row.map(owned).map_err(|error| error.to_string()))
            .collect()
    }

    #[test]
    fn bytes_are_text_without_a_mark_or_refused_with_the_line() {
        assert_eq!(plain_text(b"\xef\xbb\xbf1\n"), Ok("1\n"));
        assert_eq!(plain_text(b""), Ok(""));
        for bytes in [&b"\xff\xfe1\0"[..], b"\xfe\xff\x001"] {
            assert_eq!(plain_text(bytes), Err(TextFault::Utf16.at(1)));
        }
        assert_eq!(plain_text(b"1\n2\0"), Err(TextFault::Nul.at(2)));
        let latin = plain_text(b"\xef\xbb\xbf1\n\n\xb5s\n");
        assert_eq!(latin, Err(TextFault::NotUtf8.at(3)));
    }

    #[test]
    fn a_row_knows_its_line() {
        let expected = |lines: [usize; 2]| {
            Ok(vec![
                (lines[0], vec!["a".to_owned(), "b".to_owned()]),
                (lines[1], vec!["1".to_owned(), "2".to_owned()]),
            ])
        };
        for (text, lines) in [
            ("a,b\n1,2\n", [1, 2]),
            ("a,b\n1,2", [1, 2]),
            ("a;b\r\n1;2\r\n", [1, 2]),
            ("a\tb\r\n1\t2", [1, 2]),
            ("# x\n\na,b\n# y\n# z\n\"1\",\"2\"\n\n\n", [3, 6]),
            ("a,b\n1,2\n# the end", [1, 2]),
            ("# x\r\n\r\na,b\r\n# y\r\n1,2\r\n\r\n", [3, 5]),
        ] {
            assert_eq!(rows(text), expected(lines), "{text:?}");
        }
    }

    #[test]
    fn quotes_hide_separators_and_quotes() {
        let row = |cells: [&str; 2]| vec![(1, cells.map(str::to_owned).to_vec())];
        assert_eq!(rows("\"a,b\";c"), Ok(row(["a,b", "c"])));
        assert_eq!(rows("\"a \"\"b;\"\"\",c"), Ok(row(["a \"b;\"", "c"])));
    }

    #[test]
    fn tables_that_may_be_read_in_two_ways_are_refused_with_the_line() {
        let refusals: Vec<String> = [
            "# x\n950,12;1\n",
            "a\tb;c\n",
            "a,b\n1\n",
            "a,b\n1,2\n1,2,3\n",
            "a,b\n1,2\n\n3,4\n",
            "a,b\r\n1,2\r\n\r\n# x\r\n3,4\r\n",
            "a,b\n\"1,2\n3,4\n5,6\n",
            "a,b\n1,\"2\n3,4\n",
            "a,b\n1,\"2\n3,\"4\n",
        ]
        .map(|text| rows(text).unwrap_err())
        .into();
        insta::assert_snapshot!(refusals.join("\n"), @r#"
line 2: commas and semicolons outside of quotes: either may separate cells; quote the cells that hold one of them
line 1: semicolons and tabs outside of quotes: either may separate cells; quote the cells that hold one of them
line 2: the first line has 2 cells, this one 1; give as many
line 3: the first line has 2 cells, this one 3; give as many
line 3: an empty line between rows; leave it out, or give its cells
line 3: an empty line between rows; leave it out, or give its cells
line 2: a quoted cell goes on beyond its line; close the quote
line 2: a quoted cell goes on beyond its line; close the quote
line 2: a quoted cell goes on beyond its line; close the quote
"#);
    }

    /// The comment that ends a text without a newline: the `csv` crate makes an empty row of it.
    fn last_comment(text: &str) -> &str {
        let last = text.split('\n').next_back().unwrap_or_default();
        if last.starts_with('#') { last } else { "" }
    }

    proptest! {
        /// What this reads is what the `csv` crate reads, and it refuses no more than it says.
        #[test]
        fn rows_are_those_of_the_csv_crate(text in "([ab1 #]|,|,|\"|\"\"|\n|\r\n|é){0,30}") {
            let mut reader = csv::ReaderBuilder::new()
                .has_headers(false)
                .flexible(true)
                .comment(Some(b'#'))
                .from_reader(text.strip_suffix(last_comment(&text)).unwrap().as_bytes());
            let direct: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().unwrap();
            let ours: Result<Vec<Row>, TextError> = CsvRows::new(&text, b',', Some(b'#')).collect();
            match ours {
                Ok(rows) => {
                    let lines: Vec<&str> = text.lines().collect();
                    for row in &rows {
                        let mut alone = csv::ReaderBuilder::new()
                            .has_headers(false)
                            .from_reader(lines[row.line - 1].as_bytes());
                        prop_assert_eq!(&alone.records().next().unwrap().unwrap(), &row.cells);
                    }
                    let cells: Vec<_> = rows.into_iter().map(|row| row.cells).collect();
                    prop_assert_eq!(cells, direct);
                }
                Err(TextError { line, fault: TextFault::LineBreak }) => {
                    prop_assert!(direct.iter().flatten().any(|cell| cell.contains(['\n', '\r'])));
                    prop_assert!(text.lines().nth(line - 1).unwrap().contains('"'));
                }
                Err(TextError { line, fault: TextFault::EmptyLine }) => {
                    prop_assert_eq!(text.lines().nth(line - 1), Some(""));
                }
                Err(TextError { fault: TextFault::Cells { need, have }, .. }) => {
                    prop_assert_eq!(direct[0].len(), need);
                    prop_assert!(need != have && direct.iter().any(|cells| cells.len() == have));
                }
                Err(error) => prop_assert!(false, "{error}"),
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, separator in 0_u8..128) {
            if let Ok(text) = plain_text(&bytes) {
                let _ = csv_separator(text);
                for comment in [None, Some(b'#')] {
                    CsvRows::new(text, separator, comment).for_each(drop);
                }
            }
        }
    }
}
