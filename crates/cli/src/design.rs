//! The table that says which levels of which factors files of observations were measured at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fwdlab_archive::{CsvRows, csv_separator, plain_text};
use fwdlab_report::FactorialDesign;
use fwdlab_sys::Input;

use crate::dataset::BYTES_MAX;
use crate::exit::WrongArguments;

/// The heading of the column that names the files.
const FILE: &str = "file";

/// More than any design has: every two factors are looked at.
const COLUMNS_MAX: usize = 100;

/// The files of a design, as seen from here, and the factors that they combine.
pub(crate) fn read(path: &Path) -> anyhow::Result<(Vec<PathBuf>, FactorialDesign)> {
    let wrong = |what: String| WrongArguments(format!("{}: {what}", path.display()));
    let text = Input::file_or_stream(path, BYTES_MAX)
        .bytes()
        .map_err(|error| wrong(format!("cannot be read ({error})")))?;
    let (files, factors, levels) = table(&text).map_err(wrong)?;
    let design = FactorialDesign::new(&factors, &levels).ok_or_else(|| {
        wrong(
            "no two factors are combined in all their levels, so nothing can be told beyond the single \
             comparisons; compare the files without --design, or add those that are missing"
                .to_owned(),
        )
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let files = files.iter().map(|file| folder.join(file)).collect();
    Ok((files, design))
}

/// The files, the names of the factors, and the levels of every file; or what is wrong.
type Table = (Vec<String>, Vec<String>, Vec<Vec<String>>);

fn table(bytes: &[u8]) -> Result<Table, String> {
    let text = plain_text(bytes).map_err(|error| error.to_string())?;
    let separator = csv_separator(text).map_err(|error| error.to_string())?;
    let mut rows = CsvRows::new(text, separator, Some(b'#')).map(|row| {
        let row = row.map_err(|error| error.to_string())?;
        let cells = row.cells.iter().map(|cell| cell.trim().to_owned());
        Ok::<_, String>((row.line, cells.collect::<Vec<_>>()))
    });
    let (line, mut factors) = rows.next().transpose()?.unwrap_or_default();
    if factors.is_empty() {
        return Err(format!(
            "it is empty; give a column {FILE:?} and one for every factor"
        ));
    }
    if factors.len() > COLUMNS_MAX {
        return Err(format!(
            "line {line}: {} columns; give at most {COLUMNS_MAX}",
            factors.len()
        ));
    }
    let place = factors.iter().position(|heading| heading == FILE);
    let place = place.ok_or_else(|| {
        format!(
            "its first line has no column {FILE:?}; it has {}",
            factors.join(", ")
        )
    })?;
    factors.remove(place);
    let mut known = BTreeSet::new();
    for factor in &factors {
        if factor.is_empty() {
            return Err("a column has no heading; give it the name of its factor".to_owned());
        }
        if !known.insert(factor) {
            return Err(format!("two columns are called {factor:?}; rename one"));
        }
    }
    let (mut files, mut levels): (Vec<String>, Vec<Vec<String>>) = (Vec::new(), Vec::new());
    let mut known: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for row in rows {
        let (line, mut of_row) = row?;
        let file = of_row.remove(place);
        if file.is_empty() {
            return Err(format!(
                "line {line}: no file; give the file of its observations"
            ));
        }
        if let Some(empty) = of_row.iter().position(String::is_empty) {
            let factor = &factors[empty];
            return Err(format!("line {line}: no level of {factor:?}; give one"));
        }
        if let Some(other) = known.insert(of_row.clone(), files.len()) {
            return Err(format!(
                "line {line}: the same levels as those of {:?}; put all observations of a combination \
                 into one file",
                files[other]
            ));
        }
        files.push(file);
        levels.push(of_row);
    }
    Ok((files, factors, levels))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refusal(text: &str) -> String {
        table(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn a_table_is_read_in_any_order_of_columns() {
        for text in [
            "prefetch, file ,simple_tx\n# as published\noff,a.pps,off\n\"on\",\"b, 2.pps\",off\n",
            "\u{feff}prefetch;file;simple_tx\r\noff;a.pps;off\r\non;b, 2.pps;off",
        ] {
            let (files, factors, levels) = table(text.as_bytes()).unwrap();
            assert_eq!(files, ["a.pps", "b, 2.pps"]);
            assert_eq!(factors, ["prefetch", "simple_tx"]);
            assert_eq!(levels, [["off", "off"], ["on", "off"]]);
        }
    }

    #[test]
    fn wrong_tables_are_refused_with_the_line() {
        let many = "x,".repeat(100_000);
        let refusals = [
            refusal(""),
            refusal("path,prefetch\na.pps,on\n"),
            refusal("file,prefetch,\na.pps,on,x\n"),
            refusal("file,prefetch,prefetch\na.pps,on,x\n"),
            refusal("file,prefetch\na.pps,on\n,off\n"),
            refusal("file,prefetch\na.pps,on\nb.pps,\n"),
            refusal("file,prefetch\na.pps,on\nb.pps,on\n"),
            refusal("file,prefetch\na.pps,on\nb.pps\n"),
            table(b"file,prefetch\na.pps,\xff\n").unwrap_err(),
            table(b"\xff\xfef\0").unwrap_err(),
            refusal("file,prefetch\n# off\n\na.pps,on\n"),
            refusal("# as published\nfile;prefetch\n\"a.pps;on\nb.pps;off\n"),
            refusal("file,prefetch;x\n"),
            refusal(&many),
        ];
        insta::assert_snapshot!(refusals.join("\n"), @r#"
it is empty; give a column "file" and one for every factor
its first line has no column "file"; it has path, prefetch
a column has no heading; give it the name of its factor
two columns are called "prefetch"; rename one
line 3: no file; give the file of its observations
line 3: no level of "prefetch"; give one
line 3: the same levels as those of "a.pps"; put all observations of a combination into one file
line 3: the first line has 2 cells, this one 1; give as many
line 2: not UTF-8 text; save it as such
line 1: it is UTF-16; save it as UTF-8
line 3: an empty line between rows; leave it out, or give its cells
line 3: a quoted cell goes on beyond its line; close the quote
line 1: commas and semicolons outside of quotes: either may separate cells; quote the cells that hold one of them
line 1: 100001 columns; give at most 100
"#);
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(text: Vec<u8>) {
            let _ = table(&text);
        }

        #[test]
        fn tables_of_odd_cells_neither(cells in "(file|prefetch|,|\"|\n|#|a\\.pps| ){0,40}") {
            let _ = table(cells.as_bytes());
        }
    }
}
