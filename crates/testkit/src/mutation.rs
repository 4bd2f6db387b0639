//! Changes to files, at places and of kinds that a seed chooses.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::random::Random;

/// What was done to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutation {
    /// The file, by its path in the folder.
    pub file: String,
    /// What was done to it.
    pub what: String,
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.what)
    }
}

/// Changes one file below a folder; the same seed changes the same files in the same way.
///
/// Shape: `spared` are files and folders at the top that are left as they are.
///
/// # Panics
/// The folder holds no other file, or cannot be read and written.
pub fn change_a_file(folder: &Path, spared: &[&str], seed: u64) -> Mutation {
    let mut random = Random::new(seed);
    let mut files = Vec::new();
    collect(folder, &mut files);
    files.retain(|file| {
        let top = file
            .strip_prefix(folder)
            .ok()
            .and_then(|file| file.iter().next());
        !top.is_some_and(|top| spared.iter().any(|spared| top == *spared))
    });
    let path = files[random.below(files.len())].clone();
    let what = match random.below(12) {
        0 => {
            fs::remove_file(&path).expect("it is there");
            "removed".to_owned()
        }
        1 => exchange(&path, &files, &mut random),
        2 if fs::metadata(&path).is_ok_and(|file| file.len() > 0) => {
            fs::write(&path, "").expect("it can be written");
            "emptied".to_owned()
        }
        _ => {
            let bytes = fs::read(&path).expect("it reads");
            let (what, changed) = change(&bytes, &mut random);
            fs::write(&path, changed).expect("it can be written");
            what
        }
    };
    let file = path.strip_prefix(folder).expect("it lies in the folder");
    Mutation {
        file: file.display().to_string(),
        what,
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("the folder can be listed");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the folder can be listed").path())
        .collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// Puts another file of the folder in the place of a file, and it in that one's, where both differ.
fn exchange(path: &Path, files: &[PathBuf], random: &mut Random) -> String {
    let content = fs::read(path).expect("it reads");
    let others: Vec<&PathBuf> = files
        .iter()
        .filter(|other| other.parent() == path.parent())
        .filter(|other| fs::read(other).is_ok_and(|other| other != content))
        .collect();
    if others.is_empty() {
        fs::write(path, [content.as_slice(), b"\n "].concat()).expect("it can be written");
        return "two bytes at its end".to_owned();
    }
    let other = others[random.below(others.len())];
    let of_other = fs::read(other).expect("it reads");
    fs::write(path, of_other).expect("it can be written");
    fs::write(other, content).expect("it can be written");
    format!("exchanged with {}", other.display())
}

/// Bytes that are not those that were given, and what was done to them.
fn change(bytes: &[u8], random: &mut Random) -> (String, Vec<u8>) {
    loop {
        let (what, changed) = attempt(bytes, random);
        if changed != bytes {
            return (what, changed);
        }
    }
}

fn attempt(bytes: &[u8], random: &mut Random) -> (String, Vec<u8>) {
    let mut changed = bytes.to_vec();
    let at = random.below(bytes.len().max(1));
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
    let count = lines.len();
    let (one, other) = (random.below(count.max(1)), random.below(count + 1));
    let what = match random.below(9) {
        _ if bytes.is_empty() => {
            changed.push(b'x');
            "a byte put in".to_owned()
        }
        0 => {
            let bit = random.below(8);
            changed[at] ^= 1 << bit;
            format!("bit {bit} of byte {at} flipped")
        }
        1 => {
            let digits: Vec<usize> = (0..bytes.len())
                .filter(|&at| bytes[at].is_ascii_digit())
                .collect();
            if let Some(&at) = digits.get(random.below(digits.len().max(1))) {
                changed[at] = b'0' + (bytes[at] - b'0' + 1 + random.digit()) % 10;
            }
            "a digit changed".to_owned()
        }
        2 => {
            let end = (at + 1 + random.below(64)).min(bytes.len());
            changed.drain(at..end);
            format!("bytes {at} to {end} taken out")
        }
        3 => {
            changed.truncate(at);
            format!("cut behind {at} bytes")
        }
        4 => {
            let byte = b' ' + random.digit();
            changed.insert(at, byte);
            format!("byte {byte} put in at {at}")
        }
        kind => {
            let what = match kind {
                5 => {
                    lines.remove(one);
                    format!("line {} taken out", one + 1)
                }
                6 => {
                    lines.insert(other, lines[one]);
                    format!("line {} copied in front of line {}", one + 1, other + 1)
                }
                7 => {
                    lines.swap(one, other.min(count - 1));
                    format!("lines {} and {} exchanged", one + 1, other + 1)
                }
                _ => {
                    let line = lines.remove(one);
                    lines.insert(other.min(count - 1), line);
                    format!("line {} moved to {}", one + 1, other + 1)
                }
            };
            changed = lines.concat();
            what
        }
    };
    (what, changed)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_seed_changes_one_file_and_none_that_is_spared() {
        let folder = tempfile::tempdir().expect("there is room");
        let fresh = || {
            fs::create_dir_all(folder.path().join("blocks")).expect("it can be made");
            for (name, text) in [
                ("README.md", "spared\n"),
                ("a.json", "{\n  \"a\": 1\n}\n"),
                ("blocks/1.csv", "1,2\n3,4\n"),
                ("blocks/2.csv", "1,2\n5,6\n"),
                ("empty", ""),
            ] {
                fs::write(folder.path().join(name), text).expect("it can be written");
            }
        };
        let state = || {
            let mut files = Vec::new();
            collect(folder.path(), &mut files);
            let read = |file: &PathBuf| (file.clone(), fs::read(file).expect("it reads"));
            files.iter().map(read).collect::<Vec<_>>()
        };
        fresh();
        let sound = state();
        let mut kinds = BTreeSet::new();
        for seed in 0..500 {
            fresh();
            let mutation = change_a_file(folder.path(), &["README.md"], seed);
            let changed = state();
            assert_ne!(changed, sound, "{seed}: {mutation}");
            assert_eq!(changed[0], sound[0], "{seed}: {mutation}");
            kinds.insert(mutation.what.split(' ').next().map(str::to_owned));
            fresh();
            assert_eq!(change_a_file(folder.path(), &["README.md"], seed), mutation);
        }
        assert!(kinds.len() >= 7, "{kinds:?}");
    }
}
