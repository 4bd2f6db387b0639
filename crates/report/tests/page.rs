//! `report.html` in a browser: the tests themselves are in `page/tests`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod profiled;
mod synthetic;

use std::fs;
use std::path::Path;
use std::process::Command;

use fwdlab_archive::Loaded;
use fwdlab_model::{Factor, Level, Stratum};
use fwdlab_report::{Report, render};
use profiled::{profiled, with_rules};
use serde_json::Value;
use synthetic::{Synthetic, with_facts};

/// What would set a property of the page's window, was it taken for anything but text.
const HOSTILE: &str =
    "</script><script>hostile=1</script><img src=x onerror=hostile=2> \" ' ` & \u{202e}RTL ";

#[test]
fn pages_hold_in_a_browser() {
    testkit::require_tool!("node", "chromium");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
    if !page.join("node_modules/@playwright/test/cli.js").is_file() {
        testkit::skip!("no Playwright in crates/report/page; `cargo xtask setup` installs it");
    }
    let folder = tempfile::tempdir().unwrap();
    write_pages(folder.path());
    let tests = Command::new("node")
        .args(["node_modules/@playwright/test/cli.js", "test"])
        .current_dir(page)
        .env("FWDLAB_PAGES", folder.path())
        .env("FWDLAB_CHROMIUM", testkit::tool("chromium").unwrap())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&tests.stdout);
    assert!(
        tests.status.success(),
        "{printed}\n{}",
        String::from_utf8_lossy(&tests.stderr)
    );
}

fn write_pages(folder: &Path) {
    let write = |name: &str, loaded: &Loaded| {
        let report = Report::build(loaded).unwrap();
        write_page(&folder.join(name), loaded, &report);
    };
    write("default", &Synthetic::default().loaded());
    write("many", &with_facts(many().loaded()));
    let profiles = profiled(Synthetic::default().loaded(), with_rules);
    write("profiled", &profiles);
    write("factorial", &factorial());
    let none = Synthetic {
        measured_blocks: 0,
        ..Synthetic::default()
    };
    write("none", &none.loaded());
    write("large", &large().loaded());
    let (loaded, report) = hostile();
    write_page(&folder.join("hostile"), &loaded, &report);
}

fn write_page(folder: &Path, loaded: &Loaded, report: &Report) {
    fs::create_dir_all(folder).unwrap();
    let files = render::derived_files(report, loaded).unwrap();
    for name in ["report.html", "report.json"] {
        fs::write(folder.join(name), &files[name]).unwrap();
    }
}

/// Two strata and sessions, and invalid trials.
fn many() -> Synthetic {
    Synthetic {
        variants: (0..12)
            .map(|index| {
                let label = format!("ruleset with {} rules", index * 10);
                (label, -2.5 * f64::from(index))
            })
            .collect(),
        strata: vec![Stratum::INET, Stratum::INET6],
        sessions: 2,
        invalid: vec![(2, 1), (5, 3), (5, 4)],
        ..Synthetic::default()
    }
}

fn large() -> Synthetic {
    Synthetic {
        variants: (0..200)
            .map(|index| (format!("variant {index}"), -0.2 * f64::from(index)))
            .collect(),
        control: false,
        planned_blocks: 100,
        measured_blocks: 100,
        // More would make the statistics slow in a build for tests, and the page no other.
        rounds: 2,
        ..Synthetic::default()
    }
}

/// Two factors of two levels.
fn factorial() -> Loaded {
    let mut loaded = Synthetic::default().loaded();
    let factor = |name: &str| Factor {
        name: name.to_owned(),
        description: None,
        levels: vec![Level::Boolean(false), Level::Boolean(true)],
        default: Level::Boolean(false),
    };
    loaded.resolved.factors = vec![factor("rules"), factor("offload")];
    let levels = [(false, false), (true, false), (false, true), (true, true)];
    for (variant, (rules, offload)) in loaded.resolved.variants.iter_mut().zip(levels) {
        variant.levels = [("rules", rules), ("offload", offload)]
            .map(|(name, level)| (name.to_owned(), Level::Boolean(level)))
            .into();
    }
    loaded
}

/// A run of which every text that may be any text is hostile, in the report and in the profiles.
fn hostile() -> (Loaded, Report) {
    let run = Synthetic {
        invalid: vec![(2, 1)],
        ..Synthetic::default()
    };
    let loaded = profiled(with_facts(run.loaded()), |variant, block| {
        with_rules(variant, block).replace("nft_do_chain", &HOSTILE.replace(';', "_"))
    });
    let report = serde_json::to_value(Report::build(&loaded).unwrap()).unwrap();
    let mut pointers = Vec::new();
    texts(&report, String::new(), &mut pointers);
    let mut hostile = report;
    let mut changed = 0;
    // What follows is like the first of its kind, and each change is tried on the whole report.
    pointers.retain(|pointer| {
        let of_trial = pointer
            .strip_prefix("/trials/")
            .and_then(|rest| rest.split('/').next());
        of_trial.is_none_or(|index| index.parse::<usize>().unwrap() < 2)
    });
    for (number, pointer) in pointers.into_iter().enumerate() {
        // Files' names and numbers of records are the report's own.
        if ["/plot", "/flame_graph", "/start"]
            .iter()
            .any(|own| pointer.ends_with(own))
        {
            continue;
        }
        let place = hostile.pointer_mut(&pointer).unwrap();
        let long = if number % 16 == 3 {
            "long".repeat(2500)
        } else {
            String::new()
        };
        let before = std::mem::replace(place, Value::String(format!("{HOSTILE}{long}{pointer}")));
        if serde_json::from_value::<Report>(hostile.clone()).is_ok() {
            changed += 1;
        } else {
            // A word of ours, such as a verdict or a stratum.
            *hostile.pointer_mut(&pointer).unwrap() = before;
        }
    }
    assert!(changed > 40, "{changed}");
    (loaded, serde_json::from_value(hostile).unwrap())
}

/// Where texts stand.
fn texts(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(at),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                texts(item, format!("{at}/{index}"), found);
            }
        }
        Value::Object(entries) => {
            for (key, entry) in entries {
                let key = key.replace('~', "~0").replace('/', "~1");
                texts(entry, format!("{at}/{key}"), found);
            }
        }
        _ => {}
    }
}
