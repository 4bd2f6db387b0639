//! An eBPF program of the owner's, as XDP and tc levels name it.

use std::collections::BTreeMap;

use serde_json::json;
use toml::Spanned;
use toml::de::DeValue;

use crate::binding::{EbpfProgram, GlobalValue};
use crate::document::{Reading, Table, Value};
use crate::schema_parts::{by_level, line};

use super::name::is_path_part;
use super::{Binder, levels, without_errors};

/// The keys that every program's table has.
pub(super) const KEYS: [&str; 6] = [
    "object",
    "program",
    "globals",
    "max_entries",
    "maps",
    "tail_calls",
];

/// Those, and two more of a mechanism.
pub(super) const fn keys_and([one, other]: [&'static str; 2]) -> [&'static str; 8] {
    let [object, program, globals, max_entries, maps, tail_calls] = KEYS;
    [
        object,
        program,
        globals,
        max_entries,
        maps,
        tail_calls,
        one,
        other,
    ]
}

/// An object file, relative to the lab file, and what is set in it.
#[derive(Debug)]
pub(super) struct Named {
    object: Spanned<String>,
    program: Option<String>,
    globals: BTreeMap<String, GlobalValue>,
    max_entries: BTreeMap<String, u32>,
    maps: BTreeMap<String, Spanned<String>>,
    tail_calls: BTreeMap<String, Vec<String>>,
}

/// What a JSON Schema says of the keys.
pub(super) fn properties() -> serde_json::Value {
    let number = json!({ "type": "integer" });
    let numbers = json!({ "type": "array", "items": number, "minItems": 1 });
    let entries = json!({ "type": "integer", "minimum": 1, "maximum": u32::MAX });
    let value = json!({ "anyOf": [{ "type": ["integer", "boolean"] }, numbers] });
    let functions = json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 });
    json!({
        "object": line("The eBPF object file, relative to this file."),
        "program": line("Which of its programs, by the name of its function; needed where it has several."),
        "globals": by_level("The values of global variables, by name; a list is an array.", value),
        "max_entries": by_level(
            "How many entries a map has room for, by the map's name; by default as many as the object says.",
            entries,
        ),
        "maps": by_level(
            "The file of a map's contents, relative to this file, by the map's name: in the form of `bpftool --json map \
             dump`.",
            line("A file."),
        ),
        "tail_calls": by_level(
            "The functions that tail calls go to, from index 0 on, by the name of the program array.",
            functions,
        ),
    })
}

/// An object of which nothing more is said.
pub(super) fn object(reading: &mut Reading<'_>, value: &Value<'_>, what: &str) -> Option<Named> {
    Some(Named {
        object: reading.line(value, what)?,
        program: None,
        globals: BTreeMap::new(),
        max_entries: BTreeMap::new(),
        maps: BTreeMap::new(),
        tail_calls: BTreeMap::new(),
    })
}

/// What a table says of a program.
pub(super) fn read(reading: &mut Reading<'_>, table: &Table<'_>) -> Option<Named> {
    let object = table.required_line(reading, "object");
    let program = table.line(reading, "program");
    if let Some(program) = &program
        && !is_path_part(program.get_ref())
    {
        let message = format!("{:?} is no name of a program", program.get_ref());
        reading
            .error(program.span(), message)
            .with_help("give the name of its function in C");
    }
    let globals = named(reading, table, "globals", global);
    let max_entries = named(reading, table, "max_entries", |reading, value, what| {
        let entries = reading.integer(value, what, 1..=i64::from(u32::MAX))?;
        u32::try_from(entries).ok()
    });
    let maps = named(reading, table, "maps", |reading, value, what| {
        reading.line(value, what)
    });
    let tail_calls = named(reading, table, "tail_calls", functions);
    Some(Named {
        object: object?,
        program: program.map(Spanned::into_inner),
        globals,
        max_entries,
        maps,
        tail_calls,
    })
}

/// A table from names of the object to what is said of each.
fn named<T>(
    reading: &mut Reading<'_>,
    table: &Table<'_>,
    key: &str,
    read: impl Fn(&mut Reading<'_>, &Value<'_>, &str) -> Option<T>,
) -> BTreeMap<String, T> {
    let Some(value) = table.value(key) else {
        return BTreeMap::new();
    };
    without_errors(levels(
        reading,
        value,
        &table.what(key),
        |reading, value, level| read(reading, value, &level.replace("level", "the entry")),
    ))
}

fn global(reading: &mut Reading<'_>, value: &Value<'_>, what: &str) -> Option<GlobalValue> {
    let number = |reading: &mut Reading<'_>, value: &Value<'_>| {
        reading.integer(value, what, i64::MIN..=i64::MAX)
    };
    match value.get_ref() {
        DeValue::Boolean(is_set) => Some(GlobalValue::Boolean(*is_set)),
        DeValue::Integer(_) => number(reading, value).map(GlobalValue::Integer),
        DeValue::Array(_) => {
            let items = filled(reading, value, what)?.iter();
            let numbers: Option<Vec<i64>> = items.map(|item| number(reading, item)).collect();
            numbers.map(GlobalValue::Array)
        }
        _ => {
            let expected = "a whole number, true or false, or a list of whole numbers";
            reading.expected(value, what, expected);
            None
        }
    }
}

/// The values of a list that has any.
fn filled<'t>(
    reading: &mut Reading<'_>,
    value: &'t Value<'t>,
    what: &str,
) -> Option<&'t [Value<'t>]> {
    let items = reading.list(value, what)?;
    if items.is_empty() {
        reading.error(value.span(), format!("{what} is empty"));
        return None;
    }
    Some(items)
}

fn functions(reading: &mut Reading<'_>, value: &Value<'_>, what: &str) -> Option<Vec<String>> {
    let items = filled(reading, value, what)?.iter();
    let names = items.map(|item| Some(reading.line(item, what)?.into_inner()));
    names.collect()
}

/// The program with its files read.
pub(super) fn bind(binder: &mut Binder<'_, '_>, named: &Named) -> Option<EbpfProgram> {
    let object = binder.upload(&named.object);
    let maps = named.maps.iter();
    let maps: Option<BTreeMap<_, _>> = maps
        .map(|(map, file)| Some((map.clone(), binder.upload(file)?)))
        .collect();
    Some(EbpfProgram {
        object: object?,
        program: named.program.clone(),
        globals: named.globals.clone(),
        max_entries: named.max_entries.clone(),
        maps: maps?,
        tail_calls: named.tail_calls.clone(),
    })
}
