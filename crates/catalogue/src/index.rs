//! The database: its tables, and the file that may keep it.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fwdlab_archive::is_results;
use fwdlab_sys::durable::{FileError, folder_of};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::error::CatalogueError;

/// Marks the file as fwdlab's: `fwdl`.
const APPLICATION_ID: i32 = 0x6677_646c;

/// Raised when the same tables would be filled with something else; other tables are noticed by
/// themselves.
const VERSION: i32 = 2;

/// Where SQLite's header holds [`APPLICATION_ID`].
const APPLICATION_ID_AT: usize = 68;

const MAGIC: &[u8] = b"SQLite format 3\0";

/// How long another process that refreshes the same index is waited for.
const BUSY: Duration = Duration::from_secs(30);

/// What `docs/catalogue.md` describes; `sources` is the index's own.
const SCHEMA: &str = "\
CREATE TABLE sources (
    id INTEGER PRIMARY KEY,
    canonical BLOB NOT NULL UNIQUE,
    path TEXT NOT NULL,
    stamp TEXT,
    problem TEXT
) STRICT;
CREATE TABLE results (
    id INTEGER PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES sources ON DELETE CASCADE,
    path TEXT NOT NULL,
    kind TEXT NOT NULL,
    topic TEXT NOT NULL,
    label TEXT NOT NULL,
    question TEXT,
    platform TEXT,
    machine TEXT,
    nic TEXT,
    os TEXT,
    date TEXT,
    lab TEXT,
    lab_kind TEXT,
    regime TEXT,
    blocks INTEGER NOT NULL,
    finished INTEGER NOT NULL,
    verdict TEXT
) STRICT;
CREATE INDEX results_of_source ON results (source);
CREATE TABLE variants (
    id INTEGER PRIMARY KEY,
    results INTEGER NOT NULL REFERENCES results ON DELETE CASCADE,
    place INTEGER NOT NULL,
    name TEXT NOT NULL,
    label TEXT NOT NULL,
    control INTEGER NOT NULL
) STRICT;
CREATE INDEX variants_of_results ON variants (results);
CREATE TABLE levels (
    variant INTEGER NOT NULL REFERENCES variants ON DELETE CASCADE,
    factor TEXT NOT NULL,
    level TEXT NOT NULL,
    PRIMARY KEY (variant, factor)
) STRICT, WITHOUT ROWID;
CREATE TABLE observations (
    variant INTEGER NOT NULL REFERENCES variants ON DELETE CASCADE,
    family TEXT NOT NULL,
    position INTEGER NOT NULL,
    session INTEGER,
    forwarding_rate_pps REAL NOT NULL,
    offered_load_pps REAL,
    PRIMARY KEY (variant, family, position)
) STRICT, WITHOUT ROWID;
CREATE VIEW measured AS
    SELECT
        results.path, kind, topic, results.label, question, platform, machine, nic, os, date, lab,
        lab_kind, regime, finished, place, variants.name AS variant,
        variants.label AS variant_label, control, variants.id AS variant_id, family, position, session,
        forwarding_rate_pps, offered_load_pps
    FROM observations
    JOIN variants ON variants.id = observations.variant
    JOIN results ON results.id = variants.results;
";

pub(crate) fn in_memory() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    create(&connection)?;
    Ok(connection)
}

/// The index kept in a file; with it, whether one that was there had to be made again.
pub(crate) fn open(path: &Path) -> Result<(Connection, bool), CatalogueError> {
    refuse_within_results(path)?;
    let state = state_of(path).map_err(FileError::of(path, "read the index"))?;
    let refused = |source| CatalogueError::Index {
        path: Some(path.to_owned()),
        source,
    };
    let is_there = match state {
        State::Foreign => {
            return Err(CatalogueError::Foreign {
                path: path.to_owned(),
            });
        }
        State::Empty => false,
        State::Ours => true,
    };
    if is_there {
        match opened(path).and_then(|connection| Ok((is_sound(&connection, path)?, connection))) {
            Ok((true, connection)) => return Ok((connection, false)),
            Ok((false, _)) => {}
            Err(error) if is_damage(&error) => {}
            Err(error) => return Err(refused(error)),
        }
        remove(path)?;
    }
    let connection = opened(path).map_err(refused)?;
    create(&connection).map_err(refused)?;
    Ok((connection, is_there))
}

enum State {
    Empty,
    Ours,
    Foreign,
}

/// A file is only taken for an index by the mark that creating one leaves.
fn state_of(path: &Path) -> io::Result<State> {
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(State::Empty),
        metadata => metadata?,
    };
    if !metadata.is_file() {
        return Ok(State::Foreign);
    }
    let mut header = Vec::new();
    File::open(path)?.take(100).read_to_end(&mut header)?;
    let mark = header.get(APPLICATION_ID_AT..APPLICATION_ID_AT + 4);
    Ok(if header.is_empty() {
        State::Empty
    } else if header.starts_with(MAGIC) && mark == Some(&APPLICATION_ID.to_be_bytes()[..]) {
        State::Ours
    } else {
        State::Foreign
    })
}

fn opened(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    // A view or a check of a forged index runs nothing that acts.
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "foreign_keys", true)?;
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    // Another process may have been here first.
    if tables(&transaction)?.is_empty() {
        // In one transaction with the tables, so that a file which was cut short is still known by its mark.
        transaction.execute_batch(&format!(
            "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}; {SCHEMA}"
        ))?;
    }
    transaction.commit()
}

/// Whether the index has this version's tables, and whole ones.
fn is_sound(connection: &Connection, path: &Path) -> rusqlite::Result<bool> {
    let setting = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    if setting("user_version")? != i64::from(VERSION)
        || tables(connection)? != tables(&in_memory()?)?
    {
        return Ok(false);
    }
    // What is missing of the last page SQLite takes for zeros.
    let bytes = setting("page_count")?.saturating_mul(setting("page_size")?);
    if fs::metadata(path).is_ok_and(|metadata| i64::try_from(metadata.len()) != Ok(bytes)) {
        return Ok(false);
    }
    let check: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    Ok(check == "ok")
}

/// The tables as they were created; their text is their version.
fn tables(connection: &Connection) -> rusqlite::Result<Vec<(String, Option<String>)>> {
    let mut statement = connection.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Whether an error says that the file is broken, rather than busy or out of reach.
fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => {
            matches!(failure.code, DatabaseCorrupt | NotADatabase)
        }
        // Cells of another type than the tables declare.
        rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::Utf8Error(..) => true,
        _ => false,
    }
}

fn remove(path: &Path) -> Result<(), CatalogueError> {
    for end in ["", "-journal", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        let file = PathBuf::from(name);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(FileError::of(&file, "remove the broken index")(error).into());
            }
            _ => {}
        }
    }
    Ok(())
}

fn refuse_within_results(path: &Path) -> Result<(), CatalogueError> {
    let folder = folder_of(path);
    let folder =
        fs::canonicalize(folder).map_err(FileError::of(folder, "find the index's folder"))?;
    // Where the file is a link, SQLite writes to what it leads to.
    let target = fs::canonicalize(path).ok();
    let folders = folder
        .ancestors()
        .chain(target.iter().flat_map(|target| target.ancestors()));
    for above in folders {
        if is_results(above) {
            return Err(CatalogueError::WithinResults {
                path: path.to_owned(),
                dir: above.to_owned(),
            });
        }
    }
    Ok(())
}
