//! Reports that are not what their records give, and findings in every form in which they are printed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod profiled;
mod synthetic;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fwdlab_archive::lint::{
    BROKEN_LINK, Finding, HOSTILE_NAME, Severity, UNKNOWN_FILE, VALUE_REPLACED,
};
use fwdlab_archive::{Finished, Loaded};
use fwdlab_model::{Load, SCHEMA_VERSION, VariantName};
use fwdlab_report::{Baseline, FindingsView, Report, lint_report, render};
use proptest::prelude::*;
use serde_json::Value;
use synthetic::Synthetic;

fn finished(run: &Synthetic) -> Loaded {
    Loaded {
        finished: Some(Finished {
            schema: SCHEMA_VERSION,
            finished: "2026-11-21T10:00:00Z".to_owned(),
            accepted_blocks: (1..=8).collect(),
            given_up_blocks: Vec::new(),
        }),
        ..run.loaded()
    }
}

/// What `fwdlab report` writes of a run.
fn published(loaded: &Loaded) -> BTreeMap<String, Vec<u8>> {
    let report = Report::build(loaded).unwrap();
    let derived = render::derived_files(&report, loaded).unwrap().into_iter();
    let readme = render::readme(&report, "derived/");
    derived
        .map(|(name, text)| (format!("derived/{name}"), text))
        .chain([("README.md".to_owned(), readme)])
        .map(|(name, text)| (name, text.into_bytes()))
        .collect()
}

/// The codes found after a change to one published file of a finished run.
fn after(name: &str, change: impl FnOnce(&str) -> String) -> Vec<&'static str> {
    codes(&found(&finished(&Synthetic::default()), name, change))
}

fn found(loaded: &Loaded, name: &str, change: impl FnOnce(&str) -> String) -> Vec<Finding> {
    let mut files = published(loaded);
    let text = String::from_utf8(files[name].clone()).unwrap();
    let changed = change(&text);
    assert_ne!(changed, text, "{name} was to be changed");
    files.insert(name.to_owned(), changed.into_bytes());
    lint_report(loaded, &files)
}

fn codes(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().map(|finding| finding.rule.code).collect()
}

/// The text with the first digit of a line that holds `part` replaced by another.
fn with_another_figure(text: &str, part: &str) -> String {
    let line = text.lines().find(|line| line.contains(part)).unwrap();
    let at = line.rfind(|c: char| c.is_ascii_digit()).unwrap();
    let digit = if &line[at..=at] == "7" { "3" } else { "7" };
    let changed = format!("{}{digit}{}", &line[..at], &line[at + 1..]);
    text.replacen(line, &changed, 1)
}

#[test]
fn nothing_is_found_in_what_a_report_writes() {
    for run in [
        Synthetic::default(),
        Synthetic {
            titles: vec![Some("one".into()), Some("two".into())],
            ..Synthetic::default()
        },
        Synthetic {
            measured_blocks: 0,
            ..Synthetic::default()
        },
    ] {
        let loaded = finished(&run);
        assert_eq!(codes(&lint_report(&loaded, &published(&loaded))), [""; 0]);
        // Reports are safe to delete.
        assert_eq!(codes(&lint_report(&loaded, &BTreeMap::new())), [""; 0]);
    }
    // Killed before its first session was recorded.
    let mut loaded = Synthetic::default().loaded();
    loaded.sessions.clear();
    assert_eq!(codes(&lint_report(&loaded, &BTreeMap::new())), [""; 0]);
    let readme = BTreeMap::from([("README.md".to_owned(), Vec::new())]);
    assert_eq!(codes(&lint_report(&loaded, &readme)), ["L902"]);
}

#[test]
fn a_figure_that_the_records_do_not_give_is_shown_beside_the_one_they_do() {
    let change = |text: &str| with_another_figure(text, "| XDP fib forwarding |");
    let findings = found(&finished(&Synthetic::default()), "README.md", change);
    assert_eq!(codes(&findings), ["L108"]);
    let [published, derived] = &findings[0].evidence[..] else {
        panic!("{findings:?}")
    };
    assert!(published.path.ends_with("README.md") && published.line.is_some());
    assert!(published.says.contains("XDP fib") && derived.says.contains("XDP fib"));
    assert_ne!(published.says, derived.says);
    // A row of ministat, a sentence, and what programs read.
    for (name, part) in [
        ("README.md", "x   8"),
        ("README.md", "- **XDP fib forwarding**"),
        ("derived/README.md", "- **XDP fib forwarding**"),
    ] {
        assert_eq!(
            after(name, |text| with_another_figure(text, part)),
            ["L108"],
            "{part}"
        );
    }
    // Of the digits that programs read, those that another version may compute otherwise are no figure of their own.
    let estimate = "\"estimate_percent\": ";
    let first_digit = |text: &str| text.replacen(estimate, &format!("{estimate}9"), 1);
    let last_digit = |text: &str| with_another_figure(text, estimate);
    let positive = |text: &str| text.replace(&format!("{estimate}9-"), &format!("{estimate}-9"));
    let changed = after("derived/report.json", |text| positive(&first_digit(text)));
    assert_eq!(changed, ["L108"]);
    assert_eq!(after("derived/report.json", last_digit), ["L302"]);
}

