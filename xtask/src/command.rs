//! Running other programs from the root of the repository.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The root of the repository: the folder that xtask's own lies in.
pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies inside the repository")
}

/// A program with its arguments, to be run at the root of the repository with nothing to read.
pub(crate) fn command<'a>(program: &str, arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(repository())
        .stdin(Stdio::null());
    command
}

/// The cargo that runs this chore, with arguments.
pub(crate) fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    command(
        &std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()),
        arguments,
    )
}

/// Runs a command in sight of the user: its line first, then what it prints.
///
/// # Errors
/// It cannot be started, or fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = line(command);
    println!("$ {line}");
    let status = command
        .status()
        .with_context(|| format!("{line}: cannot be started"))?;
    if !status.success() {
        bail!("{line}: failed ({status})");
    }
    Ok(())
}

/// Runs a command out of sight and returns what it printed.
///
/// # Errors
/// It cannot be started, or fails; the error then ends with what it wrote to stderr.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = line(command);
    let output = command
        .output()
        .with_context(|| format!("{line}: cannot be started"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("{line}: failed ({})\n{}", output.status, stderr.trim_end());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{line}: printed bytes, not text"))
}

/// A command as one would type it.
pub(crate) fn line(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Whether a program is on the `PATH`, or among the administrator's, which lie on root's only.
pub(crate) fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_command_and_what_it_said() {
        let error = output(&mut command("sh", ["-c", "echo no >&2; exit 3"])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "sh -c echo no >&2; exit 3: failed (exit status: 3)\nno"
        );
        let error = output(&mut command("no-such-program", ["--check"])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no-such-program --check: cannot be started"
        );
    }

    #[test]
    fn the_repository_is_where_the_workspace_is() {
        assert!(repository().join("Cargo.lock").is_file());
    }
}
