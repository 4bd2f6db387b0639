//! What is wrong in a file, where, and what to do about it.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::files::shown;

/// So many of them are shown; who has more mends some first.
const SHOWN_MAX: usize = 20;
/// So many names a sentence lists.
const LISTED_MAX: usize = 50;

/// A place in a text: its first byte and the byte behind its last one.
pub type Span = Range<usize>;

/// A file as it was read.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// Where it was read, as the user would name it.
    pub path: PathBuf,
    /// What it held.
    pub text: String,
    /// Whether messages may show its lines. They name the place alone in a file that was not given by the user and may
    /// be another's secret.
    pub is_quotable: bool,
}

impl Source {
    /// Whether the lines of a place may be shown: those of an address that is a secret in itself may not.
    fn may_quote(&self, span: &Span) -> bool {
        let start = self.text[..span.start].rfind('\n').map_or(0, |end| end + 1);
        let rest = &self.text[span.end..];
        let end = span.end + rest.find('\n').unwrap_or(rest.len());
        let lines = self.text[start..end].to_ascii_lowercase();
        self.is_quotable && !lines.contains("webhook")
    }

    /// The line and the column of a byte, from 1.
    fn line_and_column(&self, byte: usize) -> (usize, usize) {
        let before = &self.text[..byte];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
        (line, 1 + before[line_start..].chars().count())
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used; its author may have meant something else.
    Warning,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// The file and the place in it; none where no file could be read.
    pub place: Option<(Arc<Source>, Span)>,
    /// What stands at the caret.
    pub label: Option<String>,
    /// What to do about it: allowed values, the nearest name.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// Adds what stands at the caret.
    pub fn with_label(&mut self, label: impl Into<String>) -> &mut Self {
        self.label = Some(label.into());
        self
    }

    /// Adds what to do about it.
    pub fn with_help(&mut self, help: impl Into<String>) -> &mut Self {
        self.help.push(help.into());
        self
    }

    fn path(&self) -> Option<&Path> {
        self.place.as_ref().map(|(source, _)| source.path.as_path())
    }

    fn start(&self) -> usize {
        self.place.as_ref().map_or(0, |(_, span)| span.start)
    }

    fn render(&self, renderer: &Renderer) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut group = Group::with_title(level.primary_title(self.message.as_str()));
        if let Some((source, span)) = &self.place
            && !source.may_quote(span)
        {
            let (line, column) = source.line_and_column(span.start);
            let origin = Origin::path(shown(&source.path)).line(line);
            group = group.element(origin.char_column(column));
            if let Some(label) = &self.label {
                group = group.element(Level::HELP.message(label.as_str()));
            }
        } else if let Some((source, span)) = &self.place {
            group = group.element(
                Snippet::source(source.text.as_str())
                    .path(shown(&source.path))
                    .annotation(
                        AnnotationKind::Primary
                            .span(span.clone())
                            .label(self.label.as_deref()),
                    ),
            );
        }
        for help in &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        renderer.render(&[group])
    }
}

/// Everything that is wrong in the files of one experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.render(false))]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// Adds an error; the answer takes a label and help.
    ///
    /// The place is moved to the nearest characters' edges inside the text.
    pub fn error(
        &mut self,
        place: Option<(&Arc<Source>, Span)>,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.add(Severity::Error, place, message.into())
    }

    /// Adds a warning; the answer takes a label and help.
    pub fn warning(
        &mut self,
        place: Option<(&Arc<Source>, Span)>,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.add(Severity::Warning, place, message.into())
    }

    fn add(
        &mut self,
        severity: Severity,
        place: Option<(&Arc<Source>, Span)>,
        message: String,
    ) -> &mut Diagnostic {
        self.0.push(Diagnostic {
            severity,
            message,
            place: place.map(|(source, span)| (Arc::clone(source), inside(&source.text, &span))),
            label: None,
            help: Vec::new(),
        });
        self.0.last_mut().expect("one was just added")
    }

    /// All of them, in the order of the files and of the places in them.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0.iter()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many of them are errors.
    #[must_use]
    pub fn errors(&self) -> usize {
        self.0
            .iter()
            .filter(|diagnostic| diagnostic.severity == Severity::Error)
            .count()
    }

    /// The list as a terminal shows it: message, `file:line:col`, source line, caret, help; and
    /// how many errors there are, where there is more than one. Of very many the first are shown.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let mut parts: Vec<String> = self
            .0
            .iter()
            .take(SHOWN_MAX)
            .map(|diagnostic| diagnostic.render(&renderer))
            .collect();
        let (all, errors) = (self.0.len(), self.errors());
        let (level, mut count) = if errors > 0 {
            (Level::ERROR, format!("{errors} errors in all"))
        } else {
            (Level::WARNING, format!("{all} warnings in all"))
        };
        if all > SHOWN_MAX {
            count += &format!("; the first {SHOWN_MAX} are shown");
        }
        if errors > 1 || all > SHOWN_MAX {
            let group = Group::with_title(level.primary_title(count));
            parts.push(renderer.render(&[group]));
        }
        parts.join("\n\n")
    }

    /// Whether there are more than are ever shown, so that to suggest a name takes time for nothing.
    pub(crate) fn are_many(&self) -> bool {
        self.0.len() > 10 * SHOWN_MAX
    }

    /// Errors alone, where there are any: warnings about what is wrong anyway would mislead.
    pub(crate) fn keep_the_worst(&mut self) {
        if self.errors() > 0 {
            self.0
                .retain(|diagnostic| diagnostic.severity == Severity::Error);
        }
    }

    /// Files in the order in which they are given, the rest behind them; inside a file from top to
    /// bottom. What stands in no file comes first.
    pub(crate) fn sort(&mut self, files: &[&Path]) {
        self.0.sort_by_key(|diagnostic| {
            let file = diagnostic.path().map(|path| {
                files
                    .iter()
                    .position(|file| *file == path)
                    .unwrap_or(files.len())
            });
            (file, diagnostic.start())
        });
    }
}

