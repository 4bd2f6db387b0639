//! Observations compared: what the verdicts rest on, and what is refused.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod synthetic;

use fwdlab_model::{AddressFamily, LoadRegime};
use fwdlab_report::{
    Basis, CompareReport, CompareSettings, FactorialDesign, Observations, compare_blocks,
    compare_directories, compare_independent, compare_pairs, render,
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
    let report = compare_blocks(&loaded, AddressFamily::Inet, &variants, SETTINGS).unwrap();
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
        let directories = [("one".to_owned(), &loaded), ("other".to_owned(), &loaded)];
        [
            compare_blocks(&loaded, AddressFamily::Inet, &variants, settings),
            compare_directories(&directories, settings),
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

#[test]
fn directories_are_compared_variant_by_variant() {
    let (one, other) = (Synthetic::default().loaded(), Synthetic::default().loaded());
    let directories = [("one".to_owned(), &one), ("other".to_owned(), &other)];
    let report = compare_directories(&directories, SETTINGS).unwrap();
    assert_eq!(codes(&report), ["W215"]);
    // The control is the baseline once more, and no variant.
    assert_eq!(report.groups.len(), 4 * one.resolved.traffic.families.len());
    for group in &report.groups {
        assert_eq!(group.rows.len(), 2);
        let effect = group.rows[1].row.effect.as_ref().unwrap();
        assert!(effect.estimate_percent.abs() < 1e-9);
        assert_eq!(group.family_size, 4);
    }
    let strangers = Synthetic {
        variants: vec![("something".to_owned(), 0.0), ("else".to_owned(), 1.0)],
        ..Synthetic::default()
    };
    let strangers = strangers.loaded();
    let directories = [
        ("one".to_owned(), &one),
        ("strangers".to_owned(), &strangers),
    ];
    let refusal = compare_directories(&directories, SETTINGS).unwrap_err();
    assert!(
        refusal
            .to_string()
            .contains("no measured variant in common")
    );
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
            prop_assert!(render::compared_json(&report).is_ok());
        }
    }
}

/// Two runs, the second offered 3 % less; every rate follows what was offered.
#[test]
fn runs_that_were_offered_other_loads_are_adjusted_for() {
    let offered = |shift: f64, regime: LoadRegime| {
        let mut loaded = Synthetic {
            variants: vec![("plain".to_owned(), 0.0)],
            control: false,
            ..Synthetic::default()
        }
        .loaded();
        loaded.resolved.traffic.regime = regime;
        for attempt in &mut loaded.attempts {
            let block = attempt.record.block;
            let more = 1.0 + (shift + f64::from(block * 3 % 8)) / 100.0;
            for trial in &mut attempt.trials {
                trial.offered_frames = format!("{:.0}", 3e6 * more).parse().unwrap();
                let noise = f64::from(block * 5 % 8) / 1e4;
                trial.observation_pps = 1e6 * more * (1.0 + noise);
            }
        }
        loaded
    };
    let compared = |regime| {
        let (first, second) = (offered(0.0, regime), offered(-3.0, regime));
        let directories = [("a".to_owned(), &first), ("b".to_owned(), &second)];
        compare_directories(&directories, SETTINGS).unwrap()
    };
    let report = compared(LoadRegime::Overload);
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

    let report = compared(LoadRegime::SelfClocked);
    assert_eq!(codes(&report), ["W215"]);
    assert!(report.groups[0].offered_load.is_empty());
}
