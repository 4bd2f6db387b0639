//! The owner's tc programs.

use std::collections::BTreeMap;

use serde_json::json;

use crate::binding::Binding;
use crate::document::{Reading, Value};
use crate::kind::{LabKind, System};
use crate::schema_parts::{by_level, table};

use super::ebpf::{self, Named};
use super::{Binder, ByLevel, Description, Given, Levels, Mechanism, levels};

pub(super) const TC: Description = Description {
    key: "tc",
    what: "tc programs of your own",
    levels: Levels::Files,
    kinds: &[LabKind::Netns, LabKind::Ssh(System::Linux)],
    takes_values: false,
    table: Some((&ebpf::KEYS, "/additionalProperties/anyOf/1")),
    read,
    schema,
};

fn schema() -> serde_json::Value {
    let program = table(json!({ "required": ["object"], "properties": ebpf::properties() }));
    by_level(
        "The eBPF object file of each level, relative to this file, whose tc program is attached to the ingress of the \
         DUT's receiving interface; a table says more of it; \"\" is none.",
        json!({ "anyOf": [{ "type": "string" }, program] }),
    )
}

fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Box<dyn Mechanism>> {
    let program = |reading: &mut Reading<'_>, value: &Value<'_>, what: &str| {
        program(reading, value, what, given.keys)
    };
    Some(Box::new(ByLevel {
        meanings: levels(reading, given.value, given.what, program),
        bind,
        sets: Some("the tc program"),
    }))
}

fn bind(binder: &mut Binder<'_, '_>, programs: &BTreeMap<String, Option<Named>>) -> Binding {
    let programs = binder.levels(programs).into_iter();
    let programs = programs.filter_map(|(level, named)| match named {
        Some(named) => Some((level, Some(ebpf::bind(binder, named)?))),
        None => Some((level, None)),
    });
    Binding::Tc(programs.collect())
}

/// What a level names; empty text is no program.
fn program(
    reading: &mut Reading<'_>,
    value: &Value<'_>,
    what: &str,
    keys: &'static [&'static str],
) -> Option<Option<Named>> {
    if value.get_ref().as_str() == Some("") {
        return Some(None);
    }
    if !value.get_ref().is_table() {
        return ebpf::object(reading, value, what).map(Some);
    }
    let table = reading.table(value, what, keys)?;
    ebpf::read(reading, &table).map(Some)
}

#[cfg(test)]
mod tests {
    use super::super::tests::errors;

    #[test]
    fn a_level_is_an_object_or_one_of_its_programs_or_none() {
        for (level, allowed) in [
            ("\"\"", true),
            ("{ object = \"a.o\", program = \"classify\" }", true),
            ("{ object = \"a.o\" }", true),
            ("{ object = \"a.o\", program = \"a/b\" }", false),
            (
                "{ object = \"a.o\", program = \"a\", section = \"b\" }",
                false,
            ),
            ("\"a.o\"", true),
            ("1", false),
        ] {
            let errors = errors(&format!("tc = {{ v1 = {level} }}"));
            assert_eq!(errors.is_empty(), allowed, "{level}\n{errors}");
        }
    }
}
