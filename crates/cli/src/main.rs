//! The `fwdlab` command.
#![forbid(unsafe_code)]
fn main() {}
