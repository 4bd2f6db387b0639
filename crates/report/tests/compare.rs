//! Observations compared: what the verdicts rest on, and what is refused.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod synthetic;

use fwdlab_archive::Loaded;
use fwdlab_model::{Load, Stratum};
use fwdlab_report::{
    Basis, CompareReport, CompareSettings, FactorialDesign, Gate, Observations, ReportError,
    Session, compare_blocks, compare_independent, compare_pairs, compare_sessions, render,
};
use fwdlab_stats::Method;
use fwdlab_stats::ministat::Dialect;
use proptest::prelude::*;
use synthetic::Synthetic;

const SETTINGS: CompareSettings = CompareSettings {
    confidence_percent: 95.0,
    threshold_percent: 1.0,
    with_methods: false,
    ministat: None,
};

fn set(label: &str, values_pps: &[f64]) -> Observations {
    Observations {
        label: label.to_owned(),
        path: format!("{label}.pps"),
        values_pps: values_pps.to_vec(),
        offered_pps: None,
    }
}

fn codes(report: &CompareReport) -> Vec<&str> {
    let warnings = report.warnings.iter();
    warnings.map(|warning| warning.code.as_str()).collect()
}

fn words(report: &CompareReport) -> Vec<&str> {
    let rows = report.groups.iter().flat_map(|group| &group.rows[1..]);
    rows.map(|row| {
        row.row
            .verdict
            .as_ref()
            .map_or("", |verdict| &verdict.words)
    })
    .collect()
}

#[test]
fn pairs_see_through_a_drift_that_independent_observations_do_not() {
    let drifting: Vec<f64> = (0..8)
        .map(|run| 1e6 * (1.0 + 0.05 * f64::from(run)))
        .collect();
    // 3 % less, and some noise of its own.
    let slower: Vec<f64> = drifting
        .iter()
        .zip([2.0, -3.0, 1.0, 0.0, -1.0, 3.0, -2.0, 1.5])
        .map(|(pps, noise)| pps * (0.97 + noise / 1000.0))
        .collect();
    let sets = [set("before", &drifting), set("after", &slower)];
    let independent = compare_independent(&sets, None, SETTINGS).unwrap();
    assert_eq!(words(&independent), ["undecided"]);
    // What drifted is seen in the files themselves.
    assert_eq!(codes(&independent), ["W214", "W111", "W111"]);
    let pairs = compare_pairs(&sets, None, SETTINGS).unwrap();
    assert_eq!(words(&pairs), ["different"]);
    assert_eq!(pairs.basis, Basis::Pairs);
}

#[test]
fn a_file_that_only_rises_is_warned_of() {
    let rising = set("rising", &[5.18e6, 5.21e6, 5.35e6, 5.47e6, 5.61e6]);
    let level = set("level", &[5.21e6, 5.18e6, 5.47e6, 5.61e6, 5.35e6]);
    let report = compare_independent(&[level, rising], None, SETTINGS).unwrap();
    assert_eq!(codes(&report), ["W214", "W111"]);
    assert_eq!(report.warnings[1].subjects, ["rising"]);
    let text = &report.warnings[1].text;
    assert!(
        text.contains("from about 5.195 Mpps to 5.540 Mpps (p = 0.017"),
        "{text}"
    );
}

#[test]
fn observations_in_two_groups_are_warned_of() {
    let one = set(
        "one",
        &[
            9.71e6, 9.68e6, 9.74e6, 9.70e6, 9.69e6, 9.72e6, 9.66e6, 9.73e6,
        ],
    );
    let two = set(
        "two",
        &[
            9.71e6, 4.31e6, 9.68e6, 9.74e6, 4.29e6, 9.70e6, 4.33e6, 9.69e6,
        ],
    );
    for report in [
        compare_independent(&[one.clone(), two.clone()], None, SETTINGS).unwrap(),
        compare_pairs(&[one, two], None, SETTINGS).unwrap(),
    ] {
        let warning = report
            .warnings
            .iter()
            .find(|warning| warning.code == "W110");
        let warning = warning.unwrap();
        assert_eq!(warning.subjects, ["two"]);
        let text = &warning.text;
        assert!(text.contains("two groups, 5 about"), "{text}");
        assert!(
            text.contains("4.310 Mpps, 55.6 % lower") || text.contains("3 about -55."),
            "{text}"
        );
    }
}

