//! `blocks/<n>.csv`: one row a slice.

use std::fmt::Write as _;
use std::path::Path;
use std::str::FromStr;

use fwdlab_model::{AddressFamily, Contention, LoadRegime, SliceLoad, SliceRecord, VariantName};
use serde::Deserialize;
use serde::de::IntoDeserializer as _;
use serde::de::value::{Error as WordError, StrDeserializer};

use crate::error::{ArchiveError, Place};

/// The first row of a slices file: the names of its columns.
pub const SLICES_HEADER: &str = "family,round,position,variant,start_s,time_s,offered_frames,\
forwarded_frames,undisturbed_s,undisturbed_frames,dropped_frames,calibration_ns,steal_s,switch_s,competing_s,\
alone_s,alone_frames,regime,intended_load_pps,taken_frames";

/// The columns that schema 1 lacks, with the comma before them.
const LOAD: &str = ",regime,intended_load_pps,taken_frames";

/// Columns that are missing as well in directories written before competitors were recorded.
const CONTENTION: &str = ",competing_s,alone_s,alone_frames";

/// More than any cell has.
const CELL_BYTES_MAX: usize = 1000;

/// Slices as the text of their file.
///
/// No cell needs quoting: names are of letters, digits, `.`, `_` and `-`. Numbers are as short as
/// they can be while reading back as the same number.
#[must_use]
pub fn format_slices(slices: &[SliceRecord]) -> String {
    let mut text = format!("{SLICES_HEADER}\n");
    for slice in slices {
        writeln!(
            text,
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            slice.family,
            slice.round,
            slice.position,
            slice.variant,
            slice.start_s,
            slice.time_s,
            slice.offered_frames,
            slice.forwarded_frames,
            slice.undisturbed_s,
            slice.undisturbed_frames,
            slice.dropped_frames,
            slice.calibration_ns,
            slice.steal_s,
            slice.switch_s,
            format_contention(slice.contention),
            format_load(slice.load)
        )
        .expect("writing to memory does not fail");
    }
    text
}

/// Three cells, all empty where nobody could tell.
fn format_contention(contention: Option<Contention>) -> String {
    contention.map_or_else(
        || ",,".to_owned(),
        |of| format!("{},{},{}", of.competing_s, of.alone_s, of.alone_frames),
    )
}

/// Three cells, all empty where the record does not say.
fn format_load(load: Option<SliceLoad>) -> String {
    load.map_or_else(
        || ",,".to_owned(),
        |of| {
            let intended = of.intended_pps.map(|pps| pps.to_string());
            format!(
                "{},{},{}",
                of.regime,
                intended.unwrap_or_default(),
                of.taken_frames
            )
        },
    )
}

/// The slices of a file's text; `path` is for the errors.
///
/// # Errors
/// [`ArchiveError::Damaged`] with the line.
pub fn parse_slices(path: &Path, text: &str) -> Result<Vec<SliceRecord>, ArchiveError> {
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default();
    let without_load = SLICES_HEADER.strip_suffix(LOAD);
    let headers = [
        Some(SLICES_HEADER),
        without_load,
        without_load.and_then(|header| header.strip_suffix(CONTENTION)),
    ];
    let Some(header) = headers.into_iter().flatten().find(|known| *known == header) else {
        return Err(ArchiveError::damaged(
            Place::line(path, 1),
            format!("the columns are not {SLICES_HEADER:?}"),
        ));
    };
    lines
        .enumerate()
        .map(|(index, line)| {
            parse_row(header, line)
                .map_err(|what| ArchiveError::damaged(Place::line(path, index + 2), what))
        })
        .collect()
}

/// A row below a header, which is known.
fn parse_row(header: &'static str, row: &str) -> Result<SliceRecord, String> {
    let mut cells = Cells {
        names: header.split(','),
        cells: row.split(','),
    };
    let slice = SliceRecord {
        family: cells.word::<AddressFamily>()?,
        round: cells.number()?,
        position: cells.number()?,
        variant: cells.word::<VariantName>()?,
        start_s: cells.seconds()?,
        time_s: cells.seconds()?,
        offered_frames: cells.number()?,
        forwarded_frames: cells.number()?,
        undisturbed_s: cells.seconds()?,
        undisturbed_frames: cells.number()?,
        dropped_frames: cells.number()?,
        calibration_ns: cells.number()?,
        steal_s: cells.seconds()?,
        switch_s: cells.seconds()?,
        contention: cells.contention()?,
        load: cells.load()?,
    };
    match cells.cells.next() {
        Some(cell) if cell.len() > CELL_BYTES_MAX => Err("a cell too many".to_owned()),
        Some(cell) => Err(format!("a cell too many ({cell:?})")),
        None => Ok(slice),
    }
}

/// The cells of a row, each with the name of its column.
struct Cells<'a> {
    names: std::str::Split<'static, char>,
    cells: std::str::Split<'a, char>,
}

