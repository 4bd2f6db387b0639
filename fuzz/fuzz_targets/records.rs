//! A line of `trials.jsonl`, a slices file and a page with blocks of ministat are read or refused.
#![no_main]

use std::path::Path;

use fwdlab_model::Record;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for line in text.lines() {
        if let Ok(record) = serde_json::from_str::<Record>(line) {
            let written = serde_json::to_string(&record).expect("it is plain data");
            let back: Record = serde_json::from_str(&written).expect("as written");
            assert_eq!(serde_json::to_string(&back).expect("plain data"), written);
        }
    }
    if let Ok(slices) = fwdlab_archive::parse_slices(Path::new("x"), text) {
        let written = fwdlab_archive::format_slices(&slices);
        let back = fwdlab_archive::parse_slices(Path::new("x"), &written);
        assert_eq!(back.expect("as written"), slices);
    }
    let observations = [vec![1.0, 2.0, 3.0], vec![4.0, 5.0, 7.0]];
    for block in fwdlab_stats::ministat::published_blocks(text) {
        let _ = block.dialects(&observations);
    }
});
