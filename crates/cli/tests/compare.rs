//! Results directories compared: what one session says of another, and what is refused.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod shared;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};
use shared::{data, fwdlab};
use testkit::{copy_folder, text};

/// The words of verdicts, in which a sentence about them has to be found out.
const WORDS: [&str; 4] = ["different", "negligible", "equivalent", "undecided"];

/// Changes each record of a run.
fn change_records(directory: &Path, change: impl Fn(&mut Value)) {
    let path = directory.join("trials.jsonl");
    let mut changed = String::new();
    for line in fs::read_to_string(&path).unwrap().lines() {
        let mut record: Value = serde_json::from_str(line).unwrap();
        change(&mut record);
        changed += &format!("{record}\n");
    }
    fs::write(path, changed).unwrap();
}

fn write_start(directory: &Path, session: u32, start: &str) {
    let first = fs::read(directory.join("sessions/1.json")).unwrap();
    let mut record: Value = serde_json::from_slice(&first).unwrap();
    record["session"] = json!(session);
    record["start"] = json!(start);
    let path = directory.join(format!("sessions/{session}.json"));
    fs::write(path, record.to_string()).unwrap();
}

/// A run of six blocks and two variants that forwards so many times as much as the one that all are made of; it began
/// in that hour.
fn run(root: &Path, name: &str, ratio: f64, hour: u32) -> String {
    let directory = root.join(name);
    copy_folder(Path::new(&data("results/router/spring")), &directory);
    change_records(&directory, |record| {
        if let Some(pps) = record["observation_pps"].as_f64() {
            record["observation_pps"] = json!(pps * ratio);
        }
    });
    write_start(&directory, 1, &format!("2026-11-21T{hour:02}:00:00Z"));
    directory.to_str().unwrap().to_owned()
}

/// Runs of one side, in every second hour.
fn runs(root: &Path, name: &str, ratios: &[f64], first_hour: u32) -> Vec<String> {
    let hours = (first_hour..).step_by(2);
    let runs = ratios.iter().zip(hours);
    runs.map(|(ratio, hour)| run(root, &format!("{name}-{hour:02}"), *ratio, hour))
        .collect()
}

/// Makes the second half of a run one that went on in another session.
fn resume(directory: &str) {
    let directory = Path::new(directory);
    change_records(directory, |record| {
        if record["block"].as_u64().is_some_and(|block| block > 3) {
            record["session"] = json!(2);
        }
    });
    write_start(directory, 2, "2026-11-21T23:00:00Z");
}

fn compare(arguments: &[&str]) -> Output {
    fwdlab(&[&["compare"], arguments].concat())
        .output()
        .unwrap()
}

/// A text in one line: how it is wrapped hangs on the paths in it.
fn spaced(printed: &[u8]) -> String {
    let printed = String::from_utf8_lossy(printed);
    let words: Vec<&str> = printed.split_whitespace().collect();
    words.join(" ")
}

/// What it printed, with that exit code.
#[track_caller]
fn printed(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{}", text(output));
    spaced(&output.stdout)
}

#[track_caller]
fn refused(arguments: &[&str]) -> String {
    let output = compare(arguments);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(output.stdout.is_empty(), "{}", text(&output));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn one_session_a_side_gives_no_verdict_and_fails_every_condition() {
    let scratch = tempfile::tempdir().unwrap();
    let spring = run(scratch.path(), "spring", 1.0, 9);
    let autumn = run(scratch.path(), "autumn", 1.28, 10);
    let said = printed(&compare(&[&spring, &autumn]), 0);
    assert!(said.contains("within these sessions: +28.0 % ["), "{said}");
    assert!(
        said.contains("No verdict: with one session a side"),
        "{said}"
    );
    let json = printed(&compare(&[&spring, &autumn, "--json"]), 0);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["basis"], "within-sessions");
    assert!(
        json["no_verdict"]
            .as_str()
            .unwrap()
            .starts_with("with one session")
    );
    for group in json["groups"].as_array().unwrap() {
        assert!(group["rows"][1]["verdict"].is_null(), "{group}");
        assert!(group["rows"][1]["effect"]["p"].is_null(), "{group}");
    }
    let markdown = printed(&compare(&[&spring, &autumn, "--markdown"]), 0);
    for said in [said.as_str(), &json.to_string(), &markdown] {
        for word in WORDS {
            let claims = [format!("{word}:"), format!("\"{word}"), format!("| {word}")];
            let claim = claims.iter().find(|claim| said.contains(*claim));
            assert_eq!(claim, None, "{said}");
        }
    }
    // Worse, better or the same: nothing passes, and the reason is said.
    for (other, condition) in [
        (&autumn, "worse:1%"),
        (&autumn, "maybe-worse:1%"),
        (&autumn, "different:50%"),
    ] {
        let output = compare(&[&spring, other, "--fail-on", condition]);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let expected = format!("fails on {condition}: no verdict: with one session a side");
        assert!(stderr.starts_with(&expected), "{stderr}");
    }
}

