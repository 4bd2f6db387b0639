//! What `fwdlab import` prints and leaves, for archives of every kind.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod shared;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use shared::{FWDLAB, NOBODY, fwdlab};
use testkit::text;

const RESULTS: &str = "P/N/T/results/L";

/// Forty seconds at one rate.
fn receiver(rate_pps: u32) -> String {
    let mut log = "CMD: pkt-gen -f rx -i ix1\n".to_owned();
    for second in 0..40 {
        log += &format!(
            "{second:03}.000000 main_thread [1441] {rate_pps} pps ({rate_pps} pkts in 1000000 usec)\n"
        );
    }
    log
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Two variants of two runs each, one of them published as something else, and files that are left.
fn archive(root: &Path) {
    for (run, rate) in [("x.1", 100), ("x.2", 200), ("y.1", 300), ("y.2", 400)] {
        let log = receiver(rate);
        write(root, &format!("{RESULTS}/bench.{run}.receiver"), &log);
    }
    write(root, &format!("{RESULTS}/x.pps"), "100\n200\n");
    write(root, &format!("{RESULTS}/y.pps"), "300\n401\n");
    write(root, &format!("{RESULTS}/x.png"), "");
    write(root, "P/N/T/configs/x/etc/dut.key", "hidden");
}

fn import(root: &Path, out: &Path, options: &[&str]) -> Output {
    let (root, out) = (root.to_str().unwrap(), out.to_str().unwrap());
    let arguments = [&["import", "netbenches", root, "--results", out], options].concat();
    fwdlab(&arguments).output().unwrap()
}

fn printed(output: &Output) -> &str {
    str::from_utf8(&output.stdout).unwrap()
}

#[test]
fn the_summary_says_what_was_read_and_what_was_not() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, out) = (scratch.path().join("archive"), scratch.path().join("out"));
    archive(&root);
    write(&root, &format!("{RESULTS}/bench.z.1.receiver"), "no log\n");
    let output = import(&root, &out, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let expected = format!(
        "\
9 files: 6 read, 2 left, 1 wrong
  left 1: a key or certificate: never read further, never copied
  left 1: a picture
  wrong: {RESULTS}/bench.z.1.receiver:1: no log of pkt-gen (\"no log\"); give the log of a sender or receiver
5 runs in 1 results folder
1 dataset that logs give digit for digit, 0 of them under another name; 1 that logs do not give; 0 without logs
written to {}
what was altered: fwdlab lint {}
",
        out.display(),
        root.display()
    );
    assert_eq!(printed(&output), expected);
    let files = fs::read_to_string(out.join("files.jsonl")).unwrap();
    assert_eq!(files.lines().count(), 9);
    let written = fs::read_to_string(out.join("results").join(RESULTS).join("y.pps")).unwrap();
    assert_eq!(written, "300\n400\n");
}

#[test]
fn the_summary_is_for_programs_as_well() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, out) = (scratch.path().join("archive"), scratch.path().join("out"));
    archive(&root);
    let output = import(&root, &out, &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = json!({
        "schema": 1,
        "root": root,
        "files": { "read": 6, "skipped": 2, "failed": 0 },
        "folders": 1,
        "runs": 4,
        "kinds": {
            "configuration of a DUT": 1,
            "dataset": 2,
            "picture": 1,
            "receiver's log": 4,
        },
        "skipped": {
            "a key or certificate: never read further, never copied": 1,
            "a picture": 1,
        },
        "datasets": { "from_logs": 1, "renamed": 0, "altered": 1, "without_logs": 0 },
    });
    assert_eq!(summary, expected);
    let account = fs::read(out.join("import.json")).unwrap();
    let account: Value = serde_json::from_slice(&account).unwrap();
    assert_eq!(account["files"], summary["files"]);
}

#[test]
fn an_archive_without_results_is_an_answer_of_its_own() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, out) = (scratch.path().join("archive"), scratch.path().join("out"));
    fs::create_dir(&root).unwrap();
    let output = import(&root, &out, &[]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let said = printed(&output);
    assert!(said.starts_with("0 files: 0 read"), "{said}");
    assert!(
        said.contains("there is no folder of results in it"),
        "{said}"
    );
}

