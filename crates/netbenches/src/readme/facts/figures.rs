//! Numbers in the text against those in the blocks and tables.

use std::collections::{HashMap, HashSet};

use fwdlab_stats::ministat::{PublishedBlock, PublishedComparison};

use super::super::{Claim, PublishedReadme, Quantity, ReadmeBlock};
use super::tables::{Cell, unsupported_changes};

/// A number in the text that comes from nothing in the README.
#[derive(Clone, Debug, PartialEq)]
pub struct UnsupportedClaim {
    /// The number.
    pub claim: Claim,
    /// The figure next to it that the README does give, in the same unit.
    pub nearest: f64,
    /// Whether it is that figure but for one digit.
    pub is_misprint: bool,
}

/// Words of lines on something else than the results beside them: what was offered, what was measured
/// another time, what a profile shows.
const OTHER_SUBJECTS: &[&str] = &[
    "another",
    "before",
    "confidence",
    "cpu",
    "cycles",
    "earlier",
    "expected",
    "frame loss",
    "generat",
    "idle",
    "line-rate",
    "line rate",
    "link",
    "load",
    "lossless",
    "memory",
    "no loss",
    "packet loss",
    "per core",
    "per queue",
    "previous",
    "send",
    "theoretical",
    "traffic",
    "usage",
    "without loss",
    "year",
];

/// Percentages and packet rates beside a block that no row and no comparison of the README gives, and
/// changes in a table that its other cells do not give.
///
/// A claim is looked at only where it stands in the caption of a block or in the paragraph right behind
/// it, and does not speak of another subject. It is supported by any row of any block, by the change
/// from any row's median or average to any other's, and by any cell of a table; one more in its last
/// digit is rounding, and what is said to be approximate may be a tenth off. Away from the blocks a
/// claim is looked at as well, but has to be a figure of theirs but for one digit.
pub fn unsupported_claims(readme: &PublishedReadme) -> Vec<UnsupportedClaim> {
    let mut found = Vec::new();
    for table in &readme.tables {
        unsupported_changes(table, &mut found);
    }
    if !readme.claims.is_empty() {
        unsupported_in_prose(readme, &mut found);
    }
    found.sort_by_key(|found| found.claim.line);
    found
}

fn unsupported_in_prose(readme: &PublishedReadme, found: &mut Vec<UnsupportedClaim>) {
    let beside = lines_beside_blocks(readme);
    let comparisons: Vec<Option<Figures>> =
        readme.blocks.iter().map(Figures::of_comparison).collect();
    let figures = Figures::of(readme);
    let elsewhere = lines_on_results(readme);
    for claim in &readme.claims {
        let block = beside.get(&claim.line);
        let is_beside = block.is_some();
        if claim.is_half_width || !is_beside && !elsewhere.contains(&claim.line) {
            continue;
        }
        let Some(nearest) = figures.nearest_if_unsupported(claim) else {
            continue;
        };
        let digits_min = if is_beside {
            BESIDE_DIGITS_MIN
        } else {
            ELSEWHERE_DIGITS_MIN
        };
        let of_comparison = block.and_then(|&block| comparisons[block].as_ref());
        let misprinted = of_comparison
            .and_then(|figures| figures.misprinted(claim, COMPARISON_DIGITS_MIN))
            .or_else(|| {
                let is_telling = is_beside || figures.is_telling(claim);
                figures.misprinted(claim, digits_min).filter(|_| is_telling)
            });
        if is_beside || misprinted.is_some() {
            found.push(UnsupportedClaim {
                claim: claim.clone(),
                nearest: misprinted.unwrap_or(nearest),
                is_misprint: misprinted.is_some(),
            });
        }
    }
}

fn speaks_of_other(text: &str) -> bool {
    let text = text.to_lowercase();
    OTHER_SUBJECTS.iter().any(|word| text.contains(word))
}

