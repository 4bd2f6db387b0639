//! Other programs on the load's CPU: named, left out, and without effect on what a run finds.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod shared;

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use fwdlab_archive::{Loaded, Results};
use fwdlab_model::AccountSource;
use shared::{directories, storm};
use testkit::burner::{Burn, Burner, burn_if_asked};
use testkit::{cases, text};

/// Two variants that forward alike: one sysctl, one value.
const EXPERIMENT: &str = "alike";

/// Runs of a soak; the ordinary tests take one.
const RUNS: usize = 10;
const SAMPLE: usize = 1;

/// What is started on the load's CPU.
const BURNER: &str = "other-program";

fn is_burner() -> bool {
    burn_if_asked(
        |cpu| fwdlab_sys::pin_this_thread(cpu).unwrap(),
        || fwdlab_sys::thread_cpu_time(fwdlab_sys::this_thread()).unwrap(),
    )
}

fn burner(folder: &Path, test: &str, burn: Burn) -> Burner {
    let cpu = fwdlab_sys::online_cpus().unwrap()[0];
    let mut burner = Burner::start(&folder.join(BURNER), test, cpu, burn);
    burner.go();
    burner
}

/// Runs the experiment to its end.
fn run(results: &Path) -> Loaded {
    let output = shared::run_command(EXPERIMENT, results).output().unwrap();
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{}",
        text(&output)
    );
    let directory = directories(results, EXPERIMENT).pop().unwrap();
    Results::load(&directory).unwrap()
}

#[test]
fn a_program_on_the_loads_cpu_is_named_and_left_out() {
    if is_burner() {
        return;
    }
    testkit::require_root!();
    testkit::require_tool!("ip");
    let test = "a_program_on_the_loads_cpu_is_named_and_left_out";
    let scratch = tempfile::tempdir().unwrap();
    let burn = Burn::Part(0.3, Duration::from_millis(10), 1_000_000);
    let _burner = burner(scratch.path(), test, burn);
    let loaded = run(&scratch.path().join("results"));
    let (mut burnt_s, mut measured_s) = (0.0, 0.0);
    for attempt in &loaded.attempts {
        assert_eq!(attempt.record.cpu_account, Some(AccountSource::Scheduler));
        for trial in &attempt.trials {
            let own = trial.competitors.iter().filter(|of| of.name == BURNER);
            burnt_s += own.map(|of| of.time_s).sum::<f64>();
            measured_s += trial.measured_s;
        }
        for slice in &attempt.slices {
            let contention = slice.contention.unwrap();
            // A sample may be late, and what was taken between two of them is left out whole.
            assert!(
                contention.alone_s < slice.time_s - contention.competing_s * 0.9,
                "{slice:?}"
            );
            assert!(slice.undisturbed_s <= contention.alone_s, "{slice:?}");
        }
    }
    let ratio = burnt_s / measured_s;
    // It asks for 30 %, and on a busy machine gets less.
    assert!((0.1..0.33).contains(&ratio), "{ratio}");
    let directory = directories(&scratch.path().join("results"), EXPERIMENT)
        .pop()
        .unwrap();
    let shown = testkit::succeed(shared::fwdlab(&["show", "--warnings"]).arg(directory));
    let shown = text(&shown);
    assert!(shown.contains("W225") && shown.contains(BURNER), "{shown}");
}

/// What others do by turns of their own is no effect of a variant.
#[test]
fn spells_of_another_program_are_no_effect() {
    if is_burner() {
        return;
    }
    testkit::require_root!();
    testkit::require_tool!("ip");
    let test = "spells_of_another_program_are_no_effect";
    let outside = Cell::new(0);
    let numbers = cases(RUNS, SAMPLE);
    storm("competition", &numbers, |number| {
        let scratch = tempfile::tempdir().unwrap();
        let burn = Burn::Spells(Duration::from_millis(200), number as u64);
        let _burner = burner(scratch.path(), test, burn);
        let results = scratch.path().join("results");
        let loaded = run(&results);
        let directory = directories(&results, EXPERIMENT).pop().unwrap();
        let report = testkit::succeed(shared::fwdlab(&["show", "--json"]).arg(directory));
        let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
        let effect = &report["comparisons"][0]["variants"][1];
        let bounds = ["low_percent", "high_percent"].map(|key| effect[key].as_f64());
        let [Some(lower), Some(upper)] = bounds else {
            panic!(
                "no interval of {} blocks: {effect}",
                loaded.accepted().len()
            );
        };
        let holds_zero = lower <= 0.0 && upper >= 0.0;
        outside.set(outside.get() + usize::from(!holds_zero));
        format!("zero is {}", if holds_zero { "inside" } else { "outside" })
    });
    // At 99 % one in a hundred is outside by chance.
    assert!(
        outside.get() * 10 <= numbers.len(),
        "{} outside",
        outside.get()
    );
}
