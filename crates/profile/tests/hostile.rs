//! The same odd files for every reader: read as the plain one is, or refused with a reason.

use fwdlab_profile::{CallGraph, Dtrace, Folded, FrameNames, PerfScript};

/// A form: how a stack of a function, called by `main`, is printed, and what it folds to.
struct Form {
    name: &'static str,
    print: fn(&str) -> String,
    read: fn(&[u8]) -> Result<String, String>,
    /// Whether names may have spaces.
    has_spaces: bool,
}

const FORMS: [Form; 4] = [
    Form {
        name: "perf script",
        print: |function| {
            format!(
                "nc 7 [001] 1.5: 1 cycles: \n\tff {function}+0x1 (/a (deleted))\n\tfe main+0x1 (/a)\n\n"
            )
        },
        read: |text| match PerfScript::read(text, FrameNames::Symbols, None) {
            Ok(script) => Ok(script.folded.to_string().replace("nc;", "")),
            Err(error) => Err(error.to_string()),
        },
        has_spaces: true,
    },
    Form {
        name: "dtrace",
        print: |function| {
            format!(
                "  1  12          :END \n\n              k`{function}+0x1\n              k`main+0x1\n                1\n"
            )
        },
        read: |text| match Dtrace::read(text, FrameNames::Symbols) {
            Ok(dtrace) => Ok(dtrace.folded.to_string()),
            Err(error) => Err(error.to_string()),
        },
        has_spaces: true,
    },
    Form {
        name: "pmcstat",
        print: |function| {
            format!(
                "@ cycles [1 samples]\n\n100.0%  [1]        {function} @ /a\n 100.0%  [1]         main\n\n"
            )
        },
        read: |text| match CallGraph::parse(text) {
            Ok(graph) if graph.truncation(None).is_some() => Err("line 4: cut".to_owned()),
            Ok(graph) => Ok(graph.fold(FrameNames::Symbols).to_string()),
            Err(error) => Err(error.to_string()),
        },
        has_spaces: false,
    },
    Form {
        name: "folded stacks",
        print: |function| format!("main;{function} 1\n"),
        read: |text| match Folded::parse(text) {
            Ok(folded) => Ok(folded.to_string()),
            Err(error) => Err(error.to_string()),
        },
        has_spaces: true,
    },
];

#[test]
fn a_mark_of_byte_order_and_line_ends_of_either_kind_change_nothing() {
    for form in FORMS {
        let text = (form.print)("hot");
        for odd in [
            text.clone(),
            format!("\u{feff}{text}"),
            text.replace('\n', "\r\n"),
            format!("\u{feff}{}", text.replace('\n', "\r\n")),
        ] {
            let folded = (form.read)(odd.as_bytes());
            assert_eq!(
                folded.as_deref(),
                Ok("main;hot 1\n"),
                "{} {odd:?}",
                form.name
            );
        }
        // The recogniser of the form sees through both as well.
        let marked = format!("\u{feff}{text}");
        let begun = [
            PerfScript::is_begun_by(marked.as_bytes()),
            Dtrace::is_begun_by(marked.as_bytes()),
            CallGraph::is_begun_by(marked.as_bytes()),
        ];
        let expected = ["perf script", "dtrace", "pmcstat"].map(|name| name == form.name);
        assert_eq!(begun, expected, "{}", form.name);
    }
}

