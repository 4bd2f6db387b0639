//! The command's arguments.

use std::ffi::OsString;
use std::fmt;

use super::number::is_c_space;
use super::{Confidence, Layout, Report, parse_number};

/// What the command's arguments ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The column that holds the numbers, from 1 (`-C`).
    pub column: usize,
    /// The bytes that part columns (`-d`).
    pub delimiters: Vec<u8>,
    /// What to print, and how wide.
    pub layout: Layout,
    /// The files to read, `-` for standard input; none means standard input.
    pub files: Vec<OsString>,
}

/// Why the arguments make no sense; displayed as the command prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageError {
    /// `-C` without a number.
    ColumnNotANumber,
    /// `-C` below 1.
    ColumnNotPositive,
    /// `-c` without a number.
    ConfidenceNotANumber,
    /// `-c` with a level there is no table for.
    ConfidenceUnsupported,
    /// `-d ''`.
    EmptyDelimiters,
    /// A letter that wants an argument, without one.
    MissingArgument(u8),
    /// More files than symbols.
    TooManyDatasets,
    /// A letter that is no option.
    UnknownOption(u8),
    /// `-w` below 0.
    WidthNegative,
    /// `-w` without a number.
    WidthNotANumber,
}

impl std::error::Error for UsageError {}

impl fmt::Display for UsageError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let complaint = match self {
            Self::ColumnNotANumber => "Invalid column number.",
            Self::ColumnNotPositive => "Column number should be positive.",
            Self::ConfidenceNotANumber => "Not a floating point number",
            Self::ConfidenceUnsupported => "No support for confidence level",
            Self::EmptyDelimiters => "Can't use empty delimiter string",
            Self::MissingArgument(letter) => {
                let letter = char::from(*letter);
                writeln!(
                    formatter,
                    "ministat: option requires an argument -- {letter}"
                )?;
                "Unknown option"
            }
            Self::TooManyDatasets => "Too many datasets.",
            Self::UnknownOption(letter) => {
                writeln!(
                    formatter,
                    "ministat: illegal option -- {}",
                    char::from(*letter)
                )?;
                "Unknown option"
            }
            Self::WidthNegative => "Unable to move beyond left margin.",
            Self::WidthNotANumber => "Invalid width, not a number.",
        };
        write!(formatter, "{complaint}\n{USAGE}")
    }
}

const USAGE: &str = "\
Usage: ministat [-C column] [-c confidence] [-d delimiter(s)] [-Anqs] [-w width] [file [file ...]]
\tconfidence = {80%, 90%, 95%, 98%, 99%, 99.5%}
\t-A : print statistics only. suppress the graph.
\t-C : column number to extract (starts and defaults to 1)
\t-d : delimiter(s) string, default to \" \\t\"
\t-n : print summary statistics only, no graph/test
\t-q : suppress printing summary-statistics headers and data-set names
\t-s : print avg/median/stddev bars on separate lines
\t-w : width of graph/test output (default 74 or terminal width)
";

/// Reads the arguments (the command's name not among them) as BSD's `getopt`
/// does: the first that is no option ends the options. What no option chooses
/// is as in `layout`.
///
/// # Errors
/// The first thing wrong, in the arguments' order.
pub fn parse_options(arguments: &[OsString], layout: Layout) -> Result<Options, UsageError> {
    let mut options = Options {
        column: 1,
        delimiters: b" \t".to_vec(),
        layout,
        files: Vec::new(),
    };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.as_slice().first() {
        let [b'-', letters @ ..] = argument.as_encoded_bytes() else {
            break;
        };
        if letters.is_empty() {
            break;
        }
        arguments.next();
        if letters == b"-" {
            break;
        }
        let mut letters = letters;
        while let [letter, rest @ ..] = letters {
            letters = rest;
            match letter {
                b'A' => options.layout.plot = false,
                b'n' => {
                    options.layout.plot = false;
                    options.layout.comparisons = false;
                }
                b'q' => options.layout.headings = false,
                b's' => options.layout.separate_bars = true,
                b'C' | b'c' | b'd' | b'w' => {
                    let value = if rest.is_empty() {
                        let next = arguments.next();
                        next.ok_or(UsageError::MissingArgument(*letter))?
                            .as_encoded_bytes()
                    } else {
                        rest
                    };
                    letters = &[];
                    options.set(*letter, value)?;
                }
                _ => return Err(UsageError::UnknownOption(*letter)),
            }
        }
    }
    options.files = arguments.cloned().collect();
    if options.files.len() > Report::DATASETS_MAX {
        return Err(UsageError::TooManyDatasets);
    }
    Ok(options)
}

impl Options {
    /// Sets what `-C`, `-c`, `-d` or, for any other letter, `-w` sets.
    fn set(&mut self, letter: u8, value: &[u8]) -> Result<(), UsageError> {
        match letter {
            b'C' => {
                let column = parse_integer(value).ok_or(UsageError::ColumnNotANumber)?;
                self.column = usize::try_from(column)
                    .ok()
                    .filter(|column| *column > 0)
                    .ok_or(UsageError::ColumnNotPositive)?;
            }
            b'c' => {
                // An empty text is 0 to C.
                let percent = if value.is_empty() {
                    Some(0.0)
                } else {
                    parse_number(value)
                };
                let percent = percent.ok_or(UsageError::ConfidenceNotANumber)?;
                self.layout.confidence =
                    Confidence::from_percent(percent).ok_or(UsageError::ConfidenceUnsupported)?;
            }
            b'd' => {
                if value.is_empty() {
                    return Err(UsageError::EmptyDelimiters);
                }
                self.delimiters = value.to_vec();
            }
            _ => {
                let width = parse_integer(value).ok_or(UsageError::WidthNotANumber)?;
                self.layout.plot_width =
                    usize::try_from(width).map_err(|_| UsageError::WidthNegative)?;
            }
        }
        Ok(())
    }
}

