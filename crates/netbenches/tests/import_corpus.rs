//! The import of the part of the public archive that lies in the shared data.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use fwdlab_archive::is_imported;
use fwdlab_model::imported::{DatasetOrigin, FileOutcome, ImportedFile};
use fwdlab_netbenches::{
    ArchiveTree, FileCounts, ImportAccount, Imported, load_imported, write_import,
};

/// How keys are announced.
const SECRET_WORDS: [&str; 4] = ["PRIVATE KEY", "private-key", "PrivateKey", "preshared-key"];

/// An import of an archive, and where it was written.
struct Import {
    tree: ArchiveTree,
    imported: Vec<Imported>,
    account: ImportAccount,
    out: tempfile::TempDir,
}

impl Import {
    fn of(archive: &Path) -> Self {
        let tree = ArchiveTree::read(archive).expect("the archive can be listed");
        let imported = Imported::all(&tree);
        let out = tempfile::tempdir().expect("a temporary folder");
        let account = write_import(out.path(), &tree).expect("it can be written");
        Self {
            tree,
            imported,
            account,
            out,
        }
    }

    /// Every file that was written, by its path.
    fn written(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        files(self.out.path(), &mut found);
        found
    }
}

fn files(folder: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else {
            let text = fs::read_to_string(&path).expect("what is written is text");
            found.insert(path, text);
        }
    }
}

/// Words that look like a key of WireGuard: 32 bytes in base 64.
fn keys(text: &str) -> impl Iterator<Item = &str> {
    let words =
        text.split(|letter: char| !letter.is_ascii_alphanumeric() && !"+/=".contains(letter));
    words.filter(|word| word.len() == 44 && word.ends_with('='))
}

/// Where profiled runs have overwritten the logs of the first runs, and of which datasets.
const PLATFORMS: [&str; 2] = [
    "AMD_GX-412TC_4Cores/Intel_i210AT",
    "Atom_C2558_4Cores/Intel_i350",
];
const LABEL: &str = "fbsd12-head.iflib";
const RESTORED: [&str; 5] = ["311848", "311849", "312904", "312905", "313448"];

#[test]
fn the_corpus_is_read_back_as_it_was_taken_in() {
    let corpus = testkit::require_shared!("corpus/netbenches");
    let import = Import::of(&corpus);
    let written = import.written();

    let mut sources = import.imported.iter();
    let mut origins: BTreeMap<&str, usize> = BTreeMap::new();
    let mut published = 0;
    let restored: BTreeSet<String> = RESTORED
        .iter()
        .flat_map(|name| {
            PLATFORMS.map(|platform| format!("{platform}/firewalls/results/{LABEL}/{name}.pps"))
        })
        .collect();
    let folders = written.keys().filter_map(|path| path.parent());
    let mut folders: Vec<&Path> = folders.filter(|folder| is_imported(folder)).collect();
    folders.dedup();
    assert_eq!(folders.len(), import.account.folders);
    for folder in folders {
        let (results, runs) = load_imported(folder).expect("what was written can be read");
        let of = sources.find(|of| of.results.source == results.source);
        let of = of.expect("folders are written in the order of their paths");
        assert_eq!((&results, &runs), (&of.results, &of.runs));
        published += runs
            .iter()
            .filter(|run| run.published_pps.is_some())
            .count();
        for variant in &results.variants {
            let observations = written.get(&folder.join(format!("{}.pps", variant.name)));
            let Some(dataset) = &variant.dataset else {
                *origins.entry("unpublished").or_default() += 1;
                continue;
            };
            let original = fs::read_to_string(corpus.join(&dataset.path)).expect("the dataset");
            let is_same = observations.map_or("", String::as_str) == original;
            assert!(
                match dataset.origin {
                    DatasetOrigin::Logs | DatasetOrigin::OtherLogs => is_same,
                    // What counts may be what was published in the place of a profiled run.
                    DatasetOrigin::Altered => is_same == restored.contains(&*dataset.path),
                    DatasetOrigin::NoLogs => observations.is_none(),
                },
                "{}",
                dataset.path
            );
            *origins
                .entry(match (dataset.origin, dataset.path.ends_with(".pps")) {
                    (DatasetOrigin::Logs, true) => "logs",
                    (DatasetOrigin::OtherLogs, true) => "other logs",
                    (DatasetOrigin::Logs | DatasetOrigin::OtherLogs, false) => "without ending",
                    (DatasetOrigin::Altered, _) => "altered",
                    (DatasetOrigin::NoLogs, _) => "no logs",
                })
                .or_default() += 1;
        }
    }
    assert_eq!(
        origins,
        BTreeMap::from([
            ("altered", 16),
            ("logs", 331),
            ("no logs", 2614),
            ("other logs", 8),
            ("without ending", 9),
        ])
    );
    assert_eq!(
        import.account.files,
        FileCounts {
            read: 13_889,
            read_in_part: 0,
            skipped: 6,
            failed: 0
        }
    );
    assert_eq!(
        (import.account.folders, import.account.runs, published),
        (356, 1830, 1796)
    );
}

