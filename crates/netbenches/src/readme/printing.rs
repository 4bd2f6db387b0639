//! Printing a published block again, and what the publisher changed in it.

use fwdlab_stats::ministat::{Dataset, Dialect, Layout, PublishedBlock, Report};

/// Whether ministat prints a block from its datasets again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Printing {
    /// Byte for byte, in these dialects.
    Exact(Vec<Dialect>),
    /// Not quite: what is different, by line.
    Departs(Vec<Departure>),
}

/// A line that is not as ministat prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// What happened to it.
    pub kind: DepartureKind,
    /// Where it stands in the README, or the line that stands where it should.
    pub line: usize,
    /// What the README has; none for a line left out.
    pub published: Option<String>,
    /// What ministat prints; none for a line that it does not print.
    pub printed: Option<String>,
}

/// What happened to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DepartureKind {
    /// A label was left out.
    LabelMissing,
    /// A line of the plot was left out.
    PlotCut,
    /// A line of the plot is another.
    PlotAltered,
    /// The line with the pooled standard deviation was left out.
    PooledMissing,
    /// The difference lines of a row were left out.
    ComparisonMissing,
    /// Something was glued behind the line.
    Glued,
    /// Only the spaces are others.
    Spacing,
    /// The numbers of a row or a comparison are others: its rows are of no dialect in common, or a
    /// number was changed by hand.
    FiguresAltered,
    /// Anything else.
    Other,
}

impl DepartureKind {
    /// What happened, in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LabelMissing => "a label was left out",
            Self::PlotCut => "the plot was cut",
            Self::PlotAltered => "the plot was altered",
            Self::PooledMissing => "the line with the pooled standard deviation was left out",
            Self::ComparisonMissing => "a comparison was left out",
            Self::Glued => "something was glued behind a line",
            Self::Spacing => "spaces were changed",
            Self::FiguresAltered => "figures were altered",
            Self::Other => "a line was altered",
        }
    }
}

/// Prints a block from the observations of its rows; `dialects` are those they agree in.
///
/// Shape: the observations of each row; at least three each, as a row backed by them has.
pub(super) fn print_again(
    block: &PublishedBlock,
    observations: &[Vec<f64>],
    dialects: &[Dialect],
) -> Printing {
    let printed = |dialect: Dialect| printed(block, observations, dialect).unwrap_or_default();
    let exact: Vec<Dialect> = dialects
        .iter()
        .copied()
        .filter(|dialect| printed(*dialect) == block.text)
        .collect();
    if !exact.is_empty() {
        return Printing::Exact(exact);
    }
    // Of the dialects, the one that leaves least to explain.
    let of_no_dialect = if dialects.is_empty() {
        &Dialect::ALL[..]
    } else {
        &[]
    };
    let departures = dialects
        .iter()
        .chain(of_no_dialect)
        .map(|dialect| departures(block, &printed(*dialect)))
        .min_by_key(Vec::len);
    Printing::Departs(departures.unwrap_or_default())
}

/// A block as ministat prints it of the observations of its rows; none where a row has too few.
pub(crate) fn printed(
    block: &PublishedBlock,
    observations: &[Vec<f64>],
    dialect: Dialect,
) -> Option<String> {
    let rows = block.rows.iter().zip(observations);
    let datasets = rows.map(|(row, values)| {
        Dataset::new(row.label.as_deref().unwrap_or_default(), values.clone())
    });
    let layout = Layout {
        dialect,
        ..block.layout
    };
    let report = Report::new(datasets.collect::<Result<_, _>>().ok()?, layout);
    Some(report.ok()?.to_string())
}

/// The kind of a line that ministat prints.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Label,
    Plot,
    Heading,
    Row,
    Comparison,
    Pooled,
}

/// What each line of a printed block is.
fn parts(printed: &str, label_count: usize) -> Vec<Part> {
    let part = |(index, line): (usize, &str)| {
        if index < label_count {
            Part::Label
        } else if line.starts_with(['+', '|']) && line.ends_with(['+', '|'])
            || line.starts_with('[')
        {
            Part::Plot
        } else if line.trim_start().starts_with("N ") {
            Part::Heading
        } else if line.starts_with("\t(Student") {
            Part::Pooled
        } else if line.starts_with('\t') || line.contains("% confidence") {
            Part::Comparison
        } else {
            Part::Row
        }
    };
    printed.lines().enumerate().map(part).collect()
}

fn departures(block: &PublishedBlock, printed: &str) -> Vec<Departure> {
    let published: Vec<&str> = block.text.lines().collect();
    let label_count = if block.layout.headings {
        block.rows.len()
    } else {
        0
    };
    let parts = parts(printed, label_count);
    let printed: Vec<&str> = printed.lines().collect();
    let mut departures = Vec::new();
    let (mut above, mut below) = (0, 0);
    for (next_published, next_printed) in common_lines(&published, &printed)
        .into_iter()
        .chain([(published.len(), printed.len())])
    {
        let changed = &published[above..next_published];
        let expected = &printed[below..next_printed];
        // Lines in the gap stand for each other in their order.
        for offset in 0..changed.len().max(expected.len()) {
            let line = block
                .source_lines
                .get(above + offset)
                .or(block.source_lines.last());
            departures.push(departure(
                line.copied().unwrap_or(block.line),
                changed.get(offset).copied(),
                expected.get(offset).copied(),
                parts.get(below + offset).copied(),
            ));
        }
        (above, below) = (next_published + 1, next_printed + 1);
    }
    departures
}

