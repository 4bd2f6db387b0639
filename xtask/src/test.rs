//! Runs every test that can run here, and says what did not.

use std::env;
use std::ffi::OsStr;
use std::fmt::{self, Display};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::command::{self, cargo};

// All packages at once: what is built for some of them alone is built with other features. Cargo
// runs one test program at a time, so only what is inside one has to be told to take turns.
const TEST_PROGRAMS: &str = "test --workspace --no-fail-fast --tests";
const DOCTESTS: &str = "test --workspace --no-fail-fast --doc";

/// Packages whose tests own the machine while they run: lab set-ups, and traffic that is counted.
const ONE_TEST_AT_A_TIME: &[&str] = &["fwdlab-lab", "fwdlab-traffic", "fwdlab"];

/// The test program whose tests each have a lab of hosts in namespaces of their own, and mostly wait for it.
const LABS_OF_HOSTS: &str = "hosts";

/// The environment variable that names the file to which tests append what they skip
/// (`crates/testkit`).
const SKIPPED_LOG: &str = "FWDLAB_SKIPPED_LOG";

/// Runs all tests and prints what became of them.
///
/// # Errors
/// One fails, or cannot be built; with `CI=true` also where one is skipped.
pub(crate) fn run() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let skipped_log = folder.path().join("skipped");
    fs::write(&skipped_log, "")?;

    let mut tally = Tally::default();
    let mut all_went_well = true;
    for (arguments, configuration) in [(TEST_PROGRAMS, Some(runner()?)), (DOCTESTS, None)] {
        println!("$ cargo {arguments}");
        let mut cargo = cargo(arguments.split(' '));
        cargo.env(SKIPPED_LOG, &skipped_log);
        if let Some(configuration) = configuration {
            cargo.args(["--config", &configuration]);
        }
        all_went_well &= run_and_count(&mut cargo, &mut tally)?;
    }
    tally.count_skips(&fs::read_to_string(&skipped_log)?);

    if !all_went_well && tally.failed == 0 {
        // No total: it would count only the tests that were reached.
        bail!("test: no test failed, but not all could be built and run to their end");
    }
    println!("\n{tally}");
    if tally.failed > 0 {
        bail!("test: {} failed", tally.failed);
    }
    if !tally.skipped.is_empty() && env::var("CI").is_ok_and(|ci| ci == "true" || ci == "1") {
        bail!(
            "test: {} skipped; with CI=true everything has to run",
            tally.skipped.len()
        );
    }
    Ok(())
}

/// The configuration with which cargo starts each test program through this chore's other half.
fn runner() -> Result<String> {
    let this_program = env::current_exe()?;
    Ok(format!(
        r#"target."cfg(all())".runner=[{this_program:?},"run-test"]"#
    ))
}

/// Becomes a test program that cargo wants to run, having said how many tests may run at once in it.
///
/// # Errors
/// It cannot be started; otherwise this does not return.
pub(crate) fn run_program(program: &str, arguments: &[&str]) -> Result<()> {
    let mut test = Command::new(program);
    test.args(arguments);
    if env::var("CARGO_PKG_NAME").is_ok_and(|name| ONE_TEST_AT_A_TIME.contains(&name.as_str())) {
        test.env("RUST_TEST_THREADS", threads(program));
    }
    Err(test.exec()).with_context(|| format!("{program}: cannot be started"))
}

/// How many tests of a program may run at once, where the package's own the machine.
fn threads(program: &str) -> &'static str {
    let name = Path::new(program).file_name().and_then(OsStr::to_str);
    // Cargo puts a hash behind the name.
    let name = name.and_then(|name| name.rsplit_once('-'));
    match name {
        Some((LABS_OF_HOSTS, _)) => "6",
        _ => "1",
    }
}

/// Passes on what `cargo test` prints and counts it; whether all went well.
fn run_and_count(cargo: &mut Command, tally: &mut Tally) -> Result<bool> {
    let mut child = cargo
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("{}: cannot be started", command::line(cargo)))?;
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut stdout = std::io::stdout().lock();
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        stdout.write_all(&line)?;
        tally.count_line(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    Ok(child.wait()?.success())
}

/// What became of the tests.
#[derive(Default, Debug, PartialEq)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: Vec<Skip>,
}

#[derive(Debug, PartialEq)]
struct Skip {
    test: String,
    reason: String,
}

impl Tally {
    /// Counts a line of what `cargo test` prints.
    fn count_line(&mut self, line: &str) {
        if let Some(counts) = line.strip_prefix("test result: ") {
            for count in counts.split(['.', ';']) {
                match count.trim().split_once(' ') {
                    Some((number, "passed")) => self.passed += number.parse().unwrap_or(0),
                    Some((number, "failed")) => self.failed += number.parse().unwrap_or(0),
                    _ => {}
                }
            }
        } else if let Some((test, reason)) = line
            .strip_prefix("test ")
            .and_then(|test| test.split_once(" ... ignored"))
        {
            let reason = reason.strip_prefix(", ").unwrap_or("ignored");
            self.skipped.push(Skip {
                test: test.into(),
                reason: reason.into(),
            });
        }
    }

    /// Counts the tests that skipped themselves, which `cargo test` counts as passed.
    ///
    /// Shape: one a line, the test's name and the reason with a tab between.
    fn count_skips(&mut self, log: &str) {
        for (test, reason) in log.lines().filter_map(|line| line.split_once('\t')) {
            self.passed = self.passed.saturating_sub(1);
            self.skipped.push(Skip {
                test: test.into(),
                reason: reason.into(),
            });
        }
    }
}

impl Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.skipped.is_empty() {
            writeln!(f, "nothing skipped")?;
        }
        for Skip { test, reason } in &self.skipped {
            writeln!(f, "skipped: {test}: {reason}")?;
        }
        write!(
            f,
            "{} passed, {} failed, {} skipped",
            self.passed,
            self.failed,
            self.skipped.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "
running 4 tests
test one ... ok
test two ... FAILED
test three ... ignored
test four ... ignored, needs two machines

test result: FAILED. 1 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s

test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.01s
";

    #[test]
    fn results_of_all_test_programs_are_added_up() {
        let mut tally = Tally::default();
        PRINTED.lines().for_each(|line| tally.count_line(line));
        assert_eq!((tally.passed, tally.failed), (13, 1));
        tally.count_skips("lab::netns::puts_up_a_lab\tnot root\n");
        assert_eq!(
            tally.to_string(),
            "skipped: three: ignored\n\
             skipped: four: needs two machines\n\
             skipped: lab::netns::puts_up_a_lab: not root\n\
             12 passed, 1 failed, 3 skipped"
        );
    }

    #[test]
    fn the_total_stands_alone_on_the_last_line() {
        let mut tally = Tally::default();
        tally.count_line("test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured");
        assert_eq!(
            tally.to_string(),
            "nothing skipped\n2 passed, 0 failed, 0 skipped"
        );
    }
}
