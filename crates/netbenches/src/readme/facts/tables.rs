//! Numbers in the tables of a text.

use std::collections::HashMap;
use std::ops::Range;

use super::super::{Claim, PublishedReadme, Quantity, Table, TableRow, TextLine, claims};
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

/// A number in a table that is a known figure but for one digit, or stands where another is to be.
#[derive(Clone, Debug, PartialEq)]
pub struct MisprintedCell {
    /// Where it stands.
    pub line: usize,
    /// The number as written.
    pub text: String,
    /// The figure.
    pub figure: f64,
}

/// A dataset that a table may show.
#[derive(Clone, Debug, Default)]
pub struct TabledDataset<'a> {
    /// What a row may call it; none of a dataset of another folder.
    pub name: Option<&'a str>,
    /// Its medians and its average.
    pub levels: Vec<f64>,
    /// Its observations.
    pub values: &'a [f64],
}

impl TabledDataset<'_> {
    fn figures(&self) -> impl Iterator<Item = f64> {
        self.levels.iter().chain(self.values).copied()
    }
}

/// With fewer digits, a number is near that of anything: in any row, and in one that has the name of its dataset.
const DIGITS_MIN: usize = 5;
const NAMED_DIGITS_MIN: usize = 3;
/// No table for readers has more columns.
const COLUMNS_MAX: usize = 64;
/// More numbers that are none of the figures are of something else.
const OTHERS_MAX: usize = 8;

/// Numbers of a table that are a known figure but for one digit: in a row that begins with the name of a dataset, where
/// they are a figure of that dataset, or how far it is from that of another row; in others, where more numbers of their
/// column are known figures.
///
/// Shape: `datasets` are those that the README may show.
pub fn misprinted_cells(
    readme: &PublishedReadme,
    datasets: &[TabledDataset<'_>],
) -> Vec<MisprintedCell> {
    let mut known: Vec<f64> = datasets.iter().flat_map(TabledDataset::figures).collect();
    known.extend(Figures::of_blocks(readme).rates);
    known.retain(|figure| figure.is_finite());
    known.sort_by(f64::total_cmp);
    let mut by_name: ByName<'_> = HashMap::new();
    for dataset in datasets {
        if let Some(name) = dataset.name {
            let of_name = by_name.entry(name.to_ascii_lowercase()).or_default();
            of_name.push(dataset);
        }
    }
    let mut found: Vec<MisprintedCell> = Vec::new();
    for table in &readme.tables {
        let shown = Shown::new(table, &by_name, &known);
        let mut of_table = shown.misprinted_in_named_rows();
        of_table.extend(shown.misprinted_changes());
        of_table.extend(shown.misprinted_in_columns());
        for cell in of_table {
            if !found.contains(&cell) {
                found.push(cell);
            }
        }
    }
    found
}

/// Datasets by their names in small letters.
type ByName<'a> = HashMap<String, Vec<&'a TabledDataset<'a>>>;

/// A table and what it may show.
struct Shown<'a> {
    table: &'a Table,
    by_name: &'a ByName<'a>,
    /// How many packets one of a column's numbers is, by its heading.
    factors: Vec<f64>,
    known: &'a [f64],
}

impl<'a> Shown<'a> {
    fn new(table: &'a Table, by_name: &'a ByName<'a>, known: &'a [f64]) -> Self {
        let heading = table.rows.first();
        let headings = heading.map_or(&[][..], |row| &row.cells);
        Self {
            table,
            by_name,
            factors: headings.iter().map(|heading| factor(heading)).collect(),
            known,
        }
    }

    /// The dataset that a row has the name of, alone or with the address family in a column's heading.
    fn named(&self, row: &TableRow, column: Option<usize>) -> Option<&'a TabledDataset<'a>> {
        let name = plain(row.cells.first()?);
        let name = name.strip_suffix(".pps").unwrap_or(&name).to_owned();
        let heading = column.and_then(|column| self.table.rows.first()?.cells.get(column));
        let families = ["inet4", "inet6"].into_iter().filter(|family| {
            heading.is_some_and(|heading| {
                heading
                    .to_lowercase()
                    .split(' ')
                    .any(|word| word == *family)
            })
        });
        let mut names: Vec<String> = families.map(|family| format!("{name}.{family}")).collect();
        names.push(name);
        let of_name = names.iter().filter_map(|name| self.by_name.get(name));
        let mut of_name = of_name.flatten().copied();
        of_name.next().filter(|_| of_name.next().is_none())
    }

