//! What a report says of why rates differ, from made-up profiles.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod profiled;
mod synthetic;

use std::path::Path;

use fwdlab_archive::Loaded;
use fwdlab_model::record::Fate;
use fwdlab_model::{Binding, Forwarder, Forwards, ProfileFault, Ready, Stratum};
use fwdlab_report::{Report, render};
use profiled::{profiled, with_rules};
use synthetic::Synthetic;

fn codes(report: &Report) -> Vec<&str> {
    let warnings = report.warnings.iter();
    warnings.map(|warning| warning.code.as_str()).collect()
}

#[test]
fn a_report_says_which_function_took_the_time() {
    let loaded = profiled(Synthetic::default().loaded(), with_rules);
    let report = Report::build(&loaded).unwrap();
    let section = report.profiles.as_ref().unwrap();
    let overhead = section.overhead.unwrap();
    assert!(
        (overhead.estimate_percent + 5.0).abs() < 1e-6,
        "{overhead:?}"
    );

    let rules = section
        .differences
        .iter()
        .find(|found| found.variant.as_str().contains("rules"))
        .unwrap();
    assert!(
        rules.sentence.contains(" in `nft_do_chain`"),
        "{}",
        rules.sentence
    );
    assert_eq!(rules.frames[0].frame, "nft_do_chain");
    assert!(rules.frames[0].itself.is_significant);
    // Costs of functions sum to that of the packet.
    let nft = rules.frames[0].itself;
    assert!(
        nft.variant_ns > 0.18 * rules.packet.variant_ns
            && nft.variant_ns < 0.22 * rules.packet.variant_ns
    );

    let control = section
        .differences
        .iter()
        .find(|found| found.variant.as_str() == "control")
        .unwrap();
    assert!(
        control.sentence.ends_with("no function is shown to differ"),
        "{}",
        control.sentence
    );
    assert!(control.frames.is_empty());

    let readme = render::readme(&report, "derived/");
    for part in [
        "## Why",
        "| `nft_do_chain` | 0 |",
        "## flamegraphs",
        "](derived/flame-",
    ] {
        assert!(readme.contains(part), "{part}: {readme}");
    }
    let terminal = render::terminal(&report, None, 200, false);
    assert!(
        terminal.contains("why: ") && terminal.contains("in nft_do_chain"),
        "{terminal}"
    );

    // What is linked is there, and drawn.
    let files = render::derived_files(&report, &loaded).unwrap();
    let links = readme
        .split("](derived/")
        .skip(1)
        .map(|rest| rest.split(')').next().unwrap());
    let mut pictures = 0;
    for link in links {
        let file = files
            .get(link)
            .unwrap_or_else(|| panic!("{link} is linked"));
        let shows_functions = file.contains("nft_do_chain") || file.contains("fib_lookup");
        pictures += usize::from(link.ends_with(".svg") && shows_functions);
    }
    assert_eq!(pictures, section.variants.len() + section.differences.len());
    let json = render::json(&report).unwrap();
    let read: Report = serde_json::from_str(&json).unwrap();
    assert_eq!(render::json(&read).unwrap(), json);
}

#[test]
fn profiles_that_do_not_show_the_load_are_left_out_and_named() {
    let mut loaded = profiled(Synthetic::default().loaded(), with_rules);
    let trial = &mut loaded.attempts[0].trials[0];
    let record = trial.profile.as_mut().unwrap();
    record.faults = vec![ProfileFault::Idle {
        ratio: 0.67,
        bound: 0.2,
    }];
    record.attempts = 3;
    let variant = trial.variant.clone();
    let report = Report::build(&loaded).unwrap();
    assert!(codes(&report).contains(&"W220"));
    let section = report.profiles.as_ref().unwrap();
    assert_eq!(section.rejected.len(), 1);
    assert_eq!(
        section.rejected[0].reasons,
        ["67 % of the samples are of an idle CPU (bound 20 %)"]
    );
    let blocks = |name: &str| {
        let mut variants = section.variants.iter();
        variants
            .find(|of| of.variant.as_str() == name)
            .unwrap()
            .blocks
    };
    assert_eq!(blocks(variant.as_str()) as usize, loaded.attempts.len() - 1);
}

