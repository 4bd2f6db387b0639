//! From a lab's mechanism to how an experiment's factor is set by it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use toml::Spanned;

use crate::binding::{Binding, Upload, Values};
use crate::diagnostic::{Source, list, suggest};
use crate::document::Reading;
use crate::factor::FactorEntry;
use crate::files::{Read, beside, read_or_said, shown};
use crate::words::Level;

use super::Meanings;

/// How a factor is set, before what it names is read.
pub(crate) trait Mechanism: fmt::Debug {
    /// How it is set for the levels that the experiment has.
    fn bind(&self, binder: &mut Binder<'_, '_>) -> Binding;

    /// The same without an experiment, where that tells something of the lab.
    fn bind_any_level(&self) -> Option<Binding> {
        None
    }

    /// What it sets: two factors that share a name set the same thing. `ports` are the names of the DUT's interfaces, where
    /// those are known.
    fn sets(&self, _ports: Option<[&str; 2]>) -> Vec<String> {
        Vec::new()
    }

    /// The file of a level's ruleset, as the lab file has it; none where levels have none.
    fn ruleset(&self, _level: &str) -> Option<&Spanned<String>> {
        None
    }
}

/// A factor of an experiment, and the lab that it is to be bound in.
pub(crate) struct Binder<'a, 's> {
    pub(crate) reading: &'a mut Reading<'s>,
    pub(crate) factor: &'a FactorEntry,
    /// The lab file.
    pub(crate) lab: &'a Arc<Source>,
    pub(crate) read: Read<'a>,
    /// Whether the lab lets an image take the place of what is on the DUT's other slice.
    pub(crate) may_overwrite: bool,
}

impl Binder<'_, '_> {
    /// What each level means to the mechanism. One that could not be read has an error already.
    pub(super) fn levels<'m, T>(&mut self, meanings: &'m Meanings<T>) -> BTreeMap<String, &'m T> {
        let mut bound = BTreeMap::new();
        for level in &self.factor.levels {
            let text = level.get_ref().to_string();
            if let Some(meaning) = meanings.get(&text) {
                bound.extend(meaning.as_ref().map(|meaning| (text, meaning)));
                continue;
            }
            let names = || meanings.keys().map(String::as_str);
            let message = format!(
                "level {text:?} of {:?} is not bound in {}",
                self.factor.name.get_ref(),
                shown(&self.lab.path)
            );
            let suggestion = self.reading.nearest(&text, names());
            let diagnostic = self.reading.error(level.span(), message);
            suggest(diagnostic, suggestion);
            diagnostic.with_help(format!("bound there: {}", list(names())));
        }
        bound
    }

    /// The same where the meaning goes into the record as it is.
    pub(super) fn meanings<T: Clone>(&mut self, meanings: &Meanings<T>) -> BTreeMap<String, T> {
        let bound = self.levels(meanings).into_iter();
        bound
            .map(|(level, meaning)| (level, meaning.clone()))
            .collect()
    }

    /// The value of each level: what the lab says, or the level itself, which then is no truth value. `what` is set to
    /// them.
    pub(super) fn values(&mut self, values: Option<&Meanings<String>>, what: &str) -> Values {
        if let Some(values) = values {
            return Values(self.meanings(values));
        }
        self.refuse_levels(
            |level| matches!(level, Level::Boolean(_)),
            |_| format!("{what} has no level `true` or `false`"),
            "write 0 or 1, or give the lab file `values`",
        );
        Values::default()
    }

    /// An error for each level that reads back as another one does: nothing could prove which of them is set.
    pub(super) fn refuse_alike(&mut self, values: &Values, reads_back: &BTreeMap<String, String>) {
        if reads_back.is_empty() {
            return;
        }
        let stands = |level: &Level| {
            let value = values.value(level);
            reads_back.get(&value).cloned().unwrap_or(value)
        };
        let factor = self.factor;
        let first = |level: &Level| {
            let mut levels = factor.levels.iter().map(Spanned::get_ref);
            levels.find(|other| stands(other) == stands(level)).cloned()
        };
        self.refuse_levels(
            |level| first(level).is_some_and(|first| first != *level),
            |level| {
                let (first, stands) = (first(level), stands(level));
                let first = first.unwrap_or_else(|| level.clone());
                format!("level {level} reads back as {stands}, as level {first} does")
            },
            "leave one of them out, or correct `reads_back` in the lab file",
        );
    }

    /// An error for each level that the mechanism cannot set: what is wrong with it, and what to write instead.
    pub(super) fn refuse_levels(
        &mut self,
        is_wrong: impl Fn(&Level) -> bool,
        message: impl Fn(&Level) -> String,
        help: &str,
    ) {
        let levels = self.factor.levels.iter();
        for level in levels.filter(|level| is_wrong(level.get_ref())) {
            let message = message(level.get_ref());
            self.reading.error(level.span(), message).with_help(help);
        }
    }

    /// A file or folder of the lab's that is brought to the DUT.
    pub(super) fn upload(&mut self, named: &Spanned<String>) -> Option<Upload> {
        let found = beside(&self.lab.path, named.get_ref());
        let place = Some((self.lab, named.span()));
        let read = self.read.sha256(&found);
        let sha256 = read_or_said(&found, read, place, self.reading.diagnostics)?;
        Some(Upload {
            path: named.get_ref().clone(),
            sha256,
            found,
        })
    }
}
