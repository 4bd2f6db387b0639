//! What DTrace prints: folded or refused with one of its lines, and what is folded reads back.
#![no_main]

use fwdlab_profile::{Dtrace, Folded, FrameNames, PrintedError};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    for names in [FrameNames::Symbols, FrameNames::ObjectsAndSymbols] {
        match Dtrace::read(text, names) {
            Ok(dtrace) => {
                let folded = dtrace.folded.to_string();
                let again = Folded::parse(folded.as_bytes()).expect("as written");
                assert_eq!(again.to_string(), folded);
            }
            Err(PrintedError::Line { line, .. }) => {
                let lines = text.split(|&byte| byte == b'\n').count() as u64;
                assert!((1..=lines).contains(&line));
            }
            Err(error) => panic!("{error}"),
        }
    }
    let _ = Dtrace::is_begun_by(text);
});
