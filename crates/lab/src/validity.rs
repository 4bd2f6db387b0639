//! What makes a trial invalid: evidence that never uses its forwarding rate.

use std::collections::{BTreeMap, BTreeSet};

use crate::cpu_account::Taken;
use fwdlab_model::record::{ALONE_RATIO_MIN, stall_bound_s};
use fwdlab_model::{
    Competitor, Conservation, DutReading, InvalidReason, LoadRegime, Resolved, TesterReading,
    TrialRecord,
};
use fwdlab_stats::as_f64;

/// More of the load CPU than this taken by the hypervisor makes a trial invalid.
pub const STEAL_RATIO_MAX: f64 = 0.25;

/// A calibration loop that takes longer than this times its usual time in the block makes a trial
/// invalid. Loops on shared machines vary by a fifth from moment to moment; this is the mark of
/// another machine speed altogether.
pub const CALIBRATION_RATIO_MAX: f64 = 1.5;

/// A paced generator that offers less than this part of the intended load makes a trial invalid.
pub const LOAD_RATIO_MIN: f64 = 0.99;

/// Under overload it may offer this part: more than the DUT forwards still, as it is to be offered a
/// quarter more than that.
const OVERLOAD_RATIO_MIN: f64 = 0.9;

/// Frames that come out in other time than they were offered in, as a part of those offered, that a trial may have.
const DELAYED_RATIO_MAX: f64 = 0.01;

/// Checked frames, as a multiple of the flows, from which a flow that was not among them counts as
/// missing.
///
/// The checks take the flows in turn, but every drop and every change of CPU shifts their turn. Where
/// they meet them at random, one of 2000 stays out of so many checks in fewer than one of a hundred
/// thousand blocks.
const CHECKS_PER_FLOW_MIN: u64 = 20;

/// The load that is asked of the generator.
#[derive(Clone, Debug)]
pub(crate) struct AskedLoad {
    pub(crate) regime: LoadRegime,
    /// Frames that nobody can account for, as a part of those offered, that a block may have.
    pub(crate) unaccounted_ratio_max: f64,
    /// Whether frames are counted where they are sent and where they come out at the same moments.
    pub(crate) counts_at_once: bool,
}

impl AskedLoad {
    /// That of the experiment.
    pub(crate) fn of(resolved: &Resolved) -> Self {
        Self {
            regime: resolved.regime(),
            unaccounted_ratio_max: 0.0,
            counts_at_once: true,
        }
    }
}

/// What was seen of a trial beside its slices.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrialEvidence {
    /// Start of its first slice, UTC.
    pub(crate) start: String,
    /// What the tester counted in its slices.
    pub(crate) tester: TesterReading,
    /// What was read of the DUT in its slices.
    pub(crate) dut: DutReading,
    /// Frames that the DUT's kernel dropped in a sample after the slices, by the kernel's own reason.
    pub(crate) kernel_drop_reasons: BTreeMap<String, u64>,
    /// What was read back where it was not the variant's.
    pub(crate) settings_moved: Option<String>,
    /// How the forwarder in user space had ended in it.
    pub(crate) forwarder_ended: Option<String>,
    /// The DUT's ports whose link was lost under its load.
    pub(crate) links_lost: BTreeSet<String>,
    /// Checked frames of its slices that were wrong, by what was wrong first.
    pub(crate) wrong_frames: BTreeMap<String, u64>,
    /// Frames offered in its slices that were missing when they had ended and came out later.
    pub(crate) late_frames: u64,
    /// So many frames may be under way at the edges of its slices.
    pub(crate) under_way_frames: u64,
    /// Who took time of the load's CPUs.
    pub(crate) takers: Taken,
    /// The longest time beyond the usual in which nothing was read inside a slice, in seconds.
    pub(crate) longest_stall_s: f64,
}

