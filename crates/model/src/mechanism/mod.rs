//! A `[bind]` of the lab file: by which mechanism a factor is set on the DUT.
//!
//! A mechanism is a file: its [`Description`] says under which key it stands, what its levels are made of, which kinds of
//! lab have it, how it is read, and what a JSON Schema says of it.

mod bind;
mod cmdline;
mod command;
mod configs;
mod ebpf;
mod ethtool;
mod filters;
mod forwarder;
mod image;
mod interfaces;
mod kernel;
mod knob;
mod loader;
mod module;
mod name;
mod routes;
mod rulesets;
mod sysctl;
mod sysfs;
mod tc;
mod xdp;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::json;
use toml::Spanned;
use toml::de::DeValue;

use crate::binding::Binding;
use crate::document::{Reading, Table, Value};
use crate::kind::LabKind;
use crate::schema_parts::{by_level, table};

pub(crate) use self::bind::{Binder, Mechanism};
pub(crate) use self::command::arguments;
pub use self::name::devices;
pub(crate) use self::rulesets::line_that_removes;

/// What there is to know of a mechanism before anything is set by it.
pub(crate) struct Description {
    /// Under which it stands in a binding.
    pub(crate) key: &'static str,
    /// What it sets, in a few words.
    pub(crate) what: &'static str,
    /// What its levels are made of.
    pub(crate) levels: Levels,
    /// The kinds of lab that have it.
    pub(crate) kinds: &'static [LabKind],
    /// Whether a table beside it may say what is written for each level.
    pub(crate) takes_values: bool,
    /// The keys of the table that stands under it, and where its schema has that table; none where no table does.
    pub(crate) table: Option<(&'static [&'static str], &'static str)>,
    /// Reads what stands under the key; none where that is an error.
    read: fn(&mut Reading<'_>, Given<'_>) -> Option<Box<dyn Mechanism>>,
    /// What a JSON Schema says of it.
    schema: fn() -> serde_json::Value,
}

/// What stands under a mechanism's key.
struct Given<'a> {
    /// The kind of lab; none where that is an error already.
    kind: Option<LabKind>,
    value: &'a Value<'a>,
    /// What it is called in messages.
    what: &'a str,
    /// The keys of the table that stands there.
    keys: &'static [&'static str],
    /// What is written for each level, where that is said.
    values: Option<Meanings<String>>,
    /// As what a written value reads back, where that is another.
    reads_back: BTreeMap<String, String>,
}

/// The mechanisms; a binding has one of them.
pub(crate) const MECHANISMS: &[&Description] = &[
    &sysctl::SYSCTL,
    &filters::NFT,
    &filters::PF,
    &filters::IPFW,
    &filters::IPF,
    &xdp::XDP,
    &tc::TC,
    &forwarder::FORWARDER,
    &ethtool::ETHTOOL,
    &sysfs::SYSFS,
    &module::MODULE,
    &routes::ROUTES,
    &knob::KNOB,
    &loader::LOADER,
    &cmdline::CMDLINE,
    &kernel::KERNEL,
    &configs::CONFIGS,
    &image::IMAGE,
    &command::COMMAND,
];

/// What the levels of a mechanism are made of, and so how a binding and its levels are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Levels {
    /// Values of a name, which is all of the binding.
    Values,
    /// Values of a name that stands under this key of the binding's table.
    ValuesOf(&'static str),
    /// On or off, of a name that stands under this key of the binding's table.
    SwitchOf(&'static str),
    /// A file or a folder for each level.
    Files,
    /// One of these words of the mechanism for each level, the first of which is none, or a file.
    FilesOr(&'static [&'static str]),
    /// A word of the mechanism for each level.
    Words,
    /// Numbers.
    Numbers,
    /// A program for each level.
    Programs,
    /// A table for each level, which no word of a command line says.
    Tables,
}

/// What a binding may hold.
pub(crate) const BINDING_KEYS: &[&str] = &{
    let mut keys = ["values"; MECHANISMS.len() + 2];
    keys[MECHANISMS.len() + 1] = "reads_back";
    let mut number = 0;
    while number < MECHANISMS.len() {
        keys[number] = MECHANISMS[number].key;
        number += 1;
    }
    keys
};

/// The mechanism of a key; none of any other word.
pub(crate) fn described(key: &str) -> Option<&'static Description> {
    MECHANISMS
        .iter()
        .copied()
        .find(|mechanism| mechanism.key == key)
}

