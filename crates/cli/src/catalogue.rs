//! What `fwdlab ls` and `fwdlab query` share: which directories, which of them, and in what form.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::time::SystemTime;

use clap::Args;
use fwdlab_catalogue::{Catalogue, Cell, Filter, Moment, Problem, Table};
use fwdlab_model::Stratum;

use crate::exit::{Code, DONE, USER_ERROR, WrongArguments};
use crate::output::{self, tell};

/// Where to look, and where to keep what was found.
#[derive(Debug, Args)]
pub(crate) struct PlaceArguments {
    /// Results directories, or folders with results directories in them at any depth
    #[arg(value_name = "DIR", default_value = "results")]
    pub(crate) folders: Vec<PathBuf>,
    /// Keep the catalogue in this file, and read only what changed since; made again where it is broken
    #[arg(long, value_name = "FILE")]
    pub(crate) index: Option<PathBuf>,
}

/// Which results are meant.
#[derive(Debug, Args)]
#[command(
    next_help_heading = "Filters: TEXT is a part of the name, or with * ? [ ] a pattern for the whole; \
                         case does not matter"
)]
pub(crate) struct FilterArguments {
    /// The CPU or the machine
    #[arg(long, value_name = "TEXT")]
    platform: Option<String>,
    /// The network interface controller
    #[arg(long, value_name = "TEXT")]
    nic: Option<String>,
    /// Release of the kernel, or revision of the operating system
    #[arg(long, value_name = "TEXT")]
    os: Option<String>,
    /// The experiment's name, its question or the topic
    #[arg(long, value_name = "TEXT")]
    topic: Option<String>,
    /// A factor of the variants; with =LEVEL behind it, at that level
    #[arg(long, value_name = "TEXT[=LEVEL]")]
    factor: Option<String>,
    /// Measured on or after this date: 2016, 2016-08 or 2016-08-03
    #[arg(long, value_name = "DATE")]
    since: Option<Moment>,
    /// Measured on or before this date
    #[arg(long, value_name = "DATE")]
    until: Option<Moment>,
}

/// Which variants are meant.
#[derive(Debug, Args)]
pub(crate) struct VariantArguments {
    /// The variant, by its name in files or its label
    #[arg(long, value_name = "TEXT")]
    variant: Option<String>,
    /// The address family, all traffics of it; inet-imix is the traffic imix alone
    #[arg(long, value_name = "FAMILY", value_parser = Stratum::from_str)]
    family: Option<Stratum>,
}

impl FilterArguments {
    pub(crate) fn filter(&self, variants: Option<&VariantArguments>) -> Filter {
        Filter {
            platform: self.platform.clone(),
            nic: self.nic.clone(),
            os: self.os.clone(),
            topic: self.topic.clone(),
            factor: self.factor.clone(),
            since: self.since.clone(),
            until: self.until.clone(),
            variant: variants.and_then(|variants| variants.variant.clone()),
            family: variants.and_then(|variants| variants.family.map(|family| family.to_string())),
        }
    }
}

/// The catalogue of the folders, up to date, and what of them cannot be read.
pub(crate) fn open(place: &PlaceArguments) -> anyhow::Result<(Catalogue, Vec<Problem>)> {
    let mut catalogue = match &place.index {
        None => Catalogue::in_memory()?,
        Some(file) => {
            let (catalogue, made_again) = Catalogue::open(file)?;
            if made_again {
                tell(&format!(
                    "{}: broken or of another version; made again",
                    file.display()
                ));
            }
            catalogue
        }
    };
    catalogue.refresh(&place.folders, SystemTime::now())?;
    let problems = catalogue.problems()?;
    Ok((catalogue, problems))
}

/// Says how many results a date kept from being chosen because they have none.
pub(crate) fn tell_undated(directories: u32) {
    let directories = match directories {
        0 => return,
        1 => "1 results directory that has no date is".to_owned(),
        count => format!("{count} results directories that have no date are"),
    };
    tell(&format!("{directories} left out by --since or --until"));
}

/// The exit code beside what could not be read: that is an error only where nothing else was there.
pub(crate) fn code(catalogue: &Catalogue, problems: &[Problem]) -> anyhow::Result<Code> {
    let nothing_read = catalogue.results(&Filter::default())?.is_empty();
    Ok(if nothing_read && !problems.is_empty() {
        USER_ERROR
    } else {
        DONE
    })
}

/// Columns to which lines are cut: those of a terminal, and none in a pipe or a file.
pub(crate) fn line_columns() -> Option<usize> {
    output::stdout_is_terminal().then(output::terminal_columns)
}

/// A table in the form of RFC 4180, with a line feed behind each line.
pub(crate) fn csv(table: &Table) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(&table.columns)?;
    for row in &table.rows {
        writer.write_record(row.iter().map(plain))?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

/// A table as one array of objects.
pub(crate) fn json(table: &Table) -> anyhow::Result<String> {
    if let Some(name) = table.shared_name() {
        let text =
            format!("--json: two columns are named {name:?}; name one of them otherwise (AS)");
        return Err(WrongArguments(text).into());
    }
    Ok(format!("{}\n", serde_json::to_string_pretty(table)?))
}

/// A cell without its type; nothing is an empty text.
pub(crate) fn plain(cell: &Cell) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Boolean(value) => value.to_string(),
        Cell::Integer(number) => number.to_string(),
        Cell::Real(number) => number.to_string(),
        Cell::Text(text) => text.clone(),
    }
}

/// Writes a file that was asked for by an option.
pub(crate) fn write(option: &str, path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    std::fs::write(path, bytes).map_err(|error| {
        WrongArguments(format!(
            "{option}: {}: cannot write ({error})",
            path.display()
        ))
        .into()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cells_are_quoted_where_they_have_to_be() {
        let table = Table {
            columns: vec!["a".into(), "b,c".into()],
            rows: vec![
                vec![Cell::Text("x \"y\"\nz".into()), Cell::Real(0.5)],
                vec![Cell::Null, Cell::Boolean(true)],
            ],
        };
        let text = "a,\"b,c\"\n\"x \"\"y\"\"\nz\",0.5\n,true\n";
        assert_eq!(csv(&table).unwrap(), text);
        let object = "[\n  {\n    \"a\": \"x \\\"y\\\"\\nz\",\n    \"b,c\": 0.5\n  },\n  {\n    \"a\": null,\n    \"b,c\": true\n  }\n]\n";
        assert_eq!(json(&table).unwrap(), object);
    }

    proptest! {
        #[test]
        fn any_table_reads_back_from_csv(
            cells in prop::collection::vec(prop::collection::vec(any::<String>(), 2), 1..6)
        ) {
            let text = |text: &String| Cell::Text(text.clone());
            let table = Table {
                columns: vec!["one".into(), "two".into()],
                rows: cells.iter().map(|row| row.iter().map(text).collect()).collect(),
            };
            let written = csv(&table).unwrap();
            let mut reader = csv::Reader::from_reader(written.as_bytes());
            let read: Vec<Vec<String>> = reader
                .records()
                .map(|record| record.unwrap().iter().map(str::to_owned).collect())
                .collect();
            prop_assert_eq!(read, cells);
        }
    }
}
