//! Findings for people: how many there are of what, then those of a folder and a rule together, the worst first.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::Path;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use fwdlab_archive::lint::{Finding, Rule, Severity, Side};

use crate::format::counted;
use crate::text::{columns, hanging, in_columns, one_line, shown, wrap_to_columns};

use super::shortened;

/// More places of a group than this are counted.
const PLACES_MAX: usize = 4;

/// How findings are shown.
#[derive(Clone, Copy, Debug)]
pub struct FindingsView {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether it takes colours.
    pub colour: bool,
    /// Whether each finding is shown with its lines, and none is only counted.
    pub all: bool,
}

/// What `fwdlab lint` prints: how many findings each rule has, then errors, warnings and notes.
///
/// Shape: `directories` is how many were looked at. Where there is a baseline, `findings` are those that it has not, and
/// `beside` says what became of it.
#[must_use]
pub fn terminal(
    findings: &[&Finding],
    directories: usize,
    beside: Option<&str>,
    view: FindingsView,
) -> String {
    let mut text = summary(findings, directories, beside, view.width);
    let mut sorted = findings.to_vec();
    sorted.sort_by_key(|finding| Reverse(finding.rule.severity));
    let is_counted = |finding: &Finding| !view.all && finding.rule.severity == Severity::Note;
    let (counted, shown_whole): (Vec<&Finding>, Vec<&Finding>) =
        sorted.into_iter().partition(|finding| is_counted(finding));
    let mut last = None;
    for group in shown_whole.chunk_by(|one, other| cause(one) == cause(other)) {
        let directory = group[0].directory.as_path();
        text.push('\n');
        if last != Some(directory) {
            let name = shown(directory);
            text += &if view.colour {
                format!("\x1b[1m{name}\x1b[0m\n\n")
            } else {
                format!("{name}\n\n")
            };
        }
        last = Some(directory);
        text += &group_text(group, view);
    }
    if !counted.is_empty() {
        text.push('\n');
        text += &notes(&counted, view.width);
    }
    text
}

/// What findings have in common that are one: their folder and the rule.
fn cause(finding: &Finding) -> (Severity, &Path, &str) {
    (finding.rule.severity, &finding.directory, finding.rule.code)
}

/// How many there are of each severity, and where there are several rules of each rule.
fn summary(
    findings: &[&Finding],
    directories: usize,
    beside: Option<&str>,
    width: usize,
) -> String {
    let new = if beside.is_some() { "new " } else { "" };
    let mut counts: Vec<String> = Severity::ALL
        .iter()
        .map(|severity| {
            let of_severity = findings
                .iter()
                .filter(|finding| finding.rule.severity == *severity);
            (of_severity.count() as u64, severity.as_str())
        })
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| counted(count, &format!("{new}{word}")))
        .collect();
    let last = counts.pop();
    let found = match last {
        None => format!("nothing {new}found"),
        Some(last) if counts.is_empty() => last,
        Some(last) => format!("{} and {last}", counts.join(", ")),
    };
    let looked_at = match directories {
        1 => "1 results directory".to_owned(),
        more => format!("{more} results directories"),
    };
    let mut text = lines("", &format!("{found} in {looked_at}"), width);
    text += &beside.map_or_else(String::new, |beside| lines("", beside, width));
    let mut rules: Vec<&Rule> = findings.iter().map(|finding| finding.rule).collect();
    rules.sort_by_key(|rule| (Reverse(rule.severity), rule.code));
    rules.dedup();
    if rules.len() > 1 {
        let mut rows: Vec<Vec<String>> = rules.iter().map(|rule| row(rule, findings)).collect();
        let in_lines = |rows: &[Vec<String>]| in_columns(rows, |column| column == 2);
        if in_lines(&rows).iter().any(|line| columns(line) > width) {
            // Folders can be done without.
            rows.iter_mut().for_each(|row| row.truncate(3));
        }
        text.push('\n');
        for line in in_lines(&rows) {
            text += &format!("{line}\n");
        }
    }
    text
}

/// A rule of the summary: how often it found something, and in how many folders.
fn row(rule: &Rule, findings: &[&Finding]) -> Vec<String> {
    let of_rule = findings.iter().filter(|finding| finding.rule == rule);
    let directories: BTreeSet<&Path> = of_rule
        .clone()
        .map(|finding| finding.directory.as_path())
        .collect();
    let folders = counted(directories.len() as u64, "folder");
    vec![
        rule.severity.as_str().to_owned(),
        format!("{} {}", rule.code, rule.name),
        of_rule.count().to_string(),
        format!("in {folders}"),
    ]
}

