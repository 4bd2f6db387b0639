use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use fwdlab_archive::sample::{self, BLOCKS};
use fwdlab_archive::{Choice, Results, write_derived};
use proptest::prelude::*;

use super::*;
use crate::entry::Entry;

/// A folder of results directories, and an index beside it.
struct Shelf {
    folder: tempfile::TempDir,
}

impl Shelf {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("results")).unwrap();
        Self { folder }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("results")
    }

    fn index(&self) -> PathBuf {
        self.folder.path().join("index.sqlite")
    }

    fn dir(&self, label: &str) -> PathBuf {
        self.root().join("quickstart").join(label)
    }

    /// Measures so many blocks more of a run, which begins where there is none.
    fn measure(&self, label: &str, blocks: u32) {
        let (resolved, plan) = (sample::resolved(), sample::plan());
        let choice = Choice {
            label: Some(label),
            new: false,
        };
        let run = sample::new_run(&resolved, &plan);
        let Ok(mut results) = Results::open_or_create(&self.root(), &run, &choice) else {
            return;
        };
        if results.next_session() == 1 {
            results.begin_session(sample::session(1)).unwrap();
        }
        let measured = u32::try_from(results.loaded().attempts.len()).unwrap();
        for block in measured + 1..=(measured + blocks).min(BLOCKS) {
            let outcome = sample::outcome(&plan, block, 1, 1, true);
            results
                .append_block(
                    &outcome.trials,
                    &outcome.block,
                    &outcome.slices,
                    &outcome.profiles,
                )
                .unwrap();
        }
        if measured + blocks > BLOCKS {
            results.finish("20261121T100000Z").unwrap();
        }
    }

    fn refreshed(&self, mut catalogue: Catalogue, now: SystemTime) -> (Answers, Refreshed) {
        let refreshed = catalogue.refresh(&[self.root()], now).unwrap();
        (answers(&mut catalogue), refreshed)
    }

    fn fresh(&self) -> Answers {
        let now = SystemTime::now();
        self.refreshed(Catalogue::in_memory().unwrap(), now).0
    }

    fn kept(&self, now: SystemTime) -> (Answers, Refreshed, bool) {
        let (catalogue, made_again) = Catalogue::open(&self.index()).unwrap();
        let (answers, refreshed) = self.refreshed(catalogue, now);
        (answers, refreshed, made_again)
    }
}

type Answers = (Vec<ResultsRow>, Vec<RateRow>, Vec<Problem>, Table);

fn answers(catalogue: &mut Catalogue) -> Answers {
    let everything = "SELECT path, topic, label, os, date, variant, family, position, session,
        forwarding_rate_pps, offered_load_pps FROM measured ORDER BY path, place, family, position";
    let filter = Filter::default();
    (
        catalogue.results(&filter).unwrap(),
        catalogue.rates(&filter).unwrap(),
        catalogue.problems().unwrap(),
        catalogue.select(everything, MINUTE).unwrap(),
    )
}

/// So late that every file has been left alone for long.
fn later() -> SystemTime {
    SystemTime::now() + Duration::from_secs(60)
}

/// Longer than any question here takes.
const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_question_without_an_end_ends_and_another_can_be_asked() {
    let mut catalogue = Catalogue::in_memory().unwrap();
    let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let late = catalogue.select(endless, Duration::from_millis(100));
    assert!(
        matches!(late, Err(CatalogueError::SlowAnswer { .. })),
        "{late:?}"
    );
    let large = catalogue.select(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT hex(zeroblob(4000000)) FROM n",
        MINUTE,
    );
    assert!(
        matches!(large, Err(CatalogueError::LargeAnswer { .. })),
        "{large:?}"
    );
    let huge = catalogue.select("SELECT length(zeroblob(100000000))", MINUTE);
    assert!(matches!(huge, Err(CatalogueError::Sql { .. })), "{huge:?}");
    let one = catalogue.select("SELECT 1", MINUTE).unwrap();
    assert_eq!(one.rows, [[Cell::Integer(1)]]);
}