#[test]
fn reruns_say_how_much_sessions_differ() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path();
    let before = run(root, "before", 1.001, 20);
    let (near, far) = (run(root, "near", 0.971, 21), run(root, "far", 0.6, 22));
    let reruns = runs(root, "rerun", &[1.0, 1.04, 0.97, 1.02, 1.01], 1);
    let with = |other: &str, more: &[&str]| {
        let reruns: Vec<&str> = reruns.iter().map(String::as_str).collect();
        let arguments = [&[&before, other], more, &["--sessions"], &reruns].concat();
        compare(&arguments)
    };
    let said = printed(&with(&near, &[]), 0);
    assert!(said.contains("undecided: -3.0 % ["), "{said}");
    assert!(
        said.contains("Noise between sessions, by 5 reruns: standard deviation 2.6 %"),
        "{said}"
    );
    // Within the sessions the same difference is as clear as day.
    let within = printed(&compare(&[&before, &near]), 0);
    assert!(
        within.contains("within these sessions: -3.0 % [-"),
        "{within}"
    );
    printed(&with(&near, &["--fail-on", "worse:1%"]), 0);
    let output = with(&far, &["--fail-on", "worse:1%"]);
    assert!(
        printed(&output, 1).contains("different (slower): -40.1 %"),
        "{}",
        text(&output)
    );

    let few = refused(&[
        &before,
        &near,
        "--sessions",
        &reruns[0],
        &reruns[1],
        &reruns[2],
    ]);
    assert!(
        few.contains("--sessions: 3 sessions given") && few.contains("at least 4"),
        "{few}"
    );
}

#[test]
fn several_sessions_a_side_are_ranked_and_fewer_than_four_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path();
    let before = runs(root, "before", &[1.0, 1.03, 0.98, 1.01, 1.02], 1);
    let after = runs(root, "after", &[0.90, 0.93, 0.88, 0.91, 0.92], 2);
    let sides = |number: usize, more: &[&str]| -> Vec<String> {
        let more = more.iter().map(ToString::to_string);
        let with = std::iter::once("--with".to_owned());
        let (before, after) = (before[..number].to_vec(), after[..number].to_vec());
        more.chain(before).chain(with).chain(after).collect()
    };
    let given = |number: usize, more: &[&str]| {
        let arguments = sides(number, more);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        compare(&arguments)
    };
    let output = given(5, &["--fail-on", "worse:1%"]);
    let said = printed(&output, 1);
    assert!(
        said.starts_with("Sessions, each by its median, compared by the exact Mann-Whitney test"),
        "{said}"
    );
    assert!(said.contains("different (slower): -9.9 %"), "{said}");
    assert!(!said.contains("W215"), "{said}");
    let json: Value = serde_json::from_str(&printed(&given(5, &["--json"]), 0)).unwrap();
    assert_eq!(json["basis"], "sessions");
    assert_eq!(json["sides"][1].as_array().unwrap().len(), 5);
    assert_eq!(json["sides"][0][1]["start"], "2026-11-21T03:00:00Z");
    assert_eq!(json["groups"][0]["rows"][1]["trials"], 5);

    let output = given(3, &[]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    let said = text(&output);
    assert!(
        said.contains("3 against 3") && said.contains("test is 0.100"),
        "{said}"
    );
    assert!(
        said.contains("give at least 4 sessions of each side"),
        "{said}"
    );
}

#[test]
fn a_directory_that_was_resumed_is_said_to_hold_several_sessions() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path();
    let (resumed, whole) = (run(root, "resumed", 1.01, 9), run(root, "whole", 1.1, 12));
    resume(&resumed);
    let said = refused(&[&resumed, &whole]);
    assert!(
        said.contains(&format!("{resumed} (2 sessions) and {whole} (1 session)")),
        "{said}"
    );
    assert!(said.contains("test is 0.667"), "{said}");
    let reruns = runs(root, "rerun", &[1.0, 1.04, 0.97, 1.02], 1);
    let reruns: Vec<&str> = reruns.iter().map(String::as_str).collect();
    let said = printed(
        &compare(&[&[&resumed, &whole, "--sessions"], &reruns[..]].concat()),
        0,
    );
    assert!(
        said.contains("W202") && said.contains("holds 2 sessions"),
        "{said}"
    );
}

