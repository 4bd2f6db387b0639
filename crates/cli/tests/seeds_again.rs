//! The five published texts, made again from the public archive's logs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the archive has the results of each text.
const RESULTS: [(&str, &str); 5] = [
    (
        "000",
        "AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710/hyperthreading/results/fbsd15-n302145",
    ),
    (
        "001",
        "Atom_C2758_8Cores/Intel_82599/iflib.tx_reclaim_thresh/results/fbsd15-n302145simplecache",
    ),
    (
        "002",
        "Atom_C2758_8Cores/Intel_82599/iflib.simple_tx/results/fbsd15-n302145simplecache",
    ),
    (
        "003",
        "AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710/harvest_mask/results/fbsd15-n302145",
    ),
    (
        "004",
        "Atom_C2758_8Cores/Chelsio_T540-CR/firewalls/results/fbsd14-n277567-D33658",
    ),
];

/// What begins the part that is fwdlab's.
const OURS: &str = "# Judged by fwdlab";

/// A line that is different: where, and what stands on either side.
type Change = (usize, Option<String>, Option<String>);

fn fwdlab(arguments: &[&Path]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fwdlab"));
    testkit::succeed(command.args(arguments));
}

fn seed(folder: &Path, number: &str) -> String {
    let mut entries = fs::read_dir(folder).expect("the seeds can be listed");
    let path = entries.find_map(|entry| {
        let path = entry.expect("an entry").path();
        let name = path.file_name()?.to_string_lossy();
        name.starts_with(&format!("{number}_")).then_some(path)
    });
    fs::read_to_string(path.expect("there is a text of that number")).expect("it is text")
}

/// The lines that are in one text alone. Lines are changed one by one here, or added one by one.
fn changes(published: &str, made_again: &str) -> Vec<Change> {
    let (published, made_again): (Vec<&str>, Vec<&str>) =
        (published.lines().collect(), made_again.lines().collect());
    let (mut one, mut two, mut found) = (0, 0, Vec::new());
    while one < published.len() || two < made_again.len() {
        let (left, right) = (published.get(one), made_again.get(two));
        if left == right {
            (one, two) = (one + 1, two + 1);
        } else if left.is_some() && left == made_again.get(two + 1) {
            found.push((two + 1, None, right.map(ToString::to_string)));
            two += 1;
        } else {
            let (left, right) = (
                left.map(ToString::to_string),
                right.map(ToString::to_string),
            );
            found.push((one + 1, left, right));
            (one, two) = (one + 1, two + 1);
        }
    }
    found
}

/// The rows of the page on one text.
fn listed(page: &str, number: &str) -> Vec<Change> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| "));
    let rows = rows.filter(|row| row.starts_with(&format!("{number} |")));
    rows.map(|row| {
        let cells: Vec<&str> = row.split(" |").map(str::trim).collect();
        let code = |cell: &str| {
            let text = cell.strip_prefix('`')?.strip_suffix('`')?;
            Some(text.to_owned())
        };
        assert!(!cells[4].is_empty(), "{row}: no reason");
        (
            cells[1].parse().expect("a line"),
            code(cells[2]),
            code(cells[3]),
        )
    })
    .collect()
}

#[test]
fn the_texts_come_out_of_their_logs_but_for_the_lines_that_the_page_lists() {
    let archive = testkit::require_shared!("corpus/netbenches");
    let seeds = testkit::require_shared!("seeds");
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/seeds.md"))
            .unwrap();
    let out = tempfile::tempdir().unwrap();
    let imported = out.path().join("imported");
    let form = PathBuf::from("netbenches");
    fwdlab(&[
        Path::new("import"),
        &form,
        &archive,
        Path::new("--results"),
        &imported,
    ]);
    for (number, results) in RESULTS {
        let folder = imported.join("results").join(results);
        fwdlab(&[Path::new("report"), &folder]);
        let made_again = fs::read_to_string(folder.join("README.md")).unwrap();
        let (text, ours) = made_again.split_once(OURS).unwrap();
        // One blank line stands between them.
        let text = text.strip_suffix('\n').unwrap();
        let published = seed(&seeds, number);
        assert_eq!(changes(&published, text), listed(&page, number), "{number}");
        assert!(ours.contains("\n## Runs\n"), "{number}");
        plots_show_what_is_written(&folder, ours);
    }
}

/// Every plot is linked once, and has each variant below its link with the same effect and interval.
fn plots_show_what_is_written(folder: &Path, ours: &str) {
    let mut linked = Vec::new();
    for section in ours.split("\n## ") {
        let link = section.split_once("](derived/").map(|(_, rest)| rest);
        let Some((name, rest)) = link.and_then(|rest| rest.split_once(')')) else {
            assert!(!section.contains("- **"), "{section}: no plot");
            continue;
        };
        let plot = fs::read_to_string(folder.join("derived").join(name)).unwrap();
        let verdicts: Vec<_> = rest
            .lines()
            .filter_map(|line| line.strip_prefix("- **")?.split_once("**: "))
            .collect();
        assert!(!verdicts.is_empty(), "{name}");
        for (label, sentence) in &verdicts {
            let label = label.replace('\\', "");
            assert!(
                plot.contains(&format!("<title>{label}</title>")),
                "{name}: {label}"
            );
            let effect = sentence.split_once(": ").unwrap().1;
            let effect = effect.split_once(" (").unwrap().0;
            assert!(
                plot.contains(&format!(">{effect}</text>")),
                "{name}: {label}: {effect}"
            );
        }
        assert_eq!(plot.matches("class=\"whisker").count(), verdicts.len());
        linked.push(name.to_owned());
    }
    let mut drawn: Vec<_> = fs::read_dir(folder.join("derived"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".svg"))
        .collect();
    linked.sort();
    drawn.sort();
    assert_eq!(linked, drawn);
}
