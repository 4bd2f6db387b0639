//! Writes a results directory of a made-up run that is as large as runs get, 200 variants and 100 blocks of 10
//! rounds: `directory FOLDER`, which prints where. For `cargo xtask bench large`.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

#[path = "../tests/synthetic/mod.rs"]
#[allow(dead_code, reason = "it is the tests' own")]
mod synthetic;

use std::error::Error;
use std::path::Path;

use fwdlab_archive::{Choice, NewRun, Results};
use synthetic::Synthetic;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: directory FOLDER")?;
    let made = Synthetic::largest().loaded();
    let run = NewRun {
        resolved: &made.resolved,
        plan: &made.plan,
        experiment_source: b"# made up\n",
        kernel: &made.kernel,
        started: &made.started,
    };
    let choice = Choice {
        label: Some("largest"),
        new: true,
    };
    let mut results = Results::open_or_create(Path::new(&folder), &run, &choice)?;
    for session in &made.sessions {
        results.begin_session(session.clone())?;
    }
    for attempt in &made.attempts {
        results.append_block(
            &attempt.trials,
            &attempt.record,
            &attempt.slices,
            &attempt.profiles,
        )?;
    }
    println!("{}", results.dir().display());
    results.finish("2026-11-21T12:00:00Z")?;
    Ok(())
}
