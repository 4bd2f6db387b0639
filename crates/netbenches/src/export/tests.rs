use std::fs;

use fwdlab_archive::{Choice, Results, sample};
use fwdlab_model::{Binding, Level, Values};
use fwdlab_stats::ministat::parse_points;
use proptest::prelude::*;

use super::*;

/// A run of two blocks.
fn run(root: &Path) -> Loaded {
    let (resolved, plan) = (sample::resolved(), sample::plan());
    let run = sample::new_run(&resolved, &plan);
    let mut results = Results::open_or_create(root, &run, &Choice::default()).unwrap();
    results.begin_session(sample::session(1)).unwrap();
    for block in 1..=2 {
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
    results.loaded().clone()
}

fn files_below(folder: &Path) -> Vec<String> {
    let mut waiting = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(
                fs::read_dir(path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else {
            files.push(path.strip_prefix(folder).unwrap().display().to_string());
        }
    }
    files.sort();
    files
}

#[test]
fn a_run_is_laid_out_as_the_archive_does() {
    let root = tempfile::tempdir().unwrap();
    let mut run = run(root.path());
    let factor = "iflib.tx_abdicate";
    run.resolved.variants[1].levels = BTreeMap::from([(factor.to_owned(), Level::Integer(1))]);
    let key = "dev.ix.{0,1}.iflib.tx_abdicate".to_owned();
    let sysctl = Binding::Sysctl {
        key,
        values: Values::default(),
        reads_back: BTreeMap::new(),
    };
    run.resolved.lab.bindings.insert(factor.to_owned(), sysctl);

    let mut export = Export::of_run(&run).unwrap();
    export.add_readme("# Title\n".to_owned());
    let to = root.path().join("out");
    export.write(&to).unwrap();
    let results = "A_CPU/veth/quickstart/results/6.18.44-20261121T084253Z";
    assert_eq!(export.results, Path::new(results));
    let mut expected = vec![
        "A_CPU/veth/quickstart/configs/nft/etc/sysctl.conf".to_owned(),
        "pktgen.configs/quickstart/inet4".to_owned(),
    ];
    let names = [
        "README.md",
        "RAW/block.1.slices.csv",
        "RAW/block.2.slices.csv",
        "bench.nft.info",
        "bench.none.info",
        "bench.xdp.info",
        "gnuplot.data",
        "nft.pps",
        "none.pps",
        "xdp.pps",
    ];
    expected.extend(names.map(|name| format!("{results}/{name}")));
    expected.sort();
    assert_eq!(files_below(&to), expected);

    let text = |path: &str| fs::read_to_string(to.join(path)).unwrap();
    let result = |name: &str| text(&format!("{results}/{name}"));
    // Byte for byte what the run's own directory has.
    assert_eq!(
        result("nft.pps"),
        fs::read_to_string(run.dir.join("nft.inet.pps")).unwrap()
    );
    assert_eq!(
        result("bench.nft.info"),
        "IMAGE=\"\"\nCFG=\"nft\"\nPKTGEN=\"\"\nUNAME=\"6.18.44 #1 SMP\""
    );
    assert_eq!(
        result("gnuplot.data"),
        "#index median minimum maximum\n\
         none 1200005 1200003.3 1200006.7\n\
         nft 1200005.4 1200003.7 1200007\n\
         xdp 1200005.6 1200004 1200007.3\n"
    );
    assert_eq!(
        text("A_CPU/veth/quickstart/configs/nft/etc/sysctl.conf"),
        "dev.ix.0.iflib.tx_abdicate=1\ndev.ix.1.iflib.tx_abdicate=1\n"
    );
    assert_eq!(
        result("RAW/block.1.slices.csv"),
        fs::read_to_string(run.dir.join("blocks/1.csv")).unwrap()
    );
}

#[test]
fn nothing_is_overwritten_and_a_refused_export_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let export = Export::of_run(&run(root.path())).unwrap();
    let to = root.path().join("out");
    export.write(&to).unwrap();
    let before = files_below(&to);
    assert!(matches!(export.write(&to), Err(ExportError::Exists { .. })));
    assert_eq!(files_below(&to), before);

    // A shared file is another one.
    fs::remove_dir_all(to.join("A_CPU")).unwrap();
    let shared = to.join("pktgen.configs/quickstart/inet4");
    fs::write(&shared, "AF=6\n").unwrap();
    assert!(matches!(export.write(&to), Err(ExportError::Exists { path }) if path == shared));
    assert_eq!(files_below(&to), ["pktgen.configs/quickstart/inet4"]);
    assert!(!to.join("A_CPU").exists());
}

#[test]
fn a_link_leads_nothing_elsewhere() {
    let root = tempfile::tempdir().unwrap();
    let export = Export::of_run(&run(root.path())).unwrap();
    let (to, elsewhere) = (root.path().join("out"), root.path().join("elsewhere"));
    fs::create_dir(&to).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    for name in ["A_CPU", "pktgen.configs"] {
        std::os::unix::fs::symlink(&elsewhere, to.join(name)).unwrap();
        assert!(matches!(
            export.write(&to),
            Err(ExportError::NoFolder { .. })
        ));
        fs::remove_file(to.join(name)).unwrap();
    }
    assert_eq!(files_below(&elsewhere), [""; 0]);
    assert_eq!(fs::read_dir(&to).unwrap().count(), 0);
}

#[test]
fn a_run_without_a_block_is_nothing_to_export() {
    let root = tempfile::tempdir().unwrap();
    let mut run = run(root.path());
    run.attempts.clear();
    assert!(matches!(
        Export::of_run(&run),
        Err(ExportError::NothingMeasured { .. })
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn whatever_things_are_called_all_files_lie_inside_and_read_back(
        names in prop::array::uniform4(".{0,20}|[./]{1,4}|(\\.\\./){1,3}x"),
        rates in prop::collection::vec(1.0..1e9_f64, 3),
    ) {
        let root = tempfile::tempdir().unwrap();
        let mut run = run(root.path());
        let [topic, platform, kernel, level] = names;
        run.resolved.name = topic;
        run.sessions[0].environment.cpu_model = platform;
        run.sessions[0].environment.kernel = kernel.clone();
        run.resolved.variants[0].levels = BTreeMap::from([("f".to_owned(), Level::Text(level))]);
        let binding = Binding::Loader { tunable: kernel, values: Values::default() };
        run.resolved.lab.bindings.insert("f".to_owned(), binding);
        for (trial, rate) in run.attempts[0].trials.iter_mut().zip(&rates) {
            trial.observation_pps = *rate;
        }
        let export = Export::of_run(&run).unwrap();
        let to = root.path().join("out/inside");
        export.write(&to).unwrap();
        prop_assert_eq!(files_below(&to).len(), export.files.len());
        prop_assert_eq!(fs::read_dir(root.path().join("out")).unwrap().count(), 1);
        let keys: BTreeSet<&String> = export.datasets.iter().map(|dataset| &dataset.key).collect();
        prop_assert_eq!(keys.len(), export.datasets.len());
        for dataset in &export.datasets {
            let bytes = fs::read(to.join(&export.results).join(dataset.file_name())).unwrap();
            let points = parse_points(&bytes, 1, b" ").unwrap();
            prop_assert_eq!(&points, &dataset.observations_pps);
        }
    }
}
