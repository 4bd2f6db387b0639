//! What DTrace prints: folded or refused with one of its lines, and what is folded reads back.
#![no_main]

mod printed;

use fwdlab_profile::Dtrace;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    printed::is_folded_or_refused(text, |text, names| {
        Dtrace::read(text, names).map(|read| read.folded)
    });
    let _ = Dtrace::is_begun_by(text);
});