#[test]
fn a_directory_is_not_compared_with_itself_by_whatever_path() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path();
    let (one, other) = (run(root, "one", 1.0, 9), run(root, "other", 1.1, 10));
    let link = root.join("link");
    symlink(&one, &link).unwrap();
    let (slash, link) = (format!("{one}/"), link.to_str().unwrap().to_owned());
    let around = format!("{}/other/../one/.", root.display());
    assert!(refused(&[&one, &one]).contains("given twice"));
    for same in [&slash, &link, &around] {
        for arguments in [
            vec![one.as_str(), same],
            vec![&other, &one, same],
            vec![&one, "--with", &other, same],
            vec![&one, &other, "--sessions", same],
        ] {
            let said = refused(&arguments);
            let is_told = said.contains("are one directory") || said.contains("given twice");
            assert!(
                is_told && said.contains("a directory with itself"),
                "{said}"
            );
        }
    }
    let seen_from_inside = fwdlab(&["compare", ".", "../one"])
        .current_dir(&one)
        .output()
        .unwrap();
    assert_eq!(seen_from_inside.status.code(), Some(2));
    // Nor with a copy of itself, which would be a session without any noise.
    copy_folder(Path::new(&one), &root.join("copy"));
    let copied = root.join("copy").to_str().unwrap().to_owned();
    let said = refused(&[&one, &copied]);
    assert!(
        said.contains("hold the same session: one is a copy of the other"),
        "{said}"
    );
    // Nor with what was copied of it while it was measured.
    let trials = root.join("copy/trials.jsonl");
    let text = fs::read_to_string(&trials).unwrap();
    let mut lines = text.split_inclusive('\n');
    let is_block = |line: &&str| line.contains("\"record\":\"block\"");
    let mut first: Vec<&str> = lines.by_ref().take_while(|line| !is_block(line)).collect();
    let end = text.split_inclusive('\n').find(is_block).unwrap();
    first.push(end);
    fs::write(&trials, first.concat()).unwrap();
    fs::remove_file(root.join("copy/finished.json")).unwrap();
    let said = refused(&[&one, &copied]);
    assert!(said.contains("hold the same session"), "{said}");
}

/// One typing error in a script, and every condition of a check would pass.
#[test]
fn a_file_is_not_compared_with_itself_or_a_copy() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let write = |name: &str, text: &str| {
        fs::write(path(name), text).unwrap();
        path(name)
    };
    let one = write("one.pps", "100.5\n101.5\n99\n100\n102\n");
    let copy = write("copy.pps", "100.5\n101.5\n99\n100\n102\n");
    symlink(&one, path("link.pps")).unwrap();
    let (rate, same_rate) = (write("a.pps", "7\n7\n7\n"), write("b.pps", "7\n7\n7\n"));
    let compared = |arguments: &[&str]| {
        let output = fwdlab(&["compare"]).args(arguments).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    for (other, why) in [
        (one.as_str(), "comparing a file with itself shows nothing"),
        (
            &path("link.pps"),
            "comparing a file with itself shows nothing",
        ),
        (
            &copy,
            "hold the same observations: one is a copy of the other",
        ),
    ] {
        for option in ["--fail-on=maybe-worse:1%", "--paired"] {
            let (code, said) = compared(&[option, &one, other]);
            assert_eq!(code, Some(2), "{said}");
            assert!(said.contains(why), "{said}");
        }
    }
    let (_, said) = compared(&[&rate, &same_rate]);
    assert!(!said.contains("a copy of the other"), "{said}");
}

