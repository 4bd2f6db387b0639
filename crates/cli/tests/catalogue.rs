//! The catalogue and the export, as a user comes by them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use testkit::copy_folder;

/// Two runs of one experiment, months and kernels apart, and one that is damaged.
const RESULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/results");

fn fwdlab(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fwdlab"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn what_is_exported_makes_the_same_ministat_block() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = format!("{RESULTS}/router/spring");
    let exported = fwdlab(
        scratch.path(),
        &["export", "netbenches", &directory, "--to", "out"],
    );
    let results = scratch.path().join(stdout(&exported).trim_end());
    let files = ["l2_prepend-0.pps", "l2_prepend-1.pps"];
    let ministat = ["ministat", "-s", files[0], files[1]];
    let block = stdout(&fwdlab(&results, &ministat));
    let readme = fs::read_to_string(results.join("README.md")).unwrap();
    assert!(
        readme.contains(&format!("```\n{block}```\n")),
        "{readme}\n{block}"
    );
    // The run's own files make the same, but for their names.
    let own = stdout(&fwdlab(
        Path::new(&directory),
        &[
            "ministat",
            "-s",
            "l2_prepend-0.inet.pps",
            "l2_prepend-1.inet.pps",
        ],
    ));
    assert_eq!(own.replace(".inet.pps", ".pps"), block);

    let again = fwdlab(
        scratch.path(),
        &["export", "netbenches", &directory, "--to", "out"],
    );
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("exists already"));
}

#[test]
fn a_kept_index_says_the_same_and_is_made_again_once_where_it_is_broken() {
    let scratch = tempfile::tempdir().unwrap();
    copy_folder(Path::new(RESULTS), &scratch.path().join("results"));
    let query = |more: &[&str]| {
        let output = fwdlab(scratch.path(), &[&["query", "--csv"], more].concat());
        (stdout(&output), String::from_utf8(output.stderr).unwrap())
    };
    let fresh = query(&[]);
    let kept = ["--index", "index.sqlite"];
    assert_eq!(query(&kept), fresh);
    assert_eq!(query(&kept), fresh);
    let index = scratch.path().join("index.sqlite");
    let bytes = fs::read(&index).unwrap();
    fs::write(&index, &bytes[..5000]).unwrap();
    let (rows, told) = query(&kept);
    assert_eq!(rows, fresh.0);
    assert!(
        told.starts_with("index.sqlite: broken or of another version; made again\n"),
        "{told}"
    );
    assert_eq!(query(&kept), fresh);

    let inside = ["--index", "results/router/spring/index.sqlite"];
    let refused = fwdlab(scratch.path(), &[&["ls"], &inside[..]].concat());
    assert_eq!(refused.status.code(), Some(2));
    assert!(!scratch.path().join(inside[1]).exists());
}

#[test]
fn rates_over_time_are_drawn() {
    let scratch = tempfile::tempdir().unwrap();
    let arguments = ["query", RESULTS, "--over", "time", "--svg", "rates.svg"];
    stdout(&fwdlab(scratch.path(), &arguments));
    let svg = fs::read_to_string(scratch.path().join("rates.svg")).unwrap();
    for part in [
        "Forwarding rate over time",
        "2025",
        "l2_prepend-1",
        "median",
    ] {
        assert!(svg.contains(part), "{part}");
    }
    let again = scratch.path().join("again.svg");
    let arguments = ["query", RESULTS, "--svg", again.to_str().unwrap()];
    stdout(&fwdlab(scratch.path(), &arguments));
    assert_eq!(fs::read_to_string(again).unwrap(), svg);
}

#[test]
fn a_configuration_over_revisions_is_without_its_control_and_its_plot_says_of_what_it_is() {
    let scratch = tempfile::tempdir().unwrap();
    let results = scratch.path().join("results");
    for (run, kernel) in [("spring", "6.9.0"), ("autumn", "6.18.0-rc3")] {
        let dir = results.join("router").join(run);
        copy_folder(&Path::new(RESULTS).join("router").join(run), &dir);
        let file = dir.join("resolved.json");
        let mut resolved: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        resolved["kernel"] = kernel.into();
        resolved["experiment"]["variants"][1]["control_of"] = "l2_prepend-0".into();
        resolved["experiment"]["comparisons"][0]["variants"] = serde_json::json!([]);
        fs::write(&file, resolved.to_string()).unwrap();
    }
    let arguments = ["query", "--over", "os", "--svg", "rates.svg"];
    let text = stdout(&fwdlab(scratch.path(), &arguments));
    assert!(!text.contains("l2_prepend-1"), "{text}");
    let place = |kernel: &str| text.find(kernel).unwrap();
    assert!(place("6.9.0") < place("6.18.0-rc3"), "{text}");
    let svg = fs::read_to_string(scratch.path().join("rates.svg")).unwrap();
    assert!(svg.contains("Topic router; platform Example CPU, 2.0 GHz"));
    assert!(!svg.contains("l2_prepend-1"));
    // Whoever asks for the control alone gets it, and so does who asks for rates.
    let asked = ["query", "--over", "os", "--variant", "l2_prepend-1"];
    assert!(stdout(&fwdlab(scratch.path(), &asked)).contains("router: l2_prepend-1, inet"));
    assert!(stdout(&fwdlab(scratch.path(), &["query"])).contains("l2_prepend-1"));
}

#[test]
fn hostile_names_do_nothing_to_a_terminal() {
    let scratch = tempfile::tempdir().unwrap();
    let results = scratch.path().join("results");
    copy_folder(Path::new(RESULTS), &results);
    let hostile = results.join("router/\u{1b}[2J\u{202e},\"x\"\nrm");
    fs::rename(results.join("router/spring"), &hostile).unwrap();
    for command in [&["ls"][..], &["query"], &["query", "--over", "os"]] {
        let text = stdout(&fwdlab(scratch.path(), command));
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
        assert!(text.contains(",\"x\" rm"), "{text:?}");
    }
    fs::write(hostile.join("plan.json"), "{").unwrap();
    let told = fwdlab(scratch.path(), &["query"]).stderr;
    assert!(
        !String::from_utf8_lossy(&told).contains(['\u{1b}', '\u{202e}']),
        "{told:?}"
    );
    fs::copy(
        results.join("router/autumn/plan.json"),
        hostile.join("plan.json"),
    )
    .unwrap();
    let csv = stdout(&fwdlab(scratch.path(), &["ls", "--csv"]));
    assert!(
        csv.contains(",\"\u{1b}[2J\u{202e},\"\"x\"\"\nrm\","),
        "{csv:?}"
    );
}
