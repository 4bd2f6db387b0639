//! Every rule on a run that is sound, and on the same run with one thing changed.

use std::fs::{self, File};
use std::path::Path;

use super::sample::{append, finished, lint, measured, outcome};
use super::*;
use crate::sample as records;

/// The codes found in a finished run after a change to its directory.
fn after(change: impl FnOnce(&Path)) -> Vec<&'static str> {
    found(change).0
}

fn found(change: impl FnOnce(&Path)) -> (Vec<&'static str>, Vec<Finding>) {
    let root = tempfile::tempdir().unwrap();
    let dir = finished(root.path());
    change(&dir);
    lint(&dir)
}

fn edit(path: &Path, change: impl FnOnce(String) -> String) {
    let text = fs::read_to_string(path).unwrap();
    let changed = change(text.clone());
    assert_ne!(changed, text, "{} was to be changed", path.display());
    fs::write(path, changed).unwrap();
}

/// Changes the lines of a file.
fn edit_lines(path: &Path, change: impl FnOnce(&mut Vec<String>)) {
    edit(path, |text| {
        let mut lines: Vec<String> = text.lines().map(|line| format!("{line}\n")).collect();
        change(&mut lines);
        lines.concat()
    });
}

#[test]
fn nothing_is_found_in_what_a_run_writes_at_any_moment() {
    assert_eq!(after(|_| ()), [""; 0]);
    for attempts in 0..=5 {
        let root = tempfile::tempdir().unwrap();
        let results = measured(root.path(), attempts);
        let dir = results.dir().to_owned();
        // While it runs, and after it was killed.
        assert_eq!(lint(&dir).0, ["L907"], "{attempts}");
        drop(results);
        assert_eq!(lint(&dir).0, [""; 0], "{attempts}");
    }
}

#[test]
fn what_a_crash_leaves_is_no_finding_while_the_run_can_go_on() {
    let root = tempfile::tempdir().unwrap();
    let dir = measured(root.path(), 4).dir().to_owned();
    // The records of block 3 are there, its observations are not yet.
    for name in ["none", "nft", "xdp"] {
        let path = dir.join(format!("{name}.inet.pps"));
        edit_lines(&path, |lines| drop(lines.pop()));
    }
    // The slices of block 4 are there, its records are not yet.
    fs::copy(dir.join("blocks/3.csv"), dir.join("blocks/4.csv")).unwrap();
    assert_eq!(lint(&dir).0, [""; 0]);
    // Two blocks behind is no crash.
    edit_lines(&dir.join("none.inet.pps"), |lines| drop(lines.pop()));
    assert_eq!(lint(&dir).0, ["L102", "L102"]);
}

#[test]
fn a_value_that_was_replaced_is_shown_beside_that_of_its_trial() {
    let (codes, findings) = found(|dir| {
        edit_lines(&dir.join("nft.inet.pps"), |lines| {
            lines[2] = "1200000\n".into()
        });
    });
    assert_eq!(codes, ["L103"]);
    let [published, derived] = &findings[0].evidence[..] else {
        panic!("{findings:?}")
    };
    assert_eq!(
        (published.says.as_str(), published.line),
        ("1200000", Some(3))
    );
    assert!(published.path.ends_with("nft.inet.pps"));
    assert!(
        derived.says.starts_with("\"observation_pps\":"),
        "{derived:?}"
    );
    // Blocks 1 and 2, each attempt with three trials and its end, then the second trial of block 3.
    assert_eq!((derived.side, derived.line), (Side::Derived, Some(14)));
    assert!(findings[0].sentence.contains("in block 3"), "{findings:?}");
    // The same number in other digits is the same value.
    let codes = after(|dir| {
        edit(&dir.join("nft.inet.pps"), |text| {
            text.replace('\n', "e0\r\n\n")
        })
    });
    assert_eq!(codes, [""; 0]);
}