#[test]
fn a_run_is_entered_with_what_counts_of_it() {
    let shelf = Shelf::new();
    shelf.measure("one", 2);
    let (results, rates, problems, selected) = shelf.fresh();
    assert_eq!(problems, []);
    let [row] = &results[..] else {
        panic!("{results:?}");
    };
    assert_eq!(row.date.as_deref(), Some("2026-11-21T08:42:53Z"));
    assert_eq!(
        (row.topic.as_str(), row.label.as_str()),
        ("quickstart", "one")
    );
    assert_eq!(row.platform.as_deref(), Some("A CPU"));
    assert_eq!(row.os.as_deref(), Some("6.18.44"));
    assert_eq!(row.regime.as_deref(), Some("self-clocked"));
    assert_eq!(
        (row.blocks, row.finished, row.kind.as_str()),
        (2, false, "own")
    );

    let variants: Vec<&str> = rates.iter().map(|rate| rate.variant.as_str()).collect();
    assert_eq!(variants, ["none", "nft", "xdp"]);
    let [first, second] = [10.0, 20.0].map(|block| 1_200_000.0 + block / 3.0);
    let rate = &rates[0];
    assert_eq!(rate.observations, 2);
    assert_eq!((rate.min_pps, rate.max_pps), (first, second));
    assert!((rate.median_pps - (first + second) / 2.0).abs() < 1e-6);
    assert!((rate.iqr_pps - (second - first) / 2.0).abs() < 1e-6);
    assert_eq!(rate.offered_load_pps, Some(1_300_010.0));
    assert_eq!(selected.rows.len(), 6);
}

#[test]
fn a_report_gives_its_clearest_finding() {
    let shelf = Shelf::new();
    shelf.measure("one", 2);
    let report = r#"{"variants":[{"name":"nft","label":"nftables"},{"name":"xdp","label":"XDP"}],
        "comparisons":[{"rows":[{"variant":"none","effect":null,"verdict":null},
        {"variant":"nft","effect":{"estimate_percent":-21.4},"verdict":{"words":"slower","shows_difference":true}},
        {"variant":"xdp","effect":{"estimate_percent":99},"verdict":{"words":"undecided","shows_difference":false}}]}]}"#;
    write_derived(&shelf.dir("one"), "report.json", report.as_bytes()).unwrap();
    let verdict = |shelf: &Shelf| shelf.fresh().0[0].verdict.clone();
    assert_eq!(
        verdict(&shelf).unwrap(),
        "nftables: slower -21.4 % (1 of 2 differ)"
    );
    write_derived(&shelf.dir("one"), "report.json", b"[]").unwrap();
    assert_eq!(verdict(&shelf), None);
}

#[test]
fn what_cannot_be_read_is_told_and_hides_nothing() {
    let shelf = Shelf::new();
    shelf.measure("good", 2);
    shelf.measure("bad", 2);
    fs::write(shelf.dir("bad").join("trials.jsonl"), "{\n").unwrap();
    fs::create_dir_all(shelf.root().join("odd/pipe")).unwrap();
    let pipe = shelf.root().join("odd/pipe");
    fs::copy(
        shelf.dir("good").join("resolved.json"),
        pipe.join("resolved.json"),
    )
    .unwrap();
    fs::create_dir(pipe.join("plan.json")).unwrap();
    let (results, rates, problems, _) = shelf.fresh();
    assert_eq!((results.len(), rates.len(), problems.len()), (1, 3, 2));
    assert!(
        problems[0].problem.contains("plan.json: is not a file"),
        "{problems:?}"
    );
    assert!(
        problems[1].problem.contains("trials.jsonl:1: "),
        "{problems:?}"
    );
}

#[test]
fn a_directory_is_found_once_whatever_way_leads_to_it() {
    let shelf = Shelf::new();
    shelf.measure("one", 1);
    std::os::unix::fs::symlink(shelf.root(), shelf.root().join("loop")).unwrap();
    let mut catalogue = Catalogue::in_memory().unwrap();
    let folders = [shelf.root(), shelf.dir("one"), shelf.root().join("loop")];
    catalogue.refresh(&folders, later()).unwrap();
    assert_eq!(catalogue.results(&Filter::default()).unwrap().len(), 1);
    let missing = catalogue.refresh(&[shelf.root().join("nothing")], later());
    assert!(matches!(missing, Err(CatalogueError::Archive(_))));
}