#[test]
fn a_verdict_and_a_title_that_the_records_do_not_give_are_found() {
    let codes = after("README.md", |text| {
        text.replacen("**: different (slower): ", "**: equivalent: ", 1)
    });
    assert_eq!(codes, ["L601"]);
    let codes = after("derived/report.json", |text| {
        text.replacen("\"words\": \"different\"", "\"words\": \"undecided\"", 1)
    });
    assert_eq!(codes, ["L601"]);
    let codes = after("README.md", |text| text.replacen("# Impact of", "# On", 1));
    assert_eq!(codes, ["L206"]);
}

#[test]
fn a_report_with_profiles_of_which_some_are_gone_is_a_note() {
    let whole = profiled::profiled(finished(&Synthetic::default()), profiled::with_rules);
    let files = published(&whole);
    assert_eq!(codes(&lint_report(&whole, &files)), Vec::<&str>::new());
    for kept in [0, 1, 3] {
        let mut some = whole.clone();
        for attempt in some.attempts.iter_mut().skip(kept) {
            attempt.profiles.clear();
        }
        let findings = lint_report(&some, &files);
        assert!(!findings.is_empty());
        for finding in findings {
            assert_ne!(
                finding.rule.severity,
                Severity::Error,
                "{kept}: {finding:?}"
            );
            assert_ne!(finding.rule.code, UNKNOWN_FILE.code, "{kept}: {finding:?}");
        }
    }
}

#[test]
fn other_words_are_a_note_because_they_may_be_another_versions() {
    let remark = |text: &str| text.replacen("# Results", "Measured on a Sunday.\n\n# Results", 1);
    assert_eq!(after("README.md", remark), ["L302"]);
    assert_eq!(
        after("README.md", |text| text
            .replace("are treated as irrelevant", "matter not")),
        ["L302"]
    );
    // A version that left the way to the sign.
    assert_eq!(
        after("README.md", |text| text
            .replace(" (slower)", "")
            .replace(" (faster)", "")),
        ["L302"]
    );
    assert_eq!(
        after("derived/trials.svg", |text| text.replace("<svg", "<svg ")),
        ["L302"]
    );
    // Of a run that is not finished the report may be older than the records.
    let unfinished = Synthetic::default().loaded();
    let change = |text: &str| with_another_figure(text, "| XDP fib forwarding |");
    assert_eq!(codes(&found(&unfinished, "README.md", change)), ["L302"]);
    let findings = found(&finished(&Synthetic::default()), "README.md", |_| {
        "\u{0}".into()
    });
    assert_eq!(codes(&findings), ["L302"]);
}

/// A version that knew neither the lines below tables nor the picture of the distributions, nor the sums in
/// report.json.
#[test]
fn what_an_earlier_version_did_not_write_is_at_most_a_note() {
    let loaded = finished(&Synthetic {
        invalid: vec![(2, 1)],
        ..Synthetic::default()
    });
    let mut files = published(&loaded);
    assert_eq!(codes(&lint_report(&loaded, &files)), [""; 0]);
    files
        .remove("derived/distributions.svg")
        .expect("it is written");
    assert_eq!(codes(&lint_report(&loaded, &files)), [""; 0]);
    for name in ["README.md", "derived/README.md"] {
        let text = String::from_utf8(files[name].clone()).expect("text");
        let (before, section) = text
            .split_once("## Distribution of the trials\n")
            .expect("it is there");
        let (_, behind) = section.split_once("\n## ").expect("another follows");
        let text = format!("{before}## {behind}");
        let lines = text.lines().filter(|line| !line.starts_with("<sub>"));
        let lines: Vec<&str> = lines.collect();
        files.insert(name.to_owned(), lines.join("\n").into_bytes());
    }
    let json = files.get_mut("derived/report.json").expect("it is written");
    let mut report: Value = serde_json::from_slice(json).expect("JSON");
    let report = report.as_object_mut().expect("an object");
    for key in ["flows", "conservation_totals"] {
        report.remove(key).expect(key);
    }
    *json = serde_json::to_vec_pretty(report).expect("plain data");
    assert_eq!(codes(&lint_report(&loaded, &files)), ["L302"]);
}