#[test]
fn a_value_that_was_taken_out_is_named_with_its_block() {
    let (codes, findings) = found(|dir| {
        edit_lines(&dir.join("nft.inet.pps"), |lines| drop(lines.remove(1)));
    });
    assert_eq!(codes, ["L102"]);
    assert!(
        findings[0].sentence.contains("leaves out block 2"),
        "{findings:?}"
    );
}

#[test]
fn a_value_without_a_trial_is_told_from_one_that_was_replaced() {
    let codes = after(|dir| {
        edit_lines(&dir.join("nft.inet.pps"), |lines| {
            lines.insert(1, "7\n".into())
        });
    });
    assert_eq!(codes, ["L104"]);
}

#[test]
fn values_that_have_nothing_to_do_with_the_trials_are_one_finding() {
    let codes = after(|dir| fs::write(dir.join("nft.inet.pps"), "1\n2\n3\n4\n").unwrap());
    assert_eq!(codes, ["L101"]);
    let codes = after(|dir| fs::write(dir.join("nft.inet.pps"), "1\n2\n3\n").unwrap());
    assert_eq!(codes, ["L101"]);
}

#[test]
fn sorted_values_are_told_from_replaced_ones() {
    let codes = after(|dir| edit_lines(&dir.join("nft.inet.pps"), |lines| lines.reverse()));
    assert_eq!(codes, ["L105"]);
}

#[test]
fn labels_that_were_exchanged_are_one_finding() {
    let codes = after(|dir| {
        let (none, nft) = (dir.join("none.inet.pps"), dir.join("nft.inet.pps"));
        let text = fs::read(&none).unwrap();
        fs::rename(&nft, &none).unwrap();
        fs::write(&nft, text).unwrap();
    });
    assert_eq!(codes, ["L202"]);
}

#[test]
fn values_of_another_variant_are_named_after_it() {
    let (codes, findings) = found(|dir| {
        fs::copy(dir.join("none.inet.pps"), dir.join("nft.inet.pps")).unwrap();
    });
    assert_eq!(codes, ["L201"]);
    assert!(
        findings[0].sentence.contains("none.inet.pps"),
        "{findings:?}"
    );
}

#[test]
fn a_file_of_observations_that_is_gone_or_nobodys_is_told() {
    let codes = after(|dir| fs::remove_file(dir.join("nft.inet.pps")).unwrap());
    assert_eq!(codes, ["L110"]);
    let codes = after(|dir| fs::write(dir.join("merged.pps"), "1\n").unwrap());
    assert_eq!(codes, ["L203"]);
}

#[test]
fn a_file_of_observations_that_holds_something_else_is_named_with_its_line() {
    let (codes, findings) = found(|dir| {
        edit_lines(&dir.join("nft.inet.pps"), |lines| lines[1] = "NaN\n".into());
    });
    assert_eq!(codes, ["L902"]);
    assert_eq!(findings[0].evidence[0].line, Some(2));
}

#[test]
fn every_figure_of_a_trial_is_held_against_its_slices() {
    for key in [
        "observation_pps",
        "pooled_pps",
        "measured_s",
        "undisturbed_s",
        "steal_s",
        "offered_frames",
        "forwarded_frames",
        "calibration_ns",
        "order",
        "nft",
    ] {
        let (codes, findings) = found(|dir| {
            edit_lines(&dir.join("trials.jsonl"), |lines| {
                // The last trial of block 1: its line, and whatever its number is.
                let start = lines[2].find(&format!("\"{key}\":")).unwrap() + key.len() + 3;
                lines[2].insert(start, '1');
            });
        });
        let is_found = findings.iter().any(|finding| {
            let named = if key == "nft" { "drops" } else { key };
            finding.rule == &TRIAL_NOT_OF_SLICES
                && finding.sentence.contains("block 1, xdp inet")
                && finding.sentence.contains(named)
                && finding.evidence[0].line == Some(3)
        });
        assert!(is_found, "{key}: {codes:?} {findings:?}");
    }
    // And the slices against the trial.
    let codes = after(|dir| {
        edit_lines(&dir.join("blocks/3.csv"), |lines| {
            let cells: Vec<&str> = lines[1].split(',').collect();
            let mut cells: Vec<String> = cells.iter().map(ToString::to_string).collect();
            cells[9] = "5".into();
            lines[1] = cells.join(",");
        });
    });
    assert_eq!(codes, ["L106"]);
}

