//! What readers of printed profiles have in common.

use fwdlab_profile::{Folded, FrameNames, PrintedError};

/// A text is folded or refused with one of its lines, and what is folded reads back.
pub fn is_folded_or_refused(
    text: &[u8],
    read: impl Fn(&[u8], FrameNames) -> Result<Folded<'static>, PrintedError>,
) {
    for names in [FrameNames::Symbols, FrameNames::ObjectsAndSymbols] {
        match read(text, names) {
            Ok(folded) => {
                let folded = folded.to_string();
                let again = Folded::parse(folded.as_bytes()).expect("as written");
                assert_eq!(again.to_string(), folded);
            }
            Err(PrintedError::Line { line, .. }) => {
                let lines = text.split(|&byte| byte == b'\n').count() as u64;
                assert!((1..=lines).contains(&line));
            }
            Err(PrintedError::Foreign(_) | PrintedError::NoFunctions { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}
