//! Reports of made-up runs: their text, that it is always the same, and that no name can act.

mod synthetic;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fwdlab_archive::{ArchiveWarning, Finished, Loaded, Place, format_observation};
use fwdlab_model::record::Fate;
use fwdlab_model::{
    Binding, Competitor, CpuSpeed, CpuTimes, Factor, Forwarder, Forwards, InvalidReason, LabKind,
    Level, Load, Order, RateBasis, Ready, Record, Reference, ReferenceData, SCHEMA_VERSION,
    SliceRecord, Stratum, System, Tester, TrialRecord, Upload, VariantName,
};
use fwdlab_report::{Preview, Reckoned, Report, ReportError, Warning, render};
use fwdlab_stats::ministat;
use proptest::prelude::*;
use synthetic::Synthetic;

fn report_of(run: &Synthetic) -> Report {
    Report::build(&run.loaded()).expect("made-up records are sound")
}

/// What is read of a report's JSON is written as the same JSON.
#[track_caller]
fn assert_read_back(report: &Report) {
    let json = |report: &Report| render::json(report).expect("a report is plain data");
    let written = json(report);
    let read: Report = serde_json::from_str(&written).expect("it is a report");
    assert_eq!(json(&read), written);
}

fn named(labels: &[&str]) -> Vec<(String, f64)> {
    labels
        .iter()
        .enumerate()
        .map(|(index, label)| ((*label).to_owned(), -2.0 * index as f64))
        .collect()
}

fn codes(report: &Report) -> Vec<&str> {
    report
        .warnings
        .iter()
        .map(|warning| warning.code.as_str())
        .collect()
}

/// Five variants, the A/A control among them, 8 blocks of 10 rounds.
#[test]
fn a_finished_run() {
    let report = report_of(&Synthetic::default());
    insta::assert_snapshot!("readme", render::readme(&report, "derived/"));
    insta::assert_snapshot!(
        "effects.svg",
        render::effects_svg(&report, &report.comparisons[0])
    );
    insta::assert_snapshot!("trials.svg", render::trials_svg(&report));
    insta::assert_snapshot!("distributions.svg", render::distributions_svg(&report));
    let terminal = render::terminal(&report, Some(Path::new("results/x/README.md")), 80, false);
    insta::assert_snapshot!("terminal", terminal);
}

/// Each traffic is judged by itself, and whether an effect changes with the traffic is a question of its own.
#[test]
fn effects_by_traffic_stand_beside_each_other_and_their_changes_are_judged() {
    let loaded = synthetic::by_traffic().loaded();
    let report = Report::build(&loaded).unwrap();
    assert_read_back(&report);
    let strata: Vec<String> = { &report.comparisons }
        .iter()
        .map(|comparison| comparison.stratum.to_string())
        .collect();
    assert_eq!(strata, ["inet-few", "inet6-few", "inet-many", "inet6-many"]);
    assert_eq!(report.traffic_effects.len(), 2);
    let changes = |family: usize| {
        let changes = report.traffic_effects[family].changes.iter();
        changes
            .map(|change| {
                assert_eq!(change.traffic.as_str(), "many");
                assert_eq!(change.effect.blocks.len(), 8);
                (change.variant.as_str(), change.verdict.shows_difference)
            })
            .collect::<Vec<_>>()
    };
    let [rules, conntrack, xdp] = [
        "nftables-10-stateless-rules-1",
        "nftables-conntrack-2",
        "xdp-fib-forwarding-3",
    ];
    assert_eq!(
        changes(0),
        [(rules, false), (conntrack, false), (xdp, true)]
    );
    assert_eq!(
        changes(1),
        [(rules, false), (conntrack, false), (xdp, false)]
    );
    let change = report.traffic_effects[0].changes[2].effect.estimate_percent;
    assert!((change + 20.0).abs() < 2.0, "{change}");

    let readme = render::readme(&report, "derived/");
    let from = readme.find("## IPv4 by traffic").unwrap();
    let until = readme[from..]
        .find("## Every trial")
        .map_or(readme.len(), |at| from + at);
    insta::assert_snapshot!("by_traffic", &readme[from..until]);
    let terminal = render::terminal(&report, None, 80, false);
    assert!(terminal.contains("IPv4 by traffic"), "{terminal}");
    let files = render::derived_files(&report, &loaded).unwrap();
    insta::assert_snapshot!("by_traffic.svg", files["traffic-1-inet.svg"]);
    assert!(files["report.html"].contains("id=\"traffic\""));
}

#[test]
fn a_run_that_is_not_finished_says_how_far_it_is() {
    let report = report_of(&Synthetic {
        measured_blocks: 3,
        ..Synthetic::default()
    });
    let readme = render::readme(&report, "");
    assert!(readme.contains("This run is not finished: 3 of 8 blocks are measured."));
    assert!(codes(&report).contains(&"W201"));
    assert!(readme.contains("[-∞, +∞]"));
    let report = report_of(&Synthetic {
        measured_blocks: 0,
        ..Synthetic::default()
    });
    let readme = render::readme(&report, "");
    assert!(readme.contains("0 of 8 blocks"));
    assert!(readme.contains("No verdict"));
}

#[test]
fn a_control_says_what_it_shows_at_its_width() {
    let control = |round_noise_percent| {
        let report = report_of(&Synthetic {
            round_noise_percent,
            ..Synthetic::default()
        });
        report.comparisons[0].control.clone().unwrap()
    };
    let narrow = control(0.3);
    assert_eq!((narrow.passed, narrow.is_too_wide), (Some(true), false));
    assert!(
        narrow
            .sentence
            .ends_with("no difference at the 1 % level, as it must be"),
        "{}",
        narrow.sentence
    );
    let wide = control(30.0);
    assert_eq!((wide.passed, wide.is_too_wide), (Some(true), true));
    let half_width = wide
        .row
        .effect
        .as_ref()
        .unwrap()
        .half_width_percent()
        .unwrap();
    assert!(half_width > 5.0);
    let says = format!(
        "the interval is too wide for the control to show anything (±{half_width:.1} %, against a threshold of 1 %)"
    );
    assert!(wide.sentence.contains(&says), "{}", wide.sentence);
    assert!(!wide.sentence.contains("must be"), "{}", wide.sentence);
}

#[test]
fn a_limit_that_variants_share_is_warned_of() {
    let mut loaded = Synthetic::default().loaded();
    assert!(!codes(&Report::build(&loaded).unwrap()).contains(&"W107"));
    let held: Vec<_> = loaded.resolved.variants[..2]
        .iter()
        .map(|variant| variant.name.clone())
        .collect();
    for trial in loaded
        .attempts
        .iter_mut()
        .flat_map(|attempt| &mut attempt.trials)
        .filter(|trial| held.contains(&trial.variant))
    {
        trial.observation_pps = 14_880_952.0;
    }
    let report = Report::build(&loaded).unwrap();
    let warning = report
        .warnings
        .iter()
        .find(|warning| warning.code == "W107")
        .unwrap();
    assert_eq!(
        warning.subjects,
        ["no filter", "nftables, 10 stateless rules"]
    );
    assert!(
        warning.text.starts_with("8 of 8 observations"),
        "{}",
        warning.text
    );
}

/// Multiplies what every slice forwarded by what is given for it and the slice before it.
fn change_slices(loaded: &mut Loaded, factor: impl Fn(&SliceRecord, Option<&SliceRecord>) -> f64) {
    for attempt in &mut loaded.attempts {
        attempt
            .slices
            .sort_by_key(|slice| (slice.stratum, slice.round, slice.position));
        let before = attempt.slices.clone();
        for (index, slice) in attempt.slices.iter_mut().enumerate() {
            let previous = index.checked_sub(1).map(|previous| &before[previous]);
            let frames = slice.forwarded_frames as f64 * factor(slice, previous);
            slice.forwarded_frames = format!("{frames:.0}").parse().expect("digits");
            slice.undisturbed_frames = slice.forwarded_frames;
        }
    }
}

fn warning<'a>(report: &'a Report, code: &str) -> &'a Warning {
    let mut warnings = report.warnings.iter();
    warnings.find(|warning| warning.code == code).expect(code)
}

