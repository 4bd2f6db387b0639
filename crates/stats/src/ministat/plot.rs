//! The plot: stacks of symbols over bars of average and standard deviation.

use std::io::{self, Write};

use super::Dataset;
use crate::count::whole;

/// What a cell or a list entry shows: blank, then one symbol for each dataset.
pub(super) const SYMBOLS: [u8; 8] = *b" x+*%#@O";

/// The plot of all datasets on one axis.
pub(super) struct Plot<'a> {
    datasets: &'a [Dataset],
    width: usize,
    separate_bars: bool,
}

impl<'a> Plot<'a> {
    pub(super) fn new(datasets: &'a [Dataset], width: usize, separate_bars: bool) -> Self {
        Self {
            datasets,
            width,
            separate_bars,
        }
    }

    pub(super) fn write_to(&self, output: &mut impl Write) -> io::Result<()> {
        let axis = Axis::over(self.datasets, self.width);
        // NaN is sorted last, so a dataset's maximum tells.
        let has_nan = self
            .datasets
            .iter()
            .any(|dataset| dataset.maximum().is_nan());
        if has_nan || !axis.span.is_finite() {
            return writeln!(output, "[no plot, span is not finite]");
        }
        if axis.span == 0.0 {
            return writeln!(output, "[no plot, span is zero width]");
        }

        self.write_border(output)?;
        self.write_stacks(&axis, output)?;
        self.write_bars(&axis, output)?;
        self.write_border(output)
    }

    fn write_border(&self, output: &mut impl Write) -> io::Result<()> {
        output.write_all(b"+")?;
        output.write_all(&vec![b'-'; self.width])?;
        output.write_all(b"+\n")
    }

    /// Writes the stacks from the highest row down.
    fn write_stacks(&self, axis: &Axis, output: &mut impl Write) -> io::Result<()> {
        let (mut tops, height) = visible_tops(self.datasets, axis);
        tops.sort_unstable_by_key(|top| std::cmp::Reverse(top.height));

        // A row shows what the row above it shows, and the tops it meets.
        let mut tops = tops.into_iter().peekable();
        let mut symbol_indexes = vec![0; axis.columns()];
        let mut line = blank_line(self.width);
        for row in (1..=height).rev() {
            while let Some(top) = tops.next_if(|top| top.height >= row) {
                symbol_indexes[top.column] |= top.symbol_index;
                if top.column < self.width {
                    line[1 + top.column] = SYMBOLS[symbol_indexes[top.column]];
                }
            }
            output.write_all(&line)?;
        }
        Ok(())
    }

    fn write_bars(&self, axis: &Axis, output: &mut impl Write) -> io::Result<()> {
        let line_count = if self.separate_bars {
            self.datasets.len()
        } else {
            1
        };
        let mut lines = vec![vec![b' '; axis.columns()]; line_count];
        for (index, dataset) in self.datasets.iter().enumerate() {
            draw_bar(&mut lines[index.min(line_count - 1)], dataset, axis);
        }
        let mut framed = blank_line(self.width);
        for line in lines {
            framed[1..=self.width].copy_from_slice(&line[..self.width]);
            output.write_all(&framed)?;
        }
        Ok(())
    }
}

fn blank_line(width: usize) -> Vec<u8> {
    let mut line = vec![b' '; width + 3];
    line[0] = b'|';
    line[width + 1] = b'|';
    line[width + 2] = b'\n';
    line
}

/// Maps values to columns.
struct Axis {
    width: usize,
    span: f64,
    column_width: f64,
    left_edge: f64,
}

impl Axis {
    /// The axis that shows every dataset's extremes and average ± deviation.
    fn over(datasets: &[Dataset], width: usize) -> Self {
        // Starting bounds as in FreeBSD's: values beyond them stretch the axis.
        let (mut lowest, mut highest) = (999e99, -999e99);
        for dataset in datasets {
            let (average, deviation) = (dataset.average(), dataset.standard_deviation());
            for value in [
                dataset.minimum(),
                dataset.maximum(),
                average - deviation,
                average + deviation,
            ] {
                if value < lowest {
                    lowest = value;
                }
                if value > highest {
                    highest = value;
                }
            }
        }
        let span = highest - lowest;
        let column_width = span / (width as f64 - 1.0);
        Self {
            width,
            span,
            column_width,
            left_edge: lowest - 0.5 * column_width,
        }
    }

    /// How many columns are kept count of: one even where none is shown.
    fn columns(&self) -> usize {
        self.width.max(1)
    }

    /// The column of a value; never falls where values rise.
    fn column(&self, value: f64) -> usize {
        let column = whole((value - self.left_edge) / self.column_width);
        column.min(self.columns() - 1)
    }
}

/// The highest row that shows a dataset's symbol in a column.
struct Top {
    height: usize,
    column: usize,
    symbol_index: usize,
}

