//! Questions in SQL that change nothing and end.

use std::time::{Duration, Instant};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, ErrorCode};

use crate::Catalogue;
use crate::error::CatalogueError;
use crate::table::{Cell, Table};

/// The longest text or blob that a statement may make.
const LENGTH_MAX: i32 = 16 << 20;
/// All cells of an answer together have at most so many bytes.
const ANSWER_BYTES_MAX: usize = 256 << 20;
/// Between two looks at the clock, in SQLite's instructions: far less than a millisecond.
const INSTRUCTIONS: i32 = 10_000;

impl Catalogue {
    /// What a SELECT in SQL gives within `time_max`; nothing else is allowed.
    ///
    /// # Errors
    /// [`CatalogueError::Sql`], [`CatalogueError::SlowAnswer`] and [`CatalogueError::LargeAnswer`].
    pub fn select(&mut self, sql: &str, time_max: Duration) -> Result<Table, CatalogueError> {
        let connection = &mut self.connection;
        connection.pragma_update(None, "query_only", true)?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LENGTH_MAX)?;
        connection.authorizer(Some(only_reading))?;
        let begin = Instant::now();
        let is_late = move || begin.elapsed() >= time_max;
        connection.progress_handler(INSTRUCTIONS, Some(is_late))?;
        let selected = selected(connection, sql);
        connection.progress_handler(0, None::<fn() -> bool>)?;
        connection.authorizer(None::<fn(AuthContext<'_>) -> Authorization>)?;
        connection.pragma_update(None, "query_only", false)?;
        match selected {
            Ok(Some(table)) => Ok(table),
            Ok(None) => Err(CatalogueError::LargeAnswer {
                bytes_max: ANSWER_BYTES_MAX,
            }),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
                Err(CatalogueError::SlowAnswer {
                    seconds: time_max.as_secs(),
                })
            }
            Err(error) => Err(CatalogueError::Sql { what: what(&error) }),
        }
    }
}

/// Nothing but reading the tables is allowed: no writing, no other file, no setting of the database.
fn only_reading(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Select
        | AuthAction::Read { .. }
        | AuthAction::Recursive
        | AuthAction::Function { .. } => Authorization::Allow,
        _ => Authorization::Deny,
    }
}

/// None where the answer is too large.
fn selected(connection: &Connection, sql: &str) -> rusqlite::Result<Option<Table>> {
    let mut statement = connection.prepare(sql)?;
    let columns: Vec<String> = statement.column_names().map(ToOwned::to_owned).collect();
    let (mut rows, mut bytes) = (Vec::new(), 0);
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        let cells = (0..columns.len()).map(|column| row.get_ref(column).map(cell));
        let cells = cells.collect::<rusqlite::Result<Vec<Cell>>>()?;
        bytes += cells.iter().map(size).sum::<usize>();
        if bytes > ANSWER_BYTES_MAX {
            return Ok(None);
        }
        rows.push(cells);
    }
    Ok(Some(Table { columns, rows }))
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Real(number) => Cell::Real(number),
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => {
            Cell::Text(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
        }
    }
}

/// What a cell takes of memory.
fn size(cell: &Cell) -> usize {
    let text = match cell {
        Cell::Text(text) => text.len(),
        _ => 0,
    };
    size_of::<Cell>() + text
}

fn what(error: &Error) -> String {
    match error {
        Error::SqliteFailure(failure, _)
            if failure.code == ErrorCode::AuthorizationForStatementDenied =>
        {
            "only SELECT is allowed: the catalogue is made from the results directories".to_owned()
        }
        Error::MultipleStatement => "more than one statement; give one".to_owned(),
        Error::InvalidParameterCount(..) => {
            "it has parameters, for which there are no values".to_owned()
        }
        Error::SqlInputError { msg, offset, .. } => {
            format!("{msg} (at character {})", offset.saturating_add(1))
        }
        Error::SqliteFailure(_, Some(text)) => text.clone(),
        other => other.to_string(),
    }
}
