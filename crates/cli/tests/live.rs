//! How a run looks while it is measured and afterwards: on its own terminal, to `fwdlab watch` from another
//! one, and to `fwdlab show`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod shared;

use std::fs;
use std::io::Read as _;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use serde_json::Value;
use shared::{
    assert_complete, directories, finish, fwdlab, has_a_block, leftovers, run_command,
    wait_for_child,
};
use testkit::text;

/// Six blocks of half a second.
const EXPERIMENT: &str = "short";
const BLOCKS: usize = 6;

/// A terminal's size; the view has a line a variant from about 100 columns on.
const ROWS: NonZeroU16 = NonZeroU16::new(30).unwrap();
const COLUMNS: NonZeroU16 = NonZeroU16::new(110).unwrap();

/// The program on a terminal of its own, made by util-linux.
fn on_a_terminal(arguments: &[&str]) -> Command {
    let words: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
    let line = format!(
        "stty rows {ROWS} cols {COLUMNS}; exec {} {}",
        quoted(shared::FWDLAB),
        words.join(" ")
    );
    let mut command = Command::new("script");
    command
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// What a terminal showed from the beginning to the end, every time that something changed.
fn screens(child: &mut Child) -> Vec<String> {
    let mut output = child.stdout.take().unwrap();
    let mut terminal = vt100::Parser::new(ROWS, COLUMNS, 0);
    let mut screens = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        let read = output.read(&mut bytes).unwrap();
        if read == 0 {
            return screens;
        }
        terminal.process(&bytes[..read]);
        screens.push(terminal.screen().contents());
    }
}

fn only_directory(results: &Path) -> PathBuf {
    let directories = directories(results, EXPERIMENT);
    assert_eq!(directories.len(), 1, "{directories:?}");
    directories[0].clone()
}

fn show(directory: &Path) -> Output {
    fwdlab(&["show"]).arg(directory).output().unwrap()
}

#[test]
fn a_run_draws_itself_on_its_terminal_and_leaves_its_report_there() {
    testkit::require_root!();
    testkit::require_tool!("nft", "script");
    let scratch = tempfile::tempdir().unwrap();
    let experiment = shared::data(&format!("{EXPERIMENT}.toml"));
    let results = scratch.path().to_str().unwrap();
    let mut child = on_a_terminal(&["run", &experiment, "--results", results])
        .spawn()
        .unwrap();
    let screens = screens(&mut child);
    assert!(child.wait().unwrap().success(), "{screens:#?}");

    let drawn: Vec<&String> = screens
        .iter()
        .filter(|screen| screen.contains("Ctrl-C finishes this block"))
        .collect();
    assert!(drawn.len() > BLOCKS, "{} drawn: {screens:#?}", drawn.len());
    for block in 1..=BLOCKS {
        let is_drawn = drawn
            .iter()
            .any(|screen| screen.contains(&format!("block {block} of {BLOCKS}")));
        assert!(is_drawn, "block {block}: {drawn:#?}");
    }
    let with_effects = drawn.last().unwrap();
    for expected in [
        "Impact of connection tracking, in a hurry",
        "packet filter=none",
        "packet filter=conntrack",
        "baseline",
        "so far",
        " left",
    ] {
        assert!(
            with_effects.contains(expected),
            "{expected:?}: {with_effects}"
        );
    }
    // It is drawn over itself, and gone at the end.
    for screen in &drawn {
        let times = screen.matches("Ctrl-C finishes this block").count();
        assert_eq!(times, 1, "{screen}");
    }
    let last = screens.last().unwrap();
    assert!(!last.contains("Ctrl-C finishes"), "{last}");
    assert!(last.contains("Report: "), "{last}");
    assert_complete(&only_directory(scratch.path()), BLOCKS, "on a terminal");
}

