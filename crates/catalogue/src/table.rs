//! Any answer as a table of named columns.

use serde::ser::{Serialize, Serializer};

use crate::rows::{Problem, RateRow, ResultsRow};

/// A value of a table.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// Nothing.
    Null,
    /// A truth value.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A number.
    Real(f64),
    /// A text; bytes are in hexadecimal.
    Text(String),
}

/// An answer; in JSON an array with an object for each row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, each with a cell for every column.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A row for each results directory, and one for each that cannot be read.
    #[must_use]
    pub fn of_results(results: &[ResultsRow], problems: &[Problem]) -> Self {
        let mut rows: Vec<Vec<Cell>> = results
            .iter()
            .map(|row| {
                vec![
                    optional(row.date.as_deref()),
                    text(&row.topic),
                    text(&row.label),
                    optional(row.question.as_deref()),
                    optional(row.platform.as_deref()),
                    optional(row.machine.as_deref()),
                    optional(row.nic.as_deref()),
                    optional(row.os.as_deref()),
                    optional(row.lab.as_deref()),
                    optional(row.lab_kind.as_deref()),
                    optional(row.regime.as_deref()),
                    Cell::Integer(row.blocks.into()),
                    Cell::Boolean(row.finished),
                    optional(row.verdict.as_deref()),
                    text(&row.kind),
                    text(&row.path),
                    Cell::Null,
                ]
            })
            .collect();
        let columns = "date topic label question platform machine nic os lab lab_kind regime blocks finished verdict \
                       kind path problem";
        rows.extend(problems.iter().map(|problem| {
            let mut row = vec![Cell::Null; columns.split(' ').count() - 2];
            row.extend([text(&problem.path), text(&problem.problem)]);
            row
        }));
        Self::new(columns, rows)
    }

    /// A row for what each variant forwarded in each address family of each results directory.
    #[must_use]
    pub fn of_rates<'a>(rates: impl IntoIterator<Item = &'a RateRow>) -> Self {
        let rows = rates.into_iter().map(|row| {
            vec![
                optional(row.date.as_deref()),
                text(&row.topic),
                text(&row.label),
                optional(row.platform.as_deref()),
                optional(row.nic.as_deref()),
                optional(row.os.as_deref()),
                optional(row.lab.as_deref()),
                optional(row.regime.as_deref()),
                text(&row.variant),
                text(&row.variant_label),
                text(&row.family),
                Cell::Integer(i64::try_from(row.observations).unwrap_or(i64::MAX)),
                Cell::Real(row.median_pps),
                Cell::Real(row.min_pps),
                Cell::Real(row.first_quartile_pps),
                Cell::Real(row.third_quartile_pps),
                Cell::Real(row.max_pps),
                Cell::Real(row.iqr_pps),
                row.offered_load_pps.map_or(Cell::Null, Cell::Real),
                text(&row.kind),
                text(&row.path),
            ]
        });
        let columns = "date topic label platform nic os lab regime variant variant_label family observations \
                       median_pps min_pps first_quartile_pps third_quartile_pps max_pps iqr_pps offered_load_pps \
                       kind path";
        Self::new(columns, rows.collect())
    }

    /// Shape: the names of the columns stand in a line.
    fn new(columns: &str, rows: Vec<Vec<Cell>>) -> Self {
        Self {
            columns: columns.split(' ').map(str::to_owned).collect(),
            rows,
        }
    }

    /// A name that two columns share: as an object a row could not be told.
    #[must_use]
    pub fn shared_name(&self) -> Option<&str> {
        let mut columns = self.columns.iter().enumerate();
        let shared = columns.find(|(index, name)| self.columns[..*index].contains(name));
        shared.map(|(_, name)| name.as_str())
    }
}

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

fn optional(value: Option<&str>) -> Cell {
    value.map_or(Cell::Null, text)
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.rows.iter().map(|cells| Row {
            columns: &self.columns,
            cells,
        }))
    }
}

struct Row<'a> {
    columns: &'a [String],
    cells: &'a [Cell],
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.columns.iter().zip(self.cells))
    }
}
