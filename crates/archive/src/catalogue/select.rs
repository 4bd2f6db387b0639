//! Questions in SQL that change nothing.

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error};

use super::error::CatalogueError;
use super::table::{Cell, Table};

pub(super) fn select(connection: &mut Connection, sql: &str) -> Result<Table, CatalogueError> {
    connection.pragma_update(None, "query_only", true)?;
    connection.authorizer(Some(only_reading))?;
    let selected = selected(connection, sql);
    connection.authorizer(None::<fn(AuthContext<'_>) -> Authorization>)?;
    connection.pragma_update(None, "query_only", false)?;
    selected.map_err(|error| CatalogueError::Sql { what: what(&error) })
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

fn selected(connection: &Connection, sql: &str) -> rusqlite::Result<Table> {
    let mut statement = connection.prepare(sql)?;
    let columns: Vec<String> = statement.column_names().map(ToOwned::to_owned).collect();
    let mut rows = Vec::new();
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        let cells = (0..columns.len()).map(|column| row.get_ref(column).map(cell));
        rows.push(cells.collect::<rusqlite::Result<_>>()?);
    }
    Ok(Table { columns, rows })
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

fn what(error: &Error) -> String {
    match error {
        Error::SqliteFailure(failure, _)
            if failure.code == rusqlite::ErrorCode::AuthorizationForStatementDenied =>
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
