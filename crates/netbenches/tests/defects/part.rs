//! Parts of the corpus: everything below the folder of a topic, and defects of it.

use std::cell::OnceCell;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::published::{Block, Dataset, Logged, Row, links};

/// Parts that are left out, so that they can show how well rules do on what nobody looked at.
const HELD_BACK: [&str; 3] = [
    "Atom_C2758_8Cores/Chelsio_T540-CR/wireguard",
    "Atom_C2758_8Cores/Chelsio_T540-CR/firewalls",
    "Atom_C2558_4Cores/Intel_i350/wireguard",
];

/// A file, by its path below the corpus, and what it holds from now on.
pub(crate) type Change = (PathBuf, Vec<u8>);

/// A defect that is not planted yet.
pub(crate) struct Defect {
    /// What has to be there beforehand, which is no defect.
    pub(crate) ready: Vec<Change>,
    pub(crate) changes: Vec<Change>,
    /// What a finding may point to: the files that change, or what is made of them.
    pub(crate) places: Vec<PathBuf>,
    /// Where it is, and what.
    pub(crate) what: String,
}

impl Defect {
    pub(crate) fn new(changes: Vec<Change>, what: &str) -> Self {
        let places: Vec<PathBuf> = changes.iter().map(|(path, _)| path.clone()).collect();
        let paths: Vec<String> = (places.iter())
            .map(|path| path.display().to_string())
            .collect();
        Self {
            ready: Vec::new(),
            what: format!("{}: {what}", paths.join(", ")),
            changes,
            places,
        }
    }

    /// The same, of which a finding may also point to another file.
    pub(crate) fn also_at(mut self, path: &Path) -> Self {
        self.places.push(path.to_owned());
        self
    }

    /// Two files, each with what the other held.
    pub(crate) fn exchanged(part: &Part, one: &Path, other: &Path) -> Self {
        let changes = vec![
            (one.to_owned(), part.bytes(other)),
            (other.to_owned(), part.bytes(one)),
        ];
        Self::new(changes, "exchanged")
    }

    /// A line of a text, from 0, replaced.
    pub(crate) fn of_line(path: &Path, text: &str, number: usize, line: &str) -> Self {
        let was = text.lines().nth(number).unwrap();
        let what = format!("line {}: {was:?} became {line:?}", number + 1);
        let changed = text.split_inclusive('\n').enumerate().map(|(at, whole)| {
            let end = &whole[whole.trim_end_matches(['\n', '\r']).len()..];
            if at == number {
                format!("{line}{end}")
            } else {
                whole.to_owned()
            }
        });
        let changed: String = changed.collect();
        Self::new(vec![(path.to_owned(), changed.into_bytes())], &what)
    }
}

pub(crate) struct Part {
    pub(crate) corpus: PathBuf,
    /// `<platform>/<nic>/<topic>`.
    pub(crate) topic: PathBuf,
    /// In their order, below the corpus.
    files: Vec<PathBuf>,
    datasets: OnceCell<Vec<Dataset>>,
    logged: OnceCell<Vec<Logged>>,
}

impl Part {
    pub(crate) fn all(corpus: &Path) -> Vec<Self> {
        let mut topics = vec![PathBuf::new()];
        for _ in 0..3 {
            topics = topics
                .iter()
                .flat_map(|path| folders(corpus, path))
                .collect();
        }
        topics.retain(|topic| !HELD_BACK.iter().any(|held| topic == Path::new(held)));
        let of_topic = |topic: PathBuf| {
            let mut files = Vec::new();
            collect(corpus, &topic, &mut files);
            Self {
                corpus: corpus.to_owned(),
                topic,
                files,
                datasets: OnceCell::new(),
                logged: OnceCell::new(),
            }
        };
        topics.into_iter().map(of_topic).collect()
    }

    /// The files that end so.
    pub(crate) fn ending(&self, end: &str) -> Vec<&Path> {
        let is_such = |file: &&PathBuf| file.to_string_lossy().ends_with(end);
        self.files
            .iter()
            .filter(is_such)
            .map(PathBuf::as_path)
            .collect()
    }

    pub(crate) fn bytes(&self, path: &Path) -> Vec<u8> {
        fs::read(self.corpus.join(path)).unwrap()
    }

    /// A file that is UTF-8.
    pub(crate) fn text(&self, path: &Path) -> Option<String> {
        String::from_utf8(self.bytes(path)).ok()
    }

    /// The texts of results, each with its path.
    pub(crate) fn texts(&self) -> Vec<(&Path, String)> {
        let texts = self.ending(".md").into_iter();
        let texts = texts.filter(|path| path.iter().any(|name| name == "results"));
        texts
            .filter_map(|path| Some((path, self.text(path)?)))
            .collect()
    }

    pub(crate) fn datasets(&self) -> &[Dataset] {
        self.datasets.get_or_init(|| Dataset::all(self))
    }

    pub(crate) fn logged(&self) -> &[Logged] {
        self.logged.get_or_init(|| Logged::all(self))
    }

    /// The dataset that gives a row.
    pub(crate) fn dataset_of(&self, row: &Row) -> Option<&Dataset> {
        let mut datasets = self.datasets().iter();
        datasets.find(|dataset| dataset.gives(&row.figures))
    }

    /// The blocks of a text of which every row is of a dataset.
    pub(crate) fn backed_blocks(&self, text: &str) -> Vec<Block> {
        let mut blocks = Block::all(text);
        blocks.retain(|block| block.rows.iter().all(|row| self.dataset_of(row).is_some()));
        blocks
    }

    pub(crate) fn has(&self, path: &Path) -> bool {
        self.files.iter().any(|file| file == path)
    }

    /// The pictures that its texts lead to, in folders that are there.
    pub(crate) fn pictures(&self) -> Vec<PathBuf> {
        let mut pictures = Vec::new();
        for (path, text) in self.texts() {
            let folder = path.parent().unwrap();
            for link in text.lines().flat_map(links) {
                let target = Path::new(link.target);
                let is_picture = [".svg", ".png"]
                    .iter()
                    .any(|end| link.target.ends_with(end));
                let is_below = target
                    .components()
                    .all(|part| matches!(part, Component::Normal(_)));
                let file = folder.join(target);
                if is_picture && is_below && self.corpus.join(file.parent().unwrap()).is_dir() {
                    pictures.push(file);
                }
            }
        }
        pictures
    }
}

/// The folders in a folder, in their order.
fn folders(corpus: &Path, below: &Path) -> Vec<PathBuf> {
    let folders = entries(corpus, below).into_iter();
    folders.filter(|path| corpus.join(path).is_dir()).collect()
}

fn entries(corpus: &Path, below: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(corpus.join(below)).unwrap();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| below.join(entry.unwrap().file_name()))
        .collect();
    paths.sort();
    paths
}

fn collect(corpus: &Path, below: &Path, files: &mut Vec<PathBuf>) {
    for path in entries(corpus, below) {
        if corpus.join(&path).is_dir() {
            collect(corpus, &path, files);
        } else {
            files.push(path);
        }
    }
}