#[test]
fn strangers_among_the_reports_files_are_told() {
    let loaded = finished(&Synthetic::default());
    let with = |name: &str| {
        let mut files = published(&loaded);
        files.insert(name.to_owned(), Vec::new());
        codes(&lint_report(&loaded, &files))
    };
    assert_eq!(with("derived/effects-7-inet.svg"), ["L906"]);
    assert_eq!(with("derived/noise.json"), [""; 0]);
}

#[test]
fn warnings_that_a_verdict_may_not_be_the_duts_are_findings() {
    let codes_of = |loaded: &Loaded| codes(&lint_report(loaded, &published(loaded)));
    let two = Synthetic {
        variants: vec![("open".into(), 0.0), ("filtered".into(), 0.0)],
        control: false,
        ..Synthetic::default()
    };
    // With one variant all that was offered under overload was forwarded, and what was offered is the outcome's.
    let mut held = finished(&two);
    held.resolved.traffics[0].load = Load::Overload;
    let open = held.resolved.variants[0].name.clone();
    let mut held_alone = held.clone();
    for attempt in &mut held_alone.attempts {
        for trial in &mut attempt.trials {
            if trial.variant == open {
                trial.dut.drops =
                    [("full ring".to_owned(), trial.tester.offered_frames / 100)].into();
            }
        }
    }
    let codes = codes_of(&held_alone);
    assert!(codes.contains(&"L402"), "{codes:?}");
    // Where both were held, the verdicts say so.
    assert!(!codes_of(&held).contains(&"L402"));

    let mut moved = held_alone;
    let offered =
        |variant: &VariantName, forwarded: u64| forwarded * if *variant == open { 3 } else { 2 };
    for attempt in &mut moved.attempts {
        for slice in &mut attempt.slices {
            slice.offered_frames = offered(&slice.variant, slice.forwarded_frames);
        }
        for trial in &mut attempt.trials {
            trial.tester.offered_frames = offered(&trial.variant, trial.tester.forwarded_frames);
        }
    }
    assert_eq!(codes_of(&moved), ["L403"]);

    // The undisturbed half of one variant's time is a tenth faster than all of it.
    let mut disturbed = finished(&two);
    let filtered = disturbed.resolved.variants[1].name.clone();
    for attempt in &mut disturbed.attempts {
        for slice in attempt
            .slices
            .iter_mut()
            .filter(|slice| slice.variant == filtered)
        {
            slice.undisturbed_s = slice.time_s / 2.0;
            slice.undisturbed_frames = slice.forwarded_frames * 55 / 100;
        }
        for trial in attempt
            .trials
            .iter_mut()
            .filter(|trial| trial.variant == filtered)
        {
            trial.undisturbed_s /= 2.0;
        }
    }
    assert_eq!(codes_of(&disturbed), ["L602"]);
    assert_eq!(codes_of(&finished(&two)), [""; 0]);
}

/// Names that act on terminals, in JSON, in URIs, in commands and in the writing direction.
const HOSTILE: &str = "a\n::error::b\"\\\r\u{1b}[31m,c:d%0A\u{202e}e f\u{85}\u{9b}";

fn examples() -> Vec<Finding> {
    let directory = Path::new("results/quickstart/ready");
    let values = directory.join("nft-conntrack.inet.pps");
    let records = directory.join("trials.jsonl");
    let hostile = Path::new("results").join(HOSTILE);
    vec![
        Finding::new(
            &VALUE_REPLACED,
            directory,
            "nft-conntrack.inet.pps holds 741000 in block 5, which measured 722687",
        )
        .published_at(&values, 5, "741000")
        .derived_at(&records, 27, "\"observation_pps\":722687"),
        Finding::new(
            &BROKEN_LINK,
            directory,
            "README.md shows derived/x.svg, which is not there",
        )
        .published_at(&directory.join("README.md"), 40, "derived/x.svg"),
        Finding::new(&HOSTILE_NAME, &hostile, format!("the name {HOSTILE} acts"))
            .published_at(&hostile.join("x"), 3, HOSTILE)
            .derived(&hostile, "y".repeat(1000)),
        Finding::new(&UNKNOWN_FILE, &hostile, "nothing shows it"),
    ]
}