#[test]
fn what_lingers_from_one_variant_to_the_next_is_warned_of() {
    let mut loaded = Synthetic::default().loaded();
    let quiet = Report::build(&loaded).unwrap();
    for code in ["W108", "W109", "W110"] {
        assert!(!codes(&quiet).contains(&code), "{code}");
    }
    let name = loaded.resolved.variants[2].name.clone();
    change_slices(&mut loaded, |_, previous| {
        let lingers = previous.is_some_and(|previous| previous.variant == name);
        if lingers { 0.95 } else { 1.0 }
    });
    let report = Report::build(&loaded).unwrap();
    let warning = warning(&report, "W108");
    assert_eq!(warning.subjects, ["nftables conntrack"]);
    assert!(
        warning.text.contains("settle for 150 ms in place of 50 ms"),
        "{}",
        warning.text
    );
    let slices = &report.slices[&Stratum::INET];
    let (after, found) = slices.predecessor.as_ref().unwrap();
    assert_eq!(after, &name);
    assert!((found.effect_percent + 5.0).abs() < 1.0, "{found:?}");
    assert!(!codes(&report).contains(&"W109"));
    // In sequence, what lingers cannot be told from the variant that follows.
    loaded.resolved.design.order = Order::InSequence;
    let report = Report::build(&loaded).unwrap();
    assert!(codes(&report).contains(&"W212") && !codes(&report).contains(&"W108"));
    assert_eq!(report.slices[&Stratum::INET].predecessor, None);
}

#[test]
fn a_place_that_differs_is_warned_of() {
    let mut loaded = Synthetic::default().loaded();
    change_slices(
        &mut loaded,
        |slice, _| {
            if slice.position == 0 { 0.95 } else { 1.0 }
        },
    );
    let report = Report::build(&loaded).unwrap();
    let text = &warning(&report, "W109").text;
    assert!(
        text.contains("place 1 of 5") && text.contains("750 ms"),
        "{text}"
    );
    assert!(!codes(&report).contains(&"W108"));
}

#[test]
fn two_kinds_of_set_up_are_warned_of_with_both_rates() {
    let mut loaded = Synthetic::default().loaded();
    let name = loaded.resolved.variants[1].name.clone();
    let is_slow = |block: u32| [3, 6, 7].contains(&block);
    for attempt in &mut loaded.attempts {
        if is_slow(attempt.record.block) {
            let trials = attempt.trials.iter_mut();
            for trial in trials.filter(|trial| trial.variant == name) {
                trial.observation_pps /= 2.0;
            }
            let slices = attempt.slices.iter_mut();
            for slice in slices.filter(|slice| slice.variant == name) {
                slice.forwarded_frames /= 2;
                slice.undisturbed_frames /= 2;
            }
        }
    }
    let report = Report::build(&loaded).unwrap();
    let warning = warning(&report, "W110");
    assert_eq!(warning.subjects, ["nftables, 10 stateless rules"]);
    let text = &warning.text;
    assert!(
        text.starts_with("its block effects lie in two groups, 5 about -21"),
        "{text}"
    );
    assert!(
        text.contains(" and 3 about -61") && text.contains("measure 27 or more"),
        "{text}"
    );
    assert_eq!(
        text.matches("Mpps").count() + text.matches("kpps").count(),
        2
    );
}

#[test]
fn slices_in_two_groups_are_warned_of() {
    let mut loaded = Synthetic::default().loaded();
    let name = loaded.resolved.variants[3].name.clone();
    change_slices(&mut loaded, |slice, _| {
        let switches = slice.variant == name && slice.round % 2 == 0;
        if switches { 0.7 } else { 1.0 }
    });
    let report = Report::build(&loaded).unwrap();
    let warning = warning(&report, "W110");
    assert_eq!(warning.subjects, ["XDP fib forwarding"]);
    assert!(
        warning
            .text
            .starts_with("its slices, against the middle one"),
        "{}",
        warning.text
    );
    let correlations = &report.slices[&Stratum::INET].lag_1_autocorrelation_by_variant;
    assert!(correlations[&name] < -0.5, "{correlations:?}");
}

/// A run with data of an earlier session beside it, in sequence.
fn with_a_reference() -> Loaded {
    let mut loaded = Synthetic::default().loaded();
    let data = ReferenceData {
        path: "earlier/2025.inet.pps".to_owned(),
        sha256: "e3b0c442".to_owned(),
        observations_pps: vec![2.0e6, 2.2e6, 2.1e6],
    };
    loaded.resolved.references = vec![Reference {
        label: "last | year".to_owned(),
        strata: [(Stratum::INET, data)].into(),
    }];
    loaded
}

#[test]
fn what_was_lost_is_told_by_variant_and_reason() {
    let self_clocked = report_of(&Synthetic::default());
    assert_eq!(self_clocked.losses, []);
    assert!(!render::readme(&self_clocked, "").contains("## Frames lost"));

    let mut loaded = Synthetic::default().loaded();
    loaded.resolved.traffics[0].load = Load::Overload;
    let filtered = loaded.resolved.variants[1].name.clone();
    let attempts = loaded.attempts.iter_mut();
    for trial in attempts.flat_map(|attempt| &mut attempt.trials) {
        let is_filtered = trial.variant == filtered;
        (trial.tester.offered_frames, trial.tester.forwarded_frames) =
            (1000, if is_filtered { 750 } else { 1000 });
        trial.dut.drops = [(
            "a | full ring".to_owned(),
            if is_filtered { 250 } else { 0 },
        )]
        .into();
        if is_filtered {
            trial.kernel_drop_reasons = [("CPU_BACKLOG".to_owned(), 7)].into();
        }
    }
    let report = Report::build(&loaded).expect("made-up records are sound");
    assert_eq!(report.losses.len(), loaded.resolved.variants.len());
    let readme = render::readme(&report, "");
    for row in [
        "| no filter | IPv4 | 8000 | 8000 | 0 | 0 % |  |",
        "| nftables, 10 stateless rules | IPv4 | 8000 | 6000 | 2000 | 25.0 % | \
         a \\| full ring 2000 |",
        "- nftables, 10 stateless rules, IPv4: CPU_BACKLOG 56",
    ] {
        assert!(readme.contains(row), "{row}\n{readme}");
    }
}

#[test]
fn a_readme_says_where_the_load_is_generated_and_what_the_result_is_the_cost_of() {
    let said = |load: Load, dut_cpu: Option<u32>| {
        let mut loaded = Synthetic::default().loaded();
        loaded.resolved.traffics[0].load = load;
        for session in &mut loaded.sessions {
            session.placement.dut_cpu = dut_cpu;
        }
        let report = Report::build(&loaded).expect("made-up records are sound");
        render::readme(&report, "")
    };
    let paced = Load::Paced { pps: 400_000 };
    let same_core = "with the generator and the sink on the same core";
    let own = said(paced, Some(2));
    for part in [
        "Load: paced at 400 kpps; the generator is on CPU 1; DUT and sink are on CPU 2, the harness on CPU 0",
        "with the sink on the same CPU and the generator on another",
    ] {
        assert!(own.contains(part), "{part}\n{own}");
    }
    assert!(!own.contains(same_core), "{own}");
    let in_turns = said(paced, None);
    assert!(
        in_turns.contains("paced at 400 kpps; the generator is on CPU 1\n"),
        "{in_turns}"
    );
    assert!(in_turns.contains(same_core), "{in_turns}");
}

#[test]
fn frames_that_the_tester_did_not_transmit_are_shown_among_the_losses() {
    const REASON: &str = "not transmitted by the tester";
    let mut loaded = Synthetic::default().loaded();
    for attempt in &mut loaded.attempts {
        for trial in &mut attempt.trials {
            trial.tester.not_transmitted_frames = 5;
        }
        for frames in attempt.record.conservation.values_mut() {
            frames.not_transmitted_frames = 7;
        }
    }
    let report = Report::build(&loaded).expect("made-up records are sound");
    let blocks = loaded.attempts.len() as u64;
    for loss in &report.losses {
        assert_eq!(loss.drops[REASON], 5 * blocks);
        assert_eq!(loss.dropped_frames, 5 * blocks);
    }
    assert!(!report.losses.is_empty());
    for frames in report.conservation.values() {
        assert_eq!(frames.drops[REASON], 7 * blocks);
    }
    let json = serde_json::to_value(&report).unwrap()["conservation"].to_string();
    assert!(!json.contains("not_transmitted_frames"), "{json}");
}

/// Overload in which every block offers each variant another load, `shift_percent` more than the
/// baseline's on the whole, and rates that follow the offered load with that slope.
fn with_offered_load(shift_percent: f64, scatter_percent: f64, slope: f64) -> Loaded {
    let mut loaded = Synthetic {
        variants: vec![("plain".to_owned(), 0.0), ("filtered".to_owned(), -4.0)],
        block_noise_percent: 0.05,
        round_noise_percent: 0.02,
        ..Synthetic::default()
    }
    .loaded();
    loaded.resolved.traffics[0].load = Load::Overload;
    let filtered = loaded.resolved.variants[1].name.clone();
    for attempt in &mut loaded.attempts {
        // 0, 2, -1, 1, -2, 0, 2, -1: not in step with anything else.
        let step = f64::from(attempt.record.block * 2 % 5) - 2.0;
        let more = |variant| {
            let own = if variant == &filtered {
                shift_percent + scatter_percent * step
            } else {
                -scatter_percent * step / 3.0
            };
            1.0 + own / 100.0
        };
        for slice in &mut attempt.slices {
            let more = more(&slice.variant);
            let rate = more.powf(slope);
            slice.offered_frames = whole(300_000.0 * more);
            slice.forwarded_frames = whole(slice.forwarded_frames as f64 * rate);
            slice.undisturbed_frames = slice.forwarded_frames;
        }
        for trial in &mut attempt.trials {
            let more = more(&trial.variant);
            trial.tester.offered_frames = whole(3_000_000.0 * more);
            trial.observation_pps *= more.powf(slope);
        }
    }
    loaded
}