/// What speaks against all trials of a stratum in a block.
///
/// Shape: `flows_in_turn` is how many flows come in turn; none where some are heavy and others hardly come.
///
/// A generator that stopped by itself, at whatever moment, says so here: the rounds pair the variants, so
/// no trial of the block can stand without the others. Wrong frames that came in a trial speak against that trial
/// instead: they are its variant's.
pub(crate) fn of_stratum(
    conservation: &Conservation,
    wrong_in_trials: &BTreeMap<String, u64>,
    flows_in_turn: Option<u32>,
    generator_stopped: Option<&String>,
    asked: &AskedLoad,
) -> Vec<InvalidReason> {
    let mut reasons = Vec::new();
    if let Some(what) = generator_stopped {
        reasons.push(InvalidReason::GeneratorStopped { what: what.clone() });
    }
    let unaccounted_max = as_f64(conservation.offered_frames) * asked.unaccounted_ratio_max;
    if as_f64(conservation.unaccounted_frames.unsigned_abs()) > unaccounted_max {
        reasons.push(InvalidReason::Unaccounted {
            frames: conservation.unaccounted_frames,
        });
    }
    let verification = &conservation.verification;
    let mut wrong_frames = verification.wrong_frames.clone();
    for (what, frames) in &mut wrong_frames {
        let in_trials = wrong_in_trials.get(what).copied().unwrap_or_default();
        *frames = frames.saturating_sub(in_trials);
    }
    reasons.extend(wrong(&wrong_frames));
    if let Some(flows) = flows_in_turn
        && verification.checked_frames >= CHECKS_PER_FLOW_MIN * u64::from(flows)
        && verification.flows_seen < flows
    {
        let seen = verification.flows_seen;
        reasons.push(InvalidReason::FlowsMissing {
            seen,
            planned: flows,
        });
    }
    reasons
}

/// What checked frames that were wrong speak against something.
fn wrong(frames: &BTreeMap<String, u64>) -> Option<InvalidReason> {
    let kinds = frames.iter().filter(|(_, frames)| **frames > 0);
    let what: Vec<&str> = kinds.map(|(what, _)| what.as_str()).collect();
    (!what.is_empty()).then(|| InvalidReason::Verification {
        frames: frames.values().sum(),
        what: what.join(", "),
    })
}

/// What speaks against one trial.
pub(crate) fn of_trial(
    trial: &TrialRecord,
    evidence: &TrialEvidence,
    usual_calibration_ns: f64,
    slice_s: f64,
    alone_ratio: Option<f64>,
    offered_ratio: Option<f64>,
    asked: &AskedLoad,
) -> Vec<InvalidReason> {
    let mut reasons = Vec::from_iter(wrong(&evidence.wrong_frames));
    if let Some(what) = &evidence.settings_moved {
        reasons.push(InvalidReason::SettingsMoved { what: what.clone() });
    }
    if let Some(what) = &evidence.forwarder_ended {
        reasons.push(InvalidReason::ForwarderEnded { what: what.clone() });
    }
    if !evidence.links_lost.is_empty() {
        let ports: Vec<&str> = evidence.links_lost.iter().map(String::as_str).collect();
        let ports = ports.join(", ");
        reasons.push(InvalidReason::LinkLost { ports });
    }
    let (longest_s, bound_s) = (evidence.longest_stall_s, stall_bound_s(slice_s));
    if longest_s > bound_s {
        reasons.push(InvalidReason::Stalled { longest_s, bound_s });
    }
    let steal_ratio = trial.steal_s / trial.measured_s;
    if steal_ratio > STEAL_RATIO_MAX {
        reasons.push(InvalidReason::Stolen {
            ratio: steal_ratio,
            bound: STEAL_RATIO_MAX,
        });
    }
    if let Some(alone_ratio) = alone_ratio.filter(|ratio| *ratio < ALONE_RATIO_MIN) {
        reasons.push(InvalidReason::Competition {
            alone_ratio,
            bound: ALONE_RATIO_MIN,
            by: names(&trial.competitors),
        });
    }
    let calibration_ratio = trial.calibration_ns / usual_calibration_ns;
    if calibration_ratio > CALIBRATION_RATIO_MAX {
        let bound = CALIBRATION_RATIO_MAX;
        reasons.push(InvalidReason::Calibration {
            ratio: calibration_ratio,
            bound,
        });
    }
    if asked.regime == LoadRegime::Overload && trial.dut.dropped_frames() == 0 {
        reasons.push(InvalidReason::GeneratorLimited);
    }
    if let Some(ratio) = offered_ratio {
        let bound = match asked.regime {
            LoadRegime::Overload => OVERLOAD_RATIO_MIN,
            LoadRegime::Paced | LoadRegime::SelfClocked => LOAD_RATIO_MIN,
        };
        if ratio < bound {
            reasons.push(InvalidReason::LoadShort { ratio, bound });
        }
    }
    reasons.extend(delayed(trial, evidence, asked));
    reasons
}