/// Findings as a terminal of so many columns shows them.
fn on_terminal(findings: &[Finding], directories: usize, width: usize, all: bool) -> String {
    let findings: Vec<&Finding> = findings.iter().collect();
    let view = FindingsView {
        width,
        colour: false,
        all,
    };
    render::findings(&findings, directories, None, view)
}

fn annotations(findings: &[Finding]) -> String {
    render::findings_github(&findings.iter().collect::<Vec<_>>())
}

fn as_json(findings: &[Finding]) -> String {
    render::findings_json(findings, &[PathBuf::from("results")], None).unwrap()
}

#[test]
fn findings_in_every_form() {
    insta::assert_snapshot!("findings", on_terminal(&examples(), 2, 80, false));
    insta::assert_snapshot!("findings.all", on_terminal(&examples(), 2, 120, true));
    insta::assert_snapshot!("findings.json", as_json(&examples()));
    insta::assert_snapshot!("findings.github", annotations(&examples()));
    assert_eq!(
        on_terminal(&[], 1, 80, false),
        "nothing found in 1 results directory\n"
    );
    assert_eq!(as_json(&[]), "[]\n");
    assert_eq!(annotations(&[]), "");
    insta::assert_snapshot!("explanation", render::explanation(&VALUE_REPLACED, 60));
    let coloured = FindingsView {
        width: 80,
        colour: true,
        all: false,
    };
    let coloured = render::findings(&[&examples()[0]], 1, None, coloured);
    assert!(coloured.contains("\n\u{1b}[1mresults/quickstart/ready\u{1b}[0m\n"));
}

/// What one event leaves in many files: one finding with many places.
fn of_one_event(code_count: usize) -> Vec<Finding> {
    let directory = Path::new("archive/results/label");
    let of_run = |run: usize| {
        let sentence = format!("bench.on.{run}.sender_2 holds nothing");
        Finding::new(&HOSTILE_NAME, directory, sentence).published_at(
            &directory.join(format!("bench.on.{run}.sender_2")),
            1,
            "",
        )
    };
    (1..=code_count).map(of_run).collect()
}

#[test]
fn findings_of_a_folder_and_a_rule_are_one_with_many_places() {
    let mut findings = of_one_event(10);
    let elsewhere = Path::new("archive/results/other");
    findings.push(
        Finding::new(
            &VALUE_REPLACED,
            elsewhere,
            "x.pps holds 7, and the log gives 3",
        )
        .published_at(&elsewhere.join("x.pps"), 2, "7"),
    );
    for name in ["a", "b"] {
        let unknown = Finding::new(&UNKNOWN_FILE, elsewhere, format!("{name} is not known"));
        findings.push(unknown.published(&elsewhere.join(name), "not looked at"));
    }
    for width in [40, 80] {
        let name = format!("findings.grouped.{width}");
        insta::assert_snapshot!(name, on_terminal(&findings, 2, width, false));
    }
    // Everything is there when everything is asked for.
    let all = on_terminal(&findings, 2, 80, true);
    for finding in &findings {
        assert!(all.contains(&finding.sentence), "{all}");
    }
    // Programs have an item a finding.
    let items: Vec<Value> = serde_json::from_str(&as_json(&findings)).unwrap();
    assert_eq!(items.len(), findings.len());
    assert_eq!(annotations(&findings).lines().count(), findings.len());
}

#[test]
fn no_line_is_wider_than_the_terminal_but_for_paths() {
    let mut findings = of_one_event(12);
    findings.extend(of_one_event(1).into_iter().map(|mut finding| {
        finding.rule = &UNKNOWN_FILE;
        finding
    }));
    for width in [40, 80, 120] {
        for all in [false, true] {
            let text = on_terminal(&findings, 2, width, all);
            for line in text.lines().filter(|line| !line.contains("archive/")) {
                assert!(line.chars().count() <= width, "{line:?}");
            }
        }
    }
}