#[test]
fn a_kept_index_reads_only_what_changed() {
    let shelf = Shelf::new();
    for label in ["a", "b", "c"] {
        shelf.measure(label, 1);
    }
    let counts = |(_, refreshed, made_again): (Answers, Refreshed, bool)| {
        assert!(!made_again);
        (refreshed.read, refreshed.unchanged, refreshed.forgotten)
    };
    assert_eq!(counts(shelf.kept(later())), (3, 0, 0));
    assert_eq!(counts(shelf.kept(later())), (0, 3, 0));
    shelf.measure("b", 1);
    assert_eq!(counts(shelf.kept(later())), (1, 2, 0));
    fs::remove_dir_all(shelf.dir("a")).unwrap();
    assert_eq!(counts(shelf.kept(later())), (0, 2, 1));
    // Files of this very second may change again without another time.
    fs::remove_file(shelf.index()).unwrap();
    assert_eq!(counts(shelf.kept(SystemTime::now())), (2, 0, 0));
    assert_eq!(counts(shelf.kept(SystemTime::now())), (2, 0, 0));
}

#[test]
fn a_broken_or_older_index_is_made_again() {
    let shelf = Shelf::new();
    shelf.measure("one", 2);
    let expected = shelf.fresh();
    let (_, _, made_again) = shelf.kept(later());
    assert!(!made_again);
    let whole = fs::read(shelf.index()).unwrap();

    for sql in [
        "PRAGMA user_version = 0",
        "DROP VIEW measured",
        "ALTER TABLE results ADD COLUMN more TEXT",
    ] {
        fs::write(shelf.index(), &whole).unwrap();
        Connection::open(shelf.index())
            .unwrap()
            .execute_batch(sql)
            .unwrap();
        let (answers, _, made_again) = shelf.kept(later());
        assert!(made_again && answers == expected, "{sql}");
    }
    for length in [100, 4096, whole.len() / 2, whole.len() - 1] {
        fs::write(shelf.index(), &whole[..length]).unwrap();
        let (answers, _, made_again) = shelf.kept(later());
        assert!(made_again && answers == expected, "{length}");
        let (answers, _, made_again) = shelf.kept(later());
        assert!(!made_again && answers == expected, "{length}");
    }
}

#[test]
fn a_file_that_is_no_index_is_left_alone() {
    let shelf = Shelf::new();
    let other = shelf.folder.path().join("other.sqlite");
    Connection::open(&other)
        .unwrap()
        .execute_batch("CREATE TABLE t (x)")
        .unwrap();
    let text = shelf.folder.path().join("notes.txt");
    fs::write(&text, "notes").unwrap();
    for path in [other, text, shelf.root()] {
        let before = fs::read(&path).ok();
        let refused = Catalogue::open(&path);
        assert!(
            matches!(refused, Err(CatalogueError::Foreign { .. })),
            "{refused:?}"
        );
        assert_eq!(fs::read(&path).ok(), before);
    }
}

#[test]
fn an_index_is_never_written_into_a_results_directory() {
    let shelf = Shelf::new();
    shelf.measure("one", 1);
    let inside = shelf.dir("one").join("derived/index.sqlite");
    let link = shelf.folder.path().join("link.sqlite");
    fs::write(&inside, "").unwrap();
    std::os::unix::fs::symlink(&inside, &link).unwrap();
    for path in [shelf.dir("one").join("index.sqlite"), inside, link] {
        let refused = Catalogue::open(&path);
        assert!(
            matches!(refused, Err(CatalogueError::WithinResults { .. })),
            "{refused:?}"
        );
    }
    assert!(!shelf.dir("one").join("index.sqlite").exists());
}

#[test]
fn a_filter_is_a_part_or_a_pattern_of_the_whole() {
    let shelf = Shelf::new();
    shelf.measure("one", 1);
    let mut catalogue = Catalogue::in_memory().unwrap();
    catalogue.refresh(&[shelf.root()], later()).unwrap();
    let some = |text: &str| Some(text.to_owned());
    let finds = |filter: Filter| {
        let rates = catalogue.rates(&filter).unwrap().len();
        (catalogue.results(&filter).unwrap().len(), rates)
    };
    let platform = |text| {
        finds(Filter {
            platform: some(text),
            ..Filter::default()
        })
    };
    assert_eq!(platform("cpu"), (1, 3));
    assert_eq!(platform("a cpu"), (1, 3));
    assert_eq!(platform("? C*"), (1, 3));
    assert_eq!(platform("C*"), (0, 0));
    assert_eq!(platform("%"), (0, 0));
    assert_eq!(platform("' OR 1 --"), (0, 0));
    assert_eq!(
        finds(Filter {
            topic: some("impact of"),
            ..Filter::default()
        }),
        (1, 3)
    );
    assert_eq!(
        finds(Filter {
            nic: some(""),
            ..Filter::default()
        }),
        (0, 0)
    );
    assert_eq!(
        finds(Filter {
            variant: some("NFT"),
            ..Filter::default()
        }),
        (1, 1)
    );
    assert_eq!(
        finds(Filter {
            family: some("inet"),
            ..Filter::default()
        }),
        (1, 3)
    );
    assert_eq!(
        finds(Filter {
            family: some("inet6"),
            ..Filter::default()
        }),
        (1, 0)
    );
    let dates = |since: &str, until: &str| {
        let filter = Filter {
            since: since.parse().ok(),
            until: until.parse().ok(),
            ..Filter::default()
        };
        finds(filter).0
    };
    assert_eq!(dates("2026", "2026"), 1);
    assert_eq!(dates("2026-11-21", "2026-11-21"), 1);
    assert_eq!(dates("2026-11-21T08:42:53Z", "2027"), 1);
    assert_eq!(dates("2026-11-22", ""), 0);
    assert_eq!(dates("", "2026-10"), 0);
}

