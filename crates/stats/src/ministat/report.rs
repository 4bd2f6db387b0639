//! The whole text: names, plot, rows, comparisons.

use std::fmt;
use std::io::{self, Write};

use super::plot::{Plot, SYMBOLS};
use super::{Comparison, Confidence, Dataset, Dialect, Error};

/// The line above the rows.
pub(super) const HEADING: &str =
    "    N           Min           Max        Median           Avg        Stddev";

/// Which parts of the text are wanted, how wide, and whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The datasets' names, and the rows' heading (not `-q`).
    pub headings: bool,
    /// The plot (neither `-A` nor `-n`).
    pub plot: bool,
    /// Columns inside the plot's box (`-w`).
    pub plot_width: usize,
    /// A bar line for each dataset instead of a shared one (`-s`).
    pub separate_bars: bool,
    /// Comparisons with the first dataset (not `-n`).
    pub comparisons: bool,
    /// The level of the comparisons (`-c`).
    pub confidence: Confidence,
    /// Whose figures: today's, or those of older releases.
    pub dialect: Dialect,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            headings: true,
            plot: true,
            plot_width: 74,
            separate_bars: false,
            comparisons: true,
            confidence: Confidence::default(),
            dialect: Dialect::default(),
        }
    }
}

/// Datasets and how to show them; displayed, it is `ministat`'s text.
#[derive(Clone, Debug)]
pub struct Report {
    datasets: Vec<Dataset>,
    layout: Layout,
}

impl Report {
    /// As many datasets as there are symbols.
    pub const DATASETS_MAX: usize = SYMBOLS.len() - 1;

    /// A report of one to seven datasets, the first being the reference.
    ///
    /// # Errors
    /// [`Error::NoDatasets`], [`Error::TooManyDatasets`].
    pub fn new(datasets: Vec<Dataset>, layout: Layout) -> Result<Self, Error> {
        if datasets.is_empty() {
            return Err(Error::NoDatasets);
        }
        if datasets.len() > Self::DATASETS_MAX {
            return Err(Error::TooManyDatasets);
        }
        let in_dialect = |dataset: Dataset| dataset.in_dialect(layout.dialect);
        Ok(Self {
            datasets: datasets.into_iter().map(in_dialect).collect(),
            layout,
        })
    }

    /// Writes the text, a row at a time: give it a buffer. Names keep their
    /// bytes, which [`fmt::Display`] cannot do for those that are not UTF-8.
    ///
    /// # Errors
    /// Those of `output`.
    pub fn write_to(&self, output: &mut impl Write) -> io::Result<()> {
        let layout = &self.layout;
        let symbols = SYMBOLS[1..].iter().map(|symbol| char::from(*symbol));
        if layout.headings {
            for (symbol, dataset) in symbols.clone().zip(&self.datasets) {
                write!(output, "{symbol} ")?;
                output.write_all(dataset.name().as_encoded_bytes())?;
                writeln!(output)?;
            }
        }
        if layout.plot {
            Plot::new(&self.datasets, layout.plot_width, layout.separate_bars).write_to(output)?;
        }
        if layout.headings {
            writeln!(output, "{HEADING}")?;
        }
        let reference = &self.datasets[0];
        for (index, (symbol, dataset)) in symbols.zip(&self.datasets).enumerate() {
            write_row(symbol, dataset, output)?;
            if layout.comparisons && index > 0 {
                Comparison::new(dataset, reference, layout.confidence).write_to(output)?;
            }
        }
        Ok(())
    }
}

fn write_row(symbol: char, dataset: &Dataset, output: &mut impl Write) -> io::Result<()> {
    write!(output, "{symbol} {:>3}", dataset.len())?;
    for figure in dataset.figures() {
        write!(output, " {figure:>13}")?;
    }
    writeln!(output)
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        self.write_to(&mut text).map_err(|_| fmt::Error)?;
        formatter.write_str(&String::from_utf8_lossy(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datasets(count: usize) -> Vec<Dataset> {
        vec![Dataset::new("same", vec![1.0, 2.0, 3.0]).unwrap(); count]
    }

    #[test]
    fn one_to_seven_datasets_are_reported() {
        assert_eq!(
            Report::new(datasets(0), Layout::default()).unwrap_err(),
            Error::NoDatasets
        );
        assert_eq!(
            Report::new(datasets(8), Layout::default()).unwrap_err(),
            Error::TooManyDatasets
        );
        let seven = Report::new(datasets(7), Layout::default())
            .unwrap()
            .to_string();
        assert!(seven.contains("\nO same\n") && seven.contains("\nO   3 "));
    }

    #[test]
    fn parts_can_be_left_out() {
        let bare = Layout {
            headings: false,
            plot: false,
            comparisons: false,
            ..Layout::default()
        };
        assert_eq!(
            Report::new(datasets(2), bare).unwrap().to_string(),
            "x   3             1             3             2             2             1\n\
             +   3             1             3             2             2             1\n"
        );
    }
}
