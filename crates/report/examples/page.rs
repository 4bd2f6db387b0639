//! Writes report.html of two made-up runs, as large as a published result and as large as runs get, and says how
//! long that takes: `page FOLDER TIMES`. For `cargo xtask bench page`.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

#[path = "../tests/profiled/mod.rs"]
#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "its stacks are few; it is the tests' own"
)]
mod profiled;
#[path = "../tests/synthetic/mod.rs"]
mod synthetic;

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use fwdlab_archive::Loaded;
use fwdlab_model::Stratum;
use fwdlab_report::render;
use profiled::profiled;
use synthetic::Synthetic;

/// Stacks of a profile, and functions of a kernel that are in them: about those of a veth pair's.
const STACKS: usize = 300;
const FUNCTIONS: usize = 400;
/// Functions of a stack.
const DEPTH: usize = 24;

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: page FOLDER TIMES";
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or(usage)?;
    let times: usize = arguments.next().ok_or(usage)?.parse()?;
    for (name, loaded, times) in [
        ("published", published(), times),
        ("largest", Synthetic::largest().loaded(), 1),
    ] {
        let mut seconds = Vec::new();
        let mut html = String::new();
        for _ in 0..times {
            let start = Instant::now();
            let (_, mut files) = render::publish(&loaded)?;
            seconds.push(start.elapsed().as_secs_f64());
            html = files.remove("report.html").ok_or("no report.html")?;
        }
        std::fs::write(Path::new(&folder).join(format!("{name}.html")), &html)?;
        println!("{name} {} {seconds:?}", html.len());
    }
    Ok(())
}

/// As many variants as the published result with most of them, in two strata, with profiles.
fn published() -> Loaded {
    let run = Synthetic {
        variants: synthetic::rules(6),
        strata: vec![Stratum::INET, Stratum::INET6],
        planned_blocks: 10,
        measured_blocks: 10,
        ..Synthetic::default()
    };
    profiled(run.loaded(), |_, block| stacks(block))
}

/// Stacks that part from each other at every depth; the same in every block but for their samples.
fn stacks(block: u32) -> String {
    let mut folded = String::new();
    for stack in 0..STACKS {
        folded.push_str("fwdlab");
        for depth in 1..DEPTH {
            // Those that are alike up to here share all functions before.
            let part = stack >> (DEPTH - depth).min(8);
            let function = (part * 31 + depth * 7) % FUNCTIONS;
            let _ = write!(folded, ";kernel_function_{function}");
        }
        let samples = 1 + (stack * 37 + block as usize * 11) % 90;
        let _ = writeln!(folded, " {samples}");
    }
    folded
}
