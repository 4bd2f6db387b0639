//! FreeBSD's `ministat`, byte for byte.
//!
//! People paste, diff and grep what `ministat` prints, so its text is an
//! interface. This module writes the same text from the same numbers: summary
//! rows, Student's t comparisons against the first dataset, and the plot.
//! Behaviour follows FreeBSD 15's `usr.bin/ministat`; older releases print some
//! figures otherwise, and a [`Dialect`] does as they do.
//!
//! Three ways in:
//! * [`Report`]: labelled numbers in, text out. What a README block is made of.
//! * [`published_blocks`]: a README in, its blocks out, and the dialects in which
//!   given observations make a block.
//! * [`run`]: the whole command, arguments in, exit code out. It opens no file
//!   and asks no terminal anything; its caller passes both ([`Surroundings`]).
//!
//! # Where this differs from FreeBSD's
//! The text for data that FreeBSD's handles is the same. Where FreeBSD's reads
//! outside its memory, stops with a signal or quietly drops data, this does
//! something defined:
//!
//! | input | FreeBSD | here |
//! |---|---|---|
//! | an infinite value, plot wanted | crash | `[no plot, span is not finite]` |
//! | `nan` | sorted anywhere, so that any value may be printed as the largest | refused with its line, as text is |
//! | `-w 1` | crash | everything in the one column |
//! | two values one rounding step apart | may write beyond the plot's edge | kept in the last column |
//! | `-` after another file name | undefined | standard input |
//! | a line of 1024 bytes or more | cut into several lines | one line |
//! | a read error, a directory | taken for the end of the data | `ministat: Cannot read …`, exit 2 |
//! | `-c 90 -c 12` | 90 is kept | refused, as `-c 12` is |
//! | `-C` or `-w` beyond a C `int` | wraps around | refused |
//! | `COLUMNS` that is no positive number | width 0, or crash | the terminal's own width |
//! | FreeBSD 12, counts with a product of 2^32 or more | percentage's half-width wraps around | it does not |
//!
//! Numbers are read as C's `strtod` reads them (`0x1.8p3`, `inf` and leading
//! white space included), each rounded correctly. A byte order mark is no
//! number: its line is refused, as FreeBSD's does.
//!
//! # Examples
//! ```
//! use fwdlab_stats::ministat::{Dataset, Layout, Report};
//!
//! let report = Report::new(
//!     vec![
//!         Dataset::new("iguana", vec![50., 200., 150., 400., 750., 400., 150.])?,
//!         Dataset::new("chameleon", vec![150., 400., 720., 500., 930.])?,
//!     ],
//!     Layout { separate_bars: true, plot_width: 60, ..Layout::default() },
//! )?;
//! assert_eq!(
//!     report.to_string(),
//!     "\
//! x iguana
//! + chameleon
//! +------------------------------------------------------------+
//! |x      *  x            *      +              + x           +|
//! | |________M______A_______________|                          |
//! |             |________________M__A___________________|      |
//! +------------------------------------------------------------+
//!     N           Min           Max        Median           Avg        Stddev
//! x   7            50           750           200           300     238.04761
//! +   5           150           930           500           540     299.08193
//! No difference proven at 95.0% confidence
//! "
//! );
//! # Ok::<(), fwdlab_stats::ministat::Error>(())
//! ```

mod ascending;
mod command;
mod comparison;
mod dataset;
mod dialect;
mod number;
mod number_format;
mod options;
mod plot;
mod points;
mod published;
mod report;
mod student;

pub use command::{Surroundings, run};
pub use comparison::Comparison;
pub use dataset::Dataset;
pub use dialect::Dialect;
pub use number::parse_number;
pub use number_format::{General, general};
pub use options::{Options, UsageError, parse_options, terminal_plot_width};
pub use points::parse_points;
pub use published::{PublishedBlock, PublishedComparison, PublishedRow, published_blocks};
pub use report::{Layout, Report};
pub use student::Confidence;

/// Why data cannot be reported; the texts are FreeBSD's own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A line whose wanted column is not a number.
    #[error("Invalid data on line {line} in {name}")]
    InvalidData {
        /// The dataset's name.
        name: String,
        /// Counted from 1.
        line: usize,
    },
    /// No dataset at all; the command never gets here.
    #[error("No datasets.")]
    NoDatasets,
    /// A dataset with fewer than three points has no meaning here.
    #[error("Dataset {name} must contain at least 3 data points")]
    TooFewPoints {
        /// The dataset's name.
        name: String,
    },
    /// More than seven datasets: there is no eighth symbol.
    #[error("Too many datasets.")]
    TooManyDatasets,
}
