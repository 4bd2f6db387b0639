//! Five published results worked through: what their text says, and what their data support.
//!
//! To be run as `cargo xtask seeds`. It reads the published numbers and the raw logs from a copy of the
//! public archive, judges them with `crates/stats`, and puts the tables into docs/statistics.md, whose
//! prose stands around them.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line program talks to its terminal"
)]

mod archive;
mod page;
mod seeds;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use archive::Archive;

/// Draws up the tables of docs/statistics.md from the public archive's files.
#[derive(Parser)]
#[command(name = "cargo xtask seeds", bin_name = "cargo xtask seeds")]
struct Arguments {
    /// Compare with the page and change nothing; ends with 1 where they differ
    #[arg(long)]
    check: bool,
    /// The copy of the archive [default: shared/corpus/netbenches beside the repository]
    #[arg(long, value_name = "DIR")]
    archive: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let archive = match &arguments.archive {
        Some(folder) => Archive::new(folder),
        None => Archive::new(
            &repository()
                .with_file_name("shared")
                .join("corpus/netbenches"),
        ),
    };
    let tables = seeds::tables(&archive)?;
    let document = repository().join("docs/statistics.md");
    if arguments.check {
        return page::check(&document, &tables);
    }
    for table in &tables {
        println!("{}\n", table.text);
    }
    page::put_into(&document, &tables)
}

/// The root of the repository.
fn repository() -> &'static Path {
    // xtask/seeds -> xtask -> the repository.
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    repository.expect("this package lies two folders deep")
}