/// The mechanisms that a kind of lab has; all where the kind is not known.
fn of_kind(kind: Option<LabKind>) -> impl Iterator<Item = &'static Description> {
    let has =
        move |mechanism: &&Description| kind.is_none_or(|kind| mechanism.kinds.contains(&kind));
    MECHANISMS.iter().copied().filter(has)
}

fn keys<'a>(mechanisms: impl Iterator<Item = &'a Description>) -> String {
    let keys: Vec<&str> = mechanisms.map(|mechanism| mechanism.key).collect();
    keys.join(", ")
}

/// What a JSON Schema says of a binding.
pub(crate) fn schema() -> serde_json::Value {
    let values = by_level(
        "What is written for each level of a sysctl, a loader tunable, a module's parameter or a file in sysfs.",
        json!({ "type": ["string", "integer"] }),
    );
    let reads_back = by_level(
        "As what a value of a sysctl reads back that the kernel rounds, clamps or masks.",
        json!({ "type": ["string", "integer"] }),
    );
    let mut binding =
        table(json!({ "properties": { "values": values, "reads_back": reads_back } }));
    for mechanism in MECHANISMS {
        binding["properties"][mechanism.key] = (mechanism.schema)();
    }
    let keys = MECHANISMS.iter().map(|mechanism| mechanism.key);
    let one_of: Vec<_> = keys.map(|key| json!({ "required": [key] })).collect();
    binding["oneOf"] = json!(one_of);
    binding
}

/// Reads `[bind."factor"]` of a lab; none where that is an error.
///
/// Shape: without a kind the lab's is an error already, and no mechanism is held to it.
pub(crate) fn read(
    reading: &mut Reading<'_>,
    kind: Option<LabKind>,
    factor: &str,
    value: &Value<'_>,
) -> Option<Box<dyn Mechanism>> {
    let name = format!("[bind.{factor:?}]");
    let table = reading.table(value, &name, BINDING_KEYS)?;
    let mechanisms = MECHANISMS.iter().copied();
    let given = mechanisms.filter(|mechanism| table.value(mechanism.key).is_some());
    let given: Vec<&Description> = given.collect();
    if given.is_empty()
        && MECHANISMS
            .iter()
            .any(|mechanism| table.is_misspelt(mechanism.key))
    {
        return None;
    }
    let &[mechanism] = given.as_slice() else {
        let message = if given.is_empty() {
            format!("{name} has no mechanism")
        } else {
            format!(
                "{name} has more than one mechanism ({})",
                keys(given.iter().copied())
            )
        };
        reading
            .error(table.span, message)
            .with_help(format!("give one of: {}", keys(of_kind(kind))));
        return None;
    };
    let key = mechanism.key;
    let what = table.what(key);
    let value = table.value(key)?;
    if let Some(kind) = kind.filter(|kind| !mechanism.kinds.contains(kind)) {
        reading
            .error(
                value.span(),
                format!("a lab of kind {kind} sets nothing by `{key}`"),
            )
            .with_help(format!("give one of: {}", keys(of_kind(Some(kind)))));
        return None;
    }
    let values = values(reading, &table, mechanism);
    let reads_back = reads_back(reading, &table, mechanism);
    let given = Given {
        kind,
        value,
        what: &what,
        keys: mechanism.table.map_or(&[], |(keys, _)| keys),
        values,
        reads_back,
    };
    (mechanism.read)(reading, given)
}

/// What each level that a lab binds means; none where that is an error.
type Meanings<T> = BTreeMap<String, Option<T>>;

/// Those that are no errors.
fn without_errors<T>(meanings: Meanings<T>) -> BTreeMap<String, T> {
    let meanings = meanings.into_iter();
    meanings
        .filter_map(|(level, meaning)| Some((level, meaning?)))
        .collect()
}

/// A mechanism to which each level means something by itself.
#[derive(Debug)]
struct ByLevel<T> {
    meanings: Meanings<T>,
    bind: fn(&mut Binder<'_, '_>, &Meanings<T>) -> Binding,
    /// What it sets that another binding may set as well.
    sets: &'static [&'static str],
}

impl<T: fmt::Debug> Mechanism for ByLevel<T> {
    fn bind(&self, binder: &mut Binder<'_, '_>) -> Binding {
        (self.bind)(binder, &self.meanings)
    }

    fn sets(&self, _: Option<[&str; 2]>) -> Vec<String> {
        self.sets.iter().map(|&what| what.to_owned()).collect()
    }
}

