//! Numbers in the tables of a text.

use std::collections::HashMap;

use super::super::{Claim, PublishedReadme, Quantity, Table, TextLine, claims};
use super::figures::{Figures, ROUNDING, UnsupportedClaim, is_misprint};

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

const CELL_DIGITS_MIN: usize = 5;
/// No table for readers has more columns.
const COLUMNS_MAX: usize = 64;
/// More numbers that are none of the figures are of something else.
const OTHERS_MAX: usize = 8;

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

/// What stands in a cell.
pub(super) enum Cell {
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

    pub(super) fn of(cell: &str) -> Self {
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
pub(super) fn unsupported_changes(table: &Table, found: &mut Vec<UnsupportedClaim>) {
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