fn whole(value: f64) -> u64 {
    format!("{value:.0}").parse().expect("digits are a number")
}

#[test]
fn an_offered_load_that_moved_is_warned_of_and_adjusted_for() {
    let loaded = with_offered_load(-3.0, 0.5, 1.0);
    let report = Report::build(&loaded).expect("made-up records are sound");
    assert!(codes(&report).contains(&"W217"), "{:?}", report.warnings);
    let [row] = &report.comparisons[0].offered_load[..] else {
        panic!("one variant is compared")
    };
    assert!(
        row.differs && (row.shift_percent + 3.0).abs() < 0.5,
        "{row:?}"
    );
    // The rate follows the offered load: of 7 % less, 3 % are its.
    let effect = report.comparisons[0].rows[1].effect.as_ref().unwrap();
    assert!((effect.estimate_percent + 6.9).abs() < 0.5, "{effect:?}");
    let sensitivity = row.sensitivity.as_ref().unwrap();
    assert!((sensitivity.adjusted_percent + 4.0).abs() < 0.5, "{row:?}");
    assert!((sensitivity.slope.estimate - 1.0).abs() < 0.2 && sensitivity.is_supported);
    assert!(sensitivity.slope.p < 0.05);
    let readme = render::readme(&report, "");
    let line = format!("- **filtered**: {}", row.sentence);
    assert!(readme.contains("## Offered load") && readme.contains(&line));
    let terminal = render::terminal(&report, None, 80, false);
    assert!(terminal.contains("at equal offered load"), "{terminal}");
    insta::assert_snapshot!("offered_load", row.sentence);
    assert_read_back(&report);

    // The verdict is what it was.
    let mut paced = loaded.clone();
    for attempt in &mut paced.attempts {
        for slice in &mut attempt.slices {
            slice.offered_frames = 300_000;
        }
        for trial in &mut attempt.trials {
            trial.tester.offered_frames = 3_000_000;
        }
    }
    let equal = Report::build(&paced).unwrap();
    assert_eq!(equal.comparisons[0].rows, report.comparisons[0].rows);
    assert!(!codes(&equal).contains(&"W217"));
    let row = &equal.comparisons[0].offered_load[0];
    assert!(!row.differs && row.sensitivity.is_none(), "{row:?}");
    let terminal = render::terminal(&equal, None, 80, false);
    assert!(!terminal.contains("offered load"), "{terminal}");
}

#[test]
fn an_offered_load_that_hardly_moved_tells_no_slope() {
    let report = Report::build(&with_offered_load(-3.0, 0.002, 0.0)).unwrap();
    let row = &report.comparisons[0].offered_load[0];
    assert!(row.differs);
    assert!(!row.sensitivity.as_ref().unwrap().is_supported);
    assert!(
        row.sentence.ends_with("nothing can be adjusted by it"),
        "{}",
        row.sentence
    );
    // Less than half the threshold is not warned of, however certain.
    let report = Report::build(&with_offered_load(-0.4, 0.002, 0.0)).unwrap();
    let row = &report.comparisons[0].offered_load[0];
    assert!(
        row.shift_interval.unwrap().high_percent < 0.0 && !row.differs,
        "{row:?}"
    );
    assert!(!codes(&report).contains(&"W217"));
}

/// Where generator and DUT take turns, offered load is what comes out.
#[test]
fn a_self_clocked_load_is_not_adjusted_for() {
    let mut loaded = with_offered_load(-3.0, 0.5, 1.0);
    loaded.resolved.traffics[0].load = Load::SelfClocked;
    let report = Report::build(&loaded).unwrap();
    assert!(report.comparisons[0].offered_load.is_empty());
    assert!(!codes(&report).contains(&"W217"));
    assert!(!render::readme(&report, "").contains("## Offered load"));
}

/// Records of few blocks, and such as do not say what was offered.
#[test]
fn offered_loads_that_are_not_known_are_passed_over() {
    let mut loaded = with_offered_load(-3.0, 0.5, 1.0);
    loaded.attempts.truncate(2);
    let report = Report::build(&loaded).unwrap();
    let row = &report.comparisons[0].offered_load[0];
    assert!(row.sensitivity.is_none() && row.shift_interval.is_none() && !row.differs);
    for attempt in &mut loaded.attempts {
        attempt
            .slices
            .iter_mut()
            .for_each(|slice| slice.offered_frames = 0);
    }
    let report = Report::build(&loaded).unwrap();
    assert!(report.comparisons[0].offered_load.is_empty());
}

#[test]
fn an_earlier_session_is_shown_and_not_judged() {
    let report = Report::build(&with_a_reference()).expect("made-up records are sound");
    let readme = render::readme(&report, "");
    let row = "| last \\| year | – | earlier session | 2\u{202f}100\u{202f}000 | 476.2 |";
    assert!(readme.contains(row), "{readme}");
    assert!(
        readme.contains("median of 3 observations in `earlier/2025.inet.pps` (SHA-256 `e3b0c442`)")
    );
    let terminal = render::terminal(&report, Some(Path::new("x")), 80, false);
    assert!(
        terminal.contains("last | year: 2.10 Mpps (earlier session, nothing is"),
        "{terminal}"
    );

    // Nothing else changes: the same verdicts, words and plots.
    let without = report_of(&Synthetic::default());
    let mut compared = report.comparisons.clone();
    compared[0].references.clear();
    assert_eq!(compared, without.comparisons);
    let mut inet6 = with_a_reference();
    let strata = &mut inet6.resolved.references[0].strata;
    let data = strata.remove(&Stratum::INET).expect("it is there");
    strata.insert(Stratum::INET6, data);
    assert_eq!(Report::build(&inet6).expect("sound"), without);
}

#[test]
fn combined_factors_have_main_effects_and_interactions() {
    let variants = [
        ("neither", 0.0),
        ("a", -10.0),
        ("b", -20.0),
        ("both", -35.0),
    ];
    let run = Synthetic {
        variants: variants
            .map(|(label, effect)| (label.to_owned(), effect))
            .to_vec(),
        ..Synthetic::default()
    };
    assert!(report_of(&run).comparisons[0].factorial.is_none());

    let mut loaded = run.loaded();
    let factor = |name: &str| Factor {
        name: name.to_owned(),
        description: None,
        levels: vec![Level::Boolean(false), Level::Boolean(true)],
        default: Level::Boolean(false),
    };
    loaded.resolved.factors = vec![factor("rules"), factor("offload | x")];
    let levels = [
        (false, false),
        (true, false),
        (false, true),
        (true, true),
        (false, false),
    ];
    for (variant, (rules, offload)) in loaded.resolved.variants.iter_mut().zip(levels) {
        variant.levels = [("rules", rules), ("offload | x", offload)]
            .map(|(name, level)| (name.to_owned(), Level::Boolean(level)))
            .into();
    }
    let report = Report::build(&loaded).expect("made-up records are sound");
    let factorial = report.comparisons[0]
        .factorial
        .as_ref()
        .expect("two by two");
    assert_eq!(factorial.main_effects.len(), 2);
    let interaction = &factorial.interactions[0];
    assert_eq!(interaction.label, "rules true x offload | x true");
    // 0.65 / (0.9 x 0.8)
    let estimate = interaction.effect.estimate_percent;
    assert!((estimate + 9.7).abs() < 1.0, "{estimate}");
    let readme = render::readme(&report, "");
    for line in [
        "**What each factor does**",
        "| interaction | effect | verdict | p |",
        "| rules true x offload \\| x true | -9.",
        "corrected together",
    ] {
        assert!(readme.contains(line), "{line}\n{readme}");
    }
    let terminal = render::terminal(&report, None, 80, false);
    assert!(
        terminal.contains("Interactions: what both together do"),
        "{terminal}"
    );
    assert!(render::methods(&report, 80, false).contains("sign-flip"));
}

#[test]
fn an_order_that_was_not_random_is_warned_of() {
    let mut loaded = Synthetic::default().loaded();
    loaded.resolved.design.order = Order::InSequence;
    let report = Report::build(&loaded).expect("made-up records are sound");
    assert!(codes(&report).contains(&"W212"));
    assert!(!codes(&report_of(&Synthetic::default())).contains(&"W212"));
}