/// The file of a ruleset or an image; empty text is none, so this is not the text of one line.
fn file_or_none(
    reading: &mut Reading<'_>,
    value: &Value<'_>,
    what: &str,
) -> Option<Spanned<String>> {
    match value.get_ref().as_str() {
        Some("") => Some(Spanned::new(value.span(), String::new())),
        _ => reading.line(value, what),
    }
}

/// A table from levels to what each of them means to a mechanism.
fn levels<T>(
    reading: &mut Reading<'_>,
    value: &Value<'_>,
    what: &str,
    mut read: impl FnMut(&mut Reading<'_>, &Value<'_>, &str) -> Option<T>,
) -> Meanings<T> {
    let mut levels = BTreeMap::new();
    for (level, value) in reading.entries(value, what) {
        let level = *level.get_ref();
        let meaning = read(reading, value, &format!("level {level:?}"));
        levels.insert(level.to_owned(), meaning);
    }
    levels
}

/// The `values` beside a mechanism that writes values.
fn values(
    reading: &mut Reading<'_>,
    table: &Table<'_>,
    mechanism: &Description,
) -> Option<Meanings<String>> {
    let value = table.value("values")?;
    if !mechanism.takes_values {
        let taking = MECHANISMS.iter().filter(|mechanism| mechanism.takes_values);
        let taking: Vec<&str> = taking.map(|mechanism| mechanism.key).collect();
        let (last, others) = taking.split_last().unwrap_or((&"none", &[]));
        let message = format!("`{}` takes no `values`", mechanism.key);
        reading.error(value.span(), message).with_help(format!(
            "`values` go with {} and {last}, whose levels may be words",
            others.join(", ")
        ));
        return None;
    }
    let what = table.what("values");
    Some(levels(reading, value, &what, written))
}

/// A value as it is written.
fn written(reading: &mut Reading<'_>, value: &Value<'_>, what: &str) -> Option<String> {
    match value.get_ref() {
        DeValue::Integer(_) => {
            let number = reading.integer(value, what, i64::MIN..=i64::MAX)?;
            Some(number.to_string())
        }
        DeValue::String(_) => Some(reading.line(value, what)?.into_inner()),
        _ => {
            reading.expected(value, what, "one line of text or a whole number");
            None
        }
    }
}

/// The `reads_back` beside a sysctl.
fn reads_back(
    reading: &mut Reading<'_>,
    table: &Table<'_>,
    mechanism: &Description,
) -> BTreeMap<String, String> {
    let Some(value) = table.value("reads_back") else {
        return BTreeMap::new();
    };
    if mechanism.key != sysctl::SYSCTL.key {
        let message = format!("`{}` takes no `reads_back`", mechanism.key);
        let help = "`reads_back` goes with sysctl, of which a kernel may change what is written";
        reading.error(value.span(), message).with_help(help);
        return BTreeMap::new();
    }
    without_errors(levels(reading, value, &table.what("reads_back"), written))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::diagnostic::{Diagnostics, Source};
    use crate::lab_file::LabFile;

    use super::{LabKind, MECHANISMS, of_kind};

    pub(super) fn errors(binding: &str) -> String {
        errors_in("netns", binding)
    }

    pub(super) fn errors_in(kind: &str, binding: &str) -> String {
        let source = Arc::new(Source {
            path: "x.toml".into(),
            text: format!("kind = {kind:?}\n[bind.f]\n{binding}\n"),
            is_quotable: true,
        });
        let mut diagnostics = Diagnostics::default();
        LabFile::parse(&source, &mut diagnostics);
        diagnostics.render(false)
    }

    #[test]
    fn the_guide_lists_the_mechanisms_of_each_kind_of_lab() {
        let guide = include_str!("../../../../docs/experiment-file.md");
        for kind in LabKind::ALL {
            let keys = of_kind(Some(kind)).map(|mechanism| format!("`{}`", mechanism.key));
            let row = format!("| `\"{kind}\"` | {} |", keys.collect::<Vec<_>>().join(", "));
            assert!(guide.lines().any(|line| line == row), "no row {row}");
        }
    }

    #[test]
    fn every_mechanism_is_some_labs() {
        for mechanism in MECHANISMS {
            assert!(!mechanism.kinds.is_empty(), "{}", mechanism.key);
            // The bindings of a lab of any kind have it under one key.
            let others = MECHANISMS.iter().filter(|other| other.key == mechanism.key);
            assert_eq!(others.count(), 1, "{}", mechanism.key);
        }
    }
}