#[test]
fn versions_of_an_ebpf_program_are_compared_by_the_name_of_its_function() {
    let stacks = |variant: &str, block: u32| {
        let (tag, frames) = match variant.contains("rules") {
            true => ("6deef7357e7b4530", 200),
            false => ("0123456789abcdef", 100),
        };
        let program = format!("fwdlab;bpf_prog_{tag}_dataplane");
        let frames = frames + block % 3;
        format!(
            "{program} {frames}\n{program};__htab_map_lookup_elem {frames}\nfwdlab;veth_xmit 200\n"
        )
    };
    let report = Report::build(&profiled(Synthetic::default().loaded(), stacks)).unwrap();
    let differences = &report.profiles.as_ref().unwrap().differences;
    let mut frames = differences.iter().flat_map(|found| &found.frames);
    let program = frames.find(|found| found.frame.starts_with("bpf_prog_"));
    let program = program.unwrap();
    assert_eq!(program.frame, "bpf_prog_dataplane");
    assert!(program.itself.baseline_ns > 0.0, "{program:?}");
    assert!(
        !codes(&report)
            .iter()
            .any(|code| ["W230", "W231"].contains(code))
    );

    for (frame, code) in [("[bpf]", "W230"), ("___bpf_prog_run", "W231")] {
        let stacks = |_: &str, _| format!("fwdlab;veth_xdp_rcv_skb;{frame} 500\n");
        let report = Report::build(&profiled(Synthetic::default().loaded(), stacks)).unwrap();
        assert_eq!(codes(&report).iter().filter(|of| **of == code).count(), 1);
    }
}

/// A run on a machine that others use, too: far blocks, and profiles of their programs.
fn disturbed() -> Report {
    let mut loaded = profiled(Synthetic::default().loaded(), with_rules);
    for (variant, block, factor) in [(1, 4, 0.85), (1, 7, 0.95), (2, 2, 1.2), (3, 6, 0.7)] {
        let name = loaded.resolved.variants[variant].name.clone();
        let slices = &mut loaded.attempts[block].slices;
        for slice in slices.iter_mut().filter(|slice| slice.variant == name) {
            let frames = format!("{:.0}", slice.forwarded_frames as f64 * factor);
            slice.forwarded_frames = frames.parse().unwrap();
            slice.undisturbed_frames = slice.forwarded_frames;
        }
    }
    let trials = loaded.attempts.iter_mut().flat_map(|of| &mut of.trials);
    for (trial, number) in trials.step_by(3).zip(0..12) {
        let record = trial.profile.as_mut().unwrap();
        record.faults = vec![ProfileFault::Foreign {
            ratio: 0.2 + 0.34 * f64::from(number) / 11.0,
            bound: 0.1,
        }];
    }
    Report::build(&loaded).unwrap()
}

fn lines_of(text: &str, code: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.starts_with(code));
    lines.map(str::to_owned).collect()
}

#[test]
fn a_terminal_has_a_line_for_each_cause_and_all_warnings_when_asked() {
    let report = disturbed();
    let terminal = render::terminal(&report, Some(Path::new("results/x/README.md")), 80, false);
    let all = render::warnings(&report, 80, false);
    for code in ["W106", "W220"] {
        let number = codes(&report).iter().filter(|of| **of == code).count();
        assert!(number > 2, "{number} of {code}");
        assert_eq!(lines_of(&terminal, code).len(), 1, "{terminal}");
        assert_eq!(lines_of(&all, code).len(), number, "{all}");
    }
    assert_eq!(
        lines_of(&terminal, "W220"),
        ["W220  12 of 40 profiles left out, 20 to 54 % other programs"]
    );
    let (_, warnings) = terminal.split_once("\nW").unwrap();
    insta::assert_snapshot!("summed_up", format!("W{warnings}"));
    for line in terminal.lines().chain(all.lines()) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    // What is nowhere published is not summed up: nothing could show it in full.
    let unpublished = render::terminal(&report, None, 80, false);
    assert_eq!(lines_of(&unpublished, "W220").len(), 12);
}

/// A run in which other programs took part in the profiles of all blocks behind the first `undisturbed`.
fn profiled_in(undisturbed: u32) -> Loaded {
    let mut loaded = profiled(Synthetic::default().loaded(), with_rules);
    let trials = loaded.attempts.iter_mut().flat_map(|of| &mut of.trials);
    for trial in trials.filter(|trial| trial.block > undisturbed) {
        trial.profile.as_mut().unwrap().faults = vec![ProfileFault::Foreign {
            ratio: 0.46 + f64::from(trial.block) / 100.0,
            bound: 0.2,
        }];
    }
    loaded
}

