//! The command: arguments in, exit code out.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, BufWriter, Read, Write};

use super::points::{ReadError, read_points};
use super::{Dataset, Error, Layout, Options, Report, UsageError, parse_options};

/// All that the command touches of the world outside its arguments.
pub struct Surroundings<'a> {
    /// Opens a file for reading.
    pub open: &'a mut dyn FnMut(&OsStr) -> io::Result<Box<dyn Read>>,
    /// Read where no file is named, and for `-`.
    pub stdin: &'a mut dyn Read,
    /// Takes the report.
    pub stdout: &'a mut dyn Write,
    /// Takes what went wrong with arguments or data.
    pub stderr: &'a mut dyn Write,
    /// What is printed where no option says otherwise. The plot's width is
    /// [`super::terminal_plot_width`] where `stdout` is a terminal; no option of
    /// `ministat`'s own chooses the dialect.
    pub layout: Layout,
}

/// Runs `ministat` on its arguments (its name not among them) and returns its
/// exit code: 0, or 2 for arguments or data it cannot use.
///
/// # Errors
/// Those of writing to `stdout` or `stderr`.
pub fn run(arguments: &[OsString], surroundings: Surroundings<'_>) -> io::Result<u8> {
    let Surroundings {
        open,
        stdin,
        stdout,
        stderr,
        layout,
    } = surroundings;
    let report = parse_options(arguments, layout)
        .map_err(Failure::Usage)
        .and_then(|options| read_report(&options, open, stdin));
    match report {
        Ok(report) => {
            let mut stdout = BufWriter::with_capacity(1 << 16, stdout);
            report.write_to(&mut stdout)?;
            stdout.flush()?;
            Ok(0)
        }
        Err(failure) => {
            write!(stderr, "{failure}")?;
            stderr.flush()?;
            Ok(2)
        }
    }
}

/// Where a dataset's text comes from.
enum Source {
    File(Box<dyn Read>),
    StandardInput,
}

fn read_report(
    options: &Options,
    open: &mut dyn FnMut(&OsStr) -> io::Result<Box<dyn Read>>,
    stdin: &mut dyn Read,
) -> Result<Report, Failure> {
    // Every file is opened before the first is read, so that a name that
    // cannot be opened is reported before a line that cannot be read.
    let mut sources = Vec::new();
    for name in &options.files {
        let source = if name == "-" {
            Source::StandardInput
        } else {
            Source::File(open(name).map_err(|error| Failure::input("open", name, &error))?)
        };
        sources.push((name.clone(), source));
    }
    if sources.is_empty() {
        sources.push(("<stdin>".into(), Source::StandardInput));
    }

    let mut datasets = Vec::new();
    for (name, source) in sources {
        let (column, delimiters) = (options.column, &options.delimiters);
        let points = match source {
            Source::File(mut file) => read_points(&mut *file, column, delimiters),
            Source::StandardInput => read_points(stdin, column, delimiters),
        }
        .map_err(|error| match error {
            ReadError::InvalidLine(line) => {
                let name = name.display().to_string();
                Failure::Data(Error::InvalidData { name, line })
            }
            ReadError::Io(error) => Failure::input("read", &name, &error),
        })?;
        datasets.push(Dataset::new(name, points).map_err(Failure::Data)?);
    }
    Report::new(datasets, options.layout).map_err(Failure::Data)
}

/// What the command prints instead of a report.
enum Failure {
    Data(Error),
    Input {
        attempt: &'static str,
        name: String,
        reason: String,
    },
    Usage(UsageError),
}

impl Failure {
    fn input(attempt: &'static str, name: &OsStr, error: &io::Error) -> Self {
        // C's strerror has no number behind its text.
        let mut reason = error.to_string();
        if let Some(end) = reason.find(" (os error ") {
            reason.truncate(end);
        }
        Self::Input {
            attempt,
            name: name.display().to_string(),
            reason,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Data(error @ Error::InvalidData { .. }) => {
                writeln!(formatter, "ministat: {error}")
            }
            Self::Data(error) => writeln!(formatter, "{error}"),
            Self::Input {
                attempt,
                name,
                reason,
            } => {
                writeln!(formatter, "ministat: Cannot {attempt} {name}: {reason}")
            }
            Self::Usage(error) => write!(formatter, "{error}"),
        }
    }
}