#[test]
fn units_that_do_not_match_are_told() {
    let pps = [1.01e6, 1.02e6, 1.00e6];
    let kpps = pps.map(|pps| pps / 1000.0);
    let report = compare_independent(&[set("a", &pps), set("b", &kpps)], None, SETTINGS).unwrap();
    assert_eq!(codes(&report), ["W214", "W216"]);
    let text = &report.warnings[1].text;
    assert!(text.contains("about 1000 times smaller"), "{text}");
}

#[test]
fn a_runs_own_observations_are_compared_by_its_blocks() {
    let loaded = Synthetic::default().loaded();
    let of = |label: &str| {
        let mut variants = loaded.resolved.variants.iter();
        let variant = variants.find(|variant| variant.label == label).unwrap();
        (variant.name.clone(), format!("{}.inet.pps", variant.name))
    };
    let variants = [of("no filter"), of("nftables conntrack")];
    let report = compare_blocks(&loaded, Stratum::INET, &variants, SETTINGS).unwrap();
    assert_eq!(words(&report), ["different"]);
    let row = &report.groups[0].rows[1];
    assert_eq!(
        (row.label.as_str(), row.row.trials),
        ("nftables conntrack", 8)
    );
    let effect = row.row.effect.as_ref().unwrap();
    assert_eq!(effect.blocks.len(), 8);
}

/// The four combinations of two factors; both together forward 5 % less than each alone explains.
fn combined() -> (Vec<Observations>, FactorialDesign) {
    let noise = [2.0, -3.0, 1.0, 0.0, -1.0, 3.0, -2.0, 1.5];
    let sets = [
        ("neither", 1.0),
        ("rules", 0.9),
        ("checks", 0.8),
        ("both", 0.684),
    ]
    .map(|(label, ratio)| {
        let drift = |run: usize| 1.0 + 0.05 * run as f64;
        let values = noise.iter().enumerate();
        let rate = |(run, noise): (usize, &f64)| {
            1e6 * drift(run) * (ratio + noise / 1000.0 * (ratio - 0.9))
        };
        set(label, &values.map(rate).collect::<Vec<_>>())
    });
    let names = ["rules", "checks"].map(str::to_owned);
    let levels = [["no", "no"], ["yes", "no"], ["no", "yes"], ["yes", "yes"]];
    let levels = levels.map(|levels| levels.map(str::to_owned).to_vec());
    let design = FactorialDesign::new(&names, &levels).unwrap();
    (sets.to_vec(), design)
}

#[test]
fn factors_are_told_apart_by_pairs_and_by_independent_observations() {
    let (sets, design) = combined();
    let settings = CompareSettings {
        with_methods: true,
        ..SETTINGS
    };
    let pairs = compare_pairs(&sets, Some(&design), settings).unwrap();
    let factorial = pairs.groups[0].factorial.as_ref().unwrap();
    let said: Vec<(&str, &str)> = factorial
        .main_effects
        .iter()
        .chain(&factorial.interactions)
        .map(|row| (row.label.as_str(), row.verdict.words.as_str()))
        .collect();
    assert_eq!(
        said,
        [
            ("rules: yes against no", "different"),
            ("checks: yes against no", "different"),
            ("rules yes x checks yes", "different"),
        ]
    );
    let interaction = factorial.interactions[0].effect.estimate_percent;
    assert!((interaction + 5.0).abs() < 0.2, "{interaction}");
    assert!(factorial.analysis_of_variance.is_empty());
    let methods = &pairs.groups[0].rows[1].row.methods;
    assert_eq!(methods[0].method, Method::SignedRank);

    let independent = compare_independent(&sets, Some(&design), settings).unwrap();
    let factorial = independent.groups[0].factorial.as_ref().unwrap();
    assert_eq!(factorial.interactions[0].verdict.words, "undecided");
    let terms: Vec<&str> = factorial
        .analysis_of_variance
        .iter()
        .map(|row| row.term.as_str())
        .collect();
    assert_eq!(terms, ["rules", "checks", "rules x checks"]);
    let text = render::compared(&independent, 80, false);
    for line in [
        "Main effects, averaged over the levels of the other factors",
        "  rules yes x checks yes",
        "    rules x checks  1, 28",
        "    pooled t  ",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn comparisons_fit_narrow_terminals() {
    let (sets, design) = combined();
    let settings = CompareSettings {
        with_methods: true,
        ..SETTINGS
    };
    let report = compare_independent(&sets, Some(&design), settings).unwrap();
    for width in [20, 40, 60] {
        let text = render::compared(&report, width, false);
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width}: {line:?}");
        }
        insta::assert_snapshot!(format!("compared_{width}"), text);
    }
}