#[test]
fn too_few_profiles_name_the_largest_differences_as_not_proven() {
    let loaded = profiled_in(4);
    let report = Report::build(&loaded).unwrap();
    let of_rules = |of: &&fwdlab_report::ProfileDifference| of.variant.as_str().contains("rules");
    let section = report.profiles.as_ref().unwrap();
    let rules = section.differences.iter().find(of_rules).unwrap();
    let (said, largest) = rules.sentence.split_once("; ").unwrap();
    assert_eq!(
        said,
        "4 blocks with profiles cannot show which functions differ, at least 6 are needed"
    );
    assert!(
        largest.starts_with("the largest differences, not proven: +")
            && largest.contains(" ns/packet in `nft_do_chain`, "),
        "{largest}"
    );
    assert!(rules.frames.is_empty() && rules.frames_different == 0);

    // The graph of it says which blocks it is of, and why its figures are not those of the verdicts.
    let files = render::derived_files(&report, &loaded).unwrap();
    let svg = &files[&rules.flame_graph];
    let rows = &report.comparisons[0].rows;
    let cost = |row: usize| fwdlab_report::format::cost(rows[row].cost_ns.unwrap());
    let basis = format!(
        "These ns/packet are means over the 4 of 8 blocks with a usable profile; those of the results table, {} -> {}, \
         are medians over all 8 blocks.",
        cost(0),
        cost(1)
    );
    assert!(
        svg.contains(" ns/packet in 4 of 8 blocks | grey: too few blocks"),
        "{svg}"
    );
    assert!(
        svg.contains(&basis.replace("->", "-&gt;")),
        "{basis}\n{svg}"
    );
    assert!(svg.contains("by themselves, not proven: too few blocks:"));
    assert!(
        files["report.html"].contains(&format!("\"basis\":\"{basis}\"")),
        "{basis}"
    );
}

#[test]
fn a_run_whose_profiles_are_all_left_out_says_so_once_and_why() {
    let loaded = profiled_in(0);
    let report = Report::build(&loaded).unwrap();
    let unused = "no profile could be used: 40 of 40 left out, 47 to 54 % other programs (W220)";
    assert_eq!(report.no_profile_used(), Some(unused));
    let terminal = render::terminal(&report, None, 200, false);
    let page = &render::derived_files(&report, &loaded).unwrap()["report.html"];
    for (text, line) in [
        (&terminal, format!("\nWhy: {unused}\n")),
        (&render::comment(&report, &[]), format!("\nWhy: {unused}\n")),
        (
            &render::readme(&report, "derived/"),
            format!("\n- {unused}\n"),
        ),
        (page, format!(">{unused}<")),
    ] {
        assert!(text.contains(&line), "{line}\n{text}");
    }
    let summary = render::summary(&report, &[]).unwrap();
    assert_eq!(summary.matches(unused).count(), 3, "{summary}");

    // Where there is nothing to compare, nothing is missing.
    let mut alone = profiled_in(8);
    for comparison in &mut alone.resolved.comparisons {
        comparison.variants.clear();
    }
    alone
        .resolved
        .variants
        .retain(|variant| variant.control_of.is_none());
    assert_eq!(Report::build(&alone).unwrap().no_profile_used(), None);

    // One that lacks the profiles of a single variant says it of that one.
    let mut loaded = profiled_in(8);
    let name = loaded.resolved.variants[1].name.clone();
    for attempt in &mut loaded.attempts {
        let mut trials = attempt.trials.iter_mut();
        let trial = trials.find(|trial| trial.variant == name).unwrap();
        trial.profile.as_mut().unwrap().faults = vec![ProfileFault::NoForwarding];
    }
    let report = Report::build(&loaded).unwrap();
    assert_eq!(report.no_profile_used(), None);
    let comparison = &report.comparisons[0];
    assert_eq!(
        report.why(comparison, &name),
        Some("no block has a usable profile of both variants (W220)")
    );
    assert_eq!(report.why(comparison, &comparison.rows[0].variant), None);
}

#[test]
fn a_pull_request_has_a_line_for_each_cause_and_the_kind_of_lab() {
    let report = disturbed();
    let comment = render::comment(&report, &[]);
    let of = |code: &str| {
        let lines = comment
            .lines()
            .filter(|line| line.starts_with(&format!("- **{code}**")));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        of("W220"),
        ["- **W220** 12 of 40 profiles left out, 20 to 54 % other programs"]
    );
    assert_eq!(of("W106").len(), 1, "{comment}");
    let count = report.warnings.len();
    assert!(
        comment.contains(&format!("and {count} warnings</summary>")),
        "{comment}"
    );
    assert!(
        comment.contains("`fwdlab show DIR --warnings`"),
        "{comment}"
    );
    let lab = format!(
        "lab: this machine's kernel, in network namespaces ({})",
        report.lab.name
    );
    assert!(comment.contains(&lab), "{comment}");
}

