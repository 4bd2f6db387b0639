//! Whatever pkt-gen counts, in whichever version and with whichever options: what it prints is read back.
#![no_main]

#[path = "../../crates/pkt-gen/tests/printed/mod.rs"]
mod printed;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| printed::Run::of(bytes).is_read_back());
