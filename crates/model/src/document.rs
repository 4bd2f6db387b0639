//! A TOML file walked key by key: every mistake is noted, none ends the walk.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Diagnostics, Source, Span, list, nearest};
use crate::words::Level;

/// More than any experiment or lab needs.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// More entries than any list or table needs.
pub(crate) const ENTRIES_MAX: usize = 500;

/// One value with its place.
pub(crate) type Value<'t> = Spanned<DeValue<'t>>;

/// The file that is being read, and what was found wrong in it so far.
pub(crate) struct Reading<'a> {
    pub(crate) source: &'a Arc<Source>,
    pub(crate) diagnostics: &'a mut Diagnostics,
}

impl<'a> Reading<'a> {
    pub(crate) fn error(&mut self, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.diagnostics.error(Some((self.source, span)), message)
    }

    pub(crate) fn warning(&mut self, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.diagnostics.warning(Some((self.source, span)), message)
    }

    /// The file's tables; none where its syntax is broken, because what could still be read of it
    /// would be guesswork and so would be every error about it.
    pub(crate) fn parse(&mut self) -> Option<DeTable<'a>> {
        let text = self.source.text.as_str();
        if text.len() > TEXT_BYTES_MAX {
            let what = format!("the file is larger than {} MiB", TEXT_BYTES_MAX >> 20);
            self.error(0..0, what).with_help(
                "experiments and labs are far smaller; data belong into files of their own",
            );
            return None;
        }
        let (document, mut errors) = DeTable::parse_recoverable(text);
        if errors.is_empty() {
            return Some(document.into_inner());
        }
        // What the parser says behind the first error of a line follows from that error.
        let place = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
        errors.sort_by_key(place);
        errors.dedup_by(|later, error| {
            let between = text.as_bytes().get(place(error)..place(later));
            between.is_some_and(|between| !between.contains(&b'\n'))
        });
        for error in errors {
            let span = error.span().unwrap_or(0..0);
            if let Some(word) = bare_word(text, &span).filter(|_| self.source.is_quotable) {
                self.error(span, "this is not TOML: text stands in quotes")
                    .with_label(format!("write {word:?}"));
            } else {
                self.error(span, format!("this is not TOML: {}", error.message()));
            }
        }
        None
    }

    pub(crate) fn expected(
        &mut self,
        value: &Value<'_>,
        what: &str,
        expected: &str,
    ) -> &mut Diagnostic {
        let found = describe(value.get_ref(), self.source.is_quotable);
        self.error(
            value.span(),
            format!("{what} must be {expected}, not {found}"),
        )
    }

    /// Text of one line that is not empty: a name, a label, a title.
    pub(crate) fn line(&mut self, value: &Value<'_>, what: &str) -> Option<Spanned<String>> {
        let line = value
            .get_ref()
            .as_str()
            .filter(|text| !text.trim().is_empty() && !text.chars().any(char::is_control));
        if line.is_none() {
            self.expected(value, what, "one line of text");
        }
        Some(Spanned::new(value.span(), line?.to_owned()))
    }

    /// Any text, without the white space around it; none where that leaves nothing.
    pub(crate) fn text(&mut self, value: &Value<'_>, what: &str) -> Option<String> {
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.expected(value, what, "text");
        }
        text.map(str::trim)
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    }

    /// One of several words.
    pub(crate) fn word<T: Copy>(
        &mut self,
        value: &Value<'_>,
        what: &str,
        words: &[(&str, T)],
    ) -> Option<T> {
        let written = value.get_ref().as_str();
        let meant = words.iter().find(|(word, _)| Some(*word) == written);
        if meant.is_none() {
            let allowed = words.iter().map(|(word, _)| *word);
            let expected = match words {
                [(word, _)] => format!("{word:?}"),
                _ => format!("one of {}", list(allowed.clone())),
            };
            let suggestion = written.and_then(|written| nearest(written, allowed));
            let diagnostic = self.expected(value, what, &expected);
            if let Some(suggestion) = suggestion {
                diagnostic.with_help(format!("did you mean {suggestion:?}?"));
            }
        }
        meant.map(|(_, meant)| *meant)
    }

    /// A whole number inside its bounds.
    pub(crate) fn integer<T>(
        &mut self,
        value: &Value<'_>,
        what: &str,
        bounds: RangeInclusive<T>,
    ) -> Option<T>
    where
        T: TryFrom<i128> + PartialOrd + Display,
    {
        let integer = whole_number(value.get_ref())
            .and_then(|integer| T::try_from(integer).ok())
            .filter(|integer| bounds.contains(integer));
        if integer.is_none() {
            let expected = if bounds.start() == bounds.end() {
                bounds.start().to_string()
            } else {
                format!("a whole number from {} to {}", bounds.start(), bounds.end())
            };
            self.expected(value, what, &expected);
        }
        integer
    }

    /// A number inside its bounds, with or without a fraction.
    pub(crate) fn number(
        &mut self,
        value: &Value<'_>,
        what: &str,
        bounds: RangeInclusive<f64>,
    ) -> Option<f64> {
        let written = match value.get_ref() {
            DeValue::Float(float) => float.as_str().parse().ok(),
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().parse().ok(),
            _ => None,
        };
        let number = written.filter(|number| bounds.contains(number));
        if number.is_none() {
            let expected = format!("a number from {} to {}", bounds.start(), bounds.end());
            self.expected(value, what, &expected);
        }
        number
    }

    /// `true` or `false`.
    pub(crate) fn boolean(&mut self, value: &Value<'_>, what: &str) -> Option<bool> {
        let boolean = value.get_ref().as_bool();
        if boolean.is_none() {
            self.expected(value, what, "true or false");
        }
        boolean
    }

    /// One value of a factor.
    pub(crate) fn level(&mut self, value: &Value<'_>, what: &str) -> Option<Spanned<Level>> {
        let level = match value.get_ref() {
            DeValue::Boolean(boolean) => Some(Level::Boolean(*boolean)),
            integer @ DeValue::Integer(_) => whole_number(integer)
                .and_then(|integer| i64::try_from(integer).ok())
                .map(Level::Integer),
            DeValue::String(_) => {
                let text = self.line(value, what)?;
                Some(Level::Text(text.into_inner()))
            }
            _ => None,
        };
        if level.is_none() {
            self.expected(value, what, "text, a whole number, true or false");
        }
        Some(Spanned::new(value.span(), level?))
    }

    /// The values of a list.
    pub(crate) fn list<'t>(&mut self, value: &'t Value<'t>, what: &str) -> Option<&'t [Value<'t>]> {
        let list = value.get_ref().as_array();
        if list.is_none() {
            self.expected(value, what, "a list in brackets");
        }
        let count = self.bounded(list?.len(), value.span(), what);
        list.map(|list| &list[..count])
    }

    /// The name that was probably meant; none beside more errors than are shown.
    pub(crate) fn nearest<'n>(
        &self,
        written: &str,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Option<&'n str> {
        if self.diagnostics.are_many() {
            return None;
        }
        nearest(written, names)
    }

    /// How many entries of a list or a table are read; more are an error.
    fn bounded(&mut self, count: usize, span: Span, what: &str) -> usize {
        if count > ENTRIES_MAX {
            let message = format!("{what} has {count} entries, more than {ENTRIES_MAX}");
            self.error(span, message)
                .with_help("give those that answer the question");
        }
        count.min(ENTRIES_MAX)
    }

    /// The keys and values of a table whose keys are the author's own, in the order of the file.
    pub(crate) fn entries<'t>(
        &mut self,
        value: &'t Value<'t>,
        what: &str,
    ) -> Vec<(Spanned<&'t str>, &'t Value<'t>)> {
        let Some(table) = value.get_ref().as_table() else {
            self.expected(value, what, "a table");
            return Vec::new();
        };
        let mut entries: Vec<_> = table
            .iter()
            .map(|(key, value)| (Spanned::new(key.span(), key.get_ref().as_ref()), value))
            .collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let count = self.bounded(entries.len(), value.span(), what);
        entries.truncate(count);
        entries
    }

    /// A table with the keys it may have; the others are errors.
    pub(crate) fn table<'t>(
        &mut self,
        value: &'t Value<'t>,
        name: &str,
        keys: &'static [&'static str],
    ) -> Option<Table<'t>> {
        let Some(entries) = value.get_ref().as_table() else {
            self.expected(value, name, "a table");
            return None;
        };
        Some(Table::open(self, entries, value.span(), name, keys))
    }
}

