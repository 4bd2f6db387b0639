//! Numbers in the text against those in the blocks and tables.

use std::collections::{HashMap, HashSet};

use fwdlab_stats::ministat::{PublishedBlock, PublishedComparison};

use super::super::{Claim, PublishedReadme, Quantity, Table, TextLine, claims};

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

/// A cell that another table has with another number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableContradiction {
    /// Where it stands.
    pub line: usize,
    /// What it says.
    pub text: String,
    /// The first cell of its row.
    pub row: String,
    /// The heading of its column.
    pub column: String,
    /// Where the other stands.
    pub other_line: usize,
    /// What it says.
    pub other_text: String,
}

/// A number in a table that is a known figure but for one digit.
#[derive(Clone, Debug, PartialEq)]
pub struct MisprintedCell {
    /// Where it stands.
    pub line: usize,
    /// The number as written.
    pub text: String,
    /// The figure.
    pub figure: f64,
}

/// Words of lines on something else than the results beside them: what was offered, what was measured
/// another time, what a profile shows.
const OTHER_SUBJECTS: &[&str] = &[
    "before",
    "confidence",
    "cpu",
    "cycles",
    "earlier",
    "expected",
    "generat",
    "idle",
    "line-rate",
    "line rate",
    "link",
    "load",
    "loss",
    "memory",
    "previous",
    "send",
    "theoretical",
    "traffic",
    "usage",
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
    let beside = lines_beside_blocks(readme);
    let figures = Figures::of(readme);
    let elsewhere = lines_on_results(readme);
    for claim in &readme.claims {
        let is_beside = beside.contains(&claim.line);
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
        let misprinted = figures.misprinted(claim, digits_min);
        if is_beside || misprinted.is_some() {
            found.push(UnsupportedClaim {
                claim: claim.clone(),
                nearest: misprinted.unwrap_or(nearest),
                is_misprint: misprinted.is_some(),
            });
        }
    }
    for table in &readme.tables {
        unsupported_changes(table, &mut found);
    }
    found.sort_by_key(|found| found.claim.line);
    found
}

fn speaks_of_other(text: &str) -> bool {
    let text = text.to_lowercase();
    OTHER_SUBJECTS.iter().any(|word| text.contains(word))
}