/// The lines of captions, and of the paragraph behind a block, that speak of the block, and which that is.
pub(super) fn lines_beside_blocks(readme: &PublishedReadme) -> HashMap<usize, usize> {
    let blocks = || readme.blocks.iter().enumerate();
    let captions = blocks().filter_map(|(index, block)| {
        let caption = block.caption.as_ref()?;
        let is_of_block = caption.text.trim_end().ends_with(':') && !speaks_of_other(&caption.text);
        is_of_block.then_some((caption.line, index))
    });
    // A fence and an empty line may be between a block and what is behind it.
    let near: HashMap<usize, usize> = blocks()
        .filter_map(|(index, block)| Some((*block.block.source_lines.last()?, index)))
        .flat_map(|(end, index)| (end + 1..=end + 3).map(move |line| (line, index)))
        .collect();
    let mut behind = Vec::new();
    let mut open = None;
    for text in readme.sections.iter().flat_map(|section| &section.prose) {
        let goes_on = open.filter(|(until, _)| *until == text.line);
        let block = near.get(&text.line).copied();
        let Some(block) = block.or(goes_on.map(|(_, block)| block)) else {
            continue;
        };
        open = Some((text.line + 1, block));
        if !speaks_of_other(&text.text) {
            behind.push((text.line, block));
        }
    }
    // A line between two blocks that ends in a colon is the second's.
    behind.into_iter().chain(captions).collect()
}

/// The other lines that may speak of results: not those on the laboratory.
fn lines_on_results(readme: &PublishedReadme) -> HashSet<usize> {
    let lab: HashSet<usize> = readme.lab.iter().map(|line| line.line).collect();
    let lines = readme.sections.iter().flat_map(|section| &section.prose);
    lines
        .filter(|text| !lab.contains(&text.line) && !speaks_of_other(&text.text))
        .map(|text| text.line)
        .collect()
}

/// Fewer digits are near those of any number: beside a block of one comparison, of more, and away from it.
const COMPARISON_DIGITS_MIN: usize = 2;
const BESIDE_DIGITS_MIN: usize = 3;
const ELSEWHERE_DIGITS_MIN: usize = 4;
/// Of all numbers of so many digits, no more than this part may be near a figure away from a block.
const CHANCE_MAX: f64 = 0.05;

/// Whether two numbers, rounded to the digits of the first, differ in one digit alone.
pub(super) fn is_misprint(number: f64, resolution: f64, figure: f64) -> bool {
    // What is written with decimals has a digit before the point: 0.3 is 9.3 but for one.
    let width = if resolution < 1.0 { 2 } else { 1 };
    let digits = |number: f64| format!("{:0width$.0}", (number.abs() / resolution).round());
    let (one, other) = (digits(number), digits(figure));
    let differ = one.bytes().zip(other.bytes()).filter(|(a, b)| a != b);
    one.len() == other.len() && differ.count() == 1
}

/// What the README gives, in absolute numbers.
#[derive(Default)]
pub(super) struct Figures {
    percentages: Vec<f64>,
    pub(super) rates: Vec<f64>,
    /// Medians and averages of which every pair makes a percentage.
    levels: Vec<f64>,
}

/// More levels make so many pairs that any number is near one of them.
const LEVELS_MAX: usize = 24;

impl Figures {
    pub(super) fn of_blocks(readme: &PublishedReadme) -> Self {
        let mut figures = Self::default();
        for block in &readme.blocks {
            figures.add(&block.block);
        }
        figures
    }

    /// Those of a block that compares two datasets.
    fn of_comparison(block: &ReadmeBlock) -> Option<Self> {
        let mut figures = Self::default();
        figures.add(&block.block);
        (block.block.rows.len() == 2).then(|| figures.finish())
    }

    fn of(readme: &PublishedReadme) -> Self {
        let mut figures = Self::of_blocks(readme);
        let cells = readme
            .tables
            .iter()
            .flat_map(|table| &table.rows)
            .flat_map(|row| &row.cells);
        for cell in cells {
            match Cell::of(cell) {
                Cell::Number(number) => figures.rates.push(number.abs()),
                Cell::Change(claim) => figures.percentages.push(claim.high.abs()),
                Cell::Rate(claim) => figures.rates.push(claim.high.abs()),
                Cell::Other => {}
            }
        }
        figures.finish()
    }