#[test]
fn frames_that_do_not_add_up_are_found() {
    let change = |key: &str, by: &str| {
        let (key, by) = (format!("\"{key}\":"), by.to_owned());
        move |dir: &Path| {
            edit_lines(&dir.join("trials.jsonl"), |lines| {
                let at = lines[3].find(&key).unwrap() + key.len();
                lines[3].insert_str(at, &by);
            });
        }
    };
    assert_eq!(after(change("offered_frames", "1")), ["L107"]);
    assert_eq!(after(change("unaccounted_frames", "1")), ["L107"]);
    // One frame is lost and said to be; the block counts all the same.
    let codes = after(|dir| {
        edit_lines(&dir.join("trials.jsonl"), |lines| {
            let text = &lines[3];
            let at = text.find("\"offered_frames\":").unwrap() + "\"offered_frames\":".len();
            let end = at + text[at..].find(',').unwrap();
            let offered: u64 = text[at..end].parse().unwrap();
            let changed = format!("{}{}{}", &text[..at], offered + 1, &text[end..]);
            lines[3] = changed.replace("\"unaccounted_frames\":0", "\"unaccounted_frames\":1");
        });
    });
    assert_eq!(codes, ["L107"]);
}

#[test]
fn a_finished_run_that_was_changed_is_found() {
    // A block taken out, with its observations.
    let codes = after(|dir| {
        edit_lines(&dir.join("trials.jsonl"), |lines| lines.truncate(16));
        for name in ["none", "nft", "xdp"] {
            let path = dir.join(format!("{name}.inet.pps"));
            edit_lines(&path, |lines| drop(lines.pop()));
        }
    });
    assert_eq!(codes, ["L109", "L104"]);
}

#[test]
fn slices_that_are_gone_are_a_missing_run() {
    let codes = after(|dir| fs::remove_file(dir.join("blocks/3.csv")).unwrap());
    assert_eq!(codes, ["L104"]);
}

#[test]
fn a_changed_experiment_and_another_machine_are_found() {
    let resolved = |from: &'static str, to: &'static str| {
        move |dir: &Path| edit(&dir.join("resolved.json"), |text| text.replace(from, to))
    };
    assert_eq!(
        after(resolved("Impact of a test", "Impact of luck")),
        ["L207"]
    );
    assert_eq!(after(resolved("\"6.18.44\"", "\"6.18.45\"")), ["L204"]);
    let second = |cpu: &'static str, number: u32| {
        move |dir: &Path| {
            let mut session = records::session(number);
            session.environment.cpu_model = cpu.into();
            let text = serde_json::to_string(&session).unwrap();
            fs::write(dir.join(format!("sessions/{number}.json")), text).unwrap();
        }
    };
    assert_eq!(after(second("A CPU", 2)), [""; 0]);
    assert_eq!(after(second("Another CPU", 2)), ["L204"]);
    assert_eq!(after(second("A CPU", 3)), ["L110"]);
}

#[test]
fn a_block_that_is_older_than_its_session_or_its_predecessor_is_found() {
    let change = |from: &'static str, to: &'static str| {
        move |dir: &Path| {
            edit_lines(&dir.join("trials.jsonl"), |lines| {
                lines[15] = lines[15].replace(from, to);
            });
        }
    };
    assert_eq!(
        after(change("2026-11-21T08:45", "2026-11-21T08:41")),
        ["L205"]
    );
    assert_eq!(
        after(change("2026-11-21T08:45", "2026-11-21T08:43")),
        ["L205"]
    );
    assert_eq!(after(change("2026-11-21T08:45:30Z", "yesterday")), [""; 0]);
}