/// What C's `strtol` makes of the whole text, in base 10; of an empty one, 0.
fn parse_integer(text: &[u8]) -> Option<i32> {
    if text.is_empty() {
        return Some(0);
    }
    let start = text.iter().position(|byte| !is_c_space(*byte))?;
    str::from_utf8(&text[start..]).ok()?.parse().ok()
}

/// The plot's width on a terminal: `COLUMNS` where it is set to a positive
/// number, else the terminal's columns less the box's two, else 74.
///
/// For output that is no terminal, [`Layout::default`] has the width.
pub fn terminal_plot_width(
    columns_variable: Option<&str>,
    terminal_columns: Option<usize>,
) -> usize {
    columns_variable
        .and_then(|columns| columns.trim().parse().ok())
        .filter(|columns| *columns > 0)
        .or(terminal_columns
            .filter(|columns| *columns > 0)
            .map(|columns| columns.saturating_sub(2)))
        .unwrap_or(Layout::default().plot_width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Options, UsageError> {
        let arguments: Vec<_> = arguments.iter().map(OsString::from).collect();
        parse_options(&arguments, Layout::default())
    }

    #[test]
    fn nothing_asked_is_the_default() {
        let options = parsed(&[]).unwrap();
        assert_eq!(options.layout, Layout::default());
        assert_eq!(
            (options.column, options.delimiters.as_slice()),
            (1, b" \t".as_slice())
        );
        assert!(options.files.is_empty());
    }

    #[test]
    fn letters_may_be_joined_and_values_attached() {
        let joined = parsed(&["-sqw60", "-C2", "-d,;", "-c", "99.5", "a", "b"]).unwrap();
        let apart = parsed(&[
            "-s",
            "-q",
            "-w",
            " +60",
            "-C",
            "2",
            "-d",
            ",;",
            "-c0x1.8ep6",
            "--",
            "a",
            "b",
        ])
        .unwrap();
        assert_eq!(joined, apart);
        assert_eq!(joined.layout.confidence, Confidence::Percent99Point5);
        assert_eq!((joined.column, joined.layout.plot_width), (2, 60));
        assert!(joined.layout.separate_bars && !joined.layout.headings && joined.layout.plot);
    }

    #[test]
    fn the_first_file_ends_the_options() {
        assert_eq!(parsed(&["a", "-s"]).unwrap().files, ["a", "-s"]);
        assert_eq!(parsed(&["-", "-s"]).unwrap().files, ["-", "-s"]);
        assert_eq!(parsed(&["--", "-s"]).unwrap().files, ["-s"]);
    }

    #[test]
    fn mistakes_are_told_apart() {
        for (arguments, expected) in [
            (["-C", "x"], UsageError::ColumnNotANumber),
            (["-C", "1x"], UsageError::ColumnNotANumber),
            (["-C", "99999999999"], UsageError::ColumnNotANumber),
            (["-C", "0"], UsageError::ColumnNotPositive),
            (["-C", "-1"], UsageError::ColumnNotPositive),
            (["-C", ""], UsageError::ColumnNotPositive),
            (["-c", "95%"], UsageError::ConfidenceNotANumber),
            (["-c", "96"], UsageError::ConfidenceUnsupported),
            (["-c", ""], UsageError::ConfidenceUnsupported),
            (["-d", ""], UsageError::EmptyDelimiters),
            (["-w", "wide"], UsageError::WidthNotANumber),
            (["-w", "99999999999"], UsageError::WidthNotANumber),
            (["-w", "-1"], UsageError::WidthNegative),
            (["-s", "-w"], UsageError::MissingArgument(b'w')),
            (["-s", "-sx"], UsageError::UnknownOption(b'x')),
            (["-s", "--help"], UsageError::UnknownOption(b'-')),
            (["-c90", "-c12"], UsageError::ConfidenceUnsupported),
        ] {
            assert_eq!(parsed(&arguments), Err(expected), "{arguments:?}");
        }
        assert_eq!(parsed(&["f"; 8]), Err(UsageError::TooManyDatasets));
        assert!(parsed(&["f"; 7]).is_ok());
    }

    #[test]
    fn a_terminal_gives_its_width() {
        assert_eq!(terminal_plot_width(Some("100"), Some(80)), 100);
        assert_eq!(terminal_plot_width(None, Some(80)), 78);
        assert_eq!(terminal_plot_width(Some(""), Some(80)), 78);
        assert_eq!(terminal_plot_width(Some("-3"), Some(80)), 78);
        assert_eq!(terminal_plot_width(Some("0"), Some(0)), 74);
        assert_eq!(terminal_plot_width(None, None), 74);
    }
}