    fn add(&mut self, block: &PublishedBlock) {
        let number = |text: &String| text.parse::<f64>().ok().filter(|number| number.is_finite());
        for row in &block.rows {
            let numbers = row.figures.iter().filter_map(number);
            self.rates.extend(numbers.clone().take(4));
            self.levels.extend(numbers.skip(2).take(2));
            if let Some(PublishedComparison::Difference {
                percent, absolute, ..
            }) = &row.comparison
            {
                self.percentages.extend(number(&percent[0]).map(f64::abs));
                self.rates.extend(number(&absolute[0]).map(f64::abs));
            }
        }
    }

    /// Adds the changes between levels, and sorts.
    fn finish(mut self) -> Self {
        if self.levels.len() > LEVELS_MAX {
            self.percentages.clear();
        } else {
            for from in &self.levels {
                let changes = self
                    .levels
                    .iter()
                    .map(|to| ((to - from) * 100.0 / from).abs());
                self.percentages
                    .extend(changes.filter(|change| change.is_finite()));
            }
        }
        self.percentages.sort_by(f64::total_cmp);
        self.rates.sort_by(f64::total_cmp);
        self
    }

    /// The figure that an exact claim is but for one digit.
    fn misprinted(&self, claim: &Claim, digits_min: usize) -> Option<f64> {
        let digits = claim.text.bytes().filter(u8::is_ascii_digit).count();
        let is_exact = !claim.is_approximate && claim.high <= claim.low;
        if !is_exact || digits < digits_min {
            return None;
        }
        let mut figures = self.of_quantity(claim.quantity)?.iter();
        let is_figure = |figure: &&f64| is_misprint(claim.high, claim.resolution, **figure);
        figures.find(is_figure).copied()
    }

    /// Whether a number of so many digits is seldom one of these figures but for one digit by chance.
    fn is_telling(&self, claim: &Claim) -> bool {
        let digits = claim.text.bytes().filter(u8::is_ascii_digit).count();
        let numbers = 10_f64.powi(i32::try_from(digits).unwrap_or(i32::MAX) - 1);
        let figures = self.of_quantity(claim.quantity).unwrap_or_default();
        (figures.len() * digits) as f64 <= numbers * CHANCE_MAX
    }

    fn of_quantity(&self, quantity: Quantity) -> Option<&[f64]> {
        match quantity {
            Quantity::Percent => Some(&self.percentages),
            Quantity::PacketsPerSecond => Some(&self.rates),
            Quantity::BitsPerSecond => None,
        }
    }

    /// The nearest figure, where none is near enough.
    fn nearest_if_unsupported(&self, claim: &Claim) -> Option<f64> {
        let figures = self.of_quantity(claim.quantity)?;
        let [one, other] = [claim.low.abs(), claim.high.abs()];
        let (low, high) = (one.min(other), one.max(other));
        let distance = |figure: f64| (low - figure).max(figure - high).max(0.0);
        let above = figures.partition_point(|figure| *figure < low);
        let around = &figures[above.saturating_sub(1)..figures.len().min(above + 1)];
        let nearest = around
            .iter()
            .copied()
            .min_by(|one, other| distance(*one).total_cmp(&distance(*other)))?;
        let slack = if claim.is_approximate || claim.low < claim.high {
            claim.resolution.max(nearest / 10.0)
        } else {
            claim.resolution
        };
        (distance(nearest) > slack * ROUNDING).then_some(nearest)
    }
}