    fn columns(&self) -> Range<usize> {
        let columns = self.table.rows.iter().map(|row| row.cells.len()).max();
        0..columns.unwrap_or(0).min(COLUMNS_MAX)
    }

    fn number(&self, row: &TableRow, column: usize) -> Option<Written> {
        let factor = self.factors.get(column).copied().unwrap_or(1.0);
        Written::of(row.cells.get(column)?, factor)
    }

    fn is_known(&self, number: &Written) -> bool {
        let next = self
            .known
            .partition_point(|figure| *figure < number.value.abs());
        let around = next.saturating_sub(1)..self.known.len().min(next + 1);
        self.known[around]
            .iter()
            .any(|figure| number.shows(*figure))
    }

    /// Whether a cell shows a figure: then no other was to show it.
    fn has(&self, figure: f64) -> bool {
        let mut rows = self.table.rows.iter();
        rows.any(|row| {
            let mut numbers = self.columns().filter_map(|column| self.number(row, column));
            numbers.any(|number| number.shows(figure))
        })
    }

    /// Of which figure a number that is none is but for one digit.
    fn misprint(
        &self,
        line: usize,
        number: &Written,
        figures: impl IntoIterator<Item = f64>,
    ) -> Option<MisprintedCell> {
        let mut figures = figures.into_iter().filter(|figure| {
            is_misprint(number.value, number.resolution, *figure) && !self.has(*figure)
        });
        let figure = figures.next()?;
        let text = number.text.clone();
        Some(MisprintedCell { line, text, figure })
    }

    /// Numbers of rows that have the name of a dataset. Where a column shows a level of such a row's dataset, it is to
    /// show it in the others as well; else what is a level of another row's dataset, or nearly one of its own, is wrong.
    fn misprinted_in_named_rows(&self) -> Vec<MisprintedCell> {
        let mut found = Vec::new();
        for column in self.columns().skip(1) {
            let rows = self.table.rows.iter();
            let named: Vec<(usize, Written, &TabledDataset<'_>)> = rows
                .filter_map(|row| {
                    let number = self.number(row, column)?;
                    let named = self.named(row, Some(column))?;
                    (number.digits >= NAMED_DIGITS_MIN).then_some((row.line, number, named))
                })
                .collect();
            let shows_level = |number: &Written, dataset: &TabledDataset<'_>| {
                dataset.levels.iter().any(|level| number.shows(*level))
            };
            let is_own = |(_, number, dataset): &&(usize, Written, &TabledDataset<'_>)| {
                dataset.figures().any(|figure| number.shows(figure))
            };
            let of_level = named
                .iter()
                .filter(|(_, number, own)| shows_level(number, own));
            let is_of_levels = of_level.count() * 2 > named.len();
            for (line, number, own) in named.iter().filter(|cell| !is_own(cell)) {
                let is_telling = number.digits >= DIGITS_MIN;
                let is_of_other = || {
                    let mut others = named.iter().filter(|(other, ..)| other != line);
                    is_telling && others.any(|(_, _, other)| shows_level(number, other))
                };
                let of_own = || own.levels.first().copied();
                let misprint = if is_telling && is_of_levels || is_of_other() {
                    of_own().map(|figure| MisprintedCell {
                        line: *line,
                        text: number.text.clone(),
                        figure,
                    })
                } else if self.is_known(number) {
                    None
                } else {
                    self.misprint(*line, number, own.figures())
                };
                found.extend(misprint);
            }
        }
        found
    }

    fn misprinted_in_columns(&self) -> Vec<MisprintedCell> {
        let mut found = Vec::new();
        for column in self.columns() {
            let rows = self.table.rows.iter();
            let numbers = rows.filter_map(|row| Some((row.line, self.number(row, column)?)));
            let (shown, others): (Vec<_>, Vec<_>) = numbers
                .filter(|(_, number)| number.digits >= DIGITS_MIN)
                .partition(|(_, number)| self.is_known(number));
            if shown.len() > others.len() && others.len() <= OTHERS_MAX {
                let others = others.iter();
                found.extend(others.filter_map(|(line, number)| {
                    self.misprint(*line, number, self.known.iter().copied())
                }));
            }
        }
        found
    }

