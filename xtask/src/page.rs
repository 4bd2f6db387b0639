//! Builds the script and the style of `report.html`, and tells whether they are up to date.
//!
//! Users need no Node.js, because what is built is committed, as the eBPF objects are.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command::{self, command, is_installed, repository};

const FOLDER: &str = "crates/report/page";
const FILES: &[&str] = &["page.js", "page.css", "policy.txt", "LICENSE-uPlot"];

/// Installs what `package-lock.json` names; nothing of it runs while it is installed.
///
/// # Errors
/// No npm, or no registry.
pub(crate) fn install() -> Result<()> {
    let installed = folder().join("node_modules/.package-lock.json");
    let changed = |path: &Path| fs::metadata(path).and_then(|file| file.modified());
    if let (Ok(installed), Ok(wanted)) = (
        changed(&installed),
        changed(&folder().join("package-lock.json")),
    ) && installed >= wanted
    {
        println!("{FOLDER}: there");
        return Ok(());
    }
    let arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
    command::run(command("npm", arguments).current_dir(folder()))
}

/// Builds in its place.
///
/// # Errors
/// A tool is missing, or a source does not compile.
pub(crate) fn build() -> Result<()> {
    require_tools()?;
    command::run(&mut node(["build.mjs".into()]))?;
    println!("built {FOLDER}/dist");
    Ok(())
}

/// Checks the types, builds aside and compares with what is committed.
///
/// # Errors
/// A file differs, a tool is missing, or a source does not compile.
pub(crate) fn check() -> Result<()> {
    require_tools()?;
    command::run(&mut node([
        "node_modules/typescript/bin/tsc".into(),
        "--noEmit".into(),
    ]))?;
    let aside = tempfile::tempdir()?;
    command::run(&mut node(["build.mjs".into(), aside.path().into()]))?;
    let mut wrong = Vec::new();
    for file in FILES {
        let committed = folder().join("dist").join(file);
        let rebuilt = aside.path().join(file);
        let rebuilt =
            fs::read(&rebuilt).with_context(|| format!("{}: cannot be read", rebuilt.display()))?;
        if fs::read(&committed).ok().as_ref() == Some(&rebuilt) {
            println!("{FOLDER}/dist/{file}: up to date");
        } else {
            wrong.push(*file);
        }
    }
    if !wrong.is_empty() {
        bail!(
            "page: {} in {FOLDER}/dist: not what the sources say; run `cargo xtask page` and commit them",
            wrong.join(", ")
        );
    }
    Ok(())
}

fn require_tools() -> Result<()> {
    if !is_installed("node") || !folder().join("node_modules").is_dir() {
        bail!("page: needs Node.js and {FOLDER}/node_modules; `cargo xtask setup` installs them");
    }
    Ok(())
}

fn node<const N: usize>(arguments: [OsString; N]) -> Command {
    let mut node = Command::new("node");
    node.args(arguments).current_dir(folder());
    node
}

fn folder() -> PathBuf {
    repository().join(FOLDER)
}