#[test]
fn one_alone_and_files_as_sessions_are_told_what_to_do() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path();
    let (one, other) = (run(root, "one", 1.0, 9), run(root, "other", 1.1, 10));
    let said = refused(&[&one]);
    assert!(
        said.contains(
            "one results directory; compare needs two or more, the first is the baseline"
        ),
        "{said}"
    );
    assert!(said.contains(&format!("`fwdlab analyze {one}`")), "{said}");
    let (a, b) = (data("a.txt"), data("b.txt"));
    let said = refused(&[&a]);
    assert!(
        said.contains(&format!("{a}: one file; compare needs two or more")),
        "{said}"
    );
    assert!(said.contains(&format!("`fwdlab ministat {a}`")), "{said}");
    for arguments in [
        [&a, "--with", &b],
        [&one, "--with", &b],
        [&a, "--with", &one],
    ] {
        let said = refused(&arguments);
        assert!(
            said.contains("--with: ") && said.contains("is not a directory"),
            "{said}"
        );
    }
    let said = refused(&[&a, &b, "--sessions", &one]);
    assert!(
        said.contains(&format!("--sessions: {a} is not a directory")),
        "{said}"
    );
    let said = refused(&[&one, &other, "--methods"]);
    assert!(said.contains("--methods"), "{said}");
    // Files of two directories are of two sessions, whatever their verdict.
    let files = [&one, &other].map(|directory| format!("{directory}/l2_prepend-0.inet.pps"));
    // Both are from one folder; two runs never agree to the last digit.
    fs::write(
        &files[1],
        "10300000\n10310000\n10290000\n10305000\n10295000\n",
    )
    .unwrap();
    let said = printed(&compare(&[&files[0], &files[1]]), 0);
    assert!(said.contains("W215"), "{said}");
    // An empty one has no session.
    let empty = run(root, "empty", 1.0, 9);
    fs::write(Path::new(&empty).join("trials.jsonl"), "").unwrap();
    let said = refused(&[&one, &empty]);
    assert!(
        said.contains(&format!("{empty}: no observation to compare (no block")),
        "{said}"
    );
}

