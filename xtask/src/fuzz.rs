//! Builds the fuzz targets and runs each for a while, with the compiler that builds everything else.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::command::{cargo, command, is_installed, repository, run};

/// How long each target runs where nothing is said.
const SECONDS: u32 = 3;

/// An input that takes longer, in seconds, or more memory, in MiB, is a fault.
const INPUT_SECONDS_MAX: u32 = 10;
const MEMORY_MB_MAX: u32 = 2048;

/// What makes the compiler count the edges of the code for libFuzzer. Nightly's sanitizers find faults of memory besides,
/// which code without `unsafe` has not.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cdebug-assertions \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";

const USAGE: &str =
    "fuzz: give names of targets in fuzz/fuzz_targets, all without; --seconds N for each (3)";

/// Builds all targets, and runs those that are named, or all.
///
/// # Errors
/// One does not build, or finds a fault; the options are none.
pub(crate) fn fuzz(options: &[&str]) -> Result<()> {
    let targets = targets(&repository().join("fuzz/fuzz_targets"))?;
    let (chosen, seconds) = parse(options, &targets)?;
    if !is_installed("c++") {
        bail!("fuzz: c++, which builds libFuzzer, is not installed; run `cargo xtask setup`");
    }
    // With a target named, build scripts and macros are built as always.
    let host = host()?;
    let folder = repository().join("target/fuzz");
    run(cargo(["build", "--release", "--locked", "--bins"])
        .args(["--manifest-path", "fuzz/Cargo.toml", "--target", &host])
        .arg("--target-dir")
        .arg(&folder)
        .env("RUSTFLAGS", COVERAGE))?;
    for target in &chosen {
        // What was found of the code in earlier runs is gone on from.
        let corpus = folder.join("corpus").join(target);
        fs::create_dir_all(&corpus)?;
        let program = folder.join(&host).join("release").join(target);
        let program = program.to_str().context("the repository's path is text")?;
        run(command(program, [])
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
            .arg(format!("-rss_limit_mb={MEMORY_MB_MAX}"))
            .args(["-print_final_stats=0", "-verbosity=0"])
            .arg(format!("-artifact_prefix={}/{target}-", folder.display()))
            .arg(&corpus))
        .with_context(|| {
            format!(
                "fuzz: the input that {target} fails on is in {}",
                folder.display()
            )
        })?;
    }
    println!("{} fuzz targets ran for {seconds} s each", chosen.len());
    Ok(())
}

/// The names of the targets, in order.
fn targets(folder: &Path) -> Result<Vec<String>> {
    let mut targets = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        let name = path.file_stem().and_then(|name| name.to_str());
        targets.extend(name.filter(|_| is_source).map(str::to_owned));
    }
    targets.sort();
    Ok(targets)
}

fn parse(options: &[&str], targets: &[String]) -> Result<(Vec<String>, u32)> {
    let (mut chosen, mut seconds) = (Vec::new(), SECONDS);
    let mut options = options.iter();
    while let Some(&option) = options.next() {
        if option == "--seconds" {
            let given = options.next().and_then(|text| text.parse().ok());
            seconds = given.filter(|&seconds| seconds > 0).context(USAGE)?;
        } else if targets.iter().any(|target| target == option) {
            chosen.push(option.to_owned());
        } else {
            bail!(
                "{USAGE}; there is no {option:?} among {}",
                targets.join(", ")
            );
        }
    }
    if chosen.is_empty() {
        chosen = targets.to_vec();
    }
    Ok((chosen, seconds))
}

/// The machine that the compiler builds for by itself.
fn host() -> Result<String> {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let told = crate::command::output(&mut command(&rustc, ["--version", "--verbose"]))?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not tell its host")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_built_and_run() {
        let targets = targets(&repository().join("fuzz/fuzz_targets")).unwrap();
        let manifest = fs::read_to_string(repository().join("fuzz/Cargo.toml")).unwrap();
        for target in &targets {
            assert!(
                manifest.contains(&format!("name = \"{target}\"")),
                "{target}"
            );
        }
        assert!(targets.len() > 8, "{targets:?}");
        assert_eq!(parse(&[], &targets).unwrap(), (targets.clone(), SECONDS));
        let one = parse(&["records", "--seconds", "60"], &targets).unwrap();
        assert_eq!(one, (vec!["records".to_owned()], 60));
        for options in [&["nothing"][..], &["--seconds"], &["--seconds", "0"]] {
            assert!(parse(options, &targets).is_err(), "{options:?}");
        }
    }
}