#[test]
fn what_is_held_constant_is_said_once() {
    let mut loaded = Synthetic::default().loaded();
    let level = Level::Integer(351);
    loaded.resolved.factors.push(Factor {
        name: "harvest.mask".to_owned(),
        description: None,
        levels: vec![level.clone()],
        default: level.clone(),
    });
    for variant in &mut loaded.resolved.variants {
        variant
            .levels
            .insert("harvest.mask".to_owned(), level.clone());
    }
    let readme = render::readme(
        &Report::build(&loaded).expect("made-up records are sound"),
        "",
    );
    let item = "  - Held constant: `harvest.mask=351`\n";
    assert_eq!(readme.matches(item).count(), 1, "{readme}");
    assert_eq!(readme.matches("harvest.mask").count(), 1, "{readme}");
}

/// Under overload, a router that forwards all that is offered is not the limit.
#[test]
fn a_variant_that_is_held_by_its_load_is_warned_of() {
    let codes_of = |load, held_blocks: u32, ratio: f64| {
        let mut loaded = with_offered_load(0.0, 0.0, 0.0);
        loaded.resolved.traffics[0].load = load;
        let filtered = loaded.resolved.variants[1].name.clone();
        for attempt in &mut loaded.attempts {
            let is_held = attempt.record.block <= held_blocks;
            for trial in &mut attempt.trials {
                if trial.variant == filtered && is_held {
                    let offered_pps = trial.tester.offered_frames as f64 / trial.measured_s;
                    trial.observation_pps = offered_pps * ratio;
                }
            }
        }
        let report = Report::build(&loaded).expect("made-up records are sound");
        let warnings = report.warnings.into_iter();
        warnings
            .filter(|warning| warning.code == "W218")
            .flat_map(|warning| warning.subjects)
            .collect::<Vec<_>>()
    };
    assert_eq!(codes_of(Load::Overload, 0, 0.9995), [""; 0]);
    assert_eq!(codes_of(Load::Overload, 1, 0.9995), [""; 0]);
    assert_eq!(codes_of(Load::Overload, 2, 0.9995), ["filtered"]);
    assert_eq!(codes_of(Load::Overload, 8, 0.998), [""; 0]);
    // To keep up is what a paced load asks for.
    assert_eq!(codes_of(Load::Paced { pps: 1_000_000 }, 8, 0.9995), [""; 0]);
}

#[test]
fn what_the_mechanisms_did_stands_per_packet() {
    let mut loaded = Synthetic {
        variants: named(&["threshold 0", "threshold 256"]),
        ..Synthetic::default()
    }
    .loaded();
    let first = loaded.resolved.variants[0].name.clone();
    for attempt in &mut loaded.attempts {
        for trial in &mut attempt.trials {
            let reclaims = if trial.variant == first {
                31_300
            } else {
                3_900
            };
            trial.dut.events = BTreeMap::from([
                ("received".to_owned(), 1_000_000),
                ("forwarded".to_owned(), 1_000_000),
                ("reclaims".to_owned(), reclaims),
                ("task drains".to_owned(), 0),
            ]);
        }
    }
    let report = Report::build(&loaded).expect("made-up records are sound");
    let readme = render::readme(&report, "");
    for line in [
        "## What the DUT did",
        "| forwarded | 1 | 1 |",
        "| reclaims | 0.0313 | 0.0039 |",
    ] {
        assert!(readme.contains(line), "{line}\n{readme}");
    }
    assert!(!readme.contains("task drains"), "{readme}");
    assert_read_back(&report);
    assert!(!render::readme(&report_of(&Synthetic::default()), "").contains("What the DUT did"));
}

#[test]
fn how_busy_the_dut_was_is_shown_and_what_limits_it() {
    let readme = |load: Load, busy_ratio: f64| {
        let mut loaded = Synthetic::default().loaded();
        loaded.resolved.traffics[0].load = load;
        for trial in loaded
            .attempts
            .iter_mut()
            .flat_map(|attempt| &mut attempt.trials)
        {
            let times = |busy_ratio: f64| CpuTimes {
                watched_s: trial.measured_s,
                busy_s: trial.measured_s * busy_ratio,
                interrupts_s: trial.measured_s * busy_ratio / 2.0,
                stolen_s: 0.0,
            };
            trial.dut.cpus = [(0, 0.2), (3, busy_ratio)]
                .map(|(cpu, ratio)| (cpu, times(ratio)))
                .into();
        }
        let report = Report::build(&loaded).expect("made-up records are sound");
        assert_read_back(&report);
        render::readme(&report, "")
    };
    let limited_elsewhere = "what limits this DUT is something else than its CPUs";
    let idle = readme(Load::Overload, 0.625);
    for line in [
        "## How busy the DUT was",
        "| CPU 0 | 20 % (interrupts 10 %) | 20 % (interrupts 10 %) |",
        "| CPU 3 | 62 % (interrupts 31 %) | 62 % (interrupts 31 %) |",
        limited_elsewhere,
    ] {
        assert!(idle.contains(line), "{line}\n{idle}");
    }
    assert!(!readme(Load::Overload, 0.97).contains(limited_elsewhere));
    assert!(!readme(Load::Paced { pps: 1_000_000 }, 0.625).contains(limited_elsewhere));
    assert!(!render::readme(&report_of(&Synthetic::default()), "").contains("How busy"));
}

#[test]
fn frames_in_memory_lack_no_ebpf() {
    let code_of = |tester| {
        let mut loaded = Synthetic::default().loaded();
        for session in &mut loaded.sessions {
            session.environment.tester = tester;
        }
        let report = Report::build(&loaded).expect("made-up records are sound");
        codes(&report).contains(&"W213")
    };
    assert!(code_of(Tester::AfXdp));
    assert!(code_of(Tester::PktGen));
    assert!(!code_of(Tester::MemoryInline));
    assert!(!code_of(Tester::MemoryThreaded));
}

#[test]
fn the_sender_is_the_one_that_the_blocks_name() {
    let mut loaded = Synthetic::default().loaded();
    for attempt in &mut loaded.attempts {
        attempt.record.tester = Some(Tester::AfXdp);
    }
    let report = Report::build(&loaded).expect("made-up records are sound");
    assert_eq!(report.lab.tester, Tester::AfXdp);
    assert!(codes(&report).contains(&"W213"));
}

#[test]
fn a_plan_says_why_profiles_are_not_taken() {
    let run = Synthetic::default().loaded();
    let preview = Preview::build(&run.resolved, &run.plan, &[], None, None, false);
    let mut preview = preview.expect("made-up plans are sound");
    assert!(!render::preview(&preview, 400).contains("no profiles"));
    preview.profiles_unavailable = Some("stacks are hidden".to_owned());
    let text = render::preview(&preview, 400);
    assert!(text.contains("no profiles: stacks are hidden"), "{text}");
}

#[test]
fn a_plan_on_hosts_of_their_own_promises_neither_rounds_nor_time() {
    let mut run = Synthetic::default().loaded();
    run.resolved.lab.kind = LabKind::Ssh(System::Freebsd);
    let preview = |run: &Loaded| {
        let preview = Preview::build(&run.resolved, &run.plan, &[], None, None, false);
        let text = render::preview(&preview.expect("made-up plans are sound"), 400);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let text = preview(&run);
    assert!(
        text.contains("Time not known, because nothing tells"),
        "{text}"
    );
    assert!(
        !text.contains("fwdlab doctor") && !text.contains("reboot"),
        "{text}"
    );

    let (name, kernels) = ("filter".to_owned(), BTreeMap::new());
    run.resolved.factors = vec![Factor {
        name: name.clone(),
        description: None,
        levels: vec![Level::Integer(0), Level::Integer(1)],
        default: Level::Integer(0),
    }];
    run.resolved.lab.bindings = [(name, Binding::Kernel(kernels))].into();
    let text = preview(&run);
    assert!(text.contains("filter needs a reboot"), "{text}");
    assert!(text.contains("one round of whole measurements"), "{text}");
    assert!(!text.contains("slices of"), "{text}");
    let slice = format!("one slice of {} ms after", run.resolved.design.slice_ms);
    assert!(text.contains(&slice), "{text}");
    assert!(!text.contains("other slice"), "{text}");

    let image = Upload {
        path: "new.img".to_owned(),
        sha256: String::new(),
        found: PathBuf::new(),
    };
    let images = [("0".to_owned(), None), ("1".to_owned(), Some(image))];
    run.resolved.lab.bindings = [("filter".to_owned(), Binding::Image(images.into()))].into();
    let text = preview(&run);
    assert!(
        text.contains("filter is written to the DUT's other slice"),
        "{text}"
    );
}

fn preview_of(run: &Loaded, earlier: &[Loaded]) -> Preview {
    Preview::build(&run.resolved, &run.plan, earlier, None, Some(83.0), false)
        .expect("made-up plans are sound")
}

#[test]
fn a_plan_is_shown_with_what_earlier_runs_say() {
    let mut run = with_a_reference();
    let levels = (0..4).map(|index| Level::Text(format!("level-{index}")));
    run.resolved.factors = vec![Factor {
        name: "filter".to_owned(),
        description: None,
        levels: levels.clone().collect(),
        default: Level::Text("level-0".to_owned()),
    }];
    for (variant, level) in run.resolved.variants.iter_mut().zip(levels) {
        variant.levels = [("filter".to_owned(), level)].into();
    }
    run.resolved.variants[2].unavailable = Some("nft is not installed".to_owned());
    let rounds = run.resolved.design.rounds as usize;
    run.plan.blocks[0].strata[0].rounds.truncate(2);
    assert_eq!(rounds, 10);
    let earlier = [Synthetic::default().loaded()];
    let preview = preview_of(&run, &earlier);
    insta::assert_snapshot!("preview", render::preview(&preview, 80));
    for width in [20, 40, 60] {
        let text = render::preview(&preview, width);
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width}: {line:?}");
        }
        insta::assert_snapshot!(format!("preview_{width}"), text);
    }
    insta::assert_snapshot!("preview.json", render::json(&preview).expect("plain data"));

    let asked = Preview::build(
        &run.resolved,
        &run.plan,
        &[],
        Some("not root".to_owned()),
        Some(1.0),
        true,
    );
    let text = render::preview(&asked.expect("sound"), 80);
    assert!(
        text.contains("which variants the lab can have (not root)"),
        "{text}"
    );
    assert!(
        text.contains("not known: there is no earlier run"),
        "{text}"
    );
}

