//! Observations from files that others wrote.

use std::path::Path;

pub(crate) use fwdlab_archive::Column;
use fwdlab_archive::{Observation, Separators, parse_observations};
use fwdlab_sys::Input;

use crate::exit::WrongArguments;

/// More than any file of observations has.
pub(crate) const BYTES_MAX: u64 = 64 << 20;

/// The observations in a file.
pub(crate) fn read(
    path: &Path,
    column: &Column,
    delimiters: Option<&str>,
) -> anyhow::Result<Vec<Observation>> {
    let separators = separators(path, delimiters)?;
    let bytes = Input::file_or_stream(path, BYTES_MAX)
        .bytes()
        .map_err(|error| WrongArguments(format!("{}: cannot be read ({error})", path.display())))?;
    let observations = parse_observations(&bytes, column, &separators);
    Ok(observations.map_err(|what| WrongArguments(format!("{}: {what}", path.display())))?)
}

/// One character other than a blank separates the cells of a table; several are ministat's.
fn separators(path: &Path, delimiters: Option<&str>) -> Result<Separators, WrongArguments> {
    let ends_in = |wanted: &str| {
        let extension = path.extension();
        extension.is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
    };
    let is_csv = ends_in("csv") || ends_in("tsv");
    match (delimiters, delimiters.map(str::as_bytes)) {
        (None, _) if ends_in("tsv") => Ok(Separators::One(b'\t')),
        (None, _) if is_csv => Ok(Separators::Csv),
        (None, _) => Ok(Separators::Blanks),
        (Some(_), Some([one])) if *one != b' ' => Ok(Separators::One(*one)),
        (Some(several), _) if !is_csv => Ok(Separators::Runs(several.to_owned())),
        (Some(several), _) => Err(WrongArguments(format!(
            "--delimiters {several:?}: one ASCII character separates the cells of {}; give that one",
            path.display()
        ))),
    }
}