#[test]
fn a_question_in_sql_changes_nothing_and_reaches_nothing_else() {
    let shelf = Shelf::new();
    shelf.measure("one", 1);
    let other = shelf.folder.path().join("other.sqlite");
    let attach = format!("ATTACH '{}' AS other", other.display());
    let (mut catalogue, _) = Catalogue::open(&shelf.index()).unwrap();
    catalogue.refresh(&[shelf.root()], later()).unwrap();
    let before = answers(&mut catalogue);
    for sql in [
        "DELETE FROM results",
        "UPDATE results SET topic = 'x' RETURNING topic",
        "INSERT INTO levels VALUES (1, 'a', 'b')",
        "CREATE TEMP TABLE t (x)",
        "DROP TABLE results",
        "PRAGMA query_only = 0",
        "SELECT * FROM pragma_database_list",
        "VACUUM INTO '/dev/null'",
        "BEGIN",
        "SELECT load_extension('x')",
        "SELECT 1; SELECT 2",
        "SELECT ?1",
        "SELECT nonsense",
        "",
        &attach,
    ] {
        let refused = catalogue.select(sql, MINUTE);
        assert!(
            matches!(refused, Err(CatalogueError::Sql { .. })),
            "{sql}: {refused:?}"
        );
    }
    assert_eq!(answers(&mut catalogue), before);
    assert!(!other.exists());
    let counted = catalogue
        .select("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3)
                 SELECT i, i / 2.0 AS half, NULL AS none, 'é' AS text, x'00ff' AS bytes FROM n WHERE i > 2;", MINUTE)
        .unwrap();
    assert_eq!(counted.columns, ["i", "half", "none", "text", "bytes"]);
    assert_eq!(
        counted.rows,
        [[
            Cell::Integer(3),
            Cell::Real(1.5),
            Cell::Null,
            Cell::Text("é".into()),
            Cell::Text("00ff".into())
        ]]
    );
    // The next refresh may write again.
    catalogue
        .refresh(&[shelf.root()], SystemTime::now())
        .unwrap();
}

#[test]
fn records_that_contradict_each_other_are_a_problem_of_their_directory() {
    let shelf = Shelf::new();
    shelf.measure("one", 1);
    let mut catalogue = Catalogue::in_memory().unwrap();
    let run = Results::load(&shelf.dir("one")).unwrap();
    let mut entry = Entry::of_run(&run);
    let observations = &mut entry.variants[1].observations;
    observations.push(observations[0]);
    let mut transaction = catalogue.connection.transaction().unwrap();
    let problem = write::insert(&mut transaction, b"x", "x", None, &[entry.clone()]).unwrap();
    assert!(
        problem
            .unwrap()
            .starts_with("x: its records contradict each other")
    );
    entry.variants[1].observations[1].position = 2;
    entry.variants[1].observations[1].forwarding_rate_pps = f64::NAN;
    assert!(
        write::insert(&mut transaction, b"x", "x", None, &[entry.clone()])
            .unwrap()
            .is_some()
    );
    entry.variants[1].observations.pop();
    assert_eq!(
        write::insert(&mut transaction, b"x", "x", None, &[entry]).unwrap(),
        None
    );
    transaction.commit().unwrap();
    assert_eq!(catalogue.results(&Filter::default()).unwrap().len(), 1);
}

fn rate(topic: &str, date: Option<&str>, os: Option<&str>, median_pps: f64) -> RateRow {
    RateRow {
        date: date.map(str::to_owned),
        topic: topic.into(),
        label: "l".into(),
        platform: None,
        nic: None,
        os: os.map(str::to_owned),
        lab: None,
        regime: None,
        variant: "v".into(),
        variant_label: "v".into(),
        control: false,
        family: "inet".into(),
        observations: 1,
        median_pps,
        min_pps: median_pps,
        first_quartile_pps: median_pps,
        third_quartile_pps: median_pps,
        max_pps: median_pps,
        iqr_pps: 0.0,
        offered_load_pps: None,
        kind: "own".into(),
        path: "p".into(),
    }
}

#[test]
fn a_series_is_one_configuration_in_order() {
    let rates = vec![
        rate("a", None, Some("6.9"), 1.0),
        rate("b", Some("2020"), Some("6.9"), 2.0),
        rate("a", Some("2021-02"), Some("6.9"), 3.0),
        rate("a", Some("2021"), Some("6.18"), 4.0),
        rate("a", Some("2019-11"), None, 5.0),
    ];
    let medians = |over| -> Vec<Vec<f64>> {
        let medians = |series: &Series| series.rates.iter().map(|rate| rate.median_pps).collect();
        series(rates.clone(), over).iter().map(medians).collect()
    };
    assert_eq!(medians(Over::Time), [vec![5.0, 4.0, 3.0, 1.0], vec![2.0]]);
    assert_eq!(medians(Over::Os), [vec![3.0, 1.0, 4.0, 5.0], vec![2.0]]);
}

#[test]
fn releases_are_in_order_and_hashes_by_their_first_date() {
    let current = |revision: &str| Some(format!("FreeBSD 12.0-CURRENT {revision}"));
    let [later, earlier] = ["e30bf1a(master)-dirty", "f1e5c15(master)-dirty"].map(current);
    let (later, earlier) = (later.as_deref(), earlier.as_deref());
    let rates = vec![
        rate("a", Some("2018-09-01"), later, 5.0),
        rate("a", Some("2018-01-01"), earlier, 4.0),
        rate("a", Some("2018-10-01"), earlier, 4.5),
        rate(
            "a",
            Some("2020"),
            Some("FreeBSD 11.0-RELEASE-p10 r319985"),
            2.0,
        ),
        rate(
            "a",
            Some("2021"),
            Some("FreeBSD 11.0-RELEASE-p6 r310736M"),
            1.0,
        ),
        rate("a", Some("2017"), current("r302532").as_deref(), 3.0),
    ];
    let all = series(rates, Over::Os);
    let medians: Vec<f64> = all[0].rates.iter().map(|rate| rate.median_pps).collect();
    assert_eq!(medians, [1.0, 2.0, 3.0, 4.0, 4.5, 5.0]);
    assert_eq!(revisions(&all)[3..], [earlier.unwrap(), later.unwrap()]);
}

#[test]
fn a_control_is_no_configuration_unless_it_is_asked_for() {
    let shelf = Shelf::new();
    shelf.measure("one", 2);
    let mut entry = Entry::of_run(&Results::load(&shelf.dir("one")).unwrap());
    entry.variants[1].is_control = true;
    let mut catalogue = Catalogue::in_memory().unwrap();
    let mut transaction = catalogue.connection.transaction().unwrap();
    write::insert(&mut transaction, b"x", "x", None, &[entry]).unwrap();
    transaction.commit().unwrap();
    let over = |variant: Option<&str>, over| -> Vec<String> {
        let filter = Filter {
            variant: variant.map(str::to_owned),
            ..Filter::default()
        };
        let rates = catalogue.rates(&filter).unwrap();
        let all = series(rates, over);
        all.into_iter().map(|series| series.variant).collect()
    };
    for order in [Over::Os, Over::Time] {
        assert_eq!(over(None, order), ["none", "xdp"]);
        assert_eq!(over(Some("nft"), order), ["nft"]);
    }
    assert_eq!(catalogue.rates(&Filter::default()).unwrap().len(), 3);
}

/// What happens to a folder of results between two looks at it.
#[derive(Clone, Debug)]
enum Event {
    Measure(u8, u32),
    Remove(u8),
    Rename(u8, u8),
    Tear(u8),
    Report(u8),
    Damage(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0_u8..3, 1_u32..4).prop_map(|(label, blocks)| Event::Measure(label, blocks)),
        1 => (0_u8..3).prop_map(Event::Remove),
        1 => (0_u8..3, 0_u8..3).prop_map(|(from, to)| Event::Rename(from, to)),
        1 => (0_u8..3).prop_map(Event::Tear),
        1 => (0_u8..3).prop_map(Event::Report),
        1 => (100_usize..40_000).prop_map(Event::Damage),
    ]
}

