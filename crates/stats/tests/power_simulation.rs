//! How near the reckoned power is to how often each method really shows an effect.
//!
//! Normal noise, as the reckoning has it; everything is seeded, so that the counts are the same on every
//! run. The tolerances are those that `power.rs` states, and three standard errors of a share.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod noise;

use fwdlab_stats::{
    ComparisonEffects, Draws, MannWhitney, Method, MoreData, PermutationTest, PowerAnalysis,
    ShiftTest as _, SignedRank, Stratum, StudentSample, TwoSampleT, VerdictSettings, dunnett,
    family_verdicts, sign_flip_p,
};
use noise::Noise;

/// Of a share, with so many replicates.
const REPLICATES: usize = 3000;
const THREE_ERRORS: f64 = 0.0274;

fn sample(noise: &mut Noise, size: usize, effect: f64) -> Vec<f64> {
    (0..size).map(|_| effect + noise.normal()).collect()
}

/// The two-sided p of the method for one sample, or a sample and its reference.
fn p(method: Method, noise: &mut Noise, size: usize, effect: f64) -> f64 {
    let a = sample(noise, size, effect);
    let b = sample(noise, size, 0.0);
    match method {
        Method::SignedRank => SignedRank::new(&a).unwrap().p_two_sided(0.0),
        Method::StudentT => StudentSample::new(&a).unwrap().p_two_sided(0.0).unwrap(),
        Method::SignFlip => sign_flip_p(&a, 0.0).unwrap().unwrap(),
        Method::WelchT => TwoSampleT::welch(&a, &b).unwrap().p_two_sided(0.0),
        Method::PooledT => TwoSampleT::pooled(&a, &b).unwrap().p_two_sided(0.0),
        Method::MannWhitney => MannWhitney::new(&a, &b).unwrap().p_two_sided(0.0),
        Method::Permutation => {
            let stratum = Stratum {
                sample: &a,
                reference: &b,
            };
            let draws = Draws { seed: 1, count: 99 };
            let test = PermutationTest::new(&[stratum], draws).unwrap();
            test.p_two_sided(0.0)
        }
        _ => unreachable!("it judges families"),
    }
}

#[track_caller]
fn assert_near(found: usize, reckoned: f64, tolerance: f64, what: &str) {
    let share = found as f64 / REPLICATES as f64;
    let off = (share - reckoned).abs();
    assert!(
        off <= tolerance + THREE_ERRORS,
        "{what}: {share} instead of {reckoned}"
    );
}

/// At the smallest sizes that show anything, too, alone and as one of three.
#[track_caller]
fn check(method: Method, sizes: &[usize], tolerance: f64) {
    let mut noise = Noise::new(sizes[0] as u64);
    for &size in sizes {
        for compared in [1, 3] {
            let analysis = PowerAnalysis::new(method, 1.0, compared, 0.95).unwrap();
            let Some(smallest) = analysis.smallest_effect(size) else {
                assert!(
                    (0..20).all(|_| { p(method, &mut noise, size, 1e3) * compared as f64 > 0.05 })
                );
                continue;
            };
            for effect in [0.6 * smallest, smallest] {
                let shown = (0..REPLICATES)
                    .filter(|_| p(method, &mut noise, size, effect) * compared as f64 <= 0.05)
                    .count();
                let what = format!("{method:?}, {size}, one of {compared}, {effect}");
                assert_near(shown, analysis.power(effect, size), tolerance, &what);
            }
        }
    }
}

#[test]
fn t_tests_are_exact() {
    check(Method::StudentT, &[3, 8, 20], 0.0);
    check(Method::PooledT, &[2, 5, 20], 0.0);
    check(Method::WelchT, &[3, 5, 20], 0.0);
}

#[test]
fn signed_ranks() {
    check(Method::SignedRank, &[5, 6, 7, 8, 9, 12, 24], 0.03);
}

/// The tails that this field has: what is reckoned with their standard deviation errs to the safe side.
#[test]
fn heavy_tails_are_no_worse() {
    let mut noise = Noise::new(5);
    for size in [8, 16] {
        let deviation = 3_f64.sqrt(); // of t with 3 degrees of freedom
        for method in [Method::SignedRank, Method::StudentT] {
            let analysis = PowerAnalysis::new(method, deviation, 1, 0.95).unwrap();
            let effect = analysis.smallest_effect(size).unwrap();
            let shown = (0..REPLICATES)
                .filter(|_| {
                    let sample: Vec<f64> = (0..size).map(|_| effect + noise.t3()).collect();
                    let p = match method {
                        Method::SignedRank => SignedRank::new(&sample).unwrap().p_two_sided(0.0),
                        _ => StudentSample::new(&sample)
                            .unwrap()
                            .p_two_sided(0.0)
                            .unwrap(),
                    };
                    p <= 0.05
                })
                .count();
            let share = shown as f64 / REPLICATES as f64;
            assert!(share > 0.8, "{method:?}, {size}: {share}");
        }
    }
}

#[test]
fn mann_whitney() {
    check(Method::MannWhitney, &[3, 4, 5, 6, 8, 20], 0.03);
}

