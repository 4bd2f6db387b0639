//! Cases with arguments, inputs and the text that FreeBSD 15's prints for them.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::command::{Outcome, outcome};

/// Runs every case below `folder` and returns how many there were.
fn check_all(folder: &Path) -> usize {
    let mut cases: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.sort();
    for case in &cases {
        let arguments = fs::read_to_string(case.join("args")).unwrap();
        let arguments: Vec<OsString> = arguments.lines().map(OsString::from).collect();
        let expected = Outcome {
            exit_code: 0,
            stdout: fs::read_to_string(case.join("expected.txt")).unwrap(),
            stderr: String::new(),
        };
        let found = outcome(&arguments, b"", |name| {
            Ok(Box::new(File::open(case.join(name))?))
        });
        assert_eq!(found, expected, "{}", case.display());
    }
    cases.len()
}

#[test]
fn committed_cases_come_out_byte_for_byte() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ministat/cases");
    assert_eq!(check_all(&folder), 13);
}

#[test]
fn shared_cases_come_out_byte_for_byte() {
    let folder = testkit::require_shared!("oracle/ministat");
    assert_eq!(check_all(&folder), 80);
}