#[test]
fn what_a_baseline_has_is_known_wherever_its_line_moves() {
    let before = of_one_event(3);
    let roots = [PathBuf::from("archive")];
    let printed = render::findings_json(&before, &roots, None).unwrap();
    let baseline = Baseline::parse(&printed, |_| true).unwrap();
    let compare = |findings: &[Finding], root: &str| {
        let compared = baseline.compare(findings, &[PathBuf::from(root)]);
        (compared.is_known, compared.gone)
    };
    assert_eq!(compare(&before, "archive"), (vec![true; 3], 0));
    // The tree lies elsewhere, and what is meant stands further down.
    let directory = Path::new("/srv/checkout/results/label");
    let mut moved = before.clone();
    for finding in &mut moved {
        finding.directory = directory.to_owned();
        let evidence = &mut finding.evidence[0];
        evidence.path = directory.join(evidence.path.file_name().unwrap());
        evidence.line = Some(7);
    }
    assert_eq!(compare(&moved, "/srv/checkout"), (vec![true; 3], 0));
    // One is gone, one says something else, and one is there twice, which is once more than was known.
    moved.remove(0);
    moved[0].sentence += " at all";
    moved.push(moved[1].clone());
    assert_eq!(
        compare(&moved, "/srv/checkout"),
        (vec![false, true, false], 2)
    );
    // Of rules that are not looked at nothing is gone.
    let nothing = Baseline::parse(&printed, |code| code != HOSTILE_NAME.code).unwrap();
    let compared = nothing.compare(&[], &roots);
    assert_eq!(compared.gone, 0);
    assert_eq!(
        baseline
            .compare(&before[1..], &roots)
            .sentence(Path::new("known.json")),
        "2 known from known.json, 1 of it gone"
    );
}

#[test]
fn programs_see_which_findings_are_known() {
    let findings = of_one_event(2);
    let roots = [PathBuf::from("archive")];
    let printed = render::findings_json(&findings[..1], &roots, None).unwrap();
    let baseline = Baseline::parse(&printed, |_| true).unwrap();
    let compared = baseline.compare(&findings, &roots);
    let json = render::findings_json(&findings, &roots, Some(&compared)).unwrap();
    let items: Vec<Value> = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&items[0]["known"], &items[1]["known"]),
        (&true.into(), &false.into())
    );
    assert_eq!(items[0]["place"], "results/label/bench.on.1.sender_2");
    let sarif = render::findings_sarif(&findings, Some(&compared)).unwrap();
    let log: Value = serde_json::from_str(&sarif).unwrap();
    check_sarif("", &log);
    let results = &log["runs"][0]["results"];
    assert_eq!(results[0]["baselineState"], "unchanged");
    assert_eq!(results[1]["baselineState"], "new");
    // What was printed beside a baseline is one, too.
    assert!(Baseline::parse(&json, |_| true).is_ok());
}

#[test]
fn what_is_no_baseline_is_refused() {
    let error = |json: &str| Baseline::parse(json, |_| true).unwrap_err().to_string();
    let newer = as_json(&examples()).replace("\"schema\": 1", "\"schema\": 2");
    assert_eq!(
        error(&newer),
        "a later fwdlab has printed these findings (schema 2); use that version, or print them again with --json"
    );
    for (json, why) in [
        ("", "EOF while parsing a value at line 1 column 0"),
        ("{}", "expected a sequence at line 1 column 0"),
        (
            "[{\"schema\": 1}]",
            "missing field `code` at line 1 column 14",
        ),
        (
            "[{\"schema\": 1, \"code\": \"L101\", \"sentence\": \"x\", \"evidence\": []}]",
            "missing field `place` at line 1 column 63",
        ),
    ] {
        let said = error(json);
        assert!(
            said.contains("this is not what `fwdlab lint --json` prints: "),
            "{said}"
        );
        assert!(said.contains(why), "{said}");
    }
}

/// What the schema of SARIF allows of the objects that are written, each with what it requires; it has
/// no room for other properties.
const SARIF: &[(&str, &[&str], &[&str])] = &[
    ("", &["version", "runs"], &["$schema"]),
    ("/runs/", &["tool"], &["columnKind", "results"]),
    ("/runs//tool", &["driver"], &[]),
    (
        "/runs//tool/driver",
        &["name"],
        &["semanticVersion", "rules"],
    ),
    (
        "/runs//tool/driver/rules/",
        &["id"],
        &[
            "name",
            "shortDescription",
            "fullDescription",
            "help",
            "defaultConfiguration",
        ],
    ),
    ("/runs//tool/driver/rules//shortDescription", &["text"], &[]),
    ("/runs//tool/driver/rules//fullDescription", &["text"], &[]),
    ("/runs//tool/driver/rules//help", &["text"], &[]),
    (
        "/runs//tool/driver/rules//defaultConfiguration",
        &[],
        &["level"],
    ),
    (
        "/runs//results/",
        &["message"],
        &[
            "ruleId",
            "ruleIndex",
            "level",
            "locations",
            "relatedLocations",
            "baselineState",
        ],
    ),
    ("/runs//results//message", &["text"], &[]),
    ("/runs//results//locations/", &[], &["physicalLocation"]),
    (
        "/runs//results//relatedLocations/",
        &[],
        &["id", "message", "physicalLocation"],
    ),
    ("/runs//results//relatedLocations//message", &["text"], &[]),
    ("physicalLocation", &["artifactLocation"], &["region"]),
    ("artifactLocation", &[], &["uri"]),
    ("region", &[], &["startLine"]),
];

