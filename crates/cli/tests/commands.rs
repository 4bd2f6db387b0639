//! What the command prints and how it exits, for right and for wrong input.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
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

/// The program and the quickstart where nobody may read and write them: the originals may lie where
/// only root looks.
fn as_nobody_finds_it(scratch: &Path) -> PathBuf {
    fs::set_permissions(scratch, fs::Permissions::from_mode(0o777)).unwrap();
    let program = scratch.join("fwdlab");
    fs::copy(FWDLAB, &program).unwrap();
    for (folder, file) in [
        ("experiments", "quickstart.toml"),
        ("labs", "netns.toml"),
        ("labs/rulesets", "conntrack.nft"),
        ("labs/rulesets", "ten-stateless-rules.nft"),
    ] {
        fs::create_dir_all(scratch.join(folder)).unwrap();
        let path = Path::new(folder).join(file);
        fs::copy(repository().join(&path), scratch.join(&path)).unwrap();
    }
    program
}

#[test]
fn without_a_place_for_its_journal_a_run_says_what_to_do_and_leaves_nothing() {
    testkit::require_root!();
    let scratch = tempfile::tempdir().unwrap();
    let program = as_nobody_finds_it(scratch.path());
    let output = Command::new(&program)
        .args(["run", "experiments/quickstart.toml"])
        .current_dir(scratch.path())
        .stdin(Stdio::null())
        .env("XDG_STATE_HOME", "/proc/nowhere")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(
        stderr.contains("the undo journal \"/proc/nowhere/fwdlab\"")
            && stderr.contains("XDG_STATE_HOME"),
        "{stderr}"
    );
    assert!(!scratch.path().join("results").exists());
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn plan(arguments: &[&str], results: &Path) -> String {
    let output = Command::new(FWDLAB)
        .args([
            "plan",
            "experiments/quickstart.toml",
            "--seed",
            "7",
            "--results",
        ])
        .arg(results)
        .args(arguments)
        .current_dir(repository())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), stderr.as_ref()), (Some(0), ""));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_plan_is_shown_and_nothing_is_measured() {
    let scratch = tempfile::tempdir().unwrap();
    let results = scratch.path().join("results");
    let text = plan(&[], &results);
    for part in [
        "Impact of a packet filter on this machine's IPv4 forwarding\n",
        "2000 flows of smallest UDP packets",
        "   7  no packet filter (A/A control)\n        no packet filter a second time\n",
        "Order of block 1, at random (seed 7)\n",
        "8 blocks of 8 rounds",
        "not known: there is no earlier run",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(plan(&[], &results), text);
    assert!(!results.exists());

    let json: serde_json::Value = serde_json::from_str(&plan(&["--json"], &results)).unwrap();
    assert_eq!(json["design"]["seed"], 7);
    assert_eq!(json["variants"].as_array().unwrap().len(), 7);
    assert!(json["duration_s"].as_f64().unwrap() > 60.0);
    assert!(json["detectable"][0]["reckoned"].is_null());
    let rounds = json["first_block"]["families"][0]["rounds"]
        .as_array()
        .unwrap();
    assert_eq!(rounds.len(), 8);
}

#[test]
fn where_the_lab_cannot_be_asked_a_plan_says_so() {
    testkit::require_root!();
    let scratch = tempfile::tempdir().unwrap();
    let program = as_nobody_finds_it(scratch.path());
    let output = Command::new(&program)
        .args(["plan", "experiments/quickstart.toml"])
        .current_dir(scratch.path())
        .stdin(Stdio::null())
        // The lab does nothing where it cannot keep its journal.
        .env("XDG_STATE_HOME", "/proc/nowhere")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let words: Vec<&str> = stdout.split_whitespace().collect();
    let text = words.join(" ");
    assert!(
        text.contains("not checked: which variants the lab can have ("),
        "{stdout}"
    );
    assert!(text.contains("XDP fib forwarding"), "{stdout}");
}

#[test]
fn the_committed_schemas_are_what_the_command_prints() {
    for kind in ["experiment", "lab"] {
        let output = Command::new(FWDLAB)
            .args(["schema", kind])
            .output()
            .unwrap();
        assert!(output.status.success());
        let committed = repository().join(format!("docs/schema/{kind}.schema.json"));
        assert!(output.stdout == fs::read(committed).unwrap(), "{kind}");
    }
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
        let script = String::from_utf8_lossy(&output.stdout);
        for word in ["ministat", "plan", "schema", "results"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}
