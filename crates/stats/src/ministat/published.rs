//! Blocks of `ministat` in published text, and the dialects that made them.

use super::plot::SYMBOLS;
use super::report::HEADING;
use super::{Comparison, Confidence, Dataset, Dialect, Layout, general, parse_number};

/// A block that somebody pasted into a README.
///
/// Shape: one row or more, at most [`Report::DATASETS_MAX`](super::Report::DATASETS_MAX).
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedBlock {
    /// The line that it begins on, from 1.
    pub line: usize,
    /// Its rows, in their order.
    pub rows: Vec<PublishedRow>,
    /// The options and the terminal it was printed with, as far as can be seen; the dialect is
    /// today's, see [`Self::dialects`].
    pub layout: Layout,
    /// Its lines as `ministat` printed them: line ends, tabs and indentation that pasting changed
    /// are restored.
    pub text: String,
    /// The line that each line of [`Self::text`] was read from, from 1.
    pub source_lines: Vec<usize>,
}

/// A summary row, and how it compares with the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedRow {
    /// What the publisher called the dataset, where the block says it.
    pub label: Option<String>,
    /// The line that the numbers stand on, from 1.
    pub line: usize,
    /// The line that the label stands on, from 1.
    pub label_line: Option<usize>,
    /// How many points there were.
    pub count: usize,
    /// Minimum, maximum, median, average and standard deviation, as printed.
    pub figures: [String; 5],
    /// The lines below the row; none below the first, nor where they were left out.
    pub comparison: Option<PublishedComparison>,
}

/// What stands below a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublishedComparison {
    /// `No difference proven at …% confidence`.
    NoDifference {
        /// The level.
        confidence: Confidence,
    },
    /// `Difference at …% confidence`; figures as printed.
    Difference {
        /// The level.
        confidence: Confidence,
        /// The difference and its half-width.
        absolute: [String; 2],
        /// The difference and its half-width in percent.
        percent: [String; 2],
        /// The pooled standard deviation; publishers leave its line out at times.
        pooled: Option<String>,
    },
    /// `Difference at …% confidence`, without its figures.
    DifferenceAlone {
        /// The level.
        confidence: Confidence,
    },
}

impl PublishedComparison {
    /// Whether it says that there is a difference.
    pub fn says_difference(&self) -> bool {
        !matches!(self, Self::NoDifference { .. })
    }

    /// The level it was made at.
    pub fn confidence(&self) -> Confidence {
        match self {
            Self::NoDifference { confidence }
            | Self::DifferenceAlone { confidence }
            | Self::Difference { confidence, .. } => *confidence,
        }
    }

    /// Whether this is how `comparison` is printed, but for a line left out here.
    fn shows(&self, comparison: &Comparison) -> bool {
        let printed = |published: &[String; 2], numbers: [f64; 2]| {
            let printed = numbers.map(|number| general(number, 6).to_string());
            *published == printed
        };
        match self {
            Self::NoDifference { .. } => !comparison.is_proven(),
            Self::DifferenceAlone { .. } => comparison.is_proven(),
            Self::Difference {
                absolute,
                percent,
                pooled,
                ..
            } => {
                let deviation = general(comparison.pooled_standard_deviation, 6).to_string();
                comparison.is_proven()
                    && printed(
                        absolute,
                        [comparison.difference, comparison.difference_half_width],
                    )
                    && printed(
                        percent,
                        [comparison.difference_percent, comparison.half_width_percent],
                    )
                    && pooled.as_ref().is_none_or(|pooled| *pooled == deviation)
            }
        }
    }
}

impl PublishedRow {
    /// Whether `observations` give this row's figures in one of the dialects.
    ///
    /// Shape: in the order of measurement.
    pub fn is_of(&self, observations: &[f64]) -> bool {
        observations.len() == self.count
            && Dataset::new("", observations.to_vec()).is_ok_and(|dataset| {
                let agrees = |dialect| self.shows(&dataset.clone().in_dialect(dialect));
                Dialect::ALL.into_iter().any(agrees)
            })
    }