/// Every column's tops, and the height of the plot.
///
/// Each dataset sets the plot's height to its own tallest stack: it clips the
/// earlier datasets' taller stacks for good, even where a later one makes the
/// plot higher again.
fn visible_tops(datasets: &[Dataset], axis: &Axis) -> (Vec<Top>, usize) {
    let mut tops = Vec::new();
    let mut visible_height = usize::MAX;
    let mut plot_height = None;
    for (index, dataset) in datasets.iter().enumerate().rev() {
        let stacks = stacks(dataset.points(), axis);
        let tallest = stacks.iter().map(|(_, height)| *height).max().unwrap_or(0);
        visible_height = visible_height.min(tallest);
        plot_height.get_or_insert(tallest);
        tops.extend(stacks.into_iter().map(|(column, height)| Top {
            height: height.min(visible_height),
            column,
            symbol_index: index + 1,
        }));
    }
    (tops, plot_height.unwrap_or(0))
}

/// How many of the ascending `points` fall into each column that has any.
fn stacks(points: &[f64], axis: &Axis) -> Vec<(usize, usize)> {
    let mut stacks = Vec::new();
    let mut rest = points;
    while let Some(first) = rest.first() {
        let column = axis.column(*first);
        let height = rest.partition_point(|point| axis.column(*point) <= column);
        stacks.push((column, height));
        rest = &rest[height..];
    }
    stacks
}

/// Draws `|___M_A___|` over what earlier datasets left on the line.
fn draw_bar(line: &mut [u8], dataset: &Dataset, axis: &Axis) {
    let (average, deviation) = (dataset.average(), dataset.standard_deviation());
    // In the oldest dialects, rounding can leave a variance that has no root.
    if !deviation.is_nan() {
        let (left, right) = (
            axis.column(average - deviation),
            axis.column(average + deviation),
        );
        line[right] = b'|';
        line[left] = b'|';
        for cell in line.iter_mut().take(right).skip(left + 1) {
            if *cell == b' ' {
                *cell = b'_';
            }
        }
    }
    line[axis.column(dataset.median())] = b'M';
    line[axis.column(average)] = b'A';
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(datasets: &[&[f64]], width: usize) -> String {
        let datasets: Vec<_> = datasets
            .iter()
            .map(|values| Dataset::new("set", values.to_vec()).unwrap())
            .collect();
        let mut output = Vec::new();
        Plot::new(&datasets, width, true)
            .write_to(&mut output)
            .unwrap();
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn narrow_plots_are_drawn() {
        let values: &[f64] = &[1.0, 2.0, 3.0, 3.0];
        assert_eq!(text(&[values], 3), "+---+\n|  x|\n|xxx|\n||A||\n+---+\n");
        assert_eq!(text(&[values], 2), "+--+\n|xx|\n|xx|\n||A|\n+--+\n");
        assert_eq!(text(&[values], 1), "+-+\n|x|\n|x|\n|x|\n|x|\n|A|\n+-+\n");
        assert_eq!(text(&[values], 0), "++\n||\n||\n||\n||\n||\n++\n");
    }

    #[test]
    fn a_later_lower_set_clips_and_a_higher_one_does_not_restore() {
        let tall: &[f64] = &[0.0, 0.0, 0.0, 0.0, 0.0, 9.0, 9.0];
        let flat: &[f64] = &[0.0, 4.0, 9.0];
        let middling: &[f64] = &[4.0, 4.0, 4.0, 9.0, 4.0];
        let rows = |sets: &[&[f64]]| -> Vec<String> {
            let text = text(sets, 10);
            let rows = text.lines().skip(1).take_while(|line| !line.contains('A'));
            rows.map(str::to_owned).collect()
        };
        assert_eq!(rows(&[tall, flat]), ["|  *  +   *|"]);
        assert_eq!(
            rows(&[tall, middling]),
            [
                "|  x  +    |",
                "|  x  +    |",
                "|  x  +   x|",
                "|  x  +   *|"
            ]
        );
        assert_eq!(
            rows(&[tall, flat, middling]),
            [
                "|     *    |",
                "|     *    |",
                "|     *    |",
                "|  *  *   *|"
            ]
        );
    }

    #[test]
    fn what_cannot_be_plotted_says_why() {
        assert_eq!(text(&[&[7.0; 4]], 74), "[no plot, span is zero width]\n");
        for odd in [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e308] {
            assert_eq!(
                text(&[&[1.0, 2.0, odd]], 74),
                "[no plot, span is not finite]\n",
                "{odd}"
            );
            assert_eq!(
                text(&[&[1.0, 2.0, 3.0], &[odd; 3]], 74),
                "[no plot, span is not finite]\n",
                "{odd}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_numbers_in_any_width_are_drawn_in_a_box(
            sets in prop::collection::vec(prop::collection::vec(prop::num::f64::ANY, 3..40), 1..8),
            width in 0_usize..100,
        ) {
            let sets: Vec<&[f64]> = sets.iter().map(Vec::as_slice).collect();
            for line in text(&sets, width).lines() {
                prop_assert!(line.starts_with("[no plot") || line.len() == width + 2);
            }
        }

        #[test]
        fn one_set_shows_every_point_once(values in prop::collection::vec(-1e6..1e6_f64, 3..200), width in 2_usize..100) {
            let text = text(&[&values], width);
            prop_assume!(!text.starts_with("[no plot"));
            prop_assert_eq!(text.matches('x').count(), values.len());
        }
    }
}