#[test]
fn a_run_is_watched_from_elsewhere_by_lines_and_on_a_terminal() {
    testkit::require_root!();
    testkit::require_tool!("nft", "script");
    let scratch = tempfile::tempdir().unwrap();
    let run = run_command(EXPERIMENT, scratch.path()).spawn().unwrap();
    let run = wait_for_child("its directory is there", run, || {
        !directories(scratch.path(), EXPERIMENT).is_empty()
    });
    let results = scratch.path().to_str().unwrap();
    let arguments = ["watch", EXPERIMENT, "--results", results];
    let lines = fwdlab(&arguments).spawn().unwrap();
    let mut on_terminal = on_a_terminal(&arguments).spawn().unwrap();
    let looks = thread::scope(|scope| {
        let screens = scope.spawn(|| screens(&mut on_terminal));
        // Whoever looks while it is written always sees something whole.
        let directory = only_directory(scratch.path());
        let mut looks = 0;
        while !directory.join("finished.json").is_file() {
            let output = show(&directory);
            assert!(output.status.success(), "{}", text(&output));
            looks += 1;
        }
        let screens = screens.join().unwrap();
        let last = screens.last().unwrap();
        assert!(last.contains("finished: 6 of 6 blocks measured"), "{last}");
        let running = screens
            .iter()
            .any(|screen| screen.contains("Ctrl-C ends the watching, not the run."));
        assert!(running, "{screens:#?}");
        looks
    });
    assert!(looks > BLOCKS, "{looks} looks");
    assert!(on_terminal.wait().unwrap().success());
    let run = finish(run);
    assert!(run.status.success(), "{}", text(&run));

    let lines = finish(lines);
    assert!(lines.status.success(), "{}", text(&lines));
    let printed = String::from_utf8(lines.stdout).unwrap();
    for block in 1..=BLOCKS {
        let line = format!("block {block} of {BLOCKS}: valid");
        let is_told = printed.lines().any(|told| told.starts_with(&line));
        // A machine may disturb a block, which is then measured again.
        let again = format!("block {block} of {BLOCKS} (attempt ");
        assert!(is_told || printed.contains(&again), "{line}: {printed}");
    }
    assert!(
        printed.contains("finished: 6 of 6 blocks measured"),
        "{printed}"
    );
    assert!(!printed.contains('\u{1b}'), "{printed}");
}

#[test]
fn watching_ends_with_the_watcher_and_not_the_run() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let scratch = tempfile::tempdir().unwrap();
    let run = run_command(EXPERIMENT, scratch.path()).spawn().unwrap();
    let run = wait_for_child("its directory is there", run, || {
        !directories(scratch.path(), EXPERIMENT).is_empty()
    });
    let results = scratch.path().to_str().unwrap();
    let watch = fwdlab(&["watch", EXPERIMENT, "--results", results])
        .spawn()
        .unwrap();
    let run = wait_for_child("a block is measured", run, || {
        has_a_block(scratch.path(), EXPERIMENT)
    });
    testkit::signal(watch.id(), "-INT");
    let watch = finish(watch);
    assert_eq!(watch.status.code(), Some(130), "{}", text(&watch));
    let run = finish(run);
    assert!(run.status.success(), "{}", text(&run));
}

#[test]
fn a_run_that_was_killed_is_told_from_one_that_was_stopped() {
    testkit::require_root!();
    testkit::require_tool!("nft", "ip");
    let scratch = tempfile::tempdir().unwrap();
    let results = scratch.path().to_str().unwrap();
    let begin = || {
        let run = run_command(EXPERIMENT, scratch.path()).spawn().unwrap();
        let before = blocks(scratch.path());
        wait_for_child("a block more is measured", run, || {
            blocks(scratch.path()) > before
        })
    };
    let mut killed = begin();
    let watch = fwdlab(&["watch", EXPERIMENT, "--results", results])
        .spawn()
        .unwrap();
    killed.kill().unwrap();
    finish(killed);
    let watch = finish(watch);
    assert_eq!(watch.status.code(), Some(1), "{}", text(&watch));
    assert!(text(&watch).contains("died: "), "{}", text(&watch));
    let directory = only_directory(scratch.path());
    let shown = text(&show(&directory));
    for expected in ["died: ", "goes on", "fwdlab restore", "blocks left"] {
        assert!(shown.contains(expected), "{expected:?}: {shown}");
    }

    let stopped = begin();
    testkit::signal(stopped.id(), "-INT");
    finish(stopped);
    let shown = text(&show(&directory));
    assert!(shown.contains("stopped: "), "{shown}");

    testkit::succeed(&mut run_command(EXPERIMENT, scratch.path()));
    let shown = show(&directory);
    assert!(shown.status.success(), "{}", text(&shown));
    let shown = text(&shown);
    assert!(
        shown.contains("finished: 6 of 6 blocks measured"),
        "{shown}"
    );
    assert!(shown.contains("fwdlab report "), "{shown}");
    assert_eq!(leftovers(), Vec::<String>::new());

    // The same for programs, and whoever looks writes nothing.
    let before = testkit::files_below(&directory);
    let output = testkit::succeed(fwdlab(&["show", "--json"]).arg(&directory));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let asked = testkit::succeed(fwdlab(&["report", "--summary"]).arg(&directory));
    let asked: Value = serde_json::from_slice(&asked.stdout).unwrap();
    assert_eq!(summary, asked);
    assert_eq!(testkit::files_below(&directory), before);
}

/// Attempts at blocks that are on record.
fn blocks(results: &Path) -> usize {
    directories(results, EXPERIMENT)
        .last()
        .and_then(|directory| fs::read_to_string(directory.join("trials.jsonl")).ok())
        .map_or(0, |records| records.matches("\"record\":\"block\"").count())
}