    /// Changes from one named row to others, where both rows show a level of their datasets.
    fn misprinted_changes(&self) -> Vec<MisprintedCell> {
        // A change is one of the levels that both rows show: medians or averages.
        let levels: Vec<(&TableRow, Vec<Option<f64>>)> = (self.table.rows.iter())
            .filter_map(|row| {
                let levels = self.named(row, None)?.levels.iter();
                let columns = self.columns().skip(1);
                let numbers: Vec<Written> = columns
                    .filter_map(|column| self.number(row, column))
                    .filter(|number| number.digits >= NAMED_DIGITS_MIN)
                    .collect();
                let is_shown = |level: &f64| numbers.iter().any(|number| number.shows(*level));
                Some((
                    row,
                    levels.map(|level| Some(*level).filter(is_shown)).collect(),
                ))
            })
            .collect();
        let mut found = Vec::new();
        for column in self.columns().skip(1) {
            let change = |row: &TableRow| match Cell::of(row.cells.get(column)?) {
                Cell::Change(claim) if claim.is_signed => Some(claim),
                _ => None,
            };
            // They are from the first row that does not change.
            let is_from = |(row, _): &&(&TableRow, Vec<Option<f64>>)| {
                change(row).is_none_or(|claim| claim.high.abs() < claim.resolution)
            };
            let Some((from, from_levels)) = levels.iter().find(is_from) else {
                continue;
            };
            let (mut right, mut wrong, mut misprinted) = (0, 0, Vec::new());
            for (row, row_levels) in levels.iter().filter(|(row, _)| row.line != from.line) {
                let Some(claim) = change(row) else {
                    continue;
                };
                let made = row_levels.iter().zip(from_levels);
                let made = made.filter_map(|(to, from)| Some((*to)? * 100.0 / (*from)? - 100.0));
                let made: Vec<f64> = made.filter(|made| made.is_finite()).collect();
                if made.is_empty() {
                    continue;
                }
                let is_made =
                    |made: &&f64| (**made - claim.high).abs() <= claim.resolution * ROUNDING;
                if made.iter().any(|made| is_made(&made)) {
                    right += 1;
                    continue;
                }
                wrong += 1;
                let is_other_sign = |made: f64| (made + claim.high).abs() <= claim.resolution;
                let figure = made.into_iter().find(|made| {
                    is_other_sign(*made) || is_misprint(claim.high, claim.resolution, *made)
                });
                misprinted.extend(figure.map(|figure| MisprintedCell {
                    line: row.line,
                    text: claim.text,
                    figure: (figure * 100.0).round() / 100.0,
                }));
            }
            // Otherwise they are of something else.
            if wrong == 1 || right > 2 * wrong {
                found.append(&mut misprinted);
            }
        }
        found
    }
}