#[test]
fn re_randomisation() {
    check(Method::SignFlip, &[5, 6, 7, 8, 10], 0.06);
    check(Method::Permutation, &[3, 4, 5], 0.06);
}

/// One of three that differs. The critical value is read off one interval: it integrates for long.
#[test]
fn dunnett_of_three() {
    let mut noise = Noise::new(77);
    for size in [3, 8] {
        let analysis = PowerAnalysis::new(Method::Dunnett, 1.0, 3, 0.95).unwrap();
        let effect = analysis.smallest_effect(size).unwrap();
        let mut critical = None;
        let shown = (0..REPLICATES)
            .filter(|_| {
                let groups = [0.0, effect, 0.0, 0.0].map(|mean| sample(&mut noise, size, mean));
                let critical = *critical.get_or_insert_with(|| {
                    let [reference, samples @ ..] = groups.each_ref().map(Vec::as_slice);
                    let found = dunnett(reference, &samples, 0.95).unwrap()[0];
                    found.interval.half_width() * found.t / found.difference
                });
                let students = groups.map(|group| StudentSample::new(&group).unwrap());
                let variances = students.map(|student| student.standard_deviation.unwrap().powi(2));
                let error = (variances.iter().sum::<f64>() / 4.0 * 2.0 / size as f64).sqrt();
                ((students[1].mean - students[0].mean) / error).abs() >= critical
            })
            .count();
        assert_near(shown, 0.8, 0.0, &format!("Dunnett, {size}"));
    }
}

/// Two one-sided tests of t and of signed ranks, off the centre, too.
#[test]
fn equivalence() {
    let mut noise = Noise::new(99);
    for method in [Method::SignedRank, Method::StudentT, Method::PooledT] {
        for size in [5, 6, 8, 16] {
            let analysis = PowerAnalysis::new(method, 1.0, 1, 0.95).unwrap();
            let d = analysis.smallest_threshold(size).unwrap();
            for effect in [0.0, 0.4 * d] {
                let shown = (0..REPLICATES)
                    .filter(|_| {
                        let a = sample(&mut noise, size, effect);
                        let b = sample(&mut noise, size, 0.0);
                        let p = match method {
                            Method::SignedRank => SignedRank::new(&a).unwrap().p_inside(-d, d),
                            Method::PooledT => TwoSampleT::pooled(&a, &b).unwrap().p_inside(-d, d),
                            _ => {
                                let interval =
                                    StudentSample::new(&a).unwrap().interval(0.9).unwrap();
                                f64::from(u8::from(interval.lower <= -d || interval.upper >= d))
                            }
                        };
                        p <= 0.05
                    })
                    .count();
                let tolerance = if method == Method::SignedRank {
                    0.03
                } else {
                    0.0
                };
                let reckoned = analysis.power_inside(effect, -d, d, size);
                let what = format!("{method:?}, {size}, {effect} inside {d}");
                assert_near(shown, reckoned, tolerance, &what);
            }
        }
    }
}

/// How many more blocks a verdict asks for is what the analysis says of the noise that its blocks come
/// from: on average, where the estimate is the truth.
#[test]
fn more_blocks_are_those_of_the_analysis() {
    const DEVIATION: f64 = 0.03;
    let settings = VerdictSettings::default();
    let threshold = settings.practical_threshold;
    let (below, above) = ((-threshold).ln_1p(), threshold.ln_1p());
    let analysis =
        |confidence| PowerAnalysis::new(Method::SignedRank, DEVIATION, 1, confidence).unwrap();
    let none = (1..1000)
        .find(|size| analysis(0.95).power_inside(0.0, below, above, *size) >= 0.8)
        .unwrap();
    // Beyond the threshold is shown one-sided at 5 %, as both sides together at 10 %.
    let large = (1..1000)
        .find(|size| {
            analysis(0.95)
                .power(0.02, *size)
                .min(analysis(0.9).power(0.02 - above, *size))
                >= 0.8
        })
        .unwrap();
    let mut noise = Noise::new(21);
    for (effect, need) in [(0.0, none), (0.02, large)] {
        for size in [6, 8, 12] {
            let replicates = 400;
            let total: usize = (0..replicates)
                .map(|_| {
                    let mut blocks = sample(&mut noise, size, 0.0);
                    let centre = SignedRank::new(&blocks).unwrap().estimate();
                    for block in &mut blocks {
                        *block = (*block - centre) * DEVIATION + effect;
                    }
                    let comparison = ComparisonEffects {
                        name: "variant".to_owned(),
                        block_effects: blocks,
                    };
                    let family = family_verdicts(&[comparison], None, &settings).unwrap();
                    match family.comparisons[0].more {
                        None => size,
                        Some(MoreData::About(more, _)) => size + more,
                        more => panic!("{more:?}"),
                    }
                })
                .sum();
            let mean = total as f64 / f64::from(replicates);
            let ratio = mean / need as f64;
            assert!(
                (0.8..1.2).contains(&ratio),
                "{effect}, {size}: {mean} for {need}"
            );
        }
    }
}