/// Frames that came out in other time than they were offered in, and so make rates and losses of something else.
///
/// What is dropped is counted over a longer time than a slice, and takes no part in it. Without a pace, what has waited
/// comes out no faster than the DUT forwards.
fn delayed(
    trial: &TrialRecord,
    evidence: &TrialEvidence,
    asked: &AskedLoad,
) -> impl Iterator<Item = InvalidReason> {
    let TesterReading {
        offered_frames,
        forwarded_frames,
        ..
    } = trial.tester;
    let under_way = as_f64(evidence.under_way_frames);
    let frames_max = as_f64(offered_frames) * DELAYED_RATIO_MAX + under_way;
    let is_too_many = |frames| as_f64(frames) > frames_max;
    let has_pace = asked.regime == LoadRegime::Paced && asked.counts_at_once;
    let earlier = has_pace && is_too_many(forwarded_frames.saturating_sub(offered_frames));
    let earlier = earlier.then_some(InvalidReason::EarlierFrames {
        offered_frames,
        forwarded_frames,
    });
    let frames = evidence.late_frames;
    let late = is_too_many(frames).then_some(InvalidReason::LateFrames {
        offered_frames,
        frames,
    });
    earlier.into_iter().chain(late)
}

/// The names of the greatest competitors.
fn names(competitors: &[Competitor]) -> String {
    const NAMED_MAX: usize = 3;
    let mut names: Vec<&str> = Vec::new();
    for competitor in competitors {
        if !names.contains(&competitor.name.as_str()) {
            names.push(&competitor.name);
        }
    }
    match names.len() {
        0 => "others".to_owned(),
        1..=NAMED_MAX => names.join(", "),
        _ => format!("{} and others", names[..NAMED_MAX].join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_model::{SCHEMA_VERSION, Stratum, VariantName, Verification};

    fn trial() -> TrialRecord {
        TrialRecord {
            schema: SCHEMA_VERSION,
            session: 1,
            block: 1,
            attempt: 1,
            order: 0,
            variant: VariantName::from_label("a"),
            stratum: Stratum::INET,
            start: String::new(),
            measured_s: 1.0,
            tester: TesterReading {
                offered_frames: 100_000,
                forwarded_frames: 100_000,
                ..TesterReading::default()
            },
            dut: DutReading::default(),
            kernel_drop_reasons: BTreeMap::new(),
            undisturbed_s: 1.0,
            observation_pps: 1e5,
            pooled_pps: 1e5,
            competing_s: None,
            competitors: Vec::new(),
            steal_s: 0.0,
            calibration_ns: 100.0,
            profile: None,
            invalid: Vec::new(),
        }
    }

    fn asked(regime: LoadRegime) -> AskedLoad {
        AskedLoad {
            regime,
            unaccounted_ratio_max: 0.0,
            counts_at_once: true,
        }
    }

    fn paced() -> AskedLoad {
        asked(LoadRegime::Paced)
    }

    #[test]
    fn a_sound_trial_stays_valid_whatever_its_rate() {
        let mut trial = trial();
        trial.observation_pps = 0.0;
        assert_eq!(
            of_trial(
                &trial,
                &TrialEvidence::default(),
                100.0,
                1.0,
                Some(ALONE_RATIO_MIN),
                Some(1.0),
                &paced()
            ),
            []
        );
    }

    #[test]
    fn each_evidence_is_named() {
        let evidence = TrialEvidence {
            settings_moved: Some("x".into()),
            forwarder_ended: Some("signal: 6 (SIGABRT)".into()),
            wrong_frames: [("TTL".to_owned(), 3)].into(),
            links_lost: ["ix0", "ix1"].map(str::to_owned).into(),
            longest_stall_s: 0.11,
            ..TrialEvidence::default()
        };
        let mut trial = trial();
        trial.steal_s = 0.5;
        trial.calibration_ns = 200.0;
        trial.competing_s = Some(0.3);
        trial.competitors = ["cargo", "rustc", "cargo"]
            .map(|name| Competitor {
                cpu: 0,
                name: name.to_owned(),
                time_s: 0.1,
            })
            .into();
        let offered = Some(0.98);
        let judge = |alone| of_trial(&trial, &evidence, 100.0, 1.0, alone, offered, &paced());
        let reasons = judge(Some(0.03));
        assert_eq!(reasons.len(), 9);
        let link = "the link of ix0, ix1 was lost under the load; check the cable";
        let mut texts = reasons.iter().map(ToString::to_string);
        assert!(texts.any(|text| text.starts_with(link)), "{reasons:?}");
        assert!(reasons.iter().any(|reason| reason.to_string()
            == "the load had its CPU to itself for only 3.0 % of the time (bound 25.0 %); it shared it with cargo, rustc"));
        // Where there is enough of it, and where nobody could tell.
        assert_eq!(judge(Some(0.26)).len(), 8);
        assert_eq!(judge(None).len(), 8);
    }

    #[test]
    fn an_overload_that_drops_nothing_shows_the_generator_and_not_the_dut() {
        let overload = asked(LoadRegime::Overload);
        let judge_offered = |trial: &TrialRecord, ratio, asked: &AskedLoad| {
            let evidence = TrialEvidence::default();
            of_trial(trial, &evidence, 100.0, 1.0, None, ratio, asked)
        };
        let judge = |trial: &TrialRecord, asked: &AskedLoad| judge_offered(trial, None, asked);
        let mut trial = trial();
        assert_eq!(judge(&trial, &overload), [InvalidReason::GeneratorLimited]);
        let self_clocked = asked(LoadRegime::SelfClocked);
        assert_eq!(judge(&trial, &self_clocked), []);
        // What the tester's own port does not take says nothing of the DUT.
        trial.tester.not_transmitted_frames = 50_000;
        assert_eq!(judge(&trial, &overload), [InvalidReason::GeneratorLimited]);
        trial.dut.drops.insert("a full ring".into(), 1);
        assert_eq!(judge(&trial, &overload), []);
        // Where a load is intended, it may sag a little.
        let judge_part = |part: f64| judge_offered(&trial, Some(part), &overload);
        assert_eq!(judge_part(0.91), []);
        assert!(matches!(
            judge_part(0.89)[..],
            [InvalidReason::LoadShort { .. }]
        ));
    }

    #[test]
    fn frames_of_other_times_speak_against_a_trial() {
        let judge = |forwarded_frames, late_frames, asked: &AskedLoad| {
            let mut trial = trial();
            trial.tester.forwarded_frames = forwarded_frames;
            trial.dut.drops.insert("a full ring".into(), 1);
            let evidence = TrialEvidence {
                late_frames,
                under_way_frames: 64,
                ..TrialEvidence::default()
            };
            of_trial(&trial, &evidence, 100.0, 1.0, None, None, asked)
        };
        let earlier = InvalidReason::EarlierFrames {
            offered_frames: 100_000,
            forwarded_frames: 101_065,
        };
        assert_eq!(judge(101_064, 1064, &paced()), []);
        assert_eq!(judge(101_065, 0, &paced()), [earlier]);
        let late = InvalidReason::LateFrames {
            offered_frames: 100_000,
            frames: 1065,
        };
        assert_eq!(judge(98_000, 1065, &paced()), [late]);
        // What waited in front of a DUT that is never idle comes out at its own rate.
        assert_eq!(judge(101_065, 0, &asked(LoadRegime::Overload)), []);
        let of_hosts = AskedLoad {
            counts_at_once: false,
            ..paced()
        };
        assert_eq!(judge(101_065, 0, &of_hosts), []);
    }

    #[test]
    fn frames_that_do_not_add_up_speak_against_all_trials() {
        let sound = Conservation {
            verification: Verification {
                checked_frames: 40_000,
                flows_seen: 2000,
                ..Verification::default()
            },
            ..Conservation::default()
        };
        let of_stratum = |conservation: &Conservation, flows, stopped, asked: &AskedLoad| {
            of_stratum(conservation, &BTreeMap::new(), flows, stopped, asked)
        };
        assert_eq!(of_stratum(&sound, Some(2000), None, &paced()), []);
        let what = "sending: Network is down".to_owned();
        let stopped = InvalidReason::GeneratorStopped { what: what.clone() };
        assert_eq!(
            of_stratum(&sound, Some(2000), Some(&what), &paced()),
            [stopped]
        );
        let mut lost = sound.clone();
        lost.unaccounted_frames = -1;
        lost.verification.wrong_frames.insert("TTL".into(), 1);
        lost.verification.flows_seen = 1999;
        assert_eq!(of_stratum(&lost, Some(2000), None, &paced()).len(), 3);
        // Light flows may stay out where others are heavy.
        assert_eq!(of_stratum(&lost, None, None, &paced()).len(), 2);
        // Too few checks to say that a flow is missing.
        lost.verification.checked_frames = 39_999;
        assert_eq!(of_stratum(&lost, Some(2000), None, &paced()).len(), 2);
        // Where counters are read at moments of their own, a few frames are nobody's.
        lost.offered_frames = 1000;
        let loose = AskedLoad {
            unaccounted_ratio_max: 0.001,
            ..paced()
        };
        assert_eq!(of_stratum(&lost, Some(2000), None, &loose).len(), 1);
    }

    #[test]
    fn wrong_frames_speak_against_their_trial_and_else_against_all() {
        let wrong = |frames: &[(&str, u64)]| -> BTreeMap<String, u64> {
            let frames = frames.iter();
            frames
                .map(|&(what, frames)| (what.to_owned(), frames))
                .collect()
        };
        let conservation = Conservation {
            verification: Verification {
                wrong_frames: wrong(&[("TTL", 3), ("length", 1)]),
                ..Verification::default()
            },
            ..Conservation::default()
        };
        let of_stratum =
            |in_trials: &[_]| of_stratum(&conservation, &wrong(in_trials), None, None, &paced());
        assert_eq!(of_stratum(&[("TTL", 3), ("length", 1)]), []);
        let rest = |frames, what: &str| InvalidReason::Verification {
            frames,
            what: what.to_owned(),
        };
        assert_eq!(of_stratum(&[("TTL", 1), ("length", 1)]), [rest(2, "TTL")]);
        assert_eq!(of_stratum(&[]), [rest(4, "TTL, length")]);
        let evidence = TrialEvidence {
            wrong_frames: wrong(&[("TTL", 1)]),
            ..TrialEvidence::default()
        };
        let reasons = of_trial(&trial(), &evidence, 100.0, 1.0, None, None, &paced());
        assert_eq!(reasons, [rest(1, "TTL")]);
        assert_eq!(reasons[0].to_string(), "1 checked frame was wrong (TTL)");
        assert_eq!(
            rest(2, "TTL").to_string(),
            "2 checked frames were wrong (TTL)"
        );
    }
}
