//! The live view of made-up runs: what it says at each moment, and that no name and no terminal breaks it.

mod synthetic;

use fwdlab_archive::Finished;
use fwdlab_model::{InvalidReason, SCHEMA_VERSION, Stratum};
use fwdlab_report::{BlockUnderWay, Frame, LiveView, Moment, Reader, RunState, block_outcome};
use proptest::prelude::*;
use synthetic::Synthetic;
use unicode_width::UnicodeWidthStr as _;

fn view_of(run: &Synthetic) -> LiveView {
    LiveView::build(&run.loaded()).expect("made-up records are sound")
}

fn running(block: u32, phase: &str) -> Moment {
    Moment {
        state: RunState::Running,
        block: Some(BlockUnderWay {
            number: block,
            attempt: 1,
            phase: phase.to_owned(),
            part: 0.3,
        }),
        elapsed_s: Some(41.0),
        left_s: Some(29.0),
    }
}

fn still(state: RunState) -> Moment {
    Moment {
        state,
        block: None,
        elapsed_s: None,
        left_s: None,
    }
}

fn frame(width: usize, rows_max: Option<usize>, reader: Reader) -> Frame {
    Frame {
        width,
        rows_max,
        colour: false,
        reader,
    }
}

fn show() -> Reader {
    Reader::Show("results/quickstart/test".to_owned())
}

fn text(run: &Synthetic, moment: &Moment, frame: &Frame) -> String {
    view_of(run).lines(moment, frame).join("\n")
}

/// Seven of eight blocks, one of which had to be measured twice.
fn under_way() -> Synthetic {
    Synthetic {
        measured_blocks: 7,
        invalid: vec![(3, 1)],
        ..Synthetic::default()
    }
}

/// Twenty variants of growing effect in two strata.
fn many() -> Synthetic {
    Synthetic {
        variants: (0..20)
            .map(|index| (format!("variant {index}"), -0.5 * f64::from(index)))
            .collect(),
        strata: vec![Stratum::INET, Stratum::INET6],
        ..Synthetic::default()
    }
}

#[test]
fn a_run_under_way() {
    let moment = running(8, "round 3 of 10");
    for width in [80, 120] {
        let text = text(&under_way(), &moment, &frame(width, Some(40), Reader::Run));
        insta::assert_snapshot!(format!("under_way_{width}"), text);
    }
}

#[test]
fn a_run_before_its_first_block_and_before_it_has_intervals() {
    let none = Synthetic {
        measured_blocks: 0,
        ..Synthetic::default()
    };
    let moment = running(1, "setting up");
    insta::assert_snapshot!(
        "first_block",
        text(&none, &moment, &frame(80, Some(24), Reader::Run))
    );
    let few = Synthetic {
        measured_blocks: 3,
        ..Synthetic::default()
    };
    let moment = running(4, "");
    insta::assert_snapshot!(
        "few_blocks",
        text(&few, &moment, &frame(120, Some(24), Reader::Watch))
    );
}

#[test]
fn a_run_that_is_over() {
    let mut loaded = Synthetic::default().loaded();
    loaded.finished = Some(Finished {
        schema: SCHEMA_VERSION,
        finished: "2026-11-21T10:00:00Z".to_owned(),
        accepted_blocks: (1..=8).collect(),
        given_up_blocks: Vec::new(),
    });
    let view = LiveView::build(&loaded).unwrap();
    let lines = view.lines(&still(RunState::Finished), &frame(120, None, show()));
    insta::assert_snapshot!("finished", lines.join("\n"));

    let run = under_way();
    for (name, state) in [("stopped", RunState::Stopped), ("died", RunState::Died)] {
        let text = text(&run, &still(state), &frame(80, None, show()));
        insta::assert_snapshot!(name, text);
    }
}

#[test]
fn a_directory_without_a_session_is_shown_too() {
    let mut loaded = Synthetic {
        measured_blocks: 0,
        ..Synthetic::default()
    }
    .loaded();
    loaded.sessions.clear();
    let view = LiveView::build(&loaded).unwrap();
    let text = view.lines(&still(RunState::Stopped), &frame(80, None, show()));
    assert!(text.join("\n").contains("no session has begun"), "{text:?}");
}

/// Where not all variants fit, those that differ most are shown, in the experiment's order and with
/// their baselines.
#[test]
fn the_most_different_variants_stay() {
    let moment = running(8, "round 1 of 10");
    let text = text(&many(), &moment, &frame(120, Some(20), Reader::Watch));
    insta::assert_snapshot!("many_variants", text);
    assert!(text.lines().count() <= 20);
    for shown in [
        "IPv4",
        "IPv6",
        "variant 0",
        "variant 19",
        "variant 18",
        "… and ",
    ] {
        assert!(text.contains(shown), "{shown:?} is not in {text}");
    }
    assert!(!text.contains("variant 3 "), "{text}");
}