    /// The five figures that `observations` give, in the dialect that has most of this row's.
    ///
    /// Shape: in the order of measurement; none where there are too few.
    ///
    /// # Examples
    /// ```
    /// use fwdlab_stats::ministat::published_blocks;
    /// let row = &published_blocks("x 3 1 9 2 2 1\n")[0].rows[0];
    /// assert_eq!(row.figures_of(&[1.0, 3.0, 2.0]).unwrap().join(" "), "1 3 2 2 1");
    /// ```
    pub fn figures_of(&self, observations: &[f64]) -> Option<[String; 5]> {
        let dataset = Dataset::new("", observations.to_vec()).ok()?;
        let figures = |dialect| dataset.clone().in_dialect(dialect).figures();
        Dialect::ALL
            .into_iter()
            .map(figures)
            .max_by_key(|figures| self.common_figures(figures))
    }

    /// How many of its figures are these.
    pub fn common_figures(&self, figures: &[String; 5]) -> usize {
        let pairs = self.figures.iter().zip(figures);
        pairs.filter(|(own, other)| own == other).count()
    }

    /// Whether these are the figures of `dataset`.
    fn shows(&self, dataset: &Dataset) -> bool {
        self.count == dataset.len() && self.figures == dataset.figures()
    }
}

impl PublishedBlock {
    /// The dialects in which `observations` give this block's rows and difference lines: several
    /// where the block cannot tell them apart, none where it was made from other numbers.
    ///
    /// Shape: the observations of each row, in the rows' order, each in the order of measurement.
    pub fn dialects(&self, observations: &[Vec<f64>]) -> Vec<Dialect> {
        let datasets: Result<Vec<Dataset>, _> = observations
            .iter()
            .map(|values| Dataset::new("", values.clone()))
            .collect();
        let Ok(datasets) = datasets else {
            return Vec::new();
        };
        if datasets.len() != self.rows.len() {
            return Vec::new();
        }
        let agrees = |dialect: &Dialect| {
            let in_dialect = |dataset: &Dataset| dataset.clone().in_dialect(*dialect);
            let datasets: Vec<Dataset> = datasets.iter().map(in_dialect).collect();
            self.rows.iter().zip(&datasets).all(|(row, dataset)| {
                let shows_comparison = |published: &PublishedComparison| {
                    let level = published.confidence();
                    published.shows(&Comparison::new(dataset, &datasets[0], level))
                };
                row.shows(dataset) && row.comparison.as_ref().is_none_or(shows_comparison)
            })
        };
        Dialect::ALL.into_iter().filter(agrees).collect()
    }
}

/// The blocks of `ministat` in a text, in its order.
///
/// A block is known by its first row, `x` with six numbers, whatever stands around it: fences of
/// any length or none, indentation, carriage returns, spaces in place of tabs. Labels, plot,
/// heading and difference lines may be missing, and blank lines stand above the first row. What is
/// not as `ministat` prints it ends the block.
pub fn published_blocks(text: &str) -> Vec<PublishedBlock> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let mut blocks = Vec::new();
    // Where the last block ended: what belongs to it is not read again.
    let (mut end, mut next) = (0, 0);
    while next < lines.len() {
        if let Some((count, figures)) = row(lines[next], 0) {
            let body = Body::read(&lines, next, count, figures);
            let mut preamble = Preamble::read(&lines[end..next], body.rows.len());
            preamble.move_by(end);
            end = body.end;
            next = end;
            blocks.push(block(&lines, preamble, body));
        } else {
            next += 1;
        }
    }
    blocks
}

fn block(lines: &[&str], preamble: Preamble, body: Body) -> PublishedBlock {
    let mut rows = body.rows;
    for (row, label) in rows.iter_mut().zip(preamble.labels) {
        (row.label_line, row.label) = label.map(|(index, label)| (index + 1, label)).unzip();
    }
    let mut comparisons = rows.iter().filter_map(|row| row.comparison.as_ref());
    let confidence = comparisons.next().map(PublishedComparison::confidence);
    let (first, end) = (preamble.first, body.end);
    let (mut text, mut source_lines) = (String::new(), Vec::new());
    for (index, line) in lines.iter().enumerate().take(end).skip(first) {
        let line = line.trim_start();
        if line.is_empty() {
            continue;
        }
        if is_heading(line) {
            text.push_str(HEADING);
        } else {
            text.push_str(if is_detail(line) { "\t" } else { "" });
            text.push_str(line);
        }
        text.push('\n');
        source_lines.push(index + 1);
    }
    PublishedBlock {
        line: first + 1,
        layout: Layout {
            headings: preamble.has_heading,
            plot: preamble.has_plot,
            plot_width: preamble.plot_width.unwrap_or(Layout::default().plot_width),
            separate_bars: preamble.bar_lines > 1,
            comparisons: confidence.is_some() || rows.len() == 1,
            confidence: confidence.unwrap_or_default(),
            dialect: Dialect::default(),
        },
        rows,
        text,
        source_lines,
    }
}