#[test]
fn an_offered_load_that_moved_stands_beside_the_verdict() {
    // The rate follows half of what is offered, and the variant was offered 4 % less.
    let offered = [
        1.00e7, 1.02e7, 0.99e7, 1.03e7, 0.98e7, 1.01e7, 1.00e7, 0.97e7,
    ];
    let noise = [2e-4, -3e-4, 1e-4, 0.0, -1e-4, 3e-4, -2e-4, 1e-4];
    let side = |label: &str, less: f64| {
        let offered = offered.map(|pps| pps * less);
        let rates = offered.iter().zip(noise);
        let rates: Vec<f64> = rates
            .map(|(pps, noise)| 300.0 * pps.sqrt() * (1.0 + noise))
            .collect();
        Observations {
            offered_pps: Some(offered.to_vec()),
            ..set(label, &rates)
        }
    };
    let mut more = side("b", 0.96);
    // Pairs need a ratio that moves.
    more.offered_pps
        .iter_mut()
        .flatten()
        .zip(noise)
        .for_each(|(pps, noise)| *pps *= 1.0 + 9.0 * noise);
    let sets = [side("a", 1.0), more];
    for report in [
        compare_independent(&sets, None, SETTINGS).unwrap(),
        compare_pairs(&sets, None, SETTINGS).unwrap(),
    ] {
        let [row] = &report.groups[0].offered_load[..] else {
            panic!("{:?}", report.groups);
        };
        assert!(
            row.differs && (row.shift_percent + 4.0).abs() < 0.5,
            "{row:?}"
        );
        assert!(codes(&report).contains(&"W217"), "{:?}", report.warnings);
    }
    let independent = compare_independent(&sets, None, SETTINGS).unwrap();
    let sensitivity = independent.groups[0].offered_load[0]
        .sensitivity
        .as_ref()
        .unwrap();
    assert!(
        (sensitivity.slope.estimate - 0.5).abs() < 0.05,
        "{sensitivity:?}"
    );
    assert!(sensitivity.adjusted_percent.abs() < 0.2, "{sensitivity:?}");
    assert!(render::compared(&independent, 400, false).contains("at equal offered load"));
}

#[test]
fn what_is_no_factorial_design_has_none() {
    let names = ["a", "b"].map(str::to_owned);
    let design = |levels: &[[&str; 2]]| {
        let levels: Vec<Vec<String>> = levels
            .iter()
            .map(|levels| levels.map(str::to_owned).to_vec())
            .collect();
        FactorialDesign::new(&names, &levels)
    };
    assert!(design(&[["0", "0"], ["1", "0"], ["0", "1"]]).is_none());
    assert!(design(&[["0", "0"], ["1", "0"], ["2", "0"]]).is_none());
    assert!(design(&[["0", "0"], ["1", "0"], ["0", "1"], ["1", "1"]]).is_some());
}

#[test]
fn the_text_of_ministat_is_in_the_dialect_asked_for() {
    let loaded = Synthetic::default().loaded();
    let mut variants = loaded.resolved.variants.iter();
    let variants = [variants.next(), variants.next()].map(|variant| {
        let variant = variant.unwrap();
        (variant.name.clone(), format!("{}.inet.pps", variant.name))
    });
    let sets = [
        set("a", &[1e6, 2e6, 4e6, 8e6]),
        set("b", &[11e6, 12e6, 14e6, 18e6]),
    ];
    let texts = |ministat: Option<Dialect>| {
        let settings = CompareSettings {
            ministat,
            ..SETTINGS
        };
        let sides = [of_run("one", &loaded), of_run("other", &loaded)];
        [
            compare_blocks(&loaded, Stratum::INET, &variants, settings),
            compare_sessions(&sides, &[], settings),
            compare_pairs(&sets, None, settings),
            compare_independent(&sets, None, settings),
        ]
        .map(|report| report.unwrap().groups.remove(0).ministat)
    };
    let (oldest, newest) = (Dialect::FreeBsd10, Dialect::FreeBsd13);
    for (text, other) in texts(Some(oldest)).iter().zip(&texts(Some(newest))) {
        // Counts are even everywhere: at least the medians differ.
        assert_eq!((text.len(), other.len()), (1, 1));
        assert_ne!(text, other);
    }
    assert!(texts(None).iter().all(Vec::is_empty));
}