/// The lines of captions, and of the paragraph behind a block, that speak of the block.
fn lines_beside_blocks(readme: &PublishedReadme) -> HashSet<usize> {
    let captions = readme
        .blocks
        .iter()
        .filter_map(|block| block.caption.as_ref());
    let captions = captions.filter(|caption| caption.text.trim_end().ends_with(':'));
    // A fence and an empty line may be between a block and what is behind it.
    let ends = readme
        .blocks
        .iter()
        .filter_map(|block| block.block.source_lines.last());
    let near: HashSet<usize> = ends.flat_map(|end| end + 1..=end + 3).collect();
    let mut behind = Vec::new();
    let mut open_until = 0;
    for text in readme.sections.iter().flat_map(|section| &section.prose) {
        if near.contains(&text.line) || text.line == open_until {
            behind.push(text);
            open_until = text.line + 1;
        }
    }
    captions
        .chain(behind)
        .filter(|text| !speaks_of_other(&text.text))
        .map(|text| text.line)
        .collect()
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

/// Fewer digits are near those of any number: beside a block, away from it, and in a table.
const BESIDE_DIGITS_MIN: usize = 3;
const ELSEWHERE_DIGITS_MIN: usize = 4;
const CELL_DIGITS_MIN: usize = 5;
/// No table for readers has more columns.
const COLUMNS_MAX: usize = 64;
/// More numbers that are none of the figures are of something else.
const OTHERS_MAX: usize = 8;

/// Whether two numbers, rounded to the digits of the first, differ in one digit alone.
fn is_misprint(number: f64, resolution: f64, figure: f64) -> bool {
    let digits = |number: f64| format!("{:.0}", (number.abs() / resolution).round());
    let (one, other) = (digits(number), digits(figure));
    let differ = one.bytes().zip(other.bytes()).filter(|(a, b)| a != b);
    one.len() == other.len() && differ.count() == 1
}

/// Numbers of a table's column that are a known figure but for one digit, where more of its numbers are
/// known figures.
///
/// Shape: `known` are medians and the like of the datasets that the README may show.
pub fn misprinted_cells(readme: &PublishedReadme, known: &[f64]) -> Vec<MisprintedCell> {
    let mut known: Vec<f64> = known.to_vec();
    known.extend(Figures::of_blocks(readme).rates);
    known.sort_by(f64::total_cmp);
    let mut found = Vec::new();
    for table in &readme.tables {
        let columns = table.rows.iter().map(|row| row.cells.len()).max();
        let columns = 0..columns.unwrap_or(0).min(COLUMNS_MAX);
        let cells = |column: usize| {
            let rows = table.rows.iter();
            rows.filter_map(move |row| Some((row.line, Written::of(row.cells.get(column)?)?)))
        };
        let is_shown = |number: &Written| {
            let next = known.partition_point(|figure| *figure < number.value);
            let around = &known[next.saturating_sub(1)..known.len().min(next + 1)];
            around.iter().any(|figure| number.shows(*figure))
        };
        // A figure that another cell shows is not what a cell was to show.
        let shown_by_another = |figure: f64| {
            let mut all = columns.clone().flat_map(cells);
            all.any(|(_, number)| number.shows(figure))
        };
        for column in columns.clone() {
            let (shown, others): (Vec<_>, Vec<_>) =
                cells(column).partition(|(_, number)| is_shown(number));
            if shown.len() <= others.len() || others.len() > OTHERS_MAX {
                continue;
            }
            for (line, number) in others {
                let mut figures = known.iter().filter(|figure| {
                    is_misprint(number.value, number.resolution, **figure)
                        && !shown_by_another(**figure)
                });
                if let Some(&figure) = figures.next() {
                    let text = number.text;
                    found.push(MisprintedCell { line, text, figure });
                }
            }
        }
    }
    found
}

/// So many cells, and more than twice those that do not, agree in two tables of the same.
const SHARED_CELLS_MIN: usize = 3;

/// Cells of two tables with the same row and column that do not agree, where nearly all of them do.
pub fn table_contradictions(readme: &PublishedReadme) -> Vec<TableContradiction> {
    let mut seen: HashMap<(String, String), (usize, String, f64, f64)> = HashMap::new();
    let mut found = Vec::new();
    for table in &readme.tables {
        let Some((head, rows)) = table.rows.split_first() else {
            continue;
        };
        let cells = rows.iter().flat_map(|row| {
            let columns = head.cells.iter().zip(&row.cells).skip(1);
            columns.filter_map(move |(column, cell)| {
                let (value, resolution) = Cell::of(cell).value()?;
                let key = (plain(row.cells.first()?), plain(column));
                Some((key, (row.line, cell.clone(), value, resolution)))
            })
        });
        let (mut agreeing, mut contradicting) = (0, Vec::new());
        for (key, cell) in cells {
            let Some(other) = seen.get(&key) else {
                seen.insert(key, cell);
                continue;
            };
            // What was rounded to fewer digits agrees.
            if (cell.2 - other.2).abs() < cell.3.max(other.3) {
                agreeing += 1;
            } else {
                contradicting.push(TableContradiction {
                    line: cell.0,
                    text: cell.1,
                    row: key.0,
                    column: key.1,
                    other_line: other.0,
                    other_text: other.1.clone(),
                });
            }
        }
        // Otherwise they are of different things.
        if agreeing >= SHARED_CELLS_MIN && agreeing > 2 * contradicting.len() {
            found.append(&mut contradicting);
        }
    }
    found
}

fn plain(cell: &str) -> String {
    cell.trim_matches(['*', '`', ' ']).to_lowercase()
}

/// A number of a cell without a unit, as far as it has enough digits to be told from others.
struct Written {
    text: String,
    value: f64,
    resolution: f64,
}

impl Written {
    fn of(cell: &str) -> Option<Self> {
        let Cell::Number(value) = Cell::of(cell) else {
            return None;
        };
        let text = cell.trim_matches(['*', '`', ' ']).to_owned();
        let decimals = text.split_once('.').map_or(0, |(_, behind)| behind.len());
        let is_telling = text.bytes().filter(u8::is_ascii_digit).count() >= CELL_DIGITS_MIN;
        let resolution = 10_f64.powi(-i32::try_from(decimals).ok()?);
        is_telling.then_some(Self {
            text,
            value,
            resolution,
        })
    }

    /// Whether it is that figure, cut or rounded.
    fn shows(&self, figure: f64) -> bool {
        (self.value.abs() - figure.abs()).abs() < self.resolution
    }
}

/// What the README gives, in absolute numbers.
struct Figures {
    percentages: Vec<f64>,
    rates: Vec<f64>,
    /// Medians and averages of which every pair makes a percentage.
    levels: Vec<f64>,
}

/// More levels make so many pairs that any number is near one of them.
const LEVELS_MAX: usize = 24;

impl Figures {
    fn of_blocks(readme: &PublishedReadme) -> Self {
        let mut figures = Self {
            percentages: Vec::new(),
            rates: Vec::new(),
            levels: Vec::new(),
        };
        for block in &readme.blocks {
            figures.add(&block.block);
        }
        figures
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
        let figures = self.of_quantity(claim.quantity)?.iter().copied();
        let mut misprinted =
            figures.filter(|figure| is_misprint(claim.high, claim.resolution, *figure));
        misprinted.next()
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
const ROUNDING: f64 = 1.000_001;

/// What stands in a cell.
enum Cell {
    /// A number without a unit.
    Number(f64),
    /// A percentage.
    Change(Claim),
    Other,
}

impl Cell {
    /// The number, and what one more in its last digit is worth.
    fn value(&self) -> Option<(f64, f64)> {
        match self {
            Self::Number(number) => Some((*number, if number.fract() == 0.0 { 1.0 } else { 0.1 })),
            Self::Change(claim) => Some((claim.high, claim.resolution)),
            Self::Other => None,
        }
    }

    fn of(cell: &str) -> Self {
        let plain = cell.trim_matches(['*', '`', ' ']);
        if let Ok(number) = plain.replace([',', ' '], "").parse::<f64>()
            && number.is_finite()
        {
            return Self::Number(number);
        }
        let mut claims = Vec::new();
        let text = plain.to_owned();
        claims::read(&TextLine { line: 0, text }, &mut claims);
        match claims.as_slice() {
            [claim] if claim.text == plain && claim.quantity == Quantity::Percent => {
                Self::Change(claim.clone())
            }
            _ => Self::Other,
        }
    }
}

/// Changes with a sign of which most come from two other cells of their row, but these do not.
fn unsupported_changes(table: &Table, found: &mut Vec<UnsupportedClaim>) {
    let mut changes: Vec<UnsupportedClaim> = Vec::new();
    for row in &table.rows {
        let (mut numbers, mut claims) = (Vec::new(), Vec::new());
        for cell in &row.cells {
            match Cell::of(cell) {
                Cell::Number(number) => numbers.push(number),
                Cell::Change(claim) if claim.is_signed => claims.push(claim),
                _ => {}
            }
        }
        for claim in claims {
            let distance = |made: f64| (made - claim.high).abs();
            let pairs = numbers
                .iter()
                .flat_map(|from| numbers.iter().map(move |to| (from, to)));
            let nearest = pairs
                .map(|(from, to)| (to - from) * 100.0 / from)
                .filter(|made| made.is_finite())
                .min_by(|one, other| distance(*one).total_cmp(&distance(*other)));
            changes.extend(nearest.map(|nearest| UnsupportedClaim {
                is_misprint: is_misprint(claim.high, claim.resolution, nearest),
                nearest,
                claim: Claim {
                    line: row.line,
                    ..claim
                },
            }));
        }
    }
    // Where nearly all are rounded, none is cut.
    let without = |slack: f64| -> Vec<UnsupportedClaim> {
        let is_off = |change: &&UnsupportedClaim| {
            let distance = (change.nearest - change.claim.high).abs();
            distance > change.claim.resolution * slack * ROUNDING
        };
        changes.iter().filter(is_off).cloned().collect()
    };
    // Otherwise the percentages are of something else.
    let are_few = |off: &Vec<UnsupportedClaim>| changes.len() > 3 * off.len();
    let off = [0.5, 1.0].map(without).into_iter().find(are_few);
    found.extend(off.unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second row is 12.33 % above the first.
    const BLOCK: &str = "\
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
            ("BLOCK\n## Summary\nIt is 15.33% faster.\n", &["15.33%"]),
            ("## Summary\nNow at 6.174 Mpps.\n\nMore:\nBLOCK", &[]),
            (
                "## Summary\nNow at 6.674 Mpps.\n\nMore:\nBLOCK",
                &["6.674 Mpps"],
            ),
            ("## Summary\nNow at 6.67 Mpps.\n\nMore:\nBLOCK", &[]),
            // Too few digits, another thing, about so much.
            ("BLOCK\n=> improvement of 18%!\n", &[]),
            ("BLOCK\n## Summary\nLoad at 6.674 Mpps.\n", &[]),
            ("BLOCK\n## Summary\nAbout 15.33% faster.\n", &[]),
        ] {
            assert_eq!(misprints(text), expected, "{text}");
        }
    }

    #[test]
    fn a_cell_that_is_but_for_one_digit_is_a_misprint() {
        let table = |second: &str| {
            format!(
                "| what | pps | other |\n|---|--:|--:|\n| a | 866969 | 1 |\n| b | {second} | 2 |\n\
                 | c | 440,099 | 3 |\n"
            )
        };
        let known = [866_969.0, 264_552.0, 440_099.5];
        let found = |second: &str| {
            let readme = PublishedReadme::parse(table(second).as_bytes());
            let found = misprinted_cells(&readme, &known).into_iter();
            found
                .map(|found| (found.line, found.figure))
                .collect::<Vec<_>>()
        };
        assert_eq!(found("264552"), []);
        assert_eq!(found("264852"), [(4, 264_552.0)]);
        assert_eq!(found("264525"), [], "two digits");
        assert_eq!(found("866960"), [], "what another cell shows");
    }

    #[test]
    fn two_tables_of_the_same_agree() {
        let text = |last: &str| {
            let table = "| what | pps | change |\n|---|--:|--:|\n| a | 866969 | +45% |\n| b | 264552 | +12.1% |\n";
            format!(
                "{table}\n{}",
                table.replace("264552", last).replace("+12.1%", "+12%")
            )
        };
        let found = |last: &str| {
            let readme = PublishedReadme::parse(text(last).as_bytes());
            let found = table_contradictions(&readme).into_iter();
            found
                .map(|found| (found.line, found.other_line))
                .collect::<Vec<_>>()
        };
        assert_eq!(found("264552"), []);
        assert_eq!(found("364000"), [(9, 4)]);
    }
}
