//! The command as its user sees it: exit code, output, complaints.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};

use fwdlab_stats::ministat::{Layout, Surroundings, run};
use proptest::prelude::*;

/// What one run of the command left behind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) exit_code: u8,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the command with files taken from `open`.
pub(crate) fn outcome(
    arguments: &[OsString],
    stdin: &[u8],
    mut open: impl FnMut(&OsStr) -> io::Result<Box<dyn Read>>,
) -> Outcome {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let exit_code = run(
        arguments,
        Surroundings {
            open: &mut open,
            stdin: &mut &*stdin,
            stdout: &mut stdout,
            stderr: &mut stderr,
            layout: Layout::default(),
        },
    )
    .unwrap();
    Outcome {
        exit_code,
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8(stderr).unwrap(),
    }
}

/// Runs the command where three files exist, two of them fit to be read.
fn here(arguments: &[&str], stdin: &str) -> Outcome {
    let files = HashMap::from([
        ("good", "1\n2\n3\n"),
        ("bad", "1\n# comment\n\n2x\n3\n"),
        ("short", "1\n2\n"),
    ]);
    let arguments: Vec<_> = arguments.iter().map(OsString::from).collect();
    outcome(&arguments, stdin.as_bytes(), |name| match name.to_str() {
        Some("folder") => Ok(Box::new(Folder)),
        name => match name.and_then(|name| files.get(name)) {
            Some(text) => Ok(Box::new(text.as_bytes())),
            None => Err(io::Error::from_raw_os_error(2)),
        },
    })
}

/// Opens, but cannot be read: error 21 is "Is a directory".
struct Folder;

impl Read for Folder {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::from_raw_os_error(21))
    }
}

fn complaint(arguments: &[&str]) -> String {
    let outcome = here(arguments, "");
    assert_eq!((outcome.exit_code, outcome.stdout.as_str()), (2, ""));
    outcome.stderr
}

const USAGE: &str = r#"Usage: ministat [-C column] [-c confidence] [-d delimiter(s)] [-Anqs] [-w width] [file [file ...]]
	confidence = {80%, 90%, 95%, 98%, 99%, 99.5%}
	-A : print statistics only. suppress the graph.
	-C : column number to extract (starts and defaults to 1)
	-d : delimiter(s) string, default to " \t"
	-n : print summary statistics only, no graph/test
	-q : suppress printing summary-statistics headers and data-set names
	-s : print avg/median/stddev bars on separate lines
	-w : width of graph/test output (default 74 or terminal width)
"#;

#[test]
fn wrong_arguments_are_answered_with_the_usage() {
    for (arguments, first_lines) in [
        (
            &["-x"][..],
            "ministat: illegal option -- x\nUnknown option\n",
        ),
        (
            &["-sw"],
            "ministat: option requires an argument -- w\nUnknown option\n",
        ),
        (&["-C", "one"], "Invalid column number.\n"),
        (&["-C", "0"], "Column number should be positive.\n"),
        (&["-c", "much"], "Not a floating point number\n"),
        (&["-c", "96"], "No support for confidence level\n"),
        (&["-d", ""], "Can't use empty delimiter string\n"),
        (&["-w", "wide"], "Invalid width, not a number.\n"),
        (&["-w", "-1"], "Unable to move beyond left margin.\n"),
        (&["good"; 8], "Too many datasets.\n"),
    ] {
        assert_eq!(
            complaint(arguments),
            format!("{first_lines}{USAGE}"),
            "{arguments:?}"
        );
    }
}

#[test]
fn wrong_data_is_named() {
    assert_eq!(
        complaint(&["good", "bad"]),
        "ministat: Invalid data on line 4 in bad\n"
    );
    assert_eq!(
        complaint(&["short"]),
        "Dataset short must contain at least 3 data points\n"
    );
    assert_eq!(
        complaint(&[]),
        "Dataset <stdin> must contain at least 3 data points\n"
    );
    assert_eq!(
        complaint(&["-"]),
        "Dataset - must contain at least 3 data points\n"
    );
    assert_eq!(
        complaint(&["-C", "2", "good"]),
        "Dataset good must contain at least 3 data points\n"
    );
}

#[cfg(unix)]
#[test]
fn files_that_cannot_be_had_are_named_before_any_is_read() {
    let missing = "ministat: Cannot open missing: No such file or directory\n";
    assert_eq!(complaint(&["missing"]), missing);
    assert_eq!(complaint(&["bad", "missing"]), missing);
    assert_eq!(
        complaint(&["good", "folder"]),
        "ministat: Cannot read folder: Is a directory\n"
    );
}

#[test]
fn standard_input_stands_in_for_a_file() {
    let rows = "    N           Min           Max        Median           Avg        Stddev\n\
                x   3             1             3             2             2             1\n";
    let unnamed = here(&["-n"], "1\n2\n3\n");
    assert_eq!((unnamed.exit_code, unnamed.stderr.as_str()), (0, ""));
    assert_eq!(unnamed.stdout, format!("x <stdin>\n{rows}"));
    assert_eq!(
        here(&["-n", "-"], "1\n2\n3\n").stdout,
        format!("x -\n{rows}")
    );

    let second = here(&["-n", "good", "-"], "5\n6\n7\n").stdout;
    assert_eq!(
        second,
        format!(
            "x good\n+ -\n{rows}+   3             5             7             6             6             1\n"
        )
    );
}

#[test]
fn what_is_no_number_is_refused_with_its_line() {
    for text in ["1\nnan\n3\n4\n", "1\n-NAN(7)\n3\n4\n", "1\n2,5\n3\n"] {
        let refused = here(&["-n"], text);
        assert_eq!(refused.exit_code, 2);
        assert_eq!(
            refused.stderr,
            "ministat: Invalid data on line 2 in <stdin>\n"
        );
    }
    let marked = here(&["-n"], "\u{feff}1\n2\n3\n");
    assert_eq!(
        marked.stderr,
        "ministat: Invalid data on line 1 in <stdin>\n"
    );
    // FreeBSD's text for it.
    let infinite = here(&["-nq"], "1\ninf\n3\n");
    assert_eq!(
        infinite.stdout,
        "x   3             1           inf             3           inf           nan\n"
    );
}

#[cfg(unix)]
#[test]
fn names_keep_their_bytes() {
    use std::os::unix::ffi::OsStringExt;

    let name = OsString::from_vec(b"caf\xe9.pps".to_vec());
    let mut stdout = Vec::new();
    let exit_code = run(
        &["-n".into(), name],
        Surroundings {
            open: &mut |_| Ok(Box::new(&b"1\n2\n3\n"[..])),
            stdin: &mut io::empty(),
            stdout: &mut stdout,
            stderr: &mut io::sink(),
            layout: Layout::default(),
        },
    );
    assert_eq!(exit_code.unwrap(), 0);
    assert!(stdout.starts_with(b"x caf\xe9.pps\n"));
}

proptest! {
    #[test]
    fn any_input_ends_with_a_known_exit_code(
        text in "([-+0-9.einfax# ,\t]{0,12}\n){0,30}",
        arguments in prop::collection::vec("-[AnqsCcdwx]{1,2}|[0-9]{1,2}|good|short", 0..4),
    ) {
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let outcome = here(&arguments, &text);
        prop_assert_eq!(outcome.exit_code == 0, outcome.stderr.is_empty());
        prop_assert_eq!(outcome.exit_code == 2, outcome.stdout.is_empty());
    }
}
