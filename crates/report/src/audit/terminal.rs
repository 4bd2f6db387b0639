//! What an audit prints.

use std::fmt::Write as _;

use super::sentences::{Topic, answers, scope};
use super::{AuditReport, VerdictsSection};
use crate::text::{columns, one_line, wrap_to_columns};

/// For a terminal of `width` columns.
pub(super) fn terminal(report: &AuditReport, width: usize, colour: bool) -> String {
    let mut text = String::new();
    let about = format!("{}: {}", one_line(&report.source), scope(report));
    write_wrapped(&mut text, &about, width);
    for answer in answers(report) {
        let heading = answer.heading;
        let _ = if colour {
            write!(text, "\n\x1b[1m{heading}\x1b[0m\n")
        } else {
            write!(text, "\n{heading}\n")
        };
        for sentence in &answer.sentences {
            write_wrapped(&mut text, sentence, width);
        }
        if answer.topic == Topic::Verdicts {
            write_methods(&mut text, &report.verdicts);
        }
    }
    text
}

/// What each method finds, of what is said and of what is not.
fn write_methods(text: &mut String, section: &VerdictsSection) {
    let widest = section
        .methods
        .iter()
        .map(|tally| columns(&tally.method))
        .max();
    let Some(widest) = widest else {
        return;
    };
    let cell = |some: usize, all: usize| format!("{some} of {all}");
    for (is_corrected, heading) in [(false, "one by one"), (true, "a block's together")] {
        let mut tallies = section.tallies(is_corrected).peekable();
        if tallies.peek().is_none() {
            continue;
        }
        let _ = writeln!(
            text,
            "\n  {heading:<widest$}  {:>16}  {:>16}",
            "of said, finds", "of others, finds"
        );
        for tally in tallies {
            let _ = writeln!(
                text,
                "  {:<widest$}  {:>16}  {:>16}",
                tally.method,
                cell(tally.said_kept, tally.said),
                cell(tally.unsaid_found, tally.unsaid)
            );
        }
    }
}

fn write_wrapped(text: &mut String, sentence: &str, width: usize) {
    // A number and its unit stay together.
    for line in wrap_to_columns(&sentence.replace(" %", "\u{a0}%"), width) {
        text.push_str(&line);
        text.push('\n');
    }
}
