//! Findings for people: by directory, each with the lines that show it.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use fwdlab_archive::lint::{Finding, Rule, Severity, Side};

use crate::text::{hanging, one_line, shown};

use super::excerpt;

/// What `fwdlab lint` prints: the findings in the order of their directories, and how many there are.
///
/// Shape: findings of a directory stand together; `directories` is how many were looked at.
#[must_use]
pub fn terminal(findings: &[Finding], directories: usize, colour: bool) -> String {
    let renderer = if colour {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let mut text = String::new();
    for of_directory in findings.chunk_by(|one, other| one.directory == other.directory) {
        let directory = shown(&of_directory[0].directory);
        text += &if colour {
            format!("\x1b[1m{directory}\x1b[0m\n\n")
        } else {
            format!("{directory}\n\n")
        };
        for finding in of_directory {
            text += &one(finding, &renderer);
            text += "\n\n";
        }
    }
    text += &closing(findings, directories);
    text
}

fn one(finding: &Finding, renderer: &Renderer) -> String {
    let level = match finding.rule.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let sentence = one_line(&finding.sentence);
    let pieces: Vec<(String, String)> = finding
        .evidence
        .iter()
        .map(|evidence| (shown(&evidence.path), excerpt(&evidence.says)))
        .collect();
    let title = level.primary_title(sentence.as_str()).id(finding.rule.code);
    let mut group = Group::with_title(title);
    for (evidence, (path, says)) in finding.evidence.iter().zip(&pieces) {
        if let Some(line) = evidence.line {
            let kind = match evidence.side {
                Side::Published => AnnotationKind::Primary,
                Side::Derived => AnnotationKind::Context,
            };
            let annotation = kind.span(0..says.len()).label(evidence.side.as_str());
            let snippet = Snippet::source(says.as_str()).line_start(line);
            group = group.element(snippet.path(path.as_str()).annotation(annotation));
        }
    }
    for (evidence, (path, says)) in finding.evidence.iter().zip(&pieces) {
        if evidence.line.is_none() {
            let note = format!("{}: {path}: {says}", evidence.side.as_str());
            group = group.element(Level::NOTE.message(note));
        }
    }
    group = group.element(Level::HELP.message(finding.rule.help));
    renderer.render(&[group])
}

/// `2 errors and 1 note in 3 results directories`.
fn closing(findings: &[Finding], directories: usize) -> String {
    let counted = |count: usize, one: &str, more: &str| {
        format!("{count} {}", if count == 1 { one } else { more })
    };
    let mut counts: Vec<String> = Severity::ALL
        .iter()
        .map(|severity| {
            let of_severity = findings
                .iter()
                .filter(|finding| finding.rule.severity == *severity);
            (of_severity.count(), severity.as_str())
        })
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| counted(count, word, &format!("{word}s")))
        .collect();
    let last = counts.pop();
    let found = match last {
        None => "nothing found".to_owned(),
        Some(last) if counts.is_empty() => last,
        Some(last) => format!("{} and {last}", counts.join(", ")),
    };
    let looked_at = counted(directories, "results directory", "results directories");
    format!("{found} in {looked_at}\n")
}

/// What `fwdlab lint --explain` prints, for a terminal of `width` columns: what a rule finds, why that matters and what can
/// be done.
#[must_use]
pub fn explanation(rule: &Rule, width: usize) -> String {
    let mut text = format!("{} {} ({})\n", rule.code, rule.name, rule.severity.as_str());
    for (lead, words) in [
        ("  finds  ", rule.finds),
        ("  why    ", rule.matters),
        ("  to do  ", rule.help),
    ] {
        for (lead, line) in hanging(lead, words, width) {
            text += &format!("{lead}{line}\n");
        }
    }
    text
}