fn departure(
    line: usize,
    published: Option<&str>,
    printed: Option<&str>,
    part: Option<Part>,
) -> Departure {
    let kind = match (published, printed, part) {
        (None, Some(_), Some(Part::Label)) => DepartureKind::LabelMissing,
        (None, Some(_), Some(Part::Plot)) => DepartureKind::PlotCut,
        (None, Some(_), Some(Part::Pooled)) => DepartureKind::PooledMissing,
        (None, Some(_), Some(Part::Comparison)) => DepartureKind::ComparisonMissing,
        (Some(published), Some(printed), part) => {
            let words = |line: &str| {
                line.split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            if words(published) == words(printed) {
                DepartureKind::Spacing
            } else if published.starts_with(printed) && !printed.is_empty() {
                DepartureKind::Glued
            } else {
                match part {
                    Some(Part::Plot) => DepartureKind::PlotAltered,
                    Some(Part::Row | Part::Comparison | Part::Pooled) => {
                        DepartureKind::FiguresAltered
                    }
                    _ => DepartureKind::Other,
                }
            }
        }
        _ => DepartureKind::Other,
    };
    Departure {
        kind,
        line,
        published: published.map(str::to_owned),
        printed: printed.map(str::to_owned),
    }
}

/// A plot of values in one column is as high as there are values.
const LINES_COMPARED_MAX: usize = 512;

/// The pairs of indexes of a longest common subsequence.
fn common_lines(one: &[&str], other: &[&str]) -> Vec<(usize, usize)> {
    if one.len().max(other.len()) > LINES_COMPARED_MAX {
        let pairs = one.iter().zip(other).enumerate();
        let equal = pairs.filter(|(_, (one, other))| one == other);
        return equal.map(|(index, _)| (index, index)).collect();
    }
    // lengths[i][j]: of the rest from i and j on.
    let width = other.len() + 1;
    let mut lengths = vec![0_usize; (one.len() + 1) * width];
    for i in (0..one.len()).rev() {
        for j in (0..other.len()).rev() {
            lengths[i * width + j] = if one[i] == other[j] {
                lengths[(i + 1) * width + j + 1] + 1
            } else {
                lengths[(i + 1) * width + j].max(lengths[i * width + j + 1])
            };
        }
    }
    let (mut pairs, mut i, mut j) = (Vec::new(), 0, 0);
    while i < one.len() && j < other.len() {
        if one[i] == other[j] {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if lengths[(i + 1) * width + j] >= lengths[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_stats::ministat::published_blocks;

    fn observations() -> Vec<Vec<f64>> {
        vec![vec![1.0, 2.0, 3.0], vec![5.0, 6.0, 7.0]]
    }

    fn printed() -> String {
        let datasets = observations().into_iter().zip(["off", "on"]);
        let datasets = datasets.map(|(values, name)| Dataset::new(name, values).unwrap());
        let layout = Layout {
            plot_width: 20,
            ..Layout::default()
        };
        Report::new(datasets.collect(), layout).unwrap().to_string()
    }

    fn printing(text: &str) -> Printing {
        let blocks = published_blocks(text);
        let block = &blocks[0];
        print_again(block, &observations(), &block.dialects(&observations()))
    }

    /// The kinds and lines of what is different.
    fn departures(text: &str) -> Vec<(DepartureKind, usize)> {
        match printing(text) {
            Printing::Exact(_) => Vec::new(),
            Printing::Departs(departures) => departures
                .iter()
                .map(|departure| (departure.kind, departure.line))
                .collect(),
        }
    }

    #[test]
    fn what_pasting_does_is_no_departure() {
        let text = printed();
        for pasted in [
            text.clone(),
            text.replace('\t', "        "),
            text.replace('\n', "\r\n"),
            format!("\n\n````\n{text}````"),
        ] {
            assert!(matches!(printing(&pasted), Printing::Exact(_)), "{pasted}");
        }
        let Printing::Exact(dialects) = printing(&text) else {
            panic!();
        };
        assert_eq!(dialects, [Dialect::FreeBsd12, Dialect::FreeBsd13]);
    }

    #[test]
    fn a_block_without_plot_is_that_of_an_option() {
        let text = printed();
        let lines = text.lines().filter(|line| !line.ends_with(['+', '|']));
        let text: String = lines.map(|line| format!("{line}\n")).collect();
        assert!(matches!(printing(&text), Printing::Exact(_)));
    }

    #[test]
    fn every_change_by_hand_has_a_kind_and_a_line() {
        let text = printed();
        let student = text.find("\t(Student").unwrap();
        let label_line = "x off\n";
        for (changed, expected) in [
            (
                text[..student].to_owned(),
                vec![(DepartureKind::PooledMissing, 12)],
            ),
            (
                format!("{}x next\n", text.trim_end()),
                vec![(DepartureKind::Glued, 13)],
            ),
            (
                text.replace(label_line, ""),
                vec![(DepartureKind::LabelMissing, 1)],
            ),
            (
                text.replace("x   3", "x  3"),
                vec![(DepartureKind::Spacing, 8)],
            ),
            (
                text.replace("|_", "||"),
                vec![(DepartureKind::PlotAltered, 5)],
            ),
            (
                text.replace("253.413", "253.414"),
                vec![(DepartureKind::FiguresAltered, 12)],
            ),
        ] {
            assert_ne!(changed, text);
            assert_eq!(departures(&changed), expected, "{changed}");
        }
    }

    #[test]
    fn a_line_left_out_is_shown() {
        let text = printed();
        let without = &text[..text.find("\t(Student").unwrap()];
        let Printing::Departs(departures) = printing(without) else {
            panic!();
        };
        assert_eq!(
            departures[0].printed.as_deref(),
            Some("\t(Student's t, pooled s = 1)")
        );
        assert_eq!(departures[0].published, None);
    }
}
