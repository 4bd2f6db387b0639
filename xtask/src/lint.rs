//! Every check that is not a test.

use anyhow::{Result, bail};

use crate::command::{self, cargo};
use crate::{bpf, page, tidy};

type Check = (&'static str, fn() -> Result<()>);

const CHECKS: &[Check] = &[
    ("format", || cargo_line("fmt --all --check")),
    ("clippy", || {
        cargo_line("clippy --workspace --all-targets -- -D warnings")
    }),
    // Not advisories: they change without a commit of ours, and would have to be fetched.
    ("deny", || {
        cargo_line("deny check --hide-inclusion-graph licenses bans sources")
    }),
    ("tidy", tidy::run),
    ("bpf", bpf::check),
    ("page", page::check),
];

fn cargo_line(arguments: &str) -> Result<()> {
    command::run(&mut cargo(arguments.split(' ')))
}

pub(crate) fn run() -> Result<()> {
    run_all(CHECKS)
}

/// Runs all the checks, also those after one that fails.
fn run_all(checks: &[Check]) -> Result<()> {
    let mut failed = Vec::new();
    for (name, check) in checks {
        println!("== {name}");
        if let Err(error) = check() {
            eprintln!("error: {error:#}");
            failed.push(*name);
        }
    }
    if !failed.is_empty() {
        bail!("lint: failed: {}", failed.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_failing_checks_are_named() {
        let error = run_all(&[
            ("first", || bail!("no")),
            ("second", || Ok(())),
            ("third", || bail!("no")),
        ]);
        assert_eq!(error.unwrap_err().to_string(), "lint: failed: first, third");
    }
}