#[test]
fn groups_of_blocks_that_other_programs_explain_are_put_down_to_them() {
    let mut loaded = profiled(Synthetic::default().loaded(), with_rules);
    let name = loaded.resolved.variants[1].name.clone();
    for attempt in &mut loaded.attempts {
        if ![3, 6, 7].contains(&attempt.record.block) {
            continue;
        }
        for slice in attempt
            .slices
            .iter_mut()
            .filter(|slice| slice.variant == name)
        {
            slice.forwarded_frames /= 2;
            slice.undisturbed_frames /= 2;
        }
        let mut trials = attempt.trials.iter_mut();
        let trial = trials.find(|trial| trial.variant == name).unwrap();
        trial.profile.as_mut().unwrap().faults = vec![ProfileFault::Foreign {
            ratio: 0.5,
            bound: 0.2,
        }];
    }
    let text = |loaded: &Loaded| {
        let report = Report::build(loaded).unwrap();
        let mut warnings = report.warnings.into_iter();
        warnings
            .find(|warning| warning.code == "W110")
            .unwrap()
            .text
    };
    let put_down = text(&loaded);
    assert!(
        put_down.contains("other programs took CPU time in the blocks of one group"),
        "{put_down}"
    );
    assert!(!put_down.contains("hash seeds"), "{put_down}");

    // Where they ran in the other blocks, too, they explain nothing.
    for trial in loaded.attempts.iter_mut().flat_map(|of| &mut of.trials) {
        trial.profile.as_mut().unwrap().faults = vec![ProfileFault::Foreign {
            ratio: 0.5,
            bound: 0.2,
        }];
    }
    assert!(text(&loaded).contains("hash seeds"));
}

#[test]
fn profiles_left_out_for_several_reasons_are_counted_by_reason() {
    let mut loaded = profiled(Synthetic::default().loaded(), with_rules);
    let trials = loaded.attempts.iter_mut().flat_map(|of| &mut of.trials);
    for (trial, number) in trials.zip(0..5) {
        let record = trial.profile.as_mut().unwrap();
        record.faults = vec![if number < 2 {
            ProfileFault::NoForwarding
        } else {
            ProfileFault::Idle {
                ratio: 0.4,
                bound: 0.2,
            }
        }];
    }
    let report = Report::build(&loaded).unwrap();
    let terminal = render::terminal(&report, Some(Path::new("results/x/README.md")), 80, false);
    assert_eq!(
        lines_of(&terminal, "W220"),
        ["W220  5 of 40 profiles left out: 3 idle CPU (40 %), 2 nothing that forwards"]
    );
}

#[test]
fn a_run_without_its_stacks_says_so_and_one_that_asked_for_none_says_nothing() {
    let mut loaded = profiled(Synthetic::default().loaded(), with_rules);
    for attempt in &mut loaded.attempts {
        attempt.profiles.clear();
    }
    let report = Report::build(&loaded).unwrap();
    assert_eq!(report.profiles, None);
    let remedy = |loaded: &Loaded| {
        let report = Report::build(loaded).unwrap();
        let mut warnings = report.warnings.into_iter();
        let found = warnings.find(|of| of.code == "W219").unwrap();
        found.remedy.unwrap()
    };
    assert!(remedy(&loaded).contains("perf_event_paranoid"));
    let mine = Forwarder {
        start: vec!["mine".to_owned()],
        ready: Ready::Prints("on".to_owned()),
        stop: None,
        forwards: Forwards::default(),
    };
    let forwarders = [("mine".to_owned(), Some(mine))];
    let bindings = &mut loaded.resolved.lab.bindings;
    bindings.insert(
        "forwarder".to_owned(),
        Binding::Forwarder(forwarders.into()),
    );
    assert!(remedy(&loaded).contains("leave [profile] out"));
    // Where nothing is valid, nothing else was wrong with the profiles.
    for attempt in &mut loaded.attempts {
        attempt.fate = Fate::Invalid;
    }
    assert!(remedy(&loaded).contains("what made the trials invalid"));

    let plain = Report::build(&Synthetic::default().loaded()).unwrap();
    assert_eq!(plain.profiles, None);
    assert!(!codes(&plain).contains(&"W219"));
}

#[test]
fn names_of_functions_are_shown_and_never_act() {
    let hostile = "<script>alert(1)</script>|`x` \u{202e}y";
    let loaded = profiled(Synthetic::default().loaded(), |variant, block| {
        with_rules(variant, block).replace("nft_do_chain", hostile)
    });
    let report = Report::build(&loaded).unwrap();
    let readme = render::readme(&report, "derived/");
    let row = readme
        .lines()
        .find(|line| line.contains("alert(1)") && line.starts_with('|'));
    let row = row.unwrap_or_else(|| panic!("{readme}"));
    // A row of five cells, whatever a name holds.
    let bars = row.replace("\\|", "").matches('|').count();
    assert_eq!(bars, 6, "{row}");
    assert!(!readme.contains('\u{202e}'));
    for (name, file) in render::derived_files(&report, &loaded).unwrap() {
        if name.ends_with(".svg") {
            assert!(!file.contains("<script>alert"), "{name}");
            assert!(!file.contains('\u{202e}'), "{name}");
        }
    }
    assert_eq!(
        report.profiles.unwrap().differences[0].stratum,
        Stratum::INET
    );
}