/// What stands above the first row.
#[derive(Default)]
struct Preamble {
    /// Index of its first line; that of the first row, where there is none.
    first: usize,
    /// By symbol: the index of the line, and the label.
    labels: [Option<(usize, String)>; SYMBOLS.len() - 1],
    has_heading: bool,
    has_plot: bool,
    plot_width: Option<usize>,
    bar_lines: usize,
}

impl Preamble {
    /// Reads `above`, the lines between the block before and the first of so many rows, from its end.
    fn read(above: &[&str], rows: usize) -> Self {
        let mut preamble = Self {
            first: above.len(),
            ..Self::default()
        };
        let mut above = without_blank_end(above);
        if let [rest @ .., line] = above
            && is_heading(line)
        {
            preamble.has_heading = true;
            preamble.first = rest.len();
            above = without_blank_end(rest);
        }
        if let [rest @ .., line] = above {
            let plot = if line.trim_start().starts_with("[no plot, span is ") {
                Some(rest)
            } else if let Some(width) = border(line)
                && let Some((rest, bar_lines)) = box_above(rest, width)
            {
                preamble.plot_width = Some(width);
                preamble.bar_lines = bar_lines;
                Some(rest)
            } else {
                None
            };
            if let Some(rest) = plot {
                preamble.has_plot = true;
                preamble.first = rest.len();
                above = without_blank_end(rest);
            }
        }
        // Each label's symbol comes before that of the one below it.
        let mut symbols = preamble.labels.len();
        let first = preamble.first;
        while let [rest @ .., line] = above
            && let Some((symbol, label)) = label(line)
            && symbol < symbols
        {
            preamble.labels[symbol] = Some((rest.len(), label.to_owned()));
            symbols = symbol;
            preamble.first = rest.len();
            above = rest;
        }
        // Without a label of any row these are headings and lists.
        if preamble.labels.iter().take(rows).all(Option::is_none) {
            preamble.first = first;
            preamble.labels = Default::default();
        }
        preamble
    }

    /// Counts from a line that stands so many lines above the one it was read from.
    fn move_by(&mut self, lines: usize) {
        self.first += lines;
        for (index, _) in self.labels.iter_mut().flatten() {
            *index += lines;
        }
    }
}

