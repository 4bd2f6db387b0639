//! The catalogue's answers on terminals and as a plot.

use fwdlab_catalogue::{Over, Problem, RateRow, ResultsRow, Series, series};
use fwdlab_report::render;

fn results(topic: &str, label: &str, finished: bool, verdict: Option<&str>) -> ResultsRow {
    ResultsRow {
        date: Some("2026-11-21T08:42:53Z".into()),
        topic: topic.into(),
        label: label.into(),
        question: None,
        platform: Some("Intel(R) Xeon(R) Platinum 8488C CPU @ 2.40GHz".into()),
        machine: None,
        nic: None,
        os: Some("6.18.44".into()),
        lab: Some("netns".into()),
        lab_kind: Some("netns".into()),
        regime: Some("self-clocked".into()),
        blocks: 8,
        finished,
        verdict: verdict.map(str::to_owned),
        kind: "own".into(),
        path: "results/x".into(),
    }
}

fn shelf() -> Vec<ResultsRow> {
    vec![
        results(
            "quickstart",
            "6.18.44-20261121T084253Z",
            true,
            Some("XDP fib forwarding: different +202.7 % (5 of 5 differ)"),
        ),
        results(
            "filter-and-rp-filter",
            "6.18.44-20261122T084253Z",
            true,
            Some(
                "packet filter=10 stateless rules, rp_filter=1: different, size undecided -28.9 % (3 of 3 differ)",
            ),
        ),
        results(
            "filter-and-rp-filter",
            "6.18.45-20261123T090000Z",
            false,
            Some("rp_filter=1: undecided -0.3 % (0 of 3 differ)"),
        ),
        ResultsRow {
            date: Some("2016".into()),
            platform: Some("AMD_GX-412TC_4Cores".into()),
            os: Some("FreeBSD 12.0-CURRENT r302532".into()),
            lab: None,
            ..results("firewalls", "fbsd12.head.r302532", true, None)
        },
    ]
}

#[test]
fn a_terminal_of_80_columns_shows_state_and_verdict() {
    let problem = Problem {
        path: "results/broken".into(),
        problem: "results/broken/plan.json: EOF while parsing an object at line 45 column 0; restore the file from \
                  a copy, or start afresh with --new"
            .into(),
    };
    insta::assert_snapshot!(
        "listing_80",
        render::listing(&shelf(), &[problem], Some(80))
    );
    insta::assert_snapshot!("listing_130", render::listing(&shelf(), &[], Some(130)));
}

#[test]
fn no_line_is_wider_than_the_terminal_and_states_stay() {
    for width in 60..200 {
        let listing = render::listing(&shelf(), &[], Some(width));
        for line in listing.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        for (row, state) in (1..).zip(["finished", "finished", "unfinished", "finished"]) {
            let line = listing.lines().nth(row).unwrap_or_default();
            assert!(line.contains(state), "{width}: {line}");
        }
        for effect in ["+202.7 %", "-28.9 %", "-0.3 %"] {
            assert!(
                width < 80 || listing.contains(effect),
                "{width}: {effect}\n{listing}"
            );
        }
    }
    // Where nothing is cut to a terminal, as in a pipe, every line is whole.
    let whole = render::listing(&shelf(), &[], None);
    assert!(whole.contains("rp_filter=1: different, size undecided -28.9 % (3 of 3 differ)"));
    assert!(!whole.contains('…') && !whole.contains("wider terminal"));
}

fn rate(topic: &str, platform: &str, revision: &str, control: bool, median_pps: f64) -> RateRow {
    RateRow {
        date: Some("2018-03-01".into()),
        topic: topic.into(),
        label: "fbsd12.head.projects-routing".into(),
        platform: Some(platform.into()),
        nic: Some("Intel_82580_4ports".into()),
        os: Some(format!("FreeBSD {revision}")),
        lab: None,
        regime: None,
        variant: if control { "again" } else { "pf-statefull" }.into(),
        variant_label: "pf, stateful".into(),
        control,
        family: "inet".into(),
        observations: 5,
        median_pps,
        min_pps: median_pps * 0.99,
        first_quartile_pps: median_pps * 0.995,
        third_quartile_pps: median_pps * 1.005,
        max_pps: median_pps * 1.01,
        iqr_pps: median_pps * 0.01,
        offered_load_pps: None,
        kind: "imported".into(),
        path: "imported/x".into(),
    }
}

fn over_revisions() -> Vec<Series> {
    let of =
        |revision, control, pps| rate("firewalls", "AMD_GX-412TC_4Cores", revision, control, pps);
    series(
        vec![
            of("12.0-CURRENT r302532", false, 521_000.0),
            of("12.0-CURRENT r302532", true, 523_000.0),
            of("11.0-RELEASE-p10 r319985", false, 498_000.0),
            of("11.0-RELEASE-p6 r310736M", false, 487_000.0),
            of("10.3-RELEASE r297492M", false, 411_000.0),
            of("9.3", false, 402_000.0),
        ],
        Over::Os,
    )
}

#[test]
fn one_configuration_over_revisions_is_readable_at_80_columns() {
    insta::assert_snapshot!("series_80", render::series(&over_revisions(), Some(80)));
}

#[test]
fn a_plot_names_topic_and_platform() {
    let svg = render::series_svg(&over_revisions(), Over::Os);
    assert!(svg.contains("Topic firewalls; platform AMD_GX-412TC_4Cores"));
    assert!(!svg.contains("again"));
    let many: Vec<Series> = (0..6)
        .flat_map(|number| {
            let topic = format!("topic-{number}");
            series(
                vec![rate(&topic, "<b>A & B</b>", "9.3", false, 1e5)],
                Over::Os,
            )
        })
        .collect();
    let svg = render::series_svg(&many, Over::Os);
    assert!(svg.contains("Topics topic-0, topic-1, topic-2, topic-3 and 2 more; platform &lt;b&gt;A &amp; B&lt;/b&gt;"));
}