#[test]
fn names_cannot_speak_to_the_terminal() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, out) = (scratch.path().join("archive"), scratch.path().join("out"));
    archive(&root);
    let hostile = "\u{1b}]0;owned\u{7}\n9 files: 9 read";
    write(
        &root,
        &format!("{RESULTS}/bench.{hostile}.1.receiver"),
        "no log\n",
    );
    write(&root, &format!("{hostile}/results/L/x.pps"), "1\n");
    let output = import(&root, &out, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let said = printed(&output);
    let is_harmless = |letter: char| letter == '\n' || !letter.is_control();
    assert!(said.chars().all(is_harmless), "{said:?}");
    assert!(!said.contains("\n9 files"), "{said}");
    let folders: Vec<String> = fs::read_dir(out.join("results"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(
        folders
            .iter()
            .flat_map(|name| name.chars())
            .all(is_harmless)
    );
}

#[test]
fn links_do_not_lead_out_of_the_archive() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, out) = (scratch.path().join("archive"), scratch.path().join("out"));
    archive(&root);
    write(scratch.path(), "elsewhere/x.pps", "77\n");
    let link = |name: &str| symlink(scratch.path().join("elsewhere"), root.join(name));
    link("P/N/T/results/M").unwrap();
    let output = import(&root, &out, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let said = printed(&output);
    assert!(
        said.contains("left 1: a symbolic link: not followed"),
        "{said}"
    );
    assert!(!out.join("results/P/N/T/results/M").exists());
}

#[test]
fn what_is_no_earlier_import_stays_as_it_is() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, out) = (scratch.path().join("archive"), scratch.path().join("out"));
    archive(&root);
    write(&out, "results/quickstart/README.md", "mine");
    let output = import(&root, &out, &[]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    let said = text(&output);
    assert!(
        said.contains("no earlier import; give a folder that is new or empty"),
        "{said}"
    );
    let kept = fs::read_to_string(out.join("results/quickstart/README.md")).unwrap();
    assert_eq!(kept, "mine");
}

#[test]
fn an_import_into_the_archive_itself_is_refused_wherever_it_is_asked_for() {
    let scratch = tempfile::tempdir().unwrap();
    archive(scratch.path());
    let output = fwdlab(&["import", "netbenches", ".", "--results", "new"])
        .current_dir(scratch.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(!scratch.path().join("new").exists());
}

#[test]
fn where_nothing_may_be_written_the_earlier_import_stays() {
    testkit::require_root!();
    let scratch = tempfile::tempdir().unwrap();
    let program = scratch.path().join("fwdlab");
    fs::copy(FWDLAB, &program).unwrap();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (root, out) = (scratch.path().join("archive"), scratch.path().join("out"));
    archive(&root);
    assert_eq!(import(&root, &out, &[]).status.code(), Some(0));
    let y = out.join("results").join(RESULTS).join("y.pps");
    let (earlier, account) = (fs::read(&y).unwrap(), out.join("import.json"));
    let before = fs::read(&account).unwrap();
    write(
        &root,
        &format!("{RESULTS}/bench.y.2.receiver"),
        &receiver(500),
    );
    let output = Command::new(&program)
        .args(["import", "netbenches", "archive", "--results", "out"])
        .current_dir(scratch.path())
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(
        text(&output).contains("Permission denied"),
        "{}",
        text(&output)
    );
    assert_eq!(fs::read(&y).unwrap(), earlier);
    assert_eq!(fs::read(&account).unwrap(), before);
}

/// Wherever a key stands, it is in no file of the import and in no message.
#[test]
fn keys_are_neither_kept_nor_quoted() {
    const KEY: &str = "kKJh8sBqJtq2PUK1yYcXQ0vTn3kTf5Z3j0b8f9pV2lM=";
    let scratch = tempfile::tempdir().unwrap();
    let (root, out) = (scratch.path().join("archive"), scratch.path().join("out"));
    archive(&root);
    let assigned = format!("PrivateKey = {KEY}\n");
    let association = format!("add 1.2.3.4 1.2.3.5 esp 0x1000 -E aes-cbc \"{KEY}\";\n");
    for (path, text) in [
        ("README.md", format!("# Impact of x\n\n{assigned}")),
        ("notes.md", association),
        ("bench.k.1.receiver", assigned.clone()),
        ("bench.k.1.pmc.graph", assigned.clone()),
        ("bench.k.equilibrium", assigned.clone()),
        ("bench.k.info", assigned),
        (
            "../../configs/x/etc/rc.conf",
            format!(
                "ifconfig_em0_alias0=\"inet vhid 1 advskew 100 pass {KEY} alias 192.168.1.1/32\"\n"
            ),
        ),
        (
            "../../configs/y/etc/sysctl.conf",
            format!("net.inet.tcp.md5_key={KEY}\n"),
        ),
    ] {
        write(&root, &format!("{RESULTS}/{path}"), &text);
    }
    let output = import(&root, &out, &[]);
    let mut all = [output.stdout, output.stderr].concat();
    for file in testkit::files_below(&out) {
        all.extend(fs::read(file).unwrap());
    }
    for arguments in [&["lint"][..], &["lint", "--json"]] {
        let output = fwdlab(&[arguments, &[root.to_str().unwrap()]].concat())
            .output()
            .unwrap();
        all.extend([output.stdout, output.stderr].concat());
    }
    assert!(!String::from_utf8_lossy(&all).contains(&KEY[..20]));
}