impl<'a> Cells<'a> {
    fn next(&mut self) -> Result<(&'static str, &'a str), String> {
        let name = self.names.next().unwrap_or_default();
        match self.cells.next() {
            // No number, and no word of ours, is as long; messages show what is wrong.
            Some(cell) if cell.len() > CELL_BYTES_MAX => {
                Err(format!("{name}: a cell of {} bytes", cell.len()))
            }
            Some(cell) => Ok((name, cell)),
            None => Err(format!("{name}: there is no such cell")),
        }
    }

    fn number<T: FromStr>(&mut self) -> Result<T, String> {
        let (name, cell) = self.next()?;
        cell.parse()
            .map_err(|_| format!("{name}: not a number of its kind ({cell:?})"))
    }

    /// Whether the next three cells are empty, which are then passed over, or the header does not have them.
    fn are_left_out(&mut self) -> bool {
        if self.names.clone().next().is_none() {
            return true;
        }
        let are_empty = self.cells.clone().take(3).eq(["", "", ""]);
        if are_empty {
            self.names.by_ref().take(3).for_each(drop);
            self.cells.by_ref().take(3).for_each(drop);
        }
        are_empty
    }

    fn load(&mut self) -> Result<Option<SliceLoad>, String> {
        if self.are_left_out() {
            return Ok(None);
        }
        Ok(Some(SliceLoad {
            regime: self.word::<LoadRegime>()?,
            intended_pps: self.intended_pps()?,
            taken_frames: self.number()?,
        }))
    }

    fn intended_pps(&mut self) -> Result<Option<f64>, String> {
        let (name, cell) = self.next()?;
        match cell.parse::<f64>() {
            _ if cell.is_empty() => Ok(None),
            Ok(number) if number.is_finite() => Ok(Some(number)),
            _ => Err(format!(
                "{name}: not a number of frames per second ({cell:?})"
            )),
        }
    }

    fn contention(&mut self) -> Result<Option<Contention>, String> {
        if self.are_left_out() {
            return Ok(None);
        }
        Ok(Some(Contention {
            competing_s: self.seconds()?,
            alone_s: self.seconds()?,
            alone_frames: self.number()?,
        }))
    }

    fn seconds(&mut self) -> Result<f64, String> {
        let (name, cell) = self.next()?;
        match cell.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(format!("{name}: not a number of seconds ({cell:?})")),
        }
    }

    /// A cell that is a word of the model, which says how it is read.
    fn word<T: Deserialize<'a>>(&mut self) -> Result<T, String> {
        let (name, cell) = self.next()?;
        let word: StrDeserializer<'a, WordError> = cell.into_deserializer();
        T::deserialize(word).map_err(|error| format!("{name}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slice() -> impl Strategy<Value = SliceRecord> {
        let finite = || any::<f64>().prop_filter("finite", |number| number.is_finite());
        (
            (any::<bool>(), any::<u32>(), any::<u32>(), ".{0,12}"),
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
                family: if place.0 {
                    AddressFamily::Inet
                } else {
                    AddressFamily::Inet6
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
            ("", "family: unknown variant ``"),
            ("inet,1", "position: there is no such cell"),
            (
                "inet,1,0,../x,0,0,0,0,0,0,0,0,0,0,0,0,0",
                "variant: variant name",
            ),
            (
                "inet,1,0,none,NaN,0,0,0,0,0,0,0,0,0",
                "start_s: not a number",
            ),
            (
                "inet,1,0,none,0,0,0,0,0,0,0,0,0,0,0.1,,",
                "alone_s: not a number",
            ),
            (
                "inet,1,0,none,0,0,0,0,0,0,0,0,0,0,x,1,1",
                "competing_s: not a number",
            ),
            (
                "inet,1,0,none,0,0,0,0,0,0,0,0,0,0",
                "competing_s: there is no such cell",
            ),
            ("inet,-1,0,none,0,0,0,0,0,0,0,0,0,0", "round: not a number"),
            (
                "inet,1,0,none,0,0,0,0,0,0,0,0,0,0,0.5,0.5,3,,,,7",
                "a cell too many (\"7\")",
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
            let text = format!("{SLICES_HEADER}\n{good}\n{row}\n");
            let error = parse_slices(Path::new("blocks/3.csv"), &text).unwrap_err();
            let message = error.to_string();
            assert!(message.starts_with("blocks/3.csv:3: "), "{message}");
            assert!(message.contains(what), "{message}");
        }
        assert!(parse_slices(Path::new("x"), "").is_err());
        // Directories of schema 1, and from before somebody looked at competitors.
        let (mut header, mut row) = (SLICES_HEADER, good);
        for lacking in [LOAD, CONTENTION] {
            header = header.strip_suffix(lacking).unwrap();
            row = row.strip_suffix(",,,").unwrap();
            let slices = parse_slices(Path::new("x"), &format!("{header}\n{row}\n")).unwrap();
            assert_eq!((slices[0].contention, slices[0].load), (None, None));
            let error = parse_slices(Path::new("x"), &format!("{header}\n{good}\n")).unwrap_err();
            assert!(error.to_string().contains("a cell too many"), "{error}");
        }
        assert!(parse_slices(Path::new("x"), "family,round\n").is_err());
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
            let _ = parse_slices(Path::new("x"), &format!("{SLICES_HEADER}\n{text}"));
        }
    }
}