/// A table whose keys are fixed.
pub(crate) struct Table<'t> {
    entries: &'t DeTable<'t>,
    /// The header, or the whole of an inline table.
    pub(crate) span: Span,
    /// How messages call it; the file's outermost table has no name.
    name: String,
    /// Keys that are there under a name that is nearly theirs, which is an error already.
    misspelt: Vec<&'static str>,
}

impl<'t> Table<'t> {
    /// The table under a header; keys that it may not have are errors.
    pub(crate) fn open(
        reading: &mut Reading<'_>,
        entries: &'t DeTable<'t>,
        span: Span,
        name: &str,
        keys: &'static [&'static str],
    ) -> Self {
        let mut table = Self {
            entries,
            span,
            name: name.into(),
            misspelt: Vec::new(),
        };
        for key in entries.keys() {
            let written = key.get_ref().as_ref();
            if keys.contains(&written) {
                continue;
            }
            let suggestion = reading.nearest(written, keys.iter().copied());
            let diagnostic =
                reading.error(key.span(), format!("unknown key {}", table.what(written)));
            if let Some(suggestion) = suggestion {
                diagnostic.with_label(format!("did you mean `{suggestion}`?"));
                table.misspelt.push(suggestion);
            }
            diagnostic.with_help(format!("known keys: {}", keys.join(", ")));
        }
        table
    }

    /// The table as messages name it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// A key as messages name it.
    pub(crate) fn what(&self, key: &str) -> String {
        if self.name.is_empty() {
            format!("`{key}`")
        } else {
            format!("`{key}` in {}", self.name)
        }
    }

    /// Whether nothing stands in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value of a key.
    pub(crate) fn value(&self, key: &str) -> Option<&'t Value<'t>> {
        self.entries.get(key)
    }

    /// Whether a key was meant and not hit.
    pub(crate) fn is_misspelt(&self, key: &str) -> bool {
        self.misspelt.contains(&key)
    }

    /// The value of a key that must be there.
    pub(crate) fn required(&self, reading: &mut Reading<'_>, key: &str) -> Option<&'t Value<'t>> {
        let value = self.value(key);
        if value.is_none() && !self.is_misspelt(key) {
            reading.error(self.span.clone(), format!("{} is missing", self.what(key)));
        }
        value
    }

    /// Text of one line under a key that must be there.
    pub(crate) fn required_line(
        &self,
        reading: &mut Reading<'_>,
        key: &str,
    ) -> Option<Spanned<String>> {
        let value = self.required(reading, key)?;
        reading.line(value, &self.what(key))
    }

    /// Text of one line.
    pub(crate) fn line(&self, reading: &mut Reading<'_>, key: &str) -> Option<Spanned<String>> {
        reading.line(self.value(key)?, &self.what(key))
    }

    /// Any text.
    pub(crate) fn text(&self, reading: &mut Reading<'_>, key: &str) -> Option<String> {
        reading.text(self.value(key)?, &self.what(key))
    }

    /// A whole number inside its bounds.
    pub(crate) fn integer<T>(
        &self,
        reading: &mut Reading<'_>,
        key: &str,
        bounds: RangeInclusive<T>,
    ) -> Option<T>
    where
        T: TryFrom<i128> + PartialOrd + Display,
    {
        reading.integer(self.value(key)?, &self.what(key), bounds)
    }

    /// A number inside its bounds.
    pub(crate) fn number(
        &self,
        reading: &mut Reading<'_>,
        key: &str,
        bounds: RangeInclusive<f64>,
    ) -> Option<f64> {
        reading.number(self.value(key)?, &self.what(key), bounds)
    }

    /// One of several words, or the default where the key is not there; none where that is an error.
    pub(crate) fn word_or_default<T: Copy + Default>(
        &self,
        reading: &mut Reading<'_>,
        key: &str,
        words: &[(&str, T)],
    ) -> Option<T> {
        match self.value(key) {
            None => Some(T::default()),
            Some(value) => reading.word(value, &self.what(key), words),
        }
    }

    /// `true` or `false`.
    pub(crate) fn boolean(&self, reading: &mut Reading<'_>, key: &str) -> Option<bool> {
        reading.boolean(self.value(key)?, &self.what(key))
    }

    /// The table under `[key]`, or those under every `[[key]]`; none where there is neither.
    pub(crate) fn one_or_several(
        &self,
        reading: &mut Reading<'_>,
        key: &str,
        keys: &'static [&'static str],
    ) -> Vec<Self> {
        match self.value(key) {
            Some(value) if value.get_ref().is_array() => self.tables(reading, key, keys),
            _ => self.table(reading, key, keys).into_iter().collect(),
        }
    }

    /// The table under `[key]`.
    pub(crate) fn table(
        &self,
        reading: &mut Reading<'_>,
        key: &str,
        keys: &'static [&'static str],
    ) -> Option<Self> {
        reading.table(self.value(key)?, &format!("[{key}]"), keys)
    }

    /// The tables under every `[[key]]`.
    pub(crate) fn tables(
        &self,
        reading: &mut Reading<'_>,
        key: &str,
        keys: &'static [&'static str],
    ) -> Vec<Self> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let name = format!("[[{key}]]");
        let Some(tables) = value.get_ref().as_array() else {
            reading.expected(value, &format!("`{key}`"), &format!("written as {name}"));
            return Vec::new();
        };
        let count = reading.bounded(tables.len(), self.span.clone(), &name);
        tables[..count]
            .iter()
            .filter_map(|table| reading.table(table, &name, keys))
            .collect()
    }

    /// What is read of each table under `[[key]]`.
    pub(crate) fn each<T>(
        &self,
        reading: &mut Reading<'_>,
        key: &str,
        keys: &'static [&'static str],
        read: impl Fn(&mut Reading<'_>, &Self) -> Option<T>,
    ) -> Vec<T> {
        let tables = self.tables(reading, key, keys);
        let read = tables.iter().filter_map(|table| read(reading, table));
        read.collect()
    }
}