#[test]
fn colours_change_nothing_but_colours() {
    let view = view_of(&under_way());
    let moment = running(8, "round 3 of 10");
    for width in [20, 80, 120] {
        let plain = frame(width, Some(30), Reader::Run);
        let coloured = Frame {
            colour: true,
            ..plain.clone()
        };
        let bare: Vec<String> = view
            .lines(&moment, &coloured)
            .iter()
            .map(|line| without_colours(line).trim_end().to_owned())
            .collect();
        assert_eq!(bare, view.lines(&moment, &plain));
    }
}

#[test]
fn a_block_in_a_line() {
    let loaded = under_way().loaded();
    let outcomes: Vec<String> = loaded
        .attempts
        .iter()
        .map(|attempt| block_outcome(&attempt.trials))
        .collect();
    assert_eq!(outcomes[0], "valid");
    assert!(
        outcomes[2].starts_with("invalid (nftables-10-stateless-rules-1 inet: "),
        "{}",
        outcomes[2]
    );
}

#[test]
fn what_speaks_against_all_trials_names_no_variant() {
    let loaded = under_way().loaded();
    let mut trials = loaded.attempts[0].trials.clone();
    let reason = InvalidReason::Unaccounted { frames: 3 };
    for trial in &mut trials {
        trial.invalid.push(reason.clone());
    }
    let of_all = "inet: 3 frames are unaccounted for";
    assert_eq!(block_outcome(&trials), format!("invalid ({of_all})"));
    let what = "TTL".to_owned();
    let own = InvalidReason::Verification { frames: 1, what };
    trials[1].invalid.push(own);
    let variant = &trials[1].variant;
    assert_eq!(
        block_outcome(&trials),
        format!("invalid ({variant} inet: 1 checked frame was wrong (TTL); {of_all})")
    );
}

fn without_colours(line: &str) -> String {
    let mut bare = String::new();
    let mut rest = line;
    while let Some(start) = rest.find("\x1b[") {
        bare.push_str(&rest[..start]);
        let end = rest[start..].find('m').expect("colours end in m");
        rest = &rest[start + end + 1..];
    }
    bare + rest
}

fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,60}",
        any::<String>(),
        Just("\u{1b}[2J\u{1b}]0;owned\u{7}".to_owned()),
        Just("\u{202e}desrever\u{2066}".to_owned()),
        Just("☀\u{fe0f}👩\u{200d}👩\u{200d}👧 全角 e\u{301}\u{301}".to_owned()),
        Just("a\r\nb\tc".to_owned()),
        Just(String::new()),
        Just("long ".repeat(80)),
    ]
}

fn state() -> impl Strategy<Value = RunState> {
    prop::sample::select(vec![
        RunState::Running,
        RunState::Finished,
        RunState::Stopped,
        RunState::Died,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn nothing_acts_and_nothing_sticks_out(
        label in hostile(),
        other in hostile(),
        title in proptest::option::of(hostile()),
        question in hostile(),
        phase in hostile(),
        path in hostile(),
        measured_blocks in 0_u32..8,
        width in 20_usize..200,
        rows in proptest::option::of(0_usize..40),
        colour: bool,
        state in state(),
        reader in 0..3,
    ) {
        let run = Synthetic {
            variants: vec![(label, 0.0), (other, -10.0), ("plain".to_owned(), 5.0)],
            titles: vec![title, Some("second".to_owned())],
            question,
            measured_blocks,
            invalid: vec![(2, 1)],
            rounds: 2,
            ..Synthetic::default()
        };
        let mut loaded = run.loaded();
        loaded.sessions[0].experiment_path.clone_from(&path);
        let view = LiveView::build(&loaded).unwrap();
        let moment = Moment { state, ..running(measured_blocks + 1, &phase) };
        let reader = match reader {
            0 => Reader::Run,
            1 => Reader::Watch,
            _ => Reader::Show(path),
        };
        let lines = view.lines(&moment, &Frame { width, rows_max: rows, colour, reader });
        if let Some(rows) = rows {
            prop_assert!(lines.len() <= rows);
        }
        for line in lines {
            let bare = if colour { without_colours(&line) } else { line };
            prop_assert!(bare.width() <= width, "{} of {width}: {bare:?}", bare.width());
            let acts = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            prop_assert!(!bare.contains(acts), "{bare:?}");
        }
    }
}
