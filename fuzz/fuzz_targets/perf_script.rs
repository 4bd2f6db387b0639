//! What `perf script` prints: folded or refused with one of its lines, and what is folded reads back.
#![no_main]

mod printed;

use fwdlab_profile::PerfScript;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    printed::is_folded_or_refused(text, |text, names| {
        PerfScript::read(text, names, None).map(|read| read.folded)
    });
    let _ = PerfScript::is_begun_by(text);
});