#[test]
fn a_plan_tells_what_each_method_would_take() {
    let run = Synthetic::default().loaded();
    let with_methods = |run: &Loaded, earlier: &[Loaded]| {
        Preview::build(&run.resolved, &run.plan, earlier, None, Some(83.0), true).expect("sound")
    };
    let preview = with_methods(&run, std::slice::from_ref(&run));
    let text = render::preview(&preview, 80);
    let (_, table) = text
        .split_once("How many it would take")
        .expect("it was asked for");
    insta::assert_snapshot!("preview_methods", table);
    for width in [20, 40, 60] {
        let text = render::preview(&preview, width);
        let lines = text.lines();
        let widest = lines.map(|line| line.chars().count()).max();
        assert!(widest <= Some(width), "{text}");
    }
    let json = render::json(&preview).expect("plain data");
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    let methods = &json["detectable"][0]["reckoned"]["methods"];
    let first = serde_json::to_string_pretty(&methods[0]).expect("plain data");
    insta::assert_snapshot!("preview_methods.json", first);
    assert_eq!(methods.as_array().expect("a list").len(), 11);

    // Whether the verdicts' line is that of the plan, and what blocks are for: the machine drifts by 3 %.
    let reckoned = preview.detectable[0]
        .reckoned
        .as_ref()
        .expect("there is an earlier run");
    let verdicts = &reckoned.methods[0];
    assert_eq!(verdicts.smallest_percent, reckoned.smallest_effect_percent);
    assert_eq!(verdicts.size_for_threshold, reckoned.blocks_for_threshold);
    let welch = &reckoned.methods[3];
    assert!(welch.size_for_threshold > Some(5 * verdicts.size_for_threshold.unwrap()));

    // Both strata have a table of their own, and without earlier runs there is none.
    let both = Synthetic {
        strata: vec![Stratum::INET, Stratum::INET6],
        ..Synthetic::default()
    }
    .loaded();
    let text = render::preview(&with_methods(&both, std::slice::from_ref(&both)), 80);
    assert!(text.contains("by each method, IPv6"), "{text}");
    assert!(!render::preview(&with_methods(&run, &[]), 80).contains("by each method"));
}

/// Five blocks show nothing, and a run without any noise everything.
#[test]
fn plans_at_the_ends_of_what_can_be_shown() {
    let earlier = Synthetic::default().loaded();
    let mut short = earlier.clone();
    short.resolved.design.blocks = 5;
    let text = render::preview(&preview_of(&short, std::slice::from_ref(&earlier)), 80);
    assert!(text.contains("none: so few blocks show nothing"), "{text}");
    let quiet = Synthetic {
        block_noise_percent: 0.0,
        round_noise_percent: 0.0,
        ..Synthetic::default()
    }
    .loaded();
    let text = render::preview(&preview_of(&earlier, &[quiet]), 80);
    assert!(text.contains("within the threshold of 1 %"), "{text}");
}

#[test]
fn runs_of_the_same_experiment_go_before_others() {
    let run = Synthetic::default().loaded();
    let mut other = Synthetic {
        block_noise_percent: 8.0,
        ..Synthetic::default()
    }
    .loaded();
    other.resolved.name = "other".to_owned();
    let mut unmeasured = Synthetic {
        measured_blocks: 1,
        ..Synthetic::default()
    }
    .loaded();
    unmeasured.sessions.clear();
    let reckoned = |earlier: &[Loaded]| {
        let preview = preview_of(&run, earlier);
        preview.detectable[0].reckoned.clone()
    };
    let same = reckoned(&[other.clone(), run.clone()]).expect("there is an earlier run");
    let others = reckoned(&[other, unmeasured.clone()]).expect("there is an earlier run");
    assert!(same.same_experiment && !others.same_experiment);
    assert_eq!(same.runs, ["quickstart/made-up"]);
    assert_eq!((same.degrees_of_freedom, same.compared), (7, 3));
    let smallest =
        |reckoned: &Reckoned| reckoned.smallest_effect_percent.expect("8 blocks suffice");
    assert!(smallest(&others) > 3.0 * smallest(&same));
    assert_eq!(reckoned(&[unmeasured]), None);
}

#[test]
fn a_run_of_the_control_alone_tells_how_much_a_lab_scatters() {
    let run = Synthetic::default().loaded();
    let mut control = Synthetic {
        variants: named(&["none"]),
        ..Synthetic::default()
    }
    .loaded();
    control.resolved.name = "doctor".to_owned();
    let preview = preview_of(&run, &[control]);
    let reckoned = preview.detectable[0].reckoned.as_ref();
    let reckoned = reckoned.expect("the control has block effects");
    assert_eq!(reckoned.degrees_of_freedom, 7);
    assert!(!reckoned.same_experiment);
}

#[test]
fn without_a_session_there_is_no_report() {
    let loaded = Loaded {
        sessions: Vec::new(),
        ..Synthetic::default().loaded()
    };
    assert!(matches!(
        Report::build(&loaded),
        Err(ReportError::NoSession)
    ));
}

#[test]
fn the_same_records_give_the_same_bytes() {
    let run = Synthetic {
        strata: vec![Stratum::INET, Stratum::INET6],
        invalid: vec![(2, 1)],
        ..Synthetic::default()
    };
    let (here, there) = (run.loaded(), run.loaded());
    let elsewhere = Loaded {
        dir: "/somewhere/else".into(),
        ..there
    };
    let files = |loaded| {
        let report = Report::build(loaded).unwrap();
        render::derived_files(&report, loaded).unwrap()
    };
    assert_eq!(files(&here), files(&elsewhere));
    let here = Report::build(&here).unwrap();
    assert_read_back(&here);
}

#[test]
fn invalid_blocks_are_shown_and_judged_a_second_time() {
    let report = report_of(&Synthetic {
        invalid: vec![(2, 1), (5, 0)],
        ..Synthetic::default()
    });
    let comparison = &report.comparisons[0];
    assert_eq!(comparison.rows[1].trials, 8);
    assert_eq!(comparison.rows_with_all_trials[1].trials, 10);
    let invalid = report.invalid.as_ref().unwrap();
    assert_eq!(invalid.rows[1].invalid, 1);
    assert_eq!(invalid.rows[1].trials, 10);
    assert!(invalid.rows[1].reasons[0].starts_with("block 2: the hypervisor took"));
    // A block is judged as one, so all its five trials are hollow.
    assert_eq!(
        report.trials.iter().filter(|trial| !trial.counts).count(),
        10
    );
    assert!(render::readme(&report, "").contains("With all trials in"));
    let svg = render::trials_svg(&report);
    assert!(svg.contains("hollow") && svg.contains("2′"));
    let svg = render::distributions_svg(&report);
    assert!(
        svg.contains("class=\"hollow c1\"") && svg.contains("8 of 10 trials"),
        "{svg}"
    );
}