#[test]
fn invalid_trials_of_one_variant_alone_are_found() {
    let run = |all: bool, attempts: u32| {
        let root = tempfile::tempdir().unwrap();
        let mut results = measured(root.path(), 1);
        for attempt in 1..=attempts {
            let mut invalid = outcome(2, attempt, 1, false);
            if all {
                let reasons = invalid.trials[1].invalid.clone();
                invalid
                    .trials
                    .iter_mut()
                    .for_each(|trial| trial.invalid.clone_from(&reasons));
            }
            append(&mut results, invalid);
        }
        let dir = results.dir().to_owned();
        drop(results);
        lint(&dir).0
    };
    // Six of six among three variants: 3 x 3^-6 is 0.4 %; five are more likely than that.
    assert_eq!(run(false, 6), ["L401"]);
    assert_eq!(run(false, 5), [""; 0]);
    // What holds for all trials of a block at once is no choice among them.
    assert_eq!(run(true, 6), [""; 0]);
}

#[test]
fn a_slice_that_stood_still_is_a_finding_where_its_trial_counts() {
    let stalled = |is_invalid: bool| {
        let (codes, findings) = found(|dir: &Path| {
            edit_lines(&dir.join("blocks/1.csv"), |lines| {
                let mut cells: Vec<&str> = lines[2].split(',').collect();
                cells[5] = "5.004";
                lines[2] = cells.join(",");
            });
            if is_invalid {
                edit(&dir.join("trials.jsonl"), |text| {
                    text.replace(
                        "\"invalid\":[]",
                        r#""invalid":[{"reason":"stalled","longest_s":4.9,"bound_s":0.025}]"#,
                    )
                });
            }
        });
        assert!(codes.contains(&"L106"), "{findings:?}");
        findings
            .into_iter()
            .find(|finding| finding.rule.code == "L411")
    };
    let finding = stalled(false).unwrap();
    assert!(
        finding.sentence.contains("lasted 5.004 s instead of"),
        "{finding:?}"
    );
    assert_eq!(finding.evidence[0].line, Some(3));
    assert_eq!(stalled(true), None);
}

#[test]
fn what_does_not_read_is_a_finding_with_its_line() {
    for (code, line, change) in [
        (
            "L902",
            Some(2),
            &(|dir: &Path| {
                edit_lines(&dir.join("trials.jsonl"), |lines| lines[1] = "{\n".into());
            }) as &dyn Fn(&Path),
        ),
        ("L902", Some(3), &|dir| {
            edit_lines(&dir.join("blocks/1.csv"), |lines| {
                lines[2] = "inet,x\n".into()
            });
        }),
        ("L903", Some(2), &|dir| {
            edit_lines(&dir.join("trials.jsonl"), |lines| {
                lines[1] = lines[1].replace("\"schema\":1", "\"schema\":99");
            });
        }),
        ("L901", None, &|dir| {
            fs::remove_file(dir.join("resolved.json")).unwrap()
        }),
        ("L902", None, &|dir| {
            fs::write(dir.join("plan.json"), [0xff; 9]).unwrap()
        }),
        ("L904", Some(21), &|dir| {
            edit(&dir.join("trials.jsonl"), |text| text + "{\"record\"");
        }),
    ] {
        let (codes, findings) = found(change);
        assert_eq!(codes, [code], "{findings:?}");
        let found_line = findings[0].evidence[0].line;
        assert!(line.is_none() || found_line == line, "{findings:?}");
    }
}

#[test]
fn strangers_and_hostile_names_are_told() {
    let write = |name: &'static str| move |dir: &Path| fs::write(dir.join(name), "").unwrap();
    assert_eq!(after(write("notes.txt")), ["L906"]);
    assert_eq!(after(write("blocks/01.csv")), ["L906"]);
    assert_eq!(after(write(".none.inet.pps.7.tmp")), ["L906"]);
    assert_eq!(after(write("a\nb")), ["L905"]);
    assert_eq!(after(write("a\u{202e}b")), ["L905"]);
    assert_eq!(after(write("a\u{1b}[31m")), ["L905"]);
    let codes = after(|dir| std::os::unix::fs::symlink("/", dir.join("up")).unwrap());
    assert_eq!(codes, ["L906"]);
    let codes = after(|dir| {
        use std::os::unix::ffi::OsStrExt as _;
        let name = std::ffi::OsStr::from_bytes(b"a\xffb");
        File::create(dir.join(name)).unwrap();
    });
    assert_eq!(codes, ["L905"]);
}

