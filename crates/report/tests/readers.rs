//! What every rendering for readers has in common: one minus sign, one figure for one difference, and a sign and a
//! word for what its colours say.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod profiled;
mod synthetic;

use std::collections::BTreeMap;

use fwdlab_archive::Loaded;
use fwdlab_model::LabKind;
use fwdlab_report::{BlockUnderWay, Frame, LiveView, Moment, Reader, Report, RunState, render};
use profiled::{profiled, with_rules};
use synthetic::Synthetic;

const HARNESS: &str = "fwdlab;[fwdlab];<std::sys::thread::unix::Thread>::new::thread_start;start_thread;\
                       aya::sys::bpf::bpf_prog_test_run;syscall;entry_SYSCALL_64_after_hwframe";

/// Functions that cost more, and one that XDP does without.
fn stacks(variant: &str, block: u32) -> String {
    let mut stacks = with_rules(variant, block);
    if !variant.contains("xdp") {
        stacks += &format!("fwdlab;ip_forward;veth_xmit {}\n", 150 + block % 3);
    }
    stacks.replace("fwdlab;ip_forward", &format!("{HARNESS};ip_forward"))
}

fn run() -> Loaded {
    profiled(Synthetic::default().loaded(), stacks)
}

/// Every text that is made for people of a run, by what it is.
fn renderings(loaded: &Loaded) -> BTreeMap<String, String> {
    let report = Report::build(loaded).unwrap();
    let mut texts = render::derived_files(&report, loaded).unwrap();
    assert!(texts.remove("report.json").is_some());
    let moment = Moment {
        state: RunState::Running,
        block: Some(BlockUnderWay {
            number: 8,
            attempt: 1,
            phase: "measuring".to_owned(),
            part: 0.3,
        }),
        elapsed_s: Some(41.0),
        left_s: Some(29.0),
    };
    let frame = Frame {
        width: 120,
        rows_max: None,
        colour: true,
        reader: Reader::Show("results/x".to_owned()),
    };
    let live = LiveView::build(loaded).unwrap().lines(&moment, &frame);
    texts.extend(
        [
            ("README.md", render::readme(&report, "derived/")),
            ("terminal", render::terminal(&report, None, 100, true)),
            ("methods", render::methods(&report, 100, false)),
            ("comment", render::comment(&report, &[])),
            ("live", live.join("\n")),
        ]
        .map(|(name, text)| (name.to_owned(), text)),
    );
    texts
}

/// A hyphen-minus as in JSON, CSV and the arguments: what is read can be searched for and pasted.
#[test]
fn every_rendering_has_the_one_minus_sign() {
    let texts = renderings(&run());
    for name in ["README.md", "terminal", "comment", "report.html"] {
        let shown = &texts[name];
        assert!(shown.contains("-21."), "{name}: no negative effect");
        let has_cost = shown.contains(" ns/packet in ") && shown.contains("-1");
        assert!(has_cost, "{name}: no negative cost\n{shown}");
    }
    let others = [
        '\u{2212}', '\u{2010}', '\u{2011}', '\u{207b}', '\u{208b}', '\u{fe63}', '\u{ff0d}',
    ];
    for (name, text) in &texts {
        let found = text.find(others);
        let place = found.map(|at| text[at..].chars().take(60).collect::<String>());
        assert_eq!(place, None, "{name}");
        // Dashes are for what is missing.
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            let is_sign = matches!(character, '–' | '—')
                && characters.peek().is_some_and(char::is_ascii_digit);
            assert!(!is_sign, "{name}: a dash before a figure");
        }
    }
}

