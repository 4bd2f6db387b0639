//! A file's bytes to its points.

use std::io::{self, Read};

use super::number::{is_c_space, leading_decimal, parse_number};

/// The numbers in a column of a text, or the line (counted from 1) whose column
/// is not a number; `nan` is none.
///
/// Columns count from 1 and are split at runs of the delimiters. A column that
/// begins with `#` ends its line; a line that ends before the wanted column
/// (blank ones too) gives nothing. White space at a line's end is dropped, and
/// whatever follows a NUL.
pub fn parse_points(text: &[u8], column: usize, delimiters: &[u8]) -> Result<Vec<f64>, usize> {
    let mut lines = Lines::new(column, delimiters);
    lines.push(text)?;
    Ok(lines.points)
}

/// Why no points came out of a stream.
pub(super) enum ReadError {
    InvalidLine(usize),
    Io(io::Error),
}

/// [`parse_points`] of all that `reader` gives, which is never held as a whole.
pub(super) fn read_points(
    reader: &mut dyn Read,
    column: usize,
    delimiters: &[u8],
) -> Result<Vec<f64>, ReadError> {
    let mut lines = Lines::new(column, delimiters);
    let mut buffer = vec![0; 1 << 16];
    let mut filled = 0;
    loop {
        if filled == buffer.len() {
            buffer.resize(2 * filled, 0);
        }
        let count = match reader.read(&mut buffer[filled..]) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(ReadError::Io(error)),
        };
        if count == 0 {
            lines
                .push(&buffer[..filled])
                .map_err(ReadError::InvalidLine)?;
            return Ok(lines.points);
        }
        let newest = filled..filled + count;
        filled = newest.end;
        if let Some(last) = buffer[newest.clone()]
            .iter()
            .rposition(|byte| *byte == b'\n')
        {
            let whole = newest.start + last + 1;
            lines
                .push(&buffer[..whole])
                .map_err(ReadError::InvalidLine)?;
            buffer.copy_within(whole..filled, 0);
            filled -= whole;
        }
    }
}

/// Takes the points out of one line after the other.
struct Lines {
    column: usize,
    is_delimiter: [bool; 256],
    /// A line that is a number alone needs no splitting.
    numbers_are_columns: bool,
    points: Vec<f64>,
    count: usize,
}

impl Lines {
    fn new(column: usize, delimiters: &[u8]) -> Self {
        let mut is_delimiter = [false; 256];
        for delimiter in delimiters {
            is_delimiter[usize::from(*delimiter)] = true;
        }
        let mut number_bytes = b"+-.0123456789".iter();
        Self {
            column,
            is_delimiter,
            numbers_are_columns: column == 1
                && !number_bytes.any(|byte| is_delimiter[usize::from(*byte)]),
            points: Vec::new(),
            count: 0,
        }
    }

    /// Takes whole lines; the last may lack its newline. An error is the number
    /// of the line at fault, counted from 1 over all pushes.
    fn push(&mut self, text: &[u8]) -> Result<(), usize> {
        let mut rest = text;
        while !rest.is_empty() {
            self.count += 1;
            if self.numbers_are_columns
                && let Some((point, length)) = leading_decimal(rest)
                && rest.get(length) == Some(&b'\n')
            {
                self.points.push(point);
                rest = &rest[length + 1..];
                continue;
            }
            let end = rest.iter().position(|byte| *byte == b'\n');
            let (line, after) = rest.split_at(end.unwrap_or(rest.len()));
            rest = after.get(1..).unwrap_or_default();
            if let Some(field) = field(trimmed(line), self.column, &self.is_delimiter) {
                // It has no place in an order, so that no minimum, median or maximum would be right.
                let number = parse_number(field).filter(|number| !number.is_nan());
                self.points.push(number.ok_or(self.count)?);
            }
        }
        Ok(())
    }
}

/// The line up to its first NUL, without the white space at its end.
fn trimmed(line: &[u8]) -> &[u8] {
    let end = line.iter().position(|byte| *byte == 0);
    let mut line = &line[..end.unwrap_or(line.len())];
    while let [rest @ .., last] = line
        && is_c_space(*last)
    {
        line = rest;
    }
    line
}

