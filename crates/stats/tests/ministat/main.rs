//! `ministat` against what FreeBSD's prints, C's `printf` and `strtod`, and the
//! published results it has to reproduce.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test says what it skips, and stops where it cannot go on"
)]

mod archive;
mod c_library;
mod cases;
mod command;
mod published;
mod seeds;