/// The verdict has the difference; what profiles say has its parts, and why they need not add up.
#[test]
fn a_difference_has_one_figure() {
    let loaded = run();
    let report = Report::build(&loaded).unwrap();
    let section = report.profiles.as_ref().unwrap();
    let mut named = 0;
    for found in &section.differences {
        let parts = found
            .sentence
            .split(", ")
            .filter(|part| part.contains(" in `"));
        for part in parts {
            named += 1;
            let is_a_part = found.frames.iter().any(|frame| {
                let name = format!("in `{}`", frame.frame);
                part.contains(&name) && part.starts_with(['+', '-'])
            });
            assert!(is_a_part, "{}", found.sentence);
        }
        // One unit, before the first function: the packet's own difference is the verdict's.
        assert!(
            found.sentence.matches("ns/packet").count() <= 1,
            "{}",
            found.sentence
        );
        for word in ["ns/packet more", "ns/packet less"] {
            assert!(!found.sentence.contains(word), "{}", found.sentence);
        }
    }
    assert!(named >= 3, "{named}");
    let why = "so the functions need not add up to exactly that";
    let texts = renderings(&loaded);
    assert!(texts["README.md"].contains(why) && texts["report.html"].contains(why));
}

#[test]
fn what_colours_say_has_a_sign_and_a_word() {
    let report = Report::build(&run()).unwrap();
    let rows = &report.comparisons[0].rows;
    let directions: Vec<Option<&str>> = rows
        .iter()
        .map(|row| row.verdict.as_ref()?.direction.map(|of| of.word()))
        .collect();
    assert_eq!(
        directions,
        [None, Some("slower"), Some("slower"), Some("faster")]
    );
    let terminal = render::terminal(&report, None, 300, true);
    for line in [
        "\u{1b}[31mdifferent (slower): -21.",
        "\u{1b}[36mdifferent (faster): +14",
    ] {
        assert!(terminal.contains(line), "{terminal}");
    }
    let svg = render::effects_svg(&report, &report.comparisons[0]);
    for (class, words) in [
        ("better", "different (faster)"),
        ("worse", "different (slower)"),
    ] {
        assert!(
            svg.contains(&format!("<path class=\"whisker {class}\"")),
            "{svg}"
        );
        let text = format!("class=\"small {class}\"");
        let mut lines = svg.lines();
        let shown = lines.find(|line| line.contains(&text)).unwrap();
        assert!(shown.contains(words), "{shown}");
    }
    // Which variant is which has other colours: none of those judges.
    let trials = render::trials_svg(&report);
    assert!(!trials.contains(" better\"") && !trials.contains(" worse\""));
}

/// The frames of the first flame graph in the page's data, and what it is of.
fn first_flame_graph(loaded: &Loaded) -> serde_json::Value {
    let report = Report::build(loaded).unwrap();
    let page = &render::derived_files(&report, loaded).unwrap()["report.html"];
    let (_, data) = page
        .split_once("<script type=\"application/json\" id=\"flame-0\">")
        .unwrap();
    serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn the_flame_graph_that_opens_is_the_difference_and_the_kernel_fills_it() {
    let mut loaded = run();
    let graph = first_flame_graph(&loaded);
    assert_eq!(
        graph["title"],
        "nftables, 10 stateless rules against no filter"
    );
    let frames: Vec<&str> = (graph["frames"].as_array().unwrap().iter())
        .map(|frame| frame.as_str().unwrap())
        .collect();
    assert_eq!(
        frames[..3],
        ["fwdlab", "entry_SYSCALL_64_after_hwframe", "ip_forward"]
    );
    assert!(
        frames.iter().all(|frame| !frame.contains("::")),
        "{frames:?}"
    );
    let signs = graph["signs"].as_array().unwrap();
    let of_rules = frames.iter().position(|frame| *frame == "nft_do_chain");
    assert_eq!(signs[of_rules.unwrap()], "+");
    assert_eq!(signs[0], "");

    // The reference router is fwdlab's own code: there its frames are what is measured.
    loaded.resolved.lab.kind = LabKind::Router;
    let graph = first_flame_graph(&loaded);
    let frames = graph["frames"].as_array().unwrap();
    assert_eq!(frames[..2], ["fwdlab", "[fwdlab]"]);
}
