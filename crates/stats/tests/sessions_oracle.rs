//! Verdicts on sessions against the table that `oracle/sessions.py` wrote.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod oracle;

use fwdlab_stats::{
    ComparedSessions, ComparisonVerdict, FamilyVerdicts, RerunNoise, VerdictSettings,
    rerun_verdicts, session_verdicts, within_sessions,
};
use oracle::{assert_relative, cases, number, numbers};
use serde_json::Value;

const TABLES: &str = include_str!("../oracle/sessions.json");

fn sessions(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(numbers).collect()
}

fn compared(case: &Value) -> ComparedSessions {
    ComparedSessions {
        name: "case".to_owned(),
        baseline: sessions(&case["baseline"]),
        variant: sessions(&case["variant"]),
    }
}

fn only(family: FamilyVerdicts) -> ComparisonVerdict {
    let [verdict]: [ComparisonVerdict; 1] = family.comparisons.try_into().unwrap();
    verdict
}

#[track_caller]
fn assert_ends(ours: (f64, f64), theirs: [f64; 2]) {
    let width = theirs[1] - theirs[0];
    for (ours, theirs) in [(ours.0, theirs[0]), (ours.1, theirs[1])] {
        assert!((ours - theirs).abs() <= 1e-9 * width, "{ours} {theirs}");
    }
}

fn ends(value: &Value) -> [f64; 2] {
    numbers(value).try_into().unwrap()
}

#[test]
fn the_sessions_medians_are_ranked() {
    for case in cases(TABLES, "ranks") {
        let settings = VerdictSettings::default();
        let verdict = only(session_verdicts(&[compared(&case)], &settings).unwrap());
        assert_relative(verdict.p.direction, number(&case["two_sided"]), 1e-12);
        assert!((verdict.estimate - number(&case["estimate"])).abs() < 1e-12);
        let interval = verdict.direction_interval.unwrap();
        assert_ends((interval.lower, interval.upper), ends(&case["interval"]));
        assert_relative(
            interval.attained_confidence,
            number(&case["attained"]),
            1e-12,
        );
    }
}

#[test]
fn reruns_say_how_far_a_difference_may_be_that_of_the_sessions() {
    let mut wider_within = 0;
    for case in cases(TABLES, "reruns") {
        let noise = RerunNoise::new("reruns", &sessions(&case["reruns"])).unwrap();
        assert_relative(
            noise.standard_deviation,
            number(&case["standard_deviation"]),
            1e-9,
        );
        let compared = compared(&case);
        let family = rerun_verdicts(&[(compared.clone(), noise)], &VerdictSettings::default());
        let verdict = only(family.unwrap());
        assert!((verdict.estimate - number(&case["estimate"])).abs() < 1e-12);
        let interval = verdict.direction_interval.unwrap();
        let between = ends(&case["between"]);
        let theirs = ends(&case["within"]);
        let within = within_sessions(&compared, 0.95).unwrap();
        assert!((within.estimate - number(&case["within_estimate"])).abs() < 1e-12);
        let ours = within.interval.unwrap();
        assert_ends((ours.lower, ours.upper), theirs);
        let hull = [between[0].min(theirs[0]), between[1].max(theirs[1])];
        assert_ends((interval.lower, interval.upper), hull);
        let p = number(&case["between_p"]).max(number(&case["within_p"]));
        assert_relative(verdict.p.direction, p, 1e-9);
        wider_within += usize::from(hull.map(f64::to_bits) == theirs.map(f64::to_bits));
    }
    // One case is of sessions that scatter more than they differ.
    assert_eq!(wider_within, 1);
}