/// The column's text, as C's `strtok` finds it.
fn field<'a>(line: &'a [u8], column: usize, is_delimiter: &[bool; 256]) -> Option<&'a [u8]> {
    let delimits = |byte: &u8| is_delimiter[usize::from(*byte)];
    let mut rest = line;
    let mut number = 1;
    loop {
        let start = rest.iter().position(|byte| !delimits(byte))?;
        rest = &rest[start..];
        if rest[0] == b'#' {
            return None;
        }
        let end = rest.iter().position(delimits).unwrap_or(rest.len());
        if number == column {
            return Some(&rest[..end]);
        }
        number += 1;
        rest = &rest[end..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn first_column(text: &str) -> Result<Vec<f64>, usize> {
        parse_points(text.as_bytes(), 1, b" \t")
    }

    #[test]
    fn one_number_a_line() {
        assert_eq!(first_column("1\n2.5\n-3e1\n"), Ok(vec![1.0, 2.5, -30.0]));
        assert_eq!(first_column("1\n2"), Ok(vec![1.0, 2.0]));
        assert_eq!(first_column(""), Ok(vec![]));
    }

    #[test]
    fn comments_blank_lines_and_white_space_are_passed_over() {
        assert_eq!(
            first_column("# head\n\n  \t\n 1 # one\n\t2\r\n  #3\n4\x0b\x0c \n"),
            Ok(vec![1.0, 2.0, 4.0])
        );
    }

    #[test]
    fn a_number_sign_within_a_column_is_no_comment() {
        assert_eq!(first_column("1\n2#two\n"), Err(2));
    }

    #[test]
    fn columns_are_split_at_runs_of_delimiters() {
        assert_eq!(
            parse_points(b"a,,1,x\n,b,2\nc\n#,3\nd,#,4\n", 2, b","),
            Ok(vec![1.0, 2.0])
        );
        assert_eq!(parse_points(b"a;1 b:2;3", 6, b";: "), Ok(vec![]));
        assert_eq!(parse_points(b"7;1 8:2;3", 5, b";: "), Ok(vec![3.0]));
    }

    #[test]
    fn white_space_around_a_column_counts_only_behind_it() {
        assert_eq!(parse_points(b"a, 1,b\n", 2, b","), Ok(vec![1.0]));
        assert_eq!(parse_points(b"a,1 ,b\n", 2, b","), Err(1));
        assert_eq!(parse_points(b"a,1 \n", 2, b","), Ok(vec![1.0]));
    }

    #[test]
    fn a_nul_ends_its_line() {
        assert_eq!(first_column("1\0junk\n\0two\n3 \0\n"), Ok(vec![1.0, 3.0]));
    }

    #[test]
    fn bad_lines_are_counted_from_one_with_all_before_them() {
        assert_eq!(first_column("\n# c\n1\nx\n"), Err(4));
        assert_eq!(first_column("1,2\n"), Err(1));
        assert_eq!(first_column("\u{feff}1\n"), Err(1));
        for nan in ["nan", "-NaN", "nan(7)"] {
            assert_eq!(first_column(&format!("1\n{nan}\n3\n")), Err(2));
        }
        assert_eq!(first_column("inf\n"), Ok(vec![f64::INFINITY]));
    }

    /// Gives its bytes in pieces of the given lengths, over and over.
    struct Pieces<'a>(&'a [u8], std::iter::Cycle<std::slice::Iter<'a, usize>>);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let piece = self.1.next().copied().unwrap_or(1);
            let count = piece.min(buffer.len()).min(self.0.len());
            let (now, later) = self.0.split_at(count);
            buffer[..count].copy_from_slice(now);
            self.0 = later;
            Ok(count)
        }
    }

    #[test]
    fn a_line_longer_than_the_buffer_is_one_line() {
        let text = format!("1{}2\n3\n", " ".repeat(200_000));
        let mut pieces = Pieces(text.as_bytes(), [70_000].iter().cycle());
        let points = read_points(&mut pieces, 2, b" ").ok();
        assert_eq!(points, Some(vec![2.0]));
    }

    proptest! {
        #[test]
        fn a_stream_is_read_as_its_text_is(
            text in "([-+0-9.exan #\t\0]{0,9}\r?\n?){0,20}",
            lengths in prop::collection::vec(1_usize..30, 1..9),
        ) {
            let mut pieces = Pieces(text.as_bytes(), lengths.iter().cycle());
            let streamed = match read_points(&mut pieces, 1, b" \t") {
                Ok(points) => Ok(points),
                Err(ReadError::InvalidLine(line)) => Err(line),
                Err(ReadError::Io(error)) => panic!("{error}"),
            };
            prop_assert_eq!(format!("{streamed:?}"), format!("{:?}", first_column(&text)));
        }

        #[test]
        fn any_bytes_are_read_or_refused(text: Vec<u8>, column in 0_usize..5, delimiters: Vec<u8>) {
            let _ = parse_points(&text, column, &delimiters);
        }

        #[test]
        fn written_numbers_come_back(mut numbers: Vec<f64>) {
            numbers.retain(|number| !number.is_nan());
            let text: String = numbers.iter().map(|number| format!("{number:e}\n")).collect();
            let back = parse_points(text.as_bytes(), 1, b" \t").unwrap();
            prop_assert_eq!(back.len(), numbers.len());
            for (back, number) in back.iter().zip(&numbers) {
                prop_assert_eq!(back.to_bits(), number.to_bits());
            }
        }
    }
}
