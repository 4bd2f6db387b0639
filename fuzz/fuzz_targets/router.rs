//! Whatever frames come in, at whatever levels of the knobs: the router lets nothing out that is wrong, and
//! neither loses nor invents a packet or a buffer.
#![no_main]

#[path = "../../crates/router/tests/rig/mod.rs"]
mod rig;

use libfuzzer_sys::fuzz_target;
use rig::scenario::Scenario;

fuzz_target!(|bytes: &[u8]| Scenario::of(bytes).run());