/// The sessions of a run.
fn of_run(directory: &str, loaded: &Loaded) -> Vec<Session> {
    Session::of_run(directory, loaded)
}

/// A run of one session that forwards this many times as much as another one; it begins in that hour.
fn session(directory: &str, ratio: f64, hour: u32) -> Session {
    let mut loaded = Synthetic {
        variants: vec![("plain".to_owned(), 0.0), ("filter".to_owned(), -20.0)],
        ..Synthetic::default()
    }
    .loaded();
    loaded.sessions[0].start = format!("2026-11-21T{hour:02}:00:00Z");
    for attempt in &mut loaded.attempts {
        for trial in &mut attempt.trials {
            trial.observation_pps *= ratio;
        }
    }
    let [session]: [Session; 1] = of_run(directory, &loaded).try_into().unwrap();
    session
}

/// Sessions of one side, in every second hour from the first one on.
fn side(name: &str, ratios: &[f64], first_hour: u32) -> Vec<Session> {
    let hours = (first_hour..).step_by(2);
    ratios
        .iter()
        .zip(hours)
        .map(|(ratio, hour)| session(&format!("{name}-{hour}"), *ratio, hour))
        .collect()
}

fn fails(gate: &str, report: &CompareReport) -> Option<String> {
    let result = gate.parse::<Gate>().unwrap().of_comparison(report);
    result.failed.then(|| {
        let failures = result.failures.iter();
        failures
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    })
}

