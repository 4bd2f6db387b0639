//! Every rule on a run that is sound, and on the same run with one thing changed.

use std::fs::{self, File};
use std::path::Path;

use super::sample::{append, finished, lint, measured, outcome, without_chain};
use fwdlab_model::SessionRecord;

use super::*;
use crate::sample as records;

/// The codes found in a finished run after a change to its directory, without the chain, which would find it anyhow.
fn after(change: impl FnOnce(&Path)) -> Vec<&'static str> {
    found(change).0
}

fn found(change: impl FnOnce(&Path)) -> (Vec<&'static str>, Vec<Finding>) {
    let root = tempfile::tempdir().unwrap();
    let dir = without_chain(root.path());
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

/// A session that began at a minute after eight o'clock; block n of the sample is measured in minute 42 + n.
fn later_session(session: u32, minute: u32) -> SessionRecord {
    SessionRecord {
        start: format!("2026-11-21T08:{minute}:00Z"),
        ..records::session(session)
    }
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
        let expected: &[&str] = if attempts == 5 { &["L909"] } else { &[] };
        assert_eq!(lint(&dir).0, expected, "{attempts}");
    }
    let root = tempfile::tempdir().unwrap();
    assert_eq!(lint(&finished(root.path())).0, [""; 0]);
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
    // The same number in other digits is the same value; lint names other ends of lines.
    for (ends, expected) in [("e0\n", &[][..]), ("e0\r\n\n", &["L302"])] {
        let codes = after(|dir| {
            edit(&dir.join("nft.inet.pps"), |text| text.replace('\n', ends));
        });
        assert_eq!(codes, expected, "{ends:?}");
    }
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
    // All of them.
    let codes = after(|dir| fs::write(dir.join("nft.inet.pps"), "").unwrap());
    assert_eq!(codes, ["L102"; 4]);
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
            let mut session = later_session(number, 47);
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
    assert_eq!(after(change("2026-11-21T08:45:30Z", "yesterday")), ["L210"]);
    // A time of somewhere.
    assert_eq!(after(change("08:45:30Z", "08:45:30+00:00")), ["L210"]);
    // A trial before its block, and one after the next block.
    let trial = |at: usize, minutes: &'static str| {
        move |dir: &Path| {
            edit_lines(&dir.join("trials.jsonl"), |lines| {
                lines[at] = lines[at].replace("2026-11-21T08:45:3", minutes);
            });
        }
    };
    assert_eq!(after(trial(13, "2026-11-21T08:45:2")), ["L205"]);
    assert_eq!(after(trial(13, "2026-11-21T08:46:5")), ["L205"]);
    // A session after its first block, the run after its first session, and the end before the last block.
    for (name, from, to) in [
        ("sessions/1.json", "08:42:53", "08:43:59"),
        ("resolved.json", "084253", "084259"),
        ("finished.json", "08:50:00", "08:40:00"),
    ] {
        let codes = after(|dir| edit(&dir.join(name), |text| text.replace(from, to)));
        assert_eq!(codes, ["L205"], "{name}");
    }
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
fn a_slice_that_took_more_than_was_offered_is_a_finding() {
    let (codes, findings) = found(|dir: &Path| {
        edit_lines(&dir.join("blocks/1.csv"), |lines| {
            let mut cells: Vec<&str> = lines[2].split(',').collect();
            cells[19] = "999999999\n";
            lines[2] = cells.join(",");
        });
    });
    assert!(codes.contains(&"L107"), "{findings:?}");
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
                lines[1] = lines[1].replace("\"schema\":2", "\"schema\":99");
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
        "chain.jsonl",
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

#[test]
fn a_line_among_those_of_another_block_is_named() {
    // What counts in block 1 is of no block where it stands now.
    for (at, among) in [
        (17, "among those of block 4, attempt 1"),
        (12, "among those of block 3, attempt 1"),
        (20, "behind the last block"),
    ] {
        let (codes, findings) = found(|dir| {
            edit_lines(&dir.join("trials.jsonl"), |lines| {
                let copied = lines[1].clone();
                lines.insert(at, copied);
            });
        });
        assert_eq!(codes, ["L120"]);
        let sentence = &findings[0].sentence;
        let start = format!(
            "line {} of trials.jsonl is a trial of block 1, attempt 1, {among}",
            at + 1
        );
        assert!(sentence.starts_with(&start), "{sentence}");
    }
    // Of an attempt that was cut short nothing counts, and nothing is wrong.
    let codes = after(|dir| {
        edit_lines(&dir.join("trials.jsonl"), |lines| {
            let cut = lines[16].replace("\"attempt\":1", "\"attempt\":3");
            lines.insert(16, cut);
        });
    });
    assert_eq!(codes, [""; 0]);
}

#[test]
fn folders_and_files_that_do_not_read_are_named() {
    for folder in ["blocks", "sessions", "profiles", "derived"] {
        let (codes, findings) = found(|dir| {
            let _ = fs::remove_dir_all(dir.join(folder));
            fs::write(dir.join(folder), "").unwrap();
        });
        assert_eq!(codes[0], "L901", "{findings:?}");
        let says = format!("the folder {folder} cannot be listed");
        assert!(findings[0].sentence.contains(&says), "{findings:?}");
    }
    let (codes, findings) = found(|dir| {
        fs::remove_file(dir.join("experiment.toml")).unwrap();
        fs::create_dir(dir.join("experiment.toml")).unwrap();
    });
    assert_eq!(codes, ["L901"]);
    assert!(findings[0].sentence.starts_with("experiment.toml cannot"));
    let codes = after(|dir| fs::remove_file(dir.join("experiment.toml")).unwrap());
    assert_eq!(codes, ["L110"]);
}

#[test]
fn a_missing_mark_of_the_end_is_noted() {
    let (codes, findings) = found(|dir| fs::remove_file(dir.join("finished.json")).unwrap());
    assert_eq!(codes, ["L909"]);
    assert_eq!(
        findings[0].sentence,
        "all 4 blocks were measured, and there is no finished.json"
    );
}

mod chain {
    //! A run with its chain: what is changed, where, and in which part.

    use std::collections::BTreeMap;

    use fwdlab_model::sha256;

    use super::*;
    use crate::results::{Choice, Results};

    /// The findings of the chain's rules after a change to a finished run: codes and sentences.
    fn after(change: impl FnOnce(&Path)) -> Vec<(&'static str, String)> {
        let root = tempfile::tempdir().unwrap();
        let dir = finished(root.path());
        change(&dir);
        of_chain(&dir)
    }

    fn of_chain(dir: &Path) -> Vec<(&'static str, String)> {
        let of_chain = ["L109", "L118", "L119", "L904", "L908", "L909"];
        let findings = lint(dir).1.into_iter();
        findings
            .filter(|finding| of_chain.contains(&finding.rule.code))
            .map(|finding| (finding.rule.code, finding.sentence))
            .collect()
    }

    fn changed(what: &str) -> Vec<(&'static str, String)> {
        vec![("L118", what.to_owned())]
    }

    fn append_to(name: &'static str) -> impl FnOnce(&Path) {
        move |dir| edit(&dir.join(name), |text| text + " ")
    }

    #[test]
    fn the_first_block_that_differs_is_named_with_what_differs() {
        for (name, expected) in [
            (
                "experiment.toml",
                "block 1, attempt 1, is not as it was written; what differs: experiment.toml",
            ),
            (
                "resolved.json",
                "block 1, attempt 1, is not as it was written; what differs: resolved.json",
            ),
            (
                "plan.json",
                "block 1, attempt 1, is not as it was written; what differs: plan.json",
            ),
            (
                "sessions/1.json",
                "block 1, attempt 1, is not as it was written; what differs: sessions/1.json",
            ),
            (
                "blocks/3.csv",
                "block 3, attempt 1, is not as it was written; what differs: blocks/3.csv",
            ),
            (
                "blocks/2.attempt-2.csv",
                "block 2, attempt 2, is not as it was written; what differs: blocks/2.attempt-2.csv",
            ),
            (
                "profiles/4.xdp.inet.folded",
                "block 4, attempt 1, is not as it was written; what differs: profiles/4.xdp.inet.folded",
            ),
        ] {
            assert_eq!(after(append_to(name)), changed(expected), "{name}");
        }
        let both = after(|dir| {
            append_to("profiles/2.nft.inet.folded")(dir);
            append_to("blocks/2.csv")(dir);
            append_to("blocks/4.csv")(dir);
            edit_lines(&dir.join("trials.jsonl"), |lines| {
                lines[5] = lines[5].replace("\"steal_s\":0.0", "\"steal_s\":0");
            });
        });
        assert_eq!(
            both,
            changed(
                "block 2, attempt 1, is not as it was written; what differs: lines 5 to 8 of trials.jsonl, \
                 blocks/2.csv, profiles/2.nft.inet.folded"
            )
        );
        let gone = after(|dir| fs::remove_file(dir.join("experiment.toml")).unwrap());
        assert_eq!(
            gone,
            changed(
                "block 1, attempt 1, is not as it was written; what differs: experiment.toml (not there)"
            )
        );
        // A run may be published without its profiles.
        assert_eq!(
            after(|dir| fs::remove_dir_all(dir.join("profiles")).unwrap()),
            []
        );
    }

    #[test]
    fn variants_that_change_places_in_the_experiment_are_an_error() {
        let exchange = |dir: &Path| {
            edit(&dir.join("resolved.json"), |text| {
                let text = text.replace("\"baseline\": \"none\"", "\"baseline\": \"nft\"");
                text.replacen("        \"nft\",\n", "        \"none\",\n", 1)
            });
        };
        assert_eq!(
            after(exchange),
            changed("block 1, attempt 1, is not as it was written; what differs: resolved.json")
        );
        // Earlier versions wrote no more than a hash beside it.
        let (codes, findings) = found(exchange);
        assert_eq!(codes, ["L207"]);
        assert_eq!(findings[0].rule.severity, Severity::Error);
    }

    #[test]
    fn lines_that_are_taken_out_put_in_or_moved_break_the_chain() {
        type Change = fn(&mut Vec<String>);
        let changes: [(Change, &str); 6] = [
            (
                |lines| drop(lines.remove(2)),
                "lines 2 and 3 of chain.jsonl do not belong together",
            ),
            (
                |lines| drop(lines.remove(0)),
                "the first line of chain.jsonl names one before it",
            ),
            (
                |lines| lines.swap(1, 2),
                "lines 1 and 2 of chain.jsonl do not belong together",
            ),
            (
                |lines| lines.push(lines[4].clone()),
                "lines 5 and 6 of chain.jsonl do not belong",
            ),
            (
                |lines| drop(lines.pop()),
                "the last line of chain.jsonl is not the one that finished.json",
            ),
            (
                |lines| lines.clear(),
                "chain.jsonl has no line for block 1, attempt 1",
            ),
        ];
        for (change, says) in changes {
            let found = after(|dir| edit_lines(&dir.join("chain.jsonl"), change));
            let [("L119", sentence)] = &found[..] else {
                panic!("{says}: {found:?}")
            };
            assert!(sentence.starts_with(says), "{sentence}");
        }
        let torn = after(|dir| {
            edit(&dir.join("chain.jsonl"), |text| {
                text[..text.len() - 9].to_owned()
            });
        });
        assert_eq!(
            torn,
            [(
                "L119",
                "the last line of chain.jsonl was cut short".to_owned()
            )]
        );
        // Whatever is changed in a line that the next one names is no fault of the files.
        let flipped = after(|dir| {
            edit_lines(&dir.join("chain.jsonl"), |lines| {
                let at = lines[2].find("blocks/2").unwrap() + 30;
                let was = lines[2].remove(at);
                lines[2].insert(at, if was == '0' { '1' } else { '0' });
            });
        });
        assert!(
            flipped[0]
                .1
                .starts_with("lines 3 and 4 of chain.jsonl do not belong"),
            "{flipped:?}"
        );
    }

    #[test]
    fn a_block_that_is_taken_out_everywhere_but_in_the_end_is_found() {
        let truncate = |dir: &Path| {
            edit_lines(&dir.join("trials.jsonl"), |lines| lines.truncate(16));
            edit_lines(&dir.join("chain.jsonl"), |lines| drop(lines.pop()));
            fs::remove_file(dir.join("blocks/4.csv")).unwrap();
            for name in ["none", "nft", "xdp"] {
                edit_lines(&dir.join(format!("{name}.inet.pps")), |lines| {
                    drop(lines.pop())
                });
                fs::remove_file(dir.join(format!("profiles/4.{name}.inet.folded"))).unwrap();
            }
        };
        let codes: Vec<&str> = after(truncate).iter().map(|(code, _)| *code).collect();
        assert_eq!(codes, ["L109", "L119"]);
        // And from the end, whose seal does not hold then.
        let found = after(|dir| {
            truncate(dir);
            edit(&dir.join("finished.json"), |text| {
                text.replace("    3,\n    4\n", "    3\n")
            });
        });
        assert_eq!(
            found,
            [("L109", "finished.json is not as it was written".to_owned())]
        );
        // From the records alone.
        let found = after(|dir| edit_lines(&dir.join("trials.jsonl"), |lines| lines.truncate(16)));
        let sentence = "block 4, attempt 1, has a line in chain.jsonl, and trials.jsonl does not have its records";
        assert!(found.contains(&("L118", sentence.to_owned())), "{found:?}");
    }

    #[test]
    fn a_chain_that_is_missing_is_found_where_the_run_had_one() {
        let missing = "chain.jsonl is missing, and the run was started with it";
        let remove = |dir: &Path| fs::remove_file(dir.join("chain.jsonl")).unwrap();
        assert_eq!(after(remove), [("L119", missing.to_owned())]);
        let found = after(|dir| {
            remove(dir);
            edit(&dir.join("resolved.json"), |text| {
                text.replace("  \"chain\": true,\n", "")
            });
        });
        assert_eq!(found, [("L119", missing.to_owned())]);
        let root = tempfile::tempdir().unwrap();
        assert_eq!(lint(&without_chain(root.path())).0, [""; 0]);
        let found = after(|dir| {
            remove(dir);
            fs::create_dir(dir.join("chain.jsonl")).unwrap();
        });
        assert_eq!(found, []);
        let codes = super::found(|dir| fs::create_dir(dir.join("chain.jsonl")).unwrap()).0;
        assert!(codes.contains(&"L901"), "{codes:?}");
    }

    #[test]
    fn what_is_added_to_a_finished_run_is_found() {
        let copy = |from: &'static str, to: &'static str| {
            move |dir: &Path| {
                fs::copy(dir.join(from), dir.join(to)).unwrap();
            }
        };
        let found = after(copy(
            "profiles/1.nft.inet.folded",
            "profiles/9.nft.inet.folded",
        ));
        assert_eq!(
            found,
            [(
                "L109",
                "the run was finished without profiles/9.nft.inet.folded".to_owned()
            )]
        );
        let found = after(|dir| {
            let session = serde_json::to_string(&later_session(2, 47)).unwrap();
            fs::write(dir.join("sessions/2.json"), session).unwrap();
        });
        assert_eq!(
            found,
            [(
                "L109",
                "the run was finished without sessions/2.json".to_owned()
            )]
        );
        // A line behind the last block, which no block accounts for.
        let found = after(|dir| {
            edit_lines(&dir.join("trials.jsonl"), |lines| {
                lines.push(lines[16].replace("\"attempt\":1", "\"attempt\":7"));
            });
        });
        assert_eq!(
            found,
            [(
                "L109",
                "the run is not as it was finished; what differs: trials.jsonl".to_owned()
            )]
        );
    }

    #[test]
    fn no_file_outside_is_opened_whatever_a_line_names() {
        let root = tempfile::tempdir().unwrap();
        let dir = measured(root.path(), 1).dir().to_owned();
        for name in [
            "/etc/passwd",
            "../../secret",
            "blocks/../../../secret.csv",
            "lock",
            "profiles/a/1.x.inet.folded",
        ] {
            edit(&dir.join("chain.jsonl"), |text| {
                let start = text.find("\"files\":{").unwrap() + 9;
                let end = start + text[start..].find(':').unwrap();
                format!(
                    "{}{}{}",
                    &text[..start],
                    serde_json::to_string(name).unwrap(),
                    &text[end..]
                )
            });
            let findings = lint(&dir).1;
            assert_eq!(findings[0].rule.code, "L902", "{findings:?}");
        }
    }

    /// Sessions of a run that is killed in the middle of a block, at each step of its writing, and goes on.
    #[test]
    fn a_run_that_is_killed_at_any_step_and_goes_on_is_sound() {
        for step in [
            "slices",
            "chain",
            "torn chain",
            "torn records",
            "records",
            "observations",
        ] {
            let root = tempfile::tempdir().unwrap();
            let results = measured(root.path(), 3);
            let dir = results.dir().to_owned();
            let before: BTreeMap<&str, Vec<u8>> = ["chain.jsonl", "trials.jsonl", "none.inet.pps"]
                .map(|name| (name, fs::read(dir.join(name)).unwrap()))
                .into();
            drop(results);
            let mut results = go_on(root.path(), 45);
            append(&mut results, outcome(3, 1, 2, true));
            drop(results);
            let now = |name: &str| fs::read(dir.join(name)).unwrap();
            let cut = |name: &str, bytes: usize| {
                let kept = now(name)[..before[name].len() + bytes].to_vec();
                fs::write(dir.join(name), kept).unwrap();
            };
            fs::write(dir.join("none.inet.pps"), &before["none.inet.pps"]).unwrap();
            let first_line = now("trials.jsonl")[before["trials.jsonl"].len()..]
                .iter()
                .position(|&byte| byte == b'\n')
                .unwrap();
            let mut expected: Vec<&str> = vec![];
            match step {
                "slices" => {
                    cut("trials.jsonl", 0);
                    cut("chain.jsonl", 0);
                }
                "torn chain" => {
                    cut("trials.jsonl", 0);
                    cut("chain.jsonl", 40);
                    expected = vec!["L904"];
                }
                "chain" => {
                    cut("trials.jsonl", 0);
                    expected = vec!["L908"];
                }
                "torn records" => {
                    cut("trials.jsonl", first_line + 20);
                    expected = vec!["L904", "L908"];
                }
                "records" => {}
                _ => fs::write(dir.join("none.inet.pps"), now("nft.inet.pps")).unwrap(),
            }
            let found: Vec<&str> = of_chain(&dir).iter().map(|(code, _)| *code).collect();
            assert_eq!(found, expected, "{step}");

            let is_measured = ["records", "observations"].contains(&step);
            let mut results = go_on(root.path(), 45 + u32::from(is_measured));
            if !is_measured {
                let attempt = if step == "torn records" { 2 } else { 1 };
                append(&mut results, outcome(3, attempt, 3, true));
            }
            append(&mut results, outcome(4, 1, 3, true));
            results.finish("2026-11-21T08:50:00Z").unwrap();
            assert_eq!(lint(&dir).0, [""; 0], "{step}");
            let lines = fs::read_to_string(dir.join("chain.jsonl")).unwrap();
            assert_eq!(lines.lines().count(), 5, "{step}");
            if step == "torn records" {
                // What the attempt that was cut short left is accounted for as well.
                append_to("blocks/3.csv")(&dir);
                assert_eq!(
                    of_chain(&dir),
                    changed(
                        "block 3, attempt 2, is not as it was written; what differs: blocks/3.csv"
                    )
                );
            }
        }
    }

    /// Continues the run in a session of its own.
    fn go_on(root: &Path, minute: u32) -> Results {
        let (resolved, plan) = (records::resolved(), records::plan());
        let run = records::new_run(&resolved, &plan);
        let mut results = Results::open_or_create(root, &run, &Choice::default()).unwrap();
        assert!(results.is_continued());
        let session = results.next_session();
        results
            .begin_session(later_session(session, minute))
            .unwrap();
        results
    }

    #[test]
    fn sessions_without_a_block_are_part_of_what_was_finished() {
        let root = tempfile::tempdir().unwrap();
        let dir = measured(root.path(), 5).dir().to_owned();
        drop(go_on(root.path(), 47));
        go_on(root.path(), 47)
            .finish("2026-11-21T08:50:00Z")
            .unwrap();
        assert_eq!(lint(&dir).0, [""; 0]);
        append_to("sessions/2.json")(&dir);
        assert_eq!(
            of_chain(&dir),
            [(
                "L109",
                "the run is not as it was finished; what differs: sessions/2.json".to_owned()
            )]
        );
    }

    #[test]
    fn a_run_of_an_earlier_version_goes_on_without_a_chain() {
        let root = tempfile::tempdir().unwrap();
        let dir = measured(root.path(), 3).dir().to_owned();
        fs::remove_file(dir.join("chain.jsonl")).unwrap();
        edit(&dir.join("resolved.json"), |text| {
            text.replace("  \"chain\": true,\n", "")
        });
        let mut results = go_on(root.path(), 45);
        for block in [3, 4] {
            append(&mut results, outcome(block, 1, 2, true));
        }
        results.finish("2026-11-21T08:50:00Z").unwrap();
        assert!(!dir.join("chain.jsonl").exists());
        assert_eq!(lint(&dir).0, [""; 0]);
        let text = fs::read_to_string(dir.join("finished.json")).unwrap();
        assert!(!text.contains("seal"), "{text}");
    }

    #[test]
    fn a_run_that_measures_is_looked_at_as_far_as_it_is_written() {
        let root = tempfile::tempdir().unwrap();
        let results = measured(root.path(), 3);
        let dir = results.dir();
        // The next block's line is there, half of it, or whole and without records.
        let whole = fs::read_to_string(dir.join("chain.jsonl")).unwrap();
        let last = whole.lines().last().unwrap();
        let before = sha256(format!("{last}\n").as_bytes());
        let at = last.find("\"before\"").unwrap();
        let next = format!("{}\"before\":\"{before}\"}}\n", &last[..at]);
        for end in [&next[..], &next[..40]] {
            fs::write(dir.join("chain.jsonl"), format!("{whole}{end}")).unwrap();
            assert_eq!(lint(dir).0, ["L907"]);
        }
    }
}

/// Every file of a finished run that is no report, changed at seeded places: bytes, lines, and files as a whole.
#[test]
fn whatever_is_changed_in_a_finished_run_is_found() {
    const CASES: u64 = 300;
    let root = tempfile::tempdir().unwrap();
    let sound = finished(root.path());
    for seed in 1..=CASES {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("run");
        testkit::copy_folder(&sound, &dir);
        let change = testkit::change_a_file(&dir, &["README.md", "derived"], seed);
        // Numbers that are written otherwise are the same observations.
        let is_same = |file: &str| {
            let values = |dir: &Path| observations::values(&fs::read(dir.join(file)).ok()?).ok();
            let numbers = |dir| {
                Some(
                    values(dir)?
                        .iter()
                        .map(|value| value.pps)
                        .collect::<Vec<_>>(),
                )
            };
            numbers(&dir).is_some_and(|changed| Some(changed) == numbers(&sound))
        };
        let is_the_same = change.file.ends_with(".pps") && is_same(&change.file);
        let findings = lint(&dir).1;
        assert_eq!(findings.is_empty(), is_the_same, "{seed}: {change}");
    }
}
