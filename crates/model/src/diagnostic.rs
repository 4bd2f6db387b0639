//! What is wrong in a file, where, and what to do about it.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

/// A place in a text: its first byte and the byte behind its last one.
pub type Span = Range<usize>;

/// A file as it was read.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// Where it was read, as the user would name it.
    pub path: PathBuf,
    /// What it held.
    pub text: String,
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
        if let Some((source, span)) = &self.place {
            group = group.element(
                Snippet::source(source.text.as_str())
                    .path(source.path.to_string_lossy())
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
    /// how many errors there are, where there is more than one.
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
            .map(|diagnostic| diagnostic.render(&renderer))
            .collect();
        if self.errors() > 1 {
            let count = format!("{} errors in all", self.errors());
            let group = Group::with_title(Level::ERROR.primary_title(count));
            parts.push(renderer.render(&[group]));
        }
        parts.join("\n\n")
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

/// Names the one among `names` that was probably meant, at the caret.
pub(crate) fn suggest<'n>(
    diagnostic: &mut Diagnostic,
    written: &str,
    names: impl IntoIterator<Item = &'n str>,
) {
    if let Some(suggestion) = nearest(written, names) {
        diagnostic.with_label(format!("did you mean {suggestion:?}?"));
    }
}

/// Names as a sentence lists them: each in quotes, with commas between.
pub(crate) fn list<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("{name:?}")).collect();
    if quoted.is_empty() {
        "none".into()
    } else {
        quoted.join(", ")
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
    fn colour_only_where_it_is_asked_for() {
        let mut diagnostics = Diagnostics::default();
        diagnostics.error(None, "cannot read it").with_help("look");
        assert!(!diagnostics.to_string().contains('\u{1b}'));
        assert!(diagnostics.render(true).contains('\u{1b}'));
    }
}
