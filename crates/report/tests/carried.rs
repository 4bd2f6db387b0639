//! A load that every variant carries says nothing of the DUT, whatever its rates are; CPU time a packet does.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod synthetic;

use fwdlab_archive::Loaded;
use fwdlab_model::{CpuTimes, Load};
use fwdlab_report::{Gate, GateResult, Report, render};
use synthetic::Synthetic;

/// Variants that forward exactly what is offered, 1 Mpps.
fn paced() -> Loaded {
    let mut loaded = Synthetic {
        variants: [("plain", 0.0), ("filtered", 0.0), ("slow", 0.0)]
            .map(|(label, effect)| (label.to_owned(), effect))
            .to_vec(),
        ..Synthetic::default()
    }
    .loaded();
    loaded.resolved.traffics[0].load = Load::Paced { pps: 1_000_000 };
    for attempt in &mut loaded.attempts {
        for slice in &mut attempt.slices {
            slice.offered_frames = 100_000;
            slice.forwarded_frames = 100_000;
            slice.undisturbed_frames = 100_000;
        }
        for trial in &mut attempt.trials {
            trial.tester.offered_frames = 1_000_000;
            trial.tester.forwarded_frames = 1_000_000;
            trial.observation_pps = 1e6;
            trial.pooled_pps = 1e6;
        }
    }
    loaded
}

fn words(report: &Report) -> Vec<&str> {
    let rows = report.comparisons[0].rows.iter().skip(1);
    rows.map(|row| row.verdict.as_ref().unwrap().words.as_str())
        .collect()
}

fn gate(condition: &str, report: &Report) -> GateResult {
    condition.parse::<Gate>().unwrap().of_report(report)
}

#[test]
fn a_load_that_came_through_whole_is_no_equivalence() {
    let report = Report::build(&paced()).unwrap();
    assert_eq!(words(&report), ["not limited by the DUT"; 2]);
    let verdict = report.comparisons[0].rows[1].verdict.as_ref().unwrap();
    assert!(!verdict.shows_difference && !verdict.leaves_open);
    assert!(
        verdict.sentence.contains("the rate is that of the load"),
        "{}",
        verdict.sentence
    );
    // The verdict says it, so no warning says it again.
    let codes: Vec<&str> = report.warnings.iter().map(|of| of.code.as_str()).collect();
    assert!(
        !codes.contains(&"W107") && !codes.contains(&"W218"),
        "{codes:?}"
    );
    for condition in ["worse:1%", "maybe-worse:1%", "different:1%"] {
        let result = gate(condition, &report);
        assert!(result.failed, "{condition}");
        let said = result.failures[0].to_string();
        assert!(said.contains("offer more"), "{said}");
    }
    let text = render::terminal(&report, None, 80, false);
    assert!(
        text.contains("not limited by the DUT: every variant"),
        "{text}"
    );
    let readme = render::readme(&report, "derived/");
    assert!(readme.contains("| not limited by the DUT |"), "{readme}");
}

#[test]
fn one_trial_that_lost_frames_makes_it_a_measurement() {
    let mut loaded = paced();
    let trial = &mut loaded.attempts[3].trials[2];
    trial.dut.drops = [("full ring".to_owned(), 11)].into();
    assert_eq!(words(&Report::build(&loaded).unwrap()), ["equivalent"; 2]);
    // A few frames of a million are no limit.
    let trial = &mut loaded.attempts[3].trials[2];
    trial.dut.drops = [("full ring".to_owned(), 10)].into();
    assert_eq!(
        words(&Report::build(&loaded).unwrap()),
        ["not limited by the DUT"; 2]
    );
    // What the tester did not send was not offered.
    let trial = &mut loaded.attempts[3].trials[2];
    trial.dut.drops = [].into();
    trial.tester.not_transmitted_frames = 1;
    assert_eq!(words(&Report::build(&loaded).unwrap()), ["equivalent"; 2]);
}

#[test]
fn a_self_clocked_load_is_what_the_dut_lets_it_be() {
    let mut loaded = paced();
    loaded.resolved.traffics[0].load = Load::SelfClocked;
    assert_eq!(words(&Report::build(&loaded).unwrap()), ["equivalent"; 2]);
}

/// The same where the variants take 20, 20 and 24 % of two CPUs, with a little noise.
fn watched() -> Loaded {
    let mut loaded = paced();
    for attempt in &mut loaded.attempts {
        let noise = 1.0 + f64::from(attempt.record.block * 7 % 5) / 1000.0;
        for (number, trial) in attempt.trials.iter_mut().enumerate() {
            let share = if number == 2 { 0.24 } else { 0.2 * noise };
            trial.dut.cpus = [0, 1]
                .map(|cpu| {
                    let times = CpuTimes {
                        watched_s: 0.5,
                        busy_s: 0.5 * share,
                        ..CpuTimes::default()
                    };
                    (cpu, times)
                })
                .into();
        }
    }
    loaded
}

#[test]
fn cpu_time_tells_apart_what_the_rate_does_not() {
    let mut loaded = watched();
    let report = Report::build(&loaded).unwrap();
    assert_eq!(words(&report), ["not limited by the DUT"; 2]);
    let rows = &report.comparisons[0].outcomes.cpu_time;
    // Two CPUs at a fifth, for a million packets a second: 400 ns each.
    let cpu_ns = rows[0].amount.number();
    assert!((cpu_ns - 400.0).abs() < 2.0, "{cpu_ns}");
    let verdict = |index: usize| rows[index].verdict.as_ref().unwrap().words.as_str();
    assert_eq!((verdict(1), verdict(2)), ("equivalent", "different"));
    let estimate = rows[2].effect.as_ref().unwrap().estimate_percent;
    assert!((estimate - 20.0).abs() < 0.5, "{estimate}");

    let result = gate("cpu-worse:5%", &report);
    assert_eq!(result.failures.len(), 1);
    assert_eq!(result.failures[0].subject.as_deref(), Some("slow"));
    // A threshold of its own.
    loaded.resolved.design.cpu_threshold_percent = 30.0;
    let lenient = Report::build(&loaded).unwrap();
    assert!(!gate("cpu-worse", &lenient).failed);
    assert_eq!(words(&lenient), ["not limited by the DUT"; 2]);

    let text = render::terminal(&report, None, 100, false);
    assert!(
        text.contains("CPU time: 480.0 ns/packet, different (slower): +"),
        "{text}"
    );
    let readme = render::readme(&report, "derived/");
    assert!(
        readme.contains("- slow: CPU time: 480.0 ns/packet, different (slower)"),
        "{readme}"
    );
    let (_, files) = render::publish(&watched()).unwrap();
    assert!(files["report.html"].contains("CPU time: 480.0 ns/packet"));
}

#[test]
fn cpu_time_that_was_not_measured_passes_no_condition() {
    let report = Report::build(&paced()).unwrap();
    assert!(report.comparisons[0].outcomes.cpu_time.is_empty());
    let result = gate("cpu-worse", &report);
    assert!(result.failed);
    assert!(result.failures[0].sentence.contains("not measured"));
}
