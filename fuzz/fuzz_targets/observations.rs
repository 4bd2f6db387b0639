//! A file of observations that others wrote is read or refused with a line.
//!
//! Shape: the column, the delimiters and the file, each on the first line left.
#![no_main]

use fwdlab_archive::{Column, ObservationsError, parse_observations};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut parts = input.splitn(3, |&byte| byte == b'\n');
    let (Some(column), Some(delimiters), Some(file)) = (parts.next(), parts.next(), parts.next())
    else {
        return;
    };
    let column = Column::of(&String::from_utf8_lossy(column));
    for may_have_headings in [false, true] {
        match parse_observations(file, &column, delimiters, may_have_headings) {
            Ok(observations) => assert!(!observations.is_empty()),
            Err(ObservationsError::NotANumber { line, .. }) => {
                assert!((1..=file.split(|&byte| byte == b'\n').count()).contains(&line));
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
