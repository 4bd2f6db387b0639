//! A file of observations that others wrote is read or refused with a line.
//!
//! Shape: the column, the delimiters and the file, each on the first line left.
#![no_main]

use fwdlab_archive::{Column, ObservationsError, Separators, parse_observations};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut parts = input.splitn(3, |&byte| byte == b'\n');
    let (Some(column), Some(delimiters), Some(file)) = (parts.next(), parts.next(), parts.next())
    else {
        return;
    };
    let column = Column::of(&String::from_utf8_lossy(column));
    let one = delimiters.first().filter(|byte| byte.is_ascii());
    let lines = 1..=file.split(|&byte| byte == b'\n').count();
    for separators in [
        Separators::Blanks,
        Separators::Csv,
        Separators::Runs(String::from_utf8_lossy(delimiters).into_owned()),
        Separators::One(*one.unwrap_or(&b'|')),
    ] {
        match parse_observations(file, &column, &separators) {
            Ok(observations) => {
                assert!(!observations.is_empty());
                // A carriage return alone ends a row of CSV, and no line.
                assert!(observations.is_sorted_by(|one, next| one.line <= next.line));
                for observation in observations {
                    assert!(lines.contains(&observation.line));
                    assert!(observation.value > 0.0 && observation.value.is_finite());
                }
            }
            Err(
                ObservationsError::NotANumber { line, .. }
                | ObservationsError::NotPositive { line, .. }
                | ObservationsError::Empty { line, .. },
            ) => assert!(lines.contains(&line)),
            Err(ObservationsError::Text(error)) => assert!(lines.contains(&error.line)),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
