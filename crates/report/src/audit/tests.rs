use fwdlab_netbenches::audit::{AuditedBlock, AuditedDataset, AuditedRow};
use fwdlab_stats::Verdict;

use super::*;

fn dataset(folder: &str, name: &str, values: &[f64]) -> AuditedDataset {
    AuditedDataset {
        path: format!("{folder}/{name}.pps"),
        folder: folder.to_owned(),
        platform: Some("Atom".to_owned()),
        nic: Some("ix".to_owned()),
        topic: Some("firewalls".to_owned()),
        year: Some(2019),
        configuration: None,
        observations_pps: values.to_vec(),
        runs: Vec::new(),
    }
}

fn row(label: &str, dataset: usize, says_difference: Option<bool>) -> AuditedRow {
    AuditedRow {
        label: label.to_owned(),
        line: 7,
        dataset: Some(dataset),
        says_difference,
    }
}

/// Five runs around a rate, 0.1 % apart.
fn runs(rate: f64) -> [f64; 5] {
    [0.0, 0.002, -0.002, 0.001, -0.001].map(|off| rate * (1.0 + off))
}

fn sample() -> PublishedResults {
    let block = |rows: Vec<AuditedRow>| AuditedBlock {
        path: "P/README.md".to_owned(),
        line: 5,
        rows,
    };
    PublishedResults {
        folders: 2,
        datasets: vec![
            dataset("a", "base", &runs(1e6)),
            dataset("a", "slower", &runs(0.8e6)),
            dataset("a", "same", &runs(1.0001e6)),
            dataset("b", "hardly", &runs(1.005e6)),
            dataset("b", "zero", &[0.0; 5]),
        ],
        blocks: vec![
            block(vec![
                row("base", 0, None),
                row("slower", 1, Some(true)),
                row("same|<script>", 2, Some(true)),
                row("hardly", 3, Some(true)),
            ]),
            block(vec![row("base", 0, None), row("same", 2, Some(false))]),
            block(vec![row("base", 0, None), row("zero", 4, Some(true))]),
            block(vec![
                row("base", 0, None),
                AuditedRow {
                    dataset: None,
                    ..row("lost", 0, Some(true))
                },
            ]),
        ],
    }
}

#[test]
fn comparisons_are_judged_by_every_method_and_counted() {
    let report = AuditReport::build("archive", &sample());
    let verdicts = &report.verdicts;
    assert_eq!((verdicts.blocks, verdicts.comparisons.len()), (4, 4));
    assert_eq!(
        (verdicts.blocks_without_data, verdicts.blocks_without_test),
        (1, 1)
    );
    let words: Vec<_> = verdicts.comparisons.iter().map(|one| one.verdict).collect();
    let expected = [
        Verdict::Different,
        Verdict::Equivalent,
        Verdict::DifferentButNegligible,
        Verdict::Equivalent,
    ];
    assert_eq!(words, expected);
    let across = verdicts.comparisons.iter().map(|one| one.across_sessions);
    assert_eq!(across.collect::<Vec<_>>(), [false, false, true, false]);
    // The difference that is said of the same is of no method.
    for tally in &verdicts.methods {
        let figures = [
            tally.said,
            tally.said_kept,
            tally.unsaid,
            tally.unsaid_found,
        ];
        assert_eq!(figures, [3, 2, 1, 0], "{}", tally.method);
    }
    assert_eq!(verdicts.methods.len(), 9, "no steady states without logs");
    let counted = |verdict: Verdict| {
        let mut words = verdicts.words.iter();
        let tally = words.find(|tally| tally.verdict == verdict).unwrap();
        (tally.said, tally.unsaid)
    };
    assert_eq!(counted(Verdict::Equivalent), (1, 1));
    assert_eq!(counted(Verdict::Undecided), (0, 0));
}

#[test]
fn noise_is_told_by_group_where_there_are_enough() {
    let mut published = sample();
    let quiet = (0..10).map(|number| dataset("c", &format!("q{number}"), &runs(1e6)));
    published
        .datasets
        .extend(quiet.map(|dataset| AuditedDataset {
            topic: Some("quiet".to_owned()),
            year: None,
            ..dataset
        }));
    // Too few runs to say how they scatter.
    published.datasets.push(dataset("c", "few", &[1.0, 9.0]));
    let noise = NoiseSection::build(&published.datasets).unwrap();
    assert_eq!((noise.all.cv_percent.count, noise.all.runs), (14, 70));
    // The standard deviation of 0, 2, -2, 1 and -1 thousandths.
    assert!((noise.all.cv_percent.p50 - 2.5_f64.sqrt() / 10.0).abs() < 1e-9);
    let names: Vec<_> = noise.topics.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["quiet"]);
    assert!(noise.years.is_empty());
}