impl Shelf {
    fn happen(&self, event: &Event) {
        let dir = |label: &u8| self.dir(&label.to_string());
        match event {
            Event::Measure(label, blocks) => self.measure(&label.to_string(), *blocks),
            Event::Remove(label) => drop(fs::remove_dir_all(dir(label))),
            Event::Rename(from, to) => drop(fs::rename(dir(from), dir(to))),
            Event::Tear(label) => {
                let path = dir(label).join("trials.jsonl");
                if let Ok(bytes) = fs::read(&path) {
                    fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
                }
            }
            Event::Report(label) => {
                if dir(label).exists() {
                    fs::write(dir(label).join("derived/report.json"), "{}").unwrap();
                }
            }
            Event::Damage(length) => {
                if let Ok(bytes) = fs::read(self.index()) {
                    fs::write(self.index(), &bytes[..(*length).min(bytes.len())]).unwrap();
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_kept_index_answers_as_a_fresh_one(events in prop::collection::vec(event(), 1..8)) {
        let shelf = Shelf::new();
        for event in &events {
            shelf.happen(event);
            let (kept, ..) = shelf.kept(SystemTime::now());
            prop_assert_eq!(kept, shelf.fresh(), "after {:?}", event);
        }
    }

    #[test]
    fn any_filter_finds_or_finds_nothing(text: String, other: String) {
        let catalogue = Catalogue::in_memory().unwrap();
        let filter = Filter {
            platform: Some(text.clone()),
            factor: Some(other.clone()),
            variant: Some(text),
            family: Some(other),
            ..Filter::default()
        };
        prop_assert_eq!(catalogue.results(&filter).unwrap(), []);
        prop_assert_eq!(catalogue.rates(&filter).unwrap(), []);
    }

    #[test]
    fn any_text_is_sql_or_refused(text: String) {
        let mut catalogue = Catalogue::in_memory().unwrap();
        let is_refused = match catalogue.select(&text, MINUTE) {
            Ok(_) => true,
            Err(error) => matches!(error, CatalogueError::Sql { .. }),
        };
        prop_assert!(is_refused);
    }
}

#[test]
fn what_a_date_leaves_out_for_having_none_is_counted() {
    let shelf = Shelf::new();
    let import = |label: &str, uname: &str| {
        let folder = shelf.dir(label);
        fs::create_dir_all(&folder).unwrap();
        let results = format!(
            r#"{{"schema":1,"source":"s","platform":"Atom","nic":"n","topic":"t","label":"{label}","title":null,
            "lab":[],"files":[],"variants":[{{"name":"x","key":"x","family":"inet","description":{{"uname":{uname}}},
            "dataset":{{"path":"x.pps","origin":"no-logs","published_pps":[3.5,4.5]}},"flows":null,
            "frame_size_bytes":null,"settings":{{}}}}]}}"#
        );
        fs::write(folder.join("imported.json"), results).unwrap();
        fs::write(folder.join("runs.jsonl"), "").unwrap();
    };
    import(
        "dated",
        r#""FreeBSD a 11.1 FreeBSD 11.1 #2 r1: Fri Sep  8 00:32:53 UTC 2017  root@b:/o  amd64""#,
    );
    import("undated", "null");
    // One lies in the folder of another.
    import("undated/inner", "null");
    let mut catalogue = Catalogue::in_memory().unwrap();
    catalogue
        .refresh(&[shelf.root()], SystemTime::now())
        .unwrap();
    let undated = |filter: &Filter| [false, true].map(|of| catalogue.undated(filter, of).unwrap());
    let all = Filter::default();
    assert_eq!(catalogue.results(&all).unwrap().len(), 3);
    assert_eq!(undated(&all), [0, 0]);
    let since = Filter {
        since: Some("2016".parse().unwrap()),
        ..Filter::default()
    };
    assert_eq!(catalogue.results(&since).unwrap().len(), 1);
    assert_eq!(undated(&since), [2, 2]);
    let of_another = Filter {
        platform: Some("Xeon".to_owned()),
        ..since.clone()
    };
    assert_eq!(undated(&of_another), [0, 0]);
    let of_inet6 = Filter {
        family: Some("inet6".to_owned()),
        ..since
    };
    assert_eq!(undated(&of_inet6), [2, 0]);
}
