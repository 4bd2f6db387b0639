//! What the command prints and how it exits, for right and for wrong input.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

const FWDLAB: &str = env!("CARGO_BIN_EXE_fwdlab");

/// The user and group that own nothing.
const NOBODY: u32 = 65534;

#[test]
fn output_and_exit_codes_are_as_recorded() {
    let scratch = tempfile::tempdir().unwrap();
    trycmd::TestCases::new()
        // Without journals; what `restore` says where there are some is tested on its own.
        .env("XDG_STATE_HOME", scratch.path().to_str().unwrap())
        .case("tests/cmd/*.trycmd");
}

#[test]
fn without_privilege_a_run_says_what_it_needs_and_leaves_nothing() {
    testkit::require_root!();
    let scratch = tempfile::tempdir().unwrap();
    // What nobody is to read and write: the program may lie where only root looks.
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let program = scratch.path().join("fwdlab");
    fs::copy(FWDLAB, &program).unwrap();
    for (folder, file) in [
        ("experiments", "quickstart.toml"),
        ("labs", "netns.toml"),
        ("labs/rulesets", "conntrack.nft"),
        ("labs/rulesets", "ten-stateless-rules.nft"),
    ] {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        fs::create_dir_all(scratch.path().join(folder)).unwrap();
        let path = Path::new(folder).join(file);
        fs::copy(repository.join(&path), scratch.path().join(&path)).unwrap();
    }
    let output = Command::new(&program)
        .args(["run", "experiments/quickstart.toml"])
        .current_dir(scratch.path())
        .stdin(Stdio::null())
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(
        stderr.contains("needs root") && stderr.contains("sudo"),
        "{stderr}"
    );
    assert!(!scratch.path().join("results").exists());
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let mut child = Command::new(FWDLAB)
        .args(["completions", "zsh"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn every_shell_gets_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = Command::new(FWDLAB)
            .args(["completions", shell])
            .output()
            .unwrap();
        assert!(output.status.success());
        assert!(
            String::from_utf8_lossy(&output.stdout).contains("ministat"),
            "{shell}"
        );
    }
}