#[test]
fn other_encodings_and_other_programs_files_are_refused_by_their_name() {
    for form in FORMS {
        let text = (form.print)("hot");
        let units = |mark: &str| -> Vec<u16> { format!("{mark}{text}").encode_utf16().collect() };
        let utf16: [Vec<u8>; 3] = [
            units("\u{feff}")
                .iter()
                .flat_map(|unit| unit.to_le_bytes())
                .collect(),
            units("\u{feff}")
                .iter()
                .flat_map(|unit| unit.to_be_bytes())
                .collect(),
            units("")
                .iter()
                .flat_map(|unit| unit.to_le_bytes())
                .collect(),
        ];
        for odd in &utf16 {
            let error = (form.read)(odd).unwrap_err();
            assert!(error.contains("UTF-16"), "{}: {error}", form.name);
        }
        for (odd, expected) in [
            (&b"PERFILE2\x68\0\0\0\0"[..], "perf script -i FILE"),
            (b"\x1f\x8b\x08\0\0\n\0", "zcat FILE"),
            // More than a line may have.
            (&[&b"\x1f\x8b"[..], &vec![7; 3 << 20]].concat(), "zcat FILE"),
        ] {
            let error = (form.read)(odd).unwrap_err();
            assert!(error.contains(expected), "{}: {error}", form.name);
            assert!(!PerfScript::is_begun_by(odd) && !Dtrace::is_begun_by(odd));
        }
    }
}

#[test]
fn what_is_cut_or_spoilt_is_refused_with_its_line_and_nothing_is_no_stack() {
    for form in FORMS {
        let text = (form.print)("hot");
        let refused = |odd: &str| {
            let error = (form.read)(odd.as_bytes()).unwrap_err();
            assert!(error.starts_with("line "), "{} {odd:?}: {error}", form.name);
        };
        let last = text.trim_end();
        // Of perf's last line one sees where it ends.
        if form.name == "perf script" {
            assert_eq!((form.read)(last.as_bytes()).unwrap(), "main;hot 1\n");
        } else {
            refused(last);
        }
        refused(&last[..last.len() - 1]);
        refused(&format!("{text}\0\0\0\0\n"));
        // Scripts of DTrace's print titles.
        if form.name != "dtrace" {
            refused(&format!("{text}prose\n"));
            refused("prose\n");
        }
        match form.name {
            "pmcstat" => refused(&text.replace("[1 samples]", "[1,234 samples]")),
            "perf script" => refused(&format!("{text}{}", text.replace(" 1 c", " 1,234 c"))),
            "dtrace" => refused(&text.replace("  1\n", "  1,234\n")),
            _ => refused(&text.replace(" 1\n", " 1,234\n")),
        }
        let nothing = (form.read)(b"");
        let is_nothing = nothing.map_or_else(
            |error| error.starts_with("no section"),
            |folded| folded.is_empty(),
        );
        assert!(is_nothing, "{}", form.name);
        refused(&(form.print)("h\0t"));
    }
}

#[test]
fn names_are_kept_whatever_is_in_them() {
    for form in FORMS {
        for name in [
            "operator()(int)",
            "a,b",
            "\"it's\"",
            "1,234",
            "\u{b7}x",
            "(a)",
            "->x",
        ] {
            let folded = (form.read)((form.print)(name).as_bytes());
            assert_eq!(folded, Ok(format!("main;{name} 1\n")), "{}", form.name);
        }
        for name in ["two words", "f(int, char) [clone .cold]", "g (x) 7"] {
            let folded = (form.read)((form.print)(name).as_bytes());
            match folded {
                Ok(folded) => assert_eq!(folded, format!("main;{name} 1\n"), "{}", form.name),
                Err(error) => assert!(!form.has_spaces && error.starts_with("line 3"), "{error}"),
            }
        }
    }
}

/// A reader that looks at the rest of the line for each of its words or parentheses takes hours.
#[test]
fn a_line_of_a_million_words_is_read_or_refused() {
    for form in FORMS {
        for word in [
            "7 ",
            "a ",
            "[1] 1.5: ",
            " (",
            ") (",
            "+0x1 (",
            "a`b ",
            "a;",
            "1,",
            "@[",
            ": ",
        ] {
            let words = word.repeat(1_000_000);
            for text in [
                words.clone(),
                format!("{words}\n"),
                format!("nc {words}\n"),
                (form.print)(&words),
                (form.print)(&words[..1 << 19]),
            ] {
                if let Err(error) = (form.read)(text.as_bytes()) {
                    assert!(error.len() < 400, "{}", form.name);
                }
                let _ = (
                    PerfScript::is_begun_by(text.as_bytes()),
                    Dtrace::is_begun_by(text.as_bytes()),
                );
            }
        }
    }
}
