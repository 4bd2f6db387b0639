//! CSV that is not refused is read as the `csv` crate reads it, and each row is alone in its line.
#![no_main]

use csv::{ReaderBuilder, StringRecord};
use fwdlab_archive::{CsvRows, csv_separator, plain_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = plain_text(bytes) else {
        return;
    };
    let Ok(separator) = csv_separator(text) else {
        return;
    };
    // The crate ends a row at a carriage return alone, and a comment only at a newline; a mark in front it passes over.
    if text.replace("\r\n", "\n").contains(['\r', '\u{feff}']) {
        return;
    }
    let records = |text: &str| -> Vec<StringRecord> {
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(separator)
            .comment(Some(b'#'))
            .from_reader(text.as_bytes());
        reader.into_records().map(Result::unwrap).collect()
    };
    let lines: Vec<&str> = text.split('\n').collect();
    // Of a comment that ends a text without a newline, the crate makes an empty row.
    let last = text.rsplit('\n').next();
    let last = last.filter(|line| line.starts_with('#'));
    let direct = records(text.strip_suffix(last.unwrap_or("")).unwrap_or(text));
    let rows: Result<Vec<_>, _> = CsvRows::new(text, separator, Some(b'#')).collect();
    match rows {
        Ok(rows) => {
            assert_eq!(rows.len(), direct.len());
            for (row, direct) in rows.iter().zip(&direct) {
                assert_eq!(&row.cells, direct);
                assert!(records(lines[row.line - 1]).contains(direct));
            }
        }
        Err(error) => {
            assert!((1..=lines.len()).contains(&error.line));
            let is_one_table = direct.iter().all(|cells| {
                cells.len() == direct[0].len()
                    && !cells.iter().any(|cell| cell.contains(['\n', '\r']))
            });
            let has_gap = ["\n\n", "\n\r", "\r\r"]
                .iter()
                .any(|gap| text.contains(gap));
            assert!(!is_one_table || has_gap, "{error}");
        }
    }
});
