//! What is no call graph, and why.

use fwdlab_profile::{CallGraph, CallGraphError, Folded};

fn refusal(text: &[u8]) -> String {
    CallGraph::parse(text)
        .expect_err("no call graph")
        .to_string()
}

#[test]
fn what_is_not_of_the_grammar_is_refused_with_its_line() {
    for (text, expected) in [
        (
            "",
            "no section at all, not even a whole first line; give what pmcstat -G wrote",
        ),
        (
            "\n\n@ cpu [1 sam",
            "no section at all, not even a whole first line; give what pmcstat -G wrote",
        ),
        (
            "CMD: pkt-gen -N -f rx\n",
            "line 1: expected a percentage (\"CMD: pkt-gen -N -f rx\"); give what pmcstat -G wrote",
        ),
        (
            "a;b;c 12\n",
            "line 1: expected a percentage (\"a;b;c 12\"); give what pmcstat -G wrote",
        ),
        (
            "100.0%  [1]  a @ b\n",
            "line 1: a frame before any section; the first line should be \"@ EVENT [N samples]\"",
        ),
        (
            "@ e [9 samples]\n\n100.0%  [9]  a @ b\n  100.0%  [9]  c\n",
            "line 4: a frame at depth 2 where at most 1 follows; lines are missing before it",
        ),
        (
            "@ e [9 samples]\n\n100.0%  [9]  a @ b\n\n 100.0%  [9]  c\n",
            "line 5: a frame at depth 1 where at most 0 follows; lines are missing before it",
        ),
        (
            "@ e [9 samples]\n\n55.56%  [5]  a @ b\n44.44%  [4]  c @ b\n",
            "line 4: no empty line before it; lines are missing or joined",
        ),
        (
            "@ e [5 samples]\n\n100.0%  [5]  a @ b\n@ e [4 samples]\n",
            "line 4: no empty line before it; lines are missing or joined",
        ),
        (
            "@ e [9 samples]\n\n55.56%  [5]  a @ b\n\n55.56%  [5]  c @ b\n",
            "line 5: 10 samples with those beside it, of 9; a number was changed",
        ),
        (
            "@ e [9 samples]\n\n100.0%  [9]  a @ b\n 55.56%  [5]  c\n 55.56%  [5]  d\n",
            "line 5: 10 samples with those beside it, of 9; a number was changed",
        ),
        (
            "@ e [9 samples]\n\n100.0%  [9]  a @ b\n\0\0\0\0\n",
            "line 4: expected a percentage (\"\\0\\0\\0\\0\"); give what pmcstat -G wrote",
        ),
        // A beginning of a line is one at the end of the text alone.
        (
            "@ e [9 samples]\n\n100.0%  [9]  a @ b\n 55.\n",
            "line 4: expected a percentage (\" 55.\"); give what pmcstat -G wrote",
        ),
        (
            "@ e [9 samples]\n\n100.0%  [9]  a @ b\n\0\0\0\0",
            "line 4: expected a percentage (\"\\0\\0\\0\\0\"); give what pmcstat -G wrote",
        ),
        (
            "@ e [9 samples]\n\n100.0%  [9]  a @ b\n   55.56%  [5]  c",
            "line 4: a frame at depth 3 where at most 1 follows; lines are missing before it",
        ),
    ] {
        assert_eq!(refusal(text.as_bytes()), expected, "{text}");
    }
    assert_eq!(
        refusal(b"@ e [9 samples]\n\n\x7fELF\x02\x01\x01\xff\xfe\n"),
        "line 3: bytes that are no text; give what pmcstat -G wrote"
    );
    let most = u32::MAX;
    let wide = format!("@ e [{most} samples]\n\n100.0%  [{most}]  a @ b\n\n00.00%  [1]  c @ b\n");
    assert_eq!(
        CallGraph::parse(wide.as_bytes()).unwrap_err(),
        CallGraphError::TooManySamples {
            line: 5,
            samples: u64::from(most) + 1,
            whole: most
        }
    );
}

#[test]
fn lines_may_end_as_elsewhere() {
    let text = "@ e [9 samples]\n\n66.67%  [6]  a @ b\n 83.33%  [5]  c\n\n33.33%  [3]  a @ d\n\n";
    let (unix, dos) = (text.to_owned(), text.replace('\n', "\r\n"));
    let [unix, dos] = [&unix, &dos].map(|text| CallGraph::parse(text.as_bytes()).unwrap());
    assert_eq!(dos.truncation(None), None);
    assert_eq!(unix.stackcollapse(), dos.stackcollapse());
    let section = &dos.sections()[0];
    assert!(unix.frames(section).eq(dos.frames(section)));
}

#[test]
fn what_is_no_folded_stack_is_refused_with_its_line() {
    for (text, expected) in [
        (
            &b"a;b 1\nCMD:\n"[..],
            "line 2: expected \"frame;frame;frame N\" (\"CMD:\"); give folded stacks",
        ),
        (
            b"a;;b 1\n",
            "line 1: expected \"frame;frame;frame N\" (\"a;;b 1\"); give folded stacks",
        ),
        (
            b" 1\n",
            "line 1: expected \"frame;frame;frame N\" (\" 1\"); give folded stacks",
        ),
        (
            b"a 1\n\n",
            "line 2: expected \"frame;frame;frame N\" (\"\"); give folded stacks",
        ),
        (
            b"a -1\n",
            "line 1: expected \"frame;frame;frame N\" (\"a -1\"); give folded stacks",
        ),
        (
            b"a 18446744073709551616\n",
            "line 1: expected \"frame;frame;frame N\" (\"a 18446744073709551616\"); give folded stacks",
        ),
        (
            b"a 1\nb 12",
            "line 2: it does not end, its number may be cut; fold the profile again",
        ),
        (
            b"a 1\n\xff 2\n",
            "line 2: bytes that are no text; give folded stacks",
        ),
    ] {
        assert_eq!(Folded::parse(text).unwrap_err().to_string(), expected);
    }
    assert_eq!(Folded::parse(b"").unwrap(), Folded::new());
}