/// Loose files are what they were: nothing says of which session they are.
#[test]
fn tables_are_known_by_their_endings_and_what_does_not_vary_by_its_column() {
    let scratch = tempfile::tempdir().unwrap();
    let write = |name: &str, rows: [&str; 3]| {
        let path = scratch.path().join(name);
        fs::write(&path, format!("{}\n", rows.join("\n"))).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let one = write("a.CSV", ["1,1000", "2,1010", "3,1020"]);
    let other = write("b.tsv", ["1\t2000", "2\t2010", "3\t2020"]);
    let output = compare(&["--column", "2", "--json", &one, &other]);
    let report: Value = serde_json::from_str(&printed(&output, 0)).unwrap();
    let rows = &report["groups"][0]["rows"];
    let rates = [
        &rows[0]["forwarding_rate_pps"],
        &rows[1]["forwarding_rate_pps"],
    ];
    assert_eq!(rates, [&json!(1010.0), &json!(2010.0)], "{report}");

    let one = write("c.csv", ["1,1000", "2,1000", "3,1000"]);
    let other = write("d.csv", ["1,2000", "2,2000", "3,2000"]);
    let told = refused(&["--column", "2", &one, &other]);
    assert!(
        told.contains(
            "d.csv: column 2 is 1000 in every line of the one and 2000 in every line of the other"
        ),
        "{told}"
    );
    let years = write("e.csv", ["2024,2025", "1000,1100", "1010,1120"]);
    let told = refused(&["--column", "2", &years, &one]);
    assert!(
        told.contains("line 1, column 2: \"2025\" may be a heading"),
        "{told}"
    );
}

#[test]
fn a_pipe_is_as_wide_as_columns_says() {
    let scratch = tempfile::tempdir().unwrap();
    let write = |name: &str, rates: &str| {
        let path = scratch.path().join(name);
        fs::write(&path, rates).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (one, other) = (
        write("a", "1000\n1010\n1020\n"),
        write("b", "2000\n2010\n2030\n"),
    );
    let widest = |columns: Option<&str>| {
        let mut command = fwdlab(&["compare", &one, &other]);
        match columns {
            Some(columns) => command.env("COLUMNS", columns),
            None => command.env_remove("COLUMNS"),
        };
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| line.chars().count()).max().unwrap()
    };
    let usual = widest(None);
    assert!(usual <= 80, "{usual}");
    assert!(widest(Some("132")) > usual);
    for odd in ["0", "", "wide", "99999999"] {
        assert_eq!(widest(Some(odd)), usual, "{odd}");
    }
}

#[test]
fn loose_files_pass_and_fail_as_before() {
    let (a, b) = (data("combined-neither.txt"), data("combined-simple.txt"));
    let output = compare(&[&a, &b, "--fail-on", "worse:1%"]);
    assert!(
        printed(&output, 0).contains("different (faster): +9.0 %"),
        "{}",
        text(&output)
    );
    let output = compare(&[&b, &a, "--fail-on", "worse:1%"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
}

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

/// An archive of two folders of results, the second one's rates 20 % higher, imported; each has a text with a block of
/// ministat. Returns the imported folders.
fn imported(root: &Path) -> [String; 2] {
    let archive = root.join("archive");
    for (folder, extra) in [("L1", 0), ("L2", 20)] {
        let results = archive.join("P/N/T/results").join(folder);
        fs::create_dir_all(&results).unwrap();
        let mut files = Vec::new();
        for (variant, rates) in [("off", [100, 104, 102]), ("on", [140, 143, 141])] {
            let rates = rates.map(|rate| (rate + rate * extra / 100) * 1000);
            for (number, rate) in (1..).zip(rates) {
                let log = results.join(format!("bench.{variant}.{number}.receiver"));
                fs::write(log, receiver(rate)).unwrap();
            }
            let file = results.join(format!("{variant}.pps"));
            fs::write(&file, rates.map(|rate| format!("{rate}\n")).concat()).unwrap();
            files.push(file.to_str().unwrap().to_owned());
        }
        let output = fwdlab(&["ministat", "-s", &files[0], &files[1]])
            .output()
            .unwrap();
        let block = String::from_utf8(output.stdout)
            .unwrap()
            .replace(&format!("{}/", results.display()), "");
        let readme = format!("# Impact of a switch\n\n```\n{block}```\n");
        fs::write(results.join("README.md"), readme).unwrap();
    }
    let out = root.join("imported");
    let [archive, out] = [&archive, &out].map(|path| path.to_str().unwrap());
    let output = fwdlab(&["import", "netbenches", archive, "--results", out])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    ["L1", "L2"].map(|folder| format!("{out}/results/P/N/T/results/{folder}"))
}

#[test]
fn imported_directories_are_compared_analyzed_shown_and_linted() {
    let scratch = tempfile::tempdir().unwrap();
    let [one, other] = imported(scratch.path());
    let of = |arguments: &[&str]| fwdlab(arguments).output().unwrap();

    let said = printed(&compare(&[&one, &other]), 0);
    assert!(said.contains("within these sessions: +19.6 % ["), "{said}");
    assert!(said.contains("No verdict"), "{said}");
    let json: Value =
        serde_json::from_str(&printed(&compare(&[&one, &other, "--json"]), 0)).unwrap();
    assert_eq!(json["groups"].as_array().unwrap().len(), 2);
    assert_eq!(
        json["groups"][0]["rows"][0]["forwarding_rate_pps"],
        102_000.0
    );
    assert!(refused(&[&one, &format!("{one}/")]).contains("a directory with itself"));
    let alone = refused(&[&one]);
    assert!(
        alone.contains(&format!("`fwdlab analyze {one}`")),
        "{alone}"
    );

    for command in ["analyze", "show"] {
        let said = printed(&of(&[command, &one]), 0);
        assert!(
            said.starts_with("Impact of a switch Published by others: "),
            "{said}"
        );
        assert!(said.contains("different (faster): +38."), "{said}");
        assert!(said.contains("W214"), "{said}");
        let json: Value =
            serde_json::from_str(&printed(&of(&[command, &one, "--json"]), 0)).unwrap();
        assert_eq!(
            json["blocks"][0]["judged"]["groups"][0]["rows"][1]["verdict"]["words"],
            "different"
        );
    }
    let said = printed(&of(&["analyze", &one, "--threshold", "45", "--methods"]), 0);
    assert!(
        said.contains("different but negligible (faster): +38.") && said.contains("Mann-Whitney"),
        "{said}"
    );
    let output = of(&["analyze", &one, "--baseline", "on"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    // Nothing was written.
    assert!(!Path::new(&one).join("README.md").exists());

    // Sound as it was imported, and as it was reported.
    let sound = |said: &str| said.contains("nothing found in 1 results directory");
    let said = printed(&of(&["lint", &one]), 0);
    assert!(sound(&said), "{said}");
    printed(&of(&["report", &one]), 0);
    let said = printed(&of(&["lint", &one]), 0);
    assert!(sound(&said), "{said}");
    let below: PathBuf = scratch.path().join("imported");
    let said = printed(&of(&["lint", below.to_str().unwrap()]), 0);
    assert!(
        said.contains("nothing found in 2 results directories"),
        "{said}"
    );

    // Whatever is changed in it is found.
    fs::write(Path::new(&one).join("off.pps"), "100000\n109000\n102000\n").unwrap();
    let readme = Path::new(&one).join("README.md");
    let text = fs::read_to_string(&readme).unwrap();
    fs::write(
        &readme,
        text.replacen("different (faster): +38.", "different (faster): +39.", 1),
    )
    .unwrap();
    fs::write(Path::new(&one).join("third.pps"), "1\n").unwrap();
    let output = of(&["lint", &one, "--json"]);
    let findings: Vec<Value> = serde_json::from_str(&printed(&output, 1)).unwrap();
    let codes: Vec<&str> = findings
        .iter()
        .map(|of| of["code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, ["L103", "L108", "L203"]);
    assert_eq!(
        findings[0]["sentence"],
        "off.pps holds 109000 where its run gives 104000"
    );
}
