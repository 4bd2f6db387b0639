//! Developer chores: `cargo xtask help`.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line program talks to its terminal"
)]

mod bpf;
mod command;
mod experiments;
mod fresh;
mod fuzz;
mod gallery;
mod kernels;
mod lint;
mod mutations;
mod page;
mod setup;
mod soak;
mod test;
mod tidy;

use std::process::ExitCode;

use anyhow::{Result, bail};

const HELP: &str = "\
cargo xtask <chore>

  setup         install what the tests and the checks need (Debian's packages, cargo-deny, inferno,
                the npm packages of report.html)
  test          run every test that can run here, and name those that were skipped
  lint          formatting, clippy, licences, tidy, and whether the eBPF objects and the script of
                report.html are up to date
  ci            test, then lint
  soak          the long storms: runs killed at 200 moments, every effect of a run failing,
                2000 changes to a finished run, each of which lint has to find,
                defects of 32 kinds planted into published results, 40 of each, counted by what lint says,
                profiles of 100 pairs that are alike and of 100 that are not;
                single operations on hosts failing, of runs and of restores, runs on hosts killed,
                hosts silent for a minute;
                --kills RANGE, --stops RANGE, --competition RANGE, --changes RANGE, --defects SEEDS,
                --effects RANGE, --profiles RANGE, --operations RANGE, --restores RANGE, --host-kills RANGE, --seeds RANGE, --silence RANGE
                for one of them or a part of it;
                --kernels BOOTS for the matrix of kernels, each booted so often;
                --fuzz SECONDS for each fuzz target;
                --mutations [NAME] instead: a knob of the router, or what it switches, made a no-op,
                and a test has to fail for each;
  fresh         the README's first command on a machine that has nothing but Rust, a C linker and git;
                --tests: its second one, in this checkout, which takes some minutes
  kernels [6.1 | 6.12 | newest] [--cpus N] [--boots N] [--short] [--built]
                boot Debian's kernels in an emulated machine and have fwdlab run in them
  fuzz [TARGET...] [--seconds N]
                build the fuzz targets, and run each for some seconds
  tidy          crate edges, dead links, stray words and files
  bpf           build the eBPF objects from their sources
  bpf --check   fail unless the committed objects do what their sources say
  page          build the script and the style of report.html from their sources
  page --check  fail unless the committed ones are what their sources say
  experiments [NAME...] [--again | --only-page]
                run the ready experiments, or some, and draw up docs/experiments.md
  gallery [--archive DIR]
                measure, import and take the pictures of docs/gallery.md
  bench <name>  measure fwdlab itself against the goals in docs/performance.md (`bench --help`)
  calibrate     simulate how often each verdict method errs, for docs/calibration.md (`calibrate --help`)
  seeds         judge five published results again, for docs/statistics.md (`seeds --help`)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Result<()> {
    match arguments {
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        ["setup"] => setup::run(),
        ["test"] => test::run(),
        ["lint"] => lint::run(),
        ["ci"] => test::run().and_then(|()| lint::run()),
        ["soak", options @ ..] => soak::soak(options),
        ["fresh", options @ ..] => fresh::run(options),
        ["kernels", options @ ..] => kernels::kernels(options),
        ["tidy"] => tidy::run(),
        ["fuzz", options @ ..] => fuzz::fuzz(options),
        ["bpf"] => bpf::build(),
        ["bpf", "--check"] => bpf::check(),
        ["page"] => page::build(),
        ["page", "--check"] => page::check(),
        ["experiments", arguments @ ..] => experiments::run(arguments),
        ["gallery", arguments @ ..] => gallery::run(arguments),
        // Not for people: `test` has cargo start the test programs through it.
        ["run-test", program, arguments @ ..] => test::run_program(program, arguments),
        // Built as fwdlab ships; packages of their own, so that no other chore has to build the crates.
        [package @ ("bench" | "calibrate" | "seeds"), arguments @ ..] => command::run(
            command::cargo(["run", "--release", "--quiet", "--package", package, "--"])
                .args(arguments),
        ),
        _ => bail!(
            "unknown chore: {} (see `cargo xtask help`)",
            arguments.join(" ")
        ),
    }
}