/// A neighbour slows every slice for half of its time, each by another amount; where nothing is left
/// out, that widens the interval.
#[test]
fn disturbed_time_is_left_out_and_shown_beside() {
    let mut loaded = Synthetic {
        variants: vec![("plain".to_owned(), 0.0), ("slower".to_owned(), -4.0)],
        block_noise_percent: 0.05,
        round_noise_percent: 0.05,
        ..Synthetic::default()
    }
    .loaded();
    for attempt in &mut loaded.attempts {
        let block = attempt.record.block;
        for (number, slice) in (block..).zip(&mut attempt.slices) {
            slice.undisturbed_s = slice.time_s / 2.0;
            slice.undisturbed_frames = slice.forwarded_frames / 2;
            slice.forwarded_frames -= slice.forwarded_frames / 200 * u64::from(number * 37 % 50);
        }
        for trial in &mut attempt.trials {
            let own = attempt
                .slices
                .iter()
                .filter(|slice| (slice.stratum, &slice.variant) == (trial.stratum, &trial.variant));
            trial.undisturbed_s = own.map(|slice| slice.undisturbed_s).sum();
        }
    }
    let report = Report::build(&loaded).unwrap();
    let comparison = &report.comparisons[0];
    let stratum = comparison.stratum;
    assert!((report.disturbance[&stratum].percent - 50.0).abs() < 0.1);
    assert!(report.disturbance[&stratum].blocks_over_all_time.is_empty());
    let half_width = |rows: &[fwdlab_report::Row]| {
        let effect = rows[1].effect.as_ref().unwrap();
        effect.half_width_percent().unwrap()
    };
    assert!(half_width(&comparison.rows) * 2.0 < half_width(&comparison.rows_over_all_time));
    // The baseline, the variant and the control.
    assert_eq!(comparison.rows_over_all_time.len(), 3);
    let readme = render::readme(&report, "");
    assert!(readme.contains("## Disturbed time"), "{readme}");
    assert!(!codes(&report).contains(&"W211"));

    // Blocks with too little undisturbed time say so.
    for attempt in &mut loaded.attempts {
        if attempt.record.block < 3 {
            attempt
                .record
                .rate_basis
                .insert(stratum, RateBasis::AllTime);
        }
    }
    let report = Report::build(&loaded).unwrap();
    assert_eq!(report.disturbance[&stratum].blocks_over_all_time, [1, 2]);
    assert!(codes(&report).contains(&"W211"));
    let kept = "left out, but for 2 blocks of IPv4, of which too little would remain";
    let said = |report: &Report| {
        let terminal = render::terminal(report, None, 400, false);
        [render::readme(report, ""), terminal]
    };
    assert!(said(&report).iter().all(|text| text.contains(kept)));

    // Where that is all of them, nothing was left out, and nothing differs from what is shown above.
    for attempt in &mut loaded.attempts {
        attempt
            .record
            .rate_basis
            .insert(stratum, RateBasis::AllTime);
    }
    for text in said(&Report::build(&loaded).unwrap()) {
        assert!(text.contains("left out in no block"), "{text}");
        assert!(!text.contains("but for"), "{text}");
        assert!(!text.contains("With nothing left out"), "{text}");
    }
}

/// What is not compared may do whatever work it does.
#[test]
fn variants_that_do_other_work_than_their_baseline_are_warned_of() {
    let mut loaded = Synthetic {
        titles: vec![Some("A".to_owned()), Some("B".to_owned())],
        ..Synthetic::default()
    }
    .loaded();
    let program = |forwards| {
        Some(Forwarder {
            start: vec!["forward".to_owned()],
            ready: Ready::Prints("ready".to_owned()),
            stop: None,
            forwards,
        })
    };
    let levels = [
        ("level-1", program(Forwards::Routed)),
        ("level-2", program(Forwards::Mac)),
        ("level-3", program(Forwards::Mac)),
    ];
    let levels = levels.map(|(level, program)| (level.to_owned(), program));
    let binding = Binding::Forwarder(BTreeMap::from(levels));
    let bindings = &mut loaded.resolved.lab.bindings;
    bindings.insert("filter".to_owned(), binding);
    let names = (loaded.resolved.variants.iter()).map(|variant| variant.name.clone());
    let names: Vec<VariantName> = names.collect();
    let texts = |loaded: &Loaded| {
        let report = Report::build(loaded).unwrap();
        let found = (report.warnings.into_iter()).filter(|warning| warning.code == "W232");
        found.map(|warning| warning.text).collect::<Vec<_>>()
    };

    // Routed with routed, and MAC addresses with MAC addresses.
    let [first, second] = &mut loaded.resolved.comparisons[..] else {
        panic!("two have titles");
    };
    first.variants = vec![names[1].clone()];
    second.baseline = names[2].clone();
    second.variants = vec![names[3].clone()];
    assert_eq!(texts(&loaded), [""; 0]);

    loaded.resolved.comparisons[0].variants = names[1..3].to_vec();
    let [text] = &texts(&loaded)[..] else {
        panic!("{:?}", texts(&loaded));
    };
    assert_eq!(
        text,
        "compared with no filter (routes), which does other work: nftables conntrack (rewrites MAC addresses alone)"
    );

    loaded.resolved.variants[2].unavailable = Some("not here".to_owned());
    for attempt in &mut loaded.attempts {
        attempt.trials.retain(|trial| trial.variant != names[2]);
        attempt.slices.retain(|slice| slice.variant != names[2]);
    }
    loaded.resolved.comparisons[1].baseline = names[0].clone();
    loaded.resolved.comparisons[1].variants = vec![names[1].clone()];
    assert_eq!(texts(&loaded), [""; 0]);
}

#[test]
fn competitors_silent_observations_and_clock_steps_are_warned_of() {
    let mut loaded = Synthetic::default().loaded();
    let report = Report::build(&loaded).unwrap();
    for code in ["W225", "W226", "W227"] {
        assert!(!codes(&report).contains(&code), "{code}");
    }
    let competitor = |name: &str, time_s| Competitor {
        cpu: 3,
        name: name.to_owned(),
        time_s,
    };
    for attempt in &mut loaded.attempts {
        for trial in &mut attempt.trials {
            let measured_s = trial.measured_s;
            trial.competitors = vec![
                competitor("a <b>compiler</b>", measured_s * 0.2),
                competitor("sshd", measured_s * 0.002),
            ];
        }
    }
    loaded.attempts[1].trials[0].observation_pps = 0.0;
    loaded.attempts[2].record.clock_step_s = Some(-3600.0);
    let report = Report::build(&loaded).unwrap();
    let texts = |code: &str| -> Vec<String> {
        let warnings = report
            .warnings
            .iter()
            .filter(|warning| warning.code == code);
        warnings
            .map(|warning| format!("{}: {}", warning.subjects.join(", "), warning.text))
            .collect()
    };
    let [compiler] = &texts("W225")[..] else {
        panic!("one of them took a thousandth: {:?}", texts("W225"));
    };
    assert!(
        compiler.starts_with("a <b>compiler</b>: had 20.0 % of the measured time on CPU 3"),
        "{compiler}"
    );
    assert!(
        texts("W226")[0].contains("1 observation is 0"),
        "{:?}",
        texts("W226")
    );
    assert!(
        texts("W227")[0].contains("-3600.0 s in block"),
        "{:?}",
        texts("W227")
    );
    let page = &render::derived_files(&report, &loaded).unwrap()["report.html"];
    assert!(!page.contains("<b>compiler</b>"), "a name is text");
    let speed = |highest_khz, throttled| CpuSpeed {
        cpu: 3,
        lowest_khz: Some(800_000),
        highest_khz,
        throttled,
    };
    let warned = |loaded: &_| {
        let report = Report::build(loaded).unwrap();
        let found = report
            .warnings
            .into_iter()
            .find(|warning| warning.code == "W228");
        found.map(|warning| warning.text)
    };
    loaded.attempts[0].record.cpu_speeds = vec![speed(Some(3_400_000), 0)];
    loaded.attempts[1].record.cpu_speeds = vec![speed(Some(3_300_000), 0)];
    assert_eq!(warned(&loaded), None);
    loaded.attempts[1].record.cpu_speeds = vec![speed(Some(1_700_000), 0)];
    let moved = "was clocked at 1.70 to 3.40 GHz from block to block";
    assert_eq!(warned(&loaded).unwrap(), moved);
    // One of which no clock is known does not hide the others.
    loaded.attempts[2].record.cpu_speeds = vec![speed(None, 2)];
    let hot = "was slowed down 2 times for being too hot, at 1.70 to 3.40 GHz";
    assert_eq!(warned(&loaded).unwrap(), hot);
}

