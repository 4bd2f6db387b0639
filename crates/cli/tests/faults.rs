//! Whichever effect of a run fails, it says so, leaves the host as it was, and the same command goes
//! on from there.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod shared;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use shared::{Host, Preload, assert_complete, fwdlab, leftovers, records, storm};
use testkit::{cases, succeed, text};

/// Two variants, three blocks of one round: as little as there can be.
const EXPERIMENT: &str = "smallest";
const BLOCKS: usize = 3;

/// How many of the effects fail in the ordinary tests; a soak lets each of them fail.
const SAMPLE: usize = 10;

/// How often a case is begun while other programs have the CPUs.
const BEGUN_MAX: usize = 8;

/// What a run with a failing effect came to.
struct Outcome {
    output: Output,
    /// Effects that it had.
    effects: usize,
    /// The one that failed.
    failed: String,
}

fn run_command(results: &Path) -> Command {
    shared::run_command(EXPERIMENT, results)
}

/// Runs the experiment with its n-th effect failing; none where it is 0.
fn run_with_a_fault(preload: &Preload, results: &Path, nth: usize) -> Outcome {
    let log = preload.beside("log");
    let _ = fs::remove_file(&log);
    let mut command = run_command(results);
    preload.put_before(&mut command);
    let output = command
        .env("FAIL_NTH", nth.to_string())
        .env("FAIL_LOG", &log)
        .output()
        .unwrap();
    let log = fs::read_to_string(&log)
        .unwrap_or_else(|error| panic!("effect {nth}: {error}\n{}", text(&output)));
    let (effects, failed) = log.trim().split_once(' ').unwrap();
    Outcome {
        effects: effects.parse().unwrap(),
        failed: failed.to_owned(),
        output,
    }
}

/// The only directory of the experiment's, if there is one.
fn directory(results: &Path) -> Option<PathBuf> {
    let mut directories = shared::directories(results, EXPERIMENT);
    assert!(directories.len() <= 1, "{directories:?}");
    directories.pop()
}

#[test]
fn whichever_effect_fails_the_run_goes_on_afterwards() {
    testkit::require_root!();
    testkit::require_tool!("nft", "ip", "cc");
    let preload = Preload::build("fail_nth");
    let mut runs = (0..BEGUN_MAX).map(|_| {
        let scratch = tempfile::tempdir().unwrap();
        run_with_a_fault(&preload, scratch.path(), 0)
    });
    let sound = runs.find(|run| !gave_up(&run.output)).unwrap();
    assert!(sound.output.status.success(), "{}", text(&sound.output));
    assert!(sound.effects > 100, "{} effects were seen", sound.effects);

    let host = Host::now();
    storm("effect", &cases(sound.effects, SAMPLE), |nth| {
        fail_and_go_on(&preload, nth, &host)
    });
}

/// Which effect failed, and what came of it.
///
/// A run that gives a block up because other programs had the CPUs says nothing about the effect: the case begins anew.
fn fail_and_go_on(preload: &Preload, nth: usize, host: &Host) -> String {
    let mut attempts = (0..BEGUN_MAX).filter_map(|_| fail_once(preload, nth, host));
    attempts.next().unwrap_or_else(|| {
        panic!("effect {nth}: other programs had the CPUs in each of {BEGUN_MAX} runs")
    })
}

fn gave_up(output: &Output) -> bool {
    String::from_utf8_lossy(&output.stderr).contains("blocks given up: ")
}

/// The same of one run; none where it gave a block up.
fn fail_once(preload: &Preload, nth: usize, host: &Host) -> Option<String> {
    let scratch = tempfile::tempdir().unwrap();
    let Outcome { output, failed, .. } = run_with_a_fault(preload, scratch.path(), nth);
    let what = format!("effect {nth} ({failed})");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    let code = code.unwrap_or_else(|| panic!("{what}: {}", text(&output)));
    assert!(!stderr.contains("panicked"), "{what}: {}", text(&output));
    assert!(
        code == 0 || gave_up(&output) || stderr.contains("error: "),
        "{what}: {}",
        text(&output)
    );
    host.assert_unchanged(&what);
    if gave_up(&output) {
        return None;
    }

    let before = directory(scratch.path());
    let records_before = before.as_deref().map(records).unwrap_or_default();
    let plan_before = before
        .as_ref()
        .map(|path| fs::read(path.join("plan.json")).unwrap());
    let is_finished = before.is_some_and(|path| path.join("finished.json").is_file());
    let then = if code == 0 {
        "all was measured"
    } else if is_finished {
        // All is measured; what failed is the report, and the message says how to make it again.
        assert!(
            stderr.contains("fwdlab report "),
            "{what}: {}",
            text(&output)
        );
        succeed(fwdlab(&["report"]).arg(directory(scratch.path()).unwrap()));
        "reported by another command"
    } else {
        let continued = run_command(scratch.path()).output().unwrap();
        if gave_up(&continued) {
            return None;
        }
        assert!(continued.status.success(), "{what}: {}", text(&continued));
        "continued by the same command"
    };
    // A namespace whose removal failed is removed by the next run.
    if !leftovers().is_empty() {
        let elsewhere = tempfile::tempdir().unwrap();
        succeed(&mut run_command(elsewhere.path()));
    }
    assert_eq!(leftovers(), Vec::<String>::new(), "{what}");
    let directory = directory(scratch.path()).unwrap();
    assert!(records(&directory).starts_with(&records_before), "{what}");
    if let Some(plan) = plan_before {
        let plan_after = fs::read(directory.join("plan.json")).unwrap();
        assert_eq!(plan, plan_after, "{what}");
    }
    assert_complete(&directory, BLOCKS, &what);
    Some(format!("{failed} failed, code {code}, {then}"))
}