#[test]
fn a_link_to_nothing_is_found() {
    let (codes, findings) = found(|dir| {
        fs::write(
            dir.join("README.md"),
            "# Title\n![Plot](derived/effects.svg) [records](trials.jsonl)\n",
        )
        .unwrap();
    });
    assert_eq!(codes, ["L301"]);
    assert_eq!(findings[0].evidence[0].line, Some(2));
}

#[test]
fn results_are_searched_for_without_entering_loops() {
    let root = tempfile::tempdir().unwrap();
    let dir = finished(root.path());
    let found = |root: &Path| search(root).unwrap().directories;
    assert_eq!(found(root.path()), std::slice::from_ref(&dir));
    assert_eq!(found(&dir), std::slice::from_ref(&dir));
    std::os::unix::fs::symlink(root.path(), root.path().join("again")).unwrap();
    fs::create_dir(root.path().join(".hidden")).unwrap();
    fs::write(root.path().join(".hidden/resolved.json"), "").unwrap();
    let found = search(root.path()).unwrap();
    assert_eq!((found.directories, found.findings), (vec![dir], vec![]));
    assert!(search(&root.path().join("missing")).is_err());
}

#[test]
fn any_bytes_in_any_file_are_findings_at_most() {
    use proptest::prelude::*;
    let root = tempfile::tempdir().unwrap();
    let dir = finished(root.path());
    fs::write(dir.join("README.md"), "x").unwrap();
    let names = [
        "README.md",
        "blocks/1.csv",
        "finished.json",
        "nft.inet.pps",
        "plan.json",
        "resolved.json",
        "sessions/1.json",
        "trials.jsonl",
    ];
    let whole: Vec<Vec<u8>> = names
        .iter()
        .map(|name| fs::read(dir.join(name)).unwrap())
        .collect();
    let strategy = (
        0..names.len(),
        any::<Vec<u8>>(),
        any::<prop::sample::Index>(),
    );
    proptest!(ProptestConfig::with_cases(64), |((file, bytes, position) in strategy)| {
        let mut spliced = whole[file].clone();
        let start = position.index(spliced.len());
        let end = (start + bytes.len()).min(spliced.len());
        spliced.splice(start..end, bytes);
        let path = dir.join(names[file]);
        fs::write(&path, &spliced).unwrap();
        let _ = lint_directory(&dir);
        fs::write(&path, &whole[file]).unwrap();
    });
}

#[test]
fn stacks_are_held_against_the_samples_that_their_trial_records() {
    let profile = |dir: &Path| dir.join("profiles/1.none.inet.folded");
    for (text, says) in [
        ("fwdlab;ip_forward 8\n", "8 samples"),
        ("prose\n", "line 1: expected"),
        ("fwdlab;ip_forward 7", "it does not end"),
    ] {
        let (codes, findings) = found(|dir| fs::write(profile(dir), text).unwrap());
        assert_eq!(codes, ["L504"]);
        assert!(
            findings[0]
                .sentence
                .contains("the 7 samples recorded of it")
        );
        assert!(findings[0].evidence[0].says.contains(says), "{findings:?}");
    }
    // A run may be published without them.
    assert_eq!(
        after(|dir| fs::remove_file(profile(dir)).unwrap()),
        ["L505"]
    );
    assert_eq!(
        after(|dir| fs::remove_dir_all(dir.join("profiles")).unwrap()),
        ["L505"]
    );
    assert_eq!(
        after(|dir| fs::write(dir.join("profiles/notes"), "x").unwrap()),
        ["L906"]
    );
}
