//! `blocks/<n>.csv`: one row a slice.

use std::collections::BTreeMap;
use std::iter;
use std::path::Path;
use std::str::FromStr;

use fwdlab_model::{Contention, SliceLoad, SliceRecord, Stratum};
use serde::Deserialize;
use serde::de::IntoDeserializer as _;
use serde::de::value::{Error as WordError, StrDeserializer};

use crate::csv_text::CsvRows;
use crate::error::{ArchiveError, Place};

/// A column: its name, and what its cell says of a slice.
type Column = (&'static str, fn(&SliceRecord) -> String);

/// The columns as they are written. Numbers are as short as they can be while reading back as the same number.
const COLUMNS: [Column; 20] = [
    ("family", |slice| slice.stratum.family.to_string()),
    ("round", |slice| slice.round.to_string()),
    ("position", |slice| slice.position.to_string()),
    ("variant", |slice| slice.variant.to_string()),
    ("start_s", |slice| slice.start_s.to_string()),
    ("time_s", |slice| slice.time_s.to_string()),
    ("offered_frames", |slice| slice.offered_frames.to_string()),
    ("forwarded_frames", |slice| {
        slice.forwarded_frames.to_string()
    }),
    ("undisturbed_s", |slice| slice.undisturbed_s.to_string()),
    ("undisturbed_frames", |slice| {
        slice.undisturbed_frames.to_string()
    }),
    ("dropped_frames", |slice| slice.dropped_frames.to_string()),
    ("calibration_ns", |slice| slice.calibration_ns.to_string()),
    ("steal_s", |slice| slice.steal_s.to_string()),
    ("switch_s", |slice| slice.switch_s.to_string()),
    ("competing_s", |slice| {
        known(slice.contention.map(|of| of.competing_s))
    }),
    ("alone_s", |slice| {
        known(slice.contention.map(|of| of.alone_s))
    }),
    ("alone_frames", |slice| {
        known(slice.contention.map(|of| of.alone_frames))
    }),
    ("regime", |slice| known(slice.load.map(|of| of.regime))),
    ("intended_load_pps", |slice| {
        known(slice.load.and_then(|of| of.intended_pps))
    }),
    ("taken_frames", |slice| {
        known(slice.load.map(|of| of.taken_frames))
    }),
];

/// The column behind those where the traffic of any slice has a name.
const TRAFFIC: Column = ("traffic", |slice| known(slice.stratum.traffic));

/// So many of the first columns are in every file; a file may lack the others, and have more that a later version knows.
const COLUMNS_MIN: usize = 14;

/// More than any cell has.
const CELL_BYTES_MAX: usize = 1000;

/// A cell that is empty where nobody could tell.
fn known(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Slices as the text of their file.
#[must_use]
pub fn format_slices(slices: &[SliceRecord]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let has_names = slices.iter().any(|slice| slice.stratum.traffic.is_some());
    let columns: Vec<Column> = COLUMNS
        .into_iter()
        .chain(has_names.then_some(TRAFFIC))
        .collect();
    let rows = slices.iter().map(|slice| {
        let cells = columns.iter().map(|(_, cell)| cell(slice));
        cells.collect()
    });
    let header: Vec<String> = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
    for row in iter::once(header).chain(rows) {
        writer.write_record(row).expect("memory can be written");
    }
    let text = writer.into_inner().expect("memory can be written");
    String::from_utf8(text).expect("cells are text")
}

/// The slices of a file's text, by the names of its columns; `path` is for the errors.
///
/// # Errors
/// [`ArchiveError::Damaged`] with the line.
pub fn parse_slices(path: &Path, text: &str) -> Result<Vec<SliceRecord>, ArchiveError> {
    let damaged = |line, what| ArchiveError::damaged(Place::line(path, line), what);
    let mut rows = CsvRows::new(text, b',', None)
        .map(|row| row.map_err(|error| damaged(error.line, error.fault.to_string())));
    let header = rows.next().transpose()?.unwrap_or_default();
    let columns = places(&header.cells).map_err(|what| damaged(1, what))?;
    rows.map(|row| {
        let row = row?;
        parse_row(&columns, &row.cells).map_err(|what| damaged(row.line, what))
    })
    .collect()
}

/// Where each column is, by its name.
fn places(header: &csv::StringRecord) -> Result<BTreeMap<&str, usize>, String> {
    let mut columns = BTreeMap::new();
    for (place, name) in header.iter().enumerate() {
        if columns.insert(name, place).is_some() {
            return Err("two columns have the same name".to_owned());
        }
    }
    match COLUMNS[..COLUMNS_MIN]
        .iter()
        .find(|(name, _)| !columns.contains_key(name))
    {
        Some((name, _)) => Err(format!("column {name} is missing")),
        None => Ok(columns),
    }
}

fn parse_row(
    columns: &BTreeMap<&str, usize>,
    cells: &csv::StringRecord,
) -> Result<SliceRecord, String> {
    let row = Cells { columns, cells };
    Ok(SliceRecord {
        stratum: Stratum {
            family: row.word("family")?,
            traffic: row.any(&[TRAFFIC.0], || row.word(TRAFFIC.0))?,
        },
        round: row.number("round")?,
        position: row.number("position")?,
        variant: row.word("variant")?,
        start_s: row.real("start_s", "seconds")?,
        time_s: row.real("time_s", "seconds")?,
        offered_frames: row.number("offered_frames")?,
        forwarded_frames: row.number("forwarded_frames")?,
        undisturbed_s: row.real("undisturbed_s", "seconds")?,
        undisturbed_frames: row.number("undisturbed_frames")?,
        dropped_frames: row.number("dropped_frames")?,
        calibration_ns: row.number("calibration_ns")?,
        steal_s: row.real("steal_s", "seconds")?,
        switch_s: row.real("switch_s", "seconds")?,
        contention: row.any(&["competing_s", "alone_s", "alone_frames"], || {
            Ok(Contention {
                competing_s: row.real("competing_s", "seconds")?,
                alone_s: row.real("alone_s", "seconds")?,
                alone_frames: row.number("alone_frames")?,
            })
        })?,
        load: row.any(&["regime", "intended_load_pps", "taken_frames"], || {
            Ok(SliceLoad {
                regime: row.word("regime")?,
                intended_pps: row.any(&["intended_load_pps"], || {
                    row.real("intended_load_pps", "frames per second")
                })?,
                taken_frames: row.number("taken_frames")?,
            })
        })?,
    })
}

/// The cells of a row, and where each column is.
struct Cells<'a> {
    columns: &'a BTreeMap<&'a str, usize>,
    cells: &'a csv::StringRecord,
}

impl<'a> Cells<'a> {
    /// The cell of a column; empty where the file does not have the column.
    fn cell(&self, name: &str) -> Result<&'a str, String> {
        let place = self.columns.get(name);
        let cell = place.and_then(|place| self.cells.get(*place));
        let cell = cell.unwrap_or_default();
        // No number, and no word of ours, is as long; messages show what is wrong.
        if cell.len() > CELL_BYTES_MAX {
            return Err(format!("{name}: a cell of {} bytes", cell.len()));
        }
        Ok(cell)
    }

    /// What is read of the cells of these columns; none where all of them are empty.
    fn any<T>(
        &self,
        names: &[&str],
        read: impl FnOnce() -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        let cells = names.iter().map(|name| self.cell(name));
        let cells = cells.collect::<Result<Vec<_>, _>>()?;
        let says = cells.iter().any(|cell| !cell.is_empty());
        says.then(read).transpose()
    }

    fn number<T: FromStr>(&self, name: &str) -> Result<T, String> {
        let cell = self.cell(name)?;
        cell.parse()
            .map_err(|_| format!("{name}: not a number of its kind ({cell:?})"))
    }

    /// A number of a unit.
    fn real(&self, name: &str, unit: &str) -> Result<f64, String> {
        let cell = self.cell(name)?;
        match cell.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(format!("{name}: not a number of {unit} ({cell:?})")),
        }
    }

    /// A cell that is a word of the model, which says how it is read.
    fn word<T: Deserialize<'a>>(&self, name: &str) -> Result<T, String> {
        let word: StrDeserializer<'a, WordError> = self.cell(name)?.into_deserializer();
        T::deserialize(word).map_err(|error| format!("{name}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use fwdlab_model::{AddressFamily, LoadRegime, VariantName};
    use proptest::prelude::*;

    use super::*;

    /// The columns that schema 1 lacks.
    const LOAD: &str = ",regime,intended_load_pps,taken_frames";

    /// Columns that are missing as well in directories written before competitors were recorded.
    const CONTENTION: &str = ",competing_s,alone_s,alone_frames";

    fn header() -> String {
        format_slices(&[]).trim_end().to_owned()
    }

    fn slice() -> impl Strategy<Value = SliceRecord> {
        let finite = || any::<f64>().prop_filter("finite", |number| number.is_finite());
        (
            (
                any::<bool>(),
                any::<u32>(),
                any::<u32>(),
                ".{0,12}",
                prop::option::of("[a-z0-9][a-z0-9-]{0,23}"),
            ),
            (finite(), finite(), any::<u64>(), any::<u64>()),
            (
                finite(),
                any::<u64>(),
                prop::option::of((finite(), finite(), any::<u64>())),
                prop::option::of((0..3_usize, prop::option::of(finite()), any::<u64>())),
            ),
            (any::<u64>(), any::<u64>(), finite(), finite()),
        )
            .prop_map(|(place, counts, undisturbed, rest)| SliceRecord {
                stratum: Stratum {
                    family: match place.0 {
                        true => AddressFamily::Inet,
                        false => AddressFamily::Inet6,
                    },
                    traffic: place.4.map(|name| name.parse().unwrap()),
                },
                round: place.1,
                position: place.2,
                variant: VariantName::from_label(&place.3),
                start_s: counts.0,
                time_s: counts.1,
                offered_frames: counts.2,
                forwarded_frames: counts.3,
                undisturbed_s: undisturbed.0,
                undisturbed_frames: undisturbed.1,
                dropped_frames: rest.0,
                calibration_ns: rest.1,
                steal_s: rest.2,
                switch_s: rest.3,
                contention: undisturbed.2.map(|of| Contention {
                    competing_s: of.0,
                    alone_s: of.1,
                    alone_frames: of.2,
                }),
                load: undisturbed.3.map(|of| SliceLoad {
                    regime: [
                        LoadRegime::SelfClocked,
                        LoadRegime::Paced,
                        LoadRegime::Overload,
                    ][of.0],
                    intended_pps: of.1,
                    taken_frames: of.2,
                }),
            })
    }

    #[test]
    fn a_wrong_cell_is_named_with_its_line() {
        let good = "inet,1,0,none,0.1,0.1,10,9,0.09,8,1,1000,0,0.01,,,,,,";
        for (row, what) in [
            ("\ninet,1", "an empty line between rows"),
            ("inet,1", "the first line has 20 cells, this one 2"),
            (
                "inet,1,0,../x,0,0,0,0,0,0,0,0,0,0,0,0,0,,,",
                "variant: variant name",
            ),
            (
                "inet,1,0,none,NaN,0,0,0,0,0,0,0,0,0,,,,,,",
                "start_s: not a number",
            ),
            (
                "inet,1,0,none,0,0,0,0,0,0,0,0,0,0,0.1,,,,,",
                "alone_s: not a number",
            ),
            (
                "inet,1,0,none,0,0,0,0,0,0,0,0,0,0,x,1,1,,,",
                "competing_s: not a number",
            ),
            (
                "inet,-1,0,none,0,0,0,0,0,0,0,0,0,0,,,,,,",
                "round: not a number",
            ),
            (
                "inet,1,0,none,0,0,0,0,0,0,0,0,0,0,0.5,0.5,3,,,,7",
                "the first line has 20 cells, this one 21",
            ),
            (
                "\"inet,1,0,none,0,0,0,0,0,0,0,0,0,0,,,,,,",
                "a quoted cell goes on beyond its line",
            ),
            (
                "inet,1,0,none,0,0,0,0,0,0,0,0,0,0,,,,swift,,1",
                "regime: unknown variant `swift`",
            ),
            (
                "inet,1,0,none,0,0,0,0,0,0,0,0,0,0,,,,paced,x,1",
                "intended_load_pps: not a number",
            ),
            (
                "inet,1,0,none,0,0,0,0,0,0,0,0,0,0,,,,paced,1000,",
                "taken_frames: not a number",
            ),
        ] {
            let text = format!("{}\n{good}\n{row}\n", header());
            let error = parse_slices(Path::new("blocks/3.csv"), &text).unwrap_err();
            let message = error.to_string();
            assert!(message.starts_with("blocks/3.csv:3: "), "{message}");
            assert!(message.contains(what), "{message}");
        }
        assert!(parse_slices(Path::new("x"), "").is_err());
        // Directories of schema 1, and from before somebody looked at competitors.
        let all = header();
        let (mut header, mut row) = (all.as_str(), good);
        for lacking in [LOAD, CONTENTION] {
            header = header.strip_suffix(lacking).unwrap();
            row = row.strip_suffix(",,,").unwrap();
            let slices = parse_slices(Path::new("x"), &format!("{header}\n{row}\n")).unwrap();
            assert_eq!((slices[0].contention, slices[0].load), (None, None));
            let error = parse_slices(Path::new("x"), &format!("{header}\n{good}\n")).unwrap_err();
            assert!(error.to_string().contains("cells, this one 20"), "{error}");
        }
        let error = parse_slices(Path::new("x"), "family,round\n").unwrap_err();
        let message = error.to_string();
        assert!(
            message.starts_with("x:1: column position is missing"),
            "{message}"
        );
    }

    #[test]
    fn columns_are_known_by_their_names() {
        let good = "inet,1,0,none,0.1,0.1,10,9,0.09,8,1,1000,0,0.01,,,,paced,1000,10";
        let read = |header: &str, row: &str| {
            parse_slices(Path::new("x"), &format!("{header}\n{row}\n"))
                .map_err(|error| error.to_string())
        };
        let slices = read(&header(), good);
        assert_eq!(slices.as_ref().unwrap()[0].load.unwrap().taken_frames, 10);
        // Another order, and a column of a later version.
        let later = format!("latency_ns,{}", header());
        assert_eq!(read(&later, &format!("730,{good}")), slices);
        let turned = |line: &str| line.rsplit(',').collect::<Vec<_>>().join(",");
        assert_eq!(read(&turned(&header()), &turned(good)), slices);
        let twice = format!("round,{}", header());
        let error = read(&twice, good).unwrap_err();
        assert!(
            error.starts_with("x:1: two columns have the same name"),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn slices_read_back_as_written(slices in prop::collection::vec(slice(), 0..20)) {
            let text = format_slices(&slices);
            prop_assert_eq!(parse_slices(Path::new("x"), &text).unwrap(), slices);
        }

        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = parse_slices(Path::new("x"), &text);
            let _ = parse_slices(Path::new("x"), &format!("{}\n{text}", header()));
        }
    }
}