#[test]
fn wrong_frames_of_attempts_that_do_not_count_are_warned_of() {
    let mut loaded = Synthetic {
        invalid: vec![(2, 1), (3, 1)],
        ..Synthetic::default()
    }
    .loaded();
    let warnings = |loaded: &Loaded| {
        let report = Report::build(loaded).unwrap();
        let warnings = (report.warnings.into_iter()).filter(|warning| warning.code == "W233");
        let said = warnings.map(|warning| (warning.subjects, warning.text));
        said.collect::<Vec<_>>()
    };
    assert!(warnings(&loaded).is_empty());
    let wrong = |frames| InvalidReason::Verification {
        frames,
        what: "TTL".to_owned(),
    };
    let mut invalid = (loaded.attempts.iter_mut()).filter(|of| of.fate == Fate::Invalid);
    let of_one = &mut invalid.next().unwrap().trials;
    of_one[1].invalid.push(wrong(2));
    for trial in &mut invalid.next().unwrap().trials {
        trial.invalid.push(wrong(3));
    }
    let of_one = vec!["nftables, 10 stateless rules".to_owned()];
    let text = "checked frames of IPv4 were wrong (TTL) in attempts at block 2, which do not count";
    let unknown = "checked frames of IPv4 were wrong (TTL) in attempts at block 3, which do not count; whose they were is not known";
    let expected = [(Vec::new(), unknown.to_owned()), (of_one, text.to_owned())];
    assert_eq!(warnings(&loaded), expected);
}

#[test]
fn a_block_given_up_and_a_torn_line_are_warned_of() {
    let mut loaded = Synthetic {
        invalid: vec![(3, 1)],
        ..Synthetic::default()
    }
    .loaded();
    loaded
        .attempts
        .retain(|attempt| attempt.record.block != 3 || attempt.fate == Fate::Invalid);
    loaded.finished = Some(Finished {
        schema: SCHEMA_VERSION,
        finished: "2026-11-21T10:00:00Z".to_owned(),
        accepted_blocks: vec![1, 2, 4, 5, 6, 7, 8],
        given_up_blocks: vec![3],
    });
    loaded.warnings.push(ArchiveWarning::TornLine {
        place: Place {
            path: "/here/trials.jsonl".into(),
            line: Some(9),
        },
        bytes: 17,
    });
    let report = Report::build(&loaded).unwrap();
    assert!(report.progress.is_finished);
    assert!(codes(&report).contains(&"W208") && codes(&report).contains(&"W209"));
    let readme = render::readme(&report, "");
    assert!(readme.contains("7 of 8 blocks") && !readme.contains("not finished"));
    assert!(!readme.contains("/here"));
}

#[test]
fn more_than_seven_variants_share_the_baseline_in_several_blocks() {
    let labels: Vec<String> = (0..12).map(|number| format!("variant {number}")).collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let report = report_of(&Synthetic {
        variants: named(&labels),
        ..Synthetic::default()
    });
    let blocks = &report.comparisons[0].ministat;
    assert_eq!(blocks.len(), 2);
    assert!(
        blocks
            .iter()
            .all(|block| block.starts_with("x variant 0\n+ "))
    );
    let datasets = |block: &str| {
        block
            .lines()
            .filter(|line| line.contains(" variant "))
            .count()
    };
    assert_eq!([datasets(&blocks[0]), datasets(&blocks[1])], [7, 6]);
}

/// What ministat prints from the `.pps` files is what stands in the README, names apart.
#[test]
fn ministat_sees_what_the_files_hold() {
    let run = Synthetic::default();
    let loaded = run.loaded();
    let datasets = loaded.resolved.variants.iter().take(4).map(|variant| {
        let rows = loaded.accepted().into_iter().map(|attempt| {
            let mut trials = attempt.trials.iter();
            let trial = trials.find(|trial| trial.variant == variant.name).unwrap();
            format_observation(trial.observation_pps)
        });
        let points = rows.map(|row| row.parse().unwrap()).collect();
        ministat::Dataset::new(&variant.label, points).unwrap()
    });
    let layout = ministat::Layout {
        separate_bars: true,
        ..ministat::Layout::default()
    };
    let expected = ministat::Report::new(datasets.collect(), layout).unwrap();
    let report = report_of(&run);
    assert_eq!(report.comparisons[0].ministat, [expected.to_string()]);
    assert!(render::readme(&report, "").contains(&expected.to_string()));
}

/// A variant that the lab cannot have is listed and not judged.
#[test]
fn an_unavailable_variant_is_listed() {
    let mut loaded = Synthetic::default().loaded();
    let gone = loaded.resolved.variants[3].name.clone();
    loaded.resolved.variants[3].unavailable = Some("no <XDP> here".to_owned());
    for attempt in &mut loaded.attempts {
        attempt.trials.retain(|trial| trial.variant != gone);
        attempt.slices.retain(|slice| slice.variant != gone);
    }
    let report = Report::build(&loaded).unwrap();
    assert!(codes(&report).contains(&"W204"));
    assert_eq!(report.comparisons[0].family_size, 2);
    assert_eq!(report.comparisons[0].rows[3].verdict, None);
    assert!(render::readme(&report, "").contains("not run: no \\<XDP> here"));
    let svg = render::effects_svg(&report, &report.comparisons[0]);
    assert!(svg.contains("not available in this lab"));
    let svg = render::distributions_svg(&report);
    assert!(svg.contains("not available in this lab"));
}

/// The trials that a report shows one by one.
fn trials_of_record(loaded: &mut Loaded) -> impl Iterator<Item = &mut TrialRecord> {
    let records = loaded.records.iter_mut();
    records.filter_map(|record| match record {
        Record::Trial(trial) => Some(trial),
        Record::Block(_) => None,
    })
}

/// A variant that forwards nothing is the slowest that there is, and the report says so.
#[test]
fn a_variant_that_forwards_nothing_is_said_to() {
    let mut loaded = Synthetic::default().loaded();
    let silent = loaded.resolved.variants[1].name.clone();
    for attempt in &mut loaded.attempts {
        for trial in attempt
            .trials
            .iter_mut()
            .filter(|trial| trial.variant == silent)
        {
            trial.observation_pps = 0.0;
        }
        for slice in attempt
            .slices
            .iter_mut()
            .filter(|slice| slice.variant == silent)
        {
            slice.forwarded_frames = 0;
            slice.undisturbed_frames = 0;
        }
    }
    let report = Report::build(&loaded).unwrap();
    assert!(codes(&report).contains(&"W223"));
    let row = &report.comparisons[0].rows[1];
    let effect = row.effect.as_ref().unwrap();
    assert_eq!(row.verdict.as_ref().unwrap().words, "different");
    assert!(effect.interval.unwrap().high_percent < -99.9);
    assert_eq!((row.cost_ns, effect.cost_difference_ns), (None, None));
    let readme = render::readme(&report, "");
    assert!(readme.contains("-100.0 %"), "{readme}");
    let document = render::trials_svg(&report);
    roxmltree::Document::parse(&document).unwrap();
    for trial in trials_of_record(&mut loaded) {
        if trial.variant == silent {
            trial.observation_pps = 0.0;
        }
    }
    let report = Report::build(&loaded).unwrap();
    let document = render::distributions_svg(&report);
    roxmltree::Document::parse(&document).unwrap();
    assert!(document.contains("half of the trials or more forwarded nothing"));
}

#[test]
fn where_ministat_and_the_verdict_differ_the_readme_says_why() {
    // The blocks differ by 3 %, the effect is 1.5 %: only pairing finds it.
    let report = report_of(&Synthetic {
        variants: vec![
            ("plain".to_owned(), 0.0),
            ("a little slower".to_owned(), -1.5),
        ],
        block_noise_percent: 0.05,
        round_noise_percent: 0.2,
        ..Synthetic::default()
    });
    let comparison = &report.comparisons[0];
    assert_eq!(
        comparison.rows[1].verdict.as_ref().unwrap().words,
        "different"
    );
    assert!(comparison.ministat[0].contains("No difference proven"));
    let note = comparison.ministat_note.as_ref().unwrap();
    assert!(note.contains("a little slower (different)") && note.contains("pairing"));
    assert!(render::readme(&report, "").contains(note));
}

#[test]
fn comparisons_and_families_have_a_plot_each() {
    let loaded = Synthetic {
        titles: vec![Some("First".to_owned()), Some("Second".to_owned())],
        strata: vec![Stratum::INET, Stratum::INET6],
        ..Synthetic::default()
    }
    .loaded();
    let report = Report::build(&loaded).unwrap();
    let files = render::derived_files(&report, &loaded).unwrap();
    let readme = render::readme(&report, "derived/");
    for plot in ["1-inet", "1-inet6", "2-inet", "2-inet6"] {
        let name = format!("effects-{plot}.svg");
        assert!(files.contains_key(&name));
        assert!(readme.contains(&format!("](derived/{name})")));
    }
    assert!(readme.contains("## Second: IPv6"));
}

#[test]
fn a_terminal_of_eighty_columns_holds_every_line() {
    let report = report_of(&Synthetic {
        measured_blocks: 5,
        ..Synthetic::default()
    });
    let text = render::terminal(&report, Some(Path::new("README.md")), 80, false);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line:?}");
    }
    assert!(!text.contains('\x1b'));
    assert!(render::terminal(&report, Some(Path::new("README.md")), 80, true).contains("\x1b[1m"));
}