/// A value that lacks its quotes, where that is what the parser stumbled over.
fn bare_word<'t>(text: &'t str, span: &Span) -> Option<&'t str> {
    let is_value = text.get(..span.start)?.trim_end().ends_with('=');
    let word = text.get(span.clone())?.trim();
    let is_word = word.starts_with(|first: char| first.is_alphabetic());
    (is_value && is_word && !word.contains(['"', '\''])).then_some(word)
}

fn whole_number(value: &DeValue<'_>) -> Option<i128> {
    let integer = value.as_integer()?;
    i128::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// A value as a message shows it, or what it is.
fn describe(value: &DeValue<'_>, is_quotable: bool) -> String {
    const SHOWN_CHARACTERS_MAX: usize = 40;
    match value {
        DeValue::String(_) if !is_quotable => "this text".into(),
        DeValue::Integer(_) | DeValue::Float(_) if !is_quotable => "this number".into(),
        DeValue::String(text) if text.chars().count() > SHOWN_CHARACTERS_MAX => {
            let start: String = text.chars().take(SHOWN_CHARACTERS_MAX).collect();
            format!("the text {:?}", start + "…")
        }
        DeValue::String(text) => format!("the text {text:?}"),
        DeValue::Integer(integer) => integer.to_string(),
        DeValue::Float(float) => float.to_string(),
        DeValue::Boolean(boolean) => boolean.to_string(),
        DeValue::Datetime(_) => "a date".into(),
        DeValue::Array(_) => "a list".into(),
        DeValue::Table(_) => "a table".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_optional_word_is_the_default_where_it_is_not_there_and_none_where_it_is_wrong() {
        for (text, word, errors) in [
            ("", Some(0), 0),
            ("word = \"one\"", Some(1), 0),
            ("word = \"two\"", None, 1),
            ("word = 1", None, 1),
        ] {
            let source = Arc::new(Source {
                path: "x.toml".into(),
                text: text.to_owned(),
                is_quotable: true,
            });
            let mut diagnostics = Diagnostics::default();
            let read = {
                let mut reading = Reading {
                    source: &source,
                    diagnostics: &mut diagnostics,
                };
                let entries = reading.parse().unwrap();
                let table = Table::open(&mut reading, &entries, 0..0, "", &["word"]);
                table.word_or_default(&mut reading, "word", &[("none", 0), ("one", 1)])
            };
            assert_eq!((read, diagnostics.errors()), (word, errors), "{text}");
        }
    }
}