fn without_blank_end<'a>(lines: &'a [&'a str]) -> &'a [&'a str] {
    let blank = lines.iter().rev().take_while(|line| line.is_empty());
    &lines[..lines.len() - blank.count()]
}

fn is_heading(line: &str) -> bool {
    line.split_whitespace().eq(HEADING.split_whitespace())
}

/// The width of a box whose border this is.
fn border(line: &str) -> Option<usize> {
    let inside = line.trim_start().strip_prefix('+')?.strip_suffix('+')?;
    inside
        .bytes()
        .all(|byte| byte == b'-')
        .then_some(inside.len())
}

/// What stands above the box that ends below `above`, and how many of its lines are bars.
fn box_above<'a>(above: &'a [&'a str], width: usize) -> Option<(&'a [&'a str], usize)> {
    let is_inside = |line: &&&str| {
        let line = line.trim_start();
        line.starts_with('|') && line.ends_with('|') && line.len() == width + 2
    };
    let inside = above.iter().rev().take_while(is_inside);
    // Only the bars have an A: no dataset has it for a symbol.
    let (mut height, mut bar_lines) = (0, 0);
    for line in inside {
        height += 1;
        bar_lines += usize::from(line.contains('A'));
    }
    let (rest, border_line) = match &above[..above.len() - height] {
        [rest @ .., line] => (rest, line),
        [] => return None,
    };
    (border(border_line) == Some(width)).then_some((rest, bar_lines))
}

/// A line that names a dataset: the index of its symbol, and the name.
fn label(line: &str) -> Option<(usize, &str)> {
    let (symbol, label) = line.trim_start().split_once(' ')?;
    let &[symbol] = symbol.as_bytes() else {
        return None;
    };
    let index = SYMBOLS[1..].iter().position(|known| *known == symbol)?;
    Some((index, label))
}

/// The rows of a block and what stands below them.
struct Body {
    rows: Vec<PublishedRow>,
    /// Index of the first line behind it.
    end: usize,
}

impl Body {
    /// Reads from the line of the first row on, whose numbers these are.
    fn read(lines: &[&str], first: usize, count: usize, figures: [String; 5]) -> Self {
        let mut body = Self {
            rows: Vec::new(),
            end: first,
        };
        let mut found = Some((count, figures));
        while let Some((count, figures)) = found {
            body.end += 1;
            let line = body.end;
            let mut comparison = None;
            if !body.rows.is_empty()
                && let Some((lines_read, read)) = comparison_at(&lines[body.end..])
            {
                body.end += lines_read;
                comparison = Some(read);
            }
            body.rows.push(PublishedRow {
                label: None,
                line,
                label_line: None,
                count,
                figures,
                comparison,
            });
            found = lines
                .get(body.end)
                .and_then(|line| row(line, body.rows.len()));
        }
        body
    }
}

/// The numbers of a row with the symbol of that index.
fn row(line: &str, symbol_index: usize) -> Option<(usize, [String; 5])> {
    let symbol = *SYMBOLS[1..].get(symbol_index)?;
    let mut words = line.split_whitespace();
    if words.next()?.as_bytes() != [symbol] {
        return None;
    }
    let count = words.next()?.parse().ok()?;
    let mut figures: [String; 5] = Default::default();
    for figure in &mut figures {
        *figure = number(words.next()?)?;
    }
    words.next().is_none().then_some((count, figures))
}

/// The difference lines that `lines` begin with, and how many they are.
fn comparison_at(lines: &[&str]) -> Option<(usize, PublishedComparison)> {
    let [heading, rest @ ..] = lines else {
        return None;
    };
    let level = |words: &str| {
        let level = heading.trim_start().strip_prefix(words)?;
        let percent = level.trim().strip_suffix("% confidence")?;
        Confidence::from_percent(parse_number(percent.as_bytes())?)
    };
    if let Some(confidence) = level("No difference proven at ") {
        return Some((1, PublishedComparison::NoDifference { confidence }));
    }
    let confidence = level("Difference at ")?;
    let figures =
        |lines: &[&str]| Some((interval(lines.first()?, "")?, interval(lines.get(1)?, "%")?));
    let Some((absolute, percent)) = figures(rest) else {
        return Some((1, PublishedComparison::DifferenceAlone { confidence }));
    };
    let pooled = rest.get(2).and_then(|line| pooled(line));
    let line_count = 3 + usize::from(pooled.is_some());
    let comparison = PublishedComparison::Difference {
        confidence,
        absolute,
        percent,
        pooled,
    };
    Some((line_count, comparison))
}

/// The two numbers of `1 +/- 2`, each with the unit behind it.
fn interval(line: &str, unit: &str) -> Option<[String; 2]> {
    let (difference, half_width) = line.split_once(" +/- ")?;
    let number_in = |text: &str| number(text.trim().strip_suffix(unit)?);
    Some([number_in(difference)?, number_in(half_width)?])
}

/// The number of the line on the pooled standard deviation. A label has been pasted right behind
/// that line in print, so what follows it is passed over.
fn pooled(line: &str) -> Option<String> {
    let line = line.trim_start().strip_prefix(POOLED)?;
    number(line.split_once(')')?.0)
}

const POOLED: &str = "(Student's t, pooled s = ";

/// Whether `ministat` indents this line, given without its indentation.
fn is_detail(line: &str) -> bool {
    line.starts_with(POOLED) || interval(line, "").is_some() || interval(line, "%").is_some()
}

/// The text of a number, if it is one.
fn number(text: &str) -> Option<String> {
    parse_number(text.as_bytes()).map(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::Report;
    use super::*;
    use proptest::prelude::*;

    const BLOCK: &str = "\
x off
+ on
+--------------------+
|x   x  x     +   + +|
||___A__|  |____A___||
+--------------------+
    N           Min           Max        Median           Avg        Stddev
x   3             1             3             2             2             1
+   3             5             7             6             6             1
Difference at 95.0% confidence
\t4 +/- 2.26659
\t200% +/- 253.413%
\t(Student's t, pooled s = 1)
";

    fn only_block(text: &str) -> PublishedBlock {
        let mut blocks = published_blocks(text);
        assert_eq!(blocks.len(), 1, "{text}");
        blocks.remove(0)
    }

    /// The rows without the places they stand at.
    fn words(block: &PublishedBlock) -> Vec<PublishedRow> {
        let nowhere = |row: &PublishedRow| PublishedRow {
            line: 0,
            label_line: None,
            ..row.clone()
        };
        block.rows.iter().map(nowhere).collect()
    }

    #[test]
    fn a_block_is_taken_apart() {
        let block = only_block(&format!("# Title\n\n```\n{BLOCK}```\n"));
        assert_eq!(block.line, 4);
        assert_eq!(block.text, BLOCK);
        assert_eq!(
            block.layout,
            Layout {
                plot_width: 20,
                ..Layout::default()
            }
        );
        let [off, on] = block.rows.as_slice() else {
            panic!("{:?}", block.rows);
        };
        assert_eq!((off.label.as_deref(), off.count), (Some("off"), 3));
        assert_eq!(off.figures, ["1", "3", "2", "2", "1"]);
        assert_eq!((on.label.as_deref(), &off.comparison), (Some("on"), &None));
        let expected = PublishedComparison::Difference {
            confidence: Confidence::Percent95,
            absolute: ["4", "2.26659"].map(str::to_owned),
            percent: ["200", "253.413"].map(str::to_owned),
            pooled: Some("1".to_owned()),
        };
        assert_eq!(on.comparison.as_ref(), Some(&expected));
    }

    #[test]
    fn what_pasting_does_to_a_block_is_undone() {
        let pasted = [
            BLOCK.replace('\n', "\r\n"),
            BLOCK.replace('\t', "        "),
            BLOCK.replace('\t', "\u{202f}"),
            BLOCK.replace('\n', "  \n"),
            format!("````\n{BLOCK}````\n"),
            format!("    {}", BLOCK.replace('\n', "\n    ")),
            format!("- x first\n- x second\n{BLOCK}"),
            format!(
                "+ on the page before\n\n{}",
                BLOCK.replace("+ on\n", "+ on\n \n\n")
            ),
        ];
        for pasted in pasted {
            let block = only_block(&pasted);
            assert_eq!(block.text, BLOCK, "{pasted}");
            assert_eq!(words(&block), words(&only_block(BLOCK)));
            let source: Vec<&str> = pasted.lines().collect();
            for (line, number) in block.text.lines().zip(&block.source_lines) {
                assert!(source[number - 1].contains(line.trim_start()), "{pasted}");
            }
            for (row, symbol) in block.rows.iter().zip(["x ", "+ "]) {
                for line in [row.line, row.label_line.unwrap()] {
                    assert!(
                        source[line - 1].trim_start().starts_with(symbol),
                        "{pasted}"
                    );
                }
            }
        }
    }

    #[test]
    fn labels_keep_what_the_publisher_wrote() {
        let block = only_block(&BLOCK.replace("x off", "x off: inet\u{202f}4, + - | 5%"));
        assert_eq!(
            block.rows[0].label.as_deref(),
            Some("off: inet\u{202f}4, + - | 5%")
        );
    }

    #[test]
    fn parts_may_be_missing() {
        let without = |parts: &[&str]| {
            let lines = BLOCK
                .lines()
                .filter(|line| !parts.iter().any(|part| line.trim_start().starts_with(part)));
            only_block(&lines.map(|line| format!("{line}\n")).collect::<String>())
        };
        let no_plot = without(&["+-", "|"]);
        assert!(!no_plot.layout.plot && no_plot.rows[1].label.is_some());
        let no_labels = without(&["x off", "+ on"]);
        assert!(no_labels.rows.iter().all(|row| row.label.is_none()));
        assert_eq!((no_labels.layout.plot_width, no_labels.line), (20, 1));
        let first_without_label = without(&["x off"]);
        assert_eq!(first_without_label.rows[0].label, None);
        assert_eq!(first_without_label.rows[1].label.as_deref(), Some("on"));
        let no_heading = without(&["N "]);
        assert!(!no_heading.layout.headings && no_heading.layout.plot);
        let no_pooled = without(&["(Student"]);
        assert_eq!(no_pooled.rows.len(), 2);
        assert!(no_pooled.dialects(&observations()).len() > 1);
        let only_rows = without(&["Difference", "4 ", "200", "(Student"]);
        assert!(!only_rows.layout.comparisons && only_rows.rows[1].comparison.is_none());
        let only_words = without(&["4 ", "200", "(Student"]);
        let comparison = only_words.rows[1].comparison.as_ref().unwrap();
        assert!(comparison.says_difference() && only_words.text.contains("Difference"));
    }

    #[test]
    fn a_file_may_hold_several_blocks_side_by_side() {
        let glued = format!("{}{BLOCK}", BLOCK.trim_end());
        let blocks = published_blocks(&format!("{BLOCK}{BLOCK}\n{glued}"));
        let labels: Vec<_> = blocks
            .iter()
            .map(|block| block.rows[0].label.as_deref())
            .collect();
        assert_eq!(labels, [Some("off"), Some("off"), Some("off"), None]);
        assert_eq!(words(&blocks[0]), words(&blocks[1]));
        assert_eq!(
            (&blocks[0].text, blocks[0].layout),
            (&blocks[1].text, blocks[1].layout)
        );
        assert_eq!(words(&blocks[3])[1], words(&blocks[0])[1]);

        let bare = "x 3 1 3 2 2 1\n+ 3 5 7 6 6 1\n";
        let blocks = published_blocks(&bare.repeat(2));
        assert_eq!(words(&blocks[0]), words(&blocks[1]));
        assert_eq!((blocks.len(), blocks[1].line), (2, 3));
        assert_eq!(blocks[1].source_lines, [3, 4]);
        assert_eq!(blocks[1].text, bare);
    }

    #[test]
    fn what_stands_above_rows_without_labels_is_none() {
        let bare = "x 3 1 3 2 2 1\n+ 3 5 7 6 6 1\n";
        for above in ["# Results\n", "* item\n", "* one\n# two\n"] {
            let block = only_block(&format!("{above}{bare}"));
            assert_eq!(block.text, bare, "{above}");
            assert!(block.rows.iter().all(|row| row.label.is_none()), "{above}");
        }
        let more = only_block(&format!("x a\n+ b\n* c\n{bare}"));
        assert_eq!((more.line, more.rows[0].label.as_deref()), (1, Some("a")));
    }

    #[test]
    fn bars_on_one_line_are_seen() {
        let separate = BLOCK.replace(
            "||___A__|  |____A___||\n",
            "||___A__|            |\n|          |____A___||\n",
        );
        assert!(only_block(&separate).layout.separate_bars);
        assert!(!only_block(BLOCK).layout.separate_bars);
    }

    #[test]
    fn what_only_looks_like_a_block_is_none() {
        for text in [
            "",
            "x 1\n",
            "+ 3 1 3 2 2 1\n",
            "x 3 1 3 2 2\n",
            "x 3 1 3 2 2 1 1\n",
            "x three 1 3 2 2 1\n",
            "x 3 1 3 2 2 one\n",
            "| x | 3 | 1 | 3 | 2 | 2 | 1 |\n",
        ] {
            assert_eq!(published_blocks(text), [], "{text}");
        }
    }

    fn observations() -> Vec<Vec<f64>> {
        vec![vec![1.0, 2.0, 3.0], vec![5.0, 6.0, 7.0]]
    }

    #[test]
    fn the_percentage_tells_dialects_apart() {
        let block = only_block(BLOCK);
        let newer = [Dialect::FreeBsd12, Dialect::FreeBsd13];
        let older = [Dialect::FreeBsd10, Dialect::FreeBsd11];
        assert_eq!(block.dialects(&observations()), newer);
        let old = only_block(&BLOCK.replace("253.413", "113.33"));
        assert_eq!(old.dialects(&observations()), older);
        let neither = only_block(&BLOCK.replace("253.413", "113.331"));
        assert_eq!(neither.dialects(&observations()), []);
        let unproven = only_block(&BLOCK[..BLOCK.find("Difference").unwrap()]);
        assert_eq!(unproven.dialects(&observations()), Dialect::ALL);
    }

    #[test]
    fn other_observations_agree_with_no_dialect() {
        let block = only_block(BLOCK);
        for others in [
            vec![],
            vec![vec![1.0, 2.0, 3.0]],
            vec![vec![1.0, 2.0], vec![5.0, 6.0, 7.0]],
            vec![vec![1.0, 2.0, 3.0], vec![5.0, 6.0, 8.0]],
            vec![vec![5.0, 6.0, 7.0], vec![1.0, 2.0, 3.0]],
            vec![vec![1.0, 2.0, 3.0]; 8],
        ] {
            assert_eq!(block.dialects(&others), [], "{others:?}");
        }
    }

    fn layouts() -> impl Strategy<Value = Layout> {
        let confidence = prop::sample::select(Confidence::ALL.to_vec());
        let dialect = prop::sample::select(Dialect::ALL.to_vec());
        (any::<[bool; 4]>(), 2_usize..90, confidence, dialect).prop_map(
            |([headings, plot, separate_bars, comparisons], plot_width, confidence, dialect)| {
                Layout {
                    headings,
                    plot,
                    plot_width,
                    separate_bars,
                    comparisons,
                    confidence,
                    dialect,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String) {
            let _ = published_blocks(&text);
        }

        #[test]
        fn any_lines_of_a_block_are_read(
            picks in prop::collection::vec((0_usize..13, 0_usize..90, prop::option::of(".")), 0..40),
        ) {
            let lines: Vec<&str> = BLOCK.lines().collect();
            let mut text = String::new();
            for (line, cut, inserted) in picks {
                let (head, tail) = lines[line].split_at(cut.min(lines[line].len()));
                text += head;
                text += &inserted.unwrap_or_else(|| tail.to_owned());
                text.push('\n');
            }
            for block in published_blocks(&text) {
                let _ = block.dialects(&observations());
                prop_assert!(!block.rows.is_empty() && block.rows.len() <= Report::DATASETS_MAX);
                prop_assert_eq!(block.source_lines.len(), block.text.lines().count());
                prop_assert_eq!(block.source_lines.first(), Some(&block.line));
                prop_assert!(block.source_lines.is_sorted_by(|above, below| above < below));
                prop_assert!(block.source_lines.last() <= Some(&text.lines().count()));
            }
        }

        #[test]
        fn what_is_printed_is_read_back_and_recognised(
            sets in prop::collection::vec(prop::collection::vec(-1e7..1e7_f64, 3..9), 1..8),
            layout in layouts(),
        ) {
            let datasets = sets.iter().enumerate().map(|(index, values)| {
                Dataset::new(format!("set {index}"), values.clone()).unwrap()
            });
            let printed = Report::new(datasets.collect(), layout).unwrap().to_string();
            let block = only_block(&printed);
            prop_assert_eq!(&block.text, &printed);
            prop_assert!(block.dialects(&sets).contains(&layout.dialect));
            if layout.headings {
                let labels: Vec<_> = block.rows.iter().flat_map(|row| &row.label).cloned().collect();
                let expected: Vec<_> = (0..sets.len()).map(|index| format!("set {index}")).collect();
                prop_assert_eq!(labels, expected);
            }
            let relevant = Layout {
                // Nothing printed tells these.
                dialect: layout.dialect,
                confidence: if layout.comparisons { layout.confidence } else { block.layout.confidence },
                ..block.layout
            };
            if layout.plot && sets.len() > 1 && layout.comparisons {
                prop_assert_eq!(relevant, layout);
            }
        }
    }
}