/// How many packets one of a column's numbers is, by the unit in its heading.
fn factor(heading: &str) -> f64 {
    let heading = heading.to_lowercase();
    let factors = [("gpps", 1e9), ("mpps", 1e6), ("kpps", 1e3)];
    let of_unit = factors.iter().find(|(unit, _)| heading.contains(unit));
    of_unit.map_or(1.0, |(_, factor)| *factor)
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

/// A number of a cell, in packets per second where its column or its unit says so.
struct Written {
    text: String,
    digits: usize,
    value: f64,
    resolution: f64,
    /// How far it may be from what it shows: a whole number may have been rounded to its last zeros.
    slack: f64,
}

impl Written {
    fn of(cell: &str, factor: f64) -> Option<Self> {
        let text = cell.trim_matches(['*', '`', ' ']).to_owned();
        let (value, resolution) = match Cell::of(cell) {
            Cell::Number(value) => {
                let decimals = text.split_once('.').map_or(0, |(_, behind)| behind.len());
                let resolution = 10_f64.powi(-i32::try_from(decimals).ok()?);
                (value * factor, resolution * factor)
            }
            Cell::Rate(claim) => (claim.high, claim.resolution),
            Cell::Change(_) | Cell::Other => return None,
        };
        let zeros = text.len() - text.trim_end_matches('0').len();
        let is_rounded = zeros > 0 && !text.contains('.');
        let rounded_by = 10_f64.powi(i32::try_from(zeros).ok()?) * resolution / 2.0;
        Some(Self {
            digits: text.bytes().filter(u8::is_ascii_digit).count(),
            text,
            value,
            resolution,
            slack: if is_rounded {
                rounded_by.max(resolution)
            } else {
                resolution
            },
        })
    }

    /// Whether it is that figure, cut or rounded.
    fn shows(&self, figure: f64) -> bool {
        (self.value.abs() - figure.abs()).abs() < self.slack * ROUNDING
    }
}

/// What stands in a cell.
pub(super) enum Cell {
    /// A number without a unit.
    Number(f64),
    /// A percentage.
    Change(Claim),
    /// A rate in packets per second.
    Rate(Claim),
    Other,
}

impl Cell {
    /// The number, and what one more in its last digit is worth.
    fn value(&self) -> Option<(f64, f64)> {
        match self {
            Self::Number(number) => Some((*number, if number.fract() == 0.0 { 1.0 } else { 0.1 })),
            Self::Change(claim) | Self::Rate(claim) => Some((claim.high, claim.resolution)),
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
            [claim] if claim.text == plain && claim.low >= claim.high => match claim.quantity {
                Quantity::Percent => Self::Change(claim.clone()),
                Quantity::PacketsPerSecond => Self::Rate(claim.clone()),
                Quantity::BitsPerSecond => Self::Other,
            },
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
            let datasets = [TabledDataset {
                values: &known,
                ..TabledDataset::default()
            }];
            let found = misprinted_cells(&readme, &datasets).into_iter();
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

    #[test]
    fn a_row_that_has_the_name_of_a_dataset_shows_its_figures() {
        let old = [866_960.0, 866_969.0, 866_999.0];
        let new = [787_200.0, 787_233.0, 787_290.0];
        let dataset = |name, values: &'static [f64]| TabledDataset {
            name: Some(name),
            levels: vec![values[1]],
            values,
        };
        let old: &'static [f64] = old.to_vec().leak();
        let new: &'static [f64] = new.to_vec().leak();
        let datasets = [dataset("old", old), dataset("new.inet4", new)];
        let found = |first: &str, second: &str| {
            let text = format!(
                "| what | pps | change | Mpps |\n|---|--:|--:|--:|\n| `old` | 866969 | - | 0.867 |\n\
                 | **new.inet4** | {first} | {second} |\n"
            );
            let readme = PublishedReadme::parse(text.as_bytes());
            let found = misprinted_cells(&readme, &datasets).into_iter();
            found
                .map(|found| (found.line, found.text, found.figure))
                .collect::<Vec<_>>()
        };
        for right in [
            "-9.2%",
            "-9%",
            "-9.1%",
            "9.8%",
            "-9.2 Mpps",
            "+31% of line rate",
        ] {
            assert_eq!(found("787233", right), [], "{right}");
        }
        let misprint = |text: &str, figure: f64| [(4, text.to_owned(), figure)];
        assert_eq!(found("787,283", "-9.2%"), misprint("787,283", 787_233.0));
        assert_eq!(found("785 Kpps", "-9.2%"), misprint("785 Kpps", 787_233.0));
        assert_eq!(found("787233", "-9.5%"), misprint("-9.5%", -9.2));
        assert_eq!(found("787233", "+9.2%"), misprint("+9.2%", -9.2));
        assert_eq!(
            found("787233 | -9.2%", "0.757"),
            misprint("0.757", 787_200.0)
        );
        assert_eq!(found("785 Kpps", "-9.2%"), misprint("785 Kpps", 787_233.0));
        // Rounded as a person does it.
        assert_eq!(found("787230", "-9.2%"), []);
        // The other's, where a column shows no more of its own.
        let exchanged = found("866969", "-").len();
        assert_eq!(exchanged, 1);
        assert_eq!(found("123456", "-9.5%"), [], "of something else");
    }
}
