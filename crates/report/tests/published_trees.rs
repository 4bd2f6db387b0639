//! What is found in trees of others is printed so that nothing in them acts.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use fwdlab_archive::lint::Finding;
use fwdlab_netbenches::ArchiveTree;
use fwdlab_netbenches::lint::lint_tree;
use fwdlab_report::{FindingsView, render};
use serde_json::Value;

/// Names of folders, of variants and in texts.
const HOSTILE: [&[u8]; 7] = [
    b"a\nb",
    b"a\r::error::b",
    b"'\"`$(x)&<b>|%0A,;",
    "a\u{202e}b\u{2066}".as_bytes(),
    b"a\x1b[31mb\x1b]0;x\x07",
    b"\xff\xfe",
    b"--help",
];

#[test]
fn names_of_others_act_in_no_form() {
    let tree = tempfile::tempdir().unwrap();
    for name in HOSTILE {
        let folder = tree
            .path()
            .join("topic/results")
            .join(OsStr::from_bytes(name));
        fs::create_dir_all(&folder).unwrap();
        let file = |ending: &str| {
            let mut file = b"bench.".to_vec();
            file.extend(name);
            file.extend(ending.bytes());
            folder.join(OsStr::from_bytes(&file))
        };
        fs::write(file(".1.receiver"), "pkt-gen: no\n").unwrap();
        fs::write(file(".pmc.graph"), [0; 64]).unwrap();
        fs::write(folder.join("x.pps"), [b"1\n2\n3\n", name].concat()).unwrap();
        fs::write(folder.join("y.pps"), "1\n3\n2\n").unwrap();
        let text = [
            b"# Impact of ".as_slice(),
            name,
            b"\n\n```\nx ",
            name,
            b"\n+ y.pps\n",
            b"x 3 1 3 2 2 1\n+ 3 5 7 6 6 1\n```\n[r368287 ",
            name,
            b"](bench.r368606.pmc.svg)\n",
        ];
        fs::write(folder.join("README.md"), text.concat()).unwrap();
        fs::write(
            folder.join("gnuplot.data"),
            [b"y 1 1 1\n", name, b" 1 x\n"].concat(),
        )
        .unwrap();
    }
    let findings = lint_tree(&ArchiveTree::read(tree.path()).unwrap());
    for code in ["L115", "L304", "L902", "L905"] {
        let of_code = findings.iter().filter(|finding| finding.rule.code == code);
        assert!(of_code.count() >= 5, "{code}");
    }
    let acts = |text: &str| {
        text.contains(|c: char| {
            c.is_control() && c != '\n' || ('\u{202a}'..='\u{202e}').contains(&c) || c == '\u{2066}'
        })
    };
    let of_tree: Vec<&Finding> = findings.iter().collect();
    let view = FindingsView {
        width: 80,
        colour: false,
        all: true,
    };
    let text = render::findings(&of_tree, 1, None, view);
    assert!(!acts(&text), "{text:?}");
    let begins = |line: &&str| {
        ["error[", "warning[", "note["]
            .iter()
            .any(|begin| line.starts_with(begin))
    };
    assert_eq!(text.lines().filter(begins).count(), findings.len());
    let github = render::findings_github(&of_tree);
    assert!(!acts(&github));
    assert_eq!(github.lines().count(), findings.len());
    assert!(github.lines().all(|line| line.starts_with("::")));
    let json = render::findings_json(&findings, &[], None).unwrap();
    assert!(!acts(&json));
    let items: Vec<Value> = serde_json::from_str(&json).unwrap();
    assert_eq!(items.len(), findings.len());
    let is_line = |text: &Value| {
        text.as_str()
            .is_some_and(|text| !acts(text) && !text.contains('\n'))
    };
    for item in &items {
        assert!(is_line(&item["sentence"]), "{item}");
        let evidence = item["evidence"].as_array().unwrap();
        assert!(
            evidence.iter().all(|evidence| is_line(&evidence["says"])),
            "{item}"
        );
    }
    let sarif: Value =
        serde_json::from_str(&render::findings_sarif(&findings, None).unwrap()).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), findings.len());
    assert!(
        results
            .iter()
            .all(|result| is_line(&result["message"]["text"]))
    );
}
