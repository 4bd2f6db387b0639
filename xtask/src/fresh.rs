//! A fresh machine, played: the README's first command where nothing but Rust, a C linker, git and the
//! basic programs are on the `PATH`, as root and as an ordinary user.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command::{self, command, output};

/// What comes with Rust, a C linker and git, and a shell.
const TOOLS: &str = "cargo rustc rustup cc gcc ld as ar nm objcopy objdump ranlib readelf strip git sh bash sed grep";

/// What every machine has.
const COREUTILS: &str = "base64 basename cat chgrp chmod chown cksum comm cp cut date dd df dirname du echo env expr false \
    fold head id install link ln ls md5sum mkdir mkfifo mknod mktemp mv nice nohup nproc od paste printf \
    pwd readlink realpath rm rmdir seq sha256sum sleep sort split stat stty sync tail tee test timeout \
    touch tr true truncate tty uname uniq unlink wc whoami yes";

fn programs() -> impl Iterator<Item = &'static str> {
    TOOLS.split_whitespace().chain(COREUTILS.split_whitespace())
}

/// Plays it: the README's first command, or with `--tests` its second.
///
/// # Errors
/// This is not root, the README's first command does not end with a believable result and a page, or a test fails
/// that should have been skipped.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    let is_of_tests = match options {
        [] => false,
        ["--tests"] => true,
        _ => bail!("fresh: give nothing, or --tests"),
    };
    if output(&mut command("id", ["-u"]))?.trim() != "0" {
        bail!("fresh: it plays root and an ordinary user, so it needs root");
    }
    let folder = tempfile::tempdir()?;
    let bin = folder.path().join("bin");
    fs::create_dir(&bin)?;
    for name in programs() {
        // Not every machine has rustup.
        if let Some(program) = found(name) {
            symlink(program, bin.join(name))?;
        }
    }
    if is_of_tests {
        // In this checkout, where they are built: a clone elsewhere would build them all again.
        let mut cargo = fresh(&["cargo"], &bin)?;
        cargo.args(["xtask", "test"]);
        return command::run(cargo.current_dir(command::repository()));
    }
    let clone = folder.path().join("fwdlab");
    command::run(command("git", ["clone", "--quiet", "--no-hardlinks", "."]).arg(&clone))?;

    println!("== as root");
    let words = [
        "run",
        "--release",
        "--",
        "run",
        "experiments/quickstart.toml",
    ];
    let mut cargo = fresh(&["cargo"], &bin)?;
    cargo
        .args(words)
        .current_dir(&clone)
        // What was built once need not be built again.
        .env("CARGO_TARGET_DIR", command::repository().join("target"));
    command::run(&mut cargo)?;
    judge(
        &clone,
        &[
            "strict reverse path filter",
            "1000 routes",
            "XDP fib forwarding",
        ],
    )?;
    fs::remove_dir_all(clone.join("results"))?;

    println!("== as an ordinary user");
    // Cargo's own folders are root's, so the program is handed over as it was built.
    let program = clone.join("fwdlab");
    fs::copy(
        command::repository().join("target/release/fwdlab"),
        &program,
    )?;
    // Not what the links of its `PATH` lead to.
    let to_nobody = ["--recursive", "--no-dereference", "65534:65534"];
    output(command("chown", to_nobody).arg(folder.path()))?;
    let user = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    let mut ordinary = fresh(&user, &bin)?;
    ordinary
        .arg(&program)
        .args(["run", "experiments/quickstart.toml"])
        .current_dir(&clone)
        .env("HOME", folder.path());
    command::run(&mut ordinary)?;
    judge(&clone, &["strict reverse path filter", "1000 routes"])
}

/// A command of the fresh machine, where the administrator's programs are hidden too, because fwdlab looks there
/// whatever the `PATH` says, and the data beside the repository.
fn fresh(words: &[&str], programs: &Path) -> Result<Command> {
    const HIDDEN: &str = "for folder in /usr/sbin /sbin ../shared; do [ ! -d $folder ] || \"$0\" -t tmpfs none $folder || \
                          exit; done; exec \"$@\"";
    let needed = |name: &str| found(name).with_context(|| format!("fresh: no {name}"));
    let mut command = Command::new(needed("unshare")?);
    command
        .args(["--mount", "sh", "-c", HIDDEN])
        .arg(needed("mount")?)
        .arg(needed(words[0])?)
        .args(&words[1..]);
    for (name, _) in env::vars_os() {
        let known = name.to_str();
        // All that it knows of this machine is where Rust's own folders are, and how what is built was built.
        let stays = [
            "HOME",
            "CARGO_HOME",
            "CARGO_INCREMENTAL",
            "RUSTUP_HOME",
            "RUSTUP_TOOLCHAIN",
        ];
        if known.is_none_or(|name| !stays.contains(&name)) {
            command.env_remove(name);
        }
    }
    command.env("PATH", programs);
    Ok(command)
}

/// Where a program lies on this machine.
fn found(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|place| place.is_file())
}

/// Whether a run left a report that compares these variants, says why the others are missing, and a page.
fn judge(clone: &Path, compared: &[&str]) -> Result<()> {
    let results = clone.join("results/quickstart");
    let run = fs::read_dir(&results)
        .ok()
        .and_then(|mut runs| runs.next())
        .context("fresh: the run left no results")??
        .path();
    let readme = fs::read_to_string(run.join("README.md"))?;
    let page = fs::metadata(run.join("derived/report.html"))?;
    for label in compared {
        let verdict = readme
            .lines()
            .any(|line| line.starts_with('|') && line.contains(label) && line.contains('%'));
        if !verdict {
            bail!(
                "fresh: {}: no effect of {label:?} in README.md",
                run.display()
            );
        }
    }
    if !readme.contains("nft is not installed") || page.len() == 0 {
        bail!(
            "fresh: {}: nothing says that nft is not installed, or the page is empty",
            run.display()
        );
    }
    println!(
        "compared: {}; nft said to be missing; a page of {} kB",
        compared.join(", "),
        page.len() / 1000
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_results_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let error = judge(folder.path(), &[]).unwrap_err().to_string();
        assert_eq!(error, "fresh: the run left no results");
    }

    #[test]
    fn a_fresh_machine_has_no_other_programs() {
        for name in ["nft", "ip", "ethtool", "clang", "perf"] {
            assert!(programs().all(|program| program != name));
        }
    }
}