/// Frames that are meant to be dropped are distinguished from those that are lost.
#[test]
fn a_page_and_a_readme_say_why_frames_were_dropped() {
    let mut loaded = Synthetic::default().loaded();
    for attempt in &mut loaded.attempts {
        for frames in attempt.record.conservation.values_mut() {
            frames.drops = [("drop-at-ingress control".to_owned(), 1000)].into();
        }
    }
    let report = Report::build(&loaded).unwrap();
    let page = &render::derived_files(&report, &loaded).unwrap()["report.html"];
    for text in [page, &render::readme(&report, "")] {
        for words in [
            "8000 (drop-at-ingress control 8000)",
            "The drop-at-ingress control drops its frames on purpose",
        ] {
            assert!(text.contains(words), "{words}\n{text}");
        }
    }
}

#[test]
fn remedies_of_noise_fit_its_source() {
    let mut loaded = Synthetic::default().loaded();
    loaded.sessions[0].environment.noise_sources = vec![
        "this is a virtual machine: other guests share its cores, caches and memory".to_owned(),
        "SMT is on: the sibling of the load CPU shares its core".to_owned(),
    ];
    let report = Report::build(&loaded).unwrap();
    let of = |word: &str| {
        let mut warnings = report.warnings.iter();
        let warning =
            warnings.find(|warning| warning.code == "W203" && warning.text.contains(word));
        warning.unwrap().remedy.clone().unwrap()
    };
    assert!(
        of("virtual machine").starts_with("measure on bare metal, or"),
        "{}",
        of("virtual machine")
    );
    assert!(of("SMT").starts_with("remove it"), "{}", of("SMT"));
}

#[test]
fn noise_that_differs_in_figures_from_session_to_session_is_told_once() {
    let mut loaded = Synthetic::default().loaded();
    let load = |load: &str| format!("other work was running: load average {load} before the run");
    let first = loaded.sessions[0].clone();
    loaded.sessions = ["3.63", "4", "3.89"]
        .map(|average| {
            let mut session = first.clone();
            session.environment.noise_sources = vec!["SMT is on".to_owned(), load(average)];
            session
        })
        .to_vec();
    let report = Report::build(&loaded).unwrap();
    let warnings = report.warnings.iter();
    let noise: Vec<&str> = warnings
        .filter(|warning| warning.code == "W203")
        .map(|warning| warning.text.as_str())
        .collect();
    let of_load = load("4") + "; alike in 2 other sessions";
    assert_eq!(noise, ["SMT is on", of_load.as_str()]);
}

/// Beside an effect of many times the threshold its band is drawn as wide as can be seen, and said to be.
#[test]
fn the_band_of_the_threshold_is_seen_at_any_scale() {
    let band = |effect: f64| {
        let report = report_of(&Synthetic {
            variants: vec![("as it was".to_owned(), 0.0), ("other".to_owned(), effect)],
            ..Synthetic::default()
        });
        let svg = render::effects_svg(&report, &report.comparisons[0]);
        let document = roxmltree::Document::parse(&svg).unwrap();
        let band = document
            .descendants()
            .find(|node| node.attribute("class") == Some("threshold"));
        let width: f64 = band.unwrap().attribute("width").unwrap().parse().unwrap();
        (width, svg.contains("(drawn"))
    };
    let (narrow, is_said) = band(5000.0);
    assert!(narrow >= 7.9 && is_said, "{narrow}");
    let (true_width, is_said) = band(1.0);
    assert!(true_width > 50.0 && !is_said, "{true_width}");
}

/// Two hundred long names, a variant far above the others, and one trial far from its own.
#[test]
fn distributions_of_many_variants_stay_within_their_picture() {
    let label = |index: u32| format!("{} rules of a rather long description, {index}", index * 10);
    let mut loaded = Synthetic {
        variants: (0..200)
            .map(|index| (label(index), if index == 7 { 4000.0 } else { 0.0 }))
            .collect(),
        measured_blocks: 4,
        rounds: 1,
        ..Synthetic::default()
    }
    .loaded();
    let far = trials_of_record(&mut loaded).nth(5);
    far.expect("there are hundreds").observation_pps *= 90.0;
    let report = Report::build(&loaded).unwrap();
    let svg = render::distributions_svg(&report);
    let document = roxmltree::Document::parse(&svg).unwrap();
    let (width, height) = {
        let root = document.root_element();
        let side = |name: &str| root.attribute(name).unwrap().parse::<f64>().unwrap();
        (side("width"), side("height"))
    };
    for node in document.descendants() {
        for (name, limit) in [("x", width), ("cx", width), ("y", height), ("cy", height)] {
            if let Some(at) = node.attribute(name) {
                assert!(
                    (0.0..=limit).contains(&at.parse::<f64>().unwrap()),
                    "{node:?}"
                );
            }
        }
    }
    // Every name is told from every other, and what is too far to the right is marked there.
    let texts = document
        .descendants()
        .filter(|node| node.has_tag_name("text"));
    let names: std::collections::BTreeSet<&str> = texts
        .filter(|node| node.attribute("x") == Some("20"))
        .filter_map(|node| node.last_child()?.text())
        .collect();
    assert!(names.len() > 200, "{}", names.len());
    assert_eq!(svg.matches('▸').count(), 2);
    assert!(svg.contains("◂ or ▸: a"));
    assert!(svg.len() < 1_000_000, "{}", svg.len());
}

#[test]
fn no_fact_of_a_host_can_act_on_the_page() {
    let hostile = || ("a\u{1b}[2J\u{202e}".to_owned(), "b\u{7f}\r".to_owned());
    let mut loaded = synthetic::with_facts(Synthetic::default().loaded());
    for session in &mut loaded.sessions {
        session.environment.facts.extend([hostile()]);
    }
    for record in &mut loaded.records {
        if let Record::Block(block) = record {
            let facts = block.differing_facts.values_mut();
            facts.for_each(|facts| facts.extend([hostile()]));
        }
    }
    let report = Report::build(&loaded).expect("made-up records are sound");
    let page = &render::derived_files(&report, &loaded).unwrap()["report.html"];
    assert_eq!(page.matches(r"<dt>a\x1b[2J\u202e</dt>").count(), 1);
    assert_eq!(page.matches(r"<li>a\x1b[2J\u202e: ").count(), 1);
    let acts = |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || c == '\u{202e}';
    assert!(!page.contains(acts));
}

/// Cells of a table's row: bars that are not escaped, less one.
fn cells(row: &str) -> usize {
    let mut bars = 0;
    let mut escaped = false;
    for character in row.chars() {
        bars += usize::from(character == '|' && !escaped);
        escaped = character == '\\' && !escaped;
    }
    bars - 1
}

fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        r#"[|`<>&"'\\*_\[\]#~$!(){}a-z .=\-\n\r\t]{0,60}"#,
        Just("</text><script>alert(1)</script>".to_owned()),
        Just("]]><!--".to_owned()),
        Just("\u{1b}[2J\u{202e}\u{0}".to_owned()),
        Just("```\n# heading\n```".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_name_can_act(label in hostile(), other in hostile(), question in hostile()) {
        let report = report_of(&Synthetic {
            variants: vec![(label, 0.0), (other, -5.0)],
            question,
            measured_blocks: 3,
            rounds: 2,
            ..Synthetic::default()
        });
        for svg in [
            render::effects_svg(&report, &report.comparisons[0]),
            render::trials_svg(&report),
            render::distributions_svg(&report),
        ] {
            let document = roxmltree::Document::parse(&svg).unwrap();
            let allowed = [
                "svg", "title", "desc", "style", "rect", "line", "path", "polyline", "circle",
                "text",
            ];
            for node in document.descendants().filter(roxmltree::Node::is_element) {
                prop_assert!(allowed.contains(&node.tag_name().name()));
            }
        }
        let readme = render::readme(&report, "");
        let mut columns = None;
        let mut fence: Option<String> = None;
        for line in readme.lines() {
            let ticks: String = line.chars().take_while(|character| *character == '`').collect();
            match &fence {
                Some(open) if line == open => fence = None,
                None if ticks.len() >= 3 && ticks == line => fence = Some(ticks),
                None if line.starts_with('|') => {
                    let here = cells(line);
                    prop_assert_eq!(*columns.get_or_insert(here), here, "{}", line);
                }
                _ => columns = None,
            }
        }
        prop_assert!(fence.is_none());
        let headings = readme.lines().filter(|line| line.starts_with("# ")).count();
        // A question of nothing but white space leaves its heading empty.
        prop_assert!(headings <= 2);
        let terminal = render::terminal(&report, Some(Path::new("README.md")), 80, false);
        prop_assert!(!terminal.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
    }
}
