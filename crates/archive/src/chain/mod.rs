//! `chain.jsonl`: one line for each attempt at a block, with the SHA-256 of everything that was written of it and of
//! the line before; and the seal of `finished.json`.
//!
//! The hashes find what changed by accident, or in part. Somebody who computes every line again is not found out.

mod writer;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;

use fwdlab_model::{sha256, sha256_of};
use fwdlab_sys::Bounded;
use serde::{Deserialize, Serialize};

use crate::input::input;
use crate::load::Finished;

pub(crate) use writer::ChainWriter;

/// Longest line that is read, in bytes: 400 profiles make one of 60 kB.
const LINE_BYTES_MAX: u64 = 1 << 26;

/// A line of `chain.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Link {
    pub(crate) schema: u32,
    pub(crate) session: u32,
    pub(crate) block: u32,
    pub(crate) attempt: u32,
    /// SHA-256 of its lines in `trials.jsonl`: from behind the block record before to the end of its own.
    pub(crate) records: String,
    /// SHA-256 of each file that it rests on, by the file's path in the directory.
    pub(crate) files: BTreeMap<String, String>,
    /// SHA-256 of the line before; none of the first line.
    pub(crate) before: Option<String>,
}

impl Link {
    /// Itself as a line, with its end.
    pub(crate) fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("a link is plain data");
        line.push(b'\n');
        line
    }

    /// The attempt that it is of, for a reader.
    pub(crate) fn title(&self) -> String {
        format!("block {}, attempt {}", self.block, self.attempt)
    }
}

/// `finished.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FinishedFile {
    #[serde(flatten)]
    pub(crate) finished: Finished,
    /// SHA-256 of the last line of `chain.jsonl`; none where it has no line, or is not there.
    #[serde(default)]
    pub(crate) last_link: Option<String>,
    /// SHA-256 of the files that belong to no single block, by path.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
}

const SEAL: &str = "  \"seal\": \"";
const SEAL_END: &str = "\"\n}\n";

impl FinishedFile {
    /// Itself as a text that ends with its own seal: the SHA-256 of all lines in front of the seal's.
    pub(crate) fn sealed(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("a record is plain data");
        let open = text.strip_suffix("\n}").expect("an object was written");
        let sealed = format!("{open},\n");
        let seal = sha256(sealed.as_bytes());
        format!("{sealed}{SEAL}{seal}{SEAL_END}")
    }
}

/// What the seal of a `finished.json` says of the text in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seal {
    /// It is as it was written.
    Intact,
    /// It was changed.
    Broken,
    /// There is none.
    Missing,
}

impl Seal {
    pub(crate) fn of(text: &str) -> Self {
        let Some(at) = text.rfind(SEAL) else {
            return Self::Missing;
        };
        let (sealed, seal) = text.split_at(at);
        let said = seal[SEAL.len()..].strip_suffix(SEAL_END);
        if said == Some(sha256(sealed.as_bytes()).as_str()) {
            Self::Intact
        } else {
            Self::Broken
        }
    }
}

/// SHA-256 of a file, which is never held as a whole.
///
/// It is one of a results directory, and is refused as all of these are where it lies elsewhere.
pub(crate) fn sha256_of_file(dir: &Path, path: &Path) -> io::Result<String> {
    sha256_of(input(dir, path).open()?)
}

/// The lines of a file, one after the other; only one is held.
#[derive(Debug)]
pub(crate) struct FileLines(BufReader<Bounded<File>>);

impl FileLines {
    /// Those of a file of a results directory.
    pub(crate) fn open(dir: &Path, path: &Path) -> io::Result<Self> {
        let file = input(dir, path).open()?;
        Ok(Self(BufReader::new(file)))
    }

    /// The next line with its end, which only a torn last line lacks; none behind the last.
    pub(crate) fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let read = (&mut self.0)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)?;
        if read as u64 == LINE_BYTES_MAX && !is_whole(&line) {
            let what = format!("a line has more than {LINE_BYTES_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok((read > 0).then_some(line))
    }
}

/// Whether a line has its end.
pub(crate) fn is_whole(line: &[u8]) -> bool {
    line.ends_with(b"\n")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn finished() -> FinishedFile {
        FinishedFile {
            finished: Finished {
                schema: 1,
                finished: "2026-11-21T08:50:00Z".into(),
                accepted_blocks: vec![1, 2],
                given_up_blocks: vec![],
            },
            last_link: Some("ab".into()),
            files: [("plan.json".to_owned(), "cd".to_owned())].into(),
        }
    }

    #[test]
    fn a_link_is_a_line_that_reads_back() {
        let link = Link {
            schema: 1,
            session: 2,
            block: 3,
            attempt: 4,
            records: "ab".into(),
            files: [("blocks/3.attempt-4.csv".to_owned(), "cd".to_owned())].into(),
            before: None,
        };
        let line = link.line();
        assert!(line.ends_with(b"\"before\":null}\n"));
        assert_eq!(serde_json::from_slice::<Link>(&line).unwrap(), link);
    }

    #[test]
    fn whatever_changes_in_a_sealed_text_breaks_the_seal() {
        let text = finished().sealed();
        assert_eq!(Seal::of(&text), Seal::Intact);
        let read: FinishedFile = serde_json::from_str(&text).unwrap();
        assert_eq!(read, finished());
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8(bytes).unwrap();
            assert_ne!(Seal::of(&changed), Seal::Intact, "{changed}");
            assert_ne!(Seal::of(&text[..at]), Seal::Intact);
        }
        assert_eq!(Seal::of(&format!("{text}\n")), Seal::Broken);
        assert_eq!(Seal::of("{\n  \"schema\": 1\n}\n"), Seal::Missing);
    }

    #[test]
    fn lines_come_one_by_one_and_a_torn_one_shows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chain.jsonl");
        fs::write(&path, "one\n\ntor").unwrap();
        let mut lines = FileLines::open(folder.path(), &path).unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), b"one\n");
        assert_eq!(lines.next().unwrap().unwrap(), b"\n");
        let torn = lines.next().unwrap().unwrap();
        assert!(!is_whole(&torn), "{torn:?}");
        assert_eq!(lines.next().unwrap(), None);
        let error = |path: &Path| sha256_of_file(folder.path(), path).unwrap_err().to_string();
        assert!(error(folder.path()).contains("it is a folder"));
        let outside = error(Path::new("/etc/passwd"));
        assert!(outside.contains("outside"), "{outside}");
    }
}
