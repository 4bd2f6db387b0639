//! The table that says which levels of which factors files of observations were measured at.

use std::path::{Path, PathBuf};

use fwdlab_report::FactorialDesign;
use fwdlab_sys::Input;

use crate::dataset::BYTES_MAX;
use crate::exit::WrongArguments;

/// The heading of the column that names the files.
const FILE: &str = "file";

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

fn table(text: &[u8]) -> Result<Table, String> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(text);
    let headings = reader.headers().map_err(|error| said(&error))?.clone();
    let place = headings
        .iter()
        .position(|heading| heading == FILE)
        .ok_or_else(|| {
            let headings: Vec<&str> = headings.iter().collect();
            if headings.is_empty() {
                format!("it is empty; give a column {FILE:?} and one for every factor")
            } else {
                format!(
                    "its first line has no column {FILE:?}; it has {}",
                    headings.join(", ")
                )
            }
        })?;
    let factors: Vec<String> = others(&headings, place);
    for (number, factor) in factors.iter().enumerate() {
        if factor.is_empty() {
            return Err("a column has no heading; give it the name of its factor".to_owned());
        }
        if factors[..number].contains(factor) {
            return Err(format!("two columns are called {factor:?}; rename one"));
        }
    }
    let (mut files, mut levels): (Vec<String>, Vec<Vec<String>>) = (Vec::new(), Vec::new());
    for row in reader.records() {
        let row = row.map_err(|error| said(&error))?;
        let line = row.position().map_or(0, csv::Position::line);
        let file = row.get(place).unwrap_or("").to_owned();
        if file.is_empty() {
            return Err(format!(
                "line {line}: no file; give the file of its observations"
            ));
        }
        let of_row = others(&row, place);
        if let Some(empty) = of_row.iter().position(String::is_empty) {
            let factor = &factors[empty];
            return Err(format!("line {line}: no level of {factor:?}; give one"));
        }
        if let Some(other) = levels.iter().position(|levels| *levels == of_row) {
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

/// The cells of a row but that of the file.
fn others(row: &csv::StringRecord, file: usize) -> Vec<String> {
    row.iter()
        .enumerate()
        .filter(|(place, _)| *place != file)
        .map(|(_, cell)| cell.to_owned())
        .collect()
}

/// What the reader of tables says, with the line.
fn said(error: &csv::Error) -> String {
    let line = error.position().map_or_else(String::new, |position| {
        format!("line {}: ", position.line())
    });
    match error.kind() {
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => {
            format!("{line}the first line has {expected_len} cells, this one {len}; give as many")
        }
        csv::ErrorKind::Utf8 { .. } => format!("{line}not UTF-8 text; save it as such"),
        other => format!("{line}{other:?}"),
    }
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
        let text =
            "prefetch, file ,simple_tx\n# as published\noff,a.pps,off\n\"on\",\"b, 2.pps\",off\n";
        let (files, factors, levels) = table(text.as_bytes()).unwrap();
        assert_eq!(files, ["a.pps", "b, 2.pps"]);
        assert_eq!(factors, ["prefetch", "simple_tx"]);
        assert_eq!(levels, [["off", "off"], ["on", "off"]]);
    }

    #[test]
    fn wrong_tables_are_refused_with_the_line() {
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