#[test]
fn every_file_of_the_corpus_is_accounted_for() {
    let corpus = testkit::require_shared!("corpus/netbenches");
    let import = Import::of(&corpus);
    let lines = fs::read_to_string(import.out.path().join("files.jsonl")).expect("the account");
    let files = lines
        .lines()
        .map(|line| serde_json::from_str::<ImportedFile>(line).expect("a line is a file"));
    let mut kinds: BTreeMap<(String, FileOutcome), usize> = BTreeMap::new();
    for (file, of) in files.zip(&import.tree.files) {
        assert_eq!(Path::new(&file.path), of.path);
        assert!((file.outcome == FileOutcome::Read) == file.reason.is_none());
        *kinds.entry((file.kind, file.outcome)).or_default() += 1;
    }
    let shown: Vec<String> = kinds
        .iter()
        .map(|((kind, outcome), count)| format!("{kind}, {outcome:?}: {count}"))
        .collect();
    assert_eq!(
        shown,
        [
            "call graph, Read: 47",
            "configuration of a DUT, Read: 2301",
            "configuration of a DUT, Skipped: 6",
            "configuration of a lab, Read: 19",
            "configuration of the traffic, Read: 25",
            "dataset, Read: 2978",
            "description of a bench, Read: 3105",
            "folded stacks, Read: 18",
            "profiler's log, Read: 38",
            "receiver's log, Read: 1840",
            "sender's log, Read: 2200",
            "table for gnuplot, Read: 738",
            "text, Read: 349",
            "values of equilibrium, Read: 231",
        ]
    );
}

#[test]
fn a_second_import_gives_the_same_bytes() {
    let corpus = testkit::require_shared!("corpus/netbenches");
    let import = Import::of(&corpus);
    let first = import.written();
    let stale = import.out.path().join("results/stale.pps");
    fs::write(&stale, "1\n").expect("a file that no import wrote");
    write_import(import.out.path(), &import.tree).expect("it can be replaced");
    assert!(first == import.written());
}

#[test]
fn no_key_of_the_corpus_is_copied() {
    let corpus = testkit::require_shared!("corpus/netbenches");
    let import = Import::of(&corpus);
    let mut secrets = Vec::new();
    for file in &import.tree.files {
        let is_of_dut = file
            .path
            .components()
            .any(|part| part.as_os_str() == "configs");
        if is_of_dut && let Ok(text) = fs::read_to_string(corpus.join(&file.path)) {
            secrets.extend(keys(&text).map(str::to_owned));
        }
    }
    // Six files with a private key and the public key of the other side.
    assert_eq!(secrets.len(), 12);
    for (path, text) in import.written() {
        let has_word = SECRET_WORDS.iter().any(|word| text.contains(word));
        let has_secret = secrets.iter().any(|secret| text.contains(secret));
        // Which it is, and what stands there, is nobody's business.
        assert!(!has_word && !has_secret, "{}", path.display());
        assert_eq!(keys(&text).count(), 0, "{}", path.display());
    }
}
