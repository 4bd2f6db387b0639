//! `ministat` against what FreeBSD's prints, C's `printf` and `strtod`, and the
//! published results it has to reproduce.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod c_library;
mod cases;
mod command;
mod published;
mod seeds;