/// What is off by just one in the last digit is not off by more for being written in binary.
pub(super) const ROUNDING: f64 = 1.000_001;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The second row is 12.33 % above the first.
    pub(in super::super) const BLOCK: &str = "\
```
x old
+ new
x   5       5412642       5620939     5489556.5     5496573.1     82094.054
+   5       6130165     6256993.5       6136242     6174366.1     58401.818
Difference at 95.0% confidence
	677793 +/- 103899
	12.3312% +/- 2.04798%
	(Student's t, pooled s = 71239.8)
```
";

    fn found(text: &str) -> Vec<(usize, String)> {
        let readme = PublishedReadme::parse(text.replace("BLOCK", BLOCK).as_bytes());
        let found = unsupported_claims(&readme).into_iter();
        found
            .map(|found| (found.claim.line, found.claim.text))
            .collect()
    }

    #[test]
    fn a_number_that_nothing_gives_is_found() {
        for (text, expected) in [
            ("It is +15% faster:\nBLOCK", (1, "+15%")),
            ("BLOCK\n=> improvement of 9.3%!\n", (12, "9.3%")),
            ("BLOCK\n=> from 5.4 Mpps to\n7.2 Mpps\n", (13, "7.2 Mpps")),
        ] {
            let (line, claim) = expected;
            assert_eq!(found(text), [(line, claim.to_owned())], "{text}");
        }
    }

    #[test]
    fn what_a_row_a_pair_or_another_subject_gives_is_not_found() {
        for text in [
            "It is +12.3% faster:\nBLOCK",
            "It is 12% faster:\nBLOCK",
            "It is 13% faster:\nBLOCK",
            "About 11% better:\nBLOCK",
            "-11% without it:\nBLOCK",
            "BLOCK\n=> from 5.49Mpps to 6.1 Mpps, +678 Kpps",
            "(+/- 2%):\nBLOCK",
            // Not beside it, or about another thing.
            "It is +15% faster.\n\nMore:\nBLOCK",
            "## It is +15% faster\nBLOCK",
            "Traffic load at 14.8 Mpps:\nBLOCK",
            "BLOCK\nIt was 7.2% with the previous patch",
            "BLOCK\n\n\nIt is 77% faster",
            "It is +15% faster:\n",
            "55 Mb/s:\nBLOCK",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }

    #[test]
    fn a_change_in_a_table_comes_from_its_row() {
        let table = |last: &str| {
            format!(
                "| what | new | old | delta |\n|---|--:|--:|--:|\n\
                 | a | 866969 | 595942 | +45% |\n| b | 264552 | 237002 | +12% |\n\
                 | c | 440099 | 349198 | +26% |\n| d | 542704 | 437836 | {last} |\n"
            )
        };
        assert_eq!(found(&table("+24%")), []);
        assert_eq!(found(&table("+42%")), [(6, "+42%".to_owned())]);
        let shares = "| a | b | c |\n|--|--|--|\n| 1 | 2 | +40% |\n| 3 | 4 | +41% |\n";
        assert_eq!(found(shares), []);
    }

    #[test]
    fn a_figure_that_is_but_for_one_digit_is_a_misprint() {
        let misprints = |text: &str| -> Vec<String> {
            let readme = PublishedReadme::parse(text.replace("BLOCK", BLOCK).as_bytes());
            let found = unsupported_claims(&readme).into_iter();
            let misprints = found.filter(|found| found.is_misprint);
            misprints.map(|found| found.claim.text).collect()
        };
        for (text, expected) in [
            ("BLOCK\n=> improvement of 12.8%!\n", &["12.8%"][..]),
            ("BLOCK\n## Summary\nIt is 15.331% faster.\n", &["15.331%"]),
            ("BLOCK\n## Summary\nIt is 15.33% faster.\n", &[]),
            ("## Summary\nNow at 6.174 Mpps.\n\nMore:\nBLOCK", &[]),
            (
                "## Summary\nNow at 6.674 Mpps.\n\nMore:\nBLOCK",
                &["6.674 Mpps"],
            ),
            ("## Summary\nNow at 6.67 Mpps.\n\nMore:\nBLOCK", &[]),
            // Too few digits, another thing, about so much.
            ("BLOCK\n=> improvement of 18%!\n", &["18%"]),
            ("BLOCK\n=> improvement of 9%!\n", &[]),
            ("BLOCK\n## Summary\nLoad at 6.674 Mpps.\n", &[]),
            ("BLOCK\n## Summary\nAbout 15.33% faster.\n", &[]),
        ] {
            assert_eq!(misprints(text), expected, "{text}");
        }
    }
}