/// As the noise of the whole archive was published with.
#[test]
fn a_change_of_1_percent_takes_so_many_runs() {
    for (cv_percent, runs) in [(0.35, 3), (0.74, 10), (1.55, 39)] {
        let needed = noise::needed_runs(0.5, cv_percent).runs.unwrap();
        assert!(needed.abs_diff(runs) <= 1, "{cv_percent}: {needed}");
    }
}

#[test]
fn runs_are_held_against_the_others() {
    let tails = TailsSection::build(&[dataset("a", "x", &[100.0, 100.0, 100.0, 93.0, 103.0])]);
    let tails = tails.unwrap();
    assert_eq!(tails.runs, 5);
    let parts = [
        tails.beyond_2_percent,
        tails.beyond_5_percent,
        tails.beyond_10_percent,
    ];
    for (part, expected) in parts.iter().zip([0.4, 0.2, 0.0]) {
        assert!((part - expected).abs() < 1e-12, "{parts:?}");
    }
    assert_eq!(tails.low_of_beyond_5_percent, Some(1.0));
    assert_eq!(TailsSection::build(&[dataset("a", "x", &[1.0; 4])]), None);
}

#[test]
fn only_the_same_configuration_in_two_sessions_is_a_pair() {
    let of = |folder: &str, configuration: Option<usize>, rate: f64| AuditedDataset {
        configuration,
        ..dataset(folder, "x", &runs(rate))
    };
    let sessions = SessionsSection::build(&[
        of("a", Some(1), 1e6),
        of("a", Some(1), 2e6),
        of("b", Some(1), 1.1e6),
        of("b", Some(2), 1e6),
        of("c", None, 1e6),
        of("d", None, 1.3e6),
        // Copied, not measured again.
        of("e", Some(2), 1e6),
    ])
    .unwrap();
    assert_eq!(sessions.configurations, 1);
    let apart: Vec<_> = sessions
        .pairs
        .iter()
        .map(|pair| pair.apart_percent.round())
        .collect();
    assert_eq!(apart, [10.0, 82.0]);
    assert!(sessions.pairs.iter().all(|pair| pair.is_difference));
    assert_eq!(SessionsSection::build(&[of("a", Some(1), 1.0)]), None);
}

#[test]
fn an_order_that_means_something_shows() {
    let rising = |number: usize| {
        let first = number as f64;
        dataset(
            "a",
            "x",
            &[first, first + 1.0, first + 2.0, first + 3.0, first + 4.0],
        )
    };
    let mut datasets: Vec<_> = (0..3).map(rising).collect();
    datasets.push(dataset("a", "y", &[3.0, 1.0, 2.0, 5.0, 4.0]));
    // Values that are the same say nothing.
    datasets.push(dataset("a", "z", &[1.0, 1.0, 2.0, 3.0, 4.0]));
    let order = OrderSection::build(&datasets).unwrap();
    assert_eq!((order.datasets, order.monotone), (4, 3));
    assert!((order.expected - 4.0 * 2.0 / 120.0).abs() < 1e-12);
}

#[test]
fn blocks_of_many_comparisons_are_expected_to_err() {
    let mut published = sample();
    published.blocks[0].rows = (0..7).map(|_| row("x", 0, None)).collect();
    let verdicts = VerdictsSection::build(&sample());
    let practice = PracticeSection::build(&published, &verdicts).unwrap();
    let families: Vec<_> = practice
        .families
        .iter()
        .map(|row| (row.comparisons, row.blocks))
        .collect();
    assert_eq!((practice.runs, families), (5, vec![(1, 3), (6, 1)]));
    let expected = practice.expected_false_blocks();
    assert!((0.3..0.4).contains(&expected), "{expected}");
    let empty = VerdictsSection::build(&PublishedResults::default());
    assert_eq!(PracticeSection::build(&published, &empty), None);
}

#[test]
fn the_page_shows_hostile_names_as_text() {
    let mut published = sample();
    published.datasets[0].platform = Some("<img src=x>|\u{202e}".to_owned());
    let mut report = AuditReport::build("a|b\n# c", &published);
    let page = report.readme();
    assert!(page.contains("same\\|\\<script>"), "{page}");
    assert!(page.contains("a\\|b # c: 2 results folders"), "{page}");
    for plot in report.plots().into_values() {
        assert!(
            !plot.contains("<script>") && !plot.contains("<img"),
            "{plot}"
        );
    }
    report.source = "\u{1b}[31mred".to_owned();
    assert!(!report.terminal(80, false).contains('\u{1b}'));
}

#[test]
fn what_there_is_nothing_about_is_left_out() {
    let published = PublishedResults {
        folders: 1,
        datasets: vec![dataset("a", "x", &[1.0, 2.0])],
        blocks: Vec::new(),
    };
    let report = AuditReport::build("archive", &published);
    assert!(report.plots().is_empty());
    let page = report.readme();
    assert!(!page.contains("plots/") && !page.contains("NaN"), "{page}");
    assert_eq!(page.matches("\n## ").count(), 1, "{page}");
}