fn inside(text: &str, span: &Span) -> Span {
    let start = text.floor_char_boundary(span.start);
    let end = text.ceil_char_boundary(span.end.min(text.len()));
    start..end.max(start)
}

/// The name among `names` that was probably meant: a slip away from what was written.
pub fn nearest<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let written = written.to_lowercase();
    names
        .into_iter()
        .map(|name| {
            let distance = strsim::osa_distance(&written, &name.to_lowercase());
            (distance, name)
        })
        // More than a third of the letters wrong is another word, not a slip.
        .filter(|(distance, name)| distance * 3 <= name.chars().count().max(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Names what was probably meant, at the caret.
pub(crate) fn suggest(diagnostic: &mut Diagnostic, suggestion: Option<&str>) {
    if let Some(suggestion) = suggestion {
        diagnostic.with_label(format!("did you mean {suggestion:?}?"));
    }
}

/// Names as a sentence lists them: each in quotes, with commas between.
pub(crate) fn list<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let listed = listed(names.into_iter().map(|name| format!("{name:?}")));
    if listed.is_empty() {
        "none".into()
    } else {
        listed
    }
}

/// Things as a sentence lists them, with commas between; of very many the first.
pub(crate) fn listed(things: impl IntoIterator<Item = String>) -> String {
    let mut things = things.into_iter();
    let shown: Vec<String> = things.by_ref().take(LISTED_MAX).collect();
    match things.count() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_a_slip_away_or_none() {
        let names = ["blocks", "rounds", "slice_ms", "settle_ms"];
        assert_eq!(nearest("block", names), Some("blocks"));
        assert_eq!(nearest("Rounds", names), Some("rounds"));
        assert_eq!(nearest("silce_ms", names), Some("slice_ms"));
        assert_eq!(nearest("trials", names), None);
        assert_eq!(nearest("", names), None);
    }

    #[test]
    fn a_place_outside_the_text_or_inside_a_character_is_moved_to_an_edge() {
        let source = Arc::new(Source {
            path: "x.toml".into(),
            text: "é=1".into(),
            is_quotable: true,
        });
        let mut diagnostics = Diagnostics::default();
        diagnostics.error(Some((&source, 1..1)), "inside a character");
        diagnostics.error(Some((&source, 90..99)), "behind the end");
        let spans: Vec<Span> = diagnostics
            .iter()
            .filter_map(|diagnostic| diagnostic.place.as_ref())
            .map(|(_, span)| span.clone())
            .collect();
        assert_eq!(spans, [0..2, 4..4]);
        assert!(diagnostics.render(false).contains("x.toml:1:1"));
    }

    #[test]
    fn a_file_that_is_not_to_be_quoted_is_named_with_line_and_column_alone() {
        let source = Arc::new(Source {
            path: "secret".into(),
            text: "# é\ntop = secret\n".into(),
            is_quotable: false,
        });
        let mut diagnostics = Diagnostics::default();
        let error = diagnostics.error(Some((&source, 11..17)), "this is not TOML");
        error.with_label("there").with_help("look");
        assert_eq!(
            diagnostics.to_string(),
            "error: this is not TOML\n--> secret:2:7\n = help: there\n = help: look"
        );
    }

    #[test]
    fn of_very_many_the_first_are_shown_and_all_are_counted() {
        let mut diagnostics = Diagnostics::default();
        for number in 0..SHOWN_MAX {
            diagnostics.error(None, format!("error {number}"));
        }
        assert!(diagnostics.to_string().ends_with("20 errors in all"));
        diagnostics.error(None, "hidden");
        let text = diagnostics.to_string();
        assert!(text.ends_with("error: 21 errors in all; the first 20 are shown"));
        assert!(!text.contains("hidden"));
        let names: Vec<String> = (0..LISTED_MAX + 3)
            .map(|number| number.to_string())
            .collect();
        let listed = list(names.iter().map(String::as_str));
        assert!(listed.ends_with("\"49\" and 3 more"), "{listed}");
    }

    #[test]
    fn colour_only_where_it_is_asked_for() {
        let mut diagnostics = Diagnostics::default();
        diagnostics.error(None, "cannot read it").with_help("look");
        assert!(!diagnostics.to_string().contains('\u{1b}'));
        assert!(diagnostics.render(true).contains('\u{1b}'));
    }
}