fn check_sarif(place: &str, value: &Value) {
    match value {
        Value::Object(fields) => {
            let last = place.rsplit('/').next().unwrap();
            let (_, required, optional) = SARIF
                .iter()
                .find(|(name, ..)| *name == place || !last.is_empty() && *name == last)
                .unwrap_or_else(|| panic!("{place}: no such object"));
            let keys: BTreeSet<&str> = fields.keys().map(String::as_str).collect();
            let allowed: BTreeSet<&str> = required.iter().chain(*optional).copied().collect();
            assert!(keys.is_subset(&allowed), "{place}: {keys:?}");
            assert!(
                required.iter().all(|key| keys.contains(key)),
                "{place}: {keys:?}"
            );
            for (key, value) in fields {
                check_sarif(&format!("{place}/{key}"), value);
            }
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| check_sarif(&format!("{place}/"), item)),
        Value::String(text) => match place.rsplit('/').next().unwrap() {
            "baselineState" => assert!(["new", "unchanged"].contains(&text.as_str())),
            "level" => assert!(["error", "warning", "note"].contains(&text.as_str())),
            "columnKind" => assert_eq!(text, "unicodeCodePoints"),
            "version" => assert_eq!(text, "2.1.0"),
            "uri" => assert!(
                text.bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"-._~/%:".contains(&b)),
                "{text}"
            ),
            "text" => assert!(!text.is_empty(), "{place}"),
            _ => {}
        },
        Value::Number(number) => {
            let least = if place.ends_with("startLine") { 1 } else { 0 };
            assert!(number.as_u64().unwrap() >= least, "{place}");
        }
        Value::Bool(_) | Value::Null => panic!("{place}: {value}"),
    }
}

fn sarif_of(findings: &[Finding]) -> Value {
    let text = render::findings_sarif(findings, None).unwrap();
    assert!(
        !text.contains(|c: char| c.is_control() && c != '\n' || c == '\u{202e}'),
        "{text}"
    );
    let log: Value = serde_json::from_str(&text).unwrap();
    check_sarif("", &log);
    log
}

#[test]
fn a_sarif_log_is_one_of_its_schema() {
    let log = sarif_of(&examples());
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), fwdlab_report::rules().len());
    let results = run["results"].as_array().unwrap();
    for (result, finding) in results.iter().zip(examples()) {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert_eq!(result["ruleId"], finding.rule.code);
        assert_eq!(result["locations"].as_array().unwrap().len(), 1);
    }
    let place = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!(
        place["artifactLocation"]["uri"],
        "results/quickstart/ready/nft-conntrack.inet.pps"
    );
    assert_eq!(place["region"]["startLine"], 5);
    assert_eq!(results[0]["relatedLocations"][0]["id"], 1);
    insta::assert_snapshot!("result.sarif", format!("{:#}", results[0]));
    assert!(
        sarif_of(&[])["runs"][0]["results"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_name_and_no_excerpt_acts_in_any_form(path: String, says in any::<String>(), line: Option<u16>) {
        let path = PathBuf::from(path.replace('\0', ""));
        let finding = Finding::new(&VALUE_REPLACED, &path, says.as_str())
            .published_at(&path, line.map(|line| usize::from(line) + 1), says.as_str());
        let findings = [finding];
        let acts = |text: &str| text.contains(|c: char| c.is_control() && c != '\n' || ('\u{202a}'..='\u{202e}').contains(&c));
        for width in [40, 80] {
            prop_assert!(!acts(&on_terminal(&findings, 1, width, false)));
        }
        let github = annotations(&findings);
        prop_assert!(!acts(&github) && github.lines().count() == 1 && github.starts_with("::error file="));
        let json = as_json(&findings);
        prop_assert!(!acts(&json));
        let items: Value = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(items[0]["evidence"][0]["path"].as_str(), path.to_str());
        sarif_of(&findings);
    }
}
