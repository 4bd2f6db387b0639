//! Bringing the index up to what the directories hold.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;
use std::time::SystemTime;

use fwdlab_archive::Found;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior, params};

use crate::Refreshed;
use crate::entry::Entry;
use crate::error::CatalogueError;
use crate::scan::{Stamp, read};

/// What the index knows of a directory.
struct Known {
    id: i64,
    path: String,
    stamp: Option<String>,
}

/// Makes the index one of the directories found and of no others, or leaves it as it was.
pub(crate) fn refresh(
    connection: &mut Connection,
    found: Vec<Found>,
    now: SystemTime,
) -> Result<Refreshed, CatalogueError> {
    let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut known = known(&transaction)?;
    let mut refreshed = Refreshed::default();
    for found in found {
        let path = found.path.display().to_string();
        let canonical = found.canonical.as_os_str().as_bytes();
        let stamp = match found.refused {
            None => Stamp::of(&found.path, now),
            Some(error) => Err(error),
        };
        if let Some(known) = known.remove(canonical) {
            let is_current = |stamp: &Stamp| known.stamp.as_ref() == Some(&stamp.text);
            if stamp.as_ref().is_ok_and(is_current) {
                rename(&transaction, &known, &path)?;
                refreshed.unchanged += 1;
                continue;
            }
            forget(&transaction, known.id)?;
        }
        refreshed.read += 1;
        // Looked at before it is read: what changes in between shows the next time.
        let entries = stamp.map_err(CatalogueError::from).and_then(|stamp| {
            let entries = read(&found.path)?;
            Ok((entries, stamp.is_settled.then_some(stamp.text)))
        });
        let problem = match entries {
            Ok((entries, stamp)) => insert(
                &mut transaction,
                canonical,
                &path,
                stamp.as_deref(),
                &entries,
            )?,
            Err(error) => Some(error.to_string()),
        };
        if let Some(problem) = problem {
            // Without a stamp: it is tried again the next time.
            transaction.execute(
                "INSERT INTO sources (canonical, path, problem) VALUES (?1, ?2, ?3)",
                params![canonical, path, problem],
            )?;
        }
    }
    for known in known.values() {
        forget(&transaction, known.id)?;
        refreshed.forgotten += 1;
    }
    transaction.commit()?;
    Ok(refreshed)
}

fn known(transaction: &Transaction<'_>) -> rusqlite::Result<HashMap<Vec<u8>, Known>> {
    let mut statement = transaction.prepare("SELECT canonical, id, path, stamp FROM sources")?;
    let rows = statement.query_map([], |row| {
        let known = Known {
            id: row.get(1)?,
            path: row.get(2)?,
            stamp: row.get(3)?,
        };
        Ok((row.get(0)?, known))
    })?;
    rows.collect()
}

/// The same directory may be come by another way.
fn rename(transaction: &Transaction<'_>, known: &Known, path: &str) -> rusqlite::Result<()> {
    if known.path == path {
        return Ok(());
    }
    let parameters = params![path, known.id];
    transaction.execute("UPDATE sources SET path = ?1 WHERE id = ?2", parameters)?;
    transaction.execute("UPDATE results SET path = ?1 WHERE source = ?2", parameters)?;
    Ok(())
}

fn forget(transaction: &Transaction<'_>, source: i64) -> rusqlite::Result<()> {
    transaction.execute("DELETE FROM sources WHERE id = ?1", [source])?;
    Ok(())
}

/// Enters what was read of a directory, all of it or nothing; then why not.
pub(crate) fn insert(
    transaction: &mut Transaction<'_>,
    canonical: &[u8],
    path: &str,
    stamp: Option<&str>,
    entries: &[Entry],
) -> Result<Option<String>, CatalogueError> {
    let mut attempt = transaction.savepoint()?;
    let inserted = attempt
        .execute(
            "INSERT INTO sources (canonical, path, stamp) VALUES (?1, ?2, ?3)",
            params![canonical, path, stamp],
        )
        .and_then(|_| {
            let source = attempt.last_insert_rowid();
            let mut entries = entries.iter();
            entries.try_for_each(|entry| insert_entry(&attempt, source, path, entry))
        });
    match inserted {
        Ok(()) => {
            attempt.commit()?;
            Ok(None)
        }
        // Two observations of one block, or one that is no number.
        Err(rusqlite::Error::SqliteFailure(failure, Some(what)))
            if failure.code == ErrorCode::ConstraintViolation =>
        {
            attempt.rollback()?;
            attempt.commit()?;
            Ok(Some(format!(
                "{path}: its records contradict each other ({what})"
            )))
        }
        Err(error) => Err(error.into()),
    }
}

fn insert_entry(
    connection: &Connection,
    source: i64,
    path: &str,
    entry: &Entry,
) -> rusqlite::Result<()> {
    connection
        .prepare(
            "INSERT INTO results (source, path, kind, topic, label, question, platform, machine, nic,
                os, date, lab, lab_kind, regime, blocks, finished, verdict)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
        )?
        .execute(params![
            source,
            path,
            entry.kind,
            entry.topic,
            entry.label,
            entry.question,
            entry.platform,
            entry.machine,
            entry.nic,
            entry.os,
            entry.date,
            entry.lab,
            entry.lab_kind,
            entry.regime,
            entry.blocks,
            entry.is_finished,
            entry.verdict,
        ])?;
    let results = connection.last_insert_rowid();
    for (place, variant) in (1_i64..).zip(&entry.variants) {
        connection
            .prepare(
                "INSERT INTO variants (results, place, name, label, control)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                results,
                place,
                variant.name,
                variant.label,
                variant.is_control
            ])?;
        let id = connection.last_insert_rowid();
        let mut levels = connection
            .prepare("INSERT INTO levels (variant, factor, level) VALUES (?1, ?2, ?3)")?;
        for (factor, level) in &variant.levels {
            levels.execute(params![id, factor, level])?;
        }
        let mut observations = connection.prepare(
            "INSERT INTO observations (variant, family, position, session, forwarding_rate_pps,
                offered_load_pps)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        for observation in &variant.observations {
            observations.execute(params![
                id,
                observation
                    .stratum
                    .map_or_else(|| "unknown".to_owned(), |stratum| stratum.to_string()),
                observation.position,
                observation.session,
                observation.forwarding_rate_pps,
                observation.offered_load_pps,
            ])?;
        }
    }
    Ok(())
}
