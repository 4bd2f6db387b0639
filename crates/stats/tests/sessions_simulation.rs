//! A small simulation of sessions that differ by more than they scatter: where nothing but the session changed, the
//! verdicts on sessions say so as often as they claim, and a test of the observations does not.
//!
//! Everything is seeded: the counts are the same on every run.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod noise;

use fwdlab_stats::{
    ComparedSessions, RerunNoise, Verdict, VerdictSettings, rerun_verdicts, session_verdicts,
    within_sessions,
};
use noise::Noise;

const REPLICATES: usize = 2000;

/// 5 % and three standard errors of a share of 5 % in so many replicates, either way.
const NOMINAL: std::ops::RangeInclusive<f64> = 0.0353..=0.0647;

/// What a session is off by, in units of 2 %.
type Between = fn(&mut Noise) -> f64;

/// Eight observations of a session, with noise of 0.5 % of their own.
fn session(noise: &mut Noise, between: Between, effect: f64) -> Vec<f64> {
    let level = effect + 0.02 * between(noise);
    (0..8)
        .map(|_| (level + 0.005 * noise.normal()).exp())
        .collect()
}

fn sessions(noise: &mut Noise, between: Between, number: usize, effect: f64) -> Vec<Vec<f64>> {
    (0..number)
        .map(|_| session(noise, between, effect))
        .collect()
}

fn compared(noise: &mut Noise, between: Between, number: usize, effect: f64) -> ComparedSessions {
    ComparedSessions {
        name: "simulated".to_owned(),
        baseline: sessions(noise, between, number, 0.0),
        variant: sessions(noise, between, number, effect),
    }
}

fn share(seed: u64, holds: impl Fn(&mut Noise) -> bool) -> f64 {
    let mut noise = Noise::new(seed);
    let count = (0..REPLICATES).filter(|_| holds(&mut noise)).count();
    count as f64 / REPLICATES as f64
}

/// Student's t asks for normal noise between sessions.
fn by_reruns(noise: &mut Noise, effect: f64) -> Verdict {
    let reruns = sessions(noise, Noise::normal, 5, 0.3);
    let of_reruns = RerunNoise::new("reruns", &reruns).unwrap();
    let compared = compared(noise, Noise::normal, 1, effect);
    let family = rerun_verdicts(&[(compared, of_reruns)], &VerdictSettings::default()).unwrap();
    family.comparisons[0].verdict
}

/// Ranks hold for any.
fn by_ranks(noise: &mut Noise, sessions: usize, effect: f64) -> Verdict {
    let compared = compared(noise, Noise::t3, sessions, effect);
    let family = session_verdicts(&[compared], &VerdictSettings::default()).unwrap();
    family.comparisons[0].verdict
}

#[test]
fn observations_of_one_session_a_side_find_differences_where_there_are_none() {
    let found = share(1, |noise| {
        let compared = compared(noise, Noise::normal, 1, 0.0);
        let within = within_sessions(&compared, 0.95).unwrap();
        !within.interval.unwrap().contains(0.0)
    });
    assert!(found > 0.8, "{found}");
}

#[test]
fn reruns_hold_their_level() {
    let found = share(2, |noise| by_reruns(noise, 0.0).shows_difference());
    assert!(NOMINAL.contains(&found), "{found}");
    // And see what is there: 20 % are 7 standard errors.
    let found = share(3, |noise| by_reruns(noise, 0.2) == Verdict::Different);
    assert!(found > 0.85, "{found}");
}

#[test]
fn ranked_sessions_hold_their_level() {
    // 4 against 4 attain 2.86 %, 5 against 5 3.17 %.
    for (sessions, level) in [(4, 2.0 / 70.0), (5, 8.0 / 252.0)] {
        let found = share(4, |noise| by_ranks(noise, sessions, 0.0).shows_difference());
        let error = (level * (1.0 - level) / REPLICATES as f64).sqrt();
        assert!((found - level).abs() < 3.0 * error, "{sessions}: {found}");
    }
    let found = share(5, |noise| by_ranks(noise, 4, 0.2) == Verdict::Different);
    assert!(found > 0.9, "{found}");
}
