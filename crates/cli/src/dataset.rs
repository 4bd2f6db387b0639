//! Observations from files that others wrote.

use std::path::Path;

pub(crate) use fwdlab_archive::Column;
use fwdlab_archive::parse_observations;
use fwdlab_sys::Input;

use crate::exit::WrongArguments;

/// More than any file of observations has.
pub(crate) const BYTES_MAX: u64 = 64 << 20;
const BLANKS: &str = " \t";
const CSV_SEPARATORS: &str = ",;\t";

/// The observations in a file.
pub(crate) fn read(
    path: &Path,
    column: &Column,
    delimiters: Option<&str>,
) -> anyhow::Result<Vec<f64>> {
    let bytes = Input::file_or_stream(path, BYTES_MAX)
        .bytes()
        .map_err(|error| WrongArguments(format!("{}: cannot be read ({error})", path.display())))?;
    let is_csv = path.extension().is_some_and(|extension| extension == "csv");
    let delimiters = delimiters.unwrap_or(if is_csv { CSV_SEPARATORS } else { BLANKS });
    let observations = parse_observations(&bytes, column, delimiters.as_bytes(), is_csv);
    Ok(observations.map_err(|what| WrongArguments(format!("{}: {what}", path.display())))?)
}