#[test]
fn one_session_a_side_gives_a_difference_and_no_verdict() {
    let sides = [
        vec![session("spring", 1.0, 9)],
        vec![session("autumn", 1.3, 15)],
    ];
    let report = compare_sessions(&sides, &[], SETTINGS).unwrap();
    assert_eq!(report.basis, Basis::WithinSessions);
    assert_eq!(codes(&report), ["W215"]);
    // The control is the baseline once more, and no variant.
    assert_eq!(report.groups.len(), 2);
    for group in &report.groups {
        assert_eq!((group.rows.len(), group.family_size), (2, 0));
        let row = &group.rows[1].row;
        assert_eq!((row.trials, &row.verdict), (8, &None));
        let effect = row.effect.as_ref().unwrap();
        assert!((effect.estimate_percent - 30.0).abs() < 1e-9, "{effect:?}");
        assert!(
            effect.interval.is_some() && effect.p.is_none(),
            "{effect:?}"
        );
    }
    let why = report.no_verdict.as_deref().unwrap();
    assert!(
        why.contains("--sessions") && why.contains("4 or more sessions"),
        "{why}"
    );
    for gate in ["worse:1%", "maybe-worse:1%", "different:50%"] {
        let failure = fails(gate, &report).unwrap();
        assert!(
            failure.starts_with("no verdict: with one session a side"),
            "{failure}"
        );
    }
    let json: serde_json::Value = serde_json::from_str(&render::json(&report).unwrap()).unwrap();
    assert_eq!(json["schema"], 2);
    assert_eq!(json["basis"], "within-sessions");
    assert!(json["groups"][0]["rows"][1]["verdict"].is_null());
    assert!(json["groups"][0]["rows"][1]["effect"].get("p").is_none());
    assert_eq!(json["sides"][1][0]["directory"], "autumn");
    for (text, instead) in [
        (
            render::compared(&report, 400, false),
            "within these sessions: +30.0 %",
        ),
        (
            render::compared_comment(&report, &[]),
            "| none: one session a side |",
        ),
    ] {
        assert!(text.contains(instead), "{text}");
        assert!(text.contains(why), "{text}");
        for word in [
            "different (",
            "| different",
            "**different",
            "equivalent",
            "undecided",
            "verdicts hold",
        ] {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }
}

#[test]
fn a_rerun_of_one_configuration_is_no_difference() {
    // Sessions that differ by some percent and scatter by half a percent: Welch's t would call each different.
    let reruns = side("rerun", &[1.0, 1.04, 0.97, 1.02, 1.01], 1);
    let judged = |ratio: f64| {
        let sides = [
            vec![session("spring", 1.0, 20)],
            vec![session("autumn", ratio, 22)],
        ];
        compare_sessions(&sides, &reruns, SETTINGS).unwrap()
    };
    let report = judged(1.05);
    assert_eq!(report.basis, Basis::Reruns);
    assert_eq!(words(&report), ["undecided", "undecided"]);
    assert_eq!(codes(&report), ["W215"]);
    let noise = report.groups[0].reruns.unwrap();
    assert_eq!((noise.sessions, noise.degrees_of_freedom), (5, 4.0));
    // The standard deviation of ln(1), ln(1.04), ln(0.97), ln(1.02), ln(1.01) is 0.02579.
    assert!(
        (noise.standard_deviation_percent - 2.6125).abs() < 1e-3,
        "{noise:?}"
    );
    // t of 4 degrees of freedom at 97.5 % is 2.7764: exp(ln 1.05 - 2.7764 * 0.02579 * sqrt 2).
    let effect = report.groups[0].rows[1].row.effect.as_ref().unwrap();
    let interval = effect.interval.unwrap();
    assert!((interval.low_percent + 5.112).abs() < 2e-3, "{interval:?}");
    assert!((effect.estimate_percent - 5.0).abs() < 1e-9, "{effect:?}");
    assert_eq!(fails("worse:1%", &report), None);
    assert!(fails("maybe-worse:1%", &report).is_some());
    assert_eq!(report.reruns.len(), 5);
    let text = render::compared(&report, 200, false);
    assert!(
        text.contains("Noise between sessions, by 5 reruns: standard deviation 2.6 %; Student's t with 4 degrees"),
        "{text}"
    );
    assert_eq!(words(&judged(1.3)), ["different", "different"]);
    assert!(fails("worse:1%", &judged(0.7)).is_some());
}

#[test]
fn several_sessions_a_side_are_the_unit() {
    let before = side("before", &[1.0, 1.03, 0.98, 1.01, 1.02], 1);
    let after = side("after", &[0.90, 0.93, 0.88, 0.91, 0.92], 2);
    let report = compare_sessions(&[before.clone(), after], &[], SETTINGS).unwrap();
    assert_eq!(report.basis, Basis::Sessions);
    assert_eq!(words(&report), ["different", "different"]);
    // They were measured in turns.
    assert!(codes(&report).is_empty(), "{:?}", report.warnings);
    let row = &report.groups[0].rows[1];
    assert_eq!(
        (row.label.as_str(), row.row.trials),
        ("after-2 and 4 more", 5)
    );
    let effect = row.row.effect.as_ref().unwrap();
    // Two variants at once: twice 2 in 252 arrangements.
    assert!(
        (effect.p.unwrap() - 4.0 / 252.0).abs() < 1e-12,
        "{effect:?}"
    );
    assert!((effect.estimate_percent + 10.0).abs() < 0.2, "{effect:?}");
    assert_eq!(report.groups[0].family_size, 2);
    assert!(fails("worse:1%", &report).is_some());

    let later = side("later", &[0.90, 0.93, 0.88, 0.91, 0.92], 12);
    let report = compare_sessions(&[before, later], &[], SETTINGS).unwrap();
    assert_eq!(codes(&report), ["W215"]);
    assert!(
        report.warnings[0]
            .text
            .contains("before those of the other")
    );
}

#[test]
fn sessions_too_few_to_show_anything_are_refused() {
    let sides = |sessions: usize| {
        let ratios = [1.0, 1.01, 1.02, 1.03, 1.04];
        [
            side("before", &ratios[..sessions], 1),
            side("after", &ratios[..sessions], 2),
        ]
    };
    let refusal = |sessions, settings| {
        let refused = compare_sessions(&sides(sessions), &[], settings).unwrap_err();
        assert!(
            matches!(refused, ReportError::TooFewSessions { .. }),
            "{refused}"
        );
        refused.to_string()
    };
    assert_eq!(
        refusal(3, SETTINGS),
        "before-1 and 2 more (3 sessions) and after-2 and 2 more (3 sessions): where a side has several sessions, each \
         counts as one observation, and with 3 against 3 the smallest p of the exact rank test is 0.100; give at least \
         4 sessions of each side, or reruns of one configuration with --sessions"
    );
    let strict = CompareSettings {
        confidence_percent: 99.0,
        ..SETTINGS
    };
    assert!(refusal(4, strict).contains("test is 0.029; give at least 5"));
    // Two variants at once need more than 4 a side, which is said.
    let report = compare_sessions(&sides(4), &[], SETTINGS).unwrap();
    let few = report.warnings.iter().filter(|of| of.code == "W112");
    assert_eq!(few.count(), 2);

    let [before, after] = sides(4);
    let reruns = side("rerun", &[1.0, 1.01, 1.02, 1.03], 3);
    let refused = |sides: &[Vec<Session>], reruns: &[Session], settings| {
        compare_sessions(sides, reruns, settings)
            .unwrap_err()
            .to_string()
    };
    let needless = refused(&[before.clone(), after.clone()], &reruns, SETTINGS);
    assert!(
        needless.contains("--sessions: each side has 4 sessions or more"),
        "{needless}"
    );
    let one = [before[..1].to_vec(), after[..1].to_vec()];
    let few = refused(&one, &reruns[..3], SETTINGS);
    assert!(
        few.contains("--sessions: 3 sessions given") && few.contains("at least 4"),
        "{few}"
    );
    let methods = CompareSettings {
        with_methods: true,
        ..SETTINGS
    };
    assert!(refused(&one, &[], methods).contains("--methods"));
    // Several sessions have a test, and the verdict's method stands first.
    let report = compare_sessions(&[before, after], &[], methods).unwrap();
    let methods = &report.groups[0].rows[1].row.methods;
    assert_eq!(methods[0].method, Method::MannWhitney);
    assert!(methods.len() > 4);
}

#[test]
fn an_observation_of_nothing_is_named_with_its_directory() {
    let (before, mut after) = (session("before", 1.0, 9), session("after", 1.02, 10));
    after.variants[0].values_pps[2] = 0.0;
    for sides in [[&before, &after], [&after, &before]] {
        let sides = sides.map(|session| vec![session.clone()]);
        let error = compare_sessions(&sides, &[], SETTINGS).unwrap_err();
        let said = error.to_string();
        assert!(
            said.starts_with("after, session 1: observation 3 of "),
            "{said}"
        );
        assert!(
            said.contains(" is 0, and only rates above 0 can be compared"),
            "{said}"
        );
    }
}

#[test]
fn a_run_that_was_resumed_holds_several_sessions() {
    let resumed = Synthetic {
        sessions: 2,
        ..Synthetic::default()
    }
    .loaded();
    let resumed = of_run("resumed", &resumed);
    let numbers: Vec<Option<u32>> = resumed.iter().map(|session| session.number).collect();
    assert_eq!(numbers, [Some(1), Some(2)]);
    assert!(
        resumed
            .iter()
            .all(|session| session.variants[0].values_pps.len() == 4)
    );
    let whole = of_run("whole", &Synthetic::default().loaded());
    let refused = compare_sessions(&[resumed.clone(), whole.clone()], &[], SETTINGS).unwrap_err();
    let refused = refused.to_string();
    assert!(
        refused.starts_with("resumed (2 sessions) and whole (1 session): "),
        "{refused}"
    );
    assert!(refused.contains("test is 0.667;"), "{refused}");

    // Where reruns serve, or there are enough, it is said.
    let rerun = |(number, ratio): (usize, &f64)| {
        let mut session = whole[0].clone();
        session.directory = format!("rerun-{number}");
        let values = session
            .variants
            .iter_mut()
            .flat_map(|of| &mut of.values_pps);
        values.for_each(|pps| *pps *= ratio);
        session
    };
    let reruns: Vec<Session> = [1.0, 1.01, 1.02, 1.03]
        .iter()
        .enumerate()
        .map(rerun)
        .collect();
    let report = compare_sessions(&[resumed, whole], &reruns, SETTINGS).unwrap();
    let warning = report.warnings.iter().find(|of| of.code == "W202").unwrap();
    assert_eq!(warning.subjects, ["resumed"]);
    assert!(
        warning.text.contains("holds 2 sessions"),
        "{}",
        warning.text
    );
}

#[test]
fn sessions_are_compared_by_the_variants_that_all_have() {
    let strangers = Synthetic {
        variants: vec![("plain".to_owned(), 0.0), ("else".to_owned(), 1.0)],
        ..Synthetic::default()
    };
    let strangers = of_run("strangers", &strangers.loaded());
    let sides = [vec![session("spring", 1.0, 9)], strangers];
    let report = compare_sessions(&sides, &[], SETTINGS).unwrap();
    assert_eq!(report.groups.len(), 1);
    let left_out = report.warnings.iter().find(|of| of.code == "W221").unwrap();
    assert_eq!(left_out.subjects, ["else", "filter"]);
    let strangers = Synthetic {
        variants: vec![("something".to_owned(), 0.0), ("else".to_owned(), 1.0)],
        ..Synthetic::default()
    };
    let sides = [
        vec![session("spring", 1.0, 9)],
        of_run("strangers", &strangers.loaded()),
    ];
    let refusal = compare_sessions(&sides, &[], SETTINGS).unwrap_err();
    assert!(
        refusal
            .to_string()
            .contains("no measured variant in common")
    );
}

/// Sessions that forwarded all that was offered tell nothing of the device, whatever their rates.
#[test]
fn rates_of_the_load_are_no_verdict_on_the_device() {
    let ratios = [1.0, 1.01, 1.02, 1.03, 1.04];
    let of_load = |mut side: Vec<Session>, is_whole: bool| {
        let variants = side.iter_mut().flat_map(|session| &mut session.variants);
        variants.for_each(|variant| variant.is_carried_whole = is_whole);
        side
    };
    let judged = |whole: [bool; 2]| {
        let sides = [
            of_load(side("before", &ratios, 1), whole[0]),
            of_load(side("after", &ratios.map(|ratio| ratio * 0.8), 2), whole[1]),
        ];
        compare_sessions(&sides, &[], SETTINGS).unwrap()
    };
    let report = judged([true, true]);
    assert_eq!(words(&report), ["not limited by the DUT"; 2]);
    assert!(fails("worse:1%", &report).is_some());
    // Where one side dropped something, its rate is its own.
    assert_eq!(words(&judged([true, false])), ["different"; 2]);

    let of_run_under = |load: Load| {
        let mut loaded = Synthetic::default().loaded();
        loaded.resolved.traffics[0].load = load;
        of_run("run", &loaded)[0].variants[0].is_carried_whole
    };
    assert!(of_run_under(Load::Paced { pps: 1_000_000 }) && !of_run_under(Load::SelfClocked));
}

/// Variants of others come in any order, and some do not say their stratum.
#[test]
fn the_variants_of_a_family_are_one_family_wherever_they_stand() {
    let strata = [
        None,
        Some(Stratum::INET),
        None,
        Some(Stratum::INET6),
        Some(Stratum::INET),
    ];
    let of = |name: &str, ratio: f64| {
        let mut session = session(name, ratio, 9);
        let plain = session.variants[0].clone();
        let variants = strata.iter().enumerate();
        session.variants = variants
            .map(|(number, stratum)| {
                let mut variant = plain.clone();
                variant.name = variant.name.numbered(number);
                variant.label = format!("number {number}");
                variant.stratum = *stratum;
                variant
            })
            .collect();
        session
    };
    let ratios = [1.0, 1.01, 1.02, 1.03, 1.04];
    let of_side = |name: &str, less: f64| -> Vec<Session> {
        let numbered = ratios.iter().enumerate();
        numbered
            .map(|(number, ratio)| of(&format!("{name}-{number}"), ratio * less))
            .collect()
    };
    let sides = [of_side("before", 1.0), of_side("after", 0.9)];
    let report = compare_sessions(&sides, &[], SETTINGS).unwrap();
    let groups: Vec<(&str, usize)> = report
        .groups
        .iter()
        .map(|group| (group.title.as_deref().unwrap(), group.family_size))
        .collect();
    assert_eq!(
        groups,
        [
            ("number 0", 2),
            ("number 2", 2),
            ("number 1, IPv4", 2),
            ("number 4, IPv4", 2),
            ("number 3, IPv6", 1),
        ]
    );
}

#[test]
fn what_is_taken_for_one_configuration_and_is_not_is_warned_of() {
    let mut before = side("before", &[1.0, 1.03, 0.98, 1.01, 1.02], 1);
    let after = side("after", &[0.90, 0.93, 0.88, 0.91, 0.92], 2);
    before[2].configuration = Some(["another".to_owned(), "6.18.5".to_owned()]);
    let report = compare_sessions(&[before, after], &[], SETTINGS).unwrap();
    assert_eq!(codes(&report), ["W222"]);
    assert_eq!(report.warnings[0].subjects, ["before-1 and 4 more"]);
}

#[test]
fn a_hundred_sets_are_one_family() {
    let noise = [0.0, 1.0, -1.0, 2.0, -2.0, 0.5];
    let sets: Vec<Observations> = (0..100)
        .map(|number| {
            set(
                &format!("set {number}"),
                &noise.map(|noise| 1e6 + noise * 1e3),
            )
        })
        .collect();
    let settings = CompareSettings {
        ministat: Some(Dialect::default()),
        ..SETTINGS
    };
    let report = compare_independent(&sets, None, settings).unwrap();
    assert_eq!(report.groups[0].family_size, 99);
    // The baseline and six others each.
    assert_eq!(report.groups[0].ministat.len(), 17);
}

proptest! {
    #[test]
    fn any_observations_are_compared_or_refused(
        values in prop::collection::vec(prop::collection::vec(prop::num::f64::ANY, 0..6), 2..4),
        is_paired: bool,
    ) {
        let sets: Vec<Observations> = values.iter().map(|values| set("x\u{1b}[2J", values)).collect();
        let compared = if is_paired {
            compare_pairs(&sets, None, SETTINGS)
        } else {
            compare_independent(&sets, None, SETTINGS)
        };
        if let Ok(report) = compared {
            let text = render::compared(&report, 80, false);
            let acts = text.contains('\u{1b}');
            prop_assert!(!acts);
            prop_assert!(render::json(&report).is_ok());
        }
    }
}

/// Two runs, the second offered 3 % less; every rate follows what was offered.
#[test]
fn runs_that_were_offered_other_loads_are_adjusted_for() {
    let offered = |shift: f64, load: Load| {
        let mut loaded = Synthetic {
            variants: vec![("plain".to_owned(), 0.0)],
            control: false,
            ..Synthetic::default()
        }
        .loaded();
        loaded.resolved.traffics[0].load = load;
        for attempt in &mut loaded.attempts {
            let block = attempt.record.block;
            let more = 1.0 + (shift + f64::from(block * 3 % 8)) / 100.0;
            for trial in &mut attempt.trials {
                trial.tester.offered_frames = format!("{:.0}", 3e6 * more).parse().unwrap();
                let noise = f64::from(block * 5 % 8) / 1e4;
                trial.observation_pps = 1e6 * more * (1.0 + noise);
            }
        }
        loaded
    };
    let compared = |load| {
        let (first, second) = (offered(0.0, load), offered(-3.0, load));
        let sides = [of_run("a", &first), of_run("b", &second)];
        compare_sessions(&sides, &[], SETTINGS).unwrap()
    };
    let report = compared(Load::Overload);
    assert_eq!(codes(&report), ["W215", "W217"]);
    let [row] = &report.groups[0].offered_load[..] else {
        panic!("one directory is compared")
    };
    let sensitivity = row.sensitivity.as_ref().unwrap();
    assert!((row.shift_percent + 2.9).abs() < 0.1, "{row:?}");
    assert!(
        sensitivity.adjusted_percent.abs() < 0.1 && sensitivity.is_supported,
        "{row:?}"
    );
    assert!((sensitivity.slope.estimate - 1.0).abs() < 0.05, "{row:?}");
    assert!(sensitivity.one_slope_p.unwrap() > 0.05, "{row:?}");
    let text = render::compared(&report, 80, false);
    assert!(text.contains("at equal offered load"), "{text}");

    let report = compared(Load::SelfClocked);
    assert_eq!(codes(&report), ["W215"]);
    assert!(report.groups[0].offered_load.is_empty());
}