/// The first of a group with its lines, then where the others are and what they say.
fn group_text(group: &[&Finding], view: FindingsView) -> String {
    let renderer = if view.colour {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let shown_whole = if view.all { group.len() } else { 1 };
    let mut text = String::new();
    for (number, finding) in group[..shown_whole].iter().enumerate() {
        if number > 0 {
            text.push('\n');
        }
        text += &one(finding, &renderer, view.width);
        text.push('\n');
    }
    let others = &group[shown_whole..];
    // One more line would say no more than the place itself.
    let listed = if others.len() > PLACES_MAX + 1 {
        PLACES_MAX
    } else {
        others.len()
    };
    let (_, said) = place_and_words(group[0]);
    for finding in &others[..listed] {
        let (place, words) = place_and_words(finding);
        // What the first has said already, of its own file, is not said again.
        let words = if words == said { String::new() } else { words };
        text += &lines("   also ", &(place + &words), view.width);
    }
    if listed < others.len() {
        let left = others.len() - listed;
        let more = format!("{left} more of the same kind; --all shows them");
        text += &lines("   and ", &more, view.width);
    }
    text
}

/// Where a finding is, in its folder, and what its sentence says beside that.
fn place_and_words(finding: &Finding) -> (String, String) {
    let sentence = one_line(&finding.sentence);
    let Some(evidence) = finding.evidence.first() else {
        return (String::new(), sentence);
    };
    let name = in_folder(&evidence.path, finding);
    let line = evidence
        .line
        .map_or_else(String::new, |line| format!(":{line}"));
    let words = match sentence.strip_prefix(&name) {
        Some(rest) => rest.to_owned(),
        None => format!(": {sentence}"),
    };
    (name + &line, words)
}

/// A path as it is called in the folder of a finding, which stands above it.
fn in_folder(path: &Path, finding: &Finding) -> String {
    let below = path.strip_prefix(&finding.directory);
    shown(
        below
            .ok()
            .filter(|below| *below != Path::new(""))
            .unwrap_or(path),
    )
}

fn lines(lead: &str, words: &str, width: usize) -> String {
    hanging(lead, words, width)
        .map(|(lead, line)| format!("{lead}{line}\n"))
        .collect()
}

fn one(finding: &Finding, renderer: &Renderer, width: usize) -> String {
    let level = match finding.rule.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    // What the level and the code take of the line, and what stands in front of notes.
    let head = finding.rule.severity.as_str().len() + "[L000]: ".len();
    let wrapped = |text: &str, before: usize| {
        let room = width.saturating_sub(before).max(20);
        wrap_to_columns(text, room).join("\n")
    };
    let sentence = wrapped(&one_line(&finding.sentence), head);
    let pieces: Vec<(String, String)> = finding
        .evidence
        .iter()
        .map(|evidence| {
            let says = shortened(&evidence.says, width.saturating_sub(MARGIN).max(20));
            (shown(&evidence.path), says)
        })
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
    for (evidence, (_, says)) in finding.evidence.iter().zip(&pieces) {
        if evidence.line.is_none() {
            let name = in_folder(&evidence.path, finding);
            let note = format!("{}: {name}: {says}", evidence.side.as_str());
            group = group.element(Level::NOTE.message(wrapped(&note, MARGIN + "note: ".len())));
        }
    }
    let help = wrapped(finding.rule.help, MARGIN + "help: ".len());
    group = group.element(Level::HELP.message(help));
    renderer.render(&[group])
}

/// What stands left of an excerpt: the number of its line, and a bar.
const MARGIN: usize = 8;

/// Notes, of which each rule has a line.
fn notes(notes: &[&Finding], width: usize) -> String {
    let mut sorted = notes.to_vec();
    sorted.sort_by_key(|finding| finding.rule.code);
    let mut text = String::new();
    for of_rule in sorted.chunk_by(|one, other| one.rule == other.rule) {
        let rule = of_rule[0].rule;
        let lead = format!("note[{}]: ", rule.code);
        let words = match of_rule {
            [one] => {
                let (place, words) = place_and_words(one);
                place + &words
            }
            more => format!(
                "{} of the same kind: {}; --all shows them",
                more.len(),
                rule.finds
            ),
        };
        text += &lines(&lead, &words, width);
    }
    text
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
        text += &lines(lead, words, width);
    }
    text
}
